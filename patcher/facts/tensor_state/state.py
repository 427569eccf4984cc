"""Classes that keep integers in tensors though the host reads them: whether Python integers would say the same."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.caching.origins import Origins, numbers_needed
from patcher.facts.syntax.classes import INITIALISERS, ClassFacts, Store
from patcher.facts.syntax.tree import dotted
from patcher.facts.tensor_state.creation import Creations
from patcher.facts.tensor_state.exposure import Exposure
from patcher.facts.tensor_state.forms import Change, Form, MeantError, RefusedError, StrangeError
from patcher.facts.tensor_state.uses import Uses
from patcher.facts.values.sizes import Sizes


@dataclass(frozen=True, eq=False)
class TensorState:
    """Integer state of one class that is held in tensors and read by the host.

    ``attributes``: name and the place where it is made first. ``reads``: what reads it on the host. ``changes``: what
    makes it Python integers; empty when ``obstacle`` says why that cannot be. ``doubts``: what the changes take for
    granted. ``strange``: the tensors are none that such state is mostly kept in.
    """

    cls: ast.ClassDef
    attributes: tuple[tuple[str, ast.stmt], ...]
    reads: tuple[ast.expr, ...]
    changes: tuple[Change, ...]
    obstacle: str
    doubts: tuple[str, ...]
    strange: bool = False


class TensorStates(Analysis):
    """Looks through the classes of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.sizes = facts.ask(Sizes)
        self.creations = facts.ask(Creations)
        self._known: dict[ast.ClassDef, TensorState | None] = {}

    def of(self, cls: ast.ClassDef) -> TensorState | None:
        """The integer state of ``cls``, or None when it holds none in tensors that the host reads."""
        if cls not in self._known:
            self._known[cls] = self._of(cls)
        return self._known[cls]

    def kept_by_module(self, cls: ast.ClassDef) -> str:
        """How Dynamo reaches objects of ``cls`` through a module, so that it compiles their integers in; or ""."""
        name = f"{self.module}.{self.syntax.qualname(cls) or cls.name}"
        if self.project.is_module_class(name):
            return "the class is a module: its integers are compiled in, and each change compiles again"
        return next(Exposure(self.facts, cls).kept(), "")

    def _of(self, cls: ast.ClassDef) -> TensorState | None:
        facts = self.class_facts(cls)
        made = {a: store for a in facts.stores if (store := self._made(facts, a)) is not None}
        if not made:
            return None
        origins = Origins(self.facts, cls)
        read = self._read_by_host(origins, frozenset(made))
        wanted = {a for e in read for a in origins.of(e) if a in made}
        if not wanted:
            return None
        attributes = tuple((a, made[a].statement) for a in sorted(wanted, key=lambda a: made[a].statement.lineno))
        name = f"{self.module}.{self.syntax.qualname(cls) or cls.name}"
        try:
            forms = self._forms(facts, wanted, made)
            uses = Uses(forms, origins)
            uses.follow()
            self._declared(facts, forms, uses, cls)
            uses.check_names()
            reason = self._exposed(cls, facts, name, wanted, uses.doubts)
            if reason:
                return TensorState(cls, attributes, tuple(read), (), reason, ())
        except MeantError:
            return None
        except RefusedError as refused:
            obstacle = f"{refused.reason}, in line {refused.node.lineno}"  # type: ignore[attr-defined]
            return TensorState(cls, attributes, tuple(read), (), obstacle, (), isinstance(refused, StrangeError))
        changes = tuple(uses.changes.values())
        return TensorState(cls, attributes, tuple(read), changes, "", tuple(uses.doubts))

    def _made(self, facts: ClassFacts, attribute: str) -> Store | None:
        """The first store of ``attribute`` that makes an integer tensor."""
        for store in facts.stores[attribute]:
            if store.value is not None and store.method is not None and self.creations.is_integer(store.value):
                return store
            if store.how == "other" or store.value is None:
                continue
            appended = isinstance(store.value, ast.List) and not store.value.elts
            items = [item for _, item in facts.appended.get(attribute, ())]
            if appended and store.method is not None and any(map(self.creations.is_integer, items)):
                return store
        return None

    def _read_by_host(self, origins: Origins, state: frozenset[str]) -> list[ast.expr]:
        """Places in methods that may be compiled where the host needs a number of the state."""
        found: list[ast.expr] = []
        for function in origins.methods:
            if function.name in INITIALISERS or self.facts.is_disabled(function):
                continue
            for n in ast.walk(function):
                found += [e for e in numbers_needed(n) if self._is_state(origins, e, state)]
        return found

    def _is_state(self, origins: Origins, e: ast.expr, state: frozenset[str]) -> bool:
        value = self.inference.of(e)
        python = value.is_number or value.python in ("bool", "none", "str")
        return not python and bool(origins.of(e) & state)

    def _forms(self, facts: ClassFacts, wanted: set[str], made: dict[str, Store]) -> dict[str, Form]:
        forms: dict[str, Form] = {}
        for a in sorted(wanted):
            stores = facts.stores[a]
            for s in stores:
                if s.how in ("buffer", "parameter"):
                    raise RefusedError(s.statement, f"`{a}` is a registered {s.how}: part of the module's state")
            value = made[a].value
            assert value is not None
            if isinstance(value, ast.Name):
                found = list(self.inference.definitions(value))
                if len(found) == 1 and found[0].how == "assign" and not found[0].path and found[0].value is not None:
                    value = found[0].value
            shape = self.creations.made(value)
            if shape is None:
                raise StrangeError(made[a].statement, f"how `{ast.unparse(value)}` is made is not understood")
            forms[a] = shape.form or Form.LIST
        return forms

    def _declared(self, facts: ClassFacts, forms: dict[str, Form], uses: Uses, cls: ast.ClassDef) -> None:
        """Annotations at class level; a field that the constructor takes is no state of the object's own."""
        data = any(
            (dotted(d.func if isinstance(d, ast.Call) else d) or "").rpartition(".")[2] == "dataclass"
            for d in cls.decorator_list
        )
        for a, form in forms.items():
            for store in facts.stores[a]:
                if store.how != "declared" or store.method is not None:
                    continue
                if store.annotation is None:
                    raise RefusedError(store.statement, f"`{a}` belongs to the class: all instances share it")
                if data and not _left_out(store.value):
                    raise RefusedError(store.statement, f"`{a}` is an argument of the constructor")
                if not data and store.value is not None and not _is_none(store.value):
                    raise RefusedError(store.statement, f"`{a}` belongs to the class: all instances share it")
                uses.annotation(store.annotation, form)

    def _exposed(self, cls: ast.ClassDef, facts: ClassFacts, name: str, wanted: set[str], doubts: list[str]) -> str:
        """Who else has to do with the state, in the given files or around them; "" when nobody."""
        if reason := self.kept_by_module(cls):
            return reason
        if not self.project.whole:
            doubts.append(f"no other file uses `{sorted(wanted)[0]}`: there are too many to look at")
        return next(Exposure(self.facts, cls).reasons(wanted), "")


def _left_out(value: ast.expr | None) -> bool:
    """Whether a dataclass field is none of the constructor's: ``field(init=False)`` without a default."""
    if not isinstance(value, ast.Call):
        return False
    given = {k.arg: k.value for k in value.keywords}
    init = given.get("init")
    return isinstance(init, ast.Constant) and init.value is False and not {"default", "default_factory"} & set(given)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None
