"""Source files in and out: bytes to text and back, byte for byte."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


class SourceError(Exception):
    """A file that cannot be worked on; the message is one line and says why."""


_READS = 3  # times, where another run replaces the file


@dataclass(frozen=True)
class Source:
    """A file as it was read: ``text`` has the file's own newlines and no byte order mark, which ``encoding`` adds."""

    path: str
    data: bytes = field(repr=False)
    text: str = field(repr=False)
    encoding: str


def read(path: str) -> Source:
    """Read and decode one file; raises ``SourceError`` when it is unreadable, undecodable or changing under us."""
    return source_of(path, read_bytes(path))


def source_of(path: str, data: bytes) -> Source:
    """The file ``path`` with these bytes; raises ``SourceError`` as ``decode`` does."""
    text, encoding = decode(data)
    return Source(path, data, text, encoding)


def read_bytes(path: str) -> bytes:
    """The bytes of one file; raises ``SourceError`` when it is unreadable, or goes on changing under us."""
    try:
        for _ in range(_READS):
            if (data := _read(path)) is not None:
                return data
    except OSError as error:
        raise SourceError(f"cannot be read: {reason(error)}") from None
    raise SourceError("changed while it was being read, left alone; run again")


def _read(path: str) -> bytes | None:
    """The bytes of one file; None where they, or the file, changed meanwhile."""
    before = os.stat(path)
    if not stat.S_ISREG(before.st_mode):  # opening a pipe would wait for ever
        raise SourceError("is not a regular file")
    with open(path, "rb") as file:
        data = file.read()
        after = os.fstat(file.fileno())
    same = _mark(before) == _mark(after) == _mark(os.stat(path)) and len(data) == after.st_size
    return data if same else None


def digest_of(data: bytes) -> bytes:
    """By which bytes are told apart: sha256, which processors have instructions for."""
    return hashlib.sha256(data).digest()


def decode(data: bytes) -> tuple[str, str]:
    """``data`` as (text, encoding), by its byte order mark or coding comment (PEP 263), else as UTF-8.

    Newlines stay as they are. Raises ``SourceError`` when ``encode`` would not give ``data`` back.
    """
    null = data.find(b"\0")
    if null >= 0:
        raise SourceError(f"line {_line(data, null)}: contains a null byte, so it is not Python source")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise SourceError(_why_no_encoding(data, error)) from None
    try:
        text = data.decode(encoding)
        same = text.encode(encoding) == data
    except UnicodeDecodeError as error:
        raise SourceError(_undecodable(data, error.start, encoding)) from None
    except (ValueError, LookupError, TypeError):
        raise SourceError(
            f"the coding comment names {encoding!r}, which is no text encoding for source files"
        ) from None
    if not same:
        raise SourceError(f"does not come back byte for byte from encoding {encoding!r}, so it is left alone")
    return text, encoding


def encode(text: str, encoding: str) -> bytes:
    """``text`` as the bytes of a file; raises ``SourceError`` for a character that ``encoding`` does not have."""
    try:
        return text.encode(encoding)
    except UnicodeError as error:
        raise SourceError(f"the patched text cannot be written in {encoding}: {error}") from None


def may_matter(data: bytes, triggers: Iterable[tuple[bytes, ...]]) -> bool:
    """Whether any rule could have something to say: one of its triggers is there, or it has none."""
    return any(not words or any(word in data for word in words) for words in triggers)


def shown(path: str | Path) -> str:
    """``path`` relative to the working folder when it is below it, whatever links lead there."""
    here, real = (
        Path(os.path.realpath(os.curdir)),
        Path(os.path.realpath(os.path.dirname(path)), os.path.basename(path)),
    )
    return str(real.relative_to(here)) if real.is_relative_to(here) else str(path)


def reason(error: OSError) -> str:
    """What went wrong, in a few lower-case words."""
    text = error.strerror or type(error).__name__
    return text[:1].lower() + text[1:]


def _mark(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _undecodable(data: bytes, offset: int, encoding: str) -> str:
    name = "UTF-8" if encoding.startswith("utf-8") else encoding
    return f"line {_line(data, offset)}: byte 0x{data[offset]:02x} is not valid {name}"


def _why_no_encoding(data: bytes, error: SyntaxError) -> str:
    message = str(error.msg)
    if "unknown encoding" in message:
        return f"the coding comment names an encoding that Python does not know ({message.rpartition(':')[2].strip()})"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as where:
        return _undecodable(data, where.start, "utf-8")
    return "its byte order mark says UTF-8 and its coding comment says something else"
