"""Whether Dynamo follows a call in an arm of ``torch.cond``, and what the call must not do there."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.syntax.written import short
from patcher.facts.tables import call_effects as tables
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Kind
from patcher.facts.zones.host_reads import HostReads
from rules.fc101_data_dependent_branch.refusal import Refused

#: Builtins that Dynamo follows, and that have no effect.
_BUILTINS = frozenset(
    "abs all any bool dict divmod enumerate float getattr hasattr int isinstance len list max min pow range reversed "
    "round set slice sorted str sum tuple type zip super".split()
)
#: Layers of which no graph is made, or whose state an arm would change.
_LAYERS = ("LSTM", "GRU", "RNN", "BatchNorm", "InstanceNorm", "SpectralNorm", "spectral_norm", "weight_norm", "Lazy")
#: Layers that draw random numbers, or hold some that do.
_DRAWING = ("Dropout", "RReLU", "MultiheadAttention", "Transformer", "DropPath", "StochasticDepth")
#: Packages whose functions are followed.
_FOLLOWED = (*(f"{n}." for n in tables.NAMESPACES), "math.", "einops.", "torch.amp.")


class Following(Analysis):
    """Calls of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)
        self.host_reads = facts.ask(HostReads)
        self.mode = facts.ask(GradientMode)
        self.unchanged = facts.ask(Unchanged)

    def doubts(self, n: ast.AST) -> list[str]:
        """What has to be granted for ``n``, a node of an arm, to stay in the graph. Raises Refused."""
        graded = not self.mode.off(n)
        if graded and (drawn := self.unchanged.drawn_by(n)):
            raise Refused(f"the backward pass would draw other random numbers (`{drawn}`)")
        if not isinstance(n, ast.Call):
            return []
        if any(k.arg == "generator" for k in n.keywords):
            raise Refused(f"`{short(n)}` has a generator of its own")
        self._known_call(n)
        for function in self.callees.bodies(n):
            if function is not None:
                self._goes_on(function, frozenset())
        if not self.is_ours(n):
            return []
        self._layer(n, graded)
        drawing = ", draws no random numbers" if graded else ""
        return [f"`{short(n.func)}` changes nothing that was there before{drawing}, and is compiled whole"]

    def is_ours(self, call: ast.Call) -> bool:
        """Whether ``call`` runs a layer, or code of the project."""
        return self.inference.of(call.func).kind is Kind.MODULE or bool(self.callees.of(call))

    def _known_call(self, call: ast.Call) -> None:
        written, func = f"`{short(call.func)}`", call.func
        what = self.syntax.qualified(func)
        if what is not None:
            known = what.startswith(_FOLLOWED) or self.is_ours(call)
        elif isinstance(func, ast.Name):
            if self.syntax.is_builtin(func) and func.id not in _BUILTINS:
                raise Refused(f"{written} ends the graph")
            known = self.syntax.is_builtin(func) or self.is_ours(call)
        else:
            known = self.is_ours(call) or self._is_method_of_tensors(func)
        if not known:
            raise Refused(f"what {written} does is not known")

    def _is_method_of_tensors(self, func: ast.expr) -> bool:
        if not isinstance(func, ast.Attribute):
            return False
        kind = self.inference.of(func.value).kind
        if kind in (Kind.TENSOR, Kind.PYTHON):
            return True
        return kind is Kind.UNKNOWN and (func.attr in api.TENSOR_ONLY or func.attr in api.ALIASING)

    def _layer(self, call: ast.Call, graded: bool) -> None:
        """Refuse layers that keep something, end the graph, change what they are given, or draw random numbers."""
        written = f"`{short(call.func)}`"
        names = {str(self.inference.of(call.func).module or "").rpartition(".")[2]}
        own = self.inference.instance_attribute(call.func)
        stores = self.inference.class_facts(own[0]).stores.get(own[1], ()) if own is not None else ()
        for value in (s.value for s in stores if s.value is not None):
            for n in ast.walk(value):
                names |= {last_name(n.func) or ""} if isinstance(n, ast.Call) else set()
                inplace = isinstance(n, ast.keyword) and n.arg == "inplace"
                if inplace and not (isinstance(n.value, ast.Constant) and not n.value.value):  # type: ignore[attr-defined]
                    raise Refused(f"{written} may change what it is given")
        if any(word in name for word in _LAYERS for name in names):
            raise Refused(f"{written} changes what it keeps, or ends the graph")
        if graded and any(word in name for word in _DRAWING for name in names):
            raise Refused(f"the backward pass would draw other random numbers ({written})")

    def _goes_on(self, function: FunctionNode, seen: frozenset[FunctionNode]) -> None:
        """Refuse a function of this file in which the graph ends."""
        written = f"`{getattr(function, 'name', '')}`"
        if function in seen:
            return
        if self.facts.is_disabled(function):
            raise Refused(f"{written} is left out of graphs")
        if self.host_reads.of(function):
            raise Refused(f"{written} reads data on the host as well")
        for call in self.syntax.own(function, ast.Call):
            assert isinstance(call, ast.Call)
            if self.facts.eager_only(call):
                continue
            if isinstance(call.func, ast.Name) and self.syntax.is_builtin(call.func) and call.func.id not in _BUILTINS:
                raise Refused(f"`{short(call.func)}` in {written} ends the graph")
            self._layer(call, not self.mode.off(call))
            for inner in self.callees.bodies(call):
                if inner is not None:
                    self._goes_on(inner, seen | {function})
