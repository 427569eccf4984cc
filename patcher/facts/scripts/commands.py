"""Commands of click: functions whose parameters are options of a command line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from patcher.facts.scripts.sources import Source, Sources
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.values.module_values import imported

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
                if call in others or _of_click(source, call.func) not in _OPTIONS:
                    continue
                for given in (a.value for a in call.args if isinstance(a, ast.Constant)):
                    for name in given.split("/") if isinstance(given, str) else ():
                        found.setdefault(_spelled(name), (source, call))
        for parameter in _parameters(command.function):
            found.setdefault(_spelled(parameter.arg), (command.source, parameter))
        return found

    def _in(self, source: Source) -> Iterator[Command]:
        for function in source.syntax.functions:
            made = [i for i, d in enumerate(function.decorator_list) if self._makes(source, d)]
            if made:
                below = function.decorator_list[made[0] :]
                yield Command(source, function, tuple(d for d in below if not self._is_known(source, d)))

    def _makes(self, source: Source, decorator: ast.expr) -> bool:
        """Whether ``decorator`` makes a command."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if _of_click(source, called) in _COMMANDS:
            return True
        return isinstance(called, ast.Attribute) and called.attr in _METHODS and self._is_group(source, called.value)

    def _is_group(self, source: Source, e: ast.expr, depth: int = 3) -> bool:
        """Whether ``e`` is a group of commands, of this file or of another one."""
        if isinstance(e, ast.Call):
            return _of_click(source, e.func) == "Group"
        if depth == 0 or not isinstance(e, ast.Name):
            return False
        *_, module, name = ("", *(imported(source.syntax, e) or e.id).split("."))
        stem = module.rpartition(".")[2]
        home = next((o for o in self._made_in if stem and PurePath(o.path).stem == stem and o is not source), source)
        values = home.bindings.assigned.get((home.syntax.tree, name), [])
        functions = [f for f in home.syntax.functions if f.name == name]
        if len(values) + len(functions) != 1:
            return False
        made = (self._makes(home, d) for f in functions for d in f.decorator_list)
        return self._is_group(home, values[0], depth - 1) if values else any(made)

    def _is_known(self, source: Source, decorator: ast.expr) -> bool:
        """Whether what ``decorator`` gives takes by keyword whatever the function below it takes so."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if _of_click(source, called) or self._makes(source, decorator):
            return True
        if imported(source.syntax, called) in _TRANSPARENT:
            return True
        functions = [f for f in source.syntax.functions if isinstance(called, ast.Name) and f.name == called.id]
        return len(functions) == 1 and _adds_options(source, functions[0])


def _of_click(source: Source, e: ast.expr) -> str:
    """The name in click of what ``e`` is imported from there as; "" for anything else."""
    package, _, name = (imported(source.syntax, e) or "").partition(".")
    return name.rpartition(".")[2] if package in _CLICK else ""


def _adds_options(source: Source, function: FunctionNode) -> bool:
    """Whether a decorator of the file does nothing but give the function options of click."""
    parameters = [a.arg for a in function.args.args]
    inner = [n for n in source.syntax.subtree(function) if n is not function]
    if len(parameters) != 1 or any(isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) for n in inner):
        return False
    return all(
        _of_click(source, call.func.func if isinstance(call.func, ast.Call) else call.func)
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
