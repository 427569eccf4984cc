"""Where Dynamo breaks in classes of the zoos, and which lines it has traced; run by ``forecast.py``.

    PY forecast_run.py FOLDER NAME...        # PY: of the environment with the packages; FOLDER/NAME.json is written

One forked process for each class, which is called three times, compiled with the backend ``eager`` and Dynamo's default
settings. A line counts as traced when Dynamo has worked through an instruction of it: what runs eagerly after its frame
was given up says nothing about a finding there.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.append(str(Path(__file__).resolve().parent))
import torch
from census import forked, made, seed, warm_up
from torch._dynamo.symbolic_convert import InstructionTranslatorBase

from patcher.harness.listener import Listener, described, listening

Json = dict[str, Any]
#: What a class may be made of and is not its own: compiled with it, and nobody's to patch.
_NOT_ASKED = ("torch", "numpy", "scipy", "sympy")


@contextmanager
def tracing(lines: dict[str, set[int]]) -> Iterator[None]:
    """Note the lines that Dynamo works through, by file."""
    usual = InstructionTranslatorBase.starts_line

    def starts_line(self: Any, lineno: int) -> None:
        lines.setdefault(self.f_code.co_filename, set()).add(lineno)
        usual(self, lineno)

    InstructionTranslatorBase.starts_line = starts_line  # type: ignore[method-assign]
    try:
        yield
    finally:
        InstructionTranslatorBase.starts_line = usual  # type: ignore[method-assign]


class Inner(Listener):
    """Also notes, of a break in files of PyTorch, NumPy or Python, the line of a package that got there."""

    def __init__(self, root: str) -> None:
        super().__init__(lambda path: path.removeprefix(root))
        self.beneath: set[tuple[str, str]] = set()

    def _detail(self, where: str, reason: str, text: str) -> None:
        super()._detail(where, reason, text)
        if _is_not_asked(where):
            frames = [frame.rpartition(" in ")[0] for frame in self._stack([])]
            own = [frame for frame in frames if not _is_not_asked(frame)]
            self.beneath.update((frame, reason) for frame in own[-1:])


def _is_not_asked(where: str) -> bool:
    return where.partition("/")[0] in ("", *_NOT_ASKED)  # "": not of the folder of packages


def packages_folder() -> str:
    """Where the installed packages are."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    return str(Path(spec.origin).parent.parent) + "/"


def imported(root: str) -> list[str]:
    """The files of installed packages that have been imported, from ``root``; those of PyTorch and NumPy left out."""
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    below = sorted(file.removeprefix(root) for file in files if file.startswith(root) and file.endswith(".py"))
    return [file for file in below if file.partition("/")[0] not in _NOT_ASKED]


def one(name: str) -> Json:
    lines: dict[str, set[int]] = {}
    root = packages_folder()
    listener = Inner(root)
    listener.count_graphs()
    error = ""
    with listening(listener, False), tracing(lines):
        model, calls = made(name)
        runner = torch.compile(model, backend="eager")
        for args, kwargs in calls:
            seed()
            try:
                runner(*args, **kwargs)
            except Exception as raised:  # what came before it counts
                error = error or f"{type(raised).__name__}: {str(raised).strip().splitlines()[0][:300]}"
    traced = {file.removeprefix(root): sorted(at) for file, at in lines.items() if file.startswith(root)}
    return {
        "root": root,
        "imported": imported(root),
        "traced": {file: at for file, at in traced.items() if file.partition("/")[0] not in _NOT_ASKED},
        "graphs": listener.graphs,
        "failed": error,
        "beneath": [{"where": where, "reason": reason} for where, reason in sorted(listener.beneath)],
        **described(listener),
    }


def main() -> None:
    torch.set_num_threads(1)
    warm_up()
    for name in sys.argv[2:]:
        forked(name, Path(sys.argv[1], f"{name}.json"), one)
        print(name, flush=True)


if __name__ == "__main__":
    main()
