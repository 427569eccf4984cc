"""Checks of numbers that the host knows: a comparison with them is one of Python's own, and reads no tensor."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.numbers.known_numbers import Known, KnownNumbers
from patcher.facts.values.sizes import Sizes
from patcher.rule import Code, Edit, Replace

_ORDER = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class KnownTests(Analysis):
    """Comparisons of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.numbers = facts.ask(KnownNumbers)
        self.sizes = facts.ask(Sizes)

    def edit(self, test: ast.expr) -> Edit | None:
        """What makes ``test`` one of Python numbers, when it compares a tensor of known integers with an integer."""
        match test:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, _ORDER):
                for tensor, other in ((left, right), (right, left)):
                    known = self.numbers.scalar(tensor)
                    if known is not None and self._is_spelled(known) and self._is_integer(other, tensor, known):
                        return Replace(tensor, Code(known.template, known.parts))
        return None

    def _is_spelled(self, known: Known) -> bool:
        return known.builtin is None or self.syntax.is_builtin(ast.Name(known.builtin))

    def _is_integer(self, other: ast.expr, tensor: ast.expr, known: Known) -> bool:
        """Whether ``other`` is an integer where the check passes and its function returns.

        A tensor of integers is compared with a float as a float, and not all digits are left.
        """
        if self.sizes.is_integer(other):
            return True
        return isinstance(other, ast.Name) and known.each and self._is_size_below(other, tensor, known)

    def _is_size_below(self, name: ast.Name, tensor: ast.expr, known: Known) -> bool:
        """Whether the next statement makes a tensor of that size: nothing else than an integer gets past it."""
        statement = self.syntax.statement_of(tensor)
        block = self.syntax.block_of(statement)
        below = block[block.index(statement) + 1 :][:1]
        if not below or not isinstance(below[0], (ast.Assign, ast.Expr, ast.Return)):
            return False
        for use in (n for n in ast.walk(below[0]) if isinstance(n, ast.Name) and n.id == name.id):
            if self.inference.definitions(use) == self.inference.definitions(name) and self._is_size(use, known):
                return True
        return False

    def _is_size(self, use: ast.Name, known: Known) -> bool:
        """Whether ``use``, with integers added, is a size that ``new_zeros`` is given whenever its statement runs."""
        child: ast.AST = use
        parent = self.syntax.parents[child]
        while isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub)):
            other = parent.right if child is parent.left else parent.left
            if not self.sizes.is_count(other):
                return False
            child, parent = parent, self.syntax.parents[parent]
        match parent:
            case ast.Call(func=ast.Attribute(attr="new_zeros" | "new_ones" | "new_empty"), args=args) if child in args:
                child = parent
            case _:
                return False
        for parent in self.syntax.ancestors(child):
            match parent:
                case ast.stmt():
                    return True
                case ast.Call() | ast.Attribute() | ast.Tuple() | ast.List() | ast.BinOp():
                    pass
                case ast.ListComp(elt=elt, generators=[ast.comprehension(iter=source, ifs=[])]) if child is elt:
                    if ast.dump(source) != ast.dump(known.parts[2]):
                        return False  # what was looked for the largest of has at least one
                case _:
                    return False
            child = parent
        return False
