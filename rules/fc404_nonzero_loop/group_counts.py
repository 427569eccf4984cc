"""Whether a loop over all groups finds a part of the weights for each of them."""

from __future__ import annotations

import ast

from patcher.facts.analysis import Analysis

_MAKERS = frozenset(f"torch.{n}" for n in "empty zeros ones randn rand full".split())


class GroupCounts(Analysis):
    """Compares the number of groups with what the constructor makes."""

    def short(self, loop: ast.For, count: ast.expr | None, parts: list[ast.expr]) -> ast.expr | None:
        """The first of ``parts`` (``weights[e]``) that may not have one for each of ``count`` groups; None without any.

        Where nothing is known of both, they are taken to fit.
        """
        if count is None:
            return None
        groups = self._left(loop, count)
        for part in parts:
            if self._chosen(part, loop):
                continue
            there = self._size(part)
            more = there is None and isinstance(count, ast.BinOp) and groups == self._spelled(count)
            if more or (there is not None and there != groups):
                return part
        return None

    def is_tensor(self, part: ast.expr) -> bool:
        """Whether ``part`` is a tensor, or a view of what has to be one."""
        viewed = isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "view"
        return viewed or self.inference.of(part).is_tensor

    def _left(self, loop: ast.For, count: ast.expr) -> str:
        """How many groups there are from the first on, without the last when the loop leaves that out."""
        match count:
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=1)):
                for node in loop.body:
                    match node:
                        case ast.If(
                            test=ast.Compare(ops=[ast.Eq() | ast.GtE()], comparators=[limit]), body=[ast.Continue()]
                        ) if self._spelled(limit) == self._spelled(left):
                            return self._spelled(left)
        return self._spelled(count)

    def _chosen(self, part: ast.expr, loop: ast.For) -> bool:
        """Whether ``part`` is looked at on one side of a branch of the loop alone."""
        for parent in self.syntax.ancestors(part):
            if parent is loop:
                return False
            if isinstance(parent, (ast.If, ast.IfExp)):
                return True
        return False

    def _size(self, part: ast.expr) -> str | None:
        """How many parts the constructor makes, as written there."""
        own = self.inference.instance_attribute(part)
        store = self.inference.class_facts(own[0]).initial(own[1]) if own is not None else None
        made = store.value if store is not None else None
        if isinstance(made, ast.Call) and made.args and self.syntax.qualified(made.func) == "torch.nn.Parameter":
            made = made.args[0]
        if not isinstance(made, ast.Call) or not made.args:
            return None
        what, first = self.syntax.qualified(made.func), made.args[0]
        if what in _MAKERS:
            first = first.elts[0] if isinstance(first, (ast.Tuple, ast.List)) and first.elts else first
            return self._spelled(first)
        if what == "torch.nn.ModuleList" and isinstance(first, (ast.ListComp, ast.GeneratorExp)):
            match first.generators:
                case [ast.comprehension(iter=ast.Call(args=[number]) as over, ifs=[])]:
                    return self._spelled(number) if self.syntax.builtin(over) == "range" else None
        return None

    def _spelled(self, e: ast.expr) -> str:
        """``e`` with the instance's attributes as the constructor makes them out of its arguments."""
        own = self.inference.instance_attribute(e)
        if own is not None:
            store = self.inference.class_facts(own[0]).initial(own[1])
            if store is not None and isinstance(store.value, (ast.Name, ast.Attribute, ast.Constant, ast.BinOp)):
                return self._spelled(store.value)
        if isinstance(e, ast.BinOp):
            return f"{self._spelled(e.left)} {type(e.op).__name__} {self._spelled(e.right)}"
        return ast.unparse(e)
