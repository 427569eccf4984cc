"""Python programs run as users run them, in forks of one process that has imported torch."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import runpy
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["torch", "torch._dynamo"])


def run(folder: Path, arguments: Sequence[str], variables: Mapping[str, str]) -> tuple[int, str, str]:
    """Exit status, standard output and errors of ``python ARGUMENTS`` (a file, ``-m`` or ``-c``) in ``folder``."""
    with tempfile.TemporaryDirectory() as at:
        files = Path(at) / "out", Path(at) / "err"
        process = _FORKS.Process(target=_program, args=(str(folder), list(arguments), dict(variables), *files))
        process.start()
        process.join()
        return process.exitcode or 0, *(file.read_text(encoding="utf-8") for file in files)


def _program(folder: str, arguments: list[str], variables: dict[str, str], out: Path, err: Path) -> None:
    os.environ.update(variables)
    os.chdir(folder)
    sys.dont_write_bytecode = True
    status = 0
    with out.open("w", encoding="utf-8") as stdout, err.open("w", encoding="utf-8") as stderr:
        sys.stdout, sys.stderr = stdout, stderr
        try:
            with contextlib.suppress(SystemExit):
                _run(arguments)
        except BaseException:
            traceback.print_exc()
            status = 1
    os._exit(status)


def _run(arguments: list[str]) -> None:
    first, *rest = arguments
    sys.argv = ["-c" if first == "-c" else first, *rest[first in ("-c", "-m") :]]
    sys.path.insert(0, str(Path(first).resolve().parent) if first.endswith(".py") else str(Path.cwd()))
    if first == "-c":
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(first, run_name="__main__")
