"""A script's files to what is written: read, planned, patched in memory, and the new module beside it."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.config import line_limit
from patcher.edit.edits import apply
from patcher.edit.spans import EditError
from patcher.files.source import Source, SourceError, encode, read
from patcher.integrate.module_source import composed
from patcher.integrate.plan import COMPILES, Change, Plan, Wanted, planned
from patcher.integrate.remarks import Remark
from patcher.integrate.style import with_import
from patcher.results import FileResult
from patcher.rule import Fix

_DEEPEST = 3  # from a script to what it imports, and what that imports


@dataclass(frozen=True)
class Integration:
    """What becomes of a script. ``results``: its files that change, and the new one, which comes first.

    ``failed``: files that cannot be worked on. With one of them, or with a ``plan`` that refuses, nothing changes.
    ``needed``: files that are used as they are.
    """

    plan: Plan
    results: tuple[FileResult, ...] = ()
    failed: tuple[FileResult, ...] = ()
    needed: tuple[str, ...] = ()


def integrated(paths: Sequence[str], wanted: Wanted) -> Integration:
    """What integrating the script ``paths[0]`` comes to; the others are files of it that may change as well."""
    sources: list[Source] = []
    trees: list[tuple[str, ast.Module]] = []
    failed: list[FileResult] = []
    for path in dict.fromkeys(paths):
        try:
            source = read(path)
            trees.append((path, _parsed(source.text)))
            sources.append(source)
        except (SourceError, SyntaxError, ValueError, RecursionError) as error:
            failed.append(FileResult(path, error=_told(error)))
    if failed:
        return Integration(Plan(), failed=tuple(failed))
    plan = planned(trees, list(_around(paths[0], trees)), wanted)
    if plan.refused or plan.done:
        return Integration(plan)
    new = str(Path(paths[0]).with_name(f"{wanted.module}.py"))
    text = composed(plan.kind, plan.excluded)
    there = os.path.lexists(new)
    if there and not _serves(new, text):
        return Integration(Plan(refused=(Remark(new, 0, _other(new)),)))
    written = text.replace("\n", "\r\n") if "\r\n" in sources[0].text else text
    results = [] if there else [FileResult(new, b"", written.encode("utf-8"), created=True)]
    for source in sources:
        try:
            results += _patched(source, plan.changes.get(source.path))
        except (EditError, SourceError, SyntaxError) as error:
            failed.append(FileResult(source.path, error=f"the edits do not fit, a bug in fix-compile: {_told(error)}"))
    needed = (new,) if there else ()
    return Integration(plan, failed=tuple(failed)) if failed else Integration(plan, tuple(results), needed=needed)


def _patched(source: Source, change: Change | None) -> Iterator[FileResult]:
    if change is not None:
        text = apply(source.text, [Fix(change.edits)], limit=line_limit(source.path))
        if change.imports:
            text = with_import(text, change.imports, str(Path(source.path).parent))
        compile(text, source.path, "exec", dont_inherit=True)
        yield FileResult(source.path, source.data, encode(text, source.encoding), source.encoding)


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an escape in a string of theirs is not ours to complain about
        compile(text, "<script>", "exec", dont_inherit=True)
        return ast.parse(text)


def _told(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: is not valid Python: {error.msg}"
    return str(error) or type(error).__name__


def _serves(path: str, text: str) -> bool:
    """Whether the file is ``text``, in whatever style."""
    tree = _tree(path)
    return tree is not None and ast.dump(tree) == ast.dump(_parsed(text))


def _other(path: str) -> str:
    """What to say of a module of that name that is none that could be used."""
    tree = _tree(path)
    ours = tree is not None and any(isinstance(s, ast.FunctionDef) and s.name == COMPILES for s in tree.body)
    what = "made for another script or edited since" if ours else "and is another one"
    return f"is there already, {what}: choose a name for the new module with --module"


def _tree(path: str) -> ast.Module | None:
    try:
        return _parsed(read(path).text)
    except (SourceError, SyntaxError, ValueError, RecursionError):
        return None


def _around(script: str, trees: Sequence[tuple[str, ast.Module]]) -> Iterator[tuple[str, ast.Module]]:
    """The files that those of the script import, from the folders above it, as far as they can be read."""
    tops = [Path(script).parent]
    tops += list(tops[0].absolute().parents)[:3]
    known = {os.path.realpath(path) for path, _ in trees}
    todo = list(trees)
    for _ in range(_DEEPEST):
        found: list[tuple[str, ast.Module]] = []
        for path, tree in todo:
            for file in _imported(path, tree, tops):
                real = os.path.realpath(file)
                if real in known:
                    continue
                known.add(real)
                try:
                    found.append((str(file), _parsed(read(str(file)).text)))
                except (SourceError, SyntaxError, ValueError, RecursionError):
                    continue
        yield from found
        todo = found


def _imported(path: str, tree: ast.Module, tops: Sequence[Path]) -> Iterator[Path]:
    own = Path(path).parent
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f for alias in node.names for f in _files(alias.name.split("."), tops))
        elif isinstance(node, ast.ImportFrom):
            starts = [own.joinpath(*[os.pardir] * (node.level - 1))] if node.level else tops
            parts = node.module.split(".") if node.module else []
            yield from _files(parts, starts)
            yield from (f for alias in node.names for f in _files([*parts, alias.name], starts))


def _files(parts: Sequence[str], starts: Sequence[Path]) -> Iterator[Path]:
    for start in starts:
        for file in (
            (start.joinpath(*parts[:-1], f"{parts[-1]}.py"), start.joinpath(*parts, "__init__.py")) if parts else ()
        ):
            if file.is_file():
                yield file
                return
