"""What the experiments on a case share: a fresh model in each setting, and the time that is left for settings."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._inductor.utils

from .failures import explain, message_of, status_of
from .leaves import leaves, on_host, snapshot
from .listener import Listener, general_guard, place_names
from .passes import MOST_PASSES, Run
from .running_case import Case, run_step

USABLE = 0.85  # of the seconds that the process may take: at the limit it is ended, and all figures are lost
REASONS = 20  # recompilations of a setting that are told with their guard
COUNTED = ("graphs", "breaks", "recompiles", "limit_hits", "dropped_frames", "launches", "operators")

Json = dict[str, Any]


class Trial(Run):
    """A fresh model in one setting, with the harness's own passes; outputs stay in memory instead of a folder."""

    def __init__(self, lab: Lab, compiled: Callable[[Any], Any] | None) -> None:
        job = {**lab.plan["job"], "kind": "eager", "mode": lab.mode}
        super().__init__({**lab.plan, "job": job}, lab.case, lab.listener)
        self.outputs: dict[str, Any] = {}
        if compiled is not None:
            self.kind, self.runner = "compiled", compiled(self.model)

    def step(self, case: Case, call: Any, runner: Any = None) -> tuple[Json, float]:
        """What one call has compiled and launched, and its seconds."""
        self._begin_step()
        before, start = self.listener.counts(), time.perf_counter()
        run_step(case, self.model, runner or self.runner, call, self.optimizer)
        self._wait()
        seconds = time.perf_counter() - start
        return difference(before, self.listener.counts()), round(seconds, 4)

    def first_pass(self) -> tuple[Json, float]:
        """The cold pass over all calls; the outputs are kept."""
        before = self.listener.counts()
        rows = self._pass(1)
        return difference(before, self.listener.counts()), round(sum(row["seconds"] for row in rows), 4)

    def settle(self) -> Json:
        """Passes until nothing is compiled any more; what the last one launched and did not."""
        for _ in range(MOST_PASSES - 1):
            before = self.listener.counts()
            self._pass(None)
            told = difference(before, self.listener.counts())
            if not any(told[key] for key in ("graphs", "breaks", "recompiles")):
                break
        return told

    def _save(self, save: int, number: int, call: Any, output: Any, epsilon: float = 0.0) -> str:
        named = leaves(output, f"call {number} output")
        floats = [(name, leaf) for name, leaf in named if torch.is_tensor(leaf) and leaf.is_floating_point()]
        self.outputs.update(on_host(snapshot(floats)))
        self.comparable = True
        return ""

    def _keep(self, name: str, value: Any) -> None:
        pass


def difference(before: Mapping[str, int], after: Mapping[str, int]) -> Json:
    """What has been counted in between."""
    return {key: after[key] - before[key] for key in COUNTED}


class Lab:
    """A case, the plan that it is measured by, and the time that is left for settings.

    ``given``: arguments of ``torch.compile`` that are kept.
    """

    def __init__(self, plan: Json, case: Case, listener: Listener, given: Json) -> None:
        self.plan, self.case, self.listener, self._given = plan, case, listener, given
        self.mode: str = plan["job"].get("mode") or "default"
        self.backend: str = plan["backend"]
        self._end, self._longest = time.monotonic() + USABLE * plan["seconds"], 0.0

    def options(self, backend: str | None = None) -> Json:
        """Those for ``torch.compile``; with another backend than the plan's there is no mode."""
        options: Json = {"backend": backend or self.backend, **self._given}
        if options["backend"] != "inductor":
            return {key: value for key, value in options.items() if key not in ("mode", "options")}
        return {"mode": self.mode, **options} if self.mode != "default" else options

    def tracing_backend(self) -> str:
        """A backend that takes graphs as inductor does, forward and backward, and generates no code."""
        return "aot_eager" if self.backend == "inductor" else self.backend

    def counting_backend(self) -> str:
        """A backend with which Dynamo compiles as often as with inductor; tracing backward can have a say in that."""
        return "eager" if self.backend == "inductor" and not self.case.train else self.tracing_backend()

    def attempt(self, name: str, setting: Callable[[], Json], reserved: int = 0) -> Json:
        """A setting by name; ``reserved``: how many later ones there must be time for besides."""
        if time.monotonic() + (1 + reserved) * self._longest > self._end:
            return {"name": name, "status": "left out", "message": "there was no time left for it", "seconds": 0.0}
        start = time.monotonic()
        torch._dynamo.reset()
        try:
            with fresh_cache(Path(self.plan["job"]["folder"])):
                told = {"status": "ok", "message": "", **setting()}
        except (Exception, SystemExit) as error:
            explain(error)
            told = {"status": status_of(error), "message": self.message(error)}
        gc.collect()
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
        seconds = time.monotonic() - start
        self._longest = max(self._longest, seconds)
        return {"name": name, **told, "seconds": round(seconds, 1)}

    def forget(self) -> None:
        """What was attempted so far says nothing about how long later settings take."""
        self._longest = 0.0

    def message(self, error: BaseException) -> str:
        """One line, with places as the user knows them."""
        return place_names(self.plan)(message_of(error))

    def reasons(self, since: int) -> list[Json]:
        """The recompilations after the first ``since``, with the guard that failed."""
        told = [
            {"function": row[0], "where": row[1], "guard": general_guard(row[2])}
            for row in self.listener.recompiles[since:]
        ]
        return told[:REASONS]


@contextlib.contextmanager
def fresh_cache(folder: Path) -> Iterator[None]:
    """An empty cache of the compiler below ``folder``, on disk and in memory."""
    inside = folder / "cache"
    inside.mkdir(parents=True, exist_ok=True)
    utils = torch._inductor.utils
    fresh = getattr(utils, "fresh_cache", None) or utils.fresh_inductor_cache  # before 2.8
    with fresh(dir=str(inside)):
        yield


def compiles_itself(case: Case) -> bool:
    """Whether the case says how it is compiled."""
    return getattr(case.module, "compile", None) is not None
