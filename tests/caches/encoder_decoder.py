"""Speech to text: the decoder's own past grows, the encoder's keys are written once; two lengths in one object."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

# as it stands: 28 breaks, 31 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 3}


class EncoderDecoderCache:
    """``self_*``: (layer, batch, head, token, size). ``cross_*``: (layer, batch, head, frame, size)."""

    def __init__(self, layers, batch, heads, tokens, frames, size):
        self.self_k = torch.zeros(layers, batch, heads, tokens, size)
        self.self_v = torch.zeros(layers, batch, heads, tokens, size)
        self.cross_k = torch.zeros(layers, batch, heads, frames, size)
        self.cross_v = torch.zeros(layers, batch, heads, frames, size)
        self.self_len = torch.zeros(layers, dtype=torch.long)
        self.cross_len = torch.zeros(layers, dtype=torch.long)

    def is_cross_filled(self, layer):
        return self.cross_len[layer].item() > 0

    def set_cross(self, layer, k, v):
        n = k.shape[2]
        self.cross_k[layer, :, :, :n] = k
        self.cross_v[layer, :, :, :n] = v
        self.cross_len[layer] = n

    def get_cross(self, layer):
        n = int(self.cross_len[layer])
        return self.cross_k[layer, :, :, :n], self.cross_v[layer, :, :, :n]

    def extend_self(self, layer, k, v):
        a = int(self.self_len[layer])
        b = a + k.shape[2]
        self.self_k[layer, :, :, a:b] = k
        self.self_v[layer, :, :, a:b] = v
        self.self_len[layer] += k.shape[2]
        return self.self_k[layer, :, :, :b], self.self_v[layer, :, :, :b]

    def past(self):
        return int(self.self_len[0])

    def clear(self):
        self.self_len.zero_()
        self.cross_len.zero_()


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.v, self.o = nn.Linear(width, width), nn.Linear(width, width)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def attend(self, q, k, v, causal=False):
        y = F.scaled_dot_product_attention(self.split(q), k, v, is_causal=causal)
        return self.o(y.transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, layer, width, heads):
        super().__init__()
        self.layer = layer
        self.own = Attention(width, heads)
        self.cross = Attention(width, heads)

    def forward(self, x, audio, cache):
        own, cross = self.own, self.cross
        k, v = cache.extend_self(self.layer, own.split(own.k(x)), own.split(own.v(x)))
        x = x + own.attend(own.q(x), k, v, causal=x.shape[1] > 1)
        if not cache.is_cross_filled(self.layer):
            cache.set_cross(self.layer, cross.split(cross.k(audio)), cross.split(cross.v(audio)))
        k, v = cache.get_cross(self.layer)
        return x + cross.attend(cross.q(x), k, v)


class Transcriber(nn.Module):
    def __init__(self, vocab=17, width=8, heads=2, layers=2):
        super().__init__()
        self.encoder = nn.Conv1d(4, width, 3, padding=1)
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(DecoderLayer(i, width, heads) for i in range(layers))

    def forward(self, ids, mel, cache):
        audio = F.gelu(self.encoder(mel)).transpose(1, 2)
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, audio, cache)
        return x @ self.embed.weight.T


def build():
    return Transcriber().eval()


def transcribe(model, cache, batch, frames):
    mel = torch.linspace(-1, 1, batch * 4 * frames).view(batch, 4, frames)
    ids = torch.arange(4 * batch).view(batch, 4) % 17
    outputs = []
    for _ in range(21):
        logits = model(ids, mel, cache)
        ids = logits[:, -1:].argmax(-1)
        outputs.append(logits)
    outputs.append([cache.past(), cache.is_cross_filled(1)])
    cache.clear()
    outputs.append([cache.past(), cache.is_cross_filled(1)])
    return outputs


def rounds():
    def one(batch, frames):
        return lambda model: transcribe(model, EncoderDecoderCache(2, batch, 2, 32, 16, 4), batch, frames)

    return [one(1, 9), one(3, 12), one(2, 15)]
