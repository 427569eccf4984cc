"""What a worker of a cluster does: unpack a plan, run it with its own Python, send the results back.

It is sent as it stands to machines that have torch and Dask distributed, and nothing of ours. Standard library only,
but for Dask, which a worker has anyway.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

from distributed import get_worker
from distributed.utils import sync

# ends with the worker, also when that is killed: prctl(PR_SET_PDEATHSIG, SIGKILL), on Linux
_START = """
import ctypes, runpy, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_TAIL = 3  # lines of what a plan that ended without results has said


def about() -> dict[str, str]:
    """The machine of a worker, and the torch that its Python has ("" for none), which is not imported."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = ""
    return {"host": platform.node(), "torch": torch, "python": sys.executable}


def errand(packed: bytes, topics: list[str], most: int, limit: float) -> dict[str, Any]:
    """Measure a plan.

    ``packed``: its folder as a ZIP archive. ``topics``: where it is said that it has begun; the first is its own, and
    when that has ``most`` entries already, nothing is done. ``limit``: seconds for everything.

    Returns ``results`` (``results.json``, compressed), or ``given_up``, or ``wrong``, a line; and ``host``.
    """
    host = platform.node()
    worker = get_worker()
    if len(sync(worker.loop, worker.scheduler.events, topic=topics[0])) >= most:
        return {"given_up": True, "host": host}
    told = {"task": topics[0], "host": host, "worker": worker.address, "name": str(worker.name)}
    sync(worker.loop, worker.scheduler.log_event, topic=topics, msg=told)
    folder = Path(tempfile.mkdtemp(prefix="fix-compile-", dir=worker.local_directory))
    try:
        return {**measured(packed, folder, limit), "host": host, "worker": worker.address}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measured(packed: bytes, folder: Path, limit: float) -> dict[str, Any]:
    """Unpack a plan into ``folder`` and run it there."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(folder)
    results, log = folder / "results.json", folder / "said.txt"
    # run.py does what "worker.py plan.json" does, and does not import torch only to start who does
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, "run.py", "plan.json"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            return {"wrong": f"did not end within {limit:.0f} seconds"}
        finally:
            _end(process)
    if process.returncode or not results.is_file():
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_TAIL:]
        return {"wrong": f"ended with status {process.returncode} and no results: {' / '.join(lines)}"}
    return {"results": zlib.compress(results.read_bytes())}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let it end what it has started; then end it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(number)
            until = time.monotonic() + 10
            while process.poll() is None and time.monotonic() < until:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
