"""Import the user's code, with patched bytes where the plan says so. Standard library only."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import linecache
import os
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch._dynamo

from .failures import HERE, CaseError

Json = dict[str, Any]


@dataclass
class Overlay:
    """Which files have other bytes in this variant. ``loaded``: those imported; ``lines``: those executed in them.

    ``traced``: file, first line of the function, and line (0 for a function that was entered) of what Dynamo went over.
    """

    entries: dict[str, Json] = field(default_factory=dict)  # by real path
    loaded: dict[str, Json] = field(default_factory=dict)  # by the file name in code objects
    code: dict[str, types.CodeType] = field(default_factory=dict)
    lines: set[tuple[str, str, int, int]] = field(default_factory=set)  # 0 for a function that was entered
    traced: set[tuple[str, int, int]] = field(default_factory=set)
    observer: Any = None  # that looks at the original's expressions

    def install(self, patched: bool) -> None:
        """Take over the compiling of the files; where they are on disk it is only noted that they are imported."""
        original = importlib.machinery.SourceFileLoader.get_code
        side, state = ("patched", "after") if patched else ("original", "before")
        if any("" in (entry["before"], entry["after"]) for entry in self.entries.values()):
            there = {file: bool(entry[state]) for file, entry in self.entries.items()}
            at = sys.meta_path.index(importlib.machinery.PathFinder)  # what is built in and frozen comes first
            sys.meta_path.insert(at, _Moved(there))

        def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> types.CodeType | None:
            file = loader.get_filename(name)
            entry = self.entries.get(os.path.realpath(file))
            if entry is None:
                return original(loader, name)
            self.loaded[file] = entry
            if side not in entry:
                return original(loader, name)
            data = Path(entry[side]).read_bytes()
            code: types.CodeType = compile(data, file, "exec", dont_inherit=True)
            if patched:
                self.code[file] = code
            text = importlib.util.decode_source(data)
            linecache.cache[file] = (len(data), None, text.splitlines(keepends=True), file)  # for inspect and messages
            return code

        setattr(importlib.machinery.SourceFileLoader, "get_code", get_code)  # noqa: B010 - mypy: a method

    def watch(self, on: bool) -> None:
        """Note the lines of the patched files that are executed, in this thread."""

        def line(frame: types.FrameType, event: str, arg: object) -> Any:
            code = frame.f_code
            self.lines.add((code.co_filename, code.co_name, code.co_firstlineno, frame.f_lineno))
            return line

        def call(frame: types.FrameType, event: str, arg: object) -> Any:
            code = frame.f_code
            if code.co_filename not in self.code:
                return None
            self.lines.add((code.co_filename, code.co_name, code.co_firstlineno, 0))
            return line

        sys.settrace(call if on else None)

    def attend(self) -> None:
        """Note the lines of the patched files that get into graphs: code for compiled runs alone runs nowhere else."""
        translator = torch._dynamo.symbolic_convert.InstructionTranslatorBase
        original = getattr(translator, "starts_line", None)
        if original is None:
            return

        def starts_line(tracing: Any, line: int) -> None:
            code = tracing.f_code
            if code.co_filename in self.code:
                self.traced.update((code.co_filename, code.co_firstlineno, n) for n in (0, line))
            original(tracing, line)

        setattr(translator, "starts_line", starts_line)  # noqa: B010 - mypy: a method

    def _ran(self, file: str, name: str, first: int, line: int) -> bool:
        return (file, name, first, line) in self.lines or (file, first, line) in self.traced

    def places(self) -> Json:
        """How many of the changed line ranges were executed, or traced."""
        executed, missed = 0, []
        for file, code in self.code.items():
            executable = _lines_of(code)
            for first, last in self.loaded[file]["changed"]:
                here = {n: executable[n] for n in range(first, last + 1) if n in executable}
                if any(self._ran(file, *where) for where in here.values()):
                    executed += 1
                elif here:
                    missed.append(f"{self.loaded[file]['shown']}:{min(here)}")
        return {"executed": executed, "of": executed + len(missed), "missed": missed}


class _Moved(importlib.abc.MetaPathFinder):
    """Finds modules that are not on disk, and not those that are there and should not be.

    ``there``: by real path, whether a file has a side of the change, for files that may only have the other one.
    """

    def __init__(self, there: Mapping[str, bool]) -> None:
        self._there = there
        self._names = {name for file in there for name in _module_names(file)}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As Python's own finder, for modules with the name of such a file, or of a folder with one."""
        last = name.rpartition(".")[2]
        if last not in self._names:
            return None
        portions = []
        for folder in sys.path if path is None else path:
            found = self._in(folder or os.getcwd(), name, last)
            if found is not None and found.loader is not None:
                return found
            portions += found.submodule_search_locations or [] if found is not None else []
        if portions:
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = portions
            return spec
        if importlib.machinery.PathFinder.find_spec(name, path) is not None:  # it would be found by those that follow
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

    def _in(self, folder: str, name: str, last: str) -> importlib.machinery.ModuleSpec | None:
        package, module = os.path.join(folder, last), os.path.join(folder, last + ".py")
        initial = os.path.join(package, "__init__.py")
        if self._is_there(initial):
            return _spec_of(name, initial, [package])
        spec = importlib.machinery.PathFinder.find_spec(name, [folder])
        if spec is not None and spec.loader is not None and self._there.get(os.path.realpath(str(spec.origin)), True):
            return spec
        if self._is_there(module):
            return _spec_of(name, module, None)
        if not self._holds_source(package):
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [package]
        return spec

    def _is_there(self, file: str) -> bool:
        real = os.path.realpath(file)
        return self._there[real] if real in self._there else os.path.isfile(file)

    def _holds_source(self, folder: str) -> bool:
        inside = os.path.join(os.path.realpath(folder), "")
        if any(there and file.startswith(inside) for file, there in self._there.items()):
            return True
        files = (os.path.join(below, file) for below, _, names in os.walk(folder) for file in names)
        return any(self._is_there(file) for file in files if file.endswith(".py"))


