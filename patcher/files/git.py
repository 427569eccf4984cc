"""What git says of the user's repository. Nothing in it is changed: the index is not even refreshed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SECONDS = 60.0
#: Set inside of a hook, where they may speak of another repository, and of its index.
_NAMED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


class GitError(Exception):
    """What git refuses to do, or that it is not there; the message is one line."""


def git(
    folder: str | Path,
    *arguments: str,
    given: bytes | None = None,
    seconds: float = SECONDS,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """What ``git ARGUMENTS`` prints in ``folder``. ``given``: its standard input. Raises ``GitError``."""
    variables = {key: value for key, value in os.environ.items() if key not in _NAMED}
    variables |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", **(environment or {})}
    command = ["git", "-C", str(folder), "-c", "core.quotePath=false", *arguments]
    try:
        ended = subprocess.run(
            command, input=given or b"", capture_output=True, timeout=seconds, check=False, env=variables
        )
    except FileNotFoundError:
        raise GitError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {arguments[0]} took more than {seconds:.0f} s") from None
    except OSError as error:
        raise GitError(f"git cannot be started: {error.strerror}") from None
    if ended.returncode:
        raise GitError(_first_line(ended.stderr) or f"git {arguments[0]} ended with status {ended.returncode}")
    return bytes(ended.stdout)


def top_of(path: str | Path) -> Path:
    """The folder that the repository around ``path`` has its files in. Raises ``GitError``."""
    folder = Path(path).absolute()
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    try:
        told = git(folder, "rev-parse", "--show-toplevel")
    except GitError as error:
        if "not a git repository" in str(error):
            raise GitError(f"{path} is in no git repository") from None
        raise
    return Path(os.fsdecode(told.rstrip(b"\n")))


def commit_of(top: Path, revision: str) -> str:
    """The commit that a revision stands for. Raises ``GitError``."""
    try:
        told = git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
    except GitError as error:
        if "status" not in str(error):
            raise
        raise GitError(f"there is no revision {revision!r} in {top}") from None
    return told.decode("ascii").strip()


def names(told: bytes) -> list[str]:
    """What a command with ``-z`` has listed."""
    return [os.fsdecode(name) for name in told.split(b"\0") if name]


def untracked(top: Path, *patterns: str) -> list[str]:
    """Files that git does not know, and that it is not told to ignore; relative to ``top``."""
    return names(git(top, "ls-files", "-z", "--others", "--exclude-standard", "--", *patterns))


def contents(top: Path, commit: str, files: Sequence[str]) -> dict[str, bytes]:
    """The bytes that files have in a commit, as far as they are there, by their name relative to ``top``."""
    asked = "".join(f"{commit}:{name}\n" for name in files if "\n" not in name)
    told, found = git(top, "cat-file", "--batch", given=os.fsencode(asked)), {}
    for name in (name for name in files if "\n" not in name):
        head, _, told = told.partition(b"\n")
        words = head.split(b" ")
        if words[-1].isdigit() and words[-2] == b"blob":
            size = int(words[-1])
            found[name], told = told[:size], told[size + 1 :]
        elif words[-1].isdigit():  # a link to another repository, say
            told = told[int(words[-1]) + 1 :]
    return found


def _first_line(said: bytes) -> str:
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith(("error: ", "fatal: "))), next(iter(lines), ""))
    return told.removeprefix("error: ").removeprefix("fatal: ")
