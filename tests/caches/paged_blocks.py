"""Pages of eight tokens out of a common pool; a table says where each page lies, counters say how much is used."""

from __future__ import annotations

import torch
import torch.nn as nn

# as it stands: 10 breaks, 12 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 7}

PAGE = 8


class PagedCache:
    """Keys and values in pages, (page, PAGE, batch, width). Pages are handed out one behind the other."""

    def __init__(self, pages: int, batch: int, width: int, first_page: int = 0):
        self.keys = torch.zeros(pages, PAGE, batch, width)
        self.values = torch.zeros(pages, PAGE, batch, width)
        # block_table[i]: where the i-th page of the text lies; it is looked up on the device
        self.block_table = torch.zeros(pages, dtype=torch.long)
        self.n_blocks = torch.tensor(0, dtype=torch.int32)
        self.n_tokens = torch.tensor(0, dtype=torch.int32)
        self.next_free = torch.tensor(first_page, dtype=torch.int32)

    def _reserve(self, tokens: int) -> None:
        """Hand out pages until ``tokens`` fit."""
        while self.n_blocks.item() * PAGE < tokens:
            self.block_table[self.n_blocks.item()] = self.next_free.item()
            self.next_free += 1
            self.n_blocks += 1

    def append(self, key: torch.Tensor, value: torch.Tensor) -> None:
        """key, value: (batch, fresh, width)."""
        start = self.n_tokens.item()
        stop = start + key.shape[1]
        self._reserve(stop)
        places = torch.arange(start, stop, device=key.device)
        pages = self.block_table[places // PAGE]
        self.keys[pages, places % PAGE] = key.transpose(0, 1)
        self.values[pages, places % PAGE] = value.transpose(0, 1)
        self.n_tokens += key.shape[1]

    def gather(self) -> tuple[torch.Tensor, torch.Tensor]:
        """All keys and values in order, (batch, tokens, width)."""
        table = self.block_table[: self.n_blocks.item()]
        keys, values = self.keys[table].flatten(0, 1), self.values[table].flatten(0, 1)
        n = self.n_tokens.item()
        return keys[:n].transpose(0, 1), values[:n].transpose(0, 1)

    def used(self) -> tuple[int, int]:
        """Tokens and pages."""
        return int(self.n_tokens), int(self.n_blocks)

    def release(self) -> None:
        self.n_blocks.zero_()
        self.n_tokens.zero_()


class Decoder(nn.Module):
    def __init__(self, width: int = 10):
        super().__init__()
        self.inp = nn.GRUCell(width, width)
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * width, bias=False)

    def forward(self, x: torch.Tensor, cache: PagedCache) -> torch.Tensor:
        key, value = self.kv(x).chunk(2, -1)
        cache.append(key, value)
        keys, values = cache.gather()
        read = torch.bmm(self.q(x[:, -1:]), keys.transpose(1, 2)).softmax(-1) @ values
        return self.inp(read[:, 0], x[:, -1])[:, None]


def build():
    return Decoder().eval()


def one_round(model, batch):
    cache = PagedCache(6, batch, 10, first_page=1)
    x = torch.linspace(-1, 1, batch * 5 * 10).view(batch, 5, 10)
    outputs = []
    for _ in range(21):
        x = model(x, cache)
        outputs.append(x)
    outputs.append([cache.used(), cache.block_table.clone()])
    cache.release()
    return [*outputs, cache.used()]


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
