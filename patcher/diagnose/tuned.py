"""What trying the ways to compile a case has shown: the table, the way to take, and the call to write for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patcher.diagnose.diagnosis import Diagnostic
from patcher.diagnose.figures import code, number, same, spread
from patcher.harness.compare import ENDED, apart
from patcher.harness.measured import CaseResult, ProbeResult, Warm, comparison_of
from patcher.harness.ways import LIMITS, Facts, figure
from patcher.settings import TorchSetting

Figures = Mapping[str, Any]
Row = tuple[str, ...]

COLUMNS = (
    "way",
    "cold s",
    "second process s",
    "warm ms",
    "one call ms",
    "eager / warm",
    "passes",
    "graphs",
    "recompiles",
    "limit hits",
    "skips",
    "peak MB",
    "MAE",
    "equal",
)
_GOALS = {
    "latency": "one call that is waited for",
    "throughput": "a pass over all calls, none of which is waited for",
    "startup": "the first pass of a process that finds the cache of an earlier one",
    "memory": "the peak of warm passes",
}
_DYNAMO = "torch._dynamo.config."
_SLOWER = 1.1  # times a warm pass of the whole, from which on blocks are said to be slower
_GAINED = 0.8  # of the first pass: a cache that saves less is hardly worth a line


@dataclass(frozen=True)
class Tried:
    """A way that has run. ``unequal``: why its results are not those of eager; () when they are."""

    row: Figures
    unequal: tuple[str, ...]

    @property
    def name(self) -> str:
        """As in the table."""
        return str(self.row["name"])

    @property
    def eligible(self) -> bool:
        """Whether it may be recommended: it computes what eager computes, and something of it is compiled."""
        return not self.unequal and bool(self.row["launches"])

    def warm(self, key: str = "warm") -> Warm:
        """Of one of its times."""
        return _warm(self.row[key])


def tuned(case: CaseResult, probe: ProbeResult, title: str, device: str) -> Diagnostic:
    """The table of all ways, and what follows."""
    figures = probe.figures
    facts = Facts.of(figures["facts"])
    tried = _tried(case, figures)
    best = chosen(figures["goal"], tried, figures["facts"]["eager"])
    return Diagnostic(
        probe.name,
        title,
        case.name,
        message=_message(figures, facts, device),
        columns=COLUMNS,
        rows=(_eager_row(figures["facts"]["eager"]), *(_row(row, tried, figures) for row in figures["rows"])),
        conclusions=tuple(_conclusions(figures, facts, tried, best)),
        seconds=probe.seconds,
    )


def recommended(case: CaseResult, probe: ProbeResult) -> Figures | None:
    """The row of the way to take; None where it is none."""
    best = chosen(probe.figures["goal"], _tried(case, probe.figures), probe.figures["facts"]["eager"])
    return None if best is None else best.row


def choice(case: CaseResult, probe: ProbeResult) -> tuple[TorchSetting, ...]:
    """The recommended way as settings for a call that compiles the whole model; () where it is none, or the usual one.

    Also () where what it takes cannot be written: settings of inductor, and marks of what has no name of its own.
    """
    figures = probe.figures
    best = chosen(figures["goal"], _tried(case, figures), figures["facts"]["eager"])
    if best is None:
        return ()
    facts = Facts.of(figures["facts"])
    config = [
        TorchSetting("config", name.removeprefix(_DYNAMO), value)
        for name, value in best.row["config"].items()
        if name.startswith(_DYNAMO)
    ]
    in_blocks = facts.blocks if best.row["scope"] == "blocks" else ()
    marked = facts.marks if best.row["marked"] else ()
    plain = [path.isidentifier() for path, _ in marked] + [_is_dotted(path) for path, _ in in_blocks]
    if len(config) < len(best.row["config"]) or not all(plain):
        return ()
    given = [TorchSetting("argument", n, v) for n, v in best.row["arguments"].items() if n != "backend"]
    blocks = [TorchSetting("blocks", path, figures["facts"].get("model", "")) for path, _ in in_blocks]
    marks = [TorchSetting("mark", path, dim) for path, dims in marked for dim in dims]
    return (*config, *given, *blocks, *marks)


def _is_dotted(path: str) -> bool:
    return all(part.isidentifier() for part in path.split("."))


def _tried(case: CaseResult, figures: Figures) -> list[Tried]:
    return [Tried(row, _unequal(row, case.tolerance, figures)) for row in figures["rows"] if _ran(row)]


def chosen(goal: str, tried: Sequence[Tried], eager: Figures) -> Tried | None:
    """The best way by a goal; of those that are as good within noise, the one whose first pass is quickest.

    None when none may be recommended, or none is better than eager at what is asked.
    """
    known = [(one, value) for one in tried if one.eligible and (value := figure(goal, one.row)) is not None]
    if not known:
        return None
    first, _ = min(known, key=lambda pair: pair[1])
    alike = [one for one, _ in known if one is first or _as_good(goal, first, one)]
    best = min(alike, key=lambda one: one.row["cold_seconds"])
    if goal in ("latency", "throughput") and not _faster(goal, best, eager):
        return None
    return best


def _as_good(goal: str, best: Tried, other: Tried) -> bool:
    if goal in ("latency", "throughput"):
        key = "warm" if goal == "throughput" else "call_ms"
        return same(best.warm(key), other.warm(key))
    one, two = (figure(goal, tried.row) or 0.0 for tried in (best, other))
    return two <= 1.05 * one


def _faster(goal: str, best: Tried, eager: Figures) -> bool:
    key = "warm" if goal == "throughput" else "call_ms"
    own, base = best.warm(key), _warm(eager[key])
    return own.median_ms < base.median_ms and not same(own, base)


def _warm(told: Figures) -> Warm:
    return Warm(told["median_ms"], told["low_ms"], told["high_ms"], told["min_ms"], told["passes"])


def _ran(row: Figures) -> bool:
    return row["status"] == "ok" and bool(row.get("warm"))


def _unequal(row: Figures, tolerance: float, figures: Figures) -> tuple[str, ...]:
    if not row.get("comparison"):
        return (f"its results could not be compared ({figures.get('compare_error') or 'nobody knows why'})",)
    return apart(comparison_of(row["comparison"]), tolerance)


def _message(figures: Figures, facts: Facts, device: str) -> str:
    told = [f"goal {figures['goal']}: {_GOALS[figures['goal']]}", f"backend {facts.backend}", f"on {device}"]
    if facts.blocks:
        told.append("blocks: " + ", ".join(f"{count} in {path or 'the model'}" for path, count in facts.blocks))
    if facts.own_compile:
        told.append("the whole compiled by the case's own compile()")
    return "; ".join(told)


# ---------------------------------------------------------------------------------------------------------------------
# The table.


def _eager_row(eager: Figures) -> Row:
    warm, call = spread(_warm(eager["warm"])), spread(_warm(eager["call_ms"]))
    return ("eager", "-", "-", warm, call, *("-" for _ in range(6)), _megabytes(eager), "-", "-")


def _row(row: Figures, tried: Sequence[Tried], figures: Figures) -> Row:
    found = next((one for one in tried if one.row is row), None)
    if found is None:
        how = "see below" if row["status"] == "ok" else ENDED.get(row["status"], row["status"])
        return (row["name"], how, *("-" for _ in range(len(COLUMNS) - 2)))
    second, counts, own = row.get("second") or {}, row["counts"], found.warm()
    eager = _warm(figures["facts"]["eager"]["warm"])
    faster = f"{eager.median_ms / own.median_ms:.2f}x" if own.median_ms else "-"
    comparison = row.get("comparison") or {}
    return (
        row["name"],
        number(row["cold_seconds"]),
        number(second.get("cold_seconds")),
        spread(own),
        spread(found.warm("call_ms")),
        faster + (" (noise)" if same(eager, own) else ""),
        str(row["passes"]) if row["settled"] else f"more than {row['passes']}",
        str(counts["graphs"]),
        str(counts["recompiles"]),
        str(counts["limit_hits"]),
        str(counts["cudagraph_skips"]),
        _megabytes(row),
        number(comparison.get("mae")),
        "no" if found.unequal else "yes" if row["launches"] else "nothing is compiled",
    )


def _megabytes(row: Figures) -> str:
    return f"{row['memory']['bytes'] / 1e6:.0f}" if row.get("memory") else "-"


# ---------------------------------------------------------------------------------------------------------------------
# What follows.


def _conclusions(figures: Figures, facts: Facts, tried: Sequence[Tried], best: Tried | None) -> Iterator[str]:
    if best is not None:
        yield from _recommended(figures, facts, best)
        yield from _slower_blocks(best, tried)
    else:
        yield _nothing(figures, tried)
    yield from _of_blocks(tried)
    yield from _of_debug(figures)
    yield from _of_limits(figures, facts)
    yield from _of_reuse(figures)
    for one in tried:
        if one.unequal:
            yield f"{code(one.name)} is not what eager computes, and is never chosen: {'; '.join(one.unequal[:2])}."
        elif not one.row["launches"]:
            yield f"With {code(one.name)} no compiled graph ran: its times are those of eager code."
    yield from _of_assembler(figures)
    yield from _not_reached(figures)
    for row in figures["rows"]:
        if row["status"] == "skipped":
            continue
        if row["status"] != "ok":
            yield f"{code(row['name'])}: {_how(row)}."
        elif row.get("why"):
            yield f"{code(row['name'])} was tried because {row['why']}."
        if row.get("skips"):
            yield f"{code(row['name'])}: CUDA graphs were skipped: {'; '.join(row['skips'])}."
    yield from _left_out(figures)


def _recommended(figures: Figures, facts: Facts, best: Tried) -> Iterator[str]:
    goal, row = figures["goal"], best.row
    if facts.own_compile and row["scope"] == "whole":
        given = ", ".join(f"{key}={value!r}" for key, value in row["arguments"].items()) or "no arguments"
        yield f"For {goal}, have the case's own `compile()` use {code(given)}: {_told(figures, best)}."
        before = row["lines"][:-1]
    else:
        yield f"For {goal}, write {', then '.join(map(code, row['lines']))}: {_told(figures, best)}."
        before = []
    if before:
        yield f"Before it: {', '.join(map(code, before))}."
    if row["marked"]:
        yield f"And before each call, outside of compiled code: {', '.join(map(code, figures['marking']))}."
    yield from _of_cache(row)
    passes = row["passes"]
    if row["settled"]:
        times = "once" if passes == 1 else f"{passes} times"
        yield f"Warm up by running all calls {times}, in the mode (training or not) that is used."
    else:
        yield f"After {passes} passes something is still compiled: no number of warm-up runs is enough."


def _of_cache(row: Figures) -> Iterator[str]:
    """What a second process gained by the first one's cache, and its warm time, which should be the same again."""
    second = row.get("second") or {}
    if second.get("status") != "ok":
        return
    first, later = row["cold_seconds"], second["cold_seconds"]
    both = f"the first pass takes {number(first)} s with an empty cache, {number(later)} s in a second process"
    if later < _GAINED * first:
        yield f"Keep the folder of `TORCHINDUCTOR_CACHE_DIR` between processes: {both} that finds it filled."
    else:
        yield f"Keeping the compiler's cache between processes gains little: {both} that finds it filled."
    drift = "" if same(_warm(row["warm"]), _warm(second["warm"])) else ", which is another time: the machine drifts"
    yield f"In that second process a warm pass takes {spread(_warm(second['warm']))} ms{drift}."


