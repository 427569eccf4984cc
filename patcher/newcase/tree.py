"""The Python files of a project, read and parsed when they are asked for."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from patcher.files.discover import Exclude, discover
from patcher.files.source import SourceError, read, read_bytes
from patcher.harness import trees

_TESTS = re.compile(r"(^|/)(tests?|testing)(/|$)|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")
_MODULE = re.compile(r"(^|\.)(\w*Module|PreTrainedModel|\w*Mixin)$")


@dataclass(frozen=True)
class Seen:
    """A class and where it is defined."""

    path: Path
    node: ast.ClassDef

    @property
    def name(self) -> str:
        """Its name."""
        return self.node.name

    @property
    def bases(self) -> tuple[str, ...]:
        """As they are written."""
        return tuple(ast.unparse(base) for base in self.node.bases)

    def method(self, name: str) -> ast.FunctionDef | None:
        """One that it defines itself."""
        found = (n for n in self.node.body if isinstance(n, ast.FunctionDef) and n.name == name)
        return next(found, None)

    @property
    def is_dataclass(self) -> bool:
        """Whether a decorator says so."""
        return any("dataclass" in ast.unparse(decorator) for decorator in self.node.decorator_list)


class Tree:
    """A project. ``root``: its folder, absolute."""

    def __init__(self, root: Path, exclude: Exclude | None = None) -> None:
        self.root = root
        entries = discover([str(root)], exclude)
        self.files = tuple(Path(entry.path) for entry in entries if not entry.error)
        self._bytes: dict[Path, bytes] = {}
        self._parsed: dict[Path, ast.Module | None] = {}

    def naming(self, *words: str) -> list[Path]:
        """The files that hold one of the words, tests first: they build small models."""
        sought = [word.encode() for word in words]
        found = [file for file in self.files if any(word in self._data(file) for word in sought)]
        return sorted(found, key=lambda file: (not self.is_test(file), str(file)))

    def is_test(self, file: Path) -> bool:
        """Whether a file is one of tests, by its name and folder."""
        return bool(_TESTS.search(self.shown(file)))

    def shown(self, file: Path) -> str:
        """A file below the root."""
        return file.relative_to(self.root).as_posix() if file.is_relative_to(self.root) else str(file)

    def module(self, file: Path) -> ast.Module | None:
        """What a file holds; None where it cannot be read as Python."""
        if file not in self._parsed:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self._parsed[file] = ast.parse(read(str(file)).text)
            except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
                self._parsed[file] = None
        return self._parsed[file]

    def means(self, module: ast.Module, file: Path, name: str, seen: Seen) -> bool:
        """Whether a name at the top of a file stands for this class: it is defined there, or imported from there."""
        if any(isinstance(node, ast.ClassDef) and node.name == name for node in module.body):
            return file == seen.path
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
                return self._leads(node.module or "", seen)
        return False

    def _leads(self, source: str, seen: Seen) -> bool:
        """Whether a module that a class is imported from is its own, or a package that imports it from there."""
        own = seen.path.parent.name if seen.path.stem == "__init__" else seen.path.stem
        if not source or source.rpartition(".")[2] == own:
            return True
        inside = self.root.joinpath(*source.split("."), "__init__.py")
        places = [inside, self.root.joinpath("src", *source.split("."), "__init__.py")]
        module = next((known for place in places if (known := self.module(place)) is not None), None)
        for node in ast.walk(module) if module else ():
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == seen.name for a in node.names):
                return (node.module or "").rpartition(".")[2] == own
        return False

    def classes(self, file: Path) -> Iterator[Seen]:
        """Those at the top level of a file."""
        module = self.module(file)
        for node in module.body if module else ():
            if isinstance(node, ast.ClassDef):
                yield Seen(file, node)

    def named(self, name: str, near: Path | None = None) -> Seen | None:
        """The class of this name: in the file ``near``, else the only one in the project."""
        last = name.rpartition(".")[2]
        if near is not None:
            for seen in self.classes(near):
                if seen.name == last:
                    return seen
        files = [file for file in self.files if f"class {last}".encode() in self._data(file)]
        found = [seen for file in files for seen in self.classes(file) if seen.name == last]
        imported = self._imported_from(last, near) if near and len(found) > 1 else ""
        fitting = [seen for seen in found if seen.path.stem == imported]
        return fitting[0] if len(fitting) == 1 else found[0] if len(found) == 1 else None

    def method(self, seen: Seen, name: str) -> tuple[Seen, ast.FunctionDef] | None:
        """A method of a class or of those above it in the project, with the class that has it."""
        for above in self.above(seen):
            found = above.method(name)
            if found is not None:
                return above, found
        return None

    def above(self, seen: Seen) -> list[Seen]:
        """A class and those above it in the project, the nearest first."""
        found = [seen]
        for one in found:  # grows while it is gone through
            for base in one.bases:
                known = self.named(base, one.path)
                if known is not None and known.node not in [other.node for other in found]:
                    found.append(known)
        return found

    def is_model(self, seen: Seen) -> bool:
        """Whether a class is one of modules, by the names of what stands above it."""
        return any(_MODULE.search(base) and "Mixin" not in base for one in self.above(seen) for base in one.bases)

    @cached_property
    def models(self) -> tuple[Seen, ...]:
        """The classes of modules with a ``forward``, those that no other builds first, then by their size."""
        files = [file for file in self.naming("forward") if not self.is_test(file)]
        found = [s for file in files for s in self.classes(file) if self.method(s, "forward") and self.is_model(s)]
        named = {seen.name for seen in found}
        built = {name for seen in found for name in _called(seen.node) & named - {seen.name}}
        built |= {base.rpartition(".")[2] for seen in found for base in seen.bases} & named
        return tuple(sorted(found, key=lambda seen: (seen.name in built, -len(_called(seen.node) & named), seen.name)))

    def outer(self) -> tuple[Seen, ...]:
        """The models that no other builds."""
        named = {seen.name for seen in self.models}
        inside = {name for seen in self.models for name in _called(seen.node) & named - {seen.name}}
        return tuple(seen for seen in self.models if seen.name not in inside)

    def dotted(self, file: Path) -> str:
        """How a file is imported: from the first of the folders where imports start that it is below."""
        for root in trees.roots([file]):
            if file.is_relative_to(root):
                parts = list(file.relative_to(root).with_suffix("").parts)
                if parts[-1] == "__init__":
                    parts.pop()
                if parts and all(part.isidentifier() for part in parts):
                    return ".".join(parts)
        return file.stem

    def _imported_from(self, name: str, near: Path) -> str:
        """The last part of the module that a file imports a name from."""
        module = self.module(near)
        for node in ast.walk(module) if module else ():
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
                return (node.module or "").rpartition(".")[2]
        return ""

    def _data(self, file: Path) -> bytes:
        if file not in self._bytes:
            try:
                self._bytes[file] = read_bytes(str(file))
            except SourceError:
                self._bytes[file] = b""
        return self._bytes[file]


def _called(node: ast.AST) -> set[str]:
    """The names that are called in a class."""
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return {c.id if isinstance(c, ast.Name) else c.attr for c in calls if isinstance(c, ast.Name | ast.Attribute)}
