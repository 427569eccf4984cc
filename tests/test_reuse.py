"""Results that are kept from one run to the next: the same as without them, and worked out once."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import toy
from test_surroundings import project

from patcher.files import kept
from patcher.patching import reuse, runner
from patcher.patching.runner import run
from patcher.patching.share import Steps
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.settings import Settings
from rules import load_rules

RULES = tuple(load_rules())
MODEL = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        else:
            x = x * 3
        return self.more(x)

    def more(self, x):
        return x
"""
OTHER = "import torch\n\n\ndef helper(x):\n    return x.item()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    package.mkdir()
    texts = {"__init__.py": "", "model.py": MODEL, "other.py": OTHER, "syntax.py": "x = (\n", "plain.py": "x = 1\n"}
    for name, text in texts.items():
        (package / name).write_text(text)
    (package / "broken.py").symlink_to("nowhere")
    return package


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[list[str], list[str]]]:
    """The names of the files that were summarised and patched since it was last asked. For runs in this process."""
    seen: tuple[list[str], list[str]] = ([], [])

    def noted(true: Steps) -> Steps:
        def summarise(tree: Any, path: str) -> Any:
            seen[0].append(Path(path).name)
            return true.summarise(tree, path)

        def patch(text: str, path: str, *rest: Any) -> Any:
            seen[1].append(Path(path).name)
            return true.patch(text, path, *rest)

        return dataclasses.replace(true, summarise=summarise, patch=patch)

    fixing, finding = runner.engine_steps, runner.finding_steps
    monkeypatch.setattr(runner, "engine_steps", lambda: noted(fixing()))
    monkeypatch.setattr(runner, "finding_steps", lambda: noted(finding()))

    def since() -> tuple[list[str], list[str]]:
        found = (sorted(seen[0]), sorted(seen[1]))
        seen[0].clear()
        seen[1].clear()
        return found

    return since


def both(folder: Path, rules: tuple[Rule, ...] = RULES, **how: Any) -> list[FileResult]:
    """The results with what is kept, which are the ones without."""
    results = run([str(folder)], rules, Settings(), jobs=1, kept=kept.default_folder(), **how)
    assert results == run([str(folder)], rules, Settings(), jobs=1, **how)
    return results


def again(folder: Path, **how: Any) -> list[FileResult]:
    return run([str(folder)], RULES, Settings(), jobs=1, kept=kept.default_folder(), **how)


@pytest.mark.parametrize("fixes", [True, False])
@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_is_worked_out_twice(
    folder: Path, worked: Callable[[], tuple[list[str], list[str]]], fixes: bool, jobs: int
) -> None:
    first = run([str(folder)], RULES, Settings(), jobs=jobs, kept=kept.default_folder(), fixes=fixes)
    assert any(result.changed for result in first) is fixes
    assert any(result.error.startswith("line 1: syntax error") for result in first)
    worked()
    assert run([str(folder)], RULES, Settings(), jobs=3 - jobs, kept=kept.default_folder(), fixes=fixes) == first
    assert worked() == ([], [])
    assert run([str(folder)], RULES, Settings(), jobs=jobs, fixes=fixes) == first


def test_looking_and_fixing_are_kept_apart(folder: Path) -> None:
    assert [result.changed for result in both(folder)] != [result.changed for result in both(folder, fixes=False)]


def test_a_change_that_the_others_cannot_see(folder: Path, worked: Callable[[], tuple[list[str], list[str]]]) -> None:
    both(folder)
    (folder / "model.py").write_text(MODEL.replace("x * 3", "x * 4"))
    worked()
    changed = {Path(result.path).name: result for result in again(folder)}
    assert worked() == (["model.py"], ["model.py"])
    assert b"x * 4" in changed["model.py"].after
    both(folder)


def test_a_change_that_the_others_can_see(folder: Path, worked: Callable[[], tuple[list[str], list[str]]]) -> None:
    both(folder)
    (folder / "model.py").write_text(
        MODEL.replace("self.more(x)", "helper(x)").replace("import", "from package.other import helper\nimport")
    )
    worked()
    again(folder)
    summarised, patched = worked()
    assert summarised == ["model.py"]
    assert {"model.py", "other.py"} <= set(patched)
    both(folder)


