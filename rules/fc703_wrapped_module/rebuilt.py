"""A list that is built anew of wrappers: ``model.blocks = nn.ModuleList([torch.compile(b) for b in model.blocks])``."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.compiling.in_place import InPlace
from patcher.facts.compiling.placing import is_place
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.values.module_values import imported
from patcher.rule import Applicability, Code, Finding, Fix, ReplaceStatements, block

_HOLDERS = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.modules.container.ModuleList"})
#: What says in the source that a module is a wrapper.
_WRAPPERS = frozenset({"OptimizedModule", "is_compiled_module"})
NOTE = (
    "nothing tells the wrapper from the module: no `_orig_mod` in names, no test of its type or identity, "
    "no call of its `forward`, no use that has to stay eager"
)


def tells_wrappers(facts: Facts) -> bool:
    """Whether the file tests for a wrapper, or reads what is in one without asking by ``hasattr(m, "_orig_mod")``."""
    names = facts.syntax.names_in(facts.syntax.tree)
    asked = any(isinstance(c, ast.Constant) and c.value == "_orig_mod" for c in facts.syntax.by_type[ast.Constant])
    return ("_orig_mod" in names and not asked) or not _WRAPPERS.isdisjoint(names)


def rebuilt(site: CompileSite, facts: Facts) -> Finding | None:
    """All modules of a list, wrapped one by one into a new list in its place."""
    loop = _goes_over(site, facts)
    statement = facts.syntax.statement_of(site.node)
    if loop is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    held = statement.targets[0]
    same = is_place(held) and ast.unparse(held) == ast.unparse(loop.iter)
    if not same or not _is_list_of(statement.value, site, facts) or site.by_forward:
        return None
    if facts.ask(InPlace).why_not(site) is not None or facts.ask(CompileSites).replaced or tells_wrappers(facts):
        return None
    assert isinstance(loop.target, ast.Name)
    name = loop.target.id
    scope = site.function or facts.syntax.tree
    inside = set(ast.walk(statement))
    if any(isinstance(n, ast.Name) and n.id == name and n not in inside for n in ast.walk(scope)):
        name = facts.writing.fresh_name(name, statement)
    written = facts.ask(InPlace).spelled(site)
    if written is None:
        return None
    template, (_, *arguments) = written
    call = Code(template.replace("{0}", name, 1), (loop.iter, *arguments))
    fix = Fix(
        (ReplaceStatements((statement,), (block(Code(f"for {name} in {{0}}:", (loop.iter,)), [call]),)),),
        Applicability.UNSAFE,
    )
    text = ast.unparse(held)
    message = f"`{text}` becomes a list of wrappers with other parameter names: `Module.compile` does the same in place"
    return Finding(site.node, message, fix, NOTE)


def _goes_over(site: CompileSite, facts: Facts) -> ast.comprehension | None:
    """The comprehension that does nothing but compile each module."""
    match facts.syntax.parents.get(site.node):
        case ast.ListComp(elt=elt, generators=[g]) | ast.GeneratorExp(elt=elt, generators=[g]):
            names = isinstance(g.target, ast.Name) and isinstance(site.model, ast.Name) and g.target.id == site.model.id
            return g if elt is site.node and names and not g.ifs and not g.is_async else None
    return None


def _is_list_of(value: ast.expr, site: CompileSite, facts: Facts) -> bool:
    """Whether ``value`` is a list of PyTorch's with what the comprehension gives."""
    if not isinstance(value, ast.Call) or value.keywords or imported(facts.syntax, value.func) not in _HOLDERS:
        return False
    match value.args:
        case [ast.Starred(value=given)] | [given]:
            return given is facts.syntax.parents.get(site.node)
    return False
