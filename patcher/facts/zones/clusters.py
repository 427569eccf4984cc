"""Functions that read tensor data on the host so often that they run best outside of any graph, as one piece."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.project.does import asks_through
from patcher.facts.project.touches import How as Touching
from patcher.facts.running.preparation import Handed, Preparation
from patcher.facts.syntax.imports import bindings_of_import
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.syntax.written import defaults, is_stored
from patcher.facts.tables import torch_api as api
from patcher.facts.zones.bookwork import Bookkeepers
from patcher.facts.zones.host_reads import HostRead, HostReads

#: Decorators that leave a function what it is.
_PLAIN = frozenset({*api.GRAD_OFF, "torch.enable_grad", "typing.override", "staticmethod", "classmethod", "property"})
#: What lets a graph go on through a read.
_CAPTURES = frozenset({"capture_scalar_outputs", "capture_dynamic_output_shape_ops"})
#: So many operations after the last read are few enough to run eagerly as well.
_LITTLE = 16
#: So many names may go from a zone to what follows it.
_NAMES = 4
#: What a function has that a wrapper around it, as a decorator makes, has not.
_OWN = frozenset({"__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__", "getfullargspec"})
#: What tells of the functions around.
_FRAMES = frozenset({"sys._getframe", "inspect.currentframe", "inspect.stack"})


@dataclass(frozen=True)
class Cluster:
    """``reads``: those that take part. ``operations``: how many are written in what would leave the graph.

    ``first``: where the zone starts, with what it needs from above in ``handed``; None for the whole function.
    ``last``: where it ends, with the names that are read below it in ``left``; None for the end of the function.
    """

    reads: tuple[HostRead, ...]
    operations: int
    first: ast.stmt | None = None
    handed: tuple[Handed, ...] = ()
    last: ast.stmt | None = None
    left: tuple[str, ...] = ()


class Clusters(Analysis):
    """The clusters of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.bookkeepers = facts.ask(Bookkeepers)
        self.preparation = facts.ask(Preparation)
        self._known: dict[FunctionNode, Cluster | str | None] = {}

    def of(self, function: FunctionNode) -> Cluster | str | None:
        """The cluster that ``function`` is; why it cannot run as one piece; or None when it is nothing of the kind."""
        if function not in self._known:
            self._known[function] = None
            self._known[function] = self._of(function)
        return self._known[function]

    def _of(self, function: FunctionNode) -> Cluster | str | None:
        reads = self.facts.ask(HostReads).of(function)
        if not reads or self.is_left_out(function) or self._is_captured:
            return None
        work = self.bookkeepers.of(function)
        if work.computes or self._is_entry(function):
            return self._inner(function, reads)
        sure = [r for r in reads if r.certain] or [r for r in reads if _by_flag(function, r)]
        if not sure or not self._is_worth_it(reads, function.body):
            return None
        if any(self.is_left_out(c) or isinstance(self.of(c), Cluster) for c in self._callers(function)):
            return None  # the outer one takes this one along
        if work.unknown:
            return self._inner(function, reads) or f"what {work.unknown} does is not known"
        reason = self._why_whole(function)
        if reason:
            return reason
        first = self._start(function, sure[0])
        return self._from(function, first, reads)

    def _inner(self, function: FunctionNode, reads: tuple[HostRead, ...]) -> Cluster | str | None:
        """The first run of statements that does nothing but read and bookwork, in a function that does more."""
        tops = {r.top for r in reads if r.certain}
        body, at = function.body, 0
        while at < len(body):
            if body[at] not in tops or not self._is_bookwork(body[at], function):
                if isinstance(body[at], (ast.For, ast.While)) and any(r.top is body[at] for r in reads):
                    return None  # that loop stays: the graph breaks in it, and what is below runs eagerly as it is
                at += 1
                continue
            end, last = at, at
            while end < len(body) and self._is_bookwork(body[end], function):
                last = end if any(r.top is body[end] for r in reads) else last
                end += 1
            to_the_end = end == len(body) and self._operations(body[last + 1 :]) < _LITTLE
            found = self._range(function, at, len(body) - 1 if to_the_end else last, reads)
            if found is not None:
                return found
            at = last + 1
        return None

    def _is_bookwork(self, s: ast.stmt, function: FunctionNode) -> bool:
        work = self.bookkeepers.of_nodes(list(ast.walk(s)))
        returns = any(isinstance(n, ast.Return) for n in ast.walk(s)) and s is not function.body[-1]
        return not (work.computes or work.unknown or returns)

    def _operations(self, statements: list[ast.stmt]) -> int:
        return self.bookkeepers.of_nodes([n for s in statements for n in ast.walk(s)]).operations

    def _range(self, function: FunctionNode, at: int, end: int, reads: tuple[HostRead, ...]) -> Cluster | str | None:
        """What stands from position ``at`` to ``end`` of the body, when it is worth a function of its own."""
        body = function.body
        inside = tuple(r for r in reads if r.top in body[at : end + 1])
        parts = len({r.top for r in inside if r.certain})
        operations = self._operations(body[at : end + 1])
        if not any(r.looped and r.certain for r in inside) and (parts < 2 or operations <= parts):
            return None
        last = None if end == len(body) - 1 else body[end]
        if any(r.top in body[end + 1 :] for r in reads) or self._goes_on(function, inside, body[end + 1 :]):
            return None  # graphs that nobody made before would end there
        handed = self.handed(function, body[at], last)
        if isinstance(handed, str):
            return handed
        left = [] if last is None else self.preparation.left(function, body[at], last, handed)
        if isinstance(left, list) and (len(left) > _NAMES or len(handed) > 2 * _NAMES):
            return None  # what is gained is not worth the reading
        return left if isinstance(left, str) else Cluster(inside, operations, body[at], handed, last, tuple(left))

    def _goes_on(self, function: FunctionNode, inside: tuple[HostRead, ...], below: list[ast.stmt]) -> bool:
        """Whether what is gone through to read it is used ``below`` as well, where it may be read again."""
        loops = [p for r in inside for p in self.syntax.ancestors(r.node) if isinstance(p, (ast.For, ast.AsyncFor))]
        sources = {n for loop in loops for n in ast.walk(loop.iter) if isinstance(n, ast.Name)}
        names = {n.id for n in sources if not self.syntax.is_builtin(n)}
        used = {n.id for s in below for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        return bool(names & used)

    @cached_property
    def _is_captured(self) -> bool:
        """Whether this file asks for graphs that go on through reads."""
        named = self.syntax.by_type[ast.Attribute]
        return any(n.attr in _CAPTURES and not isinstance(n.ctx, ast.Load) for n in named)

    def handed(self, function: FunctionNode, first: ast.stmt, last: ast.stmt | None) -> tuple[Handed, ...] | str:
        """What the statements from ``first`` to ``last`` need from above; or why they cannot be moved."""
        if self.facts.scripted:
            return "`torch.jit.script` is used in this file"
        if self._has_namesake(function):
            return f"another class of that name may have a `{function.name}` as well"
        if self._is_borrowed(function):
            return f"`{function.name}` is taken from its class by name"
        if any(_calls_itself(n, function) for n in self.syntax.own(function, ast.Call)):
            return f"`{function.name}` calls itself: each turn would take more of Python's stack"
        return self.preparation.cut(function, first, last)

    def _is_worth_it(self, reads: tuple[HostRead, ...], body: list[ast.stmt]) -> bool:
        """Whether graphs end in ``body`` more than once, or in a loop, which loses its frame.

        Or where both sides of one read are a graph of a few operations, which starts no quicker than they run.
        """
        if len({r.statement for r in reads}) > 1 or sum(r.certain for r in reads) > 1 or any(r.looped for r in reads):
            return True
        read = min((r.node for r in reads), key=lambda n: (n.lineno, n.col_offset))  # the only one that is certain
        at = next(i for i, s in enumerate(body) if s is reads[0].top)
        first, rest = {*ast.walk(read)}, [n for s in body[at:] for n in ast.walk(s)]
        above = self._operations(body[:at]) + self.bookkeepers.of_nodes([n for n in first if n is not read]).operations
        below = self.bookkeepers.of_nodes([n for n in rest if n not in first]).operations
        return bool(above and below) and above + below < _LITTLE

    def _from(
        self, function: FunctionNode, first: ast.stmt | None, reads: tuple[HostRead, ...]
    ) -> Cluster | str | None:
        """The function from ``first`` on; where much follows the last read, only up to that."""
        at = 0 if first is None else function.body.index(first)
        inside = tuple(r for r in reads if r.top in function.body[at:])
        end = max(function.body.index(r.top) for r in inside)
        if any(r.certain for r in inside) and self._operations(function.body[end + 1 :]) >= _LITTLE:
            at = next(i for i, s in enumerate(function.body) if any(r.certain and r.top is s for r in inside))
            inner = self._range(function, at, end, reads)
            if inner is not None:
                return inner
        operations = self._operations(function.body[at:])
        if not self._is_worth_it(inside, function.body[at:]):
            return None
        if first is None:
            return Cluster(reads, self.bookkeepers.of(function).operations)
        handed = self.handed(function, first, None)
        return handed if isinstance(handed, str) else Cluster(inside, operations, first, handed)

    def _is_borrowed(self, function: FunctionNode) -> bool:
        """Whether the method is taken from its class by name, for objects that may lack the one beside it."""
        if self.syntax.method_of(function) is not function:
            return False
        named = self.syntax.by_type[ast.Attribute]
        cls = self.syntax.class_of(function)
        elsewhere = f"{self.module}.{self.syntax.qualname(function)}"
        if cls is not None and any(m == elsewhere for m, _, _ in self.project.mentions(function.name)):
            return True
        if cls is not None and self.project.is_taken(elsewhere.rpartition(".")[0], function.name):
            return True
        owners = [n.value for n in named if n.attr == function.name and isinstance(n.value, ast.Name)]
        classes = {c.name for c in self.syntax.by_type[ast.ClassDef]}
        return any(o.id in classes or (o.id in self.syntax.imports and o.id[:1].isupper()) for o in owners)

    def _has_namesake(self, function: FunctionNode) -> bool:
        cls = self.syntax.class_of(function)
        return cls is not None and any(r.rpartition(".")[2] == cls.name for r in self._relatives(function))

    def _relatives(self, function: FunctionNode) -> set[str]:
        """The other classes above and below, by dotted name, that may have a method of that name."""
        cls = self.syntax.class_of(function)
        if cls is None:
            return set()
        name = f"{self.module}.{self.syntax.qualname(cls) or cls.name}"
        family, unknown = self.project.family(name)
        known = ((c, self.project.known_class(c)) for c in family - {name})
        foreign = {u for u in unknown if not u.startswith("torch.")}
        return foreign | {c for c, summary in known if summary is None or function.name in summary.methods}

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

    def _why_whole(self, function: FunctionNode) -> str:
        if not isinstance(function, ast.FunctionDef):
            return f"`{function.name}` is a coroutine"
        if self.facts.scripted:
            return "`torch.jit.script` is used in this file"
        if told := self.why_not_wrapped(function):
            return told
        for d in function.decorator_list:
            called = d.func if isinstance(d, ast.Call) else d
            what = self.syntax.qualified(called) or ast.unparse(called)
            if what not in _PLAIN:
                return f"what `@{ast.unparse(called)}` does with it is not known"
        return ""

    def why_not_wrapped(self, function: FunctionNode) -> str:
        """What would tell a wrapper around ``function``, as a decorator makes, from ``function``; "" if nothing."""
        if any(n.attr in _OWN for n in self.syntax.by_type[ast.Attribute] if isinstance(n, ast.Attribute)):
            return "this file asks functions for what is theirs alone"
        if self._is_handed_on(function) and self._asks_others():
            return f"`{function.name}` is handed on, and code of the project asks functions for what is theirs alone"
        if any(_calls_itself(n, function) for n in self.syntax.own(function, ast.Call)):
            return f"`{function.name}` calls itself: each turn would take more of Python's stack"
        named = self.syntax.own(function, ast.Attribute, ast.Name)
        if any(self.syntax.qualified(n) in _FRAMES for n in named):
            return f"`{function.name}` looks at what has called it"
        return ""

    def _is_handed_on(self, function: FunctionNode) -> bool:
        """Whether code that is read hands ``function`` on, or keeps it, rather than to call it."""
        for n in (*self.syntax.by_type[ast.Attribute], *self.syntax.by_type[ast.Name]):
            if last_name(n) == function.name and not is_stored(n):
                parent = self.syntax.parents[n]
                if not isinstance(parent, ast.Call):
                    return True
                if parent.func is not n and not asks_through(parent, self.syntax.qualified(parent.func)):
                    return True
        places = {function.name, f"~{function.name}"}
        touches = (t for s in self.project.modules.values() if s.module != self.module for t in s.touches)
        return any(t.how is Touching.GOES and t.place in places for t in touches)

    def _asks_others(self) -> bool:
        """Whether a file of the project asks functions that it is given for what a wrapper has not."""
        asked = any(not s.foreign_loads.isdisjoint(_OWN) for s in self.project.modules.values())
        return asked or any(self.project.mentions(name) for name in _OWN)

    def _start(self, function: FunctionNode, sure: HostRead) -> ast.stmt | None:
        """The first statement below the last early return; None where nothing returns before the first sure read."""
        head = function.body[: function.body.index(sure.top)]
        early = [i for i, s in enumerate(head) if any(isinstance(n, ast.Return) for n in ast.walk(s))]
        return function.body[early[-1] + 1] if early else None

    def _callers(self, function: FunctionNode) -> list[FunctionNode]:
        """The functions of this module that call ``function``, where nobody else can; with itself left out."""
        found: set[FunctionNode] = set()
        method = self.syntax.method_of(function) is function
        if not method and self._is_known_elsewhere(function):
            return []
        for n in self.syntax.by_type[ast.Attribute if method else ast.Name]:
            name = n.attr if isinstance(n, ast.Attribute) else n.id if isinstance(n, ast.Name) else ""
            if name != function.name:
                continue
            called = isinstance(self.syntax.parents[n], ast.Call) and self.syntax.parents[n].func is n  # type: ignore[attr-defined]
            caller = self.syntax.function_of(n)
            if (
                not called
                or caller is None
                or (method and self.syntax.class_of(n) is not self.syntax.class_of(function))
            ):
                return []
            found.add(caller)
        return sorted(found - {function}, key=lambda f: f.lineno)

    def has_early(self, name: str, function: FunctionNode) -> bool:
        """Whether an import that always runs binds ``name`` for the whole module, above ``function``."""
        imports = (s for s in self.syntax.tree.body if isinstance(s, (ast.Import, ast.ImportFrom)))
        bound = [s.lineno for s in imports for bound, _ in bindings_of_import(s, self.syntax.package) if bound == name]
        return any(line < function.lineno for line in bound)

    def _is_known_elsewhere(self, function: FunctionNode) -> bool:
        name = f"{self.module}.{function.name}"
        return any(m == name and module != self.module for m, module, _ in self.project.mentions(function.name))


def _by_flag(function: FunctionNode, read: HostRead) -> bool:
    """Whether an argument that has a default decides about ``read``."""
    test = read.top.test if isinstance(read.top, ast.If) else None
    test = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    return isinstance(test, ast.Name) and test.id in defaults(function.args)


def _calls_itself(call: ast.AST, function: FunctionNode) -> bool:
    match call:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)):
            return name == function.name
    return False
