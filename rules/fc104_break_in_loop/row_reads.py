"""Reads of one row of a tensor for each turn of a loop, which could be one read of all of it above the loop."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import torch_api as api
from patcher.facts.analysis import Analysis
from patcher.facts.flow import Definition
from patcher.facts.syntax import FunctionNode
from patcher.facts.values import Kind
from patcher.facts.zones.host_reads import HostRead

#: Functions and methods whose result shares memory with nothing else.
_NEW = frozenset(
    "zeros ones empty full zeros_like ones_like empty_like full_like arange tensor new_zeros new_ones new_empty "
    "new_full new_tensor clone sum prod cumsum max min amax amin diff cat stack".split()
)


@dataclass(frozen=True)
class RowRead:
    """``node``, a call, reads ``tensor[index]`` for every ``index`` of the loop; ``rest``: the further indices."""

    node: ast.Call
    tensor: ast.Name
    indices: tuple[ast.expr, ...]


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
        found: list[RowRead] = []
        for read in reads:
            row = self._row(read.node, counter)
            if isinstance(row, str):
                return row
            found.append(row)
        names = {r.tensor.id for r in found}
        changed = {
            n.id for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
        }
        if changed & (names | {counter}):
            return f"`{min(changed & (names | {counter}))}` gets another value in the loop"
        again = next((r for r in found if not self._is_taken_once(r, found, loop)), None)
        if again is not None:
            return f"the list of a row of `{again.tensor.id}` would be the same one each time it is taken"
        shared = next((r.tensor for r in found if not self._is_apart(r.tensor)), None)
        if shared is not None:
            return f"what shares memory with `{shared.id}` is not known"
        within = {m for r in found for m in ast.walk(r.node)}
        return self._why_written(loop, names | self._relatives(function, names, within), within) or found

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
        return RowRead(e, held, indices)

    def _why_written(self, loop: ast.For, names: set[str], reads: set[ast.AST]) -> str:
        """What in ``loop``, other than its ``reads``, may write to the tensors ``names``; "" when nothing does."""
        for n in (n for s in loop.body for n in ast.walk(s)):
            match n:
                case ast.Call(func=func, args=args, keywords=keywords):
                    what = self.syntax.qualified(func) or ""
                    within = {m for a in (*args, *(k.value for k in keywords)) for m in ast.walk(a)} - reads
                    given = {m.id for m in within if isinstance(m, ast.Name)}
                    reader = what.startswith("torch.") and not what.endswith("_")
                    reader = reader and not any(k.arg in ("out", None) for k in keywords)
                    if given & names and not reader:
                        return f"`{ast.unparse(func)}` is given `{min(given & names)}`"
                    on_it = isinstance(func, ast.Attribute) and func.attr.endswith("_") and not func.attr.endswith("__")
                    if on_it and isinstance(func, ast.Attribute) and not self._is_new(func.value):
                        return f"`{ast.unparse(func)}` writes in place"
                case ast.Subscript(value=held, ctx=ast.Store() | ast.Del()) if not self._is_new(held):
                    return f"`{ast.unparse(n)}` is written to"
                case ast.AugAssign(target=ast.Name() as target) if not self._is_new(target):
                    return f"`{target.id}` is changed in place"
                case ast.Await() | ast.Yield() | ast.YieldFrom():
                    return "other code runs in between"
        return ""

    def _is_taken_once(self, row: RowRead, found: list[RowRead], loop: ast.For) -> bool:
        """Whether nobody can tell that a row is one list, not a new one at each read: it is read once, or unpacked."""
        rank = self.inference.of(row.tensor).rank
        left = rank.offset - len(row.indices) if rank is not None and rank.base is None else None
        if left == 0:
            return True
        parent = self.syntax.parents[row.node]
        if left == 1 and isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load):
            return True
        inner = (ast.For, ast.While, ast.comprehension, ast.Lambda)
        above = list(self.syntax.ancestors(row.node))
        within = [p for p in above[: above.index(loop)] if isinstance(p, inner)]
        once = all(isinstance(p, ast.For) and row.node in ast.walk(p.iter) for p in within)
        return once and [r.tensor.id for r in found].count(row.tensor.id) == 1

    def _is_apart(self, name: ast.Name) -> bool:
        """Whether no other name of the function can hold the memory of ``name`` but those that are made from it."""
        definitions = self._definitions(name)
        return bool(definitions) and all(
            d.how == "parameter"
            or (d.how == "assign" and not d.path and isinstance(d.value, (ast.BinOp, ast.Compare)))
            or (d.how == "assign" and not d.path and isinstance(d.value, ast.Call) and _name(d.value.func) in _NEW)
            for d in definitions
        )

    def _relatives(self, function: FunctionNode, names: set[str], reads: set[ast.AST]) -> set[str]:
        """The names that may be views of one of ``names``."""
        found = set(names)
        for _ in range(3):
            for d in self.inference.flow_of(function).by_node.values():
                mentioned = set(ast.walk(d.value)) - reads if d.value is not None else set()
                if any(isinstance(m, ast.Name) and m.id in found for m in mentioned):
                    known = d.value is not None and self.inference.of(d.value).kind is Kind.PYTHON
                    found |= set() if known else {d.name}
        return found

    def _is_new(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor made in this function, a Python number, or no tensor at all."""
        while isinstance(e, ast.Subscript):
            e = e.value
        if self.inference.of(e).kind is Kind.PYTHON:
            return True
        if not isinstance(e, ast.Name):
            return False
        definitions = [d for d in self._definitions(e) if d.how != "unbound"]
        calls = [d.value for d in definitions if d.how == "assign" and not d.path]
        made = [c for c in calls if isinstance(c, ast.Call) and _name(c.func) in _NEW]
        return bool(definitions) and len(made) == len(definitions)

    def _definitions(self, e: ast.Name) -> list[Definition]:
        function = self.syntax.function_of(e)
        assert isinstance(function, FunctionNode)
        if isinstance(e.ctx, ast.Load):
            return list(self.inference.definitions(e))
        return [d for d in self.inference.flow_of(function).by_node.values() if d.name == e.id and d.how != "augmented"]


def _name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
