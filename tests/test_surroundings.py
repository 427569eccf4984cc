"""What lies around the given files: it is looked at before a class changes what others may read, and never changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.results import FileResult
from patcher.runner import run
from patcher.settings import Settings
from patcher.surroundings import Surroundings
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
    other = "class Other:\n    def length(self):\n        return self.filled\n"
    assert is_converted(project(tmp_path, {"package/other.py": other, "tests/test_it.py": "def test(): pass\n"}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package/model.py", "def lengths(memory):\n    return memory.filled.max()\n"),
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


def test_each_file_that_has_a_word(tmp_path: Path) -> None:
    path = project(tmp_path, {"a.py": "x.filled\n", "b.py": "x.filled_too\n", "c.py": "# filled\n"})
    around = Surroundings((str(path),))
    assert sorted(Path(name).name for _, name in around(frozenset({"filled"})) or []) == ["a.py", "c.py"]
    assert around(frozenset({"nowhere"})) == []


def test_too_many_files_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patcher.surroundings._MOST_PARSED", 2)
    path = project(tmp_path, {f"m{i}.py": "x.filled\n" for i in range(4)})
    assert Surroundings((str(path),))(frozenset({"filled"})) is None


def test_what_is_around_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project(tmp_path, {"a.py": "x.filled\n", "b.py": "x.empty\n"})
    around, read = Surroundings((str(path),)), list[str]()
    plain = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: (read.append(self.name), plain(self))[1])
    assert [Path(name).name for _, name in around(frozenset({"filled"})) or []] == ["a.py"]
    assert [Path(name).name for _, name in around(frozenset({"empty"})) or []] == ["b.py"]
    assert len(read) == len(set(read))
    (known,) = (name for _, name in around(frozenset({"filled"})) or [])
    assert around(frozenset({"filled"}), {known}) == [(None, known)]
