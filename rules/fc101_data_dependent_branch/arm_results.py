"""Whether what the arms of a branch give is of one form, and what tells it from what the branch gives eagerly."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.aliasing import Aliasing
from patcher.facts.effects.calls import Calls
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.syntax.written import short
from patcher.facts.values.types import Category, Kind, Value
from rules.fc101_data_dependent_branch.arm_names import ArmNames, Arms, surely_bound
from rules.fc101_data_dependent_branch.gradients import Gradients
from rules.fc101_data_dependent_branch.layout import follows_layout
from rules.fc101_data_dependent_branch.refusal import Refused

_WHOLE = frozenset({Category.INT, Category.BOOL})
#: Functions that join tensors, whose gradients are then parts of one.
_JOINING = frozenset("cat concat concatenate stack hstack vstack dstack sum".split())


class ArmResults(Analysis):
    """Results of branches of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.aliasing = facts.ask(Aliasing)
        self.calls = facts.ask(Calls)
        self.gradients = facts.ask(Gradients)
        self.mode = facts.ask(GradientMode)
        self.names = facts.ask(ArmNames)

    def doubts(self, arms: Arms) -> list[str]:
        """What has to be granted for all names to hold tensors, of one form whichever arm runs. Raises Refused."""
        unsure: list[str] = []
        for name in dict.fromkeys((*arms.results, *arms.operands)):
            held = self._held(name, arms)
            if any(v.kind is not Kind.UNKNOWN and not v.is_tensor for v in held) or self._may_be_none(name, arms):
                raise Refused(f"`{name}` is no tensor, or not always one")
            if any(v.kind is Kind.UNKNOWN for v in held):
                unsure.append(name)
            if name in arms.results:
                _same_form(name, held)
        found = [f"{listed(unsure)} {'is a tensor' if len(unsure) == 1 else 'are tensors'}"] if unsure else []
        found.append(f"{listed(arms.results)} {_verb(arms.results, 'has', 'have')} one shape and dtype in both cases")
        copied = [name for name in arms.results if self._is_told_from_copy(name, arms)]
        if copied:
            found.append(
                f"nobody asks whether {listed(copied)} {_verb(copied, 'is', 'are')} another tensor than before"
            )
        if not self.mode.off(arms.node):
            self._backward(arms)
            found.append(
                "what only the arm not taken reads may get a gradient of zeros rather than none, and "
                f"{listed(arms.results)} may require one where {_verb(arms.results, 'it', 'they')} did not"
            )
        return found

    def spread(self, arms: Arms) -> list[str]:
        """Results whose elements may lie in memory in another order in the one case than in the other."""
        return [name for name in arms.results if not self._lies_alike(name, arms)]

    def may_exist(self, name: str, body: list[ast.stmt], given: Sequence[ast.If]) -> bool:
        """Whether what ``name`` holds at the end of an arm may be a tensor that was there before, or a view of one.

        ``given``: branches in the arm that give ``name``, as new tensors.
        """
        if not given and not surely_bound(name, body):
            return True
        inside = {n for node in given for n in self.syntax.subtree(node)}
        definitions = [d for d in self.names.definitions(name, body) if d.node not in inside]
        return any(
            d.how != "assign" or d.path or d.value is None or self.aliasing.aliases(d.value) for d in definitions
        )

    def _held(self, name: str, arms: Arms) -> list[Value]:
        before = [self.inference.of(arms.before[name])] if name in arms.operands else []
        made = [d for body in arms.bodies for d in self.names.definitions(name, body)]
        return before + [self.inference.defined(d) for d in made]

    def _may_be_none(self, name: str, arms: Arms) -> bool:
        """Whether the function asks somewhere if ``name`` is None, or takes that for a parameter of the name."""
        function = self.syntax.function_of(arms.node)
        assert function is not None
        args = function.args
        positional = [*args.posonlyargs, *args.args]
        given = [*zip(reversed(positional), reversed(args.defaults), strict=False)]
        given += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]
        if any(a.arg == name and _is_none(d) for a, d in given):
            return True
        noted = next((a.annotation for a in (*positional, *args.kwonlyargs) if a.arg == name), None)
        if noted is not None and any(word in ast.unparse(noted) for word in ("Optional", "None")):
            return True
        asked = (
            n for n in self.syntax.subtree(function) if isinstance(n, ast.Compare) and isinstance(n.left, ast.Name)
        )
        return any(n.left.id == name and any(map(_is_none, n.comparators)) for n in asked)  # type: ignore[attr-defined]

    # --- layout -----------------------------------------------------------------------------------------------------

    def _lies_alike(self, name: str, arms: Arms) -> bool:
        made = [d for body in arms.bodies for d in self.names.definitions(name, body)]
        if any(v.rank is not None and v.rank.base is None and v.rank.offset <= 1 for v in self._held(name, arms)):
            return True
        values = [d.value for d in made if d.how == "assign" and not d.path and d.value is not None]
        named = (n.id for v in values[:1] for n in ast.walk(v) if isinstance(n, ast.Name))
        one = [name] if len(arms.bodies) == 1 else [*named]
        return len(values) == len(made) and any(all(follows_layout(v, n, self._is_scalar) for v in values) for n in one)

    def _is_scalar(self, e: ast.expr) -> bool:
        """Whether ``e`` is a number, or a tensor with no dimension."""
        held = self.inference.of(e)
        return held.is_number or held.is_scalar_tensor

    # --- copies -----------------------------------------------------------------------------------------------------

    def _is_told_from_copy(self, name: str, arms: Arms) -> bool:
        """Whether ``name`` may hold what others hold as well, in one case: there it gets a copy.

        Refuses where the one or the other is changed in place then, or a gradient would not get through the copy.
        """
        node, function = arms.node, self.syntax.function_of(arms.node)
        assert function is not None
        before = arms.before[name] if name in arms.operands else None
        made = [d for body in arms.bodies for d in self.names.definitions(name, body)]
        values = [*filter(None, [before]), *(d.value for d in made if d.how == "assign" and d.value is not None)]
        held = [*made, *(self.inference.definitions(before) if isinstance(before, ast.Name) else ())]
        uses = {u: d for d in held for u in self.flow_of(function).uses.get(d, ()) if self._comes_after(u, node)}
        leaves = any(self.mode.changes_between(node, u) or self._is_returned(u) for u in uses)
        if self.mode.may_be_off(node) and leaves:
            carrying = (v for v in values if self.aliasing.aliases(v) and self.gradients.carries(v))
            if (v := next(carrying, None)) is not None:
                raise Refused(f"`{short(v)}` may carry a gradient out of here")
        existing = [v for v in values if not self.aliasing.fresh(v, node, name)]
        sources = [e for v in existing for e in self._given_by(v)]
        for use, d in uses.items() if existing else ():
            if self.aliasing.is_changed_by(use):
                raise Refused(f"`{name}` may be changed in place, and may be an existing tensor")
            if isinstance(self.syntax.parents[use], ast.Assign) and self.aliasing.shares(use):
                raise Refused(f"`{name}` gets another name, and may be an existing tensor")
            if reason := self.aliasing.changed_while_used(sources, node, d):
                raise Refused(reason)
        return bool(existing)

    def _is_returned(self, use: ast.Name) -> bool:
        """Whether a caller may get what ``use`` gives, and not just what is computed of it."""
        computed = isinstance(
            self.syntax.parents[self.aliasing.through_views(use)], (ast.BinOp, ast.UnaryOp, ast.Compare)
        )
        return isinstance(self.syntax.statement_of(use), ast.Return) and not computed

    def _comes_after(self, use: ast.Name, node: ast.If) -> bool:
        """Whether ``use``, which is none of ``node``, may run when that is done."""
        around = list(self.syntax.ancestors(use))
        if node in around:
            return False
        loops = (p for p in self.syntax.ancestors(node) if isinstance(p, (ast.For, ast.AsyncFor, ast.While)))
        return any(loop in around for loop in loops) or (use.lineno, use.col_offset) > (node.lineno, node.col_offset)

    def _given_by(self, value: ast.expr) -> list[ast.expr]:
        """What was there before and ``value`` may be, or be a view of: what a call was given, say."""
        if isinstance(value, ast.Call):
            return [e for given in self.calls.of(value).gives for e in self._given_by(given)]
        return [value] if self.aliasing.aliases(value) else []

    # --- gradients --------------------------------------------------------------------------------------------------

    def _backward(self, arms: Arms) -> None:
        """Refuse what the backward pass of ``torch.cond`` does not take: PyTorch 2.13."""
        if len(arms.results) < 2:
            return
        function = self.syntax.function_of(arms.node)
        assert function is not None
        categories = [{v.dtype.category for v in self._held(n, arms) if v.dtype is not None} for n in arms.results]
        if 0 < sum(bool(c & _WHOLE) for c in categories) < len(categories):
            raise Refused(f"{listed(arms.results)} have gradients and have none")
        for n in _joints(self.syntax.subtree(function)):
            names = {m.id for m in ast.walk(n) if isinstance(m, ast.Name)}
            if len(names & {*arms.results}) > 1 and n.lineno > arms.node.lineno:
                raise Refused(f"the results meet in `{short(n)}`, and get one gradient there")


