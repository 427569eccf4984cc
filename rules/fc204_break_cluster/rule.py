"""FC204: a function that reads tensor data on the host again and again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.syntax.classes import self_name
from patcher.facts.zones.clusters import Cluster, Clusters
from patcher.facts.zones.cuts import Cut, Cuts
from patcher.rule import Applicability, Code, Decorate, Edit, Finding, Fix, MoveTail, Rule
from rules.fc204_break_cluster.examples import INVALID, VALID

#: Where a word of a class's name begins: ``SmolVLAPolicy`` is of three.
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class BreakCluster(Rule):
    """A function that reads tensor data on the host again and again, to build indices, positions or masks.

    What it does:
        Marks the function ``@torch.compiler.disable``: it runs as one piece, outside of any graph. Where it returns
        early, or computes before it reads, only the part below that moves, as it is, into a function of its own, which
        is marked: a method where it stands in a class, named after what it reads. Of functions that call each other
        the outermost is marked. This fix is made last: when another rule removes the reads, there is no need of it.

    Why it breaks compilation:
        Each ``.tolist()``, ``.item()``, ``nonzero()``, ``unique()``, ``repeat_interleave(x, counts)`` and ``x[mask]``
        breaks the graph, in this function and in every function that called it on the way. A break in a loop drops the
        whole frame. A call that is left out breaks the graph once, and nothing in it is ever compiled.

    Fix safety:
        Unsafe: it is offered by a run that keeps it for the counts, or with ``--unsafe``. Python runs the same
        statements in the same order, so values, gradients and aliasing are those of eager execution. But what compiles
        today with ``fullgraph=True``, ``capture_scalar_outputs``, ``capture_dynamic_output_shape_ops``,
        ``torch.export`` or ``torch.jit.script`` does not any more: these go through many such reads
        (docs/captured.md). ``prove --unsafe`` measures settings with this fix and without.
        Not fixed when:

        - the part calls a layer, uses a weight, or calls anything that is not known to be bookwork on indices,
          positions or masks (the message counts the operations that leave the graph),
        - it reads once, beside more than a few operations, or the reads may not run,
        - it is what gets compiled itself, and does nothing but read,
        - the file sets capture flags or uses ``torch.jit.script``, or a comment in the part speaks of compiling.

    References:
        Index builders of vision-language models; PyTorch, "torch.compiler.disable" and "Skipped functions" (GB0098).
    """

    code = "FC204"
    removed_by = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")
    name = "break-cluster"
    triggers = (
        b".tolist()",
        b".item()",
        b"nonzero",
        b"repeat_interleave",
        b"unique",
        b"[",
    )
    listens_to = (ast.FunctionDef,)
    costs = ("graph break", "recompilation")
    yields_to = ("FC301",)  # whose strategies answer for what a cache does

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the function ``node`` when it is a cluster of reads."""
        assert isinstance(node, ast.FunctionDef)
        around, cluster = facts.syntax.function_of(node), facts.ask(Clusters).of(node)
        disable = facts.writing.spelled("torch.compiler.disable", node)
        if cluster is None or disable is None or (around is not None and facts.reached(around)):
            return  # what stands in a compiled function is made anew with every call of that one
        first, last = (cluster.cut.first, cluster.cut.last) if cluster.cut else (node.body[0], node.body[-1])
        above = node.body[node.body.index(first) - 1] if first is not node.body[0] else None
        start, end = (above.end_lineno if above else None) or node.lineno, (last or node.body[-1]).end_lineno
        if facts.comments.about_compiling(start + 1, end or start) is not None:
            return  # whoever wrote it has looked
        if not facts.ask(Clusters).has_early(disable.partition(".")[0], node):
            return
        lines = sorted({r.node.lineno for r in cluster.reads})
        where = f"line{'s' if lines[1:] else ''} {', '.join(map(str, lines))}"
        message = f"`{node.name}` reads tensor data on the host ({where}): as one piece it breaks the graph once"
        message += f" (and takes {cluster.operations} operations out of it)"
        edits = _moved(node, cluster, cluster.cut, disable, facts) if cluster.cut else (Decorate(node, Code(disable)),)
        yield Finding(node, message, Fix(edits, Applicability.UNSAFE, last=True), _LOST)

    invalid = INVALID
    valid = VALID


_LOST = (
    "nothing compiles it with `fullgraph=True`, capture flags, `torch.export` or `torch.jit.script`, which go through "
    "its reads"
)


def _moved(function: ast.FunctionDef, cluster: Cluster, cut: Cut, disable: str, facts: Facts) -> tuple[Edit, ...]:
    """The part of ``function`` that reads, as a function of its own that is left out of the graph."""
    cls, me = facts.syntax.parents[function], self_name(function)
    method = isinstance(cls, ast.ClassDef) and me is not None
    name = _name(function, cluster, method, facts)
    header = facts.ask(Cuts).header(function, cut, name, me if method and me is not None else "", False)
    code, call = Code(f"@{disable}\n{header.template}", header.parts), header.call
    left = ", ".join(cut.left)
    if cut.last is None:
        return (MoveTail(function, cut.first, code, Code(f"return {call}")),)
    given = Code(f"{left} = {call}" if left else call)
    return (MoveTail(function, cut.first, code, given, cut.last, Code(f"return {left}") if left else None),)


def _name(function: ast.FunctionDef, cluster: Cluster, method: bool, facts: Facts) -> str:
    """What the new function is called: after what it reads; a method of a class with relatives after that as well."""
    read = next((r for r in cluster.reads if r.certain), cluster.reads[0]).node
    names = sorted((n for n in ast.walk(read) if isinstance(n, ast.Name)), key=lambda n: (n.lineno, n.col_offset))
    own = (n.id for n in names if n.id not in {"self", *facts.syntax.imports} and not facts.syntax.is_builtin(n))
    word = next(own, function.name).strip("_").lower() or "data"
    if not method:
        return facts.writing.fresh_name(f"_read_{word}", function)
    cls = facts.syntax.class_of(function)
    assert cls is not None
    qualname = facts.qualname(cls) or cls.name
    family, unknown = facts.project.family(qualname)
    if family - {qualname} or any(not u.startswith("torch.") for u in unknown):
        word = f"{_CAPITALS.sub('_', cls.name).strip('_').lower()}_{word}"
    return facts.writing.fresh_attribute(f"_read_{word}", cls)
