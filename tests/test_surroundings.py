"""What lies around the given files: it is looked at before a class changes what others may read, and never changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.files.discover import Surroundings, surroundings
from patcher.patching.runner import run
from patcher.results import FileResult
from patcher.settings import Settings
from rules import load_rules

CACHE = """\
import torch


class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        self.filled = torch.zeros(layers, dtype=torch.int)

    def update(self, layer, keys):
        start = int(self.filled[layer])
        self.keys[layer, :, start : start + keys.shape[1]] = keys
        self.filled[layer] = start + keys.shape[1]
        return self.keys[layer, :, : start + keys.shape[1]]
"""


def project(root: Path, files: dict[str, str], mark: str = "pyproject.toml") -> Path:
    for name, text in {"package/__init__.py": "", "package/cache.py": CACHE, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if mark:
        (root / mark).touch()
    return root / "package" / "cache.py"


def result(path: Path, jobs: int = 1) -> FileResult:
    (found,) = run([str(path)], load_rules(), Settings(), jobs=jobs)
    assert found.patch is not None and found.patch.bugs == ()
    return found


def is_converted(path: Path) -> bool:
    return "FC302" in {f.code for f in result(path).patch.fixed}  # type: ignore[union-attr]


def test_a_class_that_nothing_else_looks_into_is_converted(tmp_path: Path) -> None:
    other = "class Other:\n    def length(self):\n        return self.rows\n"
    assert is_converted(project(tmp_path, {"package/other.py": other, "tests/test_it.py": "def test(): pass\n"}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package/model.py", "def lengths(memory):\n    return memory.filled.max()\n"),
        ("package/other.py", "class Other:\n    def length(self):\n        return self.filled\n"),
        ("scripts/deep/report.py", "def lengths(memory):\n    return memory.filled.max()\n"),
        ("tests/test_memory.py", "def test(memory):\n    assert memory.filled.sum() == 0\n"),
        ("package/rolling.py", "from package.cache import Memory\n\n\nclass Rolling(Memory):\n"
         "    def update(self, x): ...\n"),
        ("package/net.py", "import torch.nn as nn\nfrom package.cache import Memory\n\n\nclass Net(nn.Module):\n"
         "    def __init__(self):\n        self.memory = Memory(1, 1, 1, 1)\n"),
    ],
)  # fmt: skip
def test_files_around_are_asked(tmp_path: Path, name: str, text: str) -> None:
    path = project(tmp_path, {name: text})
    assert not is_converted(path)
    (refused,) = [f for f in result(path).patch.found if f.code == "FC302"]  # type: ignore[union-attr]
    assert refused.applicability == "display-only"
    assert Path(name).stem in refused.assumption.lower()
    assert (tmp_path / name).read_text(encoding="utf-8") == text


def test_without_a_project_the_package_is_the_world(tmp_path: Path) -> None:
    reader = {"elsewhere/report.py": "def lengths(memory):\n    return memory.filled.max()\n"}
    assert is_converted(project(tmp_path, reader, mark=""))


def test_files_that_are_broken_are_passed_over(tmp_path: Path) -> None:
    path = project(tmp_path, {"package/broken.py": "def filled(:\n", "package/other.py": "filled = '\0'\n"})
    assert is_converted(path)


def test_all_other_files_of_the_project(tmp_path: Path) -> None:
    path = project(tmp_path, {"a.py": "", "package/b.py": ""})
    around = surroundings([str(path)])
    assert {Path(name).name for name in around.files} == {"__init__.py", "a.py", "b.py"}
    assert around.whole


def test_of_too_many_files_none_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patcher.files.discover._MOST_FILES", 4)
    path = project(tmp_path, {f"m{i}.py": "x.filled\n" for i in range(5)})
    assert surroundings([str(path)]) == Surroundings(whole=False)
    assert not is_converted(path)


PACKAGE = {
    "package/layers.py": "import torch\n\n\ndef guarded(x):\n    if x.sum() > 0:\n        x = x * 2\n    return x\n",
    "package/net.py": "import torch.nn as nn\nfrom package.layers import guarded\n\n\nclass Net(nn.Module):\n"
    "    def forward(self, x):\n        return guarded(x)\n",
    "package/sub/__init__.py": "",
    "package/sub/more.py": "import torch.nn as nn\nfrom package.layers import guarded\n\n\nclass More(nn.Module):\n"
    "    def forward(self, x):\n        print(x)\n        return guarded(x)\n",
    "scripts/use.py": "from package.net import Net\n",
}


def hunks(folder: Path, *paths: str) -> dict[str, bytes]:
    found = run([str(folder / path) for path in paths], load_rules(), Settings(), jobs=1)
    return {str(Path(r.path).resolve()): r.after for r in found if r.changed}


def test_what_is_patched_does_not_depend_on_what_else_is_given(tmp_path: Path) -> None:
    project(tmp_path, PACKAGE)
    whole = hunks(tmp_path, ".")
    assert len(whole) >= 2
    for paths in (
        ["package"],
        ["package/layers.py"],
        ["package/sub"],
        ["scripts/use.py"],
        ["package/net.py", "package/sub"],
    ):
        given = {str((tmp_path / path).resolve()) for path in paths}
        part = {path: text for path, text in whole.items() if any(path == g or path.startswith(f"{g}/") for g in given)}
        assert hunks(tmp_path, *paths) == part, paths
