"""Which attributes a class says are tensors, for those who hold an object of the class."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts.syntax.classes import INITIALISERS, attribute_of, self_name
from patcher.facts.syntax.tree import Syntax, last_name
from patcher.facts.syntax.written import is_none, parsed

_ANNOTATIONS = frozenset("Tensor FloatTensor LongTensor IntTensor BoolTensor".split())
#: Functions of torch that make a tensor, and no number.
_MAKERS = frozenset("zeros ones full empty tensor arange zeros_like ones_like full_like empty_like".split())
#: Methods that nothing but a tensor has, and that make another one.
_MAKING = frozenset("new_zeros new_ones new_full new_empty new_tensor".split())
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def said_tensors(cls: ast.ClassDef, syntax: Syntax) -> frozenset[str]:
    """Attributes that an annotation of ``cls`` calls tensors, or that its initialisers make by a function of torch.

    ``Tensor | None`` counts: whoever asks for an element of None gets an error.
    """
    said: dict[str, bool] = {}
    for name, tensor in _stores(cls, syntax):
        said[name] = said.get(name, True) and tensor
    return frozenset(name for name, tensor in said.items() if tensor)


def _assigned(cls: ast.ClassDef, syntax: Syntax) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
    """What the initialisers assign to attributes: name, annotation and value."""
    own = {m: self_name(m) or "" for m in cls.body if isinstance(m, _FUNCTIONS) and m.name in INITIALISERS}
    for n in (*syntax.by_type[ast.Assign], *syntax.by_type[ast.AnnAssign]):
        method = syntax.function_of(n)
        if method not in own or not isinstance(n, (ast.Assign, ast.AnnAssign)):
            continue
        for target in n.targets if isinstance(n, ast.Assign) else [n.target]:
            name = attribute_of(target, own[method])
            if name is not None:
                yield name, n.annotation if isinstance(n, ast.AnnAssign) else None, n.value


def _stores(cls: ast.ClassDef, syntax: Syntax) -> Iterator[tuple[str, bool]]:
    annotated: set[str] = set()
    for s in cls.body:
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name):
            annotated.add(s.target.id)
            yield s.target.id, _is_annotation(s.annotation)
    for name, annotation, value in _assigned(cls, syntax):
        if name in annotated:
            continue
        if annotation is not None:
            yield name, _is_annotation(annotation)
        elif value is not None and not is_none(value):
            yield name, _is_made(value, syntax)


def _is_annotation(e: ast.expr) -> bool:
    match parsed(e):
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return any(_is_annotation(a) and is_none(b) for a, b in ((left, right), (right, left)))
        case ast.Subscript(value=base, slice=inner) if last_name(base) == "Optional":
            return _is_annotation(inner)
        case ast.Name() | ast.Attribute() as named:
            return last_name(named) in _ANNOTATIONS
    return False


def _is_made(e: ast.expr, syntax: Syntax) -> bool:
    if not isinstance(e, ast.Call):
        return False
    what = syntax.qualified(e.func)
    if what is None:
        return isinstance(e.func, ast.Attribute) and e.func.attr in _MAKING
    package, _, name = what.rpartition(".")
    return package == "torch" and name in _MAKERS
