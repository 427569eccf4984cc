"""Whether an expression gives the same at one place of a function as at another, and who could make a difference."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.calls import Calls
from patcher.facts.effects.storage import WORLD, Storage
from patcher.facts.effects.writes import How, Write, Writes
from patcher.facts.flow.graph import Graph, Step, inside
from patcher.facts.project.touches import How as Touching
from patcher.facts.syntax.classes import INITIALISERS
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Kind

_SHAPE = frozenset({"shape", "ndim", "dtype", "device", "layout", *api.HOST_VALUES})
#: Methods that may make of an attribute what they like.
_HOOKS = frozenset({"__setattr__", "__getattribute__"})


#: Parts of the names of layers that draw random numbers.
_DRAWING = ("Dropout", "RReLU")


class Aspect(enum.Enum):
    """What is asked of an expression.

    ``CONTENTS``: which object it is and what that holds. ``SHAPE``: which object, and its shape, dtype and device.
    ``OBJECT``: which object alone. ``MEMORY``: what the object that it was holds, whatever the expression is by then.
    """

    CONTENTS = "contents"
    SHAPE = "shape"
    OBJECT = "object"
    MEMORY = "memory"


class Unchanged(Analysis):
    """The functions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.calls = facts.ask(Calls)
        self.writes = facts.ask(Writes)
        self._graphs: dict[FunctionNode, Graph] = {}
        self._storage: dict[FunctionNode, Storage] = {}

    def graph(self, function: FunctionNode) -> Graph:
        """The control-flow graph of ``function``."""
        if function not in self._graphs:
            self._graphs[function] = Graph(function, self.syntax)
        return self._graphs[function]

    def storage(self, function: FunctionNode) -> Storage:
        """Who shares memory with whom in ``function``."""
        if function not in self._storage:
            self._storage[function] = Storage(function, self.syntax, self.inference, self.calls)
        return self._storage[function]

    # --- questions --------------------------------------------------------------------------------------------------

    def why_changed(
        self,
        e: ast.expr,
        since: ast.AST,
        until: ast.AST,
        aspect: Aspect = Aspect.CONTENTS,
        ignoring: Iterable[ast.AST] = (),
    ) -> str:
        """What may make ``e`` another value at ``until`` than it was at ``since``; "" when nothing can.

        ``since`` and ``until`` are nodes of one function (the function itself stands for its start); the steps in
        between, and in the two steps all but what is evaluated before ``since`` and after ``until``, are looked at.
        ``ignoring``: nodes whose writes the asker answers for.
        """
        function = self._around(until)
        if function is None:
            return "the code stands in no function"
        graph = self.graph(function)
        first, last = graph.step_of(since), graph.step_of(until)
        if first is None or last is None:
            return "the code runs in different functions, or is not followed"
        left_out = {m for n in ignoring for m in (n, *inside(n))} if ignoring else set()
        for w in self._between(graph, first, last, since, until):
            if w.node not in left_out and (reason := self._touches(w, e, aspect, function)):
                return reason
        return self.why_impure(e)

    def written_between(self, since: ast.AST, until: ast.AST) -> list[Write]:
        """All that may change between two nodes of one function, as `why_changed` sees it."""
        function = self._around(until)
        graph = self.graph(function) if function is not None else None
        first = graph.step_of(since) if graph is not None else None
        last = graph.step_of(until) if graph is not None else None
        if graph is None or first is None or last is None:
            return [Write(How.RUNS, until)]
        return list(self._between(graph, first, last, since, until))

    def why_written_later(self, e: ast.expr, since: ast.AST, by_calls: bool = True) -> str:
        """What writes into what ``e`` gives, as the object was, after ``since`` in one call; "" when nothing does.

        A backward pass may need what was given to an operation as it was then. Code that is not read counts where it is
        handed the object itself, with ``by_calls``.
        """
        function = self._around(since)
        graph = self.graph(function) if function is not None else None
        first = graph.step_of(since) if graph is not None else None
        if function is None or graph is None or first is None:
            return "the code stands in no function"
        storage = self.storage(function)
        if not storage.is_followed:
            return "what its function does is not followed"
        mine = storage.within(storage.objects(e)) - {WORLD}
        for w in self._between(graph, first, graph.exit, since, function):
            handed = not mine.isdisjoint(o for part in w.objects for o in storage.objects(part))
            if w.how is How.RUNS and not (by_calls and handed):
                continue
            if reason := self._touches_object(w, e, Aspect.MEMORY, function):
                return reason
        return ""

    def why_written(self, e: ast.expr, nodes: Iterable[ast.AST], aspect: Aspect = Aspect.CONTENTS) -> str:
        """What in ``nodes`` (statements with all that stands in them) may change what ``e`` gives; "" when nothing."""
        function = self._around(e)
        if function is None:
            return "the code stands in no function"
        for node in nodes:
            for step in ast.walk(node):
                for w in self.writes.of(step):
                    if reason := self._touches(w, e, aspect, function):
                        return reason
        return ""

    def why_not_swapped(self, a: ast.expr, b: ast.expr, *read: ast.expr) -> str:
        """Why it makes a difference which of two expressions is evaluated first, or whether ``read`` is read before.

        "" when it makes none.
        """
        for e, by in ((a, [b]), (b, [a]), *((e, [a, b]) for e in read)):
            if reason := self.why_written(e, by):
                return reason
        first, then = self.why_impure(a), self.why_impure(b)
        return f"the order in which both are evaluated matters: {first}" if first and then else ""

    def may_be_shared(self, e: ast.expr) -> bool:
        """Whether others may hold what ``e`` gives, or share memory with it."""
        function = self._around(e)
        return function is None or self.storage(function).may_be_shared(e)

    def may_share(self, a: ast.expr, b: ast.expr) -> bool:
        """Whether ``a`` and ``b``, in one function, may be one object, or tensors that share memory."""
        function = self._around(a)
        if function is None:
            return True
        storage = self.storage(function)
        one, other = (storage.known_to(storage.objects(e)) for e in (a, b))
        return not one.isdisjoint(other)

    def why_impure(self, e: ast.expr) -> str:
        """What ``e`` does besides giving a value, or why it may give another one next time; "" if nothing."""
        for n in ast.walk(e):
            if isinstance(n, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)):
                return f"`{ast.unparse(n)}` does more than give a value"
            if what := self.drawn_by(n):
                return f"`{what.removeprefix('.')}` draws random numbers, or asks for the time"
            for w in self.writes.of(n):
                return f"{w.told} may have an effect"
        return ""

    def drawn_by(self, n: ast.AST) -> str:
        """What draws, or asks for the time, in ``n``, a call or a property, or in what that runs; "" if nothing."""
        functions: list[str] = []
        if isinstance(n, ast.Call):
            method = f".{n.func.attr}" if isinstance(n.func, ast.Attribute) else ""
            if api.is_random(what := self.syntax.qualified(n.func) or method):
                return what
            if any(word in self.inference.of(n.func).module for word in _DRAWING):
                return ast.unparse(n.func)
            functions = self.calls.callees.of(n)
        elif isinstance(n, ast.Attribute) and n.attr in self.project.properties:
            functions = self.project.named_methods(n.attr)
        mentioned = (m for f in functions for m in sorted(self.project.effects.mentioned(f)))
        return next(filter(api.is_random, mentioned), "")

    # --- steps ------------------------------------------------------------------------------------------------------

    def _around(self, node: ast.AST) -> FunctionNode | None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node
        return self.syntax.function_of(node)

    def _between(self, graph: Graph, first: Step, last: Step, since: ast.AST, until: ast.AST) -> Iterator[Write]:
        around = graph.between(first, last)
        for step in (s for s in graph.steps if s in around):
            yield from self.writes.in_step(step)
        if first is not last and first is not graph.entry:
            before = self._within(since)
            yield from (w for w in self.writes.in_step(first) if w.node not in before)
        if last not in around:
            later = {until, *self.syntax.ancestors(until)}
            for w in self.writes.in_step(last):
                if w.node not in later and w.how is not How.BINDS and not self._is_target(w.node, last):
                    yield w
        elif first is last:
            yield from self.writes.in_step(last)

    def _within(self, node: ast.AST) -> set[ast.AST]:
        """What has run when ``node`` has: what stands in it, and for a statement its targets too."""
        return set(ast.walk(node))

    def _is_target(self, node: ast.AST, step: Step) -> bool:
        """Whether ``node`` is written when all else in ``step`` has been evaluated."""
        if isinstance(step, ast.AugAssign):
            return node is step or node is step.target
        targets = step.targets if isinstance(step, (ast.Assign, ast.Delete)) else [getattr(step, "target", None)]
        return any(node is m for t in targets if t is not None for m in ast.walk(t) if _is_stored(m))

    # --- does a write matter ----------------------------------------------------------------------------------------

    def _touches(self, w: Write, e: ast.expr, aspect: Aspect, function: FunctionNode) -> str:
        """Why ``w`` may change what ``e`` gives; "" when it cannot."""
        match e:
            case ast.Name(id=name):
                return self._touches_name(w, e, name, aspect, function)
            case ast.Attribute(value=owner, attr=attr):
                if attr in _SHAPE:
                    return self._touches(w, owner, _least(aspect, Aspect.SHAPE), function)
                if self.syntax.qualified(e) is not None:
                    return ""
                return self._touches_attribute(w, e, owner, attr, aspect, function)
            case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if (
                attr in _SHAPE and self.inference.of(owner).is_tensor
            ):
                return self._first(w, [(owner, Aspect.SHAPE), *((a, Aspect.CONTENTS) for a in e.args)], function)
            case ast.Call(func=func):
                receiver = [func.value] if isinstance(func, ast.Attribute) else []
                parts = (*receiver, *e.args, *(k.value for k in e.keywords))
                return self._first(w, [(part, aspect) for part in parts], function)
            case ast.Subscript(value=held, slice=index):
                return self._first(w, [(held, aspect), (index, Aspect.CONTENTS)], function)
        return self._first(w, [(c, aspect) for c in ast.iter_child_nodes(e) if isinstance(c, ast.expr)], function)

    def _first(self, w: Write, parts: Iterable[tuple[ast.expr, Aspect]], function: FunctionNode) -> str:
        for part, aspect in parts:
            if reason := self._touches(w, part, aspect, function):
                return reason
        return ""

    def _touches_name(self, w: Write, e: ast.Name, name: str, aspect: Aspect, function: FunctionNode) -> str:
        if aspect is Aspect.MEMORY:
            return self._touches_object(w, e, aspect, function)
        if w.how is How.BINDS and w.name in (name, "*"):
            return f"{w.told} binds `{name}` anew"
        if w.how is How.BINDS or self.syntax.qualified(e) is not None:
            return ""
        local = self.syntax.binds(function, name)
        if not local and (w.how is How.RUNS or (w.how is How.SETS and w.name == f"~{name}")):
            return f"{w.told} may bind `{name}` anew"
        if w.how is How.RUNS and any(name in n.names for n in self.syntax.by_type[ast.Nonlocal]):
            return f"{w.told} may bind `{name}` anew"
        return self._touches_object(w, e, aspect, function)

    def _touches_attribute(
        self, w: Write, e: ast.Attribute, owner: ast.expr, attr: str, aspect: Aspect, function: FunctionNode
    ) -> str:
        if aspect is Aspect.MEMORY:
            return self._touches_object(w, e, aspect, function)
        if (w.how is How.RUNS and not self.is_steady(e)) or (w.how is How.SETS and w.name in (attr, "*")):
            return f"{w.told} may set `.{attr}`"
        return self._touches(w, owner, Aspect.OBJECT, function) or self._touches_object(w, e, aspect, function)

    def _touches_object(self, w: Write, e: ast.expr, aspect: Aspect, function: FunctionNode) -> str:
        """Whether ``w`` changes the object that ``e`` is."""
        if aspect is Aspect.OBJECT or w.how in (How.BINDS, How.SETS) or self._is_immutable(e):
            return ""
        if aspect is Aspect.SHAPE and (w.how is How.WRITES or (w.how is How.RUNS and self.inference.of(e).is_tensor)):
            return ""  # nobody gives a tensor that he is handed another shape in place: presumed
        storage = self.storage(function)
        mine = storage.within(storage.objects(e))
        changed = storage.known_to({o for part in w.objects for o in storage.objects(part)})
        if w.deep or w.how is How.RUNS:
            changed = storage.within(changed)
        if w.how is How.RUNS or w.afar:
            changed |= storage.escaped()
        return f"{w.told} may change `{_text(e)}`" if mine & changed else ""

    def _is_immutable(self, e: ast.expr) -> bool:
        value = self.inference.of(e)
        return value.is_number or (value.kind is Kind.PYTHON and value.python in ("none", "str", "dtype"))

    def is_steady(self, e: ast.Attribute) -> bool:
        """Whether the attribute is set by the constructors of its class only, as far as the project can be seen."""
        own = self.inference.instance_attribute(e)
        if own is None or e.attr in self.project.foreign_stores:
            return False
        cls, attr = own
        stores = self.class_facts(cls).stores.get(attr, [])
        if not stores or any(s.method is not None and s.method.name not in INITIALISERS for s in stores):
            return False
        name = f"{self.module}.{self.syntax.qualname(cls) or cls.name}"
        family, _ = self.project.family(name)
        summaries = [c for f in family if (c := self.project.known_class(f)) is not None]
        if any(attr in c.stores | c.properties | c.methods or c.methods & _HOOKS for c in summaries):
            return False
        return not any(self.project.attributes.touched(name, attr, (Touching.SET,)))


def _is_stored(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))


def _least(a: Aspect, b: Aspect) -> Aspect:
    return a if a is Aspect.OBJECT else b


def _text(e: ast.expr) -> str:
    return ast.unparse(e)[:60]
