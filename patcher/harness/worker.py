"""Measure one variant of a case. Runs by itself: the standard library and torch, nothing else of ours.

    python worker.py SPEC.json

SPEC.json is a plan (docs/harness.md) with one more key: ``job`` says which case, which source (``tree``: "original" or
"patched"), how it runs (``kind``: "eager", "compiled" or "float64"), in which ``mode``, and the ``folder`` for what was
computed. The answer is ``result.json`` in that folder. A plan without a job is handed to ``run.py`` beside this file.

It is one file so that it can be carried alone. The patched variants import the same paths as the original; for the
files in the plan's ``overlay`` the patched bytes are compiled instead (and for the original its own, where the files on
disk are the patched ones). Nothing is written outside the job's folder.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import functools
import gc
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import linecache
import logging
import math
import os
import pkgutil
import platform
import random
import re
import resource
import runpy
import signal
import statistics
import sys
import threading
import time
import traceback
import types
import warnings
from collections import Counter, deque
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._guards
import torch._inductor.config
import torch._logging
import torch.utils._pytree

SEED = 20
LOOK_SECONDS = 0.001  # between two looks at what runs
LONG_PASS = 2000.0  # ms: such a pass is not run once more for that
LEAST_SHARE = 0.03  # of a pass, of a line that is told
_OF_GRAPHS = re.compile(r"<eval_with_key>|[/\\]torch[/\\](?:_inductor|_functorch|fx)[/\\]|[/\\]triton[/\\]")
_TORCH = os.path.join(os.path.dirname(torch.__file__), "")
_PYTHONS_OWN = (os.path.join(os.path.dirname(os.__file__), ""), _TORCH, "<")
LINE_CHARACTERS, EXPLANATION_CHARACTERS = 400, 2000
MOST_AROUND = 100  # frames
COUNTED_PASSES, QUICK_PASSES, MOST_PASSES = 3, 2, 6
USUAL_BACKEND = "inductor"
THREADS = 4  # on the host, of a process that computes on a GPU beside others
OBSERVED_SECONDS = 5.0  # for changed inputs, and at most for one of them
MOST_COMPILED = 10_000  # times that a frame is compiled, for changed inputs
WARM_SECONDS, QUICK_SECONDS = 4.0, 1.0
FEWEST_WARM, MOST_WARM = 3, 50
OUTPUT_ELEMENTS, TRAINED_ELEMENTS, SAMPLE_ELEMENTS = 2**25, 2**20, 2**18  # gradients are as many as the parameters
CHECKED_WORDS = 2**24  # at a time
_MIXING = (-7046029254386353131, -4658895280553007687, -7723592293110705685)  # odd numbers of 64 bits, as in splitmix64
_DEEPEST = 40  # levels of containers and objects that are looked into
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "Cannot allocate memory", "MemoryError", "bad_alloc")

Json = dict[str, Any]
_Place = tuple[str, int, str]  # file, line and function
ASSEMBLER = "TRITON_PTXAS_PATH"
_COMPILE_ARGUMENTS = frozenset(inspect.signature(torch.compile).parameters)


# ---------------------------------------------------------------------------------------------------------------------
# A job: what runs in a process of its own.


class CaseError(Exception):
    """The case cannot be run as it is written; the message is one line."""


class MissingSettingError(Exception):
    """A setting that is asked for does not exist in this torch; the message is one line."""


def answer(spec: Json, live: Any = None, overlay: Overlay | None = None) -> Json:
    """Measure; a failure becomes a status and one line, with the traceback in the log."""
    try:
        return {"status": "ok", "message": "", **measure(spec, live, overlay)}
    except (Exception, SystemExit) as error:
        _explain(error)
        return {"status": _status_of(error), "message": _message_of(error)}


def _status_of(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, MemoryError) or any(word in text for word in OUT_OF_MEMORY):
        return "out-of-memory"
    if isinstance(error, CaseError):
        return "case-error"
    if isinstance(error, UnsuitedError):
        return "skipped"
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    compiler = ("torch._dynamo.", "torch._inductor.", "torch._functorch.", "torch.fx.", "triton.")
    return "compile-error" if any(type(e).__module__.startswith(compiler) for e in chain) else "error"


def _message_of(error: BaseException) -> str:
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    if isinstance(error, (CaseError, UnsuitedError, MissingSettingError)):
        return first[:LINE_CHARACTERS]
    return f"{type(error).__name__}: {first}"[:LINE_CHARACTERS] + _place_of(error)


def _place_of(error: BaseException) -> str:
    """Where the user's code was: as Dynamo tells it, else the innermost place that is not torch's or Python's own."""
    traced = _IN_FILE.findall(str(error).partition("from user code:")[2])
    stack = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    foreign = (os.path.join(os.path.dirname(torch.__file__), ""), "<frozen ")
    places = traced or [place for place in stack if not place[0].startswith(foreign)] or stack
    return " ({}:{})".format(*places[-1]) if places else ""


def _explain(error: BaseException) -> None:
    """The traceback without our own frames."""
    shown = error.__cause__ if isinstance(error, CaseError) and error.__cause__ else error
    stack = [frame for frame in traceback.extract_tb(shown.__traceback__) if frame.filename != __file__]
    sys.stderr.writelines(traceback.format_list(stack) + traceback.format_exception_only(shown))


def explain_ends(spec: Json) -> None:
    """Write to the log where a signal ends the process, and where it is when the run asks.

    Not after a time (``dump_traceback_later``): that reads the frames of a running thread, and may crash it.
    """
    faulthandler.enable()
    if spec.get("where"):
        faulthandler.register(spec["where"], all_threads=False)


def die_with_parent() -> None:
    """The system ends this process when the supervisor is gone (Linux only)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


# ---------------------------------------------------------------------------------------------------------------------
# Importing the user's code, with patched bytes where the plan says so.


@dataclass
class Overlay:
    """Which files have other bytes in this variant. ``loaded``: those imported; ``lines``: those executed in them.

    ``traced``: file, first line of the function, and line (0 for a function that was entered) of what Dynamo went over.
    """

    entries: dict[str, Json] = field(default_factory=dict)  # by real path
    loaded: dict[str, Json] = field(default_factory=dict)  # by the file name in code objects
    code: dict[str, types.CodeType] = field(default_factory=dict)
    lines: set[tuple[str, str, int, int]] = field(default_factory=set)  # 0 for a function that was entered
    traced: set[tuple[str, int, int]] = field(default_factory=set)
    observer: Any = None  # that looks at the original's expressions

    def install(self, patched: bool) -> None:
        """Take over the compiling of the files; where they are on disk it is only noted that they are imported."""
        original = importlib.machinery.SourceFileLoader.get_code
        side, state = ("patched", "after") if patched else ("original", "before")
        if any("" in (entry["before"], entry["after"]) for entry in self.entries.values()):
            there = {file: bool(entry[state]) for file, entry in self.entries.items()}
            at = sys.meta_path.index(importlib.machinery.PathFinder)  # what is built in and frozen comes first
            sys.meta_path.insert(at, _Moved(there))

        def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> types.CodeType | None:
            file = loader.get_filename(name)
            entry = self.entries.get(os.path.realpath(file))
            if entry is None:
                return original(loader, name)
            self.loaded[file] = entry
            if side not in entry:
                return original(loader, name)
            data = Path(entry[side]).read_bytes()
            code: types.CodeType = compile(data, file, "exec", dont_inherit=True)
            if patched:
                self.code[file] = code
            text = importlib.util.decode_source(data)
            linecache.cache[file] = (len(data), None, text.splitlines(keepends=True), file)  # for inspect and messages
            return code

        setattr(importlib.machinery.SourceFileLoader, "get_code", get_code)  # noqa: B010 - mypy: a method

    def watch(self, on: bool) -> None:
        """Note the lines of the patched files that are executed, in this thread."""

        def line(frame: types.FrameType, event: str, arg: object) -> Any:
            code = frame.f_code
            self.lines.add((code.co_filename, code.co_name, code.co_firstlineno, frame.f_lineno))
            return line

        def call(frame: types.FrameType, event: str, arg: object) -> Any:
            code = frame.f_code
            if code.co_filename not in self.code:
                return None
            self.lines.add((code.co_filename, code.co_name, code.co_firstlineno, 0))
            return line

        sys.settrace(call if on else None)

    def attend(self) -> None:
        """Note the lines of the patched files that get into graphs: code for compiled runs alone runs nowhere else."""
        translator = torch._dynamo.symbolic_convert.InstructionTranslatorBase
        original = getattr(translator, "starts_line", None)
        if original is None:
            return

        def starts_line(tracing: Any, line: int) -> None:
            code = tracing.f_code
            if code.co_filename in self.code:
                self.traced.update((code.co_filename, code.co_firstlineno, n) for n in (0, line))
            original(tracing, line)

        setattr(translator, "starts_line", starts_line)  # noqa: B010 - mypy: a method

    def _ran(self, file: str, name: str, first: int, line: int) -> bool:
        return (file, name, first, line) in self.lines or (file, first, line) in self.traced

    def places(self) -> Json:
        """How many of the changed line ranges were executed, or traced."""
        executed, missed = 0, []
        for file, code in self.code.items():
            executable = _lines_of(code)
            for first, last in self.loaded[file]["changed"]:
                here = {n: executable[n] for n in range(first, last + 1) if n in executable}
                if any(self._ran(file, *where) for where in here.values()):
                    executed += 1
                elif here:
                    missed.append(f"{self.loaded[file]['shown']}:{min(here)}")
        return {"executed": executed, "of": executed + len(missed), "missed": missed}


class _Moved(importlib.abc.MetaPathFinder):
    """Finds modules that are not on disk, and not those that are there and should not be.

    ``there``: by real path, whether a file has a side of the change, for files that may only have the other one.
    """

    def __init__(self, there: Mapping[str, bool]) -> None:
        self._there = there
        self._names = {name for file in there for name in _module_names(file)}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As Python's own finder, for modules with the name of such a file, or of a folder with one."""
        last = name.rpartition(".")[2]
        if last not in self._names:
            return None
        portions = []
        for folder in sys.path if path is None else path:
            found = self._in(folder or os.getcwd(), name, last)
            if found is not None and found.loader is not None:
                return found
            portions += found.submodule_search_locations or [] if found is not None else []
        if portions:
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = portions
            return spec
        if importlib.machinery.PathFinder.find_spec(name, path) is not None:  # it would be found by those that follow
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

    def _in(self, folder: str, name: str, last: str) -> importlib.machinery.ModuleSpec | None:
        package, module = os.path.join(folder, last), os.path.join(folder, last + ".py")
        initial = os.path.join(package, "__init__.py")
        if self._is_there(initial):
            return _spec_of(name, initial, [package])
        spec = importlib.machinery.PathFinder.find_spec(name, [folder])
        if spec is not None and spec.loader is not None and self._there.get(os.path.realpath(str(spec.origin)), True):
            return spec
        if self._is_there(module):
            return _spec_of(name, module, None)
        if not self._holds_source(package):
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [package]
        return spec

    def _is_there(self, file: str) -> bool:
        real = os.path.realpath(file)
        return self._there[real] if real in self._there else os.path.isfile(file)

    def _holds_source(self, folder: str) -> bool:
        inside = os.path.join(os.path.realpath(folder), "")
        if any(there and file.startswith(inside) for file, there in self._there.items()):
            return True
        files = (os.path.join(below, file) for below, _, names in os.walk(folder) for file in names)
        return any(self._is_there(file) for file in files if file.endswith(".py"))


