"""Calls of PyTorch's recurrent layers, which end the graph by default, silently as far as the source tells."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.compiling.in_force import InForce
from patcher.facts.syntax.classes import self_name
from patcher.facts.tables.captured import taken_in_by

SETTING = "allow_rnn"
#: The way that the table has for each.
_WAYS = {"torch.nn.LSTM": "lstm", "torch.nn.GRU": "gru", "torch.nn.RNN": "rnn"}
#: An argument that no other layer of PyTorch has: with it, ``getattr(nn, kind)(...)`` makes one of these.
_THEIRS = "bidirectional"


def recurrent(call: ast.Call, facts: Facts) -> str | None:
    """``nn.LSTM`` where ``call`` runs such a layer of its own module, which only the setting takes into a graph.

    So does a call that flattens its weights.
    """
    match call.func:
        case (
            ast.Attribute(value=ast.Name(id=me), attr=name)
            | ast.Attribute(value=ast.Attribute(value=ast.Name(id=me), attr=name), attr="flatten_parameters")
        ):
            cls, function = facts.syntax.class_of(call), facts.syntax.function_of(call)
            if cls is None or function is None or self_name(function) != me:
                return None
            store = facts.class_facts(cls).initial(name)
            what = _made(store.value, facts) if store is not None and isinstance(store.value, ast.Call) else None
            if what not in _WAYS or SETTING not in taken_in_by(_WAYS[what], facts.settings.target_torch):
                return None
            return None if SETTING in facts.ask(InForce).names else what.removeprefix("torch.")
    return None


def _made(call: ast.Call, facts: Facts) -> str | None:
    """What the constructor makes; one of these layers that it chooses by a name counts as an LSTM."""
    match call.func:
        case ast.Call(func=ast.Name(id="getattr"), args=[holder, _]) if facts.syntax.qualified(holder) == "torch.nn":
            return "torch.nn.LSTM" if any(k.arg == _THEIRS for k in call.keywords) else None
    return facts.syntax.qualified(call.func)
