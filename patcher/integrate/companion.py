"""torch.compile for scripts: its arguments, the call, and checkpoints without traces of it.

Written by "fix-compile integrate"; "fix-compile restore" takes it away again.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections import Counter
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # PyTorch may read settings that a script makes first
    from torch import nn

logger = logging.getLogger(__name__)

_DYNAMIC = {"auto": None, "true": True, "false": False}
_OFF = ("", "0", "no", "none", "false")


# options of the script that compile in another way
_OTHER_OPTIONS = ("torch_compile",)


def add_compile_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `compile_model` reads; without --compile all stays as it is."""
    group = parser.add_argument_group("torch.compile")
    group.add_argument(
        "--compile",
        action="store_true",
        help="compile the repeated blocks of the model with torch.compile",
    )
    group.add_argument(
        "--compile_backend",
        default="inductor",
        help="backend of torch.compile (default: %(default)s)",
    )
    group.add_argument(
        "--compile_mode",
        default="default",
        choices=[
            "default",
            "reduce-overhead",
            "max-autotune",
            "max-autotune-no-cudagraphs",
        ],
        help="mode of torch.compile (default: %(default)s)",
    )
    group.add_argument(
        "--compile_dynamic",
        default="auto",
        choices=list(_DYNAMIC),
        help="whether sizes are compiled as dynamic; auto: once they change",
    )
    group.add_argument(
        "--compile_fullgraph",
        action="store_true",
        help="fail where a block does not compile as one graph",
    )
    group.add_argument(
        "--compile_cache_size_limit",
        type=int,
        default=0,
        help="how often one function is compiled (0: as PyTorch has it)",
    )


def compile_model(model: Any, args: Any) -> Any:
    """Compile the blocks of `model` in place, as `args` say; gives `model`.

    In place: names of parameters, types and checkpoints stay what they are.
    A model without repeated blocks is compiled as a whole. Where blocks are
    swapped between devices, their linear layers stay eager.
    """
    from torch import nn

    if not args.compile:
        return model
    inner = model
    while isinstance(
        inner,
        (nn.parallel.DistributedDataParallel, nn.DataParallel),
    ):
        inner = inner.module
    options = compile_options(args)
    _refuse_second_compiler(inner)
    blocks = repeated_blocks(inner)
    swapped = bool(getattr(args, "blocks_to_swap", None))
    if swapped:
        for block in blocks:
            disable_linear_from_compile(block)
        options["fullgraph"] = False
    for module in blocks or [inner]:
        _compile_in_place(module, options)
    what = f"{len(blocks)} blocks" if blocks else "the whole"
    logger.info("torch.compile: %s of %s", what, type(inner).__name__)
    return model


def compile_options(args: Any) -> dict[str, Any]:
    """The arguments of torch.compile that `args` say; sets its limit as well.

    Raises ValueError where an option that compiles in another way is given.
    """
    for name in _OTHER_OPTIONS:
        if str(getattr(args, name, False)).lower() not in _OFF:
            raise ValueError(f"--compile and --{name} exclude each other")
    # a configuration file may say true for "true"
    dynamic = str(args.compile_dynamic).lower()
    if dynamic not in _DYNAMIC:
        raise ValueError(f"compile_dynamic is none of {', '.join(_DYNAMIC)}")
    if args.compile_cache_size_limit:
        _set_limit(args.compile_cache_size_limit)
    options = {
        "backend": args.compile_backend,
        "dynamic": _DYNAMIC[dynamic],
        "fullgraph": args.compile_fullgraph,
    }
    if args.compile_mode != "default":
        options["mode"] = args.compile_mode
    return options


def repeated_blocks(model: nn.Module) -> list[nn.Module]:
    """The blocks that a model repeats: those that it declares itself.

    Else the outermost ones of lists that hold several of a class.
    """
    from torch import nn

    declared = getattr(model, "_repeated_blocks", None) or ()
    if declared:
        return [m for m in model.modules() if type(m).__name__ in declared]
    blocks: dict[int, nn.Module] = {}
    inside: set[int] = set()
    for part in model.modules():
        if id(part) in inside:
            continue
        if isinstance(part, (nn.ModuleList, nn.Sequential)):
            kinds = Counter(type(entry) for entry in part)
            for entry in part:
                if kinds[type(entry)] > 1 and _is_block(entry):
                    blocks[id(entry)] = entry
                    inside.update(id(m) for m in entry.modules())
    return list(blocks.values())


def disable_linear_from_compile(module: nn.Module) -> None:
    """Let the linear layers in `module` run eagerly in compiled code.

    Where blocks are swapped, their weights are exchanged between calls.
    """
    for part in module.modules():
        linear = type(part).__name__.endswith("Linear")
        if linear and not hasattr(part, "_eager_linear"):
            part.forward = _eager(part.forward)
            part._eager_linear = True


def _eager(forward: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    if isinstance(forward, MethodType):
        # still a method: a deep copy of its module gets one of its own
        own = torch.compiler.disable(forward.__func__)
        return MethodType(own, forward.__self__)
    function: Callable[..., Any] = torch.compiler.disable(forward)
    return function


def _is_block(module: nn.Module) -> bool:
    """Whether it computes by itself, with weights, and is more than a layer."""
    from torch import nn

    holds = isinstance(module, (nn.ModuleList, nn.ModuleDict, nn.Sequential))
    weights = next(module.parameters(), None) is not None
    return not holds and weights and any(True for _ in module.children())


def _compile_in_place(module: nn.Module, options: dict[str, Any]) -> None:
    import torch

    if str(type(module).forward.__module__).startswith("torch.nn."):
        # PyTorch compiles no frame of its own: it is called from one of ours;
        # kept where Module.compile keeps it: copies and pickles are without
        call = _calling(module._call_impl)
        module._compiled_call_impl = torch.compile(call, **options)
    else:
        torch.nn.Module.compile(module, **options)


def _calling(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def _set_limit(limit: int) -> None:
    import torch

    config = torch._dynamo.config
    newer = hasattr(config, "recompile_limit")
    setattr(config, "recompile_limit" if newer else "cache_size_limit", limit)


def _refuse_second_compiler(model: nn.Module) -> None:
    """Raise ValueError where something else compiles as well."""
    backend = os.environ.get("ACCELERATE_DYNAMO_BACKEND", "no")
    if backend.lower() not in ("", "no"):
        raise ValueError(
            "--compile and the dynamo backend of accelerate exclude each "
            "other: set dynamo_backend to no in its configuration"
        )
    if any(type(part).__name__ == "OptimizedModule" for part in model.modules()):
        raise ValueError("--compile: the model is compiled already")
