"""What new code may say: how things are spelled at a place, which names are free, what can stand in for a statement."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import dotted
from patcher.facts.syntax.written import short
from patcher.facts.tables import host_api

if TYPE_CHECKING:
    from patcher.facts import Facts

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
#: Expressions all of whose parts are evaluated, in the order in which they are written.
_IN_ORDER = (ast.Attribute, ast.BinOp, ast.Call, ast.List, ast.Starred, ast.Subscript, ast.Tuple, ast.UnaryOp)


class Writing(Analysis):
    """For whoever writes code into a module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._taken: dict[ast.AST, set[str]] = {}

    def spelled(self, what: str, at: ast.AST) -> str | None:
        """How ``what`` ("torch.where") is written at ``at`` with the imports that are there; None without any."""
        known = [
            (stands_for == "torch", name == "torch", -len(text), text)
            for name, stands_for in self.at_hand(at)
            if what == stands_for or what.startswith(stands_for + ".")
            for text in (name + what[len(stands_for) :],)
        ]
        best = max(known)[3] if known else None
        for name, stands_for in self.syntax.imports_above(at):
            if best is None and (what == stands_for or what.startswith(stands_for + ".")):
                best = name + what[len(stands_for) :]
        return best

    def spelling(self, what: str, at: ast.AST) -> str:
        """How new code at ``at`` says ``what``: with the imports that are there, else in full."""
        return self.spelled(what, at) or what

    def functional(self, name: str, at: ast.AST) -> str:
        """How new code at ``at`` says that function of ``torch.nn.functional``: through its own import, if any."""
        own = [n for n, what in self.at_hand(at) if what == "torch.nn.functional"]
        near = min(own, key=len, default="")
        return f"{near}.{name}" if near else self.spelling(f"torch.nn.functional.{name}", at)

    def importable(self, name: str, at: ast.AST) -> bool:
        """Whether ``import name`` at the top of the module would make ``name`` known at ``at``, and change nothing.

        A module that imports nothing of the package may be used where the package is not installed.
        """
        own = name in sys.stdlib_module_names and not self.syntax.package.hides(name)
        if not own and not any(what.partition(".")[0] == name for what in self.syntax.runtime_imports.values()):
            return False
        named = {what for n, what, function in self.syntax.all_imports if n == name and function is None}
        if named - {name} or self._shadowed(name, at) or (not named and self.hides_elsewhere(name)):
            return False
        return bool(named) or name not in self.syntax.names_in(self.syntax.tree)

    def at_hand(self, at: ast.AST) -> Iterator[tuple[str, str]]:
        """Names that the module imports, each with what it stands for, of those that are there and mean that at ``at``.

        What stands in no function, a decorator or default too, runs with the module: imports below it come too late.
        """
        line = getattr(at, "lineno", None) if self.syntax.function_of(at) is None else None
        for name, what in self.syntax.runtime_imports.items():
            late = line is not None and self.syntax.first_import[name] > line
            if not late and not self._shadowed(name, at) and not self.syntax.may_be_missing(name, at):
                yield name, what

    def _shadowed(self, name: str, at: ast.AST) -> bool:
        return any(
            self.syntax.binds(scope, name) or self.syntax.imports_locally(scope, name)
            for scope in [at, *self.syntax.ancestors(at)]
            if isinstance(scope, _SCOPES)
        )

    def hides_elsewhere(self, what: str) -> bool:
        """Whether the last name of ``what``, once it is imported here, hides another thing where a star takes it."""
        name = what.rpartition(".")[2]
        return any(told != what and told.rpartition(".")[2] == name for told in self._met_by_stars)

    @cached_property
    def _met_by_stars(self) -> frozenset[str]:
        """What the files import and define that import all names of this one."""
        found: set[str] = set()
        for s in self.project.modules.values() if not self.syntax.binds(self.syntax.tree, "__all__") else ():
            if s.path != self.facts.path and self.module in s.starred:
                own = (*(c.name for c in s.classes), *(f.qualname for f in s.functions), *(name for name, _ in s.made))
                found.update(s.imports, (f"{s.module}.{name}" for name in own if "." not in name))
        return frozenset(found)

    def why_not_replaced(self, statement: ast.stmt) -> str | None:
        """None when other statements can stand in the place of this one."""
        if not self.syntax.alone(statement):
            return "the line holds more than this statement"
        if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in ast.walk(statement)):
            return "the statement binds names inside of expressions"
        return None

    def why_not_first(self, e: ast.expr) -> str:
        """What is evaluated before ``e`` in its statement, or decides whether ``e`` is; "" when it always comes first.

        Only there may code be put above the statement that asks for something of ``e``, or does a part of its work.
        Names and numbers may come before.
        """
        child: ast.expr = e
        statement = self.syntax.statement_of(e)
        for parent in self.syntax.ancestors(e):
            if parent is statement:
                return (
                    "" if isinstance(parent, (ast.Assign, ast.Return, ast.Expr)) else "it stands in a longer statement"
                )
            if isinstance(parent, ast.keyword):
                continue
            if not isinstance(parent, _IN_ORDER):
                return f"`{short(parent)}` decides when it is evaluated"
            for before in _evaluated(parent):
                if before is child:
                    break
                if dotted(before) is None and not isinstance(before, ast.Constant):
                    return f"`{short(before)}` is evaluated before it"
            assert isinstance(parent, ast.expr)
            child = parent
        return "it stands in no statement"

    def why_not_ahead(self, e: ast.expr) -> str:
        """What decides whether, or how often, ``e`` is evaluated in its statement; "" when it is once, and always.

        Only there may a part of ``e``, which changes nothing, be evaluated above the statement: a comprehension and a
        lambda have names of their own, and what an ``if`` keeps from being evaluated may fail.
        """
        child: ast.AST = e
        statement = self.syntax.statement_of(e)
        for parent in self.syntax.ancestors(e):
            if parent is statement:
                return ""
            match parent:
                case ast.IfExp(test=first) | ast.BoolOp(values=[first, *_]) if child is not first:
                    return f"`{short(parent)}` decides whether it is evaluated"
                case ast.Compare(comparators=[_, *later]) if child in later:
                    return f"`{short(parent)}` decides whether it is evaluated"
                case ast.Lambda():
                    return f"`{short(parent)}` evaluates it"
                case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                    if child is not parent.generators[0] or not self._is_in_first(e, parent.generators[0]):
                        return f"`{short(parent)}` evaluates it in each turn"
            child = parent
        return "it stands in no statement"

    def _is_in_first(self, e: ast.expr, first: ast.comprehension) -> bool:
        """Whether ``e`` is, or is a part of, what is gone through first."""
        return first.iter in (e, *self.syntax.ancestors(e))

    def why_not_builtin(self, *names: str) -> str:
        """What keeps new code from saying the builtins ``names``; "" when each is Python's own in all of the file."""
        hidden = [n for n in names if not self.syntax.is_builtin(ast.Name(n, ast.Load()))]
        return f"`{hidden[0]}` is another name here" if hidden else ""

    def why_not_removed(self, statement: ast.stmt) -> str:
        """What keeps ``statement`` from being taken out, with nothing in its place; "" when nothing does."""
        if not self.syntax.alone(statement):
            return "the line holds more than this statement"
        return "" if len(self.syntax.block_of(statement)) > 1 else "its block would be empty"

    def fresh_name(self, wish: str, at: ast.AST) -> str:
        """``wish``, with a number when the function or its class uses that name already. Not given out twice."""
        scope: ast.AST = self.syntax.class_of(at) or self.syntax.function_of(at) or self.syntax.tree
        return self._fresh(wish, scope, self._outermost(at))

    def fresh_local(self, wish: str, at: ast.AST) -> str:
        """``wish``, with a number when the function around ``at`` uses that name already. Not given out there twice."""
        return self._fresh(wish, self._outermost(at))

    def _outermost(self, at: ast.AST) -> ast.AST:
        functions = [
            n for n in (at, *self.syntax.ancestors(at)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        return functions[-1] if functions else self.syntax.tree

    def _fresh(self, wish: str, *scopes: ast.AST) -> str:
        for scope in scopes:
            if scope not in self._taken:
                self._taken[scope] = self.syntax.names_in(scope)
        name, n = wish, 2
        while any(name in self._taken[scope] for scope in scopes):
            name, n = f"{wish}_{n}", n + 1
        for scope in scopes:
            self._taken[scope].add(name)
        return name

    def fresh_attribute(self, wish: str, cls: ast.ClassDef) -> str:
        """``wish``, with a number when an instance of ``cls`` or of a class above or below may have that name."""
        project = self.project
        own = self.facts.qualname(cls) or cls.name
        family, _ = project.family(own)
        taken = host_api.MODULE_PRIVATE | project.foreign_stores | {d[1:] for d in project.doubts if d.startswith("?")}
        for owner in family:
            summary = project.known_class(owner)
            assert summary is not None
            taken |= summary.methods | summary.stores | summary.init_stores
            for method in summary.methods:
                function = project.function(f"{owner}.{method}")
                taken |= {m[5:] for m in function.mentions if m.startswith("self.")} if function is not None else set()
        taken |= {str(n.value) for n in self.syntax.by_type[ast.Constant]}
        free = [n for n in (wish, *(f"{wish}_{i}" for i in range(2, 9))) if n not in taken]
        # code that may set any name at all leaves none that is better than the first
        name = next((n for n in free if not any(project.attributes.computed(own, n))), free[0] if free else wish)
        return self.fresh_name(name, cls.body[0])


def _evaluated(e: ast.AST) -> Iterator[ast.expr]:
    """The parts of ``e`` in the order in which they are evaluated."""
    for part in ast.iter_child_nodes(e):
        if isinstance(part, ast.keyword):
            yield part.value
        elif isinstance(part, ast.expr):
            yield part
