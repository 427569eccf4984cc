"""``optimize``: the command that makes a program faster, or says that compiling does not pay."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from patcher import calls
from patcher.analysis import Analysis
from patcher.backup import project_root
from patcher.cli.patching import write_down
from patcher.cli.showing import asks, colour, measuring, program_words
from patcher.config import load
from patcher.discover import Exclude
from patcher.harness.cases import CaseError, find
from patcher.harness.forks import Forks
from patcher.harness.run import forking
from patcher.measure import Request, available_memory
from patcher.newcase.call import Asked as NewCase
from patcher.newcase.call import case as new_case
from patcher.options import settings_from, strategies_by_key
from patcher.report import Outcome
from patcher.report.diff import coloured
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.run.program import ProgramError, parsed
from patcher.run.recording import Recording, RecordingError, interpreter, record
from patcher.search.call import Asked, failed, optimize
from patcher.search.verdict import UNITS
from patcher.selftest.measured import measured
from patcher.version import VERSION

_GRADES = ("proven", "measured", "assumed")
_LEAST_SECONDS = 10.0  # for the search
_REPORT = "fix-compile-report.html"
_HELP = """Make a program faster with torch.compile, and keep its results; or say that compiling does not pay.

Your program is the case: it runs once, its first model calls are recorded, and each candidate is measured against
eager on them. Fixes are shown before they are written; "restore" undoes them.

\b
fix-compile optimize -- python train.py --steps 20
fix-compile optimize -- pytest tests/test_model.py -k forward
fix-compile optimize mymodel/net.py:Net
fix-compile optimize --case case.py mymodel/

\b
Exit status: 0 optimized or already best, 1 compiling does not pay,
2 failed."""


def optimizing(rules: Sequence[Rule], command: Sequence[str]) -> click.Command:
    """The command; ``command``: the words behind ``--``, the user's program."""

    @click.command(help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("paths", nargs=-1, metavar="[PATH]... [-- COMMAND]")
    @click.option("--case", multiple=True, metavar="FILE", help="A case file, a folder of them, or a name.")
    @click.option("--budget", type=click.FloatRange(min=10), default=600.0, metavar="S", help="Seconds (default: 600).")
    @click.option("--goal", type=click.Choice(tuple(UNITS)), default="latency", help="What to improve.")
    @click.option("--target", default="", metavar="NAME", help="The class or function to measure, by its name.")
    @click.option("--grades", default=",".join(_GRADES), metavar="LIST", help="Of fixes (default: all).")
    @click.option("--dry-run", is_flag=True, help="Change no source file.")
    @click.option("-y", "--yes", is_flag=True, help="Write the fixes without asking.")
    @click.option("--json", "json_", type=click.Path(dir_okay=False), metavar="FILE", help="The result as JSON.")
    @click.option("-o", "--output", type=click.Path(dir_okay=False), default=_REPORT, metavar="FILE", help="Report.")
    @click.option("--python", metavar="EXE", help="The Python that runs your program (default: the command's).")
    @click.option("--select", multiple=True, metavar="CODES", help="Only these rules: codes, prefixes or names.")
    @click.option("--ignore", multiple=True, metavar="CODES", help="Not these rules.")
    @click.option("-q", "--quiet", is_flag=True, help="No progress.")
    def optimizes(
        paths: tuple[str, ...],
        case: tuple[str, ...],
        budget: float,
        goal: str,
        target: str,
        grades: str,
        dry_run: bool,
        yes: bool,
        json_: str | None,
        output: str,
        python: str | None,
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        quiet: bool,
    ) -> calls.Told:
        unknown = [name for name in grades.split(",") if name not in _GRADES]
        if unknown:
            raise click.UsageError(f"--grades: {unknown[0]!r} is none of {', '.join(_GRADES)}")
        say = _saying(quiet)
        told = Path(json_) if json_ else None
        began = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="fix-compile-"))
        forks: Forks | None = None
        try:
            recording: Recording | None = None
            if command:
                if paths or case:
                    raise click.UsageError("give a program behind --, or paths and cases, not both")
                program = parsed(command)
                os.environ.update(program.variables)
                runs = interpreter(program, python)
                say("recording your program")
                forks = forking(runs, begin=True)
                recording = record(program, runs, folder / "recording", budget / 2, target, forks=forks)
                say(recording.told)
                paths = recording.files
            else:
                runs = python or sys.executable
                paths, case = _with_written(paths, case, folder)
            config = load(paths[0] if paths else os.curdir)
            if recording is not None and not paths:
                say("no source file below this folder was loaded: only how to compile is measured")
            elif not paths and not case and not config.cases:
                raise click.UsageError("give your program behind --: fix-compile optimize -- python train.py")
            paths = paths if recording else paths or (str(project_root(os.curdir)),)
            cases = (recording.case,) if recording else find(case, config.cases, config.root)
            unsafe = "assumed" in grades.split(",")
            given = settings_from(rules, config, select, ignore, unsafe, (), None, measured(rules), None, (), None)
            settings = replace(given, unsafe=unsafe)
            if recording is None:
                missing = [path for path in paths if not os.path.lexists(path)]
                if missing:
                    raise click.UsageError(f"{missing[0]}: no such file or folder")
            analysis = Analysis(paths, rules, settings, Exclude(config.exclude, str(config.root or os.curdir)))
            request = Request(cases, runs, {}, quick=True, memory=available_memory())
            asked = Asked(
                paths=tuple(paths),
                began=began,
                budget=max(budget, time.monotonic() - began + _LEAST_SECONDS),
                goal=goal,
                report=Path(output),
                json=told,
                dry_run=dry_run,
                command=(*program_words(), *sys.argv[1:]),
                strategies=strategies_by_key(rules),
                recording=recording,
                forks=forks,
            )
            store = calls.store_for(paths[0] if paths else os.curdir, config, None)

            def outcome(results: tuple[FileResult, ...]) -> Outcome:
                return Outcome("apply", results, VERSION, settings.target_torch, settings.unsafe, False)

            shown = None if quiet or not sys.stderr.isatty() else measuring()
            return optimize(
                analysis, settings, request, asked, shown, say, _agreeing(yes), lambda o: write_down(o, store), outcome
            )
        except (ProgramError, CaseError, NoCaseError) as error:
            return failed(str(error), goal, told, ())
        except RecordingError as error:
            return failed(str(error), goal, told, error.tail)
        finally:
            if forks is not None:
                forks.close()
            shutil.rmtree(folder, ignore_errors=True)

    return optimizes


