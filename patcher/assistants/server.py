"""The server: four tools, each of which is a call of the command line."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from patcher.assistants.running import run
from patcher.version import VERSION

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
