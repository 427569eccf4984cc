"""Which functions of the project a call may run, where the class of the receiver is known or plain to see.

The answers are for following a value on its way. They are no proof that nothing else is called.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode, dotted, last_name
from patcher.facts.values.types import Kind

if TYPE_CHECKING:
    from patcher.facts import Facts

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Methods of a module that return the module.
_SAME = frozenset("to cuda cpu eval train half float double bfloat16 requires_grad_".split())


class Callees(Analysis):
    """Calls of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._here: dict[str, FunctionNode] | None = None

    def of(self, call: ast.Call) -> list[str]:
        """Dotted functions and methods: ``self.attn(x)`` is "module.Attention.forward", or what overrides that."""
        func = call.func
        if isinstance(func, ast.Attribute):
            owner = self.class_of(func.value)
            found = self.project.methods(owner, func.attr) if owner is not None else []
            if not found and self.here(f"{owner}.{func.attr}") is not None:
                found = [f"{owner}.{func.attr}"]  # new since the project was read: nothing else has that name
            if found:
                return found
        if (called := self.class_of(func)) is not None:
            return self.project.methods(called, "forward" if self.project.is_module_class(called) else "__call__")
        what = self.syntax.qualified(func)
        if what is None and isinstance(func, ast.Name):
            what = f"{self.module}.{func.id}"
        return [what] if what is not None and self.project.function(what) is not None else []

    def here(self, name: str) -> FunctionNode | None:
        """The definition of that dotted function, when it is in this module."""
        if self._here is None:
            named = ((self.syntax.qualname(f), f) for f in self.syntax.functions)
            self._here = {f"{self.module}.{qualname}": f for qualname, f in named if qualname is not None}
        return self._here.get(name)

    def bodies(self, call: ast.Call) -> list[FunctionNode | None]:
        """The definitions of what ``call`` may run, None for one that is elsewhere; that of a local function, too."""
        names = self.of(call)
        if not names and isinstance(call.func, ast.Name):
            local = [d.node for d in self.inference.definitions(call.func)]
            return [f for f in local if isinstance(f, _FUNCTIONS)] if len(local) == 1 else []
        return [self.here(name) for name in names]

    def given(self, d: Definition, *, seen: bool = False) -> list[ast.expr]:
        """What calls in this file that name its function, or one of that name, hand over for the parameter ``d``.

        ``seen``: only calls of which it can be seen that they run that function. Those that can be seen to run
        another never count.
        """
        arguments = self.syntax.parents.get(d.node)
        function = self.syntax.parents.get(arguments) if isinstance(arguments, ast.arguments) else None
        if d.how != "parameter" or not isinstance(function, _FUNCTIONS):
            return []
        found: list[ast.expr] = []
        for call in self._calls.get(function.name, ()):
            names = self.of(call)
            if (seen or names) and function not in map(self.here, names):
                continue
            found += [e for argument, e in self._mapped(call, function).items() if argument is d.node]
        return found

    def handed(self, call: ast.Call, function: FunctionNode) -> dict[ast.AST, ast.expr] | None:
        """What ``call``, which runs ``function``, hands over for its parameters; None where that cannot be seen."""
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            return None
        return self._mapped(call, function)

    def _mapped(self, call: ast.Call, function: FunctionNode) -> dict[ast.AST, ast.expr]:
        """The parameters of ``function``, each with what ``call`` hands over for it."""
        positional = [*function.args.posonlyargs, *function.args.args]
        static = any(dotted(decorator) == "staticmethod" for decorator in function.decorator_list)
        if self.syntax.method_of(function) is function and not static:
            positional = positional[1:]
        named = {a.arg: a for a in (*positional, *function.args.kwonlyargs)}
        given: dict[ast.AST, ast.expr] = dict(zip(positional, call.args, strict=False))
        return given | {named[k.arg]: k.value for k in call.keywords if k.arg in named}

    @cached_property
    def _calls(self) -> dict[str, list[ast.Call]]:
        """The last name of what is called -> the calls."""
        found: defaultdict[str, list[ast.Call]] = defaultdict(list)
        for call in self.syntax.by_type[ast.Call]:
            found[last_name(call.func)].append(call)
        return found

    def class_of(self, e: ast.expr, seen: frozenset[object] = frozenset()) -> str | None:
        """The dotted class of the project that ``e`` is an instance of, as far as can be seen.

        ``seen``: definitions and attributes that are being asked about already.
        """
        value = self.inference.of(e)
        if value.kind is Kind.MODULE and self.project.known_class(value.module) is not None:
            return value.module
        match e:
            case ast.Attribute(value=owner, attr=attr):
                found = self.class_of(owner, seen)
                summary = self.project.known_class(found) if found is not None else None
                return self._known(dict(summary.built).get(attr)) if summary is not None else None
            case ast.Subscript(value=holder):
                return self._element(holder, seen)
            case ast.Call(func=ast.Attribute(value=module)) if self.is_same(e):
                return self.class_of(module, seen)
            case ast.Call():
                return self._built(e)
            case ast.Name():
                definitions = self.inference.definitions(e) - seen
                classes = {self._defined(d, seen | definitions) for d in definitions}
                return classes.pop() if len(classes) == 1 else None
        return None

    def is_same(self, call: ast.Call) -> bool:
        """Whether ``call`` is of a method that gives back the module that it is called on."""
        return isinstance(call.func, ast.Attribute) and call.func.attr in _SAME

    def _defined(self, d: Definition, seen: frozenset[object]) -> str | None:
        if d.how == "parameter" and isinstance(d.node, ast.arg):
            return self._parameter(d.node)
        if d.how == "iteration" and d.value is not None:
            items, path = self._source(d.value, d.path)
            return self._element(items, seen) if items is not None and not path else None
        value, path = d.part
        if d.how != "assign" or value is None or path:
            return None
        return self._built(value) or self.class_of(value, seen)

    def _parameter(self, argument: ast.arg) -> str | None:
        """The class of the instance for ``self``, or the one that the parameter is annotated with."""
        method = self.syntax.parents[self.syntax.parents[argument]]
        cls = self.syntax.parents.get(method)
        if isinstance(cls, ast.ClassDef) and isinstance(method, _FUNCTIONS) and self_name(method) == argument.arg:
            return self._known(f"{self.module}.{self.syntax.qualname(cls)}")
        for e in ast.walk(argument.annotation) if argument.annotation is not None else ():
            if isinstance(e, ast.Constant) and isinstance(e.value, str) and e.value.isidentifier():
                e = ast.Name(e.value)
            if isinstance(e, (ast.Name, ast.Attribute)) and (found := self._named(e)) is not None:
                return found
        return None

    def _element(self, e: ast.expr, seen: frozenset[object] = frozenset()) -> str | None:
        """The class of what the list ``e`` holds, when it is an attribute that is filled with instances of one."""
        own = self.inference.instance_attribute(e)
        if own is None or own in seen:
            return None
        stores, seen = self.inference.class_facts(own[0]).stores.get(own[1], []), seen | {own}
        found = {self._held(s.value, seen) for s in stores if s.value is not None}
        if found == {None}:
            found = {self._built(item) for _, item in self.inference.class_facts(own[0]).appended.get(own[1], ())}
        return found.pop() if len(found) == 1 else None

    def _held(self, e: ast.expr, seen: frozenset[object]) -> str | None:
        match e:
            case ast.Starred(value=inner):
                return self._held(inner, seen)
            case ast.Call(args=[ast.expr() as inner]) if self._built(e) is None:
                return self._held(inner, seen)
            case ast.List(elts=[first, *_]):
                return self._built(first)
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                return self._built(element) or self.class_of(element, seen)
        return None

    def _built(self, e: ast.expr) -> str | None:
        return self._named(e.func) if isinstance(e, ast.Call) else None

    def class_named(self, e: ast.expr) -> str | None:
        """The dotted class of the project that the name ``e`` stands for."""
        return self._named(e)

    def _named(self, e: ast.expr) -> str | None:
        text = dotted(e)
        imported = self.syntax.imports.get((text or "").partition(".")[0])
        if text is None:
            return None
        rest = text.partition(".")[2]
        if not imported and (other := self._other_names.get(text)) is not None:
            return self._named(other)
        return self._known(self.syntax.package.attribute(imported, rest) if imported else f"{self.module}.{text}")

    @cached_property
    def _other_names(self) -> dict[str, ast.expr]:
        """Names that the file binds once, at its top, to something that is imported: ``Cache = util.Cache``."""
        bound = Counter(n.id for n in self.syntax.by_type[ast.Name] if isinstance(n.ctx, ast.Store))
        return {
            target.id: value
            for s in self.syntax.tree.body
            if isinstance(s, ast.Assign)
            for target, value in ((s.targets[0], s.value),)
            if isinstance(target, ast.Name) and len(s.targets) == 1 and bound[target.id] == 1
            if dotted(value) is not None and self.syntax.qualified(value) is not None
        }

    def _known(self, name: str | None) -> str | None:
        """``name`` when it is a class of the project; a class in a function is found by its own name."""
        if name is None or self.project.known_class(name) is not None:
            return name
        if name.rpartition(".")[0] != self.module:
            return None
        classes = self.syntax.by_type[ast.ClassDef]
        found = [self.syntax.qualname(c) for c in classes if c.name == name.rpartition(".")[2]]
        return f"{self.module}.{found[0]}" if len(found) == 1 else None

    def iterated(self, d: Definition) -> ast.expr | None:
        """What the items come from that a loop binds by ``d``: ``blocks`` of ``for i, b in enumerate(blocks)``."""
        items, path = self._source(d.value, d.path) if d.how == "iteration" and d.value is not None else (None, ())
        return items if not path else None

    def _source(self, e: ast.expr, path: tuple[int, ...]) -> tuple[ast.expr | None, tuple[int, ...]]:
        """What the items of an iteration over ``e`` come from, for the part at ``path`` of each; what is left of it."""
        while True:
            match e, path:
                case ast.Call(func=ast.Name(), args=[inner, *more]), _:
                    name = self.syntax.builtin(e)
                    if name == "enumerate" and path[:1] == (1,):
                        e, path = inner, path[1:]
                    elif name == "zip" and path and path[0] < len(more) + 1:
                        e, path = e.args[path[0]], path[1:]
                    elif name in ("reversed", "list", "tuple") and not more:
                        e = inner
                    else:
                        return None, path
                case ast.Call(func=ast.Attribute(value=inner, attr="items" | "named_children"), args=[]), (1, *rest):
                    e, path = inner, tuple(rest)
                case ast.Call(func=ast.Attribute(value=inner, attr="values" | "children"), args=[]), _:
                    e = inner
                case ast.Subscript(value=inner, slice=ast.Slice()), _:
                    e = inner
                case ast.Call(), _:
                    return None, path
                case _:
                    return e, path
