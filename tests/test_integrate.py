"""`fix-compile integrate`: scripts are patched, and run as a user runs them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from patcher import cli
from tests.scripts_run import run

MODEL = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.linear(x))


class Net(nn.Module):
    def __init__(self, width=8, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
"""
TRAIN = """\
import argparse

import torch

from model import Net


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--blocks_to_swap", type=int, default=0)
    parser.add_argument("--resume", default="")
    parser.add_argument("--out", default="model.pt")
    args = parser.parse_args()

    torch.manual_seed(0)
    model = Net()
    if args.resume:
        model.load_state_dict(torch.load(args.resume)["model"])
    model.to("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(args.steps):
        loss = model(torch.linspace(-1, 1, 32).reshape(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(step, loss.item())
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.out)
    print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])


if __name__ == "__main__":
    main()
"""


def fix_compile(folder: Path, *arguments: str) -> tuple[int, str, str]:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main([], arguments)
            out.flush()
            err.flush()
    finally:
        os.chdir(before)
    return status, *(stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]


def python(folder: Path, *arguments: str, fails: bool = False, **environment: str) -> str:
    """What a script prints; also what it says as it fails."""
    status, out, err = run(folder, arguments, environment)
    assert (status != 0) == fails, out + err
    return out + (err if fails else "")


def contents(folder: Path) -> dict[str, bytes]:
    """All files but ours and compiled ones, by path."""
    skipped = {".fix-compile", "__pycache__"}
    files = [path for path in folder.rglob("*") if path.is_file() and not skipped & set(path.parts)]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n")
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def test_a_script_is_integrated_runs_and_comes_back(project: Path) -> None:
    before = contents(project)
    eager = python(project, "train.py", "--out", "eager.pt")
    (project / "eager.pt").rename(project.parent / f"{project.name}-eager.pt")

    status, out, _ = fix_compile(project, "integrate", "train.py")
    assert status == 0, out
    assert "compile_utils.py: written" in out
    assert set(contents(project)) == {*before, "compile_utils.py"}
    assert contents(project)["model.py"] == before["model.py"]

    command = [sys.executable, "train.py", "--help"]
    told = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True).stdout
    for option in ("", "_backend", "_mode", "_dynamic", "_fullgraph", "_cache_size_limit"):
        assert f"--compile{option} " in told or f"[--compile{option}]" in told
    assert python(project, "train.py", "--out", "off.pt") == eager
    assert "graphs 0" in eager
    on = python(project, "train.py", "--compile", "--compile_backend", "eager", "--compile_fullgraph", "--out", "on.pt")
    assert on.splitlines()[:-1] == eager.splitlines()[:-1]
    assert on.splitlines()[-1] == "graphs 2"  # of three blocks: the first is given a tensor without gradient

    compared = python(
        project,
        "-c",
        "import torch\n"
        "off, on = (torch.load(f)['model'] for f in ('off.pt', 'on.pt'))\n"
        "print(list(off) == list(on), all(torch.equal(off[k], on[k]) for k in off))",
    )
    assert compared == "True True\n"
    assert "graphs 2" in python(
        project, "train.py", "--resume", "on.pt", "--compile", "--compile_backend", "eager", "--steps", "1"
    )
    resumed = [python(project, "train.py", "--resume", f, "--steps", "1").splitlines()[0] for f in ("off.pt", "on.pt")]
    assert resumed[0] == resumed[1]

    for made in project.glob("*.pt"):
        made.unlink()
    patched = contents(project)
    status, _, err = fix_compile(project, "integrate", "train.py")
    assert (status, err) == (0, "integrated already: nothing to do\n")
    assert contents(project) == patched
    status, out, _ = fix_compile(project, "restore")
    assert status == 0, out
    assert contents(project) == before


