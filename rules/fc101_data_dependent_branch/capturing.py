"""Whether statements can be an arm of ``torch.cond``, which is in the graph whole: nothing there changes or ends it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.aliasing import Aliasing
from patcher.facts.effects.conditions import Conditions
from patcher.facts.effects.writes import How, Write, Writes
from patcher.facts.flow.definitions import Definition
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.syntax.written import short
from patcher.facts.tables import call_effects as tables
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Kind
from patcher.facts.zones.host_reads import HostReads

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: What may be a method of an object, for all that is known.
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript)
#: What a function of its own cannot do for the one around it, or the graph does not hold.
_ODD = (
    ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Delete, ast.Try, ast.Match, ast.AsyncFor,
    ast.AsyncWith, ast.NamedExpr, ast.Assert,
)  # fmt: skip
#: Builtins that Dynamo follows, and that have no effect.
_BUILTINS = frozenset(
    "abs all any bool dict divmod enumerate float getattr hasattr int isinstance len list max min pow range reversed "
    "round set slice sorted str sum tuple type zip".split()
)
#: Methods that copy data to the host, or whose result has as many elements as data says.
_ON_HOST = frozenset("item tolist numpy nonzero argwhere unique unique_consecutive masked_select".split())
#: Layers of which no graph is made, or whose state an arm would change.
_LAYERS = ("LSTM", "GRU", "RNN", "BatchNorm", "InstanceNorm", "SpectralNorm", "Lazy")


@dataclass(frozen=True)
class Granted:
    """What has to be so for an arm to be captured."""

    doubts: tuple[str, ...] = ()


class _Refused(Exception):  # noqa: N818 - it is no error, it is the answer
    """It cannot be an arm; the text says why."""


class Capturing(Analysis):
    """Arms of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.aliasing = facts.ask(Aliasing)
        self.callees = facts.ask(Callees)
        self.conditions = facts.ask(Conditions)
        self.host_reads = facts.ask(HostReads)
        self.presumed = facts.ask(MaskedReads).presumed
        self.writes = facts.ask(Writes)

    def why_not(self, body: list[ast.stmt], asked: Iterable[ast.AST] = ()) -> Granted | str:
        """What has to be granted for ``body`` to be an arm, or why it is none.

        ``asked``: the tests of branches on data in it, which are captured as well.
        """
        nodes = [n for s in body for n in ast.walk(s)]
        left = set(asked)
        try:
            for n in nodes:
                self._fits(n, set(nodes))
            doubts = [d for n in nodes for w in self.writes.of(n) for d in self._written(w, set(nodes))]
            for n in nodes:
                if n not in left and isinstance(n, ast.expr):
                    self._stays_on_device(n)
                if isinstance(n, ast.Call):
                    self._is_followed(n)
        except _Refused as refusal:
            return str(refusal)
        return Granted(tuple(dict.fromkeys(doubts)))

    def _fits(self, n: ast.AST, inside: set[ast.AST]) -> None:
        if isinstance(n, _ODD):
            raise _Refused(f"the arm holds more than assignments (`{_line(n)}`)")
        if isinstance(n, ast.Expr) and not isinstance(n.value, ast.Constant):
            raise _Refused(f"the arm holds more than assignments (`{_line(n)}`)")
        if isinstance(n, (ast.Break, ast.Continue)):
            loop = next(p for p in self.syntax.ancestors(n) if isinstance(p, _LOOPS))
            if loop not in inside:
                raise _Refused(f"the arm ends a turn of the loop around it (`{_line(n)}`)")
        if isinstance(n, ast.With) and not all(self.writes.is_quiet(i.context_expr) for i in n.items):
            raise _Refused(f"what `{_line(n)}` does is not known")
        if isinstance(n, ast.Name) and n.id in ("super", "__class__", "locals", "vars", "eval", "exec", "globals"):
            raise _Refused(f"`{n.id}` means another thing in a function of its own")

    def _written(self, w: Write, inside: set[ast.AST]) -> list[str]:
        """What has to be granted for a change to be seen in the arm alone."""
        if w.how is How.BINDS:
            return []
        if w.how is How.SETS:
            raise _Refused(f"an attribute is set in the arm ({w.told})")
        if isinstance(w.node, _OPERATORS) and not isinstance(getattr(w.node, "ctx", None), (ast.Store, ast.Del)):
            return [f"`{short(w.node)}` computes with tensors"]
        if w.how is How.RUNS:
            if isinstance(w.node, ast.Call) and self._is_ours(w.node):
                return [f"`{short(w.node.func)}` changes nothing that was there before, and is compiled whole"]
            raise _Refused(f"what {w.told} does is not known")
        if w.afar or not all(self._is_made_here(e, inside) for e in w.objects):
            raise _Refused(f"the arm changes what was there before ({w.told})")
        return []

    def _is_ours(self, call: ast.Call) -> bool:
        """Whether ``call`` runs a layer, or code of the project."""
        return self.inference.of(call.func).kind is Kind.MODULE or bool(self.callees.of(call))

    def _is_made_here(self, e: ast.expr, inside: set[ast.AST]) -> bool:
        """Whether ``e`` is, or is a part of, something that was made in the arm."""
        root = e
        while isinstance(root, ast.Subscript):
            root = root.value
        if not isinstance(root, ast.Name):
            return not self.aliasing.aliases(root)
        definitions = self.inference.definitions(root)
        return bool(definitions) and all(self._is_made_by(d, inside) for d in definitions)

    def _is_made_by(self, d: Definition, inside: set[ast.AST]) -> bool:
        if isinstance(d.node, ast.AugAssign) and isinstance(d.node.target, ast.Name):
            return self._is_made_here(d.node.target, inside)
        made = d.how == "assign" and not d.path and d.value is not None
        return made and d.node in inside and not self.aliasing.aliases(d.value)  # type: ignore[arg-type]

    # --- what ends a graph ------------------------------------------------------------------------------------------

    def _stays_on_device(self, e: ast.expr) -> None:
        """Refuse what needs data on the host, or is of a size that data says, for all that is known."""
        parent = self.syntax.parents.get(e)
        tested = isinstance(parent, (ast.If, ast.IfExp, ast.While)) and parent.test is e
        reads = self.host_reads.is_read(e) or (tested and self.conditions.reads_data(e)) or self._may_need_data(e)
        if reads and not self.facts.eager_only(e):
            raise _Refused(f"the arm reads data on the host as well (`{short(e)}`)")

    def _may_need_data(self, e: ast.expr) -> bool:
        match e:
            case ast.Call(func=ast.Attribute(value=held, attr=name)) if name in _ON_HOST:
                return self.inference.of(held).kind is not Kind.PYTHON
            case ast.Call(func=ast.Attribute(attr="where"), args=[_], keywords=[]):
                return True
            case ast.Call(args=args) if self.syntax.builtin(e) in ("int", "float", "bool", "range"):
                return any(held.is_tensor or held.data for held in map(self.inference.of, args))
            case ast.Subscript(ctx=ast.Load(), slice=at):
                parts = at.elts if isinstance(at, ast.Tuple) else [at]
                return any(not isinstance(p, (ast.Constant, ast.Slice)) and self.presumed.boolean(p) for p in parts)
        return False

    def _is_followed(self, call: ast.Call) -> None:
        """Refuse a call that ends the graph, or of which nothing is known."""
        written, func = f"`{short(call.func)}`", call.func
        held = self.inference.of(func)
        if held.module is not None and any(word in str(held.module) for word in _LAYERS):
            raise _Refused(f"{written} changes what it keeps, or ends the graph")
        for function in self.callees.bodies(call):
            if function is not None and self.host_reads.of(function):
                raise _Refused(f"{written} reads data on the host as well")
        what = self.syntax.qualified(func)
        if what is not None:
            known = what.startswith((*(f"{n}." for n in tables.NAMESPACES), "math.", "einops.", "torch.amp."))
            if not known and not self._is_ours(call):
                raise _Refused(f"what {written} does is not known")
        elif isinstance(func, ast.Name):
            if self.syntax.is_builtin(func) and func.id not in _BUILTINS:
                raise _Refused(f"{written} ends the graph")
            if not self.syntax.is_builtin(func) and not self._is_ours(call):
                raise _Refused(f"what {written} does is not known")
        elif not self._is_ours(call) and not self._is_method_of_tensors(func):
            raise _Refused(f"what {written} does is not known")

    def _is_method_of_tensors(self, func: ast.expr) -> bool:
        if not isinstance(func, ast.Attribute):
            return False
        kind = self.inference.of(func.value).kind
        if kind in (Kind.TENSOR, Kind.PYTHON):
            return True
        return kind is Kind.UNKNOWN and (func.attr in api.TENSOR_ONLY or func.attr in api.ALIASING)


def _line(n: ast.AST) -> str:
    return ast.unparse(n).splitlines()[0][:50]
