"""FC101: a branch on the data of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from patcher.facts import Arm, Assigned, Condition, Facts, Junction, Leaf, Negation, Tensor, Value
from patcher.rule import Code, Example, Finding, Fix, NearMiss, Replace, ReplaceStatements, block


class DataDependentBranch:
    """An ``if`` (or ``elif``, conditional expression, early return) whose test is a tensor.

    What it does:
        Evaluates both arms and picks the result with ``torch.where``. The condition is evaluated once; a Python part of
        it (``self.training and ...``) stays a Python ``if``.

    Why it breaks compilation:
        The test needs the tensor's value while Dynamo is tracing, before there is one. The graph ends there, and inside
        of a loop, ``try`` or user context manager the whole frame is dropped.

    Fix safety:
        Safe when it is proven that both arms can be evaluated on any input (no effect, no error, no random numbers),
        hold tensors of one shape and dtype, and that no gradient of the untaken arm can be infinite or NaN (or that
        gradients are off), and that the result, where an arm is an existing tensor, is not handed on or changed in
        place. A condition with one element that is not known to be 0-d is reshaped to ``()``, which raises for more
        elements just as ``if`` does. Activations are taken to be finite where gradients are concerned. A tensor of unknown dtype that meets float arithmetic in one arm is taken to be floating;
        otherwise the original's dtype would depend on its data. Anything else is reported and left alone.

    References:
        The rotary-embedding fix of the nanoVLM report; PyTorch, "Data-dependent control flow" (graph break GB0170).
    """

    code: ClassVar[str] = "FC101"
    name: ClassVar[str] = "data-dependent-branch"
    triggers: ClassVar[tuple[bytes, ...]] = (b"if ", b"if(")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.If, ast.IfExp)
    fixed_in: ClassVar[tuple[int, int] | None] = None
    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when its test is a tensor in code that gets compiled."""
        assert isinstance(node, (ast.If, ast.IfExp))
        if not facts.conditions.reads_data(node.test) or not facts.reached(node) or facts.eager_only(node):
            return
        if _is_elif(node, facts):
            return
        outcome = _fix(node, facts)
        message = "a branch on tensor data ends the graph"
        if isinstance(outcome, Fix):
            yield Finding(node, message, outcome)
        else:
            yield Finding(node, message, assumption=outcome)

    invalid: ClassVar[tuple[Example, ...]] = (
        Example(
            title="two arms and a temporary, without gradients",
            before='''\
class Angles(nn.Module):
    def __init__(self):
        super().__init__()
        self.longest = 4
        self.register_buffer("frequencies", torch.linspace(1, 2, 3))

    @torch.no_grad()
    def forward(self, positions):
        end = positions.max() + 1
        # stretch what is longer than what was trained on
        if end > self.longest:
            stretch = end / self.longest
            frequencies = self.frequencies / stretch
        else:
            frequencies = self.frequencies  # as trained
        return positions.unsqueeze(-1) * frequencies
''',
            after='''\
class Angles(nn.Module):
    def __init__(self):
        super().__init__()
        self.longest = 4
        self.register_buffer("frequencies", torch.linspace(1, 2, 3))

    @torch.no_grad()
    def forward(self, positions):
        end = positions.max() + 1
        # stretch what is longer than what was trained on
        stretch = end / self.longest
        frequencies = torch.where(end > self.longest, self.frequencies / stretch, self.frequencies)  # as trained
        return positions.unsqueeze(-1) * frequencies
''',
            run='''\
def make(): return Angles()
calls = [(torch.arange(n),) for n in (3, 4, 5, 9)]
''',
        ),
        Example(
            title="one arm, and a Python flag that stays a test",
            before='''\
class Bounded(nn.Module):
    def forward(self, x):
        y = x * 2
        if self.training and not torch.isfinite(y).all():
            # leave some room
            top = torch.finfo(y.dtype).max - 1000
            y = torch.clamp(y, min=-top, max=top)
        return y + 1
''',
            after='''\
class Bounded(nn.Module):
    def forward(self, x):
        y = x * 2
        # leave some room
        if self.training:
            top = torch.finfo(y.dtype).max - 1000
            y = torch.where(torch.isfinite(y).all(), y, torch.clamp(y, min=-top, max=top))
        return y + 1
''',
            run='''\
def make(): return Bounded().train()
calls = [(torch.linspace(-1, 1, 6),), (torch.tensor([1.0, float("inf")]),)]
''',
        ),
        Example(
            title="elif chain with a Python test in it",
            before='''\
class Steps(nn.Module):
    def forward(self, x):
        size = x.abs().mean()
        if size > 2:
            y = x * 0.5
        elif self.training:
            y = x * 3
        elif size > 1:  # in between
            y = x - 1
        else:
            y = x + 1
        return y * 2
''',
            after='''\
class Steps(nn.Module):
    def forward(self, x):
        size = x.abs().mean()
        # in between
        y = torch.where(size > 2, x * 0.5, x * 3 if self.training else torch.where(size > 1, x - 1, x + 1))
        return y * 2
''',
            run='''\
def make(): return Steps().eval()
calls = [(torch.linspace(-1, 1, 6) * k,) for k in (1.0, 3.0, 9.0)]
''',
        ),
        Example(
            title="two names: the condition is evaluated once",
            before='''\
class Edges(nn.Module):
    def forward(self, x):
        if (x > 2).any():
            low, high = x - 1, x + 1
        else:
            low = x
            high = x * 3
        return low * high
''',
            after='''\
class Edges(nn.Module):
    def forward(self, x):
        _condition = (x > 2).any()
        low = torch.where(_condition, x - 1, x)
        high = torch.where(_condition, x + 1, x * 3)
        return low * high
''',
            run='''\
def make(): return Edges()
calls = [(torch.linspace(-1, 1, 6).view(2, 3) * k,) for k in (1.0, 9.0)]
''',
        ),
        Example(
            title="early return, trained",
            before='''\
class Squash(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        if (h > 1).any() or (h < -1).any():
            return h.tanh()
        return h.sigmoid()
''',
            after='''\
class Squash(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        return torch.where((h > 1).any() | (h < -1).any(), h.tanh(), h.sigmoid())
''',
            run='''\
def make(): return Squash()
calls = [(torch.linspace(-1, 1, 8).view(2, 4) * k,) for k in (1.0, 9.0)]
train = True
''',
        ),
        Example(
            title="conditional expression; a threshold that may have a shape",
            before='''\
class Gate(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, x):
        scale = x * 2 if x.mean() > self.limit else x * 3
        return x + scale
''',
            after='''\
class Gate(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, x):
        scale = torch.where((x.mean() > self.limit).reshape(()), x * 2, x * 3)
        return x + scale
''',
            run='''\
def make(): return Gate(torch.tensor([1.0]))
calls = [(torch.linspace(-1, 1, 6) * k,) for k in (1.0,)] + [(torch.linspace(1, 2, 6),)]
''',
        ),
        Example(
            title="an attribute of the module",
            before='''\
class Peak(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("gain", torch.ones(3))

    @torch.no_grad()
    def forward(self, x):
        if x.sum() > 3:
            self.gain = self.gain * 0.5
        else:
            self.gain = self.gain * 2
        return x * self.gain
''',
            after='''\
class Peak(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("gain", torch.ones(3))

    @torch.no_grad()
    def forward(self, x):
        self.gain = torch.where(x.sum() > 3, self.gain * 0.5, self.gain * 2)
        return x * self.gain
''',
            run='''\
def make(): return Peak()
calls = [(torch.ones(2, 3) * k,) for k in (1.0, 0.1, 2.0)]
''',
        ),
        Example(
            title="a branch that only checks is reported",
            before='''\
class Checked(nn.Module):
    def forward(self, ids):
        if ids.max() > 9:
            raise ValueError("no such word")
        return ids + 1
''',
            after=None,
            run='''\
def make(): return Checked()
calls = [(torch.tensor([1, 2]),), (torch.tensor([1, 10]),)]
''',
        ),
    )
    valid: ClassVar[tuple[NearMiss, ...]] = (
        NearMiss(
            title="a side effect in the arm",
            source='''\
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.hits = 0

    def forward(self, x):
        y = x
        if x.max() > 2:
            self.hits += 1
            y = x / 2
        return y, self.hits
''',
            reported=True,
        ),
        NearMiss(
            title="arms of two dtypes",
            source='''\
class Rounded(nn.Module):
    def forward(self, x):
        if x.max() > 2:
            y = x.long()
        else:
            y = x
        return y + 1
''',
            reported=True,
        ),
        NearMiss(
            title="the gradient of the arm that is not taken is infinite",
            source='''\
class Root(nn.Module):
    def forward(self, x):
        s = x.sum()
        if s > 0:
            y = s.sqrt()
        else:
            y = s * 0
        return y + 1
''',
            reported=True,
        ),
        NearMiss(
            title="an integer division that only one arm can make",
            source='''\
class Share(nn.Module):
    def forward(self, x):
        n = (x > 2).sum()
        if n > 0:
            k = x.numel() // n
        else:
            k = n
        return k + 1
''',
            reported=True,
        ),
        NearMiss(
            title="random numbers would be drawn in both cases",
            source='''\
class Noisy(nn.Module):
    def forward(self, x):
        if x.mean() > 0:
            x = x + torch.randn_like(x)
        return x * 2
''',
            reported=True,
        ),
        NearMiss(
            title="the condition has one element, but a shape",
            source='''\
class Shaped(nn.Module):
    def forward(self, x):
        m = x.max(dim=0, keepdim=True).values
        if m > 2:
            y = x.sum()
        else:
            y = x.mean()
        return y + 1
''',
            reported=True,
        ),
        NearMiss(
            title="Python numbers",
            source='''\
class Repeated(nn.Module):
    def forward(self, x):
        if x.max() > 2:
            k = 2
        else:
            k = 1
        return x.repeat(k, 1)
''',
            reported=True,
        ),
        NearMiss(
            title="the arm that is not taken hands on its input",
            source='''\
class Passed(nn.Module):
    def forward(self, x):
        if x.abs().max() > 1:
            x = x / 2
        return x
''',
            reported=True,
        ),
        NearMiss(
            title="shapes that need not fit in the other case",
            source='''\
class Fitted(nn.Module):
    def forward(self, x, y):
        if (x.sum() > 0) and (y.sum() > 0):
            z = x + y
        else:
            z = x * 2
        return z + 1
''',
            reported=True,
        ),
        NearMiss(
            title="a parameter would get a zero gradient in place of none",
            source='''\
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        if x.sum() > 0:
            y = x * self.scale
        else:
            y = x * 2
        return y + 1
''',
            reported=True,
        ),
        NearMiss(
            title="a test on the size is no test on data",
            source='''\
class Sized(nn.Module):
    def forward(self, x):
        if x.shape[0] > 2 or x.dim() == 1:
            x = x * 2
        return x + 1
''',
        ),
        NearMiss(
            title="only eager code passes here",
            source='''\
class Guarded(nn.Module):
    def forward(self, x):
        y = x + 1
        if not torch.compiler.is_compiling():
            if y.max() > 2:
                y = y * 2
        return y
''',
        ),
    )