def test_the_diff_has_the_new_file_and_applies(project: Path) -> None:
    before = contents(project)
    status, diff, err = fix_compile(project, "integrate", "--dry-run", "train.py")
    assert status == 0
    assert contents(project) == before
    assert "train.py:9: `parser` gets --compile, " in err
    subprocess.run(["patch", "-p1"], cwd=project, input=diff.encode(), check=True, capture_output=True)
    patched = contents(project)
    subprocess.run(["patch", "-R", "-p1"], cwd=project, input=diff.encode(), check=True, capture_output=True)
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    assert contents(project) == patched
    lines = diff.split("+++ b/train.py\n")[1].splitlines()
    changed = [line for line in lines if line.startswith(("+", "-"))]
    assert changed == [
        "+import compile_utils",
        "+    compile_utils.add_compile_arguments(parser)",
        "+    if args.compile:",
        "+        compile_utils.compile_model(model, args)",
        '-    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.out)',
        "+    torch.save(",
        '+        {"model": compile_utils.maybe_uncompile_state_dict(model.state_dict()), '
        '"optimizer": optimizer.state_dict()},',
        "+        args.out,",
        "+    )",
    ]


def test_options_reach_the_call(project: Path) -> None:
    assert fix_compile(project, "integrate", "-q", "train.py") == (0, "", "")
    script = (
        "import argparse, json, sys, torch, compile_utils\n"
        "from model import Net\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--blocks_to_swap', type=int, default=None)\n"
        "compile_utils.add_compile_arguments(parser)\n"
        "args = parser.parse_args(sys.argv[1:])\n"
        "seen = []\n"
        "def compile(function=None, **options):\n"
        "    seen.append(options)\n"
        "    return function\n"
        "torch.compile = compile\n"
        "net = Net()\n"
        "assert compile_utils.compile_model(net, args) is net\n"
        "print(json.dumps([seen, torch._dynamo.config.recompile_limit]))\n"
    )
    usual = {"backend": "inductor", "dynamic": None, "fullgraph": False}

    def seen(*arguments: str) -> tuple[list[dict[str, object]], int]:
        options, limit = json.loads(python(project, "-c", script, *arguments))
        return options, limit

    assert seen()[0] == []
    assert seen("--compile") == ([usual] * 3, 8)
    assert seen("--compile", "--compile_dynamic", "true")[0] == [{**usual, "dynamic": True}] * 3
    assert seen("--compile", "--compile_dynamic", "false")[0] == [{**usual, "dynamic": False}] * 3
    assert seen("--compile", "--compile_mode", "max-autotune")[0] == [{**usual, "mode": "max-autotune"}] * 3
    assert seen("--compile", "--compile_fullgraph")[0] == [{**usual, "fullgraph": True}] * 3
    assert seen("--compile", "--compile_fullgraph", "--blocks_to_swap", "2")[0] == [usual] * 3
    assert seen("--compile", "--compile_cache_size_limit", "32")[1] == 32


def test_linear_layers_of_swapped_blocks_stay_eager(project: Path) -> None:
    eager = python(project, "train.py").splitlines()[:-1]
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    swapped = python(project, "train.py", "--compile", "--compile_backend", "eager", "--blocks_to_swap", "2")
    assert swapped.splitlines()[:-1] == eager
    script = (
        "import sys, runpy, torch\n"
        "@torch._dynamo.register_backend\n"
        "def telling(graph, inputs):\n"
        "    print('graph of', *(n.target.__name__ for n in graph.graph.nodes if n.op == 'call_function'))\n"
        "    return graph.forward\n"
        "runpy.run_path('train.py', run_name='__main__')\n"
    )
    arguments = ("-c", script, "--compile", "--compile_backend", "telling")
    assert "graph of linear relu add\n" in python(project, *arguments)
    told = python(project, *arguments, "--blocks_to_swap", "2")
    assert "graph of relu add\n" in told
    assert "linear" not in told


