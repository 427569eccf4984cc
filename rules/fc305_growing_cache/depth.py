"""Whether what grows has three dimensions or more, as far as can be told: flags and ids are small."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import last_name
from patcher.facts.values.types import Category
from rules.fc305_growing_cache.places import EARLIER, KEPT, KEYS, VALUES, Place, Places

#: The last word of what has one row of integers or flags for each sample.
_FLAT = frozenset(
    "mask masks id ids idx index indices token tokens position positions label labels code codes length lengths".split()
)


class Depth(Analysis):
    """Looks for the dimensions of tensors."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.places = facts.ask(Places)

    def is_deep(self, call: ast.Call, place: Place, element: ast.expr, fresh: ast.expr) -> bool:
        """Whether the tensors have three dimensions or more, as far as can be told."""
        if place.last_word in _FLAT:
            return False
        for e in (call, element, fresh):
            value = self.inference.of(e)
            if value.is_tensor and value.dtype is not None and value.dtype.category in (Category.INT, Category.BOOL):
                return False
            if value.is_tensor and value.rank is not None and value.rank.base is None and e is not element:
                return value.rank.offset >= (2 if last_name(call.func) == "stack" else 3)
        dim = dimension(call)
        if dim is not None and (dim >= 2 or dim <= -2):
            return True
        scope = place.root if isinstance(place.root, ast.ClassDef) else self.syntax.function_of(call)
        texts = {ast.unparse(element), ast.unparse(fresh), *(ast.unparse(a) for a in self.places.alternatives(fresh))}
        if scope is not None and any(self._shows_depth(n, texts) for n in ast.walk(scope)):
            return True
        return dim in (1, -1) and bool(place.words & (KEYS | VALUES | KEPT | EARLIER))

    def _shows_depth(self, n: ast.AST, texts: set[str]) -> bool:
        """Whether ``n`` uses one of ``texts`` as only a tensor of three dimensions or more can be."""
        match n:
            case ast.Subscript(value=ast.Attribute(value=e, attr="shape"), slice=ast.Constant(value=int(i))):
                return i >= 2 and ast.unparse(e) in texts
            case ast.Subscript(value=e, slice=ast.Tuple(elts=parts)):
                return sum(not isinstance(p, ast.Constant) or p.value is not None for p in parts) > 2 and (
                    ast.unparse(e) in texts
                )
            case (
                ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Attribute(value=e, attr="shape"))
                | ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Call(func=ast.Attribute(value=e, attr="size")))
            ):
                return len(parts) > 2 and ast.unparse(e) in texts
            case ast.Call(func=ast.Attribute(value=e, attr="transpose" | "size" | "permute"), args=args):
                deep = [a for a in args if isinstance(a, ast.Constant) and isinstance(a.value, int) and a.value > 1]
                return bool(deep) and (ast.unparse(e) in texts or ast.unparse(n) in texts)
            case ast.Call(func=func, args=args):
                return last_name(func) in ("scaled_dot_product_attention", "bmm", "baddbmm") and any(
                    ast.unparse(a) in texts for a in args
                )
        return False


def dimension(call: ast.Call) -> int | None:
    """The dimension that a join is made along; None when it is not written as a number."""
    e = call.args[1] if len(call.args) > 1 else keyword(call, "dim") or keyword(call, "axis")
    if e is None:
        return 0
    try:
        found = ast.literal_eval(e)
    except (ValueError, TypeError):
        return None
    return found if isinstance(found, int) else None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """What ``call`` is given as ``name=``."""
    return next((k.value for k in call.keywords if k.arg == name), None)
