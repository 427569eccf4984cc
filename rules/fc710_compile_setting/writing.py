"""Where a setting of PyTorch is written: beside the calls that compile, once for each function that has some."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.sites import CompileSites
from patcher.facts.values.compile_calls import CompileCall
from patcher.facts.values.module_values import imported
from patcher.rule import Code, Edit, Insert, Replace, ReplaceStatements
from patcher.settings import TorchSetting
from rules.fc710_compile_setting.blocks import compiles, in_blocks
from rules.fc710_compile_setting.measured_models import MeasuredModels

_CONFIG = "torch._dynamo.config"
_COMPILING = ("call", "decorator", "factory", "in place")


@dataclass(frozen=True)
class Written:
    """A call that compiles, and what has to change there. ``settings``: those that it is about.

    ``edits``: none where it cannot be done, for the reason ``why_not``.
    """

    node: ast.expr
    settings: tuple[TorchSetting, ...]
    edits: tuple[Edit, ...] = ()
    why_not: str = ""


class SettingPlaces(Analysis):
    """The places of one module where the settings that are in force have to be written, and are not yet.

    Where it is known which model a run has measured, not those that compile another one.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        calls = facts.ask(CompileSites).calls
        compiling = (call for call in calls if call.kind in _COMPILING and isinstance(call.node, ast.expr))
        self._measured = facts.ask(MeasuredModels)
        self._sites = [call for call in compiling if not self._measured.is_another(call.node)]
        self._set = [call for call in calls if call.kind == "setting"]
        asked = facts.settings.torch_settings
        self._lines = [s for s in asked if s.kind in ("config", "member")]
        self._given = [s for s in asked if s.kind == "argument"]
        self._blocks = [s for s in asked if s.kind == "blocks"]
        self._known: dict[ast.AST, Written] | None = None

    def at(self, node: ast.AST) -> Written | None:
        """What has to change at ``node``, a call or a decorator that compiles; None when nothing has to."""
        if self._known is None:
            self._known = {written.node: written for written in self._all()}
        return self._known.get(node)

    def _all(self) -> Iterator[Written]:
        lined: list[ast.stmt] = []
        for call in self._sites:
            assert isinstance(call.node, ast.expr)
            anchor = self._anchor(call)
            lines = [s for s in self._lines if not self._is_set(s, anchor)]
            if any(self._runs_with(other, anchor) for other in lined):
                lines = []
            given = [s for s in self._given if not _is_given(s, call)]
            if self._blocks:
                written = self._in_blocks(call.node, lines, anchor)
                lined += [anchor] if written is not None and written.edits and lines else []
                yield from [] if written is None else [written]
                continue
            if not lines and not given:
                continue
            told = (*lines, *given)
            if (line := self._measured.beside(call.node)) is not None:
                why = f"which model this compiles is not seen; the one that was measured is compiled in line {line}"
                yield Written(call.node, told, why_not=why)
                continue
            if not self.syntax.alone(anchor) and lines:
                yield Written(call.node, told, why_not="there is no place for a line before it")
                continue
            passed = self._passed(call, given) if given else []
            if passed is None:
                yield Written(call.node, told, why_not="its arguments cannot be told")
                continue
            lined += [anchor] if lines else []
            config = self.facts.writing.spelling(_CONFIG, anchor)
            before = tuple(Code(f"{config}.{self._spelled(s, anchor)}") for s in lines)
            yield Written(call.node, told, (*([Insert(anchor, before)] if lines else []), *passed))

    def _in_blocks(self, node: ast.expr, lines: list[TorchSetting], anchor: ast.stmt) -> Written | None:
        """The model compiled block by block; None where another one is compiled there, or nobody knows which."""
        site = compiles(node, self._blocks, self.facts)
        if site is None:
            return None
        told = (*self._blocks, *lines, *self._given)
        made = in_blocks(site, self._blocks, self._given, self.facts)
        if isinstance(made, str):
            return Written(node, told, why_not=made)
        config = self.facts.writing.spelling(_CONFIG, anchor)
        before = (Code(f"{config}.{self._spelled(s, anchor)}") for s in lines)
        return Written(node, told, (ReplaceStatements((self.syntax.statement_of(node),), (*before, *made)),))

    def _runs_with(self, line: ast.stmt, anchor: ast.stmt) -> bool:
        """Whether ``line`` is run whenever ``anchor`` is: it does not stand in another arm or function."""
        if self.syntax.function_of(line) is not self.syntax.function_of(anchor):
            return False
        block = self.syntax.block_of(line)
        return anchor in block or any(p in block for p in self.syntax.ancestors(anchor))

    def _anchor(self, call: CompileCall) -> ast.stmt:
        """The statement before which a line is run before the model is compiled: not in the middle of a class."""
        assert isinstance(call.node, ast.expr)
        statement = self.syntax.statement_of(call.node)
        cls = self.syntax.class_of(statement)
        while cls is not None and self.syntax.function_of(statement) is None:
            statement, cls = cls, self.syntax.class_of(cls)
        return statement

    def _is_set(self, setting: TorchSetting, anchor: ast.stmt) -> bool:
        """Whether code that runs with ``anchor``, or when the file is imported, gives it this value."""
        if setting.kind == "member":
            added = [c for c in self.syntax.by_type[ast.Call] if self._is_addition(c, setting)]
            return any(self._is_in_force(c, anchor) for c in added)
        for call in self._set:
            if not call.what.startswith(_CONFIG) or not self._is_in_force(call.node, anchor):
                continue
            value = call.argument(setting.name)
            if isinstance(value, ast.Constant) and value.value == setting.value:
                return True
        return False

    def _is_in_force(self, node: ast.AST, anchor: ast.stmt) -> bool:
        if self.syntax.function_of(node) is None and self.syntax.function_of(anchor) is not None:
            return True
        return self._runs_with(self.syntax.statement_of(node), anchor)

    def _is_addition(self, call: ast.Call, setting: TorchSetting) -> bool:
        if imported(self.syntax, call.func) != f"{_CONFIG}.{setting.name}.add" or len(call.args) != 1:
            return False
        return self._spelled(setting, call) == f"{setting.name}.add({ast.unparse(call.args[0])})"

    def _spelled(self, setting: TorchSetting, at: ast.AST) -> str:
        if setting.kind != "member":
            return setting.told
        builtin = str(setting.value).removeprefix("builtins.")
        return f"{setting.name}.add({self.facts.writing.spelling(builtin, at)})"

    def _passed(self, call: CompileCall, given: list[TorchSetting]) -> list[Edit] | None:
        """The call with more arguments; None where it is not plain."""
        node = call.node
        more = ", ".join(setting.told for setting in given)
        if not isinstance(node, ast.Call):
            return [Replace(node, Code(f"{{0}}({more})", (node,)))] if isinstance(node, ast.expr) else None
        if any(k.arg is None or k.arg in {s.name for s in given} for k in node.keywords):
            return None
        if any(isinstance(a, ast.Starred) for a in node.args):
            return None
        parts: list[ast.expr] = [node.func, *node.args, *(k.value for k in node.keywords)]
        names = [*("" for _ in node.args), *(f"{k.arg}=" for k in node.keywords)]
        holes = [f"{name}{{{number}}}" for number, name in enumerate(names, 1)]
        return [Replace(node, Code(f"{{0}}({', '.join([*holes, more])})", tuple(parts)))]


def _is_given(setting: TorchSetting, call: CompileCall) -> bool:
    value = call.argument(setting.name)
    return isinstance(value, ast.Constant) and value.value == setting.value
