"""What a small project does when it is called, as plain data that can be compared with what its patched copy does.

A project is a mapping from file names to texts, ``model.py`` among them; a *run* is code that is executed in the
namespace of that module: ``make()`` (a module or function), ``calls`` (as an example of a rule has them), and
optionally ``train = True`` (backward through the sum of the outputs), ``grad = True`` (gradient mode is on), and
``state(obj)``, which gives whatever else must stay.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import logging
import random
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
import torch._inductor.compile_fx  # torch.compile imports it at its first call, with warnings that are torch's own

from patcher.harness.examples import SEED, Raised, equal, tensors

#: ``eager``; ``compiling``: eager, but code that asks whether it is being compiled is told so; ``compiled``: by Dynamo,
#: with the backend ``eager``; ``fullgraph``: the same, where a graph break is an error; ``anew``: as ``compiled``, and
#: each call finds nothing of what the calls before it have left in Dynamo: no graph, no frame that it has given up.
Mode = Literal["eager", "compiling", "compiled", "fullgraph", "anew"]
_DEPTH = 8
_NAMED = (type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType)
_HIDDEN = ("_hooks", "_hooks_with_kwargs", "_hooks_always_called")


class Attributes(dict[str, Any]):
    """The attributes of an object: a patch may add one, but must keep these."""


@dataclass(frozen=True)
class Seen:
    """One call. ``results``: what came out, the arguments afterwards, which tensors share memory.

    ``gradients``: of arguments and of what the object holds; the sum over several uses may be taken in another order.
    ``traces``: what was printed, logged and warned, and a digest of the random number generators.
    """

    results: Any
    gradients: Any
    traces: Any = None


@dataclass(frozen=True)
class Behaviour:
    """``calls`` one by one; ``state``: of the object, after the last of them; ``kept``: by the project's modules.

    ``kept`` and the traces are of eager runs only.
    """

    calls: tuple[Seen | Raised, ...]
    state: Any = None
    kept: Any = None
    failed: str = field(default="", compare=False)

    @property
    def returned(self) -> int:
        """How many calls did not raise."""
        return sum(isinstance(call, Seen) for call in self.calls)


def difference(before: Behaviour, after: Behaviour, tolerance: float = 0.0) -> str | None:
    """The first thing that the second does and the first does not. A call that raises has nothing else to compare.

    ``tolerance`` (relative and absolute) is for the numbers of tensors.
    """
    if before.failed or after.failed:
        return None if before.failed else f"does not start: {after.failed}"
    for number, (a, b) in enumerate(zip(before.calls, after.calls, strict=True)):
        where = f"call {number}"
        if isinstance(a, Seen) and isinstance(b, Seen):
            found = _differ(a.results, b.results, where, tolerance)
            if a.traces is not None and b.traces is not None:
                found = found or _differ(a.traces, b.traces, f"{where}, traces")
            found = found or equal(a.gradients, b.gradients, 1e-5, f"{where}, gradients")
        else:
            found = equal(a, b, 0.0, where)
        if found:
            return found
    found = _differ(before.state, after.state, "state", tolerance)
    if before.kept is not None and after.kept is not None:
        found = found or _differ(before.kept, after.kept, "modules")
    return found


def fails(eager: Behaviour, other: Behaviour) -> frozenset[int]:
    """The calls that return without a graph, and do not in the other mode."""
    calls = enumerate(zip(eager.calls, other.calls, strict=True))
    return frozenset(n for n, (a, b) in calls if isinstance(a, Seen) and not isinstance(b, Seen))


def asks_data(behaviour: Behaviour) -> bool:
    """Whether a graph would have to know data in one of the calls: the sizes of others may happen to tell enough."""
    raised = (call for call in behaviour.calls if isinstance(call, Raised))
    return any("data-dependent" in call.message.lower() for call in raised)


def without(behaviour: Behaviour, calls: frozenset[int]) -> Behaviour:
    """``behaviour`` but for these calls, after which the state is nobody's promise."""
    kept = tuple(call for n, call in enumerate(behaviour.calls) if n not in calls)
    return Behaviour(kept, failed=behaviour.failed) if calls else behaviour


def lost(eager: Behaviour, before: Behaviour, after: Behaviour) -> str | None:
    """The first call that the first copy made in one graph, as it does without one, and the second does not."""
    if after.failed:
        return f"does not start: {after.failed}"
    calls = zip(eager.calls, before.calls, after.calls, strict=True)
    for number, (plainly, a, b) in enumerate(calls):
        if isinstance(plainly, Seen) and isinstance(a, Seen) and not isinstance(b, Seen):
            return f"call {number}: {b.kind}({b.message})"
    return None


def _differ(a: Any, b: Any, where: str, tolerance: float = 0.0) -> str | None:
    return equal(a, _without_new(a, b), tolerance, where)


