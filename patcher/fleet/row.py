"""What a fleet does, job by job, and what came of each: frozen, picklable, and fit for JSON."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from patcher.decode import DecodeError, decoded
from patcher.fleet.manifest import Model
from patcher.harness.cases import Case


class Kept:
    """The file with the rows. A line that was not written to its end is passed over; of a job the last row counts."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._rows: dict[str, Row] = {}
        self._whole = True
        with contextlib.suppress(FileNotFoundError):
            text = file.read_text(encoding="utf-8", errors="replace")
            self._whole = not text or text.endswith("\n")
            rows = (from_json(line) for line in text.splitlines())
            self._rows = {row.key: row for row in rows if row is not None and row.key}

    def of(self, jobs: Iterable[Job], torches: Collection[str]) -> dict[str, Row]:
        """By key, the rows of jobs that need not be done again: not those that failed, nor of another PyTorch.

        ``torches``: the versions that jobs would run with now.
        """
        known = {job.key: self._rows[job.key] for job in jobs if job.key in self._rows}
        return {
            k: row
            for k, row in known.items()
            if row.answer != "failed" and (not row.torch or any(_is_one(row.torch, torch) for torch in torches))
        }

    def add(self, row: Row) -> None:
        """Write a row at the end. Raises ``OSError``."""
        with self.file.open("a", encoding="utf-8") as stream:
            stream.write(("" if self._whole else "\n") + to_json(row) + "\n")
        self._whole = True


def _is_one(torch: str, other: str) -> bool:
    """Whether two versions are one: a wheel may say 2.14.1 of itself where `torch.__version__` is 2.14.1+cu130."""
    public, _, local = torch.partition("+")
    other_public, _, other_local = other.partition("+")
    return public == other_public and (local == other_local or not local or not other_local)


#: ``ok``: there is an answer, and nothing speaks against the patch. ``not equivalent``: the patch is refused.
Answer = Literal["ok", "not equivalent", "failed"]
ANSWERS: tuple[Answer, ...] = ("ok", "not equivalent", "failed")


@dataclass(frozen=True)
class Job:
    """One thing to do. ``do``: of ``manifest.DOINGS``. ``case``: None for a scan. ``key``: its content, as a hash.

    ``wrong``: why it cannot be done at all, in one line.
    """

    model: Model
    do: str
    case: Case | None = None
    mode: str = ""
    key: str = ""
    wrong: str = ""

    @property
    def name(self) -> str:
        """For people: ``test nanovlm/decode (default)``."""
        return named(self.do, self.model.name, self.case.name if self.case else "", self.mode)


def named(do: str, model: str, case: str, mode: str) -> str:
    """A job for people."""
    return f"{do} {model}{'/' + case if case else ''}{f' ({mode})' if mode else ''}"


@dataclass(frozen=True)
class Row:
    """What came of a job. ``told``: its answer in a few words, or why it failed; ``notes``: what else is to be known.

    ``machine``, ``device``, ``torch``: where it was measured ("" for a scan). ``seconds``: of the whole job, from when
    it had a slot; ``measuring``: what its (last) plan took where it ran. ``tries``: how often it was begun.
    ``figures``: by names as ``breaks_before``; milliseconds are those of one warm pass. ``noise``: whether the
    quartiles of the two compiled times overlap.
    """

    model: str
    do: str
    case: str
    mode: str
    key: str
    answer: Answer
    told: str
    figures: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    machine: str = ""
    device: str = ""
    torch: str = ""
    seconds: float = 0.0
    measuring: float = 0.0
    tries: int = 1
    noise: bool = False

    @property
    def name(self) -> str:
        """For people: ``test nanovlm/decode (default)``."""
        return named(self.do, self.model, self.case, self.mode)


def of(job: Job, answer: Answer, told: str, **more: Any) -> Row:
    """The row of a job."""
    case = job.case.name if job.case else ""
    return Row(job.model.name, job.do, case, job.mode, job.key, answer, " ".join(told.split()), **more)


def to_json(row: Row) -> str:
    """One line."""
    values = asdict(row)
    values["figures"] = {key: value for key, value in row.figures.items() if math.isfinite(value)}
    return json.dumps(values, ensure_ascii=False)


def from_json(line: str) -> Row | None:
    """The row in a line; None when there is none, as in a line that was not written to its end."""
    try:
        return decoded(Row, json.loads(line))
    except (ValueError, DecodeError):
        return None
