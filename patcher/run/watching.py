"""See what a program compiles and calls: ``torch.compile``, ``nn.Module.compile``, and the outermost calls of modules.

While a program is watched nothing is compiled: what it hands to ``torch.compile`` runs eagerly until it is activated.
Standard library and torch.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
import torch._dynamo
import torch.utils._pytree

Json = dict[str, Any]

LIVE = (torch.nn.Module, torch.optim.Optimizer)
_MODULE_FILE = torch.nn.modules.module.__file__
_SEED = 20
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Target:
    """What is measured: calls of a module, of a compiled function, or of a method of a module.

    ``module`` and ``qualname``: of the class or function; ``method``: its name for calls of a method.
    ``number``: which instance of the class, in the order of their first outermost calls.
    """

    kind: Literal["module", "function", "method"]
    module: str
    qualname: str
    method: str = ""
    number: int = 0

    @property
    def name(self) -> str:
        """As a person names it."""
        return f"{self.qualname}.{self.method}" if self.method else self.qualname

    def json(self) -> Json:
        """As a value."""
        return asdict(self)

    def is_named(self, name: str) -> bool:
        """Whether it is what the user has named: by the end of its dotted name, or as ``FILE:NAME``."""
        place, _, last = name.rpartition(":")
        file = getattr(sys.modules.get(self.module), "__file__", None) or ""
        above = Path(file).stem if self.module == "__main__" else self.module
        if place.endswith(".py") and not f"/{os.path.realpath(file)}".endswith(f"/{os.path.normpath(place)}"):
            return False
        wanted = last if place.endswith(".py") else name.replace(":", ".")
        return f".{above}.{self.name}".endswith((f".{wanted}", f".{wanted.removesuffix('.forward')}"))


@dataclass
class Handle:
    """One thing that the program compiles, with the arguments that it gives. ``original``: what runs eagerly.

    ``replace``: makes calls of it run something else. ``called``: whether it was.
    """

    original: Any
    arguments: Json
    replace: Callable[[Any], None]
    in_place: bool = False
    called: bool = False

    def activate(self, compiling: Callable[..., Any], options: Json) -> None:
        """Compile it with the program's arguments, and ``options`` in their place."""
        given = {**self.arguments, **options}
        if self.in_place:
            self.original._compiled_call_impl = compiling(self.original._call_impl, **given)
            return
        made = compiling(self.original, **given)
        self.replace(made.forward if isinstance(self.original, torch.nn.Module) else made)


@dataclass(frozen=True)
class Event:
    """An outermost call. ``callee``: the module, function, or for a method its instance.

    ``inner``: the module that was called, for a call that a method contains; else None.
    """

    target: Target
    callee: Any
    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: Json
    inner: torch.nn.Module | None = None


