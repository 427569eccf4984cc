"""How a file imports a module that lies beside a script: as it imports its neighbours."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Spelling:
    """A file, parsed."""

    path: str
    tree: ast.Module


def spelled(file: Spelling, script: Spelling, module: str) -> str:
    """The statement by which ``file`` imports ``module``, which lies beside ``script``.

    A script finds its neighbours by their names alone; a module of a package by the package, relatively where the file
    does so itself.
    """
    package = _package(Path(script.path), script.tree)
    same_folder = Path(file.path).absolute().parent == Path(script.path).absolute().parent
    if package and same_folder and any(n.level == 1 for n in _from(file.tree)):
        return f"from . import {module}"
    if package and (_names(script.tree, package) or any(n.level for n in _from(script.tree))):
        return f"from {package} import {module}"
    return f"import {module}"


def _package(path: Path, tree: ast.Module) -> str:
    """The dotted package that a file is in; "" for none.

    A folder without ``__init__.py`` counts where one around it is a package that the file imports from.
    """
    folders = [folder for folder in path.absolute().parents if folder.name]
    known = [(folder / "__init__.py").is_file() for folder in folders]
    first = next((i for i, is_one in enumerate(known[:3]) if is_one), None)
    if first is None:
        return ""
    end = next(i for i in range(first, len(known) + 1) if i == len(known) or not known[i])
    parts = [folder.name for folder in reversed(folders[:end])]
    return ".".join(parts) if not first or _names(tree, parts[0]) else ""


def _from(tree: ast.Module) -> list[ast.ImportFrom]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]


def _names(tree: ast.Module, package: str) -> bool:
    """Whether a file imports something by the name of its own package."""
    top = package.partition(".")[0]
    said = [n.module or "" for n in _from(tree) if not n.level]
    said += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    return any(name.partition(".")[0] == top for name in said)