def _spec_of(name: str, file: str, inside: list[str] | None) -> importlib.machinery.ModuleSpec | None:
    loader = importlib.machinery.SourceFileLoader(name, file)
    return importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=inside)


def _module_names(file: str) -> Iterator[str]:
    """What a module may be called for which the file matters: its own name, and the folders around it."""
    path = Path(file)
    yield from (path.stem, *(folder.name for folder in path.parents if folder.name))


def _lines_of(code: types.CodeType) -> dict[int, tuple[str, int, int]]:
    """What has to run for each line to have run: the name and first line of the innermost function, and the line.

    The head of a function (its decorators and defaults) is of use only when the function is entered: the line is 0.
    """
    lines = {line for _, _, line in code.co_lines() if line}
    found = {line: (code.co_name, code.co_firstlineno, line) for line in lines}
    if code.co_flags & inspect.CO_OPTIMIZED:  # a function, and not a module or a class
        body = min((line for line in lines if line > code.co_firstlineno), default=code.co_firstlineno)
        head = range(code.co_firstlineno, body)
        found.update(dict.fromkeys(head, (code.co_name, code.co_firstlineno, 0)))
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found.update(_lines_of(const))
    return found


def overlay_of(plan: Json) -> Overlay:
    """The plan's overlay, with the files of installed packages looked up here."""
    entries = {}
    for entry in plan["overlay"]:
        if "package" in entry:
            spec = importlib.util.find_spec(entry["package"])
            if spec is None or not spec.submodule_search_locations:
                raise CaseError(f"the package {entry['package']} is not installed here")
            file = os.path.join(next(iter(spec.submodule_search_locations)), entry["within"])
        else:
            file = entry["file"]
        expected = entry["after" if plan.get("on_disk") == "patched" else "before"]
        try:
            now = hashlib.sha256(Path(file).read_bytes()).hexdigest()
        except OSError:
            now = ""
        if expected and not now:
            raise CaseError(f"{entry['shown']}: the original is not at {file}")
        if now != expected:
            raise CaseError(f"{entry['shown']}: is another version here than the one that was patched")
        entries[os.path.realpath(file)] = entry
    return Overlay(entries)


def prepare_path(roots: Sequence[str], case_file: str) -> None:
    """The roots go behind the standard library and before installed packages; our own folder is taken out."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if p and os.path.abspath(p) != here]
    installed = [i for i, p in enumerate(sys.path) if os.path.basename(p) in ("site-packages", "dist-packages")]
    at = min(installed, default=len(sys.path))
    wanted = [*roots, os.path.dirname(case_file), os.getcwd()]
    sys.path[at:at] = [p for p in dict.fromkeys(wanted) if p not in sys.path]


def load_module(file: str) -> types.ModuleType:
    """The case's module, executed afresh. It has its own name only when nothing else is imported under that."""
    name = Path(file).stem.replace(".", "_")
    with contextlib.suppress(ValueError):
        found = importlib.util.find_spec(name)
        if found and (not found.origin or os.path.realpath(found.origin) != os.path.realpath(file)):
            name = f"_case_{name}"
    loader = importlib.machinery.SourceFileLoader(name, file)
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


# ---------------------------------------------------------------------------------------------------------------------
# A case.


