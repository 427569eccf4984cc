"""Plain objects that a module keeps and reads numbers from (tokenizers, vocabularies): ``self.words.picture_id``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from patcher.facts.analysis import ClassAnalysis
from patcher.facts.project.attributes import UNCANNY
from patcher.facts.project.touches import How
from patcher.facts.syntax.classes import Store, attribute_of, self_name
from patcher.facts.syntax.tree import FunctionNode, dotted, walk
from patcher.facts.tables import host_api
from patcher.facts.tables import torch_api as api
from patcher.facts.tables.wording import suggests_change, suggests_configuration, suggests_variation

_LOOKS_ONLY = frozenset("len print str repr type id callable format".split())
_OTHER_LIBRARIES = ("torch.", "torchvision.", "collections.", "numpy.", "copy.", "builtins.")
_PLAIN = frozenset("int float bool str bytes list tuple dict set frozenset Callable Tensor device dtype".split())
_TESTS = (ast.If, ast.IfExp, ast.While)
#: Methods of Python's own containers, which Dynamo traces.
_TRACED = frozenset(name for kind in (dict, list, set, str, bytes, int, float, tuple) for name in dir(kind))

_OPAQUE = frozenset("open input print exec eval compile hash id iter next __import__".split())


@dataclass(frozen=True, eq=False)
class Held:
    """``self.name``, assigned by ``store`` in ``__init__``; ``source``: its class, when that is in the project.

    ``reads``: where compiled code compares an attribute of it with a tensor, by the attribute's name.
    """

    store: Store
    source: str
    reads: dict[str, list[ast.Attribute]]


class Holdings(ClassAnalysis):
    """The objects that instances of one class hold, and whether their answers stay the same."""

    def held(self) -> Iterator[Held]:
        """Yield what a line of ``__init__`` assigns from an argument without default, or from a call."""
        init = self.members.methods.get("__init__")
        me = self_name(init) if init is not None else None
        if init is None or me is None:
            return
        for i, s in enumerate(init.body):
            name = attribute_of(s.targets[0], me) if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
            if name is None or suggests_configuration(name) or name.startswith("__") or name in self.members.methods:
                continue
            stores = self.members.stores[name]
            if [store.statement for store in stores] != [s] or not self._is_after_super(init, i):
                continue
            source = self._source(stores[0], init)
            reads = self._reads(name, init) if source is not None else None
            if source is not None and reads:
                yield Held(stores[0], source, reads)

    def _is_after_super(self, init: FunctionNode, position: int) -> bool:
        """Whether the statement is a line of its own after ``super().__init__()``, with no return before it."""
        s, before = init.body[position], init.body[:position]
        if not self.syntax.alone(s) or any(isinstance(n, ast.Return) for b in before for n in walk(b)):
            return False
        calls = (b.value.func for b in before if isinstance(b, ast.Expr) and isinstance(b.value, ast.Call))
        return any(ast.unparse(f) in ("super().__init__", f"super({self.cls.name}, self).__init__") for f in calls)

    def _source(self, store: Store, init: FunctionNode) -> str | None:
        """The dotted class of the object, "" when that is not in the project; None: configuration, a tensor, ..."""
        match store.value:
            case ast.Name(id=name) if not suggests_configuration(name):
                parameters = [a for a in (*init.args.args, *init.args.kwonlyargs) if a.arg == name]
                has_default = {a.arg for a in init.args.args[len(init.args.args) - len(init.args.defaults) :]}
                has_default |= {a.arg for a, d in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True) if d}
                uses = [n for n in walk(init) if isinstance(n, ast.Name) and n.id == name]
                if not parameters or name in has_default or len(uses) != 1:
                    return None
                if parameters[0].annotation is None:
                    return ""
                what = parameters[0].annotation
            case ast.Call(func=what):
                if self.inference.definitions_of_root(what):
                    return "" if isinstance(what, ast.Name) and not suggests_configuration(what.id) else None
            case _:
                return None
        text = dotted(what)
        full = self._full(what)
        if text is None or text in _PLAIN or full.startswith(_OTHER_LIBRARIES):
            return None
        function = self.project.function(full)
        source = next((c for c in (full, full.rpartition(".")[0]) if self.project.known_class(c) is not None), "")
        classes = {full, *(function.mentions if function is not None else ()), *self._family(source)}
        if any(map(self.project.is_module_class, classes)):
            return None
        words = (*text.split("."), *(c.rpartition(".")[2] for c in self._family(source)))
        return None if any(map(suggests_configuration, words)) else source

    def _full(self, what: ast.expr) -> str:
        return self.syntax.qualified(what) or f"{self.name.rpartition('.')[0]}.{dotted(what)}"

    def _family(self, source: str) -> frozenset[str]:
        return frozenset[str]().union(*self.project.family(source)) if source else frozenset()

    # --- what is done with it ---------------------------------------------------------------------------------------

    def _reads(self, name: str, init: FunctionNode) -> dict[str, list[ast.Attribute]] | None:
        """The reads that the fix is for; None where the object is used as a module is, or goes somewhere."""
        found: dict[str, list[ast.Attribute]] = {}
        for method in self.members.methods.values():
            for e in (n for n in walk(method) if isinstance(n, ast.Attribute) and n.attr == name):
                if self.inference.instance_attribute(e) != (self.cls, name) or isinstance(e.ctx, ast.Store):
                    continue
                read = self.syntax.parents[e]
                compiled = self.facts.compiled(e)
                if isinstance(read, ast.Attribute):
                    called = isinstance(p := self.syntax.parents[read], ast.Call) and p.func is read
                    changes = isinstance(read.ctx, ast.Store) or suggests_change(read.attr)
                    if changes or (called and compiled) or method is init or read.attr in _OF_TENSORS:
                        return None
                    if compiled and self._is_compared(read) and self._sees_instance(e, method):
                        found.setdefault(read.attr, []).append(read)
                elif not self._looks_only(read, compiled or method is init):
                    return None
        return found

    def _looks_only(self, user: ast.AST, strict: bool) -> bool:
        """Whether the object is used as a whole in a call that changes nothing."""
        name = dotted(user.func) if isinstance(user, ast.Call) else None
        return name in _LOOKS_ONLY or (name is not None and not strict and not suggests_change(name.rpartition(".")[2]))

    def _is_compared(self, read: ast.Attribute) -> bool:
        """Whether it is one side of ``==`` or ``!=`` with a tensor on the other."""
        if read.lineno != read.end_lineno or any(isinstance(p, ast.JoinedStr) for p in self.syntax.ancestors(read)):
            return False
        match self.syntax.parents[read]:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                return self.inference.of(right if read is left else left).is_tensor
        return False

    def _sees_instance(self, e: ast.Attribute, method: FunctionNode) -> bool:
        """Whether the method's name for its instance still means that where ``e`` stands."""
        me = self_name(method)
        inner = (
            p for p in self.syntax.ancestors(e) if p is not method and not isinstance(p, (ast.Module, ast.ClassDef))
        )
        stored = (n for n in walk(method) if isinstance(n, ast.Name) and n.id == me)
        return (
            me is not None
            and not any(self.syntax.binds(p, me) for p in inner)
            and all(isinstance(n.ctx, ast.Load) for n in stored)
        )

    # --- whether it stays -------------------------------------------------------------------------------------------

    def may_change(self, held: Held, part: str) -> bool:
        """Whether anything in the project says that the object, or its attribute ``part``, may be another one later."""
        name, attributes = held.store.name, self.project.attributes
        if suggests_variation(name) or suggests_variation(part) or self.syntax.names_in(self.cls) & UNCANNY:
            return True
        if any(attributes.reasons(self.name, name)) or any(attributes.computed(self.name, part, any_owner=True)):
            return True
        if any(
            "*" not in f.touch.place and not (f.touch.early and f.touch.owners == (self.name,))
            for f in attributes.touched(self.name, name, (How.WRITTEN, How.WITHIN))
        ):
            return True
        doubts, stored = self.project.doubts, self.project.foreign_stores
        value = held.store.value
        asked = {f"?{part}", f"?{name}"}
        if isinstance(value, ast.Call):
            asked.add(f"{self._full(value.func)}()")
        else:
            asked |= {d for d in doubts for c in {self.name, *self._family(self.name)} if d.startswith(f"{c}:")}
        if asked & doubts or any(_is_related(part, s) for s in stored):
            return True
        return not self.answers_alike(held.source, part) if held.source else self._is_answered(part)

    def _is_answered(self, part: str) -> bool:
        """Whether a plain class of the project may be that of an object of which nothing is known."""
        plain = (s for c, s in self.project.classes() if not self.project.is_module_class(c))
        return any({part, "__getattr__"} & s.methods or any(_is_related(part, n) for n in s.stores) for s in plain)

    def answers_alike(self, source: str, part: str) -> bool:
        """Whether the getter of the project's class ``source`` reads nothing but what its constructor has made."""
        family, unknown = self.project.family(source)
        made = self.project.known_class(source)
        if unknown or len(family) != 1 or made is None or made.stores or part in made.init_stores:
            return False
        mentions = {m for found in self._getters(source, part) for m in found}
        return not any(map(self.project.attributes.changed, made.init_stores)) and all(
            self.project.function(m) is None
            and not m.startswith("torch")
            and not self.project.methods(source, m.removeprefix("self."))
            and (m.startswith("self.") or m.lstrip(".") in _TRACED or not suggests_change(m.rpartition(".")[2]))
            and not self.project.attributes.changed(f"~{m.rpartition('.')[2]}")
            and m.rpartition(".")[2] not in _OPAQUE
            for m in mentions
        )

    def is_traced(self, source: str, part: str) -> bool:
        """Whether Dynamo can follow how the project's class answers, so that there is nothing to win."""
        mentions = {m for found in self._getters(source, part) for m in found}
        home = f"{source.rpartition('.')[0]}."
        return not self.project.family(source)[1] and all(
            m.startswith("self.") or m.lstrip(".") in _TRACED or (m.startswith(home) and m[len(home) :] not in _OPAQUE)
            for m in mentions
        )

    def _getters(self, source: str, part: str) -> list[frozenset[str]]:
        """What the functions mention that answer for ``part``."""
        getters = [g for n in (part, "__getattr__", "__getattribute__") for g in self.project.methods(source, n)]
        return [frozenset(f.mentions) for g in getters if (f := self.project.function(g)) is not None]

    @cached_property
    def _callers(self) -> dict[str, list[FunctionNode]]:
        found: dict[str, list[FunctionNode]] = {name: [] for name in self.members.methods}
        for method in self.members.methods.values():
            for n in walk(method):
                own = self.inference.instance_attribute(n) if isinstance(n, ast.Attribute) else None
                if own is not None and own[1] in found:
                    found[own[1]].append(method)
        return found

    def is_conditional(self, read: ast.Attribute) -> bool:
        """Whether a flag of the instance, or a handler, may decide whether the method of ``read`` gets there."""
        method = self.syntax.method_of(read)
        seen: set[FunctionNode] = set()
        stack = [method] if method is not None else []
        while stack:
            m = stack.pop()
            if m in seen:
                continue
            seen.add(m)
            if any(isinstance(n, ast.Try) or any(map(self._is_flag, _asked(n))) for n in walk(m)):
                return True
            stack += filter(self.facts.reached, self._callers.get(m.name, ()))
        return False

    def _is_flag(self, test: ast.expr) -> bool:
        """Whether the test asks the instance (``self.training`` aside), or for what there is."""
        for n in walk(test):
            own = self.inference.instance_attribute(n)
            if own is not None and own[1] != "training":
                return True
            if isinstance(n, ast.Call) and dotted(n.func) in ("hasattr", "isinstance", "getattr"):
                return True
        return False


_OF_TENSORS = host_api.MODULE_OR_TENSOR | api.HOST_READS


def _asked(n: ast.AST) -> list[ast.expr]:
    return [n.test] if isinstance(n, _TESTS) else n.values if isinstance(n, ast.BoolOp) else []


def _is_related(read: str, stored: str) -> bool:
    """Whether assigning ``stored`` may change ``read``: the same name, or ``pad_token`` and ``pad_token_id``."""
    a, b = read.strip("_"), stored.strip("_")
    return a == b or a in (f"{b}_id", f"{b}_ids", f"{b}_idx", f"{b}_index", f"{b}_indices")
