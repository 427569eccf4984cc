"""The calls that find and patch: what to do with the files, how, and with which rules."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from patcher.cli.showing import asks, colour, measuring, program, program_words, progress, say
from patcher.cli.words import LISTED, OTHERS, SPELLED, is_word
from patcher.config import FORMATS, Config, ConfigError, load, nearest
from patcher.described import described
from patcher.edit.suppress import OF_COMMENTS
from patcher.files.backup import Store, project_root
from patcher.files.discover import Exclude, missing
from patcher.files.kept import default_folder
from patcher.harness.processes import Event
from patcher.harness.scratch import scratch
from patcher.measuring.budget import with_budgets
from patcher.measuring.measure import TEST_FORMATS, Request, judged, test
from patcher.measuring.measure_options import NAMES as MEASURE_NAMES
from patcher.measuring.measure_options import change_from, located, measure_options, request_from, rule_flags
from patcher.measuring.observed import Observations, read
from patcher.options import settings_from
from patcher.patching import calls
from patcher.patching.check import Against, checked, known_file
from patcher.patching.runner import run
from patcher.report import Outcome
from patcher.report.outcome import Call
from patcher.report.text import coloured
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.run.program import no_notebook
from patcher.selftest.executing import measured
from patcher.settings import Settings
from patcher.version import VERSION

_LISTED = "\n".join(
    textwrap.fill(told, 78, initial_indent=f"  {f'{word} {behind}':<19} ", subsequent_indent=" " * 22)
    for word, (behind, told) in LISTED.items()
)
_HELP = f"""Rewrite PyTorch model source so that torch.compile breaks and recompiles less.

\b
Words, in the place of the first PATH:
{_LISTED}
\b
"verify" is "check". Without a word and without such an option, the changes
are shown and a question is asked; without a terminal they are made. Without
anything at all it says what there is in this project.
A file or folder whose name is a word is written ./check, ./test ...
PATH may be - for standard input: fixed, it goes to standard output."""

_EPILOG = """\b
Exit status: 0 done (or nothing to fix), 1 check has found something,
2 something failed."""

_STDIN = "<stdin>"

_OF_RULES = ("select", "ignore", "unsafe", "target_torch", "device_asserts", "compiled", "capacity")
#: What a word has said already.
_MODES = ("dry_run", "verify_only", "yes", "test")


#: What a check says of options that are those of ``--test``.
_OF_CASES = {
    "case": "Also count this case, and hold it to its budget in fix-compile.lock: runs the model.",
    "lock": "--case: Record what it costs now as its budget.",
}


def patching(rules: Sequence[Rule], word: str = "") -> click.Command:
    """The command that finds, shows and writes patches; ``word``: the one that was said, "" for none."""
    rules = (*OF_COMMENTS, *rules)

    @click.command(
        help=SPELLED[word].tells if word else _HELP,
        epilog=_EPILOG,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    @click.argument("paths", nargs=-1, metavar="[PATH]...")
    @click.option("--dry-run", is_flag=True, help="Print what would change as a unified diff and write nothing.")
    @click.option("--verify-only", is_flag=True, help="Report what is still to fix; write nothing.")
    @click.option("--strict", is_flag=True, help="--verify-only: A patched file that was altered since fails, too.")
    @click.option(
        "--diff-base", metavar="REV", help="--verify-only: Only what is on lines changed since this git revision."
    )
    @click.option("--baseline", metavar="FILE", help="--verify-only: Be quiet about the findings that it knows.")
    @click.option("--write-baseline", is_flag=True, help="--verify-only: Write all findings into it.")
    @click.option("-y", "--yes", is_flag=True, help="Write the fixes without showing and asking first.")
    @click.option("--backup/--no-backup", default=True, help="Save the originals first (default), or do not.")
    @click.option("--backup-dir", metavar="DIR", help="Where to save them (default: .fix-compile in the project).")
    @rule_flags
    @click.option("--all", "every", is_flag=True, help="Also tests, examples and scripts that are not named.")
    @click.option("--evidence", metavar="FILE", help="What expressions held, as optimize --evidence has written it.")
    @click.option("--compiled", multiple=True, metavar="NAME", help="What your code compiles, e.g. pkg.model:Net.step.")
    @click.option("--format", "format_", type=click.Choice((*FORMATS, "markdown")), help="Format of the report.")
    @click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Processes (default: by files and CPUs).")
    @click.option("-q", "--quiet", is_flag=True, help="No summary, notes or progress; only results and errors.")
    @click.option("--no-color", is_flag=True, help="No colours (also: NO_COLOR in the environment).")
    @click.option("--no-cache", is_flag=True, help="Use no results of earlier runs, and keep none.")
    @measure_options
    @click.version_option(VERSION, prog_name="fix-compile")
    def patch(**options: Any) -> calls.Told:
        return _patch(rules, word, options)

    if word:
        _hide(patch, word)
    return patch


@dataclass(frozen=True)
class _Asked:
    """What a call works with. ``options``: by their names; ``request``: what is to be measured; ``shape``: the format.

    ``paths``: with the folders of installed packages that are named.
    """

    options: Mapping[str, Any]
    config: Config
    paths: tuple[str, ...]
    shape: str
    request: Request | None
    command: tuple[str, ...]

    @property
    def piped(self) -> bool:
        """Whether the source comes from standard input."""
        return self.paths == ("-",)

    @property
    def progress(self) -> Callable[[Event], None] | None:
        """What is told of measurements while they run."""
        return None if self.options["quiet"] else measuring()


def rule_options(how: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options of a command say of the rules, as ``settings_from`` takes it."""
    chosen = tuple(name for name in how["strategy"] if name != "auto")
    return {"strategy": chosen, **{name: how[name] for name in _OF_RULES if name in how}}


