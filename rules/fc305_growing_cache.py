"""FC305: keys and values that are joined to a longer tensor with every call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import ClassVar

from patcher.facts import Facts, Growth
from patcher.rule import Cost, Example, Finding, NearMiss

_LONG = 40

#: A model of two layers whose attention takes a ``Memory``: a first read, then single steps.
_RUN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, memory):
        for layer in range(2):
            q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 2, 4).permute(2, 0, 3, 1, 4)
            k, v = memory.update(k, v, layer)
            x = x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x

def go(net):
    memory = Memory()
    return [net(torch.linspace(-1, 1, 16 * n).view(2, n, 8), memory) for n in (5, 1, 1, 1, 1)]

def make(): return Net()
calls = [go]
"""
#: A model that keeps its own state.
_OWN = """
def go(net):
    return [net(torch.linspace(-1, 1, 16 * n).view(2, n, 8)) for n in (5, 1, 1, 1, 1)]

def make(): return Net()
calls = [go]
"""
#: A model that is given ``EMPTY`` first, and then what it gave back.
_BACK = """
def go(net):
    outputs, past = [], EMPTY
    for n in (5, 1, 1, 1, 1):
        out, past = net(torch.linspace(-1, 1, 16 * n).view(2, n, 8), past)
        outputs.append(out)
    return outputs

def make(): return Net()
calls = [go]
"""


class GrowingCache:
    """Keys and values, or other state of three dimensions or more, that get longer with every call.

    What it does:
        Reports, in code that gets compiled, ``self.k = torch.cat([self.k, k], dim=2)`` and its like: an attribute, an
        entry of a list or dict, what a parameter holds (``past["key"]``), what comes in as ``past`` and goes out longer
        beside the other results, and a list of tensors that gets one more in each call and is joined when it is read.
        It shows the form with a buffer in the names of the source. It rewrites nothing.

    Why it breaks compilation:
        Each call has another shape. Dynamo compiles again to make the length symbolic, and each step reads and writes
        all that was kept so far. Of a list Dynamo knows how many tensors are in it, so it compiles for each number of
        them, up to the limit, and then gives the frame up. Measured on torch 2.13, CPU, one thread of a shared machine,
        float32, Inductor: 4 layers of 8 heads of 64, batch 2, a first call of 2048 tokens, then 20 of one; two quiet
        runs, median step, no breaks in any of the three:

        - torch.cat on attributes: 2 recompiles in the first round, 4 after one of other lengths; 9.3 and 9.8 ms;
        - a list of tensors: 8 recompiles, then the limit; 11.3 and 11.8 ms once it runs eagerly;
        - a buffer and a Python integer: 1 recompile, then 3; 6.1 and 6.3 ms.

        Over six runs, busy ones included, the buffer took two thirds of the time of torch.cat in the median (0.4 to
        0.9). After a first call of 256 tokens the difference is lost in the noise (2.0 to 2.8 ms).

        CUDA graphs (``mode="reduce-overhead"``) bear neither of the first two, for what was kept is an output of a
        graph, whose memory the next run uses again. Measured on an H200, torch 2.11, bfloat16: 4 layers of 12 heads of
        64, batch 8, a first call of 1024 tokens, then 40 of one, the round repeated, median step:

        - torch.cat, and the list: "accessing tensor output of CUDAGraphs that has been overwritten" within three calls;
        - torch.cat, each kept tensor cloned between the calls: a recording for each of the 41 lengths, 7.5 ms a step
          while they are made, 0.5 ms in a round of which most lengths had been recorded (0.6 ms without CUDA graphs);
        - a buffer and a Python integer: skipped 82 times for "mutated inputs"; with the buffers marked (FC303) no skip,
          and also a recording for each length (8.3 ms a step while they are made), but nothing to clone.

    Fix safety:
        There is no fix, not even an unsafe one. How much room there has to be is mostly not in the code, and where a
        largest length is, a buffer still takes more for granted than one sentence can say: that batch, dtype and device
        stay, that nobody sets the attribute to None or reads its length from its shape, that no gradient flows
        back, and that tensors that were given out earlier may be views of what is written later.

    References:
        The cache fixes of the nanoVLM and Toto reports; PyTorch, "Dynamic shapes", and "CUDAGraph Trees".
    """

    code: ClassVar[str] = "FC305"
    name: ClassVar[str] = "growing-cache"
    triggers: ClassVar[tuple[bytes, ...]] = (b"cat(", b"concat(", b"concatenate(", b"stack(")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.FunctionDef,)
    fixed_in: ClassVar[tuple[int, int] | None] = None
    costs: ClassVar[tuple[Cost, ...]] = ("recompilation", "dynamic shape", "CUDA graphs")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report what grows in the function ``node``, once for all of it."""
        assert isinstance(node, ast.FunctionDef)
        found = [g for g in facts.growing.of(node) if not facts.eager_only(g.node)]
        if found:
            yield Finding(found[0].node, _message(found), assumption=_without(found[0]))

    invalid: ClassVar[tuple[Example, ...]] = (
        Example(
            title="two attributes, empty at first",
            before="""class Memory:
    def __init__(self):
        self.k = [None, None]
        self.v = [None, None]

    def update(self, k, v, layer):
        if self.k[layer] is None:
            self.k[layer], self.v[layer] = k, v
        else:
            self.k[layer] = torch.cat([self.k[layer], k], dim=2)
            self.v[layer] = torch.cat([self.v[layer], v], dim=2)
        return self.k[layer], self.v[layer]
