"""The calls of a case with changed inputs: other values, sizes, dtypes, and modes, the same ones each time.

A fix that is right for the recorded inputs alone shows there. Each call starts from the state that a snapshot has of
the model. Loaded by ``worker.py``, beside this file, and by ``run/recorded.py``; the standard library and torch.
"""

from __future__ import annotations

import contextlib
import copy
import math
import random
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree

FEW, MANY = 12, 60  # calls of which each input is changed in a way of its own
_LARGE = 100

_Leaf = Callable[[Any, Any], Any]
Json = dict[str, Any]
_Around = Callable[[Any, str], Any]


def _other_values(tensor: Any, draws: Any) -> Any:
    if tensor.dtype == torch.bool:
        return torch.randint(0, 2, tensor.shape, generator=draws).bool()
    if not tensor.is_floating_point():
        return torch.randint(int(tensor.min()), int(tensor.max()) + 1, tensor.shape, generator=draws)
    known = tensor.double()[tensor.isfinite()]
    spread = float(known.std()) if known.numel() > 1 else 1.0
    return torch.randn(tensor.shape, generator=draws, dtype=torch.double) * spread + float(known.mean())


def _with_one(value: float) -> _Leaf:
    def changed(tensor: Any, draws: Any) -> Any:
        made = tensor.clone(memory_format=torch.contiguous_format)
        made.view(-1)[int(torch.randint(0, made.numel(), (), generator=draws))] = value
        return made

    return changed


_FLOATING: Mapping[str, _Leaf] = {
    "zeros": lambda tensor, _: torch.zeros_like(tensor),
    "equal values": lambda tensor, _: torch.full_like(tensor, float(tensor.double().mean())),
    "rounded values": lambda tensor, _: tensor.round(),
    "negated values": lambda tensor, _: -tensor,
    f"values times {_LARGE}": lambda tensor, _: tensor * _LARGE,
}
_LAST: Mapping[str, _Leaf] = {"a NaN": _with_one(math.nan), "an infinity": _with_one(math.inf)}  # a check may fail
_WHOLE: Mapping[str, _Leaf] = {
    "the smallest number everywhere": lambda tensor, _: torch.full_like(tensor, int(tensor.min())),
    "the largest number everywhere": lambda tensor, _: torch.full_like(tensor, int(tensor.max())),
    "numbers in order": lambda tensor, _: tensor.sort().values,
}
_FLAGS: Mapping[str, _Leaf] = {
    "flags inverted": lambda tensor, _: ~tensor,
    "flags all true": lambda tensor, _: torch.ones_like(tensor),
    "flags all false": lambda tensor, _: torch.zeros_like(tensor),
}
_ALL: Mapping[str, _Leaf] = {
    "other values": _other_values,
    "the reverse order": lambda tensor, _: tensor.flip(-1) if tensor.dim() else None,
}


def _kind(leaf: Any) -> dict[str, _Leaf]:
    """How a tensor can be changed; {} for what is no plain tensor with values."""
    if type(leaf) not in (torch.Tensor, torch.nn.Parameter) or leaf.layout != torch.strided or not leaf.numel():
        return {}
    if leaf.is_complex() or leaf.is_quantized:
        return {}
    return {**_ALL, **(_FLAGS if leaf.dtype == torch.bool else _FLOATING if leaf.is_floating_point() else _WHOLE)}


@dataclass(frozen=True)
class Change:
    """A way to change a call. ``mixed``: each input in a way of its own. ``around``: a context in which it is made.

    ``size``: of the first or second dimension (``axis``) from what it was. ``dtype``: of tensors of the ``kind``.
    """

    name: str
    mixed: bool = False
    around: _Around = field(default=lambda model, device: contextlib.nullcontext())
    axis: int = -1
    size: Callable[[int], int] = int
    dtype: Any = None
    kind: str = "floating"

    @property
    def elsewhere(self) -> bool:
        """Whether it is another size, dtype or mode; else the values alone are others."""
        return self.axis >= 0 or self.dtype is not None or self.around is not _NOWHERE.around

    def of(self, call: Any) -> Any:
        """The changed call; None where nothing in it is changed. A call that is a function gets a changed model."""
        return _Changed(self, call) if callable(call) else self._of(call)

    def _of(self, given: Any) -> Any:
        chosen, now = random.Random(self.name), _size(given, self.axis)
        draws = torch.Generator().manual_seed(chosen.getrandbits(31))
        if self.axis >= 0 and not now:
            return None
        met = [self.around is not _NOWHERE.around]  # or that something was changed

        def change(leaf: Any) -> Any:
            made = leaf
            if self.dtype is not None and torch.is_tensor(leaf):
                made = leaf.detach().to(self.dtype) if _kind_of(leaf) == self.kind else leaf
            elif self.axis >= 0 and torch.is_tensor(leaf) and leaf.dim() > self.axis and leaf.size(self.axis) == now:
                made = leaf.detach().index_select(self.axis, torch.arange(self.size(now), device=leaf.device) % now)
            elif self.mixed and type(leaf) is bool:
                made = chosen.random() < 0.5
            elif ways := _kind(leaf):
                way = ways[chosen.choice(list(ways))] if self.mixed else ways.get(self.name)
                way = _LAST.get(self.name, way) if leaf.is_floating_point() else way
                with contextlib.suppress(Exception):  # of numbers at the end of their range, of other kinds of tensors
                    new = None if way is None else way(leaf.detach(), draws)
                    made = leaf if new is None else new.to(leaf.device, leaf.dtype)
            if made is leaf:
                return leaf
            met.append(True)
            asked = torch.is_tensor(made) and leaf.requires_grad and made.is_floating_point()
            return made.requires_grad_() if asked else made

        made = torch.utils._pytree.tree_map(change, given)
        return made if any(met) else None


