"""Which expressions hold an nn.Module, from the source of many files alone: constructors, annotations, use."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from patcher.facts.syntax.classes import pairs, self_name
from patcher.facts.syntax.tree import Syntax, dotted
from patcher.facts.syntax.written import all_parameters

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Only a module has these methods, among the things that code with PyTorch calls ``compile`` on.
_ONLY_MODULES_HAVE = frozenset(
    "parameters named_parameters named_modules named_buffers named_children load_state_dict requires_grad_".split()
)
#: Methods of a module that give the module back.
_GIVE_BACK = frozenset("to cuda cpu xpu half float bfloat16 double train eval requires_grad_ to_empty".split())
#: Modules that hold others in a row.
CONTAINERS = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict"})
_WRAPPERS = frozenset({"copy.deepcopy", "torch.compile", "torch.nn.parallel.DistributedDataParallel"})
_MAKERS = frozenset({"timm.create_model", "torch.hub.load", "segmentation_models_pytorch.create_model"})
#: Libraries whose classes with these words in the name, and makers, are modules.
_LIBRARIES = frozenset({"transformers", "diffusers"})
#: Their classes for JAX and TensorFlow.
_OF_OTHERS = re.compile("Flax|TF[A-Z]")
_NOT_MODULES = frozenset({"Parameter", "ParameterList", "UninitializedParameter", "Buffer"})


def imported(syntax: Syntax, expr: ast.AST) -> str | None:
    """The dotted thing that ``expr`` is by import, also where ``except ImportError`` binds the name as well."""
    found = syntax.qualified(expr)
    text = dotted(expr)
    if found is not None or text is None:
        return found
    root, _, rest = text.partition(".")
    bound = any(isinstance(s, (*_FUNCTIONS, ast.Lambda)) and syntax.binds(s, root) for s in syntax.ancestors(expr))
    what = None if bound else syntax.imports.get(root)
    return what if what is None or not rest else f"{what}.{rest}"


class Bindings:
    """What is assigned to the names of each scope of one module, and what is done with them."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax

    @cached_property
    def assigned(self) -> dict[tuple[ast.AST, str], list[ast.expr]]:
        """(function or module, text of a name or attribute) -> the values assigned to it there."""
        found: defaultdict[tuple[ast.AST, str], list[ast.expr]] = defaultdict(list)
        by_type = self.syntax.by_type
        nodes: list[Any] = [*by_type[ast.Assign], *by_type[ast.AnnAssign], *by_type[ast.NamedExpr]]
        for n in nodes:
            targets = n.targets if isinstance(n, ast.Assign) else [n.target]
            for target, v in (pair for t in targets if n.value is not None for pair in pairs(t, n.value)):
                text = dotted(target)
                if text is not None and v is not None:
                    found[self.scope(n), text].append(v)
        return found

    @cached_property
    def loops(self) -> dict[tuple[ast.AST, str], list[tuple[ast.expr, bool]]]:
        """(scope, loop variable) -> what is iterated, and whether the variable is the last of a tuple."""
        found: defaultdict[tuple[ast.AST, str], list[tuple[ast.expr, bool]]] = defaultdict(list)
        loops: list[Any] = [*self.syntax.by_type[ast.For], *self.syntax.by_type[ast.comprehension]]
        for n in loops:
            target, last = n.target, False
            if isinstance(target, ast.Tuple) and target.elts:
                target, last = target.elts[-1], True
            if isinstance(target, ast.Name):
                found[self.scope(n), target.id].append((n.iter, last))
        return found

    @cached_property
    def asked(self) -> set[tuple[ast.AST, str]]:
        """(scope or class, text) of what is asked for something that only a module has."""
        found = set()
        for n in self.syntax.by_type[ast.Call]:
            if isinstance(n.func, ast.Attribute) and n.func.attr in _ONLY_MODULES_HAVE:
                text = dotted(n.func.value)
                if text is not None:
                    found.add((self.scope(n), text))
                    if text.startswith("self.") and (cls := self.syntax.class_of(n)) is not None:
                        found.add((cls, text))
        return found

    def scope(self, node: ast.AST) -> ast.AST:
        """The function around ``node``, or the module."""
        return self.syntax.function_of(node) or self.syntax.tree

    def values(self, expr: ast.AST) -> list[ast.expr]:
        """All that is assigned to the name or attribute ``expr``, where it is looked up."""
        text = dotted(expr)
        if text is None:
            return []
        found = self.assigned.get((self.scope(expr), text), [])
        if text.startswith("self.") and (cls := self.syntax.class_of(expr)) is not None:
            same = [vs for (s, t), vs in self.assigned.items() if t == text and self.syntax.class_of(s) is cls]
            found = [v for vs in same for v in vs]
        elif not found and not self.is_parameter(expr, text.partition(".")[0]):
            found = self.assigned.get((self.syntax.tree, text), [])
        return found

    def is_parameter(self, at: ast.AST, name: str) -> bool:
        """Whether ``name`` is a parameter of the function around ``at``."""
        return parameter(self.syntax.function_of(at), name) is not None


