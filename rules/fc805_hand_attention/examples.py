"""What HandAttention reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="a vision transformer's, with dropout",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.dp = nn.Dropout(0.1)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        attn = self.dp(attn)  # none in eval mode
        x = attn @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.dp = nn.Dropout(0.1)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        # none in eval mode
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dp.p if self.dp.training else 0.0, scale=self.scale)
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        run="""\
def make(): return Net().eval()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 3,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="a mask that is added, the root of the size",
        before="""\
import math


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, mask):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        scores = scores + mask
        weights = F.softmax(scores, dim=-1)
        x = torch.matmul(weights, v)
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        after="""\
import math


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, mask):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=q.size(-1) ** -0.5)
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8), torch.randn(2, 1, 3, 3)), (torch.randn(1, 5, 8) * 3, torch.zeros(1, 1, 5, 5))]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="a mask that may be None",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, mask=None):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.scale
        if mask is not None:
            scores = scores + mask
        scores = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        x = torch.matmul(scores, v)
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, mask=None):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.scale)
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8), torch.randn(2, 1, 3, 3)), (torch.randn(1, 5, 8) * 3, None)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="filled with minus infinity",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, mask):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * 0.5
        scores = scores.masked_fill(mask == 0, float("-inf"))
        x = torch.softmax(scores, dim=-1) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, mask):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=~(mask == 0), scale=0.5)
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 8), torch.ones(3, 3).tril()), (torch.randn(1, 5, 8) * 3, torch.ones(5, 5))]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="the query is scaled first",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        q = q * self.scale
        attn = q @ k.transpose(-2, -1)
        attn = attn.softmax(-1)
        x = attn @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v, scale=self.scale)
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        run="""\
def make(): return Net().eval()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 3,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="in one expression, not scaled",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = torch.softmax(torch.matmul(q, k.mT), dim=-1) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v, scale=1.0)
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        run="""\
def make(): return Net().eval()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 3,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
    Example(
        title="dropout as a function",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-2, -1) * self.scale, -1)
        weights = F.dropout(weights, p=0.1, training=self.training)
        x = weights @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0.0, scale=self.scale)
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        run="""\
def make(): return Net().eval()
calls = [(torch.randn(2, 3, 8),), (torch.randn(1, 5, 8) * 3,)]
train = True
""",
        gain=False,
        unsafe=True,
        tolerance=1e-05,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="the weights are returned",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-2, -1) * self.scale, -1)
        x = weights @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C)), weights
""",
        reported=True,
    ),
    NearMiss(
        title="the scores are kept",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * self.scale
        self.scores = scores
        x = torch.softmax(scores, -1) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        reported=True,
    ),
    NearMiss(
        title="over the queries",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = torch.softmax(q @ k.transpose(-2, -1) * self.scale, dim=-2) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
    ),
    NearMiss(
        title="filled with a large number",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, mask):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * self.scale
        scores = scores.masked_fill(mask == 0, -1e9)
        x = torch.softmax(scores, dim=-1) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        reported=True,
    ),
    NearMiss(
        title="weights that are multiplied by a gate",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, gate):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-2, -1) * self.scale, -1)
        x = (weights * gate) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
    ),
    NearMiss(
        title="scores that are capped",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.tanh(q @ k.transpose(-2, -1) / 50.0) * 50.0
        x = torch.softmax(scores, -1) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
    ),
    NearMiss(
        title="the key is not transposed",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = torch.softmax(q @ k * self.scale, -1) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
    ),
    NearMiss(
        title="another dimension of the key is",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = torch.softmax(q @ k.transpose(1, 2) * self.scale, -1) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
    ),
    NearMiss(
        title="a temperature for each head",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.temperature = nn.Parameter(torch.ones(2, 1, 1))

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * self.temperature
        x = torch.softmax(scores, -1) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
    ),
    NearMiss(
        title="a sink in the scores",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.sink = nn.Parameter(torch.zeros(1, 2, 1, 1))

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.cat([q @ k.transpose(-2, -1) * self.scale, self.sink.expand(B, -1, N, -1)], dim=-1)
        x = torch.softmax(scores, -1)[..., :-1] @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
    ),
    NearMiss(
        title="a mask that is multiplied",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, mask):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = torch.softmax(q @ k.transpose(-2, -1) * self.scale * mask, -1) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
    ),
    NearMiss(
        title="normalised by hand",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.exp(q @ k.transpose(-2, -1) * self.scale)
        x = (weights / weights.sum(-1, keepdim=True)) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
    ),
    NearMiss(
        title="sigmoid for softmax",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = torch.sigmoid(q @ k.transpose(-2, -1) * self.scale) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
    ),
    NearMiss(
        title="two masks",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, mask, bias=None):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * self.scale + mask
        if bias is not None:
            scores = scores + bias
        x = torch.softmax(scores, -1) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        reported=True,
    ),
    NearMiss(
        title="weights of one call, values of another: a mixture",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.gate = nn.Linear(8, 3)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(self.gate(x), dim=-1)
        return weights @ x
""",
    ),
    NearMiss(
        title="query and key in float32, the value is not",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q.float() @ k.float().transpose(-2, -1) * self.scale
        x = torch.softmax(scores, -1).to(v.dtype) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        reported=True,
    ),
    NearMiss(
        title="the scale is made of two numbers",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.scale = 2, 0.5
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * self.scale / self.heads
        x = torch.softmax(scores, -1) @ v
        return self.out(x.transpose(1, 2).reshape(B, N, C))
""",
        reported=True,
    ),
)
