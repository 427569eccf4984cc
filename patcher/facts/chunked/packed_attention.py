"""Attention that is computed chunk by chunk, and what would make it one call with a block-diagonal mask."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.checks.caught import Caught
from patcher.facts.chunked.chunks import Chunks, Walk
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.syntax.tree import dotted
from patcher.facts.syntax.written import defaults, given, integer, is_none
from patcher.facts.values.types import Rank

_DIRECT = "torch.nn.functional.scaled_dot_product_attention"
_MASKS = ("attention_mask", "attn_mask", "mask")
_JOINS = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})


@dataclass(frozen=True)
class PackedAttention:
    """Attention over the chunks of ``walk``, the results of which are put together again.

    ``mask``: what stands where the mask goes, ``None`` or a parameter that is None by default. ``direct``: the
    callee is PyTorch's own, and takes a boolean mask. ``weights``: what else it returns is collected as well.
    ``row``: whether the lengths are known to be a row of integers. ``obstacle``: why the calls cannot become one.
    """

    walk: Walk
    call: ast.Call
    mask: ast.expr | None = None
    direct: bool = False
    weights: bool = False
    row: bool = False
    obstacle: str = ""


class PackedAttentions(Analysis):
    """Recognises a call of three chunks in a walk, whose result is collected and concatenated."""

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
        if isinstance(loop, ast.For):
            first = self._appended(loop.body[0]) or getattr(loop.body[0], "value", None)
            call = self._called(first[1] if isinstance(first, tuple) else first)
        else:
            assert isinstance(loop, (ast.ListComp, ast.GeneratorExp))
            call = self._called(loop.elt)
        if call is None or not self._takes(call, walk):
            return None
        direct = self.syntax.qualified(call.func) == _DIRECT
        mask = self._mask(call, direct)
        weights, collected = self._collected(walk, call, direct)
        obstacle = (
            self._why_not_sources(walk, direct)
            or (mask if isinstance(mask, str) else "")
            or self._why_not_arguments(call, walk, direct)
            or collected
        )
        place = None if isinstance(mask, str) else mask
        return PackedAttention(walk, call, place, direct, weights, self.chunks.is_row(walk.first.lengths), obstacle)

    # --- what goes in -----------------------------------------------------------------------------------------------

    def _called(self, e: ast.expr | None) -> ast.Call | None:
        """The call that ``e`` is, or is the first result of."""
        inner = e.value if isinstance(e, ast.Subscript) and self._is_first(e) else e
        return inner if isinstance(inner, ast.Call) else None

    @staticmethod
    def _appended(s: ast.stmt) -> tuple[ast.Name, ast.expr] | None:
        """``x`` and ``y`` of ``x.append(y)``."""
        match s:
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Name() as kept, attr="append"), args=[value], keywords=[])
            ):
                return kept, value
        return None

    def _takes(self, call: ast.Call, walk: Walk) -> bool:
        """Whether the three chunks of a turn are arguments of ``call``, in the order of the walk."""
        return [a.id for a in self._chunks(call, walk)] == list(walk.names)

    def _along_sequence(self, dim: int, source: ast.expr, direct: bool) -> bool:
        """Whether ``dim`` is the last but one, where both kinds of callees have the sequence; four are the rule."""
        if dim in (-2, 2):
            value = self.inference.of(source)
            known = value.rank is not None and value.rank.base is None
            return dim == -2 or not known or value.rank == Rank(None, 4)
        return direct and dim >= 0 and self.inference.of(source).rank == Rank(None, dim + 2)

    def _why_not_sources(self, walk: Walk, direct: bool) -> str:
        statement = self.syntax.statement_of(walk.first.split.call)
        if caught := self.facts.ask(Caught).why(statement, ("RuntimeError",)):
            return caught
        for c in walk.chunks:
            if dotted(c.source) is None or dotted(c.split.tensor) is None:
                return f"`{ast.unparse(c.source)}` would be computed twice"
            if c.split.dim is None or c.split.dim != walk.first.split.dim:
                return "the dimension of the split is not written down"
            if not self._along_sequence(c.split.dim, c.source, direct):
                return "whether the sequence is split is not known"
        first = walk.first
        if first.named and self.facts.ask(Unchanged).why_changed(first.lengths, first.read, first.split.call):
            return "the lengths may have changed since they were read"
        around = [p for p in self.syntax.ancestors(walk.first.split.call) if hasattr(p, "generators")]
        bound = {n.id for p in around for g in p.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        used = [n for e in (walk.first.lengths, walk.first.source) for n in ast.walk(e)]
        if any(isinstance(n, ast.Name) and n.id in bound for n in used):
            return "the lengths change from one list of chunks to the next"
        if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield)) for n in used):
            return "the lengths are bound inside of an expression"
        return ""

    def _mask(self, call: ast.Call, direct: bool) -> ast.expr | str | None:
        """What is in the place of the mask, None without any such argument, or why there is no place for one."""
        masks = [k.value for k in call.keywords if k.arg in (_MASKS[1:2] if direct else _MASKS)]
        masks += call.args[3:4] if direct else []
        if not masks:
            return None if direct else f"no mask is handed to `{ast.unparse(call.func)}`"
        free = is_none(masks[0]) or self._may_be_none(masks[0])
        return masks[0] if free and len(masks) == 1 else "there is a mask already"

    def _may_be_none(self, e: ast.expr) -> bool:
        """Whether ``e`` is a parameter that is None unless it is given, and that nobody has bound anew before."""
        found = self.inference.definitions(e) if isinstance(e, ast.Name) else frozenset()
        arguments = self.syntax.parents.get(next(iter(found)).node) if len(found) == 1 else None
        if not isinstance(arguments, ast.arguments) or not isinstance(e, ast.Name):
            return False
        default = defaults(arguments).get(e.id)
        return default is not None and is_none(default)

    def _why_not_arguments(self, call: ast.Call, walk: Walk, direct: bool) -> str:
        causal = [k.value for k in call.keywords if k.arg == "is_causal"] + (call.args[5:6] if direct else [])
        if any(not (isinstance(c, ast.Constant) and c.value is False) for c in causal):
            return "it may be causal"
        if not causal and not direct and not self._never_causal(call):
            return "whether it is causal is not known"
        if direct and any(k.arg is None for k in call.keywords):
            return "what else is handed over is not known"
        changing = set(walk.names)
        if isinstance(walk.loop, ast.For):
            changing |= {n.id for n in ast.walk(walk.loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for argument in [call.func, *given(call)]:
            if isinstance(argument, ast.Name) and argument.id in walk.names:
                continue
            if any(isinstance(n, ast.Name) and n.id in changing for n in ast.walk(argument)):
                return f"`{ast.unparse(argument)}` changes from chunk to chunk"
        for k in call.keywords:
            if k.arg is not None and self.inference.of(k.value).is_tensor and k.value not in self._chunks(call, walk):
                return f"`{k.arg}` is a tensor"
        if len(call.args) > (6 if direct else 4) or any(isinstance(a, ast.Starred) for a in call.args):
            return "what else is handed over is not known"
        return ""

    def _chunks(self, call: ast.Call, walk: Walk) -> list[ast.Name]:
        return [a for a in given(call) if isinstance(a, ast.Name) and a.id in walk.names]

    def _never_causal(self, call: ast.Call) -> bool:
        """Whether the module that the call is made for says of itself, for good, that it is not causal."""
        method = self.syntax.method_of(call)
        cls = self.syntax.class_of(method) if method is not None else None
        if cls is None or not call.args or not isinstance(call.args[0], ast.Name):
            return False
        stores = self.class_facts(cls).stores.get("is_causal", [])
        said = [s.value for s in stores]
        mine = method is not None and method.args.args and call.args[0].id == method.args.args[0].arg
        return bool(mine and said and all(isinstance(v, ast.Constant) and v.value is False for v in said))

    # --- what comes out ---------------------------------------------------------------------------------------------

    def _collected(self, walk: Walk, call: ast.Call, direct: bool) -> tuple[bool, str]:
        """Whether something besides the first result is kept, and why the results are not known to be put together."""
        if isinstance(walk.loop, ast.For):
            return self._collected_by_loop(walk, call, walk.loop, direct)
        first = self._is_first(walk.loop.elt)
        return self._joined_where(walk.loop, walk, direct, first)

    def _collected_by_loop(self, walk: Walk, call: ast.Call, loop: ast.For, direct: bool) -> tuple[bool, str]:
        assigned, *rest = loop.body
        strange = False, "the loop does more than to collect what attention returns"
        if (at_once := self._appended(assigned)) is not None:
            lists = {"": at_once[0]}
            if rest or (not direct and not self._is_first(at_once[1])) or (direct and at_once[1] is not call):
                return strange
            main = ""
        else:
            if not isinstance(assigned, ast.Assign) or assigned.value is not call or len(assigned.targets) != 1:
                return strange
            target = assigned.targets[0]
            names = [target] if isinstance(target, ast.Name) else target.elts if isinstance(target, ast.Tuple) else []
            lists = {}
            for s in rest:
                kept_value = self._appended(s)
                if kept_value is None or not isinstance(kept_value[1], ast.Name) or kept_value[1].id in lists:
                    return strange
                lists[kept_value[1].id] = kept_value[0]
            if not names or not all(isinstance(n, ast.Name) for n in names) or names[0].id not in lists:  # type: ignore[attr-defined]
                return strange
            main = names[0].id  # type: ignore[attr-defined]
        here = set(ast.walk(loop))
        function = self.syntax.function_of(loop)
        if function is None:
            return strange
        for name in sorted(self.flow_of(function).outliving(here)):
            return False, f"`{name}` of the last chunk is used after the loop"
        kept = lists[main]
        definition = self.chunks.only_definition(kept)
        made, within = definition.part if definition is not None else (None, ())
        if definition is None or within or not isinstance(made, ast.List) or made.elts:
            return strange
        uses = [u for u in self.chunks.uses(definition) if u not in here]
        weights = len(lists) > 1
        for use in uses:
            if (reason := self._why_not_joined(use, walk, direct)) is not None:
                return weights, reason
        return weights, "" if uses else "what attention returns is not put together again"

    def _joined_where(self, e: ast.expr, walk: Walk, direct: bool, first: bool) -> tuple[bool, str]:
        """As `_collected`, for the comprehension ``e``, which is concatenated or given a name."""
        reason = self._why_not_joined(e, walk, direct)
        if reason is None:
            return False, "" if direct or first else "what attention returns is not known"
        parent = self.syntax.parents[e]
        if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or isinstance(e, ast.GeneratorExp):
            return False, reason
        uses, weights = self.readers(parent.targets[0]), False
        if uses is None:
            return False, reason
        for use in uses:
            if direct or first:
                reason = self._why_not_joined(use, walk, direct)
            else:
                firsts = self._firsts(use)
                weights = weights or firsts is None
                if firsts is not None:
                    reason = self._why_not_joined(firsts, walk, direct)
                else:
                    reason = None if self._of_the_rest(use) else "what attention returns is used chunk by chunk"
            if reason is not None:
                return weights, reason
        joined = any(direct or first or self._firsts(use) is not None for use in uses)
        return weights, "" if joined else "what attention returns is not put together again"

    def _firsts(self, use: ast.Name) -> ast.expr | None:
        """``[out[0] for out in use]``, around ``use``."""
        generator = self.syntax.parents[use]
        around = self.syntax.parents[generator] if isinstance(generator, ast.comprehension) else None
        if isinstance(around, (ast.ListComp, ast.GeneratorExp)) and len(around.generators) == 1:
            element, target = around.elt, around.generators[0].target
            if self._is_first(element) and not around.generators[0].ifs and isinstance(target, ast.Name):
                return around if dotted(element.value) == target.id else None  # type: ignore[attr-defined]
        return None

    def _of_the_rest(self, use: ast.Name) -> bool:
        """Whether what is looked at is not the first result: ``use[0][1]`` or ``for _, w in use``."""
        parent = self.syntax.parents[use]
        if isinstance(parent, ast.For):
            return parent.iter is use and isinstance(parent.target, ast.Tuple) and self._ignores_first(parent)
        around = self.syntax.parents[parent]
        return isinstance(parent, ast.Subscript) and isinstance(around, ast.Subscript) and bool(integer(around.slice))

    def _ignores_first(self, loop: ast.For) -> bool:
        assert isinstance(loop.target, ast.Tuple)
        return self.readers(loop.target.elts[0]) == []

    def _why_not_joined(self, e: ast.expr, walk: Walk, direct: bool) -> str | None:
        parent = self.syntax.parents[e]
        if not isinstance(parent, ast.Call) or self.syntax.qualified(parent.func) not in _JOINS:
            return "what attention returns is used chunk by chunk"
        if not parent.args or parent.args[0] is not e:
            return "what attention returns is used chunk by chunk"
        written = [*parent.args[1:2], *(k.value for k in parent.keywords if k.arg in ("dim", "axis"))]
        dim, split = integer(written[0]) if written else 0, walk.first.split.dim
        # attention functions of modules give (batch, length, heads, width) for (batch, heads, length, width)
        if dim is not None and (dim == split or (not direct and (split, dim) in {(2, 1), (-2, 1), (-2, -3), (2, -3)})):
            return None
        return "the results are put together along another dimension than was split"

    def _is_first(self, e: ast.expr) -> bool:
        return isinstance(e, ast.Subscript) and integer(e.slice) == 0
