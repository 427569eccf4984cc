"""Plain objects that a module keeps and reads values from (tokenizers, vocabularies), and whether a value stays.

`Holdings.of` names the attributes of a class that hold such an object, with every read of it: ``self.words.pad_id``,
``self.words.id_of("<pad>")``, also through a local name. Modules, tensors, containers and configuration are not held.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis, ClassAnalysis
from patcher.facts.project.attributes import UNCANNY
from patcher.facts.project.touches import How
from patcher.facts.syntax.classes import ClassFacts, Store, attribute_of, self_name
from patcher.facts.syntax.tree import FunctionNode, dotted, walk
from patcher.facts.tables import host_api
from patcher.facts.tables import torch_api as api
from patcher.facts.tables.wording import suggests_change, suggests_configuration, suggests_lookup
from rules.fc601_helper_attribute.lookups import Lookup, Lookups
from rules.fc601_helper_attribute.meetings import Meetings
from rules.fc601_helper_attribute.provenance import CONTAINER_METHODS, NotHeldError, Provenance

_LOOKS_ONLY = frozenset("len print str repr type id callable format".split())


@dataclass(frozen=True, eq=False)
class Read:
    """One read of a held object: the attributes ``path``, called with constants when ``call`` is there.

    Reads with the same ``key`` give the same value. ``node`` is the whole expression.
    """

    node: ast.expr
    path: tuple[str, ...]
    call: ast.Call | None
    key: str


@dataclass(frozen=True, eq=False)
class Held:
    """``self.name``, assigned by ``store`` in ``__init__``; ``source``: its class, when that is in the project.

    ``reasons``: why it may be another object, a changed one, or None when it is read; empty when nothing says so.
    """

    cls: ast.ClassDef
    name: str
    store: Store
    source: str
    reads: tuple[Read, ...]
    reasons: tuple[str, ...]


class Holdings(Analysis):
    """Looks through the attributes of module classes."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.meetings = facts.ask(Meetings)
        self.lookups = facts.ask(Lookups)

    def of(self, cls: ast.ClassDef) -> Iterator[Held]:
        """What instances of ``cls`` hold."""
        facts = self.inference.class_facts(cls)
        init = facts.methods.get("__init__")
        me = self_name(init) if init is not None else None
        if init is None or me is None:
            return
        name = f"{self.module}.{self.syntax.qualname(cls)}"
        for statement in init.body:
            match statement:
                case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                    attribute = attribute_of(target, me)
                case _:
                    continue
            if attribute is None or suggests_configuration(attribute) or attribute.startswith("__"):
                continue
            store = next((s for s in facts.stores[attribute] if s.statement is statement and s.how == "assign"), None)
            if store is None:
                continue
            try:
                origin = Provenance(self.facts, cls, init, store)
                touched = _Touches(self.facts, cls, init, store, origin.parameter)
                reads = tuple(touched.reads())
            except NotHeldError:
                continue
            if reads:
                reasons = (*origin.reasons, *touched.reasons, *self._unsteady(facts, name, init, store))
                yield Held(cls, attribute, store, origin.source, reads, reasons)

    def _unsteady(self, facts: ClassFacts, cls: str, init: FunctionNode, store: Store) -> Iterator[str]:
        """What may make the attribute another object than ``store`` assigned, or change the object."""
        name = store.name
        if any(s is not store and (s.how != "declared" or s.value is not None) for s in facts.stores[name]):
            yield f"`self.{name}` is assigned more than once"
        if self.syntax.names_in(facts.node) & UNCANNY or name in facts.methods:
            yield "the class has its own ways with attributes"
        yield from self.project.attributes.reasons(cls, name)
        for found in self.project.attributes.touched(cls, name, (How.WRITTEN, How.WITHIN)):
            if "*" not in found.touch.place and not (found.touch.early and found.touch.owners == (cls,)):
                yield found.told
        yield from _detours(facts, init, store.statement)

    def lookup(self, held: Held, read: Read) -> Lookup | None:
        """What the read runs, when the object's class is in the project."""
        if not held.source or len(read.path) > 1:
            return None
        return self.lookups.of(held.source, read.path[0])

    def changes(self, held: Held, read: Read) -> Iterator[str]:
        """What the project does to attributes of these names, be it on this object or on another."""
        family = self.project.family(held.source)[0] if held.source else None
        cls = f"{self.module}.{self.syntax.qualname(held.cls)}"
        for part in read.path:
            for stored in sorted(f for f in self.project.foreign_stores if _related(part, f)):
                yield f"`.{stored}` is assigned somewhere"
            yield from (found.told for found in self.project.attributes.computed(cls, part, any_owner=True))
            if f"?{part}" in self.project.doubts:
                yield f"`{part}` may be missing: something asks whether it is there"
            for c, summary in self.project.classes():
                if (family is None or c in family) and not self.project.is_module_class(c):
                    if any(_related(part, s) for s in summary.stores):
                        yield f"`{c.rpartition('.')[2]}` changes `{part}`"
                    elif family is None and part == read.path[0] and {part, "__getattr__"} & summary.methods:
                        yield from filter(None, [self.lookups.of(c, part).reason])

    def conditional(self, node: ast.AST, depth: int = 3) -> bool:
        """Whether ``node`` is only reached where a flag of the instance says so, as far as can be seen."""
        function = self.syntax.function_of(node)
        if function is None or not depth:
            return False
        child = node
        for parent in self.syntax.ancestors(node):
            if parent is function:
                break
            if (
                isinstance(parent, (ast.If, ast.IfExp, ast.While))
                and child is not parent.test
                and self._flag(parent.test)
            ):
                return True
            if isinstance(parent, ast.BoolOp):
                earlier = parent.values[: parent.values.index(child)] if isinstance(child, ast.expr) else []
                if any(map(self._flag, earlier)):
                    return True
            if isinstance(parent, (ast.Try, ast.ExceptHandler)) or self._after_return(parent, child):
                return True
            child = parent
        if self._after_return(function, child):
            return True
        calls = self.meetings.results(function.body[0])
        return bool(calls) and all(self.conditional(c, depth - 1) for c in calls)

    def _after_return(self, parent: ast.AST, child: ast.AST) -> bool:
        """Whether an earlier statement of the block leaves it where a flag says so."""
        body = next((b for _, b in ast.iter_fields(parent) if isinstance(b, list) and child in b), [])
        leaves = (ast.Return, ast.Raise, ast.Continue, ast.Break)
        return (
            any(
                isinstance(s, ast.If) and self._flag(s.test) and any(isinstance(n, leaves) for n in walk(s))
                for s in body[: body.index(child)]
            )
            if body
            else False
        )

    def _flag(self, test: ast.expr) -> bool:
        """Whether the test asks the instance (``self.training`` aside), or for what there is."""
        for n in walk(test):
            own = self.inference.instance_attribute(n)
            if own is not None and own[1] != "training":
                return True
            if isinstance(n, ast.Call) and dotted(n.func) in ("hasattr", "isinstance", "getattr"):
                return True
        return False


