"""Is a mutant's patched text the same program? If not: which fix is wrong, and on how little code."""

from __future__ import annotations

import ast
import contextlib
import difflib
import random
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from patcher.harness.examples import PREAMBLE
from patcher.settings import Settings
from tests.fuzz.compare import differences
from tests.fuzz.execute import AS_IT_IS, Observed, Way, observe
from tests.fuzz.inputs import VARIATIONS
from tests.fuzz.mutate import Mutant
from tests.fuzz.seeds import Seed, patched, patched_seed

LIMIT_S = 5.0
#: The share of mutants that all rules patch; the others are left to the rule of the example, which is faster.
ALL_RULES = 0.4
DYNAMO_LIMIT_S = 60.0


@dataclass(frozen=True)
class Said:
    """An error of the original that a rule takes away, or has come early, with the sentence that says so.

    ``label``: the difference that comes of it. ``compiled_only``, ``dead``: in compiled code alone; where no call of
    the original returns.
    """

    code: str
    sentence: str
    error: str = ""
    compiled_only: bool = False
    label: str = "returns"
    dead: bool = False


SAID = (
    Said(
        "FC601", "(else the error comes then, not at the first use)", r"import or make\(\)", label="raises", dead=True
    ),
    Said("FC405", "Where both have no dimension, which was an error, the element is written.", "dimension 0"),
    Said("FC602", "a message that cannot be built,", compiled_only=True),
)

#: invalid: no Python; dead: the original raises in all calls; left: no fix; same, wrong: a safe fix was made.
Status = Literal["invalid", "left", "dead", "hung", "same", "wrong"]


class Hang(BaseException):
    """A mutant takes too long."""


@dataclass(frozen=True)
class Wrong:
    """A fix that changes what can be observed: ``codes`` are the rules without which it does not happen."""

    seed: str
    codes: tuple[str, ...]
    kind: str
    hazards: tuple[str, ...]
    way: str
    difference: str
    source: str
    run: str
    diff: str


