"""What WrappedModule reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from rules.examples.scripts import SCRIPT

_NET = """class Net(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.width = width
        self.lin = nn.Linear(width, width)

    def forward(self, x):
        return self.lin(x).relu()

    def size(self):
        return sum(p.numel() for p in self.parameters())

    def twice(self, x):
        return self(self(x))


"""

_STACK = (
    _NET
    + """class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Net() for _ in range(2)])
        self.others = nn.Sequential(Net(), Net())

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


"""
)

INVALID: tuple[Example, ...] = (
    Example(
        title="a model that is trained and called",
        before=_NET
        + """def script(x):
    model = Net()
    model.to("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model = torch.compile(model, dynamic=True)  # requires PyTorch 2.0
    model.train()
    model(x).sum().backward()
    optimizer.step()
    model.zero_grad()
    model.eval()
    return model(x) * model.width
""",
        after=_NET
        + """def script(x):
    model = Net()
    model.to("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.compile(dynamic=True)  # requires PyTorch 2.0
    model.train()
    model(x).sum().backward()
    optimizer.step()
    model.zero_grad()
    model.eval()
    return model(x) * model.width
""",
        run=SCRIPT + "grad = True\n",
        gain=False,
        compiles=True,
        unsafe=True,
    ),
    Example(
        title="behind a flag, with functions of the file that get it",
        before=_NET
        + """def evaluate(net, x):
    net.eval()
    with torch.no_grad():
        return net(x)


def script(x, compiling=True):
    net = Net().to("cpu")
    if compiling:
        print("compiling")
        net = torch.compile(net, mode="reduce-overhead")
    assert net is not None
    return evaluate(net, x) + net.size()
""",
        after=_NET
        + """def evaluate(net, x):
    net.eval()
    with torch.no_grad():
        return net(x)


def script(x, compiling=True):
    net = Net().to("cpu")
    if compiling:
        print("compiling")
        net.compile(mode="reduce-overhead")
    assert net is not None
    return evaluate(net, x) + net.size()
""",
        run=SCRIPT,
        gain=False,
        compiles=True,
        unsafe=True,
    ),
    Example(
        title="made and compiled at once",
        before=_NET
        + """def script(x):
    net = torch.compile(
        Net(width=2),  # small
        fullgraph=True,
    )
    net = net.eval()
    return net(x)
""",
        after=_NET
        + """def script(x):
    net = Net(width=2)  # small
    net.compile(fullgraph=True)
    net = net.eval()
    return net(x)
""",
        run=SCRIPT,
        gain=False,
        compiles=True,
        unsafe=True,
    ),
    Example(
        title="an attribute",
        before=_NET
        + """class Trainer:
    def __init__(self, options):
        self.net = Net()
        self.net = torch.compile(self.net, **options)

    def run(self, x):
        self.net.train()
        return self.net(x)


def script(x):
    return Trainer({"dynamic": False}).run(x)
""",
        after=_NET
        + """class Trainer:
    def __init__(self, options):
        self.net = Net()
        self.net.compile(**options)

    def run(self, x):
        self.net.train()
        return self.net(x)


def script(x):
    return Trainer({"dynamic": False}).run(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="block by block",
        before=_NET
        + """class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Net() for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def script(x):
    model = Stack()
    for i in range(len(model.blocks)):
        model.blocks[i] = torch.compile(model.blocks[i], dynamic=False)
    return model(x)
""",
        after=_NET
        + """class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Net() for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def script(x):
    model = Stack()
    for i in range(len(model.blocks)):
        model.blocks[i].compile(dynamic=False)
    return model(x)
""",
        run=SCRIPT,
        gain=False,
        compiles=True,
        unsafe=True,
    ),
    Example(
        title="block by block, each with its number",
        before=_NET
        + """class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Net() for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def script(x):
    model = Stack()
    for i, block in enumerate(model.blocks):
        model.blocks[i] = torch.compile(block, dynamic=False)
    return model(x)
""",
        after=_NET
        + """class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Net() for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def script(x):
    model = Stack()
    for i, block in enumerate(model.blocks):
        block.compile(dynamic=False)
    return model(x)
""",
        run=SCRIPT,
        gain=False,
        compiles=True,
        unsafe=True,
    ),
    Example(
        title="a model that a function is given",
        before=_NET
        + """def prepared(model: Net, compiling):
    if compiling:
        model = torch.compile(model)
    return model


def script(x):
    return prepared(Net(), True)(x)
""",
        after=_NET
        + """def prepared(model: Net, compiling):
    if compiling:
        model.compile()
    return model


def script(x):
    return prepared(Net(), True)(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a list of wrappers beside the list, of some of its modules, and of another list",
        source=_STACK
        + """def script(x):
    stack = Stack()
    fast = nn.ModuleList([torch.compile(b) for b in stack.blocks])
    stack.blocks = nn.ModuleList([torch.compile(b) for b in stack.blocks if b.width > 2])
    stack.others = nn.Sequential(*[torch.compile(b) for b in stack.blocks])
    stack.blocks = nn.ModuleList([torch.compile(b).eval() for b in stack.blocks])
    return fast, stack(x)
""",
        reported=True,
    ),
    NearMiss(
        title="what is inside is read without a test",
        source=_NET
        + """def script(x, path):
    net = Net()
    net = torch.compile(net)
    torch.save(net._orig_mod.state_dict(), path)
    return net(x)
""",
    ),
    NearMiss(
        title="a forward of PyTorch's own",
        source="""class Chain(nn.Sequential):
    pass


class Doubled(nn.Linear):
    def __call__(self, x):
        return super().forward(x) * 2


def script(x):
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net = torch.compile(net)
    chain = Chain(nn.Linear(2, 2))
    chain = torch.compile(chain, fullgraph=True)
    doubled = torch.compile(Doubled(2, 2))
    return net(chain(doubled(x)))


net = nn.Linear(2, 2).to("cpu")
net = torch.compile(net)
""",
    ),
    NearMiss(
        title="a compile of its own",
        source="""class Net(nn.Module):
    def forward(self, x):
        return x.sin()

    def compile(self, mode):
        self.mode = mode


def script(x):
    net = Net()
    net = torch.compile(net)
    return net(x)
""",
    ),
    NearMiss(
        title="functions, methods and what nobody knows",
        source=_NET
        + """def doubled(x):
    return x * 2


doubled = torch.compile(doubled)


def prepared(pipe, step):
    step = torch.compile(step)
    pipe.unet = torch.compile(pipe.unet)
    return pipe, step


class Sampler:
    def __init__(self):
        self.sample = torch.compile(self.sample)

    def sample(self, x):
        return x
""",
    ),
    NearMiss(
        title="another name for it",
        source=_NET
        + """def script(x):
    net = Net()
    fast = torch.compile(net)
    first, second = torch.compile(net), net
    return fast(x) + first(x) + second(x)
""",
    ),
    NearMiss(
        title="compiled in place, and made anew between two calls",
        source=_NET
        + """def script(x):
    net = Net()
    net.compile()
    return net(x)


def twice(x):
    net = Net()
    net = torch.compile(net)
    x = net(x)
    net = Net()
    net = torch.compile(net, dynamic=True)
    return net(x)
""",
    ),
    NearMiss(
        title="another torch.compile",
        source=_NET
        + """import functools

torch.compile = functools.partial(torch.compile, backend="eager")


def script(x):
    net = Net()
    net = torch.compile(net)
    return net(x)
""",
    ),
)
