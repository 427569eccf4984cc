"""What LegacyVariable reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_ROWS = "torch.linspace(-1, 1, 8).reshape(2, 4)"

INVALID: tuple[Example, ...] = (
    Example(
        title="what is made where it stands",
        before="""\
from torch.autograd import Variable


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        state = Variable(torch.zeros(x.shape[0], 4))  # the first
        return torch.tanh(self.lin(x) + state)
""",
        after="""\
from torch.autograd import Variable


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        state = torch.zeros(x.shape[0], 4)  # the first
        return torch.tanh(self.lin(x) + state)
""",
        run=f"def make(): return Cell()\ncalls = [({_ROWS},)]\ntrain = True\n",
    ),
    Example(
        title="what has been computed, and is written to later",
        before="""\
from torch.autograd import Variable


class Target(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x).tanh()
        best = Variable(y)
        return (y - best * 2).pow(2).sum() + Variable(x + 1).mul_(2).sum()
""",
        after="""\
from torch.autograd import Variable


class Target(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x).tanh()
        best = y.detach()
        return (y - best * 2).pow(2).sum() + (x + 1).detach().mul_(2).sum()
""",
        run=f"def make(): return Target()\ncalls = [({_ROWS},)]\ntrain = True\n",
    ),
    Example(
        title="the data of a tensor, by the name of the package",
        before="""\
class Noise(nn.Module):
    def forward(self, x):
        mean = torch.autograd.Variable(x.data, requires_grad=False).mean()
        return x.tanh() - mean + torch.autograd.Variable(x.new_ones(4), False)
""",
        after="""\
class Noise(nn.Module):
    def forward(self, x):
        mean = x.data.mean()
        return x.tanh() - mean + x.new_ones(4)
""",
        run=f"def make(): return Noise()\ncalls = [({_ROWS},)]\ntrain = True\n",
    ),
    Example(
        title="memory that is shared, handed to a function that writes",
        before="""\
from torch.autograd import Variable as Var


class Net(nn.Module):
    def forward(self, x):
        made = torch.FloatTensor(x.shape[0], 4).zero_()
        seen = Var(made)
        seen.add_(1)
        return x * made, seen
""",
        after="""\
from torch.autograd import Variable as Var


class Net(nn.Module):
    def forward(self, x):
        made = torch.FloatTensor(x.shape[0], 4).zero_()
        seen = made.detach()
        seen.add_(1)
        return x * made, seen
""",
        run=f"def make(): return Net()\ncalls = [({_ROWS},)]\n",
    ),
    Example(
        title="asked for by isinstance",
        before="""\
from torch.autograd import Variable


class Gate(nn.Module):
    def forward(self, x, weight=1.0):
        x = x.sigmoid()
        if isinstance(weight, Variable):
            weight = weight.view(-1, 1)
        return x * weight
""",
        after="""\
from torch.autograd import Variable


class Gate(nn.Module):
    def forward(self, x, weight=1.0):
        x = x.sigmoid()
        if isinstance(weight, torch.Tensor):
            weight = weight.view(-1, 1)
        return x * weight
""",
        run=f"def make(): return Gate()\ncalls = [({_ROWS}, torch.ones(2)), ({_ROWS}, torch.zeros(2))]\n",
        compiles=True,  # it comes to no graph at all
    ),
    Example(
        title="asked for among others, where Dynamo takes no tensor for one",
        before="""\
from torch.autograd import Variable


class Gate(nn.Module):
    def forward(self, x, weight=1.0):
        x = Variable(x.sigmoid())
        if isinstance(weight, (Variable, list)) and not isinstance(x, (int, torch.Tensor, Variable)):
            return x
        return x * 2 if isinstance(weight, (int, Variable)) else x
""",
        after="""\
from torch.autograd import Variable


class Gate(nn.Module):
    def forward(self, x, weight=1.0):
        x = x.sigmoid().detach()
        if isinstance(weight, (torch.Tensor, list)) and not isinstance(x, (int, torch.Tensor, Variable)):
            return x
        return x * 2 if isinstance(weight, (int, torch.Tensor)) else x
""",
        run=f"def make(): return Gate()\ncalls = [({_ROWS}, torch.ones(2)), ({_ROWS}, torch.zeros(2))]\n",
        compiles=True,  # what Dynamo answers wrongly leaves less to compile
    ),
    Example(
        title="in a loop of a helper",
        before="""\
from torch import autograd


class Stack(nn.Module):
    def counted(self, n, like):
        return autograd.Variable(torch.arange(1, n + 1)).float() * like.mean()

    def forward(self, x):
        for n in range(1, 3):
            x = x + self.counted(4, x) / n
        return x
