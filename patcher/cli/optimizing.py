"""``optimize``, and its views ``prove`` and ``tune``: make a model faster, or say that compiling does not pay."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from patcher.cli.patching import given_paths, rule_options, with_cases, write_down
from patcher.cli.showing import asks, colour, confirmed, left, measuring, program_words
from patcher.cli.showing import program as program_name
from patcher.config import ConfigError, load
from patcher.files.backup import project_root
from patcher.files.discover import Exclude
from patcher.files.kept import alone
from patcher.harness.cases import CaseError, as_case
from patcher.harness.forks import Forks
from patcher.harness.processes import RunError
from patcher.harness.run import forking
from patcher.harness.scratch import scratch
from patcher.measuring.budget import with_budgets
from patcher.measuring.measure import available_memory, need_torch
from patcher.measuring.measure_options import how_options, located, request_of, rule_flags
from patcher.newcase.call import overview
from patcher.options import settings_from, strategies_by_key
from patcher.patching import calls
from patcher.patching.analysis import Analysis
from patcher.report import Outcome
from patcher.report.diff import coloured
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.run.program import ProgramError, parsed
from patcher.run.recording import Recording, RecordingError, interpreter, record, recorded_in, save
from patcher.search.call import Asked, failed, optimize
from patcher.search.verdict import UNITS, Verdict
from patcher.selftest.measured import measured
from patcher.version import VERSION

_GRADED = "Of fixes: proven, measured, assumed (default: {})."
_GRADES = ("proven", "measured", "assumed")
_LEAST_SECONDS = 10.0  # for the search
_LAUNCHED = ("torchrun", "accelerate")
_REPORT = "fix-compile-report.html"
_EXAMPLES = """

Your program is the case: it runs once, its first model calls are recorded, and each candidate is measured on them.
Changes are shown before they are written; "restore" undoes them.

\b
fix-compile {word} -- python train.py --steps 20
fix-compile {word} -- pytest tests/test_model.py -k forward
fix-compile {word} mymodel/net.py:Net
fix-compile {word} --case case.py mymodel/

