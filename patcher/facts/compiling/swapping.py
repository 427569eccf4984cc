"""Where the weights of blocks are moved between devices while a model runs, and what keeps their layers eager."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.syntax.tree import dotted, last_name

_SWAPPING = frozenset({"enable_block_swap", "enable_swap_blocks"})
_COUNT = "blocks_to_swap"
_OFFLOADER = re.compile(r"(Model|Block|Layer)?Offload(er|ing|Manager|Conductor)$")
#: What says that saved activations go to the host: an argument or a call.
_TO_HOST = frozenset({"cpu_offload", "cpu_offload_checkpointing", "activation_cpu_offloading"})
_CHECKPOINTING = re.compile("checkpointing", re.IGNORECASE)
_SAVING = frozenset({"torch.autograd.graph.save_on_cpu", "save_on_cpu", "offload_wrapper"})
_CALLERS = 3
_EAGER = re.compile("disable.*(linear|compile)|eager.*linear", re.IGNORECASE)


@dataclass(frozen=True)
class Moved:
    """``what``: as the source says it, and its line."""

    what: str
    line: int


class BlockSwapping(Analysis):
    """Questions about the code around a site: its function, the methods of its class, who hands it the model."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.sites = facts.ask(CompileSites)

    def of(self, site: CompileSite) -> Moved | None:
        """What swaps blocks of the model that is compiled there, as far as its name tells."""
        near = list(self._places(site))
        return next(
            (Moved(what, node.lineno) for node, owner, what in self._swaps if self._is_near(node, near, owner)), None
        )

    def checkpointing(self, site: CompileSite) -> Moved | None:
        """What has activations saved on the host."""
        near = list(self._places(site))
        for call in (c for c in self.syntax.by_type[ast.Call] if self._is_near(c, near)):
            what = dotted(call.func) or last_name(call.func)
            if what in _SAVING or what.endswith(".save_on_cpu"):
                return Moved(what, call.lineno)
            if not _CHECKPOINTING.search(last_name(call.func)):
                continue
            for k in call.keywords:
                off = isinstance(k.value, ast.Constant) and not k.value.value
                if k.arg in _TO_HOST and not off:
                    return Moved(f"{last_name(call.func)}({k.arg}=...)", call.lineno)
        return None

    def keeps_eager(self, site: CompileSite) -> bool:
        """Whether something near the site takes layers out of compiling already."""
        exempt = (c for c in self.sites.calls if c.kind == "exempt" and c.what.endswith((".disable", ".skip_frame")))
        told = [*(c.node for c in exempt)]
        told += [c for c in self.syntax.by_type[ast.Call] if _EAGER.search(last_name(c.func))]
        near = list(self._places(site))
        return any(self._is_near(node, near) for node in told)

    def _places(self, site: CompileSite) -> Iterator[ast.AST]:
        """Where the model is at hand: at the site, and at calls of the function that it stands in."""
        todo: list[tuple[ast.AST, int]] = [(site.node, _CALLERS)]
        while todo:
            at, depth = todo.pop()
            yield at
            function = self.syntax.function_of(at) if depth else None
            if function is not None:
                calls = (c for c in self.syntax.by_type[ast.Call] if last_name(c.func) == function.name)
                todo += [(call, depth - 1) for call in calls]

    @property
    def _swaps(self) -> Iterator[tuple[ast.expr, str, str]]:
        """Each place that swaps, whose blocks where that is told, and how it is written."""
        for call in self.syntax.by_type[ast.Call]:
            last = last_name(call.func)
            if last in _SWAPPING and isinstance(call.func, ast.Attribute):
                yield call, ast.unparse(call.func.value).partition(".")[0], f"{last}(...)"
            elif _OFFLOADER.search(last) and last[:1].isupper():
                yield call, "", f"{last}(...)"
            for k in call.keywords:
                if k.arg == _COUNT and not (isinstance(k.value, ast.Constant) and not k.value.value):
                    yield call, "", f"{_COUNT}={ast.unparse(k.value)}"

    def _is_near(self, node: ast.AST, places: list[ast.AST], owner: str = "") -> bool:
        """Whether ``node`` stands in the class, or else in the function, of a place where ``owner`` is named."""
        cls, function = self.syntax.class_of(node), self.syntax.function_of(node)
        named = [at for at in places if owner in ("", "self") or owner in self._names(at)]
        own = ((self.syntax.class_of(at), self.syntax.function_of(at)) for at in named)
        return any(c is cls if c is not None else f is function for c, f in own)

    def _names(self, at: ast.AST) -> set[str]:
        loops = [p.iter for p in self.syntax.ancestors(at) if isinstance(p, ast.For)]
        return {n.id for e in (at, *loops) for n in ast.walk(e) if isinstance(n, ast.Name)}
