"""Jobs of the harness's worker, for the tests that ask for them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jobs import Jobs


@pytest.fixture(scope="session")
def server() -> Iterator[subprocess.Popen[str]]:
    """One interpreter for all jobs."""
    from jobs import serving

    with serving() as process:
        yield process


@pytest.fixture
def jobs(server: subprocess.Popen[str], tmp_path: Path) -> Iterator[Jobs]:
    """Runs jobs; no byte code is left behind by any of them."""
    from jobs import Jobs

    yield Jobs(server, tmp_path)
    assert list(tmp_path.rglob("__pycache__")) == []
