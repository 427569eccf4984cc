"""FC306: a slice of a tensor that is written where a tensor says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.effects.own_functions import OwnFunctions
from patcher.facts.syntax.written import short
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Edit,
    Example,
    Finding,
    Fix,
    Insert,
    NearMiss,
    ReplaceStatements,
    Rule,
    Where,
)
from rules.fc306_tensor_position_write.examples import INVALID, VALID
from rules.fc306_tensor_position_write.slice_text import BUILTINS, WRITE, WRITE_NAME
from rules.fc306_tensor_position_write.slice_writes import SliceWrite, SliceWrites

_ASSUMED = "start and length stay as they are between the bound and the write, which writes into a plain tensor"


class TensorPositionWrite(Rule):
    """A slice that is written from a position on that is a tensor: ``cache.key[:, start : start + n] = key``.

    What it does:
        Writes the same places by index, which the device works out: ``_write_slice(key, cache.key, 1, start, n)``. The
        function is written into the file once. ``end = start + n`` above the assignment is followed.

    Why it breaks compilation:
        Python asks the bounds of a slice for a number (``__index__``), though nothing is said to read one:
        the graph breaks at each such slice, a loop around it is given up altogether, and a GPU waits. A key/value cache
        does so for each layer and each step. Measured on torch 2.13, CPU, TimesFM 2.5 (its own code, random weights, 3
        layers, a prefill and 3 steps for 4 requests): 13 breaks, 32 graphs, 7 frames that are given up and 18 launches
        a call become 0, 6, 0 and one. What it does to the time on a GPU was not measured.

    Fix safety:
        Unsafe: it assumes that start and length stay the same between the line that makes the bound and the write, that
        reading them twice does nothing, and that what is written into is a plain tensor. For every tensor, start and
        length the function then does what the assignment does, or leaves it to the assignment: where the start is not
        held in one integer of 32 or 64 bits, and where the value has another length than the slice or is no tensor.
        Several places that do not fit raise RuntimeError as before, at once on a CPU, as a device-side assertion on
        CUDA.

        Not fixed when

        - the length is data (``x[:, :end]``, ``x[:, start:]``), or the end is not seen to be the start and a length;
        - there is a step, or other elements of the index may be tensors.

    References:
        PyTorch, graph break GB0124 (``Tensor.item()``), ``torch.Tensor.index_put_``.
    """

    code: ClassVar[str] = "FC306"
    name: ClassVar[str] = "tensor-position-write"
    triggers: ClassVar[tuple[bytes, ...]] = (b"] =", b"]=")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Module,)
    where: ClassVar[Where] = Where.ANYWHERE
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the writes of the module in compiled code, each with a fix of its own where it can be rewritten."""
        assigned = [n for n in facts.syntax.by_type[ast.Assign] if isinstance(n, ast.Assign) and _may_be(n)]
        found = [w for n in assigned if facts.compiled(n) and (w := facts.ask(SliceWrites).of(n)) is not None]
        heard = [w for w in found if not w.reason and not facts.silenced(self.code, w.statement)]
        reason = _why_not_here(facts) if heard else ""
        function = _function(heard, facts) if heard and not reason else ()
        for write in found:
            if write in heard and not reason:
                yield Finding(
                    write.statement, _message(write), Fix((*function, _call(write)), Applicability.UNSAFE), _ASSUMED
                )
            else:
                yield Finding(write.statement, _message(write), assumption=write.reason or reason)

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether ``node`` is, or is in, the index of a write that this rule reports."""
        statement = facts.syntax.statement_of(node)
        return (
            isinstance(statement, ast.Assign)
            and _may_be(statement)
            and any(n is node for n in ast.walk(statement.targets[0]))
            and facts.compiled(statement)
            and facts.ask(SliceWrites).of(statement) is not None
        )

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _may_be(n: ast.Assign) -> bool:
    target = n.targets[0]
    if not isinstance(target, ast.Subscript):
        return False
    elements = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return any(isinstance(e, ast.Slice) and (e.lower or e.upper) is not None for e in elements)


def _message(write: SliceWrite) -> str:
    return (
        f"`{short(write.statement.targets[0])}` is written where a tensor says: Python asks `{short(write.start)}` for "
        "a number, which breaks the graph"
    )


def _why_not_here(facts: Facts) -> str:
    if facts.scripted:
        return "this file is for TorchScript"
    text = _text(facts, facts.syntax.tree)
    if WRITE_NAME in facts.syntax.names_in(facts.syntax.tree) and not facts.ask(OwnFunctions).is_here(text):
        return f"`{WRITE_NAME}` is something else here"
    return facts.writing.why_not_builtin(*BUILTINS)


def _text(facts: Facts, at: ast.AST) -> str:
    """The function, with the names of torch as this file spells them."""
    return re.sub(r"torch\.\w+", lambda name: facts.writing.spelling(name[0], at), WRITE)


def _function(writes: Sequence[SliceWrite], facts: Facts) -> tuple[Edit, ...]:
    """What puts the function above all ``writes``, where it is not there: the same for each of them."""
    functions, text = facts.ask(OwnFunctions), _text(facts, facts.syntax.tree)
    if functions.is_here(text):
        return ()
    anchor, after = functions.anchor([w.statement for w in writes])
    return (Insert(anchor, (Code(text.rstrip("\n").replace("{", "{{").replace("}", "}}")),), after=after),)


def _call(w: SliceWrite) -> Edit:
    assert w.base is not None and w.size is not None
    call = Code(f"{WRITE_NAME}({{0}}, {{1}}, {w.dim}, {{2}}, {{3}})", (w.statement.value, w.base, w.start, w.size))
    return ReplaceStatements((w.statement,), (call,))