def test_a_second_compiler_is_refused(project: Path) -> None:
    train = TRAIN.replace(
        '"--steps", type=int, default=2)',
        '"--steps", type=int, default=2)\n    parser.add_argument("--torch_compile", action="store_true")',
    )
    (project / "train.py").write_text(train)
    status, out, _ = fix_compile(project, "integrate", "train.py")
    assert status == 0
    assert "train.py:11: --torch_compile compiles in another way: with --compile it is an error\n" in out
    python(project, "train.py", "--torch_compile")
    told = python(project, "train.py", "--torch_compile", "--compile", fails=True)
    assert "--compile and --torch_compile exclude each other" in told
    told = python(project, "train.py", "--compile", fails=True, ACCELERATE_DYNAMO_BACKEND="INDUCTOR")
    assert "dynamo backend of accelerate" in told


def test_before_ddp_wraps(project: Path) -> None:
    train = TRAIN.replace(
        "    optimizer = ",
        '    where = f"file://{args.out}.store"\n'
        '    torch.distributed.init_process_group("gloo", init_method=where, rank=0, world_size=1)\n'
        "    model = nn.parallel.DistributedDataParallel(model)\n"
        "    optimizer = ",
    ).replace("import torch\n", "import torch\nfrom torch import nn\n")
    (project / "train.py").write_text(train)
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    lines = (project / "train.py").read_text().splitlines()
    at = lines.index("        compile_utils.compile_model(model, args)")
    assert lines[at + 1] == "    model = nn.parallel.DistributedDataParallel(model)"
    eager = python(project, "train.py", "--out", str(project / "off.pt"))
    on = python(project, "train.py", "--out", str(project / "on.pt"), "--compile", "--compile_backend", "eager")
    assert on.splitlines()[:-1] == eager.splitlines()[:-1]
    assert on.splitlines()[-1] == "graphs 2"


PREPARED = """\
import argparse

from accelerate import Accelerator
from model import Net, Text
import torch


def parse_args(input_args=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_text", action="store_true")
    if input_args is not None:
        args = parser.parse_args(input_args)
    else:
        args = parser.parse_args()
    return args


def main(args):
    accelerator = Accelerator()
    net, text = Net(), Text()
    net.enable_gradient_checkpointing()
    optimizer = torch.optim.AdamW(net.parameters())
    if args.train_text:
        net, text, optimizer = accelerator.prepare(net, text, optimizer)
    else:
        net, optimizer = accelerator.prepare(net, optimizer)

    def unwrap(model):
        return accelerator.unwrap_model(model)

    for x in ():
        net(text(x))
    net = unwrap(net)
    torch.save(net.state_dict(), "net.pt")


if __name__ == "__main__":
    main(parse_args())
"""


def test_after_accelerate_has_prepared(project: Path) -> None:
    """In each arm what is prepared there: `text` is compiled only where it is trained."""
    (project / "train.py").write_text(PREPARED)
    (project / "model.py").write_text(MODEL + "\n\nclass Text(Net):\n    pass\n")
    assert fix_compile(project, "integrate", "train.py", "model.py")[0] == 0
    text = (project / "train.py").read_text()
    assert (
        """\
        net, text, optimizer = accelerator.prepare(net, text, optimizer)
        if args.compile:
            compile_utils.compile_model(accelerator.unwrap_model(net), args)
            compile_utils.compile_model(accelerator.unwrap_model(text), args)
    else:
        net, optimizer = accelerator.prepare(net, optimizer)
        if args.compile:
            compile_utils.compile_model(accelerator.unwrap_model(net), args)
"""
        in text
    )
    assert "    compile_utils.add_compile_arguments(parser)\n    if input_args is not None:\n" in text
    assert 'torch.save(compile_utils.maybe_uncompile_state_dict(net.state_dict()), "net.pt")' in text


