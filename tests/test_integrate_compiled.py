"""`fix-compile integrate` on scripts that compile already: an option that makes them excludes what is new."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_integrate import MODEL, TRAIN, contents, fix_compile, python

READY = '    model.to("cpu")\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n")
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def flagged(use: str) -> str:
    option = '    parser.add_argument("--fast", action="store_true")\n    args = parser.parse_args()\n'
    return TRAIN.replace("    args = parser.parse_args()\n", option).replace(READY, f"{READY}{use}")


@pytest.mark.parametrize(
    "use",
    [
        "    if args.fast:\n        model = torch.compile(model, backend='eager')\n",
        "    fast = args.fast and torch.cuda.is_available() in (True, False)\n"
        "    if fast:\n        model = torch.compile(model, backend='eager')\n",
        "    model = torch.compile(model, backend='eager') if args.fast else model\n",
    ],
)
def test_an_option_that_compiles_excludes_the_new_one(use: str, project: Path) -> None:
    (project / "train.py").write_text(flagged(use))
    eager = python(project, "train.py").splitlines()
    fast = python(project, "train.py", "--fast").splitlines()
    status, out, err = fix_compile(project, "integrate", "train.py")
    assert status == 0, out + err
    assert "--fast compiles here: with --compile it is an error\n" in out
    assert '_OTHER_OPTIONS = ("torch_compile", "fast")\n' in (project / "compile_utils.py").read_text()
    assert python(project, "train.py").splitlines() == eager
    assert python(project, "train.py", "--fast").splitlines() == fast
    assert fast[-1] != "graphs 0" == eager[-1]
    on = python(project, "train.py", "--compile", "--compile_backend", "eager").splitlines()
    assert (on[:-1], on[-1]) == (eager[:-1], "graphs 2")
    told = python(project, "train.py", "--fast", "--compile", fails=True)
    assert "ValueError: --compile and --fast exclude each other" in told
    assert "maybe_uncompile" not in (project / "train.py").read_text()  # what --fast saves loads as it did


def test_a_model_that_is_compiled_is_refused_where_it_runs(project: Path) -> None:
    """As one that the dynamo plugin of accelerate has wrapped in `prepare`."""
    (project / "train.py").write_text(TRAIN)
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    program = (
        "import argparse, torch, compile_utils\nfrom model import Net\nparser = argparse.ArgumentParser()\n"
        "compile_utils.add_compile_arguments(parser)\nargs = parser.parse_args(['--compile'])\n"
        "compile_utils.compile_model(torch.compile(Net()), args)\n"
    )
    assert "ValueError: --compile: the model is compiled already" in python(project, "-c", program, fails=True)


REFUSED = {
    "a statement": (
        TRAIN.replace(READY, READY + "    model = torch.compile(model)\n"),
        "train.py:21: `torch.compile` compiles here already",
    ),
    "in place": (
        TRAIN.replace(READY, READY + "    model.compile()\n"),
        "train.py:21: `torch.nn.Module.compile` compiles here already",
    ),
    "as a decorator": (
        TRAIN.replace("def main", "@torch.compile\ndef f(x):\n    return x\n\n\ndef main"),
        "train.py:8: `torch.compile` compiles here already",
    ),
    "a parameter says so": (
        TRAIN.replace("def main():", "def main(fast=True):").replace(
            READY, f"{READY}    if fast:\n        model = torch.compile(model)\n"
        ),
        "train.py:22: `torch.compile` compiles here already",
    ),
    "by a library": (
        TRAIN.replace("import torch\n", "import torch\nfrom accelerate import Accelerator\n").replace(
            READY, f'{READY}    Accelerator(dynamo_backend="inductor")\n'
        ),
        "train.py:22: `Accelerator` compiles here already",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_compiles_in_any_case_is_told_and_left_alone(name: str, project: Path) -> None:
    script, message = REFUSED[name]
    (project / "train.py").write_text(script)
    before = contents(project)
    status, out, err = fix_compile(project, "integrate", "train.py")
    assert (status, err) == (1, "nothing was changed\n"), out
    assert message in out
    assert contents(project) == before


def test_a_library_that_an_option_tells_to_compile(project: Path) -> None:
    script = flagged(
        '    backend = "NO"\n    if args.fast:\n        backend = "inductor"\n    Accelerator(dynamo_backend=backend)\n'
    ).replace("import torch\n", "import torch\nfrom accelerate import Accelerator\n")
    (project / "train.py").write_text(script)
    status, out, err = fix_compile(project, "integrate", "--dry-run", "train.py")
    assert status == 0, out + err
    assert "train.py:26: --fast compiles here: with --compile it is an error\n" in err
