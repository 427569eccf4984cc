"""Operators that are written by hand: what the probe finds in graphs, and the report."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patcher.diagnose.call import _graphs
from patcher.diagnose.diagnosis import Diagnostic
from patcher.diagnose.diagnostics import diagnostics
from patcher.harness.measured import ProbeResult
from tests import diagnosis_samples as samples
from tests.test_diagnostics import results

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from jobs import HARNESS  # noqa: E402
from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

sys.path.insert(0, HARNESS)  # as test_probes.py
import fusions  # noqa: E402

fusion_form, fusion_patterns = fusions.fusion_form, fusions.fusion_patterns

X, W, B = torch.randn(2, 3, 8), torch.randn(8), torch.randn(8)
HALF = torch.randn(2, 3, 8, dtype=torch.bfloat16)
Q, K, V = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8)
ROOT = math.sqrt(2 / math.pi)


def looked(function: Callable[..., Any], *args: Any, switches: tuple[str, ...] = ("silu",)) -> Any:
    """What the backend sees in the graph of a function, and how far off the rewritten graph is."""
    backend = fusions.FuseBackend(switches)
    with torch.no_grad():
        seen = backend._looked(make_fx(function, tracing_mode="fake")(*args), False)
        assert seen.message == "", seen.message
        if seen.matches:
            seen.difference = fusions._apart(function(*args), backend._rewritten(*args))
    return seen


def rms(x: Any, root: Callable[[Any], Any], eps: float = 1e-5) -> Any:
    return x * root(x.pow(2).mean(-1, keepdim=True) + eps)


def half(x: Any) -> Any:
    first, second = x[..., :4], x[..., 4:]
    return torch.cat((-second, first), -1)


def hand_layer_norm(x: Any, w: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt((x - mean).pow(2).mean(-1, keepdim=True) + 1e-5) * w + b


SPELLINGS: dict[str, tuple[str, Callable[..., Any], tuple[Any, ...]]] = {
    "rsqrt": ("rms-norm", lambda x, w: w * rms(x, torch.rsqrt), (X, W)),
    "one by the root": ("rms-norm", lambda x, w: rms(x, lambda s: 1 / torch.sqrt(s)) * w, (X, W)),
    "a power of -0.5": ("rms-norm", lambda x, w: rms(x, lambda s: s**-0.5) * w, (X, W)),
    "divided by the root": ("rms-norm", lambda x: x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6), (X,)),
    "a sum by the width": ("rms-norm", lambda x, w: x / torch.sqrt(x.square().sum(-1, True) / 8 + 1e-6) * w, (X, W)),
    "cast, back, weight": ("rms-norm", lambda x, w: w.bfloat16() * rms(x.float(), torch.rsqrt).bfloat16(), (HALF, W)),
    "one plus the weight": ("rms-norm", lambda x, w: (rms(x.float(), torch.rsqrt) * (1 + w)).type_as(x), (HALF, W)),
    "a weight of more bits": ("rms-norm", lambda x, w: w * rms(x, torch.rsqrt), (HALF, W)),
    "back, and a weight of more bits": ("rms-norm", lambda x, w: w * rms(x.float(), torch.rsqrt).bfloat16(), (HALF, W)),
    "the mean alone is cast": (
        "rms-norm",
        lambda x, w: w * (x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5)).bfloat16(),
        (HALF, W.bfloat16()),
    ),
    "layer norm": ("layer-norm", hand_layer_norm, (X, W, B)),
    "var": (
        "layer-norm",
        lambda x: (x - x.mean(-1, True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5),
        (X,),
    ),
    "a cube as product": (
        "gelu-tanh",
        lambda x: x * 0.5 * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x))),
        (X,),
    ),
    "factored out": ("gelu-tanh", lambda x: 0.5 * x * (1 + torch.tanh(ROOT * x * (1 + 0.044715 * x * x))), (X,)),
    "erf": ("gelu-erf", lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))), (X,)),
    "a gate behind it": ("gelu-erf", lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))) * x.roll(1, 1), (X,)),
    "sigmoid first": ("silu", lambda x: torch.sigmoid(x) * x, (X,)),
    "exp": ("silu", lambda x: x / (1 + torch.exp(-x)), (X,)),
    "rotated halves": ("rope", lambda x, c, s: (x * c) + (half(x) * s), (Q, torch.randn(5, 8), torch.randn(5, 8))),
    "angles of more bits": ("rope", lambda x, c, s: x * c + half(x) * s, (Q.bfloat16(), Q[0, 0], Q[1, 0])),
    "rotated in float32": (
        "rope",
        lambda x, c, s: (x.float() * c + half(x).float() * s).to(x.dtype),
        (Q.bfloat16(), Q[0, 0], Q[1, 0]),
    ),
    "scale and shift": ("modulate", lambda x, a, b: b.unsqueeze(1) + x * (1 + a.unsqueeze(1)), (X, X[:, 0], X[:, 1])),
    "scale, then a dimension": ("modulate", lambda x, a, b: x * (1 + a)[:, None] + b[:, None], (X, X[:, 0], X[:, 1])),
    "scores": ("attention", lambda q, k, v: torch.softmax(q @ k.mT / math.sqrt(8), -1) @ v, (Q, K, V)),
    "masked": (
        "attention",
        lambda q, k, v, m: torch.softmax((q @ k.transpose(-2, -1) * 0.3).masked_fill(m == 0, float("-inf")), -1) @ v,
        (Q, K, V, torch.ones(5, 5).tril()),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SPELLINGS)
def test_one_form_of_many_spellings(name: str) -> None:
    switch, function, args = SPELLINGS[name]
    seen = looked(function, *args, switches=(switch,))
    assert [match.pattern.switch for match in seen.matches] == [switch]
    assert seen.after[0] < seen.before[0]
    assert "fused." not in seen.before[1]
    assert "fused." in seen.after[1]
    assert seen.difference < (1e-2 if args[0].dtype == torch.bfloat16 else 1e-5)


def test_patterns_that_are_made_while_something_is_compiled_keep_tensors_of_their_own() -> None:
    with FakeTensorMode():
        patterns = fusions._patterns.__wrapped__("silu")
    assert not any(isinstance(example, FakeTensor) for pattern in patterns for example in pattern.examples)


@pytest.mark.slow
@pytest.mark.parametrize("switch", fusion_patterns.SWITCHES)
def test_each_pattern_becomes_what_computes_the_same(switch: str) -> None:
    for pattern in fusions._patterns(switch):
        torch.manual_seed(1)
        args = [torch.rand_like(one) if one.is_floating_point() else one.logical_not() for one in pattern.examples]
        args = [one.tril().bool() if one.dtype == torch.bool else one for one in args]
        names = fusion_patterns.inspect.signature(pattern.search).parameters
        rest, numbers = iter(args), {"eps": 1e-5, "scale": 0.5, "fill": -1e9}
        given = [next(rest) if name not in pattern.scalars else numbers[name] for name in names]

        def function(*tensors: Any, given: list[Any] = given, pattern: Any = pattern) -> Any:
            left = iter(tensors)
            return pattern.search(*(one if isinstance(one, float) else next(left) for one in given))

        seen = looked(function, *args, switches=(switch,))
        assert len(seen.matches) == 1, pattern.how
        wide = any(one.dtype == torch.bfloat16 for one in args)
        assert seen.difference < (2e-2 if wide else 1e-5), pattern.how


NEAR: dict[str, tuple[str, Callable[..., Any], tuple[Any, ...]]] = {
    "quick gelu": ("silu", lambda x: x * torch.sigmoid(1.702 * x), (X,)),
    "another constant": (
        "gelu-tanh",
        lambda x: 0.5 * x * (1 + torch.tanh(ROOT * (x + 0.0447 * x**3))),
        (X,),
    ),
    "eps behind the root": (
        "rms-norm",
        lambda x, w: w * (x / (torch.sqrt(x.pow(2).mean(-1, keepdim=True)) + 1e-6)),
        (X, W),
    ),
    "over another dimension": (
        "rms-norm",
        lambda x, w: w * (x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6)),
        (X, W),
    ),
    "a second user": (
        "rms-norm",
        lambda x, w: ((r := torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)), w * (x * r)),
        (X, W),
    ),
    "an unbiased variance": (
        "layer-norm",
        lambda x, w, b: w * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + b,
        (X, W, B),
    ),
    "dropped out in between": (
        "attention",
        lambda q, k, v: torch.dropout(torch.softmax(q @ k.mT * 0.3, -1), 0.1, True) @ v,
        (Q, K, V),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NEAR)
def test_what_is_almost_an_operator_is_none(name: str) -> None:
    switch, function, args = NEAR[name]
    assert looked(function, *args, switches=(switch,)).matches == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "switches"),
    [
        (lambda x: x * torch.sigmoid(x.roll(1, 1)), ("silu",)),  # a gate
        (lambda x: torch.softmax(x, -1), ("attention",)),
        (lambda x: x.mean(-1, keepdim=True) + 1, ("rms-norm", "layer-norm")),
        (lambda x: torch.arange(8) + 1, ("modulate",)),
    ],
)
def test_what_is_something_else_is_no_match(function: Callable[..., Any], switches: tuple[str, ...]) -> None:
    assert looked(function, X, switches=switches).matches == []


class Part(nn.Module):
    def forward(self, x: Any) -> Any:
        return F.gelu(x) * torch.sigmoid(x) * x


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([Part(), Part()])
        self.last = nn.RMSNorm(8)

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = x + part(x)
            x = x * torch.sigmoid(x)
        return self.last(x)


def compiled(train: bool) -> Any:
    torch._dynamo.reset()
    backend = fusions.FuseBackend(("silu", "rms-norm"))
    model = Whole()
    with torch.set_grad_enabled(train):
        output = torch.compile(model, backend=backend)(X)
        torch.testing.assert_close(output, model(X))
        if train:
            output.sum().backward()
    (seen,) = backend.seen
    assert seen.message == ""
    return seen


@pytest.mark.slow
def test_the_graph_of_a_model_with_its_places() -> None:
    seen = compiled(train=False)
    inside = [match for match in seen.matches if match.pattern.switch == "silu"]
    assert len(inside) == 2
    assert seen.own["rms-norm"] == 1  # PyTorch decomposes its own on a CPU: that is nobody's hand
    assert seen.own["gelu-erf"] == 2
    assert not [match for match in seen.matches if match.pattern.switch == "rms-norm"]
    assert seen.difference < 1e-5
    assert {fusions.origin(node).file for match in inside for node in match.nodes} == {__file__}
    begun = fusions.origin(next(iter(inside[0].nodes)))
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[begun.line - 1].strip() == "x = x * torch.sigmoid(x)"


@pytest.mark.slow
def test_forward_is_looked_at_without_what_backward_keeps() -> None:
    seen = compiled(train=True)
    assert seen.training
    assert [match.pattern.switch for match in seen.matches] == ["silu", "silu"]


@pytest.mark.slow
def test_tracing_that_takes_no_table_decomposes_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of releases before 2.13, whose functions have inductor's table and no way to say so."""
    matcher = fusion_patterns.matcher
    forward = matcher.fwd_only

    def old_forward(function: Any, args: Any) -> Any:
        return forward(function, args, get_decomp_fn=lambda: matcher.select_decomp_table())

    monkeypatch.setattr(matcher, "fwd_only", old_forward)
    nodes = fusion_patterns.forward_graph(F.gelu, [X]).graph.nodes
    assert [node.target for node in nodes if node.op == "call_function"] == [torch.ops.aten.gelu.default]


