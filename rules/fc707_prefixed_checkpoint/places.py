"""Where a file saves the state of a model that may be wrapped, and where it loads one into such a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.values.callees import Callees
from patcher.facts.values.module_values import imported
from rules.fc707_prefixed_checkpoint.wrapped import Wrapped, Wraps

_DEPTH = 5
#: Functions that take the state of a model that is their first argument.
_TAKING = frozenset({"get_state_dict", "get_peft_model_state_dict"})
#: They write what is below the wrapper themselves, with the names that it has there.
_WRITING_MODELS = frozenset({"save_model"})


@dataclass(frozen=True, eq=False)
class Place:
    """``node``: what is saved or loaded, and gets a call around it. ``model``: whose state it is. ``wraps``: by what.

    ``how``: "saved" and "loaded" are state dicts; "written" is a call that takes the model itself, which stays.
    ``silent``: it is loaded with ``strict=False``, and so would not be. ``call``: that loads it.
    """

    node: ast.expr
    model: ast.expr
    wraps: Wraps
    how: Literal["saved", "loaded", "written"]
    silent: bool = False
    call: ast.Call | None = None

    @property
    def at(self) -> ast.expr:
        """Where it is told."""
        return self.call or self.node


class Places(Analysis):
    """Of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)
        self.wrapped = facts.ask(Wrapped)

    @cached_property
    def all(self) -> tuple[Place, ...]:
        """In the order of the source, each once."""
        found: dict[ast.expr, Place] = {}
        for call in self.syntax.by_type[ast.Call]:
            for place in (*self._saved(call), *self._loaded(call), *self._written(call)):
                found.setdefault(place.node, place)
        return tuple(sorted(found.values(), key=lambda p: (p.node.lineno, p.node.col_offset)))

    def state(self, e: ast.expr) -> tuple[ast.expr, Wraps] | None:
        """The model whose state ``e`` takes, and what may have wrapped it; None for anything else."""
        model = None
        match e:
            case ast.Call(func=ast.Attribute(value=owner, attr="state_dict"), args=[]):
                model = owner
            case ast.Call(func=func, args=[first, *_]) if last_name(func) in _TAKING:
                distributed = (imported(self.syntax, func) or "").startswith("torch.distributed")
                model = None if distributed else first
        wraps = self.wrapped.of(model) or self.wrapped.handed(model) if model is not None else frozenset()
        return (model, wraps) if model is not None and wraps else None

    # --- saved ------------------------------------------------------------------------------------------------------

    def _saved(self, call: ast.Call) -> Iterator[Place]:
        what, name = imported(self.syntax, call.func) or "", last_name(call.func)
        if ("save" not in name.lower() and name != "dump") or what.startswith("torch.distributed"):
            return
        if any(self.callees.here(n) is not None for n in self.callees.of(call)):
            return
        keyed = [k.value for k in call.keywords if k.arg in ("state_dict", "obj", "tensors")]
        for e in (*call.args, *keyed):
            yield from self._in(e, e, _DEPTH)

    def _in(self, e: ast.expr, sink: ast.expr, depth: int) -> Iterator[Place]:
        """State dicts in what is saved. ``sink``: where it is saved, or an expression in what is."""
        if not depth:
            return
        found = self.state(e)
        if found is not None:
            if e is sink or not self._undone(sink):
                yield Place(sink, *found, "saved")
            return
        match e:
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if key is not None:
                        yield from self._in(value, value, depth - 1)
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                for k in keywords:
                    yield from self._in(k.value, k.value, depth - 1)
            case ast.Name():
                yield from self._named(e, sink, depth - 1)
            case ast.Call():
                functions = self._functions(e)
                for function in functions:
                    for value in self._returns(function):
                        yield from self._in(value, value, depth - 1)
                if not self.wrapped.speaks_of_it(e):  # it is converted, by the names of the model
                    for a in e.args:
                        if self.state(a) is not None:
                            yield from self._in(a, a, depth - 1)

    def _named(self, e: ast.Name, sink: ast.expr, depth: int) -> Iterator[Place]:
        if not depth:
            return
        for value in self.wrapped.values(e, depth):
            if self.state(value) is not None:
                yield from self._in(value, sink if isinstance(sink, ast.Name) else e, depth)
            elif isinstance(value, (ast.Dict, ast.Call, ast.Name)):
                yield from self._in(value, sink if isinstance(value, ast.Name) else value, depth)
        for s in self.syntax.by_type[ast.Assign]:
            match s.targets:
                case [ast.Subscript(value=ast.Name() as held)] if held.id == e.id:
                    if self.syntax.function_of(s) is self.syntax.function_of(e) or self._is_of(held, e):
                        yield from self._in(s.value, s.value, depth)
                        yield from self._item(s.value, depth - 1)

    def _is_of(self, held: ast.Name, e: ast.Name) -> bool:
        """Whether ``held``, in a function inside of that of ``e``, is the variable ``e``."""
        outer, inner = self.syntax.function_of(e), self.syntax.function_of(held)
        if inner is None or not any(p is outer for p in self.syntax.ancestors(inner)):
            return False
        return held.id not in self.syntax.bound_in(inner)

    def _item(self, e: ast.expr, depth: int) -> Iterator[Place]:
        """``for key, value in state.items()``: the state of which ``e`` is a value, at the expression that takes it.

        Also ``value.detach().to(dtype)``.
        """
        while isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute):
            e = e.func.value
        if not isinstance(e, ast.Name):
            return
        for loop in (p for p in self.syntax.ancestors(e) if isinstance(p, ast.For)):
            match loop:
                case ast.For(
                    target=ast.Tuple(elts=[_, ast.Name(id=value)]),
                    iter=ast.Call(func=ast.Attribute(value=state, attr="items"), args=[]),
                ) if value == e.id and not self.wrapped.speaks_of_it(loop):
                    if isinstance(state, ast.Name):
                        yield from self._named(state, state, depth)
                    else:
                        yield from self._in(state, state, depth)

    def _undone(self, sink: ast.expr) -> bool:
        """Whether a statement that has to do with the wrapper's names changes what ``sink`` holds."""
        if not isinstance(sink, ast.Name):
            return False
        function, around = self.syntax.function_of(sink), set(self.syntax.ancestors(sink))
        for n in self.syntax.by_type[ast.Name]:
            if n.id != sink.id or n is sink or self.syntax.function_of(n) is not function:
                continue
            for p in self.syntax.ancestors(n):
                if p in around:
                    break
                if isinstance(p, ast.stmt) and self.wrapped.speaks_of_it(p):
                    return True
        return False

    def _functions(self, call: ast.Call) -> list[FunctionNode]:
        return [f for n in self.callees.of(call) if (f := self.callees.here(n)) is not None]

    def _returns(self, function: FunctionNode) -> list[ast.expr]:
        if self.wrapped.speaks_of_it(function):
            return []
        own = (r for r in self.syntax.by_type[ast.Return] if self.syntax.function_of(r) is function)
        return [r.value for r in own if r.value is not None]

    def _written(self, call: ast.Call) -> Iterator[Place]:
        """Calls that are given the model, and save it with the names that it has."""
        name, model = last_name(call.func), next(iter(call.args), None)
        if name in _WRITING_MODELS and model is not None and (wraps := self.wrapped.of(model)):
            yield Place(call, model, wraps, "written")
        elif name == "save_pretrained" and isinstance(call.func, ast.Attribute):
            given = any(k.arg in ("state_dict", None) for k in call.keywords)
            wraps = frozenset(w for w in self.wrapped.of(call.func.value) if w.inside)
            if wraps and not given:
                yield Place(call, call.func.value, wraps, "written")

    # --- loaded -----------------------------------------------------------------------------------------------------

    def _loaded(self, call: ast.Call) -> Iterator[Place]:
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "load_state_dict":
            return
        keyed = (k.value for k in call.keywords if k.arg == "state_dict")
        state, model = next(iter((*call.args[:1], *keyed)), None), call.func.value
        if state is None or isinstance(state, ast.Starred) or not (wraps := self.wrapped.of(model)):
            return
        if not self.wrapped.speaks_of_it(state) and not self._undone(state) and self.state(state) is None:
            strict = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "strict")]
            silent = any(isinstance(s, ast.Constant) and s.value is False for s in strict)
            yield Place(state, model, wraps, "loaded", silent, call)
