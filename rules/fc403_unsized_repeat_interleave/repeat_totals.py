"""How many elements ``repeat_interleave`` with a tensor of repeats gives, where the host knows it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.flow.definitions import Definition
from patcher.facts.flow.narrowing import Ruling
from patcher.facts.numbers.likely_tensors import LikelyTensors
from patcher.facts.syntax.tree import last_name
from patcher.facts.syntax.written import defaults, is_none
from patcher.facts.values.callees import Callees

_FROM_LIST = frozenset({"torch.tensor", "torch.as_tensor", "torch.LongTensor", "torch.IntTensor"})
_KEEPING = frozenset({"to", "long", "int", "cuda", "cpu", "contiguous"})
#: Those that hold any int that a list of sizes may hold; the others cut it off.
_WIDE = frozenset({"torch.long", "torch.int64", "torch.int", "torch.int32"})


@dataclass(frozen=True)
class Repeat:
    """A call without ``output_size``: ``x`` is repeated along ``dim``; ``x`` is None where the repeats stand alone.

    ``sure``: it is known that the repeats are a tensor. ``left_out``: the parameter that says the size, or does not.
    """

    call: ast.Call
    x: ast.expr | None
    repeats: ast.expr
    dim: ast.expr | None
    sure: bool = True
    left_out: str = ""


@dataclass(frozen=True)
class Total:
    """``template`` over ``parts`` is the size of the result. ``assumption``: what that takes for granted, or ""."""

    template: str
    parts: tuple[ast.expr, ...]
    assumption: str = ""


class RepeatTotals(Analysis):
    """Such calls of one module."""

    def of(self, call: ast.Call) -> Repeat | None:
        """``call`` when it repeats as a tensor says and is not told the size of the result."""
        named = {k.arg: k.value for k in call.keywords}
        left_out = self._left_out(named["output_size"]) if "output_size" in named else ""
        if left_out:
            del named["output_size"]
        if named.keys() - {"input", "repeats", "dim"} or any(isinstance(a, ast.Starred) for a in call.args):
            return None
        values = list(call.args)
        if self.syntax.qualified(call.func) != "torch.repeat_interleave":
            if not isinstance(call.func, ast.Attribute) or call.func.attr != "repeat_interleave":
                return None
            if self.syntax.qualified(call.func) is not None:
                return None
            values.insert(0, call.func.value)
        given = dict(zip(("input", "repeats", "dim"), values, strict=False)) | {k: v for k, v in named.items() if k}
        repeats = given.get("repeats")
        if repeats is None and set(given) == {"input"}:
            return Repeat(call, None, given["input"], None, left_out=left_out)
        if repeats is None or "input" not in given or self.inference.of(repeats).is_number:
            return None
        sure = self.presumed.of(repeats).is_tensor and self.presumed.sure(repeats, self.inference)
        if not sure and not self.facts.ask(LikelyTensors).of(repeats):
            return None
        return Repeat(call, given["input"], repeats, given.get("dim"), sure, left_out)

    def _left_out(self, size: ast.expr) -> str:
        """The parameter that ``size`` is, where that is None by default and calls of the file may leave it out."""
        found = self.inference.definitions(size) if isinstance(size, ast.Name) else frozenset()
        state = self.inference.state(size) if isinstance(size, ast.Name) else None
        d = next(iter(found)) if len(found) == 1 else None
        function = self.syntax.parents.get(self.syntax.parents[d.node]) if d is not None else None
        if d is None or d.how != "parameter" or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return ""
        default = defaults(function.args).get(d.name)
        if default is None or not is_none(default):
            return ""
        if state is not None and {Ruling.NOT_NONE, Ruling.TENSOR} & state.ruled.get(d, frozenset()):
            return ""
        calls = [
            c for c in self.syntax.by_type[ast.Call] if isinstance(c, ast.Call) and last_name(c.func) == function.name
        ]
        handed = [self.facts.ask(Callees).handed(c, function) for c in calls]
        return d.name if not calls or any(h is not None and d.node not in h for h in handed) else ""

    def total(self, repeat: Repeat) -> Total | str:
        """The size of the result along what is repeated, or why the host does not know it."""
        if repeat.left_out:
            return f"`{repeat.left_out}` is None unless it is given"
        if not repeat.sure:
            return f"`{ast.unparse(repeat.repeats)}` is not known to be a tensor"
        made = self._origin(repeat.repeats)
        what = self.syntax.qualified(made.func) if isinstance(made, ast.Call) else None
        if isinstance(made, ast.Call) and what in _FROM_LIST and made.args and self._is_wide(made):
            return self._of_list(repeat, made.args[0], made)
        if isinstance(made, ast.Call) and what in ("torch.full", "torch.full_like") and len(made.args) == 2:
            each = made.args[1]
            if made is repeat.repeats and repeat.x is not None and isinstance(each, ast.Constant) and self._int(each):
                return self._of_same(repeat, repeat.x, each)
        beside = self._beside(repeat.call)
        if beside is not None and (repeat.dim is None or ast.unparse(repeat.dim) == "0"):
            return Total("{0}", (beside,), f"the result has `{ast.unparse(beside)}` elements, like what it meets there")
        return "the number of repeats is known on the device only"

    def _of_list(self, repeat: Repeat, counts: ast.expr, made: ast.Call) -> Total | str:
        """The sum of the list that ``made`` makes the repeats of."""
        here = made is repeat.repeats
        if not isinstance(counts, ast.Name) or self.inference.of(counts).python != "container":
            return "the number of repeats is not known to come from a list"
        if not self.syntax.is_builtin(ast.Name("sum", ast.Load())):
            return "`sum` is another name here"
        unchanged = self.facts.ask(Unchanged)
        if not here and unchanged.why_changed(counts, made, repeat.call):
            return f"`{counts.id}` may be changed in the meantime"
        listed = self._listed(repeat.x, counts) if repeat.x is not None else None
        if listed is not None and unchanged.why_changed(counts, listed, repeat.call):
            return f"`{counts.id}` is not the list that what is repeated was made for"
        rows = repeat.x is None or listed is not None
        if rows and self._ints(counts):
            return Total("sum({0})", (counts,))
        if any(d.how != "parameter" for d in self.inference.definitions(counts)) and not self._ints(counts):
            return f"`{counts.id}` is not known to hold ints"
        return Total("sum({0})", (counts,), f"`{counts.id}` is a list of ints with one for each place that is repeated")

    def _of_same(self, repeat: Repeat, x: ast.expr, each: ast.expr) -> Total | str:
        if not isinstance(x, ast.Name):
            return f"`{ast.unparse(x)}` is not a plain name"
        if repeat.dim is None or (isinstance(repeat.dim, ast.Constant) and repeat.dim.value is None):
            return Total("{0}.numel() * {1}", (x, each))
        plain = self._steady(repeat.dim) and self._int(repeat.dim)
        return Total("{0}.shape[{1}] * {2}", (x, repeat.dim, each)) if plain else "no plain `dim`"

    def _origin(self, e: ast.expr, depth: int = 4) -> ast.expr:
        """What ``e`` was made by, conversions and names aside."""
        while depth and isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in _KEEPING:
            if self.syntax.qualified(e.func) is not None or not self._is_wide(e):
                break
            e, depth = e.func.value, depth - 1
        if isinstance(e, ast.Name) and depth:
            found = self.inference.definitions(e)
            only = next(iter(found)) if len(found) == 1 else None
            if only is not None and only.how == "assign" and only.value is not None and not only.path:
                changed = self.facts.ask(Unchanged).why_changed(e, self.syntax.statement_of(only.node), e)
                return e if changed else self._origin(only.value, depth - 1)
        return e

    def _is_wide(self, call: ast.Call) -> bool:
        """Whether ``call`` gives its elements no dtype that cuts off a large one, or makes truth values of them."""
        conversion = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
        for k in call.keywords:
            wide = k.arg == "dtype" and self.syntax.qualified(k.value) in _WIDE
            if not wide and k.arg not in ("device", "non_blocking", "copy", "requires_grad", "pin_memory"):
                return False
        given = [a for a in call.args if self.syntax.qualified(a) not in _WIDE] if conversion else []
        return all(isinstance(a, ast.Constant) or ast.unparse(a).endswith("device") for a in given)

    def _listed(self, x: ast.expr, counts: ast.Name) -> ast.Call | None:
        """The call that gives ``x`` one element for each of ``counts``: ``torch.arange(len(counts))``."""
        made = self._origin(x)
        if not isinstance(made, ast.Call) or self.syntax.qualified(made.func) != "torch.arange":
            return None
        counted = len(made.args) == 1 and self.syntax.builtin(made.args[0]) == "len"
        return made if counted and ast.unparse(made.args[0]) == f"len({counts.id})" else None

    def _ints(self, counts: ast.Name) -> bool:
        """Whether the list is known to hold ints and nothing else."""
        found = self.inference.definitions(counts)
        return bool(found) and all(self._lists_ints(d) for d in found)

    def _lists_ints(self, d: Definition) -> bool:
        if d.how == "parameter" and isinstance(d.node, ast.arg) and d.node.annotation is not None:
            return ast.unparse(d.node.annotation).strip("'\"") in ("list[int]", "List[int]", "typing.List[int]")
        if d.how != "assign" or d.path:
            return False
        match d.value:
            case ast.ListComp(elt=element):
                return self._int(element)
            case ast.List(elts=elements):
                return all(map(self._int, elements))
        return False

    def _int(self, e: ast.expr) -> bool:
        return self.inference.of(e).python in ("int", "size") or self.syntax.builtin(e) == "len"

    def _steady(self, e: ast.expr) -> bool:
        return all(isinstance(n, (ast.Constant, ast.Name, ast.UnaryOp, ast.USub, ast.Load)) for n in ast.walk(e))

    def _beside(self, call: ast.Call) -> ast.expr | None:
        """``n`` where the result meets ``torch.arange(n)`` in an operator."""
        parent = self.syntax.parents[call]
        if not isinstance(parent, ast.BinOp):
            return None
        other = self._origin(parent.left if parent.right is call else parent.right)
        if isinstance(other, ast.Call) and self.syntax.qualified(other.func) == "torch.arange" and len(other.args) == 1:
            size = other.args[0]
            if isinstance(size, ast.Name) and not self.presumed.of(size).is_tensor:
                return size if not self.facts.ask(Unchanged).why_changed(size, other, call) else None
        return None
