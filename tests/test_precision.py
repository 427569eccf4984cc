"""A result in float32 may be computed in half precision: what tells the tolerance so."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from patcher.harness import precision  # noqa: E402

ROUGH, FINE = torch.finfo(torch.bfloat16).eps, torch.finfo(torch.float16).eps


@pytest.mark.parametrize(
    ("parameters", "epsilon"),
    [
        ([torch.ones(2)], 0.0),
        ([torch.ones(2), torch.ones(2, dtype=torch.int16)], 0.0),
        ([torch.ones(2), torch.ones(2).half()], FINE),
        ([torch.ones(2).bfloat16(), torch.ones(2).half()], ROUGH),
    ],
)
def test_half_parameters_count(parameters: list[Any], epsilon: float) -> None:
    assert precision.Noting(parameters).epsilon == epsilon


@pytest.mark.parametrize(("enabled", "epsilon"), [(True, ROUGH), (False, 0.0)])
@pytest.mark.parametrize("around", [False, True])
def test_autocast_counts_inside_the_call_and_around_it(enabled: bool, epsilon: float, around: bool) -> None:
    noting, usual = precision.Noting([]), torch.autocast.__enter__

    def autocast() -> Any:
        return torch.autocast("cpu", torch.bfloat16, enabled=enabled)

    def call() -> Any:
        with autocast():
            return (torch.ones(2, 2) @ torch.ones(2, 2)).float()

    if around:
        with autocast(), noting:
            pass
    else:
        with noting:
            call()
    assert noting.epsilon == epsilon
    assert torch.autocast.__enter__ is usual
