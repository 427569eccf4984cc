"""What CompiledStep tells of where no run has shown what expressions hold, and what it is silent about.

What becomes of a function with what a run has seen is in ``tests/test_steps.py``.
"""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from patcher.settings import Extent


def _asked(function: str, breaks: int = 0) -> tuple[Extent, ...]:
    return (Extent("", function, breaks, 0, 0, 0, 0, 0),)


def _unfixed(title: str, before: str, function: str, calls: str, make: str) -> Example:
    run = f"def make(): return {make}\ncalls = [{calls}]\n"
    return Example(before, None, run, title, extents=_asked(function))


_ROLLOUT = """\
def rollout(x, steps):
    for step in range(steps):
        x = x + torch.sin(x) / (step + 1)
    return x
"""
_WAITING = """\
class Solver(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, until):
        t = 0
        while t < until:
            x = x + 0.1 * torch.tanh(self.lin(x))
            t += 1
        return x
"""
_ARRAYS = """\
import numpy as np


def recursion(x, steps):
    state = x.numpy()
    for step in range(steps):
        state = state * np.cos(state * (step + 1))
    return torch.from_numpy(state)
"""
_KEPT = """\
class Average:
    def __init__(self):
        self.means = {}
        self.limit = 0

    def update(self, x):
        self.limit += 1
        self.means[self.limit] = x * 2
        return self.means[self.limit] + 1
"""
_HELPED = """\
def halved(x):
    return x / 2 + x.tanh()


def settled(x, steps):
    for _ in range(steps):
        x = halved(x)
    return x
"""
_STATIC = """\
class Walk(nn.Module):
    @staticmethod
    def walked(x, steps):
        path = []
        for step in range(steps):
            x = x * 0.9 + step
            path.append(x.sum())
        return torch.stack(path)

    def forward(self, x, steps):
        return self.walked(x, steps) * 2
"""
_SAME = "(torch.ones(3),) for n in range(3)"
_COUNTS = "(torch.ones(3), n) for n in (3, 5, 4, 7)"

INVALID: tuple[Example, ...] = (
    _unfixed("a loop of as many steps as the caller says", _ROLLOUT, "rollout", _COUNTS, "rollout"),
    _unfixed("a loop until a number is reached", _WAITING, "Solver.forward", _COUNTS, "Solver()"),
    _unfixed("a recursion in NumPy", _ARRAYS, "recursion", _COUNTS, "recursion"),
    _unfixed("tensors that an object keeps", _KEPT, "Average.update", _SAME, "Average().update"),
    _unfixed("a loop that calls a function", _HELPED, "settled", _COUNTS, "settled"),
    _unfixed("results that go into a list", _STATIC, "Walk.walked", _COUNTS, "Walk()"),
)  # fmt: skip

VALID: tuple[NearMiss, ...] = (
    NearMiss(_ROLLOUT, "nobody asks for it"),
    NearMiss(_ROLLOUT, "another function is asked for", extents=_asked("rolled")),
    NearMiss(_ROLLOUT, "it breaks all over, which is another rule's", extents=_asked("rollout", 3)),
    NearMiss(f"@torch.compiler.disable\n{_ROLLOUT}", "it is left out already", extents=_asked("rollout")),
    NearMiss(
        f"@torch.compiler.disable(recursive=False)\n{_ROLLOUT}",
        "it is run by Python already",
        extents=_asked("rollout"),
    ),
    NearMiss(f"async {_ROLLOUT}", "a coroutine", extents=_asked("rollout")),
    NearMiss(
        f"{_ROLLOUT}\n\nscripted = torch.jit.script(rollout)\n", "TorchScript takes it", extents=_asked("rollout")
    ),
)
