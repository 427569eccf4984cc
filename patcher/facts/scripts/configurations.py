"""Configurations of a script that are dataclasses: what fills them, and what holds them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from patcher.facts.scripts.parsers import CommandLine
from patcher.facts.scripts.sources import Source, Sources
from patcher.facts.syntax.tree import FunctionNode, dotted, last_name
from patcher.facts.values.module_values import imported

#: Functions that give an instance of the class that is their first argument, or the one of this name.
_FILLS = {
    "tyro.cli": "f",
    "draccus.parse": "config_class",
    "draccus.argparsing.parse": "config_class",
    "pyrallis.parse": "config_class",
    "simple_parsing.parse": "config_class",
}
#: Decorators that do so for the first parameter of a function.
_WRAPS = frozenset({"draccus.wrap", "pyrallis.wrap"})
_FILLS_SEVERAL = "HfArgumentParser"
_GIVES_SEVERAL = frozenset({"parse_args_into_dataclasses", "parse_json_file", "parse_yaml_file", "parse_dict"})
#: The class, and those of the same kind, by which the Trainer of transformers is told to compile.
_TRAINER = "TrainingArguments"
#: Where a base class may be from that has no fields.
_WITHOUT_FIELDS = frozenset({"abc", "typing", "collections", "draccus", "object"})


@dataclass(frozen=True, eq=False)
class Configuration:
    """A dataclass that a command line or a file fills. ``by``: a call or decorator that does so."""

    source: Source
    cls: ast.ClassDef
    by: ast.expr

    @property
    def anchor(self) -> ast.stmt:
        """The statement of the class below which fields can be added: the last field, with the text about it."""
        body = self.cls.body
        last = max((i for i, s in enumerate(body) if isinstance(s, ast.AnnAssign)), default=0)
        following = body[last + 1] if last + 1 < len(body) else None
        return following if following is not None and _is_text(following) else body[last]


class Configurations:
    """The dataclasses that are filled in some files. ``around``: files that may define them."""

    def __init__(self, sources: Sources, around: Sources) -> None:
        self.sources = sources
        self.around = around

    @cached_property
    def all(self) -> tuple[Configuration, ...]:
        """Each once, in the order in which they are filled; also those of the files around."""
        found: dict[ast.ClassDef, Configuration] = {}
        for _, by, e in self._filled():
            for source, cls in self.named(last_name(e)):
                found.setdefault(cls, Configuration(source, cls, by))
        return tuple(found.values())

    @cached_property
    def of_the_trainer(self) -> tuple[tuple[Source, ast.expr, ast.expr], ...]:
        """What fills the arguments of the Trainer of transformers, and that class, or one that is derived from it."""
        return tuple(
            (source, by, e)
            for source, by, e in self._filled()
            for base in (e, *(b for _, cls in self.named(last_name(e)) for b in cls.bases))
            if (imported(source.syntax, base) or last_name(base)).rpartition(".")[2].endswith(_TRAINER)
        )

    def named(self, name: str) -> list[tuple[Source, ast.ClassDef]]:
        """The dataclasses of that name."""
        return [
            (source, cls)
            for source in (*self.sources.all, *self.around.all)
            for cls in source.syntax.by_type[ast.ClassDef]
            if cls.name == name and _is_dataclass(source, cls)
        ]

    def holders(self, configuration: Configuration) -> Held:
        """Where an instance of it is at hand."""
        calls: dict[ast.AST, int | None] = {}
        for source, by, e in self._filled():
            if last_name(e) == configuration.cls.name and isinstance(by, ast.Call):
                parser = imported(source.syntax, by.func) or ""
                if parser.rpartition(".")[2] != _FILLS_SEVERAL:
                    calls[by] = None
                    continue
                position = [last_name(c) for c in _classes(by)].index(configuration.cls.name)
                for call in source.syntax.by_type[ast.Call]:
                    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _GIVES_SEVERAL:
                        continue
                    if by in source.bindings.values(call.func.value) or call.func.value is by:
                        calls[call] = position
        if isinstance(configuration.by, ast.Call) and last_name(configuration.by.func) == configuration.cls.name:
            calls[configuration.by] = None
        return Held(self.sources, configuration.cls.name, calls)

    def why_not(self, configuration: Configuration, names: tuple[str, ...]) -> tuple[Source, ast.AST, str] | None:
        """What speaks against fields ``names`` with defaults at the end of the class; None where nothing does."""
        source, cls = configuration.source, configuration.cls
        return self._taken(source, cls, names) or self._by_order(cls)

    def _taken(self, source: Source, cls: ast.ClassDef, names: tuple[str, ...]) -> tuple[Source, ast.AST, str] | None:
        """What has one of ``names`` already, in the class or what it is derived from."""
        for statement in cls.body:
            for name in names:
                bound = [getattr(statement, "name", ""), *(dotted(t) or "" for t in _targets(statement))]
                if name in bound:
                    return source, statement, f"`{name}` is something else in `{cls.name}` already"
        for base in cls.bases:
            known = self.named(last_name(base)) or self._plain(last_name(base))
            package = (imported(source.syntax, base) or dotted(base) or "").partition(".")[0]
            if not known and package not in _WITHOUT_FIELDS:
                return (
                    source,
                    base,
                    f"what `{ast.unparse(base)}` has is not seen: give the file that defines it as well",
                )
            for other, base_cls in known:
                inner = self._taken(other, base_cls, names)
                if inner is not None:
                    return inner
        return None

    def _by_order(self, cls: ast.ClassDef) -> tuple[Source, ast.AST, str] | None:
        """A class derived from ``cls`` that would change with a field more."""
        for other in (*self.sources.all, *self.around.all):
            for below in other.syntax.by_type[ast.ClassDef]:
                if cls.name in [last_name(b) for b in below.bases] and _is_dataclass(other, below):
                    fields = [s for s in below.body if isinstance(s, ast.AnnAssign)]
                    given = [c for c in other.syntax.by_type[ast.Call] if last_name(c.func) == below.name and c.args]
                    if given or any(f.value is None for f in fields):
                        return other, below, f"`{below.name}` has fields behind those of `{cls.name}`, by their order"
        return None

    def _plain(self, name: str) -> list[tuple[Source, ast.ClassDef]]:
        return [
            (source, cls)
            for source in (*self.sources.all, *self.around.all)
            for cls in source.syntax.by_type[ast.ClassDef]
            if cls.name == name
        ]

    def _filled(self) -> Iterator[tuple[Source, ast.expr, ast.expr]]:
        """What fills a class, and that class."""
        for source in self.sources.all:
            for call in source.syntax.by_type[ast.Call]:
                what = imported(source.syntax, call.func) or ""
                if what.rpartition(".")[2] == _FILLS_SEVERAL:
                    yield from ((source, call, e) for e in _classes(call))
                elif what in _FILLS:
                    given = call.args[:1] or [k.value for k in call.keywords if k.arg == _FILLS[what]]
                    yield from ((source, call, e) for e in given)
            for function in source.syntax.functions:
                for decorator in function.decorator_list:
                    first = [*function.args.posonlyargs, *function.args.args][:1]
                    if first and first[0].annotation is not None and self._wraps(source, decorator):
                        yield source, decorator, first[0].annotation

    def _wraps(self, source: Source, decorator: ast.expr) -> bool:
        """Whether ``decorator`` fills the first parameter, also by a function of the files around."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if imported(source.syntax, called) in _WRAPS:
            return True
        *_, module, name = ("", "", *(imported(source.syntax, called) or "").split("."))
        return any(
            function.name == name
            and other.path.replace("\\", "/").endswith(f"{module}.py")
            and _parses(other, function)
            for other in (*self.sources.all, *self.around.all)
            for function in other.syntax.functions
        )


