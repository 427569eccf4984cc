"""Where a file saves the state of a model that may be wrapped, and where it loads one into such a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.kept import kept
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
        self._seen: set[ast.AST] = set()

    @cached_property
    def all(self) -> tuple[Place, ...]:
        """In the order of the source, each once."""
        found: dict[ast.expr, Place] = {}
        calls = self.syntax.by_type[ast.Call]
        states = {c for c in calls if self.state(c) is not None}
        for call in calls:
            for place in (*(self._saved(call) if states else ()), *self._loaded(call), *self._written(call)):
                found.setdefault(place.node, place)
        return tuple(sorted(found.values(), key=lambda p: (p.node.lineno, p.node.col_offset)))

    @kept
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
        for e in self._behind([*call.args, *keyed]):
            if (found := self.state(e)) is not None:
                yield Place(e, *found, "saved")

    def _behind(self, saved: list[ast.expr]) -> Iterator[ast.expr]:
        """All that may become a part of what is ``saved``: written there, under a name of it, or returned for it.

        Up to what takes the state of a model, or has to do with the wrapper's names.
        """
        while saved:
            e = saved.pop()
            if e in self._seen or (not isinstance(e, (ast.Dict, ast.Tuple, ast.List)) and self.wrapped.speaks_of_it(e)):
                continue
            self._seen.add(e)
            yield e
            if self.state(e) is not None or (isinstance(e, ast.Name) and self._undone(e)):
                continue
            if isinstance(e, ast.Name):
                saved += self._held(e)
            elif isinstance(e, ast.Call):
                functions = [f for n in self.callees.of(e) if (f := self.callees.here(n)) is not None]
                saved += [r for f in functions if not self.wrapped.speaks_of_it(f) for r in self._returns(f)]
            parts = [n.value if isinstance(n, ast.keyword) else n for n in ast.iter_child_nodes(e)]
            saved += [n.iter if isinstance(n, ast.comprehension) else n for n in parts if hasattr(n, "_fields")]  # type: ignore[misc]

    def _held(self, e: ast.Name) -> list[ast.expr]:
        """What ``e`` is, a part of which it is, and what is put into it by its keys."""
        found = self.wrapped.values(e, _DEPTH)
        loops = (d.value for d in self.inference.definitions(e) if d.how == "iteration" and d.value is not None)
        around = self.syntax.function_of(e)
        for s in self._stores.get(e.id, ()):
            if around is self.syntax.function_of(s) or any(p is around for p in self.syntax.ancestors(s)):
                found.append(s.value)
        return [*found, *loops]

    @cached_property
    def _stores(self) -> dict[str, list[ast.Assign]]:
        """What is put into something by a key, by the name of that."""
        found: dict[str, list[ast.Assign]] = {}
        for s in self.syntax.by_type[ast.Assign]:
            for target in s.targets:
                if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    found.setdefault(target.value.id, []).append(s)
        return found

    @kept
    def _undone(self, held: ast.Name) -> bool:
        """Whether a statement that has to do with the wrapper's names changes what ``held`` holds."""
        function = self.syntax.function_of(held)
        same = (n for n in self.syntax.by_type[ast.Name] if n.id == held.id and self.syntax.function_of(n) is function)
        own = self.syntax.statement_of(held)
        statements = {self.syntax.statement_of(n) for n in same} - {own}
        return any(self.wrapped.speaks_of_it(s) for s in statements)

    def _returns(self, function: FunctionNode) -> list[ast.expr]:
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
        if (
            not self.wrapped.speaks_of_it(state)
            and not (isinstance(state, ast.Name) and self._undone(state))
            and self.state(state) is None
        ):
            strict = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "strict")]
            silent = any(isinstance(s, ast.Constant) and s.value is False for s in strict)
            yield Place(state, model, wraps, "loaded", silent, call)
