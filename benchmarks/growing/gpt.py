"""A small GPT: a tuple of keys and values for each layer, longer with each call, and a greedy loop."""

from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, layer_past=None):
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, dim=-1))
        if layer_past is not None:
            past_key, past_value = layer_past
            k = torch.cat((past_key, k), dim=-2)
            v = torch.cat((past_value, v), dim=-2)
        present = (k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=layer_past is None)
        return self.out(y.transpose(1, 2).flatten(2)), present


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, layer_past=None):
        y, present = self.attention(self.before(x), layer_past)
        x = x + y
        return x + self.mlp(self.after(x)), present


class GPT(nn.Module):
    def __init__(self, words, width, heads, layers, places=1024):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, past_key_values=None):
        past_length = past_key_values[0][0].size(-2) if past_key_values is not None else 0
        places = torch.arange(past_length, past_length + ids.shape[1], device=ids.device)
        x = self.words(ids) + self.places(places)
        presents = ()
        for i, block in enumerate(self.blocks):
            x, present = block(x, past_key_values[i] if past_key_values is not None else None)
            presents = presents + (present,)  # noqa: RUF005 - as GPT-2 has it
        return self.norm(x[:, -1]) @ self.words.weight.T, presents


def build(tiny):
    return GPT(97, 32, 4, 2) if tiny else GPT(50304, 768, 12, 12)


def given(tiny, device):
    ids = torch.randint(0, 97 if tiny else 50304, (2, 64), generator=torch.Generator().manual_seed(0))
    return (ids.to(device),)


@torch.no_grad()
def generate(model, ids, steps):
    """The tokens (batch, steps), and how much each was preferred."""
    past, tokens, sure = None, [], []
    for _ in range(steps):
        logits, past = model(ids, past)
        ids = logits.argmax(-1, keepdim=True)
        tokens.append(ids)
        sure.append(logits.gather(-1, ids))
    return torch.cat(tokens, dim=1), torch.cat(sure, dim=1)
