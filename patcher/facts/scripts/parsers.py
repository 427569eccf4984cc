"""The command line that a script reads: its parser, the place for more arguments, and where the outcome is at hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from patcher.facts.scripts.sources import Source, Sources
from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted, last_name
from patcher.facts.values.module_values import imported

_PARSES = frozenset({"parse_args", "parse_intermixed_args"})
_PARSES_SOME = frozenset({"parse_known_args", "parse_known_intermixed_args"})
#: Parsers that take ``add_argument`` and give what they have read as attributes.
_PARSERS = frozenset({"ArgumentParser", "ArgParser"})
#: Classes of which each attribute is an argument.
_NAMESPACES = ("Namespace", "SimpleNamespace")
#: Those that build what they give from classes of their own: an argument more has nowhere to go.
OF_CLASSES = frozenset({"HfArgumentParser"})


@dataclass(frozen=True, eq=False)
class Parser:
    """An ``argparse.ArgumentParser``.

    ``name``: what holds it, as text. ``anchor``: the statement before which arguments can still be added, in the scope
    that makes it. ``after``: whether they come below that statement instead. ``divided``: it has commands of its own.
    """

    source: Source
    call: ast.Call
    name: str
    anchor: ast.stmt
    after: bool
    divided: bool


class CommandLine:
    """The parsers in some files, and the names that hold what they have read.

    ``caller``: files that import these. Of these, only what the caller runs then counts, as far as names tell.
    """

    def __init__(self, sources: Sources, caller: Sources | None = None) -> None:
        self.sources = sources
        self.caller = caller

    @cached_property
    def parsers(self) -> tuple[Parser, ...]:
        """All that are kept under a name."""
        return tuple(p for source in self.sources.all for p in _parsers(source) if self._is_run(source, p.call))

    @cached_property
    def others(self) -> tuple[tuple[Source, ast.Call], ...]:
        """Parsers that build what they give from classes."""
        return tuple(
            (source, call)
            for source, call in self.sources.calls
            if (imported(source.syntax, call.func) or "").rpartition(".")[2] in OF_CLASSES
        )

    @cached_property
    def options(self) -> dict[str, tuple[Source, ast.Call]]:
        """Each option that is added, as ``--name`` with underscores, and each name that holds one; with that call."""
        found: dict[str, tuple[Source, ast.Call]] = {}
        for source, call in self._adding():
            dest = [k.value for k in call.keywords if k.arg == "dest"]
            for given in (*call.args, *dest):
                if isinstance(given, ast.Constant):
                    found.setdefault("--" + str(given.value).lstrip("-").replace("-", "_"), (source, call))
        return found

    @cached_property
    def unknown(self) -> tuple[tuple[Source, ast.Call], ...]:
        """The calls that add an option of which the name is not known."""
        return tuple(
            (source, call)
            for source, call in self._adding()
            if not all(isinstance(e, ast.Constant) for e in call.args)
            or (not call.args and any(k.arg is None for k in call.keywords))
        )

    def _adding(self) -> Iterator[tuple[Source, ast.Call]]:
        for source, call in self.sources.calls:
            if _adds(source, call.func) and self._is_run(source, call):
                yield source, call

    def is_parent(self, parser: Parser) -> bool:
        """Whether another parser has the arguments of this one from it, and is the one that reads (``parents=``)."""
        made = parser.source.syntax.function_of(parser.call)
        names = {parser.name, made.name if made is not None else parser.name}
        return any(
            last_name(e.func if isinstance(e, ast.Call) else e) in names
            for other in self.parsers
            if other is not parser
            for k in other.call.keywords
            if k.arg == "parents" and isinstance(k.value, (ast.List, ast.Tuple))
            for e in k.value.elts
        )

    def is_first(self, source: Source, name: str) -> bool:
        """Whether the parser ``name`` leaves what it does not know to another one, which is the one that reads."""
        return (source, name) in self._firsts

    @cached_property
    def _firsts(self) -> set[tuple[Source, str]]:
        return {
            (source, name)
            for source in self.sources.all
            for statement in source.syntax.by_type[ast.Assign]
            if (name := self._first(source, statement)) is not None
        }

    def _first(self, source: Source, statement: ast.Assign) -> str | None:
        """The parser of which ``statement`` keeps the rest, where another one reads that."""
        match statement.targets, statement.value:
            case [ast.Tuple(elts=[_, rest])], ast.Call(func=ast.Attribute(value=owner)) as call if _is_partial(call):
                name, scope = dotted(owner), source.bindings.scope(statement)
                for c in source.syntax.by_type[ast.Call]:
                    other = isinstance(c.func, ast.Attribute) and c.func.attr in _PARSES | _PARSES_SOME
                    held = dotted(c.func.value) if other and isinstance(c.func, ast.Attribute) else None
                    read = dotted(rest) in map(dotted, (*c.args, *(k.value for k in c.keywords if k.arg == "args")))
                    if held not in (name, None) and read and source.bindings.scope(c) is scope:
                        return name
        return None

    def _is_run(self, source: Source, node: ast.AST) -> bool:
        """Whether the caller may run ``node``: it is no part of a program that the file is besides."""
        if self.caller is None:
            return True
        function = source.syntax.function_of(node)
        return function is not None and function.name in self._called

    @cached_property
    def _called(self) -> set[str]:
        """The names of all that the caller may call in these files."""
        assert self.caller is not None
        found: set[str] = set()
        todo = {name for source in self.caller.all for name in _calls(source.syntax, source.syntax.tree, own=False)}
        while todo:
            found |= todo
            todo = {
                name
                for source, function in self.sources.functions
                if function.name in todo
                for name in _calls(source.syntax, function)
            } - found
        return found

    def at(self, source: Source, statement: ast.stmt) -> str | None:
        """The name that holds what was read where ``statement`` runs; None where none does for sure."""
        scopes: list[ast.AST] = [s for s in source.syntax.around(statement).scopes if not isinstance(s, ast.ClassDef)]
        for scope in scopes:
            for name in sorted(n for at, n in self._holders if at is scope):
                stores = [s for s in self._stores.get((scope, name), ()) if s is not statement]
                if scope is scopes[0] and stores and min(s.lineno for s in stores) > statement.lineno:
                    continue
                if self._is_another(source, scope, name, statement):
                    continue
                if scope is scopes[0] or not any(source.syntax.binds(s, name) for s in scopes[: scopes.index(scope)]):
                    return name
        return None

    def spread(self, caller: CommandLine | None = None) -> Iterator[tuple[Source, ast.Call]]:
        """Calls that get all that was read, each as an argument of its own, and may not take one more.

        ``caller``: the command line of the files that import these, which tells what it is called there.
        """
        names = {name for _, name in (caller or self)._holders}
        for source, call in self.sources.calls:
            for e in (k.value for k in call.keywords if k.arg is None):
                values = source.bindings.values(e) if isinstance(e, ast.Name) else [e]
                whole = [w for v in values if (w := _as_dictionary(v)) is not None]
                read = (self._is_read(source, w, self._holders) or (caller and dotted(w) in names) for w in whole)
                if any(read) and not self._takes_all(call):
                    yield source, call

    def _takes_all(self, call: ast.Call) -> bool:
        if last_name(call.func) in ("dict", "format", "update", *_NAMESPACES):
            return True
        called = self.sources.called(call)
        return bool(called) and all(f.args.kwarg is not None for _, f in called)

    def _is_another(self, source: Source, scope: ast.AST, name: str, at: ast.stmt) -> bool:
        """Whether ``name`` may hold something else at ``at`` than what was read: its scope assigns that as well."""
        syntax = source.syntax
        read = self._stores.get((scope, name), [])
        nodes: list[ast.Name | ast.Attribute] = [*syntax.by_type[ast.Name], *syntax.by_type[ast.Attribute]]
        inside = source.bindings.scope(at) is not scope
        loops = {p for p in syntax.ancestors(at) if isinstance(p, (ast.For, ast.AsyncFor, ast.While))}
        for node in nodes:
            if isinstance(node.ctx, ast.Store) and dotted(node) == name and source.bindings.scope(node) is scope:
                if any(isinstance(p, ast.comprehension) for p in syntax.ancestors(node)):
                    continue
                statement = syntax.statement_of(node)
                again = loops & set(syntax.ancestors(statement))
                if statement in read or (statement.lineno > at.lineno and not inside and not again):
                    continue
                if not _keeps(getattr(statement, "value", None), name):
                    return True
        return False

    @cached_property
    def _stores(self) -> dict[tuple[ast.AST, str], list[ast.stmt]]:
        """The statements that give a name what was read."""
        _ = self._holders
        return self._stored

    @cached_property
    def _holders(self) -> set[tuple[ast.AST, str]]:
        """(scope, name) of all that hold what a parser has read, by assignment and as parameters."""
        held: set[tuple[ast.AST, str]] = set()
        self._stored: dict[tuple[ast.AST, str], list[ast.stmt]] = {}
        self._givers: set[str] = set()
        self._parts: dict[str, set[int]] = {}
        while True:
            self._parts = {
                function.name: places
                for source, function in self.sources.functions
                if (places := self._read_parts(source, function, held))
            }
            self._givers = {
                function.name
                for source, function in self.sources.functions
                if any(self._is_read(source, r.value, held) for r in _returns(source.syntax, function))
            }
            found = {*self._assigned(held), *self._parameters(held)}
            if found <= held:
                return held
            held |= found

    def _assigned(self, held: set[tuple[ast.AST, str]]) -> Iterator[tuple[ast.AST, str]]:
        for source in self.sources.all:
            for statement in source.syntax.by_type[ast.Assign]:
                for target in statement.targets:
                    first = isinstance(target, ast.Tuple) and bool(target.elts) and self._gives_two(statement.value)
                    by = statement.value.func if isinstance(statement.value, ast.Call) else None
                    if isinstance(by, ast.Attribute) and self.is_first(source, dotted(by.value) or ""):
                        continue
                    yield from self._in_parts(source, statement, target)
                    text = dotted(target.elts[0]) if first and isinstance(target, ast.Tuple) else dotted(target)
                    if text is not None and (first or self._is_read(source, statement.value, held)):
                        yield self._noted(source, statement, text)

    def _read_parts(self, source: Source, function: FunctionNode, held: set[tuple[ast.AST, str]]) -> set[int]:
        """The places of what was read in the tuples that ``function`` returns."""
        values = [r.value for r in _returns(source.syntax, function)]
        tuples = [v for v in values if isinstance(v, ast.Tuple)]
        if not tuples or len(tuples) < len(values):
            return set()
        read = ({i for i, e in enumerate(t.elts) if self._is_read(source, e, held)} for t in tuples)
        return set.intersection(*read)

    def _in_parts(self, source: Source, statement: ast.Assign, target: ast.expr) -> Iterator[tuple[ast.AST, str]]:
        """What a tuple is unpacked to that a function has returned, with what was read in it."""
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Call):
            called = self.sources.called(statement.value)
            places = [self._parts.get(f.name, set()) for _, f in called]
            for i in set.intersection(*places) if places else ():
                text = dotted(target.elts[i]) if i < len(target.elts) else None
                if text is not None and not any(isinstance(e, ast.Starred) for e in target.elts):
                    yield self._noted(source, statement, text)

    def _noted(self, source: Source, statement: ast.Assign, text: str) -> tuple[ast.AST, str]:
        """Note that ``statement`` gives the name ``text`` what was read."""
        key = (source.bindings.scope(statement), text)
        if statement not in self._stored.setdefault(key, []):
            self._stored[key].append(statement)
        return key

    def _parameters(self, held: set[tuple[ast.AST, str]]) -> Iterator[tuple[ast.AST, str]]:
        """Parameters to which all calls that are seen give what was read."""
        given: dict[tuple[ast.AST, str], bool] = {}
        for source, call in self.sources.calls:
            for _, function, name, value in self.sources.handed(call):
                key = (function, name)
                given[key] = given.get(key, True) and self._is_read(source, value, held)
        yield from (key for key, always in given.items() if always)

    def _is_read(self, source: Source, e: ast.expr | None, held: set[tuple[ast.AST, str]]) -> bool:
        if e is not None and self._reads(e):
            return True
        if isinstance(e, ast.Call) and any(f.name in self._givers for _, f in self.sources.called(e)):
            return True
        text = dotted(e) if e is not None else None
        if e is None or text is None:
            return False
        scopes = [s for s in source.syntax.around(e).scopes if not isinstance(s, ast.ClassDef)]
        return any((scope, text) in held for scope in scopes)

    def _reads(self, e: ast.expr) -> bool:
        """Whether ``e`` itself reads."""
        if isinstance(e, ast.Subscript) and _is_partial(e.value):
            return isinstance(e.slice, ast.Constant) and e.slice.value == 0
        return isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in _PARSES

    def _gives_two(self, e: ast.expr) -> bool:
        """Whether ``e`` gives what was read first, and something else."""
        return _is_partial(e)


def _keeps(value: ast.expr | None, name: str) -> bool:
    """Whether ``value`` is what ``name`` holds, as far as is seen: a function that is given it gives it back."""
    if not isinstance(value, ast.Call):
        return False
    called = last_name(value.func)
    if called in _NAMESPACES:
        return any(
            k.arg is None and (w := _as_dictionary(k.value)) is not None and dotted(w) == name for k in value.keywords
        )
    given = (*value.args, *(k.value for k in value.keywords))
    return called not in ("vars", "dict") and not called[:1].isupper() and any(dotted(e) == name for e in given)


def _as_dictionary(e: ast.expr) -> ast.expr | None:
    """What ``e`` gives the attributes of, as a dictionary."""
    match e:
        case ast.Call(func=ast.Name(id="vars"), args=[whole]) | ast.Attribute(value=whole, attr="__dict__"):
            return whole
        case ast.Call(func=ast.Name(id="dict"), args=[whole]):
            return _as_dictionary(whole)
        case ast.Call(func=func, args=[whole]) if last_name(func) == "asdict":
            return whole
    return None


def _calls(syntax: Syntax, top: ast.AST, own: bool = True) -> Iterator[str]:
    """The names of what is called in ``top``; ``own``: functions of the same file as well."""
    mine = set() if own else {f.name for f in syntax.functions if isinstance(syntax.parents.get(f), ast.Module)}
    for call in syntax.subtree(top):
        if isinstance(call, ast.Call) and not (isinstance(call.func, ast.Name) and call.func.id in mine):
            yield last_name(call.func)


def _is_partial(e: ast.expr) -> bool:
    return isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in _PARSES_SOME


def _returns(syntax: Syntax, function: ast.AST) -> Iterator[ast.Return]:
    yield from (n for n in syntax.by_type[ast.Return] if syntax.function_of(n) is function)


def _parsers(source: Source) -> Iterator[Parser]:
    syntax = source.syntax
    for call in syntax.by_type[ast.Call]:
        what = imported(syntax, call.func) or ""
        if what.rpartition(".")[2] not in _PARSERS:
            continue
        statement = syntax.parents.get(call)
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        name = dotted(targets[0])
        if name is not None:
            anchor, after = _place(source, statement, name)
            yield Parser(source, call, name, anchor, after, _is_divided(source, name, statement))


def _place(source: Source, made: ast.stmt, name: str) -> tuple[ast.stmt, bool]:
    """Where arguments are added: before it is asked or given away, else below the last that is added to it."""
    syntax = source.syntax
    block = syntax.block_of(made)
    below = block[block.index(made) + 1 :]
    for statement in below:
        if any(_ends(n, name) for n in syntax.subtree(statement)):
            return statement, False
    added = [s for s in below if any(_is_method(n, name, {"add_argument"}) for n in syntax.subtree(s))]
    return (added[-1] if added else made), True


def _ends(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Return) and node.value is not None:
        return any(dotted(n) == name for n in ast.walk(node.value))
    return _is_method(node, name, _PARSES | _PARSES_SOME)


def _is_method(node: ast.AST, name: str, methods: frozenset[str] | set[str]) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in methods and dotted(node.func.value) == name


def _is_divided(source: Source, name: str, made: ast.stmt) -> bool:
    scope = source.bindings.scope(made)
    return any(
        _is_method(call, name, {"add_subparsers"}) and source.bindings.scope(call) is scope
        for call in source.syntax.by_type[ast.Call]
    )


def _adds(source: Source, e: ast.expr, depth: int = 4) -> bool:
    """Whether a call of ``e`` adds an option: the method of a parser or a group, also by another name."""
    if depth == 0:  # as of ``layer = partial(layer, ...)``
        return False
    if isinstance(e, ast.Attribute):
        return e.attr == "add_argument"
    if isinstance(e, ast.Call):
        made = imported(source.syntax, e.func) == "functools.partial"
        return made and bool(e.args) and _adds(source, e.args[0], depth - 1)
    return isinstance(e, ast.Name) and any(_adds(source, v, depth - 1) for v in source.bindings.values(e))
