"""The user's source trees: where imports start, what belongs together, a copy of it, and its state in git."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from patcher.git import GitError, git

LARGEST = 10 * 2**20  # bytes of a file that is still copied

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_SKIPPED = frozenset({"__pycache__", "node_modules"}) | _INSTALLED
_BUILT = frozenset({"build", "dist"})
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([\w., \t]+))", re.MULTILINE)
_GIT_SECONDS = 10.0


def roots(paths: Iterable[str | Path]) -> tuple[str, ...]:
    """The folders from which the code below ``paths`` is imported: absolute, the most likely first, each once.

    For each path: the ``src`` folder that it is below; of a package, the folder that holds the top-most one; of a plain
    folder, or a file in one, that folder and its ``src``. Last come the folders above, as far as their names can be
    those of namespace packages: up to the project's root, or, outside of a project, one above a plain folder.
    """
    return tuple(dict.fromkeys(str(root) for path in paths for root in _roots_of(absolute(path))))


def absolute(path: str | Path) -> Path:
    """``path`` from the root of the file system; links stay, except below ``..``, which would lead elsewhere."""
    path = Path(path)
    return path.resolve() if os.pardir in path.parts else path.absolute()


def package_of(path: Path) -> Path | None:
    """The folder of the top-most package that ``path`` (absolute) belongs to, if it does to any."""
    folder = _folder_of(path)
    while not _is_package(folder):  # a plain folder inside a package belongs to it
        if not folder.name.isidentifier() or _is_project(folder):
            return None
        folder = folder.parent
    while _is_package(folder.parent):
        folder = folder.parent
    return folder


def is_installation(path: Path) -> bool:
    """Whether ``path`` is a folder that packages are installed into."""
    return path.name in _INSTALLED and path.is_dir()


def belongings(path: Path) -> list[Path]:
    """What goes along with ``path`` (absolute): its top-most package, or the folder, or the Python files beside it."""
    package = package_of(path)
    return [package] if package else [path] if path.is_dir() else beside(path)


def beside(file: Path) -> list[Path]:
    """A file and the other Python files in its folder; of a module among installed packages, only itself."""
    others = [] if is_installation(file.parent) else sorted(file.parent.glob("*.py"))
    return list(dict.fromkeys([file, *others]))


def needed(
    pieces: Iterable[Path], folders: Sequence[Path], skip: Callable[[Path], bool] = lambda folder: False
) -> tuple[Path, ...]:
    """``pieces`` (files and folders), and the modules and packages of ``folders`` that they import, and so on.

    By the words of the import statements alone. Of folders with installed packages nothing is taken. ``skip``: folders
    not to look into.
    """
    found = list(dict.fromkeys(pieces))
    looked_for = set(sys.stdlib_module_names)
    for piece in found:  # grows while it is gone through
        for file in _python_files(piece, skip):
            for name in sorted(_imported(file) - looked_for):
                looked_for.add(name)
                modules = [module for folder in folders for module in _module(folder, name)]
                found += [module for module in modules if not any(module.is_relative_to(known) for known in found)]
    return tuple(found)


def copy_tree(source: Path, target: Path, skip: Callable[[Path], bool] = lambda folder: False) -> tuple[str, ...]:
    """Copy a folder and return what was left out: files of more than ``LARGEST`` bytes and unreadable ones, by name.

    What is hidden, virtual environments, installed packages, caches and build output are passed over, links to folders
    too; of a link to a file the contents are copied. ``skip``: further folders. Raises ``OSError`` when ``target``
    cannot be written.
    """
    left: list[str] = []
    own = target.resolve()
    target.mkdir(parents=True, exist_ok=True)
    for file in _files(source, lambda folder: folder.resolve() == own or skip(folder), left):
        relative = file.relative_to(source)
        if not copy_file(file, target / relative):
            left.append(relative.as_posix())
    return tuple(sorted(left))


def copy_file(source: Path, target: Path) -> bool:
    """Copy a file's bytes; False where it is too large or cannot be read. Raises ``OSError`` as ``copy_tree`` does."""
    try:
        if source.stat().st_size > LARGEST:
            return False
        data = source.read_bytes()
    except OSError:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return True


