"""A rule that puts one piece of code in the place of another and calls that safe, whether it is or not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Code, Cost, Example, Finding, Fix, NearMiss, ReplaceStatements, Rule, Where


class Lie(Rule):
    """Statements of a function become others.

    What it does:
        As it is told.
    """

    code: ClassVar[str] = "FC903"
    name: ClassVar[str] = "lie"
    triggers: ClassVar[tuple[bytes, ...]] = (b"def ",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.FunctionDef,)
    where: ClassVar[Where] = Where.ANYWHERE
    invalid: ClassVar[tuple[Example, ...]] = ()
    valid: ClassVar[tuple[NearMiss, ...]] = ()
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def __init__(self, before: str, after: str) -> None:
        self._before, self._after = _statements(before), _statements(after)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        assert isinstance(node, ast.FunctionDef)
        found = _run(node.body, self._before)
        if found and not _run(node.body, self._after):
            code = tuple(Code(text.replace("{", "{{").replace("}", "}}")) for text in self._after)
            yield Finding(found[0], "a lie", Fix((ReplaceStatements(found, code),)))


def _run(body: list[ast.stmt], wanted: list[str]) -> tuple[ast.stmt, ...]:
    """The first neighbours in ``body`` that read like ``wanted``; none: empty."""
    runs = (tuple(body[start : start + len(wanted)]) for start in range(len(body)))
    return next((run for run in runs if [ast.unparse(statement) for statement in run] == wanted), ())


def _statements(text: str) -> list[str]:
    return [ast.unparse(statement) for statement in ast.parse(text).body]
