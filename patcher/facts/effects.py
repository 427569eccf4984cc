"""What evaluating an expression may do besides giving a value: raise, touch state, draw random numbers, alias."""

from __future__ import annotations

import ast
from collections.abc import Callable

from patcher.facts import torch_api as api
from patcher.facts.flow import Definition, Flow
from patcher.facts.infer import Inference
from patcher.facts.syntax import FunctionNode, Syntax, dotted
from patcher.facts.values import Category, Kind, broadcast

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult)


class Effects:
    """Purity, totality, smoothness and aliasing of expressions."""

    def __init__(self, syntax: Syntax, inference: Inference, flow_of: Callable[[FunctionNode], Flow]) -> None:
        self.syntax = syntax
        self.inference = inference
        self.flow_of = flow_of

    def why_not_total(self, e: ast.expr) -> str | None:
        """None when ``e`` can be evaluated where the source did not: no effect, no error; else the reason it cannot."""
        of = self.inference.of
        match e:
            case ast.Constant():
                return None
            case ast.Name():
                definitions = self.inference.definitions(e)
                if any(d.how == "unbound" for d in definitions):
                    return f"`{e.id}` may be unbound"
                return None
            case ast.Attribute(value=base):
                if self.inference.instance_attribute(e) is not None:
                    value = of(e)
                    return None if value.kind is not Kind.UNKNOWN else f"what `{_text(e)}` holds is not known"
                if of(e).is_number and isinstance(base, ast.Attribute):
                    return self.why_not_total(base) if of(base).kind is not Kind.UNKNOWN else None
                if e.attr in ("shape", "dtype", "device", "ndim", "T", "mT") and of(base).is_tensor:
                    return self.why_not_total(base)
                if isinstance(base, ast.Call) and self.syntax.qualified(base.func) == "torch.finfo":
                    return self._why_not_finfo(base)
                if self.syntax.qualified(e) is not None and of(e).kind is Kind.PYTHON:
                    return None
                return f"`{_text(e)}` may raise or run code"
            case ast.BinOp(left=left, op=op, right=right):
                return self._why_not_binary(e, left, op, right)
            case ast.UnaryOp(operand=operand):
                if isinstance(e.op, ast.Not) and of(operand).kind is not Kind.PYTHON:
                    return f"`not {_text(operand)}` reads a tensor"
                return self.why_not_total(operand)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if isinstance(op, (ast.Is, ast.IsNot)):
                    return self.why_not_total(left) or self.why_not_total(right)
                return self._why_not_pair(e, left, right)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                if of(test).kind is not Kind.PYTHON:
                    return f"`{_text(test)}` may read a tensor"
                return self.why_not_total(test) or self.why_not_total(body) or self.why_not_total(orelse)
            case ast.Call():
                return self._why_not_call(e)
            case ast.Subscript(value=base, slice=index):
                return self._why_not_subscript(e, base, index)
        return f"`{_text(e)}` may raise or have an effect"

    def _why_not_finfo(self, call: ast.Call) -> str | None:
        for a in call.args:
            if isinstance(a, ast.Attribute) and a.attr == "dtype":
                x = self.inference.of(a.value)
                if x.is_tensor and x.dtype is not None and x.dtype.category in (Category.FLOAT, Category.UNKNOWN):
                    return self.why_not_total(a.value)
        return f"`{_text(call)}` may raise"

    def _why_not_binary(self, e: ast.expr, left: ast.expr, op: ast.operator, right: ast.expr) -> str | None:
        a, b = self.inference.of(left), self.inference.of(right)
        if isinstance(op, _ARITHMETIC):
            return self._why_not_pair(e, left, right)
        if isinstance(op, ast.Div):
            if not (a.is_tensor or b.is_tensor) and not self._nonzero(right):
                return f"`{_text(e)}` may divide by zero"
            return self._why_not_pair(e, left, right)
        if isinstance(op, ast.Pow) and isinstance(right, ast.Constant) and isinstance(right.value, (int, float)):
            return self.why_not_total(left) if right.value >= 0 else f"`{_text(e)}` may raise"
        if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            both = (a.dtype, b.dtype)
            if all(d is not None and d.category is Category.BOOL for d in both):
                return self._why_not_pair(e, left, right)
        return f"`{_text(e)}` may raise"

    def _why_not_pair(self, e: ast.expr, left: ast.expr, right: ast.expr) -> str | None:
        a, b = self.inference.of(left), self.inference.of(right)
        if a.is_tensor or b.is_tensor:
            if broadcast(a, b)[1] is None:
                return f"the shapes in `{_text(e)}` are not known to fit"
        elif not (a.is_number and b.is_number):
            return f"what `{_text(e)}` holds is not known"
        return self.why_not_total(left) or self.why_not_total(right)

    def _why_not_subscript(self, e: ast.expr, base: ast.expr, index: ast.expr) -> str | None:
        x = self.inference.of(base)
        if x.python == "size":
            return self.why_not_total(base)
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if x.is_tensor and all(isinstance(p, ast.Slice) or _is_ellipsis(p) or _is_none(p) for p in parts):
            slices = [p for p in parts if isinstance(p, ast.Slice)]
            if all(_plain_bound(b) for s in slices for b in (s.lower, s.upper, s.step)):
                rank = x.rank
                if not slices or (rank is not None and rank.offset >= len(slices)):
                    return self.why_not_total(base)
        return f"`{_text(e)}` may be out of range"

    def _why_not_call(self, e: ast.Call) -> str | None:
        of = self.inference.of
        what = self.syntax.qualified(e.func)
        keywords = [k.value for k in e.keywords]
        if any(isinstance(a, ast.Starred) for a in e.args) or any(k.arg is None for k in e.keywords):
            return f"`{_text(e)}` may raise"
        if what is not None:
            if what in api.RANDOM:
                return f"`{_text(e.func)}` draws random numbers"
            name = what.rpartition(".")[2]
            if not what.startswith("torch.") or not e.args:
                return f"`{_text(e.func)}` may raise or have an effect"
            receiver, rest = e.args[0], e.args[1:]
            if name in ("zeros_like", "ones_like", "full_like") and of(receiver).is_tensor:
                return self._first(receiver, *rest)
            if name == "where" and len(e.args) == 3:
                for a, b in ((e.args[1], e.args[2]), (e.args[0], e)):
                    if broadcast(of(a), of(b))[1] is None:
                        return f"the shapes in `{_text(e)}` are not known to fit"
                return self._first(*e.args)
        elif isinstance(e.func, ast.Attribute):
            own = self.inference.instance_attribute(e.func)
            if own is not None:
                return f"`{_text(e.func)}` may have an effect or state of its own"
            name, receiver, rest = e.func.attr, e.func.value, e.args
        else:
            name = e.func.id if isinstance(e.func, ast.Name) else ""
            numbers = name in ("float", "abs", "min", "max") and all(of(a).is_number for a in e.args)
            if numbers or (name == "len" and len(e.args) == 1 and of(e.args[0]).is_tensor):
                return self._first(*e.args)
            return f"`{_text(e.func)}` may raise or have an effect"
        x = of(receiver)
        if not x.is_tensor:
            return f"what `{_text(receiver)}` holds is not known"
        if name in api.SMOOTH_SAME | api.SMOOTH_FLOAT | api.STEEP_FLOAT | api.PREDICATES | frozenset(api.CASTS):
            if (
                name.startswith("clamp")
                or name == "clip"
                or name in ("softplus", "elu", "leaky_relu", "nan_to_num", "celu")
            ):
                if not all(of(a).is_number or of(a).python == "none" for a in [*rest, *keywords]):
                    return f"the shapes in `{_text(e)}` are not known to fit"
            elif rest and name not in ("gelu",):
                return f"`{_text(e)}` may raise"
            return self._first(receiver, *rest, *keywords)
        if name in ("to", "type_as", "detach", "contiguous", "size", "dim", "numel", "sum", "mean", "any", "all"):
            if name in ("sum", "mean", "any", "all") and (rest or keywords):
                return f"`{_text(e)}` may raise"
            if name == "size" and not (x.rank is not None and x.rank.offset >= 1) and rest:
                return f"`{_text(e)}` may raise"
            if name == "mean" and x.dtype is not None and x.dtype.category in (Category.INT, Category.BOOL):
                return f"`{_text(e)}` raises for integers"
            return self._first(receiver, *(a for a in rest if of(a).python != "dtype"))
        if name in ("softmax", "log_softmax"):
            dims = [*rest, *keywords]
            if len(dims) == 1 and isinstance(dims[0], ast.UnaryOp) and _text(dims[0]) == "-1":
                return self._first(receiver)
        return f"`{_text(e)}` may raise or have an effect"

    def _nonzero(self, e: ast.expr) -> bool:
        """Whether ``e`` is a Python number that is written down somewhere, and is not 0."""
        value = self.inference.of(e)
        return value.is_number and isinstance(value.constant, (int, float)) and value.constant != 0

    def _first(self, *parts: ast.expr) -> str | None:
        for part in parts:
            reason = self.why_not_total(part)
            if reason is not None:
                return reason
        return None

    def why_not_smooth(self, e: ast.expr) -> str | None:
        """None when the gradient through ``e`` is finite at all finite inputs; else what may make it infinite."""
        of = self.inference.of
        for node in ast.walk(e):
            if not isinstance(node, ast.expr) or not of(node).is_tensor:
                continue
            value = of(node)
            if value.trainable:
                return f"`{_text(node)}` would get a zero gradient in place of none"
            match node:
                case ast.BinOp(op=ast.Div(), right=right):
                    if not self._nonzero(right):
                        return f"the gradient of `{_text(node)}` is infinite where `{_text(right)}` is 0"
                case ast.BinOp(op=ast.Pow(), right=right):
                    if not (isinstance(right, ast.Constant) and isinstance(right.value, int) and right.value >= 1):
                        return f"the gradient of `{_text(node)}` may be infinite"
                case ast.Call(func=func):
                    name = func.attr if isinstance(func, ast.Attribute) else dotted(func)
                    if name in api.STEEP_FLOAT or name in ("norm", "std", "pow", "div", "prod"):
                        return f"the gradient of `{_text(node)}` may be infinite"
        return None

    # --- aliasing ---------------------------------------------------------------------------------------------------

    def aliases(self, e: ast.expr) -> bool:
        """Whether ``e`` may give an object (or a view of one) that exists already."""
        match e:
            case ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.Compare():
                return False
            case ast.IfExp(body=body, orelse=orelse):
                return self.aliases(body) or self.aliases(orelse)
            case ast.Call(func=func):
                what = self.syntax.qualified(func)
                name = what.rpartition(".")[2] if what else func.attr if isinstance(func, ast.Attribute) else ""
                if name in api.CREATORS or what in api.CREATORS or name in ("where", "clone", "cat", "stack"):
                    return False
                if name.endswith("_") and not name.endswith("__"):
                    return True
                known = api.SMOOTH_SAME | api.SMOOTH_FLOAT | api.STEEP_FLOAT | api.PREDICATES | api.REDUCTIONS
                if name in known | {"masked_fill", "masked_scatter", "repeat", "cumsum", "softmax", "log_softmax"}:
                    return what is not None and not what.startswith("torch.")
                if own := self.inference.instance_attribute(func):
                    module = self.inference.attribute(*own).module
                    return module not in ("torch.nn.Linear", "torch.nn.Embedding", "torch.nn.LayerNorm")
                return True
        return True

    def fresh(self, e: ast.expr) -> bool:
        """Whether nobody else can hold the object that ``e`` gives (a local that was made here and never shared)."""
        if not self.aliases(e):
            return True
        if not isinstance(e, ast.Name):
            return False
        function = self.syntax.function_of(e)
        definitions = self.inference.definitions(e)
        if function is None or not definitions or e.id in self.flow_of(function).captured:
            return False
        for d in definitions:
            if d.how == "augmented":
                continue
            if d.how != "assign" or d.value is None or d.path or self.aliases(d.value):
                return False
            for use in self.flow_of(function).uses.get(d, ()):
                if use is not e and self.shares(use) and not self._later(use, e):
                    return False
        return True

    def _later(self, a: ast.expr, b: ast.expr) -> bool:
        """Whether ``a`` only ever runs after ``b``: it stands below, and no loop holds ``b``."""
        if any(isinstance(p, (ast.For, ast.AsyncFor, ast.While)) for p in self.syntax.ancestors(b)):
            return False
        return (a.lineno, a.col_offset) > (b.lineno, b.col_offset)

    def shares(self, load: ast.expr) -> bool:
        """Whether this use of a name gives the object, or a view of it, another holder (a return does not count)."""
        outer = self.through_views(load)
        parent = self.syntax.parents[outer]
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            return parent.value is outer
        if isinstance(parent, (ast.Yield, ast.YieldFrom, ast.Starred)):
            return True
        if isinstance(parent, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            holder: ast.AST = parent
            while isinstance(holder, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
                holder = self.syntax.parents[holder]
            call = isinstance(holder, ast.Call) and (self.syntax.qualified(holder.func) or "").startswith("torch.")
            return not (isinstance(holder, ast.Return) or call)
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
            return (
                parent.func.attr in ("append", "extend", "insert", "add", "setdefault", "update")
                and load is not parent.func.value
            )
        return False

    def may_overlap(self, e: ast.expr) -> bool:
        """Whether ``e`` is seen to be an expanded view, several places of which share memory."""
        if isinstance(e, ast.Name):
            definitions = self.inference.definitions(e)
            return any(d.how == "assign" and d.value is not None and self.may_overlap(d.value) for d in definitions)
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute):
            if e.func.attr in ("expand", "expand_as", "broadcast_to"):
                return True
            return e.func.attr in api.ALIASING and self.may_overlap(e.func.value)
        return False

    def through_views(self, load: ast.expr) -> ast.expr:
        """The outermost expression around ``load`` that may still be the same object or a view of it."""
        node: ast.expr = load
        while True:
            parent = self.syntax.parents[node]
            if isinstance(parent, ast.Subscript) and parent.value is node:
                node = parent
            elif isinstance(parent, ast.Attribute) and parent.attr in api.ALIASING:
                call = self.syntax.parents[parent]
                node = call if isinstance(call, ast.Call) and call.func is parent else parent
            elif isinstance(parent, ast.IfExp) and parent.test is not node:
                node = parent
            elif isinstance(parent, ast.keyword) or not isinstance(parent, ast.expr):
                return node
            else:
                return node

    def escapes(self, definition: Definition, function: FunctionNode) -> str | None:
        """How the object that ``definition`` binds leaves the function or is changed in place, or None."""
        if definition.name in self.flow_of(function).captured:
            return f"`{definition.name}` is read by a nested function"
        for use in self.flow_of(function).uses.get(definition, ()):
            outer = self.through_views(use)
            parent = self.syntax.parents[outer]
            if (isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Store)) or isinstance(
                use.ctx, ast.Store
            ):
                return f"`{definition.name}` is changed in place"
            if isinstance(parent, ast.AugAssign) and parent.target is outer:
                return f"`{definition.name}` is changed in place"
            if isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and not parent.attr.endswith("__"):
                return f"`{definition.name}` is changed in place"
            if isinstance(parent, ast.Return) and self.used_up_by_callers(function):
                continue
            while isinstance(parent, (ast.Tuple, ast.List, ast.Dict)):
                parent = self.syntax.parents[parent]
            if isinstance(parent, ast.Return) or self.shares(use):
                return f"`{definition.name}` may be an existing tensor, and is handed on"
        return None

    def used_up_by_callers(self, function: FunctionNode) -> bool:
        """Whether every caller is known and puts the result into an operator, so that nobody keeps the object."""
        calls = self.inference.calls_of(function)
        return bool(calls) and all(self.used_up(call) for call in calls)

    def used_up(self, e: ast.expr) -> bool:
        """Whether the value of ``e`` goes straight into an operator or a torch function."""
        parent = self.syntax.parents[self.through_views(e)]
        if isinstance(parent, ast.Call):
            return (self.syntax.qualified(parent.func) or "").startswith("torch.")
        return isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare))


def _text(e: ast.AST) -> str:
    text = " ".join(ast.unparse(e).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _is_ellipsis(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and e.value is ...


def _is_none(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and e.value is None


def _plain_bound(e: ast.expr | None) -> bool:
    if isinstance(e, ast.UnaryOp):
        e = e.operand
    return e is None or isinstance(e, (ast.Constant, ast.Name))
