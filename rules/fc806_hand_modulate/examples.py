"""What HandModulate reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="an adaptive layer norm",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return self.norm(x) * (1 + scale[:, None]) + shift[:, None]
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8), torch.randn(2, 8)), (torch.randn(1, 5, 8), torch.randn(1, 8))]
""",
        gain=False,
    ),
    Example(
        title="a function of its own",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return self.modulate(self.norm(x), shift, scale)

    def modulate(self, x, shift, scale):
        return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8), torch.randn(2, 8)), (torch.randn(1, 5, 8), torch.randn(1, 8))]
""",
        gain=False,
    ),
    Example(
        title="in another order",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        x = self.norm(x)
        x = shift[:, None] + (scale[:, None] + 1.0) * x
        return x * gate[:, None]
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8), torch.randn(2, 8)), (torch.randn(1, 5, 8), torch.randn(1, 8))]
""",
        gain=False,
    ),
    Example(
        title="in two steps",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        scaled = self.norm(x) * (1 + scale[:, None])
        return scaled + shift[:, None]
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8), torch.randn(2, 8)), (torch.randn(1, 5, 8), torch.randn(1, 8))]
""",
        gain=False,
    ),
    Example(
        title="one and the scale have a name",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        factor = 1 + scale[:, None]
        return torch.add(self.norm(x) * factor, shift[:, None])
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8), torch.randn(2, 8)), (torch.randn(1, 5, 8), torch.randn(1, 8))]
""",
        gain=False,
    ),
    Example(
        title="with a gate around it",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return x + gate[:, None] * (self.norm(x) * (1 + scale[:, None]) + shift[:, None])
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8), torch.randn(2, 8)), (torch.randn(1, 5, 8), torch.randn(1, 8))]
""",
        gain=False,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="nothing is shifted",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return self.norm(x) * (1 + scale[:, None])
""",
    ),
    NearMiss(
        title="nothing is added to the scale",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return self.norm(x) * scale[:, None] + shift[:, None]
""",
    ),
    NearMiss(
        title="two and the scale",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return self.norm(x) * (2 + scale[:, None]) + shift[:, None]
""",
    ),
    NearMiss(
        title="one less the scale",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return self.norm(x) * (1 - scale[:, None]) + shift[:, None]
""",
    ),
    NearMiss(
        title="a number for a scale",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        return self.norm(x) * (1 + 0.5) + emb[:, None]
""",
    ),
    NearMiss(
        title="the shift is taken away",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return self.norm(x) * (1 + scale[:, None]) - shift[:, None]
""",
    ),
    NearMiss(
        title="a number for a shift",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return self.norm(x) * (1 + scale[:, None]) + 0.5
""",
    ),
    NearMiss(
        title="a gate in it",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return self.norm(x) * (1 + scale[:, None]) * gate[:, None] + shift[:, None]
""",
    ),
    NearMiss(
        title="the factor is squared",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return self.norm(x) * (1 + scale[:, None]) ** 2 + shift[:, None]
""",
    ),
    NearMiss(
        title="divided by one plus the scale",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return self.norm(x) / (1 + scale[:, None]) + shift[:, None]
""",
    ),
    NearMiss(
        title="shifted first",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return (self.norm(x) + shift[:, None]) * (1 + scale[:, None])
""",
    ),
    NearMiss(
        title="addcmul already",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8, elementwise_affine=False)
        self.ada = nn.Linear(8, 24)

    def forward(self, x, emb):
        shift, scale, gate = self.ada(emb).chunk(3, dim=-1)
        return torch.addcmul(shift[:, None], self.norm(x), 1 + scale[:, None])
""",
    ),
)
