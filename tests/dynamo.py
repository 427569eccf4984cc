"""What executing a source gives, remembered between runs of the suite: the instrument of the tests that run examples.

It is `patcher.harness.examples`, which ``fix-compile selftest`` runs too. What is kept is the outcome of executing one
text (outputs, gradients, Dynamo's figures), never what a test made of it; its key holds the text, the versions of torch
and Python, and the instrument's own source.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import pickle
import platform
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import torch
import torch._dynamo.guards
import torch._logging

from patcher.harness import examples, listener
from patcher.harness.examples import (
    PREAMBLE,
    SEED,
    Call,
    Compared,
    Counts,
    Raised,
    Ran,
    count,
    equal,
    imported,
    loaded,
    run_eagerly,
    tensors,
    text_of,
)

#: The version of PyTorch that is installed: what a rule says of it is what a run shows.
INSTALLED = (int(torch.__version__.split(".")[0]), int(torch.__version__.split(".")[1]))

__all__ = [
    "INSTALLED",
    "PREAMBLE",
    "SEED",
    "Call",
    "Compared",
    "Counts",
    "Raised",
    "Ran",
    "compiled",
    "count",
    "eager",
    "equal",
    "imported",
    "loaded",
    "lost",
    "run_eagerly",
    "run_example",
    "tensors",
    "text_of",
]

#: Where outcomes are kept; a folder that may be removed at any time. Without pytest nobody has said where.
FOLDER = Path(os.environ.get("FIX_COMPILE_TEST_CACHE", Path(__file__).resolve().parent.parent / ".cache")) / "tests"
examples.settle()
# Dynamo takes the time of the guards that it makes, with the processor's cache flushed: a third of all that compiling
# the examples costs, for a figure that nobody here asks for. Releases before 2.8 have no such function. Its metrics,
# with all of its configuration as text, are not asked for either.
vars(torch._dynamo.guards).update(profile_guard_manager=lambda *_: 0.0)
vars(torch._dynamo.utils).update(record_compilation_metrics=lambda *_: None)
# With symbolic sizes, an entry of this cache costs more than it saves: a quarter of what compiling the caches costs.
torch._dynamo.config.fake_tensor_cache_enabled = False


def _clearing_once(set_logs: Callable[..., None]) -> Callable[..., None]:
    """It sets the level of hundreds of loggers, and with each the caches of all: a tenth of what compiling costs."""

    def clearing_once(*args: Any, **kwargs: Any) -> None:
        manager = logging.root.manager
        with mock.patch.object(manager, "_clear_cache", lambda: None):
            set_logs(*args, **kwargs)
        manager._clear_cache()  # type: ignore[attr-defined]

    return clearing_once


torch._logging.set_logs = _clearing_once(torch._logging.set_logs)


@dataclass(frozen=True)
class Working:
    """What `examples.working` gives."""

    calls: tuple[bool, ...]


_Outcome = TypeVar("_Outcome", Ran, Counts, Working)


@dataclass(frozen=True)
class Thing:
    """An object of a class that the executed source has made: the name of the class, and what is in it."""

    kind: str
    held: Any


def eager(text: str) -> Ran:
    """As `examples.eager`."""
    return _remembered("eager", text, examples.eager)


def compiled(text: str) -> Counts:
    """As `examples.compiled`."""
    return _remembered("compiled", text, examples.compiled)


def run_example(before: str, after: str, run: str, tolerance: float = 0.0) -> Compared:
    """As `examples.run_example`; ``tolerance`` is that of an `Example`."""
    return examples.run_example(
        before,
        after,
        run,
        tolerance=tolerance,
        gradient_tolerance=max(tolerance, 1e-5),
        eagerly=eager,
        compiling=compiled,
    )


def lost(before: str, after: str, run: str) -> list[str]:
    """As `examples.lost`."""
    return examples.lost(text_of(before, run), text_of(after, run), works=_working)


def _working(text: str, mode: str) -> tuple[bool, ...]:
    def run(text: str) -> Working:
        return Working(examples.working(text, mode, eagerly=eager, compiling=compiled))

    return _remembered(mode, text, run).calls


def _remembered(kind: str, text: str, execute: Callable[[str], _Outcome]) -> _Outcome:
    """What executing the text gives, in plain form, whether it was executed now or before.

    A text that raises raises each time: only outcomes are kept.
    """
    key = hashlib.sha256("\0".join((_MADE_BY, kind, text)).encode("utf-8", "surrogatepass")).hexdigest()
    path = FOLDER / key[:2] / key[2:]
    try:
        return pickle.loads(path.read_bytes())  # type: ignore[no-any-return]
    except (OSError, EOFError, pickle.UnpicklingError):
        pass
    outcome = execute(text)
    outcome = replace(outcome, **{f.name: plain(getattr(outcome, f.name)) for f in fields(outcome)})
    data = pickle.dumps(outcome)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    Path(file.name).replace(path)
    return outcome


def plain(value: object) -> Any:
    """The value in types that can be kept, such that `equal` sees in it what it sees in the original."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if value is None or type(value) in (bool, int, float, complex, str, bytes, torch.Size, torch.dtype, torch.device):
        return value
    if isinstance(value, Raised):
        return value
    if type(value) in (list, tuple):
        return type(value)(plain(item) for item in value)  # type: ignore[call-arg, attr-defined]
    if type(value) is dict:
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, Mapping):
        return Thing(type(value).__name__, {plain(key): plain(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return Thing(type(value).__name__, [plain(item) for item in value])
    if isinstance(value, (bool, int, float, str, bytes)):
        return Thing(type(value).__name__, repr(value))
    if hasattr(value, "__dict__"):
        return Thing(type(value).__name__, {name: plain(item) for name, item in vars(value).items()})
    return Thing(type(value).__name__, None)


_MADE_BY = hashlib.sha256(
    "\0".join(
        (
            *map(inspect.getsource, (examples, listener, Thing, plain)),
            str(torch.__version__),
            platform.python_version(),
            platform.machine(),
        )
    ).encode()
).hexdigest()
