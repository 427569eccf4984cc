"""FC204: a function that reads tensor data on the host again and again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.syntax.classes import self_name
from patcher.facts.zones.clusters import Cluster, Clusters
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Decorate,
    Edit,
    Example,
    Finding,
    Fix,
    MoveTail,
    NearMiss,
    Rule,
)
from rules.fc204_break_cluster.examples import INVALID, VALID

_LOST = (
    "nothing compiles it with `fullgraph=True`, capture flags, `torch.export` or `torch.jit.script`, which go through "
    "its reads"
)
#: Where a word of a class's name begins: ``SmolVLAPolicy`` is of three.
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
#: What a ``def`` line has beside its names: the keyword, brackets, the arrow and the colon.
_AROUND = len("def () -> :")


class BreakCluster(Rule):
    """A function that reads tensor data on the host again and again, to build indices, positions or masks.

    What it does:
        Marks the function ``@torch.compiler.disable``: it runs as one piece, outside of any graph. Where it returns
        early (a result that was computed before is handed in), or computes before it reads, only the part below that
        moves, as it is, into a function of its own, which is marked: a method where it stands in a class, named after
        what it reads. Of functions that call each other the outermost is marked. This fix is made last: when another
        rule removes the reads, there is no need of it.

    Why it breaks compilation:
        Each ``.tolist()``, ``.item()``, ``nonzero()``, ``unique()``, ``repeat_interleave(x, counts)`` and ``x[mask]``
        ends the graph, in this function and in every function that called it on the way. A break in a loop drops the
        whole frame. What is read becomes a number that compiled code holds true: other pictures, other numbers, all is
        compiled again. A call that is left out ends the graph once, and nothing in it is ever compiled.

    Fix safety:
        Unsafe. Python runs the same statements in the same order, so values, gradients and aliasing are what eager
        execution gives; but with ``fullgraph=True``, capture flags, ``torch.export`` or ``torch.jit.script`` a function
        that is left out is an error, or a break that was not there. The part does bookwork only: no layer, no weight,
        no matrix product, softmax or the like, also in the functions of this file that it calls (the message counts
        what leaves the graph); and it is not what gets compiled itself.

        Not fixed where a comment in the part speaks of graph breaks or the like, where a file switches capture flags
        on, in ``forward`` itself, where the same is read again behind the part, for reads that may not run, for checks
        (FC102), and for a single read, unless up to fifteen operations stand on both sides of it: each side is a graph
        of its own, which takes longer to start than these to run (docs/results/graph-start.md).

    References:
        Index builders of vision-language models; PyTorch, "torch.compiler.disable" and "Skipped functions" (GB0098).
    """

    code: ClassVar[str] = "FC204"
    removed_by: ClassVar[tuple[str, ...]] = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")
    name: ClassVar[str] = "break-cluster"
    triggers: ClassVar[tuple[bytes, ...]] = (
        b".tolist()",
        b".item()",
        b"nonzero",
        b"repeat_interleave",
        b"unique",
        b"[",
    )
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.FunctionDef,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break", "recompilation")
    yields_to: ClassVar[tuple[str, ...]] = ("FC301",)  # whose strategies answer for what a cache does

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the function ``node`` when it is a cluster of reads."""
        assert isinstance(node, ast.FunctionDef)
        around, cluster = facts.syntax.function_of(node), facts.ask(Clusters).of(node)
        if cluster is None or (around is not None and facts.reached(around)):  # made anew with every call of that one
            return
        if isinstance(cluster, str):
            yield Finding(node, f"`{node.name}` reads tensor data on the host again and again", assumption=cluster)
            return
        lines = sorted({r.node.lineno for r in cluster.reads})
        where = f"line{'s' if lines[1:] else ''} {', '.join(map(str, lines))}"
        message = f"`{node.name}` reads tensor data on the host ({where}): as one piece it ends the graph once"
        message += f" (and takes {cluster.operations} operations out of it)"
        disable = facts.writing.spelled("torch.compiler.disable", node)
        if disable is None or not facts.ask(Clusters).has_early(disable.partition(".")[0], node):
            yield Finding(node, message, assumption="`torch` is not imported above it")
            return
        if (line := _said(node, cluster, facts)) is not None:
            decided = f"the comment in line {line} speaks of how it is compiled: whoever wrote it has looked"
            yield Finding(node, message, assumption=decided)
            return
        edits = _moved(node, cluster, disable, facts) if cluster.first else (Decorate(node, Code(disable)),)
        yield Finding(node, message, Fix(edits, Applicability.UNSAFE, last=True), assumption=_LOST)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _said(function: ast.FunctionDef, cluster: Cluster, facts: Facts) -> int | None:
    """The line of a comment on compiling in, or right above, what would leave the graph."""
    first, last = cluster.first or function.body[0], cluster.last or function.body[-1]
    at = function.body.index(first)
    above = function.body[at - 1].end_lineno if at else None
    return facts.comments.about_compiling((above or function.lineno) + 1, last.end_lineno or last.lineno)


def _moved(function: ast.FunctionDef, cluster: Cluster, disable: str, facts: Facts) -> tuple[Edit, ...]:
    """The part of ``function`` that reads, as a function of its own that is left out of the graph."""
    assert cluster.first is not None
    cls, me = facts.syntax.parents[function], self_name(function)
    method = isinstance(cls, ast.ClassDef) and me is not None
    name = _name(function, cluster, method, facts)
    noted = [h.annotation for h in cluster.handed if h.annotation is not None]
    written = [me] if method and me is not None else []
    for h in cluster.handed:
        written.append(h.name if h.annotation is None else f"{h.name}: {{{noted.index(h.annotation)}}}")
    whole = cluster.last is None and function.returns is not None
    result = f" -> {{{len(noted)}}}" if whole else ""
    parts = [*noted, *filter(None, (function.returns if whole else None,))]
    width = len(name + ", ".join(written)) + sum(len(ast.unparse(p)) for p in parts) + function.col_offset
    fits = width + _AROUND <= facts.line_length
    inside = ", ".join(written) if fits else "\n" + "".join(f"    {w},\n" for w in written)
    header = Code(f"@{disable}\ndef {name}({inside}){result}:", tuple(parts))
    call = f"{f'{me}.' if method else ''}{name}({', '.join(h.name for h in cluster.handed)})"
    left = ", ".join(cluster.left)
    if cluster.last is None:
        return (MoveTail(function, cluster.first, header, Code(f"return {call}")),)
    code = Code(f"{left} = {call}" if left else call)
    return (MoveTail(function, cluster.first, header, code, cluster.last, Code(f"return {left}") if left else None),)


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
