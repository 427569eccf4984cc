"""A function of what a mask selects, the results of which are written back through that mask, row by row."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.syntax.written import given
from patcher.facts.tables import torch_api as api

#: What takes each element by itself, or is told which dimension to work along.
_BY_ELEMENT = (
    api.SMOOTH_SAME
    | api.SMOOTH_FLOAT
    | api.STEEP_FLOAT
    | api.PREDICATES
    | frozenset("pow where zeros_like ones_like maximum minimum lerp to float add sub mul div".split())
)
_ALONG = frozenset("softmax log_softmax cumsum sum mean amax amin gather argmax argmin norm any all logsumexp".split())


@dataclass(frozen=True)
class RowCall:
    """``targets = call``: reads in ``call`` and targets all go through ``mask``, a name."""

    statement: ast.Assign
    mask: ast.Name
    call: ast.Call
    reads: tuple[ast.Subscript, ...]
    targets: tuple[ast.Subscript, ...]


class RowCalls(Analysis):
    """Such statements of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.masked_reads = facts.ask(MaskedReads)

    def of(self, statement: ast.stmt) -> RowCall | None:
        """``statement`` as one whose function shows no sign of mixing rows; None when it is none."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        call, target = statement.value, statement.targets[0]
        targets = [t for t in (target.elts if isinstance(target, ast.Tuple) else [target]) if _of_name(t)]
        if not isinstance(call, ast.Call) or len(targets) != (len(target.elts) if isinstance(target, ast.Tuple) else 1):
            return None
        written = [t for t in targets if isinstance(t, ast.Subscript)]
        mask = written[0].slice if written else None
        if not isinstance(mask, ast.Name) or any(ast.unparse(t.slice) != mask.id for t in written):
            return None
        arguments = given(call)
        reads = [a for a in arguments if isinstance(a, ast.Subscript) and self._through(a, mask)]
        others = [n for a in arguments if a not in reads for n in ast.walk(a)]
        if not reads or any(
            isinstance(n, ast.Starred) or (isinstance(n, ast.Name) and n.id == mask.id) for n in others
        ):
            return None
        if any(k.arg is None for k in call.keywords) or not self.rowwise(call):
            return None
        return RowCall(statement, mask, call, tuple(reads), tuple(written))

    def _through(self, e: ast.Subscript, mask: ast.Name) -> bool:
        read = self.masked_reads.of(e)
        same = read is not None and isinstance(read.mask, ast.Name) and read.mask.id == mask.id
        return same and read is not None and read.first and isinstance(read.base, ast.Name)

    def rowwise(self, call: ast.Call) -> bool:
        """Whether the function is one of this module that works along last dimensions only, as far as can be seen."""
        name = call.func.id if isinstance(call.func, ast.Name) else None
        functions = self.syntax.by_type[ast.FunctionDef]
        found = [f for f in functions if f.name == name and self.syntax.qualname(f) == name]
        if len(found) != 1 or found[0].decorator_list or self.masked_reads.inference.definitions_of_root(call.func):
            return False
        return all(self._by_row(n) for n in _inside(found[0]))

    def _by_row(self, n: ast.AST) -> bool:
        match n:
            case ast.Subscript(value=ast.Attribute(attr="shape"), slice=index):
                return ast.unparse(index).startswith("-")
            case ast.Subscript(slice=ast.Tuple(elts=[ast.Constant(value=first), *_])):
                return first is ...
            case ast.Subscript():
                return False
            case ast.Call(func=func):
                name = last_name(func)
                if name in _ALONG:
                    return any(ast.unparse(a).startswith("-") for a in given(n))
                if name == "pad":
                    pairs = [a for a in given(n) if isinstance(a, (ast.Tuple, ast.List))]
                    return len(pairs) == 1 and len(pairs[0].elts) == 2
                return name in _BY_ELEMENT or self._checks(n)
            case ast.For() | ast.While() | ast.Try() | ast.With() | ast.Yield() | ast.Await() | ast.Lambda():
                return False
        return True

    def _checks(self, call: ast.Call) -> bool:
        what = self.syntax.qualified(call.func)
        callee = self.masked_reads.project.handed_on(what) if what is not None else None
        return callee is not None and bool(callee.conditions)


def _of_name(e: ast.expr) -> bool:
    return isinstance(e, ast.Subscript) and isinstance(e.value, ast.Name)


def _inside(function: FunctionNode) -> Iterator[ast.AST]:
    """What runs in ``function``; not the arguments of what only checks, nor what makes a message."""
    stack: list[ast.AST] = [*function.body]
    while stack:
        n = stack.pop()
        yield n
        if isinstance(n, ast.Raise):
            continue
        checked = isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and isinstance(n.value.func, ast.Name)
        if checked and isinstance(n, ast.Expr):
            yield n.value
            continue
        stack.extend(ast.iter_child_nodes(n))
