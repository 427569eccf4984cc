"""What ``results.json`` holds, as frozen values: what was measured, and nothing about what it means."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from patcher.decode import DecodeError, decoded, short, wrong

SCHEMA = 1

Tree = Literal["original", "patched"]
Kind = Literal["eager", "compiled", "float64"]
Status = Literal["ok", "case-error", "error", "compile-error", "timeout", "out-of-memory", "exited", "skipped"]
Promise = Literal["bitwise", "tolerance"]

_COUNTED = (
    "counts", "launches", "operators", "breaks", "recompiles", "limit_hits", "dropped_frames", "cudagraph_skips",
)  # fmt: skip


class ResultsError(Exception):
    """A document that is no ``results.json`` of this schema, or a damaged one; the message is one line."""


@dataclass(frozen=True)
class Site:
    """A break, a dropped frame or a skipped CUDA graph: where (``file:line`` or ""), why, how often.

    The rest is PyTorch's own words, where it had any. ``url``: of its page on breaks of this kind. ``stack``: how the
    user's code got there, outermost first: "file:line in function". ``around``: other frames by which it also did.
    """

    where: str
    reason: str
    count: int = 1
    explanation: str = ""
    hints: tuple[str, ...] = ()
    context: str = ""
    url: str = ""
    stack: tuple[str, ...] = ()
    around: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recompile:
    """A function that was compiled again, or given up after too many times, and the guard that failed.

    ``where``: of its first line. ``source``: of the code that made the guard necessary, or "". ``nested``: whether it
    was called, each time, by compiled code that had broken.
    """

    function: str
    where: str = ""
    guard: str = ""
    count: int = 1
    source: str = ""
    nested: bool = False


@dataclass(frozen=True)
class Origin:
    """The graphs that were captured in one frame. ``where``: of its first line, or when ``resumed``, of the break.

    ``resumed``: whether the frame is the rest of ``function`` behind a break; ``nested``: whether it was called by
    compiled code that had broken. ``stack``: what had called it when it was compiled first, outermost first: "file:line
    in function". ``compile_seconds``: what its ``graphs``
    took to be traced and compiled. The others are of the settled pass; ``seconds``: inside the graphs, None on a GPU.
    """

    where: str
    function: str
    resumed: bool = False
    nested: bool = False
    graphs: int = 0
    launches: int = 0
    operators: int = 0
    compile_seconds: float | None = None
    seconds: float | None = None
    stack: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallFigures:
    """One call: ``seconds`` on the wall clock; what was compiled, launched and run inside graphs."""

    seconds: float
    breaks: int = 0
    recompiles: int = 0
    graphs: int = 0
    launches: int = 0
    operators: int = 0


@dataclass(frozen=True)
class Counts:
    """Sums over all counted passes."""

    breaks: int = 0
    recompiles: int = 0
    graphs: int = 0
    limit_hits: int = 0
    dropped_frames: int = 0
    cudagraph_skips: int = 0


@dataclass(frozen=True)
class Warm:
    """Milliseconds of one pass over all calls, over ``passes`` passes; ``low_ms`` and ``high_ms`` are the quartiles.

    ``cpu_ms``: CPU time of all threads, of passes on the CPU.
    """

    median_ms: float
    low_ms: float
    high_ms: float
    min_ms: float
    passes: int
    cpu_ms: float | None = None


@dataclass(frozen=True)
class Memory:
    """The peak, in bytes; ``kind``: "cuda" as torch counts it, "rss" of the process."""

    bytes: int
    kind: str


@dataclass(frozen=True)
class Places:
    """Changed places of the source: how many ran or were traced, of how many, and which did not (``file:line``)."""

    executed: int
    of: int
    missed: tuple[str, ...] = ()


@dataclass(frozen=True)
class EagerLine:
    """A line of a compiled variant that runs outside of graphs, and its share of a warm pass."""

    where: str
    share: float


@dataclass(frozen=True)
class Figures:
    """What a variant that came to its end has measured.

    ``repeatable``: of the original eager variant, whether a second run gave the same bits. ``calls``: the first pass,
    call by call; ``settled``: the last counted pass. ``launches`` and ``operators`` are those of the settled pass: how
    many compiled graphs ran, and how many operators inside them. ``cold_seconds``: the first pass, compilation
    included. ``loaded``: the patched files that were imported. ``origins``: of compiled variants. ``eager_lines``:
    the most expensive first, where graphs break.
    """

    weights: str = ""
    repeatable: bool | None = None
    draws_random: bool = False
    calls: tuple[CallFigures, ...] = ()
    settled: tuple[CallFigures, ...] = ()
    counts: Counts = Counts()
    launches: int = 0
    operators: int = 0
    breaks: tuple[Site, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    limit_hits: tuple[Recompile, ...] = ()
    dropped_frames: tuple[Site, ...] = ()
    cudagraph_skips: tuple[Site, ...] = ()
    cold_seconds: float | None = None
    warm: Warm | None = None
    memory: Memory | None = None
    loaded: tuple[str, ...] = ()
    places: Places | None = None
    origins: tuple[Origin, ...] = ()
    eager_lines: tuple[EagerLine, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """One variant: how its process ended (``tail``: its last lines), and its figures when that was well.

    ``trace``: the folder with torch's structured trace, or "".
    """

    tree: Tree
    kind: Kind
    mode: str | None
    status: Status
    message: str = ""
    tail: tuple[str, ...] = ()
    seconds: float = 0.0
    figures: Figures | None = None
    trace: str = ""

    @property
    def name(self) -> str:
        """``patched compiled (default)``."""
        return f"{self.tree} {self.kind}" + (f" ({self.mode})" if self.mode else "")


@dataclass(frozen=True)
class Distance:
    """How far two sets of tensors are apart; None where there are no floating values.

    ``relative``: the largest difference by the largest magnitude, of the worst tensor, which ``worst`` names.
    ``finite``: how many values were compared; the others are NaN or infinite in one of the two.
    """

    bitwise: bool
    mae: float | None = None
    max: float | None = None
    relative: float | None = None
    worst: str = ""
    finite: int | None = None


@dataclass(frozen=True)
class Comparison:
    """A variant against original eager.

    ``differences``: what no distance can say, one line each (dtype, shape, NaN, aliasing, integers). ``epsilon``: of
    the coarsest floating dtype. ``gradients``, ``state``: None when nothing was trained or changed. ``float64``: mean
    absolute distance of this variant to the float64 reference.
    ``as_exact``: how many tensors differ by much, and are about as near to float64 as those of original eager.
    ``chosen``: what differs since rounding chose otherwise (other tokens); all else is then of so many compiled
    ``calls``, each beside the original on the same arguments. ``rounding``: by how much (relative) they
    differ, where it is more than usual, and eager code whose weights are moved by a rounding does so about as much.
    """

    tree: Tree
    kind: Kind
    mode: str | None
    outputs: Distance
    epsilon: float = 0.0
    differences: tuple[str, ...] = ()
    gradients: Distance | None = None
    state: Distance | None = None
    float64: float | None = None
    as_exact: int = 0
    chosen: tuple[str, ...] = ()
    calls: int = 0
    rounding: float = 0.0


@dataclass(frozen=True)
class ProbeResult:
    """An experiment on one case: how its process ended, and what else it has told, as it was read."""

    name: str
    status: Status
    message: str = ""
    tail: tuple[str, ...] = ()
    seconds: float = 0.0
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Replayed:
    """What changed inputs have shown. ``inputs``: how many ran in both. ``message``: why there is nothing, or "".

    ``raising``: the names of those with which only the original raises; ``failing``: of another size, dtype or mode,
    those with which only what is patched raises; ``zeros``: those with which gradients are zeros in place of none;
    ``different``: what else differs, by input.
    """

    inputs: int
    raising: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    zeros: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    message: str = ""

    @property
    def told(self) -> str:
        """In one line."""
        if not self.inputs:
            return "not compared with changed inputs" + (f": {self.message}" if self.message else "")
        parts = [f"results {'differ' if self.different else 'equal'} with {self.inputs} changed inputs"]
        parts += [f"only the patched code fails with {', '.join(self.failing)}"] if self.failing else []
        parts += [f"gradients are zeros in place of none with {', '.join(self.zeros)}"] if self.zeros else []
        parts += [f"only the original raises with {', '.join(self.raising)}"] if self.raising else []
        return "; ".join(parts)


@dataclass(frozen=True)
class CaseResult:
    """All that was measured of one case. ``compare_error``: why its outputs could not be compared, or "".

    ``cut``: results differ by more than usual, and the time was over before that was told from rounding.
    ``repeated``: a second run of original compiled in the first mode; None when there was none.
    ``classes``: that the model is of, dotted, as its program imports them.
    ``blocks``: paths of lists of modules that may be compiled one by one, each with the model's dotted class.
    ``observations``: what its expressions held, as ``evidence.json`` has it; {} where nobody looked.
    ``replayed``: with changed inputs; None where that was not asked for.
    """

    name: str
    tolerance: float
    train: bool = False
    device: str | None = None
    dtype: str | None = None
    variants: tuple[Measurement, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    compare_error: str = ""
    cut: bool = False
    repeated: Measurement | None = None
    probes: tuple[ProbeResult, ...] = ()
    classes: tuple[str, ...] = ()
    blocks: tuple[tuple[str, ...], ...] = ()
    observations: Mapping[str, Any] = field(default_factory=dict)
    replayed: Replayed | None = None

    def variant(self, tree: Tree, kind: Kind, mode: str | None = None) -> Measurement:
        """The measurement of a variant; one that is not in the results was not run."""
        found = (v for v in self.variants if (v.tree, v.kind, v.mode) == (tree, kind, mode))
        return next(found, Measurement(tree, kind, mode, "skipped"))

    def comparison(self, tree: Tree, kind: Kind, mode: str | None = None) -> Comparison | None:
        """The variant against original eager."""
        return next((c for c in self.comparisons if (c.tree, c.kind, c.mode) == (tree, kind, mode)), None)


@dataclass(frozen=True)
class PatchedFile:
    """A file of the patch as it is shown, SHA-256 before and after, and the changed lines of the patched text."""

    shown: str
    before: str
    after: str
    changed: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Environment:
    """Where it ran, "" for what is not known; ``device``: "cpu" or a GPU's name, ``cuda``: of which CUDA version.

    Empty when no variant came to its end. ``memory``: bytes that the GPU has.
    """

    torch: str = ""
    python: str = ""
    device: str = ""
    cuda: str | None = None
    platform: str = ""
    threads: int | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Source:
    """The state of the tree in git, None for what is not known; ``digest``: of the patch."""

    commit: str | None = None
    dirty: bool | None = None
    digest: str = ""


@dataclass(frozen=True)
class Setting:
    """A setting of PyTorch, in force where what is patched ran compiled."""

    name: str
    value: Any = None

    def __str__(self) -> str:
        return f"{self.name} = {self.value!r}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What was asked to measure."""

    tool: str = ""
    command: tuple[str, ...] = ()
    modes: tuple[str, ...] = ("default",)
    backend: str = "inductor"
    promise: Promise = "bitwise"
    quick: bool = False
    overlay: tuple[PatchedFile, ...] = ()
    tree: Source = Source()
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Results(Plan):
    """A run of the harness. ``seconds``: wall time. ``document``: all of it, as it was read."""

    environment: Environment = Environment()
    started: str = ""
    seconds: float = 0.0
    cases: tuple[CaseResult, ...]
    document: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


