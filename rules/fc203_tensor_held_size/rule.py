"""FC203: sizes, paddings and counts that a module keeps in 0-d tensors though its constructor knows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.numbers.number_flow import NumberUses, number_uses
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Edit,
    Example,
    Finding,
    Fix,
    Insert,
    NearMiss,
    Replace,
    ReplaceStatements,
    Rule,
    Where,
    filled,
)
from rules.fc203_tensor_held_size.evaluated import surely_evaluated
from rules.fc203_tensor_held_size.examples import INVALID, VALID
from rules.fc203_tensor_held_size.held_numbers import (
    Combined,
    HeldNumbers,
    Local,
    Made,
    Own,
    Plain,
    Recipe,
    held_numbers,
)

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//"}
#: Without ``math`` in the file; both take numbers and 0-d tensors.
_ROUNDED = {"ceil": "int(-(-{0} // 1))", "floor": "int({0} // 1)"}

#: Where the quotients of numbers and of tensors are rounded to the same integer.
_LIMIT = "1 / {0}({1}()).eps"
_WHY = "# below it, the quotient rounds to the same integer as in tensors of the default dtype"


class TensorHeldSize(Rule):
    """Whole numbers that a module keeps in 0-d tensors though its constructor knows them, where they serve as sizes.

    What it does:
        Keeps the number beside the tensor, as a Python integer (``self._stride`` for ``self.stride``), and lets the
        methods that compiled code reaches read that one wherever the number is a size: padding, bounds of a slice,
        ``range``, ``int()``, a shape, a test. The tensor stays where it is, so state_dict, ``to()`` and other readers
        see what they saw. The number is followed through names, arithmetic of integers, tuples, and the private methods
        of the class that take it or return it; ``torch.ceil(a / b).to(torch.int64)`` becomes ``math.ceil(a / b)``.

    Why it breaks compilation:
        Dynamo does not know what a tensor holds. A size, a bound or a test that needs it ends the graph, in every layer
        that pads its input. Measured on torch 2.13, transformers 5.23.0: a small MimiModel has 22 graphs and 13 breaks
        before, one graph and none after; EncodecModel 34 graphs and 22 break events, then 24 and 9, all from its LSTM.

    Fix safety:
        Safe when the tensor is set once, in the constructor, with an integer dtype, is not part of the state_dict, and
        everything in the files that writes into an attribute of that name on what may be such a module, directly or
        where the tensor ends up, provably writes the same number (an ``_init_weights``, say). A method
        is only changed when every use of the number in it, and in what it passes the number to, takes an integer as
        well as a tensor: the others keep the tensor.
        A quotient of two integer tensors is computed in the default dtype, with 24 bits of precision as a rule; Python
        has 53. Rounded up or down, both are the same while ``abs(a) + b`` is below ``1 / eps`` of that dtype: the code
        asks for that, and computes as before otherwise. (The two roundings of ``a / b + 1`` are off by no more than
        ``(2 * a / b + 1) * eps / 2``, and a quotient that is no integer is at least ``1 / b`` away from one.)
        Unsafe, with what has to be true: a persistent buffer, which a checkpoint may overwrite; other files that write
        into attributes of that name. Refused, with the reason: writes in this file; whoever sets the attribute anew, in
        any file; subclasses that have one, or a constructor without this one's.
        Seen from outside: a module that was made on the meta device (``to_empty``) has its numbers, where the tensors
        hold nothing; what code far away puts into the tensor without naming it (a copy of all ``buffers()``) no longer
        counts: such code is looked for in the folder of the file and in what imports it; a module pickled as
        a whole before the change lacks the new attribute. On a GPU, a number over zero in integers
        raises, where it gave anything; so does, with float16 as the default dtype, a size above 65504, an infinity
        there, of which PyTorch made any integer.

    References:
        PyTorch, graph break "Data-dependent branching"; transformers, the padding of Encodec and Mimi.
    """

    code: ClassVar[str] = "FC203"
    removed_by: ClassVar[tuple[str, ...]] = ("capture_scalar_outputs",)
    name: ClassVar[str] = "tensor-held-size"
    triggers: ClassVar[tuple[bytes, ...]] = (b"tensor(",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.ClassDef,)
    where: ClassVar[Where] = Where.ANYWHERE
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the class ``node`` where compiled code needs numbers that it keeps in tensors."""
        assert isinstance(node, ast.ClassDef)
        held = held_numbers(facts, node)
        if held is None:
            return
        if held.refused:
            uses = number_uses(facts, node, held.refused)
            if uses.breaking:
                reason = next(iter(held.refused.values()))
                yield Finding(_place(uses, facts), _message(sorted(held.refused)), assumption=reason)
        uses = number_uses(facts, node, held.found)
        if not uses.breaking:
            return
        if not uses.reads:
            at, reason = uses.obstacles[0]
            yield Finding(_place(uses, facts), _message(sorted(held.found)), assumption=f"line {at.lineno}: {reason}")  # type: ignore[attr-defined]
            return
        write = _Writer(held, uses, node, facts)
        names = sorted({r.attr for r in write.reads})
        doubts = sorted({held.found[n].doubt for n in write.names} - {""})
        applicability = Applicability.UNSAFE if doubts else Applicability.SAFE
        limit = _LIMIT.format(*(facts.writing.spelling(f"torch.{n}", node) for n in ("finfo", "get_default_dtype")))
        fix = Fix((*write.constructor(), *write.methods(limit)), applicability)
        yield Finding(_place(uses, facts), _message(names), fix, "; ".join(doubts))

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _place(uses: NumberUses, facts: Facts) -> ast.AST:
    """Where the graph ends: at a test, which every call comes to, or else at the first use as a size."""
    parents = facts.syntax.parents
    first = sorted(uses.breaking, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)))
    tests = (n for n in first if isinstance(p := parents.get(n), (ast.If, ast.While, ast.IfExp)) and n is p.test)
    return next(tests, first[0])


