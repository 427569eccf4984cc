"""Functions that a fix writes into the file that it changes: whether they are there, and where they are put."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patcher.facts.analysis import Analysis

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

_IMPORTS = (ast.Import, ast.ImportFrom)


class OwnFunctions(Analysis):
    """Answers for one module."""

    def known(self, name: str, nodes: Iterable[ast.AST]) -> str | None:
        """What the function ``name`` is called at all ``nodes``, where the file has or imports one of that name."""
        if any(isinstance(s, ast.FunctionDef) and s.name == name for s in self.syntax.functions):
            return name
        at_hand = [{n for n, what in self.facts.writing.at_hand(at) if what.endswith(f".{name}")} for at in nodes]
        return min(set.intersection(*at_hand), default=None) if at_hand else None

    def is_here(self, text: str) -> bool:
        """Whether the file has, at its top, the function or class that ``text`` is, as it is."""
        wanted = ast.dump(ast.parse(text).body[0])
        return any(isinstance(s, _DEFINITIONS) and ast.dump(s) == wanted for s in self.syntax.tree.body)

    def anchor(self, nodes: Iterable[ast.AST]) -> tuple[ast.stmt, bool]:
        """The statement that new functions are put before, or after, to be above all ``nodes`` that may call them."""
        tops: list[ast.stmt] = []
        for node in nodes:
            around = [p for p in (node, *self.syntax.ancestors(node)) if isinstance(p, _DEFINITIONS)]
            tops.append(around[-1] if around else self._at_top(node))
        first = min(tops, key=lambda s: s.lineno)
        if not isinstance(first, _DEFINITIONS):
            return self._in_script(first)
        blocks = [self.syntax.block_of(s) for s in tops]
        return (first if all(b is blocks[0] for b in blocks) else self._at_top(first)), False

    def _in_script(self, first: ast.stmt) -> tuple[ast.stmt, bool]:
        """As `anchor`, above ``first``, which runs when the file is: by its functions, or else below its imports."""
        body = self.syntax.tree.body
        imports = [i for i, s in enumerate(body) if isinstance(s, _IMPORTS) and s.lineno < first.lineno]
        if not imports:
            return first, False
        last = body[imports[-1]]
        below = body[imports[-1] + 1 : body.index(first)]
        if (function := next((s for s in below if isinstance(s, _DEFINITIONS)), None)) is not None:
            return function, False
        apart = not below or below[0].lineno > (last.end_lineno or last.lineno) + 1
        return (last, True) if apart else (first, False)

    def _at_top(self, node: ast.AST) -> ast.stmt:
        """The statement at the top of the file that is or holds ``node``."""
        return next(
            s for s in (node, *self.syntax.ancestors(node)) if isinstance(s, ast.stmt) and s in self.syntax.tree.body
        )
