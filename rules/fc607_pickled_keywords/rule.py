"""FC607: the keywords of a call, pickled to find what a memo holds for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Code, Cost, Example, Finding, Fix, Insert, NearMiss, Replace, Rule
from rules.fc607_pickled_keywords.examples import INVALID, VALID


class PickledKeywords(Rule):
    """``pickle.dumps(kwargs)``: what a function was called with, as a key of what it remembers.

    What it does:
        Pickles keywords only where there are any: ``pickle.dumps(kwargs) if kwargs else _no_keywords``, with
        ``_no_keywords = pickle.dumps({})`` once above.

    Why it breaks compilation:
        ``pickle`` is written in C, and Dynamo does not trace it: each call of a function that remembers its results
        ends the graph, in it and in all that called it. Most are called without a keyword.

    Fix safety:
        Safe: the bytes of no keywords are those of any empty dict, since ``**kwargs`` always is a plain dict, and
        pickled in the same process by the same call. Only for the ``**kwargs`` of the function itself, bound nowhere
        else, pickled without further arguments. Calls with keywords end the graph as before.

    References:
        PyTorch, "Attempted to call function marked as skipped" (graph break GB0007); memos of linear operators.
    """

    code: ClassVar[str] = "FC607"
    name: ClassVar[str] = "pickled-keywords"
    triggers: ClassVar[tuple[bytes, ...]] = (b"dumps(",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it pickles the keywords of a call in compiled code."""
        match node:
            case ast.Call(args=[ast.Name() as keywords], keywords=[]):
                pass
            case _:
                return
        if facts.syntax.qualified(node.func) != "pickle.dumps" or not _is_collected(keywords, facts):
            return
        around = facts.syntax.parents[node]
        if isinstance(around, ast.IfExp) and isinstance(around.test, ast.Name) and around.test.id == keywords.id:
            return  # there are some
        message = "pickling the keywords of a call ends the graph, also where there are none"
        around_it = [n for n in facts.syntax.ancestors(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
        root = ast.unparse(node.func).partition(".")[0]
        if not around_it or facts.syntax.function_of(around_it[-1]) or not _is_early(root, around_it[-1], facts):
            yield Finding(node, message, assumption="`pickle` may not be imported above it")
            return
        name = facts.writing.fresh_name("_no_keywords", facts.syntax.tree)
        empty = Insert(around_it[-1], (Code(f"{name} = {{0}}({{{{}}}})", (node.func,)),))
        yield Finding(node, message, Fix((Replace(node, Code(f"{{0}} if {{1}} else {name}", (node, keywords))), empty)))

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether this rule tells of ``node``."""
        return isinstance(node, ast.Call) and any(self.check(node, facts))

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _is_collected(name: ast.Name, facts: Facts) -> bool:
    """Whether ``name`` is the ``**kwargs`` of the function around, and of no other binding."""
    function = facts.syntax.function_of(name)
    if function is None or function.args.kwarg is None or function.args.kwarg.arg != name.id:
        return False
    flow = facts.flow(function)
    found = flow.reaching.get(name, frozenset())
    return (
        name.id not in flow.captured | flow.shared and bool(found) and all(d.node is function.args.kwarg for d in found)
    )


def _is_early(name: str, at: ast.stmt, facts: Facts) -> bool:
    """Whether an import that has run before ``at``, a statement of the module, binds ``name``."""
    for statement in (at, *(n for n in facts.syntax.ancestors(at) if isinstance(n, ast.stmt))):
        block = facts.syntax.block_of(statement)
        for above in block[: block.index(statement)]:
            names = above.names if isinstance(above, (ast.Import, ast.ImportFrom)) else []
            if name in {(alias.asname or alias.name).partition(".")[0] for alias in names}:
                return True
    return False