@dataclass(frozen=True)
class Judged:
    """``live``: at least one call of the original returned. ``codes``: the rules that made fixes."""

    status: Status
    live: bool = False
    codes: tuple[str, ...] = ()
    wrong: Wrong | None = None


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `Hang` in what is inside after so many seconds."""

    def ring(*_: Any) -> None:
        raise Hang

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def judge(mutant: Mutant, rng: random.Random, dynamo: float = 0.0) -> Judged:
    """Patch the mutant and run it in several ways. ``dynamo``: the share that is run under Dynamo as well."""
    source, run = mutant.texts()
    if not _is_python(f"{source}\n\n{run}"):
        return Judged("invalid")
    settings = mutant.seed.settings
    if rng.random() >= ALL_RULES:
        settings = replace(settings, select=(mutant.seed.code,))
    result = patched(source, settings)
    codes = tuple(sorted({r.code for r in result.fixed}))
    if result.bugs:
        said = "; ".join(f"{bug.code} line {bug.line}: {bug.message}" for bug in result.bugs)
        wrong = Wrong(
            _named(mutant.seed),
            tuple(b.code for b in result.bugs),
            "tool bug",
            _names(mutant),
            "",
            said,
            source,
            run,
            "",
        )
        return Judged("wrong", True, codes, wrong)
    if result.text == source:
        return Judged("left")
    live = False
    try:
        for way in _ways(source, mutant.seed, rng, dynamo, _is_seen_by_dynamo(mutant)):
            with limited(DYNAMO_LIMIT_S if way.dynamo else LIMIT_S):
                found, returned = _difference(source, result.text, run, way, mutant.seed)
            live |= returned
            if not returned and way == AS_IT_IS and not mutant.seed.rewritten:
                break
            if not found or not _repeats(source, run, way) or _of_dynamo(source, run, way):
                continue
            if not _said(found, way, source, result.text, run, mutant.seed, settings, returned):
                return Judged("wrong", True, codes, _minimal(mutant, codes, way, found, settings))
    except Hang:
        return Judged("hung", live, codes)
    return Judged("same" if live else "dead", live, codes)


def _is_python(text: str) -> bool:
    try:
        compile(text, "<fuzz>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _named(seed: Seed) -> str:
    return f"{seed.code}: {seed.title}"


def _names(mutant: Mutant) -> tuple[str, ...]:
    return tuple(edit.name for edit in mutant.edits)


def _is_seen_by_dynamo(mutant: Mutant) -> bool:
    """Whether what was put in does the same in a graph as beside it.

    Where a break goes, more code is in graphs: what is there for eager execution only runs no more, and an array that
    is written becomes a tensor that autograd sees change.
    """
    return not any(word in edit.name for edit in mutant.edits for word in ("is_compiling()", "numpy()"))


def _ways(source: str, seed: Seed, rng: random.Random, dynamo: float, seen: bool) -> Iterator[Way]:
    yield AS_IT_IS
    yield Way(compiling=True)
    yield Way(compiling=rng.random() < 0.5, grad=True)
    if "flag=False" in source:
        yield Way(flag=True)
        yield Way(flag=True, compiling=True)
    for _ in range(2):
        inputs = rng.choice(VARIATIONS)
        yield Way(compiling=rng.random() < 0.5, grad=rng.random() < 0.3 or inputs == "trained", inputs=inputs)
    if rng.random() < dynamo and seen:
        yield Way(dynamo=True)


def _observed(source: str, run: str, way: Way) -> Observed | str:
    try:
        return observe(source, run, way)
    except Hang:
        raise
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"


def _difference(source: str, after: str, run: str, way: Way, seed: Seed) -> tuple[tuple[str, str] | None, bool]:
    """The first difference, and whether a call of the original returned."""
    a = _observed(source, run, way)
    if isinstance(a, str):
        return None, False
    b = _observed(after, run, way)
    returned = any(not call.raised for call in a.calls[:-1])
    if isinstance(b, str):
        return ("raises", f"import or make() raises {b[:100]}"), returned
    found = next(differences(a, b, way), None)
    if found is not None:  # what the fix holds in another form is looked up only then
        found = next(differences(a, b, way, _by_design(seed)), None)
    return found, returned


@cache
def _by_design(seed: Seed) -> frozenset[str]:
    """State that the fix holds in another form, as the example itself shows."""
    source, after = PREAMBLE + seed.source, patched_seed(seed)
    found = set()
    for way in (AS_IT_IS, Way(compiling=True)):
        a, b = _observed(source, seed.run, way), _observed(after, seed.run, way)
        if isinstance(a, Observed) and isinstance(b, Observed):
            found |= {label for label, _ in differences(a, b, way) if label.startswith("self")}
    return frozenset(found)


def _repeats(source: str, run: str, way: Way) -> bool:
    """Whether the original is the same when it is run again."""
    a, b = _observed(source, run, way), _observed(source, run, way)
    return isinstance(a, Observed) and isinstance(b, Observed) and next(differences(a, b, way), None) is None


def _of_dynamo(source: str, run: str, way: Way) -> bool:
    """Whether Dynamo makes something else of the original already."""
    if not way.dynamo:
        return False
    a, b = _observed(source, run, replace(way, dynamo=False)), _observed(source, run, way)
    return isinstance(a, str) or isinstance(b, str) or next(differences(a, b, way), None) is not None


def kind_of(label: str) -> str:
    """What differs, in a word."""
    if label in {"raises", "returns", "printed"}:
        return label
    if label.startswith("shared"):
        return "aliasing"
    if label.endswith(".grad"):
        return "gradient"
    return {"o": "result", "a": "argument"}.get(label[0], "state")


def _said(
    found: tuple[str, str],
    way: Way,
    source: str,
    after: str,
    run: str,
    seed: Seed,
    settings: Settings,
    returned: bool,
) -> bool:
    """Whether this error goes away, or comes early, because a rule's documentation says that it does."""
    label, words = found
    for said in SAID:
        if (
            label != said.label
            or (said.compiled_only and not (way.compiling or way.dynamo))
            or (said.dead and returned)
        ):
            continue
        if re.search(said.error, words):
            without = patched(source, replace(settings, ignore=(said.code,))).text
            if without != after and _difference(source, without, run, way, seed)[0] is None:
                return True
    return False


