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
    package = _package(Path(script.path))
    same_folder = Path(file.path).absolute().parent == Path(script.path).absolute().parent
    if package and same_folder and any(n.level == 1 for n in _from(file.tree)):
        return f"from . import {module}"
    if package and (_names(script.tree, package) or any(n.level for n in _from(script.tree))):
        return f"from {package} import {module}"
    return f"import {module}"


def _package(path: Path) -> str:
    """The dotted package that a file is in; "" for none."""
    parts: list[str] = []
    folder = path.absolute().parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def _from(tree: ast.Module) -> list[ast.ImportFrom]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]


def _names(tree: ast.Module, package: str) -> bool:
    """Whether a file imports something by the name of its own package."""
    top = package.partition(".")[0]
    said = [n.module or "" for n in _from(tree) if not n.level]
    said += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    return any(name.partition(".")[0] == top for name in said)
