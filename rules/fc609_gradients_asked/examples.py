"""What GradientsAsked reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_ROWS = "torch.linspace(-1, 1, 8).reshape(2, 4)"

INVALID: tuple[Example, ...] = (
    Example(
        title="a helper that makes all tensors of a model",
        before="""\
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def placed(self, rows, width, grad=False):
        t = torch.FloatTensor(torch.zeros(rows, width))
        t.requires_grad = grad
        return t

    def forward(self, x):
        state = self.placed(x.shape[0], 4)
        usage = self.placed(x.shape[0], 1)
        state = torch.tanh(self.lin(x) + state)
        return state, usage + state.mean(1, keepdim=True)
""",
        after="""\
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def placed(self, rows, width, grad=False):
        t = torch.FloatTensor(torch.zeros(rows, width))
        if grad is False:
            t.requires_grad_(False)
        else:
            t.requires_grad = grad
        return t

    def forward(self, x):
        state = self.placed(x.shape[0], 4)
        usage = self.placed(x.shape[0], 1)
        state = torch.tanh(self.lin(x) + state)
        return state, usage + state.mean(1, keepdim=True)
""",
        run=f"def make(): return Memory()\ncalls = [({_ROWS},)]\ntrain = True\n",
        unsafe=True,
    ),
    Example(
        title="what never asked for any",
        before="""\
class Net(nn.Module):
    def forward(self, x):
        mask = torch.ones(x.shape)
        mask.requires_grad = False  # a constant
        return x * mask
""",
        after="""\
class Net(nn.Module):
    def forward(self, x):
        mask = torch.ones(x.shape)
        mask.requires_grad_(False)  # a constant
        return x * mask
""",
        run=f"def make(): return Net()\ncalls = [({_ROWS},)]\n",
        unsafe=True,
    ),
    Example(
        title="detached, and said once more",
        before="""\
class Target(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)
        target = y.detach()
        target.requires_grad = False
        return (y - target.roll(1, 0)).pow(2).mean()
""",
        after="""\
class Target(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)
        target = y.detach()
        target.requires_grad_(False)
        return (y - target.roll(1, 0)).pow(2).mean()
""",
        run=f"def make(): return Target()\ncalls = [({_ROWS},)]\ntrain = True\n",
        unsafe=True,
    ),
    Example(
        title="as its caller says, with a default",
        before="""\
class Noise(nn.Module):
    def forward(self, x, learned: bool = False):
        scale = torch.full_like(x, 0.5)
        scale.requires_grad = learned
        return x * scale
""",
        after="""\
class Noise(nn.Module):
    def forward(self, x, learned: bool = False):
        scale = torch.full_like(x, 0.5)
        if learned is False:
            scale.requires_grad_(False)
        else:
            scale.requires_grad = learned
        return x * scale
""",
        run=f"def make(): return Noise()\ncalls = [({_ROWS},)]\n",
        unsafe=True,
    ),
    Example(
        title="a check that asks its input for gradients",
        before="""\
class Chain(nn.Module):
    def shape(self, edge):
        if isinstance(edge, list):
            for t in edge:
                t.requires_grad_(True)
            return edge[0].shape
        edge.requires_grad_(True)
        return edge.shape

    def forward(self, edge):
        batch, size = self.shape(edge)
        return torch.logsumexp(edge, 1) / (batch * size)
""",
        after="""\
class Chain(nn.Module):
    def shape(self, edge):
        if isinstance(edge, list):
            for t in edge:
                t.requires_grad_(True)
            return edge[0].shape
        if not torch.compiler.is_compiling():
            edge.requires_grad_(True)
        return edge.shape

    def forward(self, edge):
        batch, size = self.shape(edge)
        return torch.logsumexp(edge, 1) / (batch * size)
""",
        run=f"def make(): return Chain()\ncalls = [({_ROWS},)]\n",
        unsafe=True,
    ),
    Example(
        title="without an argument, in front of a layer",
        before="""\
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        x.requires_grad_()
        return self.lin(x)
""",
        after="""\
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        if not torch.compiler.is_compiling():
            x.requires_grad_()
        return self.lin(x)
""",
        run=f"def make(): return Layer().requires_grad_(False)\ncalls = [({_ROWS},)]\n",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a tensor begins to ask, by the method no less than by the attribute",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        bias = torch.zeros(2, 3)
        if self.training:
            bias.requires_grad = True
        return (x + bias).sin()
""",
        reported=True,
    ),
    NearMiss(
        title="what is worked out first",
        source="""\
class Net(nn.Module):
    def forward(self, x, pick):
        made = [torch.zeros(2), torch.ones(2)]
        made[pick(x)].requires_grad = bool(made.pop() is None)
        return x + made[0]
""",
        reported=True,
    ),
    NearMiss(
        title="parameters are frozen in eager code",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        for weight in self.lin.parameters():
            weight.requires_grad = False

    def forward(self, x):
        return self.lin(x)
""",
    ),
    NearMiss(
        title="told not to, by the method",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        mask = torch.ones(x.shape)
        mask.requires_grad_(False)
        return x * mask
""",
    ),
    NearMiss(
        title="asked in eager code only",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        if not torch.compiler.is_compiling():
            x.requires_grad_(True)
        return x * 2
""",
    ),
    NearMiss(
        title="only asked whether it does",
        source="""\
class Net(nn.Module):
    def forward(self, x):
        return x * 2 if x.requires_grad else x
""",
    ),
)
