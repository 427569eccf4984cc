"""What CompileArguments reports and rewrites, and what looks like it and stays."""

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

#: Of which compiling fails, and goes on eagerly.
_TRYING = (
    _NET
    + """def script(x):
    net = Net()
    run = net
    try:
        run = torch.compile(net, {0})
    except Exception as error:
        print("not compiled:", error)
    return run(x)
"""
)
#: Which compiles what it is given, in one way or the other.
_COMPILING = (
    _NET
    + """def script(x):
    return torch.compile(Net(), {0})(x)
"""
)


def _filled(template: str, *values: str) -> str:
    for i, value in enumerate(values):
        template = template.replace(f"{{{i}}}", value)
    return template


INVALID: tuple[Example, ...] = (
    Example(
        title="dynamic as a text, which is always rejected",
        before=_filled(_COMPILING, 'dynamic="auto"'),
        after=_filled(_COMPILING, "dynamic=None"),
        run=SCRIPT,
        compiles=True,
        raises=True,
        unsafe=True,
    ),
    Example(
        title="dynamic as a number, in place, and of a decorator",
        before=_NET
        + """def script(x):
    @torch.compile(fullgraph=True, dynamic="True")
    def doubled(x):
        return x * 2

    net = Net()
    net.compile(dynamic=0, fullgraph=True)  # one size
    return doubled(net(x))
""",
        after=_NET
        + """def script(x):
    @torch.compile(fullgraph=True, dynamic=True)
    def doubled(x):
        return x * 2

    net = Net()
    net.compile(dynamic=False, fullgraph=True)  # one size
    return doubled(net(x))
""",
        run=SCRIPT,
        compiles=True,
        raises=True,
        unsafe=True,
    ),
    Example(
        title="a mode with options",
        before=_filled(_COMPILING, 'mode="max-autotune-no-cudagraphs", options={"epilogue_fusion": True}'),
        after=_filled(
            _COMPILING,
            'options={**torch._inductor.list_mode_options("max-autotune-no-cudagraphs"), "epilogue_fusion": True}',
        ),
        run=SCRIPT,
        compiles=True,
        raises=True,
        unsafe=True,
    ),
    Example(
        title="the default mode with options, and another with none",
        before=_NET
        + """def script(x):
    options = {"triton.cudagraphs": False}
    net = Net()
    fast = torch.compile(
        net,
        mode="default",  # as it is
        options={**options},
    )
    linear = torch.compile(net.lin, mode="reduce-overhead", options={})
    return fast(linear(x))
""",
        after=_NET
        + """def script(x):
    options = {"triton.cudagraphs": False}
    net = Net()
    # as it is
    fast = torch.compile(net, options={**options})
    linear = torch.compile(net.lin, mode="reduce-overhead")
    return fast(linear(x))
""",
        run=SCRIPT,
        compiles=True,
        raises=True,
        unsafe=True,
    ),
    Example(
        title="what catches the error goes on eagerly",
        before=_filled(_TRYING, 'mode="max-autotune", options={"max_autotune_gemm": False}'),
        after=_filled(
            _TRYING,
            'options={**torch._inductor.list_mode_options("max-autotune"), "max_autotune_gemm": False}',
        ),
        run=SCRIPT,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="options that are put in later, as lerobot does",
        before=_NET
        + """class Config:
    mode: str = "default"
    graphs: bool = False


def script(x, config=Config()):
    net = run = Net()
    try:
        given = {"backend": "inductor", "mode": config.mode}
        # tensors are aliased
        if not config.graphs:
            given["options"] = {"triton.cudagraphs": False}
        run = torch.compile(net, **given)
    except Exception as error:
        print("going on without torch.compile:", error)
    return run(x)
""",
        after=_NET
        + """class Config:
    mode: str = "default"
    graphs: bool = False


def script(x, config=Config()):
    net = run = Net()
    try:
        given = {"backend": "inductor", "mode": config.mode}
        # tensors are aliased
        if not config.graphs:
            given["options"] = {**torch._inductor.list_mode_options(given.pop("mode")), "triton.cudagraphs": False}
        run = torch.compile(net, **given)
    except Exception as error:
        print("going on without torch.compile:", error)
    return run(x)
""",
        run=SCRIPT,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="misspelt: a mode, an option, a backend",
        before=_NET
        + """def tried(net, **options):
    try:
        return torch.compile(net, **options)
    except Exception:
        return net


def script(x):
    net = Net()
    try:
        net = torch.compile(net, mode="max_autotune")
        net = torch.compile(net.lin, options={"triton.cudagraph": False})
        net = torch.compile(net, backend="inducter")
    except Exception:
        pass
    return net(x)
""",
        after=_NET
        + """def tried(net, **options):
    try:
        return torch.compile(net, **options)
    except Exception:
        return net


def script(x):
    net = Net()
    try:
        net = torch.compile(net, mode="max-autotune")
        net = torch.compile(net.lin, options={"triton.cudagraphs": False})
        net = torch.compile(net, backend="inductor")
    except Exception:
        pass
    return net(x)
""",
        run=SCRIPT + "calls = [(torch.zeros(4, 2),)]\n_Script.__call__ = lambda self, x: x\n",
        gain=False,
        unsafe=True,
    ),
    Example(
        title="a text that counts as true",
        before="""def script(x):
    @torch.compile(fullgraph="false")
    def broken(x):
        print("here")
        return x * 2

    try:
        return broken(x)
    except Exception:
        return x * 2
""",
        after="""def script(x):
    @torch.compile(fullgraph=False)
    def broken(x):
        print("here")
        return x * 2

    try:
        return broken(x)
    except Exception:
        return x * 2
""",
        run=SCRIPT,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="disabled by a text",
        before=_filled(_COMPILING, 'disable="False"'),
        after=_filled(_COMPILING, "disable=False"),
        run=SCRIPT,
        unsafe=True,
        compiles=True,
    ),
    Example(
        title="a part of the word",
        before=_NET
        + """def prepared(net, full, sizes):
    whole = full.lower() in "true"
    return torch.compile(net, fullgraph=whole, dynamic=sizes.strip().lower() in "true")


def script(x):
    return prepared(Net(), "True", "auto")(x)
""",
        after=_NET
        + """def prepared(net, full, sizes):
    whole = full.lower() == "true"
    return torch.compile(net, fullgraph=whole, dynamic={"true": True, "false": False}.get(sizes.strip().lower()))


def script(x):
    return prepared(Net(), "True", "auto")(x)
""",
        run=SCRIPT,
        gain=False,
        unsafe=True,
        compiles=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="all that is there",
        source=_NET
        + """def script(x, config, **more):
    net = Net()
    a = torch.compile(net, mode="default", options=None, dynamic=None, fullgraph=True)
    b = torch.compile(net, mode=None, options={"triton.cudagraphs": True, "max-autotune": True})
    c = torch.compile(net, mode=config.mode, options=config.options)
    d = torch.compile(net, **more)
    e = torch.compile(net, dynamic=config.dynamic, backend=config.backend, disable=not config.fast)
    f = torch.compile(net, mode="reduce-overhead", backend="inductor", disable=False)
    return a, b, c, d, e, f
""",
    ),
    NearMiss(
        title="an error is expected",
        source=_NET
        + """import pytest


def test_arguments(case):
    with pytest.raises(RuntimeError):
        torch.compile(Net(), mode="max_autotune")
    with case.assertRaises(AssertionError):
        torch.compile(Net(), dynamic="auto")
""",
    ),
    NearMiss(
        title="backends of others",
        source=_NET
        + """def script(x, mine):
    a = torch.compile(Net(), backend="neuron", mode="fastest")
    b = torch.compile(Net(), backend=mine, options={"anything": 1})
    c = torch.compile(Net(), backend="torch_tensorrt", options={"truncate_long_and_double": True})
    d = torch.compile(Net(), backend="eager", mode="default")
    return a, b, c, d
""",
    ),
    NearMiss(
        title="membership of a list, and a word elsewhere",
        source=_NET
        + """def script(x, text, mode):
    fast = text.lower() in ("true", "yes")
    loud = text.lower() in "true"
    print(loud)
    return torch.compile(Net(), fullgraph=fast, dynamic=mode.lower() in ["true"])
""",
    ),
    NearMiss(
        title="another compile",
        source="""import re


def prepared(graph, keras):
    re.compile("a", re.X)
    keras.compile("adam", mode="fast", dynamic="auto")
    graph.compile(options={}, mode="x", others=1)
""",
    ),
    NearMiss(
        title="given one or the other",
        source=_NET
        + """class Config:
    mode: str | None = None


def script(x, config):
    given = {"mode": config.mode}
    if config.mode is None:
        given["options"] = {"triton.cudagraphs": False}
    return torch.compile(Net(), **given)
""",
    ),
)
