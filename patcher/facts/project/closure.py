"""What functions of the project do, with everything that they call."""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from patcher.facts.flow.fixpoint import reach
from patcher.facts.flow.kept import kept
from patcher.facts.project.does import ANYTHING, NOTHING, Does
from patcher.facts.tables import call_effects as tables
from patcher.facts.tables import torch_api as api

if TYPE_CHECKING:
    from patcher.facts.project.index import Project
    from patcher.facts.project.summaries import FunctionSummary


_WRITES = Does(writes=True)
#: Methods that run without being mentioned, when a class or an object is called.
_WAYS = ("__init__", "__call__", "forward")


class Closure:
    """Answers for one index over the project; kept."""

    def __init__(self, project: Project) -> None:
        self.project = project

    @kept
    def of(self, function: str) -> Does:
        """What a call of the dotted function or method of the project may do; ``calls`` is empty."""
        first = self.project.function(function)
        total, stack, seen = NOTHING, [function], {function}
        while stack and not total.runs:
            name = stack.pop()
            summary = self.project.function(name)
            if summary is None:
                return ANYTHING
            total |= summary.does
            owner = name.rpartition(".")[0]
            if not all(self._makes(call, owner, name) for call in summary.does.fills):
                total |= _WRITES
            for call in summary.does.calls:
                callees = self.callees(call.removeprefix("="), owner, name)
                if callees is None or (call[:1] not in "=?" and any(map(self._invokes, callees))):
                    return ANYTHING
                stack += [c for c in callees if c not in seen]
                seen.update(callees)
            for mention in summary.mentions:
                read = mention.rpartition(".")[2] if mention.startswith(("self.", ".")) else ""
                if read in self.project.properties:
                    more = [p for p in self.project.named_methods(read) if p not in seen]
                    stack += more
                    seen.update(more)
        gives, world = (first.does.gives, first.does.world) if first is not None else (True, True)
        return Does(total.own, total.sets, total.writes, total.runs, gives, world, total.invokes)

    def _makes(self, call: str, owner: str, caller: str) -> bool:
        """Whether the functions that ``call`` names give what they have made themselves, which nobody else holds."""
        callees = self.callees(call, owner, caller)
        found = [self.project.function(c) for c in callees or ()]
        return callees is not None and all(f is not None and not (f.does.gives or f.does.world) for f in found)

    def reshapes(self, function: str) -> bool:
        """Whether the function or something that it mentions may give a tensor other sizes.

        Calls of objects whose class is not known are taken not to do that to what they are given.
        """
        return function in self._reshaping

    @cached_property
    def _reshaping(self) -> frozenset[str]:
        project = self.project
        found = {name for name, summary in project.functions() if summary.does.reshapes}
        mentioning: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for name, summary in project.functions() if found else ():
            for mention in _mentioned(summary):
                mentioning[mention.rpartition(".")[2]].append((name, mention))
        stack = list(found)
        while stack:
            function = stack.pop()
            owner, _, last = function.rpartition(".")
            words = {last}
            if last in _WAYS and project.known_class(owner) is not None:
                family, _ = project.family(owner)
                words |= {word for c in family for word in (c.rpartition(".")[2], *project.holding[c])}
            callers = [(caller, mention) for word in words for caller, mention in mentioning[word]]
            for caller, mention in callers:
                # A constructor that gets there by another function does so with the parts that it makes.
                own = mention != ".forward" and not caller.endswith(".__init__")
                if own and caller not in found and function in self._run_by(mention, caller):
                    found.add(caller)
                    stack.append(caller)
        return frozenset(found)

    def _run_by(self, mention: str, caller: str) -> list[str]:
        """What may run where ``caller`` mentions a function, a class, or a part of a module."""
        found, home = self.callees(mention, caller.rpartition(".")[0], caller) or [], self.project.home
        if mention.startswith("."):  # of a class that can be met there
            seen = self.project.seen_by(home[caller].module if caller in home else "")
            found = [m for m in found if m in home and home[m].module in seen]
        if self.project.known_class(mention) is not None:  # what is made of it is for calling
            found = [*found, *(m for way in _WAYS for m in self.project.inherited(mention, way))]
        return found

    def _invokes(self, function: str) -> bool:
        summary = self.project.function(function)
        return summary is None or summary.does.invokes

    def callees(self, call: str, owner: str, caller: str) -> list[str] | None:
        """The functions of the project that ``call`` in ``caller`` may run; None when code that is not read may run."""
        project = self.project
        if call == "?":
            return None
        if call.startswith(("?", ".")):
            return project.named_methods(call[1:]) or (None if call[0] == "." else [])
        if call.startswith("super."):
            summary = project.known_class(owner)
            bases = summary.bases if summary is not None else ("?",)
            found = [m for b in bases for m in project.methods(b, call[6:])]
            known = all(project.known_class(b) is not None or b.startswith("torch.nn.") for b in bases)
            return found if known else None
        if call.startswith("self."):
            return self._own(call[5:], owner)
        name = self.named(call, caller)
        if project.function(name) is not None:
            return [name]
        if project.known_class(name) is not None:
            return self.constructors(name)
        return (project.re_exported(call) if "." in call else None) or None

    def _own(self, text: str, owner: str) -> list[str] | None:
        """The same for what is called as an attribute of the instance, or an attribute of that."""
        attribute, _, rest = text.partition(".")
        found = self.project.methods(owner, attribute) if not rest else []
        summary = self.project.known_class(owner)
        built = dict(summary.built).get(attribute) if summary is not None and not found else None
        return found or (self._instance(built, rest or "forward") if built is not None else None)

    def named(self, call: str, caller: str) -> str:
        """The function or class of the project that ``call``, a name, is in ``caller``; ``call`` when it is none."""
        scope = "" if "." in call or self.project.known_class(call) is not None else caller
        while "." in scope:
            scope = scope.rpartition(".")[0]
            name = f"{scope}.{call}"
            if self.project.function(name) is not None or self.project.known_class(name) is not None:
                return name
        return call

    def constructors(self, cls: str) -> list[str] | None:
        """What runs when an object of the class is made; None when a base of it is not known."""
        family, unknown = self.project.family(cls)
        if any(not (u.startswith("torch.nn.") or u in ("?", "torch.Tensor")) for u in unknown) or "?" in unknown:
            return None
        found = []
        for name in ("__new__", "__init__", "__post_init__"):
            found += self.project.methods(cls, name)
        return [f for f in found if f.rpartition(".")[0] in family]

    def _instance(self, cls: str, method: str) -> list[str] | None:
        if cls in tables.PURE_MODULES | tables.PASSING_MODULES and method == "forward":
            return []
        if method == "forward" and not self.project.is_module_class(cls):
            method = "__call__"
        return self.project.methods(cls, method) or None

    def enables_gradients(self, function: str) -> bool:
        """Whether the function, or what it calls, mentions what switches gradients on."""
        return function in self._enabling

    @cached_property
    def _enabling(self) -> frozenset[str]:
        project = self.project
        found = {name for name, f in project.functions() if not f.mentions.isdisjoint(api.GRAD_SWITCHES)}
        callers: defaultdict[str, list[str]] = defaultdict(list)
        words: set[str] = set()
        stack = list(found)
        while stack:
            function = stack.pop()
            word = function.rpartition(".")[2]
            if word not in words:  # who may name what is worked out once for each word, not for each function
                words.add(word)
                for mention, module, summary in project.mentions(word):
                    caller = f"{module}.{summary.qualname}"
                    own = not mention.startswith(".")
                    for named in project.named(mention, caller.rpartition(".")[0]) if own else (mention,):
                        callers[named].append(caller)
            loose = f".{word}"
            methods = project.named(loose, "") if loose in callers else ()
            reached = [*callers.pop(function, ()), *(callers.pop(loose, ()) if function in methods else ())]
            stack += (new := [c for c in dict.fromkeys(reached) if c not in found])
            found.update(new)
        return frozenset(found)

    @kept
    def mentioned(self, function: str) -> frozenset[str]:
        """All that the function mentions, and the functions of the project that it may call, as summaries have it."""
        functions = reach([function], lambda f: [m for n in self._mentions(f) for m in self._named(n, f)])
        return frozenset(mention for f in functions for mention in self._mentions(f))

    def _mentions(self, function: str) -> frozenset[str]:
        summary = self.project.function(function)
        return summary.mentions if summary is not None else frozenset()

    def _named(self, mention: str, function: str) -> list[str]:
        return self.project.named(mention, function.rpartition(".")[0])

    def changing(self, names: Iterable[str]) -> bool:
        """Whether a method or property of one of ``names``, or what it calls on itself, says that it changes something.

        Code that is not read is presumed to change nothing: it is asked about what only shows or counts.
        """
        return self.changes_in(m for name in names for m in self.project.named_methods(name))

    def changes_in(self, methods: Iterable[str]) -> bool:
        """As `changing`, for methods by their dotted names."""
        stack = list(methods)
        seen = set(stack)
        while stack:
            method = stack.pop()
            summary = self.project.function(method)
            if summary is None:
                continue
            if summary.does.own or summary.does.sets or summary.does.writes:
                return True
            for call in summary.does.calls:
                attribute = call[5:] if call.startswith("self.") else ""
                found = self.project.methods(method.rpartition(".")[0], attribute)
                if not found and attribute in tables.CONTAINER_WRITES:
                    return True
                more = [m for m in found if m not in seen]
                stack += more
                seen.update(more)
        return False

    @kept
    def behind(self, name: str) -> Does:
        """What the methods and properties called ``name``, of any class of the project, do taken together."""
        return functools.reduce(operator.or_, map(self.of, self.project.named_methods(name)), NOTHING)


def _mentioned(summary: FunctionSummary) -> frozenset[str]:
    """What it mentions, where ``super().m`` is no method of an unknown object."""
    inherited = {c for c in summary.does.calls if c.startswith("super.")}
    named = {f".{c[6:]}" for c in inherited}
    return summary.mentions - (named - summary.does.calls) | inherited
