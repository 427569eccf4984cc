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
        title="a mask with a name, a list of numbers, weights of their own",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros(x.shape)
        mask = (chosen.unsqueeze(-1) == torch.arange(4)).permute(2, 0, 1)
        hit = mask.any(dim=(1, 2)).nonzero(as_tuple=True)[0].tolist()
        for e in hit:
            here = mask[e]
            token, place = here.nonzero(as_tuple=True)
            share = weights[token, place]
            y = self.experts[e](x[token])
            y *= share[:, None]
            out.index_add_(dim=0, index=token, source=y)
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
        out = torch.zeros(x.shape)
        mask = (chosen.unsqueeze(-1) == torch.arange(4)).permute(2, 0, 1)
        if torch.compiler.is_compiling():
            for e in range(mask.shape[0]):
                here = mask[e]
                _picked = mask[e].bool()
                _weights = torch.where(_picked, weights[:, : _picked.shape[1]], 0).sum(-1)
                share = _weights
                y = self.experts[e](x.clone())
                y *= share[:, None]
                out.add_(torch.where(_picked.any(-1, keepdim=True), y, 0))
        else:
            hit = mask.any(dim=(1, 2)).nonzero(as_tuple=True)[0].tolist()
            for e in hit:
                here = mask[e]
                token, place = here.nonzero(as_tuple=True)
                share = weights[token, place]
                y = self.experts[e](x[token])
                y *= share[:, None]
                out.index_add_(dim=0, index=token, source=y)
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
                else:
                    if i == 3:
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
        title="experts with many tokens only",
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
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        for e in (mask.sum(dim=(-1, -2)) > 1).nonzero():
            e = e[0]
            place, token = torch.where(mask[e])
            out.index_add_(0, token, (x[token] @ self.up[e].T) * weights[token, place, None])
        return out
""",
        after=None,
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
    ),
    Example(
        title="experts without tokens are known from counts",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        counts = torch.bincount(chosen.flatten(), minlength=4).tolist()
        for i in range(len(self.experts)):
            if counts[i] == 0:
                continue
            token, place = torch.where(chosen == i)
            out[token] += self.experts[i](x[token]) * weights[token, place, None]
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
        counts = None if torch.compiler.is_compiling() else torch.bincount(chosen.flatten(), minlength=4).tolist()
        if torch.compiler.is_compiling() or counts is None:
            for i in range(len(self.experts)):
                _picked = chosen == i
                _weights = torch.where(_picked, weights[:, : _picked.shape[1]], 0).sum(-1, keepdim=True)
                _rows = self.experts[i](x.clone()) * _weights
                out.add_(torch.where(_picked.any(-1, keepdim=True), _rows, 0))
        else:
            for i in range(len(self.experts)):
                if counts[i] == 0:
                    continue
                token, place = torch.where(chosen == i)
                out[token] += self.experts[i](x[token]) * weights[token, place, None]
        return out
""",
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
        unsafe=True,
    ),
    Example(
        title="weights by expert; one class more than there are experts",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 4
        self.router = nn.Linear(6, 4)
        self.up = nn.Parameter(torch.randn(24, 6))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        shares = self.router(x).softmax(-1)
        chosen = shares.topk(2).indices
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, self.count + 1).permute(2, 1, 0)
        for e in (mask.sum(dim=(-1, -2)) > 0).nonzero().squeeze(-1):
            with torch.no_grad():
                _, token = torch.where(mask[e])
            both = x[token] @ self.up.view(self.count, 6, 6)[e]
            left, right = both[..., ::2], both[:, 1::2]
            rows = self.drop((left * right) @ self.up[:3])
            out.index_add_(0, token, rows * shares[token, e, None])
        return out
