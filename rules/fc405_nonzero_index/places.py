"""Places where a condition holds, as ``nonzero``, ``argwhere`` and the one-argument ``torch.where`` list them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.values import Rank

_LISTING = frozenset({"torch.nonzero", "torch.argwhere"})
#: What makes a vector of a column, with the arguments that do so. ``squeeze()`` may leave no dimension.
_FLAT: dict[str, list[list[str]]] = {
    "flatten": [[]],
    "ravel": [[]],
    "squeeze": [[], ["-1"], ["1"]],
    "view": [["-1"]],
    "reshape": [["-1"]],
}


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
        named = {k.arg: k.value for k in call.keywords}
        flag = named.get("as_tuple", ast.Constant(False))
        if named.keys() - {"as_tuple"} or not isinstance(flag, ast.Constant):
            return None
        what, args = self.syntax.qualified(call.func), call.args
        apart = bool(flag.value)
        if what == "torch.where" and len(args) == 1:
            return self._flattened(call, args[0], True)
        if what in _LISTING and len(args) == 1:
            return self._flattened(call, args[0], apart)
        if what is None and isinstance(call.func, ast.Attribute) and call.func.attr in ("nonzero", "argwhere"):
            condition = call.func.value
            return self._flattened(call, condition, apart) if not args and self._tensor(condition) else None
        return None

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
            case ast.Call(func=ast.Name(id="len") as func, args=[_]) if not self.inference.is_rebound(func):
                return outer
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

    def _tensor(self, e: ast.expr) -> bool:
        return self.presumed.of(e).is_tensor

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
