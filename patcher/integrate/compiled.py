"""Scripts that compile already: an option that makes them do so excludes what is new."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patcher.facts.scripts.sources import Source, Sources
from patcher.facts.syntax.tree import dotted
from patcher.facts.values.compile_calls import LIBRARY_KEYWORDS, CompileCall, compile_calls
from patcher.facts.values.module_values import imported, parameter
from patcher.integrate.options import OPTIONS, Options
from patcher.integrate.remarks import RefusedError, Remark, at

_KINDS = ("call", "in place", "decorator", "factory", "library")
_OFF = ("no", "none", "false", "")


@dataclass(frozen=True, eq=False)
class Place:
    """A call that compiles. ``flags``: options of the script that it depends on, by their names as attributes."""

    source: Source
    call: CompileCall
    flags: tuple[str, ...]


def compiling(sources: Sources) -> list[tuple[Source, CompileCall]]:
    """What compiles in the files, or has a library do so."""
    return [(source, call) for source in sources.all for call in compile_calls(source.syntax) if call.kind in _KINDS]


def told(compiled: Sequence[tuple[Source, CompileCall]]) -> list[Remark]:
    """That a script compiles already."""
    return [
        at(source, call.node, f"`{call.what}` compiles here already: `fix-compile check` tells of such calls")
        for source, call in compiled
    ]


def governed(compiled: Sequence[tuple[Source, CompileCall]], options: Options) -> list[Place]:
    """Those that compile, where an option governs each. Raises RefusedError for what compiles in any case."""
    found: list[Place] = []
    refused: list[Remark] = []
    for source, call in compiled:
        tests = [_flags(source, test, options) for test in _tests(source, call.node)]
        flags = [flag for named in tests for flag in named or ()]
        said = call.kind == "library" and not flags and _is_said(source, call, options, flags)
        if None in tests or not (flags or said) or any(f"--{flag}" in OPTIONS for flag in flags):
            refused += told([(source, call)])
        found.append(Place(source, call, tuple(dict.fromkeys(flags))))
    if refused:
        raise RefusedError(*refused)
    return found


def _tests(source: Source, node: ast.AST) -> Iterator[ast.expr]:
    """What is true where ``node`` runs, from the inside out; not what is false there."""
    below = node
    for parent in source.syntax.ancestors(node):
        if isinstance(parent, (ast.If, ast.IfExp)) and not _is_main(parent.test):
            body = parent.body if isinstance(parent, ast.If) else [parent.body]
            if any(below is s for s in body) and not _is_negated(parent.test):
                yield parent.test
        below = parent


def _is_said(source: Source, call: CompileCall, options: Options, flags: list[str]) -> bool:
    """Whether a library compiles only if an option says so; ``flags`` gets those that switch it on."""
    for name, value in call.arguments:
        if name not in LIBRARY_KEYWORDS:
            continue
        given = source.bindings.values(value) if isinstance(value, ast.Name) else [value]
        on = [v for v in given if not (isinstance(v, ast.Constant) and str(v.value).lower() in _OFF)]
        for one in on:
            tests = [_flags(source, test, options) for test in _tests(source, one)]
            flags += [flag for found in tests for flag in found or ()]
            if not flags and not _flags(source, one, options):
                return False
        if not on:
            return False
    return True


def _is_negated(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and dotted(test.left) == "__name__"


def _flags(source: Source, test: ast.expr, options: Options, depth: int = 3) -> list[str] | None:
    """The options that ``test`` reads; [] for one that none has a say in; None where that is not known."""
    statement = source.syntax.statement_of(test)
    held = options.held(source, statement)
    found: list[str] = []
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute) and held is not None and dotted(node.value) == held:
            found.append(node.attr)
        elif isinstance(node, ast.Name) and node.id != held:
            if imported(source.syntax, node) is not None or source.syntax.is_builtin(node):
                continue
            values = source.bindings.values(node)
            if not values or depth == 0 or parameter(source.syntax.function_of(node), node.id) is not None:
                return None
            for value in values:
                inner = _flags(source, value, options, depth - 1)
                if inner is None:
                    return None
                found += inner
    return found
