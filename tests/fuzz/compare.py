"""The first difference between what was seen of two modules that should be the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

from tests.fuzz.execute import Observed, Seen, Way

_HISTORY = re.compile(r"grad_fn=<\w+>")
_NEAR = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 1e-5, torch.complex64: 1e-5}


def differences(a: Observed, b: Observed, way: Way, ignored: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
    """Label and words for each difference; ``a`` is of the original.

    Two calls that both raise are equal, and nothing after them is compared where they left other things behind.
    ``ignored``: labels that differ by design of the fix, as the example itself shows.
    """
    for x, y in zip(a.calls, b.calls, strict=True):
        if bool(x.raised) != bool(y.raised):
            if y.raised:
                yield "raises", f"raises {y.raised[:100]!r}, the original returns"
            else:
                yield "returns", f"returns, the original raises {x.raised[:100]!r}"
            return
        found = list(_of_call(x, y, ignored))
        if x.raised and found:
            return
        if found:
            yield from found
            return
    if not way.compiling and not way.dynamo and _said(a.printed) != _said(b.printed):
        yield "printed", f"printed {a.printed[-80:]!r} against {b.printed[-80:]!r}"


def _said(printed: str) -> str:
    """What was printed; not by which operation a tensor was made."""
    return _HISTORY.sub("grad_fn=", re.sub(r"\s+", " ", printed))


def _of_call(x: Seen, y: Seen, ignored: frozenset[str]) -> Iterator[tuple[str, str]]:
    for label in {**x.leaves, **y.leaves}:
        if label in ignored or any(label.startswith(known) for known in ignored if known.startswith("self")):
            continue
        if label not in x.leaves:
            if not label.startswith(("self", "globals")):
                yield label, f"{label} only after"
        elif label not in y.leaves:
            yield label, f"{label} is gone"
        elif said := _unequal(x.leaves[label], y.leaves[label]):
            yield label, f"{label}: {said}"
    both = [label for label in x.shared if label in y.shared and label not in ignored]
    for label in both:
        if label.startswith(("self", "globals")):
            continue
        here = {other for other in both if x.shared[other] == x.shared[label]}
        there = {other for other in both if y.shared[other] == y.shared[label]}
        if here != there:
            yield (
                f"shared {label}",
                f"{label} shares memory with {sorted(here - {label})} against {sorted(there - {label})}",
            )


def _unequal(a: Any, b: Any) -> str:
    if (
        isinstance(a, tuple)
        and isinstance(b, tuple)
        and isinstance(a[0], torch.Tensor)
        and isinstance(b[0], torch.Tensor)
    ):
        if a[1] != b[1]:
            return f"requires_grad {a[1]} against {b[1]}"
        return _unequal_tensors(a[0], b[0])
    if isinstance(a, float) and isinstance(b, float):
        return "" if a == b or (a != a and b != b) or abs(a - b) <= 1e-6 * abs(a) else f"{a} against {b}"
    if isinstance(a, tuple) or isinstance(b, tuple) or type(a) is not type(b) or a != b:
        return "" if repr(a) == repr(b) else f"{_short(a)} against {_short(b)}"
    return ""


def _unequal_tensors(a: torch.Tensor, b: torch.Tensor) -> str:
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype} {tuple(a.shape)} against {b.dtype} {tuple(b.shape)}"
    if torch.equal(a, b):
        return ""
    near = _NEAR.get(a.dtype, 1e-10)
    same = (
        torch.isclose(a, b, rtol=near, atol=near, equal_nan=True) if a.is_floating_point() or a.is_complex() else a == b
    )
    if bool(same.all()):
        return ""
    place = tuple((~same).nonzero()[0].tolist())
    return f"{list(place)} {a[place].item()} against {b[place].item()} ({int((~same).sum())} elements differ)"


def _short(value: Any) -> str:
    if isinstance(value, tuple) and isinstance(value[0], torch.Tensor):
        return f"a tensor {value[0].dtype} {tuple(value[0].shape)}"
    return repr(value)[:60]
