"""What PrefixedCheckpoint reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from patcher.state_dict_source import MATCH, UNCOMPILE
from rules.examples.scripts import SCRIPT

_NET = """import io


class Net(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])

    def forward(self, x):
        x = self.norm(self.first(x))
        for block in self.blocks:
            x = block(x).relu()
        return x


"""
_BOTH = f"{UNCOMPILE}\n\n{MATCH}\n\n"
_ONE = f"{UNCOMPILE}\n\n"

INVALID: tuple[Example, ...] = (
    Example(
        title="saved, and loaded into the model itself",
        before=_NET
        + """def script(x):
    net = Net().eval()
    fast = torch.compile(net)
    file = io.BytesIO()
    torch.save(fast.state_dict(), file)  # the last one
    file.seek(0)
    plain = Net().eval()
    plain.load_state_dict(torch.load(file))
    assert torch.equal(plain(x), fast(x))
    return plain(x)
""",
        after=_NET
        + _ONE
        + """def script(x):
    net = Net().eval()
    fast = torch.compile(net)
    file = io.BytesIO()
    torch.save(maybe_uncompile_state_dict(fast.state_dict()), file)  # the last one
    file.seek(0)
    plain = Net().eval()
    plain.load_state_dict(torch.load(file))
    assert torch.equal(plain(x), fast(x))
    return plain(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
        raises=True,
    ),
    Example(
        title="behind a flag, as a value in a dictionary, and read back into the wrapper",
        before=_NET
        + """def script(x, compiling=True):
    net = Net()
    net = torch.compile(net) if compiling else net
    net.train()
    net(x)
    checkpoint = {"model": net.state_dict(), "step": 1}
    checkpoint["again"] = net.state_dict()
    file = io.BytesIO()
    torch.save(checkpoint, file)
    file.seek(0)
    net.load_state_dict(torch.load(file)["model"], strict=False)
    return net.eval()(x)
""",
        after=_NET
        + _BOTH
        + """def script(x, compiling=True):
    net = Net()
    net = torch.compile(net) if compiling else net
    net.train()
    net(x)
    checkpoint = {"model": maybe_uncompile_state_dict(net.state_dict()), "step": 1}
    checkpoint["again"] = maybe_uncompile_state_dict(net.state_dict())
    file = io.BytesIO()
    torch.save(checkpoint, file)
    file.seek(0)
    net.load_state_dict(match_state_dict(torch.load(file)["model"], net), strict=False)
    return net.eval()(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="wrapped block by block, in a function, saved in another",
        before=_NET
        + """def prepare(model, **options):
    model.blocks = nn.ModuleList([torch.compile(block, **options) for block in list(model.blocks)])


def save(state, file):
    torch.save(state, file)
    file.seek(0)
    return file


def script(x):
    net = Net().eval()
    prepare(net, dynamic=False)
    y = net(x)
    plain = Net().eval()
    plain.load_state_dict(torch.load(save(net.state_dict(), io.BytesIO())))
    assert torch.equal(plain(x), y)
    return y
""",
        after=_NET
        + """def prepare(model, **options):
    model.blocks = nn.ModuleList([torch.compile(block, **options) for block in list(model.blocks)])


def save(state, file):
    torch.save(state, file)
    file.seek(0)
    return file


"""
        + _ONE
        + """def script(x):
    net = Net().eval()
    prepare(net, dynamic=False)
    y = net(x)
    plain = Net().eval()
    plain.load_state_dict(torch.load(save(maybe_uncompile_state_dict(net.state_dict()), io.BytesIO())))
    assert torch.equal(plain(x), y)
    return y
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
        raises=True,
    ),
    Example(
        title="a checkpoint of the model itself, loaded into the wrapper",
        before=_NET
        + """def script(x):
    plain = Net().eval()
    file = io.BytesIO()
    torch.save(plain.state_dict(), file)
    file.seek(0)
    slow = Net()
    net = torch.compile(slow)
    net.load_state_dict(torch.load(file))
    net.eval()
    assert torch.equal(plain(x), net(x))
    return net(x)
""",
        after=_NET
        + _BOTH
        + """def script(x):
    plain = Net().eval()
    file = io.BytesIO()
    torch.save(plain.state_dict(), file)
    file.seek(0)
    slow = Net()
    net = torch.compile(slow)
    net.load_state_dict(match_state_dict(torch.load(file), net))
    net.eval()
    assert torch.equal(plain(x), net(x))
    return net(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
        raises=True,
    ),
    Example(
        title="an attribute of a trainer, wrapped twice over, below a module of its own",
        before=_NET
        + """class Parallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


class Trainer:
    def __init__(self):
        net = Net().eval()
        for i, block in enumerate(net.blocks):
            net.blocks[i] = torch.compile(block)
        parallel = Parallel(net)
        self.net = torch.compile(parallel)

    def saved(self, file):
        torch.save(dict(model=self.net.state_dict()), file)
        file.seek(0)
        return file

    def load(self, file):
        self.net.load_state_dict(torch.load(file)["model"])


def script(x):
    trainer = Trainer()
    plain = Parallel(Net()).eval()
    plain.load_state_dict(torch.load(trainer.saved(io.BytesIO()))["model"])
    trainer.load(trainer.saved(io.BytesIO()))
    assert torch.equal(plain(x), trainer.net(x))
    return plain(x)
""",
        after=_NET
        + """class Parallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


"""
        + _BOTH
        + """class Trainer:
    def __init__(self):
        net = Net().eval()
        for i, block in enumerate(net.blocks):
            net.blocks[i] = torch.compile(block)
        parallel = Parallel(net)
        self.net = torch.compile(parallel)

    def saved(self, file):
        torch.save(dict(model=maybe_uncompile_state_dict(self.net.state_dict())), file)
        file.seek(0)
        return file

    def load(self, file):
        self.net.load_state_dict(match_state_dict(torch.load(file)["model"], self.net))


def script(x):
    trainer = Trainer()
    plain = Parallel(Net()).eval()
    plain.load_state_dict(torch.load(trainer.saved(io.BytesIO()))["model"])
    trainer.load(trainer.saved(io.BytesIO()))
    assert torch.equal(plain(x), trainer.net(x))
    return plain(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
        raises=True,
    ),
    Example(
        title="a class that compiles a part of itself, and the function is there already",
        before=_NET
        + _ONE
        + """class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Net()
        slow = Net()
        self.b = torch.compile(slow)

    def forward(self, x):
        return self.b(self.a(x))


def script(x):
    pair = Pair().eval()
    file = io.BytesIO()
    state = pair.state_dict()
    torch.save(state, file)
    file.seek(0)
    names = [name.replace("_orig_mod.", "") for name in torch.load(file)]
    return pair(x), names
""",
        after=_NET
        + _ONE
        + """class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Net()
        slow = Net()
        self.b = torch.compile(slow)

    def forward(self, x):
        return self.b(self.a(x))


def script(x):
    pair = Pair().eval()
    file = io.BytesIO()
    state = maybe_uncompile_state_dict(pair.state_dict())
    torch.save(state, file)
    file.seek(0)
    names = [name.replace("_orig_mod.", "") for name in torch.load(file)]
    return pair(x), names
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="what writes the names that the model has",
        before=_NET
        + """class Saved(Net):
    def save_pretrained(self, file):
        torch.save(self.state_dict(), file)


def script(x):
    net = Saved().eval()
    first = net.blocks[0]
    net.blocks[0] = torch.compile(first)
    net.save_pretrained(io.BytesIO())
    return net(x)
""",
        after=None,
        run=SCRIPT,
        gain=False,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a file that is converted, item by item in its place",
        source=_NET
        + """def convert(path, out):
    net = torch.compile(Net())
    state = torch.load(path)
    for key, value in state.items():
        state[key] = value.float()
    torch.save(state, out)
    return net
""",
    ),
    NearMiss(
        title="compiled in place, and by its forward, and nothing at all",
        source=_NET
        + """def script(x, path):
    net = Net()
    net.compile()
    torch.save(net.state_dict(), path)
    for block in net.blocks:
        block.compile(dynamic=True)
    torch.save({"model": net.state_dict()}, path)
    other = Net()
    other.forward = torch.compile(other.forward)
    torch.save(other.state_dict(), path)
    third = Net()
    torch.compile(third)
    torch.save(third.state_dict(), path)
    third.load_state_dict(torch.load(path), strict=False)
""",
    ),
    NearMiss(
        title="saved and loaded before it is wrapped",
        source=_NET
        + """def script(x, path):
    net = Net()
    net.load_state_dict(torch.load(path))
    torch.save(net.state_dict(), path)
    net = torch.compile(net)
    return net(x)


class Trainer:
    def __init__(self, path):
        net = Net()
        net.load_state_dict(torch.load(path))
        self.plain = net
        self.net = torch.compile(net)

    def save(self, path):
        torch.save(self.plain.state_dict(), path)
""",
    ),
    NearMiss(
        title="the model below the wrapper",
        source=_NET
        + """def is_compiled_module(module):
    return hasattr(module, "_orig_mod")


def unwrap(model):
    return model._orig_mod if is_compiled_module(model) else model


def script(x, path, accelerator):
    net = torch.compile(Net())
    torch.save(getattr(net, "_orig_mod", net).state_dict(), path)
    torch.save(net._orig_mod.state_dict(), path)
    torch.save(unwrap(net).state_dict(), path)
    prepared = accelerator.prepare(net)
    torch.save(accelerator.unwrap_model(prepared, keep_torch_compile=False).state_dict(), path)
    if is_compiled_module(net):
        net = net._orig_mod
    torch.save(net.state_dict(), path)


def other(path):
    net = torch.compile(Net())
    if hasattr(net, "_orig_mod"):
        torch.save(net._orig_mod.state_dict(), path)
    else:
        torch.save(net.state_dict(), path)
    plain = unwrap(net)
    plain.load_state_dict(torch.load(path))
""",
    ),
    NearMiss(
        title="names that are stripped already",
        source=_NET
        + """PREFIX = "_orig_mod."


def cleaned(state):
    return {name.replace("_orig_mod.", ""): value for name, value in state.items()}


def script(x, path):
    net = torch.compile(Net())
    torch.save({k.removeprefix("_orig_mod."): v for k, v in net.state_dict().items()}, path)
    torch.save(cleaned(net.state_dict()), path)
    state = net.state_dict()
    state = {k.replace(PREFIX, ""): v for k, v in state.items()}
    torch.save(state, path)
    third = net.state_dict()
    for key in list(third):
        if key.startswith(PREFIX):
            third[key[len(PREFIX) :]] = third.pop(key)
    torch.save({"model": third}, path)
    last = net.state_dict()
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(last, "_orig_mod.")
    torch.save(last, path)


def into(path):
    net = torch.compile(Net())
    state = torch.load(path)
    state = {f"_orig_mod.{k}": v for k, v in state.items()}
    net.load_state_dict(state)
    net.load_state_dict({f"_orig_mod.{k}": v for k, v in torch.load(path).items()}, strict=False)
""",
    ),
    NearMiss(
        title="sharded, and functions that know the wrapper",
        source="""import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
"""
        + _NET
        + """def script(x, path):
    net = torch.compile(FSDP(Net()))
    torch.save(net.state_dict(), path)
    net.load_state_dict(torch.load(path))
    other = torch.compile(Net())
    torch.save(get_model_state_dict(other), path)
    dcp.save({"model": get_model_state_dict(other)}, checkpoint_id=path)
    set_model_state_dict(other, torch.load(path))
""",
    ),
    NearMiss(
        title="from one model to another, without a file",
        source=_NET
        + """def script(x):
    net, average = torch.compile(Net()), torch.compile(Net())
    average.load_state_dict(net.state_dict())
    return [p for p in net.state_dict().values()], average(x)
""",
    ),
    NearMiss(
        title="the state of what is no model, and functions that are compiled",
        source=_NET
        + """def step(x):
    return x * 2


def script(x, path):
    fast = torch.compile(step)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "x": fast(x)}, path)
    optimizer.load_state_dict(torch.load(path)["optimizer"])
    return fast(x)
""",
    ),
)
