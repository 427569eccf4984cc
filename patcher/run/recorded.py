"""A recorded program as a case of the harness: run it to the first recorded call, and measure right there.

What measures runs inside that call, so that all that the program has set up (devices, contexts, process groups) is in
force. Standard library, torch, and what lies beside this file.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree

if TYPE_CHECKING:
    from patcher.harness import replaying
    from patcher.run import program, watching
else:

    def _beside(name: str) -> Any:
        file = Path(__file__).parent / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"_fix_compile_{file.stem}", file)
        made = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = made
        spec.loader.exec_module(made)
        return made

    program, watching, replaying = map(_beside, ("program", "watching", "../harness/replaying"))

Json = dict[str, Any]
RECORDING = "recording.json"


def reach(folder: Path, then: Callable[[Live], None]) -> None:
    """Run the recorded program; ``then`` is called inside its first recorded call, and is not expected to return.

    Returns when the program ends without that call. Raises what the program raises.
    """
    recording: Json = json.loads((folder / RECORDING).read_text(encoding="utf-8"))
    target, started = watching.Target(**recording["target"]), program.Program.of(recording["program"])
    os.chdir(folder / recording["cwd"] if "cwd" in recording else os.curdir)  # of a case file
    started = replace(started, stdin=str(folder / started.stdin) if started.stdin else "")
    disabled = os.environ.pop("TORCHDYNAMO_DISABLE", None)

    def around(event: Any, call: Callable[[], Any]) -> Any:
        if event.target != target or watching.mode_of(event) != recording["mode"]:
            return call()
        watcher.leave()
        if disabled is not None:
            os.environ["TORCHDYNAMO_DISABLE"] = disabled
            if hasattr(torch.compiler, "set_stance"):
                torch.compiler.set_stance("force_eager")  # for what was compiled by other doors
        then(Live(folder, recording, watcher, event))
        return call()

    watching.seed()
    wanted, named = target if target.kind == "method" else None, recording.get("named", "")
    with watching.Watcher(around, None if named else wanted, named) as watcher:
        program.start(started)


class Live:
    """What a case file defines, from a program that has come to its first recorded call."""

    def __init__(self, folder: Path, recording: Json, watcher: Any, event: Any) -> None:
        self.__name__ = "recorded"
        self._folder, self._recording, self._watcher, self._event = folder, recording, watcher, event
        self._kept = recording["calls"] or [{"file": "", "gradients": ""}]
        self.train = any(call["gradients"] for call in self._kept)
        self.grad = recording["mode"]["grad"]
        self._turn = 0
        self._owners = list(_owners(event))
        self._model = self._made()
        self._before = replaying.Snapshot(self._owners)
        self._gradients = [self._read(call["gradients"]) if call["gradients"] else {} for call in self._kept]
        if self.train:
            self.loss, self.optimizer = self._loss, _Unmoved
        self._built = False

    def _read(self, name: str) -> Any:
        return torch.load(self._folder / name, weights_only=False)

    def _made(self) -> Any:
        callee = getattr(self._event.callee, "_orig_mod", self._event.callee)
        if self._event.target.kind == "module":
            return callee
        return _Shell(self._event.call, [one for one in self._owners if isinstance(one, watching.LIVE)])

    def build(self) -> Any:
        """The model, as it was when the program came here."""
        if self._built:
            self._before.restore()
        self._built = True
        return self._model

    def calls(self) -> list[Any]:
        """The recorded calls, read anew: a call may write into its arguments."""
        self._turn = 0
        if not self._kept[0]["file"]:
            given = (self._event.arguments, self._event.keywords)
            return [torch.utils._pytree.tree_map(_apart, given)]
        live = torch.utils._pytree.tree_leaves((self._event.arguments, self._event.keywords))
        kept = [self._read(call["file"]) for call in self._kept]
        return [torch.utils._pytree.tree_map(lambda v: _whole(v, live), one, is_leaf=_is_description) for one in kept]

    def compile(self, model: Any, **options: Any) -> Any:
        """Compile what the program compiles, as it does, but for these options; else the outermost modules."""
        compiling = torch.compile
        if options.get("backend") == "inductor":
            del options["backend"]  # the usual one; a program that names its own keeps it
        handles = self._watcher.handles if self._recording["compiled"] else []
        event = self._event
        if self._recording["compiled"] and not handles:
            if options.keys() - {"backend"}:
                raise RuntimeError("the program compiles inside of the call, so nothing else can be given")
            return model
        for handle in handles:
            handle.activate(compiling, options)
        own = next((h for h in handles if h.original is model), None)
        if own is not None and not own.in_place:
            return compiling(model, **{**own.arguments, **options})
        if self._recording["whole"] and not handles:
            model.__dict__["call"] = compiling(event.call, **options)
        elif event.target.kind == "module" and not handles and not self._recording["inner"]:
            return compiling(model, **options)
        elif not handles:
            for path in self._recording["inner"]:
                _compile_part(getattr(event.callee, "_orig_mod", event.callee), path, compiling, options)
        return model

    def parted(self, model: Any) -> Any:
        """The module whose parts may be compiled in the place of what the program compiles, where there is one."""
        if self._recording["compiled"] and not self._watcher.handles:
            return None
        parts = list(model.children()) if isinstance(model, _Shell) else [model]
        return parts[0] if len(parts) == 1 and not isinstance(parts[0], torch.nn.ParameterList) else None

    def _loss(self, output: Any) -> Any:
        """What goes backward from the outputs, with the recorded gradients.

        From scalars alone where there are some: others may be what a loss was made of, and have got theirs from it.
        Ones, where inputs of another size have given an output another shape.
        """
        gradients = self._gradients[self._turn % len(self._kept)]
        self._turn += 1
        leaves = watching.tensors_of(output)
        scalars = {place: gradient for place, gradient in gradients.items() if gradient.dim() == 0}
        reached = {place: gradient for place, gradient in (scalars or gradients).items() if place in leaves}
        trained = [p for p in self._model.parameters() if p.requires_grad] if self._recording.get("twice") else []
        pairs = [(leaves[place], gradient) for place, gradient in reached.items()]
        return _Backward([(o, g if g.shape == o.shape else torch.ones_like(o)) for o, g in pairs], trained)


class _Backward:
    """A loss of which only the gradients are known. ``twice``: the parameters whose gradients have gradients too."""

    def __init__(self, pairs: list[tuple[Any, Any]], twice: list[Any]) -> None:
        self._pairs, self._twice = pairs, twice

    def backward(self) -> None:
        """Go backward from each output."""
        if not self._pairs:
            return
        outputs, gradients = zip(*self._pairs, strict=True)
        torch.autograd.backward(outputs, gradients, retain_graph=bool(self._twice))
        if self._twice:
            first = torch.autograd.grad(outputs, self._twice, gradients, create_graph=True, allow_unused=True)
            squares = [one.square().sum() for one in first if one is not None and one.requires_grad]
            if squares:
                torch.stack(squares).sum().backward()


class _Unmoved(torch.optim.SGD):  # type: ignore[misc]
    """An optimizer that leaves the weights alone: the recorded gradients may be those of a scaled loss."""

    def step(self, closure: Any = None) -> None:
        """Do nothing, not even with infinite gradients."""


def _apart(leaf: Any) -> Any:
    """A tensor of its own; anything else as it is."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return leaf.detach().clone().requires_grad_(leaf.requires_grad)


