"""``[tool.fix-compile]`` in the nearest pyproject.toml."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMATS = ("text", "json", "github")


class ConfigError(Exception):
    """A configuration or an option that cannot be followed; the message is one line."""


@dataclass(frozen=True)
class Config:
    """What the file says; None where it says nothing. ``root``: its folder, where its paths and globs start."""

    root: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    strategy: tuple[str, ...] = ()
    target_torch: str | None = None
    format: str | None = None
    jobs: int | None = None
    exclude: tuple[str, ...] = ()
    backup_dir: str | None = None


def load(path: str) -> Config:
    """The configuration that is in force for ``path``; raises ``ConfigError``."""
    start = Path(path).absolute()
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            try:
                return _parsed(file)
            except ConfigError as error:
                raise ConfigError(f"{file}: {error}") from None
    return Config()


def nearest(word: str, known: Iterable[str]) -> str:
    """`` (did you mean ...?)`` for the most similar known word, or nothing."""
    names = list(known)
    close = difflib.get_close_matches(word, names, 1, 0.5) or difflib.get_close_matches(word.upper(), names, 1, 0.5)
    return f" (did you mean {close[0]!r}?)" if close else f" (known: {', '.join(names)})"


def _parsed(file: Path) -> Config:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}") from None
    if b"fix-compile" not in data:
        return Config(root=file.parent)
    try:
        table = _toml(data.decode("utf-8")).get("tool", {}).get("fix-compile", {})
    except (ValueError, AttributeError) as error:
        raise ConfigError(f"is not valid TOML: {' '.join(str(error).split())}") from None
    if not isinstance(table, dict):
        raise ConfigError("[tool.fix-compile] must be a table")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KEYS:
            raise ConfigError(f"unknown key {key!r} in [tool.fix-compile]{nearest(key, _KEYS)}")
        kind, convert = _KEYS[key]
        try:
            values[key.replace("-", "_")] = convert(value)
        except TypeError:
            raise ConfigError(f"{key} in [tool.fix-compile] must be {kind}, not {value!r}") from None
    values.pop("cases", None)
    return Config(root=file.parent, **values)


def _toml(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError
    return tuple(value)


def _strategies(value: object) -> tuple[str, ...]:
    if isinstance(value, dict):
        value = [f"{rule}={name}" if isinstance(name, str) else name for rule, name in value.items()]
    return _strings(value)


def _is(kind: type) -> Callable[[object], Any]:
    def convert(value: object) -> object:
        if type(value) is not kind:  # True is no number here
            raise TypeError
        return value

    return convert


def _jobs(value: object) -> int:
    if type(value) is not int or value < 1:
        raise TypeError
    return value


def _format(value: object) -> str:
    if value not in FORMATS:
        raise TypeError
    return str(value)


_KEYS: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "select": ("a list of codes", _strings),
    "ignore": ("a list of codes", _strings),
    "unsafe": ("true or false", _is(bool)),
    "strategy": ('a table (rule = "name") or a list of "rule=name"', _strategies),
    "target-torch": ('a string such as "2.13"', _is(str)),
    "format": (f"one of {', '.join(FORMATS)}", _format),
    "jobs": ("a whole number from 1", _jobs),
    "exclude": ("a list of globs", _strings),
    "backup-dir": ("a folder", _is(str)),
    "cases": ("a table", _is(dict)),
}
