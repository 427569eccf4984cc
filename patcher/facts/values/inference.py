"""From expressions to values: reaching definitions, attributes, annotations, operators and calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, reduce
from types import MappingProxyType

from patcher.facts.flow.definitions import Definition, Flow, State
from patcher.facts.flow.fixpoint import reach
from patcher.facts.flow.narrowing import Ruling, asks_what_it_is
from patcher.facts.project.index import Project
from patcher.facts.project.summaries import ClassSummary
from patcher.facts.project.touches import How
from patcher.facts.syntax.classes import INITIALISERS, ClassFacts, Store, attribute_of, self_name
from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted, walk
from patcher.facts.syntax.written import defaults, given, parsed
from patcher.facts.tables import torch_api as api
from patcher.facts.values.dimensions import RESHAPING, least_dimensions, unconditional
from patcher.facts.values.operations import Operations
from patcher.facts.values.seen import refined
from patcher.facts.values.types import (
    BOOL,
    CONFIGURATION,
    DEFAULT,
    FOREIGN,
    INT64,
    OBJECT,
    OTHER,
    PYTHON,
    UNKNOWN,
    WEIGHTS,
    Category,
    DType,
    Kind,
    Rank,
    Token,
    Value,
    absolute,
    arithmetic,
    broadcast,
    compare,
    join,
    joined_dtype,
    named,
    presumable,
    promote,
    python,
    tensor,
)
from patcher.measuring.observed import Observed, Span, span_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TENSOR_ANNOTATIONS = {
    "Tensor": Category.UNKNOWN,
    "FloatTensor": Category.FLOAT,
    "LongTensor": Category.INT,
    "IntTensor": Category.INT,
    "BoolTensor": Category.BOOL,
}
_JAXTYPING = {"Float": Category.FLOAT, "Int": Category.INT, "Bool": Category.BOOL, "Shaped": Category.UNKNOWN}

#: Methods by which a module converts all of its weights.
_CONVERSIONS = frozenset("half float double bfloat16 to type".split())

#: How many expressions deep definitions are followed before what is further up is computed first.
_DEEP = 50


class Inference:
    """Values of the expressions of one module. Results are kept per node."""

    def __init__(
        self,
        syntax: Syntax,
        flow_of: Callable[[FunctionNode], Flow],
        class_facts: Callable[[ast.ClassDef], ClassFacts],
        project: Project,
        module: str,
        seen: Mapping[Span, Observed] = MappingProxyType({}),
    ) -> None:
        self.syntax = syntax
        self.seen = seen  # what a run has shown
        self.flow_of = flow_of
        self.class_facts = class_facts
        self.project = project
        self.module = module
        self.operations = Operations(self.of)
        #: What a name needs no more than to be taken for a tensor: no class of the project has it.
        self.tensor_names = api.TENSOR_ONLY - project.look_alikes(module)
        self._values: dict[ast.AST, Value] = {}
        self._depth = 0  # of expressions whose value is being computed
        self._attributes: dict[tuple[ast.ClassDef, str], Value] = {}
        self._evidence: dict[Definition, bool] = {}
        self._seen: dict[Definition, int] = {}
        self._calls: dict[ast.ClassDef, dict[str, list[ast.Attribute]]] = {}
        self._families: dict[ast.ClassDef, list[ClassSummary]] = {}
        self._parameters: dict[FunctionNode, dict[str, Value]] = {}
        self._resized: dict[FunctionNode, bool] = {}
        self._instances: dict[FunctionNode, str | None] = {}

    def of(self, expr: ast.expr) -> Value:
        """The value of ``expr`` where it stands."""
        if type(expr) is ast.Attribute and (own := self.instance_attribute(expr)) is not None:
            held = self.attribute(*own)
            return refined(held, self.observed(expr)) if self.seen else held
        known = self._values.get(expr)
        if known is None:
            self._values[expr] = UNKNOWN  # a loop through definitions ends here
            self._depth += 1
            try:
                if self._depth % _DEEP == 0:
                    self._prepare(expr)
                known = self._of(expr)
                known = self._values[expr] = refined(known, self.observed(expr)) if self.seen else known
            finally:
                self._depth -= 1
        return known

    def observed(self, node: ast.expr | ast.arg) -> Observed | None:
        """What a run has seen of it; None where none has.

        Of a name in code that did not run, what it has seen of the same tensor elsewhere.
        """
        if not self.seen or not hasattr(node, "lineno"):
            return None
        own = self.seen.get(span_of(node))
        if own is not None or not isinstance(node, ast.Name) or (function := self.syntax.function_of(node)) is None:
            return own
        flow = self.flow_of(function)
        reaching = flow.reaching.get(node, frozenset())
        uses = (use for d in reaching for use in flow.uses.get(d, ()))
        others = (self.seen.get(span_of(use)) for use in uses if flow.reaching.get(use) == reaching)
        return next((seen for seen in others if seen is not None and seen.is_tensor), None)

    def _prepare(self, e: ast.expr) -> None:
        """Compute the names that ``e`` is made of in the order of the source, so that none needs a deep recursion."""

        def made_of(name: ast.Name) -> list[ast.Name]:
            known = name in self._values and name is not e
            definitions = () if known else self.definitions(name)
            return [n for d in definitions for n in self._read(d.node if d.how == "augmented" else d.value)]

        for name in sorted(reach(self._read(e), made_of), key=lambda n: (n.lineno, n.col_offset)):
            self.of(name)

    def _read(self, node: ast.AST | None) -> list[ast.Name]:
        """The names in ``node`` with a value."""
        names = [n for n in walk(node) if isinstance(n, ast.Name)] if node is not None else []
        return [n for n in names if (f := self.syntax.function_of(n)) is not None and n in self.flow_of(f).reaching]

    def _of(self, e: ast.expr) -> Value:
        match e:
            case ast.Constant(value=value):
                return _constant(value)
            case ast.Name():
                return self._name(e)
            case ast.NamedExpr(value=value):
                return self.of(value)
            case ast.Attribute():
                return self._attribute(e)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(self.of(left), op, self.of(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.of(operand)
                return python("bool", data=inner.is_tensor or inner.data)
            case ast.UnaryOp(operand=operand):
                inner = self.of(operand)
                if isinstance(inner.constant, float) and isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
                    return replace(inner, constant=-inner.constant)
                if inner.kind is not Kind.PYTHON:
                    return inner
                return replace(inner, constant=None, python="int" if inner.python == "bool" else inner.python)
            case ast.Compare(left=left, ops=ops, comparators=others):
                if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in ops):
                    return python("bool")
                if len(ops) > 1:
                    sides = [self.of(left), *map(self.of, others)]
                    data = any(s.is_tensor or s.data for s in sides)
                    return python("bool", data=data) if all(s.kind is Kind.PYTHON for s in sides) or data else UNKNOWN
                a, b = self.of(left), self.of(others[0])
                if isinstance(ops[0], (ast.Eq, ast.NotEq)):
                    a, b = self._identifier(a, b, left), self._identifier(b, a, others[0])
                return compare(a, b, equality=isinstance(ops[0], (ast.Eq, ast.NotEq)))
            case ast.BoolOp(values=values):
                parts = [self.of(v) for v in values]
                if all(p.kind is Kind.PYTHON for p in parts):
                    what = "bool" if all(p.python == "bool" for p in parts) else ""
                    return python(what, data=any(p.data for p in parts))
                return UNKNOWN
            case ast.IfExp(body=body, orelse=orelse):
                return join(self.of(body), self.of(orelse))
            case ast.Call():
                return self._call(e)
            case ast.Subscript(value=base, slice=index):
                return self._subscript(self.of(base), index)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return Value(Kind.PYTHON, python="container", elements=tuple(map(self.of, elements)))
            case ast.Dict() | ast.Set() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return python("container")
            case ast.JoinedStr():
                return python("str")
        return UNKNOWN

    # --- names ------------------------------------------------------------------------------------------------------

    def definitions(self, name: ast.Name) -> frozenset[Definition]:
        """What may have bound ``name`` where it is read; in a nested function, also the outer bindings."""
        if self.syntax.by_type[ast.Lambda] and self.syntax.is_lambda_parameter(name):
            return frozenset()
        function = self.syntax.function_of(name)
        while function is not None:
            flow = self.flow_of(function)
            if (reaching := flow.reaching.get(name)) is not None:
                if reaching:
                    return reaching
            elif outer := frozenset(d for d in flow.by_node.values() if d.name == name.id):
                return outer
            function = self.syntax.function_of(function)
        return frozenset()

    def _name(self, name: ast.Name) -> Value:
        definitions = self.definitions(name)
        if not definitions:
            return self._module_constant(name.id)
        function, state = self.syntax.function_of(name), self.state(name)
        if function is not None and name.id in self.flow_of(function).shared:
            return UNKNOWN
        definitions = self.considered(frozenset(d for d in definitions if not self._ruled_out(d, state)) or definitions)
        values = [self._held(d, state) for d in definitions]
        value = reduce(join, values)
        if value.kind is Kind.UNKNOWN:
            if value in (FOREIGN, OBJECT):
                return value
            if not all(
                v.is_tensor or (v.kind is Kind.UNKNOWN and v != OBJECT and self._used_as_tensor(d))
                for d, v in zip(definitions, values, strict=True)
            ):
                known = presumable(joined_dtype(v.dtype for v in values))
                return Value(Kind.UNKNOWN, data=True) if all(v.data for v in values) else known
            value = tensor(dtype=joined_dtype(v.dtype for v in values))
        if function is not None and self.reshapes(function):
            return replace(absolute(value), rank=None, dtype=None) if value.is_tensor else value
        value = named(value, _token(name, definitions, state))
        if value.rank is not None and (seen := min(self._dimensions(d) for d in definitions)):
            value = replace(value, rank=value.rank.with_seen(seen))
        return value

    def reshapes(self, function: FunctionNode) -> bool:
        """Whether something in ``function``, or in what that calls, gives a tensor other sizes in place."""
        known = self._resized.get(function)
        if known is None:
            outer = [f for f in self.syntax.around(function).scopes if isinstance(f, _FUNCTIONS)]
            around = outer[-1] if outer else function
            name = f"{self.module}.{self.syntax.qualname(around)}"
            here = self._reshaping_here.intersection({function, *outer})
            known = self._resized[function] = bool(here) or self.project.effects.reshapes(name)
        return known

    @cached_property
    def _reshaping_here(self) -> frozenset[FunctionNode]:
        """The functions that give a tensor other sizes or another dtype, and those around them."""
        found: set[FunctionNode] = set()
        for n in self.syntax.by_type[ast.Attribute]:
            if n.attr in RESHAPING or (n.attr == "data" and isinstance(n.ctx, ast.Store)):
                found.update(f for f in self.syntax.around(n).scopes if isinstance(f, _FUNCTIONS))
        return frozenset(found)

    def _dimensions(self, d: Definition) -> int:
        """How many dimensions the tensor has at least that ``d`` binds, by what every call does with it."""
        known = self._seen.get(d)
        if known is None:
            self._seen[d] = 0
            function = self.syntax.function_of(d.node) if d.how != "parameter" else self._function_of_parameter(d)
            uses = self.flow_of(function).uses.get(d, []) if function is not None else []
            single = [u for u in uses if self.flow_of(function).reaching[u] == {d}] if function is not None else []
            known = self._seen[d] = max((self._needs(u) for u in single), default=0)
        return known

    def _needs(self, use: ast.Name) -> int:
        parent = self.syntax.parents[use]
        needed = least_dimensions(use, self.syntax)
        if isinstance(parent, ast.Call) and use in parent.args[:1]:
            needed = int(self.of(parent.func).module in api.NEEDING_A_DIMENSION)
        return needed if needed and unconditional(use, self.syntax) else 0

    def _function_of_parameter(self, d: Definition) -> FunctionNode | None:
        function = self.syntax.parents.get(self.syntax.parents[d.node])
        return function if isinstance(function, _FUNCTIONS) else None

    def considered(self, definitions: frozenset[Definition]) -> frozenset[Definition]:
        """Those of ``definitions`` that decide what a name holds: all of them."""
        return definitions

    def state(self, name: ast.Name) -> State | None:
        """What is known of ``name`` where it is read; None in a scope that is not that of the name."""
        function = self.syntax.function_of(name)
        state = self.flow_of(function).state.get(name) if function is not None else None
        return state if state is not None and state.definitions else None

    def _ruled_out(self, d: Definition, state: State | None) -> bool:
        """Whether a test on the way says that it is not ``d`` that the name holds."""
        ruled = state.ruled.get(d, frozenset()) if state is not None else frozenset()
        return bool({Ruling.NOT_NONE, Ruling.TENSOR} & ruled) and self.defined(d).python == "none"

    def _held(self, d: Definition, state: State | None) -> Value:
        """What ``d`` binds, as it is known at a point with that state."""
        value = self.defined(d)
        if state is None:
            return value
        ruled = state.ruled.get(d, ())
        if value.kind is Kind.UNKNOWN and Ruling.TENSOR in ruled:
            value = tensor()
        if Ruling.NOT_TENSOR in ruled and (value.is_tensor or value.kind is Kind.UNKNOWN):
            return OBJECT
        return absolute(value) if d in state.earlier else value

    @cached_property
    def _stores(self) -> dict[str, list[ast.Name]]:
        """Where each name is bound or deleted, anywhere in the module."""
        found: dict[str, list[ast.Name]] = {}
        for n in self.syntax.by_type[ast.Name]:
            if not isinstance(n.ctx, ast.Load):
                found.setdefault(n.id, []).append(n)
        return found

    def _module_constant(self, name: str) -> Value:
        """A number or string that the module binds once, at its top level."""
        stores = self._stores.get(name, [])
        if len(stores) != 1 or name in self.syntax.imports or name in self.project.foreign_stores:
            return UNKNOWN
        statement = self.syntax.parents[stores[0]]
        if statement not in self.syntax.tree.body or not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return UNKNOWN
        return _constant(statement.value.value) if isinstance(statement.value, ast.Constant) else UNKNOWN

    def defined(self, d: Definition) -> Value:
        """The value that a definition binds."""
        match d.how:
            case "parameter":
                held = self._parameter(d)
                return refined(held, self.observed(d.node)) if isinstance(d.node, ast.arg) else held
            case "assign":
                assert d.value is not None
                value = self.of(d.value)
                if d.path and _is_list_of_numbers(d.value, value):
                    return python("", data=True)
                called = self.syntax.qualified(d.value.func) if isinstance(d.value, ast.Call) else None
                if len(d.path) == 1 and called in api.PAIRS:
                    return tensor()
                for position in d.path:
                    value = self._unpacked(value, position)
                return value
            case "augmented":
                assert isinstance(d.node, ast.AugAssign) and isinstance(d.node.target, ast.Name)
                before = self.of(d.node.target)
                after = self._binary(before, d.node.op, self.of(d.node.value))
                return replace(after, dtype=before.dtype) if before.is_tensor else after
            case "iteration":
                assert d.value is not None
                if (self.syntax.builtin(d.value), d.path) in (("range", ()), ("enumerate", (0,))):
                    return python("int")
                inner = self.of(d.value)
                if inner.is_tensor and not d.path:
                    return tensor(inner.rank.plus(-1) if inner.rank else None, inner.dtype)
                return python("", data=True) if _is_list_of_numbers(d.value, inner) else UNKNOWN
        return UNKNOWN

    def _unpacked(self, value: Value, position: int) -> Value:
        if value.elements:
            return value.elements[position] if position < len(value.elements) else UNKNOWN
        if value.python == "size":
            return python("size")
        if value.is_tensor:
            return tensor(value.rank.plus(-1) if value.rank else None, value.dtype)
        return value if value == FOREIGN else UNKNOWN

    def _used_as_tensor(self, d: Definition) -> bool:
        """Second presumption: something that only a tensor has is used on what ``d`` binds."""
        known = self._evidence.get(d)
        if known is None:
            self._evidence[d] = False
            function = self.syntax.function_of(d.node) if d.how != "parameter" else self._function_of_parameter(d)
            known = False
            if function is not None:
                uses = self.flow_of(function).uses.get(d, [])
                tests = (ast.Is, ast.IsNot)
                checked = any(
                    (isinstance(p := self.syntax.parents[u], ast.Compare) and isinstance(p.ops[0], tests))
                    or asks_what_it_is(p)
                    or (isinstance(p, ast.Call) and self.syntax.qualified(p.func) in api.CONVERTING)
                    for u in uses
                )
                known = not checked and any(self.is_tensor_use(u) for u in uses)
            self._evidence[d] = known
        return known

    def is_tensor_use(self, load: ast.expr) -> bool:
        """Whether what ``load`` reads is used as only a tensor can be, as far as can be told."""
        node: ast.AST = load
        parent = self.syntax.parents[node]
        while (
            isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare))
            and not (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not))
            and all(isinstance(c, ast.Constant) for c in _operands(parent) if c is not node)
        ):
            node, parent = parent, self.syntax.parents[parent]
        if isinstance(parent, ast.Attribute):
            return parent.attr in self.tensor_names
        if isinstance(parent, ast.Call) and parent.args and parent.args[0] is node:
            what = self.syntax.qualified(parent.func) or ""
            if api.CREATORS.get(what) == "like":
                return True
            return _function_name(what) in api.TENSOR_ONLY or self.of(parent.func).module.startswith("torch.nn.")
        return False

    def _parameter(self, d: Definition) -> Value:
        argument = d.node
        assert isinstance(argument, ast.arg)
        function = self.syntax.parents[self.syntax.parents[argument]]
        token = Token("name", (d,))
        assert isinstance(function, (*_FUNCTIONS, ast.Lambda))
        default = defaults(function.args).get(argument.arg)
        if isinstance(default, ast.Constant) and default.value is None:
            return UNKNOWN
        if argument.annotation is not None:
            value = self.annotated(argument.annotation)
            if value != UNKNOWN:
                return named(value, token)
        if isinstance(default, ast.Constant) and isinstance(default.value, (bool, int, float, str)):
            like = _constant(default.value)
            return python("number" if like.python in ("int", "float") else like.python)
        if isinstance(function, _FUNCTIONS):
            passed = self._passed(function).get(argument.arg)
            if passed is not None:
                return passed
        instance = self.syntax.method_of(function) is function and self_name(function) == argument.arg
        if not instance and self._used_as_tensor(d):  # an instance may call what it holds `long`, or `half`
            category = Category.INT if self._used_as_index(d) else Category.UNKNOWN
            return named(tensor(dtype=DType(category)), token)
        return UNKNOWN

    def _used_as_index(self, d: Definition) -> bool:
        function = self._function_of_parameter(d)
        if function is None:
            return False
        for use in self.flow_of(function).uses.get(d, []):
            parent = self.syntax.parents[use]
            if isinstance(parent, ast.Subscript) and parent.slice is use:
                return True
            if isinstance(parent, ast.Call) and use in parent.args:
                if self.of(parent.func).module == "torch.nn.Embedding":
                    return True
                if (self.syntax.qualified(parent.func) or "").endswith("functional.embedding"):
                    return True
        return False

    def annotated(self, annotation: ast.expr) -> Value:
        """What an annotation promises; None inside of it, or anything unusual, makes it UNKNOWN."""
        if (written := parsed(annotation)) is None:
            return UNKNOWN
        annotation = written
        text = dotted(annotation)
        last = text.rpartition(".")[2] if text else ""
        if last in _TENSOR_ANNOTATIONS:
            category = _TENSOR_ANNOTATIONS[last]
            return tensor(dtype=DType(category) if category is not Category.UNKNOWN else None)
        if text in ("int", "float", "bool", "str"):
            return python("number" if text == "float" else text)  # an int is a float, as annotations go
        if text in ("list", "tuple", "dict"):
            return python("container")
        if (what := self.syntax.qualified(annotation) or f"{self.module}.{text}") and self.project.is_plain_class(what):
            return OBJECT
        if what.startswith("numpy."):
            return FOREIGN
        if isinstance(annotation, ast.Subscript):
            base = (dotted(annotation.value) or "").rpartition(".")[2]
            if base in _JAXTYPING and isinstance(annotation.slice, ast.Tuple):
                inner = self.annotated(annotation.slice.elts[0])
                if inner.is_tensor:
                    return tensor()
            if base in ("list", "List", "tuple", "Tuple", "dict", "Dict", "Sequence"):
                return python("container")
        return UNKNOWN

    def _passed(self, function: FunctionNode) -> dict[str, Value]:
        """What every call of a private method or nested function passes, when all calls are in this file."""
        known = self._parameters.get(function)
        if known is None:
            self._parameters[function] = {}
            known = self._parameters[function] = self._gather(function)
        return known

    def _gather(self, function: FunctionNode) -> dict[str, Value]:
        calls = self.calls_of(function)
        if not calls:
            return {}
        names = [a.arg for a in [*function.args.posonlyargs, *function.args.args]]
        if self.syntax.method_of(function) is function and self_name(function) is not None:
            names = names[1:]
        sites: list[dict[str, Value]] = []
        for call in calls:
            if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
                return {}
            site = {n: self.of(a) for n, a in zip(names, call.args, strict=False)}
            site.update({k.arg: self.of(k.value) for k in call.keywords if k.arg})
            sites.append(site)
        out: dict[str, Value] = {}
        for name in (n for n in names if all(n in site for site in sites)):
            value = reduce(join, (site[name] for site in sites))
            if value.is_tensor:
                out[name] = named(value, Token("parameter", (function, name)))
            elif value.kind is Kind.PYTHON:
                out[name] = replace(value, constant=None)
        return out

    def calls_of(self, function: FunctionNode) -> list[ast.Call]:
        """All calls of a function that nobody outside of this file can call; empty when that is not known."""
        name = function.name
        method = self.syntax.method_of(function) is function
        nested = not method and self.syntax.function_of(function) is not None
        if not nested and not (name.startswith("_") and not name.endswith("__")):
            return []
        calls = []
        for node in self._said.get(name, ()):
            if isinstance(node, ast.Attribute) and not method:
                return []
            if isinstance(node, ast.Name) and method:
                continue
            parent = self.syntax.parents[node]
            if not (isinstance(parent, ast.Call) and parent.func is node):
                return []
            calls.append(parent)
        if method:
            cls = self.syntax.class_of(function)
            if cls is None or any(f.name == name and f is not function for f in self.syntax.functions):
                return []
        return calls

    @cached_property
    def _said(self) -> dict[str, list[ast.AST]]:
        """Where the module says each name of a private or nested function: as an attribute, then as a name."""
        functions = (*self.syntax.by_type[ast.FunctionDef], *self.syntax.by_type[ast.AsyncFunctionDef])
        found: dict[str, list[ast.AST]] = {f.name: [] for f in functions}  # type: ignore[attr-defined]
        for kind, field in ((ast.Attribute, "attr"), (ast.Name, "id")):
            for node in self.syntax.by_type[kind]:
                if (places := found.get(getattr(node, field))) is not None:
                    places.append(node)
        return found

    # --- attributes -------------------------------------------------------------------------------------------------

    def instance_attribute(self, e: ast.AST) -> tuple[ast.ClassDef, str] | None:
        """The class and attribute when ``e`` is ``self.x`` inside of a method."""
        if type(e) is not ast.Attribute or type(e.value) is not ast.Name:
            return None
        around = self.syntax.around(e)
        method, cls = around.member, around.cls
        if not isinstance(method, _FUNCTIONS) or cls is None:
            return None
        if method not in self._instances:
            self._instances[method] = self_name(method)
        return (cls, e.attr) if self._instances[method] == e.value.id else None

    def attribute(self, cls: ast.ClassDef, name: str) -> Value:
        """What ``self.name`` holds: all assignments of the class taken together."""
        key = (cls, name)
        known = self._attributes.get(key)
        if known is None:
            self._attributes[key] = UNKNOWN
            known = self._attributes[key] = self._stored(cls, name)
        return known

    def _identifier(self, value: Value, other: Value, expr: ast.expr) -> Value:
        """Fifth presumption: an attribute that an integer tensor is tested for equality with is a number.

        Not where it is set under a name that code puts together, or by a call: that may be anything.
        """
        integers = other.is_tensor and other.dtype is not None and other.dtype.category is Category.INT
        if not (integers and value.kind is Kind.UNKNOWN and isinstance(expr, ast.Attribute)):
            return value
        own = self.instance_attribute(expr)
        if own is not None:
            cls = f"{self.module}.{self.syntax.qualname(own[0]) or own[0].name}"
            if any(self.project.attributes.touched(cls, own[1], (How.SET,))):
                return value
        return python("number")

    def _family(self, cls: ast.ClassDef) -> list[ClassSummary]:
        """The classes of the project that share instances with ``cls``, itself first."""
        known = self._families.get(cls)
        if known is None:
            name = f"{self.module}.{self.syntax.qualname(cls) or cls.name}"
            names = [name, *sorted(self.project.family(name)[0] - {name})]
            known = self._families[cls] = [c for n in names if (c := self.project.known_class(n)) is not None]
        return known

    def _set_elsewhere(self, cls: ast.ClassDef, name: str) -> bool:
        """Whether code other than the methods of ``cls`` decides what ``self.name`` is."""
        if name in self.class_facts(cls).methods:
            return True
        others = [c for c in self._family(cls) if c.name != (self.syntax.qualname(cls) or cls.name)]
        return any(name in c.stores | c.init_stores | c.methods | c.declared for c in others)

    def surely_set(self, cls: ast.ClassDef, name: str) -> bool:
        """Whether every instance has the attribute: the class sets it, or its constructor on every path."""
        stores = self.class_facts(cls).stores.get(name, [])
        if any(s.method is None and s.value is not None for s in stores):
            return True
        statements = {s.statement for s in stores if s.method is not None and s.method.name in INITIALISERS}
        return any(
            _on_every_path(s.method.body, statements) for s in stores if s.method and s.method.name in INITIALISERS
        ) or (name == "training" and self.project.is_module_class(f"{self.module}.{self.syntax.qualname(cls)}"))

    def _stored(self, cls: ast.ClassDef, name: str) -> Value:
        value = self.stored(cls, name)
        if value.kind not in (Kind.TENSOR, Kind.PYTHON) or name == "training":
            return value
        return UNKNOWN if name in self.project.foreign_stores or self._set_elsewhere(cls, name) else value

    def stored(self, cls: ast.ClassDef, name: str) -> Value:
        """What the methods of ``cls`` itself make ``self.name``, whoever else may set it."""
        stores = self.class_facts(cls).stores.get(name, [])
        stores = [s for s in stores if s.how != "declared"] or stores
        stores = [s for s in stores if not self._is_kept(s, cls, name)] or stores
        if not stores:
            return python("bool") if name == "training" and "forward" in self.class_facts(cls).methods else UNKNOWN
        first = [s for s in stores if s.method is None or s.method.name in INITIALISERS]
        later = [s for s in stores if s not in first]
        start = reduce(join, map(self._store_value, first)) if first else UNKNOWN
        if start.is_tensor:
            start = _owned(start, Token("attribute", (cls, name)), self._weights)
            start = replace(start, constant=None) if any(s.in_place for s in later) else start
            later = [s for s in later if not s.in_place]
        if not later:
            return start
        # Suppose that nothing changes its nature; what is worked out on that ground falls when a later store disagrees.
        self._attributes[cls, name] = start
        values = [self._store_value(s) for s in later]
        if start.is_tensor and all(_same_nature(v, start) for v in values):
            return start
        value = reduce(join, values, start)
        if value != start:
            self._values.clear()
            if value.is_tensor:
                rank = value.rank if value.rank and value.rank.base is None else None
                value = tensor(rank, trainable=value.trainable)
        return value

    def _is_kept(self, s: Store, cls: ast.ClassDef, name: str) -> bool:
        """Whether ``s`` only stores again what ``self.name`` is, with its weights kept in another way."""
        call = s.value
        if not isinstance(call, ast.Call) or not call.args or self.instance_attribute(call.args[0]) != (cls, name):
            return False
        return self._hands_back(call.func, self.syntax.qualified(call.func))

    def _store_value(self, s: Store) -> Value:
        if s.how == "module":
            return Value(Kind.MODULE)
        if s.value is None or s.how == "other":
            return self.annotated(s.annotation) if s.annotation is not None and s.value is None else UNKNOWN
        value = self.of(s.value)
        if value.kind is Kind.UNKNOWN and s.annotation is not None:
            value = self.annotated(s.annotation)
        if s.how == "buffer" and value.kind is Kind.UNKNOWN:
            return tensor()
        if s.how == "parameter":
            return replace(tensor(), trainable=True)
        return value

    def _attribute(self, e: ast.Attribute) -> Value:
        own = self.instance_attribute(e)
        if own is not None:
            return self.attribute(*own)
        what = self.syntax.qualified(e)
        if what is not None:
            if what in api.DTYPES:
                return python("dtype", constant=what)
            if what in ("math.inf", "math.nan", "torch.inf", "torch.nan"):
                return python("float", constant=float(what[-3:]))
            if what.startswith("math."):
                return python("float")
            return UNKNOWN
        if e.attr in ("max", "min", "eps", "tiny") and isinstance(e.value, ast.Call):
            limits = self.syntax.qualified(e.value.func)
            if limits in ("torch.finfo", "torch.iinfo"):
                return python("number")
        if e.attr == "values" and isinstance(e.value, ast.Call) and (pair := self.operations.reduced_with_dim(e.value)):
            return pair
        if self._is_configuration(e):
            return CONFIGURATION
        base = self.of(e.value)
        if base.is_tensor or base.kind is Kind.UNKNOWN:
            if e.attr == "shape":
                return python("size") if base.is_tensor else UNKNOWN
            if base.is_tensor:
                if e.attr in ("ndim",):
                    return python("int")
                if e.attr == "dtype":
                    return python("dtype", constant=base.dtype)
                if e.attr in ("device", "is_cuda", "requires_grad", "layout"):
                    return PYTHON
                if e.attr in ("T", "mT", "data", "real"):
                    parts = e.attr == "real" and base.dtype is not None and base.dtype.category is Category.OTHER
                    return tensor(base.rank, None if parts else base.dtype, base.shape if e.attr == "data" else None)
        if base == FOREIGN:
            return FOREIGN
        if base.kind is Kind.MODULE and e.attr == "weight":
            return replace(tensor(), trainable=True)
        if e.attr in api.GEOMETRY and base.module in api.CONVOLUTIONS and not self._is_replaced(e):
            return Value(Kind.PYTHON, elements=(python("number"),) * api.CONVOLUTIONS[base.module])
        if base.kind is Kind.MODULE and (found := self.project.known_class(base.module)) is not None:
            part = dict(found.built).get(e.attr)
            return Value(Kind.MODULE, module=part) if part is not None else UNKNOWN
        return UNKNOWN

    def _is_replaced(self, e: ast.Attribute) -> bool:
        """Whether something may take the place of ``e``, or of the layer of this class that it is an attribute of."""
        own = self.instance_attribute(e.value) if isinstance(e.value, ast.Attribute) else None
        names = {e.attr, own[1]} if own is not None else {e.attr}
        return not names.isdisjoint(self.project.foreign_stores) or (own is not None and self._set_elsewhere(*own))

    def _is_configuration(self, e: ast.Attribute) -> bool:
        """First presumption: an attribute of a constructor argument."""
        root: ast.expr = e
        while isinstance(root, ast.Attribute):
            if root.attr in api.TENSOR_ONLY | api.ALIASING | {"weight", "bias", "grad"}:
                return False
            root = root.value
        method = self.syntax.method_of(e)
        if not isinstance(root, ast.Name) or method is None:
            return False
        if root.id == self_name(method):
            return self._is_kept_argument(e)
        definitions = self.definitions(root)
        return method.name in INITIALISERS and bool(definitions) and all(d.how == "parameter" for d in definitions)

    def _is_kept_argument(self, e: ast.Attribute) -> bool:
        """``self.cfg.width``, where ``self.cfg`` is a constructor argument that nobody calls."""
        owner: ast.expr = e.value
        while isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Attribute):
            owner = owner.value
        place = self.instance_attribute(owner)
        if place is None:
            return False
        store = self.class_facts(place[0]).initial(place[1])
        if store is None or store.how != "assign" or not isinstance(store.value, ast.Name):
            return False
        definitions = self.definitions(store.value)
        if not definitions or not all(d.how == "parameter" for d in definitions):
            return False
        called = self._called(place[0]).get(owner.attr, []) if isinstance(owner, ast.Attribute) else []
        return not any(ast.unparse(func) == ast.unparse(owner) for func in called)

    def _called(self, cls: ast.ClassDef) -> dict[str, list[ast.Attribute]]:
        """The attributes that ``cls`` calls, by name."""
        if cls not in self._calls:
            found = self._calls[cls] = {}
            for c in walk(cls):
                if isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute):
                    found.setdefault(c.func.attr, []).append(c.func)
        return self._calls[cls]

    # --- operators --------------------------------------------------------------------------------------------------

    def _binary(self, a: Value, op: ast.operator, b: Value) -> Value:
        if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            if a.is_tensor or b.is_tensor:
                rank, shape = broadcast(a, b)
                return tensor(rank, promote(a, b) if b.is_tensor or a.is_tensor else None, shape)
            return UNKNOWN
        if isinstance(op, ast.MatMult):
            return tensor(None, promote(a, b)) if a.is_tensor or b.is_tensor else UNKNOWN
        if isinstance(op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)):
            return arithmetic(a, b, division=isinstance(op, ast.Div))
        return UNKNOWN

    def _subscript(self, base: Value, index: ast.expr) -> Value:
        if base.python == "size":
            return python("size")
        if base.elements and isinstance(index, ast.Constant) and isinstance(index.value, int):
            return base.elements[index.value] if -len(base.elements) <= index.value < len(base.elements) else UNKNOWN
        if not base.is_tensor:
            return base if base == FOREIGN else UNKNOWN
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        rank = base.rank
        for part in parts:
            if rank is None:
                break
            if isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is ...):
                continue
            if isinstance(part, ast.Constant) and part.value is None:
                rank = rank.plus(1)
                continue
            value = self.of(part)
            if value.is_number or (value.kind is Kind.PYTHON and value.python in ("int", "size", "number")):
                rank = rank.plus(-1)
            elif value.is_boolean:
                rank = rank.plus(1 - value.rank.offset) if value.rank and value.rank.base is None else None
            elif value.is_tensor and len(parts) == 1 and value.rank is not None and value.rank.base is None:
                rank = rank.plus(value.rank.offset - 1)
            else:
                rank = None
        return tensor(rank, base.dtype)

    # --- calls ------------------------------------------------------------------------------------------------------

    def _call(self, e: ast.Call) -> Value:
        what = self.syntax.qualified(e.func)
        if e.args and self._hands_back(e.func, what) and (module := self.of(e.args[0])).kind is Kind.MODULE:
            return module
        if what is not None:
            return self._function(e, what)
        if (text := dotted(e.func)) is not None and not self.definitions_of_root(e.func):
            built = self._project_module(f"{self.module}.{text}")
            if built is not None:
                return built
            if self.project.is_plain_class(f"{self.module}.{text}"):
                return OBJECT
        if isinstance(e.func, ast.Name):
            return self._builtin(e, name) if (name := self.syntax.builtin(e)) else UNKNOWN
        if not isinstance(e.func, ast.Attribute):
            return UNKNOWN
        own = self.instance_attribute(e.func)
        if own is not None:
            module = self.attribute(*own)
            if module.kind is Kind.MODULE:
                return self._module_call(e, module)
            if own[1] not in self.class_facts(own[0]).stores:
                return UNKNOWN
        receiver = self.of(e.func.value)
        if receiver == FOREIGN:
            return FOREIGN
        if receiver.kind is Kind.MODULE:
            part = self.of(e.func)
            return self._module_call(e, part) if part.kind is Kind.MODULE else UNKNOWN
        presumed = receiver.kind is Kind.UNKNOWN and receiver != OBJECT and e.func.attr in self.tensor_names
        if not receiver.is_tensor and not (presumed and not self._is_converted(e.func.value)):
            return presumable(self.operations.cast(e.func.attr, given(e)))
        return self.operations.operation(e, e.func.attr, receiver, e.args)

    def _hands_back(self, func: ast.expr, what: str | None) -> bool:
        """Whether ``func``, which the imports say is ``what``, is one that gives back the module that it gets."""
        if what is not None or not isinstance(func, ast.Name):
            return what in api.HANDING_BACK
        found = self.definitions(func)
        values = [d.value for d in found if d.how == "assign" and not d.path and d.value is not None]
        known = len(values) == len(found) > 0
        return known and all(self.syntax.qualified(value) in api.HANDING_BACK for value in values)

    def _is_converted(self, e: ast.expr) -> bool:
        """Whether the code makes a tensor of what ``e`` is, or asks what it is: it may be none."""
        definitions = self.definitions(e) if isinstance(e, ast.Name) else ()
        for d in definitions:
            function = self._function_of_parameter(d) if d.how == "parameter" else self.syntax.function_of(d.node)
            uses = self.flow_of(function).uses.get(d, ()) if function is not None else ()
            parents = [self.syntax.parents[u] for u in uses]
            if any(isinstance(p, ast.Call) and self.syntax.qualified(p.func) in api.CONVERTING for p in parents):
                return True
            if any(map(asks_what_it_is, parents)):
                return True
        return False

    def _builtin(self, e: ast.Call, name: str) -> Value:
        arguments = [self.of(a) for a in e.args]
        data = any(a.is_tensor or a.data for a in arguments)
        if name == "float" and len(arguments) == 1 and isinstance(e.args[0], ast.Constant):
            text = str(e.args[0].value).strip().lower().lstrip("+-")
            return python(name, constant=float("inf") if text in ("inf", "infinity", "nan") else None)
        if name in ("int", "float", "bool") and len(arguments) == 1:
            return python(name, data=data)
        if name == "len":
            return python("size" if arguments and arguments[0].is_tensor else "int")
        if name in ("min", "max", "abs", "round", "sum") and arguments and all(a.is_number for a in arguments):
            return python("size" if any(a.python == "size" for a in arguments) else "number")
        if name in ("range", "list", "tuple", "dict", "set", "zip", "enumerate", "sorted"):
            return python("container")
        if name in ("isinstance", "hasattr", "callable", "all", "any"):
            return python("bool")
        if name == "str":
            return python("str")
        return UNKNOWN

    @cached_property
    def _weights(self) -> DType:
        """The dtype of weights: one for all of a module, where no method of this file converts its own on the way."""
        for call in self.syntax.by_type[ast.Call]:
            match call:
                case ast.Call(func=ast.Attribute(value=ast.Name() as name, attr=attr)) if attr in _CONVERSIONS:
                    method = self.syntax.method_of(call)
                    if method is None or method.name in (*INITIALISERS, *_CONVERSIONS):
                        continue
                    if self._is_instance(name, self_name(method)):
                        return DType(Category.FLOAT)
        return WEIGHTS

    def _is_instance(self, name: ast.Name, own: str | None, depth: int = 8) -> bool:
        """Whether ``name`` may hold the instance, which its method calls ``own``."""
        if name.id == own or not depth:
            return name.id == own
        bound = (d.part for d in self.definitions(name) if d.how == "assign")
        return any(isinstance(v, ast.Name) and not path and self._is_instance(v, own, depth - 1) for v, path in bound)

    def _module_call(self, e: ast.Call, module: Value) -> Value:
        if not e.args:
            return UNKNOWN
        x = self.of(e.args[0])
        floating = DType(Category.FLOAT, x.dtype.which if x.dtype else Token("output", (e,)))
        layer = self._layer(e.func)
        if module.module == "torch.nn.Embedding":
            shape = x.shape.extended(layer) if x.shape and layer else None
            return tensor(x.rank.plus(1) if x.rank else None, self._weights, shape)
        if module.module == "torch.nn.Linear" and x.is_tensor:
            lead = x.shape.leading() if x.shape else None
            rank = x.rank.with_seen(1) if x.rank else None
            return tensor(rank, floating, lead.extended(layer) if lead and layer else None)
        if module.module in api.SHAPE_KEEPING_MODULES and x.is_tensor:
            needed = int(module.module in api.NEEDING_A_DIMENSION)
            return tensor(x.rank.with_seen(needed) if x.rank else None, floating, x.shape)
        return UNKNOWN

    def _layer(self, func: ast.expr) -> Token | None:
        """What stands for the module that ``func`` is, the same only where it is the same module; None if unknown."""
        root = func
        while isinstance(root, ast.Attribute) and isinstance(root.value, ast.Attribute):
            root = root.value
        if (own := self.instance_attribute(root)) is not None:
            stores = self.class_facts(own[0]).stores.get(own[1], [])
            steady = stores and all(s.method is None or s.method.name in INITIALISERS for s in stores)
            return Token("module", (own[0], dotted(func))) if steady else None
        if isinstance(func, ast.Name) and len(found := self.definitions(func)) == 1:
            return _token(func, found, self.state(func))
        return None

    def _function(self, e: ast.Call, what: str) -> Value:
        if what in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            inner = self.of(e.args[0]) if e.args else UNKNOWN
            return replace(inner if inner.is_tensor else tensor(), trainable=True)
        if what in ("torch.nn.Buffer", "torch.nn.parameter.Buffer"):
            return UNKNOWN  # a tensor that ``state_dict`` has: rules that move tensors know those of `register_buffer`
        if what.startswith("torch.nn.") and what.rpartition(".")[2][:1].isupper():
            return Value(Kind.MODULE, module=what)
        if (built := self._project_module(what)) is not None:
            return built
        if self.project.is_plain_class(what):
            return OBJECT
        if what in api.CREATORS:
            return self.operations.creator(e, what)
        if what == "torch.Tensor" and e.args and all(self.of(a).is_number for a in e.args):
            return tensor(Rank(None, len(e.args)), DEFAULT)
        if what in api.TYPED_TENSORS and e.args:
            return self._typed(api.TYPED_TENSORS[what], [self.of(a) for a in e.args])
        if what.startswith("math."):
            return python("float" if what != "math.ceil" and what != "math.floor" else "int")
        if what in ("torch.is_tensor", "torch.compiler.is_compiling", "torch.is_grad_enabled"):
            return python("bool")
        if what in ("torch.nn.functional.one_hot", "torch.nn.functional.embedding") and e.args:
            x = self.of(e.args[0])
            dtype = INT64 if what.endswith("one_hot") else None
            return tensor(x.rank.plus(1) if x.rank else None, dtype)
        if what in api.COMPLEX_MAKERS:
            return tensor(dtype=OTHER)
        if what == "torch.where" and len(e.args) == 3:
            return self.operations.where(*map(self.of, e.args))
        name = _function_name(what)
        if name is not None and e.args:
            receiver = self.of(e.args[0])
            if name in ("cat", "concat", "stack") and receiver.elements:
                return self.operations.joined(e, name, receiver.elements)
            if receiver.is_tensor or (receiver.kind is Kind.UNKNOWN and name in api.TENSOR_ONLY):
                return self.operations.operation(e, name, receiver, e.args[1:])
        return FOREIGN if self._is_foreign(what) else UNKNOWN

    def _typed(self, dtype: str, given: list[Value]) -> Value:
        """What a constructor of tensors of that dtype makes of sizes, or of one list."""
        integers = Category.INT if dtype in api.INT_DTYPES else Category.FLOAT
        made = BOOL if dtype == "torch.bool" else DType(integers, dtype)
        elements = given[0].elements if len(given) == 1 else ()
        if elements and all(v.is_number for v in elements):
            return tensor(Rank(None, 1), made)
        return tensor(Rank(None, len(given)) if all(v.is_number for v in given) else None, made)

    def _is_foreign(self, what: str) -> bool:
        """Whether ``what`` belongs to a library that is neither torch, nor this project, nor made for tensors."""
        root = what.partition(".")[0]
        return root not in api.TENSOR_LIBRARIES and root != self.module.partition(".")[0] and not self.project.has(root)

    def _project_module(self, what: str) -> Value | None:
        """The module that calling ``what``, a class of the project or its class method, builds."""
        for name in (what, what.rpartition(".")[0]):
            if self.project.known_class(name) is not None and self.project.is_module_class(name):
                return Value(Kind.MODULE, module=name)
        return None

    def is_rebound(self, name: ast.Name) -> bool:
        """Whether the name of a builtin stands for something else here."""
        syntax = self.syntax
        elsewhere = syntax.binds(syntax.tree, name.id) or name.id in syntax.imports or syntax.has_star
        return elsewhere or bool(self.definitions(name))

    def definitions_of_root(self, expr: ast.expr) -> bool:
        """Whether the name that ``expr`` starts from is bound in a function around it."""
        while isinstance(expr, ast.Attribute):
            expr = expr.value
        return isinstance(expr, ast.Name) and bool(self.definitions(expr))


def _owned(value: Value, token: Token, weights: DType) -> Value:
    """The tensor ``value`` as an attribute: what is not absolute gets the attribute's own token."""
    dtype = DType(value.dtype.category) if value.dtype is not None else None
    if value.trainable and (value.dtype is None or value.dtype == DEFAULT):
        dtype = weights
    found = named(replace(absolute(value), dtype=dtype), token)
    if weights.which is None and found.dtype is not None and found.dtype.category in (Category.FLOAT, Category.UNKNOWN):
        return replace(found, dtype=DType(found.dtype.category))  # not the same wherever the attribute is read
    return found