def commit(path: str | Path) -> tuple[str | None, bool | None]:
    """The commit that is checked out where ``path`` is, and whether the tree differs from it; None: not known.

    A tree differs when a tracked file does, or when there is a new Python file in the folder of ``path``.
    """
    folder = str(_folder_of(absolute(path)))
    head = _git(folder, "rev-parse", "--verify", "HEAD")
    if head is None:
        return None, None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    if changed is None or changed:
        return head, None if changed is None else True
    new = _git(folder, "ls-files", "--others", "--exclude-standard", "--", "*.py")
    return head, None if new is None else bool(new)


def _roots_of(path: Path) -> Iterator[Path]:
    folder = _folder_of(path)
    package, project = package_of(path), _project_of(folder)
    above = [parent for parent in folder.parents if project is None or project in parent.parents]
    yield from [parent for parent in above if parent.name == "src"][:1]
    if not _is_package(folder):
        yield folder
        if (folder / "src").is_dir():
            yield folder / "src"
    start = package.parent if package else folder
    yield start
    if package and project and project.is_relative_to(package):
        yield project  # a project that is a package itself is also used from inside
    elif project:
        while start != project and start.name.isidentifier():
            start = start.parent
            yield start
    elif not package and start.name.isidentifier():
        yield start.parent


def _folder_of(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _is_package(folder: Path) -> bool:
    return folder.name.isidentifier() and (folder / "__init__.py").is_file()


def _is_project(folder: Path) -> bool:
    return any((folder / marker).exists() for marker in _MARKERS)


def _project_of(folder: Path) -> Path | None:
    return next((candidate for candidate in (folder, *folder.parents) if _is_project(candidate)), None)


def _module(folder: Path, name: str) -> list[Path]:
    """What ``import name`` can find in ``folder``."""
    if is_installation(folder):
        return []
    package, module = folder / name, folder / f"{name}.py"
    if _is_package(package):
        return [package]
    if module.is_file():
        return [module]
    # A namespace package gives way to an installed one, which the clone of a project here usually stands for.
    sourced = any(any(package.glob(pattern)) for pattern in ("*.py", "*/*.py"))
    return [package] if sourced and not _is_project(package) else []


def _imported(file: Path) -> set[str]:
    """The first words of the absolute imports in a file, by its text: it need not be valid."""
    try:
        data = file.read_bytes()
    except OSError:
        return set()
    named = [start or names for start, names in _IMPORT.findall(data)]
    words = (word.strip().partition(b".")[0].split() for names in named for word in names.split(b","))
    return {word[0].decode("ascii", "replace") for word in words if word}


def _python_files(piece: Path, skip: Callable[[Path], bool]) -> Iterator[Path]:
    if piece.is_dir():
        yield from (file for file in _files(piece, skip, []) if file.suffix == ".py")
    else:
        yield piece


def _files(top: Path, skip: Callable[[Path], bool], unreadable: list[str]) -> Iterator[Path]:
    """The files that belong to a tree; the names of folders that cannot be listed are added to ``unreadable``."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            inside = sorted(folder.iterdir())
        except OSError:
            unreadable.append(folder.relative_to(top).as_posix())
            continue
        project = any(entry.name in _MARKERS for entry in inside)
        for entry in inside:
            if entry.name.startswith(".") or entry.name in _SKIPPED or entry.name.endswith((".egg-info", ".pyc")):
                continue
            try:
                mode = entry.stat().st_mode
            except OSError:
                unreadable.append(entry.relative_to(top).as_posix())
                continue
            if stat.S_ISREG(mode):
                yield entry
            elif stat.S_ISDIR(mode) and not entry.is_symlink():
                built = project and entry.name in _BUILT and not (entry / "__init__.py").exists()
                environment = (entry / "pyvenv.cfg").exists() or (entry / "conda-meta").exists()
                if not built and not environment and not skip(entry):
                    waiting.append(entry)


def _git(folder: str, *arguments: str) -> str | None:
    """What git says; None where it is not installed, knows no repository there, or takes too long."""
    try:
        return git(folder, *arguments, seconds=_GIT_SECONDS).decode("utf-8", "replace").strip()
    except GitError:
        return None
