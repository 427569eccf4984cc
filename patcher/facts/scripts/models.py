"""The models that a script builds and runs, and where each is ready to be compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from patcher.facts.scripts.sources import Source, Sources
from patcher.facts.scripts.wrappers import wrappings
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted, last_name
from patcher.facts.values.module_values import ModuleIndex, ModuleValues

#: What is asked of a model before it runs, so that it is compiled after that.
_PREPARES = frozenset(
    "to cuda cpu xpu half float bfloat16 double to_empty requires_grad_ load_state_dict add_adapter set_adapter "
    "gradient_checkpointing_enable enable_gradient_checkpointing enable_xformers_memory_efficient_attention "
    "set_use_memory_efficient_attention_xformers resize_token_embeddings init_weights tie_weights fuse_qkv_projections "
    "enable_block_swap move_to_device_except_swap_blocks prepare_block_swap_before_forward apply".split()
)
#: What is given a model and does not run it.
_ASKS = frozenset("isinstance len print type id repr str copy.deepcopy deepcopy hasattr getattr setattr".split())
_PREPARING = ("Accelerate", "Fabric")
#: What runs a model, besides a call of it.
_RUNS = frozenset("generate forward sample predict".split())


@dataclass(frozen=True, eq=False)
class Model:
    """A model that a scope of a script holds.

    ``name``: what holds it there, as text. ``made``: the statement that gives it that name first. ``use``: 3 when it is
    prepared or wrapped for training, 2 when it is trained, 1 when it runs, 0 when none of these is seen, or when it is
    neither called nor handed to anything that may (as what only holds the layers of an adapter). ``returned``: the
    scope builds it for another one.
    """

    source: Source
    scope: ast.AST
    name: str
    made: ast.stmt
    use: int
    returned: bool = False


@dataclass(frozen=True, eq=False)
class Ready:
    """Where a model is ready: below ``anchor`` (or above it). ``holds``: the expression for it there.

    ``again``: statements below, in which another model gets the name.
    """

    anchor: ast.stmt
    after: bool
    holds: str
    again: tuple[ast.stmt, ...] = ()


class Models:
    """The models in some files, the script's first. ``around``: files that may define their classes."""

    def __init__(self, sources: Sources, around: Sources) -> None:
        self.sources = sources
        self._index = ModuleIndex([(_module(s.path), s.syntax) for s in (*sources.all, *around.all)])
        self._values = {s: ModuleValues(s.syntax, self._index, s.bindings) for s in sources.all}
        self._wraps = {s: wrappings(s.syntax, s.bindings) for s in sources.all}

    @cached_property
    def all(self) -> tuple[Model, ...]:
        """Every name that a scope gives a model, or what is used as one."""
        return tuple(model for source in self.sources.all for model in self._held(source))

    def named(self, name: str) -> tuple[Model, ...]:
        """What is assigned to ``name``, whether it is known for a model or not."""
        found = [
            next(
                (
                    Model(source, scope, name, s, 1)
                    for s in _own_statements(source.syntax, scope)
                    if any(dotted(t) == name for t in _targets(s)) and not _gives_none(s)
                ),
                None,
            )
            for source in self.sources.all
            for scope in (source.syntax.tree, *source.syntax.functions)
        ]
        return tuple(model for model in found if model is not None)

    def ready(self, model: Model) -> tuple[Ready, ...]:
        """Where ``model`` is built, moved and prepared, and neither wrapped for DDP nor run; (): no such place.

        Several where it is prepared in several: each in an arm of its own, or for a run of its own.
        """
        syntax = model.source.syntax
        wraps = [w for w in self._wraps[model.source] if w.scope is model.scope and model.name in (w.given | w.results)]
        prepared = [w for w in wraps if w.kind in _PREPARING and model.name in w.results]
        if prepared:
            return tuple(_below(model, w.call, syntax) for w in prepared)
        wraps = [w for w in wraps if w.kind not in _PREPARING]
        if any(model.name not in w.given for w in wraps):
            return ()
        return self._before_use(model, [syntax.statement_of(w.call) for w in wraps])

    def _before_use(self, model: Model, wrapped: list[ast.stmt]) -> tuple[Ready, ...]:
        """Above the statements by which it is ``wrapped``, else below all that builds and prepares it."""
        syntax = model.source.syntax
        own = [s for s in _own_statements(syntax, model.scope) if syntax.block_of(s)]
        marks = list(dict.fromkeys([*_definitions(model, own), *wrapped]))
        block = _around_all(syntax, marks) or []
        first_use = next((i for i, s in enumerate(block) if self._runs(model, s, marks)), len(block))
        at = {mark: _index(syntax, block, mark) for mark in marks}
        built = [at[m] for m in marks if m not in wrapped and at[m] < first_use]
        preparing = [i for s in own if _prepares(s, model.name) and (i := _index(syntax, block, s)) < first_use]
        above = min((at[w] for w in wrapped), default=-1)
        place = above if wrapped else max([*built, *preparing], default=-1)
        if not block or place < 0 or (wrapped and max(built, default=-1) >= place):
            return ()
        return (Ready(block[place], not wrapped, model.name, tuple(m for m in marks if at[m] > first_use)),)

    def _held(self, source: Source) -> Iterator[Model]:
        syntax = source.syntax
        for scope in (syntax.tree, *syntax.functions):
            seen: set[str] = set()
            for statement in _own_statements(syntax, scope):
                for target in _targets(statement):
                    name = dotted(target)
                    if name is None or name in seen or not self._is_model(source, scope, target, name):
                        continue
                    seen.add(name)
                    returned = any(
                        name in (dotted(part) for part in ast.walk(r))
                        for r in syntax.by_type[ast.Return]
                        if syntax.function_of(r) is scope
                    )
                    yield Model(source, scope, name, statement, self._use(source, scope, name), returned)

    def _is_model(self, source: Source, scope: ast.AST, target: ast.expr, name: str) -> bool:
        if _inside_a_module(source.syntax, scope, name, self._index):
            return False
        return self._values[source].is_module(target) or (scope, name) in source.bindings.asked

    def _use(self, source: Source, scope: ast.AST, name: str) -> int:
        calls = [c for c in source.syntax.by_type[ast.Call] if self._within(source, c, scope, name)]
        runs = any(dotted(c.func) == name or _is_run(c, name) for c in calls)
        if not runs and not any(_is_handed(c, name) for c in calls):
            return 0
        if any(w.scope is scope and w.keeps(name) for w in self._wraps[source]):
            return 3
        handed = [h for call in calls for h in self.sources.handed(call) if dotted(h[3]) == name]
        if any(_trains(c, name) for c in calls) or any(self._trained_in(*h[:3]) for h in handed):
            return 2
        return 1 if runs or any(self._runs_there(c, name) for c in calls) else 0

    def _trained_in(self, source: Source, function: FunctionNode, name: str) -> bool:
        calls = (c for c in source.syntax.by_type[ast.Call] if self._within(source, c, function, name))
        return any(_trains(c, name) for c in calls)

    def _within(self, source: Source, call: ast.Call, scope: ast.AST, name: str) -> bool:
        """Whether a name in ``call`` is that of ``scope``; an attribute of ``self`` is that of its class."""
        at = source.bindings.scope(call)
        if at is scope:
            return True
        if name.startswith("self."):
            return source.syntax.class_of(at) is source.syntax.class_of(scope)
        inside = scope is source.syntax.tree or scope in source.syntax.ancestors(at)
        return inside and not source.syntax.binds(at, name.partition(".")[0])

    def _runs(self, model: Model, statement: ast.stmt, marks: Sequence[ast.stmt]) -> bool:
        """Whether the model runs in ``statement``, or may: in a loop, or in a function of these files."""
        syntax = model.source.syntax
        below = syntax.subtree(statement)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        marked = {n for mark in marks if mark in below for n in syntax.subtree(mark)}
        calls = (n for n in below if isinstance(n, ast.Call) and n not in marked)
        return any(
            dotted(c.func) == model.name or _is_run(c, model.name) or self._runs_there(c, model.name) for c in calls
        )

    def _runs_there(self, call: ast.Call, name: str, depth: int = 3) -> bool:
        """Whether a function of these files runs the model that ``call`` hands it."""
        for source, function, parameter, value in self.sources.handed(call) if depth else ():
            for inner in source.syntax.subtree(function) if dotted(value) == name else ():
                if isinstance(inner, ast.Call) and (
                    dotted(inner.func) == parameter
                    or _is_run(inner, parameter)
                    or self._runs_there(inner, parameter, depth - 1)
                ):
                    return True
        return False


