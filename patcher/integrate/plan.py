"""What integrating a script comes to: edits and a new file, or the reasons why nothing is written."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from patcher.facts.scripts.imports import Spelling, spelled
from patcher.facts.scripts.models import Model, Models, Ready
from patcher.facts.scripts.parsers import CommandLine, Parser
from patcher.facts.scripts.savers import saved_state_dicts
from patcher.facts.scripts.sources import Source, Sources
from patcher.facts.syntax.tree import last_name
from patcher.facts.values.compile_calls import CompileCall, compile_calls
from patcher.rule import Code, Edit, Insert, Replace
from patcher.state_dict_source import UNCOMPILE_NAME

#: The options that the new module adds.
OPTIONS = (
    "--compile",
    "--compile_backend",
    "--compile_mode",
    "--compile_dynamic",
    "--compile_fullgraph",
    "--compile_cache_size_limit",
)
#: Options of scripts that compile in another way.
_OTHER_OPTIONS = ("--torch_compile", "--dynamo_backend", "--use_compile", "--compile_model", "--enable_compile")
ADDS, COMPILES = "add_compile_arguments", "compile_model"


@dataclass(frozen=True)
class Remark:
    """One thing to tell of a place; ``line`` 0: of the file."""

    path: str
    line: int
    message: str


@dataclass(frozen=True)
class Change:
    """What becomes of a file. ``imports``: the statement that imports the new module."""

    edits: tuple[Edit, ...]
    imports: str


@dataclass(frozen=True)
class Plan:
    """``changes``: by path. ``refused``: why nothing is written; () when something is, or nothing is to do.

    ``told``: what is written where, and what else the user should know. ``done``: it was integrated before.
    """

    changes: Mapping[str, Change] = field(default_factory=dict)
    refused: tuple[Remark, ...] = ()
    told: tuple[Remark, ...] = ()
    done: bool = False


class _RefusedError(Exception):
    """The script cannot be integrated; the remarks say why, and what to do."""

    def __init__(self, *remarks: Remark) -> None:
        super().__init__(remarks)
        self.remarks = remarks


def planned(files: Sequence[tuple[str, ast.Module]], around: Sequence[tuple[str, ast.Module]], wanted: Wanted) -> Plan:
    """The plan for ``files``, the script first. ``around``: what they import, which is read only."""
    sources, surroundings = Sources.of(files), Sources.of(around)
    try:
        return _planned(sources, surroundings, wanted)
    except _RefusedError as why:
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
    line, beyond = CommandLine(sources), CommandLine(surroundings, sources)
    _refuse_options(line, beyond)
    compiled = _compiled(sources)
    if compiled and not line.parsers:
        raise _RefusedError(*_without_parser(line, beyond, sources), *_told_compiled(compiled))
    if compiled:
        raise _RefusedError(*_told_compiled(compiled))
    parser = _parser(line, beyond, sources)
    _refuse_spread(line, beyond)
    chosen = _chosen(sources, surroundings, line, wanted)
    edits: defaultdict[str, list[Edit]] = defaultdict(list)
    told: list[Remark] = []
    adds = f"{wanted.module}.{ADDS}({parser.name})"
    edits[parser.source.path].append(Insert(parser.anchor, (Code(adds),), parser.after))
    told.append(_at(parser.source, parser.call, f"`{parser.name}` gets {', '.join(OPTIONS)}"))
    for place, models in _by_place(chosen).items():
        calls = [f"    {wanted.module}.{COMPILES}({holds}, {place.held})" for _, holds in models]
        text = "\n".join([f"if {place.held}.compile:", *calls]).replace("{", "{{").replace("}", "}}")
        edits[place.source.path].append(Insert(place.anchor, (Code(text),), place.after))
        names = " and ".join(f"`{model.name}`" for model, _ in models)
        where = "below" if place.after else "above"
        told.append(_at(place.source, place.anchor, f"{names} compiled {where} this with --compile"))
    told += [
        _at(model.source, s, f"`{model.name}` is another model from here on, which is not compiled")
        for model, ready, _ in chosen
        for s in ready.again
    ]
    told += _savers(sources, wanted, edits)
    told += [
        _at(source, call, f"{option} compiles in another way: with --compile it is an error")
        for cl in (line, beyond)
        for option, (source, call) in cl.options.items()
        if option in _OTHER_OPTIONS[:1]
    ]
    changed = {
        source.path: Change(tuple(e), _import(source, sources.all[0], wanted))
        for source in sources.all
        if (e := edits[source.path])
    }
    return Plan(changed, told=tuple(told))


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


def _at(source: Source, node: ast.AST, message: str) -> Remark:
    return Remark(source.path, getattr(node, "lineno", 0), message)


def _is_done(sources: Sources) -> bool:
    """Whether the script has the arguments and the call; refused when it has one of them only."""
    calls = {
        name: (source, call)
        for source in sources.all
        for call in source.syntax.by_type[ast.Call]
        if (name := last_name(call.func)) in (ADDS, COMPILES)
    }
    if len(calls) == 1:
        [(name, (source, call))] = calls.items()
        other = ADDS if name == COMPILES else COMPILES
        raise _RefusedError(
            _at(source, call, f"`{name}` is called here and `{other}` nowhere: take it out and run this again")
        )
    return len(calls) == 2


def _parser(line: CommandLine, beyond: CommandLine, sources: Sources) -> Parser:
    found = [p for p in line.parsers if not line.is_parent(p)]
    if not found:
        raise _RefusedError(*_without_parser(line, beyond, sources))
    if len(found) > 1:
        raise _RefusedError(
            *(
                _at(p.source, p.call, f"one of {len(found)} parsers: which one reads --compile is not known")
                for p in found
            )
        )
    parser = found[0]
    if parser.divided:
        raise _RefusedError(
            _at(parser.source, parser.call, "this parser has commands of its own: which one is not known")
        )
    if not parser.source.syntax.alone(parser.anchor):
        raise _RefusedError(_at(parser.source, parser.anchor, "this line holds several statements: put them on lines"))
    return parser


def _without_parser(line: CommandLine, beyond: CommandLine, sources: Sources) -> list[Remark]:
    """What to do where no parser is seen that takes arguments."""
    for source, call in line.others:
        message = (
            f"`{ast.unparse(call.func)}` fills classes: give one of them the fields {_fields()}, and compile by them"
        )
        return [_at(source, call, message)]
    if beyond.parsers:
        return [_at(p.source, p.call, "the parser is made here: give this file as well") for p in beyond.parsers]
    message = (
        "no argparse.ArgumentParser is made here: give the file that makes it as well; a script without one needs a "
        "setting of its own, and `if` it is set a call that compiles"
    )
    return [Remark(sources.all[0].path, 0, message)]


def _fields() -> str:
    return ", ".join(option.removeprefix("--") for option in OPTIONS)


def _refuse_options(*lines: CommandLine) -> None:
    for line in lines:
        for option in OPTIONS:
            if option in line.options:
                source, call = line.options[option]
                raise _RefusedError(
                    _at(source, call, f"{option} is an option already: what it does is left to it; nothing is added")
                )


def _refuse_spread(line: CommandLine, beyond: CommandLine) -> None:
    spread = [*line.spread(), *beyond.spread(line)]
    if spread:
        message = "is given every option by its name, and would get the new ones too: hand it those that it knows"
        raise _RefusedError(*(_at(source, call, f"`{ast.unparse(call.func)}` {message}") for source, call in spread))


def _compiled(sources: Sources) -> list[tuple[Source, CompileCall]]:
    kinds = ("call", "in place", "decorator", "factory", "library")
    return [(source, call) for source in sources.all for call in compile_calls(source.syntax) if call.kind in kinds]


def _told_compiled(compiled: list[tuple[Source, CompileCall]]) -> list[Remark]:
    return [
        _at(source, call.node, f"`{call.what}` compiles here already: `fix-compile check` tells of such calls")
        for source, call in compiled
    ]


def _chosen(sources: Sources, around: Sources, line: CommandLine, wanted: Wanted) -> list[tuple[Model, Ready, str]]:
    """The models to compile, each with its place and the name that holds what the parser has read."""
    models = Models(sources, around)
    script = sources.all[0]
    named = [m for m in models.all if not wanted.model or m.name == wanted.model]
    if wanted.model and not named:
        named = list(models.named(wanted.model))
    if not named:
        what = f"no model is called `{wanted.model}`" if wanted.model else "no model is built, as far as is seen"
        known = sorted({m.name for m in models.all})
        hint = (
            f" (there are {', '.join(known)})" if known else ": give the file that builds it, or name it with --model"
        )
        raise _RefusedError(Remark(script.path, 0, what + hint))
    named = [m for m in named if not m.returned] or named
    best = max(m.use for m in named)
    used = [m for m in named if m.use == best]
    if not wanted.model and (best == 0 or (best == 1 and len({m.name for m in used}) > 1)):
        raise _RefusedError(
            *(_at(m.source, m.made, f"`{m.name}` may be the model: name the one to compile with --model") for m in used)
        )
    found = []
    for model in used:
        places = models.ready(model)
        if not places:
            message = f"`{model.name}` is built, wrapped or run in one statement: give it statements of their own"
            raise _RefusedError(_at(model.source, model.made, message))
        for ready in places:
            held = line.at(model.source, ready.anchor)
            if held is None:
                message = (
                    f"`{model.name}` is ready here, and what the parser has read is not at hand: hand it over, "
                    "by a name of its own"
                )
                raise _RefusedError(_at(model.source, ready.anchor, message))
            if not model.source.syntax.alone(ready.anchor):
                raise _RefusedError(
                    _at(model.source, ready.anchor, "this line holds several statements: put them on lines")
                )
            found.append((model, ready, held))
    return found


def _savers(sources: Sources, wanted: Wanted, edits: defaultdict[str, list[Edit]]) -> Iterator[Remark]:
    for source in sources.all:
        for call in dict.fromkeys(saved_state_dicts(source)):
            edits[source.path].append(Replace(call, Code(f"{wanted.module}.{UNCOMPILE_NAME}({{0}})", (call,))))
            yield _at(source, call, "saved without the names that torch.compile gives")


def _import(source: Source, script: Source, wanted: Wanted) -> str:
    """The statement that imports the new module."""
    if any(name == wanted.module for name, _, _ in source.syntax.all_imports) or source.syntax.binds(
        source.syntax.tree, wanted.module
    ):
        raise _RefusedError(Remark(source.path, 0, f"`{wanted.module}` is a name here already: choose with --module"))
    return spelled(Spelling(source.path, source.syntax.tree), Spelling(script.path, script.syntax.tree), wanted.module)
