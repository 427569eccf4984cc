"""Where the number in a 0-d tensor goes: whether it is used as a size and as nothing else."""

from __future__ import annotations

import ast
from enum import Enum

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition, Flow
from patcher.facts.syntax.classes import parameter_at
from patcher.facts.syntax.tree import FunctionNode, dotted, methods_of
from patcher.facts.values.sizes import Sizes

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.ClassDef, ast.Module)
#: Methods that take sizes and nothing else; and functions. With a 0-d tensor among the sizes, each reads it.
_SIZED_METHODS = frozenset("view reshape expand repeat new_zeros new_ones new_empty unfold".split())
_SIZED_FUNCTIONS = frozenset({"torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn", "torch.arange"})
_PADDING = "torch.nn.functional.pad"


class Form(Enum):
    """What an expression that the number went into is."""

    WHOLE = "0-d tensor of integers"
    PACK = "a tuple of integers and such tensors"


def is_size(facts: Facts, read: ast.expr) -> bool:
    """Whether all uses of the 0-d tensor ``read`` are sizes, one of which makes the host read it."""
    if facts.syntax.function_of(read) is None:
        return False
    spread = _Spread(NumberFlow(facts, facts.syntax.class_of(read)), read)
    return spread.breaking and not spread.faulty


class NumberFlow(Analysis):
    """Whose methods a number in a tensor goes through, in one class or outside of all."""

    def __init__(self, facts: Facts, cls: ast.ClassDef | None) -> None:
        super().__init__(facts)
        self.cls = cls
        self.name = (facts.qualname(cls) or cls.name) if cls is not None else facts.module
        self.sizes = facts.ask(Sizes)

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
    """What the number in ``read`` goes into. ``breaking``: the host reads it; ``faulty``: for more than a size."""

    def __init__(self, flow: NumberFlow, read: ast.expr) -> None:
        self.flow = flow
        self.syntax = flow.syntax
        self.breaking = self.faulty = False
        self.form: dict[ast.AST, Form] = {}
        self.definitions: set[Definition] = set()
        self.waiting: list[tuple[ast.expr, ast.expr]] = []
        self.used: set[ast.Name] = set()
        self._work: list[ast.expr] = []
        self._mark(read, Form.WHOLE)
        self._run()

    def _run(self) -> None:
        while (self._work or self.waiting) and not self.faulty:
            while self._work and not self.faulty:
                self._follow(self._work.pop())
            ready = [pair for pair in self.waiting if self._whole(pair[1])]
            self.faulty = self.faulty or (bool(self.waiting) and not ready)
            self.waiting = [pair for pair in self.waiting if pair not in ready]
            for node, _ in ready:
                self._joined(node)
        others = {d for name in self.used for d in self.flow.inference.definitions(name)} - self.definitions
        whole = (d.value is not None and not d.path and self.flow.sizes.is_integer(d.value) for d in others)
        self.faulty = self.faulty or not all(whole)

    def _mark(self, node: ast.expr, form: Form) -> None:
        if node in self.form:
            self.faulty = self.faulty or self.form[node] is not form
            return
        self.form[node] = form
        self._work.append(node)

    def _whole(self, e: ast.expr) -> bool:
        return self.form.get(e) is Form.WHOLE or (e not in self.form and self.flow.sizes.is_integer(e))

    # --- one step ---------------------------------------------------------------------------------------------------

    def _follow(self, node: ast.expr) -> None:
        """Look at what the code does with ``node``."""
        parent, form = self.syntax.parents[node], self.form[node]
        match parent:
            case ast.BinOp(left=left, op=op, right=right) if form is Form.WHOLE and isinstance(op, _ARITHMETIC):
                self.waiting.append((node, right if node is left else left))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()) if form is Form.WHOLE:
                self._mark(parent, Form.WHOLE)
            case ast.UnaryOp(op=ast.Not()) | ast.BoolOp() if form is Form.WHOLE and self.syntax.only_truth(parent):
                self.breaking = True
            case ast.Compare(left=left, comparators=[right]) if form is Form.WHOLE and self.syntax.only_truth(parent):
                self.waiting.append((node, right if node is left else left))
                self.breaking = True
            case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test) | ast.IfExp(test=test) if (
                test is node and form is Form.WHOLE
            ):
                self.breaking = True
            case ast.IfExp(body=body, orelse=orelse) if form is Form.WHOLE:
                self.waiting.append((node, orelse if node is body else body))
            case ast.Tuple() | ast.List() if form is Form.WHOLE and isinstance(parent.ctx, ast.Load):
                self._mark(parent, Form.PACK)
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=ast.Name() as target):
                self._bound(node, target)
            case ast.Return():
                self._returned(node)
            case ast.Slice() if form is Form.WHOLE:
                self.breaking = True
            case ast.keyword(arg=name):
                call = self.syntax.parents[parent]
                assert isinstance(call, ast.Call)
                self._passed(node, call, name)
            case ast.Call(func=func, args=args) if node is not func:
                self._passed(node, parent, args.index(node))
            case _:
                self.faulty = True

    def _joined(self, node: ast.expr) -> None:
        parent = self.syntax.parents[node]
        if isinstance(parent, (ast.BinOp, ast.Call, ast.IfExp)):
            self._mark(parent, Form.WHOLE)

    def _bound(self, node: ast.expr, target: ast.expr) -> None:
        function = self.syntax.function_of(node)
        assert function is not None
        flow = self.flow.flow_of(function)
        form = self.form[node]
        names = target.elts if isinstance(target, ast.Tuple) and form is Form.PACK else [target]
        for name in names:
            d = flow.by_node.get(name)
            if not isinstance(name, ast.Name) or d is None or self._is_kept(flow, d):
                self.faulty = True
                return
            self.definitions.add(d)
            for use in flow.uses.get(d, []):
                self.used.add(use)
                self._mark(use, Form.WHOLE if form is Form.PACK and target is not name else form)

    def _is_kept(self, flow: Flow, d: Definition) -> bool:
        """Whether a nested function has the name, or a statement changes it in place, which changes the tensor."""
        return d.name in flow.captured or any(x.how == "augmented" and x.name == d.name for x in flow.by_node.values())

    def _returned(self, node: ast.expr) -> None:
        function = self.syntax.function_of(node)
        assert function is not None
        cls = self.flow.cls
        callers = self.flow.callers(function) if cls is not None and function in cls.body else None
        if callers is None or self.form[node] is not Form.WHOLE:
            self.faulty = True
            return
        for call in callers:
            method = self.syntax.method_of(call)
            if method is None or method.name == "__init__":
                self.faulty = True
                return
            self._mark(call, Form.WHOLE)

    def _passed(self, node: ast.expr, call: ast.Call, at: int | str | None) -> None:
        form, func = self.form[node], call.func
        what = self.syntax.qualified(func) or ""
        if isinstance(func, ast.Name) and self.syntax.is_builtin(func) and form is Form.WHOLE:
            others = [a for a in call.args if a is not node]
            if func.id in ("max", "min") and len(others) == 1 and not call.keywords:
                self.waiting.append((node, others[0]))
                self.breaking = True
                return
            if func.id in ("int", "range"):
                self.breaking = True
                return
            if func.id == "abs":
                self._mark(call, Form.WHOLE)
                return
        if self._is_size(form, func, what, at):
            self.breaking = True
        elif (method := self.flow.own_method(func)) is not None and form in (Form.WHOLE, Form.PACK):
            self._into(node, method, at)
        else:
            self.faulty = True

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
            self.faulty = True
            return
        self.definitions.add(d)
        for use in flow.uses.get(d, []):
            self.used.add(use)
            self._mark(use, self.form[node])
