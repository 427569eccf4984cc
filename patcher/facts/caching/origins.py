"""Which attributes of the instance a value is computed from, through locals, properties and the class's own methods."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import ClassAnalysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.classes import INITIALISERS
from patcher.facts.syntax.tree import last_name, own_nodes
from patcher.facts.tables import torch_api as api
from patcher.facts.values.inference import Inference
from patcher.facts.values.types import Kind

#: Functions that make a tensor, by their last name.
CREATES = frozenset(
    "zeros ones empty full zeros_like ones_like empty_like full_like tensor new_zeros new_empty".split()
)
#: Stands among the origins of a value on whose way a remainder was taken: what wraps round is no length.
WRAPS = "%"


class Origins(ClassAnalysis):
    """Origins of the values in one class. What is only asked about a tensor (its shape, dtype ...) is no origin."""

    def __init__(self, facts: Facts, cls: ast.ClassDef) -> None:
        super().__init__(facts, cls)
        self.own: dict[str, list[ast.FunctionDef]] = {}
        for s in cls.body:
            if isinstance(s, ast.FunctionDef):
                self.own.setdefault(s.name, []).append(s)
        self.methods = [f for fs in self.own.values() for f in fs]
        self._returned: dict[str, frozenset[str]] = {}

    # --- methods of the class ---------------------------------------------------------------------------------------

    @cached_property
    def calls(self) -> dict[ast.FunctionDef, list[tuple[ast.Attribute, ast.FunctionDef]]]:
        """Where each method reads a method of its own class, and which one that is."""
        return {
            f: [
                (n, m)
                for n in own_nodes(f)
                if isinstance(n, ast.Attribute)
                for m in self.own.get(self.attribute(n) or "", ())
            ]
            for f in self.methods
        }

    def callers(self, method: ast.FunctionDef) -> set[ast.FunctionDef]:
        """The methods that read ``method``."""
        return {f for f in self.methods if any(m is method for _, m in self.calls[f])}

    @cached_property
    def initial(self) -> set[ast.FunctionDef]:
        """The initialisers, and the private methods that only they call."""
        found = {f for f in self.methods if f.name in INITIALISERS}
        for _ in range(3):
            for f in self.methods:
                by = self.callers(f)
                if f.name.startswith("_") and not f.name.endswith("__") and by and by <= found:
                    found.add(f)
        return found

    # --- values -----------------------------------------------------------------------------------------------------

    def attribute(self, e: ast.AST) -> str | None:
        """``x`` when ``e`` is ``self.x`` in a method of the class."""
        found = self.inference.instance_attribute(e)
        return found[1] if found is not None and found[0] is self.cls else None

    def of(self, e: ast.AST, seen: frozenset[object] = frozenset()) -> frozenset[str]:
        """The attributes that ``e`` is computed from."""
        match e:
            case ast.Constant() | ast.Lambda():
                return frozenset()
            case ast.Attribute(value=value, attr=attr):
                name = self.attribute(e)
                if name is not None:
                    return self.returned(name) if name in self.own else frozenset({name})
                return frozenset() if attr in api.ABOUT else self.of(value, seen)
            case ast.Name():
                return self._name(e, seen)
            case ast.Call():
                return self._call(e, seen)
            case ast.BinOp(op=ast.Mod(), left=left, right=right):
                return self.of(left, seen) | self.of(right, seen) | {WRAPS}
            case ast.NamedExpr(value=value):
                return self.of(value, seen)
        return self._all(ast.iter_child_nodes(e), seen)

    def _all(self, nodes: Iterable[ast.AST], seen: frozenset[object]) -> frozenset[str]:
        return frozenset(name for node in nodes for name in self.of(node, seen))

    def _name(self, name: ast.Name, seen: frozenset[object]) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for d in self.inference.definitions(name):
            if d in seen:
                continue
            for part in parts_of(d):
                found |= self.of(part, seen | {d})
        return found

    def _call(self, call: ast.Call, seen: frozenset[object]) -> frozenset[str]:
        arguments = [*call.args, *(k.value for k in call.keywords)]
        if isinstance(call.func, ast.Name):
            return frozenset() if self.syntax.builtin(call) == "len" else self._all(arguments, seen)
        if isinstance(call.func, ast.Attribute):
            what = self.syntax.qualified(call.func)
            wraps = (what or call.func.attr).rpartition(".")[2] in ("remainder", "fmod")
            found = self.of(call.func, seen) | (
                self._all(arguments, seen) if call.func.attr not in api.ABOUT else set()
            )
            return found | {WRAPS} if wraps else found
        return self._all([call.func, *arguments], seen)

    def returned(self, method: str) -> frozenset[str]:
        """What the class's own method or property of that name returns is computed from."""
        if method not in self._returned:
            self._returned[method] = frozenset()  # recursion ends here
            values = [s.value for f in self.own[method] for s in own_nodes(f) if isinstance(s, ast.Return) and s.value]
            self._returned[method] = self._all(values, frozenset())
        return self._returned[method]

    def read_of_data(self, e: ast.AST, state: frozenset[str], seen: frozenset[object] = frozenset()) -> ast.expr | None:
        """A place on the way to ``e`` where the host reads tensor data that does not come from ``state``."""
        if isinstance(e, ast.Call):
            for read in numbers_needed(e):
                sure = isinstance(e.func, ast.Attribute) or self.inference.of(read).is_tensor
                if sure and not self.of(read) & state:
                    return read
        if isinstance(e, ast.Attribute) and e.attr in api.ABOUT:
            return None
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in api.ABOUT:
            return None
        children: Iterable[ast.AST] = ast.iter_child_nodes(e)
        if isinstance(e, ast.Name):
            fresh = [d for d in self.inference.definitions(e) if d not in seen]
            seen |= frozenset(fresh)
            children = [part for d in fresh for part in parts_of(d)]
        return next((found for c in children if (found := self.read_of_data(c, state, seen)) is not None), None)

    # --- shapes -----------------------------------------------------------------------------------------------------

    def rank(self, e: ast.expr) -> int | None:
        """The least number of dimensions of the tensors that ``e`` is or holds; None when it holds none."""
        inner = elements_of(e)
        if inner is not None:
            return min((r for i in inner if (r := self.rank(i)) is not None), default=None)
        if isinstance(e, ast.Constant):
            return None
        rank = self.inference.of(e).rank
        if rank is not None:
            return rank.offset if rank.base is None else 0
        if not (isinstance(e, ast.Call) and e.args and makes_tensor(e)):
            return 0
        shape = e.args[0]
        written: list[ast.AST] = [shape]
        if isinstance(shape, ast.Name):
            written = [part for d in self.inference.definitions(shape) for part in (list(parts_of(d)) or [d.node])]
        return min((len(s.elts) if isinstance(s, (ast.Tuple, ast.List)) else 0 for s in written), default=0)


