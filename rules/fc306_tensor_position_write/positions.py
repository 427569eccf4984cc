"""Which expressions are positions that are kept in tensors: by what made them, or by what a class says of itself."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.project.tensor_fields import said_tensors
from patcher.facts.values.callees import Callees

_SAME = frozenset("clone detach contiguous long int to view reshape squeeze unsqueeze max min sum".split())


class Positions(Analysis):
    """Answers for one module. What is said here is for finding a place, and no proof that it is a tensor."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._callees = facts.ask(Callees)

    def is_tensor(self, e: ast.expr, seen: frozenset[Definition] = frozenset()) -> bool:
        """Whether ``e`` is a tensor, or what an object of the project says is one, or an element or a sum of such."""
        if self.inference.of(e).is_tensor:
            return True
        match e:
            case ast.Attribute(value=owner, attr=attr):
                found = self._callees.class_of(owner) or self._element_of(owner)
                return found is not None and attr in self._tensors(found)
            case ast.Subscript(value=value):
                return self.is_tensor(value, seen)
            case ast.BinOp(left=left, right=right):
                return self.is_tensor(left, seen) or self.is_tensor(right, seen)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _SAME:
                return self.is_tensor(value, seen)
            case ast.Name():
                found_here = self.inference.definitions(e)
                return bool(found_here) and all(d in seen or self._binds(d, seen | found_here) for d in found_here)
        return False

    def _tensors(self, cls: str) -> frozenset[str]:
        """The attributes that the class says are tensors: one of this file as it stands now, after other fixes."""
        here = [
            c for c in self.syntax.by_type[ast.ClassDef] if f"{self.module}.{self.syntax.qualname(c) or c.name}" == cls
        ]
        if len(here) == 1 and isinstance(here[0], ast.ClassDef):
            return said_tensors(here[0], self.syntax)
        summary = self.project.known_class(cls)
        return summary.tensors if summary is not None else frozenset()

    def _binds(self, d: Definition, seen: frozenset[Definition]) -> bool:
        value, path = d.part
        return d.how == "assign" and value is not None and not path and self.is_tensor(value, seen)

    def _element_of(self, e: ast.expr) -> str | None:
        """The class of what a parameter's list holds, as its annotation has it: of ``caches[i]``, or a loop's name."""
        match e:
            case ast.Subscript(value=ast.Name() as holder):
                return self._callees.class_of(holder)
            case ast.Name():
                lists = {self._callees.iterated(d) for d in self.inference.definitions(e)}
                held = {self._callees.class_of(one) if isinstance(one, ast.Name) else None for one in lists}
                return held.pop() if len(held) == 1 else None
        return None