@dataclass
class Watcher:
    """Hooks that tell of outermost calls. Use it as a context.

    ``around``: makes a call; it is given the event and a function without arguments that calls. ``wanted``: a method
    whose calls are outermost ones themselves; ``parts``: the modules that the last of them has called, in their order.
    ``compiling``: the files that ask for something to be compiled. ``named``: the only target whose calls count, as the
    user writes it (``Target.is_named``), also within others; ``passed``: how often what else there is was called.
    ``twice``: whether gradients were asked for that have gradients themselves (``create_graph=True``).
    """

    around: Callable[[Event, Callable[[], Any]], Any]
    wanted: Target | None = None
    named: str = ""
    handles: list[Handle] = field(default_factory=list)
    modules: int = 0  # how many were made
    compiling: set[str] = field(default_factory=set)
    parts: list[torch.nn.Module] = field(default_factory=list)
    passed: Counter[str] = field(default_factory=Counter)
    loss_scale: float = 1.0  # that a scaler of gradients has multiplied the last loss with
    twice: bool = False
    _depth: int = 0
    _instances: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    _saved: list[tuple[Any, str, Any]] = field(default_factory=list)
    _wrapped: bool = False

    def __enter__(self) -> Watcher:
        self.compile = torch.compile
        self._put(torch, "compile", self._compiling)
        self._put(torch.nn.Module, "compile", self._compiling_in_place())
        self._put(torch.nn.Module, "__init__", self._making())
        self._put(torch.nn.Module, "__call__", self._calling(torch.nn.Module.__call__))
        self._put(torch.autograd, "grad", self._differentiating(torch.autograd.grad, 4))
        self._put(torch.autograd, "backward", self._differentiating(torch.autograd.backward, 3))
        if scaler := getattr(torch.amp, "GradScaler", None):
            self._put(scaler, "scale", self._scaling(scaler.scale))
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Take all hooks away. What was compiled meanwhile runs eagerly still."""
        while self._saved:
            owner, name, original = self._saved.pop()
            setattr(owner, name, original)

    @property
    def is_within(self) -> bool:
        """Whether an outermost call runs."""
        return self._depth > 0

    @property
    def has_uncalled(self) -> bool:
        """Whether something is compiled, and nothing of that was called."""
        return bool(self.handles) and not any(handle.called for handle in self.handles)

    def _put(self, owner: Any, name: str, value: Any) -> None:
        self._saved.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    # --- what is compiled -------------------------------------------------------------------------------------------

    def _compiling(self, model: Any = None, **arguments: Any) -> Any:
        self.compiling |= {sys._getframe(1).f_code.co_filename} - {__file__}
        if model is None:
            return lambda function: self._compiling(function, **arguments)
        if not self._saved:  # somebody has kept the hook
            return self.compile(model, **arguments)
        if arguments.get("disable"):
            return model
        if isinstance(model, torch.nn.Module):
            made = torch._dynamo.eval_frame.OptimizedModule(model, torch._dynamo.optimize("eager"))
            made.forward = model.__call__
            self.handles.append(Handle(model, arguments, functools.partial(setattr, made, "forward")))
            return made
        running = [model]
        handle = Handle(model, arguments, functools.partial(running.__setitem__, 0))
        self.handles.append(handle)

        def run(*args: Any, **kwargs: Any) -> Any:
            handle.called = True
            return running[0](*args, **kwargs)

        @functools.wraps(model)
        def called(*args: Any, **kwargs: Any) -> Any:
            return self._outermost(model, run, args, kwargs)

        called._torchdynamo_orig_callable = model  # type: ignore[attr-defined]
        return called

    def _compiling_in_place(self) -> Callable[..., None]:
        def compile_(module: torch.nn.Module, **arguments: Any) -> None:
            if not arguments.get("disable"):
                self.compiling.add(sys._getframe(1).f_code.co_filename)
                self.handles.append(Handle(module, arguments, lambda _: None, in_place=True))

        return compile_

    def _scaling(self, original: Any) -> Callable[..., Any]:
        def scale(scaler: Any, outputs: Any) -> Any:
            scaled = original(scaler, outputs)
            self.loss_scale = scaler.get_scale()
            return scaled

        return scale

    def _differentiating(self, original: Any, place: int) -> Callable[..., Any]:
        """Watch a function of ``torch.autograd`` that takes ``create_graph``, also at that place."""

        @functools.wraps(original)
        def differentiate(*args: Any, **kwargs: Any) -> Any:
            self.twice |= bool(kwargs.get("create_graph", args[place] if len(args) > place else False))
            return original(*args, **kwargs)

        return differentiate

    # --- what is called ---------------------------------------------------------------------------------------------

    def _making(self) -> Callable[..., None]:
        original = torch.nn.Module.__init__

        def __init__(module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            self.modules += 1
            self._look(type(module))
            kind = calling(module)
            if kind is not torch.nn.Module and (kind, "__call__") not in [saved[:2] for saved in self._saved]:
                self._put(kind, "__call__", self._calling(kind.__call__))
            original(module, *args, **kwargs)

        return __init__

    def _look(self, *kinds: type) -> None:
        """Wrap what is wanted, or named, once it is there."""
        if self._wrapped or not (self.wanted or self.named):
            return
        for target, original, kind in self._nameable(kinds):
            if target == self.wanted or (self.named and target.is_named(self.named)):
                self.wanted = target
                self._wrap(original, kind)
                return

    def _nameable(self, kinds: tuple[type, ...]) -> Iterator[tuple[Target, Any, type | None]]:
        """Yield methods, also of these classes, and functions of the user's, that are called as what is looked for."""
        *_, owner, last = f".{self.wanted.name if self.wanted else self.named.replace(':', '.')}".split(".")
        held = [module.__dict__ for module in list(sys.modules.values()) if hasattr(module, "__dict__")]
        classes = [one for one in (*kinds, *(names.get(owner) for names in held)) if isinstance(one, type)]
        for kind in (kind for one in classes for kind in one.__mro__ if callable(vars(kind).get(last))):
            if last != "forward" or self.wanted:
                yield Target("method", kind.__module__, kind.__qualname__, last), vars(kind)[last], kind
        for one in (names.get(last) for names in held):
            if not isinstance(one, types.FunctionType) or hasattr(one, "_torchdynamo_orig_callable"):
                continue
            if not any(part in one.__code__.co_filename for part in _INSTALLED):
                yield Target("function", one.__module__, one.__qualname__), one, None

    def _wrap(self, original: Any, kind: type | None = None) -> None:
        """Have calls of a method of ``kind``, or of a function, told of, by whatever name modules know it."""
        self._wrapped = True
        first = getattr(getattr(original, "__code__", None), "co_varnames", ("self",))[0]

        @functools.wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            if not self._saved:  # somebody has kept the hook
                return original(*args, **kwargs)
            if kind is None:
                return self._outermost(original, original, args, kwargs)
            instance = args[0] if args else kwargs.get(first)
            if not isinstance(instance, kind):
                return original(*args, **kwargs)
            given = {key: value for key, value in kwargs.items() if args or key != first}
            return self._outermost(instance, types.MethodType(original, instance), args[1:], given, method=True)

        for owner in (kind, *sys.modules.values()):
            for name in [key for key, value in list(getattr(owner, "__dict__", {}).items()) if value is original]:
                self._put(owner, name, called)

    def _calling(self, original: Any) -> Callable[..., Any]:
        def __call__(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            for handle in self.handles:
                handle.called |= handle.original is module
            return self._outermost(module, functools.partial(original, module), args, kwargs)

        return __call__

    def _outermost(
        self, callee: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: Json, method: bool = False
    ) -> Any:
        if self._depth:
            return call(*args, **kwargs) if method else self._nested(callee, call, args, kwargs)
        around = _method_around if isinstance(callee, torch.nn.Module) else _step_around
        owner = None if method else around(callee)
        if owner is _CONSTRUCTOR:
            return call(*args, **kwargs)
        event = self._event(callee, call, args, kwargs, method, None if self.named else owner)
        if self.named and not event.target.is_named(self.named):
            self._look()
            self.passed.update([event.target.name] if not event.target.module.startswith("torch.") else [])
            return call(*args, **kwargs)
        self._depth += 1
        try:
            return self.around(event, lambda: call(*args, **kwargs))
        finally:
            self._depth -= 1

    def _nested(self, callee: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: Json) -> Any:
        """Make a call within an outermost one."""
        if self._depth > 1 or self.wanted is None or not isinstance(callee, torch.nn.Module):
            return call(*args, **kwargs)
        self.parts.append(getattr(callee, "_orig_mod", callee))
        self._depth += 1
        try:
            return call(*args, **kwargs)
        finally:
            self._depth -= 1

    def _event(
        self, callee: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: Json, method: bool, owner: Any
    ) -> Event:
        plain = getattr(callee, "_orig_mod", callee) if isinstance(callee, torch.nn.Module) else callee
        if method:
            assert self.wanted is not None
            return Event(self.wanted, callee, call, args, kwargs)
        if owner is not None:
            instance, kind, name = owner
            target = Target("method", kind.__module__, kind.__qualname__, name)
            return Event(target, instance, call, args, kwargs, plain)
        if isinstance(plain, torch.nn.Module):
            module, qualname = type(plain).__module__, type(plain).__qualname__
            known = self._instances.setdefault((module, qualname), [])
            if not any(one is plain for one in known):
                known.append(plain)
            number = next(n for n, one in enumerate(known) if one is plain)
            return Event(Target("module", module, qualname, "", number), callee, call, args, kwargs)
        module, qualname = getattr(plain, "__module__", ""), getattr(plain, "__qualname__", type(plain).__qualname__)
        return Event(Target("function", str(module), qualname), callee, call, args, kwargs)


def is_live(leaf: Any) -> bool:
    """Whether it is a module, an optimizer, or an object that holds some, whose state goes on from call to call."""
    held = None if isinstance(leaf, type | types.ModuleType) else getattr(leaf, "__dict__", None)
    parts = torch.utils._pytree.tree_leaves(dict(held)) if isinstance(held, dict) else []
    return any(isinstance(part, LIVE) for part in (leaf, *parts))


def mode_of(event: Event) -> Json:
    """Return whether gradients are on, and whether the module is in training mode."""
    callee = getattr(event.callee, "_orig_mod", event.callee)
    return {"grad": torch.is_grad_enabled(), "training": bool(getattr(callee, "training", False))}


def calling(module: torch.nn.Module) -> type:
    """The class whose ``__call__`` runs; where that is not ``nn.Module``, compiling in place may do nothing."""
    kinds = (kind for kind in type(module).__mro__ if "__call__" in vars(kind))
    return next(kind for kind in kinds if kind is torch.nn.Module or kind.__module__.partition(".")[0] != "torch")


_CONSTRUCTOR = object()


def _method_around(callee: torch.nn.Module) -> Any:
    """The outermost method of a module around a call: (instance, class, name); ``_CONSTRUCTOR`` within ``__init__``.

    None: there is none. The module has to contain the one that is called. A method of the user's comes before those of
    installed packages, which may be the loop of a trainer.
    """
    found, installed = None, None
    for frame in _frames():
        code = frame.f_code
        if not code.co_argcount or code.co_filename in (__file__, _MODULE_FILE):
            continue
        instance = frame.f_locals.get(code.co_varnames[0])
        if not isinstance(instance, torch.nn.Module):
            continue
        if code.co_name == "__init__":
            return _CONSTRUCTOR
        kind = next((kind for kind in type(instance).__mro__ if code.co_name in vars(kind)), None)
        if kind is None or code.co_name.startswith("__") or isinstance(vars(kind)[code.co_name], property):
            continue
        if any(one is callee for one in instance.modules()):
            if any(part in code.co_filename for part in _INSTALLED):
                installed = (instance, kind, code.co_name)
            else:
                found = (instance, kind, code.co_name)
    return found or installed


def _step_around(_callee: Any) -> Any:
    """The outermost method of an optimizer of the user's around a call, as ``_method_around`` tells it; None: none.

    A step makes the state of each parameter in turn, so that its parts cannot be called alone.
    """
    found = None
    for frame in _frames():
        code = frame.f_code
        instance = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if isinstance(instance, torch.optim.Optimizer) and not any(part in code.co_filename for part in _INSTALLED):
            kind = next((kind for kind in type(instance).__mro__ if code.co_name in vars(kind)), None)
            found = (instance, kind, code.co_name) if kind and not code.co_name.startswith("__") else found
    return found


def _frames() -> Iterator[types.FrameType]:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


@contextlib.contextmanager
def noting(ran: set[str]) -> Iterator[None]:
    """Note the files of the functions that are called meanwhile, in this thread and in those that it starts."""

    def note(frame: types.FrameType, _event: str, _argument: object) -> None:
        ran.add(frame.f_code.co_filename)

    before, of_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(note)
    threading.settrace(note)
    try:
        yield
    finally:
        threading.settrace(of_threads)
        if sys.gettrace() is note:
            sys.settrace(before)


def files_of(model: torch.nn.Module) -> set[str]:
    """The files of the classes of a module and of what it holds."""
    kinds = {kind.__module__ for module in model.modules() for kind in type(module).__mro__}
    files = (getattr(sys.modules.get(name), "__file__", None) for name in kinds)
    return {file for file in files if isinstance(file, str)}


def seed() -> None:
    """The same random numbers in every run of the program."""
    random.seed(_SEED)
    torch.manual_seed(_SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_SEED)


def tensors_of(value: Any) -> dict[str, torch.Tensor]:
    """The tensors in what a call returns, each by its place; objects, as distributions, are looked into."""
    found: dict[str, torch.Tensor] = {}
    met: set[int] = set()

    def look(value: Any, place: str, depth: int) -> None:
        for number, leaf in enumerate(torch.utils._pytree.tree_leaves(value)):
            here = f"{place}[{number}]"
            if isinstance(leaf, torch.Tensor):
                found[here] = leaf
            elif depth and hasattr(leaf, "__dict__") and not callable(leaf) and id(leaf) not in met:
                met.add(id(leaf))
                for name, held in vars(leaf).items():
                    look(held, f"{here}.{name}", depth - 1)

    look(value, "", 4)
    return found


def is_own(file: str, roots: list[str]) -> bool:
    """Whether a source file belongs to the user's project rather than to an installed package."""
    inside = any(file.startswith(os.path.join(root, "")) for root in roots)
    return inside and not any(part in file for part in _INSTALLED)
