"""What compiled code reaches: from every ``forward`` on, function by function, as far as the summaries tell."""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from patcher.facts.tables import call_effects as tables

if TYPE_CHECKING:
    from patcher.facts.project.index import Project
    from patcher.facts.project.summaries import FunctionSummary, ModuleSummary

#: Special methods that tell about an object or end it: compiled code runs the others of what it makes.
_TELLING = frozenset(
    "__repr__ __str__ __del__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __copy__ __deepcopy__ __dir__ "
    "__init_subclass__ __class_getitem__ __format__".split()
)
#: A dotted function, and the class that its instance is of, where code that was reached makes that.
Run = tuple[str, str | None]
_FUNCTION = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})

#: What Dynamo traces of one when that is applied; the gradient too, where one will be asked for.
_OF_FUNCTION = ("forward", "setup_context", "backward")


class Reaching:
    """One search through ``project``."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.home = project.home
        self.aliases: defaultdict[str, list[str]] = defaultdict(list)
        for s in project.modules.values():
            for name, what in s.given:
                self.aliases[name].append(what)

    def functions(self, start: Iterable[str]) -> set[str]:
        """The dotted functions that run when those in ``start`` do, these too."""
        return {name for name, _ in self.runs(start)}

    def runs(self, start: Iterable[str]) -> set[Run]:
        """The same, each with the class of its instance where compiled code makes that itself."""
        reached: set[Run] = set()
        stack: list[Run] = [(name, None) for name in start]
        while stack:
            run = stack.pop()
            name = run[0]
            summary = self.project.function(name)
            if summary is None or run in reached or (name, None) in reached or summary.disabled:
                continue
            reached.add(run)
            stack += self.following(run, summary)
        return reached

    def following(self, run: Run, summary: FunctionSummary) -> Iterator[Run]:
        """What the function runs itself."""
        name, exactly = run
        module, owner = self.home[name], name.rpartition(".")[0]
        made = [*self._made(summary, module)]
        near = self.project.seen_by(module.module)
        at_hand: list[str] | None = None
        for cls in made:
            yield from self._running(cls)
        for mention in summary.here:
            if mention.startswith("self."):
                if self.project.known_class(owner) is not None:
                    yield from self._of_instance(owner, mention[5:], exactly, module)
            elif mention in (".__init__", ".__new__") or (exactly and self._is_inherited(mention, summary)):
                for base in self._bases(exactly or owner):
                    yield from ((m, exactly) for m in self.project.inherited(base, mention[1:]))
            elif mention.startswith("."):
                methods = self.project.named_methods(mention[1:])
                if not methods:
                    continue
                if mention[1:] not in tables.COMMON_METHODS:
                    yield from ((m, None) for m in methods if self.home[m].module in near)
                else:  # a method of tensors and lists too: only of what is known to be at hand
                    if at_hand is None:
                        named = (m for m in summary.here if self.project.known_class(m) is not None)
                        every = (*made, *named, *self._held(owner, summary))
                        at_hand = [cls for cls in every if not self.project.is_module_class(cls)]
                    yield from ((m, None) for cls in at_hand for m in self.project.methods(cls, mention[1:]))
            else:
                yield from self._meant(mention, module)

    @staticmethod
    def _is_inherited(mention: str, summary: FunctionSummary) -> bool:
        """Whether it is a method that is only ever asked of ``super()``."""
        calls = {call.lstrip("=") for call in summary.does.calls}
        return f"super{mention}" in calls and calls.isdisjoint({mention, f"?{mention}", f"?{mention[1:]}"})

    def _meant(self, mention: str, module: ModuleSummary) -> Iterator[Run]:
        """The functions that the dotted ``mention`` may run, or stand for."""
        stack, seen = [mention], set[str]()
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            cls, _, last = name.rpartition(".")
            if self.project.function(name) is not None:
                yield name, None
            elif last == "apply" and self._is_function(cls):
                for part in _OF_FUNCTION:
                    yield from ((m, None) for m in self.project.methods(cls, part))
            elif name in self.aliases:
                stack += self.aliases[name]
                for what in self.aliases[name]:
                    yield from self._running(what)
            elif name.endswith("()"):
                stack += [f"{found}()" for found in self.project.re_exported(name[:-2])]
            else:
                found = self.project.re_exported(name) or self.project.starred(name, module)
                yield from ((m, None) for m in found)

    def _of_instance(self, owner: str, name: str, exactly: str | None, module: ModuleSummary) -> Iterator[Run]:
        """What ``self.name`` may run in the class ``owner``; ``exactly``: the class that the instance is of."""
        if exactly is not None and (own := self.project.inherited(exactly, name)):
            yield from ((m, exactly) for m in own)
            return
        if methods := self.project.methods(owner, name):
            yield from ((m, None) for m in methods)
            return
        summary = self.project.known_class(owner)
        held = dict(summary.built).get(name, "") if summary is not None else ""
        if held and not self.project.is_module_class(held):
            yield from ((m, held) for m in self.project.inherited(held, "__call__"))
        for what in self._named(owner, name):
            if what.startswith("self."):
                yield from ((m, None) for m in self.project.methods(owner, what[5:]))
            else:
                yield from self._running(what)
                if self.project.known_class(what) is None:
                    yield from self._meant(what, module)

    def _named(self, owner: str, name: str) -> list[str]:
        """What ``name`` stands for in the class ``owner``, or in one of its family."""
        return [what for c in self.project.family(owner)[0] for what in self.aliases.get(f"{c}.{name}", ())]

    def _classes_named(self, owner: str, name: str) -> list[str]:
        return [what for what in self._named(owner, name) if self.project.known_class(what) is not None]

    def _held(self, owner: str, summary: FunctionSummary) -> Iterator[str]:
        """The classes of the objects that a method gets at through its instance."""
        known = self.project.known_class(owner)
        if known is None:
            return
        own = {m[5:] for m in summary.here if m.startswith("self.")}
        yield from (cls for name, cls in known.built if name in own and self.project.known_class(cls) is not None)
        for name in own:
            for method in self.project.methods(owner, name):
                given = self.project.function(method)
                for what in given.returns if given is not None else ():
                    _, mine, text = what.rpartition("self.")
                    yield from self._classes_named(owner, text) if mine else ()

    def _made(self, summary: FunctionSummary, module: ModuleSummary) -> Iterator[str]:
        """The plain classes that the function makes objects of."""
        for call in summary.does.calls:
            text = call.lstrip("=")
            for name in (text, f"{module.module}.{text}"):
                if self.project.known_class(name) is not None:
                    yield name

    def _running(self, cls: str) -> Iterator[Run]:
        """Of a plain class that objects are made of: what makes one, and what operators and calls of it run."""
        if self.project.known_class(cls) is None or self.project.is_module_class(cls) or self._is_error(cls):
            return
        family = [cls, *self._bases(cls)]
        special = {m for c in family if (k := self.project.known_class(c)) is not None for m in k.methods}
        for name in special:
            if name.startswith("__") and name.endswith("__") and name not in _TELLING:
                yield from ((m, cls) for m in self.project.inherited(cls, name))

    def _bases(self, cls: str) -> tuple[str, ...]:
        return self.project.above(cls)[1:]

    def _is_function(self, cls: str) -> bool:
        return any(base in _FUNCTION for base in self._bases(cls))

    def _is_error(self, cls: str) -> bool:
        """Whether it is an error, or something that Python itself makes objects of."""
        last = (base.rpartition(".")[2] for base in self._bases(cls))
        kinds = (getattr(builtins, name, None) for name in last)
        return any(isinstance(kind, type) and kind is not object for kind in kinds)