class Held(CommandLine):
    """Where an instance of a class is at hand. ``calls``: what gives one, or a tuple with its place there."""

    def __init__(self, sources: Sources, cls: str, calls: dict[ast.AST, int | None]) -> None:
        super().__init__(sources)
        self._cls = cls
        self._calls_that_give = calls

    def _reads(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Constant):
            position = self._calls_that_give.get(e.value)
            return position is not None and e.slice.value == position
        return e in self._calls_that_give and self._calls_that_give[e] is None

    def _gives_two(self, e: ast.expr) -> bool:
        return False

    def _in_parts(self, source: Source, statement: ast.Assign, target: ast.expr) -> Iterator[tuple[ast.AST, str]]:
        position = self._calls_that_give.get(statement.value)
        if position is not None and isinstance(target, (ast.Tuple, ast.List)) and position < len(target.elts):
            text = dotted(target.elts[position])
            if text is not None and not any(isinstance(e, ast.Starred) for e in target.elts[:position]):
                yield self._noted(source, statement, text)
            return
        yield from super()._in_parts(source, statement, target)

    def _parameters(self, held: set[tuple[ast.AST, str]]) -> Iterator[tuple[ast.AST, str]]:
        for _, function in self.sources.functions:
            for parameter in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
                if parameter.annotation is not None and _named(parameter.annotation) == self._cls:
                    yield function, parameter.arg
        yield from super()._parameters(held)


def _named(annotation: ast.expr) -> str:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value.rpartition(".")[2]
    return last_name(annotation) if dotted(annotation) is not None else ""


def _classes(call: ast.Call) -> list[ast.expr]:
    """The classes that a parser of several is made for."""
    given = call.args[:1] or [k.value for k in call.keywords if k.arg == "dataclass_types"]
    return [e for g in given for e in (g.elts if isinstance(g, (ast.Tuple, ast.List)) else [g])]


def _is_dataclass(source: Source, cls: ast.ClassDef) -> bool:
    made = (d.func if isinstance(d, ast.Call) else d for d in cls.decorator_list)
    return any(imported(source.syntax, d) == "dataclasses.dataclass" for d in made)


def _parses(source: Source, function: FunctionNode) -> bool:
    calls = (n for n in source.syntax.subtree(function) if isinstance(n, ast.Call))
    return any(imported(source.syntax, call.func) in _FILLS for call in calls)


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, ast.AnnAssign) else []


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
