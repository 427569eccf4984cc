"""What an expression in a loop over picked rows is, when every row of it is made of the same row of what was picked."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass, replace

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.written import given, is_none, short
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Kind

#: Functions and methods that compute each element by itself.
_ELEMENTWISE = (
    api.SMOOTH_SAME | api.SMOOTH_FLOAT | api.STEEP_FLOAT | api.PREDICATES | frozenset(api.CASTS)
) - frozenset("dropout_ identity_".split()) | frozenset("to type type_as contiguous detach clone pow float".split())
_CONVERSIONS = frozenset(api.CASTS) | frozenset("to type type_as contiguous clone detach".split())
#: Functions of PyTorch that only look at what they get, or make a view of a weight.
_FIXED_METHODS = api.ALIASING | _ELEMENTWISE | frozenset("size dim numel".split())
_PLAIN = frozenset("int float bool str len range getattr hasattr isinstance min max abs format".split())
#: Modules that mix rows, or draw random numbers for each.
_MIXES = frozenset(
    f"torch.nn.{n}"
    for n in "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d LSTM GRU RNN "
    "MultiheadAttention TransformerEncoder TransformerEncoderLayer Conv1d Conv2d Conv3d Flatten".split()
)


class Refused(Exception):  # noqa: N818 - it is no error, it is the answer
    """There is no proof; the text says what is missing."""


class Sort(enum.Enum):
    """What an expression is to the rows that were picked.

    ``FIXED``: the same for all rows. ``ROWS``: of each row by itself. ``PARTS``: a tuple of such. ``FACTOR``: one
    weight for each row, ``COLUMN``: as a column. ``WEIGHED``: rows times their weight. ``PICKED``: row numbers.
    ``MASK``: says of each row whether it was picked.
    ``EITHER``: one or the other, by the path that was taken.
    """

    FIXED = "fixed"
    ROWS = "rows"
    PARTS = "parts"
    FACTOR = "factor"
    COLUMN = "column"
    WEIGHED = "weighed"
    PICKED = "picked"
    MASK = "mask"
    EITHER = "either"


@dataclass(frozen=True)
class Held:
    """What an expression is. ``raw``: whether it may be the tensor that rows were picked from."""

    sort: Sort
    raw: bool = False


FIXED, ROWS = Held(Sort.FIXED), Held(Sort.ROWS)
#: Of these, a row that is picked twice has the sum.
_LINEAR = (Sort.FACTOR, Sort.COLUMN, Sort.WEIGHED)


@dataclass(frozen=True)
class Picked:
    """What stands in the place of an expression that picks rows, or weights of rows, or one group.

    ``of``: what it is picked from. ``mask``: the mask that picks them, row by row; None: their numbers do. ``at``: the
    number of the weight, None for rows; with ``places``, it is the place of each row. ``turned``: ``of`` has places
    first. ``column``: weights as a column. The group's number itself has no ``of``.
    """

    of: ast.expr | None = None
    mask: ast.Name | None = None
    at: ast.expr | None = None
    places: bool = False
    turned: bool = False
    column: bool = False

    @property
    def weighs(self) -> bool:
        """Whether it is a weight for each row that is picked by its number."""
        return self.mask is None and (self.places or self.at is not None)

    def alike(self, other: Picked) -> bool:
        """Whether both are written alike."""
        ours, theirs = ([ast.dump(e) if e else "" for e in (p.of, p.at)] for p in (self, other))
        return ours == theirs and replace(self, of=None, at=None) == replace(other, of=None, at=None)


@dataclass(frozen=True)
class GroupMask:
    """The mask that rows are picked by: ``of``, or what ``of`` has for the group, without the dimension in front.

    ``boolean``: it is known to be of bools.
    """

    of: ast.expr
    of_group: bool = False
    squeezed: bool = False
    boolean: bool = False


class RowValues(Analysis):
    """Goes through the statements of one loop.

    ``picked``: what expressions pick; ``copied``: those that are handed on to what may change them in place.
    ``weights``: what is picked by both numbers. ``group``: the name of the group's number. ``parts``: what one part is
    taken of for each group. ``taken_for``: the callables that are taken to compute each row by itself.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.picked: dict[ast.AST, Picked] = {}
        self.copied: set[ast.AST] = set()
        self.weights: Picked | None = None
        self.group = ""
        self.parts: list[ast.expr] = []
        self.taken_for: dict[str, None] = {}
        self._bound: dict[str, Held] = {}
        self._index: dict[str, bool] = {}
        self._rows = self._places = ""
        self._masks: dict[str, str] = {}
        self._used: set[str] = set()

    # --- names ------------------------------------------------------------------------------------------------------

    def index(self, name: str, one_element: bool) -> None:
        """``name`` is the group's number, or (``one_element``) a tensor of shape (1,) that holds it."""
        self._index[name] = one_element
        self.group = self.group or name
        self._bound.pop(name, None)

    def pick(self, rows: str, places: str) -> None:
        """``rows`` and ``places`` are from here on the numbers of the picked rows and of their places."""
        self._rows, self._places = rows, places
        for name in (rows, places):
            self._bound[name] = Held(Sort.PICKED)

    def bind(self, name: str, held: Held) -> None:
        """``name`` holds that from here on."""
        if name in (self._rows, self._places):
            raise Refused(f"`{name}` is assigned twice")
        self._index.pop(name, None)
        self._bound[name] = held

    def known(self) -> dict[str, Held]:
        """What all names hold."""
        return dict(self._bound)

    def restore(self, known: dict[str, Held]) -> None:
        """Go back to what `known` was."""
        self._bound = dict(known)

    def meet(self, other: dict[str, Held]) -> None:
        """Two branches meet."""
        for name in {*self._bound, *other}:
            a, b = self._bound.get(name, FIXED), other.get(name, FIXED)
            self._bound[name] = Held(a.sort, a.raw or b.raw) if a.sort is b.sort else Held(Sort.EITHER)

    def is_mask(self, e: ast.expr) -> bool:
        """Whether ``e`` is a mask of rows: ``numbers == group``, whether any of those is, or a view of one."""
        match e:
            case ast.Name(id=name):
                return self._sort(name) is Sort.MASK
            case ast.Compare(ops=[ast.Eq()]):
                return self.inference.of(e).kind is not Kind.PYTHON
            case ast.Call(func=ast.Attribute(value=value, attr="any"), args=args, keywords=keywords):
                return self.is_mask(value) and len(args) + len(keywords) == 1
            case ast.Call(func=ast.Attribute(value=value, attr="view" | "reshape"), args=[shape], keywords=[]):
                return self.is_mask(value) and ast.unparse(shape) == "-1"
            case ast.Call(func=ast.Attribute(value=value, attr="flatten" | "bool"), args=[], keywords=[]):
                return self.is_mask(value)
        return False

    def bind_mask(self, name: str, e: ast.expr) -> None:
        """``name`` holds the mask ``e``, after `is_mask`, from here on: it is the same for all rows."""
        for n in ast.walk(e):
            if isinstance(n, ast.Name) and self._sort(n.id) not in (Sort.FIXED, Sort.MASK):
                raise Refused(f"`{short(e)}` is made of picked rows")
        first = next((n.id for n in ast.walk(e) if isinstance(n, ast.Name) and n.id in self._masks), name)
        if name in self._masks:
            raise Refused(f"`{name}` is assigned twice")
        self._masks[name] = self._masks.get(first, first)
        self._bound[name] = Held(Sort.MASK)

    def use_mask(self, name: str) -> None:
        """Rows are picked by the mask ``name``, or go where it says; all of them by one mask, or views of it."""
        self._used.add(self._masks[name])
        if len(self._used) > 1:
            raise Refused("the rows are picked by one mask, and go where another one says")

    def _sort(self, name: str) -> Sort:
        return self._bound.get(name, FIXED).sort

    # --- what stands for the group, and for having no rows ----------------------------------------------------------

    def is_index(self, e: ast.expr) -> bool:
        """Whether ``e`` is the group's number: ``int(e.item())``, ``e[0]``."""
        match e:
            case ast.Name(id=name):
                return name in self._index and not self._index[name]
            case ast.Call(func=ast.Name(id="int") as func, args=[inner], keywords=[]):
                return self.syntax.is_builtin(func) and (self.is_index(inner) or self._holds(inner))
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
                return self.is_index(inner) or self._holds(inner)
            case ast.Subscript(value=inner, slice=ast.Constant(value=0)):
                return self._holds(inner)
        return False

    def _holds(self, e: ast.expr) -> bool:
        return isinstance(e, ast.Name) and self._index.get(e.id, False)

    def emptiness(self, test: ast.expr) -> bool | None:
        """True: ``test`` asks whether no row was picked; False: whether any was; None: something else."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                turned = self.emptiness(inner)
                return None if turned is None else not turned
            case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=limit)]) if self._count(left):
                if (limit == 0 and isinstance(op, (ast.Eq, ast.LtE))) or (limit == 1 and isinstance(op, ast.Lt)):
                    return True
                if (limit == 0 and isinstance(op, (ast.Gt, ast.NotEq))) or (limit == 1 and isinstance(op, ast.GtE)):
                    return False
            case _ if self._count(test):
                return False
        return None

    def _count(self, e: ast.expr) -> bool:
        match e:
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]):
                return self._count(inner)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="any" | "sum" | "count_nonzero"), args=[]):
                return self._sort(name) is Sort.MASK
            case ast.Call(func=func, args=[ast.Name(id=name)], keywords=[]) if self._sort(name) is Sort.MASK:
                return self.syntax.qualified(func) in ("torch.any", "torch.sum", "torch.count_nonzero")
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="numel" | "nelement"), args=[]):
                return name in (self._rows, self._places)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[ast.Constant(value=0)]):
                return name in (self._rows, self._places)
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant(value=0)):
                return name in (self._rows, self._places)
            case ast.Call(args=[ast.Name(id=name)]) if self.syntax.builtin(e) == "len":
                return name in (self._rows, self._places)
        return False

    # --- expressions ------------------------------------------------------------------------------------------------

    def group_mask(self, e: ast.expr) -> GroupMask:
        """The mask that rows are picked by."""
        if not self._index:
            if self.of(e).sort is not Sort.FIXED:
                raise Refused(f"`{short(e)}` is made of picked rows")
            return GroupMask(e, boolean=isinstance(e, ast.Compare))
        if isinstance(e, ast.Name):
            known = [d.value for d in self.inference.definitions(e) if d.how == "assign" and not d.path]
            e = known[0] if len(known) == 1 and known[0] is not None else e
        inner = e
        match e:
            case ast.Call(func=ast.Attribute(value=value, attr="squeeze"), args=[ast.Constant(value=0)], keywords=[]):
                inner = value
        match inner:
            case ast.Subscript(value=ast.Name() as whole, slice=ast.Name() as at) if self._holds(at):
                if inner is e:
                    raise Refused(f"`{short(e)}` has three dimensions")
                return GroupMask(whole, of_group=True)
            case ast.Subscript(value=ast.Name() as whole, slice=at) if self.is_index(at):
                return GroupMask(whole, of_group=True, squeezed=inner is not e)
        raise Refused(f"`{short(e)}` is not known to be the mask of one group")

    def of(self, e: ast.expr) -> Held:
        """What ``e`` is. Raises Refused when a row of it may depend on others."""
        if self._index and self.is_index(e):
            self.picked[e] = Picked()
            return FIXED
        match e:
            case ast.Constant():
                return FIXED
            case ast.Name(id=name):
                if self._index.get(name, False):
                    raise Refused(f"`{name}` is used as a tensor")
                held = self._bound.get(name, FIXED)
                if held.sort in (Sort.PICKED, Sort.MASK):
                    raise Refused(f"`{name}` is used for more than picking rows")
                if held.sort is Sort.EITHER:
                    raise Refused(f"`{name}` holds rows on one path only")
                return held
            case ast.Attribute(value=value, attr=attr):
                inner = self.of(value)
                if inner.sort is Sort.FIXED or attr in ("dtype", "device"):
                    return FIXED
            case ast.Subscript():
                return self._subscript(e)
            case ast.UnaryOp(op=op, operand=operand):
                inner = self.of(operand)
                if inner.sort is Sort.FIXED or (inner.sort is Sort.ROWS and not isinstance(op, ast.Not)):
                    return Held(inner.sort)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(e, self.of(left), op, self.of(right))
            case ast.BoolOp() | ast.Compare() | ast.Tuple() | ast.JoinedStr() | ast.FormattedValue() | ast.Slice():
                for child in ast.iter_child_nodes(e):
                    if isinstance(child, ast.expr):
                        self.fixed(child)
                return FIXED
            case ast.Call():
                return self._call(e)
        raise Refused(f"`{short(e)}` is not known to keep rows apart")

    def fixed(self, e: ast.expr) -> None:
        """Refuse when ``e`` depends on rows."""
        if self.of(e).sort is not Sort.FIXED:
            raise Refused(f"`{short(e)}` depends on which rows were picked")

    def binary(self, e: ast.AST, a: Held, op: ast.operator, b: Held) -> Held:
        """``a op b``, written as ``e``."""
        sorts = {a.sort, b.sort}
        if isinstance(op, ast.MatMult):
            if sorts == {Sort.FIXED} or (a.sort is Sort.ROWS and b.sort is Sort.FIXED):
                return Held(a.sort)
        elif sorts <= {Sort.FIXED, Sort.ROWS}:
            return ROWS if Sort.ROWS in sorts else FIXED
        elif isinstance(op, ast.Mult):
            if sorts == {Sort.ROWS, Sort.COLUMN} or sorts in ({Sort.WEIGHED, Sort.FIXED}, {Sort.WEIGHED, Sort.ROWS}):
                return Held(Sort.WEIGHED)
            if Sort.FIXED in sorts and not sorts & {Sort.PICKED, Sort.PARTS}:
                return Held((sorts - {Sort.FIXED}).pop())
        elif isinstance(op, ast.Div) and b.sort is Sort.FIXED and a.sort is not Sort.PARTS:
            return Held(a.sort)
        raise Refused(f"`{short(e)}` is not known to keep rows and weights apart")

    def _subscript(self, e: ast.Subscript) -> Held:
        """``x[rows]`` and ``x[mask]``, rows; with one more index, of places or one number, a weight for each."""
        value, at = e.value, e.slice
        parts = at.elts if isinstance(at, ast.Tuple) else [at]
        names = [p.id if isinstance(p, ast.Name) else "" for p in parts]
        masked = bool(names[0]) and self._sort(names[0]) is Sort.MASK
        if not masked and not any(n and self._sort(n) is Sort.PICKED for n in names):
            return self._part(value, at, parts)
        self.fixed(value)
        if any(isinstance(n, ast.Name) and (n.id in self._bound or n.id in self._index) for n in ast.walk(value)):
            raise Refused(f"`{short(value)}` is made in the loop")
        mask = parts[0] if masked and isinstance(parts[0], ast.Name) else None
        if mask is not None:
            self.use_mask(mask.id)
        if names == [mask.id if mask is not None else self._rows] or (names == ["", self._rows] and is_none(parts[0])):
            self.picked[e] = Picked(value, mask)
            return Held(Sort.ROWS, raw=True)
        column = len(parts) == 3 and is_none(parts[2])
        found = None
        if len(parts) == 2 + column:
            if mask is not None and isinstance(parts[1], (ast.Name, ast.Constant)) and not is_none(parts[1]):
                self.fixed(parts[1])
                found = Picked(value, mask, parts[1], column=column)
            elif mask is None and set(names[:2]) == {self._rows, self._places}:
                found = Picked(value, places=True, turned=names[0] == self._places, column=column)
            elif mask is None and names[0] == self._rows and self._index and self.is_index(parts[1]):
                found = Picked(value, at=parts[1], column=column)
        if found is None:
            raise Refused(f"`{short(e)}` picks in a way that is not known")
        if found.weighs:
            if self.weights is not None and not self.weights.alike(found):
                raise Refused("the rows have two kinds of weights")
            self.weights = found
        self.picked[e] = found
        return Held(Sort.COLUMN if column else Sort.FACTOR)

    def _part(self, value: ast.expr, at: ast.expr, parts: list[ast.expr]) -> Held:
        """A part of what is not picked, or of rows."""
        inner = self.of(value)
        if self._holds(at) and self._is_list(value):
            self.picked[at] = Picked()
            return FIXED
        for p in parts:
            self.fixed(p)
        if inner.sort is Sort.FIXED:
            if self._index and self.is_index(at):
                self.parts.append(value)
            return FIXED
        first, rest = ast.unparse(parts[0]), parts[1:]
        if first in (":", "...") and len(rest) == 1:
            if inner.sort is Sort.FACTOR and is_none(rest[0]):
                return Held(Sort.COLUMN)
            if inner.sort is Sort.ROWS and isinstance(rest[0], ast.Slice):
                return inner
        raise Refused(f"`{short(value)}[{short(at)}]` is not known to keep rows apart")

    def _is_list(self, e: ast.expr) -> bool:
        """Whether ``e`` is a list of modules, which takes a tensor with one element for its number."""
        own = self.inference.instance_attribute(e)
        store = self.inference.class_facts(own[0]).initial(own[1]) if own is not None else None
        made = store.value if store is not None else None
        return isinstance(made, ast.Call) and self.syntax.qualified(made.func) == "torch.nn.ModuleList"

    # --- calls ------------------------------------------------------------------------------------------------------

    def _call(self, e: ast.Call) -> Held:
        if any(isinstance(a, ast.Starred) for a in e.args) or any(k.arg is None for k in e.keywords):
            raise Refused(f"`{short(e)}` has arguments that are not known")
        if any(k.arg in ("inplace", "out") for k in e.keywords):
            raise Refused(f"`{short(e)}` may change rows in place")
        what = self.syntax.qualified(e.func)
        if what is None and isinstance(e.func, ast.Attribute) and self.inference.instance_attribute(e.func) is None:
            receiver = self.of(e.func.value)
            if receiver.sort is not Sort.FIXED:
                return self._method(e, e.func.attr, [receiver, *self._arguments(e)])
            if e.func.attr in _FIXED_METHODS and self._all_fixed(e):
                return FIXED
        elif what is not None and what.startswith("torch."):
            if what in api.RANDOM:
                raise Refused(f"`{short(e.func)}` draws random numbers")
            if what.endswith("_"):
                raise Refused(f"`{short(e.func)}` changes something in place")
            if self._all_fixed(e):
                return FIXED
            return self._method(e, what.rpartition(".")[2], self._arguments(e))
        elif self._is_plain(e.func) and self._all_fixed(e):
            return FIXED
        return self._taken(e)

    def _is_plain(self, function: ast.expr) -> bool:
        return isinstance(function, ast.Name) and function.id in _PLAIN and self.syntax.is_builtin(function)

    def _arguments(self, e: ast.Call) -> list[Held]:
        return [self.of(a) for a in given(e)]

    def _all_fixed(self, e: ast.Call) -> bool:
        return all(a.sort is Sort.FIXED for a in self._arguments(e))

    def _taken(self, e: ast.Call) -> Held:
        """A call of a module or function that is taken to compute each row by itself, and may change it in place."""
        arguments = given(e)
        held = [self.of(a) for a in arguments]
        sorts = {h.sort for h in held}
        self.fixed(e.func)
        module = self.inference.of(e.func).module
        if module == "torch.nn.Dropout" and len(held) == 1 and sorts <= {Sort.ROWS, Sort.WEIGHED}:
            return Held(held[0].sort, held[0].raw)
        if Sort.ROWS not in sorts or not sorts <= {Sort.FIXED, Sort.ROWS}:
            raise Refused(f"what `{short(e)}` does is not known")
        if module in _MIXES:
            raise Refused(f"`{short(e.func)}` mixes rows")
        self.copied |= {a for a, h in zip(arguments, held, strict=True) if h.raw}
        self.taken_for[short(e.func)] = None
        return ROWS

    def _rounds(self, e: ast.Call, name: str) -> bool:
        """Whether a conversion is to ints or truth values."""
        dtypes = [self.syntax.qualified(a) for a in given(e)]
        return name in ("int", "long", "short", "bool") or any(d in api.INT_DTYPES | {"torch.bool"} for d in dtypes)

    def _method(self, e: ast.Call, name: str, held: list[Held]) -> Held:
        """A function of PyTorch; ``held``: the receiver and the arguments."""
        first, others = held[0], {h.sort for h in held[1:]}
        arguments = [ast.unparse(a) for a in given(e)][1 - len(held) :]
        fixed = others <= {Sort.FIXED}
        if fixed and name in _CONVERSIONS:
            if first.sort in _LINEAR and self._rounds(e, name):
                raise Refused(f"`{short(e)}` rounds what is weighed")  # the sum of two is not the one of their sum
            return first
        if first.sort is Sort.ROWS:
            if name in _ELEMENTWISE and others <= {Sort.FIXED, Sort.ROWS}:
                return ROWS
            if name in ("linear", "matmul", "mm") and fixed:
                return ROWS
            if name in ("chunk", "split") and fixed and _last(e):
                return Held(Sort.PARTS, first.raw)
            if name in ("reshape", "view") and fixed and len(arguments) == 2 and arguments[0] == "-1":
                return first
        if name == "squeeze" and arguments == ["1"] and first.sort in (Sort.ROWS, Sort.WEIGHED):
            return first
        if first.sort is Sort.FACTOR:
            columns = {"unsqueeze": (["-1"], ["1"]), "view": (["-1", "1"],), "reshape": (["-1", "1"],)}
            if arguments in columns.get(name, ()):
                return Held(Sort.COLUMN)
        if name in ("mul", "div") and len(held) == 2:
            return self.binary(e, first, ast.Mult() if name == "mul" else ast.Div(), held[1])
        raise Refused(f"`{short(e)}` is not known to keep rows apart")


def _last(e: ast.Call) -> bool:
    """Whether a chunk or split goes along the last dimension."""
    dims = [k.value for k in e.keywords if k.arg == "dim"] or e.args[-1:]
    return bool(dims) and ast.unparse(dims[0]) == "-1"
