"""Which parameters a function takes as a bool or as a boolean tensor, alike: it does nothing but check them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted

#: Checks that take a tensor and nothing else, and those that take a bool and nothing else.
_OF_TENSORS = frozenset({"torch._check_tensor_all", "torch._check_tensor_all_with", "torch._assert_async"})
_OF_BOOLS = frozenset({"torch._check", "torch._check_with"})


def may_check(syntax: Syntax) -> bool:
    """Whether the module has one of torch's checks in it at all."""
    attributes = syntax.by_type[ast.Attribute]
    return any(n.attr.startswith(("_check", "_assert")) for n in attributes)


def conditions_taken(function: FunctionNode, syntax: Syntax, resolve: Callable[[str], str]) -> frozenset[str]:
    """The parameters of ``function`` that are only checked: what differs by their type is the same check."""
    if function.decorator_list or not any(
        isinstance(n, ast.Attribute) and n.attr.startswith(("_check", "_assert")) for n in ast.walk(function)
    ):
        return frozenset()
    names = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    return frozenset(name for name in names if _only_checked(function, name, syntax, resolve))


def _only_checked(function: FunctionNode, name: str, syntax: Syntax, resolve: Callable[[str], str]) -> bool:
    uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
    uses = [n for n in uses if not _in_annotation(n, function) and not _when_callable(n, name, syntax)]
    loads = [n for n in uses if isinstance(n.ctx, ast.Load)]
    if not loads or len(loads) != len(uses) or not all(_checked(n, name, syntax, resolve) for n in loads):
        return False
    tests = [n for n in ast.walk(function) if isinstance(n, ast.expr) and _asks(n, name, syntax, resolve)]
    return all(_chooses_a_check(test, name, syntax, resolve) for test in tests)


def _checked(load: ast.Name, name: str, syntax: Syntax, resolve: Callable[[str], str]) -> bool:
    parent = syntax.parents[load]
    if isinstance(parent, ast.Attribute) and parent.attr == "all":
        call = syntax.parents[parent]
        if not isinstance(call, ast.Call) or call.args or call.keywords:
            return False
        return _branch(load, name, syntax, resolve) is True
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        parent = syntax.parents[parent]
    if isinstance(parent, (ast.If, ast.Assert)):
        return True
    if not isinstance(parent, ast.Call) or parent.func is load:
        return False
    if _asks(parent, name, syntax, resolve) or _is_callable(parent, syntax):
        return True
    what = resolve(dotted(parent.func) or "?")
    if what in _OF_TENSORS:
        return _branch(load, name, syntax, resolve) is True
    return what in _OF_BOOLS and _branch(load, name, syntax, resolve) is False


def _branch(load: ast.Name, name: str, syntax: Syntax, resolve: Callable[[str], str]) -> bool | None:
    """True where ``name`` is a tensor for sure, False where it is none; None where that is not known."""
    child: ast.AST = load
    for parent in syntax.ancestors(load):
        if isinstance(parent, ast.If) and child is not parent.test and _asks(parent.test, name, syntax, resolve):
            return child in parent.body
        child = parent
    return None


def _chooses_a_check(test: ast.expr, name: str, syntax: Syntax, resolve: Callable[[str], str]) -> bool:
    """Whether the test for a tensor decides nothing but how ``name`` is checked: each arm does that, and no more."""
    statement = syntax.parents[test]
    if not isinstance(statement, ast.If) or statement.test is not test:
        return False
    return all(len(arm) == 1 and _is_check(arm[0], name, resolve) for arm in (statement.body, statement.orelse))


def _is_check(statement: ast.stmt, name: str, resolve: Callable[[str], str]) -> bool:
    match statement:
        case ast.Assert(test=test):
            return _mentions(test, name)
        case ast.If(test=test, body=[ast.Raise()], orelse=[]):
            return _mentions(test, name)
        case ast.Expr(value=ast.Call(func=func, args=args, keywords=keywords)):
            what = resolve(dotted(func) or "?")
            if what not in _OF_TENSORS | _OF_BOOLS or any(_runs(a) for a in (*args, *(k.value for k in keywords))):
                return False
            return any(_mentions(a, name) for a in args)
    return False


def _runs(e: ast.expr) -> bool:
    """Whether ``e``, of a check, runs more than ``ok.all()``: only one of the two arms would."""
    if isinstance(e, ast.Lambda):
        return False
    calls = [n for n in ast.walk(e) if isinstance(n, (ast.Call, ast.NamedExpr, ast.Await))]
    return any(
        not (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "all") for n in calls
    )


def _mentions(e: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(e))


def _is_callable(call: ast.Call, syntax: Syntax) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "callable" and syntax.is_builtin(call.func)


def _asks(test: ast.expr, name: str, syntax: Syntax, resolve: Callable[[str], str]) -> bool:
    match test:
        case ast.Call(func=ast.Name(id="isinstance") as func, args=[ast.Name(id=of), kind]):
            return of == name and syntax.is_builtin(func) and resolve(dotted(kind) or "?") == "torch.Tensor"
        case ast.Call(func=ast.Attribute() as func, args=[ast.Name(id=of)]):
            return of == name and resolve(dotted(func) or "?") == "torch.is_tensor"
    return False


def _when_callable(load: ast.Name, name: str, syntax: Syntax) -> bool:
    """Whether ``load`` stands under ``if callable(name)``, which holds for neither a bool nor a tensor."""
    child: ast.AST = load
    for parent in syntax.ancestors(load):
        if isinstance(parent, ast.If) and child in parent.body:
            match parent.test:
                case ast.Call(args=[ast.Name(id=of)]) as test if of == name and _is_callable(test, syntax):
                    return True
        child = parent
    return False


def _in_annotation(node: ast.AST, function: FunctionNode) -> bool:
    return any(node is n for a in _annotations(function) for n in ast.walk(a))


def _annotations(function: FunctionNode) -> Iterator[ast.expr]:
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg) and argument.annotation is not None:
            yield argument.annotation
    if function.returns is not None:
        yield function.returns
