"""FC712: a function whose tensor statements are better compiled by themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.running.variations import Variations
from patcher.facts.syntax.tree import last_name
from patcher.facts.zones.clusters import Clusters
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Decorate,
    Edit,
    Example,
    Finding,
    Fix,
    Insert,
    MoveTail,
    NearMiss,
    ReplaceStatements,
    Rule,
    Where,
)
from rules.fc712_compiled_step.examples import INVALID, VALID
from rules.fc712_compiled_step.steps import Steps


class CompiledStep(Rule):
    """TODO."""

    code: ClassVar[str] = "FC712"
    name: ClassVar[str] = "compiled-step"
    costs: ClassVar[tuple[Cost, ...]] = ("recompilation",)
    triggers: ClassVar[tuple[bytes, ...]] = (b"def ",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.FunctionDef,)
    where: ClassVar[Where] = Where.ANYWHERE
    needs_extents: ClassVar[bool] = True

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the function ``node`` when a search asks for its step."""
        assert isinstance(node, ast.FunctionDef)
        extent = facts.ask(Variations).extent(node)
        if extent is None or extent.breaks or facts.ask(Clusters).is_left_out(node) or facts.scripted:
            return
        if not facts.inference.seen:
            yield Finding(node, f"the step of `{node.name}` may be compiled in its place", assumption=_UNSEEN)
            return
        disable = facts.writing.spelled("torch.compiler.disable", node)
        outer = _outermost(node, facts)
        name = facts.writing.fresh_name(f"_{node.name.strip('_').removesuffix('step')}_step".replace("__", "_"), node)
        step = facts.ask(Steps).of(node, name) if disable is not None else None
        if step is None or disable is None:
            return
        why = "unrolls a loop into its graph" if step.loop else f"reads tensors through objects (`{step.read}`)"
        moved = _is_root(node, facts)
        edits: list[Edit] = [Insert(outer, (step.function,), after=moved)]
        edits += [ReplaceStatements(gone, code) for gone, code in step.parts]
        mark = f"{disable}(recursive=False)"
        edits.append(_moved(node, f"@{mark}", facts) if moved else Decorate(node, Code(mark)))
        message = f"`{node.name}` {why}: compile the step alone"
        yield Finding(node, message, Fix(tuple(edits), Applicability.UNSAFE), _OUTSIDE)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


_UNSEEN = "no run has shown what its expressions hold; `optimize` does"
_OUTSIDE = "what is read through objects is the same before the step; `fullgraph=True` and `torch.export` fail here"


def _outermost(function: ast.FunctionDef, facts: Facts) -> ast.stmt:
    """The definition above which the new function stands."""
    outer: ast.stmt = function
    while isinstance(parent := facts.syntax.parents[outer], ast.ClassDef):
        outer = parent
    return outer


def _is_root(function: ast.FunctionDef, facts: Facts) -> bool:
    """Whether it may be compiled itself, as a plain function: ``torch.compile`` passes over its mark."""
    calls = (facts.syntax.function_of(c) for c in facts.syntax.by_type[ast.Call] if last_name(c.func) == function.name)
    plain = facts.syntax.method_of(function) is not function
    return plain and (bool(function.decorator_list) or not any(around not in (None, function) for around in calls))


def _moved(function: ast.FunctionDef, mark: str, facts: Facts) -> MoveTail:
    """The body as a function of its own, which is not compiled."""
    name, first = facts.writing.fresh_name(f"_{function.name.strip('_')}_loop", function), function.body[0]
    first = function.body[1] if ast.get_docstring(function, clean=False) is not None else first
    args, starred = function.args, function.args.vararg is not None
    given = [a.arg for a in (*args.posonlyargs, *args.args)] + [f"*{args.vararg.arg}" for _ in [0] if args.vararg]
    rest = [f"**{args.kwarg.arg}" for _ in [0] if args.kwarg]
    named = [a.arg for a in args.kwonlyargs]
    call = ", ".join([*given, *(f"{n}={n}" if starred else n for n in named), *rest])
    header = Code(f"{mark}\ndef {name}({', '.join([*given, *named, *rest])}):")
    return MoveTail(function, first, header, Code(f"return {name}({call})"))
