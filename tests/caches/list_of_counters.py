"""A music model in miniature: two streams of codes share a cache with one counter tensor a layer, in a list."""
# ruff: noqa: UP004, UP031

import math

import torch
from torch import nn

# as it stands: 18 breaks, 23 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 3}


class StreamingState(object):
    def __init__(self, num_layers, batch_size, max_len, dim):
        self.num_layers = num_layers
        self.max_len = max_len
        self.cached_k = [torch.zeros(batch_size, max_len, dim) for _ in range(num_layers)]
        self.cached_v = [torch.zeros(batch_size, max_len, dim) for _ in range(num_layers)]
        self.offsets = [torch.tensor(0) for _ in range(num_layers)]

    def complete(self, idx, k, v):
        offset = self.offsets[idx].item()
        T = k.shape[1]
        if offset + T > self.max_len:
            raise RuntimeError("streaming state is full: %d of %d" % (offset + T, self.max_len))
        self.cached_k[idx][:, offset : offset + T] = k
        self.cached_v[idx][:, offset : offset + T] = v
        self.offsets[idx] += T
        return self.cached_k[idx][:, : offset + T], self.cached_v[idx][:, : offset + T]

    def get_offset(self, idx=0):
        return self.offsets[idx].item()

    def flush(self):
        for i in range(self.num_layers):
            self.offsets[i].zero_()


def sinusoid(positions, dim):
    angle = positions[:, None] * torch.exp(
        -math.log(100.0) * torch.arange(dim // 2, device=positions.device) / (dim // 2)
    )
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


class StreamingAttention(nn.Module):
    def __init__(self, idx, dim):
        super().__init__()
        self.idx = idx
        self.proj = nn.Linear(dim, 3 * dim)

    def forward(self, x, state):
        q, k, v = self.proj(x).chunk(3, dim=-1)
        k, v = state.complete(self.idx, k, v)
        T, S = q.shape[1], k.shape[1]
        # bottom right is the newest pair
        mask = torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T)
        w = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).masked_fill(~mask, -1e9)
        return x + w.softmax(dim=-1) @ v


class CodeModel(nn.Module):
    def __init__(self, card=11, dim=12, num_layers=4, streams=2):
        super().__init__()
        self.emb = nn.ModuleList([nn.Embedding(card, dim) for _ in range(streams)])
        self.layers = nn.ModuleList([StreamingAttention(i, dim) for i in range(num_layers)])
        self.heads = nn.ModuleList([nn.Linear(dim, card) for _ in range(streams)])

    def forward(self, codes, state):
        """codes (B, streams, T) -> logits (B, streams, T, card)"""
        x = sum(emb(codes[:, s]) for s, emb in enumerate(self.emb))
        offset = state.get_offset()
        x = x + sinusoid(torch.arange(offset, offset + x.shape[1], device=x.device), x.shape[2])
        for layer in self.layers:
            x = layer(x, state)
        return torch.stack([head(x) for head in self.heads], dim=1)


def build():
    return CodeModel().eval()


def one_round(model, batch):
    state = StreamingState(4, batch, 40, 12)
    codes = torch.arange(batch * 2 * 4).view(batch, 2, 4) % 11
    outputs = []
    for _ in range(21):
        logits = model(codes, state)
        codes = logits[:, :, -1:].argmax(-1)
        outputs.append(logits)
    outputs.append(state.get_offset(3))
    state.flush()
    return [*outputs, state.get_offset()]


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
