"""``diagnose``: what costs, and why."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from patcher.cli.patching import given_paths, rule_options, with_cases
from patcher.cli.showing import first, measuring, program_words, progress
from patcher.config import load
from patcher.diagnose.call import FORMATS as REPORTS
from patcher.diagnose.call import format_of, report
from patcher.diagnose.diagnosing import Wanted
from patcher.diagnose.diagnostics import NAMES
from patcher.files.discover import Exclude
from patcher.measuring.measure import options_for
from patcher.measuring.measure_options import how_options, located, request_of, rule_flags
from patcher.options import settings_from
from patcher.patching import calls
from patcher.patching.analysis import Analysis
from patcher.rule import Rule
from patcher.selftest.executing import measured

_FROM_LOG = "Run nothing: read what a program printed with TORCH_LOGS=graph_breaks,recompiles,cudagraphs, anywhere."
_FROM_TRACE = "Run nothing: read the folder that a program wrote with TORCH_TRACE=DIR, anywhere."
_OUTPUT = "Where the report goes; its ending says the format. May be repeated."


def diagnosing(rules: Sequence[Rule]) -> click.Command:
    """The command that runs the user's model."""

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("paths", nargs=-1, metavar="[PATH]...")
    @how_options
    @click.option("--from-log", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help=_FROM_LOG)
    @click.option("--from-trace", type=click.Path(exists=True, file_okay=False), metavar="DIR", help=_FROM_TRACE)
    @click.option("--format", "format_", type=click.Choice(tuple(REPORTS)), help="Of the report (default: markdown).")
    @click.option("-o", "--output", multiple=True, type=click.Path(dir_okay=False), metavar="FILE", help=_OUTPUT)
    @click.option("--wide", is_flag=True, help="The report as Markdown on a terminal, too, as wide as it is.")
    @click.option("--only", multiple=True, type=click.Choice(NAMES), help="Only this diagnostic; may be repeated.")
    @click.option(
        "--trace", type=click.Path(file_okay=False), metavar="DIR", help="Keep torch's structured trace there."
    )
    @rule_flags
    @click.option("-q", "--quiet", is_flag=True, help="No progress; only the report and errors.")
    @click.option("--no-color", is_flag=True, help="Nothing is coloured here; for symmetry.")
    def diagnosis(
        paths: tuple[str, ...],
        from_log: str | None,
        from_trace: str | None,
        format_: str | None,
        output: tuple[str, ...],
        wide: bool,
        **how: Any,
    ) -> calls.Told:
        """Run your model under torch.compile and tell what costs: breaks, recompiles, skipped CUDA graphs.

        Each cause comes with its place, its cost, and the fix as a diff. Nothing is written: "prove" keeps the fixes
        that help.
        """
        log = _log(from_log, from_trace, bool(how["only"] or how["trace"] or how["case"]))
        typed = paths
        paths, cases = (paths, ()) if log else with_cases(paths, how["case"])
        paths = given_paths(paths, how["package"], reads_only=bool(log))
        config = load(paths[0] if paths else os.curdir)
        request = request_of({**how, "case": cases}, config, without_cases=bool(log))
        paths = (*paths, *located(request))
        settings = settings_from(rules, config, measured=measured(rules), **rule_options(how))
        exclude = Exclude(config.exclude, str(config.root or os.curdir))
        shows_progress = not how["quiet"] and sys.stderr.isatty()
        analysis = Analysis(paths, rules, settings, exclude, progress() if shows_progress else None)
        if shows_progress:
            click.echo("\r\x1b[K", err=True, nl=False)
        command = (*program_words(), *sys.argv[1:])
        wanted = Wanted(
            cases=request.cases,
            options=options_for(analysis.first, request, paths, command),
            python=request.python,
            only=how["only"],
            trace=how["trace"] or "",
            tolerance=request.tolerance,
            command=shlex.join(command),
            verify=lambda *of: "" if log else shlex.join([*program_words(), *_verifying(how, *of), *(typed or paths)]),
            progress=None if how["quiet"] else measuring(),
            count_first=request.backend is None,  # else it is done as asked
            say=None if how["quiet"] else first,
        )
        outputs = [(Path(file), format_ or format_of(Path(file))) for file in output]
        shape = format_ or ("narrow" if sys.stdout.isatty() and not wide else "markdown")
        return report(analysis, settings, wanted, paths, outputs, shape, Path(log) if log else None)

    return diagnosis


def _log(from_log: str | None, from_trace: str | None, needs_run: bool) -> str:
    """Return what is read in the place of a run, "" when the model runs. Raises ``click.UsageError``."""
    if from_log and from_trace:
        raise click.UsageError("--from-log and --from-trace exclude each other.")
    log = from_log or from_trace or ""
    if log and needs_run:
        raise click.UsageError("--from-log and --from-trace run nothing: leave out --case, --only and --trace.")
    return log


def _verifying(how: Mapping[str, Any], codes: Sequence[str], unsafe: bool) -> list[str]:
    """The words that measure in the same way again, with the fixes of these rules."""
    words = ["test", "--dry-run", "--select", ",".join(codes)] if codes else ["diagnose"]
    words += [*(["--quick"] if how["quick"] or not codes else []), *(["--unsafe"] if unsafe or how["unsafe"] else [])]
    for key in ("case", "package", "vary", "mode", "backend", "python", "strategy", "capacity"):
        values = how[key] if isinstance(how[key], tuple) else (how[key],)
        words += [word for value in values if value for word in (f"--{key}", str(value))]
    return words
