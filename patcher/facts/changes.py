"""What one module changes in place, and what it doubts: may be None, may be missing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Mapping

from patcher.facts.syntax import Syntax, dotted
from patcher.facts.wording import suggests_change

INITIALISERS = ("__init__", "__post_init__")
#: Methods that hand a reference on.
COLLECTING = frozenset("append insert add extend put".split())
_HARMLESS = ("print", "set", "open", "input")
_CHOICES = (ast.Constant, ast.IfExp, ast.BoolOp)
Owner = Callable[[ast.AST], tuple[ast.AST | None, str | None]]


class Changes:
    """One look at a module.

    ``changed``: attributes and (as "~name") globals whose object is changed in place: an element or attribute assigned,
    a method called whose name says so. What an initialiser changes on its own instance is ``module.Class.attribute``.
    ``doubts``: "function()" that returns None, "callee:argument" (keyword or position) that is passed None, "?name" for
    an attribute that ``hasattr`` or a ``getattr`` with a default asks for. ``lent``: what is among ``changed`` only
    because its object was put into a collection.
    """

    def __init__(self, syntax: Syntax, module: str, imports: Mapping[str, str], owner: Owner) -> None:
        self.syntax = syntax
        self.module = module
        self.imports = imports
        self.owner = owner
        self.changed: set[str] = set()
        self.doubts: set[str] = set()
        self._collected: list[ast.expr] = []
        self._aliases = self._taken_from()
        for kind in (ast.Attribute, ast.Subscript):
            for n in syntax.by_type[kind]:
                if not isinstance(n.ctx, ast.Load):  # type: ignore[attr-defined]
                    self._change(n.value)  # type: ignore[attr-defined]
        for n in syntax.by_type[ast.Call]:
            assert isinstance(n, ast.Call)
            self._call(n)
        for n in syntax.by_type[ast.Global]:
            assert isinstance(n, ast.Global)
            self.changed.update(f"~{name}" for name in n.names)
        for n in syntax.by_type[ast.Return]:
            assert isinstance(n, ast.Return)
            function = self.owner(n)[0]
            if function is not None and isinstance(n.value, ast.Constant) and n.value.value is None:
                self.doubts.add(f"{self._name(function)}()")
        surely = set(self.changed)
        for e in self._collected:
            self._change(e)
        self.lent = self.changed - surely

    def _taken_from(self) -> dict[str, set[str]]:
        """Name -> attributes that it was taken from, anywhere in the module: ``words = model.words``."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for n in self.syntax.by_type[ast.Assign]:
            assert isinstance(n, ast.Assign)
            if isinstance(n.value, ast.Attribute):
                for t in n.targets:
                    if isinstance(t, ast.Name):
                        found[t.id].update(_chain(n.value)[1])
        return found

    def _name(self, node: ast.AST) -> str:
        """``module.Class.method``."""
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        return f"{self.module}.{self.syntax.qualname(node)}"

    def _change(self, target: ast.expr) -> None:
        root, attributes = _chain(target)
        if root is not None and root in self.imports and root not in self._aliases:
            self.changed.update(attributes)
            return
        function, first = self.owner(target)
        cls = self.syntax.parents.get(function) if function is not None else None
        early = isinstance(cls, ast.ClassDef) and function.name in INITIALISERS  # type: ignore[union-attr]
        if early and root == first and len(attributes) <= 1:
            assert cls is not None
            self.changed.update(f"{self._name(cls)}.{a}" for a in attributes)
            return
        self.changed.update(attributes, self._aliases.get(root or "", ()))
        if root is not None and function is not None and not self.syntax.binds(function, root):
            self.changed.add(f"~{root}")

    def _call(self, n: ast.Call) -> None:
        if isinstance(n.func, ast.Attribute) and suggests_change(n.func.attr):
            self._change(n.func.value)
        name = n.func.id if isinstance(n.func, ast.Name) else ""
        text = dotted(n.func) or ""
        last = text.rpartition(".")[2]
        changes = last not in _HARMLESS and last[:1].islower() and suggests_change(last)
        if changes and not self._resolved(text).startswith("torch."):
            for argument in n.args:  # a function that changes something may change what it is given
                if isinstance(argument, ast.Attribute) and last in COLLECTING and isinstance(n.func, ast.Attribute):
                    self._collected.append(argument)
                elif isinstance(argument, ast.Attribute):
                    self._change(argument)
        if name in ("hasattr", "getattr", "setattr", "delattr") and len(n.args) > 1:
            if name in ("setattr", "delattr"):
                self._change(n.args[0])
            elif isinstance(n.args[1], ast.Constant) and (name == "hasattr" or len(n.args) > 2):
                self.doubts.add(f"?{n.args[1].value!s}")
        nones = [str(i) for i, a in enumerate(n.args) if type(a) in _CHOICES and _maybe_none(a)]
        nones += [str(k.arg) for k in n.keywords if type(k.value) in _CHOICES and _maybe_none(k.value)]
        if nones:
            self.doubts.update(f"{callee}:{key}" for callee in self._callees(n) for key in nones)

    def _callees(self, n: ast.Call) -> list[str]:
        names = [dotted(n.func)]
        cls = self.syntax.class_of(n)
        if isinstance(n.func, ast.Attribute) and n.func.attr == "__init__" and cls is not None:
            names = [dotted(b) for b in cls.bases]
        return [self._resolved(text) for text in names if text is not None]

    def _resolved(self, text: str) -> str:
        root, _, rest = text.partition(".")
        base = self.imports.get(root, f"{self.module}.{root}")
        return f"{base}.{rest}" if rest else base


def _chain(e: ast.expr) -> tuple[str | None, list[str]]:
    """The name that ``e`` starts from (None for anything else), and the attributes on the way, subscripts left out."""
    attributes: list[str] = []
    while isinstance(e, (ast.Attribute, ast.Subscript)):
        if isinstance(e, ast.Attribute):
            attributes.insert(0, e.attr)
        e = e.value
    return (e.id if isinstance(e, ast.Name) else None), attributes


def _maybe_none(e: ast.expr) -> bool:
    parts = [e.body, e.orelse] if isinstance(e, ast.IfExp) else e.values if isinstance(e, ast.BoolOp) else [e]
    return any(isinstance(p, ast.Constant) and p.value is None for p in parts)
