"""Who else sets ``self.hop`` of a ``Cut``, or writes into it? Each hazard is a source; so is what is none."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.facts.project.touches import How

HOME = """
    import functools
    import numpy as np
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    {above}
    class Cut(nn.Module):
        names = ("hop",)
        def __init__(self, hop):
            super().__init__()
            self.hop = torch.tensor(hop)
            self.conv = nn.Conv1d(2, 2, 3)
            {early}

        def forward(self, x):
            {body}
            return x[: self.hop]
    """
#: Statements of ``forward``; with "above:" what stands above the class first, with "early:" of the constructor.
WRITTEN = {
    "a method": "self.hop.add_(1)",
    "through a detached view": "self.hop.detach().add_(1)",
    "an augmented view": "y = self.hop.view(-1)\ny += 1",
    "an element of a view": "y = self.hop.view(1)\ny[...] = 1",
    "data, assigned": "self.hop.data = x",
    "numpy, kept": "y = self.hop.numpy()\ny[...] = 1",
    "getattr": "for name in self.names:\n    getattr(self, name).add_(1)",
    "code that is not read": "above: from elsewhere import use\nuse(self.hop)",
    "two names for each other": "y = self.hop\nz = y\ny = z\nz.add_(1)",
    "a closure": "def inner():\n    self.hop.add_(1)\ninner()",
    "a nested function": "def inner(t):\n    t.add_(1)\ninner(self.hop)",
}
NOT_WRITTEN = {
    "nothing": "pass",
    "arithmetic": "y = self.hop + 1\ny.add_(1)",
    "a copy": "y = self.hop.clone()\ny.add_(1)",
    "a read": "y = int(self.hop)\ny += 1",
    "padding": "x = F.pad(x, (self.hop, 0))",
    "another attribute": "self.conv.weight.data.fill_(1)",
    "a list that is only read": "y = []\ny.append(self.hop)\nx = x[: y[0]]",
    "a function that only reads": "above: def use(t):\n    return t + 1\nx = x[: use(self.hop)]",
    "a container that is changed": "y = [self.hop]\ny.append(3)",
    "a method of the name of a view": "x.chunk(2)[0].add_(1)",
    "another class": "above: class Other:\n    def f(self):\n        self.hop.add_(1)\npass",
}


def _home(text: str) -> str:
    """The module with ``text``, as `WRITTEN` has it, in it."""
    parts = {"above": "", "early": "pass"}
    for name in parts:
        if text.startswith(f"{name}: "):
            lines = text[len(name) + 2 :].split("\n")
            end = next((i for i, line in enumerate(lines[1:], 1) if not line.startswith((" ", "def ", "class "))), 1)
            end = end if name == "above" else 1
            parts[name], text = "\n".join(lines[:end]), "\n".join(lines[end:])
    above, early = (textwrap.indent(parts["above"], " " * 4).strip(), parts["early"])
    body = textwrap.indent(text, " " * 12).strip()
    return textwrap.dedent(HOME.format(above=above, early=early, body=body))


def _project(**files: str) -> Project:
    return Project([summarise(ast.parse(text), f"{name}.py") for name, text in files.items()])


def _written(project: Project) -> list[str]:
    return [f.told for f in project.attributes.touched("model.Cut", "hop", (How.WRITTEN,))]


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_it_is_written(text: str) -> None:
    assert _written(_project(model=_home(text)))


@pytest.mark.parametrize("text", NOT_WRITTEN.values(), ids=NOT_WRITTEN)
def test_it_is_not_written(text: str) -> None:
    assert not _written(_project(model=_home(text)))


ASSIGNED = {
    "a subclass registers": "from model import Cut\nclass Wide(Cut):\n    def __init__(self):\n"
    "        super().__init__()\n        self.register_buffer('hop', 5)",
    "a subclass assigns": "from model import Cut\nclass Wide(Cut):\n    def g(self):\n        self.hop = 5",
    "a subclass has a property": "from model import Cut\nclass Wide(Cut):\n    @property\n    def hop(self):\n"
    "        return 5",
    "a subclass without the constructor": "import torch.nn as nn\nfrom model import Cut\nclass Wide(Cut):\n"
    "    def __init__(self):\n        nn.Module.__init__(self)",
    "an instance without the constructor": "from model import Cut\ndef f():\n    return Cut.__new__(Cut)",
    "an assignment": "def f(m):\n    m.hop = 5",
    "deleted": "def f(m):\n    del m.hop",
    "a class attribute": "from model import Cut\nCut.hop = 5",
    "setattr": "def f(m):\n    setattr(m, 'hop', 5)",
    "setattr of a computed name": "def f(m, **more):\n    for k, v in more.items():\n        setattr(m, k, v)",
    "setattr of an f-string": "def f(m, k):\n    setattr(m, f'{k}op', 5)",
    "setattr of a name in a list": "def f(m):\n    for k in ('win', 'hop'):\n        setattr(m, k, 5)",
    "a registration of all buffers": "def f(m):\n    for k, b in list(m.named_buffers()):\n"
    "        m.register_buffer(k, b, persistent=True)",
    "setattr of what is handed on": "def f(*given):\n    setattr(*given)",
    "a registration of what is handed on": "def f(m, **given):\n    m.register_buffer(**given)",
    "functional_call": "import torch\ndef f(m, x):\n    torch.func.functional_call(m, {'hop': x}, (x,))",
    "the dict": "def f(m):\n    m.__dict__['hop'] = 5",
    "the dict, updated": "def f(m, **more):\n    vars(m).update(more)",
    "the buffers": "def f(m):\n    m._buffers['hop'] = 5",
    "the buffers of the dict": "def f(m):\n    m.__dict__['_buffers']['hop'] = 5",
    "patched for a while": "from unittest import mock\n"
    "def f(m):\n    with mock.patch.object(m, 'hop', 5):\n        m()",
    "patched by its path": "from unittest import mock\n@mock.patch('model.Cut.hop', 5)\ndef f(m):\n    m(3)",
    "patched with others": "from unittest import mock\ndef f(m):\n    mock.patch.multiple(m, hop=5).start()",
    "patched by a fixture": "def f(m, mocker):\n    mocker.patch.object(m, 'hop', 5)",
    "the buffers, by getattr": "def f(m):\n    getattr(m, '_buffers')['hop'] = 5",
}
NOT_ASSIGNED = {
    "nothing": "",
    "another attribute": "def f(m):\n    m.win = 5",
    "another class": "class Other:\n    def f(self):\n        self.hop = 5",
    "another class, registered": "import torch.nn as nn\nclass Other(nn.Module):\n    def f(self):\n"
    "        self.register_buffer('hop', None)",
    "another one patched": "from unittest import mock\n"
    "def f(m):\n    with mock.patch.object(m, 'win', 5):\n        m()",
    "a dispatch of that name": "def f(m):\n    m.patch('hop')\n    m.dispatch('hop')",
    "another computed name": "def f(m, k):\n    setattr(m, f'_{k}', 5)",
    "names in a list": "def f(m):\n    for k in ('win', 'width'):\n        setattr(m, k, 5)",
    "a subclass with the constructor": "from model import Cut\nclass Wide(Cut):\n    def __init__(self):\n"
    "        super().__init__(5)\n        self.win = 4",
}


@pytest.mark.parametrize("text", ASSIGNED.values(), ids=ASSIGNED)
def test_it_is_assigned_elsewhere(text: str) -> None:
    assert list(_project(model=_home("pass"), other=text).attributes.reasons("model.Cut", "hop"))


@pytest.mark.parametrize("text", NOT_ASSIGNED.values(), ids=NOT_ASSIGNED)
def test_it_is_not_assigned_elsewhere(text: str) -> None:
    assert not list(_project(model=_home("pass"), other=text).attributes.reasons("model.Cut", "hop"))


def test_sums_of_tensors_are_others() -> None:
    text = "def f(m):\n    t = m.hop + 1\n    t.add_(1)\n    u = m.hop | m.hop\n    u.add_(1)"
    assert not _written(_project(model=_home("pass"), other=text))


def test_code_far_away_that_names_nothing_is_not_about_it() -> None:
    far = summarise(ast.parse("def f(m, k):\n    setattr(m, k, 5)\ndef g(m):\n    m.hop = 4"), "elsewhere/loading.py")
    project = Project([summarise(ast.parse(_home("pass")), "model.py"), far])
    assert [f.touch.inside.rpartition(".")[2] for f in project.attributes.touched("model.Cut", "hop", (How.SET,))] == [
        "g"
    ]


@pytest.mark.parametrize(("folder", "setting"), [("package", []), ("package/models", ["f"])])
def test_a_class_is_at_home_in_its_module_not_in_the_package_around(
    tmp_path: Path, folder: str, setting: list[str]
) -> None:
    models = tmp_path / "package" / "models"
    models.mkdir(parents=True)
    for package in (models.parent, models):
        (package / "__init__.py").touch()
    files = {
        models.parent / "__init__.py": "",
        models / "__init__.py": "",
        tmp_path / folder / "settings.py": "def f(m, k):\n    setattr(m, k, 5)",
        models / "model.py": _home("pass"),
    }
    project = Project([summarise(ast.parse(text), str(path)) for path, text in files.items()])
    found = project.attributes.touched("package.models.model.Cut", "hop", (How.SET,))
    assert [f.touch.inside.rpartition(".")[2] for f in found] == setting
