"""What one module does with the attributes of objects that are not its own: reads, copies, names."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from patcher.facts.syntax.tree import Syntax, dotted
from patcher.facts.tables import torch_api
from patcher.facts.tables.wording import suggests_configuration

Owner = Callable[[ast.AST], tuple[ast.AST | None, str | None]]
#: Functions that read, copy or write all attributes of an object that they are given.
_OPENING = frozenset(
    "copy.copy copy.replace dataclasses.asdict dataclasses.astuple dataclasses.replace pickle.dump pickle.dumps "
    "cloudpickle.dump cloudpickle.dumps dill.dump dill.dumps joblib.dump torch.save".split()
)
#: What compiles a class as it is written.
_SCRIPTING = frozenset("torch.jit.script torch.jit.interface torch.jit.export torch.jit.script_method".split())
_MENTIONED = _OPENING | _SCRIPTING | {"operator.attrgetter"}
_LAST = frozenset(name.rpartition(".")[2] for name in _MENTIONED)
_BY_NAME = frozenset("getattr setattr delattr".split())
_LITERALS = (ast.Call, ast.Constant, ast.Dict, ast.List, ast.Tuple, ast.ListComp, ast.DictComp, ast.JoinedStr)
#: Attributes that every tensor has: a read of one says nothing about other objects.
TENSORS = torch_api.TENSOR_ONLY | torch_api.ALIASING | set(torch_api.HOST_VALUES)
#: An attribute in a format string: ``{0.name}`` or ``{memory.name}``.
_FORMATTED = re.compile(r"\{\w*((?:\.\w+|\[[^\]{}]*\])+)")


class Exposed:
    """One look at a module.

    ``loads``: attributes that are read from objects other than ``self``. ``opened``: (how, what) where all attributes
    of an object are read or copied ("" as ``what`` when it is not a name); (name, "=") where one is read by its name,
    or a text is just the name of something private; (name, "class") where a class takes it from another one.
    """

    def __init__(self, syntax: Syntax, module: str, imports: Mapping[str, str], owner: Owner) -> None:
        self.syntax = syntax
        self.module = module
        self.imports = imports
        self.owner = owner
        self.loads: set[str] = set()
        self.opened: set[tuple[str, str]] = set()
        functions = [*syntax.functions, *syntax.by_type[ast.Lambda]]
        #: Whether ``self`` is the instance of a method wherever it stands.
        self._plain_self = not any(
            isinstance(syntax.parents[n], ast.stmt) and not isinstance(syntax.parents[n], ast.ClassDef)
            for n in syntax.by_type[ast.ClassDef]
        ) and all(isinstance(syntax.parents[f], ast.ClassDef) for f in functions if _first(f) == "self")
        opening = {name for name, what in imports.items() if what in _MENTIONED}
        called = _BY_NAME | {"vars"}
        loads = self.loads
        for n in syntax.by_type[ast.Attribute]:
            if n.attr in _LAST or not (n.attr in loads or n.attr in TENSORS):
                self._load(n)
        for name in syntax.by_type[ast.Name] if opening else ():
            if name.id in opening:
                self._mention(name)
        for call in syntax.by_type[ast.Call]:
            if isinstance(call.func, ast.Name) and call.func.id in called:
                self._mention(call.func)
        for match in syntax.by_type[ast.MatchClass]:
            self.loads.update(match.kwd_attrs)
        for text in syntax.by_type[ast.Constant]:
            if type(text.value) is str and (text.value[:1] == "_" or "{" in text.value):
                self._text(text, text.value)

    def _load(self, n: ast.Attribute) -> None:
        attr, value = n.attr, n.value
        if attr in _LAST:
            self._mention(n)
        if attr in TENSORS or not isinstance(n.ctx, ast.Load):
            return
        if isinstance(value, ast.Name):
            if attr == "__dict__":
                self._open("__dict__", value)
                return
            if value.id[:1].isupper() and isinstance(self.syntax.parents[self.syntax.parents[n]], ast.ClassDef):
                self.opened.add((attr, "class"))
            if value.id in self.imports or (value.id == "self" and self._plain_self):
                return
        parent = self.syntax.parents[n]
        if attr == "__dict__":
            self._open("__dict__", value)
        elif attr == "__getattribute__" and isinstance(parent, ast.Call) and len(parent.args) > 1:
            self._by_name(parent, attr)
        elif isinstance(parent, ast.Call) and parent.func is n:
            return
        elif isinstance(value, ast.Name):
            function, first = self.owner(n)
            if value.id == first and isinstance(self.syntax.parents.get(function), ast.ClassDef):  # type: ignore[arg-type]
                return
            if attr[0] == "_" or not suggests_configuration(value.id):
                self.loads.add(attr)
        elif attr[0] == "_" or not isinstance(value, ast.Attribute) or not suggests_configuration(value.attr):
            self.loads.add(attr)

    def _mention(self, n: ast.Name | ast.Attribute) -> None:
        """``n`` may be a function that reads, copies or writes attributes: called, or handed on."""
        name = dotted(n) or ""
        what = name if name in _BY_NAME or name == "vars" else self._resolved(name)
        if not (what in _MENTIONED or what == name):
            return
        parent = self.syntax.parents[n]
        called = isinstance(parent, ast.Call) and parent.func is n
        if not called or what in _SCRIPTING:
            if what in _MENTIONED and not isinstance(parent, ast.Attribute):
                self.opened.add((name, ""))
            return
        assert isinstance(parent, ast.Call)
        if what in _BY_NAME:
            self._by_name(parent, name)
        elif what == "operator.attrgetter":
            for argument in parent.args:
                if isinstance(argument, ast.Constant):
                    self.opened |= {(part, "=") for part in str(argument.value).split(".")}
        elif parent.args:
            self._open(name, parent.args[0])

    def _by_name(self, call: ast.Call, how: str) -> None:
        if len(call.args) < 2:
            return
        key = call.args[1]
        if not isinstance(key, ast.Constant):
            self._open(how, call.args[0])
        elif how not in ("setattr", "delattr"):  # these are stores
            self.opened.add((str(key.value), "="))

    def _text(self, n: ast.AST, value: str) -> None:
        """A name in a string: alone, or in the fields of a format."""
        if value[:1] == "_":
            slots = (ast.Assign, ast.AnnAssign)
            if value.isidentifier() and not (value[:2] == "__" == value[-2:]):
                statement = next((p for p in self.syntax.ancestors(n) if isinstance(p, ast.stmt)), None)
                if not (isinstance(statement, slots) and "__slots__" in self.syntax.names_in(statement)):
                    self.opened.add((value, "="))
            return
        for found in _FORMATTED.finditer(value):
            self.opened |= {(part, "=") for part in re.findall(r"\.(\w+)", found[1])}

    def _open(self, how: str, e: ast.expr) -> None:
        if isinstance(e, _LITERALS):
            return
        if isinstance(e, ast.Name):
            cls = self.syntax.class_of(e)
            if e.id == self.owner(e)[1] and cls is not None:
                self.opened.add((how, f"self of {self.module}.{self.syntax.qualname(cls)}"))
                return
        self.opened.add((how, ast.unparse(e)))

    def _resolved(self, text: str) -> str:
        root, _, rest = text.partition(".")
        base = self.imports.get(root, f"{self.module}.{root}")
        return f"{base}.{rest}" if rest else base


def _first(function: ast.AST) -> str:
    arguments = function.args  # type: ignore[attr-defined]
    return next((a.arg for a in (*arguments.posonlyargs, *arguments.args)), "")