def _told(figures: Figures, best: Tried) -> str:
    goal, eager = figures["goal"], figures["facts"]["eager"]
    own = figure(goal, best.row)
    assert own is not None
    if goal in ("latency", "throughput"):
        key = "warm" if goal == "throughput" else "call_ms"
        times = f"{eager[key]['median_ms'] / own:.2f}" if own else "many"
        what = "a pass" if goal == "throughput" else "a call"
        return (
            f"{what} takes {number(own)} ms, in eager mode {number(eager[key]['median_ms'])} ms ({times}x, both warm)"
        )
    if goal == "startup":
        warm = f"{number(best.row['warm']['median_ms'])} ms"
        return f"the first pass takes {number(own)} s in a process that finds the cache, a warm one {warm}"
    return f"the peak is {own / 1e6:.0f} MB, in eager mode {_megabytes(eager)} MB"


def _nothing(figures: Figures, tried: Sequence[Tried]) -> str:
    goal = figures["goal"]
    known = [one for one in tried if one.eligible and figure(goal, one.row) is not None]
    if not known:
        return "None of the ways that have run may be recommended: none gives what eager gives and compiles something."
    first = min(known, key=lambda one: figure(goal, one.row) or 0.0)
    return (
        f"No way is faster than eager beyond noise: do not compile this for {goal}. The fastest is {code(first.name)},"
        f" {_told(figures, first)}."
    )