""",
            after=None,
            run=_RUN,
        ),
        Example(
            title="the module's own attribute, through a name",
            before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv = nn.Linear(8, 8)
        self.past = None

    def forward(self, x):
        k = self.kv(x).view(2, -1, 2, 4).transpose(1, 2)
        k = k if self.past is None else torch.concat((self.past, k), 2)
        self.past = k.detach()
        return F.scaled_dot_product_attention(x.view(2, -1, 2, 4).transpose(1, 2), k, k)

    def reset(self):
        self.past = None
""",
            after=None,
            run=_OWN,
        ),
        Example(
            title="entries of a dict that is handed in",
            before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, block_cache=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        if block_cache is not None and block_cache["key"] is not None:
            past, values = block_cache["key"], block_cache["value"]
            k = torch.cat([past, k], dim=1)
            v = torch.cat([values, v], dim=1)
            block_cache["key"] = k
            block_cache["value"] = v
        else:
            block_cache = {"key": k, "value": v}
        return F.scaled_dot_product_attention(q, k, v), block_cache
""",
            after=None,
            run=_BACK.replace("EMPTY", "None"),
        ),
        Example(
            title="a pair comes in and a longer one goes out",
            before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, layer_past=None):
        q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        if layer_past is not None:
            past_key, past_value = layer_past
            k = torch.cat((past_key, k), dim=-2)
            v = torch.cat((past_value, v), dim=-2)
        present = (k, v)
        return F.scaled_dot_product_attention(q, k, v), present
""",
            after=None,
            run=_BACK.replace("EMPTY", "None"),
        ),
        Example(
            title="a cache for each layer, in a loop",
            before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

    def forward(self, x, caches):
        kept = []
        for layer, cache in zip(self.layers, caches):
            k = torch.cat([cache, layer(x)], dim=1)
            kept.append(k)
            x = F.scaled_dot_product_attention(x, k, k)
        return x, kept
""",
            after=None,
            run=_BACK.replace("EMPTY", "[torch.zeros(2, 2, 8), torch.zeros(2, 2, 8)]"),
        ),
        Example(
            title="a list of tensors for each layer",
            before="""class Memory:
    def __init__(self):
        self.keys = [[], []]
        self.values = [[], []]

    def update(self, k, v, layer):
        self.keys[layer].append(k)
        self.values[layer].append(v)
        return torch.cat(self.keys[layer], dim=2), torch.cat(self.values[layer], dim=2)
""",
            after=None,
            run=_RUN,
        ),
        Example(
            title="a module that remembers what it saw in a list",
            before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv = nn.Linear(8, 8)
        self.seen = []

    def forward(self, x):
        batch, length, width = x.shape
        self.seen.append(x)
        past = self.kv(torch.cat(self.seen, dim=1))
        return F.scaled_dot_product_attention(x, past, past)
""",
            after=None,
            run=_OWN,
        ),
    )

    valid: ClassVar[tuple[NearMiss, ...]] = (
        NearMiss(
            title="a window that keeps its size",
            source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = torch.zeros(2, 2, 8, 4)

    def forward(self, k):
        self.k = torch.cat([self.k[:, :, 1:], k], dim=2)
        return self.k
""",
        ),
        NearMiss(
            title="a window that is cut afterwards",
            source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = torch.zeros(2, 2, 8, 4)

    def forward(self, k):
        self.k = torch.cat([self.k, k], dim=2)
        if self.k.shape[2] > 8:
            self.k = self.k[:, :, -8:]
        return self.k
""",
        ),
        NearMiss(
            title="a window that comes in and goes out",
            source="""class Net(nn.Module):
    def forward(self, x, conv_cache=None):
        if conv_cache is not None:
            x = torch.cat([conv_cache, x], dim=2)
        conv_cache = x[:, :, -3:]
        return x.mean(2), conv_cache
""",
        ),
        NearMiss(
            title="a table that is made longer when more of it is asked for",
            source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.zeros(1, 16, 8)

    def forward(self, x):
        self.extend(x.shape[1])
        return x + self.table[:, : x.shape[1]]

    def extend(self, length):
        known, width = self.table.size(1), self.table.size(2)
        if length <= known:
            return
        more = torch.arange(known, length).view(1, -1, 1).expand(1, -1, width) / width
        self.table = torch.cat([self.table, more], dim=1)
""",
        ),
        NearMiss(
            title="a class token and a prompt",
            source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cls = nn.Parameter(torch.zeros(1, 1, 8))

    def forward(self, x, prompt):
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1)
        prompt = torch.cat([prompt, x], dim=1)
        return prompt, x
""",
        ),
        NearMiss(
            title="features that a decoder joins to those of the encoder",
            source="""class Net(nn.Module):
    def forward(self, features, x):
        finer = torch.cat([features[0], x], dim=1)
        coarser = torch.cat([features[1], F.max_pool2d(finer, 2)], dim=1)
        return finer, coarser
""",
        ),
        NearMiss(
            title="outputs of one call, collected anew each time",
            source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.seen = []

    def forward(self, x):
        self.seen = []
        for layer in self.layers:
            x = layer(x)
            self.seen.append(x.unflatten(-1, (2, 4)).transpose(1, 2))
        return torch.cat(self.seen, dim=2)
""",
        ),
        NearMiss(
            title="state that starts anew in each call",
            source="""class Net(nn.Module):
    def forward(self, x):
        self.start(x)
        for _ in range(3):
            self.kept = torch.cat([self.kept, x], dim=2)
        return self.kept

    def start(self, x):
        self.kept = x
""",
        ),
        NearMiss(
            title="words and masks, which have two dimensions",
            source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.ids = torch.zeros(2, 1, dtype=torch.long)

    def forward(self, ids, past_mask=None):
        self.ids = torch.cat([self.ids, ids], dim=1)
        mask = torch.cat([past_mask, torch.ones_like(ids)], dim=-1)
        return self.ids, mask
""",
        ),
        NearMiss(
            title="code that is never compiled",
            source="""def extend(past, k):
    past["key"] = torch.cat([past["key"], k], dim=2)
    return past


class Net(nn.Module):
    @torch.compiler.disable
    def extend(self, past, k):
        past["key"] = torch.cat([past["key"], k], dim=2)

    def forward(self, x):
        return x
""",
        ),
        NearMiss(
            title="past and future, joined once",
            source="""class Net(nn.Module):
    def forward(self, past_values, future_values, past_times, future_times):
        values = torch.cat([past_values, future_values], dim=1)
        times = torch.cat([past_times, future_times], dim=1)
        return values, times
""",
        ),
        NearMiss(
            title="more room, when there is too little",
            source="""class Memory:
    def __init__(self, room):
        self.k = torch.zeros(2, 2, room, 4)
        self.n = 0

    def update(self, k):
        if self.n + k.shape[2] > self.k.shape[2]:
            self.k = torch.cat([self.k, torch.zeros_like(self.k)], dim=2)
        self.k[:, :, self.n : self.n + k.shape[2]] = k
        self.n += k.shape[2]
        return self.k[:, :, : self.n]


class Net(nn.Module):
    def forward(self, x, memory):
        return memory.update(x)
""",
        ),
    )