class NoCaseError(Exception):
    """No case can be written for a class; the message is one line."""


def _with_written(
    paths: tuple[str, ...], case: tuple[str, ...], folder: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Paths and cases, where ``FILE:CLASS`` is its file, with a case written for it. Raises ``NoCaseError``."""
    files, cases = list[str](), list(case)
    for number, path in enumerate(paths):
        file, colon, name = path.rpartition(":")
        if not colon or not file.endswith(".py"):
            files.append(path)
            continue
        files.append(file)
        target = folder / f"{name}_{number}.py"
        told = new_case(NewCase(path, str(target), True, "fix-compile"))
        blanks = [line for line in told.err if ": fill in: " in line]
        if told.status != calls.OK or blanks:
            why = blanks[0].rpartition(": fill in: ")[2] if blanks else " ".join(told.err)
            raise NoCaseError(
                f"no inputs for {path} are in the repository ({why}); give a program that calls it behind --"
            )
        cases.append(str(target))
    return tuple(files), tuple(cases)


def _saying(quiet: bool) -> Callable[[str], None]:
    """What prints a line of progress."""

    def say(line: str) -> None:
        if not quiet:
            click.echo(f"{chr(13)}{chr(27)}[K{line}" if sys.stderr.isatty() else line, err=True)

    return say


def _agreeing(yes: bool) -> Callable[[bytes], bool]:
    """Show the diff and ask, where there is somebody to ask; without a terminal the fixes are written."""

    def agree(diff: bytes) -> bool:
        if yes or not asks():
            return True
        click.echo((coloured(diff) if colour(False) else diff).decode("utf-8", "replace"))
        try:
            return click.confirm("Write these fixes (the originals are saved first)?", err=True)
        except click.Abort:
            return False

    return agree
