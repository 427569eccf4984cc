"""Settings of PyTorch that it does not have, and one setting that is given two values by two names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.compiling.placing import exclusive, tests, tried
from patcher.facts.compiling.sites import CompileSites
from patcher.facts.syntax.tree import Syntax
from patcher.facts.tables.knobs import Knobs, meant, version_with
from patcher.facts.values.compile_calls import CompileCall
from patcher.rule import Code, ReplaceStatements
from rules.fc705_compile_arguments.wrong import Wrong

_METHODS = frozenset({"patch", "update", "load_config"})


def wrong_settings(call: CompileCall, facts: Facts, knobs: Knobs) -> Iterator[Wrong]:
    """What is wrong with the assignment, or the call of ``patch``, that is ``call``."""
    module = next((m for m in knobs.settings if call.what.startswith(f"{m}.")), None)
    if module is None or tried(call.node, facts.syntax) is not None or _is_asked(call.node, facts.syntax):
        return
    rest = call.what.removeprefix(f"{module}.")
    for name, node in [(rest, call.node)] if rest not in _METHODS else _patched(call):
        if knobs.lacks(name, knobs.settings[module]):
            told = f"torch {facts.settings.target_torch[0]}.{facts.settings.target_torch[1]}"
            right = meant(name, knobs.settings[module])
            had = version_with(name, "settings", module)
            wrong = f"is `{right}` meant?" if right else "take it away, or ask with `hasattr` before"
            hint = f"{had} has it: ask with `hasattr` before" if had else wrong
            assert isinstance(node, (ast.expr, ast.stmt))
            yield Wrong(
                node,  # type: ignore[arg-type]
                f"{told} has no setting `{module}.{name}`: setting it raises an AttributeError",
                assumption=hint,
            )
    yield from _twice(call, facts, knobs)


def _patched(call: CompileCall) -> Iterator[tuple[str, ast.AST]]:
    for name, value in call.arguments:
        if name not in ("", "*", "**"):
            yield name, value
        elif isinstance(value, ast.Dict):
            yield from ((k.value, k) for k in value.keys if isinstance(k, ast.Constant) and isinstance(k.value, str))


def _is_asked(node: ast.AST, syntax: Syntax) -> bool:
    """Whether a test around it asks what there is."""
    asking = ("hasattr", "version", "getattr", "dir")
    return any(word in name for test, _ in tests(node, syntax) for name in syntax.names_in(test) for word in asking)


def _twice(call: CompileCall, facts: Facts, knobs: Knobs) -> Iterator[Wrong]:
    """The first of two assignments to one setting by two of its names, of which the second wins."""
    own = _number(call)
    if own is None:
        return
    syntax = facts.syntax
    setting = knobs.aliases.get(call.what, call.what)
    for other in facts.ask(CompileSites).calls:
        later = other.node.lineno > call.node.lineno
        if other.kind != "setting" or not later or other.what == call.what:
            continue
        number = _number(other)
        same = knobs.aliases.get(other.what, other.what) == setting
        if not same or number in (None, own) or exclusive(call.node, other.node, syntax):
            continue
        if syntax.function_of(other.node) is not syntax.function_of(call.node):
            continue
        names = [c.what.rpartition(".")[2] for c in (call, other)]
        message = (
            f"`{names[0]}` and `{names[1]}` are one setting: what counts is the {number} of line {other.node.lineno}"
        )
        edits: tuple[ReplaceStatements, ...] = ()
        first, second = call.node, other.node
        if isinstance(first, ast.Assign) and isinstance(second, ast.Assign) and _next(first, second, syntax):
            last = Code("{0} = {1}", (second.targets[0], second.value))
            edits = (ReplaceStatements((first, second), (last,)),)
        yield Wrong(first, message, edits, assumption="keep the value that is meant")  # type: ignore[arg-type]
        return


def _next(first: ast.Assign, second: ast.Assign, syntax: Syntax) -> bool:
    block = syntax.block_of(first)
    following = block[block.index(first) + 1 :]
    alone = syntax.alone(first) and syntax.alone(second) and len(first.targets) == len(second.targets) == 1
    return alone and bool(following) and following[0] is second


def _number(call: CompileCall) -> int | None:
    value = call.arguments[0][1] if isinstance(call.node, ast.Assign) and call.arguments else None
    return value.value if isinstance(value, ast.Constant) and type(value.value) is int else None
