"""Calls that Dynamo does not trace, whatever they are given: functions of the host, and what makes a sparse tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from patcher.facts.analysis import Analysis
from patcher.facts.numbers.likely_tensors import LikelyTensors
from patcher.facts.tables import host_api
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Kind

#: One of these stands in the text of a module in which `UntracedCalls` finds something.
WORDS_OF_UNTRACED = (
    host_api.NOT_TRACED
    | host_api.NOT_TRACED_ELSEWHERE
    | host_api.NOT_TRACED_SIZES
    | host_api.WITH_WEIGHTS
    | host_api.NOT_TRACED_METHODS
    | host_api.NOT_TRACED_OF_MODULES
    | host_api.SPARSE_MAKERS
    | host_api.SPARSE_METHODS
    | {"deepcopy", "numpy", "pow("}
    | host_api.SKIPPED_LIBRARIES
)
_NOT_TRACED = host_api.NOT_TRACED | host_api.NOT_TRACED_ELSEWHERE | host_api.NOT_TRACED_OF_NUMPY


class Why(Enum):
    """What is the matter with it."""

    CALL = "a call that is not traced"
    ROWS = "its result has as many rows as the data says"
    WEIGHTS = "weights are made"
    POWER = "a function of Python that has an operator of the same meaning"
    SPARSE = "a sparse tensor is made"


@dataclass(frozen=True)
class Untraced:
    """The graph breaks at ``node`` because of ``what``, as it is written; ``name``: the function that it is, dotted."""

    node: ast.expr | ast.stmt
    what: ast.expr
    why: Why
    name: str = ""


class UntracedCalls(Analysis):
    """Those of one module."""

    def is_elsewhere(self, call: ast.Call) -> bool:
        """Whether ``call`` stands in a file without PyTorch that no compiled code of another one gets to."""
        if any(what.partition(".")[0] == "torch" for _, what, _ in self.syntax.all_imports):
            return False
        function = self.syntax.function_of(call)
        while function is not None and (outer := self.syntax.function_of(function)) is not None:
            function = outer
        name = self.facts.qualname(function) if function is not None else None
        return name is None or not self.project.reached_with_torch(name)

    def at(self, call: ast.Call) -> Iterator[Untraced]:
        """Where the graph breaks because of ``call``."""
        what, func = self.syntax.qualified(call.func) or self.syntax.builtin(call) or "", call.func
        if host_api.may_be_traced(what, self.facts.settings.target_torch):
            return
        if (
            what in _NOT_TRACED
            or (what == "copy.deepcopy" and any(map(self._is_copied, call.args)))
            or (what.partition(".")[0] in host_api.SKIPPED_LIBRARIES and "." in what)
        ):
            yield Untraced(call, func, Why.CALL, what)
        elif what == "pow" and any(
            map(self.facts.ask(LikelyTensors).of, (*call.args, *(k.value for k in call.keywords)))
        ):
            yield Untraced(call, func, Why.POWER)
        elif what in host_api.NOT_TRACED_SIZES:
            yield Untraced(call, func, Why.ROWS)
        elif what in host_api.WITH_WEIGHTS:
            yield Untraced(call, func, Why.WEIGHTS)
        elif self.makes_sparse(call):
            yield Untraced(call, func, Why.SPARSE)
        elif isinstance(func, ast.Attribute) and func.attr in host_api.NOT_TRACED_METHODS:
            if self.facts.ask(LikelyTensors).of(func.value) or self._goes_backward(call, func):
                yield Untraced(call, func, Why.CALL)
        elif isinstance(func, ast.Attribute) and func.attr in host_api.NOT_TRACED_OF_MODULES and not self._own(call):
            yield Untraced(call, func, Why.CALL)

    def _own(self, call: ast.Call) -> bool:
        """Whether it may be of a method of the project's."""
        return bool(self.facts.ask(Callees).of(call))

    def _goes_backward(self, call: ast.Call, func: ast.Attribute) -> bool:
        """Whether that is a step of training: of a loss, or by what takes it, ``engine.backward(loss)``."""
        if func.attr != "backward" or self._own(call) or self.syntax.qualified(func) is not None:
            return False
        return isinstance(func.value, (ast.Name, ast.Attribute)) or self.inference.of(func.value).is_tensor

    def _is_copied(self, e: ast.expr) -> bool:
        """Whether Dynamo cannot copy ``e``: a tensor, or a module, which has some."""
        return self.inference.of(e).kind is Kind.MODULE or self.facts.ask(LikelyTensors).of(e)

    # --- sparse tensors -----------------------------------------------------------------------------------------------

    def makes_sparse(self, call: ast.Call) -> bool:
        """Whether a function or method of PyTorch makes a sparse tensor there."""
        what = self.syntax.qualified(call.func) or ""
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        return what in host_api.SPARSE_MAKERS or (method in host_api.SPARSE_METHODS and not what.startswith("torch."))
