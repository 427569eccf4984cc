"""The passes of one variant over the calls of its case: counted, saved, timed, with changed inputs."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import json
import os
import re
import resource
import signal
import statistics
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch._dynamo

from . import pairs, precision, replaying
from .failures import CaseError, UnsuitedError, is_ours, message_of, status_of
from .leaves import OUTPUT_ELEMENTS, SAMPLE_ELEMENTS, TRAINED_ELEMENTS, digest, digest_all, leaves, on_host, sharing
from .listener import TORCH, Listener, described, origins_of, place_names
from .overlay import Overlay
from .running_case import (
    SEED,
    Case,
    kinds_of,
    module_attributes,
    parameters_of,
    parted_model,
    random_digest,
    random_state,
    run_step,
    seed,
    state_of,
    tensors,
)

Json = dict[str, Any]
LOOK_SECONDS = 0.001  # between two looks at what runs
LONG_PASS = 2000.0  # ms: such a pass is not run once more for that
LEAST_SHARE = 0.03  # of a pass, of a line that is told
_OF_GRAPHS = re.compile(r"<eval_with_key>|[/\\]torch[/\\](?:_inductor|_functorch|fx)[/\\]|[/\\]triton[/\\]")
_PYTHONS_OWN = (os.path.join(os.path.dirname(os.__file__), ""), TORCH, "<")
COUNTED_PASSES, QUICK_PASSES, MOST_PASSES = 3, 2, 6
USUAL_BACKEND = "inductor"
THREADS = 4  # on the host, of a process that computes on a GPU beside others
OBSERVED_SECONDS = 5.0  # for changed inputs, and at most for one of them
MOST_COMPILED = 10_000  # times that a frame is compiled, for changed inputs
WARM_SECONDS, QUICK_SECONDS = 4.0, 1.0
FEWEST_WARM, MOST_WARM = 3, 50
ASSEMBLER = "TRITON_PTXAS_PATH"


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


class Run:
    """One model of one variant, and the passes over the case's calls."""

    def __init__(
        self, plan: Json, case: Case, listener: Listener, arguments: Json | None = None, blocks: Sequence[str] = ()
    ) -> None:
        self.plan, self.case, self.listener, self.arguments = plan, case, listener, arguments or {}
        self.kind, self.mode, self.folder = plan["job"]["kind"], plan["job"]["mode"], Path(plan["job"]["folder"])
        self.model = case.build()
        self.weights = {name: digest(t) for name, t in self._watched().items()}
        self.kinds = kinds_of(self.model)
        self.plain = {name: digest_all([(name, leaf)]) for name, leaf in module_attributes(self.model).items()}
        calls = case.calls()
        found = [t.device for t in (*state_of(self.model).values(), *tensors([c for c in calls if not callable(c)]))]
        cuda = [device for device in found if device.type == "cuda"]
        self.device = cuda[0] if cuda else torch.device("cpu")
        if cuda and plan.get("workers"):  # beside others, for whose cores more threads would wait
            torch.set_num_threads(min(THREADS, torch.get_num_threads()))
        if self.kind == "compiled" and cuda:
            one_assembler(self._options().get("mode"))
        whole = self.kind == "compiled" and not blocks
        self.runner = case.compile(self.model, self._options()) if whole else self.model
        lists = [parted_model(case, self.model).get_submodule(path) for path in blocks]
        for block in [one for blocks in lists for one in blocks.children()]:
            block.compile(**self._options())
        self.optimizer = case.optimizer(self.model) if case.train else None
        self.first, self.draws_random, self.comparable = "", False, False
        self.most = SAMPLE_ELEMENTS if plan["job"].get("replayed") else OUTPUT_ELEMENTS  # of a tensor kept whole
        self.facts: dict[str, Any] = {}  # of eager modes alone, in the first pass: compiling may change them
        self.precision = precision.Noting(parameters_of(self.model).values())

    def _watched(self) -> dict[str, Any]:
        """The tensors of the model that a call might change."""
        return state_of(self.model)

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
        write_json(self.folder / "weights.json", told)

    def _pass(self, save: int | None) -> list[Json]:
        """All calls once, with what each of them cost; ``save``: the number under which the results are kept."""
        rows = []
        calls = self.case.calls()
        seed()
        began = random_state()
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
                self.facts[f"random state after call {number}"] = random_digest()
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
            self.first, self.draws_random = hashes.hexdigest(), random_state() != began
        return rows

    def _note_attributes(self) -> None:
        for name, leaf in module_attributes(self.model).items():
            same = digest_all([(name, leaf)]) == self.plain.get(name)
            self.comparable |= not same
            taken = [(name, "as after build()")] if same else on_host([(name, leaf)])
            self.facts.update((f"attribute {where}", value) for where, value in taken)

    def _guarded(self, number: int, call: Any) -> Any:
        try:
            with self._noting(self.precision):
                return run_step(self.case, self.model, self.runner, call, self.optimizer)
        except (Exception, SystemExit) as error:
            if status_of(error) == "error" and self.kind == "eager":
                raise CaseError(f"{self.case.name}: call {number} raised {message_of(error)}") from error
            raise

    def _noting(self, noted: precision.Noting) -> contextlib.AbstractContextManager[object]:
        return noted if self.kind == "eager" else contextlib.nullcontext()

    def _save(self, save: int, number: int, call: Any, output: Any, epsilon: float = 0.0) -> str:
        """Keep what a call returned, its arguments as it left them, and the gradients; the answer is their digest.

        ``epsilon``: of the coarsest type that it computed in, where that is not known otherwise.
        """
        returned, given = list(leaves(output, "output")), [] if callable(call) else list(leaves(call, "argument"))
        shared = sharing([*returned, *given], [(f"model.{name}", t) for name, t in state_of(self.model).items()])
        gradients = {}
        if self.case.train:
            gradients = {n: p.grad for n, p in parameters_of(self.model).items()}
            inputs = [(name, leaf) for name, leaf in given if torch.is_tensor(leaf) and leaf.is_leaf]
            gradients |= {name: leaf.grad for name, leaf in inputs if leaf.requires_grad}
            trained = [name for name, leaf in returned if torch.is_tensor(leaf) and leaf.requires_grad]
            returned += [(f"{name}.requires_grad", True) for name in trained]
        named = [*returned, *given]
        told = [leaf for name, leaf in named if not name.endswith((".type", ".keys", ".len"))]
        self.comparable |= bool(gradients) or any(leaf is not None for leaf in told)
        kept = on_host(named, self.most)
        gradients_kept = on_host(gradients.items(), min(self.most, TRAINED_ELEMENTS))
        record = {"leaves": kept, "shared": shared, "gradients": gradients_kept, "epsilon": epsilon}
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
        self.weights = {name: digest(t) for name, t in state_of(self.model).items()}
        self.optimizer = self.case.optimizer(self.model) if self.case.train else None
        try:
            return self._compared_only()
        except Exception as error:
            raise UnsuitedError(f"the model does not run in float64: {message_of(error)}") from error

    def nudged(self) -> Json:
        """Passes with each parameter moved by a rounding: a branch that rounding has taken is another one then."""
        for parameter, values in pairs.neighbours(parameters_of(self.model).values(), SEED):
            parameter.detach().copy_(values)
        self.weights = {name: digest(t) for name, t in state_of(self.model).items()}
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
                    run_step(self.case, self.model, self.runner, call, self.optimizer)
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
            noted = precision.Noting(parameters_of(self.model).values())
            with change.around(self.model, self.device.type), self._noting(noted):
                output = run_step(self.case, self.model, self.runner, call, self.optimizer)
                self._save(1, number, call, output, noted.epsilon)
            written = {n: t for n, t in self._watched().items() if (id(t), t._version) != before.get(n)}
            changed = {n: t for n, t in written.items() if digest(t) != self.weights.get(n)}
            self._keep(f"pass1-state{number}.pt", on_host(changed.items(), self.most))
        except (Exception, SystemExit) as error:
            if status_of(error) != "out-of-memory":
                self._keep(f"pass1-call{number}.pt", {"leaves": [("raised", type(error).__name__)]})
            return str(error) or type(error).__name__
        return ""

    def _changed_calls(self, seconds: float) -> Iterator[tuple[int, Any, Any]]:
        """Changes of inputs with their numbers, and the calls that they give, each from the state that is there now.

        Until the time is over: a call that goes on is ended with ``_TooLongError``.
        """
        over = time.perf_counter() + seconds
        state = replaying.Snapshot([self.model, *filter(None, [self.optimizer])])
        signal.signal(signal.SIGALRM, _too_long)
        only = self.plan["job"].get("only")
        for number, change in enumerate(replaying.changes(), 1):
            if only and number not in only:
                continue
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
            figures["cpu_ms"] = statistics.median(busy)
        warm = {**{key: round(value, 4) for key, value in figures.items()}, "passes": len(times)}
        return {"warm": warm, "memory": peak_memory(self.device)}

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
            run_step(self.case, self.model, self.runner, call, self.optimizer)

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
        around = is_ours(file)  # and so is all that calls us
        if around or _OF_GRAPHS.search(file) or file.startswith(generated):
            return None
        installed = "site-packages" in file or "dist-packages" in file
        if not file.startswith(TORCH if installed else _PYTHONS_OWN):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


def _reset_peak(device: Any) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_memory(device: Any) -> Json:
    """The largest memory since the reset, in bytes: torch's on a GPU, else what the process had resident."""
    if device.type == "cuda":
        return {"bytes": torch.cuda.max_memory_allocated(device), "kind": "cuda"}
    with contextlib.suppress(OSError, StopIteration):
        status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return {"bytes": 1024 * int(next(x for x in status if x.startswith("VmHWM")).split()[1]), "kind": "rss"}
    unit = 1 if sys.platform == "darwin" else 1024
    return {"bytes": unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "kind": "rss"}


def write_json(path: Path, value: Json) -> None:
    """The file is there as a whole, or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=1), encoding="utf-8")
    part.replace(path)
