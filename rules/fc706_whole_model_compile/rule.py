"""FC706: a model that is compiled as a whole, and consists of blocks of one class."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.compiling.by_blocks import BlockByBlock, ByBlocks
from patcher.facts.compiling.in_place import InPlace
from patcher.facts.compiling.sites import CompileSites
from patcher.facts.project.block_lists import BlockList
from patcher.rule import Applicability, Code, Finding, Fix, ReplaceStatements, Rule, Where, block
from rules.fc706_whole_model_compile.examples import INVALID, VALID
from rules.fc706_whole_model_compile.models import WholeModel, WholeModels

_CONFIG = "torch._dynamo.config"
#: How often Dynamo compiles one function, unless it is told otherwise.
_LIMIT = 8
#: From here on the limit is called so.
_RENAMED = (2, 7)


class WholeModelCompile(Rule):
    """A model that is compiled as a whole, and consists of blocks of one class.

    What it does:
        Replaces ``model.compile(...)`` and ``model = torch.compile(model, ...)`` by a loop over each list of repeated
        blocks, with the same arguments: ``for block in model.blocks: block.compile(...)``. The lists are those that the
        constructor of the model, or of a part of it, makes of one class of the project, and whose items are called.
        After ``accelerator.prepare`` the loop goes over the unwrapped model, after ``DDP`` over its ``module``; so does
        ``setattr(pipe, "transformer", torch.compile(pipe.transformer))``. Where each block is made with a number of its
        own, the recompile limit is raised with it.

    Why it breaks compilation:
        Dynamo and the backend work through every block of the whole model, and blocks of one class are the same code:
        one by one they are compiled once. Measured on torch 2.13, CPU: 24 blocks take 25 CPU seconds as a whole and
        11 one by one, which is flat in their number; nanoGPT with 12 layers, forward and backward, 48 and 19, and a
        warm step 96 and 101 ms.

    Fix safety:
        Unsafe: what is around the blocks (embeddings, heads) runs eagerly from there on, nothing is fused across
        blocks, and each is started by itself, for which small ones leave a GPU waiting: on an H200 a step of FLUX's
        blocks takes as long as that of the whole, a training step of nanoVLM's 1.23 times as long; with
        ``mode="reduce-overhead"``, where each has CUDA graphs of its own, 1.07 times.
        ``tune --goal startup`` measures both ways and decides by the seconds of the first pass. Not written where the
        model is compiled again, the wrapper is asked for (``_orig_mod``), the
        class of the blocks has the decorator, blocks are swapped (FC708), or activation checkpointing wraps the
        blocks afterwards: then the finding says what to do. Silent where no list of blocks is seen, or other lists of
        modules beside it, where a block is called by its ``forward``,
        and for PyTorch before 2.2.

    References:
        PyTorch, "Reducing torch.compile cold start compilation time with regional compilation"; torchtitan's
        ``apply_compile``; diffusers' ``compile_repeated_blocks``.
    """

    code = "FC706"
    name = "whole-model-compile"
    costs = ()  # seconds of the first call: no break
    triggers = (b"torch.compile", b"import compile", b".compile(")
    listens_to = (ast.Call,)
    where = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report a call that compiles a whole model of repeated blocks."""
        if facts.ask(CompileSites).at(node) is None or not facts.ask(InPlace).exists:
            return
        if any(setting.kind == "blocks" for setting in facts.settings.torch_settings):
            return  # a run has decided
        whole = facts.ask(WholeModels).at(node)
        if whole is None or whole.site.others:
            return
        reached = Code(*whole.at)
        told = ", ".join(_told(one) for one in whole.lists)
        message = f"the whole model is compiled, each block anew: {told} can be compiled once for all, one by one"
        why = facts.ask(WholeModels).why_not(whole)
        made = facts.ask(BlockByBlock).written(whole.site, [one.path for one in whole.lists], at=whole.at)
        if why is not None or isinstance(made, str):
            yield Finding(node, message, assumption=why or str(made))
            return
        limit = _limit(whole, reached, facts)
        fix = Fix((ReplaceStatements((facts.syntax.statement_of(node),), _code(made, limit)),), Applicability.UNSAFE)
        numbered = "; each block has a number, for which it is compiled apart" if limit else ""
        way = "`tune --goal startup` measures both ways"
        yield Finding(node, message, fix, f"what is around the blocks may run eagerly; {way}{numbered}")

    invalid = INVALID

    valid = VALID


def _told(one: BlockList) -> str:
    count = f"{one.count} x " if one.count else ""
    return f"`{one.path}` ({count}{one.cls.rpartition('.')[2]})"


def _code(made: ByBlocks, limit: tuple[Code, ...]) -> tuple[Code, ...]:
    loops = (block(Code(*head), (Code(*line),)) for head, line in made.loops)
    return (*(Code(*line) for line in made.before), *limit, *loops)


def _limit(whole: WholeModel, reached: Code, facts: Facts) -> tuple[Code, ...]:
    """The line that lets Dynamo compile as many blocks as there are, where each has a number of its own."""
    many = [one for one in whole.lists if one.numbered and not (one.count.isdecimal() and int(one.count) <= _LIMIT)]
    if not many or whole.site.call.argument("recompile_limit") is not None:
        return ()
    name = "recompile_limit" if facts.settings.target_torch >= _RENAMED else "cache_size_limit"
    config = facts.writing.spelling(_CONFIG, whole.site.node)
    counts = ", ".join(f"len({reached.template}.{one.path})" for one in many)
    return (Code(f"{config}.{name} = max({config}.{name}, {counts})", reached.parts),)
