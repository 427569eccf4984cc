"""Tensors that are split into chunks whose lengths another tensor holds, and walked chunk by chunk."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import dotted
from patcher.facts.syntax.written import integer

_SPLITS = frozenset({"torch.split", "torch.functional.split", "torch.split_with_sizes"})
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)
_SEQUENCES = (ast.Tuple, ast.List)


@dataclass(frozen=True)
class Split:
    """One ``torch.split``: the call, what it splits, its sizes, and the dimension where it is written down."""

    call: ast.Call
    tensor: ast.expr
    sizes: ast.expr
    dim: int | None


@dataclass(frozen=True)
class Chunked:
    """A list of chunks: ``source`` is the tensor that ``split`` takes apart, by the lengths that ``read`` reads.

    ``named``: the sizes have a name of their own, and ``read`` stands elsewhere.
    """

    split: Split
    source: ast.expr
    read: ast.Call
    named: bool

    @property
    def lengths(self) -> ast.expr:
        """The tensor of lengths."""
        assert isinstance(self.read.func, ast.Attribute)
        return self.read.func.value


@dataclass(frozen=True)
class Walk:
    """``for a, b in zip(...)`` over lists of chunks, as a statement or in a comprehension."""

    loop: ast.For | ast.ListComp | ast.GeneratorExp
    names: tuple[str, ...]
    chunks: tuple[Chunked, ...]

    @property
    def first(self) -> Chunked:
        """The first list that is walked."""
        return self.chunks[0]


def read_of(e: ast.expr) -> ast.Call | None:
    """``e`` when it is ``x.tolist()``."""
    plain = isinstance(e, ast.Call) and not e.args and not e.keywords
    if plain and isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr == "tolist":
        return e
    return None


def is_plain(e: ast.expr) -> bool:
    """Whether ``e`` only looks at what names hold: ``a.b``, ``a[0]``, ``a.squeeze(0)``."""
    match e:
        case ast.Name():
            return True
        case ast.Attribute(value=base):
            return is_plain(base)
        case ast.Subscript(value=base, slice=index):
            return is_plain(base) and integer(index) is not None
        case ast.Call(func=ast.Attribute(value=base, attr="squeeze" | "unsqueeze" | "detach"), args=args, keywords=[]):
            return is_plain(base) and all(integer(a) is not None for a in args)
    return False


class Chunks(Analysis):
    """Recognises them by where the lists of chunks come from."""

    def split_of(self, e: ast.AST) -> Split | None:
        """``e`` as a split, or None when it is none."""
        if not isinstance(e, ast.Call) or any(isinstance(a, ast.Starred) for a in e.args):
            return None
        what, arguments = self.syntax.qualified(e.func), list(e.args)
        if what is None and isinstance(e.func, ast.Attribute) and e.func.attr in ("split", "split_with_sizes"):
            if self.inference.instance_attribute(e.func) is not None:
                return None
            arguments.insert(0, e.func.value)
        elif what not in _SPLITS:
            return None
        given = dict(zip(("tensor", "sizes", "dim"), arguments, strict=False))
        for k in e.keywords:
            known = {"split_size_or_sections": "sizes", "split_size": "sizes", "split_sizes": "sizes", "dim": "dim"}
            if k.arg not in (*known, "tensor"):
                return None
            given[known.get(k.arg, k.arg)] = k.value
        if len(arguments) > 3 or not {"tensor", "sizes"} <= given.keys():
            return None
        return Split(e, given["tensor"], given["sizes"], integer(given["dim"]) if "dim" in given else 0)

    def walk_of(self, loop: ast.AST) -> Walk | None:
        """``loop`` as a walk over chunks that were split by one and the same tensor of lengths."""
        if isinstance(loop, ast.For):
            target, over, plain = loop.target, loop.iter, not loop.orelse
        elif isinstance(loop, _COMPREHENSIONS):
            first = loop.generators[0]
            target, over, plain = first.target, first.iter, len(loop.generators) == 1 and not first.ifs
        else:
            return None
        elements = target.elts if isinstance(target, _SEQUENCES) else []
        names = tuple(e.id for e in elements if isinstance(e, ast.Name))
        zipped = isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "zip"
        zipped = zipped and self.syntax.is_builtin(over.func)  # type: ignore[attr-defined]
        if not plain or not zipped or len(names) != len(elements) or len(set(names)) != len(names):
            return None
        assert isinstance(over, ast.Call)
        if any(k.arg != "strict" for k in over.keywords):
            return None
        chunks = [c for argument in over.args for c in self._listed(argument)]
        if not chunks or len(chunks) != len(names):
            return None
        if len({ast.dump(c.lengths) for c in chunks}) > 1 or len({self._bound(c.lengths) for c in chunks}) > 1:
            return None
        return Walk(loop, names, tuple(chunks))

    def _listed(self, e: ast.expr) -> Iterator[Chunked]:
        """The lists of chunks that an argument of ``zip`` stands for; nothing when it is anything else."""
        if isinstance(e, ast.Starred):
            yield from self._several(self._meant(e.value))
        else:
            yield from self._one(self._meant(e))

    def _meant(self, e: ast.expr) -> ast.expr | tuple[ast.expr, int]:
        """What the name ``e``, which is bound once and read once, stands for; ``e`` when it is no such name."""
        definition = self.only_definition(e) if isinstance(e, ast.Name) else None
        if definition is None or definition.value is None or len(definition.path) > 1:
            return e
        if len(self.uses(definition)) != 1:
            return e
        return (definition.value, definition.path[0]) if definition.path else definition.value

    def _one(self, e: ast.expr | tuple[ast.expr, int]) -> Iterator[Chunked]:
        if isinstance(e, tuple):
            several = list(self._several(e[0]))
            if e[1] < len(several):
                yield several[e[1]]
        elif (split := self.split_of(e)) is not None:
            yield from self._chunked(split, split.tensor)

    def _several(self, e: ast.expr | tuple[ast.expr, int]) -> Iterator[Chunked]:
        if isinstance(e, _SEQUENCES):
            for element in e.elts:
                yield from self._one(element)
        elif isinstance(e, _COMPREHENSIONS) and len(e.generators) == 1 and not e.generators[0].ifs:
            generator, split = e.generators[0], self.split_of(e.elt)
            if split is None or not isinstance(generator.iter, _SEQUENCES):
                return
            if isinstance(generator.target, ast.Name) and dotted(split.tensor) == generator.target.id:
                for source in generator.iter.elts:
                    yield from self._chunked(split, source)

    def _chunked(self, split: Split, source: ast.expr) -> Iterator[Chunked]:
        read = read_of(split.sizes)
        if read is not None:
            yield Chunked(split, source, read, named=False)
        elif isinstance(split.sizes, ast.Name) and (definition := self.only_definition(split.sizes)) is not None:
            read = read_of(definition.value) if definition.value is not None and not definition.path else None
            if read is not None and all(self._sizes_of_split(use) for use in self.uses(definition)):
                yield Chunked(split, source, read, named=True)

    def _sizes_of_split(self, use: ast.expr) -> bool:
        split = self.split_of(self.syntax.parents[use])
        return split is not None and split.sizes is use

    # --- names ------------------------------------------------------------------------------------------------------

    def only_definition(self, name: ast.Name) -> Definition | None:
        """The one assignment that binds ``name`` here, in this function and not seen from a nested one."""
        function = self.syntax.function_of(name)
        found = self.inference.definitions(name)
        if function is None or len(found) != 1 or name.id in self.flow_of(function).captured:
            return None
        definition = next(iter(found))
        return definition if definition.how == "assign" else None

    def uses(self, definition: Definition) -> list[ast.Name]:
        """Where the name is read that ``definition`` binds."""
        function = self.syntax.function_of(definition.node)
        return self.flow_of(function).uses.get(definition, []) if function is not None else []

    def _bound(self, e: ast.expr) -> frozenset[tuple[str, frozenset[Definition]]]:
        """The names in ``e``, with what binds them there."""
        names = [n for n in ast.walk(e) if isinstance(n, ast.Name)]
        return frozenset((n.id, self.inference.definitions(n)) for n in names)
