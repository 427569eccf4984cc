"""Who may take an error that a function of the project raises, or a message that it writes, before its caller does."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.facts.project.does import UNNAMED
from patcher.facts.project.protected import ANY, BODY, EVERYWHERE, GATHERED, OUTPUT, WARNINGS, Region
from patcher.facts.tables import call_effects as tables

if TYPE_CHECKING:
    from patcher.facts.project.index import Project

#: Stands among functions for a call of what nobody can name.
_UNKNOWN = "()"
#: Stands for such a call in what is called.
_THROUGH = "(())"
#: What takes whatever error there is.
_EVERY = frozenset({ANY, "Exception", "BaseException"})
_CALLED = ("__call__", "forward")
_NOBODY: frozenset[str] = frozenset()
#: What a call of a class runs.
_MAKING = ("__new__", "__init__", "__post_init__")


class Catching:
    """Answers for one index over the project; kept. Files of tests take errors for themselves: they do not count."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._numbers: dict[str, int] = {}
        self._reaches: dict[int, bytes] = {}
        self._targets_of: dict[str, frozenset[str]] = {}
        self._built: dict[str, dict[str, str]] = {}
        self._seen: dict[tuple[str, str | None], list[str]] = {}

    def why(self, function: str, errors: Iterable[str], within: str = "") -> str:
        """Where an error of one of these classes, raised in the dotted ``function``, may be taken; "" for nowhere.

        ``errors``: names of builtin classes and dotted names of others, `OUTPUT` or `WARNINGS`. ``within``: the only
        module that is looked at; "" for all.
        """
        wanted = tuple(errors)
        for module, region in self._regions_behind(function, wanted):
            if within not in ("", module):
                continue
            place = f"{module}.{region.owner}" if region.owner else module
            what = "messages are read" if wanted in ((OUTPUT,), (WARNINGS,)) else "errors are caught"
            return f"`{place}` may call this, where {what}"
        return ""

    def stop(self, stops: Iterable[str], errors: Iterable[str]) -> bool:
        """Whether what is in ``stops``, as `Region` has it, may take an error of one of the classes."""
        given = tuple(errors)
        return any(self._stops(stop, error) for stop in self._entered(stops, frozenset()) for error in given)

    # --- which errors -----------------------------------------------------------------------------------------------

    def _stops(self, stop: str, error: str) -> bool:
        if WARNINGS in (stop, error) or OUTPUT in (stop, error):
            return stop == error
        if stop in (ANY, GATHERED):
            return True
        caught, raised = getattr(builtins, stop, None), getattr(builtins, error, None)
        if isinstance(caught, type) and isinstance(raised, type):
            return issubclass(raised, caught)
        if isinstance(raised, type):  # no class of somebody's own is above a builtin one, but a name may stand for more
            return self.project.known_class(stop) is None and self.project.has(stop.partition(".")[0])
        return True

    def _entered(self, stops: Iterable[str], seen: frozenset[str]) -> Iterator[str]:
        """``stops``, with what context managers stop in the place of these."""
        for stop in stops:
            if not stop.startswith("with "):
                yield stop
            elif stop not in seen:
                yield from self._entered(self._by_entering(stop[5:]), seen | {stop})

    def _by_entering(self, name: str) -> Iterator[str]:
        project = self.project
        if name == "?" or name.startswith("."):  # an object with an ``__exit__``, or what a method gives
            ends = ("exit__",) if name == "?" else (name, "exit__")
            for function, regions in self._around_bodies.items():
                yield from (stop for r in regions if function.endswith(ends) for stop in r.stops)
            return
        functions = [name] if project.function(name) is not None else project.re_exported(name)
        if project.known_class(name) is not None:
            functions = [m for n in ("__exit__", "__aexit__") for m in project.methods(name, n)]
        elif not functions and project.has(name.partition(".")[0]):
            yield "with ?"
        for f in functions:
            summary = project.function(f)
            yield from (stop for r in self._around_bodies.get(f, ()) for stop in r.stops)
            if summary is not None and not f.endswith("exit__"):
                yield from (f"with {what}" if "." in what else "with ?" for what in summary.returns)

    @cached_property
    def _around_bodies(self) -> dict[str, list[Region]]:
        """Functions -> the regions in them around what stands in the body of a ``with`` statement."""
        found: dict[str, list[Region]] = {}
        for module, r in self._regions:
            if BODY in r.mentions:
                found.setdefault(f"{module}.{r.owner}", []).append(r)
        return found

    @cached_property
    def _regions(self) -> list[tuple[str, Region]]:
        modules = self.project.modules.values()
        return [(s.module, r) for s in modules if s.regions and not _is_test(s.path) for r in s.regions]

    # --- from where -------------------------------------------------------------------------------------------------

    def _regions_behind(self, function: str, errors: tuple[str, ...]) -> Iterator[tuple[str, Region]]:
        """The regions that stop one of ``errors`` and that calls of ``function`` may come from."""
        for number, (module, r) in enumerate(self._regions):
            if not self.stop(r.stops, errors):
                continue
            if EVERYWHERE in r.stops:
                yield module, r
                continue
            if number not in self._reaches:
                self._reaches[number] = self._packed(self._reach(module, r))
            direct, through, named = (self._is_in(f, self._reaches[number]) for f in (_UNKNOWN, _THROUGH, function))
            unknown = direct or through
            if unknown and (not direct or self.project.reached(f"{module}.{r.owner}")):
                unknown = self._is_near(function, module) or (direct and self._meet(function, module))
            if named or (unknown and self._may_be_called(function)):
                yield module, r

    def _packed(self, functions: frozenset[str]) -> bytes:
        """``functions`` as a bit for each number: a thousand regions reach ten thousand functions each."""
        numbers = [self._numbers.setdefault(f, len(self._numbers)) for f in functions]
        bits = bytearray(max(numbers, default=0) // 8 + 1)
        for n in numbers:
            bits[n >> 3] |= 1 << (n & 7)
        return bytes(bits)

    def _is_in(self, function: str, packed: bytes) -> bool:
        n = self._numbers.get(function)
        return n is not None and n >> 3 < len(packed) and bool(packed[n >> 3] >> (n & 7) & 1)

    def _meet(self, function: str, module: str) -> bool:
        """Whether some module sees both ``module``, a part of a model, and that of ``function``, to hand it over."""
        return not self._seers.get(module, _NOBODY).isdisjoint(self._seers.get(self._home.get(function, ""), _NOBODY))

    @cached_property
    def _seers(self) -> dict[str, set[str]]:
        """For each module, those that see it."""
        found: dict[str, set[str]] = {}
        for name in {s.module for s in self.project.modules.values()}:
            for seen in self.project.seen_by(name):
                found.setdefault(seen, set()).add(name)
        return found

    def _is_near(self, function: str, module: str) -> bool:
        """Whether ``function`` is of a module beside ``module``, or one of both imports the other."""
        home = self._home.get(function, "")
        beside = home.rpartition(".")[0] == module.rpartition(".")[0]
        return beside or home in self.project.seen_by(module) or module in self.project.seen_by(home)

    def _may_be_called(self, function: str) -> bool:
        """Whether a call of what nobody can name may lead to ``function``: a module, or what is handed on."""
        return self.project.reached(function) or function in self._handed_on

    def _reach(self, module: str, region: Region) -> frozenset[str]:
        """The functions that run in ``region``, with `_UNKNOWN` when it calls what nobody can name.

        It does when it says so itself (`_UNKNOWN`), or what it calls does (`_THROUGH`). Where every error is taken
        outside of compiled code, the one that compiled code raises is taken as well: what is called through others, or
        without a name, does not count there.
        """
        owner = f"{module}.{region.owner}"
        compiled = self.project.reached(owner)
        found = set(self._targets(owner, region.calls, region.mentions, None))
        if not compiled and not _EVERY.isdisjoint(self._entered(region.stops, frozenset())):
            return frozenset(found - {_UNKNOWN})
        near = set(self._targets(owner, region.calls, region.mentions, module)) - {_UNKNOWN}
        stack = list(near)
        while stack:
            name = stack.pop()
            beside = name in near and self._home.get(name) == module
            for target in self._edges(name):
                if target == _UNKNOWN:
                    found |= {_THROUGH} if compiled or beside else set()
                elif target not in found:
                    found.add(target)
                    stack.append(target)
        return frozenset(found)

    def _edges(self, name: str) -> frozenset[str]:
        known = self._targets_of.get(name)
        if known is None:
            f, module = self.project.function(name), self._home.get(name)
            found = self._targets(name, f.does.calls, f.mentions, module) if f is not None else ()
            known = self._targets_of[name] = frozenset(found)
        return known

    @cached_property
    def _home(self) -> dict[str, str]:
        """Function -> the module that it is in."""
        return {f"{s.module}.{f.qualname}": s.module for s in self.project.modules.values() for f in s.functions}

    @cached_property
    def _handed_on(self) -> frozenset[str]:
        """Functions that others call without a name for them: decorated ones, and those mentioned and not called."""
        found: set[str] = set()
        for s in self.project.modules.values():
            for f in s.functions:
                name = f"{s.module}.{f.qualname}"
                if f.decorated or name.endswith(".__call__"):
                    found.add(name)
                named = {c.removeprefix("=") for c in f.does.calls}
                called = named | {f"{s.module}.{c}" for c in named if "." not in c}
                found.update(self._targets(name, (), f.mentions - called, s.module))
        return frozenset(found)

    def _targets(self, caller: str, calls: Iterable[str], mentions: Iterable[str], within: str | None) -> Iterator[str]:
        """What may run when ``caller`` calls and mentions these; methods of objects of classes that ``within`` sees."""
        project, owner = self.project, caller.rpartition(".")[0]
        for m in mentions:
            if m.startswith("self."):
                yield from project.methods(owner, m[5:])
            elif m.startswith("."):
                yield from self._methods_in_sight(m[1:], within)
            elif project.known_class(m) is not None:
                yield from (f for n in _MAKING for f in project.methods(m, n))
            else:
                yield from [m] if project.function(m) is not None else project.re_exported(m)
        for c in (c.removeprefix("=") for c in calls):
            if c == UNNAMED:
                yield _UNKNOWN
            elif c.startswith("super."):
                summary = project.known_class(owner)
                for base in summary.bases if summary is not None else ():
                    yield from project.methods(base, c[6:])
            elif c.startswith(("self.", ".")):
                yield from self._of_method(owner, c)
            elif "." in c or c.startswith("?") or hasattr(builtins, c):
                pass
            elif project.effects.named(c, caller) == c:
                yield _UNKNOWN

    def _methods_in_sight(self, name: str, within: str | None) -> list[str]:
        """The methods of that name, of any class that the module ``within`` sees."""
        key = name, within
        if key not in self._seen:
            methods = self.project.named_methods(name) if name not in tables.COMMON_METHODS else []
            seen = self.project.seen_by(within) if methods and within is not None else None
            self._seen[key] = [f for f in methods if seen is None or self._home.get(f) in seen]
        return self._seen[key]

    def _of_method(self, owner: str, call: str) -> Iterator[str]:
        """What "self.m" and ".m" may run besides methods of that name: what an attribute of that name holds."""
        name = call.rpartition(".")[2]
        found = self.project.methods(owner, name) if call.startswith("self.") and call.count(".") == 1 else []
        if found or (call.startswith(".") and self.project.named_methods(name)):
            return
        summary = self.project.known_class(owner)
        if summary is not None and owner not in self._built:
            self._built[owner] = dict(summary.built)
        built = self._built[owner].get(name) if summary is not None and call.startswith("self.") else None
        if built is not None and self.project.known_class(built) is not None:
            yield from (f for n in _CALLED for f in self.project.methods(built, n))
        elif built is None and name not in tables.COMMON_METHODS and name in self._stored:
            yield _UNKNOWN

    @cached_property
    def _stored(self) -> frozenset[str]:
        """Attributes in which something is kept."""
        found = set(self.project.foreign_stores)
        for _, c in self.project.classes():
            found |= c.stores | c.init_stores | c.declared
        return frozenset(found)


def _is_test(path: str) -> bool:
    file = Path(path)
    near = file.parent.name in ("test", "tests") or file.name == "conftest.py"
    return near or file.name.startswith("test_") or file.stem.endswith("_test")
