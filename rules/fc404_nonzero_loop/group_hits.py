"""Which groups a loop visits that asks a mask for those with any rows: ``(mask.sum((1, 2)) > 0).nonzero()``."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.masks.listed import listed
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Category

#: What keeps an element zero or not, and does not move the groups.
_KEEPS_ZEROS = frozenset("bool int long float double half bfloat16 to type type_as contiguous detach clone cpu".split())
_SHAPES = frozenset("permute transpose movedim swapaxes view reshape unsqueeze squeeze contiguous clone".split())


@dataclass(frozen=True)
class Hits:
    """The groups ``mask[e]`` that have any rows. ``chosen``: the expression that reads them from the tensor.

    ``one_element``: whether the loop gets a tensor with one element and a dimension, not a number. ``doubtful``:
    whether it is not known that no element of the mask is negative. ``count``: the number of groups, when a one-hot
    encoding says it.
    """

    chosen: ast.expr
    mask: ast.Name
    one_element: bool
    doubtful: bool = False
    count: ast.expr | None = None


class GroupHits(Analysis):
    """Takes the iterable of a loop apart."""

    def none_when_compiled(self, iterable: ast.expr) -> bool:
        """Whether compiled code has nothing to visit: ``None if torch.compiler.is_compiling() else ...``."""
        match self.meaning(iterable):
            case ast.IfExp(test=ast.Call(func=func), body=ast.Tuple(elts=[]) | ast.Constant(value=None)):
                return self.syntax.qualified(func) in api.EAGER_GUARDS
        return False

    def meaning(self, e: ast.expr) -> ast.expr:
        """``e``, or the one expression that a name stands for, and no other one with it."""
        if isinstance(e, ast.Name):
            definitions = self.inference.definitions(e)
            one = next(iter(definitions)) if len(definitions) == 1 else None
            if one is not None and one.how == "assign" and one.value is not None and not one.path:
                match self.syntax.parents[one.value]:
                    case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()):
                        return one.value
        return e

    def of(self, iterable: ast.expr) -> Hits | None:
        """What the loop over ``iterable`` visits, when that are the groups of a mask that have any rows."""
        chosen = self.meaning(iterable)
        if isinstance(iterable, ast.Name) and chosen is not iterable and not self._read_once(iterable):
            return None
        inner, column, flat = chosen, True, False
        while True:
            match inner:
                case ast.Call(func=ast.Attribute(value=value, attr="tolist" | "cpu" | "numpy"), args=[], keywords=[]):
                    inner = value
                case ast.Call(func=ast.Attribute(value=value, attr="squeeze" | "flatten"), args=args, keywords=[]):
                    if [ast.unparse(a) for a in args] not in ([], ["-1"], ["1"]):
                        return None
                    inner, flat = value, True
                case ast.Call(func=ast.Attribute(value=value, attr="view" | "reshape"), args=[shape], keywords=[]):
                    if ast.unparse(shape) != "-1":
                        return None
                    inner, flat = value, True
                case ast.Subscript(value=value, slice=ast.Constant(value=0)):
                    inner, column = value, False
                case _:
                    break
        places = listed(inner, self.syntax)
        if places is None or places[1] is column:
            return None
        found, mask = places[0], self._any(places[0])
        if not isinstance(mask, ast.Name):
            return None
        origin = self._origin(mask)
        if origin is None or (isinstance(origin, ast.Name) and not _is_above(self.meaning(found))):
            return None
        count = None
        if isinstance(origin, ast.Call):
            count = next((k.value for k in origin.keywords if k.arg == "num_classes"), None)
            count = origin.args[1] if len(origin.args) > 1 else count
        return Hits(chosen, mask, column and not flat, isinstance(origin, ast.Name), count)

    def is_plain(self, iterable: ast.expr) -> bool:
        """Whether the loop visits what the host knows: a range, or modules."""
        match self.meaning(iterable):
            case ast.Call(
                func=ast.Name(id="range" | "enumerate" | "zip" | "reversed" | "list" as name) as func, args=args
            ):
                return self.syntax.is_builtin(func) and all(name == "range" or self.is_plain(a) for a in args)
            case ast.Call(func=ast.Attribute(value=value, attr="items" | "values" | "keys" | "children"), args=[]):
                return self.is_plain(value)
            case ast.Attribute() as own:
                held = self.inference.of(own)
                return self.inference.instance_attribute(own) is not None and not held.is_tensor and not held.data
            case ast.List() | ast.Tuple():
                return True
        return False

    def same(self, a: ast.Name, b: ast.Name) -> bool:
        """Whether both names hold one tensor with the same elements, as far as the names tell."""
        function = self.syntax.function_of(a)
        if a.id != b.id or self.inference.definitions(a) != self.inference.definitions(b) or function is None:
            return False
        for node in ast.walk(function):
            match node:
                case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()) if name == a.id:
                    return False
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)):
                    if name == a.id and attr.endswith("_"):
                        return False
                case ast.AugAssign(target=ast.Name(id=name)) if name == a.id:
                    return False
        return True

    def none_of(self, test: ast.expr) -> ast.Subscript | None:
        """``counts[e]`` when ``test`` asks whether it is zero, and ``counts`` says how often each number occurs."""
        match test:
            case ast.Compare(left=ast.Subscript() as counted, ops=[ast.Eq()], comparators=[ast.Constant(value=0)]):
                pass
            case ast.UnaryOp(op=ast.Not(), operand=ast.Subscript() as counted):
                pass
            case _:
                return None
        return counted if self._counted(counted) is not None else None

    def counts(self, counted: ast.Subscript, mask: ast.expr) -> bool:
        """Whether ``counted`` is zero only where ``mask``, ``numbers == e``, has nothing."""
        match mask:
            case ast.Compare(left=ast.Name() as numbers, ops=[ast.Eq()], comparators=[ast.Name(id=group)]):
                of = self._counted(counted)
                own = isinstance(counted.slice, ast.Name) and counted.slice.id == group
                return own and of is not None and self.same(numbers, of)
        return False

    def _counted(self, counted: ast.Subscript) -> ast.Name | None:
        """The tensor whose numbers are counted: ``torch.bincount(numbers.flatten(), minlength=8).tolist()``."""
        e = self.meaning(counted.value)
        while isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and self.syntax.qualified(e.func) is None:
            if e.func.attr not in ("tolist", "cpu", "numpy"):
                return None
            e = e.func.value
        if not isinstance(e, ast.Call) or self.syntax.qualified(e.func) != "torch.bincount" or len(e.args) != 1:
            return None
        match e.args[0]:
            case ast.Name() as numbers:
                return numbers
            case ast.Call(
                func=ast.Attribute(value=ast.Name() as numbers, attr="flatten" | "view" | "reshape" | "ravel")
            ):
                return numbers
        return None

    def read_in(self, counted: ast.Subscript, loop: ast.For) -> ast.expr | None:
        """What ``counted`` is looked up in, when that has a name that only ``loop`` reads."""
        function = self.syntax.function_of(loop)
        made = self.meaning(counted.value)
        if function is None or not isinstance(counted.value, ast.Name) or made is counted.value:
            return None
        inside = set(ast.walk(loop))
        reads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == counted.value.id]
        return made if all(n in inside or isinstance(n.ctx, ast.Store) for n in reads) else None

    def _read_once(self, name: ast.Name) -> bool:
        function = self.syntax.function_of(name)
        if function is None:
            return False
        return sum(isinstance(n, ast.Name) and n.id == name.id for n in ast.walk(function)) == 2

    def _any(self, e: ast.expr) -> ast.expr | None:
        """The mask of three dimensions, when ``e`` says for each of its first one whether it holds anything."""
        e = self.meaning(e)
        match e:
            case ast.Compare(left=left, ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=0)]):
                return self._any(left)
            case ast.Call(func=func, args=[left, ast.Constant(value=0)], keywords=[]):
                if self.syntax.qualified(func) in ("torch.greater", "torch.gt", "torch.ne", "torch.not_equal"):
                    return self._any(left)
            case ast.Call(func=ast.Attribute(value=left, attr="gt" | "greater" | "ne"), args=[ast.Constant(value=0)]):
                return self._any(left)
        if not isinstance(e, ast.Call) or not isinstance(e.func, ast.Attribute):
            return None
        what, arguments = self.syntax.qualified(e.func), list(e.args)
        name = e.func.attr
        if what is not None:
            if not what.startswith("torch.") or not arguments:
                return None
            receiver = arguments.pop(0)
        else:
            receiver = e.func.value
        arguments += [k.value for k in e.keywords if k.arg in ("dim", "axis")]
        if name not in ("sum", "any", "amax", "count_nonzero") or len(arguments) != 1:
            return None
        try:
            dims = ast.literal_eval(arguments[0])
        except ValueError:
            return None
        every = {d % 3 for d in dims} == {1, 2} if isinstance(dims, (tuple, list)) else False
        return receiver if every and isinstance(receiver, ast.Name) else None

    def _origin(self, mask: ast.Name) -> ast.expr | None:
        """What ``mask`` is a view of: a one-hot encoding, a comparison, or a parameter; None for anything else."""
        e: ast.expr = mask
        for _ in range(12):
            value = self.inference.of(e)
            if value.dtype is not None and value.dtype.category is Category.FLOAT:
                return None
            match e:
                case ast.Name() if (stands_for := self.meaning(e)) is not e:
                    e = stands_for
                case ast.Name() if all(d.how == "parameter" for d in self.inference.definitions(e)):
                    return e
                case ast.Compare():
                    return e
                case ast.Call(func=func) if (self.syntax.qualified(func) or "").rpartition(".")[2] == "one_hot":
                    return e
                case ast.Call(func=ast.Attribute(value=value_of, attr=attr)) if attr in _KEEPS_ZEROS | _SHAPES:
                    e = value_of
                case _:
                    return None
        return None


def _is_above(e: ast.expr) -> bool:
    """Whether ``e`` asks what is greater than something, and so leaves out what is below zero."""
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute):
        return e.func.attr in ("greater", "gt")
    return isinstance(e, ast.Compare) and isinstance(e.ops[0], ast.Gt)
