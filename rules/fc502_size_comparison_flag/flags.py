"""Comparisons of sizes: which of them Dynamo may hold as a symbolic bool, and which bool argument they end in.

A size, or an int that changes between calls, is a symbolic number while Dynamo traces, and a comparison of it a
symbolic bool, also where its value is known. ``and``, ``or``, ``&``, ``|`` and ``bool()`` hand it on; ``not``,
``not in`` and a test make it a Python bool.
"""

from __future__ import annotations

import ast
import enum
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.classes import parameter_at, self_name
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.tables import torch_api as api
from patcher.facts.tables.wording import suggests_configuration
from patcher.facts.values.callees import Callees
from patcher.facts.values.sizes import Sizes
from patcher.facts.values.types import Kind

_ORDER = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
_RELATIONS = {**_ORDER, ast.Eq: operator.eq, ast.NotEq: operator.ne}
#: Expressions that may leave out a part of theirs, statements that may, and those that end a block early.
_MAY_SKIP = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef)
_LEAVING = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)
_DEEPEST = 5  # names and functions that a flag is followed through


class Source(enum.IntEnum):
    """Where an operand of a comparison comes from; the largest of its parts counts.

    ``FIXED``: constants, configuration, attributes of modules: Dynamo makes a guard of them. ``VARYING``: a size or
    another number for sure. ``OPEN``: maybe a number. ``TENSOR``: a tensor, or what may well be one.
    """

    FIXED = 0
    VARYING = 1
    OPEN = 2
    TENSOR = 3


@dataclass(frozen=True)
class Reach:
    """The bool argument that a value ends in.

    ``strict``: the operator is given this very value where it is made, or further down in the same block; as it raises
    for anything that is no bool, the value was one.
    """

    argument: str
    strict: bool


