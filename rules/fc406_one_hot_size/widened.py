"""One-hot rows that are as wide as data asks for and are cut to a width that the host knows."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.flow.definitions import Definition

_LARGEST = frozenset({"max", "amax"})
#: What tells rows with gaps between them from others.
_STRIDED = frozenset(
    "as_strided data_ptr is_contiguous resize_ storage storage_offset stride untyped_storage view view_as".split()
)


@dataclass(frozen=True)
class Cut:
    """``whole``: ``one_hot(index, max(largest + 1, width))[..., :width]``.

    ``statements``: those that work out the number of classes and nothing else, right above the last, which holds
    ``whole``.
    """

    whole: ast.Subscript
    index: ast.Name
    width: ast.expr
    statements: tuple[ast.stmt, ...]


class WidenedOneHots(Analysis):
    """Such expressions of one module."""

    def of(self, node: ast.Subscript) -> Cut | str | None:
        """What ``node`` cuts; why that cannot be said in another way; or None when it is nothing of the kind."""
        match node:
            case ast.Subscript(
                value=ast.Call() as call,
                slice=ast.Tuple(
                    elts=[ast.Constant(value=dots), ast.Slice(lower=None, upper=ast.expr() as width, step=None)]
                ),
                ctx=ast.Load(),
            ) if dots is ... and self.syntax.qualified(call.func) == "torch.nn.functional.one_hot":
                pass
            case _:
                return None
        given = dict(zip(("input", "num_classes"), call.args, strict=False))
        given |= {k.arg: k.value for k in call.keywords if k.arg is not None}
        index, classes = given.get("input"), given.get("num_classes")
        if not isinstance(index, ast.Name) or classes is None or len(given) != 2:
            return None
        helpers: list[Definition] = []
        limits = self._limits(classes, helpers)
        if limits is None or not any(self._same(e, width) for e in limits):
            return None
        fixed = {n.id for e in (index, width) for n in ast.walk(e) if isinstance(n, ast.Name)}
        above = [more for e in limits if (more := self._above(e, index, helpers)) is not None]
        if len(above) != 1 or above[0] < 1:
            return None
        statement = self.syntax.statement_of(node)
        block = self.syntax.block_of(statement)
        made = {self.syntax.statement_of(d.node) for d in helpers}
        end = block.index(statement) + 1
        statements = tuple(block[end - len(made) - 1 : end])
        if set(statements) != {*made, statement}:
            return "the number of classes is worked out elsewhere"
        if fixed & {d.name for d in helpers}:
            return None
        if any(self._read_elsewhere(d, (*statements[:-1], node)) for d in helpers):
            return "the number of classes is read elsewhere, too"
        if isinstance(width, ast.Attribute) and not self.facts.ask(Unchanged).is_steady(width):
            return f"`{ast.unparse(width)}` may be another number each time"
        if self._strides_matter(node, statement):
            return "rows that were cut have other strides"
        return Cut(node, index, width, statements)

    def _strides_matter(self, node: ast.expr, statement: ast.stmt) -> bool:
        """Whether the strides of what ``node`` gives are asked for there, or of the local name that it gets."""
        uses: list[ast.expr] = [node]
        if isinstance(statement, ast.Assign) and statement.value is node:
            uses += self.readers(statement.targets[0]) or ()
        parents = [self.syntax.parents[use] for use in uses]
        return any(isinstance(p, ast.Attribute) and p.attr in _STRIDED for p in parents)

    def _limits(self, e: ast.expr, helpers: list[Definition]) -> list[ast.expr] | None:
        """The two numbers of which ``e`` is the larger one."""
        e = self._written(e, helpers)
        match e:
            case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]) if self.syntax.builtin(e):
                return self._limits(inner, helpers)
            case ast.Call(func=ast.Name(id="max"), args=[one, other], keywords=[]) if self.syntax.builtin(e):
                return [one, other]
        return None

    def _above(self, e: ast.expr, index: ast.Name, helpers: list[Definition]) -> int | None:
        """How much larger ``e`` is than the largest element of ``index``; None when it is not made of that."""
        mark = len(helpers)
        e = self._written(e, helpers)
        found: int | None = None
        match e:
            case (
                ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=int(more)))
                | ast.BinOp(left=ast.Constant(value=int(more)), op=ast.Add(), right=left)
            ):
                inner = self._above(left, index, helpers)
                found = None if inner is None else inner + more
            case ast.Call(func=ast.Name(id="int"), args=[inner_of], keywords=[]) if self.syntax.builtin(e):
                found = self._above(inner_of, index, helpers)
            case ast.Call(func=ast.Attribute(value=inner_of, attr="item"), args=[], keywords=[]):
                found = self._above(inner_of, index, helpers)
            case ast.Call(func=func, args=[ast.Name() as read], keywords=[]) if self._is_largest(func):
                found = 0 if self._same(read, index) else None
            case ast.Call(func=ast.Attribute(value=ast.Name() as read, attr=attr), args=[], keywords=[]):
                found = 0 if attr in _LARGEST and self._same(read, index) else None
        if found is None:
            del helpers[mark:]
        return found

    def _is_largest(self, func: ast.expr) -> bool:
        return self.syntax.qualified(func) in {f"torch.{name}" for name in _LARGEST}

    def _written(self, e: ast.expr, helpers: list[Definition]) -> ast.expr:
        """What the local name ``e`` stands for, where one assignment says so."""
        while isinstance(e, ast.Name):
            definitions = self.inference.definitions(e)
            one = next(iter(definitions)) if len(definitions) == 1 else None
            function = self.syntax.function_of(e)
            if one is None or one.how != "assign" or one.path or one.value is None or function is None:
                break
            statement = self.syntax.statement_of(one.node)
            plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1
            if not plain or self.syntax.function_of(one.node) is not function or one in helpers:
                break
            if isinstance(one.value, (ast.Constant, ast.Name)):
                break
            helpers.append(one)
            e = one.value
        return e

    def _same(self, a: ast.expr, b: ast.expr) -> bool:
        """Whether both are the same name or number. What stands between them binds the number of classes alone."""
        match a, b:
            case ast.Constant(value=int(one)), ast.Constant(value=int(other)):
                return one == other
            case ast.Name(id=one), ast.Name(id=other):
                return one == other
            case ast.Attribute(), ast.Attribute():
                return self.inference.instance_attribute(a) is not None and ast.unparse(a) == ast.unparse(b)
        return False

    def _read_elsewhere(self, d: Definition, parts: tuple[ast.AST, ...]) -> bool:
        readers = self.readers(d.node)
        inside = {n for s in parts for n in ast.walk(s)}
        return readers is None or any(r not in inside for r in readers)
