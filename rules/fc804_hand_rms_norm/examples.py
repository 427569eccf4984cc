"""What HandRmsNorm reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="the weight is multiplied after the cast back",
        before="""\
class RMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)  # over the last dimension
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)
""",
        after="""\
class RMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        # over the last dimension
        return F.rms_norm(hidden_states, (hidden_states.shape[-1],), self.weight, self.variance_epsilon)
""",
        run="""\
def make(): return RMSNorm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
    ),
    Example(
        title="a method of its own, weights plus one",
        before="""\
class Norm(nn.Module):
    def __init__(self, dim, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float())
        output = output * (1.0 + self.weight.float())
        return output.type_as(x)
""",
        after="""\
class Norm(nn.Module):
    def __init__(self, dim, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def _norm(self, x):
        return F.rms_norm(x, (x.shape[-1],), eps=self.eps)

    def forward(self, x):
        output = self._norm(x.float())
        output = output * (1.0 + self.weight.float())
        return output.type_as(x)
""",
        run="""\
def make(): return Norm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
    ),
    Example(
        title="the weight before the cast back",
        before="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        variance = wide.pow(2).mean(dim=-1, keepdim=True)
        return (self.weight * (wide * torch.rsqrt(variance + self.eps))).to(x.dtype)
""",
        after="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        return (F.rms_norm(wide, (wide.shape[-1],), self.weight.float(), self.eps)).to(x.dtype)
""",
        run="""\
def make(): return Norm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
    ),
    Example(
        title="weights plus one, in float32",
        before="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps) * (1.0 + self.weight.float())
        return h.type_as(x)
""",
        after="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        h = x.float()
        h = F.rms_norm(h, (h.shape[-1],), (1.0 + self.weight.float()), self.eps)
        return h.type_as(x)
""",
        run="""\
def make(): return Norm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
    ),
    Example(
        title="divided by the root, squares as a product",
        before="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        scale = torch.sqrt(torch.mean(x * x, dim=-1, keepdim=True) + self.eps)
        return x / scale * self.weight
""",
        after="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)
""",
        run="""\
def make(): return Norm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="statistics in float32 of an input that stays as it is",
        before="""\
class LayerNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.eps = eps

    def forward(self, hidden_states):
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.eps)
        # convert into half-precision if necessary
        if self.weight.dtype in [torch.float16, torch.bfloat16]:
            hidden_states = hidden_states.to(self.weight.dtype)
        return self.weight * hidden_states
""",
        after="""\
class LayerNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.eps = eps

    def forward(self, hidden_states):
        hidden_states = F.rms_norm(hidden_states.to(torch.float32), (hidden_states.shape[-1],), eps=self.eps)
        # convert into half-precision if necessary
        if self.weight.dtype in [torch.float16, torch.bfloat16]:
            hidden_states = hidden_states.to(self.weight.dtype)
        return self.weight * hidden_states
""",
        run="""\
def make(): return LayerNorm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
    ),
    Example(
        title="a method, no epsilon, the power of a power",
        before="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return self.normalised(x) * self.weight

    def normalised(self, x):
        mean_squared = x.pow(2).mean(-1, keepdim=True)
        return x * torch.pow(mean_squared, -0.5)
""",
        after="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return self.normalised(x) * self.weight

    def normalised(self, x):
        return F.rms_norm(x, (x.shape[-1],), eps=0.0)
""",
        run="""\
def make(): return Norm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="without weights, in a block",
        before="""\
class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        h = self.fc(x)
        h = h * (h.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()
        return x + h
""",
        after="""\
class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        h = self.fc(x)
        h = F.rms_norm(h, (h.shape[-1],), eps=1e-06)
        return x + h
""",
        run="""\
def make(): return Block(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10,)]
train = True
""",
        gain=False,
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="the epsilon outside of the root",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + self.eps) * self.weight
""",
    ),
    NearMiss(
        title="the norm, not the mean",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + self.eps)
""",
    ),
    NearMiss(
        title="a norm that is kept from being small",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return F.normalize(x, dim=-1) * x.shape[-1] ** 0.5 * self.weight
""",
    ),
    NearMiss(
        title="a sum by another size",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        variance = x.pow(2).sum(-1, keepdim=True) / x.shape[1]
        return x * torch.rsqrt(variance + self.eps)
""",
    ),
    NearMiss(
        title="the variance of one, the values of another",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x, gate):
        variance = gate.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(variance + self.eps) * self.weight
""",
    ),
    NearMiss(
        title="the mean of absolute values",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.abs().mean(-1, keepdim=True) + self.eps)
""",
    ),
    NearMiss(
        title="over the channels",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        variance = x.pow(2).mean(1, keepdim=True)
        return x * torch.rsqrt(variance + self.eps)
""",
        reported=True,
    ),
    NearMiss(
        title="over two dimensions",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        variance = x.pow(2).mean((-2, -1), keepdim=True)
        return x * torch.rsqrt(variance + self.eps)
""",
        reported=True,
    ),
    NearMiss(
        title="the dimension is not kept",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        variance = x.pow(2).mean(-1)
        return x * torch.rsqrt(variance + self.eps)
""",
    ),
    NearMiss(
        title="the variance, which takes the mean away",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.var(-1, keepdim=True, unbiased=False) + self.eps)
""",
    ),
    NearMiss(
        title="the variance is returned as well",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(variance + self.eps), variance
""",
        reported=True,
    ),
    NearMiss(
        title="the variance is averaged over processes, in place",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        torch.distributed.all_reduce(variance)
        return x * torch.rsqrt(variance + self.eps)
""",
        reported=True,
    ),
    NearMiss(
        title="the input is written to in between",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        h = x.float()
        variance = h.pow(2).mean(-1, keepdim=True)
        h.mul_(2)
        return h * torch.rsqrt(variance + self.eps)
""",
        reported=True,
    ),
    NearMiss(
        title="an epsilon that is a tensor",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.register_buffer("floor", torch.full((8,), 1e-6))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.floor)
""",
        reported=True,
    ),
    NearMiss(
        title="cubes",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(4).mean(-1, keepdim=True) + self.eps)
""",
    ),
    NearMiss(
        title="the epsilon twice",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps + self.eps)
""",
    ),
    NearMiss(
        title="an input without a name",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return torch.relu(x + 1) * torch.rsqrt(torch.relu(x + 1).pow(2).mean(-1, keepdim=True) + self.eps)
""",
    ),
    NearMiss(
        title="half of the squares",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(0.5 * x.pow(2).mean(-1, keepdim=True) + self.eps)
""",
    ),
    NearMiss(
        title="a switch on the way",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        if self.training:
            variance = variance * 2
        return x * torch.rsqrt(variance + self.eps)
""",
    ),
)
