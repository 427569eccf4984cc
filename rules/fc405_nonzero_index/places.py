"""Places where a condition holds, as ``nonzero``, ``argwhere`` and the one-argument ``torch.where`` list them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.masks.listed import listed
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.values.types import Rank

#: What makes a vector of a column, with the arguments that do so. ``squeeze()`` may leave no dimension.
_FLAT: dict[str, list[list[str]]] = {
    "flatten": [[]],
    "ravel": [[]],
    "squeeze": [[], ["-1"], ["1"]],
    "view": [["-1"]],
    "reshape": [["-1"]],
}

#: Methods and attributes that arrays of NumPy have as well.
_OF_ARRAYS = frozenset(
    "all any argmax argmin argsort clip conj cumprod cumsum diagonal dot flatten imag item max mean min ndim nonzero "
    "prod ravel real repeat reshape resize round shape size sort squeeze std sum swapaxes take trace transpose var "
    "view T dtype".split()
)


@dataclass(frozen=True)
class Places:
    """``whole`` lists the places where ``condition`` is not zero.

    ``apart``: as a tuple with a tensor for each dimension, not as one tensor with a row for each place. ``flat``: as
    one list of the places along the first dimension.
    """

    whole: ast.expr
    condition: ast.expr
    apart: bool
    flat: bool


class PlaceLists(Analysis):
    """Such expressions of one module, and what becomes of them."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.masked_reads = facts.ask(MaskedReads)

    def of(self, call: ast.Call) -> Places | None:
        """What ``call``, and what is done to flatten it, list; None when it is no such call."""
        found = listed(call, self.syntax)
        if found is None or (self.syntax.qualified(call.func) is None and not self.presumed.of(found[0]).is_tensor):
            return None
        return self._flattened(call, *found)

    def subscripts(self, places: Places) -> list[ast.Subscript] | None:
        """What it is the whole index of, by itself or by a name that is nothing else; None when it goes elsewhere."""
        readers = self.masked_reads.uses(places.whole)
        found = []
        for e in readers if readers is not None else [places.whole]:
            parent = self.syntax.parents[e]
            if not isinstance(parent, ast.Subscript) or parent.slice is not e:
                return None
            found.append(parent)
        return found or None

    def count(self, places: Places) -> ast.expr | None:
        """The expression around it that says how many places there are."""
        if places.apart != places.flat and (places.apart or not self._column(places)):
            return None
        outer = self.syntax.parents[places.whole]
        above = self.syntax.parents[outer]
        match outer:
            case ast.Call(args=[_]) if self.syntax.builtin(outer) == "len":
                return outer if places.flat or places.apart or self._is_no_array(places) else None
            case ast.Attribute(attr="shape") if isinstance(above, ast.Subscript):
                return above if ast.unparse(above.slice) == "0" else None
            case ast.Attribute(attr="size") if isinstance(above, ast.Call):
                return above if [ast.unparse(a) for a in above.args] == ["0"] else None
            case ast.Attribute(attr="numel" | "nelement") if isinstance(above, ast.Call) and places.flat:
                return above if places.apart or self.one_dimension(places) else None
        return None

    def one_dimension(self, places: Places) -> bool:
        """Whether the condition is known to have one dimension."""
        return self.presumed.of(places.condition).rank == Rank(None, 1)

    def _column(self, places: Places) -> bool:
        """Whether a list that was made flat has one element for each place."""
        if isinstance(places.whole, ast.Subscript):
            return True
        by_name = ast.unparse(places.whole).endswith(".squeeze()")  # of one place, that has no dimension and no length
        return self.one_dimension(places) and not by_name

    def _is_no_array(self, places: Places) -> bool:
        """Whether the parameters in ``c.nonzero()`` are used as no array of NumPy can be, which has ``nonzero`` too."""
        call = places.whole
        if not isinstance(call, ast.Call) or self.syntax.qualified(call.func) is not None:
            return True
        if isinstance(call.func, ast.Attribute) and call.func.attr != "nonzero":
            return True
        names = (n for n in self.syntax.subtree(places.condition) if isinstance(n, ast.Name))
        return all(map(self._used_as_no_array, (d for n in names for d in self.inference.definitions(n))))

    def _used_as_no_array(self, d: Definition) -> bool:
        function = self.syntax.parents[self.syntax.parents[d.node]] if d.how == "parameter" else None
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return d.how != "parameter"
        for use in self.flow_of(function).uses.get(d, ()):
            parent = self.syntax.parents[use]
            while isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare)):
                parent = self.syntax.parents[parent]
            of_array = isinstance(parent, ast.Attribute) and parent.attr in _OF_ARRAYS
            taken = isinstance(parent, ast.Call) and self.syntax.qualified(parent.func) == "torch.where"
            if not of_array and (taken or self.inference.is_tensor_use(use)):
                return True
        return False

    def _flattened(self, call: ast.Call, condition: ast.expr, apart: bool) -> Places:
        parent = self.syntax.parents[call]
        if isinstance(parent, ast.Subscript) and parent.value is call:
            picked = ast.unparse(parent.slice)
            if picked == ("0" if apart else ":, 0"):
                return Places(parent, condition, apart, flat=True)
        if isinstance(parent, ast.Attribute) and parent.attr in _FLAT and not apart:
            outer = self.syntax.parents[parent]
            if isinstance(outer, ast.Call) and [ast.unparse(a) for a in outer.args] in _FLAT[parent.attr]:
                return Places(outer, condition, apart, flat=not outer.keywords)
        return Places(call, condition, apart, flat=False)