def _spec_of(name: str, file: str, inside: list[str] | None) -> importlib.machinery.ModuleSpec | None:
    loader = importlib.machinery.SourceFileLoader(name, file)
    return importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=inside)


def _module_names(file: str) -> Iterator[str]:
    """What a module may be called for which the file matters: its own name, and the folders around it."""
    path = Path(file)
    yield from (path.stem, *(folder.name for folder in path.parents if folder.name))


def _lines_of(code: types.CodeType) -> dict[int, tuple[str, int, int]]:
    """What has to run for each line to have run: the name and first line of the innermost function, and the line.

    The head of a function (its decorators and defaults) is of use only when the function is entered: the line is 0.
    """
    lines = {line for _, _, line in code.co_lines() if line}
    found = {line: (code.co_name, code.co_firstlineno, line) for line in lines}
    if code.co_flags & inspect.CO_OPTIMIZED:  # a function, and not a module or a class
        body = min((line for line in lines if line > code.co_firstlineno), default=code.co_firstlineno)
        head = range(code.co_firstlineno, body)
        found.update(dict.fromkeys(head, (code.co_name, code.co_firstlineno, 0)))
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found.update(_lines_of(const))
    return found


def overlay_of(plan: Json) -> Overlay:
    """The plan's overlay, with the files of installed packages looked up here."""
    entries = {}
    for entry in plan["overlay"]:
        if "package" in entry:
            spec = importlib.util.find_spec(entry["package"])
            if spec is None or not spec.submodule_search_locations:
                raise CaseError(f"the package {entry['package']} is not installed here")
            file = os.path.join(next(iter(spec.submodule_search_locations)), entry["within"])
        else:
            file = entry["file"]
        expected = entry["after" if plan.get("on_disk") == "patched" else "before"]
        try:
            now = hashlib.sha256(Path(file).read_bytes()).hexdigest()
        except OSError:
            now = ""
        if expected and not now:
            raise CaseError(f"{entry['shown']}: the original is not at {file}")
        if now != expected:
            raise CaseError(f"{entry['shown']}: is another version here than the one that was patched")
        entries[os.path.realpath(file)] = entry
    return Overlay(entries)


def prepare_path(roots: Sequence[str], case_file: str) -> None:
    """The roots go behind the standard library and before installed packages; our own folder is taken out."""
    sys.path[:] = [p for p in sys.path if p and os.path.abspath(p) != HERE]
    installed = [i for i, p in enumerate(sys.path) if os.path.basename(p) in ("site-packages", "dist-packages")]
    at = min(installed, default=len(sys.path))
    wanted = [*roots, os.path.dirname(case_file), os.getcwd()]
    sys.path[at:at] = [p for p in dict.fromkeys(wanted) if p not in sys.path]


def load_module(file: str) -> types.ModuleType:
    """The case's module, executed afresh. It has its own name only when nothing else is imported under that."""
    name = Path(file).stem.replace(".", "_")
    with contextlib.suppress(ValueError):
        found = importlib.util.find_spec(name)
        if found and (not found.origin or os.path.realpath(found.origin) != os.path.realpath(file)):
            name = f"_case_{name}"
    loader = importlib.machinery.SourceFileLoader(name, file)
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module
