"""What is handed to another thread or process: Dynamo does not follow it there."""

from __future__ import annotations

import ast

from patcher.facts.syntax.tree import FunctionNode, Syntax, last_name

#: What takes a function as ``target=``, and what as its first arguments.
_BY_NAME = frozenset({"Thread", "Process", "Timer"})
_STARTING = frozenset("submit apply_async run_in_executor start_new_thread to_thread Timer".split())


def is_handed_over(node: ast.AST, syntax: Syntax) -> bool:
    """Whether ``node``, which names a function, is given to what runs it in another thread or process."""
    parent = syntax.parents[node]
    if isinstance(parent, ast.keyword):
        call = syntax.parents[parent]
        return parent.arg == "target" and isinstance(call, ast.Call) and last_name(call.func) in _BY_NAME
    return isinstance(parent, ast.Call) and node in parent.args[:2] and last_name(parent.func) in _STARTING


def runs_elsewhere(function: FunctionNode, syntax: Syntax) -> bool:
    """Whether ``function``, which stands in another one, is only ever handed to another thread or process."""
    outer = syntax.function_of(function)
    uses = [
        n
        for n in (syntax.subtree(outer) if outer is not None else ())
        if isinstance(n, ast.Name) and n.id == function.name and isinstance(n.ctx, ast.Load)
    ]
    return bool(uses) and all(is_handed_over(n, syntax) for n in uses)