def test_parser_and_savers_in_other_files(project: Path) -> None:
    (project / "options.py").write_text(
        "import argparse\n\n\ndef get_parser():\n    parser = argparse.ArgumentParser()\n"
        '    parser.add_argument("--out", default="model.pt")\n    return parser\n'
    )
    (project / "saving.py").write_text(
        "import torch\n\n\ndef save(model, path):\n    weights = model.state_dict()\n    torch.save(weights, path)\n"
    )
    (project / "train.py").write_text(
        "from options import get_parser\nfrom saving import save\nfrom model import Net\nimport torch\n\n\n"
        "def train(args):\n    torch.manual_seed(0)\n    net = Net()\n    net.train()\n"
        "    print(net(torch.ones(2, 8)).sum().item())\n    save(net, args.out)\n\n\n"
        'if __name__ == "__main__":\n    args = get_parser().parse_args()\n    train(args)\n'
    )
    before = contents(project)
    status, out, _ = fix_compile(project, "integrate", "train.py")
    assert status == 1
    assert out == "options.py:5: the parser is made here: give this file as well\n"
    assert contents(project) == before
    status, out, _ = fix_compile(project, "integrate", "train.py", "options.py", "saving.py")
    assert status == 0, out
    assert (
        "    compile_utils.add_compile_arguments(parser)\n    return parser\n" in (project / "options.py").read_text()
    )
    assert (
        "weights = compile_utils.maybe_uncompile_state_dict(model.state_dict())" in (project / "saving.py").read_text()
    )
    off = python(project, "train.py")
    assert python(project, "train.py", "--compile", "--compile_backend", "eager") == off
    assert fix_compile(project, "restore")[0] == 0
    assert {k: v for k, v in contents(project).items() if k != "model.pt"} == before


@pytest.mark.parametrize("where", [".", "pack"])
def test_a_module_of_a_package(where: str, project: Path) -> None:
    beside = f"from {'.' if where == '.' else 'pack.'}model"
    package = project / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "model.py").write_text(MODEL)
    (package / "train.py").write_text(TRAIN.replace("from model", beside))
    assert fix_compile(project, "integrate", "pack/train.py")[0] == 0
    assert f"\n{beside} import Net\nfrom {where} import compile_utils\n" in (package / "train.py").read_text()
    assert (package / "compile_utils.py").exists()
    off = python(project, "-m", "pack.train").splitlines()
    assert python(project, "-m", "pack.train", "--compile", "--compile_backend", "eager").splitlines()[:-1] == off[:-1]


def test_lines_end_as_those_of_the_script(project: Path) -> None:
    script = TRAIN.replace('"', "'").replace("    ", "  ").replace("\n", "\r\n")
    (project / "train.py").write_bytes(script.encode())
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    for name in ("train.py", "compile_utils.py"):
        data = (project / name).read_bytes()
        assert data.count(b"\n") == data.count(b"\r\n")
    assert python(project, "train.py", "--compile", "--compile_backend", "eager").endswith("graphs 2\n")


def test_modules_of_pytorch_are_compiled(project: Path) -> None:
    """PyTorch compiles no ``forward`` of its own by name: a model of its layers is no reason to compile nothing."""
    for made, graphs in (
        ("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 3)", 2),
        ("nn.Sequential(nn.Linear(8, 8), nn.ReLU())", 1),
    ):
        (project / "train.py").write_text(
            TRAIN.replace("Net()", made).replace("from model import Net", "from torch import nn")
        )
        assert fix_compile(project, "integrate", "train.py")[0] == 0
        eager = python(project, "train.py").splitlines()
        on = python(project, "train.py", "--compile", "--compile_backend", "eager").splitlines()
        assert on[:-1] == eager[:-1]
        assert on[-1] == f"graphs {graphs}"
        assert fix_compile(project, "restore")[0] == 0


