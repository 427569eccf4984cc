"""What the call ``fleet`` does: the jobs that are not done yet, and at the end the table of all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.fleet.jobs import jobs_of
from patcher.fleet.manifest import Manifest
from patcher.fleet.row import Job, Kept, Row
from patcher.fleet.slots import Done, Event, FleetError, Places, run
from patcher.fleet.table import Fleet, count, fleet_lines, fleet_markdown
from patcher.patching.calls import FAILURE, FINDINGS, INTERRUPTED, OK, Told
from patcher.report.page import page
from patcher.rule import Rule
from patcher.version import VERSION

FORMATS: Mapping[str, Callable[[Fleet], str]] = {
    "markdown": fleet_markdown,
    "jsonl": fleet_lines,
    "html": lambda fleet: page(fleet_markdown(fleet), f"{fleet.title}: fleet"),
}
ENDINGS = {".html": "html", ".htm": "html", ".jsonl": "jsonl", ".json": "jsonl"}


@dataclass(frozen=True)
class Asked:
    """What the user asks of a fleet. ``again``: what was done before, too. ``rows``: the file where rows are kept."""

    manifest: Manifest
    rows: Path
    outputs: tuple[Path, ...]
    format: str
    only: tuple[str, ...]
    do: tuple[str, ...]
    again: bool
    command: str


def fleet(
    asked: Asked,
    rules: Sequence[Rule],
    places: Callable[[Sequence[Job]], Places],
    show: Callable[[Event, int, int], None],
    say: Callable[[str], None],
) -> Told:
    """Do what is not done yet, and report on everything. ``places``: makes the slots for some jobs.

    ``show`` is told of each event, with how many rows are done of how many; ``say`` of what is known first. Exit
    status: 0, 1 when a patch is not equivalent, 2 when a row failed or not everything was done.
    """
    jobs = jobs_of(asked.manifest, rules, asked.only, asked.do)
    started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    try:
        kept = Kept(asked.rows)
        asked.rows.parent.mkdir(parents=True, exist_ok=True)
        there = places(jobs)
    except OSError as error:
        return Told(FAILURE, err=(f"{asked.rows}: error: {error.strerror}",))
    except FleetError as error:
        return Told(FAILURE, err=(f"fleet: error: {error}",))
    known = {} if asked.again else kept.of(jobs, there.torches)
    rows = {number: _named(known[job.key], job) for number, job in enumerate(jobs) if job.key in known}
    todo = [job for number, job in enumerate(jobs) if number not in rows]
    say(f"{len(jobs)} rows, {len(rows)} kept in {asked.rows.name}, {len(todo)} to do on {there.told}")
    held, wrong, status = len(rows), "", OK
    numbers = {id(job): number for number, job in enumerate(jobs)}
    try:
        for event in run(todo, there.slots):
            if isinstance(event, Done):
                kept.add(event.row)
                rows[numbers[id(event.job)]] = event.row
            show(event, len(rows), len(jobs))
    except FleetError as error:
        wrong, status = f"fleet: error: {error}", FAILURE
    except KeyboardInterrupt:
        wrong, status = "interrupted", INTERRUPTED
    except OSError as error:
        wrong, status = f"{asked.rows}: error: {error.strerror}", FAILURE
    finally:
        there.close()
    done = tuple(rows[number] for number in sorted(rows))
    told = Fleet(
        title=asked.manifest.file.stem,
        command=asked.command,
        started=started,
        tool=f"fix-compile {VERSION}",
        rows=done,
        kept=held,
        unfinished=len(jobs) - len(done),
    )
    lines = (
        [f"{wrong}; {len(done)} of {len(jobs)} rows are kept in {asked.rows}: the same call goes on"] if wrong else []
    )
    return _reported(told, asked, max(status, _status(done)), lines)


def _named(row: Row, job: Job) -> Row:
    """A kept row under the names that the manifest has now."""
    return replace(row, model=job.model.name, case=job.case.name if job.case else "")


def _status(rows: Sequence[Row]) -> int:
    answers = {row.answer for row in rows}
    return FAILURE if "failed" in answers else FINDINGS if "not equivalent" in answers else OK


def _reported(told: Fleet, asked: Asked, status: int, lines: list[str]) -> Told:
    """The table where it is wanted, and a line about it."""
    written = []
    for file in asked.outputs:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(FORMATS[format_of(file)](told), encoding="utf-8")
            written.append(f"{file}\n")
        except OSError as error:
            lines, status = [*lines, f"{file}: error: {error.strerror}"], FAILURE
    out = "".join(written) if asked.outputs else FORMATS[asked.format](told)
    return Told(status, out, (*lines, count(told)))


def format_of(file: Path) -> str:
    """By the ending of the file that a table goes to."""
    return ENDINGS.get(file.suffix.lower(), "markdown")
