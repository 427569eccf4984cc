"""Paths to results: discover, read, summarise, merge to a project, patch. A bad file is a result, no exception."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from patcher.discover import Exclude, discover
from patcher.parallel import in_order, run_shares
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.settings import Settings
from patcher.share import KEPT_SOURCE_BYTES, Share, Steps
from patcher.surroundings import Surroundings

Progress = Callable[[int, int], None]

_FILES_PER_PROCESS = 40  # below that, starting another process costs more than it saves


def run(
    paths: Sequence[str],
    rules: Sequence[Rule],
    settings: Settings,
    jobs: int | None = None,
    progress: Progress | None = None,
    exclude: Exclude | None = None,
    fixes: bool = True,
) -> list[FileResult]:
    """One result per file and per path that is not one, in the order in which they were found; nothing is written.

    ``fixes``: whether fixes are made, in memory; without, the results say what was found, and no file is changed.
    ``jobs``: processes at most; 1 works in this process, None takes what the machine has and the number of files is
    worth. The results do not depend on it. ``progress`` is called with (files done, files).
    """
    entries = discover(paths, exclude)
    todo = [entry.path for entry in entries if not entry.error]
    count = _processes(jobs, len(todo))
    steps = engine_steps() if fixes else finding_steps()
    around = Surroundings(tuple(todo))
    make_share = functools.partial(Share, rules, settings, steps, KEPT_SOURCE_BYTES // count)
    tick = _ticker(len(todo), progress)
    done: list[FileResult] = []
    if count > 1:
        with contextlib.suppress(OSError):  # no process to be had: one is enough
            done = run_shares(make_share, _split(todo, count), lambda found: steps.merge(found, around), tick)
    if not done:
        done = _in_this_process(todo, make_share(), lambda found: steps.merge(found, around), tick)
    results = {result.path: result for result in done}
    return [FileResult(e.path, error=e.error) if e.error else results[e.path] for e in entries]


def engine_steps() -> Steps:
    """The engine's three functions, imported when they are needed: ``--help`` has no use for them."""
    from patcher.engine import patch
    from patcher.facts.project import Project, summarise

    return Steps(summarise, Project, patch)


def finding_steps() -> Steps:
    """The same with an engine that only looks: parsing a file with LibCST and editing it costs more than looking."""
    from patcher.engine import find

    return replace(engine_steps(), patch=find)


def available_cpus() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processes(jobs: int | None, files: int) -> int:
    wanted = min(available_cpus(), files // _FILES_PER_PROCESS) if jobs is None else min(jobs, files)
    return max(wanted, 1)


def _in_this_process(
    todo: list[str], share: Share, merge: Callable[[list[Any]], Any], tick: Callable[[], None]
) -> list[FileResult]:
    summaries, results = [], []
    with warnings.catch_warnings(), few_collections():
        warnings.simplefilter("ignore")
        for path in todo:
            summaries.append(share.summarise(path))
            tick()
        project = merge(in_order(summaries))
        gc.freeze()
        gc.enable()
        for path in todo:
            results.append(share.patch(path, project))
            tick()
    return results


@contextlib.contextmanager
def few_collections() -> Iterator[None]:
    """Syntax trees are many objects and no garbage: collecting while they are built doubles the time of parsing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        (gc.enable if enabled else gc.disable)()


def _split(todo: list[str], count: int) -> list[list[str]]:
    """Shares of about equal size in bytes, each in the order of ``todo``."""
    share_of: dict[str, int] = {}
    load = [0] * count
    for path in sorted(todo, key=_size, reverse=True):
        lightest = load.index(min(load))
        share_of[path] = lightest
        load[lightest] += _size(path) + 1000
    return [[path for path in todo if share_of[path] == number] for number in range(count)]


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _ticker(files: int, progress: Progress | None) -> Callable[[], None]:
    steps = 0

    def tick() -> None:
        nonlocal steps
        steps += 1
        if progress is not None:
            progress(steps // 2, files)

    return tick
