"""FC504: what is worked out for a size, kept in a dictionary by that size."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Applicability, Cost, Example, Finding, Fix, NearMiss, Rule
from rules.fc504_size_keyed_cache.examples import INVALID, VALID
from rules.fc504_size_keyed_cache.forms import rewritten
from rules.fc504_size_keyed_cache.keyed import KeyedCaches

_ASK = "torch.compiler.is_compiling"


class SizeKeyedCache(Rule):
    """``if (h, w) in self.cache: return self.cache[h, w]``: positions, grids and anchors, kept for each size.

    What it does:
        Compiled code neither looks into the dictionary nor fills it: ``if not torch.compiler.is_compiling() and (h, w)
        in self.cache:``, and the same around the assignment. ``if key not in self.cache:`` becomes a question that
        eager code alone asks, ``cached = None if torch.compiler.is_compiling() else self.cache.get(key)``, and what
        reads the item below reads ``cached``. Eager code stays as it is.

    Why it breaks compilation:
        Which keys a dictionary has is a guard, and so is each size that is looked up: the code is compiled for every
        size, and once more when the dictionary has grown, until the recompile limit ends compiling for good. Measured
        on torch 2.13 with images of six sizes, shown twice: eight graphs, which is the limit, so that other sizes run
        eagerly from then on; without the lookup two graphs, of which the second is for all sizes. The dictionary never
        shrinks either: it holds a tensor for each size that was ever seen.

    Fix safety:
        Unsafe, though eager code does what it did. Compiled code works out anew in each call what was kept: it has to
        be the same for the same key (nothing random, no weight that is trained, no device or dtype that the key does
        not name), nobody may count on the dictionary being filled or write into what it holds, and the work has to be
        small, as it is for positions and grids, which a compiler puts into the kernel that uses them. Reported only:
        keys that are strings (a size that is written out is a guard by itself), lookups that are a part of a larger
        test, and items that are filled elsewhere.

    References:
        sam2's ``PositionEmbeddingSine`` and dust3r's ``PositionGetter``; PyTorch, "Dynamic shapes", and
        ``torch._dynamo.config.recompile_limit``.
    """

    code: ClassVar[str] = "FC504"
    name: ClassVar[str] = "size-keyed-cache"
    triggers: ClassVar[tuple[bytes, ...]] = (b" in self.", b" not in ", b".get(", b" in _")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Compare, ast.Call)
    costs: ClassVar[tuple[Cost, ...]] = ("recompilation", "dynamic shape")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it asks a dictionary that outlives the call for a size."""
        lookup = facts.ask(KeyedCaches).of(node)
        if lookup is None:
            return
        held = ast.unparse(lookup.held)
        message = f"`{held}` is asked for a size: the code is compiled for each, and again when `{held}` has grown"
        compiling = facts.writing.spelled(_ASK, node)
        edits = "`torch` is not imported above it" if compiling is None else rewritten(lookup, facts, f"{compiling}()")
        if isinstance(edits, str):
            yield Finding(node, message, assumption=edits)
            return
        assumption = "what is kept is worked out alike for the same key, cheap, and nobody writes into it"
        yield Finding(node, message, Fix(edits, Applicability.UNSAFE), assumption)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID
