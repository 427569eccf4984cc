"""``[tool.fix-compile]`` in the nearest pyproject.toml."""

from __future__ import annotations

import configparser
import contextlib
import difflib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_BLACK = 88  # when it is told nothing
_LEAST, _MOST = 40, 320  # other numbers are no limit that somebody keeps to
_STEPS = 5  # from a ruff.toml to those that it extends


def line_limit(path: str) -> int | None:
    """How many characters a line of the code at ``path`` may have; None when nothing says it.

    Formatters (ruff, black) come before linters (flake8, pycodestyle) in the same folder. A file that cannot be read
    says nothing: it is no file of ours.
    """
    start = Path(path).absolute()
    for folder in (start, *start.parents):
        for number in _said(folder):
            if type(number) is int and _LEAST <= number <= _MOST:
                return number
        if (folder / ".git").exists():
            return None
    return None


def _said(folder: Path) -> Iterator[object]:
    tools = _table(_toml_of(folder / "pyproject.toml"), "tool")
    for ruff in (".ruff.toml", "ruff.toml"):
        yield _of_ruff(_toml_of(folder / ruff), folder)
    yield _of_ruff(_table(tools, "ruff"), folder)
    if "black" in tools:
        yield _table(tools, "black").get("line-length", _BLACK)
    yield _table(tools, "flake8").get("max-line-length")
    for name in (".flake8", "setup.cfg", "tox.ini"):
        yield from _of_sections(folder / name)


def _of_ruff(table: Mapping[str, Any], folder: Path, steps: int = _STEPS) -> object:
    own = table.get("line-length")
    if own is not None or not isinstance(table.get("extend"), str) or not steps:
        return own
    file = (folder / table["extend"]).expanduser()
    whole = _toml_of(file)
    extended = _table(_table(whole, "tool"), "ruff") if file.name == "pyproject.toml" else whole
    return _of_ruff(extended, file.parent, steps - 1)


