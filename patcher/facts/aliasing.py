"""Who else holds a tensor: views, names and callees that keep it, changes in place that could be seen through them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from patcher.facts import torch_api as api
from patcher.facts.analysis import Analysis
from patcher.facts.flow import Definition
from patcher.facts.syntax import FunctionNode, dotted
from patcher.facts.values import Kind

if TYPE_CHECKING:
    from patcher.facts import Facts

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CONTAINERS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
#: Functions and methods that may give their argument, or a view of it.
_VIEWS = api.ALIASING | frozenset(
    "broadcast_to broadcast_tensors moveaxis adjoint H mH as_strided numpy positive hsplit vsplit dsplit tensor_split "
    "split_with_sizes view_as_real view_as_complex conj resolve_conj resolve_neg alias unsafe_chunk unsafe_split "
    "to_dense to_sparse coalesce refine_names rename align_to as_tensor asarray atleast_1d atleast_2d atleast_3d "
    "meshgrid dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout "
    "from_numpy pin_memory".split()
)
#: Views of a tensor no two places of which share memory may still have places that do.
_OVERLAPPING = frozenset("expand expand_as broadcast_to broadcast_tensors as_strided unfold meshgrid".split())
#: What a tensor is asked for that tells it from a copy, or what is hung on it.
_TELLING = frozenset(
    "data_ptr is_leaf grad grad_fn _version storage untyped_storage is_set_to register_hook retain_grad backward "
    "stride is_contiguous storage_offset is_shared register_post_accumulate_grad_hook".split()
)
#: Where torch keeps functions that look at tensors and make new ones.
_NAMESPACES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft")
_WRITING = frozenset(
    f"__{n}__"
    for n in "setitem delitem setattr iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift".split()
)
#: Builtins that look at a tensor and let it go.
_LOOKING = frozenset("len isinstance print float int bool str repr type hasattr issubclass callable".split())
#: nn modules that change no input in place and give a new tensor.
_PURE_MODULES = frozenset(
    f"torch.nn.{n}" for n in "Linear Embedding LayerNorm RMSNorm GroupNorm Conv1d Conv2d Conv3d Softmax".split()
)


class Aliasing(Analysis):
    """Aliases of expressions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._open: set[Definition] = set()

    def aliases(self, e: ast.expr) -> bool:
        """Whether ``e`` may give an object (or a view of one) that exists already."""
        match e:
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.aliases(operand)
            case ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.Compare():
                return False
            case ast.IfExp(body=body, orelse=orelse):
                return self.aliases(body) or self.aliases(orelse)
            case ast.Call(func=func):
                what = self.syntax.qualified(func)
                name = what.rpartition(".")[2] if what else func.attr if isinstance(func, ast.Attribute) else ""
                if self._in_place(e, name) or name in _VIEWS:
                    return True
                if what in api.CREATORS or (name in ("where", "clone", "cat", "stack") and self._of_torch(what, func)):
                    return False
                known = api.SMOOTH_SAME | api.SMOOTH_FLOAT | api.STEEP_FLOAT | api.PREDICATES | api.REDUCTIONS
                if name in known | {"masked_fill", "masked_scatter", "repeat", "cumsum", "softmax", "log_softmax"}:
                    return not self._of_torch(what, func)
                if own := self.inference.instance_attribute(func):
                    return self.inference.attribute(*own).module not in _PURE_MODULES
                return True
        return True

    def _of_torch(self, what: str | None, func: ast.expr) -> bool:
        """Whether a call is one of torch's own, or of a method that only a tensor has."""
        if what is not None:
            return what.startswith("torch.")
        receiver = self.inference.of(func.value) if isinstance(func, ast.Attribute) else None
        return receiver is not None and receiver.kind in (Kind.TENSOR, Kind.UNKNOWN)

    def _in_place(self, call: ast.Call, name: str) -> bool:
        """Whether a torch function or tensor method of that name writes to one of its arguments."""
        if _writes(name):
            return True
        for k in call.keywords:
            if k.arg == "out" or (k.arg == "inplace" and not (isinstance(k.value, ast.Constant) and not k.value.value)):
                return True
        flagged = name in api.SMOOTH_SAME | api.SMOOTH_FLOAT | {"threshold", "rrelu"}
        return flagged and any(isinstance(a, ast.Constant) and a.value is True for a in call.args)

    def fresh(self, e: ast.expr, branch: ast.AST | None = None, target: str | None = None) -> bool:
        """Whether nobody else can hold the object that ``e`` gives (a local that was made here and never shared).

        After ``branch``, which merges it into the name ``target``, that name gives the merged one.
        """
        if not self.aliases(e):
            return True
        if not isinstance(e, ast.Name):
            return False
        function = self.syntax.function_of(e)
        definitions = self._origins(e)
        if function is None or not definitions or e.id in self.flow_of(function).captured:
            return False
        looped = any(isinstance(p, _LOOPS) for p in self.syntax.ancestors(e))
        for d in definitions:
            if d.how == "augmented":
                pass
            elif d.how != "assign" or d.value is None or d.path or self.aliases(d.value) or not self._only_name(d):
                return False
            for use in self.flow_of(function).uses.get(d, ()):
                if use is e:
                    continue
                within = branch is not None and branch in self.syntax.ancestors(use)
                later = looped or (use.lineno, use.col_offset) > (e.lineno, e.col_offset)
                if later and not within and use.id != target:
                    return False
                merged = later and not within and not looped
                if not merged and self.shares(use):
                    return False
        return True

    def _origins(self, name: ast.Name) -> set[Definition]:
        """The definitions of ``name``, and those that an augmented one may have changed in place."""
        found: set[Definition] = set()
        stack = list(self.inference.definitions(name))
        while stack:
            d = stack.pop()
            if d not in found:
                found.add(d)
                if isinstance(d.node, ast.AugAssign) and isinstance(d.node.target, ast.Name):
                    stack += self.inference.definitions(d.node.target)
        return found

    def _only_name(self, d: Definition) -> bool:
        """Whether the object goes nowhere but into the name when ``d`` binds it: no ``a = b = value``."""
        parent = self.syntax.parents.get(d.node)
        return isinstance(parent, ast.AnnAssign) or (isinstance(parent, ast.Assign) and len(parent.targets) == 1)

    def shares(self, load: ast.expr) -> bool:
        """Whether this use of a name gives the object, or a view of it, another holder (a return does not count)."""
        outer: ast.expr = self.through_views(load)
        parent = self.syntax.parents[outer]
        while isinstance(parent, ast.Attribute) and _writes(parent.attr):
            call = self.syntax.parents[parent]  # a method that changes in place gives the tensor itself
            if not isinstance(call, ast.Call):
                return True
            outer = self.through_views(call)
            parent = self.syntax.parents[outer]
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            return parent.value is outer
        if isinstance(parent, (ast.Yield, ast.YieldFrom, ast.Starred, ast.BoolOp, ast.Await)):
            return True
        if isinstance(parent, (*_LOOPS, ast.comprehension)):
            return parent.iter is outer if not isinstance(parent, ast.While) else False
        keyword = isinstance(parent, ast.keyword)
        if isinstance(parent, _CONTAINERS) or keyword:
            holder: ast.AST = parent
            while isinstance(holder, (*_CONTAINERS, ast.keyword)):
                holder = self.syntax.parents[holder]
            return not (isinstance(holder, ast.Return) or (isinstance(holder, ast.Call) and self.lets_go(holder)))
        if isinstance(parent, ast.Call) and outer is not parent.func:
            return not self.lets_go(parent)
        return False

    def lets_go(self, call: ast.Call) -> bool:
        """Whether ``call`` neither keeps its arguments nor writes to them, and gives none of them (or a view) back."""
        what = self.syntax.qualified(call.func)
        if what is not None:
            name = what.rpartition(".")[2]
            return what.rpartition(".")[0] in _NAMESPACES and name not in _VIEWS and not self._in_place(call, name)
        if isinstance(call.func, ast.Name):
            return call.func.id in _LOOKING and not self.inference.is_rebound(call.func)
        if isinstance(call.func, ast.Attribute):
            if own := self.inference.instance_attribute(call.func):
                return self.inference.attribute(*own).module in _PURE_MODULES
            tensor = self.inference.of(call.func.value).is_tensor
            keeps = call.func.attr == "set_" or any(k.arg == "out" for k in call.keywords)
            return tensor and not keeps
        return False

    def may_overlap(self, e: ast.expr) -> bool:
        """Whether several places of the tensor ``e`` may share memory, as far as can be seen."""
        match e:
            case ast.Name():
                definitions = self._origins(e)
                return not definitions or any(self._defined_overlapping(d) for d in definitions)
            case ast.Subscript(value=base):
                return self.may_overlap(base)
            case ast.IfExp(body=body, orelse=orelse):
                return self.may_overlap(body) or self.may_overlap(orelse)
            case ast.Attribute():
                own = self.inference.instance_attribute(e)
                if own is not None:
                    stores = self.inference.class_facts(own[0]).stores.get(own[1], [])
                    return not stores or any(s.value is None or self.may_overlap(s.value) for s in stores)
                return e.attr not in _VIEWS - _OVERLAPPING or self.may_overlap(e.value)
            case ast.Call(func=func, args=args):
                if not self.aliases(e):
                    return False
                what = self.syntax.qualified(func)
                if what in ("torch.nn.Parameter", "torch.nn.parameter.Parameter") and args:
                    return self.may_overlap(args[0])
                if what is not None and what.startswith("torch.") and args:
                    name, receiver = what.rpartition(".")[2], args[0]
                elif isinstance(func, ast.Attribute) and self.inference.of(func.value).is_tensor:
                    name, receiver = func.attr, func.value
                else:
                    return True
                views = name in _VIEWS or _writes(name)
                return name in _OVERLAPPING or (views and self.may_overlap(receiver))
        return self.aliases(e)

    def _defined_overlapping(self, d: Definition) -> bool:
        if d.how == "augmented":
            return False
        if d.how != "assign" or d.value is None:
            return True
        if d in self._open:  # a view of its own last turn adds nothing
            return False
        self._open.add(d)
        try:
            return self.may_overlap(d.value)
        finally:
            self._open.discard(d)

    def through_views(self, load: ast.expr) -> ast.expr:
        """The outermost expression around ``load`` that may still be the same object or a view of it."""
        node: ast.expr = load
        while True:
            parent = self.syntax.parents[node]
            if isinstance(parent, ast.Subscript) and parent.value is node:
                node = parent
            elif isinstance(parent, ast.Attribute) and parent.attr in _VIEWS:
                call = self.syntax.parents[parent]
                node = call if isinstance(call, ast.Call) and call.func is parent else parent
            elif (isinstance(parent, ast.IfExp) and parent.test is not node) or (
                isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.UAdd)
            ):
                node = parent
            else:
                return node

    def escapes(self, definition: Definition, function: FunctionNode) -> str | None:
        """How the object that ``definition`` binds leaves the function or is changed in place, or None."""
        name = definition.name
        if name in self.flow_of(function).captured:
            return f"`{name}` is read by a nested function"
        for use in self.flow_of(function).uses.get(definition, ()):
            outer = self.through_views(use)
            parent = self.syntax.parents[outer]
            stored = isinstance(outer, (ast.Subscript, ast.Attribute)) and not isinstance(outer.ctx, ast.Load)
            if stored or isinstance(use.ctx, ast.Store):
                return f"`{name}` is changed in place"
            if isinstance(parent, ast.AugAssign) and parent.target is outer:
                return f"`{name}` is changed in place"
            if isinstance(parent, ast.Attribute):
                if _writes(parent.attr) or not isinstance(parent.ctx, ast.Load):
                    return f"`{name}` is changed in place"
                if parent.attr in _TELLING:
                    return f"`{name}` may be an existing tensor, which `{parent.attr}` can tell from a copy"
            if isinstance(parent, ast.Compare) and _by_identity(parent):
                return f"`{name}` may be an existing tensor, and is compared by identity"
            if isinstance(parent, ast.Return) and self.used_up_by_callers(function):
                continue
            while isinstance(parent, (ast.Tuple, ast.List, ast.Dict)):
                parent = self.syntax.parents[parent]
            if isinstance(parent, ast.Return) or self.shares(use):
                return f"`{name}` may be an existing tensor, and is handed on"
        return None

    def written_to(self, definition: Definition, function: FunctionNode | None) -> bool:
        """Whether what ``definition`` binds is changed in place through its name, other than by ``name += value``."""
        for use in self.flow_of(function).uses.get(definition, ()) if function is not None else ():
            outer = self.through_views(use)
            parent = self.syntax.parents[outer]
            if outer is not use and not isinstance(getattr(outer, "ctx", ast.Load()), ast.Load):
                return True
            if isinstance(parent, ast.AugAssign) and parent.target is outer and outer is not use:
                return True
            if isinstance(parent, ast.Attribute) and _writes(parent.attr):
                return True
            name = self.syntax.qualified(parent.func) if isinstance(parent, ast.Call) else None
            if isinstance(parent, ast.Call) and name and self._in_place(parent, name.rpartition(".")[2]):
                return True
        return False

    def changed_while_used(
        self, values: Iterable[ast.expr], branch: ast.AST, definition: Definition | None
    ) -> str | None:
        """How one of ``values``, existing tensors that ``branch`` chooses from, may change while the choice is in use.

        ``definition`` is the name that the choice goes into; None when it is used up in the statement that holds it.
        """
        function = self.syntax.function_of(branch)
        assert function is not None
        holders = self._holders(values)
        if captured := holders & self.flow_of(function).captured:
            return f"`{min(captured)}` is read by a nested function"
        for node in self._while_used(branch, definition, function):
            for changed in self._changes(node):
                if self._root(changed) in holders or not self.fresh_made(changed):
                    return f"`{ast.unparse(changed)}` may be changed while the result is in use"
            if isinstance(node, ast.Call) and not self.lets_go(node):
                reached = {r for n in ast.walk(node) if (r := self._root(n)) is not None}
                owners = {h.partition(".")[0] for h in holders if "." in h}
                if reached & holders or any(r.partition(".")[0] in owners for r in reached):
                    return f"`{ast.unparse(node.func)}` may change what the result is chosen from"
        return None

    def _holders(self, values: Iterable[ast.expr]) -> set[str]:
        """The names and instance attributes that may hold one of ``values``, or what it is a view of."""
        found: set[str] = set()
        stack = [v for v in values if self.aliases(v)]
        while stack:
            for n in ast.walk(stack.pop()):
                text = self._held(n)
                if text is None or text in found:
                    continue
                found.add(text)
                if isinstance(n, ast.Name):
                    stack += [d.value for d in self._origins(n) if d.value and self.aliases(d.value)]
        return found

    def _held(self, n: ast.AST) -> str | None:
        if self.inference.instance_attribute(n) is not None:
            return self._root(n)
        parent = self.syntax.parents.get(n)
        me = parent is not None and self.inference.instance_attribute(parent) is not None
        return n.id if isinstance(n, ast.Name) and not me else None

    def _root(self, e: ast.AST) -> str | None:
        """``x`` of ``x[0].view(-1)``, ``self.x`` of ``self.x[0]``."""
        while isinstance(e, (ast.Subscript, ast.Attribute, ast.Call, ast.Starred)):
            if isinstance(e, ast.Attribute) and self.inference.instance_attribute(e) is not None:
                return dotted(e)
            e = e.func if isinstance(e, ast.Call) else e.value
        return e.id if isinstance(e, ast.Name) else None

    def _while_used(self, branch: ast.AST, definition: Definition | None, function: FunctionNode) -> Iterator[ast.AST]:
        """What runs after ``branch`` and, at the latest, in the statement of the last use."""
        start, end = _end(branch), _end(self.syntax.statement_of(branch))
        for use in self.flow_of(function).uses.get(definition, ()) if definition is not None else ():
            end = max(end, _end(self.syntax.statement_of(use)))
        loops = [p for p in self.syntax.ancestors(branch) if isinstance(p, _LOOPS)]
        if loops:
            start, end = (loops[-1].lineno, loops[-1].col_offset), max(end, _end(loops[-1]))
        for node in ast.walk(function):
            if isinstance(node, (ast.stmt, ast.expr)) and start <= (node.lineno, node.col_offset) < end:
                yield node

    def _changes(self, node: ast.AST) -> Iterator[ast.expr]:
        """The expressions whose object ``node`` itself changes in place."""
        match node:
            case ast.AugAssign(target=target):
                if self.inference.of(target).kind is not Kind.PYTHON:
                    yield target
            case ast.Subscript(value=base, ctx=ast.Store() | ast.Del()):
                if self.inference.of(base).python != "container":
                    yield base
            case ast.Attribute(value=base, attr="data" | "grad", ctx=ast.Store() | ast.Del()):
                yield base
            case ast.Call(func=func, args=args):
                what = self.syntax.qualified(func)
                name = what.rpartition(".")[2] if what else func.attr if isinstance(func, ast.Attribute) else ""
                if what is not None and not what.startswith("torch."):
                    return
                if self._in_place(node, name):
                    if what is None and isinstance(func, ast.Attribute):
                        yield func.value
                    elif args:
                        yield args[0]
                    yield from (k.value for k in node.keywords if k.arg == "out")

    def fresh_made(self, e: ast.expr) -> bool:
        """Whether ``e`` is, or is a view of, a local that was made in this function by an operator."""
        while True:
            if isinstance(e, ast.Subscript):
                e = e.value
            elif isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute):
                if self.syntax.qualified(e.func) is not None:
                    break
                e = e.func.value
            elif isinstance(e, ast.Attribute) and e.attr in _VIEWS:
                e = e.value
            else:
                break
        if not isinstance(e, ast.Name):
            return not self.aliases(e)
        definitions = self._origins(e)
        return bool(definitions) and all(
            d.how == "augmented" or (d.how == "assign" and d.value is not None and not self.aliases(d.value))
            for d in definitions
        )

    def used_up_by_callers(self, function: FunctionNode) -> bool:
        """Whether every caller is known and puts the result into an operator, so that nobody keeps the object."""
        calls = self.inference.calls_of(function)
        return bool(calls) and all(self.used_up(call) for call in calls)

    def used_up(self, e: ast.expr) -> bool:
        """Whether the value of ``e`` goes straight into an operator or a torch function."""
        outer = self.through_views(e)
        parent = self.syntax.parents[outer]
        if isinstance(parent, ast.Call):
            return outer is not parent.func and self.syntax.qualified(parent.func) is not None and self.lets_go(parent)
        if isinstance(parent, ast.Compare):
            return not _by_identity(parent)
        return isinstance(parent, (ast.BinOp, ast.UnaryOp))


def _writes(name: str) -> bool:
    """Whether a tensor method of that name changes the tensor in place."""
    return name in _WRITING if name.endswith("__") else name.endswith("_")


def _by_identity(compare: ast.Compare) -> bool:
    return any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in compare.ops)


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0  # type: ignore[attr-defined]
