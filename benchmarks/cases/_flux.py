"""A diffusion transformer of the kind of FLUX: double blocks for image and text, then single blocks for both at once.

Written for these benchmarks after what is publicly known of the model: width 3072, 24 heads, rotary positions of three
axes (16, 56, 56), a modulation of shift, scale and gate from time, guidance and pooled text; 19 double and 38 single
blocks in the released one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Shape:
    """Sizes of the model. ``axes``: of a head's dimensions, how many turn with each coordinate of a position."""

    width: int = 3072
    heads: int = 24
    mlp: int = 12288
    axes: tuple[int, ...] = (16, 56, 56)
    channels: int = 64
    text: int = 4096
    pooled: int = 768
    double: int = 19
    single: int = 38


def rotary(positions: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Cosines and sines (tokens, head / 2), float32, of ``positions`` (tokens, axes)."""
    angles = []
    for axis, size in enumerate(axes):
        rates = 1.0 / 10000.0 ** (torch.arange(0, size, 2, device=positions.device, dtype=torch.float32) / size)
        angles.append(positions[:, axis, None].float() * rates)
    turned = torch.cat(angles, -1)
    return turned.cos(), turned.sin()


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """``x`` (batch, heads, tokens, head), turned pair by pair."""
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).type_as(x)


def attention(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(batch, heads, tokens, head) three times to (batch, tokens, width)."""
    mixed = F.scaled_dot_product_attention(turned(q, cos, sin), turned(k, cos, sin), v)
    return mixed.transpose(1, 2).flatten(2)


def sinusoids(t: Tensor, size: int = 256) -> Tensor:
    """Of times (batch,): (batch, size)."""
    rates = torch.exp(-9.210340371976184 * torch.arange(size // 2, device=t.device, dtype=torch.float32) / (size // 2))
    angles = 1000.0 * t[:, None].float() * rates
    return torch.cat((angles.cos(), angles.sin()), -1)


class Heads(nn.Module):
    """Queries, keys and values of one stream; queries and keys are normalised."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.q_norm = nn.RMSNorm(shape.width // shape.heads, eps=1e-6)
        self.k_norm = nn.RMSNorm(shape.width // shape.heads, eps=1e-6)
        self.out = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.q_norm(q), self.k_norm(k), v


class Modulation(nn.Module):
    """``parts`` vectors (batch, 1, width) from one (batch, width)."""

    def __init__(self, width: int, parts: int) -> None:
        super().__init__()
        self.parts = parts
        self.linear = nn.Linear(width, parts * width)

    def forward(self, vector: Tensor) -> tuple[Tensor, ...]:
        return self.linear(F.silu(vector))[:, None].chunk(self.parts, -1)


class Stream(nn.Module):
    """What a double block has once for the image and once for the text."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.modulation = Modulation(shape.width, 6)
        self.norm1 = nn.LayerNorm(shape.width, elementwise_affine=False, eps=1e-6)
        self.attention = Heads(shape)
        self.norm2 = nn.LayerNorm(shape.width, elementwise_affine=False, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(shape.width, shape.mlp), nn.GELU(approximate="tanh"), nn.Linear(shape.mlp, shape.width)
        )


class DoubleBlock(nn.Module):
    """Image and text have weights of their own, and attend to each other."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.image, self.text = Stream(shape), Stream(shape)

    def forward(self, image: Tensor, text: Tensor, vector: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        streams = ((self.text, text), (self.image, image))
        given, mods = [], []
        for stream, x in streams:
            mods.append(stream.modulation(vector))
            shift, scale = mods[-1][:2]
            given.append(stream.attention((1 + scale) * stream.norm1(x) + shift))
        q, k, v = (torch.cat(both, 2) for both in zip(*given, strict=True))
        mixed = attention(q, k, v, cos, sin).split((text.size(1), image.size(1)), 1)
        made = []
        for (stream, x), part, (_, _, gate, shift, scale, last) in zip(streams, mixed, mods, strict=True):
            x = x + gate * stream.attention.out(part)
            made.append(x + last * stream.mlp((1 + scale) * stream.norm2(x) + shift))
        return made[1], made[0]


class SingleBlock(nn.Module):
    """Attention and the feed-forward part side by side, for image and text at once."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.sizes = shape.heads, (3 * shape.width, shape.mlp)
        self.modulation = Modulation(shape.width, 3)
        self.norm = nn.LayerNorm(shape.width, elementwise_affine=False, eps=1e-6)
        self.into = nn.Linear(shape.width, 3 * shape.width + shape.mlp)
        self.out = nn.Linear(shape.width + shape.mlp, shape.width)
        self.q_norm = nn.RMSNorm(shape.width // shape.heads, eps=1e-6)
        self.k_norm = nn.RMSNorm(shape.width // shape.heads, eps=1e-6)

    def forward(self, x: Tensor, vector: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        shift, scale, gate = self.modulation(vector)
        qkv, mlp = self.into((1 + scale) * self.norm(x) + shift).split(self.sizes, -1)
        q, k, v = qkv.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = attention(self.q_norm(q), self.k_norm(k), v, cos, sin)
        return x + gate * self.out(torch.cat((mixed, F.gelu(mlp, approximate="tanh")), -1))


class Embedded(nn.Module):
    """Two linear layers, from ``size`` to the width."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(size, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.silu(self.first(x)))


class Flux(nn.Module):
    """The denoiser: what is called once a step."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.image_in, self.text_in = nn.Linear(shape.channels, shape.width), nn.Linear(shape.text, shape.width)
        self.time, self.guidance = Embedded(256, shape.width), Embedded(256, shape.width)
        self.pooled = Embedded(shape.pooled, shape.width)
        self.double_blocks = nn.ModuleList(DoubleBlock(shape) for _ in range(shape.double))
        self.single_blocks = nn.ModuleList(SingleBlock(shape) for _ in range(shape.single))
        self.last = Modulation(shape.width, 2)
        self.norm = nn.LayerNorm(shape.width, elementwise_affine=False, eps=1e-6)
        self.out = nn.Linear(shape.width, shape.channels)

    def forward(
        self, image: Tensor, positions: Tensor, text: Tensor, pooled: Tensor, time: Tensor, guidance: Tensor
    ) -> Tensor:
        """``image`` (batch, tokens, channels) to the same; ``positions`` (text and image tokens, axes)."""
        x, y = self.image_in(image), self.text_in(text)
        vector = self.time(sinusoids(time).type_as(x)) + self.guidance(sinusoids(guidance).type_as(x))
        vector = vector + self.pooled(pooled)
        cos, sin = rotary(positions, self.shape.axes)
        for double in self.double_blocks:
            x, y = double(x, y, vector, cos, sin)
        both = torch.cat((y, x), 1)
        for single in self.single_blocks:
            both = single(both, vector, cos, sin)
        shift, scale = self.last(vector)
        return self.out((1 + scale) * self.norm(both[:, y.size(1) :]) + shift)