def _of_sections(file: Path) -> Iterator[object]:
    sections = configparser.ConfigParser(interpolation=None)
    try:
        sections.read_string(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return
    for name in ("flake8", "pycodestyle"):
        for key in ("max-line-length", "max_line_length"):
            told = sections.get(name, key, fallback="").partition("#")[0].strip()
            yield int(told) if told.isdecimal() else None


def _toml_of(file: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        return tomllib.loads(file.read_text(encoding="utf-8"))
    return {}


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = table.get(key)
    return found if isinstance(found, dict) else {}


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NAMED = re.compile(rb"fix[-_. ]?compile", re.IGNORECASE)
#: What is compiled: a module, and in it a function, a method (``Class.method``) or a class.
FUNCTION = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")
FORMATS = ("text", "json", "github", "sarif", "junit")


class ConfigError(Exception):
    """A configuration or an option that cannot be followed; the message is one line."""


@dataclass(frozen=True)
class ConfiguredCase:
    """One entry of ``[tool.fix-compile.cases]``; None where it says nothing and the case file decides.

    ``path``: a ``.py`` file or a folder, as written, which need not exist. ``tolerance``: the largest mean absolute
    error. ``dtype``: a name of torch, without ``torch.``.
    """

    path: str
    train: bool | None = None
    tolerance: float | None = None
    device: str | None = None
    dtype: str | None = None


@dataclass(frozen=True)
class Config:
    """What the file says; None where it says nothing. ``root``: its folder, where its paths and globs start.

    ``fusions``: which rules that are off by themselves are on. ``line_length``: as the project's formatter or linter is
    told.
    """

    root: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unsafe: bool = False
    device_asserts: bool = True
    strategy: tuple[str, ...] = ()
    target_torch: str | None = None
    format: str | None = None
    jobs: int | None = None
    exclude: tuple[str, ...] = ()
    compiled: tuple[str, ...] = ()
    backup_dir: str | None = None
    baseline: str | None = None
    all: bool = False
    cases: Mapping[str, ConfiguredCase] = field(default_factory=dict)
    fusions: Mapping[str, bool] = field(default_factory=dict)
    line_length: int | None = None
    capacity: int | None = None


def load(path: str) -> Config:
    """The configuration that is in force for ``path``; raises ``ConfigError``."""
    return replace(_nearest(path), line_length=line_limit(path))


def _nearest(path: str) -> Config:
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
    if not _NAMED.search(data):
        return Config(root=file.parent)
    try:
        whole = _toml(data.decode("utf-8"))
        tools = whole.get("tool", {})
        table = tools.get("fix-compile", {})
        misnamed = [f"[tool.{name}]" for name in tools if _is_misnamed(name)]
        misnamed += [f"[{name}]" for name, held in whole.items() if isinstance(held, dict) and _is_ours(name)]
    except (ValueError, AttributeError) as error:
        raise ConfigError(f"is not valid TOML: {' '.join(str(error).split())}") from None
    if misnamed:
        raise ConfigError(f"{misnamed[0]} is not read: write [tool.fix-compile]")
    if not isinstance(table, dict):
        raise ConfigError("[tool.fix-compile] must be a table")
    return Config(root=file.parent, **values_in(table, _KEYS, " in [tool.fix-compile]"))


def values_in(table: Mapping[str, Any], known: Mapping[str, tuple[str, Callable[[object], Any]]], where: str) -> Any:
    """What a table says, by its keys with underscores. ``known``: what each must be, and what reads it.

    Raises ``ConfigError`` for another key or value, said with ``where``.
    """
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"unknown key {key!r}{where}{nearest(key, known)}")
        kind, convert = known[key]
        try:
            values[key.replace("-", "_")] = convert(value)
        except TypeError:
            raise ConfigError(f"{key}{where} must be {kind}, not {value!r}") from None
    return values


def _is_ours(name: str) -> bool:
    return re.sub(r"[-_. ]", "", name).lower() == "fixcompile"


def _is_misnamed(name: str) -> bool:
    return name != "fix-compile" and _is_ours(name)


def _toml(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError
    return tuple(value)


def _per_file(value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise TypeError
    return {pattern: _strings(codes) for pattern, codes in value.items()}


def _fusions(value: object) -> dict[str, bool]:
    if not isinstance(value, dict) or not all(isinstance(on, bool) for on in value.values()):
        raise TypeError
    return value


def _strategies(value: object) -> tuple[str, ...]:
    if isinstance(value, dict):
        value = [f"{rule}={name}" if isinstance(name, str) else name for rule, name in value.items()]
    return _strings(value)


def exactly(kind: type) -> Callable[[object], Any]:
    """Return what takes values of this type only; it raises ``TypeError`` for others."""

    def convert(value: object) -> object:
        if type(value) is not kind:  # True is no number here
            raise TypeError
        return value

    return convert


def _count(value: object) -> int:
    if type(value) is not int or value < 1:
        raise TypeError
    return value


def _format(value: object) -> str:
    if value not in FORMATS:
        raise TypeError
    return str(value)


def positive(value: object) -> float:
    """Return a number beyond 0; raises ``TypeError`` for others."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
        raise TypeError
    return float(value)


def _device(value: object) -> str:
    if not isinstance(value, str) or not _DEVICE.fullmatch(value):
        raise TypeError
    return value


def _dtype(value: object) -> str:
    name = value.removeprefix("torch.") if isinstance(value, str) else ""
    if name not in _DTYPES:
        raise TypeError
    return name


def _cases(value: object) -> dict[str, ConfiguredCase]:
    if not isinstance(value, dict):
        raise TypeError
    return {name: _case(name, entry) for name, entry in value.items()}


def _case(name: str, entry: object) -> ConfiguredCase:
    table, keys = f"[tool.fix-compile.cases.{name}]", {"path": _PATH, **CASE_SETTINGS}
    if isinstance(entry, str):
        entry = {"path": entry}
    if not isinstance(entry, dict):
        raise ConfigError(
            f"{name} in [tool.fix-compile.cases] must be {_PATH[0]}, or a table with a path, not {entry!r}"
        )
    values = values_in(entry, keys, f" in {table}")
    if "path" not in values:
        raise ConfigError(f"{table} needs a path: {_PATH[0]}")
    return ConfiguredCase(**values)


def text(value: object) -> str:
    """Return a text that is not empty; raises ``TypeError`` for others."""
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


_PATH: tuple[str, Callable[[object], Any]] = ("a .py file or a folder", text)
_DTYPES = ("float16", "bfloat16", "float32", "float64", "half", "float", "double")
# Devices that a model can run on; the names from npu on are those of backends that are installed beside torch.
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|hpu|xla|mtia|npu|mlu|musa|maia|privateuseone)(:\d+)?", re.ASCII)


def _functions(value: object) -> tuple[str, ...]:
    names = _strings(value)
    if not all(FUNCTION.fullmatch(name) for name in names):
        raise TypeError
    return names


# What may be said of a case, here or in its file: what it must be, and what makes it so (``TypeError``: it is not).
CASE_SETTINGS: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "train": ("true or false", exactly(bool)),
    "tolerance": ("a positive number", positive),
    "device": ('a device of torch such as "cpu", "cuda", "cuda:0", "mps" or "xpu"', _device),
    "dtype": (f"one of {', '.join(_DTYPES)}", _dtype),
}

_KEYS: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "select": ("a list of codes", _strings),
    "ignore": ("a list of codes", _strings),
    "per-file-ignores": ('a table (glob = ["CODE"])', _per_file),
    "unsafe": ("true or false", exactly(bool)),
    "device-asserts": ("true or false", exactly(bool)),
    "strategy": ('a table (rule = "name") or a list of "rule=name"', _strategies),
    "target-torch": ('a string such as "2.13"', exactly(str)),
    "format": (f"one of {', '.join(FORMATS)}", _format),
    "jobs": ("a whole number from 1", _count),
    "exclude": ("a list of globs", _strings),
    "compiled": ('a list of "module:function"', _functions),
    "backup-dir": ("a folder", exactly(str)),
    "baseline": ("a file", exactly(str)),
    "all": ("true or false", exactly(bool)),
    "cases": ("a table", _cases),
    "fusions": ("a table (layer-norm = true)", _fusions),
    "capacity": ("a whole number from 1", _count),
}