COPIED = """\
import argparse
import copy

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--blocks_to_swap", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(0)
model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2)
model.train()
average = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    x = torch.linspace(-1, 1, 32).reshape(2, 2, 8)
    model(x).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        for a, b in zip(average.parameters(), model.parameters()):
            a.lerp_(b, 0.5)
    print(model(x).sum().item(), average(x).sum().item())
torch.save(model, "whole.pt")
again = torch.load("whole.pt", weights_only=False)
print(torch.equal(again(x), model(x)))
print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])
"""


@pytest.mark.parametrize("swap", ["0", "1"])
def test_a_copy_of_a_compiled_model_computes_with_its_own_weights(swap: str, project: Path) -> None:
    """As an average of the weights is made, and a whole model saved: each method belongs to the copied module."""
    (project / "train.py").write_text(COPIED)
    eager = python(project, "train.py").splitlines()
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    on = python(project, "train.py", "--compile", "--compile_backend", "eager", "--blocks_to_swap", swap).splitlines()
    assert on[:-1] == eager[:-1]
    assert swap == "1" or on[-1] != "graphs 0"  # where layers are eager, PyTorch's own blocks are as well


def test_the_import_is_above_what_uses_it(project: Path) -> None:
    """Some parse first and import later; and some import in functions, below lines that say how the file is read."""
    late = TRAIN.replace("import torch\n\nfrom model import Net\n\n\ndef main():\n", "")
    late = late.replace("    args = parser.parse_args()\n", "    args = parser.parse_args()\n\n    import torch\n")
    late = late.partition("\n\nif __name__")[0].replace("\n    ", "\n").replace("\n    ", "\n    ")
    late = late.replace("import torch\n", "import torch\nfrom model import Net\n")
    lines = TRAIN.partition("def main():\n")
    inner = "#!/usr/bin/env python\n# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\n\n\ndef main():\n"
    inner += "".join(f"    {line}\n" for line in lines[0].splitlines() if line) + lines[2]
    inner = inner.replace("print(step,", "print(NAME, step,")
    for script in (late, inner):
        (project / "train.py").write_text(script, encoding="latin-1")
        eager = python(project, "train.py")
        assert fix_compile(project, "integrate", "train.py")[0] == 0
        assert python(project, "train.py") == eager
        assert (project / "train.py").read_bytes().splitlines()[0] == script.encode("latin-1").splitlines()[0]
        assert fix_compile(project, "restore")[0] == 0


def test_what_is_set_before_pytorch_is_imported_still_is(project: Path) -> None:
    """The new module is imported above; PyTorch is not, before the script does so."""
    script = TRAIN.replace("import torch\n\nfrom model import Net\n", "import os\nimport sys\n", 1)
    late = '    print("torch" in sys.modules)\n    import torch\n    from model import Net\n    torch.manual_seed(0)'
    (project / "train.py").write_text(script.replace("    torch.manual_seed(0)", late))
    assert fix_compile(project, "integrate", "train.py", "model.py")[0] == 0
    command = [sys.executable, "train.py", "--steps", "1"]
    told = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True).stdout
    assert told.startswith("False\n")
    assert python(project, "train.py", "--compile", "--compile_backend", "eager").endswith("graphs 2\n")


TRAINER = """\
import argparse

import torch

from model import Net


class Meter:
    def state_dict(self):
        return [{"steps": 2}]


class Trainer:
    def __init__(self, args):
        self.args = args
        self.model = Net()
        self.model = self.model.to("cpu")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self):
        for step in range(2):
            loss = self.model(torch.linspace(-1, 1, 32).reshape(4, 8)).square().mean()
            loss.backward()
            self.optimizer.step()
            print(step, loss.item())
        torch.save({"model": self.model.state_dict(), "meter": Meter().state_dict()}, "trained.pt")
        print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])


parser = argparse.ArgumentParser()
Trainer(parser.parse_args()).fit()
"""


