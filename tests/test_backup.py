"""A run is a transaction: originals, manifest, lock, restore, and what a killed run leaves behind."""

from __future__ import annotations

import json
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patcher.files import backup
from patcher.files.backup import BackupError, Store, apply, project_root, sha256
from patcher.files.restore import altered, restore
from patcher.results import FileResult

TOY = str(Path(__file__).parent / "toy.py")
ROOT = str(Path(__file__).parent.parent)
OLD, NEW = b"x = slow()\n", b"x = fast()\n"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / ".fix-compile")


def changed(folder: Path, *names: str) -> list[FileResult]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(OLD)
    return [FileResult(str(folder / name), OLD, NEW) for name in names]


def test_there_and_back(tmp_path: Path, store: Store) -> None:
    results = changed(tmp_path, "a.py", "sub/b.py")
    (tmp_path / "a.py").chmod(0o755)
    applied = apply(results, store, "1.0", ["--unsafe", "."])
    assert applied.run == "0001"
    assert applied.written == tuple(result.path for result in results)
    assert (tmp_path / "a.py").read_bytes() == NEW
    assert (store.folder / ".gitignore").read_text() == "*\n"
    manifest = json.loads((store.folder / "runs/0001/manifest.json").read_bytes())
    assert manifest["schema"] == 1
    assert manifest["tool"] == "1.0"
    assert manifest["options"] == ["--unsafe", "."]
    assert manifest["state"] == "applied"
    assert manifest["files"][1] == {
        "path": "sub/b.py",
        "before": sha256(OLD),
        "after": sha256(NEW),
        "original": "00002.b.py.orig",
        "mode": 0o644,
        "outcome": "written",
    }
    assert not list(store.folder.rglob("*.py"))
    restored = restore(store)
    assert len(restored.restored) == 2
    assert (tmp_path / "a.py").read_bytes() == OLD
    assert stat.S_IMODE((tmp_path / "a.py").stat().st_mode) == 0o755
    assert len(restore(store, "1").already) == 2
    with pytest.raises(BackupError, match="nothing to restore"):
        restore(store)
    with pytest.raises(BackupError, match=r"there is no run 7 .*recorded: 0001"):
        restore(store, "7")


def test_a_tree_may_move(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    apply(changed(tmp_path / "one", "a.py"), Store(tmp_path / "one/.fix-compile"), "1", [])
    (tmp_path / "one").rename(tmp_path / "two")
    restore(Store(tmp_path / "two/.fix-compile"))
    assert (tmp_path / "two/a.py").read_bytes() == OLD


def test_edited_since(tmp_path: Path, store: Store) -> None:
    apply(changed(tmp_path, "a.py", "b.py", "c.py"), store, "1", [])
    (tmp_path / "a.py").write_bytes(b"mine")
    (tmp_path / "c.py").unlink()
    restored = restore(store)
    assert [Path(path).name for path in restored.restored] == ["b.py"]
    assert [why.partition(";")[0] for _, why in restored.refused] == ["was edited since", "was deleted since"]
    restored = restore(store, edited="force")
    assert not restored.refused
    assert Path(restored.kept[0]).read_bytes() == b"mine"
    assert (tmp_path / "a.py").read_bytes() == (tmp_path / "c.py").read_bytes() == OLD


def test_runs_on_top_of_each_other(tmp_path: Path, store: Store) -> None:
    apply(changed(tmp_path, "a.py"), store, "1", [])
    path = str(tmp_path / "a.py")
    apply([FileResult(path, NEW, b"x = faster()\n")], store, "1", [])
    assert "run 0002 patched it again" in restore(store, "1").refused[0][1]
    assert restore(store).run == "0002"
    assert restore(store).run == "0001"
    assert (tmp_path / "a.py").read_bytes() == OLD


def test_some_are_refused(tmp_path: Path, store: Store) -> None:
    results = changed(tmp_path, "a.py", "b.py", "c.py", "d.py")
    (tmp_path / "a.py").chmod(0o444)
    (tmp_path / "b.py").write_bytes(b"edited")
    (tmp_path / "c.py").write_bytes(NEW)
    applied = apply(results, store, "1", [])
    assert dict(applied.refused) == {
        str(tmp_path / "a.py"): "is read-only, left alone",
        str(tmp_path / "b.py"): "changed meanwhile, left alone; run again",
    }
    assert applied.already == (str(tmp_path / "c.py"),)
    assert [Path(path).name for path in restore(store).restored] == ["d.py"]
    assert (tmp_path / "b.py").read_bytes() == b"edited"
    assert (tmp_path / "c.py").read_bytes() == NEW


def test_nothing_is_written_when_originals_cannot_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = changed(tmp_path, "a.py")
    (tmp_path / "file").write_text("")
    with pytest.raises(BackupError, match="cannot be written"):
        apply(results, Store(tmp_path / "file/store"), "1", [])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup.atomic, "write_new", full)
    with pytest.raises(BackupError, match=r"no space left on device; nothing was changed|cannot be written: no space"):
        apply(results, Store(tmp_path / "store"), "1", [])
    assert (tmp_path / "a.py").read_bytes() == OLD


def test_without_backup(tmp_path: Path) -> None:
    applied = apply(changed(tmp_path, "a.py"), None, "1", [])
    assert applied.run == ""
    assert (tmp_path / "a.py").read_bytes() == NEW
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_no_gitignore_in_a_folder_of_the_user(tmp_path: Path) -> None:
    apply(changed(tmp_path, "a.py"), Store(tmp_path), "1", [])
    assert not (tmp_path / ".gitignore").exists()


