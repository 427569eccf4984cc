"""What is mutated: the rules' executed examples, with the places and kinds of values at every point of their code."""

from __future__ import annotations

import ast
import difflib
import re
import sys
import types
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import torch

from patcher.edit.engine import patch
from patcher.harness.examples import PREAMBLE
from patcher.results import PatchResult
from patcher.settings import Settings
from rules import load_rules
from tests.fuzz.execute import AS_IT_IS, observe

RULES = tuple(load_rules())
OLDEST_TORCH = (2, 6)  # there, no rule rests because its pattern no longer breaks


@dataclass(frozen=True, eq=False)
class Seed:
    """An executed example. ``rewritten``: a safe fix is made in it as it stands."""

    code: str
    title: str
    source: str
    run: str
    settings: Settings
    rewritten: bool


@dataclass(frozen=True)
class Place:
    """A name, an attribute of ``self`` or an element, with the kinds of its values (letters of `kind_of`)."""

    spelled: str
    kinds: str
    attribute: str = ""
    touched: bool = False


@dataclass(frozen=True)
class Point:
    """A place for a statement: before line ``line`` (from 1) of the seed, with this indentation, in ``function``.

    ``touched``: how near the fix is: 2 beside a line that it changes, 1 in the same function.
    """

    line: int
    indent: int
    function: ast.FunctionDef
    places: tuple[Place, ...]
    touched: int


@dataclass(frozen=True)
class Surveyed:
    """A seed taken apart: its points, the runs of statements that can be wrapped, functions and classes."""

    seed: Seed
    lines: tuple[str, ...]
    points: tuple[Point, ...]
    functions: tuple[ast.FunctionDef, ...]
    classes: tuple[ast.ClassDef, ...]
    attributes: tuple[str, ...]


def patched(text: str, settings: Settings) -> PatchResult:
    """What all rules make of the text."""
    return patch(text, "example.py", RULES, settings)


@cache
def patched_seed(seed: Seed) -> str:
    """What the rule of the seed makes of it as it stands."""
    return patched(PREAMBLE + seed.source, replace(seed.settings, select=(seed.code,))).text


@lru_cache(maxsize=1)
def seeds() -> tuple[Seed, ...]:
    """The examples of all rules that are run, in the order of the rules; not those that are an error as they stand."""
    found = []
    for rule in RULES:
        for example in (e for e in rule.invalid if not e.raises):
            settings = Settings(
                strategies=example.strategies,
                target_torch=OLDEST_TORCH,
                evidence=tuple(replace(v, path="example.py") for v in example.evidence),
                extents=tuple(e._replace(path="example.py") for e in example.extents),
                torch_settings=example.torch_settings,
            )
            rewritten = example.after is not None and not example.unsafe
            found.append(Seed(rule.code, example.title, example.before, example.run, settings, rewritten))
    return tuple(found)


def kind_of(value: object) -> str:
    """F, I, B: a floating, integer, boolean tensor; n: a number; l: a list or tuple; d: a dict; 0: None; o: other.

    ``self`` is an m where it is a module.
    """
    if isinstance(value, torch.Tensor):
        return "B" if value.dtype == torch.bool else "F" if value.is_floating_point() else "I"
    if isinstance(value, (bool, int, float)):
        return "n"
    return (
        "l" if isinstance(value, (list, tuple)) else "d" if isinstance(value, dict) else "0" if value is None else "o"
    )


@cache
def surveyed(seed: Seed) -> Surveyed:
    """The seed with its points, and what was seen at them in one run."""
    tree = ast.parse(seed.source)
    lines = tuple(seed.source.split("\n"))
    changed = _changed(seed)
    words = {word for line in changed for word in re.findall(r"\w+", lines[line - 1])} if changed else set()
    seen = _watched(seed, tree)
    functions = tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    points: list[Point] = []
    for function in functions:
        inside = bool(changed & set(range(function.lineno, (function.end_lineno or 0) + 1)))
        whole: dict[str, str] = {}
        for body in _bodies(function):
            for statement in body:
                for name, kinds in seen.get(_start(statement), {}).items():
                    whole[name] = _merged(whole.get(name, ""), kinds)
        for body in _bodies(function):
            for statement in body:
                if lines[statement.lineno - 1][: statement.col_offset].strip():
                    continue
                spans = [(_start(statement), seen.get(_start(statement), whole))]
                if statement is body[-1] and not isinstance(
                    statement, (ast.Return, ast.Raise, ast.Continue, ast.Break)
                ):
                    spans.append(((statement.end_lineno or 0) + 1, seen.get(-_start(statement), whole)))
                for line, kinds in spans:
                    near = inside + any(abs(line - at) <= 2 for at in changed) * inside
                    places = tuple(_places(kinds, words))
                    points.append(Point(line, statement.col_offset, function, places, near))
    attributes = {p.attribute: None for point in points for p in point.places if p.attribute}
    classes = tuple(node for node in tree.body if isinstance(node, ast.ClassDef))
    return Surveyed(seed, lines, tuple(points), functions, classes, tuple(attributes))


