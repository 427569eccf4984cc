"""A function of what a mask selects, the results of which are written back through that mask, row by row."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.syntax.written import given


@dataclass(frozen=True)
class RowCall:
    """``targets = call``: reads in ``call`` and targets all go through ``mask``, a name."""

    statement: ast.Assign
    mask: ast.Name
    call: ast.Call
    reads: tuple[ast.Subscript, ...]
    targets: tuple[ast.Subscript, ...]


class RowCalls(Analysis):
    """Such statements of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.masked_reads = facts.ask(MaskedReads)

    def of(self, statement: ast.stmt) -> RowCall | None:
        """``statement`` as one that calls a function of this module; None when it is none."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        call, target = statement.value, statement.targets[0]
        targets = [t for t in (target.elts if isinstance(target, ast.Tuple) else [target]) if _of_name(t)]
        if not isinstance(call, ast.Call) or len(targets) != (len(target.elts) if isinstance(target, ast.Tuple) else 1):
            return None
        written = [t for t in targets if isinstance(t, ast.Subscript)]
        mask = written[0].slice if written else None
        if not isinstance(mask, ast.Name) or any(ast.unparse(t.slice) != mask.id for t in written):
            return None
        arguments = given(call)
        reads = [a for a in arguments if isinstance(a, ast.Subscript) and self._through(a, mask)]
        others = [n for a in arguments if a not in reads for n in ast.walk(a)]
        if not reads or any(
            isinstance(n, ast.Starred) or (isinstance(n, ast.Name) and n.id == mask.id) for n in others
        ):
            return None
        if any(k.arg is None for k in call.keywords) or not self._is_function(call):
            return None
        return RowCall(statement, mask, call, tuple(reads), tuple(written))

    def _through(self, e: ast.Subscript, mask: ast.Name) -> bool:
        read = self.masked_reads.of(e)
        same = read is not None and isinstance(read.mask, ast.Name) and read.mask.id == mask.id
        return same and read is not None and read.first and isinstance(read.base, ast.Name)

    def _is_function(self, call: ast.Call) -> bool:
        """Whether it is a function of this module that is called."""
        name = call.func.id if isinstance(call.func, ast.Name) else None
        functions = self.syntax.by_type[ast.FunctionDef]
        found = [f for f in functions if f.name == name and self.syntax.qualname(f) == name]
        return len(found) == 1 and not self.masked_reads.inference.definitions_of_root(call.func)


def _of_name(e: ast.expr) -> bool:
    return isinstance(e, ast.Subscript) and isinstance(e.value, ast.Name)