def _is_list_of_numbers(e: ast.expr, value: Value) -> bool:
    """Whether ``e`` makes a list of all numbers of a tensor, which nobody else has got hold of yet."""
    return isinstance(e, ast.Call) and value.python == "container" and value.data


def _on_every_path(body: list[ast.stmt], wanted: set[ast.stmt]) -> bool:
    """Whether one of ``wanted`` runs whenever ``body`` does."""
    for s in body:
        if s in wanted:
            return True
        if isinstance(s, ast.With) and _on_every_path(s.body, wanted):
            return True
        if isinstance(s, ast.If) and _on_every_path(s.body, wanted) and _on_every_path(s.orelse, wanted):
            return True
        if any(isinstance(n, ast.Return) for n in ast.walk(s)):
            return False
    return False


def _same_nature(value: Value, start: Value) -> bool:
    """Whether a later assignment keeps shape and dtype."""
    if not value.is_tensor or value.dtype is None or start.dtype is None:
        return False
    return value.shape == start.shape and value.dtype.exactly(start.dtype)


def _token(name: ast.Name, definitions: frozenset[Definition], state: State | None) -> Token:
    """What stands for the object that ``name`` holds where it is read."""
    if len(definitions) == 1 and not (state is not None and definitions & state.earlier):
        return Token("name", tuple(definitions))
    return Token("state", (state.version,)) if state is not None else Token("read", (name,))


def _constant(value: object) -> Value:
    if value is None:
        return python("none")
    if isinstance(value, complex):
        return python("", value)
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return python(kind.__name__, value)
    return PYTHON


def _operands(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
    return []


def _function_name(what: str) -> str | None:
    for prefix in ("torch.nn.functional.", "torch.special.", "torch.linalg.", "torch."):
        if what.startswith(prefix):
            name = what[len(prefix) :]
            return name if "." not in name else None
    return None


def is_instance_name(expr: ast.expr, method: FunctionNode) -> bool:
    """Whether ``expr`` is the instance that ``method`` works on."""
    return isinstance(expr, ast.Name) and expr.id == self_name(method)


__all__ = ["Inference", "attribute_of", "is_instance_name"]
