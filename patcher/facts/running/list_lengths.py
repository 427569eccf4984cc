"""Where a list that a function is given is read, itself or as another list whose length follows from its own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patcher.facts.flow.definitions import Definition, Flow
from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted

_LOOPS = (ast.For, ast.AsyncFor)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_GROWING = frozenset("append extend insert add update setdefault appendleft".split())
#: What makes a list of a list, or goes through one.
_LIST_CALLS = frozenset("list tuple sorted reversed zip enumerate map filter set dict iter chain deque".split())
_LIST_METHODS = frozenset("copy items keys values split chunk unbind tensor_split split_with_sizes".split())
#: Functions of a list of tensors.
_OF_LISTS = frozenset(
    "cat concat concatenate stack hstack vstack dstack column_stack block_diag cartesian_prod meshgrid pad_sequence "
    "pack_sequence broadcast_tensors as_nested_tensor nested_tensor".split()
)
_LIST_TYPES = frozenset("list tuple dict Sequence Iterable Mapping List Tuple".split())
_TENSOR_TESTS = frozenset({"torch.is_tensor"})


class ListLengths:
    """The reads of ``parameters`` of ``function``, which hold lists (or things that have one in them) at times."""

    def __init__(self, function: FunctionNode, parameters: Iterable[ast.arg], flow: Flow, syntax: Syntax) -> None:
        self.function = function
        self.flow = flow
        self.syntax = syntax
        self._top = {n: i for i, s in enumerate(function.body) for n in ast.walk(s)}
        self._released: dict[Definition, int] = {}
        self.lists: set[Definition] = {flow.by_node[p] for p in parameters}
        self._find()

    def reads(self, node: ast.AST) -> bool:
        """Whether something in ``node`` reads such a list."""
        return any(self._is_list(n) for n in ast.walk(node) if isinstance(n, ast.Name))

    def _find(self) -> None:
        while True:
            for at, statement in enumerate(self.function.body):
                for d in self._released_by(statement):
                    self._released.setdefault(d, at)
            more = {d for d in self.flow.by_node.values() if d not in self.lists and self._keeps(d)}
            if not more:
                return
            self.lists |= more

    def _is_list(self, name: ast.Name) -> bool:
        at = self._top.get(name, 0)
        held = self.flow.reaching.get(name, frozenset())
        if isinstance(name.ctx, ast.Del) or (not held and name.id in self.flow.captured):
            held = frozenset(d for d in self.lists if d.name == name.id)
        return any(d in self.lists and at <= self._released.get(d, at) for d in held)

    # --- which definitions hold one ---------------------------------------------------------------------------------

    def _keeps(self, d: Definition) -> bool:
        uses = self.flow.uses.get(d, [])
        if d.how == "iteration":  # an item: a list when something goes through it in turn
            return d.value is not None and self.reads(d.value) and any(map(self._gone_through, uses))
        if d.how == "augmented" and isinstance(d.node, ast.AugAssign):
            return self.reads(d.node.target) or (d.value is not None and self._list(d.value)) or self._grows(d.node)
        if d.how == "other" and isinstance(d.node, ast.Name):  # beside a star, or the star itself
            statement, starred = self.syntax.statement_of(d.node), isinstance(self.syntax.parents[d.node], ast.Starred)
            read = isinstance(statement, ast.Assign) and self.reads(statement.value)
            return read and (starred or any(map(self._gone_through, uses)))
        if d.how != "assign" or d.value is None:
            return False
        value, path = d.part
        if path or value is None:
            return value is not None and self.reads(value) and self._list(value)
        return (
            self._list(value)
            or (self.reads(value) and any(map(self._gone_through, uses)))
            or any(self._grown(use) for use in uses)
        )

    def _list(self, e: ast.expr) -> bool:
        """Whether the value of ``e`` is such a list, or has it in it."""
        match e:
            case ast.Name():
                return self._is_list(e)
            case ast.Starred(value=inner) | ast.NamedExpr(value=inner) | ast.Await(value=inner):
                return self._list(inner)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                return any(map(self._list, elements))
            case ast.Dict(values=values):
                return any(map(self._list, values))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return any(self.reads(g.iter) for g in e.generators)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                where = self._list_test(test)
                return (where is not False and self._list(body) and not self._none_test(test)) or (
                    where is not True and self._list(orelse)
                )
            case ast.BoolOp(values=values):
                return any(map(self._list, values))
            case ast.BinOp(left=left, right=right):
                return self._list(left) or self._list(right)
            case ast.Subscript(value=holder, slice=ast.Slice()):
                return self._list(holder)
            case ast.Call(func=ast.Attribute(value=owner, attr=attr), args=args) if attr in _LIST_METHODS:
                return self._list(owner) or any(map(self._list, args))
            case ast.Call(func=func, args=args):
                return (dotted(func) or "").rpartition(".")[2] in _LIST_CALLS and any(map(self._list, args))
        return False

    def _gone_through(self, use: ast.AST) -> bool:
        """Whether ``use`` is read as a list is: item by item, for its length, or tested to be one."""
        parent = self.syntax.parents[use]
        match parent:
            case ast.For(iter=it) | ast.AsyncFor(iter=it) | ast.comprehension(iter=it):
                return it is use
            case ast.Starred():
                return True
            case ast.Call(args=args) if use in args and (name := self.syntax.builtin(parent)):
                if name == "isinstance":
                    return self._list_test(parent) is True
                return name in {"len", "sum"} or name in _LIST_CALLS - {"dict", "iter"}
            case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if first is use:
                return name in _OF_LISTS
        return False

    def _grown(self, use: ast.AST) -> bool:
        """Whether ``use`` gets one more item for each item of such a list."""
        parent = self.syntax.parents[use]
        if isinstance(parent, ast.Attribute) and parent.attr in _GROWING:
            return self._grows(parent)
        return isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store) and self._grows(parent)

    def _grows(self, node: ast.AST) -> bool:
        around = [p for p in self.syntax.ancestors(node) if p in self._top]
        loops = (p.iter for p in around if isinstance(p, _LOOPS))
        tests = (p.test for p in around if isinstance(p, ast.While))
        return any(self.reads(e) for e in (*loops, *tests))

    # --- where it is one no more ------------------------------------------------------------------------------------

    def _released_by(self, statement: ast.stmt) -> Iterator[Definition]:
        """What holds no list below ``if isinstance(parts, list): parts = torch.cat(parts)``."""
        if isinstance(statement, ast.If) and (where := self._list_test(statement.test)) is not None:
            tested = next(n for n in ast.walk(statement.test) if isinstance(n, ast.Name) and self._is_held(n))
            if _binds(statement.body if where else statement.orelse, tested.id):
                yield from self.flow.reaching.get(tested, frozenset()) & self.lists

    def _list_test(self, test: ast.expr) -> bool | None:
        """True for a test that lists pass, False for one that tensors pass, of a name that holds a list; or None."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                found = self._list_test(inner)
                return None if found is None else not found
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name() as name, kinds]) if self._is_held(name):
                if not self.syntax.builtin(test):
                    return None
                elements = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
                said = {self.syntax.qualified(k) or dotted(k) or "?" for k in elements}
                if {w.rpartition(".")[2] for w in said} <= _LIST_TYPES:
                    return True
                return False if said == {"torch.Tensor"} else None
            case ast.Call(func=func, args=[ast.Name() as name]) if self._is_held(name):
                return False if self.syntax.qualified(func) in _TENSOR_TESTS else None
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="type"), args=[ast.Name() as name]) as asked,
                ops=[ast.Is() | ast.Eq()],
                comparators=[ast.Name(id="list" | "tuple") as kind],
            ) if self._is_held(name):
                return True if self.syntax.builtin(asked) and self.syntax.is_builtin(kind) else None
        return None

    def _none_test(self, test: ast.expr) -> bool:
        match test:
            case ast.Compare(left=ast.Name() as name, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
                return self._is_held(name)
        return False

    def _is_held(self, name: ast.Name) -> bool:
        return bool(self.flow.reaching.get(name, frozenset()) & self.lists)


def _binds(body: Iterable[ast.stmt], name: str) -> bool:
    """Whether every way through ``body`` leaves the function or gives ``name`` another value."""
    for s in body:
        match s:
            case ast.Assign(targets=targets) if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                return True
            case ast.Return() | ast.Raise():
                return True
            case ast.If(body=inner, orelse=orelse) if _binds(inner, name) and _binds(orelse, name):
                return True
            case ast.With(body=inner) if _binds(inner, name):
                return True
    return False
