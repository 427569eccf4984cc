"""What other sizes cost, and which dimensions to mark: from the figures of the probes vary-batch and vary-sequence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from patcher.diagnose.diagnosis import Diagnostic
from patcher.diagnose.groups import Guard, parsed
from patcher.diagnose.groups import told as about
from patcher.harness.measured import CaseResult
from patcher.words import code

Figures = Mapping[str, Any]
Row = tuple[str, ...]

SETTINGS = {
    "automatic": "as it is",
    "marked": "maybe_mark_dynamic",
    "dynamic": "dynamic=True",
    "unbacked": "mark_unbacked",
}
COLUMNS = ("setting", "size", "graphs", "breaks", "recompiles", "limit hits", "launches")
_MARKING = {"marked": "torch._dynamo.maybe_mark_dynamic", "unbacked": "torch._dynamo.decorators.mark_unbacked"}
_KEYS = ("graphs", "breaks", "recompiles", "limit_hits", "launches")
_SIZES = 4  # of one call that are shown
_LEAST = 0.9  # of the operators in graphs: fewer, and less is compiled than before


@dataclass(frozen=True)
class Cost:
    """Of one setting: sums over both rounds; ``launches`` and ``operators`` are those of the second, settled one."""

    breaks: int
    recompiles: int
    limit_hits: int
    dropped_frames: int
    launches: int
    operators: int

    @staticmethod
    def of(setting: Figures) -> Cost:
        """Raises ``KeyError`` for a setting that is not ok."""
        again = setting["again"]
        rounds = [*setting["steps"], again]
        summed = ("breaks", "recompiles", "limit_hits", "dropped_frames")
        sums = {key: sum(row[key] for row in rounds) for key in summed}
        return Cost(**sums, launches=again["launches"], operators=again["operators"])

    def worse_than(self, other: Cost) -> str:
        """What else has become worse, "" for nothing: fewer recompilations of less compiled code are no gain."""
        words = {
            "breaks": "breaks",
            "limit_hits": "recompile-limit hits",
            "dropped_frames": "dropped frames",
            "launches": "launches",
        }
        told = [
            f"{word} {getattr(other, name)} -> {getattr(self, name)}"
            for name, word in words.items()
            if getattr(self, name) > getattr(other, name)
        ]
        if self.operators < _LEAST * other.operators:
            told.append(f"operators in graphs {other.operators} -> {self.operators}")
        return ", ".join(told)


def varied(case: CaseResult, figures: Figures) -> Diagnostic:
    """The table of all settings, and which dimensions are worth marking."""
    settings: list[Figures] = figures["settings"]
    return Diagnostic(
        message=_message(figures),
        columns=COLUMNS,
        rows=tuple(row for setting in settings for row in _rows(setting, figures)),
        conclusions=tuple(_conclusions(figures, {setting["name"]: setting for setting in settings})),
    )


def _message(figures: Figures) -> str:
    of = "sizes that were chosen for it" if figures["chosen"] else "the case's own calls"
    told = f"{of}; backend {figures['backend']}, which generates no code"
    return told + (", compiled as the case compiles it" if figures.get("own_compile") else "")


def _rows(setting: Figures, figures: Figures) -> list[Row]:
    name = SETTINGS[setting["name"]]
    if setting["status"] != "ok":
        return [(name, setting["status"], *("-" for _ in _KEYS))]
    labels = [_label(step, figures) for step in figures["steps"]]
    rows = zip((*labels, "all again"), (*setting["steps"], setting["again"]), strict=True)
    return [(name, label, *(str(row[key]) for key in _KEYS)) for label, row in rows]


def _label(step: Figures, figures: Figures) -> str:
    sizes = [str(size) for size in step["sizes"]]
    told = ", ".join(sizes if len(sizes) <= _SIZES else [*sizes[: _SIZES - 2], "...", sizes[-1]])
    return told if figures["chosen"] else f"call {step['call']}" + (f" ({told})" if told else "")


def _conclusions(figures: Figures, settings: Mapping[str, Figures]) -> list[str]:
    plain = settings["automatic"]
    if plain["status"] != "ok":
        return [f"As it is, it does not run: {plain['message']}."]
    cost = Cost.of(plain)
    sizes = {"batch": "batch sizes", "sequence": "sequence lengths"}[figures["dimension"]]
    if not cost.launches:
        return ["No compiled graph ran: this says nothing."]
    if not cost.recompiles and not cost.limit_hits:
        return [f"Nothing is compiled again for other {sizes}: there is no need to mark anything."]
    told = [f"As it is: {_times(cost.recompiles)}{_limit(cost)} over all {sizes}.", *_besides(figures)]
    if not figures["marks"]:
        told.append("The model itself gets no tensor whose size varies: there is nothing to mark before the call.")
    marked = settings.get("marked")
    for name in ("marked", "dynamic"):
        told += _against(name, figures, settings.get(name), cost)
    if marked and marked["status"] == "ok" and Cost.of(marked).recompiles:
        told.append(f"With the marks, still compiled again: {_reasons(marked)}.")
        # a size of 1 is compiled for itself, marked or not, unless the dimension is unbacked
        told += _against("unbacked", figures, settings.get("unbacked"), Cost.of(marked))
    return told


def _besides(figures: Figures) -> list[str]:
    """What else the calls differ in, so that not all that is counted is due to the sizes."""
    also = figures.get("also") or []
    dims = [dimensions(mark for mark in also if mark["dims"])] if any(mark["dims"] for mark in also) else []
    some = [code(path) for path in _grouped(mark for mark in also if not mark["dims"])]
    parts = [*(f"also differ in {told}" for told in dims), *([f"do not all have {' and '.join(some)}"] if some else [])]
    if not parts:
        return []
    asked = figures["dimension"]
    return [
        f"The calls {' and '.join(parts)}: the counts are of that too. Let `calls()` take a parameter `{asked}`,"
        f" a whole number with a default, to see the {asked} size by itself."
    ]


def _times(recompiles: int) -> str:
    return "1 recompilation" if recompiles == 1 else f"{recompiles} recompilations"


def _limit(cost: Cost) -> str:
    return f" and {cost.limit_hits} hits of the recompile limit" if cost.limit_hits else ""


def _against(name: str, figures: Figures, setting: Figures | None, before: Cost) -> list[str]:
    """What a setting changes; with the calls to write where it marks dimensions and that is a gain."""
    if setting is None:
        return []
    marks = figures["marks"] if name in _MARKING else []
    which = code(SETTINGS[name]) + (f" on {dimensions(marks)}" if marks else "")
    if setting["status"] != "ok":
        return [f"With {which} it does not run: {_why(setting)}."]
    cost = Cost.of(setting)
    worse = cost.worse_than(before)
    told = f"With {which}: recompilations {before.recompiles} -> {cost.recompiles}" + (
        f", but {worse}" if worse else ""
    )
    if not marks or worse or cost.recompiles >= before.recompiles:
        return [f"{told}."]
    place = f"before the call of the compiled {figures['model']}, in code that is not compiled"
    return [f"{told}.", *_calls(_MARKING[name], marks), f"The marks go {place}: inside it Dynamo refuses them."]


def _why(setting: Figures) -> str:
    return str(setting["message"]).rstrip(".") or str(setting["status"])


def _reasons(setting: Figures) -> str:
    shown = 3
    guards: dict[tuple[str, ...], list[Guard]] = {}
    for reason in setting["reasons"]:
        guard = parsed(reason["guard"])
        alike = "" if guard.about in ("size", "stride") else guard.subject  # sizes are told together
        guards.setdefault((reason["function"], reason["where"], guard.about, alike), []).append(guard)
    told = [f"{function} ({where}): {about(found)}" for (function, where, *_), found in guards.items()]
    more = len(told) - shown
    return "; ".join(told[:shown]) + (f"; and {more} more" if more > 0 else "")


def _grouped(marks: Iterable[Figures]) -> dict[str, tuple[int, ...]]:
    """The marks, where those of all items of a list are one: ``cache[*].key``."""
    return {re.sub(r"\[\d+\]", "[*]", mark["path"]): tuple(mark["dims"]) for mark in marks}


def dimensions(marks: Iterable[Figures]) -> str:
    """``dimension 0 of input_ids, dimensions 0 and 1 of mask``."""
    told = []
    for path, dims in _grouped(marks).items():
        numbers = " and ".join(map(str, dims))
        told.append(f"{'dimension' if len(dims) == 1 else 'dimensions'} {numbers} of {code(path)}")
    return ", ".join(told)


def _calls(function: str, marks: Iterable[Figures]) -> list[str]:
    """The calls to write, on one line; of the items of a list, one stands for all."""
    told, more = [], False
    for path, dims in _grouped(marks).items():
        told.append(code(f"{function}({path.replace('[*]', '[i]')}, {dims[0] if len(dims) == 1 else list(dims)})"))
        more = more or "[*]" in path
    return [f"In code: {', '.join(told)}{', for each item i' if more else ''}."]