\b
Exit status: 0 optimized or already best, 1 compiling does not pay,
2 failed."""
_HELP = {
    "optimize": "Make a program faster with torch.compile, and keep its results; or say that compiling does not pay.",
    "prove": "Keep the source fixes that a measurement shows to help, compared with the model compiled as it was.\n\n"
    "With --backend eager, which generates no code, counts decide: graphs, breaks, recompiles.",
    "tune": "Find the call of torch.compile that is fastest: modes, dynamic shapes, settings. No fix is made.\n\n"
    "The call is written into your source only with --yes, or when you agree.",
}
#: Options that the help of ``optimize`` leaves out.
_RARE = (
    "package", "mode", "vary", "quick", "tolerance", "backend", "time_limit", "memory_limit", "verbose_compile",
    "strategy", "capacity", "device_asserts", "target_torch", "lock", "backup", "backup_dir",
)  # fmt: skip


def optimizing(rules: Sequence[Rule], word: str, command: Sequence[str]) -> click.Command:
    """The command ``word``; ``command``: the words behind ``--``, the user's program."""

    @click.command(
        help=_HELP[word] + _EXAMPLES.format(word=word), context_settings={"help_option_names": ["-h", "--help"]}
    )
    @click.argument("paths", nargs=-1, metavar="[PATH]... [-- COMMAND]")
    @click.option("--budget", type=click.FloatRange(min=10), default=600.0, metavar="S", help="Seconds (default: 600).")
    @click.option("--prove-limit", "--tune-limit", "limit", type=click.FloatRange(min=1), hidden=True)
    @click.option("--goal", type=click.Choice(tuple(UNITS)), default="latency", help="What to improve.")
    @click.option("--target", default="", metavar="NAME", help="The class or function to measure, by its name.")
    @click.option("--grades", metavar="LIST", help=_GRADED.format("proven" if word == "prove" else "all"))
    @click.option("--evidence", type=click.Path(dir_okay=False), metavar="FILE", help="Write what expressions held.")
    @click.option("--dry-run", is_flag=True, help="Change no source file.")
    @click.option("-y", "--yes", is_flag=True, help="Write the changes without asking.")
    @click.option("--save-case", type=click.Path(dir_okay=False), metavar="FILE", help="Keep your program as a case.")
    @click.option("--json", "json_", type=click.Path(dir_okay=False), metavar="FILE", help="The result as JSON.")
    @click.option(
        "-o", "--output", multiple=True, type=click.Path(dir_okay=False), metavar="FILE",
        help=f"Report, by its ending as HTML, Markdown or JSON (default: {_REPORT}).",
    )  # fmt: skip
    @how_options
    @rule_flags
    @click.option("--lock", is_flag=True, help="Record what the cases cost then in fix-compile.lock.")
    @click.option("--backup/--no-backup", default=True, help="Save the originals first (default), or do not.")
    @click.option("--backup-dir", metavar="DIR", help="Where to save them (default: .fix-compile in the project).")
    @click.option("-q", "--quiet", is_flag=True, help="No progress.")
    def optimizes(paths: tuple[str, ...], **how: Any) -> calls.Told:
        grades, goal = how["grades"], how["goal"]
        unknown = [name for name in (grades or "proven").split(",") if name not in _GRADES]
        if unknown:
            raise click.UsageError(f"--grades: {unknown[0]!r} is none of {', '.join(_GRADES)}")
        if len(set(how["mode"])) > 1:
            raise click.UsageError(f"{word} measures in one --mode")
        case, python, budget = how["case"], how["python"], how["limit"] or how["budget"]
        if how["save_case"] and (why := _why_not_saved(Path(how["save_case"]), command)):
            raise click.UsageError(f"--save-case {how['save_case']}: {why}")
        held = contextlib.ExitStack()
        held.enter_context(alone(os.path.realpath(project_root(paths[0] if paths else os.curdir)), _waiting))
        began = time.monotonic()
        say = _saying(how["quiet"], began + budget)
        told = Path(how["json_"]) if how["json_"] else None
        folder = click.get_current_context().with_resource(scratch())
        forks: Forks | None = None
        try:
            recording: Recording | None = None
            if command:
                if paths or case or how["package"]:
                    raise click.UsageError("give a program behind --, or paths and cases, not both")
                program = parsed(command)
                os.environ.update(program.variables)
                runs = interpreter(program, python)
                need_torch(runs)
                say("recording your program" + (" as one process" if program.kind in _LAUNCHED else ""))
                forks = forking(runs, begin=True)
                recording = record(program, runs, folder / "recording", budget / 2, how["target"], forks=forks)
                say(recording.told)
                paths = recording.files
                if how["save_case"]:
                    save(recording, Path(how["save_case"]), command, runs)
            else:
                runs = python or sys.executable
                paths, case = with_cases(paths, case)
                paths = given_paths(paths, how["package"]) if paths else paths
            config = load(paths[0] if paths else os.curdir)
            if recording is not None and not paths:
                say("no source file below this folder runs in the recorded calls: only how to compile is measured")
            elif recording is None and not (paths or how["package"] or case or config.cases):
                hint = f"give your program behind --: fix-compile {word} -- python train.py"
                return replace(overview(program_name()), status=calls.FAILURE, err=(hint,))
            request = request_of({**how, "case": case}, config, bool(recording))
            if recording is None and len(request.cases) == 1 and request.cases[0].recorded:
                recording = recorded_in(Path(request.cases[0].recorded))
            elif recording is not None:
                request = replace(request, cases=(recording.case,))
            request = replace(
                request,
                python=runs,
                quick=request.quick or word != "prove",
                memory=request.memory or available_memory(),
            )
            if not command:
                paths = (*paths, *located(request)) or (str(project_root(os.curdir)),)
            given = settings_from(rules, config, measured=measured(rules), **rule_options(how))
            standard = given.unsafe if word == "prove" else True
            wanted = grades.split(",") if grades else [*_GRADES] if standard else []
            settings = replace(given, unsafe=how["unsafe"] or "assumed" in wanted, measured="measured" in wanted)
            analysis = Analysis(paths, rules, settings, Exclude(config.exclude, str(config.root or os.curdir)))
            asked = Asked(
                word=word,
                paths=tuple(paths),
                began=began,
                budget=max(budget, time.monotonic() - began + _LEAST_SECONDS),
                goal=goal,
                reports=tuple(map(Path, how["output"] or (_REPORT,))),
                json=told,
                evidence=Path(how["evidence"]) if how["evidence"] else None,
                dry_run=how["dry_run"],
                command=(*program_words(), *sys.argv[1:]),
                strategies={k: names for k, names in strategies_by_key(rules).items() if k not in settings.strategies},
                recording=recording,
                forks=forks,
            )
            of = paths[0] if paths else os.curdir
            store = calls.store_for(of, config, how["backup_dir"]) if how["backup"] else None

            def write(changed: tuple[FileResult, ...]) -> calls.Told:
                made = Outcome("apply", changed, VERSION, settings.target_torch, settings.unsafe, False)
                return write_down(made, store)

            meter = None if how["quiet"] or not sys.stderr.isatty() else measuring(began + budget)
            agree = _agreeing(how["yes"], word != "tune")
            done = optimize(analysis, settings, request, asked, meter, say, agree, write)
            return with_budgets(done, request, paths, asked.command) if how["lock"] else done
        except (ProgramError, CaseError, ConfigError, RunError, RecordingError) as error:
            return failed(str(error), goal, began, told, getattr(error, "tail", ()))
        except click.ClickException as error:
            failed(error.message, goal, began, told)
            raise
        except (KeyboardInterrupt, SystemExit):
            return replace(failed("interrupted", goal, began, told), status=calls.INTERRUPTED)
        finally:
            if forks is not None:
                forks.close()
            held.close()

    for option in optimizes.params:
        if isinstance(option, click.Option) and word == "optimize" and option.name in _RARE:
            option.hidden = True
    return optimizes


def _why_not_saved(file: Path, command: Sequence[str]) -> str:
    """Why the recorded program cannot be written there as a case file; "" when it can."""
    if not command:
        return "give the program that is recorded behind --"
    if file.suffix != ".py":
        return "a case file ends in .py"
    known = as_case(file)
    return "is there already, and no recorded program" if file.exists() and not (known and known.recorded) else ""


def _waiting(process: str) -> None:
    click.echo(f"another fix-compile is working on these files (process {process}): waiting", err=True)


def _saying(quiet: bool, ends: float) -> Callable[[str], None]:
    """What prints a line of progress with the seconds left. ``ends``: a time of ``time.monotonic``."""

    def say(line: str) -> None:
        if not quiet:
            timed = line + left(ends)
            click.echo(f"{chr(13)}{chr(27)}[K{timed}" if sys.stderr.isatty() else timed, err=True)

    return say


def _agreeing(yes: bool, otherwise: bool) -> Callable[[Verdict, bytes], bool]:
    """Show verdict and diff, and ask, where there is somebody to ask. ``otherwise``: the answer without a terminal."""

    def agree(found: Verdict, diff: bytes) -> bool:
        if yes or not asks():
            return yes or otherwise
        shown = (coloured(diff) if colour(False) else diff).decode("utf-8", "replace")
        click.echo("\n".join([*found.lines, "", shown]))
        return confirmed("Write these changes (the originals are saved first)?")

    return agree
