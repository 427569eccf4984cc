"""The optimisation report as values, before it is written in any format. Everything here is frozen and measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from patcher.harness.compare import Judgement
from patcher.harness.measured import Results
from patcher.rule import Cost

Category = Cost
Severity = Literal["high", "medium", "low"]
Fate = Literal["removed", "remains", "unknown"]
Outcome = Literal["kept", "not better", "different", "failed", "not tried"]

CATEGORIES: tuple[Category, ...] = ("recompilation", "graph break", "dynamic shape", "CUDA graphs")
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")


@dataclass(frozen=True)
class Impact:
    """What a cause has cost: sums over the counted passes of all cases that showed it.

    ``launches``: compiled graphs that start behind it, or in functions that are compiled by themselves because of it,
    in one settled pass of ``calls`` calls; one that several causes have a part in is divided among them.
    ``compile_seconds``: about what those graphs, or the repeated compilations, took; None where that cannot be told.
    """

    breaks: int = 0
    dropped_frames: int = 0
    recompiles: int = 0
    limit_hits: int = 0
    cudagraph_skips: int = 0
    launches: int = 0
    calls: int = 0
    compile_seconds: float | None = None


@dataclass(frozen=True)
class Advice:
    """A setting of PyTorch that would do away with a cause that no rule mends; ``cost``: what else it brings."""

    flag: str
    effect: str
    cost: str


@dataclass(frozen=True)
class ProposedFix:
    """A rule's finding at a cause. ``diff``: unified, of its unit alone; "" where there is no fix.

    ``why``, ``safety``: the paragraphs "Why it breaks compilation" and "Fix safety" of the rule, as plain paragraphs.
    """

    code: str
    name: str
    where: str
    message: str
    applicability: Literal["safe", "unsafe", "display-only"]
    assumption: str = ""
    strategy: str = ""
    why: str = ""
    safety: str = ""
    diff: str = ""


@dataclass(frozen=True)
class Cause:
    """One thing that a run showed to cost something.

    ``where``: ``file:line``; ``function``: its name. ``trigger``: that line of source, stripped. ``reason``: PyTorch's
    one line. ``explanation``, ``hints``: PyTorch's own words. ``code``: numbered lines around. ``registry``: the id in
    PyTorch's graph-break registry ("GB0170") and ``reference`` its page. ``verify``: a command that shows whether it is
    gone. ``cases``: in which it was seen. ``steady``: whether a second run of the same code showed it too. ``fate``:
    whether it is still there with the fixes; ``after``: what it costs then. ``note``: ours: what one should know
    before acting on it.
    """

    number: int
    category: Category
    severity: Severity
    title: str
    where: str
    function: str
    trigger: str
    reason: str
    impact: Impact
    cases: tuple[str, ...]
    code: tuple[tuple[int, str], ...] = ()
    explanation: str = ""
    hints: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()
    registry: str = ""
    reference: str = ""
    fixes: tuple[ProposedFix, ...] = ()
    verify: str = ""
    steady: bool = True
    fate: Fate = "unknown"
    after: Impact | None = None
    note: str = ""


@dataclass(frozen=True)
class Remark:
    """Something at a place (``file:line``) that is no cause: a finding without a cost, or what is fine, and why."""

    where: str
    what: str
    why: str
    code: str = ""


@dataclass(frozen=True)
class CompileSite:
    """A place in the repository that compiles something or has to do with it.

    ``call``: its source on one line. ``target``: what is compiled. ``arguments``: those given, as written. ``remarks``:
    what is wrong with it, or good to know, a sentence each.
    """

    where: str
    call: str
    target: str
    arguments: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table under a title, all cells as text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class GraphPair:
    """A graph as text, an operator a line, before and after a rewrite. ``name``: of its files, without an ending."""

    name: str
    note: str
    before: str
    after: str


@dataclass(frozen=True)
class Diagnostic:
    """An experiment on one case: a table and what follows from it. ``status``: "ok", or how it has ended.

    ``tables``: those that come after the conclusions. ``graphs``: what is kept in files beside the report.
    """

    name: str = ""
    title: str = ""
    case: str = ""
    status: str = "ok"
    message: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    conclusions: tuple[str, ...] = ()
    seconds: float = 0.0
    tables: tuple[Table, ...] = ()
    graphs: tuple[GraphPair, ...] = ()

    @property
    def option(self) -> str:
        """What asks for it on the command line."""
        return f"--only {self.name}"


@dataclass(frozen=True)
class Totals:
    """What one state of the tree costs, over all cases: sums of counted passes.

    ``launches``, ``operators`` (captured ones that ran in graphs), ``warm_ms``: of one pass.
    """

    breaks: int
    recompiles: int
    launches: int
    dropped_frames: int = 0
    limit_hits: int = 0
    cudagraph_skips: int = 0
    warm_ms: float | None = None
    operators: int = 0


@dataclass(frozen=True)
class Tried:
    """A fix or a setting, or fixes that only go together, and what became of it."""

    fixes: tuple[str, ...]
    where: tuple[str, ...]
    outcome: Outcome
    reason: str
    diff: str = ""


@dataclass(frozen=True)
class Proof:
    """What a search has done: each fix, and the state that the tree ends in against the original.

    ``before``: None when the original does not come to its end compiled. ``restore``: the command that undoes it.
    ``patch``: the file of what was kept, where that is not written yet.
    """

    tried: tuple[Tried, ...]
    before: Totals | None
    after: Totals | None
    measurements: int
    ending: str
    results: Results | None = None
    judgement: Judgement | None = None
    restore: str = ""
    patch: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """The whole report.

    ``facts``: environment and settings, a line each. ``problems``: what went wrong while measuring, and what was not
    the same in a second run. ``static_only``: findings that the run did not confirm. ``fine``: what looks like a cause
    and is none. ``counted``: what was counted first, with a backend that generates no code. ``trace``: what was made of
    the structured trace, "" when none was asked for. ``effect``: what all fixes together change, as counts before and
    after; "" when that was not measured.
    """

    title: str
    command: str
    started: str
    facts: tuple[str, ...]
    problems: tuple[str, ...]
    causes: tuple[Cause, ...]
    static_only: tuple[Remark, ...]
    fine: tuple[Remark, ...]
    sites: tuple[CompileSite, ...]
    diagnostics: tuple[Diagnostic, ...]
    results: Results | None
    judgement: Judgement | None
    counted: Results | None = None
    trace: str = ""
    effect: str = ""
    proof: Proof | None = None
