"""Whether TorchScript may compile a function: it takes no function that is left out of graphs, and wants types."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property

from patcher.facts.analysis import Analysis
from patcher.facts.flow.fixpoint import reach
from patcher.facts.project.scripted import names_in
from patcher.facts.project.summaries import ModuleSummary
from patcher.facts.syntax.tree import FunctionNode, dotted, methods_of


class Scripting(Analysis):
    """What is asked of one module.

    That code which nothing near it prepares for TorchScript is not scripted is presumed: neither its own file, nor one
    of its folder, nor one that it imports names what only TorchScript needs; nor one that imports it, and names the
    function, or what calls it here.
    """

    def why(self, function: FunctionNode) -> str:
        """Why TorchScript may compile ``function``; "" when it does not, or is not asked to."""
        near = self._is_near or function.name in self._named
        return "this file, or one near it, is prepared for `torch.jit.script`" if near else ""

    @cached_property
    def _is_near(self) -> bool:
        """Whether this file, one of its folder, or one that it imports is prepared for TorchScript."""
        if self.facts.scripted:
            return True
        own = next(iter(self.project.summaries_of(self.module)), None)
        folder = self.module.rpartition(".")[0]
        return any(
            s is own
            or (folder and s.module.rpartition(".")[0] == folder)
            or (own is not None and _imports(own, s.module))
            for s in self.project.scripted
        )

    @cached_property
    def _named(self) -> frozenset[str]:
        """The names in files that are prepared and import this one, and in the functions here that have such a name."""
        importing = [s.scripted for s in self.project.scripted if _imports(s, self.module)]
        functions = [f for kind in (ast.FunctionDef, ast.AsyncFunctionDef) for f in self.syntax.by_type[kind]]
        by_name: defaultdict[str, set[str]] = defaultdict(set)
        for f in functions if importing else ():
            by_name[f.name].update(names_in(self.syntax, f))  # type: ignore[attr-defined]
        for cls in self.syntax.by_type[ast.ClassDef] if importing else ():
            if isinstance(cls, ast.ClassDef) and not self.facts.is_module_class(cls):
                by_name[cls.name].update(method.name for method in methods_of(cls))
        asked = {f.name for f in functions if "property" in {dotted(d) for d in f.decorator_list}}  # type: ignore[attr-defined]
        every = frozenset[str]().union(*importing, {"forward"}, asked) if importing else ()
        return frozenset(reach(every, lambda name: by_name.get(name, ())))


def _imports(summary: ModuleSummary, module: str) -> bool:
    return any(what == module or what.startswith(f"{module}.") for what in summary.imports)
