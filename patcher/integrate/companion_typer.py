"""What the new module has for a command of typer, in the place of arguments for a parser. Never imported here."""

from __future__ import annotations

import enum
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

import typer

_DYNAMIC = {"auto": None, "true": True, "false": False}


class _Mode(str, enum.Enum):
    DEFAULT = "default"
    REDUCE_OVERHEAD = "reduce-overhead"
    MAX_AUTOTUNE = "max-autotune"
    MAX_AUTOTUNE_NO_CUDAGRAPHS = "max-autotune-no-cudagraphs"


class _Dynamic(str, enum.Enum):
    AUTO = "auto"
    TRUE = "true"
    FALSE = "false"


def add_compile_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what `compile_model` reads; without --compile all stays as it is.

    For a function that typer calls: it is given one argument more by name,
    `compile_args`, with these options and its own as attributes.
    """
    options: dict[str, tuple[Any, Any, str]] = {
        "compile": (
            bool,
            False,
            "Compile the repeated blocks of the model with torch.compile.",
        ),
        "compile_backend": (str, "inductor", "Backend of torch.compile."),
        "compile_mode": (_Mode, _Mode.DEFAULT, "Mode of torch.compile."),
        "compile_dynamic": (
            _Dynamic,
            _Dynamic.AUTO,
            "Whether sizes are dynamic; auto: once they change.",
        ),
        "compile_fullgraph": (
            bool,
            False,
            "Fail where a block does not compile as one graph.",
        ),
        "compile_cache_size_limit": (
            int,
            0,
            "How often a function is compiled (0: as PyTorch has it).",
        ),
    }

    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> Any:
        own = {k: v for k, v in kwargs.items() if k not in options}
        given = types.SimpleNamespace(**own)
        for name, (_, default, _) in options.items():
            value = kwargs.get(name, default)
            plain = value.value if isinstance(value, enum.Enum) else value
            setattr(given, name, plain)
        return function(*args, compile_args=given, **own)

    # typer asks the signature, and the annotations by themselves
    hints = typing.get_type_hints(function, include_extras=True)
    hints.pop("compile_args", None)
    parameters = [
        parameter.replace(annotation=hints.get(name, parameter.annotation))
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "compile_args"
    ]
    for name, (kind, default, told) in options.items():
        hints[name] = kind
        option = typer.Option(default, f"--{name}", help=told)
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option,
                annotation=kind,
            )
        )
    command.__annotations__ = hints
    vars(command)["__signature__"] = inspect.Signature(parameters)
    return command
