"""Which assignments reach a name, and what tests say of it on the way.

One forward pass over a function, joins where paths meet, loops run twice.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from patcher.facts.flow.narrowing import Ruling, rulings
from patcher.facts.syntax.tree import FunctionNode, children
from patcher.facts.syntax.written import all_parameters

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


# These two are made by the hundred thousand; to freeze them would double what that takes.
@dataclass(eq=False, slots=True)
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

    @property
    def part(self) -> tuple[ast.expr | None, tuple[int, ...]]:
        """What of ``value`` is bound, as far as it is written out, and the positions in it that are left."""
        value, path = self.value, self.path
        while path and isinstance(value, (ast.Tuple, ast.List)) and path[0] < len(value.elts):
            if any(isinstance(e, ast.Starred) for e in value.elts[: path[0] + 1]):
                break
            value, path = value.elts[path[0]], path[1:]
        return value, path


@dataclass(eq=False, slots=True)
class State:
    """What a name may hold at one point of a function.

    ``definitions``: what may have bound it. ``earlier``: those of them that may have done so in an earlier turn of a
    loop, while later turns have bound what else goes with it. ``ruled``: what tests on every path to this point say of
    what a definition bound. ``origin``: the state that tests alone have made this one of; two reads with one origin
    hold the same object.
    """

    definitions: frozenset[Definition]
    earlier: frozenset[Definition] = frozenset()
    ruled: Mapping[Definition, frozenset[Ruling]] = field(default_factory=dict)
    origin: State | None = None

    @property
    def version(self) -> State:
        """The same for all points between which nothing was assigned and no paths met."""
        return self.origin or self

    def told(self, ruling: Ruling) -> State:
        """The state after a test that went out like that."""
        ruled = {d: self.ruled.get(d, frozenset()) | {ruling} for d in self.definitions}
        return State(self.definitions, self.earlier, ruled, self.version)

    def aged(self, bound: frozenset[Definition]) -> State:
        """The state one turn later, when ``bound`` are the definitions that came before the loop."""
        return State(self.definitions, self.earlier | (self.definitions - bound), self.ruled)


Env = dict[str, State]


class Flow:
    """Reaching definitions in ``function``: ``reaching[name_load]`` and the environment before each ``if``.

    ``state[name_load]``: two loads of a name whose states have one ``version`` (``is``) have no assignment and no
    meeting of paths between them. The same definitions may reach both all the same, in a loop. ``shared``: names that
    other code may bind between two statements. ``reached``: the statements that may run at all.
    """

    def __init__(self, function: FunctionNode) -> None:
        self.function = function
        self.reaching: dict[ast.Name, frozenset[Definition]] = {}
        self.state: dict[ast.Name, State] = {}
        self.before: dict[ast.stmt, Env] = {}
        self.uses: dict[Definition, list[ast.Name]] = {}
        self.by_node: dict[ast.AST, Definition] = {}
        self.captured: set[str] = set()
        self.shared: set[str] = set()
        self.deleted: set[str] = set()
        self.reached: set[ast.stmt] = set()
        self._unbound: dict[str, Definition] = {}
        self._breaks: list[list[Env]] = []
        self._continues: list[list[Env]] = []
        env: Env = {}
        for arg in all_parameters(function.args):
            env[arg.arg] = self._bound(arg.arg, arg, "parameter")
        self._block(function.body, env)
        own = {d.name for d in self.by_node.values()} - self.shared
        for name, definitions in self.reaching.items():
            if not definitions and name.id in own:  # a function around this one may bind that name: it is another one
                self.reaching[name] = definitions = frozenset({self._nothing(name.id)})
            for definition in definitions:
                self.uses.setdefault(definition, []).append(name)

    def unchanged(self, a: ast.Name, b: ast.Name) -> bool:
        """Whether two loads of a name have no assignment and no meeting of paths between them."""
        return a is b or (a in self.state and b in self.state and self.state[a].version is self.state[b].version)

    def outliving(self, nodes: Collection[ast.AST]) -> set[str]:
        """The names that get a value among ``nodes`` and may be read elsewhere."""
        bound = [d for n in nodes if (d := self.by_node.get(n)) is not None]
        seen = self.captured | self.shared
        return {d.name for d in bound if d.name in seen or any(u not in nodes for u in self.uses.get(d, ()))}

    def _bound(
        self, name: str, node: ast.AST, how: str, value: ast.expr | None = None, path: tuple[int, ...] = ()
    ) -> State:
        return State(frozenset({self._definition(name, node, how, value, path)}))

    def _nothing(self, name: str) -> Definition:
        """The definition that says that ``name`` has no value."""
        return self._unbound.setdefault(name, Definition(name, ast.Pass(), "unbound"))

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
        """What is bound after ``s``; None when nothing comes after it."""
        self.reached.add(s)
        match s:
            case ast.If(test=test, body=body, orelse=orelse):
                self.before[s] = dict(env)
                self._loads(test, env)
                taken, left = self._ruled(test, env, True), self._ruled(test, env, False)
                return self._join((self._block(body, taken), self._block(orelse, left)))
            case ast.For() | ast.AsyncFor():
                self._loads(s.iter, env)
                return self._loop(env, s.body, s.orelse, lambda e: self._bind(s.target, e, "iteration", s.iter))
            case ast.While(test=test, body=body, orelse=orelse):
                return self._loop(env, body, orelse, lambda e: self._loads(test, e), test)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self._loads(item.context_expr, env)
                    if item.optional_vars is not None:
                        self._bind(item.optional_vars, env, "other", None)
                leaving = isinstance(body[-1], ast.Raise)
                if any(_may_swallow(item.context_expr, leaving) for item in items):
                    return self._swallowed(body, env)
                return self._block(body, env)
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                self._loads(s, env)
                left_to = {ast.Break: self._breaks, ast.Continue: self._continues}.get(type(s))
                if left_to:
                    left_to[-1].append(env)
                return None
            case ast.Assert(test=test):
                self._loads(s, env)
                return self._ruled(test, env, True)
            case _ if hasattr(s, "handlers"):
                return self._try(s, env)
            case ast.Match():
                return self._match(s, env)
        self._simple(s, env)
        return env

    def _simple(self, s: ast.stmt, env: Env) -> None:
        """A statement after which the next one comes: what it reads, then what it binds."""
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
                if isinstance(target, ast.Name):
                    self._load(target, env)
                self._loads(s, env)
                if isinstance(target, ast.Name):
                    env[target.id] = self._bound(target.id, s, "augmented", value)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self._capture(s)
                env[name] = self._bound(name, s, "other")
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        self.deleted.add(target.id)
                        env[target.id] = State(frozenset({self._nothing(target.id)}))
                    else:
                        self._loads(target, env)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    name = (alias.asname or alias.name).split(".")[0]
                    env[name] = self._bound(name, alias, "other")
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self.captured.update(names)
                self.shared.update(names)
            case _:
                self._loads(s, env)

    def _loop(
        self,
        env: Env,
        body: list[ast.stmt],
        orelse: list[ast.stmt],
        head: Callable[[Env], None],
        test: ast.expr | None = None,
    ) -> Env | None:
        breaks: list[Env] = []
        start = env
        for _ in range(2):
            self._breaks.append(breaks)
            self._continues.append([])
            entry = dict(start)
            head(entry)
            end = self._block(body, self._ruled(test, entry, True))
            turns = self._join((end, *self._continues.pop()))
            start = self._join((env, _aged(turns, env))) or {}
            self._breaks.pop()
        done = dict(start)
        if test is not None:
            head(done)
        return self._join((self._block(orelse, self._ruled(test, done, False)), *breaks))

    def _swallowed(self, body: list[ast.stmt], env: Env) -> Env | None:
        """What is bound after ``body``, which an error may end at every statement without more coming of it."""
        ends: list[Env | None] = [dict(env)]
        state: Env | None = dict(env)
        for statement in body:
            if state is None:
                break
            state = self._statement(statement, state)
            ends.append(dict(state) if state is not None else None)
        return self._join(ends)

    def _try(self, s: ast.stmt, env: Env) -> Env | None:
        body, handlers = s.body, s.handlers  # type: ignore[attr-defined]
        entry: Env | None = dict(env)
        state: Env | None = dict(env)
        for statement in body:
            if state is None:
                break
            state = self._statement(statement, state)
            entry = self._join((entry, state))
        ends = [self._block(s.orelse, state) if state is not None else None]  # type: ignore[attr-defined]
        for handler in handlers:
            here = dict(entry or {})
            if handler.type is not None:
                self._loads(handler.type, here)
            if handler.name:
                here[handler.name] = self._bound(handler.name, handler, "other")
            ends.append(self._block(handler.body, here))
        after = self._join(ends)
        final = s.finalbody  # type: ignore[attr-defined]
        if final and after is None:
            self._block(final, dict(entry or {}))
            return None
        return self._block(final, after)

    def _match(self, s: ast.Match, env: Env) -> Env | None:
        self._loads(s.subject, env)
        ends: list[Env | None] = [dict(env)]
        for case in s.cases:
            here = dict(env)
            for node in ast.walk(case.pattern):
                name = getattr(node, "name", None) or getattr(node, "rest", None)
                if isinstance(name, str):
                    here[name] = self._bound(name, node, "other")
            if case.guard is not None:
                self._loads(case.guard, here)
            ends.append(self._block(case.body, here))
        return self._join(ends)

    def _bind(self, target: ast.expr, env: Env, how: str, value: ast.expr | None, path: tuple[int, ...] = ()) -> None:
        match target:
            case ast.Name(id=name):
                env[name] = self._bound(name, target, how, value, path)
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
        self.state[name] = env.get(name.id) or State(frozenset())
        self.reaching[name] = self.state[name].definitions

    def _ruled(self, test: ast.expr | None, env: Env, outcome: bool) -> Env:
        """``env`` where ``test`` went out like that."""
        known = dict(env)
        for name, ruling in rulings(test, outcome) if test is not None else ():
            if name in known:
                known[name] = known[name].told(ruling)
        return known

    def _join(self, envs: Iterable[Env | None]) -> Env | None:
        alive = [e for e in envs if e is not None]
        if len(alive) < 2:
            return dict(alive[0]) if alive else None
        out: Env = {}
        missing = State(frozenset())
        for name in dict.fromkeys(n for env in alive for n in env):
            states = list(dict.fromkeys(env.get(name, missing) for env in alive))
            if missing in states:
                states[states.index(missing)] = State(frozenset({self._nothing(name)}))
            out[name] = states[0] if len(states) == 1 else _met(states)
        return out

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
            elif isinstance(n, ast.BoolOp):
                self._in_turn(n, env)
            elif isinstance(n, ast.IfExp):
                self._loads(n.test, env)
                for part, outcome in ((n.body, True), (n.orelse, False)):
                    self._under(n.test, outcome, part, env)
            elif isinstance(n, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
                inner = dict(env)
                for generator in n.generators:
                    self._loads(generator.iter, inner)
                    self._bind(generator.target, inner, "iteration", generator.iter)
                    for condition in generator.ifs:
                        self._loads(condition, inner)
                        inner = self._ruled(condition, inner, True)
                for part in (n.key, n.value) if isinstance(n, ast.DictComp) else (n.elt,):
                    self._loads(part, inner)
            elif n is not None:
                stack += children(n)[::-1]

    def _in_turn(self, test: ast.BoolOp, env: Env) -> None:
        """The values of ``and`` and ``or``, each where those before it are true, or false."""
        known = env
        for value in test.values:
            before = dict(known)
            self._loads(value, before)
            env.update({name: state for name, state in before.items() if state is not known.get(name)})
            known = self._ruled(value, before, isinstance(test.op, ast.And))

    def _under(self, test: ast.expr, outcome: bool, part: ast.expr, env: Env) -> None:
        """What ``part`` reads, where ``test`` went out like that; names that it binds are bound below."""
        before = self._ruled(test, env, outcome)
        after = dict(before)
        self._loads(part, after)
        env.update({name: state for name, state in after.items() if state is not before.get(name)})

    def _capture(self, node: ast.AST) -> None:
        """Names read in a nested scope may be read at any time: they count as captured."""
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
                self.captured.add(child.id)
            elif isinstance(child, ast.Nonlocal):
                self.shared.update(child.names)


def _met(states: list[State]) -> State:
    """Where paths meet on which a name has these states."""
    definitions = frozenset().union(*(s.definitions for s in states))
    ruled = {}
    for d in definitions:
        ruled[d] = frozenset.intersection(*(s.ruled.get(d, frozenset()) for s in states if d in s.definitions))
    versions = {s.version for s in states}
    earlier = frozenset().union(*(s.earlier for s in states))
    return State(definitions, earlier, ruled, versions.pop() if len(versions) == 1 else None)


def _aged(turns: Env | None, env: Env) -> Env | None:
    """What a turn of a loop leaves to the next one; ``env``: what was there before the loop."""
    if turns is None:
        return None
    none = State(frozenset())
    return {
        name: state if state.version is env.get(name, none).version else state.aged(env.get(name, none).definitions)
        for name, state in turns.items()
    }


def _may_swallow(context: ast.expr, leaving: bool) -> bool:
    """Whether ``context`` may take the errors of its block: it is there for that, or the block always ends in one.

    What PyTorch has lets every error pass.
    """
    text = ast.unparse(context.func if isinstance(context, ast.Call) else context)
    return text.rpartition(".")[2] == "suppress" or (leaving and not text.startswith("torch."))
