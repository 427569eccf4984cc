"""FC704: torch.compile as a statement, whose result nobody gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.compiling.in_place import InPlace
from patcher.facts.compiling.placing import tried
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.rule import Applicability, Code, Finding, Fix, ReplaceStatements, Rule, Where
from rules.fc704_discarded_compile.examples import INVALID, VALID


class DiscardedCompile(Rule):
    """A call of ``torch.compile`` whose result nobody gets.

    What it does:
        Replaces the statement ``torch.compile(model, mode="max-autotune")`` by ``model.compile(mode="max-autotune")``.
        A model without a ``forward`` is never called: its one part that has one is compiled (toto's ``model.model``).
        What is no module, or nobody knows what, is reported and not fixed: the result has to be kept. So is what is
        compiled already.

    Why it breaks compilation:
        ``torch.compile`` returns what is compiled and leaves what it is given as it was: such a statement compiles
        nothing, and says nothing about it. Measured on torch 2.13: no graph, and one after the rewrite.

    Fix safety:
        Unsafe: what ran eagerly is compiled then, which rounds in other places, takes its time at the first call, and
        may fail with ``fullgraph=True``. It is what the statement asked for. Not rewritten are a class that has a
        ``compile`` or ``__call__`` of its own, one that runs a ``forward`` of PyTorch's own (``nn.Sequential``) before
        2.14: there, ``model.compile()`` compiles nothing either (seen on 2.13, and not on 2.14.1), and a PyTorch that
        has no ``Module.compile`` (before 2.2). Where an error is expected (``with pytest.raises(...)``), nothing is
        said.

    References:
        toto, ``run_lsf_eval.py``; PyTorch, "Where to apply torch.compile".
    """

    code = "FC704"
    name = "discarded-compile"
    costs = ("graph break",)
    triggers = (b"torch.compile", b"import compile")
    listens_to = (ast.Call,)
    where = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report a statement that is a call of torch.compile."""
        statement = facts.syntax.parents.get(node)
        if not isinstance(statement, ast.Expr):
            return
        site = facts.ask(CompileSites).at(node)
        if site is None or site.form != "discarded" or isinstance(tried(node, facts.syntax), (ast.With, ast.AsyncWith)):
            return
        told = ast.unparse(site.call.target) if isinstance(site.call.target, ast.expr) else "it"
        message = f"what `torch.compile` returns is discarded: `{told}` stays as it was, nothing is compiled"
        if site.others:
            yield Finding(node, message, assumption=f"take one away: `{told}` is compiled elsewhere as well")
            return
        where = facts.ask(InPlace)
        part = where.part(site) or ""
        written = where.spelled(site, part=part) if site.is_module else None
        reason = _why_not(site, told, facts) if written is None else where.why_not(site) if not part else None
        if written is None or reason is not None:
            yield Finding(node, message, assumption=f"{reason}: keep the result, `{told} = torch.compile({told}, ...)`")
            return
        fix = Fix((ReplaceStatements((statement,), (Code(*written),)),), Applicability.UNSAFE)
        what = f"{told}.{part}" if part else told
        also = f"`{told}` has no `forward`, and `{what}` is what is called; " if part else ""
        yield Finding(node, message, fix, f"{also}calls of `{what}` are compiled from here on, as was asked for")

    invalid = INVALID

    valid = VALID


def _why_not(site: CompileSite, told: str, facts: Facts) -> str:
    if site.by_forward:
        return "one method is compiled"
    if not site.is_module:
        return f"nothing shows that `{told}` is a module, which could be compiled in place"
    return "in place, it would have to be written by hand"
