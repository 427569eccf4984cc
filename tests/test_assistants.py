"""The server for assistants, as one talks to it: a process of its own over pipes, with the protocol's own client."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from patcher.assistants.commands import Finished, checked, judge_words, meaning, prove_words, told

mcp = pytest.importorskip("mcp")
ROOT = Path(__file__).resolve().parent.parent
MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y
"""
FIXED = MODEL.replace(
    """        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
""",
    """        y = torch.where(x.sum() > 0, x * 2, x - 1)
""",
)
CASE = """import torch
from net import Net


def build():
    return Net()


def calls():
    return [(torch.linspace(-1, 1, n),) for n in (3, 4)]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "setup.cfg").write_text("")
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "case.py").write_text(CASE)
    return tmp_path


def session(project: Path, scenario: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        server = mcp.StdioServerParameters(
            command=sys.executable,
            args=[str(ROOT / "fix_compile.py"), "mcp"],
            cwd=str(project),
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        async with mcp.Client(server) as client:
            await scenario(client)

    asyncio.run(whole())


async def call(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    told: dict[str, Any] = answer.structured_content
    return told


def patch_of(project: Path, after: str) -> str:
    """The change as a diff, which is not made."""
    changed = project.parent / "changed.py"
    changed.write_text(after)
    done = subprocess.run(
        ["git", "diff", "--no-index", "net.py", str(changed)], cwd=project, capture_output=True, text=True, check=False
    )
    return done.stdout.replace(f"b{changed}", "b/net.py")


def test_what_it_offers_and_what_it_finds(project: Path) -> None:
    async def scenario(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(tools) == ["check", "diagnose", "judge", "prove"]
        assert [name for name, tool in tools.items() if not tool.annotations.read_only_hint] == ["prove"]
        found = await call(client, "check", with_diff=True)
        assert (found["status"], found["meaning"], found["left_off"]) == (1, "there is something to fix", 0)
        (one,) = found["findings"]
        assert (one["path"], one["line"], one["code"], one["applicability"]) == ("net.py", 7, "FC101", "safe")
        assert "+        y = torch.where(x.sum() > 0, x * 2, x - 1)" in found["diff"]
        for wrong in ({"case": "case.py"}, {"case": "case.py", "patch": "x", "against": "main"}):
            refused = await client.call_tool("judge", wrong)
            assert refused.is_error
            assert "either a patch" in refused.content[0].text
        nowhere = await client.call_tool("check", {"project": "no such folder"})
        assert nowhere.is_error

    session(project, scenario)


@pytest.mark.slow
def test_a_change_that_alters_results_is_judged_so(project: Path) -> None:
    how = {"case": "case.py", "paths": ["net.py"], "backend": "eager"}

    async def scenario(client: Any) -> None:
        bad = await call(client, "judge", patch=patch_of(project, FIXED.replace("x * 2", "x * 3")), **how)
        assert (bad["status"], bad["meaning"].partition(":")[0]) == (1, "not equivalent")
        assert "| case" in bad["report"]
        assert (project / "net.py").read_text() == MODEL, "nothing is applied"

    session(project, scenario)


def test_words_end_before_paths_so_that_none_is_an_option() -> None:
    words = judge_words("case.py", ["--no-backup"], "main", True, "", 0.1)
    assert words[words.index("--") :] == ["--", "--no-backup"]
    assert words[words.index("--against") + 1] == "main"
    assert "--dry-run" in prove_words("c", ["."], True, "", False, write=False, report="r.md")
    proving = prove_words("c", [".", "--yes"], True, "", False, write=True, report="r.md")
    assert "--dry-run" not in proving
    assert proving[-2:] == [".", "./--yes"], "behind -- a program would stand"


def test_answers_are_cut_and_sorted() -> None:
    items = [
        {"line": n, "code": "FC101", "severity": severity, "assumption": None}
        for n, severity in enumerate(["low", "high", "medium"])
    ]
    document = {"summary": {}, "files": [{"path": "a.py", "error": None, "findings": items}]}
    answer = checked(Finished(1, json.dumps(document), ("[3 s] 1 of 2: case", "a line")), 2, None)
    assert [one["severity"] for one in answer["findings"]] == ["high", "medium"]
    assert (answer["left_off"], answer["messages"]) == (1, ["a line"])
    assert checked(Finished(2, "no JSON", ("why",)), 2, None)["messages"] == ["why"]
    assert len(told("diagnose", Finished(0, "x" * 100_000, ()))["report"]) < 61_000
    assert meaning("judge", -9) == "ended with status -9"
