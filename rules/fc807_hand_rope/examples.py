"""What HandRope reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="halves",
        before="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        rotated = torch.cat((-x2, x1), dim=-1)
        return x * cos + rotated * sin
""",
        after=None,
        run="""\
def make(): return Net()
calls = [
    (torch.randn(2, 3, 8), torch.randn(3, 8), torch.randn(3, 8)),
    (torch.randn(1, 5, 8), torch.randn(5, 8), torch.randn(5, 8)),
]
""",
        gain=False,
    ),
    Example(
        title="halves, a chunk of each",
        before="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        x1, x2 = x.chunk(2, dim=-1)
        return (x * cos) + (torch.cat([-x2, x1], dim=-1) * sin)
""",
        after=None,
        run="""\
def make(): return Net()
calls = [
    (torch.randn(2, 3, 8), torch.randn(3, 8), torch.randn(3, 8)),
    (torch.randn(1, 5, 8), torch.randn(5, 8), torch.randn(5, 8)),
]
""",
        gain=False,
    ),
    Example(
        title="pairs",
        before="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        x1 = x[..., ::2]
        x2 = x[..., 1::2]
        rotated = torch.stack((-x2, x1), dim=-1).flatten(-2)
        return x * cos + rotated * sin
""",
        after=None,
        run="""\
def make(): return Net()
calls = [
    (torch.randn(2, 3, 8), torch.randn(3, 8), torch.randn(3, 8)),
    (torch.randn(1, 5, 8), torch.randn(5, 8), torch.randn(5, 8)),
]
""",
        gain=False,
    ),
    Example(
        title="pairs in float32, and back",
        before="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        x_real, x_imag = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
        x_rotated = torch.stack([-x_imag, x_real], dim=-1).flatten(2)
        return (x.float() * cos + x_rotated.float() * sin).to(x.dtype)
""",
        after=None,
        run="""\
def make(): return Net()
calls = [
    (torch.randn(2, 3, 8), torch.randn(3, 8), torch.randn(3, 8)),
    (torch.randn(1, 5, 8), torch.randn(5, 8), torch.randn(5, 8)),
]
""",
        gain=False,
    ),
    Example(
        title="complex numbers",
        before="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        freqs = torch.complex(cos, sin)
        return torch.view_as_real(x_ * freqs).flatten(2).type_as(x)
""",
        after=None,
        run="""\
def make(): return Net()
calls = [
    (torch.randn(2, 3, 8), torch.randn(3, 4), torch.randn(3, 4)),
    (torch.randn(1, 5, 8), torch.randn(5, 4), torch.randn(5, 4)),
]
""",
        gain=False,
    ),
    Example(
        title="complex numbers in one expression",
        before="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        pairs = x.reshape(*x.shape[:-1], -1, 2)
        return torch.view_as_real(torch.view_as_complex(pairs) * torch.complex(cos, sin)).flatten(-2)
""",
        after=None,
        run="""\
def make(): return Net()
calls = [
    (torch.randn(2, 3, 8), torch.randn(3, 4), torch.randn(3, 4)),
    (torch.randn(1, 5, 8), torch.randn(5, 4), torch.randn(5, 4)),
]
""",
        gain=False,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="the halves of two",
        source="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        x1, x2 = x[..., :4], cos[..., 4:]
        return x * cos + torch.cat((-x2, x1), dim=-1) * sin
""",
    ),
    NearMiss(
        title="nothing changes its sign",
        source="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        x1, x2 = x.chunk(2, dim=-1)
        return x * cos + torch.cat((x2, x1), dim=-1) * sin
""",
    ),
    NearMiss(
        title="nothing stays straight",
        source="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        x1, x2 = x.chunk(2, dim=-1)
        return torch.cat((-x2, x1), dim=-1) * sin
""",
    ),
    NearMiss(
        title="another one is turned",
        source="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        x1, x2 = x.chunk(2, dim=-1)
        return cos * sin + torch.cat((-x2, x1), dim=-1) * sin
""",
    ),
    NearMiss(
        title="taken away",
        source="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        x1, x2 = x.chunk(2, dim=-1)
        return x * cos - torch.cat((-x2, x1), dim=-1) * sin
""",
    ),
    NearMiss(
        title="a complex number alone",
        source="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        return torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))).flatten(-2)
""",
    ),
    NearMiss(
        title="three parts",
        source="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        x1, x2, x3 = x[..., :2], x[..., 2:4], x[..., 4:]
        return x * cos + torch.cat((-x2, x1, x3), dim=-1) * sin
""",
    ),
    NearMiss(
        title="half of it is turned",
        source="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        first, rest = x[..., :4], x[..., 4:]
        return torch.cat((first * cos[..., :4], rest), dim=-1)
""",
    ),
    NearMiss(
        title="a signal and its mirror",
        source="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        return x * cos + x.flip(-1) * sin
""",
    ),
    NearMiss(
        title="positions that are added",
        source="""\
class Net(nn.Module):
    def forward(self, x, cos, sin):
        return x + torch.cat((cos[..., :4], sin[..., :4]), dim=-1)
""",
    ),
)
