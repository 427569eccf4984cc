"""Two sources run in the same way: do they agree, and what does Dynamo do with each?

    python examples.py < REQUESTS > RECORDS

A request is a line of JSON: ``before``, ``after`` and ``run``, as an example of a rule has them, and ``modes``, when
the modes that are lost are asked for too; its record is a line of JSON as well (`record`). The process answers one
after another, so that torch is imported once. Standard library, torch and ``worker.py``, which lies beside this file.

Dynamo's counters miss some breaks (a tensor ``if`` in the outermost function), so this counts its log records, and what
arrives at a backend of our own. A frame that Dynamo gave up on has few breaks and runs eagerly: hence ``operators``.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import dataclasses
import gc
import hashlib
import importlib.util
import io
import json
import logging
import os
import platform
import random
import shutil
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._logging

if not __package__:  # run by its path: what lies beside it is one package
    __package__ = str(__import__("worker").__package__)

from .listener import Listener, attend

torch.set_num_threads(1)

PREAMBLE = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
SEED = 20
_FLAGS = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")
#: How else a source may be compiled: in one graph, also with Dynamo's capture flags; ``torch.export.export`` with
#: ``strict=True``; ``torch.jit.script``.
MODES = ("fullgraph", "fullgraph and capture", "export", "script")

Call = Any  # a tuple of arguments, (arguments, keywords), or a function of the callable under test
Backend = Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable[..., Any]]
Hook = Callable[[Any, Backend], Any]


@dataclass(frozen=True)
class Raised:
    """An exception in the place of an output. Any two are equal: a patch may change the type, not the fact."""

    kind: str
    message: str = field(default="", compare=False)


@dataclass(frozen=True)
class Counts:
    """How a sequence of calls compiled.

    ``breaks``: break events; ``graphs``: graphs that the backend compiled; ``recompiles``: guard failures that compiled
    again; ``limit_hits``: functions given up after too many of them; ``dropped_frames``: how often the rest of a frame
    was left to run eagerly, because a break stands where it cannot resume. ``launches`` and ``operators`` are of the
    last call alone: graphs launched, and operators that ran inside them. ``notes`` says where and why, one line each;
    ``outputs`` are those of the calls.
    """

    breaks: int
    graphs: int
    launches: int
    operators: int
    recompiles: int
    limit_hits: int
    dropped_frames: int
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)
    outputs: tuple[Any, ...] = field(default=(), compare=False, repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether all that ran is in graphs, as ``fullgraph=True`` would have it."""
        return self.graphs > 0 and not (self.breaks or self.limit_hits or self.dropped_frames)

    @property
    def cost(self) -> tuple[int, int, int]:
        """Smaller is better: what runs eagerly for good comes first, for it hides the rest."""
        return (self.limit_hits + self.dropped_frames, self.breaks + self.recompiles, self.graphs)

    @property
    def figures(self) -> dict[str, Any]:
        """All but the outputs, as plain data."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.compare} | {
            "notes": list(self.notes)
        }

    def __str__(self) -> str:
        figures = (f"{f.name}={getattr(self, f.name)}" for f in dataclasses.fields(self) if f.compare)
        return "\n  ".join((" ".join(figures), *self.notes))


@contextlib.contextmanager
def _listening() -> Iterator[Listener]:
    """All that torch logs goes to the yielded object, as in the harness, and nothing to the terminal."""
    listener = Listener(str)
    saved = [(log, log.handlers, log.propagate) for log in map(logging.getLogger, _torch_loggers())]
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            attend(listener, verbose=False)
            yield listener
    finally:
        for log, handlers, propagate in saved:
            log.handlers, log.propagate = handlers, propagate
        torch._logging.set_logs()


def _notes(records: Listener) -> Iterator[tuple[str, ...]]:
    yield from (("break", *item) for item in records.breaks)
    yield from (("recompile", *item) for item in records.recompiles)
    yield from (("limit", *item) for item in records.limits)
    yield from (("dropped", *item) for item in records.dropped)


def _torch_loggers() -> list[str]:
    return [name for name in logging.root.manager.loggerDict if name == "torch" or name.startswith("torch.")]


#: Settings that examples may change.
_SET = (
    "capture_scalar_outputs",
    "capture_dynamic_output_shape_ops",
    "allow_rnn",
    "allow_unspec_int_on_nn_module",
    "recompile_limit",
    "reorderable_logging_functions",
)


class _Backend:
    """Counts graphs, launches and the operators launched, on top of one of Dynamo's own backends."""

    def __init__(self, name: str) -> None:
        self.compile = torch._dynamo.lookup_backend(name)
        self.graphs = self.launches = self.operators = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        size = sum(node.op.startswith("call_") for node in graph.graph.nodes)
        compiled = self.compile(graph, inputs)
        self.graphs += 1  # only now: a backend may refuse, and Dynamo then drops the frame

        def launch(*args: Any) -> Any:
            self.launches += 1
            self.operators += size
            return compiled(*args)

        return launch


