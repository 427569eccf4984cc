"""Whether a function does no more than bookwork: indices, positions, masks and small arithmetic, with no layer in it.

Nothing is lost when such a function runs outside of a graph. What is not known to be bookwork is said to be unknown.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode, Syntax, walk
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Kind

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Functions and methods of tensors that are cheap, or only move data.
_CHEAP = frozenset(
    "abs add all allclose amax amin any arange argmax argmin argsort argwhere as_tensor bincount bitwise_and "
    "bitwise_not bitwise_or bitwise_xor bool broadcast_tensors broadcast_to bucketize byte cartesian_prod cat ceil "
    "char chunk clamp clamp_max clamp_min clip clone combinations concat concatenate contiguous copy_ count_nonzero "
    "cpu cuda cummax cummin cumprod cumsum detach diag diagonal diff dim div double empty empty_like eq equal expand "
    "expand_as eye fill_ fill_diagonal_ flatten flip float floor floor_divide fmod from_numpy full full_like gather "
    "ge get_device gt half histc hstack index_add index_add_ index_copy_ index_fill index_fill_ index_put index_put_ "
    "index_select int is_floating_point is_tensor isfinite isin isinf isnan item kthvalue le linspace logical_and "
    "logical_not logical_or logical_xor long lt masked_fill masked_fill_ masked_scatter masked_select max maximum "
    "mean median meshgrid min minimum mode movedim mul nanmedian narrow ndimension ne neg new_empty new_full new_ones "
    "new_tensor new_zeros nonzero not_equal numel numpy one_hot ones ones_like outer pad pad_sequence permute pow "
    "prod ravel remainder repeat repeat_interleave requires_grad_ reshape resolve_conj roll round scatter scatter_ "
    "scatter_add scatter_add_ searchsorted select short sign size sort split squeeze stack stride sub sum swapaxes t "
    "take tensor tensor_split tile to tolist topk transpose tril tril_indices triu triu_indices trunc type type_as "
    "unbind unflatten unfold unique unique_consecutive unsqueeze view view_as vstack where zero_ zeros zeros_like "
    "Size device finfo iinfo".split()
)
#: Functions and methods of tensors that ask only, or give a number.
_FREE = frozenset(
    "size dim stride numel ndimension get_device is_floating_point is_tensor item tolist numpy Size device finfo "
    "iinfo".split()
)
#: Functions and methods that are what a graph is for.
_COMPUTE = frozenset(
    "matmul mm bmm einsum linear conv1d conv2d conv3d softmax log_softmax scaled_dot_product_attention embedding "
    "layer_norm rms_norm group_norm batch_norm gelu relu silu tanh sigmoid dropout interpolate grid_sample addmm "
    "baddbmm tensordot cross_entropy softplus exp log sin cos apply_ vmap checkpoint".split()
)
_HOST = frozenset(
    "abs all any bool dict divmod enumerate filter float frozenset getattr hasattr int isinstance iter len list map "
    "max min next range repr reversed round set slice sorted str sum tuple type zip".split()
)
_HOST_METHODS = frozenset(
    "add append clear copy count discard extend format get index insert items join keys lower pop popleft remove "
    "reverse setdefault sort startswith endswith update upper values".split()
)
_HOST_PACKAGES = ("itertools.", "math.", "collections.", "operator.", "bisect.", "typing.", "copy.copy")


@dataclass(frozen=True)
class Bookwork:
    """``operations``: operations on tensors that are written in it; ``unknown``: a call that nothing is known of.

    ``computes``: it does more than bookwork, as far as is known.
    """

    operations: int
    computes: str = ""
    unknown: str = ""


class Bookkeepers(Analysis):
    """Judges the functions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._known: dict[FunctionNode, Bookwork] = {}
        self.callees = facts.ask(Callees)

    def of(self, function: FunctionNode) -> Bookwork:
        """What ``function`` does, with the functions of this module that it calls and those that it defines."""
        if function not in self._known:
            self._known[function] = Bookwork(0)  # what calls itself adds nothing
            signature = _signature(function)
            self._known[function] = self.of_nodes([n for n in walk(function) if n not in signature])
        return self._known[function]

    def of_nodes(self, nodes: list[ast.AST]) -> Bookwork:
        """What ``nodes`` do together."""
        operations, computes, unknown = 0, "", ""
        failing = {n for r in nodes if isinstance(r, (ast.Raise, ast.Assert)) for n in walk(r)}
        for n in nodes:
            if n in failing:
                continue
            part = self._node(n)
            operations += part.operations
            computes, unknown = computes or part.computes, unknown or part.unknown
        return Bookwork(operations, computes, unknown)

    def _node(self, n: ast.AST) -> Bookwork:
        match n:
            case ast.Call(func=ast.Name(id="map" | "filter"), args=[given, _, *_]) if not isinstance(given, ast.Lambda):
                return self._called(given)
            case ast.Call():
                return self._called(n.func)
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                return Bookwork(1, computes="a matrix product")
            case ast.BinOp() | ast.Compare() | ast.UnaryOp():
                return Bookwork(int(self.inference.of(n).is_tensor))
            case ast.Attribute(attr="weight" | "bias", ctx=ast.Load()):
                return Bookwork(0, computes=f"`{ast.unparse(n)}`")
            case ast.Attribute(ctx=ast.Load()) if self.inference.of(n).trainable:
                return Bookwork(0, computes=f"`{ast.unparse(n)}`")
            case ast.Attribute(ctx=ast.Load()) if n.attr in self._properties:
                return self._own(n) or Bookwork(0)
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                return Bookwork(0, unknown="`yield` or `await`")
        return Bookwork(0)

    def _called(self, func: ast.expr) -> Bookwork:
        written = f"`{ast.unparse(func)}`"
        what = self.syntax.qualified(func) or ""
        name = what.rpartition(".")[2] or getattr(func, "attr", getattr(func, "id", ""))
        if what.startswith(_HOST_PACKAGES) or what in ("torch.jit.is_tracing", "torch.compiler.is_compiling"):
            return Bookwork(0)
        own = self._own(func)
        if own is not None:
            return own
        if what.startswith("torch.") or (isinstance(func, ast.Attribute) and not what):
            if isinstance(func, ast.Attribute) and self._is_module(func):
                return Bookwork(1, computes=written)
            if name in _COMPUTE:
                return Bookwork(1, computes=written)
            if name in _CHEAP:
                return Bookwork(int(name not in _FREE))
            if name in _HOST_METHODS and not what:
                return Bookwork(0)
        if isinstance(func, ast.Name) and name in _HOST and not what and self.syntax.is_builtin(func):
            return Bookwork(0)
        value = self.inference.of(func)
        return Bookwork(1, computes=written) if value.kind is Kind.MODULE else Bookwork(0, unknown=written)

    @cached_property
    def _properties(self) -> set[str]:
        """The names of all properties that this module defines."""
        functions = self.syntax.by_type[ast.FunctionDef]
        return {f.name for f in functions if any(ast.unparse(d).endswith("property") for d in f.decorator_list)}

    def _is_module(self, func: ast.Attribute) -> bool:
        return any(self.inference.of(e).kind is Kind.MODULE for e in (func, func.value) if not _is_self(e, self.syntax))

    def _own(self, func: ast.expr) -> Bookwork | None:
        """What a call of a function or method that is defined here does; None for anything else."""
        if isinstance(func, ast.Name):
            found = [self.callees.here(f"{self.module}.{func.id}")] if not self.syntax.qualified(func) else []
            inner = next((p for p in self.syntax.ancestors(func) if isinstance(p, _FUNCTIONS)), None)
            if inner is not None and any(
                isinstance(n, _FUNCTIONS) and n.name == func.id for n in self.syntax.subtree(inner)
            ):
                return Bookwork(0)  # its body is walked with the function around it
            if found == [None]:
                return None
        else:
            attribute = self.inference.instance_attribute(func)
            if attribute is None:
                return None
            cls, name = attribute
            owner = f"{self.module}.{self.syntax.qualname(cls) or cls.name}"
            names = self.project.methods(owner, name)
            if not names:
                stored = name in self.inference.class_facts(cls).stores
                written = f"`{ast.unparse(func)}`"
                return Bookwork(0, computes=written) if stored else Bookwork(0, unknown=written)
            found = [self.callees.here(n) for n in names]
            if all(f is None for f in found):  # an override in another file is taken to do what these do
                return Bookwork(0, unknown=f"`{ast.unparse(func)}`")
        parts = [self.of(f) for f in found if f is not None]
        if not parts:
            return None
        computes, unknown = (next((getattr(p, k) for p in parts if getattr(p, k)), "") for k in ("computes", "unknown"))
        return Bookwork(max(p.operations for p in parts), computes, unknown)


def _is_self(e: ast.expr, syntax: Syntax) -> bool:
    method = syntax.method_of(e)
    return isinstance(e, ast.Name) and method is not None and self_name(method) == e.id


def _signature(function: FunctionNode) -> set[ast.AST]:
    """The nodes of ``function`` that do not run when it is called."""
    outer: list[ast.AST] = [function.args, *function.decorator_list, *filter(None, (function.returns,))]
    notes = [n.annotation for n in walk(function) if isinstance(n, ast.AnnAssign)]
    return {function} | {n for part in [*outer, *notes] for n in walk(part)}
