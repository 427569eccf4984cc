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


def recurrent(call: ast.Call, facts: Facts) -> str | None:
    """``nn.LSTM`` where ``call`` runs such a layer of its own module, which only the setting takes into a graph."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=me), attr=name):
            cls, function = facts.syntax.class_of(call), facts.syntax.function_of(call)
            if cls is None or function is None or self_name(function) != me:
                return None
            store = facts.class_facts(cls).initial(name)
            made = store.value.func if store is not None and isinstance(store.value, ast.Call) else None
            what = facts.syntax.qualified(made) if made is not None else None
            if what not in _WAYS or SETTING not in taken_in_by(_WAYS[what], facts.settings.target_torch):
                return None
            return None if SETTING in facts.ask(InForce).names else what.removeprefix("torch.")
    return None
