"""A call of the command line in a process of its own: what it writes, how far it is, its end when it is cancelled."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.abc

from patcher.assistants.commands import Finished

_PROGRESS = re.compile(r"\[\d+ s\] (\d+) of (\d+)")
_GRACE = 10.0  # seconds that a call has to end what it has started
#: Is told what number of how many is done, with the line that says so.
Report = Callable[[float, float, str], Awaitable[None]]


def _program() -> list[str]:
    """The words that start this tool, wherever it lies: beside this package, or one folder above it."""
    here = Path(__file__).resolve().parent.parent
    top = next(folder for folder in here.parents if (folder / "fix_compile.py").is_file())
    start = f"import sys; sys.path.insert(0, {str(top)!r}); from fix_compile import main; sys.exit(main())"
    return [sys.executable, "-c", start]


async def run(words: list[str], folder: Path, report: Report, given: str = "") -> Finished:
    """Run a call in ``folder``, with ``given`` on its standard input. When it is cancelled, the call ends, too."""
    process = await anyio.open_process(
        [*_program(), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
    )
    out: list[str] = []
    said: list[str] = []
    try:
        async with anyio.create_task_group() as both:
            both.start_soon(_feed, process, given)
            both.start_soon(_read, process.stdout, out)
            both.start_soon(_follow, process.stderr, said, report)
        status = await process.wait()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _end(process)
        raise
    return Finished(status, "".join(out), tuple(said))


async def _feed(process: anyio.abc.Process, given: str) -> None:
    assert process.stdin is not None
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, BrokenPipeError):
        if given:
            await process.stdin.send(given.encode("utf-8", "surrogateescape"))
    await process.stdin.aclose()


async def _read(stream: anyio.abc.ByteReceiveStream | None, into: list[str]) -> None:
    assert stream is not None
    data = b"".join([chunk async for chunk in stream])
    into.append(data.decode("utf-8", "replace"))


async def _follow(stream: anyio.abc.ByteReceiveStream | None, said: list[str], report: Report) -> None:
    assert stream is not None
    rest = b""
    async for chunk in stream:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip()
            said.append(text)
            if found := _PROGRESS.match(text):
                await report(int(found[1]), int(found[2]), text)
    if rest:
        said.append(rest.decode("utf-8", "replace"))


async def _end(process: anyio.abc.Process) -> None:
    """Interrupt the call, which ends the processes that it has started; what is left after a while is killed."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    with anyio.move_on_after(_GRACE):
        await process.wait()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
