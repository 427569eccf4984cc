"""Attributes that hold an ``nn.Buffer``, and assignments that may put the very same object back."""

from __future__ import annotations

import ast

from patcher.facts.analysis import Analysis
from patcher.facts.project.touches import How
from patcher.facts.syntax.tree import dotted, walk

_BUFFERS = frozenset({"torch.nn.Buffer", "torch.nn.parameter.Buffer"})
#: Methods that give the tensor itself back when there is nothing to do.
_CONVERTING = frozenset(
    "to type type_as float double half bfloat16 int long short bool cpu cuda xpu contiguous expand_as view_as".split()
)
_ABOUT = frozenset({"device", "dtype", "is_cuda"})


class BufferObjects(Analysis):
    """Which assignments give an ``nn.Buffer`` to a module: Dynamo cannot trace them, though it is there already."""

    def holds(self, e: ast.expr) -> bool:
        """Whether ``e`` is an attribute that a class of this file fills with an ``nn.Buffer``."""
        if not isinstance(e, ast.Attribute):
            return False
        own = self.inference.instance_attribute(e)
        if own is not None:
            return self._keeps(own[0], e.attr)
        if isinstance(e.value, ast.Name):
            return False
        name = self.inference.of(e.value).module
        found = [c for c in self.syntax.by_type[ast.ClassDef] if f"{self.module}.{self._qualname(c)}" == name]
        return any(self._keeps(c, e.attr) for c in found)

    def _qualname(self, cls: ast.AST) -> str | None:
        return self.syntax.qualname(cls) if isinstance(cls, ast.ClassDef) else None

    def _keeps(self, cls: ast.ClassDef, name: str, depth: int = 8) -> bool:
        """Whether ``cls``, or a base of it in the file, assigns an ``nn.Buffer`` to that attribute somewhere."""
        if any(self._makes(s.value) for s in self.class_facts(cls).stores.get(name, ())):
            return True
        bases = {dotted(b) for b in cls.bases}
        above = [c for c in self.syntax.by_type[ast.ClassDef] if c.name in bases] if depth else []
        return any(self._keeps(c, name, depth - 1) for c in above)

    def _makes(self, value: ast.expr | None) -> bool:
        return isinstance(value, ast.Call) and self.syntax.qualified(value.func) in _BUFFERS

    def may_be(self, value: ast.expr, target: ast.Attribute, depth: int = 6) -> bool:
        """Whether ``value`` may be the object that ``target`` holds, and not a new one."""
        if depth == 0:
            return False
        match value:
            case ast.Attribute():
                return ast.unparse(value) == ast.unparse(target)
            case ast.Name():
                found = self.inference.definitions(value)
                return any(self._binds(d.how, d.node, d.value, target, depth) and not d.path for d in found)
            case ast.Call(func=ast.Attribute(value=base, attr=attr)):
                same = attr in _CONVERTING or (attr.endswith("_") and not attr.endswith("__"))
                return same and self.may_be(base, target, depth - 1)
            case ast.IfExp(body=body, orelse=orelse):
                return any(self.may_be(v, target, depth - 1) and v is not target for v in (body, orelse))
        return False

    def _binds(self, how: str, node: ast.AST, value: ast.expr | None, target: ast.Attribute, depth: int) -> bool:
        if how == "augmented" and isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            return self.may_be(node.target, target, depth - 1)
        return how == "assign" and value is not None and self.may_be(value, target, depth - 1)

    def asked(self, statement: ast.stmt, target: ast.Attribute) -> bool:
        """Whether ``statement`` stands where the object is another one: under a test of it, its device or dtype."""
        text = ast.unparse(target)
        for parent in self.syntax.ancestors(statement):
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return False
            for n in walk(parent.test) if isinstance(parent, ast.If) else ():
                if isinstance(n, ast.Attribute) and n.attr in _ABOUT and self.may_be(n.value, target):
                    return True
                match n:
                    case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[right]):
                        if text in (ast.unparse(left), ast.unparse(right)):
                            return True
        return False

    def plain(self, target: ast.Attribute) -> bool:
        """Whether the class leaves the assignment of attributes to ``nn.Module``."""
        family, _ = self.project.family(self._class(target))
        summaries = [c for f in family if (c := self.project.known_class(f)) is not None]
        return not any({"__setattr__", target.attr} & c.methods for c in summaries)

    def why_registered(self, target: ast.Attribute) -> str:
        """What else gives a buffer of that name to the module, or takes it away; "" when nothing does."""
        own = self.inference.instance_attribute(target)
        stores = self.class_facts(own[0]).stores[target.attr] if own is not None else []
        if any(s.how == "buffer" for s in stores):
            return "it is registered as a buffer as well"
        if any(isinstance(s.statement, ast.Delete) for s in stores):
            return "it is deleted"
        found = self.project.attributes.touched(self._class(target), target.attr, (How.SET,))
        return next((f.told for f in found), "")

    def _class(self, target: ast.Attribute) -> str:
        """The dotted class whose instance ``target`` is an attribute of."""
        own = self.inference.instance_attribute(target)
        return f"{self.module}.{self._qualname(own[0])}" if own is not None else self.inference.of(target.value).module
