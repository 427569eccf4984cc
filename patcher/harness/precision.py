"""In what precision a call computes, whatever the types of its results are.

A training loop may have logits turned to float32 behind layers that autocast ran in bfloat16. Loaded by ``worker.py``,
which lies beside this file; the standard library and torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


class Noting:
    """While this is entered, the types of autocast are noted: ``epsilon`` is that of the coarsest, 0.0 without any.

    ``tensors``: parameters, which count as well.
    """

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._found = {t.dtype for t in tensors if t.is_floating_point() and t.itemsize == 2}
        self._enter: Callable[..., Any] = torch.autocast.__enter__

    @property
    def epsilon(self) -> float:
        """Of the coarsest type so far."""
        return max((torch.finfo(kind).eps for kind in self._found), default=0.0)

    def __enter__(self) -> Noting:
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                self._found.add(torch.get_autocast_dtype(kind))

        def entering(context: Any) -> Any:
            if context._enabled and context.fast_dtype.itemsize == 2:
                self._found.add(context.fast_dtype)
            return self._enter(context)

        torch.autocast.__enter__ = entering
        return self

    def __exit__(self, *_: object) -> None:
        torch.autocast.__enter__ = self._enter
