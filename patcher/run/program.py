"""Run a command line's Python program in this process, as its own process would. Standard library only."""

from __future__ import annotations

import importlib.machinery
import os
import re
import runpy
import shlex
import shutil
import socket
import sys
import types
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

_PYTHON = re.compile(r"(?:python|pypy)(?:\d+(?:\.\d+)?)?t?$")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_RUNNERS = {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("pdm", "run")}
_OF_NOTEBOOKS = ("jupyter", "jupyter-nbconvert", "jupyter-execute", "papermill", "ipython")
_TAKES_VALUE = ("-X", "-W", "--check-hash-based-pycs")
_LAUNCHERS = {
    "torchrun": "torchrun",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
}


class ProgramError(Exception):
    """A command that is no Python program; the message is one line."""


@dataclass(frozen=True)
class Program:
    """One Python program. ``kind``: what ``name`` is; ``variables``: set for it alone.

    ``python``: the interpreter that the command names; "" when it names none. ``stdin``: the file that holds what it
    reads from standard input, and ``stdin``.now the pipe that brings it first; "" where it is given nothing.
    """

    kind: Literal["file", "module", "code", "torchrun", "accelerate"]
    name: str
    arguments: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    python: str = ""
    stdin: str = ""

    def json(self) -> dict[str, Any]:
        """As a value for ``of``."""
        return {**asdict(self), "variables": dict(self.variables)}

    @staticmethod
    def of(told: dict[str, Any]) -> Program:
        """The reverse of ``json``."""
        return Program(**{**told, "arguments": tuple(told["arguments"]), "variables": tuple(told["variables"].items())})


def no_notebook(file: str) -> str:
    """Why a notebook is not worked on; "" for what is none."""
    name = file.partition(".ipynb:")[0].removesuffix(".ipynb")
    if name == file:
        return ""
    return (
        f"{name}.ipynb: notebooks are not supported; make a program of it: jupyter nbconvert --to script {name}.ipynb"
    )


def parsed(command: Sequence[str]) -> Program:
    """Return the program that a command line runs. Raises ``ProgramError``."""
    words, variables = list(command), dict[str, str]()
    if words[:1] == ["env"]:
        del words[0]
    while words and _ASSIGNMENT.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    if tuple(words[:2]) in _RUNNERS:
        del words[:2]
    if not words:
        raise ProgramError("no command is given after --")
    found = _of_words(words)
    return replace(found, variables=(*variables.items(), *found.variables))


def _of_words(words: list[str]) -> Program:
    first, rest = words[0], words[1:]
    name = os.path.basename(first)
    if _PYTHON.match(name):
        return replace(_of_python(rest), python=shutil.which(first) or first)
    if name == "torchrun":
        return Program("torchrun", "", tuple(rest), python=_python_of(shutil.which(first)))
    if name == "accelerate" and rest[:1] == ["launch"]:
        return Program("accelerate", "", tuple(rest[1:]), python=_python_of(shutil.which(first)))
    if name in _OF_NOTEBOOKS and (why := next(filter(None, map(no_notebook, rest)), "")):
        raise ProgramError(why)
    if first.endswith(".py") and os.path.isfile(first):
        return Program("file", first, tuple(rest))
    file = shutil.which(first)
    if file is None:
        raise ProgramError(f"{first}: no such command; give the command that starts your program: -- python train.py")
    python = _python_of(file)
    if not python:
        raise ProgramError(f"{first} is no Python program; give the Python command that it runs: -- python train.py")
    return Program("file", file, tuple(rest), python=python)


def _of_python(words: list[str]) -> Program:
    """The program of an interpreter's own arguments."""
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word in ("-m", "-c"):
            if not words:
                raise ProgramError(f"python {word} needs a value")
            name = words.pop(0)
            if word == "-m" and name in _LAUNCHERS:
                kind: Any = _LAUNCHERS[name]
                return Program(kind, "", tuple(words))
            return Program("module" if word == "-m" else "code", name, tuple(words))
        if word in _TAKES_VALUE:
            words = words[1:]
    if not words or words[0] == "-":
        raise ProgramError("python without a program reads from the terminal; name a file or a module")
    if not os.path.isfile(words[0]):
        raise ProgramError(f"{words[0]}: no such file")
    if why := no_notebook(words[0]):
        raise ProgramError(why)
    return Program("file", words[0], tuple(words[1:]))


def _python_of(file: str | None) -> str:
    """The interpreter in the first line of a script; "" when there is none."""
    if file is None:
        return ""
    try:
        with open(file, "rb") as stream:
            first = stream.readline(1000)
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = shlex.split(first[2:].decode("utf-8", "replace"))
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    named = words[0] if words else ""
    if not _PYTHON.match(os.path.basename(named)):
        return ""
    return shutil.which(named) or named


def start(program: Program) -> None:
    """Run the program until it ends. What it raises is raised, ``SystemExit`` too."""
    os.environ.update(program.variables)
    if program.stdin:
        first = os.path.exists(f"{program.stdin}.now")
        os.dup2(os.open(f"{program.stdin}.now" if first else program.stdin, os.O_RDONLY), 0)
        if first:
            os.unlink(f"{program.stdin}.now")
    if program.kind == "torchrun":
        start(_without_torchrun(program))
    elif program.kind == "accelerate":
        start(_without_accelerate(program))
    elif program.kind == "module":
        sys.path.insert(0, os.getcwd())
        sys.argv = [program.name, *program.arguments]
        sys.modules["__main__"] = types.ModuleType("__main__")
        runpy.run_module(program.name, run_name="__main__", alter_sys=True)
    else:
        _run_main(program)


def _run_main(program: Program) -> None:
    """Run a file, or a text, as the main module; text that the harness serves in the place of the file counts."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    if program.kind == "code":
        sys.path.insert(0, "")
        sys.argv = ["-c", *program.arguments]
        code: Any = compile(program.name, "<string>", "exec", dont_inherit=True)
    else:
        path = os.path.abspath(program.name)
        sys.path.insert(0, str(Path(os.path.realpath(path)).parent))
        sys.argv = [program.name, *program.arguments]
        main.__file__ = path
        code = importlib.machinery.SourceFileLoader("__main__", path).get_code("__main__")
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _without_torchrun(program: Program) -> Program:
    """The program that ``torchrun`` starts, as the only process of its group."""
    from torch.distributed.run import get_args_parser

    given = get_args_parser().parse_args(list(program.arguments))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    group = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"), "1")
    group |= dict.fromkeys(("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK"), "0")
    group |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none"}
    kind: Any = "module" if given.module else "file"
    return Program(kind, given.training_script, tuple(given.training_script_args), tuple(group.items()))


def _without_accelerate(program: Program) -> Program:
    """The program that ``accelerate launch`` starts, as one process."""
    from accelerate.commands import launch
    from accelerate.utils.launch import prepare_simple_launcher_cmd_env

    given, _, _ = launch._validate_launch_command(launch.launch_command_parser().parse_args(list(program.arguments)))
    given.num_processes = 1
    words, variables = prepare_simple_launcher_cmd_env(given)
    started = _of_words(list(words))
    return replace(started, variables=tuple((k, v) for k, v in variables.items() if os.environ.get(k) != v))
