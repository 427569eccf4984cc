"""Integers that a function puts into a tensor and reads out again, though it knew them all along."""

from __future__ import annotations

import ast

from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.syntax.written import integer
from patcher.facts.tables.torch_api import INT64
from patcher.facts.values.sizes import Sizes
from patcher.rule import Code

_TYPED = frozenset({"torch.IntTensor", "torch.LongTensor"})
_MAKERS = frozenset({"torch.tensor", "torch.as_tensor"}) | _TYPED
_WHOLE = INT64 | {"torch.int32", "torch.int"}
#: What becomes of all elements -> how Python says it.
_TOGETHER = {"max": "max", "min": "min", "amax": "max", "amin": "min", "sum": " + ", "prod": " * "}
#: What carries the same numbers on.
_CARRIED = frozenset({"cpu", "detach", "clone", "contiguous", "cuda"})


class KnownNumbers(Analysis):
    """Which elements of tensors the code of one module knows without asking the tensor."""

    def scalar(self, e: ast.expr) -> Code | None:
        """The integer that ``e``, a tensor of one element, holds, as code of what it was made of; None: not known."""
        code = self._code(e)
        parts: list[tuple[ast.expr, ast.AST]] = (
            [(p, p) for p in code.parts if isinstance(p, ast.expr)] if code is not None else []
        )
        names = [n for n in ast.walk(e) if isinstance(n, ast.Name)] if code is not None else []
        parts += [(n, self.syntax.statement_of(d.node)) for n in names for d in self.inference.definitions(n)]
        return None if any(self.facts.ask(Unchanged).why_changed(p, since, e) for p, since in parts) else code

    def _code(self, e: ast.expr) -> Code | None:
        match e:
            case ast.Subscript(value=base, slice=index):
                elements, at = self._elements(base), integer(index)
                known = elements and at is not None and -len(elements) <= at < len(elements)
                return self._whole(elements[at]) if known and elements and at is not None else None
            case ast.Call(func=ast.Attribute(value=base, attr=attr), args=[], keywords=[]) if attr in _TOGETHER:
                return self._together(base, _TOGETHER[attr])
            case ast.Call(func=func, args=[base], keywords=[]):
                owner, _, last = (self.syntax.qualified(func) or "").rpartition(".")
                if owner == "torch" and last in _TOGETHER:
                    return self._together(base, _TOGETHER[last])
        content = self._content(e)
        one = self._elements(e) or ([content] if content is not None and self._is_number(content) else [])
        return self._whole(one[0]) if len(one) == 1 else None

    def _whole(self, e: ast.expr) -> Code | None:
        if self.facts.ask(Sizes).is_integer(e):
            return Code("{0}", (e,))
        return Code("int({0})", (e,)) if not self.facts.writing.why_not_builtin("int") else None

    def _together(self, base: ast.expr, how: str) -> Code | None:
        content, elements, sizes = self._content(base), self._elements(base), self.facts.ask(Sizes)
        called = how in ("max", "min")
        if called and self.facts.writing.why_not_builtin(how):
            return None
        match content:
            case ast.ListComp(elt=element, generators=[ast.comprehension(target=target, iter=items, ifs=[])]) if called:
                return Code(f"{how}({{0}} for {{1}} in {{2}})", (element, target, items))
        if content is not None and sizes.is_shape(content):
            return Code("{0}.numel()", (content,)) if how == " * " else None
        if not elements or not all(map(sizes.is_integer if called else sizes.is_count, elements)):
            return None  # of large numbers, the sum of a tensor wraps round
        holes = [f"{{{i}}}" for i in range(len(elements))]
        many = called and len(holes) > 1
        return Code(f"{how}({', '.join(holes)})" if many else how.join(holes), tuple(elements))

    def _elements(self, e: ast.expr) -> list[ast.expr]:
        """The numbers in the list or tuple that the tensor ``e`` was made of."""
        content = self._content(e)
        listed = content.elts if isinstance(content, (ast.List, ast.Tuple)) else []
        return listed if all(map(self._is_number, listed)) else []

    def _content(self, e: ast.expr, depth: int = 6) -> ast.expr | None:
        """What the tensor ``e`` of integers was made of, when the code that makes it is in sight."""
        match e:
            case ast.Name() if len(found := self.inference.definitions(e)) == 1 and depth:
                (d,) = found
                return self._content(d.value, depth - 1) if d.how == "assign" and not d.path and d.value else None
            case ast.Call(func=ast.Attribute(value=base, attr=attr), args=[], keywords=[]) if (
                attr in _CARRIED and depth
            ):
                return self._content(base, depth - 1)
            case ast.Call(func=func, args=[content], keywords=keywords) if self.syntax.qualified(func) in _MAKERS:
                dtypes = [self.syntax.qualified(k.value) for k in keywords if k.arg == "dtype"]
                sizes = self.facts.ask(Sizes)
                if isinstance(content, ast.ListComp):
                    over = content.generators[0].iter
                    made = [d.value for d in self.inference.definitions(over)] if isinstance(over, ast.Name) else []
                    known = made != [] and all(isinstance(v, (ast.List, ast.ListComp)) for v in made)
                    return content if known and sizes.is_count(content.elt) and _WHOLE.issuperset(dtypes) else None
                parts = content.elts if isinstance(content, (ast.List, ast.Tuple)) else [content]
                typed = bool(dtypes) or self.syntax.qualified(func) in _TYPED
                known = typed or sizes.is_shape(content) or all(map(sizes.is_integer, parts))
                return content if known and _WHOLE.issuperset(dtypes) else None
        return None

    def _is_number(self, e: ast.expr) -> bool:
        own = self.inference.instance_attribute(e)
        value = self.inference.of(e) if own is None else self.inference.stored(*own)
        return value.is_number and not value.data
