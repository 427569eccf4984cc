"""Where a graph breaks in functions that are called, for a read of data or because they are left out of graphs."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import FunctionNode, running
from patcher.facts.values.callees import Callees
from patcher.facts.zones.clusters import Clusters
from patcher.facts.zones.host_reads import HostRead, HostReads

#: How far down calls are followed.
_DEPTH = 4


@dataclass(frozen=True)
class Ending:
    """``node`` ends a graph, in ``function``: a read, or the definition of a function that is left out of graphs.

    ``sure``: it does so whenever the function in question runs.
    """

    node: ast.AST
    function: FunctionNode
    sure: bool

    @property
    def line(self) -> int:
        """Where that is; 0 when it is not known."""
        return self.node.lineno if isinstance(self.node, (ast.expr, ast.stmt)) else 0


class Endings(Analysis):
    """Answers for the functions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)
        self.clusters = facts.ask(Clusters)
        self.reads = facts.ask(HostReads)
        self._known: dict[FunctionNode, Ending | None] = {}

    @cached_property
    def any_here(self) -> bool:
        """Whether any function of the module ends a graph by itself."""
        return any(self.reads.of(f) or self.clusters.is_left_out(f) for f in self.syntax.functions)

    def read_by(self, function: FunctionNode) -> list[HostRead]:
        """The reads of ``function`` itself to which compiled code comes, of tensors as far as that is known."""
        return [r for r in self.reads.of(function) if self._is_of_tensor(r.node) and not self._is_passed_by(r.node)]

    def called(self, nodes: Iterable[ast.AST], top: ast.AST, depth: int = 0) -> list[Ending]:
        """Where the functions end a graph that ``nodes``, which stand in ``top``, call."""
        found: list[Ending] = []
        for call in (n for part in nodes for n in running(part) if isinstance(n, ast.Call)):
            if self._is_passed_by(call):
                continue
            functions = [self.callees.here(name) for name in self.callees.of(call)]
            endings = [None if f is None else self._of_function(f, depth + 1) for f in functions]
            first = next((e for e in endings if e is not None), None)
            if first is not None:
                sure = all(e is not None and e.sure for e in endings) and self._always_runs(call, top)
                found.append(Ending(first.node, first.function, sure))
        return found

    def _of_function(self, function: FunctionNode, depth: int) -> Ending | None:
        if function in self._known:
            return self._known[function]
        if self.clusters.is_left_out(function):
            return Ending(function, function, True)
        cls = self.syntax.parents[function]
        replaced = isinstance(cls, ast.ClassDef) and bool(cls.decorator_list) and function.name == "forward"
        if depth > _DEPTH or replaced:  # a decorator of a layer may well put another method in the place of this one
            return None
        self._known[function] = None  # what calls itself adds nothing
        found = [Ending(r.node, function, r.certain and _comes_to(r.top, function)) for r in self.read_by(function)]
        if not any(e.sure for e in found):
            found += self.called(list(function.body), function, depth)
        self._known[function] = next((e for e in found if e.sure), found[0] if found else None)
        return self._known[function]

    def _is_of_tensor(self, read: ast.expr) -> bool:
        """Whether ``read`` is of a tensor, as far as is known: lists and arrays have a ``tolist`` as well."""
        if isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute):
            what = self.syntax.qualified(read.func)
            return what is not None or self.inference.of(read.func.value).is_tensor
        return True

    def _is_passed_by(self, node: ast.AST) -> bool:
        """Whether compiled code never comes to ``node``, or in training only."""
        if self.facts.eager_only(node):
            return True
        child: ast.AST = node
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, ast.If) and child in parent.body and _asks_for_training(parent.test):
                return True
            child = parent
        return False

    def _always_runs(self, node: ast.AST, top: ast.AST) -> bool:
        child = node
        for parent in self.syntax.ancestors(node):
            if parent is top and isinstance(parent, FunctionNode):
                return _comes_to(child, parent)
            if not self.reads.always_runs(child, parent):
                return False
            if parent is top:
                return True
            child = parent
        return False


def _comes_to(statement: ast.AST, function: FunctionNode) -> bool:
    """Whether nothing in the body of ``function`` returns before ``statement``, which stands there."""
    before = next((i for i, s in enumerate(function.body) if s is statement), 0)
    return not any(isinstance(n, ast.Return) for s in function.body[:before] for n in running(s))


def _asks_for_training(test: ast.expr) -> bool:
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return any(isinstance(p, ast.Attribute) and p.attr == "training" for p in parts)
