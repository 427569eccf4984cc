"""Run a module in one way, and say what could be seen of it: results, arguments, state, aliases, gradients, output."""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import logging
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch._dynamo

from patcher.harness.examples import SEED, imported
from tests.fuzz.inputs import varied

torch.set_num_threads(1)


class CompiledAssertion(BaseException):
    """A check in compiled code has failed: no handler of Python's is there to catch that."""


@dataclass(frozen=True)
class Way:
    """How a module is run.

    ``compiling``: as the compiled path, which code finds with ``torch.compiler.is_compiling()``. ``grad``: gradients
    are on, and backward is called. ``inputs``: how the arguments are varied (a name of `inputs`). ``flag``: calls get
    ``flag=True``. ``dynamo``: under ``torch.compile``.
    """

    compiling: bool = False
    grad: bool = False
    inputs: str = ""
    flag: bool = False
    dynamo: bool = False

    def __str__(self) -> str:
        said = [name for name in ("compiling", "grad", "flag", "dynamo") if getattr(self, name)]
        return ", ".join([*said, *([f"inputs: {self.inputs}"] if self.inputs else [])]) or "as it is"


AS_IT_IS = Way()


@dataclass
class Seen:
    """One call: what it raised or all leaves by label, and which of their tensors share memory."""

    raised: str = ""
    leaves: dict[str, Any] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)


@dataclass
class Observed:
    """All calls, then all outputs once more at the end; what was printed."""

    calls: list[Seen]
    printed: str


@lru_cache(maxsize=64)
def _compiled(text: str) -> types.CodeType:
    return compile(text, "<fuzz>", "exec", dont_inherit=True)


@contextlib.contextmanager
def _module(text: str, *, on_disk: bool) -> Iterator[types.ModuleType]:
    if on_disk:
        with imported(text) as module:
            yield module
        return
    module = types.ModuleType("fuzzed")
    sys.modules["fuzzed"] = module
    try:
        exec(_compiled(text), vars(module))
        yield module
    finally:
        sys.modules.pop("fuzzed", None)


def _sown() -> None:
    torch.default_generator.manual_seed(SEED)  # at once: `torch.manual_seed` goes through Dynamo
    random.seed(SEED)
    np.random.seed(SEED)


def observe(source: str, run: str, way: Way) -> Observed:
    """Execute source and run below each other, make the calls. Raises what importing or ``make()`` raises."""
    printed = io.StringIO()
    defaults = torch.get_default_dtype(), torch.is_grad_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)  # fills memory that nobody has written
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with _logging_to(printed):
            try:
                _sown()
                with _module(f"{source}\n\n{run}\n", on_disk=way.dynamo) as module:
                    return Observed(_calls(module, way), printed.getvalue())
            finally:
                torch.set_default_dtype(defaults[0])
                torch.set_grad_enabled(defaults[1])
                torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def _logging_to(stream: io.StringIO) -> Iterator[None]:
    listener = logging.StreamHandler(stream)
    root = logging.getLogger()
    root.addHandler(listener)
    try:
        yield
    finally:
        root.removeHandler(listener)


@contextlib.contextmanager
def _pretending(compiling: bool) -> Iterator[None]:
    """With ``compiling``: code that asks whether it is being compiled is told so."""
    if not compiling:
        yield
        return
    kept: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, value: Any) -> None:
        if hasattr(owner, name):
            kept.append((owner, name, getattr(owner, name)))
            setattr(owner, name, value)

    def disable(fn: Any = None, *_: Any, **__: Any) -> Any:
        return fn if callable(fn) else disable

    try:
        put(torch.compiler, "is_compiling", lambda: True)
        put(torch.compiler, "is_dynamo_compiling", lambda: True)
        put(torch._dynamo, "is_compiling", lambda: True)
        put(torch.compiler, "disable", disable)
        put(torch._dynamo, "disable", disable)
        put(torch, "_assert_async", _assert_async)
        yield
    finally:
        for owner, name, value in reversed(kept):
            setattr(owner, name, value)


def _assert_async(condition: torch.Tensor, message: str = "") -> None:
    if not isinstance(condition, torch.Tensor):
        raise TypeError("_assert_async() takes a tensor")
    if condition.numel() != 1:
        raise RuntimeError("_assert_async() takes one element")
    if not condition.item():
        raise CompiledAssertion(message)


