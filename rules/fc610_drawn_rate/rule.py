"""FC610: a drawn number, compared with a rate that is zero as a rule."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, Insert, NearMiss, Replace, Rule
from rules.fc610_drawn_rate.drawn import DrawnRates
from rules.fc610_drawn_rate.examples import INVALID, VALID

_NOT_DRAWN = "nobody minds that random numbers which are drawn later come out differently"


class DrawnRate(Rule):
    """``if torch.rand(()) < self.layerdrop``: layers, noise or masks are left out by chance, at a rate of zero.

    What it does:
        Asks the rate first: ``self.layerdrop > 0 and torch.rand(()) < self.layerdrop``, and
        ``self.layerdrop <= 0 or probs[i] >= self.layerdrop``.

    Why it breaks compilation:
        A branch on what was drawn ends the graph, in every layer that may be left out; inside of a loop over layers all
        of it runs eagerly. The rate is a number of the host. Where it is zero, as it is unless somebody asks for more,
        the answer is known without the number that was drawn.

    Fix safety:
        Safe: what is drawn from zero to one is never below zero, so the answer is the same, and what is drawn stays
        drawn, so that what is drawn later is the same, too: where the comparison draws, that is done above the ``if``.
        Only where the comparison is a test, the rate is a number that the constructor or a default makes zero, and
        asking for it does nothing else. At a higher rate the branch ends the graph as before.
        Unsafe where it is not always drawn (``self.training and torch.rand(()) < rate``): at a rate of zero nothing
        is drawn any more, and what is drawn later comes out differently.

    References:
        LayerDrop and stochastic depth in models for speech and pictures.
    """

    code: ClassVar[str] = "FC610"
    name: ClassVar[str] = "drawn-rate"
    triggers: ClassVar[tuple[bytes, ...]] = (b"rand(", b"rand_like(", b"uniform_(")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Compare,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the comparison ``node`` of a drawn number with a rate."""
        assert isinstance(node, ast.Compare)
        found = facts.ask(DrawnRates).of(node)
        if found is None:
            return
        template = "{0} <= 0 or {1}" if found.kept else "{0} > 0 and {1}"
        if not isinstance(facts.syntax.parents[node], (ast.If, ast.IfExp, ast.While)):
            template = f"({template})"
        message = f"a branch on a number that was drawn, though `{ast.unparse(found.rate)}` is zero as a rule"
        if found.reason:
            yield Finding(node, message, assumption=found.reason)
            return
        asked = Replace(node, Code(template, (found.rate, node)))
        if found.draw is None:
            yield Finding(node, message, Fix((asked,)))
        elif found.above is None:
            yield Finding(node, message, Fix((asked,), Applicability.UNSAFE), _NOT_DRAWN)
        else:
            name = facts.writing.fresh_local("drawn", node)
            drawn = Insert(found.above, (Code(f"{name} = {{0}}", (found.draw,)),))
            compared = ast.unparse(node).replace(ast.unparse(found.draw), name)
            renamed = Code(compared.replace("{", "{{").replace("}", "}}"))
            yield Finding(node, message, Fix((drawn, Replace(node, Code(template, (found.rate, renamed))))))

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID
