"""What runs again and again in its function, where a break of the graph has Dynamo give the function up."""

from __future__ import annotations

import ast

from patcher.facts.syntax.tree import Syntax


def is_looped(node: ast.AST, syntax: Syntax) -> bool:
    """Whether ``node`` stands in the body of a loop of its function, or in the test of one."""
    child = node
    for parent in syntax.ancestors(node):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
        if isinstance(parent, (ast.For, ast.AsyncFor)) and child is not parent.iter and child is not parent.target:
            return True
        if isinstance(parent, ast.While):
            return True
        child = parent
    return isinstance(node, ast.While)
