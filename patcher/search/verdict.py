"""What a search has come to: a verdict against eager, as a value, as JSON, and in four lines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from patcher.harness.measured import Replayed

Word = Literal["optimized", "already-best", "do-not-compile", "failed"]

UNITS = {"latency": "ms", "throughput": "ms", "startup": "s", "memory": "MB"}
GRAPHS = "graphs"  # the goal where no time is measured: counts decide

#: Why something is not kept: its results differ, it does not run, it is no gain, or the budget was used up.
Fate = Literal["different", "failed", "not better", "not tried"]
#: Who says that a fix is right: source alone; the types that a run has seen; nobody but the stated assumption.
Grade = Literal["proven", "measured", "assumed"]
_N = TypeVar("_N", int, float)


@dataclass(frozen=True)
class Kept:
    """A fix that was kept. ``gain``: of leaving it in, in the unit of the goal; None: not measured by itself."""

    code: str
    file: str
    line: int
    grade: Grade
    assumption: str = ""
    gain_ms: float | None = None


@dataclass(frozen=True)
class Dropped:
    """A fix or a setting that was tried and not kept."""

    what: str
    reason: str
    outcome: Fate = "not better"


@dataclass(frozen=True)
class Pair:
    """A count, before and after; None where it was not measured."""

    before: int | None = None
    after: int | None = None


@dataclass(frozen=True)
class Verdict:
    """The result of a search. Times in ms of one call, the mean of the recorded ones; None where nothing was measured.

    ``cold_s``: the first pass, compilation included; ``call``: how to compile; ``in_diff``: what of that the diff
    writes. ``judged``: what the goal measures, before and after, where that is no time of a call. ``said``: why it
    failed. ``before_cut``: the budget was over before the original had been compiled. ``noise``: how far times of one
    call were apart, where that is far. ``equivalent``: to eager code; what is kept may equal the compiled original
    alone.
    """

    word: Word
    goal: str = "latency"
    device: str = ""
    torch: str = ""
    seconds: float = 0.0
    seconds_to_first: float | None = None
    eager_ms: float | None = None
    before_ms: float | None = None
    before_cut: bool = False
    after_ms: float | None = None
    cold_s: float | None = None
    before_cold_s: float | None = None
    warm_cold_s: float | None = None
    equivalent: bool = False
    max_difference: float | None = None
    breaks: Pair = Pair()
    recompiles: Pair = Pair()
    graphs: Pair = Pair()
    ops_in_graphs: Pair = Pair()
    call: str = ""
    in_diff: str = ""
    judged: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    fixes: tuple[Kept, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    files: tuple[str, ...] = ()
    said: str = ""
    by_call: str = ""
    noise: str = ""
    replayed: Replayed | None = None
    interrupted: bool = False
    written: bool = False

    @property
    def status(self) -> int:
        """The exit status: 0 optimized or already best, 1 nothing that pays, 2 failed."""
        return {"optimized": 0, "already-best": 0, "do-not-compile": 1, "failed": 2}[self.word]

    def json(self) -> dict[str, Any]:
        """The document of ``--json``, schema 1."""
        pairs = {name: [pair.before, pair.after] for name, pair in self._pairs()}
        own = (
            "device torch seconds seconds_to_first eager_ms before_ms after_ms cold_s before_cold_s warm_cold_s "
            "equivalent max_difference call settings by_call noise interrupted written"
        )
        return {
            "schema": 1,
            "verdict": self.word,
            **{name: getattr(self, name) for name in own.split()},
            **pairs,
            "fixes": [vars(fix) for fix in self.fixes],
            "dropped": [{"code": one.what, "reason": one.reason, "outcome": one.outcome} for one in self.dropped],
            "files": list(self.files),
            "message": self.said,
            "replayed": vars(self.replayed) if self.replayed else None,
        }

    def _pairs(self) -> list[tuple[str, Pair]]:
        names = ("breaks", "recompiles", "graphs", "ops_in_graphs")
        return [(name, getattr(self, name)) for name in names]

    @property
    def lines(self) -> list[str]:
        """What is printed last; nothing more is needed to act."""
        return [*self._lines, *([self.noise] if self.noise and self.word != "failed" else [])]

    @property
    def _lines(self) -> list[str]:
        if self.word == "failed":
            return [f"failed: {self.said}. Nothing was changed."]
        if self.goal == GRAPHS and self.word == "do-not-compile":
            return [f"do not compile this model: {self.said}. Nothing was changed.", *self._not_tried]
        if self.goal == GRAPHS:
            return self._counted()
        before = ": not measured (--budget gives more)" if self.before_cut else f" {_ms(self.before_ms)}"
        first = f"{self.judged}eager {_ms(self.eager_ms)} | compiled as it was{before}"
        if self.word == "do-not-compile" and not self.equivalent:
            told = f"{first}: do not compile this model on this device ({self.device}). Nothing was changed."
            return [told, self.said, *self._not_tried]
        if self.word == "do-not-compile":
            known = [ms for ms in (self.before_ms, self.after_ms) if ms is not None]
            best = f" | best {_ms(min(known))}" if self.after_ms is not None else ""
            where = f"for {self.goal} on this device ({self.device}); {self.against_eager}"
            told = f"{first}{best}: do not compile this model {where}. Nothing was changed."
            return [told, *([f"why: {self.said}"] if self.said else []), *self._not_tried]
        if self.word == "already-best":
            told = f"{first} ({_times(self.eager_ms, self.before_ms)} eager): nothing was faster. Nothing was changed."
            return [told, *filter(None, [self.by_call]), *self._not_tried]
        gains = [f"{_times(self.eager_ms, self.after_ms)} eager"]
        gains += [f"{_times(self.before_ms, self.after_ms)} compiled"] if self.before_ms else []
        difference = "not known" if self.max_difference is None else f"{self.max_difference:.3g}"
        now = f"{first} | now {_ms(self.after_ms)} ({', '.join(gains)}), {self._equal} (max difference {difference})"
        lines = [now, self._kept(), *filter(None, [self._replayed])]
        passes = (("first pass", self.cold_s), ("before", self.before_cold_s), ("later processes", self.warm_cold_s))
        cold = ", ".join(f"{word} {s:.0f} s" for word, s in passes if s is not None and self.cold_s is not None)
        lines.append("          ".join(filter(None, (self._how, cold))))
        return [*lines, *filter(None, (self.by_call, self.said)), *self._not_tried]

    @property
    def _equal(self) -> str:
        equal = "compiled calls equal up to rounding" if self.by_call else "results equal"
        return equal if self.equivalent else "results as compiled before"

    @property
    def _replayed(self) -> str:
        """What the kept fixes do to other inputs than the recorded ones."""
        return (self.replayed or Replayed(0)).told if self.fixes or self.replayed else ""

    @property
    def _not_tried(self) -> list[str]:
        """What might still be faster, where the budget was over first."""
        what = [one.what.removeprefix("no fixes, ") for one in self.dropped if one.outcome == "not tried"]
        why, more = ("it was interrupted", "") if self.interrupted else ("the budget was over", "; --budget gives more")
        return [f"not tried, for {why}: {', '.join(what)}{more}"] if what else []

    @property
    def _how(self) -> str:
        return f"compile with: {self.call}{f' ({self.in_diff})' if self.in_diff else ''}" if self.call else ""

    @property
    def against_eager(self) -> str:
        """What is said where nothing is faster than eager beyond noise."""
        faster = bool(self.after_ms and self.eager_ms and self.after_ms < self.eager_ms)
        told = "no gain over eager beyond noise" if faster else "eager is fastest"
        return f"{told} of what was measured" if self._not_tried else told

    def _counted(self) -> list[str]:
        """The lines where counts decide."""
        pairs = self._pairs()[:3]
        if self.word == "already-best":
            now = ", ".join(f"{name} {pair.before}" for name, pair in pairs)
            why = "nothing was kept" if self._not_tried else "no fix gave fewer graphs"
            return [f"{now}: {why}. Nothing was changed.", *self._not_tried]
        now = ", ".join(f"{name} {_count(pair.before)} -> {_count(pair.after)}" for name, pair in pairs)
        lines = [f"{now}, {self._equal}", self._kept(), self._replayed, self._how, self.said]
        return [*filter(None, lines), *self._not_tried]

    def _kept(self) -> str:
        tried = [one for one in self.dropped if one.outcome != "not tried"]
        files = len({fix.file for fix in self.fixes})
        grades = []
        for grade in get_args(Grade):
            some = [fix for fix in self.fixes if fix.grade == grade]
            why = next((fix.assumption for fix in some if fix.assumption), "")
            grades += [f"{len(some)} {grade}" + (f": {why}" if why else "")] if some else []
        made = f"{_many(len(self.fixes), 'fix')} in {_many(files, 'file')} ({', '.join(grades)})"
        told = [made] if self.fixes else []
        told += [_many(len(self.settings), "setting")] if self.settings else []
        return f"kept {' and '.join(told) or 'nothing'}; {len(tried)} tried and dropped"


def relative(path: str) -> str:
    """A path below the working folder, as it is typed from there."""
    below = os.path.relpath(path)
    return path if below.startswith(os.pardir) else below


def _ms(value: float | None) -> str:
    return "failed" if value is None else f"{value:.3g} ms" if value < 100 else f"{value:.1f} ms"


def _count(value: int | None) -> str:
    return "failed" if value is None else str(value)


def _times(before: float | None, after: float | None) -> str:
    return f"{before / after:.2g}x" if before and after else "?x"


def _many(number: int, word: str) -> str:
    plural = f"{word}es" if word.endswith("x") else f"{word}s"
    return f"{number} {word if number == 1 else plural}"


def total(values: Sequence[_N | None]) -> _N | None:
    """The sum; None where one is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None
