"""Attention that is computed chunk by chunk, and what would make it one call with a block-diagonal mask."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.chunked.chunks import Chunks, Walk
from patcher.facts.syntax.tree import dotted
from patcher.facts.syntax.written import defaults, given, is_none

_DIRECT = "torch.nn.functional.scaled_dot_product_attention"
_MASKS = ("attention_mask", "attn_mask", "mask")
_JOINS = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})


@dataclass(frozen=True)
class PackedAttention:
    """Attention over the chunks of ``walk``, the results of which are put together again.

    ``mask``: what stands where the mask goes, ``None`` or a parameter that is None by default. ``direct``: the
    callee is PyTorch's own, and takes a boolean mask. ``obstacle``: why the calls cannot become one.
    """

    walk: Walk
    call: ast.Call
    mask: ast.expr | None = None
    direct: bool = False
    obstacle: str = ""


class PackedAttentions(Analysis):
    """Recognises a call of three chunks in a walk, in a function that concatenates."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.chunks = facts.ask(Chunks)
        self._read: dict[ast.AST | None, set[ast.Call]] = {}

    def reads(self, read: ast.Call) -> bool:
        """Whether ``read`` (``x.tolist()``) is for an attention that `of` recognises."""
        function = self.syntax.function_of(read)
        if function not in self._read:
            loops = ast.walk(function) if function is not None else ()
            found = [self.of(n) for n in loops if isinstance(n, (ast.For, ast.ListComp, ast.GeneratorExp))]
            self._read[function] = {c.read for packed in found if packed is not None for c in packed.walk.chunks}
        return read in self._read[function]

    def of(self, loop: ast.AST) -> PackedAttention | None:
        """The attention that ``loop`` computes; None when it is no loop over chunks of queries, keys and values."""
        walk = self.chunks.walk_of(loop)
        if walk is None or len(walk.names) != 3:
            return None
        calls = (n for n in ast.walk(loop) if isinstance(n, ast.Call))
        call = next((c for c in calls if [a.id for a in _chunks(c, walk)] == list(walk.names)), None)
        if call is None:
            return None
        direct = self.syntax.qualified(call.func) == _DIRECT
        masks = [k.value for k in call.keywords if k.arg in (_MASKS[1:2] if direct else _MASKS)]
        masks += call.args[3:4] if direct else []
        obstacle = self._why_not_whole(walk) or self._why_not_called(call, walk, direct, masks)
        return PackedAttention(walk, call, next(iter(masks), None), direct, obstacle)

    def _why_not_whole(self, walk: Walk) -> str:
        """Why the sequences cannot be handed over as they are, or one mask made of the lengths."""
        for c in walk.chunks:
            if dotted(c.source) is None or dotted(c.split.tensor) is None:
                return f"`{ast.unparse(c.source)}` would be computed twice"
            if c.split.dim is None or c.split.dim != walk.first.split.dim:
                return "the dimension of the split is not written down"
        around = [p for p in self.syntax.ancestors(walk.first.split.call) if hasattr(p, "generators")]
        bound = {n.id for p in around for g in p.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        used = [n for e in (walk.first.lengths, walk.first.source) for n in ast.walk(e)]
        if any(isinstance(n, ast.NamedExpr) or (isinstance(n, ast.Name) and n.id in bound) for n in used):
            return "the lengths are bound inside of an expression"
        function = self.syntax.function_of(walk.loop)
        calls = (n for n in ast.walk(function) if isinstance(n, ast.Call)) if function is not None else ()
        if not any(self.syntax.qualified(c.func) in _JOINS for c in calls):
            return "what attention returns is not put together again"
        return ""

    def _why_not_called(self, call: ast.Call, walk: Walk, direct: bool, masks: list[ast.expr]) -> str:
        """Why one call of all chunks, with a mask, would not do what ``call`` does of each."""
        if not masks and not direct:
            return f"no mask is handed to `{ast.unparse(call.func)}`"
        if len(masks) > 1 or any(not (is_none(m) or self._may_be_none(m)) for m in masks):
            return "there is a mask already"
        causal = [k.value for k in call.keywords if k.arg == "is_causal"] + (call.args[5:6] if direct else [])
        if any(not (isinstance(c, ast.Constant) and c.value is False) for c in causal):
            return "it may be causal"
        for argument in given(call):
            names = {n.id for n in ast.walk(argument) if isinstance(n, ast.Name)}
            if not isinstance(argument, ast.Name) and names & set(walk.names):
                return f"`{ast.unparse(argument)}` changes from chunk to chunk"
        return ""

    def _may_be_none(self, e: ast.expr) -> bool:
        """Whether ``e`` is a parameter that is None unless it is given, and that nobody has bound anew before."""
        found = self.inference.definitions(e) if isinstance(e, ast.Name) else frozenset()
        arguments = self.syntax.parents.get(next(iter(found)).node) if len(found) == 1 else None
        if not isinstance(arguments, ast.arguments) or not isinstance(e, ast.Name):
            return False
        default = defaults(arguments).get(e.id)
        return default is not None and is_none(default)


def _chunks(call: ast.Call, walk: Walk) -> list[ast.Name]:
    return [a for a in given(call) if isinstance(a, ast.Name) and a.id in walk.names]
