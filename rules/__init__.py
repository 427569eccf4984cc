"""The rules: one file each, or one folder with ``rule.py``. What is put here is found: there is no list to keep."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil

from patcher.rule import Rule


def load_rules() -> tuple[Rule, ...]:
    """One instance of each rule, sorted by code. Raises ``TypeError`` for a file that does not define exactly one."""
    found = [f"{__name__}.{m.name}{'.rule' if m.ispkg else ''}" for m in pkgutil.iter_modules(__path__)]
    names = [name for name in found if importlib.util.find_spec(name) is not None]
    return tuple(sorted(map(_rule_in, names), key=lambda rule: rule.code))


def _rule_in(module_name: str) -> Rule:
    module = importlib.import_module(module_name)
    own = [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type) and thing.__module__ == module_name and isinstance(getattr(thing, "code", None), str)
    ]
    if len(own) != 1:
        raise TypeError(f"{module_name} must define exactly one rule (a class with a code), not {len(own)}")
    rule: Rule = own[0]()
    return rule
