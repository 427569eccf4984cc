"""The cross-file index: what each file defines and calls, and from that, what compiled code reaches."""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from patcher.facts.flow.fixpoint import reach
from patcher.facts.flow.kept import kept
from patcher.facts.project.attributes import Attributes
from patcher.facts.project.caught import Catching
from patcher.facts.project.closure import Closure
from patcher.facts.project.documented import Documented
from patcher.facts.project.pipelines import PACKAGES, Step
from patcher.facts.project.reached import Reaching
from patcher.facts.project.summaries import ClassSummary, FunctionSummary, Mention, ModuleSummary
from patcher.facts.tables import call_effects as tables
from patcher.facts.tables import torch_api
from patcher.settings import NoFunctionError

_PLAIN_BASES = frozenset(
    "object abc.ABC typing.Protocol typing.Generic torch.autograd.Function torch.autograd.function.Function "
    "enum.Enum typing.NamedTuple".split()
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
        self._module_of: dict[str, str] = {}
        self._by_method: defaultdict[str, list[str]] = defaultdict(list)
        self._packages = {s.module.partition(".")[0] for s in self.modules.values()}
        files = self.modules.values()
        self.foreign_stores = frozenset[str]().union(*(s.foreign_stores for s in files))
        self.doubts = frozenset[str]().union(*(s.doubts for s in files))
        self.one_graph = any(s.one_graph for s in files)
        for one in files:
            self._add(one)
        self.properties = frozenset[str]().union(*(c.properties for c in self._classes.values()))
        for name, method in ((name, m) for name, c in self._classes.items() for m in c.methods):
            self._by_method[method].append(f"{name}.{method}")
        self.effects = Closure(self)
        self.catching = Catching(self)
        self.documented = Documented(self)
        self._told = [f for name in compiled for f in self._named_so(name)]
        self._starts = [*self._told, *self._compiled_first()]
        self._reached = Reaching(self).functions(self._starts)

    def _add(self, s: ModuleSummary) -> None:
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

    @cached_property
    def scripted(self) -> list[ModuleSummary]:
        """The files that name what only code for TorchScript needs."""
        return [s for s in self.modules.values() if s.scripted]

    @cached_property
    def imported(self) -> dict[str, set[str]]:
        """For each module those that it imports, or names of, with the packages above them."""
        own, found = {s.module for s in self.modules.values()}, dict[str, set[str]]()
        for s in self.modules.values():
            named = (*s.imports, *s.starred, s.module)
            parts = (name.split(".") for name in named)
            above = {".".join(part[:n]) for part in parts for n in range(1, len(part) + 1)}
            found.setdefault(s.module, set()).update(above & own)
        return found

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """For each module those that import it."""
        found = dict[str, set[str]]()
        for module, names in self.imported.items():
            for name in names:
                found.setdefault(name, set()).add(module)
        return found

    @cached_property
    def hands(self) -> frozenset[tuple[str, str]]:
        """What calls of methods of the instance hand over, as `handed_over` has it."""
        return frozenset().union(*(s.hands for s in self.modules.values()))

    @kept
    def is_module_class(self, name: str) -> bool:
        """Whether the dotted class derives from nn.Module, as far as the index can tell.

        A class with a ``forward`` and an ancestor outside of the index counts: one file is often all that is scanned.
        """
        for above in self.above(name):
            found = self._classes.get(above)
            if above in ("torch.nn.Module", "torch.nn.modules.module.Module"):
                return True
            if found is None and above.startswith("torch.nn.") and not above.startswith("torch.nn.functional"):
                return True
            if found is not None and "forward" in found.methods and any(map(self._is_unknown, self.above(above))):
                return True
        return False

    def _is_unknown(self, name: str) -> bool:
        plain = name in _PLAIN_BASES or hasattr(builtins, name.rpartition(".")[2])
        return name not in self._classes and not plain

    @kept
    def above(self, name: str) -> tuple[str, ...]:
        """The class and all that it inherits from, nearest first, whether they are in the index or not."""
        found, todo = [name], [name]
        while todo:
            known = self._classes.get(todo.pop(0))
            new = [b for b in dict.fromkeys(known.bases) if b not in found] if known is not None else []
            found += new
            todo += new
        return tuple(found)

    @kept
    def subclasses(self, name: str) -> list[tuple[str, ClassSummary]]:
        """Every class below ``name`` in the index, with its dotted name."""
        found, stack = {name: self._classes.get(name)}, [name]
        while stack:
            new = [c for c in dict.fromkeys(self._subclasses.get(stack.pop(), ())) if c not in found]
            found.update((c, self._classes[c]) for c in new)
            stack += new
        return [(c, summary) for c, summary in found.items() if summary is not None and c != name]

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
    def home(self) -> dict[str, ModuleSummary]:
        """Function -> the file that it is in."""
        return {f"{s.module}.{f.qualname}": s for s in self.modules.values() for f in s.functions}

    @cached_property
    def holding(self) -> defaultdict[str, set[str]]:
        """For each class, the attributes that hold an instance of it somewhere."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for attribute, cls in (pair for c in self._classes.values() for pair in c.built):
            found[cls].add(attribute)
        return found

    @cached_property
    def attributes(self) -> Attributes:
        """Who sets attributes, and writes into what they hold."""
        return Attributes(self)

    @cached_property
    def layers(self) -> frozenset[str]:
        """Modules of which there are several in a row, with what they are made of."""
        first = {c for s in self.modules.values() for c in s.stacked if self.is_module_class(c)}
        return frozenset(reach(first, self._parts))

    def _parts(self, cls: str) -> list[str]:
        """The modules that an instance of the class makes as its parts."""
        summary = self._classes.get(cls)
        return [c for _, c in summary.built if self.is_module_class(c)] if summary is not None else []

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
        return next((self._functions[n] for n in (name, *self.re_exported(name)) if n in self._functions), None)

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
            return self.methods(owner, mention[5:])
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
            if bases and self.effects.changes_in(methods):
                does = [f.does for m in methods if (f := self._functions.get(m)) is not None]
                own = any(d.own or d.writes or d.runs or any(place[:1] in "~*" for place in d.sets) for d in does)
                if own or bases != {"logging.Formatter"}:
                    return name.rpartition(".")[2]
        return None

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

    @kept
    def family(self, name: str) -> tuple[frozenset[str], frozenset[str]]:
        """Classes that share instances with ``name`` (bases, subclasses, their bases), and bases that are unknown."""
        below = (child for child, _ in self.subclasses(name))
        found = {c for start in (name, *below) for c in self.above(start)} - _PLAIN_BASES
        return frozenset(found & self._classes.keys()), frozenset(found - self._classes.keys())

    def is_plain_class(self, name: str) -> bool:
        """Whether ``name`` is a class of the project all of whose bases are, so that it is no tensor."""
        return all(c in self._classes or c in _PLAIN_BASES for c in self.above(name))

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
        started = (n for n in self._starts if n in self.home and self._has_torch(n, self.home[n]))
        return Reaching(self).functions([*self._told, *started])

    def _has_torch(self, function: str, module: ModuleSummary) -> bool:
        """Whether the module imports torch, or the class of ``function`` inherits something of it."""
        if any(name.partition(".")[0] == "torch" for name in module.imports | module.starred):
            return True
        return any(c.startswith("torch.") for c in self.above(function.rpartition(".")[0]))

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

    @kept
    def methods(self, cls: str, method: str) -> list[str]:
        """What ``method`` may be on an instance of ``cls`` or of a class below: its own or inherited, and overrides."""
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

    @kept
    def seen_by(self, module: str) -> set[str]:
        """Modules whose classes the objects in ``module`` may be of: itself and what it imports."""
        return {m for s in self._by_module.get(module, ()) for m in self._visible(s)}

    def _visible(self, module: ModuleSummary) -> set[str]:
        """The same for one file, with the modules of the classes that an imported one inherits from."""
        near = {module.module, *module.imports, *(i.rpartition(".")[0] for i in module.imports)}
        return near.union(*(self._homes(name) for name in module.imports if name in self._classes))

    @kept
    def _homes(self, cls: str) -> frozenset[str]:
        return frozenset(self._module_of[c] for c in self.above(cls) if c in self._classes)

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
                yield from (m for m in self._by_method.get(what[1:], ()) if self.home[m].module in near)

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
        modules = reach(where.starred, lambda m: [more for s in self.summaries_of(m) for more in s.starred])
        return [n for m in sorted(modules - {where.module}) if (n := f"{m}.{last}") in self._functions]

    def re_exported(self, name: str) -> list[str]:
        """In a list, the only function below a package that ``name``, imported from that package, can be."""
        package, _, last = name.rpartition(".")
        found = [n for n, _ in self._named.get(last, ()) if n.startswith(f"{package}.")] if package else []
        return found if len(found) == 1 else []
