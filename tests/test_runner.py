"""Many files, some of them bad, in one process or several."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterable
from pathlib import Path

import pytest
from toy import RULES

from patcher.edit import engine
from patcher.files.discover import Exclude
from patcher.patching import runner, share
from patcher.patching.runner import run
from patcher.patching.share import Steps, Summary
from patcher.results import FileResult
from patcher.settings import Settings

BAD = {
    "syntax.py": (b"x = slow(\n", "line 1: syntax error: '(' was never closed (read as Python "),
    "utf8.py": (b"x = slow()\n# \xff\n", "line 2: byte 0xff is not valid UTF-8"),
    "cookie.py": (b"# coding: klingon\nslow()\n", "that Python does not know (klingon)"),
    "null.py": (b"slow()\n\0", "line 2: contains a null byte"),
    "brackets.py": (
        b"x = " + b"(" * 1000 + b"slow()" + b")" * 1000,
        "line 1: syntax error: too many nested parentheses",
    ),
    "blocks.py": (
        b"".join(b" " * n + b"if slow():\n" for n in range(1000)),
        "syntax error: too many levels of indentation",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, (data, _) in BAD.items():
        (tmp_path / name).write_bytes(data)
    for number in range(20):
        (tmp_path / f"good{number:02}.py").write_bytes(b"import torch\nx = slow()\n" * (number % 3) + b"y = 1\n")
    (tmp_path / "broken.py").symlink_to("nowhere")
    return tmp_path


def by_name(results: Iterable[FileResult]) -> dict[str, FileResult]:
    return {Path(result.path).name: result for result in results}


def test_bad_files_are_results(folder: Path) -> None:
    results = by_name(run([str(folder), "missing.py"], RULES, Settings(), jobs=1))
    for name, (_, message) in BAD.items():
        assert message in results[name].error, name
        assert "\n" not in results[name].error
        assert not results[name].changed
    assert results["broken.py"].error == "is a broken symbolic link"
    assert results["missing.py"].error == "no such file or folder"
    changed = [result for result in results.values() if result.changed]
    assert len(changed) == 13
    assert results["good01.py"].after == b"import torch\nx = fast()\ny = 1\n"
    assert results["good00.py"] == FileResult(str(folder / "good00.py"))


def test_looking_finds_the_same_and_makes_no_fix(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = by_name(run([str(folder)], RULES, Settings(), jobs=1))
    monkeypatch.setattr(engine, "apply", None)  # what makes a fix
    looked = by_name(run([str(folder)], RULES, Settings(), jobs=1, fixes=False))
    assert not any(result.changed for result in looked.values())
    assert {name: result.error for name, result in looked.items()} == {name: r.error for name, r in made.items()}
    for name, result in made.items():
        seen = looked[name].patch
        assert (seen.found if seen else ()) == (result.patch.found if result.patch else ()), name
        assert seen is None or (seen.remaining, seen.fixed) == (seen.found, ())


@pytest.mark.parametrize("terms", [900, 5000])  # a part of the Pythons takes the longer one
def test_what_python_takes_and_we_do_not(tmp_path: Path, terms: int) -> None:
    (tmp_path / "sum.py").write_bytes(b"def f():\n    x = slow()" + b" + a" * terms)
    (tmp_path / "good.py").write_bytes(b"x = slow()\n")
    results = by_name(run([str(tmp_path)], RULES, Settings()))
    odd = results["sum.py"]
    assert "nested too deeply" in odd.error or (odd.patch and odd.patch.bugs)
    assert not odd.changed
    assert results["good.py"].changed


def test_same_for_any_number_of_processes(folder: Path) -> None:
    alone = run([str(folder), "missing.py"], RULES, Settings(), jobs=1)
    for jobs in (2, 3, None, 500):
        assert run([str(folder), "missing.py"], RULES, Settings(), jobs=jobs) == alone


@pytest.mark.parametrize("jobs", [2, 3])
def test_a_process_that_dies_costs_one_file(folder: Path, jobs: int) -> None:
    for name in ("good03.py", "good04.py", "good19.py"):
        (folder / name).write_bytes(b"x = segfault()\n")
    results = by_name(run([str(folder)], RULES, Settings(), jobs=jobs))
    for name in ("good03.py", "good04.py", "good19.py"):
        assert results[name].error == "the process that worked on it died (SIGSEGV); the other files are not affected"
    assert sum(bool(result.error) for result in results.values()) == 3 + len(BAD) + 1
    assert sum(result.changed for result in results.values()) == 11


def test_death_while_summarising(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true = runner.engine_steps()

    def summarise(tree: object, path: str) -> object:
        if path.endswith(("good05.py", "good06.py")):
            os.kill(os.getpid(), 9)
        return true.summarise(tree, path)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "engine_steps", lambda: Steps(summarise, true.merge, true.patch))
    (folder / "good06.py").write_bytes(b"import torch\n")
    results = by_name(run([str(folder)], RULES, Settings(), jobs=2))
    assert "was killed, perhaps because the machine ran out of memory" in results["good05.py"].error
    assert "was killed" in results["good06.py"].error
    assert sum(bool(result.error) for result in results.values()) == 2 + len(BAD) + 1
    assert results["good04.py"].changed


def test_processes_that_cannot_even_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "Share", lambda *_, **__: os._exit(3))
    results = run([str(folder)], RULES, Settings(), jobs=2)
    assert sum("died (exit status 3)" in result.error for result in results) == len(results) - 1
    monkeypatch.undo()

    def none_left(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(runner, "_start", none_left)
    assert by_name(run([str(folder)], RULES, Settings(), jobs=2))["good01.py"].changed


def test_results_that_cannot_travel() -> None:
    class Pipe:
        sent: object = None

        def send(self, answer: object) -> None:
            if callable(answer):
                raise TypeError("cannot pickle")
            self.sent = answer

    pipe = Pipe()
    runner._answer(pipe, lambda: 1, "instead")  # type: ignore[arg-type]
    assert pipe.sent == "instead"


def test_a_rule_that_crashes_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = crash()\ny = odd\n")
    (result,) = run([str(tmp_path)], RULES, Settings())
    assert result.patch is not None
    assert result.patch.bugs[0].code == "FC901"
    assert result.after == b"x = crash()\ny = even\n"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "is too large or nested too deeply"),
        (KeyError("a\nb"), "internal error, a bug in fix-compile: KeyError at test_runner.py:"),
        (RecursionError("deep"), "internal error, a bug in fix-compile: RecursionError at test_runner.py:"),
        (SyntaxError("bad"), "syntax error: bad"),
    ],
)
def test_an_engine_that_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str) -> None:
    def patch(*_: object) -> None:
        raise error

    monkeypatch.setattr(runner, "engine_steps", lambda: Steps(lambda *_: None, lambda found, **_: list(found), patch))  # type: ignore[arg-type]
    (tmp_path / "a.py").write_text("x = slow()\n")
    (result,) = run([str(tmp_path)], RULES, Settings())
    assert told in result.error
    assert "\n" not in result.error


def test_only_what_matters_reaches_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[str]] = {"summarise": set(), "patch": set()}
    true = runner.engine_steps()

    def summarise(tree: object, path: str) -> object:
        seen["summarise"].add(Path(path).name)
        return true.summarise(tree, path)  # type: ignore[arg-type]

    def patch(text: str, path: str, *rest: object) -> object:
        seen["patch"].add(Path(path).name)
        return true.patch(text, path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "engine_steps", lambda: Steps(summarise, true.merge, patch))  # type: ignore[arg-type]
    for name, text in {"t.py": "import torch", "s.py": "slow()", "n.py": "x = 1", "o.py": "odd"}.items():
        (tmp_path / name).write_text(text)
    run([str(tmp_path)], RULES, Settings(select=("FC901",)))
    assert seen == {"summarise": {"t.py", "s.py", "n.py", "o.py"}, "patch": {"s.py"}}


def test_trees_beyond_the_budget_are_parsed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run([str(folder)], RULES, Settings(), jobs=1)
    monkeypatch.setattr(runner, "KEPT_SOURCE_BYTES", 60)
    assert run([str(folder)], RULES, Settings(), jobs=1) == expected


def test_a_file_of_five_megabytes(tmp_path: Path) -> None:
    rows = b"".join(b"    (%d, '%s', 0.5),\n" % (n, b"text" * 300) for n in range(3_500))
    (tmp_path / "big.py").write_bytes(
        b"import torch\nx = slow()\nrows = [\n" + rows + b"]\n" + b"# " + b"x" * 1_000_000
    )
    assert (tmp_path / "big.py").stat().st_size > 5_000_000
    (result,) = run([str(tmp_path)], RULES, Settings())
    assert result.changed
    assert result.after.startswith(b"import torch\nx = fast()\nrows = [\n")


def test_bytes_survive(tmp_path: Path) -> None:
    kept = {
        "crlf.py": b"# \xc3\xa9\r\nx = slow()\r\n",
        "bom.py": b"\xef\xbb\xbfx = slow()\n",
        "latin.py": b"# coding: latin-1\nx = slow()  # \xe9\n",
        "tabs.py": b"if a:\n\tx = slow()\t# tab\n",
        "feed.py": b"\x0c\nx = slow()\n\x0c\ny = 1",
        "mixed.py": b"a = 1\r\nx = slow()\ny = 1\r\n",
        "spaces.py": b"x  =  slow( )  \n\n\n\n",
    }
    for name, data in kept.items():
        (tmp_path / name).write_bytes(data)
    for result in run([str(tmp_path)], RULES, Settings()):
        assert result.after == kept[Path(result.path).name].replace(b"slow", b"fast"), result.path


def test_progress_and_exclude(folder: Path) -> None:
    calls: list[tuple[int, int]] = []
    run([str(folder)], RULES, Settings(), jobs=2, progress=lambda *c: calls.append(c), exclude=Exclude(("b*", "s*")))
    files = len(BAD) - 3 + 20
    assert calls[-1] == (files, files)
    assert calls == sorted(calls)


def test_warnings_and_garbage_collection_are_left_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = slow('\\d') is 'x'\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run([str(tmp_path)], RULES, Settings(), jobs=1)
    assert not caught
    assert gc.isenabled()


def test_no_files() -> None:
    assert run([], RULES, Settings(), jobs=4) == []


def test_a_share_that_starts_in_the_second_phase(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = slow()\n")
    steps = runner.engine_steps()
    fresh = share.Share(RULES, Settings(), steps)
    assert fresh.patch(str(tmp_path / "a.py"), steps.merge([])).changed
    assert fresh.summarise(str(tmp_path / "none.py")) == Summary(str(tmp_path / "none.py"))
