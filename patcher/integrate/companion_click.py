"""What the new module has for a command of click, in the place of arguments for a parser. Never imported here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import click

_DYNAMIC = {"auto": None, "true": True, "false": False}
_DEFAULTS = {
    "compile": False,
    "compile_backend": "inductor",
    "compile_mode": "default",
    "compile_dynamic": "auto",
    "compile_fullgraph": False,
    "compile_cache_size_limit": 0,
}


def add_compile_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what `compile_model` reads; without --compile all stays as it is.

    For a function that click calls, which is given its own options alone.
    """
    modes = [
        "default",
        "reduce-overhead",
        "max-autotune",
        "max-autotune-no-cudagraphs",
    ]
    options = [
        click.option(
            "--compile",
            is_flag=True,
            help="Compile the repeated blocks of the model with torch.compile.",
        ),
        click.option(
            "--compile_backend",
            default="inductor",
            show_default=True,
            help="Backend of torch.compile.",
        ),
        click.option(
            "--compile_mode",
            default="default",
            show_default=True,
            type=click.Choice(modes),
            help="Mode of torch.compile.",
        ),
        click.option(
            "--compile_dynamic",
            default="auto",
            show_default=True,
            type=click.Choice(list(_DYNAMIC)),
            help="Whether sizes are dynamic; auto: once they change.",
        ),
        click.option(
            "--compile_fullgraph",
            is_flag=True,
            help="Fail where a block does not compile as one graph.",
        ),
        click.option(
            "--compile_cache_size_limit",
            type=int,
            default=0,
            show_default=True,
            help="How often a function is compiled (0: as PyTorch has it).",
        ),
    ]

    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> Any:
        own = {k: v for k, v in kwargs.items() if k not in _DEFAULTS}
        return function(*args, **own)

    for option in reversed(options):
        command = option(command)
    return command


def compile_args() -> SimpleNamespace:
    """All that the command that runs is given, as attributes."""
    context = click.get_current_context(silent=True)
    given = context.params if context is not None else {}
    return SimpleNamespace(**{**_DEFAULTS, **given})
