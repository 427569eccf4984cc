"""What is told of places that compile, and left to the user: twice, by a decorator, in a function that returns it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.compiling.already import Already, CompiledAlready
from patcher.facts.compiling.in_place import WHOLE_SINCE, InPlace
from patcher.facts.compiling.placing import CHOICES
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.rule import Finding

#: By how it is compiled already, and whether it is compiled in place now: what comes of that, and what to do.
_TWICE = {
    ("wrapper", False): ("what this gives is no module", "compile it once, with the arguments of both calls"),
    ("wrapper", True): ("this call changes nothing", "compile it once, with the arguments of both calls"),
    ("returned", False): ("one of the two counts for nothing", "compile it once, with the arguments of both calls"),
    ("returned", True): ("one of the two counts for nothing", "compile it once, with the arguments of both calls"),
    ("in place", False): ("the arguments of this call count for nothing", "compile it once"),
    ("in place", True): ("the arguments of the first call count for nothing", "compile it once"),
    ("forward", False): ("one of the two counts for nothing", "keep the one whose arguments are meant"),
    ("forward", True): ("this call changes nothing", "keep the one whose arguments are meant"),
    ("class", False): ("this raises an AssertionError", "take away the decorator, or this call"),
    ("class", True): ("this raises an AssertionError", "take away the decorator, or this call"),
}


def twice(site: CompileSite, facts: Facts) -> Finding | None:
    """A model that is compiled already."""
    already: Already | None = facts.ask(CompiledAlready).of(site)
    if already is None or site.model is None:
        return None
    as_it_was = facts.settings.target_torch < WHOLE_SINCE or already.how != "forward"
    comes, todo = _TWICE[already.how, site.call.kind == "in place" and as_it_was]
    plain = isinstance(site.model, (ast.Name, ast.Attribute))
    what = f"`{ast.unparse(site.model)}`" if plain else "what this is given"
    return Finding(site.node, f"{what} is compiled already ({already.where}): {comes}", assumption=todo)


def decorated(node: ast.AST, facts: Facts) -> Iterator[Finding]:
    """A class, or a ``forward``, with the decorator."""
    for decorator in getattr(node, "decorator_list", ()):
        if facts.ask(CompileSites).at(decorator) is None:
            continue
        if isinstance(node, ast.ClassDef) and facts.is_module_class(node):
            message = f"calls of each `{node.name}` are compiled, and to compile one again raises an AssertionError"
            yield Finding(decorator, message, assumption=_INSTEAD.format(node.name))
        cls = facts.syntax.parents.get(node)
        if isinstance(cls, ast.ClassDef) and getattr(node, "name", "") == "forward" and facts.is_module_class(cls):
            message = f"`forward` of each `{cls.name}` is compiled with these arguments, and without its hooks"
            yield Finding(decorator, message, assumption=_INSTEAD.format(cls.name))


_INSTEAD = "take it away and write `model.compile(...)` where a `{}` is made, to choose there"


def returned(site: CompileSite, facts: Facts) -> Finding | None:
    """A function that gives the wrapper to whoever calls it."""
    if site.function is None or site.form != "other" or not site.is_module or site.by_forward or site.model is None:
        return None
    node: ast.AST = site.node
    while isinstance(parent := facts.syntax.parents.get(node), CHOICES):
        node = parent
    where = facts.ask(InPlace)
    if not isinstance(parent, ast.Return) or not where.exists or where.why_not(site) is not None:
        return None
    if "_orig_mod" in facts.syntax.names_in(facts.syntax.tree) or facts.ask(CompileSites).replaced:
        return None
    name, model = getattr(site.function, "name", "this"), ast.unparse(site.model)
    message = f"`{name}` returns a wrapper with other parameter names: `Module.compile` does the same in place"
    built = not isinstance(site.model, (ast.Name, ast.Attribute))
    held = "model" if built else model
    steps = [*([f"`model = {model}`"] if built else []), f"`{held}.compile(...)`", f"`return {held}`"]
    return Finding(site.node, message, assumption=f"write {', '.join(steps)}, and callers get the module itself")
