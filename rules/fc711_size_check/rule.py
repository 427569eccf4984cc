"""FC711: a check of a number that a setting takes into the graph, and a branch on it does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.checks.errors import literal
from patcher.rule import (
    Applicability,
    Code,
    Edit,
    Enclose,
    Finding,
    Fix,
    Insert,
    Replace,
    ReplaceStatements,
    Rule,
    block,
)
from rules.fc711_size_check.examples import INVALID, VALID
from rules.fc711_size_check.number_checks import NumberCheck, NumberChecks


class SizeCheck(Rule):
    """A check that raises, of a number that a setting of PyTorch takes into the graph.

    What it does:
        Where ``capture_scalar_outputs`` or ``capture_dynamic_output_shape_ops`` is set (by the project, or by
        ``prove --unsafe`` that tries it), what ``.item()``, ``.tolist()`` and sizes of ``x[mask]`` give are
        symbols of the graph. ``if n > limit: raise`` and ``assert 0 < n <= limit`` of them become, in compiled code
        (``torch.compiler.is_compiling()``), ``torch._check(n <= limit)``; in eager code everything stays as it is.

    Why it breaks compilation:
        A symbol has no value while Dynamo traces, so that an ``if`` of it breaks the graph all the same, as does an
        ``assert`` with an f-string, ``and``, ``not`` or ``a < b < c``. ``torch._check`` is part of the graph, and what
        it says is known from there on: a later ``if n > 0`` is decided, too. Operators need no check of a size on torch
        2.13, so none is written for them: of 115 uses of unknown numbers that were compiled with ``fullgraph=True``,
        102 are one graph without (``zeros``, ``arange``, slices, ``split`` of a list, ``narrow``, ``expand``, ``view``,
        ``pad``, ``repeat_interleave``, ``topk``, ``index_add``, products, losses). Nine are no graph with any check
        that was tried (``one_hot``, ``chunk``, ``linspace``, ``unfold``, ``x[i[0]]``), and four only with a fact that
        the source does not hold: ``batch_norm`` and attention work with no row and with one as well.

    Fix safety:
        Unsafe. What passed still passes, but compiled code raises a ``RuntimeError`` with the constant part of the
        message, so that who catches the error by its class misses it. A comparison is turned round
        (``not n > limit`` to ``n <= limit``), which a NaN would show. A symbol that becomes the size of a tensor below
        the check has no value any more: a graph repeats no single row to an unknown size. Reported, not fixed
        where Python values or several numbers decide together. Silent where neither setting is in force.

    References:
        ``torch._check``; PyTorch, "Dealing with GuardOnDataDependentSymNode errors".
    """

    code = "FC711"
    name = "size-check"
    costs = ("graph break",)
    triggers = (b"raise ", b"assert ", b"assert(")
    listens_to = (ast.If, ast.Assert)
    yields_to = ("FC102",)  # which answers for what reads a tensor in the test itself

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it raises for some numbers of the data that are symbols of the graph."""
        assert isinstance(node, (ast.If, ast.Assert))
        found = facts.ask(NumberChecks).of(node)
        if found is None:
            return
        message = "a check of a number that is a symbol of the graph breaks the graph"
        edits = _edits(node, found, facts)
        if edits:
            yield Finding(node, message, Fix(edits, Applicability.UNSAFE), _ASSUMED)
        else:
            yield Finding(node, message, assumption="Python values, several numbers or other branches decide together")

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether ``node`` only raises for some numbers that settings in force make symbols."""
        return isinstance(node, (ast.If, ast.Assert)) and facts.ask(NumberChecks).of(node) is not None

    invalid = INVALID
    valid = VALID


_ASSUMED = (
    "nothing catches the error, no number that is compared is a NaN, and none is a size of 1 or -1 below the check"
)


def _edits(node: ast.If | ast.Assert, check: NumberCheck, facts: Facts) -> tuple[Edit, ...]:
    """What makes ``node`` a check of the graph; nothing where that cannot be written."""
    torch = facts.writing.spelling("torch", node)
    is_elif = facts.syntax.is_elif(node)
    if not check.facts or (not is_elif and not facts.syntax.alone(node)):
        return ()
    said = _said(check, f"{torch}._check()", node, facts)
    lines = [Code(f"{torch}._check({fact.template}{said})", fact.parts) for fact in check.facts]
    compiled = block(Code(f"if {torch}.compiler.is_compiling():"), lines)
    if not getattr(node, "orelse", ()):
        if facts.compiled_only(node):
            return (ReplaceStatements((node,), tuple(lines)),)
        return (Enclose((node,), Code(f"{compiled.template}\nelse:", compiled.parts)),)
    if is_elif or not isinstance(node, ast.If):
        return ()
    eager = Replace(node.test, Code(f"not {torch}.compiler.is_compiling() and {{0}}", (node.test,)))
    return eager, Insert(node, (compiled,))


def _said(check: NumberCheck, call: str, node: ast.If | ast.Assert, facts: Facts) -> str:
    """The longest part of the message that is said in any case and fits on the line of each fact, as an argument."""
    parts = [[ast.unparse(p) for p in f.parts if isinstance(p, ast.expr)] for f in check.facts]
    room = facts.line_length - node.col_offset - 4 - len(call) - max(len("".join(p)) for p in parts) - len(" != ")
    said = (f", lambda: {literal(text)}" for text in check.texts)
    return next((part for part in said if len(part) <= room), "")
