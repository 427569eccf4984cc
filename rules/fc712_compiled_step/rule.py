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
    """A function that is better compiled by its step: the statements that compute with tensors.

    What it does:
        Moves the statements of the function, or of the body of its loop, that compute with tensors into a function of
        their own, its step. What they read through objects (``self.state[p]["mean"]``, ``p.grad``), and numbers that
        differ from call to call, are its arguments; what they write to objects, the caller writes. The function is
        marked ``@torch.compiler.disable(recursive=False)``: Python runs it, and what it calls is compiled. Of a
        function that may be compiled itself the body moves into one that is marked so.
        It needs a run that has shown what expressions hold. ``optimize`` tries it last, where calls fall back to eager
        or many operators are compiled, one function at a time.

    Why it breaks compilation:
        A guard holds what is read through an object. Where that is a gradient that was freed, or a number that is
        counted up, the function is compiled again at each call, up to the limit, and falls back to eager. A loop is
        unrolled: the graph has its operators once for each turn, and there is a graph for each number of turns. With
        100 turns of eight operators, compiling takes minutes and the step a second.

    Fix safety:
        Assumed: what is read through objects is the same before the step as in it. A factor that differs from call to
        call is a tensor then (``p.add_(rate * m / d)`` for ``p.addcdiv_(m, d, value=rate)``), which rounds otherwise.
        More graphs start where a loop is not unrolled. ``optimize`` compares results, gradients and state on recorded
        and on changed inputs. Not fixed when:

        - no run has seen the types,
        - a statement returns, yields, or binds names in nested functions in the midst of the step,
        - the file uses ``torch.jit.script``.

    References:
        PyTorch, "torch.compiler.disable" (``recursive=False``); "Regional compilation".
    """

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
