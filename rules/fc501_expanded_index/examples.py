"""What ExpandedIndex reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

#: The embedding is compiled by itself, for any batch, as regional compilation does.
_HOOK = """
def make():
    return Net()

def hook(net, backend):
    block = torch.compile(net.rotary.forward, backend=backend)

    def entry(ids):
        torch._dynamo.decorators.mark_unbacked(ids, 0)
        return block(ids)

    net.rotary.forward = entry
    return net

calls = [(torch.arange(b * 4.0).view(b, 4),) for b in (1, 2, 3, 4)]
"""

#: The same, with an embedding that the rule does not see.
_RUN = (
    """
class Rotary(nn.Module):
    def forward(self, ids):
        return (ids.unsqueeze(-1) * torch.tensor([1.0, 0.5, 0.25])).sin()
"""
    + _HOOK
)

INVALID: tuple[Example, ...] = (
    Example(
        title="position ids for a rotary embedding that is read",
        unsafe=True,
        before="""class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rates", torch.tensor([1.0, 0.5, 0.25]), persistent=False)

    @torch.no_grad()
    def forward(self, places):
        rows, length = places.shape
        angles = places.reshape(-1).float().unsqueeze(-1) * self.rates.unsqueeze(0)
        angles = angles.reshape(rows, length, -1)
        return angles.cos(), angles.sin()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def forward(self, x, start: int = 0):
        rows, length = x.size(0), x.size(1)
        places = torch.arange(start, start + length, device=x.device).unsqueeze(0).expand(rows, -1)
        cos, sin = self.rotary(places)
        return x.unsqueeze(-1) * cos + sin
""",
        after="""class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rates", torch.tensor([1.0, 0.5, 0.25]), persistent=False)

    @torch.no_grad()
    def forward(self, places):
        rows, length = places.shape
        angles = places.reshape(-1).float().unsqueeze(-1) * self.rates.unsqueeze(0)
        angles = angles.reshape(rows, length, -1)
        return angles.cos(), angles.sin()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def forward(self, x, start: int = 0):
        rows, length = x.size(0), x.size(1)
        places = torch.arange(start, start + length, device=x.device).unsqueeze(0).repeat(rows, 1)
        cos, sin = self.rotary(places)
        return x.unsqueeze(-1) * cos + sin
""",
        run=_HOOK,
    ),
    Example(
        title="a rotary embedding that is not read",
        unsafe=True,
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def forward(self, x, start: int = 0):
        rows, length = x.shape
        places = torch.arange(start, start + length, device=x.device).unsqueeze(0).expand(rows, -1)
        return x.unsqueeze(-1) + self.rotary(places)  # (rows, length, 3)
""",
        after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def forward(self, x, start: int = 0):
        rows, length = x.shape
        places = torch.arange(start, start + length, device=x.device).unsqueeze(0).repeat(rows, 1)
        return x.unsqueeze(-1) + self.rotary(places)  # (rows, length, 3)
""",
        run=_RUN,
    ),
    Example(
        title="a chain over several lines, handed to each block",
        unsafe=True,
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()
        self.blocks = [self.rotary, self.rotary]

    def forward(self, x):
        ids = (
            torch.arange(x.size(1), dtype=torch.long)  # one number a word
            .view(1, -1)  # one row

            # the same for every text
            .expand(
                x.size(0),  # texts
                -1,  # words
            )
        )
        x = x.unsqueeze(-1)
        for block in self.blocks:
            x = x + block(ids=ids)
        return x
""",
        after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()
        self.blocks = [self.rotary, self.rotary]

    def forward(self, x):
        ids = (
            torch.arange(x.size(1), dtype=torch.long)  # one number a word
            .view(1, -1)  # one row

            # the same for every text
            .repeat(
                x.size(0),  # texts
                1,  # words
            )
        )
        x = x.unsqueeze(-1)
        for block in self.blocks:
            x = x + block(ids=ids)
        return x
