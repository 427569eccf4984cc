"""What a fleet is: models, what is done with each, in which modes; read from a manifest in TOML."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patcher.config import ConfigError, exactly, positive, text, values_in
from patcher.measuring.measure import BACKENDS, MODES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOINGS = ("scan", "test", "diagnose", "prove")


@dataclass(frozen=True)
class Wish:
    """What is done with a model, and how.

    ``do``: of ``DOINGS``; (): all that its cases allow without being asked, which is "scan" and "test". ``time_limit``
    and ``memory_limit`` (bytes): of each process. ``gpu``: each measurement takes one GPU of a worker.
    """

    do: tuple[str, ...] = ()
    mode: tuple[str, ...] = ("default",)
    backend: str | None = None
    quick: bool = False
    unsafe: bool = False
    tolerance: float | None = None
    time_limit: float | None = None
    memory_limit: int | None = None
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
    given = values_in(table, {**_WISHES, "model": ("a list of tables", lambda value: value)}, "")
    entries = given.pop("model", None)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError('names no model: each is a table [[model]] with path = "FOLDER" or package = "NAME"')
    models = [_model(file.parent, entry, number, Wish(**given)) for number, entry in enumerate(entries, 1)]
    for number, model in enumerate(models):
        if model.name in {other.name for other in models[:number]}:
            raise ConfigError(f"two models are called {model.name!r}; give one another name = ...")
    return Manifest(file, tuple(models))


def _model(folder: Path, entry: Mapping[str, Any], number: int, standard: Wish) -> Model:
    said = entry.get("name", entry.get("path", entry.get("package")))
    where = f"model {said!r}" if isinstance(said, str) and said else f"model {number}"
    values = values_in(entry, {**_MODEL, **_WISHES}, f" of {where}")
    if ("path" in entry) == ("package" in entry):
        raise ConfigError(f"{where}: needs either a path or a package")
    if "package" in values and "paths" in values:
        raise ConfigError(f"{where}: paths goes with path, not with package")
    root = os.path.normpath(folder / values["path"]) if "path" in values else ""
    paths = tuple(os.path.normpath(Path(root, inside)) for inside in values.get("paths", ()))
    wish = replace(standard, **{key: value for key, value in values.items() if key not in _MODEL})
    name = values.get("name") or values.get("package") or Path(root).name
    return Model(name, root, values.get("package", ""), paths or ((root,) if root else ()), values.get("cases"), wish)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(text, value)) if isinstance(value, list) else (text(value),)


def _among(known: tuple[str, ...]) -> Callable[[object], tuple[str, ...]]:
    def convert(value: object) -> tuple[str, ...]:
        words = _texts(value)
        if not words or not set(words) <= set(known):
            raise TypeError
        return tuple(dict.fromkeys(words))

    return convert


def _backend(value: object) -> str:
    return _among(BACKENDS)(text(value))[0]


_WISHES: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "do": ("a list of " + ", ".join(DOINGS), _among(DOINGS)),
    "mode": (f"a list of {', '.join(MODES)}", _among(MODES)),
    "backend": (f"one of {', '.join(BACKENDS)}", _backend),
    "quick": ("true or false", exactly(bool)),
    "unsafe": ("true or false", exactly(bool)),
    "tolerance": ("a positive number", positive),
    "time-limit": ("a positive number of seconds", positive),
    "memory-limit": ("a positive number of GiB", lambda value: math.ceil(positive(value) * 2**30)),
    "gpu": ("true or false", exactly(bool)),
    "python": ("the path of a Python", text),
}
_MODEL: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "name": ("a name", text),
    "path": ("a folder", text),
    "package": ("the name of an installed package", text),
    "paths": ("a list of files or folders of the model", _texts),
    "cases": ("a list of cases", _texts),
}
