"""Code whose errors and messages somebody takes, told from its syntax alone, for the index over all files."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from patcher.facts.syntax.tree import Syntax, dotted, walk
from patcher.facts.tables import call_effects as tables

#: Stands in ``stops`` for every error, for some of which nobody can tell the class, for errors that are handed on as
#: results, for warnings that are recorded, for what is printed.
ANY, SOME, GATHERED, WARNINGS, OUTPUT = "*", "some", "gathered", "warnings", "output"
#: Stands in ``stops`` for a switch that holds for code all over the program.
EVERYWHERE = "everywhere"
#: Stands in ``mentions`` for what the user of a context manager does in its body.
BODY = "yield"
#: Context managers by name -> what they stop.
_STOPPING = {
    "contextlib.ExitStack": ANY,
    "contextlib.AsyncExitStack": ANY,
    "pytest.raises": ANY,
    "contextlib.redirect_stdout": OUTPUT,
    "contextlib.redirect_stderr": OUTPUT,
}
#: Methods that run what they are given later; whoever asks for the result may ask for the error in its place.
_LATER = frozenset("submit apply_async map_async starmap_async run_in_executor".split())
_TASKS = frozenset("create_task ensure_future".split())  # functions of asyncio too
_LEAVING = (ast.Return, ast.Break, ast.Continue)
#: The statements that may take errors; ``except*`` is newer than the oldest Python.
TRIES: tuple[type[ast.AST], ...] = tuple(getattr(ast, n) for n in ("Try", "TryStar") if hasattr(ast, n))
WITHS = (ast.With, ast.AsyncWith)


@dataclass(frozen=True)
class Region:
    """Code of the function ``owner`` ("" for the top level) whose errors or messages may not get past it.

    ``stops``: names of builtin classes of errors, dotted names of others, `ANY`, `SOME`, `GATHERED`, `WARNINGS`,
    `OUTPUT`, `EVERYWHERE`, or "with X": what entering ``X`` stops (a dotted name; ".m": what a method gives; "?": not
    known).
    ``calls`` and ``mentions``: what may run in it, as `Does` and `FunctionSummary` have them.
    """

    owner: str
    stops: frozenset[str]
    calls: frozenset[str]
    mentions: frozenset[str]


class Protection:
    """What the statements of one module stop. ``imports``: names in any scope of it, to what they stand for."""

    def __init__(self, syntax: Syntax, module: str, imports: Mapping[str, str]) -> None:
        self.syntax = syntax
        self.module = module
        self.imports = imports

    def resolve(self, text: str) -> str:
        """The dotted thing that ``text`` is, taken for a name of the module when it is not imported."""
        root, _, rest = text.partition(".")
        base = self.imports.get(root, f"{self.module}.{root}")
        return self.syntax.package.attribute(base, rest)

    def regions(self) -> Iterator[tuple[ast.AST, frozenset[str], list[ast.AST]]]:
        """Where each begins, what it stops, and the code in it, by its outermost nodes."""
        by_type = self.syntax.by_type
        kinds: tuple[type[ast.AST], ...] = (*TRIES, *WITHS)
        for kind in kinds:
            for statement in by_type[kind]:
                yield from ((statement, stops, inside) for stops, inside in self._parts(statement) if stops)
        for call in by_type[ast.Call]:
            if stopped := self._by_call(call):
                yield call, stopped, [*call.args, *(k.value for k in call.keywords)]
        for end in by_type[ast.Return]:
            swallows = end.value is not None and not _is_false(end.value)
            if swallows and getattr(self.syntax.function_of(end), "name", "") in ("__exit__", "__aexit__"):
                yield end, frozenset({ANY}), []

    def around(self, child: ast.AST, statement: ast.AST) -> frozenset[str]:
        """What ``statement`` stops of the errors of ``child``, a part of it."""
        parts = self._parts(statement) if isinstance(statement, (*TRIES, *WITHS)) else ()
        return frozenset(stop for stops, inside in parts if child in inside for stop in stops)

    def _parts(self, n: ast.AST) -> Iterator[tuple[frozenset[str], list[ast.AST]]]:
        if isinstance(n, WITHS):
            for item in n.items:
                yield self._entered(item.context_expr), [*n.body, *n.items[n.items.index(item) + 1 :]]
            return
        handlers, body, final = n.handlers, n.body, n.finalbody  # type: ignore[attr-defined]
        yield frozenset(stop for h in handlers if not _goes_on(h) for stop in self._classes(h.type)), body
        if any(isinstance(m, _LEAVING) for s in final for m in walk(s)):
            yield frozenset({ANY}), [*body, *handlers, *n.orelse]  # type: ignore[attr-defined]

    def _entered(self, e: ast.expr) -> frozenset[str]:
        call = e if isinstance(e, ast.Call) else None
        text = dotted(call.func if call is not None else e)
        root = (text or "").partition(".")[0]
        if text is None or (root not in self.imports and not self.syntax.binds(self.syntax.tree, root)):
            called = call is not None and isinstance(call.func, ast.Attribute)
            unknown = f"with .{call.func.attr}" if called else "with ?"  # type: ignore[union-attr]
            return frozenset() if text == "open" else frozenset({unknown})
        what = self.resolve(text)
        if what == "contextlib.suppress" and call is not None:
            return frozenset(stop for a in call.args for stop in self._classes(a))
        if what == "warnings.catch_warnings":
            records = call is not None and any(not _is_false(k.value) for k in call.keywords if k.arg == "record")
            return frozenset({WARNINGS}) if records else frozenset()
        if what in tables.QUIET_CONTEXTS or what.startswith("torch."):
            return frozenset()
        return frozenset({_STOPPING.get(what, f"with {what}")})

    def _by_call(self, call: ast.Call) -> frozenset[str]:
        func = call.func
        name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        if name in ("simplefilter", "filterwarnings") and call.args and dotted(func) is not None:
            error = isinstance(call.args[0], ast.Constant) and call.args[0].value == "error"
            return frozenset({WARNINGS, EVERYWHERE}) if error else frozenset()
        if call.args and (name in _TASKS or (name in _LATER and isinstance(func, ast.Attribute))):
            return frozenset({GATHERED})
        gathers = bool(call.keywords) and any(
            k.arg == "return_exceptions" and not _is_false(k.value) for k in call.keywords
        )
        return frozenset({GATHERED}) if gathers else frozenset()

    def _classes(self, e: ast.expr | None, depth: int = 3) -> Iterator[str]:
        """What ``except e`` catches."""
        text = dotted(e) if e is not None else None
        if e is None:
            yield ANY
        elif isinstance(e, ast.Tuple):
            for part in e.elts:
                yield from self._classes(part, depth)
        elif text is None or not depth:
            yield SOME
        elif text.partition(".")[0] in self.imports:
            yield self.resolve(text)
        elif isinstance(e, ast.Name) and (values := self._assigned(e.id)):
            for value in values:
                yield from self._classes(value, depth - 1)
        elif isinstance(e, ast.Name) and self.syntax.is_builtin_but_for_stars(e):
            yield text
            if self.syntax.has_star:  # it may bring another one
                yield SOME
        elif any(isinstance(c, ast.ClassDef) and c.name == text for c in self.syntax.by_type[ast.ClassDef]):
            yield self.resolve(text)
        else:
            yield SOME

    def _assigned(self, name: str) -> list[ast.expr]:
        found = (s for s in self.syntax.tree.body if isinstance(s, ast.Assign))
        return [s.value for s in found if any(isinstance(t, ast.Name) and t.id == name for t in s.targets)]


def _goes_on(handler: ast.ExceptHandler) -> bool:
    """Whether there is an error behind ``handler`` as there was one before it."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and not any(isinstance(n, _LEAVING) for s in handler.body for n in walk(s))


def _is_false(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and not e.value


def returned(nodes: Iterable[ast.AST], resolve: Callable[[str], str], local: frozenset[str]) -> frozenset[str]:
    """What a function calls to make what it returns, as dotted names; "?" for anything else.

    ``nodes``: all that stand in it; ``local``: the names that it binds.
    """
    assigned: dict[str, list[ast.expr]] = {}
    values: list[ast.expr] = []
    for n in nodes:
        kind = type(n)
        if kind is not ast.Assign and kind is not ast.Return:
            continue
        if isinstance(n, ast.Assign):
            for t in n.targets:
                if isinstance(t, ast.Name):
                    assigned.setdefault(t.id, []).append(n.value)
        elif isinstance(n, ast.Return) and n.value is not None:
            values.append(n.value)
    found: set[str] = set()
    for value in values:
        made = assigned.get(value.id, [value]) if isinstance(value, ast.Name) else [value]
        for m in made:
            text = dotted(m.func) if isinstance(m, ast.Call) else None
            found.add("?" if text is None or text.partition(".")[0] in local else resolve(text))
    return frozenset(found)
