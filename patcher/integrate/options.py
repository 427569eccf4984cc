"""Where a script gets the options, and what holds them: its parser, or the commands that run a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from patcher.facts.scripts.commands import Command, Commands
from patcher.facts.scripts.configurations import Configuration, Configurations
from patcher.facts.scripts.parsers import CommandLine, Parser
from patcher.facts.scripts.sources import Source, Sources
from patcher.facts.syntax.tree import last_name
from patcher.integrate.remarks import RefusedError, Remark, at
from patcher.rule import Code, Decorate, Edit, Insert

#: The options that the new module adds.
OPTIONS = (
    "--compile",
    "--compile_backend",
    "--compile_mode",
    "--compile_dynamic",
    "--compile_fullgraph",
    "--compile_cache_size_limit",
)
#: What the new module calls the function that adds them.
ADDS = "add_compile_arguments"
#: What the new module calls the function that gives them to a command.
GIVEN = "compile_args"

_SPREAD = "is given every option by its name, and would get the new ones too: hand it those that it knows"

Kind = Literal["argparse", "click", "fields"]

_FIELDS = (
    ("compile", "bool", "False", "compile the repeated blocks of the model with torch.compile"),
    ("compile_backend", "str", '"inductor"', "backend of torch.compile"),
    ("compile_mode", "str", '"default"', "mode of torch.compile: reduce-overhead, max-autotune ..."),
    ("compile_dynamic", "str", '"auto"', "whether sizes are dynamic (auto, true, false); auto: once they change"),
    ("compile_fullgraph", "bool", "False", "fail where a block does not compile as one graph"),
    ("compile_cache_size_limit", "int", "0", "how often one function is compiled (0: as PyTorch has it)"),
)
_NAMES = ", ".join(name for name, *_ in _FIELDS)


@dataclass(frozen=True)
class Options:
    """Where the options go: on ``parser``, else on each command that runs a model, else into a dataclass.

    ``module``: the name of the new one. ``filled``: dataclasses that get them as fields; ``parser`` fills those too
    where there is one.
    """

    module: str
    line: CommandLine
    parser: Parser | None
    commands: Commands
    configurations: Configurations
    filled: tuple[Configuration, ...] = ()

    @property
    def told(self) -> str:
        """What they are read into, in words."""
        if self.parser is None and self.filled:
            return "the configuration"
        return "what the command is given" if self.parser is None else "what the parser has read"

    def held(self, source: Source, statement: ast.stmt) -> str | None:
        """The name that holds them where ``statement`` runs; None where none does for sure."""
        held = self.line.at(source, statement) if self.parser is not None else None
        if held is not None:
            return held
        for configuration in reversed(self.filled):  # what is told of training comes last by custom
            held = self.configurations.holders(configuration).at(source, statement)
            if held is not None:
                return held
        return f"{self.module}.{GIVEN}()" if self.commands.at(source, statement) is not None else None

    def added(self, places: Sequence[tuple[Source, ast.stmt]]) -> Iterator[tuple[Source, Edit, Remark]]:
        """The edits that add them for models at ``places``, each with what to tell of it."""
        if self.parser is not None:
            p = self.parser
            edit = Insert(p.anchor, (Code(f"{self.module}.{ADDS}({p.name})"),), p.after)
            yield p.source, edit, at(p.source, p.call, f"`{p.name}` gets {', '.join(OPTIONS)}")
        for configuration in self._used(places):
            yield self._with_fields(configuration)
        if self.parser is not None or self.filled:
            return
        for command in self._run(places):
            source, function = command.source, command.function
            yield (
                source,
                Decorate(function, Code(f"{self.module}.{ADDS}")),
                at(source, function, f"`{function.name}` gets {', '.join(OPTIONS)}"),
            )

    def _used(self, places: Sequence[tuple[Source, ast.stmt]]) -> list[Configuration]:
        """The dataclasses that get fields: those that the parser fills, else those that are at hand."""
        if self.parser is not None:
            found = list(self.filled)
        else:
            holders = [(c, self.configurations.holders(c)) for c in self.filled]
            last = [next((c for c, h in reversed(holders) if h.at(*place) is not None), None) for place in places]
            found = list(dict.fromkeys(c for c in last if c is not None))
        for configuration in found:
            why = self.configurations.why_not(configuration, tuple(name for name, *_ in _FIELDS))
            if why is not None:
                source, node, message = why
                raise RefusedError(at(source, node, message))
            spread = [
                at(source, call, f"`{ast.unparse(call.func)}` {_SPREAD}")
                for source, call in self.configurations.holders(configuration).spread()
                if last_name(call.func) != configuration.cls.name
            ]
            if spread:
                raise RefusedError(*spread)
        return found

    def _with_fields(self, configuration: Configuration) -> tuple[Source, Edit, Remark]:
        source, cls = configuration.source, configuration.cls
        field = next((n for n, what, _ in source.syntax.all_imports if what == "dataclasses.field"), "")
        told = any(k.arg == "metadata" for call in ast.walk(cls) if isinstance(call, ast.Call) for k in call.keywords)
        codes = [
            Code(f'{name}: {kind} = {field}(default={value}, metadata={{{{"help": "{text}"}}}})')
            if field and told
            else Code(f"{name}: {kind} = {value}  # {text}")
            for name, kind, value, text in _FIELDS
        ]
        edit = Insert(configuration.anchor, tuple(codes), True)
        return source, edit, at(source, cls, f"`{cls.name}` gets {_NAMES}")

    def kind(self) -> Kind:
        """What they are written for."""
        if self.parser is not None:
            return "argparse"
        if self.filled:
            return "fields"
        return "click"

    def _run(self, places: Sequence[tuple[Source, ast.stmt]]) -> list[Command]:
        found = [self.commands.at(*place) for place in places]
        commands = list(dict.fromkeys(c for c in found if c is not None))
        for command in commands:
            _refuse_taken(self.commands.options(command))
            _refuse_command(command)
        return commands


def options_of(module: str, sources: Sources, line: CommandLine, beyond: CommandLine) -> Options:
    """Where the options go; ``module``: the name of the new one. Raises RefusedError."""
    commands = Commands(sources, beyond.sources)
    configurations = Configurations(sources, beyond.sources)
    _refuse_taken(line.options, beyond.options)
    parsers = [p for p in line.parsers if not line.is_parent(p) and not line.is_first(p.source, p.name)]
    if commands.all and parsers:
        message = "a parser besides a command: which one reads --compile is not known"
        raise RefusedError(*(at(p.source, p.call, message) for p in parsers))
    if commands.all:
        return Options(module, line, None, commands, configurations)
    for source, by, cls in configurations.of_the_trainer:
        message = (
            f"`{ast.unparse(cls)}` has `torch_compile` of transformers: its Trainer compiles by that, nothing is added"
        )
        raise RefusedError(at(source, by, message))
    if not parsers and configurations.all:
        return Options(module, line, None, commands, configurations, _given(configurations.all, sources))
    parser = _parser(parsers, line, beyond, sources)
    return Options(module, line, parser, commands, configurations, _spread(line, beyond, configurations, sources))


def _given(found: Sequence[Configuration], sources: Sources) -> tuple[Configuration, ...]:
    """Those that may change; told where none of them may."""
    own = tuple(c for c in found if c.source in sources.all)
    if not own:
        raise RefusedError(
            *(at(c.source, c.cls, f"`{c.cls.name}` is filled by the script: give this file as well") for c in found)
        )
    return own


def _spread(
    line: CommandLine, beyond: CommandLine, configurations: Configurations, sources: Sources
) -> tuple[Configuration, ...]:
    """Dataclasses that are given every option by its name; refused where something else is."""
    found: list[Configuration] = []
    refused: list[Remark] = []
    for source, call in [*line.spread(), *beyond.spread(line)]:
        classes = configurations.named(last_name(call.func)) if source in sources.all else []
        if len(classes) == 1:
            found.append(Configuration(*classes[0], call))
        else:
            refused.append(at(source, call, f"`{ast.unparse(call.func)}` {_SPREAD}"))
    if refused:
        raise RefusedError(*refused)
    distinct = {c.cls: c for c in reversed(found)}
    return _given(tuple(distinct.values()), sources) if distinct else ()


def _refuse_command(command: Command) -> None:
    source, function = command.source, command.function
    for decorator in command.foreign:
        message = (
            f"what `{ast.unparse(decorator)}` gives may not take {', '.join(OPTIONS)}: put it above the command, "
            "or let it hand on all that it is given"
        )
        raise RefusedError(at(source, decorator, message))
    if isinstance(function, ast.AsyncFunctionDef):
        raise RefusedError(
            at(source, function, f"`{function.name}` is asynchronous: call it from a command that is not")
        )


def _parser(parsers: Sequence[Parser], line: CommandLine, beyond: CommandLine, sources: Sources) -> Parser:
    if not parsers:
        raise RefusedError(*without_parser(line, beyond, sources))
    if len(parsers) > 1:
        raise RefusedError(
            *(
                at(p.source, p.call, f"one of {len(parsers)} parsers: which one reads --compile is not known")
                for p in parsers
            )
        )
    for source, call in (*line.unknown, *beyond.unknown):
        message = "which option is added here is not known, and it may be one of the six: name it, or add it elsewhere"
        raise RefusedError(at(source, call, message))
    parser = parsers[0]
    if parser.divided:
        raise RefusedError(
            at(
                parser.source,
                parser.call,
                "this parser has commands of its own, and which one runs the model is not known: give that one a "
                "script with a parser of its own, or add the options and the call there by hand",
            )
        )
    if not parser.source.syntax.alone(parser.anchor):
        raise RefusedError(at(parser.source, parser.anchor, "this line holds several statements: put them on lines"))
    return parser


def without_parser(line: CommandLine, beyond: CommandLine, sources: Sources) -> list[Remark]:
    """What to do where no parser is seen that takes arguments."""
    for source, call in line.others:
        message = f"`{ast.unparse(call.func)}` fills classes: give one of them the fields {_NAMES}, and compile by them"
        return [at(source, call, message)]
    if beyond.parsers:
        return [at(p.source, p.call, "the parser is made here: give this file as well") for p in beyond.parsers]
    message = (
        "no argparse.ArgumentParser is made here: give the file that makes it as well; a script without one, as of "
        f"typer, fire or jsonargparse, needs settings of its own ({_NAMES}), and where the model is ready "
        "`if` the first is set `model.compile()`"
    )
    return [Remark(sources.all[0].path, 0, message)]


def _refuse_taken(*found: Mapping[str, tuple[Source, ast.AST]]) -> None:
    for options in found:
        for option in OPTIONS:
            if option in options:
                source, node = options[option]
                message = f"{option} is an option already: what it does is left to it; nothing is added"
                raise RefusedError(at(source, node, message))


def has_fields(source: Source) -> bool:
    """Whether a class of the file has all six of them."""
    names = {name for name, *_ in _FIELDS}
    return any(
        names <= {s.target.id for s in cls.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
        for cls in source.syntax.by_type[ast.ClassDef]
    )
