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
        title="a flag of the constructor asks, which is on by default",
        before="""\
class Summed(nn.Module):
    def __init__(self, derive=True):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.derive = derive

    def forward(self, x):
        total = torch.zeros(x.shape[0], 4, requires_grad=self.derive)
        for _ in range(2):
            total = total + self.lin(x)
        return total
""",
        after="""\
class Summed(nn.Module):
    def __init__(self, derive=True):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.derive = derive

    def forward(self, x):
        total = torch.zeros(x.shape[0], 4, requires_grad=not torch.compiler.is_compiling() and self.derive)
        for _ in range(2):
            total = total + self.lin(x)
        return total
""",
        run="""\
def make(): return Summed()
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
    Example(
        title="a tensor that is computed there is told so",
        before="""\
class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x) * x.detach().requires_grad_()
        return y + 1
""",
        after="""\
class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x) * x.detach().requires_grad_(not torch.compiler.is_compiling())
        return y + 1
""",
        run="""\
def make(): return Noisy()
calls = [(torch.randn(2, 4),), (torch.randn(3, 4),)]
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
        title="what is computed there is told so, and more is done with it",
        source="""\
class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("grid", torch.zeros(3, 4))
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        places = self.grid.clone().detach().requires_grad_()
        y = x * 2
        y.requires_grad_(True)
        return self.lin(places) + y
""",
        reported=True,
    ),
    NearMiss(
        title="what asks for gradients already, for it is computed of weights",
        source="""\
class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = torch.zeros(4)
        y += self.lin.bias
        return (self.lin(x) * 2).requires_grad_(True) * 3 + y.requires_grad_()
""",
        reported=True,
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
        title="its gradient is asked for",
        source="""\
class Inner(nn.Module):
    def forward(self, x):
        scale = torch.ones(4, requires_grad=True)
        y = (x * scale).sum()
        return torch.autograd.grad(y, scale)[0]
""",
        reported=True,
    ),
    NearMiss(
        title="it is kept, changed, or handed to a function",
        source="""\
class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.last = None

    def forward(self, x):
        self.last = torch.zeros(4, requires_grad=True)
        a = torch.zeros(4, requires_grad=True)
        a.retain_grad()
        b = torch.zeros(4, requires_grad=True)
        y = torch.stack([x[0], b])
        c = torch.zeros(4, requires_grad=True)
        c += 1
        return self.lin(y) + self.last + a + c
""",
        reported=True,
    ),
    NearMiss(
        title="a function inside may ask for its gradient",
        source="""\
class Closed(nn.Module):
    def forward(self, x):
        zero = torch.zeros(4, requires_grad=True)

        def of(y):
            return torch.autograd.grad(y.sum(), zero)

        return of(x + zero)[0]
""",
        reported=True,
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
