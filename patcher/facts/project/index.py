"""The cross-file index: what each file defines and calls, and from that, what compiled code reaches."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from patcher.facts.project.attributes import Attributes
from patcher.facts.project.block_lists import BlockList, block_lists
from patcher.facts.project.caught import Catching
from patcher.facts.project.closure import Closure
from patcher.facts.project.compiling_tests import asks_for_compiling
from patcher.facts.project.conditions_taken import conditions_taken
from patcher.facts.project.documented import Documented, documented
from patcher.facts.project.does import NOTHING, Does, does, set_by_name
from patcher.facts.project.doubts import Doubts
from patcher.facts.project.dynamo_config import configured
from patcher.facts.project.exposed import openings, read_attributes
from patcher.facts.project.given_functions import GivenFunctions
from patcher.facts.project.growing import grown_dims, offset_parameters
from patcher.facts.project.handed_over import handed_over
from patcher.facts.project.pipelines import PACKAGES, Pipelines, Step
from patcher.facts.project.printing import hands_on_print
from patcher.facts.project.protected import BODY, Protection, Region, returned
from patcher.facts.project.reached import Reaching
from patcher.facts.project.scripted import prepared
from patcher.facts.project.tensor_fields import said_tensors
from patcher.facts.project.threads import is_handed_over
from patcher.facts.project.touches import Touch, Touches
from patcher.facts.project.wrapping import accelerated
from patcher.facts.syntax.classes import pairs, registered
from patcher.facts.syntax.imports import imported_from
from patcher.facts.syntax.packages import module_name
from patcher.facts.syntax.tree import Syntax, dotted, last_name, methods_of, walk
from patcher.facts.tables import call_effects as tables
from patcher.facts.tables import torch_api
from patcher.settings import NoFunctionError

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = frozenset({*_FUNCTIONS, ast.ClassDef})


@dataclass(frozen=True)
class FunctionSummary:
    """A function or method: ``qualname`` in its module, and every function-like thing that it mentions.

    ``mentions`` are "self.m" (attribute of the first parameter), ".m" (method of an unknown object) or dotted names.
    ``positional``: the parameters that need no keyword; ``keywords``: those that do. ``conditions``: as
    `conditions_taken` has them. ``asks_for_compiling``: it only tells whether code is compiled. ``does``: what it
    does to memory and attributes. ``returns``: what it calls to make what it returns, dotted ("?": anything else).
    ``decorated``: by more than Python's own decorators and torch's. ``elsewhere``: what it mentions only to hand it to
    another thread or process, or for a parameter of that name. ``documented``: the errors that its docstring, or that
    of its class, names.
    ``grows``: as `grown_dims` has them. ``offsets``: as
    `offset_parameters` has them.
    """

    qualname: str
    mentions: frozenset[str]
    compiled: bool = False
    disabled: bool = False
    positional: tuple[str, ...] = ()
    conditions: frozenset[str] = frozenset()
    asks_for_compiling: bool = False
    does: Does = NOTHING
    returns: frozenset[str] = frozenset()
    decorated: bool = False
    keywords: tuple[str, ...] = ()
    elsewhere: frozenset[str] = frozenset()
    documented: frozenset[str] = frozenset()
    grows: frozenset[int] = frozenset()
    offsets: frozenset[str] = frozenset()

    @property
    def here(self) -> frozenset[str]:
        """What it mentions for more than to hand it on so."""
        return self.mentions - self.elsewhere


#: What is mentioned, the module, and the function in it that does so.
Mention = tuple[str, str, FunctionSummary]


@dataclass(frozen=True)
class ClassSummary:
    """A class: dotted ``bases``, its ``methods``, the attributes that its own methods assign on ``self``.

    ``built``: attribute and dotted class, for attributes that ``__init__`` fills by calling one class. ``declared``:
    names with a value at class level. ``properties``: the methods that may run when an attribute is read or set.
    ``compiled``: it has the decorator ``torch.compile``. ``lists``: those of modules of one class that it makes.
    ``tensors``: the attributes that it says are tensors, by an annotation or by making one, and says nothing else of.
    """

    name: str
    bases: tuple[str, ...]
    methods: frozenset[str]
    stores: frozenset[str]
    init_stores: frozenset[str]
    built: tuple[tuple[str, str], ...] = ()
    declared: frozenset[str] = frozenset()
    properties: frozenset[str] = frozenset()
    compiled: bool = False
    lists: tuple[BlockList, ...] = ()
    tensors: frozenset[str] = frozenset()

    def __or__(self, other: ClassSummary) -> ClassSummary:
        """Either of two classes of one name in one file."""
        return ClassSummary(
            self.name,
            tuple(dict.fromkeys((*self.bases, *other.bases))),
            self.methods | other.methods,
            self.stores | other.stores,
            self.init_stores | other.init_stores,
            tuple(sorted({*self.built} & {*other.built})),
            self.declared | other.declared,
            self.properties | other.properties,
            self.compiled and other.compiled,
            tuple(one for one in self.lists if one in other.lists),
            self.tensors & other.tensors,
        )


@dataclass(frozen=True)
class ModuleSummary:
    """One file.

    ``foreign_stores``: attribute names that are assigned on anything but ``self``. ``touches``: who sets and writes
    what, as `Touches` has it; ``doubts``: as `Doubts` has them; ``foreign_loads``: as `read_attributes` has them;
    ``opened``: as `openings` has it; ``one_graph``: something is compiled with ``fullgraph`` or exported: there, a
    break is an error. ``regions``: code whose errors do not get past it. ``made``: names at the top level, and the
    dotted thing whose call each is bound to ("?": else). ``stacked``: dotted classes of which a loop or comprehension
    makes many, one after the other.
    ``scripted``: all names in it where some are what only code for TorchScript needs.
    ``dynamo``: what it sets of ``torch._dynamo.config``.
    ``starred``: modules that it imports all names of. ``accelerated``: lines where accelerate is told to compile.
    ``steps``: as `Pipelines` has them; ``read_otherwise``: last names of
    classes that it reads for anything else. ``hands``: what its calls hand to methods of the instance. ``relies``: the
    files that were read for what ``*`` brings. ``given``: as `GivenFunctions` has them.
    """

    path: str
    module: str
    classes: tuple[ClassSummary, ...] = ()
    functions: tuple[FunctionSummary, ...] = ()
    foreign_stores: frozenset[str] = frozenset()
    compiled: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    doubts: frozenset[str] = frozenset()
    one_graph: bool = False
    foreign_loads: frozenset[str] = frozenset()
    opened: frozenset[tuple[str, str]] = frozenset()
    touches: frozenset[Touch] = frozenset()
    regions: tuple[Region, ...] = ()
    made: frozenset[tuple[str, str]] = frozenset()
    stacked: frozenset[str] = frozenset()
    scripted: frozenset[str] = frozenset()
    dynamo: frozenset[tuple[str, bool]] = frozenset()
    starred: frozenset[str] = frozenset()
    accelerated: frozenset[int] = frozenset()
    steps: frozenset[Step] = frozenset()
    read_otherwise: frozenset[str] = frozenset()
    hands: frozenset[tuple[str, str]] = frozenset()
    relies: frozenset[str] = frozenset()
    given: frozenset[tuple[str, str]] = frozenset()

    def sees(self, module: str, name: str) -> bool:
        """Whether the global ``name`` of ``module`` may be meant by that name here."""
        return self.module == module or f"{module}.{name}" in self.imports or module in self.starred

    def imports_from(self, module: str) -> bool:
        """Whether it imports ``module``, or something out of it."""
        return module in self.starred or any(i == module or i.startswith(f"{module}.") for i in self.imports)


class _Collector:
    """Sorts what one walk over a module found by the function or class that it stands in."""

    def __init__(self, tree: ast.Module, path: str) -> None:
        self.module, package = module_name(path)
        self.syntax = Syntax(tree, package)
        self.imports = self.syntax.imports_anywhere
        self.protection = Protection(self.syntax, self.module, self.imports)
        self.resolve = self.protection.resolve
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
        by_type, parents = self.syntax.by_type, self.syntax.parents
        for n in by_type[ast.Attribute]:
            inner = not isinstance(n.value, ast.Name) or n.value.id in self.imports
            if inner and isinstance(parents[n], ast.Attribute):
                continue
            function, first = self.owner(n)
            if n.attr == "__wrapped__" and isinstance(n.value, (ast.Attribute, ast.Name)):
                taken = n.value.attr if isinstance(n.value, ast.Attribute) else n.value.id
                self.mentions[function].add(f".{taken}.__wrapped__")
            if isinstance(n.ctx, ast.Load):
                continue
            root = n.value.id if isinstance(n.value, ast.Name) else None
            if root is not None and root == first and isinstance(parents.get(function), ast.ClassDef):  # type: ignore[arg-type]
                self.stores[function].add(n.attr)
            elif not hands_on_print(n, self.syntax):
                self.foreign.add(n.attr)
        for read in (*by_type[ast.Attribute], *by_type[ast.Name]):
            if (mention := self.mention(read)) is not None:
                function = self.owner(read)[0]
                self.mentions[function].add(mention)
                if mention.rpartition(".")[2][:1].isupper() and mention[:1] != ".":
                    self.classes_read[mention].append(read)
                if not is_handed_over(read, self.syntax) and not self.is_parameter(read, function):
                    self.here[function].add(mention)
        for call in by_type[ast.Call]:
            self.call(call)

    def mention(self, n: ast.AST) -> str | None:
        """What ``n`` mentions when it reads a name or an attribute, as `FunctionSummary` has it."""
        if isinstance(n, ast.Name):
            read = isinstance(n.ctx, ast.Load) and not isinstance(self.syntax.parents[n], ast.Attribute)
            return (self.imports.get(n.id) or f"{self.module}.{n.id}") if read else None
        if not isinstance(n, ast.Attribute) or not isinstance(n.ctx, ast.Load):
            return None
        inner = not isinstance(n.value, ast.Name) or n.value.id in self.imports
        if inner and isinstance(self.syntax.parents[n], ast.Attribute):
            return None
        root = n.value.id if isinstance(n.value, ast.Name) else None
        if root is not None and root == self.owner(n)[1]:
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
            calls = does(owner, nodes, self.imported, method).calls
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
        last = last_name(n.func)
        full = next((k.value for k in n.keywords if k.arg == "fullgraph"), None)
        if last == "compile" and full is not None and not (isinstance(full, ast.Constant) and not full.value):
            self.one_graph = True
        if last.startswith("export") and (dotted(n.func) or "").partition(".")[0] in self.imports:
            self.one_graph |= self.resolve(dotted(n.func) or "").startswith("torch.export.")
        if last != "compile" or not n.args:
            return
        text, what = dotted(n.func), dotted(n.args[0])
        if text is not None and what is not None and self.resolve(text) in torch_api.COMPILE:
            root, _, rest = what.partition(".")
            self.compiled.add(f".{what.rpartition('.')[2]}" if rest else self.resolve(root))

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
        if isinstance(parent, (ast.ListComp, ast.GeneratorExp)):
            return True
        listed = isinstance(parent, ast.Call) and last_name(parent.func) in ("append", "add_module", "setattr")
        return listed and any(
            isinstance(p, ast.For)
            for p in itertools.takewhile(lambda p: not isinstance(p, _FUNCTIONS), self.syntax.ancestors(call))
        )

    def starred(self) -> Iterator[str]:
        for node in self.syntax.by_type[ast.ImportFrom]:
            if any(alias.name == "*" for alias in node.names):
                yield imported_from(node, self.syntax.package)

    def functions(self) -> tuple[FunctionSummary, ...]:
        return tuple(self.summaries())

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
                does(node, nodes, self.imported, method),
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
        body = function.body[0]
        return read.id in self.parameters(function) and (read.lineno, read.col_offset) >= (body.lineno, body.col_offset)

    @staticmethod
    def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
        return tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))

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
        for method in methods:
            stack: list[ast.AST] = list(method.body)
            while stack:
                n = stack.pop()
                if isinstance(n, ast.Assign):
                    for t, v in (pair for target in n.targets for pair in pairs(target, n.value)):
                        if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == "self":
                            text = dotted(v.func) if isinstance(v, ast.Call) else None
                            found[t.attr].add(self.built_class(text))
                for name in ("body", "orelse", "finalbody", "handlers"):
                    stack.extend(getattr(n, name, ()) if isinstance(n, (ast.stmt, ast.ExceptHandler)) else ())
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
        collector.functions(),
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
        frozenset(collector.starred()),
        frozenset(accelerated(collector.syntax, collector.resolve)),
        *collector.pipelines(),
        frozenset(handed_over(collector.syntax)),
        frozenset(map(str, collector.syntax.package.read)),
        frozenset(GivenFunctions(collector.syntax, collector.module, collector.resolve).found()),
    )


class Project:
    """All summaries together. Reached: functions that run inside ``forward`` of a module or in a compiled callable.

    ``whole``: whether these are all files of the project: what is not among them may use anything otherwise.
    ``compiled``: what is compiled by code that is not among them (``module:function``, ``module:Class.method``).
    Raises NoFunctionError for one of which the module is here and the function is not.
    """

    def __init__(
        self, summaries: Iterable[ModuleSummary] = (), whole: bool = True, compiled: Collection[str] = ()
    ) -> None:
        self.whole = whole
        self.modules = {s.path: s for s in summaries}
        self._classes: dict[str, ClassSummary] = {}
        self._subclasses: defaultdict[str, list[str]] = defaultdict(list)
        self._functions: dict[str, FunctionSummary] = {}
        self._seen: dict[str, set[str]] = {}
        self._homes_of: dict[str, frozenset[str]] = {}
        self._module_of: dict[str, str] = {}
        self._below: dict[str, list[tuple[str, ClassSummary]]] = {}
        self._by_method: defaultdict[str, list[str]] = defaultdict(list)
        self._methods: dict[tuple[str, str], list[str]] = {}
        self._families: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._derived: dict[str, bool] = {}
        self.foreign_stores: set[str] = set()
        self._packages = {s.module.partition(".")[0] for s in self.modules.values()}
        self.doubts: set[str] = set()
        self.one_graph = False
        self.dynamo: set[tuple[str, bool]] = set()
        for s in self.modules.values():
            self.foreign_stores |= s.foreign_stores
            self.doubts |= s.doubts
            self.one_graph |= s.one_graph
            self.dynamo |= s.dynamo
            for c in s.classes:
                name = f"{s.module}.{c.name}"
                other_class = self._classes.get(name)
                for base in c.bases if other_class is None else set(c.bases) - {*other_class.bases}:
                    self._subclasses[base].append(name)
                self._module_of[name] = s.module
                self._classes[name] = c if other_class is None or other_class is c else c | other_class
            for f in s.functions:
                name, other = f"{s.module}.{f.qualname}", self._functions.get(f"{s.module}.{f.qualname}")
                if other is not None and other is not f:  # a property and its setter, one of two by a condition
                    f = replace(
                        f,
                        does=f.does | other.does,
                        mentions=f.mentions | other.mentions,
                        elsewhere=(f.elsewhere | other.elsewhere) - f.here - other.here,
                    )
                self._functions[name] = f
        self.properties: set[str] = set()
        for name, c in self._classes.items():
            self.properties |= c.properties
            for method in c.methods:
                self._by_method[method].append(f"{name}.{method}")
        self.effects = Closure(self)
        self.catching = Catching(self)
        self.documented = Documented(self)
        self._told = [f for name in compiled for f in self._named_so(name)]
        self._starts = [*self._told, *self._compiled_first()]
        self._reached = Reaching(self).functions(self._starts)

    @cached_property
    def scripted(self) -> list[ModuleSummary]:
        """The files that name what only code for TorchScript needs."""
        return [s for s in self.modules.values() if s.scripted]

    @cached_property
    def hands(self) -> frozenset[tuple[str, str]]:
        """What calls of methods of the instance hand over, as `handed_over` has it."""
        return frozenset().union(*(s.hands for s in self.modules.values()))

    def is_module_class(self, name: str) -> bool:
        """Whether the dotted class derives from nn.Module, as far as the index can tell.

        A class with a ``forward`` and an ancestor outside of the index counts: one file is often all that is scanned.
        """
        known = self._derived.get(name)
        if known is None:
            known = self._derived[name] = self._derives(name, frozenset())
        return known

    def _derives(self, name: str, seen: frozenset[str]) -> bool:
        if name in ("torch.nn.Module", "torch.nn.modules.module.Module"):
            return True
        found = self._classes.get(name)
        if found is None or name in seen:
            return name.startswith("torch.nn.") and not name.startswith("torch.nn.functional")
        if any(self._derives(b, seen | {name}) for b in found.bases):
            return True
        return "forward" in found.methods and self._has_unknown_ancestor(name, frozenset())

    def _has_unknown_ancestor(self, name: str, seen: frozenset[str]) -> bool:
        found = self._classes.get(name)
        if found is None:
            return name not in _PLAIN_BASES and not hasattr(builtins, name.rpartition(".")[2])
        return name not in seen and any(self._has_unknown_ancestor(b, seen | {name}) for b in found.bases)

    def subclasses(self, name: str) -> list[tuple[str, ClassSummary]]:
        """Every class below ``name`` in the index, with its dotted name."""
        if name in self._below:
            return self._below[name]
        out: list[tuple[str, ClassSummary]] = []
        self._below[name] = out
        stack, seen = [name], {name}
        while stack:
            for child in self._subclasses.get(stack.pop(), ()):
                if child not in seen:
                    seen.add(child)
                    out.append((child, self._classes[child]))
                    stack.append(child)
        return out

    def summaries_of(self, module: str) -> Sequence[ModuleSummary]:
        """The files that are imported by that dotted name."""
        return self._by_module.get(module, ())

    @cached_property
    def _by_module(self) -> dict[str, list[ModuleSummary]]:
        """Summaries by the dotted name of their module."""
        found: defaultdict[str, list[ModuleSummary]] = defaultdict(list)
        for s in self.modules.values():
            found[s.module].append(s)
        return dict(found)

    @cached_property
    def attributes(self) -> Attributes:
        """Who sets attributes, and writes into what they hold."""
        return Attributes(self)

    @cached_property
    def layers(self) -> frozenset[str]:
        """Modules of which there are several in a row, with what they are made of."""
        stack = [c for s in self.modules.values() for c in s.stacked if self.is_module_class(c)]
        found = set(stack)
        while stack:
            summary = self._classes.get(stack.pop())
            more = {c for _, c in summary.built if self.is_module_class(c)} - found if summary is not None else set()
            found |= more
            stack += more
        return frozenset(found)

    def known_class(self, name: str) -> ClassSummary | None:
        """The class of that dotted name, when it is in the index."""
        return self._classes.get(name)

    def classes(self) -> Iterable[tuple[str, ClassSummary]]:
        """Every class of the index, with its dotted name."""
        return self._classes.items()

    def functions(self) -> Iterable[tuple[str, FunctionSummary]]:
        """Every function and method of the index, with its dotted name."""
        return self._functions.items()

    def function(self, name: str) -> FunctionSummary | None:
        """The function or method of that dotted name, when it is in the index."""
        return self._functions.get(name)

    def handed_on(self, name: str) -> FunctionSummary | None:
        """The function that ``name`` is, or the only one of that name below the package that hands it on."""
        package, _, last = name.rpartition(".")
        found = [f for n, f in self._named[last] if n == name or n.startswith(f"{package}.")]
        return found[0] if len(found) == 1 else self._functions.get(name)

    @cached_property
    def _named(self) -> dict[str, list[tuple[str, FunctionSummary]]]:
        """Functions at the top level of a module, by their own name."""
        found: defaultdict[str, list[tuple[str, FunctionSummary]]] = defaultdict(list)
        for name, f in self._functions.items():
            if "." not in f.qualname:
                found[f.qualname].append((name, f))
        return found

    def named(self, mention: str, owner: str) -> list[str]:
        """The functions that ``mention``, in the summary of a function of the class or module ``owner``, may be."""
        if mention.startswith("self."):
            return self._method(owner, mention[5:])
        if mention.startswith("."):
            return [] if mention[1:] in tables.COMMON_METHODS else self.named_methods(mention[1:])
        return [mention] if mention in self._functions else self.re_exported(mention)

    @cached_property
    def unwrapped(self) -> set[str]:
        """Names of functions whose decorators somebody takes off (``f.__wrapped__``)."""
        found = {m for f in self._functions.values() for m in f.mentions if m.endswith(".__wrapped__")}
        return {m.rpartition(".")[0].rpartition(".")[2] for m in found}

    @cached_property
    def log_reader(self) -> str | None:
        """A class of the project that loggers hand their messages to, or that is one, and that changes something.

        A formatter that changes the message alone is none.
        """
        for name, c in self._classes.items():
            bases = {b for b in c.bases if b.startswith("logging.")}
            methods = [f"{name}.{m}" for m in c.methods - {"__init__"}]
            if not bases or not self.effects.changes_in(methods):
                continue
            if bases != {"logging.Formatter"} or any(map(self._changes_itself, methods)):
                return name.rpartition(".")[2]
        return None

    def _changes_itself(self, method: str) -> bool:
        """Whether a method may change its object or a global, and not only attributes of what it is given."""
        summary = self._functions.get(method)
        if summary is None:
            return True
        does = summary.does
        return bool(does.own or does.writes or does.runs or any(place[:1] in "~*" for place in does.sets))

    def mentions(self, last: str) -> Sequence[Mention]:
        """Every mention in the index that ends with the name ``last``."""
        return self._mentions.get(last, ())

    @cached_property
    def _mentions(self) -> dict[str, list[Mention]]:
        found: defaultdict[str, list[Mention]] = defaultdict(list)
        for s in self.modules.values():
            for f in s.functions:
                for mention in f.mentions:
                    found[mention.rpartition(".")[2]].append((mention, s.module, f))
        return found

    def replaces(self, name: str) -> bool:
        """Whether code puts something in the place of ``name`` of a module, also by its path, as tests do."""
        return name in self.foreign_stores or self.attributes.changed(name)

    def named_methods(self, name: str) -> list[str]:
        """The methods of that name, of any class."""
        return self._by_method.get(name, [])

    def methods(self, cls: str, name: str) -> list[str]:
        """What ``name`` may be on an instance of ``cls`` or of a class below: its own or inherited, and overrides."""
        return self._method(cls, name)

    def lineage(self, name: str) -> Iterator[ClassSummary]:
        """The class ``name``, also where a package hands it on by that name, and the classes of the index above it."""
        seen, stack = set[str](), [name]
        while stack:
            known = self._handed_on_class(above := stack.pop())
            if known is not None and above not in seen:
                yield known
                stack += known.bases
            seen.add(above)

    def _handed_on_class(self, name: str) -> ClassSummary | None:
        found = self._classes.get(name)
        if found is not None or "." not in name:
            return found
        package, _, last = name.rpartition(".")
        below = [c for c in self._by_last[last] if c.startswith(f"{package}.")]
        return self._classes[below[0]] if len(below) == 1 else None

    @cached_property
    def _by_last(self) -> defaultdict[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for name in self._classes:
            found[name.rpartition(".")[2]].append(name)
        return found

    def family(self, name: str) -> tuple[frozenset[str], frozenset[str]]:
        """Classes that share instances with ``name`` (bases, subclasses, their bases), and bases that are unknown."""
        known = self._families.get(name)
        if known is None:
            known = self._families[name] = self._related(name)
        return known

    def _related(self, name: str) -> tuple[frozenset[str], frozenset[str]]:
        family: set[str] = set()
        unknown: set[str] = set()
        stack = [name, *(child for child, _ in self.subclasses(name))]
        while stack:
            c = stack.pop()
            if c in family or c in _PLAIN_BASES:
                continue
            if c not in self._classes:
                unknown.add(c)
                continue
            family.add(c)
            stack.extend(self._classes[c].bases)
        return frozenset(family), frozenset(unknown)

    def is_plain_class(self, name: str) -> bool:
        """Whether ``name`` is a class of the project all of whose bases are, so that it is no tensor."""
        stack, seen = [name], set[str]()
        while stack:
            c = stack.pop()
            if c in seen or c in _PLAIN_BASES:
                continue
            if c not in self._classes:
                return False
            seen.add(c)
            stack.extend(self._classes[c].bases)
        return True

    def look_alikes(self, module: str) -> frozenset[str]:
        """What tensors have, and instances of a class of the project that are no tensors as well.

        Objects of the class may get to ``module`` when some module can see both.
        """
        found: set[str] = set()
        for home, names in self._alike:
            if not names <= found and (home == module or not self._seeing[home].isdisjoint(self._seeing[module])):
                found |= names
        return frozenset(found)

    @cached_property
    def _alike(self) -> list[tuple[str, frozenset[str]]]:
        """Each module with a class, no tensor, of which tensors have some attributes, and these."""
        found = []
        for s in self.modules.values():
            for c in s.classes:
                names = (c.methods | c.stores | c.init_stores) & torch_api.TENSOR_ONLY
                if names and self.is_plain_class(f"{s.module}.{c.name}"):
                    found.append((s.module, names))
        return found

    @cached_property
    def _seeing(self) -> defaultdict[str, set[str]]:
        """For each module, by their paths those that can see it."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for path, s in self.modules.items():
            for seen in self._visible(s):
                found[seen].add(path)
        return found

    def has(self, package: str) -> bool:
        """Whether a module of that top-level name is in the index."""
        return package in self._packages

    def reached(self, function: str) -> bool:
        """Whether the function of that dotted name runs in compiled code, as far as the index can tell."""
        return function in self._reached

    def reached_with_torch(self, function: str) -> bool:
        """As `reached`, from code that has to do with PyTorch for sure: any class may have a ``forward``."""
        return function in self._reached_with_torch

    @cached_property
    def _reached_with_torch(self) -> set[str]:
        home = {f"{s.module}.{f.qualname}": s for s in self.modules.values() for f in s.functions}
        started = (n for n in self._starts if n in home and self._has_torch(n, home[n]))
        return Reaching(self).functions([*self._told, *started])

    def _has_torch(self, function: str, module: ModuleSummary) -> bool:
        """Whether the module imports torch, or the class of ``function`` inherits something of it."""
        if any(name.partition(".")[0] == "torch" for name in module.imports | module.starred):
            return True
        stack, seen = [function.rpartition(".")[0]], set[str]()
        while stack:
            name = stack.pop()
            if name.startswith("torch."):
                return True
            if name not in seen and name in self._classes:
                seen.add(name)
                stack += self._classes[name].bases
        return False

    def called_by_name(self, method: str, module: str) -> bool:
        """Whether compiled code that can see ``module`` calls a method of that name on some object."""
        return any(module in seen for seen in self._mentioning.get(f".{method}", ()))

    @cached_property
    def _mentioning(self) -> dict[str, list[set[str]]]:
        """What compiled code mentions (``.method``) -> for each module that does so, the modules that it sees."""
        found: defaultdict[str, list[set[str]]] = defaultdict(list)
        for s in self.modules.values():
            compiled = [f.mentions for f in s.functions if self.reached(f"{s.module}.{f.qualname}")]
            mentioned = {m for mentions in compiled for m in mentions if m.startswith(".")}
            seen = self._visible(s) if mentioned else set()
            for m in mentioned:
                found[m].append(seen)
        return dict(found)

    def _method(self, cls: str, method: str) -> list[str]:
        """What ``self.method`` may be in ``cls``: its own, the nearest inherited, or an override below."""
        known = self._methods.get((cls, method))
        if known is None:
            known = self._methods[cls, method] = self._found_methods(cls, method)
        return known

    def _found_methods(self, cls: str, method: str) -> list[str]:
        if method not in self._by_method:
            return []
        below = (f"{child}.{method}" for child, summary in self.subclasses(cls) if method in summary.methods)
        return [*self.inherited(cls, method), *below]

    def inherited(self, cls: str, method: str) -> list[str]:
        """What ``method`` is on an instance of ``cls`` itself: its own, or the nearest of each base."""
        found = []
        stack, seen = [cls], set()
        while stack:
            name = stack.pop()
            if name in seen or name not in self._classes:
                continue
            seen.add(name)
            if method in self._classes[name].methods:
                found.append(f"{name}.{method}")
            else:
                stack.extend(self._classes[name].bases)
        return found

    def seen_by(self, module: str) -> set[str]:
        """Modules whose classes the objects in ``module`` may be of: itself and what it imports."""
        if module not in self._seen:
            summaries = self._by_module.get(module, ())
            self._seen[module] = {m for s in summaries for m in self._visible(s)}
        return self._seen[module]

    def _visible(self, module: ModuleSummary) -> set[str]:
        """Modules whose classes the objects in ``module`` may be of: itself and what it imports, with their bases."""
        near = {module.module, *module.imports, *(i.rpartition(".")[0] for i in module.imports)}
        return near.union(*(self._homes(name) for name in module.imports if name in self._classes))

    def _homes(self, cls: str) -> frozenset[str]:
        """The modules of the classes that ``cls`` inherits from: its objects have their methods."""
        if cls not in self._homes_of:
            family, stack = set[str](), [cls]
            while stack:
                name = stack.pop()
                if name in self._classes and name not in family:
                    family.add(name)
                    stack.extend(self._classes[name].bases)
            self._homes_of[cls] = frozenset(self._module_of[name] for name in family)
        return self._homes_of[cls]

    def _named_so(self, text: str) -> list[str]:
        """The functions that ``module:function`` means; of a class, what a call of its object runs."""
        module, _, function = text.partition(":")
        name = f"{module}.{function}"
        called = [f"{name}.{method}" for method in ("forward", "__call__") if f"{name}.{method}" in self._functions]
        found = [name] if name in self._functions else called or self.re_exported(name)
        if not found and any(s.module == module for s in self.modules.values()):
            raise NoFunctionError(f"compiled: there is no function {text}")
        return found

    def _compiled_first(self) -> Iterator[str]:
        """The functions that are compiled as they stand: ``forward`` of modules, and what something compiles."""
        home = {f"{s.module}.{f.qualname}": s for s in self.modules.values() for f in s.functions}
        for name, c in self._classes.items():
            if "forward" in c.methods and self.is_module_class(name) and name not in self._steps:
                yield f"{name}.forward"
        yield from (name for name, f in self._functions.items() if f.compiled)
        for s in self.modules.values():
            for what in s.compiled - {".__call__"}:
                if not what.startswith("."):
                    yield what
                    continue
                near = self._visible(s)
                yield from (m for m in self._by_method.get(what[1:], ()) if home[m].module in near)

    @cached_property
    def _steps(self) -> frozenset[str]:
        """The classes that are only ever made as steps of a pipeline of data."""
        used = {name for s in self.modules.values() for name in s.read_otherwise}
        steps = {step for s in self.modules.values() for step in s.steps}
        other = {step.cls for step in steps if not self._is_for_data(step)}
        return frozenset({step.cls for step in steps if step.cls.rpartition(".")[2] not in used} - other)

    def _is_for_data(self, step: Step) -> bool:
        if step.inside and self.is_module_class(step.inside):
            return False
        if step.compose.partition(".")[0] in PACKAGES:
            return True
        return self.known_class(step.compose) is not None and not self.is_module_class(step.compose)

    def starred(self, name: str, where: ModuleSummary) -> list[str]:
        """The functions that ``name``, which the module ``where`` reads as its own, has come to be with ``*``."""
        package, _, last = name.rpartition(".")
        if package != where.module:
            return []
        seen, stack, found = {where.module}, [*where.starred], list[str]()
        while stack:
            module = stack.pop()
            if module not in seen:
                seen.add(module)
                found += [n for n in (f"{module}.{last}",) if n in self._functions]
                stack += [more for s in self.summaries_of(module) for more in s.starred]
        return found

    def re_exported(self, name: str) -> list[str]:
        """In a list, the only function below a package that ``name``, imported from that package, can be."""
        package, _, last = name.rpartition(".")
        found = [n for n, _ in self._named.get(last, ()) if n.startswith(f"{package}.")] if package else []
        return found if len(found) == 1 else []


_PLAIN_DECORATORS = frozenset("torch functools abc typing typing_extensions dataclasses contextlib".split())
_PLAIN_BASES = frozenset(
    "object abc.ABC typing.Protocol typing.Generic torch.autograd.Function torch.autograd.function.Function "
    "enum.Enum typing.NamedTuple".split()
)
