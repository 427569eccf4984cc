"""The command line: options, what is printed where, exit status. Nothing else in the project prints."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from patcher import calls
from patcher.backup import BackupError, Store
from patcher.config import FORMATS, Config, ConfigError, load
from patcher.discover import Exclude
from patcher.explain import explanation, listing
from patcher.harness.run import Event
from patcher.kept import default_folder
from patcher.measure import TEST_FORMATS, test
from patcher.measure_options import diagnose_options, diagnose_request, located, measure_options, request_from
from patcher.options import chosen_rules, find_rule, settings_from, strategies_of, strategy_key
from patcher.report import Outcome
from patcher.report.outcome import Call
from patcher.restore import restore
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.runner import run
from patcher.selftest.call import selftest
from patcher.selftest.measured import measured
from patcher.settings import Settings
from patcher.version import VERSION

_BROKEN_PIPE = 141  # what the shell reports for a program that ends by SIGPIPE

_OUTPUT = "Where the report goes; its ending says the format. May be repeated."

_EPILOG = """\b
Other calls:
  fix-compile diagnose ...    run your model, tell what costs time, and why
  fix-compile --prove ...     the same, and keep the fixes that help
  fix-compile restore [RUN]   put the originals of the last (or that) run back
  fix-compile rules [CODE]    list the rules, or explain one
  fix-compile selftest        run the rules' examples on your PyTorch
\b
A folder that is called "rules", "restore" ... is written ./rules ...
Exit status: 0 done (or nothing to fix), 1 --verify-only has found something,
2 something failed."""


def main(rules: Sequence[Rule], argv: Sequence[str] | None = None) -> int:
    """Run the command line with these rules and return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # file names may hold anything
    program, command = _program(), _patch(rules)
    calls_by_name: dict[str, Callable[[], click.Command]] = {
        "restore": _restore,
        "rules": lambda: _rules(rules),
        "diagnose": lambda: _diagnose(rules),
        "selftest": lambda: _selftest(rules),
    }
    if "--prove" in arguments and arguments[0] not in calls_by_name:
        arguments.insert(0, "diagnose")
    if arguments and arguments[0] in calls_by_name:
        command = calls_by_name[arguments[0]]()
        program = f"{program} {arguments.pop(0)}"
    try:
        with command.make_context(program, arguments) as context:
            return _say(command.invoke(context))
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
    except (ConfigError, BackupError) as error:
        click.echo(f"{program}: error: {error}", err=True)
    except BrokenPipeError:  # as when the output goes to `head`
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return calls.INTERRUPTED
    return calls.FAILURE