""",
        after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 4
        self.router = nn.Linear(6, 4)
        self.up = nn.Parameter(torch.randn(24, 6))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        shares = self.router(x).softmax(-1)
        chosen = shares.topk(2).indices
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, self.count + 1).permute(2, 1, 0)
        if torch.compiler.is_compiling():
            for e in range(mask.shape[0]):
                if e >= self.up.view(self.count, 6, 6).shape[0]:
                    torch._assert_async(mask[e].logical_not().all(), 'rows for a group that is not there')
                    continue
                _picked = mask[e].bool().T
                _weights = (_picked.sum(-1) * shares[:, e])[:, None]
                both = x @ self.up.view(self.count, 6, 6)[e]
                left, right = both[..., ::2], both[:, 1::2]
                rows = self.drop(left * right @ self.up[:3])
                out.add_(torch.where(_picked.any(-1, keepdim=True), rows * _weights, 0))
        else:
            for e in (mask.sum(dim=(-1, -2)) > 0).nonzero().squeeze(-1):
                with torch.no_grad():
                    _, token = torch.where(mask[e])
                both = x[token] @ self.up.view(self.count, 6, 6)[e]
                left, right = both[..., ::2], both[:, 1::2]
                rows = self.drop((left * right) @ self.up[:3])
                out.index_add_(0, token, rows * shares[token, e, None])
        return out
""",
        run="""\
def make(): return Experts().eval()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
        unsafe=True,
    ),
    Example(
        title="the mask comes from a router",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleDict({f"expert_{i}": nn.Linear(6, 6) for i in range(4)})

    def apply_experts(self, x, chosen, weights):
        out = torch.zeros_like(x)
        mask = chosen.permute(2, 1, 0)
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        for e in hit:
            place, token = torch.where(mask[e].squeeze(0))
            y = self.experts[f"expert_{e[0]}"](x[token]) * weights[token, place, None]
            out.index_add_(0, token, y.to(out.dtype))
        return out

    def forward(self, x):
        weights, chosen = x.softmax(-1)[:, :4].topk(1)
        return self.apply_experts(x, F.one_hot(chosen, 4), weights)
""",
        after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleDict({f"expert_{i}": nn.Linear(6, 6) for i in range(4)})

    def apply_experts(self, x, chosen, weights):
        out = torch.zeros_like(x)
        mask = chosen.permute(2, 1, 0)
        if torch.compiler.is_compiling():
            for e in range(mask.shape[0]):
                _picked = mask[e].bool().T
                _weights = torch.where(_picked, weights[:, : _picked.shape[1]], 0).sum(-1, keepdim=True)
                y = self.experts[f'expert_{e}'](x.clone()) * _weights
                out.add_(torch.where(_picked.any(-1, keepdim=True), y.to(out.dtype), 0))
        else:
            hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
            for e in hit:
                place, token = torch.where(mask[e].squeeze(0))
                y = self.experts[f"expert_{e[0]}"](x[token]) * weights[token, place, None]
                out.index_add_(0, token, y.to(out.dtype))
        return out

    def forward(self, x):
        weights, chosen = x.softmax(-1)[:, :4].topk(1)
        return self.apply_experts(x, F.one_hot(chosen, 4), weights)
