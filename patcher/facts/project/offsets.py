"""Numbers that only say where something starts: ``arange(n, n + t)``, ``table[n : n + t]``. A tensor would do."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from patcher.facts.flow.definitions import Flow
from patcher.facts.syntax.tree import FunctionNode, Syntax
from patcher.facts.syntax.written import all_parameters


@dataclass(frozen=True)
class Offset:
    """One use: ``at`` is the call of arange, or the subscript, of which ``part`` is the moving slice.

    ``start``: the number. ``size``: how many there are from it on.
    """

    at: ast.Call | ast.Subscript
    start: ast.Name
    size: ast.expr
    part: ast.Slice | None = None


def offsets(names: Iterable[ast.Name], syntax: Syntax) -> list[Offset] | None:
    """What the reads ``names`` of one number are for; None when one of them is for something else."""
    found: dict[ast.AST, Offset] = {}
    for name in names:
        use = _of_start(name, syntax) or _of_end(name, syntax)
        if use is None:
            return None
        found[use.at] = use
    return list(found.values())


def offset_parameters(function: FunctionNode, syntax: Syntax) -> frozenset[str]:
    """The parameters that are used in no other way."""
    aranges = [c for c in syntax.own(function, ast.Call) if isinstance(c, ast.Call) and len(c.args) == 2]
    subscripts = [s for s in syntax.own(function, ast.Subscript) if isinstance(s, ast.Subscript)]
    slices = [n for s in subscripts for n in _elements(s.slice) if isinstance(n, ast.Slice)]
    starts = [c.args[0] for c in aranges if _is_arange(c, syntax)] + [s.lower for s in slices if s.lower and s.upper]
    named = {e.id for e in starts if isinstance(e, ast.Name)}
    own = [p for p in all_parameters(function.args) if p.arg in named]
    if not own:
        return frozenset()
    flow = Flow(function)
    found = set()
    for p in own:
        definition = flow.by_node.get(p)
        uses = flow.uses.get(definition, []) if definition is not None else []
        if uses and p.arg not in flow.captured | flow.shared and offsets(uses, syntax) is not None:
            found.add(p.arg)
    return frozenset(found)


def _elements(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _is_arange(call: ast.AST, syntax: Syntax) -> bool:
    return isinstance(call, ast.Call) and syntax.qualified(call.func) == "torch.arange"


def _of_start(name: ast.Name, syntax: Syntax) -> Offset | None:
    match parent := syntax.parents[name]:
        case ast.Call(args=[start, end]) if start is name and _is_arange(parent, syntax):
            size = _size(end, name)
            return Offset(parent, name, size) if size is not None else None
        case ast.Slice(lower=start, upper=ast.expr() as end, step=None) if start is name:
            size, around = _size(end, name), syntax.parents[parent]
            around = syntax.parents[around] if isinstance(around, ast.Tuple) else around
            if size is None or not isinstance(around, ast.Subscript) or not isinstance(around.ctx, ast.Load):
                return None
            return Offset(around, name, size, parent)
    return None


def _of_end(name: ast.Name, syntax: Syntax) -> Offset | None:
    added = syntax.parents[name]
    around = syntax.parents[added]
    starts = around.args[:1] if isinstance(around, ast.Call) else [getattr(around, "lower", None)]
    start = starts[0] if starts else None
    if isinstance(added, ast.BinOp) and isinstance(start, ast.Name) and start is not name and start.id == name.id:
        use = _of_start(start, syntax)
        return use if use is not None and any(n is name for n in ast.walk(added)) else None
    return None


def _size(end: ast.expr, start: ast.Name) -> ast.expr | None:
    match end:
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=size) if name == start.id:
            return size
        case ast.BinOp(left=size, op=ast.Add(), right=ast.Name(id=name)) if name == start.id:
            return size
    return None
