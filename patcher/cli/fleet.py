"""``fleet``: many models and cases, on this machine or on many, and one table."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from patcher.cli.showing import program_words
from patcher.fleet.call import FORMATS, Asked, fleet
from patcher.fleet.local import Process
from patcher.fleet.manifest import DOINGS, load
from patcher.fleet.row import Job
from patcher.fleet.slots import Begun, Event, Places, here
from patcher.patching import calls
from patcher.rule import Rule

_EPILOG = """\b
Exit status: 0 every row has an answer, 1 a patch is not equivalent, 2 a row
failed, or not everything could be done; the same call then goes on."""
_OUTPUT = "Where the table goes; its ending says the format (.md, .html, .jsonl). May be repeated."
_ROWS = "Where rows are kept, to go on from (default: MANIFEST.rows.jsonl)."


def fleeting(rules: Sequence[Rule]) -> click.Command:
    """The command for many models."""

    @click.command(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("manifest", metavar="MANIFEST.toml")
    @click.option("--scheduler", metavar="ADDRESS", help="Measure on the workers of this Dask scheduler.")
    @click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Jobs at a time (default: one a GPU).")
    @click.option("--only", multiple=True, metavar="MODEL", help="Only this model, or those that fit (llama*).")
    @click.option("--do", multiple=True, type=click.Choice(DOINGS), help="This in place of what the manifest says.")
    @click.option("--again", is_flag=True, help="Also what was done before with the same bytes.")
    @click.option("--rows", type=click.Path(dir_okay=False), metavar="FILE", help=_ROWS)
    @click.option("-o", "--output", multiple=True, type=click.Path(dir_okay=False), metavar="FILE", help=_OUTPUT)
    @click.option("--format", "format_", type=click.Choice(tuple(FORMATS)), default="markdown", help="Without -o.")
    @click.option("-q", "--quiet", is_flag=True, help="No progress; only the table and errors.")
    @click.option("--no-color", is_flag=True, help="Nothing is coloured here; for symmetry.")
    def many(manifest: str, scheduler: str | None, jobs: int | None, **given: Any) -> calls.Told:
        """Scan, test, diagnose or prove many models and cases, and write one table of what came of it.

        MANIFEST.toml names them. A row that is done is kept, by the content of all that it depends on: the same call
        goes on where it was ended. Nothing in the models is changed.
        """
        read = load(manifest)
        asked = Asked(
            manifest=read,
            rows=Path(given["rows"]) if given["rows"] else read.file.with_suffix(".rows.jsonl"),
            outputs=tuple(map(Path, given["output"])),
            format=given["format_"],
            only=given["only"],
            do=given["do"],
            again=given["again"],
            command=shlex.join([*program_words(), *sys.argv[1:]]),
        )

        def places(todo: Sequence[Job]) -> Places:
            if scheduler is None:
                return _here(todo, rules, jobs)
            return _scheduled(scheduler, todo, rules, jobs)

        silent = given["quiet"] or not sys.stderr.isatty()
        with _Shown(silent=given["quiet"], lines=silent) as shown:
            return fleet(asked, rules, places, shown.event, shown.line)

    return many


def _here(todo: Sequence[Job], rules: Sequence[Rule], jobs: int | None) -> Places:
    """Processes of this machine: as many as there are GPUs, each with its own, or else one: times want it alone."""
    gpus = _gpus()
    count = jobs or max(1, len(gpus))
    gpu = [gpus[n % len(gpus)] if gpus and count > 1 else None for n in range(count)]
    return here(todo, [Process(rules, number, gpu[number]) for number in range(count)])


def _gpus() -> list[int]:
    """The GPUs of this machine, as NVIDIA's tool numbers them; none where somebody has chosen already."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return []
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [int(line) for line in told.split() if line.isdigit()]


def _scheduled(address: str, todo: Sequence[Job], rules: Sequence[Rule], jobs: int | None) -> Places:
    try:
        from patcher.fleet.scheduled import there
    except ModuleNotFoundError as error:
        if error.name not in ("dask", "distributed"):
            raise
        raise click.UsageError("--scheduler needs Dask distributed: pip install 'fix-compile[fleet]'") from None
    logging.disable(logging.ERROR)  # Dask logs what we say in a line
    return there(address, todo, rules, jobs)


class _Shown:
    """A bar that tells what runs where; where there is no terminal, a line for each row that is done."""

    def __init__(self, silent: bool, lines: bool) -> None:
        self._silent, self._lines, self._running = silent, lines, dict[str, str]()
        self._start = time.monotonic()

    def __enter__(self) -> _Shown:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._lines:
            click.echo("\r\x1b[K", err=True, nl=False)

    def line(self, text: str) -> None:
        """What is known first."""
        if not self._silent:
            click.echo(text, err=True)

    def event(self, event: Event, done: int, total: int) -> None:
        """A job has begun, or is over."""
        if isinstance(event, Begun):
            self._running[event.job.name] = event.where
        else:
            self._running.pop(event.job.name, None)
        if self._silent:
            return
        seconds = time.monotonic() - self._start
        if not self._lines:
            self._draw(done, total, seconds)
        elif not isinstance(event, Begun):
            row = event.row
            place = f" on {row.machine}" if row.machine else ""
            told = row.answer if row.answer == "ok" else f"{row.answer}: {row.told}"
            click.echo(f"[{seconds:.0f} s] {done} of {total}: {row.name}{place}: {told}", err=True)

    def _draw(self, done: int, total: int, seconds: float) -> None:
        width, full = 20, round(20 * done / max(total, 1))
        running = "; ".join(f"{name} on {where}" for name, where in self._running.items())
        line = f"[{seconds:.0f} s] [{'#' * full}{'.' * (width - full)}] {done} of {total}  {running}"
        click.echo("\r\x1b[K" + line[: shutil.get_terminal_size().columns - 1], err=True, nl=False)
