"""The step of a function, compiled in its place: what a run has seen decides what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch.utils._pytree import tree_leaves

from patcher.diagnose.bench import State
from patcher.diagnose.better import unrolls_less
from patcher.edit.engine import patch
from patcher.harness.compare import Judgement
from patcher.harness.measured import (
    CallFigures,
    CaseResult,
    Counts,
    Environment,
    Figures,
    Measurement,
    Origin,
    Results,
)
from patcher.harness.run import _is_like
from patcher.measuring.observed import observations
from patcher.results import PatchResult
from patcher.settings import Extent, Settings
from rules import load_rules
from tests.test_observed import loaded, watched

RULE = next(rule for rule in load_rules() if rule.code == "FC712")
PREAMBLE = "import math\n\nimport numpy as np\nimport torch\nfrom torch import nn\n\n\n"


@pytest.fixture(autouse=True)
def only_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import builtins
    import importlib.machinery

    loader = importlib.machinery.SourceFileLoader
    monkeypatch.setattr(loader, "get_code", loader.get_code)
    monkeypatch.setattr(builtins, "_fix_compile_saw", None, raising=False)
    yield
    torch._dynamo.reset()


def stepped(text: str, function: str, run: Callable[[Any], Any], folder: Path) -> tuple[PatchResult, Any, Any]:
    """What becomes of ``text``, the module as it is and the patched one, after ``run`` was watched."""
    source = PREAMBLE + text
    module, observer = watched(source, folder)
    observer.on = True
    run(module)
    observer.on = False
    seen = observations(observer.observations())
    wanted = (Extent("watched.py", function, 0, 0, 0, 0, 0, 0),)
    result = patch(source, "watched.py", (RULE,), Settings(unsafe=True, observed=seen, extents=wanted))
    assert result.bugs == ()
    (folder / "patched.py").write_text(result.text)
    (folder / "plain.py").write_text(source)
    return result, loaded(folder / "plain.py"), loaded(folder / "patched.py")


def compiled(module: Any, run: Callable[..., Any]) -> tuple[list[Any], CompileCounter, int]:
    """What ``run`` gives compiled, with a counter of graphs and operators; and how many graphs were started."""
    torch._dynamo.reset()
    counter, started = CompileCounter(), [0]

    def backend(graph: Any, inputs: Any) -> Any:
        run_graph = counter(graph, inputs)

        def starting(*args: Any) -> Any:
            started[0] += 1
            return run_graph(*args)

        return starting

    torch.manual_seed(0)
    out = tree_leaves(run(module, lambda f: torch.compile(f, backend=backend)))
    return out, counter, started[0]


def eagerly(module: Any, run: Callable[..., Any]) -> list[Any]:
    torch.manual_seed(0)
    return tree_leaves(run(module, lambda f: f))


def is_same(ours: list[Any], theirs: list[Any]) -> bool:
    pairs = zip(ours, theirs, strict=True)
    return all(a.dtype == b.dtype and torch.allclose(a, b, 1e-4, 1e-5) for a, b in pairs)


OPTIMIZER = """\
class Adam(torch.optim.Optimizer):
    def __init__(self, parameters, lr=0.1):
        super().__init__(parameters, {"lr": lr})

    def update(self, p, group):
        state = self.state[p]
        # the first time
        state["step"] += 1
        state["mean"].lerp_(p.grad, 0.1)
        rate = group["lr"] * math.sqrt(1 - 0.9 ** state["step"])
        state["square"] = state["square"] * 0.9 + p.grad * p.grad
        p.addcdiv_(state["mean"], state["square"].sqrt().add_(1e-6), value=-rate)

    @torch.no_grad()
    def step(self, update):
        for group in self.param_groups:
            for p in group["params"]:
                if not self.state[p]:
                    self.state[p].update(step=0, mean=torch.zeros_like(p), square=torch.zeros_like(p))
                update(p, group)
"""


def trained(module: Any, compiling: Callable[[Any], Any] = lambda f: f) -> Any:
    net = nn.Linear(4, 4)
    optimizer = module.Adam(net.parameters())
    update = compiling(optimizer.update)
    for _ in range(12):
        net(torch.randn(3, 4)).pow(2).mean().backward()
        optimizer.step(update)
        optimizer.zero_grad()
    return [*net.parameters(), *(state["square"] for state in optimizer.state.values())]


def test_what_an_optimizer_reads_through_itself_is_an_argument(tmp_path: Path) -> None:
    result, plain, patched = stepped(OPTIMIZER, "Adam.update", trained, tmp_path)
    assert "def _update_step(" in result.text
    assert "# the first time" in result.text
    assert 'state["square"] = _update_step(' in result.text, "what is written to an object, the caller writes"
    expected = eagerly(plain, trained)
    assert is_same(eagerly(patched, trained), expected)
    before, after = compiled(plain, trained), compiled(patched, trained)
    assert is_same(after[0], expected)
    assert before[1].frame_count >= 8, "at each call, up to the limit"
    assert after[1].frame_count <= 2, "of each shape"
    assert after[2] == 24
    assert any("`p.grad` is a float32 tensor" in one.assumption for one in result.fixed), "what it takes is said"


LOOPS = {
    "numpy": """\