class Flags(Analysis):
    """Follows comparisons back to their operands and on to the arguments that they are for."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.sizes = facts.ask(Sizes)
        self.callees = facts.ask(Callees)
        self._sources: dict[ast.AST, Source] = {}
        self._asked: set[ast.expr] = set()

    # --- the value of a flag ----------------------------------------------------------------------------------------

    def symbolic(self, e: ast.expr) -> list[ast.Compare]:
        """The comparisons that the value of ``e`` may be, where they may be symbolic."""
        match e:
            case ast.Compare():
                return [e] if self.varies(e) else []
            case ast.BoolOp(op=op, values=values):
                passed = [v for v in values[:-1] if self._passed_over(v, isinstance(op, ast.And))]
                return [c for v in values if v not in passed for c in self.symbolic(v)]
            case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
                return self.symbolic(left) + self.symbolic(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self.symbolic(body) + self.symbolic(orelse)
            case ast.NamedExpr(value=value):
                return self.symbolic(value)
            case ast.Call(args=[argument]) if self.is_bool_call(e):
                return self.symbolic(argument)
        return []

    def _passed_over(self, e: ast.expr, conjunction: bool) -> bool:
        """Whether ``e``, not the last operand, never is the result: ``t > 1 and ...``, as sizes 0 and 1 are static."""
        if not isinstance(e, ast.Compare) or len(e.ops) > 1 or type(e.ops[0]) not in _RELATIONS:
            return False
        relation, left, right = _RELATIONS[type(e.ops[0])], e.left, e.comparators[0]
        if isinstance(right, ast.Constant) and isinstance(right.value, int) and right.value in (0, 1):
            return relation(2, right.value) is conjunction and self.sizes.is_size(left)
        if isinstance(left, ast.Constant) and isinstance(left.value, int) and left.value in (0, 1):
            return relation(left.value, 2) is conjunction and self.sizes.is_size(right)
        return False

    def is_bool_call(self, e: ast.AST) -> bool:
        """Whether ``e`` is ``bool(x)``."""
        return (
            isinstance(e, ast.Call)
            and isinstance(e.func, ast.Name)
            and e.func.id == "bool"
            and len(e.args) == 1
            and not (e.keywords or isinstance(e.args[0], ast.Starred))
            and self.syntax.is_builtin(e.func)
        )

    def is_bool(self, e: ast.expr) -> bool:
        """Whether ``e`` is a bool for sure."""
        match e:
            case ast.UnaryOp(op=ast.Not()):
                return True
            case ast.Compare(left=left, ops=ops, comparators=others):
                if all(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in ops):
                    return True
                return all(map(self._compares_to_bool, [left, *others]))
            case ast.BoolOp(values=parts):
                return all(map(self.is_bool, parts))
            case ast.BinOp(left=a, op=ast.BitAnd() | ast.BitOr(), right=b) | ast.IfExp(body=a, orelse=b):
                return self.is_bool(a) and self.is_bool(b)
            case ast.NamedExpr(value=value):
                return self.is_bool(value)
            case ast.Attribute(attr="training") if (own := self.inference.instance_attribute(e)) is not None:
                return (
                    self.facts.is_module_class(own[0]) and "training" not in self.inference.class_facts(own[0]).stores
                )
            case ast.Name():
                return self._holds_bool(e)
            case ast.Attribute():
                return False
        return self.is_bool_call(e) or self.inference.of(e).python == "bool"

    def _holds_bool(self, name: ast.Name) -> bool:
        if name in self._asked:  # a loop through definitions
            return False
        self._asked.add(name)
        found = self.inference.definitions(name)
        holds = bool(found) and all(map(self._binds_bool, found))
        self._asked.discard(name)
        return holds

    def _binds_bool(self, d: Definition) -> bool:
        if isinstance(d.node, ast.arg) and d.node.annotation is not None:
            return self.inference.defined(d).python == "bool"
        return d.how == "assign" and not d.path and d.value is not None and self.is_bool(d.value)

    def _compares_to_bool(self, e: ast.expr) -> bool:
        """Whether ``e`` is Python's own number, string or None: what others hand in may be a number of NumPy's."""
        match e:
            case ast.Constant():
                return True
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return all(map(self._compares_to_bool, parts))
            case ast.BinOp(left=left, right=right):
                return self._compares_to_bool(left) and self._compares_to_bool(right)
            case ast.UnaryOp(operand=operand):
                return self._compares_to_bool(operand)
            case ast.Call(func=ast.Name(id="int") as func) if self.syntax.is_builtin(func):
                return True
            case ast.Call(func=ast.Attribute()) if self._gives_numbers(e):
                return True
        return self.sizes.is_count(e) or self.sizes.is_shape(e) or self.inference.of(e).python in ("str", "none")

    def _gives_numbers(self, call: ast.Call) -> bool:
        """Whether every method that ``call`` may run is in this file, and returns Python's own numbers or nothing."""
        names = self.callees.of(call)
        functions = [self.callees.here(name) for name in names]
        if not names or call in self._asked:
            return False
        self._asked.add(call)
        known = [f for f in functions if f is not None]
        returned = [n.value for f in known for n in self.syntax.subtree(f) if isinstance(n, ast.Return) and n.value]
        sure = len(known) == len(names) and bool(returned) and all(map(self._compares_to_bool, returned))
        self._asked.discard(call)
        return sure

    # --- operands ---------------------------------------------------------------------------------------------------

    def unproven(self, compare: ast.Compare) -> list[ast.expr]:
        """The operands that are not known to be Python's own numbers."""
        return [e for e in (compare.left, *compare.comparators) if not self._compares_to_bool(e)]

    def varies(self, compare: ast.Compare) -> bool:
        """Whether ``compare`` is of numbers, as far as is known, and one of them may be symbolic."""
        sides = [compare.left, *compare.comparators]
        for op, right in zip(compare.ops, compare.comparators, strict=True):
            if isinstance(op, (ast.Is, ast.IsNot, ast.NotIn)):
                return False
            if isinstance(op, ast.In) and not isinstance(right, (ast.Tuple, ast.List)):
                return False
        sources = [self.source(e) for e in sides]
        if Source.TENSOR in sources or any(self._never_a_number(e) or self.inference.of(e).data for e in sides):
            return False
        if Source.VARYING in sources:
            return True
        ordered = any(type(op) in _ORDER for op in compare.ops)
        fixed = [e for e, s in zip(sides, sources, strict=True) if s is Source.FIXED]
        numbers = (self.inference.of(e).is_number or self._compares_to_bool(e) for e in fixed)
        return Source.OPEN in sources and (ordered or all(numbers))

    def _never_a_number(self, e: ast.expr) -> bool:
        if isinstance(e, (ast.Tuple, ast.List)):
            return any(map(self._never_a_number, e.elts))
        value = self.inference.of(e)
        others = ("str", "none", "bool", "dtype", "container")
        return value.kind not in (Kind.PYTHON, Kind.UNKNOWN) or value.python in others

    def source(self, e: ast.expr) -> Source:
        """Where ``e`` comes from."""
        known = self._sources.get(e)
        if known is None:
            self._sources[e] = Source.FIXED  # a loop through definitions ends here
            known = self._sources[e] = self._source(e)
        return known

    def _source(self, e: ast.expr) -> Source:
        value = self.inference.of(e)
        if value.is_tensor:
            return Source.TENSOR
        if value.data or value.python in ("str", "none", "bool", "dtype"):
            return Source.FIXED
        if self.sizes.is_size(e) or self.sizes.is_shape(e):
            return Source.VARYING
        match e:
            case ast.Name():
                return max((self._defined(d) for d in self.inference.definitions(e)), default=Source.FIXED)
            case ast.Attribute():
                return self._attribute(e)
            case ast.Call():
                return self._call(e)
            case ast.UnaryOp(operand=operand):
                return self.source(operand)
            case ast.BinOp(left=left, right=right):
                return max(self.source(left), self.source(right))
            case ast.Subscript(value=base):
                return Source.OPEN if self.source(base) is Source.VARYING else self.source(base)
            case ast.IfExp(body=body, orelse=orelse):
                return max(self.source(body), self.source(orelse))
            case ast.NamedExpr(value=inner):
                return self.source(inner)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return max(map(self.source, elements), default=Source.FIXED)
        return Source.FIXED

    def _defined(self, d: Definition) -> Source:
        if (bound := _bound_value(d)) is not None:
            return self.source(bound)
        if d.how == "assign" and d.value is not None and self.sizes.is_shape(d.value):
            return Source.VARYING
        value = self.inference.defined(d)
        if value.is_tensor:
            return Source.TENSOR
        if d.how not in ("parameter", "assign", "augmented") or value.data:
            return Source.FIXED  # what a loop goes over is unrolled
        if value.is_number and value.python != "bool":
            return Source.VARYING
        return Source.OPEN if value.kind is Kind.UNKNOWN else Source.FIXED

    def _attribute(self, e: ast.Attribute) -> Source:
        root: ast.expr = e
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
            last = root.attr if isinstance(root, ast.Attribute) else root.id if isinstance(root, ast.Name) else ""
            if suggests_configuration(last):
                return Source.FIXED
        value = self.inference.of(e)
        if (value.kind is Kind.PYTHON and not value.is_number) or e.attr in ("ndim", "dtype", "device", "training"):
            return Source.FIXED
        method = self.syntax.method_of(e)
        if isinstance(root, ast.Name) and method is not None and root.id == self_name(method):
            cls = self.syntax.class_of(method)
            return Source.FIXED if cls is None or self.facts.is_module_class(cls) else Source.OPEN
        return Source.FIXED if self.source(root) is Source.FIXED else Source.OPEN

    def _call(self, e: ast.Call) -> Source:
        value = self.inference.of(e)
        what = self.syntax.qualified(e.func)
        builtin = isinstance(e.func, ast.Name) and self.syntax.is_builtin(e.func)
        if builtin and last_name(e.func) == "len" and e.args:
            return Source.VARYING if self.inference.of(e.args[0]).kind is Kind.UNKNOWN else Source.FIXED
        if builtin or (what or "").startswith("math."):
            found = max(map(self.source, e.args), default=Source.FIXED)
            return Source.VARYING if found is Source.OPEN and value.is_number else found
        if isinstance(e.func, ast.Attribute) and e.func.attr in ("numel", "nelement") and value.is_number:
            return Source.VARYING
        if value.kind is Kind.PYTHON:
            return Source.VARYING if value.python == "size" else Source.FIXED
        if what is not None and what.startswith("torch."):
            return Source.TENSOR
        if isinstance(e.func, ast.Attribute):
            own = self.inference.instance_attribute(e.func)
            receiver = self.inference.of(e.func if own is not None else e.func.value)
            if receiver.is_tensor or receiver.kind is Kind.MODULE:
                return Source.TENSOR
        return Source.OPEN

    # --- where a flag goes ------------------------------------------------------------------------------------------

    def root(self, e: ast.expr) -> ast.expr:
        """The outermost expression whose value ``e`` may be, be it through ``bool()``."""
        while True:
            parent = self.syntax.parents[e]
            joint = isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.BitAnd, ast.BitOr))
            arm = isinstance(parent, ast.IfExp) and parent.test is not e
            if not (isinstance(parent, ast.BoolOp) or joint or arm or self.is_bool_call(parent)):
                return e
            assert isinstance(parent, ast.expr)
            e = parent

    def reach(self, e: ast.expr, depth: int = 0) -> Reach | None:
        """The bool argument that ``e``, which is its own `root`, ends in."""
        if depth > _DEEPEST:
            return None
        parent = self.syntax.parents[e]
        match parent:
            case ast.keyword(arg=str(name)) if isinstance(call := self.syntax.parents[parent], ast.Call):
                return self._argument(call, name, None, depth)
            case ast.Call(args=arguments) if e in arguments:
                position = arguments.index(e)
                if any(isinstance(a, ast.Starred) for a in arguments[:position]):
                    return None
                return self._argument(parent, None, position, depth)
            case ast.Assign() | ast.AnnAssign() | ast.Tuple() | ast.List():
                return self._named(e, depth)
            case ast.NamedExpr():
                outer = self.reach(self.root(parent), depth + 1)
                return self._named(e, depth) or (Reach(outer.argument, False) if outer else None)
            case ast.Return() if (function := self.syntax.function_of(parent)) is not None:
                return self._first(self._calls(function), depth)
        return None

    def _argument(self, call: ast.Call, keyword: str | None, position: int | None, depth: int) -> Reach | None:
        what = self.syntax.qualified(call.func)
        if what is not None:
            for name, at in api.BOOL_ARGUMENTS.get(what, ()):
                if keyword == name or (at is not None and position == at):
                    return Reach(name, True)
            if what.startswith("torch."):
                return None
        for function in self._called(call):
            if (found := self._parameter(function, keyword, position, depth)) is not None:
                return found
        return None

    def _called(self, call: ast.Call) -> list[FunctionNode]:
        """The functions of this module that ``call`` may run."""
        found = [function for name in self.callees.of(call) if (function := self.callees.here(name)) is not None]
        return found or [function for function in self.syntax.functions if self._is_named(call, function)]

    def _is_named(self, call: ast.Call, function: FunctionNode) -> bool:
        """Whether ``call`` calls a function of that name: one in a function has no dotted name to go by."""
        method = self.syntax.method_of(function) is function
        return not method and isinstance(call.func, ast.Name) and call.func.id == function.name

    def _calls(self, function: FunctionNode) -> list[ast.Call]:
        """The calls in this module that may run ``function``."""
        calls = self.syntax.by_type[ast.Call]
        return [c for c in calls if last_name(c.func) == function.name and function in self._called(c)]

    def _parameter(self, function: FunctionNode, keyword: str | None, position: int | None, depth: int) -> Reach | None:
        bound = self.syntax.method_of(function) is function and self_name(function) is not None
        argument = parameter_at(function, keyword if position is None else position, bound)
        flow = self.flow_of(function)
        return self._first(flow.uses.get(flow.by_node[argument], ()) if argument is not None else (), depth)

    def _named(self, value: ast.expr, depth: int) -> Reach | None:
        function = self.syntax.function_of(value)
        if function is None:
            return None
        flow = self.flow_of(function)
        uses = [u for d in flow.by_node.values() if _bound_value(d) is value for u in flow.uses.get(d, ())]
        for use in uses:
            found = self.reach(use, depth + 1) if self._is_next(value, use) else None
            if found is not None and found.strict:
                return found
        return self._first(uses, depth)

    def _is_next(self, value: ast.expr, use: ast.Name) -> bool:
        """Whether ``use`` is evaluated whenever ``value``, which stands above it in one block, has been."""
        first, last = self.syntax.statement_of(value), self.syntax.statement_of(use)
        inside = takewhile(lambda n: n is not last, self.syntax.ancestors(use))
        block = self.syntax.block_of(first)
        if last not in block or any(isinstance(n, _MAY_SKIP) for n in inside) or isinstance(last, _COMPOUND):
            return False
        between = block[block.index(first) + 1 : block.index(last)]
        return not any(isinstance(n, _LEAVING) for s in between for n in ast.walk(s))

    def _first(self, uses: Iterable[ast.expr], depth: int) -> Reach | None:
        """The first bool argument that one of ``uses`` ends in."""
        found = (self.reach(self.root(use), depth + 1) for use in uses)
        return next((Reach(r.argument, False) for r in found if r is not None), None)


def _bound_value(d: Definition) -> ast.expr | None:
    """The expression that ``d`` binds, also out of a tuple that is written out."""
    value = d.value if d.how == "assign" else None
    for position in d.path:
        if not isinstance(value, (ast.Tuple, ast.List)) or position >= len(value.elts):
            return None
        value = value.elts[position]
    return value


__all__ = ["Flags", "Reach", "Source"]
