"""A call that compiles a model as a whole, written as one that compiles its blocks one by one."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from patcher.facts import Facts
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
    call, syntax = site.node, facts.syntax
    if not isinstance(call, ast.Call) or site.form not in ("again", "built", "in place") or site.by_forward:
        return "what it gives is used elsewhere: compile the blocks by hand"
    held = site.held
    if held is None or site.model is None or not syntax.alone(syntax.statement_of(call)):
        return "it is no statement of its own: compile the blocks by hand"
    if "_orig_mod" in syntax.names_in(syntax.tree) or site.others:
        return "the wrapper is asked for, or it is compiled again: compile the blocks by hand"
    named = {setting.name for setting in given}
    kept = [k for k in call.keywords if k.arg != "model" and k.arg not in named]
    if any(k.arg is None for k in kept) or call.args[1:] or any(isinstance(a, ast.Starred) for a in call.args):
        return "its arguments cannot be told: compile the blocks by hand"
    holes = [f"{k.arg}={{{number}}}" for number, k in enumerate(kept)]
    arguments = ", ".join([*holes, *(setting.told for setting in given)])
    name = facts.writing.fresh_name("block", call)
    loops = [
        block(
            Code(f"for {name} in {{0}}.{setting.name}:", (held,)),
            (Code(f"{name}.compile({arguments})", tuple(k.value for k in kept)),),
        )
        for setting in blocks
    ]
    built = [Code("{0} = {1}", (held, site.model))] if site.form == "built" else []
    return (*built, *loops)