def walk(x, w, steps):
    state, w = x.numpy(), w.numpy()
    kept = np.zeros((steps, *state.shape), dtype=np.float32)
    for step in range(steps):
        losses = np.einsum("bd,bd->b", state, np.cos(state * (step + 1)))
        state = state - 0.01 * losses[:, None] * w
        kept[step] = state
    return torch.from_numpy(kept.sum(0))
""",
    "lists": """\
def walk(x, w, steps):
    path, t = [], 0.0
    while t < steps:
        x = x + torch.tanh(x @ w.diag()) * math.exp(-t)
        path.append((x * x).sum())
        t += 1
    return x, torch.stack(path)
""",
    "method": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x, w, steps):
        h = x
        for step in range(steps):
            h = self.cell(x, h)
            x = x + w * h / (step + 1)
        return x


torch.manual_seed(1)
walk = Net()
""",
}


def walked(module: Any, compiling: Callable[[Any], Any] = lambda f: f) -> Any:
    with torch.no_grad():
        walk = compiling(module.walk)
        return [walk(torch.rand(3, 4), torch.rand(4), steps) for steps in (20, 25, 30, 35)]


@pytest.mark.parametrize("kind", LOOPS)
def test_the_step_of_a_loop_is_compiled_and_python_runs_the_loop(kind: str, tmp_path: Path) -> None:
    function = "Net.forward" if kind == "method" else "walk"
    result, plain, patched = stepped(LOOPS[kind], function, walked, tmp_path)
    assert "@torch.compiler.disable(recursive=False)" in result.text
    expected = eagerly(plain, walked)
    assert is_same(eagerly(patched, walked), expected)
    before, after = compiled(plain, walked), compiled(patched, walked)
    assert is_same(after[0], expected)
    assert before[1].frame_count >= 4
    assert before[1].op_count > 20 * after[1].op_count, "the loop was unrolled"
    assert after[1].frame_count <= 6
    assert after[2] >= 110, "of each turn"


_LOOP = "    for i in range(9 * n):\n"
STAYS = {
    "few turns": "def f(x, n):\n    for i in range(n):\n        x = x * 2 + i\n    return x\n",
    "nothing to compute": f"def f(x, n):\n    found = []\n{_LOOP}        found.append(n)\n    return x\n",
    "read in a lambda": f"def f(x, n):\n    g = lambda: x\n{_LOOP}        x = x * 2 + g()\n    return x\n",
    "it may stop in the midst": (
        "def f(x, n):\n    for i in range(9 * n):\n        if x.sum() > 1e9:\n            return x * 2\n    return x\n"
    ),
}


@pytest.mark.parametrize("why", STAYS)
def test_what_is_no_step_stays(why: str, tmp_path: Path) -> None:
    result, _, _ = stepped(STAYS[why], "f", lambda module: [module.f(torch.ones(3), n) for n in (4, 5)], tmp_path)
    assert result.fixed == ()


def counted(graphs: int, operators: int, launches: int, recompiles: int = 0, dropped: int = 0) -> Figures:
    calls = (CallFigures(0.1, 0, 0, 0, launches, operators * launches),)
    return Figures(
        calls=calls,
        settled=calls,
        counts=Counts(recompiles=recompiles, dropped_frames=dropped),
        launches=launches,
        operators=operators * launches,
        origins=(Origin("net.py:1", "f", False, False, graphs, launches, operators * launches),),
    )


def state_of(figures: Figures) -> State:
    variants = tuple(
        Measurement(tree, "compiled", "default", "ok", figures=figures) for tree in ("original", "patched")
    )
    nowhere = Environment("2.13", "3.11", "cpu", None, "", 1)
    case = CaseResult("case", 1e-3, False, None, None, variants, ())
    results = Results(backend="eager", quick=True, environment=nowhere, seconds=1.0, cases=(case,))
    return State((), results, Judgement(()), (), ())


UNROLLED = counted(graphs=3, operators=400, launches=3, recompiles=2)