def test_a_class_that_is_given_the_arguments(project: Path) -> None:
    """And a checkpoint in which something is no dictionary: it is saved as it is."""
    (project / "train.py").write_text(TRAINER)
    eager = python(project, "train.py")
    saved = (project / "trained.pt").read_bytes()
    status, out, err = fix_compile(project, "integrate", "train.py")
    assert status == 0, out + err
    assert python(project, "train.py") == eager
    assert (project / "trained.pt").read_bytes() == saved
    on = python(project, "train.py", "--compile", "--compile_backend", "eager").splitlines()
    assert on[:-1] == eager.splitlines()[:-1]
    assert on[-1] == "graphs 2"


def test_a_parser_with_parents_and_a_model_in_evaluation(project: Path) -> None:
    """The parser that others hand their arguments to is the one that reads."""
    script = TRAIN.replace("def main():\n    parser =", "def options():\n    parser =")
    script = script.replace("ArgumentParser()", "ArgumentParser(add_help=False)").replace("Net()", "Net().eval()")
    script = script.replace(
        "    args = parser.parse_args()\n",
        "    return parser\n\n\ndef main():\n"
        "    parser = argparse.ArgumentParser(parents=[options()])\n    args = parser.parse_args()\n",
    )
    (project / "train.py").write_text(script)
    eager = python(project, "train.py").splitlines()
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    on = python(project, "train.py", "--compile", "--compile_backend", "eager").splitlines()
    assert on[:-1] == eager[:-1]
    assert on[-1] == "graphs 2"


CONFIGURED = """\
import argparse
import json
from pathlib import Path

import torch

from model import Net

first = parser = argparse.ArgumentParser(add_help=False)
first.add_argument("-c", "--config", default="")
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1)


def options():
    given, rest = first.parse_known_args()
    if given.config:
        parser.set_defaults(**json.loads(Path(given.config).read_text()))
    args = parser.parse_args(rest)
    return args, json.dumps(vars(args))


def main():
    args, text = options()
    model = Net()
    for _ in range(args.steps):
        model(torch.ones(1, 8)).sum().backward()
    print(args.compile_backend if args.steps > 1 else "", end="")
    Path("saved.json").write_text(text)
    print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])


main()
"""


def test_a_configuration_file_that_is_read_first(project: Path) -> None:
    """What it leaves goes to the parser that reads; what is saved loads back the same."""
    script = CONFIGURED.replace("first = parser =", "first =")
    (project / "train.py").write_text(script)
    status, out, err = fix_compile(project, "integrate", "train.py")
    assert status == 0, out + err
    assert "    args, text = options()\n    model = Net()\n    if args.compile:\n" in (project / "train.py").read_text()
    told = python(project, "train.py", "--compile", "--compile_backend", "eager", "--compile_dynamic", "false")
    assert told == "graphs 2\n"
    saved = (project / "saved.json").read_text()
    assert json.loads(saved)["compile_dynamic"] == "false"
    (project / "config.json").write_text(saved)
    assert python(project, "train.py", "--config", "config.json", "--steps", "2") == "eagergraphs 2\n"
    assert json.loads((project / "saved.json").read_text()) == {**json.loads(saved), "steps": 2}


