"""Where ``print`` of Python is put aside for a function that writes the same, or nothing: on one process of many."""

from __future__ import annotations

import ast

from patcher.facts.syntax.tree import Syntax, dotted, walk

#: What such a function consists of.
_BODY = (ast.Expr, ast.If, ast.Return, ast.Assign, ast.Pass, ast.Import, ast.ImportFrom)
_DOING = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)
#: Calls that tell something of the process or of the time, and change nothing, by the last part of their names.
_TELLING = frozenset(
    "get_rank get_world_size is_available is_initialized is_main_process getenv get now time format strftime "
    "isoformat join int bool str len".split()
)


def hands_on_print(target: ast.Attribute, syntax: Syntax) -> bool:
    """Whether ``target``, which is assigned to, is ``builtins.print``, and gets a function that only writes with it."""
    statement = syntax.parents[target]
    if not _is_print(target, syntax) or not isinstance(statement, ast.Assign):
        return False
    name, around = dotted(statement.value), syntax.function_of(statement)
    made = [f for f in syntax.functions if f.name == name and syntax.function_of(f) is around]
    if len(made) != 1 or not isinstance(made[0], ast.FunctionDef) or made[0].decorator_list:
        return False
    bound = [(dotted(t), _is_print(s.value, syntax)) for s in syntax.by_type[ast.Assign] for t in s.targets]
    kept = {t for t, is_print in bound if is_print and (t, False) not in bound}
    kept |= {f"{made[0].args.kwarg.arg}.pop"} if made[0].args.kwarg is not None else set()
    return _only_writes([n for s in made[0].body for n in walk(s)], kept)


def _only_writes(nodes: list[ast.AST], kept: set[str | None]) -> bool:
    plain = all(isinstance(n, _BODY) for n in nodes if isinstance(n, ast.stmt))
    names = all(isinstance(t, ast.Name) for n in nodes if isinstance(n, ast.Assign) for t in n.targets)
    quiet = all(_is_quiet(n, kept) for n in nodes if isinstance(n, ast.Call))
    return plain and names and quiet and not any(isinstance(n, _DOING) for n in nodes)


def _is_print(e: ast.expr, syntax: Syntax) -> bool:
    if not isinstance(e, ast.Attribute) or e.attr != "print" or not isinstance(e.value, ast.Name):
        return False
    known = [what for name, what, _ in syntax.all_imports if name == e.value.id]
    return bool(known) and all(what in ("builtins", "__builtin__") for what in known)


def _is_quiet(call: ast.Call, kept: set[str | None]) -> bool:
    """Whether ``call`` writes with the ``print`` that was ``kept``, where Python does, or only tells something."""
    if dotted(call.func) in kept:
        return all(k.arg != "file" for k in call.keywords)  # which may be one of its own
    last = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    return last in _TELLING
