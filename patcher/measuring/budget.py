"""Cases against their budgets in ``fix-compile.lock``: counted, compared, and recorded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.files.backup import project_root
from patcher.harness import plan
from patcher.harness.cases import Case
from patcher.harness.compare import ended
from patcher.harness.measured import Figures, ResultsError, Site, from_json
from patcher.harness.processes import Progress, RunError
from patcher.harness.run import run
from patcher.harness.scratch import scratch
from patcher.measuring import lock
from patcher.measuring.lock import FILE, KINDS, Budget, Event, Lock, LockError
from patcher.measuring.measure import Request, need_torch, options_for
from patcher.patching.calls import FAILURE, FINDINGS, OK, Told
from patcher.results import Overrun

#: What counts as the compiler does, backward passes included, and generates no code.
BACKEND = "aot_eager"
_SECONDS = 600.0


class BudgetError(Exception):
    """A case that cannot be counted, or has no budget; one line for each."""


@dataclass(frozen=True)
class Compared:
    """What is beyond the budgets, and a line for each case, and for what else one should know."""

    overruns: tuple[Overrun, ...]
    notes: tuple[str, ...]


def lock_file(path: str) -> Path:
    """The lock of the project that ``path`` is in."""
    return project_root(path) / FILE


def compared(
    request: Request, paths: Sequence[str], command: Sequence[str], progress: Progress | None = None
) -> Compared:
    """The cases as they are now, against their budgets. Raises ``BudgetError`` and ``LockError``."""
    file = lock_file(paths[0])
    known = lock.read(file).cases
    missing = [case.name for case in request.cases if case.name not in known]
    if missing:
        raise BudgetError(f"{', '.join(missing)}: no budget in {_shown(file)}; --lock records it")
    overruns, notes = [], []
    for case in request.cases:
        was = known[case.name]
        how = replace(request, backend=request.backend or was.backend, modes=_modes(request, was.mode))
        now = _counted(case, how, paths, command, file, progress)
        if was.torch != now.torch:
            notes.append(f"{case.name}: its budget was recorded with torch {was.torch}, this is torch {now.torch}")
        excess = lock.beyond(was, now)
        overruns += [Overrun(case.name, str(one), _places(one.events, file)) for one in excess]
        within = "beyond" if excess else "within"
        notes.append(f"{case.name}: {within} its budget: {_figures(now)}")
        fallen = [kind for kind in KINDS if now.counts[kind] < was.counts[kind]]
        if fallen and not excess:
            better = ", ".join(f"{kind.replace('_', ' ')} {was.counts[kind]} -> {now.counts[kind]}" for kind in fallen)
            notes.append(f"{case.name}: better than its budget: {better}; --lock records it")
    return Compared(tuple(overruns), tuple(notes))


def recorded(
    request: Request, paths: Sequence[str], command: Sequence[str], progress: Progress | None = None
) -> tuple[str, ...]:
    """Count the cases as they are on disk and write their budgets; a line for each. Raises as ``compared``."""
    file = lock_file(paths[0])
    known = lock.read(file)
    fresh = {case.name: _counted(case, request, paths, command, file, progress) for case in request.cases}
    lock.write(file, replace(known, cases={**known.cases, **fresh}))
    return tuple(f"{name}: {_figures(budget)} recorded in {_shown(file)}" for name, budget in fresh.items())


def with_budgets(told: Told, request: Request, paths: Sequence[str], command: Sequence[str]) -> Told:
    """The end of a call that has measured, with the budgets of its cases recorded as the tree is now."""
    if told.status not in (OK, FINDINGS):
        return replace(told, err=(*told.err, "no budget was recorded"))
    try:
        return replace(told, err=(*told.err, *recorded(request, paths, command)))
    except (BudgetError, LockError) as error:
        return replace(told, status=FAILURE, err=(*told.err, f"--lock: error: {error}"))


def _modes(request: Request, mode: str) -> tuple[str, ...]:
    return request.modes if request.modes != ("default",) else (mode,)


def _counted(
    case: Case, request: Request, paths: Sequence[str], command: Sequence[str], file: Path, progress: Progress | None
) -> Budget:
    backend = request.backend or BACKEND
    options = replace(
        options_for((), replace(request, backend=backend, seconds=request.seconds or _SECONDS), paths, command),
        base=str(file.parent),
        modes=request.modes[:1],
        quick=backend != "inductor",  # CUDA graphs are replayed from the third pass on
        counting=True,
    )
    try:
        need_torch(request.python)
        with scratch() as folder:
            results = from_json(run(plan.write(folder, (), (case,), options), request.python, progress))
    except (RunError, ResultsError, OSError) as error:
        raise BudgetError(f"{case.name}: {error}") from None
    (told,) = results.cases
    for variant in (told.variant("original", "eager"), told.variant("original", "compiled", options.modes[0])):
        if variant.figures is None:
            raise BudgetError(f"{case.name}: {ended(variant).removeprefix('original ')}")
    figures = told.variant("original", "compiled", options.modes[0]).figures
    assert figures is not None
    return Budget(
        counts={kind: getattr(figures.counts, kind) for kind in KINDS},
        operators=figures.operators,
        events=tuple(_events(figures)),
        torch=results.environment.torch,
        backend=backend,
        mode=options.modes[0],
        case=_below(case.file, file.parent),
        paths=tuple(_below(path, file.parent) for path in paths),
    )


def _events(figures: Figures) -> Iterator[Event]:
    for kind, sites in (("breaks", figures.breaks), ("dropped_frames", figures.dropped_frames)):
        yield from (Event(kind, site.where, _function(site), site.reason, site.count) for site in sites)
    for kind, rows in (("recompiles", figures.recompiles), ("limit_hits", figures.limit_hits)):
        yield from (Event(kind, row.where, row.function, row.guard, row.count) for row in rows)
    yield from (Event("cudagraph_skips", site.where, "", site.reason, site.count) for site in figures.cudagraph_skips)


def _function(site: Site) -> str:
    """The innermost function of the user's code that a break is in."""
    place, _, name = (site.stack[-1] if site.stack else "").rpartition(" in ")
    return name if place == site.where else ""


def _places(events: Iterable[Event], file: Path) -> tuple[tuple[str, str], ...]:
    """Where, from the working folder, and why: each once, with the function that it is in."""
    lines = ((_from_here(e.where, file), f"{e.reason}{f' (in {e.function})' if e.function else ''}") for e in events)
    return tuple(dict.fromkeys(lines))


def _from_here(where: str, file: Path) -> str:
    name, _, line = where.rpartition(":")
    path = file.parent / name
    return f"{_shown(path)}:{line}" if name and path.is_file() else where


def _figures(budget: Budget) -> str:
    """``0 breaks, 1 recompile, 2 graphs``; the other figures where there are any."""
    counts = [
        (budget.counts[kind], kind.replace("_", " ")) for kind in KINDS if budget.counts[kind] or kind in KINDS[:3]
    ]
    return ", ".join(f"{count} {what.removesuffix('s') if count == 1 else what}" for count, what in counts)


def _below(path: str, folder: Path) -> str:
    return os.path.relpath(os.path.realpath(path), os.path.realpath(folder)).replace(os.sep, "/")


def _shown(file: Path) -> str:
    below = os.path.relpath(file)
    return str(file) if below.startswith(os.pardir) else below


__all__ = ["BACKEND", "BudgetError", "Compared", "Lock", "LockError", "compared", "lock_file", "recorded"]
