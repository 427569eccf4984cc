"""What the sizes, types and places of new tensors come from: what has to be the same for the tensors to be reused."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts.analysis import Analysis
from patcher.facts.project.touches import How
from patcher.facts.syntax.classes import INITIALISERS, attribute_of, self_name
from patcher.facts.syntax.tree import FunctionNode, Syntax, last_name
from patcher.facts.syntax.written import short
from patcher.facts.values.types import Kind

_MAKERS = frozenset(f"torch.{name}" for name in ("zeros", "ones", "full", "empty"))
#: What gives the same again, and changes nothing.
_ASKING = frozenset({"size", "len", "int", "max", "min", "parameters", "next", "buffers", "dim", "numel"})
_PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.UnaryOp, ast.USub, ast.expr_context)


class UnknownSizeError(Exception):
    """What a size comes from is not known; the message says of which."""


class Sizes(Analysis):
    """Questions about what one module makes."""

    def of(self, value: ast.expr, made: ast.Call, function: FunctionNode) -> Iterator[ast.expr]:
        """The expressions that ``value`` depends on, each once: ``made``, or a list of such objects, in ``function``.

        Attributes that only the constructor of the object sets are left out. Raises UnknownSizeError.
        """
        bound = {n.id for n in ast.walk(value) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        generators = value.generators if isinstance(value, ast.ListComp) else []
        if len(generators) > 1 or any(g.ifs or g.is_async for g in generators):
            raise UnknownSizeError("how many are made is not plain to see")
        seen: set[str] = set()
        for e in (*(g.iter for g in generators), *(k.value for k in made.keywords)):
            for part in self._parts(e):
                text = ast.unparse(part)
                if bound & {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}:
                    raise UnknownSizeError(f"`{text}` is another one for each of them")
                if text in seen or self._lasts(part, function):
                    continue
                seen.add(text)
                known = self.facts.value(part)
                if known.is_tensor or known.kind is Kind.MODULE:
                    raise UnknownSizeError(f"`{text}` is no number that they could be found again by")
                yield part

    def _parts(self, e: ast.expr) -> Iterator[ast.expr]:
        match e:
            case ast.Constant():
                return
            case ast.Name() | ast.Attribute() | ast.Subscript():
                if (self.syntax.qualified(e) or "").startswith("torch."):  # a dtype
                    return
                if not all(isinstance(n, _PLAIN) or self._is_question(n) for n in ast.walk(e)):
                    raise UnknownSizeError(f"`{short(e)}` is worked out in a way that may not be repeated")
                yield e
            case ast.BinOp(left=left, right=right):
                yield from self._parts(left)
                yield from self._parts(right)
            case ast.UnaryOp(operand=operand):
                yield from self._parts(operand)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for one in elements:
                    yield from self._parts(one)
            case ast.Call() if makes_one(e, self.syntax) or self.syntax.builtin(e) == "range":
                for one in (*e.args, *(k.value for k in e.keywords)):
                    yield from self._parts(one)
            case ast.Call() if all(isinstance(n, _PLAIN) or self._is_question(n) for n in ast.walk(e)):
                yield e
            case _:
                raise UnknownSizeError(f"`{short(e)}` is worked out in a way that may not be repeated")

    def _is_question(self, n: ast.AST) -> bool:
        return isinstance(n, ast.Call) and not n.keywords and last_name(n.func) in _ASKING

    def _lasts(self, e: ast.expr, function: FunctionNode) -> bool:
        """Whether ``e`` is an attribute that only the constructor gives the object: a number of its configuration."""
        name = attribute_of(e, self_name(function) or "")
        cls = self.syntax.class_of(function)
        if name is None or cls is None:
            return False
        stores = self.facts.class_facts(cls).stores.get(name, ())
        if not stores or any(s.method is None or s.method.name not in INITIALISERS for s in stores):
            return False
        dotted = self.facts.qualname(cls) or cls.name
        return next(iter(self.project.attributes.touched(dotted, name, (How.SET,))), None) is None


def makes_one(value: ast.expr, syntax: Syntax) -> bool:
    """Whether ``value`` makes a tensor all of whose elements are one number, or may be any."""
    if not isinstance(value, ast.Call) or any(isinstance(a, ast.Starred) for a in value.args):
        return False
    plain = not any(k.arg in ("out", "requires_grad", None) for k in value.keywords)
    return plain and syntax.qualified(value.func) in _MAKERS
