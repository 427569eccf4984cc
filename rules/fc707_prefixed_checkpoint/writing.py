"""The functions that a file needs for its checkpoints, and where they are put."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patcher.facts import Facts
from patcher.facts.compiling.placing import is_place
from patcher.rule import Code, Edit, Insert, Replace
from patcher.state_dict_source import MATCH, MATCH_NAME, UNCOMPILE, UNCOMPILE_NAME
from rules.fc707_prefixed_checkpoint.places import Place

_TEXTS = {UNCOMPILE_NAME: UNCOMPILE, MATCH_NAME: MATCH}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def edits(places: Iterable[Place], facts: Facts) -> tuple[Edit, ...]:
    """What is put around the state dicts, and the functions that this needs; nothing where it cannot be written."""
    places = tuple(places)
    needed = [MATCH_NAME] if any(p.how == "loaded" for p in places) else []
    made: list[Edit] = []
    names: dict[str, str] = {}
    for name in [UNCOMPILE_NAME, *needed]:
        known = _known(name, facts)
        if known is None and name in facts.syntax.names_in(facts.syntax.tree):
            return ()
        names[name] = known or name
    if names.get(MATCH_NAME) == MATCH_NAME and names[UNCOMPILE_NAME] != UNCOMPILE_NAME:
        return ()  # one of them calls the other by its name
    texts = [_TEXTS[name] for name in names if _known(name, facts) is None]
    if texts:
        anchor, after = _anchor([p.node for p in places], facts)
        written = tuple(Code(text.rstrip("\n").replace("{", "{{").replace("}", "}}")) for text in texts)
        made.append(Insert(anchor, written, after=after))
    for place in places:
        if place.how == "saved":
            made.append(Replace(place.node, Code(f"{names[UNCOMPILE_NAME]}({{0}})", (place.node,))))
        else:
            made.append(Replace(place.node, Code(f"{names[MATCH_NAME]}({{0}}, {{1}})", (place.node, place.model))))
    return tuple(made)


def can_be_written(place: Place) -> bool:
    """Whether a call around the state dict says it all: the model of one that is loaded is written a second time."""
    model = place.model
    while isinstance(model, ast.Call) and isinstance(model.func, ast.Attribute) and model.func.attr == "unwrap_model":
        model = model.args[0] if model.args else model.func
    return place.how == "saved" or (place.how == "loaded" and is_place(model))


def _known(name: str, facts: Facts) -> str | None:
    """What the function is called here, where the file has or imports it."""
    if any(isinstance(s, ast.FunctionDef) and s.name == name for s in facts.syntax.functions):
        return name
    imported = (n for n, what in facts.syntax.runtime_imports.items() if what.endswith(f".{name}"))
    return next(imported, None)


def _anchor(nodes: list[ast.expr], facts: Facts) -> tuple[ast.stmt, bool]:
    """The statement that the functions are put before, or after: above all that may call them."""
    syntax = facts.syntax
    tops: list[ast.stmt] = []
    for node in nodes:
        around = [p for p in syntax.ancestors(node) if isinstance(p, _DEFINITIONS)]
        tops.append(around[-1] if around else _at_top(node, facts))
    first = min(tops, key=lambda s: s.lineno)
    if not isinstance(first, _DEFINITIONS):
        above = [s for s in syntax.tree.body if isinstance(s, (ast.Import, ast.ImportFrom)) and s.lineno < first.lineno]
        return (above[-1], True) if above else (first, False)
    blocks = [syntax.block_of(s) for s in tops]
    return (first if all(b is blocks[0] for b in blocks) else _at_top(first, facts)), False


def _at_top(node: ast.AST, facts: Facts) -> ast.stmt:
    """The statement at the top of the file that is or holds ``node``."""
    return next(
        s for s in (node, *facts.syntax.ancestors(node)) if isinstance(s, ast.stmt) and s in facts.syntax.tree.body
    )
