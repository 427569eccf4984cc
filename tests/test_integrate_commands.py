"""`fix-compile integrate` on scripts of click and typer: patched, and run as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts_run import run
from tests.test_integrate import MODEL, contents, fix_compile, python

BODY = """\
    torch.manual_seed(0)
    model = Net()
    model.to("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        loss = model(torch.linspace(-1, 1, 32).reshape(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(step, loss.item())
    torch.save(model.state_dict(), out)
    print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])
"""
CLICK = f"""\
import click
import torch

from model import Net


@click.command()
@click.option("--steps", type=int, default=2, help="how many")
@click.option("--blocks_to_swap", default=0)
@click.argument("out", default="model.pt")
def main(steps, blocks_to_swap, out):
    '''Train it.'''
{BODY}

if __name__ == "__main__":
    main()
"""
TYPER = f"""\
from pathlib import Path
from typing import Annotated

import torch
import typer

from model import Net

app = typer.Typer()


@app.command()
def main(
    steps: Annotated[int, typer.Option("--steps", help="how many")] = 2,
    blocks_to_swap: int = typer.Option(0, "--blocks_to_swap"),
    out: Path = typer.Argument("model.pt"),
):
    '''Train it.'''
{BODY}

if __name__ == "__main__":
    app()
"""
NAMES = ("", "_backend", "_mode", "_dynamic", "_fullgraph", "_cache_size_limit")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n")
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def helped(project: Path, *command: str) -> str:
    return python(project, "train.py", *command, "--help", COLUMNS="200", TERM="dumb", NO_COLOR="1")


def check(project: Path, script: str, command: tuple[str, ...] = ()) -> str:
    """The text of ``script`` when it is integrated; it runs off, on, and comes back. ``command``: first words."""
    (project / "train.py").write_text(script)
    before = contents(project)
    eager = python(project, "train.py", *command).splitlines()
    status, out, err = fix_compile(project, "integrate", "train.py")
    assert status == 0, out + err
    assert "compile_utils.py: written" in out
    text = (project / "train.py").read_text()
    told = helped(project, *command)
    assert "Train it." in told
    for name in NAMES:
        assert f"--compile{name} " in told, told
    assert "reduce-overhead" in told
    assert python(project, "train.py", *command).splitlines() == eager
    off = (project / "model.pt").read_bytes()
    on = python(project, "train.py", *command, "--compile", "--compile_backend", "eager").splitlines()
    assert on[:-1] == eager[:-1]
    assert (eager[-1], on[-1]) == ("graphs 0", "graphs 2")
    assert (project / "model.pt").read_bytes() == off
    options = ("--compile_mode", "max-autotune-no-cudagraphs", "--compile_dynamic", "false", "--compile_fullgraph")
    script = (
        "import runpy, sys, torch\n"
        "def compile(function=None, **options):\n"
        "    print(sorted(options.items()))\n"
        "    return function\n"
        "torch.compile = compile\n"
        "runpy.run_path('train.py', run_name='__main__')\n"
    )
    told = python(project, "-c", script, *command, "--compile", *options, "--steps", "0")
    mode = "max-autotune-no-cudagraphs"
    assert f"[('backend', 'inductor'), ('dynamic', False), ('fullgraph', True), ('mode', {mode!r})]\n" in told
    told = python(project, "-c", script, *command, "--compile", *options, "--blocks_to_swap", "1", "--steps", "0")
    assert "('fullgraph', False)" in told
    _, bad, _ = run(project, ("train.py", *command, "--compile_mode", "fast"), {})
    assert "graphs" not in bad
    assert fix_compile(project, "integrate", "train.py") == (0, "", "integrated already: nothing to do\n")
    (project / "model.pt").unlink()
    assert fix_compile(project, "restore")[0] == 0
    assert contents(project) == before
    return text


def test_a_command_of_click(project: Path) -> None:
    text = check(project, CLICK)
    assert (
        '@click.argument("out", default="model.pt")\n@compile_utils.add_compile_arguments\n'
        "def main(steps, blocks_to_swap, out):\n"
    ) in text
    assert (
        '    model.to("cpu")\n    if compile_utils.compile_args().compile:\n'
        "        compile_utils.compile_model(model, compile_utils.compile_args())\n"
    ) in text
    assert "torch.save(compile_utils.maybe_uncompile_state_dict(model.state_dict()), out)" in text


@pytest.mark.parametrize(
    ("old", "new", "header"),
    [
        # all that it is given goes on as one dictionary, without what is new
        (
            "def main(steps, blocks_to_swap, out):\n    '''Train it.'''\n",
            "def main(**kwargs):\n    '''Train it.'''\n    print(sorted(kwargs))\n"
            "    steps, out = kwargs['steps'], kwargs['out']\n",
            "def main(**kwargs):",
        ),
        ("(steps, blocks_to_swap, out)", "(*, steps, out, blocks_to_swap)", "out, blocks_to_swap):"),
        (
            "def main(steps,",
            "@torch.inference_mode(False)\n@click.pass_context\ndef main(context, steps,",
            "@click.pass_context\n@compile_utils.add_compile_arguments\ndef main(context, steps,",
        ),
        ("import click\n", "import rich_click as click\n", None),
        (
            "import click\n",
            "from click import argument, command, option\n",
            "@compile_utils.add_compile_arguments\ndef",
        ),
        ("    main()\n", "    main(standalone_mode=False)\n", "@compile_utils.add_compile_arguments\ndef"),
    ],
    ids=["kwargs", "keywords", "decorators", "rich_click", "names", "called"],
)
def test_other_spellings_of_click(old: str, new: str, header: str | None, project: Path) -> None:
    if "rich_click" in new:
        pytest.importorskip("rich_click")
    script = CLICK.replace(old, new)
    if "from click" in new:
        script = script.replace("@click.", "@")
    assert script != CLICK
    assert (header or "@compile_utils") in check(project, script)


GROUP = f"""\
import click
import torch