def _patch(rules: Sequence[Rule], word: str, options: Mapping[str, Any]) -> calls.Told:
    """What the call comes to; ``options``: by their names."""
    _refuse(word, options)
    asked, shown = _asked(options), measured(rules)
    settings = settings_from(rules, asked.config, measured=shown, **rule_options(options))
    settings = replace(settings, observed=_evidence(options["evidence"])) if options["evidence"] else settings
    call: Call = "dry-run" if options["dry_run"] else "verify-only" if options["verify_only"] else "apply"
    outcome = Outcome(call, (), VERSION, settings.target_torch, settings.unsafe, options["quiet"])
    if (options["patch"] or options["against"]) and asked.request is not None:
        change = change_from(options, asked.request, asked.paths)
        outcome = replace(outcome, call="dry-run")
        return judged(change, outcome, asked.request, asked.paths, asked.command, asked.shape, asked.progress)
    store = calls.store_for(asked.paths[0], asked.config, options["backup_dir"])
    try:
        data = sys.stdin.buffer.read() if asked.piped else b""
        results = _results(asked, data, rules, settings)
    except KeyboardInterrupt:
        return calls.Told(calls.INTERRUPTED, err=("interrupted; nothing was changed",))
    texts = {rule.code: described(rule) for rule in rules} if asked.shape == "sarif" else {}
    outcome = replace(outcome, results=tuple(results), measured=shown.lines, described=texts)
    return _checked(asked, outcome, store) if options["verify_only"] else _written(asked, outcome, store, data)


def _asked(options: Mapping[str, Any]) -> _Asked:
    if options["test"]:
        paths, case = with_cases(options["paths"], options["case"])
        options = {**options, "paths": paths, "case": case}
    judges = bool(options["patch"] or options["against"])
    reads = options["verify_only"] or judges or (options["dry_run"] and not options["test"])
    paths = given_paths(options["paths"], options["package"], reads)
    config = load(paths[0] if paths else os.curdir)
    shape = options["format_"] or config.format or "text"
    if shape not in (TEST_FORMATS if options["test"] else FORMATS):
        raise click.UsageError(f"--format {shape} {'does not go' if options['test'] else 'goes'} with --test")
    request = request_from({name: options[name] for name in MEASURE_NAMES}, config, options["verify_only"])
    command = (*program_words(), *sys.argv[1:])
    return _Asked(options, config, (*paths, *located(request)), shape, request, command)


