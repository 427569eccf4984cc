"""What the expressions of some files hold while a program runs eagerly. Standard library and torch.

The files are compiled with their expressions wrapped (``_fix_compile_saw(7, x + 1)``), so that each is seen whole, with
its place. What was seen is told as `observations` returns it; docs/optimize.md has the schema.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import hashlib
import importlib.machinery
import os
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

SCHEMA = 1
NAME = "_fix_compile_saw"
MOST_FACTS = 8  # different ones of an expression; then its sizes and values are left out
MOST_LOOKS = 500  # at an expression
MOST_ITEMS = 8  # of a container that is told whole
LONGEST = 80  # characters of a value

Json = dict[str, Any]
Span = tuple[int, int, int, int]

_SEEN = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Compare, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp,
    ast.Dict, ast.List, ast.Tuple, ast.DictComp, ast.ListComp,
)  # fmt: skip
_PLAIN = (bool, int, float, str)


class _Expression:
    """What one expression held. ``facts``: each with the number of times; ``looks``: all of them.

    ``truths``: as what it has counted, with changed inputs too, where it is a truth or a tensor with one element.
    """

    __slots__ = ("facts", "looks", "span", "truths")

    def __init__(self, span: Span) -> None:
        self.span, self.looks, self.facts, self.truths = span, 0, dict[tuple[Any, ...], int](), set[bool]()

    def look(self, value: object, changed: bool) -> None:
        with contextlib.suppress(Exception):  # of a kind of tensor that has no values
            if len(self.truths) < 2 and (
                type(value) is bool or (isinstance(value, torch.Tensor) and value.numel() == 1)
            ):
                self.truths.add(bool(value))
        if changed:
            return
        self.looks += 1
        if self.looks > MOST_LOOKS:
            return
        try:
            fact = _fact(value)
        except Exception:  # of an object that cannot be asked
            fact = ("?",)
        if fact not in self.facts and len(self.facts) >= MOST_FACTS:
            fact = fact[:2] if fact[0] == "tensor" else fact[:1]
        self.facts[fact] = self.facts.get(fact, 0) + 1


class Observer:
    """Serves the wrapped text of ``files`` (real paths) to imports, and collects what they hold while it is ``on``.

    ``changed``: the inputs are others than the recorded ones, and of what is held only truths count.
    """

    def __init__(self, files: Iterable[str]) -> None:
        self._files, self._texts = frozenset(files), dict[str, tuple[str, list[_Expression]]]()
        self._all: list[_Expression] = []
        self.on = self.changed = False

    def install(self) -> None:
        """Take over the compiling of the files. What another importer serves in their place is not watched."""
        original = importlib.machinery.SourceFileLoader.get_code

        def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> types.CodeType | None:
            file = loader.get_filename(name)
            real = os.path.realpath(file)
            if real not in self._files:
                return original(loader, name)
            return self._compiled(Path(file).read_bytes(), file, real) or original(loader, name)

        setattr(importlib.machinery.SourceFileLoader, "get_code", get_code)  # noqa: B010 - mypy: a method
        setattr(builtins, NAME, self._saw)

    def _compiled(self, data: bytes, file: str, real: str) -> types.CodeType | None:
        """The wrapped text; None where it cannot be compiled so."""
        first = len(self._all)
        try:
            tree = _Wrapping(self._all).visit(ast.parse(data))
            code: types.CodeType = compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            del self._all[first:]
            return None
        self._texts[real] = (hashlib.sha256(data).hexdigest(), self._all[first:])
        return code

    def _saw(self, number: int, value: Any) -> Any:
        if self.on:
            self.on = False  # what looking at the value calls is not looked at
            self._all[number].look(value, self.changed)
            self.on = True
        return value

    def observations(self) -> Json:
        """What was seen, by file: the digest of its bytes, and for each expression that ran its place and facts."""
        return {
            "schema": SCHEMA,
            "files": {
                file: {
                    "sha256": digest,
                    "expressions": [
                        {
                            "at": list(one.span),
                            "looks": one.looks,
                            "facts": [list(fact) for fact in one.facts],
                            **({"truths": sorted(one.truths)} if one.truths else {}),
                        }
                        for one in seen
                        if one.looks
                    ],
                }
                for file, (digest, seen) in self._texts.items()
            },
        }


def _fact(value: object) -> tuple[Any, ...]:
    """What there is to keep of a value: its kind first, then what may differ from call to call."""
    kind = type(value)
    if isinstance(value, torch.Tensor):
        sizes = tuple(int(size) for size in value.shape)
        return ("tensor", str(value.dtype), sizes, value.device.type, value.requires_grad)
    if value is None:
        return ("None", "None")
    if kind in _PLAIN:
        return (kind.__name__, repr(value)) if len(repr(value)) <= LONGEST else (kind.__name__, "", hash(value))
    if kind in (list, tuple, dict):
        items: Any = value
        inside = [*items, *items.values()] if kind is dict else items
        small = len(inside) <= MOST_ITEMS and all(item is None or type(item) in _PLAIN for item in inside)
        return (
            (kind.__name__, repr(value)) if small and len(repr(value)) <= LONGEST else (kind.__name__, len(items), "")
        )
    return (_kind(value),)


def _kind(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, torch.nn.Module):
        return "module"
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class _Wrapping(ast.NodeTransformer):
    """Wraps the expressions in the bodies of functions, and looks at parameters when a function begins."""

    def __init__(self, seen: list[_Expression]) -> None:
        self._seen = seen
        self._inside = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """The body alone: not decorators, defaults, annotations; nothing of what another compiler reads."""
        if any("jit" in ast.unparse(decorator) for decorator in node.decorator_list):
            return node
        before, self._inside = self._inside, True
        body = [self.visit(statement) for statement in node.body]
        self._inside = before
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        start = int(ast.get_docstring(node, clean=False) is not None)
        looks = [ast.Expr(self._wrapped(ast.Name(one.arg, ast.Load()), _span(one))) for one in every]
        node.body = [*body[:start], *(ast.copy_location(look, body[0]) for look in looks), *body[start:]]
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Left as it is."""
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Constants, too."""
        constant = isinstance(node.value, ast.Constant) and self._inside
        node.value = self._wrapped(node.value, _span(node.value)) if constant else node.value and self.visit(node.value)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """The body alone."""
        if self._inside:
            node.body = self.visit(node.body)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Without the annotation."""
        node.target = self.visit(node.target)
        node.value = self.visit(node.value) if node.value is not None else None
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Without the pattern."""
        node.guard = self.visit(node.guard) if node.guard is not None else None
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Left as it is: what it formats has no place of its own before Python 3.12."""
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Of the function that is called only what it belongs to."""
        span = _span(node)
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        return self._wrapped(node, span) if self._inside else node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """All other expressions that are read."""
        wanted = (
            self._inside and isinstance(node, _SEEN) and isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load)
        )
        span = _span(node) if wanted else None
        super().generic_visit(node)
        return node if span is None else self._wrapped(node, span)

    def _wrapped(self, node: Any, span: Span) -> ast.Call:
        self._seen.append(_Expression(span))
        number = ast.Constant(len(self._seen) - 1)
        call = ast.Call(ast.Name(NAME, ast.Load()), [number, node], [])
        return ast.copy_location(call, node) if hasattr(node, "lineno") else call


def _span(node: Any) -> Span:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
