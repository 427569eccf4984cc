"""Folders for temporary files: named for this process, and gone with it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_SECONDS = 60.0  # after which a folder is locked by its process, if that is there still


def scratch_folder() -> Path:
    """Make a folder that is locked as long as this process runs; those of processes that were killed are removed."""
    made = Path(tempfile.mkdtemp(prefix=f"fix-compile-{os.getpid()}-"))
    if importlib.util.find_spec("fcntl") is None:  # as on Windows
        return made
    _locked(made)
    for old in made.parent.glob("fix-compile-[0-9]*-*"):
        with contextlib.suppress(OSError):  # another user's, or one that is in use
            if time.time() - old.stat().st_mtime > _SECONDS:
                os.close(_locked(old))
                shutil.rmtree(old, ignore_errors=True)
    return made


def _locked(folder: Path) -> int:
    """Lock a folder until the process ends. Raises ``OSError`` where another process has locked it."""
    fcntl, handle = importlib.import_module("fcntl"), os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Such a folder, as long as it is needed."""
    folder = scratch_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
