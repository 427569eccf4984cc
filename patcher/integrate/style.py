"""Where the import of the new module goes in a script."""

from __future__ import annotations

import ast
from pathlib import Path

from patcher.files.lines import split_lines


def with_import(text: str, statement: str, folder: str) -> str:
    """``text`` with an import of the new module below its other imports; apart from those of other packages."""
    tree = ast.parse(text)
    lines = split_lines(text)
    at, local = _below_imports(tree, folder, statement)
    if not at:  # what the first lines say of the file stays above: how it is run, how it is encoded
        at = next((i for i, line in enumerate(lines) if not line.lstrip("\ufeff").startswith("#")), 0)
    ending = next((line[len(line.rstrip("\r\n")) :] for line in lines if line.endswith(("\n", "\r"))), "\n")
    apart = [] if local or not at else [ending]
    return "".join([*lines[:at], *apart, statement + ending, *lines[at:]])


def _below_imports(tree: ast.Module, folder: str, new: str) -> tuple[int, bool]:
    """The line below which the import ``new`` goes, and whether the import there is one of a neighbour."""
    at, local = 0, False
    module = new.rpartition(" ")[2]
    for number, statement in enumerate(tree.body):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            break
        if any(isinstance(n, ast.Name) and n.id == module for n in ast.walk(statement)):
            break  # it is used here, and some imports come later
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            at, local = statement.end_lineno or 0, _is_local(statement, folder, new)
        elif number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            at = statement.end_lineno or 0
    return at, local


def _is_local(statement: ast.Import | ast.ImportFrom, folder: str, new: str) -> bool:
    """Whether it imports what lies beside the script, or what is of the package of ``new``."""
    if isinstance(statement, ast.ImportFrom) and statement.level:
        return True
    said = statement.module or "" if isinstance(statement, ast.ImportFrom) else statement.names[0].name
    if new.startswith("from ") and new.split()[1].partition(".")[0] == said.partition(".")[0]:
        return True
    top = Path(folder) / said.partition(".")[0]
    return top.is_dir() or top.with_suffix(".py").is_file()