@pytest.mark.parametrize(
    ("now", "was", "less"),
    [
        (counted(1, 5, 240), UNROLLED, True),
        (counted(1, 5, 240, recompiles=3), UNROLLED, False),
        (counted(1, 5, 240, dropped=1), UNROLLED, False),
        (counted(1, 5, 100), UNROLLED, False),  # much of it runs eagerly
        (counted(40, 5, 240), UNROLLED, False),  # each turn is compiled
        (counted(1, 20, 60), counted(graphs=1, operators=1200, launches=1), True),
        (counted(1, 30, 40), counted(graphs=1, operators=1200, launches=1), False),  # blocks of a deep model
        (counted(1, 5, 40), counted(graphs=1, operators=200, launches=1), False),
    ],
)
def test_a_step_is_worth_more_graphs_where_far_less_is_compiled(now: Figures, was: Figures, less: bool) -> None:
    assert unrolls_less(state_of(now), state_of(was), "original") is less
    assert not unrolls_less(state_of(was), state_of(now), "original")


@pytest.mark.parametrize(
    ("told", "other", "alike"),
    [
        ("doubled: no NaN in 3 elements", "doubled: no NaN in 5 elements", True),
        ("doubled: no NaN in 3 elements", "halved: no NaN in 3 elements", False),
        ("doubled: output: differs by 0.3 relative", "doubled: output: differs by 1.2e-02 relative", False),
        ("doubled: output: differs by 0.03 relative", "doubled: output: differs by 1.2e-02 relative", True),
        ("doubled: raises ValueError", "doubled: no NaN in 5 elements", False),
    ],
)
def test_what_compiling_the_original_makes_of_an_input_is_no_difference(told: str, other: str, alike: bool) -> None:
    assert _is_like(told, [other]) is alike


KEEPER = """\
class Keeper:
    def __init__(self):
        self.mean, self.rows, self.seen, self.table = torch.ones(3), [torch.ones(3)] * 4, [], {{}}
        self.on, self.count = False, 0

    def scaled(self, x):
        return x * self.mean

    def f(self, x, n):
{body}
"""
#: What lies between reading, computing and writing, in an order that a step must not change.
ORDERS = {
    "written and not read before": "self.last = x * 2\ny = self.last + self.mean\nreturn y",
    "read where a branch says so": "y = x + self.mean\nif self.on:\n    y = y * self.table['w']\nreturn y * 2",
    "read in a conditional expression": "y = (self.table['w'] if self.on else x) * self.mean\nreturn y",
    "read in a comprehension": "y = sum(self.rows[i] * x for i in range(4))\nreturn y + self.mean",
    "read on the host after a write in place": (
        "y = (x * self.mean).add_(1)\nz = y.mul_(2)\nk = float(y.sum())\nreturn z * k"
    ),
    "a container, before and after": (
        "y = x * self.mean\nself.seen.append(y * 2)\nself.count = len(self.seen)\nreturn y + self.count"
    ),
    "a method that reads what is written": "self.mean = self.mean * 0.5\ny = self.scaled(x) + 1\nreturn y",
    "a host number that the step makes": (
        "y = x * self.mean\nk = y.shape[0]\ny = y * k\nself.count += k\nreturn y + self.count"
    ),
    "a name that is bound by chance": (
        "if n > 4:\n    z = x * self.mean\nelse:\n    z = x + self.mean\ny = z * 2\nreturn y"
    ),
    "two names for one object": "me = self\nme.mean = self.mean * 2\ny = me.mean + self.mean\nreturn y",
    "read by a nested function": "y = x * self.mean\ng = lambda: y\ny = y * self.mean\nreturn g() + y",
    "a row that the turn chooses": "for i in range(n):\n    x = x * self.rows[i % 4] + i\nreturn x",
    "a loop that leaves": "for row in self.rows:\n    x = x * row\n    if n > 4:\n        break\nreturn x * self.mean",
    "written through an index": "self.rows[0] = x * self.rows[1]\nx[0] = 5.0\ny = x * self.rows[0]\nreturn y",
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_step_changes_no_order(order: str, tmp_path: Path) -> None:
    body = ORDERS[order].replace("\n", "\n        ")
    text = KEEPER.format(body=f"        {body}")

    def kept(module: Any, compiling: Callable[[Any], Any] = lambda f: f) -> Any:
        keeper = module.Keeper()
        out = [compiling(keeper.f)(torch.rand(3), n) for n in (3, 4, 5)]
        return out, keeper.mean, keeper.rows, keeper.seen, torch.tensor(keeper.count)

    _, plain, patched = stepped(text, "Keeper.f", kept, tmp_path)
    expected = eagerly(plain, kept)
    assert is_same(eagerly(patched, kept), expected)
