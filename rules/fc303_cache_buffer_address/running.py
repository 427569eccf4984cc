"""When the methods of a cache run: as initialisers, in compiled code, there at each call or sometimes."""

from __future__ import annotations

import ast
from functools import cached_property

from patcher.facts.analysis import Analysis
from patcher.facts.caching.caches import Cache
from patcher.facts.caching.origins import Origins
from patcher.facts.values.dimensions import unconditional


class Running(Analysis):
    """The methods of ``cache``, the class of ``origins``."""

    def __init__(self, origins: Origins, cache: Cache) -> None:
        super().__init__(origins.facts)
        self.origins = origins
        self.cache = cache
        self.methods = origins.methods
        self.initial = origins.initial
        self.resets = {m.function for m in cache.methods if m.only_resets}

    @cached_property
    def compiled(self) -> set[ast.FunctionDef]:
        """The methods that compiled code may run: all that are no initialisers, resets or eager zones."""
        return {
            f for f in self.methods if f not in self.initial and f not in self.resets and not self.facts.is_disabled(f)
        }

    @cached_property
    def always(self) -> set[ast.FunctionDef]:
        """The methods that compiled code may call, those aside that it reaches through a condition only."""
        seeds = [m.function for m in self.cache.methods if m.function not in self.resets]
        stack = [*seeds, *(f for f in self.methods if self._reached(f))]
        found: set[ast.FunctionDef] = set()
        while stack:
            f = stack.pop()
            if f in found or f in self.initial or self.facts.is_disabled(f):
                continue
            found.add(f)
            stack += [called for n, called in self.origins.calls[f] if not self.conditional(n, f)]
        return found

    def called(self, f: ast.FunctionDef) -> bool:
        """Whether compiled code is seen to call ``f``."""
        return self._reached(f) or self._named(f)

    def _reached(self, f: ast.FunctionDef) -> bool:
        return self.project.reached(f"{self.origins.name}.{f.name}")

    def _named(self, f: ast.FunctionDef) -> bool:
        """Whether compiled code that calls something of the name of ``f`` also names the class, in an annotation, say.

        This is asked for names that lists and tensors have too.
        """
        cls = self.origins.cls.name
        return any(
            mention == f".{f.name}"
            and any(m.rpartition(".")[2] == cls and not m.startswith((".", "self.")) for m in g.mentions)
            and self.project.reached(f"{module}.{g.qualname}")
            for mention, module, g in self.project.mentions(f.name)
        )

    def conditional(self, node: ast.AST, f: ast.FunctionDef) -> bool:
        """Whether ``f`` may run without ``node``: it stands under a test, or behind one that returns."""
        return not unconditional(node, self.syntax)
