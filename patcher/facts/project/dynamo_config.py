"""What a module sets of Dynamo's configuration, for the whole process."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from patcher.facts.syntax.tree import Syntax, dotted

_CONFIG = "torch._dynamo.config."
#: What may decide whether an operation breaks the graph.
_DECIDING = frozenset({"capture_scalar_outputs", "capture_dynamic_output_shape_ops", "allow_rnn", "trace_autograd_ops"})


def configured(syntax: Syntax, resolve: Callable[[str], str]) -> Iterator[tuple[str, bool]]:
    """The settings that are assigned somewhere in the module, each with its value; "not known" counts as off."""
    for n in syntax.by_type[ast.Assign]:
        assert isinstance(n, ast.Assign)
        for target in n.targets:
            if not isinstance(target, ast.Attribute) or target.attr not in _DECIDING:
                continue
            if resolve(dotted(target) or "") == _CONFIG + target.attr:
                yield target.attr, isinstance(n.value, ast.Constant) and n.value.value is True
