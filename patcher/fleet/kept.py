"""The rows of earlier calls, a line each in one file: written when a job is over, read by the next call."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from pathlib import Path

from patcher.fleet.row import Job, Row, from_json, to_json


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
