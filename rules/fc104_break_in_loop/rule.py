"""FC104: a read of tensor data in a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.zones.bookwork import Bookkeepers
from patcher.facts.zones.clusters import Cluster, Clusters
from patcher.facts.zones.host_reads import HostReads
from patcher.facts.zones.uncaptured import UncapturedReads
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, Insert, MoveTail, NearMiss, Replace, Rule
from rules.fc104_break_in_loop.examples import INVALID, VALID
from rules.fc104_break_in_loop.loop_frames import LoopFrame, LoopFrames
from rules.fc104_break_in_loop.row_reads import RowRead, RowReads

_WIDTH = 110
#: So many reads outside of loops make a function one of host work, of which nothing is gained by compiling the rest.
_MANY = 3


class BreakInLoop(Rule):
    """A loop that reads tensor data on the host in each turn, itself or in a layer or function that it calls.

    What it does:
        Where every turn reads a row of one tensor (``sizes[i].tolist()``), all of it is read once above the loop, and
        the turns take their rows from that list; not where another loop of the function reads and stays, for then all
        runs eagerly as before, nor where three or more statements outside of loops read: the pieces would be more
        graphs than there were. Any other loop on the top level of a function becomes a function of
        its own, as it is, where that leaves fewer graphs: with layers or operations before or behind it that are one
        graph then. That one is marked ``@torch.compiler.disable(recursive=False)`` (what it calls is still compiled)
        when every run of it asks for data in a form that no setting of Dynamo captures (docs/captured.md); else it is
        not, and all stays in one graph with ``fullgraph=True``, or when nothing reads. This fix is made last: when
        another rule removes the read, there is no need of it.

    Why it breaks compilation:
        The graph ends at a read of tensor data. PyTorch resumes behind a break, but not inside of a loop: it drops the
        whole frame. All of the function runs eagerly, and each layer that it calls is a graph for itself. Above the
        loop the same read costs one break; a loop with a frame of its own takes nothing else with it.

    Fix safety:
        Safe. For rows: the numbers are the same, and reading all of a tensor cannot fail, also when the loop never
        runs. It is proven that the loop counts a range (or enumerates), that it gives neither the counter nor the
        tensor another value, that the tensor is handed to nothing but functions of PyTorch that write to nothing, and
        that in-place writes in the loop go to tensors made in this function. ``item()`` needs a known number of
        dimensions. Two arguments that share memory, one of them sizes and the other written by a call in the loop, are
        taken not to be. Unsafe where what is indexed is only annotated as a tensor, since a list of tensors is indexed
        as well, and no loop moves. For loops that move: the same statements run in the same order. Names that the loop
        reads are handed in, those that it binds and that are read below are handed back; a loop that returns, that
        binds a name which may have no value below, that a closure looks into, or whose function has a decorator that is
        not known, stays. What a name held before the loop lives until the loop ends. A marked loop breaks there also
        when ``capture_scalar_outputs`` would capture the read.

    References:
        The position embeddings of vision models with pictures of many sizes; the blocks of vision towers whose
        attention splits by lengths; PyTorch, "Graph breaks" (loops).
    """

    code: ClassVar[str] = "FC104"
    name: ClassVar[str] = "break-in-loop"
    triggers: ClassVar[tuple[bytes, ...]] = (b".tolist()", b".item()", b"nonzero", b"unique", b"repeat_interleave")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.For, ast.While)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the outermost loop ``node`` when its turns read."""
        assert isinstance(node, (ast.For, ast.While))
        function = facts.syntax.function_of(node)
        if function is None or _is_inner(node, function, facts):
            return
        inside = {n for s in node.body for n in facts.syntax.subtree(s)}
        reads = tuple(r for r in facts.ask(HostReads).of(function) if r.node in inside)
        frame = facts.ask(LoopFrames).of(node)
        if not any(r.certain for r in reads):
            if frame is not None:
                fix = None if frame.why_not else _moved(node, frame, facts)
                yield Finding(node, _message(function, frame, facts), fix, assumption=frame.why_not)
            return
        lines = ", ".join(str(n) for n in sorted({r.node.lineno for r in reads}))
        message = f"reads tensor data in a loop (line {lines}): all of `{function.name}` runs eagerly"
        message += f", some {facts.ask(Bookkeepers).of(function).operations} operations"
        rows = facts.ask(RowReads).of(node, reads)
        taken = _fix(node, rows, facts) if isinstance(rows, list) else None
        if taken is not None and taken.applicability is Applicability.SAFE:
            other = next(_others(node, function, facts), None)
            doubt = "" if other is None else f"the loop in line {other.lineno} reads as well, and stays"
            doubt = doubt or _host_work(function, facts)
            yield Finding(node, message, None if doubt else taken, assumption=doubt)
        elif not isinstance(facts.ask(Clusters).of(function), Cluster):
            moved = _moved(node, frame, facts) if frame is not None and not frame.why_not else None
            doubt = rows if isinstance(rows, str) else _taken_for_tensors(rows)
            yield Finding(node, message, moved or taken, assumption="" if moved else doubt)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _message(function: FunctionNode, frame: LoopFrame, facts: Facts) -> str:
    where = facts.syntax.qualname(frame.ending.function) or frame.ending.function.name
    often = "ends" if frame.ending.sure else "may end"
    place = f"`{where}`, line {frame.ending.line}"
    message = f"a graph {often} in this loop ({place}): all of `{function.name}` runs in pieces"
    return f"{message}, some {frame.operations} operations; as a function of its own, the loop takes nothing with it"


