"""Run a program once and record what it calls: ``python recorder.py SPEC.json``.

SPEC.json: ``program``, the ``folder`` for the recording, the ``seconds`` that it may take, and a ``target`` where that
is known already. The recording is ``recording.json`` in that folder, with the arguments of the recorded calls beside
it. The program is stopped as soon as enough was seen. Standard library, torch, and what lies beside this file.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import json
import os
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree

if TYPE_CHECKING:
    from patcher.run import program, watching
else:

    def _beside(name: str) -> Any:
        spec = importlib.util.spec_from_file_location(f"_fix_compile_{name}", Path(__file__).with_name(f"{name}.py"))
        made = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = made
        spec.loader.exec_module(made)
        return made

    program, watching = _beside("program"), _beside("watching")

Json = dict[str, Any]

MOST_SIGNATURES = 5
MOST_BYTES = 2**30  # of the arguments of all recorded calls; tensors beyond are made anew from their description
FEWEST_CALLS, MOST_CALLS = 2, 40
SECONDS_OF_CALLS = 20.0  # after the first call
SILENT_SECONDS = 60.0  # without another call
LIVE = "fix-compile live"  # in the place of an argument that is taken from the program, with its number
MOST_SCALED = 1024.0  # a loss is replayed with: the first scale of a GradScaler, 65536, often overflows in float16
_DEEPEST = 4  # levels of objects that a signature looks into


@dataclass
class Seen:
    """What was seen of one target. ``modes``: how it is called (``mode_of``), with the seconds of each.

    ``ran``: the files of its classes, and of the functions that its first calls ran.
    """

    target: watching.Target
    calls: int = 0
    seconds: float = 0.0
    modes: list[tuple[Json, float]] = field(default_factory=list)
    compiled: bool = False
    holds: bool = True  # whether it holds parameters, as most losses and metrics do not
    inner: Counter[str] = field(default_factory=Counter)  # the modules that a method calls, how often in one call
    kept: list[Json] = field(default_factory=list)
    signatures: list[Any] = field(default_factory=list)
    gradients: dict[int, dict[str, Any]] = field(default_factory=dict)
    unkept: str = ""
    ran: set[str] = field(default_factory=set)
    live: dict[int, Any] = field(default_factory=dict)  # arguments of the first call that are not saved, by place

    @property
    def mode(self) -> Json:
        """Return the mode to measure: the slowest in which the program trains, else the slowest of all."""
        trained = [self.kept[number]["mode"] for number, gradients in self.gradients.items() if gradients]
        modes = [one for one in self.modes if one[0] in trained] or self.modes
        return max(modes, key=lambda one: one[1])[0]

    @property
    def is_whole(self) -> bool:
        """Whether a method is compiled itself: it calls no module, or several once each. A loop's are, one by one."""
        several = len(self.inner) > 1 and max(self.inner.values()) == 1
        return several or (self.target.kind != "module" and not self.inner)

    def add(self, mode: Json, seconds: float) -> None:
        """Count a call."""
        known = next((spent for one, spent in self.modes if one == mode), 0.0)
        self.modes = [*((one, spent) for one, spent in self.modes if one != mode), (mode, known + seconds)]
        self.seconds += seconds
        self.calls += 1

    def is_live(self, place: int, leaf: Any) -> bool:
        """Whether an argument is taken from the program; an object that holds modules, where the first call has it."""
        if not self.kept and watching.is_live(leaf):
            self.live[place] = leaf
        return isinstance(leaf, watching.LIVE) or (place in self.live and leaf is self.live[place])

    def kept_in(self, mode: Json) -> list[Json]:
        """Return the recorded calls in that mode."""
        return [call for call in self.kept if call["mode"] == mode]


