"""A call that compiles a model as a whole, written as one that compiles its blocks one by one."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from patcher.facts import Facts
from patcher.facts.compiling.by_blocks import BlockByBlock
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.rule import Code, block
from patcher.settings import TorchSetting


def compiles(node: ast.expr, blocks: Sequence[TorchSetting], facts: Facts) -> CompileSite | None:
    """The site at ``node``, where it compiles a model of the class that the blocks are of."""
    site = facts.ask(CompileSites).at(node)
    same = site is not None and site.cls is not None and all(f".{b.value}".endswith(f".{site.cls}") for b in blocks)
    return site if same else None


def in_blocks(
    site: CompileSite, blocks: Sequence[TorchSetting], given: Sequence[TorchSetting], facts: Facts
) -> tuple[Code, ...] | str:
    """The statements that take the place of the call, with the arguments ``given``; or why there are none."""
    made = facts.ask(BlockByBlock).written(site, [setting.name for setting in blocks], given)
    if isinstance(made, str):
        return made
    return (*(Code(*line) for line in made.before), *(block(Code(*head), (Code(*line),)) for head, line in made.loops))
