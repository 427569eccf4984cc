"""What stands around a call that compiles: what its result becomes, the tests on the way to it, what runs with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from patcher.facts.syntax.tree import Syntax, dotted
from patcher.facts.values.compile_calls import CompileCall

_TRIES: tuple[type[ast.Try], ...] = tuple(getattr(ast, n) for n in ("Try", "TryStar") if hasattr(ast, n))
#: What the value of an expression goes through on its way to a name.
CHOICES = (ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Await)

Form = Literal[
    "again",  # model = torch.compile(model), blocks[i] = torch.compile(blocks[i]), model.forward = torch.compile(...),
    # and setattr(pipe, "unet", torch.compile(pipe.unet))
    "built",  # model = torch.compile(Model())
    "in place",  # model.compile()
    "discarded",  # torch.compile(model), as a statement
    "kept",  # fast = torch.compile(model)
    "decorator",  # @torch.compile
    "other",  # returned, handed over, one of several in a statement
]


def form_of(call: CompileCall, syntax: Syntax) -> tuple[Form, ast.expr | None]:
    """What becomes of what ``call`` compiles, and the one expression that holds it from there on."""
    if call.kind == "decorator":
        return "decorator", None
    statement, target = syntax.statement_of(call.node), call.target
    if not isinstance(target, ast.expr):
        return "other", None
    match statement:
        case ast.Expr(value=value) if value is call.node:
            return ("in place", target) if call.kind == "in place" else ("discarded", None)
        case ast.Expr(value=ast.Call(args=[owner, ast.Constant(value=str(name)), value]) as setting):
            same = is_place(target) and ast.unparse(target) == f"{ast.unparse(owner)}.{name}"
            if syntax.builtin(setting) == "setattr" and value is call.node and same:
                return "again", target  # setattr(pipe, "unet", torch.compile(pipe.unet))
        case ast.Assign(targets=[held], value=value) | ast.AnnAssign(target=held, value=value) if value is call.node:
            if call.kind == "in place" or isinstance(held, (ast.Tuple, ast.List, ast.Starred)):
                return "other", None
            if is_place(held) and ast.unparse(held) == ast.unparse(target):
                return "again", held
            if isinstance(target, ast.Call) and dotted(held):
                return "built", held
            return "kept", held
    return "other", None


def is_place(e: ast.expr) -> bool:
    """Whether ``e`` is a name with attributes and items whose keys are names or constants: it reads the same again."""
    match e:
        case ast.Name():
            return True
        case ast.Attribute(value=value):
            return is_place(value)
        case ast.Subscript(value=value, slice=ast.Name() | ast.Constant()):
            return is_place(value)
    return False


def results(call: CompileCall, syntax: Syntax) -> frozenset[str]:
    """The names and attributes, as text, that hold what ``call`` gives; the module itself when it works in place."""
    if call.kind == "in place":
        text = dotted(call.target) if call.target is not None else None
        return frozenset({text} if text else ())
    return assigned(call, syntax)


def assigned(call: CompileCall, syntax: Syntax) -> frozenset[str]:
    """What the value of ``call`` is assigned to."""
    node: ast.AST = call.node
    while isinstance(parent := syntax.parents.get(node), CHOICES):
        node = parent
    if isinstance(parent, ast.Assign):
        return frozenset(t for target in parent.targets if (t := dotted(target)))
    if isinstance(parent, ast.AnnAssign) and (text := dotted(parent.target)):
        return frozenset({text})
    return frozenset()


def tests(node: ast.AST, syntax: Syntax) -> Iterator[tuple[ast.expr, bool]]:
    """Each test of an ``if`` around ``node`` in its function, and whether it has to be true; innermost first."""
    for parent, arm in _arms(node, syntax):
        if ast.unparse(parent.test) != "__name__ == '__main__'":
            yield parent.test, arm == "body"


def exclusive(a: ast.AST, b: ast.AST, syntax: Syntax) -> bool:
    """Whether no run passes both nodes, since they stand in different arms of one ``if``."""
    arms = dict(_arms(a, syntax))
    return any(parent in arms and arms[parent] != arm for parent, arm in _arms(b, syntax))


def _arms(node: ast.AST, syntax: Syntax) -> Iterator[tuple[ast.If | ast.IfExp, str]]:
    """The choices around ``node`` in its function, and the arm of each that it stands in; innermost first."""
    child = node
    for parent in syntax.ancestors(node):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        for arm in ("body", "orelse") if isinstance(parent, (ast.If, ast.IfExp)) else ():
            held = getattr(parent, arm)
            if child is held or (isinstance(held, list) and child in held):
                yield parent, arm  # type: ignore[misc]
        child = parent


def tried(node: ast.AST, syntax: Syntax) -> ast.stmt | None:
    """The statement of the same function that may go on where ``node`` raises: a ``try`` or a ``with``."""
    child = node
    for parent in syntax.ancestors(node):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return None
        if isinstance(parent, _TRIES) and parent.handlers and child in parent.body:
            return parent
        if isinstance(parent, (ast.With, ast.AsyncWith)) and child in parent.body and _may_swallow(parent):
            return parent
        child = parent
    return None


def _may_swallow(statement: ast.With | ast.AsyncWith) -> bool:
    """Whether a ``with`` may be one that expects an error: ``pytest.raises``, ``assertRaises``, ``suppress``."""
    called = (i.context_expr.func for i in statement.items if isinstance(i.context_expr, ast.Call))
    return any(word in (dotted(f) or "raises").lower() for f in called for word in ("raises", "suppress", "warns"))
