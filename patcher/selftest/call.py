"""The call ``fix-compile selftest``: the rules' examples on a PyTorch, and what is told of each rule."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from patcher.patching.calls import FINDINGS, OK, Told
from patcher.rule import Example, Rule
from patcher.selftest import records
from patcher.selftest.executing import Interpreter, execute, interpreter
from patcher.selftest.verdicts import TOLD, RuleVerdict, Verdict, judged, rewritten
from patcher.version import VERSION

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
    records.keep_results(
        made_by.torch,
        [(v.code, {**_plain(v), "digest": records.rule_digest(rule)}) for v, rule in zip(verdicts, rules, strict=True)],
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
    memory = records.Records(made_by, records.program_digest())
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
