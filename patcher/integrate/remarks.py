"""What is told of a place in a script, and that nothing can be written because of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.scripts.sources import Source


@dataclass(frozen=True)
class Remark:
    """One thing to tell of a place; ``line`` 0: of the file."""

    path: str
    line: int
    message: str


class RefusedError(Exception):
    """The script cannot be integrated; the remarks say why, and what to do."""

    def __init__(self, *remarks: Remark) -> None:
        super().__init__(remarks)
        self.remarks = remarks


def at(source: Source, node: ast.AST, message: str) -> Remark:
    """``message`` about ``node``."""
    return Remark(source.path, getattr(node, "lineno", 0), message)
