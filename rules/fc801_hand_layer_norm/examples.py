"""What HandLayerNorm reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="a module that is nothing else",
        before="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).pow(2).mean(-1, keepdim=True)
        x = (x - mean) / torch.sqrt(variance + self.eps)  # TF style: inside of the root
        return self.weight * x + self.bias
""",
        after="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        # TF style: inside of the root
        return F.layer_norm(x, (x.shape[-1],), self.weight, self.bias, self.eps)
""",
        run="""\
def make(): return Norm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10 + 3,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="the variance of torch, not corrected",
        before="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return (x - mean) * torch.rsqrt(var + self.eps) * self.weight + self.bias
""",
        after="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        return F.layer_norm(x, (x.shape[-1],), self.weight, self.bias, self.eps)
""",
        run="""\
def make(): return Norm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10 + 3,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="without weights",
        before="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        centred = x - torch.mean(x, dim=-1, keepdim=True)
        return centred * torch.rsqrt(torch.mean(centred * centred, dim=-1, keepdim=True) + 1e-6)
""",
        after="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        return F.layer_norm(x, (x.shape[-1],), eps=1e-06)
""",
        run="""\
def make(): return Norm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10 + 3,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="the mean of squares less the square of the mean",
        before="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        spread = x.pow(2).mean(-1, keepdim=True) - mean.pow(2)
        return (x - mean) / (spread + self.eps).sqrt() * self.weight
""",
        after="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        return F.layer_norm(x, (x.shape[-1],), self.weight, None, self.eps)
""",
        run="""\
def make(): return Norm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10 + 3,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=0.0001,
    ),
    Example(
        title="in float32, and back",
        before="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        mean = wide.mean(-1, keepdim=True)
        var = torch.var(wide, dim=-1, keepdim=True, correction=0)
        wide = (wide - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias
        return wide.to(x.dtype)
""",
        after="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        wide = F.layer_norm(wide, (wide.shape[-1],), self.weight.float(), self.bias.float(), self.eps)
        return wide.to(x.dtype)
""",
        run="""\
def make(): return Norm(8)
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 10 + 3,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="a scale that comes from outside stays outside",
        before="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x, scale):
        mean = x.mean(-1, keepdim=True)
        var = ((x - mean) ** 2).mean(-1, keepdim=True)
        normal = (x - mean) / torch.sqrt(var + self.eps)
        return normal * (1 + scale) + scale
""",
        after="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x, scale):
        normal = F.layer_norm(x, (x.shape[-1],), eps=self.eps)
        return normal * (1 + scale) + scale
""",
        run="""\
def make(): return Norm(8)
calls = [(torch.randn(2, 3, 8), torch.randn(2, 1, 8)), (torch.randn(1, 5, 8) * 10 + 3, torch.randn(1, 1, 8))]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="the standard deviation of torch is corrected, the epsilon outside",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.weight * (x - mean) / (std + self.eps) + self.bias
""",
    ),
    NearMiss(
        title="the variance is corrected",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True)
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias
""",
    ),
    NearMiss(
        title="the epsilon outside of the root",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / (torch.sqrt(var) + self.eps)
""",
    ),
    NearMiss(
        title="over the channels",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]
""",
        reported=True,
    ),
    NearMiss(
        title="over all but the rows",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean((1, 2), keepdim=True)
        var = x.var((1, 2), keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + self.eps)
""",
        reported=True,
    ),
    NearMiss(
        title="the mean of another",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x, y):
        mean = y.mean(-1, keepdim=True)
        var = (x - mean).pow(2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(var + self.eps)
""",
    ),
    NearMiss(
        title="the variance of another",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x, y):
        mean = x.mean(-1, keepdim=True)
        var = y.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + self.eps)
""",
    ),
    NearMiss(
        title="nothing is taken away",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        var = x.var(-1, keepdim=True, unbiased=False)
        return x / torch.sqrt(var + self.eps)
""",
    ),
    NearMiss(
        title="divided by the variance itself",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / (var + self.eps)
""",
    ),
    NearMiss(
        title="the statistics of a batch",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(0, keepdim=True)
        var = x.var(0, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + self.eps)
""",
        reported=True,
    ),
    NearMiss(
        title="mean and variance are returned as well",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + self.eps), mean, var
""",
        reported=True,
    ),
    NearMiss(
        title="running statistics",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps
        self.running = 0.0

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        self.running = 0.9 * self.running + 0.1 * var
        return (x - mean) / torch.sqrt(var + self.eps)
""",
        reported=True,
    ),
    NearMiss(
        title="an epsilon for each feature",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.register_buffer("floor", torch.full((8,), 1e-6))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + self.floor)
""",
        reported=True,
    ),
    NearMiss(
        title="x is another one by then",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        x = x * 2
        return (x - mean) / torch.sqrt(var + self.eps)
""",
    ),
    NearMiss(
        title="the dimension is not kept",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1)
        var = x.var(-1, unbiased=False)
        return (x - mean) / torch.sqrt(var + self.eps)
""",
    ),
    NearMiss(
        title="the median",
        source="""\
class Norm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.median(-1, keepdim=True).values
        var = (x - mean).pow(2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(var + self.eps)
""",
    ),
)
