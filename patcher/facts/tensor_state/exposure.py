"""Who else may see the state of an object: subclasses, bases, code outside of the class, copies and pickles."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patcher.facts import Facts
from patcher.facts.analysis import ClassAnalysis
from patcher.facts.project.exposed import TENSORS
from patcher.facts.project.index import ClassSummary
from patcher.facts.syntax.classes import INITIALISERS, self_name
from patcher.facts.syntax.tree import dotted
from patcher.facts.tables.wording import suggests_configuration

_PLAIN_BASES = frozenset("object abc.ABC typing.Protocol typing.Generic".split())
_DATACLASS = frozenset("dataclasses.dataclass dataclass".split())
_PLAIN_DECORATORS = _DATACLASS | frozenset("typing.final typing.runtime_checkable".split())
#: What a dataclass makes of its fields beyond ``==`` and a text.
_HASHING = frozenset("unsafe_hash frozen order".split())
#: What writes an object to a file: in code that cannot name the class, that is something else.
_WRITING = frozenset("save dump dumps torch.save pickle.dump pickle.dumps joblib.dump dill.dump dill.dumps".split())
_COMPILED_IN = "integers that are reached through a module or a global are compiled in, and each change compiles again"
#: What an object does with all of its attributes at once, seen in the class itself.
_OWN_WAYS = frozenset(
    "__dict__ __setattr__ __delattr__ __getattribute__ __getattr__ __setstate__ __getstate__ __reduce__ "
    "__reduce_ex__ __deepcopy__ __copy__ __new__ vars asdict astuple fields".split()
)


class Exposure(ClassAnalysis):
    """Of the class ``cls``."""

    def __init__(self, facts: Facts, cls: ast.ClassDef) -> None:
        super().__init__(facts, cls)
        self.name = f"{self.module}.{self.syntax.qualname(cls) or cls.name}"

    def reasons(self, state: Iterable[str]) -> Iterator[str]:
        """Why what is in the attributes ``state`` may be seen from elsewhere; nothing when nothing says so."""
        state = sorted(state)
        for a in state:
            if a in TENSORS:
                yield f"tensors have an attribute `{a}` too: who reads it cannot be told"
        state += [f"_{self.cls.name.lstrip('_')}{a}" for a in state if a.startswith("__")]  # as others spell it
        yield from self._own(state)
        yield from self._family(state)
        yield from self._outside(state)

    def _own(self, state: list[str]) -> Iterator[str]:
        for decorator in self.cls.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            what = self.syntax.qualified(target) or dotted(target) or "?"
            if what not in _PLAIN_DECORATORS:
                yield f"what the decorator `{what}` does with the attributes is not known"
            for k in decorator.keywords if isinstance(decorator, ast.Call) else []:
                off = isinstance(k.value, ast.Constant) and not k.value.value
                if (k.arg is None or k.arg in _HASHING) and not off:
                    yield f"`{k.arg or '**'}` of the dataclass works with its fields"
        if self.cls.keywords:
            yield "the class has a metaclass"
        ways = sorted(self.syntax.names_in(self.cls) & _OWN_WAYS)
        methods = sorted(set(self.members.methods) & _OWN_WAYS)
        if ways or methods:
            yield f"the class has its own ways with attributes (`{(ways + methods)[0]}`)"
        for n in self.syntax.subtree(self.cls):
            match n:
                case ast.Call(func=ast.Name(id="getattr" | "setattr" | "delattr" | "hasattr"), args=args):
                    key = args[1] if len(args) > 1 else None
                    if not isinstance(key, ast.Constant) or key.value in state:
                        yield f"`{ast.unparse(n)}` reaches attributes by name"
        if any(f for a in state for f in self.project.attributes.computed(self.name, a)):
            yield "attributes are assigned by names that are not known"
        for s in self.cls.body:
            if isinstance(s, ast.AsyncFunctionDef) and any(
                isinstance(n, ast.Attribute) and n.attr in state for n in ast.walk(s)
            ):
                yield f"`{s.name}` is asynchronous"

    def _family(self, state: list[str]) -> Iterator[str]:
        family, unknown = self.project.family(self.name)
        foreign = sorted(b for b in unknown - _PLAIN_BASES if b.rpartition(".")[2] != "object")
        if foreign:
            yield f"the base `{foreign[0].rpartition('.')[2]}` is not known and may use the attribute"
        below = {child for child, _ in self.project.subclasses(self.name)}
        for c in sorted(family - {self.name}):
            summary = self.project.known_class(c)
            assert summary is not None
            last = c.rpartition(".")[2]
            if shared := sorted(self._used_by(c, summary) & set(state)):
                yield f"`{last}` uses `self.{shared[0]}` as well"
            overridden = sorted(summary.methods & set(self.members.methods) - {"__init__", "__post_init__"})
            if c in below and overridden:
                yield f"`{last}` overrides `{overridden[0]}`"
            if summary.methods & _OWN_WAYS:
                yield f"`{last}` has its own ways with attributes"

        yield from self._unresolved(state)

    def _unresolved(self, state: list[str]) -> Iterator[str]:
        """Classes whose base is not found by its name, such as another name of this class."""
        own = {m.module for m in self.project.modules.values()}
        last = self.name.rpartition(".")[2]
        for name, summary in sorted(self.project.classes()):
            for base in summary.bases:
                if self.project.known_class(base) is not None:
                    continue
                if base != "?" and base.rpartition(".")[2] != last and not any(base.startswith(f"{m}.") for m in own):
                    continue
                if name != self.name and (shared := sorted(self._used_by(name, summary) & set(state))):
                    yield f"`{name.rpartition('.')[2]}` may be a subclass, and uses `self.{shared[0]}`"

    def _used_by(self, name: str, summary: ClassSummary) -> set[str]:
        """The attributes of ``self`` that the methods of a class mention, and its own names."""
        used = set(summary.stores | summary.init_stores | summary.declared | summary.methods)
        for method in summary.methods:
            if (function := self.project.function(f"{name}.{method}")) is not None:
                used |= {m[5:] for m in function.mentions if m.startswith("self.")}
        return used

    def _outside(self, state: list[str]) -> Iterator[str]:
        for method, function in sorted(self.members.methods.items()):
            if method in INITIALISERS or self_name(function) is None:  # a class method is called like that
                continue
            if self.project.is_taken(self.name, method):
                yield f"`{method}` is taken from the class, and may run for an object of another one"
        for module in self.project.modules.values():
            for a in state:
                if a in module.foreign_stores:
                    yield f"`.{a}` is assigned from outside, in {module.module}"
                if a in module.foreign_loads:
                    yield f"`.{a}` is read from outside, in {module.module}"
            for how, what in sorted(module.opened):
                if what == "=":
                    if how in state:
                        yield f"`{how}` is read by its name, in {module.module}"
                elif what == "class":
                    if how in self.members.methods and self._near(module.module, module.imports, how, how):
                        yield f"another class of {module.module} takes its `{how}`"
                elif not suggests_configuration(what) and self._near(module.module, module.imports, what, how):
                    yield (
                        f"`{how}({what})` in {module.module} may reach all attributes, or copy them"
                        if what
                        else f"`{how}` in {module.module} may be applied to it"
                    )

    def _near(self, module: str, imports: frozenset[str], what: str, how: str) -> bool:
        """Whether ``what``, a name in code of ``module``, may be an instance: the module can name the class."""
        if what.startswith("self of "):
            return what[8:] in self.project.family(self.name)[0]
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
