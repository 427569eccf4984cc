"""``diagnose``, and ``--prove``, which goes on from there."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from patcher import calls
from patcher.analysis import Analysis
from patcher.budget import with_budgets
from patcher.cli.patching import CAPACITY, DEVICE_ASSERTS, given_paths, write_down
from patcher.cli.showing import first, measuring, program_words, progress
from patcher.config import load
from patcher.diagnose.call import FORMATS as REPORTS
from patcher.diagnose.call import Asked, report
from patcher.diagnose.diagnostics import NAMES
from patcher.discover import Exclude
from patcher.measure_options import diagnose_options, diagnose_request, located, lock_option
from patcher.options import settings_from, strategies_by_key
from patcher.report import Outcome
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.selftest.measured import measured
from patcher.version import VERSION

_OUTPUT = "Where the report goes; its ending says the format. May be repeated."


def diagnosing(rules: Sequence[Rule], word: str = "diagnose") -> click.Command:
    """The command that runs the user's model; ``word``: the one that was said."""

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("paths", nargs=-1, metavar="PATH...")
    @diagnose_options
    @click.option("--format", "format_", type=click.Choice(tuple(REPORTS)), help="Of the report (default: markdown).")
    @click.option("-o", "--output", multiple=True, type=click.Path(dir_okay=False), metavar="FILE", help=_OUTPUT)
    @click.option("--wide", is_flag=True, help="The report as Markdown on a terminal, too, as wide as it is.")
    @click.option("--only", multiple=True, type=click.Choice(NAMES), help="Only this diagnostic; may be repeated.")
    @click.option(
        "--trace", type=click.Path(file_okay=False), metavar="DIR", help="Keep torch's structured trace there."
    )
    @click.option("--prove", is_flag=True, help="Keep the fixes that a measurement shows to help; take back the rest.")
    @click.option(
        "--prove-limit", type=click.FloatRange(min=1), metavar="S", help="--prove: Seconds to try new things in."
    )
    @lock_option
    @click.option("--dry-run", is_flag=True, help="--prove: Write no source file.")
    @click.option("--select", multiple=True, metavar="CODES", help="Only these rules: codes, prefixes or names.")
    @click.option("--ignore", multiple=True, metavar="CODES", help="Not these rules.")
    @click.option("--unsafe", is_flag=True, help="Also try fixes that are right only under a stated assumption.")
    @click.option("--device-asserts/--no-device-asserts", default=None, help=DEVICE_ASSERTS)
    @click.option("--strategy", multiple=True, metavar="RULE=NAME", help="How a rule fixes; auto: --prove tries all.")
    @click.option("--capacity", type=click.IntRange(1), metavar="N", help=CAPACITY)
    @click.option("--target-torch", metavar="VERSION", help="Leave alone what breaks no more there (default: 2.13).")
    @click.option("--backup/--no-backup", default=True, help="--prove: Save the originals first (default), or do not.")
    @click.option("--backup-dir", metavar="DIR", help="Where to save them (default: .fix-compile in the project).")
    @click.option("-q", "--quiet", is_flag=True, help="No progress; only the report and errors.")
    @click.option("--no-color", is_flag=True, help="Nothing is coloured here; for symmetry.")
    def diagnosis(
        paths: tuple[str, ...],
        format_: str | None,
        output: tuple[str, ...],
        wide: bool,
        only: tuple[str, ...],
        trace: str | None,
        prove: bool,
        prove_limit: float | None,
        lock: bool,
        dry_run: bool,
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        unsafe: bool,
        device_asserts: bool | None,
        strategy: tuple[str, ...],
        capacity: int | None,
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
        paths = given_paths(paths, how["package"], word)
        if only and prove:
            raise click.UsageError("--only and --prove exclude each other")
        if prove and (how["export"] or how["import_results"]):
            raise click.UsageError("--prove cannot be done on another machine")
        if prove_limit is not None and not prove:
            raise click.UsageError("--prove-limit goes with --prove")
        if dry_run and not prove:
            raise click.UsageError("--dry-run goes with --prove: without it nothing is written anyway")
        if lock and not prove:
            raise click.UsageError("--lock goes with --prove")
        config = load(paths[0] if paths else os.curdir)
        request = diagnose_request(how, config)
        every = "auto" in strategy
        chosen = tuple(name for name in strategy if name != "auto")
        paths = (*paths, *located(request))
        settings = settings_from(
            rules, config, select, ignore, unsafe, chosen, target_torch, measured(rules), device_asserts, (), capacity
        )
        exclude = Exclude(config.exclude, str(config.root or os.curdir))
        shows_progress = not quiet and sys.stderr.isatty()
        analysis = Analysis(paths, rules, settings, exclude, progress() if shows_progress else None)
        if shows_progress:
            click.echo("\r\x1b[K", err=True, nl=False)
        asked = Asked(
            paths=paths,
            outputs=tuple((Path(file), format_ or _format_of(file)) for file in output),
            format=format_ or ("narrow" if sys.stdout.isatty() and not wide else "markdown"),
            only=only,
            trace=trace or "",
            prove=prove,
            prove_limit=prove_limit,
            strategies=strategies_by_key(rules) if every else {},
            command=(*program_words(), *sys.argv[1:]),
            spelled=lambda options: shlex.join([*program_words(), *options, *_repeated(how, options), *paths]),
        )
        store = calls.store_for(paths[0], config, backup_dir) if backup else None

        def outcome(results: tuple[FileResult, ...]) -> Outcome:
            return Outcome("apply", results, VERSION, settings.target_torch, settings.unsafe, False)

        write = None if dry_run else lambda proven: write_down(proven, store)
        shown, told = (None, None) if quiet else (measuring(), first)
        done = report(analysis, settings, request, asked, shown, outcome, write, told)
        return with_budgets(done, request, paths, asked.command) if lock else done

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
