"""Several processes, each with its own share of the files. A process that dies costs only the file that it was on."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from patcher.patching.share import Answer, Share, Summary
from patcher.results import FileResult

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
