"""FC607: the keywords of a call, pickled to find what a memo holds for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Code, Cost, Example, Finding, Fix, Insert, NearMiss, Replace, Rule
from rules.fc607_pickled_keywords.examples import INVALID, VALID

#: What the bytes of no keywords are called.
_NAME = "_no_keywords"


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
        assert isinstance(node, ast.Call)
        if not _is_one(node, facts):
            return
        message = "pickling the keywords of a call ends the graph, also where there are none"
        top, root = _top(node, facts), ast.unparse(node.func).partition(".")[0]
        if top is None or not _is_early(root, top, facts):
            yield Finding(node, message, assumption="`pickle` may not be imported above it")
            return
        name, edits = _empty(node, top, facts)
        filled = Code(f"{{0}} if {{1}} else {name}", (node, node.args[0]))
        yield Finding(node, message, Fix((Replace(node, filled), *edits)))

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether this rule tells of ``node``."""
        return isinstance(node, ast.Call) and any(self.check(node, facts))

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _is_one(node: ast.Call, facts: Facts) -> bool:
    """Whether ``node`` pickles what a function was called with, and does not ask first whether that is anything."""
    match node:
        case ast.Call(args=[ast.Name() as keywords], keywords=[]):
            around = facts.syntax.parents[node]
            asked = isinstance(around, ast.IfExp) and isinstance(around.test, ast.Name)
            if asked and isinstance(around, ast.IfExp) and ast.unparse(around.test) == keywords.id:
                return False
            return facts.syntax.qualified(node.func) == "pickle.dumps" and _is_collected(keywords, facts)
    return False


def _top(node: ast.AST, facts: Facts) -> ast.FunctionDef | ast.ClassDef | None:
    """The outermost definition around ``node``, where it is in no function."""
    around = [n for n in facts.syntax.ancestors(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    return around[-1] if around and facts.syntax.function_of(around[-1]) is None else None


def _empty(node: ast.Call, top: ast.stmt, facts: Facts) -> tuple[str, tuple[Insert, ...]]:
    """The name for no keywords at all, and what makes it once, above all that are to read it from this block."""
    block, empty = facts.syntax.block_of(top), f"{ast.unparse(node.func)}({{}})"
    if any(ast.unparse(s) == f"{_NAME} = {empty}" for s in block[: block.index(top)]):
        return _NAME, ()
    calls = [n for n in facts.syntax.by_type[ast.Call] if isinstance(n, ast.Call) and _is_one(n, facts)]
    alike = [n for n in calls if facts.compiled(n) and ast.unparse(n.func) == ast.unparse(node.func)]
    tops = [t for n in alike if (t := _top(n, facts)) is not None and t in block]
    if _NAME in facts.syntax.names_in(facts.syntax.tree) or len(tops) != len(alike):
        name, above = facts.writing.fresh_name(_NAME, facts.syntax.tree), top
    else:
        name, above = _NAME, min(tops, key=block.index)
    return name, (Insert(above, (Code(f"{name} = {empty}".replace("{}", "{{}}")),)),)


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