def test_damage_is_noticed(tmp_path: Path, store: Store) -> None:
    apply(changed(tmp_path, "a.py"), store, "1", [])
    original = next((store.folder / "runs/0001/originals").iterdir())
    original.write_bytes(b"rot")
    assert restore(store).refused[0][1] == "its stored original is damaged"
    manifest = store.folder / "runs/0001/manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema": 1', '"schema": 9'))
    with pytest.raises(BackupError, match="has schema 9"):
        restore(store)
    manifest.write_text("{")
    with pytest.raises(BackupError, match="is damaged"):
        restore(store)


def test_altered(tmp_path: Path, store: Store) -> None:
    assert altered(store, [str(tmp_path)]) == ()
    apply(changed(tmp_path, "a.py", "b.py", "c.py", "d.py"), store, "1", [])
    assert altered(store, [str(tmp_path)]) == ()
    (tmp_path / "a.py").write_bytes(b"edited")
    (tmp_path / "b.py").write_bytes(OLD)
    (tmp_path / "c.py").unlink()
    states = {Path(item.path).name: item.state for item in altered(store, [str(tmp_path)])}
    assert states == {"a.py": "edited", "b.py": "back to the original", "c.py": "deleted"}
    assert [Path(item.path).name for item in altered(store, [str(tmp_path / "a.py")])] == ["a.py"]
    assert altered(store, [str(tmp_path / "a")]) == ()
    restore(store, edited="force")
    assert altered(store, [str(tmp_path)]) == ()


def test_project_root(tmp_path: Path) -> None:
    (tmp_path / "repo/src/pkg").mkdir(parents=True)
    (tmp_path / "repo/setup.cfg").write_text("")
    (tmp_path / "repo/src/pkg/a.py").write_text("")
    assert project_root(str(tmp_path / "repo/src/pkg/a.py")) == tmp_path / "repo"
    assert project_root(str(tmp_path / "repo/src")) == tmp_path / "repo"


def test_project_root_without_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work/models").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    assert project_root("models") == tmp_path / "work"
    monkeypatch.chdir(tmp_path / "work/models")
    assert project_root(str(tmp_path / "work")) == tmp_path / "work"


def test_leftovers_and_runs_without_manifest(tmp_path: Path, store: Store) -> None:
    apply(changed(tmp_path, "a.py"), store, "1", [])
    (tmp_path / ".fix-compile-0001-abcd.tmp").write_bytes(b"half")
    (store.folder / "runs/0002/originals").mkdir(parents=True)
    assert restore(store).run == "0001"
    assert not list(tmp_path.glob("*.tmp"))
    assert apply(changed(tmp_path, "b.py"), store, "1", []).run == "0003"
    assert not (store.folder / "runs/0002").exists()


#: Runs a script that dies before or after so many renames: `python -c ... before 7 SCRIPT ARGUMENTS`.
DYING = """
import os, pathlib, runpy, signal, sys  # pathlib of Python 3.10 makes what os.replace then is a method of its own
when, left, rename = sys.argv[1], int(sys.argv[2]), os.replace
def dying(*names, **options):
    global left
    left -= 1
    if left < 0 and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*names, **options)
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = dying
sys.argv = sys.argv[3:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def start(folder: Path, *dying: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *(("-c", DYING, *dying) if dying else ()), TOY, "-j", "1", str(folder)],
        env={"PYTHONPATH": ROOT, "PATH": ""},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    "moment", ["before 0", "after 0", "before 5", "after 30", "before 60", "after 61", "at random"]
)
def test_killed_at_any_moment(tmp_path: Path, moment: str) -> None:
    (tmp_path / "sub").mkdir()
    files = [tmp_path / ("sub" if n % 2 else "") / f"m{n}.py" for n in range(60)]
    for file in files:
        file.write_bytes(OLD)
    if moment == "at random":
        process = start(tmp_path)
        time.sleep(random.random() * 0.5)
        process.send_signal(signal.SIGKILL)
    else:
        process = start(tmp_path, *moment.split())
    process.communicate()
    contents = {file.read_bytes() for file in files}
    assert contents <= {OLD, NEW}
    if moment in ("before 5", "after 30"):
        assert process.returncode == -signal.SIGKILL
        assert contents == {OLD, NEW}, "it was to be killed between two files"
    if (tmp_path / ".fix-compile/runs/0001/manifest.json").exists():
        assert not restore(Store(tmp_path / ".fix-compile")).refused
    assert {file.read_bytes() for file in files} == {OLD}
    assert not list(tmp_path.rglob(".fix-compile-*.tmp"))


def test_two_runs_at_once(tmp_path: Path) -> None:
    files = [tmp_path / f"m{n}.py" for n in range(60)]
    for file in files:
        file.write_bytes(OLD)
    processes = [start(tmp_path) for _ in range(3)]
    for process in processes:
        _, err = process.communicate()
        assert process.returncode == 0, err
    assert {file.read_bytes() for file in files} == {NEW}
    store = Store(tmp_path / ".fix-compile")
    owners = [saved.path for run in store.runs() for saved in run.files if saved.outcome == "written"]
    assert sorted(owners) == sorted(file.name for file in files)
    for _ in range(3):
        try:
            assert not restore(store).refused
        except BackupError:
            break
    assert {file.read_bytes() for file in files} == {OLD}
