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
from patcher.facts.values.callees import Callees

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
        self.callees = facts.ask(Callees)

    def of(self, site: CompileSite) -> Moved | None:
        """What swaps blocks of the model that is compiled there, as far as its name tells."""
        places = list(self._places(site))
        for node, owner, what in self._swaps:
            if any((owner is None or owner in roots) and self._near(node, at) for at, roots in places):
                return Moved(what, node.lineno)
        return None

    def checkpointing(self, site: CompileSite) -> Moved | None:
        """What has activations saved on the host."""
        for call in self.syntax.by_type[ast.Call]:
            if not any(self._near(call, at) for at, _ in self._places(site)):
                continue
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
        return any(self._near(node, at) for node in told for at, _ in self._places(site))

    def _places(self, site: CompileSite) -> Iterator[tuple[ast.AST, set[str]]]:
        """Where the model is at hand, and the names that it has there: at the site, and where it is handed over."""
        held = [e for e in (site.model, site.held, self._items(site)) if e is not None]
        todo = [(site.node, [r for e in held if (r := _root(e)) is not None], _CALLERS)]
        while todo:
            at, roots, depth = todo.pop()
            yield at, {r.id for r in roots}
            for root in roots if depth else ():
                for d in self.callees.inference.definitions(root):
                    for given in self.callees.given(d):
                        if (r := _root(given)) is not None:
                            todo.append((given, [r], depth - 1))

    @property
    def _swaps(self) -> Iterator[tuple[ast.expr, str | None, str]]:
        """Each place that swaps, the name of whose blocks it does where that is told, and how it is written."""
        for call in self.syntax.by_type[ast.Call]:
            last = last_name(call.func)
            if last in _SWAPPING and isinstance(call.func, ast.Attribute):
                root = _root(call.func.value)
                yield call, root.id if root is not None else None, f"{last}(...)"
            elif _OFFLOADER.search(last) and last[:1].isupper():
                yield call, None, f"{last}(...)"
            else:
                for k in call.keywords:
                    if k.arg == _COUNT and not (isinstance(k.value, ast.Constant) and not k.value.value):
                        yield call, None, f"{_COUNT}={ast.unparse(k.value)}"

    def _items(self, site: CompileSite) -> ast.expr | None:
        """What the blocks are items of, where they are compiled one by one."""
        if isinstance(site.model, ast.Subscript):
            return site.model.value
        return self.sites.loop_over(site.model) if isinstance(site.model, ast.Name) else None

    def _near(self, node: ast.AST, at: ast.AST) -> bool:
        own = self.syntax.class_of(at)
        if own is not None:
            return self.syntax.class_of(node) is own
        return self.syntax.function_of(node) is self.syntax.function_of(at)


def _root(e: ast.expr | None) -> ast.Name | None:
    """The name that an expression starts from: ``accelerator.unwrap_model(flux).blocks`` is one of ``flux``."""
    while e is not None and not isinstance(e, ast.Name):
        match e:
            case ast.Call(args=[inner, *_]):
                e = inner
            case ast.Call(func=ast.Attribute(value=inner)):
                e = inner
            case ast.Attribute(value=inner) | ast.Subscript(value=inner):
                e = inner
            case _:
                return None
    return e