ONE = "    args = parser.parse_args()\n"
REFUSED = {
    "no parser": (
        TRAIN.replace("argparse.ArgumentParser()", "dict()"),
        "train.py: no argparse.ArgumentParser is made here",
    ),
    "two parsers": (
        TRAIN.replace(ONE, ONE + "    other = argparse.ArgumentParser()\n"),
        "train.py:9: one of 2 parsers: which one reads --compile is not known",
    ),
    "commands": (
        TRAIN.replace(ONE, "    parser.add_subparsers()\n" + ONE),
        "train.py:9: this parser has commands of its own",
    ),
    "--compile is there": (
        TRAIN.replace(ONE, '    parser.add_argument("--compile", action="store_true")\n' + ONE),
        "train.py:14: --compile is an option already",
    ),
    "args.compile is there": (
        TRAIN.replace('    model.to("cpu")', "    if args.compile:\n        model.compile()"),
        "train.py:21: `torch.nn.Module.compile` compiles here already",
    ),
    "an option by another name": (
        TRAIN.replace('"--resume", default=""', '"--fast", dest="compile", default=""'),
        "train.py:12: --compile is an option already",
    ),
    "an option in a loop": (
        TRAIN.replace(ONE, '    for name in ("x", "compile-mode"):\n        parser.add_argument(f"--{name}")\n' + ONE),
        "train.py:15: which option is added here is not known",
    ),
    "an option from a list": (
        TRAIN.replace("def main", 'MORE = ["compile", "y"]\n\n\ndef main').replace(
            ONE, '    add = parser.add_argument\n    for name in MORE:\n        add("--" + name)\n' + ONE
        ),
        "train.py:19: which option is added here is not known",
    ),
    "an option of any name": (
        TRAIN.replace("def main():", "def main(name='x'):").replace(
            ONE, '    parser.add_argument("--" + name)\n' + ONE
        ),
        "train.py:14: which option is added here is not known",
    ),
    "no model": (TRAIN.replace("Net()", "make()").replace("model.", "what."), "train.py: no model is built"),
    "built where args are not": (
        TRAIN.replace(ONE, ONE + "    run(args.steps)\n\n\ndef run(steps):\n").replace("args.steps)", "steps)", 2),
        "train.py:24: `model` is ready here, and what the parser has read is not at hand: hand it over",
    ),
    "wrapped where it is built": (
        TRAIN.replace("model = Net()", "model = torch.nn.parallel.DistributedDataParallel(Net())"),
        "train.py:17: `model` is built, wrapped or run in one statement: give it statements of their own",
    ),
    "several on a line": (
        TRAIN.replace('    model.to("cpu")', '    model.to("cpu"); print()'),
        "train.py:20: this line holds several statements",
    ),
    "the name is taken": (
        TRAIN.replace("import torch\n", "import torch\nimport json as compile_utils\n"),
        "train.py: `compile_utils` is a name here already: choose with --module",
    ),
    "every option is handed over by name": (
        TRAIN.replace("Net()", "Net(**vars(args))"),
        "train.py:17: `Net` is given every option by its name, and would get the new ones too",
    ),
    "the name is another one's": (
        TRAIN.replace("    if args.resume:\n", "    args = vars(args)\n    if args:\n"),
        "train.py:21: `model` is ready here, and what the parser has read is not at hand",
    ),
    "taken from a checkpoint": (
        TRAIN.replace("    if args.resume:\n", '    if args.resume:\n        args = torch.load(args.resume)["args"]\n'),
        "train.py:21: `model` is ready here, and what the parser has read is not at hand",
    ),
    "half of it": (
        TRAIN.replace(ONE, "    add_compile_arguments(parser)\n" + ONE),
        "train.py:14: `add_compile_arguments` is called here and `compile_model` nowhere",
    ),
    "a configurator": (
        'compile = True\nexec(open("configurator.py").read())\nimport torch\nfrom model import Net\nmodel = Net()\n'
        "if compile:\n    model = torch.compile(model)\n",
        "train.py: no argparse.ArgumentParser is made here",
    ),
}


def test_options_of_other_names(project: Path) -> None:
    script = TRAIN.replace(ONE, '    add = parser.add_argument\n    add("--x")\n    add("--y")\n' + ONE)
    script = script.replace("def main", "def layer(f):\n    f = partial(f, 1)\n    return f(2)\n\n\ndef main")
    script = script.replace("import argparse\n", "import argparse\nfrom functools import partial\n")
    (project / "train.py").write_text(script)
    status, out, err = fix_compile(project, "integrate", "train.py")
    assert status == 0, out + err
    assert (project / "train.py").read_text().count("add_compile_arguments") == 1
    assert python(project, "train.py", "--x", "1", "--compile", "--compile_backend", "eager").endswith("graphs 2\n")


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_integrated_is_told_and_left_alone(name: str, project: Path) -> None:
    script, message = REFUSED[name]
    (project / "train.py").write_text(script)
    before = contents(project)
    for dry in ((), ("--dry-run",)):
        status, out, err = fix_compile(project, "integrate", *dry, "train.py")
        assert (status, err) == (1, "nothing was changed\n"), out
        assert message in out
        assert contents(project) == before
    assert not (project / ".fix-compile").exists()


