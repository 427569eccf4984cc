"""The options of ``test``, ``diagnose`` and the search that say how to measure, and what they ask for."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from patcher.config import Config, ConfigError
from patcher.files.source import reason
from patcher.harness.cases import VARIATIONS, CaseError, find
from patcher.harness.packages import PackageError, locate
from patcher.measuring.measure import BACKENDS, MODES, Request, quick_by_environment
from patcher.patching.changes import Change, ChangeError, of_diff, since

_F = TypeVar("_F", bound=Callable[..., Any])


def _how(call: str) -> tuple[Callable[[_F], _F], ...]:
    """The options that say what is measured and how; ``call`` stands in front of their help."""
    return (
        click.option("--case", multiple=True, metavar="CASE", help=f"{call}A case file, a folder of them, or a name."),
        click.option("--package", multiple=True, metavar="NAME", help=f"{call}Patch a copy of an installed package."),
        click.option(
            "--mode", multiple=True, type=click.Choice(MODES), help=f"{call}torch.compile mode; may be repeated."
        ),
        click.option(
            "--vary", multiple=True, type=click.Choice(VARIATIONS), help=f"{call}Also with other sizes of it."
        ),
        click.option("--quick", is_flag=True, help=f"{call}Fewer and shorter runs (also: FIX_COMPILE_QUICK=1)."),
        click.option("--tolerance", type=click.FloatRange(min=0, min_open=True), help=f"{call}Largest mean error."),
        click.option("--backend", type=click.Choice(BACKENDS), help=f"{call}Of torch.compile (default: inductor)."),
        click.option("--python", metavar="EXE", help=f"{call}The Python that can run the model (default: this one)."),
        click.option("--time-limit", type=click.FloatRange(min=1), metavar="S", help=f"{call}Seconds a process."),
        click.option("--memory-limit", type=click.FloatRange(min=0.1), metavar="GIB", help=f"{call}Of each process."),
        click.option(
            "--verbose-compile", is_flag=True, help=f"{call}Show what torch logs; TORCH_LOGS may ask for more."
        ),
    )


_TEST = (
    click.option("--test", is_flag=True, help="Measure original against patched; patch only when they are equivalent."),
    *_how("--test: "),
    click.option("--patch", metavar="DIFF", help="--test: Judge this diff (-: standard input); nothing is changed."),
    click.option("--lock", is_flag=True, help="--test: Record what the cases cost now in fix-compile.lock."),
    click.option("--against", metavar="REV", help="--test: Judge all that differs from this git revision."),
    click.option("--wide", is_flag=True, help="--test: Tables as wide as they are (always so in files and pipes)."),
)


_CAPACITY = "kv-cache=static: Places that a cache gets (default: as generate or the configuration says)."
_ASSERTS = "Whether fixes that assert on the device may be safe (default: yes)."
_OF_RULES = (
    click.option("--select", multiple=True, metavar="CODES", help="Only these rules, by code, prefix or name."),
    click.option("--ignore", multiple=True, metavar="CODES", help="Not these rules. Both also take high, medium, low."),
    click.option("--unsafe", is_flag=True, help="Also fixes that are right only under a stated assumption."),
    click.option("--device-asserts/--no-device-asserts", default=None, help=_ASSERTS),
    click.option("--strategy", multiple=True, metavar="RULE=NAME", help="How a rule fixes, e.g. kv-cache=eager-zone."),
    click.option("--capacity", type=click.IntRange(1), metavar="N", help=_CAPACITY),
    click.option("--target-torch", metavar="VERSION", help="Skip what breaks no more there (default: 2.13)."),
)


def rule_flags(function: _F) -> _F:
    """Add the options that say which rules fix, and how."""
    return _with(function, _OF_RULES)


def measure_options(function: _F) -> _F:
    """Add the options of ``--test`` to a command; their values come as keywords."""
    return _with(function, _TEST)


def how_options(function: _F) -> _F:
    """Add the options that say what is measured and how; ``request_of`` reads them."""
    return _with(function, _how(""))


def _with(function: _F, options: Sequence[Callable[[_F], _F]]) -> _F:
    for option in reversed(options):
        function = option(function)
    return function


#: What these options are called as keywords.
NAMES = tuple(str(option.name) for option in getattr(measure_options(lambda: None), "__click_params__", ()))

#: What ``--verify-only`` may be told of the cases that it counts.
_COUNTING = (
    "case", "lock", "mode", "vary", "backend", "python", "time_limit", "memory_limit", "verbose_compile",
)  # fmt: skip


def request_from(asked: Mapping[str, Any], config: Config, checks: bool = False) -> Request | None:
    """What is to be measured, or None without ``--test``. Raises ``click.UsageError`` and ``ConfigError``.

    ``checks``: of a check, the cases that are held to their budgets.
    """
    if not asked["test"]:
        given = [name for name, value in asked.items() if value and not (checks and name in _COUNTING)]
        if given:
            raise click.UsageError(f"--{given[0].replace('_', '-')} goes with --test")
        if checks and not asked["case"] and any(asked[name] for name in _COUNTING):
            raise click.UsageError("--verify-only counts a case: --case names it")
        return request_of(asked, config, call="--case: ") if checks and asked["case"] else None
    if asked["patch"] and asked["against"]:
        raise click.UsageError("--patch and --against exclude each other")
    return replace(request_of(asked, config, call="--test: "), wide=asked["wide"] or not sys.stdout.isatty())


def change_from(asked: Mapping[str, Any], request: Request, paths: Sequence[str]) -> Change:
    """What ``--patch`` or ``--against`` names. Raises ``ConfigError``."""
    try:
        if asked["against"]:
            return since(asked["against"], paths[0] if paths else os.curdir)
        folders = (*paths, *map(str, request.packages.values()))
        name = "standard input" if asked["patch"] == "-" else asked["patch"]
        return of_diff(_diff(asked["patch"]), name, folders)
    except ChangeError as error:
        raise ConfigError(f"--{'against' if asked['against'] else 'patch'}: {error}") from None


def _diff(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"--patch {file}: cannot be read: {reason(error)}") from None


def request_of(asked: Mapping[str, Any], config: Config, without_cases: bool = False, call: str = "") -> Request:
    """Return what ``how_options`` were given; ``call`` stands in front of messages. Raises ``ConfigError``."""
    python = asked["python"] or sys.executable
    try:
        packages = {name: locate(name, python) for name in asked["package"]}
        cases = () if without_cases else find(asked["case"], config.cases, config.root, asked["vary"])
    except (CaseError, PackageError) as error:
        raise ConfigError(f"{call}{error}") from None
    memory = asked["memory_limit"]
    return Request(
        cases=cases,
        python=python,
        packages=packages,
        modes=tuple(dict.fromkeys(asked["mode"])) or ("default",),
        backend=asked["backend"],
        quick=asked["quick"] or quick_by_environment(),
        verbose=asked["verbose_compile"],
        seconds=asked["time_limit"],
        memory=None if memory is None else math.ceil(memory * 2**30),
        tolerance=asked["tolerance"],
    )


def located(request: Request | None) -> Sequence[str]:
    """The folders of the installed packages to patch."""
    return [] if request is None else [str(folder) for folder in request.packages.values()]
