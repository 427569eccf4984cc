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
    """Keys and values, or other state of three dimensions or more, that get longer with every call.

    What it does:
        Reports, in code that gets compiled, ``self.k = torch.cat([self.k, k], dim=2)`` and its like: an attribute, an
        entry of a list or dict, what a parameter holds (``past["key"]``), what comes in as ``past`` and goes out longer
        beside the other results, and a list of tensors that gets one more in each call and is joined when it is read.
        It shows the form with a buffer in the names of the source, and rewrites nothing.

        With ``--strategy kv-cache=static`` and ``--unsafe`` it gives what a parameter holds a buffer. The loop that
        hands the cache from call to call makes room behind the first call (``past = _with_room(past, 2, more=steps)``):
        each tensor becomes an object with a buffer, marked for CUDA graphs, and the number of its filled places, a 0-d
        tensor. Compiled code takes both: given a tensor, it joins as before; given such an object, it writes the next
        places with ``index_copy_`` and reads the whole buffer under a mask, so that one graph serves all steps. The
        mask holds what ``is_causal`` and the mask of the source say of the filled places. A length that says where the
        input starts (``arange(past, past + t)``, ``table[past : past + t]``) becomes a tensor, in the loop too.

        The room is ``--capacity N``; else what ``range(steps)`` of the loop asks for, rounded up to 64 places; else
        what the configuration calls the greatest length (``self.cfg.block_size``).

    Why it breaks compilation:
        Each call has another shape. Dynamo compiles again to make the length symbolic, and each step reads and writes
        all that was kept so far. Of a list Dynamo knows how many tensors are in it, so it compiles for each number of
        them, up to the limit, and then gives the frame up. Measured on torch 2.13, CPU, one thread of a shared machine,
        float32, Inductor: 4 layers of 8 heads of 64, batch 2, a first call of 2048 tokens, then 20 of one; two quiet
        runs, median step, no breaks in any of the three:

        - torch.cat on attributes: 2 recompiles in the first round, 4 after one of other lengths; 9.3 and 9.8 ms;
        - a list of tensors: 8 recompiles, then the limit; 11.3 and 11.8 ms once it runs eagerly;
        - a buffer and a Python integer: 1 recompile, then 3; 6.1 and 6.3 ms.

        Over six runs, busy ones included, the buffer took two thirds of the time of torch.cat in the median (0.4 to
        0.9). After a first call of 256 tokens the difference is lost in the noise (2.0 to 2.8 ms).

        CUDA graphs (``mode="reduce-overhead"``) bear neither of the first two, for what was kept is an output of a
        graph, whose memory the next run uses again. Measured on an H200, torch 2.11, bfloat16: 4 layers of 12 heads of
        64, batch 8, a first call of 1024 tokens, then 40 of one, the round repeated, median step:

        - torch.cat, and the list: "accessing tensor output of CUDAGraphs that has been overwritten" within three calls;
        - torch.cat, each kept tensor cloned between the calls: a recording for each of the 41 lengths, 7.5 ms a step
          while they are made, 0.5 ms in a round of which most lengths had been recorded (0.6 ms without CUDA graphs);
        - a buffer and a Python integer: skipped 82 times for "mutated inputs"; with the buffers marked (FC303) no skip,
          and also a recording for each length (8.3 ms a step while they are made), but nothing to clone.

    Fix safety:
        Unsafe, and made with ``kv-cache=static`` only. Outputs are the same within rounding: sums run over the empty
        places too, which count nothing. It is taken for granted that batch, dtype and device of a cache stay, that no
        gradient flows through it, that nobody keeps an earlier one or looks into it, and that none gets longer than its
        room: then writing is an error (IndexError eagerly, RuntimeError compiled, a device-side assertion on CUDA).
        Where gradients are recorded no room is made. Callers other than the loop do what they did.

        Left alone, with the reason: where what is joined does not go into an attention in the same function
        (``scaled_dot_product_attention``, or products and a softmax along the last dimension), is cut, counted or
        handed on; where it is no parameter's (attributes, lists that are joined); a loop that reorders or cuts its
        cache, gives it away or gets it from somebody; a loop of unknown length without ``--capacity``.

    References:
        The cache fixes of the nanoVLM and Toto reports; PyTorch, "Dynamic shapes", and "CUDAGraph Trees".
    """

    code: ClassVar[str] = "FC305"
    name: ClassVar[str] = "growing-cache"
    triggers: ClassVar[tuple[bytes, ...]] = (b"cat(", b"concat(", b"concatenate(", b"stack(")
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
    if all(g.how == "listed" for g in found):
        return (
            f"{what} {'is a list that gets' if one else 'are lists that get'} one tensor more with each call: code is "
            "compiled for each number of them, up to the recompile limit, and each step joins all that was kept"
        )
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


def _layout(dim: int | None) -> tuple[str, str, str]:
    """The sizes of the buffer, and what stands before and after the part along ``dim``."""
    if dim is None or not -4 < dim < 4:
        return "..., room, ...", "..., ", ", ..."
    if dim >= 0:
        sizes = {0: "room, ...", 1: "B, room, ...", 2: "B, H, room, D"}.get(dim, "..., room, ...")
        return sizes, ":, " * dim, ""
    sizes = {-1: "..., room", -2: "..., room, D"}.get(dim, "..., room, H, D")
    return sizes, "..., ", ", :" * (-dim - 1)
