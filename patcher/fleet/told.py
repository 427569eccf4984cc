"""From what was found and measured to the figures and the words of a row."""

from __future__ import annotations

import math
from collections.abc import Mapping

from patcher.diagnose.diagnosing import Diagnosed
from patcher.diagnose.diagnosis import SEVERITIES
from patcher.fleet.row import Answer
from patcher.harness.compare import Judgement, ended, speedup, within_noise
from patcher.harness.measured import CaseResult, Figures, Results
from patcher.report.outcome import Outcome
from patcher.search.verdict import Verdict

Told = tuple[Answer, str]  # and why, or in a few words what


def scanned(outcome: Outcome) -> tuple[Told, dict[str, float]]:
    """Of a scan: how many findings have which kind of fix."""
    counts = {"safe": outcome.count("fixable"), "unsafe": outcome.count("unsafe"), "noted": outcome.count("no-fix")}
    files = len(outcome.looked_at)
    told = f"{counts['safe']} of {len(outcome.entries)} findings have a safe fix" if outcome.entries else "no findings"
    return ("ok", f"{told} ({files} file{'' if files == 1 else 's'})"), {key: float(n) for key, n in counts.items()}


def tested(results: Results, judgement: Judgement | None) -> Told:
    """Of one case in one mode: the verdict; without one (nothing was patched), whether it runs."""
    case, mode = results.cases[0], results.modes[0]
    if judgement is None:
        variants = case.variant("original", "eager"), case.variant("original", "compiled", mode)
        broken = next((variant for variant in variants if variant.figures is None), None)
        return ("failed", ended(broken)) if broken else ("ok", "nothing to patch: ran as it is")
    verdict = judgement.verdicts[0]
    why = f"{verdict.status}: {verdict.reasons[0]}" if verdict.reasons else verdict.status
    return ("ok" if verdict.status == "equivalent" else "failed" if judgement.invalid else "not equivalent"), why


def diagnosed(found: Diagnosed) -> tuple[Told, dict[str, float]]:
    """Of a diagnosis: how many causes there are."""
    report, results = found.diagnosis, found.diagnosis.results
    figures = measured(results) if results else {}
    if not found.ran and results is not None:
        told = tested(results, None)
        if told[0] == "failed":
            return told, figures
    causes = report.causes
    counts = [f"{n} {s}" for s in SEVERITIES if (n := sum(cause.severity == s for cause in causes))]
    text = f"{len(causes)} cause{'' if len(causes) == 1 else 's'}" + (f" ({', '.join(counts)})" if counts else "")
    figures["causes"] = float(len(causes))
    return ("ok", text), figures


def proved(found: Verdict) -> tuple[Told, dict[str, float]]:
    """Of a search: what was kept, and the counts and times before and after."""
    pairs = {"breaks": found.breaks, "recompiles": found.recompiles, "launches": found.graphs}
    known = {f"{name}_before": pair.before for name, pair in pairs.items()}
    known |= {f"{name}_after": pair.after for name, pair in pairs.items()}
    times = {"eager_ms": found.eager_ms, "before_ms": found.before_ms, "after_ms": found.after_ms}
    figures = {name: float(value) for name, value in {**known, **times}.items() if value is not None}
    if found.before_ms and found.after_ms:
        figures["speedup"] = found.before_ms / found.after_ms
    differs = found.max_difference is not None and not found.equivalent
    answer: Answer = "ok" if found.word != "failed" else "not equivalent" if differs else "failed"
    told = found.said if answer != "ok" else f"{len(found.fixes)} fixes kept; {found.lines[0]}"
    return (answer, told), figures


def measured(results: Results) -> dict[str, float]:
    """The figures of one case in one mode."""
    case, mode = results.cases[0], results.modes[0]
    before, after = (case.variant(tree, "compiled", mode).figures for tree in ("original", "patched"))
    figures = {**_counts(before, "before"), **_counts(after, "after")}
    eager = case.variant("original", "eager").figures
    if eager is not None and eager.warm is not None:
        figures["eager_ms"] = eager.warm.median_ms
    if before and after and before.warm and after.warm:
        figures["speedup"] = speedup(before.warm, after.warm)
    compared = case.comparison("patched", "compiled", mode)
    if compared is not None and compared.outputs.mae is not None:
        figures["mae"] = compared.outputs.mae
    return {key: value for key, value in figures.items() if math.isfinite(value)}


def noisy(results: Results) -> bool:
    """Whether the two compiled times of a case are too near to be told apart."""
    case, mode = results.cases[0], results.modes[0]
    before, after = (_warm(case, tree, mode) for tree in ("original", "patched"))
    return bool(before and after and before.warm and after.warm and within_noise(before.warm, after.warm))


def _warm(case: CaseResult, tree: str, mode: str) -> Figures | None:
    return case.variant("patched" if tree == "patched" else "original", "compiled", mode).figures


def _counts(figures: Figures | None, tree: str) -> Mapping[str, float]:
    if figures is None:
        return {}
    told = {
        f"breaks_{tree}": float(figures.counts.breaks),
        f"recompiles_{tree}": float(figures.counts.recompiles),
        f"launches_{tree}": float(figures.launches),
    }
    return told if figures.warm is None else {**told, f"{tree}_ms": figures.warm.median_ms}
