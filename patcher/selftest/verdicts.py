"""From records of executed examples to what a rule is worth on that PyTorch. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from patcher.rule import Example, Rule

#: Of one example. ``helps``: it compiles better after. ``needless``: it does not break before, and is no better after.
#: ``no gain``: it breaks before as after. ``not shown``: the rewrite is for a cost that a run on a CPU cannot show.
#: ``not run``: this torch cannot run the original. ``wrong``: results differ, or it compiles worse.
#: Of a rule: ``wrong`` if any example is, else ``helps`` if any does, else what most of them are.
Verdict = Literal["helps", "needless", "no gain", "not shown", "not run", "wrong"]

TOLD: Mapping[Verdict, str] = {
    "helps": "helps",
    "needless": "no longer needed",
    "no gain": "no gain",
    "not shown": "cost not shown by a run",
    "not run": "not run",
    "wrong": "wrong here",
}
#: What compiles worse, in words.
_COSTS = ("breaks", "graphs", "recompiles", "limit_hits", "dropped_frames")


@dataclass(frozen=True)
class Tried:
    """One example: what came of it, and, when it is wrong or could not be run, why."""

    title: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True)
class RuleVerdict:
    """One rule. ``breaks`` and ``recompiles`` are sums over its examples, before and after."""

    code: str
    name: str
    verdict: Verdict
    tried: tuple[Tried, ...]
    breaks: tuple[int, int] = (0, 0)
    recompiles: tuple[int, int] = (0, 0)

    def count(self, verdict: Verdict) -> int:
        """How many examples are of this verdict."""
        return sum(one.verdict == verdict for one in self.tried)

    @property
    def told(self) -> str:
        """``helps (6 of 7 examples)``."""
        return f"{TOLD[self.verdict]} ({self.count(self.verdict)} of {len(self.tried)} examples)"


def rewritten(rule: Rule) -> list[Example]:
    """The examples that can be tried: those that are rewritten."""
    return [example for example in rule.invalid if example.after is not None]


def judged(rule: Rule, records: Sequence[Mapping[str, Any]]) -> RuleVerdict:
    """What the rule is worth; ``records`` go with `rewritten`."""
    pairs = list(zip(rewritten(rule), records, strict=True))
    tried = tuple(tried_example(example, record) for example, record in pairs)
    verdicts: Counter[Verdict] = Counter(one.verdict for one in tried)
    verdict: Verdict = "not run"
    if verdicts["wrong"]:
        verdict = "wrong"
    elif verdicts["helps"]:
        verdict = "helps"
    elif verdicts:
        verdict = verdicts.most_common(1)[0][0]
    ran = [record for record in records if "error" not in record]
    return RuleVerdict(rule.code, rule.name, verdict, tried, _sums(ran, "breaks"), _sums(ran, "recompiles"))


def tried_example(example: Example, record: Mapping[str, Any]) -> Tried:
    """What came of one example."""
    if "error" in record:
        verdict: Verdict = "wrong" if record.get("of") == "after" else "not run"
        return Tried(example.title, verdict, str(record["error"]))
    if record["raised"] == record["calls"]:
        return Tried(example.title, "not run", "every call raises")
    differs = [record["difference"], record["aliasing"]]
    if not example.unsafe:  # which may draw other random numbers, and says so
        differs.append(record["drawn"])
    if record["compiled_before"] is None:  # else compiled code gives something else there anyway
        differs.append(record["compiled"])
    if why := next(filter(None, differs), None):
        return Tried(example.title, "wrong", str(why))
    before, after = record["before"], record["after"]
    cost = example.cost
    if cost(after) > cost(before):
        figures = ", ".join(f"{key} {before[key]} -> {after[key]}" for key in _COSTS if after[key] > before[key])
        return Tried(example.title, "wrong", f"compiles worse: {figures}")
    if modes := ", ".join(mode for mode in record["lost"] if mode != "script"):  # which is presumed not to be meant
        return Tried(example.title, "wrong", f"no longer works there: {modes}")
    if cost(after) < cost(before):
        return Tried(example.title, "helps")
    if not example.gain:
        return Tried(example.title, "not shown")
    return Tried(example.title, "no gain" if max(cost(before)[:2]) else "needless")


def _sums(records: Iterable[Mapping[str, Any]], key: str) -> tuple[int, int]:
    listed = list(records)
    return sum(r["before"][key] for r in listed), sum(r["after"][key] for r in listed)
