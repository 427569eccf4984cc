"""What integrating a script comes to: edits and a new file, or the reasons why nothing is written."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from patcher.edit.spans import says
from patcher.facts.scripts.imports import Spelling, spelled
from patcher.facts.scripts.models import Model, Models, Ready
from patcher.facts.scripts.parsers import CommandLine
from patcher.facts.scripts.savers import saved_state_dicts
from patcher.facts.scripts.sources import Source, Sources
from patcher.facts.syntax.tree import last_name
from patcher.integrate import compiled
from patcher.integrate.interface import has_interface, lacking
from patcher.integrate.options import ADDS, Kind, Options, has_fields, options_of
from patcher.integrate.remarks import RefusedError, Remark, at
from patcher.rule import Code, Edit, Insert, Replace
from patcher.state_dict_source import UNCOMPILE_NAME

#: An option of scripts that compile in another way.
_OTHER_OPTION = "--torch_compile"
COMPILES = "compile_model"


@dataclass(frozen=True)
class Change:
    """What becomes of a file. ``imports``: the statement that imports the new module; "" where it is not needed."""

    edits: tuple[Edit, ...]
    imports: str


@dataclass(frozen=True)
class Plan:
    """``changes``: by path. ``refused``: why nothing is written; () when something is, or nothing is to do.

    ``told``: what is written where, and what else the user should know. ``done``: it was integrated before. ``kind``:
    what the new module adds its options to. ``excluded``: options that compile in another way, as attributes.
    """

    changes: Mapping[str, Change] = field(default_factory=dict)
    refused: tuple[Remark, ...] = ()
    told: tuple[Remark, ...] = ()
    done: bool = False
    kind: Kind = "argparse"
    excluded: tuple[str, ...] = ()


def planned(files: Sequence[tuple[str, ast.Module]], around: Sequence[tuple[str, ast.Module]], wanted: Wanted) -> Plan:
    """The plan for ``files``, the script first. ``around``: what they import, which is read only."""
    sources, surroundings = Sources.of(files), Sources.of(around)
    try:
        return _planned(sources, surroundings, wanted)
    except RefusedError as why:
        return Plan(refused=why.remarks)


@dataclass(frozen=True)
class Wanted:
    """What the user has asked for.

    ``model``: the name of the model; "" when it is to be found. ``module``: of the new module, without ``.py``.
    """

    model: str = ""
    module: str = "compile_utils"


def _planned(sources: Sources, surroundings: Sources, wanted: Wanted) -> Plan:
    if _is_done(sources):
        return Plan(done=True)
    shown = lacking(sources, surroundings)
    if has_interface(sources):
        if shown:
            raise RefusedError(*shown)
        return Plan(done=True)
    line, beyond = CommandLine(sources), CommandLine(surroundings, sources)
    found = compiled.compiling(sources)
    try:
        options = options_of(wanted.module, sources, line, beyond)
    except RefusedError as why:
        raise RefusedError(*why.remarks, *compiled.told(found)) from None
    governed = compiled.governed(found, options)
    flags = tuple(dict.fromkeys(flag for place in governed for flag in place.flags))
    chosen = _chosen(sources, surroundings, options, wanted)
    edits: defaultdict[str, list[Edit]] = defaultdict(list)
    told: list[Remark] = []
    places = [(model.source, ready.anchor) for model, ready, _ in chosen]
    for source, edit, remark in options.added(places):
        edits[source.path] += [edit] if edit not in edits[source.path] else []
        told.append(remark)
    for place, models in _by_place(chosen).items():
        calls = [f"    {wanted.module}.{COMPILES}({holds}, {place.held})" for _, holds in models]
        text = "\n".join([f"if {place.held}.compile:", *calls]).replace("{", "{{").replace("}", "}}")
        edits[place.source.path].append(Insert(place.anchor, (Code(text),), place.after))
        names = " and ".join(f"`{model.name}`" for model, _ in models)
        where = "below" if place.after else "above"
        told.append(at(place.source, place.anchor, f"{names} compiled {where} this with --compile"))
    for model, s in ((model, s) for model, ready, _ in chosen for s in ready.again):
        told.append(at(model.source, s, f"`{model.name}` is another model from here on, which is not compiled"))
    if not governed:  # what is compiled in another way is saved, and loaded, with the names that it has
        told += _savers(sources, wanted, edits)
    told += _excluded(governed, [o for cl in (line, beyond) for o in cl.options.items() if o[0][2:] not in flags])
    return Plan(_changes(sources, edits, wanted), (), (*told, *shown), False, options.kind(), flags)


def _excluded(
    governed: Sequence[compiled.Place], options: Sequence[tuple[str, tuple[Source, ast.Call]]]
) -> Iterator[Remark]:
    """The options that compile in another way."""
    for place in governed:
        for flag in place.flags:
            yield at(place.source, place.call.node, f"--{flag} compiles here: with --compile it is an error")
    for option, (source, call) in options:
        if option == _OTHER_OPTION:
            yield at(source, call, f"{option} compiles in another way: with --compile it is an error")


def _changes(sources: Sources, edits: Mapping[str, list[Edit]], wanted: Wanted) -> dict[str, Change]:
    return {
        source.path: Change(
            tuple(edits[source.path]),
            _import(source, sources.all[0], wanted) if any(says(e, wanted.module) for e in edits[source.path]) else "",
        )
        for source in sources.all
        if source.path in edits
    }


@dataclass(frozen=True, eq=True)
class _Place:
    source: Source
    anchor: ast.stmt
    after: bool
    held: str


def _by_place(chosen: Sequence[tuple[Model, Ready, str]]) -> dict[_Place, list[tuple[Model, str]]]:
    """The models that are compiled at a place, each with the expression for it there."""
    found: defaultdict[_Place, list[tuple[Model, str]]] = defaultdict(list)
    for model, ready, held in chosen:
        found[_Place(model.source, ready.anchor, ready.after, held)].append((model, ready.holds))
    return found


def _is_done(sources: Sources) -> bool:
    """Whether the script has the arguments and the call; refused when it has one of them only."""
    used: dict[str, tuple[Source, ast.AST]] = {
        name: (source, node)
        for source in sources.all
        for node in _used(source)
        if (name := last_name(node)) in (ADDS, COMPILES)
    }
    if ADDS not in used and any(has_fields(source) for source in sources.all):
        return bool(used)
    if len(used) == 1:
        [(name, (source, node))] = used.items()
        other = ADDS if name != ADDS else COMPILES
        message = f"`{name}` is called here and `{other}` nowhere: take it out and run this again"
        raise RefusedError(at(source, node, message))
    return bool(used)


def _used(source: Source) -> Iterator[ast.expr]:
    """What a file calls, and what it decorates with."""
    yield from (call.func for call in source.syntax.by_type[ast.Call])
    yield from (d for function in source.syntax.functions for d in function.decorator_list)


def _chosen(sources: Sources, around: Sources, options: Options, wanted: Wanted) -> list[tuple[Model, Ready, str]]:
    """The models to compile, each with its place and the name that holds what the parser has read."""
    models = Models(sources, around)
    found = []
    for model in _meant(models, sources.all[0], wanted.model):
        places = models.ready(model)
        if not places:
            message = f"`{model.name}` is built, wrapped or run in one statement: give it statements of their own"
            raise RefusedError(at(model.source, model.made, message))
        for ready in places:
            held = options.held(model.source, ready.anchor)
            if held is None:
                message = f"`{model.name}` is ready here, and {options.told} is not at hand"
                raise RefusedError(at(model.source, ready.anchor, f"{message}: hand it over, by a name of its own"))
            if not model.source.syntax.alone(ready.anchor):
                message = "this line holds several statements: put them on lines"
                raise RefusedError(at(model.source, ready.anchor, message))
            found.append((model, ready, held))
    return found


def _meant(models: Models, script: Source, name: str) -> list[Model]:
    """The models that are called ``name``, or, for "", that are used most like one that is to be compiled."""
    named = [m for m in models.all if m.name == name] or list(models.named(name)) if name else list(models.all)
    if not named:
        what = f"no model is called `{name}`" if name else "no model is built, as far as is seen"
        known = ", ".join(sorted({m.name for m in models.all}))
        hint = f" (there are {known})" if known else ": give the file that builds it, or name it with --model"
        raise RefusedError(Remark(script.path, 0, what + hint))
    named = [m for m in named if not m.returned] or named
    best = max(m.use for m in named)
    used = [m for m in named if m.use == best]
    if not name and (best == 0 or (best == 1 and len({m.name for m in used}) > 1)):
        told = (
            at(m.source, m.made, f"`{m.name}` may be the model: name the one to compile with --model") for m in used
        )
        raise RefusedError(*told)
    return used


def _savers(sources: Sources, wanted: Wanted, edits: defaultdict[str, list[Edit]]) -> Iterator[Remark]:
    for source in sources.all:
        for call in dict.fromkeys(saved_state_dicts(source)):
            edits[source.path].append(Replace(call, Code(f"{wanted.module}.{UNCOMPILE_NAME}({{0}})", (call,))))
            yield at(source, call, "saved without the names that torch.compile gives")


def _import(source: Source, script: Source, wanted: Wanted) -> str:
    """The statement that imports the new module."""
    if any(name == wanted.module for name, _, _ in source.syntax.all_imports) or source.syntax.binds(
        source.syntax.tree, wanted.module
    ):
        raise RefusedError(Remark(source.path, 0, f"`{wanted.module}` is a name here already: choose with --module"))
    return spelled(Spelling(source.path, source.syntax.tree), Spelling(script.path, script.syntax.tree), wanted.module)