def _is_elif(node: ast.If | ast.IfExp, facts: Facts) -> bool:
    parent = facts.syntax.parents[node]
    return isinstance(parent, ast.If) and parent.orelse == [node] and parent.col_offset == node.col_offset


def _fix(node: ast.If | ast.IfExp, facts: Facts) -> Fix | str:
    where = facts.spelled("torch.where", node)
    merge = _Merge(facts, node, where or "torch.where")
    try:
        edits = merge.ternary(node) if isinstance(node, ast.IfExp) else merge.statement(node)
    except _Refused as refusal:
        return str(refusal)
    return Fix((edits,), imports=() if where else ("torch",))


class _Refused(Exception):
    """There is no proof; the text says what is missing."""


@dataclass(frozen=True)
class _Choice:
    """What one name holds after the branch: an expression of the source, or a choice by a condition."""

    value: ast.expr
    condition: Condition | ast.expr | None = None
    orelse: "_Choice | None" = None


class _Merge:
    """Turns one branch into ``torch.where`` calls, or raises ``_Refused``."""

    def __init__(self, facts: Facts, node: ast.If | ast.IfExp, where: str) -> None:
        self.facts = facts
        self.node = node
        self.where = where
        self.names: dict[Condition, str] = {}

    # --- the three forms --------------------------------------------------------------------------------------------

    def ternary(self, node: ast.IfExp) -> Replace:
        condition = self.condition(node.test)
        choice = _Choice(node.body, condition, _Choice(node.orelse))
        self.prove([choice])
        for arm in (node.body, node.orelse):
            if not self.facts.effects.fresh(arm):
                self.stays_here(node)
        return Replace(node, self.code(choice))

    def statement(self, node: ast.If) -> ReplaceStatements:
        following = self.facts.syntax.following(node)[:1]
        if node.body and isinstance(node.body[-1], ast.Return):
            return self.early_return(node, node.orelse or following)
        arms, choices = self.arms(node)
        order = list(dict.fromkeys(name for arm in arms for name in arm.order))
        in_order = self.facts.branches.in_order(arms, order)
        if not order:
            raise _Refused("the arms assign nothing that is used later")
        if in_order is False:
            raise _Refused("an arm reads both an old and a new value of what it assigns")
        self.prove(list(choices.values()))
        for arm in arms:
            for assigned in arm.results.values():
                self.may_be_merged(assigned)
        guard = self.guard(node, choices)
        if guard is not None:
            choices = {n: _Choice(c.value, Condition(guard.tensor), c.orelse) for n, c in choices.items()}
        lines = self.shared_conditions(list(choices.values()))
        lines += [self.assignment(t) for arm in arms for t in arm.temporaries]
        pairs = [(_target(arms, name), self.code(choices[name])) for name in order]
        if in_order:
            lines += [Code("{0} = {1}", (t, c)) for t, c in pairs]
        else:
            left = ", ".join(f"{{{i}}}" for i in range(len(pairs)))
            right = ", ".join(f"{{{i + len(pairs)}}}" for i in range(len(pairs)))
            lines.append(Code(f"{left} = {right}", (*(t for t, _ in pairs), *(c for _, c in pairs))))
        if guard is not None:
            joint = " and ".join(f"{{{i}}}" for i in range(len(guard.guard)))
            lines = [block(Code(f"if {joint}:", guard.guard), lines)]
        return ReplaceStatements((node,), tuple(lines))

    def guard(self, node: ast.If, choices: dict[str, _Choice]) -> Condition | None:
        """The condition when its Python part can stay an ``if`` around the rest: ``a and t`` without another arm."""
        conditions = {c.condition for c in choices.values()}
        condition = conditions.pop()
        one_armed = not node.orelse and not conditions
        if one_armed and isinstance(condition, Condition) and condition.guard and condition.conjunction:
            return condition
        return None

    def early_return(self, node: ast.If, rest: list[ast.stmt]) -> ReplaceStatements:
        if len(rest) != 1 or not isinstance(rest[0], ast.Return):
            raise _Refused("the function goes on after this early return")
        taken, other = node.body[-1], rest[0]
        assert isinstance(taken, ast.Return)
        arm = self.arm(node.body[:-1])
        if arm.results:
            raise _Refused("the arm assigns names that are used outside of it")
        if taken.value is None or other.value is None:
            raise _Refused("one arm returns nothing")
        condition = self.condition(node.test)
        pairs = [(taken.value, other.value)]
        tuples = isinstance(taken.value, ast.Tuple) and isinstance(other.value, ast.Tuple)
        if tuples:
            if len(taken.value.elts) != len(other.value.elts):  # type: ignore[attr-defined]
                raise _Refused("the arms return tuples of different lengths")
            pairs = list(zip(taken.value.elts, other.value.elts, strict=True))  # type: ignore[attr-defined]
        choices = [_Choice(a, condition, _Choice(b)) for a, b in pairs]
        self.prove(choices)
        for a, b in pairs:
            if not (self.facts.effects.fresh(a) and self.facts.effects.fresh(b)):
                raise _Refused("an arm returns an existing tensor, which the caller could tell from a copy")
        self.total([t.value for t in arm.temporaries])
        lines = self.shared_conditions(choices) + [self.assignment(t) for t in arm.temporaries]
        holes = ", ".join(f"{{{i}}}" for i in range(len(choices)))
        lines.append(Code(f"return {holes}", tuple(map(self.code, choices))))
        targets = (node,) if node.orelse else (node, rest[0])
        return ReplaceStatements(targets, tuple(lines))

    # --- arms -------------------------------------------------------------------------------------------------------

    def arms(self, node: ast.If) -> tuple[list[Arm], dict[str, _Choice]]:
        """All arms of the chain, and what every name holds after it."""
        test = node.test
        condition = self.condition(test) if self.facts.conditions.reads_data(test) else test
        if condition is test and self.facts.value(test).kind.value != "python":
            raise _Refused(f"whether `{ast.unparse(test)}` is a tensor is not known")
        arm = self.arm(node.body)
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and _is_elif(node.orelse[0], self.facts):
            arms, others = self.arms(node.orelse[0])
        else:
            other = self.arm(node.orelse)
            arms, others = [other], {n: _Choice(a.value) for n, a in other.results.items()}
        shared = {t.target.id for t in arm.temporaries if isinstance(t.target, ast.Name)} & {  # never: names stay inside
            n.id for a in arms for t in a.temporaries if isinstance(n := t.target, ast.Name)
        }
        if shared:
            raise _Refused(f"two arms use the temporary `{min(shared)}`")
        self.total([t.value for t in arm.temporaries])
        choices = {}
        for name in dict.fromkeys([*arm.results, *others]):
            mine = arm.results[name].value if name in arm.results else self.old(name, node, arms)
            orelse = others.get(name) or _Choice(self.old(name, node, [arm]))
            choices[name] = _Choice(mine, condition, orelse)
        return [arm, *arms], choices

    def arm(self, body: list[ast.stmt]) -> Arm:
        arm = self.facts.branches.arm(body)
        if isinstance(arm, str):
            raise _Refused(arm)
        return arm

    def old(self, name: str, node: ast.If, arms: list[Arm]) -> ast.expr:
        """What ``name`` holds when its arm is not taken."""
        target = _target(arms, name)
        if not isinstance(target, ast.Name):
            return target
        assert isinstance(self.node, ast.If)
        before = self.facts.branches.bound_before(self.node, name)
        if before is None:
            raise _Refused(f"`{name}` may be unbound when the branch is not taken")
        return before

    def may_be_merged(self, assigned: Assigned) -> None:
        """An arm that is an existing tensor must not be told from a copy later."""
        if isinstance(assigned.target, ast.Name):
            function = self.facts.function_of(self.node)
            assert function is not None
            definition = self.facts.flow(function).by_node.get(assigned.target)
            everything = [assigned.value, *self.old_values(assigned.target.id)]
            if definition is not None and not all(map(self.facts.effects.fresh, everything)):
                reason = self.facts.effects.escapes(definition, function)
                if reason is not None:
                    raise _Refused(reason)
        elif not self.facts.effects.fresh(assigned.value):
            raise _Refused(f"`{ast.unparse(assigned.target)}` may be an existing tensor")

    def old_values(self, name: str) -> list[ast.expr]:
        assert isinstance(self.node, ast.If)
        before = self.facts.branches.bound_before(self.node, name)
        return [] if before is None else [before]

    def stays_here(self, node: ast.IfExp) -> None:
        """The value of a conditional expression must be used up by an operator, or by a name that does not escape."""
        if self.facts.effects.used_up(node):
            return
        parent = self.facts.syntax.parents[self.facts.effects.through_views(node)]
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
            function = self.facts.function_of(node)
            assert function is not None
            definition = self.facts.flow(function).by_node.get(parent.targets[0])
            if definition is not None and (reason := self.facts.effects.escapes(definition, function)) is None:
                return
        raise _Refused("an arm is an existing tensor, which could be told from a copy")

    # --- proofs -----------------------------------------------------------------------------------------------------

    def condition(self, test: ast.expr) -> Condition:
        condition = self.facts.conditions.take_apart(test)
        if isinstance(condition, str):
            raise _Refused(condition)
        return condition

    def total(self, values: list[ast.expr]) -> None:
        for value in values:
            reason = self.facts.effects.why_not_total(value)
            if reason is None and not self.facts.grad_off(value):
                reason = self.facts.effects.why_not_smooth(value)
            if reason is not None:
                raise _Refused(reason)

    def prove(self, choices: list[_Choice]) -> None:
        for choice in choices:
            leaves = list(_leaves(choice))
            self.total(leaves)
            values = [self.facts.value(leaf) for leaf in leaves]
            for leaf, value in zip(leaves, values, strict=True):
                self.same(leaves[0], values[0], leaf, value)

    def same(self, a: ast.expr, first: Value, b: ast.expr, other: Value) -> None:
        """Both arms must be tensors of one shape and dtype."""
        for e, v in ((a, first), (b, other)):
            if not v.is_tensor:
                what = "a Python value" if v.kind.value == "python" else "not known to be a tensor"
                raise _Refused(f"`{_short(e)}` is {what}")
        if first.dtype is None or other.dtype is None or not first.dtype.same(other.dtype):
            raise _Refused(f"the dtypes of `{_short(a)}` and `{_short(b)}` are not known to be the same")
        if first.shape is None or first.shape != other.shape:
            raise _Refused(f"the shapes of `{_short(a)}` and `{_short(b)}` are not known to be the same")

    # --- new code ---------------------------------------------------------------------------------------------------

    def assignment(self, assigned: Assigned) -> Code:
        return Code("{0} = {1}", (assigned.target, assigned.value))

    def shared_conditions(self, choices: list[_Choice]) -> list[Code]:
        """A name for each condition that several results need."""
        lines = []
        if len(choices) > 1:
            for condition in dict.fromkeys(c for choice in choices for c in _conditions(choice)):
                self.names[condition] = name = self.facts.fresh_name("_condition", self.node)
                lines.append(Code(f"{name} = {{0}}", (_tensor(condition.tensor),)))
        return lines

    def code(self, choice: _Choice) -> Code:
        named_value = isinstance(choice.value, ast.Name)
        value = Code(choice.value.id) if named_value else Code("{0}", (choice.value,))  # type: ignore[attr-defined]
        if choice.condition is None or choice.orelse is None:
            return value
        orelse = self.code(choice.orelse)
        if isinstance(choice.condition, ast.expr):
            return Code("{0} if {1} else {2}", (value, choice.condition, orelse))
        condition = choice.condition
        named = self.names.get(condition)
        test = Code(named) if named else _tensor(condition.tensor)
        if isinstance(condition.tensor, Negation) and named is None:
            test, value, orelse = _tensor(condition.tensor.part), orelse, value
        merged = Code(f"{self.where}({{0}}, {{1}}, {{2}})", (test, value, orelse))
        if not condition.guard:
            return merged
        if isinstance(condition.tensor, Negation) and named is None:
            value, orelse = orelse, value
        joint = " and " if condition.conjunction else " or "
        guard = Code(joint.join(f"{{{i}}}" for i in range(len(condition.guard))), condition.guard)
        if condition.conjunction:
            return Code("{0} if {1} else {2}", (merged, guard, orelse))
        return Code("{0} if {1} else {2}", (value, guard, merged))


