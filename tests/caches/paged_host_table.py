"""Pages whose table is read on the host, element by element: which element it is depends on the length itself."""

from __future__ import annotations

import torch
import torch.nn as nn

# as a Python list, the table would cost a graph for each of its elements
REFUSED = "element"

PAGE = 8


class PagedCache:
    """Keys and values in pages, (page, batch, PAGE, width). Pages are handed out one behind the other."""

    def __init__(self, pages: int, batch: int, width: int, first_page: int = 0):
        self.keys = torch.zeros(pages, batch, PAGE, width)
        self.values = torch.zeros(pages, batch, PAGE, width)
        # block_table[i]: where the i-th page of the text lies
        self.block_table = torch.zeros(pages, dtype=torch.int32)
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
        fresh = key.shape[1]
        start = self.n_tokens.item()
        self._reserve(start + fresh)
        for i in range(fresh):
            page = self.block_table[(start + i) // PAGE].item()
            place = (start + i) % PAGE
            self.keys[page, :, place : place + 1] = key[:, i : i + 1]
            self.values[page, :, place : place + 1] = value[:, i : i + 1]
        self.n_tokens += fresh

    def gather(self) -> tuple[torch.Tensor, torch.Tensor]:
        """All keys and values in order, (batch, tokens, width)."""
        table = [self.block_table[i].item() for i in range(self.n_blocks.item())]
        keys = torch.cat([self.keys[page] for page in table], dim=1)
        values = torch.cat([self.values[page] for page in table], dim=1)
        return keys[:, : self.n_tokens.item()], values[:, : self.n_tokens.item()]

    def layout(self) -> tuple[int, list[int]]:
        """Tokens, and the pages in which they lie."""
        return int(self.n_tokens), [int(self.block_table[i]) for i in range(int(self.n_blocks))]


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
        read = torch.baddbmm(torch.zeros(1, 1, 1), self.q(x[:, -1:]), keys.transpose(1, 2)).softmax(-1) @ values
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
    return [*outputs, cache.layout()]


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