def count(
    fn: Callable[..., Any],
    calls: Iterable[Call],
    *,
    train: bool = False,
    grad: bool = False,
    backend: str | None = None,
    hook: Hook | None = None,
) -> Counts:
    """Compile ``fn`` afresh, make the calls one after another, and say what Dynamo did.

    ``train``: sum the outputs and go backward (on ``aot_eager``, for tracing backward has breaks of its own); ``grad``:
    gradient mode is on, the calls do the rest. Otherwise gradient mode is off, on ``eager``. ``hook(fn, backend)`` does
    the compiling itself and returns what to call.
    """
    torch._dynamo.reset()
    torch._dynamo.utils.reset_graph_break_dup_checker()
    counting = _Backend(backend or ("aot_eager" if train else "eager"))
    outputs: list[Any] = []
    try:
        with _listening() as records, _own_configuration():
            compiled = hook(fn, counting) if hook else torch.compile(fn, backend=counting)
            torch.manual_seed(SEED)
            for call in calls:
                counting.launches = counting.operators = 0
                outputs.append(_make(compiled, call, train=train, grad=grad))
    finally:
        torch._dynamo.reset()
    return Counts(
        breaks=len(records.breaks),
        graphs=counting.graphs,
        launches=counting.launches,
        operators=counting.operators,
        recompiles=len(records.recompiles),
        limit_hits=len(records.limits),
        dropped_frames=len(records.dropped),
        notes=tuple(" ".join(note) for note in _notes(records)),
        outputs=tuple(outputs),
    )


@contextlib.contextmanager
def _own_configuration() -> Iterator[None]:
    """What a source sets of Dynamo's configuration ends with it."""
    config = torch._dynamo.config
    with config.patch(**{name: copy.copy(getattr(config, name)) for name in _SET if hasattr(config, name)}):
        yield


@dataclass(frozen=True)
class Ran:
    """One eager run, call by call.

    ``outputs``: the output, or `Raised`, and the tensor arguments as the call left them. ``gradients``: of the
    parameters, in training. ``aliases``: which of the tensors in output and arguments share memory; each is given the
    position of the first that it shares with. ``drawn``: the state in which the generators of random numbers are left.
    ``state``: what the source itself wants to be compared.
    """

    outputs: tuple[Any, ...]
    gradients: tuple[dict[str, torch.Tensor | None], ...]
    aliases: tuple[Any, ...]
    drawn: str = ""
    state: Any = None


