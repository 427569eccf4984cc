"""FC605: attention that is computed chunk by chunk, over chunks whose lengths are read from a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.chunked.packed_attention import PackedAttention, PackedAttentions
from patcher.rule import Applicability, Code, Edit, Finding, Fix, Insert, Replace, Rule, block
from rules.fc605_varlen_split.examples import INVALID, VALID


class VarlenSplit(Rule):
    """Queries, keys and values that are split by the lengths that a tensor holds, with one attention call per chunk.

    What it does:
        While compiling, hands everything to one call, with a mask that lets each position see its own chunk and no
        other. The mask is made on the device, from the lengths. Eager code does what it did.

    Why it breaks compilation:
        ``tolist`` needs the lengths while Dynamo is tracing, before there are any. The graph breaks there, and the
        number of calls would differ from input to input.

    Fix safety:
        Unsafe. The mask has as many elements as the square of the total length, and attention computes the blocks
        that it hides. The numbers are those of another kernel, and dropout draws other ones. PyTorch's own attention
        gets a boolean mask; any other callee gets 0 and minus infinity in the dtype of the queries. What is infinite
        or NaN in a chunk reaches the others. Attention weights, where they are collected, come as one matrix. Lengths
        that do not add up are still a RuntimeError (on CUDA, a device-side assertion). Not fixed where a mask is
        there already, where attention may be causal, where an argument is computed from a chunk, and where the
        function concatenates nothing.

    References:
        transformers' vision towers (``cu_seqlens`` without FlashAttention); PyTorch, "Data dependent operator" (graph
        break GB0038).
    """

    code = "FC605"
    name = "varlen-split"
    triggers = (b".tolist()",)
    listens_to = (ast.For, ast.ListComp, ast.GeneratorExp)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is a loop over chunks of queries, keys and values that attend among themselves."""
        packed = facts.ask(PackedAttentions).of(node)
        if packed is None:
            return
        read = packed.walk.first.read
        if facts.eager_only(read):
            return
        message = "attention chunk by chunk, over lengths that are read from a tensor, breaks the graph"
        obstacle = packed.obstacle
        if not obstacle and not facts.syntax.alone(facts.syntax.statement_of(packed.walk.first.split.call)):
            obstacle = "the line holds more than this statement"
        if obstacle:
            yield Finding(read, message, assumption=obstacle)
        else:
            fix = Fix(tuple(_edits(packed, facts)), Applicability.UNSAFE)
            yield Finding(read, message, fix, _assumption(packed))

    invalid = INVALID
    valid = VALID


def _assumption(packed: PackedAttention) -> str:
    first, callee = packed.walk.first, ast.unparse(packed.call.func)
    lengths = " ".join(ast.unparse(first.lengths).split())
    said = [
        "a mask of the total length squared is affordable",
        f"`{lengths}` is one row of integers",
        f"dimension {first.split.dim} is that of the sequence",
        "what attends is finite",
    ]
    if not packed.direct:
        said.append(f"`{callee}` is not causal and adds its mask to the scores")
    return ", ".join(said) + ", and results are only used when they are put together again"


def _edits(packed: PackedAttention, facts: Facts) -> Iterator[Edit]:
    """One chunk while compiling, and the mask that takes the place of the others."""
    walk = packed.walk
    anchor = facts.syntax.statement_of(walk.first.split.call)
    torch = facts.writing.spelling("torch", anchor)
    compiling, given = f"{torch}.compiler.is_compiling()", packed.mask
    if isinstance(given, ast.Name):
        compiling = f"{compiling} and {given.id} is None"
    for read in {id(c.read): c.read for c in walk.chunks if c.named}.values():
        yield Replace(read, Code(f"[] if {compiling} else {{0}}", (read,)))
    for split in {id(c.split.call): c.split for c in walk.chunks}.values():
        whole = f"[{{1}}.shape[{split.dim}]] if {compiling} else {{0}}"
        yield Replace(split.sizes, Code(whole, (split.sizes, split.tensor)))
    mask, total, fits, chunk = (
        facts.writing.fresh_local(f"_{wish}", anchor) for wish in ("mask", "total", "fits", "chunk")
    )
    lengths, source, lines = walk.first.lengths, walk.first.source, []
    if not isinstance(lengths, ast.Name):
        named = facts.writing.fresh_local("_sizes", anchor)
        several = lengths.end_lineno != lengths.lineno
        lines.append(Code(f"{named} = ({{0}})" if several else f"{named} = {{0}}", (lengths,)))
    held = Code("{0}", (lengths,)) if isinstance(lengths, ast.Name) else Code(named)
    same = f"{chunk}[:, None] == {chunk}"
    added = f'{torch}.where({same}, 0.0, float("-inf"))[None, None].to({{0}})'
    lines += [
        Code(f"{total} = {{0}}.shape[{walk.first.split.dim}]", (source,)),
        Code(f"{fits} = ({{0}}.sum() == {total}) & ({{0}} >= 0).all() & {torch}.ones_like({{0}}).any()", (held,)),
        Code(f'{torch}._assert_async({fits}, "the lengths of the chunks must add up")'),
        Code(
            f"{chunk} = {torch}.searchsorted({{0}}.cumsum(0), "
            f"{torch}.arange({total}, device={{0}}.device), right=True)",
            (held,),
        ),
        Code(f"{mask} = ({same}).to({{0}}.device)" if packed.direct else f"{mask} = {added}", (source,)),
    ]
    yield Insert(anchor, (Code(f"{mask} = None"), block(Code(f"if {compiling}:  # one call for all"), lines)))
    if packed.mask is not None:
        chosen = f"{mask} if {given.id} is None else {given.id}" if isinstance(given, ast.Name) else mask
        yield Replace(packed.mask, Code(chosen))
    else:
        call = packed.call
        parts = (call.func, *call.args, *(k.value for k in call.keywords))
        before = [*("" for _ in call.args), *(f"{k.arg}=" for k in call.keywords)]
        holes = ", ".join(f"{name}{{{i}}}" for i, name in enumerate(before, 1))
        yield Replace(call, Code(f"{{0}}({holes}, attn_mask={mask})", parts))