def _checked(asked: _Asked, outcome: Outcome, store: Store) -> calls.Told:
    options, config = asked.options, asked.config
    known = known_file(options["baseline"], config, options["write_baseline"])
    against = Against(
        options["diff_base"], known, options["write_baseline"], asked.request, options["lock"], asked.progress
    )
    outcome = replace(outcome, strict=options["strict"])
    told = checked(outcome, against, store, asked.paths, asked.shape, program(), asked.command)
    return _painted(told, asked.shape, options["no_color"])


def _written(asked: _Asked, outcome: Outcome, store: Store, data: bytes) -> calls.Told:
    """What is measured, shown or written of the fixes; ``data``: what came in on standard input."""
    options, request, shape = asked.options, asked.request, asked.shape
    originals, in_colour = store if options["backup"] else None, colour(options["no_color"])
    if request is not None:
        write = None if options["dry_run"] else lambda proven: write_down(proven, originals)
        told = test(outcome, request, asked.paths, asked.command, shape, asked.progress, write)
        return with_budgets(told, request, asked.paths, asked.command) if options["lock"] else told
    if options["dry_run"]:
        return calls.dry_run(outcome, shape, in_colour)
    if asked.piped:
        return calls.filtered(outcome, data, shape)
    if not options["yes"] and shape == "text" and asks() and any(result.changed for result in outcome.results):
        return _when_agreed(outcome, originals, in_colour)
    return _painted(write_down(outcome, originals, shape), shape, options["no_color"])


def _refuse(word: str, asked: Mapping[str, Any]) -> None:
    """Raise ``click.UsageError`` for options that do not go together."""
    paths, verify_only = asked["paths"], asked["verify_only"]
    if verify_only and (asked["dry_run"] or asked["test"]):
        raise click.UsageError(f"--verify-only and {'--dry-run' if asked['dry_run'] else '--test'} exclude each other")
    for option in ("strict", "diff_base", "baseline", "write_baseline"):
        if asked[option] and not verify_only:
            raise click.UsageError(f"--{option.replace('_', '-')} goes with --verify-only")
    if asked["write_baseline"] and asked["diff_base"]:
        raise click.UsageError("--write-baseline and --diff-base exclude each other: a baseline is of all findings")
    if "-" in paths and (len(paths) > 1 or asked["test"]):
        raise click.UsageError("- (standard input) goes alone, and not with --test")
    if word == "judge" and not (asked["patch"] or asked["against"]):
        raise click.UsageError("--patch DIFF (-: standard input) or --against REV says what is to be judged")


def _evidence(file: str) -> Observations:
    try:
        return read(file)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def given_paths(paths: tuple[str, ...], packages: Sequence[str], reads_only: bool = False) -> tuple[str, ...]:
    """The paths to work on: those that were given, once they are all known to be there.

    Without any, it is the whole project. A call that only reads goes on when some are there. Raises ``MissingError``.
    """
    if not paths and not packages:
        return (os.path.relpath(project_root(os.curdir)),)
    told = [
        f"{entry.path}: error: {entry.error}{_meant(entry.path)}"
        for entry in missing([path for path in paths if path != "-"])
    ]
    if told and not (reads_only and len(told) < len(paths)):
        raise MissingError(told if reads_only else [*told, "nothing was changed"])
    return paths


