"""Objects full of buffers that a method makes in each of its calls, for compiled code to write into.

``caches = [Cache(key=torch.zeros(n, size), ...) for _ in range(layers)]``, handed to ``self(x, caches)``: the class
says what it holds and has no methods, and what compiled code does to its attributes is looked up in the whole project.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.project.attributes import Found
from patcher.facts.project.touches import How
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted, own_nodes
from patcher.facts.syntax.written import short
from rules.fc307_cache_made_per_call.sizes import Sizes, UnknownSizeError, makes_one

#: The method that makes a tensor what the function of torch makes it; "" where it may hold anything.
_AGAIN = {"torch.zeros": "zero_()", "torch.ones": "fill_(1)", "torch.full": "fill_({0})", "torch.empty": ""}


#: What gives an object of its own each time, which its methods may change.
_CHANGEABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.Call)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, eq=False)
class Field:
    """An attribute of the objects, and what it starts as.

    ``again``: a method that makes its tensor what it was at the start (``{0}`` stands for ``number``), None where each
    call needs a new ``value``. ``tensor``: it holds one.
    """

    name: str
    value: ast.expr
    tensor: bool
    again: str | None
    number: ast.expr | None = None


@dataclass(frozen=True, eq=False)
class PerCall:
    """``statement`` binds ``name`` to new objects, many of them (``each``) or one.

    ``fields``: those that may change; ``written``: those that compiled code writes into. ``key``: what their sizes
    and places come from. ``calls``: the statements that hand them on. ``reason``: what keeps them from being kept; ""
    for nothing.
    """

    statement: ast.Assign
    name: str
    each: bool
    fields: tuple[Field, ...]
    written: tuple[str, ...]
    key: tuple[ast.expr, ...]
    calls: tuple[ast.stmt, ...]
    reason: str


class MadePerCall(Analysis):
    """Questions about the assignments of one module."""

    def of(self, statement: ast.Assign) -> PerCall | None:
        """What ``statement`` makes anew in each call and compiled code writes into in place, or None."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp(elt=ast.Call() as made)):
                each = True
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as made):
                each = False
            case _:
                return None
        function = self.syntax.function_of(statement)
        cls = self._plain_class(made.func)
        buffers = any(_again(k.value, self.syntax)[0] is not None for k in made.keywords)
        if function is None or cls is None or not buffers or self.facts.compiled(statement):
            return None
        if not (calls := self._handed_on(statement)):
            return None
        fields = [f for k in made.keywords if k.arg is not None and (f := self._field(cls, k.arg, k.value)) is not None]
        written = [f.name for f in fields if f.again is not None and self._is_written(cls, f.name)]
        if not written:
            return None
        reason = self._why_not(statement, function, calls, fields) or self._why_left(cls, made)
        key: tuple[ast.expr, ...] = ()
        try:
            key = tuple(self.facts.ask(Sizes).of(statement.value, made, function))
        except UnknownSizeError as why:
            reason = reason or str(why)
        if not reason and len(made.keywords) + len(made.args) != len([k for k in made.keywords if k.arg is not None]):
            reason = f"what `{short(made)}` is given is not all named"
        return PerCall(statement, name, each, tuple(fields), tuple(written), key, tuple(calls), reason)

    def _plain_class(self, called: ast.expr) -> str | None:
        """The dotted class of the project that ``called`` is, where it has no methods and no bases."""
        name = self.syntax.qualified(called) or dotted(called)
        summary = self.project.known_class(name) or self.project.known_class(f"{self.module}.{name}") if name else None
        if name is not None and summary is not None:
            plain = not (summary.methods or summary.bases)
            return (name if self.project.known_class(name) else f"{self.module}.{name}") if plain else None
        here = [n for n in self.syntax.by_type[ast.ClassDef] if isinstance(n, ast.ClassDef) and n.name == name]
        if len(here) != 1 or here[0].bases or any(isinstance(s, _FUNCTIONS) for s in here[0].body):
            return None
        return name

    def _field(self, cls: str, name: str, value: ast.expr) -> Field | None:
        """The attribute as code that may be given the object changes it; None where none does, or no compiled code."""
        found = list(self.project.attributes.touched(cls, name, (How.SET, How.WRITTEN)))
        again, number = _again(value, self.syntax)
        # ``x.filled += n`` sets it as well
        written = {(f.touch.inside, f.touch.line) for f in found if f.touch.how is How.WRITTEN}
        if any(
            f.touch.how is How.SET and (again is None or (f.touch.inside, f.touch.line) not in written) for f in found
        ):
            return Field(name, value, again is not None, None)
        if again is not None:  # who is given the tensor may write into it as well
            return Field(name, value, True, again, number)
        plain = self.inference.of(value).is_number or not isinstance(value, _CHANGEABLE)
        return None if plain else Field(name, value, False, None)

    def _is_written(self, cls: str, name: str) -> bool:
        """Whether compiled code writes into the tensor ``name`` of such an object."""
        return any(self._is_compiled(f) for f in self.project.attributes.touched(cls, name, (How.SET, How.WRITTEN)))

    def _why_left(self, cls: str, made: ast.Call) -> str:
        """Which attribute keeps what the call before has left in it, for ``made`` does not give it; "" where none."""
        last = cls.rpartition(".")[2]
        here = [n for n in self.syntax.by_type[ast.ClassDef] if isinstance(n, ast.ClassDef) and n.name == last]
        if len(here) != 1:
            summary = self.project.known_class(cls)
            there = (summary.declared if summary is not None else frozenset()) - {k.arg for k in made.keywords}
            return f"`{min(there)}` is not given there, and may not be what it was" if there else ""
        for s in here[0].body:
            match s:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    pass
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    pass
                case _:
                    continue
            if any(k.arg == name for k in made.keywords):
                continue
            changed = any(True for _ in self.project.attributes.touched(cls, name, (How.SET, How.WRITTEN)))
            if changed or not isinstance(value, ast.Constant):
                return f"`{name}` is not given there, and may not be what it was"
        return ""

    def _is_compiled(self, found: Found) -> bool:
        if self.project.reached(found.touch.inside):
            return True
        here = self.syntax.functions if found.module == self.module else ()
        at = found.touch.line
        return any(f.lineno <= at <= (f.end_lineno or at) and self.facts.reached(f) for f in here)

    # --- who gets them ----------------------------------------------------------------------------------------------

    def _handed_on(self, statement: ast.Assign) -> list[ast.stmt]:
        """The statements behind ``statement`` in whose calls the objects, or what comes back for them, are given."""
        found = []
        for use in self._uses(statement) or ():
            around = self.syntax.parents[use]
            call = self.syntax.parents[around] if isinstance(around, ast.keyword) else around
            if isinstance(call, ast.Call) and use is not call.func and not self.syntax.builtin(call):
                found.append(self.syntax.statement_of(use))
        return list(dict.fromkeys(found))

    def _uses(self, statement: ast.Assign) -> list[ast.Name] | None:
        """Every reading of the name in its function but those above ``statement``."""
        function = self.syntax.function_of(statement)
        target = statement.targets[0]
        assert function is not None and isinstance(target, ast.Name)
        if target.id in self.flow_of(function).captured | self.flow_of(function).shared:
            return None
        named = [n for n in own_nodes(function) if isinstance(n, ast.Name) and n.id == target.id]
        return [n for n in named if isinstance(n.ctx, ast.Load) and n.lineno > statement.lineno]

    def _why_not(
        self, statement: ast.Assign, function: FunctionNode, calls: list[ast.stmt], fields: list[Field]
    ) -> str:
        cls = self.syntax.class_of(statement)
        if cls is None or self.syntax.method_of(statement) is not function or self_name(function) is None:
            return "no object is there that outlives the call"
        if not self.facts.is_module_class(cls):
            return f"`{cls.name}` is not known to be a module"
        if isinstance(function, ast.AsyncFunctionDef) or any(
            isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own_nodes(function)
        ):
            return f"two runs of `{function.name}` may be under way at once"
        if any(isinstance(a, (ast.For, ast.While, ast.AsyncFor)) for a in self._within(statement, function)):
            return "they are made in a loop"
        if not self.facts.ask(GradientMode).off(statement):
            return "gradients may be recorded there, and what a backward pass needs must not be written over"
        target = statement.targets[0]
        assert isinstance(target, ast.Name)
        for use in self._uses(statement) or ():
            if self.syntax.statement_of(use) not in calls or not isinstance(
                self.syntax.parents[use], (ast.Call, ast.keyword)
            ):
                return f"`{short(self.syntax.statement_of(use))}` does something else with `{target.id}`"
        anew = [f for f in fields if f.again is None]
        if any(f.tensor for f in anew):
            for s in calls:
                if not isinstance(s, (ast.Assign, ast.Expr)) or not self.syntax.alone(s) or self._in_comprehension(s):
                    return f"what `{short(s)}` puts into `{anew[0].name}` would have to be copied behind each call"
        bound = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for f in anew:
            if any(isinstance(n, ast.Name) and n.id in bound for n in ast.walk(f.value)):
                return f"`{f.name}` starts differently in each of them"
        return self.facts.writing.why_not_replaced(statement) or ""

    def _in_comprehension(self, s: ast.stmt) -> bool:
        return any(isinstance(n, (ast.comprehension, ast.Lambda)) for n in ast.walk(s))

    def _within(self, node: ast.AST, function: FunctionNode) -> Iterator[ast.AST]:
        for parent in self.syntax.ancestors(node):
            if parent is function:
                return
            yield parent


def _again(value: ast.expr, syntax: Syntax) -> tuple[str | None, ast.expr | None]:
    """The method that makes a tensor again what ``value`` makes it, and the number for it; None where there is none."""
    if not makes_one(value, syntax):
        return None, None
    assert isinstance(value, ast.Call)
    what = syntax.qualified(value.func) or ""
    number = value.args[1] if what == "torch.full" and len(value.args) > 1 else None
    if what == "torch.full" and not isinstance(number, ast.Constant):
        return None, None
    return _AGAIN[what], number
