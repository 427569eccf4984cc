"""What selftest remembers in the user's cache folder: records of executed examples, and what came of each rule.

``selftest/records/`` holds a file for each example that was executed, named by the hash of all that its outcome depends
on. ``selftest/torch-VERSION.json`` holds what came of each rule on that version. All of it may be removed at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from patcher.files.kept import user_folder
from patcher.rule import Rule
from patcher.selftest.executing import PROGRAM, Interpreter

Json = dict[str, Any]


def folder() -> Path:
    """``selftest`` in the folder that the tool has for this user."""
    return user_folder() / "selftest"


def program_digest() -> str:
    """Of the program that executes examples: records of another one are not read."""
    texts = (path.read_bytes() for path in (PROGRAM, PROGRAM.with_name("listener.py")))
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def rule_digest(rule: Rule) -> str:
    """Of a rule's examples: what came of others says nothing about it."""
    told = [[e.title, e.before, e.after, e.run, e.gain, e.compiles] for e in rule.invalid]
    return hashlib.sha256(json.dumps(told).encode("utf-8", "surrogatepass")).hexdigest()


class Records:
    """The records that were made by one interpreter with one program."""

    def __init__(self, made_by: Interpreter, program: str) -> None:
        self._folder = folder() / "records"
        self._made_by = (made_by.torch, made_by.python, program)

    def read(self, request: Json) -> Json | None:
        """The record of this request, if there is one."""
        found = _read(self._path(request))
        return found if found is not None and ("error" in found or "difference" in found) else None

    def write(self, request: Json, record: Json) -> None:
        """Keep a record; a folder that cannot be written is no reason to fail."""
        _write(self._path(request), record)

    def _path(self, request: Json) -> Path:
        text = json.dumps([*self._made_by, request], sort_keys=True)
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / name[:2] / f"{name[2:]}.json"


def results(torch: str) -> Mapping[str, Json]:
    """What came of each rule, by its code, on this version of torch."""
    document = _read(_results_path(torch)) or {}
    rules = document.get("rules")
    return {c: r for c, r in rules.items() if isinstance(r, dict)} if isinstance(rules, dict) else {}


def keep_results(torch: str, told: Iterable[tuple[str, Json]]) -> None:
    """Keep what came of these rules; what is kept of others stays."""
    _write(_results_path(torch), {"torch": torch, "rules": {**results(torch), **dict(told)}})


def _results_path(torch: str) -> Path:
    return folder() / f"torch-{re.sub(r'[^A-Za-z0-9.+_-]', '_', torch)}.json"


def _read(path: Path) -> Json | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write(path: Path, value: Json) -> None:
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(value, file)
        Path(file.name).replace(path)