@pytest.mark.parametrize(
    ("spelled", "path"),
    [
        ("L['self'].layers.0.norm", "layers.0.norm"),
        ("L['self']._modules['layers']._modules['0'].norm", "layers.0.norm"),
        ("L['args'][0].layers[1]", "layers.1"),
        ("", ""),
    ],
)
def test_paths_of_modules(spelled: str, path: str) -> None:
    assert fusions.module_path(spelled) == path
    assert fusions.alike("layers.0.norm2") == "layers.*.norm2"


def test_sizes_that_are_symbols_are_compared_by_name() -> None:
    class Symbol:
        def __init__(self, name: str) -> None:
            self.name = name

        def __str__(self) -> str:
            return self.name

        def __eq__(self, other: object) -> bool:
            raise AssertionError("a guard")

        __hash__ = None  # type: ignore[assignment]

    assert fusion_form.same((Symbol("s0"), 4), (Symbol("s0"), 4))
    assert not fusion_form.same((Symbol("s0"), 4), (Symbol("s1"), 4))
    assert not fusion_form.same((4, 4), (4,))


# The report.

MATCH = {
    "switch": "rms-norm", "how": "weight, one dtype", "where": "m.py:3-5", "module": "layers.*.norm", "class": "Norm",
    "times": 4, "graphs": 2, "nodes": 6, "constants": {"eps": 1e-5},
}  # fmt: skip
GRAPH = {
    "number": 1, "attempt": 1, "where": "m.py:1", "training": False, "captured": 20, "before": 18,
    "after": 12, "matches": 2, "difference": 1e-7, "message": "", "text_before": "x = input\nreturn x",
    "text_after": "x = input\nreturn [x]",
}  # fmt: skip
FIGURES: dict[str, Any] = {
    "switches": ["rms-norm", "silu", "rope"],
    "train": False,
    "own": {"rms-norm": 0, "silu": 3, "rope": 0},
    "matches": [MATCH],
    "graphs": [GRAPH],
    "attempts": [1, 0],
    "limit": 8,
}


