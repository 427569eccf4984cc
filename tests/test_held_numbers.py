"""FC203 across files: what modules that import a class do with the numbers that it keeps in tensors."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch

from patcher.engine import patch
from patcher.facts.project.index import Project, summarise
from patcher.settings import Settings
from rules.fc201_item_call.rule import ItemCall
from rules.fc203_tensor_held_size.rule import TensorHeldSize

HOME = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Padded(nn.Module):
    def __init__(self, width, size: int = 3):
        super().__init__()
        self.conv = nn.Conv1d(width, width, size, 2)
        kernel = torch.tensor(self.conv.kernel_size[0], dtype=torch.int64)
        hop = torch.tensor(self.conv.stride[0], dtype=torch.int64)
        self.hop = nn.Buffer(hop, persistent=False)
        self.win = nn.Buffer(kernel, persistent=False)
        self.gap = nn.Buffer(kernel - hop, persistent=False)

    def forward(self, x):
        return self.conv(F.pad(x, (self.gap, self.win - self.hop)))
"""

IMPORTS = """\
import torch
import torch.nn as nn
from torch.nn import init
from home import Padded


class Wider(Padded):
    pass


class Other(nn.Module):
    pass


"""


def outcome(other: str) -> str:
    """What becomes of the class beside a module with ``other`` in it: safe, unsafe, or no fix."""
    texts = {"home.py": HOME, "other.py": IMPORTS + other}
    project = Project([summarise(ast.parse(text), path) for path, text in texts.items()])
    result = patch(HOME, "home.py", (TensorHeldSize(),), Settings(unsafe=True), project)
    found = [f for f in result.found if f.code == "FC203"]
    assert len(found) == 1
    return found[0].applicability


SAME = {
    "nothing": "",
    "the same expression": """\
def initialise(module):
    if isinstance(module, Wider):
        init.constant_(module.hop, module.conv.stride[0])
""",
    "through names, and as tensors": """\
def initialise(module):
    kernel = torch.tensor(module.conv.kernel_size[0])
    hop = torch.tensor(module.conv.stride[0], dtype=torch.int64)
    init.copy_(module.win, kernel)
    module.gap.copy_(kernel - hop)
""",
    "in terms of the others": """\
def initialise(module):
    module.gap.data.fill_(module.win - module.hop)
""",
    "put into a list": """\
def paddings(model):
    found = []
    for layer in model.layers:
        found.append(layer.gap)
    return found
""",
    "another class": """\
def initialise(module):
    if isinstance(module, Other):
        init.constant_(module.hop, 7)
    elif isinstance(module, (nn.Conv1d, nn.Linear)):
        module.win.zero_()
""",
    "objects whose parts and products run code": """\
class Lazy:
    def __getitem__(self, key):
        return load(key)()
    def __mul__(self, other):
        return load(other)()
""",
    "its own attribute of that name": """\
class Third(nn.Module):
    def __init__(self):
        super().__init__()
        self.hop = 5
""",
}

DIFFERENT = {
    "another number": "def f(module):\n    init.constant_(module.hop, 7)\n",
    "torch's own initialiser": "def f(module):\n    nn.init.constant_(module.hop, 7)\n",
    "filled": "def f(module):\n    module.hop.fill_(7)\n",
    "its data filled": "def f(module):\n    module.hop.data.fill_(7)\n",
    "its data replaced": "def f(module):\n    module.hop.data = torch.tensor(7)\n",
    "under a name": "def f(module):\n    hop = module.hop\n    hop.zero_()\n",
    "an output": "def f(module):\n    torch.add(module.gap, 1, out=module.hop)\n",
    "of another attribute": "def f(module):\n    init.constant_(module.hop, module.conv.kernel_size[0])\n",
    "of another module": "def f(module, model):\n    init.constant_(module.hop, model.conv.stride[0])\n",
    "of the module that the name was": """\
def f(module):
    hop = module.conv.stride[0]
    module = module.inner
    init.constant_(module.hop, hop)
""",
    "of the module before": """\
def f(model):
    for module in model.modules():
        if isinstance(module, Other):
            hop = module.conv.stride[0]
        elif isinstance(module, Padded):
            init.constant_(module.hop, hop)
""",
    "a name that is tested, then another": """\
def f(module):
    if isinstance(module, Other):
        module = module.inner
        init.constant_(module.hop, 7)
""",
    "where the test fails": """\
def f(module):
    if isinstance(module, Other):
        return
    else:
        init.constant_(module.hop, 7)
""",
    "in one case of two": """\
def f(module, wide):
    hop = module.conv.stride[0]
    if wide:
        hop = hop * 2
    init.constant_(module.hop, hop)
""",
    "both the same and another": """\
def f(module):
    init.constant_(module.hop, module.conv.stride[0])
    init.constant_(module.hop, 7)
""",
    "a class that nobody knows": """\
def f(module, Layer):
    if isinstance(module, Layer):
        init.constant_(module.hop, 7)
""",
}


@pytest.mark.parametrize("other", SAME.values(), ids=list(SAME))
def test_what_leaves_the_number_as_it_is_keeps_the_fix_safe(other: str) -> None:
    assert outcome(other) == "safe"


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=list(DIFFERENT))
def test_what_may_change_the_number_makes_the_fix_unsafe(other: str) -> None:
    assert outcome(other) == "unsafe"


