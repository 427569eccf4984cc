"""Answers that are worked out once for each object that is asked."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


def kept(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Let an object remember what ``method`` has given for the same arguments."""
    name = f"_kept_{method.__name__}"

    @functools.wraps(method)
    def ask(self: S, /, *args: P.args, **named: P.kwargs) -> T:
        known: dict[Any, T] = self.__dict__.setdefault(name, {})
        if args not in known:
            known[args] = method(self, *args, **named)
        return known[args]

    return ask