from model import Net


@click.group()
@click.option("--verbose", is_flag=True)
@click.pass_context
def cli(context, verbose):
    context.obj = verbose


@cli.command()
@click.option("--compile", is_flag=True)
def show(compile):
    '''Show it.'''
    print("shown", compile)


def common(function):
    function = click.option("--blocks_to_swap", default=0)(function)
    return click.option("--steps", type=int, default=2)(function)


@cli.command("fit")
@common
@click.option("--out", default="model.pt")
def train(steps, blocks_to_swap, out):
    '''Train it.'''
{BODY}

if __name__ == "__main__":
    cli()
"""


def test_a_group_of_click(project: Path) -> None:
    """The command that runs a model gets them, and another one keeps its own."""
    text = check(project, GROUP, ("fit",))
    assert "@compile_utils.add_compile_arguments\ndef train(steps, blocks_to_swap, out):\n" in text
    assert text.count("add_compile_arguments") == 1


REFUSED = {
    "an option": (
        CLICK.replace('"--blocks_to_swap"', '"--compile/--no-compile", "blocks_to_swap"'),
        "train.py:9: --compile is an option already",
    ),
    "a name of an option": (
        CLICK.replace('"--blocks_to_swap", default=0', '"--fast", "compile", default=0').replace("blocks_to", "x"),
        "train.py:9: --compile is an option already",
    ),
    "a parameter": (CLICK.replace("blocks_to_swap", "compile_mode"), "train.py:9: --compile_mode is an option already"),
    "another decorator": (
        CLICK.replace('@click.argument("out"', '@other\n@click.argument("out"'),
        "train.py:10: what `other` gives may not take --compile, ",
    ),
    "a decorator in the file": (
        CLICK.replace('@click.argument("out"', '@other\n@click.argument("out"').replace(
            "@click.command",
            "def other(f):\n    def g(steps, out, blocks_to_swap):\n        f(steps, 0, out)\n    return g\n\n\n"
            "@click.command",
        ),
        "train.py:16: what `other` gives may not take --compile, ",
    ),
    "a parser as well": (
        CLICK.replace("    main()", "    import argparse\n    parser = argparse.ArgumentParser()\n    main()"),
        "train.py:29: a parser besides a command",
    ),
    "built elsewhere": (
        CLICK.replace("    torch.manual_seed(0)\n", "    run(steps, out)\n\n\ndef run(steps, out):\n"),
        "train.py:18: `model` is ready here, and what the command is given is not at hand",
    ),
    "compiles": (
        CLICK.replace('model.to("cpu")', "model = torch.compile(model)"),
        "train.py:15: `torch.compile` compiles here already",
    ),
    "asynchronous": (CLICK.replace("def main", "async def main"), "train.py:11: `main` is asynchronous"),
}


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


def test_commands_in_other_files(project: Path) -> None:
    (project / "options.py").write_text("import click\n\n\n@click.group()\ndef cli():\n    pass\n")
    script = GROUP.replace("@cli.command()", "@click.command()")
    head, _, tail = script.partition("@click.group()")
    script = (
        head.replace("import torch\n", "import torch\nfrom options import cli\n") + tail[tail.index("def common") :]
    )
    (project / "train.py").write_text(script)
    status, out, err = fix_compile(project, "integrate", "train.py", "options.py")
    assert status == 0, out + err
    assert python(project, "train.py", "fit", "--compile", "--compile_backend", "eager").endswith("graphs 2\n")
    assert fix_compile(project, "restore")[0] == 0
    status, out, err = fix_compile(project, "integrate", "train.py")
    assert status == 0, out + err


def test_a_command_of_typer_is_told_what_it_needs(project: Path) -> None:
    (project / "run.py").write_text(TYPER)
    status, out, _ = fix_compile(project, "integrate", "run.py")
    assert status == 1
    assert "as of typer, fire or jsonargparse, needs settings of its own (compile, compile_backend" in out
