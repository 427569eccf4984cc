"""What is handed to the worker: import roots, patched files, packages, and a folder that holds all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from patcher.harness import plan
from patcher.harness.cases import Case
from patcher.harness.packages import PackageError, locate
from patcher.harness.plan import Options, changed, digest, write
from patcher.harness.trees import commit, roots
from patcher.results import FileResult

OLD, NEW = b"x = slow()\n", b"import torch\nx = fast()\n"


def tree(folder: Path, *files: str) -> None:
    """Make files (a name that ends in ``/``: a folder), each with the text ``OLD`` or, as ``__init__.py``, none."""
    for name in files:
        path = folder / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_bytes(b"" if path.name == "__init__.py" else OLD)


def patched(*files: Path, after: bytes = NEW) -> list[FileResult]:
    return [FileResult(str(file), file.read_bytes(), after) for file in files]


def case_in(file: Path, text: str = "def build(): ...\ndef calls(): ...\n") -> Case:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return Case(file.stem, str(file))


def read(file: Path) -> Any:
    return json.loads(file.read_bytes())


def files_in(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


LAYOUTS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "the folder of a package": (("p/pyproject.toml", "p/pkg/__init__.py"), "p/pkg", ("p",)),
    "a file of a package": (("p/.git/", "p/pkg/__init__.py", "p/pkg/m.py"), "p/pkg/m.py", ("p",)),
    "a package in a package": (("p/setup.py", "p/a/__init__.py", "p/a/b/__init__.py", "p/a/b/m.py"), "p/a/b", ("p",)),
    "a plain folder in a package": (("p/setup.py", "p/a/__init__.py", "p/a/b/m.py"), "p/a/b", ("p/a/b", "p")),
    "a package outside of a project": (("deep-er/pkg/__init__.py",), "deep-er/pkg", ("deep-er",)),
    "a package in src": (("p/setup.cfg", "p/src/pkg/__init__.py"), "p/src/pkg", ("p/src", "p")),
    "a folder below src": (("p/setup.cfg", "p/src/n/m.py"), "p/src/n", ("p/src", "p/src/n", "p")),
    "far below src": (("p/.git/", "p/src/n/k/m.py"), "p/src/n/k", ("p/src", "p/src/n/k", "p/src/n", "p")),
    "src without a project": (("x-y/src/n/k/m.py",), "x-y/src/n/k", ("x-y/src", "x-y/src/n/k", "x-y/src/n")),
    "src itself": (("p/.git/", "p/src/pkg/__init__.py"), "p/src", ("p/src", "p")),
    "a project": (("p/pyproject.toml", "p/src/pkg/__init__.py"), "p", ("p", "p/src")),
    "a project without src": (("p/pyproject.toml", "p/pkg/__init__.py"), "p", ("p",)),
    "a file in a plain folder": (("x-y/models/m.py",), "x-y/models/m.py", ("x-y/models", "x-y")),
    "a plain folder that has no name": (("p/my-models/m.py",), "p/my-models", ("p/my-models",)),
    "a folder that is no package by its name": (("p/my-pkg/__init__.py",), "p/my-pkg", ("p/my-pkg",)),
    "namespaces up to the project": (("p/.git/", "p/a/b/m.py"), "p/a/b/m.py", ("p/a/b", "p/a", "p")),
    "a package in a namespace": (("p/.git/", "p/ns/pkg/__init__.py"), "p/ns/pkg", ("p/ns", "p")),
    "a project that is a package": (("w/p/.git/", "w/p/__init__.py", "w/p/m.py"), "w/p/m.py", ("w", "w/p")),
    "a package in a project that is one": (
        ("w/p/.git/", "w/p/__init__.py", "w/p/a/__init__.py"),
        "w/p/a",
        ("w", "w/p"),
    ),
    "a project within another": (("p/.git/", "p/third/setup.py", "p/third/m.py"), "p/third", ("p/third",)),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_where_imports_start(layout: str, tmp_path: Path) -> None:
    files, path, expected = LAYOUTS[layout]
    tree(tmp_path, *files)
    assert roots([str(tmp_path / path)]) == tuple(str(tmp_path / root) for root in expected)


def test_each_root_comes_once_and_relative_paths_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, "p/setup.py", "p/a/__init__.py", "p/b/__init__.py", "p/b/sub/")
    monkeypatch.chdir(tmp_path / "p" / "b")
    assert roots(["../a", ".", "sub", str(tmp_path / "p")]) == (str(tmp_path / "p"), str(tmp_path / "p/b/sub"))


def test_a_link_keeps_the_name_that_imports_use(tmp_path: Path) -> None:
    tree(tmp_path, "real-1.0/__init__.py", "here/")
    (tmp_path / "here" / "pkg").symlink_to(tmp_path / "real-1.0")
    assert roots([tmp_path / "here" / "pkg"]) == (str(tmp_path / "here"),)


RANGES = {
    "nothing": (b"a\nb\n", b"a\nb\n", []),
    "a replaced line": (b"a\nb\nc\n", b"a\nB\nc\n", [[2, 2]]),
    "inserted lines": (b"a\nd\n", b"a\nb\nc\nd\n", [[2, 3]]),
    "two places": (b"a\nb\nc\nd\ne\n", b"A\nb\nc\nD\nDD\ne\n", [[1, 1], [4, 5]]),
    "at the end": (b"a\n", b"a\nb\n", [[2, 2]]),
    "a deleted line": (b"a\nb\nc\nd\n", b"a\nc\nd\n", [[2, 2]]),
    "a deletion before a comment": (b"a\nb\n\n# c\nd\n", b"a\n\n# c\nd\n", [[4, 4]]),
    "a deletion that ends a block": (b"if a:\n    b\n    c\nd\n", b"if a:\n    b\nd\n", [[2, 2]]),
    "a deletion at the end": (b"a\nb\n", b"a\n", [[1, 1]]),
    "only comments are left": (b"a\n# b\n", b"# b\n", [[1, 1]]),
    "everything is gone": (b"a\n", b"", []),
    "carriage returns": (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n", [[2, 2]]),
    "a form feed ends no line": (b"a\x0c\nb\n", b"a\x0c\nB\n", [[2, 2]]),
    "a line separator ends no line": ("a = '\u2028'\nb\n".encode(), "a = '\u2028'\nB\n".encode(), [[2, 2]]),
}


@pytest.mark.parametrize("what", RANGES)
def test_the_changed_lines(what: str) -> None:
    before, after, expected = RANGES[what]
    assert changed(before, after) == expected


def test_a_plan_for_this_machine(tmp_path: Path) -> None:
    tree(tmp_path, "p/setup.py", "p/pkg/__init__.py", "p/pkg/model.py", "p/pkg/same.py")
    model, same = tmp_path / "p/pkg/model.py", tmp_path / "p/pkg/same.py"
    case = Case("vision", str(tmp_path / "vision.py"), "batch", True, 1e-4, "cuda", "bfloat16")
    options = Options(
        command=("fix-compile", "--test", "pkg"),
        base=str(tmp_path / "p"),
        paths=(str(tmp_path / "p/pkg"),),
        modes=("default", "reduce-overhead"),
        promise="tolerance",
        quick=True,
        seconds=30,
        memory=2**30,
    )
    results = [*patched(model), *patched(same, after=OLD), FileResult("broken.py", error="no such file")]
    file = write(tmp_path / "out", results, [case], options)
    assert file == tmp_path / "out" / "plan.json"
    document = read(file)
    [entry] = document.pop("overlay")
    assert (tmp_path / "out" / entry.pop("patched")).read_bytes() == NEW
    assert entry == {
        "file": os.path.realpath(model),
        "shown": "pkg/model.py",
        "before": plan._sha256(OLD),
        "after": plan._sha256(NEW),
        "changed": [[1, 2]],
    }
    [told] = document.pop("cases")
    assert told == {
        "name": "vision",
        "file": str(tmp_path / "vision.py"),
        "vary": "batch",
        "train": True,
        "tolerance": 1e-4,
        "device": "cuda",
        "dtype": "bfloat16",
    }
    assert document.pop("tool").startswith("fix-compile ")
    assert document.pop("tree")["digest"] == digest(results, options)
    assert document == {
        "schema": 1,
        "command": ["fix-compile", "--test", "pkg"],
        "base": str(tmp_path / "p"),
        "path": [str(tmp_path / "p")],
        "modes": ["default", "reduce-overhead"],
        "backend": "inductor",
        "promise": "tolerance",
        "quick": True,
        "verbose": False,
        "seconds": 30,
        "memory": 2**30,
    }
    assert files_in(tmp_path / "out") == {"plan.json", "patched/00001.model.py"}
    assert model.read_bytes() == OLD


def test_what_is_asked_for_is_in_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = Options(repeat=True, keep=True, reuse="a/work", trace="t", probes=("fullgraph",))
    document = read(write(tmp_path / "out", [], [], options))
    asked = {"repeat": True, "keep": True, "probes": ["fullgraph"]}
    assert asked.items() <= document.items()
    assert (document["reuse"], document["trace"]) == (str(tmp_path / "a/work"), str(tmp_path / "t"))


def test_what_a_case_leaves_open_is_null(tmp_path: Path) -> None:
    [told] = read(write(tmp_path / "out", [], [Case("a", "/a.py")], Options()))["cases"]
    assert {key for key, value in told.items() if value is None} == {"vary", "train", "tolerance", "device", "dtype"}


@pytest.mark.parametrize(
    "after",
    [b"\xef\xbb\xbfx = 1\r\ny = '\xc3\xa9'\r\n", b"# coding: latin-1\nx = '\xe9'\n", b"x = 1\r\ny = 2\rz = 3\n\x0c"],
)
def test_patched_bytes_are_written_as_they_are(after: bytes, tmp_path: Path) -> None:
    tree(tmp_path, "m.py")
    [entry] = read(write(tmp_path / "out", patched(tmp_path / "m.py", after=after), [], Options()))["overlay"]
    assert (tmp_path / "out" / entry["patched"]).read_bytes() == after


def test_a_file_that_is_reached_through_a_link_is_overlaid_where_it_is(tmp_path: Path) -> None:
    tree(tmp_path, "real/m.py", "here/")
    (tmp_path / "here/models").symlink_to(tmp_path / "real")
    results = patched(tmp_path / "here/models/m.py", tmp_path / "real/m.py")
    document = read(write(tmp_path / "out", results, [], Options(base=str(tmp_path / "here"))))
    assert [entry["file"] for entry in document["overlay"]] == [os.path.realpath(tmp_path / "real/m.py")]


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there")
def test_any_file_name_gets_into_a_plan(tmp_path: Path) -> None:
    name = tmp_path / os.fsdecode(b"mod\xff \xc3\xa9;x.py")
    name.write_bytes(OLD)
    [entry] = read(write(tmp_path / "out", patched(name), [], Options(base=str(tmp_path))))["overlay"]
    assert entry["patched"] == "patched/00001.mod____x.py"
    assert Path(entry["file"]).read_bytes() == OLD


def test_packages_with_changes_below_a_plain_folder_can_be_imported(tmp_path: Path) -> None:
    tree(tmp_path, "p/pyproject.toml", "p/python/pkg/__init__.py", "p/python/pkg/m.py", "p/scripts/run.py")
    results = patched(tmp_path / "p/python/pkg/m.py", tmp_path / "p/scripts/run.py")
    document = read(write(tmp_path / "out", results, [], Options(paths=(str(tmp_path / "p"),))))
    assert document["path"] == [str(tmp_path / "p"), str(tmp_path / "p/python")]


def installed(tmp_path: Path) -> tuple[Path, Options]:
    """Packages in a site-packages folder: a package, a package in a namespace, and a module."""
    site = tmp_path / "env/lib/site-packages"
    tree(
        site, "big/__init__.py", "big/models/__init__.py", "big/models/llama.py", "ns/part/__init__.py", "ns/part/m.py"
    )
    tree(site, "single.py", "other/__init__.py")
    packages = {"big.models": site / "big/models", "ns.part.m": site / "ns/part/m.py", "single": site / "single.py"}
    return site, Options(base=str(tmp_path), paths=tuple(map(str, packages.values())), packages=packages)


def test_files_of_installed_packages_are_found_by_the_package(tmp_path: Path) -> None:
    site, options = installed(tmp_path)
    results = patched(site / "big/models/llama.py", site / "ns/part/m.py", site / "single.py")
    document = read(write(tmp_path / "out", results, [], options))
    places = [{key: e[key] for key in ("package", "within", "file", "shown") if key in e} for e in document["overlay"]]
    assert places == [
        {"package": "big", "within": "models/llama.py", "shown": "big/models/llama.py"},
        {"package": "ns.part", "within": "m.py", "shown": "ns/part/m.py"},
        {"file": os.path.realpath(site / "single.py"), "shown": "env/lib/site-packages/single.py"},
    ]
    assert document["path"] == [str(site)]


def test_the_digest_names_the_patch(tmp_path: Path) -> None:
    tree(tmp_path, "p/a.py", "p/b.py", "q/a.py", "q/b.py")
    one, two = patched(tmp_path / "p/a.py", tmp_path / "p/b.py"), patched(tmp_path / "q/a.py", tmp_path / "q/b.py")
    here, there = Options(base=str(tmp_path / "p")), Options(base=str(tmp_path / "q"))
    named = digest(one, here)
    assert named == digest(one[::-1], here) == digest(two, there)
    unchanged = FileResult("c.py", OLD, OLD)
    assert digest([*one, unchanged], here) == named
    assert digest(one[:1], here) != named
    assert digest(patched(tmp_path / "p/a.py", tmp_path / "p/b.py", after=NEW + b"\n"), here) != named
    assert digest(one, Options(base=str(tmp_path))) != named
    assert named == "4170804ff1ddee3f7443d4a73a0fc5e54517375607611d9a3327c83d18b2ea27"


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    ended = subprocess.run(["git", "-C", str(folder), *named, *arguments], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def test_the_commit_of_a_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "pkg/m.py")
    try:
        git(tmp_path, "init")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("git is not installed")
    assert commit(tmp_path / "pkg") == (None, None)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit(tmp_path / "pkg/m.py") == (head, False)
    tree(tmp_path, "pkg/notes.txt")
    assert commit(tmp_path / "pkg") == (head, False)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another"))
    assert commit(tmp_path / "pkg") == (head, False)
    tree(tmp_path, "pkg/sub/new.py")
    assert commit(tmp_path / "pkg") == (head, True)
    (tmp_path / "pkg/sub/new.py").unlink()
    (tmp_path / "pkg/m.py").write_bytes(NEW)
    assert commit(tmp_path) == (head, True)
    monkeypatch.setenv("PATH", "")
    assert commit(tmp_path) == (None, None)


def test_where_a_package_is_installed() -> None:
    click = locate("click", sys.executable)
    assert click.is_dir()
    assert (click / "core.py").is_file()
    assert locate("click.core", sys.executable) == click / "core.py"
    assert locate("libcst.matchers", sys.executable).name == "matchers"


@pytest.fixture
def python_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the interpreter imports from."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    tree(tmp_path, "lib/")
    return tmp_path / "lib"


def test_a_package_is_located_without_being_run(python_path: Path) -> None:
    tree(python_path, "loud/__init__.py", "loud/deep/__init__.py", "loud/deep/m.py", "space/a/b/__init__.py")
    for file in python_path.rglob("*.py"):
        file.write_text("raise SystemExit(3)\n")
    for name, place in {"loud": "loud", "loud.deep": "loud/deep", "loud.deep.m": "loud/deep/m.py"}.items():
        assert locate(name, sys.executable) == python_path / place
    assert locate("space.a.b", sys.executable) == python_path / "space/a/b"


def test_the_working_folder_is_no_place_for_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "click/__init__.py", "json/__init__.py")
    monkeypatch.chdir(tmp_path)
    assert not locate("click", sys.executable).is_relative_to(tmp_path)


MISSING = {
    "no_such_package": "no package 'no_such_package' is installed for ",
    "no-name": "'no-name' is no name of a package",
    "": "'' is no name of a package",
    ".relative": "'.relative' is no name of a package",
    "click.nothing.more": "there is no 'nothing' in package 'click'",
    "click.core.more": "there is no 'more' in package 'click.core'",
    "sys": "'sys' is a part of Python",
    "json.decoder": "'json' is a part of Python",
    "space": "'space' is a namespace package, which has no files of its own",
    "space.inner": "'space.inner' is a namespace package",
    "zipped": "'zipped' is not installed as files but inside of ",
    "compiled": "'compiled' is compiled, there is no Python source: ",
}


@pytest.mark.parametrize("name", MISSING)
def test_why_a_package_cannot_be_patched(name: str, python_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(python_path, "space/inner/more/", f"compiled{sys.implementation.cache_tag and '.abi3.so'}")
    with zipfile.ZipFile(python_path / "archive.zip", "w") as archive:
        archive.writestr("zipped/__init__.py", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(python_path), str(python_path / "archive.zip")]))
    with pytest.raises(PackageError) as caught:
        locate(name, sys.executable)
    assert MISSING[name] in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_an_interpreter_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="python-9 cannot be asked for packages: No such file"):
        locate("click", str(tmp_path / "python-9"))
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho first >&2\necho 'it is broken' >&2\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(PackageError, match=r"broken cannot be asked for package 'click': it is broken$"):
        locate("click", str(broken))


def test_both_sides_of_a_change(tmp_path: Path) -> None:
    """Files that only one side has, and bytes for the side that is not on disk; imports start from the paths alone."""
    (tmp_path / "other").mkdir()
    for name in ("m.py", "other/new.py"):
        (tmp_path / name).write_text("y\n")
    results = [
        FileResult(str(tmp_path / "m.py"), b"x\n", b"y\n"),
        FileResult(str(tmp_path / "other/new.py"), b"", b"y\n", created=True),
        FileResult(str(tmp_path / "old.py"), b"x\n", b"", removed=True),
    ]
    for on_disk in ("original", "patched"):
        options = Options(paths=(str(tmp_path / "m.py"),), on_disk=on_disk)
        document = read(write(tmp_path / on_disk, results, [], options))
        assert document["on_disk"] == on_disk
        assert str(tmp_path / "other") not in document["path"]
        sides = [(e["shown"], bool(e["before"]), bool(e["after"]), e.get("patched"), e.get("original"))
                 for e in document["overlay"]]  # fmt: skip
        served = on_disk == "patched"
        assert [(Path(shown).name, *rest) for shown, *rest in sides] == [
            ("m.py", True, True, "patched/00001.m.py", "original/00001.m.py" if served else None),
            ("new.py", False, True, "patched/00002.new.py", None),
            ("old.py", True, False, None, "original/00003.old.py" if served else None),
        ]
