"""Modules that prepare data on the host are compiled by nobody; what a model holds, or anything else reads, may be."""

from __future__ import annotations

import ast

import pytest

from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise

STEPS = """\
import torch
from torch import nn

class Flip(nn.Module):
    def forward(self, image):
        return image.flip(-1)

class Maybe(nn.Module):
    def __init__(self, step):
        super(Maybe, self).__init__()
        self.step = step

    def forward(self, image):
        return self.step(image) if torch.rand(()) < 0.5 else image
"""
OWN = """\
class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image
"""
IMPORTED = "from torchvision.transforms import v2\nfrom steps import Flip, Maybe\n"
MADE = {
    "in a list": IMPORTED + "def make():\n    return v2.Compose([v2.ToImage(), Maybe(Flip())])\n",
    "appended": IMPORTED
    + "def make(flip):\n    steps = [Maybe(Flip())]\n    if flip:\n        steps.append(Flip())\n"
    + "    return v2.Compose(steps)\n",
    "at the top level": IMPORTED + "PREPARE = v2.Compose([Flip(), Maybe(step=Flip())])\n",
    "for a dataset": IMPORTED
    + "class Pictures:\n    def __init__(self):\n        self.prepare = v2.Compose([Maybe(Flip())])\n",
    "a function of the project": OWN
    + "from steps import Flip, Maybe\ndef make():\n    return Compose([Maybe(Flip())])\n",
}
USED = {
    "in a model": IMPORTED
    + "from torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.prepare = v2.Compose([Maybe(Flip())])\n",
    "handed elsewhere": IMPORTED + "def make(run):\n    run(Maybe(Flip()))\n    return v2.Compose([Maybe(Flip())])\n",
    "kept as well": IMPORTED
    + "def make(net):\n    step = Maybe(Flip())\n    net.step = step\n    return v2.Compose([step, Flip()])\n",
    "returned as well": IMPORTED + "def make():\n    steps = [Maybe(Flip())]\n    return v2.Compose(steps), steps\n",
    "asked for": IMPORTED
    + "def make(x):\n    assert isinstance(x, (Flip, Maybe))\n    return v2.Compose([Maybe(Flip())])\n",
    "a Compose that is a module": OWN.replace("class Compose:", "from torch import nn\nclass Compose(nn.Module):")
    + "from steps import Flip, Maybe\ndef make():\n    return Compose([Maybe(Flip())])\n",
    "a Compose of another kind": "from mine import Compose\nfrom steps import Flip, Maybe\n"
    "X = Compose([Maybe(Flip())])\n",
    "made nowhere": "",
}


def _reached(text: str) -> set[str]:
    project = Project([summarise(ast.parse(t), f"{n}.py") for n, t in (("steps", STEPS), ("data", text))])
    return {c for c in ("Flip", "Maybe") if project.reached(f"steps.{c}.forward")}


@pytest.mark.parametrize("text", MADE.values(), ids=MADE)
def test_steps_of_a_pipeline(text: str) -> None:
    assert _reached(text) == set()


@pytest.mark.parametrize("text", USED.values(), ids=USED)
def test_anything_else(text: str) -> None:
    assert _reached(text) == {"Flip", "Maybe"}


def test_what_a_model_calls_as_well() -> None:
    net = "import torch\nfrom torch import nn\nfrom steps import Flip\nclass Net(nn.Module):\n    def __init__(self):\n"
    net += "        super().__init__()\n        self.flip = Flip()\n"
    net += "    def forward(self, x):\n        return self.flip(x)\n"
    files = {"steps": STEPS, "data": MADE["in a list"], "net": net}
    project = Project([summarise(ast.parse(t), f"{n}.py") for n, t in files.items()])
    assert project.reached("steps.Flip.forward")
    assert not project.reached("steps.Maybe.forward")