def _module(path: str) -> str:
    return ".".join(PurePath(path).with_suffix("").parts)


def _own_statements(syntax: Syntax, scope: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a function or module in their order; not those of functions and classes in it."""
    stack: list[ast.AST] = list(reversed(scope.body))  # type: ignore[attr-defined]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            stack += [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.expr)][::-1]


def _targets(statement: ast.stmt) -> Iterator[ast.expr]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    for target in targets:
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _below(model: Model, call: ast.Call, syntax: Syntax) -> Ready:
    """Below the statement that prepares the model."""
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    holds = f"{owner}.unwrap_model({model.name})" if last_name(call.func).startswith("prepare") else model.name
    return Ready(syntax.statement_of(call), True, holds)


def _definitions(model: Model, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that give the name a model, but for ``raw = model.module`` and its like."""
    return [s for s in statements if any(dotted(t) == model.name for t in _targets(s)) and not _gives_none(s)]


def _gives_none(statement: ast.stmt) -> bool:
    """Whether no new model gets the name: it is let go, or is what it was, unwrapped."""
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Call) and last_name(value.func) in ("unwrap_model", "unwrap", "getattr"):
        return True
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("eval", "train"):
        return dotted(value.func.value) is not None  # of what is built there, it is a new one
    if isinstance(value, ast.Attribute) and value.attr in ("module", "_orig_mod"):
        return True
    return isinstance(value, ast.Constant) and value.value is None


