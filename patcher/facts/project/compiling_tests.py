"""Functions that do nothing but tell whether code is being compiled."""

from __future__ import annotations

import ast
from collections.abc import Callable

from patcher.facts.syntax.tree import FunctionNode, dotted
from patcher.facts.tables import torch_api as api


def asks_for_compiling(function: FunctionNode, resolve: Callable[[str], str]) -> bool:
    """Whether ``function`` returns ``torch.compiler.is_compiling()``, or False where there is no such thing."""
    if function.args.args or len(function.body) > 4:
        return False
    returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
    asked = [v for v in returned if isinstance(v, ast.Call) and resolve(dotted(v.func) or "") in api.EAGER_GUARDS]
    rest = [v for v in returned if v not in asked]
    return bool(asked) and all(isinstance(v, ast.Constant) and v.value is False for v in rest)
