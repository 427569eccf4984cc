"""FC207: a function that breaks all over, with all that it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.running.variations import Variations
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tables import torch_api as api
from patcher.facts.zones.clusters import Clusters
from patcher.rule import Applicability, Code, Decorate, Finding, Fix, Rule, Where
from rules.fc207_scattered_breaks.examples import INVALID, VALID

#: Decorators of Python and PyTorch above which a function that is left out is what they make it.
_PLAIN = frozenset(
    {
        *api.GRAD_OFF,
        "torch.enable_grad",
        "torch.set_grad_enabled",
        "torch.autocast",
        "torch.amp.autocast",
        "typing.override",
    }
)
#: Packages whose decorators compile, or register, what they are given.
_MAKERS = frozenset({"torch", "triton", "numba", "jax", "typing", "typing_extensions", "abc", "contextlib"})
#: Methods with names of Python's own that are called as any other.
_CALLED = frozenset({"__call__", "__getitem__"})
_HELD = frozenset({"forward", "__call__"})
_LITTLE = (
    "nothing compiles it with `fullgraph=True`, `torch.export` or `torch.jit.script`, and its operators are of little "
    "weight"
)


class ScatteredBreaks(Rule):
    """A function that breaks all over, with all that it calls, so that its graphs hold a few operators each.

    What it does:
        Marks the function ``@torch.compiler.disable``: it runs eagerly, with all that it calls. It needs a run that
        has broken in it; without one the rule is silent. ``diagnose`` names such functions, up to four, where nothing
        else mends the cause. ``prove --unsafe`` tries them when all other fixes and settings are decided, one at a
        time, and keeps the one with which fewest graphs start, if no count is worse with it and outputs are the same.

    Why it breaks compilation:
        A break splits the graph in the function that it stands in and in each function on the way to it: ten calls
        deep, ten functions are compiled in two parts each, and each part that holds an operator is a graph of its own.
        To start a graph takes as long as to run 4 to 16 small operators by themselves (docs/results/graph-start.md). A
        call that is left out breaks the graph once, in its caller and in what called that.

    Fix safety:
        Unsafe. Python runs the same statements in the same order, so outputs and gradients are those of eager
        execution. What it costs is in the message: the operators in the graphs of the function, and of all that it
        calls, run eagerly from now on, also where another caller had them in one graph, and what is compiled by itself
        below it is not compiled there. So for each graph that is no longer started, at most eight operators are given
        up, and never more than half of all that graphs hold: what would take the model itself is no fix.
        An operator counts as one, a matrix product or an LSTM as well: read which function it is.
        ``fullgraph=True`` and ``torch.export`` fail at it.
        Not fixed when it is compiled itself or the ``forward`` of a model that was run, a coroutine or generator, made
        in another function, called by Python itself (``__add__``), given to a decorator of a compiler or registry, in
        a file that uses ``torch.jit.script``, or has a comment on how it is compiled.

    References:
        PyTorch, "torch.compiler.disable"; "Skip calling `torch.compiler.disable()`d function" (graph break GB0098).
    """

    code = "FC207"
    name = "scattered-breaks"
    costs = ("graph break", "recompilation")
    triggers = (b"def ",)
    listens_to = (ast.FunctionDef, ast.AsyncFunctionDef)
    where = Where.ANYWHERE
    needs_extents = True

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the function ``node`` when a run has shown that it breaks all over."""
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        extent = facts.ask(Variations).extent(node)
        if extent is None or not extent.breaks or facts.ask(Clusters).is_left_out(node):
            return
        message = (
            f"`{node.name}` breaks all over, with what it calls ({extent.breaks} of {extent.of} places of a run that"
            f" break): {extent.graphs} of {extent.of_graphs} graphs are started for {extent.operators} of"
            f" {extent.of_operators} operators, which would run eagerly"
        )
        disable = facts.writing.spelled("torch.compiler.disable", node)
        early = disable is not None and facts.ask(Clusters).has_early(disable.partition(".")[0], node)
        if disable is not None and early and _is_callable(node, facts):
            yield Finding(node, message, Fix((Decorate(node, Code(disable)),), Applicability.UNSAFE), _LITTLE)
        else:
            yield Finding(node, message, assumption=f"`{node.name}` is not called as a plain function")

    invalid = INVALID
    valid = VALID


def _is_callable(function: FunctionNode, facts: Facts) -> bool:
    """Whether others call it as a function, so that it can be left out of graphs."""
    name, syntax = function.name, facts.syntax
    if isinstance(function, ast.AsyncFunctionDef) or syntax.own(function, ast.Yield, ast.YieldFrom) or facts.scripted:
        return False
    special = name.startswith("__") and name.endswith("__") and name not in _CALLED
    if special or syntax.function_of(function) is not None:
        return False
    if facts.ask(Clusters).is_handed_over(function) or _is_model(function, facts):
        return False
    called = [getattr(d, "func", d) for d in function.decorator_list]
    names = {syntax.qualified(d) or ast.unparse(d) for d in called} - _PLAIN
    if any(what.partition(".")[0] in _MAKERS for what in names):
        return False
    return facts.comments.about_compiling(function.lineno, function.end_lineno or function.lineno) is None


def _is_model(function: FunctionNode, facts: Facts) -> bool:
    """Whether it is what a call of a model runs: of one that was run, or of any where that is not known."""
    cls = facts.syntax.class_of(function)
    if cls is None or function.name not in _HELD or facts.syntax.method_of(function) is not function:
        return False
    if not facts.settings.models:
        return facts.is_module_class(cls)
    own = facts.qualname(cls) or cls.name
    family, _ = facts.project.family(own)
    return any(
        model == known or model.endswith(f".{known}") or known.endswith(f".{model}")
        for model in facts.settings.models
        for known in {own, *family}
    )