@dataclass
class Recorder:
    """Keeps what is needed to make the first calls of each target again."""

    spec: Json
    folder: Path
    begun: float = field(default_factory=time.monotonic)
    first: float | None = None
    last: float = 0.0
    bytes: int = 0
    seen: dict[watching.Target, Seen] = field(default_factory=dict)
    watcher: Any = None
    lock: Any = field(default_factory=threading.RLock)
    done: bool = False
    process: int = field(default_factory=os.getpid)

    def around(self, event: Any, call: Any) -> Any:
        """One outermost call: note it, keep its arguments, run it."""
        if os.getpid() != self.process:  # a fork, as what loads data
            return call()
        now = time.monotonic()
        self.first = now if self.first is None else self.first
        seen = self.seen.setdefault(event.target, Seen(event.target))
        if self._is_enough(now):
            self.finish("enough was seen")
        if isinstance(event.callee, torch.nn.Module):
            seen.holds = next(event.callee.parameters(), None) is not None
        mode = watching.mode_of(event)
        number = self._keep(seen, event, mode)
        before = [handle.called for handle in self.watcher.handles]
        for handle in self.watcher.handles:
            handle.called = handle.original is getattr(event.callee, "_orig_mod", event.callee)
        if not seen.calls and isinstance(event.callee, torch.nn.Module):
            seen.ran |= watching.files_of(event.callee)
        self.watcher.parts.clear()
        start = time.perf_counter()
        try:
            with watching.noting(seen.ran) if seen.calls < MOST_CALLS else contextlib.nullcontext():
                output = call()
        except BaseException:
            if number is not None:
                del seen.kept[number:], seen.signatures[number:]
            raise
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        seen.add(mode, time.perf_counter() - start)
        seen.inner |= self._parts_of(event)
        seen.compiled |= any(handle.called for handle in self.watcher.handles)
        for handle, was in zip(self.watcher.handles, before, strict=False):
            handle.called |= was
        if number is not None:
            self._attend(seen, number, output)
        self.last = time.monotonic()
        return output

    def _parts_of(self, event: Any) -> Counter[str]:
        """What would be compiled in place: the modules that a method has just called, how often."""
        if event.target.kind == "module":
            own = _compiled_of(getattr(event.callee, "_orig_mod", event.callee), "")
            return Counter([own] if own else [])
        if event.target != self.watcher.wanted or not isinstance(event.callee, torch.nn.Module):
            return Counter()
        names = {module: name for name, module in event.callee.named_modules()}
        return Counter(_compiled_of(part, names[part]) for part in self.watcher.parts if part in names)

    def _is_enough(self, now: float) -> bool:
        leading = self._chosen()
        if leading is None or self.first is None:
            return False
        if self.watcher.handles and not leading.compiled and not self.spec.get("named"):
            return False  # what is compiled is not called yet
        several = len(leading.kept_in(leading.mode)) >= MOST_SIGNATURES or leading.calls >= MOST_CALLS
        if not (leading.holds or leading.compiled or self.spec.get("named")):
            several = False  # a transform of data, before the model
        return several or (leading.calls >= FEWEST_CALLS and now - self.first > SECONDS_OF_CALLS)

    def _chosen(self) -> Seen | None:
        """The target that takes the most time, of those that are compiled, else hold parameters, else of all."""
        if wanted := self.spec.get("target"):
            known = self.seen.get(watching.Target(**wanted))
            return known if known is not None and known.calls else None
        found = [seen for seen in self.seen.values() if seen.calls]
        compiled = [seen for seen in found if seen.compiled]
        holding = [seen for seen in found if seen.holds]
        return max(compiled or holding or found, key=lambda seen: seen.seconds, default=None)

    def _keep(self, seen: Seen, event: Any, mode: Json) -> int | None:
        """Save the arguments of a call, when they are like none before; its number among those that are kept."""
        alike = len(seen.kept_in(mode))
        if event.inner is not None or alike >= MOST_SIGNATURES or seen.unkept:
            return None
        given = (event.arguments, event.keywords)
        signature = [mode, *(_signature(leaf) for leaf in torch.utils._pytree.tree_leaves(given))]
        if signature in seen.signatures and alike >= FEWEST_CALLS:
            return None
        number = len(seen.kept)
        name = f"{list(self.seen).index(seen.target)}-{number}.pt"
        leaves, spec = torch.utils._pytree.tree_flatten(given)
        kept = [{LIVE: n} if seen.is_live(n, leaf) else self._bounded(leaf) for n, leaf in enumerate(leaves)]
        try:
            torch.save(torch.utils._pytree.tree_unflatten(kept, spec), self.folder / name)
        except Exception as error:  # what users hand over may be anything
            seen.unkept = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            if number:
                return None
            name = ""
        seen.signatures.append(signature)
        seen.kept.append({"file": name, "mode": mode, "gradients": ""})
        return number

    def _bounded(self, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.layout != torch.strided:
            return leaf
        size = leaf.numel() * leaf.element_size()
        if size and leaf.untyped_storage().nbytes() > 2 * size:  # a view would take all of it along
            leaf = leaf.detach().clone().requires_grad_(leaf.requires_grad)
        if self.bytes + size <= MOST_BYTES:
            self.bytes += size
            return leaf
        low, high = (int(leaf.min()), int(leaf.max())) if not leaf.is_floating_point() and leaf.numel() else (0, 0)
        return {
            "fix-compile made anew": True,
            "shape": tuple(leaf.shape),
            "stride": leaf.stride(),
            "dtype": leaf.dtype,
            "device": str(leaf.device),
            "range": (low, high),
        }

    def _attend(self, seen: Seen, number: int, output: Any) -> None:
        """Note the gradients that reach what a call has returned."""
        for place, leaf in watching.tensors_of(output).items():
            if leaf.requires_grad and not leaf.is_leaf:
                kept = seen.gradients.setdefault(number, {})

                def note(gradient: torch.Tensor, place: str = place, kept: dict[str, Any] = kept) -> None:
                    scale = min(1.0, MOST_SCALED / self.watcher.loss_scale)
                    kept.setdefault(place, gradient.detach() * scale)

                leaf.register_hook(note)

    def finish(self, how: str, error: str = "") -> None:
        """Write down what was seen, and end the process at once."""
        with self.lock:
            if self.done:
                return
            self.done = True
            chosen = self._chosen()
            for number, gradients in (chosen.gradients if chosen else {}).items():
                if chosen is not None and gradients:
                    name = f"gradients-{number}.pt"
                    torch.save(gradients, self.folder / name)
                    chosen.kept[number]["gradients"] = name
            told = {
                "schema": 1,
                "ended": how,
                "error": error,
                "program": self.spec["program"],
                "seconds": round(time.monotonic() - self.begun, 1),
                "modules": self.watcher.modules if self.watcher else 0,
                "compiles": [_described(handle) for handle in (self.watcher.handles if self.watcher else ())],
                "target": chosen.target.json() if chosen else None,
                "named": self.spec.get("named", ""),
                "passed": self.watcher.passed if self.watcher else {},
                "mode": chosen.mode if chosen else None,
                "twice": bool(self.watcher and self.watcher.twice),
                "calls": chosen.kept_in(chosen.mode) if chosen else [],
                "called": chosen.calls if chosen else 0,
                "compiled": bool(chosen and chosen.compiled),
                "inner": list(chosen.inner) if chosen else [],
                "whole": bool(chosen and chosen.is_whole),
                "files": _own_files(self.spec, (*(chosen.ran if chosen else ()), *self.watcher.compiling)),
                "torch": torch.__version__,
                "gpu": _gpu(),
            }
            part = self.folder / "recording.json.part"
            part.write_text(json.dumps(told, indent=1, default=repr), encoding="utf-8")
            part.replace(self.folder / "recording.json")
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def watch_the_clock(self) -> None:
        """End a program that makes no more calls, or that takes too long (a thread)."""
        while not self.done:
            time.sleep(0.5)
            now = time.monotonic()
            if self.watcher is not None and self.watcher.passed:
                self.last = self.last or now  # what is named was not called yet
            waits = self.watcher is not None and (self.watcher.is_within or self.watcher.has_uncalled)
            if self.last and now - self.last > SILENT_SECONDS and not waits:
                self.finish("no further call came")
            if now - self.begun > self.spec["seconds"]:
                self.finish("the time for recording was over")


def _compiled_of(module: torch.nn.Module, path: str) -> str:
    """What is compiled of a module, as ``path`` leads to it: itself, or ``forward`` where its class calls that."""
    of_torch = watching.calling(module) is torch.nn.Module
    return path if of_torch else f"{path}.forward".removeprefix(".")


def _signature(leaf: Any, depth: int = 0) -> Any:
    """What makes a call another one for a compiler: types, shapes, and values of what is no number."""
    if isinstance(leaf, torch.Tensor):
        return (tuple(leaf.shape), str(leaf.dtype), str(leaf.device), leaf.requires_grad)
    if isinstance(leaf, bool | str | None):
        return leaf
    if isinstance(leaf, int | float):
        return type(leaf).__name__
    if isinstance(leaf, list | tuple):
        return [_signature(item, depth + 1) for item in leaf] if depth < _DEEPEST else type(leaf).__name__
    held = getattr(leaf, "__dict__", None)
    if not isinstance(held, dict) or depth >= _DEEPEST or isinstance(leaf, torch.nn.Module | type):
        return type(leaf).__name__
    return type(leaf).__name__, [(key, _signature(value, depth + 1)) for key, value in held.items()]


def _described(handle: Any) -> Json:
    """One thing that the program compiles."""
    original = handle.original
    named = original if hasattr(original, "__qualname__") else type(original)
    arguments = {
        key: value if isinstance(value, str | int | None) else repr(value) for key, value in handle.arguments.items()
    }
    return {"what": named.__qualname__, "arguments": arguments, "called": handle.called}


def _gpu() -> list[int] | None:
    """Bytes of GPU memory: the most that the program held, and all that there is; None where it uses no GPU."""
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return None
    return [torch.cuda.max_memory_allocated(), torch.cuda.get_device_properties().total_memory]


def _own_files(spec: Json, files: Iterable[str]) -> list[str]:
    """The files that are the user's own."""
    real = (os.path.realpath(os.path.join(spec["roots"][0], file)) for file in files)
    here = str(Path(__file__).resolve().parents[1])
    roots = [os.path.realpath(root) for root in spec["roots"]]
    own = (file for file in real if watching.is_own(file, roots) and not file.startswith(here))
    return sorted({file for file in own if os.path.isfile(file)})


def main() -> None:
    """The command line."""
    spec: Json = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    faulthandler.enable()
    target = watching.Target(**spec["target"]) if spec.get("target") else None
    recorder = Recorder(spec, Path(spec["folder"]))
    ours = Path(__file__).resolve().parent
    ours_too = (str(ours), str(ours.with_name("harness")))  # where a fork of an interpreter comes from
    sys.path[:] = [entry for entry in sys.path if entry and os.path.realpath(entry) not in ours_too]
    threading.Thread(target=recorder.watch_the_clock, daemon=True).start()
    watching.seed()
    with watching.Watcher(recorder.around, target, spec.get("named", "")) as watcher:
        recorder.watcher = watcher
        try:
            program.start(program.Program.of(spec["program"]))
        except SystemExit as end:
            status = "" if end.code in (None, 0) else f"exit status {end.code}"
            recorder.finish("the program ended", status)
        except BaseException as error:  # what a program may raise
            traceback.print_exc()
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = str(error).splitlines()[0] if str(error) else ""
            recorder.finish("the program failed", f"{type(error).__name__}: {text} ({last.filename}:{last.lineno})")
        recorder.finish("the program ended")


if __name__ == "__main__":
    main()
