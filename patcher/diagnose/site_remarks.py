"""What is wrong with a call of torch.compile, or good to know: a sentence each, only what the source makes certain.

What the sentences say was seen on PyTorch 2.13, or stands in its documentation:
"Where to apply torch.compile": docs.pytorch.org/docs/stable/compile/programming_model.where_to_apply_compile.html
"Distributed Data Parallel": docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from patcher.facts.compiling.placing import assigned, exclusive, results, tests
from patcher.facts.scripts.wrappers import Wrapping
from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted
from patcher.facts.tables.knobs import WITHOUT_OPTIONS
from patcher.facts.values.compile_calls import CompileCall
from patcher.facts.values.module_values import Bindings

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Declared:
    """A default. ``owner``: the class, "" for an option. ``text``: the field as written, or option and value."""

    owner: str
    text: str
    where: str


class Declarations:
    """The defaults in many files: ``files`` are paths as shown, with the syntax of each."""

    def __init__(self, files: Iterable[tuple[str, Syntax]] = ()) -> None:
        self._paths: dict[Syntax, str] = {}
        self._fields: defaultdict[str, list[Declared]] = defaultdict(list)
        self._options: defaultdict[tuple[Syntax, str], list[Declared]] = defaultdict(list)
        for path, syntax in files:
            self._paths[syntax] = path
            for cls in syntax.by_type[ast.ClassDef]:
                for s in cls.body:
                    match s:
                        case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant()):
                            self._fields[name].append(Declared(cls.name, ast.unparse(s), f"{path}:{s.lineno}"))
            for call in syntax.by_type[ast.Call]:
                if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
                    self._add_option(call, path, syntax)

    def _add_option(self, call: ast.Call, path: str, syntax: Syntax) -> None:
        names = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        long = next((n for n in names if n.startswith("--")), None)
        given = {k.arg: k.value for k in call.keywords}
        if long is None:
            return
        action, default, dest = (given.get(k) for k in ("action", "default", "dest"))
        name = str(dest.value) if isinstance(dest, ast.Constant) else long[2:].replace("-", "_")
        value: object = None
        if isinstance(default, ast.Constant):
            value = default.value
        elif default is not None or not isinstance(action, (ast.Constant, type(None))):
            return
        elif action is not None and action.value in ("store_true", "store_false"):
            value = action.value == "store_false"
        self._options[syntax, name].append(Declared("", f"{long}={value!r}", f"{path}:{call.lineno}"))

    def of(self, e: ast.expr, syntax: Syntax, bindings: Bindings) -> Declared | None:
        """The default of ``cfg.compile`` or ``args.compile``; None without one, or if ``cfg`` may be two things."""
        if isinstance(e, ast.Name):
            return self._constant(e, syntax, bindings)
        root = dotted(e.value) if isinstance(e, ast.Attribute) else None
        if not isinstance(e, ast.Attribute) or root is None:
            return None
        values = [v for (_, text), vs in bindings.assigned.items() if text == root for v in vs]
        makers = {(dotted(v.func) or "").rpartition(".")[2] for v in values if isinstance(v, ast.Call)}
        annotations = [
            p.annotation
            for f in syntax.functions
            for p in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)
            if p.arg == root and p.annotation is not None
        ]
        makers |= {(dotted(a) or "").rpartition(".")[2] for a in annotations}
        if len(makers) != 1:
            return None
        maker = makers.pop()
        if maker == "parse_args":
            found = self._options[syntax, e.attr]
        else:
            found = [d for d in self._fields[e.attr] if d.owner == maker]
        return found[0] if len(found) == 1 else None

    def _constant(self, e: ast.Name, syntax: Syntax, bindings: Bindings) -> Declared | None:
        """The value of a module's name that is assigned once."""
        values = bindings.assigned.get((syntax.tree, e.id), [])
        local = any(syntax.binds(s, e.id) for s in syntax.ancestors(e) if isinstance(s, (*_FUNCTIONS, ast.Lambda)))
        if local or len(values) != 1 or not isinstance(values[0], ast.Constant):
            return None
        return Declared("", f"{e.id} = {values[0].value!r}", f"{self._paths[syntax]}:{values[0].lineno}")


_WITHOUT_COMPILER = WITHOUT_OPTIONS - {"cudagraphs"}
_GUIDE = 'PyTorch\'s page "Where to apply torch.compile"'
_NOTE = "PyTorch's note on DDP"


@dataclass(frozen=True, eq=False)
class Place:
    """What a remark may look at."""

    syntax: Syntax
    bindings: Bindings
    wrappings: Sequence[Wrapping]
    declarations: Declarations


#: Seen on 2.13: it is an AssertionError.
ON_A_CLASS = "On a class: no instance of it can be compiled again, also not by a case."


