"""What is kept of each file for the index over all: functions, classes, and the file itself."""

from __future__ import annotations

from dataclasses import dataclass

from patcher.facts.project.block_lists import BlockList
from patcher.facts.project.does import NOTHING, Does
from patcher.facts.project.pipelines import Step
from patcher.facts.project.protected import Region
from patcher.facts.project.touches import Touch


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
