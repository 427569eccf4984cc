"""Whether a module is prepared for TorchScript, and where it calls what ``torch.jit`` made."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from patcher.facts.flow.fixpoint import reach
from patcher.facts.syntax.tree import Syntax, dotted
from patcher.facts.syntax.written import is_stored

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
    stored = {n.id for n in syntax.by_type[ast.Name] if is_stored(n)}
    defined = Counter(
        [d.name for d in syntax.by_type[ast.FunctionDef]] + [d.name for d in syntax.by_type[ast.ClassDef]]
    )

    def is_known(name: str) -> bool:
        once = name not in stored and name not in syntax.imports and defined[name] == (name in top)
        library = syntax.imports.get(name, "").partition(".")[0] in _LIBRARIES
        return library or (once and (name in top or name in dir(builtins)))

    def names(f: ast.FunctionDef) -> set[str]:
        return {n.id for n in ast.walk(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}

    for f in reach([function], lambda f: [top[name] for name in names(f) & top.keys()]):
        nodes = list(ast.walk(f))
        own = {n.arg for n in nodes if isinstance(n, ast.arg)}
        own |= {n.id for n in nodes if isinstance(n, ast.Name) and is_stored(n)}
        if _names_a_class(nodes) or not all(map(is_known, names(f) - own)):
            return False
    return True


def _names_a_class(nodes: Iterable[ast.AST]) -> bool:
    """Whether an annotation is a text: a class by its name, whose methods are scripted with the function."""
    said = (n.annotation for n in nodes if isinstance(n, (ast.arg, ast.AnnAssign)) and n.annotation is not None)
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) for a in said for n in ast.walk(a))


def scripted(syntax: Syntax, resolve: Callable[[str], str]) -> frozenset[ast.Call]:
    """The calls of a local name to which the last statement that binds it, on the way there, gives a frozen script."""
    calls = syntax.by_type[ast.Call]
    made = {c for c in calls if (text := dotted(c.func)) and resolve(text) in _MAKING}
    return frozenset(
        c for c in calls if made and isinstance(c.func, ast.Name) and _is_bound_by(c, c.func.id, made, syntax)
    )


def _is_bound_by(call: ast.Call, name: str, made: Collection[ast.AST], syntax: Syntax) -> bool:
    function = syntax.function_of(call)
    stores = [n for n in syntax.by_type[ast.Name] if n.id == name and is_stored(n)]
    last = max(stores, key=lambda n: n.lineno, default=None)
    if function is None or last is None or any(syntax.function_of(n) is not function for n in stores):
        return False
    statement = syntax.statement_of(last)
    alone = isinstance(statement, ast.Assign) and statement.targets == [last] and statement.value in made
    block = syntax.block_of(statement)
    return alone and last.lineno < call.lineno and any(p in block for p in syntax.ancestors(call))