def _bodies(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    """The function's blocks, those of functions inside not among them."""
    stack: list[ast.AST] = [function]
    while stack:
        node = stack.pop()
        for name in ("body", "orelse", "finalbody", "handlers"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            if name != "handlers":
                skip = bool(block) and isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant)
                rest = block[1:] if skip and node is function else block
                is_elif = name == "orelse" and len(rest) == 1 and isinstance(rest[0], ast.If)
                if rest and not (is_elif and rest[0].col_offset == getattr(node, "col_offset", -1)):
                    yield rest
            stack += [s for s in block if not isinstance(s, (ast.FunctionDef, ast.ClassDef))]


def _start(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def _changed(seed: Seed) -> set[int]:
    """The lines of the seed that the safe fixes change, from 1."""
    after = patched_seed(seed)
    before = (PREAMBLE + seed.source).split("\n")
    skip = PREAMBLE.count("\n")
    found = set()
    for kind, low, high, _, _ in difflib.SequenceMatcher(None, before, after.split("\n"), autojunk=False).get_opcodes():
        if kind != "equal":
            found |= {line + 1 - skip for line in range(low, max(high, low + 1))}
    return {line for line in found if 1 <= line <= len(before) - skip}


def _merged(a: str, b: str) -> str:
    return "".join(sorted({*a, *b}))


def _places(kinds: Mapping[str, str], words: set[str]) -> Iterator[Place]:
    for name, letters in sorted(kinds.items()):
        head, _, attribute = name.partition(".")
        touched = (attribute.split("[")[0] or head.split("[")[0]) in words
        yield Place(name, letters, attribute.split("[")[0] if head == "self" else "", touched)


def _watched(seed: Seed, tree: ast.Module) -> dict[int, dict[str, str]]:
    """By the line that a statement starts at: what its names hold before it (and, negated, after it)."""
    starts: dict[int, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            for line in range(_start(node), (node.end_lineno or 0) + 1):
                starts[line] = max(starts.get(line, 0), _start(node))
    seen: defaultdict[int, dict[str, str]] = defaultdict(dict)
    skip = PREAMBLE.count("\n")
    last: dict[int, int] = {}

    def note(line: int, frame: types.FrameType) -> None:
        for name, kinds in _kinds(frame.f_locals):
            seen[line][name] = _merged(seen[line].get(name, ""), kinds)

    def trace(frame: types.FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith("<fuzz"):
            return None
        line = starts.get(frame.f_lineno - skip, 0)
        if event in {"line", "return"} and line:
            key = id(frame)
            if event == "line":
                note(line, frame)
            if last.get(key, line) != line:
                note(-last[key], frame)
            last[key] = line
            if event == "return":
                last.pop(key, None)
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        observe(PREAMBLE + seed.source, seed.run, AS_IT_IS)
    finally:
        sys.settrace(previous)
    return dict(seen)


def _kinds(names: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in names.items():
        if name == "self":
            yield name, "m" if isinstance(value, torch.nn.Module) else "o"
            held = dict(vars(value)) if hasattr(value, "__dict__") else {}
            if isinstance(value, torch.nn.Module):
                held = {**held.pop("_parameters", {}), **held.pop("_buffers", {}), **held}
                held = {k: v for k, v in held.items() if not k.startswith("_") or k not in vars(torch.nn.Module())}
                held.pop("training", None)
            for attribute, inner in held.items():
                if attribute.isidentifier():
                    yield from _with_elements(f"self.{attribute}", inner)
        elif name.isidentifier() and not isinstance(value, (types.ModuleType, type)):
            yield from _with_elements(name, value)


def _with_elements(name: str, value: object) -> Iterator[tuple[str, str]]:
    yield name, kind_of(value)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (torch.Tensor, int)):
        yield f"{name}[0]", kind_of(value[0])
        yield f"{name}[-1]", kind_of(value[-1])
    if isinstance(value, dict):
        for key, inner in list(value.items())[:3]:
            if isinstance(key, str) and isinstance(inner, torch.Tensor):
                yield f"{name}[{key!r}]", kind_of(inner)
