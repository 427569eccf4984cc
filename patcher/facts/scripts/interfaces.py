"""User interfaces that list every parameter: in functions behind buttons, in components, in what is saved."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from patcher.facts.scripts.sources import Source, Sources
from patcher.facts.syntax.tree import FunctionNode, dotted, last_name

#: So many parameters are a list of all that there are.
_MANY = 20
#: Which part of the shorter of two lists has to be in the other for them to be lists of the same.
_SAME, _PART = 0.8, 0.5

PlaceKind = Literal["function", "components", "saved"]


@dataclass(frozen=True, eq=False)
class Listing:
    """A place that lists the parameters. ``names``: those that it has, by the names that the functions give them.

    ``kind``: a signature, a list of components, or a dictionary that is saved.
    ``name``: of the function, or what holds the list or the dictionary; "" for one without.
    """

    source: Source
    node: ast.AST
    kind: PlaceKind
    name: str
    names: frozenset[str]


class Interface:
    """A file in which several functions take the same long list of parameters. ``functions``: those."""

    def __init__(self, source: Source, functions: Sequence[FunctionNode]) -> None:
        self.source = source
        self.functions = tuple(functions)
        self.shared = frozenset.intersection(*(_names(f) for f in functions))

    @cached_property
    def listings(self) -> tuple[Listing, ...]:
        """Every place that lists them, in the order of the source."""
        found = [Listing(self.source, f, "function", f.name, _names(f)) for f in self.functions]
        found += [*self._components(), *self._saved()]
        return tuple(sorted(found, key=lambda listing: getattr(listing.node, "lineno", 0)))

    def makers(self) -> list[str]:
        """What makes the components, as the names of classes, the one of most of them first."""
        owners: Counter[str] = Counter()
        for listing in self._components():
            assert isinstance(listing.node, ast.List)
            for e in listing.node.elts:
                component = e.elts[1] if isinstance(e, ast.Tuple) and len(e.elts) == 2 else e
                if isinstance(component, ast.Attribute):
                    for value in self.source.bindings.values(component.value):
                        if isinstance(value, ast.Call):
                            owners[last_name(value.func)] += 1
        return [name for name, _ in owners.most_common()]

    def component(self, name: str) -> str:
        """The attribute that is listed as the component ``name``; that name where none is."""
        for listing in self._components():
            assert isinstance(listing.node, ast.List)
            for e in listing.node.elts:
                if _component(e) == name:
                    return last_name(e.elts[1] if isinstance(e, ast.Tuple) else e)
        return name

    def _components(self) -> Iterator[Listing]:
        for node in self.source.syntax.by_type[ast.List]:
            names = frozenset(name for e in node.elts if (name := _component(e)))
            if len(names & self.shared) >= _PART * len(self.shared):
                yield Listing(self.source, node, "components", self._held(node), names)

    def _saved(self) -> Iterator[Listing]:
        for node in self.source.syntax.by_type[ast.Dict]:
            names = frozenset(k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str))
            reads = [v for v in node.values if self._reads(v)]
            inside = self.source.syntax.function_of(node) in self.functions
            if inside and len(names) >= _MANY and len(reads) >= _PART * len(names) and self._lists(names, _PART):
                yield Listing(self.source, node, "saved", self._held(node), names)

    def _lists(self, names: frozenset[str], part: float) -> bool:
        return len(names & self.shared) >= part * min(len(names), len(self.shared))

    def prefix(self, names: Sequence[str]) -> str | None:
        """What stands before all ``names`` among the parameters; None where they are not all there."""
        first = names[0]
        before = sorted(name.removesuffix(first) for name in self.shared if name.endswith(first))
        return next((b for b in before if all(f"{b}{name}" in self.shared for name in names)), None)

    def conditions(self, listing: Listing, names: Sequence[str], own: str) -> dict[str, set[str]]:
        """Which of ``names`` a dictionary has only where other parameters say so, with those. ``own``: a prefix."""
        found: dict[str, set[str]] = {}
        if isinstance(listing.node, ast.Dict):
            for key, value in zip(listing.node.keys, listing.node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in names:
                    read = {n.id for n in ast.walk(value) if isinstance(n, ast.Name) and n.id in self.shared}
                    if others := read - {f"{own}{name}" for name in names}:
                        found[key.value] = others
        return found

    def _reads(self, value: ast.expr) -> bool:
        return any(isinstance(n, ast.Name) and n.id in self.shared for n in ast.walk(value))

    def _held(self, node: ast.expr) -> str:
        parent = self.source.syntax.parents.get(node)
        targets = parent.targets if isinstance(parent, ast.Assign) else []
        return next((text for t in targets if (text := dotted(t))), "")


def interfaces(sources: Sources) -> tuple[Interface, ...]:
    """Those in some files: at least two functions of a file, with the same long list of parameters."""
    found = []
    for source in sources.all:
        many = [f for f in source.syntax.functions if len(_names(f)) >= _MANY]
        for first in many:
            same = [f for f in many if _is_same(_names(first), _names(f))]
            if len(same) > 1:
                found.append(Interface(source, same))
                break
    return tuple(found)


def components(sources: Sequence[Source], cls: str) -> tuple[Source, ast.ClassDef, frozenset[str]] | None:
    """The class ``cls`` in one of the files, with the attributes that it gives its object."""
    for source in sources:
        for node in source.syntax.by_type[ast.ClassDef]:
            if node.name == cls:
                set_ = (n for n in source.syntax.subtree(node) if isinstance(n, ast.Attribute))
                names = {n.attr for n in set_ if isinstance(n.ctx, ast.Store) and dotted(n.value) == "self"}
                return source, node, frozenset(names)
    return None


def _names(function: FunctionNode) -> frozenset[str]:
    arguments = function.args
    return frozenset(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _is_same(a: frozenset[str], b: frozenset[str]) -> bool:
    return len(a & b) >= _SAME * min(len(a), len(b)) and len(a & b) >= _SAME * max(len(a), len(b))


def _component(e: ast.expr) -> str:
    """The name that an entry of a list of components has: written beside it, or its own."""
    if isinstance(e, ast.Tuple) and len(e.elts) == 2 and isinstance(e.elts[0], ast.Constant):
        return str(e.elts[0].value)
    return last_name(e) if dotted(e) is not None else ""
