"""Where gradients are switched off."""

from __future__ import annotations

import ast

from patcher.facts import torch_api as api
from patcher.facts.analysis import Analysis


class GradientMode(Analysis):
    """What contexts and decorators say of a place."""

    def off(self, node: ast.AST) -> bool:
        """Whether no gradient can be recorded at ``node``: the innermost context or decorator that says so decides."""
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, (ast.With, ast.AsyncWith)):
                for item in reversed(parent.items):
                    if (off := self._switches_off(item.context_expr)) is not None:
                        return off
            elif isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found = [self._switches_off(d) for d in parent.decorator_list]
                decided = [off for off in found if off is not None]
                if decided and isinstance(parent, ast.FunctionDef):
                    return decided[-1]
                return False  # where a function stands says nothing about where it is called
            elif isinstance(parent, ast.Lambda):
                return False
        return False

    def _switches_off(self, e: ast.expr) -> bool | None:
        """True or False for a context or decorator that switches gradients off or on; None for any other."""
        call = e if isinstance(e, ast.Call) else None
        what = self.syntax.qualified(call.func if call is not None else e)
        arguments = [*call.args, *(k.value for k in call.keywords)] if call is not None else []
        if what in api.GRAD_OFF and not arguments:
            return True
        if what in api.GRAD_OFF or what == "torch.set_grad_enabled":
            flag = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else None
            return flag is not None and bool(flag) is (what in api.GRAD_OFF)
        return False if what == "torch.enable_grad" else None
