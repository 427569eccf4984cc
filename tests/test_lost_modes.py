"""That a rewrite loses a way of compiling is seen: by the examples' own measure, of sources made for that."""

from __future__ import annotations

import pytest

from patcher.harness import examples

PLAIN = "def f(x):\n    return x * 2\n"
OUTSIDE = "@torch.compiler.disable\ndef g(x):\n    return x * 2\n\ndef f(x):\n    return g(x)\n"
READS = "def f(x):\n    return x * x.sum().item()\n"
READS_OUTSIDE = "@torch.compiler.disable\ndef g(x):\n    return x * x.sum().item()\n\ndef f(x):\n    return g(x)\n"
TYPED = "def f(x):\n    return (lambda y: y * 2)(x)\n"
BREAKS_LATER = "def f(x):\n    if x.shape[0] > 3:\n        torch._dynamo.graph_break()\n    return x * 2\n"
RUN = "\ndef make():\n    return f\n\ncalls = [(torch.ones(2),), (torch.ones(5),)]\n"
BREAKS = "def f(x):\n    if x.sum() > 0:\n        return x * 2\n    return x - 1\n"


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        pytest.param(PLAIN, PLAIN, [], id="nothing changed"),
        pytest.param(PLAIN, OUTSIDE, ["fullgraph", "export"], id="outside of the graph"),  # jit.script looks into it
        pytest.param(PLAIN, TYPED, ["script"], id="a lambda"),
        pytest.param(READS, READS_OUTSIDE, ["fullgraph", "export"], id="a read outside of the graph"),
        pytest.param(BREAKS, OUTSIDE, [], id="what broke before is not lost"),
        pytest.param(PLAIN, BREAKS_LATER, ["fullgraph", "export"], id="one of two calls is enough"),
        pytest.param(OUTSIDE, PLAIN, [], id="won, not lost"),
    ],
)
def test_modes_that_a_rewrite_loses(before: str, after: str, lost: list[str]) -> None:
    texts = (examples.text_of(text, RUN) for text in (before, after))
    assert examples.lost(*texts) == lost