def _kind_of(tensor: Any) -> str:
    return "flags" if tensor.dtype == torch.bool else "floating" if tensor.is_floating_point() else "whole"


class _Changed:
    """A call that is a function, with a model whose arguments are changed. ``unchanged``: there were none."""

    def __init__(self, change: Change, call: Callable[[Any], Any]) -> None:
        self.change, self.call, self.unchanged = change, call, True

    def __call__(self, model: Any) -> Any:
        return self.call(_Giving(self, model))


class _Giving:
    """A model, or a method of one, whose arguments are changed."""

    def __init__(self, changed: _Changed, model: Any) -> None:
        self._changed, self._model = changed, model

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = self._changed.change._of((args, kwargs))
        self._changed.unchanged &= made is None
        args, kwargs = (args, kwargs) if made is None else made
        return self._model(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        return _Giving(self._changed, found) if isinstance(found, types.MethodType) else found


_NOWHERE = Change("")


def _size(given: Any, axis: int) -> int:
    """The size of the first tensor that has this dimension."""
    leaves = torch.utils._pytree.tree_leaves(given)
    return next((leaf.size(axis) for leaf in leaves if torch.is_tensor(leaf) and leaf.dim() > axis >= 0), 0)


@contextlib.contextmanager
def _turned(model: Any, device: str) -> Iterator[None]:
    """The model in training mode where it was not, and the reverse."""
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    before = [module.training for module in modules]
    for module in modules:
        module.training = not module.training
    try:
        yield
    finally:
        for module, training in zip(modules, before, strict=True):
            module.training = training


def _in_dtype(dtype: Any) -> _Around:
    return lambda model, device: contextlib.nullcontext(model.to(dtype) if isinstance(model, torch.nn.Module) else None)


def changes() -> Iterator[Change]:
    """All changes: first those that compile nothing anew, then those that do, last those that change the model."""
    yield from (Change(name) for name in (*_ALL, *_FLOATING, *_WHOLE, *_FLAGS))
    yield from (Change(f"mixed changes {number}", mixed=True) for number in range(FEW))
    yield Change("training mode turned over", around=_turned)
    yield Change("inference mode", around=lambda model, device: torch.inference_mode())
    yield Change("no gradients", around=lambda model, device: torch.no_grad())
    yield Change("autocast", around=lambda model, device: torch.autocast(device, torch.bfloat16))
    yield Change("a batch of 1", axis=0, size=lambda now: 1)
    yield Change("a larger batch", axis=0, size=lambda now: now + 1)
    yield Change("a shorter sequence", axis=1, size=lambda now: max(1, now // 2))
    yield Change("an empty batch", axis=0, size=lambda now: 0)
    yield from (Change(f"mixed changes {number}", mixed=True) for number in range(FEW, MANY))
    for kind, dtype in (
        ("floating", torch.uint8),
        ("whole", torch.int32),
        ("whole", torch.bool),
        ("flags", torch.int64),
    ):
        yield Change(f"{kind} values as {str(dtype).removeprefix('torch.')}", dtype=dtype, kind=kind)
    yield from (Change(name) for name in _LAST)
    yield from (
        Change(str(dtype).removeprefix("torch."), dtype=dtype, around=_in_dtype(dtype))
        for dtype in (torch.float64, torch.bfloat16)
    )


def trained_by(optimizer: torch.optim.Optimizer) -> list[Any]:
    """The parameters of an optimizer."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


class Snapshot:
    """The state of modules, optimizers and other objects, to be put back."""

    def __init__(self, owners: list[Any]) -> None:
        modules = [m for owner in owners if isinstance(owner, torch.nn.Module) for m in owner.modules()]
        optimizers = [owner for owner in owners if isinstance(owner, torch.optim.Optimizer)]
        held = [t for m in modules for t in (*m._parameters.values(), *m._buffers.values()) if t is not None]
        tensors = {id(t): t for t in (*held, *(p for one in optimizers for p in trained_by(one)))}
        self._tensors = [(t, t.detach().clone(), None if t.grad is None else t.grad.clone()) for t in tensors.values()]
        others = [owner for owner in owners if not isinstance(owner, torch.nn.Module | torch.optim.Optimizer)]
        self._attributes = [(m, {k: _copied(v) for k, v in vars(m).items()}) for m in (*modules, *others)]
        self._groups = [(group, dict(group)) for one in optimizers for group in one.param_groups]
        self._states = [(one.state, {p: _cloned(held) for p, held in one.state.items()}) for one in optimizers]

    def restore(self) -> None:
        """Put it back, in place."""
        for module, attributes in self._attributes:
            module.__dict__.clear()
            module.__dict__.update({key: _copied(value) for key, value in attributes.items()})
        with torch.no_grad():
            for tensor, value, gradient in self._tensors:
                if tensor.dtype == value.dtype:
                    tensor.copy_(value)
                else:
                    tensor.data = value.clone()
                tensor.grad = None if gradient is None else gradient.clone()
        for group, held in self._groups:
            group.clear()
            group.update(held)
        for state, known in self._states:
            state.clear()
            state.update({parameter: _cloned(held) for parameter, held in known.items()})


def _cloned(held: Json) -> Json:
    """The state of one parameter, with tensors of its own."""
    return {key: value.clone() if isinstance(value, torch.Tensor) else value for key, value in held.items()}


def _copied(value: Any) -> Any:
    """A container of its own, with the same things in it."""
    return copy.copy(value) if type(value) in (dict, list, set) or hasattr(value, "move_to_end") else value