def parameter(function: ast.AST | None, name: str) -> ast.arg | None:
    """The parameter ``name`` of ``function``."""
    if not isinstance(function, _FUNCTIONS):
        return None
    return next((p for p in all_parameters(function.args) if p.arg == name), None)


class ModuleIndex:
    """The module classes of many files, by name, and the attributes that they fill with modules.

    Where a file is imported from is not known for sure: a class is found by its name and the last part of its module.
    """

    def __init__(self, files: Sequence[tuple[str, Syntax]] = ()) -> None:
        self._bases: defaultdict[str, list[tuple[str, list[str]]]] = defaultdict(list)
        self._known: dict[str, bool] = {}
        self.modules: set[str] = set()
        self.containers: set[str] = set()
        held: list[tuple[str, str]] = []
        for module, syntax in files:
            for cls in syntax.by_type[ast.ClassDef]:
                bases = [imported(syntax, b) or dotted(b) or "?" for b in cls.bases]
                self._bases[cls.name].append((module, bases))
                held += _held(cls, syntax)
        for attribute, made in held:
            if made in CONTAINERS:
                self.containers.add(attribute)
            if self.is_module_class(made):
                self.modules.add(attribute)

    def is_module_class(self, name: str) -> bool:
        """Whether the dotted class is an nn.Module, by its bases or by what is known of PyTorch and its libraries."""
        if name not in self._known:
            self._known[name] = False  # a class below itself ends here
            self._known[name] = self._is_module_class(name)
        return self._known[name]

    def _is_module_class(self, name: str) -> bool:
        root, _, last = name.rpartition(".")
        package = name.partition(".")[0]
        if package == "torch" and ".nn" in f".{root}":
            return last[:1].isupper() and last not in _NOT_MODULES
        if last in ("LightningModule", "PreTrainedModel", "ModelMixin"):
            return True
        if package in _LIBRARIES:
            return ("Model" in last or "For" in last) and not _OF_OTHERS.match(last)
        found, near = self._bases.get(last, []), root.rpartition(".")[2]
        same = [bases for module, bases in found if not root or module.rpartition(".")[2] == near]
        if not same and len(found) == 1:  # a package gives it on: the name alone decides, when there is just one
            same = [found[0][1]]
        return any(self.is_module_class(b) for bases in same for b in bases)


def _held(cls: ast.ClassDef, syntax: Syntax) -> Iterator[tuple[str, str]]:
    """(attribute, dotted class) for what a class builds and keeps."""
    for method in cls.body:
        for n in ast.walk(method) if isinstance(method, _FUNCTIONS) else ():
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call):
                text = imported(syntax, n.value.func) or dotted(n.value.func)
                for t in n.targets:
                    if text and isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name):
                        yield t.attr, text