def _inside_a_module(syntax: Syntax, scope: ast.AST, name: str, index: ModuleIndex) -> bool:
    """Whether ``self.name`` is a part of a module that the class around is, and no model of a script."""
    cls = syntax.class_of(scope) if name.startswith("self.") else None
    if cls is None or not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) or self_name(scope) is None:
        return "." in name
    return index.is_module_class(cls.name)


def _trains(call: ast.Call, name: str) -> bool:
    """Whether a call says that the model ``name`` is trained: in training mode, or its parameters to an optimizer."""
    if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name and call.func.attr == "train":
        off = [a for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Constant)]
        return not any(a.value is False for a in off)
    told = ast.unparse(call.func).lower()
    if "optim" not in told and "clip_grad" not in told and last_name(call.func) not in ("Adam", "AdamW", "SGD"):
        return False
    parameters = (f"{name}.parameters", f"{name}.named_parameters")
    given = [n for a in (*call.args, *(k.value for k in call.keywords)) for n in ast.walk(a)]
    return any(isinstance(n, ast.Call) and dotted(n.func) in parameters for n in given)


def _is_handed(call: ast.Call, name: str) -> bool:
    """Whether a call is given the model, alone or in a list, and may run it."""
    func = dotted(call.func) or ""
    if func in _ASKS or "optim" in func.lower() or func.partition(".")[0] == "accelerator":
        return False
    given = [*call.args, *(k.value for k in call.keywords)]
    items = [part for e in given for part in (e.elts if isinstance(e, (ast.List, ast.Tuple)) else [e])]
    return any(dotted(e.value if isinstance(e, ast.Starred) else e) == name for e in items)


def _is_run(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name and call.func.attr in _RUNS


def _prepares(statement: ast.stmt, name: str) -> bool:
    """Whether something is asked of the model there that comes before compiling."""
    asked = (n.func for n in ast.walk(statement) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return any(f.attr in _PREPARES and dotted(f.value) == name for f in asked)


def _around_all(syntax: Syntax, statements: Sequence[ast.stmt]) -> list[ast.stmt] | None:
    """The innermost block that all ``statements`` are in."""
    chains = []
    for statement in statements:
        chain = [syntax.block_of(statement)]
        for parent in syntax.ancestors(statement):
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)):
                break
            if isinstance(parent, ast.stmt):
                chain.append(syntax.block_of(parent))
        chains.append(chain)
    if not chains:
        return None
    return next((b for b in chains[0] if all(any(b is other for other in chain) for chain in chains)), None)


def _index(syntax: Syntax, block: Sequence[ast.stmt], statement: ast.stmt) -> int:
    """Where in ``block`` ``statement`` is, or stands in; -1: nowhere."""
    around = {statement, *syntax.ancestors(statement)}
    return next((i for i, s in enumerate(block) if s in around), -1)
