"""A case in the process that runs it: its model, its calls, and a step of them."""

from __future__ import annotations

import hashlib
import inspect
import random
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree

from .failures import CaseError, message_of, status_of
from .leaves import leaves
from .overlay import load_module

Json = dict[str, Any]
SEED = 20
_AXES = {"batch": 0, "sequence": 1}


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
            if status_of(error) != "error":
                raise
            raise CaseError(f"{self.name}: {function}() raised {message_of(error)}") from error

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
        raise CaseError(f"{given['file']} cannot be imported: {message_of(error)}") from error

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


def random_digest() -> str:
    """Where the random numbers of Python, NumPy and torch have got to."""
    states = [repr(random.getstate()), *map(repr, random_state())]
    if numpy := sys.modules.get("numpy"):
        states.append(repr([getattr(part, "tolist", lambda part=part: part)() for part in numpy.random.get_state()]))
    return hashlib.sha256("".join(states).encode()).hexdigest()[:8]


def random_state() -> tuple[bytes, ...]:
    """Where torch's random numbers have got to, on each device."""
    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    return tuple(bytes(state.tolist()) for state in states)


def tensors(value: Any) -> list[Any]:
    """All tensors in a nested value, in order."""
    return [leaf for _, leaf in leaves(value, "") if torch.is_tensor(leaf)]


def parameters_of(model: Any) -> dict[str, Any]:
    """The parameters by their names."""
    return dict(model.named_parameters()) if hasattr(model, "named_parameters") else {}


def _learning(model: Any) -> list[Any]:
    """The parameters that are trained."""
    return [p for p in parameters_of(model).values() if p.requires_grad]


def state_of(model: Any) -> dict[str, Any]:
    """Parameters and all buffers by name, each tensor once; not those of lazy modules that have no shape yet."""
    if not hasattr(model, "named_parameters"):
        return {}
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: tensor for name, tensor in named.items() if not torch.nn.parameter.is_lazy(tensor)}


def kinds_of(model: Any) -> dict[str, str]:
    """What each tensor of the state is, in their order: that is the order in which an optimizer has them."""
    kinds = {
        name: "a parameter" if p.requires_grad else "a frozen parameter" for name, p in parameters_of(model).items()
    }
    for name in [name for name in state_of(model) if name not in kinds]:
        owner, _, own = name.rpartition(".")
        unsaved = own in getattr(model.get_submodule(owner), "_non_persistent_buffers_set", ())
        kinds[name] = "a buffer that is not saved" if unsaved else "a buffer"
    return kinds


def module_attributes(model: Any) -> dict[str, Any]:
    """What the modules hold as plain attributes, with their training mode."""
    ours = vars(torch.nn.Module()).keys() - {"training"}
    met: set[int] = set()
    found: dict[str, Any] = {}
    for name, module in model.named_modules() if isinstance(model, torch.nn.Module) else [("", model)]:
        for key, value in getattr(module, "__dict__", {}).items():
            if key not in ours and not callable(value):
                found.update(leaves(value, f"{name}.{key}" if name else key, (), met))
    return found


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
    whole = parted_model(case, model)
    found = [(path, type(blocks[0]).forward.__module__, blocks[0]) for path, blocks in repeated_blocks(whole)]
    own = [path for path, place, block in found if "forward" in vars(block) or not place.startswith("torch.nn.")]
    return [[path, _dotted(type(whole))] for path in own]


def parted_model(case: Case, model: Any) -> Any:
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


def sizes_that_work(case: Case) -> list[int]:
    """The sizes with which the original runs: a model may want its batch or its sequence to have a certain length."""
    working: list[int] = []
    model = case.build()
    for size in case.candidate_sizes():
        case.sizes = [size]
        try:
            run_step(case, model, model, case.calls()[0], None)
        except (Exception, SystemExit) as error:
            if not working and status_of(error) != "error":
                raise
            if not working:
                raise CaseError(f"{case.name}: call 1 raised {message_of(error)}") from error
            sys.stderr.write(f"{case.vary} {size} is left out: {message_of(error)}\n")
        else:
            working.append(size)
    if len(working) < 2:
        raise CaseError(f"{case.name}: the model takes its calls with one {case.vary} size only")
    return working


def run_step(case: Case, model: Any, runner: Any, call: Any, optimizer: Any) -> Any:
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
