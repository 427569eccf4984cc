"""Run what is compiled beside its original, on the same arguments: each call is compared by itself.

In a loop that chooses (the next token, say) a rounding may choose otherwise, and all that follows differs. So it may
inside of one call (the experts of a token): the original also runs with weights that are moved by a rounding. Loaded by
``worker.py``, which lies beside this file; the standard library and torch.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

FIRST, EACH, MOST = 16, 16, 48  # the first calls, and from then on one of so many, are kept; at most

EAGER, MOVED, COMPILED = KINDS = ("eager", "moved", "compiled")
Keep = Callable[[int, str, list[tuple[str, Any]]], None]
Leaves = Callable[[Any, str], Iterator[tuple[str, Any]]]


@contextlib.contextmanager
def paired(
    keep: Keep, leaves: Leaves, moving: Callable[[], contextlib.AbstractContextManager[object]]
) -> Iterator[Callable[[], int]]:
    """While this is open, what ``torch.compile`` gives runs the original too, first, on copies of its arguments.

    ``keep``: is given the number of a call, what ran, and its results with the arguments as it left them, as ``leaves``
    names them. ``moving``: while it is open, weights are moved by a rounding. The context gives the number of calls
    that were kept. What the program goes on with is compiled; the buffers and the random numbers that the original has
    used are as before.
    """
    compiling, running, made, kept = torch.compile, False, 0, 0

    def beside(compiled: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def both(*args: Any, **kwargs: Any) -> Any:
            nonlocal running, made, kept
            if running or torch.compiler.is_compiling():
                return compiled(*args, **kwargs)
            made += 1
            if kept >= MOST or (made > FIRST and made % EACH):
                return compiled(*args, **kwargs)
            kept, running, number = kept + 1, True, made
            try:
                for kind, weights in ((EAGER, contextlib.nullcontext), (MOVED, moving)):
                    own_args, own_kwargs = _copied((args, kwargs), leaves)
                    buffers = [(t, t.detach().clone()) for t in _buffers(original)]
                    with torch.random.fork_rng(), torch.compiler.set_stance("force_eager"), weights():
                        expected = original(*own_args, **own_kwargs)
                    keep(number, kind, [*leaves(expected, "output"), *leaves((own_args, own_kwargs), "argument")])
                    with torch.no_grad():
                        for buffer, value in buffers:
                            buffer.copy_(value)
                output = compiled(*args, **kwargs)
                keep(number, COMPILED, [*leaves(output, "output"), *leaves((args, kwargs), "argument")])
                return output
            finally:
                running = False

        return both

    def compile_beside(model: Any = None, **options: Any) -> Any:
        if model is None:
            return functools.partial(compile_beside, **options)
        compiled = compiling(model, **options)
        if not isinstance(compiled, torch.nn.Module):
            return beside(compiled, model)
        vars(compiled)["forward"] = beside(compiled.forward, model.__call__)
        return compiled

    torch.compile = compile_beside
    try:
        yield lambda: kept
    finally:
        torch.compile = compiling


def neighbours(parameters: Iterable[Any], seed: int) -> Iterator[tuple[Any, Any]]:
    """Floating parameters, each with its values moved by one rounding, up or down by chance."""
    signs = torch.Generator().manual_seed(seed)
    for parameter in parameters:
        if parameter.is_floating_point():
            by = 2 * torch.rand(parameter.shape, generator=signs).round().double() - 1
            by = 1 + by * torch.finfo(parameter.dtype).eps
            yield parameter, parameter.detach() * by.to(parameter.device, parameter.dtype)


@contextlib.contextmanager
def moved(near: list[tuple[Any, Any]]) -> Iterator[None]:
    """While this is open, parameters have the values of `neighbours`."""
    usual = [parameter.data for parameter, _ in near]
    for parameter, values in near:
        parameter.data = values
    try:
        yield
    finally:
        for (parameter, _), values in zip(near, usual, strict=True):
            parameter.data = values


def _copied(given: Any, leaves: Leaves) -> Any:
    """The arguments with tensors and containers of their own."""
    found = [leaf for _, leaf in leaves(given, "") if torch.is_tensor(leaf)]
    return copy.deepcopy(given, {id(t): t.detach().clone().requires_grad_(t.requires_grad) for t in found})


def _buffers(original: Any) -> Iterator[Any]:
    owner = getattr(original, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        yield from owner.buffers()
