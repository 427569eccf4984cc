"""Where the project compiles the model, in files that were not given: they are read, and never changed."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence

from patcher.analysis import Analysis
from patcher.facts.syntax.packages import module_name
from patcher.facts.syntax.tree import Syntax
from patcher.facts.values.compile_calls import compile_calls
from patcher.facts.values.module_values import ModuleIndex
from patcher.source import SourceError, read

_COMPILES = re.compile(r"\b(?:compile|optimize)\b")
_COMPILING = frozenset({"call", "in place", "decorator", "factory"})
_MOST = 3


def compiled_outside(analysis: Analysis, cases: Sequence[str]) -> tuple[str, ...]:
    """Calls that compile, as ``file:line``, in files that import one of those given. ``cases``: files to pass over.

    At most three, the paths as seen from the working directory.
    """
    modules = {module_name(path)[0] for path in analysis.files} - {""}
    apart = {os.path.realpath(path) for path in cases}
    found = [
        f"{os.path.relpath(path)}:{line}"
        for path in analysis.around
        if os.path.realpath(path) not in apart
        for line in _lines(path, modules)
    ]
    return tuple(found[:_MOST])


def _lines(path: str, modules: set[str]) -> Iterator[int]:
    try:
        text = read(path).text
        if not _COMPILES.search(text):
            return
        syntax = Syntax(ast.parse(text))
    except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    imported = {what for _, what, _ in syntax.all_imports}
    if not any(_is_of(what, module) for what in imported for module in modules):
        return
    for call in compile_calls(syntax, ModuleIndex([("", syntax)])):
        if call.kind in _COMPILING:
            yield call.node.lineno


def _is_of(what: str, module: str) -> bool:
    """Whether the dotted ``what`` may be ``module`` or something in it: where an import starts from is not known."""
    return f".{module}." in f".{what}."
