"""Python integers and a private method that breaks the graph, called behind every write."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F

# as it stands: 18 breaks, 18 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 3}


@dataclass
class DecodingState:
    """All that one decoding run needs to remember."""

    layers: int
    batch: int
    width: int
    room: int = 30
    keys: torch.Tensor = field(init=False, repr=False)
    values: torch.Tensor = field(init=False, repr=False)
    lengths: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.keys = torch.zeros(self.layers, self.batch, self.room, self.width)
        self.values = torch.zeros(self.layers, self.batch, self.room, self.width)
        self.lengths = [0 for _ in range(self.layers)]

    def _apply_graph_break(self) -> None:
        """Keep the integers out of the graph."""
        if torch.compiler.is_compiling():
            torch._dynamo.graph_break()

    def update(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        start, end = self.lengths[layer], self.lengths[layer] + key.shape[1]
        self.keys[layer, :, start:end] = key
        self.values[layer, :, start:end] = value
        self._apply_graph_break()
        self.lengths[layer] = end
        return self.keys[layer, :, :end], self.values[layer, :, :end]

    def __len__(self) -> int:
        return self.lengths[0]


class CrossLayer(nn.Module):
    def __init__(self, layer: int, width: int):
        super().__init__()
        self.layer = layer
        self.attention = nn.ModuleDict({name: nn.Linear(width, width) for name in ("q", "k", "v", "o")})

    def forward(self, x: torch.Tensor, state: DecodingState) -> torch.Tensor:
        a = self.attention
        k, v = state.update(self.layer, a["k"](x), a["v"](x))
        mixed = F.scaled_dot_product_attention(a["q"](x)[:, None], k[:, None], v[:, None])
        return F.relu(x + a["o"](mixed[:, 0]))


class Captioner(nn.Module):
    def __init__(self, layers: int = 2, width: int = 8, vocabulary: int = 15):
        super().__init__()
        self.picture = nn.Conv2d(3, width, 4, stride=4)
        self.words = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList([CrossLayer(i, width) for i in range(layers)])

    def forward(self, state: DecodingState, picture=None, words=None) -> torch.Tensor:
        x = self.picture(picture).flatten(2).mT if picture is not None else self.words(words)
        for layer in self.layers:
            x = layer(x, state)
        return x[:, -1] @ self.words.weight.mT


def build():
    return Captioner().eval()


def caption(model, batch):
    state = DecodingState(2, batch, 8)
    picture = torch.linspace(-1, 1, batch * 3 * 64).view(batch, 3, 8, 8)
    logits = model(state, picture=picture)
    outputs = [logits]
    for _ in range(20):
        logits = model(state, words=logits.argmax(-1, keepdim=True))
        outputs.append(logits)
    return [*outputs, len(state)]


def rounds():
    return [lambda model, batch=batch: caption(model, batch) for batch in (1, 3, 2)]
