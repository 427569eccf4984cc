"""The edits that give what grows a buffer: where it is joined and read, and in the loops that hand it on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.own_functions import OwnFunctions
from patcher.facts.flow.definitions import Definition
from patcher.facts.project.growing import JOINED, is_kept, starts
from patcher.facts.syntax.tree import FunctionNode, last_name, own_nodes
from patcher.facts.syntax.written import given, integer, is_none
from patcher.facts.values.callees import Callees
from patcher.rule import Applicability, Code, Edit, Fix, Insert, Replace, filled
from rules.fc305_growing_cache.growth import Growing, Growth
from rules.fc305_growing_cache.room_text import MAKING, READING

#: What the code takes for granted once it is changed.
_GRANTED = (
    "all that the cache holds grows so and is attended to as a whole, its batch, dtype and device stay, no gradient "
    "flows through it, nobody keeps an earlier one or looks into it, and none gets longer than its room"
)


@dataclass(frozen=True)
class Room:
    """A fix, and what it takes for granted; without a fix, why there is none."""

    fix: Fix | None
    told: str


@dataclass(frozen=True)
class _Loop:
    """A loop whose ``call`` is given the cache ``name`` and gives it back. ``first``: the call above it that makes it.

    ``more``: how many turns there are, where that is written.
    """

    call: ast.Call
    name: str
    first: ast.stmt
    dim: int
    more: ast.expr | None


class Rooms(Analysis):
    """Answers for one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.functions = facts.ask(OwnFunctions)
        self.callees = facts.ask(Callees)
        self.growing = facts.ask(Growing)

    def of(self, function: FunctionNode, growths: Sequence[Growth]) -> Room:
        """Room for what grows in ``function``, made by the loops of its file that hand it on."""
        dims = {g.dim for g in growths}
        reads = self._reads(function, growths)
        if reason := self._why_not_here() or (reads if isinstance(reads, str) else ""):
            return Room(None, reason)
        if len(dims) > 1:
            return Room(None, "it does not grow along one dimension")
        edits = [Replace(g.node, Code(f"{JOINED}({{0}}, {{1}}, {g.dim})", (g.old, g.fresh))) for g in growths]
        loops = [loop for f in self.syntax.functions for loop in self._loops(f)]
        told = _GRANTED
        if not loops:
            call = f"cache = _with_room(cache, {growths[0].dim}, room=...)"
            told += f"; whoever calls it in a loop has to say `{call}` below the first call"
        making = (*self._starts(), *(e for loop in loops for e in self._making(loop)))
        return Room(self._fix([*edits, *reads, *making], made=not loops), told)

    def in_loop(self, function: FunctionNode) -> Iterator[tuple[ast.Call, Room]]:
        """Room in the loops of ``function`` for what grows in other files."""
        for loop in self._loops(function):
            reason = self._why_not_here()
            yield loop.call, Room(None if reason else self._fix(list(self._making(loop))), reason or _GRANTED)

    # --- where it is read ---------------------------------------------------------------------------------------------

    def _reads(self, function: FunctionNode, growths: Sequence[Growth]) -> list[Edit] | str:
        """The edits of all reads in ``function``; or why it cannot be read with empty places in it."""
        flow = self.facts.flow(function)
        nodes = {g.node for g in growths}
        kept = [d for d in flow.by_node.values() if d.how == "assign" and nodes & set(_bound(d))]
        names = [n for d in kept for n in flow.uses.get(d, ()) if not self._goes_back(n)]
        names = list(dict.fromkeys(n for n in names if not self._asks_for_none(n)))
        attentions = [c for c in self.syntax.own(function, ast.Call) if _is_attention(c)]
        if not kept or not attentions:
            return "no attention is seen that reads it in the same function"
        name = kept[0].name
        lines = [self.syntax.statement_of(c).lineno for c in attentions]
        if growths[0].node.lineno > min(lines) or any(self._is_new(d, kept, max(lines)) for d in flow.by_node.values()):
            return f"`{name}` is something else where it is attended to"
        whole: dict[ast.AST, Code] = {n: Code("_whole({0})", (n,)) for n in names}
        edits: list[Edit] = []
        inside: set[ast.AST] = set()
        for call in attentions:
            assert isinstance(call, ast.Call)
            if last_name(call.func) == "softmax":
                method = self.syntax.qualified(call.func) is None and isinstance(call.func, ast.Attribute)
                scores = call.func.value if method else call.args[0]  # type: ignore[attr-defined]
                inside |= set(ast.walk(scores))
                edits.append(Replace(scores, Code(f"_hide_empty({name}, {{0}})", (filled(scores, whole),))))
            else:
                edits.append(Replace(call.func, Code(f"_attention_over({name})")))
        edits += [Replace(n, whole[n]) for n in names if n not in inside]
        lengths = {d.name for d in flow.by_node.values() if self._is_length(d, names, flow.by_node.values())}
        for cut in self.syntax.own(function, ast.Subscript):
            if isinstance(cut, ast.Subscript) and isinstance(cut.ctx, ast.Load) and _ends_at(cut.slice, lengths):
                edits.append(Replace(cut, Code(f"_as_wide({name}, {{0}})", (cut,))))
        return edits

    def _is_new(self, d: Definition, kept: list[Definition], last: int) -> bool:
        """Whether ``d`` binds the name again, below the join and above the ``last`` attention."""
        if d.name != kept[0].name or d in kept or d.how == "parameter":
            return False
        join, statement = (self.syntax.statement_of(n) for n in (kept[0].node, d.node))
        apart = any(
            isinstance(p, ast.If) and any(join in ast.walk(b) for b in p.body) and statement in p.orelse
            for p in self.syntax.ancestors(statement)
        )
        return join.lineno < statement.lineno < last and not apart

    def _goes_back(self, name: ast.Name) -> bool:
        """Whether ``name`` stands in what is stored or returned, as a whole or in a tuple, list or dict."""
        child: ast.AST = name
        for parent in self.syntax.ancestors(name):
            match parent:
                case ast.Tuple() | ast.List() | ast.Dict():
                    child = parent
                case ast.Return():
                    return True
                case ast.Assign(targets=targets):
                    return child is not name or not all(isinstance(t, ast.Name) for t in targets)
                case ast.Call(func=ast.Attribute(attr="append")):
                    return True
                case _:
                    return False
        return False

    def _asks_for_none(self, name: ast.Name) -> bool:
        parent = self.syntax.parents[name]
        return isinstance(parent, ast.Compare) and all(is_none(c) for c in parent.comparators)

    def _is_length(self, d: Definition, names: list[ast.Name], others: object) -> bool:
        """Whether ``d`` is a size of what is kept, or of what is made of it in one step."""
        match d.value:
            case (
                ast.Call(func=ast.Attribute(value=ast.Name() as of, attr="size"))
                | ast.Subscript(value=ast.Attribute(value=ast.Name() as of, attr="shape"))
            ):
                return of in names or any(
                    m.name == of.id and m.value is not None and any(n in names for n in ast.walk(m.value))
                    for m in others if isinstance(m, Definition)  # type: ignore[attr-defined]
                )  # fmt: skip
        return False

    def _starts(self) -> Iterator[Edit]:
        """Where the input starts, as something that may be a tensor, in the functions that are given a cache."""
        for function in self.syntax.functions:
            if self.facts.compiled(function) and any(is_kept(a.arg) for a in function.args.args):
                for _, call in starts(function, self.syntax):
                    size = call.args[1].right  # type: ignore[attr-defined]
                    parts = [call.func, size, *(k.value for k in call.keywords), call.args[0]]
                    more = "".join(f", {k.arg}={{{i}}}" for i, k in enumerate(call.keywords, 2))
                    yield Replace(call, Code(f"{{0}}({{1}}{more}).add({{{len(parts) - 1}}})", tuple(parts)))

    # --- the loops ----------------------------------------------------------------------------------------------------

    def _loops(self, function: FunctionNode) -> Iterator[_Loop]:
        """The loops of ``function``, below a call that makes a cache, that hand it from call to call."""
        if self.facts.reached(function) or any(last_name(c.func) == "_with_room" for c in self._calls(function)):
            return
        for loop in (n for n in own_nodes(function) if isinstance(n, ast.For | ast.While)):
            for s in (n for n in ast.walk(loop) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)):
                assert isinstance(s.value, ast.Call)
                handed = {a.id for a in given(s.value) if isinstance(a, ast.Name) and is_kept(a.id)}
                for name in sorted(handed & _targets(s)):
                    first = self._first(loop, name, function, s)
                    dims = self._dims(s.value)
                    more = _turns(loop, first)
                    if first is not None and len(dims) == 1 and (more or self.facts.settings.capacity is not None):
                        yield _Loop(s.value, name, first, next(iter(dims)), more)

    def _calls(self, function: FunctionNode) -> list[ast.Call]:
        return [c for c in self.syntax.own(function, ast.Call) if isinstance(c, ast.Call)]

    def _first(self, loop: ast.stmt, name: str, function: FunctionNode, s: ast.Assign) -> ast.stmt | None:
        """The statement below which there is a cache: a call above the loop, or else the one in it."""
        bound = [n for n in own_nodes(function) if isinstance(n, ast.Assign) and name in _targets(n)]
        above = [n for n in bound if n.lineno < loop.lineno]
        called = [n for n in above if isinstance(n.value, ast.Call)]
        if len(bound) - len(above) != 1:
            return None
        return called[-1] if called else s if above else None

    def _dims(self, call: ast.Call) -> frozenset[int]:
        """Along which dimensions something grows in the files of what ``call`` calls; unknown: in this one."""
        called = self.callees.of(call)
        modules = {s.module for s in self.project.modules.values() for f in s.functions
                   if f"{s.module}.{f.qualname}" in called}  # fmt: skip
        return frozenset(
            dim for s in self.project.modules.values() if s.module in (modules or {self.module})
            for f in s.functions for dim in f.grows
        )  # fmt: skip

    def _making(self, loop: _Loop) -> Iterator[Edit]:
        room, parts = f"room={self.facts.settings.capacity}", tuple[ast.expr, ...]()
        if self.facts.settings.capacity is None and loop.more is not None:
            room, parts = "more={0}", (loop.more,)
        yield Insert(
            loop.first, (Code(f"{loop.name} = _with_room({loop.name}, {loop.dim}, {room})", parts),), after=True
        )
        named = self.callees.of(loop.call)
        if not named:
            named = [
                n for n, _ in self.project.functions() if n.startswith(f"{self.module}.") and n.endswith(".forward")
            ]
        called = [f for n in named if (f := self.project.function(n)) is not None and any(map(is_kept, f.positional))]
        for f in called[:1]:
            own = f.positional[1:] if f.positional[:1] == ("self",) else f.positional
            pairs = [*zip(own, loop.call.args, strict=False), *((k.arg, k.value) for k in loop.call.keywords)]
            for parameter, argument in pairs:
                if parameter in f.offsets and not isinstance(argument, ast.Constant):
                    yield Replace(argument, Code(f"_place({{0}}, {loop.name})", (argument,)))

    # --- the functions that are written -------------------------------------------------------------------------------

    def _why_not_here(self) -> str:
        if self.facts.scripted:
            return "this file is for TorchScript"
        defined = {s.name for s in (*self.syntax.functions, *self.syntax.by_type[ast.ClassDef])}
        named = self.syntax.names_in(self.syntax.tree) | defined
        for name, text in {**READING, **MAKING}.items():
            if name in named and not self.functions.is_here(self._spelled(text)):
                return f"`{name}` is something else here"
        return ""

    def _fix(self, edits: list[Edit], made: bool = False) -> Fix:
        """``edits`` with the functions that they call, and with ``made`` those that make room, above all that calls."""
        said = " ".join(_text(edit) for edit in edits)
        needed = {name: text for name, text in {**READING, **MAKING}.items() if f"{name}(" in said}
        if made or "_with_room" in needed or "_place" in needed:
            needed |= {name: MAKING[name] for name in ("_Kept", "_has_room", "_with_room")}
        texts = [self._spelled(text) for name, text in {**READING, **MAKING}.items() if name in needed]
        if texts := [text for text in texts if not self.functions.is_here(text)]:
            anchor, after = self.functions.anchor(list(self.syntax.functions))
            new = [Insert(anchor, (Code(_braced(text.rstrip("\n"))),), after=after) for text in texts]
            edits = [*new, *edits]
        return Fix(tuple(edits), Applicability.UNSAFE)

    def _spelled(self, text: str) -> str:
        at = self.syntax.tree
        return re.sub(r"\btorch\.\w+(?=\()", lambda name: self.facts.writing.spelling(name[0], at), text)


