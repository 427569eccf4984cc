"""What an earlier run, or one beside this, has measured of the original, and may be used again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.harness.processes import LISTEN_SECONDS, Job, Json, Processes, write_json

START_SECONDS = 30  # for another run to begin
_COMPILING = ("modes", "backend", "counting", "untimed")  # of a plan: what only matters for compiled variants
KEPT, TOLD = "kept.json", "told.json"  # in a work folder that stays: of what run it is, and what a variant has told


class Workers:
    """What workers tell, now or in an earlier run; ``work``: the folder of this run.

    ``programs``: the folder of what measures: figures of another version are not those of this one.
    """

    def __init__(self, plan: Json, work: Path, programs: Path, python: str, processes: Processes) -> None:
        self._plan, self._work, self._processes = plan, work, processes
        self._identity = _identity(plan, programs, python)
        if plan.get("beside"):
            self._await(Path(plan["reuse"]) / KEPT, START_SECONDS)
        self._earlier = _earlier(plan.get("reuse"), work, self._identity)

    def clear(self) -> None:
        """Begin with an empty folder, which says whose it is when it stays."""
        shutil.rmtree(self._work, ignore_errors=True)
        if self._plan.get("keep"):
            self._work.mkdir(parents=True)
            write_json(self._work / KEPT, self._identity)

    def told(self, jobs: Sequence[Job], at_once: int = 1) -> list[Json]:
        """What workers tell, now or in an earlier run; written down beside what they save when the folder stays."""
        known = {job.folder: taken for job in jobs if (taken := self._taken(job)) is not None}
        new = [job for job in jobs if job.folder not in known]
        for job, result in zip(new, self._processes.told(new, at_once), strict=True):
            if self._plan.get("keep"):
                write_json(job.folder / TOLD, result)
            known[job.folder] = {**result, **{key: job.asked[key] for key in ("trace",) if key in job.asked}}
        return [known[job.folder] for job in jobs]

    def _taken(self, job: Job) -> Json | None:
        """What an earlier run has told of a variant of the original; its files then lie in the job's folder."""
        if job.asked["tree"] != "original" or self._earlier is None or job.asked["kind"] not in self._earlier.kinds:
            return None
        source = (self._earlier.work / job.folder.relative_to(self._work)).resolve()
        own = any(job.asked.get(key) for key in ("nudged", "paired", "observed"))  # no other run makes these
        if self._plan.get("beside") and job.asked["kind"] != "float64" and not own:
            self._await(source / TOLD, self._plan["seconds"])
        try:
            result: Json = json.loads((source / TOLD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if result["status"] != "ok" and not self._plan.get("beside"):
            return None  # beside others it may have failed for want of room
        job.folder.parent.mkdir(parents=True, exist_ok=True)
        job.folder.symlink_to(source, target_is_directory=True)
        self._processes.spare(job, result["status"])
        return {**result, "reused": True}

    def _await(self, file: Path, seconds: float) -> None:
        """Wait until another run has written this file, or the time is over."""
        over = time.monotonic() + seconds
        while not file.exists() and time.monotonic() < over and not self._processes.stop.wait(LISTEN_SECONDS):
            pass


def _identity(plan: Json, programs: Path, python: str) -> Json:
    """What two runs must have in common for one to use the original's figures of the other."""
    same = {key: plan.get(key) for key in ("schema", "base", "cases", *_COMPILING, "eager_untimed", "quick")}
    files = [_sha256(case["file"]) for case in plan["cases"]]
    return {
        **same,
        "files": files,
        "programs": [_sha256(file) for file in sorted(programs.glob("*.py"))],
        "python": python,
    }


def _sha256(file: str | Path) -> str | None:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None


@dataclass(frozen=True)
class _Earlier:
    """The work folder of an earlier run, and the kinds of variants that this one would measure in the same way."""

    work: Path
    kinds: tuple[str, ...]


def _earlier(folder: str | None, own: Path, identity: Json) -> _Earlier | None:
    """An earlier run, when some of what it has measured is what this one would measure."""
    if not folder or Path(folder).resolve() == own.resolve():
        return None
    with contextlib.suppress(OSError, ValueError):
        known = json.loads((Path(folder) / KEPT).read_text(encoding="utf-8"))
        timed = [key for key in ("untimed", "eager_untimed") if not known.get(key)]  # that does no harm
        identity = {**identity, **dict.fromkeys(timed)}
        if known == identity:
            return _Earlier(Path(folder), ("eager", "float64", "compiled"))
        if _uncompiled(known) == _uncompiled(identity):
            return _Earlier(Path(folder), ("eager", "float64"))
    return None


def _uncompiled(identity: Json) -> Json:
    return {key: value for key, value in identity.items() if key not in _COMPILING}