@pytest.mark.parametrize("change", ["added", "removed", "renamed", "package above", "repaired", "touched"])
def test_the_set_of_files_changes(folder: Path, worked: Callable[[], tuple[list[str], list[str]]], change: str) -> None:
    both(folder)
    match change:
        case "added":
            (folder / "new.py").write_text(MODEL)
        case "removed":
            (folder / "other.py").unlink()
        case "renamed":
            (folder / "other.py").rename(folder / "another.py")
        case "package above":
            (folder.parent / "__init__.py").touch()
        case "repaired":
            (folder / "syntax.py").write_text(OTHER)
        case "touched":
            os.utime(folder / "other.py", (1, 1))
    worked()
    again(folder)
    assert (worked() == ([], [])) is (change == "touched")
    both(folder)


def test_a_file_that_cannot_be_read_is_tried_again(folder: Path) -> None:
    (folder / "fifo.py").mkdir()
    both(folder)
    (folder / "other.py").unlink()
    (folder / "other.py").symlink_to("nowhere")
    both(folder)


def test_what_was_read_around_counts(tmp_path: Path) -> None:
    path = project(tmp_path, {"package/other.py": "x = 1\n"})
    for file in tmp_path.rglob("*"):
        os.utime(file, (time.time() - 60,) * 2)
    for _ in range(2):
        assert "FC302" in {f.code for r in both(path) for f in r.patch.fixed}  # type: ignore[union-attr]
    (tmp_path / "package" / "other.py").write_text("def lengths(memory):\n    return memory.filled.max()\n")
    assert "FC302" not in {f.code for r in both(path) for f in r.patch.fixed}  # type: ignore[union-attr]


def test_files_around_that_say_nothing_else_do_not_count(
    folder: Path, worked: Callable[[], tuple[list[str], list[str]]]
) -> None:
    both(folder / "model.py")
    (folder / "plain.py").write_text("x = 2\n")
    worked()
    again(folder / "model.py")
    assert worked() == (["plain.py"], [])


class Evil:
    def __reduce__(self) -> Any:
        return (print, ("code that ran",))


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "code", "no summaries", "a folder"])
def test_what_is_damaged_is_worked_out_again(folder: Path, capfd: pytest.CaptureFixture[str], damage: str) -> None:
    both(folder)
    (folder / "plain.py").write_text("x = 2\n")  # so that the summaries are asked for too
    for file in kept.default_folder().iterdir():
        data = file.read_bytes()
        match damage:
            case "cut":
                file.write_bytes(data[:-1])
            case "flipped":
                file.write_bytes(data[:-20] + b"\0" + data[-19:])
            case "empty":
                file.write_bytes(b"")
            case "code":
                kept.save(file.parent, file.name, Evil())
                assert kept.load(file.parent, file.name) is None
            case "no summaries" if file.suffix == ".summaries":
                file.unlink()
            case "a folder":
                file.unlink()
                file.mkdir()
    both(folder)
    assert capfd.readouterr().out == ""


def test_only_our_own_values_are_read(tmp_path: Path) -> None:
    for value in (Path("a"), os.system, RuntimeError("b")):
        kept.save(tmp_path, "value", value)
        assert (tmp_path / "value").exists()
        assert kept.load(tmp_path, "value") is None
    result = FileResult("a.py", b"1", b"2")
    kept.save(tmp_path, "value", {"a": (result, frozenset({"b"}))})
    assert kept.load(tmp_path, "value") == {"a": (result, frozenset({"b"}))}


def test_a_folder_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for where in (tmp_path / "file" / "below", tmp_path / "file"):
        assert run([str(folder)], RULES, Settings(), kept=where) == run([str(folder)], RULES, Settings())