def _without_new(a: Any, b: Any) -> Any:
    """``b`` without the attributes that ``a`` does not have."""
    if isinstance(a, Attributes) and isinstance(b, Attributes):
        return Attributes({key: _without_new(a[key], value) for key, value in b.items() if key in a})
    if isinstance(a, dict) and isinstance(b, dict):
        return {key: _without_new(a.get(key), value) for key, value in b.items()}
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [_without_new(x, y) for x, y in zip(a, b, strict=True)]
    return b


def behaviour(files: Mapping[str, str], run: str, mode: Mode = "eager") -> Behaviour:
    """Write the project to a folder of its own, import it, build the object, and make the calls."""
    with project(files) as (model, modules), contextlib.ExitStack() as stack:
        torch.manual_seed(SEED)
        try:
            exec(compile(run, "<run>", "exec"), vars(model))
            torch.manual_seed(SEED)
            made = model.make()
        except Exception as error:
            return Behaviour((), failed=f"{type(error).__name__}: {error}")
        called = _compiled(made, mode)
        if mode == "compiling":
            stack.enter_context(told_to_be_compiling(modules()))
        train, grad = getattr(model, "train", False), getattr(model, "grad", False)
        random.seed(SEED)
        torch.manual_seed(SEED)
        calls = tuple(_seen(_again(called, mode), made, call, train, grad, mode) for call in model.calls)
        state = getattr(model, "state", lambda _: None)(made)
        return Behaviour(calls, [plain(state), plain(made)], _globals(modules()) if mode == "eager" else None)


def _compiled(made: Any, mode: Mode) -> Any:
    if mode not in ("compiled", "fullgraph", "anew"):
        return made
    torch._dynamo.reset()
    return torch.compile(made, backend="eager", fullgraph=mode == "fullgraph")


def _again(called: Any, mode: Mode) -> Any:
    if mode == "anew":
        torch._dynamo.reset()
    return called


@contextlib.contextmanager
def project(files: Mapping[str, str]) -> Iterator[tuple[types.ModuleType, Any]]:
    """The project's ``model``, and a function that gives all of its modules; all are forgotten afterwards.

    As is what the project sets of Dynamo's configuration. Modules of the same names that others have imported in this
    process are set aside for the while.
    """
    own = {Path(name).parts[0].removesuffix(".py") for name in files}
    others = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in own}
    known = set(sys.modules) - set(others)
    config = torch._dynamo.config.patch(capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False)
    with config, tempfile.TemporaryDirectory(prefix="behaviour-") as name:
        folder = write(files, Path(name))
        saved, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
        for other in others:
            del sys.modules[other]

        def modules() -> list[types.ModuleType]:
            new = [sys.modules[n] for n in sorted(set(sys.modules) - known)]
            return [m for m in new if any(place.startswith(str(folder)) for place in _places(m))]

        try:
            yield importlib.import_module("model"), modules
        finally:
            names = [module.__name__ for module in modules()]
            for module in names:
                del sys.modules[module]
            _forgotten_by_dynamo(names)
            sys.modules.update(others)
            sys.path.remove(str(folder))
            sys.dont_write_bytecode = saved


def _places(module: types.ModuleType) -> list[str]:
    """Its file, and the folders of a package; a folder without ``__init__.py`` has no file."""
    return [file for file in (getattr(module, "__file__", None), *getattr(module, "__path__", ())) if file]


def _forgotten_by_dynamo(names: list[str]) -> None:
    """Dynamo keeps modules by name, also among the names of whatever calls them; the next project has the same ones."""
    torch._dynamo.symbolic_convert._import_module.cache_clear()
    kept = {f"__import_{name.replace('.', '_dot_')}" for name in names}
    for module in [m for m in sys.modules.values() if isinstance(m, types.ModuleType)]:
        for name in kept.intersection(vars(module)):
            del vars(module)[name]