def _joints(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """Where tensors are added up or joined."""
    for n in nodes:
        match n:
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                yield n
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _JOINING:
                yield n


def _same_form(name: str, held: list[Value]) -> None:
    """Refuse where what ``name`` holds is seen to be of different dtypes or ranks."""
    dtypes = [v.dtype for v in held if v.dtype is not None]
    categories = {d.category for d in dtypes} - {Category.UNKNOWN}
    if len(dtypes) < len(held) or any(d.category is Category.UNKNOWN for d in dtypes):
        categories.add(Category.FLOAT)  # as is presumed of a tensor of which nothing is known
    written = {d.which for d in dtypes if isinstance(d.which, str)}
    ranks = [v.rank for v in held if v.rank is not None]
    if len(categories) > 1 or len(written) > 1 or any(a.minus(b) for a in ranks for b in ranks):
        raise Refused(f"`{name}` has another dtype or number of dimensions in the other case")


def listed(names: Iterable[str]) -> str:
    """``a``, ``b`` and ``c``, as they are written."""
    written = [f"`{n}`" for n in names]
    return " and ".join([", ".join(written[:-1]), written[-1]] if written[2:] else written)


def _verb(names: Sequence[str], one: str, many: str) -> str:
    return one if len(names) == 1 else many


def _is_none(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and e.value is None
