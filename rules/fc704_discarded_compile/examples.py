"""What DiscardedCompile reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from rules.examples.scripts import SCRIPT

_NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()


"""

INVALID: tuple[Example, ...] = (
    Example(
        title="an evaluation script",
        before=_NET
        + """def script(x):
    model = Net()
    model.to("cpu")
    torch.compile(model, mode="max-autotune")
    model.eval()
    with torch.no_grad():
        return model(x)
""",
        after=_NET
        + """def script(x):
    model = Net()
    model.to("cpu")
    model.compile(mode="max-autotune")
    model.eval()
    with torch.no_grad():
        return model(x)
""",
        run=SCRIPT,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="comments, several lines and a model given by its name",
        before=_NET
        + """def script(x, fast=True):
    model = Net().to("cpu")
    if fast:
        # as fast as can be
        torch.compile(
            model=model,
            dynamic=False,  # one size
            fullgraph=True,
        )  # takes a while
    return model(x)
""",
        after=_NET
        + """def script(x, fast=True):
    model = Net().to("cpu")
    if fast:
        # as fast as can be
        # one size
        model.compile(dynamic=False, fullgraph=True)  # takes a while
    return model(x)
""",
        run=SCRIPT,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="a part of the model",
        before=_NET
        + """class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        return self.net(x) + 1


def script(x):
    whole = Whole()
    torch.compile(whole.net)
    return whole(x)
""",
        after=_NET
        + """class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        return self.net(x) + 1


def script(x):
    whole = Whole()
    whole.net.compile()
    return whole(x)
""",
        run=SCRIPT,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="a model without a forward, as toto has it",
        before=_NET
        + """class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.model = Net()


def script(x):
    whole = Whole()
    torch.compile(whole, mode="max-autotune")
    return whole.model(x) * whole.scale
""",
        after=_NET
        + """class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.model = Net()


def script(x):
    whole = Whole()
    whole.model.compile(mode="max-autotune")
    return whole.model(x) * whole.scale
""",
        run=SCRIPT,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="each block, by the name of the loop",
        before=_NET
        + """def script(x):
    blocks = nn.ModuleList([Net() for _ in range(3)])
    for block in blocks:
        torch.compile(block, dynamic=True)
    for block in blocks:
        x = block(x)
    return x
""",
        after=_NET
        + """def script(x):
    blocks = nn.ModuleList([Net() for _ in range(3)])
    for block in blocks:
        block.compile(dynamic=True)
    for block in blocks:
        x = block(x)
    return x
""",
        run=SCRIPT,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="a model that a function is given",
        before=_NET
        + """def prepared(model: nn.Module, **options):
    torch.compile(model, **options)
    return model


def script(x):
    return prepared(Net())(x)
""",
        after=_NET
        + """def prepared(model: nn.Module, **options):
    model.compile(**options)
    return model


def script(x):
    return prepared(Net())(x)
""",
        run=SCRIPT,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="a function: nothing to compile in place",
        before="""def doubled(x):
    return x * 2


def script(x):
    torch.compile(doubled, fullgraph=True)
    return doubled(x)
""",
        after=None,
        run=SCRIPT,
        compiles=True,
    ),
    Example(
        title="a forward of PyTorch's own, which in place would not be compiled",
        before="""def script(x):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    torch.compile(model)
    return model(x)
""",
        after=None,
        run=SCRIPT,
        compiles=True,
    ),
    Example(
        title="a call and a compile of its own",
        before="""class Net(nn.Linear):
    def compile(self, lossless=True):
        self.lossless = lossless

    def forward(self, x):
        return super().forward(x) + 1


class Other(nn.Linear):
    def __call__(self, x):
        return super().forward(x) + 1


def script(x):
    net, other = Net(2, 2), Other(2, 2)
    torch.compile(net)
    torch.compile(other)
    return net(other(x))
""",
        after=None,
        run=SCRIPT,
        compiles=True,
    ),
    Example(
        title="compiled already, which a call of forward by its name does not use",
        before=_NET
        + """def script(x):
    model = Net()
    model.compile()
    torch.compile(model, dynamic=True)
    return model.forward(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
    ),
    Example(
        title="one method of it",
        before=_NET
        + """def script(x):
    model = Net()
    torch.compile(model.forward)
    return model(x)
""",
        after=None,
        run=SCRIPT,
        compiles=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="an error is expected",
        source=_NET
        + """import pytest


def test_modes(case):
    with pytest.raises(RuntimeError):
        torch.compile(Net(), mode="fast")
    with case.assertRaisesRegex(TypeError, "fast"):
        torch.compile(Net(), fast=True)
""",
    ),
    NearMiss(
        title="what is compiled is used",
        source=_NET
        + """def script(x):
    model = torch.compile(Net())
    torch.compile(model)(x)
    return torch.compile(model.lin)(x), model
""",
    ),
    NearMiss(
        title="in place",
        source=_NET
        + """def script(x):
    model = Net()
    model.compile(dynamic=True)
    return model(x)
""",
    ),
    NearMiss(
        title="a compile of another library",
        source="""import re

re.compile("a")


def prepared(keras, graph):
    keras.compile(optimizer="adam")
    graph.compile()
    compile("1", "here", "eval")
""",
    ),
    NearMiss(
        title="a decorator, and what makes one",
        source="""@torch.compile
def doubled(x):
    return x * 2


@torch.compile(dynamic=True)
def halved(x):
    return x / 2


fast = torch.compile(dynamic=True)
""",
    ),
    NearMiss(
        title="another function called torch.compile",
        source="""def prepared(torch, model):
    torch.compile(model)


def compile(model):
    return model


compile(nn.Linear(2, 2))
""",
    ),
    NearMiss(
        title="the last value of a lambda, and of a list",
        source=_NET
        + """later = lambda model: torch.compile(model)
several = [torch.compile(net) for net in (Net(), Net())]
""",
    ),
    NearMiss(
        title="an unpacked argument, and one without its name",
        source=_NET
        + """def prepared(given):
    model = Net()
    torch.compile(*given)
    torch.compile(model, "max-autotune")
""",
        reported=True,
    ),
)
