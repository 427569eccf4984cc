"""When the state changes in place: what a name saw of it before is another value afterwards, as a tensor only."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patcher.facts.analysis import Analysis
from patcher.facts.caching.origins import Origins, makes_tensor
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.effects.writes import How, Write
from patcher.facts.syntax.classes import INITIALISERS, pairs, self_name
from patcher.facts.syntax.tree import own_nodes
from patcher.facts.tensor_state.numbers import Numbers


class Order(Analysis):
    """Changes in place of the integer state of one class, which nobody else can reach."""

    def __init__(self, origins: Origins, numbers: Numbers) -> None:
        super().__init__(origins.facts)
        self.origins = origins
        self.numbers = numbers
        self.unchanged = self.facts.ask(Unchanged)
        self._changing: dict[str, bool] = {}

    # --- what a name saw ---------------------------------------------------------------------------------------------

    def changed_between(self, binding: ast.AST, use: ast.AST) -> ast.AST | None:
        """A change of the state that may happen after ``binding`` and before ``use``, both of one method."""
        loop = isinstance(binding, (ast.For, ast.AsyncFor))
        since = binding if loop else self.syntax.statement_of(binding)
        if isinstance(since, (ast.If, ast.While)):
            since = since.test
        return self._first(self.unchanged.written_between(since, use))

    def changed_beside(self, use: ast.AST) -> ast.AST | None:
        """A call in the statement of ``use`` that may change the state before the tensor's value is taken."""
        around = {use, *self.syntax.ancestors(use)}
        return self._first(w for w in self._in_statement(use) if w.node not in around)

    def _in_statement(self, use: ast.AST) -> Iterator[Write]:
        function = self.syntax.function_of(use)
        step = self.unchanged.graph(function).step_of(use) if function is not None else None
        if step is None:
            yield Write(How.RUNS, use)
            return
        for w in self.unchanged.writes.in_step(step):
            if isinstance(w.node, (ast.Call, ast.Attribute)) and isinstance(
                getattr(w.node, "ctx", ast.Load()), ast.Load
            ):
                yield w

    def changes_in(self, e: ast.expr) -> ast.AST | None:
        """A place in ``e`` that may change the state."""
        return self._first(w for n in ast.walk(e) for w in self.unchanged.writes.of(n))

    def advancing(self) -> frozenset[str]:
        """The attributes that get another value than a constant outside of the initialisers."""
        found: set[str] = set()
        for function in self.origins.methods:
            if function.name not in INITIALISERS:
                found |= {a for n in own_nodes(function) for a in self._advanced(n)}
        return frozenset(found)

    def _advanced(self, n: ast.AST) -> Iterator[str]:
        stores: list[tuple[ast.expr, ast.expr | None]] = []
        match n:
            case ast.Assign(targets=targets, value=given):
                stores = [s for t in targets for s in pairs(t, given) if not isinstance(s[0], ast.Name)]
            case ast.AugAssign(target=target):
                stores = [(target, None)]
            case ast.Call(func=ast.Attribute(value=target, attr="add_" | "sub_")):
                stores = [(target, None)]
            case ast.Call(func=ast.Attribute(value=target, attr="copy_" | "fill_"), args=[given, *_]):
                stores = [(target, given)]
        for place, value in stores:
            constant = isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and makes_tensor(value))
            if not constant and self._mine(place):
                yield from self.origins.of(base_of(place)) & set(self.numbers.forms)

    # --- what changes it ---------------------------------------------------------------------------------------------

    def changes(self, method: str) -> bool:
        """Whether calling the class's own method, or reading its property, may change the state in place."""
        if method not in self._changing:
            self._changing[method] = False  # recursion ends here
            nodes = (n for f in self.origins.own[method] for n in own_nodes(f))
            self._changing[method] = self._first(w for n in nodes for w in self.unchanged.writes.of(n)) is not None
        return self._changing[method]

    def _first(self, writes: Iterable[Write]) -> ast.AST | None:
        """The first node of ``writes`` that may change the state."""
        return next((w.node for w in writes if self._may_change(w)), None)

    def _may_change(self, w: Write) -> bool:
        own = self.origins.attribute(w.node.func if isinstance(w.node, ast.Call) else w.node)
        if own is not None and own in self.origins.own:
            return self.changes(own)
        if w.how is How.RUNS:
            return True
        return w.how not in (How.BINDS, How.SETS) and any(self._mine(o) or self._holds(o) for o in w.objects)

    def _mine(self, e: ast.expr) -> bool:
        """Whether ``e`` is the state, an element of it, or a name for one of them."""
        return self.numbers.form(base_of(e)) is not None

    def _holds(self, e: ast.expr) -> bool:
        """Whether who gets ``e`` gets the instance itself."""
        method = self.syntax.method_of(e)
        me = self_name(method) if method is not None else None
        return any(
            isinstance(n, ast.Name) and n.id == me and (n is e or not isinstance(self.syntax.parents[n], ast.Attribute))
            for n in ast.walk(e)
        )


def base_of(e: ast.expr) -> ast.expr:
    """``x`` of ``x[i][j]``."""
    while isinstance(e, ast.Subscript):
        e = e.value
    return e
