"""Whole numbers that a module keeps in 0-d tensors although its constructor knows them: strides, paddings, counts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import ClassAnalysis
from patcher.facts.changes import COLLECTING
from patcher.facts.classes import Store, attribute_of, self_name
from patcher.facts.flow import Definition
from patcher.facts.numbers.instance_terms import MAKERS, converts, instance_terms, spelled, with_known
from patcher.facts.numbers.renewals import Renewal, tested_classes
from patcher.facts.project import ModuleSummary
from patcher.facts.torch_api import INT64
from patcher.facts.wording import suggests_change

_UNCANNY = frozenset("__dict__ __setattr__ __getattribute__ __getattr__ __new__ __slots__ vars".split())
_PURE_CALLS = frozenset("int len abs max min round math.ceil math.floor math.prod".split())
_BY_NAME = frozenset("register_buffer register_parameter get_buffer getattr".split())
_ALL_BUFFERS = frozenset({"buffers", "named_buffers", "_buffers"})
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
        self.found: dict[str, HeldNumber] = {}
        self.refused: dict[str, str] = {}
        init = self.members.methods.get("__init__")
        me = self_name(init) if init is not None else None
        if init is None or me is None or self.syntax.names_in(cls) & _UNCANNY:
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
        others = [s for s in self.members.stores[store.name] if s is not store and s.value is not None]
        if others or store.name in self.members.methods:
            self.refused[store.name] = f"`self.{store.name}` is assigned again"
            return
        doubts = [*self._family(store.name)]
        held = HeldNumber(store.name, store.statement, recipe, "")
        self.found[store.name] = held  # its own writes may be compared with it
        doubts += [*self._writes(held), *self._sweeps()]
        if doubts:
            del self.found[store.name]
            self.refused[store.name] = doubts[0]
            return
        doubt = self._seen_from_outside(held)
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
                if set(given) - {"device"} or not sure or not self._pure(number):
                    return None
                return Made(number, whole and not self._int(number))
            case ast.Name():
                found = self.flow_of(self.init).reaching.get(e, frozenset())
                d = next(iter(found)) if len(found) == 1 else None
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
        return Plain(e) if self._int(e) and self._pure(e) else None

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
        return self._int(e) if whole else self.inference.of(e).is_number and not self.inference.of(e).data

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

    def _int(self, e: ast.expr) -> bool:
        value = self.inference.of(e)
        return value.python in ("int", "size") and not value.data

    def _pure(self, e: ast.expr) -> bool:
        """Whether ``e`` may be evaluated once more, right before."""
        for n in ast.walk(e):
            if isinstance(n, ast.Call):
                name = ast.unparse(n.func)
                if name not in _PURE_CALLS:
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

    def _family(self, name: str) -> Iterator[str]:
        for c in sorted(self.project.family(self.name)[0] - {self.name}):
            summary = self.project.known_class(c)
            assert summary is not None
            if name in summary.stores | summary.init_stores | summary.methods | summary.declared:
                yield f"`{c.rpartition('.')[2]}` has a `{name}` as well"
            if summary.methods & _UNCANNY:
                yield f"`{c.rpartition('.')[2]}` has its own ways with attributes"

    def _seen_from_outside(self, held: HeldNumber) -> str:
        """What modules that import this one do with attributes of that name."""
        for s in self.project.modules.values():
            if s.module == self.module or not self._imported_by(s):
                continue
            stored = held.name in s.foreign_stores | (s.changed - s.lent)
            if stored or not all(self._renewed_alike(held, r) for r in s.renewals if r.attribute == held.name):
                return f"`{s.module}` does not change the `{held.name}` of this class"
        return ""

    def _imported_by(self, s: ModuleSummary) -> bool:
        """Whether ``s`` imports this module, or something that has the name of a class here, from anywhere."""
        return any(
            self.module in (i, i.rpartition(".")[0]) or i.rpartition(".")[2] in self._class_names for i in s.imports
        )

    @cached_property
    def _class_names(self) -> frozenset[str]:
        return frozenset(c.name for c in self.syntax.by_type[ast.ClassDef] if isinstance(c, ast.ClassDef))

    def _renewed_alike(self, held: HeldNumber, renewal: Renewal) -> bool:
        """Whether ``renewal`` writes what the constructor does, or writes it into something else."""
        family, unknown = self.project.family(self.name)
        if renewal.classes and not set(renewal.classes) & (family | unknown):
            return all(self.project.known_class(c) is not None or c.startswith("torch.nn.") for c in renewal.classes)
        if not renewal.text:
            return False
        return self._alike(held, ast.parse(renewal.text, mode="eval").body)

    def _writes(self, held: HeldNumber) -> Iterator[str]:
        """Everything in the file that may give the attribute another value than the constructor does."""
        for n in self.syntax.by_type[ast.Attribute]:
            assert isinstance(n, ast.Attribute)
            if n.attr != held.name or not self._may_be_ours(n):
                continue
            if (value := self._written(n)) is not None and not self._same(held, n, value):
                yield f"line {n.lineno} may set `{held.name}` to something else"
        for call in self.syntax.by_type[ast.Call]:
            match call:
                case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[_, key, *_]):
                    if getattr(key, "value", held.name) == held.name:
                        yield f"line {call.lineno} may set `{held.name}`"
                case ast.Call(func=func) if ast.unparse(func).rpartition(".")[2] in _BY_NAME:
                    given = [*call.args, *(k.value for k in call.keywords)]
                    named = any(isinstance(a, ast.Constant) and a.value == held.name for a in given)
                    if named and self.syntax.statement_of(call) is not held.statement:
                        yield f"line {call.lineno} may set `{held.name}`"
        for n in self.syntax.by_type[ast.Attribute]:
            if isinstance(n, ast.Attribute) and n.attr == "_buffers":
                yield f"line {n.lineno} may set `{held.name}`"

    def _sweeps(self) -> Iterator[str]:
        """Loops of the file that change buffers without naming them."""
        for loop in self.syntax.by_type[ast.For]:
            assert isinstance(loop, ast.For)
            if any(isinstance(n, ast.Attribute) and n.attr in _ALL_BUFFERS for n in ast.walk(loop.iter)):
                inside = (n.attr for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Attribute))
                if any(attr == "data" or (attr[-1:] == "_" and attr[:1] != "_") for attr in inside):
                    yield f"line {loop.lineno} may change every buffer"

    def _may_be_ours(self, n: ast.Attribute) -> bool:
        """Whether the object whose attribute ``n`` is may be an instance of the class."""
        family, unknown = self.project.family(self.name)
        owner = n.value
        known = self.inference.of(owner).module
        if known:
            return known in family | unknown
        if not isinstance(owner, ast.Name):
            return True
        method = self.syntax.method_of(n)
        if method is not None and self_name(method) == owner.id:
            cls = self.syntax.class_of(method)
            return cls is None or f"{self.module}.{self.syntax.qualname(cls)}" in family | {self.name}
        function = self.syntax.function_of(n)
        classes = tested_classes(self.syntax, self.flow_of(function), owner) if function is not None else []
        names = {self.syntax.qualified(c) or f"{self.module}.{ast.unparse(c)}" for c in classes}
        return not names or bool(names & (family | unknown))

    def _written(self, n: ast.Attribute) -> ast.expr | str | None:
        """What ``n`` is set to where it stands: an expression, "" when it is not known, None when it is only read."""
        parent = self.syntax.parents[n]
        if not isinstance(n.ctx, ast.Load):
            own = self.syntax.statement_of(n)
            return None if own is self.found[n.attr].statement else ""
        if isinstance(parent, ast.Call) and n in parent.args and isinstance(parent.func, (ast.Attribute, ast.Name)):
            last = parent.func.attr if isinstance(parent.func, ast.Attribute) else parent.func.id
            if self._fills(last):
                return ""
            if last in COLLECTING or not (suggests_change(last) or last.endswith("_")):
                return None
            simple = last in ("copy_", "constant_", "fill_") and parent.args[0] is n and len(parent.args) == 2
            return parent.args[1] if simple else ""
        if isinstance(parent, ast.keyword):
            return "" if parent.arg == "out" else None
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and self._name_is_changed(parent):
            return ""
        if isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is n:
            if not isinstance(parent.ctx, ast.Load):
                return ""
            call = self.syntax.parents[parent]
            called = isinstance(call, ast.Call) and call.func is parent
            if isinstance(parent, ast.Attribute) and (parent.attr == "data" or (called and parent.attr.endswith("_"))):
                simple = parent.attr in ("copy_", "fill_") and isinstance(call, ast.Call) and len(call.args) == 1
                return call.args[0] if simple and isinstance(call, ast.Call) else ""
        return None

    def _fills(self, name: str) -> bool:
        """Whether a function of that name in this file changes something in place that it is given."""
        functions = [f for f in self.syntax.by_type[ast.FunctionDef] if isinstance(f, ast.FunctionDef)]
        return any(
            changes_a_name({a.arg for a in ast.walk(f.args) if isinstance(a, ast.arg)}, f)
            for f in functions
            if f.name == name
        )

    def _name_is_changed(self, statement: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> bool:
        """Whether what ``statement`` binds is no name, or one that is changed in place somewhere in the function."""
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if not all(isinstance(t, ast.Name) for t in targets):
            return True
        names = {t.id for t in targets if isinstance(t, ast.Name)}
        return changes_a_name(names, self.syntax.function_of(statement) or self.syntax.tree)

    def _same(self, held: HeldNumber, n: ast.Attribute, value: ast.expr | str) -> bool:
        function = self.syntax.function_of(n)
        if isinstance(value, str) or function is None or not isinstance(n.value, ast.Name):
            return False
        flow = self.flow_of(function)
        instance = flow.reaching.get(n.value, frozenset())
        if not instance or any(d.how != "parameter" for d in instance):
            return False
        here = instance_terms(value, instance, self.syntax, flow)
        return here is not None and self._alike(held, here)

    def _alike(self, held: HeldNumber, terms: ast.expr) -> bool:
        """Whether ``terms``, made an integer, is the number."""
        known = self._known()
        own = known.get(held.name)
        if own is None:
            return False
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


def changes_a_name(names: set[str], inside: ast.AST) -> bool:
    """Whether what one of ``names`` holds may be changed in place somewhere in ``inside``."""
    for n in ast.walk(inside):
        match n:
            case ast.AugAssign(target=ast.Name(id=name)) if name in names:
                return True
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in names and (
                attr == "data" or attr[-1:] == "_"
            ):
                return True
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()) if name in names:
                return True
            case ast.Call(func=ast.Name() | ast.Attribute() as func):
                last = func.attr if isinstance(func, ast.Attribute) else func.id
                given = {a.id for a in [*n.args, *(k.value for k in n.keywords)] if isinstance(a, ast.Name)}
                if given & names and (last[-1:] == "_" or suggests_change(last)):
                    return True
    return False


def _persistent(call: ast.Call, position: int) -> bool:
    """Whether a buffer that is registered so is part of the state_dict."""
    given = [*call.args[position : position + 1], *(k.value for k in call.keywords if k.arg == "persistent")]
    return not (len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False)
