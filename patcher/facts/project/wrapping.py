"""What of the models that a function is given torch.compile wraps, and where accelerate is told to wrap them all."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from patcher.facts.syntax.tree import Syntax, dotted, last_name

_ACCELERATORS = frozenset({"accelerate.Accelerator", "accelerate.accelerator.Accelerator"})
_OPTIONS = frozenset({"dynamo_backend", "dynamo_plugin"})


def tells_dynamo(call: ast.Call, resolve: Callable[[str], str | None]) -> bool | None:
    """Whether ``call`` makes an ``Accelerator`` that may compile what it prepares; None: it makes none.

    What its configuration or the environment says is not seen.
    """
    text = dotted(call.func)
    if text is None or resolve(text) not in _ACCELERATORS:
        return None
    return any(k.arg in _OPTIONS and not _is_off(k.value) for k in call.keywords)


def _is_off(value: ast.expr) -> bool:
    """``None``, ``"no"`` and ``DynamoBackend.NO`` compile nothing."""
    if isinstance(value, ast.Constant):
        return value.value is None or str(value.value).lower() == "no"
    return isinstance(value, ast.Attribute) and value.attr == "NO"


def accelerated(syntax: Syntax, resolve: Callable[[str], str]) -> Iterator[int]:
    """The lines of a module where such an ``Accelerator`` is made."""
    for call in syntax.by_type[ast.Call]:
        if isinstance(call, ast.Call) and tells_dynamo(call, resolve):
            yield call.lineno


def wrapped_parts(nodes: Iterable[ast.AST], resolve: Callable[[str], str], parameters: Iterable[str]) -> frozenset[str]:
    """The parameters of a function, parts of which are put into wrappers: ``blocks[i] = torch.compile(blocks[i])``.

    ``nodes``: all that stand in it. Also through the loops that go over a parameter, and over their items.
    """
    nodes = tuple(nodes)
    stores = [n for n in nodes if isinstance(n, ast.Assign) and _compiles(n.value, resolve)]
    roots = {r for s in stores for t in s.targets if isinstance(t, (ast.Subscript, ast.Attribute)) and (r := _root(t))}
    if not roots:
        return frozenset()
    for _ in range(3):  # for blocks in target_blocks: for i, block in enumerate(blocks)
        for loop in (n for n in nodes if isinstance(n, ast.For)):
            if any(isinstance(n, ast.Name) and n.id in roots for n in ast.walk(loop.target)):
                roots |= {n.id for n in ast.walk(loop.iter) if isinstance(n, ast.Name)}
    return frozenset(roots & {*parameters})


def _compiles(value: ast.expr, resolve: Callable[[str], str]) -> bool:
    text = dotted(value.func) if isinstance(value, ast.Call) else None
    whole = text is not None and last_name(value.func) == "compile" and resolve(text) == "torch.compile"  # type: ignore[attr-defined]
    forward = isinstance(value, ast.Call) and value.args and (dotted(value.args[0]) or "").endswith(".forward")
    return whole and not forward


def _root(e: ast.expr) -> str | None:
    while isinstance(e, (ast.Subscript, ast.Attribute)):
        e = e.value
    return e.id if isinstance(e, ast.Name) else None
