"""When the state changes in place: what a name saw of it before is another value afterwards, as a tensor only."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patcher.facts import torch_api as api
from patcher.facts.analysis import Analysis
from patcher.facts.bookkeeping import last_name, makes_tensor
from patcher.facts.classes import INITIALISERS, self_name
from patcher.facts.origins import Origins
from patcher.facts.syntax import FunctionNode, dotted, own_nodes
from patcher.facts.tensor_state.numbers import Numbers

_IN_PLACE = frozenset("zero_ fill_ add_ sub_ copy_ mul_ clamp_ append extend pop insert clear".split())
#: Calls that cannot reach the object: Python's own functions on numbers and containers, and PyTorch's.
_BLIND = frozenset(
    "int float bool len range min max abs sum round isinstance enumerate zip print tuple list sorted str repr "
    "ValueError RuntimeError IndexError AssertionError TypeError KeyError NotImplementedError OverflowError".split()
)
_BLIND_METHODS = (
    api.TENSOR_ONLY
    | api.ALIASING
    | set(api.HOST_VALUES)
    | api.HOST_READS
    | _IN_PLACE
    | frozenset("index_copy_ index_add_ masked_fill_ scatter_ index_fill_ format new_zeros new_ones new_empty".split())
)


class Order(Analysis):
    """Changes in place of the integer state of one class, method by method."""

    def __init__(self, origins: Origins, numbers: Numbers) -> None:
        super().__init__(origins.facts)
        self.origins = origins
        self.numbers = numbers
        self._sites: dict[FunctionNode, list[ast.AST]] = {}
        self._changing: dict[str, bool] = {}

    # --- what a name saw ---------------------------------------------------------------------------------------------

    def changed_between(self, binding: ast.AST, use: ast.AST) -> ast.AST | None:
        """A change of the state that may happen after ``binding`` and before ``use``, both of one method."""
        function = self.syntax.function_of(use)
        if function is None:
            return None
        statement = self.syntax.statement_of(binding)
        inside = any(parent is statement for parent in self.syntax.ancestors(use))
        bound, read = _end(statement), _start(use)
        if not inside and read < bound:
            return statement  # the binding of an earlier turn of a loop
        for site in self._in(function):
            where = self.syntax.statement_of(site)
            done = _end(where if isinstance(site, ast.stmt) else site)
            if not inside and bound <= _start(where) and done <= read:
                return site
            if any(
                isinstance(loop, (ast.For, ast.While, ast.AsyncFor))
                and loop in self._around(use)
                and not self._covers(statement, use, loop)
                for loop in self._around(site)
            ):
                return site
        return None

    def changed_beside(self, use: ast.AST) -> ast.AST | None:
        """A call in the statement of ``use`` that may change the state before the tensor's value is taken."""
        function = self.syntax.function_of(use)
        statement = self.syntax.statement_of(use)
        around = [use, *self._around(use)]
        for site in self._in(function) if function is not None else ():
            if isinstance(site, ast.stmt) or self.syntax.statement_of(site) is not statement:
                continue
            if site not in around and not any(n is use for n in ast.walk(site)):
                return site
        return None

    def changes_in(self, e: ast.expr) -> ast.AST | None:
        """A place in ``e`` that may change the state."""
        function = self.syntax.function_of(e)
        nodes = set(ast.walk(e))
        return next((s for s in self._in(function) if s in nodes), None) if function is not None else None

    def advancing(self) -> frozenset[str]:
        """The attributes that get another value than a constant outside of the initialisers."""
        found: set[str] = set()
        for functions in self.origins.own.values():
            for function in functions:
                if function.name not in INITIALISERS:
                    found |= {a for n in own_nodes(function) for a in self._advanced(n)}
        return frozenset(found)

    def _advanced(self, n: ast.AST) -> Iterator[str]:
        targets: list[ast.expr] = []
        match n:
            case ast.Assign(value=value):
                if isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and makes_tensor(value)):
                    return
                targets = [t for t in _targets(n) if not isinstance(t, ast.Name)]
            case ast.AugAssign():
                targets = list(_targets(n))
            case ast.Call(func=ast.Attribute(value=value, attr="add_" | "sub_" | "copy_" | "fill_"), args=[amount, *_]):
                targets = [] if isinstance(amount, ast.Constant) else [value]
        for place in targets:
            if self._mine(place):
                yield from self.origins.of(base_of(place)) & set(self.numbers.forms)

    def _around(self, node: ast.AST) -> list[ast.AST]:
        return list(self.syntax.ancestors(node))

    def _covers(self, statement: ast.stmt, use: ast.AST, loop: ast.AST) -> bool:
        """Whether the binding ``statement`` runs in each turn of ``loop`` before ``use`` does."""
        if loop not in self._around(statement):
            return False
        block = self.syntax.block_of(statement)
        return any(s in block for s in [self.syntax.statement_of(use), *self._around(use)])

    # --- where it changes --------------------------------------------------------------------------------------------

    def changes(self, method: str) -> bool:
        """Whether calling the class's own method may change the state in place."""
        if method not in self._changing:
            self._changing[method] = False  # recursion ends here
            self._changing[method] = any(self._in(f) for f in self.origins.own[method])
        return self._changing[method]

    def _in(self, function: FunctionNode) -> list[ast.AST]:
        if function not in self._sites:
            self._sites[function] = list(self._find(own_nodes(function), self_name(function)))
        return self._sites[function]

    def _find(self, nodes: Iterable[ast.AST], me: str | None) -> Iterator[ast.AST]:
        for n in nodes:
            match n:
                case ast.Yield() | ast.YieldFrom() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                    yield n  # others go on in the meantime
                case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Delete() | ast.For():
                    written = [t for t in _targets(n) if isinstance(n, ast.AugAssign) or isinstance(t, ast.Subscript)]
                    if any(map(self._mine, written)):
                        yield n
                case ast.Call():
                    if self._may_change(n):
                        yield n
                case ast.Lambda():
                    if any(True for _ in self._find(ast.walk(n.body), me)):
                        yield n
                case ast.Name(id=name, ctx=ast.Load()) if name == me:
                    if not isinstance(self.syntax.parents[n], ast.Attribute):
                        yield n  # an operator of its own, or somebody who gets it
                case ast.Attribute(ctx=ast.Load()):
                    name_of = self.origins.attribute(n)
                    if name_of is not None and name_of in self.origins.own and self.changes(name_of):
                        yield n  # a property, or a method that is handed on

    def _mine(self, e: ast.expr) -> bool:
        """Whether ``e`` is the state, an element of it, or a name for one of them."""
        return self.numbers.form(base_of(e)) is not None

    def _may_change(self, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _IN_PLACE and self._mine(call.func.value):
            return True
        name = self.origins.attribute(call.func)
        if name is not None:
            return self.changes(name) if name in self.origins.own else name not in self.numbers.forms
        if isinstance(call.func, ast.Name):
            return call.func.id not in _BLIND
        what = self.syntax.qualified(call.func) or ""
        if what.startswith(("torch.", "math.", "warnings.", "logging.")):
            return False
        return last_name(call.func) not in _BLIND_METHODS and not self._super(call)

    def _super(self, call: ast.Call) -> bool:
        func = call.func
        base = func.value if isinstance(func, ast.Attribute) else None
        return isinstance(base, ast.Call) and dotted(base.func) == "super"


def _targets(n: ast.AST) -> Iterator[ast.expr]:
    """What a statement assigns, tuples taken apart."""
    match n:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            stack = list(targets)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
            stack = [target]
        case _:
            stack = []
    while stack:
        t = stack.pop()
        if isinstance(t, (ast.Tuple, ast.List)):
            stack += t.elts
        else:
            yield t.value if isinstance(t, ast.Starred) else t


def base_of(e: ast.expr) -> ast.expr:
    """``x`` of ``x[i][j]``."""
    while isinstance(e, ast.Subscript):
        e = e.value
    return e


def _start(n: ast.AST) -> tuple[int, int]:
    return n.lineno, n.col_offset  # type: ignore[attr-defined]


def _end(n: ast.AST) -> tuple[int, int]:
    return n.end_lineno, n.end_col_offset  # type: ignore[attr-defined]