def _moved(loop: ast.For | ast.While, frame: LoopFrame, facts: Facts) -> Fix:
    """The loop as a function of its own, which is not traced itself where no setting takes a graph through it."""
    function = facts.syntax.function_of(loop)
    assert isinstance(function, ast.FunctionDef)
    cls = facts.syntax.parents[function]
    me = self_name(function) if isinstance(cls, ast.ClassDef) else None
    name = facts.writing.fresh_attribute(frame.name, cls) if isinstance(cls, ast.ClassDef) else ""
    name = name or facts.writing.fresh_name(frame.name, function)
    names = [h.name for h in frame.handed]
    never = facts.ask(UncapturedReads).first(function, loop, loop) is not None
    disable = facts.writing.spelled("torch.compiler.disable", function) if frame.ending.sure and never else None
    if disable is not None and not facts.ask(Clusters).has_early(disable.partition(".")[0], function):
        disable = None
    above = "" if disable is None else f"@{disable}(recursive=False)\n"
    header = f"{above}def {name}({_wrapped([*filter(None, (me,)), *names], len(name) + function.col_offset)}):"
    left = ", ".join(frame.left)
    call = f"{f'{me}.' if me else ''}{name}"
    given = _wrapped(names, len(left) + len(call) + function.col_offset)
    code = Code(f"{f'{left} = ' if left else ''}{call}({given})")
    return Fix(
        (MoveTail(function, loop, Code(header), code, loop, Code(f"return {left}") if left else None),), last=True
    )


def _wrapped(names: list[str], width: int) -> str:
    """``names`` for a pair of brackets, on lines of their own when they are too long for one."""
    inside = ", ".join(names)
    return inside if len(inside) + width < _WIDTH else "\n" + "".join(f"    {n},\n" for n in names)


def _is_inner(loop: ast.For | ast.While, function: ast.AST, facts: Facts) -> bool:
    """Whether another loop of ``function`` is around ``loop``."""
    for parent in facts.syntax.ancestors(loop):
        if parent is function:
            return False
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.While)):
            return True
    return False


def _others(loop: ast.For | ast.While, function: FunctionNode, facts: Facts) -> Iterator[ast.For | ast.While]:
    """Loops on the top level of ``function`` that keep ``loop``, which is there as well, from being compiled.

    What stands below a loop that reads runs eagerly, and what stands above it, up to the next break.
    """
    reads = facts.ask(HostReads).of(function)
    at = {s: i for i, s in enumerate(function.body)}
    if loop not in at:
        return
    breaks = {at[r.top] for r in reads if r.certain and not r.looped}
    for other in function.body:
        inside = tuple(r for r in reads if r.top is other and r.looped)
        if other is loop or not isinstance(other, (ast.For, ast.While)) or not any(r.certain for r in inside):
            continue
        rows = facts.ask(RowReads).of(other, inside)
        apart = any(at[loop] < i < at[other] for i in breaks)
        if not apart and not (isinstance(rows, list) and all(r.certain for r in rows)):
            yield other


def _host_work(function: FunctionNode, facts: Facts) -> str:
    """Why ``function`` is no better off in pieces: it reads outside of its loops as well, one graph for each read."""
    outside = {r.statement for r in facts.ask(HostReads).of(function) if r.certain and not r.looped}
    if len(outside) < _MANY:
        return ""
    return f"`{function.name}` reads in {len(outside)} other statements: compiled in pieces, it would be more graphs"


def _taken_for_tensors(rows: list[RowRead]) -> str:
    names = dict.fromkeys(f"`{r.tensor.id}`" for r in rows if not r.certain)
    return f"{', '.join(names)}: each a tensor, not a list of tensors"


def _fix(loop: ast.For | ast.While, rows: list[RowRead], facts: Facts) -> Fix:
    """All rows at once; unsafe where what is indexed may be a list of tensors."""
    names = {r.tensor.id: r.tensor for r in rows}
    lists = {name: facts.writing.fresh_name(f"{name}_rows", loop) for name in names}
    above = tuple(Code(f"{lists[name]} = {{0}}.tolist()", (tensor,)) for name, tensor in names.items())
    edits: list[Insert | Replace] = [Insert(loop, above)]
    for row in rows:
        taken = "".join(f"[{{{i}}}]" for i in range(len(row.indices)))
        edits.append(Replace(row.node, Code(f"{lists[row.tensor.id]}{taken}", row.indices)))
    sure = all(r.certain for r in rows)
    return Fix(tuple(edits), Applicability.SAFE if sure else Applicability.UNSAFE)