@dataclass
class Case:
    """What the user's file says, with what the plan says instead. ``sizes``: of the varied dimension."""

    module: types.ModuleType
    file: str
    name: str
    train: bool
    tolerance: float
    device: Any
    dtype: Any
    vary: str | None
    sizes: list[int] | None = None
    double: bool = False  # whether it is for the float64 reference
    grad: bool = False  # whether gradients are on though nothing goes backward from its outputs

    def build(self) -> Any:
        """The model, with the same weights each time."""
        seed()
        model = self._asked("build")
        if not callable(model):
            raise CaseError(f"{self.name}: build() must return a model, not {type(model).__name__}")
        return self._placed(model)

    def _asked(self, function: str, *args: Any, **kwargs: Any) -> Any:
        """What a function of the case returns; a generator is run to its end."""
        try:
            made = getattr(self.module, function)(*args, **kwargs)
            return list(made) if isinstance(made, types.GeneratorType) else made
        except (Exception, SystemExit) as error:
            if _status_of(error) != "error":
                raise
            raise CaseError(f"{self.name}: {function}() raised {_message_of(error)}") from error

    def calls(self) -> list[Any]:
        """The calls with their arguments, made afresh: a call may write into them."""
        seed()
        if self.vary:
            return [self._placed(call) for call in self._varied()]
        return [self._placed(call) for call in self._given()]

    def _given(self, **changed: int) -> list[Any]:
        made = self._asked("calls", **changed)
        if isinstance(made, (str, bytes, Mapping)) or not isinstance(made, Iterable) or callable(made):
            raise CaseError(f"{self.name}: calls() must return a list of calls, not {type(made).__name__}")
        found = [self._normal(number, call) for number, call in enumerate(made, 1)]
        if not found:
            raise CaseError(f"{self.name}: calls() returned no calls")
        return found

    def _normal(self, number: int, call: Any) -> Any:
        if isinstance(call, Mapping):
            return (), dict(call)
        if isinstance(call, tuple):
            pair = len(call) == 2 and isinstance(call[0], (tuple, list)) and isinstance(call[1], dict)
            return (tuple(call[0]), call[1]) if pair else (call, {})
        if callable(call) and not torch.is_tensor(call):
            return call
        raise CaseError(
            f"{self.name}: call {number} is a {type(call).__name__}; "
            "write (args, kwargs), a tuple of arguments, a dict of keywords, or a function of the model"
        )

    def _varied(self) -> list[Any]:
        assert self.vary and self.sizes
        if self.vary in inspect.signature(self.module.calls).parameters:
            return [self._given(**{self.vary: size})[0] for size in self.sizes]
        first, now = self._first()
        axis = _AXES[self.vary]
        return [_resized(first, axis, now, size) for size in self.sizes]

    def _first(self) -> tuple[Any, int]:
        axis = _AXES[str(self.vary)]
        for call in self._given():
            if not callable(call):
                found = [t for t in tensors(call) if t.dim() > axis]
                found = [t for t in found if axis == 0 or not t.is_floating_point()] or found
                if found:
                    return call, int(found[0].size(axis))
        raise CaseError(f"{self.name}: no call has a tensor whose {self.vary} size could be varied")

    def candidate_sizes(self) -> list[int]:
        """The sizes to try, the given one first."""
        named = inspect.signature(self.module.calls).parameters.get(str(self.vary))
        now = named.default if named and isinstance(named.default, int) else self._first()[1]
        others = (1, now + 1, 2 * now + 1) if self.vary == "batch" else (now // 2, now + now // 2, 2 * now)
        return list(dict.fromkeys(size for size in (now, *others) if size > 0))

    def compile(self, model: Any, options: Json) -> Any:
        """The model under ``torch.compile``, the way the case does it when it says how."""
        if getattr(self.module, "compile", None) is None:
            if isinstance(model, torch.nn.Module) and any(map(callable, self.calls())):
                model.compile(**options)  # its methods call the module itself, and not what ``torch.compile`` returns
                return model
            return torch.compile(model, **options)
        made = self._asked("compile", model, **options)
        return model if made is None else made

    def loss(self, output: Any) -> Any:
        """A scalar to go backward from: the case's, the output's own, or the outputs weighted by cosines.

        The plain sum of what leaves a normalisation is constant, and its gradients are zero whatever the model does.
        """
        if getattr(self.module, "loss", None) is not None:
            return self._asked("loss", output)
        of_output = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
        if isinstance(of_output, torch.Tensor) and of_output.requires_grad:
            return of_output
        parts = [t for t in tensors(output) if t.requires_grad]
        scalars = [t for t in parts if t.dim() == 0]
        if scalars:
            return torch.stack([t.double() for t in scalars]).sum()
        if not parts:
            raise CaseError(
                f"{self.name}: train = True, but no output of the call requires a gradient "
                "(of a model without parameters, give the call tensors that do: torch.randn(2, 3, requires_grad=True))"
            )
        weighted = [
            (t.abs() if t.is_complex() else t).double().flatten()
            @ torch.cos(torch.arange(t.numel(), device=t.device, dtype=torch.double))
            / max(t.numel(), 1)
            for t in parts
        ]
        return torch.stack(weighted).sum()

    def optimizer(self, model: Any) -> Any:
        """The case's optimizer, else plain SGD: it does not magnify the noise of small gradients as Adam does.

        None where there is nothing to train, as in most losses: gradients go to what the model is given (`_step`).
        """
        parameters = _learning(model)
        if not parameters:
            return None
        if getattr(self.module, "optimizer", None) is not None:
            return self._asked("optimizer", parameters)
        return torch.optim.SGD(parameters, lr=1e-3)

    def _placed(self, value: Any) -> Any:
        if not self._converts():
            return value
        if isinstance(value, torch.nn.Module):
            value = value.to(device=self.device, dtype=self.dtype)
            return value.double() if self.double else value

        def place(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            if not leaf.is_floating_point():
                return leaf.to(device=self.device)
            leaf = leaf.to(device=self.device, dtype=self.dtype)  # in float64 it has the value that the others have
            return leaf.double() if self.double else leaf

        return value if callable(value) else torch.utils._pytree.tree_map(place, value)

    def for_function(self, runner: Any) -> Any:
        """What a call that is a function gets: the runner, which takes arguments of any device and dtype."""
        return _Placing(self, runner) if self._converts() else runner

    def _converts(self) -> bool:
        return self.double or self.device is not None or self.dtype is not None


class _Placing:
    """A model whose arguments are moved and converted first, as those of other calls are before the call."""

    def __init__(self, case: Case, runner: Any) -> None:
        self._case, self._runner = case, runner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self._case._placed((args, kwargs))
        return self._runner(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)


_AXES = {"batch": 0, "sequence": 1}


def _resized(call: Any, axis: int, now: int, size: int) -> Any:
    """The call with every tensor whose ``axis`` has ``now`` entries repeated, or cut, to ``size``."""

    def resize(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dim() > axis and leaf.size(axis) == now:
            return leaf.index_select(axis, torch.arange(size, device=leaf.device) % now)
        return leaf

    return torch.utils._pytree.tree_map(resize, call)


def load_case(plan: Json, job: Json, live: Any = None) -> Case:
    """The case of a job; raises ``CaseError`` when its file cannot be used. ``live``: what a recorded program is."""
    given = plan["cases"][job["case"]]
    try:
        module = load_module(given["file"]) if live is None else live
    except (Exception, SystemExit) as error:
        raise CaseError(f"{given['file']} cannot be imported: {_message_of(error)}") from error

    def setting(name: str, standard: Any) -> Any:
        return given[name] if given.get(name) is not None else getattr(module, name, standard)

    for name in ("build", "calls"):
        if not callable(getattr(module, name, None)):
            raise CaseError(f"{given['file']} defines no function {name}()")
    train, tolerance = setting("train", False), setting("tolerance", 1e-3)
    if not isinstance(train, bool):
        raise CaseError(f"{given['file']}: train must be True or False, not {train!r}")
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not tolerance > 0:
        raise CaseError(f"{given['file']}: tolerance must be a positive number, not {tolerance!r}")
    dtype = setting("dtype", None)
    if isinstance(dtype, str):
        dtype = getattr(torch, dtype.removeprefix("torch."), dtype)
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise CaseError(f"{given['file']}: dtype must be a floating dtype of torch, not {dtype!r}")
    device = setting("device", None)
    try:
        device = None if device is None else torch.device(device)
        if device is not None:
            torch.empty(1, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise CaseError(f"{given['file']}: device {device!s}: {str(error).splitlines()[0]}") from None
    vary, grad = given.get("vary"), getattr(module, "grad", False) is True
    sizes = job.get("sizes")
    return Case(module, given["file"], given["name"], train, float(tolerance), device, dtype, vary, sizes, grad=grad)


def seed() -> None:
    """The same random numbers for every variant, in Python, NumPy (when it is in use) and torch."""
    random.seed(SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(SEED)
    torch.manual_seed(SEED)


def tensors(value: Any) -> list[Any]:
    """All tensors in a nested value, in order."""
    return [leaf for _, leaf in leaves(value, "") if torch.is_tensor(leaf)]


def _parameters(model: Any) -> dict[str, Any]:
    return dict(model.named_parameters()) if hasattr(model, "named_parameters") else {}


def _learning(model: Any) -> list[Any]:
    """The parameters that are trained."""
    return [p for p in _parameters(model).values() if p.requires_grad]


def _state(model: Any) -> dict[str, Any]:
    """Parameters and all buffers by name, each tensor once; not those of lazy modules that have no shape yet."""
    if not hasattr(model, "named_parameters"):
        return {}
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: tensor for name, tensor in named.items() if not torch.nn.parameter.is_lazy(tensor)}


def _kinds(model: Any) -> dict[str, str]:
    """What each tensor of the state is, in their order: that is the order in which an optimizer has them."""
    kinds = {name: "a parameter" if p.requires_grad else "a frozen parameter" for name, p in _parameters(model).items()}
    for name in [name for name in _state(model) if name not in kinds]:
        owner, _, own = name.rpartition(".")
        unsaved = own in getattr(model.get_submodule(owner), "_non_persistent_buffers_set", ())
        kinds[name] = "a buffer that is not saved" if unsaved else "a buffer"
    return kinds


def _module_attributes(model: Any) -> dict[str, Any]:
    """What the modules hold as plain attributes, with their training mode."""
    ours = vars(torch.nn.Module()).keys() - {"training"}
    met: set[int] = set()
    found: dict[str, Any] = {}
    for name, module in model.named_modules() if isinstance(model, torch.nn.Module) else [("", model)]:
        for key, value in getattr(module, "__dict__", {}).items():
            if key not in ours and not callable(value):
                found.update(leaves(value, f"{name}.{key}" if name else key, (), met))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Outputs as a flat list of named leaves.


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
        return _without_address(words(value))
    except Exception:  # what users write, which no model has ever called
        return type(value).__name__ + ("" if number is None else f" {number}")


def _without_address(text: str) -> str:
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
                leaf = _sampled(leaf) if leaf.numel() > most else leaf.to("cpu", copy=True).contiguous()
            except (RuntimeError, NotImplementedError) as error:
                leaf = f"<tensor that cannot be compared: {type(error).__name__}>"
        moved.append((name, leaf))
    return moved


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
    weights = 1 + torch.arange(step).to(kind) / step
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


# ---------------------------------------------------------------------------------------------------------------------
# What Dynamo and Inductor do.

_BREAK = re.compile(r"Graph break (?:\(.*?\) )?in user code at (.+?:\d+)\s*\n(?:Graph Break )?Reason: *([^\n]*)")
_WRAPPED = ("Encountered graph break ", "Failed to handle graph break gracefully")
_CAUSE = re.compile(r"\s*\n([A-Za-z][^\n]*)")
_RECOMPILED = re.compile(r"Recompiling function (\S+) in (\S+)")
_LIMIT = re.compile(r"function: '([^']*)' \((.*?)\)(?:.*?last reason: ([^\n]*))?", re.DOTALL)
_SKIPPED_GRAPH = re.compile(r"(?:skipping|disabling) cudagraphs?(?: for backward)? due to ([^\n]*)", re.IGNORECASE)
_IN_FILE = re.compile(r'File "(.+)", line (\d+)')
_SUPPRESSED = re.compile(r"WON'T CONVERT \S+ (.+?) line (\d+)")
_ERROR = re.compile(r"^[\w.]+(?:Error|Failed|Exception): [^\n]*", re.MULTILINE)
_FRAME_LEFT = re.compile(r"will skip tracing the frame \S+ \((.+) line (\d+)\)")
_ANOTHER = "*** While handling this graph break"  # what comes behind is no cause, but what became of the frame
_DETAIL = re.compile(
    r"^ {1,2}(Explanation|Hint|Developer debug context|For more details about this graph break, please visit): *",
    re.MULTILINE,
)
_NEXT_GUARD = re.compile(r"\n\s*- \d+/\d+: ")
_TRACED = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)')
_STACK_LINE = re.compile(r'File "([^"\n]+)", line (\d+)')
_CLIPPED_PLACE = re.compile(r"# (\S*\.py):(\d+) in ")
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)$")
_TORCH = os.path.join(os.path.dirname(torch.__file__), "")
_OTHER_TORCH = "-packages/torch/"  # of another machine, in its logs
_STANDARD = os.path.join(os.path.dirname(os.__file__), "")


@dataclass
class Origin:
    """What came of the graphs that were captured in one frame; ``resumed``: of one that goes on behind a break.

    ``nested``: of one that was entered from compiled code, which has broken. ``stack``: as of a break, without itself.
    """

    where: str
    function: str
    resumed: bool
    nested: bool = False
    graphs: int = 0
    compile_seconds: float = 0.0
    launches: int = 0
    operators: int = 0
    seconds: float = 0.0
    stack: tuple[str, ...] = ()


_EVAL_FRAME = os.path.join(_TORCH, "_dynamo", "eval_frame.py")


class Listener(logging.Handler):
    """Sorts the records that torch logs by what they tell, and counts graphs as they are compiled and launched.

    Dynamo's own counters miss some breaks (a tensor ``if`` in the outermost function), its log records do not.
    ``operators``: of the captured graphs, each time that one is launched. ``details``: what else was told of a break
    (where, reason); ``sources``: of the guard (function, where, guard) that failed, which code had made it necessary.
    Of the user's stack those frames of ``case_file`` are left out that call what is compiled.
    """

    def __init__(self, shown: Callable[[str], str], case_file: str = "") -> None:
        super().__init__(logging.DEBUG)
        self._shown, self._case_file = shown, case_file
        self.details: dict[tuple[str, str], Json] = {}
        self.sources: dict[tuple[str, str, str], str] = {}
        self.origins: dict[tuple[str, str, bool, bool], Origin] = {}
        self.nested: dict[tuple[str, str, str], bool] = {}  # of the recompiles: whether all were nested
        self._compiled_until = 0.0
        self._blamed: list[_Place] = []
        self.breaks: list[tuple[str, str]] = []
        self.recompiles: list[tuple[str, str, str]] = []
        self.limits: list[tuple[str, str, str]] = []
        self.dropped: list[tuple[str, str]] = []
        self.skips: list[tuple[str, str]] = []
        self._rest_dropped: Any = None  # the compile id of the frame whose rest was dropped last
        self.graphs = self.launches = self.operators = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record; those that tell nothing of interest are passed over."""
        try:
            text = record.getMessage()
        except Exception:  # a message of somebody else's that cannot be formatted
            return
        if found := _BREAK.search(text):
            cause = _CAUSE.match(text, found.end())
            where, told = self._shown(found[1]), found[2].strip()
            reason = cause[1].strip() if cause and told.startswith(_WRAPPED) else told
            self.breaks.append((where, reason))
            self._detail(where, reason, text)
            if "kipping the" in told:  # "Skipping the function", "skipping the rest of the function"
                frame, rest = torch._guards.CompileContext.current_compile_id(), "kipping the rest" in told
                if frame is not None and frame == self._rest_dropped and not rest:
                    self.dropped.pop()  # what was before the break could not be compiled either: it is one frame
                self._rest_dropped = frame if rest else None
                self.dropped.append((where, reason))
        elif "torch.compile will skip tracing the frame" in text:
            frame_left = _FRAME_LEFT.search(text)
            where = self._shown("{}:{}".format(*frame_left.groups())) if frame_left else ""
            reason = " ".join(text.split())[:LINE_CHARACTERS]
            self.dropped.append((where, reason))
            self._detail(where, reason, str(record.exc_info[1]) if record.exc_info else "")
        elif record.levelno >= logging.WARNING and (found := _SUPPRESSED.match(text)):  # with config.suppress_errors
            errors = _ERROR.findall(text) or ["an error that was suppressed"]
            self.dropped.append((self._shown(f"{found[1]}:{found[2]}"), errors[-1][:LINE_CHARACTERS]))
        elif found := _RECOMPILED.search(text):
            guard = next((line.strip()[2:] for line in text.splitlines()[1:] if line.lstrip().startswith("- ")), "")
            self.recompiles.append((found[1], self._shown(found[2]), guard))
            self._source(self.recompiles[-1], text.partition(guard)[2] if guard else "")
            key = (*self.recompiles[-1][:2], _general(guard))
            self.nested[key] = self.nested.get(key, True) and _nested()
        elif "torch._dynamo hit config." in text:
            limit = _LIMIT.search(text)
            parts = (limit[1], self._shown(limit[2]), limit[3] or "") if limit else ("", "", " ".join(text.split()))
            self.limits.append(parts)
            self._source(parts, text[limit.end() :] if limit else "")
        elif record.funcName == "log_cudagraph_skip_and_bump_counter" or _SKIPPED_GRAPH.search(text):
            said, _, behind = _SKIPPED_GRAPH.sub(r"\1", text).partition("Found from")
            places = [self._shown(f"{file}:{line}") for file, line in _IN_FILE.findall(behind)]
            self.skips.append((places[-1] if places else "", said.partition("\n")[0].strip(" .")))

    def _detail(self, where: str, reason: str, text: str) -> None:
        """Note what else is told of a break; of one that has come up before, only what was missing."""
        known = self.details.setdefault((where, reason), {})
        stack = self._stack(self._blamed if "ackend compiler" in text else [])
        for key, value in {**_details(text, self._shown), "stack": stack}.items():
            if value:
                known.setdefault(key, value)
        other = [frame for frame in stack if frame not in (*known["stack"], *known.get("around", ()))]
        if other and len(known.get("around", ())) < MOST_AROUND:
            known["around"] = [*known.get("around", ()), *other]  # it is called from several places

    def _stack(self, blamed: list[_Place]) -> list[str]:
        """How the user's code got to the break that is being logged, outermost first; at its end what is ``blamed``.

        Dynamo's text puts frames of one name into one (all that are called ``forward``), its stack does not.
        """
        outer, inner = _stacks()
        return self._told(outer, [*inner, *blamed])

    def _told(self, outer: list[_Place], rest: list[_Place]) -> list[str]:
        """The frames of the user's code, from what is compiled on."""
        entries = [number for number, (file, _, _) in enumerate(outer) if file == _EVAL_FRAME]
        outer = outer[min(entries, default=0) :]  # what calls the compiled function is not compiled
        kept: list[_Place] = []
        for number, (file, line, name) in enumerate([*outer, *rest]):
            calling = number < len(outer) and file == self._case_file
            if calling or file == __file__ or _is_foreign(file):
                continue
            resumed = _RESUMED.match(name)
            if resumed and kept and (kept[-1][0], kept[-1][2]) == (file, resumed[1]):
                kept.pop()  # the caller of a resume function is the function that it goes on with
            kept.append((file, line, resumed[1] if resumed else name))
        return [f"{self._shown(f'{file}:{line}')} in {name}" for file, line, name in kept]

    def _source(self, row: tuple[str, str, str], rest: str) -> None:
        """Note where a guard comes from: torch's stack behind it, else the clipped place at its own end."""
        rest = _NEXT_GUARD.split(rest, maxsplit=1)[0]
        places = [(file, line) for file, line in _STACK_LINE.findall(rest) if not file.startswith(_TORCH)]
        clipped = _CLIPPED_PLACE.findall(row[2])
        if places or clipped:
            file, line = places[-1] if places else (_unclipped(clipped[-1][0]), clipped[-1][1])
            self.sources.setdefault((row[0], row[1], _general(row[2])), self._shown(f"{file}:{line}"))

    def counts(self) -> dict[str, int]:
        """The figures so far."""
        return {
            "breaks": len(self.breaks),
            "recompiles": len(self.recompiles),
            "graphs": self.graphs,
            "limit_hits": len(self.limits),
            "dropped_frames": len(self.dropped),
            "cudagraph_skips": len(self.skips),
            "launches": self.launches,
            "operators": self.operators,
        }

    def count_graphs(self) -> None:
        """Count what every ``torch.compile`` of this process hands to its backend, the user's own calls included."""
        for wrapper in (torch._TorchCompileInductorWrapper, torch._TorchCompileWrapper):
            wrapper.__call__ = self._counting(wrapper.__call__)

    def _counting(self, compile_graph: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(compile_graph)
        def call(wrapper: Any, graph: Any, *rest: Any, **options: Any) -> Any:
            size = _operators(graph)
            origin, start = self._origin(), max(_tracing_since(), self._compiled_until)
            with self._blaming():
                compiled = compile_graph(wrapper, graph, *rest, **options)
            self.graphs += 1  # only now: a backend may refuse, and Dynamo then drops the frame
            origin.graphs += 1
            self._compiled_until = time.time()
            origin.compile_seconds += self._compiled_until - start

            def launch(*arguments: Any) -> Any:
                self.launches += 1
                self.operators += size
                origin.launches += 1
                origin.operators += size
                began = time.perf_counter()
                output = compiled(*arguments)
                origin.seconds += time.perf_counter() - began
                return output

            return launch

        return call

    @contextlib.contextmanager
    def _blaming(self) -> Iterator[None]:
        """Note which code a backend blames for what it refuses: Dynamo only tells the frame of the whole graph."""
        self._blamed = []
        with warnings.catch_warnings(record=True) as heard:
            warnings.filterwarnings("always", "Error detected in .* Traceback of forward call")
            try:
                yield
            except Exception as error:
                told = [str(warning.message) for warning in heard]
                told = [text for text in told if text.startswith("Error detected in")]
                found = _TRACED.findall(told[-1] if told else str(error))
                self._blamed = [(file, int(line), name) for file, line, name in found]
                raise

    def _origin(self) -> Origin:
        """Of the frame that is being compiled; with nothing in ``where`` when torch does not tell."""
        where, function, resumed = "", "", None
        if (code := _code_in_work()) is not None:
            resumed = _RESUMED.match(code.co_name)
            function, line = resumed.groups() if resumed else (code.co_name, code.co_firstlineno)
            where = self._shown(f"{code.co_filename}:{line}")
        key = where, function, resumed is not None, _nested()
        if key not in self.origins:
            self.origins[key] = Origin(*key, stack=tuple(self._told(_python_stack(), [])))
        return self.origins[key]

    def launched(self) -> dict[tuple[str, str, bool, bool], tuple[int, int, float]]:
        """Launches, operators and seconds of each origin so far."""
        return {key: (it.launches, it.operators, it.seconds) for key, it in self.origins.items()}


@contextlib.contextmanager
def listening(listener: Listener, verbose: bool) -> Iterator[None]:
    """All that torch logs goes to the listener, and to the terminal only when the user has asked for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attend(listener, verbose)
        yield


def attend(listener: Listener, verbose: bool) -> None:
    """Hand all that torch logs to the listener; again once the case is loaded, which may have set up logging."""
    logging.disable(logging.NOTSET)
    if not verbose:
        torch._logging.set_logs(graph_breaks=True, recompiles=True, cudagraphs=True, perf_hints=True)
    names = [n for n in logging.root.manager.loggerDict if n == "torch" or n.startswith("torch.")]
    if os.environ.get("TORCH_TRACE"):
        names = [n for n in names if n != "torch.__trace"]  # writes into a file of its own
    for log in map(logging.getLogger, names):
        log.disabled = False
        if log.handlers or not log.propagate:
            if verbose:
                log.addHandler(listener)
            else:
                log.handlers, log.propagate = ([listener], False) if log.name == "torch" else ([], True)


def described(listener: Listener) -> Json:
    """The reasons, each once with its count, in the order in which they came up, and what else is known of each."""

    def counted(items: Iterable[tuple[str, ...]], *keys: str) -> list[Json]:
        return [{**dict(zip(keys, row)), "count": n} for row, n in Counter(items).items()]  # noqa: B905

    def sites(items: Iterable[tuple[str, str]]) -> list[Json]:
        rows = counted(items, "where", "reason")
        return [{**row, **listener.details.get((row["where"], row["reason"]), {})} for row in rows]

    def functions(items: Iterable[tuple[str, str, str]]) -> list[Json]:
        rows = counted([(f, w, _general(g)) for f, w, g in items], "function", "where", "guard")
        keys = [(row["function"], row["where"], row["guard"]) for row in rows]
        told = [{"source": listener.sources.get(key), "nested": listener.nested.get(key)} for key in keys]
        return [{**row, **{k: v for k, v in more.items() if v}} for row, more in zip(rows, told)]  # noqa: B905

    return {
        "breaks": sites(listener.breaks),
        "recompiles": functions(listener.recompiles),
        "limit_hits": functions(listener.limits),
        "dropped_frames": sites(listener.dropped),
        "cudagraph_skips": sites(listener.skips),
    }


def origins_of(listener: Listener, before: Mapping[tuple[str, str, bool, bool], tuple[int, int, float]]) -> list[Json]:
    """Where the graphs come from; launches, operators and seconds are those since ``before``."""
    timed = not torch.cuda.is_initialized()  # a GPU goes on by itself when the call has returned
    told = []
    for key, origin in listener.origins.items():
        if not origin.graphs:
            continue  # the backend has refused them all
        launches, operators, seconds = before.get(key, (0, 0, 0.0))
        told.append(
            {
                "where": origin.where,
                "function": origin.function,
                "resumed": origin.resumed,
                "nested": origin.nested,
                "graphs": origin.graphs,
                "launches": origin.launches - launches,
                "operators": origin.operators - operators,
                "compile_seconds": round(origin.compile_seconds, 4),
                "seconds": round(origin.seconds - seconds, 6) if timed else None,
                "stack": list(origin.stack),
            }
        )
    return told


def _operators(graph: Any) -> int:
    """Calls in ``graph`` and in the graphs that it calls; of the two arms of a ``torch.cond`` those of the larger."""
    total = 0
    for node in graph.graph.nodes:
        if not node.op.startswith("call_"):
            continue
        handed = [a.target for a in node.args if getattr(a, "op", "") == "get_attr" and "." not in a.target]
        called = [held for name in handed if hasattr(held := getattr(graph, name, None), "graph")]
        sizes = [_operators(held) for held in called]
        total += 1 + (max(sizes, default=0) if str(node.target) == "cond" else sum(sizes))
    return total


def _code_in_work() -> types.CodeType | None:
    """Of the frame that Dynamo compiles."""
    with contextlib.suppress(Exception):  # Dynamo's insides, which differ from release to release
        code = torch._dynamo.symbolic_convert.InstructionTranslator.current_tx().f_code
        return code if isinstance(code, types.CodeType) else None
    return None


def _stacks() -> tuple[list[_Place], list[_Place]]:
    """Of the break that is being logged: the Python stack above what is compiled, and Dynamo's in it."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and not (inner := _traced(frame)):
        frame = frame.f_back
    if frame is None:
        return [], []
    code = _code_in_work()
    if code is not None and inner[0][0] == code.co_filename:
        inner[0] = (*inner[0][:2], code.co_name)  # torch has taken the mark of a resume function off
    outer = _python_stack(frame)
    return ([], inner) if inner[0] == outer[0] else (outer, inner)  # some releases of torch tell the whole of it


def _python_stack(frame: types.FrameType | None = None) -> list[_Place]:
    """From the outermost frame to ``frame``, or to where it is asked for."""
    return [(f.f_code.co_filename, line, f.f_code.co_name) for f, line in traceback.walk_stack(frame)][::-1]


def _nested() -> bool:
    """Whether compiled code of the user's is under way: what is compiled now is no part of it, as that has broken."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_stack(sys._getframe())][::-1]
    entry = files.index(_EVAL_FRAME) if _EVAL_FRAME in files else len(files)
    return any(file != __file__ and not _is_foreign(file) for file in files[entry:])


def _traced(frame: types.FrameType) -> list[_Place]:
    """The places in the user's code that Dynamo was at, from the variables of its function that logs a break."""
    if not frame.f_code.co_filename.startswith(_TORCH):
        return []
    held = frame.f_locals
    known = [getattr(held.get(name), "real_stack", None) for name in ("exc", "e")]
    stack = next((stack for stack in (*known, held.get("user_stack")) if isinstance(stack, list) and stack), [])
    return [(summary.filename, summary.lineno, summary.name) for summary in stack]


def _is_foreign(file: str) -> bool:
    """Whether it is of torch, of Python or of no file at all."""
    installed = "site-packages" in file or "dist-packages" in file
    torchs = file.startswith((_TORCH, "<")) or _OTHER_TORCH in file
    return torchs or (file.startswith(_STANDARD) and not installed)


def _tracing_since() -> float:
    """When Dynamo has begun with the frame that it compiles, where it tells; else now."""
    with contextlib.suppress(Exception):
        context = torch._dynamo.utils.get_metrics_context()
        if context.in_progress() and context._start_time_ns:
            return float(context._start_time_ns / 1e9)
    return time.time()


def _details(text: str, shown: Callable[[str], str]) -> Json:
    """What a message says about the cause of a break; releases of torch before 2.7 say nothing of it."""
    cause = re.split(r"\n(?:Stack variable source attribution|User code traceback):", text.partition(_ANOTHER)[0])[0]
    found: dict[str, list[str]] = {}
    _, *parts = _DETAIL.split(cause)
    for name, told in zip(parts[::2], parts[1::2]):  # noqa: B905
        plain = _without_address(shown(re.sub(r"^ {1,4}", "", told.strip(), flags=re.MULTILINE)))
        found.setdefault(name.split()[0], []).append(re.sub(r"[ \t]+$", "", plain, flags=re.MULTILINE))
    explanation, context, url = (" ".join(found.get(key, [])) for key in ("Explanation", "Developer", "For"))
    return {
        "explanation": explanation[:EXPLANATION_CHARACTERS],
        "hints": [hint[:EXPLANATION_CHARACTERS] for hint in found.get("Hint", []) if hint],
        "context": " ".join(context.split())[:LINE_CHARACTERS],
        "url": url.split()[0] if url.strip() else "",
    }


def _unclipped(path: str) -> str:
    """The one imported file whose path ends in what torch has left of it; else as it is."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    found = [file for file in files if isinstance(file, str) and file.endswith(path)]
    return found[0] if len(found) == 1 else path


def _general(guard: str) -> str:
    """The failed guard without its cache entry's number, and without the (clipped) path of its source line."""
    guard = re.sub(r"\s+# \S*\.py:\d+ in .*$", "", re.sub(r"^\d+/\d+: ", "", guard))
    return re.sub(r" {3,}# ", "  # ", guard).strip()


def place_names(plan: Json) -> Callable[[str], str]:
    """File names as the user knows them: relative to the project, to an import root, or to site-packages."""
    roots = [os.path.join(os.path.realpath(p), "") for p in (plan["base"], *plan["path"]) if p]
    spelled = [os.path.join(os.path.abspath(p), "") for p in (plan["base"], *plan["path"]) if p]

    def shown(path: str) -> str:
        for root in (*spelled, *roots):
            path = path.replace(root, "")
        return re.sub(r"[^\s(]*?/(?:site|dist)-packages/", "", path)

    return shown


# ---------------------------------------------------------------------------------------------------------------------
# Measuring one variant.


class UnsuitedError(Exception):
    """The variant cannot be had for this case, and nobody is to blame; the message is one line."""


def measure(plan: Json, live: Any = None, overlay: Overlay | None = None) -> Json:
    """Everything about one variant; what it computed is saved in the job's folder for the comparison.

    ``live``: a recorded program that has come to its first call, with its ``overlay`` in place.
    """
    job: Json = plan["job"]
    plan = {**plan, "backend": "eager"} if job.get("replayed") else plan
    limit_memory(plan["memory"])
    shown = place_names(plan)
    listener = Listener(shown, plan["cases"][job["case"]]["file"])
    overlay = overlay or _laid(plan)
    compiling = job["kind"] == "compiled"
    watched = job["tree"] == "patched" and (compiling or job["kind"] == "eager")
    if compiling and watched:
        overlay.attend()
    if compiling and plan["backend"] != USUAL_BACKEND:
        compile_with(plan["backend"])
    if compiling:
        listener.count_graphs()
        torch._dynamo.config.use_numpy_random_stream = True  # else compiled code draws other numbers than eager code
        if job.get("draws_random"):
            torch._inductor.config.fallback_random = True  # the same of torch's
    settings = plan.get("settings", []) if compiling and job["tree"] == "patched" else []
    with listening(listener, plan["verbose"]) if compiling else contextlib.nullcontext(), in_force(settings):
        if watched and not compiling:
            overlay.watch(True)
        case = load_case(plan, job, live)
        if case.vary and not case.sizes:
            case.sizes = sizes_that_work(case)
        blocks = [s["name"] for s in settings if s["kind"] == "blocks"]
        arguments = {s["name"]: s["value"] for s in settings if s["kind"] == "argument"}
        if job.get("paired"):
            return paired(plan, lambda: _Run(plan, case, listener, arguments, blocks))
        run = _Run(plan, case, listener, arguments, blocks)
        if compiling:
            attend(listener, plan["verbose"])
        if overlay.observer is not None:
            return run.observed(overlay.observer)
        if job["kind"] == "float64":
            return run.in_double()
        if job.get("nudged"):
            return run.nudged()
        if job.get("replayed"):
            return run.replayed(job["replayed"])
        told = run.counted(overlay if watched and not compiling else None)
        if not (plan.get("counting") or plan.get("untimed") if compiling else plan.get("eager_untimed")):
            told.update(run.warm())
            told["eager_lines"] = run.eager_lines(told) if compiling else []
        elif not compiling:
            told["memory"] = _peak(run.device)  # by which it is decided how many may run at a time
    if watched:
        told["places"] = overlay.places()
    if (job["tree"], job["kind"]) == ("original", "eager"):
        again = load_case(plan, job, live)
        again.sizes = case.sizes
        repeated = _Run(plan, again, listener)
        told["repeatable"] = repeated.once() == run.first
        run.keep_facts({name: run.facts[name] for name in same_facts(run.facts, repeated.facts)})
        told["sizes"] = case.sizes
    told["loaded"] = sorted({entry["shown"] for entry in overlay.loaded.values()})
    told["environment"] = environment(run.device)
    told["case"] = {
        "train": case.train,
        "tolerance": case.tolerance,
        "device": run.device.type,
        "dtype": str(case.dtype).removeprefix("torch.") if case.dtype else None,
        "classes": classes_of(run.model, case.module.__name__),
        "blocks": blocks_of(case, run.model),
    }
    return told


def compile_with(backend: str) -> None:
    """Have calls of ``torch.compile`` in the user's code take this backend where they would take the usual one."""
    usual = torch.compile

    @functools.wraps(usual)
    def compiling(*args: Any, **options: Any) -> Any:
        named = options.get("backend", USUAL_BACKEND)
        return usual(*args, **{**options, "backend": backend if named == USUAL_BACKEND else named})

    torch.compile = compiling


def paired(plan: Json, made: Callable[[], _Run]) -> Json:
    """A pass in which each compiled call is made by the original, too, on the same arguments; both are saved."""
    folder, pairs = Path(plan["job"]["folder"]), beside("pairs.py")

    def keep(number: int, kind: str, named: list[tuple[str, Any]]) -> None:
        record = {"leaves": on_host(named, OUTPUT_ELEMENTS), "shared": [], "gradients": []}
        torch.save(record, folder / kind / f"pass1-call{number}.pt")

    for part in pairs.KINDS:
        (folder / part).mkdir(exist_ok=True)
    run: _Run | None = None
    near = functools.cache(lambda run: list(pairs.neighbours(_parameters(run.model).values(), SEED)) if run else [])
    with pairs.paired(keep, leaves, lambda: pairs.moved(near(run))) as calls:
        run = made()
        run.once()
    if not calls():
        raise UnsuitedError("nothing is compiled by itself inside of the call")
    return {"draws_random": False, "paired": calls()}


def beside(name: str) -> Any:
    """A module of ours, by where its file lies from here."""
    file = Path(__file__).parent / name
    spec = importlib.util.spec_from_file_location(f"_fix_compile_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    made = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def _laid(plan: Json) -> Overlay:
    """The plan's overlay, in force from here on."""
    overlay = overlay_of(plan)
    overlay.install(plan["job"]["tree"] == "patched")
    if plan["job"].get("observed"):
        overlay.observer = beside("../run/observing.py").Observer(plan["observed"])
        overlay.observer.install()
    return overlay


def repeated_blocks(model: Any) -> list[tuple[str, list[Any]]]:
    """The outermost lists of two or more modules of one class, which is more than a single layer of torch's."""
    found: list[tuple[str, list[Any]]] = []
    for path, module in model.named_modules() if isinstance(model, torch.nn.Module) else ():
        if not isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)):
            continue
        blocks = list(dict.fromkeys(module.children()))
        inside = any(not outer or path.startswith(f"{outer}.") for outer, _ in found)
        if len(blocks) >= 2 and len({type(block) for block in blocks}) == 1 and _is_block(blocks[0]) and not inside:
            found.append((path, blocks))
    return found


def _is_block(module: Any) -> bool:
    layer = type(module).__module__.startswith("torch.nn.modules") and not list(module.children())
    return not layer and not isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict))


