"""Which of what a function returns are masks, for those who call it in another file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

from patcher.facts.syntax.tree import dotted

#: Methods that give a mask of a mask.
_KEEPING = frozenset(
    "repeat_interleave repeat reshape view flatten squeeze unsqueeze clone contiguous expand expand_as masked_fill "
    "transpose permute t roll flip index_select".split()
)
_ITSELF = "itself"


def given_back(nodes: Collection[ast.AST], resolve: Callable[[str], str]) -> frozenset[str]:
    """Terms: "mask" for what is boolean by all that is written; "mask@1" for the second of several.

    ``nodes``: all of the function. Of a name, all that is assigned to it there counts.
    """
    returned = [n.value for n in nodes if isinstance(n, ast.Return) and n.value is not None]
    if not returned:
        return frozenset()
    terms = [_terms(value, _Kinds(nodes, resolve)) for value in returned]
    return frozenset(set.union(*terms) - {t for t in set.union(*terms) if _missing(t, terms, returned)})


def _missing(term: str, terms: list[set[str]], returned: list[ast.expr]) -> bool:
    """Whether another ``return`` gives something else there; None and what is made elsewhere say nothing."""
    silent = (ast.Constant, ast.Call)
    return any(
        term not in found and not isinstance(value, silent) for found, value in zip(terms, returned, strict=True)
    )


def _terms(value: ast.expr, kinds: _Kinds) -> set[str]:
    parts = enumerate(value.elts) if isinstance(value, ast.Tuple) else [(None, value)]
    return {kind if i is None else f"{kind}@{i}" for i, part in parts if (kind := kinds.of(part))}


class _Kinds:
    """What the expressions of one function are, by what stands there."""

    def __init__(self, nodes: Collection[ast.AST], resolve: Callable[[str], str]) -> None:
        self.nodes = nodes
        self.resolve = resolve

    def of(self, e: ast.expr, seen: frozenset[str] = frozenset()) -> str:
        """Either "mask" or ""."""
        match e:
            case ast.Name(id=name) if name not in seen:
                values = [n.value for n in self.nodes if isinstance(n, ast.Assign) and _binds(n, name)]
                found = {self.of(v, seen | {name}) for v in values} - {_ITSELF}
                return found.pop() if len(found) == 1 else ""
            case ast.Name():
                return _ITSELF  # ``mask = mask.view(n, -1)``
            case ast.Subscript(value=held, slice=ast.Slice()):
                return self.of(held, seen)
            case ast.UnaryOp(op=ast.Invert(), operand=held):
                return self.of(held, seen)
            case ast.Call(func=ast.Attribute(value=held, attr=name)) if name in _KEEPING:
                return self.of(held, seen)
            case ast.Call():
                return self._made(e)
        return ""

    def _made(self, call: ast.Call) -> str:
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        dtypes = [k.value for k in call.keywords if k.arg == "dtype"] + (
            call.args[:1] if method in ("to", "type") else []
        )
        if method == "bool" or any(
            dotted(d) == "bool" or self.resolve(dotted(d) or "") == "torch.bool" for d in dtypes
        ):
            return "mask"
        return ""


def _binds(n: ast.Assign, name: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == name for t in n.targets)