def test_an_import_through_a_package_counts() -> None:
    texts = {"home.py": HOME, "other.py": "from shop import Padded\n\n\ndef f(m):\n    m.hop.fill_(7)\n"}
    project = Project([summarise(ast.parse(text), path) for path, text in texts.items()])
    result = patch(HOME, "home.py", (TensorHeldSize(),), Settings(unsafe=True), project)
    assert [f.applicability for f in result.found] == ["unsafe"]


@pytest.mark.parametrize(
    ("made", "written", "same"),
    [
        ("size * 2", "int(module.size) * 2", False),
        ("int(size) * 2", "int(module.size) * 2", True),
        ("size * 2", "module.size * 2", True),
        ("size * 2", "int(module.size * 2)", True),
    ],
)
def test_a_number_that_is_cut_off_elsewhere_is_another(made: str, written: str, same: bool) -> None:
    text = f"""\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Padded(nn.Module):
    def __init__(self, size: float):
        super().__init__()
        self.size = size
        self.hop = nn.Buffer(torch.tensor({made.replace("size", "self.size")}, dtype=torch.int64), persistent=False)

    def forward(self, x):
        return F.pad(x, (self.hop, 0))


def initialise(module):
    if isinstance(module, Padded):
        nn.init.constant_(module.hop, {written})
"""
    result = patch(text, "home.py", (TensorHeldSize(),), Settings())
    assert (result.text != text) is same


def test_a_rounded_quotient_that_item_reads_stays_an_integer() -> None:
    text = """\
import torch
import torch.nn as nn


class Cut(nn.Module):
    def __init__(self, hop: int):
        super().__init__()
        self.hop = torch.tensor(hop)

    def forward(self, x):
        n = torch.ceil((x.shape[-1] - self.hop) / self.hop).long().item()
        return x[..., :n], n
"""
    result = patch(text, "home.py", (TensorHeldSize(),), Settings())
    assert result.text != text
    outputs = []
    for source in (text, result.text):
        scope: dict[str, Any] = {"__name__": "home"}
        exec(source, scope)
        made = scope["Cut"](3)
        outputs.append([made(torch.zeros(1, size))[1] for size in (3, 4, 7, 9, 10)])
        torch.set_default_dtype(torch.float16)
        try:
            outputs[-1] += [made(torch.zeros(1, size))[1] for size in (1023, 1025, 4099)]
        finally:
            torch.set_default_dtype(torch.float32)
    assert outputs[0] == outputs[1]
    assert all(type(n) is int for n in outputs[1])


def test_a_width_that_others_have_too_is_known_all_the_same() -> None:
    """Another file sets an attribute of that name on an object of its own."""
    wave = (
        "import torch\nimport torch.nn as nn\n\n\nclass Wave(nn.Module):\n    def __init__(self, width: int):\n"
        "        super().__init__()\n        self.width = width\n\n    def forward(self, x):\n"
        "        width = torch.IntTensor([self.width])\n        return x[:, : width[0]]\n"
    )
    other = "def widened(config):\n    config.width = 2 * config.width\n    return config\n"
    files = {"wave.py": wave, "other.py": other}
    project = Project([summarise(ast.parse(text), path) for path, text in files.items()])
    result = patch(wave, "wave.py", (ItemCall(),), Settings(), project)
    assert "x[:, : int(self.width)]" in result.text


@pytest.mark.parametrize("statement", ["module.hop = torch.tensor(7)", "module.hop += 1"])
def test_a_number_that_others_set_stays_in_its_tensor(statement: str) -> None:
    other = f"{IMPORTS}def f(module):\n    {statement}\n"
    project = Project([summarise(ast.parse(t), p) for p, t in (("home.py", HOME), ("other.py", other))])
    text = patch(HOME, "home.py", (TensorHeldSize(),), Settings(), project).text
    assert "- self.hop" in text
    assert "_hop" not in text


def test_an_attribute_may_have_a_name_that_tensors_have() -> None:
    """A module whose ``stride`` is read is no tensor: to set an attribute of it changes none."""
    named = HOME.replace("self.hop", "self.stride")
    text = patch(named, "home.py", (TensorHeldSize(),), Settings()).text
    assert "self._stride" in text
    assert "self._gap" in text


def test_layer_whose_weights_are_kept_in_another_way() -> None:
    """``weight_norm`` gives back the layer that it gets, whose stride stays what it is."""
    lazy = "class Lazy:\n    def __getitem__(self, key):\n        return load(key)()\n"
    conv = "        self.conv = nn.Conv1d(width, width, size, 2)\n"
    named = "        norm = nn.utils.weight_norm\n        if size:\n            norm = nn.utils.{name}\n"
    for name, kept in (("parametrizations.weight_norm", True), ("fusion.fuse_conv_bn_eval", False)):
        text = HOME.replace(conv, conv + named.replace("{name}", name) + "        self.conv = norm(self.conv)\n")
        texts = {"home.py": text, "other.py": lazy}
        project = Project([summarise(ast.parse(t), path) for path, t in texts.items()])
        assert (patch(text, "home.py", (TensorHeldSize(),), Settings(), project).text != text) is kept