def _patch(rules: Sequence[Rule]) -> click.Command:
    @click.command(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("paths", nargs=-1, metavar="PATH...")
    @click.option("--dry-run", is_flag=True, help="Print what would change as a unified diff and write nothing.")
    @click.option("--verify-only", is_flag=True, help="Report what is still to fix, and patched files altered since.")
    @click.option("--backup/--no-backup", default=True, help="Save the originals first (default), or do not.")
    @click.option("--backup-dir", metavar="DIR", help="Where to save them (default: .fix-compile in the project).")
    @click.option("--select", multiple=True, metavar="CODES", help="Only these rules: codes, prefixes or names.")
    @click.option("--ignore", multiple=True, metavar="CODES", help="Not these rules.")
    @click.option("--all", "every", is_flag=True, help="Also tests, examples and scripts that are not named.")
    @click.option("--unsafe", is_flag=True, help="Also make fixes that are right only under a stated assumption.")
    @click.option("--strategy", multiple=True, metavar="RULE=NAME", help="How a rule fixes, e.g. kv-cache=eager-zone.")
    @click.option("--format", "format_", type=click.Choice((*FORMATS, "markdown")), help="Format of the report.")
    @click.option("--target-torch", metavar="VERSION", help="Leave alone what breaks no more there (default: 2.13).")
    @click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Processes (default: by files and CPUs).")
    @click.option("-q", "--quiet", is_flag=True, help="No summary, notes or progress; only results and errors.")
    @click.option("--no-color", is_flag=True, help="No colours (also: NO_COLOR in the environment).")
    @click.option("--no-cache", is_flag=True, help="Use no results of earlier runs, and keep none.")
    @measure_options
    @click.version_option(VERSION, prog_name="fix-compile")
    @click.pass_context
    def patch(
        context: click.Context,
        /,
        paths: tuple[str, ...],
        dry_run: bool,
        verify_only: bool,
        backup: bool,
        backup_dir: str | None,
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        every: bool,
        unsafe: bool,
        strategy: tuple[str, ...],
        format_: str | None,
        target_torch: str | None,
        jobs: int | None,
        quiet: bool,
        no_color: bool,
        no_cache: bool,
        **asked: Any,
    ) -> calls.Told:
        """Rewrite PyTorch model source so that torch.compile breaks and recompiles less.

        Without --dry-run or --verify-only, safe fixes are written into the files; "restore" takes them back. With
        --test that happens only when your own model, run before and after, gives equivalent results.
        """
        if verify_only and (dry_run or asked["test"]):
            raise click.UsageError(f"--verify-only and {'--dry-run' if dry_run else '--test'} exclude each other")
        if not paths and not asked["package"]:
            raise click.UsageError("Missing argument 'PATH...'.")
        for word in ("diagnose", "restore", "rules", "selftest"):
            if word in paths and not os.path.lexists(word):
                raise click.UsageError(f"there is no file or folder {word!r}; the call {word!r} must be the first word")
        config = load(paths[0] if paths else os.curdir)
        shape = format_ or config.format or "text"
        if shape not in (TEST_FORMATS if asked["test"] else FORMATS):
            raise click.UsageError(f"--format {shape} {'does not go' if asked['test'] else 'goes'} with --test")
        request = request_from(asked, config)
        paths = (*paths, *located(request))
        shown = measured(rules)
        settings = settings_from(rules, config, select, ignore, unsafe, strategy, target_torch, shown)
        store = calls.store_for(paths[0], config, backup_dir)
        try:
            kept = None if no_cache else default_folder()
            results = _results(paths, rules, settings, config, jobs, quiet, not verify_only, kept, every)
        except KeyboardInterrupt:
            return calls.Told(calls.INTERRUPTED, err=("interrupted; nothing was changed",))
        call: Call = "dry-run" if dry_run else "verify-only" if verify_only else "apply"
        outcome = Outcome(
            call, tuple(results), VERSION, settings.target_torch, settings.unsafe, quiet, measured=shown.lines
        )
        if verify_only:
            return calls.verify(outcome, store, paths, shape)
        originals = store if backup else None
        if request is not None:
            write = None if dry_run else lambda proven: _apply(proven, originals)
            command = [*_program().split(maxsplit=1), *sys.argv[1:]]
            return test(outcome, request, paths, command, shape, None if quiet else _measuring(), write)
        if dry_run:
            return calls.dry_run(outcome, shape, _colour(no_color))
        return _apply(outcome, originals, shape)

    return patch


def _diagnose(rules: Sequence[Rule]) -> click.Command:
    from patcher.analysis import Analysis  # loading this takes as long as a scan of a few files
    from patcher.diagnose.call import FORMATS as REPORTS
    from patcher.diagnose.call import Asked, report
    from patcher.diagnose.diagnostics import NAMES

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("paths", nargs=-1, metavar="PATH...")
    @diagnose_options
    @click.option("--format", "format_", type=click.Choice(tuple(REPORTS)), help="Of the report (default: markdown).")
    @click.option("-o", "--output", multiple=True, type=click.Path(dir_okay=False), metavar="FILE", help=_OUTPUT)
    @click.option("--only", multiple=True, type=click.Choice(NAMES), help="Only this diagnostic; may be repeated.")
    @click.option(
        "--trace", type=click.Path(file_okay=False), metavar="DIR", help="Keep torch's structured trace there."
    )
    @click.option("--prove", is_flag=True, help="Keep the fixes that a measurement shows to help; take back the rest.")
    @click.option("--dry-run", is_flag=True, help="--prove: Write no source file.")
    @click.option("--select", multiple=True, metavar="CODES", help="Only these rules: codes, prefixes or names.")
    @click.option("--ignore", multiple=True, metavar="CODES", help="Not these rules.")
    @click.option("--unsafe", is_flag=True, help="Also try fixes that are right only under a stated assumption.")
    @click.option("--strategy", multiple=True, metavar="RULE=NAME", help="How a rule fixes; auto: --prove tries all.")
    @click.option("--target-torch", metavar="VERSION", help="Leave alone what breaks no more there (default: 2.13).")
    @click.option("--backup/--no-backup", default=True, help="--prove: Save the originals first (default), or do not.")
    @click.option("--backup-dir", metavar="DIR", help="Where to save them (default: .fix-compile in the project).")
    @click.option("-q", "--quiet", is_flag=True, help="No progress; only the report and errors.")
    @click.option("--no-color", is_flag=True, help="Nothing is coloured here; for symmetry.")
    def diagnosis(
        paths: tuple[str, ...],
        format_: str | None,
        output: tuple[str, ...],
        only: tuple[str, ...],
        trace: str | None,
        prove: bool,
        dry_run: bool,
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        unsafe: bool,
        strategy: tuple[str, ...],
        target_torch: str | None,
        backup: bool,
        backup_dir: str | None,
        quiet: bool,
        no_color: bool,
        **how: Any,
    ) -> calls.Told:
        """Run your model under torch.compile and tell what costs: breaks, recompiles, skipped CUDA graphs.

        Each cause comes with its place, its cost, and the fix as a diff. Nothing is written, unless --prove is given:
        then the fixes that measurably help, with results that stay equivalent, are applied; "restore" takes them back.
        """
        if not paths and not how["package"]:
            raise click.UsageError("Missing argument 'PATH...'.")
        if only and prove:
            raise click.UsageError("--only and --prove exclude each other")
        if dry_run and not prove:
            raise click.UsageError("--dry-run goes with --prove: without it nothing is written anyway")
        config = load(paths[0] if paths else os.curdir)
        request = diagnose_request(how, config)
        every = "auto" in strategy
        chosen = tuple(name for name in strategy if name != "auto")
        paths = (*paths, *located(request))
        settings = settings_from(rules, config, select, ignore, unsafe, chosen, target_torch, measured(rules))
        exclude = Exclude(config.exclude, str(config.root or os.curdir))
        shows_progress = not quiet and sys.stderr.isatty()
        analysis = Analysis(paths, rules, settings, exclude, _progress() if shows_progress else None)
        if shows_progress:
            click.echo("\r\x1b[K", err=True, nl=False)
        asked = Asked(
            paths=paths,
            outputs=tuple((Path(file), format_ or _format_of(file)) for file in output),
            format=format_ or "markdown",
            only=only,
            trace=trace or "",
            prove=prove,
            strategies={strategy_key(r): strategies_of(r) for r in rules if strategies_of(r)} if every else {},
            command=(*_program().split(maxsplit=1), *sys.argv[1:]),
            spelled=lambda options: shlex.join([*_program().split(), *options, *_repeated(how, options), *paths]),
        )
        store = calls.store_for(paths[0], config, backup_dir) if backup else None

        def outcome(results: tuple[FileResult, ...]) -> Outcome:
            return Outcome("apply", results, VERSION, settings.target_torch, settings.unsafe, False)

        write = None if dry_run else lambda proven: _apply(proven, store)
        return report(analysis, settings, request, asked, None if quiet else _measuring(), outcome, write)

    return diagnosis


def _format_of(output: str) -> str:
    """By the ending of the file that the report goes to."""
    return {".html": "html", ".htm": "html", ".json": "json"}.get(Path(output).suffix.lower(), "markdown")


def _repeated(how: Mapping[str, Any], options: Sequence[str]) -> list[str]:
    """The options that say what is measured and how, as they are typed, for a call with these options."""
    words = ["--quick"] if how["quick"] and "--quick" not in options else []
    for key in ("case", "package", "vary", "mode", "backend", "python"):
        values = how[key] if isinstance(how[key], tuple) else (how[key],)
        words += [word for value in values if value for word in (f"--{key}", value)]
    return words


def _apply(outcome: Outcome, store: Store | None, shape: str = "text") -> calls.Told:
    return calls.apply(outcome, store, sys.argv[1:], shape, _program())


def _restore() -> click.Command:
    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("run", required=False, metavar="[RUN]")
    @click.option("--force", is_flag=True, help="Also where a file was edited since; your version is set aside.")
    @click.option("--backup-dir", metavar="DIR", help="Where the originals are (default: .fix-compile in the project).")
    @click.option("-q", "--quiet", is_flag=True, help="Only errors.")
    @click.option("--no-color", is_flag=True, help="Nothing is coloured here; for symmetry.")
    def put_back(run: str | None, force: bool, backup_dir: str | None, quiet: bool, no_color: bool) -> calls.Told:
        """Put the originals of RUN back (default: of the last run that is not restored yet).

        A file that was edited since is left alone, unless --force is given.
        """
        store = calls.store_for(os.curdir, load(os.curdir), backup_dir)
        try:
            return calls.told_of(restore(store, run, force), quiet)
        except KeyboardInterrupt:
            return calls.Told(calls.INTERRUPTED, err=("interrupted; the same call restores the rest",))

    return put_back


def _rules(rules: Sequence[Rule]) -> click.Command:
    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("code", required=False, metavar="[CODE]")
    def explain(code: str | None) -> calls.Told:
        """List the rules, or explain the one with this code or name."""
        if code is None:
            return calls.Told(calls.OK, listing(rules, [strategies_of(rule) for rule in rules]))
        rule = find_rule(rules, code)
        line = measured([rule]).line(rule.code)
        return calls.Told(calls.OK, explanation(rule, strategy_key(rule), strategies_of(rule), line))

    return explain


def _selftest(rules: Sequence[Rule]) -> click.Command:
    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("codes", nargs=-1, metavar="[CODES]...")
    @click.option("--python", metavar="EXE", help="The Python whose PyTorch is tried (default: this one).")
    @click.option("--format", "format_", type=click.Choice(("text", "json")), default="text", help="Of the report.")
    @click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Processes (default: by CPUs, 8 at most).")
    @click.option("--no-cache", is_flag=True, help="Execute again what was executed before with the same PyTorch.")
    @click.option("-q", "--quiet", is_flag=True, help="No progress; only the report and errors.")
    @click.option("--no-color", is_flag=True, help="Nothing is coloured here; for symmetry.")
    def tried(
        codes: tuple[str, ...],
        python: str | None,
        format_: str,
        jobs: int | None,
        no_cache: bool,
        quiet: bool,
        no_color: bool,
    ) -> calls.Told:
        """Run the rules' own examples on your PyTorch: which help there, which are no longer needed, which are wrong.

        CODES: codes, prefixes or names; all rules without any. A rule that is wrong there fixes nothing from then on.
        Exit status: 0, 1 when a rule is wrong there, 2 when its examples cannot be run.
        """
        shows_progress = not quiet and sys.stderr.isatty()
        show = _progress("examples") if shows_progress else None
        try:
            return selftest(chosen_rules(rules, codes), python or sys.executable, format_, jobs, not no_cache, show)
        finally:
            if shows_progress:
                click.echo("\r\x1b[K", err=True, nl=False)

    return tried


def _results(
    paths: tuple[str, ...],
    rules: Sequence[Rule],
    settings: Settings,
    config: Config,
    jobs: int | None,
    quiet: bool,
    fixes: bool,
    kept: Path | None,
    every: bool,
) -> list[FileResult]:
    exclude = Exclude(config.exclude, str(config.root or os.curdir))
    every = every or config.all
    if quiet or not sys.stderr.isatty():
        return run(paths, rules, settings, jobs or config.jobs, None, exclude, fixes, kept, every)
    try:
        return run(paths, rules, settings, jobs or config.jobs, _progress(), exclude, fixes, kept, every)
    finally:
        click.echo("\r\x1b[K", err=True, nl=False)


def _progress(what: str = "files") -> Callable[[int, int], None]:
    """Appears after a second, and moves ten times a second at most."""
    due = time.monotonic() + 1.0

    def show(done: int, total: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + 0.1
            click.echo(f"\r{done} of {total} {what}", err=True, nl=False)

    return show


def _measuring() -> Callable[[Event], None]:
    """Which variant is being measured: one line that moves on a terminal, else one for each that has ended."""
    moving = sys.stderr.isatty()

    def show(event: Event) -> None:
        status = "" if event.status in ("", "ok") else f": {event.status}"
        done = " done" if event.what == "end" and not moving else ""
        line = f"[{event.seconds:.0f} s] {event.number} of {event.of}{done}: {event.case}, {event.variant}{status}"
        if moving:
            last = event.what == "end" and event.number == event.of
            click.echo("\r\x1b[K" + ("" if last else line), err=True, nl=False)
        elif event.what == "end":
            click.echo(line, err=True)

    return show


def _say(told: calls.Told) -> int:
    if isinstance(told.out, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(told.out)
    else:
        sys.stdout.write(told.out)
    sys.stdout.flush()
    for line in told.err:
        click.echo(line, err=True)
    return told.status


def _colour(no_color: bool) -> bool:
    forbidden = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not forbidden


def _program() -> str:
    """How the user has called us, for the calls that we suggest."""
    if getattr(sys.modules["__main__"].__spec__, "name", "") == "fix_compile":
        return "python -m fix_compile"
    return f"python {sys.argv[0]}" if sys.argv[0].endswith("fix_compile.py") else "fix-compile"
