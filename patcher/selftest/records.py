"""What selftest remembers in the user's cache folder: records of executed examples, and what came of each rule.

``selftest/records/`` holds a file for each example that was executed, named by the hash of all that its outcome depends
on. ``selftest/torch-VERSION.json`` holds what came of each rule on that version. All of it may be removed at any time.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patcher.files.kept import read_json, user_folder, write_json
from patcher.rule import Rule
from patcher.selftest.executing import PROGRAM, Interpreter


@dataclass(frozen=True)
class Measured:
    """``told``: of each rule that was tried there, by its code: ``helps (6 of 7 examples)``; ``wrong``: of which."""

    torch: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()

    @property
    def minor(self) -> tuple[int, int]:
        """The version as ``--target-torch`` has it; (0, 0) when there is none."""
        found = re.match(r"(\d+)\.(\d+)", self.torch)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def line(self, code: str) -> str:
        """``measured on your torch 2.11.0: helps (6 of 7 examples)``, or nothing."""
        return f"measured on your torch {self.torch}: {self.told[code]}" if code in self.told else ""

    @property
    def lines(self) -> dict[str, str]:
        """`line` of each rule that was tried, by code."""
        return {code: self.line(code) for code in self.told}

    def distrusted(self, target: tuple[int, int]) -> dict[str, str]:
        """The rules that may not fix for this target, by code, and why. What was measured on another says nothing."""
        if target != self.minor:
            return {}
        return dict.fromkeys(self.wrong, f"`fix-compile selftest` has found this fix wrong on your torch {self.torch}")


def measured(rules: Sequence[Rule]) -> Measured:
    """What is kept of these rules for the torch that is installed beside the tool, which is not imported."""
    if not os.path.isdir(folder()):  # noqa: PTH112 - the usual case, and nothing more is done
        return Measured()
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return Measured()
    known = results(torch)
    valid = {
        rule.code: known[rule.code]
        for rule in rules
        if rule.code in known and known[rule.code].get("digest") == rule_digest(rule)
    }
    return Measured(
        torch=torch,
        told={code: str(result.get("told", "")) for code, result in valid.items()},
        wrong=frozenset(code for code, result in valid.items() if result.get("verdict") == "wrong"),
    )


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
        found = read_json(self._path(request))
        return found if found is not None and ("error" in found or "difference" in found) else None

    def write(self, request: Json, record: Json) -> None:
        """Keep a record; a folder that cannot be written is no reason to fail."""
        write_json(self._path(request), record)

    def _path(self, request: Json) -> Path:
        text = json.dumps([*self._made_by, request], sort_keys=True)
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / name[:2] / f"{name[2:]}.json"


def results(torch: str) -> Mapping[str, Json]:
    """What came of each rule, by its code, on this version of torch."""
    document = read_json(_results_path(torch)) or {}
    rules = document.get("rules")
    return {c: r for c, r in rules.items() if isinstance(r, dict)} if isinstance(rules, dict) else {}


def keep_results(torch: str, told: Iterable[tuple[str, Json]]) -> None:
    """Keep what came of these rules; what is kept of others stays."""
    write_json(_results_path(torch), {"torch": torch, "rules": {**results(torch), **dict(told)}})


def _results_path(torch: str) -> Path:
    return folder() / f"torch-{re.sub(r'[^A-Za-z0-9.+_-]', '_', torch)}.json"
