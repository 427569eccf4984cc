"""What earlier runs have worked out, kept in files of the user's cache folder. A file that is damaged is not there."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import hashlib
import importlib
import io
import json
import os
import pickle
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

_MARK = b"fix-compile 1\n"
_MOST_FILES = 40
_OURS = ("patcher.results", "patcher.patching.reuse", "patcher.facts.")


def default_folder() -> Path:
    """Where results of runs are kept."""
    return user_folder() / "results"


def user_folder() -> Path:
    """``FIX_COMPILE_CACHE``, else ``fix-compile`` where the user's caches are; never in a project."""
    if own := os.environ.get("FIX_COMPILE_CACHE"):
        return Path(own).absolute()
    where = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    base = Path(os.environ.get(where) or os.path.expanduser("~/.cache"))  # noqa: PTH111 - "~" may stay as it is
    return base.absolute() / "fix-compile"


@contextlib.contextmanager
def alone(root: str, waiting: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of the project ``root``, which the system frees when a process ends.

    ``waiting``: is told the id of the process that holds it, once. Without locks, as on Windows, nobody waits.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(ImportError, OSError):
            fcntl, folder = importlib.import_module("fcntl"), user_folder() / "locks"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = hashlib.sha256(root.encode("utf-8", "surrogatepass")).hexdigest()[:32]
            file = held.enter_context((folder / name).open("a+", encoding="utf-8"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                waiting(file.read())
                fcntl.flock(file, fcntl.LOCK_EX)
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
        yield


def load(folder: Path, name: str) -> Any:
    """The value that was saved under ``name``, or None."""
    try:
        data = (folder / name).read_bytes()
        mark, digest, content = data[: len(_MARK)], data[len(_MARK) :][:32], data[len(_MARK) + 32 :]
        if mark != _MARK or hashlib.sha256(content).digest() != digest:
            return None
        with contextlib.suppress(OSError):
            os.utime(folder / name)  # the oldest are removed first
        return _Unpickler(io.BytesIO(content)).load()
    except Exception:  # whatever is wrong with it: the answer can be worked out
        return None


def save(folder: Path, name: str, value: Any) -> None:
    """Keep ``value``, made of frozen dataclasses and Python's containers; where that fails, nothing happens."""
    temporary = folder / f"{name}.{secrets.token_hex(4)}.tmp"
    try:
        content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            temporary.write_bytes(_MARK + hashlib.sha256(content).digest() + content)
            temporary.replace(folder / name)
        finally:
            temporary.unlink(missing_ok=True)
        by_age = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in by_age[_MOST_FILES:]:
            file.unlink()
    except (OSError, pickle.PicklingError):
        return


def read_json(path: Path) -> dict[str, Any] | None:
    """The document in a file; None where there is none that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Replace a file whole; one that cannot be written is no reason to fail."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(document, file)
        Path(file.name).replace(path)


class _Unpickler(pickle.Unpickler):
    """Makes values of our own frozen types only, so that reading a file cannot run code."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith(_OURS):
            found = super().find_class(module, name)
            is_value = isinstance(found, type) and (
                dataclasses.is_dataclass(found) or issubclass(found, (tuple, enum.Enum))
            )
            if is_value and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name}")