def _target(arms: list[Arm], name: str) -> ast.expr:
    return next(arm.results[name].target for arm in arms if name in arm.results)


def _leaves(choice: _Choice) -> Iterator[ast.expr]:
    yield choice.value
    if choice.orelse is not None:
        yield from _leaves(choice.orelse)


def _conditions(choice: _Choice) -> Iterator[Condition]:
    if isinstance(choice.condition, Condition):
        yield choice.condition
    if choice.orelse is not None:
        yield from _conditions(choice.orelse)


def _tensor(part: Tensor) -> Code:
    """A 0-d boolean tensor that is true when ``part`` would pass as a test."""
    match part:
        case Leaf(expr=expr, boolean=boolean, scalar=scalar):
            code = Code("{0}" if boolean else "{0} != 0", (expr,))
            return code if scalar else Code("{0}.reshape(())", (code,))
        case Negation(part=inner):
            return Code("~{0}", (_tensor(inner),))
        case Junction(every=every, parts=parts):
            joint = " & " if every else " | "
            return Code(joint.join(f"{{{i}}}" for i in range(len(parts))), tuple(map(_tensor, parts)))


def _short(e: ast.expr) -> str:
    text = " ".join(ast.unparse(e).split())
    return text if len(text) <= 50 else text[:47] + "..."
