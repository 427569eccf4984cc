"""FC601: a value of a host object, read in code that gets compiled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.checks.caught import Caught
from patcher.facts.syntax.classes import self_name
from patcher.facts.tables import wording
from patcher.rule import Applicability, Code, Cost, Edit, Example, Finding, Fix, Insert, NearMiss, Replace, Rule, Where
from rules.fc601_helper_attribute.examples import INVALID, VALID
from rules.fc601_helper_attribute.holdings import Held, Holdings, Read
from rules.fc601_helper_attribute.meetings import Meeting, Meetings

#: What reading an attribute may raise, if it runs code.
_ERRORS = ("AssertionError", "IndexError", "KeyError", "NotImplementedError", "TypeError", "ValueError")


class HostAttribute(Rule):
    """A value of a tokenizer, or of another plain object, that code which ``forward`` reaches compares with a tensor.

    What it does:
        Reads the value once, directly after ``__init__`` assigned the object, and uses ``self._image_token_id`` where
        compiled code of the class read ``self.tokenizer.image_token_id``, also where that went through a local name. A
        method that looks a constant up (``self.words.id_of("<pic>")``) is treated alike.

    Why it breaks compilation:
        What such an object answers comes out of a ``__getattr__``, a property or a method that ends in a C or Rust
        extension, which Dynamo cannot trace. The graph breaks there, or the whole function runs eagerly.

    Fix safety:
        Safe when nothing in all scanned files speaks against the value being the same at any time. The object is
        assigned once, on every path through ``__init__`` and after ``super().__init__()``, from an argument without a
        default or from a call. No class above or below and no code outside assigns it again. Nothing tests whether it
        is there, passes None for it, assigns an attribute of that name (or ``pad_token`` where ``pad_token_id`` is
        read) on any object, or calls a method on it whose name says that it changes something.

        A class that is in the files is looked into: plain attributes, dataclasses and what Dynamo can trace
        are not fixed, as there is nothing to win, and what reads changed state, random numbers or the clock is not
        touched. Of any other class four things are assumed: the object has the attribute when the module is
        built (else the error comes then, not at the first use); the value is an identifier or the like and no tensor,
        which its use shows (``==`` with a tensor, a fill value, ``ignore_index``); a method with a name such as
        ``id_of``, ``get_pad`` or ``convert_tokens_to_ids`` just looks something up; and nobody changes the value later
        in a way that the files do not show. Where only a flag of the instance leads to the use, or a name speaks of
        something that varies, the fix is unsafe. Modules, tensors, containers and configuration (by its name, or
        because layers are built from it) are not fixed.

        A module that was pickled whole before the patch lacks the new attribute: load a state dict into a new one.

    References:
        The tokenizer fix of the nanoVLM report; PyTorch, "Common graph breaks" (calls into C extensions).
    """

    code: ClassVar[str] = "FC601"
    name: ClassVar[str] = "helper-attribute"
    triggers: ClassVar[tuple[bytes, ...]] = (b"def __init__(",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.ClassDef,)
    where: ClassVar[Where] = Where.ANYWHERE
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report each value that the module class ``node`` reads from an object that it holds."""
        assert isinstance(node, ast.ClassDef)
        if not facts.is_module_class(node):
            return
        for held in facts.ask(Holdings).of(node):
            groups: dict[str, list[Read]] = {}
            for read in held.reads:
                if facts.compiled(read.node):
                    groups.setdefault(read.key, []).append(read)
            for reads in groups.values():
                yield from _finding(held, sorted(reads, key=_position), facts)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _position(read: Read) -> tuple[int, int]:
    return read.node.lineno, read.node.col_offset


def _finding(held: Held, reads: list[Read], facts: Facts) -> Iterator[Finding]:
    first = reads[0]
    judged = _judge(held, reads, facts)
    if judged is None:
        return
    reason, assumption = judged
    message = f"`{ast.unparse(first.node)}` is an attribute of a non-tensor object, read in compiled code"
    if reason:
        yield Finding(first.node, message, assumption=reason)
        return
    applicability = Applicability.UNSAFE if assumption else Applicability.SAFE
    yield Finding(first.node, message, Fix(tuple(_edits(held, reads, facts)), applicability), assumption)


def _judge(held: Held, reads: list[Read], facts: Facts) -> tuple[str, str] | None:
    """Why there is no fix, and what an unsafe one takes for granted; None when there is nothing to win."""
    read = reads[0]
    meeting = max(facts.ask(Meetings).of(r.node) for r in reads)
    if meeting is Meeting.NONE:
        return None
    last, assumption = read.path[-1], ""
    known = facts.ask(Holdings).lookup(held, read)
    if known is not None and (known.plain or known.traced or known.tensors):
        return None
    if known is None or not known.complete:
        if meeting is not Meeting.NUMBER and (read.call or not wording.suggests_host_number(last)):
            return None
        if any(map(wording.suggests_variation, (held.name, *read.path))):
            assumption = f"`{ast.unparse(read.node)}` does not change while the module lives"
        if read.call and not wording.suggests_lookup(last):
            assumption = f"`{last}` only looks something up"
    reasons = [*held.reasons, *facts.ask(Holdings).changes(held, read)]
    if known is not None and known.reason:
        reasons.append(known.reason)
    if any(r.node.lineno != r.node.end_lineno for r in reads):
        reasons.append("it is spread over several lines")
    statements = (facts.syntax.statement_of(r.node) for r in reads)
    reasons += [c for s in statements if (c := facts.ask(Caught).why(s, _ERRORS, here=True)) is not None]
    if all(facts.ask(Holdings).conditional(r.node) for r in reads):
        assumption = assumption or "the object has that attribute also where it is not used"
    return (reasons[0] if reasons else ""), assumption


def _edits(held: Held, reads: list[Read], facts: Facts) -> Iterator[Edit]:
    read = reads[0]
    arguments = [*read.call.args, *(k.value for k in read.call.keywords)] if read.call else []
    constants = [str(a.value) for a in arguments if isinstance(a, ast.Constant)]
    words = [w for text in (read.path[-1], *constants) for w in re.findall(r"\w+", text)]
    name = facts.writing.fresh_attribute("_" + "_".join(words).lstrip("_"), held.cls)
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
