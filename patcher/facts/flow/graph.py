"""A function as a graph of steps: what runs as one piece, and what may run after it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from patcher.facts.flow.fixpoint import reach
from patcher.facts.syntax.tree import FunctionNode, Syntax

#: A step is the node that it is named by: a statement without a body; the test, iterable or subject of a compound one;
#: a ``for`` for the binding of its target; a ``with`` for what runs when it is left; a with-item, a handler, a case.
Step = ast.AST


class Graph:
    """The steps of ``function``. ``entry`` (the function itself) comes before the first, ``exit`` after the last.

    An exception may come up at every step, hence every step in a ``try`` may be followed by its handlers, and every one
    in a ``with`` by what runs when that is left. Where a ``finally`` goes on to is not followed path by path: it may go
    on to everything that left its ``try``.
    """

    def __init__(self, function: FunctionNode, syntax: Syntax) -> None:
        self.function = function
        self.syntax = syntax
        self.entry: Step = function
        self.exit: Step = ast.Pass()
        self.after: defaultdict[Step, set[Step]] = defaultdict(set)
        self.before: defaultdict[Step, set[Step]] = defaultdict(set)
        self.steps: list[Step] = []
        self._known: set[Step] = set()
        self._loops: list[tuple[Step, set[Step]]] = []  # where ``continue`` goes, and what ``break`` leaves from
        self._raising: list[set[Step]] = []  # the steps of each ``try`` and ``with`` around, as they come
        self._finals: list[set[Step]] = []  # what jumps out of each ``try`` that has a ``finally``
        for step in self._block(function.body, {self.entry}):
            self._edge(step, self.exit)

    # --- questions --------------------------------------------------------------------------------------------------

    def step_of(self, node: ast.AST) -> Step | None:
        """The step in which ``node`` runs; None when it does not run with the function itself (a nested one)."""
        if node is self.function:
            return self.entry
        below: ast.AST | None = None
        inner: ast.AST | None = node
        while inner is not None and inner is not self.function:
            if below is not None and _runs_later(below, inner):
                return None  # code that is never got to, or that another function runs
            if inner in self._known:
                return inner
            if isinstance(inner, (ast.If, ast.While)) and inner.test in self._known:
                return inner.test  # what stands for a place right before the statement
            below, inner = inner, self.syntax.parents.get(inner)
        return None

    def between(self, since: Step, until: Step) -> set[Step]:
        """The steps that may run after ``since`` and before ``until``, with ``since`` not run again on the way.

        ``until`` is one of them when it may run several times for one run of ``since``.
        """
        ahead = reach(self.after[since], self.after.__getitem__, frozenset({since}))
        back = reach(self.before[until], self.before.__getitem__, frozenset({since}))
        return (ahead & back) - {since}

    def repeats(self, step: Step) -> bool:
        """Whether ``step`` may run twice in one call."""
        return step in self._repeating

    @cached_property
    def _repeating(self) -> set[Step]:
        return {s for s in self.steps if s in reach(self.after[s], self.after.__getitem__)}

    # --- building ---------------------------------------------------------------------------------------------------

    def _edge(self, a: Step, b: Step) -> None:
        self.after[a].add(b)
        self.before[b].add(a)

    def _step(self, step: Step, come_from: Iterable[Step]) -> set[Step]:
        self.steps.append(step)
        self._known.add(step)
        for previous in come_from:
            self._edge(previous, step)
        for raising in self._raising:
            raising.add(step)
        return {step}

    def _block(self, body: Sequence[ast.stmt], ends: set[Step]) -> set[Step]:
        for statement in body:
            if not ends:
                break  # nothing gets there
            ends = self._statement(statement, ends)
        return ends

    def _statement(self, s: ast.stmt, ends: set[Step]) -> set[Step]:
        match s:
            case ast.If(test=test, body=body, orelse=orelse):
                tested = self._step(test, ends)
                return self._block(body, tested) | self._block(orelse, tested)
            case ast.For(iter=iterable) | ast.AsyncFor(iter=iterable):
                return self._loop(s, s, self._step(iterable, ends))
            case ast.While(test=test):
                return self._loop(s, test, ends)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                return self._with(s, items, body, ends)
            case ast.Return() | ast.Raise():
                step = self._step(s, ends)
                for final in self._finals:
                    final |= step
                self._edge(s, self.exit)
                return set()
            case ast.Break() | ast.Continue():
                return self._jump(s, self._step(s, ends))
            case _ if hasattr(s, "handlers"):
                return self._try(s, ends)
            case _ if hasattr(s, "cases"):
                return self._match(s, ends)
        return self._step(s, ends)

    def _jump(self, s: ast.stmt, ends: set[Step]) -> set[Step]:
        for final in self._finals:
            final |= ends
        if self._loops:
            again, leaving = self._loops[-1]
            if isinstance(s, ast.Continue):
                for step in ends:
                    self._edge(step, again)
            else:
                leaving |= ends
        return set()

    def _loop(self, s: ast.stmt, head: Step, ends: set[Step]) -> set[Step]:
        turn = self._step(head, ends)
        leaving: set[Step] = set()
        self._loops.append((head, leaving))
        for end in self._block(s.body, turn):  # type: ignore[attr-defined]
            self._edge(end, head)
        self._loops.pop()
        return self._block(s.orelse, turn) | leaving  # type: ignore[attr-defined]

    def _with(self, s: ast.stmt, items: Sequence[ast.withitem], body: Sequence[ast.stmt], ends: set[Step]) -> set[Step]:
        for item in items:
            ends = self._step(item, ends)
        inside = set(ends)
        self._raising.append(inside)
        ends = self._block(body, ends)
        self._raising.pop()
        return self._step(s, ends | inside)

    def _try(self, s: ast.stmt, ends: set[Step]) -> set[Step]:
        handlers: Sequence[ast.ExceptHandler] = s.handlers  # type: ignore[attr-defined]
        final: Sequence[ast.stmt] = s.finalbody  # type: ignore[attr-defined]
        if final:
            self._finals.append(set())
        raised, inside = set(ends), set(ends)
        self._raising += [inside, raised]
        done = self._block(s.body, ends)  # type: ignore[attr-defined]
        self._raising.pop()
        done = self._block(s.orelse, done)  # type: ignore[attr-defined]
        caught = set(raised)
        for handler in handlers:
            caught = self._step(handler, raised)
            done |= self._block(handler.body, caught)
        self._raising.pop()
        if not final:
            return done
        jumped = self._finals.pop()
        last = self._block(final, done | inside | jumped)
        for step in last if jumped or inside else ():
            self._edge(step, self.exit)
            for again, leaving in self._loops[-1:]:
                self._edge(step, again)
                leaving.add(step)
        return last

    def _match(self, s: ast.stmt, ends: set[Step]) -> set[Step]:
        asked = self._step(s.subject, ends)  # type: ignore[attr-defined]
        done: set[Step] = set(asked)
        for case in s.cases:  # type: ignore[attr-defined]
            asked = self._step(case, asked)
            done |= self._block(case.body, asked) | asked
        return done


def _runs_later(node: ast.AST, around: ast.AST) -> bool:
    """Whether ``node``, a child of ``around``, is a statement in its body, or what a lambda gives."""
    if isinstance(around, ast.Lambda):
        return node is around.body
    return not isinstance(around, ast.ClassDef) and isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case))


def parts(step: Step) -> list[ast.AST]:
    """The nodes that run with ``step`` and no other: for a ``for`` its target, for a handler its type, and so on."""
    match step:
        case ast.For(target=target) | ast.AsyncFor(target=target):
            return [target]
        case ast.With() | ast.AsyncWith():
            return []
        case ast.ExceptHandler(type=kind):
            return [kind] if kind is not None else []
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            a = step.args
            return [*step.decorator_list, *a.defaults, *(d for d in a.kw_defaults if d is not None)]
        case ast.ClassDef():
            return [*step.decorator_list, *step.bases, *(k.value for k in step.keywords), *step.body]
        case _ if hasattr(step, "pattern"):
            return [step.pattern, *([step.guard] if step.guard is not None else [])]  # type: ignore[attr-defined]
    return [step]


def inside(step: Step) -> list[ast.AST]:
    """Every node that runs with ``step``: not the bodies of functions and lambdas that it makes."""
    found: list[ast.AST] = []
    stack = parts(step)
    while stack:
        node = stack.pop()
        found.append(node)
        if isinstance(node, ast.Lambda):
            stack += [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node is not step:
            stack += [p for p in parts(node) if p is not node]
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            stack.extend(ast.iter_child_nodes(node))
    return found
