"""Where gradients are switched off, for sure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tables import call_effects as tables
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Decorators that call the function in the mode that they are called in.
_PASSING = frozenset(
    "staticmethod classmethod property functools.lru_cache functools.cache functools.cached_property functools.wraps "
    "typing.overload typing.no_type_check abc.abstractmethod torch.compile torch.compiler.disable torch.jit.ignore "
    "torch.jit.unused torch.jit.export torch._dynamo.disable torch.autocast torch.amp.autocast".split()
)


class GradientMode(Analysis):
    """What contexts, decorators and calls say of a place."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._decorated: dict[FunctionNode, bool] = {}

    def off(self, node: ast.AST) -> bool:
        """Whether no gradient can be recorded at ``node``: the innermost context or decorator that says so decides.

        Between it and ``node`` stands nothing that may switch gradients on again: no context or decorator that is not
        known, no call of code of the project that does. A generator goes on in the mode of whoever asks it.
        """
        child = node
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, ast.GeneratorExp) and child is not parent.generators[0]:
                return False
            if isinstance(parent, (ast.With, ast.AsyncWith)):
                for item in reversed(parent.items):
                    if (off := self._said_by(item.context_expr, tables.QUIET_CONTEXTS)) is not None:
                        return off and not self._switched_on_in(parent) and not _is_left(parent)
            elif isinstance(parent, _FUNCTIONS):
                if parent not in self._decorated:
                    self._decorated[parent] = isinstance(parent, ast.FunctionDef) and self._by_decorators(parent)
                return self._decorated[parent]  # where a function stands says nothing about where it is called
            elif isinstance(parent, ast.Lambda):
                return False
            child = parent
        return False

    def may_be_off(self, node: ast.AST) -> bool:
        """Whether no gradient may be recorded at ``node``, for all that contexts of its function say of it."""
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, (*_FUNCTIONS, ast.Lambda)):
                break
            if isinstance(parent, (ast.With, ast.AsyncWith)) and any(self._may_switch_off(i) for i in parent.items):
                return True
        return self.off(node)

    def _may_switch_off(self, item: ast.withitem) -> bool:
        if self._said_by(item.context_expr, tables.QUIET_CONTEXTS) is not False:
            return False
        call = item.context_expr
        func = call.func if isinstance(call, ast.Call) else call
        what = self.syntax.qualified(func)
        given = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []
        constant = bool(given) and isinstance(given[0], ast.Constant)
        return what != "torch.enable_grad" and not (constant and (what or "").startswith("torch."))

    def why_saved_changes(self, e: ast.expr, node: ast.AST, by_calls: bool = True) -> str:
        """What writes, after ``node``, into what ``e`` gives, where a backward pass may need that as it was; or "".

        ``by_calls``: also calls of code that is not read, which may write.
        """
        return "" if self.off(node) else self.facts.ask(Unchanged).why_written_later(e, node, by_calls)

    def changes_between(self, made: ast.AST, node: ast.AST) -> bool:
        """Whether gradients may be recorded where ``made`` stands and not at ``node``, of one function, or vice versa.

        A parameter is made by the caller, in the mode that decorators may change.
        """
        return self._around(made) != self._around(node)

    def _around(self, node: ast.AST) -> list[ast.AST]:
        """The contexts and decorators around ``node`` that may decide whether gradients are recorded."""
        found: list[ast.AST] = []
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, (ast.With, ast.AsyncWith)):
                said = (self._said_by(i.context_expr, tables.QUIET_CONTEXTS) for i in parent.items)
                found += [parent] if any(off is not None for off in said) else []
            elif isinstance(parent, _FUNCTIONS):
                said = (self._said_by(d, _PASSING) for d in parent.decorator_list)
                deciding = not isinstance(node, ast.arg) and any(off is not None for off in said)
                return [*found, parent] if deciding else found
        return found

    def in_inference_mode(self, node: ast.AST) -> bool:
        """Whether a context or decorator around ``node`` makes its tensors such as cannot be changed outside of it."""
        entered = (e.func if isinstance(e, ast.Call) else e for e in self._entered(node))
        return any(self.syntax.qualified(e) == "torch.inference_mode" for e in entered)

    def may_be_in_inference_mode(self, node: ast.AST) -> bool:
        """Whether a context or decorator around ``node`` speaks of inference mode, in whatever form."""
        parts = (n for e in self._entered(node) for n in self.syntax.subtree(e))
        named = (n for n in parts if isinstance(n, (ast.Name, ast.Attribute)))
        return any(self.syntax.qualified(n) == "torch.inference_mode" for n in named)

    def _entered(self, node: ast.AST) -> Iterator[ast.expr]:
        """The contexts and decorators around ``node``."""
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, (ast.With, ast.AsyncWith)):
                yield from (item.context_expr for item in parent.items)
            elif isinstance(parent, _FUNCTIONS):
                yield from parent.decorator_list

    def _by_decorators(self, function: FunctionNode) -> bool:
        for decorator in reversed(function.decorator_list):
            if (off := self._said_by(decorator, _PASSING)) is not None:
                unwrapped = function.name in self.project.unwrapped
                return off and not unwrapped and not self._switched_on_in(function)
        return False

    def _said_by(self, e: ast.expr, quiet: frozenset[str]) -> bool | None:
        """True or False for what switches gradients off, or on, or may do so; None for what leaves them as they are."""
        call = e if isinstance(e, ast.Call) else None
        func = call.func if call is not None else e
        what = self.syntax.qualified(func)
        arguments = [*call.args, *(k.value for k in call.keywords)] if call is not None else []
        if what in api.GRAD_OFF and not arguments:
            return True
        if what in api.GRAD_OFF or what == "torch.set_grad_enabled":
            flag = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else None
            return flag is not None and bool(flag) is (what in api.GRAD_OFF)
        if what == "torch.enable_grad":
            return False
        if what in quiet or (isinstance(func, ast.Name) and func.id in quiet and self.syntax.is_builtin(func)):
            return None
        if what is None and isinstance(func, ast.Name):
            what = f"{self.module}.{func.id}"
        known = [what] if what is not None and self.project.function(what) is not None else []
        known = known or (self.project.re_exported(what) if what is not None else [])
        return None if known and not any(map(self.project.effects.enables_gradients, known)) else False

    def _switched_on_in(self, around: FunctionNode | ast.With | ast.AsyncWith) -> bool:
        """Whether a call in ``around`` switches gradients on beyond its own end."""
        inside = {id(n) for s in around.body for n in ast.walk(s)}
        for call in self.syntax.by_type[ast.Call]:
            if id(call) not in inside:
                continue
            if self.syntax.qualified(call.func) in api.GRAD_SWITCHES:
                if not isinstance(self.syntax.parents[call], ast.withitem):
                    return True
            elif any(map(self.project.effects.enables_gradients, self.facts.ask(Callees).of(call))):
                return True
        return False


def _is_left(context: ast.With | ast.AsyncWith) -> bool:
    """Whether code that stands elsewhere runs between two statements of ``context``, which may be in another mode."""
    return any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for s in context.body for n in ast.walk(s))
