"""Who may take an error that a function of the project raises, or a message that it writes, before its caller does."""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.facts.flow.kept import kept
from patcher.facts.project.does import UNNAMED
from patcher.facts.project.error_classes import ErrorClasses
from patcher.facts.project.protected import ANY, BODY, EVERYWHERE, GATHERED, OUTPUT, SOME, WARNINGS, Region
from patcher.facts.tables import call_effects as tables

if TYPE_CHECKING:
    from patcher.facts.project.index import Project
    from patcher.facts.project.summaries import ModuleSummary

#: Stands among functions for a call of what nobody can name.
_UNKNOWN = "()"
_NOBODY_NAMES = (_UNKNOWN,)
#: Stands for such a call in what is called.
_THROUGH = "(())"
#: Functions that may run together, for one reason; kept by whoever made it, and shared.
Group = Sequence[str]
#: What takes whatever error there is.
_EVERY = frozenset({ANY, "Exception", "BaseException"})
#: What compiled code raises where a check fails.
_OF_COMPILED = "RuntimeError"
_CALLED = ("__call__", "forward")
_NOBODY: frozenset[str] = frozenset()
#: What a call of a class runs.
_MAKING = ("__new__", "__init__", "__post_init__")


class Catching:
    """Answers for one index over the project; kept. Files of tests take errors for themselves: they do not count."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._numbers: dict[str, int] = {}
        self._reaches: dict[tuple[int, bool], bytes] = {}
        self._stopping: dict[tuple[frozenset[str], tuple[str, ...]], bool] = {}
        self._classes = ErrorClasses(project)

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
        if stop in (ANY, SOME, GATHERED):
            return True
        return self._classes.may_take(stop, error)

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
        return [(s.module, r) for s in modules if s.regions and not _is_test(s) for r in s.regions]

    # --- from where -------------------------------------------------------------------------------------------------

    def _regions_behind(self, function: str, errors: tuple[str, ...]) -> Iterator[tuple[str, Region]]:
        """The regions that stop one of ``errors`` and that calls of ``function`` may come from."""
        for number, (module, r) in enumerate(self._regions):
            if (r.stops, errors) not in self._stopping:
                self._stopping[r.stops, errors] = self.stop(r.stops, errors)
            if not self._stopping[r.stops, errors]:
                continue
            if EVERYWHERE in r.stops:
                yield module, r
                continue
            key = number, self._is_alike(module, r, errors)
            if key not in self._reaches:
                self._reaches[key] = self._packed(self._reach(module, r, key[1]))
            direct, through, named = (self._is_in(f, self._reaches[key]) for f in (_UNKNOWN, _THROUGH, function))
            unknown = (direct or through) and self._may_be_called(function)
            if unknown and direct and not self.project.reached(f"{module}.{r.owner}"):
                unknown = not self._is_of_another_part(function, module) or self._is_handed(function, module, r)
            elif unknown:
                unknown = self._is_near(function, module) or (direct and self._meet(function, module))
            if named or unknown:
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

    def _is_of_another_part(self, function: str, module: str) -> bool:
        """Whether ``function`` and ``module`` are of two packages in one, as two models of a library are.

        Both have models of their own, nothing outside of its package sees ``module``, and nothing sees both.
        """
        home = self._home.get(function, "")
        here, there = module.split("."), home.split(".")
        shared = next((n for n, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), 0)
        if not shared or min(len(here), len(there)) < shared + 2:
            return False
        part, other = ".".join(here[: shared + 1]), ".".join(there[: shared + 1])
        inside = all(f"{seer}.".startswith(f"{part}.") for seer in self._seers.get(module, ()))
        apart = inside and not self._is_near(function, module) and not self._meet(function, module)
        return apart and {part, other} <= self._with_models

    def _is_handed(self, function: str, module: str, region: Region) -> bool:
        """Whether what nobody can name in ``region`` may lead to ``function`` of another part.

        It is presumed not to be where each such call has a keyword that no function which leads there names.
        """
        owner = f"{module}.{region.owner}"
        calls = [c for c in region.calls if _UNKNOWN in {f for g in self._targets(owner, (c,), (), None) for f in g}]
        mentioned = _UNKNOWN in {f for g in self._targets(owner, (), region.mentions, None) for f in g}
        keyed = all(c.startswith(UNNAMED) and c != f"{UNNAMED})" for c in calls)
        return mentioned or not keyed or any(self._leads_to(function, c) for c in calls)

    def _leads_to(self, function: str, call: str) -> bool:
        """Whether ``function`` is one that names the keywords of ``call``, or is run by one."""
        return self._is_in(function, self._led(call))

    @kept
    def _led(self, call: str) -> bytes:
        words = frozenset(call.removeprefix(UNNAMED).removesuffix(")").split(","))
        taking = [name for name, f in self.project.functions() if words <= {*f.positional, *f.keywords}]
        return self._packed(frozenset({*taking, *self._closure(taking)}))

    @cached_property
    def _with_models(self) -> frozenset[str]:
        """Packages in which, or in a package of which, a model is."""
        found: set[str] = set()
        for name, module in self._home.items():
            if name.endswith(".forward") and self.project.reached(name):
                parts = module.split(".")
                found.update(".".join(parts[:n]) for n in range(1, len(parts)))
        return frozenset(found)

    def _may_be_called(self, function: str) -> bool:
        """Whether a call of what nobody can name may lead to ``function``: a module, or what is handed on."""
        return self.project.reached(function) or function in self._handed_on

    def _is_alike(self, module: str, region: Region, errors: tuple[str, ...]) -> bool:
        """Whether the region, outside of compiled code, takes the error of compiled code as it takes ``errors``.

        It does where it takes every error, and where these are what compiled code raises.
        """
        if self.project.reached(f"{module}.{region.owner}"):
            return False
        return set(errors) <= {_OF_COMPILED} or not _EVERY.isdisjoint(self._entered(region.stops, frozenset()))

    def _reach(self, module: str, region: Region, alike: bool) -> frozenset[str]:
        """The functions that run in ``region``, with `_UNKNOWN` when it calls what nobody can name.

        It does when it says so itself (`_UNKNOWN`), or what it calls does (`_THROUGH`). Where the error of compiled
        code is taken ``alike``, what is called through others, or without a name, does not count.
        """
        owner = f"{module}.{region.owner}"
        compiled, calls = self.project.reached(owner), region.calls
        found = {f for group in self._targets(owner, calls, region.mentions, None) for f in group}
        if alike:
            return frozenset(found - {_UNKNOWN})
        near = {f for group in self._targets(owner, calls, region.mentions, module) for f in group} - {_UNKNOWN}
        reached = self._closure(near)
        through = reached if compiled else [f for f in near if self._home.get(f) == module]
        found |= reached
        if any(_NOBODY_NAMES in self._edges(f) for f in through):
            found.add(_THROUGH)
        return frozenset(found)

    def _closure(self, functions: Iterable[str]) -> set[str]:
        """All that run when ``functions`` are called, these with them."""
        stack, seen = list(functions), set[int]()
        found = set(stack)
        while stack:
            for group in self._edges(stack.pop()):
                if id(group) not in seen and group is not _NOBODY_NAMES:
                    seen.add(id(group))
                    new = [f for f in group if f not in found]
                    found.update(new)
                    stack += new
        return found

    @kept
    def _edges(self, name: str) -> tuple[Group, ...]:
        """What may run when the function is called, as groups that are kept: the same ones for many functions."""
        f, module = self.project.function(name), self._home.get(name)
        found = self._targets(name, f.does.calls, f.mentions, module) if f is not None else ()
        return tuple({id(group): group for group in found if group}.values())

    @cached_property
    def _home(self) -> dict[str, str]:
        """Function -> the module that it is in."""
        return {name: s.module for name, s in self.project.home.items()}

    @cached_property
    def _handed_on(self) -> frozenset[str]:
        """Functions that others call without a name for them: decorated ones, and those mentioned and not called."""
        found: set[str] = set()
        seen: set[int] = set()
        for s in self.project.modules.values():
            for f in s.functions:
                name = f"{s.module}.{f.qualname}"
                if f.decorated or name.endswith(".__call__"):
                    found.add(name)
                named = {c.removeprefix("=") for c in f.does.calls}
                called = named | {f"{s.module}.{c}" for c in named if "." not in c}
                for group in self._targets(name, (), f.mentions - called, s.module):
                    if id(group) not in seen:
                        seen.add(id(group))
                        found.update(group)
        return frozenset(found)

    def _targets(
        self, caller: str, calls: Iterable[str], mentions: Iterable[str], within: str | None
    ) -> Iterator[Group]:
        """What may run when ``caller`` calls and mentions these; methods of objects of classes that ``within`` sees.

        In groups that are kept: naming a base class may run the constructors of some thousand classes.
        """
        project, owner = self.project, caller.rpartition(".")[0]
        for m in mentions:
            if m.startswith("self."):
                yield project.methods(owner, m[5:])
            elif m.startswith("."):
                yield self._methods_in_sight(m[1:], within)
            elif project.known_class(m) is not None:
                yield from (project.methods(m, n) for n in _MAKING)
            else:
                yield self._function(m)
        for c in (c.removeprefix("=") for c in calls):
            if c.startswith(UNNAMED):
                yield _NOBODY_NAMES
            elif c.startswith("super."):
                summary = project.known_class(owner)
                yield from (project.methods(base, c[6:]) for base in (summary.bases if summary is not None else ()))
            elif c.startswith(("self.", ".", "?.")):
                yield from self._of_method(owner, c.removeprefix("?"))
            elif "." in c or c.startswith("?") or hasattr(builtins, c):
                pass
            elif project.effects.named(c, caller) == c:
                yield _NOBODY_NAMES

    @kept
    def _function(self, name: str) -> Group:
        """The function of that dotted name, alone."""
        return (name,) if self.project.function(name) is not None else tuple(self.project.re_exported(name))

    @kept
    def _methods_in_sight(self, name: str, within: str | None) -> Group:
        """The methods of that name, of any class that the module ``within`` sees."""
        at = self._methods_at(name) if name not in tables.COMMON_METHODS else {}
        homes = at.keys() & self.project.seen_by(within) if at and within is not None else at.keys()
        return [f for home in homes for f in at[home]]

    @kept
    def _methods_at(self, name: str) -> dict[str, list[str]]:
        """The methods of that name, by the module that they are in."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for f in self.project.named_methods(name):
            found[self._home.get(f, "")].append(f)
        return found

    def _of_method(self, owner: str, call: str) -> Iterator[Group]:
        """What "self.m" and ".m" may run besides methods of that name: what an attribute of that name holds."""
        name = call.rpartition(".")[2]
        found = self.project.methods(owner, name) if call.startswith("self.") and call.count(".") == 1 else []
        if found or (call.startswith(".") and self.project.named_methods(name)):
            return
        summary = self.project.known_class(owner) if call.startswith("self.") else None
        built = next((cls for attribute, cls in summary.built if attribute == name), None) if summary else None
        if built is not None and self.project.known_class(built) is not None:
            yield from (self.project.methods(built, n) for n in _CALLED)
        elif built is None and name not in tables.COMMON_METHODS and name in self._stored:
            yield _NOBODY_NAMES

    @cached_property
    def _stored(self) -> frozenset[str]:
        """Attributes in which something is kept."""
        found = set(self.project.foreign_stores)
        for _, c in self.project.classes():
            found |= c.stores | c.init_stores | c.declared
        return frozenset(found)


def _is_test(summary: ModuleSummary) -> bool:
    """Whether a file holds tests, or what tests are written with: its name says so, and what it imports."""
    file = Path(summary.path)
    near = file.parent.name in ("test", "tests") or file.name == "conftest.py"
    if near or file.name.startswith("test_") or file.stem.endswith("_test"):
        return True
    imported = {what.partition(".")[0] for what in summary.imports}
    return "testing" in file.stem.split("_") and not imported.isdisjoint({"unittest", "pytest"})
