"""Flags that a module keeps in buffers of one element: what sets them, and who asks."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import ClassAnalysis
from patcher.facts.project.attributes import UNCANNY
from patcher.facts.syntax.classes import Store, attribute_of, self_name
from patcher.facts.syntax.tree import FunctionNode

_MAKERS = frozenset(
    f"torch.{n}" for n in "tensor as_tensor scalar_tensor Tensor BoolTensor FloatTensor LongTensor ByteTensor".split()
)
#: What keeps a truth as it is.
_DTYPES = frozenset("bool uint8 int8 int16 int32 int64 long int float float32 float64 double".split())
_SETTING = {"zero_": "False"}
_READ_ONLY = frozenset("dtype device shape ndim is_meta".split())


@dataclass(frozen=True)
class Set:
    """``statement`` makes the flag what ``value`` is; a text where no expression says it."""

    statement: ast.stmt
    value: ast.expr | str


@dataclass(frozen=True)
class HeldFlag:
    """``self.name``, registered by ``first``, and all that the class does with it.

    ``asked``: expressions whose truth alone counts. ``kept``: whether a state_dict has it.
    """

    name: str
    first: Set
    sets: tuple[Set, ...]
    asked: tuple[ast.expr, ...]
    kept: bool


class HeldFlags(ClassAnalysis):
    """The flags of one class. ``refused``: where a flag is asked for which there is no fix, and why."""

    def __init__(self, facts: Facts, cls: ast.ClassDef) -> None:
        super().__init__(facts, cls)
        self.found: list[HeldFlag] = []
        self.refused: list[tuple[ast.expr, str]] = []
        init = self.members.methods.get("__init__")
        if init is None or not facts.is_module_class(cls):
            return
        self.init = init
        for stores in self.members.stores.values():
            for store in stores:
                if store.how == "buffer" and store.method is init and store.statement in init.body:
                    self._consider(store)

    def _consider(self, store: Store) -> None:
        value = self._flag(store.value)
        if value is None:
            return
        asked, sets, others = self._uses(store)
        compiled = [e for e in asked if self.facts.compiled(e)]
        if not compiled:
            return
        if reason := self._why_not(store, others):
            self.refused.append((compiled[0], reason))
            return
        kept = _persistent(store.statement)
        self.found.append(HeldFlag(store.name, Set(store.statement, value), tuple(sets), tuple(asked), kept))

    def _why_not(self, store: Store, others: list[ast.Attribute]) -> str:
        if others:
            statement = ast.unparse(self.syntax.statement_of(others[0])).splitlines()[0][:60]
            return f"`{statement}` does more with it than to ask or to set it"
        if store.name in self.members.methods or "_load_from_state_dict" in self.members.methods:
            return "the class has its own ways to load"
        if self.syntax.names_in(self.cls) & (UNCANNY - {"__new__"}):
            return "the class has its own ways with attributes"
        return ""

    # --- what the class does with it --------------------------------------------------------------------------------

    def _uses(self, store: Store) -> tuple[list[ast.expr], list[Set], list[ast.Attribute]]:
        asked: list[ast.expr] = []
        sets: dict[ast.stmt, Set] = {}
        others: list[ast.Attribute] = []
        for method in self.members.methods.values():
            me = self_name(method)
            for node in ast.walk(method):
                if not isinstance(node, ast.Attribute) or me is None or attribute_of(node, me) != store.name:
                    continue
                statement = self.syntax.statement_of(node)
                made = self._set(node, statement)
                if made is not None and self._runs_alone(statement, method):
                    sets[statement] = made
                elif (whole := self._asked(node)) is not None:
                    asked.append(whole)
                elif not self._only_looked_at(node):
                    others.append(node)
        for other in self.members.stores[store.name]:
            if other is not store and other.statement not in sets:
                others += [n for n in ast.walk(other.statement) if isinstance(n, ast.Attribute)][:1]
        return asked, list(sets.values()), others

    def _runs_alone(self, statement: ast.stmt, method: FunctionNode) -> bool:
        """Whether another statement can stand below ``statement``, and names the same instance there."""
        return self.syntax.alone(statement) and self.syntax.function_of(statement) is method

    def _asked(self, node: ast.Attribute) -> ast.expr | None:
        """The expression around ``node`` of which only the truth counts: ``self.flag``, ``bool(self.flag.item())``."""
        if not isinstance(node.ctx, ast.Load):
            return None
        e: ast.expr = node
        while True:
            parent = self.syntax.parents[e]
            outer = self.syntax.parents[parent] if isinstance(parent, ast.Attribute) else None
            if isinstance(parent, ast.Attribute) and isinstance(outer, ast.Call) and outer.func is parent:
                if parent.attr not in ("item", "all", "any", "bool") or outer.args or outer.keywords:
                    return None
                e = outer
            elif isinstance(parent, ast.Call) and self.syntax.builtin(parent) == "bool" and parent.args == [e]:
                return parent
            else:
                return e if self.syntax.only_truth(e) else None

    def _only_looked_at(self, node: ast.Attribute) -> bool:
        parent = self.syntax.parents[node]
        return isinstance(parent, ast.Attribute) and parent.attr in _READ_ONLY

    def _set(self, node: ast.Attribute, statement: ast.stmt) -> Set | None:
        """What ``statement`` sets the flag ``node`` to, in place or anew."""
        place: ast.expr = node
        parent = self.syntax.parents[place]
        if isinstance(parent, ast.Attribute) and parent.attr == "data":
            place = parent
            parent = self.syntax.parents[place]
        if isinstance(parent, ast.Subscript) and parent.value is place and _is_whole_or_first(parent.slice):
            place = parent
        value: ast.expr | str | None = None
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr=attr), args=args, keywords=[])):
                if held is place and attr in _SETTING and not args:
                    value = _SETTING[attr]
                elif held is place and attr == "fill_" and len(args) == 1:
                    value = self._truth(args[0])
                elif held is place and attr == "copy_" and len(args) == 1:
                    value = self._flag(args[0])
            case ast.Assign(targets=[target], value=given) if target is place:
                value = self._truth(given) if isinstance(place, ast.Subscript) else None
                value = value if value is not None else self._flag(given)
        return Set(statement, value) if value is not None else None

    def _flag(self, e: ast.expr | None) -> ast.expr | str | None:
        """The truth that the tensor ``e`` of one element holds."""
        match e:
            case ast.Call(args=[given], keywords=keywords) if self.syntax.qualified(e.func) in _MAKERS:
                if any(k.arg not in ("dtype", "device") for k in keywords):
                    return None
                dtypes = [self.syntax.qualified(k.value) or "" for k in keywords if k.arg == "dtype"]
                if not all(d.removeprefix("torch.") in _DTYPES for d in dtypes):
                    return None
                alone = (self.syntax.qualified(e.func) or "").endswith("Tensor")  # these take a number as a size
                if isinstance(given, (ast.List, ast.Tuple)) and len(given.elts) == 1:
                    return self._truth(given.elts[0])
                return None if alone else self._truth(given)
            case ast.Call(args=[ast.Constant(value=1)]) if self.syntax.qualified(e.func) == "torch.zeros":
                return "False"
            case ast.Call(args=[ast.Constant(value=1)]) if self.syntax.qualified(e.func) == "torch.ones":
                return "True"
        return None

    def _truth(self, e: ast.expr) -> ast.expr | None:
        """``e`` where it is a truth that can be worked out once more."""
        match e:
            case ast.Constant(value=bool()):
                return e
            case ast.UnaryOp(op=ast.Not(), operand=ast.Name() | ast.Constant()):
                return e
            case ast.Compare(left=ast.Name(), ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return e
        return None


def _is_whole_or_first(at: ast.expr) -> bool:
    match at:
        case ast.Constant(value=value):
            return value is ... or (value == 0 and not isinstance(value, bool))
        case ast.Slice(lower=None, upper=None, step=None):
            return True
    return False


def _persistent(statement: ast.stmt) -> bool:
    """Whether the buffer is part of the state_dict."""
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    call = statement.value
    given = [*call.args[2:3], *(k.value for k in call.keywords if k.arg == "persistent")]
    return not (len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False)
