"""``optimize``, and its views ``prove`` and ``tune``: make a model faster, or say that compiling does not pay."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from patcher.cli.patching import given_paths, rule_options, with_cases, write_down
from patcher.cli.showing import asks, colour, confirmed, left, measuring, program_words
from patcher.cli.showing import program as program_name
from patcher.config import Config, ConfigError, load
from patcher.files.backup import project_root
from patcher.files.discover import Exclude
from patcher.files.kept import alone
from patcher.harness.cases import CaseError, as_case
from patcher.harness.forks import Forks
from patcher.harness.processes import RunError
from patcher.harness.run import forking
from patcher.harness.scratch import scratch
from patcher.measuring.budget import with_budgets
from patcher.measuring.measure import Request, available_memory, need_torch
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
from patcher.selftest.executing import measured
from patcher.settings import Settings
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
        _refuse(word, paths, command, how)
        with alone(os.path.realpath(project_root(paths[0] if paths else os.curdir)), _waiting):
            return _Call(rules, word, command, how).ended(paths)

    for option in optimizes.params:
        if isinstance(option, click.Option) and word == "optimize" and option.name in _RARE:
            option.hidden = True
    return optimizes


def _refuse(word: str, paths: Sequence[str], command: Sequence[str], how: Mapping[str, Any]) -> None:
    """Raise ``click.UsageError`` for options that do not go together."""
    unknown = [name for name in (how["grades"] or "proven").split(",") if name not in _GRADES]
    if unknown:
        raise click.UsageError(f"--grades: {unknown[0]!r} is none of {', '.join(_GRADES)}")
    if len(set(how["mode"])) > 1:
        raise click.UsageError(f"{word} measures in one --mode")
    if how["save_case"] and (why := _why_not_saved(Path(how["save_case"]), command)):
        raise click.UsageError(f"--save-case {how['save_case']}: {why}")


@dataclass
class _Call:
    """One search. ``how``: the options by their names. ``recording``, ``forks``: where a program is the case."""

    rules: Sequence[Rule]
    word: str
    command: Sequence[str]
    how: Mapping[str, Any]
    began: float = field(default_factory=time.monotonic)
    recording: Recording | None = None
    forks: Forks | None = None

    @property
    def budget(self) -> float:
        """In seconds."""
        return float(self.how["limit"] or self.how["budget"])

    @property
    def json(self) -> Path | None:
        """Where the result goes as JSON."""
        return Path(self.how["json_"]) if self.how["json_"] else None

    def ended(self, paths: tuple[str, ...]) -> calls.Told:
        """The end of the call, also of one that cannot search: its document is written then as well."""
        failing = (self.how["goal"], self.began, self.json)
        try:
            return self._searched(paths)
        except (ProgramError, CaseError, ConfigError, RunError, RecordingError) as error:
            return failed(str(error), *failing, getattr(error, "tail", ()))
        except click.ClickException as error:
            failed(error.message, *failing)
            raise
        except (KeyboardInterrupt, SystemExit):
            return replace(failed("interrupted", *failing), status=calls.INTERRUPTED)
        finally:
            if self.forks is not None:
                self.forks.close()

    def _searched(self, paths: tuple[str, ...]) -> calls.Told:
        how, python, case = self.how, self.how["python"] or sys.executable, self.how["case"]
        if self.command:
            if paths or case or how["package"]:
                raise click.UsageError("give a program behind --, or paths and cases, not both")
            python, paths = self._recorded()
        else:
            paths, case = with_cases(paths, case)
            paths = given_paths(paths, how["package"]) if paths else paths
        of = paths[0] if paths else os.curdir
        config = load(of)
        if not (self.command or paths or how["package"] or case or config.cases):
            hint = f"give your program behind --: fix-compile {self.word} -- python train.py"
            return replace(overview(program_name()), status=calls.FAILURE, err=(hint,))
        request = self._request(config, case, python)
        if not self.command:
            paths = (*paths, *located(request)) or (str(project_root(os.curdir)),)
        settings = self._settings(config)
        analysis = Analysis(paths, self.rules, settings, Exclude(config.exclude, str(config.root or os.curdir)))
        store = calls.store_for(of, config, how["backup_dir"]) if how["backup"] else None

        def write(changed: tuple[FileResult, ...]) -> calls.Told:
            made = Outcome("apply", changed, VERSION, settings.target_torch, settings.unsafe, False)
            return write_down(made, store)

        meter = None if how["quiet"] or not sys.stderr.isatty() else measuring(self.began + self.budget)
        asked, agree = self._asked(paths, settings), _agreeing(how["yes"], self.word != "tune")
        done = optimize(analysis, settings, request, asked, meter, self._say, agree, write)
        return with_budgets(done, request, paths, asked.command) if how["lock"] else done

    def _recorded(self) -> tuple[str, tuple[str, ...]]:
        """Record the program that is the case; the Python that runs it, and its files."""
        program = parsed(self.command)
        os.environ.update(program.variables)
        python = interpreter(program, self.how["python"])
        need_torch(python)
        self._say("recording your program" + (" as one process" if program.kind in _LAUNCHED else ""))
        self.forks = forking(python, begin=True)
        folder = click.get_current_context().with_resource(scratch()) / "recording"
        found = record(program, python, folder, self.budget / 2, self.how["target"], forks=self.forks)
        self.recording = found
        self._say(found.told)
        if self.how["save_case"]:
            save(found, Path(self.how["save_case"]), self.command, python)
        if not found.files:
            self._say("no source file below this folder runs in the recorded calls: only how to compile is measured")
        return python, found.files

    def _request(self, config: Config, case: Sequence[str], python: str) -> Request:
        request = request_of({**self.how, "case": case}, config, bool(self.recording))
        if self.recording is not None:
            request = replace(request, cases=(self.recording.case,))
        elif len(request.cases) == 1 and request.cases[0].recorded:
            self.recording = recorded_in(Path(request.cases[0].recorded))
        quick, memory = request.quick or self.word != "prove", request.memory or available_memory()
        return replace(request, python=python, quick=quick, memory=memory)

    def _settings(self, config: Config) -> Settings:
        given = settings_from(self.rules, config, measured=measured(self.rules), **rule_options(self.how))
        grades = _GRADES if given.unsafe or self.word != "prove" else ()
        wanted = self.how["grades"].split(",") if self.how["grades"] else grades
        return replace(given, unsafe=self.how["unsafe"] or "assumed" in wanted, measured="measured" in wanted)

    def _asked(self, paths: Sequence[str], settings: Settings) -> Asked:
        how, known = self.how, strategies_by_key(self.rules)
        return Asked(
            word=self.word,
            paths=tuple(paths),
            began=self.began,
            budget=max(self.budget, time.monotonic() - self.began + _LEAST_SECONDS),
            goal=how["goal"],
            reports=tuple(map(Path, how["output"] or (_REPORT,))),
            json=self.json,
            evidence=Path(how["evidence"]) if how["evidence"] else None,
            dry_run=how["dry_run"],
            command=(*program_words(), *sys.argv[1:]),
            strategies={k: names for k, names in known.items() if k not in settings.strategies},
            recording=self.recording,
            forks=self.forks,
        )

    def _say(self, line: str) -> None:
        """Print a line of progress with the seconds left."""
        if not self.how["quiet"]:
            timed = line + left(self.began + self.budget)
            click.echo(f"{chr(13)}{chr(27)}[K{timed}" if sys.stderr.isatty() else timed, err=True)


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


def _agreeing(yes: bool, otherwise: bool) -> Callable[[Verdict, bytes], bool]:
    """Show verdict and diff, and ask, where there is somebody to ask. ``otherwise``: the answer without a terminal."""

    def agree(found: Verdict, diff: bytes) -> bool:
        if yes or not asks():
            return yes or otherwise
        shown = (coloured(diff) if colour(False) else diff).decode("utf-8", "replace")
        click.echo("\n".join([*found.lines, "", shown]))
        return confirmed("Write these changes (the originals are saved first)?")

    return agree
