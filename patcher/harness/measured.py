"""What ``results.json`` holds, as frozen values: what was measured, and nothing about what it means."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args

SCHEMA = 1

Tree = Literal["original", "patched"]
Kind = Literal["eager", "compiled", "float64"]
Status = Literal["ok", "case-error", "error", "compile-error", "timeout", "out-of-memory", "exited", "skipped"]
Promise = Literal["bitwise", "tolerance"]

_T = TypeVar("_T")


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
    where: str
    guard: str
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
    breaks: int
    recompiles: int
    graphs: int
    launches: int
    operators: int


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

    ``cpu_ms`` with its quartiles: CPU time of all threads, of passes on the CPU.
    """

    median_ms: float
    low_ms: float
    high_ms: float
    min_ms: float
    passes: int
    cpu_ms: float | None = None
    cpu_low_ms: float | None = None
    cpu_high_ms: float | None = None


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
    missed: tuple[str, ...]


class EagerLine(NamedTuple):
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

    ``reused``: whether it is of an earlier run. ``trace``: the folder with torch's structured trace, or "".
    """

    tree: Tree
    kind: Kind
    mode: str | None
    status: Status
    message: str = ""
    tail: tuple[str, ...] = ()
    seconds: float = 0.0
    figures: Figures | None = None
    reused: bool = False
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
    absolute distance of this variant to the float64 reference. ``own_eager``: of patched compiled to patched eager.
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
    own_eager: float | None = None
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
    those with which only what is patched raises; ``different``: what else differs, by input.
    """

    inputs: int
    raising: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    message: str = ""

    @property
    def told(self) -> str:
        """In one line."""
        if not self.inputs:
            return "not compared with changed inputs" + (f": {self.message}" if self.message else "")
        parts = [f"results {'differ' if self.different else 'equal'} with {self.inputs} changed inputs"]
        parts += [f"only the patched code fails with {', '.join(self.failing)}"] if self.failing else []
        parts += [f"only the original raises with {', '.join(self.raising)}"] if self.raising else []
        return "; ".join(parts)