def write(files: Mapping[str, str], folder: Path) -> Path:
    """The project on disk, below ``folder``; a project file says where it ends."""
    for name, text in {"pyproject.toml": "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@contextlib.contextmanager
def told_to_be_compiling(modules: list[types.ModuleType]) -> Iterator[None]:
    """Whoever asks whether code is being compiled is told that it is, also under names that were imported before."""
    originals = [torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling, torch._dynamo.is_compiling]
    owners = [*modules, torch.compiler, torch._dynamo]
    saved = [(owner, n, v) for owner in owners for n, v in vars(owner).items() if any(v is o for o in originals)]
    for owner, name, _ in saved:
        setattr(owner, name, lambda: True)
    try:
        yield
    finally:
        for owner, name, value in saved:
            setattr(owner, name, value)


def _seen(fn: Any, made: Any, call: Any, train: bool, grad: bool, mode: Mode) -> Seen | Raised:
    module = made if isinstance(made, torch.nn.Module) else None
    if module is not None:
        module.zero_grad()
    with _recording() as records:
        try:
            with torch.set_grad_enabled(train or grad):
                out = _called(fn, call)
                parts = [t for t in tensors(out) if t.requires_grad]
                if train and parts:
                    torch.stack([t.sum().double() for t in parts]).sum().backward()
        except Exception as error:
            return Raised(type(error).__name__, (str(error).strip().splitlines() or [""])[0])
    arguments = [] if callable(call) else list(call)
    held = [] if module is None else [*module.parameters(), *module.buffers()]
    shared = [*tensors(out), *tensors(arguments), *held]
    gradients = [None if t.grad is None else t.grad.clone() for t in [*tensors(arguments), *held] if t.is_leaf]
    results = [plain(out), plain(arguments), _sharing(shared)]
    return Seen(results, gradients, _traces(records) if mode == "eager" else None)


def _called(fn: Any, call: Any) -> Any:
    if callable(call):
        return call(fn)
    if len(call) == 2 and isinstance(call[0], (tuple, list)) and isinstance(call[1], dict):
        return fn(*call[0], **call[1])
    return fn(*call)


def _sharing(found: list[torch.Tensor]) -> list[int]:
    addresses = [t.untyped_storage().data_ptr() or -i for i, t in enumerate(found)]
    return [addresses.index(address) for address in addresses]


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


@contextlib.contextmanager
def _recording() -> Iterator[tuple[io.StringIO, _Lines, list[warnings.WarningMessage]]]:
    printed, logged = io.StringIO(), _Lines()
    root = logging.getLogger()
    root.addHandler(logged)
    try:
        outputs = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed)
        with outputs[0], outputs[1], warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield printed, logged, warned
    finally:
        root.removeHandler(logged)


def _traces(records: tuple[io.StringIO, _Lines, list[warnings.WarningMessage]]) -> list[Any]:
    printed, logged, warned = records
    numbers = (random.getstate(), torch.get_rng_state().tolist())
    digest = hashlib.sha256(repr(numbers).encode()).hexdigest()
    said = [f"{w.category.__name__} {w.message}" for w in warned]
    return [printed.getvalue(), logged.lines, said, digest]


def _globals(modules: list[types.ModuleType]) -> Attributes:
    """What the modules keep at their top level: lists, dicts, numbers, tensors and objects of the project's classes."""
    kept = (list, dict, set, int, float, str, torch.Tensor)
    ignored = {"calls", "train", "grad"}
    return Attributes(
        {
            f"{module.__name__}.{name}": plain(value)
            for module in modules
            for name, value in vars(module).items()
            if not name.startswith("__") and name not in ignored and isinstance(value, kept)
        }
    )


def plain(value: Any, depth: int = 0, above: tuple[int, ...] = ()) -> Any:
    """A copy that later calls do not change, with what `equal` does not look at spelled out."""
    if isinstance(value, torch.Tensor):
        return _plain_tensor(value)
    if value is None or isinstance(value, (torch.Size, torch.dtype, torch.device)):
        return str(value)
    if isinstance(value, (bool, int, float, complex, str, bytes)) or type(value).__module__ == "numpy":
        return [type(value).__name__, _number(value)]
    if depth > _DEPTH or id(value) in above:
        return type(value).__name__
    inner = {"depth": depth + 1, "above": (*above, id(value))}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [plain(v, **inner) for v in value]]
    if isinstance(value, (set, frozenset)):
        return [type(value).__name__, sorted(str(plain(v, **inner)) for v in value)]
    if isinstance(value, Mapping):
        return [type(value).__name__, [[plain(k, **inner), plain(v, **inner)] for k, v in value.items()]]
    if isinstance(value, _NAMED):
        return getattr(value, "__name__", type(value).__name__)
    if hasattr(value, "__dict__"):
        kept = {k: v for k, v in vars(value).items() if not k.endswith(_HIDDEN)}
        order = list(value.state_dict()) if isinstance(value, torch.nn.Module) else []
        parts = {k: Attributes({n: plain(x, **inner) for n, x in v.items()}) for k, v in kept.items() if _parts(k, v)}
        rest = {k: plain(v, **inner) for k, v in kept.items() if k not in parts}
        return [type(value).__name__, order, Attributes({**parts, **rest})]
    return type(value).__name__


def _parts(name: str, value: Any) -> bool:
    return name in ("_buffers", "_modules", "_parameters") and isinstance(value, dict)


def _plain_tensor(value: torch.Tensor) -> Any:
    copy = value.detach().clone().as_subclass(torch.Tensor)
    flags = f"requires_grad={value.requires_grad} leaf={value.is_leaf} {value.dtype} {tuple(value.shape)}"
    return [type(value).__name__, flags, copy]


def _number(value: Any) -> Any:
    if type(value).__module__ == "numpy":
        return [str(getattr(value, "dtype", "")), str(getattr(value, "shape", "")), repr(value.tolist())]
    return value
