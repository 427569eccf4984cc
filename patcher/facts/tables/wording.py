"""What a name gives away, where nothing else is known."""

from __future__ import annotations

import re
from functools import lru_cache


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Verbs of methods that change their object, or answer differently each time.
_CHANGING = _set(
    "accumulate acquire add advance alloc allocate append assign attach begin bind bump claim clear clock close "
    "commit create decrement del delete detach discard dispatch draw drop enable disable environ exit expand extend "
    "feed fetch fit flush fresh generate grow increment init inject input insert issue install learn load log make "
    "merge move mutate new next now open perf poll pop popitem prepare print push put random rand randint recv refresh "
    "register reload remove rename replace request reserve reset resize restore rotate run sample save seed seek send "
    "set setattr setdefault shuffle sort start step stop store swap switch take tick time timestamp train uniform "
    "unique unregister unset update urandom use uuid write read readline counter perf monotonic today lock release "
    "insort heappush heappop heapify heapreplace"
)
#: Words for what is different at another time.
_VARYING = _set(
    "active buffer cache current cursor dynamic elapsed epoch history iteration last latest live next now pending "
    "previous prev progress recent remaining running schedule scheduler seen state stats step temp tick tmp"
)
_CONFIGURATION = _set(
    "conf config configs configuration cfg cfgs args arguments argv hparams hparam hp hyperparameters hyperparams "
    "kwargs opt opts option options params param parameters setting settings spec specs arch"
)


@lru_cache(maxsize=10_000)
def words(name: str) -> tuple[str, ...]:
    """The words of a snake_case or CamelCase name, in lower case."""
    return tuple(w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name))


@lru_cache(maxsize=10_000)
def suggests_change(name: str) -> bool:
    """Whether a method of that name may change its object, or be random, or depend on the outside world."""
    return not _CHANGING.isdisjoint(words(name))


def suggests_variation(name: str) -> bool:
    """Whether an attribute of that name may hold something else later."""
    return not _VARYING.isdisjoint(words(name))


@lru_cache(maxsize=10_000)
def suggests_configuration(name: str) -> bool:
    """Whether an object of that name (or a class) holds configuration."""
    return not _CONFIGURATION.isdisjoint(words(name))
