"""A call that compiles a model as a whole, spelled as loops that compile its blocks one by one, in place."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.sites import CompileSite
from patcher.settings import TorchSetting

#: A statement with holes, and what fills them.
Template = tuple[str, tuple[ast.expr, ...]]
#: What gives another thing each time, or does something.
_MAKING = (ast.Call, ast.Await, ast.NamedExpr, ast.Lambda, ast.Yield, ast.YieldFrom)


@dataclass(frozen=True)
class ByBlocks:
    """The statements that take the place of a call: ``before``, then the ``loops``, each a header and its one line."""

    before: tuple[Template, ...]
    loops: tuple[tuple[Template, Template], ...]


class BlockByBlock(Analysis):
    """Calls of one module that compile."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._names: dict[ast.AST, str] = {}

    def written(
        self, site: CompileSite, paths: Sequence[str], given: Sequence[TorchSetting] = (), at: Template | None = None
    ) -> ByBlocks | str:
        """The call with its arguments and those ``given``, for the lists at ``paths``; or why it cannot be written.

        ``at``: the module below which these are, where that is not what holds the model.
        """
        call, held = site.node, site.held
        why = self._why_not(site, given)
        if why or held is None or site.model is None or not isinstance(call, ast.Call):
            return f"{why or 'nobody sees what it gives'}: compile the blocks by hand"
        named = {"model", *(setting.name for setting in given)}
        before: list[Template] = []
        values: list[ast.expr] = []
        written = []
        for k in (k for k in call.keywords if k.arg not in named):
            if any(isinstance(n, _MAKING) for n in ast.walk(k.value)):  # once, not for each block
                name = self.facts.writing.fresh_name(k.arg or "options", call)
                before.append((f"{name} = {{0}}", (k.value,)))
            else:
                name = f"{{{len(values)}}}"
                values.append(k.value)
            written.append(f"{'**' if k.arg is None else f'{k.arg}='}{name}")
        arguments = ", ".join([*written, *(setting.told for setting in given)])
        scope: ast.AST = self.syntax.class_of(call) or self.syntax.function_of(call) or self.syntax.tree
        # one loop does not stand in another: all of a scope may have it
        name = self._names.setdefault(scope, self._names.get(scope) or self.facts.writing.fresh_name("block", call))
        root, parts = at or ("{0}", (held,))
        line = (f"{name}.compile({arguments})", tuple(values))
        loops = tuple(((f"for {name} in {root}.{path}:", parts), line) for path in paths)
        if site.form == "built":
            before.insert(0, ("{0} = {1}", (held, site.model)))
        return ByBlocks(tuple(before), loops)

    def _why_not(self, site: CompileSite, given: Sequence[TorchSetting]) -> str:
        """Why the call cannot be written for its blocks; "" where it can."""
        call = site.node
        if not isinstance(call, ast.Call) or site.form not in ("again", "built", "in place") or site.by_forward:
            return "what it gives is used elsewhere"
        if not self.syntax.alone(self.syntax.statement_of(call)):
            return "it is no statement of its own"
        if "_orig_mod" in self.syntax.names_in(self.syntax.tree) or site.others:
            return "the wrapper is asked for, or it is compiled again"
        unpacked = bool(given) and any(k.arg is None for k in call.keywords)
        starred = any(isinstance(a, ast.Starred) for a in call.args)
        return "its arguments cannot be told" if unpacked or starred or call.args[1:] else ""
