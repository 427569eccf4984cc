"""What a diagnosis comes to, in a few sentences that are the same in every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from patcher.diagnose.diagnosis import Diagnosis
from patcher.harness.measured import Counts, Results, Tree
from patcher.words import COUNTED, counts, many


def verdict(diagnosis: Diagnosis) -> str:
    """How many causes, what becomes of them, and whether that shows in the counts of the whole."""
    if not diagnosis.causes:
        if diagnosis.diagnostics and all(one.name == "fusions" for one in diagnosis.diagnostics):
            return "Only operators that are written by hand were looked for."
        if not ran_compiled(diagnosis.results, "original"):
            then = " With the fixes it does." if ran_compiled(diagnosis.results, "patched") else ""
            return f"The original did not come to its end compiled, so no cause can be told.{then}"
        if seen := _events(diagnosis.results):
            return f"The original has {seen}; what causes them was not looked for."
        return "No cause was found." if diagnosis.problems else "No graph break, recompile or skip was seen."
    fates = Counter(cause.fate for cause in diagnosis.causes)
    count, unknown = len(diagnosis.causes), fates["unknown"]
    sentences = [f"{many(count, 'cause')}."]
    if count > unknown:
        sentences.append(f"With the fixes {_are(fates['removed'])} gone and {_are(fates['remains'])} left.")
    sentences += _unknown(diagnosis, count, unknown)
    unsteady = sum(not cause.steady for cause in diagnosis.causes)
    if unsteady:
        sentences.append(f"{unsteady} did not show up in a second run of the same code.")
    if diagnosis.effect and diagnosis.proof is None:
        sentences.append(f"All fixes together: {diagnosis.effect}.")
    return " ".join(sentences)


def _unknown(diagnosis: Diagnosis, count: int, unknown: int) -> Iterable[str]:
    """Yield what is said of causes of which nobody knows whether they are still there with the fixes."""
    if diagnosis.proof is not None and all(one.outcome != "kept" for one in diagnosis.proof.tried):
        yield "Nothing was kept."
    elif unknown:
        them = "it" if count == 1 else "them" if count == unknown else f"{unknown} of them"
        yield f"What the fixes do to {them} is not known."


def _are(count: int) -> str:
    return "1 is" if count == 1 else f"{count or 'none'} are"


def ran_compiled(results: Results | None, *trees: Tree) -> bool:
    """Whether anything compiled of these trees, of any when none is named, has come to its end."""
    return results is not None and any(
        variant.kind == "compiled" and variant.figures is not None and (not trees or variant.tree in trees)
        for case in results.cases
        for variant in case.variants
    )


def _events(results: Results | None) -> str:
    """What the original, compiled, has counted: ``3 breaks, 2 recompiles``."""
    found = [
        variant.figures.counts
        for case in (results.cases if results else ())
        for variant in case.variants
        if variant.figures and (variant.tree, variant.kind) == ("original", "compiled")
    ]
    return counts(Counts(**{name: sum(getattr(one, name) for one in found) for name in COUNTED}))
