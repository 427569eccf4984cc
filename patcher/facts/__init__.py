"""The only place where meaning is worked out. Rules ask ``Facts``; what it cannot tell, it calls unknown."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar, cast

from patcher.facts.effects.eager_tests import EagerTests
from patcher.facts.effects.writing import Writing
from patcher.facts.flow.definitions import Flow
from patcher.facts.project.index import Project
from patcher.facts.project.threads import runs_elsewhere
from patcher.facts.syntax.classes import ClassFacts
from patcher.facts.syntax.comments import Comments
from patcher.facts.syntax.packages import module_name
from patcher.facts.syntax.tree import FunctionNode, Syntax, methods_of
from patcher.facts.tables import torch_api as api
from patcher.facts.values.inference import Inference
from patcher.facts.values.presumed import Presumed
from patcher.facts.values.sizes import Sizes
from patcher.facts.values.types import Value
from patcher.settings import Settings

T = TypeVar("T")

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: What compiles a function, or the methods of a class, to TorchScript.
_SCRIPTS = frozenset({"torch.jit.script", "torch.jit.script_method", "torch.jit.script_if_tracing"})
#: What may keep compiled code from a part of it.
_DECIDING = (ast.If, ast.IfExp, ast.BoolOp, *_FUNCTIONS)


class Facts:
    """Everything that rules may ask about one module. Answers are worked out when asked for, and kept.

    ``settings``: what the user chose. ``active``: the codes of the rules that take part in the run. ``silenced``:
    whether a comment, or the choice of units, silences the rule of that code at a statement. ``line_length``: of the
    lines that a fix writes, in characters. ``text``: what the tree was read from, for its comments.
    """

    def __init__(
        self,
        tree: ast.Module,
        path: str,
        project: Project,
        settings: Settings,
        active: frozenset[str],
        silenced: Callable[[str, ast.stmt], bool] = lambda *_: False,
        line_length: int = 119,
        text: str = "",
    ) -> None:
        self.path = path
        self.comments = Comments(text)
        self.line_length = line_length
        self.module, package = module_name(path)
        self.syntax = Syntax(tree, package)
        self.project = project
        self.settings = settings
        self.active = active
        self._silenced = silenced
        self._flows: dict[FunctionNode, Flow] = {}
        self._classes: dict[ast.ClassDef, ClassFacts] = {}
        self._reached: dict[FunctionNode, bool] = {}
        self._shown: set[FunctionNode] = set()  # by a run
        self._eager: dict[ast.AST, bool] = {}
        self._asked: dict[Callable[[Facts], object], object] = {}
        about = self.syntax, self.flow, self.class_facts, project, self.module, settings.observed.of(text)
        self.inference, self.presumed = Inference(*about), Presumed(*about)
        self.eager_tests = EagerTests(self.syntax, project, self.module)
        self.writing = Writing(self)

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

    def silenced(self, code: str, statement: ast.stmt) -> bool:
        """Whether the rule ``code`` is to say nothing about ``statement``."""
        return self._silenced(code, statement)

    def qualname(self, node: FunctionNode | ast.ClassDef) -> str | None:
        """``module.Class.method``; None for a function that stands directly in another one."""
        name = self.syntax.qualname(node)
        return None if name is None else f"{self.module}.{name}"

    def is_module_class(self, cls: ast.ClassDef) -> bool:
        """Whether ``cls`` derives from nn.Module."""
        return self.project.is_module_class(self.qualname(cls) or cls.name)

    def compiled(self, node: ast.AST) -> bool:
        """Whether ``node`` is reached and not left to eager execution."""
        return self.reached(node) and not self.eager_only(node)

    def reached(self, node: ast.AST) -> bool:
        """Whether ``node`` runs inside of a module's forward or of another compiled callable.

        A run may have shown it where the source does not: what is called by a name that is put together, say.
        """
        function = node if isinstance(node, _FUNCTIONS) else self.syntax.function_of(node)
        if function is None:
            return False
        known = self._reached.get(function)
        if known is None:
            name = self.qualname(function)
            outer = self.syntax.function_of(function)
            known = self.project.reached(name) if name is not None else outer is not None and self.reached(outer)
            known = known and not (name is None and runs_elsewhere(function, self.syntax))
            if not known and (self.path, self.syntax.scope_of(function)) in self.settings.traced:
                self._shown.add(function)
                known = True
            self._reached[function] = known
        return known

    def only_shown(self, node: ast.AST) -> bool:
        """Whether it is a run alone that tells that ``node`` is reached: who calls its function is not known."""
        function = node if isinstance(node, _FUNCTIONS) else self.syntax.function_of(node)
        return function is not None and self.reached(function) and function in self._shown

    def is_dead(self, node: ast.AST) -> bool:
        """Whether ``node`` stands where its function never gets to: below a ``return``, say."""
        function, child = self.syntax.function_of(node), node
        while function is not None and child is not function:
            parent = self.syntax.parents[child]
            if isinstance(child, ast.stmt) and not isinstance(parent, ast.ClassDef):
                if child not in self.flow(function).reached:
                    return True
            elif isinstance(parent, ast.ClassDef):
                return False  # its body belongs to no flow
            child = parent
        return False

    def may_be_used_in_graph(self, cls: ast.ClassDef) -> bool:
        """Whether compiled code calls a method of ``cls``, or one of that name on an object that may be of ``cls``."""
        methods = methods_of(cls)
        if any(self.reached(m) for m in methods):
            return True
        named = [m.name for m in methods if not m.name.startswith("__")]
        return not self.is_module_class(cls) and any(self.project.called_by_name(n, self.module) for n in named)

    # --- meaning ----------------------------------------------------------------------------------------------------

    def value(self, expr: ast.expr) -> Value:
        """What ``expr`` holds where it stands."""
        return self.inference.of(expr)

    def eager_only(self, node: ast.AST) -> bool:
        """Whether ``node`` stands under a test that compiled code never passes (``not is_compiling()``, tracing)."""
        path: list[ast.AST] = []
        child, found = node, False
        for parent in self.syntax.ancestors(node):
            if child in self._eager:
                found = self._eager[child]
                break
            path.append(child)
            if isinstance(parent, _DECIDING) and (
                self.eager_tests.is_left_out(child, parent)
                or self.is_disabled(parent)
                or self._is_for_tensors(child, parent)
            ):
                found = True
                break
            child = parent
        self._eager.update(dict.fromkeys(path, found))
        return found

    def _is_for_tensors(self, child: ast.AST, parent: ast.AST) -> bool:
        """Whether ``child`` runs only where a number would be a tensor."""
        return isinstance(parent, ast.If) and child in parent.body and self.ask(Sizes).is_no_tensor(parent.test)

    def compiled_only(self, node: ast.AST) -> bool:
        """Whether ``node`` stands under a test in its function that eager code never passes."""
        child = node
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, _FUNCTIONS):
                return False
            if isinstance(parent, (ast.If, ast.IfExp)) and child is not parent.test:
                inside = child in parent.body if isinstance(parent, ast.If) else child is parent.body
                if self.eager_tests.leaves_eager_out(parent.test, inside):
                    return True
            child = parent
        return False

    @cached_property
    def scripted(self) -> bool:
        """Whether this file compiles to TorchScript, which knows neither all of Python nor functions left out."""
        named = (n for kind in (ast.Name, ast.Attribute) for n in self.syntax.by_type[kind])
        return any((self.syntax.qualified(n) or "").startswith("torch.jit.script") for n in named)

    def is_disabled(self, node: ast.AST) -> bool:
        """Whether ``node`` is a function that is never compiled."""
        found = map(self.syntax.qualified, self.syntax.wrappers(node)) if isinstance(node, _FUNCTIONS) else ()
        return any(what in api.OPAQUE for what in found)

    def is_scripted(self, node: ast.AST) -> bool:
        """Whether ``node`` is in a function that is compiled to TorchScript, too; Dynamo looks into it all the same."""
        around = (n for n in (node, *self.syntax.ancestors(node)) if isinstance(n, (*_FUNCTIONS, ast.ClassDef)))
        return any(self.syntax.qualified(w) in _SCRIPTS for a in around for w in self.syntax.wrappers(a))
