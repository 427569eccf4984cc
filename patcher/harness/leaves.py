"""Outputs as a flat list of named leaves, and what is kept of them to compare."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import math
import re
import types
from collections import deque
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any

import torch

Json = dict[str, Any]
OUTPUT_ELEMENTS, TRAINED_ELEMENTS, SAMPLE_ELEMENTS = 2**25, 2**20, 2**18  # gradients are as many as the parameters
CHECKED_WORDS = 2**24  # at a time
_MIXING = (-7046029254386353131, -4658895280553007687, -7723592293110705685)  # odd numbers of 64 bits, as in splitmix64
_DEEPEST = 40  # levels of containers and objects that are looked into


def leaves(value: Any, name: str, path: tuple[int, ...] = (), met: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Everything in a nested value that can be compared: tensors, numbers, text, and the types of the rest.

    Containers, dataclasses and the attributes of other objects are looked into; of an object that was ``met`` before,
    only the type is told.
    """
    if id(value) in path or len(path) > _DEEPEST:
        return
    inner, met = (*path, id(value)), set() if met is None else met
    if isinstance(value, torch.Tensor) and value.is_nested:
        yield f"{name}.nested", type(value).__name__
        yield from leaves(value.unbind(), name, inner, met)
    elif isinstance(value, torch.Tensor):
        yield name, value
    elif type(value).__module__ == "numpy" and hasattr(value, "__array__"):
        yield f"{name}.type", type(value).__name__
        yield name, _from_numpy(value)
    elif isinstance(value, Mapping):
        yield f"{name}.type", type(value).__name__
        yield f"{name}.keys", " ".join(_said(str, key, number) for number, key in enumerate(value))
        for number, (key, item) in enumerate(value.items()):
            part = f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{_said(repr, key, number)}]"
            yield from leaves(item, name + part, inner, met)
    elif isinstance(value, (list, tuple, deque, KeysView, ValuesView, ItemsView)) and not isinstance(value, torch.Size):
        yield f"{name}.type", type(value).__name__
        yield f"{name}.len", len(items := [*iter(value)])  # a class of its own may refuse ``len``
        for number, item in enumerate(items):
            yield from leaves(item, f"{name}[{number}]", inner, met)
    elif isinstance(value, (bool, int, float, str)):
        plain = next(kind for kind in (bool, int, float, str) if isinstance(value, kind))
        if type(value) is not plain:
            yield f"{name}.type", type(value).__name__
        yield name, plain(value)
    elif value is None:
        yield name, value
    elif isinstance(value, (set, frozenset)):
        yield name, "[" + ", ".join(sorted(_said(repr, item) for item in value)) + "]"
    elif isinstance(value, (bytes, complex, torch.Size, torch.dtype, torch.device, range, BaseException)):
        yield name, _said(repr, value)
    else:
        yield f"{name}.type", type(value).__name__
        opaque = isinstance(value, (torch.nn.Module, type, types.ModuleType)) or callable(value)
        if not opaque and id(value) not in met:
            met.add(id(value))
            for key, item in _attributes(value).items():
                yield from leaves(item, f"{name}.{key}", inner, met)


def _attributes(value: Any) -> dict[str, Any]:
    """What an object shows, in its slots too: what is private may be held in another way by patched code."""
    slots = [slot for kind in type(value).__mro__ for slot in _slots(kind) if hasattr(value, slot)]
    held = {**{slot: getattr(value, slot) for slot in slots}, **getattr(value, "__dict__", {})}
    return {key: item for key, item in held.items() if not str(key).startswith("_")}


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _from_numpy(value: Any) -> Any:
    """A tensor, or text for what torch has no dtype for."""
    try:
        return torch.as_tensor(value)
    except (TypeError, RuntimeError, ValueError):
        return f"{getattr(value, 'dtype', '')} {value.tolist()!r}"


def _said(words: Callable[[Any], str], value: Any, number: int | None = None) -> str:
    """A value in its own words; where it has none, since its class raises when asked, its type and place."""
    try:
        return without_address(words(value))
    except Exception:  # what users write, which no model has ever called
        return type(value).__name__ + ("" if number is None else f" {number}")


def without_address(text: str) -> str:
    """The text without where in memory something lies."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def snapshot(named: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The leaves with copies of the tensors, on their device: a later call may write into the originals."""
    return [(name, leaf.detach().clone() if torch.is_tensor(leaf) else leaf) for name, leaf in named]