""",
        after="""\
from torch import autograd


class Stack(nn.Module):
    def counted(self, n, like):
        return torch.arange(1, n + 1).float() * like.mean()

    def forward(self, x):
        for n in range(1, 3):
            x = x + self.counted(4, x) / n
        return x
""",
        run=f"def make(): return Stack()\ncalls = [({_ROWS},)]\n",
    ),
    Example(
        title="filled, of a tensor that comes from a pair",
        before="""\
from torch.autograd import Variable


class Usage(nn.Module):
    def forward(self, x):
        least, order = torch.topk(x, 2, largest=False)
        first = Variable(least.data.new(x.shape[0], 1).fill_(1))
        return torch.cumprod(torch.cat((first, least), 1), 1), order
""",
        after="""\
from torch.autograd import Variable


class Usage(nn.Module):
    def forward(self, x):
        least, order = torch.topk(x, 2, largest=False)
        first = least.data.new(x.shape[0], 1).fill_(1).detach()
        return torch.cumprod(torch.cat((first, least), 1), 1), order
""",
        run=f"def make(): return Usage()\ncalls = [({_ROWS},)]\ntrain = True\n",
    ),
    Example(
        title="whatever is given",
        before="""\
from torch.autograd import Variable


class Net(nn.Module):
    def forward(self, batch):
        return torch.tanh(Variable(batch["ids"]) * 2)
""",
        after="""\
from torch.autograd import Variable


class Net(nn.Module):
    def forward(self, batch):
        return torch.tanh(batch["ids"].detach() * 2)
""",
        run=f"def make(): return Net()\ncalls = [({{'ids': {_ROWS}}},)]\n",
        unsafe=True,
    ),
    Example(
        title="what a module of the project gives, by names that tensors have",
        before="""\
from torch.autograd import Variable


class Bank(nn.Module):
    def view(self, x):
        return x * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = Bank()

    def forward(self, x):
        return Variable(self.bank.view(x)) + 1
""",
        after="""\
from torch.autograd import Variable


class Bank(nn.Module):
    def view(self, x):
        return x * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = Bank()

    def forward(self, x):
        return self.bank.view(x).detach() + 1
""",
        run=f"def make(): return Net()\ncalls = [({_ROWS},)]\n",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="in inference mode",
        source="""\
from torch.autograd import Variable


class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        y = self.lin(x)
        with torch.inference_mode():
            h = Variable(y)
        return y.relu() * h.sum().item()
""",
        reported=True,
    ),
    NearMiss(
        title="it is asked for gradients",
        source="""\
from torch.autograd import Variable


class Net(nn.Module):
    def forward(self, x):
        y = Variable(x, requires_grad=True)
        return torch.autograd.grad(y.pow(2).sum(), y)[0]
""",
        reported=True,
    ),
    NearMiss(
        title="volatile warns, and says nothing more",
        source="""\
from torch.autograd import Variable


class Net(nn.Module):
    def forward(self, x):
        return Variable(x, volatile=True) * 2
""",
        reported=True,
    ),
    NearMiss(
        title="gradients as the caller says",
        source="""\
from torch.autograd import Variable


class Net(nn.Module):
    def forward(self, x, learned=False):
        return Variable(x, learned) * 2
""",
        reported=True,
    ),
    NearMiss(
        title="in eager code",
        source="""\
from torch.autograd import Variable


def batches(loader):
    for x in loader:
        yield Variable(x)


class Net(nn.Module):
    def forward(self, x):
        return x * 2
""",
    ),
    NearMiss(
        title="a class of the project",
        source="""\
class Variable:
    def __init__(self, value):
        self.value = value


class Net(nn.Module):
    def forward(self, x):
        return Variable(x).value * 2
""",
    ),
    NearMiss(
        title="of another library",
        source="""\
from solver import Variable


class Net(nn.Module):
    def forward(self, x):
        return x * Variable(x).scale if isinstance(x, Variable) else x
""",
    ),
    NearMiss(
        title="the tensor is left out",
        source="""\
from torch.autograd import Variable


class Net(nn.Module):
    def forward(self, x, parts):
        return x + Variable(*parts).sum()
""",
        reported=True,
    ),
    NearMiss(
        title="isinstance is a function of the project",
        source="""\
from torch.autograd import Variable


def isinstance(x, kind):
    return kind in x.kinds


class Net(nn.Module):
    def forward(self, x, held):
        return x * 2 if isinstance(held, Variable) else x
""",
    ),
)
