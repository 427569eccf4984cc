"""The call ``fix-compile selftest``: the rules' examples on a PyTorch, and what is told of each rule."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from patcher.patching.calls import FINDINGS, OK, Told
from patcher.rule import Example, Rule
from patcher.selftest.executing import (
    Interpreter,
    Records,
    execute,
    interpreter,
    keep_results,
    program_digest,
    rule_digest,
)
from patcher.version import VERSION

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


Json = dict[str, Any]
Progress = Callable[[int, int], None]
NOTHING_SAID: Mapping[str, Sequence[str]] = {}


def selftest(
    rules: Sequence[Rule],
    python: str,
    shape: str,
    jobs: int | None = None,
    reading: bool = True,
    progress: Progress | None = None,
    said: Mapping[str, Sequence[str]] = NOTHING_SAID,
) -> Told:
    """Run the rules' examples with ``python``. Status 1 when a rule is wrong there; raises ``ConfigError``.

    ``reading``: what was executed before, with the same torch, is not executed again. ``said``: by code, what is wrong
    with a rule that its examples show before any of them is run.
    """
    made_by = interpreter(python)
    requests = {rule.code: [_request(e) for e in rewritten(rule)] for rule in rules}
    found = _records(made_by, [r for listed in requests.values() for r in listed], jobs, reading, progress)
    verdicts = [judged(rule, [found[_key(r)] for r in requests[rule.code]]) for rule in rules]
    keep_results(
        made_by.torch,
        [(v.code, {**_plain(v), "digest": rule_digest(rule)}) for v, rule in zip(verdicts, rules, strict=True)],
    )
    status = FINDINGS if any(v.verdict == "wrong" for v in verdicts) or any(said.values()) else OK
    if shape == "json":
        return Told(status, _document(made_by, verdicts, said))
    return Told(status, "".join(f"{line}\n" for line in _lines(made_by, verdicts, said)))


def _request(e: Example) -> Json:
    asked = {"before": e.before, "after": str(e.after), "run": e.run, "modes": not e.unsafe}
    return {**asked, "tolerance": e.tolerance} if e.tolerance else asked


def _key(request: Json) -> str:
    return json.dumps(request, sort_keys=True)


def _records(
    made_by: Interpreter, requests: Sequence[Json], jobs: int | None, reading: bool, progress: Progress | None
) -> dict[str, Json]:
    memory = Records(made_by, program_digest())
    wanted = {_key(request): request for request in requests}
    found = {key: record for key, r in wanted.items() if (record := memory.read(r))} if reading else {}
    missing = [request for key, request in wanted.items() if key not in found]
    total = len(wanted)

    def done(number: int, record: Json, ended: bool) -> None:
        found[_key(missing[number])] = record
        if not ended:
            memory.write(missing[number], record)
        if progress is not None:
            progress(len(found), total)

    if missing:
        execute(made_by.executable, missing, jobs or min(os.cpu_count() or 1, 8), done)
    return found


def _lines(made_by: Interpreter, verdicts: Sequence[RuleVerdict], said: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield f"torch {made_by.torch}, Python {made_by.python}"
    names = max((len(v.name) for v in verdicts), default=0)
    words = max((len(TOLD[v.verdict]) for v in verdicts), default=0)
    for v in verdicts:
        yield f"{v.code}  {v.name:{names}}  {TOLD[v.verdict]:{words}}  {_figures(v)}".rstrip()
        yield from (f"    not as it says: {why}" for why in said.get(v.code, ()))
        for one in v.tried:
            if one.verdict in ("wrong", "not run"):
                yield f"    {TOLD[one.verdict]}: {one.title}: {one.why}"
    counted = Counter(v.verdict for v in verdicts)
    yield f"{len(verdicts)} rules: " + ", ".join(f"{counted[v]} {TOLD[v]}" for v in TOLD if counted[v])
    if unlike := sum(bool(why) for why in said.values()):
        yield f"not what the examples say: {unlike} of them"
    if counted["wrong"]:
        yield "A rule that is wrong here does not fix here: its findings stay, and say so."


def _figures(v: RuleVerdict) -> str:
    if not v.tried:
        return "no example is rewritten"
    parts = [f"{v.count(v.verdict)} of {len(v.tried)} examples"]
    parts += [f"{name} {pair[0]} -> {pair[1]}" for name, pair in _pairs(v).items() if any(pair)]
    return ", ".join(parts)


def _pairs(v: RuleVerdict) -> dict[str, tuple[int, int]]:
    return {"breaks": v.breaks, "recompiles": v.recompiles}


def _plain(v: RuleVerdict) -> Json:
    counts: dict[Verdict, int] = {verdict: v.count(verdict) for verdict in TOLD}
    return {
        "code": v.code,
        "name": v.name,
        "verdict": v.verdict,
        "told": v.told,
        "examples": len(v.tried),
        "counts": counts,
        **{name: {"before": pair[0], "after": pair[1]} for name, pair in _pairs(v).items()},
        "wrong": [{"example": one.title, "why": one.why} for one in v.tried if one.verdict == "wrong"],
        "not_run": [{"example": one.title, "why": one.why} for one in v.tried if one.verdict == "not run"],
    }


def _document(made_by: Interpreter, verdicts: Sequence[RuleVerdict], said: Mapping[str, Sequence[str]]) -> str:
    document = {
        "schema": 1,
        "tool": {"name": "fix-compile", "version": VERSION},
        "call": "selftest",
        "torch": made_by.torch,
        "python": made_by.python,
        "rules": [{**_plain(v), "unlike": list(said.get(v.code, ()))} for v in verdicts],
    }
    return json.dumps(document, indent=2) + "\n"
