"""Where compiled code asks how long what it was given is already, to know where its input starts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.project.offsets import Offset, offset_parameters, offsets
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.syntax.written import all_parameters, integer, short
from patcher.facts.tables.wording import words
from rules.fc305_growing_cache.places import EARLIER, KEPT, KEYS, VALUES, Places


@dataclass(frozen=True)
class Length:
    """``of.size(dim)``, or ``of.shape[dim]``, as ``at`` has it; ``whole``: another size than what grows."""

    at: ast.expr
    of: ast.expr
    dim: int
    whole: bool


class Lengths(Analysis):
    """Answers for one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.places = facts.ask(Places)

    def asked(self, function: FunctionNode, dim: int) -> list[Length]:
        """The sizes that ``function`` asks of parts of what it is given, where something of it grows along ``dim``."""
        return [n for e in (*self.syntax.own(function, ast.Call), *self.syntax.own(function, ast.Subscript))
                if (n := self._of(e, dim)) is not None]  # fmt: skip

    def _of(self, e: ast.expr, dim: int) -> Length | None:
        match e:
            case ast.Call(func=ast.Attribute(value=of, attr="size"), args=[index]):
                asked = integer(index)
            case ast.Subscript(value=ast.Attribute(value=of, attr="shape"), slice=index):
                asked = integer(index)
            case _:
                return None
        if asked is None or not any(
            isinstance(p.root, ast.arg) and p.steps and all(s.startswith("[") for s in p.steps)
            and p.words & (KEPT | EARLIER | KEYS | VALUES) for p in self.places.of(of)
        ):  # fmt: skip
            return None
        grown = asked == dim or ((asked < 0) != (dim < 0) and abs(asked) + abs(dim) in (3, 4))
        return Length(e, of, asked, not grown)

    def starts(self, function: FunctionNode, lengths: list[Length]) -> tuple[list[Offset], str]:
        """What is done with these lengths: starts of ``arange`` and slices, or a reason why that is not all."""
        found: list[Offset] = []
        for length in lengths:
            if length.whole:
                continue
            named = [d for d in self.facts.flow(function).by_node.values() if length.at in _results(d)]
            if not named:
                return [], f"`{short(self.syntax.statement_of(length.at))}` counts what is kept"
            for d in named:
                uses = offsets(self.facts.flow(function).uses.get(d, ()), self.syntax)
                if uses is None or d.name in self.facts.flow(function).captured:
                    return [], f"`{d.name}`, which counts what is kept, is used for more than where something starts"
                found += uses
        return found, ""

    def given(self, function: FunctionNode) -> list[Offset]:
        """The uses of parameters that only say where something starts, beside one for what is kept."""
        flow = self.facts.flow(function)
        names = {w for p in all_parameters(function.args) for w in words(p.arg)}
        if not names & (KEPT | EARLIER):
            return []
        named = offset_parameters(function, self.syntax)
        own = [d for d in flow.by_node.values() if d.how == "parameter" and d.name in named]
        return [use for d in own for use in offsets(flow.uses.get(d, ()), self.syntax) or ()]


def _results(d: Definition) -> Iterator[ast.expr]:
    value, path = d.part
    todo = [value] if d.how == "assign" and value is not None and not path else []
    while todo:
        e = todo.pop()
        yield e
        if isinstance(e, ast.IfExp):
            todo += [e.body, e.orelse]
