"""Who may hold which object: points-to sets for one function, in which names and contents only grow."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from patcher.facts.effects.calls import Called, Calls
from patcher.facts.syntax.tree import FunctionNode, Syntax
from patcher.facts.syntax.written import all_parameters
from patcher.facts.tables import call_effects as tables
from patcher.facts.tables import torch_api as api
from patcher.facts.values.inference import Inference
from patcher.facts.values.types import Kind

#: Stands for all objects that somebody outside of the function may hold.
WORLD: Final = ast.Pass()
#: An object is named by the expression that makes it; a view is the object that it is a view of.
Objects = set[ast.AST]
_CONTAINERS = (*(ast.Tuple, ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),)
#: What is not followed: in a function with one of these any two objects may be the same.
_NOT_FOLLOWED = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Global, ast.Nonlocal),
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncWith, ast.Match),
)


class Storage:
    """One function.

    Statements count wherever they stand. A parameter may be what others hold, and so may every attribute. What a
    ``return`` hands out is not counted as held by others: nothing of this call runs then.
    """

    def __init__(self, function: FunctionNode, syntax: Syntax, inference: Inference, calls: Calls) -> None:
        self.function = function
        self.syntax = syntax
        self.inference = inference
        self.calls = calls
        self._names: defaultdict[str, Objects] = defaultdict(set)
        self._contents: defaultdict[ast.AST, Objects] = defaultdict(set)
        nodes = list(ast.walk(function))
        stored = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        self._own = stored | {arg.arg for arg in all_parameters(function.args)}
        odd = any(isinstance(n, _NOT_FOLLOWED) for n in nodes if n is not function)
        odd = odd or any(n.optional_vars is not None for n in nodes if isinstance(n, ast.withitem))
        self._any: Objects = {WORLD, function} if odd or syntax.why_names_show(function) else set()
        for arg in all_parameters(function.args):
            self._names[arg.arg].add(WORLD)
        self.is_followed = not self._any
        self._contents[WORLD] |= {WORLD, *self._any}
        self._grown = not self._any
        while self._grown:
            self._grown = False
            for node in nodes:
                self._node(node)

    # --- questions --------------------------------------------------------------------------------------------------

    def objects(self, e: ast.expr) -> Objects:
        """The objects that ``e`` may be, or be a view of."""
        return set(self._any or self._objects(e))

    def within(self, objects: Iterable[ast.AST]) -> Objects:
        """``objects`` with all that they may hold."""
        found: Objects = set()
        stack = list(objects)
        while stack:
            o = stack.pop()
            if o not in found:
                found.add(o)
                stack += self._contents.get(o, ())
        return found

    def escaped(self) -> Objects:
        """The objects that others may hold."""
        return self.within([WORLD])

    def known_to(self, objects: Objects) -> Objects:
        """``objects``, and all that others may hold when one of them is theirs."""
        return objects | self.escaped() if WORLD in objects else objects

    def may_be_shared(self, e: ast.expr) -> bool:
        """Whether others may hold what ``e`` gives, or share memory with it."""
        return not self.within(self.objects(e)).isdisjoint(self.escaped())

    # --- building ---------------------------------------------------------------------------------------------------

    def _add(self, to: Objects, objects: Iterable[ast.AST]) -> None:
        size = len(to)
        to.update(objects)
        self._grown |= len(to) != size

    def _put(self, holder: ast.expr, objects: Objects) -> None:
        """``holder`` holds ``objects`` among others."""
        for o in self.objects(holder):
            self._add(self._contents[o], objects)

    def _node(self, n: ast.AST) -> None:
        match n:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._assign(target, value)
            case ast.AugAssign(target=target, value=value):
                if self.inference.of(target).kind is not Kind.TENSOR and not self.inference.of(target).is_number:
                    self._put(target, self.within(self._objects(value)))
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                self._bind(target, self.within(self._objects(value)))
            case ast.comprehension(target=target, iter=value):
                self._bind(target, self.within(self._objects(value)))
            case ast.Call():
                self._call(n, self.calls.of(n))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            lined = len(value.elts) == len(target.elts)
            if lined and not any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts)):
                for t, v in zip(target.elts, value.elts, strict=True):
                    self._assign(t, v)
                return
        self._bind(target, self.objects(value), value)

    def _bind(self, target: ast.expr, objects: Objects, value: ast.expr | None = None) -> None:
        match target:
            case ast.Name(id=name):
                self._add(self._names[name] if name in self._own else self._contents[WORLD], objects)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self._bind(element, self.within(objects))
            case ast.Starred(value=inner):
                self._bind(inner, objects)
            case ast.Attribute(value=owner):
                self._add(self._contents[WORLD], objects)
                self._put(owner, objects)
            case ast.Subscript(value=held):
                if not self.inference.of(held).is_tensor:  # of a tensor the numbers are copied
                    self._put(held, objects)

    def _call(self, call: ast.Call, called: Called) -> None:
        for kept in called.keeps:
            self._add(self._contents[WORLD], self._objects(kept))
        holder = call.func.value if isinstance(call.func, ast.Attribute) else None
        fills = isinstance(call.func, ast.Attribute) and call.func.attr in tables.CONTAINER_WRITES | {"__setitem__"}
        if holder is not None and fills and not self.inference.of(holder).is_tensor:
            for given in (*call.args, *(k.value for k in call.keywords)):
                self._put(holder, self.objects(given))
        if called.writes and called.deep:  # what is changed may hold, from then on, the rest of what was given
            given_objects = {o for e in called.writes for o in self._objects(e)}
            for e in called.writes if len(called.writes) > 1 else ():
                if not self.inference.of(e).is_tensor:
                    self._put(e, given_objects)

    def _objects(self, e: ast.AST) -> Iterator[ast.AST]:
        match e:
            case ast.Name(id=name):
                yield from self._names[name] if name in self._own else {WORLD}
            case ast.Attribute(value=owner, attr=attr):
                if attr in api.ABOUT:
                    return
                if attr in tables.VIEWS or self.inference.of(owner).is_tensor:
                    yield from self._objects(owner)
                    return
                yield WORLD
                for o in self.objects(owner) - {WORLD}:
                    yield from self._contents[o]  # it is one of those that were made here
                if self.inference.of(owner).python == "container":
                    yield from self._objects(owner)  # one of its methods
            case ast.Subscript(value=held):
                objects = self.objects(held)
                yield from objects
                for o in objects:
                    yield from self._contents[o]
            case ast.Starred(value=inner) | ast.NamedExpr(value=inner) | ast.UnaryOp(op=ast.UAdd(), operand=inner):
                yield from self._objects(inner)
            case ast.IfExp(body=a, orelse=b):
                yield from self._objects(a)
                yield from self._objects(b)
            case ast.BoolOp(values=parts):
                for part in parts:
                    yield from self._objects(part)
            case _ if isinstance(e, _CONTAINERS):
                yield self._holding(e, (part for part in ast.iter_child_nodes(e) if isinstance(part, ast.expr)))
            case ast.BinOp(left=left, right=right):
                yield e
                for side in (left, right):
                    if self.inference.of(side).python == "container":
                        self._holding(e, [side])
            case ast.Call():
                yield from self._result(e, self.calls.of(e))
            case ast.Constant() | ast.JoinedStr():
                return
            case _:
                yield e

    def _result(self, call: ast.Call, called: Called) -> Iterator[ast.AST]:
        yield call
        for given in called.gives:
            objects = self.objects(given)
            yield from objects
            self._add(self._contents[call], objects)
        if called.world:
            yield WORLD

    def _holding(self, made: ast.AST, elements: Iterable[ast.AST]) -> ast.AST:
        for element in elements:
            self._add(self._contents[made], self._objects(element))
        return made
