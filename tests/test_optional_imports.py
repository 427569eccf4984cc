"""Names that are imported, or None: what they stand for where they are called."""

from __future__ import annotations

import ast

import pytest
from asking import facts_of

OPTIONAL = """
try:
    from torch.nn.functional import gelu, silu
    import einops
except ImportError:
    gelu = None
    einops = None
{}

def f(x):
    return gelu(x), einops.rearrange(x), silu(x), gelu
"""


@pytest.mark.parametrize(
    ("besides", "called"),
    [
        ("", ["torch.nn.functional.gelu", "einops.rearrange", "torch.nn.functional.silu"]),
        ("gelu = print", [None, "einops.rearrange", "torch.nn.functional.silu"]),
        ("def gelu(x):\n    return x", [None, "einops.rearrange", "torch.nn.functional.silu"]),
        ("def g():\n    global einops\n    einops = 1", ["torch.nn.functional.gelu", None, "torch.nn.functional.silu"]),
        ("for silu in (1, 2):\n    pass", ["torch.nn.functional.gelu", "einops.rearrange", None]),
    ],
)
def test_what_is_called_is_what_was_imported(besides: str, called: list[str | None]) -> None:
    facts = facts_of(OPTIONAL.format(besides))
    (function,) = (f for f in facts.syntax.functions if f.name == "f")
    calls = sorted((n for n in ast.walk(function) if isinstance(n, ast.Call)), key=lambda n: n.col_offset)
    assert [facts.syntax.qualified(c.func) for c in calls] == called
    last = next(n for n in ast.walk(function) if isinstance(n, ast.Tuple)).elts[-1]
    assert facts.syntax.qualified(last) is None, "it may be None"
