"""What a case is: the files that the wanted words stand for, and what is wrong with one before anything runs."""

from __future__ import annotations

import ast
import json
import os
import re
import reprlib
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.config import CASE_SETTINGS, ConfiguredCase, nearest
from patcher.files.source import SourceError, read, reason

VARIATIONS = ("batch", "sequence")
FILL_IN = "FILL IN"  # in a comment of a case that was written for somebody: this is still a blank

_NEEDED = {"build": "build(), which returns the model", "calls": "calls(), which returns the calls to make"}
_RECORDED = "RECORDED"  # the folder of a recorded program, in the place of both
_FUNCTIONS = (*_NEEDED, "compile", "loss", "optimizer")
_NAMES = {*_FUNCTIONS, *CASE_SETTINGS}
_MAY_BE_NONE = {"device", "dtype", "compile", "loss", "optimizer"}  # which is as good as leaving it out
_BLANK = re.compile(rf"\.\.\.,?\s*#\s*{FILL_IN}:?[ \t]*([^\n]*)")
_HOW = (
    f"a case is a .py file with {_NEEDED['build']}, and {_NEEDED['calls']}; give its path, "
    'or name it in pyproject.toml: [tool.fix-compile.cases] NAME = "PATH"'
)


class CaseError(Exception):
    """A case that is not there, or that cannot work; the message is one line."""


@dataclass(frozen=True)
class Case:
    """One case to measure. What is None the case file decides.

    ``file``: absolute and real. ``recorded``: the folder of a recorded program, "" for a case file. ``vary``: "", or
    the dimension of the arguments that is varied. ``tolerance``: the largest mean absolute error. ``dtype``: a name of
    torch, without ``torch.``.
    """

    name: str
    file: str
    vary: str = ""
    train: bool | None = None
    tolerance: float | None = None
    device: str | None = None
    dtype: str | None = None
    recorded: str = ""


def find(
    wanted: Sequence[str], configured: Mapping[str, ConfiguredCase], root: Path | None, vary: Sequence[str] = ()
) -> tuple[Case, ...]:
    """The cases that the words stand for, in their order, each checked; all configured ones where nothing is wanted.

    Where none is configured either, they are those in ``cases/`` of ``root`` or the working folder. A word is a ``.py``
    file, a folder, or a name: of a configured case, of a file in a configured folder, in ``cases/`` of ``root`` or the
    working folder, or in the working folder. A file that is configured by itself is the case, or the cases, that the
    configuration says, however it was found. After each case comes one for each word of ``vary``. Raises
    ``CaseError``.
    """
    for word in vary:
        if word not in VARIATIONS:
            raise CaseError(f"a case cannot vary {word!r}{nearest(word, VARIATIONS)}")
    if not wanted and not configured:
        folders = (folder / "cases" for folder in (root or Path(), Path()))
        wanted = [str(folder) for folder in folders if any(map(as_case, folder.glob("*.py")))][:1]
    if not wanted and not configured:
        raise CaseError(f"no case is given and none is configured: {_HOW}")
    places = _Places(configured, root)
    named = map(places.wanted, wanted) if wanted else map(places.entry, configured)
    cases = _once(case for found in named for case in found)
    for file in dict.fromkeys(case.file for case in cases):
        _check(Path(file))
    varied = [(case, *(replace(case, name=f"{case.name}[{word}]", vary=word) for word in vary)) for case in cases]
    return _once(case for family in varied for case in family)


def as_case(file: Path) -> Case | None:
    """The case that a file seems to be; None for others."""
    return _case(file.stem, file, None) if _seems_case(file) else None


def _once(cases: Iterable[Case]) -> tuple[Case, ...]:
    """The cases without repetitions; raises ``CaseError`` where two that differ have one name."""
    named: dict[str, Case] = {}
    known: set[Case] = set()
    for case in cases:
        nameless = replace(case, name="")
        if nameless in known:
            continue
        known.add(nameless)
        other = named.setdefault(case.name, case)
        if other.file != case.file:
            raise CaseError(f"two cases are called {case.name!r}: {_shown(other.file)} and {_shown(case.file)}")
        if other != case:
            raise CaseError(f"two cases are called {case.name!r}: {_shown(case.file)}, with different settings")
    return tuple(named.values())


