"""Where numbers read from 0-d tensors go: whether each use would take a Python number as well."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.flow.definitions import Definition, Flow
from patcher.facts.syntax.classes import parameter_at
from patcher.facts.syntax.tree import FunctionNode, dotted, methods_of
from patcher.facts.tables.torch_api import INT64
from patcher.facts.values.sizes import Sizes

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.ClassDef, ast.Module)
_ROUNDING = {"ceil": "ceil", "floor": "floor"}
#: Methods that take sizes and nothing else; and functions. With a 0-d tensor among the sizes, each reads it.
_SIZED_METHODS = frozenset("view reshape expand repeat new_zeros new_ones new_empty unfold".split())
_SIZED_FUNCTIONS = frozenset({"torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn", "torch.arange"})
_PADDING = "torch.nn.functional.pad"


class Form(Enum):
    """What an expression that a held number went into is, in the code as it is."""

    WHOLE = "0-d tensor of integers"
    QUOTIENT = "0-d tensor of floats, a quotient"
    ROUNDED = "0-d tensor of floats, rounded"
    PACK = "a tuple of integers and such tensors"


@dataclass(frozen=True)
class Quotient:
    """``numerator / denominator`` and what is added to it: ``expr`` in all."""

    expr: ast.expr
    numerator: ast.expr
    denominator: ast.expr


@dataclass(frozen=True)
class Rounding:
    """``expr`` is ``operand`` rounded up ("ceil") or down ("floor"), as an integer tensor."""

    expr: ast.expr
    operand: ast.expr
    how: str


@dataclass
class NumberUses:
    """``reads`` can be read as Python numbers when the other lists are rewritten along with them.

    ``breaking``: where a number that a tensor holds is needed by the host. ``obstacles``: what keeps other reads.
    """

    reads: list[ast.expr] = field(default_factory=list)
    quotients: list[Quotient] = field(default_factory=list)
    roundings: list[Rounding] = field(default_factory=list)
    items: list[ast.Call] = field(default_factory=list)
    breaking: list[ast.expr] = field(default_factory=list)
    obstacles: list[tuple[ast.AST, str]] = field(default_factory=list)


def sizes_in_tensors(facts: Facts, read: ast.expr) -> NumberUses:
    """What the code does with the number in the 0-d tensor ``read``."""
    flow = NumberFlow(facts, facts.syntax.class_of(read))
    return flow.uses_of([read] if facts.syntax.function_of(read) is not None else [])


class NumberFlow(Analysis):
    """Follows numbers in tensors, in one class, through names, arithmetic and its private methods."""

    def __init__(self, facts: Facts, cls: ast.ClassDef | None) -> None:
        super().__init__(facts)
        self.cls = cls
        self.name = (facts.qualname(cls) or cls.name) if cls is not None else facts.module
        self.sizes = facts.ask(Sizes)
        self.unchanged = facts.ask(Unchanged)

    def uses_of(self, reads: Sequence[ast.expr]) -> NumberUses:
        """Those of the 0-d tensors ``reads`` that can become Python numbers, the most there are."""
        obstacles: list[tuple[ast.AST, str]] = []
        breaking: list[ast.expr] = []
        while reads:
            spread = _Spread(self, reads)
            breaking = breaking or spread.out.breaking
            if not spread.faults:
                spread.out.obstacles = obstacles
                return spread.out
            node, reason, origin = spread.faults[0]
            obstacles.append((node, reason))
            reads = [r for r in reads if r is not origin]
        return NumberUses(obstacles=obstacles, breaking=breaking)

    def own_method(self, func: ast.expr) -> FunctionNode | None:
        """The method of the class, or the function of the module, that ``func`` is, when it can be nothing else."""
        own = self.inference.instance_attribute(func)
        if own is not None and own[0] is not self.cls:
            return None
        if own is not None and self.project.methods(self.name, own[1]) not in ([], [f"{self.name}.{own[1]}"]):
            return None
        if own is not None:
            found = [s for s in methods_of(own[0]) if s.name == own[1]]
        else:
            found = [f for f in self.syntax.functions if f.name == dotted(func)]
        if len(found) != 1 or (own is None and self._rebound(func, found[0])):
            return None
        names = {dotted(d) for d in found[0].decorator_list}
        return found[0] if names <= {"staticmethod"} else None

    def _rebound(self, func: ast.expr, function: FunctionNode) -> bool:
        """Whether the name of ``function`` may be something else where it is called."""
        home = next(a for a in self.syntax.ancestors(function) if isinstance(a, _SCOPES))
        around = [a for a in self.syntax.ancestors(func) if isinstance(a, _SCOPES)]
        name = function.name
        stores = [n for n in self.syntax.by_type[ast.Name] if n.id == name]
        return (
            isinstance(home, ast.ClassDef)
            or home not in around
            or any(
                self.syntax.imports_locally(s, name) or (s is not home and self.syntax.binds(s, name)) for s in around
            )
            or any(not isinstance(n.ctx, ast.Load) for n in stores)
            or name in self.syntax.imports
            or name in self.project.foreign_stores
        )

    def callers(self, method: FunctionNode) -> list[ast.Call] | None:
        """Every call of the private ``method``; None when others may call it, or take it as it is."""
        if not method.name.startswith("_") or method.name.startswith("__"):
            return None
        family = self.project.family(self.name)[0]
        for mention, module, f in self.project.mentions(method.name):
            owner = f"{module}.{f.qualname}".rpartition(".")[0]
            if f.qualname.rpartition(".")[0] and owner == self.name:
                continue
            if mention == f".{method.name}" or (owner in family and mention == f"self.{method.name}"):
                return None
        calls = []
        for n in ast.walk(self.cls or self.syntax.tree):
            if isinstance(n, ast.Attribute) and n.attr == method.name:
                call = self.syntax.parents[n]
                if not (isinstance(call, ast.Call) and call.func is n and self.own_method(n) is method):
                    return None
                calls.append(call)
        return calls


class _Spread:
    """One attempt: what becomes a Python number when ``reads`` do. ``faults``: node, reason, and the read."""

    def __init__(self, flow: NumberFlow, reads: Sequence[ast.expr]) -> None:
        self.flow = flow
        self.syntax = flow.syntax
        self.out = NumberUses()
        self.faults: list[tuple[ast.AST, str, ast.expr]] = []
        self.form: dict[ast.AST, Form] = {}
        self.origin: dict[ast.AST, ast.expr] = {}
        self.given: set[ast.AST] = set()  # what came in by a parameter, from callers of any kind
        self.definitions: set[Definition] = set()
        self.waiting: list[tuple[ast.expr, ast.expr]] = []
        self.used: set[ast.Name] = set()
        self._work: list[ast.expr] = []
        self.out.reads.extend(reads)
        for read in reads:
            self._mark(read, Form.WHOLE, read)
        self._run()

    def _run(self) -> None:
        while self._work or self.waiting:
            while self._work and not self.faults:
                self._follow(self._work.pop())
            if self.faults:
                return
            ready = [pair for pair in self.waiting if self._whole(pair[1])]
            if not ready and self.waiting:
                node, other = self.waiting[0]
                self._fault(node, f"`{ast.unparse(other)}` may be a tensor or no integer")
                return
            self.waiting = [pair for pair in self.waiting if pair not in ready]
            for node, _ in ready:
                self._joined(node)
        for name in self.used:
            for d in self.flow.inference.definitions(name):
                if d not in self.definitions and not (
                    d.value is not None and not d.path and self.flow.sizes.is_integer(d.value)
                ):
                    self._fault(name, f"`{name.id}` may be something else here")

    def _mark(self, node: ast.expr, form: Form, origin: ast.expr, given: bool = False) -> None:
        if node in self.form:
            if self.form[node] is not form:
                self._fault(node, "it is of several kinds")
            return
        self.form[node], self.origin[node] = form, origin
        if given:
            self.given.add(node)
        self._work.append(node)

    def _on(self, source: ast.expr, node: ast.expr, form: Form) -> None:
        self._mark(node, form, self.origin[source], source in self.given)

    def _fault(self, node: ast.expr, reason: str) -> None:
        self.faults.append((node, reason, self.origin[node]))

    def _whole(self, e: ast.expr) -> bool:
        return self.form.get(e) is Form.WHOLE or (e not in self.form and self.flow.sizes.is_integer(e))

    # --- one step ---------------------------------------------------------------------------------------------------

    def _follow(self, node: ast.expr) -> None:
        """Look at what the code does with ``node``."""
        parent, form = self.syntax.parents[node], self.form[node]
        match parent:
            case ast.BinOp(left=left, op=op, right=right):
                self._arithmetic(node, parent, op, right if node is left else left)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()) if form is Form.WHOLE:
                self._on(node, parent, Form.WHOLE)
            case ast.UnaryOp(op=ast.Not()) | ast.BoolOp() if form is Form.WHOLE and self.syntax.only_truth(parent):
                self.out.breaking.append(parent)
            case ast.Compare(left=left, comparators=[right]) if form is Form.WHOLE and self.syntax.only_truth(parent):
                self.waiting.append((node, right if node is left else left))
                self.out.breaking.append(parent)
            case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test) | ast.IfExp(test=test) if (
                test is node and form is Form.WHOLE
            ):
                self.out.breaking.append(node)
            case ast.IfExp(body=body, orelse=orelse) if form is Form.WHOLE:
                self.waiting.append((node, orelse if node is body else body))
            case ast.Tuple() | ast.List() if form is Form.WHOLE and isinstance(parent.ctx, ast.Load):
                self._on(node, parent, Form.PACK)
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=ast.Name() as target):
                self._bound(node, target)
            case ast.Return():
                self._returned(node)
            case ast.Slice() if form is Form.WHOLE:
                self.out.breaking.append(node)
            case ast.keyword(arg=name):
                call = self.syntax.parents[parent]
                assert isinstance(call, ast.Call)
                self._passed(node, call, name)
            case ast.Call(func=func, args=args) if node is not func:
                self._passed(node, parent, args.index(node))
            case ast.Attribute(attr=attr):
                self._method(node, parent, attr)
            case _:
                self._fault(node, "it is used as a tensor")

    def _arithmetic(self, node: ast.expr, parent: ast.BinOp, op: ast.operator, other: ast.expr) -> None:
        form = self.form[node]
        if form is Form.WHOLE and isinstance(op, _ARITHMETIC):
            self.waiting.append((node, other))
        elif form is Form.QUOTIENT and isinstance(op, (ast.Add, ast.Sub)) and _one(other) and node is parent.left:
            self._on(node, parent, Form.QUOTIENT)
        else:
            self._fault(node, f"`{ast.unparse(parent)}` is arithmetic of tensors")

    def _joined(self, node: ast.expr) -> None:
        parent = self.syntax.parents[node]
        if isinstance(parent, ast.BinOp):
            divides = isinstance(parent.op, ast.Div)
            self._on(node, parent, Form.QUOTIENT if divides else Form.WHOLE)
        elif isinstance(parent, (ast.Call, ast.IfExp)):
            self._on(node, parent, Form.WHOLE)

    def _bound(self, node: ast.expr, target: ast.expr) -> None:
        function = self.syntax.function_of(node)
        assert function is not None
        flow = self.flow.flow_of(function)
        form = self.form[node]
        if form is Form.QUOTIENT:
            self._quotient(node)
        names = target.elts if isinstance(target, ast.Tuple) and form is Form.PACK else [target]
        for name in names:
            d = flow.by_node.get(name)
            if not isinstance(name, ast.Name) or d is None or self._is_kept(flow, d):
                self._fault(node, f"`{ast.unparse(target)}` is kept")
                return
            self.definitions.add(d)
            for use in flow.uses.get(d, []):
                self.used.add(use)
                self._on(node, use, Form.WHOLE if form is Form.PACK and target is not name else form)

    def _is_kept(self, flow: Flow, d: Definition) -> bool:
        """Whether a nested function has the name, or a statement changes it in place, which changes the tensor."""
        return d.name in flow.captured or any(x.how == "augmented" and x.name == d.name for x in flow.by_node.values())

    def _quotient(self, node: ast.expr) -> None:
        if isinstance(node, (ast.Name, ast.Call)) or any(q.expr is node for q in self.out.quotients):
            return
        if node in self.given:
            self._fault(node, "other callers may pass other things")
        inner = node
        while isinstance(inner, ast.BinOp) and not isinstance(inner.op, ast.Div):
            inner = inner.left
        assert isinstance(inner, ast.BinOp)
        if not (self._surely_tensor(inner.left) and self._surely_tensor(inner.right)):
            self._fault(node, "PyTorch may divide a number by a tensor, and a tensor by a number, as a product")
            return
        for part in self._parts(node):
            if reason := self.flow.unchanged.why_impure(part):
                self._fault(node, f"the quotient is written once more, and {reason}")
                return
        self.out.quotients.append(Quotient(node, inner.left, inner.right))

    def _parts(self, e: ast.expr) -> list[ast.expr]:
        """What ``e`` is computed of, by arithmetic of integers and such tensors, which does nothing else."""
        if isinstance(e, ast.BinOp) and e in self.form:
            return [*self._parts(e.left), *self._parts(e.right)]
        return [e]

    def _surely_tensor(self, e: ast.expr, depth: int = 12) -> bool:
        """Whether ``e`` is a tensor in the code as it is, whatever happens."""
        if depth == 0 or e not in self.form:
            return False
        match e:
            case ast.Attribute():
                return e in self.out.reads
            case ast.BinOp(left=left, right=right):
                return self._surely_tensor(left, depth - 1) or self._surely_tensor(right, depth - 1)
            case ast.UnaryOp(operand=operand):
                return self._surely_tensor(operand, depth - 1)
            case ast.Name():
                found = self.flow.inference.definitions(e)
                values = [d.value for d in found if d.how == "assign" and not d.path and d.value is not None]
                return len(values) == len(found) and all(self._surely_tensor(v, depth - 1) for v in values)
        return False

    def _returned(self, node: ast.expr) -> None:
        function = self.syntax.function_of(node)
        assert function is not None
        cls = self.flow.cls
        callers = self.flow.callers(function) if cls is not None and function in cls.body else None
        if callers is None or self.form[node] is not Form.WHOLE:
            self._fault(node, f"`{function.name}` gives it to callers that are not known")
            return
        for call in callers:
            method = self.syntax.method_of(call)
            if method is None or method.name == "__init__":
                self._fault(node, f"`{function.name}` is called while the module is made")
                return
            self._on(node, call, Form.WHOLE)

    def _passed(self, node: ast.expr, call: ast.Call, at: int | str | None) -> None:
        form, func = self.form[node], call.func
        what = self.syntax.qualified(func) or ""
        if isinstance(func, ast.Name) and self.syntax.is_builtin(func) and form is Form.WHOLE:
            others = [a for a in call.args if a is not node]
            if func.id in ("max", "min") and len(others) == 1 and not call.keywords:
                self.waiting.append((node, others[0]))
                self.out.breaking.append(call)
                return
            if func.id in ("int", "range"):
                self.out.breaking.append(call)
                return
            if func.id == "abs":
                self._on(node, call, Form.WHOLE)
                return
        if form is Form.QUOTIENT and self._reads_float(func, what) and call.args == [node] and not call.keywords:
            self._quotient(node)
            self.out.breaking.append(call)
            return
        last = what.rpartition(".")[2]
        if what in ("torch.ceil", "torch.floor") and form is Form.QUOTIENT and at == 0 and len(call.args) == 1:
            self._rounded(node, call, _ROUNDING[last])
        elif self._is_size(form, func, what, at):
            self.out.breaking.append(node)
        elif (method := self.flow.own_method(func)) is not None and form in (Form.WHOLE, Form.PACK):
            self._into(node, method, at)
        else:
            self._fault(node, f"it is passed to `{ast.unparse(func)}`")

    def _reads_float(self, func: ast.expr, what: str) -> bool:
        """Whether ``func`` makes an integer of a float, or of a tensor that holds one."""
        truncates = isinstance(func, ast.Name) and func.id == "int" and self.syntax.is_builtin(func)
        return truncates or what in ("math.ceil", "math.floor")

    def _is_size(self, form: Form, func: ast.expr, what: str, at: int | str | None) -> bool:
        """Whether the argument of ``func`` at that place is a size, which PyTorch reads if it is a tensor."""
        if what == _PADDING:
            return form is Form.PACK and at in (1, "pad")
        if not isinstance(at, int) or form not in (Form.WHOLE, Form.PACK):
            return False
        if isinstance(func, ast.Attribute) and func.attr in _SIZED_METHODS:
            return self.flow.inference.of(func.value).is_tensor
        return what in _SIZED_FUNCTIONS

    def _into(self, node: ast.expr, method: FunctionNode, at: int | str | None) -> None:
        bound = isinstance(self.syntax.parents[method], ast.ClassDef) and not method.decorator_list
        argument = parameter_at(method, at, bound)
        call = self.syntax.parents[node]
        starred = isinstance(call, ast.Call) and any(isinstance(a, ast.Starred) for a in call.args)
        flow = self.flow.flow_of(method)
        d = flow.by_node.get(argument) if argument is not None else None
        if d is None or starred or self._is_kept(flow, d):
            self._fault(node, f"it is passed to `{method.name}`")
            return
        self.definitions.add(d)
        for use in flow.uses.get(d, []):
            self.used.add(use)
            self._mark(use, self.form[node], self.origin[node], given=True)

    def _method(self, node: ast.expr, parent: ast.Attribute, attr: str) -> None:
        """``node.attr``, called or not."""
        call, form = self.syntax.parents[parent], self.form[node]
        if isinstance(call, ast.Call) and call.func is parent:
            if attr in _ROUNDING and form is Form.QUOTIENT and not call.args and not call.keywords:
                self._rounded(node, call, _ROUNDING[attr])
                return
            if attr == "item" and form is Form.WHOLE and not call.args and node not in self.given:
                self.out.items.append(call)
                self.out.breaking.append(call)
                return
        self._fault(node, f"`.{attr}` is asked of the tensor")

    def _rounded(self, node: ast.expr, call: ast.Call, how: str) -> None:
        """``call`` rounds ``node``: it has to become an integer at once."""
        whole = self._converted(call)
        if whole is None or node in self.given or (isinstance(node, ast.Name) and self._elsewhere(node)):
            self._fault(node, "the rounded quotient is used as a tensor of floats")
            return
        self._quotient(node)
        self.out.roundings.append(Rounding(whole, node, how))
        if isinstance(whole.func, ast.Name):  # int(...) is a number as it is
            self.out.breaking.append(whole)
        else:
            self._on(node, whole, Form.WHOLE)

    def _elsewhere(self, name: ast.Name) -> bool:
        """Whether something that is no quotient reaches ``name``."""
        return any(d not in self.definitions for d in self.flow.inference.definitions(name))

    def _converted(self, call: ast.Call) -> ast.Call | None:
        """``call`` together with the conversion to integers around it."""
        parent = self.syntax.parents[call]
        if isinstance(parent, ast.Call) and ast.unparse(parent.func) == "int" and parent.args == [call]:
            return parent
        outer = self.syntax.parents[parent] if isinstance(parent, ast.Attribute) else None
        if not (isinstance(outer, ast.Call) and outer.func is parent and isinstance(parent, ast.Attribute)):
            return None
        if parent.attr == "long" and not outer.args and not outer.keywords:
            return outer
        given = [*outer.args, *(k.value for k in outer.keywords if k.arg == "dtype")]
        if parent.attr in ("to", "type") and len(given) == 1 and len(outer.args) + len(outer.keywords) == 1:
            return outer if self.syntax.qualified(given[0]) in INT64 else None
        return None


def _one(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and type(e.value) is int and abs(e.value) <= 1
