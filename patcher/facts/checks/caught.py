"""Whether anything, around a statement or where calls that lead to it stand, may catch what it raises."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from functools import cached_property
from itertools import takewhile

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.project.protected import TRIES, WITHS, Protection
from patcher.facts.syntax.tree import FunctionNode, walk

#: Errors that are there to be caught: by a loop, by ``hasattr``, by whoever ends the program.
_SIGNALS = frozenset(
    "StopIteration StopAsyncIteration GeneratorExit SystemExit KeyboardInterrupt AttributeError".split()
)
#: How names of errors end that nobody uses to steer a program.
_ERRORS = ("Error", "Exception", "Warning")
#: What keeps PyTorch from going on behind a break: it drops the whole frame.
_DROPPED = (ast.For, ast.AsyncFor, ast.While, *TRIES, *WITHS)
#: What operations on tensors raise, and a graph that is made of them raises as something else, behind every handler.
_OF_OPERATIONS = ("RuntimeError", "IndexError")
_PLAIN_SPECIAL = frozenset({"__init__", "__call__", "__post_init__"})


class Caught(Analysis):
    """Who takes errors that code of one module raises."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        imports = self.syntax.imports_anywhere
        self.protection = Protection(self.syntax, self.module, imports)

    def why(
        self,
        statement: ast.stmt,
        names: Sequence[str],
        *,
        around: bool = False,
        here: bool = False,
        signals: bool = True,
    ) -> str | None:
        """None when nothing in the project catches an error of ``statement``, of one of ``names``.

        ``around``: the files around the given ones are looked at, too, when others may call the function.
        ``here``: only what this file catches counts. ``signals``: an error of the project's own that by its name is
        none counts as caught, by whom ever.
        """
        if any(name in _SIGNALS for name in names) or (signals and self.signal(names)):
            return "the error is there to be caught"
        errors = [name if hasattr(builtins, name) else self.protection.resolve(name) for name in names] or ["?"]
        errors.append("RuntimeError")  # what compiled code raises
        child: ast.AST = statement
        outermost: FunctionNode | None = None
        catching = self.project.catching
        for parent in self.syntax.ancestors(statement):
            stops = self.protection.around(child, parent)
            if catching.stop(stops, errors):
                return "the error is caught around it"
            endless = isinstance(parent, ast.While) and isinstance(parent.test, ast.Constant)
            if endless and not any(isinstance(n, (ast.Break, ast.Return)) for n in walk(parent)):
                return "the error is what ends the loop"
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
                outermost = parent
                if parent.name.startswith("__") and parent.name not in _PLAIN_SPECIAL:
                    return f"Python itself calls `{parent.name}`, and may take its errors"
            child = parent
        if outermost is None:
            others = (s for s in self.project.modules.values() if s.path != self.facts.path)
            imported = around and any(s.imports_from(self.module) for s in others)
            return "whoever imports this file may catch the error" if imported else None
        if around and not outermost.name.startswith("_") and not self.project.whole:
            return "the project has too many files to look at all"
        within = self.module if here else ""
        return catching.why(self.facts.qualname(outermost) or outermost.name, errors, within) or None

    def relied_on(self, statement: ast.stmt, names: Sequence[str]) -> str:
        """Why somebody may rely on the type of an error of ``statement``: a docstring tells of it; "" if none does."""
        function = self.syntax.method_of(statement) or self.syntax.function_of(statement)
        qualname = self.facts.qualname(function) if function is not None else None
        for name in names if qualname is not None else ():
            by = self.project.documented.by(qualname or "", name)
            if by is not None:
                told = f"the docstring of `{by.removeprefix(f'{self.module}.')}` tells of"
                return f"nobody catches the `{name}` that {told}: compiled code raises another error"
        return ""

    def why_traced(self, node: ast.AST) -> str | None:
        """None when no error is caught in the function of ``node`` that would pass by, once ``node`` breaks no graph.

        What an operation on tensors raises while its graph is made goes past ``except``. Where the graph breaks inside
        of a loop, ``with`` or ``try``, the whole function runs without one, and catches it.
        """
        function = self.syntax.function_of(node)
        around = list(takewhile(lambda n: n is not function, self.syntax.ancestors(node)))
        if function is None or not any(isinstance(n, _DROPPED) for n in around):
            return None
        stopped: dict[ast.AST, frozenset[str]] = {}
        for begin, stops, _ in self._regions:
            if self.syntax.function_of(begin) is function:
                stopped[begin] = stopped.get(begin, frozenset()) | stops
        for begin, stops in stopped.items():
            if self.project.catching.stop(stops, _OF_OPERATIONS):
                line = getattr(begin, "lineno", 0)
                return f"no operation raises what line {line} catches: while a graph is made, it is not caught"
        return None

    @cached_property
    def _regions(self) -> list[tuple[ast.AST, frozenset[str], list[ast.AST]]]:
        return list(self.protection.regions())

    def signal(self, names: Sequence[str]) -> str:
        """That of ``names`` which is a class of the project's own and does not tell of an error; "" for none."""
        own = (n for n in names if n[:1].isupper() and not hasattr(builtins, n) and n not in _SIGNALS)
        return next((name for name in own if not name.endswith(_ERRORS)), "")
