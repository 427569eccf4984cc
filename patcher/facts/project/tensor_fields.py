"""Which attributes a class says are tensors, and which masks, for those who hold an object of the class."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts.syntax.classes import INITIALISERS, attribute_of, self_name
from patcher.facts.syntax.tree import Syntax, last_name, own_nodes
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


def said_masks(cls: ast.ClassDef, syntax: Syntax) -> frozenset[str]:
    """Those of them that all initialisers make with a boolean dtype."""
    said: dict[str, bool] = {}
    for name, value in _values(cls):
        said[name] = said.get(name, True) and _is_made(value, syntax) and _is_boolean(value, syntax)
    return frozenset(name for name, mask in said.items() if mask)


def _values(cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """What the initialisers assign to attributes, None aside."""
    for method in cls.body:
        if isinstance(method, _FUNCTIONS) and method.name in INITIALISERS:
            own = self_name(method) or ""
            for n in own_nodes(method):
                for target in n.targets if isinstance(n, ast.Assign) else []:
                    name = attribute_of(target, own)
                    if name is not None and isinstance(n, ast.Assign) and not is_none(n.value):
                        yield name, n.value


def _is_boolean(e: ast.expr, syntax: Syntax) -> bool:
    dtypes = [k.value for k in e.keywords if k.arg == "dtype"] if isinstance(e, ast.Call) else []
    return any(syntax.qualified(d) == "torch.bool" or ast.unparse(d) == "bool" for d in dtypes)


def _stores(cls: ast.ClassDef, syntax: Syntax) -> Iterator[tuple[str, bool]]:
    annotated: set[str] = set()
    for s in cls.body:
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name):
            annotated.add(s.target.id)
            yield s.target.id, _is_annotation(s.annotation)
    for method in cls.body:
        if not isinstance(method, _FUNCTIONS) or method.name not in INITIALISERS:
            continue
        own = self_name(method) or ""
        for n in own_nodes(method):
            if not isinstance(n, (ast.Assign, ast.AnnAssign)):
                continue
            for target in n.targets if isinstance(n, ast.Assign) else [n.target]:
                name = attribute_of(target, own)
                if name is None or name in annotated:
                    continue
                if isinstance(n, ast.AnnAssign):
                    yield name, _is_annotation(n.annotation)
                elif not is_none(n.value):
                    yield name, _is_made(n.value, syntax)


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
