"""Where jobs are done: the slots, and the versions of PyTorch there."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from patcher.fleet.row import Job
from patcher.fleet.slots import Slot

#: Modules of the working folder, which ``-c`` puts first, are none of this Python.
_TORCH = "import sys; sys.path[:] = filter(None, sys.path); import importlib.metadata as m; print(m.version('torch'))"


@dataclass(frozen=True)
class Places:
    """``torches``: the versions of PyTorch there. ``told``: what they are, in a line. ``close``: when all is done."""

    slots: tuple[Slot, ...]
    torches: frozenset[str]
    told: str
    close: Callable[[], None] = lambda: None


def here(jobs: Sequence[Job], slots: Sequence[Slot]) -> Places:
    """The slots of one machine, the one that runs this."""
    torches = {version for python in {job.model.wish.python for job in jobs} if (version := torch_of(python))}
    return Places(tuple(slots), frozenset(torches), f"this machine, {len(slots)} at a time")


def torch_of(python: str) -> str:
    """The version of torch that a Python has, which is not imported; "" for none."""
    if not python or python == sys.executable:
        try:
            return importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            return ""
    try:
        told = subprocess.run([python, "-c", _TORCH], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told.stdout.strip() if told.returncode == 0 else ""
