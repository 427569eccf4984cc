"""What NonzeroLoop reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="the experts that were hit, their weights in one parameter",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 4
        self.router = nn.Linear(6, 4)
        self.up = nn.Parameter(torch.randn(4, 6, 6))
        self.down = nn.Parameter(torch.randn(4, 6, 3))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, num_classes=self.count).permute(2, 1, 0)
        # only experts with tokens
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        for number in hit:
            expert = int(number.item())
            place, token = torch.where(mask[expert])
            if token.numel() == 0:
                continue
            gate, value = F.linear(x[token], self.up[expert]).chunk(2, dim=-1)  # both at once
            y = F.linear(F.silu(gate) * value, self.down[expert])
            y = y * weights[token, place, None]
            out.index_add_(0, token, y.to(out.dtype))
        return out
""",
        after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 4
        self.router = nn.Linear(6, 4)
        self.up = nn.Parameter(torch.randn(4, 6, 6))
        self.down = nn.Parameter(torch.randn(4, 6, 3))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, num_classes=self.count).permute(2, 1, 0)
        # only experts with tokens
        if torch.compiler.is_compiling():
            for expert in range(mask.shape[0]):
                _picked = mask[expert].bool().T
                _weights = torch.where(_picked, weights[:, : _picked.shape[1]], 0).sum(-1, keepdim=True)
                gate, value = F.linear(x, self.up[expert]).chunk(2, dim=-1)
                y = F.linear(F.silu(gate) * value, self.down[expert])
                y = y * _weights
                out.add_(torch.where(_picked.any(-1, keepdim=True), y.to(out.dtype), 0))
        else:
            hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
            for number in hit:
                expert = int(number.item())
                place, token = torch.where(mask[expert])
                if token.numel() == 0:
                    continue
                gate, value = F.linear(x[token], self.up[expert]).chunk(2, dim=-1)  # both at once
                y = F.linear(F.silu(gate) * value, self.down[expert])
                y = y * weights[token, place, None]
                out.index_add_(0, token, y.to(out.dtype))
        return out
""",
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="the hits are worked out in a block of their own, and one class stands for no expert",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 4
        self.router = nn.Linear(6, 4)
        self.act = nn.SiLU()
        self.up = nn.Parameter(torch.randn(4, 6, 6))
        self.down = nn.Parameter(torch.randn(4, 6, 3))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        with torch.no_grad():
            mask = F.one_hot(chosen, num_classes=self.count + 1)
            mask = mask.permute(2, 1, 0)
            hit = (mask.sum((1, 2)) > 0).nonzero()

        for e in hit:
            e = e[0]
            if e == self.count:
                continue
            place, token = torch.where(mask[e])
            rows = x[token]
            gate, value = F.linear(rows, self.up[e]).chunk(2, dim=-1)
            rows = F.linear(self.act(gate) * value, self.down[e]) * weights[token, place].unsqueeze(-1)
            out.index_add_(0, token, rows)
        return out * 2
""",
        after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 4
        self.router = nn.Linear(6, 4)
        self.act = nn.SiLU()
        self.up = nn.Parameter(torch.randn(4, 6, 6))
        self.down = nn.Parameter(torch.randn(4, 6, 3))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        with torch.no_grad():
            mask = F.one_hot(chosen, num_classes=self.count + 1)
            mask = mask.permute(2, 1, 0)
            hit = None if torch.compiler.is_compiling() else (mask.sum((1, 2)) > 0).nonzero()

        if torch.compiler.is_compiling() or hit is None:
            for e in range(mask.shape[0]):
                if e == self.count:
                    continue
                _picked = mask[e].bool().T
                _weights = torch.where(_picked, weights[:, : _picked.shape[1]], 0).sum(-1)
                rows = x
                gate, value = F.linear(rows, self.up[e]).chunk(2, dim=-1)
                rows = F.linear(self.act(gate) * value, self.down[e]) * _weights.unsqueeze(-1)
                out.add_(torch.where(_picked.any(-1, keepdim=True), rows, 0))
        else:
            for e in hit:
                e = e[0]
                if e == self.count:
                    continue
                place, token = torch.where(mask[e])
                rows = x[token]
                gate, value = F.linear(rows, self.up[e]).chunk(2, dim=-1)
                rows = F.linear(self.act(gate) * value, self.down[e]) * weights[token, place].unsqueeze(-1)
                out.index_add_(0, token, rows)
        return out * 2
""",
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
        unsafe=True,
    ),
    Example(
        title="a list of experts, all of them visited",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            token, place = torch.where(chosen == i)
            out[token] += weights[token, place, None] * expert(x[token])
        return out
""",
        after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        if torch.compiler.is_compiling():
            for i, expert in enumerate(self.experts):
                _picked = chosen == i
                _weights = torch.where(_picked, weights[:, : _picked.shape[1]], 0).sum(-1, keepdim=True)
                _rows = _weights * expert(x.clone())
                out.add_(torch.where(_picked.any(-1, keepdim=True), _rows, 0))
        else:
            for i, expert in enumerate(self.experts):
                token, place = torch.where(chosen == i)
                out[token] += weights[token, place, None] * expert(x[token])
        return out
