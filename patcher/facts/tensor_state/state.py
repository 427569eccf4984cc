"""Classes that keep integers in tensors though the host reads them: whether Python integers would say the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.caching.origins import Origins, numbers_needed
from patcher.facts.syntax.classes import INITIALISERS, ClassFacts, Store
from patcher.facts.syntax.tree import dotted
from patcher.facts.tensor_state.exposure import Exposure
from patcher.facts.tensor_state.uses import Change, RefusedError, Uses
from patcher.facts.values.types import Category


@dataclass(frozen=True, eq=False)
class TensorState:
    """Integer state of one class that is held in tensors and read by the host.

    ``attributes``: name and the place where it is made first. ``changes``: what makes it Python integers; empty when
    ``obstacle`` says why that cannot be. ``doubts``: what the changes take for granted.
    """

    cls: ast.ClassDef
    attributes: tuple[tuple[str, ast.stmt], ...]
    changes: tuple[Change, ...]
    obstacle: str
    doubts: tuple[str, ...]


class TensorStates(Analysis):
    """Looks through the classes of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
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
        members = self.class_facts(cls)
        made = {a: store for a in members.stores if (store := self._made(members, a)) is not None}
        origins = Origins(self.facts, cls) if made else None
        read = {a for e in self._read_by_host(origins) for a in origins.of(e) & set(made)} if origins else set()
        if origins is None or not read:
            return None
        attributes = tuple((a, made[a].statement) for a in sorted(read, key=lambda a: made[a].statement.lineno))
        try:
            values = [(a, v) for a, _ in attributes if (v := made[a].value) is not None]
            uses = Uses(origins, values)
            for name, _ in attributes:
                self._declared(members, name, uses, cls)
            uses.follow(self.syntax.subtree(cls))
        except RefusedError as refused:
            obstacle = f"{refused.reason}, in line {refused.node.lineno}"  # type: ignore[attr-defined]
            return TensorState(cls, attributes, (), obstacle, ())
        doubts = tuple(uses.doubts)
        if not self.project.whole:
            doubts += (f"no other file uses `{min(read)}`: there are too many to look at",)
        reason = self.kept_by_module(cls) or next(Exposure(self.facts, cls).reasons(read), "")
        return TensorState(cls, attributes, () if reason else tuple(uses.changes), reason, doubts)

    def _made(self, members: ClassFacts, attribute: str) -> Store | None:
        """The first store of ``attribute`` in a method that makes an integer tensor."""
        for store in members.stores[attribute]:
            value = self.inference.of(store.value) if store.value is not None else None
            if value is None or store.method is None or not value.is_tensor:
                continue
            match store.value:
                case ast.Call(func=ast.Attribute(attr="tensor"), args=[ast.Constant(value=int())]):
                    return store
            if value.dtype is not None and value.dtype.category is Category.INT:
                return store
        return None

    def _read_by_host(self, origins: Origins) -> Iterator[ast.expr]:
        """Places in methods that may be compiled where the host needs a number that may be a tensor's."""
        for function in origins.methods:
            if function.name in INITIALISERS or self.facts.is_disabled(function):
                continue
            for e in (e for n in self.syntax.subtree(function) for e in numbers_needed(n)):
                value = self.inference.of(e)
                if not value.is_number and value.python not in ("bool", "none", "str"):
                    yield e

    def _declared(self, members: ClassFacts, name: str, uses: Uses, cls: ast.ClassDef) -> None:
        """Annotations at class level; a field that the constructor takes is no state of the object's own."""
        for store in members.stores[name]:
            if store.how in ("buffer", "parameter"):
                raise RefusedError(store.statement, f"`{name}` is a registered {store.how}: part of the module's state")
            if store.how != "declared" or store.method is not None:
                continue
            data = any("dataclass" in (dotted(d) or "") for d in cls.decorator_list)
            if store.annotation is None or (data and not _left_out(store.value)) or (not data and store.value):
                raise RefusedError(store.statement, f"`{name}` belongs to the class, or its constructor takes it")
            uses.annotation(name, store.annotation)


def _left_out(value: ast.expr | None) -> bool:
    """Whether a dataclass field is none of the constructor's: ``field(init=False)`` without a default."""
    if not isinstance(value, ast.Call):
        return False
    given = {k.arg: k.value for k in value.keywords}
    init = given.get("init")
    return isinstance(init, ast.Constant) and init.value is False and not {"default", "default_factory"} & set(given)
