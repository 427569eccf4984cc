"""What a tensor operation gives: rank, dtype and shape of its result, from those of its operands."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from patcher.facts.syntax.tree import dotted
from patcher.facts.tables import torch_api as api
from patcher.facts.values.dimensions import RESHAPING
from patcher.facts.values.types import (
    BOOL,
    DEFAULT,
    FOREIGN,
    INT64,
    ONE,
    OTHER,
    SCALAR,
    UNKNOWN,
    Category,
    DType,
    Kind,
    Rank,
    Token,
    Value,
    arithmetic,
    broadcast,
    compare,
    promote,
    python,
    tensor,
)

Keywords = dict[str | None, ast.expr]


class Operations:
    """Results of torch functions and tensor methods; ``of`` tells what an argument holds."""

    def __init__(self, of: Callable[[ast.expr], Value]) -> None:
        self.of = of

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        """``torch.where`` of three values."""
        if not (a.is_tensor or b.is_tensor):
            return tensor(condition.rank, None, condition.shape)
        rank, shape = broadcast(a, b)
        both = tensor(rank, promote(a, b), shape)
        rank, shape = broadcast(both, condition)
        return tensor(rank, both.dtype, shape)

    def joined(self, e: ast.Call, name: str, parts: tuple[Value, ...]) -> Value:
        """``torch.cat`` or ``torch.stack`` of ``parts``."""
        first = parts[0]
        if not all(p.is_tensor for p in parts):
            return tensor() if any(p.is_tensor for p in parts) else UNKNOWN
        dtype = first.dtype if all(p.dtype and first.dtype and p.dtype.exactly(first.dtype) for p in parts) else None
        ranks = [p.rank for p in parts if p.rank is not None]
        rank = ranks[0].plus(1 if name == "stack" else 0) if ranks else None
        return tensor(rank, dtype)

    def dtype_of(self, expr: ast.expr | None) -> DType | None:
        """The dtype that an expression such as ``torch.float32`` or ``x.dtype`` names."""
        if expr is None:
            return None
        constant = self.of(expr).constant
        if isinstance(constant, DType):
            return constant
        if isinstance(constant, str) and (known := dtype_named(constant)) is not None:
            return known
        if isinstance(expr, ast.Attribute) and expr.attr == "dtype":
            return None
        return DType(Category.UNKNOWN, Token("dtype", (expr,)))

    def creator(self, e: ast.Call, what: str) -> Value:
        """A function of ``api.CREATORS``."""
        keywords = {k.arg: k.value for k in e.keywords}
        rule = api.CREATORS[what]
        dtype = self.dtype_of(keywords.get("dtype")) if "dtype" in keywords else None
        if rule == "like":
            like = self.of(e.args[0]) if e.args else UNKNOWN
            shape = None if self._is_elsewhere(keywords.get("device")) else like.shape
            return tensor(like.rank, dtype or (like.dtype if "dtype" not in keywords else None), shape)
        if "dtype" not in keywords:
            if rule == "float":
                dtype = DEFAULT
            elif rule == "arange":
                numbers = [self.of(a) for a in e.args] + [
                    self.of(keywords[k]) for k in ("start", "end", "step") if k in keywords
                ]
                if all(n.python in ("int", "size") for n in numbers):
                    dtype = INT64
                elif any(n.python == "float" for n in numbers):
                    dtype = DEFAULT
            elif rule == "value" and e.args:
                source = self.of(e.args[-1] if what == "torch.full" else e.args[0])
                if source.python == "float":
                    dtype = DEFAULT
                elif source.python == "bool":
                    dtype = BOOL
                elif source.python in ("int", "size"):
                    dtype = INT64
        rank: Rank | None = None
        if what in ("torch.arange", "torch.linspace", "torch.logspace"):
            rank = Rank(None, 1)
        elif what == "torch.eye":
            rank = Rank(None, 2)
        elif what in ("torch.tensor", "torch.as_tensor"):
            source = self.of(e.args[0]) if e.args else UNKNOWN
            rank = SCALAR if source.is_number else None
        elif what == "torch.full" or rule == "float":
            sizes = e.args[:1] if what == "torch.full" or "size" in keywords else e.args
            rank = self._sizes(list(sizes))
        return tensor(rank, dtype)

    def _sizes(self, arguments: list[ast.expr]) -> Rank | None:
        """The rank that ``view(*arguments)`` and its like give."""
        if len(arguments) == 1 and isinstance(arguments[0], (ast.Tuple, ast.List)):
            arguments = arguments[0].elts
        if not arguments:
            return None
        if any(isinstance(a, ast.Starred) for a in arguments):
            return None
        if len(arguments) == 1:
            value = self.of(arguments[0])
            if isinstance(arguments[0], ast.UnaryOp) or value.python in ("int", "number"):
                return Rank(None, 1)
            whole = isinstance(arguments[0], ast.Attribute) or (
                isinstance(arguments[0], ast.Call) and not arguments[0].args
            )
            return Rank(None, 1) if value.python == "size" and not whole else None
        return Rank(None, len(arguments))

    def reduced_with_dim(self, e: ast.Call) -> Value | None:
        """``x.max(dim)``: what its ``.values`` hold."""
        if not isinstance(e.func, ast.Attribute) or e.func.attr not in ("max", "min", "median", "sort", "topk"):
            return None
        x = self.of(e.func.value)
        if not x.is_tensor and x.kind is not Kind.UNKNOWN:
            return None
        if e.func.attr in ("sort", "topk"):
            return tensor(x.rank, x.dtype)
        keep = any(k.arg == "keepdim" and isinstance(k.value, ast.Constant) and k.value.value for k in e.keywords)
        return tensor(_kept(x.rank) if keep else x.rank.plus(-1) if x.rank else None, x.dtype)

    def operation(self, e: ast.Call, name: str, x: Value, arguments: list[ast.expr]) -> Value:
        """The tensor operation ``name`` on ``x``; ``arguments`` are those after ``x``."""
        keywords = {k.arg: k.value for k in e.keywords}
        if not x.is_tensor:
            x = tensor()
        if name == "numpy":
            return FOREIGN
        if name in api.HOST_READS:
            return python("number" if name == "item" else "container", data=True)
        if name in api.HOST_VALUES:
            return python(api.HOST_VALUES[name])
        if name == "type" and not e.args and not keywords:
            return python("str")
        parts = (self._by_element, self._reduced_or_converted, self._of_other_sizes)
        found = next((v for part in parts if (v := part(name, x, arguments, keywords)) is not None), None)
        if found is not None:
            return found
        if _in_place(name):
            return tensor(x.rank, x.dtype, x.shape) if name not in RESHAPING else tensor(None, x.dtype)
        return UNKNOWN

    def _by_element(self, name: str, x: Value, arguments: list[ast.expr], keywords: Keywords) -> Value | None:
        """What has the sizes of ``x``, or those of ``x`` and another operand."""
        inplace = _in_place(name)
        plain = name[:-1] if inplace else name
        if plain == "cumsum":
            dtype = self.dtype_of(keywords["dtype"]) if "dtype" in keywords else _summed(x.dtype)
            return tensor(x.rank, dtype, x.shape)
        if plain in ("masked_fill", "masked_scatter") and not inplace:  # a larger mask makes the result larger
            mask = self.of(arguments[0]) if arguments else UNKNOWN
            shape = x.shape if mask.is_tensor and broadcast(x, mask)[1] == x.shape else None
            return tensor(x.rank if shape else None, x.dtype, shape)
        if plain in api.SMOOTH_SAME or plain in ("masked_fill", "masked_scatter", "contiguous", "detach"):
            if plain in ("clamp", "clip", "clamp_min", "clamp_max") and not inplace:
                if not self._numbers(arguments, keywords):
                    return tensor()
                bounds = [self.of(a) for a in [*arguments, *keywords.values()]]
                floated = x.dtype is not None and x.dtype.category in (Category.BOOL, Category.INT)
                if floated and any(b.python not in ("int", "size", "none") for b in bounds):
                    return tensor(x.rank, None, x.shape)
            return tensor(x.rank, x.dtype, x.shape)
        if plain in api.SMOOTH_FLOAT or plain in api.STEEP_FLOAT or plain in ("softmax", "log_softmax"):
            named = keywords.get("dtype") or next((a for a in arguments if self._is_dtype(a)), None)
            dtype = self.dtype_of(named) if named is not None else x.dtype.floated() if x.dtype else None
            plainly = named is not None or all(self._numbers([a], {}) for a in arguments)
            return tensor(x.rank, dtype if plainly else None, x.shape)
        if name in api.PREDICATES:
            return tensor(x.rank, BOOL, x.shape)
        if name in ("eq", "ne", "lt", "le", "gt", "ge") and arguments:
            return compare(x, self.of(arguments[0]))
        if plain in ("add", "sub", "mul", "div") and arguments:
            result = arithmetic(x, self.of(arguments[0]), division=plain == "div")
            return replace(result, dtype=None) if {"rounding_mode", "alpha"} & set(keywords) else result
        return None

    def _reduced_or_converted(self, name: str, x: Value, arguments: list[ast.expr], keywords: Keywords) -> Value | None:
        """Fewer dimensions, or another dtype."""
        if name in api.REDUCTIONS:
            return self._reduction(name, x, arguments, keywords)
        if name in api.CASTS:
            return tensor(x.rank, self._cast(api.CASTS[name]), x.shape)
        if name in ("to", "type"):
            moved = any(map(self._is_elsewhere, (*arguments[:1], keywords.get("device"))))
            return tensor(x.rank, self._converted(x, arguments, keywords), None if moved else x.shape)
        if name in api.COMPLEX_METHODS:
            return tensor(x.rank if name != "view_as_complex" else None, OTHER)
        if name == "type_as" and arguments:
            return tensor(x.rank, self.of(arguments[0]).dtype, x.shape)
        return None

    def _of_other_sizes(self, name: str, x: Value, arguments: list[ast.expr], keywords: Keywords) -> Value | None:
        """Views, parts and products."""
        if name in ("view", "reshape"):
            if name == "view" and (keywords or (len(arguments) == 1 and not self._is_size(arguments[0]))):
                return tensor()
            return tensor(self._sizes(arguments), x.dtype)
        if name in ("view_as", "reshape_as", "expand_as") and arguments:
            other = self.of(arguments[0])
            return tensor(other.rank, x.dtype, other.shape)
        if name in ("expand", "repeat"):
            return tensor(self._sizes(arguments), x.dtype)
        if name == "unsqueeze":
            last = len(arguments) == 1 and ast.unparse(arguments[0]) == "-1"
            return tensor(
                x.rank.plus(1) if x.rank else None, x.dtype, x.shape.extended(ONE) if last and x.shape else None
            )
        if name == "squeeze":
            return tensor(None, x.dtype)
        if name == "flatten":
            flat = [a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, int)]
            if not arguments and not keywords:
                return tensor(Rank(None, 1), x.dtype)
            if len(flat) == len(arguments) == 2 and flat[0] >= 0 and flat[1] >= flat[0] and x.rank:
                return tensor(x.rank.plus(flat[0] - flat[1]), x.dtype)
            return tensor(None, x.dtype)
        if name in ("transpose", "permute", "swapaxes", "t", "flip", "roll", "tril", "triu", "index_select", "gather"):
            return tensor(x.rank, x.dtype)
        if name in ("matmul", "bmm", "mm", "masked_select", "narrow", "movedim", "repeat_interleave"):
            rank = {"masked_select": Rank(None, 1), "narrow": x.rank, "movedim": x.rank}.get(name)
            return tensor(rank, x.dtype)
        if name in ("argsort",):
            return tensor(x.rank, INT64, x.shape)
        if name in ("new_zeros", "new_ones", "new_empty", "new_full"):
            return tensor(None, self.dtype_of(keywords["dtype"]) if "dtype" in keywords else x.dtype)
        if name in ("chunk", "split", "unbind", "size", "sort", "topk", "unique", "nonzero", "where"):
            return UNKNOWN
        return None

    def _is_size(self, e: ast.expr) -> bool:
        """Whether this argument of ``view`` can be taken for a size: a bare name may hold a dtype."""
        value = self.of(e)
        if isinstance(e, (ast.Name, ast.Attribute)):
            return value.is_number or value.python == "container"
        return value.python != "dtype"

    def _numbers(self, arguments: list[ast.expr], keywords: Keywords) -> bool:
        return all(self.of(a).is_number or self.of(a).python == "none" for a in [*arguments, *keywords.values()])

    def cast(self, name: str, arguments: list[ast.expr]) -> DType | None:
        """The dtype that a method of that name converts to, whatever it is called on."""
        if name in api.COMPLEX_METHODS:
            return OTHER
        if name in api.CASTS:
            return self._cast(api.CASTS[name]) if not arguments else None
        named = [a for a in arguments if self.of(a).python == "dtype"] if name == "to" else []
        return self.dtype_of(named[0]) if named else None

    def _cast(self, name: str) -> DType:
        category = (
            Category.BOOL if name == "torch.bool" else Category.FLOAT if name in api.FLOAT_DTYPES else Category.INT
        )
        return DType(category, _canonical(name))

    def _converted(self, x: Value, arguments: list[ast.expr], keywords: Keywords) -> DType | None:
        named = keywords.get("dtype") or next((a for a in arguments if self._is_dtype(a)), None)
        if named is not None:
            return self.dtype_of(named)
        others = [*arguments, *(v for k, v in keywords.items() if k not in ("device", "non_blocking", "copy"))]
        if others and self.of(others[0]).is_tensor:
            return self.of(others[0]).dtype
        return x.dtype if all(map(self._is_device, others[:1])) and all(map(self._is_flag, others[1:])) else None

    def _is_dtype(self, e: ast.expr) -> bool:
        return self.of(e).python == "dtype" or (isinstance(e, ast.Attribute) and e.attr == "dtype")

    def _is_device(self, e: ast.expr) -> bool:
        """Whether an argument of ``to`` is a device: by its name, or a string such as "cuda:0"."""
        named = isinstance(e, ast.Constant) and isinstance(e.value, str) and e.value.islower() and "." not in e.value
        return named or (dotted(e) or "").rpartition(".")[2] == "device"

    def _is_elsewhere(self, e: ast.expr | None) -> bool:
        """Whether ``e`` names one device, whichever that of the module is.

        What is put there has the shape that it had, but meets no tensor of that shape: it may be the index of one, as
        ``x.cpu()`` may, and no operand beside it.
        """
        if isinstance(e, ast.Call):
            return self._is_device(e.func) and self._is_elsewhere(next(iter(e.args), None))
        return isinstance(e, ast.Constant) and isinstance(e.value, str)

    def _is_flag(self, e: ast.expr) -> bool:
        return isinstance(e, ast.Constant) and isinstance(e.value, bool)

    def _reduction(self, name: str, x: Value, arguments: list[ast.expr], keywords: Keywords) -> Value:
        if name in api.REDUCE_BOOL:
            dtype: DType | None = BOOL if _no_bytes(x.dtype) else OTHER
        elif name in api.REDUCE_INT:
            dtype = INT64
        elif name in api.REDUCE_SUM:
            dtype = _summed(x.dtype)
        else:
            dtype = x.dtype
        if "dtype" in keywords:
            dtype = self.dtype_of(keywords["dtype"])
        dims = [a for a in arguments if not (name in ("norm",) and a is arguments[0])]
        dim = keywords.get("dim") or keywords.get("axis") or (dims[0] if dims else None)
        if "other" in keywords or (name in ("std", "var") and dims and (len(dims) > 1 or not _is_int(dims[0]))):
            return tensor()
        if dim is None:
            return tensor(SCALAR, dtype)
        if name in ("max", "min", "median"):
            if self.of(dim).is_tensor:
                return tensor(None, None)
            return Value(Kind.PYTHON, python="container", elements=(tensor(None, dtype), tensor(None, INT64)))
        keep = keywords.get("keepdim") or (dims[1] if len(dims) > 1 else None)
        if isinstance(keep, ast.Constant) and keep.value:
            return tensor(_kept(x.rank), dtype)
        if isinstance(dim, (ast.Tuple, ast.List)):
            return tensor(x.rank.plus(-len(dim.elts)) if x.rank and keep is None else None, dtype)
        if keep is not None or not self.of(dim).is_number:
            return tensor(None, dtype)
        last = ast.unparse(dim) == "-1" and x.rank is not None and x.rank.least > 0  # a 0-d tensor stays as it is
        lead = x.shape.leading() if last and x.shape is not None else None
        return tensor(x.rank.plus(-1) if x.rank else None, dtype, lead)


def _in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _no_bytes(dtype: DType | None) -> bool:
    """Whether it is not uint8: of bytes ``any`` and ``all`` give a byte, and of anything else a boolean."""
    if dtype is None or dtype.category in (Category.UNKNOWN, Category.OTHER):
        return False
    return dtype.category is not Category.INT or (isinstance(dtype.which, str) and dtype.which != "torch.uint8")


def _summed(dtype: DType | None) -> DType | None:
    """The dtype of a sum: integers become int64, so an unknown dtype becomes another unknown one."""
    if dtype is None or dtype.category is Category.FLOAT:
        return dtype
    if dtype.category is Category.UNKNOWN:
        return DType(Category.UNKNOWN, Token("sum", (dtype.which,)) if dtype.which is not None else None)
    return INT64


def _is_int(e: ast.expr) -> bool:
    value = e.operand if isinstance(e, ast.UnaryOp) else e
    return isinstance(value, ast.Constant) and type(value.value) is int


def _kept(rank: Rank | None) -> Rank | None:
    """The rank after a reduction with ``keepdim``: that of the input, which had a dimension at least."""
    if rank is None or rank.base is None or rank.offset > 0:
        return rank
    return Rank(Token("reduced", (rank.base,)), rank.offset + 1)


def dtype_named(name: str) -> DType | None:
    """The dtype of that name ("torch.float32"); None where it is none."""
    if name == "torch.bool":
        return BOOL
    kinds = ((api.FLOAT_DTYPES, Category.FLOAT), (api.INT_DTYPES, Category.INT), (api.COMPLEX_DTYPES, Category.OTHER))
    return next((DType(category, _canonical(name)) for names, category in kinds if name in names), None)


def _canonical(name: str) -> str:
    short = {
        "float": "float32",
        "double": "float64",
        "half": "float16",
        "long": "int64",
        "int": "int32",
        "short": "int16",
    }
    last = name.rpartition(".")[2]
    return f"torch.{short.get(last, last)}"