""",
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="nothing happens without tokens; the mask keeps its dimension",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        hit = (mask.sum(dim=(-1, -2)) > 0).nonzero()
        for e in hit:
            place, token = torch.where(mask[e].squeeze(0))
            expert = self.experts[e.item()]
            if len(token) > 0:
                y = expert(x[None, token].reshape(-1, 6)) * weights[token, place, None]
                out = out.index_add(0, token, y)
        return out
""",
        after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        if torch.compiler.is_compiling():
            for e in range(mask.shape[0]):
                _picked = mask[e].bool().T
                _weights = torch.where(_picked, weights[:, : _picked.shape[1]], 0).sum(-1, keepdim=True)
                expert = self.experts[e]
                y = expert(x.reshape(-1, 6).clone()) * _weights
                out = out + torch.where(_picked.any(-1, keepdim=True), y, 0)
        else:
            hit = (mask.sum(dim=(-1, -2)) > 0).nonzero()
            for e in hit:
                place, token = torch.where(mask[e].squeeze(0))
                expert = self.experts[e.item()]
                if len(token) > 0:
                    y = expert(x[None, token].reshape(-1, 6)) * weights[token, place, None]
                    out = out.index_add(0, token, y)
        return out
""",
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
        unsafe=True,
    ),
    Example(
        title="experts that return what they get",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i in range(6):
            place, token = torch.where((chosen == i).t())
            if token.shape[0] == 0:
                continue
            rows = x[token]
            if i < 3:
                rows = self.experts[i](rows)
            elif i == 3:
                rows = torch.relu(rows @ self.router.weight.T) @ self.router.weight
            out.index_add_(0, token, (rows * weights[token, place, None]).to(x.dtype))
        return out
""",
        after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        if torch.compiler.is_compiling():
            for i in range(6):
                _picked = (chosen == i).t().bool().T
                _weights = torch.where(_picked, weights[:, : _picked.shape[1]], 0).sum(-1, keepdim=True)
                rows = x
                if i < 3:
                    rows = self.experts[i](rows.clone())
                elif i == 3:
                    rows = torch.relu(rows @ self.router.weight.T) @ self.router.weight
                _rows = (rows * _weights).to(x.dtype)
                out.add_(torch.where(_picked.any(-1, keepdim=True), _rows, 0))
        else:
            for i in range(6):
                place, token = torch.where((chosen == i).t())
                if token.shape[0] == 0:
                    continue
                rows = x[token]
                if i < 3:
                    rows = self.experts[i](rows)
                elif i == 3:
                    rows = torch.relu(rows @ self.router.weight.T) @ self.router.weight
                out.index_add_(0, token, (rows * weights[token, place, None]).to(x.dtype))
        return out
""",
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
        unsafe=True,
    ),
    Example(
        title="one class more than there are experts",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 4
        self.router = nn.Linear(6, 4)
        self.up = nn.Parameter(torch.randn(4, 6, 6))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, self.count + 1).permute(2, 1, 0)
        for e in (mask.sum(dim=(-1, -2)) > 0).nonzero().squeeze(-1):
            place, token = torch.where(mask[e])
            share = weights[token, place]
            out.index_add_(0, token, x[token] @ self.up[e].T * share[:, None])
        return out
""",
        after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 4
        self.router = nn.Linear(6, 4)
        self.up = nn.Parameter(torch.randn(4, 6, 6))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, self.count + 1).permute(2, 1, 0)
        if torch.compiler.is_compiling():
            for e in range(self.count):
                _picked = mask[e].bool().T
                _weights = torch.where(_picked, weights[:, : _picked.shape[1]], 0).sum(-1)
                share = _weights
                _rows = x @ self.up[e].T * share[:, None]
                out.add_(torch.where(_picked.any(-1, keepdim=True), _rows, 0))
        else:
            for e in (mask.sum(dim=(-1, -2)) > 0).nonzero().squeeze(-1):
                place, token = torch.where(mask[e])
                share = weights[token, place]
                out.index_add_(0, token, x[token] @ self.up[e].T * share[:, None])
        return out
""",
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
        unsafe=True,
    ),
    Example(
        title="two kinds of weights",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            token, place = torch.where(chosen == i)
            y = expert(x[token]) * weights[token, place, None]
            out.index_add_(0, token, y * chosen[token, place, None])
        return out
""",
        after=None,
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="the number of rows is part of the result",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            token, place = torch.where(chosen == i)
            y = expert(x[token]) * weights[token, place, None] / max(len(token), 1)
            out.index_add_(0, token, y)
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="another range",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x, range=1.0):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        for e in (mask.sum((1, 2)) > 0).nonzero():
            e = e[0]
            place, token = torch.where(mask[e])
            out.index_add_(0, token, self.experts[e](x[token]) * range * weights[token, place, None])
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="the loop ends early",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            token, place = torch.where(chosen == i)
            out.index_add_(0, token, expert(x[token]) * weights[token, place, None])
            if i == 2:
                break
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="eager code only",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        if not torch.compiler.is_compiling():
            for i, expert in enumerate(self.experts):
                token, place = torch.where(chosen == i)
                out[token] += weights[token, place, None] * expert(x[token])
        return out
""",
    ),
    NearMiss(
        title="a loop that picks nothing",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            out = out + expert(x) * (weights * (chosen == i)).sum(-1, keepdim=True)
        return out
""",
    ),
    NearMiss(
        title="no code of a model",
        source="""\
def report(mask):
    lines = []
    for e in (mask.sum(dim=(-1, -2)) > 0).nonzero():
        lines.append(int(e))
    return lines
""",
    ),
    NearMiss(
        title="groups that nobody knows",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for e in chosen.unique():
            token, place = torch.where(chosen == e)
            out.index_add_(0, token, self.experts[e](x[token]) * weights[token, place, None])
        return out
""",
    ),
)
