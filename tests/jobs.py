"""Jobs of the harness's worker, quickly: one interpreter imports the worker, and forks for each job."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import torch

from patcher.harness import worker
from patcher.harness.plan import changed

HARNESS = str(Path(worker.__file__).parent)
CASE = """\
import random
import torch
from torch import nn


def build():
    return nn.Linear(4, 4)


def calls():
    return [(torch.ones(2, 4),)]


"""
_SERVER = """
import gc, json, os, signal, sys, traceback

sys.path.insert(0, sys.argv[1])
import torch, torch._dynamo.guards, torch._inductor.cudagraph_trees
import worker  # and nothing is computed before the forks: threads do not survive them

from _fix_compile_harness import passes, replaying

passes.QUICK_SECONDS = 0.0
torch._dynamo.guards.profile_guard_manager = lambda *_: 0.0  # as in dynamo.py
gc.freeze()  # else each child would collect what it has inherited
for line in sys.stdin:
    spec, log, folder, eager, logs = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        out = os.open(log, os.O_WRONLY | os.O_CREAT)
        for number, source in enumerate((os.open(os.devnull, os.O_RDONLY), out, out)):
            os.dup2(source, number)
        try:
            os.chdir(folder)
            torch._dynamo.config.disable = eager
            if logs:
                os.environ["TORCH_LOGS"] = logs
                torch._logging._internal._init_logs()
            sys.argv = ["worker.py", spec]
            worker.main()
        except BaseException:
            traceback.print_exc()
        os._exit(99)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass
class Job:
    """What came of a job. ``code``: the exit status of its process; ``told``: its result, empty without one."""

    folder: Path
    code: int
    log: str
    told: dict[str, Any]

    @property
    def failure(self) -> tuple[str, str]:
        """Status and message."""
        return self.told["status"], self.told["message"]

    def __getitem__(self, key: str) -> Any:
        assert self.told.get("status") == "ok", (self.code, self.told, self.log)
        return self.told[key]

    def kept(self, call: int = 1, what: str = "leaves") -> dict[str, Any]:
        """What was kept of a call in the first pass."""
        assert self["status"] == "ok"
        return dict(torch.load(self.folder / f"pass1-call{call}.pt", weights_only=True)[what])

    def output(self, call: int = 1) -> Any:
        """The output of a call that returns one leaf."""
        return self.kept(call)["output"]


class Jobs:
    """Runs jobs in ``folder``."""

    def __init__(self, server: subprocess.Popen[str], folder: Path) -> None:
        self._server, self._folder, self.tree = server, folder, folder / "tree"

    def __call__(
        self,
        text: str = "",
        kind: str = "eager",
        *,
        name: str = "case.py",
        files: Mapping[str, str] = {},
        patched: Mapping[str, str] = {},
        roots: tuple[str, ...] = ("",),
        overlay: Mapping[str, Any] = {},
        job: Mapping[str, Any] = {},
        plan: Mapping[str, Any] = {},
        **case: Any,
    ) -> Job:
        """Run one on a case that is ``CASE`` and then ``text``.

        ``files``: others by path, ``patched``: their new text; ``roots``: what is imported from. ``overlay``, ``job``,
        ``plan`` and the rest, which is for the case, are put into the plan.
        """
        for path, content in {**files, name: CASE + dedent(text)}.items():
            (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / path).write_text(content)
        folder = self._folder / f"job{len(list(self._folder.glob('job*')))}"
        folder.mkdir()
        spec = {
            "base": str(self.tree),
            "path": [str(self.tree / root) for root in roots],
            "overlay": [self._entry(folder, *change) | dict(overlay) for change in patched.items()],
            "cases": [{"name": "m", "file": str(self.tree / name), **case}],
            "backend": "eager",
            "quick": True,
            "verbose": False,
            "seconds": 60,
            "memory": None,
            **plan,
            "job": {
                "case": 0,
                "tree": "patched" if patched else "original",
                "kind": kind,
                "mode": "default" if kind == "compiled" else None,
                "folder": str(folder),
                "draws_random": False,
                "sizes": None,
                **job,
            },
        }
        (folder / "spec.json").write_text(json.dumps(spec))
        log, result = folder / "log.txt", folder / "result.json"
        logs = "graph_breaks,recompiles,cudagraphs,perf_hints" if spec["verbose"] else ""
        assert self._server.stdin and self._server.stdout
        request = [str(folder / "spec.json"), str(log), str(self.tree), kind != "compiled", logs]
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        code = int(self._server.stdout.readline())
        return Job(folder, code, log.read_text(), json.loads(result.read_text()) if result.exists() else {})

    def _entry(self, folder: Path, path: str, content: str) -> dict[str, Any]:
        before, after = (self.tree / path).read_bytes(), content.encode()
        patched = folder / path.replace("/", ".")
        patched.write_bytes(after)
        hashes = [hashlib.sha256(data).hexdigest() for data in (before, after)]
        entry = {
            "file": str(self.tree / path),
            "patched": str(patched),
            "shown": path,
            "changed": changed(before, after),
        }
        return {**entry, "before": hashes[0], "after": hashes[1]}


@contextmanager
def serving() -> Iterator[subprocess.Popen[str]]:
    """The interpreter that forks."""
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _SERVER, HARNESS]
    with subprocess.Popen(command, text=True, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        yield server
