"""Which assignments reach a name: one forward pass over a function, joins where paths meet, loops run twice."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from patcher.facts.syntax import FunctionNode

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, eq=False)
class Definition:
    """One binding of ``name``.

    ``how``: "parameter", "assign" (``value`` is the expression, ``path`` the tuple positions in it), "augmented",
    "iteration" (``value`` is what is iterated), "other" (with, import, except, def ...) or "unbound".
    """

    name: str
    node: ast.AST
    how: str
    value: ast.expr | None = None
    path: tuple[int, ...] = ()


Env = dict[str, frozenset[Definition]]


def _join(envs: Iterable[Env | None]) -> Env | None:
    alive = [e for e in envs if e is not None]
    if not alive:
        return None
    if len(alive) == 1:
        return dict(alive[0])
    names = set().union(*alive)
    missing: dict[str, frozenset[Definition]] = {}
    out: Env = {}
    for name in names:
        first = alive[0].get(name)
        if first is not None and all(env.get(name) is first for env in alive):
            out[name] = first  # the very same set: nothing was assigned on the way
            continue
        reach: frozenset[Definition] = frozenset()
        for env in alive:
            here = env.get(name)
            if here is None:
                here = missing.setdefault(name, frozenset())
            reach |= here
        if any(name not in env for env in alive):
            reach |= {Definition(name, ast.Pass(), "unbound")}
        out[name] = reach
    return out


class Flow:
    """Reaching definitions in ``function``: ``reaching[name_load]`` and the environment before each ``if``.

    ``state[name_load]``: two loads of a name that have one state (``is``) have no assignment and no meeting of paths
    between them. The same definitions may reach both all the same, in a loop.
    """

    def __init__(self, function: FunctionNode) -> None:
        self.function = function
        self.reaching: dict[ast.Name, frozenset[Definition]] = {}
        self.state: dict[ast.Name, frozenset[Definition]] = {}
        self.before: dict[ast.stmt, Env] = {}
        self.uses: dict[Definition, list[ast.Name]] = {}
        self.by_node: dict[ast.AST, Definition] = {}
        self.captured: set[str] = set()
        self._breaks: list[list[Env]] = []
        self._continues: list[list[Env]] = []
        env: Env = {}
        a = function.args
        for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]:
            env[arg.arg] = frozenset({self._definition(arg.arg, arg, "parameter")})
        self._block(function.body, env)
        for name, definitions in self.reaching.items():
            for definition in definitions:
                self.uses.setdefault(definition, []).append(name)

    def _definition(
        self, name: str, node: ast.AST, how: str, value: ast.expr | None = None, path: tuple[int, ...] = ()
    ) -> Definition:
        known = self.by_node.get(node)
        if known is None:
            known = self.by_node[node] = Definition(name, node, how, value, path)
        return known

    def _block(self, body: list[ast.stmt], env: Env | None) -> Env | None:
        for statement in body:
            if env is None:
                return None
            env = self._statement(statement, env)
        return env

    def _statement(self, s: ast.stmt, env: Env) -> Env | None:
        match s:
            case ast.Assign(targets=targets, value=value):
                self._loads(value, env)
                for target in targets:
                    self._bind(target, env, "assign", value)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self._loads(value, env)
                    self._bind(target, env, "assign", value)
            case ast.AugAssign(target=target, value=value):
                self._loads(value, env)
                if isinstance(target, ast.Name):
                    self._load(target, env)
                    env[target.id] = frozenset({self._definition(target.id, s, "augmented", value)})
                else:
                    self._loads(target, env)
            case ast.If(test=test, body=body, orelse=orelse):
                self.before[s] = dict(env)
                self._loads(test, env)
                return _join((self._block(body, dict(env)), self._block(orelse, dict(env))))
            case (
                ast.For(target=target, iter=it, body=body, orelse=orelse)
                | ast.AsyncFor(target=target, iter=it, body=body, orelse=orelse)
            ):
                self._loads(it, env)
                return self._loop(env, body, orelse, lambda e: self._bind(target, e, "iteration", it))
            case ast.While(test=test, body=body, orelse=orelse):
                return self._loop(env, body, orelse, lambda e: self._loads(test, e))
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self._loads(item.context_expr, env)
                    if item.optional_vars is not None:
                        self._bind(item.optional_vars, env, "other", None)
                return self._block(body, env)
            case ast.Return() | ast.Raise():
                self._loads(s, env)
                return None
            case ast.Break():
                if self._breaks:
                    self._breaks[-1].append(env)
                return None
            case ast.Continue():
                if self._continues:
                    self._continues[-1].append(env)
                return None
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self._capture(s)
                env[name] = frozenset({self._definition(name, s, "other")})
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        env.pop(target.id, None)
                    else:
                        self._loads(target, env)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    name = (alias.asname or alias.name).split(".")[0]
                    env[name] = frozenset({self._definition(name, alias, "other")})
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self.captured.update(names)
            case _ if hasattr(s, "handlers"):
                return self._try(s, env)
            case _ if hasattr(s, "cases"):
                return self._match(s, env)
            case _:
                self._loads(s, env)
        return env

    def _loop(self, env: Env, body: list[ast.stmt], orelse: list[ast.stmt], head: object) -> Env | None:
        assert callable(head)
        breaks: list[Env] = []
        start: Env | None = dict(env)
        for _ in range(2):
            self._breaks.append(breaks)
            self._continues.append([])
            entry = dict(start or {})
            head(entry)
            end = self._block(body, dict(entry))
            start = _join((env, end, *self._continues.pop()))
            self._breaks.pop()
        done = self._block(orelse, dict(start or {}))
        return _join((done, *breaks))

    def _try(self, s: ast.stmt, env: Env) -> Env | None:
        body, handlers = s.body, s.handlers  # type: ignore[attr-defined]
        entry: Env | None = dict(env)
        state: Env | None = dict(env)
        for statement in body:
            if state is None:
                break
            state = self._statement(statement, state)
            entry = _join((entry, state))
        ends = [self._block(s.orelse, state) if state is not None else None]  # type: ignore[attr-defined]
        for handler in handlers:
            here = dict(entry or {})
            if handler.type is not None:
                self._loads(handler.type, here)
            if handler.name:
                here[handler.name] = frozenset({self._definition(handler.name, handler, "other")})
            ends.append(self._block(handler.body, here))
        after = _join(ends)
        final = s.finalbody  # type: ignore[attr-defined]
        if final and after is None:
            self._block(final, dict(entry or {}))
            return None
        return self._block(final, after)

    def _match(self, s: ast.stmt, env: Env) -> Env | None:
        self._loads(s.subject, env)  # type: ignore[attr-defined]
        ends: list[Env | None] = [dict(env)]
        for case in s.cases:  # type: ignore[attr-defined]
            here = dict(env)
            for node in ast.walk(case.pattern):
                name = getattr(node, "name", None) or getattr(node, "rest", None)
                if isinstance(name, str):
                    here[name] = frozenset({self._definition(name, node, "other")})
            if case.guard is not None:
                self._loads(case.guard, here)
            ends.append(self._block(case.body, here))
        return _join(ends)

    def _bind(self, target: ast.expr, env: Env, how: str, value: ast.expr | None, path: tuple[int, ...] = ()) -> None:
        match target:
            case ast.Name(id=name):
                env[name] = frozenset({self._definition(name, target, how, value, path)})
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                starred = any(isinstance(e, ast.Starred) for e in elements)
                for i, element in enumerate(elements):
                    if isinstance(element, ast.Starred):
                        self._bind(element.value, env, "other", None)
                    elif starred:
                        self._bind(element, env, "other", None)
                    else:
                        self._bind(element, env, how, value, (*path, i))
            case _:
                self._loads(target, env)

    def _load(self, name: ast.Name, env: Env) -> None:
        self.state[name] = env.get(name.id, frozenset())
        self.reaching[name] = self.reaching.get(name, frozenset()) | self.state[name]

    def _loads(self, node: ast.AST, env: Env) -> None:
        stack = [node]
        while stack:
            n = stack.pop()
            if isinstance(n, ast.Name):
                if isinstance(n.ctx, ast.Load):
                    self._load(n, env)
            elif isinstance(n, ast.NamedExpr):
                self._loads(n.value, env)
                self._bind(n.target, env, "assign", n.value)
            elif isinstance(n, _NESTED):
                self._capture(n)
            elif isinstance(n, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
                inner = dict(env)
                for generator in n.generators:
                    self._loads(generator.iter, inner)
                    self._bind(generator.target, inner, "iteration", generator.iter)
                    for condition in generator.ifs:
                        self._loads(condition, inner)
                for part in (n.key, n.value) if isinstance(n, ast.DictComp) else (n.elt,):
                    self._loads(part, inner)
            elif n is not None:
                stack.extend(reversed(list(ast.iter_child_nodes(n))))

    def _capture(self, node: ast.AST) -> None:
        """Names read in a nested scope may be read at any time: they count as captured."""
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
                self.captured.add(child.id)
