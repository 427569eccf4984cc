"""Calls of functions that were compiled again for other sizes: which argument it was, and what keeps it from marks.

Marks are made by eager code, on the tensor, before the call. `torch.compiler.is_compiling` tells eager code apart: what
is traced leaves them out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.running.variations import Variations
from patcher.facts.syntax.tree import FunctionNode, dotted
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Kind

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NO_PLACE = (*_FUNCTIONS, ast.ClassDef, ast.While)
_MARKS = frozenset(f"torch._dynamo.{n}" for n in ("maybe_mark_dynamic", "mark_dynamic", "mark_static")) | frozenset(
    f"torch._dynamo.decorators.{n}" for n in ("maybe_mark_dynamic", "mark_dynamic", "mark_static", "mark_unbacked")
)


@dataclass(frozen=True)
class Given:
    """An argument of a call, of which some dimensions came in other sizes.

    ``name``: what is given, where ``why_not`` is "". ``sure``: it is a tensor whenever the call is made. ``ones``:
    those of ``dims`` that were 1 at times.
    """

    parameter: str
    dims: tuple[int, ...]
    ones: tuple[int, ...]
    name: ast.Name | None
    sure: bool
    why_not: str = ""


class EagerCalls(Analysis):
    """The calls in one module that may be made by eager code, of functions that are compiled on their own."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.variations = facts.ask(Variations)
        self.callees = facts.ask(Callees)
        self._known: dict[ast.Call, str | None] = {}
        self._arguments: dict[ast.Call, tuple[Given, ...]] = {}

    def callee(self, call: ast.Call) -> str | None:
        """The dotted function with evidence that ``call`` runs, when it is not that function that calls itself."""
        if not self._sized:
            return None
        if call not in self._known:
            found = [name for name in self.run_by(call.func) if name in self._sized]
            own = self.syntax.function_of(call)
            recursive = bool(found) and own is not None and self.variations.definitions.get(found[0]) is own
            self._known[call] = found[0] if found and not recursive else None
        return self._known[call]

    @cached_property
    def _sized(self) -> frozenset[str]:
        """The functions in which a size has varied."""
        return frozenset(f for f in self.variations.functions if any(v.dim is not None for v in self.variations.of(f)))

    def arguments(self, call: ast.Call) -> tuple[Given, ...]:
        """What ``call`` gives for the parameters that varied, as far as no mark is on it yet."""
        if call not in self._arguments:
            self._arguments[call] = tuple(self._all_given(call))
        return self._arguments[call]

    def _all_given(self, call: ast.Call) -> Iterator[Given]:
        callee = self.callee(call)
        varied: dict[str, dict[int, bool]] = {}
        for v in self.variations.of(callee) if callee is not None else ():
            if v.dim is not None:
                dims = varied.setdefault(v.parameter, {})
                dims[v.dim] = dims.get(v.dim, False) or v.one
        for parameter, dims in varied.items():
            yield from self._given(call, callee or "", parameter, dims)

    @cached_property
    def _by_caller(self) -> dict[FunctionNode | None, list[ast.Call]]:
        """Function -> the calls in it, in the order of the source; None: those outside of functions."""
        found: dict[FunctionNode | None, list[ast.Call]] = {}
        for call in self.syntax.by_type[ast.Call]:
            if isinstance(call, ast.Call):
                found.setdefault(self.syntax.function_of(call), []).append(call)
        for calls in found.values():
            calls.sort(key=lambda c: (c.lineno, c.col_offset))
        return found

    def beside(self, call: ast.Call) -> list[ast.Call]:
        """The calls with evidence in the statement of ``call``, in the order of the source."""
        statement = self.syntax.statement_of(call)
        calls = self._by_caller[self.syntax.function_of(call)]
        return [c for c in calls if self.syntax.statement_of(c) is statement and self.callee(c) is not None]

    # --- which function ---------------------------------------------------------------------------------------------

    def run_by(self, func: ast.expr, depth: int = 4) -> list[str]:
        """The functions that calling ``func`` may run, also when it is what torch.compile has made of something."""
        original = self._before_compiling(func) if depth else None
        if original is not None:
            return self.run_by(original, depth - 1)
        return self.callees.of(ast.Call(func, [], []))

    def _before_compiling(self, func: ast.expr) -> ast.expr | None:
        """What ``func`` is compiled from, where each of its assignments compiles one and the same thing."""
        values: list[ast.expr | None] = []
        if isinstance(func, ast.Call):
            values = [func]
        elif (own := self.inference.instance_attribute(func)) is not None:
            values = [s.value for s in self.inference.class_facts(own[0]).stores.get(own[1], []) if s.how != "declared"]
        elif isinstance(func, ast.Name):
            definitions = self.inference.definitions(func)
            values = [d.value if d.how == "assign" and not d.path else None for d in definitions]
            if not definitions and self.syntax.function_of(func) is not None:
                values = [s.value for s in self._global(func.id)]
        originals = [self._compiled(v) for v in values]
        if not originals or originals[0] is None or len({ast.dump(o) if o else "" for o in originals}) > 1:
            return None
        itself = isinstance(func, ast.Attribute) and dotted(originals[0]) == dotted(func) is not None
        return None if itself else originals[0]

    def _compiled(self, value: ast.expr | None) -> ast.expr | None:
        if isinstance(value, ast.Call) and value.args and self.syntax.qualified(value.func) == "torch.compile":
            return value.args[0]
        return None

    def _global(self, name: str) -> Iterator[ast.Assign]:
        for statement in self.syntax.tree.body:
            if isinstance(statement, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == name for t in statement.targets
            ):
                yield statement

    # --- which argument ---------------------------------------------------------------------------------------------

    def _given(self, call: ast.Call, callee: str, parameter: str, dims: dict[int, bool]) -> Iterator[Given]:
        argument = self.argument(call, callee, parameter)
        if argument is None or (isinstance(argument, ast.expr) and self.inference.of(argument).python == "none"):
            return  # the default, or none at all
        why_not = argument if isinstance(argument, str) else self._why_no_mark(call, argument)
        if why_not or not isinstance(argument, ast.Name):
            yield Given(parameter, tuple(sorted(dims)), (), None, sure=False, why_not=str(why_not))
            return
        done = self._marked_before(call, argument)
        left = sorted(d for d in dims if d not in done and not self._marked(argument, d))
        if left:
            ones = tuple(d for d in left if dims[d])
            yield Given(parameter, tuple(left), ones, argument, sure=self.inference.of(argument).is_tensor)

    def argument(self, call: ast.Call, callee: str, parameter: str) -> ast.expr | str | None:
        """What is given for ``parameter``: an expression, None for the default, or why it cannot be told."""
        for keyword in call.keywords:
            if keyword.arg == parameter:
                return keyword.value
        summary = self.project.function(callee)
        node = self.variations.definitions.get(callee)
        names = summary.positional if summary is not None else ()
        if node is not None:
            names = tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args))
        owner = callee.rpartition(".")[0]
        bound = self.project.known_class(owner) is not None or (node is not None and self._is_method(node))
        at = names.index(parameter) - (bound and not self._is_static(node)) if parameter in names else None
        before = call.args if at is None else call.args[: at + 1]
        if any(isinstance(a, ast.Starred) for a in before):
            return f"`{parameter}` is given by a `*`"
        if at is not None and 0 <= at < len(call.args):
            return call.args[at]
        return f"`{parameter}` may be given by a `**`" if any(k.arg is None for k in call.keywords) else None

    def _is_method(self, node: FunctionNode) -> bool:
        return isinstance(self.syntax.parents.get(node), ast.ClassDef)

    def _is_static(self, node: FunctionNode | None) -> bool:
        return node is not None and any(dotted(d) == "staticmethod" for d in node.decorator_list)

    # --- can it be marked here --------------------------------------------------------------------------------------

    def _why_no_mark(self, call: ast.Call, argument: ast.expr) -> str:
        if not isinstance(argument, ast.Name):
            return f"`{ast.unparse(argument)}` has no name that could be marked before the call"
        statement = self.syntax.statement_of(call)
        caller = self.syntax.function_of(call)
        if isinstance(statement, _NO_PLACE) or not self.syntax.alone(statement):
            return "there is no place for a statement right before the call"
        inside = next((p for p in self.syntax.ancestors(call) if isinstance(p, (ast.stmt, ast.Lambda))), None)
        if isinstance(inside, ast.Lambda):
            return "the call stands in a lambda"
        if argument.id in self._bound_within(statement, call):
            return f"`{argument.id}` gets its value in the statement of the call"
        if caller is not None:
            if self._is_compiled(caller):
                return f"`{caller.name}` is compiled too: only eager code can mark"
            reaching = self.flow_of(caller).reaching.get(argument, frozenset())
            if any(d.how == "unbound" for d in reaching):
                return f"`{argument.id}` has no value on some path"
        value = self.inference.of(argument)
        if value.trainable:
            return f"`{argument.id}` is a weight: its size stays"
        if value.kind in (Kind.PYTHON, Kind.MODULE):
            return f"`{argument.id}` is no tensor here"
        return ""

    def _bound_within(self, statement: ast.stmt, call: ast.Call) -> set[str]:
        """Names that expressions of ``statement`` bind, comprehensions around ``call`` included."""
        names: set[str] = set()
        for node in ast.walk(statement):
            if isinstance(node, ast.NamedExpr) and self.syntax.statement_of(node) is statement:
                names.add(node.target.id)
        for parent in self.syntax.ancestors(call):
            if parent is statement:
                break
            if isinstance(parent, _COMPREHENSIONS):
                names |= {n.id for g in parent.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        return names

    def _is_compiled(self, function: FunctionNode) -> bool:
        around = [function, *(p for p in self.syntax.ancestors(function) if isinstance(p, _FUNCTIONS))]
        given = [d.func if isinstance(d, ast.Call) else d for f in around for d in f.decorator_list]
        return any(self.syntax.qualified(d) in api.COMPILE for d in given)

    # --- marks that are there ---------------------------------------------------------------------------------------

    def _marked(self, argument: ast.Name, dim: int) -> bool:
        """Whether what ``argument`` holds is marked somewhere in the function, also as one of a tuple of names."""
        values = self.inference.definitions(argument)
        for mark in self._by_caller[self.syntax.function_of(argument)]:
            if len(mark.args) < 2 or self.syntax.qualified(mark.func) not in _MARKS:
                continue
            dims = {n.value for n in ast.walk(mark.args[1]) if isinstance(n, ast.Constant)}
            named = [n for n in self._names(mark.args[0]) if n.id == argument.id]
            if dim in dims and any(self.inference.definitions(n) == values for n in named):
                return True
        return False

    def _marked_before(self, call: ast.Call, argument: ast.Name) -> set[int]:
        """Dimensions of what ``argument`` holds that are to be marked at an earlier call, which always comes first."""
        caller = self.syntax.function_of(call)
        if caller is None:
            return set()
        flow = self.flow_of(caller)
        around = {self.syntax.statement_of(call), *self.syntax.ancestors(call)}
        done: set[int] = set()
        for other in self._by_caller[caller]:
            statement = self.syntax.statement_of(other)
            if other is call:
                break
            if (
                self.callee(other) is not None
                and statement not in around
                and any(s in around for s in self.syntax.block_of(statement))
            ):
                for given in self.arguments(other):
                    if given.name is not None and flow.unchanged(given.name, argument):
                        done |= set(given.dims) if given.name.id == argument.id else set()
        return done

    def _names(self, marked: ast.expr) -> list[ast.Name]:
        """The names whose values ``marked`` goes through."""
        if not isinstance(marked, ast.Name):
            return []
        found = [marked]
        for d in self.inference.definitions(marked):
            if d.how == "iteration" and isinstance(d.value, (ast.Tuple, ast.List)) and not d.path:
                found += [e for e in d.value.elts if isinstance(e, ast.Name)]
        return found
