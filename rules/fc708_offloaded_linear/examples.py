"""What OffloadedLinear reports, and what looks like it."""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from rules.examples.scripts import SCRIPT

_STACK = """class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return x + self.lin(x).relu()


class Stack(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(depth)])
        self.swapped = 0

    def enable_block_swap(self, count, device):
        self.swapped = count

    def enable_gradient_checkpointing(self, cpu_offload=False):
        print("checkpointing", cpu_offload)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


"""

INVALID: tuple[Example, ...] = (
    Example(
        title="block by block, where some are swapped",
        before=_STACK
        + """def script(x, swapped=2):
    model = Stack()
    if swapped > 0:
        model.enable_block_swap(swapped, "cpu")
    for block in model.blocks:
        block.compile(dynamic=False)
    return model(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
    ),
    Example(
        title="the whole model",
        before=_STACK
        + """def script(x):
    model = Stack()
    model.enable_block_swap(2, "cpu")
    model = torch.compile(model)
    return model(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
    ),
    Example(
        title="in methods of one class",
        before=_STACK
        + """class Trainer:
    def __init__(self):
        self.model = Stack()
        self.model.enable_block_swap(2, "cpu")

    def prepared(self):
        self.model.compile()
        return self.model


def script(x):
    return Trainer().prepared()(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
    ),
    Example(
        title="in a function that is handed the model",
        before=_STACK
        + """def compiled(model):
    for block in model.blocks:
        block.compile()
    return model


def prepared(model):
    return compiled(model)


def script(x):
    model = Stack()
    model.enable_block_swap(2, "cpu")
    return prepared(model)(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
    ),
    Example(
        title="a class that offloads",
        before=_STACK
        + """class ModelOffloader:
    def __init__(self, blocks, count):
        self.blocks = blocks[:count]


def script(x):
    model = Stack()
    offloader = ModelOffloader(model.blocks, 2)
    for i in range(len(offloader.blocks)):
        model.blocks[i].compile()
    return model(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
    ),
    Example(
        title="a count that a function is given",
        before=_STACK
        + """def load(name, blocks_to_swap):
    print(name, blocks_to_swap)
    return Stack()


def script(x, count=2):
    model = load("dit", blocks_to_swap=count)
    model.compile(fullgraph=True)
    return model(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
    ),
    Example(
        title="activations on the host",
        before=_STACK
        + """def script(x, offload=True):
    model = Stack()
    model.enable_gradient_checkpointing(cpu_offload=offload)
    model.compile()
    return model(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="nothing is swapped",
        source=_STACK
        + """def script(x):
    model = Stack()
    model.enable_gradient_checkpointing(cpu_offload=False)
    model.enable_gradient_checkpointing()
    model.blocks[0].compile()
    return model(x)


def load(name, blocks_to_swap):
    return Stack()


def other(x):
    model = load("dit", blocks_to_swap=0)
    model.blocks[0].compile()
    return model(x)
""",
    ),
    NearMiss(
        title="swapped and not compiled",
        source=_STACK
        + """def script(x):
    model = Stack()
    model.enable_block_swap(2, "cpu")
    return model(x)
""",
    ),
    NearMiss(
        title="layers are taken out already",
        source=_STACK
        + """def disable_linear_from_compile(module):
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            layer.forward = torch.compiler.disable(layer.forward)


def script(x):
    model = Stack()
    model.enable_block_swap(2, "cpu")
    for block in model.blocks:
        disable_linear_from_compile(block)
        block.compile()
    return model(x)


def by_hand(x):
    model = Stack()
    model.enable_block_swap(2, "cpu")
    for block in model.blocks:
        block.lin.forward = torch.compiler.disable(block.lin.forward)
        block.compile()
    return model(x)
""",
    ),
    NearMiss(
        title="another model is swapped, and in another function",
        source=_STACK
        + """def script(x):
    model, other = Stack(), Stack()
    other.enable_block_swap(2, "cpu")
    for block in model.blocks:
        block.compile()
    return model(other(x))


def swapping():
    model = Stack()
    model.enable_block_swap(2, "cpu")
    return model
""",
    ),
    NearMiss(
        title="another model than the one that is handed over, and layers taken out by who hands it over",
        source=_STACK
        + """def compiled(model):
    for block in model.blocks:
        block.compile()
    return model


def script(x):
    model, other = Stack(), Stack()
    other.enable_block_swap(2, "cpu")
    return compiled(model)(other(x))


def compiled_too(model):
    for block in model.blocks:
        block.compile()
    return model


def eager(x):
    model = Stack()
    model.enable_block_swap(2, "cpu")
    for block in model.blocks:
        block.lin.forward = torch.compiler.disable(block.lin.forward)
    return compiled_too(model)(x)
""",
    ),
    NearMiss(
        title="other words",
        source=_STACK
        + """class Offloaded(Stack):
    pass


def swap_blocks(blocks):
    return list(reversed(blocks))


def script(x):
    model = Offloaded()
    blocks = swap_blocks(model.blocks)
    for block in model.blocks:
        block.compile()
    return model(x)
""",
    ),
    NearMiss(
        title="a compile of another library",
        source=_STACK
        + """import re


def script(x):
    model = Stack()
    model.enable_block_swap(2, "cpu")
    return re.compile("x"), model(x)
""",
    ),
)