def test_files_that_cannot_be_read(project: Path) -> None:
    (project / "train.py").write_text(TRAIN + "def (\n")
    status, out, err = fix_compile(project, "integrate", "train.py")
    assert (status, out) == (2, "")
    assert "train.py: error: line 34: is not valid Python" in err
    status, _, err = fix_compile(project, "integrate", "nowhere.py")
    assert status == 2
    assert "nowhere.py: error: no such file or folder" in err
    status, _, err = fix_compile(project, "integrate", ".")
    assert status == 2
    assert ".: error: is not a regular file" in err


def test_a_module_of_that_name_is_left_alone(project: Path) -> None:
    (project / "compile_utils.py").write_text("mine = 1\n")
    before = contents(project)
    status, out, _ = fix_compile(project, "integrate", "train.py")
    assert status == 1
    assert (
        out
        == "compile_utils.py: is there already, and is another one: choose a name for the new module with --module\n"
    )
    assert contents(project) == before
    assert fix_compile(project, "integrate", "--module", "compiling", "train.py")[0] == 0
    assert python(project, "train.py", "--compile", "--compile_backend", "eager").endswith("graphs 2\n")
    assert (project / "compile_utils.py").read_text() == "mine = 1\n"


def test_the_model_is_named_where_there_are_several(project: Path) -> None:
    script = (
        "import argparse\nimport torch\nfrom model import Net\n\nparser = argparse.ArgumentParser()\n"
        "args = parser.parse_args()\nfirst = Net()\nsecond = Net(16)\n"
        "print(first(torch.ones(1, 8)).shape, second(torch.ones(1, 16)).shape)\n"
    )
    (project / "train.py").write_text(script)
    status, out, _ = fix_compile(project, "integrate", "train.py", "model.py")
    assert status == 1
    assert "train.py:7: `first` may be the model: name the one to compile with --model\n" in out
    assert fix_compile(project, "integrate", "--model", "second", "train.py", "model.py")[0] == 0
    text = (project / "train.py").read_text()
    assert "second = Net(16)\nif args.compile:\n    compile_utils.compile_model(second, args)\nprint" in text
    assert fix_compile(project, "restore")[0] == 0
    status, out, _ = fix_compile(project, "integrate", "--model", "third", "train.py", "model.py")
    assert status == 1
    assert "no model is called `third` (there are first, second)" in out


def test_an_edited_new_module_is_kept_by_restore(project: Path) -> None:
    before = contents(project)
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    with (project / "compile_utils.py").open("a") as file:
        file.write("# mine\n")
    status, _, err = fix_compile(project, "restore")
    assert status == 2
    assert "compile_utils.py: error: is new and was edited since; --force removes it" in err
    assert (project / "train.py").read_bytes() == before["train.py"]
    assert (project / "compile_utils.py").exists()
    assert fix_compile(project, "restore", "--force")[0] == 0
    assert contents(project) == before
    [kept] = (project / ".fix-compile").rglob("*.edited-*")
    assert kept.read_text().endswith("# mine\n")


def test_nothing_is_written_where_one_file_cannot_be(project: Path) -> None:
    before = contents(project)
    (project / "train.py").chmod(0o444)
    status, _, err = fix_compile(project, "integrate", "train.py")
    assert status == 2
    assert err.splitlines()[-1] == "nothing was changed"
    assert contents(project) == before
