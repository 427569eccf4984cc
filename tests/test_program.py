"""What a command line runs, and that it runs in this process as in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from patcher.run.program import Program, ProgramError, parsed

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text("print('trains')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "kind", "name", "arguments"),
    [
        ("python train.py --steps 2", "file", "train.py", ["--steps", "2"]),
        ("python3.11 -u -X dev train.py", "file", "train.py", []),
        ("python -m pkg.train -c 3", "module", "pkg.train", ["-c", "3"]),
        ("python -c pass --x", "code", "pass", ["--x"]),
        ("uv run python train.py", "file", "train.py", []),
        ("poetry run torchrun --nproc_per_node 1 train.py", "torchrun", "", ["--nproc_per_node", "1", "train.py"]),
        ("python -m torch.distributed.run train.py", "torchrun", "", ["train.py"]),
        ("accelerate launch --num_processes 1 train.py", "accelerate", "", ["--num_processes", "1", "train.py"]),
        ("./train.py 1", "file", "./train.py", ["1"]),
    ],
)
def test_a_command_line_is_one_program(folder: Path, command: str, kind: str, name: str, arguments: list[str]) -> None:
    found = parsed(command.split())
    assert (found.kind, found.name, list(found.arguments)) == (kind, name, arguments)
    assert Program.of(json.loads(json.dumps(found.json()))) == found


def test_variables_in_front_of_a_command_are_set_for_it(folder: Path) -> None:
    assert parsed(["env", "A=1", "B=2", "python", "train.py"]).variables == (("A", "1"), ("B", "2"))


def test_a_script_with_an_interpreter_in_its_first_line_runs_under_that(folder: Path) -> None:
    script = folder / "tool"
    script.write_text(f"#!{sys.executable}\nprint()\n")
    script.chmod(0o755)
    found = parsed([str(script), "x"])
    assert (found.kind, found.name, found.python) == ("file", str(script), sys.executable)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ([], "no command"),
        (["python", "missing.py"], "missing.py: no such file"),
        (["no-such-command"], "no such command"),
        (["ls"], "is no Python program"),
        (["python"], "reads from the terminal"),
        (["python", "-m"], "needs a value"),
    ],
)
def test_what_is_no_python_program_is_told(folder: Path, command: list[str], why: str) -> None:
    with pytest.raises(ProgramError, match=why):
        parsed(command)


@pytest.mark.parametrize(
    "command",
    ["python notes.ipynb", "jupyter nbconvert --execute notes.ipynb", "papermill notes.ipynb out.ipynb -p a 1"],
)
def test_a_notebook_is_named_as_not_supported(folder: Path, command: str) -> None:
    (folder / "notes.ipynb").write_text("{}")
    with pytest.raises(ProgramError, match=r"notes.ipynb: notebooks are not supported; .* nbconvert --to script"):
        parsed(command.split())


TELLS = """
import json, os, sys
print(json.dumps({"name": __name__, "argv": sys.argv, "first": sys.path[0], "file": globals().get("__file__"),
                  "main": sys.modules["__main__"].__dict__ is globals(), "variable": os.environ.get("A")}))
"""
STARTS = """
import sys
sys.path.insert(0, {root!r})
from patcher.run.program import parsed, start
sys.path.remove({root!r})
start(parsed({command!r}))
"""


@pytest.mark.parametrize("command", ["python tells.py a b", "python -m tells a", "A=2 python sub/tells.py"])
def test_a_program_sees_what_it_would_see_by_itself(folder: Path, command: str) -> None:
    (folder / "sub").mkdir()
    for place in (folder, folder / "sub"):
        (place / "tells.py").write_text(TELLS)
    words = command.split()
    here = subprocess.run(
        [sys.executable, "-c", STARTS.format(root=str(ROOT), command=words)], capture_output=True, text=True, check=True
    )
    plain = [sys.executable if word == "python" else word for word in words]
    alone = subprocess.run(["env", *plain], capture_output=True, text=True, check=True)
    told, expected = json.loads(here.stdout), json.loads(alone.stdout)
    for seen in (told, expected):  # both are the same file
        seen["file"] = str(Path(seen["file"]).resolve())
        seen["argv"][0] = Path(seen["argv"][0]).name.removesuffix(".py")
    assert told == expected


def test_what_comes_on_standard_input_is_read_by_each_process(folder: Path) -> None:
    (folder / "adds.py").write_text("print(int(input()) + int(input()))\n")
    (folder / "given").write_text("2\n3\n")
    told = json.dumps(replace(parsed(["python", "adds.py"]), stdin=str(folder / "given")).json())
    code = f"from patcher.run.program import *\nstart(Program.of({told}))"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input="",
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.stdout == "5\n", done.stderr
