"""Where a repository compiles, and what is said about it; each claim about PyTorch is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn

from patcher.diagnose.diagnosis import CompileSite
from patcher.diagnose.sites import compile_sites
from patcher.facts.syntax.tree import Syntax
from patcher.facts.values.compile_calls import CompileCall, compile_calls
from patcher.facts.values.module_values import ModuleIndex

TORCH = "import torch\nfrom torch import nn\n"
NET = "class Net(nn.Module):\n    def forward(self, x):\n        return x\n"


def calls(text: str) -> list[CompileCall]:
    return list(compile_calls(Syntax(ast.parse(text))))


def kinds(text: str) -> list[str]:
    return [c.kind for c in calls(text)]


def sites(*texts: str, **files: str) -> list[CompileSite]:
    named = [("m.py", text) for text in texts] + [(f"{name}.py", text) for name, text in files.items()]
    return list(compile_sites(named))


def remarks(text: str) -> str:
    return " ".join(r for s in sites(text) for r in s.remarks)


# --- what compiles, in any spelling ---------------------------------------------------------------------------------

COMPILES = {
    "the function": ("torch.compile(net)", "call"),
    "by its keyword": ("torch.compile(model=net)", "call"),
    "imported": ("from torch import compile\ncompile(net)", "call"),
    "imported by another name": ("from torch import compile as c\nc(net)", "call"),
    "the module by another name": ("import torch as t\nt.compile(net)", "call"),
    "a stand-in where it is missing": (
        "try:\n    from torch import compile as c\nexcept ImportError:\n    c = None\nif c:\n    c(net)",
        "call",
    ),
    "assigned": ("c = torch.compile\nc(net)", "call"),
    "looked up": ("c = getattr(torch, 'compile', None)\nif c is not None:\n    c(net)", "call"),
    "looked up in a function": (
        "def f(net):\n    c = getattr(torch, 'compile', None)\n    return net if c is None else c(net)",
        "call",
    ),
    "a partial": ("import functools\nc = functools.partial(torch.compile, mode='default')\nc(net)", "factory call"),
    "its factory": ("torch.compile(fullgraph=True)(net)", "call"),
    "a factory that is kept": ("c = torch.compile(fullgraph=True)\nc(net)", "factory call"),
    "a decorator": ("@torch.compile\ndef f(x):\n    return x", "decorator"),
    "a decorator with arguments": ("@torch.compile(dynamic=True)\ndef f(x):\n    return x", "decorator"),
    "a partial as a decorator": (
        "from functools import partial\n@partial(torch.compile, dynamic=True)\ndef f(x):\n    return x",
        "decorator",
    ),
    "a kept factory as a decorator": (
        "c = torch.compile(fullgraph=True)\n@c\ndef f(x):\n    return x",
        "factory decorator",
    ),
    "the old function": ("torch._dynamo.optimize('eager')(net)", "call"),
    "exempt": ("@torch.compiler.disable\ndef f(x):\n    return x", "exempt"),
    "exempt with arguments": ("@torch._dynamo.disable(recursive=False)\ndef f(x):\n    return x", "exempt"),
    "exempt by a call": ("f = torch.compiler.disable(print)", "exempt"),
    "allowed": ("torch.compiler.allow_in_graph(print)", "exempt"),
    "marked": ("torch._dynamo.mark_dynamic(x, 0)", "mark"),
    "marked by import": ("from torch._dynamo.decorators import mark_unbacked\nmark_unbacked(x, 0)", "mark"),
    "reset": ("torch._dynamo.reset()", "reset"),
    "a setting": ("torch._dynamo.config.suppress_errors = True", "setting"),
    "a setting by import": ("import torch._inductor.config as cfg\ncfg.epilogue_fusion = False", "setting"),
    "a setting below": ("from torch._inductor import config\nconfig.triton.cudagraphs = True", "setting"),
    "precision": ("torch.set_float32_matmul_precision('high')", "setting"),
    "replaced": (
        "import functools\ntorch.compile = functools.partial(torch.compile, backend='eager')",
        "factory setting",
    ),
}


@pytest.mark.parametrize("name", COMPILES)
def test_what_compiles_is_found(name: str) -> None:
    text, expected = COMPILES[name]
    assert sorted(kinds(TORCH + text)) == sorted(expected.split())


NOT_OURS = {
    "regular expressions": "import re\nre.compile('a')\nre.compile('a').compile()",
    "Python's own": "compile('1', 'f', 'eval')",
    "another library": "graph = StateGraph()\ngraph.compile()",
    "Keras": "model = make()\nmodel.compile(optimizer='adam')",
    "a query": "def f(query):\n    return query.compile(dialect=d, options={})",
    "a positional argument": "class Net(nn.Module):\n    def f(self):\n        self.compile('x')",
    "a method of its own": "class Net(nn.Module):\n    def compile(self):\n        pass\n"
    "    def f(self):\n        self.compile()",
    "a parameter called torch": "def f(torch):\n    torch.compile(x)",
    "another function of that name": "def compile(x):\n    return x\ncompile(x)",
    "what was compiled is called": "f = torch.compile(g)\nf(x)",
}


@pytest.mark.parametrize("name", NOT_OURS)
def test_other_things_called_compile_are_not(name: str) -> None:
    found = [c for c in calls(TORCH + NOT_OURS[name]) if "g" not in ast.unparse(c.node)]
    assert found == []


IN_PLACE = {
    "built": NET + "net = Net()\nnet.compile()",
    "built and moved": NET + "net = Net().cuda().eval()\nnet.compile()",
    "of torch": "net = nn.Linear(2, 2)\nnet.compile()",
    "itself": "class Net(nn.Module):\n    def f(self):\n        self.compile()",
    "the class above": "class Net(nn.Module):\n    def f(self):\n        super().compile()",
    "annotated": "def f(net: nn.Module):\n    net.compile()",
    "annotated as text": "def f(net: 'nn.Module'):\n    net.compile()",
    "may be None": "from typing import Optional\ndef f(net: Optional[nn.Module] = None):\n    net.compile()",
    "used as one": "def f(net):\n    opt = torch.optim.SGD(net.parameters(), 0.1)\n    net.compile()",
    "told by a keyword": "def f(net):\n    net.compile(fullgraph=True)",
    "an attribute": "class T:\n    def __init__(self):\n        self.net = nn.Linear(2, 2)\n"
    "    def f(self):\n        self.net.compile()",
    "in a list": "class Net(nn.Module):\n    def __init__(self):\n        self.blocks = nn.ModuleList()\n"
    "    def f(self):\n        for block in self.blocks:\n            block.compile()",
    "in a list of another": "class Net(nn.Module):\n    def __init__(self):\n        self.blocks = nn.ModuleList()\n"
    "def f(net):\n    for i, block in enumerate(net.blocks):\n        block.compile()",
    "an item": "class Net(nn.Module):\n    def __init__(self):\n        self.blocks = nn.ModuleList()\n"
    "    def f(self):\n        self.blocks[0].compile()",
    "children": "def f(net):\n    for name, block in net.named_children():\n        block.compile()",
    "pretrained": "from transformers import AutoModel\nnet = AutoModel.from_pretrained('x')\nnet.compile()",
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_module_compiles_in_place(name: str) -> None:
    assert kinds(TORCH + IN_PLACE[name]) == ["in place"]


def test_a_class_of_another_file_is_a_module() -> None:
    files = {
        "models/net.py": TORCH + "from base import Base\nclass Net(Base):\n    pass\n",
        "base.py": TORCH + "class Base(nn.Module):\n    pass\n",
        "train.py": "import torch\nfrom models import Net\nnet = Net()\nnet.compile()\n",
    }
    assert [s.where for s in compile_sites(list(files.items()))] == ["train.py:4"]
    plain = {**files, "base.py": "class Base:\n    pass\n"}
    assert compile_sites(list(plain.items())) == ()


def test_a_partial_gives_its_arguments() -> None:
    found = calls(
        TORCH + "from functools import partial\nc = partial(torch.compile, mode='default')\nc(net, dynamic=True)"
    )
    assert {n: ast.unparse(v) for n, v in found[-1].arguments} == {"mode": "'default'", "dynamic": "True"}
    assert ast.unparse(found[-1].target or ast.Pass()) == "net"


LIBRARIES = {
    "accelerate": ("from accelerate import Accelerator\nAccelerator(dynamo_backend='inductor')", 1),
    "a plugin": ("from accelerate.utils import TorchDynamoPlugin\nTorchDynamoPlugin(mode='default')", 1),
    "regions": ("from accelerate.utils import compile_regions\nnet = compile_regions(net, mode='default')", 1),
    "transformers": ("from transformers import TrainingArguments\nTrainingArguments('out', torch_compile=True)", 1),
    "switched off": ("from transformers import TrainingArguments\nTrainingArguments('out', torch_compile=False)", 0),
    "diffusers": ("from diffusers import X\npipe.transformer.compile_repeated_blocks(fullgraph=True)", 1),
    "another class": ("from mine import Trainer\nTrainer(torch_compile=True)", 0),
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries_that_compile(name: str) -> None:
    text, count = LIBRARIES[name]
    assert kinds(text) == ["library"] * count


def test_a_site_is_told_as_it_is_written() -> None:
    text = (
        TORCH + "class A:\n    @torch.compile(\n        dynamic=True,  # why\n    )\n    def f(self):\n        pass\n"
    )
    (site,) = sites(text)
    assert (site.where, site.target) == ("m.py:4", "A.f")
    assert site.call == "@torch.compile(dynamic=True)"
    assert site.arguments == (("dynamic", "True"),)


def test_files_keep_their_order_and_a_broken_one_has_none() -> None:
    text = TORCH + "torch._dynamo.reset()\n"
    found = compile_sites([("b.py", text), ("a.py", text), ("c.py", "import torch\ntorch.compile(")])
    assert [s.where for s in found] == ["b.py:3", "a.py:3"]


def test_a_default_in_a_file_without_torch() -> None:
    train = "import torch\nfrom settings import Config\ncfg = Config()\nif cfg.fast:\n    f = torch.compile(g)\n"
    (site,) = compile_sites([("train.py", train), ("settings.py", "class Config:\n    fast: bool = False\n")])
    assert "The default of `cfg.fast` is `fast: bool = False` (settings.py:2)." in site.remarks


def test_a_list_of_a_class_that_is_not_named() -> None:
    layers = "class Net(nn.Module):\n    def __init__(self):\n        self.layers = nn.ModuleList()\n"
    train = "import torch\ndef f(net):\n    for layer in net.layers:\n        layer.compile()\n"
    found = compile_sites([("train.py", train), ("net.py", TORCH + layers)])
    assert [s.where for s in found] == ["train.py:4"]


def test_a_module_index_of_nothing_knows_torch() -> None:
    index = ModuleIndex()
    assert index.is_module_class("torch.nn.Linear")
    assert not index.is_module_class("torch.nn.Parameter")
    assert not index.is_module_class("torch.nn.functional.relu")


def test_classes_that_derive_from_each_other_end() -> None:
    index = ModuleIndex([("m", Syntax(ast.parse("class A(B): pass\nclass B(A): pass")))])
    assert not index.is_module_class("m.A")


# --- what is said ---------------------------------------------------------------------------------------------------

FUNCTION = "def f(model, x):\n    {}\n"
SAID: dict[str, tuple[str, str]] = {
    "discarded": ("def f(model):\n    torch.compile(model)\n    return model", "result is discarded"),
    "in place gives None": (
        "def f(model: nn.Module):\n    model = model.compile()\n    return model",
        "returns None, which `model`",
    ),
    "returned in place": ("def f(model: nn.Module):\n    return model.compile()", "returns None."),
    "no compiler": ("f = torch.compile(g, backend='eager')", "compiles nothing"),
    "disabled": ("f = torch.compile(g, disable=True)", "nothing is compiled"),
    "one graph": ("f = torch.compile(g, fullgraph=True)", "a graph break is an error"),
    "before DDP": (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "def f(model):\n    model = torch.compile(model)\n    return DDP(model)",
        "Compiled before `DistributedDataParallel` wraps it (line 6)",
    ),
    "after DDP": (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "def f(model):\n    model = DDP(model)\n    return torch.compile(model)",
        "Compiled after `DistributedDataParallel` has wrapped it (line 5)",
    ),
    "before DDP, by a function": (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "def wrap(m):\n    return DDP(m)\n"
        "def f(model):\n    model = torch.compile(model)\n    model = wrap(model)\n    return model",
        "Compiled before `DistributedDataParallel` wraps it (line 8)",
    ),
    "in place before FSDP": (
        "from torch.distributed.fsdp import fully_shard\n"
        "def f(model: nn.Module):\n    model.compile()\n    fully_shard(model)",
        "Compiled before `fully_shard` wraps it (line 6), as PyTorch's page",
    ),
    "after FSDP": (
        "from torch.distributed.fsdp import fully_shard\n"
        "def f(model: nn.Module):\n    fully_shard(model)\n    model.compile()",
        "advises to compile the inner module instead",
    ),
    "before prepare": (
        "from accelerate import Accelerator\n"
        "def f(model, opt):\n    accelerator = Accelerator()\n    model = torch.compile(model)\n"
        "    model, opt = accelerator.prepare(model, opt)\n    return model",
        "Compiled before `accelerator.prepare` wraps it (line 7)",
    ),
    "after prepare": (
        "def f(accelerator: 'Accelerator', m):\n    m = accelerator.prepare(m)\n    return torch.compile(m)",
        "Compiled after `accelerator.prepare` has wrapped it (line 4)",
    ),
    "on a class": (
        "@torch.compile\nclass Net(nn.Module):\n    def forward(self, x):\n        return x",
        "no instance of it can be compiled again",
    ),
    "under a test": (
        "def f(m, a, b):\n    if a:\n        if not b:\n            return torch.compile(m)",
        "Only if `a` and `not b`.",
    ),
    "by a choice": ("def f(m, a):\n    return m if a else torch.compile(m)", "Only if not `a`."),
    "an option": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--compile', action='store_true')\n"
        "args = p.parse_args()\ndef f(m):\n    return torch.compile(m) if args.compile else m",
        "The default of `args.compile` is `--compile=False` (m.py:5).",
    ),
    "a field": (
        "class Config:\n    compile: bool = True\ndef f(m, cfg: Config):\n    if cfg.compile:\n"
        "        m = torch.compile(m)\n    return m",
        "The default of `cfg.compile` is `compile: bool = True` (m.py:4).",
    ),
    "a constant": (
        "FAST = True\nif FAST:\n    f = torch.compile(g)",
        "The default of `FAST` is `FAST = True` (m.py:3).",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str) -> None:
    text, expected = SAID[name]
    assert expected in remarks(TORCH + text)


NOT_SAID: dict[str, tuple[str, str]] = {
    "in place alone": ("def f(m: nn.Module):\n    m.compile()\n    return m", "None"),
    "another model is wrapped": (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "def f(a, b):\n    a = torch.compile(a)\n    return a, DDP(b)",
        "wraps",
    ),
    "wrapped or compiled": (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "def f(m, many):\n    if many:\n        m = DDP(m)\n    else:\n        m = torch.compile(m)\n    return m",
        "wrap",
    ),
    "unwrapped in between": (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "def f(m):\n    m = DDP(m)\n    m = m.module\n    return torch.compile(m)",
        "wrapped",
    ),
    "another function wraps": (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "def f(m):\n    return torch.compile(m)\ndef g(m):\n    return DDP(m)",
        "wrap",
    ),
    "the entry of a script": ("if __name__ == '__main__':\n    f = torch.compile(g)", "Only if"),
    "two configurations": (
        "class A:\n    compile: bool = True\nclass B:\n    compile: bool = False\n"
        "def f(m, cfg: A):\n    if cfg.compile:\n        return torch.compile(m)\n"
        "def g(m, cfg: B):\n    return m",
        "default",
    ),
    "a name that changes": ("FAST = True\nFAST = False\nif FAST:\n    f = torch.compile(g)", "default"),
}


@pytest.mark.parametrize("name", NOT_SAID)
def test_what_is_not_said(name: str) -> None:
    text, unexpected = NOT_SAID[name]
    assert sites(TORCH + text) != []
    assert unexpected not in remarks(TORCH + text)


# --- what the remarks say of PyTorch --------------------------------------------------------------------------------


class Count:
    """A backend that counts the graphs it is given."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        self.graphs += 1
        return graph.forward


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.inner(x)
        return result

    def generate(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self(x)
        return result


X = torch.ones(3, 2)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_a_discarded_result_compiles_nothing() -> None:
    count, model = Count(), Layer()
    torch.compile(model, backend=count)
    model(X)
    assert count.graphs == 0


def test_in_place_gives_none_and_keeps_names() -> None:
    model = Layer()
    assert model.compile() is None  # type: ignore[func-returns-value]
    assert next(iter(model.state_dict())) == "inner.weight"
    assert next(iter(torch.compile(model).state_dict())) == "_orig_mod.inner.weight"
    with pytest.raises(RuntimeError, match="Missing key"):
        torch.compile(model).load_state_dict(Layer().state_dict())
