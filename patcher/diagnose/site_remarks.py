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
from patcher.facts.flow.definitions import Flow
from patcher.facts.scripts.wrappers import Wrapping
from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted
from patcher.facts.tables.knobs import MODES, WITHOUT_OPTIONS
from patcher.facts.values.compile_calls import COMPILE_ARGUMENTS, CompileCall
from patcher.facts.values.module_values import Bindings, ModuleIndex

_WITHOUT_COMPILER = frozenset({"eager", "aot_eager", "aot_eager_decomp_partition"})
_ALIASES = {
    "cache_size_limit": "recompile_limit",
    "accumulated_cache_size_limit": "accumulated_recompile_limit",
    "fail_on_cache_limit_hit": "fail_on_recompile_limit_hit",
}
_WITHOUT_EFFECT = frozenset(
    {
        "inline_inbuilt_nn_modules",
        "skip_code_recursive_on_cache_limit_hit",
        "skip_code_recursive_on_recompile_limit_hit",
    }
)
_GUIDE = 'PyTorch\'s page "Where to apply torch.compile"'
_NOTE = "PyTorch's note on DDP"
_PREFIX = "_orig_mod"


@dataclass(frozen=True, eq=False)
class Place:
    """What a remark may look at. ``marks``: the places, in all files, where a dimension is marked as dynamic."""

    syntax: Syntax
    bindings: Bindings
    calls: Sequence[CompileCall]
    wrappings: Sequence[Wrapping]
    index: ModuleIndex
    marks: Sequence[str]
    declarations: Declarations


#: Seen on 2.13: it is an AssertionError.
ON_A_CLASS = "On a class: no instance of it can be compiled again, also not by a case."


def remarks(call: CompileCall, place: Place) -> tuple[str, ...]:
    """All remarks on ``call``, the gravest first."""
    found: list[str] = []
    if call.kind in ("call", "in place", "decorator", "factory"):
        found += [*_lost(call, place), *_arguments(call, place), *_nested(call, place), *_order(call, place)]
        found += [*_beside(call, place), *_extent(call, place), *_condition(call, place), *_defaults(call, place)]
    elif call.kind == "setting":
        found += [*_setting(call), *_condition(call, place)]
    return tuple(found)


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
    elif call.kind == "call" and (name := _unused(call, place)):
        yield f"Nothing uses the compiled `{name}` that is made here: the original stays as it was."


def _unused(call: CompileCall, place: Place) -> str | None:
    """The local name that holds the result and is never read."""
    function = place.syntax.function_of(call.node)
    statement = place.syntax.statement_of(call.node)
    if function is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or statement.value is not call.node:
        return None
    kinds = (ast.Global, ast.Nonlocal)
    if any(target.id in s.names for kind in kinds for s in place.syntax.by_type[kind]):  # type: ignore[attr-defined]
        return None
    flow = Flow(function)
    definition = flow.by_node.get(target)
    if definition is None or target.id in flow.captured or flow.uses.get(definition):
        return None
    return target.id


# --- arguments ------------------------------------------------------------------------------------------------------


def _arguments(call: CompileCall, place: Place) -> Iterator[str]:
    mode, options, backend = (call.argument(name) for name in ("mode", "options", "backend"))
    if call.what == "torch.compile" or call.kind == "in place":
        if _given(mode) and _given(options):
            yield "`mode` and `options` are given together: PyTorch raises an error."
        if (value := _constant(mode)) is not None and value not in MODES:
            yield f"PyTorch knows no mode `{value}` and raises an error; there are {', '.join(MODES)}."
        if any(name == "" for name, _ in call.arguments):
            yield "Only what is compiled may be given without its name: PyTorch raises an error."
        for name in {n for n, _ in call.arguments} - COMPILE_ARGUMENTS - {"", "*", "**"}:
            yield f"`torch.compile` takes no argument `{name}`: PyTorch raises an error."
    elif call.what.startswith("torch._dynamo.optimize"):
        yield "This is the inside of PyTorch; `torch.compile` is its public form."
    builtin = _constant(backend)
    if builtin in WITHOUT_OPTIONS and ((_given(mode) and _constant(mode) != "default") or _given(options)):
        ignored = " and ".join(f"`{n}`" for n, v in (("mode", mode), ("options", options)) if _given(v))
        yield f"The backend `{builtin}` ignores {ignored}."
    if builtin in _WITHOUT_COMPILER:
        yield f"The backend `{builtin}` captures graphs but compiles nothing: it is for finding errors."
    if _constant(call.argument("disable")) is True:
        yield "`disable=True`: nothing is compiled."
    if _constant(call.argument("dynamic")) is False and place.marks:
        where = ", ".join(place.marks[:3]) + (", ..." if len(place.marks) > 3 else "")
        yield f"`dynamic=False` does not hold for dimensions that are marked: they stay dynamic ({where})."
    if _constant(call.argument("fullgraph")) is True:
        yield "`fullgraph=True`: a graph break is an error here."


