"""Functions whose sines have the dtype of the timestep that they are the sines of."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.tables.wording import words

_TIMES = frozenset({"t", "time", "times", "timestep", "timesteps"})
_RANGES = frozenset({"arange", "linspace", "logspace"})
_CASTS = frozenset({"to", "type", "type_as"})


def sines_cast_back(function: FunctionNode, nodes: Iterable[ast.AST]) -> bool:
    """Whether ``function`` embeds a timestep, its first parameter, in the dtype that it came in: ``emb.to(t)``."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args) if a.arg not in ("self", "cls")]
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    called = {last_name(c.func) for c in calls}
    if not names or _TIMES.isdisjoint(words(names[0])) or not {"sin", "cos"} <= called or called.isdisjoint(_RANGES):
        return False
    casts = (c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in _CASTS)
    return any(_is_of(given, names[0]) for c in casts for given in (*c.args, *(k.value for k in c.keywords)))


def _is_of(e: ast.expr, name: str) -> bool:
    """Whether ``e`` is the parameter ``name``, or its dtype."""
    held = e.value if isinstance(e, ast.Attribute) and e.attr == "dtype" else e
    return isinstance(held, ast.Name) and held.id == name
