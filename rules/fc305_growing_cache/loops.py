"""The loops that hand a cache from call to call: what has to be said there for what grows to get room."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition, Flow
from patcher.facts.project.handed import is_kept
from patcher.facts.project.index import FunctionSummary
from patcher.facts.project.whole_reads import JOINED
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.syntax.written import given, is_none, short
from patcher.facts.tables.wording import words
from patcher.facts.values.callees import Callees
from rules.fc305_growing_cache.parts import Part, Parts

_LOOPS = (ast.For, ast.While)
_DEEPEST = 3
#: Further words for what is handed from call to call, where a function of the file lets it grow.
_ALSO = frozenset("kept state states memory".split())
#: The last words of what a configuration calls the greatest length.
_LENGTHS = (
    "max_position_embeddings", "block_size", "max_seq_len", "max_sequence_length", "max_length", "n_positions", "n_ctx",
    "context_length", "max_target_positions",
)  # fmt: skip


@dataclass(frozen=True)
class Loop:
    """A loop with a call that is given the cache ``name``. ``below``: the statements that the room is made below.

    ``more``: how many turns there are; ``room``: the greatest length, as the configuration has it. ``starts``: the
    numbers that the calls are given for where they start, which may be tensors. ``dim``: what grows there does so along
    it. ``reason``: why no room can be made there; "" when it can. ``numbers``: what stays a number that advances.
    ``part``: of what is handed on, the only one that grows.
    """

    function: FunctionNode
    call: ast.Call
    name: str
    below: tuple[ast.stmt, ...] = ()
    more: ast.expr | None = None
    room: str = ""
    starts: tuple[ast.expr, ...] = ()
    dim: int = 0
    reason: str = ""
    numbers: tuple[str, ...] = ()
    part: Part = ()


class Loops(Analysis):
    """Answers for one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)
        self._found: tuple[Loop, ...] | None = None

    def found(self) -> tuple[Loop, ...]:
        """The loops of the module that hand on what grows."""
        if self._found is None:
            functions = [f for f in self.syntax.functions if not self.facts.reached(f)]
            self._found = tuple(loop for f in functions for loop in self._of(f))
        return self._found

    def dims(self, module: str, seen: frozenset[str] = frozenset()) -> frozenset[int]:
        """The dimensions along which functions of ``module``, and of what it imports, let something grow."""
        if module in seen:
            return frozenset()
        found: set[int] = set()
        for s in self.project.modules.values():
            if s.module == module:
                told = (f for f in s.functions if f.mishandles and module != self.module)  # `Rooms` asks of this one
                if any(self.project.reached(f"{module}.{f.qualname}") for f in told):
                    return frozenset()
                found.update(dim for f in s.functions for dim in f.grows)
                for other in self.project.modules.values():
                    if s.imports_from(other.module):
                        found |= self.dims(other.module, seen | {module})
        return frozenset(found)

    def _of(self, function: FunctionNode) -> Iterator[Loop]:
        calls: dict[str, list[tuple[ast.stmt, ast.Call]]] = {}
        roomy = {n for s in self._statements(function) if _makes_room(s) for n in _targets(s)}
        for statement in self._statements(function):
            call = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
            for c in ast.walk(call) if call is not None else ():
                if isinstance(c, ast.Call) and last_name(c.func) not in (JOINED, "_with_room", "_place"):
                    names = {a.id for a in given(c) if isinstance(a, ast.Name) and _is_kept(a.id)}
                    for name in set() if names & roomy else names & _targets(statement) or names:
                        calls.setdefault(name, []).append((statement, c))
        for name, found in calls.items():
            if name in roomy:
                continue
            inside = [(s, c) for s, c in found if self._loop_of(s, function) is not None]
            if inside:
                dims = self._dims(inside[0][1], function)
                if len(dims) == 1:
                    yield self._loop(function, name, inside[0], next(iter(dims)), found)

    def _statements(self, function: FunctionNode) -> list[ast.stmt]:
        kinds = (*self.syntax.by_type[ast.Assign], *self.syntax.by_type[ast.Expr])
        own = [s for s in kinds if isinstance(s, ast.stmt) and self.syntax.function_of(s) is function]
        return sorted(own, key=lambda s: s.lineno)

    def _loop_of(self, statement: ast.stmt, function: FunctionNode) -> ast.For | ast.While | None:
        for a in self.syntax.ancestors(statement):
            if a is function:
                return None
            if isinstance(a, _LOOPS):
                return a
        return None

    def _dims(self, call: ast.Call, function: FunctionNode) -> frozenset[int]:
        """Along which dimensions what ``call`` reaches lets something grow; an unknown model is one of this file."""
        called = self.callees.of(call)
        if called:
            if not all(self._is_handed(name, call) for name in called):
                return frozenset()
            modules = {s.module for s in self.project.modules.values() for f in s.functions for name in called
                       if f"{s.module}.{f.qualname}" == name}  # fmt: skip
            return frozenset().union(*(self.dims(m) for m in modules))
        return self.dims(self.module) if self._may_be_model(call, function) else frozenset()

    def _is_handed(self, name: str, call: ast.Call) -> bool:
        """Whether the function is a method of a module, or reached by compiled code."""
        return self.project.is_module_class(name.rpartition(".")[0]) or self.project.reached(name)

    def _may_be_model(self, call: ast.Call, function: FunctionNode) -> bool:
        """Whether an argument is called, or a part of one, or something with the name of a model's parameter."""
        func = call.func
        while isinstance(func, ast.Attribute):
            func = func.value
        found = self.inference.definitions(func) if isinstance(func, ast.Name) else ()
        if any(d.how == "parameter" for d in found):
            return True
        named = {k.arg for k in call.keywords if k.arg is not None and _is_kept(k.arg)}
        forwards = (f for name, f in self.project.functions() if name.endswith(".forward"))
        return bool(found) and bool(named) and any(named <= {*f.positional, *f.keywords} for f in forwards)

    def _loop(
        self,
        function: FunctionNode,
        name: str,
        inside: tuple[ast.stmt, ast.Call],
        dim: int,
        found: list[tuple[ast.stmt, ast.Call]],
    ) -> Loop:
        statement, call = inside
        flow = self.facts.flow(function)
        text = ast.unparse(call.func)
        assigned = [s for s in self._statements(function) if isinstance(s, ast.Assign)]
        same = [(s, c) for s in assigned if isinstance(c := s.value, ast.Call) and ast.unparse(c.func) == text]
        makers: list[ast.stmt] = [s for s, _ in same if name in _targets(s)]
        first = [s for s in makers if self._loop_of(s, function) is None]
        below = tuple(first) if first else (statement,)
        here = Loop(function, call, name, below, dim=dim)
        if reason := self._why_not(here, flow, makers, [c for _, c in same] or [call]):
            return Loop(function, call, name, reason=reason)
        loop = self._loop_of(statement, function)
        around = [self._loop_of(s, function) for s, _ in found]
        loops = [of for of in around if of is not None]  # one for each call: two calls of a turn add two places
        once = len(loops) == 1 and self._starts_anew(name, loop, function, flow)
        more = self._turns(loop, flow, below[0]) if once else None
        room = "" if more is not None else self._greatest(function)
        starts, numbers = self._starts(name, [c for _, c in same] or [call], flow, loop)
        if more is None and not room and self.facts.settings.capacity is None:
            why = "how many turns there will be is not in the code: say how much room there has to be with `--capacity`"
            return Loop(function, call, name, reason=why)
        parts = self.facts.ask(Parts).of(call, name)
        if len(parts) > 1:
            return Loop(function, call, name, reason=f"several parts of `{name}` grow")
        part = next(iter(parts), ())
        return Loop(function, call, name, below, more, room, tuple(starts), dim, "", tuple(numbers), part)

    def _why_not(self, loop: Loop, flow: Flow, makers: list[ast.stmt], calls: list[ast.Call]) -> str:
        """What else is done with the cache: somebody may read it, keep it, or make another one of it."""
        name = loop.name
        if name in flow.captured | flow.shared | flow.deleted:
            return f"`{name}` is also used by a function in this one"
        passed = {a for c in calls for a in given(c)} | set(given(loop.call))
        for d in flow.by_node.values():
            if d.name == name and not self._is_made(d, makers):
                at = self.syntax.statement_of(d.node) if d.how != "parameter" else None
                return (
                    f"`{name}` comes from somebody else, who may keep it"
                    if at is None
                    else f"`{short(at)}` makes another one of it"
                )
        for call in dict.fromkeys((*calls, loop.call)):
            statement = self.syntax.statement_of(call)
            if statement not in makers and any(isinstance(a, ast.Name) and a.id == name for a in given(call)):
                return f"`{short(statement)}` goes on from `{name}` and leaves it as it was"
        for load in (n for n in flow.reaching if n.id == name):
            parent = self.syntax.parents[load]
            asked = isinstance(parent, ast.Compare) and all(is_none(c) for c in parent.comparators)
            if not (load in passed or asked or (isinstance(parent, ast.keyword) and parent.value in passed)):
                return f"`{short(self.syntax.statement_of(load))}` does something else with `{name}`"
        return ""

    def _is_made(self, d: Definition, makers: list[ast.stmt]) -> bool:
        """Whether it is empty at first, or what the model gave back."""
        if d.how != "assign":
            return False
        statement = self.syntax.statement_of(d.node)
        value, path = d.part
        empty = value is not None and not path and ast.unparse(value) in ("None", "{}", "[]", "()", "dict()", "list()")
        return statement in makers or empty

    def _starts_anew(self, name: str, loop: ast.stmt | None, function: FunctionNode, flow: Flow) -> bool:
        """Whether the cache is another one each time that the loop starts."""
        around = next((a for a in self.syntax.ancestors(loop) if isinstance(a, _LOOPS)), None) if loop else None
        if loop is None or around is None or self.syntax.function_of(around) is not function:
            return True
        inside = set(ast.walk(loop))
        bound = [d.node for d in flow.by_node.values() if d.name == name and d.how == "assign"]
        return any(n in ast.walk(around) and n not in inside for n in bound)

    def _turns(self, loop: ast.For | ast.While | None, flow: Flow, below: ast.stmt) -> ast.expr | None:
        """How many turns the loop makes, by an expression that can stand there, too."""
        match loop:
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[turns])):
                names = [n for n in ast.walk(turns) if isinstance(n, ast.Name)]
                early = all(
                    d.how == "parameter" or getattr(d.node, "lineno", 1 << 30) < min(below.lineno, loop.lineno)
                    for n in names for d in flow.reaching.get(n, ())
                )  # fmt: skip
                plain = all(
                    isinstance(n, (ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.expr_context))
                    for n in ast.walk(turns)
                )
                return turns if early and plain else None
        return None

    def _greatest(self, function: FunctionNode) -> str:
        """What the class around calls the greatest length, as it is read there: ``self.cfg.block_size``; or ""."""
        cls = self.syntax.class_of(function)
        if cls is None or self.syntax.method_of(function) is not function or not function.args.args:
            return ""
        me = function.args.args[0].arg
        read = [n for n in ast.walk(cls) if isinstance(n, ast.Attribute) and n.attr.endswith(_LENGTHS)]
        texts = {ast.unparse(n) for n in read}
        own = sorted(t for t in texts if t.startswith(f"{me}.") and t.count(".") <= 2)
        kept = self.facts.class_facts(cls).stores
        whole = [t for t in own if t.split(".")[1] in kept]
        return whole[0] if whole else ""

    def _starts(
        self, name: str, calls: list[ast.Call], flow: Flow, loop: ast.stmt | None
    ) -> tuple[list[ast.expr], list[str]]:
        """The numbers among what the calls are given that advance: those that may be tensors, and the others."""
        starts: list[ast.expr] = []
        numbers: list[str] = []
        for call in calls:
            if not any(isinstance(a, ast.Name) and a.id == name for a in given(call)):
                continue
            named = self.callees.of(call) or [
                f"{self.module}.{self.syntax.qualname(f)}" for f in self.facts.ask(Parts).models(call, name)
            ]
            called = [f for n in named if (f := self.project.function(n)) is not None]
            for parameter, argument in _arguments(call, called):
                if called and all(parameter in f.offsets for f in called):
                    starts += [argument] if not isinstance(argument, ast.Constant) else []
                elif self._advances(argument, flow, loop):
                    numbers.append(f"`{short(argument)}`")
        return starts, numbers

    def _advances(self, e: ast.expr, flow: Flow, loop: ast.stmt | None, depth: int = 0) -> bool:
        """Whether ``e`` is a number that is another one in each turn, as far as is seen."""
        match e:
            case ast.Name():
                for d in flow.reaching.get(e, ()):
                    inside = loop is not None and any(d.node is n for n in ast.walk(loop))
                    if inside and d.how == "augmented":
                        return True
                    if (
                        inside
                        and d.how == "iteration"
                        and isinstance(d.value, ast.Call)
                        and last_name(d.value.func) == "range"
                    ):
                        return True
                    made = d.value if inside and d.how == "assign" and not d.path and depth < _DEEPEST else None
                    if isinstance(made, ast.BinOp) and any(getattr(n, "id", "") == e.id for n in ast.walk(made)):
                        return True
                    if made is not None and self._advances(made, flow, loop, depth + 1):
                        return True
                return False
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return self._advances(left, flow, loop, depth) or self._advances(right, flow, loop, depth)
        return False


def _arguments(call: ast.Call, called: list[FunctionSummary]) -> Iterator[tuple[str, ast.expr]]:
    """Each argument with the parameter that it is for; "" where that is not known."""
    own = (
        called[0].positional[1:]
        if called and called[0].positional[:1] == ("self",)
        else called[0].positional
        if called
        else ()
    )
    for i, a in enumerate(call.args):
        yield own[i] if i < len(own) else "", a
    for k in call.keywords:
        yield k.arg or "", k.value


def _makes_room(s: ast.stmt) -> bool:
    value = getattr(s, "value", None)
    return isinstance(value, ast.Call) and last_name(value.func) == "_with_room"


def _targets(s: ast.stmt) -> set[str]:
    return {n.id for t in getattr(s, "targets", ()) for n in ast.walk(t) if isinstance(n, ast.Name)}


def _is_kept(name: str) -> bool:
    """Whether what a loop hands on is called so."""
    return is_kept(name) or (bool(frozenset(words(name)) & _ALSO) and "use" not in words(name))