def with_cases(paths: tuple[str, ...], given: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return paths and cases, where ``FILE:CLASS`` is its file, with its case, or one that is written for it.

    Raises ``ConfigError``.
    """
    from patcher.newcase.call import Asked as NewCase
    from patcher.newcase.call import case, kept

    files, cases = list[str](), list(given)
    for number, path in enumerate(paths):
        if why := no_notebook(path):
            raise ConfigError(why)
        file, colon, name = path.rpartition(":")
        if not colon or not file.endswith(".py"):
            files.append(path)
            continue
        files.append(file)
        target = kept(path)
        if target is None:
            target = click.get_current_context().with_resource(scratch()) / f"{name}_{number}.py"
            told = case(NewCase(path, str(target), True, program()))
            blanks = [line.rpartition(": fill in: ")[2] for line in told.err if ": fill in: " in line]
            if told.status != calls.OK or blanks:
                why = blanks[0] if blanks else " ".join(told.err)
                run = f"{program()} optimize -- python PROGRAM"
                raise ConfigError(f"no inputs for {path} are in the repository ({why}); run what calls it: {run}")
        cases.append(str(target))
    return tuple(files), tuple(cases)


class MissingError(click.ClickException):
    """Paths that are not there, before anything was done; a line for each."""

    exit_code = calls.FAILURE

    def __init__(self, told: Sequence[str]) -> None:
        super().__init__("\n".join(told))

    def show(self, file: Any = None) -> None:
        """Print the lines as they are."""
        click.echo(self.message, err=True)


def _meant(path: str) -> str:
    """What a path that is not there may have been meant to be."""
    if is_word(path):
        return f"; the word {path!r} must come first"
    close = "" if os.sep in path or "." in path else nearest(path, (*SPELLED, *OTHERS))
    return close if "did you mean" in close else ""


def _hide(command: click.Command, word: str) -> None:
    """Leave out of the help of a word what it has said already, and what it has no use for."""
    checks, measures = word in {"check", "verify"}, word in {"test", "judge"}
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            if checks and parameter.name in _OF_CASES:
                parameter.help = _OF_CASES[parameter.name]
            goes_with, _, told = (parameter.help or "").partition(": ")
            shown = {"--verify-only": checks, "--test": measures}.get(goes_with, True)
            parameter.help = parameter.help if goes_with not in ("--verify-only", "--test") else told
            hidden = parameter.name == "backup" and (checks or word == "diff")
            parameter.hidden = hidden or parameter.name in _MODES or not shown


def _when_agreed(outcome: Outcome, originals: Store | None, in_colour: bool) -> calls.Told:
    """Show the changes, ask, and write them."""
    say(calls.dry_run(replace(outcome, call="dry-run"), "text", in_colour))
    files = sum(result.changed for result in outcome.results)
    saved = "" if originals is None else " (the originals are saved first)"
    try:
        agreed = click.confirm(f"Change {'this file' if files == 1 else f'these {files} files'}{saved}?", err=True)
    except click.Abort:  # Ctrl-C, or the end of what is typed
        return calls.Told(calls.INTERRUPTED, err=("", "interrupted; nothing was changed"))
    return write_down(outcome, originals) if agreed else calls.Told(calls.OK, err=("nothing was changed",))


@contextlib.contextmanager
def _in_a_file(data: bytes) -> Iterator[tuple[str, ...]]:
    """A file with what came in on standard input, as long as it is looked at."""
    with tempfile.TemporaryDirectory(prefix="fix-compile-") as folder:
        file = Path(folder) / "stdin.py"
        file.write_bytes(data)
        yield (str(file),)


def _painted(told: calls.Told, shape: str, no_color: bool) -> calls.Told:
    """The findings in colour, where they are for a terminal."""
    if shape == "text" and isinstance(told.out, str) and colour(no_color):
        return replace(told, out=coloured(told.out))
    return told


def write_down(outcome: Outcome, store: Store | None, shape: str = "text") -> calls.Told:
    """Write the patches, with how to take them back."""
    return calls.apply(outcome, store, sys.argv[1:], shape, program())


def _results(asked: _Asked, data: bytes, rules: Sequence[Rule], settings: Settings) -> list[FileResult]:
    options, config = asked.options, asked.config
    exclude = Exclude(config.exclude, str(config.root or os.curdir))
    fixes, every = not options["verify_only"], options["every"] or config.all
    kept = None if options["no_cache"] or asked.piped else default_folder()
    each = options["verify_only"] and asked.shape == "sarif"
    shows = not options["quiet"] and sys.stderr.isatty()
    moving, jobs = progress() if shows else None, options["jobs"] or config.jobs
    try:
        with _in_a_file(data) if asked.piped else contextlib.nullcontext(asked.paths) as files:
            results = run(files, rules, settings, jobs, moving, exclude, fixes, kept, every, each)
    finally:
        if shows:
            click.echo("\r\x1b[K", err=True, nl=False)
    return [replace(result, path=_STDIN) for result in results] if asked.piped else results
