"""FC202: the numbers of a tensor are read into a list."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.chunked.chunks import read_of
from patcher.facts.chunked.packed_attention import PackedAttentions
from patcher.rule import Applicability, Code, Edit, Finding, Fix, Insert, Replace, ReplaceStatements, Rule, block
from rules.fc202_tolist_loop.examples import INVALID, VALID
from rules.fc202_tolist_loop.rejoined import Rejoined, Rejoining


class TolistLoop(Rule):
    """``x.tolist()``: sizes to split by, numbers to loop over, lengths to compute with.

    What it does:
        Where the numbers are sizes of ``torch.split``, and all chunks are concatenated again along that dimension, code
        that is being compiled splits into one chunk, and checks on the device that the sizes add up. Eager code does
        what it did. All else is reported with the reason.

    Why it breaks compilation:
        The numbers are needed while Dynamo is tracing, before there are any. The graph breaks there, and whatever loops
        over them is traced anew for other numbers.

    Fix safety:
        Unsafe: that the sizes are one row of integers, and that whoever gets the chunks concatenates them along the
        dimension of the split, is assumed. Sizes that do not add up are still a RuntimeError (on CUDA, a device-side
        assertion). Not fixed where the file shows that chunks are used one by one, that the model returns or keeps
        them, or that the sizes are used for something else.

    References:
        transformers' image features, which are split by image and concatenated by the caller; PyTorch, "Data dependent
        operator" (graph break GB0038).
    """

    code = "FC202"
    removed_by = ("capture_scalar_outputs",)
    name = "tolist-loop"
    triggers = (b".tolist()",)
    listens_to = (ast.Call,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it reads a tensor into a list in compiled code."""
        assert isinstance(node, ast.Call)
        read = read_of(node)
        if read is None:
            return
        message = "reading a tensor into a list breaks the graph"
        held = facts.value(_tensor(read))
        if held.python and not held.is_tensor:  # what another library made, or a Python value
            return
        if facts.ask(PackedAttentions).reads(read):  # FC605 says what there is to say
            return
        rejoined = facts.ask(Rejoining).of(read)
        if rejoined is None:
            yield Finding(read, message, assumption=_use(read, facts))
        elif rejoined.obstacle:
            yield Finding(read, message, assumption=rejoined.obstacle)
        else:
            lengths = " ".join(ast.unparse(rejoined.lengths).split())
            granted = f"`{lengths}` is one row of integers, and the chunks are only ever concatenated in their order"
            yield Finding(read, message, Fix(tuple(_edits(rejoined, facts)), Applicability.UNSAFE), granted)

    invalid = INVALID
    valid = VALID


def _tensor(read: ast.Call) -> ast.expr:
    assert isinstance(read.func, ast.Attribute)
    return read.func.value


def _use(read: ast.Call, facts: Facts) -> str:
    """What the list is for, as far as its neighbourhood says."""
    parent = facts.syntax.parents[read]
    if isinstance(parent, (ast.For, ast.comprehension)):
        return "the numbers are looped over"
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in ("zip", "enumerate"):
        return "the numbers are looped over"
    return "the numbers are used on the host"


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