@dataclass(frozen=True)
class _Places:
    """Where cases are looked for."""

    configured: Mapping[str, ConfiguredCase]
    root: Path | None

    def wanted(self, word: str) -> list[Case]:
        path = Path(word)
        mode = _mode(path) if word else 0
        if mode and word.endswith(".py"):
            return self.of_file(path)
        in_folder = self.in_folder(path) if stat.S_ISDIR(mode) else []
        found = in_folder or self.named(word)
        if found:
            return found
        if mode:
            raise _no_case(path, mode)
        if word.endswith(".py"):
            raise _error(path, f"there is no such file{self.known(path.stem)}")
        raise CaseError(f"no case is called {word!r}{self.known(word)}")

    def entry(self, name: str) -> list[Case]:
        """The cases of one entry of the configuration."""
        entry = self.configured[name]
        path = self.at(entry)
        mode = _mode(path)
        if not mode:
            raise _error(path, f"there is no such file or folder; [tool.fix-compile.cases] names it for {name!r}")
        if path.suffix == ".py":
            return [_case(name, path, entry)]
        found = self.in_folder(path, entry) if stat.S_ISDIR(mode) else []
        if not found:
            raise _no_case(path, mode)
        return found

    def in_folder(self, folder: Path, entry: ConfiguredCase | None = None) -> list[Case]:
        """The cases of all case files of a folder, by file name; a broken file of Python raises ``CaseError``."""
        files = [file for file in _listed(folder) if not re.match(r"[_.]|test_|conftest\.py$", file.name)]
        return [case for file in files if _is_case(file) for case in self.of_file(file, entry)]

    def of_file(self, file: Path, entry: ConfiguredCase | None = None) -> list[Case]:
        """A file's cases: as it is configured by itself, else as its folder is (``entry``), else with no settings."""
        real = os.path.realpath(file)
        own = [_case(name, file, e) for name, e in self.configured.items() if os.path.realpath(self.at(e)) == real]
        folders = (e for e in self.configured.values() if os.path.realpath(self.at(e)) == str(Path(real).parent))
        return own or [_case(file.stem, file, entry or next(folders, None))]

    def named(self, word: str) -> list[Case]:
        """The cases of this name; none where there are none. What is no case counts where nothing else has the name."""
        for counts in (_seems_case, lambda file: True):
            for same in (str.__eq__, _equal_but_for_case):
                names = [name for name in self.configured if same(name, word)]
                if names:
                    return self.entry(_only(word, names))
                for level in self.levels():
                    files = {os.path.realpath(file): file for file in level if same(file.stem, word) and counts(file)}
                    if files:
                        return self.of_file(files[_only(word, list(files))])
        return []

    def known(self, word: str) -> str:
        """The known name that is nearest to ``word``, or all of them, for the end of a message."""
        files = (file for level in self.levels() for file in level)
        names = dict.fromkeys((*self.configured, *(file.stem for file in files if _seems_case(file))))
        return nearest(word, names) if names else f": {_HOW}"

    def levels(self) -> Iterator[list[Path]]:
        """The files that a name can stand for; the earlier list wins."""
        here = Path.cwd()
        yield [file for entry in self.configured.values() for file in _listed_if_any(self.at(entry))]
        yield [file for folder in dict.fromkeys((self.root or here, here)) for file in _listed_if_any(folder / "cases")]
        yield _listed_if_any(here)

    def at(self, entry: ConfiguredCase) -> Path:
        return (self.root or Path.cwd()) / entry.path


def _case(name: str, file: Path, entry: ConfiguredCase | None) -> Case:
    real = os.path.realpath(file)
    case = Case(name, real, recorded=_recorded(Path(real)))
    if entry is None:
        return case
    return replace(case, train=entry.train, tolerance=entry.tolerance, device=entry.device, dtype=entry.dtype)


def _recorded(file: Path) -> str:
    """The folder of the recorded program that a case file names; "" for one that builds its model."""
    named = (binding.value for name, binding in _bindings(_parsed(file)) if name == _RECORDED)
    return next((str(file.parent / str(value.value)) for value in named if isinstance(value, ast.Constant)), "")


def _only(word: str, choices: Sequence[str]) -> str:
    if len(choices) > 1:
        raise CaseError(f"{word!r} is the name of several cases: {', '.join(map(_shown, choices))}")
    return choices[0]


def _equal_but_for_case(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _mode(path: Path) -> int:
    """The kind of file that is there, as ``stat`` has it; 0 where there is nothing."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return 0
    except OSError as error:
        raise _error(path, f"cannot be read: {reason(error)}") from None


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.name.endswith(".py") and file.is_file())
    except OSError as error:
        raise _error(folder, f"cannot be read: {reason(error)}") from None


def _listed_if_any(folder: Path) -> list[Path]:
    """``_listed``, and nothing where there is no folder to list."""
    try:
        return _listed(folder)
    except CaseError:
        return []


@dataclass(frozen=True)
class _Binding:
    """That a statement gives a name a value; ``value`` is its expression or definition, None where that is open."""

    line: int
    value: ast.AST | None
    always: bool


def _bindings(node: ast.AST, always: bool = True) -> Iterator[tuple[str, _Binding]]:
    """The names that a module's top level binds, in its order; ``*`` for what a star import may bind."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, _Binding(node.lineno, None if node.decorator_list else node, always)
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], _Binding(node.lineno, None, always)
        return
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    within = always and isinstance(node, ast.Module | ast.With | ast.AsyncWith)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _bindings(child, within)
            continue
        for part in ast.walk(child):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id, _Binding(part.lineno, value if part in targets else None, always)


