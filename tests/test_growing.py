"""What grows with every call, and what only looks like it (FC305), beside the rule's own examples."""

from __future__ import annotations

import pytest

from patcher.engine import patch
from patcher.settings import Settings
from rules.fc305_growing_cache.rule import GrowingCache
from tests.dynamo import PREAMBLE

SILENT = {
    "a queue of two dimensions": """\
class N(nn.Module):
    def forward(self, x):
        self.queue = torch.cat([self.queue, x], dim=0)
        return x
""",
    "a batch twice, beside a past": """\
class N(nn.Module):
    def forward(self, x, past_k):
        x = torch.cat([x, x], dim=2)
        return x, past_k
""",
    "a constructor": """\
class N(nn.Module):
    def __init__(self):
        self.w = torch.cat([self.w, torch.ones(1, 2, 3)], dim=2)

    def forward(self, x):
        return x
""",
    "a skip connection": """\
class N(nn.Module):
    def forward(self, x, skip, prev=None):
        x = torch.cat([x, skip], dim=1)
        if prev is not None:
            y = torch.cat([prev, x], dim=1)
            x = self.c(y)
        return x, skip
""",
    "a list of one call": """\
class N(nn.Module):
    def forward(self, xs):
        out = []
        for x in xs:
            out.append(x)
        return torch.cat(out, dim=2), xs
""",
    "a list that is cleared first": """\
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = []

    def forward(self, x):
        self.f.clear()
        for l in self.l:
            self.f.append(l(x))
        return torch.cat(self.f, dim=2)
""",
    "a deque with a largest length": """\
from collections import deque


class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = deque(maxlen=4)

    def forward(self, x):
        self.f.append(x)
        return torch.cat(list(self.f), dim=2)
""",
    "a list that loses its oldest": """\
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = []

    def forward(self, x):
        self.f.append(x)
        if len(self.f) > 4:
            self.f.pop(0)
        return torch.cat(self.f, dim=2)
""",
    "two entries of a batch": """\
class N(nn.Module):
    def forward(self, batch):
        batch["x"] = torch.cat([batch["x"], batch["y"]], dim=2)
        return batch
""",
    "a prefix": """\
class N(nn.Module):
    def forward(self, k, v, prefix_k, prefix_v):
        k = torch.cat([prefix_k, k], dim=2)
        v = torch.cat([prefix_v, v], dim=2)
        return k, v
""",
    "a window by name": """\
class N(nn.Module):
    def forward(self, x):
        k = torch.cat([self.k, x], dim=2)
        k = k[:, :, -4:]
        self.k = k
        return k
""",
    "a window that is cut at times": """\
class N(nn.Module):
    def forward(self, x):
        k = torch.cat([self.k, x], dim=2)
        if k.shape[2] > 4:
            k = k[:, :, -4:]
        self.k = k
        return k
""",
    "a window that is returned": """\
class N(nn.Module):
    def forward(self, x, past_key=None, past_value=None):
        k = torch.cat([past_key, x], dim=2)
        v = torch.cat([past_value, x], dim=2)
        return x, (k[:, :, -8:], v[:, :, -8:])
""",
    "state that starts anew": """\
class N(nn.Module):
    def forward(self, x):
        self.k = None
        for i in range(3):
            if self.k is None:
                self.k = x
            else:
                self.k = torch.cat([self.k, x], dim=2)
        return self.k
""",
    "losses": """\
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.losses = []

    def forward(self, x):
        self.losses.append(x.sum())
        return torch.stack(self.losses)
""",
    "a part of the place": """\
class N(nn.Module):
    def forward(self, x):
        self.k = torch.cat([self.k[:, :, : self.n], x], dim=2)
        return x
""",
    "a dict that starts anew": """\
class N(nn.Module):
    def forward(self, x):
        self.feats = {}
        self.collect(x)
        return x

    def collect(self, x):
        self.feats["k"] = torch.cat([self.feats["k"], x], dim=2)
""",
    "a table that forward checks first": """\
class N(nn.Module):
    def forward(self, x):
        if x.shape[1] > self.table.shape[1]:
            self.extend(x.shape[1])
        return x + self.table[:, : x.shape[1]]

    def extend(self, n):
        self.table = torch.cat([self.table, self.rows(self.table.shape[1], n)], dim=1)
""",
    "a table that is extended in place": """\
class N(nn.Module):
    def forward(self, x):
        n = x.size(2)
        if self.k.size(2) < n:
            self.k = torch.cat([self.k, self.more(n)], dim=2)
        return self.k[:, :, :n]
""",
}
REPORTED = {
    "a conditional expression": """\
class N(nn.Module):
    def forward(self, x):
        self.k = x if self.k is None else torch.cat([self.k, x], dim=2)
        return self.k
""",
    "an attribute of an argument": """\
class N(nn.Module):
    def forward(self, x, cache):
        cache.k = torch.cat([cache.k, x], dim=2)
        return x
""",
    "a pair in a list": """\
class N(nn.Module):
    def forward(self, x, kv_cache, i):
        pk, pv = kv_cache[i]
        k = torch.cat([pk, x], dim=2)
        v = torch.cat([pv, x], dim=2)
        kv_cache[i] = (k, v)
        return x
""",
    "a past that is optional": """\
class N(nn.Module):
    def forward(self, x, past=None):
        if past is not None:
            x = torch.cat([past[0], x], dim=2)
        return F.relu(x), (x,)
""",
    "cat by its own name": """\
from torch import cat


class N(nn.Module):
    def forward(self, x):
        self.k = cat((self.k, x), 2)
        return x
""",
    "lists of tensors by layer": """\
class C:
    def __init__(self):
        self.key_cache = []
        self.value_cache = []

    def update(self, k, v, layer_idx):
        if len(self.key_cache) <= layer_idx:
            self.key_cache.append(k)
            self.value_cache.append(v)
        else:
            self.key_cache[layer_idx] = torch.cat([self.key_cache[layer_idx], k], dim=-2)
            self.value_cache[layer_idx] = torch.cat([self.value_cache[layer_idx], v], dim=-2)
        return self.key_cache[layer_idx], self.value_cache[layer_idx]
""",
    "a dataclass": """\
from dataclasses import dataclass


@dataclass
class C:
    k: torch.Tensor
    v: torch.Tensor

    def update(self, k, v):
        self.k = torch.cat([self.k, k], dim=1)
        self.v = torch.cat([self.v, v], dim=1)
        return C(self.k, self.v)
""",
    "two arguments": """\
class N(nn.Module):
    def forward(self, x, k_cache, v_cache):
        k = torch.cat([k_cache, x], dim=2)
        v = torch.cat([v_cache, x], dim=2)
        return x, k, v
""",
    "a pair for each layer": """\
class N(nn.Module):
    def forward(self, x, past):
        new = []
        for i, (l, (pk, pv)) in enumerate(zip(self.layers, past)):
            k = torch.cat([pk, l(x)], dim=2)
            v = torch.cat([pv, l(x)], dim=2)
            new.append((k, v))
        return x, new
""",
    "a pair in an attribute": """\
class N(nn.Module):
    def forward(self, x):
        if self.past_kv is not None:
            k, v = self.past_kv
            k2 = torch.cat([k, x], 2)
            v2 = torch.cat([v, x], 2)
        else:
            k2 = v2 = x
        self.past_kv = (k2, v2)
        return k2
""",
    "dict.get": """\
class N(nn.Module):
    def forward(self, x, cache):
        past = cache.get("k")
        if past is not None:
            x = torch.cat([past, x], dim=2)
        cache["k"] = x
        return x
""",
    "an attribute of an attribute": """\
class N(nn.Module):
    def forward(self, x):
        self.state.k = torch.cat([self.state.k, x], dim=2)
        return x
""",
    "a history with a limit": """\
class N(nn.Module):
    def forward(self, x):
        if self.k.shape[2] < self.limit:
            self.k = torch.cat([self.k, x], dim=2)
        return self.k
""",
    "a history with a limit that is a number": """\
class N(nn.Module):
    def forward(self, x):
        limit = 64
        if self.k.shape[2] >= limit:
            return x
        self.k = torch.cat([self.k, x], dim=2)
        return self.k
""",
    "a history that is checked to be there": """\
class N(nn.Module):
    def forward(self, x):
        if self.k.shape[2] > 0:
            self.k = torch.cat([self.k, x], dim=2)
        return self.k
""",
    "a history that is extended when it is longer": """\
class N(nn.Module):
    def forward(self, x):
        if self.k.shape[2] >= x.shape[2]:
            self.k = torch.cat([self.k, x], dim=2)
        return self.k
""",
    "a table that one caller does not check": """\
class N(nn.Module):
    def forward(self, x):
        if x.shape[1] > self.table.shape[1]:
            self.extend(x)
        self.extend(x)
        return self.table

    def extend(self, x):
        self.table = torch.cat([self.table, x.transpose(1, 2)], dim=2)
""",
}


def found(source: str) -> int:
    result = patch(PREAMBLE + source, "example.py", (GrowingCache(),), Settings())
    assert result.bugs == ()
    return len(result.found)


@pytest.mark.parametrize("name", SILENT)
def test_nothing_grows(name: str) -> None:
    assert not found(SILENT[name])


@pytest.mark.parametrize("name", REPORTED)
def test_it_grows(name: str) -> None:
    assert found(REPORTED[name])
