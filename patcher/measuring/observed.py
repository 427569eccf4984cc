"""What a run has seen of expressions: the types that source does not tell. Read from what `run.observing` writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = 1
PLAIN = frozenset("bool int float str None".split())
#: First line, first column, last line, last column, as in a syntax tree: columns are of the UTF-8 text.
Span = tuple[int, int, int, int]


@dataclass(frozen=True)
class Observed:
    """What one expression held in all calls of a run.

    ``kinds``: of the values: "tensor", "None", "int", "list", "module", a dotted class. ``dtypes``: of the tensors
    ("torch.float32"). ``shapes``: of them, in the order in which they came, () where there were too many. ``looks``:
    how often it was evaluated. ``constant``: it was the same each time, as ``value`` says it in code; of containers
    only small ones with plain values in them. ``truths``: what it counted as, with changed inputs too, where it is a
    truth or a tensor with one element.
    """

    kinds: frozenset[str]
    dtypes: frozenset[str] = frozenset()
    shapes: tuple[tuple[int, ...], ...] = ()
    looks: int = 1
    constant: bool = False
    value: str = ""
    truths: frozenset[bool] = frozenset()

    @property
    def is_tensor(self) -> bool:
        """Whether it was a tensor each time."""
        return self.kinds == {"tensor"}

    @property
    def is_plain(self) -> bool:
        """Whether it was a number, a truth, text or None each time."""
        return self.kinds <= PLAIN

    @property
    def rank(self) -> int | None:
        """The number of dimensions, where it was always the same."""
        ranks = {len(shape) for shape in self.shapes}
        return ranks.pop() if len(ranks) == 1 else None

    @property
    def told(self) -> str:
        """In a few words: ``float32 tensor [2, 3]``."""
        if not self.is_tensor:
            return " or ".join(sorted(self.kinds))
        sizes = " or ".join(map(str, sorted(map(list, self.shapes))[:2])) if len(self.shapes) <= 2 else ""
        rank = f"of {self.rank} dimensions" if self.rank is not None else ""
        return " ".join(filter(None, [*sorted(d.removeprefix("torch.") for d in self.dtypes), "tensor", sizes or rank]))


@dataclass(frozen=True)
class Observations:
    """What a run has seen, by the digest of a file's text. Two files with one text are taken together."""

    files: Mapping[str, Mapping[Span, Observed]] = field(default_factory=dict)

    def of(self, text: str) -> Mapping[Span, Observed]:
        """What was seen in a file with this text; nothing where it has changed since."""
        if not self.files:
            return {}
        return self.files.get(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), {})


UNSEEN = Observations()


def span_of(node: Any) -> Span:
    """Where a node of a syntax tree stands."""
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


def observations(*told: Mapping[str, Any]) -> Observations:
    """The observations of documents in the form of ``evidence.json``; raises ValueError for another schema."""
    files: dict[str, dict[Span, Observed]] = {}
    for document in told:
        if document.get("schema") != SCHEMA:
            raise ValueError(f"evidence of schema {document.get('schema')!r}; this version reads {SCHEMA}")
        for seen in document["files"].values():
            places = files.setdefault(seen["sha256"], {})
            for one in seen["expressions"]:
                line, column, last, end = one["at"]
                span, now = (line, column, last, end), _observed(one["facts"], one["looks"], one.get("truths", ()))
                places[span] = _joined(places[span], now) if span in places else now
    return Observations(files)


def read(file: str) -> Observations:
    """What ``optimize --evidence`` has written; raises ValueError, in one line, for what cannot be read."""
    try:
        return observations(json.loads(Path(file).read_text(encoding="utf-8")))
    except (OSError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ValueError(f"{file}: no evidence of fix-compile: {error}") from None


def document(told: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The observations of several cases as one document, the form of ``evidence.json``."""
    files: dict[str, dict[str, Any]] = {}
    for one in told:
        for name, seen in one["files"].items():
            known = files.setdefault(name, {"sha256": seen["sha256"], "expressions": []})
            known["expressions"] += seen["expressions"]
    return {"schema": SCHEMA, "files": files}


def _observed(facts: Sequence[Sequence[Any]], looks: int, truths: Iterable[bool]) -> Observed:
    tensors = [fact for fact in facts if fact[0] == "tensor"]
    whole = all(len(fact) > 2 for fact in tensors)
    shapes = tuple(dict.fromkeys(tuple(fact[2]) for fact in tensors)) if whole else ()
    kinds = frozenset(fact[0] for fact in facts)
    value = str(facts[0][1]) if len(facts) == 1 and len(facts[0]) == 2 and not tensors else ""
    dtypes = frozenset(f[1] for f in tensors)
    return Observed(kinds, dtypes, shapes, looks, bool(value), value, frozenset(truths))


def _joined(one: Observed, other: Observed) -> Observed:
    shapes = tuple(dict.fromkeys((*one.shapes, *other.shapes))) if one.shapes and other.shapes else ()
    kinds, dtypes, looks = one.kinds | other.kinds, one.dtypes | other.dtypes, one.looks + other.looks
    value = one.value if one.value == other.value else ""
    return Observed(kinds, dtypes, shapes, looks, bool(value), value, one.truths | other.truths)