""",
        run=_RUN,
    ),
    Example(
        title="named first, expanded later, unless ids are given",
        unsafe=True,
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def forward(self, x, ids=None):
        if ids is None:
            row = torch.arange(x.shape[1], device=x.device)[None, :]
            ids = row.expand(x.shape[0], -1)
        return x.unsqueeze(-1) * self.rotary(ids)
""",
        after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def forward(self, x, ids=None):
        if ids is None:
            row = torch.arange(x.shape[1], device=x.device)[None, :]
            ids = row.repeat(x.shape[0], 1)
        return x.unsqueeze(-1) * self.rotary(ids)
""",
        run=_RUN,
    ),
    Example(
        title="both sizes written out",
        unsafe=True,
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def forward(self, x):
        batch, length = x.size()
        ids = torch.arange(length)
        later = ids[:, None] > ids
        ids = ids.unsqueeze(0).expand(batch, length)
        return self.rotary(ids).masked_fill(later[-1][:, None], 0.0)
""",
        after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def forward(self, x):
        batch, length = x.size()
        ids = torch.arange(length)
        later = ids[:, None] > ids
        ids = ids.unsqueeze(0).repeat(batch, 1)
        return self.rotary(ids).masked_fill(later[-1][:, None], 0.0)
""",
        run=_RUN,
    ),
    Example(
        title="returned by a method, past words counted in",
        unsafe=True,
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def _places(self, x, past: int):
        return (torch.arange(x.shape[1]) + past).unsqueeze(0).expand(x.shape[0], -1)

    def forward(self, x, past: int = 2):
        return self.rotary(self._places(x, past))
""",
        after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def _places(self, x, past: int):
        return (torch.arange(x.shape[1]) + past).unsqueeze(0).repeat(x.shape[0], 1)

    def forward(self, x, past: int = 2):
        return self.rotary(self._places(x, past))
""",
        run=_RUN,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="ids that are used up by operators",
        source="""class Net(nn.Module):
    def forward(self, x):
        ids = torch.arange(x.shape[1]).unsqueeze(0).expand(x.shape[0], -1)
        return x + ids.float()
""",
    ),
    NearMiss(
        title="ids that are converted before a plain function, traced with its caller, gets them",
        source="""\
def waves(places, width):
    return torch.sin(places / width)


class Waves(nn.Module):
    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device).unsqueeze(0).expand(x.shape[0], -1)
        return x + waves(places[..., None].to(torch.float32), 4.0) + waves(places.unsqueeze(-1), 8.0)
""",
    ),
    NearMiss(
        title="a width that is not the number of ids",
        source="""class Net(nn.Module):
    def forward(self, x, width):
        return self.place(torch.arange(1).unsqueeze(0).expand(x.shape[0], x.shape[1]))
""",
    ),
    NearMiss(
        title="a width that has changed since",
        source="""class Net(nn.Module):
    def forward(self, x, again):
        length = x.shape[1]
        ids = torch.arange(length).unsqueeze(0)
        if again:
            length = x.shape[2]
        return self.place(ids.expand(x.shape[0], length))
""",
    ),
    NearMiss(
        title="floating numbers",
        source="""class Net(nn.Module):
    def forward(self, x):
        return self.place((torch.arange(x.shape[1]) / 2).unsqueeze(0).expand(x.shape[0], -1))
""",
    ),
    NearMiss(
        title="a table that is trained",
        source="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(1, 8))
        self.ids = torch.arange(8).unsqueeze(0)

    def forward(self, x):
        return self.place(self.start.expand(x.shape[0], -1), self.ids.expand(x.shape[0], -1))
""",
    ),
    NearMiss(
        title="as large as something else",
        source="""class Net(nn.Module):
    def forward(self, x):
        return self.place(torch.arange(x.shape[1]).unsqueeze(0).expand_as(x))
""",
    ),
    NearMiss(
        title="ids that may come from the caller",
        source="""class Net(nn.Module):
    def forward(self, x, ids=None):
        if ids is None:
            ids = torch.arange(x.shape[1]).unsqueeze(0)
        return self.place(ids.expand(x.shape[0], -1))  # the caller's may have all rows
""",
    ),
    NearMiss(
        title="three sizes, or the batch as it is",
        source="""class Net(nn.Module):
    def forward(self, x):
        row = torch.arange(x.shape[1]).unsqueeze(0)
        return self.place(torch.arange(x.shape[1]).expand(3, x.shape[0], -1), row.expand(-1, -1))
""",
    ),
)