""",
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
        unsafe=True,
    ),
    Example(
        title="a mask of rows for each expert",
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
            here = (chosen == i).any(dim=-1)
            if here.any():
                y = expert(x[here])  # its tokens
                out[here] += y * weights[here, 0].unsqueeze(1)
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
                here = (chosen == i).any(dim=-1)
                y = expert(x.flatten(0, here.dim() - 1).clone())
                _rows = y * weights.flatten(0, here.dim() - 1)[:, 0].unsqueeze(1)
                _picked = here.reshape(-1, *[1] * (_rows.dim() - 1))
                out.add_(torch.where(_picked, _rows, 0).view(out.shape))
        else:
            for i, expert in enumerate(self.experts):
                here = (chosen == i).any(dim=-1)
                if here.any():
                    y = expert(x[here])  # its tokens
                    out[here] += y * weights[here, 0].unsqueeze(1)
        return out
""",
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
        unsafe=True,
    ),
    Example(
        title="one expert for each token, in sentences",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

    def forward(self, x):
        x = x.unsqueeze(0)
        best = self.router(x).argmax(-1)
        out = torch.empty_like(x)
        for i in range(len(self.experts)):
            here = best == i
            flat = here.view(-1)
            if flat.sum() == 0:
                continue
            out[here] = self.experts[i](x.reshape(-1, 6)[flat]).tanh()
        return out
""",
        after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

    def forward(self, x):
        x = x.unsqueeze(0)
        best = self.router(x).argmax(-1)
        out = torch.empty_like(x)
        if torch.compiler.is_compiling():
            for i in range(len(self.experts)):
                here = best == i
                flat = here.view(-1)
                _rows = self.experts[i](x.reshape(-1, 6).flatten(0, flat.dim() - 1).clone()).tanh()
                _picked = here.reshape(-1, *[1] * (_rows.dim() - 1))
                out.copy_(torch.where(_picked, _rows, out.flatten(0, here.dim() - 1)).view(out.shape))
        else:
            for i in range(len(self.experts)):
                here = best == i
                flat = here.view(-1)
                if flat.sum() == 0:
                    continue
                out[here] = self.experts[i](x.reshape(-1, 6)[flat]).tanh()
        return out
""",
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
        unsafe=True,
    ),
    Example(
        title="an adapter for the language of each sentence",
        before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.adapters = nn.ModuleDict({f"to_{i}": nn.Linear(6, 6) for i in range(3)})

    def forward(self, x):
        languages = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
        x = x.unsqueeze(1).repeat(1, 3, 1)
        out = torch.zeros_like(x)
        for number, key in enumerate(self.adapters):
            spoken = number == languages
            out[spoken] = self.adapters[key](x[spoken])
        return out
""",
        after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.adapters = nn.ModuleDict({f"to_{i}": nn.Linear(6, 6) for i in range(3)})

    def forward(self, x):
        languages = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
        x = x.unsqueeze(1).repeat(1, 3, 1)
        out = torch.zeros_like(x)
        if torch.compiler.is_compiling():
            for number, key in enumerate(self.adapters):
                spoken = number == languages
                _rows = self.adapters[key](x.flatten(0, spoken.dim() - 1).clone())
                _picked = spoken.reshape(-1, *[1] * (_rows.dim() - 1))
                out.copy_(torch.where(_picked, _rows, out.flatten(0, spoken.dim() - 1)).view(out.shape))
        else:
            for number, key in enumerate(self.adapters):
                spoken = number == languages
                out[spoken] = self.adapters[key](x[spoken])
        return out
""",
        run="""\
def make(): return Experts()
calls = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (5, 7, 1)]
""",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="the rows are normalised over each other",
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
            y = expert(x[token])
            y = y / y.norm(dim=0)
            out.index_add_(0, token, y * weights[token, place, None])
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="a batch norm in an expert",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            token, place = torch.where(chosen == i)
            y = self.norm(expert(x[token]))
            out.index_add_(0, token, y * weights[token, place, None])
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="the weight is not the last factor",
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
            y = (expert(x[token]) * weights[token, place, None]).relu()
            out.index_add_(0, token, y)
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="the next expert reads what this one wrote",
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
            y = expert(out[token] + x[token])
            out.index_add_(0, token, y * weights[token, place, None])
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="something goes from one expert to the next",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        seen = 0
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            token, place = torch.where(chosen == i)
            seen = seen + 1
            out.index_add_(0, token, expert(x[token]) * weights[token, place, None] / seen)
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="the last rows are read behind the loop",
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
            y = expert(x[token]) * weights[token, place, None]
            out.index_add_(0, token, y)
        return out, y
""",
        reported=True,
    ),
    NearMiss(
        title="the hits belong to another mask",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        first = mask[:, :1]
        for e in (first.sum(dim=(-1, -2)) > 0).nonzero():
            e = e[0]
            place, token = torch.where(mask[e])
            out.index_add_(0, token, self.experts[e](x[token]) * weights[token, place, None])
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="sums that may be zero with something in them",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        mask = x.view(-1, 2, 3).permute(2, 1, 0)
        for e in mask.sum(dim=(-1, -2)).nonzero():
            e = e[0]
            place, token = torch.where(mask[e])
            out.index_add_(0, token, self.experts[e](x[token]) * weights[token, place, None])
        return out
""",
        reported=True,
    ),
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
        title="the weighed rows are rounded",
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
            y = (expert(x[token]) * weights[token, place, None]).to(torch.int32)
            out.index_add_(0, token, y.to(out.dtype))
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="something is changed in place for each group that was hit",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        sign = -torch.ones(1)
        for i, expert in enumerate(self.experts):
            token, place = torch.where(chosen == i)
            if token.numel() == 0:
                continue
            turn = torch.neg_(sign)
            out.index_add_(0, token, expert(x[token]) * turn * weights[token, place, None])
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
        title="random numbers for the rows",
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
            y = expert(F.dropout(x[token], 0.5))
            out.index_add_(0, token, y * weights[token, place, None])
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
        title="counts of something else",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        others = chosen.flip(0)[1:]
        counts = torch.bincount(others.flatten(), minlength=4).tolist()
        for i in range(len(self.experts)):
            if counts[i] == 0:
                continue
            token, place = torch.where(chosen == i)
            out[token] += self.experts[i](x[token]) * weights[token, place, None]
        return out
""",
        reported=True,
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
        reported=True,
    ),
    NearMiss(
        title="experts that the mask has no part for",
        source="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 6)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, num_classes=6).permute(2, 1, 0)
        for e in (mask.sum(dim=(-1, -2)) > 0).nonzero():
            e = e[0]
            place, token = torch.where(mask[e])
            out.index_add_(0, token, self.experts[e](x[token]) * weights[token, place, None])
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="rows of one expert go to the places of another",
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
            here = chosen[:, 0] == i
            there = chosen[:, 0].flip(0) == i
            out[there] += expert(x[here])
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="rows divided by their number",
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
            here = chosen[:, 0] == i
            if here.any():
                out[here] += expert(x[here]) / here.sum()
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="a mean over the rows of an expert",
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
            here = chosen[:, 0] == i
            if here.any():
                out[here] += expert(x[here].mean(0, keepdim=True))
        return out
""",
        reported=True,
    ),
    NearMiss(
        title="no tokens means something else",
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
            here = chosen[:, 0] == i
            if here.any():
                out[here] += expert(x[here])
            else:
                out = out + 1
        return out
""",
        reported=True,
    ),
)
