"""Which expressions are lists, tuples, dicts or modules for sure, and which are by what is written of them."""

from __future__ import annotations

import ast

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.written import is_none
from patcher.facts.values.module_values import CONTAINERS
from patcher.facts.values.types import Kind

_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
_MAKERS = frozenset({"list", "tuple", "dict", "sorted"})


class Containers(Analysis):
    """What of one module has a length, which is what tells whether it is true."""

    def why_not(self, e: ast.expr) -> str | None:
        """What has to be so for ``e`` to be a container with other things than plain values; None when nobody says so.

        "": it is one, whatever comes in.
        """
        match e:
            case ast.Name():
                function = self.syntax.function_of(e)
                flow = self.flow_of(function) if function is not None else None
                if flow is None or e.id in flow.captured | flow.shared:
                    return None  # a function inside may bind it again
                found = self.inference.definitions(e)
                if found and all(map(self._binds_one, found)):
                    return None if all(map(self._is_plain, found)) else ""
                given = bool(found) and all(d.how == "parameter" for d in found)
                if given and self.inference.of(e).python == "container":
                    return f"`{e.id}` is what its annotation says, and not a tensor"
            case ast.Attribute() if (own := self.inference.instance_attribute(e)) is not None:
                stores = [s.value for s in self.class_facts(own[0]).stores.get(own[1], [])]
                if stores and all(v is not None and self._is_made(v) for v in stores):
                    return f"only this class sets `{ast.unparse(e)}`"
        return None

    def holds_layers(self, e: ast.expr) -> bool:
        """Whether ``e`` is ``self.x`` that the class sets to modules, or calls like one, and otherwise to None.

        What is registered as a module cannot be set to a tensor, and a tensor cannot be called.
        """
        own = self.inference.instance_attribute(e)
        if own is None:
            return False
        stores = [s.value for s in self.class_facts(own[0]).stores.get(own[1], [])]
        made = [v for s in stores if s is not None for v in _either(s) if not is_none(v)]
        kinds = {self.inference.of(v).kind for v in made if isinstance(v, ast.Call)}
        if not made or None in stores or not all(isinstance(v, ast.Call) for v in made):
            return False
        return kinds == {Kind.MODULE} or (kinds <= {Kind.MODULE, Kind.UNKNOWN} and self._is_called(*own))

    def _is_called(self, cls: ast.ClassDef, name: str) -> bool:
        calls = (n for n in self.syntax.subtree(cls) if isinstance(n, ast.Call))
        return any(self.inference.instance_attribute(c.func) == (cls, name) for c in calls)

    def _binds_one(self, d: Definition) -> bool:
        if d.how == "parameter":
            return self._collects(d)
        return d.how == "assign" and not d.path and d.value is not None and self._is_container(d.value)

    def _is_container(self, e: ast.expr) -> bool:
        match e:
            case ast.Call(func=ast.Name(id=name) as called):
                return name in _MAKERS and self.syntax.is_builtin(called)
        return isinstance(e, _DISPLAYS)

    def _is_made(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Call) and self.syntax.qualified(e.func) in CONTAINERS:
            return True
        return self._is_container(e) and not _holds_constants(e)

    def _collects(self, d: Definition) -> bool:
        """Whether ``d`` is ``*args`` or ``**kwargs``."""
        around = next((n for n in self.syntax.ancestors(d.node) if isinstance(n, ast.arguments)), None)
        return around is not None and d.node in (around.vararg, around.kwarg)

    def _is_plain(self, d: Definition) -> bool:
        """Whether what ``d`` binds holds literals alone: Dynamo knows such a list."""
        return d.value is not None and _holds_constants(d.value)


def _either(e: ast.expr) -> list[ast.expr]:
    """What ``e`` may be: both of ``a if c else b``."""
    return [*_either(e.body), *_either(e.orelse)] if isinstance(e, ast.IfExp) else [e]


def _holds_constants(e: ast.expr) -> bool:
    match e:
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Dict(values=elements):
            return bool(elements) and all(isinstance(x, ast.Constant) for x in elements)
    return False
