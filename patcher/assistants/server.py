"""The server: four tools, each of which is a call of the command line."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from patcher.assistants.commands import (
    Finished,
    check_words,
    checked,
    diagnose_words,
    diff_words,
    judge_words,
    prove_words,
    told,
)
from patcher.version import VERSION

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


_INSTRUCTIONS = """fix-compile finds what keeps PyTorch model source from compiling well under torch.compile (graph
breaks, recompiles, skipped CUDA graphs), and measures changes. Whoever writes a change to such code: let `judge`
measure it before you say that it helps. `check` reads source only and is quick. `diagnose`, `judge` and `prove` run the
user's model, through a case: a Python file with build() (the model) and calls() (the calls to make); they take seconds
to minutes. Only `prove` with write=true changes files, and `fix-compile restore` takes that back."""
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


def make_server() -> MCPServer[Any]:
    """The server with its four tools."""
    server: MCPServer[Any] = MCPServer("fix-compile", version=VERSION, instructions=_INSTRUCTIONS, log_level="WARNING")

    @server.tool(annotations=_READS)
    async def check(
        ctx: Context[Any],
        paths: list[str] | None = None,
        project: str = ".",
        unsafe: bool = False,
        with_diff: bool = False,
        limit: int = 50,
    ) -> dict[str, Any]:
        """What keeps this source from compiling well: findings with place, reason and how far a fix is safe.

        Reads source, runs nothing. paths: files or folders, by default the whole project. with_diff: also what all safe
        fixes (unsafe=true: and those that rest on a stated assumption) would change. limit: findings at most.
        """
        done = await _run(check_words(paths or [], unsafe), project, ctx)
        shown = (await _run(diff_words(paths or [], unsafe), project, ctx)).out if with_diff else None
        return checked(done, limit, shown)

    @server.tool(annotations=_READS)
    async def diagnose(
        ctx: Context[Any],
        case: str,
        paths: list[str] | None = None,
        project: str = ".",
        quick: bool = True,
        backend: str = "",
    ) -> dict[str, Any]:
        """Run the model under torch.compile and tell what costs: each cause with its place, its cost and the fix.

        case: the case file. paths: the model's source, by default the whole project. quick: fewer and shorter runs.
        backend: "eager" only counts, and is quickest; by default inductor. Nothing is written.
        """
        return told("diagnose", await _run(diagnose_words(case, _given(paths), quick, backend), project, ctx))

    @server.tool(annotations=_READS)
    async def judge(
        ctx: Context[Any],
        case: str,
        patch: str = "",
        against: str = "",
        paths: list[str] | None = None,
        project: str = ".",
        quick: bool = True,
        backend: str = "",
        tolerance: float | None = None,
    ) -> dict[str, Any]:
        """Measure a change that anybody has written: are the results the same, and does it compile better?

        patch: a unified diff, as git makes it, which is not applied; or against: a git revision that the files on disk
        are compared with. The verdict has breaks, recompiles, launches, differences of outputs and gradients, times.
        tolerance: the largest mean error, in place of the case's own.
        """
        if bool(patch.strip()) == bool(against):
            raise ToolError("judge takes either a patch (a unified diff) or against (a git revision)")
        words = judge_words(case, paths or [], against, quick, backend, tolerance)
        return told("judge", await _run(words, project, ctx, "" if against else patch))

    @server.tool(annotations=_WRITES)
    async def prove(
        ctx: Context[Any],
        case: str,
        paths: list[str] | None = None,
        project: str = ".",
        quick: bool = True,
        backend: str = "",
        unsafe: bool = False,
        write: bool = False,
    ) -> dict[str, Any]:
        """Try the fixes that a run gives a reason for, keep those that measurably help, take back the others.

        write: put what was kept into the files (the originals are saved; `fix-compile restore` takes it back); without,
        it is only told. unsafe: also try fixes that rest on a stated assumption, and settings of PyTorch.
        """
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder, "report.md")
            words = prove_words(case, _given(paths), quick, backend, unsafe, write, str(report))
            done = await _run(words, project, ctx)
            text = report.read_text("utf-8") if report.exists() else ""
        return told("prove", replace(done, out=f"{done.out}\n{text}"))

    return server


def _given(paths: list[str] | None) -> list[str]:
    return paths or ["."]


async def _run(words: list[str], project: str, ctx: Context[Any], given: str = "") -> Finished:
    """Run a call in the folder ``project``; how far it is goes to the client."""
    folder = Path(project).expanduser()
    if not folder.is_dir():
        raise ToolError(f"{project} is no folder")
    return await run(words, folder, ctx.report_progress, given)
