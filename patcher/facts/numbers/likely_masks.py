"""Which expressions are masks by what code near them says: enough for a report, never for a fix."""

from __future__ import annotations

import ast

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.numbers.likely_tensors import LikelyTensors
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.syntax.written import is_none
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Kind

Seen = frozenset[Definition]
#: Methods that give a mask of a mask.
_KEEPING = frozenset(
    "repeat_interleave repeat reshape view flatten squeeze unsqueeze clone contiguous expand expand_as masked_fill "
    "transpose permute t roll flip".split()
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOGIC = (ast.BitAnd, ast.BitOr, ast.BitXor)
#: Functions that do so, of what they are given first.
_KEPT_BY = frozenset({"einops.rearrange", "einops.repeat"} | {f"torch.{name}" for name in _KEEPING})
#: Functions and methods whose first argument, or that of a method, is a condition.
_TAKING = frozenset("where masked_fill masked_fill_ masked_select masked_scatter masked_scatter_ logical_not".split())


class LikelyMasks(Analysis):
    """Answers for one module."""

    def of(self, e: ast.expr, seen: Seen = frozenset()) -> bool:
        """Whether ``e`` is made by a comparison of what is likely a tensor, or boolean, also by a function."""
        match e:
            case ast.Name() if (over := self._gone_over(e)) is not None:
                return self.of(over, seen)  # a row of it
            case ast.Name():
                found = self.inference.definitions(e) - seen
                return bool(found) and all(self._bound(d, seen | found) for d in found)
            case ast.Attribute():
                return self.facts.ask(LikelyTensors).is_kept_mask(e)
            case ast.Subscript(value=ast.Call() as held, slice=ast.Constant(value=int() as part)):
                return self.of(held, seen) or self._returned(held, part, seen)
            case ast.Subscript(value=held, slice=index):
                return not self._is_key(index) and self.of(held, seen)  # a row of it
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self.of(operand, seen) or self.inference.of(operand).kind is Kind.UNKNOWN
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _LOGIC):
                return self.of(left, seen) or self.of(right, seen)
            case ast.Compare():
                return self.facts.ask(LikelyTensors).of(e)
            case ast.Call() if self.inference.of(e).is_boolean:
                return True
            case ast.Call(func=ast.Attribute(value=held, attr=method)) if method in _KEEPING and self.of(held, seen):
                return True
            case ast.Call(args=[held, *_]) if self.syntax.qualified(e.func) in _KEPT_BY:
                return self.of(held, seen)
            case ast.Call(args=[held, *_, ast.Constant(value="any" | "all")]):
                return self.syntax.qualified(e.func) == "einops.reduce" and self.of(held, seen)
            case ast.Call():
                return self._returned(e, None, seen)
        return False

    def _bound(self, d: Definition, seen: Seen) -> bool:
        value, path = d.part
        if d.how == "parameter":
            if self._is_said(d) or self._is_taken(d):
                return True
            given = [e for e in self.facts.ask(Callees).given(d) if not is_none(e)]
            return bool(given) and all(self.of(e, seen) for e in given)
        if d.how == "iteration" and value is not None:
            return (over := _part_of(value, path, self.syntax.builtin(value))) is not None and self.of(over, seen)
        if d.how not in ("assign", "augmented") or value is None or len(path) > 1:
            return False
        if path:
            return isinstance(value, ast.Call) and self._returned(value, path[0], seen)
        return self.of(value, seen)

    def _is_said(self, d: Definition) -> bool:
        """Whether the parameter is said to be a mask: ``Bool[Tensor, "b n"]``, ``BoolTensor``, or as it is called."""
        annotation = getattr(d.node, "annotation", None)
        for n in ast.walk(annotation) if annotation is not None else ():
            said = n.value if isinstance(n, ast.Subscript) else n
            if last_name(said) == ("Bool" if isinstance(n, ast.Subscript) else "BoolTensor"):
                return True
        return d.name.rpartition("_")[2] == "mask"

    def _is_taken(self, d: Definition) -> bool:
        """Whether the code takes the parameter as a condition: ``~keep``, ``x.masked_fill(keep, 0)``."""
        function = self.syntax.function_of(d.node) or self.syntax.parents[self.syntax.parents[d.node]]
        uses = self.flow_of(function).uses.get(d, []) if isinstance(function, _FUNCTIONS) else []
        return any(self._is_condition(use) for use in uses)

    def _is_condition(self, e: ast.expr) -> bool:
        """Whether ``e``, or a form of it, is turned round, or handed over as a condition."""
        parent = self.syntax.parents[e]
        match parent:
            case ast.Subscript(value=held) if held is e:
                return self._is_condition(parent)
            case ast.Attribute(attr=method) if method in _KEEPING:
                call = self.syntax.parents[parent]
                return isinstance(call, ast.Call) and call.func is parent and self._is_condition(call)
            case ast.UnaryOp(op=ast.Invert()):
                return True
            case ast.Call(func=func, args=args) if (name := last_name(func)) in _TAKING and e in args:
                is_function = self.syntax.qualified(func) is not None  # torch.masked_fill(x, mask), x.masked_fill(mask)
                return args.index(e) == int(is_function and name.startswith("masked"))
        return False

    def _returned(self, call: ast.Call, part: int | None, seen: Seen) -> bool:
        """Whether all functions that ``call`` may run return a mask, or one at ``part`` of what they return."""
        callees = self.facts.ask(Callees)
        here = callees.bodies(call)
        if here and None not in here:
            returned = [r for f in here if f is not None for r in self._returns(f)]
            picked = [_element(r, part) for r in returned]
            return bool(returned) and all(r is not None and self.of(r, seen) for r in picked)
        what = self.syntax.qualified(call.func)
        summaries = [self.project.function(name) for name in callees.of(call)]
        summaries = summaries or ([self.project.handed_on(what)] if what is not None else [])
        term = "mask" if part is None else f"mask@{part}"
        return bool(summaries) and all(s is not None and term in s.gives for s in summaries)

    def _is_key(self, index: ast.expr) -> bool:
        return isinstance(index, ast.Constant) and isinstance(index.value, str)

    def _gone_over(self, name: ast.Name) -> ast.expr | None:
        """What the comprehension around ``name`` that binds it goes over, ``zip`` taken apart."""
        for parent in self.syntax.ancestors(name):
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return None
            for g in getattr(parent, "generators", ()):
                if any(n is name for n in ast.walk(g.iter)):
                    continue  # it is read before the comprehension binds that name
                several = g.target.elts if isinstance(g.target, ast.Tuple) else [g.target]
                for i, target in enumerate(several):
                    if isinstance(target, ast.Name) and target.id == name.id:
                        path = (i,) if isinstance(g.target, ast.Tuple) else ()
                        return _part_of(g.iter, path, self.syntax.builtin(g.iter))
        return None

    def _returns(self, function: FunctionNode) -> list[ast.expr]:
        own = (r for r in self.syntax.own(function, ast.Return) if isinstance(r, ast.Return))
        return [r.value for r in own if r.value is not None]


def _element(e: ast.expr, part: int | None) -> ast.expr | None:
    if part is None:
        return e
    return e.elts[part] if isinstance(e, ast.Tuple) and part < len(e.elts) else None


def _part_of(over: ast.expr, path: tuple[int, ...], name: str | None) -> ast.expr | None:
    """What an iteration over ``over`` takes the items from that it binds at ``path``."""
    args = over.args if isinstance(over, ast.Call) else []
    if name == "zip":
        return args[path[0]] if len(path) == 1 and path[0] < len(args) else None
    if name == "enumerate":
        return args[0] if path == (1,) and args else None
    return over if not path else None
