"""Calls of functions that were compiled again for other sizes, and which of their arguments can be marked.

Marks are made by eager code, on the tensor, before the call. `torch.compiler.is_compiling` tells eager code apart: what
is traced leaves them out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.running.variations import Variations
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Kind

_NO_PLACE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.While)
_WITHIN = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MARKS = frozenset({"maybe_mark_dynamic", "mark_dynamic", "mark_static", "mark_unbacked"})


@dataclass(frozen=True)
class Given:
    """An argument of a call, of which some dimensions came in other sizes.

    ``name``: what is given. ``sure``: it is a tensor whenever the call is made. ``ones``: those of ``dims`` that were 1
    at times.
    """

    parameter: str
    dims: tuple[int, ...]
    ones: tuple[int, ...]
    name: ast.Name
    sure: bool


class EagerCalls(Analysis):
    """The calls in one module that may be made by eager code, of functions that are compiled on their own."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.variations = facts.ask(Variations)
        self.callees = facts.ask(Callees)

    def callee(self, call: ast.Call) -> str | None:
        """The dotted function in which a size has varied that ``call`` runs, when that is not around it."""
        sized = (n for n in self.run_by(call.func) if any(v.dim is not None for v in self.variations.of(n)))
        found = next(sized, "")
        own = self.syntax.function_of(call)
        return found if found and (own is None or self.variations.definitions.get(found) is not own) else None

    def beside(self, call: ast.Call) -> list[ast.Call]:
        """The calls with evidence in the statement of ``call``, in the order of the source."""
        calls = (n for n in ast.walk(self.syntax.statement_of(call)) if isinstance(n, ast.Call))
        found = (c for c in calls if self.syntax.statement_of(c) is self.syntax.statement_of(call) and self.callee(c))
        return sorted(found, key=lambda c: (c.lineno, c.col_offset))

    def run_by(self, func: ast.expr, depth: int = 4) -> list[str]:
        """The functions that calling ``func`` may run, also when it is what torch.compile has made of something."""
        values: list[ast.expr | None] = []
        if (own := self.inference.instance_attribute(func)) is not None:
            values = [s.value for s in self.inference.class_facts(own[0]).stores.get(own[1], []) if s.how != "declared"]
        elif isinstance(func, ast.Name):
            values = [d.value for d in self.inference.definitions(func) if d.how == "assign"]
            top = (s for s in self.syntax.tree.body if not values and isinstance(s, ast.Assign))
            values = values or [s.value for s in top if ast.unparse(s.targets[0]) == func.id]
        match values:
            case [ast.Call(func=made, args=[original, *_])] if self.syntax.qualified(made) == "torch.compile" and depth:
                if isinstance(func, ast.Name) or ast.unparse(original) != ast.unparse(func):
                    return self.run_by(original, depth - 1)
        return self.callees.of(ast.Call(func, [], []))

    def arguments(self, call: ast.Call) -> Iterator[Given]:
        """What ``call`` gives for the parameters that varied and can be marked, where no mark is made yet."""
        callee, function = self.callee(call) or "", self.syntax.function_of(call)
        around = self.syntax.tree if function is None else function
        if any(isinstance(n, ast.Attribute) and n.attr in _MARKS for n in ast.walk(around)):
            return
        varied = [v for v in self.variations.of(callee) if v.dim is not None]
        for parameter in dict.fromkeys(v.parameter for v in varied):
            argument = self.argument(call, callee, parameter)
            if isinstance(argument, ast.Name) and self._is_markable(call, argument):
                dims = sorted({v.dim for v in varied if v.parameter == parameter and v.dim is not None})
                ones = {v.dim for v in varied if v.parameter == parameter and v.one}
                sure = self.inference.of(argument).is_tensor
                yield Given(parameter, tuple(dims), tuple(d for d in dims if d in ones), argument, sure)

    def argument(self, call: ast.Call, callee: str, parameter: str) -> ast.expr | None:
        """What is given for ``parameter``; None for the default, and where it cannot be told."""
        named = next((k.value for k in call.keywords if k.arg == parameter), None)
        summary, node = self.project.function(callee), self.variations.definitions.get(callee)
        names = summary.positional if summary is not None else ()
        if node is not None:
            names = tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args))
        static = node is not None and "staticmethod" in map(ast.unparse, node.decorator_list)
        method = self.project.known_class(callee.rpartition(".")[0]) is not None and not static
        at = names.index(parameter) - method if parameter in names else -1
        given = call.args[: at + 1]
        starred = any(isinstance(a, ast.Starred) for a in given)
        return given[at] if named is None and 0 <= at < len(given) and not starred else named

    def _is_markable(self, call: ast.Call, argument: ast.Name) -> bool:
        """Whether a statement before that of ``call`` can mark ``argument``."""
        statement, caller = self.syntax.statement_of(call), self.syntax.function_of(call)
        if isinstance(statement, _NO_PLACE) or not self.syntax.alone(statement):
            return False
        inside = takewhile(lambda p: p is not statement, self.syntax.ancestors(call))
        named = (n.target.id for n in ast.walk(statement) if isinstance(n, ast.NamedExpr))
        if any(isinstance(p, _WITHIN) for p in inside) or argument.id in named:
            return False
        value = self.inference.of(argument)
        unbound = any(d.how == "unbound" for d in self.inference.definitions(argument))
        compiled = caller is not None and self._is_compiled(caller)
        return not (unbound or compiled or value.trainable or value.kind in (Kind.PYTHON, Kind.MODULE))

    def _is_compiled(self, function: FunctionNode) -> bool:
        decorators = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
        return any(self.syntax.qualified(d) in api.COMPILE for d in decorators)