def from_json(document: object) -> Results:
    """The parsed document as values; raises ``ResultsError``. Keys that are not known are passed over."""
    try:
        return _results(document)
    except DecodeError as error:
        raise ResultsError(str(error)) from None


def _results(document: object) -> Results:
    if not isinstance(document, Mapping):
        raise DecodeError(f"the results must be a table, not {short(document)}")
    if type(document.get("schema")) is not int or document["schema"] != SCHEMA:
        told = short(document["schema"]) if "schema" in document else "missing"
        raise DecodeError(f"the schema of the results is {told}; this version reads schema {SCHEMA}")
    plan = decoded(Plan, document.get("plan", {}), "plan", ("tool", "modes", "backend", "promise"))
    if not plan.modes:
        raise DecodeError("plan.modes is empty")
    cases = document.get("cases")
    if not isinstance(cases, list):
        raise wrong("cases", "a list", cases)
    known = {name: getattr(plan, name) for name in Plan.__dataclass_fields__}
    known["cases"] = tuple(_case(case, f"cases[{number}]") for number, case in enumerate(cases))
    return decoded(Results, document, "", **known, document=document)


def _case(value: object, path: str) -> CaseResult:
    table = decoded(_Parts, value, path)
    apart: dict[str, Any] = {
        "variants": tuple(_variant(one, f"{path}.variants[{n}]") for n, one in enumerate(table.variants)),
        "comparisons": tuple(_comparison(one, f"{path}.comparisons[{n}]") for n, one in enumerate(table.comparisons)),
        "probes": tuple(_probe(one, f"{path}.probes[{n}]") for n, one in enumerate(table.probes)),
    }
    if table.repeated:
        first = {"tree": "original", "kind": "compiled", "mode": ""}
        apart["repeated"] = _variant({**first, **table.repeated}, f"{path}.repeated")
    if table.replayed:
        failed = table.replayed.get("status") != "ok"
        told = {"inputs": 0, "message": table.replayed.get("message") or table.replayed.get("status")}
        apart["replayed"] = decoded(Replayed, told if failed else table.replayed, f"{path}.replayed")
    case = decoded(CaseResult, value, path, **apart)
    if not 0 <= case.tolerance < math.inf:
        raise wrong(f"{path}.tolerance", "a number from 0", case.tolerance)
    return case


