"""Items of a list that become wrappers one by one: ``model.blocks[i] = torch.compile(model.blocks[i])``.

Nobody can tell where the list is seen to hold modules of one class that are only ever called, the model that has it is
made here, and nobody else gets that or asks it for names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.project.block_lists import BlockList

if TYPE_CHECKING:
    from rules.fc703_wrapped_module.uses import WrapperUses

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: What gives the modules in a model to whoever asks, before they are wrapped.
_INNER = frozenset("modules named_modules children named_children apply get_submodule".split())


def why_seen(site: CompileSite, uses: WrapperUses, naming: frozenset[str]) -> str:
    """What may tell that an item is compiled in place; "" where nothing can.

    ``naming``: the methods of a module that see the names, or the number, of the modules in it.
    """
    held = site.held
    if not isinstance(held, ast.Subscript) or site.cls is None:
        return f"which modules `{ast.unparse(held)}` may be is not seen" if held is not None else "it is not kept"
    sites, text = uses.facts.ask(CompileSites), ast.unparse(held.value)
    root, path = _root(held.value)
    listed = sites.list_at(held.value)
    if root is None or listed is None or listed.path != path:
        return f"what else `{text}` holds is not seen"
    return next(_reasons(site, root, listed, uses, naming), "")


def _root(e: ast.expr) -> tuple[ast.Name | None, str]:
    path: list[str] = []
    while isinstance(e, ast.Attribute):
        path.insert(0, e.attr)
        e = e.value
    return (e, ".".join(path)) if isinstance(e, ast.Name) else (None, "")


def _reasons(
    site: CompileSite, root: ast.Name, listed: BlockList, uses: WrapperUses, naming: frozenset[str]
) -> Iterator[str]:
    assert isinstance(site.held, ast.Subscript) and site.cls is not None
    project, text = uses.project, ast.unparse(site.held.value)
    cls = uses.facts.ask(CompileSites).class_of(root)
    if cls is None or listed.uses != {"called"}:
        yield f"items of `{text}` are not only called"
        return
    name = cls.rpartition(".")[2]
    if listed.path.partition(".")[0] in project.foreign_stores:
        yield f"`{listed.path.partition('.')[0]}` is set from outside of a class"
    for one in (cls, site.cls):
        if len(project.family(one)[0]) > 1:
            yield f"`{one.rpartition('.')[2]}` is not the only class of its family"
    asked = {m.rpartition(".")[2] for method in _methods(cls, uses) for m in method} & (naming | _INNER)
    if asked:
        yield f"a method of `{name}` uses `{min(asked)}`, which sees the wrappers"
    if not _once(site, uses):
        yield f"which items of `{text}` are compiled is not seen, or one may be twice"
    yield from _around(site, root, cls, text, uses)


def _methods(cls: str, uses: WrapperUses) -> Iterator[frozenset[str]]:
    """What each method of the class mentions, but for its constructor, which has ended."""
    summary = uses.project.known_class(cls)
    for method in summary.methods if summary is not None else ():
        function = uses.project.function(f"{cls}.{method}")
        if method != "__init__" and function is not None:
            yield function.mentions


def _once(site: CompileSite, uses: WrapperUses) -> bool:
    """Whether each item is compiled at most once: one loop counts through them, or one is named by its number."""
    syntax, held = uses.syntax, site.held
    assert isinstance(held, ast.Subscript)
    text = ast.unparse(held.value)
    others = [s for s in uses.facts.ask(CompileSites).all if s is not site and s.model is not None]
    near = (s.model for s in others if s.function is site.function)
    if any(isinstance(model, ast.Subscript) and ast.unparse(model.value) == text for model in near):
        return False
    around = [p for p in syntax.ancestors(site.node) if isinstance(p, (*_LOOPS, ast.FunctionDef, ast.AsyncFunctionDef))]
    loops = []
    for p in around:
        if not isinstance(p, _LOOPS):
            break
        loops.append(p)
    if isinstance(held.slice, ast.Constant):
        return not loops and isinstance(held.slice.value, int)
    if len(loops) != 1 or not isinstance(loops[0], ast.For) or not isinstance(held.slice, ast.Name):
        return False
    loop, index = loops[0], held.slice.id
    counted: ast.expr = loop.target
    counting = syntax.builtin(loop.iter)
    if not isinstance(loop.iter, ast.Call) or len(loop.iter.args) != 1 or loop.iter.keywords:
        return False
    if counting == "enumerate" and isinstance(counted, ast.Tuple) and len(counted.elts) == 2:
        counted = counted.elts[0]
    elif counting != "range":
        return False
    stores = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == index and n is not counted]
    same = isinstance(counted, ast.Name) and counted.id == index
    return same and all(isinstance(n.ctx, ast.Load) for n in stores)


def _around(site: CompileSite, root: ast.Name, cls: str, text: str, uses: WrapperUses) -> Iterator[str]:
    """Uses of the list, and of the model that has it."""
    syntax, statement = uses.syntax, uses.syntax.statement_of(site.node)
    loop = site.loop
    header = set(ast.walk(loop.iter)) if isinstance(loop, ast.For) else set()
    attribute = text.split(".")[1]
    for a in syntax.by_type[ast.Attribute]:
        assert isinstance(a, ast.Attribute)
        method = syntax.method_of(a)
        own = syntax.class_of(a)
        in_class = own is not None and f"{uses.module}.{syntax.qualname(own)}" == cls and method is not None
        if a.attr != attribute or syntax.statement_of(a) is statement or in_class or _of_another(a, site, uses):
            continue
        counted = isinstance(p := syntax.parents[a], ast.Call) and syntax.builtin(p) == "len"
        if not counted and not _counted_by(a, loop, header, statement, uses):
            yield f"`{ast.unparse(a)}` is used (line {a.lineno})"
    if any(c.value == attribute for c in syntax.by_type[ast.Constant] if isinstance(c, ast.Constant)):
        yield f"`{attribute}` is looked up by its name"
    whole = replace(site, held=root, model=root, form="again", cls=cls)
    yield from (told.text for told in uses.holders(whole))
    for e in uses.occurrences(root):
        if syntax.statement_of(e) is statement or e in header:
            continue
        elsewhere = syntax.function_of(e) is not site.function or (loop is not None and loop in syntax.ancestors(e))
        after = elsewhere or (e.lineno, e.col_offset) > (statement.lineno, statement.col_offset)
        p = syntax.parents[e]
        inner = isinstance(p, ast.Attribute) and p.attr in _INNER
        named = (isinstance(p, ast.Assign) and p.value is e) or (isinstance(p, ast.Attribute) and _is_named(p, uses))
        found = uses.use(e, root.id, whole, after or inner or named, 0)
        if found is not None:
            yield found.text


def _of_another(a: ast.Attribute, site: CompileSite, uses: WrapperUses) -> bool:
    """Whether the attribute is one of a local of another function, which that has made for itself."""
    if not isinstance(a.value, ast.Name) or uses.syntax.function_of(a) is site.function:
        return False
    given = uses.callees.inference.definitions(a.value)
    return bool(given) and all(d.how == "assign" and isinstance(d.value, ast.Call) for d in given)


def _counted_by(
    a: ast.Attribute, loop: ast.AST | None, header: set[ast.AST], statement: ast.stmt, uses: WrapperUses
) -> bool:
    """Whether the loop around ``statement`` only counts the items by ``a``, or has a name for them for it alone."""
    if a not in header or not isinstance(loop, ast.For):
        return False
    if not isinstance(loop.target, ast.Tuple) or not isinstance(item := loop.target.elts[-1], ast.Name):
        return uses.syntax.builtin(loop.iter) == "range"
    scope = uses.syntax.function_of(loop) or uses.syntax.tree
    named = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == item.id and n is not item]
    return all(uses.syntax.statement_of(n) is statement for n in named)


def _is_named(a: ast.Attribute, uses: WrapperUses) -> bool:
    """Whether what a method of the model gives gets a name: ``plain = model.eval()``."""
    call = uses.syntax.parents[a]
    return isinstance(call, ast.Call) and isinstance(uses.syntax.parents[call], ast.Assign)
