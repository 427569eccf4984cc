"""Scripts that compile already: what they do stays the default, or excludes what is new."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patcher.facts.scripts.sources import Source, Sources
from patcher.facts.syntax.tree import dotted
from patcher.facts.values.compile_calls import LIBRARY_KEYWORDS, CompileCall, compile_calls
from patcher.facts.values.module_values import imported, parameter
from patcher.integrate.options import OPTIONS, Options
from patcher.integrate.remarks import RefusedError, Remark, at
from patcher.rule import Code, Edit, Enclose, Replace

#: What the new module calls the function that gives the arguments of torch.compile.
ARGUMENTS = "compile_options"
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_KINDS = ("call", "in place", "decorator", "factory", "library")
_USUAL = {"backend": "inductor", "mode": "default", "dynamic": "auto", "fullgraph": False}
_OFF = ("no", "none", "false", "")
_DYNAMIC = {True: "true", False: "false"}


@dataclass(frozen=True, eq=False)
class Place:
    """A call that compiles. ``flags``: options of the script that it depends on, by their names as attributes."""

    source: Source
    call: CompileCall
    flags: tuple[str, ...]


def compiling(sources: Sources) -> list[tuple[Source, CompileCall]]:
    """What compiles in the files, or has a library do so."""
    return [(source, call) for source in sources.all for call in compile_calls(source.syntax) if call.kind in _KINDS]


def told(compiled: Sequence[tuple[Source, CompileCall]]) -> list[Remark]:
    """That a script compiles already."""
    return [
        at(source, call.node, f"`{call.what}` compiles here already: `fix-compile check` tells of such calls")
        for source, call in compiled
    ]


def placed(compiled: Sequence[tuple[Source, CompileCall]], options: Options) -> tuple[list[Place], list[Place]]:
    """Those that compile whatever the command line says, and those that it governs. Raises RefusedError."""
    always: list[Place] = []
    governed: list[Place] = []
    for source, call in compiled:
        flags: list[str] = []
        for test in _tests(source, call.node):
            found = _flags(source, test, options)
            if found is None:
                message = (
                    f"`{call.what}` compiles here if `{ast.unparse(test)}`: whether an option says so is not known"
                )
                raise RefusedError(at(source, call.node, message))
            flags += found
        if any(f"--{flag}" in OPTIONS for flag in flags):
            raise RefusedError(*told([(source, call)]))
        said = call.kind == "library" and not flags and _is_said(source, call, options, flags)
        (governed if flags or said else always).append(Place(source, call, tuple(dict.fromkeys(flags))))
    return always, governed


def guarded(places: Sequence[Place], options: Options, module: str) -> Iterator[tuple[Source, Edit, Remark]]:
    """The edits by which calls that always compile do so with ``--compile``, and as its options say."""
    for place in places:
        source, call = place.source, place.call
        node = call.node
        if not isinstance(node, ast.Call) or not _is_plain(source, call):
            raise RefusedError(*told([(source, call)]))
        statement = source.syntax.statement_of(node)
        held = options.held(source, statement) if options.parser is not None else None
        if held is None:
            message = (
                f"`{call.what}` compiles here already, and {options.told} is not at hand: hand it over, "
                "by a name of its own"
            )
            raise RefusedError(at(source, node, message))
        new = _with_options(node, f"{module}.{ARGUMENTS}({held})")
        if _is_whole(statement, node, call):
            if not source.syntax.alone(statement):
                raise RefusedError(at(source, node, "this line holds several statements: put them on lines"))
            yield source, Enclose((statement,), Code(f"if {held}.compile:")), _told(place, held)
            yield source, Replace(node, new), _told(place, held)
        elif call.kind == "call" and isinstance(call.target, ast.expr) and dotted(call.target) is not None:
            either = Code(f"{{0}} if {held}.compile else {{1}}", (new, call.target))
            yield source, Replace(node, either), _told(place, held)
        else:
            raise RefusedError(
                at(source, node, "this compiles within another expression: give it a statement of its own")
            )


def defaults(places: Sequence[Place]) -> dict[str, object]:
    """The defaults of the options with which ``places`` do what they did. Raises RefusedError."""
    each = [_arguments(place) for place in places]
    if any(one != each[0] for one in each):
        message = "compiles here with other arguments than elsewhere: one set of options cannot say both"
        raise RefusedError(*(at(p.source, p.call.node, f"`{p.call.what}` {message}") for p in places))
    return {"compile": True, **{f"compile_{k}": v for k, v in each[0].items() if v != _USUAL[k]}}


def refuse_twice(places: Sequence[Place]) -> None:
    """Raise RefusedError where what is compiled was compiled before."""
    for number, later in enumerate(places):
        for first in places[:number]:
            if first.source is later.source and _is_again(first, later):
                source, node = later.source, later.call.node
                line = first.call.node.lineno
                message = f"`{later.call.what}` compiles again what is compiled in line {line}: keep one of the two"
                raise RefusedError(at(source, node, message))


def _is_again(first: Place, later: Place) -> bool:
    """Whether ``later`` compiles what ``first`` has left compiled, a few statements below it."""
    syntax = first.source.syntax
    one, other = (syntax.statement_of(place.call.node) for place in (first, later))
    name = _name(later.call.target)
    block = syntax.block_of(one)
    if name is None or block is not syntax.block_of(other) or name != _left_compiled(first, one):
        return False
    between = block[block.index(one) + 1 : block.index(other)]
    return not any(
        name == dotted(n)
        for statement in between
        for n in ast.walk(statement)
        if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, (ast.Store, ast.Del))
    )


def _left_compiled(place: Place, statement: ast.stmt) -> str | None:
    """The name that holds what is compiled."""
    if place.call.kind == "in place":
        return _name(place.call.target)
    if isinstance(statement, ast.Assign) and statement.value is place.call.node and len(statement.targets) == 1:
        return dotted(statement.targets[0])
    return None


def _name(target: object) -> str | None:
    return dotted(target) if isinstance(target, ast.expr) else None


def refuse_unwrapping(sources: Sources) -> None:
    """Raise RefusedError where something asks for the part that only a compiled model has."""
    for source in sources.all:
        for node in source.syntax.by_type[ast.Attribute]:
            if node.attr == "_orig_mod":
                message = (
                    "`_orig_mod` is asked for here: where --no-compile is given there is none; ask `getattr` for it"
                )
                raise RefusedError(at(source, node, message))


def _told(place: Place, held: str) -> Remark:
    return at(place.source, place.call.node, f"compiles if `{held}.compile`, which is the default")


def _is_plain(source: Source, call: CompileCall) -> bool:
    """Whether the arguments that count stand in the call itself."""
    node = call.node
    assert isinstance(node, ast.Call)
    if call.kind == "in place":
        return all(k.arg is not None for k in node.keywords)
    direct = imported(source.syntax, node.func) == "torch.compile"
    return call.kind == "call" and direct and all(k.arg is not None for k in node.keywords)


def _is_whole(statement: ast.stmt, node: ast.Call, call: CompileCall) -> bool:
    """Whether the statement does nothing else, and without it the model is what it was."""
    if call.kind == "in place":
        return isinstance(statement, ast.Expr) and statement.value is node
    if not isinstance(statement, ast.Assign) or statement.value is not node or len(statement.targets) != 1:
        return False
    target, compiled = dotted(statement.targets[0]), call.target
    return target is not None and isinstance(compiled, ast.expr) and dotted(compiled) == target


def _with_options(node: ast.Call, options: str) -> Code:
    """The call with ``options`` for the arguments that they hold."""
    parts: list[ast.expr] = [node.func]
    said: list[str] = []
    for argument in node.args:
        said.append(f"{{{len(parts)}}}")
        parts.append(argument)
    for keyword in node.keywords:
        if keyword.arg not in _USUAL:
            said.append(f"{keyword.arg}={{{len(parts)}}}")
            parts.append(keyword.value)
    return Code(f"{{0}}({', '.join([*said, f'**{options}'])})", tuple(parts))


def _arguments(place: Place) -> dict[str, object]:
    found: dict[str, object] = dict(_USUAL)
    for name, value in place.call.arguments:
        if name not in _USUAL:
            continue
        known = isinstance(value, ast.Constant)
        given = value.value if isinstance(value, ast.Constant) else None
        if known and given is not None:
            found[name] = _DYNAMIC.get(given, given) if name == "dynamic" and isinstance(given, bool) else given
        if (
            not known
            or not isinstance(found[name], type(_USUAL[name]))
            or (name == "mode" and found[name] not in MODES)
        ):
            message = (
                f"`{place.call.what}` is given {name}={ast.unparse(value)}, which is no default that an option can have"
            )
            raise RefusedError(at(place.source, value, message))
    return found


def _tests(source: Source, node: ast.AST) -> Iterator[ast.expr]:
    """What is true where ``node`` runs, from the inside out; not what is false there."""
    below = node
    for parent in source.syntax.ancestors(node):
        if isinstance(parent, (ast.If, ast.IfExp)) and not _is_main(parent.test):
            body = parent.body if isinstance(parent, ast.If) else [parent.body]
            if any(below is s for s in body) and not _is_negated(parent.test):
                yield parent.test
        below = parent


def _is_said(source: Source, call: CompileCall, options: Options, flags: list[str]) -> bool:
    """Whether a library compiles only if an option says so; ``flags`` gets those that switch it on."""
    for name, value in call.arguments:
        if name not in LIBRARY_KEYWORDS:
            continue
        given = source.bindings.values(value) if isinstance(value, ast.Name) else [value]
        on = [v for v in given if not (isinstance(v, ast.Constant) and str(v.value).lower() in _OFF)]
        for one in on:
            tests = [_flags(source, test, options) for test in _tests(source, one)]
            flags += [flag for found in tests for flag in found or ()]
            if not flags and not _flags(source, one, options):
                return False
        if not on:
            return False
    return True


def _is_negated(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and dotted(test.left) == "__name__"


def _flags(source: Source, test: ast.expr, options: Options, depth: int = 3) -> list[str] | None:
    """The options that ``test`` reads; [] for one that none has a say in; None where that is not known."""
    statement = source.syntax.statement_of(test)
    held = options.held(source, statement)
    found: list[str] = []
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute) and held is not None and dotted(node.value) == held:
            found.append(node.attr)
        elif isinstance(node, ast.Name) and node.id != held:
            if imported(source.syntax, node) is not None or source.syntax.is_builtin(node):
                continue
            values = source.bindings.values(node)
            if not values or depth == 0 or parameter(source.syntax.function_of(node), node.id) is not None:
                return None
            for value in values:
                inner = _flags(source, value, options, depth - 1)
                if inner is None:
                    return None
                found += inner
    return found
