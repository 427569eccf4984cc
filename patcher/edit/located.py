"""The concrete nodes of some statements, by the nodes of the syntax tree that Python has of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from patcher.edit.spans import EditError, Span, span_of
from patcher.files.lines import form_feed, split_lines


class Located:
    """Some whole statements of a module, whose first line is the module's line ``first`` (from 1).

    ``length``: how long a new line may be.
    """

    def __init__(self, text: str, first: int, length: int) -> None:
        self.offset = first - 1
        wrapper = MetadataWrapper(_without_header(cst.parse_module(text)), unsafe_skip_copy=True)
        self.module = wrapper.module
        self.line_length = length
        self.lines = split_lines(text)
        self.spans: dict[Span, list[cst.CSTNode]] = {}
        self.calls: dict[cst.CSTNode, Span] = {}
        for node, where in wrapper.resolve(PositionProvider).items():
            key = (where.start.line, where.start.column, where.end.line, where.end.column)
            self.spans.setdefault(key, []).append(node)
            if isinstance(node, cst.Call):
                self.calls[node] = key
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        stack: list[cst.CSTNode] = [self.module]
        while stack:
            node = stack.pop()
            for child in node.children:
                self.parents[child] = node
                stack.append(child)

    def _characters(self, line: int, column: int) -> int:
        text = self.lines[line - 1]
        characters = column if text.isascii() else len(text.encode()[:column].decode())
        return characters - len(form_feed(text))  # which LibCST does not count

    def span(self, node: ast.AST) -> Span:
        """Where ``node`` stands in this text, columns in characters."""
        a, b, c, d = span_of(node)
        a, c = a - self.offset, c - self.offset
        return a, self._characters(a, b), c, self._characters(c, d)

    def find(self, node: ast.AST, kind: type[Any]) -> Any:
        """The concrete node of that ``kind`` for ``node``."""
        span = self.span(node)
        for candidate in self.spans.get(span, ()):
            if isinstance(candidate, kind):
                return candidate
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for key, nodes in self.spans.items():
                if key[2:] == span[2:]:
                    for candidate in nodes:
                        if isinstance(candidate, kind) and candidate.name.value == node.name:
                            return candidate
        raise EditError(f"no {kind.__name__} at line {span[0]}, column {span[1]}")

    def expression(self, node: ast.expr) -> cst.BaseExpression:
        """The concrete expression for ``node``."""
        here = (n for n in self.spans.get(self.span(node), ()) if isinstance(n, cst.BaseExpression))
        if isinstance(node, ast.Tuple) and node.elts and next(here, None) is None:
            element = self.expression(node.elts[0])  # the brackets belong to the tuple in one tree, not in the other
            around = (self.parents[element], self.parents[self.parents[element]])
            if (whole := next((n for n in around if isinstance(n, cst.Tuple)), None)) is not None:
                return whole
        found = self.find(node, cst.BaseExpression)
        assert isinstance(found, cst.BaseExpression)
        return found

    def line(self, node: ast.stmt) -> cst.CSTNode:
        """The statement line or compound statement of ``node``."""
        span = self.span(node)
        for candidate in self.spans.get(span, ()):
            if isinstance(candidate, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                return candidate
        for candidate in self.spans.get(span, ()):
            if isinstance(candidate, cst.BaseSmallStatement):
                line = self.parents[candidate]
                if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
                    return line
                raise EditError(f"line {span[0]} holds several statements")
        found = self.find(node, cst.BaseCompoundStatement)
        assert isinstance(found, cst.CSTNode)
        return found

    def place(self, node: ast.stmt) -> cst.CSTNode:
        """As ``line``; for a statement that stands behind the colon of its block, that whole block."""
        for candidate in self.spans.get(self.span(node), ()):
            block = self.parents[candidate] if isinstance(candidate, cst.BaseSmallStatement) else None
            if isinstance(block, cst.SimpleStatementSuite) and len(block.body) == 1:
                return block
        return self.line(node)

    def next_line(self, line: cst.CSTNode) -> cst.CSTNode | None:
        """The statement below ``line`` in its block."""
        body = getattr(self.parents[line], "body", ())
        body = body if isinstance(body, Sequence) else ()  # an ``elif`` is alone
        at = next((i for i, other in enumerate(body) if other is line), len(body))
        return body[at + 1] if at + 1 < len(body) else None

    def is_in_class(self, statement: cst.CSTNode) -> bool:
        """Whether a statement stands in the body of a class."""
        return isinstance(self.parents.get(self.parents[statement]), cst.ClassDef)

    def indent(self, node: cst.CSTNode) -> int:
        """How far the lines of ``node`` are indented, in characters."""
        depth = 0
        parent: cst.CSTNode | None = node
        while parent is not None:
            if isinstance(parent, cst.IndentedBlock):
                depth += len(parent.indent if parent.indent is not None else self.module.default_indent)
            parent = self.parents.get(parent)
        return depth


def _without_header(module: cst.Module) -> cst.Module:
    """``module`` with the comments at its top as those of its first statement."""
    first = next(iter(module.body), None)
    if first is None or not any(line.comment for line in module.header):
        return module
    above = first.with_changes(leading_lines=[*module.header, *first.leading_lines])
    return module.with_changes(header=(), body=[above, *module.body[1:]])
