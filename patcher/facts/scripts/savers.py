"""State dicts of models on their way into a checkpoint."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts.scripts.sources import Source
from patcher.facts.syntax.tree import dotted, last_name
from patcher.facts.syntax.written import one_of
from patcher.facts.values.module_values import imported

#: What writes its first argument, or the one of that name, to disk.
_SAVES = {
    "torch.save": "obj",
    "safetensors.torch.save_file": "tensors",
    "safetensors.torch.save": "tensors",
    "accelerate.Accelerator.save": "obj",
}
#: What else has a state dict, by a word in its name; a model is never called so.
_OTHERS = ("optim", "sched", "scaler", "sampler", "loader", "ema", "tokenizer", "progress", "metric")


def saved_state_dicts(source: Source) -> Iterator[ast.Call]:
    """Each ``model.state_dict()`` of a file that is saved: written in the call that saves, or under the name there."""
    for call in source.syntax.by_type[ast.Call]:
        keyword = _SAVES.get(imported(source.syntax, call.func) or "") or _by_accelerator(source, call)
        if keyword is None:
            continue
        given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == keyword), None)
        if given is not None:
            yield from _in(source, given)


def _by_accelerator(source: Source, call: ast.Call) -> str | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "save":
        return None
    return "obj" if last_name(call.func.value) == "accelerator" else None


def _in(source: Source, e: ast.expr, depth: int = 3) -> Iterator[ast.Call]:
    """The state dicts that are ``e``, or values of it."""
    for part in one_of(e):
        yield from _in(source, part, depth)
    match e:
        case ast.Call(func=ast.Attribute(attr="state_dict", value=owner)) if not _is_other(owner):
            yield e
        case ast.Dict(values=values):
            for value in values:
                yield from _in(source, value, depth)
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            for keyword in keywords:
                yield from _in(source, keyword.value, depth)
        case ast.Name() | ast.Attribute() if depth:
            for value in source.bindings.assigned.get((source.bindings.scope(e), dotted(e) or ""), ()):
                yield from _in(source, value, depth - 1)


def _is_other(owner: ast.expr) -> bool:
    name = last_name(owner.func if isinstance(owner, ast.Call) else owner).lower()
    return any(word in name for word in _OTHERS)
