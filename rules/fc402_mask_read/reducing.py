"""What a mask selects, reduced to one number: by a sum or mean of the name it gets."""

from __future__ import annotations

import ast
from dataclasses import replace

from patcher.facts.analysis import Analysis
from patcher.facts.masks.masked_reads import MaskedRead, MaskedReads


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
