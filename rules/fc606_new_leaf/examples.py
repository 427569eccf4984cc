"""What NewLeaf reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="a loss that begins with nothing",
        before="""\
class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        loss = torch.tensor(0.0, requires_grad=True)
        y = self.lin(x)
        loss = loss + (y - x).pow(2).mean()
        return y, loss
""",
        after="""\
class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        loss = torch.tensor(0.0, requires_grad=not torch.compiler.is_compiling())
        y = self.lin(x)
        loss = loss + (y - x).pow(2).mean()
        return y, loss
""",
        run="""\
def make(): return Routed()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="in each of several layers",
        before="""\
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        total = torch.zeros((), requires_grad=True, device=x.device)
        y = torch.relu(self.lin(x))
        total = total + y.mean()
        return y, total


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(3)])

    def forward(self, x):
        losses = []
        for layer in self.layers:
            x, loss = layer(x)
            losses.append(loss)
        return x, sum(losses)
""",
        after="""\
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        total = torch.zeros((), requires_grad=not torch.compiler.is_compiling(), device=x.device)
        y = torch.relu(self.lin(x))
        total = total + y.mean()
        return y, total


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(3)])

    def forward(self, x):
        losses = []
        for layer in self.layers:
            x, loss = layer(x)
            losses.append(loss)
        return x, sum(losses)
""",
        run="""\
def make(): return Stack()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="as its caller says",
        before="""\
class Cast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def cast(self, found, requires_grad=True):
        if type(found) is not tuple:
            loss = torch.tensor(0.0, requires_grad=requires_grad)
            return (found, loss)
        return found

    def forward(self, x):
        y, loss = self.cast(self.lin(x))
        return y + loss
""",
        after="""\
class Cast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def cast(self, found, requires_grad=True):
        if type(found) is not tuple:
            loss = torch.tensor(0.0, requires_grad=not torch.compiler.is_compiling() and requires_grad)
            return (found, loss)
        return found

    def forward(self, x):
        y, loss = self.cast(self.lin(x))
        return y + loss
""",
        run="""\
def make(): return Cast()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="a weight of ones, multiplied once",
        before="""\
class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        weight = torch.ones(4, requires_grad=True)
        return self.lin(x) * weight - x / 2
""",
        after="""\
class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        weight = torch.ones(4, requires_grad=not torch.compiler.is_compiling())
        return self.lin(x) * weight - x / 2
""",
        run="""\
def make(): return Weighted()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="in the middle of a sum",
        before="""\
class Middle(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)
        return y.mean() + torch.zeros_like(x[0, 0], requires_grad=True) + y.std()
""",
        after="""\
class Middle(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)
        return y.mean() + torch.zeros_like(x[0, 0], requires_grad=not torch.compiler.is_compiling()) + y.std()
""",
        run="""\
def make(): return Middle()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
train = True
""",
        unsafe=True,
    ),
    Example(
        title="a loss that stays nothing without a target",
        before="""\
class Either(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def loss(self, y, target):
        none = torch.full((), 0.0, requires_grad=True)
        return none if target is None else none + F.mse_loss(y, target)

    def forward(self, x, target=None):
        y = self.lin(x)
        return y + self.loss(y, target)
""",
        after="""\
class Either(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def loss(self, y, target):
        none = torch.full((), 0.0, requires_grad=not torch.compiler.is_compiling())
        return none if target is None else none + F.mse_loss(y, target)

    def forward(self, x, target=None):
        y = self.lin(x)
        return y + self.loss(y, target)
""",
        run="""\
def make(): return Either()
x = torch.linspace(-1, 1, 8).reshape(2, 4)
calls = [(x,), (x, x + 1)]
train = True
""",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a flag of the constructor asks, which is off by default",
        source="""\
class Summed(nn.Module):
    def __init__(self, derive=False):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.derive = derive

    def forward(self, x):
        total = torch.zeros(x.shape[0], 4, requires_grad=self.derive)
        for _ in range(2):
            total = total + self.lin(x)
        return total
""",
    ),
    NearMiss(
        title="modules, and tensors that are told to ask for none",
        source="""\
class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        self.lin.requires_grad_()
        return self.lin(x).detach().requires_grad_(False)
""",
    ),
    NearMiss(
        title="no gradients are asked for",
        source="""\
class Plain(nn.Module):
    def forward(self, x):
        loss = torch.tensor(0.0)
        other = torch.zeros(4, requires_grad=False)
        return x + loss + other
""",
    ),
    NearMiss(
        title="parameters are made in the constructor",
        source="""\
class Made(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4), requires_grad=True)
        self.bias = torch.zeros(4, requires_grad=True)

    def forward(self, x):
        return x * self.weight + self.bias
""",
    ),
    NearMiss(
        title="only eager code makes it",
        source="""\
class Guarded(nn.Module):
    def forward(self, x):
        if not torch.compiler.is_compiling():
            zero = torch.tensor(0.0, requires_grad=True)
            x = x + zero
        return x
""",
    ),
    NearMiss(
        title="somebody else says whether",
        source="""\
class Told(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, x):
        return x + torch.zeros(4, requires_grad=self.config.trains)
""",
    ),
)
