"""Where ``print`` of Python is put aside for a function that writes the same, or nothing: on one process of many."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts.syntax.tree import FunctionNode, Syntax, walk
from patcher.facts.syntax.written import all_parameters

_BODY = (ast.Expr, ast.If, ast.Return, ast.Assign, ast.Pass, ast.Import, ast.ImportFrom)
#: Calls that tell something of the process or of the time, and change nothing.
_TELLING = frozenset(
    "torch.distributed.get_rank torch.distributed.get_world_size torch.distributed.is_available "
    "torch.distributed.is_initialized os.environ.get os.getenv datetime.datetime.now time.time time.strftime".split()
)
_READING = frozenset({"format", "time", "strftime", "isoformat", "join", "get"})
_CONVERTING = frozenset({"int", "bool", "str", "len"})


def hands_on_print(target: ast.Attribute, syntax: Syntax) -> bool:
    """Whether ``target``, which is assigned to, is ``builtins.print``, and gets a function that only writes with it."""
    statement = syntax.parents[target]
    if target.attr != "print" or not isinstance(statement, ast.Assign) or not _is_print(target, syntax):
        return False
    name = statement.value
    around = syntax.function_of(statement)
    if not isinstance(name, ast.Name):
        return False
    made = [f for f in syntax.functions if f.name == name.id and syntax.function_of(f) is around]
    return len(made) == 1 and not made[0].decorator_list and _Writing(syntax, made[0]).is_all()


def _is_print(e: ast.expr, syntax: Syntax) -> bool:
    if not isinstance(e, ast.Attribute) or e.attr != "print" or not isinstance(e.value, ast.Name):
        return False
    known = [what for name, what, _ in syntax.all_imports if name == e.value.id]
    return bool(known) and all(what in ("builtins", "__builtin__") for what in known)


class _Writing:
    """What one function does beside writing."""

    def __init__(self, syntax: Syntax, function: FunctionNode, depth: int = 3) -> None:
        self.syntax = syntax
        self.function = function
        self.depth = depth

    def is_all(self) -> bool:
        """Whether it is a function that writes, or tells something, and does nothing else."""
        if isinstance(self.function, ast.AsyncFunctionDef):
            return False
        statements = [n for s in self.function.body for n in walk(s) if isinstance(n, ast.stmt)]
        plain = (isinstance(s, _BODY) and self._binds_names(s) for s in statements)
        return all(plain) and all(map(self._is_quiet, self._doing()))

    def _binds_names(self, statement: ast.stmt) -> bool:
        return not isinstance(statement, ast.Assign) or all(isinstance(t, ast.Name) for t in statement.targets)

    def _doing(self) -> Iterator[ast.AST]:
        for statement in self.function.body:
            for n in walk(statement):
                if isinstance(n, (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)):
                    yield n

    def _is_quiet(self, n: ast.AST) -> bool:
        if not isinstance(n, ast.Call):
            return False
        func = n.func
        if self._writes(func):
            return all(k.arg != "file" for k in n.keywords)  # which may be one of its own
        if self.syntax.qualified(func) in _TELLING or self.syntax.builtin(n) in _CONVERTING:
            return True
        if isinstance(func, ast.Attribute):
            own = self.function.args.kwarg
            popped = func.attr == "pop" and own is not None and isinstance(func.value, ast.Name)
            if popped and isinstance(func.value, ast.Name) and own is not None and func.value.id == own.arg:
                return True
            return func.attr in _READING and isinstance(func.value, (ast.Constant, ast.Call))
        made = [f for f in self.syntax.functions if isinstance(func, ast.Name) and f.name == func.id]
        mine = self.depth > 0 and len(made) == 1 and made[0] is not self.function and not n.args and not n.keywords
        return mine and _Writing(self.syntax, made[0], self.depth - 1).is_all()

    def _writes(self, func: ast.expr) -> bool:
        """Whether ``func`` is a name that stands for the ``print`` of Python, as it was."""
        if not isinstance(func, ast.Name) or func.id in {p.arg for p in all_parameters(self.function.args)}:
            return False
        bound = [
            s
            for s in self.syntax.by_type[ast.Assign]
            if any(isinstance(t, ast.Name) and t.id == func.id for t in s.targets)
        ]
        return len(bound) == 1 and _is_print(bound[0].value, self.syntax)
