"""Where the gradient of an expression goes: an arm that is evaluated, but not taken, must not send any elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.totality import Effects
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import last_name
from patcher.facts.syntax.written import given
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Category, Kind, Value

Key = tuple[str, frozenset[Definition]]

#: What stops a gradient: nothing of the call's arguments gets one.
_STOPS = frozenset(
    "zeros_like ones_like full_like empty_like detach size dim numel item tolist finfo iinfo len".split()
)
_ATTRIBUTES = frozenset("shape dtype device ndim requires_grad is_cuda".split())
#: Calls whose gradient is finite wherever their input is, beside the smooth ones of torch_api.
_SMOOTH = (
    api.SMOOTH_SAME
    | api.SMOOTH_FLOAT
    | (api.REDUCTIONS - frozenset("norm std var prod logsumexp".split()))
    | (api.ALIASING - {"data"})
    | frozenset(
        "where cat concat stack masked_fill softmax log_softmax cumsum repeat expand matmul bmm mm add sub mul "
        "float double half bfloat16 zeros ones full arange tensor zeros_like ones_like full_like".split()
    )
)
_MODULES = frozenset(f"torch.nn.{n}" for n in "Linear Embedding LayerNorm RMSNorm Conv1d Conv2d Conv3d".split())


class Gradients(Analysis):
    """Follows names to their definitions."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.effects = facts.ask(Effects)
        self._parts: dict[Key, list[tuple[Key, ast.expr]] | None] = {}

    def why_not_alike(self, arms: list[ast.expr]) -> str | None:
        """None when all ``arms`` send a gradient to the same places; else what would get a zero in place of none.

        What only one arm goes through on the way there must be smooth: a zero times infinity is no zero.
        """
        if len({frozenset(key for key, _ in self._named(arm)) for arm in arms}) == 1:
            return None  # what the same names are made of is the same, too
        closures: list[dict[Key, ast.expr]] = []
        ends: list[dict[Key, ast.expr]] = []
        for arm in arms:
            closure, end = self._closure(arm)
            closures.append(closure)
            ends.append(end)
        for closure in closures:
            for key, node in closure.items():
                if all(key in other for other in closures):
                    continue
                if (reason := self._why_not_as_defined(node)) is not None:
                    return reason
                for value in self._definitions(node) or ():
                    reason = self.why_not_smooth(value)
                    if reason is not None:
                        return reason
        for end in ends:
            for key, node in end.items():
                if any(key not in other for other in ends):
                    return f"`{ast.unparse(node)}` would get a zero gradient in place of none"
        return None

    def own(self, arms: list[ast.expr]) -> list[list[ast.expr]]:
        """For each arm what it alone goes through: itself, and what names are made of that not all arms reach."""
        closures = [self._closure(arm)[0] for arm in arms]
        shared = set.intersection(*(set(closure) for closure in closures))
        alone = [[self._definitions(node) or () for key, node in c.items() if key not in shared] for c in closures]
        return [[arm, *chain(*values)] for arm, values in zip(arms, alone, strict=True)]

    def carries(self, e: ast.expr) -> bool:
        """Whether a gradient may flow into what ``e`` holds."""
        return any(True for _ in self._carriers(e))

    def _closure(self, arm: ast.expr) -> tuple[dict[Key, ast.expr], dict[Key, ast.expr]]:
        """All names and attributes that ``arm`` is made of, and those of them that have no definition to follow."""
        closure: dict[Key, ast.expr] = {}
        ends: dict[Key, ast.expr] = {}
        stack = self._named(arm)
        while stack:
            key, node = stack.pop()
            if key in closure:
                continue
            closure[key] = node
            if key not in self._parts:
                values = self._definitions(node)
                self._parts[key] = None if values is None else [c for value in values for c in self._named(value)]
            parts = self._parts[key]
            if parts is None:
                ends[key] = node
            else:
                stack += parts
        return closure, ends

    def _named(self, e: ast.expr) -> list[tuple[Key, ast.expr]]:
        return [(self._key(node), node) for node in self._carriers(e)]

    def _key(self, node: ast.expr) -> Key:
        if isinstance(node, ast.Name):
            return node.id, self.inference.definitions(node)
        return ast.unparse(node), frozenset()

    def _definitions(self, node: ast.expr) -> list[ast.expr] | None:
        """The expressions that a name stands for; None when they are not all known."""
        if not isinstance(node, ast.Name):
            return None
        values: list[ast.expr] = []
        for d in self.inference.definitions(node):
            if d.how == "assign" and d.value is not None:
                values.append(d.value)
            elif d.how == "augmented" and isinstance(d.node, ast.AugAssign):
                values += [d.node.target, d.node.value]
            else:
                return None
        return values or None

    def _why_not_as_defined(self, node: ast.expr) -> str | None:
        """None when a name holds what its definitions say, and augmented ones are smooth."""
        if not isinstance(node, ast.Name) or self._definitions(node) is None:
            return None
        for d in self.inference.definitions(node):
            if isinstance(d.node, ast.AugAssign) and not isinstance(d.node.op, (ast.Add, ast.Sub, ast.Mult)):
                return f"the gradient of `{ast.unparse(d.node)}` may be infinite"
            if reason := self.facts.ask(Unchanged).why_changed(node, self.syntax.statement_of(d.node), node):
                return reason
        return None

    def _carriers(self, e: ast.AST) -> Iterator[ast.expr]:
        """Names, instance attributes and modules in ``e`` that may get a gradient through it."""
        if isinstance(e, ast.expr) and _without(self.inference.of(e)):
            return
        match e:
            case ast.Name():
                yield e
                return
            case ast.Compare():
                return
            case ast.Attribute(attr=name) if name in _ATTRIBUTES:
                return
            case ast.Attribute():
                if (own := self.inference.instance_attribute(e)) is not None:
                    if not self._steady(*own):
                        yield e
                    return
            case ast.Call(func=func):
                if last_name(func) in _STOPS:
                    return
                receiver = func.value if isinstance(func, ast.Attribute) else None
                if self.syntax.qualified(func) is None:
                    if receiver is not None and self.inference.instance_attribute(func) is None:
                        yield from self._carriers(receiver)
                    else:
                        yield func  # a module or a function of its own: its weights get a gradient
                for part in given(e):
                    yield from self._carriers(part)
                return
        for child in ast.iter_child_nodes(e):
            yield from self._carriers(child)

    def _steady(self, cls: ast.ClassDef, name: str) -> bool:
        """Whether the attribute is made by the constructor, and is no parameter: it has no gradient."""
        value = self.inference.attribute(cls, name)
        store = self.inference.class_facts(cls).initial(name)
        return value.is_tensor and not value.trainable and store is not None and store.how in ("buffer", "assign")

    def why_not_smooth(self, value: ast.expr) -> str | None:
        """None when the gradient through ``value`` is finite at finite inputs; else what may make it infinite."""
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and not _without(self.inference.of(node)):
                own = self.inference.instance_attribute(node.func)
                name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
                known = name in _STOPS if own is None else self.inference.attribute(*own).module in _MODULES
                if not known and (own is not None or name not in _SMOOTH):
                    return f"the gradient of `{ast.unparse(node.func)}` may be infinite"
        return self.effects.why_not_smooth(value)


def _without(value: Value) -> bool:
    """Whether what is known of a value says that it has no gradient."""
    if value.kind is Kind.PYTHON:
        return value.python != "container"
    return value.dtype is not None and value.dtype.category in (Category.BOOL, Category.INT)