def blocks_of(case: Case, model: Any) -> list[list[str]]:
    """Where blocks may be compiled one by one: the paths of their lists, and the dotted class of ``model``.

    None where the case compiles in a way of its own, nor of blocks whose ``forward`` is one of PyTorch's, which
    ``block.compile()`` passes over.
    """
    whole = _parted(case, model)
    found = [(path, type(blocks[0]).forward.__module__, blocks[0]) for path, blocks in repeated_blocks(whole)]
    own = [path for path, place, block in found if "forward" in vars(block) or not place.startswith("torch.nn.")]
    return [[path, _dotted(type(whole))] for path in own]


def _parted(case: Case, model: Any) -> Any:
    """The model of which parts may be compiled in the place of the whole; None where there is none."""
    if recorded := getattr(case.module, "parted", None):
        return recorded(model)
    return None if getattr(case.module, "compile", None) is not None else model


def classes_of(model: Any, own: str) -> list[str]:
    """The dotted classes of ``model``, and those it inherits from; of its parts where it is PyTorch's or of ``own``."""
    todo, found = [model], dict[str, None]()
    while todo:
        part = todo.pop(0)
        part = part if isinstance(part, torch.nn.Module) else getattr(part, "__self__", None)
        if not isinstance(part, torch.nn.Module):
            continue
        if type(part).__module__ == own or type(part).__module__.partition(".")[0] == "torch":
            todo += part.children()
            continue
        every = (c for c in type(part).__mro__ if c.__module__.partition(".")[0] not in ("torch", "builtins"))
        found.update(dict.fromkeys(map(_dotted, every)))
    return list(found)


