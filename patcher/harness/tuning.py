"""Try the ways to compile a case, each in processes of its own: what is run in which order, and for how long.

Standard library only; ``run.py`` starts the processes, ``ways.py`` says what there is to try, ``way.py`` measures.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from patcher.harness.ways import FAST_MATH, Facts, Way, by_goal, chosen, following, lines, marking
else:  # carried
    from ways import FAST_MATH, Facts, Way, by_goal, chosen, following, lines, marking

Json = dict[str, Any]
#: Runs ``way.py`` for a job, told as what, with a limit of seconds.
Start = Callable[[Json, str, float], Json]

WARM_SECONDS, AGAIN_SECONDS = 2.0, 1.0
FIRST = 0.75  # of the time for a case, for the first processes; the rest is for the second ones
LEAST = 5.0  # seconds without which no process is worth its start


class Tuning:
    """One case. ``asked``: the plan's ``tune``; ``limit``: seconds of each process; ``known``: keys of each job."""

    def __init__(self, asked: Mapping[str, Any], folder: Path, start: Start, limit: float, known: Json) -> None:
        self._asked, self._folder, self._start = asked, folder, start
        self._limit, self._known = min(limit, asked.get("each") or limit), known
        self._began, self._seconds = time.monotonic(), asked.get("seconds") or math.inf
        self._facts: Json = {}
        self._number = 0

    def run(self) -> Json:
        """All ways that suit the case and for which there is time; what they showed, without the comparison."""
        looked = self._start(self._job("look", settings=[FAST_MATH], kind="eager"), "looking at it", self._limit)
        if looked["status"] != "ok":
            return {key: looked.get(key, "") for key in ("status", "message", "tail")}
        self._facts = {key: value for key, value in looked.items() if key not in ("tail", "seconds", "message")}
        facts = Facts.of(self._facts)
        picked = chosen(facts, self._asked["fast_math"], self._asked["quick"], self._asked.get("ways") or ())
        left = [{"name": name, "message": why} for name, why in picked.left]
        under = tuple((s["name"], s["value"]) for s in self._known["under"] if s["kind"] == "argument")
        todo, rows = [way.given(under) for way in picked.ways], list[Json]()
        while todo:
            way = todo.pop(0)
            of = len(rows) + 1 + len(todo)
            row = self._tried(way, facts, len(rows) + 1, of)
            rows.append(row)
            names = [r["name"] for r in rows]
            added = following(way, row, facts, names)
            todo[:0] = added
            todo = [later for n, later in enumerate(todo) if later.name not in {w.name for w in todo[:n]}]
        self._again(rows)
        missing = self._facts["missing"] if self._asked["fast_math"] else []
        return {
            "status": "ok",
            "message": "",
            "goal": self._asked["goal"],
            "facts": self._facts,
            "marking": marking(facts),
            "rows": rows,
            "left": left,
            "missing": missing,
        }

    def clear(self) -> None:
        """Remove the caches of the compiler."""
        for cache in self._folder.glob("way-*.cache"):
            shutil.rmtree(cache, ignore_errors=True)

    def _tried(self, way: Way, facts: Facts, number: int, of: int) -> Json:
        """One way, with an empty cache."""
        self._number += 1
        name = f"way-{self._number:02d}"
        row = {**way.json(), "lines": lines(way, facts), "folder": name}
        reuse = way.name in ("default", "default, blocks")
        job = self._job(name, way=way.json(), facts=self._facts, reuse=reuse)
        return {**row, **self._measured(job, f"way {number} of {of}: {way.name}", FIRST)}

    def _again(self, rows: list[Json]) -> None:
        """A second process each, with the cache of the first; the best first, for there may not be time for all."""
        ran = by_goal(self._asked["goal"], rows)
        for number, row in enumerate(ran, 1):
            way, name = Way.of(row).json(), f"{row['folder']}-again"
            job = self._job(name, row["folder"], way=way, facts=self._facts, warm_seconds=AGAIN_SECONDS)
            told = self._measured(job, f"second process {number} of {len(ran)}: {row['name']}", 1.0)
            next(r for r in rows if r is row)["second"] = told

    def _measured(self, job: Json, told: str, share: float) -> Json:
        """A process, if there is time for it in this share of the time for all."""
        left = self._began + share * self._seconds - time.monotonic()
        over = {"status": "skipped", "message": "there was no time left for it", "tail": [], "seconds": 0.0}
        if left < LEAST:
            return over
        seconds = min(self._limit, left)
        result = self._start(job, f"{told} (at most {seconds:.0f} s)", seconds)
        if result["status"] != "timeout" or left >= self._limit:
            return result
        ended = f"it was ended after {seconds:.0f} s, when there was no time left"
        return {**over, "message": ended, "tail": result["tail"], "seconds": result["seconds"]}

    def _job(self, name: str, cache: str = "", **own: object) -> Json:
        folder = self._folder / name
        kept = self._folder / f"{cache or name}.cache"
        return {**self._known, "warm_seconds": WARM_SECONDS, "folder": str(folder), "cache": str(kept), **own}
