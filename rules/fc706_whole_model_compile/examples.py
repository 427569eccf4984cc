"""What WholeModelCompile reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from rules.examples.scripts import SCRIPT

_BLOCK = """class Block(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.lin = nn.Linear(width, width)

    def forward(self, x):
        return x + self.lin(x).relu()


"""
_STACK = (
    _BLOCK
    + """class Stack(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.blocks = nn.ModuleList([Block() for _ in range(depth)])

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x


"""
)

INVALID: tuple[Example, ...] = (
    Example(
        title="a model of blocks, compiled in place",
        before=_STACK
        + """def script(x):
    model = Stack()
    model.eval()
    model.compile(dynamic=False)  # takes a while
    with torch.no_grad():
        return model(x)
""",
        after=_STACK
        + """def script(x):
    model = Stack()
    model.eval()
    # takes a while
    for block in model.blocks:
        block.compile(dynamic=False)
    with torch.no_grad():
        return model(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="made and compiled at once, behind a flag, with what a dictionary has of arguments",
        before=_STACK
        + """def script(x, fast=True):
    options = {"dynamic": False}
    if fast:
        model = torch.compile(Stack(depth=2), **options)
    else:
        model = Stack(depth=2)
    return model(x)
""",
        after=_STACK
        + """def script(x, fast=True):
    options = {"dynamic": False}
    if fast:
        model = Stack(depth=2)
        for block in model.blocks:
            block.compile(**options)
    else:
        model = Stack(depth=2)
    return model(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="two lists, the model of a pipeline, set by its name",
        before=_BLOCK
        + """class Flow(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.double_blocks = nn.ModuleList([Block() for _ in range(depth)])
        self.single_blocks = nn.ModuleList()
        for _ in range(2 * depth):
            self.single_blocks.append(Block())

    def forward(self, x):
        for i, block in enumerate(self.double_blocks):
            x = block(x)
        torch._dynamo.graph_break()
        for block in reversed(self.single_blocks):
            x = block(x)
        return x


class Pipe:
    def __init__(self):
        self.transformer = Flow(2)


def script(x):
    pipe = Pipe()
    setattr(pipe, "transformer", torch.compile(pipe.transformer))
    return pipe.transformer(x)
""",
        after=_BLOCK
        + """class Flow(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.double_blocks = nn.ModuleList([Block() for _ in range(depth)])
        self.single_blocks = nn.ModuleList()
        for _ in range(2 * depth):
            self.single_blocks.append(Block())

    def forward(self, x):
        for i, block in enumerate(self.double_blocks):
            x = block(x)
        torch._dynamo.graph_break()
        for block in reversed(self.single_blocks):
            x = block(x)
        return x


class Pipe:
    def __init__(self):
        self.transformer = Flow(2)


def script(x):
    pipe = Pipe()
    for block in pipe.transformer.double_blocks:
        block.compile()
    for block in pipe.transformer.single_blocks:
        block.compile()
    return pipe.transformer(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="after it was prepared, on the model inside",
        before=_STACK
        + """class Accelerator:
    def prepare(self, *given):
        return given

    def unwrap_model(self, model):
        return model


def script(x):
    accelerator = Accelerator()
    model = Stack()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    model = torch.compile(model)
    model(x).sum().backward()
    optimizer.step()
    return model(x)
""",
        after=_STACK
        + """class Accelerator:
    def prepare(self, *given):
        return given

    def unwrap_model(self, model):
        return model


def script(x):
    accelerator = Accelerator()
    model = Stack()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    for block in accelerator.unwrap_model(model).blocks:
        block.compile()
    model(x).sum().backward()
    optimizer.step()
    return model(x)
""",
        run=SCRIPT + "grad = True\n",
        gain=False,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="blocks in a dictionary of modules, a model from a method of its class, a part of a model",
        before=_BLOCK
        + """class Config:
    depth = 2


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Linear(2, 2),
                h=nn.ModuleList([Block() for _ in range(config.depth)]),
            )
        )

    def forward(self, x):
        x = self.transformer.wte(x)
        for block in self.transformer.h:
            x = block(x)
        return x

    @classmethod
    def from_pretrained(cls, name):
        model = GPT(Config())
        print("reading", name)
        return model


class Chat(nn.Module):
    def __init__(self):
        super().__init__()
        self.gpt = GPT(Config())

    def forward(self, x):
        return self.gpt(x)


def script(x):
    model = GPT.from_pretrained("gpt2")
    model.compile()
    chat = Chat()
    chat.compile()
    return model(x) + chat(x)
""",
        after=_BLOCK
        + """class Config:
    depth = 2


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Linear(2, 2),
                h=nn.ModuleList([Block() for _ in range(config.depth)]),
            )
        )

    def forward(self, x):
        x = self.transformer.wte(x)
        for block in self.transformer.h:
            x = block(x)
        return x

    @classmethod
    def from_pretrained(cls, name):
        model = GPT(Config())
        print("reading", name)
        return model


class Chat(nn.Module):
    def __init__(self):
        super().__init__()
        self.gpt = GPT(Config())

    def forward(self, x):
        return self.gpt(x)


def script(x):
    model = GPT.from_pretrained("gpt2")
    for block in model.transformer.h:
        block.compile()
    chat = Chat()
    for block in chat.gpt.transformer.h:
        block.compile()
    return model(x) + chat(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="an attribute",
        before=_STACK
        + """class Trainer:
    def __init__(self, fast):
        self.model = Stack(2)
        if fast:
            self.model = torch.compile(self.model)

    def step(self, x):
        return self.model(x)


def script(x):
    return Trainer(True).step(x)
""",
        after=_STACK
        + """class Trainer:
    def __init__(self, fast):
        self.model = Stack(2)
        if fast:
            for block in self.model.blocks:
                block.compile()

    def step(self, x):
        return self.model(x)


def script(x):
    return Trainer(True).step(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="blocks that a decorator compiles",
        before=""
        + """@torch.compile
class Fast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x)


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Fast(), Fast()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def script(x):
    model = Stack()
    model.compile()
    return model(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
        compiles=True,
    ),
    Example(
        title="an argument that is made by the call",
        before=_STACK
        + """def backend(name):
    print("made once", name)
    return name


def script(x):
    model = Stack()
    model = torch.compile(model, backend=backend("inductor"), dynamic=None)
    return model(x)
""",
        after=_STACK
        + """def backend(name):
    print("made once", name)
    return name


def script(x):
    model = Stack()
    backend_2 = backend("inductor")
    for block in model.blocks:
        block.compile(backend=backend_2, dynamic=None)
    return model(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="blocks that are swapped between devices",
        before=_STACK
        + """def script(x):
    model = Stack()
    model.enable_block_swap = print
    model.enable_block_swap(2)
    model.compile()
    return model(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
        compiles=True,
    ),
    Example(
        title="activation checkpointing that comes afterwards",
        before=_STACK
        + """def apply_activation_checkpointing(model):
    print("checkpointing")


def script(x):
    model = Stack()
    model.compile()
    apply_activation_checkpointing(model)
    return model(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
        compiles=True,
    ),
    Example(
        title="the wrapper is asked for",
        before=_STACK
        + """def script(x):
    model = Stack()
    model = torch.compile(model)
    y = model(x)
    return y, list(model._orig_mod.state_dict())
""",
        after=None,
        run=SCRIPT,
        gain=False,
        compiles=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="no repeated blocks, blocks of several classes, one block",
        source=_STACK
        + """class Other(Block):
    pass


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.block = Block()
        self.blocks = nn.ModuleList([Block(), Other()])
        self.more = nn.ModuleList([kind() for _ in range(3)])
        self.one = nn.ModuleList([Block()])
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        self.shared = nn.ModuleList([self.block] * 3)

    def forward(self, x):
        for blocks in (self.blocks, self.more, self.one, self.layers, self.shared):
            for block in blocks:
                x = block(x)
        for block in self.blocks:
            x = block(x)
        for layer in self.layers:
            x = layer(x)
        for block in self.one:
            x = block(x)
        for block in self.more:
            x = block(x)
        for block in self.shared:
            x = block(x)
        return self.block(x)


def script(x):
    net = Net(Block)
    net.compile()
    return net(x)
""",
    ),
    NearMiss(
        title="blocks beside other lists, which may be most of the model",
        source=_STACK
        + """class Net(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.down = nn.ModuleList([])
        for kind in kinds:
            self.down.append(nn.ModuleList([kind(), kind()]))
        self.middle = nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for one, other in self.down:
            x = other(one(x))
        for block in self.middle:
            x = block(x)
        return x


def script(x):
    net = Net([Block])
    net.compile()
    return net(x)
""",
    ),
    NearMiss(
        title="items that are not called, or by their forward",
        source=_STACK
        + """class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.others = nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x, i):
        for block in self.others:
            x = block.forward(x)
        return x @ self.blocks[i].lin.weight


def script(x):
    model = Table()
    model.compile()
    return model(x, 1)
""",
    ),
    NearMiss(
        title="compiled block by block already, and twice",
        source=_STACK
        + """def script(x):
    model = Stack()
    for block in model.blocks:
        block.compile()
    return model(x)


def numbered(x):
    model = Stack()
    model.blocks[0].compile()
    return model(x)


def twice(x):
    model = Stack()
    model.compile()
    model.compile(dynamic=True)
    return model(x)
""",
        reported=True,
    ),
    NearMiss(
        title="functions, a method, a forward, and what nobody knows",
        source=_STACK
        + """def step(model, x):
    return model(x)


fast = torch.compile(step)


def script(model, x):
    model.forward = torch.compile(model.forward)
    model = torch.compile(model)
    return fast(model, x)


def by_forward(x):
    model = Stack()
    model.forward = torch.compile(model.forward)
    return model(x)


def kept(x):
    model = Stack()
    quick = torch.compile(model)
    return quick(x) - model(x)
""",
    ),
    NearMiss(
        title="a list that is another one later, and one with a compile of its own",
        source=_STACK
        + """class Grown(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])

    def grow(self):
        self.blocks = nn.ModuleList([*self.blocks, nn.Identity()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Own(Block):
    def compile(self, mode):
        self.mode = mode


class Owning(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Own() for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def script(x):
    grown, owning = Grown(), Owning()
    grown.compile()
    owning.compile()
    return grown(owning(x))
""",
    ),
)
