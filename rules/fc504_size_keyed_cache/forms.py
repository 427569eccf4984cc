"""A lookup by size as compiled code is to have it: never made, and nothing kept."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.rule import Code, Edit, Enclose, Insert, Replace, ReplaceStatements, block
from rules.fc504_size_keyed_cache.keyed import Lookup

_ENDS = (ast.Return, ast.Raise)


def rewritten(lookup: Lookup, facts: Facts, compiling: str) -> tuple[Edit, ...] | str:
    """The edits, or why there are none. ``compiling``: how it is asked whether code is compiled."""
    if lookup.text:
        return "its key is a string, and writing a size out compiles for each of them"
    if facts.scripted:
        return "this file compiles to TorchScript as well"
    if lookup.others:
        return f"`{ast.unparse(lookup.held)}` is looked at elsewhere, too (line {lookup.others[0].lineno})"
    if len(lookup.stores) != 1:
        return "the item is filled at several places"
    store, syntax = lookup.stores[0], facts.syntax
    if not isinstance(store, ast.Assign) or len(store.targets) != 1 or not isinstance(store.targets[0], ast.Subscript):
        return "what is filled in is not one item alone"
    if (why := facts.writing.why_not_replaced(store)) is not None:
        return why
    if isinstance(lookup.node, ast.Call):
        return _got(lookup, store, facts, compiling)
    test, missing = _test(lookup.node, facts)
    if test is None:
        return "the lookup is a part of a larger test"
    if missing:
        return _missing(lookup, test, store, facts, compiling)
    inside = {n for s in test.body for n in syntax.subtree(s)}
    found_only = isinstance(test.body[-1], _ENDS) or store in {n for s in test.orelse for n in syntax.subtree(s)}
    if not lookup.reads or not found_only or store in inside or any(read not in inside for read in lookup.reads):
        return "what is read may be what was just filled in"
    return (
        Replace(lookup.node, Code(f"not {compiling} and {{0}}", (lookup.node,))),
        _eagerly(store, compiling),
    )


def _test(node: ast.Compare, facts: Facts) -> tuple[ast.If | None, bool]:
    """The ``if`` whose test ``node`` is, maybe behind ``not``, and whether its body runs where nothing was found."""
    missing = isinstance(node.ops[0], ast.NotIn)
    for parent in facts.syntax.ancestors(node):
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            missing = not missing
            continue
        return (parent if isinstance(parent, ast.If) else None), missing
    return None, missing


def _missing(lookup: Lookup, test: ast.If, store: ast.Assign, facts: Facts, compiling: str) -> tuple[Edit, ...] | str:
    """``if key not in held:`` that fills it, and what reads the item below."""
    syntax = facts.syntax
    if store not in test.body or test.orelse or syntax.is_elif(test) or not syntax.alone(test):
        return "the item is not filled right below the lookup"
    later = {n for s in (*test.body[test.body.index(store) + 1 :], *syntax.following(test)) for n in syntax.subtree(s)}
    if not lookup.reads or any(read not in later for read in lookup.reads):
        return "what is found is read in another way"
    name = facts.writing.fresh_local("cached", test)
    reads = tuple(Replace(read, Code(name)) for read in lookup.reads)
    asked = Insert(test, (Code(f"{name} = None if {compiling} else {{0}}.get({{1}})", (lookup.held, lookup.key)),))
    kept = block(Code(f"if not {compiling}:"), [Code(f"{{0}} = {name}", (store.targets[0],))])
    filled = ReplaceStatements((store,), (Code(f"{name} = {{0}}", (store.value,)), kept))
    return (asked, Replace(test.test, Code(f"{name} is None")), filled, *reads)


def _got(lookup: Lookup, store: ast.Assign, facts: Facts, compiling: str) -> tuple[Edit, ...] | str:
    """``cached = held.get(key)``, and what is filled in where that is None."""
    statement = facts.syntax.statement_of(lookup.node)
    if not isinstance(statement, ast.Assign) or statement.value is not lookup.node or lookup.reads:
        return "what is found is read in another way"
    return (
        Replace(lookup.node, Code(f"None if {compiling} else {{0}}", (lookup.node,))),
        _eagerly(store, compiling),
    )


def _eagerly(store: ast.stmt, compiling: str) -> Enclose:
    """``store`` in eager code alone."""
    return Enclose((store,), Code(f"if not {compiling}:"))
