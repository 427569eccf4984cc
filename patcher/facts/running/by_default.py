"""What an expression holds as long as nobody sets a flag: parameters at their defaults, attributes as they are made."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.project.module_flags import ENVIRONMENT
from patcher.facts.running.callers import Callers
from patcher.facts.syntax.classes import INITIALISERS, parameter_at
from patcher.facts.syntax.tree import FunctionNode, dotted, last_name
from patcher.facts.syntax.written import defaults, is_none, short
from patcher.facts.tables import host_api
from patcher.facts.values.callees import Callees
from patcher.facts.values.module_values import imported

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPARING: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CONVERTING: dict[str, Callable[[Any], object]] = {"bool": bool, "int": int, "str": str, "float": float}
_OF_TEXT = frozenset("lower upper strip".split())
#: How far a value is followed through names.
_DEEPEST = 8


@dataclass(frozen=True)
class Default:
    """``value``, unless somebody sets one of ``flags`` (as the source calls them; none: it is a constant).

    ``unset``: arguments that no call of the project gives, and that would have to be given as well.
    """

    value: object
    flags: frozenset[str] = frozenset()
    unset: frozenset[str] = frozenset()


class ByDefault(Analysis):
    """Flags of one module. Arguments without a default, configuration and data are not known."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._known: dict[ast.expr, Default | None] = {}
        self._open: set[ast.expr] = set()
        self._rounds = 0

    def of(self, e: ast.expr, depth: int = 0) -> Default | None:
        """What ``e`` holds where it stands; None when that is not known."""
        if e in self._known or e in self._open or depth >= _DEEPEST:
            return self._known.get(e)
        self._open.add(e)
        before = self._rounds
        found = self._of(e, depth + 1)
        self._open.discard(e)
        if before == self._rounds or not self._open:  # else it may hold only for what is being worked out
            self._known[e] = found
        return found

    def _of(self, e: ast.expr, depth: int) -> Default | None:
        match e:
            case ast.Constant(value=value):
                return Default(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                held = self.of(operand, depth)
                return held and Default(not held.value, held.flags, held.unset)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                held = self.of(test, depth)
                if held is None:
                    return self._either([body, orelse], depth)
                taken = self.of(body if held.value else orelse, depth)
                return taken and _joined(taken.value, [held, taken])
            case ast.BoolOp(op=op, values=values):
                return self._chain([self.of(v, depth) for v in values], isinstance(op, ast.Or))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARING:
                return self._worked_out(_COMPARING[type(op)], [left, right], depth)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return self._worked_out(lambda *found: found, parts, depth)
            case ast.Name():
                return self._name(e, depth)
            case ast.Attribute():
                return self._attribute(e, depth)
            case ast.Call(func=func, args=args, keywords=[]):
                return self._call(func, args, depth) or self._chosen(e, depth)
        return None

    def _chain(self, parts: list[Default | None], until: bool) -> Default | None:
        """``and`` ends with what is false, ``or`` (``until``) with what is true, wherever that stands."""
        ends = [p for p in parts if p is not None and bool(p.value) is until]
        if ends:
            return Default(until, ends[0].flags, ends[0].unset)
        known = [p for p in parts if p is not None]
        if len(known) < len(parts):
            return None
        return _joined(not until, known)

    def _worked_out(self, how: Callable[..., object], parts: Iterable[ast.expr], depth: int) -> Default | None:
        held = [self.of(p, depth) for p in parts]
        known = [h for h in held if h is not None]
        if len(known) < len(held):
            return None
        try:
            value = how(*(h.value for h in known))
        except (TypeError, ValueError):
            return None
        return _joined(value, known)

    def _call(self, func: ast.expr, args: list[ast.expr], depth: int) -> Default | None:
        what = imported(self.syntax, func) or dotted(func)  # also one that is imported in the function
        if what in ENVIRONMENT and args:
            held = self.of(args[1], depth) if len(args) > 1 else Default(None)
            named = frozenset({f"the environment variable {short(args[0])}"})
            return held and Default(held.value, held.flags | named, held.unset)
        match func, args:
            case ast.Name(id=name), [part] if name in _CONVERTING and self.syntax.is_builtin(func):
                return self._worked_out(_CONVERTING[name], [part], depth)
            case ast.Attribute(value=value, attr=name), [] if name in _OF_TEXT:
                return (
                    self._worked_out(operator.methodcaller(name), [value], depth)
                    if self._is_text(value, depth)
                    else None
                )
            case ast.Attribute(attr="isEnabledFor"), [level] if last_name(level) in ("DEBUG", "INFO"):
                return Default(False, frozenset({"the logger's level"}))
        return None

    def _chosen(self, call: ast.Call, depth: int) -> Default | None:
        """What a function of the project hands back of its arguments, where all that it may be are alike."""
        functions = [self.project.function(name) for name in self.facts.ask(Callees).of(call)]
        if len(functions) != 1 or functions[0] is None:
            return None
        given = dict(zip(functions[0].positional, call.args, strict=False))
        chosen = functions[0].chosen
        return self._either([given[name] for name in sorted(chosen)], depth) if chosen <= given.keys() else None

    def _either(self, parts: list[ast.expr], depth: int) -> Default | None:
        """One of ``parts``, which are all true or all false; an argument that is left out beside a flag is one, too."""
        held = [self.of(part, depth) for part in parts]
        flags = any(h is not None and isinstance(h.value, bool) for h in held)
        held = [h or (self._left_out(part) if flags else None) for h, part in zip(held, parts, strict=True)]
        known = [h for h in held if h is not None]
        if not known or len(known) < len(held) or len({bool(h.value) for h in known}) != 1:
            return None
        return _joined(known[0].value, known)

    def _left_out(self, e: ast.expr) -> Default | None:
        """None, where ``e`` is a parameter that is None by default."""
        found = list(self.inference.definitions(e)) if isinstance(e, ast.Name) else []
        if len(found) != 1 or found[0].how != "parameter" or not isinstance(found[0].node, ast.arg):
            return None
        function = self.syntax.parents[self.syntax.parents[found[0].node]]
        default = defaults(function.args).get(found[0].name) if isinstance(function, _FUNCTIONS) else None
        left_out = default is not None and is_none(default)
        return Default(None, frozenset({f"`{found[0].name}`"})) if left_out else None

    def _is_text(self, e: ast.expr, depth: int) -> bool:
        held = self.of(e, depth)
        return held is not None and isinstance(held.value, str)

    # --- names and attributes ---------------------------------------------------------------------------------------

    def _name(self, name: ast.Name, depth: int) -> Default | None:
        found = list(self.inference.definitions(name))
        if not found:
            return self._global(name, depth)
        held = [self._bound(d, depth) for d in found]
        known = [h for h in held if h is not None]
        if len(known) < len(held) or len({bool(h.value) for h in known}) != 1:
            return None
        return _joined(known[0].value, known)

    def _bound(self, d: Definition, depth: int) -> Default | None:
        if d.how == "parameter" and isinstance(d.node, ast.arg):
            function = self.syntax.parents[self.syntax.parents[d.node]]
            return self._parameter(function, d.node, depth) if isinstance(function, _FUNCTIONS) else None
        value, path = d.part
        return self.of(value, depth) if d.how == "assign" and value is not None and not path else None

    def _global(self, name: ast.Name, depth: int) -> Default | None:
        """What the module binds once, at its top level, or what another one of the project does."""
        if name.id in self.syntax.imports:
            what = imported(self.syntax, name) or ""
            held = False if what == "typing.TYPE_CHECKING" else self.project.flag(what)
            return None if held is None else Default(held, frozenset({f"`{name.id}`"}))
        if (held := self.project.flag(f"{self.module}.{name.id}")) is not None:
            return Default(held, frozenset({f"`{name.id}`"}))
        if name.id in self.project.foreign_stores or any(name.id in g.names for g in self.syntax.by_type[ast.Global]):
            return None
        stores = [n for n in self.syntax.by_type[ast.Name] if n.id == name.id and isinstance(n.ctx, ast.Store)]
        stores = [n for n in stores if self.syntax.function_of(n) is None]
        match [self.syntax.parents[n] for n in stores]:
            case [ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=ast.expr() as value)]:
                made = self.of(value, depth)
                flags = made.flags if made is not None else frozenset()
                return made and Default(made.value, flags or frozenset({f"`{name.id}`"}), made.unset)
        return None

    def _parameter(self, function: FunctionNode, parameter: ast.arg, depth: int) -> Default | None:
        """The default of a flag: a bool, or None where a bool is expected. Data that may be left out is no flag."""
        default = defaults(function.args).get(parameter.arg)
        if default is None:
            return self._handed_on(function, parameter, depth)
        said = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
        flag = isinstance(default, ast.Constant) and isinstance(default.value, bool)
        if not flag and not (is_none(default) and "bool" in said.replace("boolean", "")):
            return self._never_given(function, parameter, depth) if is_none(default) else None
        for argument in self._given(function, parameter):
            if argument in self._open:  # made of the parameter itself: it gives nothing new
                self._rounds += 1
                continue
            held = self.of(argument, depth)
            if held is None or bool(held.value) is not bool(default.value):  # type: ignore[attr-defined]
                return None
        return Default(default.value, frozenset({f"`{parameter.arg}`"}))  # type: ignore[attr-defined]

    def _never_given(self, function: FunctionNode, parameter: ast.arg, depth: int) -> Default | None:
        """None, where each call of ``function`` in the project leaves ``parameter`` out, or gives None for it."""
        given = self.facts.ask(Callers).given(function, parameter)
        held = [Default(None) if e is None else self.of(e, depth) for e in given]
        if not held or any(h is None or h.value is not None for h in held):
            return None
        return Default(None, unset=frozenset({f"`{parameter.arg}`"}))

    def _handed_on(self, function: FunctionNode, parameter: ast.arg, depth: int) -> Default | None:
        """What all calls of ``function`` give for ``parameter``, where they are known and alike."""
        calls = self.inference.calls_of(function)
        held = [self.of(a, depth) for a in self._given(function, parameter)] if calls else []
        known = [h for h in held if h is not None]
        if len(held) != len(calls) or len(known) < len(held) or len({bool(h.value) for h in known}) != 1:
            return None
        return _joined(known[0].value, known)

    def _given(self, function: FunctionNode, parameter: ast.arg) -> Iterator[ast.expr]:
        """What calls in this file give for ``parameter``, as far as names tell which function they call."""
        cls = self.syntax.class_of(function) if self.syntax.method_of(function) is function else None
        called = function.name
        if cls is not None and function.name in INITIALISERS:
            called = cls.name
        anything = called in ("forward", "__call__")
        for call in self.syntax.by_type[ast.Call]:
            named = last_name(call.func) == called
            if named or anything:
                yield from (k.value for k in call.keywords if k.arg == parameter.arg)
            if named:
                for i, argument in enumerate(call.args):
                    if parameter_at(function, i, cls is not None) is parameter:
                        yield argument

    def _attribute(self, e: ast.Attribute, depth: int) -> Default | None:
        own = self.inference.instance_attribute(e)
        if own is None:
            return self._of_configuration(e)
        stores = self.class_facts(own[0]).stores.get(own[1], [])
        first = [s for s in stores if s.method is not None and s.method.name in INITIALISERS]
        first = first or [s for s in stores if s.how == "declared"]
        held = [self.of(s.value, depth) if s.value is not None and s.how != "other" else None for s in first]
        values = {bool(h.value) for h in held if h is not None}
        if not held or None in held or len(values) != 1:
            return None
        known = [h for h in held if h is not None]
        later = [s for s in stores if s not in first and s.how != "declared"]
        flag = all(isinstance(h.value, bool) for h in known)
        if any(h.value is None for h in known) or any(not flag or self.facts.reached(s.statement) for s in later):
            return None  # it is filled in, or counted: no flag
        flags = frozenset().union(*(h.flags for h in known)) or frozenset({f"`{ast.unparse(e)}`"})
        return Default(known[0].value, flags)

    def _of_configuration(self, e: ast.Attribute) -> Default | None:
        """What a configuration of transformers holds when nobody asks for more: ``self.config.output_attentions``."""
        held = host_api.OF_CONFIGURATIONS.get(e.attr)
        named = (last_name(e.value) or "").endswith("config")
        if held is None or not named or not any(i.partition(".")[0] == "transformers" for i in self._modules):
            return None
        return Default(held, frozenset({f"`{ast.unparse(e)}`"}))

    @cached_property
    def _modules(self) -> frozenset[str]:
        """What the file imports, or out of what."""
        return frozenset(what for _, what, _ in self.syntax.all_imports)


def _joined(value: object, parts: Iterable[Default]) -> Default:
    """``value``, which is so as long as all of ``parts`` are."""
    known = list(parts)
    flags = frozenset[str]().union(*(p.flags for p in known))
    return Default(value, flags, frozenset[str]().union(*(p.unset for p in known)))
