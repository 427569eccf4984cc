"""Where a script gets the options, and what holds them: its parser, or the commands that run a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from patcher.facts.scripts.commands import Command, Commands
from patcher.facts.scripts.parsers import CommandLine, Parser
from patcher.facts.scripts.sources import Source, Sources
from patcher.integrate.remarks import RefusedError, Remark, at
from patcher.rule import AddParameter, Code, Decorate, Edit, Insert

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
#: The parameter by which a command gets them.
GIVEN = "compile_args"

Kind = Literal["argparse", "click", "typer"]


@dataclass(frozen=True)
class Options:
    """Where the options go: on ``parser``, else on each command that runs a model."""

    line: CommandLine
    parser: Parser | None
    commands: Commands

    @property
    def told(self) -> str:
        """What they are read into, in words."""
        return "what the command is given" if self.parser is None else "what the parser has read"

    def held(self, source: Source, statement: ast.stmt) -> str | None:
        """The name that holds them where ``statement`` runs; None where none does for sure."""
        if self.parser is not None:
            return self.line.at(source, statement)
        return GIVEN if self.commands.at(source, statement) is not None else None

    def added(
        self, places: Sequence[tuple[Source, ast.stmt]], module: str, defaults: Mapping[str, object]
    ) -> Iterator[tuple[Source, Edit, Remark]]:
        """The edits that add them for models at ``places``, each with what to tell of it."""
        if self.parser is not None:
            p = self.parser
            given = ", ".join([p.name, *(f"{name}={_quoted(value)}" for name, value in defaults.items())])
            edit = Insert(p.anchor, (Code(f"{module}.{ADDS}({given})"),), p.after)
            yield p.source, edit, at(p.source, p.call, f"`{p.name}` gets {', '.join(OPTIONS)}")
            return
        for command in self._run(places):
            source, function = command.source, command.function
            yield (
                source,
                Decorate(function, Code(f"{module}.{ADDS}")),
                at(source, function, f"`{function.name}` gets {', '.join(OPTIONS)}"),
            )
            yield (
                source,
                AddParameter(function, Code(GIVEN)),
                at(source, function, f"and all that it is given as attributes of `{GIVEN}`"),
            )

    def kind(self, places: Sequence[tuple[Source, ast.stmt]]) -> Kind:
        """What they are written for."""
        if self.parser is not None:
            return "argparse"
        libraries = {c.library for c in self._run(places)}
        if len(libraries) > 1:
            raise RefusedError(
                *(at(c.source, c.function, f"a command of {c.library}: the others are none") for c in self._run(places))
            )
        return libraries.pop()

    def _run(self, places: Sequence[tuple[Source, ast.stmt]]) -> list[Command]:
        found = [self.commands.at(*place) for place in places]
        commands = list(dict.fromkeys(c for c in found if c is not None))
        for command in commands:
            _refuse_taken(self.commands.options(command))
            _refuse_command(command)
        return commands


def options_of(sources: Sources, line: CommandLine, beyond: CommandLine) -> Options:
    """Where the options go. Raises RefusedError."""
    commands = Commands(sources, beyond.sources)
    _refuse_taken(line.options, beyond.options)
    parsers = [p for p in line.parsers if not line.is_parent(p) and not line.is_first(p.source, p.name)]
    if commands.all and parsers:
        where = [
            at(p.source, p.call, "a parser besides a command: which one reads --compile is not known") for p in parsers
        ]
        raise RefusedError(*where)
    if commands.all:
        return Options(line, None, commands)
    return Options(line, _parser(parsers, line, beyond, sources), commands)


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
    if why := source.syntax.why_names_show(function):
        raise RefusedError(at(source, function, f"{why}, and would see `{GIVEN}`: name those that are meant"))
    if GIVEN in source.syntax.names_in(function) or source.syntax.binds(function, GIVEN):
        raise RefusedError(at(source, function, f"`{GIVEN}` is a name here already: call that otherwise"))


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
    parser = parsers[0]
    if parser.divided:
        raise RefusedError(
            at(parser.source, parser.call, "this parser has commands of its own: which one is not known")
        )
    if not parser.source.syntax.alone(parser.anchor):
        raise RefusedError(at(parser.source, parser.anchor, "this line holds several statements: put them on lines"))
    return parser


def without_parser(line: CommandLine, beyond: CommandLine, sources: Sources) -> list[Remark]:
    """What to do where no parser is seen that takes arguments."""
    for source, call in line.others:
        fields = ", ".join(option.removeprefix("--") for option in OPTIONS)
        message = f"`{ast.unparse(call.func)}` fills classes: give one of them the fields {fields}, and compile by them"
        return [at(source, call, message)]
    if beyond.parsers:
        return [at(p.source, p.call, "the parser is made here: give this file as well") for p in beyond.parsers]
    message = (
        "no argparse.ArgumentParser is made here: give the file that makes it as well; a script without one needs a "
        "setting of its own, and `if` it is set a call that compiles"
    )
    return [Remark(sources.all[0].path, 0, message)]


def _refuse_taken(*found: Mapping[str, tuple[Source, ast.AST]]) -> None:
    for options in found:
        for option in OPTIONS:
            if option in options:
                source, node = options[option]
                message = f"{option} is an option already: what it does is left to it; nothing is added"
                raise RefusedError(at(source, node, message))


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
