"""FC206: numbers of NumPy that a module keeps and computes sizes with."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Finding, Fix, Replace, Rule, Where
from rules.fc206_numpy_number.examples import INVALID, VALID
from rules.fc206_numpy_number.kept_numbers import KeptNumbers


class NumpyNumber(Rule):
    """``self.hop = np.prod(rates)``: a number of NumPy that a module keeps, and computes sizes with.

    What it does:
        Keeps the same number as one of Python: ``self.hop = np.prod(rates).item()``.

    Why it breaks compilation:
        In a graph, a number of NumPy is an array, and so is what is computed of it and a size: a padding, the bound of
        a ``range``, a comparison then reads data, and the graph breaks. ``capture_scalar_outputs`` makes some of these
        fail inside of Dynamo.

    Fix safety:
        Unsafe: the number is the same, but it and what is made of it alone are numbers of Python. Code far away may
        ask for what NumPy's alone have (a dtype, ``astype``, ``item``), make a tensor of that dtype
        (``torch.tensor(self.scale)``), divide by a zero without an error, or count on integers that wrap around. A
        reduction of a list with elements that are no numbers gives no number of NumPy. Refused where the file asks
        for an attribute of it, or the class assigns it again.

    References:
        PyTorch, "Data dependent operator" (graph break GB0033); codecs that pad to a multiple of their hop length.
    """

    code = "FC206"
    name = "numpy-number"
    triggers = (b"numpy",)
    listens_to = (ast.ClassDef,)
    where = Where.ANYWHERE
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the module ``node`` where compiled code computes with a number of NumPy that it keeps."""
        assert isinstance(node, ast.ClassDef)
        for kept in KeptNumbers(facts, node).found:
            message = f"`self.{kept.name}`: a number of NumPy is an array in the graph, as is what is computed of it"
            if kept.refused:
                yield Finding(kept.use, message, assumption=kept.refused)
            else:
                fix = Fix((Replace(kept.value, Code("{0}.item()", (kept.value,))),), Applicability.UNSAFE)
                granted = f"nobody asks `{kept.name}` for what only numbers of NumPy have or do, their dtype among it"
                yield Finding(kept.use, message, fix, granted)

    invalid = INVALID
    valid = VALID