def _dotted(kind: type) -> str:
    """The dotted name of a class; of the main program's by its file, as the project knows it."""
    main = getattr(sys.modules["__main__"], "__file__", None) if kind.__module__ == "__main__" else None
    return f"{Path(main).stem if main else kind.__module__}.{kind.__qualname__}"


@contextlib.contextmanager
def in_force(settings: Sequence[Json]) -> Iterator[None]:
    """The settings that are Dynamo's configuration; raises ``MissingSettingError`` for any that this torch lacks."""
    config = torch._dynamo.config
    for setting in (one for one in settings if one["kind"] != "blocks"):
        argument = setting["kind"] == "argument"
        if not (setting["name"] in _COMPILE_ARGUMENTS if argument else hasattr(config, setting["name"])):
            raise MissingSettingError(f"torch {torch.__version__} has no setting {setting['name']}")
    changed: Json = {s["name"]: s["value"] for s in settings if s["kind"] == "config"}
    for setting in (s for s in settings if s["kind"] == "member"):
        name = setting["name"]
        changed[name] = {*changed.get(name, getattr(config, name)), _named_object(setting["value"])}
    with config.patch(**changed) if changed else contextlib.nullcontext():
        yield


def _named_object(dotted: str) -> Any:
    """What a dotted name stands for: ``builtins.print``, ``logging.Logger.info``."""
    with contextlib.suppress(ImportError):
        return pkgutil.resolve_name(dotted)
    raise MissingSettingError(f"there is no {dotted}")


