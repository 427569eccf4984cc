"""One look at a file: what it defines and calls, for the index over all."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections import defaultdict
from collections.abc import Iterator

from patcher.facts.project.block_lists import block_lists
from patcher.facts.project.compiling_tests import asks_for_compiling
from patcher.facts.project.conditions_taken import conditions_taken
from patcher.facts.project.documented import documented
from patcher.facts.project.does import does, set_by_name
from patcher.facts.project.doubts import Doubts
from patcher.facts.project.dynamo_config import configured
from patcher.facts.project.exposed import openings, read_attributes
from patcher.facts.project.given_functions import GivenFunctions
from patcher.facts.project.growing import grown_dims, offset_parameters
from patcher.facts.project.handed_over import handed_over
from patcher.facts.project.pipelines import Pipelines, Step
from patcher.facts.project.printing import hands_on_print
from patcher.facts.project.protected import BODY, Protection, Region, returned
from patcher.facts.project.scripted import prepared, scripted
from patcher.facts.project.summaries import ClassSummary, FunctionSummary, ModuleSummary
from patcher.facts.project.tensor_fields import said_tensors
from patcher.facts.project.threads import is_handed_over
from patcher.facts.project.touches import Touches
from patcher.facts.project.wrapping import accelerated
from patcher.facts.syntax.classes import attribute_of, pairs, registered
from patcher.facts.syntax.imports import imported_from
from patcher.facts.syntax.packages import module_name
from patcher.facts.syntax.tree import Syntax, dotted, last_name, methods_of, own_nodes, walk
from patcher.facts.syntax.written import all_parameters
from patcher.facts.tables import torch_api

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = frozenset({*_FUNCTIONS, ast.ClassDef})
_PLAIN_DECORATORS = frozenset("torch functools abc typing typing_extensions dataclasses contextlib".split())


class _Collector:
    """Sorts what one walk over a module found by the function or class that it stands in."""

    def __init__(self, tree: ast.Module, path: str) -> None:
        self.module, package = module_name(path)
        self.syntax = Syntax(tree, package)
        self.imports = self.syntax.imports_anywhere
        self.protection = Protection(self.syntax, self.module, self.imports)
        self.resolve = self.protection.resolve
        self.scripts = scripted(self.syntax, self.resolve)
        self.foreign: set[str] = set()
        self.compiled: set[str] = set()
        self.stacked: set[str] = set()
        self.one_graph = False
        self.mentions: defaultdict[ast.AST | None, set[str]] = defaultdict(set)
        self.classes_read: defaultdict[str, list[ast.expr]] = defaultdict(list)
        self.here: defaultdict[ast.AST | None, set[str]] = defaultdict(set)
        self.stores: defaultdict[ast.AST | None, set[str]] = defaultdict(set)
        self._owners: dict[ast.AST, tuple[ast.AST | None, str | None]] = {}

    def owner(self, node: ast.AST) -> tuple[ast.AST | None, str | None]:
        """The outermost function around ``node`` (below classes), and its first parameter.

        That of a static method is a value as any other, and no instance.
        """
        scopes = self.syntax.around(node).scopes
        inner = node if type(node) in _DEFINITIONS else scopes[0] if scopes else None
        if inner is None:
            return None, None
        known = self._owners.get(inner)
        if known is None:
            known = (None, None)
            for scope in reversed((inner, *scopes)):
                if known[0] is None and isinstance(scope, _FUNCTIONS):
                    static = any(dotted(d) == "staticmethod" for d in scope.decorator_list)
                    known = (scope, scope.args.args[0].arg if scope.args.args and not static else None)
                elif isinstance(scope, ast.ClassDef):
                    known = (None, None)
            self._owners[inner] = known
        return known

    def collect(self) -> None:
        for n in self.syntax.by_type[ast.Attribute]:
            if not self._goes_on(n):
                self._attribute(n)
        for read in (*self.syntax.by_type[ast.Attribute], *self.syntax.by_type[ast.Name]):
            if (mention := self.mention(read)) is not None:
                function = self.owner(read)[0]
                self.mentions[function].add(mention)
                if mention.rpartition(".")[2][:1].isupper() and mention[:1] != ".":
                    self.classes_read[mention].append(read)
                if not is_handed_over(read, self.syntax) and not self.is_parameter(read, function):
                    self.here[function].add(mention)
        for call in self.syntax.by_type[ast.Call]:
            self.call(call)

    def _goes_on(self, n: ast.Attribute) -> bool:
        """Whether ``n`` is the beginning of a longer name that is looked at as a whole."""
        inner = not isinstance(n.value, ast.Name) or n.value.id in self.imports
        return inner and isinstance(self.syntax.parents[n], ast.Attribute)

    def _attribute(self, n: ast.Attribute) -> None:
        function, first = self.owner(n)
        if n.attr == "__wrapped__" and (taken := last_name(n.value)):
            self.mentions[function].add(f".{taken}.__wrapped__")
        if isinstance(n.ctx, ast.Load):
            return
        mine = isinstance(n.value, ast.Name) and n.value.id == first
        if mine and isinstance(self.syntax.parents.get(function), ast.ClassDef):  # type: ignore[arg-type]
            self.stores[function].add(n.attr)
        elif not hands_on_print(n, self.syntax):
            self.foreign.add(n.attr)

    def mention(self, n: ast.AST) -> str | None:
        """What ``n`` mentions when it reads a name or an attribute, as `FunctionSummary` has it."""
        if isinstance(n, ast.Name):
            read = isinstance(n.ctx, ast.Load) and not isinstance(self.syntax.parents[n], ast.Attribute)
            return (self.imports.get(n.id) or f"{self.module}.{n.id}") if read else None
        if not isinstance(n, ast.Attribute) or not isinstance(n.ctx, ast.Load):
            return None
        if self._goes_on(n):
            return None
        if isinstance(n.value, ast.Name) and n.value.id == self.owner(n)[1]:
            return f"self.{n.attr}"
        text = dotted(n)
        known = text is not None and text.partition(".")[0] in self.imports
        return self.resolve(text) if known and text else f".{n.attr}"

    def pipelines(self) -> tuple[frozenset[Step], frozenset[str]]:
        """Steps of pipelines of data, and the last names of classes that are read for anything else."""
        found, used = set[Step](), set[str]()
        look = Pipelines(self.syntax, self.module, self.resolve)
        for name, reads in self.classes_read.items():
            if (steps := look.steps(name, reads)) is None:
                used.add(name.rpartition(".")[2])
            else:
                found |= steps
        return frozenset(found), frozenset(used)

    def regions(self) -> Iterator[Region]:
        """Code whose errors do not get past it."""
        for start, stops, outermost in self.protection.regions():
            nodes = [n for o in outermost for n in walk(o)]
            owner = self.owner(start)[0]
            assert owner is None or isinstance(owner, _FUNCTIONS)
            method = owner is not None and isinstance(self.syntax.parents[owner], ast.ClassDef)
            mentions = {m for n in nodes if (m := self.mention(n)) is not None}
            if isinstance(start, ast.Return) or any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes):
                mentions.add(BODY)
            name = self.syntax.qualname(owner) if owner is not None else ""
            calls = does(owner, nodes, self.imported, method, self.scripts).calls
            yield Region(name or "", stops, calls, frozenset(mentions))

    def made(self) -> Iterator[tuple[str, str]]:
        """Names that are bound at the top level, and what is called for it."""
        for s in self.syntax.tree.body:
            if not isinstance(s, ast.Assign):
                continue
            for t in s.targets:
                if isinstance(t, ast.Name):
                    text = dotted(s.value.func) if isinstance(s.value, ast.Call) else None
                    yield t.id, "?" if text is None else self.resolve(text)

    def call(self, n: ast.Call) -> None:
        if self.repeats(n):
            self.stacked |= {self.built_class(dotted(n.func))} - {""}
        if (setting := set_by_name(n)) is not None:
            if setting[1] != "*":
                self.foreign.add(setting[1])
            return
        function, first = self.owner(n)
        for mention in self.told(n, first):
            self.mentions[function].add(mention)
            self.here[function].add(mention)
        if (name := registered(n)) is not None and dotted(n.func.value) == first:  # type: ignore[attr-defined]
            self.stores[function].add(name)
        text = dotted(n.func) or ""
        if text.rpartition(".")[2].startswith("export") and text.partition(".")[0] in self.imports:
            self.one_graph |= self.resolve(text).startswith("torch.export.")
        if last_name(n.func) == "compile":
            full = next((k.value for k in n.keywords if k.arg == "fullgraph"), ast.Constant(False))
            self.one_graph |= not isinstance(full, ast.Constant) or bool(full.value)
            what = dotted(n.args[0]) if n.args else None
            if what is not None and text and self.resolve(text) in torch_api.COMPILE:
                self.compiled.add(f".{what.rpartition('.')[2]}" if "." in what else self.resolve(what))

    def told(self, n: ast.Call, first: str | None) -> Iterator[str]:
        """What ``n`` mentions besides by how it is written: ``getattr(self, "step")``, ``Function.apply``."""
        match n:
            case ast.Call(func=ast.Name(id="getattr"), args=[holder, ast.Constant(value=str(name)), *_]):
                yield f"self.{name}" if isinstance(holder, ast.Name) and holder.id == first else f".{name}"
            case ast.Call(func=ast.Attribute(value=ast.Name(id=cls), attr="apply")) if cls not in self.imports:
                yield f"{self.module}.{cls}.apply"

    def repeats(self, call: ast.Call) -> bool:
        """Whether what ``call`` makes is one of several: in a comprehension, or put into a list in a loop."""
        parent = self.syntax.parents[call]
        listed = isinstance(parent, ast.Call) and last_name(parent.func) in ("append", "add_module", "setattr")
        inside = itertools.takewhile(lambda p: not isinstance(p, _FUNCTIONS), self.syntax.ancestors(call))
        return isinstance(parent, (ast.ListComp, ast.GeneratorExp)) or (
            listed and any(isinstance(p, ast.For) for p in inside)
        )

    def summaries(self) -> Iterator[FunctionSummary]:
        for node in self.syntax.functions:
            qualname, method = self.syntax.qualname(node), isinstance(self.syntax.parents[node], ast.ClassDef)
            if qualname is None:
                continue
            decorators = self.decorators(node)
            nodes = self.within(node)
            yield FunctionSummary(
                qualname,
                frozenset(self.mentions[node]),
                bool(decorators & torch_api.COMPILE),
                bool(decorators & torch_api.OPAQUE),
                tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args)),
                conditions_taken(node, nodes, self.syntax, self.resolve),
                asks_for_compiling(node, self.resolve),
                does(node, nodes, self.imported, method, self.scripts),
                returned(nodes, self.resolve, self.syntax.bound_in(node)),
                any(_is_wrapping(d) for d in decorators),
                tuple(a.arg for a in node.args.kwonlyargs),
                frozenset(self.mentions[node] - self.here[node]),
                documented(node, self.syntax),
                grown_dims(node, (n for n in nodes if isinstance(n, ast.Call)), self.syntax),
                offset_parameters(node, self.syntax),
            )

    def is_parameter(self, read: ast.AST, function: ast.AST | None) -> bool:
        """Whether ``read``, in ``function``, stands for a parameter of it: in its body, not in its head."""
        if not isinstance(read, ast.Name) or not isinstance(function, _FUNCTIONS):
            return False
        inside = (read.lineno, read.col_offset) >= (function.body[0].lineno, function.body[0].col_offset)
        return inside and read.id in {p.arg for p in all_parameters(function.args)}

    def decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str]:
        """The dotted things that decorate a function or class, called or not, or that its name is bound anew to."""
        named = map(dotted, self.syntax.wrappers(node))
        return {self.resolve(text) for text in named if text is not None}

    def imported(self, text: str) -> str | None:
        root, _, rest = text.partition(".")
        base = self.imports.get(root)
        if base is None and not rest and hasattr(builtins, root):
            rebound = self.syntax.has_star or self.syntax.binds(self.syntax.tree, root)
            return f"{self.module}.{root}" if rebound else None
        return None if base is None else f"{base}.{rest}" if rest else base

    def within(self, function: ast.AST) -> list[ast.AST]:
        """All nodes of ``function``, an outermost one below classes: its parameters and its body."""
        found = self.syntax.subtree(function)[1:]
        if any(type(n) is ast.ClassDef for n in found):  # its methods are functions of their own
            return [n for n in found if self.owner(n)[0] is function]
        return list(found)

    def classes(self) -> Iterator[ClassSummary]:
        listing = {self.syntax.class_of(c) for c in self.syntax.by_type[ast.Call] if last_name(c.func) == "ModuleList"}
        for node in self.syntax.by_type[ast.ClassDef]:
            qualname = self.syntax.qualname(node)
            if qualname is None:
                continue
            methods = methods_of(node)
            first = [m for m in methods if m.name in ("__init__", "__post_init__")]
            bases = tuple(self.resolve(text) if (text := dotted(b)) else "?" for b in node.bases)
            yield ClassSummary(
                qualname,
                bases,
                frozenset(m.name for m in methods),
                frozenset(a for m in methods if m not in first for a in self.stores[m]),
                frozenset(a for m in first for a in self.stores[m]),
                tuple(sorted(self.built(first).items())),
                frozenset(
                    t.id
                    for s in node.body
                    if isinstance(s, (ast.Assign, ast.AnnAssign)) and s.value is not None
                    for t in (s.targets if isinstance(s, ast.Assign) else [s.target])
                    if isinstance(t, ast.Name)
                ),
                frozenset(m.name for m in methods if any(_on_access(d) for d in m.decorator_list)),
                "torch.compile" in self.decorators(node),
                tuple(block_lists(node, self.syntax, self.resolve, self.built_class)) if node in listing else (),
                said_tensors(node, self.syntax),
            )

    def built(self, methods: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> dict[str, str]:
        """Attribute -> class, where every assignment calls one class (or a class method of it)."""
        found: dict[str, set[str]] = defaultdict(set)
        for n in (n for method in methods for n in own_nodes(method) if isinstance(n, ast.Assign)):
            for t, v in (pair for target in n.targets for pair in pairs(target, n.value)):
                if (attribute := attribute_of(t, "self")) is not None:
                    found[attribute].add(self.built_class(dotted(v.func) if isinstance(v, ast.Call) else None))
        return {a: next(iter(c)) for a, c in found.items() if len(c) == 1 and "" not in c}

    def built_class(self, text: str | None) -> str:
        if text is None:
            return ""
        parts = text.split(".")
        if len(parts) > 1 and parts[-2][:1].isupper():
            parts.pop()
        return self.resolve(".".join(parts)) if parts[-1][:1].isupper() else ""


def _is_wrapping(decorator: str) -> bool:
    """Whether the dotted decorator may put another function in the place of what it decorates."""
    return decorator.partition(".")[0] not in _PLAIN_DECORATORS and not hasattr(builtins, decorator.rpartition(".")[2])


def _on_access(decorator: ast.expr) -> bool:
    """Whether what ``decorator`` makes of a method runs when the attribute is read or set."""
    last = (dotted(decorator) or "").rpartition(".")[2]
    return "property" in last.lower() or last in ("setter", "getter", "deleter")


def summarise(tree: ast.Module, path: str) -> ModuleSummary:
    """What ``tree``, read from ``path``, defines and mentions."""
    collector = _Collector(tree, path)
    collector.collect()
    return ModuleSummary(
        path,
        collector.module,
        tuple(collector.classes()),
        tuple(collector.summaries()),
        frozenset(collector.foreign),
        frozenset(collector.compiled),
        frozenset(collector.imports.values()),
        frozenset(Doubts(collector.syntax, collector.module, collector.imports, collector.owner).found),
        collector.one_graph,
        read_attributes(collector.syntax, collector.owner),
        openings(collector.syntax, collector.imports),
        frozenset(Touches(collector.syntax, collector.module, collector.imports, collector.owner).found),
        tuple(collector.regions()),
        frozenset(collector.made()),
        frozenset(collector.stacked),
        prepared(collector.syntax, collector.imports.values()),
        frozenset(configured(collector.syntax, collector.resolve)),
        frozenset(
            imported_from(n, collector.syntax.package)
            for n in collector.syntax.by_type[ast.ImportFrom]
            if any(alias.name == "*" for alias in n.names)
        ),
        frozenset(accelerated(collector.syntax, collector.resolve)),
        *collector.pipelines(),
        frozenset(handed_over(collector.syntax)),
        frozenset(map(str, collector.syntax.package.read)),
        frozenset(GivenFunctions(collector.syntax, collector.module, collector.resolve).found()),
    )
