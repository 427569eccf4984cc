"""Where PyTorch's recurrent layers are reached, which breaks the graph by default."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.compiling.in_force import InForce
from patcher.facts.syntax.written import is_none
from patcher.facts.tables.captured import taken_in_by

SETTING = "allow_rnn"
#: The way that the table has for each.
_WAYS = {"torch.nn.LSTM": "lstm", "torch.nn.GRU": "gru", "torch.nn.RNN": "rnn"}


def recurrent(node: ast.Attribute, facts: Facts) -> tuple[ast.expr, str] | None:
    """What runs or reads such a layer at ``node``, and ``nn.LSTM``, when only the setting takes that into a graph.

    Where a function reads the attribute several times, the first one breaks the graph.
    """
    what = _held(node, facts) if isinstance(node.ctx, ast.Load) else None
    function = facts.syntax.function_of(node)
    if what is None or function is None or SETTING in facts.ask(InForce).names:
        return None
    if SETTING not in taken_in_by(_WAYS[what], facts.settings.target_torch):
        return None
    text = ast.unparse(node)
    reads = [n for n in facts.syntax.own(function, ast.Attribute) if ast.unparse(n) == text]
    if min((getattr(n, "lineno", 0), getattr(n, "col_offset", 0)) for n in reads) < (node.lineno, node.col_offset):
        return None
    parent = facts.syntax.parents[node]
    method = parent if isinstance(parent, ast.Attribute) else node
    call = facts.syntax.parents[method]
    return call if isinstance(call, ast.Call) and call.func is method else node, what.removeprefix("torch.")


def _held(e: ast.Attribute, facts: Facts) -> str | None:
    """The layer that the attribute of the instance holds."""
    own = facts.inference.instance_attribute(e)
    stores = facts.class_facts(own[0]).stores.get(own[1], []) if own is not None else []
    values = [s.value for s in stores if s.value is None or not is_none(s.value)]
    kinds = [facts.syntax.qualified(v.func) if isinstance(v, ast.Call) else None for v in values]
    return kinds[0] if kinds and all(kind in _WAYS for kind in kinds) else None
