"""An ``if`` that only skips choices which would choose what there is: ``if mask.any(): x = torch.where(mask, v, x)``.

What is worked out on the way, in names that nothing else reads, is worked out in any case then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.totality import Effects
from patcher.facts.syntax.written import short
from patcher.facts.values.types import UNKNOWN, Category, Kind, Value, broadcast, promote
from rules.fc101_data_dependent_branch.gradients import Gradients
from rules.fc101_data_dependent_branch.set_places import all_set, cannot_fail, none_set
from rules.fc101_data_dependent_branch.skipped_work import SkippedWork, named
from rules.fc101_data_dependent_branch.skipped_writes import SkippedWrites, SkippingTests, written

_ORDER = (Category.BOOL, Category.INT, Category.FLOAT)
#: How reasons end that are no more than that.
_CHANGED = "is changed in place"
_ZERO = "in place of none"
_ZEROS = "what is trained may get a gradient of zeros rather than none"


@dataclass(frozen=True)
class _Kept:
    """``into = torch.where(mask, value, into)``, which has the places of ``into`` where nothing is set.

    ``filled``: it is spelled as ``masked_fill``, which keeps the dtype whatever ``value`` is.
    """

    target: ast.Name
    into: ast.Name
    mask: ast.expr
    value: ast.expr
    filled: bool = False


@dataclass(frozen=True)
class _Known:
    """What is known on the way through an arm.

    ``masks``: how one may be spelled that has no place set. ``spread``: what names of the arm hold that are one.
    ``worked``: what is worked out.
    """

    masks: frozenset[str]
    spread: dict[str, ast.expr]
    worked: tuple[ast.expr, ...] = ()


class SkippedChoices(Analysis):
    """Such tests of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.effects = facts.ask(Effects)
        self.gradients = facts.ask(Gradients)
        self.mode = facts.ask(GradientMode)
        self.skipping = facts.ask(SkippingTests)
        self.work = facts.ask(SkippedWork)

    def of(self, node: ast.If) -> SkippedWrites | None:
        """What ``node`` skips when nothing is set; None when it does more than that, as far as can be told."""
        asked = self.skipping.asked(node, strict=False)
        if asked is None:
            return None
        reading, masks = asked
        known, passing = _Known(masks, {}), self._passing(node)
        doubts: dict[str, None] = {}
        chosen = 0
        for s in node.body:
            if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant):
                continue
            if (assigned := _assigned(s)) is not None and assigned[0] <= passing:
                if not self.work.may_be_done(assigned[1], known.masks):
                    return None
                known = self._after(known, *assigned)
                continue
            kept = self._kept(s, known.masks)
            if kept is not None:
                known = replace(known, worked=(*known.worked, kept.value, kept.mask))
                found = self._chosen(kept, known, node)
            else:
                found = self._written(s, known, node)
            if found is None:
                return None
            chosen += not isinstance(s, ast.Pass)
            doubts |= dict.fromkeys(found)
        if not chosen:
            return None
        return SkippedWrites(reading, (*self._not_total(known), *doubts, *self._saved(known, node)))

    # --- names of the arm -------------------------------------------------------------------------------------------

    def _passing(self, node: ast.If) -> set[str]:
        """The names that this arm alone reads, each after it has got a value there."""
        function = self.syntax.function_of(node)
        if function is None:
            return set()
        flow = self.flow_of(function)
        inside = {n for s in node.body for n in ast.walk(s)}
        names = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        names -= flow.outliving(inside) | flow.captured | flow.shared | flow.deleted
        read = [n for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        # in a loop, it may be from the turn before
        return names - {n.id for n in read if len({d.node in inside for d in flow.reaching.get(n, ())}) != 1}

    def _after(self, known: _Known, names: frozenset[str], value: ast.expr) -> _Known:
        """What is known when ``names`` hold ``value``, or its parts."""
        masks = frozenset(m for m in known.masks if not names & named([ast.parse(m, mode="eval")]))
        spread = {n: e for n, e in known.spread.items() if n not in names and not names & named([e])}
        if len(names) == 1:
            (name,) = names
            if none_set(value, known.masks, self.syntax.qualified):
                masks, spread = masks | {name}, spread | {name: value}
            elif all_set(value, known.masks, self.syntax.qualified):
                masks, spread = masks | {f"~{name}"}, spread | {name: value}
        return _Known(masks, spread, (*known.worked, value))

    def _written(self, s: ast.stmt, known: _Known, node: ast.If) -> list[str] | None:
        """What has to be granted for ``s`` to write nothing, its value having been worked out."""
        granted = self.skipping.write(s, known.masks, node)
        match s:
            case ast.Assign(targets=[ast.Subscript(value=into)], value=value):
                pass
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=into), args=[_, value])):
                pass
            case _:
                return granted
        passed = self._passed(value, into, known, node)
        return [*granted, *passed] if granted is not None and passed is not None else None

    # --- choices ----------------------------------------------------------------------------------------------------

    def _kept(self, s: ast.stmt, masks: frozenset[str]) -> _Kept | None:
        """``s`` as a choice that keeps what a name holds where nothing is set."""
        match s:
            case ast.Assign(targets=[ast.Name() as target], value=ast.Call(func=func, args=args, keywords=[])):
                what = self.syntax.qualified(func)
                if what is None and isinstance(func, ast.Attribute):
                    what, args = f"torch.{func.attr}", [func.value, *args]
                    if func.attr == "where" and len(args) == 3:
                        args = [args[1], args[0], args[2]]
            case _:
                return None
        qualified = self.syntax.qualified
        match what, args:
            case "torch.where", [mask, value, ast.Name() as into] if none_set(mask, masks, qualified):
                kept = _Kept(target, into, mask, value)
            case "torch.where", [mask, ast.Name() as into, value] if all_set(mask, masks, qualified):
                kept = _Kept(target, into, mask, value)
            case "torch.masked_fill", [ast.Name() as into, mask, value] if none_set(mask, masks, qualified):
                kept = _Kept(target, into, mask, value, filled=True)
            case _:
                return None
        return kept if kept.into.id == target.id else None

    def _chosen(self, kept: _Kept, known: _Known, node: ast.If) -> list[str] | None:
        """What has to be granted for ``kept`` to choose what there is; None where it may do more."""
        into, held, value = kept.into, self.inference.of(kept.into), self.inference.of(kept.value)
        if not (held.is_tensor or held == UNKNOWN) or self.effects.why_not_total(into) is not None:
            return None
        if value.kind is Kind.MODULE or (value.kind is Kind.PYTHON and not value.is_number):
            return None
        if self.skipping.loses_gradient(into, kept.target, node):
            return None
        if not all(self.work.may_be_done(e, known.masks) for e in (kept.mask, kept.value)):
            return None
        fits, passed = self._fits(kept, known, held, value), self._passed(kept.value, into, known, node)
        told = self._told(kept, node)
        if fits is None or passed is None or told is None:
            return None
        granted = [] if held.is_tensor else [f"`{into.id}` is a tensor"]
        if not self.presumed.boolean(kept.mask):
            if self._category(kept.mask) in _ORDER:
                return None  # it raises, which nobody sees as long as nothing is set
            granted.append(f"`{short(kept.mask)}` is boolean")
        elif not self.presumed.sure(kept.mask, self.inference):
            granted.append(f"`{short(kept.mask)}` is a tensor")
        return [*granted, *fits, *passed, *told]

    def _category(self, e: ast.expr) -> Category | None:
        dtype = self.presumed.of(e).dtype
        return dtype.category if dtype is not None else None

    def _fits(self, kept: _Kept, known: _Known, held: Value, value: Value) -> list[str] | None:
        """What has to be granted for dtype and shape to stay as they are; None where they do not."""
        name, given, mask = f"`{kept.into.id}`", f"`{short(kept.value)}`", kept.mask
        if isinstance(mask, ast.Name):
            mask = known.spread.get(mask.id, mask)
        if any(_more_dimensions(v, held) for v in (value, self.presumed.of(kept.mask))):
            return None
        spread = [] if self.skipping.fits(kept.into, mask) else [f"`{short(kept.mask)}`"]
        number = value.is_number and self.effects.is_number(kept.value)
        if kept.filled and number:
            granted = self.skipping.value(kept.value, kept.into) or []
        elif kept.filled:
            same = held.dtype is not None and value.dtype is not None and held.dtype.same(value.dtype)
            granted = [] if same and value.is_scalar_tensor else [f"{given} fits the dtype of {name}"]
        else:
            together = promote(held, value)
            if _outranks(value, held):
                return None  # what is there would be converted
            kept_dtype = held.dtype is not None and together is not None and together.same(held.dtype)
            granted = [] if kept_dtype else [f"{given} leaves {name} the dtype that it has"]
            if not (number or (held.shape is not None and broadcast(held, value)[1] == held.shape)):
                spread.append(given)
        if spread:
            granted.append(f"{' and '.join(spread)} fit{'' if len(spread) > 1 else 's'} into the shape of {name}")
        return granted

    def _told(self, kept: _Kept, node: ast.If) -> list[str] | None:
        """What has to be granted where somebody may tell the new tensor from the old one; None where it is changed."""
        function, name = self.syntax.function_of(node), kept.into.id
        definition = self.flow_of(function).by_node.get(kept.target) if function is not None else None
        if function is None or definition is None or self.effects.fresh(kept.into, node, name):
            return []
        reason = self.effects.escapes(definition, function)
        changed = reason is not None and reason.endswith(_CHANGED)
        if changed or self.effects.changed_while_used([kept.into], node, definition) is not None:
            return None  # what others hold would not change any more, or would
        return [f"nobody asks whether `{name}` is still the same tensor ({reason})"] if reason is not None else []

    # --- gradients --------------------------------------------------------------------------------------------------

    def _passed(self, value: ast.expr, into: ast.expr, known: _Known, node: ast.If) -> list[str] | None:
        """What has to be granted of gradients; None where one is NaN for sure where nothing is set."""
        if (
            self._category(into) in (Category.INT, Category.BOOL)
            or self.mode.off(node)
            or not self.gradients.carries(value)
        ):
            return []
        for e in (value, *known.worked):
            if (steep := self._why_steep(e)) is not None:
                if self.work.counts(e, known.masks):
                    return None  # 0 over the number of places, say
                return [f"no gradient of `{short(into)}` turns NaN, although {steep}", _ZEROS]
        reason = self.gradients.why_not_alike([ast.Tuple([value, into], ast.Load()), into])
        if reason is None or reason.endswith(_ZERO):
            return [] if reason is None else [_ZEROS]
        return [f"no gradient of `{short(into)}` turns NaN, although {reason}", _ZEROS]

    def _why_steep(self, e: ast.expr) -> str | None:
        """What may make a gradient through ``e`` infinite; that there is one is no reason."""
        parts = (n for n in ast.walk(e) if isinstance(n, ast.expr)) if self.gradients.carries(e) else ()
        reasons = (self.gradients.why_not_smooth(n) for n in parts)
        return next((r for r in reasons if r is not None and not r.endswith(_ZERO)), None)

    def _saved(self, known: _Known, node: ast.If) -> list[str]:
        """What has to be granted where a backward pass may need what is written later."""
        read = (n for e in known.worked for n in ast.walk(e) if isinstance(n, ast.Name))
        for n in read:
            if not self.inference.of(n).is_number and (changed := self.mode.why_saved_changes(n, node)):
                return [f"no backward pass needs `{n.id}` as it was, and {changed}"]
        return []

    def _not_total(self, known: _Known) -> list[str]:
        """What has to be granted for the work to be done where nothing is set."""
        parts = [
            short(e)
            for e in known.worked
            if not (cannot_fail(e, known.masks) or written(e, self.syntax) is not None)
            and self.effects.why_not_total(e) is not None
        ]
        return [f"{_listed(dict.fromkeys(parts))} can be worked out where nothing is set"] if parts else []


def _assigned(s: ast.stmt) -> tuple[frozenset[str], ast.expr] | None:
    """The names that ``s`` gives a value, and that value."""
    match s:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return frozenset({name}), value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return frozenset({name}), value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            return (frozenset(names), value) if len(names) == len(targets) else None
    return None


def _outranks(value: Value, held: Value) -> bool:
    """Whether ``value`` is known to be of a higher category than ``held``, which is converted where both meet."""
    mine = {"bool": Category.BOOL, "int": Category.INT, "size": Category.INT, "float": Category.FLOAT}.get(value.python)
    mine = value.dtype.category if value.dtype is not None else mine
    other = held.dtype.category if held.dtype is not None else None
    return mine in _ORDER and other in _ORDER and _ORDER.index(mine) > _ORDER.index(other)


def _more_dimensions(value: Value, held: Value) -> bool:
    """Whether ``value`` is known to have more dimensions than ``held``, which gets as many where both meet."""
    if value.rank is None or held.rank is None:
        return False
    return (value.rank.minus(held.rank) or 0) > 0


def _listed(parts: Iterable[str]) -> str:
    *most, last = [f"`{p}`" for p in parts]
    return f"{', '.join(most)} and {last}" if most else last
