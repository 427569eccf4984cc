"""FC202: the numbers of a tensor are read into a list."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.checks.caught import Caught
from patcher.facts.checks.lasting import Lasting
from patcher.facts.chunked.chunks import Chunks, is_plain, read_of
from patcher.facts.chunked.packed_attention import PackedAttentions
from patcher.facts.values.certainty import Certainty
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
    Replace,
    ReplaceStatements,
    Rule,
    block,
)
from rules.fc202_tolist_loop.counting import Counting
from rules.fc202_tolist_loop.examples import INVALID, VALID
from rules.fc202_tolist_loop.rejoined import Rejoined, Rejoining


class TolistLoop(Rule):
    """``x.tolist()``: sizes to split by, numbers to loop over, lengths to compute with.

    What it does:
        Where the numbers are sizes of ``torch.split``, and all chunks are concatenated again along that dimension, code
        that is being compiled splits into one chunk, and checks on the device that the sizes add up. Eager code does
        what it did. ``len(x.tolist())`` becomes ``len(x)``, and ``torch.arange(1, len(x.shape)).tolist()`` becomes
        ``list(range(1, len(x.shape)))``. Everything else is reported with the reason.

    Why it breaks compilation:
        The numbers are needed while Dynamo is tracing, before there are any. The graph ends there, and whatever loops
        over them is traced anew for other numbers.

    Fix safety:
        Safe when the sizes are known to be one row of integers, and every chunk is followed, within the function, to
        ``torch.cat`` along the dimension of the split; on the way only casts and element-wise methods, and
        ``reshape(-1, x.shape[-1])``, may touch it. Sizes that do not add up are still a RuntimeError (on CUDA, a
        device-side assertion); left alone where something is set, or written in place for others, above them. Unsafe
        when the chunks leave the function, in an attribute of what it returns or as what it returns: then all readers
        in this file are followed, and compiled code elsewhere must not look at the chunks one by one. Counting from 0
        to a number of dimensions is safe; unsafe where ``torch.arange`` might be asked to count downwards, which it
        refuses and ``range`` does not, and where the length of the list goes with a size of a tensor: it is a loop
        whose turns compiled code has written out. Chunks that are read in any other way stay, and so does every other
        use of the numbers.

    References:
        transformers' image features, which are split by image and concatenated by the caller; PyTorch, "Data dependent
        operator" (graph break GB0038).
    """

    code: ClassVar[str] = "FC202"
    removed_by: ClassVar[tuple[str, ...]] = ("capture_scalar_outputs",)
    name: ClassVar[str] = "tolist-loop"
    triggers: ClassVar[tuple[bytes, ...]] = (b".tolist()",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it reads a tensor into a list in compiled code."""
        assert isinstance(node, ast.Call)
        read = read_of(node)
        if read is None:
            return
        counted = facts.ask(Counting).of(read)
        if counted is not None:
            safety = Applicability.UNSAFE if counted.assumption else Applicability.SAFE
            message = "the host knows these numbers, and reads them from a tensor: the graph ends here"
            yield Finding(read, message, Fix((Replace(read, counted.code),), safety), assumption=counted.assumption)
            return
        held = facts.value(_tensor(read))
        if held.python and not held.is_tensor:  # what another library made, or a Python value
            return
        if facts.ask(PackedAttentions).reads(read):  # FC605 says what there is to say
            return
        message = "reading a tensor into a list ends the graph"
        rejoined = facts.ask(Rejoining).of(read)
        if _counted(read, facts) and facts.ask(Certainty).is_used(_tensor(read)):
            rank = facts.value(_tensor(read)).rank
            single = rank is None or rank.least < 1
            caught = (
                facts.ask(Caught).why(facts.syntax.statement_of(read), ("TypeError",), here=True) if single else None
            )
            if caught is not None:
                yield Finding(read, message, assumption=f"a tensor without a dimension has no length, and {caught}")
            else:
                yield Finding(read, message, Fix((Replace(read, Code("{0}", (_tensor(read),))),)))
        elif rejoined is None:
            yield Finding(read, message, assumption=_use(read, facts))
        elif obstacle := rejoined.obstacle or _why_not_written(rejoined, facts):
            yield Finding(read, message, assumption=obstacle)
        else:
            assumptions = [*rejoined.doubts]
            if rejoined.crosses:
                chunks = " and of ".join(rejoined.crosses)
                assumptions.append(f"the chunks of {chunks} that compiled code makes are only ever put together")
            kind = Applicability.UNSAFE if assumptions else Applicability.SAFE
            yield Finding(read, message, Fix(tuple(_edits(rejoined, facts)), kind), ", and ".join(assumptions))

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _tensor(read: ast.Call) -> ast.expr:
    assert isinstance(read.func, ast.Attribute)
    return read.func.value


