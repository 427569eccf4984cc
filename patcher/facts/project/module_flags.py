"""Flags of a module that are set once, and then only by whoever asks for it: ``DEBUG = False``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted

#: What reads the environment, as source spells it.
ENVIRONMENT = frozenset({"os.environ.get", "os.getenv", "environ.get", "getenv"})


def module_flags(syntax: Syntax) -> Iterator[tuple[str, bool]]:
    """Names that the top level binds once, to True or False, with that value.

    A function may set one to what it is given (``def set_debug(on): global DEBUG; DEBUG = on``), or to what the
    environment says: both take somebody who asks for it. What is set to anything else is no flag, but a state.
    """
    stores = [n for n in syntax.by_type[ast.Name] if isinstance(n.ctx, ast.Store)]
    at_top = [n for n in stores if syntax.function_of(n) is None]
    for n in at_top:
        held = _bool(syntax.parents[n]) if sum(other.id == n.id for other in at_top) == 1 else None
        later = [s for s in stores if s.id == n.id and (f := syntax.function_of(s)) and _is_global(s.id, f, syntax)]
        if held is not None and all(_is_asked_for(s, syntax) for s in later):
            yield n.id, held


def _bool(statement: ast.AST) -> bool | None:
    match statement:
        case (
            ast.Assign(targets=[ast.Name()], value=ast.Constant(value=bool(value)))
            | ast.AnnAssign(value=ast.Constant(value=bool(value)))
        ):
            return value
    return None


def _is_global(name: str, function: FunctionNode, syntax: Syntax) -> bool:
    return any(name in g.names for g in syntax.own(function, ast.Global) if isinstance(g, ast.Global))


def _is_asked_for(store: ast.Name, syntax: Syntax) -> bool:
    """Whether ``store`` takes what its function is given, or what the environment says."""
    function, statement = syntax.function_of(store), syntax.parents[store]
    if function is None or not isinstance(statement, ast.Assign):
        return False
    value, named = statement.value, {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
    a = function.args
    if isinstance(value, ast.Name) and value.id in {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)}:
        return True
    read = {
        t.id
        for s in syntax.own(function, ast.Assign)
        if isinstance(s, ast.Assign) and _reads_environment(s.value)
        for t in s.targets
        if isinstance(t, ast.Name)
    }
    return _reads_environment(value) or not read.isdisjoint(named)


def _reads_environment(e: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and dotted(n.func) in ENVIRONMENT for n in ast.walk(e))
