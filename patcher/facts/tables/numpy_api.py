"""What numbers and arrays of NumPy are to Dynamo, and what asks them for a number: tables only.

Dynamo makes a tensor of each, whatever it was computed from. Of a tensor of one element that was computed from numbers
of Python alone it knows the value, and reads that where it is floating; of all others it does not. As measured on torch
2.13; tests/test_numpy_values.py runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Traced(Enum):
    """What a value of NumPy is in a graph."""

    FLOAT = "a float, computed from numbers of Python"
    INT = "an integer, computed from numbers of Python"
    KEPT = "a number of 64 bits that a module keeps, as it is"
    MADE = "a number that operators of the graph make"
    ARRAY = "an array, whose elements are such numbers"


_MADE = frozenset({Traced.MADE, Traced.ARRAY})
_INTEGERS = _MADE | {Traced.INT}
_ALL = frozenset(Traced)
#: Way of asking a tensor for its number -> the values of NumPy at which the graph breaks as well.
ENDED_AT: Mapping[str, frozenset[Traced]] = {
    "int of an array": _INTEGERS,
    "bool": _INTEGERS,
    "array as end of a slice": _INTEGERS - {Traced.ARRAY},
    "array as size": _MADE,
    "range of an array": _ALL - {Traced.FLOAT},
    "tensor as index of a list": _INTEGERS,
    "tensor as index of one row": frozenset({Traced.MADE}),  # an array picks rows in the graph
    "if of a tensor": _ALL,
    "while of a tensor that is made": _ALL,
    "math of a tensor": _MADE,
    "text of a tensor": _ALL,
    "percent of a tensor": _ALL - {Traced.ARRAY},
}
#: Functions of ``math`` that Python finds by a method of what they are given.
ROUNDING = frozenset({"floor", "ceil", "trunc"})

_OF_ONE = frozenset(
    "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arctan2 hypot ceil "
    "floor rint trunc fix round around round_ divide true_divide float_power deg2rad rad2deg radians degrees sinc "
    "nan_to_num reciprocal logaddexp".split()
)
#: Functions of numbers whose result is an integer where all numbers are.
WHOLE = frozenset(
    "abs absolute add subtract multiply power mod fmod remainder floor_divide maximum minimum fmax fmin clip negative "
    "positive sign gcd lcm left_shift right_shift bitwise_and bitwise_or bitwise_xor int8 int16 int32 int64 intp int_ "
    "uint8".split()
)
#: Those whose result is true or false.
TRUE_OR_NOT = frozenset(
    "isclose isnan isinf isfinite equal not_equal greater greater_equal less less_equal logical_and logical_or "
    "logical_xor logical_not bool_".split()
)
#: Functions that give a number for numbers, and an array for an array.
BY_ELEMENT = _OF_ONE | WHOLE | TRUE_OR_NOT | {"float32", "float64", "float16"}
#: Functions that give one number for many, where no axis is named.
REDUCING = frozenset(
    "prod product sum max min amax amin mean median std var average ptp count_nonzero argmax argmin any all dot vdot "
    "inner percentile quantile linalg.norm linalg.det trace nanmax trapezoid".split()
)
#: Functions that make an array of anything.
ARRAYS = frozenset(
    "arange linspace logspace geomspace ones zeros full empty eye identity ones_like zeros_like full_like cumsum "
    "cumprod diff sort argsort concatenate stack hstack vstack tile repeat outer diag flip roll hanning hamming "
    "blackman bartlett kaiser tri tril triu meshgrid searchsorted".split()
)
#: Functions that make an array of what is listed, and a number of a number.
CONVERTING = frozenset("array asarray ascontiguousarray atleast_1d atleast_2d copy squeeze ravel".split())
#: Types of numbers whose value Dynamo does not read when a module keeps one.
NOT_READ = frozenset("float16 float32 int8 int16 int32 uint8 bool_".split()) | TRUE_OR_NOT
#: What names integers as a dtype.
WHOLE_TYPES = frozenset("int numpy.int8 numpy.int16 numpy.int32 numpy.int64 numpy.intp numpy.int_ numpy.uint8".split())
#: Methods of an array that give one number, where no axis is named.
REDUCING_METHODS = frozenset("sum prod max min mean std var argmax argmin any all ptp trace dot".split())
#: Methods that give an array again, of the same kind.
SAME_METHODS = frozenset(
    "astype copy clip round reshape flatten ravel squeeze transpose view cumsum cumprod repeat argsort swapaxes".split()
)
#: What is an array again.
SAME_ATTRIBUTES = frozenset({"T", "real", "imag", "flat"})