class ModuleValues:
    """Whether an expression of one module surely holds an nn.Module."""

    def __init__(self, syntax: Syntax, index: ModuleIndex, bindings: Bindings | None = None) -> None:
        self.syntax = syntax
        self.index = index
        self.bindings = bindings or Bindings(syntax)

    def is_module(self, e: ast.expr, depth: int = 6) -> bool:
        """Whether there is proof that ``e`` is a module; False where there is none."""
        if depth == 0:
            return False
        text = dotted(e)
        if text is not None:
            return self._is_module_name(e, text, depth)
        match e:
            case ast.Call(func=ast.Name(id="super"), args=[]):
                cls = self.syntax.class_of(e)
                return cls is not None and self.index.is_module_class(cls.name)
            case ast.Call(func=ast.Attribute(value=base, attr=attr)) if attr in _GIVE_BACK:
                return self.is_module(base, depth - 1)
            case ast.Call(func=func, args=args):
                return self._makes_module(func, args, depth)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_module(body, depth - 1) or self.is_module(orelse, depth - 1)
            case ast.BoolOp(values=values):
                return any(self.is_module(v, depth - 1) for v in values)
            case ast.NamedExpr(value=value):
                return self.is_module(value, depth - 1)
            case ast.Subscript(value=value):
                return self.holds_modules(value, depth - 1)
        return False

    def _makes_module(self, func: ast.expr, args: list[ast.expr], depth: int) -> bool:
        what = imported(self.syntax, func) or dotted(func)
        if what is None:
            return False
        if what in _WRAPPERS:
            return bool(args) and self.is_module(args[0], depth - 1)
        owner, _, last = what.rpartition(".")
        if what in _MAKERS or what.startswith("torchvision.models."):
            return True
        if last in ("from_pretrained", "from_config"):
            what = owner
        return what.rpartition(".")[2][:1].isupper() and self.index.is_module_class(what)

    def _is_module_name(self, e: ast.expr, text: str, depth: int) -> bool:
        function = self.syntax.function_of(e)
        root, _, rest = text.partition(".")
        method = self.syntax.method_of(e)
        if method is not None and self_name(method) == root and not rest:
            cls = self.syntax.class_of(method)
            return cls is not None and self._is_own_module(cls)
        given = parameter(function, text)
        if given is not None and given.annotation is not None and self._is_module_annotation(given.annotation):
            return True
        around = [self.bindings.scope(e), self.syntax.class_of(e)]
        if any(a is not None and (a, text) in self.bindings.asked for a in around):
            return True
        if any(self.is_module(v, depth - 1) for v in self.bindings.values(e) if v is not e):
            return True
        for iterated, last in self.bindings.loops.get((self.bindings.scope(e), text), ()):
            if self._gives_modules(iterated, last, depth - 1):
                return True
        if isinstance(e, ast.Attribute) and e.attr in self.index.modules:
            return self.is_module(e.value, depth - 1)
        return False

    def _is_own_module(self, cls: ast.ClassDef) -> bool:
        """Whether instances of ``cls`` are modules, with the ``compile`` that modules have."""
        if any(isinstance(s, _FUNCTIONS) and s.name == "compile" for s in cls.body):
            return False
        bases = [imported(self.syntax, b) or dotted(b) or "?" for b in cls.bases]
        return any(self.index.is_module_class(b) for b in bases) or self.index.is_module_class(cls.name)

    def _is_module_annotation(self, annotation: ast.expr) -> bool:
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            last = annotation.value.rpartition(".")[2].strip("]")
            return annotation.value in ("nn.Module", "torch.nn.Module") or self.index.is_module_class(last)
        parts = [n for n in ast.walk(annotation) if isinstance(n, (ast.Name, ast.Attribute))]
        return any(self.index.is_module_class(imported(self.syntax, n) or dotted(n) or "?") for n in parts)

    def _gives_modules(self, iterated: ast.expr, last: bool, depth: int) -> bool:
        match iterated:
            case ast.Call(func=ast.Attribute(attr="children" | "modules"), args=[]):
                return not last
            case ast.Call(func=ast.Attribute(attr="named_children" | "named_modules")):
                return last
            case ast.Call(func=ast.Attribute(value=base, attr="items"), args=[]):
                return last and self.holds_modules(base, depth)
            case ast.Call(func=ast.Attribute(value=base, attr="values"), args=[]):
                return not last and self.holds_modules(base, depth)
            case ast.Call(args=[inner, *_]) if self.syntax.builtin(iterated) == "enumerate":
                return last and self._gives_modules(inner, False, depth)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                return not last and any(self.is_module(v, depth) for v in elts)
        return not last and (self.holds_modules(iterated, depth) or self.is_module(iterated, depth))

    def holds_modules(self, e: ast.expr, depth: int = 6) -> bool:
        """Whether ``e`` is a list of modules, or a dictionary of them."""
        if depth <= 0:
            return False
        if isinstance(e, ast.Subscript):  # a slice
            return self.holds_modules(e.value, depth - 1)
        if isinstance(e, ast.Attribute) and e.attr in self.index.containers:
            return True
        if isinstance(e, ast.Call) and (imported(self.syntax, e.func) or "") in CONTAINERS:
            return True
        return any(self.holds_modules(v, depth - 1) for v in self.bindings.values(e) if v is not e)
