"""Whether a module is prepared for TorchScript."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from patcher.facts.flow.fixpoint import reach
from patcher.facts.syntax.tree import Syntax

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
