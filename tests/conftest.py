"""What all tests share: where outcomes are kept, and jobs of the harness's worker for those that ask for them."""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from forked import Shared
    from jobs import Jobs

_ROOT = Path(__file__).resolve().parent.parent
#: Outcomes of executed sources outlive a run (``tests/dynamo.py``); what the tool remembers of its users does not get
#: into the tests.
os.environ.setdefault("FIX_COMPILE_TEST_CACHE", os.environ.get("FIX_COMPILE_CACHE") or str(_ROOT / ".cache"))
os.environ["FIX_COMPILE_CACHE"] = str(_ROOT / ".cache" / "nothing")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long begins first."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """What is there before the first test is not looked through for garbage again, also when a scan is over."""
    gc.collect()
    gc.freeze()
    gc.freeze = gc.unfreeze = lambda: None


@pytest.fixture(autouse=True)
def nothing_kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each test starts with a tool that remembers nothing."""
    before = os.environ["FIX_COMPILE_CACHE"]
    own = f"{os.getpid()}-{id(request.node)}"
    os.environ["FIX_COMPILE_CACHE"] = str(tmp_path_factory.getbasetemp() / "kept" / own)
    yield
    os.environ["FIX_COMPILE_CACHE"] = before


@pytest.fixture(scope="session")
def server() -> Iterator[subprocess.Popen[str]]:
    """One interpreter for all jobs."""
    from jobs import serving

    with serving() as process:
        yield process


@pytest.fixture(scope="session")
def shared() -> Iterator[Shared]:
    """One parent for the processes of all runs of the harness."""
    from forked import Shared

    parent = Shared()
    yield parent
    parent.close()


@pytest.fixture
def one_parent(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test measures runs in forks of the parent that is there already."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr("patcher.harness.run.forking", lambda python: shared)
    monkeypatch.setattr("patcher.diagnose.bench.forking", lambda python: shared)


@pytest.fixture
def jobs(server: subprocess.Popen[str], tmp_path: Path) -> Iterator[Jobs]:
    """Runs jobs; no byte code is left behind by any of them."""
    from jobs import Jobs

    yield Jobs(server, tmp_path)
    assert list(tmp_path.rglob("__pycache__")) == []
