"""Who else may see the state of an object: other classes, code outside of the class, copies and pickles."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patcher.facts import Facts
from patcher.facts.analysis import ClassAnalysis
from patcher.facts.project.exposed import TENSORS
from patcher.facts.syntax.tree import dotted
from patcher.facts.tables.wording import suggests_configuration

_PLAIN_BASES = frozenset("object abc.ABC typing.Protocol typing.Generic".split())
_PLAIN_DECORATORS = frozenset("dataclasses.dataclass dataclass typing.final typing.runtime_checkable".split())
#: What writes an object to a file: in code that cannot name the class, that is something else.
_WRITING = frozenset("save dump dumps torch.save pickle.dump pickle.dumps joblib.dump dill.dump dill.dumps".split())
_COMPILED_IN = "integers that are reached through a module or a global are compiled in, and each change compiles again"
#: What an object does with all of its attributes at once, seen in the class itself.
_OWN_WAYS = frozenset(
    "__dict__ __setattr__ __delattr__ __getattribute__ __getattr__ __setstate__ __getstate__ __reduce__ __slots__ "
    "__reduce_ex__ __deepcopy__ __copy__ __new__ vars asdict astuple fields getattr setattr delattr hasattr".split()
)


class Exposure(ClassAnalysis):
    """Of the class ``cls``."""

    def __init__(self, facts: Facts, cls: ast.ClassDef) -> None:
        super().__init__(facts, cls)
        self.name = f"{self.module}.{self.syntax.qualname(cls) or cls.name}"

    def reasons(self, state: Iterable[str]) -> Iterator[str]:
        """Why what is in the attributes ``state`` may be seen from elsewhere; nothing when nothing says so."""
        state = sorted(state)
        if a := next((a for a in state if a in TENSORS), ""):
            yield f"tensors have an attribute `{a}` too: who reads it cannot be told"
        state += [f"_{self.cls.name.lstrip('_')}{a}" for a in state if a.startswith("__")]  # as others spell it
        plain = all((self.syntax.qualified(d) or dotted(d)) in _PLAIN_DECORATORS for d in self.cls.decorator_list)
        ways = sorted((self.syntax.names_in(self.cls) | set(self.members.methods)) & _OWN_WAYS)
        if not plain or self.cls.keywords or ways:
            yield "the class has a decorator, a metaclass or its own ways with attributes"
        if any(f for a in state for f in self.project.attributes.computed(self.name, a)):
            yield "attributes are assigned by names that are not known"
        family, unknown = self.project.family(self.name)
        if others := sorted((family | unknown) - _PLAIN_BASES - {self.name, "builtins.object"}):
            yield f"`{others[0].rpartition('.')[2]}` is a base or a subclass, and may use the attribute"
        yield from self._elsewhere(state)

    def _elsewhere(self, state: list[str]) -> Iterator[str]:
        for name, summary in self.project.classes():
            if name != self.name and self.project.known_class(name) is summary:
                used = set(summary.stores | summary.init_stores | summary.declared | summary.methods)
                functions = (self.project.function(f"{name}.{m}") for m in summary.methods)
                used |= {m[5:] for f in functions if f is not None for m in f.mentions if m.startswith("self.")}
                if used & set(state):
                    yield f"`{name.rpartition('.')[2]}` uses an attribute of that name as well"
        for module in self.project.modules.values():
            if set(state) & (module.foreign_stores | module.foreign_loads):
                yield f"`.{state[0]}` is used from outside, in {module.module}"
            for how, what in sorted(module.opened):
                if not suggests_configuration(what) and self._near(module.module, module.imports, how):
                    yield f"`{how}({what})` in {module.module} may reach all attributes, or copy them"

    def _near(self, module: str, imports: frozenset[str], how: str) -> bool:
        """Whether code of ``module`` may have an instance at hand: the module can name the class."""
        home, _, last = self.name.rpartition(".")
        if module == home or any(home in (i, i.rpartition(".")[0]) or i.rpartition(".")[2] == last for i in imports):
            return True
        return how not in _WRITING and self._package(module) == self._package(home)

    def _package(self, module: str) -> str:
        """The package at the top; "" for modules that stand in none, which lie side by side."""
        top, dot, _ = module.partition(".")
        return top if dot else ""

    def kept(self) -> Iterator[str]:
        """Which modules keep an instance in an attribute, or compiled code finds in a global."""
        stack = self._with_subclasses(self.name)
        seen = set(stack)
        while stack:
            for module, place, owners in sorted(self.project.attributes.holders([stack.pop()])):
                if place[0] == "~":
                    yield f"the global `{place[1:]}` in {module} holds it: {_COMPILED_IN}"
                    continue
                holders = [c for owner in owners for c in self._with_subclasses(owner)]
                if not holders or any(map(self.project.is_module_class, holders)):
                    who = f"`{owners[0].rpartition('.')[2]}`" if holders else "an object"
                    yield f"{who} in {module} keeps it in an attribute: {_COMPILED_IN}"
                else:  # an object in between
                    stack += [c for c in holders if c not in seen]
                    seen.update(holders)

    def _with_subclasses(self, cls: str) -> list[str]:
        return [cls, *(child for child, _ in self.project.subclasses(cls))]
