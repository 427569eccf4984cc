"""What an expression holds: a tensor (with rank, dtype and shape as far as they are known), a Python value, or unknown.

Ranks, dtypes and shapes are symbolic. What is not known is named by a `Token`: the same token, the same thing. Nothing
reads a token but to compare it, and it is made of syntax nodes and definitions, not of where these stand in the text.
Six presumptions, and no more, fill what source code does not say:

- an attribute of a constructor argument (``cfg.width``, ``self.cfg.width``) that is never called is configuration,
  hence a Python value;
- a name on which code that ``forward`` reaches uses what only a tensor has (``x.amax()``) is a tensor;
- a tensor of unknown dtype that meets float arithmetic or a function of floats (``mean``, ``torch.finfo``) is
  floating, and one that meets integer arithmetic is not boolean (else the dtype would depend on the branch taken);
- the weights of one module have one floating dtype (``model.half()`` converts them all);
- an attribute of unknown kind that an integer tensor is tested for equality with (``ids == self.words.picture``) is a
  Python number;
- a parameter whose default is a number, and an attribute that the constructor sets to one, hold finite numbers.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import reduce


class Kind(enum.Enum):
    """What sort of object."""

    TENSOR = "tensor"
    PYTHON = "python"
    MODULE = "module"
    UNKNOWN = "unknown"


class Category(enum.Enum):
    """A dtype as far as promotion cares.

    ``UNKNOWN``: nothing is known, so that the third presumption holds. ``OTHER``: it is complex, or one of several
    categories: nothing is presumed.
    """

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Token:
    """Something that is not known: equal tokens stand for one and the same thing.

    ``of``: what it is the shape, the rank or the dtype of (definitions, nodes, other tokens), compared by identity
    where these are.
    """

    about: str
    of: tuple[Hashable, ...] = ()


@dataclass(frozen=True)
class DType:
    """A dtype: its category, and which one it is (its name when that is known, "torch.float32"; None: no idea).

    ``converted``: what an unknown dtype becomes in float arithmetic, which is itself if it is floating already.
    """

    category: Category
    which: Token | str | None = None
    converted: bool = False

    def floated(self) -> DType:
        """The dtype after arithmetic with a Python float, or true division."""
        if self.category is Category.FLOAT:
            return self
        if self.category is Category.UNKNOWN:
            return DType(Category.FLOAT, self.which, converted=True)
        return self if self.category is Category.OTHER else DEFAULT

    def same(self, other: DType) -> bool:
        """Whether both are one dtype; an unknown one counts as floating when its twin is (third presumption)."""
        if self.which is None or self.which != other.which:
            return False
        return self.category is other.category or Category.UNKNOWN in (self.category, other.category)

    def exactly(self, other: DType) -> bool:
        """Whether both are one dtype even where an integer would take part in float arithmetic without an error."""
        return self.same(other) and (self.converted is other.converted)


@dataclass(frozen=True)
class Rank:
    """Number of dimensions: ``offset`` alone when ``base`` is None, else relative to that of ``base``.

    ``seen``: there are as many at least, for something needs them.
    """

    base: Token | None
    offset: int
    seen: int = field(default=0, compare=False)

    def plus(self, n: int) -> Rank:
        """``n`` dimensions more (or fewer)."""
        return Rank(self.base, self.offset + n, max(self.seen + n, 0))

    def with_seen(self, n: int) -> Rank:
        """The rank when there are ``n`` dimensions at least."""
        return Rank(self.base, self.offset, max(self.seen, n))

    @property
    def least(self) -> int:
        """How many dimensions there are at least."""
        return max(self.offset, self.seen, 0)

    def minus(self, other: Rank) -> int | None:
        """The difference, when it is known."""
        return self.offset - other.offset if self.base == other.base else None


@dataclass(frozen=True)
class Shape:
    """The sizes of ``base`` (None: there are none) without its last ``dropped`` ones, then those of ``appended``."""

    base: Token | None
    dropped: int = 0
    appended: tuple[Token, ...] = ()

    def leading(self) -> Shape | None:
        """The shape without its last dimension; None when it has none."""
        if self.appended:
            return replace(self, appended=self.appended[:-1])
        return replace(self, dropped=self.dropped + 1) if self.base is not None else None

    def extended(self, size: Token) -> Shape:
        """The shape with one more dimension at the end."""
        return replace(self, appended=(*self.appended, size))

    def row_dimensions(self, mask: Shape | None) -> int | None:
        """How many dimensions a mask that has the leading sizes of this shape leaves to a row; None: not proven."""
        shape: Shape | None = self
        for row in range(_MOST_ROW_DIMENSIONS + 1):
            if shape is None or mask is None:
                return None
            if shape == mask:
                return row
            shape = shape.leading()
        return None


_MOST_ROW_DIMENSIONS = 3
DEFAULT = DType(Category.FLOAT, "default")
NO_DIMENSIONS = Shape(None)
ONE = Token("one")
WEIGHTS = DType(Category.FLOAT, "weights")
SCALAR = Rank(None, 0)
BOOL = DType(Category.BOOL, "torch.bool")
#: A complex dtype, or one of several.
OTHER = DType(Category.OTHER)
INT64 = DType(Category.INT, "torch.int64")


@dataclass(frozen=True)
class Value:
    """What is known of one expression.

    ``python`` for a Python value: "int", "float", "bool", "none", "size" (a shape or its part), "str", "container",
    "dtype", "number" (int or float) or "" (unknown). ``data``: a Python value that was read out of a tensor.
    ``trainable``: a parameter, or made of one without recording. ``module``: dotted class of a module.
    """

    kind: Kind
    rank: Rank | None = None
    dtype: DType | None = None
    shape: Shape | None = None
    python: str = ""
    constant: object = None
    data: bool = False
    trainable: bool = False
    module: str = ""
    elements: tuple[Value, ...] = ()

    @property
    def is_tensor(self) -> bool:
        """Whether this is a tensor for sure."""
        return self.kind is Kind.TENSOR

    @property
    def is_scalar_tensor(self) -> bool:
        """Whether this is a 0-d tensor for sure."""
        return self.kind is Kind.TENSOR and self.rank == SCALAR

    @property
    def is_boolean(self) -> bool:
        """Whether this is a tensor of bools for sure."""
        return self.kind is Kind.TENSOR and self.dtype is not None and self.dtype.category is Category.BOOL

    @property
    def is_number(self) -> bool:
        """Whether this is a Python int, float or bool for sure (sizes count; their parts may be symbolic ints)."""
        return self.kind is Kind.PYTHON and self.python in ("int", "float", "bool", "number", "size")


UNKNOWN = Value(Kind.UNKNOWN)
#: What another library made (a numpy array, say): not known, and not to be taken for a tensor either.
FOREIGN = Value(Kind.UNKNOWN, python="foreign")
#: An object of a class of the project that is no module and no tensor; what its methods return is not known.
OBJECT = Value(Kind.UNKNOWN, python="object")
PYTHON = Value(Kind.PYTHON)
CONFIGURATION = Value(Kind.PYTHON, python="number")


def python(what: str, constant: object = None, data: bool = False) -> Value:
    """A Python value of that sort."""
    return Value(Kind.PYTHON, python=what, constant=constant, data=data)


def tensor(
    rank: Rank | None = None, dtype: DType | None = None, shape: Shape | None = None, trainable: bool = False
) -> Value:
    """A tensor; a 0-d one has no sizes."""
    return Value(Kind.TENSOR, rank, dtype, NO_DIMENSIONS if rank == SCALAR else shape, trainable=trainable)


def join(a: Value, b: Value) -> Value:
    """What is true of both."""
    if a == b:
        return a
    if FOREIGN in (a, b):
        return FOREIGN
    if a.kind is not b.kind or a.kind is Kind.UNKNOWN:
        strange = {a.kind, b.kind} <= {Kind.TENSOR, Kind.UNKNOWN} and joined_dtype((a.dtype, b.dtype)) == OTHER
        return presumable(OTHER) if strange else UNKNOWN
    if a.kind is Kind.TENSOR:
        same = a.dtype is not None and b.dtype is not None and a.dtype == b.dtype
        return Value(
            Kind.TENSOR,
            a.rank if a.rank == b.rank else None,
            a.dtype if same else _category(a.dtype, b.dtype),
            a.shape if a.shape == b.shape else None,
            trainable=a.trainable or b.trainable,
        )
    if a.kind is Kind.PYTHON:
        numbers = a.is_number and b.is_number
        what = a.python if a.python == b.python else "number" if numbers else ""
        return Value(Kind.PYTHON, python=what, data=a.data or b.data)
    return Value(Kind.MODULE)


def presumable(dtype: DType | None) -> Value:
    """What is not known; once it is presumed to be a tensor, it has that dtype where it is not floating."""
    floating = dtype is None or dtype.category in (Category.FLOAT, Category.UNKNOWN)
    return UNKNOWN if floating else Value(Kind.UNKNOWN, dtype=dtype)


def joined_dtype(dtypes: Iterable[DType | None]) -> DType | None:
    """What is known of the dtype of what has one of ``dtypes``."""
    found = list(dtypes)
    return found[0] if all(d == found[0] for d in found) else reduce(_category, found)


def _category(a: DType | None, b: DType | None) -> DType | None:
    """The category of what has either dtype; None where both are unknown, or presumed to be floating."""
    categories = {d.category if d is not None else Category.UNKNOWN for d in (a, b)}
    if len(categories) == 1 and Category.UNKNOWN not in categories:
        return DType(categories.pop())
    return None if categories <= {Category.UNKNOWN, Category.FLOAT} else OTHER


def arithmetic(a: Value, b: Value, division: bool = False) -> Value:
    """``a + b``, ``a * b`` and their like; ``division`` for ``/``."""
    if not (a.is_tensor or b.is_tensor):
        if a.kind is Kind.PYTHON and b.kind is Kind.PYTHON:
            if a.is_number and b.is_number:
                what = "float" if division or "float" in (a.python, b.python) else "number"
                if not division and {a.python, b.python} <= {"int", "size", "bool"}:
                    what = "size" if "size" in (a.python, b.python) else "int"
                return python(what, data=a.data or b.data)
            return Value(Kind.PYTHON, data=a.data or b.data)
        if FOREIGN in (a, b):
            return FOREIGN
        tensors = [replace(v, kind=Kind.TENSOR) if v.dtype is not None else v for v in (a, b)]
        return presumable(arithmetic(tensors[0], tensors[1], division).dtype) if [a, b] != tensors else UNKNOWN
    rank, shape = broadcast(a, b)
    dtype = promote(a, b)
    if division and dtype is not None:
        dtype = dtype.floated()
    return tensor(rank, dtype, shape)


def compare(a: Value, b: Value, equality: bool = False) -> Value:
    """An element-wise comparison, or a Python one.

    ``equality``: with ``==`` and ``!=`` the other side decides, for ``tensor == None`` is a plain bool.
    """
    if a.is_tensor or b.is_tensor:
        other = b if a.is_tensor else a
        if equality and not (other.is_tensor or other.is_number):
            decided = other.python in ("none", "str", "container", "dtype")
            return python("bool") if decided else Value(Kind.UNKNOWN, data=True)
        rank, shape = broadcast(a, b)
        return tensor(rank, BOOL, shape)
    if a.kind is Kind.PYTHON and b.kind is Kind.PYTHON:
        return python("bool", data=a.data or b.data)
    return FOREIGN if FOREIGN in (a, b) else UNKNOWN


def broadcast(a: Value, b: Value) -> tuple[Rank | None, Shape | None]:
    """Rank and shape of two operands together; a shape means that broadcasting cannot fail."""
    if not a.is_tensor:
        a, b = b, a
    if not b.is_tensor:
        return (a.rank, a.shape) if b.is_number or (b.kind is Kind.PYTHON and b.python == "") else (None, None)
    if b.is_scalar_tensor:
        return a.rank, a.shape
    if a.is_scalar_tensor:
        return b.rank, b.shape
    if a.shape is not None and a.shape == b.shape:
        return a.rank, a.shape
    if a.rank is None or b.rank is None or (difference := a.rank.minus(b.rank)) is None:
        return None, None
    return (a.rank if difference >= 0 else b.rank), None


def promote(a: Value, b: Value) -> DType | None:
    """The dtype of ``a`` and ``b`` together (before division)."""
    if not a.is_tensor:
        a, b = b, a
    dtypes = [v.dtype for v in (a, b) if v.is_tensor and v.dtype is not None]
    strange = [d for d in dtypes if d.category is Category.OTHER]
    if isinstance(b.constant, complex) or (strange and not (len(dtypes) == 2 and dtypes[0].same(dtypes[1]))):
        return OTHER
    if a.dtype is None:
        return None
    if not b.is_tensor:
        if b.python == "number" and a.dtype.category in (Category.BOOL, Category.INT):
            return None
        if b.python in ("float", "number"):
            return a.dtype.floated()
        if b.python in ("int", "bool", "size"):
            if a.dtype.category is Category.BOOL:
                return None if b.python == "bool" else INT64
            return a.dtype
        return None
    if b.dtype is None:
        return None
    if a.dtype.same(b.dtype):
        return a.dtype if a.dtype.category is not Category.UNKNOWN else b.dtype
    if b.is_scalar_tensor and not a.is_scalar_tensor and _has_dimensions(a):
        return _outranks(a.dtype, b.dtype)
    if a.is_scalar_tensor and not b.is_scalar_tensor and _has_dimensions(b):
        return _outranks(b.dtype, a.dtype)
    return None


def _has_dimensions(value: Value) -> bool:
    return value.rank is not None and value.rank.least >= 1


def _outranks(dimensioned: DType, scalar: DType) -> DType | None:
    """A 0-d tensor does not promote a dimensioned one within its category."""
    order = (Category.BOOL, Category.INT, Category.FLOAT)
    if dimensioned.category is Category.FLOAT:
        return dimensioned
    if Category.UNKNOWN in (dimensioned.category, scalar.category):
        return None
    return dimensioned if order.index(dimensioned.category) >= order.index(scalar.category) else None


def named(value: Value, token: Token) -> Value:
    """``value`` of one name: what is not known of it is the name's own, the same wherever the name is read."""
    if not value.is_tensor:
        return value
    dtype = value.dtype or DType(Category.UNKNOWN)
    return replace(
        value,
        rank=value.rank or Rank(token, 0),
        dtype=dtype if dtype.which is not None else DType(dtype.category, token),
        shape=value.shape or Shape(token),
    )


def absolute(value: Value) -> Value:
    """What of ``value`` holds wherever it is looked at: nothing that is known only relative to something else."""
    if value.elements:
        return replace(value, elements=tuple(map(absolute, value.elements)))
    if not value.is_tensor:
        return value
    rank = value.rank if value.rank is not None and value.rank.base is None else None
    dtype = value.dtype
    if dtype is not None and isinstance(dtype.which, Token):
        dtype = DType(dtype.category)
    return tensor(rank, dtype, trainable=value.trainable)
