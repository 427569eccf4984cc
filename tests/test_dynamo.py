"""The instrument of the tests that run examples: what it gives depends on the text alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from patcher.harness import examples

TEXT = examples.text_of(
    """\
class Shifted(nn.Module):
    def forward(self, x):
        return x + self.shift
""",
    """\
def make():
    made = Shifted()
    made.shift = torch.randn(3)
    return made

calls = [(torch.randn(2, 3),)]
""",
)


def test_random_numbers_drawn_before_change_nothing() -> None:
    """Arguments that the text draws as it is imported are those of each other run of the same text."""
    torch.manual_seed(1)
    ran = examples.eager(TEXT)
    torch.manual_seed(2)
    counts = examples.compiled(TEXT)
    assert examples.equal([out for out, _ in ran.outputs], list(counts.outputs), 1e-5) is None


SETTING = """\
import torch._dynamo.config

torch._dynamo.config.capture_scalar_outputs = True


class Counted(nn.Module):
    def forward(self, x):
        return x * x.sum().item()
"""


@pytest.mark.parametrize("run", [examples.eager, examples.compiled])
def test_what_a_text_sets_ends_with_it(run: Callable[[str], object]) -> None:
    text = examples.text_of(SETTING, "def make(): return Counted()\ncalls = [(torch.ones(2),)]\n")
    run(text)
    assert not torch._dynamo.config.capture_scalar_outputs
    assert examples.compiled(text).breaks == 0