def limit_memory(limit: int | None) -> None:
    """Make allocations fail that go beyond the limit, in bytes: a large one is quicker than ``run.py`` looks.

    Not with CUDA, whose address space is much larger than what it uses.
    """
    if limit and not torch.cuda.is_available():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def sizes_that_work(case: Case) -> list[int]:
    """The sizes with which the original runs: a model may want its batch or its sequence to have a certain length."""
    working: list[int] = []
    model = case.build()
    for size in case.candidate_sizes():
        case.sizes = [size]
        try:
            _step(case, model, model, case.calls()[0], None)
        except (Exception, SystemExit) as error:
            if not working and _status_of(error) != "error":
                raise
            if not working:
                raise CaseError(f"{case.name}: call 1 raised {_message_of(error)}") from error
            sys.stderr.write(f"{case.vary} {size} is left out: {_message_of(error)}\n")
        else:
            working.append(size)
    if len(working) < 2:
        raise CaseError(f"{case.name}: the model takes its calls with one {case.vary} size only")
    return working


def environment(device: Any) -> Json:
    """Where the figures come from."""
    cuda = device.type == "cuda"
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(device) if cuda else device.type,
        "cuda": torch.version.cuda if cuda else None,
        "memory": torch.cuda.get_device_properties(device).total_memory if cuda else None,
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
    }


def _step(case: Case, model: Any, runner: Any, call: Any, optimizer: Any) -> Any:
    """One call: forward, and in training loss, backward and the optimizer's step."""
    with torch.set_grad_enabled(case.train or case.grad):
        if optimizer is not None:
            optimizer.zero_grad(set_to_none=True)
        elif case.train and not callable(call) and not _learning(model):
            _ask_for_gradients(call)
        output = call(case.for_function(runner)) if callable(call) else runner(*call[0], **call[1])
        if isinstance(output, Iterator):
            output = list(output)  # what it has to do belongs to the call
        if case.train:
            case.loss(output).backward()
            if optimizer is not None:
                optimizer.step()
    return output


def _ask_for_gradients(call: Any) -> None:
    """Of a model without parameters gradients go to its floating arguments, unless the case says to which of them."""
    floating = [t for t in tensors(call) if t.is_leaf and (t.is_floating_point() or t.is_complex())]
    if not any(t.requires_grad for t in tensors(call)):
        for leaf in floating:
            leaf.requires_grad_()


def one_assembler(mode: object) -> None:
    """With ``max-autotune`` have this process use the assembler that inductor's workers use.

    A torch that brings a ``ptxas`` names it to its workers only. Triton files what is compiled under the assembler's
    version: what a worker has compiled is not found by the process that times it, which compiles all of it once more.
    """
    if str(mode).startswith("max-autotune") and ASSEMBLER not in os.environ:
        with contextlib.suppress(ImportError, AttributeError):  # of other releases
            importlib.import_module("torch._inductor.runtime.compile_tasks")._set_triton_ptxas_path()


class _TooLongError(BaseException):
    """A call with changed inputs does not end."""


def _too_long(number: int, frame: Any) -> None:
    raise _TooLongError


