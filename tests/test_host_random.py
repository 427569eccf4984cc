"""What each version of PyTorch does with random numbers of the host: run, and told."""

from __future__ import annotations

import random

import pytest
import torch

from patcher.facts.tables.host_api import RANDOM_SINCE
from patcher.finding import find
from patcher.harness.listener import Listener, listening
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import INSTALLED

HEAD = """\
import random
import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = x * 1
        {does}
        return y * 2
"""
#: From 2.14 on these numbers are in the graph.
TAKEN_IN = (
    "y = y * random.random()",
    "y = y * (random.random() < 2)",
    "y = y * abs(random.random())",
    "r = random.random(); y = y * r + r",
    "r = random.random(); y = y.clamp(max=r)",
    "y = y + torch.full((3,), random.random())",
    "y = [y * random.random() for i in range(3)][0]",
)
#: And these end it there as well, for what is done with them.
ASKED = (
    "y = y if random.random() < 2 else y + 1",
    "r = random.random(); y = y * 2 if r > 2 else y",
    "y = [y * i for i in (1, 2) if random.random() < 2][0]",
    "y = y * (random.random() < 2 or 1)",
    "y = y * (random.random() * 2 - 1)",
    "y = y * int(random.random() * 3 + 1)",
    "y = y * round(random.random(), 2)",
    "y = y * -random.random()",
    "y = y * random.choice([3, 4, 5])",
    "y = y * random.gauss(0, 1)",
    "k = random.random(); y = y * k; y = y * random.choice([3, 4, 5])",
)
#: From 2.14 on these do not end it, and are not what eager code draws.
DRAWN_ONCE = (
    "order = [1, 2, 3, 4]; random.shuffle(order); y = y * order[0]",
    "y = y * random.sample([3, 4, 5, 6, 7], 2)[0]",
)


def outcomes(does: str, compiling: bool) -> tuple[bool, list[torch.Tensor]]:
    """Whether the graph breaks, and what comes out under several seeds."""
    space: dict[str, object] = {}
    exec(HEAD.format(does=does), space)
    model = space["Net"]()  # type: ignore[operator]
    torch._dynamo.reset()
    listener, state, found = Listener(str), random.getstate(), []
    with listening(listener, False):
        way = torch.compile(model, backend="eager") if compiling else model
        for seed in range(6):
            random.seed(seed)
            found.append(way(torch.ones(2, 3)))
    random.setstate(state)
    return bool(listener.breaks), found


def told(does: str, version: tuple[int, int] = INSTALLED) -> list[str]:
    result = find(HEAD.format(does=does), "example.py", load_rules(), Settings(target_torch=version))
    assert not result.bugs
    return [f.message for f in result.found if f.code == "FC604"]


@pytest.mark.slow
@pytest.mark.parametrize("does", (*TAKEN_IN, *ASKED))
def test_the_number_is_that_of_eager_code(does: str) -> None:
    ends, found = outcomes(does, True)
    taken = does in TAKEN_IN and INSTALLED >= RANDOM_SINCE
    assert ends is not taken
    assert bool(told(does)) is not taken
    assert told(does, (2, 13))
    torch.testing.assert_close(found, outcomes(does, False)[1])


@pytest.mark.slow
@pytest.mark.parametrize("does", DRAWN_ONCE)
def test_an_order_by_chance(does: str) -> None:
    ends, found = outcomes(does, True)
    eager = outcomes(does, False)[1]
    once = INSTALLED >= RANDOM_SINCE
    assert ends is not once
    assert all(torch.equal(a, b) for a, b in zip(found, eager, strict=True)) is not once
    assert all(torch.equal(a, found[0]) for a in found) is once
    (message,) = told(does)
    assert message.startswith("compiled code draws this once") is once
    assert told(does, (2, 13)) == ["a random number of the host breaks the graph"]


def test_what_matters_in_training_alone_is_left_where_the_number_is_taken_in() -> None:
    text = "r = random.random()\n        if self.training:\n            y = y * (2 if r < 0.5 else 1)"
    assert told(text, (2, 13))
    assert told(text, (2, 14)) == []
    assert told(text.replace("r = ", "r = 2 * "), (2, 14))


def test_a_test_before_the_flag_is_made_in_evaluation_as_well() -> None:
    text = "y = y * (2 if random.random() < 0.5 and self.training else 1)"
    assert outcomes(text.replace("self.training", "not self.training"), True)[0]
    for version in ((2, 13), (2, 14)):
        (found,) = (
            f
            for f in find(HEAD.format(does=text), "example.py", load_rules(), Settings(target_torch=version)).found
            if f.code == "FC604"
        )
        assert (found.applicability == "unsafe") is (version >= RANDOM_SINCE)