def _calls(module: types.ModuleType, way: Way) -> list[Seen]:
    with _pretending(way.compiling):
        _sown()
        obj = module.make()
        target = torch.compile(obj, backend="eager") if way.dynamo else obj
        train = bool(getattr(module, "train", False) or way.grad)
        grad = bool(getattr(module, "grad", False)) or train
        found: list[Seen] = []
        outputs: list[Any] = []
        dedicated = random.Random(SEED)
        for number, call in enumerate(itertools.islice(module.calls, 6)):
            arguments: list[Any] = []
            invoked = _invocation(call, way, dedicated, arguments, obj)
            if isinstance(obj, torch.nn.Module):
                obj.zero_grad()
            try:
                with torch.set_grad_enabled(grad):
                    out = invoked(target)
                    if train:
                        _backward(out)
            except (Exception, CompiledAssertion) as error:
                outputs.append(None)
                here = {f"args{number}": arguments, "self": obj, "globals": _held_by(module)}
                found.append(_seen(here, f"{type(error).__name__}: {error}"))
                continue
            outputs.append(out)
            here = {f"out{number}": out, f"args{number}": arguments, "self": obj, "globals": _held_by(module)}
            found.append(_seen(here, grads=train))
        found.append(_seen({**{f"out{n}": out for n, out in enumerate(outputs)}, "self": obj}))
        return found


def _held_by(module: types.ModuleType) -> dict[str, Any]:
    """The containers and tensors of the module itself; what the run has made for its calls is seen elsewhere."""
    kinds = (torch.Tensor, list, dict)
    held = {k: v for k, v in vars(module).items() if isinstance(v, kinds) and not k.startswith("__")}
    return {k: v for k, v in held.items() if k.isupper()} | {"TORCH": str(torch.get_default_dtype())}


def _invocation(
    call: Any, way: Way, rng: random.Random, arguments: list[Any], obj: Any
) -> Callable[[Callable[..., Any]], Any]:
    """The call as a function of what is called. Its arguments are put into ``arguments``."""
    if callable(call):
        return lambda fn: call(fn)
    positional, named = call, {}
    if len(call) == 2 and isinstance(call[0], (tuple, list)) and isinstance(call[1], dict):
        positional, named = call
    positional, named = varied(tuple(positional), dict(named), way.inputs, rng)
    if way.flag and takes_flag(obj):
        named = {**named, "flag": True}
    arguments += [positional, named]
    return lambda fn: fn(*positional, **named)


def takes_flag(obj: Any) -> bool:
    """Whether what is called has a parameter ``flag``."""
    entry = obj.forward if isinstance(obj, torch.nn.Module) else obj
    try:
        return "flag" in inspect.signature(entry).parameters
    except (TypeError, ValueError):
        return False


def _backward(out: Any) -> None:
    parts = [t for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor) and t.requires_grad]
    if parts:
        torch.stack([t.sum().double().real for t in parts]).sum().backward()


_OF_EVERY_MODULE = set(vars(torch.nn.Module()))


def _seen(roots: Mapping[str, Any], raised: str = "", grads: bool = False) -> Seen:
    leaves: dict[str, Any] = {}
    storages: dict[str, int] = {}
    on_path: set[int] = set()

    def visit(value: Any, label: str) -> None:
        if isinstance(value, torch.Tensor):
            root = label.startswith(("out", "args"))
            plain = value.detach()
            leaves[label] = (plain.clone(), value.requires_grad if root else None)
            if plain.numel():
                storages[label] = plain.untyped_storage()._cdata
            if grads and value.is_leaf and value.grad is not None:
                leaves[f"{label}.grad"] = (value.grad.detach().clone(), None)
        elif value is None or isinstance(value, (bool, int, float, complex, str, bytes, torch.dtype, torch.device)):
            leaves[label] = value
        elif isinstance(value, np.ndarray):
            leaves[label] = (torch.from_numpy(np.array(value)), None) if value.dtype.kind in "biufc" else repr(value)
        elif isinstance(value, np.generic):
            leaves[label] = (type(value).__name__, value.item())
        elif id(value) in on_path or len(on_path) > 12:
            leaves[label] = "seen above"
        else:
            on_path.add(id(value))
            inner = list(_parts(value))
            leaves[f"{label}#"] = f"{type(value).__name__} of {len(inner)}" if not _is_object(value) else _named(value)
            for name, part in inner:
                visit(part, f"{label}.{name}")
            on_path.discard(id(value))

    for label, value in roots.items():
        visit(value, label)
    return Seen(raised, leaves, storages)


def _named(value: object) -> str:
    return type(value).__name__


def _is_object(value: object) -> bool:
    return not isinstance(value, (Mapping, list, tuple, set, frozenset))


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.nn.Module):
        for group in (value._parameters, value._buffers, value._modules):
            yield from group.items()
        yield "training", value.training
        yield from ((k, v) for k, v in vars(value).items() if k not in _OF_EVERY_MODULE)
    elif isinstance(value, Mapping):
        yield from ((repr(k), v) for k, v in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((str(i), v) for i, v in enumerate(value))
    elif isinstance(value, (set, frozenset)):
        yield from ((str(i), v) for i, v in enumerate(sorted(value, key=repr)))
    elif hasattr(value, "__dict__") and not isinstance(value, (types.FunctionType, types.ModuleType, type)):
        yield from vars(value).items()
