"""What import statements bind: each name with the dotted thing that it stands for, ``*`` among them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from patcher.facts.syntax.packages import Package, is_elsewhere, module_name
from patcher.facts.syntax.stars import file_of, of_python, said


def bindings_of_import(
    node: ast.Import | ast.ImportFrom, package: Package, before: frozenset[Path] = frozenset()
) -> Iterator[tuple[str, str]]:
    """The names that an import binds, with the dotted thing that each stands for, as ``package`` has it.

    ``before``: the files on the way here, from one ``*`` to the next.
    """
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                yield alias.asname, package.meant(alias.name)
            else:
                yield (alias.name.split(".")[0],) * 2
        return
    for alias in node.names:
        if alias.name != "*":
            yield alias.asname or alias.name, _member(node, alias.name, package)
        else:
            yield from (brought(node, package, before) or {}).items()


def imported_from(node: ast.ImportFrom, package: Package) -> str:
    """The dotted module that names are imported from, as ``package`` has it."""
    return _member(node, "", package)


def _member(node: ast.ImportFrom, name: str, package: Package) -> str:
    """What ``name`` of the module that is imported from is; the module itself for an empty one."""
    said_of = ".".join(part for part in (node.module, name) if part)
    return package.meant(package.relative(node.level, said_of) if node.level else said_of)


def has_star(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether ``node`` imports all names of a module."""
    return isinstance(node, ast.ImportFrom) and node.names[0].name == "*"


def brought(node: ast.ImportFrom, package: Package, before: frozenset[Path] = frozenset()) -> Mapping[str, str] | None:
    """Name -> dotted thing for all that ``from m import *`` brings; None where nobody can say.

    That is so where the module is not of this project, and where it gets names in a way that its text does not show.
    """
    key = node.level, node.module or ""
    if key not in package.brought:
        package.brought[key] = _brings(*key, package, before)
    return package.brought[key]


def _brings(level: int, module: str, package: Package, before: frozenset[Path]) -> Mapping[str, str] | None:
    if not level and is_elsewhere(module):
        return of_python(module)
    file = file_of(package.folder, package.name, level, module) if package.folder is not None else None
    told = said(file) if file is not None else None
    if file is None or told is None:
        return None
    package.read.add(file)
    if file in before or not told.known:
        return None
    name, own = module_name(str(file))
    found: dict[str, str] = {}
    for statement in told.imports:
        if has_star(statement) and brought(statement, own, before | {file}) is None:  # type: ignore[arg-type]
            package.read.update(own.read)
            return None
        for alias, what in bindings_of_import(statement, own, before | {file}):
            found[alias] = what if found.get(alias, what) == what else f"{name}.{alias}"
    package.read.update(own.read)
    if file.name == "__init__.py":
        parts = (
            n.module.partition(".")[0]
            for n in told.imports
            if isinstance(n, ast.ImportFrom) and n.module and n.level == 1
        )
        found = {part: f"{name}.{part}" for part in parts} | found  # a module that was imported from is there, too
    found |= {alias: f"{name}.{alias}" for alias in told.bound}
    if told.listed is not None:
        return {alias: found.get(alias, f"{name}.{alias}") for alias in told.listed}
    return {alias: what for alias, what in found.items() if alias[:1] != "_"}
