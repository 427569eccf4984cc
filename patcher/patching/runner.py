"""Paths to results: discover, read, summarise, merge to a project, patch. A bad file is a result, no exception."""

from __future__ import annotations

import contextlib
import functools
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from patcher.files.discover import Exclude, discover, surroundings
from patcher.patching.reuse import Known, Reuse
from patcher.patching.share import KEPT_SOURCE_BYTES, Answer, Share, Steps, Summary
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.settings import Settings

_READY = "ready"
_PATIENCE = 2  # fresh processes that may die before their first file, which is then no file's fault


@dataclass
class _Member:
    """One process and its files. ``waiting``: those that have no answer yet in the present phase, in order."""

    paths: list[str]
    waiting: list[str] = field(default_factory=list)
    ready: bool = False
    early_deaths: int = 0
    process: Any = None
    pipe: Connection | None = None


def run_shares(
    make_share: Callable[[], Share],
    shares: Sequence[Sequence[str]],
    first: Collection[str],
    merge: Callable[[list[Summary]], tuple[Any, Collection[str]]],
    tick: Callable[[], None],
) -> list[Answer]:
    """The answers of all shares, in any order. ``tick`` is called after each file of each of the two phases.

    Of the files of the shares, ``first`` are summarised; ``merge`` makes a project of that, and says which to patch.
    """
    results: list[Answer] = []
    summaries: list[Summary] = []
    members = [_Member(list(paths), [path for path in paths if path in first]) for paths in shares]

    def first_phase(member: _Member) -> None:
        _start(member, make_share, member.waiting)

    def second_phase(member: _Member) -> None:
        if member.pipe is None:
            _start(member, make_share, [])
        _send(member, project)

    try:
        for member in members:
            first_phase(member)
        _collect(members, summaries, results, tick, first_phase)
        merged, wanted = merge(summaries)
        project = pickle.dumps(merged, pickle.HIGHEST_PROTOCOL)
        for member in members:
            member.waiting, member.ready = [path for path in member.paths if path in wanted], False
            second_phase(member)
        _collect(members, results, results, tick, second_phase)
    finally:
        for member in members:
            if member.process is not None:
                member.process.terminate()
        for member in members:
            _stop(member)
    return results


def in_order(summaries: Iterable[Summary]) -> list[Any]:
    """What is known of the files, in an order that does not depend on who read which, nor on how paths are given."""
    known = [summary for summary in summaries if summary.facts is not None]
    return [summary.facts for summary in sorted(known, key=lambda s: os.path.abspath(s.path))]


def _collect(
    members: list[_Member],
    answers: list[Any],
    results: list[Answer],
    tick: Callable[[], None],
    restart: Callable[[_Member], None],
) -> None:
    """Take answers until no file is waiting; errors for files that killed their process go to ``results``."""
    while busy := {member.pipe: member for member in members if member.waiting}:
        for pipe in wait([pipe for pipe in busy if pipe is not None]):
            member = busy[pipe]  # type: ignore[index]
            try:
                answer = member.pipe.recv()  # type: ignore[union-attr]
            except (EOFError, OSError):
                results.extend(_after_death(member, restart))
                continue
            if answer == _READY:
                member.ready = True
                continue
            member.waiting.pop(0)
            answers.append(answer)
            tick()


def _after_death(member: _Member, restart: Callable[[_Member], None]) -> list[Answer]:
    """Blame the file that the process was on, and have a fresh process do the rest."""
    how = _stop(member)
    lost: list[str] = []
    if member.ready:
        lost = [member.waiting.pop(0)]
    else:
        member.early_deaths += 1
        if member.early_deaths > _PATIENCE:
            lost, member.waiting = member.waiting, []
    member.paths = [path for path in member.paths if path not in set(lost)]
    member.ready = False
    if member.waiting:
        restart(member)
    return [
        Answer(FileResult(path, error=f"the process that worked on it {how}; the other files are not affected"))
        for path in lost
    ]


def _start(member: _Member, make_share: Callable[[], Share], first: list[str]) -> None:
    """A fresh process, which summarises ``first`` and then waits for the project."""
    # Linux: fork is safe here (one thread) and saves the imports. Elsewhere the platform's own way.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    near_end, far_end = context.Pipe()
    member.pipe = near_end
    member.process = context.Process(target=_work, args=(far_end, make_share, list(first)), daemon=True)
    with _no_interrupt():
        member.process.start()
    far_end.close()


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Ctrl-C waits: what is started meanwhile never hears of it, also before it has said that it does not want to."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _send(member: _Member, project: bytes) -> None:
    """Hand over the files to patch and the project. A process that is dead by now is noticed when it is read from."""
    if member.pipe is not None and member.waiting:
        with contextlib.suppress(OSError):
            member.pipe.send(member.waiting)
            member.pipe.send_bytes(project)


def _stop(member: _Member) -> str:
    """End the process and say how it ended."""
    if member.pipe is not None:
        member.pipe.close()
        member.pipe = None
    if member.process is None:
        return "did not start"
    member.process.join(1.0)  # a dying process closes its pipe a moment before its exit code is known
    if member.process.is_alive():
        member.process.kill()
        member.process.join()
    code = member.process.exitcode or 0
    member.process = None
    if code == -signal.SIGKILL:
        return "was killed, perhaps because the machine ran out of memory"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"exit status {code}"
    return f"died ({name})"


def _work(pipe: Connection, make_share: Callable[[], Share], first: list[str]) -> None:
    """What runs in the process: answer for each file in order, so that silence tells which file was the last."""
    with contextlib.suppress(OSError, EOFError, KeyboardInterrupt):  # the parent is gone: so are we
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
        warnings.simplefilter("ignore")  # the user's own invalid escapes are no business of ours
        gc.disable()
        share = make_share()
        pipe.send(_READY)
        for path in first:
            _answer(pipe, share.summarise(path), Summary(path))
        gc.freeze()  # `Share` collects between files
        then = pipe.recv()
        project = pickle.loads(pipe.recv_bytes())
        pipe.send(_READY)
        for path in then:
            answer = share.answer(path, project)
            lost = FileResult(path, error="internal error, a bug in fix-compile: result cannot be sent")
            _answer(pipe, answer, Answer(lost))
    os._exit(0)  # nothing here needs the interpreter's slow goodbye to a million syntax nodes


def _answer(pipe: Connection, answer: object, instead: object) -> None:
    try:
        pipe.send(answer)
    except OSError:
        raise
    except Exception:
        pipe.send(instead)


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
    from patcher.facts.project.index import Project
    from patcher.facts.project.summarising import summarise

    return Steps(summarise, Project, patch)


def suggesting_steps() -> Steps:
    """The same for looking, and for what each fix alone would change."""
    from patcher.edit.engine import suggest
    from patcher.facts.project.index import Project
    from patcher.facts.project.summarising import summarise

    return Steps(summarise, Project, suggest)


def finding_steps() -> Steps:
    """The same for looking only: LibCST takes longer to load, and to parse a file, than it takes to look at one."""
    from patcher.facts.project.index import Project
    from patcher.facts.project.summarising import summarise
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
