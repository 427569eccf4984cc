"""A first case file, and what the call without arguments sees: from the source of a project alone."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import click
import pytest

from patcher.cli.patching import with_cases
from patcher.config import ConfigError
from patcher.harness.cases import CaseError, find
from patcher.newcase.call import Asked, case, kept, overview
from patcher.newcase.text import _larger
from patcher.patching.calls import Told


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def wrote(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def made(model: str) -> tuple[str, Told]:
    told = case(Asked(model, "-", False, "fix-compile"))
    assert told.status == 0, told.err
    ast.parse(str(told.out))
    return str(told.out), told


HEAD = "import torch\nfrom torch import nn\nfrom torch import Tensor\n"


def test_defaults_and_the_first_layer_are_enough() -> None:
    wrote(
        "net.py",
        HEAD
        + "class Net(nn.Module):\n    def __init__(self, width=12, depth=2):\n        super().__init__()\n"
        + "        self.line = nn.Linear(width * 2, width)\n    def forward(self, x):\n        return self.line(x)\n",
    )
    text, _ = made("net.py:Net")
    assert "from net import Net\n" in text
    assert "return Net()\n" in text
    assert '"x": torch.randn(batch, 24),  # as self.line takes it' in text
    assert "FILL IN" not in text


@pytest.mark.parametrize(
    ("layer", "tensor"),
    [
        ("nn.Embedding(100, 8)", "torch.randint(0, 100, (batch, 16))"),
        ("nn.Conv1d(4, 8, 3)", "torch.randn(batch, 4, 32)"),
        ("nn.Conv2d(in_channels=3, out_channels=8, kernel_size=3)", "torch.randn(batch, 3, 32, 32)"),
        ("nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU())", "torch.randn(batch, 1, 32, 32)"),
        ("nn.LayerNorm(8)", "torch.randn(batch, 16, 8)"),
    ],
)
def test_what_a_layer_takes(layer: str, tensor: str) -> None:
    wrote(
        "net.py",
        HEAD
        + f"class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.first = {layer}\n"
        + "    def forward(self, x):\n        return self.first(x)\n",
    )
    assert tensor in made("net.py:Net")[0]


def test_an_input_that_is_changed_first_is_not_what_the_layer_takes() -> None:
    wrote(
        "net.py",
        HEAD
        + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + "        self.l = nn.Linear(4, 4)\n"
        + "    def forward(self, x):\n        x = x.flatten(1)\n        return self.l(x)\n",
    )
    text, told = made("net.py:Net")
    assert '"x": ...,  # FILL IN: x is a tensor; no layer, type, docstring or call tells its shape' in text
    assert any("fill in: x is a tensor" in line for line in told.err)


@pytest.mark.parametrize(
    ("signature", "doc", "tensor"),
    [
        ("x: Float[Tensor, 'b t 7']", "", "torch.randn(batch, 16, 7),  # as its type says"),
        ("x", "x: (B, T, width) of floats.", "torch.randn(batch, 16, 9),  # as the docstring says"),
        ("x", "x (torch.Tensor): shape (batch, 3, H, W)", "torch.randn(batch, 3, 32, 32)"),
        ("x", "x [B, K]: things", "torch.randn(batch, 8),  # as the docstring says; nothing says how large K is"),
        ("ids", "ids: (B, T)", "torch.zeros(batch, 16, dtype=torch.long)"),
        ("x", "Not of x, but (sometimes) of y.", "...,  # FILL IN"),
        ("steps: int", "", "...,  # FILL IN: steps is an int, and nothing says which"),
        ("cache: Cache", "", "...,  # FILL IN: cache is Cache, which this cannot make up"),
    ],
)
def test_types_and_docstrings(signature: str, doc: str, tensor: str) -> None:
    wrote(
        "net.py",
        HEAD
        + "class Net(nn.Module):\n    def __init__(self, width=9):\n        super().__init__()\n"
        + f"    def forward(self, {signature}):\n        '''{doc}'''\n        return 1\n",
    )
    assert tensor in made("net.py:Net")[0]


CONFIGURED = (
    HEAD
    + "from dataclasses import dataclass\n"
    + "@dataclass\nclass NetConfig:\n    width: int = 8\n    vocab_size: int = width * 4\n"
    + "@dataclass\nclass Other:\n    depth: int = 8\n"
    + "class Net(nn.Module):\n    def __init__(self, config):\n        super().__init__()\n"
    + "        self.width = config.width\n"
    + "    def forward(self, input_ids, attention_mask, mode=None):\n        return 1\n"
)


def test_a_configuration_class_is_told_by_what_is_read_of_it() -> None:
    wrote("package/__init__.py", "")
    wrote("package/net.py", CONFIGURED)
    text, _ = made("package/net.py")
    assert "from package.net import Net, NetConfig\n" in text
    assert "config=NetConfig(),  # all defaults of NetConfig" in text
    assert '"input_ids": torch.randint(0, 32, (batch, 16)),' in text
    assert '"attention_mask": torch.ones(batch, 16, dtype=torch.long)' in text
    assert '"mode"' not in text


def test_a_field_without_a_default_is_a_blank_with_its_reason() -> None:
    wrote("net.py", CONFIGURED.replace("width: int = 8", "width: int").replace("width * 4", "32"))
    text, told = made("net.py")
    assert "width=...,  # FILL IN: width is an int, no default, and in no call of NetConfig that can be copied" in text
    (line,) = [n for n, line in enumerate(text.splitlines(), 1) if "FILL IN" in line]
    assert f"-:{line}: fill in: width is an int" in told.err[0]


def test_tests_say_how_a_model_is_built_and_called() -> None:
    wrote("src/net.py", CONFIGURED)
    wrote(
        "tests/test_net.py",
        "import torch\nfrom net import Net, NetConfig\n\ndef test_it(device):\n    n = 2\n"
        "    model = Net(NetConfig(width=4)).eval()\n    ids = torch.randint(0, 9, (n, 5)).long()\n"
        "    model(ids, torch.ones(n, 5), mode='fast')\n",
    )
    text, told = made("src/net.py:Net")
    assert "config=NetConfig(width=4)" in text
    assert "[((torch.randint(0, 9, (2, 5)).long(), torch.ones(2, 5)), {\"mode\": 'fast'})]" in text.replace("\n", "")
    assert told.err[:2] == ("built as in tests/test_net.py:6", "called as in tests/test_net.py:8")


@pytest.mark.parametrize(
    "why_not",
    [
        "import torch\nfrom other import Net\nmodel = Net(7)\nmodel(torch.ones(1, 7))\n",  # another one of that name
        "import torch\nclass Net: ...\nmodel = Net(7)\nmodel(torch.ones(1, 7))\n",
        "import torch\nfrom net import Net\nmodel = Net(size())\nmodel(load())\n",  # what cannot be written elsewhere
        "import torch\nfrom net import Net\nmodel = Net(*sizes)\nmodel(*inputs)\n",
        "import torch\nfrom net import Net\nfor n in (1, 2):\n    model = Net(n)\n    x = a\n    x = b\n    model(x)\n",
    ],
)
def test_calls_of_something_else_are_not_taken(why_not: str) -> None:
    wrote(
        "net.py",
        HEAD
        + "class Net(nn.Module):\n    def __init__(self, size: int):\n        super().__init__()\n"
        + "    def forward(self, x):\n        return x\n",
    )
    wrote("test_net.py", why_not)
    text, _ = made("net.py:Net")
    assert text.count("FILL IN") == 2
    assert "as in" not in text


def test_a_package_that_hands_on_counts() -> None:
    wrote("package/__init__.py", "from .net import Net\n")
    wrote("package/net.py", CONFIGURED.replace("config)", "config, size)"))
    wrote(
        "use.py",
        "import torch\nfrom package import Net\nnet = Net(None, size=3)\ny = net(torch.ones(2, 3), None)\n",
    )
    text, told = made("package/net.py:Net")
    assert "return Net(config=None, size=3)" in text
    assert told.err[:2] == ("built as in use.py:3", "called as in use.py:4")


def test_a_case_with_a_blank_is_refused_by_its_line() -> None:
    wrote("net.py", CONFIGURED.replace("width: int = 8", "width: int").replace("width * 4", "32"))
    told = case(Asked("net.py:Net", None, False, "fix-compile"))
    assert str(told.out) == f"{Path('cases/net.py')}\n"
    with pytest.raises(CaseError, match=r"cases/net\.py:\d+: is still a blank: width is an int"):
        find(["cases/net.py"], {}, None)
    file = Path("cases/net.py")
    lines = file.read_text().splitlines()
    file.write_text("\n".join(line.partition("  # FILL IN")[0].replace("...", "4") for line in lines) + "\n")
    assert find(["cases/net.py"], {}, None)[0].name == "net"


def test_what_is_there_is_not_overwritten() -> None:
    wrote("net.py", CONFIGURED)
    wrote("cases/net.py", "mine = 1\n")
    told = case(Asked("net.py:Net", None, False, "fix-compile"))
    assert (told.status, Path("cases/net.py").read_text()) == (2, "mine = 1\n")
    assert "--force overwrites it" in told.err[0]
    assert case(Asked("net.py:Net", None, True, "fix-compile")).status == 0
    assert "def build" in Path("cases/net.py").read_text()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("gone.py:Net", "gone.py: error: there is no such .py file"),
        ("net.py:Nett", "no class 'Nett' with a forward (did you mean 'Net'?)"),
        ("empty.py:Net", "no class in it has a forward"),
        ("two.py", "which class? A, B: write it as path/to/model.py:Class"),
    ],
)
def test_no_such_model_is_one_line(model: str, message: str) -> None:
    wrote("net.py", CONFIGURED)
    wrote("empty.py", "x = 1\n")
    one = "class {}(nn.Module):\n    def forward(self, x):\n        return x\n"
    wrote("two.py", HEAD + one.format("A") + one.format("B"))
    told = case(Asked(model, None, False, "fix-compile"))
    assert told.status == 2
    assert message in told.err[0]


def test_the_overview_says_what_there_is_and_what_comes_next() -> None:
    wrote("net.py", CONFIGURED + "class Whole(nn.Module):\n    def forward(self, x):\n        return Net(x)(x)\n")
    wrote("train.py", "import torch\nfrom net import Whole\nmodel = torch.compile(Whole())\n")
    told = overview("fix-compile")
    assert told.status == 0
    text = str(told.out)
    assert "2 models (classes with a forward)\n  net.py:Whole\n1 place that compile" in text
    assert "train.py:3: torch.compile(Whole())" in text
    assert [line.partition("#")[0].strip() for line in text.splitlines()[-3:]] == [
        "fix-compile check",
        "fix-compile optimize -- python train.py",
        "fix-compile case net.py:Whole",
    ]
    wrote("cases/whole.py", "def build(): ...\ndef calls(): ...\n")
    for word in ("optimize", "diagnose"):
        assert f"fix-compile {word} --case cases/whole.py ." in str(overview("fix-compile").out)
    assert "1 case\n  whole: cases/whole.py" in str(overview("fix-compile").out)


def test_the_case_of_a_class_is_where_it_was_written() -> None:
    wrote("net.py", CONFIGURED)
    assert kept("net.py:Net") is None
    wrote("cases/net.py", "def build(): ...\ndef calls(): ...\n")
    assert kept("net.py:Net") == Path("cases/net.py")
    assert kept("net.py:Other") is None


def test_a_class_stands_for_its_file_and_its_case_in_all_words() -> None:
    wrote("net.py", f"{HEAD}class Net(nn.Module):\n    def forward(self, x: Tensor) -> Tensor:\n        return x\n")
    wrote("cases/net.py", "def build():\n    return None\n\ndef calls():\n    return []\n")
    with click.Context(click.Command("test")):
        assert with_cases(("net.py:Net", "other"), ("given",)) == (("net.py", "other"), ("given", "cases/net.py"))
        Path("cases/net.py").unlink()
        with pytest.raises(
            ConfigError, match=r"no inputs for net.py:Net are in the repository \(.*; run what calls it"
        ):
            with_cases(("net.py:Net",), ())
        with pytest.raises(ConfigError, match=r"net.ipynb: notebooks are not supported"):
            with_cases(("net.ipynb",), ())
    assert case(Asked("net.ipynb:Net", "-", False, "fix-compile")).err[0].startswith("net.ipynb: notebooks are not")


def test_the_overview_of_nothing_is_one_line() -> None:
    told = overview("fix-compile")
    assert (told.status, told.err[0][:29]) == (2, "there is no Python file here;")


def test_the_case_runs(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    wrote("net.py", HEAD + "class Net(nn.Module):\n    def __init__(self, width=4):\n        super().__init__()\n")
    with Path("net.py").open("a") as stream:
        stream.write(
            "        self.line = nn.Linear(width, 2)\n    def forward(self, x):\n        return self.line(x)\n"
        )
    case(Asked("net.py", None, False, "fix-compile"))
    spec = importlib.util.spec_from_file_location("first_case", "cases/net.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        spec.loader.exec_module(module)
        del sys.modules["net"]
    model = module.build()
    assert [model(*args, **kwargs).shape[0] for args, kwargs in module.calls()] == [2, 3]
    assert isinstance(next(model.parameters()), torch.Tensor)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("", "it runs (inference, 2 calls, "),
        (" + nowhere", "it does not run: net: call 1 raised NameError: name 'nowhere'"),
    ],
)
def test_a_case_without_blanks_is_run_once(more: str, told: str) -> None:
    wrote(
        "net.py",
        HEAD
        + "class Net(nn.Module):\n    def __init__(self, width=12):\n        super().__init__()\n"
        + "        self.line = nn.Linear(width, width)\n"
        + f"    def forward(self, x):\n        return self.line(x){more}\n",
    )
    done = case(Asked("net.py:Net", None, False, "fix-compile", sys.executable))
    assert done.status == 0
    assert done.err[-2].startswith(f"cases/net.py: {told}")
    assert done.err[-1] == "next: fix-compile optimize --case cases/net.py net.py"


def test_dictionaries_of_the_module_and_models_that_a_fixture_builds_are_read() -> None:
    wrote(
        "net.py",
        f"{HEAD}class Net(nn.Module):\n    def __init__(self, width, depth):\n        super().__init__()\n\n"
        "    def forward(self, x):\n        return x\n",
    )
    wrote(
        "tests/test_net.py",
        "import pytest, torch\nfrom net import Net\nSMALL = {'width': 8, 'depth': 2}\n\n@pytest.fixture\ndef net():\n"
        "    return Net(**SMALL)\n\ndef test_it(net):\n    net(torch.ones(4, SMALL['width']))\n",
    )
    text, _ = made("net.py:Net")
    assert "return Net(width=8, depth=2)" in text
    assert "return [((torch.ones(4, 8),), {})]" in text
    wrote(
        "tests/test_net.py",
        "import torch\nfrom net import Net\nSIZES = {'width': 4}\n\ndef build():\n    return Net(SIZES['width'], 1)\n\n"
        "def test_it():\n    model = build()\n    model(torch.ones(2, 4))\n",
    )
    text, _ = made("net.py:Net")
    assert "return Net(width=4, depth=1)" in text
    assert "return [((torch.ones(2, 4),), {})]" in text
    wrote(
        "tests/test_net.py",
        "import torch\nfrom net import Net\nx = torch.ones(3, 3)\n\ndef build():\n    return Net(4, 1)\n\n"
        "def test_it(x):\n    model = build()\n    model(x)\n",
    )
    assert "torch.ones(3, 3)" not in made("net.py:Net")[0], "the parameter is another x"


@pytest.mark.parametrize(
    ("call", "larger"),
    [
        ("((torch.randn(4, 8), torch.ones(1)), {})", "((torch.randn(5, 8), torch.ones(1)), {})"),
        ("((torch.randint(0, 9, (2, 16)),), {})", "((torch.randint(0, 9, (3, 16)),), {})"),
        ("((torch.randn(4, 8), torch.randn(2, 8)), {})", ""),
        ("((torch.randn(4, 8), torch.arange(4)), {})", ""),
        ("((3,), {})", ""),
    ],
)
def test_a_found_call_also_has_a_larger_batch(call: str, larger: str) -> None:
    assert _larger(call) == larger
