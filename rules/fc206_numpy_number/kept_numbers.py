"""Numbers of NumPy that a module keeps in an attribute, and where compiled code computes with them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import ClassAnalysis
from patcher.facts.numbers.asked_numbers import ASKING, AskedNumbers
from patcher.facts.syntax.classes import Store, attribute_of, self_name

#: With one argument, they make one number of whatever they are given.
_REDUCING = frozenset("prod sum max min amax amin mean median std var product ptp count_nonzero".split())
_TYPES = frozenset("int8 int16 int32 int64 uint8 uint16 uint32 uint64 intp int_ float64 float_".split())
#: With numbers, which are written so, they make a number.
_OF_NUMBERS = frozenset("sqrt ceil floor log2 log exp power round rint gcd lcm cumprod".split())


@dataclass(frozen=True)
class KeptNumber:
    """``self.name``, which is ``value``, computed with at ``use`` in compiled code."""

    name: str
    value: ast.Call
    use: ast.expr
    refused: str


class KeptNumbers(ClassAnalysis):
    """The numbers of NumPy that one module keeps."""

    def __init__(self, facts: Facts, cls: ast.ClassDef) -> None:
        super().__init__(facts, cls)
        init = self.members.methods.get("__init__") if facts.is_module_class(cls) else None
        stores = [s for found in self.members.stores.values() for s in found if s.method is init] if init else []
        ordered = sorted(stores, key=lambda s: s.statement.lineno)
        self.found = [kept for s in ordered if s.how == "assign" for kept in self._kept(s)]

    def _kept(self, store: Store) -> Iterator[KeptNumber]:
        value = store.value
        if not isinstance(value, ast.Call) or not self._makes_number(value):
            return
        reads = self._reads(store.name)
        compiled = [read for read in reads if self.facts.compiled(read)]
        use = next((u for read in compiled if (u := self._use(read)) is not None), None)
        if use is None:
            return
        yield KeptNumber(store.name, value, use, self._why_not(store))

    def _makes_number(self, call: ast.Call) -> bool:
        what = self.syntax.qualified(call.func) or ""
        name = what.removeprefix("numpy.")
        if not what.startswith("numpy.") or call.keywords or any(isinstance(a, ast.Starred) for a in call.args):
            return False
        if name in _OF_NUMBERS:
            return bool(call.args) and all(self.inference.of(a).is_number for a in call.args)
        if name in _TYPES:
            return len(call.args) == 1 and self.inference.of(call.args[0]).is_number
        return name in _REDUCING and len(call.args) == 1

    def _reads(self, name: str) -> Iterator[ast.Attribute]:
        for method in self.members.methods.values():
            me = self_name(method)
            for node in ast.walk(method):
                if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load) or me is None:
                    continue
                if attribute_of(node, me) == name:
                    yield node

    def _use(self, e: ast.expr, depth: int = 3) -> ast.expr | None:
        """What is made of ``e`` and asked for its number, in the same function: there the graph breaks."""
        asked = self.facts.ask(AskedNumbers)
        inside: set[ast.AST] = {e}
        for parent in self.syntax.ancestors(e):
            found = asked.at(parent) if isinstance(parent, ASKING) else None
            if found is not None and found.asked in inside:
                return found.asked
            if isinstance(parent, ast.Assign) and depth and len(parent.targets) == 1:
                readers = self.readers(parent.targets[0]) or ()
                return next((u for r in readers if (u := self._use(r, depth - 1)) is not None), None)
            if isinstance(parent, ast.stmt):
                break
            inside.add(parent)
        return None

    def _why_not(self, store: Store) -> str:
        if [s for s in self.members.stores[store.name] if s is not store and (s.how != "declared" or s.value)]:
            return f"`self.{store.name}` is assigned again"
        reads = [a for a in self.syntax.by_type[ast.Attribute] if a.attr == store.name]
        asked = next((p for r in reads if isinstance(p := self.syntax.parents[r], ast.Attribute)), None)
        if asked is not None:
            return f"`{ast.unparse(asked)}` asks what a number of NumPy has"
        return ""
