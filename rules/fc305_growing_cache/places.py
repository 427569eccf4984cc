"""Places where tensors are kept between calls, and which of them an expression may be the whole content of.

A place is an attribute of the instance (``self.k``, ``self.k[i]``), or something that a parameter holds
(``past["key"]``, ``past[0]``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode, last_name, own_nodes
from patcher.facts.tables.wording import words

#: Methods whose result is as long as the tensor that they are called on.
_KEEPING = frozenset("to contiguous detach clone float half bfloat16 type type_as cuda cpu requires_grad_".split())
#: Builtins that hand on what the things they are given hold.
_GOING_THROUGH = frozenset({"zip", "enumerate", "list", "tuple", "reversed"})
KEYS = frozenset({"k", "key", "keys"})
VALUES = frozenset({"v", "value", "values"})
#: Words for what is handed from call to call, and for what was handed by an earlier one.
KEPT = frozenset("kv cache caches cached mems".split())
EARLIER = frozenset("past previous prev history".split())
#: How far results are taken apart: a tensor in a pair in a sum of tuples.
_DEEPEST = 5
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Place:
    """``steps`` ("." and a name, or a subscript) lead from ``root``, a class or a parameter, to the tensor."""

    root: ast.ClassDef | ast.arg
    steps: tuple[str, ...]

    def then(self, step: str) -> Place:
        """The place one step further in."""
        return Place(self.root, (*self.steps, step))

    @property
    def words(self) -> frozenset[str]:
        """All words of the names on the way."""
        root = self.root.arg if isinstance(self.root, ast.arg) else ""
        return frozenset(w for part in (root, *self.steps) for w in words(part))

    @property
    def last_word(self) -> str:
        """The last word of the name that says most: a key in quotes, else an attribute, else the parameter."""
        names = [w for part in self.steps if (w := words(part)) and not part.startswith("[")]
        quoted = [w for part in self.steps if part.startswith(("['", '["')) and (w := words(part))]
        root = [words(self.root.arg)] if isinstance(self.root, ast.arg) else []
        return next((w[-1] for w in (*quoted[-1:], *names[-1:], *root) if w), "")

    @property
    def anywhere(self) -> tuple[object, ...]:
        """The place with its subscripts left open, to compare with places of other functions."""
        return (self.root, *("[]" if s.startswith("[") else s for s in self.steps))


class Places(Analysis):
    """Reads the expressions of one module."""

    def of(self, e: ast.expr, seen: frozenset[Definition] = frozenset()) -> frozenset[Place]:
        """The places that ``e`` may be the whole content of."""
        if (own := self.inference.instance_attribute(e)) is not None:
            return frozenset({Place(own[0], (f".{own[1]}",))})
        match e:
            case ast.Attribute(value=value, attr=attr):
                found = self.of(value, seen)
                return found if attr == "data" else frozenset(p.then(f".{attr}") for p in found)
            case ast.Subscript(value=value, slice=index):
                if cuts(index):
                    return frozenset()
                return frozenset(p.then(f"[{ast.unparse(index)}]") for p in self.of(value, seen))
            case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[key, *_]):
                return frozenset(p.then(f"[{ast.unparse(key)}]") for p in self.of(value, seen))
            case ast.Name():
                fresh = [d for d in self.inference.definitions(e) if d not in seen]
                return frozenset(p for d in fresh for p in self.of_definition(d, seen | frozenset(fresh)))
        return frozenset(p for part in _same(e) for p in self.of(part, seen))

    def of_definition(self, d: Definition, seen: frozenset[Definition] = frozenset()) -> Iterable[Place]:
        """The places that a name may be the whole content of where ``d`` binds it; none for the instance itself."""
        if d.how == "parameter" and isinstance(d.node, ast.arg):
            method = self.syntax.parents.get(self.syntax.parents[d.node])
            is_self = isinstance(method, _FUNCTIONS) and isinstance(self.syntax.parents[method], ast.ClassDef)
            return () if is_self and self_name(method) == d.name else (Place(d.node, ()),)  # type: ignore[arg-type]
        if d.value is None:
            return ()
        if d.how == "assign":
            value, path = d.part
            assert value is not None
            found = self.of(value, seen)
            for i in path:
                found = frozenset(p.then(f"[{i}]") for p in found)
            return found
        if d.how == "iteration":
            position = "".join(f"[{i}]" for i in d.path)
            return [p.then(f"[*]{position}") for source in _sources(d.value) for p in self.of(source, seen)]
        return ()

    def alternatives(self, e: ast.expr, seen: frozenset[Definition] = frozenset()) -> Iterator[ast.expr]:
        """The expressions that ``e`` may be the whole value of: through names, both arms, and methods that keep it."""
        inner = _same(e)
        if isinstance(e, ast.Name):
            found = [d for d in self.inference.definitions(e) - seen if d.how == "assign" and d.value is not None]
            inner, seen = [d.part[0] for d in found if d.part[0] is not None and not d.part[1]], seen | set(found)
        for part in inner:
            yield from self.alternatives(part, seen)
        if not inner:
            yield e

    def components(
        self, e: ast.expr, function: FunctionNode | None = None, depth: int = 0
    ) -> Iterator[tuple[tuple[str, ...], ast.expr]]:
        """``e`` itself, and the parts of the tuples, dicts and objects that it may be, with the steps to them.

        With ``function``, also what is appended there to a list that ``e`` names.
        """
        yield (), e
        if depth > _DEEPEST:
            return
        for a in self.alternatives(e):
            inner: list[tuple[str, ast.expr]] = []
            match a:
                case ast.Tuple(elts=elements) | ast.List(elts=elements):
                    inner = [(f"[{i}]", x) for i, x in enumerate(elements) if not isinstance(x, ast.Starred)]
                case ast.Dict(keys=keys, values=values):
                    inner = [(f"[{ast.unparse(k)}]", x) for k, x in zip(keys, values, strict=True) if k is not None]
                case ast.BinOp(left=left, op=ast.Add(), right=right):  # outputs + (present,)
                    inner = [("[+]", left), ("[+]", right)]
                case ast.Call(func=func, keywords=keywords) if last_name(func)[:1].isupper():
                    inner = [(f".{k.arg}", k.value) for k in keywords if k.arg is not None]
            for step, x in inner:
                for steps, part in self.components(x, function, depth + 1):
                    yield (step, *steps), part
        if function is not None and isinstance(e, ast.Name):
            for n in own_nodes(function):
                match n:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[x]) if name == e.id:
                        for steps, part in self.components(x, None, depth + 1):
                            yield ("[*]", *steps), part


def methods_of(cls: ast.ClassDef) -> Iterator[FunctionNode]:
    """The functions that stand directly in ``cls``."""
    return (s for s in cls.body if isinstance(s, _FUNCTIONS))


def _same(e: ast.expr) -> list[ast.expr]:
    """The parts of ``e`` whose whole value it may be."""
    match e:
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.BoolOp(values=values):
            return values
        case ast.NamedExpr(value=value):
            return [value]
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _KEEPING:
            return [value]
    return []


def _sources(e: ast.expr) -> Iterator[ast.expr]:
    """What an iteration over ``e`` takes its items from."""
    match e:
        case ast.Call(func=ast.Name(id=name), args=args) if name in _GOING_THROUGH:
            for a in args:
                yield from _sources(a)
        case ast.Call(func=ast.Attribute(value=value, attr="items" | "values"), args=[]):
            yield value
        case _:
            yield e


def cuts(index: ast.expr) -> bool:
    """Whether a subscript takes a part of a tensor by its dimensions, and no item of a list or dict."""
    return isinstance(index, (ast.Slice, ast.Tuple)) or (
        isinstance(index, ast.Constant) and (index.value is None or index.value is ...)
    )
