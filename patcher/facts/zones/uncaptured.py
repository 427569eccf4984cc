"""Where code decides on what only the data of a tensor tells, so that no graph goes through it, however it is compiled.

Dynamo can be told to take numbers that are read, and results of unknown size, into a graph as symbols. A symbol has no
value: what branches on one, or loops as often as it says, breaks the graph in each setting. Which forms do is found out
by running them (`patcher.facts.tables.captured`). Some symbols do have a value: that of a 0-d tensor that is given to
a graph, or made of a constant, and one that was compared with a size before; hence the questions below.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tables.captured import NOWHERE
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Kind
from patcher.facts.zones.host_reads import HostReads

_ORDER = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: Methods and functions that make another tensor out of one, with one element where no dimension is named.
_REDUCING = frozenset("sum max min amax amin any all mean prod argmax argmin count_nonzero".split())
_CONSTANTS = frozenset({"torch.tensor", "torch.as_tensor", "torch.scalar_tensor", "torch.asarray", "torch.from_numpy"})
#: Functions and methods whose result has as many elements as the data says, and keywords that do not change that.
_SIZED = frozenset("nonzero argwhere unique unique_consecutive masked_select repeat_interleave bincount".split())
_SAME = frozenset({"dim", "minlength", "sorted"})
#: Methods that leave the number of elements what it is.
_KEEPING = frozenset("cpu cuda to long int float bool flatten ravel contiguous detach clone".split())
#: Decorators with which a function still does what is written in it when it is called.
_PLAIN = frozenset({"staticmethod", "classmethod", "torch.no_grad", "torch.inference_mode", "torch.enable_grad"})


@dataclass(frozen=True)
class Uncaptured:
    """``node`` is captured nowhere, ``way`` is what the table calls it. ``top``: the statement of the body it is in."""

    node: ast.expr
    way: str
    top: ast.stmt


class UncapturedReads(Analysis):
    """What the functions of one module certainly ask of data in a form that no graph takes."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.reads = facts.ask(HostReads)
        self.callees = facts.ask(Callees)
        self._known: dict[FunctionNode, tuple[Uncaptured, ...]] = {}

    def of(self, function: FunctionNode) -> tuple[Uncaptured, ...]:
        """Those that run whenever the statement of the body that holds them does. A loop over rows has a turn."""
        if function not in self._known:
            self._known[function] = ()
            if not self._checks(function):
                self._known[function] = tuple(self._found(function))
        return self._known[function]

    def first(self, function: FunctionNode, start: ast.stmt, end: ast.stmt) -> Uncaptured | None:
        """The first that runs whenever the statements from ``start`` to ``end`` of the body of ``function`` do."""
        body = function.body
        for s in body[body.index(start) : body.index(end) + 1]:
            for found in self.of(function):
                if found.top is s:
                    return found
            if any(isinstance(n, ast.Return) for n in ast.walk(s)):
                return None
        return None

    def _found(self, function: FunctionNode) -> Iterator[Uncaptured]:
        for node, way in self._candidates(function):
            top = self._runs(node, function) if way in NOWHERE else None
            if top is not None:
                yield Uncaptured(node, way, top)

    def _candidates(self, function: FunctionNode) -> Iterator[tuple[ast.expr, str]]:
        for n in self.syntax.subtree(function):
            match n:
                case ast.If(test=test):
                    yield test, self._deciding(test, "raise if" if isinstance(n.body[-1], ast.Raise) else "if")
                case ast.While(test=test):
                    yield test, self._deciding(test, "while")
                case ast.IfExp(test=test):
                    yield test, self._deciding(test, "conditional expression")
                case ast.For(iter=over) | ast.comprehension(iter=over):
                    yield over, self._looping(over)
                case ast.Call(func=ast.Attribute(value=held, attr="tolist"), args=[], keywords=[]):
                    sized = self._sized(held)
                    yield n, f"tolist of {sized}" if sized else ""
                case ast.Call():
                    inner = self._inner(n)
                    yield n, inner.way if inner is not None else ""

    def _inner(self, call: ast.Call) -> Uncaptured | None:
        """What the function of this file that ``call`` runs, and no other, certainly asks."""
        names = self.callees.of(call)
        function = self.callees.here(names[0]) if len(names) == 1 else None
        if not isinstance(function, ast.FunctionDef) or not self._is_plain(function):
            return None
        return self.first(function, function.body[0], function.body[-1])

    def _is_plain(self, function: ast.FunctionDef) -> bool:
        called = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
        names = [d.id if isinstance(d, ast.Name) and self.syntax.is_builtin(d) else "" for d in called]
        written = [self.syntax.qualified(d) or name for d, name in zip(called, names, strict=True)]
        yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in self.syntax.subtree(function))
        return all(w in _PLAIN for w in written) and not yields

    def _checks(self, function: FunctionNode) -> bool:
        """Whether ``function`` promises something of numbers, which may decide what is asked below."""
        return any(
            isinstance(n, ast.Assert) or (isinstance(n, ast.Attribute) and n.attr.startswith("_check"))
            for n in self.syntax.subtree(function)
        )

    def _runs(self, node: ast.AST, function: FunctionNode) -> ast.stmt | None:
        """The statement of the body whose every run asks ``node``; None when it may be left out."""
        child = node
        for parent in self.syntax.ancestors(node):
            if parent is function:
                return child if isinstance(child, ast.stmt) and child in function.body else None
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.comprehension)):
                first = isinstance(parent, ast.comprehension) and child is parent.iter
                if not first:
                    return None
            if not self.reads.always_runs(child, parent) or not self._turns(child, parent):
                return None
            child = parent
        return None

    def _turns(self, child: ast.AST, parent: ast.AST) -> bool:
        """Whether ``parent``, if it is a loop and ``child`` in its body, turns at least once."""
        match parent:
            case ast.For(iter=over):
                return child is over or self._has_rows(over)
            case ast.While(test=test):
                return child is test
            case ast.ListComp(generators=[g, *more]) | ast.SetComp(generators=[g, *more]):
                return child is g or (not more and not g.ifs and self._has_rows(g.iter))
            case ast.DictComp(generators=[g, *_]):
                return child is g
            case ast.GeneratorExp():
                return False  # it may be asked for nothing
            case ast.Try(body=body, handlers=[_, *_]):
                return child not in body  # what raises before it may be caught
            case ast.With(items=items):
                given = [i.context_expr for i in items]
                called = [c.func if isinstance(c, ast.Call) else c for c in given]
                return all((self.syntax.qualified(c) or "").startswith("torch.") for c in called)
        return True

    def _has_rows(self, over: ast.expr) -> bool:
        """Whether ``over`` has as many elements as a tensor has rows, which is taken to be one at least."""
        match over:
            case ast.Call(args=[inner, *_]) if self.syntax.builtin(over) == "enumerate":
                return self._has_rows(inner)
            case ast.Call(args=[_, *_] as args, keywords=[]) if self.syntax.builtin(over) == "zip":
                return all(map(self._has_rows, args))
        return self._is_listed(over) or self.reads.is_tensor(over) or self._is_annotated(over)

    # --- forms ------------------------------------------------------------------------------------------------------

    def _deciding(self, test: ast.expr, how: str) -> str:
        while isinstance(test, ast.BoolOp):
            test = test.values[0]
        negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        test = test.operand if isinstance(test, ast.UnaryOp) and negated else test
        what = self._decided_on(test)
        bare = how == "if" and what != "a tensor" and not isinstance(test, ast.Compare)
        if bare or how != "if":  # to convert a number again makes no difference: `int` of a tensor is its item
            what = "an item" if what in ("an int", "a float") else what
        return f"{'truth' if bare else how} of {what}" if what else ""

    def _decided_on(self, e: ast.expr) -> str:
        """What of data the truth of ``e`` depends on."""
        if self.reads.is_tensor(e) and not self._is_constant(e):
            return "a tensor"
        match e:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, _ORDER):
                for one, other in ((left, right), (right, left)):
                    if isinstance(other, ast.Constant) and not isinstance(other.value, (int, float)):
                        return ""
                    if self._is_apart(other) and (number := self._number(one)):
                        return number
                return ""
            case ast.Call(args=[given]) if self.syntax.builtin(e) == "bool" and self.reads.is_tensor(given):
                return "" if self._is_constant(given) else "a tensor"
        return self._number(e)

    def _looping(self, over: ast.expr) -> str:
        match over:
            case ast.Call(func=ast.Name(id="range") as name, args=[*args], keywords=[]) if self.syntax.is_builtin(name):
                what = next(filter(None, (self._number(a) or self._length(a) for a in args[:2])), "")
                return f"range of {what}" if what else ""
            case ast.Call(func=ast.Name(id="enumerate") as name, args=[inner, *_]) if self.syntax.is_builtin(name):
                return "numbered loop over nonzero" if f"loop over {self._sized(inner)}" in NOWHERE else ""
            case ast.Call(func=func, args=[inner, *_]) if self.syntax.qualified(func) == "itertools.groupby":
                numbered = isinstance(inner, ast.Call) and getattr(inner.func, "id", "") == "enumerate"
                listed = inner.args[0] if isinstance(inner, ast.Call) and numbered and inner.args else inner
                if not self._is_listed(listed):
                    return ""
                return "groupby of numbered tolist" if numbered else "groupby of tolist"
        sized = self._sized(over)
        return f"loop over {sized}" if sized else ""

    def _sized(self, e: ast.expr) -> str:
        """The table's name for the way in which the data of a tensor said how many rows ``e`` has."""
        match e:
            case ast.Name():
                return self._by_definition(e, self._sized)
            case ast.Call(func=ast.Attribute(value=held, attr=attr)) if attr in _KEEPING:
                return "" if self.syntax.qualified(e.func) else self._sized(held)
            case ast.Subscript(value=value, slice=ast.Tuple(elts=[ast.Slice(None, None, None), *_])):
                if sized := self._sized(value):
                    return sized
            case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="nonzero"), keywords=[as_tuple]) as call):
                asked = self.reads.is_read(call) and as_tuple.arg == "as_tuple"
                return "nonzero as tuple" if asked and not self._is_constant(call) else ""
            case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="where"), args=[_], keywords=[]) as call):
                return "where" if self.reads.is_read(call) and not self._is_constant(call) else ""
        if not isinstance(e, (ast.Call, ast.Subscript)) or self._is_constant(e):
            return ""
        if isinstance(e, ast.Subscript):
            return "mask index" if self.reads.is_read(e) and self._is_given(e.value) else ""
        name = e.func.attr if isinstance(e.func, ast.Attribute) else ""
        if name not in _SIZED or not (self.reads.is_read(e) or name == "bincount"):
            return ""
        surely = self.syntax.qualified(e.func) is not None or self._is_sure(e.func)
        plain = {k.arg for k in e.keywords} <= _SAME and len(e.args) <= 1 + bool(self.syntax.qualified(e.func))
        return name if surely and plain else ""

    def _is_sure(self, func: ast.expr) -> bool:
        return isinstance(func, ast.Attribute) and (self.reads.is_tensor(func.value) or self._is_annotated(func.value))

    def _length(self, e: ast.expr) -> str:
        """The table's name for the way in which ``e`` asks how many rows something has of which the data says it."""
        match e:
            case ast.Subscript(value=ast.Attribute(value=held, attr="shape"), slice=ast.Constant(value=0)):
                return "a shape" if self._sized(held) else ""
            case ast.Call(func=ast.Attribute(value=held, attr="size"), args=[ast.Constant(value=0)], keywords=[]):
                return "a size" if self._sized(held) else ""
            case ast.Call(func=ast.Name(id="len") as func, args=[held], keywords=[]) if self.syntax.is_builtin(func):
                return "a length" if self._sized(held) else ""
            case ast.Name():
                return self._by_definition(e, self._length)
        return ""

    # --- numbers ----------------------------------------------------------------------------------------------------

    def _number(self, e: ast.expr) -> str:
        """The table's name for the way in which the number ``e`` was read, when nothing but a run tells it."""
        match e:
            case ast.Call(func=ast.Attribute(value=held, attr="item"), args=[], keywords=[]):
                return {"made": "an item", "an element": "an item of an element"}.get(self._fresh(held), "")
            case ast.Call(func=ast.Name(id="int" | "float" as name) as func, args=[given], keywords=[]):
                if not self.syntax.is_builtin(func):
                    return ""
                return ("an int" if name == "int" else "a float") if self._fresh(given) else self._number(given)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                if self._is_apart(right):
                    return self._number(left)
                return self._number(right) if self._is_apart(left) else ""
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right) if self._is_apart(right):
                return self._number(left)
            case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int(by))) if by > 0:
                return self._number(left)
            case ast.Subscript(value=listed) if not isinstance(e.slice, ast.Slice) and self._is_listed(listed):
                return "an element of tolist"
            case ast.Name():
                return self._by_definition(e, self._number, self._element)
        return ""

    def _element(self, d: Definition) -> str:
        """What the name holds that ``d`` binds to an element of a list of numbers."""
        value, path = d.value, d.path
        if value is None:
            return ""
        if d.how == "assign":
            return "an element of tolist" if path and self._is_listed(value) else ""
        if isinstance(value, ast.Call) and path:
            name = self.syntax.builtin(value)
            if name == "enumerate" and path[0] == 1 and value.args:
                value = value.args[0]
            elif name == "zip" and path[0] < len(value.args):
                value = value.args[path[0]]
        return "an element of tolist" if self._is_listed(value) else ""

    def _is_listed(self, e: ast.expr) -> bool:
        """Whether ``e`` is the list of the numbers in a tensor."""
        match e:
            case ast.Call(func=ast.Attribute(value=held, attr="tolist"), args=[], keywords=[]):
                return self._is_given(held)
            case ast.Name():
                return bool(self._by_definition(e, lambda value: "listed" if self._is_listed(value) else ""))
        return False

    def _fresh(self, e: ast.expr) -> str:
        """Whether ``e`` is a tensor that is made here of one that is no constant: "made", "an element" of it, or ""."""
        match e:
            case ast.Name():
                return self._by_definition(e, self._fresh, self._row)
            case ast.Subscript(value=base, slice=index):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                return "an element" if all(map(self._is_place, parts)) and self._is_given(base) else ""
            case ast.Call(func=ast.Attribute(value=base, attr=attr) as func, args=[], keywords=[]):
                return "made" if attr in _REDUCING and not self.syntax.qualified(func) and self._is_given(base) else ""
            case ast.Call(func=func, args=[base], keywords=[]):
                package, _, name = (self.syntax.qualified(func) or "").rpartition(".")
                return "made" if package == "torch" and name in _REDUCING and not self._is_constant(base) else ""
        return ""

    def _row(self, d: Definition) -> str:
        """What the name holds that ``d`` binds to a row of a tensor."""
        rows = d.how == "iteration" and not d.path and d.value is not None
        return "an element" if rows and d.value is not None and self._is_given(d.value) else ""

    def _is_given(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor, and not one of numbers that stand in the code."""
        return (self.reads.is_tensor(e) or self._is_annotated(e)) and not self._is_constant(e)

    def _is_apart(self, e: ast.expr, seen: frozenset[Definition] = frozenset()) -> bool:
        """Whether ``e`` has nothing to do with a number that is read here, so that the two tell nothing together."""
        for n in ast.walk(e):
            if isinstance(n, (ast.Call, ast.Lambda, *_COMPREHENSIONS)):
                return False
            if isinstance(n, ast.Name):
                definitions = self.inference.definitions(n) - seen
                made = [d.value for d in definitions if d.how == "assign" and d.value is not None]
                if len(made) + sum(d.how == "parameter" for d in definitions) < len(definitions):
                    return False
                if not all(self._is_apart(value, seen | definitions) for value in made):
                    return False
        return True

    def _is_place(self, e: ast.expr) -> bool:
        """Whether ``e`` is a position: a number, of which a tensor has another tensor made."""
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            e = e.operand
        if isinstance(e, ast.Constant):
            return type(e.value) is int
        return isinstance(e, ast.Name) and self.inference.of(e).kind is Kind.PYTHON

    def _is_annotated(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor where a method is called on it that no number has, its annotation counted."""
        return self.inference.of(e).is_tensor

    def _is_constant(self, e: ast.expr, seen: frozenset[Definition] = frozenset()) -> bool:
        """Whether ``e`` may be made of numbers that stand in the code, which Dynamo remembers."""
        for n in ast.walk(e):
            if isinstance(n, ast.Call) and self.syntax.qualified(n.func) in _CONSTANTS:
                return True
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n in self.syntax.parents:
                definitions = self.inference.definitions(n) - seen
                if any(d.value is not None and self._is_constant(d.value, seen | definitions) for d in definitions):
                    return True
        return False

    def _by_definition(
        self, name: ast.Name, kind: Callable[[ast.expr], str], element: Callable[[Definition], str] | None = None
    ) -> str:
        """What all definitions of ``name`` agree on, where nothing has used the value before: a size would tell it."""
        definitions = self.inference.definitions(name)
        function = self.syntax.function_of(name)
        if not definitions or function is None:
            return ""
        flow = self.flow_of(function)
        if name.id in flow.captured or name.id in flow.shared:
            return ""
        place = (name.lineno, name.col_offset)
        found = set()
        for d in definitions:
            used = [u for u in flow.uses.get(d, ()) if (u.lineno, u.col_offset) < place and not self._only_tells(u)]
            if used or d.how not in ("assign", "iteration"):
                return ""
            whole = kind(d.value) if d.how == "assign" and not d.path and d.value is not None else ""
            found.add(whole or (element(d) if element is not None else ""))
        return found.pop() if len(found) == 1 else ""

    def _only_tells(self, use: ast.Name) -> bool:
        """Whether the use of a value has no say in what it is: it is put in a list."""
        parent = self.syntax.parents[use]
        return isinstance(parent, ast.Call) and getattr(parent.func, "attr", "") == "append" and use in parent.args
