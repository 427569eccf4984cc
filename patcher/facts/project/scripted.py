"""What a module has to do with TorchScript: is it prepared for it, and where does it call what ``torch.jit`` made."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from patcher.facts.flow.fixpoint import reach
from patcher.facts.syntax.tree import Syntax, dotted

#: How such a call is named among calls: as a function that is not read.
SCRIPT = "torch.jit.ScriptModule.forward"
#: What gives nothing but TorchScript: ``trace`` and ``script`` hand back what they get where the compiler is off.
_MAKING = frozenset({"torch.jit.freeze", "torch.jit.load", "torch.jit.optimize_for_inference"})
#: What only code that TorchScript compiles needs.
_PREPARING = frozenset(
    f"torch.jit.{name}"
    for name in "script is_scripting annotate export unused interface script_method Final Attribute".split()
)
_LIBRARIES = ("torch", "typing", "math")
#: Statements around which nothing else may run between two statements of one of their blocks.
_STRAIGHT = (ast.If, ast.With, ast.Try)


def prepared(syntax: Syntax, imported: Iterable[str]) -> frozenset[str]:
    """All names in a module that names something that only code for TorchScript needs; none of another module.

    Nor where that is the decorator of functions that call nothing of other files: these alone are scripted.
    """
    imported = tuple(imported)
    if not _is_prepared(syntax, imported):
        return frozenset()
    return frozenset({*names_in(syntax, syntax.tree), *(what.rpartition(".")[2] for what in imported)})


def names_in(syntax: Syntax, node: ast.AST) -> Iterator[str]:
    """The names and attributes in ``node``: what TorchScript compiles with it is called by one of them."""
    for n in syntax.subtree(node):
        if isinstance(n, ast.Name):
            yield n.id
        elif isinstance(n, ast.Attribute):
            yield n.attr


def _is_prepared(syntax: Syntax, imported: Iterable[str]) -> bool:
    if any(what in _PREPARING for what in imported):
        return True
    named = {n for n in syntax.by_type[ast.Attribute] if f"torch.jit.{n.attr}" in _PREPARING}
    named = {n for n in named if syntax.qualified(n) in _PREPARING}
    top = {s.name: s for s in syntax.tree.body if isinstance(s, ast.FunctionDef)}
    for function in top.values() if named else ():
        if len(function.decorator_list) == 1 and _is_alone(function, top, syntax):
            named -= {*function.decorator_list}
    return bool(named)


def _is_alone(function: ast.FunctionDef, top: Mapping[str, ast.FunctionDef], syntax: Syntax) -> bool:
    """Whether ``function`` and the ``top`` ones that it names need nothing besides torch and Python's builtins."""
    stored = {n.id for n in syntax.by_type[ast.Name] if not isinstance(n.ctx, ast.Load)}
    defined = Counter(d.name for kind in (ast.FunctionDef, ast.ClassDef) for d in syntax.by_type[kind])  # type: ignore[attr-defined]

    def names(f: ast.FunctionDef) -> set[str]:
        return {n.id for n in ast.walk(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}

    for f in reach([function], lambda f: [top[name] for name in names(f) & top.keys()]):
        own = {n.arg for n in ast.walk(f) if isinstance(n, ast.arg)}
        own |= {n.id for n in ast.walk(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        quoted = (n.annotation for n in ast.walk(f) if isinstance(n, (ast.arg, ast.AnnAssign)))
        if any(isinstance(n, ast.Constant) and isinstance(n.value, str) for a in quoted if a for n in ast.walk(a)):
            return False  # a class by its name, whose methods are scripted with it
        for name in names(f) - own:
            library = syntax.imports.get(name, "").partition(".")[0] in _LIBRARIES
            once = name not in stored and name not in syntax.imports
            if not library and not (once and defined[name] == (name in top) and (name in top or name in dir(builtins))):
                return False
    return True


def scripted(syntax: Syntax, resolve: Callable[[str], str]) -> frozenset[ast.Call]:
    """The calls of a name to which the last statement that binds it, on the way there, gives what torch.jit makes."""
    calls = [n for n in syntax.by_type[ast.Call] if isinstance(n, ast.Call)]
    made = {c for c in calls if (text := dotted(c.func)) and resolve(text) in _MAKING}
    if not made:
        return frozenset()
    shared = {name for n in (*syntax.by_type[ast.Global], *syntax.by_type[ast.Nonlocal]) for name in n.names}  # type: ignore[attr-defined]
    named = (c for c in calls if isinstance(c.func, ast.Name) and c.func.id not in shared)
    return frozenset(c for c in named if _is_bound_by(c, made, syntax))


def _is_bound_by(call: ast.Call, made: Collection[ast.AST], syntax: Syntax) -> bool:
    assert isinstance(call.func, ast.Name)
    name, child = call.func.id, syntax.statement_of(call)
    if syntax.function_of(call) is not syntax.function_of(child) or _binds(child, name, ast.NamedExpr):
        return False
    while True:
        block = syntax.block_of(child)
        for s in reversed(block[: block.index(child)]):
            if _binds(s, name):
                alone = isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
                return alone and s.value in made  # type: ignore[attr-defined]
        parent = syntax.parents[child]
        if not isinstance(parent, _STRAIGHT) or block is not parent.body:
            return False
        if _binds(parent, name, ast.withitem) or _binds(parent, name, ast.NamedExpr):
            return False
        child = parent


def _binds(statement: ast.stmt, name: str, within: type[ast.AST] = ast.AST) -> bool:
    """Whether ``statement``, or a node of that type in it, may bind or delete ``name``."""
    for top in ast.walk(statement):
        if not isinstance(top, within):
            continue
        for n in [top] if within is ast.AST else ast.walk(top):
            if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load):
                return True
            if name in (getattr(n, "name", None), getattr(n, "asname", None), getattr(n, "rest", None)):
                return True
    return False