def _slower_blocks(best: Tried, tried: Sequence[Tried]) -> Iterator[str]:
    """What it costs once warm that the recommended way compiles blocks only."""
    whole = [one for one in tried if one.eligible and one.row["scope"] == "whole"]
    if best.row["scope"] != "blocks" or not whole:
        return
    first = min(whole, key=lambda one: one.warm().median_ms)
    times = _times(best, first)
    if times > _SLOWER and not same(best.warm(), first.warm()):
        yield (
            f"Once warm that is slower: a pass takes {number(best.warm().median_ms)} ms, {times:.2f} times as long as"
            f" with {code(first.name)}, which compiles the whole ({number(first.warm().median_ms)} ms)."
        )


def _of_blocks(tried: Sequence[Tried]) -> Iterator[str]:
    """Blocks beside the whole, compiled in the same way: the first pass against the later ones."""
    for own in (one for one in tried if one.row["scope"] == "blocks" and one.eligible):
        whole = next((one for one in tried if one.eligible and _is_whole_of(one, own)), None)
        if whole is not None and own.row["cold_seconds"]:
            cold = f"{number(own.row['cold_seconds'])} s, not {number(whole.row['cold_seconds'])} s"
            times, noise = _times(own, whole), same(own.warm(), whole.warm())
            how = "as long (within noise)" if noise else f"{times:.2f} times as long"
            yield f"{code(own.name)} beside {code(whole.name)}: a first pass takes {cold}, a warm one {how}."


