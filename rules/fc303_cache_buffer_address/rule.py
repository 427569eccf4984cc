"""FC303: buffers of a key/value cache that CUDA graphs may not write, since their address is not marked as static."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.tables import torch_api as api
from patcher.facts.zones.scripting import Scripting
from patcher.rule import Code, Cost, Example, Finding, Fix, Insert, NearMiss, Rule, Where, block
from rules.fc303_cache_buffer_address.allocations import Allocation, allocations_of
from rules.fc303_cache_buffer_address.examples import INVALID, VALID

_MARK = "torch._dynamo.mark_static_address"
_ASK = "torch.compiler.is_compiling"


class CacheBufferAddress(Rule):
    """Buffers of a cache, written in compiled code, that CUDA graphs may not write.

    What it does:
        Puts ``torch._dynamo.mark_static_address(self.keys)`` behind each statement that makes a buffer: of a list of
        buffers one by one, of a re-creation in ``reset()`` again. ``if not torch.compiler.is_compiling():`` stands
        above, always: in compiled code the call is an error, and a script that is not looked at may make the cache
        there. The rule is for caches whose index is Python ints (FC302 makes it so), or a tensor that no compiled code
        reads on the host, and whose methods are no eager zones. All buffers are marked, or none.

    Why it breaks compilation:
        It does not; it keeps ``mode="reduce-overhead"`` from paying. A CUDA graph works on copies of its inputs at
        fixed addresses, so a graph that writes into an input is skipped ("mutated inputs") and launched kernel by
        kernel. An input that is marked is used where it stands. Toto with 12 layers on an H200, torch 2.11, prefill and
        12 steps: 38 ms and 13 skips without the marks, 18 ms and none with them, written by hand; the tool's own patch
        makes two such rounds 302 -> 35.5 ms, with no skip. What Dynamo reaches through a module is marked by Dynamo
        itself (its buffers, plain tensors and lists of them, also in a plain object that it holds), so modules
        are not fixed; a cache that comes in as an argument is what needs this.

        On torch 2.11, empty Inductor's cache once after patching (the folder ``TORCHINDUCTOR_CACHE_DIR``): a graph that
        it keeps from before the marks is found again, with its skip. Measured there, the same cache class without and
        then with marks: in one folder 13 skips each; another model in one folder 82 skips with marks, none where
        nothing was cached. On 2.13, marks are part of the cache's key.

    Fix safety:
        Safe: the mark is one attribute of the tensor. It changes no value, works on every device, dtype and subclass,
        and in inference mode; copies and pickles carry it, also through ``torch.load(weights_only=True)``; clones and
        views do not. What compiled code makes stays unmarked, and is no worse off than before. Addresses need not be
        constant: on another one, a graph is recorded anew. That is slower and takes memory, so a program that makes a
        cache per request should keep one and reset it. With debug logging of CUDA graphs
        (``TORCH_LOGS=cudagraphs``) such a move raises an AssertionError in PyTorch's own log code when the graph has
        integer inputs ("length mismatch between inputs, recorded_data_ptr, and placeholders"; seen on 2.11, the code is
        the same on 2.13). Without it, 2.13 runs this code only after 128 re-recordings of one graph
        (``cudagraph_unexpected_rerecord_limit``), and moves of marked buffers do not count there; on 2.11 this limit is
        off by default.
        The first call imports ``torch._dynamo``: about a second, once, also in programs that compile nothing.
        What a method that compiled code calls makes, under a condition ("when the first keys come"), is marked when
        that call runs eagerly, as a prefill that is not compiled does. Where it is compiled, with CUDA graphs, the
        buffer is memory of the graph: on torch 2.11 the next call is an error without this rule's and FC302's fixes and
        a segmentation fault with them. ``@torch.compiler.disable`` on the method that makes the buffers ends both, for
        a break in the first call (one H200: no skip, outputs within 6e-8).

        Not fixed when

        - a buffer comes from outside, or from anything but ``torch.zeros`` and its like or a list of these;
        - a base class, a property or ``__setattr__`` decides what an attribute gives;
        - something marks addresses already, or the file uses ``torch.jit.script``;
        - Inductor's ``freezing`` is set in the files: it makes constants of marked tensors.

    References:
        The key/value cache of the Toto report; PyTorch, ``torch._dynamo.mark_static_address`` and "CUDAGraph Trees"
        (input mutation).
    """

    code: ClassVar[str] = "FC303"
    name: ClassVar[str] = "cache-buffer-address"
    triggers: ClassVar[tuple[bytes, ...]] = (b"zeros", b"empty", b"ones", b"full")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.ClassDef,)
    where: ClassVar[Where] = Where.ANYWHERE
    costs: ClassVar[tuple[Cost, ...]] = ("CUDA graphs",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the allocations of the cache class ``node`` whose tensors are not marked."""
        assert isinstance(node, ast.ClassDef)
        if any(facts.syntax.qualified(d) in api.COMPILE for d in node.decorator_list):
            return
        made = allocations_of(facts, node)
        if not made or not all(_can_be_marked(a, facts) for a in made):
            return
        names = ", ".join(f"`{b}`" for b in sorted({a.buffer for a in made}))
        message = f"CUDA graphs skip what writes into {names}: the address is not marked as static"
        yield Finding(
            made[0].statement, message, Fix(tuple(_marks(group, facts) for group in _neighbours(made, facts)))
        )

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _can_be_marked(a: Allocation, facts: Facts) -> bool:
    """Whether there is room for lines behind it, in code that nobody scripts: TorchScript cannot compile the mark."""
    method = facts.syntax.function_of(a.statement)
    scripted = facts.scripted or (method is not None and facts.ask(Scripting).why(method))
    return not scripted and facts.syntax.alone(a.statement)


def _neighbours(made: Iterable[Allocation], facts: Facts) -> list[list[Allocation]]:
    """The allocations by runs of statements that follow each other in one block; no run fills one place twice."""
    groups: list[list[Allocation]] = []
    for a in made:
        around = facts.syntax.block_of(a.statement)
        group = groups[-1] if groups else []
        last = group[-1].statement if group else None
        near = last in around and around.index(a.statement) - around.index(last) in (0, 1)
        if near and a.place not in [g.place for g in group]:
            group.append(a)
        else:
            groups.append([a])
    return groups


def _marks(group: list[Allocation], facts: Facts) -> Insert:
    """The marks of ``group``, behind the last of its statements."""
    anchor = group[-1].statement
    mark = facts.writing.spelling(_MARK, anchor)
    name = facts.writing.fresh_name("buffer", anchor) if any(a.each for a in group) else ""
    lines = [
        block(Code(f"for {name} in {a.place}:"), [Code(f"{mark}({name})")]) if a.each else Code(f"{mark}({a.place})")
        for a in group
    ]
    return Insert(anchor, (block(Code(f"if not {facts.writing.spelling(_ASK, anchor)}():"), lines),), after=True)
