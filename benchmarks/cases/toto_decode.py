"""Toto's forecasts, patch by patch through its key/value cache; see _settings.py for what the environment chooses.

The import root is a folder with the package ``toto`` (on PyPI: toto-ts). The released size is the configuration of
Datadog/Toto-Open-Base-1.0, but for attention of xFormers. What is compiled is everything but the distribution object,
whose place a mean takes. A round is what ``TotoForecaster.generate_mean`` does: a new cache, a prefill, then steps of
one patch.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from _settings import DEVICE, RELEASED, layers
from toto.model.backbone import TotoBackbone

device = DEVICE
VARIATES, PREFILL, STEPS = (8, 16, 12) if RELEASED else (3, 10, 12)
PATCH = 64 if RELEASED else 8
NOISE = 0.02 if RELEASED else 0.05  # on the weights; with 0.05 the released size magnifies what rounding leaves
SIZE: dict[str, Any] = (
    {
        "embed_dim": 768,
        "num_heads": 12,
        "mlp_hidden_dim": 3072,
        "scaler_cls": "<class 'model.scaler.CausalPatchStdMeanScaler'>",
        "output_distribution_classes": ["<class 'model.distribution.MixtureOfStudentTsOutput'>"],
        "output_distribution_kwargs": {"k_components": 24},
    }
    if RELEASED
    else {
        "embed_dim": 64,
        "num_heads": 4,
        "mlp_hidden_dim": 128,
        "scaler_cls": "<class 'model.scaler.StdMeanScaler'>",
        "output_distribution_classes": ["<class 'model.distribution.StudentTOutput'>"],
    }
)


class Backbone(torch.nn.Module):
    """A mean forecast (batch, variates, patch, 1) before scaling, and the scaler's location and scale."""

    def __init__(self, toto: TotoBackbone) -> None:
        super().__init__()
        self.toto = toto

    def forward(self, series: Any, padding: Any, ids: Any, cache: Any, prefix: int) -> Any:
        flat, location, scale = self.toto.backbone(series, padding, ids, cache, prefix)
        return flat[:, :, -PATCH:].mean(-1, keepdim=True), location, scale


def build() -> Backbone:
    with torch.device(DEVICE), torch.no_grad():
        torch.manual_seed(0)
        toto = TotoBackbone(
            patch_size=PATCH,
            stride=PATCH,
            num_layers=layers(12, 12),
            dropout=0.0,
            spacewise_every_n_layers=layers(12, 12),
            spacewise_first=False,
            use_memory_efficient_attention=False,
            **SIZE,
        )
        torch.manual_seed(1)
        for parameter in toto.parameters():
            parameter.add_(torch.randn_like(parameter) * NOISE)
    return Backbone(toto.eval())


def calls() -> list[Any]:
    series = torch.randn(1, VARIATES, PREFILL * PATCH, generator=torch.Generator().manual_seed(5)).cumsum(-1).to(DEVICE)
    return [partial(forecast, series), partial(forecast, series)]


def forecast(series: torch.Tensor, model: Any) -> dict[str, Any]:
    """The forecast patches (1, variates, patch), one a step, and the cache as it was left."""
    series = series.to(next(model.parameters()))  # in float64 when the model is
    room = (PREFILL + STEPS + 2) * PATCH
    cache = model.toto.allocate_kv_cache(1, VARIATES, room, series.device, series.dtype)
    patches = []
    for _ in range(STEPS + 1):
        padding, ids = torch.ones_like(series, dtype=torch.bool), torch.zeros_like(series, dtype=torch.int)
        torch.compiler.cudagraph_mark_step_begin()
        mean, location, scale = model(series, padding, ids, cache, PREFILL * PATCH)
        patches.append(mean.squeeze(-1) * scale[..., -1:] + location[..., -1:])  # new tensors: graphs reuse the others
        series = torch.cat([series, patches[-1]], -1)
    return {"patches": patches, "keys": cache._keys.clone(), "values": cache._values.clone()}
