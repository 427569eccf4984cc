"""Functions that read tensor data on the host so often that they run best outside of any graph, as one piece."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.imports import bindings_of_import
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.syntax.written import defaults
from patcher.facts.tables import torch_api as api
from patcher.facts.zones.bookwork import Bookkeepers
from patcher.facts.zones.cuts import Cut, Cuts
from patcher.facts.zones.host_reads import HostRead, HostReads

#: Decorators that leave a function what it is.
_PLAIN = frozenset({*api.GRAD_OFF, "torch.enable_grad", "typing.override", "staticmethod", "classmethod", "property"})
#: What lets a graph go on through a read.
_CAPTURES = frozenset({"capture_scalar_outputs", "capture_dynamic_output_shape_ops"})
#: So many operations after the last read are few enough to run eagerly as well.
_LITTLE = 16
#: So many names may go from a zone to what follows it.
_NAMES = 4


@dataclass(frozen=True)
class Cluster:
    """``reads``: those that take part. ``operations``: how many are written in what would leave the graph.

    ``cut``: the statements that would; None for the whole function.
    """

    reads: tuple[HostRead, ...]
    operations: int
    cut: Cut | None = None


class Clusters(Analysis):
    """The clusters of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.work = facts.ask(Bookkeepers)
        self._known: dict[FunctionNode, Cluster | None] = {}

    def of(self, function: FunctionNode) -> Cluster | None:
        """The cluster that ``function`` is, or that stands in it."""
        if function not in self._known:
            self._known[function] = None
            self._known[function] = self._of(function)
        return self._known[function]

    def _of(self, function: FunctionNode) -> Cluster | None:
        reads = self.facts.ask(HostReads).of(function)
        if not reads or self.is_left_out(function) or self._is_captured or self.facts.scripted:
            return None
        if function.name.endswith("__") and function.name != "__call__":
            return None  # Python calls it by itself
        if self.work.of(function) is None or self._is_entry(function):
            return self._inner(function, reads)
        calls = (c for c in self.syntax.by_type[ast.Call] if last_name(c.func) == function.name)
        callers = {self.syntax.function_of(call) for call in calls} - {None, function}
        if any(self.is_left_out(c) or self.of(c) is not None for c in callers if c is not None):
            return None  # the outer one takes this one along
        sure = next((r for r in reads if r.certain or _is_by_flag(function, r)), None)
        return self._outer(function, reads, sure) if sure is not None else None

    def _outer(self, function: FunctionNode, reads: tuple[HostRead, ...], sure: HostRead) -> Cluster | None:
        """The whole of a function that does nothing but read and bookwork, or what stands below its early returns."""
        first, body = self._start(function, sure), function.body
        below = [r for r in reads if first is None or r.top in body[body.index(first) :]]
        if _are_many(below):
            last = body[max(body.index(r.top) for r in below)]
            certain = next(r.top for r in below if r.certain)
            many = self._operations(body[body.index(last) + 1 :]) >= _LITTLE
            if many and (part := self._cut(function, below, certain, last)) is not None:
                return part
        elif not self._is_little(below[0], function, first):
            return None
        if first is not None:
            return self._cut(function, below, first, None)
        decorators = [getattr(d, "func", d) for d in function.decorator_list]
        plain = all((self.syntax.qualified(d) or ast.unparse(d)) in _PLAIN for d in decorators)
        return Cluster(tuple(reads), self.work.of(function) or 0) if plain else None

    def _inner(self, function: FunctionNode, reads: tuple[HostRead, ...]) -> Cluster | None:
        """The first run of statements that does nothing but read and bookwork, in a function that does more."""
        tops = {r.top for r in reads if r.certain}
        body, at = function.body, 0
        while at < len(body):
            end = next((i for i in range(at, len(body)) if not self._is_bookwork(body[i], function)), len(body))
            if body[at] in tops and end > at:
                inside = [r for r in reads if r.top in body[at:end]]
                several = any(r.looped and r.certain for r in inside) or len({r.top for r in inside if r.certain}) > 1
                if several and inside[-1] is reads[-1]:  # else graphs end below it as before
                    last = inside[-1].top
                    to_the_end = end == len(body) and self._operations(body[body.index(last) + 1 :]) < _LITTLE
                    return self._cut(function, inside, body[at], None if to_the_end else last)
                at = end
            elif isinstance(body[at], (ast.For, ast.While)) and any(r.top is body[at] for r in reads):
                return None  # that loop stays: the graph breaks in it, and what is below runs eagerly as it is
            else:
                at += 1
        return None

    def _cut(
        self, function: FunctionNode, reads: list[HostRead], first: ast.stmt, last: ast.stmt | None
    ) -> Cluster | None:
        cut = self.facts.ask(Cuts).of(function, first, last)
        if cut is None or len(cut.left) > _NAMES or (last is not None and len(cut.handed) > 2 * _NAMES):
            return None  # what is gained is not worth the reading
        body = function.body
        end = len(body) if last is None else body.index(last) + 1
        return Cluster(tuple(reads), self._operations(body[body.index(first) : end]), cut)

    def _is_bookwork(self, s: ast.stmt, function: FunctionNode) -> bool:
        returns = any(isinstance(n, ast.Return) for n in ast.walk(s)) and s is not function.body[-1]
        return not returns and self.work.of_nodes(list(ast.walk(s))) is not None

    def _operations(self, statements: list[ast.stmt]) -> int:
        return self.work.of_nodes([n for s in statements for n in ast.walk(s)]) or 0

    def _is_little(self, read: HostRead, function: FunctionNode, first: ast.stmt | None) -> bool:
        """Whether both sides of the only read are a few operations: a graph starts no quicker than they run."""
        body = function.body if first is None else function.body[function.body.index(first) :]
        at = body.index(read.top)
        beside = self.work.of_nodes([n for n in ast.walk(read.top) if n is not read.node]) or 0
        above, below = self._operations(body[:at]) + beside, self._operations(body[at + 1 :])
        return above > 0 and below > 0 and above + below < _LITTLE

    def _start(self, function: FunctionNode, sure: HostRead) -> ast.stmt | None:
        """The first statement below the last early return; None where nothing returns before the first sure read."""
        head = function.body[: function.body.index(sure.top)]
        early = [i for i, s in enumerate(head) if any(isinstance(n, ast.Return) for n in ast.walk(s))]
        return function.body[early[-1] + 1] if early else None

    @cached_property
    def _is_captured(self) -> bool:
        """Whether this file asks for graphs that go on through reads."""
        named = self.syntax.by_type[ast.Attribute]
        return any(n.attr in _CAPTURES and not isinstance(n.ctx, ast.Load) for n in named)

    def _is_entry(self, function: FunctionNode) -> bool:
        """Whether it is what gets compiled: with nothing left of it, there would be no graph at all."""
        method = self.syntax.method_of(function) is function
        return self.is_handed_over(function) or (method and function.name in ("forward", "__call__"))

    def is_handed_over(self, function: FunctionNode) -> bool:
        """Whether a decorator compiles ``function``, or a call that names it, or may do so: one in another function."""
        name = f"{self.module}.{self.syntax.qualname(function)}"
        summary = self.project.function(name)
        called = any({name, f".{function.name}"} & s.compiled for s in self.project.modules.values())
        return summary is None or summary.compiled or called

    def is_left_out(self, function: FunctionNode) -> bool:
        """Whether a decorator keeps ``function`` out of graphs."""
        return any(self.syntax.qualified(d) in api.OPAQUE for d in self.syntax.wrappers(function))

    def has_early(self, name: str, function: FunctionNode) -> bool:
        """Whether an import that always runs binds ``name`` for the whole module, above ``function``."""
        imports = (s for s in self.syntax.tree.body if isinstance(s, (ast.Import, ast.ImportFrom)))
        bound = [s.lineno for s in imports for bound, _ in bindings_of_import(s, self.syntax.package) if bound == name]
        return any(line < function.lineno for line in bound)


def _is_by_flag(function: FunctionNode, read: HostRead) -> bool:
    """Whether an argument that has a default decides about ``read``."""
    return isinstance(read.top, ast.If) and ast.unparse(read.top.test).removeprefix("not ") in defaults(function.args)


def _are_many(reads: Collection[HostRead]) -> bool:
    """Whether graphs end more than once, or in a loop, which loses its frame."""
    certain = [r for r in reads if r.certain]
    several = len(certain) > 1 or len({r.statement for r in reads}) > 1 or any(r.looped for r in reads)
    return bool(certain) and several
