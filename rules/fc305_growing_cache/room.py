"""The edits that give what grows a buffer: where it is joined and read, where it is counted, and in the loops."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.own_functions import OwnFunctions
from patcher.facts.project.handed import is_given_one, mishandled
from patcher.facts.project.offsets import Offset
from patcher.facts.project.whole_reads import JOINED, Attention, Tail, WholeReads, dimension, joined, whole_reads
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.syntax.written import short
from patcher.rule import Applicability, Code, Edit, Fix, Insert, Replace
from rules.fc305_growing_cache.growth import Growing, Growth
from rules.fc305_growing_cache.lengths import Length, Lengths
from rules.fc305_growing_cache.loops import Loop, Loops
from rules.fc305_growing_cache.parts import Parts
from rules.fc305_growing_cache.room_text import MAKING, READING

#: What the code takes for granted once it is changed.
_GRANTED = (
    "batch, dtype and device of a cache stay what they are in its first call, no gradient flows through it, nobody "
    "keeps an earlier one or looks into it, and none gets longer than its room: that is an error"
)


@dataclass(frozen=True)
class Room:
    """A fix, and what it takes for granted; without a fix, why there is none."""

    fix: Fix | None
    told: str


class Rooms(Analysis):
    """Answers for one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.loops = facts.ask(Loops)
        self.lengths = facts.ask(Lengths)
        self.functions = facts.ask(OwnFunctions)
        self.growing = facts.ask(Growing)

    def of(self, function: FunctionNode, growths: Sequence[Growth]) -> Room:
        """Room for what grows in ``function``, made by the loops of its file that hand it on."""
        reads = self._reads(function, growths)
        reason = self._why_not_here() or reads.reason or self._why_not_all()
        if reason:
            return Room(None, reason)
        dim = next(iter({d for g in growths if (d := dimension(g.node)) is not None}))
        counted = self._counted(dim)
        if isinstance(counted, str):
            return Room(None, counted)
        edits: list[Edit] = []
        for growth in growths:
            first, second = joined(growth.node)
            edits.append(Replace(growth.node, Code(f"{JOINED}({{0}}, {{1}}, {dim})", (first, second))))
        edits += [Replace(name, Code("_whole({0})", (name,))) for name in reads.names]
        for tail in reads.tails:
            name = self._called(tail, function, edits)
            edits.append(Replace(tail.at, self._tail(tail, name, reads.names)))
        for seen in reads.attentions:
            name = self._called(seen, function, edits)
            if seen.scores:
                edits.append(Replace(seen.at, Code(f"_hide_empty({name}, {{0}})", (_read(seen.at, reads.names),))))
            else:
                edits.append(Replace(seen.at, Code(f"_attention_over({name})")))
        every = self.loops.found()
        left = [
            f"the loop in `{loop.function.name}` is left as it is, for {loop.reason}" for loop in every if loop.reason
        ]
        loops = [loop for loop in every if not loop.reason]
        if left and not loops:
            return Room(None, "; ".join(left))
        making = [*counted, *self._making(loops)]
        return Room(self._fix([*edits, *making], made=not loops), "; ".join([self._told(loops, dim), *left]))

    def in_loop(self, function: FunctionNode) -> Iterator[tuple[ast.Call, Room]]:
        """Room in the loops of ``function`` for what grows in other files."""
        for loop in self.loops.found():
            if loop.function is function:
                counted = self._counted(loop.dim)
                unknown = counted if isinstance(counted, str) else ""
                reason = self._why_not_here() or loop.reason or self._why_not_all() or unknown
                edits = [] if isinstance(counted, str) else [*counted, *self._making([loop])]
                yield loop.call, Room(None if reason else self._fix(edits), reason or self._told([loop], loop.dim))

    def _called(self, seen: Attention | Tail, function: FunctionNode, edits: list[Edit]) -> str:
        """What is kept is called so there, with an edit where it has to get a name of its own."""
        if seen.before is None:
            return seen.name
        name = self._free(function, f"kept_{seen.name}")
        edit = Insert(seen.before, (Code(f"{name} = {seen.name}"),))
        edits += [] if edit in edits else [edit]
        return name

    def _tail(self, tail: Tail, name: str, names: Sequence[ast.Name]) -> Code:
        index = tail.at.slice
        elements = index.elts if isinstance(index, ast.Tuple) else [index]
        rows = f"_last_places({name}, {{2}}, {{1}})"
        *others, _ = (rows if e is tail.part else _braced(ast.unparse(e)) for e in elements)
        total = _read(tail.total, names)
        parts = (tail.at.value, total, *((tail.size,) if tail.size is not None else ()))
        return Code(f"_as_wide({name}, {{0}}[{', '.join([*others, ':{1}'])}])", parts)

    # --- whether it can be done ---------------------------------------------------------------------------------------

    def _why_not_here(self) -> str:
        if self.facts.scripted:
            return "this file is for TorchScript"
        defined = {s.name for s in (*self.syntax.functions, *self.syntax.by_type[ast.ClassDef])}
        named = self.syntax.names_in(self.syntax.tree) | defined
        for name, text in {**READING, **MAKING}.items():
            if name in named and not self.functions.is_here(self._spelled(text)):
                return f"`{name}` is something else here"
        return ""

    def _reads(self, function: FunctionNode, growths: Sequence[Growth]) -> WholeReads:
        """How ``function`` reads what grows in it, or why that cannot have room."""
        if reason := self._why_not(growths):
            return WholeReads(reason=reason)
        return whole_reads([g.node for g in growths], self.facts.flow(function), self.syntax)

    def _why_not_all(self) -> str:
        """Why another function of this file could not bear room for what it is given."""
        for function in self.syntax.functions:
            growths = self.growing.of(function)
            reason = self._reads(function, growths).reason if growths else ""
            reason = reason or self.facts.ask(Parts).twice(function)
            handed = is_given_one(function) and self.facts.compiled(function)
            if not reason and handed and self.facts.ask(Parts).reaches(function):
                reason = mishandled(function, [g.node for g in growths], self.facts.flow(function), self.syntax)
            if reason:
                return f"{reason} (in `{self.syntax.qualname(function) or function.name}`)"
        return ""

    def _why_not(self, growths: Sequence[Growth]) -> str:
        if any(g.how == "listed" for g in growths):
            return "a list of tensors that is joined when it is read has no place for a buffer"
        for growth in growths:
            parts = joined(growth.node)
            if not parts or parts[1] is not growth.fresh:
                return f"`{short(growth.node)}` does not join what is new behind what is kept"
        dims = {dimension(g.node) for g in growths}
        if len(dims) > 1 or None in dims:
            return "it does not grow along one dimension that is written as a number"
        return ""

    def _counted(self, dim: int) -> list[Edit] | str:
        """What becomes of the places where compiled code counts what is kept; or why that cannot be done."""
        edits: list[Edit] = []
        for function in self.syntax.functions:
            if not self.facts.compiled(function):
                continue
            asked = self.lengths.asked(function, dim)
            uses, reason = self.lengths.starts(function, asked)
            if reason:
                return reason
            edits += [self._length(n) for n in asked]
            edits += [self._offset(u) for u in (*uses, *self.lengths.given(function))]
        return list(dict.fromkeys(edits))

    def _length(self, n: Length) -> Edit:
        if n.whole:
            return Replace(n.of, Code("_whole({0})", (n.of,)))
        return Replace(n.at, Code(f"_length_of({{0}}, {n.dim})", (n.of,)))

    def _offset(self, use: Offset) -> Edit:
        if isinstance(use.at, ast.Call):
            parts: list[ast.expr | Code] = [use.at.func, use.size, *(k.value for k in use.at.keywords), use.start]
            more = "".join(f", {k.arg}={{{i}}}" for i, k in enumerate(use.at.keywords, 2))
            return Replace(use.at, Code(f"{{0}}({{1}}{more}).add({{{len(parts) - 1}}})", tuple(parts)))
        index = use.at.slice
        elements = index.elts if isinstance(index, ast.Tuple) else [index]
        arange = self.facts.writing.spelling("torch.arange", use.at)
        places = ", ".join(
            f"{arange}({{1}}, device={{0}}.device).add({{2}})" if e is use.part else _braced(ast.unparse(e))
            for e in elements
        )
        return Replace(use.at, Code(f"{{0}}[{places}]", (use.at.value, use.size, use.start)))

    def _free(self, function: FunctionNode, name: str) -> str:
        taken = self.syntax.names_in(function)
        while name in taken:
            name += "_"
        return name

    # --- the loops ----------------------------------------------------------------------------------------------------

    def _making(self, loops: Iterable[Loop]) -> Iterator[Edit]:
        for loop in loops:
            room, parts = self._size(loop)
            if loop.part:
                room += f", part={_braced(repr(loop.part))}"
            for statement in loop.below:
                text = f"{loop.name} = _with_room({loop.name}, {loop.dim}, {room})"
                yield Insert(statement, (Code(text, parts),), after=True)
            for start in loop.starts:
                yield Replace(start, Code(f"_place({{0}}, {loop.name})", (start,)))

    def _size(self, loop: Loop) -> tuple[str, tuple[ast.expr, ...]]:
        if self.facts.settings.capacity is not None:
            return f"room={self.facts.settings.capacity}", ()
        return ("more={0}", (loop.more,)) if loop.more is not None else (f"room={loop.room}", ())

    def _told(self, loops: Sequence[Loop], dim: int) -> str:
        told = [_GRANTED]
        if any(loop.more is not None for loop in loops) and self.facts.settings.capacity is None:
            told.append("each turn of the loop adds one place")
        if not loops:
            call = f"cache = _with_room(cache, {dim}, room=...)"
            told.append(f"whoever calls it in a loop has to say `{call}` below the first call")
        if numbers := list(dict.fromkeys(n for loop in loops for n in loop.numbers)):
            told.append(f"{', '.join(numbers)} stays a number, of which CUDA graphs record each value")
        return "; ".join(told)

    # --- the functions that are written -------------------------------------------------------------------------------

    def _fix(self, edits: list[Edit], made: bool = False) -> Fix:
        """``edits`` with the functions that they call, and with ``made`` those that make room, above all that calls."""
        said = " ".join(_text(edit) for edit in edits)
        needed = {name: text for name, text in {**READING, **MAKING}.items() if f"{name}(" in said}
        if made or "_with_room" in needed or "_place" in needed:
            needed |= {name: MAKING[name] for name in ("_Kept", "_has_room", "_with_room")}
        texts = [text for name, text in {**READING, **MAKING}.items() if name in needed]
        texts = [self._spelled(text) for text in texts]
        if texts := [text for text in texts if not self.functions.is_here(text)]:
            anchor, after = self.functions.anchor(self._callers())
            new = [Insert(anchor, (Code(_braced(text.rstrip("\n"))),), after=after) for text in texts]
            edits = [*new, *edits]
        return Fix(tuple(edits), Applicability.UNSAFE)

    def _callers(self) -> list[ast.AST]:
        """All that may call these functions."""
        return list(self.syntax.functions)

    def _spelled(self, text: str) -> str:
        at = self.syntax.tree
        return re.sub(r"\btorch\.\w+(?=\()", lambda name: self.facts.writing.spelling(name[0], at), text)


def _read(e: ast.expr, names: Sequence[ast.Name]) -> ast.expr | Code:
    """``e``, with its ``names`` read as a whole: what an edit takes along gets no edits of its own."""
    if not any(n in names for n in ast.walk(e)):
        return e
    return Code(_braced(ast.unparse(_rebuilt(e, names))))


def _rebuilt(node: Any, names: Sequence[ast.Name]) -> Any:
    if isinstance(node, list):
        return [_rebuilt(n, names) for n in node]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.Name) and node in names:
        return ast.Call(func=ast.Name(id="_whole"), args=[node], keywords=[])
    return type(node)(**{field: _rebuilt(value, names) for field, value in ast.iter_fields(node)})


def _text(edit: Edit) -> str:
    code = getattr(edit, "code", None)
    return " ".join(c.template for c in (code if isinstance(code, tuple) else (code,)) if c is not None)


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
