"""Where a module asks for compilation, or sets how it is done: by meaning, through imports, aliases and partials."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted
from patcher.facts.values.module_values import Bindings, ModuleIndex, ModuleValues, imported

CallKind = Literal[
    "call",  # torch.compile(x), also through an alias or a partial
    "decorator",  # @torch.compile
    "factory",  # torch.compile(fullgraph=True) or partial(torch.compile, ...): gives what compiles later
    "in place",  # module.compile()
    "exempt",  # torch.compiler.disable and others that say what is not traced, as a call or a decorator
    "mark",  # torch._dynamo.mark_dynamic(x, 0)
    "setting",  # torch._dynamo.config.x = 1, torch.set_float32_matmul_precision("high")
    "reset",  # torch._dynamo.reset()
    "library",  # Accelerator(dynamo_backend="inductor"), TrainingArguments(torch_compile=True)
]

COMPILE = frozenset({"torch.compile", "torch._dynamo.optimize", "torch._dynamo.optimize_assert"})
COMPILE_ARGUMENTS = frozenset(
    "fullgraph dynamic backend mode options disable name recompile_limit isolate_recompiles "
    "shapes_spec dynamic_shapes".split()  # the last is what the one before it is called from 2.14 on
)
#: Of those, the ones by which a ``compile`` of an unknown object is told to be PyTorch's.
_TELLING = frozenset("fullgraph dynamic backend mode options".split())
_DYNAMO = ("torch._dynamo", "torch._dynamo.decorators", "torch.compiler")
_EXEMPT = frozenset(
    "disable skip_frame allow_in_graph disallow_in_graph forbid_in_graph nonstrict_trace substitute_in_graph "
    "assume_constant_result set_stance nested_compile_region graph_break".split()
)
_MARKS = frozenset(
    "mark_dynamic maybe_mark_dynamic mark_unbacked mark_static mark_static_address cudagraph_mark_step_begin".split()
)
_RESET = frozenset({"torch._dynamo.reset", "torch.compiler.reset"})
_CONFIGS = ("torch._dynamo.config.", "torch._inductor.config.", "torch._functorch.config.", "torch.compiler.config.")
_SETTERS = frozenset({"torch.set_float32_matmul_precision"})
#: Arguments by which a library is told to compile.
LIBRARY_KEYWORDS = frozenset(
    "dynamo_backend dynamo_plugin torch_compile torch_compile_backend torch_compile_mode".split()
)
_LIBRARY_CALLS = frozenset({"TorchDynamoPlugin", "compile_regions"})
_LIBRARIES = frozenset("accelerate transformers diffusers lightning pytorch_lightning trl peft timm".split())
_TELLING_WORD = re.compile("compile|dynamo|inductor|functorch|matmul_precision", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class CompileCall:
    """One such place.

    ``node``: the call, the decorator as written, or the assignment. ``what``: dotted, "torch.nn.Module.compile" for a
    module's own. ``target``: what is compiled, marked or exempt: an expression, or the definition under a decorator.
    ``arguments``: name and value; "*" and "**" for unpacked ones, "" for one without a name. A partial's come first.
    """

    node: ast.expr | ast.stmt
    kind: CallKind
    what: str
    target: ast.expr | FunctionNode | ast.ClassDef | None = None
    arguments: tuple[tuple[str, ast.expr], ...] = ()

    def argument(self, name: str) -> ast.expr | None:
        """The value given for ``name``; the last one counts."""
        return next((value for given, value in reversed(self.arguments) if given == name), None)


def compile_calls(syntax: Syntax, index: ModuleIndex | None = None) -> tuple[CompileCall, ...]:
    """All of them in one module, in the order of the source. ``index``: the module classes of the files around."""
    if not any(_TELLING_WORD.search(word) for word in _words(syntax)):
        return ()
    own = ModuleIndex([("", syntax)]) if index is None else index
    found = list(_Calls(syntax, own).found())
    return tuple(sorted(found, key=lambda c: (c.node.lineno, c.node.col_offset)))


def _words(syntax: Syntax) -> Iterator[str]:
    """What a module calls things: one of these words gives away a place of interest."""
    yield from (what for _, what, _ in syntax.all_imports)
    yield from syntax.names_in(syntax.tree)
    yield from (k.arg or "" for call in syntax.by_type[ast.Call] for k in call.keywords)
    yield from (c.value for c in syntax.by_type[ast.Constant] if c.value == "compile")


_Resolved = tuple[str, tuple[tuple[str, ast.expr], ...]]


class _Calls:
    def __init__(self, syntax: Syntax, index: ModuleIndex) -> None:
        self.syntax = syntax
        self.bindings = Bindings(syntax)
        self.values = ModuleValues(syntax, index, self.bindings)
        self.packages = {what.partition(".")[0] for _, what, _ in syntax.all_imports}

    def found(self) -> Iterator[CompileCall]:
        decorators: set[ast.AST] = set()
        for definition in (*self.syntax.functions, *self.syntax.by_type[ast.ClassDef]):
            for d in definition.decorator_list:
                decorators.update(ast.walk(d))
                yield from self._decorator(d, definition)
        for call in self.syntax.by_type[ast.Call]:
            if call not in decorators:
                yield from self._call(call)
        for nodes in (self.syntax.by_type[ast.Assign], self.syntax.by_type[ast.AnnAssign]):
            for statement in nodes:
                yield from self._setting(statement)

    # --- names ------------------------------------------------------------------------------------------------------

    def resolve(self, e: ast.expr, depth: int = 4) -> _Resolved | None:
        """The dotted function that ``e`` is, with arguments that a partial has given it already."""
        what = imported(self.syntax, e)
        if what is not None:
            return what, ()
        if depth == 0:
            return None
        match e:
            case ast.Call(func=ast.Name(id="getattr"), args=[base, ast.Constant(value=str(name)), *_]):
                inner = self.resolve(base, depth - 1)
                return None if inner is None else (f"{inner[0]}.{name}", ())
            case ast.Call(func=func, args=[first, *_], keywords=keywords):
                if imported(self.syntax, func) == "functools.partial" and (inner := self.resolve(first, depth - 1)):
                    return inner[0], (*inner[1], *_named(keywords))
                return None
        if isinstance(e, (ast.Name, ast.Attribute)):
            values = [v for v in self.bindings.values(e) if not isinstance(v, ast.Constant)]
            if len(values) == 1 and values[0] is not e and not self._is_call_of_compile(values[0]):
                return self.resolve(values[0], depth - 1)
        return None

    def _is_call_of_compile(self, e: ast.expr) -> bool:
        """What torch.compile(...) gives is not torch.compile."""
        return isinstance(e, ast.Call) and imported(self.syntax, e.func) in COMPILE

    # --- the places -------------------------------------------------------------------------------------------------

    def _decorator(self, d: ast.expr, definition: FunctionNode | ast.ClassDef) -> Iterator[CompileCall]:
        called = d.func if isinstance(d, ast.Call) else d
        given = _named(d.keywords) if isinstance(d, ast.Call) else ()
        found = self.resolve(called)
        if found is not None and found[0] == "functools.partial" and isinstance(d, ast.Call):
            found, given = self.resolve(d), ()
        if found is None and isinstance(called, ast.Name):  # compiled = torch.compile(fullgraph=True); @compiled
            found = self._factory(called)
        if found is None:
            return
        what, before = found
        if what in COMPILE:
            yield CompileCall(d, "decorator", what, definition, (*before, *given))
        elif _is_one_of(what, _EXEMPT):
            yield CompileCall(d, "exempt", what, definition, (*before, *given))

    def _factory(self, name: ast.Name) -> _Resolved | None:
        values = self.bindings.values(name)
        if len(values) == 1 and isinstance(values[0], ast.Call) and not values[0].args:
            inner = self.resolve(values[0].func)
            if inner is not None and inner[0] in COMPILE:
                return inner[0], (*inner[1], *_named(values[0].keywords))
        return None

    def _call(self, call: ast.Call) -> Iterator[CompileCall]:
        given = _named(call.keywords)
        found = self.resolve(call.func)
        if found is not None:
            yield from self._known(call, found[0], (*found[1], *given))
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "compile":
            if self._is_module_compile(call):
                yield CompileCall(call, "in place", "torch.nn.Module.compile", call.func.value, given)
        elif isinstance(call.func, ast.Call):  # torch._dynamo.optimize("eager")(model), torch.compile(mode=...)(model)
            inner = self.resolve(call.func.func)
            if inner is not None and inner[0] in COMPILE and _gives_factory(inner[0], call.func) and call.args:
                before = (*inner[1], *_unnamed(call.func.args), *_named(call.func.keywords))
                yield CompileCall(call, "call", inner[0], call.args[0], before)
        elif isinstance(call.func, ast.Name) and call.args and (maker := self._factory(call.func)) is not None:
            yield CompileCall(call, "call", maker[0], call.args[0], (*maker[1], *given))
        if self._is_library(call, found[0] if found is not None else dotted(call.func) or ""):
            yield CompileCall(call, "library", dotted(call.func) or "?", call.args[0] if call.args else None, given)

    def _known(self, call: ast.Call, what: str, given: tuple[tuple[str, ast.expr], ...]) -> Iterator[CompileCall]:
        target = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "model"), None)
        rest = _unnamed(call.args[1:])
        if what in COMPILE:
            given = tuple((n, v) for n, v in given if n != "model")
            if not _gives_factory(what, call):
                yield CompileCall(call, "call", what, target, (*rest, *given))
            elif not self._is_called(call):
                yield CompileCall(call, "factory", what, None, (*_unnamed(call.args), *given))
        elif what == "functools.partial" and call.args:
            inner = self.resolve(call)
            if inner is not None and inner[0] in COMPILE:
                yield CompileCall(call, "factory", inner[0], None, inner[1])
        elif what in _RESET:
            yield CompileCall(call, "reset", what)
        elif what in _SETTERS:
            yield CompileCall(call, "setting", what, None, (("", target),) if target is not None else ())
        elif _is_one_of(what, _EXEMPT):
            yield CompileCall(call, "exempt", what, target, (*rest, *given))
        elif _is_one_of(what, _MARKS):
            yield CompileCall(call, "mark", what, target, (*rest, *given))
        elif what.startswith(_CONFIGS) and what.endswith((".patch", ".load_config", ".update")):
            yield CompileCall(call, "setting", what, None, (*_unnamed(call.args), *given))

    def _is_called(self, call: ast.Call) -> bool:
        parent = self.syntax.parents.get(call)
        return isinstance(parent, ast.Call) and parent.func is call

    def _is_module_compile(self, call: ast.Call) -> bool:
        """Whether ``x.compile(...)`` is that of an nn.Module: it takes torch.compile's keywords and nothing else."""
        assert isinstance(call.func, ast.Attribute)
        names = {k.arg for k in call.keywords if k.arg is not None}
        if call.args or names - COMPILE_ARGUMENTS or imported(self.syntax, call.func.value) is not None:
            return False
        if "torch" not in self.packages and not self.packages & _LIBRARIES:
            return False
        receiver = call.func.value
        own = self.syntax.class_of(call) if isinstance(receiver, ast.Name) and receiver.id == "self" else None
        if own is not None and any(isinstance(s, ast.FunctionDef) and s.name == "compile" for s in own.body):
            return False
        return bool(names & _TELLING) or self.values.is_module(receiver)

    def _is_library(self, call: ast.Call, what: str) -> bool:
        """Whether a library that compiles by itself is told to."""
        package, last = what.partition(".")[0], what.rpartition(".")[2]
        if last == "compile_repeated_blocks":  # of a model or pipeline of diffusers
            return bool(self.packages & _LIBRARIES)
        if package not in _LIBRARIES:
            return False
        values = {k.arg: k.value for k in call.keywords}
        off = {k for k, v in values.items() if isinstance(v, ast.Constant) and v.value in (None, False, "no")}
        return last in _LIBRARY_CALLS or bool(LIBRARY_KEYWORDS & (values.keys() - off))

    def _setting(self, statement: ast.AST) -> Iterator[CompileCall]:
        assert isinstance(statement, (ast.Assign, ast.AnnAssign))
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if statement.value is None:
            return
        for target in targets:
            what = imported(self.syntax, target) if isinstance(target, ast.Attribute) else None
            if what is None and isinstance(target, ast.Attribute) and (base := self.resolve(target.value)) is not None:
                what = f"{base[0]}.{target.attr}"
            if what is not None and (what.startswith(_CONFIGS) or what == "torch.compile"):
                yield CompileCall(statement, "setting", what, None, ((what.rpartition(".")[2], statement.value),))


def _named(keywords: list[ast.keyword]) -> tuple[tuple[str, ast.expr], ...]:
    return tuple((k.arg or "**", k.value) for k in keywords)


def _unnamed(arguments: list[ast.expr]) -> tuple[tuple[str, ast.expr], ...]:
    return tuple(("*", a.value) if isinstance(a, ast.Starred) else ("", a) for a in arguments)


def _gives_factory(what: str, call: ast.Call) -> bool:
    """Whether the call names nothing to compile, but gives what compiles."""
    if what != "torch.compile":
        return True
    first = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "model"), None)
    return first is None or (isinstance(first, ast.Constant) and first.value is None)


def _is_one_of(what: str, names: frozenset[str]) -> bool:
    base, _, last = what.rpartition(".")
    return last in names and base in _DYNAMO