class _Run:
    """One model of one variant, and the passes over the case's calls."""

    def __init__(
        self, plan: Json, case: Case, listener: Listener, arguments: Json | None = None, blocks: Sequence[str] = ()
    ) -> None:
        self.plan, self.case, self.listener, self.arguments = plan, case, listener, arguments or {}
        self.kind, self.mode, self.folder = plan["job"]["kind"], plan["job"]["mode"], Path(plan["job"]["folder"])
        self.model = case.build()
        self.weights = {name: digest(t) for name, t in self._watched().items()}
        self.kinds = _kinds(self.model)
        self.plain = {name: digest_all([(name, leaf)]) for name, leaf in _module_attributes(self.model).items()}
        calls = case.calls()
        found = [t.device for t in (*_state(self.model).values(), *tensors([c for c in calls if not callable(c)]))]
        cuda = [device for device in found if device.type == "cuda"]
        self.device = cuda[0] if cuda else torch.device("cpu")
        if cuda and plan.get("workers"):  # beside others, for whose cores more threads would wait
            torch.set_num_threads(min(THREADS, torch.get_num_threads()))
        if self.kind == "compiled" and cuda:
            one_assembler(self._options().get("mode"))
        whole = self.kind == "compiled" and not blocks
        self.runner = case.compile(self.model, self._options()) if whole else self.model
        lists = [_parted(case, self.model).get_submodule(path) for path in blocks]
        for block in [one for blocks in lists for one in blocks.children()]:
            block.compile(**self._options())
        self.optimizer = case.optimizer(self.model) if case.train else None
        self.first, self.draws_random, self.comparable = "", False, False
        self.most = SAMPLE_ELEMENTS if plan["job"].get("replayed") else OUTPUT_ELEMENTS  # of a tensor kept whole
        self.facts: dict[str, Any] = {}  # of eager modes alone, in the first pass: compiling may change them
        self.precision = beside("precision.py").Noting(_parameters(self.model).values())

    def _watched(self) -> dict[str, Any]:
        """The tensors of the model that a call might change."""
        return _state(self.model)

    def _options(self) -> Json:
        options = {"backend": self.plan["backend"]}
        if self.mode != "default" and self.plan["backend"] == "inductor":
            options["mode"] = self.mode
        return options | self.arguments

    def counted(self, overlay: Overlay | None) -> Json:
        """The passes that are counted: the first, cold one, and on until nothing is compiled any more.

        What the calls return is saved in the first pass and in a later one: CUDA graphs replay from the third on.
        """
        enough = QUICK_PASSES if self.plan["quick"] else COUNTED_PASSES
        rows: list[list[Json]] = []
        for number in range(1, MOST_PASSES + 1):
            before, launched = self.listener.counts(), self.listener.launched()
            rows.append(self._pass(number if number in (1, enough) else None))
            if overlay:
                overlay.watch(False)
            after = self.listener.counts()
            compiled = any(after[k] != before[k] for k in ("graphs", "breaks", "recompiles", "cudagraph_skips"))
            if number >= enough and not compiled:
                break
        totals = self.listener.counts()
        self._write_weights()
        self.keep_facts(self.facts)
        return {
            "weights": hashlib.sha256(json.dumps(self.weights, sort_keys=True).encode()).hexdigest(),
            "repeatable": None,
            "draws_random": self.draws_random,
            "calls": rows[0],
            "settled": rows[-1],
            "counts": {key: count for key, count in totals.items() if key not in ("launches", "operators")},
            "launches": sum(row["launches"] for row in rows[-1]),
            "operators": sum(row["operators"] for row in rows[-1]),
            **described(self.listener),
            "origins": origins_of(self.listener, launched),
            "cold_seconds": round(sum(row["seconds"] for row in rows[0]), 4),
            "places": None,
        }

    def _write_weights(self) -> None:
        told = {"digests": self.weights, "kinds": self.kinds, "epsilon": self.precision.epsilon}
        _write_json(self.folder / "weights.json", told)

    def _pass(self, save: int | None) -> list[Json]:
        """All calls once, with what each of them cost; ``save``: the number under which the results are kept."""
        rows = []
        calls = self.case.calls()
        seed()
        random_state = _random_state()
        hashes = hashlib.sha256()
        for number, call in enumerate(calls, 1):
            self._begin_step()
            before, start = self.listener.counts(), time.perf_counter()
            output = self._guarded(number, call)
            self._wait()
            seconds, after = time.perf_counter() - start, self.listener.counts()
            rows.append({"seconds": round(seconds, 6), **{key: after[key] - before[key] for key in after}})
            if save:
                hashes.update(self._save(save, number, call, output).encode())
            del output
            if save == 1 and self.kind == "eager":
                self.facts[f"random state after call {number}"] = _random_digest()
        if save == 1 and self.kind == "eager":
            self._note_attributes()
        if save:
            state = self._watched().items()
            changed = [(n, t) for n, t in state if digest(t) != self.weights.get(n)]
            self._keep(f"pass{save}-state.pt", on_host(changed, TRAINED_ELEMENTS))
            self.comparable |= bool(changed)
        if save == 1 and self.kind == "eager" and not self.comparable:
            raise CaseError(f"{self.case.name}: the calls return nothing that can be compared, and change nothing")
        if save == 1:
            self.first, self.draws_random = hashes.hexdigest(), _random_state() != random_state
        return rows

    def _note_attributes(self) -> None:
        for name, leaf in _module_attributes(self.model).items():
            same = digest_all([(name, leaf)]) == self.plain.get(name)
            self.comparable |= not same
            taken = [(name, "as after build()")] if same else on_host([(name, leaf)])
            self.facts.update((f"attribute {where}", value) for where, value in taken)

    def _guarded(self, number: int, call: Any) -> Any:
        try:
            with self.precision if self.kind == "eager" else contextlib.nullcontext():
                return _step(self.case, self.model, self.runner, call, self.optimizer)
        except (Exception, SystemExit) as error:
            if _status_of(error) == "error" and self.kind == "eager":
                raise CaseError(f"{self.case.name}: call {number} raised {_message_of(error)}") from error
            raise

    def _save(self, save: int, number: int, call: Any, output: Any) -> str:
        """Keep what a call returned, its arguments as it left them, and the gradients; the answer is their digest."""
        returned, given = list(leaves(output, "output")), [] if callable(call) else list(leaves(call, "argument"))
        shared = sharing([*returned, *given], [(f"model.{name}", t) for name, t in _state(self.model).items()])
        gradients = {}
        if self.case.train:
            gradients = {n: p.grad for n, p in _parameters(self.model).items()}
            inputs = [(name, leaf) for name, leaf in given if torch.is_tensor(leaf) and leaf.is_leaf]
            gradients |= {name: leaf.grad for name, leaf in inputs if leaf.requires_grad}
            trained = [name for name, leaf in returned if torch.is_tensor(leaf) and leaf.requires_grad]
            returned += [(f"{name}.requires_grad", True) for name in trained]
        named = [*returned, *given]
        told = [leaf for name, leaf in named if not name.endswith((".type", ".keys", ".len"))]
        self.comparable |= bool(gradients) or any(leaf is not None for leaf in told)
        kept = on_host(named, self.most)
        gradients_kept = on_host(gradients.items(), min(self.most, TRAINED_ELEMENTS))
        record = {"leaves": kept, "shared": shared, "gradients": gradients_kept}
        self._keep(f"pass{save}-call{number}.pt", record)
        return digest_all([*kept, *gradients_kept])

    def keep_facts(self, facts: dict[str, Any]) -> None:
        """Save what is only compared between eager modes."""
        if self.kind == "eager":
            self._keep("facts.pt", on_host(facts.items(), TRAINED_ELEMENTS))

    def _keep(self, name: str, value: Any) -> None:
        torch.save(value, self.folder / name)

    def once(self) -> str:
        """One eager pass from scratch; the digest of all that it computed."""
        self._pass(1)
        return self.first

    def in_double(self) -> Json:
        """Passes of the original in float64, for the question of who is closer to the truth."""
        if not isinstance(self.model, torch.nn.Module):
            raise UnsuitedError("the model is a function: it cannot be converted to float64")
        self.case.double = True
        self.model = self.case._placed(self.model)
        self.runner = self.model
        self.weights = {name: digest(t) for name, t in _state(self.model).items()}
        self.optimizer = self.case.optimizer(self.model) if self.case.train else None
        try:
            return self._compared_only()
        except Exception as error:
            raise UnsuitedError(f"the model does not run in float64: {_message_of(error)}") from error

    def nudged(self) -> Json:
        """Passes with each parameter moved by a rounding: a branch that rounding has taken is another one then."""
        for parameter, values in beside("pairs.py").neighbours(_parameters(self.model).values(), SEED):
            parameter.detach().copy_(values)
        self.weights = {name: digest(t) for name, t in _state(self.model).items()}
        self._write_weights()
        return self._compared_only()

    def observed(self, observer: Any) -> Json:
        """An eager pass in which expressions are looked at; then, with changed inputs, of truths alone."""
        observer.on = True
        self._all(self.case.calls())
        observer.on, observer.changed = False, True
        with contextlib.suppress(Exception, SystemExit, _TooLongError):
            for _, change, call in self._changed_calls(OBSERVED_SECONDS):
                observer.on = True
                with contextlib.suppress(Exception, SystemExit), change.around(self.model, self.device.type):
                    _step(self.case, self.model, self.runner, call, self.optimizer)
                observer.on = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        observer.on = False
        return {"draws_random": False, "observations": observer.observations()}

    def replayed(self, seconds: float) -> Json:
        """Calls with changed inputs, each from the state after ``build``; saved is what it gives, or that it raises."""
        for limit in ("recompile_limit", "accumulated_recompile_limit"):
            if hasattr(torch._dynamo.config, limit):
                setattr(torch._dynamo.config, limit, MOST_COMPILED)  # else the rest would run eagerly on both sides
        names: list[tuple[int, str, bool]] = []
        with contextlib.suppress(_TooLongError):
            for number, change, call in self._changed_calls(seconds):
                failed = self._changed_call(number, change, call)
                if not getattr(call, "unchanged", False):
                    names.append((number, change.name, change.elsewhere))
                if "CUDA error" in failed:
                    break  # an assertion on the device has failed, and nothing runs there any more
        signal.setitimer(signal.ITIMER_REAL, 0)
        return {"draws_random": False, "changes": names}

    def _changed_call(self, number: int, change: Any, call: Any) -> str:
        """Keep what the call gives, or that it raises; the answer is with what, or ""."""
        try:
            before = {name: (id(t), t._version) for name, t in self._watched().items()}
            with change.around(self.model, self.device.type):
                self._save(1, number, call, _step(self.case, self.model, self.runner, call, self.optimizer))
            written = {n: t for n, t in self._watched().items() if (id(t), t._version) != before.get(n)}
            changed = {n: t for n, t in written.items() if digest(t) != self.weights.get(n)}
            self._keep(f"pass1-state{number}.pt", on_host(changed.items(), self.most))
        except (Exception, SystemExit) as error:
            if _status_of(error) != "out-of-memory":
                self._keep(f"pass1-call{number}.pt", {"leaves": [("raised", type(error).__name__)]})
            return str(error) or type(error).__name__
        return ""

    def _changed_calls(self, seconds: float) -> Iterator[tuple[int, Any, Any]]:
        """Changes of inputs with their numbers, and the calls that they give, each from the state that is there now.

        Until the time is over: a call that goes on is ended with ``_TooLongError``.
        """
        replaying, over = beside("replaying.py"), time.perf_counter() + seconds
        state = replaying.Snapshot([self.model, *filter(None, [self.optimizer])])
        signal.signal(signal.SIGALRM, _too_long)
        for number, change in enumerate(replaying.changes(), 1):
            if time.perf_counter() > over:
                break
            signal.setitimer(signal.ITIMER_REAL, seconds)
            try:
                state.restore()
                calls = self.case.calls()
                call = change.of(calls[0 if self.case.train else number % len(calls)])
            except (RuntimeError, TypeError, ValueError):  # of a tensor that cannot be put back, or be made so
                call = None
            if call is not None:
                self._begin_step()
                seed()
                yield number, change, call
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _compared_only(self) -> Json:
        for number in range(1, (last := QUICK_PASSES if self.plan["quick"] else COUNTED_PASSES) + 1):
            self._pass(number if number in (1, last) else None)
        return {"draws_random": False}

    def warm(self, seconds: float | None = None) -> Json:
        """The time of a pass over all calls when everything is compiled, and the memory that it takes.

        ``seconds``: about how long it is measured; None: as long as is usual.
        """
        budget = (QUICK_SECONDS if self.plan["quick"] else WARM_SECONDS) if seconds is None else seconds
        gc.collect()
        _reset_peak(self.device)
        times: list[float] = []
        busy: list[float] = []  # CPU time, which other programs on the machine do not lengthen
        start = time.perf_counter()
        while len(times) < MOST_WARM and (len(times) < FEWEST_WARM or time.perf_counter() - start < budget):
            calls = self.case.calls()
            seed()
            self._wait()
            if self.device.type == "cuda":
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                self._all(calls)
                end.record()
                self._wait()
                times.append(begin.elapsed_time(end))
            else:
                began, worked = time.perf_counter(), time.process_time()
                self._all(calls)
                busy.append(1e3 * (time.process_time() - worked))
                times.append(1e3 * (time.perf_counter() - began))
        low, _, high = statistics.quantiles(times, n=4, method="inclusive")
        figures = {"median_ms": statistics.median(times), "low_ms": low, "high_ms": high, "min_ms": min(times)}
        if busy:
            low, _, high = statistics.quantiles(busy, n=4, method="inclusive")
            figures |= {"cpu_ms": statistics.median(busy), "cpu_low_ms": low, "cpu_high_ms": high}
        warm = {**{key: round(value, 4) for key, value in figures.items()}, "passes": len(times)}
        return {"warm": warm, "memory": _peak(self.device)}

    def eager_lines(self, told: Json) -> list[Json]:
        """The lines of a warm pass that run eagerly, with their share of its time; none where no graph breaks.

        Nor on a GPU, where a line may just wait. Nothing is raised: all that a verdict needs is known.
        """
        broken = any(told["counts"][key] for key in ("breaks", "dropped_frames", "limit_hits"))
        if broken and self.device.type == "cpu" and told["warm"]["median_ms"] < LONG_PASS:
            with contextlib.suppress(Exception):
                return self._looked_at(place_names(self.plan))
        return []

    def _looked_at(self, shown: Callable[[str], str]) -> list[Json]:
        looking, interval, start = _Looking(), sys.getswitchinterval(), time.perf_counter()
        sys.setswitchinterval(LOOK_SECONDS / 2)
        looking.start()
        try:
            while not looking.seen or time.perf_counter() - start < QUICK_SECONDS:
                calls = self.case.calls()
                seed()
                self._wait()
                looking.now = True
                self._all(calls)
                self._wait()
                looking.now = False
        finally:
            looking.over.set()
            looking.join()
            sys.setswitchinterval(interval)
        looks = sum(looking.seen.values())
        lines = [(line, count / looks) for line, count in looking.seen.most_common() if line]
        return [
            {"where": f"{shown(file)}:{line}", "share": round(share, 3)}
            for (file, line), share in lines
            if share >= LEAST_SHARE
        ]

    def _all(self, calls: list[Any]) -> None:
        for call in calls:
            self._begin_step()
            _step(self.case, self.model, self.runner, call, self.optimizer)

    def _begin_step(self) -> None:
        """Outputs of earlier calls may be overwritten from here on, and weights are cast anew: as in a new context."""
        torch.clear_autocast_cache()
        if self.kind == "compiled":
            torch.compiler.cudagraph_mark_step_begin()

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class _Looking(threading.Thread):
    """Looks at the stack of the thread that makes it, while it is ``now`` to be: on which lines it runs eagerly."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.over, self.now, self._of = threading.Event(), False, threading.get_ident()
        self.seen: Counter[tuple[str, int] | None] = Counter()

    def run(self) -> None:
        """Count what is seen; None: a graph, or nothing of the user's."""
        while not self.over.wait(LOOK_SECONDS):
            if self.now:
                self.seen[_eager_line(sys._current_frames().get(self._of))] += 1


