"""A function as a graph of steps: what runs as one piece, and what may run after it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence

from patcher.facts.flow.fixpoint import reach
from patcher.facts.syntax.tree import FunctionNode, Syntax
from patcher.facts.tables.call_effects import QUIET_CONTEXTS

#: A step is the node that it is named by: a statement without a body; the test, iterable or subject of a compound one;
#: a ``for`` for the binding of its target; a with-item.
Step = ast.AST
_NOT_FOLLOWED = (ast.Break, ast.Continue, ast.With, ast.AsyncWith, ast.Match)


class Graph:
    """The steps of ``function``. ``entry`` (the function itself) comes before the first, ``exit`` after the last.

    No step is known of a function with what is not followed: ``try``, ``match``, jumps, ``with`` of what may act.
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
        for step in self._block(function.body, {self.entry}):
            self._edge(step, self.exit)
        self._followed = not any(isinstance(s, _NOT_FOLLOWED) or hasattr(s, "handlers") for s in self.steps)

    # --- questions --------------------------------------------------------------------------------------------------

    def step_of(self, node: ast.AST) -> Step | None:
        """The step in which ``node`` runs; None when it does not run with the function itself (a nested one)."""
        if node is self.function or not self._followed:
            return self.entry if self._followed else None
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

    # --- building ---------------------------------------------------------------------------------------------------

    def _edge(self, a: Step, b: Step) -> None:
        self.after[a].add(b)
        self.before[b].add(a)

    def _step(self, step: Step, come_from: Iterable[Step]) -> set[Step]:
        self.steps.append(step)
        self._known.add(step)
        for previous in come_from:
            self._edge(previous, step)
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
            case ast.With(items=items, body=body) if all(is_quiet(i.context_expr, self.syntax) for i in items):
                for item in items:
                    ends = self._step(item, ends)
                return self._block(body, ends)
            case ast.Return() | ast.Raise():
                self._step(s, ends)
                self._edge(s, self.exit)
                return set()
        return self._step(s, ends)

    def _loop(self, s: ast.stmt, head: Step, ends: set[Step]) -> set[Step]:
        turn = self._step(head, ends)
        for end in self._block(s.body, turn):  # type: ignore[attr-defined]
            self._edge(end, head)
        return self._block(s.orelse, turn)  # type: ignore[attr-defined]


def is_quiet(context: ast.expr, syntax: Syntax) -> bool:
    """Whether entering and leaving the context manager ``context`` runs nothing that code sees."""
    return syntax.qualified(context.func if isinstance(context, ast.Call) else context) in QUIET_CONTEXTS


def _runs_later(node: ast.AST, around: ast.AST) -> bool:
    """Whether ``node``, a child of ``around``, is a statement in its body, or what a lambda gives."""
    if isinstance(around, ast.Lambda):
        return node is around.body
    return not isinstance(around, ast.ClassDef) and isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case))


def parts(step: Step) -> list[ast.AST]:
    """The nodes that run with ``step`` and no other: for a ``for`` its target, for a function its defaults."""
    match step:
        case ast.For(target=target) | ast.AsyncFor(target=target):
            return [target]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            a = step.args
            return [*step.decorator_list, *a.defaults, *(d for d in a.kw_defaults if d is not None)]
        case ast.ClassDef():
            return [*step.decorator_list, *step.bases, *(k.value for k in step.keywords), *step.body]
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
