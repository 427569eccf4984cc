"""An encoder's states are attended to by a decoder: its own past grows, the keys of the states are made once."""

from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.kv, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)


class Own(Attention):
    def forward(self, x, past=None):
        q = self.split(self.q(x))
        k, v = (self.split(part) for part in self.kv(x).chunk(2, dim=-1))
        if past is not None:
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.out(y.transpose(1, 2).flatten(2)), (k, v)


class Cross(Attention):
    def forward(self, x, states, past=None):
        if past is None:
            k, v = (self.split(part) for part in self.kv(states).chunk(2, dim=-1))
        else:
            k, v = past
        y = F.scaled_dot_product_attention(self.split(self.q(x)), k, v)
        return self.out(y.transpose(1, 2).flatten(2)), (k, v)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.own, self.cross = Own(width, heads), Cross(width, heads)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, states, past=None):
        own, cross = past if past is not None else (None, None)
        y, own = self.own(self.norms[0](x), own)
        x = x + y
        y, cross = self.cross(self.norms[1](x), states, cross)
        x = x + y
        return x + self.mlp(self.norms[2](x)), (own, cross)


class Decoder(nn.Module):
    def __init__(self, words, width, heads, layers, places=448):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(places, width))
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, states, start, past_key_values=None):
        x = self.words(ids) + self.places[start : start + ids.shape[1]]
        presents = []
        for i, layer in enumerate(self.layers):
            x, present = layer(x, states, past_key_values[i] if past_key_values is not None else None)
            presents.append(present)
        return self.norm(x[:, -1]) @ self.words.weight.T, presents


def build(tiny):
    return Decoder(97, 32, 4, 2) if tiny else Decoder(51865, 512, 8, 6)


def given(tiny, device):
    """Four words, and states (2, frames, width)."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 97 if tiny else 51865, (2, 4), generator=generator)
    states = torch.randn((2, 20, 32) if tiny else (2, 1500, 512), generator=generator)
    return ids.to(device), states.to(device)


@torch.no_grad()
def generate(model, ids, states, steps):
    """The tokens (batch, steps), and how much each was preferred."""
    past, start, tokens, sure = None, 0, [], []
    for _ in range(steps):
        logits, past = model(ids, states, start, past)
        start = start + ids.shape[1]
        ids = logits.argmax(-1, keepdim=True)
        tokens.append(ids)
        sure.append(logits.gather(-1, ids))
    return torch.cat(tokens, dim=1), torch.cat(sure, dim=1)