def test_the_oldest_are_removed(tmp_path: Path) -> None:
    for number in range(60):
        kept.save(tmp_path, str(number), number)
        os.utime(tmp_path / str(number), (number, number))
    assert {int(file.name) for file in tmp_path.iterdir()} == set(range(20, 60))


def test_rules_that_crash_are_asked_again(folder: Path, worked: Callable[[], tuple[list[str], list[str]]]) -> None:
    (folder / "crash.py").write_text("crash()\n")
    both(folder, toy.RULES)
    worked()
    run([str(folder)], toy.RULES, Settings(), jobs=1, kept=kept.default_folder())
    assert worked() == ([], ["crash.py"])


def question(rules: tuple[Rule, ...], settings: Settings, paths: tuple[str, ...], fixes: bool) -> str | None:
    found = reuse.Reuse.of(Path("kept"), rules, settings, (paths, fixes, True, False))
    return found and found.question


def test_each_question_has_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def name(
        rules: tuple[Rule, ...] = RULES,
        settings: Settings | None = None,
        paths: tuple[str, ...] = ("a",),
        fixes: bool = True,
    ) -> str | None:
        return question(rules, settings or Settings(), paths, fixes)

    names = [
        name(),
        name(RULES[1:]),
        name(toy.RULES),
        name(settings=Settings(unsafe=True)),
        name(settings=Settings(strategies={"kv-cache": "eager-zone"})),
        name(settings=Settings(target_torch=(2, 9))),
        name(paths=("b",)),
        name(fixes=False),
    ]
    assert len(set(names)) == len(names) and None not in names
    assert name() == names[0]
    monkeypatch.chdir(tmp_path)
    assert name() not in names
    monkeypatch.setattr(reuse, "__file__", str(tmp_path / "none" / "patching" / "reuse.py"))
    assert name() is None


def test_a_change_of_a_source_is_another_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "__file__", str(tmp_path / "patching" / "reuse.py"))
    (tmp_path / "reuse.py").write_text("a = 1\n")
    before = question(RULES, Settings(), ("a",), True)
    (tmp_path / "reuse.py").write_text("a = 2\n")
    assert question(RULES, Settings(), ("a",), True) != before


def test_rules_and_settings_that_no_source_describes() -> None:
    class Local(toy.SlowCall):
        """Inside of a function it may mean anything."""

    stateful = toy.SlowCall()
    stateful.limit = 3  # type: ignore[attr-defined]
    assert question((Local(),), Settings(), (), True) is None
    assert question((stateful,), Settings(), (), True) is None
    assert question(RULES, Settings(only=frozenset()), (), True) is None


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert kept.default_folder() == Path(os.environ["FIX_COMPILE_CACHE"]) / "results"
    monkeypatch.delenv("FIX_COMPILE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept.default_folder() == tmp_path / "fix-compile" / "results"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kept.default_folder() == tmp_path / ".cache" / "fix-compile" / "results"


def test_what_a_star_brings_counts(folder: Path, tmp_path: Path) -> None:
    beside = tmp_path / "beside.py"
    beside.write_text("def helper(x):\n    return x\n")
    (folder / "starred.py").write_text("from beside import *\n\n" + MODEL.replace("return x\n", "print(1)\n"))
    before = {Path(r.path).name: r.after for r in both(folder)}
    beside.write_text("def print(x):\n    return x\n")
    after = {Path(r.path).name: r.after for r in both(folder)}
    assert {name for name in before if before[name] != after[name]} == {"starred.py"}


def test_a_second_run_on_a_project_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fcntl")
    monkeypatch.setenv("FIX_COMPILE_CACHE", str(tmp_path))
    told: list[str] = []
    began, done = threading.Event(), threading.Event()

    def second() -> None:
        with kept.alone("/project", lambda process: (told.append(process), began.set())[0]):
            done.set()

    with kept.alone("/project", told.append), kept.alone("/other", told.append):
        thread = threading.Thread(target=second)
        thread.start()
        assert began.wait(10)
        assert told == [str(os.getpid())] and not done.is_set()
    thread.join(10)
    assert done.is_set()
