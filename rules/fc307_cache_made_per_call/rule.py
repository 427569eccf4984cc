"""FC307: buffers that a loop makes anew for each request, for compiled code to write into."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.syntax.classes import self_name
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Edit,
    Enclose,
    Example,
    Finding,
    Fix,
    Insert,
    NearMiss,
    Rule,
    Where,
    block,
)
from rules.fc307_cache_made_per_call.examples import INVALID, VALID
from rules.fc307_cache_made_per_call.per_call import MadePerCall, PerCall

_MARK = "torch._dynamo.mark_static_address"
_INFERENCE = "torch.is_inference_mode_enabled"
#: So many sets of buffers are kept, those that were used last.
_KEPT = 8


class CacheMadePerCall(Rule):
    """``caches = [Cache(key=torch.zeros(...), ...) for _ in range(n)]``, made anew by each request.

    What it does:
        Keeps the objects with the module, by what their sizes come from, and starts the next request of that size with
        the same ones: buffers that are written in place are set to what they were made as, and are marked as static;
        attributes that are replaced are made anew, and copied behind each call, so that no graph's own memory stays in
        them. The last 8 sizes are kept.

    Why it breaks compilation:
        It does not; it keeps ``mode="reduce-overhead"`` from paying. A CUDA graph that writes into its inputs is
        skipped ("mutated inputs"). Marks alone take the skips away, and cost more than they bring where each request
        has new buffers: each graph is recorded again. And what a graph puts in the place of an attribute is memory that
        its next run writes over: the second call raises. Measured on one H200, torch 2.11, TimesFM 2.5 (200M, random
        weights, batch 8, 512 values, a prefill and 3 steps; benchmarks/positions_gpu.py): in ``reduce-overhead`` an
        error as it is; 40 ms with FC306, 12 skips; 55 ms marked and made anew by each request, its graphs recorded each
        time; 20 ms kept, with no skip and 4 graphs that are recorded once.

    Fix safety:
        Unsafe. The memory of the buffers stays with the module after a request, and goes into ``torch.save(module)``
        and ``deepcopy``, not into its ``state_dict``. One request at a time: two threads would write into the same
        buffers. What a request returns must not share memory with them. It is for classes of the project that have no
        methods and no base, a dataclass say, whose attributes are given by name, in a method of a module where
        gradients are off. Only reported: what is made by a function, in a generator, in a loop, or is used for more
        than to be handed to a call.

    References:
        PyTorch, "CUDAGraph Trees" (input mutation, re-recording) and ``torch._dynamo.mark_static_address``; TimesFM's
        ``DecodeCache``.
    """

    code: ClassVar[str] = "FC307"
    name: ClassVar[str] = "cache-made-per-call"
    triggers: ClassVar[tuple[bytes, ...]] = (b"zeros", b"empty", b"ones", b"full")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Assign,)
    where: ClassVar[Where] = Where.ANYWHERE
    costs: ClassVar[tuple[Cost, ...]] = ("CUDA graphs",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the assignment ``node`` when compiled code writes into what it makes."""
        assert isinstance(node, ast.Assign)
        found = facts.ask(MadePerCall).of(node)
        if found is None:
            return
        written = ", ".join(f"`{name}`" for name in found.written)
        message = f"`{found.name}` is made anew in each call: CUDA graphs skip what writes into {written}"
        replaced = ", ".join(f"`{f.name}`" for f in found.fields if f.again is None and f.tensor)
        if replaced:
            message += f", and what compiled code puts in the place of {replaced} is written over by its next call"
        if found.reason:
            yield Finding(node, message, assumption=found.reason)
            return
        assumption = f"one call at a time, and nothing that it returns shares memory with `{found.name}`"
        yield Finding(node, message, Fix(tuple(_edits(found, facts)), Applicability.UNSAFE), assumption)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _edits(found: PerCall, facts: Facts) -> Iterator[Edit]:
    statement, name, writing = found.statement, found.name, facts.writing
    function, cls = facts.syntax.function_of(statement), facts.syntax.class_of(statement)
    assert function is not None and cls is not None
    attribute = writing.fresh_attribute(f"_kept_{name.lstrip('_')}", cls)
    kept, key = writing.fresh_local("kept", statement), writing.fresh_local("key", statement)
    one = writing.fresh_local(_singular(name), statement) if found.each else name
    parts = [f"{{{i}}}" for i in range(len(found.key))]
    if not facts.ask(GradientMode).in_inference_mode(statement):
        parts.append(f"{writing.spelling(_INFERENCE, statement)}()")
    tuple_text = f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    yield Insert(
        statement,
        (
            Code(f'{kept} = {self_name(function)}.__dict__.setdefault("{attribute}", {{{{}}}})'),
            Code(f"{key} = {tuple_text}", found.key),
            Code(f"{name} = {kept}.pop({key}, None)"),
        ),
    )
    yield Enclose((statement,), Code(f"if {name} is None:"))
    yield Insert(
        statement,
        (
            Code(f"{kept}[{key}] = {name}"),
            block(
                Code(f"if len({kept}) > {_KEPT}:  # the one that was not used for longest"),
                [Code(f"{kept}.pop(next(iter({kept})))")],
            ),
            *_over(found, one, list(_start(found, one, facts))),
        ),
        after=True,
    )
    copies = [Code(f"{one}.{f.name} = {one}.{f.name}.clone()") for f in found.fields if f.again is None and f.tensor]
    for call in found.calls if copies else ():
        yield Insert(call, _over(found, one, copies), after=True)


def _start(found: PerCall, one: str, facts: Facts) -> Iterator[Code]:
    """What makes ``one`` of the objects ready for a request."""
    mark = facts.writing.spelling(_MARK, found.statement)
    for f in found.fields:
        if f.again is not None:
            yield Code(f"{mark}({one}.{f.name})")
    for f in found.fields:
        if f.again is None:
            yield Code(f"{one}.{f.name} = {{0}}", (f.value,))
        elif f.again:
            yield Code(f"{one}.{f.name}.{f.again}", () if f.number is None else (f.number,))


def _over(found: PerCall, one: str, lines: list[Code]) -> tuple[Code, ...]:
    return (block(Code(f"for {one} in {found.name}:"), lines),) if found.each else tuple(lines)


def _singular(name: str) -> str:
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name.endswith("s") and len(name) > 1 else f"one_{name}"
