"""One walk over a module: parents, node types, enclosing scopes, and what an imported name stands for."""

from __future__ import annotations

import ast
import builtins
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeVar

from patcher.facts.syntax.imports import bindings_of_import, brought, has_star
from patcher.facts.syntax.optional_imports import imported_or_none
from patcher.facts.syntax.packages import NOWHERE, Package

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MARKS = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
#: Builtins that get at names of the function that calls them, and not by a name that is written down.
_FRAME_READERS = frozenset("locals vars dir eval exec".split())
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)


#: Fields that hold no node: names, numbers, operators, contexts.
_NO_PARTS = frozenset(
    "arg asname attr conversion ctx id is_async kind kwd_attrs level lineno module name op ops rest simple str tag "
    "type_comment".split()
)
_NO_PARTS_OF = {ast.Constant: {"value"}, ast.MatchSingleton: {"value"}, ast.Global: {"names"}, ast.Nonlocal: {"names"}}


def _parts(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields in which nodes may stand, in order."""
    none = _NO_PARTS | _NO_PARTS_OF.get(kind, frozenset())
    return tuple(f for f in kind._fields if f not in none or (kind.__name__, f) == ("TypeAlias", "name"))


_PARTS = {kind: _parts(kind) for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.AST)}


def dotted(expr: ast.AST) -> str | None:
    """``a.b.c`` as text, or None when ``expr`` is not a plain chain of attributes on a name."""
    if type(expr) is ast.Name:
        return expr.id
    names: list[str] = []
    while isinstance(expr, ast.Attribute):
        names.append(expr.attr)
        expr = expr.value
    if not isinstance(expr, ast.Name):
        return None
    names.append(expr.id)
    return ".".join(reversed(names))


def last_name(expr: ast.AST) -> str:
    """``c`` of ``a.b.c``, whatever ``a.b`` is; "" for what is neither a name nor an attribute."""
    return expr.attr if isinstance(expr, ast.Attribute) else expr.id if isinstance(expr, ast.Name) else ""


def children(node: ast.AST) -> list[ast.AST]:
    """What stands directly below ``node``, as the source has it; operators and contexts of names are left out."""
    parts = _PARTS[type(node)]
    if not parts:  # names, constants
        return []
    found: list[ast.AST] = []
    for name in parts:
        child = getattr(node, name, None)
        if type(child) is list:
            found += child if None not in child else [c for c in child if c is not None]
        elif child is not None:
            found.append(child)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """``node`` and all that is below it, level by level, as ``ast.walk``, operators and contexts of names left out."""
    found = [node]
    for n in found:
        yield n
        found += children(n)


def own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Every node in the body of ``function``; of functions, lambdas and classes in it, only they themselves."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _NESTED):
            stack += children(node)[::-1]


def methods_of(cls: ast.ClassDef) -> list[FunctionNode]:
    """The functions that ``cls`` defines as its own, also those under a test, such as one of a version."""
    found: list[FunctionNode] = []
    stack: list[ast.AST] = list(reversed(cls.body))
    while stack:
        node = stack.pop()
        if isinstance(node, _FUNCTIONS):
            found.append(node)
        elif isinstance(node, (ast.stmt, ast.ExceptHandler)) and not isinstance(node, ast.ClassDef):
            stack += children(node)[::-1]
    return found


def running(top: ast.AST) -> list[ast.AST]:
    """What runs when ``top`` does: not the body of a function that it defines, and no error."""
    found: list[ast.AST] = []
    stack = [top]
    while stack:
        n = stack.pop()
        if not isinstance(n, (ast.Raise, ast.Assert, *_NESTED)):
            found.append(n)
            stack += children(n)
    return found


def same_expression(a: ast.AST, b: ast.AST) -> bool:
    """Whether two expressions are written alike, positions and load/store aside."""
    said = [ast.dump(e).replace("ctx=Store()", "ctx=Load()").replace("ctx=Del()", "ctx=Load()") for e in (a, b)]
    return said[0] == said[1]


def _from_outside(e: ast.expr) -> tuple[int, int, int, int]:
    """Where ``e`` begins; of those that begin together, the longest comes first."""
    return e.lineno, e.col_offset, -(e.end_lineno or 0), -(e.end_col_offset or 0)


@dataclass(frozen=True)
class Around:
    """What is around a node. ``scopes``: innermost first, also those whose decorators or defaults it is in.

    ``function``: the one whose body holds it. ``cls``: the innermost class. ``member``: the method of ``cls``, also one
    under a test, or what else stands directly in it, that is or holds the node.
    """

    function: FunctionNode | None = None
    cls: ast.ClassDef | None = None
    member: ast.AST | None = None
    scopes: tuple[ast.AST, ...] = ()

    def within(self, scope: ast.AST) -> Around:
        """The same for what is in ``scope`` as well; not in its body when it is a function."""
        return replace(self, scopes=(scope, *self.scopes))


Node = TypeVar("Node", bound=ast.AST)


class ByType(Protocol):
    """Type -> the nodes that are exactly of it."""

    def __getitem__(self, kind: type[Node], /) -> list[Node]:
        """Those of one type."""

    def values(self) -> Iterable[list[ast.AST]]:
        """All, type by type."""


class Syntax:
    """The shape of one module. ``package`` says what its imports mean."""

    def __init__(self, tree: ast.Module, package: Package = NOWHERE) -> None:
        self.tree = tree
        self.package = package
        self.parents: dict[ast.AST, ast.AST] = {}
        by_type: Any = defaultdict(list)
        self.by_type: ByType = by_type
        self._around: dict[ast.AST, Around] = {}
        self._order: list[ast.AST] = []
        self._own: dict[type[ast.AST], dict[FunctionNode, list[ast.expr]]] = {}
        stack: list[ast.AST] = [tree]
        parents, known, order = self.parents, self._around, self._order
        known[tree] = Around()
        while stack:
            node = stack.pop()
            order.append(node)
            kind = type(node)
            by_type[kind].append(node)
            parts = _PARTS[kind]
            if not parts:  # names, constants
                continue
            around = body = known[node]
            if kind in _SCOPES:
                around = body = around.within(node)
                if kind in _FUNCTIONS:
                    assert isinstance(node, _FUNCTIONS)
                    outside = known[node]
                    if outside.cls is not None and outside.scopes[0] is outside.cls:  # under a test, maybe
                        known[node] = replace(outside, member=node)
                        around = replace(around, member=node)
                    body = replace(around, function=node)
            for name in parts:
                child = getattr(node, name, None)
                if type(child) is list:
                    here = body if name == "body" else around
                    for item in child:
                        if item is not None:  # the key of ``**more`` in a dict
                            parents[item] = node
                            known[item] = here
                            stack.append(item)
                elif child is not None:
                    parents[child] = node
                    known[child] = around
                    stack.append(child)
            if kind is ast.ClassDef:
                assert isinstance(node, ast.ClassDef)
                for item in children(node):
                    known[item] = replace(around, cls=node, member=item)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around ``node``, innermost first."""
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)

    def subtree(self, node: ast.AST) -> Sequence[ast.AST]:
        """``node`` and all that is below it, in no order to rely on; operators and contexts of names are left out."""
        places = self._places
        at = places.get(node)
        if at is None:  # a node that was made, not parsed
            return list(ast.walk(node))
        last = node
        while below := children(last):  # the walk takes a node before its parts, and the first of them last
            last = below[0]
        return self._order[at : places[last] + 1]

    def own(self, function: FunctionNode, *kinds: type[ast.AST]) -> list[ast.expr]:
        """The expressions of one of ``kinds`` in the body of ``function``, as `own_nodes` has them."""
        found = [n for kind in kinds for n in self._own_of(kind).get(function, ())]
        return sorted(found, key=_from_outside)

    def _own_of(self, kind: type[ast.AST]) -> dict[FunctionNode, list[ast.expr]]:
        """Function -> the nodes of that kind in its body."""
        if kind not in self._own:
            found = self._own[kind] = defaultdict(list)
            for node in self.by_type[kind]:
                around = self._around[node]
                if around.function is not None and around.scopes[0] is around.function:
                    found[around.function].append(node)  # type: ignore[arg-type]
        return self._own[kind]

    @cached_property
    def _places(self) -> dict[ast.AST, int]:
        """Node -> where it stands in the order of the walk."""
        return dict(zip(self._order, range(len(self._order)), strict=True))

    def leaves(self, statement: ast.stmt) -> bool:
        """Whether a ``return`` or ``yield`` is or stands in ``statement``, also in a function that it defines."""
        return statement in self._leaving

    @cached_property
    def _leaving(self) -> set[ast.AST]:
        """Every ``return`` and ``yield``, and what is around them."""
        found: set[ast.AST] = set()
        for kind in (ast.Return, ast.Yield):
            for node in self.by_type[kind]:
                around: ast.AST | None = node
                while around is not None and around not in found:
                    found.add(around)
                    around = self.parents.get(around)
        return found

    def around(self, node: ast.AST) -> Around:
        """What is around ``node``, which may have been made and hung below a node of the module."""
        known = self._around.get(node)
        if known is None:
            parent = self.parents.get(node)
            known = self.around(parent) if parent is not None else Around()
            if isinstance(parent, _SCOPES):
                known = known.within(parent)
            if isinstance(parent, ast.ClassDef):
                known = replace(known, cls=parent, member=node)
        return known

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The function whose body holds ``node`` (a default or decorator belongs to the scope outside)."""
        known = self._around.get(node)
        return known.function if known is not None else self.around(node).function

    def class_of(self, function: ast.AST) -> ast.ClassDef | None:
        """The class around ``function``, also through an outer method."""
        return self.around(function).cls

    def method_of(self, node: ast.AST) -> FunctionNode | None:
        """The method (a function directly in a class) that holds ``node``, or None."""
        member = self.around(node).member
        return member if isinstance(member, _FUNCTIONS) else None

    def qualname(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str | None:
        """``Class.method`` of a definition; None for a function that stands directly in another one."""
        names = [node.name]
        for parent in self.around(node).scopes:
            if isinstance(parent, _FUNCTIONS) and len(names) == 1 and isinstance(node, _FUNCTIONS):
                return None
            if isinstance(parent, (ast.ClassDef, *_FUNCTIONS)):
                names.append(parent.name)
        return ".".join(reversed(names))

    def scope_of(self, node: ast.AST) -> str:
        """The qualified name, also within functions, of the innermost definition that is or holds ``node``."""
        around = (node, *self.ancestors(node))
        names = [parent.name for parent in around if isinstance(parent, (ast.ClassDef, *_FUNCTIONS))]
        return ".".join(reversed(names))

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds ``node``."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements that ``statement`` stands in."""
        parent = self.parents[statement]
        for _, value in ast.iter_fields(parent):
            if isinstance(value, list) and statement in value:
                return value
        raise LookupError("a statement outside of any block")

    def is_elif(self, node: ast.AST) -> bool:
        """Whether ``node`` is the ``elif`` of the ``if`` around it."""
        parent = self.parents[node]
        return isinstance(parent, ast.If) and parent.orelse == [node] and parent.col_offset == node.col_offset  # type: ignore[attr-defined]

    def alone(self, statement: ast.stmt) -> bool:
        """Whether the lines of ``statement`` hold nothing else: no ``a; b`` and no ``if c: a``."""
        parent, block = self.parents[statement], self.block_of(statement)
        others = [s for s in block if s is not statement]
        if any(s.lineno <= (statement.end_lineno or 0) and statement.lineno <= (s.end_lineno or 0) for s in others):
            return False
        body = getattr(parent, "body", None)
        if isinstance(parent, ast.Module) or not isinstance(body, list):
            return True
        if block is not body:  # the place of an ``else`` is not known: its block is indented as the first one is
            return self.alone(body[0]) and body[0].col_offset == statement.col_offset
        header = [n for n in ast.iter_child_nodes(parent) if isinstance(n, (ast.expr, ast.arguments, ast.withitem))]
        inner = [n.end_lineno for h in header for n in ast.walk(h) if isinstance(n, (ast.expr, ast.arg))]
        return statement.lineno > max([getattr(parent, "lineno", 0), *filter(None, inner)])

    def following(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements after ``statement`` in its block."""
        block = self.block_of(statement)
        return block[block.index(statement) + 1 :]

    @cached_property
    def imports(self) -> dict[str, str]:
        """Name -> dotted thing, for imports outside of functions."""
        return {k: v for (scope, k), v in self._standing_imports.items() if scope is None}

    @cached_property
    def imports_anywhere(self) -> dict[str, str]:
        """As `imports`, and those of functions for names that the module does not import."""
        return {k: v for (_, k), v in self._standing_imports.items()} | self.imports

    def imports_above(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        """Name and dotted thing, for imports that the function around ``node`` makes before it gets there."""
        function = self.function_of(node)
        for statement in self._imports_of_block.get(function, ()) if function is not None else ():
            if statement.lineno >= node.lineno:  # type: ignore[attr-defined]
                break
            for name, what in self._bindings(statement):
                if not self.binds(function, name):  # type: ignore[arg-type]
                    yield name, what

    @cached_property
    def _imports_of_block(self) -> dict[ast.AST, list[ast.Import | ast.ImportFrom]]:
        """The import statements in the body of a function, or of another statement."""
        found: dict[ast.AST, list[ast.Import | ast.ImportFrom]] = defaultdict(list)
        for statement in self._import_statements:
            found[self.parents[statement]].append(statement)
        return found

    @cached_property
    def runtime_imports(self) -> dict[str, str]:
        """Those of ``imports`` that are there when code runs: not those of a class body or of ``if TYPE_CHECKING``."""
        found: dict[str, str] = {}
        for node in self._import_statements:
            around = list(self.ancestors(node))
            typing = any(isinstance(p, ast.If) and "TYPE_CHECKING" in ast.unparse(p.test) for p in around)
            if not typing and not any(isinstance(p, _SCOPES[:-1]) for p in around):
                for name, what in self._bindings(node):
                    if name not in found or not self._is_fallback(node):
                        found[name] = what
        return found

    @cached_property
    def first_import(self) -> dict[str, int]:
        """The line of the first import statement that binds a name."""
        found: dict[str, int] = {}
        for node in self._import_statements:
            for name, _ in self._bindings(node):
                found[name] = min(found.get(name, node.lineno), node.lineno)
        return found

    def wrappers(self, function: FunctionNode | ast.ClassDef) -> Iterator[ast.expr]:
        """What is called with ``function`` before its name stands for it: its decorators, and ``f = wrapper(f)``."""
        for wrapper in (*function.decorator_list, *self._rewrapped.get((self.parents[function], function.name), ())):
            yield wrapper.func if isinstance(wrapper, ast.Call) else wrapper

    @cached_property
    def _rewrapped(self) -> dict[tuple[ast.AST, str], list[ast.expr]]:
        """What is called with a name and bound to it again, by the node of whose body it is a statement."""
        found: dict[tuple[ast.AST, str], list[ast.expr]] = defaultdict(list)
        for s in self.by_type[ast.Assign]:
            match s:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func, args=[ast.Name(id=given)])):
                    if name == given:
                        found[self.parents[s], name].append(func)
        return found

    def may_be_missing(self, name: str, at: ast.AST) -> bool:
        """Whether the module imports ``name`` under tests alone that may fail where ``at`` runs.

        A name that is read outside of such a test is taken to be there, but for what is run as a script.
        """
        tests = self._import_tests.get(name, [])
        arms = {test for test in tests if test is not None}
        if None in tests or any((test, not body) in arms for test, body in arms):
            return False
        around = [at, *self.ancestors(at)]
        for test, body in arms:
            if any(child in test.body if body else child in test.orelse for child in around):
                return False
            inside = set(self.subtree(test))
            read = any(n.id == name and n not in inside for n in self.by_type[ast.Name] if isinstance(n, ast.Name))
            if read and not any(isinstance(n, ast.Name) and n.id == "__name__" for n in walk(test.test)):
                return False
        return bool(arms)

    @cached_property
    def _import_tests(self) -> dict[str, list[tuple[ast.If, bool] | None]]:
        """The outermost test around each import of a name outside of functions, and whether it stands in its body."""
        found: dict[str, list[tuple[ast.If, bool] | None]] = defaultdict(list)
        for node in self._import_statements:
            around = [node, *self.ancestors(node)]
            if any(isinstance(p, _SCOPES[:-1]) for p in around):
                continue
            tests = [(p, child in p.body) for child, p in pairwise(around) if isinstance(p, ast.If)]
            for name, _ in self._bindings(node):
                found[name].append(tests[-1] if tests else None)
        return found

    def imports_locally(self, function: ast.AST, name: str) -> bool:
        """Whether an import statement in ``function`` binds ``name``."""
        return (function, name) in self._local_imports

    @cached_property
    def all_imports(self) -> list[tuple[str, str, FunctionNode | None]]:
        """Name, dotted thing and function (or None) of every imported name."""
        nodes = self._import_statements
        return [(name, what, self.function_of(n)) for n in nodes for name, what in self._bindings(n)]

    def _bindings(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
        """As `bindings_of_import`; what ``*`` brings and the module binds itself is the module's own."""
        own = self.bound.get(self.tree, set()) if has_star(node) else ()
        return ((name, what) for name, what in bindings_of_import(node, self.package) if name not in own)

    @cached_property
    def functions(self) -> list[FunctionNode]:
        """All that ``def`` and ``async def`` define, wherever they stand."""
        return [*self.by_type[ast.FunctionDef], *self.by_type[ast.AsyncFunctionDef]]

    @cached_property
    def _import_statements(self) -> list[ast.Import | ast.ImportFrom]:
        return sorted(
            [*self.by_type[ast.Import], *self.by_type[ast.ImportFrom]], key=lambda n: (n.lineno, n.col_offset)
        )

    @cached_property
    def _local_imports(self) -> dict[tuple[FunctionNode, str], str]:
        return {(scope, k): v for (scope, k), v in self._standing_imports.items() if scope is not None}

    @cached_property
    def _standing_imports(self) -> dict[tuple[FunctionNode | None, str], str]:
        """What a name stands for by the last import of it in a scope; a fallback counts only where it is the first."""
        found: dict[tuple[FunctionNode | None, str], str] = {}
        for node in self._import_statements:
            scope = self.function_of(node)
            for name, what in self._bindings(node):
                if (scope, name) not in found or not self._is_fallback(node):
                    found[scope, name] = what
        return found

    def _is_fallback(self, node: ast.stmt) -> bool:
        """Whether ``node`` runs where something else did not: in a handler, or in an ``else``."""
        child: ast.AST = node
        for parent in self.ancestors(node):
            if isinstance(parent, _SCOPES):
                return False
            if isinstance(parent, ast.ExceptHandler) or child in getattr(parent, "orelse", ()):
                return True
            child = parent
        return False

    @cached_property
    def bound(self) -> dict[ast.AST, set[str]]:
        """Scope -> names that it assigns or defines (imports aside, and methods)."""
        bound: dict[ast.AST, set[str]] = defaultdict(set)
        for definition in (*self.functions, *self.by_type[ast.ClassDef]):
            scope = self.around(definition).scopes[0]
            if not isinstance(scope, ast.ClassDef):
                bound[scope].add(definition.name)
        for kind in (ast.Name, ast.arg, ast.ExceptHandler):
            for node in self.by_type[kind]:
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    continue
                name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else node.name  # type: ignore[attr-defined]
                if name:
                    bound[self.around(node).scopes[0]].add(name)
        captures: list[tuple[ast.AST, str | None]] = [(n, n.name) for n in self.by_type[ast.MatchAs]]
        captures += [(n, n.name) for n in self.by_type[ast.MatchStar]]
        captures += [(n, n.rest) for n in self.by_type[ast.MatchMapping]]
        for capture, captured in captures:
            if captured:
                bound[self.around(capture).scopes[0]].add(captured)
        for statement in self.by_type[ast.Global]:
            bound[self.tree] |= bound.get(self.around(statement).scopes[0], set()).intersection(statement.names)
        return bound

    def binds(self, scope: ast.AST, name: str) -> bool:
        """Whether the function, lambda, class or module ``scope`` assigns ``name`` (other than by an import)."""
        return name in self.bound.get(scope, ())

    def bound_in(self, scope: ast.AST) -> frozenset[str]:
        """The names that ``scope`` binds, imports aside."""
        return frozenset(self.bound.get(scope, ()))

    def qualified(self, expr: ast.AST) -> str | None:
        """The dotted thing that ``expr`` stands for through the imports, or None when a name is not an import."""
        base_of: ast.AST = expr
        while type(base_of) is ast.Attribute:
            base_of = base_of.value
        if type(base_of) is not ast.Name or base_of.id not in self._imported:
            return None
        root, _, rest = (dotted(expr) or "").partition(".")
        for scope in self.around(expr).scopes:
            if isinstance(scope, _FUNCTIONS) and (scope, root) in self._local_imports:
                return self.package.attribute(self._local_imports[scope, root], rest)
            if root in self.bound.get(scope, ()) and not (scope is self.tree and self._is_there(expr, root)):
                return None
        what = self.imports.get(root)
        return None if what is None else self.package.attribute(what, rest)

    def _is_there(self, expr: ast.AST, root: str) -> bool:
        """Whether ``expr`` calls what was imported as ``root`` or None, or takes an attribute of it."""
        parent = self.parents.get(expr)
        called = isinstance(parent, ast.Call) and parent.func is expr
        return (called or isinstance(expr, ast.Attribute)) and root in self._imported_or_none

    @cached_property
    def _imported_or_none(self) -> frozenset[str]:
        names = (n.id for n in self.by_type[ast.Name] if not isinstance(n.ctx, ast.Load))
        defined = (d.name for d in (*self.functions, *self.by_type[ast.ClassDef]))
        others = (h.name or "" for h in self.by_type[ast.ExceptHandler])
        blocks = (t for t in self.by_type[ast.Try] if self.around(t).scopes[0] is self.tree)
        return frozenset(imported_or_none(blocks, Counter([*names, *defined, *others])))

    def only_truth(self, e: ast.expr) -> bool:
        """Whether nothing but the truth of ``e`` counts where it stands."""
        parent = self.parents[e]
        if isinstance(parent, (ast.If, ast.While, ast.Assert, ast.IfExp)):
            return parent.test is e
        if isinstance(parent, ast.UnaryOp):
            return isinstance(parent.op, ast.Not)
        return isinstance(parent, ast.comprehension) or (isinstance(parent, ast.BoolOp) and self.only_truth(parent))

    def is_lambda_parameter(self, name: ast.Name) -> bool:
        """Whether ``name`` is a parameter of a lambda around it."""
        for scope in self.around(name).scopes:
            if isinstance(scope, _FUNCTIONS):
                return False
            if isinstance(scope, ast.Lambda) and self.binds(scope, name.id):
                return True
        return False

    def is_builtin(self, name: ast.Name) -> bool:
        """Whether nothing in the file gives ``name`` another meaning than Python's own.

        ``from module import *`` may, where nobody can say what it brings.
        """
        return not self.has_star and self.is_builtin_but_for_stars(name)

    def is_builtin_but_for_stars(self, name: ast.Name) -> bool:
        """The same, where what ``from module import *`` brings does not count."""
        if not hasattr(builtins, name.id):
            return False
        return name.id not in self._given or self._is_local_elsewhere(name)

    def builtin(self, e: ast.AST) -> str:
        """The name of Python's own function that ``e`` calls; "" for a call of anything else, and for no call."""
        named = isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and self.is_builtin(e.func)
        return e.func.id if named else ""  # type: ignore[attr-defined]

    def _is_local_elsewhere(self, name: ast.Name) -> bool:
        """Whether only functions that are not around ``name`` bind that name, each for itself."""
        defined = any(d.name == name.id for d in (*self.functions, *self.by_type[ast.ClassDef]))
        if defined or name.id in self._imported or any(name.id in g.names for g in self.by_type[ast.Global]):
            return False
        around = self.around(name).scopes
        binding = (scope for scope, names in self.bound.items() if name.id in names)
        return bool(around) and all(isinstance(s, (*_FUNCTIONS, ast.Lambda)) and s not in around for s in binding)

    @cached_property
    def rebound_builtins(self) -> frozenset[str]:
        """Names of Python's own that something in the file binds, so that new code cannot say them."""
        return frozenset(name for name in self._given if name in vars(builtins))

    @cached_property
    def has_star(self) -> bool:
        """Whether the file imports names that nobody can list: all of a module that is not of this project."""
        statements = (n for n in self._import_statements if isinstance(n, ast.ImportFrom) and has_star(n))
        return any(brought(n, self.package) is None for n in statements)

    def why_names_show(self, function: ast.AST) -> str:
        """What in ``function`` looks at all of its names, so that one more would be seen; "" when nothing does."""
        return self._showing.get(function, "")

    @cached_property
    def _showing(self) -> dict[ast.AST, str]:
        """The functions and classes with code that looks at all local names, and what does so."""
        names = [n for n in self.by_type[ast.Name] if n.id in _FRAME_READERS and n.id not in self._given]
        seen: list[tuple[ast.AST, str]] = []
        for n in names:
            call = self.parents[n]
            given = isinstance(call, ast.Call) and call.func is n and bool(call.args or call.keywords)
            if n.id not in ("vars", "dir") or not given:  # ``vars(o)`` is about an object
                seen.append((n, n.id))
        frames = ("_getframe", "currentframe", "f_locals")
        seen += [(n, n.attr) for n in self.by_type[ast.Attribute] if n.attr in frames]
        return {s: f"`{name}` looks at all local names" for n, name in seen for s in self.around(n).scopes}

    @cached_property
    def _given(self) -> frozenset[str]:
        """Every name that something in the file binds, defines or imports, in whatever scope."""
        defined = {d.name for d in (*self.functions, *self.by_type[ast.ClassDef])}
        return self._imported.union(defined, *self.bound.values())

    @cached_property
    def _imported(self) -> frozenset[str]:
        """Every name that an import binds, in whatever scope."""
        return frozenset(name for name, _, _ in self.all_imports)

    def names_in(self, node: ast.AST) -> set[str]:
        """Every identifier in ``node``: names, parameters, attributes."""
        found = set()
        for child in self.subtree(node):
            if isinstance(child, ast.Name):
                found.add(child.id)
            elif isinstance(child, ast.arg):
                found.add(child.arg)
            elif isinstance(child, ast.Attribute):
                found.add(child.attr)
        return found
