"""A call of torch.compile, spelled as the module's own ``compile``: which models have one that does the same."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.placing import is_place
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.values.module_values import imported

#: From here on `torch.nn.Module` has ``compile``.
SINCE = (2, 2)
#: From here on it compiles what PyTorch itself has defined, and what a decorator has made of ``forward``, as
#: `torch.compile` of the module does: the same graphs, on 2.14.1.
WHOLE_SINCE = (2, 14)


class InPlace(Analysis):
    """Sites of one module, written in place."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.exists = facts.settings.target_torch >= SINCE

    def spelled(
        self, site: CompileSite, model: ast.expr | None = None, part: str = ""
    ) -> tuple[str, tuple[ast.expr, ...]] | None:
        """``model.compile(...)`` as a template with holes, and what fills them; None where it cannot be written.

        ``model``: what holds it, where that is not what the call is given; ``part``: the attribute that is compiled.
        """
        call, model = site.node, model or site.model
        if not isinstance(call, ast.Call) or model is None or site.by_forward or not self.exists:
            return None
        if not is_place(model) or imported(self.syntax, call.func) != "torch.compile" or call.args[1:]:
            return None
        if any(isinstance(a, ast.Starred) for a in call.args) or not self.syntax.alone(self.syntax.statement_of(call)):
            return None
        keywords = [k for k in call.keywords if k.arg != "model"]
        if any(n is not call and isinstance(n, ast.NamedExpr) for n in ast.walk(call)):
            return None
        written = [f"{'**' if k.arg is None else f'{k.arg}='}{{{i + 1}}}" for i, k in enumerate(keywords)]
        return f"{{0}}{f'.{part}' if part else ''}.compile({', '.join(written)})", (model, *(k.value for k in keywords))

    def why_not(self, site: CompileSite) -> str | None:
        """Why ``model.compile()`` would not do for this class what torch.compile does; None where nothing is known.

        What PyTorch itself has defined, it does not compile from within before 2.14: it would compile nothing.
        """
        whole = self.facts.settings.target_torch >= WHOLE_SINCE
        if site.cls is None:
            own = None if whole else self._of_torch(site)
            return None if own is None else f"`{own}` runs a `forward` of PyTorch's own, which would not be compiled"
        for method, what in (("compile", "a `compile`"), ("__call__", "a `__call__`")):
            if self.project.methods(site.cls, method):
                return f"`{site.cls.rpartition('.')[2]}` has {what} of its own"
        if not whole and not self.project.methods(site.cls, "forward"):
            return f"`{site.cls.rpartition('.')[2]}` has no `forward` of its own, and PyTorch's would not be compiled"
        return None

    def part(self, site: CompileSite) -> str | None:
        """The one part of the model that can be called, where the model itself has no ``forward`` at all."""
        if site.cls is None or self.project.methods(site.cls, "forward"):
            return None
        summary = self.project.known_class(site.cls)
        parts = [
            attribute
            for attribute, cls in (summary.built if summary is not None else ())
            if self.project.is_module_class(cls)
            and self.project.methods(cls, "forward")
            and not self.project.methods(cls, "compile")
            and not self.project.methods(cls, "__call__")
        ]
        return parts[0] if len(parts) == 1 else None

    def _of_torch(self, site: CompileSite) -> str | None:
        """The class of PyTorch that the model is made of, where that is written."""
        values: list[ast.expr | None] = [site.model]
        if isinstance(site.model, ast.Name):
            values += self.facts.ask(CompileSites).given(site.model)
        for value in values:
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "to":
                value = value.func.value
            what = imported(self.syntax, value.func) if isinstance(value, ast.Call) else None
            if what is not None and what.startswith("torch.nn."):
                return what.rpartition(".")[2]
        return None
