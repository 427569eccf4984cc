"""A project that is open in an editor: its settings, what is known of its files, and what is found in one text."""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.config import Config, load
from patcher.edit.engine import fix_one, patch
from patcher.facts.project.index import Project
from patcher.facts.project.summaries import ModuleSummary
from patcher.facts.project.summarising import summarise
from patcher.files.backup import MARKERS, project_root
from patcher.files.discover import Exclude, discover, surroundings
from patcher.files.source import SourceError, read
from patcher.finding import find
from patcher.options import settings_from
from patcher.results import Reported
from patcher.rule import Rule
from patcher.selftest.executing import measured
from patcher.settings import NoFunctionError, Settings

#: What Python raises for a text that it does not take.
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
#: Of a larger project the first files are read: what the others do with these is not known then.
_MOST_FILES = 4000
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True)
class Look:
    """What was found in one text. ``found``: by line. ``error``: why nothing could be; what was found before stands."""

    text: str
    found: tuple[Reported, ...] = ()
    error: str = ""


class Folder:
    """One project; raises ``ConfigError`` where its configuration cannot be followed.

    Texts are looked at with what is known of the project at that moment: first of each file alone, then, once `index`
    has read them, of all. A text that is typed into counts as its file from `learn` on. `look`, `learn` and the fixes
    are called by one thread; `index` may be called by another, once.
    """

    def __init__(self, root: str, rules: Sequence[Rule]) -> None:
        config: Config = load(root)
        self.root, self.rules = root, tuple(rules)
        self.settings: Settings = settings_from(rules, config, measured=measured(rules))
        self._exclude = Exclude(config.exclude, str(config.root or root))
        self._every = config.all
        self._whole = True
        self._summaries: dict[str, ModuleSummary] = {}
        self._typed: dict[str, ModuleSummary] = {}
        self._shapes: dict[str, tuple[str, ...]] = {}
        self._project: Project | None = None

    def covers(self, path: str) -> bool:
        """Whether `check` of the project would look at the file: not what is excluded, nor tests and the like."""
        if not Path(path).exists():
            return not self._exclude.covers(path)
        entries = discover([self.root], _Only(self._exclude.patterns, self._exclude.root, path))
        return any(entry.path == path and not entry.error and (self._every or not entry.beside) for entry in entries)

    def index(self) -> None:
        """Read the files of the project. Those that cannot be read or parsed say nothing of the others.

        Where nothing says that the folder is a project, it may be anything, and files are looked at alone.
        """
        if not _is_project(Path(self.root)):
            return
        found = [entry.path for entry in discover([self.root], self._exclude) if not entry.error]
        around = surroundings(found)
        files = [*found, *around.files]
        summaries = {path: summary for path in files[:_MOST_FILES] if (summary := _summary(path)) is not None}
        self._whole, self._summaries = around.whole and len(files) <= _MOST_FILES, summaries
        self._project = None
        gc.collect()
        gc.freeze()  # it stays: to look it through again and again would take longer than a text does

    def look(self, path: str, text: str) -> Look:
        """What there is to say of ``text``, which is in the file ``path``, or will be."""
        try:
            with _undisturbed():
                tree = ast.parse(text)
                if self._shapes.get(path) != _shape(tree):  # else what it says of the others can wait
                    self._learn(path, tree)
                result = find(text, path, self.rules, self.settings, self._known(path, text), tree)
        except Exception as error:  # whatever is wrong with half a text, or with us: the next key comes soon
            return Look(text, error=f"{type(error).__name__}: {error}")
        return Look(text, tuple(found for found in result.found if not found.suppressed))

    def learn(self, path: str, text: str) -> bool:
        """Take ``text`` for what the file says of the project; whether that changes anything."""
        try:
            with _undisturbed():
                return self._learn(path, ast.parse(text))
        except _UNREADABLE:
            return False
        finally:
            gc.collect()  # of what was looked at before; here nobody waits

    def _learn(self, path: str, tree: ast.Module) -> bool:
        summary = summarise(tree, path)
        before = self._typed.get(path) or self._summaries.get(path)
        self._typed[path], self._shapes[path] = summary, _shape(tree)
        if before == summary:
            return False
        self._project = None
        return True

    def forget(self, path: str) -> None:
        """The file is what is on disk again."""
        self._shapes.pop(path, None)
        if self._typed.pop(path, None) is not None:
            self.reread(path)

    def reread(self, path: str) -> None:
        """The file on disk may be another one now, or gone."""
        self._project = None
        if not self.covers(path) and path not in self._summaries:
            return
        summary = _summary(path)
        if summary is not None and self.covers(path):
            self._summaries[path] = summary
        else:
            self._summaries.pop(path, None)

    def fixed(self, path: str, text: str, wanted: Reported) -> str:
        """``text`` with the fix of one finding made; raises `EditError`."""
        with _undisturbed():
            return fix_one(text, path, self.rules, self.settings, self._known(path, text), wanted)

    def fixed_safely(self, path: str, text: str) -> str:
        """``text`` with all safe fixes made, or as it is."""
        try:
            with _undisturbed():
                return patch(text, path, self.rules, self.settings, self._known(path, text)).text
        except (*_UNREADABLE, NoFunctionError):
            return text

    def _known(self, path: str, text: str) -> Project | None:
        if path not in self._typed and path not in self._summaries:
            self._learn(path, ast.parse(text))
        if self._project is None:
            summaries = {**self._summaries, **self._typed}
            listed = [summaries[name] for name in sorted(summaries)]
            self._project = Project(listed, self._whole, self.settings.compiled)
        return self._project


@dataclass(frozen=True)
class _Only(Exclude):
    """All but one file, and the folders on the way to it."""

    path: str = ""

    def covers(self, path: str) -> bool:
        return (path != self.path and not self.path.startswith(path.rstrip(os.sep) + os.sep)) or super().covers(path)


def folder_root(path: str) -> str:
    """The folder of the project that the file belongs to; its own folder where it is in none."""
    root = project_root(path)
    return str(root if _is_project(root) else Path(path).absolute().parent)


def _is_project(root: Path) -> bool:
    return any((root / marker).exists() for marker in MARKERS)


def _shape(tree: ast.Module) -> tuple[str, ...]:
    """What a text defines: functions and classes by name, in order, and what classes derive from."""
    found: list[str] = []
    blocks: list[Sequence[ast.AST]] = [tree.body]
    while blocks:
        for node in blocks.pop():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found += [f"{type(node).__name__} {node.name} {len(blocks)}", *map(ast.unparse, node.decorator_list)]
                found += map(ast.unparse, getattr(node, "bases", ()))
            blocks += [part for name in _BLOCKS if isinstance(part := getattr(node, name, None), list)]
    return tuple(found)


def _summary(path: str) -> ModuleSummary | None:
    try:
        return _summarised(read(path).text, path)
    except (OSError, SourceError, *_UNREADABLE):
        return None


def _summarised(text: str, path: str) -> ModuleSummary:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return summarise(ast.parse(text), path)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """No warnings of the text that is looked at, and no collection of garbage: trees are many objects, and none."""
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        gc.enable()
