"""Whole numbers that a module keeps in 0-d tensors although its constructor knows them: strides, paddings, counts."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import ClassAnalysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.flow.definitions import Definition
from patcher.facts.project.attributes import UNCANNY, Found
from patcher.facts.project.instance_terms import MAKERS, converts, instance_terms, spelled, with_known
from patcher.facts.project.touches import How
from patcher.facts.syntax.classes import Store, attribute_of, self_name
from patcher.facts.syntax.tree import walk
from patcher.facts.tables.torch_api import INT64
from patcher.facts.values.sizes import Sizes

_PURE_CALLS = frozenset("int len abs max min round math.ceil math.floor math.prod".split())
#: Layers that refuse to run with such a number when it is not positive.
_POSITIVE = frozenset({"stride", "dilation", "kernel_size"})
_GEOMETRY = _POSITIVE | {"padding", "output_padding"}


@dataclass(frozen=True)
class Made:
    """A tensor made of the number ``expr``; ``whole``: the dtype makes it an integer, whatever it is."""

    expr: ast.expr
    whole: bool


@dataclass(frozen=True)
class Local:
    """What a local name of the constructor holds, bound by ``definition``."""

    definition: Definition
    recipe: Recipe


@dataclass(frozen=True)
class Own:
    """Another attribute that holds such a number."""

    name: str


@dataclass(frozen=True)
class Plain:
    """A Python integer."""

    expr: ast.expr


@dataclass(frozen=True)
class Combined:
    """``left`` and ``right`` joined as in ``expr``."""

    expr: ast.BinOp
    left: Recipe
    right: Recipe


Recipe = Made | Local | Own | Plain | Combined


@dataclass(frozen=True)
class HeldNumber:
    """``self.name``, assigned by ``statement``. ``doubt``: what has to be true for it to stay what it is made of."""

    name: str
    statement: ast.stmt
    recipe: Recipe
    doubt: str


def held_numbers(facts: Facts, cls: ast.ClassDef) -> HeldNumbers | None:
    """The numbers that the module ``cls`` keeps in tensors; None when it keeps none."""
    held = HeldNumbers(facts, cls) if facts.is_module_class(cls) else None
    return held if held is not None and (held.found or held.refused) else None


class HeldNumbers(ClassAnalysis):
    """The numbers that one class holds in tensors. ``refused``: why an attribute that looks like one does not count."""

    def __init__(self, facts: Facts, cls: ast.ClassDef) -> None:
        super().__init__(facts, cls)
        self.sizes = facts.ask(Sizes)
        self.unchanged = facts.ask(Unchanged)
        self.found: dict[str, HeldNumber] = {}
        self.refused: dict[str, str] = {}
        init = self.members.methods.get("__init__")
        me = self_name(init) if init is not None else None
        if init is None or me is None or self.syntax.names_in(cls) & UNCANNY:
            return
        self.init, self.me = init, me
        stores = [s for found in self.members.stores.values() for s in found if s.statement in init.body]
        for store in sorted(stores, key=lambda s: s.statement.lineno):
            self._consider(store)

    def _consider(self, store: Store) -> None:
        value, kept = self._peeled(store)
        recipe = self._recipe(value) if value is not None else None
        if recipe is None or isinstance(recipe, (Plain, Own)):
            return
        stores = self.members.stores[store.name]
        others = [s for s in stores if s is not store and (s.how != "declared" or s.value is not None)]
        if others or store.name in self.members.methods:
            self.refused[store.name] = f"`self.{store.name}` is assigned again"
            return
        held = HeldNumber(store.name, store.statement, recipe, "")
        self.found[store.name] = held  # its own writes may be compared with it
        attributes = self.project.attributes
        writes = [f for f in attributes.touched(self.name, store.name, (How.WRITTEN,)) if not self._alike(held, f)]
        near = [f for f in writes if f.module == self.module]
        refused = [*attributes.reasons(self.name, store.name), *(f"line {f.touch.line}: {f.told}" for f in near)]
        if refused:
            del self.found[store.name]
            self.refused[store.name] = refused[0]
            return
        doubt = f"`{writes[0].module}` does not change the `{store.name}` of this class" if writes else ""
        if kept:
            doubt = f"checkpoints hold the value of `{store.name}` that the constructor computes"
        self.found[store.name] = HeldNumber(store.name, store.statement, recipe, doubt)

    def _peeled(self, store: Store) -> tuple[ast.expr | None, bool]:
        """The tensor that ``store`` keeps, and whether a state_dict has it."""
        value = store.value
        statement = store.statement
        if store.how == "buffer":
            assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
            return value, _persistent(statement.value, 2)
        if store.how != "assign" or not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return None, False
        if isinstance(value, ast.Call) and self.syntax.qualified(value.func) == "torch.nn.Buffer":
            return (value.args[0] if value.args else None), _persistent(value, 1)
        return value, False

    # --- what it is made of -----------------------------------------------------------------------------------------

    def _recipe(self, e: ast.expr, depth: int = 8) -> Recipe | None:
        """How to make the number that ``e``, in the constructor, is; None when that is not known."""
        if depth == 0:
            return None
        match e:
            case ast.Call(args=[number], keywords=keywords) if self.syntax.qualified(e.func) in MAKERS:
                given = {k.arg: k.value for k in keywords}
                dtype = given.pop("dtype", None)
                whole = dtype is not None and self.syntax.qualified(dtype) in INT64
                sure = dtype is None and self.inference.of(number).python == "int"
                sure = sure or (whole and self._number(number))
                if self.syntax.qualified(e.func) == "torch.as_tensor":  # which keeps a tensor that it is given
                    sure = sure and not any(isinstance(n, ast.Name) and n.id != self.me for n in walk(number))
                if set(given) - {"device"} or not sure or not self._pure(number):
                    return None
                return Made(number, whole and not self.sizes.is_integer(number))
            case ast.Name():
                found = self.flow_of(self.init).reaching.get(e, frozenset())
                d = next(iter(found)) if len(found) == 1 else None
                if d is not None and self.unchanged.why_changed(e, d.node, e):
                    return None
                if d is not None and d.how == "assign" and not d.path and d.value is not None:
                    inner = self._recipe(d.value, depth - 1)
                    statement = self.syntax.statement_of(d.node)
                    simple = isinstance(statement, ast.Assign) and len(statement.targets) == 1
                    if inner is not None and not isinstance(inner, (Plain, Own)):
                        return Local(d, inner) if simple and statement in self.init.body and self._kept(d) else None
            case ast.Attribute() if attribute_of(e, self.me) in self.found:
                return Own(e.attr)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
                return self._combined(e, left, right, depth)
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=ast.Constant(value=int(n)) as right) if n:
                return self._combined(e, left, right, depth)
        return Plain(e) if self.sizes.is_integer(e) and self._pure(e) else None

    def _combined(self, e: ast.BinOp, left: ast.expr, right: ast.expr, depth: int) -> Recipe | None:
        a, b = self._recipe(left, depth - 1), self._recipe(right, depth - 1)
        if a is None or b is None:
            return None
        return Plain(e) if isinstance(a, Plain) and isinstance(b, Plain) else Combined(e, a, b)

    def _number(self, e: ast.expr, depth: int = 20, whole: bool = False) -> bool:
        """Whether ``e`` is one number, of whatever type unless it is to be ``whole``, and no list."""
        if depth == 0:
            return False
        match e:
            case ast.Name():
                found = self.flow_of(self.init).reaching.get(e, frozenset())
                values = [d.value for d in found if d.how == "assign" and not d.path and d.value is not None]
                if values and len(values) == len(found):
                    return all(self._number(v, depth - 1, whole) for v in values)
            case ast.BinOp(left=left, op=op, right=right) if not (whole and isinstance(op, (ast.Div, ast.Pow))):
                return self._number(left, depth - 1, whole) and self._number(right, depth - 1, whole)
            case ast.Subscript(value=ast.Attribute(value=layer, attr=attr), slice=ast.Constant(value=int())):
                stores = self.members.stores.get(attribute_of(layer, self.me) or "", ())
                made = [s.value for s in stores if isinstance(s.value, ast.Call)]
                layers = [n for v in made if (n := self.syntax.qualified(v.func)) and n.startswith("torch.nn.")]
                return bool(layers) and attr in _GEOMETRY
        return self.sizes.is_integer(e) if whole else self.inference.of(e).is_number and not self.inference.of(e).data

    def _kept(self, d: Definition) -> bool:
        """Whether the tensor that ``d`` binds is only computed with, and kept at one place."""
        flow, holders = self.flow_of(self.init), 0
        for use in flow.uses.get(d, []):
            parent = self.syntax.parents[use]
            if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.Call)):
                holders += 1
                buffer = isinstance(parent, ast.Call) and (
                    self.syntax.qualified(parent.func) == "torch.nn.Buffer"
                    or attribute_of(parent.func, self.me) == "register_buffer"
                )
                if isinstance(parent, ast.Call) and not buffer:
                    return False
            elif not isinstance(parent, ast.BinOp):
                return False
        return holders <= 1 and d.name not in flow.captured

    def _pure(self, e: ast.expr) -> bool:
        """Whether ``e`` may be evaluated once more, right before."""
        for n in walk(e):
            if isinstance(n, ast.Call):
                name = ast.unparse(n.func)
                own = isinstance(n.func, ast.Name) and not self.syntax.is_builtin(n.func)
                if name not in _PURE_CALLS or own:
                    return False
            elif isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda, ast.comprehension)):
                return False
        return True

    def positive(self, name: str) -> bool:
        """Whether a layer of the class would not run if the number were not positive."""
        tree = self._known().get(name)
        while isinstance(tree, ast.Call):
            tree = tree.args[0]
        while isinstance(tree, ast.Subscript):
            tree = tree.value
        if not isinstance(tree, ast.Attribute) or tree.attr not in _POSITIVE:
            return False
        made = attribute_of(tree.value, "self")
        values = [s.value for s in self.members.stores.get(made or "", ()) if isinstance(s.value, ast.Call)]
        return any((self.syntax.qualified(v.func) or "").startswith("torch.nn.Conv") for v in values)

    # --- whether it stays so ----------------------------------------------------------------------------------------

    def _alike(self, held: HeldNumber, found: Found) -> bool:
        """Whether what is written is the number that the constructor computes."""
        known = self._known()
        own = known.get(held.name)
        if own is None or not found.touch.value:
            return False
        terms = ast.parse(found.touch.value, mode="eval").body
        return spelled(own) == spelled(with_known(terms, known, whole=not converts(own)))

    def _known(self) -> dict[str, ast.expr]:
        """The numbers found so far, each in terms of attributes that are no such numbers."""
        known: dict[str, ast.expr] = {}
        for name, held in self.found.items():
            terms = self._terms(held.recipe, known)
            if terms is not None:
                known[name] = terms
        return known

    def _terms(self, recipe: Recipe, known: dict[str, ast.expr]) -> ast.expr | None:
        match recipe:
            case Made(expr=number) if not self._whole(number):
                inside = self._terms(Plain(number), known)
                return ast.Call(ast.Name("int", ast.Load()), [inside], []) if inside is not None else None
            case Made(expr=expr) | Plain(expr=expr) | Combined(expr=expr):
                flow = self.flow_of(self.init)
                instance = frozenset({flow.by_node[self.init.args.args[0]]})
                terms = instance_terms(expr, instance, self.syntax, flow, self._whole)
                return with_known(terms, known) if terms is not None else None
            case Local(recipe=inner):
                return self._terms(inner, known)
            case Own(name=name):
                return known.get(name)

    def _whole(self, e: ast.expr) -> bool:
        return self._number(e, whole=True)


def _persistent(call: ast.Call, position: int) -> bool:
    """Whether a buffer that is registered so is part of the state_dict."""
    given = [*call.args[position : position + 1], *(k.value for k in call.keywords if k.arg == "persistent")]
    return not (len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False)
