"""Which methods of a cache read or write how far it is filled, where they do it first, and what else they do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.caching.breaks import GraphBreaks
from patcher.facts.caching.origins import CREATES, Origins, elements_of, is_python, makes_tensor, numbers_needed
from patcher.facts.syntax.tree import last_name, own_nodes
from patcher.facts.tables import torch_api as api

#: Special methods that are not called while a model computes.
OUTSIDE = frozenset(
    f"__{n}__"
    for n in "repr str format reduce reduce_ex getstate setstate copy deepcopy del hash sizeof init_subclass".split()
) | {"extra_repr"}
#: Calls that move or describe data: what they cost is no loss outside of a graph.
_CHEAP = (
    api.ALIASING
    | frozenset(api.HOST_VALUES)
    | api.HOST_READS
    | CREATES
    | frozenset(
        "copy_ zero_ fill_ add_ sub_ index_copy_ index_add_ scatter_ masked_fill_ index_select gather clone repeat cat "
        "stack concat arange int float bool len range min max abs tuple list dict zip enumerate isinstance hasattr "
        "getattr append extend get items keys values format is_floating_point rearrange is_compiling graph_break "
        "ValueError RuntimeError IndexError AssertionError TypeError KeyError NotImplementedError".split()
    )
)
_HEAVY = frozenset(
    "matmul bmm mm einsum baddbmm softmax scaled_dot_product_attention linear conv1d conv2d layer_norm".split()
)


@dataclass(frozen=True, eq=False)
class CacheMethod:
    """A method that reads or writes the index of a cache.

    ``first``: the statement of its outermost block that touches the cache's state first. ``breaks``: its own explicit
    graph breaks. ``host_reads``: places that read an integer tensor of the cache on the host. ``calls_reader``: works
    on the buffers with an index that another such method reads. ``only_resets``: does nothing but empty the cache.
    ``computes``: what it does beside moving data, or "". ``heavy``: that this is a kernel worth compiling for sure.
    """

    function: ast.FunctionDef
    first: ast.stmt
    breaks: tuple[ast.stmt, ...]
    host_reads: tuple[ast.expr, ...]
    calls_reader: bool
    only_resets: bool
    computes: str
    heavy: bool


class Bookkeeping(Analysis):
    """The methods of one class, read with the question what they do to its index. ``stored``: its attributes."""

    def __init__(self, origins: Origins, stored: frozenset[str]) -> None:
        super().__init__(origins.facts)
        self.origins = origins
        self.stored = stored

    def methods(
        self, functions: list[ast.FunctionDef], index: frozenset[str], buffers: frozenset[str], tensors: frozenset[str]
    ) -> Iterator[CacheMethod]:
        """Those of ``functions`` that read or write the index; ``tensors``: the cache's integer tensors."""
        readers = {
            f.name
            for f in functions
            if any(self.origins.attribute(n) in index for n in own_nodes(f)) and self.origins.returned(f.name) & index
        }
        for f in functions:
            if f.name in OUTSIDE or f.name == "__new__":
                continue
            nodes = list(own_nodes(f))
            if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes):
                continue
            touched = [n for n in nodes if self.origins.attribute(n) in index | buffers | tensors]
            calls = [n for n in nodes if self.origins.attribute(n) in readers - {f.name}]
            needed = (e for n in nodes for e in numbers_needed(n))
            reads = tuple(e for e in needed if not is_python(self.inference, e) and self.origins.of(e) & tensors)
            direct = any(self.origins.attribute(n) in index for n in touched)
            through = bool(calls) and any(self.origins.attribute(n) in buffers for n in touched)
            if not (direct or through or reads):
                continue
            first = min([*touched, *calls], key=lambda n: (n.lineno, n.col_offset))  # type: ignore[attr-defined]
            computes, heavy = self._computes(nodes)
            yield CacheMethod(
                f,
                self._outermost(first, f),
                tuple(s for s in nodes if isinstance(s, ast.stmt) and self._is_break(s, f)),
                reads,
                through,
                direct and not reads and self._only_resets(nodes, index),
                computes,
                heavy,
            )

    def _is_break(self, s: ast.stmt, f: ast.FunctionDef) -> bool:
        parent = self.syntax.parents[s]
        return self.facts.ask(GraphBreaks).is_break(s) and not (
            isinstance(parent, ast.If) and self.facts.ask(GraphBreaks).is_break(parent)
        )

    def _outermost(self, node: ast.AST, f: ast.FunctionDef) -> ast.stmt:
        path = [node, *self.syntax.ancestors(node)]
        found = path[path.index(f) - 1]
        assert isinstance(found, ast.stmt)
        return found

    def _only_resets(self, nodes: list[ast.AST], index: frozenset[str]) -> bool:
        """Whether the index is only set to constants."""
        for n in nodes:
            if isinstance(n, ast.Return) and n.value is not None and not isinstance(n.value, (ast.Constant, ast.Name)):
                return False
            if self.origins.attribute(n) not in index:
                continue
            match self._use(n):
                case ast.Call(func=ast.Attribute(attr="zero_")):
                    continue
                case ast.Call() as call if self.syntax.builtin(call) == "len":
                    continue
                case ast.Call(func=func) if last_name(func) in CREATES:
                    continue
                case ast.For(body=[ast.Expr(value=ast.Call(func=ast.Attribute(attr="zero_")))]):
                    continue
                case ast.Call(func=ast.Attribute(attr="fill_"), args=[ast.Constant()]):
                    continue
                case ast.Assign(value=value) if self._constant(value):
                    continue
            return False
        return True

    def _use(self, n: ast.AST) -> ast.AST:
        """What is done with ``self.x`` or ``self.x[i]``: the call, the loop or the assignment that it stands in."""
        node: ast.AST = n
        parent = self.syntax.parents[n]
        while isinstance(parent, (ast.Subscript, ast.Attribute)) and parent.value is node:
            node, parent = parent, self.syntax.parents[parent]
        return parent

    def _constant(self, value: ast.expr) -> bool:
        inner = elements_of(value)
        if inner is not None:
            return all(map(self._constant, inner))
        if isinstance(value, ast.Call):
            return makes_tensor(value)
        return isinstance(value, ast.Constant)

    def _computes(self, nodes: list[ast.AST]) -> tuple[str, bool]:
        """The first thing that is more than moving data, and whether it is a kernel worth compiling for sure."""
        unknown = ""
        for n in nodes:
            if isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult):
                return "a matrix product", True
            if not isinstance(n, ast.Call):
                continue
            what = self.syntax.qualified(n.func) or ""
            name = self.origins.attribute(n.func)
            last = last_name(n.func)
            if last in _HEAVY or what.startswith("torch.nn.functional.") or (name and name in self.stored):
                return f"`{ast.unparse(n.func)}`", True
            own = name is not None and name in self.origins.own
            if (
                last not in _CHEAP
                and not own
                and not self.facts.ask(GraphBreaks).is_break(ast.Expr(n))
                and not self._in_guard(n)
            ):
                unknown = unknown or f"`{ast.unparse(n.func)}`"
        return unknown, False

    def _in_guard(self, n: ast.AST) -> bool:
        """Whether ``n`` stands in an explicit break, or in an error that is raised."""
        return any(
            isinstance(p, ast.Raise) or (isinstance(p, ast.stmt) and self.facts.ask(GraphBreaks).is_break(p))
            for p in self.syntax.ancestors(n)
        )
