"""FC502: a comparison of sizes where an operator wants a bool."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.tables import torch_api as api
from patcher.facts.values.certainty import Certainty
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, NearMiss, Replace, Rule
from rules.fc502_size_comparison_flag.examples import INVALID, VALID
from rules.fc502_size_comparison_flag.flags import Flags


class SizeComparisonFlag(Rule):
    """A comparison of sizes, or of ints that change between calls, that ends in an operator's bool argument.

    What it does:
        Writes ``True if t == t_kv else False`` for ``t == t_kv``, where the flag is made: in the call, where a local
        name is assigned, in the call of a function or module of the file that passes it on, or at the ``return`` of one
        that works it out. ``bool(t == t_kv)`` becomes the same. Of ``t == t_kv and flag`` only the
        comparison is wrapped when ``flag`` is not known to be a bool, for the result may be ``flag`` itself.

    Why it breaks compilation:
        Once a size is dynamic, a comparison of it is a symbolic bool, also ``t > 1``, whose value is known. Operators
        such as ``scaled_dot_product_attention`` take True and False only: the graph breaks before the call, that runs
        eagerly. ``and``, ``or``, ``&`` and ``bool()`` hand the symbolic bool on; a test makes a guard of it, and the
        arms are constants. Measured on torch 2.13, attention over 3, 5, 6 and 7 words, then of one word over 4, 5
        and 6: two breaks with ``==``, also inside of ``bool()``, none with the conditional expression, and two
        recompiles either way. Left alone, as they do not break: ``not x``, ``t > 1 and flag``, ints of a module.

    Fix safety:
        Safe: a comparison of numbers is True or False, and so is the conditional expression; it is evaluated once, in
        the same place. What is compared need not be known to be numbers when the operator is given the flag itself, for
        it raises for everything but True and False; a number that NumPy is seen to make, whose comparison it refuses,
        makes the rewrite unsafe. Elsewhere, an operand that may be a tensor makes the rewrite
        unsafe, and one that is known to be a tensor is never touched. Each outcome gets a graph of its own: one that
        comes up only later is compiled then.

    References:
        The attention fixes of the nanoVLM and Toto reports; PyTorch, "Dynamic shapes" (SymBool).
    """

    code: ClassVar[str] = "FC502"
    name: ClassVar[str] = "size-comparison-flag"
    triggers: ClassVar[tuple[bytes, ...]] = (
        b".shape",  # for an operator that stands in another file
        b".size(",
        *sorted({n.rpartition(".")[2].encode() for n in api.BOOL_ARGUMENTS}),
    )
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Compare,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break", "dynamic shape", "recompilation")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is the first comparison of a flag that an operator is to get."""
        assert isinstance(node, ast.Compare)
        if not facts.ask(Flags).varies(node):
            return
        root = facts.ask(Flags).root(node)
        comparisons = facts.ask(Flags).symbolic(root)
        if node not in comparisons[:1] or (reach := facts.ask(Flags).reach(root)) is None:
            return
        message = f"a comparison of sizes is no bool while compiling: as `{reach.argument}` it breaks the graph"
        doubtful = [e for c in comparisons for e in facts.ask(Flags).unproven(c)]
        if reach.strict or facts.ask(Flags).is_bool_call(root):
            doubtful = [e for e in doubtful if reach.strict and facts.ask(Certainty).may_be_array(e)]
        edits = tuple(_edits(root, facts))
        if doubtful:
            assumption = f"`{ast.unparse(doubtful[0])}` is a number of Python, no tensor and none of NumPy"
            yield Finding(root, message, Fix(edits, Applicability.UNSAFE), assumption)
        else:
            yield Finding(root, message, Fix(edits))

    invalid: ClassVar[tuple[Example, ...]] = INVALID

    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _edits(e: ast.expr, facts: Facts) -> Iterator[Replace]:
    """Make bools of the symbolic comparisons that ``e`` may be: of all at once where that changes nothing else."""
    if not facts.ask(Flags).symbolic(e):
        return
    binds = any(isinstance(n, ast.NamedExpr) for n in ast.walk(e))
    match e:
        case ast.Call(args=[argument]):  # bool(argument); its brackets stay when a comment may stand in them
            alone = (e.lineno, e.end_lineno) == (argument.lineno, argument.end_lineno)
            yield Replace(e if alone else argument, Code("True if {0} else False", (argument,)))
        case ast.IfExp(body=body, orelse=orelse):
            yield from _edits(body, facts)
            yield from _edits(orelse, facts)
        case ast.NamedExpr(value=value):
            yield from _edits(value, facts)
        case _ if (not binds and _all_bools(e, facts)) or isinstance(e, ast.Compare):
            yield Replace(e, Code("True if {0} else False", (e,)))
        case ast.BoolOp(values=values):
            for value in values:
                yield from _edits(value, facts)
        case ast.BinOp(left=left, right=right):
            yield from _edits(left, facts)
            yield from _edits(right, facts)


def _all_bools(e: ast.expr, facts: Facts) -> bool:
    """Whether ``e`` is a bool, or would be one with its comparisons made bools each for itself."""
    if isinstance(e, ast.BoolOp):
        return all(_all_bools(v, facts) or v in facts.ask(Flags).symbolic(v) for v in e.values)
    return facts.ask(Flags).is_bool(e)
