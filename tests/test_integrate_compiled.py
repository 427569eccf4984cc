"""`fix-compile integrate` on scripts that compile already: what they did stays the default, or excludes what is new."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_integrate import MODEL, TRAIN, contents, fix_compile, python

TOLD = (
    "import runpy, sys, torch\n"
    "real = torch.compile\n"
    "def compile(model=None, **options):\n"
    "    print('compiled', type(model).__name__, sorted(options.items(), key=str))\n"
    "    return real(model, backend='eager')\n"
    "torch.compile = compile\n"
    "torch.nn.Module.compile = lambda self, **options: [compile(self, **options), None][1]\n"
    "runpy.run_path('train.py', run_name='__main__')\n"
)
READY = '    model.to("cpu")\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n")
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def usual(**other: object) -> str:
    return str(sorted({"backend": "inductor", "dynamic": None, "fullgraph": False, **other}.items(), key=str))


@pytest.mark.parametrize(
    ("line", "new", "defaults", "was"),
    [
        (
            "model = torch.compile(model)",
            "    if args.compile:\n        model = torch.compile(model, **compile_utils.compile_options(args))\n",
            "compile=True",
            {},
        ),
        (
            'model = torch.compile(model, mode="reduce-overhead", dynamic=True, fullgraph=True)',
            "    if args.compile:\n        model = torch.compile(model, **compile_utils.compile_options(args))\n",
            'compile=True, compile_mode="reduce-overhead", compile_dynamic="true", compile_fullgraph=True',
            {"mode": "reduce-overhead", "dynamic": True, "fullgraph": True},
        ),
        (
            'model.compile(backend="aot_eager", dynamic=False)',
            "    if args.compile:\n        model.compile(**compile_utils.compile_options(args))\n",
            'compile=True, compile_backend="aot_eager", compile_dynamic="false"',
            {"backend": "aot_eager", "dynamic": False},
        ),
        (
            "for block in model.blocks:\n        block.compile(dynamic=True)",
            "        if args.compile:\n            block.compile(**compile_utils.compile_options(args))\n",
            'compile=True, compile_dynamic="true"',
            {"dynamic": True},
        ),
        (
            'if hasattr(torch, "compile"):\n        model = torch.compile(model, options={"max_autotune": False})',
            "        if args.compile:\n            model = torch.compile(",
            "compile=True",
            {"options": {"max_autotune": False}},
        ),
        (
            "fast = torch.compile(model)\n    model = fast",
            "    fast = torch.compile(model, **compile_utils.compile_options(args)) if args.compile else model\n",
            "compile=True",
            {},
        ),
        (
            "model = torch.compile(model)\n    model = Net()\n    model = torch.compile(model)",
            "model = Net()\n    if args.compile:\n",
            "compile=True",
            {},
        ),
        (
            "if torch.cuda.is_available():\n        model.compile()\n    else:\n        model = torch.compile(model)",
            "        if args.compile:\n            model = torch.compile(model, **compile_utils",
            "compile=True",
            {},
        ),
    ],
    ids=["plain", "options", "in place", "blocks", "asked for", "another name", "another model", "either way"],
)
def test_what_a_script_does_stays_the_default(
    line: str, new: str, defaults: str, was: dict[str, object], project: Path
) -> None:
    (project / "train.py").write_text(TRAIN.replace(READY, f"{READY}    {line}\n"))
    before = contents(project)
    original = python(project, "-c", TOLD)
    assert original.count("compiled") == (3 if "block" in line else line.count("model = torch.compile") or 1)
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    text = (project / "train.py").read_text()
    assert new in text
    plain = " ".join(text.split()).replace("( ", "(").replace(", )", ")")
    assert f"compile_utils.add_compile_arguments(parser, {defaults}) " in plain
    assert "maybe_uncompile" not in text  # checkpoints have the names that they had

    told = [line for line in python(project, "-c", TOLD).splitlines() if "compiled" not in line]
    assert told == [line for line in original.splitlines() if "compiled" not in line]
    by_default = [line for line in python(project, "-c", TOLD).splitlines() if "compiled" in line]
    assert {line.partition(" [")[2] for line in by_default} == {usual(**was)[1:]}
    assert len(by_default) == original.count("compiled")
    off = python(project, "-c", TOLD, "--no-compile")
    assert "compiled" not in off
    assert off.splitlines()[:2] == [line for line in original.splitlines() if "compiled" not in line][:2]
    other = python(project, "-c", TOLD, "--compile_backend", "eager", "--compile_dynamic", "auto")
    assert usual(**{**was, "backend": "eager", "dynamic": None}) in other
    assert "--no-compile" in python(project, "train.py", "--help")
    assert fix_compile(project, "integrate", "train.py") == (0, "", "integrated already: nothing to do\n")
    for path in [*project.glob("*.pt")]:
        path.unlink()
    assert fix_compile(project, "restore")[0] == 0
    assert contents(project) == before


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


LINE = "    model = torch.compile(model)\n"
REFUSED = {
    "as a decorator": (
        TRAIN.replace("def main", "@torch.compile\ndef f(x):\n    return x\n\n\ndef main"),
        "train.py:8: `torch.compile` compiles here already",
    ),
    "the part of a compiled model": (
        TRAIN.replace(READY, READY + LINE).replace('"model": model.state', '"model": model._orig_mod.state'),
        "train.py:29: `_orig_mod` is asked for here: where --no-compile is given there is none",
    ),
    "in different ways": (
        TRAIN.replace(READY, READY + LINE + '    f = torch.compile(main, mode="max-autotune")\n'),
        "train.py:21: `torch.compile` compiles here with other arguments than elsewhere",
    ),
    "with a backend of its own": (
        TRAIN.replace(READY, READY + "    model = torch.compile(model, backend=print)\n"),
        "train.py:21: `torch.compile` is given backend=print, which is no default",
    ),
    "a parameter says so": (
        TRAIN.replace("def main():", "def main(fast=True):").replace(READY, f"{READY}    if fast:\n    {LINE}"),
        "train.py:22: `torch.compile` compiles here if `fast`: whether an option says so is not known",
    ),
    "within an expression": (
        TRAIN.replace("model = Net()", "model = torch.compile(Net())"),
        "train.py:17: this compiles within another expression",
    ),
    "twice": (
        TRAIN.replace(READY, READY + LINE + LINE),
        "train.py:22: `torch.compile` compiles again what is compiled in line 21: keep one of the two",
    ),
    "twice, as it is built": (
        TRAIN.replace("model = Net()", "model = torch.compile(Net())").replace(READY, READY + LINE),
        "train.py:21: `torch.compile` compiles again what is compiled in line 17",
    ),
    "twice, in place": (
        TRAIN.replace(READY, READY + 2 * "    model.compile()\n"),
        "train.py:22: `torch.nn.Module.compile` compiles again what is compiled in line 21",
    ),
    "in place, and wrapped": (
        TRAIN.replace(READY, READY + "    model.compile()\n" + LINE),
        "train.py:22: `torch.compile` compiles again what is compiled in line 21",
    ),
    "where args are not": (
        TRAIN.replace("    optimizer =", "    run(model)\n    optimizer =").replace(
            "def main", "def run(model):\n    model = torch.compile(model)\n\n\ndef main"
        ),
        "train.py:9: `torch.compile` compiles here already, and what the parser has read is not at hand",
    ),
    "by a library": (
        TRAIN.replace("import torch\n", "import torch\nfrom accelerate import Accelerator\n").replace(
            READY, f'{READY}    Accelerator(dynamo_backend="inductor")\n'
        ),
        "train.py:22: `Accelerator` compiles here already",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_a_default_is_told_and_left_alone(name: str, project: Path) -> None:
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
