"""Attention over a sliding window: the newest keys overwrite the oldest, modulo the window."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# as it stands: 15 breaks, 15 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 3}


class WindowCache:
    """A ring of the last ``window`` keys and values of one layer.

    ``_total`` counts all tokens; the next one goes to ``_total % window``.
    """

    def __init__(self, batch: int, window: int, width: int):
        self.window = window
        self._keys = torch.zeros(batch, window, width)
        self._values = torch.zeros(batch, window, width)
        self._total = torch.zeros((), dtype=torch.long)

    def push(self, key: Tensor, value: Tensor) -> None:
        """Add one token; key and value are (batch, 1, width)."""
        slot = self._total.item() % self.window
        self._keys[:, slot : slot + 1] = key
        self._values[:, slot : slot + 1] = value
        self._total += 1

    def fill(self, key: Tensor, value: Tensor) -> None:
        """Add a prompt, (batch, length, width), token by token: it may be longer than the window."""
        for t in range(key.shape[1]):
            self.push(key[:, t : t + 1], value[:, t : t + 1])

    def visible(self) -> Tensor:
        """Which slots hold something, (window,)."""
        return torch.arange(self.window, device=self._keys.device) < min(self._total.item(), self.window)

    def __len__(self) -> int:
        return min(int(self._total), self.window)


class WindowAttention(nn.Module):
    def __init__(self, width: int = 12):
        super().__init__()
        self.to_qkv = nn.Linear(width, 3 * width)
        self.decay = nn.Parameter(torch.tensor(0.5))

    def forward(self, x: Tensor, cache: WindowCache) -> Tensor:
        """One token x, (batch, width)."""
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        cache.push(k[:, None], v[:, None])
        scores = torch.einsum("bd,bnd->bn", q, cache._keys) * self.decay
        weights = scores.masked_fill(~cache.visible(), float("-inf")).softmax(-1)
        return x + torch.einsum("bn,bnd->bd", weights, cache._values)


class Stream(nn.Module):
    """Two layers that read a stream one item at a time."""

    def __init__(self):
        super().__init__()
        self.first = WindowAttention()
        self.second = WindowAttention()

    def forward(self, x: Tensor, caches: tuple[WindowCache, WindowCache]) -> Tensor:
        return torch.tanh(self.second(self.first(x, caches[0]), caches[1]))


def build():
    return Stream().eval()


def one_round(model, batch):
    caches = (WindowCache(batch, 8, 12), WindowCache(batch, 8, 12))
    prompt = torch.linspace(-1, 1, batch * 11 * 12).view(batch, 11, 12)
    for cache in caches:
        cache.fill(prompt[:, :3], prompt[:, :3].cos())
    x = prompt[:, -1]
    outputs = []
    for _ in range(21):
        x = model(x, caches)
        outputs.append(x)
    return [*outputs, len(caches[0]), len(caches[1])]


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