class _Touches(ClassAnalysis):
    """Every place of a class that touches the object. ``reasons``: those that may change it, or doubt it is there."""

    def __init__(
        self, facts: Facts, cls: ast.ClassDef, init: FunctionNode, store: Store, parameter: ast.arg | None
    ) -> None:
        super().__init__(facts, cls)
        self.init, self.store, self.parameter = init, store, parameter
        self.reasons: list[str] = []

    def _mine(self, e: ast.AST) -> bool:
        """Whether ``e`` is the attribute, of the instance that the method works on."""
        if self.inference.instance_attribute(e) != (self.members.node, self.store.name):
            return False
        return self._sees_instance(e)

    def _sees_instance(self, e: ast.AST) -> bool:
        """Whether the method's name for its instance still means that where ``e`` stands."""
        method = self.syntax.method_of(e)
        me = self_name(method) if method is not None else None
        if method is None or me is None:
            return False
        for scope in self.syntax.ancestors(e):
            if scope is method:
                break
            if self.syntax.binds(scope, me):
                return False
        return not any(
            isinstance(n, ast.Name) and n.id == me and not isinstance(n.ctx, ast.Load)
            for n in self.syntax.subtree(method)
        )

    def _objects(self) -> Iterator[tuple[ast.expr, bool]]:
        """Every expression that may be the object; and whether it is for sure."""
        for method in self.members.methods.values():
            nodes = [n for n in walk(method) if isinstance(n, (ast.Attribute, ast.Name))]
            nodes = [n for n in nodes if isinstance(n.ctx, ast.Load)]
            mine = [n for n in nodes if isinstance(n, ast.Attribute) and self._mine(n)]
            same = {self.syntax.parents[n].targets[0] for n in mine if self._aliased(n)}  # type: ignore[attr-defined]
            if method is self.init and self.parameter is not None:
                same.add(self.parameter)
            yield from ((n, True) for n in mine)
            for n in nodes:
                if isinstance(n, ast.Name) and not self._bound_by_lambda(n):
                    definitions = self.inference.definitions(n) if same else frozenset()
                    found = [d for d in definitions if d.node in same]
                    if found:
                        yield n, len(found) == len(definitions)

    def _aliased(self, e: ast.expr) -> bool:
        """Whether ``e`` is given a local name: ``words = self.words``."""
        parent = self.syntax.parents[e]
        return isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name)

    def _bound_by_lambda(self, n: ast.Name) -> bool:
        return any(isinstance(p, ast.Lambda) and self.syntax.binds(p, n.id) for p in self.syntax.ancestors(n))

    # --- what is done with it ---------------------------------------------------------------------------------------

    def reads(self) -> Iterator[Read]:
        """The reads outside of ``__init__``. Raises NotHeldError when a use gives something else away."""
        for e, certain in self._objects():
            early = self.syntax.method_of(e) is self.init
            node, path = e, list[str]()
            parent = self.syntax.parents[node]
            while isinstance(parent, ast.Attribute) and isinstance(parent.ctx, ast.Load):
                node, parent = parent, self.syntax.parents[parent]
                path.append(node.attr)
            called = parent if isinstance(parent, ast.Call) and parent.func is node else None
            if isinstance(parent, ast.Attribute):
                self.reasons.append(f"`{ast.unparse(parent)}` is assigned")
            elif not path:
                self._bare(e, parent, early)
            elif path[0] in host_api.MODULE_OR_TENSOR or path[-1] in api.HOST_READS:
                raise NotHeldError
            elif called is not None and any(map(suggests_change, path)):
                self.reasons.append(f"`{ast.unparse(node)}` may change it")
            elif early:
                if called is None and not isinstance(parent, ast.Expr) and not self._kept(parent):
                    raise NotHeldError  # what sizes layers is configuration
            elif called is not None and not _constant(called):
                self._called(called, path[-1])
            elif certain and self._readable(called or node, path, called is not None):
                text = _arguments(called) if called is not None else ""
                yield Read(called or node, tuple(path), called, ".".join(path) + text)

    def _kept(self, parent: ast.AST) -> bool:
        """Whether the value just becomes an attribute of the instance."""
        return isinstance(parent, ast.Assign) and all(isinstance(t, ast.Attribute) for t in parent.targets)

    def _readable(self, whole: ast.expr, path: list[str], called: bool) -> bool:
        """Whether the expression may be replaced, and is one to look at."""
        if called and path[-1] in CONTAINER_METHODS | api.TENSOR_ONLY:
            return False
        if any(part.startswith("__") or suggests_configuration(part) for part in path):
            return False
        if not self._sees_instance(whole):
            return False
        inside = (ast.JoinedStr, ast.MatchValue)  # positions are not exact in the one, a name has to stand in the other
        return not any(isinstance(p, inside) for p in self.syntax.ancestors(whole))

    def _called(self, call: ast.Call, name: str) -> None:
        """A method that gets more than constants: no tensors, and in compiled code only to look something up."""
        if any(self.inference.of(a).is_tensor for a in [*call.args, *(k.value for k in call.keywords)]):
            raise NotHeldError
        if not suggests_lookup(name) and self._reached(call):
            self.reasons.append(f"`{ast.unparse(call.func)}` may change it")

    def _reached(self, node: ast.AST) -> bool:
        method = self.syntax.method_of(node)
        return method is not None and self.project.reached(f"{self.name}.{method.name}")

    def _bare(self, e: ast.expr, parent: ast.AST, early: bool) -> None:
        """The object itself is used, not an attribute of it."""
        match parent:
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                if parent is not self.store.statement and not (self._mine(e) and self._aliased(e)):
                    self.reasons.append(f"`{ast.unparse(target)}` holds it as well")
            case ast.Call() if parent.func is e:
                if self._reached(e) or early:
                    raise NotHeldError
            case ast.Call():
                self._passed(e, parent, early)
            case ast.keyword():
                call = self.syntax.parents[parent]
                assert isinstance(call, ast.Call)
                self._passed(e, call, early)
            case ast.Compare(ops=[ast.In() | ast.NotIn()]) | ast.Subscript() | ast.Return() if not early:
                pass
            case ast.Compare() | ast.If() | ast.IfExp() | ast.While() | ast.BoolOp() | ast.Assert():
                self.reasons.append("it may be None: there is a test for it")
            case ast.UnaryOp(op=ast.Not()):
                self.reasons.append("it may be None: there is a test for it")
            case ast.Tuple() | ast.List() | ast.Dict() if not (early or self._reached(e)):
                pass
            case _:
                raise NotHeldError

    def _passed(self, e: ast.expr, call: ast.Call, early: bool) -> None:
        name = dotted(call.func) or ""
        if name in _LOOKS_ONLY:
            return
        if name in ("hasattr", "isinstance"):
            self.reasons.append(f"it may be something else: `{name}` asks for that")
        elif name == "getattr" and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
            return
        elif early:
            raise NotHeldError  # handed on while the module is built: configuration
        elif self._reached(e) or suggests_change(name.rpartition(".")[2]):
            self.reasons.append(f"`{name or ast.unparse(call.func)}` may change it")


