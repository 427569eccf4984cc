"""Where PyTorch's recurrent layers are reached, which ends the graph by default, silently as far as the source tells.

To read the attribute that holds one is enough (``if self.lstm is None``), and where it is read first, the function is
given up. One in a list, a ``ModuleList`` or a ``Sequential`` ends the graph where it is called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.in_force import InForce
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.written import is_none
from patcher.facts.tables.captured import taken_in_by
from patcher.facts.values.callees import Callees

SETTING = "allow_rnn"
#: The way that the table has for each.
_WAYS = {"torch.nn.LSTM": "lstm", "torch.nn.GRU": "gru", "torch.nn.RNN": "rnn"}
#: An argument that no other layer of PyTorch has: with it, ``getattr(nn, kind)(...)`` makes one of these.
_THEIRS = "bidirectional"
#: Arguments that together only they have, with one of the others: a class that is handed over is one of them.
_TOGETHER = frozenset({"input_size", "hidden_size"})
_ANY = frozenset({"num_layers", "batch_first", _THEIRS})
_LISTS = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential"})


def recurrent(node: ast.Attribute | ast.Call, facts: Facts) -> tuple[ast.expr, str] | None:
    """What runs or reads such a layer at ``node``, and ``nn.LSTM``, when only the setting takes that into a graph."""
    layers = facts.ask(RecurrentLayers)
    what = layers.read(node) if isinstance(node, ast.Attribute) else layers.called(node)
    if what is None or SETTING not in taken_in_by(_WAYS[what], facts.settings.target_torch):
        return None
    if SETTING in facts.ask(InForce).names:
        return None
    return layers.whole(node), what.removeprefix("torch.")


class RecurrentLayers(Analysis):
    """Those of one module."""

    def read(self, e: ast.Attribute) -> str | None:
        """The layer that the attribute ``e`` holds, where no read above it has ended the graph already."""
        if not isinstance(e.ctx, ast.Load) or self.syntax.function_of(e) is None:
            return None
        what = self._held(e)
        return None if what is None or self._is_read_above(e) else what

    def called(self, call: ast.Call) -> str | None:
        """The layer that ``call`` runs out of a list, or as one of several."""
        match call.func:
            case ast.Subscript(value=ast.Attribute() as holder):
                return self._listed(holder, every=True)
            case ast.Attribute() as holder if self.inference.instance_attribute(holder) is not None:
                return self._listed(holder, every=False)
            case ast.Name() as name:
                found = {self._out_of_list(d) for d in self.inference.definitions(name)}
                return found.pop() if len(found) == 1 else None
        return None

    def whole(self, node: ast.expr) -> ast.expr:
        """The call of the layer ``node``, or of a method of it; else ``node``."""
        parent = self.syntax.parents[node]
        method = parent if isinstance(parent, ast.Attribute) else node
        call = self.syntax.parents[method]
        return call if isinstance(call, ast.Call) and call.func is method else node

    def _held(self, e: ast.Attribute) -> str | None:
        own = self.inference.instance_attribute(e)
        if own is not None and (stores := self.class_facts(own[0]).stores.get(own[1])):
            values = [s.value for s in stores if s.value is None or not is_none(s.value)]
            return self._agreed(None if v is None else self._made(v) for v in values)
        if e.attr not in self._names:
            return None
        owner = self.facts.ask(Callees).class_of(e.value) if own is None else self.facts.qualname(own[0])
        return self._inherited(owner, e.attr)

    @cached_property
    def _names(self) -> frozenset[str]:
        """What attributes of the project's classes that hold one of these layers go by."""
        return frozenset(name for _, c in self.project.classes() for name, what in c.built if what in _WAYS)

    def _inherited(self, owner: str | None, name: str) -> str | None:
        """What the class ``owner``, or the nearest base that sets the attribute, makes of it."""
        summary = self.project.known_class(owner) if owner is not None else None
        if summary is None:
            return None
        if name in summary.init_stores:
            what = dict(summary.built).get(name)
            return what if what in _WAYS else None
        return next(filter(None, (self._inherited(base, name) for base in summary.bases)), None)

    def _out_of_list(self, d: Definition) -> str | None:
        holder = self.facts.ask(Callees).iterated(d)
        if d.how == "assign" and not d.path and isinstance(d.value, ast.Subscript):
            holder = d.value.value
        return self._listed(holder, every=True) if isinstance(holder, ast.Attribute) else None

    def _listed(self, holder: ast.Attribute, *, every: bool) -> str | None:
        """The layer that is in the list ``holder``; ``every``: all that is in it is one."""
        own = self.inference.instance_attribute(holder)
        if own is None:
            return None
        members = self.class_facts(own[0])
        stores = [s.value for s in members.stores.get(own[1], ()) if s.value is not None]
        if not every and not all(isinstance(s, ast.Call) and self._is(s.func, "torch.nn.Sequential") for s in stores):
            return None
        items = [item for s in stores for item in self._items(s)]
        items += [item for _, item in members.appended.get(own[1], ())]
        kinds = [self._made(item) for item in items]
        return self._agreed(kinds) if every else next(filter(None, kinds), None)

    def _items(self, e: ast.expr) -> list[ast.expr]:
        match e:
            case ast.Call(args=args) if self.syntax.qualified(e.func) in _LISTS:
                return [item for a in args for item in (self._items(a) or [a])]
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return elements
            case ast.ListComp(elt=one) | ast.GeneratorExp(elt=one):
                return [one]
            case ast.Starred(value=value):
                return self._items(value)
        return []

    def _agreed(self, kinds: Iterable[str | None]) -> str | None:
        """One of these layers where all are; which of them, does not matter."""
        found = [*kinds]
        return None if not found or None in found else found[0]

    def _made(self, e: ast.expr) -> str | None:
        """What the constructor makes; one of these layers that it chooses by a name counts as an LSTM."""
        match e:
            case ast.IfExp(body=body, orelse=orelse):
                return self._agreed(self._made(part) for part in (body, orelse) if not is_none(part))
            case ast.Call(func=ast.Call(func=ast.Name(id="getattr"), args=[holder, _])) if self._is(holder, "torch.nn"):
                return "torch.nn.LSTM" if any(k.arg == _THEIRS for k in e.keywords) else None
            case ast.Attribute() if self._is_set_once(e):
                return self._held(e)  # another name of the same layer
            case ast.Call(func=ast.Name() as kind) if self._is_handed(kind):
                told = {k.arg for k in e.keywords}
                theirs = told.issuperset(_TOGETHER) and not told.isdisjoint(_ANY)
                return "torch.nn.LSTM" if theirs else self._class(kind)
            case ast.Call(func=func):
                return self._class(func)
        return None

    def _is_set_once(self, e: ast.Attribute) -> bool:
        """Whether the attribute ``e`` of the instance is what one call makes."""
        own = self.inference.instance_attribute(e)
        stores = self.class_facts(own[0]).stores.get(own[1], []) if own is not None else []
        return len(stores) == 1 and isinstance(stores[0].value, ast.Call)

    def _is_handed(self, kind: ast.Name) -> bool:
        """Whether ``kind`` is a class that the caller hands over."""
        found = self.inference.definitions(kind)
        return bool(found) and all(d.how == "parameter" for d in found)

    def _class(self, e: ast.expr) -> str | None:
        """One of these classes: by its name, a subclass of it, chosen out of several, or bound to a name above."""
        what = self.syntax.qualified(e)
        if what in _WAYS:
            return what
        match e:
            case ast.IfExp(body=body, orelse=orelse):
                return self._agreed(map(self._class, (body, orelse)))
            case ast.Subscript(value=ast.Dict(values=values)):
                return self._agreed(map(self._class, values))
            case ast.Name():
                bound = self.inference.definitions(e)
                if bound and all(d.how == "assign" and not d.path and d.value is not None for d in bound):
                    return self._agreed(self._class(d.value) for d in bound if d.value is not None)
        named = self.facts.ask(Callees).class_named(e)
        summary = self.project.known_class(named) if named is not None else None
        return next((base for base in summary.bases if base in _WAYS), None) if summary is not None else None

    def _is(self, e: ast.expr, what: str) -> bool:
        return self.syntax.qualified(e) == what

    def _is_read_above(self, e: ast.Attribute) -> bool:
        """Whether a read of the same attribute comes before on every way to ``e``: the function was given up there."""
        function, text, place = self.syntax.function_of(e), ast.unparse(e), (e.lineno, e.col_offset)
        if function is None:
            return False
        around = {e, *self.syntax.ancestors(e)}
        for n in self.syntax.own(function, ast.Attribute):
            if not isinstance(n, ast.Attribute) or n.attr != e.attr or (n.lineno, n.col_offset) >= place:
                continue
            statement = self.syntax.statement_of(n)
            block = [statement, *self.syntax.following(statement)]
            if ast.unparse(n) == text and isinstance(n.ctx, ast.Load) and not around.isdisjoint(block):
                return True
        return False
