"""Other arguments for the same call: dtypes, sizes, values, gradients, memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

Change = Callable[[torch.Tensor], torch.Tensor]


def _to(dtype: torch.dtype) -> Change:
    return lambda t: t.to(dtype) if t.is_floating_point() else t


def _with(value: float) -> Change:
    def put(t: torch.Tensor) -> torch.Tensor:
        if t.is_floating_point() and t.numel():
            t = t.detach().clone()
            t.view(-1)[t.numel() // 2] = value
        return t

    return put


def _spread(t: torch.Tensor) -> torch.Tensor:
    return t.unsqueeze(-1).repeat(*[1] * t.dim(), 2)[..., 0]


_EACH: dict[str, Change] = {
    "float16": _to(torch.float16),
    "bfloat16": _to(torch.bfloat16),
    "float64": _to(torch.float64),
    "int32": lambda t: t.int() if t.dtype == torch.long else t,
    "masks as integers": lambda t: t.long() if t.dtype == torch.bool else t,
    "masks as bytes": lambda t: t.to(torch.uint8) if t.dtype == torch.bool else t,
    "masks of nothing": lambda t: torch.zeros_like(t) if t.dtype == torch.bool else t,
    "masks of all": lambda t: torch.ones_like(t) if t.dtype == torch.bool else t,
    "inf": _with(float("inf")),
    "-inf": _with(float("-inf")),
    "nan": _with(float("nan")),
    "negative": lambda t: t if t.dtype == torch.bool else -t,
    "huge": lambda t: t * 1e30 if t.is_floating_point() else t,
    "tiny": lambda t: t * 1e-30 if t.is_floating_point() else t,
    "zeros": torch.zeros_like,
    "nothing": lambda t: t[:0] if t.dim() else t,
    "no columns": lambda t: t[..., :0] if t.dim() else t,
    "one row": lambda t: t[:1] if t.dim() else t,
    "rows reversed": lambda t: t.flip(0) if t.dim() else t,
    "one element": lambda t: t.reshape(-1)[0] if t.numel() else t,
    "a batch": lambda t: t.unsqueeze(0),
    "strided": _spread,
    "expanded": lambda t: t[:1].expand(t.shape) if t.dim() and t.shape[0] else t,
    "trained": lambda t: t.detach().clone().requires_grad_() if t.is_floating_point() else t,
}
_FIRST = ("nothing", "no columns", "one row", "one element", "a batch", "float64", "zeros")
#: Names of variations; "first ..." changes one tensor only.
VARIATIONS: tuple[str, ...] = (*_EACH, *(f"first {name}" for name in _FIRST), "the same twice", "views of one")


def varied(args: tuple[Any, ...], named: dict[str, Any], name: str, rng: random.Random) -> tuple[Any, dict[str, Any]]:
    """The arguments, varied; those at the top level only."""
    if not name:
        return args, named
    if name in {"the same twice", "views of one"}:
        return _together(args, views=name == "views of one"), named
    change = _EACH[name.removeprefix("first ")]
    one = name.startswith("first ")
    where = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
    chosen = {rng.choice(where)} if one and where else set(where)
    new = tuple(change(a) if i in chosen else a for i, a in enumerate(args))
    return new, {k: change(v) if isinstance(v, torch.Tensor) and not one else v for k, v in named.items()}


def _together(args: tuple[Any, ...], views: bool) -> tuple[Any, ...]:
    """Arguments of one dtype and shape as one tensor, or as views of one."""
    out: list[Any] = list(args)
    for i, a in enumerate(args):
        for j in range(i):
            b = args[j]
            if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.dtype == b.dtype:
                if views and a.numel() and b.numel():
                    base = b.reshape(-1).repeat(-(-a.numel() // b.numel()))
                    out[j], out[i] = base[: b.numel()].view(b.shape), base[: a.numel()].view(a.shape)
                    return tuple(out)
                if not views and a.shape == b.shape:
                    out[i] = b
                    return tuple(out)
    return args
