"""The only place where meaning is worked out. Rules ask ``Facts``; what it cannot tell, it calls unknown."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from patcher.facts import host_api
from patcher.facts import torch_api as api
from patcher.facts.classes import ClassFacts
from patcher.facts.eager_tests import EagerTests
from patcher.facts.flow import Flow
from patcher.facts.infer import Inference
from patcher.facts.presumed import Presumed
from patcher.facts.project import Project, module_name
from patcher.facts.steadiness import dynamic_names, may_be
from patcher.facts.syntax import FunctionNode, Syntax
from patcher.facts.values import Value
from patcher.settings import Settings

T = TypeVar("T")

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Facts:
    """Everything that rules may ask about one module. Answers are worked out when asked for, and kept.

    ``settings``: what the user chose. ``active``: the codes of the rules that take part in the run. ``silenced``:
    whether a comment, or the choice of units, silences the rule of that code and name at a statement of a scope.
    """

    def __init__(
        self,
        tree: ast.Module,
        path: str,
        project: Project,
        settings: Settings,
        active: frozenset[str],
        silenced: Callable[[str, str, ast.stmt, str], bool] = lambda *_: False,
    ) -> None:
        self.path = path
        self.module, package = module_name(path)
        self.syntax = Syntax(tree, package)
        self.project = project
        self.settings = settings
        self.active = active
        self._silenced = silenced
        self._flows: dict[FunctionNode, Flow] = {}
        self._classes: dict[ast.ClassDef, ClassFacts] = {}
        self._asked: dict[Callable[[Facts], object], object] = {}
        self._taken: dict[ast.AST, set[str]] = {}
        self.inference = Inference(self.syntax, self.flow, self.class_facts, project, self.module)
        self.presumed = Presumed(self.syntax, self.flow, self.class_facts, project, self.module)
        self.eager_tests = EagerTests(self.syntax, project, self.module)

    def ask(self, analysis: Callable[[Facts], T]) -> T:
        """The one instance of ``analysis`` for this module, made when first asked for and kept."""
        if analysis not in self._asked:
            self._asked[analysis] = analysis(self)
        return cast(T, self._asked[analysis])

    # --- structure --------------------------------------------------------------------------------------------------

    def flow(self, function: FunctionNode) -> Flow:
        """Reaching definitions of ``function``."""
        if function not in self._flows:
            self._flows[function] = Flow(function)
        return self._flows[function]

    def class_facts(self, cls: ast.ClassDef) -> ClassFacts:
        """Methods and attribute assignments of ``cls``."""
        if cls not in self._classes:
            self._classes[cls] = ClassFacts(cls, self.syntax)
        return self._classes[cls]

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The function whose body holds ``node``."""
        return self.syntax.function_of(node)

    def silenced(self, code: str, name: str, statement: ast.stmt) -> bool:
        """Whether the rule ``code``/``name`` is to say nothing about ``statement``."""
        return self._silenced(code, name, statement, self.syntax.scope_of(statement))

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The statement that holds ``node``."""
        return self.syntax.statement_of(node)

    def qualified(self, expr: ast.AST) -> str | None:
        """The dotted thing that ``expr`` is through the imports: ``F.relu`` is "torch.nn.functional.relu"."""
        return self.syntax.qualified(expr)

    def qualname(self, node: FunctionNode | ast.ClassDef) -> str | None:
        """``module.Class.method``; None for a function that stands directly in another one."""
        name = self.syntax.qualname(node)
        return None if name is None else f"{self.module}.{name}"

    def is_module_class(self, cls: ast.ClassDef) -> bool:
        """Whether ``cls`` derives from nn.Module."""
        return self.project.is_module_class(self.qualname(cls) or cls.name)

    def reached(self, node: ast.AST) -> bool:
        """Whether ``node`` runs inside of a module's forward or of another compiled callable."""
        function = node if isinstance(node, _FUNCTIONS) else self.function_of(node)
        while function is not None:
            name = self.qualname(function)
            if name is not None:
                return self.project.reached(name)
            function = self.function_of(function)
        return False

    def may_be_used_in_graph(self, cls: ast.ClassDef) -> bool:
        """Whether compiled code calls a method of ``cls``, or one of that name on an object that may be of ``cls``."""
        methods = [s for s in cls.body if isinstance(s, _FUNCTIONS)]
        if any(self.reached(m) for m in methods):
            return True
        named = [m.name for m in methods if not m.name.startswith("__")]
        return not self.is_module_class(cls) and any(self.project.called_by_name(n, self.module) for n in named)

    # --- meaning ----------------------------------------------------------------------------------------------------

    def value(self, expr: ast.expr) -> Value:
        """What ``expr`` holds where it stands."""
        return self.inference.of(expr)

    def same_expression(self, a: ast.AST, b: ast.AST) -> bool:
        """Whether two expressions are written alike (positions and load/store aside)."""
        return _dump(a) == _dump(b)

    def grad_off(self, node: ast.AST) -> bool:
        """Whether no gradient can be recorded at ``node``: the innermost context or decorator that says so decides."""
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, (ast.With, ast.AsyncWith)):
                for item in reversed(parent.items):
                    if (off := self._switches_grad_off(item.context_expr)) is not None:
                        return off
            elif isinstance(parent, _FUNCTIONS):
                found = [self._switches_grad_off(d) for d in parent.decorator_list]
                decided = [off for off in found if off is not None]
                if decided and isinstance(parent, ast.FunctionDef):
                    return decided[-1]
                return False  # where a function stands says nothing about where it is called
            elif isinstance(parent, ast.Lambda):
                return False
        return False

    def _switches_grad_off(self, e: ast.expr) -> bool | None:
        """True or False for a context or decorator that switches gradients off or on; None for any other."""
        call = e if isinstance(e, ast.Call) else None
        what = self.qualified(call.func if call is not None else e)
        arguments = [*call.args, *(k.value for k in call.keywords)] if call is not None else []
        if what in api.GRAD_OFF and not arguments:
            return True
        if what in api.GRAD_OFF or what == "torch.set_grad_enabled":
            flag = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else None
            return flag is not None and bool(flag) is (what in api.GRAD_OFF)
        return False if what == "torch.enable_grad" else None

    def eager_only(self, node: ast.AST) -> bool:
        """Whether ``node`` stands under a test that compiled code never passes (``not is_compiling()``, tracing)."""
        child = node
        for parent in self.syntax.ancestors(node):
            if self.eager_tests.is_left_out(child, parent):
                return True
            if isinstance(parent, _FUNCTIONS):
                for d in parent.decorator_list:
                    if self.qualified(d.func if isinstance(d, ast.Call) else d) in api.DISABLE | {"torch.jit.script"}:
                        return True
            child = parent
        return False

    # --- for writing new code ---------------------------------------------------------------------------------------

    def spelled(self, what: str, at: ast.AST) -> str | None:
        """How ``what`` ("torch.where") is written at ``at`` with the imports that are there; None without any."""
        best: str | None = None
        for name, stands_for in self.syntax.runtime_imports.items():
            if what == stands_for or what.startswith(stands_for + "."):
                if self._shadowed(name, at):
                    continue
                text = name + what[len(stands_for) :]
                if best is None or (stands_for == "torch", -len(text)) > (best.startswith("torch."), -len(best)):
                    best = text
        for name, stands_for in self.syntax.imports_above(at):
            if best is None and (what == stands_for or what.startswith(stands_for + ".")):
                best = name + what[len(stands_for) :]
        return best

    def why_not_replaced(self, statement: ast.stmt, imports: Sequence[str]) -> str | None:
        """None when other statements can stand in the place of this one, with ``imports`` at the top of the module."""
        if not all(self.importable(name, statement) for name in imports):
            return "`torch` is not imported here, or is another name"
        if not self.syntax.alone(statement):
            return "the line holds more than this statement"
        if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in ast.walk(statement)):
            return "the statement binds names inside of expressions"
        return None

    def why_not_removed(self, statement: ast.stmt) -> str:
        """What keeps ``statement`` from being taken out, with nothing in its place; "" when nothing does."""
        if not self.syntax.alone(statement):
            return "the line holds more than this statement"
        return "" if len(self.syntax.block_of(statement)) > 1 else "its block would be empty"

    def importable(self, name: str, at: ast.AST) -> bool:
        """Whether ``import name`` at the top of the module would make ``name`` known at ``at``, and change nothing.

        A module that imports nothing of the package may be used where the package is not installed.
        """
        if not any(what.partition(".")[0] == name for what in self.syntax.runtime_imports.values()):
            return False
        other = self.syntax.imports.get(name, name) != name
        return not other and not self._shadowed(name, at) and name not in self.syntax.names_in(self.syntax.tree)

    def _shadowed(self, name: str, at: ast.AST) -> bool:
        return any(
            self.syntax.binds(scope, name) or self.syntax.imports_locally(scope, name)
            for scope in [at, *self.syntax.ancestors(at)]
            if isinstance(scope, (*_FUNCTIONS, ast.Lambda, ast.Module))
        )

    def fresh_name(self, wish: str, at: ast.AST) -> str:
        """``wish``, with a number when the function or its class uses that name already. Not given out twice."""
        scope: ast.AST = self.syntax.class_of(at) or self.function_of(at) or self.syntax.tree
        if scope not in self._taken:
            self._taken[scope] = self.syntax.names_in(scope)
        taken, name, n = self._taken[scope], wish, 2
        while name in taken:
            name, n = f"{wish}_{n}", n + 1
        taken.add(name)
        return name

    def fresh_attribute(self, wish: str, cls: ast.ClassDef) -> str:
        """``wish``, with a number when an instance of ``cls`` or of a class above or below may have that name."""
        project = self.project
        family, _ = project.family(self.qualname(cls) or cls.name)
        taken = host_api.MODULE_PRIVATE | project.foreign_stores | {d[1:] for d in project.doubts if d.startswith("?")}
        for owner in family:
            summary = project.known_class(owner)
            assert summary is not None
            taken |= summary.methods | summary.stores | summary.init_stores
            for method in summary.methods:
                function = project.function(f"{owner}.{method}")
                taken |= {m[5:] for m in function.mentions if m.startswith("self.")} if function is not None else set()
        taken |= {str(n.value) for n in self.syntax.by_type[ast.Constant] if isinstance(n, ast.Constant)}
        name, n = wish, 2
        while n < 9 and (name in taken or any(may_be(pattern, name) for pattern in dynamic_names(cls))):
            name, n = f"{wish}_{n}", n + 1
        return self.fresh_name(name, cls.body[0])

    def strategy(self, key: str) -> str:
        """What the user chose for ``key``; "auto" when nothing."""
        return self.settings.strategies.get(key, "auto")


def _dump(node: ast.AST) -> str:
    return ast.dump(node).replace("ctx=Store()", "ctx=Load()").replace("ctx=Del()", "ctx=Load()")
