"""The files of a script, read as one: which function a call of one of them runs, and who calls a function."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from patcher.facts.syntax.classes import parameter_at
from patcher.facts.syntax.tree import FunctionNode, Syntax, last_name
from patcher.facts.values.module_values import Bindings


@dataclass(frozen=True, eq=False)
class Source:
    """One file. ``path``: as the user spells it."""

    path: str
    syntax: Syntax
    bindings: Bindings

    @staticmethod
    def of(path: str, tree: ast.Module) -> Source:
        """The file ``path``, parsed."""
        syntax = Syntax(tree)
        return Source(path, syntax, Bindings(syntax))


@dataclass(frozen=True, eq=False)
class Sources:
    """Several files, the script first. Calls are followed by name, to all functions or methods that are called so."""

    all: tuple[Source, ...]

    @staticmethod
    def of(files: Sequence[tuple[str, ast.Module]]) -> Sources:
        """The files (path, parsed)."""
        return Sources(tuple(Source.of(path, tree) for path, tree in files))

    @cached_property
    def calls(self) -> list[tuple[Source, ast.Call]]:
        """Every call, with its file."""
        return [(source, call) for source in self.all for call in source.syntax.by_type[ast.Call]]

    @cached_property
    def functions(self) -> list[tuple[Source, FunctionNode]]:
        """Every function and method, with its file."""
        return [(source, function) for source in self.all for function in source.syntax.functions]

    @cached_property
    def _defined(self) -> dict[str, list[tuple[Source, FunctionNode]]]:
        found: defaultdict[str, list[tuple[Source, FunctionNode]]] = defaultdict(list)
        for source, function in self.functions:
            found[function.name].append((source, function))
        return found

    def called(self, call: ast.Call) -> list[tuple[Source, FunctionNode]]:
        """The functions and methods that ``call`` may run, by their name."""
        made = [(s, f) for s, f in self._defined.get("__init__", []) if _class_of(s, f) == last_name(call.func)]
        found = self._defined.get(last_name(call.func), [])
        if isinstance(call.func, ast.Attribute):
            module = last_name(call.func.value)
            found = [(s, f) for s, f in found if _is_method(s, f) or PurePath(s.path).stem == module]
            return found + [(s, f) for s, f in made if PurePath(s.path).stem == module]
        return [(s, f) for s, f in found if not _is_method(s, f)] + made

    def handed(self, call: ast.Call) -> Iterator[tuple[Source, FunctionNode, str, ast.expr]]:
        """The parameters of what ``call`` may run, with what each is given."""
        for source, function in self.called(call):
            bound = _is_method(source, function) and not _is_static(function)
            given: list[tuple[str | int | None, ast.expr]] = [*enumerate(call.args)]
            given += [(k.arg, k.value) for k in call.keywords]
            for key, value in given:
                parameter = parameter_at(function, key, bound)
                if parameter is not None:
                    yield source, function, parameter.arg, value


def _is_method(source: Source, function: FunctionNode) -> bool:
    return isinstance(source.syntax.parents.get(function), ast.ClassDef)


def _class_of(source: Source, function: FunctionNode) -> str | None:
    parent = source.syntax.parents.get(function)
    return parent.name if isinstance(parent, ast.ClassDef) else None


def _is_static(function: FunctionNode) -> bool:
    return any(last_name(d) == "staticmethod" for d in function.decorator_list)
