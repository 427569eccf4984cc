"""Which parameters of one module's functions end in a bool argument of an operator, or are handed on to other code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted
from patcher.facts.tables import torch_api

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: What `_handed_on` looks into.
_HANDING = frozenset({ast.Name, ast.BoolOp, ast.IfExp, ast.Call})


@dataclass(frozen=True)
class Passed:
    """``parameter`` of ``function`` is ``argument`` (keyword or position) of a call of ``callee`` there.

    ``position``: where the parameter stands, the instance not counted; None for keyword-only ones. ``callee``: an
    operator of `torch_api.BOOL_ARGUMENTS`, a dotted function or class method, or ".name.method" for what the
    attribute ``name`` of the instance holds.
    """

    function: str
    parameter: str
    position: int | None
    callee: str
    argument: str | int


class Passing:
    """One look at a module. To other code of the project, only parameters that look like flags are followed."""

    def __init__(self, syntax: Syntax, resolve: Callable[[str], str], imports: Mapping[str, str]) -> None:
        self.syntax = syntax
        self.resolve = resolve
        self.imports = imports
        self.found: set[Passed] = set()
        self._parameters: dict[FunctionNode, dict[str, tuple[int | None, bool]]] = {}
        for call in syntax.by_type[ast.Call]:
            function = syntax.function_of(call)
            if function is not None and (call.args or call.keywords):
                self._call(call, function)

    def _call(self, call: ast.Call, function: FunctionNode) -> None:
        arguments: list[tuple[str | int, ast.expr]] = [(k.arg, k.value) for k in call.keywords if k.arg is not None]
        arguments += enumerate(call.args)
        names = [(argument, n) for argument, e in arguments if type(e) in _HANDING for n in _handed_on(e)]
        parameters = self._of(function) if names else {}
        handed = [(argument, n) for argument, n in names if n in parameters]
        name = self.syntax.qualname(function) if handed else None
        callee = self._callee(call.func, function) if name is not None else ""
        if not callee or name is None:
            return
        for argument, n in handed:
            position, is_flag = parameters[n]
            if is_flag or callee in torch_api.BOOL_ARGUMENTS:
                self.found.add(Passed(name, n, position, callee, argument))

    def _callee(self, func: ast.expr, function: FunctionNode) -> str:
        text = dotted(func)
        if text is None:
            return ""
        root, _, rest = text.partition(".")
        if root == self_name(function) and self.syntax.method_of(function) is function:
            return f".{rest}" if rest.count(".") < 2 else ""
        what = self.resolve(text)
        if what.startswith("torch."):
            return what if what in torch_api.BOOL_ARGUMENTS else ""
        return what if root in self.imports or not rest else ""

    def _of(self, function: FunctionNode) -> dict[str, tuple[int | None, bool]]:
        """Parameter -> position and whether it looks like a flag, by its default or its annotation."""
        if function not in self._parameters:
            arguments = function.args
            positional = [*arguments.posonlyargs, *arguments.args]
            defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
            own = int(self.syntax.method_of(function) is function and self_name(function) is not None)
            found: dict[str, tuple[int | None, bool]] = {
                a.arg: (i - own, _is_flag(a, d))
                for i, (a, d) in enumerate(zip(positional, defaults, strict=True))
                if i >= own
            }
            for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
                found[a.arg] = (None, _is_flag(a, d))
            self._parameters[function] = found
        return self._parameters[function]


def _is_flag(argument: ast.arg, default: ast.expr | None) -> bool:
    if isinstance(default, ast.Constant) and isinstance(default.value, bool):
        return True
    annotation = argument.annotation
    if isinstance(annotation, ast.Name):
        return "bool" in annotation.id
    return annotation is not None and "bool" in ast.unparse(annotation)


def _handed_on(e: ast.expr) -> Iterator[str]:
    """The names whose value ``e`` may be, also as one of several flags."""
    match e:
        case ast.Name(id=name):
            yield name
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from _handed_on(part)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _handed_on(body)
            yield from _handed_on(orelse)
        case ast.Call(func=ast.Name(id="bool"), args=[inner]):
            yield from _handed_on(inner)
