"""What integer state in tensors becomes as Python integers: its forms, and the steps of the change."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass


class Form(enum.Enum):
    """How an attribute holds integers in tensors.

    ``NUMBER``: a 0-d tensor, which becomes an int. ``ONE``: a tensor of shape (1,), which becomes a list of one int.
    ``ROW``: a tensor of shape (n,), ``LIST``: a Python list of 0-d tensors; both become a list of n ints.
    """

    NUMBER = "number"
    ONE = "one"
    ROW = "row"
    LIST = "list"


#: Those that have several elements.
ROWS = (Form.ROW, Form.LIST)
#: Operators that give integers for integers, of tensors and of Python alike.
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
#: Methods that read a tensor on the host, and that count its elements.
READS = frozenset({"item", "tolist"})
COUNTS = frozenset("numel nelement __len__".split())
#: Methods of tensors that take 0-d integer tensors for numbers, and give the same for numbers.
TAKE_NUMBERS_METHODS = frozenset("narrow narrow_copy new_zeros new_ones new_empty".split())


#: What happens at one place. The parts of a `Change` are given in this order.
#: Reading: ``READ`` (tensor), ``FIRST`` (tensor of one), ``LENGTH`` (row), ``ITEMS``, ``LARGEST``, ``SMALLEST``,
#: ``TOTAL`` (row), ``INT`` (number), ``BOOL`` (comparison). Making: ``VALUE`` (int), ``REPEAT`` (int, count),
#: ``COUNTED`` (count), ``ALIKE`` (row, int). Writing: ``SET`` (place, int), ``ADD`` and ``SUBTRACT`` (place, int),
#: ``SET_ALL`` (row, int), ``ADD_ALL`` and ``SUBTRACT_ALL`` (row, int).
#: ``DROP``: the statement has nothing left to do. ``TYPE``: an annotation (text).
Step = enum.Enum(
    "Step",
    "READ FIRST LENGTH ITEMS LARGEST SMALLEST TOTAL VALUE REPEAT COUNTED ALIKE INT BOOL SET ADD SUBTRACT SET_ALL "
    "ADD_ALL SUBTRACT_ALL DROP TYPE",
)

#: Python's own functions that the new code of a step calls.
CALLED = {
    Step.LENGTH: ("len",),
    Step.ITEMS: ("list",),
    Step.LARGEST: ("max",),
    Step.SMALLEST: ("min",),
    Step.TOTAL: ("sum",),
    Step.COUNTED: ("list", "range"),
    Step.ALIKE: ("len",),
    Step.INT: ("int",),
    Step.SET_ALL: ("len",),
    Step.TYPE: ("int", "list"),
}


@dataclass(frozen=True, eq=False)
class Change:
    """``target`` (an expression or a whole statement) becomes ``step`` of ``parts``: expressions of the source or text.

    A part may hold targets of further changes.
    """

    step: Step
    target: ast.expr | ast.stmt
    parts: tuple[ast.expr | str, ...] = ()


class RefusedError(Exception):
    """Why the state has to stay in tensors, and where that is seen."""

    def __init__(self, node: ast.AST, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


class MeantError(RefusedError):
    """The state is in tensors on purpose: graphs that are captured compute with it."""


class StrangeError(RefusedError):
    """Integers in a tensor that is made in a way, or has a shape, that is none of the forms."""
