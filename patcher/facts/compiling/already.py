"""What is compiled already where it is compiled once more, and what comes of that: all seen on torch 2.13."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.values.callees import Callees

How = Literal[
    "wrapper",  # it is what torch.compile has given for a module
    "returned",  # it is what torch.compile has given, in a function of another file
    "in place",  # by its own ``compile``
    "forward",  # its ``forward`` is compiled, by a decorator or an assignment
    "class",  # its class has the decorator
]


@dataclass(frozen=True)
class Already:
    """``where``: of the first call or decorator, to be told."""

    how: How
    where: str


class CompiledAlready(Analysis):
    """Sites of one module whose model is compiled when they are reached, always or in a case that is told.

    No answer is no proof of anything.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.sites = facts.ask(CompileSites)
        self.callees = facts.ask(Callees)

    def of(self, site: CompileSite) -> Already | None:
        """How it is compiled already; None where nothing shows that it is."""
        if site.form == "decorator" or site.model is None or _may_be_off(site):
            return None
        found = self._class(site) or next(self._above(site), None) or self._given(site.model)
        return found or self._turn_before(site)

    def _class(self, site: CompileSite) -> Already | None:
        """A decorator of the class, of one above it, or of all ``forward`` that may run."""
        if site.cls is None:
            return None
        own = self.project.family(site.cls)[0] if not self.project.subclasses(site.cls) else {site.cls}
        name = site.cls.rpartition(".")[2]
        called = any((s := self.project.known_class(cls)) is not None and "__call__" in s.methods for cls in own)
        for cls in sorted(own):
            summary = self.project.known_class(cls)
            if summary is not None and summary.compiled and not called:  # what is compiled is its ``__call__``
                return Already("class", f"the class `{cls.rpartition('.')[2]}` has `@torch.compile`")
        forwards = [self.project.function(full) for full in self.project.methods(site.cls, "forward")]
        if forwards and not site.by_forward and all(f is not None and f.compiled for f in forwards):
            return Already("forward", f"the `forward` of `{name}` has `@torch.compile`")
        return None

    def _above(self, site: CompileSite) -> Iterator[Already]:
        """Calls that have compiled what is written the same way, and are run whenever this one is."""
        assert site.model is not None
        statement, text = self.syntax.statement_of(site.node), ast.unparse(site.model)
        if not isinstance(site.model, (ast.Name, ast.Attribute)):
            return
        stores = self._stores(site.model, site)
        for other in reversed(self.sites.all):
            first = self.syntax.statement_of(other.node)
            if other.model is None or first.lineno >= statement.lineno or ast.unparse(other.model) != text:
                continue
            condition = self._leads_to(first, statement)
            if other.function is not site.function or condition is None or _may_be_off(other):
                continue
            if any(first.lineno < line < statement.lineno for line in stores):
                continue
            where = f"line {other.node.lineno}{condition}"
            if other.by_forward:
                if other.form == "again" and not site.by_forward:
                    yield Already("forward", where)
            elif not site.by_forward and other.is_module and other.form in ("again", "in place"):
                yield Already("wrapper" if other.form == "again" else "in place", where)

    def _given(self, model: ast.expr, depth: int = 4) -> Already | None:
        """What torch.compile gives, here or in a function that returns it, also under another name."""
        if isinstance(model, ast.Call):
            site = self.sites.at(model)
            if site is not None:
                gives = self._gives_wrapper(site) and not _may_be_off(site)
                return Already("wrapper", f"line {model.lineno}") if gives else None
            functions = self.callees.of(model)
            if functions and all(self._returns_compiled(name, depth - 1) for name in functions):
                seen = all(self.callees.here(name) is not None for name in functions)
                told = f"`{ast.unparse(model.func)}` returns what torch.compile gives"
                return Already("wrapper" if seen else "returned", told)
            return None
        if not isinstance(model, ast.Name) or not depth:
            return None
        found = {self._given(v, depth - 1) if v is not None else None for v in self.sites.given(model)}
        return found.pop() if len(found) == 1 else None

    def _returns_compiled(self, name: str, depth: int) -> bool:
        """Whether a function surely returns what torch.compile gives; of a module where it is in this file."""
        function, summary = self.callees.here(name), self.project.function(name)
        if function is None:
            return summary is not None and summary.returns == {"torch.compile"}
        returns = [n for n in self.syntax.by_type[ast.Return] if self.syntax.function_of(n) is function]
        values = [n.value for n in returns if isinstance(n, ast.Return) and n.value is not None]
        given = [self._given(value, depth) if depth > 0 else None for value in values]
        return bool(given) and all(g is not None and g.how == "wrapper" for g in given)

    def _gives_wrapper(self, site: CompileSite) -> bool:
        return site.form not in ("in place", "decorator") and site.is_module and not site.by_forward

    def _turn_before(self, site: CompileSite) -> Already | None:
        """``model = torch.compile(model)`` in a loop that makes no new model: from the second turn on."""
        loop, statement = site.loop, self.syntax.statement_of(site.node)
        if loop is None or site.form != "again" or site.by_forward or not isinstance(site.held, ast.Name):
            return None
        if statement not in loop.body or any(isinstance(n, (ast.Break, ast.Return)) for n in ast.walk(loop)):
            return None
        inside = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
        if any(line in inside and line != site.held.lineno for line in self._stores(site.held, site)):
            return None
        return Already("wrapper", "in the turn before") if site.is_module else None

    def _stores(self, e: ast.expr, site: CompileSite) -> list[int]:
        """Lines that may make ``e`` another thing."""
        if isinstance(e, ast.Name):
            names = (n for n in self.syntax.by_type[ast.Name] if isinstance(n, ast.Name) and n.id == e.id)
            return [n.lineno for n in names if not isinstance(n.ctx, ast.Load)]
        text = ast.unparse(e)
        root = text.partition(".")[0]
        own = (n for kind in (ast.Name, ast.Attribute) for n in self.syntax.by_type[kind])
        return [
            n.lineno
            for n in own
            if not isinstance(n.ctx, ast.Load) and ast.unparse(n) in (root, text)  # type: ignore[attr-defined]
        ]

    def _leads_to(self, first: ast.stmt, statement: ast.stmt) -> str | None:
        """Where ``first`` is run before ``statement`` is: always (""), where a test comes out so (told); else None.

        ``first`` stands in a block around ``statement``, in the same function, or in an arm of an ``if``
        that does. What comes below other tests than that is not told: they may exclude each other.
        """
        around = [s for s in (statement, *self.syntax.ancestors(statement)) if isinstance(s, ast.stmt)]
        if any(first in self.syntax.block_of(s) for s in around):
            return ""
        arm: ast.AST | None = self.syntax.parents.get(first)
        if not isinstance(arm, ast.If) or arm in around:
            return None
        holds = first in arm.body
        if _leaves(arm.body if holds else arm.orelse):
            return None
        for s in around:
            if arm in self.syntax.block_of(s):
                told = f"`{ast.unparse(arm.test)}` {'holds' if holds else 'does not hold'}"
                return f", where {told}" if s is statement else None
        return None


def _leaves(block: list[ast.stmt]) -> bool:
    """Whether a block does not go on to what stands below it."""
    return isinstance(block[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _may_be_off(site: CompileSite) -> bool:
    """Whether an argument says that nothing is compiled, or may say so: ``disable=flag``."""
    given = site.call.argument("disable")
    return given is not None and not (isinstance(given, ast.Constant) and given.value is False)