def _is_case(file: Path) -> bool:
    """Whether a file of a folder is meant as a case; raises ``CaseError`` when it is no Python."""
    names = {name for name, _ in _bindings(_parsed(file))}
    return names >= set(_NEEDED) or bool(_recorded(file)) or ("*" in names and bool(names & _NAMES))


def _seems_case(file: Path) -> bool:
    try:
        return _is_case(file)
    except CaseError:
        return False


def _check(file: Path) -> None:
    """Raise ``CaseError`` for what is certain to go wrong; what cannot be said without running the file is left."""
    bound = list(_bindings(_parsed(file)))
    blank = _BLANK.search(read(str(file)).text)
    if blank:
        raise _error(file, f"is still a blank: {blank[1]}", blank.string.count("\n", 0, blank.start()) + 1)
    if recorded := _recorded(file):
        try:
            told = json.loads((Path(recorded) / "recording.json").read_text(encoding="utf-8"))
            there = all((Path(recorded) / call["file"]).is_file() for call in told["calls"] if call["file"])
        except (OSError, ValueError, KeyError, TypeError):
            there = False
        if not there:
            raise _error(file, f"its recording {_shown(recorded)} is missing or incomplete; make it with --save-case")
        return
    names = {name for name, _ in bound}
    missing = [name for name in _NEEDED if name not in names and "*" not in names]
    if missing:
        raise _error(file, f"there is no {', and no '.join(_NEEDED[name] for name in missing)}")
    for wanted in (*_FUNCTIONS, *CASE_SETTINGS):
        last: list[_Binding] = []  # those that can be in force at the end
        for name, binding in bound:
            if name == wanted:
                last = [binding] if binding.always else [*last, binding]
            elif name == "*":
                last.append(replace(binding, value=None))
        complaints = [_complaint(wanted, binding.value) for binding in last]
        if complaints and all(complaints):
            raise _error(file, complaints[0], last[0].line)


def _complaint(name: str, value: ast.AST | None) -> str:
    """What is wrong with a value that a case file gives a name; "" where nothing is, or it cannot be said."""
    empty = isinstance(value, ast.Constant) and value.value is None
    if value is None or (empty and name in _MAY_BE_NONE):
        return ""
    return _no_setting(name, value) if name in CASE_SETTINGS else _no_function(name, value)


def _no_setting(name: str, value: ast.AST) -> str:
    kind, convert = CASE_SETTINGS[name]
    if not isinstance(value, ast.expr) or isinstance(value, ast.Lambda):
        return f"{name} must be {kind}, not a definition"
    try:
        literal = ast.literal_eval(value)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return ""  # an expression: what it gives is seen when it runs
    try:
        convert(literal)
    except TypeError:
        return f"{name} must be {kind}, not {reprlib.repr(literal)}"
    return ""


def _no_function(name: str, value: ast.AST) -> str:
    if isinstance(value, ast.AsyncFunctionDef):
        return f"{name}() must be an ordinary function, not async"
    if isinstance(value, ast.FunctionDef | ast.Lambda):
        needed = ", ".join(_required(value.args)) if name in _NEEDED else ""
        return f"{name}() is called without arguments, but requires {needed}" if needed else ""
    data = isinstance(value, ast.Constant | ast.JoinedStr | ast.List | ast.Tuple | ast.Dict | ast.Set)
    return f"{name} must be a function, not a value" if data else ""


def _required(arguments: ast.arguments) -> list[str]:
    """The parameters without a default."""
    ordered = [*arguments.posonlyargs, *arguments.args]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    required = ordered[: len(ordered) - len(arguments.defaults)]
    return [a.arg for a in (*required, *(a for a, default in named if default is None))]


def _parsed(file: Path) -> ast.Module:
    if file.is_dir():
        raise _error(file, "is a folder; a case is a .py file")
    try:
        text = read(str(file)).text
    except SourceError as error:
        line, _, why = str(error).removeprefix("line ").partition(": ")
        raise _error(file, why, int(line)) if line.isdigit() else _error(file, str(error)) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are the user's to see when the case runs
            tree = ast.parse(text)
            compile(text, file, "exec", dont_inherit=True)  # finds what the grammar lets pass, as a stray return
    except SyntaxError as error:
        raise _error(file, f"is no valid Python: {error.msg}", error.lineno or 0) from None
    except (ValueError, MemoryError, RecursionError):
        raise _error(file, "is nested too deeply to be read") from None
    return tree


def _no_case(path: Path, mode: int) -> CaseError:
    if stat.S_ISDIR(mode):
        return _error(path, "no .py file in this folder has both build() and calls()")
    return _error(path, "is no .py file, so it is no case")


def _error(path: Path, why: str, line: int = 0) -> CaseError:
    where = f"{_shown(str(path))}:{line}" if line else _shown(str(path))
    return CaseError(" ".join(f"{where}: {why}".splitlines()))


def _shown(path: str) -> str:
    """``path`` relative to the working folder when it is below it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