def _setting(call: CompileCall) -> Iterator[str]:
    name = call.what.rpartition(".")[2]
    value = _constant(call.arguments[0][1]) if call.arguments else None
    dynamo = call.what.startswith("torch._dynamo.config.")
    if call.what == "torch.compile":
        yield "From here on, every `torch.compile` of the program is this one."
    elif dynamo and name in _ALIASES:
        yield f"An older name of `{_ALIASES[name]}`, which it sets."
    elif dynamo and name in _WITHOUT_EFFECT:
        yield "This setting has no effect any more."
    elif dynamo and name == "suppress_errors" and value is True:
        yield "An error of the compiler becomes a warning and the code runs eagerly: failures go unseen."
    elif dynamo and name == "disable" and value is True:
        yield "Nothing is compiled after this."
    elif dynamo and name == "error_on_recompile" and value is True:
        yield "Every recompile is an error after this."


# --- what else is compiled or wrapped -------------------------------------------------------------------------------


def _nested(call: CompileCall, place: Place) -> Iterator[str]:
    """A part that is compiled although the whole is: the whole takes the part in (seen: the part is never called)."""
    part = _root(call, place)
    for other in place.calls:
        whole = dotted(other.target) if isinstance(other.target, ast.expr) else None
        if other is call or other.kind not in ("call", "in place") or whole is None or part is None:
            continue
        inside = part.startswith(f"{whole}.") and not part.startswith(f"{whole}.forward")
        if inside and _always_with(other, call, place) and not any(_lost(other, place)):
            yield (
                f"`{whole}` is compiled as a whole too (line {other.node.lineno}) and takes this part in: "
                "what is compiled here runs only when the part is called from elsewhere."
            )


def _always_with(other: CompileCall, call: CompileCall, place: Place) -> bool:
    """Whether ``other`` runs whenever ``call`` does: in the same function, under no test but those around both."""
    needed = {(ast.unparse(test), taken) for test, taken in tests(other.node, place.syntax)}
    given = {(ast.unparse(test), taken) for test, taken in tests(call.node, place.syntax)}
    return place.bindings.scope(other.node) is place.bindings.scope(call.node) and needed <= given


def _root(call: CompileCall, place: Place) -> str | None:
    """``model.blocks`` for ``block`` in a loop over ``model.blocks``; else the target itself."""
    if not isinstance(call.target, ast.expr):
        return None
    text = dotted(call.target)
    loops = place.bindings.loops.get((place.bindings.scope(call.node), text), []) if text else []
    if len(loops) == 1:
        for n in ast.walk(loops[0][0]):
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) and (found := dotted(n)):
                return found
    if isinstance(call.target, ast.Subscript):
        return dotted(call.target.value)
    return text


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


