"""Commands of click and typer: functions whose parameters are options of a command line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Literal

from patcher.facts.scripts.sources import Source, Sources
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.values.module_values import imported

Library = Literal["click", "typer"]

#: Packages with the decorators of click; what is from the second and its like is of the first.
_CLICK = frozenset({"click", "rich_click"})
#: What makes a function a command, and what gives one an option or more, in click.
_COMMANDS = frozenset({"command", "group"})
_OPTIONS = frozenset({"option", "argument"})
#: Methods of an app or a group that do so.
_METHODS = frozenset({"command", "group", "callback"})
#: Decorators that give a function back that takes what the one below takes, and keep what click has noted on it.
_TRANSPARENT = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.enable_grad", "torch.autograd.set_grad_enabled"}
)


@dataclass(frozen=True, eq=False)
class Command:
    """A function that is run with what a command line says.

    ``foreign``: its decorators that may not hand on whatever it is given.
    """

    source: Source
    function: FunctionNode
    library: Library
    foreign: tuple[ast.expr, ...]


class Commands:
    """The commands in some files. ``around``: files in which a group of theirs may be made."""

    def __init__(self, sources: Sources, around: Sources | None = None) -> None:
        self.sources = sources
        self._made_in = (*sources.all, *(around.all if around is not None else ()))

    @cached_property
    def all(self) -> tuple[Command, ...]:
        """Every command and group, in the order of the source."""
        return tuple(command for source in self.sources.all for command in self._in(source))

    def at(self, source: Source, statement: ast.stmt) -> Command | None:
        """The command in which ``statement`` runs."""
        scopes = source.syntax.around(statement).scopes
        return next((c for c in self.all if c.source is source and c.function in scopes), None)

    def options(self, command: Command) -> dict[str, tuple[Source, ast.AST]]:
        """Each option of ``command``, as ``--name`` with underscores, and all it is given by name; with its place.

        What gives a function options and stands above none is taken for one of every command.
        """
        found: dict[str, tuple[Source, ast.AST]] = {}
        others = {n for c in self.all if c is not command for e in _said(c.function) for n in ast.walk(e)}
        for source in self._made_in:
            for call in source.syntax.by_type[ast.Call]:
                library, what = _of_library(source, call.func)
                if call in others or not library or what.lower() not in _OPTIONS:
                    continue
                for given in (a.value for a in call.args if isinstance(a, ast.Constant)):
                    for name in given.split("/") if isinstance(given, str) else ():
                        found.setdefault(_spelled(name), (source, call))
        for parameter in _parameters(command.function):
            found.setdefault(_spelled(parameter.arg), (command.source, parameter))
        return found

    def _in(self, source: Source) -> Iterator[Command]:
        for function in source.syntax.functions:
            made = [self._library(source, d) for d in function.decorator_list]
            by_call = self._handed(source, function)
            library = next((m for m in made if m), by_call)
            if library:
                first = next((i for i, m in enumerate(made) if m), 0)
                below = function.decorator_list[first:]
                yield Command(source, function, library, tuple(d for d in below if not self._is_known(source, d)))

    def _library(self, source: Source, decorator: ast.expr) -> Library | Literal[""]:
        """The library by which ``decorator`` makes a command."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        library, what = _of_library(source, called)
        if library == "click" and what in _COMMANDS:
            return "click"
        if isinstance(called, ast.Attribute) and called.attr in _METHODS:
            return self._app(source, called.value)
        return ""

    def _app(self, source: Source, e: ast.expr, depth: int = 3) -> Library | Literal[""]:
        """The library that ``e`` is a group or an app of."""
        if isinstance(e, ast.Call):
            library, what = _of_library(source, e.func)
            if (library, what) == ("typer", "Typer"):
                return "typer"
            return "click" if library == "click" and what == "Group" else ""
        if depth == 0 or not isinstance(e, ast.Name):
            return ""
        elsewhere = imported(source.syntax, e)
        if elsewhere is not None:
            *_, module, name = ("", *elsewhere.split("."))
            for other in self._made_in:
                if PurePath(other.path).stem == module.rpartition(".")[2] and other is not source:
                    return self._named(other, name, depth)
            return ""
        return self._named(source, e.id, depth)

    def _named(self, source: Source, name: str, depth: int) -> Library | Literal[""]:
        values = source.bindings.assigned.get((source.syntax.tree, name), [])
        functions = [f for f in source.syntax.functions if f.name == name]
        if len(values) + len(functions) != 1:
            return ""
        if values:
            return self._app(source, values[0], depth - 1)
        return next((m for d in functions[0].decorator_list if (m := self._library(source, d))), "")

    def _handed(self, source: Source, function: FunctionNode) -> Library | Literal[""]:
        """The library that is given the function in a call: ``typer.run(main)``, ``app.command()(main)``."""
        if not isinstance(source.syntax.parents.get(function), ast.Module):
            return ""
        for call in source.syntax.by_type[ast.Call]:
            if call.args and isinstance(call.args[0], ast.Name) and call.args[0].id == function.name:
                if imported(source.syntax, call.func) == "typer.run":
                    return "typer"
                if isinstance(call.func, ast.Call) and (made := self._library(source, call.func)):
                    return made
        return ""

    def _is_known(self, source: Source, decorator: ast.expr) -> bool:
        """Whether what ``decorator`` gives takes by keyword whatever the function below it takes so."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if _of_library(source, called)[0] or self._library(source, decorator):
            return True
        if imported(source.syntax, called) in _TRANSPARENT:
            return True
        functions = [f for f in source.syntax.functions if isinstance(called, ast.Name) and f.name == called.id]
        return len(functions) == 1 and _adds_options(source, functions[0])


def _of_library(source: Source, e: ast.expr) -> tuple[Library | Literal[""], str]:
    """The library that ``e`` is imported from, and its name there."""
    package, _, name = (imported(source.syntax, e) or "").partition(".")
    if package in _CLICK:
        return "click", name.rpartition(".")[2]
    return ("typer", name.rpartition(".")[2]) if package == "typer" else ("", "")


def _adds_options(source: Source, function: FunctionNode) -> bool:
    """Whether a decorator of the file does nothing but give the function options of click."""
    parameters = [a.arg for a in function.args.args]
    inner = [n for n in source.syntax.subtree(function) if n is not function]
    if len(parameters) != 1 or any(isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) for n in inner):
        return False
    return all(
        _of_library(source, call.func.func if isinstance(call.func, ast.Call) else call.func)[0]
        for call in inner
        if isinstance(call, ast.Call)
    )


def _said(function: FunctionNode) -> Iterator[ast.expr]:
    """What stands around a function for a command line: decorators, defaults, annotations."""
    yield from function.decorator_list
    yield from function.args.defaults
    yield from (d for d in function.args.kw_defaults if d is not None)
    yield from (p.annotation for p in _parameters(function) if p.annotation is not None)


def _parameters(function: FunctionNode) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _spelled(name: str) -> str:
    return "--" + name.strip().lstrip("-").replace("-", "_")
