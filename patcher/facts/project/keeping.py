"""Where the objects that one module builds, or is given, end up: in attributes, in globals, with other functions."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache

from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted
from patcher.facts.tables.wording import suggests_configuration

_configures = lru_cache(maxsize=4096)(suggests_configuration)
Owner = Callable[[ast.AST], tuple[ast.AST | None, str | None]]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ADDING = frozenset("append add insert setdefault update appendleft extend register".split())
_HOLDING = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.IfExp, ast.BoolOp, ast.Starred, ast.Await, ast.NamedExpr)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)
_PLAIN = frozenset("int float bool str Tensor LongTensor FloatTensor BoolTensor device dtype".split())
_BUILTINS = frozenset(dir(builtins))
_HOLDING_KINDS = frozenset((ast.Call, ast.Name, *_HOLDING, *_COMPREHENSIONS, ast.DictComp))
_WORTH = _HOLDING_KINDS | {ast.Subscript}
_CONTAINERS = frozenset("list tuple set dict frozenset zip map deque OrderedDict defaultdict".split())
#: A variable of a function, before it is known what it holds.
_Local = tuple[ast.AST, str]
_Node = str | _Local


class Keeping:
    """One look at a module.

    ``flows``: (from, to), both in a small language of places. From: a dotted class (an instance of it), ".f" (what
    functions named ``f`` return), "=module.NAME" (a global), "module.Class(x" and ".f(x" (the parameter ``x``, a name
    or a position, of a class or of functions of that name). To: any of these, where "(x" is an argument;
    "@module.Class" (an attribute of such an object, "@?" of some object); "<module.f" (a global that ``f`` reads).
    """

    def __init__(self, syntax: Syntax, module: str, imports: Mapping[str, str], owner: Owner) -> None:
        self.syntax = syntax
        self.module = module
        self.imports = imports
        self.owner = owner
        self.foreign = {name for name, what in imports.items() if what.partition(".")[0] == "torch"}
        self._parameters: dict[ast.AST, dict[str, ast.arg]] = {}
        self._flows: set[tuple[_Node, str | _Local]] = set()
        self._globals: set[str] = set()
        #: Functions that have others in them.
        self._outer = {
            owner(f)[0]
            for kind in _FUNCTIONS
            for f in syntax.by_type[kind]
            if not isinstance(syntax.parents[f], (ast.ClassDef, ast.Module))
        }
        # Most lines of a model are `x = self.f(y)`, arithmetic and `self.x = nn.F(...)`: they are passed over early.
        assigned = [n for n in syntax.by_type[ast.Assign] if type(n.value) in _WORTH]  # type: ignore[attr-defined]
        assigned += syntax.by_type[ast.AnnAssign]
        again = []
        for n in assigned:
            value = n.value  # type: ignore[attr-defined]
            target = n.targets[0] if type(n) is ast.Assign else n.target  # type: ignore[attr-defined]
            if type(value) is ast.Call and type(target) is ast.Name:
                if self._may_make(value):
                    self._assign(n, True)  # type: ignore[arg-type]
                if type(n) is ast.Assign and len(n.targets) == 1 and type(syntax.parents[n]) is not ast.ClassDef:
                    continue
            elif type(n) is ast.Assign and type(value) is ast.Call and type(value.func) is ast.Attribute:
                root = value.func.value
                if type(root) is ast.Name and root.id in self.foreign:
                    continue
            again.append(n)
        self._note_variables()
        for n in again:
            self._assign(n, False)  # type: ignore[arg-type]
        self._note_variables()
        for n in syntax.by_type[ast.Call]:
            if n.args or n.keywords:  # type: ignore[attr-defined]
                self._call(n)  # type: ignore[arg-type]
        for n in syntax.by_type[ast.Return]:
            assert isinstance(n, ast.Return)
            if n.value is not None and self._worth(n.value, type(n.value) is ast.Call):
                self._return(n.value)
        if self._globals:
            self._global_reads()
        self.flows = frozenset(self._without_variables())

    # --- where something goes ---------------------------------------------------------------------------------------

    def _note_variables(self) -> None:
        """Variables that hold what a class or a function made, and their names."""
        self._made = {to for _, to in self._flows if isinstance(to, tuple) or to[0] == "="}
        self._variables = {to[1] for to in self._made if isinstance(to, tuple)} | self._globals

    def _assign(self, n: ast.Assign | ast.AnnAssign, named: bool) -> None:
        """An assignment to a name of a function or a module (``named``), or to anything else."""
        for target in n.targets if isinstance(n, ast.Assign) else (n.target,):
            item = isinstance(target, ast.Subscript)  # which does not bind the name
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Name):
                inside = isinstance(self.syntax.parents[n], ast.ClassDef)
                if not inside and n.value is not None and (named or self._worth(n.value, False)):
                    place = self._element_of_global(target) if item else None
                    self._flow(self._held(n.value), place or self._variable(target, stored=not item))
                if named or not inside:
                    continue
            elif named or not isinstance(target, ast.Attribute):
                continue
            held = list(self._held(n.value, deep=True)) if n.value is not None else []
            if isinstance(n, ast.AnnAssign):
                held += self._named(n.annotation)
            if held and isinstance(target, ast.Attribute):
                self._flow(held, f"@{self._class_of(target.value)}")
            elif held:
                self._flow(held, f"@{self.module}.{self.syntax.qualname(self.syntax.parents[n])}")  # type: ignore[arg-type]

    def _call(self, n: ast.Call) -> None:
        func = n.func
        kind = type(func)
        if kind is ast.Attribute:
            last = func.attr  # type: ignore[attr-defined]
            value = func.value  # type: ignore[attr-defined]
            if type(value) is ast.Name and value.id in self.foreign:
                return
        elif kind is ast.Name:
            last = func.id  # type: ignore[attr-defined]
            if last in self.foreign:
                return
        else:
            return
        if last in _ADDING and isinstance(func, ast.Attribute):
            self._add(func.value, n)
            return
        if last in ("setattr", "__setattr__"):
            if len(n.args) == 3:
                self._flow(self._held(n.args[2], deep=True), f"@{self._class_of(n.args[0])}")
            elif len(n.args) == 2 and last == "__setattr__":
                self._flow(self._held(n.args[1], deep=True), f"@{self._class_of(n.func)}")
        builds = last == "cls" or last == "__init__" or (last[0].isupper() and _builds(func))
        for i, e in enumerate(n.args):
            if (type(e) is not ast.Name or builds or e.id in self._variables) and self._worth(e, builds):
                self._give(e, func, last, "*" if isinstance(e, ast.Starred) else str(i))
        for k in n.keywords:
            e = k.value
            if (type(e) is not ast.Name or builds or e.id in self._variables) and self._worth(e, builds):
                self._give(e, func, last, k.arg or "*")

    def _worth(self, e: ast.expr, builds: bool) -> bool:
        """Whether the argument ``e`` is followed: parameters only into classes, all else would be endless."""
        kind = type(e)
        if kind not in _HOLDING_KINDS:
            return False
        if kind is ast.Name:
            return builds or (e.id in self._variables and self._variable(e) in self._made)  # type: ignore[attr-defined,arg-type]
        if kind is ast.Call:
            return self._may_make(e) if builds else _builds(e.func)  # type: ignore[attr-defined]
        if kind in _COMPREHENSIONS:
            return builds or self._worth(e.elt, False)  # type: ignore[attr-defined]
        return kind in _HOLDING and (builds or any(self._worth(part, False) for part in ast.iter_child_nodes(e)))  # type: ignore[arg-type]

    def _give(self, e: ast.expr, func: ast.expr, last: str, place: str) -> None:
        """``e`` is an argument of a call of ``func``."""
        sources = list(self._held(e))
        if sources:
            for callee in self._callees(func, last):
                self._flow(sources, f"{callee}({place}")

    def _add(self, container: ast.expr, n: ast.Call) -> None:
        """``container.append(...)`` and the like."""
        while isinstance(container, ast.Subscript):
            container = container.value
        for e in n.args:
            if isinstance(container, ast.Attribute):
                self._flow(self._held(e, deep=True), f"@{self._class_of(container.value)}")
            elif isinstance(container, ast.Name) and isinstance(e, (ast.Call, ast.Name)):
                variable = self._element_of_global(container) or self._variable(container)
                self._flow(self._held(e), variable)
                if isinstance(variable, tuple):
                    self._variables.add(variable[1])

    def _return(self, value: ast.expr) -> None:
        held = list(self._held(value))
        function = self.syntax.function_of(value) if held else None
        if function is not None:
            self._flow(held, f".{function.name}")

    def _callees(self, func: ast.expr, last: str) -> Iterator[str]:
        text = dotted(func)
        cls = self.syntax.class_of(func)
        if last == "__init__":  # of a base
            if cls is not None:
                yield from (self._resolved(base) for b in cls.bases if (base := dotted(b)) is not None)
        elif last == "cls" and cls is not None:
            yield f"{self.module}.{self.syntax.qualname(cls)}"
        elif text is not None and _builds(func):
            yield self._resolved(text)
        else:
            yield f".{last}"

    def _global_reads(self) -> None:
        for n in self.syntax.by_type[ast.Name]:
            assert isinstance(n, ast.Name)
            if n.id in self._globals and isinstance(n.ctx, ast.Load):
                function, _ = self.owner(n)
                if isinstance(function, _FUNCTIONS) and not self._is_local(n, function):
                    self._flows.add((f"={self.module}.{n.id}", f"<{self.module}.{self.syntax.qualname(function)}"))

    def _flow(self, sources: Iterator[_Node] | list[_Node], to: str | _Local) -> None:
        for source in sources:
            if source != to:
                self._flows.add((source, to))

    # --- what an expression may hold --------------------------------------------------------------------------------

    def _held(self, e: ast.expr, deep: bool = False) -> Iterator[_Node]:
        """What ``e`` may be or have in it; ``deep``: also what a call is given, for its result may keep it."""
        if isinstance(e, ast.Call):
            func = e.func
            last = _last(func)
            if isinstance(func, ast.Name):
                if func.id in self.foreign:
                    return
                if last[:1].isupper():
                    yield self._resolved(last)
                elif last == "cls":
                    yield from (c for c in self._callees(func, last) if c[0] != ".")
                elif last in _CONTAINERS:
                    deep = True
                elif last:
                    yield f".{last}"
            elif isinstance(func, ast.Attribute):
                if isinstance(func.value, ast.Name) and func.value.id in self.foreign:
                    return  # a module of torch: what it is given are modules too
                if _builds(func):
                    yield self._resolved(dotted(func) or "?")
                else:
                    yield f".{last}"
                    if _last(func.value)[:1].isupper():  # a class method
                        yield self._resolved(dotted(func.value) or "?")
            if deep:
                for argument in (*e.args, *(k.value for k in e.keywords)):
                    if isinstance(argument, (ast.Call, *_HOLDING, *_COMPREHENSIONS)):
                        yield from (s for s in self._held(argument, deep) if not (isinstance(s, str) and s[0] == "."))
                    elif isinstance(argument, ast.Name) and last in _CONTAINERS:
                        yield self._variable(argument)
        elif isinstance(e, ast.Name):
            if e.id not in self.foreign and not _configures(e.id):
                variable = self._variable(e)
                if not (isinstance(variable, tuple) and variable[1][0] == "(" and self._is_plain(variable)):
                    yield variable
        elif isinstance(e, _HOLDING):
            for part in ast.iter_child_nodes(e):
                if isinstance(part, ast.expr):
                    yield from self._held(part, deep)
        elif isinstance(e, _COMPREHENSIONS):
            yield from self._held(e.elt, deep)
            yield from self._held(e.generators[0].iter, deep)
        elif isinstance(e, ast.DictComp):
            yield from self._held(e.value, deep)
        elif isinstance(e, ast.Subscript) and isinstance(e.value, ast.Name):
            yield self._variable(e.value)

    def _variable(self, n: ast.Name, stored: bool = False) -> str | _Local:
        """What the name ``n`` is: a parameter, a variable of a function, or a global."""
        if not stored and (found := self._parameter(n)) is not None:
            return found
        function, _ = self.owner(n)
        if function is None or n.id in self._declared_global:
            if stored:
                self._globals.add(n.id)
            return f"={self.imports.get(n.id) or f'{self.module}.{n.id}'}"
        if not stored and n.id in self.imports:
            return f"={self.imports[n.id]}"
        return function, n.id

    def _element_of_global(self, n: ast.Name) -> str | None:
        """The global that ``n`` is, whose element a function assigns."""
        function, _ = self.owner(n)
        known = self.syntax.binds(self.syntax.tree, n.id)
        if not known or (isinstance(function, _FUNCTIONS) and self._is_local(n, function)):
            return None
        self._globals.add(n.id)
        return f"={self.module}.{n.id}"

    def _parameter(self, n: ast.Name) -> _Local | None:
        function = self.owner(n)[0]
        if function is None:
            return None
        if n.id in self._of(function):  # type: ignore[arg-type]
            return function, f"({n.id}"
        if function in self._outer:
            for f in self.syntax.ancestors(n):
                if isinstance(f, _FUNCTIONS) and n.id in self._of(f):
                    return f, f"({n.id}"
        return None

    def _may_make(self, e: ast.expr) -> bool:
        """Whether ``e`` may be or hold an object that a class or a function makes, as far as its form tells."""
        if not isinstance(e, ast.Call):
            return isinstance(e, (ast.Name, *_HOLDING, *_COMPREHENSIONS, ast.DictComp))
        func = e.func
        if isinstance(func, ast.Name):
            return func.id in _CONTAINERS or not (func.id in self.foreign or func.id in _BUILTINS)
        if not isinstance(func, ast.Attribute):
            return False
        if isinstance(func.value, ast.Name):
            name = func.value.id
            return name not in self.foreign and (name[:1].isupper() or func.attr[:1].isupper())
        return isinstance(func.value, ast.Attribute) and (func.attr[:1].isupper() or func.value.attr[:1].isupper())

    def _of(self, f: FunctionNode) -> dict[str, ast.arg]:
        if f not in self._parameters:
            arguments = f.args
            found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            self._parameters[f] = {a.arg: a for a in found if a is not None}
        return self._parameters[f]

    def _class_of(self, e: ast.expr) -> str:
        """The dotted class of the object ``e``, "?" when that is not known."""
        if isinstance(e, ast.Attribute) and e.attr == "__setattr__":  # of ``super()``
            own = self.syntax.class_of(e)
            return f"{self.module}.{self.syntax.qualname(own)}" if own is not None else "?"
        if not isinstance(e, ast.Name):
            return "?"
        function, first = self.owner(e)
        cls = self.syntax.parents.get(function) if function is not None else None
        if e.id == first and isinstance(cls, ast.ClassDef):
            return f"{self.module}.{self.syntax.qualname(cls)}"
        for f in self.syntax.ancestors(e):
            if isinstance(f, _FUNCTIONS) and (a := self._of(f).get(e.id)) is not None:
                text = dotted(a.annotation) if a.annotation is not None else None
                return self._resolved(text) if text is not None else "?"
        variable = self._variable(e)
        found = {s for s, to in self._flows if to == variable}
        made = found.pop() if len(found) == 1 else None
        return made if isinstance(made, str) and made[0] not in ".=" else "?"

    def _named(self, annotation: ast.expr) -> Iterator[str]:
        for n in ast.walk(annotation):
            if isinstance(n, (ast.Name, ast.Attribute)) and _last(n)[:1].isupper():
                text = dotted(n)
                if text is not None and text.partition(".")[0] not in self.foreign:
                    yield self._resolved(text)
            elif isinstance(n, ast.Constant) and isinstance(n.value, str):
                names = re.findall(r"[\w.]+", n.value)
                yield from (self._resolved(name) for name in names if name.rpartition(".")[2][:1].isupper())

    def _resolved(self, text: str) -> str:
        root, _, rest = text.partition(".")
        base = self.imports.get(root, f"{self.module}.{root}")
        return f"{base}.{rest}" if rest else base

    @cached_property
    def _declared_global(self) -> set[str]:
        return {name for n in self.syntax.by_type[ast.Global] for name in n.names}  # type: ignore[attr-defined]

    def _is_local(self, n: ast.Name, function: FunctionNode) -> bool:
        """Whether something in ``function`` other than a ``global`` binds the name."""
        if n.id in self._declared_global:
            return False
        return any(
            (isinstance(m, ast.arg) and m.arg == n.id)
            or (isinstance(m, ast.Name) and m.id == n.id and isinstance(m.ctx, ast.Store))
            for m in ast.walk(function)
        )

    # --- the variables in between -----------------------------------------------------------------------------------

    def _without_variables(self) -> Iterator[tuple[str, str]]:
        """The flows, with what goes through a variable or a parameter as one."""
        onward: defaultdict[_Node, set[str | _Local]] = defaultdict(set)
        for source, to in self._flows:
            onward[source].add(to)
        for source in list(onward):
            if isinstance(source, tuple) and source[1][0] != "(":
                continue
            stack, seen, ends = list(onward[source]), set(onward[source]), set()
            while stack:
                to = stack.pop()
                if isinstance(to, str):
                    ends.add(to)
                    continue
                more = onward.get(to, set()) - seen
                seen |= more
                stack.extend(more)
            if not ends:
                continue
            for place in [source] if isinstance(source, str) else self._places(source):
                yield from ((place, to) for to in ends)

    def _is_plain(self, parameter: _Local) -> bool:
        """Whether the parameter is a number, a text, or a tensor, as its annotation says."""
        annotation = self._of(parameter[0])[parameter[1][1:]].annotation  # type: ignore[arg-type]
        while isinstance(annotation, ast.BinOp):  # ``int | None``
            annotation = annotation.left
        return annotation is not None and _last(annotation) in _PLAIN

    def _places(self, parameter: _Local) -> Iterator[str]:
        """What calls say for a parameter: name and position, of the function or of the class that it makes."""
        f, name = parameter[0], parameter[1][1:]
        assert isinstance(f, _FUNCTIONS)
        if _configures(name):
            return
        cls = self.syntax.parents.get(f)
        method = isinstance(cls, ast.ClassDef)
        callee = f".{f.name}"
        if isinstance(cls, ast.ClassDef) and f.name in ("__init__", "__post_init__"):
            callee = f"{self.module}.{self.syntax.qualname(cls)}"
        positional = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
        static = any(dotted(d) == "staticmethod" for d in f.decorator_list)
        if name in positional:
            at = positional.index(name) - int(method and not static)
            if at < 0:
                return
            yield f"{callee}({at}"
        several = [a.arg for a in (f.args.vararg, f.args.kwarg) if a is not None]
        yield f"{callee}({'*' if name in several else name}"
        annotation = self._of(f)[name].annotation
        if annotation is not None:
            yield from self._named(annotation)


def _builds(func: ast.expr) -> bool:
    """Whether a call of ``func`` looks as if it made an object of a class."""
    if isinstance(func, ast.Name):
        return func.id[:1].isupper()
    own = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
    return isinstance(func, ast.Attribute) and func.attr[:1].isupper() and not own


def _last(e: ast.expr) -> str:
    return e.attr if isinstance(e, ast.Attribute) else e.id if isinstance(e, ast.Name) else ""
