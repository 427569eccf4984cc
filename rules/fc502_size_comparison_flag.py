"""FC502: a comparison of sizes where an operator wants a bool."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts, api
from patcher.rule import Applicability, Code, Example, Finding, Fix, NearMiss, Replace


class SizeComparisonFlag:
    """A comparison of sizes, or of ints that change between calls, that ends in an operator's bool argument.

    What it does:
        Writes ``True if t == t_kv else False`` for ``t == t_kv``, where the flag is made: in the call, at the assignment
        of the local name, at the call of the function that passes it on, or at the ``return`` of the function that works
        it out. ``bool(t == t_kv)`` becomes the same. Of ``t == t_kv and flag`` only the comparison is wrapped when ``flag``
        is not known to be a bool, for the result may be ``flag`` itself.

    Why it breaks compilation:
        As soon as a size is dynamic, a comparison of it is a symbolic bool (also ``t > 1``, whose value is known). Operators
        such as ``scaled_dot_product_attention`` take only True and False: the graph ends before the call, and the operator
        runs eagerly. ``and``, ``or`` and ``bool()`` hand the symbolic bool on (``bool()`` on torch 2.13 costs the same break);
        a test makes a guard of it, and the arms are constants. Measured on torch 2.13 with attention over 3, 5, 6 and 7
        words, then 1 of 4, 5 and 6: two breaks before, none after, and no recompile more. ``not x`` and
        ``t > 1 and flag`` do not break, and are left alone.

    Fix safety:
        Safe: a comparison of numbers is True or False, and so is the conditional expression; it is evaluated once, in the
        same place. An operand that is not known to be a number (``offset`` without annotation) is safe too when nothing
        but the operator gets the flag, or the operator is sure to get it, because it raises for anything that is no bool.
        Elsewhere the rewrite is unsafe, as a comparison of tensors would be another tensor. What is known to be a tensor is
        never touched. Where a dynamic size takes both outcomes there is one guard on the outcome, as there was before.

    References:
        The attention fixes of the nanoVLM and Toto reports; PyTorch, "Dynamic shapes" (SymBool).
    """

    code: ClassVar[str] = "FC502"
    name: ClassVar[str] = "size-comparison-flag"
    triggers: ClassVar[tuple[bytes, ...]] = tuple(sorted({n.rpartition(".")[2].encode() for n in api.BOOL_ARGUMENTS}))
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Compare,)
    fixed_in: ClassVar[tuple[int, int] | None] = None

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is the first comparison of a flag that an operator is to get."""
        assert isinstance(node, ast.Compare)
        if not facts.flags.varies(node) or not facts.reached(node) or facts.eager_only(node):
            return
        root = facts.flags.root(node)
        comparisons = facts.flags.symbolic(root)
        if node not in comparisons[:1] or (reach := facts.flags.reach(root)) is None:
            return
        message = f"a comparison of sizes is no bool while compiling: as `{reach.argument}` it ends the graph"
        doubtful = [e for c in comparisons for e in facts.flags.unproven(c)]
        doubtful = [] if reach.strict or facts.flags.is_bool_call(root) else doubtful
        edits = tuple(_edits(root, facts, reach.strict or bool(doubtful)))
        if doubtful:
            assumption = f"`{ast.unparse(doubtful[0])}` is a number, not a tensor"
            yield Finding(root, message, Fix(edits, Applicability.UNSAFE), assumption)
        else:
            yield Finding(root, message, Fix(edits))


def _edits(e: ast.expr, facts: Facts, strict: bool) -> Iterator[Replace]:
    """Make bools of the symbolic comparisons that ``e`` may be: of all at once where that changes nothing else."""
    if not facts.flags.symbolic(e):
        return
    binds = any(isinstance(n, ast.NamedExpr) for n in ast.walk(e))
    match e:
        case ast.Call(args=[argument]):  # bool(argument); its brackets stay when a comment may stand in them
            alone = (e.lineno, e.end_lineno) == (argument.lineno, argument.end_lineno)
            yield Replace(e if alone else argument, Code("True if {0} else False", (argument,)))
        case ast.IfExp(body=body, orelse=orelse):
            yield from _edits(body, facts, strict)
            yield from _edits(orelse, facts, strict)
        case ast.NamedExpr(value=value):
            yield from _edits(value, facts, strict)
        case _ if not binds and facts.flags.is_bool(e, strict) or isinstance(e, ast.Compare):
            yield Replace(e, Code("True if {0} else False", (e,)))
        case ast.BoolOp(values=values):
            for value in values:
                yield from _edits(value, facts, strict)
        case ast.BinOp(left=left, right=right):
            yield from _edits(left, facts, strict)
            yield from _edits(right, facts, strict)
