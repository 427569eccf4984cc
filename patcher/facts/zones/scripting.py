"""Whether TorchScript may compile a function: it takes no function that is left out of graphs, and wants types."""

from __future__ import annotations

import ast
from functools import cached_property

from patcher.facts.analysis import Analysis
from patcher.facts.project.index import ModuleSummary
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tables.captured import UNSCRIPTED

#: What TorchScript refuses wherever it stands in a function -> what the table calls it.
_REFUSED: dict[type[ast.AST], str] = {
    ast.Try: "try",
    ast.Lambda: "lambda",
    ast.FunctionDef: "nested function",
    ast.Set: "set",
    ast.NamedExpr: "walrus",
}


class Scripting(Analysis):
    """What is asked of one module.

    That code which nothing near it prepares for TorchScript is not scripted is presumed: neither its own file, nor one
    of its folder, nor one that it imports or that imports it names what only TorchScript needs.
    """

    def why(self, function: FunctionNode, widely: bool = False) -> str:
        """Why TorchScript may compile ``function``; "" when it does not, or is not asked to.

        ``widely``: where not all files of the project are known, one of the others may be prepared for it.
        """
        if not self._here and (self.project.whole or not widely):
            return ""
        return "" if self._is_refused(function) else "this file, or one near it, is prepared for `torch.jit.script`"

    @cached_property
    def _here(self) -> bool:
        if self.facts.scripted:
            return True
        own = next(iter(self.project.summaries_of(self.module)), None)
        folder = self.module.rpartition(".")[0]
        return any(
            s is own
            or (folder and s.module.rpartition(".")[0] == folder)
            or _imports(s, self.module)
            or (own is not None and _imports(own, s.module))
            for s in self.project.scripted
        )

    def _is_refused(self, function: FunctionNode) -> bool:
        """Whether something stands in ``function`` that TorchScript refuses, whatever runs."""
        nodes = self.syntax.subtree(function)
        if any(isinstance(n, ast.Attribute) and n.attr == "is_scripting" for n in nodes):
            return False
        return any(_REFUSED.get(type(n)) in UNSCRIPTED or self._is_untyped_list(n) for n in nodes if n is not function)

    def _is_untyped_list(self, n: ast.AST) -> bool:
        listed = isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "tolist"
        around = self.syntax.parents.get(n)
        return listed and "tolist" in UNSCRIPTED and not isinstance(around, (ast.AnnAssign, ast.Call))


def _imports(summary: ModuleSummary, module: str) -> bool:
    return any(what == module or what.startswith(f"{module}.") for what in summary.imports)