@dataclass(frozen=True)
class CaseResult:
    """All that was measured of one case. ``compare_error``: why its outputs could not be compared, or "".

    ``cut``: results differ by more than usual, and the time was over before that was told from rounding.
    ``repeated``: a second run of original compiled in the first mode, with ``repeated_status`` None when there was none
    and no figures when it was not ok. ``classes``: that the model is of, dotted, as its program imports them.
    ``blocks``: paths of lists of modules that may be compiled one by one, each with the model's dotted class.
    ``observations``: what its expressions held, as ``evidence.json`` has it; {} where nobody looked.
    ``replayed``: with changed inputs; None where that was not asked for.
    """

    name: str
    tolerance: float
    train: bool
    device: str | None
    dtype: str | None
    variants: tuple[Measurement, ...]
    comparisons: tuple[Comparison, ...]
    compare_error: str = ""
    cut: bool = False
    repeated: Figures | None = None
    repeated_status: Status | None = None
    repeated_message: str = ""
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

    ``memory``: bytes that the GPU has.
    """

    torch: str
    python: str
    device: str
    cuda: str | None
    platform: str
    threads: int | None
    memory: int | None = None


@dataclass(frozen=True)
class Results:
    """A run of the harness. ``seconds``: wall time. ``document``: all of it, as it was read.

    ``settings``: of PyTorch, in force where what is patched ran compiled.
    """

    tool: str
    command: tuple[str, ...]
    commit: str | None
    dirty: bool | None
    digest: str
    modes: tuple[str, ...]
    backend: str
    promise: Promise
    quick: bool
    overlay: tuple[PatchedFile, ...]
    environment: Environment
    started: str
    seconds: float
    cases: tuple[CaseResult, ...]
    settings: tuple[str, ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


def from_json(document: object) -> Results:
    """The parsed document as values; raises ``ResultsError``. Keys that are not known are passed over."""
    if not isinstance(document, Mapping):
        raise ResultsError(f"the results must be a table, not {_short(document)}")
    if type(document.get("schema")) is not int or document["schema"] != SCHEMA:
        told = _short(document["schema"]) if "schema" in document else "missing"
        raise ResultsError(f"the schema of the results is {told}; this version reads schema {SCHEMA}")
    root = _Table(document, "")
    plan = root.table("plan")
    tree = plan.maybe("tree", plan.table) or _Table({}, "plan.tree")
    modes = plan.texts("modes")
    if not modes:
        raise ResultsError("plan.modes is empty")
    return Results(
        tool=plan.text("tool"),
        command=plan.texts("command"),
        commit=tree.maybe("commit", tree.text),
        dirty=tree.maybe("dirty", tree.flag),
        digest=tree.maybe("digest", tree.text) or "",
        modes=modes,
        backend=plan.text("backend"),
        promise=cast(Promise, plan.choice("promise", Promise)),
        quick=plan.flag("quick"),
        overlay=tuple(_patched_file(item) for item in plan.tables("overlay")),
        environment=_environment(root.table("environment")),
        started=root.text("started"),
        seconds=root.number("seconds"),
        cases=tuple(_case(item) for item in root.tables("cases")),
        settings=tuple(_setting(item) for item in plan.maybe("settings", plan.tables) or ()),
        document=document,
    )


def _patched_file(table: _Table) -> PatchedFile:
    changed = []
    for pair in table.maybe("changed", table.items) or []:
        if not isinstance(pair, list) or len(pair) != 2 or not all(type(line) is int for line in pair):
            raise table.wrong("changed", "a list of pairs of lines", pair)
        changed.append((pair[0], pair[1]))
    return PatchedFile(table.text("shown"), table.text("before"), table.text("after"), tuple(changed))


def _setting(table: _Table) -> str:
    return f"{table.text('name')} = {table.values.get('value')!r}"


def _environment(table: _Table) -> Environment:
    # empty when no variant came to its end
    return Environment(
        torch=table.maybe("torch", table.text) or "",
        python=table.maybe("python", table.text) or "",
        device=table.maybe("device", table.text) or "",
        cuda=table.maybe("cuda", table.text),
        platform=table.maybe("platform", table.text) or "",
        threads=table.maybe("threads", table.whole),
        memory=table.maybe("memory", table.whole),
    )


def _case(table: _Table) -> CaseResult:
    tolerance = table.number("tolerance")
    if not 0 <= tolerance < math.inf:
        raise table.wrong("tolerance", "a number from 0", tolerance)
    again = table.maybe("repeated", table.table)
    status = cast(Status, again.choice("status", Status)) if again else None
    return CaseResult(
        name=table.text("name"),
        tolerance=tolerance,
        train=table.maybe("train", table.flag) or False,
        device=table.maybe("device", table.text),
        dtype=table.maybe("dtype", table.text),
        variants=tuple(_measurement(item) for item in table.tables("variants")),
        comparisons=tuple(_comparison(item) for item in table.tables("comparisons")),
        compare_error=table.maybe("compare_error", table.text) or "",
        cut=table.maybe("cut", table.flag) or False,
        repeated=_figures(again, "original", "compiled") if again and status == "ok" else None,
        repeated_status=status,
        repeated_message=(again.maybe("message", again.text) or "") if again else "",
        probes=tuple(_probe(item) for item in table.maybe("probes", table.tables) or []),
        classes=table.maybe("classes", table.texts) or (),
        blocks=tuple(tuple(map(str, one)) for one in table.maybe("blocks", table.items) or ()),
        observations=table.maybe("observations", lambda key: table.table(key).values) or {},
        replayed=table.maybe("replayed", lambda key: _replayed(table.table(key))),
    )


def _replayed(table: _Table) -> Replayed:
    if (status := table.choice("status", Status)) != "ok":
        return Replayed(0, message=table.maybe("message", table.text) or status)
    raising, failing, different = map(table.texts, ("raising", "failing", "different"))
    return Replayed(table.whole("inputs"), raising, failing, different)


def _probe(table: _Table) -> ProbeResult:
    known = ("name", "status", "message", "tail", "seconds")
    return ProbeResult(
        name=table.text("name"),
        status=cast(Status, table.choice("status", Status)),
        message=table.maybe("message", table.text) or "",
        tail=table.maybe("tail", table.texts) or (),
        seconds=table.maybe("seconds", table.number) or 0.0,
        figures={key: value for key, value in table.values.items() if key not in known},
    )


def _variant(table: _Table) -> tuple[Tree, Kind, str | None]:
    tree, kind = table.choice("tree", Tree), table.choice("kind", Kind)
    mode = table.text("mode") if kind == "compiled" else None
    return cast(Tree, tree), cast(Kind, kind), mode


def _measurement(table: _Table) -> Measurement:
    tree, kind, mode = _variant(table)
    status = cast(Status, table.choice("status", Status))
    return Measurement(
        tree,
        kind,
        mode,
        status,
        message=table.maybe("message", table.text) or "",
        tail=table.maybe("tail", table.texts) or (),
        seconds=table.maybe("seconds", table.number) or 0.0,
        figures=_figures(table, tree, kind) if status == "ok" else None,
        reused=table.maybe("reused", table.flag) or False,
        trace=table.maybe("trace", table.text) or "",
    )


def _eager_lines(table: _Table) -> tuple[EagerLine, ...]:
    rows = table.maybe("eager_lines", table.tables) or []
    return tuple(EagerLine(row.text("where"), row.number("share")) for row in rows)


def _figures(table: _Table, tree: Tree, kind: Kind) -> Figures:
    """What a verdict rests on must be there: of a compiled variant the counts, of a patched one what it imported."""
    compiled = kind == "compiled"
    counts = table.table("counts") if compiled else table.maybe("counts", table.table)

    def sites(key: str, read: Callable[[_Table], _T]) -> tuple[_T, ...]:
        items = table.tables(key) if compiled else table.maybe(key, table.tables) or []
        return tuple(read(item) for item in items)

    return Figures(
        weights=table.maybe("weights", table.text) or "",
        repeatable=table.maybe("repeatable", table.flag),
        draws_random=table.maybe("draws_random", table.flag) or False,
        calls=tuple(_call(item) for item in table.maybe("calls", table.tables) or []),
        settled=tuple(_call(item) for item in table.maybe("settled", table.tables) or []),
        counts=_counts(counts) if counts else Counts(),
        launches=table.whole("launches") if compiled else table.maybe("launches", table.whole) or 0,
        operators=table.whole("operators") if compiled else table.maybe("operators", table.whole) or 0,
        breaks=sites("breaks", _site),
        recompiles=sites("recompiles", _recompile),
        limit_hits=sites("limit_hits", _recompile),
        dropped_frames=sites("dropped_frames", _site),
        cudagraph_skips=sites("cudagraph_skips", _site),
        cold_seconds=table.maybe("cold_seconds", table.number),
        warm=table.maybe("warm", lambda key: _warm(table.table(key))),
        memory=table.maybe("memory", lambda key: _memory(table.table(key))),
        loaded=table.texts("loaded") if tree == "patched" else table.maybe("loaded", table.texts) or (),
        places=table.maybe("places", lambda key: _places(table.table(key))),
        eager_lines=_eager_lines(table),
        origins=tuple(_origin(item) for item in table.maybe("origins", table.tables) or []),
    )


def _counts(table: _Table) -> Counts:
    return Counts(
        breaks=table.whole("breaks"),
        recompiles=table.whole("recompiles"),
        graphs=table.whole("graphs"),
        limit_hits=table.whole("limit_hits"),
        dropped_frames=table.whole("dropped_frames"),
        cudagraph_skips=table.whole("cudagraph_skips"),
    )


def _call(table: _Table) -> CallFigures:
    return CallFigures(
        seconds=table.number("seconds"),
        breaks=table.maybe("breaks", table.whole) or 0,
        recompiles=table.maybe("recompiles", table.whole) or 0,
        graphs=table.maybe("graphs", table.whole) or 0,
        launches=table.maybe("launches", table.whole) or 0,
        operators=table.maybe("operators", table.whole) or 0,
    )


def _site(table: _Table) -> Site:
    return Site(
        where=table.maybe("where", table.text) or "",
        reason=table.text("reason"),
        count=_count(table),
        explanation=table.maybe("explanation", table.text) or "",
        hints=table.maybe("hints", table.texts) or (),
        context=table.maybe("context", table.text) or "",
        url=table.maybe("url", table.text) or "",
        stack=table.maybe("stack", table.texts) or (),
        around=table.maybe("around", table.texts) or (),
    )


def _recompile(table: _Table) -> Recompile:
    return Recompile(
        function=table.text("function"),
        where=table.maybe("where", table.text) or "",
        guard=table.maybe("guard", table.text) or "",
        count=_count(table),
        source=table.maybe("source", table.text) or "",
        nested=table.maybe("nested", table.flag) or False,
    )


def _origin(table: _Table) -> Origin:
    return Origin(
        where=table.text("where"),
        function=table.text("function"),
        resumed=table.maybe("resumed", table.flag) or False,
        nested=table.maybe("nested", table.flag) or False,
        graphs=table.maybe("graphs", table.whole) or 0,
        launches=table.maybe("launches", table.whole) or 0,
        operators=table.maybe("operators", table.whole) or 0,
        compile_seconds=table.maybe("compile_seconds", table.number),
        seconds=table.maybe("seconds", table.number),
        stack=tuple(table.maybe("stack", table.texts) or ()),
    )


def _count(table: _Table) -> int:
    count = table.maybe("count", table.whole)
    return 1 if count is None else count


def _warm(table: _Table) -> Warm:
    median, low, high = table.number("median_ms"), table.number("low_ms"), table.number("high_ms")
    busy = (table.maybe(key, table.number) for key in ("cpu_ms", "cpu_low_ms", "cpu_high_ms"))
    return Warm(median, low, high, table.number("min_ms"), table.whole("passes"), *busy)


def _memory(table: _Table) -> Memory:
    return Memory(table.whole("bytes"), table.text("kind"))


def _places(table: _Table) -> Places:
    return Places(table.whole("executed"), table.whole("of"), table.maybe("missed", table.texts) or ())


def _comparison(table: _Table) -> Comparison:
    tree, kind, mode = _variant(table)
    return Comparison(
        tree,
        kind,
        mode,
        # of original eager with itself there is nothing to tell but how far it is from float64
        outputs=Distance(True) if (tree, kind) == ("original", "eager") else _distance(table),
        epsilon=table.maybe("epsilon", table.number) or 0.0,
        differences=table.maybe("differences", table.texts) or (),
        gradients=table.maybe("gradients", lambda key: _distance(table.table(key))),
        state=table.maybe("state", lambda key: _distance(table.table(key))),
        float64=table.maybe("float64", table.number),
        own_eager=table.maybe("own_eager", table.number),
        as_exact=table.maybe("as_exact", table.whole) or 0,
        chosen=table.maybe("chosen", table.texts) or (),
        calls=table.maybe("calls", table.whole) or 0,
        rounding=table.maybe("rounding", table.number) or 0.0,
    )


def _distance(table: _Table) -> Distance:
    return Distance(
        bitwise=table.flag("bitwise"),
        mae=table.maybe("mae", table.number),
        max=table.maybe("max", table.number),
        relative=table.maybe("relative", table.number),
        worst=table.maybe("worst", table.text) or "",
        finite=table.maybe("finite", table.whole),
    )


@dataclass(frozen=True)
class _Table:
    """A JSON object, and the path to it for messages. Every reader raises ``ResultsError``."""

    values: Mapping[str, Any]
    path: str

    def maybe(self, key: str, read: Callable[[str], _T]) -> _T | None:
        """What ``read`` makes of the key, or None where it is null or not there."""
        return None if self.values.get(key) is None else read(key)

    def text(self, key: str) -> str:
        value = self._value(key)
        if not isinstance(value, str):
            raise self.wrong(key, "a string", value)
        return value

    def flag(self, key: str) -> bool:
        value = self._value(key)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false", value)
        return value

    def whole(self, key: str) -> int:
        value = self._value(key)
        if type(value) is not int or value < 0:
            raise self.wrong(key, "a whole number from 0", value)
        return value

    def number(self, key: str) -> float:
        """A number; the strings "nan", "inf" and "-inf" stand for those that JSON has not."""
        value = self._value(key)
        if value in ("nan", "inf", "-inf"):
            return float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "a number", value)
        try:
            return float(value)
        except OverflowError:
            raise self.wrong(key, "a number", value) from None

    def choice(self, key: str, literal: object) -> str:
        value, known = self._value(key), get_args(literal)
        if value not in known:
            raise self.wrong(key, f"one of {', '.join(known)}", value)
        return str(value)

    def items(self, key: str) -> list[Any]:
        value = self._value(key)
        if not isinstance(value, list):
            raise self.wrong(key, "a list", value)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.items(key)
        if not all(isinstance(item, str) for item in value):
            raise self.wrong(key, "a list of strings", value)
        return tuple(value)

    def table(self, key: str) -> _Table:
        value = self._value(key)
        if not isinstance(value, Mapping):
            raise self.wrong(key, "a table", value)
        return _Table(value, self._named(key))

    def tables(self, key: str) -> list[_Table]:
        values = self.items(key)
        for value in values:
            if not isinstance(value, Mapping):
                raise self.wrong(key, "a list of tables", value)
        return [_Table(value, f"{self._named(key)}[{index}]") for index, value in enumerate(values)]

    def wrong(self, key: str, expected: str, value: object) -> ResultsError:
        return ResultsError(f"{self._named(key)} must be {expected}, not {_short(value)}")

    def _value(self, key: str) -> Any:
        if key not in self.values:
            raise ResultsError(f"{self._named(key)} is missing")
        return self.values[key]

    def _named(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def _short(value: object) -> str:
    try:
        told = repr(value)
    except ValueError:  # a whole number of more digits than Python likes to print
        told = "a huge number"
    return told if len(told) <= 60 else told[:57] + "..."