@dataclass(frozen=True)
class _Parts:
    """What is not read by the types of fields alone."""

    variants: tuple[Mapping[str, Any], ...]
    comparisons: tuple[Mapping[str, Any], ...]
    probes: tuple[Mapping[str, Any], ...] = ()
    repeated: Mapping[str, Any] | None = None
    replayed: Mapping[str, Any] | None = None


def _variant(table: Mapping[str, Any], path: str) -> Measurement:
    """What a verdict rests on must be there: of a compiled variant the counts, of a patched one what it imported."""
    found = decoded(Measurement, table, path, ("mode",) if table.get("kind") == "compiled" else ())
    if found.kind == "compiled" and found.mode is None:
        raise wrong(f"{path}.mode", "a string", None)
    needed = (*(_COUNTED if found.kind == "compiled" else ()), *(("loaded",) if found.tree == "patched" else ()))
    return replace(found, figures=decoded(Figures, table, path, needed)) if found.status == "ok" else found


def _comparison(table: Mapping[str, Any], path: str) -> Comparison:
    # of original eager with itself there is nothing to tell but how far it is from float64
    itself = (table.get("tree"), table.get("kind")) == ("original", "eager")
    return decoded(Comparison, table, path, outputs=Distance(True) if itself else decoded(Distance, table, path))


def _probe(table: Mapping[str, Any], path: str) -> ProbeResult:
    figures = {key: value for key, value in table.items() if key not in ProbeResult.__dataclass_fields__}
    return decoded(ProbeResult, table, path, figures=figures)
