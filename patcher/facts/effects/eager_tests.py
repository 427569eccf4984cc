"""Tests that say whether code is being compiled, and what they leave for eager execution alone."""

from __future__ import annotations

import ast

from patcher.facts.project.index import Project
from patcher.facts.syntax.tree import Syntax
from patcher.facts.tables import torch_api as api


class EagerTests:
    """Tests of one module."""

    def __init__(self, syntax: Syntax, project: Project | None = None, module: str = "") -> None:
        self.syntax = syntax
        self.project = project
        self.module = module

    def says_eager(self, test: ast.expr) -> bool:
        """Whether ``test`` is true only where nothing is compiled: ``not torch.compiler.is_compiling() and ...``."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.says_compiled(operand)
            case ast.BoolOp(op=ast.And(), values=values):
                return any(map(self.says_eager, values))
        return isinstance(test, ast.Call) and self.syntax.qualified(test.func) in api.TRACING_GUARDS

    def says_compiled(self, test: ast.expr) -> bool:
        """Whether ``test`` is false only where nothing is compiled: ``torch.compiler.is_compiling() or ...``."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.says_eager(operand)
            case ast.BoolOp(op=ast.Or(), values=values):
                return any(map(self.says_compiled, values))
            case ast.Call(func=func, args=[], keywords=[]):
                what = self.syntax.qualified(func)
                if what is None and isinstance(func, ast.Name):
                    what = f"{self.module}.{func.id}"
                if what in api.EAGER_GUARDS:
                    return True
                known = self.project.handed_on(what) if what is not None and self.project is not None else None
                return known is not None and known.asks_for_compiling
        return False

    def leaves_eager_out(self, test: ast.expr, outcome: bool) -> bool:
        """Whether only compiled code finds ``test`` to be ``outcome``: ``torch.compiler.is_compiling() and ...``."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.leaves_eager_out(operand, not outcome)
            case ast.BoolOp(op=op, values=values):
                some = isinstance(op, ast.And) is outcome
                return (any if some else all)(self.leaves_eager_out(v, outcome) for v in values)
        return outcome and isinstance(test, ast.Call) and self.says_compiled(test)

    def ends_compiled(self, value: ast.expr, op: ast.boolop) -> bool:
        """Whether compiled code does not get past ``value`` in a chain of ``and`` or ``or``."""
        return self.says_eager(value) if isinstance(op, ast.And) else self.says_compiled(value)

    def is_left_out(self, child: ast.AST, parent: ast.AST) -> bool:
        """Whether compiled code does not get to ``child``, a part of ``parent``, because of a test in that."""
        match parent:
            case ast.If(test=test, body=body):
                inside = child in body
            case ast.IfExp(test=test, body=taken):
                inside = child is taken
            case ast.BoolOp(op=op, values=values):
                before = values[: values.index(child)] if isinstance(child, ast.expr) else []
                return any(self.ends_compiled(v, op) for v in before)
            case _:
                return False
        if child is test:
            return False
        return self.says_eager(test) if inside else self.says_compiled(test)


def says_eager(test: ast.expr, syntax: Syntax) -> bool:
    """As `EagerTests.says_eager`, for PyTorch's own functions."""
    return EagerTests(syntax).says_eager(test)


def says_compiled(test: ast.expr, syntax: Syntax) -> bool:
    """As `EagerTests.says_compiled`, for PyTorch's own functions."""
    return EagerTests(syntax).says_compiled(test)
