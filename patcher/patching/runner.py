"""Paths to results: discover, read, summarise, merge to a project, patch. A bad file is a result, no exception."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from patcher.files.discover import Exclude, discover, surroundings
from patcher.patching.parallel import in_order, run_shares
from patcher.patching.reuse import Known, Reuse
from patcher.patching.share import KEPT_SOURCE_BYTES, Answer, Share, Steps, Summary
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.settings import Settings

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
    kept: Path | None = None,
    every: bool = True,
    each: bool = False,
) -> list[FileResult]:
    """One result per file and per path that is not one, in the order in which they were found; nothing is written.

    ``jobs``: processes at most; 1 works in this process, None takes what the machine has and the number of files is
    worth. The results do not depend on it. ``progress`` is called with (files done, files). ``fixes``: whether fixes
    are made, in memory; without, the results say what was found, and no file is changed. ``kept``: the folder where
    results are kept from one run to the next, which do not depend on it either. ``every``: tests, examples and scripts
    are worked on as well; without, they are read only, for what they say of the others, and have a result that says so.
    ``each``: without ``fixes``, each finding has what its fix alone would change.
    """
    entries = discover(paths, exclude)
    given = [entry.path for entry in entries if not entry.error]
    around = surroundings(given)
    todo = [*given, *around.files]
    reuse = Reuse.of(kept, rules, settings, (paths, fixes, every, each))
    known = reuse.recall(todo, given) if reuse is not None else Known()
    if known.complete:
        results = dict(known.results)
    else:
        steps = engine_steps() if fixes else suggesting_steps() if each else finding_steps()
        steps = replace(steps, merge=functools.partial(steps.merge, whole=around.whole, compiled=settings.compiled))
        index = Index(todo, frozenset(given), steps, known)
        beside = frozenset() if every else frozenset(entry.path for entry in entries if entry.beside)
        make_share = functools.partial(Share, rules, settings, steps, beside=beside.union(around.files))
        fresh = answers(index, make_share, jobs, progress)
        results = {**index.results, **{answer.result.path: answer.result for answer in fresh}}
        if reuse is not None:
            reuse.remember(index.results, index.summaries, fresh)
    results |= {e.path: FileResult(e.path, error=e.error) for e in entries if e.error and (every or not e.beside)}
    return [results[e.path] for e in entries if e.path in results]


class Index:
    """Brings the files' summaries together, new ones and ones that are known, and tells what is to be patched.

    ``todo``: all files of the project, of which those ``given`` are to be patched. ``results``: those that hold, once
    ``merge`` was called.
    """

    def __init__(self, todo: Sequence[str], given: frozenset[str], steps: Steps, known: Known) -> None:
        self.todo, self.given, self.steps, self._known = todo, given, steps, known
        self.first = frozenset(path for path in todo if path not in known.summaries)
        self.summaries: list[Summary] = []
        self.results: Mapping[str, FileResult] = {}

    def merge(self, fresh: list[Summary]) -> tuple[Any, Collection[str]]:
        """The project, with these summaries, and the files to patch in it."""
        self.summaries = [*fresh, *self._known.summaries.values()]
        self.results = self._known.results if self._known.holds(self.summaries) else {}
        project = self.steps.merge(in_order(self.summaries))
        return project, self.given - self.results.keys()


def answers(
    index: Index, make_share: functools.partial[Share], jobs: int | None, progress: Progress | None
) -> list[Answer]:
    """What each of the files to patch has come to."""
    count = _processes(jobs, len(index.todo))
    make_share = functools.partial(make_share, kept_bytes=KEPT_SOURCE_BYTES // count)
    tick = _ticker(len(index.todo) + len(index.given), len(index.given), progress)
    if count > 1:
        with contextlib.suppress(OSError):  # no process to be had: one is enough
            return run_shares(make_share, _split(index.todo, count), index.first, index.merge, tick)
    return _in_this_process(index, make_share(), tick)


def engine_steps() -> Steps:
    """The engine's three functions, imported when they are needed: ``--help`` has no use for them."""
    from patcher.edit.engine import patch
    from patcher.facts.project.index import Project, summarise

    return Steps(summarise, Project, patch)


def suggesting_steps() -> Steps:
    """The same for looking, and for what each fix alone would change."""
    from patcher.edit.engine import suggest
    from patcher.facts.project.index import Project, summarise

    return Steps(summarise, Project, suggest)


def finding_steps() -> Steps:
    """The same for looking only: LibCST takes longer to load, and to parse a file, than it takes to look at one."""
    from patcher.facts.project.index import Project, summarise
    from patcher.finding import find

    return Steps(summarise, Project, find)


def available_cpus() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processes(jobs: int | None, files: int) -> int:
    wanted = min(available_cpus(), files // _FILES_PER_PROCESS) if jobs is None else min(jobs, files)
    return max(wanted, 1)


def _in_this_process(index: Index, share: Share, tick: Callable[[], None]) -> list[Answer]:
    summaries, found = [], []
    with warnings.catch_warnings(), few_collections():
        warnings.simplefilter("ignore")
        for path in index.todo:
            if path in index.first:
                summaries.append(share.summarise(path))
                tick()
        project, wanted = index.merge(summaries)
        gc.freeze()
        for path in index.todo:
            if path in wanted:
                found.append(share.answer(path, project))
                tick()
    return found


@contextlib.contextmanager
def few_collections() -> Iterator[None]:
    """Syntax trees are many objects and no garbage: collecting while they are built doubles the time of parsing.

    `Share` collects between files.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        (gc.enable if enabled else gc.disable)()


def _split(todo: Sequence[str], count: int) -> list[list[str]]:
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


def _ticker(every: int, files: int, progress: Progress | None) -> Callable[[], None]:
    """What counts steps, of which there are ``every``, as so many of the given ``files``."""
    steps = 0

    def tick() -> None:
        nonlocal steps
        steps += 1
        if progress is not None:
            progress(steps * files // every, files)

    return tick
