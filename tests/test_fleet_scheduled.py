"""A real scheduler and real workers, on the loopback interface; one of them is killed in the middle."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from patcher.fleet import scheduled
from patcher.fleet.row import Row, from_json
from patcher.fleet.slots import FleetError

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 300.0
NET = """
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1
"""
CASE = """
import os
import time
from pathlib import Path

import torch
from net import Net

FLAG = Path({flag!r})


def build():
    if FLAG.parent.is_dir() and not FLAG.exists():
        part = FLAG.with_suffix(".part")
        part.write_text(f"{{os.environ.get('FLEET_WORKER')}} {{os.getpid()}}")
        part.replace(FLAG)
        time.sleep(10_000)
    return Net()


def calls():
    return [((torch.ones(2),), {{}})]
"""
MANIFEST = """
quick = true
backend = "eager"
do = ["test"]
[[model]]
path = "zoo"
paths = ["net.py"]
cases = ["stuck.py"]
[[model]]
name = "only looked at"
path = "zoo"
do = ["scan"]
"""


def wait_for(what: Callable[[], object], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.1)


def alive(pid: int) -> bool:
    """Also not one that has ended and was not waited for."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


class Cluster:
    """A scheduler and its workers, each a process in a group of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.folder, self.processes = folder, dict[str, subprocess.Popen[bytes]]()
        self.start("scheduler", "scheduler", "--host", self.address, "--no-dashboard", "--no-jupyter")

    def worker(self, name: str) -> None:
        options = ("--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard", "--no-nanny", "--name", name)
        self.start(name, "worker", self.address, *options, "--local-directory", str(self.folder / name))

    def start(self, name: str, *words: str) -> None:
        command = [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]]
        self.processes[name] = subprocess.Popen(
            command,
            cwd=self.folder,  # nothing of ours can be imported there
            env={**os.environ, "FLEET_WORKER": name, "DASK_LOGGING__DISTRIBUTED": "error", "PYTHONPATH": ""},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        for name in list(self.processes):
            self.kill(name)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    made = Cluster(folder)
    try:
        yield made
    finally:
        made.close()


def started(zoo: Path, rows: str, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "fix_compile.py"), "fleet", "fleet.toml", "--format", "jsonl"]
    return subprocess.Popen(
        [*command, "--rows", rows, *options],
        cwd=zoo,
        env={**os.environ, "FIX_COMPILE_CACHE": str(zoo / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, list[Row], str]:
    out, err = process.communicate(timeout=PATIENCE)
    rows = [from_json(line) for line in out.splitlines()]
    assert all(rows), out + err
    return process.returncode, [row for row in rows if row is not None], err


def said(rows: list[Row]) -> list[tuple[object, ...]]:
    """What does not depend on how fast a machine is."""
    counts = [{k: v for k, v in row.figures.items() if not k.endswith("_ms") and k != "speedup"} for row in rows]
    return [(r.model, r.case, r.mode, r.key, r.answer, r.told, n) for r, n in zip(rows, counts, strict=True)]


@pytest.mark.slow
@pytest.mark.long
def test_a_killed_worker_loses_nothing_and_a_scheduler_that_is_gone_is_one_line(
    tmp_path: Path, cluster: Cluster
) -> None:
    flag = tmp_path / "flags" / "seen"
    zoo = tmp_path / "zoo"
    zoo.mkdir()
    for name, text in {"net": NET, "stuck": CASE.format(flag=str(flag))}.items():
        (zoo / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "fleet.toml").write_text(MANIFEST, encoding="utf-8")

    status, here, err = ended(started(tmp_path, "here.jsonl"))  # there is no folder for the flag, and nothing waits
    assert (status, [row.answer for row in here]) == (0, ["ok", "ok"]), err
    assert here[0].figures["breaks_before"] > here[0].figures["breaks_after"] == 0

    for name in ("one", "two"):
        cluster.worker(name)
    flag.parent.mkdir()
    call = started(tmp_path, "there.jsonl", "--scheduler", cluster.address)
    wait_for(flag.exists, call)
    name, pid = flag.read_text().split()
    cluster.kill(name)
    status, there, err = ended(call)
    assert status == 0, err
    assert said(there) == said(here)
    assert [row.tries for row in there] == [2, 1]
    assert {row.machine for row in there} == {row.machine for row in here}
    assert len((tmp_path / "there.jsonl").read_text().splitlines()) == 2
    wait_for(lambda: not alive(int(pid)), cluster.processes["scheduler"])  # type: ignore[arg-type]

    flag.unlink()
    call = started(tmp_path, "there.jsonl", "--scheduler", cluster.address, "--again", "--only", "zoo")
    wait_for(flag.exists, call)
    cluster.kill("scheduler")
    status, rows, err = ended(call)
    assert (status, rows) == (2, [])
    assert f"fleet: error: the scheduler at {cluster.address} is gone; 0 of 1 rows are kept in there.jsonl" in err
    assert "Traceback" not in err

    status, rows, err = ended(started(tmp_path, "there.jsonl"))  # goes on here
    assert (status, said(rows)) == (0, said(here))
    assert "2 kept in there.jsonl, 0 to do on this machine" in err


def test_nobody_at_the_address_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduled, "_CONNECT_SECONDS", 0.5)
    with pytest.raises(FleetError, match=r"^no scheduler answers at tcp://127\.0\.0\.1:9: "):
        scheduled.connected("tcp://127.0.0.1:9")