def _compile_part(model: torch.nn.Module, path: str, compiling: Callable[..., Any], options: Json) -> None:
    """Compile a module in place, or its ``forward`` where the path leads there."""
    *above, last = path.split(".")
    part = model.get_submodule(".".join(above) if last == "forward" else path)
    if last == "forward":
        part.forward = compiling(part.forward, **options)
    else:
        part._compiled_call_impl = compiling(_call_of(part), **options)


def _call_of(module: torch.nn.Module) -> Callable[..., Any]:
    """What compiling it in place compiles; of PyTorch's own classes Dynamo skips the frame, so they get another."""
    if not type(module).forward.__module__.startswith("torch.nn."):
        made: Callable[..., Any] = module._call_impl
        return made
    return lambda *args, **kwargs: module.forward(*args, **kwargs)


class _Shell(torch.nn.Module):  # type: ignore[misc]
    """A call that is no module, with the modules and optimizers whose state it may use."""

    def __init__(self, call: Callable[..., Any], owners: list[Any]) -> None:
        super().__init__()
        self.__dict__["call"] = call
        for number, owner in enumerate(owners):
            part = owner if isinstance(owner, torch.nn.Module) else torch.nn.ParameterList(replaying.trained_by(owner))
            self.add_module(f"m{number}", part)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Make the call."""
        return self.__dict__["call"](*args, **kwargs)


def _owners(event: Any) -> Iterator[Any]:
    """The modules, optimizers and objects that an outermost call may reach: its own, in closures, by global names."""
    given = torch.utils._pytree.tree_leaves((event.arguments, event.keywords))
    live = filter(watching.is_live, given)
    todo, met = [(one, 0) for one in (getattr(event.callee, "_orig_mod", event.callee), *live)], set[int]()
    while todo:
        one, depth = todo.pop(0)
        if id(one) in met or depth > 3:
            continue
        met.add(id(one))
        if isinstance(one, watching.LIVE):
            yield one
            continue
        if watching.is_live(one):
            yield one
        function = getattr(one, "__func__", one)
        todo += [(part, depth + 1) for part in _reached(one, function)]


def _reached(one: Any, function: Any) -> Iterator[Any]:
    if getattr(one, "__self__", None) is not None:
        yield one.__self__
    code = getattr(function, "__code__", None)
    if code is None:
        held = vars(one) if hasattr(one, "__dict__") and not isinstance(one, type) else {}
        yield from torch.utils._pytree.tree_leaves(dict(held))
        return
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            continue
    names = function.__globals__
    found = (names[name] for name in code.co_names if name in names)
    yield from (one for one in found if callable(one) or isinstance(one, torch.optim.Optimizer))


def _is_description(value: Any) -> bool:
    return isinstance(value, dict) and ("fix-compile made anew" in value or "fix-compile live" in value)


def _whole(value: Any, live: list[Any]) -> Any:
    """A tensor from its description, with the same numbers each time; what is ``live`` from the program."""
    if not _is_description(value):
        return value
    if "fix-compile live" in value:
        return live[value["fix-compile live"]]
    made = torch.empty_strided(value["shape"], value["stride"], dtype=value["dtype"], device=value["device"])
    numbers = torch.Generator(device=made.device).manual_seed(random.Random(0).getrandbits(31))
    if value["dtype"].is_floating_point or value["dtype"].is_complex:
        return made.normal_(generator=numbers)
    low, high = value["range"]
    return made.random_(low, high + 1, generator=numbers) if value["dtype"] != torch.bool else made.random_(0, 2)
