"""Whether code of the same module, around a statement or around a call that leads to it, may catch what it raises."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from functools import cached_property

from patcher.facts import Facts
from patcher.facts import torch_api as api
from patcher.facts.analysis import Analysis
from patcher.facts.syntax import FunctionNode, dotted

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TRIES: tuple[type[ast.AST], ...] = tuple(getattr(ast, n) for n in ("Try", "TryStar") if hasattr(ast, n))
_LEAVING = (ast.Return, ast.Break, ast.Continue)
#: Errors that are there to be caught.
_SIGNALS = frozenset({"StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit", "KeyboardInterrupt"})
#: How names of errors end that nobody uses to steer a program.
_ERRORS = ("Error", "Exception", "Warning")


class Caught(Analysis):
    """What the ``try`` and ``with`` statements of one module catch."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._reached: dict[ast.AST, frozenset[str]] = {}

    def why(self, statement: ast.stmt, names: Sequence[str]) -> str | None:
        """None when nothing in the module catches an error of ``statement``, of one of ``names``, as far as is seen."""
        if any(name in _SIGNALS or self._is_signal(name) for name in names):
            return "the error is there to be caught"
        child: ast.AST = statement
        for parent in self.syntax.ancestors(statement):
            if isinstance(parent, _TRIES) and self._stops(parent, child, names):
                return "the error is caught around it"
            if isinstance(parent, (ast.With, ast.AsyncWith)):
                for item in parent.items:
                    e = item.context_expr
                    what = self.syntax.qualified(e.func if isinstance(e, ast.Call) else e) or ""
                    if not what.startswith(("torch.", "contextlib.nullcontext")):
                        return f"`{ast.unparse(e)}` around it may catch the error"
            endless = isinstance(parent, ast.While) and isinstance(parent.test, ast.Constant)
            if endless and not any(isinstance(n, (ast.Break, ast.Return)) for n in ast.walk(parent)):
                return "the error is what ends the loop"
            child = parent
        function = self.syntax.function_of(statement)
        for t in (t for kind in _TRIES for t in self.syntax.by_type[kind]) if function is not None else ():
            if self._stops(t, t.body[0], names) and function.name in self._called(t):  # type: ignore[attr-defined, union-attr]
                return f"errors of `{function.name}` are caught in this file"  # type: ignore[union-attr]
        for w in self.syntax.by_type[ast.With] if function is not None else ():
            if self._suppresses(w) and function.name in self._called(w):  # type: ignore[union-attr]
                return f"errors of `{function.name}` are caught in this file"  # type: ignore[union-attr]
        return None

    def _suppresses(self, w: ast.AST) -> bool:
        """Whether a context manager of ``w`` that this file makes, or ``contextlib.suppress``, may catch errors."""
        for item in w.items if isinstance(w, ast.With) else ():
            e = item.context_expr
            last = (dotted(e.func if isinstance(e, ast.Call) else e) or "").rpartition(".")[2]
            trying = (isinstance(n, _TRIES) for f in self._functions.get(last, ()) for n in ast.walk(f))
            classes = (c for c in self.syntax.by_type[ast.ClassDef] if isinstance(c, ast.ClassDef) and c.name == last)
            if last == "suppress" or any(trying) or any(classes):
                return True
        return False

    def _is_signal(self, name: str) -> bool:
        """Whether ``name`` is a class of the project's own whose name does not tell of an error."""
        return name[:1].isupper() and not hasattr(builtins, name) and not name.endswith(_ERRORS)

    def _stops(self, t: ast.AST, child: ast.AST, names: Sequence[str]) -> bool:
        """Whether an error in ``child``, a part of the ``try`` statement ``t``, may end there."""
        final = t.finalbody  # type: ignore[attr-defined]
        if child in final:
            return False
        if any(isinstance(n, _LEAVING) for s in final for n in ast.walk(s)):
            return True
        return child in t.body and any(_catches(h.type, names) for h in t.handlers)  # type: ignore[attr-defined]

    def _called(self, t: ast.AST) -> frozenset[str]:
        """The names of the functions of the module that the body of ``t`` may get to; properties are among them."""
        known = self._reached.get(t)
        if known is None:
            found: set[str] = set()
            waiting = [name for s in t.body for name in self._names(s)]  # type: ignore[attr-defined]
            while waiting:
                name = waiting.pop()
                if name not in found:
                    found.add(name)
                    waiting += [n for f in self._functions.get(name, ()) for s in f.body for n in self._names(s)]
            known = self._reached[t] = frozenset(found)
        return known

    @cached_property
    def _functions(self) -> dict[str, list[FunctionNode]]:
        """The functions of the module by their names."""
        found: dict[str, list[FunctionNode]] = {}
        for f in (f for kind in _FUNCTIONS for f in self.syntax.by_type[kind] if isinstance(f, _FUNCTIONS)):
            found.setdefault(f.name, []).append(f)
        return found

    def _names(self, s: ast.stmt) -> Iterator[str]:
        """The names of functions that ``s`` calls: ``forward`` for what may be a module."""
        for n in ast.walk(s):
            if isinstance(n, ast.Attribute) and any(f.decorator_list for f in self._functions.get(n.attr, ())):
                yield n.attr
            if not isinstance(n, ast.Call):
                continue
            last = (dotted(n.func) or "").rpartition(".")[2]
            if isinstance(n.func, ast.Attribute):
                last = n.func.attr
            yield last
            if last in self._functions:
                continue
            if isinstance(n.func, ast.Name):
                around = [f for f in self.syntax.ancestors(n) if isinstance(f, _FUNCTIONS)]
                if any(self.syntax.binds(f, last) for f in around):
                    yield from ("forward", "__call__", *self._handed({f.name for f in around}))
            elif not isinstance(n.func, ast.Attribute) or (
                last not in api.TENSOR_ONLY and self.syntax.qualified(n.func) is None and self._is_kept(last)
            ):
                yield from ("forward", "__call__")

    def _is_kept(self, name: str) -> bool:
        """Whether something is stored in an attribute of that name."""
        found = self.syntax.by_type[ast.Attribute]
        return any(isinstance(a, ast.Attribute) and a.attr == name and isinstance(a.ctx, ast.Store) for a in found)

    def _handed(self, wrappers: set[str]) -> Iterator[str]:
        """Functions that are decorated with one of ``wrappers``, or given to one of them."""
        for f in (f for same in self._functions.values() for f in same):
            decorators = (d.func if isinstance(d, ast.Call) else d for d in f.decorator_list)
            if any((dotted(d) or "").rpartition(".")[2] in wrappers for d in decorators):
                yield f.name
        for call in self.syntax.by_type[ast.Call]:
            if isinstance(call, ast.Call) and (dotted(call.func) or "").rpartition(".")[2] in wrappers:
                for a in [*call.args, *(k.value for k in call.keywords)]:
                    yield (dotted(a) or "").rpartition(".")[2]


def _catches(caught: ast.expr | None, names: Sequence[str]) -> bool:
    """Whether ``except caught`` may catch an error of one of ``names``, or the one that compiled code raises."""
    if caught is None:
        return True
    if isinstance(caught, ast.Tuple):
        return any(_catches(c, names) for c in caught.elts)
    kind = getattr(builtins, (dotted(caught) or "").rpartition(".")[2], None)
    raised = [getattr(builtins, name, None) for name in (*names, "RuntimeError")]
    if not names or not (isinstance(kind, type) and all(isinstance(r, type) for r in raised)):
        return True
    return any(issubclass(r, kind) for r in raised if isinstance(r, type))
