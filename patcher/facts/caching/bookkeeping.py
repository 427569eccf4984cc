"""Which methods of a cache read or write how far it is filled, where they do it first, and what else they do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.caching.breaks import GraphBreaks
from patcher.facts.caching.origins import Origins, is_python, numbers_needed
from patcher.facts.syntax.tree import last_name, own_nodes
from patcher.facts.syntax.written import all_parameters

#: Special methods that are not called while a model computes.
OUTSIDE = frozenset(
    f"__{n}__"
    for n in "repr str format reduce reduce_ex getstate setstate copy deepcopy del hash sizeof init_subclass".split()
) | {"extra_repr"}
_HEAVY = frozenset(
    "matmul bmm mm einsum baddbmm softmax scaled_dot_product_attention linear conv1d conv2d layer_norm".split()
)


@dataclass(frozen=True, eq=False)
class CacheMethod:
    """A method that reads or writes the index of a cache.

    ``first``: the statement of its outermost block that touches the cache's state first. ``breaks``: its own explicit
    graph breaks. ``host_reads``: places that read an integer tensor of the cache on the host. ``calls_reader``: works
    on the buffers with an index that another such method reads. ``only_resets``: does nothing but empty the cache.
    ``computes``: a kernel worth compiling that it runs, or "".
    """

    function: ast.FunctionDef
    first: ast.stmt
    breaks: tuple[ast.stmt, ...]
    host_reads: tuple[ast.expr, ...]
    calls_reader: bool
    only_resets: bool
    computes: str


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
            yield CacheMethod(
                f,
                self._outermost(first, f),
                tuple(s for s in nodes if isinstance(s, ast.stmt) and self._is_break(s, f)),
                reads,
                through,
                direct and not reads and self._only_resets(f, nodes, index),
                self._computes(nodes),
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

    def _only_resets(self, f: ast.FunctionDef, nodes: list[ast.AST], index: frozenset[str]) -> bool:
        """Whether the method is given nothing, gives nothing, and adds nothing to the index."""
        for n in nodes:
            match n:
                case ast.Return(value=ast.expr()):
                    return False
                case ast.AugAssign(target=place) | ast.Call(func=ast.Attribute(value=place, attr="add_" | "copy_")):
                    if self.origins.of(place) & index:
                        return False
                case ast.Assign(value=value) if self.origins.of(value) & index:
                    return False
        return len(all_parameters(f.args)) == 1

    def _computes(self, nodes: list[ast.AST]) -> str:
        """The first kernel that is worth compiling, or a module's call."""
        for n in nodes:
            if isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult):
                return "a matrix product"
            if isinstance(n, ast.Call):
                what, name = self.syntax.qualified(n.func) or "", self.origins.attribute(n.func)
                if last_name(n.func) in _HEAVY or what.startswith("torch.nn.functional.") or name in self.stored:
                    return f"`{ast.unparse(n.func)}`"
        return ""
