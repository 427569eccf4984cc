"""Examples of FC710."""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from patcher.settings import TorchSetting

_SCALARS = TorchSetting("config", "capture_scalar_outputs")
_SHAPES = TorchSetting("config", "capture_dynamic_output_shape_ops")
_RECURRENT = TorchSetting("config", "allow_rnn")
_DYNAMIC = TorchSetting("argument", "dynamic")

_SCALED = """class Net(nn.Module):
    def forward(self, x):
        return x * x.sum().item() + 1


"""
_KEPT = """class Net(nn.Module):
    def forward(self, x):
        return (x[x > 1] * x.sum().item()).relu()


"""
_RUN = """
calls = [(torch.ones(2, 4) * 3,), (torch.ones(2, 4) * 4,)]

def make():
    return Net()

def hook(obj, be):
    return compiled(obj, be)
"""
_SIZES = _RUN.replace("torch.ones(2, 4) * 4", "torch.ones(3, 4)")

INVALID: tuple[Example, ...] = (
    Example(
        title="a number that is read from a tensor",
        before=_SCALED
        + """def compiled(net, backend="inductor"):
    return torch.compile(net, backend=backend)  # the whole model
""",
        after=_SCALED
        + """def compiled(net, backend="inductor"):
    torch._dynamo.config.capture_scalar_outputs = True
    return torch.compile(net, backend=backend)  # the whole model
""",
        run=_RUN,
        unsafe=True,
        torch_settings=(_SCALARS,),
    ),
    Example(
        title="two settings, compiled in place",
        before=_KEPT
        + """def compiled(net, backend="inductor"):
    net.compile(backend=backend)
    return net
""",
        after=_KEPT
        + """def compiled(net, backend="inductor"):
    torch._dynamo.config.capture_scalar_outputs = True
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    net.compile(backend=backend)
    return net
""",
        run=_RUN,
        unsafe=True,
        torch_settings=(_SCALARS, _SHAPES),
    ),
    Example(
        title="one that is set already, and one that is not",
        before=_KEPT
        + """def compiled(net, backend="inductor"):
    torch._dynamo.config.capture_scalar_outputs = True
    return torch.compile(net, backend=backend)
""",
        after=_KEPT
        + """def compiled(net, backend="inductor"):
    torch._dynamo.config.capture_scalar_outputs = True
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    return torch.compile(net, backend=backend)
""",
        run=_RUN,
        unsafe=True,
        torch_settings=(_SCALARS, _SHAPES),
    ),
    Example(
        title="recurrent layers, compiled behind a flag",
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(4, 4)

    def forward(self, x):
        return self.cell(x)[0].relu()


def compiled(net, backend="inductor", wanted=True):
    if wanted:
        net = torch.compile(net, backend=backend)
    return net
""",
        after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(4, 4)

    def forward(self, x):
        return self.cell(x)[0].relu()


def compiled(net, backend="inductor", wanted=True):
    if wanted:
        torch._dynamo.config.allow_rnn = True
        net = torch.compile(net, backend=backend)
    return net
""",
        run=_RUN,
        unsafe=True,
        torch_settings=(_RECURRENT,),
    ),
    Example(
        title="an argument of the call",
        before="""class Net(nn.Module):
    def forward(self, x):
        return x.sin() + 1


def compiled(net, backend="inductor"):
    return torch.compile(net, backend=backend)
""",
        after="""class Net(nn.Module):
    def forward(self, x):
        return x.sin() + 1


def compiled(net, backend="inductor"):
    return torch.compile(net, backend=backend, dynamic=True)
""",
        run=_SIZES,
        unsafe=True,
        torch_settings=(_DYNAMIC,),
    ),
    Example(
        title="under a decorator",
        before=_SCALED
        + """def compiled(net, backend="inductor"):
    @torch.compile(backend=backend)
    def run(x):
        return net(x)

    return run
""",
        after=_SCALED
        + """def compiled(net, backend="inductor"):
    torch._dynamo.config.capture_scalar_outputs = True
    @torch.compile(backend=backend)
    def run(x):
        return net(x)

    return run
""",
        run=_RUN,
        unsafe=True,
        torch_settings=(_SCALARS,),
    ),
    Example(
        title="a recurrent layer, and no run",
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0].relu()
""",
        after=None,
        run="""
calls = [(torch.ones(2, 4),), (torch.ones(2, 4) * 2,)]

def make():
    return Net()
""",
    ),
    Example(
        title="in both arms",
        before=_SCALED
        + """def compiled(net, backend="inductor"):
    if backend == "inductor":
        net = torch.compile(net)
    else:
        net = torch.compile(net, backend=backend)
    return net
""",
        after=_SCALED
        + """def compiled(net, backend="inductor"):
    if backend == "inductor":
        torch._dynamo.config.capture_scalar_outputs = True
        net = torch.compile(net)
    else:
        torch._dynamo.config.capture_scalar_outputs = True
        net = torch.compile(net, backend=backend)
    return net
""",
        run=_RUN,
        unsafe=True,
        torch_settings=(_SCALARS,),
        compiles=True,
    ),
    Example(
        title="no place for a line",
        before=_SCALED
        + """def compiled(net, backend="inductor"):
    if backend: return torch.compile(net, backend=backend)
""",
        after=None,
        run=_RUN,
        torch_settings=(_SCALARS,),
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="no run",
        source=_SCALED + "net = torch.compile(Net())\n",
    ),
    NearMiss(
        title="set already",
        source=_SCALED
        + "torch._dynamo.config.capture_scalar_outputs = True\n\n\ndef compiled(net):\n    return torch.compile(net)\n",
        torch_settings=(_SCALARS,),
    ),
    NearMiss(
        title="given already",
        source=_SCALED + "net = torch.compile(Net(), dynamic=True)\n",
        torch_settings=(_DYNAMIC,),
    ),
    NearMiss(
        title="nothing is compiled",
        source=_SCALED + "net = Net()\n\n\ndef run(x):\n    return net(x)  # to be compiled by whoever imports it\n",
        torch_settings=(_SCALARS, _DYNAMIC),
    ),
    NearMiss(
        title="a cell, a layer that is made anew, and one with the setting in force",
        source="""torch._dynamo.config.allow_rnn = True


class Net(nn.Module):
    def __init__(self, kind, name):
        super().__init__()
        self.cell = nn.LSTMCell(4, 4)
        self.other = kind(4, 4)
        self.named = getattr(nn, name)(4, 4, batch_first=True)
        self.layer = nn.GRU(4, 4)

    def forward(self, x):
        return self.layer(self.named(self.other(self.cell(x)[0])))[0]
""",
    ),
    NearMiss(
        title="a list of other layers, and one that may hold them",
        source="""class Net(nn.Module):
    def __init__(self, recurrent, layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.GRUCell(4, 4)])
        self.given = nn.ModuleList(layers)
        self.either = nn.GRU(4, 4) if recurrent else nn.Linear(4, 4)
        self.unused = nn.LSTM(4, 4)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for layer in self.given:
            x = layer(x)
        return self.either(x)
""",
    ),
    NearMiss(
        title="another compile",
        source="import re\n\nPATTERN = re.compile('x')\nCODE = compile('1', 'text', 'eval')\n",
        torch_settings=(_SCALARS, _DYNAMIC),
    ),
    NearMiss(
        title="arguments that nobody can tell",
        source=_SCALED + "def compiled(net, **options):\n    return torch.compile(net, **options)\n",
        reported=True,
        torch_settings=(_DYNAMIC,),
    ),
    NearMiss(
        title="set to something else on purpose",
        source=_SCALED + "net = torch.compile(Net(), dynamic=False)\n",
        reported=True,
        torch_settings=(_DYNAMIC,),
    ),
)
