"""Frozen dataclasses from parsed JSON, by the types of their fields."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")


class DecodeError(Exception):
    """A document of another form than was expected; the message is one line."""


def decoded(cls: type[_T], value: object, path: str = "", needed: Collection[str] = (), **known: Any) -> _T:
    """Return a dataclass from a JSON object. Keys that are no fields are passed over.

    A field with a default may be missing or null, unless it is ``needed``. ``path``: of the object in its document, for
    messages. ``known``: fields that are not read. Raises ``DecodeError``.
    """
    if not isinstance(value, Mapping):
        raise wrong(path, "a table", value)
    given, hints = dict(known), _hints(cls)  # type: ignore[arg-type]
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        inside = f"{path}.{field.name}" if path else field.name
        optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if field.name in known or (optional and field.name not in needed and value.get(field.name) is None):
            continue
        if field.name not in value:
            raise DecodeError(f"{inside} is missing")
        given[field.name] = _read(hints[field.name], value[field.name], inside)
    return cls(**given)


def wrong(path: str, expected: str, value: object) -> DecodeError:
    """Return the error for a value that is not what was expected."""
    return DecodeError(f"{path} must be {expected}, not {short(value)}")


def short(value: object) -> str:
    """Return a value as text of at most 60 characters."""
    try:
        told = repr(value)
    except ValueError:  # a whole number of more digits than Python likes to print
        told = "a huge number"
    return told if len(told) <= 60 else told[:57] + "..."


@functools.lru_cache
def _hints(cls: Any) -> Mapping[str, Any]:
    return get_type_hints(cls)


def _read(kind: Any, value: object, path: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else _read(next(one for one in inner if one is not type(None)), value, path)
    if origin is tuple:
        if not isinstance(value, list) or (inner[-1] is not Ellipsis and len(value) != len(inner)):
            raise wrong(path, "a list" if inner[-1] is Ellipsis else f"a list of {len(inner)}", value)
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_read(*pair, f"{path}[{at}]") for at, pair in enumerate(zip(kinds, value, strict=True)))
    if origin is Literal:
        if value not in inner:
            raise wrong(path, f"one of {', '.join(inner)}", value)
        return value
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return decoded(kind, value, path)
    if kind is float:
        return _number(value, path)
    return value if kind is Any else _plain(origin or kind, value, path)


def _number(value: object, path: str) -> float:
    """Return a number; the strings "nan", "inf" and "-inf" stand for those that JSON has not."""
    if value in ("nan", "inf", "-inf") or (isinstance(value, int | float) and not isinstance(value, bool)):
        try:
            return float(value)
        except OverflowError:
            pass
    raise wrong(path, "a number", value)


def _plain(kind: type, value: object, path: str) -> object:
    names = {str: "a string", bool: "true or false", int: "a whole number from 0", Mapping: "a table"}
    expected = next(name for known, name in names.items() if issubclass(kind, known) or kind is known)
    right = isinstance(value, kind) if kind is not int else type(value) is int and value >= 0
    if not right:
        raise wrong(path, expected, value)
    return value
