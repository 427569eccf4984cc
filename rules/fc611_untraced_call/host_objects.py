"""What Dynamo lacks for Python's own objects: lists that texts give, texts of sizes, properties that are kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from patcher.facts.analysis import Analysis
from patcher.facts.running.frequency import Frequency, Often
from patcher.facts.syntax.classes import INITIALISERS, self_name
from patcher.facts.syntax.tree import FunctionNode, dotted
from patcher.facts.tables import host_api
from patcher.facts.values.callees import Callees

#: Methods of a list that change it.
CHANGING = frozenset("append extend insert pop remove clear sort reverse".split())
#: Methods of a text, or of bytes, that give a list; Dynamo takes that for one that stays as it is.
LISTING = frozenset("split rsplit splitlines".split())
#: Methods of a variable of the context.
_OF_CONTEXT = frozenset({"get", "set", "reset"})
#: Functions that give the text of a size by asking it for its number.
TEXTS = frozenset({"str", "repr"})


class HostObjects(Analysis):
    """Those of one module."""

    def changes_listed(self, call: ast.Call) -> bool:
        """Whether ``call`` changes a list that a method of a text gave: ``names.pop()`` of ``text.split(",")``."""
        func = call.func
        return isinstance(func, ast.Attribute) and func.attr in CHANGING and self._is_listed(func.value)

    def _is_bytes(self, e: ast.expr) -> bool:
        """Whether ``e`` surely is bytes: written, annotated, encoded."""
        match e:
            case ast.Constant(value=value):
                return isinstance(value, bytes)
            case ast.Call(func=ast.Attribute(attr="encode")):
                return True
            case ast.Name():
                found = self.inference.definitions(e)
                of = [d.node.annotation if isinstance(d.node, ast.arg) else None for d in found]
                return bool(of) and all(isinstance(a, ast.Name) and a.id == "bytes" for a in of)
        return False

    def _is_listed(self, e: ast.expr, depth: int = 3) -> bool:
        match e:
            case ast.Name():
                found = self.inference.definitions(e)
                values = [d.value for d in found if d.how == "assign" and not d.path and d.value is not None]
                return (
                    bool(depth and values)
                    and len(values) == len(found)
                    and all(self._is_listed(v, depth - 1) for v in values)
                )
            case ast.Subscript(value=value, slice=ast.Slice()):
                return self._is_listed(value, depth)
            case ast.Call(func=ast.Attribute(attr=method) as func) if method in LISTING:
                traced = self.facts.settings.target_torch >= host_api.LISTS_OF_TEXTS_SINCE
                lacking = not traced or any(map(self._is_bytes, (func.value, *e.args[:1])))
                return lacking and self.syntax.qualified(func) is None and not self.facts.ask(Callees).of(e)
        return False

    def is_of_context(self, call: ast.Call) -> bool:
        """Whether ``call`` asks, or sets, a variable of the context that this module makes: ``FLAG.get()``."""
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in _OF_CONTEXT or not isinstance(func.value, ast.Name):
            return False
        found = self.inference.definitions(func.value)
        return func.value.id in self._context and all(self._makes_variable(d.value) for d in found)

    @cached_property
    def _context(self) -> frozenset[str]:
        """The names that are bound to variables of the context somewhere in this module."""
        stores = (n for n in self.syntax.by_type[ast.Name] if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        bound = ((n.id, self.syntax.parents[n]) for n in stores)
        made = ((name, p.value) for name, p in bound if isinstance(p, (ast.Assign, ast.AnnAssign)))
        return frozenset(name for name, value in made if self._makes_variable(value))

    def _makes_variable(self, e: ast.expr | None) -> bool:
        return isinstance(e, ast.Call) and self.syntax.qualified(e.func) == "contextvars.ContextVar"

    def is_text_of_size(self, call: ast.Call) -> bool:
        """Whether ``call`` gives the text of a size, which a graph has none of once the size changes between calls."""
        match call:
            case ast.Call(args=[size], keywords=[]) if self.syntax.builtin(call) in TEXTS:
                found = self._is_size(size)
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str()), attr="join"),
                args=[ast.GeneratorExp(elt=ast.JoinedStr(values=parts), generators=[turn]) as joined],
            ):
                names = (p.value for p in parts if isinstance(p, ast.FormattedValue))
                bound = turn.target.id if isinstance(turn.target, ast.Name) else ""
                held = any(isinstance(n, ast.Name) and n.id == bound for n in names)
                found = held and self._holds_shapes(joined.generators[0].iter)
            case _:
                return False
        return found and self.facts.ask(Frequency).of(call).often not in (Often.ERROR, Often.NEVER, Often.FLAG)

    def _is_size(self, e: ast.expr) -> bool:
        return self.inference.of(e).python == "size" and not self._is_own(e)

    def _is_own(self, e: ast.expr) -> bool:
        """Whether ``e`` asks for a size of what an object keeps: weights and buffers do not change theirs."""
        return isinstance(e, (ast.Attribute, ast.Subscript, ast.Call)) and any(
            isinstance(n, ast.Attribute) and self.inference.instance_attribute(n) is not None for n in ast.walk(e)
        )

    def _holds_shapes(self, e: ast.expr, depth: int = 3) -> bool:
        """Whether ``e`` is a list of whole shapes, each of which `shape` gave, as an attribute or a function."""
        match e:
            case ast.Name():
                found = self.inference.definitions(e)
                values = [d.value for d in found if d.how == "assign" and not d.path and d.value is not None]
                return bool(depth and values) and all(self._holds_shapes(v, depth - 1) for v in values)
            case ast.ListComp(elt=one) | ast.GeneratorExp(elt=one):
                return _is_shape(one)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return bool(elements) and all(map(_is_shape, elements))
        return False

    # --- properties that are kept -------------------------------------------------------------------------------------

    def kept_reads(self, function: FunctionNode) -> Iterator[ast.Attribute]:
        """The first read, in ``function``, of each property that an object works out once and keeps."""
        kept = self.project.kept_properties
        if not kept:
            return
        seen: set[str] = set()
        reads = (n for n in self.syntax.own(function, ast.Attribute) if isinstance(n, ast.Attribute))
        for n in sorted(reads, key=lambda n: (n.lineno, n.col_offset)):
            if n.attr in kept and isinstance(n.ctx, ast.Load) and self._is_kept(n, function):
                text = ast.unparse(n)
                if text not in seen:
                    yield n
                seen.add(text)

    def _is_kept(self, n: ast.Attribute, function: FunctionNode) -> bool:
        homes = self.project.kept_properties[n.attr]
        own = self.syntax.class_of(n)
        if own is not None and dotted(n.value) == self_name(function):
            family = self.project.family(self.facts.qualname(own) or own.name)[0]
            return not family.isdisjoint(homes) and not self._is_read_before(n.attr, own)
        if not isinstance(n.value, (ast.Name, ast.Attribute)) or self.syntax.qualified(n) is not None:
            return False
        seen = self.project.seen_by(self.facts.module)
        return not self.project.is_owned_otherwise(n.attr) and any(c.rpartition(".")[0] in seen for c in homes)

    def _is_read_before(self, name: str, own: ast.ClassDef) -> bool:
        """Whether the initialiser reads the property, so that its value is there when code gets compiled."""
        first = [m for m in own.body if isinstance(m, ast.FunctionDef) and m.name in INITIALISERS]
        reads = (n for m in first for n in self.syntax.own(m, ast.Attribute) if isinstance(n, ast.Attribute))
        return any(n.attr == name and dotted(n.value) == self_name(m) for m in first for n in reads)


def _is_shape(e: ast.expr) -> bool:
    """Whether ``e`` is a whole shape: ``x.shape``, ``x.size()``, ``xp.shape(x)``."""
    match e:
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size"), args=[], keywords=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="shape"), args=[_], keywords=[]):
            return True
    return False
