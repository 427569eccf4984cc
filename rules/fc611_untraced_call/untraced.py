"""Calls that Dynamo does not trace, whatever they are given: functions of the host, and what makes a sparse tensor."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from patcher.facts.analysis import Analysis
from patcher.facts.numbers.likely_tensors import LikelyTensors
from patcher.facts.project.given_back import given_back
from patcher.facts.syntax.docstrings import sparse_documented
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.tables import host_api
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Kind
from rules.fc611_untraced_call.generators import Generators
from rules.fc611_untraced_call.host_objects import LISTING, TEXTS, HostObjects

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

#: One of these stands in the text of a module in which `UntracedCalls` finds something; kinds of sparse tensors last,
#: and what brings functions of other files that give one.
WORDS_OF_UNTRACED = (
    host_api.NOT_TRACED
    | host_api.NOT_TRACED_ELSEWHERE
    | host_api.NOT_TRACED_SIZES
    | host_api.WITH_WEIGHTS
    | host_api.NOT_TRACED_METHODS
    | host_api.NOT_TRACED_OF_MODULES
    | {
        "data_ptr",
        "sparse",
        "coo",
        "csr",
        "csc",
        "bsr",
        "bsc",
        "from ",
        "deepcopy",
        "numpy",
        "pow(",
        "cached_property",
        "ContextVar",
        "enerator",
        "as_subclass",
    }
    | {f"{name}(" for name in LISTING | TEXTS | {"join"}}
    | host_api.SKIPPED_LIBRARIES
)
_NOT_TRACED = host_api.NOT_TRACED | host_api.NOT_TRACED_ELSEWHERE | host_api.NOT_TRACED_OF_NUMPY


class Why(Enum):
    """What is the matter with it."""

    CALL = "a call that is not traced"
    ROWS = "its result has as many rows as the data says"
    WEIGHTS = "weights are made"
    LISTED = "a list that a text gave is changed"
    TEXT = "a text of a size"
    KEPT = "a property that is worked out once, under a lock"
    POWER = "a function of Python that has an operator of the same meaning"
    ADDRESS = "addresses of tensors are compared"
    DRAWN = "a generator of random numbers is used"
    SPARSE = "a sparse tensor is made"
    HELD = "a sparse tensor is at hand"
    GIVEN = "a parameter is a sparse tensor"
    LEFT_OUT = "a function that is left out of graphs is made while the code runs"
    LEFT_OUT_CALL = "such a function is called"


@dataclass(frozen=True)
class Untraced:
    """The graph ends at ``node`` because of ``what``, as it is written; ``name``: the function that it is, dotted."""

    node: ast.expr | ast.stmt
    what: ast.expr
    why: Why
    name: str = ""


class UntracedCalls(Analysis):
    """Those of one module."""

    def is_elsewhere(self, node: ast.AST) -> bool:
        """Whether ``node`` stands in a file without PyTorch that no compiled code of another one gets to."""
        if self._has_torch:
            return False
        function = node if isinstance(node, _FUNCTIONS) else self.syntax.function_of(node)
        while function is not None and (outer := self.syntax.function_of(function)) is not None:
            function = outer
        name = self.facts.qualname(function) if function is not None else None
        return name is None or not self.project.reached_with_torch(name)

    @cached_property
    def _has_torch(self) -> bool:
        return any(what.partition(".")[0] == "torch" for _, what, _ in self.syntax.all_imports)

    def _is_traced(self, what: str, call: ast.Call) -> bool:
        """Whether the torch that is meant takes ``call`` of ``what`` in, which others did not."""
        if not host_api.may_be_traced(what, self.facts.settings.target_torch):
            return False
        if what == "pow":
            return len(call.args) == 2 and not call.keywords
        if what.startswith("heapq."):
            return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 1
        return True

    def at(self, call: ast.Call) -> Iterator[Untraced]:
        """Where the graph ends because of ``call``."""
        what, func = self.syntax.qualified(call.func) or self.syntax.builtin(call) or "", call.func
        if self._is_traced(what, call):
            return
        if (
            what in _NOT_TRACED
            or (what == "copy.deepcopy" and any(map(self._is_copied, call.args)))
            or self.facts.ask(HostObjects).is_of_context(call)
            or self._loses_class(call)
            or (what.partition(".")[0] in host_api.SKIPPED_LIBRARIES and "." in what)
        ):
            yield Untraced(call, func, Why.CALL, what)
        elif what == "pow" and any(
            map(self.facts.ask(LikelyTensors).of, (*call.args, *(k.value for k in call.keywords)))
        ):
            yield Untraced(call, func, Why.POWER)
        elif (compared := self._compares_addresses(call)) is not None:
            yield Untraced(compared, compared, Why.ADDRESS)
        elif self.facts.ask(Generators).ends(call):
            yield Untraced(call, func, Why.DRAWN)
        elif what in host_api.NOT_TRACED_SIZES:
            yield Untraced(call, func, Why.ROWS)
        elif self.facts.ask(HostObjects).is_text_of_size(call):
            yield Untraced(call, func, Why.TEXT)
        elif what in host_api.WITH_WEIGHTS:
            yield Untraced(call, func, Why.WEIGHTS)
        elif self.makes_sparse(call):
            yield Untraced(call, func, Why.SPARSE)
        elif self.facts.ask(HostObjects).changes_listed(call):
            yield Untraced(call, func, Why.LISTED)
        elif isinstance(func, ast.Attribute) and func.attr in host_api.NOT_TRACED_METHODS:
            if self.facts.ask(LikelyTensors).of(func.value) or self._goes_backward(call, func):
                yield Untraced(call, func, Why.CALL)
        elif isinstance(func, ast.Attribute) and func.attr in host_api.NOT_TRACED_OF_MODULES:
            if not self.facts.ask(Callees).of(call):  # no method of the project's
                yield Untraced(call, func, Why.CALL)
        elif isinstance(func, ast.Name) and (made := self._made_here(func)) is not None:
            yield Untraced(call, made, Why.LEFT_OUT_CALL)
        if (following := self._where_held(call)) is not None:
            yield Untraced(following, func, Why.HELD)

    def _compares_addresses(self, call: ast.Call) -> ast.Compare | None:
        """The comparison of ``x.data_ptr()`` with another address, at the first of them."""
        around = self.syntax.parents[call]
        if not isinstance(around, ast.Compare):
            return None
        addresses = [p for p in (around.left, *around.comparators) if _is_address(p)]
        return around if len(addresses) > 1 and addresses[0] is call else None

    def _loses_class(self, call: ast.Call) -> bool:
        """Whether that takes the class off a tensor: ``x.as_subclass(torch.Tensor)``."""
        named = isinstance(call.func, ast.Attribute) and call.func.attr == "as_subclass" and len(call.args) == 1
        return named and self.syntax.qualified(call.args[0]) == "torch.Tensor"

    def _goes_backward(self, call: ast.Call, func: ast.Attribute) -> bool:
        """Whether that is a step of training: of a loss, or by what takes it, ``engine.backward(loss)``."""
        if func.attr != "backward" or self.facts.ask(Callees).of(call) or self.syntax.qualified(func) is not None:
            return False
        return isinstance(func.value, (ast.Name, ast.Attribute)) or self.inference.of(func.value).is_tensor

    def _is_copied(self, e: ast.expr) -> bool:
        """Whether Dynamo cannot copy ``e``: a tensor, or a module, which has some."""
        return self.inference.of(e).kind is Kind.MODULE or self.facts.ask(LikelyTensors).of(e)

    def given_sparse(self, function: FunctionNode) -> Iterator[Untraced]:
        """Where ``function`` first reads a parameter that is said to be a sparse tensor, and is used so."""
        for name in sorted(sparse_documented(function)):
            own = (n for n in self.syntax.own(function, ast.Name) if isinstance(n, ast.Name) and n.id == name)
            reads = sorted((n for n in own if isinstance(n.ctx, ast.Load)), key=lambda n: (n.lineno, n.col_offset))
            if any(map(self._is_used_sparse, reads)):
                yield Untraced(reads[0], reads[0], Why.GIVEN)

    def _is_used_sparse(self, read: ast.Name) -> bool:
        parent = self.syntax.parents.get(read)
        if not isinstance(parent, ast.Attribute) or parent.value is not read:
            return False
        return parent.attr in host_api.ASKED_OF_SPARSE

    def kept(self, function: FunctionNode) -> Iterator[Untraced]:
        """Where the graph ends in ``function`` because a kept property is read for the first time."""
        for read in self.facts.ask(HostObjects).kept_reads(function):
            if not self.facts.eager_only(read):
                yield Untraced(read, read, Why.KEPT)

    def left_out(self, function: FunctionNode) -> ast.expr | None:
        """The decorator that leaves ``function`` out of graphs, where compiled code makes the function."""
        around = self.syntax.function_of(function)
        if around is None or not self.facts.compiled(around.body[0]):
            return None
        return next(filter(self._leaves_out, function.decorator_list), None)

    def _leaves_out(self, decorator: ast.expr) -> bool:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        return self.syntax.qualified(named) in api.DISABLE

    def _made_here(self, name: ast.Name) -> ast.expr | None:
        """The decorator of the function that ``name`` is, when compiled code around it has left it out of graphs."""
        for f, decorator in self._left_out.get(name.id, ()):
            around = {a for a in self.syntax.ancestors(f) if isinstance(a, _FUNCTIONS)}
            if not around.isdisjoint(self.syntax.ancestors(name)):
                return decorator
        return None

    @cached_property
    def _left_out(self) -> dict[str, list[tuple[FunctionNode, ast.expr]]]:
        """By name, the functions that compiled code leaves out of graphs, each with its decorator."""
        found: dict[str, list[tuple[FunctionNode, ast.expr]]] = {}
        for f in self.syntax.functions:
            if (decorator := self.left_out(f)) is not None:
                found.setdefault(f.name, []).append((f, decorator))
        return found

    # --- sparse tensors -----------------------------------------------------------------------------------------------

    def makes_sparse(self, call: ast.Call) -> bool:
        """Whether a function or method of PyTorch makes a sparse tensor there."""
        what = self.syntax.qualified(call.func) or ""
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        return what in host_api.SPARSE_MAKERS or (method in host_api.SPARSE_METHODS and not what.startswith("torch."))

    def gives_sparse(self, call: ast.Call) -> bool:
        """Whether ``call`` makes a sparse tensor, or runs functions of the project that return one."""
        if self.makes_sparse(call):
            return True
        names, what = self.facts.ask(Callees).of(call), self.syntax.qualified(call.func)
        if not names and what is None:
            inner = [f for f in self.syntax.functions if isinstance(call.func, ast.Name) and f.name == call.func.id]
            return any("sparse" in given_back(self.syntax.subtree(f), self._resolve) for f in inner)
        summaries = [self.project.function(n) for n in names] or [self.project.handed_on(what) if what else None]
        return all(s is not None and "sparse" in s.gives for s in summaries)

    def _resolve(self, text: str) -> str:
        root, _, rest = text.partition(".")
        imported = self.syntax.imports.get(root)
        return text if imported is None else f"{imported}.{rest}" if rest else imported

    def _where_held(self, call: ast.Call) -> ast.stmt | None:
        """The statement after the first of its function that binds a sparse tensor, which is read later on.

        Dynamo goes on there, is handed the tensor, and gives the rest of the function up.
        """
        statement = self.syntax.parents.get(call)
        if not isinstance(statement, ast.Assign) or not self.gives_sparse(call) or not self._is_first(statement):
            return None
        names = [t.id for t in statement.targets if isinstance(t, ast.Name)]
        function, following = self.syntax.function_of(statement), self.syntax.following(statement)
        if function is None or not following:
            return None
        later = (n for n in self.syntax.own(function, ast.Name) if isinstance(n, ast.Name))
        read = any(isinstance(n.ctx, ast.Load) and n.id in names and n.lineno > statement.lineno for n in later)
        return following[0] if read else None

    def _is_first(self, statement: ast.Assign) -> bool:
        """Whether no sparse tensor is bound above it in its function."""
        function = self.syntax.function_of(statement)
        return function is None or self._first_bound(function) >= statement.lineno

    def _first_bound(self, function: FunctionNode) -> float:
        """The line of the first statement of ``function`` that binds a sparse tensor."""
        if function not in self._lines:
            bound = (n for n in self.syntax.own(function, ast.Assign) if isinstance(n, ast.Assign))
            lines = (n.lineno for n in bound if isinstance(n.value, ast.Call) and self.gives_sparse(n.value))
            self._lines[function] = min(lines, default=math.inf)
        return self._lines[function]

    @cached_property
    def _lines(self) -> dict[FunctionNode, float]:
        return {}


def _is_address(e: ast.expr) -> bool:
    return isinstance(e, ast.Call) and not e.args and last_name(e.func) == "data_ptr"