def on_host(taken: Iterable[tuple[str, Any]], most: float = math.inf) -> list[tuple[str, Any]]:
    """The leaves with dense copies of the tensors on the CPU; what cannot be copied there is named instead.

    Of a tensor of more than ``most`` elements what is enough to compare it: its digest, how many NaN and infinite
    elements it has, and an even sample of its elements. That is worked out where the tensor is: an accelerator is done
    long before the elements are on the CPU.
    """
    moved = []
    for name, leaf in taken:
        if torch.is_tensor(leaf):
            if leaf.layout != torch.strided:
                moved.append((f"{name}.layout", str(leaf.layout)))
            try:
                leaf = leaf.detach().to_dense() if leaf.layout != torch.strided else leaf.detach()
                leaf = leaf.resolve_conj().resolve_neg()
                leaf = _told(leaf) if leaf.numel() > most else leaf.to("cpu", copy=True).contiguous()
            except (RuntimeError, NotImplementedError) as error:
                leaf = f"<tensor that cannot be compared: {type(error).__name__}>"
        moved.append((name, leaf))
    return moved


def _told(tensor: Any) -> Json:
    """Return its sample, worked out on the CPU where its device has no room or no operator for that."""
    if tensor.device.type != "cpu":
        with contextlib.suppress(RuntimeError, NotImplementedError):
            return _sampled(tensor)
    return _sampled(tensor.cpu())


def _sampled(tensor: Any) -> Json:
    flat = tensor.flatten()
    step = -(-flat.numel() // SAMPLE_ELEMENTS)
    while math.gcd(step, flat.numel()) > 1:
        step += 1  # else it could be the same columns of a matrix, over and over
    wide = flat.float() if flat.is_floating_point() and flat.itemsize == 1 else flat
    return {
        "digest": digest(tensor),
        "shape": list(tensor.shape),
        "NaN": int(wide.isnan().sum()),
        "infinity": int(wide.isinf().sum()),
        "sample": flat[::step].clone().cpu(),
        "sums": _sums(flat, step).cpu(),
    }


def _sums(flat: Any, step: int) -> Any:
    """Weighted sums of all elements, ``step`` at a time: a sample alone would miss a single wrong one."""
    kind = torch.complex128 if flat.is_complex() else torch.double
    weights = 1 + torch.arange(step, device=flat.device).to(kind) / step
    sums = []
    for part in flat.split(step * (2**22 // step + 1)):
        wide = torch.nn.functional.pad(part.to(kind).nan_to_num(0, 0, 0), (0, -part.numel() % step))
        sums.append((wide.view(-1, step) * weights).sum(1))
    return torch.cat(sums)


def sharing(named: list[tuple[str, Any]], state: list[tuple[str, Any]]) -> list[list[str]]:
    """Groups of names whose tensors share memory, with what of the model's ``state`` they share it."""
    groups: dict[tuple[str, int], list[str]] = {}
    for name, leaf in (*named, *state):
        if torch.is_tensor(leaf) and leaf.numel():
            with contextlib.suppress(RuntimeError, NotImplementedError):
                address = leaf.untyped_storage().data_ptr()
                if address:
                    groups.setdefault((str(leaf.device), address), []).append(name)
    ours = {name for name, _ in named}
    return sorted(group for group in groups.values() if len(group) > 1 and group[0] in ours)


def same_facts(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """The names under which both hold the same."""
    both = [name for name in ours if name in theirs]
    return [name for name in both if digest_all([("", ours[name])]) == digest_all([("", theirs[name])])]


def digest(tensor: Any) -> str:
    """A hash of dtype, shape and bytes; on an accelerator a checksum of 64 bits, which it works out itself."""
    about = f"{tensor.dtype} {tuple(tensor.shape)} "
    if tensor.device.type != "cpu":
        with contextlib.suppress(RuntimeError, NotImplementedError):
            return about + _checksum(tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1))
    made = hashlib.sha256(about.encode())
    ((_, host),) = on_host([("", tensor)])[-1:]
    if isinstance(host, str):
        made.update(host.encode())
    elif host.numel():
        flat = host.view(-1).view(torch.uint8)
        made.update((ctypes.c_char * flat.numel()).from_address(flat.data_ptr()))
    return made.hexdigest()


def _checksum(flat: Any) -> str:
    """The sum of all words, each mixed with its place: a single other word changes it for certain."""
    words = flat.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}.get(flat.itemsize, torch.int64))
    total = torch.zeros((), dtype=torch.int64, device=flat.device)
    for start in range(0, words.numel(), CHECKED_WORDS):
        part = words[start : start + CHECKED_WORDS]
        mixed = torch.arange(start, start + part.numel(), device=flat.device).mul_(_MIXING[0]).bitwise_xor_(part)
        for factor in _MIXING[1:]:
            mixed = mixed.mul_(factor).bitwise_xor_((mixed >> 32).bitwise_and_(2**32 - 1))
        total += mixed.sum()
    return f"{int(total) % 2**64:016x}"


def digest_all(named: Iterable[tuple[str, Any]]) -> str:
    """A hash of all leaves, also of those that ``on_host`` has sampled."""
    made = hashlib.sha256()
    for name, leaf in named:
        told = digest(leaf) if torch.is_tensor(leaf) else leaf["digest"] if isinstance(leaf, dict) else repr(leaf)
        made.update(f"{name}={told};".encode())
    return made.hexdigest()