def run_eagerly(fn: Callable[..., Any], calls: Iterable[Call], *, train: bool = False, grad: bool = False) -> Ran:
    """Make the calls without Dynamo."""
    torch.manual_seed(SEED)
    random.seed(SEED)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(SEED)
    outputs, grads, aliases = [], [], []
    for call in calls:
        if isinstance(fn, torch.nn.Module):
            fn.zero_grad()
        raw = _make(fn, call, train=train, grad=grad, detach=False)
        arguments = [] if callable(call) else tensors(call)
        aliases.append(_sharing([*tensors(raw), *arguments]))
        outputs.append(_detached((raw, arguments)))
        if train and isinstance(fn, torch.nn.Module):
            grads.append(gradients(fn))
    return Ran(tuple(outputs), tuple(grads), tuple(aliases), _drawn())


def _drawn() -> str:
    """The state of the generators of PyTorch, Python and NumPy, in a few letters."""
    states = [torch.get_rng_state().tolist(), random.getstate()]
    if numpy := sys.modules.get("numpy"):
        states += [str(numpy.random.get_state(legacy=False))]
    return hashlib.sha256(repr(states).encode()).hexdigest()[:16]


def gradients(module: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """Copies of the parameters' gradients, by name."""
    return {name: None if p.grad is None else p.grad.clone() for name, p in module.named_parameters()}


def equal(a: object, b: object, tolerance: float = 0.0, where: str = "output") -> str | None:
    """Name the first difference between two nested values, or return None.

    Tensors must agree in dtype, shape and every element (NaN equals NaN, -0.0 is not 0.0), or, with ``tolerance``
    (relative and absolute), in every element nearly. Exceptions agree with exceptions.
    """
    if isinstance(a, Raised) or isinstance(b, Raised):
        return None if isinstance(a, Raised) and isinstance(b, Raised) else f"{where}: {_short(a)} against {_short(b)}"
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return _equal_tensors(a, b, tolerance, where)
    if type(a).__name__ != type(b).__name__:  # by name, for the two sources define their classes twice
        return f"{where}: {type(a).__name__} against {type(b).__name__}"
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if list(a) != list(b):
            return f"{where}: keys {list(a)} against {list(b)}"
        return _first(equal(a[key], b[key], tolerance, f"{where}[{key!r}]") for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return f"{where}: {len(a)} items against {len(b)}"
        pairs = enumerate(zip(a, b))  # noqa: B905 - also on a Python that knows no `strict`
        return _first(equal(x, y, tolerance, f"{where}[{i}]") for i, (x, y) in pairs)
    if isinstance(a, float) and isinstance(b, float):
        return _equal_tensors(
            torch.tensor(a, dtype=torch.double), torch.tensor(b, dtype=torch.double), tolerance, where
        )
    if a is None or isinstance(a, (bool, int, str, bytes, complex, torch.Size, torch.dtype)):
        return None if a == b else f"{where}: {a!r} against {b!r}"
    if hasattr(a, "__dict__"):
        return equal(vars(a), vars(b), tolerance, where)
    return None


def _equal_tensors(a: torch.Tensor, b: torch.Tensor, tolerance: float, where: str) -> str | None:
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{where}: {a.dtype} {tuple(a.shape)} against {b.dtype} {tuple(b.shape)}"
    if a.is_complex():
        return _equal_tensors(torch.view_as_real(a), torch.view_as_real(b), tolerance, where)
    if tolerance:
        same = torch.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        same = ((a == b) & (torch.signbit(a) == torch.signbit(b))) | ((a != a) & (b != b))
    if bool(same.all()):
        return None
    place = tuple((~same).nonzero()[0].tolist())
    return f"{where}{list(place)}: {a[place].item()} against {b[place].item()} ({int((~same).sum())} elements differ)"


def _first(differences: Iterable[str | None]) -> str | None:
    return next((d for d in differences if d), None)


def _short(value: object) -> str:
    return f"{value.kind}({value.message})" if isinstance(value, Raised) else type(value).__name__


def tensors(value: object) -> list[torch.Tensor]:
    """All tensors of a nested value, in order. Objects that are no containers are not looked into."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _detached(value: object) -> Any:
    return torch.utils._pytree.tree_map(lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v, value)


def _sharing(found: list[torch.Tensor]) -> tuple[int, ...]:
    """For each tensor the position of the first one in the same memory."""
    addresses = [t.untyped_storage().data_ptr() or -i for i, t in enumerate(found)]
    return tuple(addresses.index(address) for address in addresses)


def _make(fn: Callable[..., Any], call: Call, *, train: bool, grad: bool, detach: bool = True) -> Any:
    """Make one call; an exception becomes its value. A tensor output is copied, for a later call may write to it."""
    try:
        with torch.set_grad_enabled(train or grad):
            if callable(call):
                out = call(fn)
            elif len(call) == 2 and isinstance(call[0], (tuple, list)) and isinstance(call[1], dict):
                out = fn(*call[0], **call[1])
            else:
                out = fn(*call)
            parts = [t for t in tensors(out) if t.requires_grad]
            if train and parts:
                torch.stack([t.sum().double() for t in parts]).sum().backward()
    except Exception as error:
        return Raised(type(error).__name__, (str(error).strip().splitlines() or [""])[0])
    return _detached(out) if detach else out


_folder: Path | None = None


@contextlib.contextmanager
def imported(source: str) -> Iterator[types.ModuleType]:
    """The source as a module with a file of its own: Dynamo and dataclasses look both up.

    It draws the same random numbers each time, at its top level too, whatever was drawn before it. What it
    sets of Dynamo's configuration ends with it.
    """
    global _folder
    if _folder is None:
        _folder = Path(tempfile.mkdtemp(prefix="examples-"))
        atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    name = f"example_{hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    path = _folder / f"{name}.py"
    if not path.exists():
        path.write_text(source, encoding="utf-8")
    torch.default_generator.manual_seed(SEED)  # `torch.manual_seed` goes through Dynamo
    with _own_configuration(), loaded(path, name) as module:
        yield module


@contextlib.contextmanager
def loaded(path: Path, name: str) -> Iterator[types.ModuleType]:
    """The file as a module that is forgotten afterwards."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    outer = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        if outer is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = outer


def text_of(source: str, run: str) -> str:
    """What is executed of a source that stands below `PREAMBLE`, and is run as ``run`` says."""
    return f"{PREAMBLE}{source}\n\n{run}\n"


def eager(text: str) -> Ran:
    """Run a source without Dynamo. It defines ``make()`` and ``calls``, a list or a function that returns one.

    ``train = True`` and ``grad = True`` are as `count` has them; ``state(made)`` tells what else is to be compared.
    """
    with imported(text) as module:
        fn, calls, train, grad = _built(module)
        ran = run_eagerly(fn, calls, train=train, grad=grad)
        return dataclasses.replace(ran, state=module.state(fn)) if hasattr(module, "state") else ran


def compiled(text: str, backend: str | None = None) -> Counts:
    """Run a source, as `eager` has it, under Dynamo; its ``hook(made, backend)`` does the compiling if it has one."""
    with imported(text) as module:
        fn, calls, train, grad = _built(module)
        return count(fn, calls, train=train, grad=grad, backend=backend, hook=getattr(module, "hook", None))


def _built(module: types.ModuleType) -> tuple[Any, Any, bool, bool]:
    torch.manual_seed(SEED)
    fn = module.make()
    calls = module.calls() if callable(module.calls) else module.calls
    return fn, calls, getattr(module, "train", False), getattr(module, "grad", False)


@dataclass(frozen=True)
class Compared:
    """Two sources, run in the same way. ``difference``: of eager outputs, of the arguments afterwards, of gradients.

    ``compiled_difference``: between the second source's eager and compiled outputs. ``aliasing``: how the memory that
    outputs and arguments share differs. ``raised``: how many of the first source's calls raised. ``drawn``: that other
    random numbers come next, where no call raised.
    """

    before: Counts
    after: Counts
    difference: str | None
    compiled_difference: str | None
    aliasing: str | None
    raised: int
    drawn: str | None = None

    @property
    def better(self) -> bool:
        """Whether the second source compiles better."""
        return self.after.cost < self.before.cost

    @property
    def worse(self) -> bool:
        """Whether it compiles worse."""
        return self.after.cost > self.before.cost

    def __str__(self) -> str:
        parts = [f"before: {self.before}", f"after: {self.after}"]
        told = ("difference", "compiled_difference", "aliasing", "drawn")
        parts += [f"{n}: {v}" for n in told if (v := getattr(self, n))]
        return "\n".join(parts)


def run_example(
    before: str,
    after: str,
    run: str,
    *,
    tolerance: float = 0.0,
    gradient_tolerance: float = 1e-5,
    eagerly: Callable[[str], Ran] = eager,
    compiling: Callable[[str], Counts] = compiled,
) -> Compared:
    """Run two sources in the way that ``run`` says, eagerly and under Dynamo.

    Both stand below `PREAMBLE`, ``run`` below them (see `eager`). Gradients get their own tolerance: where several
    places share one row, the sum over them may be taken in another order. ``eagerly`` and ``compiling`` do the work;
    the tests have some that remember.
    """
    first, second = (eagerly(text_of(source, run)) for source in (before, after))
    first_counts, second_counts = (compiling(text_of(source, run)) for source in (before, after))
    return compared((first, first_counts), (second, second_counts), tolerance, gradient_tolerance)


def compared(
    before: tuple[Ran, Counts], after: tuple[Ran, Counts], tolerance: float = 0.0, gradient_tolerance: float = 1e-5
) -> Compared:
    """What two sources gave, eagerly and under Dynamo, held against each other."""
    (first, first_counts), (second, second_counts) = before, after
    difference = equal(list(first.outputs), list(second.outputs), tolerance) or equal(
        list(first.gradients), list(second.gradients), gradient_tolerance, "gradient"
    )
    raised = sum(isinstance(out, Raised) for out, _ in first.outputs)
    return Compared(
        before=first_counts,
        after=second_counts,
        difference=difference,
        compiled_difference=_compiled_difference(second, second_counts),
        aliasing=equal(list(first.aliases), list(second.aliases), 0.0, "aliases"),
        raised=raised,
        drawn=None if raised or first.drawn == second.drawn else "other random numbers come next",
    )


def _compiled_difference(ran: Ran, counts: Counts) -> str | None:
    return equal([out for out, _ in ran.outputs], list(counts.outputs), 1e-5, "compiled")


def working(
    text: str, mode: str, *, eagerly: Callable[[str], Ran] = eager, compiling: Callable[[str], Counts] = compiled
) -> tuple[bool, ...]:
    """For each call, whether the source does in this mode, one of `MODES`, what it does eagerly.

    There are none when the source does the compiling itself. An export has nothing to say of a call that is a function.
    ``eagerly`` and ``compiling``: as in `run_example`.
    """
    with imported(text) as module:
        if hasattr(module, "hook") and mode.startswith("fullgraph"):
            return ()
        fn, calls, train, grad = _built(module)
        calls = list(calls)
        if mode == "export":
            returned = [not isinstance(out, Raised) for out, _ in eagerly(text).outputs]
            return tuple(ok and _exports(fn, call) for ok, call in zip(returned, calls))  # noqa: B905
        if mode == "script":
            outputs = _scripted(fn, calls, train=train, grad=grad)
        else:
            counts = compiling(text) if mode == "fullgraph" else None
            if counts is None or not counts.is_whole:
                flags = dict.fromkeys(_FLAGS, True) if mode.endswith("capture") else {}
                with torch._dynamo.config.patch(**flags):
                    counts = count(fn, calls, train=train, grad=grad, hook=_whole)
            outputs = list(counts.outputs)
    if all(isinstance(out, Raised) for out in outputs):
        return (False,) * len(outputs)
    expected = [out for out, _ in eagerly(text).outputs]
    pairs = zip(expected, outputs)  # noqa: B905 - also on a Python that knows no `strict`
    return tuple(not isinstance(out, Raised) and equal(own, out, 1e-5) is None for own, out in pairs)


def _whole(fn: Any, backend: Backend) -> Any:
    return torch.compile(fn, backend=backend, fullgraph=True)


def _exports(fn: Callable[..., Any], call: Call) -> bool:
    if callable(call):
        return False
    named = len(call) == 2 and isinstance(call[0], (tuple, list)) and isinstance(call[1], dict)
    args, kwargs = (tuple(call[0]), call[1]) if named else (tuple(call), {})
    torch._dynamo.reset()
    try:
        with _listening(), torch.no_grad():
            torch.export.export(fn if isinstance(fn, torch.nn.Module) else _Calling(fn), args, kwargs, strict=True)
    except Exception:
        return False
    finally:
        torch._dynamo.reset()
    return True


class _Calling(torch.nn.Module):  # type: ignore[misc]
    """A module that is a function: only modules are exported."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)


def _scripted(fn: Callable[..., Any], calls: Iterable[Call], *, train: bool, grad: bool) -> list[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scripted = torch.jit.script(fn)
    except Exception as error:
        return [Raised(type(error).__name__) for _ in calls]
    torch.manual_seed(SEED)
    return [_make(scripted, call, train=train, grad=grad) for call in calls]


def lost(before: str, after: str, *, works: Callable[[str, str], tuple[bool, ...]] = working) -> list[str]:
    """The modes in which a call works in the first text and does not in the second.

    Where each call makes one graph, the flags have nothing left to capture, and are not tried. Nor is the first text
    where all calls work in the second.
    """
    found, whole = [], False
    for mode in MODES:
        if mode == "fullgraph and capture" and whole:
            continue
        now = works(after, mode)
        first = now if all(now) else works(before, mode)
        whole = whole or (mode == "fullgraph" and all(first))
        if any(b and not a for a, b in zip(now, first)):  # noqa: B905
            found.append(mode)
    return found


def record(request: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of one request, as plain data.

    ``error`` and ``of`` (``before`` or ``after``) when that source could not be run at all, else: ``difference``,
    ``aliasing``, ``drawn`` and ``compiled`` (texts, or None), ``compiled_before`` (the like of the first source),
    ``calls`` and ``raised`` (numbers of the first source's), ``before`` and ``after`` (the figures of `Counts` and its
    ``notes``), and ``lost`` (as `lost`; empty when it was not asked for).
    """
    texts = {which: text_of(request[which], request["run"]) for which in ("before", "after")}
    ran: dict[str, tuple[Ran, Counts]] = {}
    for which, text in texts.items():
        try:
            ran[which] = eager(text), compiled(text)
        except Exception as error:
            told = (str(error).strip().splitlines() or [""])[0]
            return {"error": f"{type(error).__name__}: {told}", "of": which}
    tolerance = float(request.get("tolerance", 0.0))
    found = compared(ran["before"], ran["after"], tolerance, max(tolerance, 1e-5))
    return {
        "difference": found.difference,
        "aliasing": found.aliasing,
        "drawn": found.drawn,
        "compiled": found.compiled_difference,
        "compiled_before": _compiled_difference(*ran["before"]),
        "calls": len(found.before.outputs),
        "raised": found.raised,
        "before": found.before.figures,
        "after": found.after.figures,
        "lost": lost(texts["before"], texts["after"]) if request.get("modes") else [],
    }


def settle() -> None:
    """Look for garbage seldom, and not among what torch has made at its import: it is a quarter of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def main() -> None:
    """Answer requests until there are no more. What examples print goes nowhere."""
    settle()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    answers.write(json.dumps({"torch": torch.__version__, "python": platform.python_version()}) + "\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(record(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
