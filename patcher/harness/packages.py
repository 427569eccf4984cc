"""Where an installed package has its files, without importing it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

_SECONDS = 60.0

# The finders are asked level by level, so that no package above the wanted one is imported. The working folder, which
# ``-c`` puts first, is no place where packages are installed.
_SCRIPT = """
import sys
if sys.path and not sys.path[0]:
    del sys.path[0]
import importlib.machinery, importlib.util, json
parts = sys.argv[1].split(".")
found, spec = 0, importlib.util.find_spec(parts[0])
while spec is not None:
    found += 1
    below = spec.submodule_search_locations
    below = None if below is None else list(below)
    if found == len(parts):
        break
    spec = None if below is None else importlib.machinery.PathFinder.find_spec(parts[found], below)
print(json.dumps({
    "found": found,
    "origin": spec and spec.origin,
    "folders": below if spec else None,
    "ours": parts[0] in getattr(sys, "stdlib_module_names", ()) or parts[0] in sys.builtin_module_names,
}))
"""


class PackageError(Exception):
    """A package that is not there, or whose source cannot be patched; the message is one line."""


def locate(name: str, python: str) -> Path:
    """The folder of the package ``name`` (dotted: a part of one), or the file of a module, as ``python`` finds it.

    Nothing of the package is executed. Raises ``PackageError``.
    """
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise PackageError(f"{name!r} is no name of a package")
    told = _asked(name, python)
    if told["ours"]:
        raise PackageError(f"{parts[0]!r} is a part of Python, not an installed package")
    if not told["found"]:
        raise PackageError(f"no package {parts[0]!r} is installed for {python}")
    if told["found"] < len(parts):
        raise PackageError(f"there is no {parts[told['found']]!r} in package {'.'.join(parts[: told['found']])!r}")
    origin = told["origin"]
    if origin is None:
        what = "is a namespace package, which has no files of its own; name a package in it"
        raise PackageError(f"{name!r} {what if told['folders'] else 'has no files'}")
    file = Path(origin)
    if not file.is_file():
        raise PackageError(f"{name!r} is not installed as files but inside of {origin}")
    if file.suffix != ".py":
        raise PackageError(f"{name!r} is compiled, there is no Python source: {origin}")
    return file.parent if told["folders"] is not None else file


def _asked(name: str, python: str) -> dict[str, Any]:
    command = [python, "-c", _SCRIPT, name]
    try:
        ended = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False, encoding="utf-8"
        )
        told = json.loads(ended.stdout.strip().rpartition("\n")[2])  # what a .pth file prints comes before
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PackageError(f"{python} cannot be asked for packages: {getattr(error, 'strerror', error)}") from None
    except ValueError:
        last = (ended.stderr.strip().rpartition("\n")[2] or f"exit status {ended.returncode}").strip()
        raise PackageError(f"{python} cannot be asked for package {name!r}: {last}") from None
    assert isinstance(told, dict)
    return told
