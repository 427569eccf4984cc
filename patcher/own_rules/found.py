"""The rules that other installed packages bring: entry points of the group ``fix_compile.rules``.

An entry point names a rule class, a module, or a package: every rule that is defined in it, or in a module of it, is
found there. What cannot be used is a line that says why, and all else is used.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.metadata
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from patcher.results import is_own_code
from patcher.rule import Example, NearMiss, Rule

GROUP = "fix_compile.rules"
CODE = re.compile(r"[A-Z]{2,8}\d{3,4}")
NAME = re.compile(r"[a-z]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class OwnRules:
    """What was found. ``origins``: the package of each rule by its code, as ``acme-rules 1.0``.

    ``packages``: the codes that each package brings, by the names that it goes by: its own and its entry points'.
    ``problems``: a line for each rule, or entry point, that cannot be used.
    """

    rules: tuple[Rule, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


#: Nothing but what this project brings itself.
NO_OWN_RULES = OwnRules()


def own_rules(ours: Sequence[Rule]) -> OwnRules:
    """The rules of other packages, by code. None takes a code or name of ``ours``, or of a package before it."""
    rules: dict[str, Rule] = {}
    origins: dict[str, str] = {}
    packages: dict[str, list[str]] = {}
    problems: list[str] = []
    names = {rule.name: rule.code for rule in ours}
    for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda e: (_package(e), e.name)):
        origin = _origin(entry)
        codes = [packages.setdefault(name, []) for name in dict.fromkeys((entry.name, _package(entry)))]
        for found in _loaded(entry):
            if isinstance(found, str):
                problems.append(f"{origin}: {found}")
                continue
            rule = found()
            if any(type(known) is found for known in rules.values()):  # two entry points that lead to one rule
                pass
            elif rule.code in rules:
                problems.append(f"{origin}: {_told(found)}: {rule.code} is taken by {origins[rule.code]}")
                continue
            elif rule.name in names:
                problems.append(f"{origin}: {_told(found)}: the name {rule.name!r} is taken by {names[rule.name]}")
                continue
            else:
                rules[rule.code], origins[rule.code], names[rule.name] = rule, origin, rule.code
            for listed in codes:
                listed.append(rule.code)
    return OwnRules(
        tuple(rules[code] for code in sorted(rules)),
        origins,
        {name: tuple(dict.fromkeys(listed)) for name, listed in packages.items()},
        tuple(problems),
    )


def _package(entry: importlib.metadata.EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.name


def _origin(entry: importlib.metadata.EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.name


def _loaded(entry: importlib.metadata.EntryPoint) -> Iterator[type[Rule] | str]:
    """The rule classes that ``entry`` leads to, each fit to be used, and a line for each thing that is not."""
    loaded = _tried(entry.load)
    if isinstance(loaded, str):
        yield f"{entry.value} cannot be loaded: {loaded}"
    elif isinstance(loaded, type):
        yield _why_not(loaded) or loaded
    elif isinstance(loaded, ModuleType):
        classes = 0
        for module in _modules(loaded):
            if isinstance(module, str):
                yield module
                classes += 1
                continue
            for kind in _rules_in(module):
                yield _why_not(kind) or kind
                classes += 1
        if not classes:
            yield f"{entry.value} defines no rule (a class that derives from fix_compile.Rule, with a code)"
    else:
        yield f"{entry.value} is neither a rule nor a module with rules"


def _modules(top: ModuleType) -> Iterator[ModuleType | str]:
    """``top`` and, where it is a package, the modules in it; a line for each that cannot be imported."""
    yield top
    for found in pkgutil.walk_packages(getattr(top, "__path__", ()), f"{top.__name__}.", onerror=lambda name: None):
        module = _tried(lambda name=found.name: importlib.import_module(name))
        yield f"{found.name} cannot be imported: {module}" if isinstance(module, str) else module


def _tried(load: Any) -> Any:
    """What ``load`` gives, or the line of what it raised. What is printed meanwhile is no part of our output."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return load()
    except (Exception, SystemExit) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _rules_in(module: ModuleType) -> list[type[Any]]:
    """The classes with a code that are defined there."""
    own = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]
    return [kind for kind in own if getattr(kind, "code", None) is not None and not inspect.isabstract(kind)]


def _why_not(kind: type[Any]) -> str:
    """Why a class cannot be used as a rule, in a line; "" when it can."""
    if Rule not in kind.__mro__:
        return f"{_told(kind)} does not derive from fix_compile.Rule"
    missing = [name for name in Rule.__annotations__ if not hasattr(kind, name)]
    if missing:
        return f"{_told(kind)} does not say its {', '.join(missing)}"
    if not isinstance(kind.code, str) or not CODE.fullmatch(kind.code):
        return f"{_told(kind)}: a code is capital letters and three or four digits (FC901), not {kind.code!r}"
    if is_own_code(kind.code):
        return f"{_told(kind)}: {kind.code} is not free, for FC0 to FC8 belong to fix-compile; take FC900 to FC999"
    wrong = [what for what, holds in _demands(kind).items() if not holds]
    if wrong:
        return f"{_told(kind)}: {wrong[0]}"
    made = _tried(kind)
    return f"{_told(kind)} cannot be made: {made}" if isinstance(made, str) else ""


def _demands(kind: type[Any]) -> dict[str, bool]:
    return {
        "a name is words with hyphens between them (slow-call)": _is(kind.name, NAME),
        "triggers must be a tuple of bytes, and not empty": _all(kind.triggers, bytes),
        "listens_to must be a tuple of classes of ast, and not empty": (
            _all(kind.listens_to, type) and all(issubclass(node, ast.AST) for node in kind.listens_to)
        ),
        "invalid must be a tuple of Example, and not empty": _all(kind.invalid, Example),
        "valid must be a tuple of NearMiss, and not empty": _all(kind.valid, NearMiss),
        "check must be its own": kind.check is not Rule.check,
    }


def _is(text: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(text, str) and bool(pattern.fullmatch(text))


def _all(items: object, kind: type) -> bool:
    return isinstance(items, tuple) and bool(items) and all(isinstance(item, kind) for item in items)


def _told(kind: type[Any]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
