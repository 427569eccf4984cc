"""FC708: compiled blocks whose weights are moved between devices while the model runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.compiling.sites import CompileSites
from patcher.facts.compiling.swapping import BlockSwapping
from patcher.rule import Finding, Rule, Where
from rules.fc708_offloaded_linear.examples import INVALID, VALID


class OffloadedLinear(Rule):
    """Compiled blocks whose weights are moved between devices while the model runs.

    What it does:
        Reports a call that compiles a model, or its blocks, where blocks of it are swapped between devices
        (``enable_block_swap``, ``blocks_to_swap=``, a class that offloads): their ``Linear`` layers have to stay eager,
        and ``fullgraph`` off. Reports as well where activations of checkpoints are saved on the host
        (``cpu_offload=``, ``save_on_cpu``). Nothing is rewritten.

    Why it breaks compilation:
        A swap puts other memory below the weights of a layer between two calls; CUDA graphs replay addresses. On a
        CPU nothing of that shows (measured on torch 2.13: exchanging ``weight.data`` compiles nothing anew); on GPUs,
        musubi-tuner, which trains so, takes the layers whose class ends with ``Linear`` out of compiling where blocks
        are swapped. Each such layer breaks the graph (measured: four blocks with one each, 5 graphs and 4 breaks), so
        that ``fullgraph=True`` raises. That checkpoints on the host and compiling get along has not been measured on
        a GPU.

    Fix safety:
        Seen are the function of the call, the methods of its class, and the functions of the same file that hand it the
        model. Left to you: what may be compiled of a block depends on what the swap moves, and a layer that is taken
        out costs a graph break. Silent where something near the call takes layers out already, where nothing is
        compiled, and for the offloading of diffusers and accelerate, which moves modules by hooks of their own.

    References:
        musubi-tuner, ``disable_linear_from_compile`` (fe044b6); PyTorch, ``torch.compiler.disable``.
    """

    code = "FC708"
    name = "offloaded-linear"
    costs = ("recompilation",)
    triggers = (b"swap", b"Offload", b"offload", b"save_on_cpu")  # what moves stands near
    listens_to = (ast.Call,)
    where = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report a call that compiles what is moved."""
        site = facts.ask(CompileSites).at(node)
        if site is None or site.form == "discarded":
            return
        swapping = facts.ask(BlockSwapping)
        moved, full = swapping.of(site), site.call.argument("fullgraph")
        whole = full is not None and not (isinstance(full, ast.Constant) and not full.value)
        if moved is not None and not swapping.keeps_eager(site):
            message = f"compiled blocks are swapped between devices (`{moved.what}`, line {moved.line})"
            yield Finding(node, message, assumption=_EAGER + (", and leave out `fullgraph`" if whole else ""))
        elif moved is not None and whole:
            message = (
                f"`fullgraph` raises where layers of swapped blocks stay eager (`{moved.what}`, line {moved.line})"
            )
            yield Finding(node, message, assumption="leave it out")
        saved = swapping.checkpointing(site)
        if saved is not None:
            message = f"what is compiled saves activations on the host (`{saved.what}`, line {saved.line})"
            yield Finding(
                node, message, assumption="compare both with `fix-compile diagnose`, or leave out one of them"
            )

    invalid = INVALID

    valid = VALID


_EAGER = (
    "keep their `Linear` layers eager before they are compiled: `for layer in block.modules(): if isinstance(layer, "
    "nn.Linear): layer.forward = torch.compiler.disable(layer.forward)`"
)
