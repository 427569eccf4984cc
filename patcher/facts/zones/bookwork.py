"""Whether a function does no more than bookwork: indices, positions, masks and small arithmetic, with no layer in it.

Nothing is lost when such a function runs outside of a graph. What is not known is taken to be more.
"""

from __future__ import annotations

import ast

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
    "cpu cuda cummax cummin cumprod cumsum detach diag diagonal diff div double empty empty_like eq equal expand "
    "expand_as eye fill_ fill_diagonal_ flatten flip float floor floor_divide fmod from_numpy full full_like gather "
    "ge gt half histc hstack index_add index_add_ index_copy_ index_fill index_fill_ index_put index_put_ "
    "index_select int isfinite isin isinf isnan kthvalue le linspace logical_and "
    "logical_not logical_or logical_xor long lt masked_fill masked_fill_ masked_scatter masked_select max maximum "
    "mean median meshgrid min minimum mode movedim mul nanmedian narrow ne neg new_empty new_full new_ones "
    "new_tensor new_zeros nonzero not_equal one_hot ones ones_like outer pad pad_sequence permute pow "
    "prod ravel remainder repeat repeat_interleave requires_grad_ reshape resolve_conj roll round scatter scatter_ "
    "scatter_add scatter_add_ searchsorted select short sign sort split squeeze stack sub sum swapaxes t "
    "take tensor tensor_split tile to topk transpose tril tril_indices triu triu_indices trunc type type_as "
    "unbind unflatten unfold unique unique_consecutive unsqueeze view view_as vstack where zero_ "
    "zeros zeros_like".split()
)
#: Functions and methods of tensors that ask only, or give a number.
_FREE = frozenset(
    "size dim stride numel ndimension get_device is_floating_point is_tensor item tolist numpy Size device finfo "
    "iinfo is_tracing is_compiling".split()
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


class Bookkeepers(Analysis):
    """Judges the functions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._known: dict[FunctionNode, int | None] = {}
        self.callees = facts.ask(Callees)

    def of(self, function: FunctionNode) -> int | None:
        """As `of_nodes`, with the functions of this module that ``function`` calls and those that it defines."""
        if function not in self._known:
            self._known[function] = 0  # what calls itself adds nothing
            signature = _signature(function)
            self._known[function] = self.of_nodes([n for n in walk(function) if n not in signature])
        return self._known[function]

    def of_nodes(self, nodes: list[ast.AST]) -> int | None:
        """How many operations on tensors ``nodes`` hold; None where they do more than bookwork, or may."""
        operations = 0
        failing = {n for r in nodes if isinstance(r, (ast.Raise, ast.Assert)) for n in walk(r)}
        for n in nodes:
            part = self._node(n) if n not in failing else 0
            if part is None:
                return None
            operations += part
        return operations

    def _node(self, n: ast.AST) -> int | None:
        match n:
            case ast.Call(func=ast.Name(id="map" | "filter"), args=[given, _, *_]) if not isinstance(given, ast.Lambda):
                return self._called(given)
            case ast.Call():
                return self._called(n.func)
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                return None
            case ast.BinOp() | ast.Compare() | ast.UnaryOp():
                return int(self.inference.of(n).is_tensor)
            case ast.Attribute(attr=attr, ctx=ast.Load()):
                return None if attr in ("weight", "bias") or self.inference.of(n).trainable else 0
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                return None
        return 0

    def _called(self, func: ast.expr) -> int | None:
        what = self.syntax.qualified(func) or ""
        name = what.rpartition(".")[2] or getattr(func, "attr", getattr(func, "id", ""))
        if what.startswith(_HOST_PACKAGES):
            return 0
        found = self._own(func)
        if found is not None:
            parts = [self.of(f) for f in found]
            return None if not parts or None in parts else max(p for p in parts if p is not None)
        if what.startswith("torch.") or (isinstance(func, ast.Attribute) and not what):
            module = isinstance(func, ast.Attribute) and self._is_module(func)
            host = name in _HOST_METHODS and not what
            return int(name in _CHEAP - _FREE) if not module and (host or name in _CHEAP | _FREE) else None
        return 0 if isinstance(func, ast.Name) and name in _HOST and self.syntax.is_builtin(func) else None

    def _is_module(self, func: ast.Attribute) -> bool:
        return any(self.inference.of(e).kind is Kind.MODULE for e in (func, func.value) if not _is_self(e, self.syntax))

    def _own(self, func: ast.expr) -> list[FunctionNode] | None:
        """The functions or methods defined here that calling ``func`` may run; None for anything else."""
        if isinstance(func, ast.Name):
            found = [self.callees.here(f"{self.module}.{func.id}")] if not self.syntax.qualified(func) else []
            inner = next((p for p in self.syntax.ancestors(func) if isinstance(p, _FUNCTIONS)), None)
            if inner is not None and any(isinstance(n, _FUNCTIONS) and n.name == func.id for n in walk(inner)):
                return [inner]  # its body is walked with the function around it
            return [f for f in found if f is not None] or None
        attribute = self.inference.instance_attribute(func)
        if attribute is None:
            return None
        owner = f"{self.module}.{self.syntax.qualname(attribute[0]) or attribute[0].name}"
        methods = map(self.callees.here, self.project.methods(owner, attribute[1]))
        return [f for f in methods if f is not None]  # an override in another file is taken to do what these do


def _is_self(e: ast.expr, syntax: Syntax) -> bool:
    method = syntax.method_of(e)
    return isinstance(e, ast.Name) and method is not None and self_name(method) == e.id


def _signature(function: FunctionNode) -> set[ast.AST]:
    """The nodes of ``function`` that do not run when it is called."""
    outer: list[ast.AST] = [function.args, *function.decorator_list, *filter(None, (function.returns,))]
    notes = [n.annotation for n in walk(function) if isinstance(n, ast.AnnAssign)]
    return {function} | {n for part in [*outer, *notes] for n in walk(part)}
