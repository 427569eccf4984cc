"""What a fleet is: models, what is done with each, in which modes; read from a manifest in TOML."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patcher.config import ConfigError, nearest, text
from patcher.measuring.measure import BACKENDS, MODES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOINGS = ("scan", "test", "diagnose", "prove")
_WHAT = "a list of " + ", ".join(DOINGS)


@dataclass(frozen=True)
class Wish:
    """What is done with a model, and how.

    ``do``: of ``DOINGS``; (): all that its cases allow without being asked, which is "scan" and "test". ``seconds`` and
    ``memory`` (bytes): the limits of each process. ``gpu``: each measurement takes one GPU of a worker.
    """

    do: tuple[str, ...] = ()
    modes: tuple[str, ...] = ("default",)
    backend: str | None = None
    quick: bool = False
    unsafe: bool = False
    tolerance: float | None = None
    seconds: float | None = None
    memory: int | None = None
    gpu: bool = False
    python: str = ""


@dataclass(frozen=True)
class Model:
    """One entry. ``root``: its repository, "" of an installed package. ``paths``: what of it is looked at, absolute.

    ``cases``: words as ``--case`` takes them; None: those that the repository's pyproject.toml names.
    """

    name: str
    root: str = ""
    package: str = ""
    paths: tuple[str, ...] = ()
    cases: tuple[str, ...] | None = None
    wish: Wish = Wish()


@dataclass(frozen=True)
class Manifest:
    """A file with its models, in its order. ``folder``: where its paths start."""

    file: Path
    models: tuple[Model, ...]

    @property
    def folder(self) -> Path:
        """Where its paths start."""
        return self.file.parent


def load(path: str) -> Manifest:
    """The manifest in a file; raises ``ConfigError``, with the file's name."""
    file = Path(path).absolute()
    try:
        return _parsed(file, tomllib.loads(file.read_bytes().decode("utf-8")))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: is not valid TOML: {' '.join(str(error).split())}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _parsed(file: Path, table: Mapping[str, Any]) -> Manifest:
    for key in table:
        if key not in _WISHES and key != "model":
            raise ConfigError(f"unknown key {key!r}{nearest(key, ('model', *_WISHES))}")
    standard = _wish(Wish(), table, "")
    entries = table.get("model")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError('names no model: each is a table [[model]] with path = "FOLDER" or package = "NAME"')
    models = [_model(file.parent, entry, number, standard) for number, entry in enumerate(entries, 1)]
    for number, model in enumerate(models):
        if model.name in {other.name for other in models[:number]}:
            raise ConfigError(f"two models are called {model.name!r}; give one another name = ...")
    return Manifest(file, tuple(models))


def _model(folder: Path, entry: Mapping[str, Any], number: int, standard: Wish) -> Model:
    said = entry.get("name", entry.get("path", entry.get("package")))
    where = f"model {said!r}" if isinstance(said, str) and said else f"model {number}"
    for key in entry:
        if key not in _MODEL and key not in _WISHES:
            raise ConfigError(f"{where}: unknown key {key!r}{nearest(key, (*_MODEL, *_WISHES))}")
    if ("path" in entry) == ("package" in entry):
        raise ConfigError(f"{where}: needs either a path or a package")
    values = {key: _read(where, key, entry[key], _MODEL) for key in _MODEL if key in entry}
    package = values.get("package", "")
    root = "" if package else os.path.normpath(folder / values["path"])
    if package and "paths" in values:
        raise ConfigError(f"{where}: paths goes with path, not with package")
    paths = tuple(os.path.normpath(Path(root, inside)) for inside in values.get("paths", ()))
    return Model(
        name=values.get("name") or package or Path(root).name,
        root=root,
        package=package,
        paths=paths or ((root,) if root else ()),
        cases=values.get("cases"),
        wish=_wish(standard, entry, where),
    )


def _wish(standard: Wish, table: Mapping[str, Any], where: str) -> Wish:
    given = {key: _read(where, key, table[key], _WISHES) for key in _WISHES if key in table}
    return replace(standard, **{_FIELDS.get(key, key): value for key, value in given.items()})


def _read(where: str, key: str, value: object, known: Mapping[str, tuple[str, Callable[[object], Any]]]) -> Any:
    kind, convert = known[key]
    try:
        return convert(value)
    except TypeError:
        raise ConfigError(f"{where + ': ' if where else ''}{key} must be {kind}, not {value!r}") from None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(text, value)) if isinstance(value, list) else (text(value),)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _positive(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise TypeError
    return float(value)


def _among(known: tuple[str, ...]) -> Callable[[object], tuple[str, ...]]:
    def convert(value: object) -> tuple[str, ...]:
        words = _texts(value)
        if not words or not set(words) <= set(known):
            raise TypeError
        return tuple(dict.fromkeys(words))

    return convert


def _backend(value: object) -> str:
    if value not in BACKENDS:
        raise TypeError
    return str(value)


def _bytes(value: object) -> int:
    return math.ceil(_positive(value) * 2**30)


_FIELDS = {"time-limit": "seconds", "memory-limit": "memory", "mode": "modes"}
_WISHES: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "do": (_WHAT, _among(DOINGS)),
    "mode": (f"a list of {', '.join(MODES)}", _among(MODES)),
    "backend": (f"one of {', '.join(BACKENDS)}", _backend),
    "quick": ("true or false", _flag),
    "unsafe": ("true or false", _flag),
    "tolerance": ("a positive number", _positive),
    "time-limit": ("a positive number of seconds", _positive),
    "memory-limit": ("a positive number of GiB", _bytes),
    "gpu": ("true or false", _flag),
    "python": ("the path of a Python", text),
}
_MODEL: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "name": ("a name", text),
    "path": ("a folder", text),
    "package": ("the name of an installed package", text),
    "paths": ("a list of files or folders of the model", _texts),
    "cases": ("a list of cases", _texts),
}
