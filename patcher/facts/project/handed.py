"""What a function does with a cache that it is given, beside joining to it and handing it on.

What is kept may be an object with a buffer instead of a tensor. So nothing may be asked of it that such an object does
not answer: what it is, its dtype, a part of it, what it is computed with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patcher.facts.flow.definitions import Definition, Flow
from patcher.facts.syntax.tree import FunctionNode, Syntax, last_name
from patcher.facts.syntax.written import all_parameters, integer, is_none, short
from patcher.facts.tables.wording import words

#: Words in names of what is handed from call to call.
_NAMES = frozenset("kv kvs pkv cache caches cached mems past pasts previous prev history present presents".split())
_OTHER = frozenset(
    "use length len position positions pos mask tokens seen index idx size offset start ids n num".split()
)
#: Builtins that give items of what they are given, or it again.
_GOING_THROUGH = frozenset({"zip", "enumerate", "list", "tuple", "reversed", "iter", "dict"})
#: Methods of lists and dicts: those whose result holds what they hold, and those that only put in.
_HOLDING, _FILLING = frozenset({"get", "items", "values", "copy"}), frozenset({"append", "extend", "update", "keys"})
_ASKING = frozenset({"isinstance", "type", "id", "sum", "max", "min", "sorted", "str", "any", "all", "map", "filter"})
#: What an earlier run has written for such objects.
_OURS = frozenset("_join_kept _whole _attention_over _hide_empty _last_places _as_wide _length_of".split())


class _UnknownError(Exception):
    """Something else is done with it; the message says so."""


def mishandled(function: FunctionNode, joins: Iterable[ast.Call], flow: Flow, syntax: Syntax) -> str:
    """What ``function`` does with a cache that a tensor alone can bear; "" for nothing. ``joins``: those that grow."""
    try:
        _Following(function, list(joins), flow, syntax).all()
    except _UnknownError as why:
        return str(why)
    return ""


def is_given_one(function: FunctionNode) -> bool:
    """Whether a parameter is called as a cache is."""
    return any(is_kept(p.arg) for p in all_parameters(function.args))


def is_kept(name: str) -> bool:
    """Whether a cache is called so."""
    found = frozenset(words(name))
    return bool(found & _NAMES) and not found & _OTHER


class _Following:
    def __init__(self, function: FunctionNode, joins: list[ast.Call], flow: Flow, syntax: Syntax) -> None:
        self.function, self.joins, self.flow, self.syntax = function, joins, flow, syntax
        self.seen: set[tuple[Definition, bool]] = set()

    def all(self) -> None:
        """Follow what the function is given, what it joins, and what comes back from those that it hands it to."""
        for parameter in all_parameters(self.function.args):
            if is_kept(parameter.arg) and (d := self.flow.by_node.get(parameter)) is not None:
                self._bound(d, part=False)
        for d in self.flow.by_node.values():
            if d.how == "assign" and d.value is not None and any(n in self.joins for n in ast.walk(d.value)):
                for name in self.flow.uses.get(d, ()):
                    if self._is_put(name):
                        self._follow(name, part=True)

    def _is_put(self, name: ast.Name) -> bool:
        """Whether ``name`` is put somewhere; what it is read for is another question."""
        parent = self.syntax.parents[name]
        return isinstance(parent, ast.Tuple | ast.List | ast.Dict | ast.Return) or (
            isinstance(parent, ast.Assign) and any(not isinstance(t, ast.Name) for t in parent.targets)
        )

    def _bound(self, d: Definition, part: bool) -> None:
        if (d, part) in self.seen:
            return
        self.seen.add((d, part))
        if d.name in self.flow.captured | self.flow.shared:
            raise _UnknownError(f"`{d.name}` is also used by a function in `{self.function.name}`")
        for name in self.flow.uses.get(d, ()):
            self._follow(name, part)

    def _follow(self, e: ast.expr, part: bool) -> None:
        """Look at what is done with ``e``: a cache, or with ``part`` something in it, which may be a tensor."""
        parent = self.syntax.parents[e]
        match parent:
            case ast.Compare(ops=[op, *_], comparators=others):
                if all(is_none(o) for o in others) or (isinstance(op, ast.In | ast.NotIn) and e in others):
                    return
            case ast.If() | ast.While() | ast.Assert() | ast.UnaryOp(op=ast.Not()) | ast.Expr() | ast.Return():
                return
            case ast.IfExp(test=test) if test is e:
                return
            case ast.BoolOp() | ast.IfExp() | ast.Dict() | ast.BinOp(op=ast.Add()):
                return self._follow(parent, part)
            case ast.Tuple() | ast.List():
                return self._held(e, parent, part)
            case ast.Subscript(value=value) if value is e:
                return self._item(parent, part)
            case ast.Attribute():
                return self._attribute(parent, part)
            case ast.Call() if e in parent.args:
                return self._given(parent, part)
            case ast.keyword():
                call = self.syntax.parents[parent]
                if isinstance(call, ast.Call):
                    return self._given(call, part)
            case ast.Assign(targets=targets):
                for t in targets:
                    self._stored(t, part)
                return
            case ast.AnnAssign(target=target):
                return self._stored(target, part)
            case ast.AugAssign(target=ast.Name(), op=ast.Add()) if (d := self.flow.by_node.get(parent)) is not None:
                return self._bound(d, part)
            case ast.For(target=target):
                return self._stored(target, part=True)
        raise _UnknownError(f"`{short(self.syntax.statement_of(e))}` does something else with what is kept")

    def _held(self, e: ast.expr, holder: ast.Tuple | ast.List, part: bool) -> None:
        """Go on with a tuple or list; what is joined has to be what grows."""
        call = self.syntax.parents[holder]
        if call in self.joins:
            if holder.elts and holder.elts[0] is e:
                return
            raise _UnknownError(f"`{short(call)}` does not join to what is kept alone")
        self._follow(holder, part)

    def _item(self, item: ast.Subscript, part: bool) -> None:
        index = item.slice
        if isinstance(index, ast.Tuple) or is_none(index) or isinstance(item.ctx, ast.Del):
            raise _UnknownError(f"`{short(item)}` takes a part of what is kept by its place")
        if isinstance(item.ctx, ast.Load):
            self._follow(item, part or not isinstance(index, ast.Slice))

    def _attribute(self, read: ast.Attribute, part: bool) -> None:
        around = self.syntax.parents[read]
        called = isinstance(around, ast.Call) and around.func is read
        if read.attr == "shape" and part and isinstance(around, ast.Subscript) and integer(around.slice) is not None:
            return
        if called and isinstance(around, ast.Call):
            if read.attr == "size" and part and len(around.args) == 1 and integer(around.args[0]) is not None:
                return
            if read.attr in _FILLING:
                return
            if read.attr in _HOLDING:
                return self._follow(around, part or read.attr == "get")
        raise _UnknownError(f"`{short(read)}` asks what a tensor alone has")

    def _given(self, call: ast.Call, part: bool) -> None:
        """It is an argument: of a method or a module, which are looked at by themselves; or of what goes through it."""
        name = last_name(call.func)
        if name in _OURS or name == "len" or (isinstance(call.func, ast.Attribute) and name in _FILLING):
            return
        if isinstance(call.func, ast.Name) and name in _GOING_THROUGH:
            if isinstance(loop := self._loop(call), ast.For):
                return self._looped(loop.target)
            return self._follow(call, part)
        own = [f for f in self.syntax.functions if f.name == name and self.syntax.method_of(f) is not f]
        if isinstance(call.func, ast.Name) and own and not all(is_given_one(f) for f in own):
            raise _UnknownError(f"`{short(call)}` is given what is kept")
        if not own and name[:1].islower() and self.syntax.qualified(call.func) is not None:
            raise _UnknownError(f"`{short(call)}` is given what is kept")
        if isinstance(call.func, ast.Name) and name in _ASKING:
            raise _UnknownError(f"`{short(call)}` asks what is kept what it is")
        for target in self._targets(call):
            if is_kept(target.id) and (d := self.flow.by_node.get(target)) is not None:
                self._bound(d, part)

    def _loop(self, e: ast.expr) -> ast.AST:
        """The loop that goes through ``e``, also in pairs with something else."""
        parent = self.syntax.parents[e]
        while isinstance(parent, ast.Call) and last_name(parent.func) in _GOING_THROUGH:
            e, parent = parent, self.syntax.parents[parent]
        return parent if isinstance(parent, ast.For) and parent.iter is e else e

    def _looped(self, target: ast.expr) -> None:
        """What a loop over several things binds: the names for what is kept are called so."""
        for n in ast.walk(target):
            if isinstance(n, ast.Name) and is_kept(n.id) and (d := self.flow.by_node.get(n)) is not None:
                self._bound(d, part=True)

    def _targets(self, call: ast.Call) -> Iterator[ast.Name]:
        statement = self.syntax.parents[call]
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            yield from (n for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))

    def _stored(self, target: ast.expr, part: bool) -> None:
        match target:
            case ast.Name() if (d := self.flow.by_node.get(target)) is not None:
                self._bound(d, part)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for e in elements:
                    self._stored(e, part=True)
            case ast.Subscript():
                return
            case _:
                raise _UnknownError(f"`{short(self.syntax.statement_of(target))}` keeps it elsewhere, too")
