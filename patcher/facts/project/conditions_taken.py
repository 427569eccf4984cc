"""Which parameters a function takes as a bool or as a boolean tensor, alike: it does nothing but check them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted, walk

#: Checks that take a tensor and nothing else, and those that take a bool and nothing else.
_OF_TENSORS = frozenset({"torch._check_tensor_all", "torch._check_tensor_all_with", "torch._assert_async"})
_OF_BOOLS = frozenset({"torch._check", "torch._check_with"})
_TESTS = frozenset({"isinstance", "torch.is_tensor"})


def conditions_taken(
    function: FunctionNode, nodes: Iterable[ast.AST], syntax: Syntax, resolve: Callable[[str], str]
) -> frozenset[str]:
    """Return the parameters of ``function`` that are only checked: what differs by their type is the same check.

    ``nodes``: those of ``function``.
    """
    called = {resolve(dotted(n.func) or "?") for n in nodes if isinstance(n, ast.Call)}
    if function.decorator_list or called.isdisjoint(_OF_TENSORS):
        return frozenset()
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return frozenset(
        n for n in names if _mention(function.body, n) and _Checked(n, syntax, resolve).only(function.body)
    )


class _Checked:
    """What statements do with the parameter ``name``."""

    def __init__(self, name: str, syntax: Syntax, resolve: Callable[[str], str]) -> None:
        self.name, self.syntax, self.resolve = name, syntax, resolve

    def only(self, body: list[ast.stmt]) -> bool:
        """Whether ``body`` only checks it, where it is a tensor or a bool."""
        return all(map(self._is_checked, (s for s in body if _mention([s], self.name))))

    def _is_checked(self, s: ast.stmt) -> bool:
        match s:
            case ast.If(test=ast.Call(func=func, args=[ast.Name(id=name), *_])) if name == self.name:
                if self._what(func) == "callable":  # neither a tensor nor a bool
                    return self.only(s.orelse)
                arms = ((s.body, _OF_TENSORS), (s.orelse, _OF_BOOLS))
                return self._what(func) in _TESTS and all(len(a) == 1 and self._is_check(a[0], of) for a, of in arms)
            case ast.If(test=test, body=body, orelse=orelse) if not _mention([test], self.name):
                return self.only(body) and self.only(orelse)
        return self._is_check(s, frozenset())

    def _what(self, func: ast.expr) -> str:
        plain = isinstance(func, ast.Name) and self.syntax.is_builtin(func)
        return dotted(func) or "" if plain else self.resolve(dotted(func) or "?")

    def _is_check(self, s: ast.stmt, kinds: frozenset[str]) -> bool:
        """Whether ``s`` only checks it, by one of the functions ``kinds`` or as any value."""
        match s:
            case ast.Assert() | ast.If(body=[ast.Raise()], orelse=[]):
                return True
            case ast.Expr(value=ast.Call(func=func, args=args)) if self._what(func) in kinds:
                ran = (n for a in args if not isinstance(a, ast.Lambda) for n in ast.walk(a))
                return all(
                    last == "all" for n in ran if isinstance(n, ast.Call) for last in [getattr(n.func, "attr", "")]
                )
        return False


def _mention(nodes: list[ast.stmt] | list[ast.expr], name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for s in nodes for n in walk(s))
