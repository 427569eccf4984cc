"""The functions that a file needs for its checkpoints, and where they are put."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patcher.facts import Facts
from patcher.facts.compiling.placing import is_place
from patcher.facts.effects.own_functions import OwnFunctions
from patcher.rule import Code, Edit, Insert, Replace
from patcher.state_dict_source import MATCH, MATCH_NAME, UNCOMPILE, UNCOMPILE_NAME
from rules.fc707_prefixed_checkpoint.places import Place

_TEXTS = {UNCOMPILE_NAME: UNCOMPILE, MATCH_NAME: MATCH}


def edits(places: Iterable[Place], facts: Facts) -> tuple[Edit, ...]:
    """What is put around the state dicts, and the functions that this needs; nothing where it cannot be written."""
    places = tuple(places)
    needed = [MATCH_NAME] if any(p.how == "loaded" for p in places) else []
    made: list[Edit] = []
    names: dict[str, str] = {}
    known: dict[str, str | None] = {}
    nodes = [p.node for p in places]
    for name in [UNCOMPILE_NAME, *needed]:
        known[name] = facts.ask(OwnFunctions).known(name, nodes)
        if known[name] is None and name in facts.syntax.names_in(facts.syntax.tree):
            return ()
        names[name] = known[name] or name
    if names.get(MATCH_NAME) == MATCH_NAME and names[UNCOMPILE_NAME] != UNCOMPILE_NAME:
        return ()  # one of them calls the other by its name
    texts = [_TEXTS[name] for name in names if known[name] is None]
    if texts:
        anchor, after = facts.ask(OwnFunctions).anchor(nodes)
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
