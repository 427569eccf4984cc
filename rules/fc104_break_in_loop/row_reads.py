"""Reads of one row of a tensor for each turn of a loop, which could be one read of all of it above the loop."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.tables import torch_api as api
from patcher.facts.values.certainty import Certainty
from patcher.facts.zones.host_reads import HostRead

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class RowRead:
    """``node``, a call, reads ``tensor[index]`` for every ``index`` of the loop; ``indices``: it and the further ones.

    ``certain``: whether ``tensor`` is one by what is done with it; a list of tensors would be indexed just as well.
    """

    node: ast.Call
    tensor: ast.Name
    indices: tuple[ast.expr, ...]
    certain: bool = True


class RowReads(Analysis):
    """The loops of one module."""

    def of(self, loop: ast.For | ast.AsyncFor | ast.While, reads: tuple[HostRead, ...]) -> list[RowRead] | str:
        """What ``reads``, all those in ``loop``, read; or why one of them has to stay where it is."""
        function = self.syntax.function_of(loop)
        if not isinstance(loop, ast.For) or function is None:
            return "it is no loop over a range"
        counter = self._counter(loop)
        if counter is None:
            return "it is no loop over a range"
        if self.facts.scripted:
            return "`torch.jit.script`, used in this file, takes no list whose type it cannot tell"
        found: list[RowRead] = []
        for read in reads:
            row = self._iterated(read.node, loop) or self._row(read.node, counter)
            if isinstance(row, str):
                return row
            found.append(row)
        again = next((r for r in found if not self._is_taken_once(r, found, loop)), None)
        if again is not None:
            return f"the list of a row of `{again.tensor.id}` would be the same one each time it is taken"
        unchanged = self.facts.ask(Unchanged)
        for r in found:
            for part in (r.tensor, r.indices[0]):
                since = loop.iter if part is r.tensor else loop
                if isinstance(getattr(part, "ctx", None), ast.Store):
                    continue  # the counter, of which `_iterated` has made sure
                if reason := unchanged.why_changed(part, since, r.node):
                    return reason
            if reason := unchanged.why_written(r.tensor, [loop.iter]):  # which is evaluated below the new list
                return reason
        return found

    def _counter(self, loop: ast.For) -> str | None:
        """The name that counts the turns."""
        match loop.target, loop.iter:
            case ast.Name(id=name), ast.Call(func=ast.Name(id="range") as f) if self.syntax.is_builtin(f):
                return name
            case ast.Tuple(elts=[ast.Name(id=name), _]), ast.Call(
                func=ast.Name(id="enumerate") as f, args=[_], keywords=[]
            ):
                return name if self.syntax.is_builtin(f) else None
        return None

    def _iterated(self, e: ast.expr, loop: ast.For) -> RowRead | None:
        """``row.tolist()`` in ``for i, row in enumerate(tensor)``, where the row is used for nothing else."""
        match loop.target, loop.iter, e:
            case (
                ast.Tuple(elts=[ast.Name() as i, ast.Name() as target]),
                ast.Call(args=[ast.Name() as held]),
                ast.Call(func=ast.Attribute(value=ast.Name() as row, attr="tolist"), args=[], keywords=[]),
            ) if row.id == target.id and self.inference.of(held).is_tensor:
                stored = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == i.id]
                counts = self.readers(i) is not None and all(isinstance(n.ctx, ast.Load) for n in stored)
                taken = {d.node for d in self.inference.definitions(row)} == {target}
                if counts and taken and self.readers(target) == [row]:
                    return RowRead(e, held, (i,), self.facts.ask(Certainty).is_used(held))
        return None

    def _row(self, e: ast.expr, counter: str) -> RowRead | str:
        reason = f"`{ast.unparse(e)}` is not a row of one tensor"
        match e:
            case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Name() as held, slice=index), attr=how)):
                indices = tuple(index.elts) if isinstance(index, ast.Tuple) else (index,)
            case _:
                return reason
        value = self.inference.of(held)
        first, *others = indices
        if how not in api.HOST_READS - {"numpy"} or not value.is_tensor:
            return reason
        if not isinstance(first, ast.Name) or first.id != counter:
            return reason
        if not all(isinstance(o, ast.Constant) and type(o.value) is int for o in others):
            return reason
        whole = value.rank is not None and value.rank.base is None and value.rank.offset == len(indices)
        if how == "item" and not whole:
            return f"how many dimensions `{held.id}` has is not known"
        return RowRead(e, held, indices, self.facts.ask(Certainty).is_used(held))

    def _is_taken_once(self, row: RowRead, found: list[RowRead], loop: ast.For) -> bool:
        """Whether nobody can tell that a row is one list, not a new one at each read: it is read once, or unpacked."""
        rank = self.inference.of(row.tensor).rank
        left = rank.offset - len(row.indices) if rank is not None and rank.base is None else None
        if left == 0:
            return True
        parent = self.syntax.parents[row.node]
        if left == 1 and isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load):
            return True
        above = list(self.syntax.ancestors(row.node))
        within = [
            p for p in above[: above.index(loop)] if isinstance(p, (ast.For, ast.While, ast.Lambda, *_COMPREHENSIONS))
        ]
        once = all((first := _first_of(p)) is not None and row.node in ast.walk(first) for p in within)
        return once and [r.tensor.id for r in found].count(row.tensor.id) == 1


def _first_of(node: ast.AST) -> ast.expr | None:
    """What a loop or comprehension goes through, which is evaluated once; None for what is no such thing."""
    if isinstance(node, _COMPREHENSIONS):
        return node.generators[0].iter
    return node.iter if isinstance(node, ast.For) else None