def _beside(call: CompileCall, place: Place) -> Iterator[str]:
    """Uses of a compiled module that do not use what was compiled, or that its new name gets in the way of."""
    if call.kind != "call" or call.what != "torch.compile":
        return
    if not isinstance(call.target, ast.expr) or (dotted(call.target) or "").endswith(".forward"):
        return
    held = _holders(call, place)
    aware = _PREFIX in place.syntax.names_in(place.syntax.tree) or any(
        isinstance(n, ast.Constant) and isinstance(n.value, str) and _PREFIX in n.value
        for n in place.syntax.by_type[ast.Constant]
    )
    saved: list[int] = []
    loaded: list[int] = []
    ran: dict[str, int] = {}
    for n in place.syntax.by_type[ast.Call]:
        text = dotted(n.func.value) if isinstance(n.func, ast.Attribute) else None
        if text not in held or not isinstance(n.func, ast.Attribute) or not _runs_after(call, n, text, held, place):
            continue
        if n.func.attr == "state_dict":
            saved.append(n.lineno)
        elif n.func.attr == "load_state_dict":
            loaded.append(n.lineno)
        elif n.func.attr == "generate" or n.func.attr in place.index.computing:
            ran[f"{text}.{n.func.attr}"] = min(n.lineno, ran.get(f"{text}.{n.func.attr}", n.lineno))
    for method, line in ran.items():
        yield (
            f"`{method}` (line {line}) is a method of the original module: what is compiled here serves only calls of "
            f"`{method.rpartition('.')[0]}` itself."
        )
    if saved and not aware:
        yield f"The keys of its `state_dict` ({_lines(saved)}) start with `{_PREFIX}.`; `module.compile()` keeps them."
    if loaded and not saved and not aware:
        yield f"`load_state_dict` ({_lines(loaded)}) wants keys that start with `{_PREFIX}.`."


def _holders(call: CompileCall, place: Place) -> dict[str, int]:
    """The names that hold the compiled module, each with the line from which it does: also copies in the same scope."""
    held = dict.fromkeys(
        results(call, place.syntax), place.syntax.statement_of(call.node).end_lineno or call.node.lineno
    )
    scope = place.bindings.scope(call.node)
    for (where, text), values in place.bindings.assigned.items():
        for value in values:
            choices = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            source = next((t for c in choices if (t := dotted(c)) in held), None)
            later = where is scope and value.lineno > call.node.lineno
            if later and source is not None and _kept(source, held[source], value, place):
                held[text] = value.lineno
    return held


def _kept(text: str | None, since: int, until: ast.expr | ast.stmt, place: Place) -> bool:
    """Whether nothing else is assigned to ``text`` after the line ``since`` and before ``until``, in its scope."""
    values = place.bindings.assigned.get((place.bindings.scope(until), text or ""), [])
    return not any(since < v.lineno < until.lineno for v in values)


def _runs_after(call: CompileCall, use: ast.Call, text: str, held: dict[str, int], place: Place) -> bool:
    """Whether ``use`` surely runs after ``call``: later in its scope, or in a method, when the constructor compiles."""
    if exclusive(call.node, use, place.syntax):
        return False
    scope, other = place.bindings.scope(call.node), place.bindings.scope(use)
    if scope is other:
        return use.lineno > call.node.lineno and _kept(text, held[text], use, place)
    constructor = isinstance(scope, ast.FunctionDef) and scope.name == "__init__" and text.startswith("self.")
    cls = place.syntax.class_of(scope)
    if not constructor or cls is None or place.syntax.class_of(use) is not cls:
        return False
    stores = [(where, v) for (where, t), vs in place.bindings.assigned.items() if t == text for v in vs]
    own = [(where, v) for where, v in stores if place.syntax.class_of(where) is cls]
    return all(where is scope and v.lineno <= held[text] for where, v in own)


# --- how much, and when ---------------------------------------------------------------------------------------------


def _extent(call: CompileCall, place: Place) -> Iterator[str]:
    if isinstance(call.target, ast.ClassDef):
        yield ON_A_CLASS
    if call.kind == "call" and (dotted(call.target) or "" if call.target is not None else "").endswith(".forward"):
        yield "Hooks of the module are not compiled, only its `forward` is."
    function = place.syntax.function_of(call.node)
    cls = place.syntax.class_of(function) if function is not None else None
    if function is None or call.kind == "decorator" or function.name not in ("forward", "__call__") or cls is None:
        return
    if place.index.is_module_class(cls.name):
        yield f"Asked for in each call of `{cls.name}.{function.name}`; what is compiled already is found again."


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


def _given(e: ast.expr | None) -> bool:
    """Whether there surely is a value that is not None: a name may hold None."""
    return isinstance(e, (ast.Dict, ast.List, ast.Call)) or _constant(e) is not None


def _text(target: ast.expr | FunctionNode | ast.ClassDef) -> str:
    return ast.unparse(target) if isinstance(target, ast.expr) else target.name


def _lines(lines: list[int]) -> str:
    several = sorted(set(lines))
    return f"line{'s' if len(several) > 1 else ''} {', '.join(map(str, several[:3]))}" + (", ..." * (len(several) > 3))
