"""An action decoder for a small robot policy; the position is a tensor with one element."""
# ruff: noqa: UP006, UP035, UP045

from __future__ import annotations

from typing import Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

# as it stands: 19 breaks, 25 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 3}


class ActionCache:
    def __init__(
        self, n_layers: int, n_env: int, horizon: int, d_model: int, device: Optional[torch.device] = None
    ) -> None:
        shape = (n_env, horizon, d_model)
        self.k: dict[int, torch.Tensor] = {}
        self.v: dict[int, torch.Tensor] = {}
        for layer in range(n_layers):
            self.k[layer] = torch.zeros(shape, device=device)
            self.v[layer] = torch.zeros(shape, device=device)
        self.pos = torch.zeros(1, dtype=torch.long, device=device)

    def write(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> None:
        p = self.pos[0].item()
        self.k[layer][:, p : p + k.size(1)].copy_(k)
        self.v[layer][:, p : p + v.size(1)].copy_(v)

    def read(self, layer: int, n: int) -> Tuple[torch.Tensor, torch.Tensor]:
        """Everything up to and with the ``n`` rows just written."""
        stop = self.pos.item() + n
        return self.k[layer][:, :stop], self.v[layer][:, :stop]

    def step(self, n: int = 1) -> None:
        self.pos += n

    @property
    def t(self) -> int:
        return int(self.pos)

    def reset(self) -> None:
        self.pos.fill_(0)


class CausalBlock(nn.Module):
    def __init__(self, layer: int, d_model: int):
        super().__init__()
        self.layer = layer
        self.ln = nn.LayerNorm(d_model)
        self.attn = nn.Linear(d_model, 3 * d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.SiLU(), nn.Linear(2 * d_model, d_model))

    def forward(self, h: torch.Tensor, cache: ActionCache) -> torch.Tensor:
        q, k, v = self.attn(self.ln(h)).split(h.shape[-1], dim=-1)
        cache.write(self.layer, k, v)
        k, v = cache.read(self.layer, h.shape[1])
        h = h + F.scaled_dot_product_attention(q, k, v, is_causal=h.shape[1] > 1)
        return h + self.mlp(h)


class Policy(nn.Module):
    """Observations (env, T, 6) to actions (env, T, 2)."""

    def __init__(self, d_model: int = 12, n_layers: int = 2, horizon: int = 30):
        super().__init__()
        self.obs = nn.Linear(6, d_model)
        self.time = nn.Parameter(torch.randn(horizon, d_model) / 10)
        self.blocks = nn.ModuleList([CausalBlock(i, d_model) for i in range(n_layers)])
        self.action = nn.Linear(d_model, 2)

    def forward(self, obs: torch.Tensor, cache: ActionCache) -> torch.Tensor:
        n = obs.shape[1]
        h = self.obs(obs) + self.time[cache.t : cache.t + n]
        for block in self.blocks:
            h = block(h, cache)
        cache.step(n)
        return torch.tanh(self.action(h))


def build():
    return Policy().eval()


def episode(model, batch):
    cache = ActionCache(2, batch, 30, 12)
    obs = torch.linspace(-1, 1, batch * 3 * 6).view(batch, 3, 6)
    outputs = []
    for _ in range(21):
        action = model(obs, cache)
        obs = obs[:, -1:] + action[:, -1:].repeat(1, 1, 3) / 4
        outputs.append(action)
    outputs.append(cache.t)
    cache.reset()
    return [*outputs, cache.t]


def rounds():
    return [lambda model, batch=batch: episode(model, batch) for batch in (1, 3, 2)]
