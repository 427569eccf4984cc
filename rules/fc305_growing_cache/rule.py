"""FC305: keys and values that are joined to a longer tensor with every call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Cost, Example, Finding, NearMiss, Rule, Where
from rules.fc305_growing_cache.examples import INVALID, VALID
from rules.fc305_growing_cache.growth import Growing, Growth
from rules.fc305_growing_cache.room import Rooms

_LONG = 40


class GrowingCache(Rule):
    """Keys and values that get longer with every call, by ``torch.cat``.

    What it does:
        Reports ``self.k = torch.cat([self.k, k], dim=2)`` in compiled code, and the same with an entry of a parameter
        (``past["key"]``) or with a past that comes in and goes out longer. It shows the form with a buffer in the names
        of the source, and rewrites nothing.

        With ``--strategy kv-cache=static`` and ``--unsafe`` it gives what a parameter holds a buffer. The loop that
        hands the cache from call to call makes room below the first call (``past = _with_room(past, 2, more=steps)``):
        each tensor becomes an object with a buffer, marked for CUDA graphs, and the number of its filled places, a 0-d
        tensor. Compiled code takes both: given a tensor, it joins as before; given such an object, it writes the next
        places with ``index_copy_`` and reads the whole buffer under a mask, so that one graph serves all steps. Where
        the input starts (``arange(past, past + t)``) becomes a tensor.

        The room is ``--capacity N``; else what ``range(steps)`` of the loop asks for, rounded up to 64 places.

    Why it breaks compilation:
        Each call has another shape: Dynamo compiles again to make the length symbolic, and each step reads and writes
        all that was kept. CUDA graphs do not bear it, for what was kept is memory that the next run uses again.

        Measured on an H200, torch 2.11, bfloat16: 4 layers of 12 heads of 64, batch 8, a first call of 1024 tokens,
        then 40 of one. With ``torch.cat`` and CUDA graphs it raises; with each kept tensor cloned there is a recording
        for each of the 41 lengths. With a buffer there is nothing to clone.

    Fix safety:
        Unsafe, and made with ``kv-cache=static`` only. Outputs are the same within rounding. Assumes: all that the
        cache holds grows so and is attended to as a whole; its batch, dtype and device stay; no gradient flows through
        it; nobody keeps an earlier one or looks into it; none gets longer than its room. Where gradients are recorded
        no room is made. Callers other than the loop do what they did.

        Not fixed when:

        - the function that joins has no attention (``scaled_dot_product_attention``, a softmax along the last
          dimension), or the name that is attended to gets another value first;
        - the cache is an attribute;
        - the number of turns is not written, and there is no ``--capacity``.

    References:
        The cache fixes of the nanoVLM and Toto reports; PyTorch, "Dynamic shapes", and "CUDAGraph Trees".
    """

    code: ClassVar[str] = "FC305"
    name: ClassVar[str] = "growing-cache"
    triggers: ClassVar[tuple[bytes, ...]] = (b"cat(", b"concat(", b"concatenate(")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.FunctionDef,)
    where: ClassVar[Where] = Where.ANYWHERE
    strategy_key: ClassVar[str] = "kv-cache"
    strategies: ClassVar[tuple[str, ...]] = ("auto", "static")
    costs: ClassVar[tuple[Cost, ...]] = ("recompilation", "dynamic shape", "CUDA graphs")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report what grows in the function ``node``, once for all of it."""
        assert isinstance(node, ast.FunctionDef)
        found = [g for g in facts.ask(Growing).of(node) if not facts.eager_only(g.node)]
        if facts.settings.strategy(self.strategy_key) == "static":
            yield from _static(node, found, facts)
        elif found:
            yield Finding(found[0].node, _message(found), assumption=_without(found[0]))

    invalid: ClassVar[tuple[Example, ...]] = INVALID

    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _static(function: ast.FunctionDef, found: Sequence[Growth], facts: Facts) -> Iterator[Finding]:
    """Room for what grows in ``function``; and, in a file in which nothing does, in its loops."""
    rooms = facts.ask(Rooms)
    if found:
        room = rooms.of(function, found)
        yield Finding(found[0].node, _message(found), room.fix, room.told, "static")
    elif not any(f.grows for n, f in facts.project.functions() if n.startswith(f"{facts.module}.")):
        for call, room in rooms.in_loop(function):
            what = "what this call is given and gives back grows with each turn, and can have room from the first on"
            yield Finding(call, what, room.fix, room.told, "static")


def _message(found: Sequence[Growth]) -> str:
    texts = list(dict.fromkeys(f"`{g.text}`" for g in found))
    what, one = " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1]))), len(texts) == 1
    return (
        f"{what} {'grows' if one else 'grow'} with each call: another shape each time (a recompile to dynamic shapes), "
        "each step reads and writes all that was kept, and with CUDA graphs it raises unless what is kept is cloned"
    )


def _without(growth: Growth) -> str:
    """Why there is no fix, with the buffer in the names of the source."""
    fresh = ast.unparse(growth.fresh)
    if len(fresh) > _LONG or not fresh.isidentifier():
        fresh = "new"
    sizes, before, after = _layout(growth.dim)
    place = growth.text
    write = f"`{place}[{before}n : n + t{after}] = {fresh}`, use `{place}[{before}: n + t{after}]`"
    back = ", return none of it" if growth.how == "returned" else ""
    return (
        "how much room there has to be is not in the code; with that, "
        f"make `{place} = {fresh}.new_zeros({sizes})` once, write {write}, and count `n` in a Python int{back}"
    )


def _layout(dim: int) -> tuple[str, str, str]:
    """The sizes of the buffer, and what stands before and after the part along ``dim``."""
    if not -4 < dim < 4:
        return "..., room, ...", "..., ", ", ..."
    if dim >= 0:
        return {1: "B, room, ...", 2: "B, H, room, D"}.get(dim, "..., room, ..."), ":, " * dim, ""
    sizes = {-1: "..., room", -2: "..., room, D"}.get(dim, "..., room, H, D")
    return sizes, "..., ", ", :" * (-dim - 1)