def report(**changed: Any) -> Diagnostic:
    probe = ProbeResult("fusions", "ok", seconds=3.0, figures={**FIGURES, **changed})
    (told,) = diagnostics(results(probe=probe), ["fusions"])
    assert told.status == "ok", told
    for columns, rows in [(told.columns, told.rows), *((table.columns, table.rows) for table in told.tables)]:
        assert all(len(row) == len(columns) for row in rows)
    return told


def test_what_is_found_is_told() -> None:
    told = report()
    assert told.rows[0][1] == "weight, one dtype; eps 1e-05"
    assert told.rows[0][-3:] == ("`layers.*.norm` (Norm)", "4 in 2 graphs", "6")
    text = "\n".join(told.conclusions)
    assert "rms-norm: 4 matches at 1 place, could be `F.rms_norm`." in text
    assert "PyTorch's own operator already: silu 3." in text
    assert "Attempt 2 of at most 8 is steady" in text
    (graphs,) = told.tables
    assert graphs.rows[0][-5:] == ("20", "18", "12", "2", "1.0e-07")


def test_what_is_not_known_is_not_told() -> None:
    nothing = report(matches=[], graphs=[])
    assert "None of the operators is written by hand in what is compiled." in nothing.conclusions
    assert nothing.tables == ()
    never = report(attempts=[1] * 8)
    assert never.conclusions[-1].startswith("After 8 attempts something is still compiled")


def test_graphs_are_files_beside_the_report(tmp_path: Path) -> None:
    diagnosis = dataclasses.replace(samples.empty(), diagnostics=(report(),))
    written = dict(_graphs(diagnosis, [tmp_path / "r.html", tmp_path / "r.json"]))
    assert {path.relative_to(tmp_path).as_posix(): text for path, text in written.items()} == {
        "r.graphs/m-graph-1.before.txt": "x = input\nreturn x\n",
        "r.graphs/m-graph-1.after.txt": "x = input\nreturn [x]\n",
    }