def _counted(read: ast.Call, facts: Facts) -> bool:
    """Whether only the length of the list is asked for."""
    parent = facts.syntax.parents[read]
    if not isinstance(parent, ast.Call) or not isinstance(parent.func, ast.Name) or parent.func.id != "len":
        return False
    return facts.syntax.is_builtin(parent.func) and parent.args == [read]


def _use(read: ast.Call, facts: Facts) -> str:
    """What the list is for, as far as its neighbourhood says."""
    parent = facts.syntax.parents[read]
    if isinstance(parent, (ast.For, ast.comprehension)):
        return "the numbers are looped over"
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in ("zip", "enumerate"):
        return "the numbers are looped over"
    return "the numbers are used on the host"


def _why_not_written(rejoined: Rejoined, facts: Facts) -> str:
    anchor, source = facts.syntax.statement_of(rejoined.read), rejoined.splits[0].tensor
    if not facts.syntax.alone(anchor):
        return "the line holds more than this statement"
    if caught := facts.ask(Caught).why(facts.syntax.statement_of(rejoined.splits[0].call), ("RuntimeError",)):
        return caught
    if lasts := facts.ask(Lasting).why(anchor):
        return lasts
    if not facts.ask(Chunks).is_certain(rejoined.read):
        return "it may not be read at all"
    if not facts.ask(Chunks).is_followed_by(rejoined.read, rejoined.splits[0].call):
        return "it may not be split at all"
    if not is_plain(source):
        return f"`{ast.unparse(source)}` would be computed twice"
    if not facts.ask(Chunks).is_there(source, rejoined.splits[0].call, anchor):
        return f"`{ast.unparse(source)}` is not known where the sizes are read"
    if not facts.ask(Chunks).is_there(rejoined.lengths, rejoined.read, anchor):
        return "the sizes are bound inside of an expression"
    return ""


def _edits(rejoined: Rejoined, facts: Facts) -> Iterator[Edit]:
    read, split = rejoined.read, rejoined.splits[0]
    anchor = facts.syntax.statement_of(read)
    torch = facts.writing.spelling("torch", anchor)
    compiling = f"{torch}.compiler.is_compiling()"
    fits, lines, lengths = facts.writing.fresh_local("_fits", anchor), [], Code("{0}", (rejoined.lengths,))
    if not isinstance(rejoined.lengths, ast.Name):
        sizes = facts.writing.fresh_local("_sizes", anchor)
        several = rejoined.lengths.end_lineno != rejoined.lengths.lineno
        lines.append(Code(f"{sizes} = ({{0}})" if several else f"{sizes} = {{0}}", (rejoined.lengths,)))
        lengths = Code(sizes)
    whole = Code(f"{{0}}.shape[{split.dim}]", (split.tensor,))
    some = "({0}.ndim == 1 and len({0}) > 0)"
    lines.append(Code(f"{fits} = ({{0}}.sum() == {{1}}) & ({{0}} >= 0).all() & {some}", (lengths, whole)))
    lines.append(Code(f'{torch}._assert_async({fits}, "the sizes of the chunks must add up")'))
    header = Code(f"if {compiling}:  # one chunk will do: they are concatenated")
    if isinstance(anchor, ast.Assign) and anchor.value is read:
        chosen = block(header, [*lines, Code("{0} = [{1}]", (anchor.targets[0], whole))])
        otherwise = f"\nelse:\n    {{{len(chosen.parts)}}} = {{{len(chosen.parts) + 1}}}"
        both = Code(chosen.template + otherwise, (*chosen.parts, anchor.targets[0], read))
        yield ReplaceStatements((anchor,), (both,))
    else:
        yield Insert(anchor, (block(header, lines),))
        yield Replace(read, Code(f"[{{1}}] if {compiling} else {{0}}", (read, whole)))
