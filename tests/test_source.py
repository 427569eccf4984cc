"""Bytes in and out, which files are found, and how one is replaced."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from patcher.edit.suppress import suppressions
from patcher.files import atomic, source
from patcher.files.atomic import ReplaceError, replace
from patcher.files.discover import Entry, Exclude, discover
from patcher.files.source import SourceError, decode, encode, may_matter, read

KEPT = {
    "plain": b"x = 1\n",
    "empty": b"",
    "crlf": b"x = 1\r\ny = 2\r\n",
    "mixed newlines": b"x = 1\r\ny = 2\nz = 3\rw = 4\n",
    "byte order mark": b"\xef\xbb\xbfx = 1\n",
    "byte order mark and cookie": b"\xef\xbb\xbf# -*- coding: utf-8 -*-\r\nx = 'h\xc3\xa9'\n",
    "latin-1 cookie": b"# -*- coding: latin-1 -*-\nx = 'h\xe9'\n",
    "cookie on line two": b"#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n",
    "shift-jis": "# coding: shift_jis\nx = '表示'\n".encode("shift_jis"),
    "form feed and tabs": b"\x0c\nif x:\n\ty = 1\x0c\n\n\n",
    "no final newline": b"x = 1\n# end",
    "line separators in strings": "x = '\u2028\x85\x1c'\n".encode(),
}

REFUSED = {
    "null byte": (b"x = 1\ny = '\0'\n", "line 2: contains a null byte"),
    "invalid utf-8": (b"x = 1\ny = 2\nz = '\xff'\n", "line 3: byte 0xff is not valid UTF-8"),
    "invalid utf-8 at once": (b"\xff\xfex = 1\n", "line 1: byte 0xff is not valid UTF-8"),
    "cut off utf-8": (b"x = '\xc3", "line 1: byte 0xc3 is not valid UTF-8"),
    "unknown cookie": (b"# coding: klingon\nx = 1\n", "that Python does not know (klingon)"),
    "invalid for its cookie": (b"# coding: ascii\nx = '\xe9'\n", "line 2: byte 0xe9 is not valid ascii"),
    "no text encoding": (b"# coding: rot13\nx = 1\n", "no text encoding"),
    "two minds": (b"\xef\xbb\xbf# coding: latin-1\nx = 1\n", "something else"),
    "does not come back": (b"# coding: utf-7\nx = '+AGEAYg-'\n", "byte for byte"),
}


@pytest.mark.parametrize("data", KEPT.values(), ids=KEPT)
def test_bytes_come_back(data: bytes) -> None:
    text, encoding = decode(data)
    assert encode(text, encoding) == data
    assert not text.startswith("\ufeff")


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_in_one_line(data: bytes, message: str) -> None:
    with pytest.raises(SourceError) as error:
        decode(data)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_character_that_the_encoding_lacks() -> None:
    with pytest.raises(SourceError, match="cannot be written in latin-1"):
        encode("x = '表'", "latin-1")


def test_prefilter() -> None:
    assert may_matter(b"x.expand(1)", [(b"arange",), (b"expand",)])
    assert not may_matter(b"x.view(1)", [(b"arange",), (b"expand",)])
    assert may_matter(b"", [()])
    assert not may_matter(b"x", [])


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.py"
    with pytest.raises(SourceError, match="cannot be read: no such file"):
        read(str(file))
    file.write_bytes(b"x = 1\n")

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(SourceError, match="cannot be read: permission denied"):
        read(str(file))


def test_changing_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.py"
    file.write_bytes(b"x = 1\n")
    true = os.fstat

    def fstat(handle: int) -> os.stat_result:
        with file.open("ab") as more:
            more.write(b"y = 2\n")
        return true(handle)

    monkeypatch.setattr(source.os, "fstat", fstat)
    with pytest.raises(SourceError, match="changed while it was being read"):
        read(str(file))


def test_a_file_that_another_run_replaces_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, other = tmp_path / "x.py", tmp_path / "other"
    file.write_bytes(b"x = 1\n")
    true, replaced = os.fstat, list[int]()

    def fstat(handle: int) -> os.stat_result:
        if not replaced:
            replaced.append(handle)
            other.write_bytes(b"x = 2\n")
            other.replace(file)
        return true(handle)

    monkeypatch.setattr(source.os, "fstat", fstat)
    assert read(str(file)).data == b"x = 2\n"


def found(*paths: Path | str, exclude: Exclude | None = None) -> list[str]:
    return [entry.path for entry in discover([str(path) for path in paths], exclude) if not entry.error]


def errors(*paths: Path | str) -> dict[str, str]:
    return {Path(entry.path).name: entry.error for entry in discover([str(path) for path in paths]) if entry.error}


def tree(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")
    return root


def test_what_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "b.py", "a/z.py", "a/m.py", "a.txt", "build/w.py", "x.py/inner.py")
    tree(tmp_path, ".git/h.py", ".fix-compile/o.py", "__pycache__/p.py", "node_modules/n.py", ".hidden.py")
    tree(tmp_path, "env/pyvenv.cfg", "env/lib/v.py")
    monkeypatch.chdir(tmp_path)
    assert found(".") == ["b.py", "a/m.py", "a/z.py", "build/w.py", "x.py/inner.py"]
    assert found("./a/z.py", "a", "a.txt", "b.py") == ["a/z.py", "a/m.py", "a.txt", "b.py"]
    assert found("env/lib", ".hidden.py") == ["env/lib/v.py", ".hidden.py"]
    assert found(tmp_path / "a") == [str(tmp_path / "a/m.py"), str(tmp_path / "a/z.py")]


def test_exclude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "a.py", "a_pb2.py", "old/b.py", "new/old/c.py", "new/d.py")
    monkeypatch.chdir(tmp_path)
    assert found(".", exclude=Exclude(("*_pb2.py", "old/"))) == ["a.py", "new/d.py"]
    assert found(".", exclude=Exclude(("new/old/*",))) == ["a.py", "a_pb2.py", "new/d.py", "old/b.py"]
    assert found("a_pb2.py", exclude=Exclude(("*_pb2.py",))) == ["a_pb2.py"]


def test_links(tmp_path: Path) -> None:
    tree(tmp_path, "in/m.py", "out/n.py", "out/deep/o.py")
    inside = tmp_path / "in"
    (inside / "a.py").symlink_to("m.py")
    (inside / "b.py").symlink_to("../out/n.py")
    (inside / "c.py").symlink_to("../out/n.py")
    (inside / "folder").symlink_to("../out")
    assert [Path(path).name for path in found(inside)] == ["b.py", "m.py"]
    assert [Path(path).name for path in found(inside / "a.py")] == ["a.py"]
    assert [Path(path).name for path in found(inside / "folder")] == ["n.py", "o.py"]
    assert not errors(inside)


def test_paths_that_are_none(tmp_path: Path) -> None:
    tree(tmp_path, "good.py", "sub/good.py")
    (tmp_path / "broken.py").symlink_to("nowhere.py")
    (tmp_path / "data").symlink_to("nowhere")
    (tmp_path / "one.py").symlink_to("two.py")
    (tmp_path / "two.py").symlink_to("one.py")
    (tmp_path / "sub/loop").symlink_to("..")
    os.mkfifo(tmp_path / "pipe.py")
    assert errors(tmp_path) == {
        "broken.py": "is a broken symbolic link",
        "one.py": "is a circular symbolic link",
        "two.py": "is a circular symbolic link",
        "loop": "is a link to a folder that contains it (a directory loop), not followed",
        "pipe.py": "is not a regular file",
    }
    assert len(found(tmp_path)) == 2
    assert discover(["missing.py"]) == [Entry("missing.py", "no such file or folder")]
    assert "broken" in errors(tmp_path / "broken.py")["broken.py"]
    assert errors(tmp_path / "pipe.py") == {"pipe.py": "is neither a file nor a folder"}
    assert discover(["a\0b"]) == [Entry("a\0b", "is not a path")]


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "a.py", "shut/b.py")
    true = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied")
        return true(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert errors(tmp_path) == {"shut": "the folder cannot be listed: permission denied"}
    assert len(found(tmp_path)) == 1


def test_replace_keeps_mode_and_link(tmp_path: Path) -> None:
    file, link = tmp_path / "x.py", tmp_path / "l.py"
    file.write_bytes(b"old")
    file.chmod(0o754)
    link.symlink_to("x.py")
    assert replace(str(link), b"old", b"new", "t")
    assert file.read_bytes() == b"new"
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o754
    assert not replace(str(link), b"old", b"new", "t")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.py", "x.py"]


@pytest.mark.skipif(os.getuid() != 0 if hasattr(os, "getuid") else True, reason="only root can give files away")
def test_replace_keeps_the_owner(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_bytes(b"old")
    os.chown(file, 12345, 54321)
    replace(str(file), b"old", b"new", "t")
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 54321)


def test_replace_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.py"
    file.write_bytes(b"old")
    with pytest.raises(ReplaceError, match="changed meanwhile"):
        replace(str(file), b"other", b"new", "t")
    with pytest.raises(ReplaceError, match="no such file"):
        replace(str(tmp_path / "y.py"), b"", b"new", "t")
    file.chmod(0o444)
    with pytest.raises(ReplaceError, match="is read-only"):
        replace(str(file), b"old", b"new", "t")
    file.chmod(0o644)
    tmp_path.chmod(0o555)
    with pytest.raises(ReplaceError, match="read-only folder"):
        replace(str(file), b"old", b"new", "t")
    tmp_path.chmod(0o755)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReplaceError, match="no space left"):
        replace(str(file), b"old", b"new", "t")
    assert [path.name for path in tmp_path.iterdir()] == ["x.py"]
    assert file.read_bytes() == b"old"


def test_changed_at_the_last_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.py"
    file.write_bytes(b"old")
    true = atomic.write_new

    def slow(path: str, data: bytes, mode: int) -> None:
        true(path, data, mode)
        file.write_bytes(b"edited")

    monkeypatch.setattr(atomic, "write_new", slow)
    with pytest.raises(ReplaceError, match="changed meanwhile"):
        replace(str(file), b"old", b"new", "t")
    assert file.read_bytes() == b"edited"
    assert [path.name for path in tmp_path.iterdir()] == ["x.py"]


SUPPRESSED = {
    "a code": ("x()  # fix-compile: ignore[FC101] because\n", True),
    "a list": ("x()  # fix-compile: ignore[FC9, FC101]\n", True),
    "a prefix": ("x()  # fix-compile: ignore[fc1]\n", True),
    "a name": ("x()  # fix-compile: ignore[data-dependent-branch]\n", True),
    "all": ("x()  # fix-compile: ignore\n", True),
    "all, with a reason": ("x()  # fix-compile: ignore  [see 5]" + "\n", False),
    "after another comment": ("x()  # noqa: E1  # fix-compile:ignore[FC101]\n", True),
    "whole file": ("x()\n\n# fix-compile: ignore-file[FC101]\n", True),
    "another line": ("x()\ny()  # fix-compile: ignore[FC101]\n", False),
    "another code": ("x()  # fix-compile: ignore[FC102]\n", False),
    "nothing": ("x()  # fix-compile: ignore[]\n", False),
    "never closed": ("x()  # fix-compile: ignore[FC101\n", False),
    "prose": ("x()  # fix-compile: ignored by now\n", False),
    "a string": ("x('# fix-compile: ignore')\n", False),
    "lone carriage returns": ("y()\rz()  # fix-compile: ignore\rx()\n", False),
    "cut off": ("x(  # fix-compile: ignore\n", True),
}


@pytest.mark.parametrize(("text", "expected"), SUPPRESSED.values(), ids=SUPPRESSED)
def test_suppressions(text: str, expected: bool) -> None:
    assert suppressions(text).covers("FC101", "data-dependent-branch", 1, 1) is expected


def test_suppression_on_any_line_of_a_header() -> None:
    ignores = suppressions("if (\n    a  # fix-compile: ignore[FC101]\n):\n    pass\n")
    assert ignores.covers("FC101", "x", 1, 3)
    assert not ignores.covers("FC101", "x", 3, 4)