def _minimal(mutant: Mutant, codes: tuple[str, ...], way: Way, found: tuple[str, str], settings: Settings) -> Wrong:
    """The same failure with fewer hazards, fewer rules and fewer statements."""
    seed = mutant.seed

    def fails(source: str, run: str, settings: Settings) -> tuple[str, str] | None:
        if not _is_python(f"{source}\n\n{run}"):
            return None
        try:
            after = patched(source, settings).text
            if after == source:
                return None
            with limited(DYNAMO_LIMIT_S if way.dynamo else LIMIT_S):
                difference, _ = _difference(source, after, run, way, seed)
        except (Hang, RecursionError):
            return None
        return difference if difference and _alike(difference, found) else None

    edits = list(mutant.edits)
    for edit in mutant.edits:
        fewer = replace(mutant, edits=tuple(e for e in edits if e is not edit))
        if fails(*fewer.texts(), settings) and _repeats(*fewer.texts(), way):
            edits.remove(edit)
    smaller = replace(mutant, edits=tuple(edits))
    source, run = smaller.texts()
    guilty = tuple(code for code in codes if fails(source, run, replace(settings, select=(code,))))
    if guilty:
        settings = replace(settings, select=guilty[:1])
    for _ in range(2):
        for shorter in _shorter(source):
            if fails(shorter, run, settings) and _repeats(shorter, run, way):
                source = shorter
                break
        else:
            break
    source = _without_statements(source, run, settings, fails, way)
    last = fails(source, run, settings) or found
    after = patched(source, settings).text
    diff = "\n".join(difflib.unified_diff(source.splitlines(), after.splitlines(), "before", "after", lineterm="", n=2))
    return Wrong(
        _named(seed), guilty or codes, kind_of(found[0]), _names(smaller), str(way), last[1], source, run, diff
    )


def _alike(a: tuple[str, str], b: tuple[str, str]) -> bool:
    """Whether two differences are of one kind; where something is raised, the same type."""
    return (
        kind_of(a[0]) == kind_of(b[0])
        and re.findall(r"\b\w+(?:Error|Assertion)\b", a[1])[:1] == re.findall(r"\b\w+(?:Error|Assertion)\b", b[1])[:1]
    )


def _shorter(source: str) -> Iterator[str]:
    """The source without one class or function of the module."""
    for node in ast.parse(source).body[3:]:
        yield _cut(source, node, alone=False)


def _without_statements(source: str, run: str, settings: Settings, fails: Any, way: Way) -> str:
    budget = 60
    done: set[str] = set()
    again = True
    while again and budget > 0:
        again = False
        for block, node in reversed(list(_statements(ast.parse(source)))):
            shorter = _cut(source, node, alone=len(block) == 1)
            if shorter in done or shorter == source:
                continue
            done.add(shorter)
            budget -= 1
            if budget <= 0:
                break
            if fails(shorter, run, settings) and _repeats(shorter, run, way):
                source, again = shorter, True
                break
    return source


def _statements(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], ast.stmt]]:
    for parent in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and parent is not tree:
                yield from ((block, node) for node in block if not isinstance(node, ast.Pass))


def _cut(source: str, node: ast.stmt, alone: bool) -> str:
    lines = source.split("\n")
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    put = [" " * node.col_offset + "pass"] if alone else []
    return "\n".join([*lines[: first - 1], *put, *lines[node.end_lineno or first :]])