def remarks(call: CompileCall, place: Place) -> tuple[str, ...]:
    """All remarks on ``call``, the gravest first. What is wrong with it is told by the rules FC703 to FC710."""
    if call.kind == "setting":
        return tuple(_condition(call, place))
    if call.kind not in ("call", "in place", "decorator", "factory"):
        return ()
    found = [*_lost(call, place), *_arguments(call), *_order(call, place)]
    return (*found, *_condition(call, place), *_defaults(call, place))


# --- what becomes of the result -------------------------------------------------------------------------------------


def _lost(call: CompileCall, place: Place) -> Iterator[str]:
    statement = place.syntax.statement_of(call.node)
    alone = isinstance(statement, ast.Expr) and statement.value is call.node
    if call.kind == "in place":
        if not alone and isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)):
            names = assigned(call, place.syntax)
            what = f", which `{'`, `'.join(sorted(names))}` is from here on" if names else ""
            yield f"`compile` of a module works in place and returns None{what}."
    elif call.kind in ("call", "factory") and alone:
        what = f"`{_text(call.target)}`" if call.target is not None else "what it was meant for"
        yield f"The result is discarded: {what} stays as it was, nothing is compiled."


# --- arguments ------------------------------------------------------------------------------------------------------


def _arguments(call: CompileCall) -> Iterator[str]:
    if (backend := _constant(call.argument("backend"))) in _WITHOUT_COMPILER:
        yield f"The backend `{backend}` captures graphs but compiles nothing: it is for finding errors."
    if _constant(call.argument("disable")) is True:
        yield "`disable=True`: nothing is compiled."
    if _constant(call.argument("fullgraph")) is True:
        yield "`fullgraph=True`: a graph break is an error here."
    if isinstance(call.target, ast.ClassDef):
        yield ON_A_CLASS


# --- what else is compiled or wrapped -------------------------------------------------------------------------------


def _order(call: CompileCall, place: Place) -> Iterator[str]:
    """Before or after a wrapper for several devices."""
    if call.kind not in ("call", "in place"):
        return
    target = dotted(call.target) if isinstance(call.target, ast.expr) else None
    scope = place.bindings.scope(call.node)
    for w in place.wrappings:
        if w.scope is not scope or exclusive(w.call, call.node, place.syntax):
            continue
        line = w.call.lineno
        if line > call.node.lineno and w.given & results(call, place.syntax):
            yield _first(w, line)
        elif line < call.node.lineno and target in w.results and _kept(target, line, call.node, place):
            yield _afterwards(w, line)


_SAID = {
    ("before", "DDP"): f", as {_GUIDE} advises; {_NOTE} wraps first: DDPOptimizer overlaps communication with backward",
    ("before", "FSDP"): f", as {_GUIDE} advises",
    ("before", "Accelerate"): ", which does not compile again what is compiled already",
    ("after", "DDP"): f", as {_NOTE} has it, for DDPOptimizer; {_GUIDE} advises to compile the inner module",
    ("after", "FSDP"): f"; {_GUIDE} advises to compile the inner module instead",
}


def _first(w: Wrapping, line: int) -> str:
    return f"Compiled before `{w.name}` wraps it (line {line}){_SAID.get(('before', w.kind), '')}."


def _afterwards(w: Wrapping, line: int) -> str:
    return f"Compiled after `{w.name}` has wrapped it (line {line}){_SAID.get(('after', w.kind), '')}."


def _kept(text: str | None, since: int, until: ast.expr | ast.stmt, place: Place) -> bool:
    """Whether nothing else is assigned to ``text`` after the line ``since`` and before ``until``, in its scope."""
    values = place.bindings.assigned.get((place.bindings.scope(until), text or ""), [])
    return not any(since < v.lineno < until.lineno for v in values)


def _condition(call: CompileCall, place: Place) -> Iterator[str]:
    """The tests that decide whether the call runs at all."""
    told = [f"{'' if taken else 'not '}`{ast.unparse(test)}`" for test, taken in tests(call.node, place.syntax)]
    if told:
        yield f"Only if {' and '.join(reversed(told))}."


def _defaults(call: CompileCall, place: Place) -> Iterator[str]:
    """What the settings are, by default, that decide whether and how the call compiles."""
    asked = [test for test, _ in tests(call.node, place.syntax)] + [value for _, value in call.arguments]
    told = {}
    for n in (n for e in asked for n in ast.walk(e) if isinstance(n, (ast.Attribute, ast.Name))):
        found = place.declarations.of(n, place.syntax, place.bindings)
        if found is not None:
            told[ast.unparse(n)] = found
    yield from (f"The default of `{name}` is `{d.text}` ({d.where})." for name, d in told.items())


def _constant(e: ast.expr | None) -> object:
    return e.value if isinstance(e, ast.Constant) else None


def _text(target: ast.expr | FunctionNode | ast.ClassDef) -> str:
    return ast.unparse(target) if isinstance(target, ast.expr) else target.name
