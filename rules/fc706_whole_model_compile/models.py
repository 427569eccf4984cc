"""Models that are compiled as a whole, the lists of repeated blocks below them, and the way there through wrappers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.by_blocks import Template
from patcher.facts.compiling.repeated import RepeatedBlocks
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.compiling.swapping import BlockSwapping
from patcher.facts.project.block_lists import BlockList
from patcher.facts.syntax.tree import dotted, last_name
from patcher.facts.values.callees import Callees

_DATA_PARALLEL = frozenset({"DistributedDataParallel", "DDP", "DataParallel"})
_METHODS = ("compile", "__call__")
_WRAPS_BLOCKS = frozenset(
    "apply_activation_checkpointing checkpoint_wrapper ptd_checkpoint_wrapper apply_ac apply_fsdp_checkpointing".split()
)


@dataclass(frozen=True, eq=False)
class WholeModel:
    """``site``: where it is compiled, by what holds it then; ``at``: the module below which the ``lists`` are."""

    site: CompileSite
    at: Template
    lists: tuple[BlockList, ...]


class WholeModels(Analysis):
    """Sites of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.sites = facts.ask(CompileSites)
        self.callees = facts.ask(Callees)

    def at(self, node: ast.AST) -> WholeModel | None:
        """The model that is compiled as a whole at ``node``, where it is seen to have lists of repeated blocks."""
        site = self.sites.at(node)
        if site is None or site.by_forward or site.model is None or self.sites.replaced or self._is_item(site.model):
            return None
        if site.form not in ("again", "built", "in place"):
            return None
        if site.form == "in place" and site.held is None:
            site = replace(site, held=site.model)
        seen = self._seen(site)
        lists = tuple(self._lists(seen[0])) if seen is not None else ()
        return WholeModel(site, seen[1], lists) if seen is not None and lists else None

    def why_not(self, whole: WholeModel) -> str | None:
        """What stands against compiling the blocks where the whole is compiled."""
        site = whole.site
        if (moved := self.facts.ask(BlockSwapping).of(site)) is not None:
            return f"blocks are swapped between devices (`{moved.what}`, line {moved.line}): see FC708 first"
        for one in whole.lists:
            summary = self.project.known_class(one.cls)
            forward = self.project.function(f"{one.cls}.forward")
            if (summary is not None and summary.compiled) or (forward is not None and forward.compiled):
                return f"`{one.cls.rpartition('.')[2]}` is compiled by a decorator: take that away, or this call"
            root = one.path.partition(".")[0]
            if root in self.project.foreign_stores:
                return f"something sets `{root}` from outside of a class: see that it still is this list"
        for call in self.syntax.by_type[ast.Call]:
            later = call.lineno > site.node.lineno and self.syntax.function_of(call) is site.function
            if later and last_name(call.func) in _WRAPS_BLOCKS:
                return f"activation checkpointing wraps the blocks in line {call.lineno}: compile them below it"
        return None

    def _lists(self, cls: str) -> Iterator[BlockList]:
        """Those whose items are called, and can be compiled in place; none where others may be most of the model."""
        for one in self.facts.ask(RepeatedBlocks).of(cls) if not self.facts.ask(RepeatedBlocks).others(cls) else ():
            own = self.project.is_module_class(one.cls) and self.project.methods(one.cls, "forward")
            other = any(self.project.methods(one.cls, method) for method in _METHODS)
            if own and not other and one.called and one.count not in ("0", "1"):
                yield one

    def _is_item(self, model: ast.expr) -> bool:
        """Whether it is a block itself: an item of a list, or the name of a loop."""
        if isinstance(model, ast.Subscript):
            return True
        return isinstance(model, ast.Name) and self.sites.loop_over(model) is not None

    # --- through what wraps a model ---------------------------------------------------------------------------------

    def _seen(self, site: CompileSite) -> tuple[str, Template] | None:
        """The class of the model, and how it is reached from what holds it."""
        assert site.model is not None and site.held is not None
        if site.cls is not None:
            return site.cls, ("{0}", (site.held,))
        if not isinstance(site.model, ast.Name):
            return None
        given = self.sites.assigned(site.model)
        if self.syntax.function_of(site.model) is None:  # the last one, where one follows the other
            given = given[-1:]
        found = [self._wrapped(value, path, site.held) for value, path in given]
        return found[0] if len(found) == 1 else None

    def _wrapped(self, value: ast.expr | None, path: tuple[int, ...], held: ast.expr) -> tuple[str, Template] | None:
        """``accelerator.prepare(model, optimizer)`` and ``DDP(model)`` give other modules around the model."""
        if not isinstance(value, ast.Call) or any(isinstance(a, ast.Starred) for a in value.args):
            return None
        func, at = value.func, path[0] if len(path) == 1 else 0
        several = bool(path) or len(value.args) == 1
        cls = self.sites.class_of(value.args[at]) if at < len(value.args) and len(path) < 2 else None
        if cls is None:
            return None
        if isinstance(func, ast.Attribute) and func.attr in ("prepare", "prepare_model") and dotted(func.value):
            return (cls, ("{0}.unwrap_model({1})", (func.value, held))) if several else None
        return (cls, ("{0}.module", (held,))) if last_name(func) in _DATA_PARALLEL and not path else None