def _eager_line(frame: types.FrameType | None) -> tuple[str, int] | None:
    """The innermost line of code that is not PyTorch's or Python's, unless it runs a graph."""
    while frame is not None:
        file = frame.f_code.co_filename
        generated = os.environ.get("TORCHINDUCTOR_CACHE_DIR", "<nowhere>")
        around = file == __file__  # and so is all that calls us
        if around or _OF_GRAPHS.search(file) or file.startswith(generated):
            return None
        installed = "site-packages" in file or "dist-packages" in file
        if not file.startswith(_TORCH if installed else _PYTHONS_OWN):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


def _random_digest() -> str:
    """Where the random numbers of Python, NumPy and torch have got to."""
    states = [repr(random.getstate()), *map(repr, _random_state())]
    if numpy := sys.modules.get("numpy"):
        states.append(repr([getattr(part, "tolist", lambda part=part: part)() for part in numpy.random.get_state()]))
    return hashlib.sha256("".join(states).encode()).hexdigest()[:8]


def _random_state() -> tuple[bytes, ...]:
    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    return tuple(bytes(state.tolist()) for state in states)


def _reset_peak(device: Any) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak(device: Any) -> Json:
    """The largest memory since the reset, in bytes: torch's on a GPU, else what the process had resident."""
    if device.type == "cuda":
        return {"bytes": torch.cuda.max_memory_allocated(device), "kind": "cuda"}
    with contextlib.suppress(OSError, StopIteration):
        status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return {"bytes": 1024 * int(next(x for x in status if x.startswith("VmHWM")).split()[1]), "kind": "rss"}
    unit = 1 if sys.platform == "darwin" else 1024
    return {"bytes": unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "kind": "rss"}


# ---------------------------------------------------------------------------------------------------------------------


def _write_json(path: Path, value: Json) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=1), encoding="utf-8")
    part.replace(path)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", type=Path)
    options = parser.parse_args()
    spec: Json = json.loads(options.spec.read_text(encoding="utf-8"))
    if "job" not in spec:
        sys.argv = ["run.py", str(options.spec)]
        runpy.run_path(str(Path(__file__).with_name("run.py")), run_name="__main__")
        return
    die_with_parent()
    explain_ends(spec)
    prepare_path(spec["path"], spec["cases"][spec["job"]["case"]]["file"])
    Path(spec["job"]["folder"]).mkdir(parents=True, exist_ok=True)
    recorded = spec["cases"][spec["job"]["case"]].get("recorded")
    if recorded:
        _end(spec, answer_within(spec, Path(recorded)))
    _end(spec, answer(spec))


def answer_within(spec: Json, recording: Path) -> Json:
    """Run a recorded program to its first recorded call, and measure there, which ends the process.

    Returns what to answer when it does not come to that call.
    """
    recorded = beside("../run/recorded.py")
    try:
        overlay = _laid(spec)
        if spec["job"]["tree"] == "patched" and spec["job"]["kind"] == "eager":
            overlay.watch(True)
        recorded.reach(recording, lambda live: _end(spec, answer(spec, live, overlay)))
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code in (None, 0):
            return {"status": "case-error", "message": "the program ended before the recorded call"}
        _explain(error)
        patched = spec["job"]["tree"] == "patched"
        return {"status": "error" if patched else "case-error", "message": f"the program raised {_message_of(error)}"}
    return {"status": "case-error", "message": "the program ended before the recorded call"}


def _end(spec: Json, told: Json) -> None:
    """Leave the answer, and end the process."""
    _write_json(Path(spec["job"]["folder"]) / "result.json", told)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads and processes that the case or the compiler has left behind are not waited for


if __name__ == "__main__":
    main()
