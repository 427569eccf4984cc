"""Where an object that a module keeps comes from: a constructor argument or a call, of a plain or unknown class."""

from __future__ import annotations

import ast
import builtins

from patcher.facts import Facts
from patcher.facts.analysis import ClassAnalysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.classes import Store
from patcher.facts.syntax.tree import FunctionNode, dotted
from patcher.facts.syntax.written import parsed
from patcher.facts.tables.wording import suggests_configuration

CONTAINER_METHODS = frozenset(m for kind in (dict, list, set, str, bytes) for m in dir(kind) if not m.startswith("_"))
_PLAIN_TYPES = frozenset("int float bool str bytes list tuple dict set frozenset Callable Tensor device dtype".split())
_OTHER_LIBRARIES = ("torch.", "torchvision.", "collections.", "numpy.", "copy.")


class NotHeldError(Exception):
    """The attribute holds something else: a module, a tensor, a container, configuration."""


class Provenance(ClassAnalysis):
    """Looks at the assignment ``store`` in ``init``. ``reasons``: why there may be no object, or another one."""

    def __init__(self, facts: Facts, cls: ast.ClassDef, init: FunctionNode, store: Store) -> None:
        super().__init__(facts, cls)
        self.init = init
        self.reasons: list[str] = []
        self.parameter: ast.arg | None = None
        self.source = self._source(store)

    def _source(self, store: Store) -> str:
        """The dotted class of the object when it is in the project, else ""."""
        source, annotation = "", store.annotation
        if isinstance(store.value, ast.Name):
            self.parameter = _parameter(self.inference.definitions(store.value))
            if self.parameter is None or suggests_configuration(store.value.id):
                raise NotHeldError
            self._default(self.parameter)
            annotation = annotation or self.parameter.annotation
        elif isinstance(store.value, ast.Call):
            source = self._built(store.value)
        else:
            raise NotHeldError
        if annotation is not None:
            source = source or self._annotated(annotation)
        if source:
            family, unknown = self.project.family(source)
            if any(self.project.is_module_class(c) for c in family | unknown):
                raise NotHeldError
            if any(suggests_configuration(c.rpartition(".")[2]) for c in family | unknown):
                raise NotHeldError
        return source

    def _default(self, parameter: ast.arg) -> None:
        a = self.init.args
        positional = [*a.posonlyargs, *a.args]
        keys = [parameter.arg]
        if parameter in positional:
            position = positional.index(parameter)
            given = position >= len(positional) - len(a.defaults)
            keys.append(str(position - 1))
        elif parameter in a.kwonlyargs:
            given = a.kw_defaults[a.kwonlyargs.index(parameter)] is not None
        else:
            raise NotHeldError  # *args, **kwargs
        family, _ = self.project.family(self.name)
        if given:
            self.reasons.append(f"`{parameter.arg}` has a default, so there may be no such object")
        elif any(f"{c}:{key}" in self.project.doubts for c in family | {self.name} for key in keys):
            self.reasons.append(f"None may be passed for `{parameter.arg}`")

    def _built(self, call: ast.Call) -> str:
        text = dotted(call.func)
        if text is None or any(map(suggests_configuration, text.split("."))):
            raise NotHeldError
        what = self.syntax.qualified(call.func)
        if what is None:
            own = self.inference.instance_attribute(call.func)
            if own is not None and own[1] in self.members.methods:
                self._given_by(f"{self.name}.{own[1]}", text)
                return ""
            if self.inference.definitions_of_root(call.func):
                if "." in text and text.rpartition(".")[2] in CONTAINER_METHODS:
                    raise NotHeldError  # what a container gives may be None
                return ""
            if hasattr(builtins, text.partition(".")[0]):
                raise NotHeldError
            what = self._here(text)
        if what.startswith(_OTHER_LIBRARIES):
            raise NotHeldError
        for name in (what, what.rpartition(".")[0]):
            if self.project.known_class(name) is not None:
                return name
        self._given_by(what, text)
        return ""

    def _given_by(self, what: str, text: str) -> None:
        """What a function of the project gives is not looked into: only that it builds no module, and is not None."""
        function = self.project.function(what)
        if function is not None:
            if f"{what}()" in self.project.doubts:
                self.reasons.append(f"`{text}` may return None")
            if any(self.project.is_module_class(mention) for mention in function.mentions):
                raise NotHeldError

    def _annotated(self, annotation: ast.expr) -> str:
        what = self.syntax.qualified(annotation)
        if (written := parsed(annotation)) is None:
            raise NotHeldError
        text = dotted(written)
        if text is None:
            inside = list(ast.walk(written))
            names = {
                n.id if isinstance(n, ast.Name) else n.attr for n in inside if isinstance(n, (ast.Name, ast.Attribute))
            }
            if "Optional" not in names and not any(isinstance(n, ast.Constant) and n.value is None for n in inside):
                raise NotHeldError  # a union, a container, ...
            self.reasons.append("by its annotation it may be None")
            return ""
        root, _, rest = text.partition(".")
        if text.rpartition(".")[2] in _PLAIN_TYPES or suggests_configuration(text.rpartition(".")[2]):
            raise NotHeldError
        if what is None and root in self.syntax.imports:  # the annotation is a string
            what = ".".join(filter(None, (self.syntax.imports[root], rest)))
        for name in (what, self._here(text)):
            if name is not None and self.project.known_class(name) is not None:
                return name
        if what is not None and (what.startswith("torch.") or self.project.is_module_class(what)):
            raise NotHeldError
        return ""

    def _here(self, text: str) -> str:
        """The dotted name of what is defined as ``text`` where the class stands."""
        scope = self.name.rpartition(".")[0]
        while len(scope) > len(self.module):
            name = f"{scope}.{text}"
            if self.project.known_class(name) is not None or self.project.function(name) is not None:
                return name
            scope = scope.rpartition(".")[0]
        return f"{self.module}.{text}"


def _parameter(definitions: frozenset[Definition]) -> ast.arg | None:
    """The parameter that is the only definition, or None."""
    nodes = [d.node for d in definitions if d.how == "parameter" and isinstance(d.node, ast.arg)]
    return nodes[0] if len(nodes) == len(definitions) == 1 else None
