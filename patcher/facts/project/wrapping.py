"""Where accelerate is told to have torch.compile wrap what it prepares."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from patcher.facts.syntax.tree import Syntax, dotted

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
