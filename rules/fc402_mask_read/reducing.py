"""What a mask selects, reduced to one number: by a sum or mean, also of the name it gets, or by a loss of a pair."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from patcher.facts.analysis import Analysis
from patcher.facts.masks.masked_reads import MaskedRead, MaskedReads

#: Losses by element, of PyTorch, and what both sides are filled with where they are to add nothing.
_PAIRS = {
    "mse_loss": ("0", "0"),
    "l1_loss": ("0", "0"),
    "smooth_l1_loss": ("0", "0"),
    "huber_loss": ("0", "0"),
    "binary_cross_entropy": ("0", "0"),
    "binary_cross_entropy_with_logits": ("-1e4", "0"),
}
_CLASSES = "cross_entropy"
#: Keywords of these losses that change what each element adds, and not how many there are.
_KEPT = frozenset("beta delta label_smoothing pos_weight".split())


@dataclass(frozen=True)
class SelectedLoss:
    """A loss of PyTorch, ``call``, of what one mask selects of two tensors.

    ``fills``: what fills the others; None for classes, which are ignored then. ``reduction``: "mean" or "sum".
    ``ignored``: the class that is left out anyway.
    """

    call: ast.Call
    reads: tuple[MaskedRead, MaskedRead]
    fills: tuple[str, str] | None
    reduction: str
    ignored: str = "-100"


class Reducing(Analysis):
    """What becomes of the reads of one module."""

    def named(self, read: MaskedRead) -> tuple[ast.Assign, ast.Call, str] | None:
        """The assignment of ``read`` to a name, and the ``sum`` or ``mean`` that alone reads that name."""
        statement = self.syntax.parents[read.node]
        match statement:
            case ast.Assign(targets=[ast.Name() as target]):
                readers = self.readers(target) or []
            case _:
                return None
        if len(readers) != 1 or len(self.inference.definitions(readers[0])) != 1:
            return None
        found = self.facts.ask(MaskedReads).reduced(replace(read, node=readers[0]))  # type: ignore[arg-type]
        if found is None or found[1] not in ("sum", "mean"):
            return None
        return statement, *found

    def loss_of(self, node: ast.expr) -> SelectedLoss | None:
        """The loss that ``node`` is an argument of, with another one that the same mask selects."""
        call = self.syntax.parents[node]
        call = self.syntax.parents[call] if isinstance(call, ast.keyword) else call
        name = (self.syntax.qualified(call.func) or "") if isinstance(call, ast.Call) else ""
        package, _, name = name.rpartition(".")
        if not isinstance(call, ast.Call) or package != "torch.nn.functional" or name not in {*_PAIRS, _CLASSES}:
            return None
        given = [*call.args, *(k.value for k in call.keywords if k.arg in ("input", "target"))]
        first, second = map(self._read, given) if len(given) == 2 else (None, None)
        if first is None or second is None or not _alike(first, second):
            return None
        keywords = {k.arg: k.value for k in call.keywords if k.arg not in ("input", "target")}
        reduction, ignored = keywords.pop("reduction", None), keywords.pop("ignore_index", None)
        kept = _KEPT | {"weight"} if name == _CLASSES else _KEPT
        if not keywords.keys() <= kept or not isinstance(reduction, ast.Constant | None):
            return None
        how = reduction.value if reduction is not None else "mean"
        if how not in ("mean", "sum") or (ignored is not None and name != _CLASSES):
            return None
        if name == _CLASSES and not (isinstance(first.node, ast.Subscript) and first.first):
            return None
        return SelectedLoss(call, (first, second), _PAIRS.get(name), how, ast.unparse(ignored) if ignored else "-100")

    def _read(self, e: ast.expr) -> MaskedRead | None:
        if not isinstance(e, (ast.Subscript, ast.Call)):
            return None
        read = self.facts.ask(MaskedReads).of(e)
        return read if read is not None and read.sure and (read.first or isinstance(e, ast.Call)) else None


def _alike(a: MaskedRead, b: MaskedRead) -> bool:
    return type(a.node) is type(b.node) and ast.unparse(a.mask) == ast.unparse(b.mask)
