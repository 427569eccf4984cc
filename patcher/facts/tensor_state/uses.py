"""All uses of integer tensors that one class keeps: what each would be with Python integers, or why that cannot be.

A use that is not in the list below refuses the change. A 0-d tensor becomes an int, a row a list of ints.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from patcher.facts.analysis import Analysis
from patcher.facts.caching.origins import Origins
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.effects.writes import How, Write
from patcher.facts.syntax.classes import INITIALISERS, pairs
from patcher.facts.syntax.tree import own_nodes
from patcher.facts.values.sizes import Sizes
from patcher.facts.values.types import Kind

_WIDE = frozenset({"torch.int", "torch.int32", "torch.int64", "torch.long"})
_FILLS = {"torch.zeros": "0", "torch.ones": "1"}
_HARMLESS = frozenset({"dtype", "device", "requires_grad", "pin_memory"})
_LARGEST = 2**31 - 1
_DEEPEST = 4


class RefusedError(Exception):
    """The state has to stay in tensors: ``node`` shows why."""

    def __init__(self, node: ast.AST, reason: str) -> None:
        super().__init__(reason)
        self.node, self.reason = node, reason


@dataclass(frozen=True)
class Change:
    """``target`` becomes ``template``, which takes ``parts`` of the source."""

    target: ast.expr | ast.stmt
    template: str
    parts: tuple[ast.expr | str, ...] = ()


class Uses(Analysis):
    """The uses of the attributes ``rows`` and ``numbers`` of one class. ``doubts``: what is not known for sure."""

    def __init__(self, origins: Origins, made: Iterable[tuple[str, ast.expr]]) -> None:
        super().__init__(origins.facts)
        self.origins = origins
        self.sizes = self.facts.ask(Sizes)
        self.changes: list[Change] = []
        self.doubts: list[str] = []
        self.unchanged = self.facts.ask(Unchanged)
        self._proven: set[str] = set()
        self._indices: list[str] = []
        self.rows: set[str] = set()
        self.numbers: set[str] = set()
        for name, value in made:
            shape = self.made(value)
            if shape is None:
                raise RefusedError(value, f"`{ast.unparse(value)}` makes no state that is converted")
            (self.rows if shape[0] else self.numbers).add(name)

    # --- what makes it ------------------------------------------------------------------------------------------------

    def made(self, e: ast.expr) -> tuple[bool, Change] | None:
        """Whether ``e`` makes a row of integers, or else one, and what it becomes; None for anything else."""
        what = self.syntax.qualified(e.func) if isinstance(e, ast.Call) else None
        if what is None or not isinstance(e, ast.Call) or any(k.arg not in _HARMLESS for k in e.keywords):
            return None
        dtype = next((k.value for k in e.keywords if k.arg == "dtype"), None)
        wide = dtype is not None and self.syntax.qualified(dtype) in _WIDE
        if self.facts.ask(GradientMode).in_inference_mode(e):
            return None
        match what, e.args:
            case "torch.tensor", [ast.Constant(value=int(n)) as value] if not isinstance(n, bool) and (
                wide or dtype is None
            ):
                return False, Change(e, "{0}", (value,))
            case "torch.zeros" | "torch.ones", [] | [ast.Tuple(elts=[])] if wide and e.args:
                return False, Change(e, _FILLS[what])
            case "torch.zeros" | "torch.ones", [ast.Tuple(elts=[size]) | size] if wide and self._may_count(size):
                return True, Change(e, f"[{_FILLS[what]}] * {{0}}", (size,))
        return None

    def _may_count(self, e: ast.expr) -> bool:
        """Whether ``e`` may be a number of elements: no shape, and more than one."""
        value = self.inference.of(e)
        other = value.is_tensor or value.python in ("container", "str", "none", "float", "bool", "foreign")
        return not other and not isinstance(e, ast.Starred | ast.Constant | ast.Tuple) and not self.sizes.is_shape(e)

    # --- all uses -----------------------------------------------------------------------------------------------------

    def follow(self, everywhere: Iterable[ast.AST]) -> None:
        """Look at each use; ``everywhere``: all nodes of the class. Raises RefusedError where it has to stay."""
        for n in everywhere:
            if self._name(n) is None:
                continue
            assert isinstance(n, ast.Attribute)
            if self.syntax.method_of(n) not in self.origins.methods or self.syntax.function_of(n) is not (
                self.syntax.method_of(n)
            ):
                raise RefusedError(n, f"`{ast.unparse(n)}` is used in a nested function")
            self._attribute(n)
        for function in self.origins.methods:
            if function.name not in INITIALISERS:
                for n in own_nodes(function):
                    self._compiled_in(n)
        unknown = [i for i in self._indices if i not in self._proven]
        self.doubts += [f"`{i}` is one integer, not a row of them" for i in dict.fromkeys(unknown)]
        for name in ("int", "len", "list"):
            if not self.syntax.is_builtin(ast.Name(name, ast.Load())):
                raise RefusedError(self.origins.cls, f"`{name}` is another function here")

    def annotation(self, name: str, e: ast.expr) -> None:
        """The annotation ``e`` of the attribute ``name``."""
        self.changes.append(Change(e, "list[int]" if name in self.rows else "int"))

    def _name(self, e: ast.AST) -> str | None:
        """The attribute, when ``e`` is all of its state."""
        name = self.origins.attribute(e)
        return name if name in self.rows | self.numbers else None

    def _is_one(self, e: ast.AST) -> bool:
        """Whether ``e`` is the place of one integer: a number, or an element of a row."""
        if isinstance(e, ast.Subscript):
            return self._name(e.value) in self.rows and not isinstance(e.slice, ast.Slice | ast.Tuple)
        return self._name(e) in self.numbers

    def _attribute(self, e: ast.Attribute) -> None:
        parent = self.syntax.parents[e]
        row = self._name(e) in self.rows
        if isinstance(parent, ast.Subscript) and parent.value is e and self._is_one(parent):
            self._place(parent)
        elif isinstance(parent, ast.Assign | ast.AnnAssign) and not isinstance(e.ctx, ast.Load):
            self._made_or_set(e, parent)
        elif row and isinstance(parent, ast.Attribute) and parent.attr in ("numel", "zero_", "fill_"):
            self._method(e, self.syntax.parents[parent], parent.attr)
        elif not row:
            self._place(e)
        elif self.syntax.builtin(parent) != "len":
            raise RefusedError(e, f"`{self._line(e)}` may need a tensor")

    def _made_or_set(self, e: ast.Attribute, s: ast.Assign | ast.AnnAssign) -> None:
        value, name = s.value, str(self._name(e))
        if isinstance(s, ast.Assign) and len(s.targets) != 1:
            raise RefusedError(s, "several names get one tensor")
        made = self.made(value) if value is not None else None
        if made is not None and made[0] is (name in self.rows):
            self.changes.append(made[1])
        elif value is not None and (made is not None or name in self.rows):
            raise RefusedError(s, f"`self.{name}` is assigned `{ast.unparse(value)}`")
        elif value is not None and not self._is_state(value):
            raise RefusedError(s, f"`self.{name}` is assigned what may be no tensor")
        elif value is not None:
            self._becomes(value)
            if not self._is_int(value, sure=True):  # a tensor takes the type of what is added
                self.doubts.append(f"`{ast.unparse(value)}` is an integer")
        if isinstance(s, ast.AnnAssign):
            self.annotation(name, s.annotation)

    def _method(self, e: ast.Attribute | ast.Subscript, call: ast.AST, name: str) -> None:
        """A method of a row, or one that writes a number."""
        statement = self.syntax.parents[call]
        if not isinstance(call, ast.Call) or call.keywords:
            raise RefusedError(e, f"`{self._line(e)}` needs a tensor")
        if name == "numel" and not call.args:
            self.changes.append(Change(call, "len({0})", (e,)))
            return
        if not isinstance(statement, ast.Expr) or not self.syntax.alone(statement):
            raise RefusedError(e, f"`{ast.unparse(call)}` is used as a tensor")
        self._beside(e)
        value: ast.expr | str = call.args[0] if call.args else "0"
        whole = self._name(e) in self.rows
        if name != "zero_" and (len(call.args) != 1 or (whole and not isinstance(value, ast.Constant))):
            raise RefusedError(e, f"`{ast.unparse(call)}` is not understood")
        if isinstance(value, ast.expr):
            self._becomes(value)
        sign = {"add_": "+=", "sub_": "-="}.get(name, "=")
        template = "{0}[:] = [{1}] * len({0})" if whole else f"{{0}} {sign} {{1}}"
        self.changes.append(Change(statement, template, (e, value)))

    # --- one integer --------------------------------------------------------------------------------------------------

    def _place(self, e: ast.Attribute | ast.Subscript) -> None:
        """One integer of the state, where it is read or written."""
        parent = self.syntax.parents[e]
        if isinstance(e, ast.Subscript):
            self._index(e, parent)
        if isinstance(e.ctx, ast.Load):
            self._tensor(e)
        elif _is_set_alone(parent, e):
            if isinstance(parent, ast.AugAssign):
                self._beside(e)
            self._becomes(parent.value)  # type: ignore[attr-defined]
        else:
            raise RefusedError(e, f"`{self._line(e)}` is not understood")

    def _index(self, e: ast.Subscript, parent: ast.AST) -> None:
        """An element that is read as one number proves that its index is one."""
        read = isinstance(parent, ast.Attribute) and parent.attr == "item"
        if read or self.syntax.builtin(parent) == "int":
            self._proven.add(ast.unparse(e.slice))
        elif not self._is_int(e.slice):
            self._indices.append(ast.unparse(e.slice))

    def _tensor(self, e: ast.expr) -> None:
        """``e`` is a 0-d tensor and becomes an int: look at what is done with it."""
        parent = self.syntax.parents[e]
        self._beside(e)
        match parent:
            case ast.Attribute(attr="item") if isinstance(call := self.syntax.parents[parent], ast.Call):
                outer = self.syntax.parents[call]
                around = self.syntax.builtin(outer) == "int" and len(outer.args) == 1  # type: ignore[attr-defined]
                target = outer if around and isinstance(outer, ast.Call) else call
                self.changes.append(Change(target, "{0}", (e,)))
            case ast.Attribute(attr="zero_" | "fill_" | "add_" | "sub_" as name) if isinstance(
                e, ast.Attribute | ast.Subscript
            ):
                self._method(e, self.syntax.parents[parent], name)
            case ast.Call() if self.syntax.builtin(parent) == "int" and parent.args == [e]:
                self.changes.append(Change(parent, "{0}", (e,)))
            case ast.Assign(targets=[ast.Name() as target], value=value) if value is e:
                self._named(target, parent)
            case ast.Assign(targets=[place]) if self._is_one(place):
                pass  # looked at from that side
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                self._amount(parent.right if parent.left is e else parent.left)
                self._tensor(parent)
            case ast.Slice():
                pass
            case ast.Compare(ops=[_], left=left, comparators=[right]):
                tensor = self.inference.of(right if left is e else left).is_tensor
                identity = isinstance(parent.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn)
                if tensor or identity or not self._is_test(parent):
                    raise RefusedError(e, f"`{ast.unparse(parent)}` is used as a tensor")
            case ast.FormattedValue(conversion=-1, format_spec=None) if self._in_error(e):
                pass
            case _:
                raise RefusedError(e, f"`{self._line(e)}` may need a tensor")

    def _is_test(self, e: ast.AST) -> bool:
        parent = self.syntax.parents[e]
        if isinstance(parent, ast.BoolOp):
            return self._is_test(parent)
        return isinstance(parent, ast.If | ast.While | ast.Assert | ast.IfExp) and parent.test is e

    def _in_error(self, e: ast.AST) -> bool:
        return isinstance(self.syntax.statement_of(e), ast.Assert | ast.Raise)

    def _named(self, target: ast.Name, bound: ast.Assign) -> None:
        """A name for the tensor, which sees the state change: nothing may write it before the last read."""
        function = self.syntax.function_of(target)
        reads = self.readers(target)
        if function is None or reads is None:
            raise RefusedError(target, f"`{target.id}` is used in a nested function, or deleted")
        flow = self.flow_of(function)
        around = {p for n in (bound, *reads) for p in self.syntax.ancestors(n)}
        inside = any(isinstance(p, ast.For | ast.AsyncFor | ast.While) for p in around)
        if inside or not all(self._is_state(d.value) for r in reads for d in flow.reaching[r]):
            raise RefusedError(target, f"`{target.id}` may be something else as well")
        last = max((_place(self.syntax.statement_of(r)) for r in reads), default=(0, 0))
        between = (n for n in ast.walk(function) if _place(bound.value) < _place(n) < last)  # also in what runs later
        named = [n for n in between if self._writes(n)]
        for read in reads:
            written = (w.node for w in self.unchanged.written_between(bound, read) if self._may_write(w))
            if late := next(chain(written, named), None):
                line = ast.unparse(late).splitlines()[0]
                raise RefusedError(target, f"`{target.id}` is a view of the state and is read after `{line}`")
            self._tensor(read)

    def _is_state(self, e: ast.expr | None, depth: int = 0) -> bool:
        """Whether ``e`` is one integer of the state, or computed from one, so that it becomes an int."""
        match e:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return self._is_state(left, depth) or self._is_state(right, depth)
            case ast.Name() if depth < _DEEPEST:
                found = self.inference.definitions(e)
                return bool(found) and all(d.how == "assign" and self._is_state(d.value, depth + 1) for d in found)
        return e is not None and self._is_one(e)

    def _beside(self, e: ast.expr) -> None:
        """What is read late must not change while its statement runs."""
        function, around = self.syntax.function_of(e), {e, *self.syntax.ancestors(e)}
        step = self.unchanged.graph(function).step_of(e) if function is not None else None
        if step is None:
            raise RefusedError(e, f"what may change `{ast.unparse(e)}` in its function is not followed")
        for w in self.unchanged.writes.in_step(step):
            runs = isinstance(w.node, ast.Call) or isinstance(getattr(w.node, "ctx", None), ast.Load)
            if runs and w.node not in around and self._may_write(w):
                raise RefusedError(e, f"`{ast.unparse(e)}` is read beside `{ast.unparse(w.node)}`, which may change it")

    def _may_write(self, w: Write) -> bool:
        """Whether a write may be into the state: code that is not read may hold the object."""
        called = w.node.func if isinstance(w.node, ast.Call) else w.node
        if self.origins.attribute(called) in self.origins.own:
            return self._runs(called)
        another = isinstance(called, ast.Attribute) and called.attr in self.origins.own  # of what may be this object
        return w.how is How.RUNS or another or self._writes(w.node)

    def _runs(self, n: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
        """Whether ``n`` may write the state: a method or property of the class that does, or the object itself."""
        if isinstance(n, ast.Name):
            method = self.syntax.method_of(n)
            own = method is not None and bool(method.args.args) and method.args.args[0].arg == n.id
            return own and not isinstance(self.syntax.parents[n], ast.Attribute)
        name = self.origins.attribute(n)
        if name is None or name not in self.origins.own or name in seen:
            return False
        return any(self._writes(m, seen | {name}) for f in self.origins.own[name] for m in ast.walk(f))

    def _writes(self, n: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
        """Whether ``n`` writes the state."""
        if isinstance(n, ast.Attribute | ast.Subscript) and not isinstance(n.ctx, ast.Load):
            return self._name(n.value if isinstance(n, ast.Subscript) else n) is not None
        if isinstance(n, ast.Attribute) and n.attr.endswith("_") and not n.attr.endswith("__"):
            return self._is_one(n.value) or self._name(n.value) is not None
        return self._runs(n, seen)

    # --- amounts ------------------------------------------------------------------------------------------------------

    def _is_int(self, e: ast.expr, sure: bool = False) -> bool:
        """Whether ``e`` is a Python integer, now or once the state is; ``sure``: an annotation does not say so."""
        match e:
            case ast.Constant(value=value):
                return type(value) is int and abs(value) <= _LARGEST
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return all(self._is_int(x, sure) or self._is_one(x) for x in (left, right))
            case ast.Call(func=ast.Attribute(value=of, attr="item"), args=[]):
                return self._is_one(of)
            case ast.Call() if self.syntax.builtin(e) in ("int", "len"):
                return not any(self.inference.of(a).is_tensor and not self._is_one(a) for a in e.args)
            case ast.Name():
                values = [d.value for d in self.inference.definitions(e) if d.how == "assign" and not d.path]
                if values and len(values) == len(self.inference.definitions(e)):
                    return all(v is not None and (self._is_one(v) or self._is_int(v, sure)) for v in values)
        known = self.inference.of(e)
        python = known.kind is Kind.PYTHON and known.python in ("int", "size") and not known.data
        return self.sizes.is_size(e) or (python and not sure)

    def _amount(self, e: ast.expr) -> None:
        """``e`` is added to the state, or taken away."""
        if any(isinstance(n, ast.Pow | ast.LShift | ast.Mult) or _is_large(n) for n in ast.walk(e)):
            raise RefusedError(e, f"`{ast.unparse(e)}` may wrap round as a tensor")
        if self._is_int(e) or self._is_state(e):
            return
        value = self.inference.of(e)
        if value.is_tensor or value.python in ("float", "bool", "none", "str", "container"):
            raise RefusedError(e, f"`{ast.unparse(e)}` is no Python integer")
        if (read := self.origins.read_of_data(e, frozenset(self.rows | self.numbers))) is not None:
            raise RefusedError(e, f"the amount `{ast.unparse(read)}` is itself tensor data")
        text = f"`{ast.unparse(e)}` is a Python integer"
        self.doubts += [text] if text not in self.doubts else []

    def _becomes(self, value: ast.expr) -> None:
        """``value`` becomes state, or is added to it. A tensor of integers takes it over as ``int()`` does."""
        if isinstance(value, ast.Constant) and not self._is_int(value):
            raise RefusedError(value, f"`{ast.unparse(value)}` is no integer that fits")
        if self._is_one(value):
            raise RefusedError(value, f"`{ast.unparse(value)}` is a tensor that two places share")
        if not self._is_state(value):
            self._amount(value)
        if not self._is_int(value, sure=True):
            self.changes.append(Change(value, "int({0})", (value,)))

    def _compiled_in(self, n: ast.AST) -> None:
        """Refuse integers that advance where Dynamo compiles a number in, or takes no symbolic bool."""
        advancing = self._advancing
        parts: list[ast.expr] = []
        match n:
            case ast.Subscript(value=of, slice=index) if self._name(of) is None:
                elements = index.elts if isinstance(index, ast.Tuple) else [index]
                parts = [p for p in elements if not isinstance(p, ast.Slice)]
            case ast.Call(func=ast.Name(id="range" | "hash"), args=arguments):
                parts = arguments
            case ast.BinOp(op=ast.Mult(), left=ast.List(), right=count):
                parts = [count]
            case ast.Dict(keys=keys):
                parts = [k for k in keys if k is not None]
            case ast.FormattedValue(value=value) if not self._in_error(n):
                parts = [value]
            case ast.Return(value=ast.expr() as value):
                parts = [c for c in ast.walk(value) if isinstance(c, ast.Compare) and not self._is_test(c)]
        for part in parts:
            if self.origins.of(part) & advancing:
                text = f"`{ast.unparse(part)}` is a number that advances"
                raise RefusedError(part, f"{text}: as a Python integer it is compiled in, again for each value")

    @cached_property
    def _advancing(self) -> frozenset[str]:
        """The attributes that get another value than a constant outside of the initialisers."""
        return frozenset(
            name for f in self.origins.methods if f.name not in INITIALISERS
            for n in own_nodes(f) for name in self._advanced(n)
        )  # fmt: skip

    def _advanced(self, n: ast.AST) -> Iterator[str]:
        stores: list[tuple[ast.expr, ast.expr | None]] = []
        match n:
            case ast.Assign(targets=targets, value=value):
                stores = [s for t in targets for s in pairs(t, value)]
            case ast.AugAssign(target=target) | ast.Call(func=ast.Attribute(value=target, attr="add_" | "sub_")):
                stores = [(target, None)]
        for place, given in stores:
            name = self._name(place.value if isinstance(place, ast.Subscript) else place)
            if name is not None and not isinstance(given, ast.Constant) and not (given and self.made(given)):
                yield name

    def _line(self, e: ast.AST) -> str:
        return ast.unparse(self.syntax.statement_of(e)).splitlines()[0]


def _is_set_alone(parent: ast.AST, e: ast.expr) -> bool:
    """Whether ``parent`` sets ``e`` and nothing else, or advances it."""
    if isinstance(parent, ast.AugAssign):
        return isinstance(parent.op, ast.Add | ast.Sub)
    return isinstance(parent, ast.Assign) and len(parent.targets) == 1 and parent.targets[0] is e


def _is_large(n: ast.AST) -> bool:
    return isinstance(n, ast.Constant) and isinstance(n.value, int) and abs(n.value) > _LARGEST


def _place(n: ast.AST) -> tuple[int, int]:
    return getattr(n, "lineno", 0), getattr(n, "col_offset", 0)