def numbers_needed(n: ast.AST) -> Iterator[ast.expr]:
    """The parts of ``n`` of which the host needs the value, be they tensors or not."""
    match n:
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=[]) if attr in api.HOST_READS:
            yield value
        case ast.Call(func=ast.Name(id="int" | "float" | "bool" | "range"), args=arguments):
            yield from arguments
        case ast.Slice(lower=lower, upper=upper, step=step):
            yield from (e for e in (lower, upper, step) if e is not None)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot))):
                yield test
        case ast.Assert(msg=ast.JoinedStr(values=values)):
            yield from (v.value for v in values if isinstance(v, ast.FormattedValue))


def parts_of(d: Definition) -> Iterator[ast.AST]:
    """The expressions that a definition takes its value from."""
    if d.how == "augmented" and isinstance(d.node, ast.AugAssign):
        yield d.node.target
        yield d.node.value
    elif d.value is not None:
        part, _ = d.part
        yield part if d.how == "assign" and part is not None else d.value


def is_python(inference: Inference, e: ast.expr) -> bool:
    """Whether ``e`` is a Python value for sure."""
    return inference.of(e).kind is Kind.PYTHON


def elements_of(e: ast.expr) -> list[ast.expr] | None:
    """What a list, tuple or dict that is written out holds, or None when ``e`` is none."""
    match e:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return list(elements)
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element) | ast.DictComp(value=element):
            return [element]
        case ast.Dict(values=values):
            return list(values)
        case ast.BinOp(left=ast.List() as left, op=ast.Mult()):
            return left.elts
        case ast.BinOp(op=ast.Mult(), right=ast.List() as right):
            return right.elts
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner]):
            return elements_of(inner)
    return None


def makes_tensor(call: ast.Call) -> bool:
    """Whether ``call`` is one of the functions that make a tensor, whatever they are called through."""
    return last_name(call.func) in CREATES