def _message(found: Sequence[Growth]) -> str:
    texts = list(dict.fromkeys(f"`{g.text}`" for g in found))
    what, one = " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1]))), len(texts) == 1
    if all(g.how == "listed" for g in found):
        return (
            f"{what} {'is a list that gets' if one else 'are lists that get'} one tensor more with each call: code is "
            "compiled for each number of them, up to the recompile limit, and each step joins all that was kept"
        )
    return (
        f"{what} {'grows' if one else 'grow'} with each call: another shape each time (a recompile to dynamic shapes), "
        "each step reads and writes all that was kept, and with CUDA graphs it raises unless what is kept is cloned"
    )


def _without(growth: Growth) -> str:
    """Why there is no fix, with the buffer in the names of the source."""
    fresh = ast.unparse(growth.fresh)
    if len(fresh) > _LONG or not fresh.isidentifier():
        fresh = "new"
    sizes, before, after = _layout(growth.dim)
    place = growth.text
    write = f"`{place}[{before}n : n + t{after}] = {fresh}`, use `{place}[{before}: n + t{after}]`"
    back = ", return none of it" if growth.how == "returned" else ""
    return (
        "how much room there has to be is not in the code; with that, "
        f"make `{place} = {fresh}.new_zeros({sizes})` once, write {write}, and count `n` in a Python int{back}"
    )


def _layout(dim: int | None) -> tuple[str, str, str]:
    """The sizes of the buffer, and what stands before and after the part along ``dim``."""
    if dim is None or not -4 < dim < 4:
        return "..., room, ...", "..., ", ", ..."
    if dim >= 0:
        sizes = {0: "room, ...", 1: "B, room, ...", 2: "B, H, room, D"}.get(dim, "..., room, ...")
        return sizes, ":, " * dim, ""
    sizes = {-1: "..., room", -2: "..., room, D"}.get(dim, "..., room, H, D")
    return sizes, "..., ", ", :" * (-dim - 1)
