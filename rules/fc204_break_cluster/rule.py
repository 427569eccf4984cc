"""FC204: a function that reads tensor data on the host again and again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.syntax.classes import self_name
from patcher.facts.zones.clusters import Cluster, Clusters
from patcher.facts.zones.scripting import Scripting
from patcher.facts.zones.uncaptured import UncapturedReads
from patcher.rule import Applicability, Code, Cost, Decorate, Edit, Example, Finding, Fix, MoveTail, NearMiss, Rule
from rules.fc204_break_cluster.examples import INVALID, VALID

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
        rule removes the reads, there is no need of it. What is left out stays out with any setting of PyTorch, also
        those of its reads that one takes in; `prove --unsafe` measures settings with this fix and without, and keeps
        what comes to fewer graphs.

    Why it breaks compilation:
        Each ``.tolist()``, ``.item()``, ``nonzero()``, ``unique()``, ``repeat_interleave(x, counts)`` and ``x[mask]``
        breaks the graph, in this function and in every function that called it on the way. A break in a loop drops the
        whole frame. What is read becomes a number that compiled code holds true: other pictures, other numbers, all is
        compiled again. A call that is left out breaks the graph once, and nothing in it is ever compiled.

    Fix safety:
        Python runs the same statements in the same order, so values, gradients and aliasing are what eager execution
        gives. Safe where the marked part certainly holds something that no setting of Dynamo takes into a graph, so
        that nothing is lost that compiles today: with ``fullgraph=True``, with ``capture_scalar_outputs`` and
        ``capture_dynamic_output_shape_ops``, or with ``torch.export`` in strict mode. What these capture was found out
        by running it (docs/captured.md): reads by themselves, and results of unknown size; not a branch or ``range`` on
        what was read, nor a loop over, or ``.tolist()`` of, a result of unknown size. It has to be asked whenever the
        part runs, before a ``return``, of a tensor that is made there and was not compared with a size or asserted
        before. A loop over the rows of a tensor is taken to have a turn, ``groupby`` over its elements two, and a
        tensor that is handed in not to be made of a number in the code. Otherwise unsafe: right where nobody compiles
        the code like that; and reported only, where a comment in the part speaks of graph breaks or the like. Unsafe
        also where ``torch.jit.script`` may compile it, which is presumed only of code that something near it prepares
        for that.
        The part does bookwork only: no layer, no weight, no matrix product, softmax or the like, also in the functions
        of this file that it calls (the message counts what leaves the graph); and it is not what gets compiled itself.
        A method that is overridden in another file is taken to do what the one here does. Where a class above or below
        may come to have a method of the same name, the new one is named after its class as well, for both may be taken
        apart. A parameter that is annotated as a tensor may still be given a number, so an annotation alone makes no
        read. A file that switches
        capture flags on is not fixed. The rule says nothing about ``forward`` itself, about a part behind which the
        same is read again, about reads that may not run, about checks (FC102), and about a single read, which is one
        break as it is, unless up to fifteen operations stand on both sides of it: each side is a graph of its own,
        which takes longer to start than these to run (docs/results/graph-start.md).

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
        message = f"`{node.name}` reads tensor data on the host ({where}): as one piece it breaks the graph once"
        message += f" (and takes {cluster.operations} operations out of it)"
        disable = facts.writing.spelled("torch.compiler.disable", node)
        if disable is None or not facts.ask(Clusters).has_early(disable.partition(".")[0], node):
            yield Finding(node, message, assumption="`torch` is not imported above it")
            return
        assumption = _lost(node, cluster, facts)
        if assumption and (line := _said(node, cluster, facts)) is not None:
            decided = f"the comment in line {line} speaks of how it is compiled: whoever wrote it has looked"
            yield Finding(node, message, assumption=decided)
            return
        whole = (Decorate(node, Code(disable)),)
        edits = _moved(node, cluster, disable, facts) if cluster.first else whole
        safety = Applicability.UNSAFE if assumption else Applicability.SAFE
        yield Finding(node, message, Fix(edits, safety, last=True), assumption=assumption)

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _said(function: ast.FunctionDef, cluster: Cluster, facts: Facts) -> int | None:
    """The line of a comment on compiling in, or right above, what would leave the graph."""
    first, last = cluster.first or function.body[0], cluster.last or function.body[-1]
    at = function.body.index(first)
    above = function.body[at - 1].end_lineno if at else None
    return facts.comments.about_compiling((above or function.lineno) + 1, last.end_lineno or last.lineno)


def _lost(function: ast.FunctionDef, cluster: Cluster, facts: Facts) -> str:
    """What has to be so for nothing to be lost that compiles the function today; "" when nothing can be."""
    first, last = cluster.first or function.body[0], cluster.last or function.body[-1]
    certain = any(r.certain for r in cluster.reads)
    if not certain or facts.ask(UncapturedReads).first(function, first, last) is None:
        return "nothing compiles it with `fullgraph=True`, capture flags or `torch.export`, which go through its reads"
    scripted = facts.ask(Scripting).why(function, widely=True)
    return f"`torch.jit.script` does not compile it: {scripted}" if scripted else ""


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
