"""What is wrong with a call of torch.compile, or good to know: a sentence each, only what the source makes certain.

What the sentences say was seen on PyTorch 2.13, or stands in its documentation:
"Where to apply torch.compile": docs.pytorch.org/docs/stable/compile/programming_model.where_to_apply_compile.html
"Distributed Data Parallel": docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patcher.diagnose.declared import Declarations
from patcher.facts.compiling.placing import assigned, exclusive, results, tests
from patcher.facts.scripts.wrappers import Wrapping
from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted
from patcher.facts.tables.knobs import WITHOUT_OPTIONS
from patcher.facts.values.compile_calls import CompileCall
from patcher.facts.values.module_values import Bindings

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


def _first(w: Wrapping, line: int) -> str:
    start = f"Compiled before `{w.name}` wraps it (line {line})"
    if w.kind == "DDP":
        return (
            f"{start}, as {_GUIDE} advises; {_NOTE} wraps first, so that DDPOptimizer can overlap communication "
            "with the backward pass."
        )
    if w.kind == "FSDP":
        return f"{start}, as {_GUIDE} advises."
    if w.kind == "Accelerate":
        return f"Compiled before `{w.name}` (line {line}), which does not compile again what is compiled already."
    return f"{start}."


def _afterwards(w: Wrapping, line: int) -> str:
    start = f"Compiled after `{w.name}` has wrapped it (line {line})"
    if w.kind == "DDP":
        return (
            f"{start}, as {_NOTE} has it, so that DDPOptimizer can work; {_GUIDE} advises to compile the inner module."
        )
    if w.kind == "FSDP":
        return f"{start}; {_GUIDE} advises to compile the inner module instead."
    return f"{start}."


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
