"""A file's bytes are exchanged whole: a reader, a crash or a second run sees the old file or the new one."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from patcher.files.source import reason

CHANGED_MEANWHILE = "changed meanwhile, left alone; run again"


class ReplaceError(Exception):
    """A file that was left as it was; the message is one line and says why."""


def replace(path: str, expected: bytes, data: bytes, label: str) -> bool:
    """Put ``data`` in the place of ``expected``; False when it was there already.

    A link stays a link to the file that is replaced; mode bits, owner and extended attributes are kept. ``label`` is
    part of the temporary file's name, by which ``remove_leftovers`` finds it after a crash. Raises ``ReplaceError``.
    """
    real = os.path.realpath(path)
    try:
        status = os.stat(real)
        current = _current(real, status)
        if current == data:
            return False
        if current != expected:
            raise ReplaceError(CHANGED_MEANWHILE)
        _refuse_read_only(real, status)
        temporary = _written_beside(real, data, status, label)
        try:
            if _current(real, os.stat(real)) != expected:
                raise ReplaceError(CHANGED_MEANWHILE)
            os.replace(temporary, real)
        except BaseException:
            _remove(temporary)
            raise
    except OSError as error:
        raise ReplaceError(f"cannot be replaced: {reason(error)}") from None
    sync_folder(os.path.dirname(real))
    return True


def create(path: str, data: bytes, mode: int = 0o644) -> None:
    """Write a file that a crash cannot leave half written; raises ``OSError``. An old file of that name is replaced."""
    temporary = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        write_new(temporary, data, mode)
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise
    sync_folder(os.path.dirname(path) or os.curdir)


def create_absent(path: str, data: bytes, label: str, mode: int = 0o644) -> None:
    """The same where nothing of that name is; else ``ReplaceError``. ``label``: as `replace` has it."""
    temporary = os.path.join(os.path.dirname(path), f".fix-compile-{label}-{secrets.token_hex(4)}.tmp")
    try:
        write_new(temporary, data, mode)
        try:
            os.link(temporary, path)  # fails where there is one, unlike a renaming
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            write_new(path, data, mode)
        finally:
            _remove(temporary)
    except FileExistsError:
        raise ReplaceError("is there already, left alone; run again") from None
    except OSError as error:
        raise ReplaceError(f"cannot be written: {reason(error)}") from None
    sync_folder(os.path.dirname(path) or os.curdir)


def write_new(path: str, data: bytes, mode: int = 0o644) -> None:
    """Write a file that is not there yet, down to the disk; raises ``OSError``."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: str) -> None:
    """Make the names in ``folder`` durable, where the platform can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_leftovers(folder: str, label: str) -> None:
    """Remove the temporary files that a killed run with this label has left in ``folder``."""
    for leftover in Path(folder).glob(f".fix-compile-{label}-*.tmp"):
        _remove(str(leftover))


def _current(real: str, status: os.stat_result) -> bytes:
    if not stat.S_ISREG(status.st_mode):
        raise ReplaceError(CHANGED_MEANWHILE)
    return Path(real).read_bytes()


def why_not(path: str) -> str:
    """Why ``path`` could not be replaced as it is now, or nothing."""
    real = os.path.realpath(path)
    try:
        _refuse_read_only(real, os.stat(real))
    except ReplaceError as error:
        return str(error)
    except OSError as error:
        return reason(error)
    return ""


def _refuse_read_only(real: str, status: os.stat_result) -> None:
    """The mode bits count for root too: who took the write bit away meant it."""
    folder = os.path.dirname(real)
    if not status.st_mode & 0o222 or not os.access(real, os.W_OK):
        raise ReplaceError("is read-only, left alone")
    if not os.stat(folder).st_mode & 0o222 or not os.access(folder, os.W_OK | os.X_OK):
        raise ReplaceError("is in a read-only folder, left alone")


def _written_beside(real: str, data: bytes, like: os.stat_result, label: str) -> str:
    temporary = os.path.join(os.path.dirname(real), f".fix-compile-{label}-{secrets.token_hex(4)}.tmp")
    try:
        write_new(temporary, data, 0o600)
        _keep_owner(temporary, like)
        _keep_attributes(real, temporary)
        os.chmod(temporary, stat.S_IMODE(like.st_mode))
    except BaseException:
        _remove(temporary)
        raise
    return temporary


def _keep_owner(temporary: str, like: os.stat_result) -> None:
    made = os.stat(temporary)
    if hasattr(os, "chown") and (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.chown(temporary, like.st_uid, like.st_gid)
        except OSError:
            raise ReplaceError(
                "belongs to another user or group, who would lose it by the rewrite; left alone"
            ) from None


def _keep_attributes(real: str, temporary: str) -> None:
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(real):
                os.setxattr(temporary, name, os.getxattr(real, name))


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