def _message(names: list[str]) -> str:
    which = ", ".join(f"`self.{n}`" for n in names)
    return f"{which}: a number in a tensor; where it serves as a size, the graph ends"


class _Writer:
    """Writes the change of one class. ``names``: attribute -> the one beside it that holds the Python number."""

    def __init__(self, held: HeldNumbers, uses: NumberUses, cls: ast.ClassDef, facts: Facts) -> None:
        self.held = held
        self.uses = uses
        self.facts = facts
        self.reads = [r for r in uses.reads if isinstance(r, ast.Attribute)]
        self.names: dict[str, str] = {}
        self.choices: dict[ast.expr, tuple[Code, ast.expr | Code]] = {}
        self.locals: dict[ast.stmt, tuple[str, Recipe]] = {}
        wanted = {r.attr for r in self.reads}
        while wanted:
            name = wanted.pop()
            if name not in self.names:
                self.names[name] = facts.writing.fresh_attribute(f"_{name.lstrip('_')}", cls)
                wanted |= set(self.needed(held.found[name].recipe))

    def needed(self, recipe: Recipe) -> Iterator[str]:
        """The attributes that ``recipe`` is made of; the local names are given out on the way."""
        match recipe:
            case Own(name=name):
                yield name
            case Local(definition=d, recipe=inner):
                statement = self.facts.syntax.statement_of(d.node)
                if statement not in self.locals:
                    self.locals[statement] = (self.facts.writing.fresh_name(f"{d.name}_number", statement), inner)
                yield from self.needed(inner)
            case Combined(left=left, right=right):
                yield from self.needed(left)
                yield from self.needed(right)

    def number(self, recipe: Recipe) -> Code:
        match recipe:
            case Made(expr=expr, whole=whole):
                return Code("int({0})" if whole else "{0}", (expr,))
            case Plain(expr=expr):
                return Code("{0}", (expr,))
            case Own(name=name):
                return Code(f"{self.held.me}.{self.names[name]}")
            case Local(definition=d):
                return Code(self.locals[self.facts.syntax.statement_of(d.node)][0])
            case Combined(expr=expr, left=left, right=right):
                return Code(f"{{0}} {_SIGNS[type(expr.op)]} {{1}}", (self.number(left), self.number(right)))

    def constructor(self) -> Iterator[Edit]:
        """The numbers, set where the tensors are made."""
        lines: dict[ast.stmt, list[Code]] = {}
        for statement, (local, recipe) in self.locals.items():
            lines.setdefault(statement, []).append(Code(f"{local} = {{0}}", (self.number(recipe),)))
        for name, new in self.names.items():
            held = self.held.found[name]
            line = Code(f"{self.held.me}.{new} = {{0}}", (self.number(held.recipe),))
            lines.setdefault(held.statement, []).append(line)
        for statement, code in lines.items():
            yield Insert(statement, tuple(code))

    def methods(self, limit: str) -> Iterator[Edit]:
        """The reads, and the arithmetic of floats, which is exact while the numbers are not huge."""
        syntax = self.facts.syntax
        replaced: dict[ast.AST, Code] = {r: Code(f"{{0}}.{self.names[r.attr]}", (r.value,)) for r in self.reads}
        direct = {r.operand for r in self.uses.roundings}
        exact: dict[ast.AST, Code] = {}
        for q in self.uses.quotients:
            parts = [filled(part, replaced) for part in (q.numerator, q.denominator)]
            test = "" if self.positive(q.denominator) else "{1} > 0 and "
            exact[q.expr] = Code(test + "abs({0}) + {1} < {2}", (*parts, Code(limit)))
            if q.expr not in direct:
                replaced[q.expr] = self.choice(filled(q.expr, replaced), exact[q.expr], q.expr)
        for r in self.uses.roundings:
            spelled = self.facts.writing.spelled(f"math.{r.how}", r.expr)
            template = f"{spelled}({{0}})" if spelled else _ROUNDED[r.how]
            number = Code(template, (filled(r.operand, replaced),))
            if r.operand in exact:
                number = self.choice(number, exact[r.operand], r.expr)
            elif not all(self.positive(q.denominator) for q in self.uses.quotients):
                number = Code("{0} if isinstance({1}, float) else {2}", (number, r.operand, r.expr))
            replaced[r.expr] = number
        read = "int({0})" if self.uses.quotients else "{0}"  # where floats are not exact, it is a tensor as before
        for item in self.uses.items:
            assert isinstance(item.func, ast.Attribute)
            replaced[item] = Code(read, (filled(item.func.value, replaced),))
        tops: dict[ast.stmt, list[ast.expr]] = {}
        for node in replaced:
            if isinstance(node, ast.expr) and not any(p in replaced for p in syntax.ancestors(node)):
                tops.setdefault(self.facts.syntax.statement_of(node), []).append(node)
        yield from (edit for s, nodes in tops.items() for edit in self.written(s, nodes, replaced))

    def choice(self, exact: ast.expr | Code, test: Code, otherwise: ast.expr) -> Code:
        self.choices[otherwise] = (test, exact)
        return Code("{0} if {1} else {2}", (exact, test, otherwise))

    def written(self, statement: ast.stmt, nodes: list[ast.expr], replaced: dict[ast.AST, Code]) -> Iterator[Edit]:
        """``statement`` with ``nodes`` replaced: once for each way, where there is one choice between two."""
        chosen = [n for n in nodes if n in self.choices]
        free = len(chosen) == 1 and self.facts.writing.why_not_replaced(statement) is None
        found = surely_evaluated(chosen[0], statement, self.facts.syntax) if free else None
        if found is None:
            yield from (Replace(node, replaced[node]) for node in nodes)
            return
        start, value = found
        test, exact = self.choices[chosen[0]]
        forms = [form if isinstance(form, Code) else Code("{0}", (form,)) for form in (exact, chosen[0])]
        yes, no = (filled(value, {**replaced, chosen[0]: form}) for form in forms)
        name = self.facts.writing.fresh_name("exact", statement)
        below = Code(test.template, (*test.parts[:2], Code(name)))
        lines = f"{_WHY}\nif {{0}}:\n    {start}{{1}}\nelse:\n    {start}{{2}}"
        code = Code(f"{name} = {{0}}", (test.parts[2],)), Code(lines, (below, yes, no))
        yield ReplaceStatements((statement,), code)

    def positive(self, denominator: ast.expr) -> bool:
        return isinstance(denominator, ast.Attribute) and self.held.positive(denominator.attr)