def _detours(facts: ClassFacts, init: FunctionNode, statement: ast.stmt) -> Iterator[str]:
    """Whether the assignment is a line of its own after ``super().__init__()``, with no way around it."""
    at = init.body.index(statement)
    before, after = init.body[:at], init.body[at + 1 :]
    if not any(_starts(s, facts) for s in before):
        yield "it is assigned before `super().__init__()`"
    if any(isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)) for s in before for n in walk(s)):
        yield "`__init__` may return before it is assigned"
    lines = {init.lineno, *(s.end_lineno for s in before), *(s.lineno for s in after)}
    if lines & {statement.lineno, statement.end_lineno}:
        yield "its assignment shares a line with another statement"


def _starts(s: ast.stmt, facts: ClassFacts) -> bool:
    """Whether ``s`` is ``super().__init__(...)`` or the like."""
    match s:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr="__init__"))):
            if isinstance(base, ast.Call):
                return dotted(base.func) == "super" and (not base.args or dotted(base.args[0]) == facts.node.name)
            return dotted(base) in {dotted(b) for b in facts.node.bases}
    return False


def _constant(call: ast.Call) -> bool:
    given = [*call.args, *(k.value for k in call.keywords)]
    return all(isinstance(a, ast.Constant) for a in given) and all(k.arg is not None for k in call.keywords)


def _arguments(call: ast.Call) -> str:
    keywords = [f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords]
    return f"({', '.join([*map(ast.unparse, call.args), *keywords])})"


def _related(read: str, stored: str) -> bool:
    """Whether assigning ``stored`` may change ``read``: the same name, or ``pad_token`` and ``pad_token_id``."""
    a, b = read.strip("_"), stored.strip("_")
    return a == b or a in (f"{b}_id", f"{b}_ids", f"{b}_idx", f"{b}_index", f"{b}_indices")
