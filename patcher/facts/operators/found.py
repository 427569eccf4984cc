"""Where a function writes out by hand what is an operator of PyTorch, and what stands in the way of saying so."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.flow.definitions import Definition
from patcher.facts.operators.activations import gelu, silu
from patcher.facts.operators.attention import attention
from patcher.facts.operators.embeddings import modulate, rope
from patcher.facts.operators.norms import layer_norm, rms_norm
from patcher.facts.operators.reading import Reading
from patcher.facts.operators.rows import Rows
from patcher.facts.operators.shapes import Shape
from patcher.facts.operators.terms import Leaf, Op, Term, is_float32
from patcher.facts.syntax.tree import FunctionNode, dotted, last_name
from patcher.facts.syntax.written import short
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Kind

_CONVERSIONS = frozenset({"to", "type", "type_as", *api.CASTS})
#: What a function has to say for any operator to be in it.
_PARTS = frozenset({"Sigmoid", "Tanh", "Softmax"})
_SIGNS = frozenset("rsqrt sqrt pow sigmoid erf tanh softmax view_as_real".split())


@dataclass(frozen=True)
class Found:
    """``node`` computes what ``operator`` of PyTorch does; ``operands``: as the source can say them there.

    ``removed``: the assignments of which nothing is left then, neighbours together. ``refused``: why nothing can be put
    in its place. ``form``, ``options``: as `Shape` has them. ``terms``: what the operands are.
    """

    operator: str
    node: ast.expr
    operands: Mapping[str, ast.expr]
    terms: Mapping[str, Term]
    form: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    removed: tuple[tuple[ast.stmt, ...], ...] = ()
    refused: str = ""

    @property
    def in_float32(self) -> bool:
        """Whether the input is converted to float32 first."""
        return is_float32(self.terms["x"])

    @property
    def sized(self) -> ast.expr | None:
        """What has the sizes of the input, and is a name, so that it can be said twice."""
        e = self.operands["x"]
        while isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in _CONVERSIONS:
            e = e.func.value
        return e if dotted(e) is not None else None

    def said(self, name: str) -> str:
        """The operand of that name, for a message."""
        return short(self.operands[name]) if name in self.operands else name


@dataclass
class _Walk:
    """What is computed on the way: ``reads`` of operands, ``inner`` assignments, what is neither."""

    operands: frozenset[Term]
    reads: dict[Term, list[ast.expr]] = field(default_factory=dict)
    inner: dict[Definition, None] = field(default_factory=dict)
    nodes: set[ast.AST] = field(default_factory=set)
    strange: str = ""
    around: dict[Definition, ast.stmt] = field(default_factory=dict)


class Operators(Analysis):
    """The functions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.reading = facts.ask(Reading)
        self.rows = facts.ask(Rows)
        self._found: dict[FunctionNode, dict[ast.expr, Found]] = {}

    def at(self, node: ast.expr, *operators: str) -> Found | None:
        """The operator, one of ``operators``, that ``node`` is the result of; None where it is none."""
        function = self.syntax.function_of(node)
        if function is None:
            return None
        if function not in self._found:
            self._found[function] = self._in(function)
        found = self._found[function].get(node)
        return found if found is not None and found.operator in operators else None

    def _in(self, function: FunctionNode) -> dict[ast.expr, Found]:
        """All in ``function``, the last ones first: what one is made of is none by itself."""
        own = [n for n in self.syntax.own(function, ast.BinOp, ast.Call) if isinstance(n, ast.expr)]
        said = {last_name(n.func) for n in own if isinstance(n, ast.Call)}
        added = any(isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Pow, ast.Add)) for n in own)
        if said.isdisjoint(_SIGNS) and not added and not self._has_modules:
            return {}
        found: dict[ast.expr, Found] = {}
        refused: list[tuple[Found, set[ast.AST]]] = []
        used: set[ast.AST] = set()
        for node in sorted(own, key=lambda n: (-(n.end_lineno or 0), -(n.end_col_offset or 0), n.lineno, n.col_offset)):
            if node in used or (shape := self._shape(node)) is None:
                continue
            one, inner = self._placed(node, shape)
            if one.refused:  # a part of it may do
                refused.append((one, inner))
            else:
                found[node] = one
                used |= inner
        for one, inner in refused:
            if one.node not in used and inner.isdisjoint(found):
                found[one.node] = one
                used |= inner
        return found

    @cached_property
    def _has_modules(self) -> bool:
        """Whether the file names a module that is a part of an operator."""
        named = (n.attr for n in self.syntax.by_type[ast.Attribute] if isinstance(n, ast.Attribute))
        return not _PARTS.isdisjoint(named) or not _PARTS.isdisjoint(self.syntax.imports)

    def _shape(self, node: ast.expr) -> Shape | None:
        term = self.reading.of(node)
        if isinstance(term, Leaf):
            return None
        return (
            silu(term)
            or gelu(term)
            or layer_norm(term, self.rows.is_row)
            or rms_norm(term, self.rows.is_row)
            or attention(term)
            or rope(term)
            or modulate(term)
        )

    def _placed(self, node: ast.expr, shape: Shape) -> tuple[Found, set[ast.AST]]:
        walk = _Walk(frozenset(shape.operands.values()))
        self._visit(node, walk)
        removed, refused = self._removed(node, walk)
        gone = frozenset(
            d for d in walk.inner if walk.around.get(d) in removed or self.syntax.statement_of(d.node) in removed
        )  # fmt: skip
        operands: dict[str, ast.expr] = {}
        for name, term in shape.operands.items():
            chosen = next((e for e in self._spelled(walk.reads.get(term, ())) if not self._says(e, gone)), None)
            if chosen is None:
                refused = refused or f"the {name} has no name there"
            else:
                operands[name] = chosen
                refused = refused or self._why_moved(chosen, walk.reads[term], node, removed)
        refused = shape.refused or walk.strange or refused
        if not refused and "eps" in operands and self.inference.of(operands["eps"]).is_tensor:
            refused = f"`{short(operands['eps'])}` is a tensor"
        found = Found(
            shape.operator, node, operands, shape.operands, shape.form, shape.options, self._together(removed), refused
        )  # fmt: skip
        if not refused and shape.operator in _SIZED and found.sized is None:
            found = replace(found, refused=f"`{found.said('x')}` has no name")
        return found, walk.nodes

    def _visit(self, e: ast.AST, walk: _Walk) -> None:
        """Go through what ``e`` is computed from, down to the operands."""
        if isinstance(e, ast.expr) and (term := self.reading.of(e)) in walk.operands:
            walk.reads.setdefault(term, []).append(e)
            return
        walk.nodes.add(e)
        if isinstance(e, ast.Name):
            d = self.reading.expanded(e)
            masked = self.reading.masked(e) if d is None else None
            if masked is not None and masked.definitions[1] not in walk.inner:
                walk.inner.update(dict.fromkeys(masked.definitions))
                walk.around[masked.definitions[1]] = masked.statement
                self._visit(masked.scores, walk)
                self._visit(masked.mask, walk)
            if d is not None and d.value is not None and d not in walk.inner:
                walk.inner[d] = None
                self._visit(d.value, walk)
            return
        if isinstance(e, ast.Call) and self.reading.is_leaf(e) and self.inference.of(e).kind is not Kind.PYTHON:
            walk.strange = walk.strange or f"`{short(e)}` may do more than compute"
        for child in ast.iter_child_nodes(e):
            self._visit(child, walk)

    def _removed(self, node: ast.expr, walk: _Walk) -> tuple[list[ast.stmt], str]:
        """The assignments that are nobody else's, and why those that are cannot be left as they are."""
        at = self.syntax.statement_of(node)
        block = self.syntax.block_of(at)
        own = {d: walk.around.get(d) or self.syntax.statement_of(d.node) for d in walk.inner}
        while True:
            inside = {n for s in own.values() for n in ast.walk(s)} | set(ast.walk(node))
            kept = [d for d in own if any(u not in inside for u in self._uses(d))]
            kept += [d for d, s in own.items() if s not in block or not (_is_plain(s) or d in walk.around) or s is at]
            if not kept:
                break
            for d in kept:
                own.pop(d, None)
        for d in walk.inner:
            if d not in own and d.value is not None and self._is_work(d.value):
                there = self.syntax.statement_of(d.node) in block
                return [], f"`{d.name}` is {'used elsewhere as well' if there else 'worked out in another block'}"
        removed = sorted(set(own.values()), key=lambda s: s.lineno)
        for statement in removed:
            if reason := self.facts.writing.why_not_removed(statement):
                return [], reason
        return removed, ""

    def _together(self, statements: list[ast.stmt]) -> tuple[tuple[ast.stmt, ...], ...]:
        runs: list[tuple[ast.stmt, ...]] = []
        for s in statements:
            after = runs and self.syntax.following(runs[-1][-1])[:1] == [s]
            runs = [*runs[:-1], (*runs[-1], s)] if after else [*runs, (s,)]
        return tuple(runs)

    def _uses(self, d: Definition) -> list[ast.Name]:
        function = self.syntax.function_of(d.node)
        return self.flow_of(function).uses.get(d, []) if function is not None else []

    def _is_work(self, e: ast.expr) -> bool:
        """Whether ``e`` computes with tensors: a dtype or a size may be worked out and not be asked for."""
        term = self.reading.of(e)
        return not (isinstance(term, Op) and term.name in ("dtype", "size")) and not self.inference.of(e).is_number

    def _spelled(self, reads: list[ast.expr] | tuple[()]) -> Iterator[ast.expr]:
        """The ways to say an operand, names first, then what stands furthest down."""
        yield from sorted(reads, key=lambda e: (not isinstance(e, (ast.Name, ast.Attribute)), -e.lineno, -e.col_offset))

    def _says(self, e: ast.expr, gone: frozenset[Definition]) -> bool:
        return any(self.reading.expanded(n) in gone for n in ast.walk(e) if isinstance(n, ast.Name))

    def _why_moved(self, chosen: ast.expr, reads: list[ast.expr], node: ast.expr, removed: list[ast.stmt]) -> str:
        """Why ``chosen`` may be another value at ``node`` than where it was read."""
        inside = set(ast.walk(node))
        if all(read in inside for read in reads):
            return ""  # nothing in between but arithmetic
        asked = self.facts.ask(Unchanged)
        for read in dict.fromkeys((chosen, *reads)):
            if why := asked.why_changed(read, read, node, ignoring=removed):
                return why
        return ""


#: What has to be told the size of the last dimension.
_SIZED = ("rms_norm", "layer_norm")


def _is_plain(statement: ast.stmt) -> bool:
    """``name = ...`` and nothing else."""
    match statement:
        case ast.Assign(targets=[ast.Name()]):
            return True
        case ast.AnnAssign(target=ast.Name(), value=ast.expr()):
            return True
    return False
