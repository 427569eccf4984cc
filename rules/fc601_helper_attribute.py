"""FC601: a value of a host object, read in code that gets compiled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts, Held, Meeting, Read, self_name, wording
from patcher.rule import Applicability, Code, Edit, Example, Finding, Fix, Insert, NearMiss, Replace


class HelperAttribute:
    """An attribute of a tokenizer or another plain object, read in code that ``forward`` reaches, where it meets a tensor.

    What it does:
        Reads the value once, directly after ``__init__`` assigned the object, and uses ``self._image_token_id`` wherever
        compiled code of the class read ``self.tokenizer.image_token_id``. A method that looks a constant up
        (``self.words.id_of("<pic>")``) is treated alike.

    Why it breaks compilation:
        The attributes of such an object come out of ``__getattr__`` or a property that ends in a C or Rust extension,
        which Dynamo cannot trace. The graph ends there, or the whole frame runs eagerly.

    Fix safety:
        TODO

    References:
        The tokenizer fix of the nanoVLM report.
    """

    code: ClassVar[str] = "FC601"
    name: ClassVar[str] = "helper-attribute"
    triggers: ClassVar[tuple[bytes, ...]] = (b"def __init__(",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.ClassDef,)
    fixed_in: ClassVar[tuple[int, int] | None] = None

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report each value that the module class ``node`` reads from an object that it holds."""
        assert isinstance(node, ast.ClassDef)
        if not facts.is_module_class(node):
            return
        for held in facts.holdings.of(node):
            groups: dict[str, list[Read]] = {}
            for read in held.reads:
                if facts.reached(read.node) and not facts.eager_only(read.node):
                    groups.setdefault(read.key, []).append(read)
            for reads in groups.values():
                yield from _finding(held, sorted(reads, key=_position), facts)


def _position(read: Read) -> tuple[int, int]:
    return read.node.lineno, read.node.col_offset


def _finding(held: Held, reads: list[Read], facts: Facts) -> Iterator[Finding]:
    first = reads[0]
    judged = _judge(held, reads, facts)
    if judged is None:
        return
    reason, assumption = judged
    message = f"`{ast.unparse(first.node)}` is read from a host object while compiled code runs"
    if reason:
        yield Finding(first.node, message, assumption=reason)
        return
    applicability = Applicability.UNSAFE if assumption else Applicability.SAFE
    yield Finding(first.node, message, Fix(tuple(_edits(held, reads, facts)), applicability), assumption)


def _judge(held: Held, reads: list[Read], facts: Facts) -> tuple[str, str] | None:
    """Why there is no fix, and what an unsafe one takes for granted; None when there is nothing to win."""
    read = reads[0]
    meeting = max(facts.meetings.of(r.node) for r in reads)
    if meeting is Meeting.NONE:
        return None
    last, assumption = read.path[-1], ""
    known = facts.holdings.lookup(held, read)
    if known is not None and (known.plain or known.traced or known.tensors):
        return None
    if known is None or not known.complete:
        if meeting is not Meeting.NUMBER and (read.call or not wording.suggests_host_number(last)):
            return None
        if any(map(wording.suggests_variation, (held.name, *read.path))):
            assumption = f"`{ast.unparse(read.node)}` does not change while the module lives"
        if read.call and not wording.suggests_lookup(last):
            assumption = f"`{last}` only looks something up"
    reasons = [*held.reasons, *facts.holdings.changes(held, read)]
    if known is not None and known.reason:
        reasons.append(known.reason)
    if any(r.node.lineno != r.node.end_lineno for r in reads):
        reasons.append("it is spread over several lines")
    if not (known and known.complete) and all(facts.holdings.conditional(r.node) for r in reads):
        assumption = assumption or "the object has that attribute also where it is not used"
    return (reasons[0] if reasons else ""), assumption


def _edits(held: Held, reads: list[Read], facts: Facts) -> Iterator[Edit]:
    read = reads[0]
    arguments = [*read.call.args, *(k.value for k in read.call.keywords)] if read.call else []
    constants = [str(a.value) for a in arguments if isinstance(a, ast.Constant)]
    words = [w for text in (read.path[-1], *constants) for w in re.findall(r"\w+", text)]
    name = facts.fresh_attribute("_" + "_".join(words).lstrip("_"), held.cls)
    method = held.store.method
    me = self_name(method) if method is not None else None
    call = ""
    if read.call:
        keywords = [""] * len(read.call.args) + [f"{k.arg}=" for k in read.call.keywords]
        call = "(" + ", ".join(f"{k}{{{i}}}" for i, k in enumerate(keywords)) + ")"
    path = ".".join((held.name, *read.path))
    yield Insert(held.store.statement, (Code(f"{me}.{name} = {me}.{path}{call}", tuple(arguments)),), after=True)
    for r in reads:
        method = facts.syntax.method_of(r.node)
        assert method is not None
        yield Replace(r.node, Code(f"{self_name(method)}.{name}"))
