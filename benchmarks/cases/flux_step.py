"""A denoising step of a transformer of FLUX's kind (_flux.py); see _settings.py for what the environment chooses.

The released size has blocks as large as FLUX's and, unless ``CASE_LAYERS`` says another number, as many.
"""

from __future__ import annotations

from typing import Any

import torch
from _flux import Flux, Shape
from _settings import DEVICE, RELEASED, layers

device = DEVICE
dtype = torch.bfloat16 if DEVICE == "cuda" else torch.float32
tolerance = 1e-2 if DEVICE == "cuda" else 1e-3  # outputs are about 1, and bfloat16 has steps of 0.008 there
SMALL = {"width": 64, "heads": 2, "mlp": 256, "axes": (8, 12, 12), "channels": 16, "text": 48, "pooled": 32}
SIDE = 64 if RELEASED else 6  # tokens: 1024 pixels in the released one
WORDS = 512 if RELEASED else 8
STEADY = 0.02  # weights as they are made add up over many blocks; of the modulation, they would drown everything


def shape() -> Shape:
    double, single = layers(19, 2), layers(38, 4)
    return Shape(double=double, single=single) if RELEASED else Shape(**SMALL, double=double, single=single)


def build() -> Flux:
    with torch.device(DEVICE), torch.no_grad():
        torch.manual_seed(0)
        made = Flux(shape())
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn_like(parameter) * STEADY)
    return made.eval()


def calls() -> list[Any]:
    given, size = torch.Generator().manual_seed(5), shape()
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    places = torch.stack((torch.zeros_like(rows), rows, columns), -1).flatten(0, 1)
    positions = torch.cat((torch.zeros(WORDS, 3, dtype=places.dtype), places))
    call = (
        torch.randn(1, SIDE * SIDE, size.channels, generator=given),
        positions,
        torch.randn(1, WORDS, size.text, generator=given),
        torch.randn(1, size.pooled, generator=given),
        torch.tensor([0.7]),
        torch.tensor([3.5]),
    )
    return [call]