def _is_whole_of(one: Tried, blocks: Tried) -> bool:
    same_way = all(one.row[key] == blocks.row[key] for key in ("arguments", "config", "marked"))
    return one.row["scope"] == "whole" and same_way


def _times(one: Tried, other: Tried) -> float:
    """How many times as long a warm pass takes."""
    median = other.warm().median_ms
    return one.warm().median_ms / median if median else 1.0


def _of_assembler(figures: Figures) -> Iterator[str]:
    """Ways that ran with another assembler than the user's process would take."""
    names = [code(row["name"]) for row in figures["rows"] if row.get("assembler")]
    if names:
        yield (
            f"{', '.join(names)} ran with `TRITON_PTXAS_PATH` set to `bin/ptxas` in torch's folder, with which this"
            " torch's compile workers assemble. Set it too: else what they compile to choose from is not found, and"
            " compiled again, one kernel after another."
        )


def _of_debug(figures: Figures) -> Iterator[str]:
    for row in figures["rows"]:
        for backend, told in (row.get("traced") or {}).items():
            if told["message"]:
                yield f"With `fullgraph=True` and backend {code(backend)} it is not captured whole: {told['message']}."
            elif told["launches"]:
                yield f"With `fullgraph=True` and backend {code(backend)} all calls are captured whole."


def _of_limits(figures: Figures, facts: Facts) -> Iterator[str]:
    ran = [row for row in figures["rows"] if _ran(row)]
    if not ran:
        return
    hit = [row for row in ran if row["counts"]["limit_hits"]]
    setting = facts.limit.rpartition(".")[2]
    if not hit:
        most = max(row["most_recompiles"] for row in ran)
        numbers = " or ".join(map(str, LIMITS))
        yield f"No way hits the recompile limit: a {code(setting)} of {numbers} would change nothing."
        if most:
            yield f"At most one function was compiled {most + 1} times."
        return
    names = ", ".join(code(row["name"]) for row in hit)
    free = [row for row in ran if not row["counts"]["limit_hits"] and facts.limit in row["config"]]
    yield f"The recompile limit is hit with {names}: from then on that function runs eagerly."
    for row in free:
        need = row["most_recompiles"] + 1
        yield f"With {code(row['name'])} it is not: this case needs {code(f'{facts.limit} = {need}')} at least."


def _of_reuse(figures: Figures) -> Iterator[str]:
    for row in figures["rows"]:
        reuse = row.get("reuse")
        if not reuse:
            continue
        if reuse["status"] != "ok":
            yield f"A second model of the same code, compiled as {code(row['name'])}: {reuse['message']}."
        elif reuse["graphs"]:
            yield (
                f"A second model of the same code in the same process, compiled as {code(row['name'])}, compiles"
                f" {reuse['graphs']} graphs of its own: its first pass takes {number(reuse['seconds'])} s."
            )
        else:
            yield (
                f"A second model of the same code in the same process, compiled as {code(row['name'])}, compiles"
                f" nothing: its first pass takes {number(reuse['seconds'])} s."
            )


def _how(row: Figures) -> str:
    ended = ENDED.get(row["status"], str(row["status"]))
    because = f" (tried because {row['why']})" if row.get("why") else ""
    return f"{ended}: {str(row['message']).rstrip('.')}{because}" if row["message"] else f"{ended}{because}"


def _not_reached(figures: Figures) -> Iterator[str]:
    late = [row for row in figures["rows"] if row["status"] == "skipped"]
    yield from (f"{code(row['name'])}: {row['message']}." for row in late if row.get("seconds"))
    if names := [code(row["name"]) for row in late if not row.get("seconds")]:
        yield f"There was no time left for {', '.join(names)}."


def _left_out(figures: Figures) -> Iterator[str]:
    """Ways that do not suit the case, by why; a setting that this torch lacks is one warning."""
    reasons: dict[str, list[str]] = {}
    for left in figures["left"]:
        reasons.setdefault(left["message"], []).append(code(left["name"]))
    for why, names in reasons.items():
        yield f"{'Warning: ' if why.startswith('this torch') else ''}{', '.join(names)} left out: {why}."
