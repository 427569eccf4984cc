"""``fleet``: many models and cases, on this machine or on many, and one table."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from patcher.cli.showing import program_words
from patcher.fleet.call import FORMATS, Asked, fleet
from patcher.fleet.manifest import DOINGS, load
from patcher.fleet.row import Job
from patcher.fleet.slots import Begun, Done, Event, Places, Process, here
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

        quiet = given["quiet"]
        return fleet(asked, rules, places, _showing(quiet), lambda text: None if quiet else click.echo(text, err=True))

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


def _showing(quiet: bool) -> Callable[[Event, int, int], None]:
    """What tells of each row that is done, and on a terminal of what runs where."""
    running, start, moving = dict[str, str](), time.monotonic(), sys.stderr.isatty()

    def show(event: Event, done: int, total: int) -> None:
        if isinstance(event, Begun):
            running[event.job.name] = event.where
        else:
            running.pop(event.job.name, None)
        told = f"[{time.monotonic() - start:.0f} s] {done} of {total}"
        if moving and not quiet:
            more = "; ".join(f"{name} on {where}" for name, where in running.items())
            line = f"{told}  {more}"[: shutil.get_terminal_size().columns - 1]
            click.echo("\r\x1b[K" + ("" if done == total else line), err=True, nl=False)
        elif not quiet and isinstance(event, Done):
            row = event.row
            place = f" on {row.machine}" if row.machine else ""
            answer = row.answer if row.answer == "ok" else f"{row.answer}: {row.told}"
            click.echo(f"{told}: {row.name}{place}: {answer}", err=True)

    return show
