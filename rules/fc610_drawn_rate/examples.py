"""What DrawnRate reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_RUN = "calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]\ntrain = True\n"


def _example(title: str, source: str, old: str, new: str, *, unsafe: bool = False) -> Example:
    assert old in source
    run = f"def make(): return Net()\n{_RUN}"
    return Example(title=title, before=source, after=source.replace(old, new), run=run, unsafe=unsafe)


_NET = """\
class Net(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.drop = drop

    def forward(self, x):
"""

INVALID: tuple[Example, ...] = (
    _example(
        "layers in a loop, one draw for all",
        _NET
        + """\
        probs = torch.empty(len(self.layers)).uniform_()
        for i, layer in enumerate(self.layers):
            if not self.training or (probs[i] >= self.drop):
                x = layer(x)
        return x
""",
        "(probs[i] >= self.drop)",
        "(self.drop <= 0 or probs[i] >= self.drop)",
    ),
    _example(
        "a draw for each layer",
        _NET
        + """\
        for layer in self.layers:
            if torch.rand(()) < self.drop and self.training:
                continue
            x = layer(x)
        return x
""",
        "            if torch.rand(()) < self.drop and",
        "            drawn = torch.rand(())\n            if (self.drop > 0 and drawn < self.drop) and",
    ),
    _example(
        "a draw for each layer, in training",
        _NET
        + """\
        for layer in self.layers:
            skipped = self.training and torch.rand(1) < self.drop
            if self.training and torch.rand(()) < self.drop:
                continue
            x = layer(x)
        return x
""",
        "torch.rand(()) < self.drop",
        "(self.drop > 0 and torch.rand(()) < self.drop)",
        unsafe=True,
    ),
    _example(
        "drawn for the second of two tests",
        _NET
        + """\
        if x is None:
            return x
        elif torch.rand(()) < self.drop:
            return x
        return self.layers[0](x)
""",
        "torch.rand(()) < self.drop",
        "self.drop > 0 and torch.rand(()) < self.drop",
        unsafe=True,
    ),
    _example(
        "the rate stands first",
        _NET
        + """\
        if self.drop > torch.rand(1).item():
            return x
        return self.layers[0](x)
""",
        "        if self.drop > torch.rand(1).item()",
        "        drawn = torch.rand(1)\n        if self.drop > 0 and self.drop > drawn.item()",
    ),
    _example(
        "a name holds the number",
        _NET
        + """\
        chance = torch.rand(())
        y = self.layers[0](x)
        return x if chance < self.drop else y
""",
        "chance < self.drop",
        "self.drop > 0 and chance < self.drop",
    ),
    _example(
        "not, and the other way round",
        _NET
        + """\
        y = self.layers[0](x)
        if not (self.drop <= torch.rand(())):
            y = y * 2
        return y
""",
        "        if not (self.drop <= torch.rand(()))",
        "        drawn = torch.rand(())\n        if not (self.drop <= 0 or self.drop <= drawn)",
    ),
    _example(
        "a rate that is given with the call",
        """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, rate: float = 0.0):
        y = self.lin(x)
        if torch.rand(1, device=x.device) < rate:
            y = torch.zeros_like(y)
        return y
""",
        "        if torch.rand(1, device=x.device) < rate",
        "        drawn = torch.rand(1, device=x.device)\n        if rate > 0 and drawn < rate",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="what is drawn may be zero, and then it is not above the rate",
        source=_NET
        + """\
        if torch.rand(()) <= self.drop:
            return x
        return self.layers[0](x)
""",
    ),
    NearMiss(
        title="normal numbers are below zero as often as not",
        source=_NET
        + """\
        if torch.randn(()) < self.drop:
            return x
        return self.layers[0](x)
""",
    ),
    NearMiss(
        title="drawn between other bounds",
        source=_NET
        + """\
        if torch.empty(()).uniform_(-1, 1) < self.drop:
            return x
        return self.layers[0](x)
""",
    ),
    NearMiss(
        title="moved below zero before it is compared",
        source=_NET
        + """\
        chance = torch.rand(())
        chance.sub_(0.5)
        if chance < self.drop:
            return x
        return self.layers[0](x)
""",
    ),
    NearMiss(
        title="its value is used, not its truth alone",
        source=_NET
        + """\
        keep = torch.rand(x.shape[0], 1) >= self.drop
        return self.layers[0](x) * keep
""",
    ),
    NearMiss(
        title="a rate that is not zero as a rule",
        source=_NET.replace("drop=0.0", "drop=0.5")
        + """\
        if torch.rand(()) < self.drop:
            return x
        return self.layers[0](x)
""",
    ),
    NearMiss(
        title="the rate is asked already",
        source=_NET
        + """\
        if self.drop > 0 and torch.rand(()) < self.drop:
            return x
        return self.layers[0](x)
""",
    ),
    NearMiss(
        title="somebody else sets the rate",
        source=_NET
        + """\
        if torch.rand(()) < self.drop:
            return x
        return self.layers[0](x)

    def warm(self, rate):
        self.drop = rate
""",
    ),
)