def _bound(d: Definition) -> Iterator[ast.expr]:
    """The expressions that ``d`` may bind as they are."""
    value, path = d.part
    if value is not None and not path:
        yield value
        if isinstance(value, ast.IfExp):
            yield from (value.body, value.orelse)


def _is_attention(call: ast.AST) -> bool:
    assert isinstance(call, ast.Call)
    name = last_name(call.func)
    dims = [k.value for k in call.keywords if k.arg == "dim"] + list(call.args[-1:])
    return name == "scaled_dot_product_attention" or (name == "softmax" and any(integer(d) == -1 for d in dims))


def _ends_at(index: ast.expr, names: set[str]) -> bool:
    """Whether ``index`` takes the first ``n`` of the last dimension, for an ``n`` of ``names``."""
    match index.elts[-1] if isinstance(index, ast.Tuple) and index.elts else index:
        case ast.Slice(lower=None, upper=ast.Name(id=name), step=None):
            return name in names
    return False


def _turns(loop: ast.For | ast.While, first: ast.stmt | None) -> ast.expr | None:
    """How many turns the loop makes, where that is a name, attribute or number that is known above it."""
    match loop:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[turns])) if first is not None:
            plain = isinstance(turns, ast.Name | ast.Attribute | ast.Constant | ast.BinOp)
            return turns if plain and not any(isinstance(n, ast.Call) for n in ast.walk(turns)) else None
    return None


def _targets(s: ast.Assign) -> set[str]:
    return {n.id for t in s.targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _text(edit: Edit) -> str:
    code = getattr(edit, "code", None)
    return " ".join(c.template for c in (code if isinstance(code, tuple) else (code,)) if c is not None)


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
