"""FC301: a cache of keys and values that is changed inside of compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Cache, CacheMethod, Facts, api, dotted
from patcher.rule import (
    Applicability,
    Code,
    Decorate,
    Edit,
    Example,
    Finding,
    Fix,
    Insert,
    NearMiss,
    ReplaceStatements,
)

_ONE_GRAPH = "nothing that is compiled with fullgraph=True, or exported, reaches this cache: there, a break is an error"
#: Decorators that do not care which function object they are given.
_HARMLESS = api.GRAD_OFF | {
    "property",
    "abc.abstractmethod",
    "torch.enable_grad",
    "torch.set_grad_enabled",
    "typing.final",
    "typing.override",
    "typing_extensions.override",
}


class KVCacheMutation:
    """A method of a key/value cache that reads or changes, in compiled code, how far the cache is filled.

    What it does:
        Keeps the cache's bookkeeping out of the graph, in one of two ways (``--strategy kv-cache=NAME``).
        ``graph-break`` puts an explicit graph break before the first read or write of the cache's state in each method
        that reads or writes its index; a break of your own that stands further down moves up. ``eager-zone`` marks
        these methods ``@torch.compiler.disable``. The default, ``auto``, marks only the methods in which the host reads
        an integer tensor of the cache (``.item()``, ``int(t)``, a tensor as the bound of a slice), for these end the
        graph anyway. Methods whose index is a Python integer, or a list of them, are left alone, for Dynamo traces
        those without a break; an explicit break in one is reported. A third strategy, ``single-graph``, which turns
        tensor state into Python integers, is not there yet.

    Why it breaks compilation:
        A number that is read out of a tensor does not exist while Dynamo traces, so each ``.item()`` ends the graph,
        compiles the rest of the method as a function of its own with guards on the cache's state, and recompiles as
        the cache fills. What follows an explicit ``graph_break()`` is compiled again in the same way: it is no
        eager zone. ``torch.compiler.disable`` is one break at the call, and nothing inside is traced or guarded.

        Measured on torch 2.13 (breaks, recompiles, graph launches): Toto with 12 layers, prefill and 12 steps,
        30/24/1354 as it is, 24/21/1068 with ``auto``, 44/37/2129 and a hit recompile limit with ``graph-break``; on the
        fork of Toto whose index is a list, with a break behind the writes, 29/36/793 and a hit limit.
        Two stores of our own that are called in a loop, with three layers: breaks and recompiles 6/3 and 4/8 become
        1/0 and 1/0, and 18 calls take 2.2 instead of 7.0 ms and 1.9 instead of 3.2 ms (CPU, inductor), although the
        method's own few operators (162 and 156 launched before) are no longer compiled.

    Fix safety:
        Eager code computes what it did before: a graph break and ``torch.compiler.disable`` do nothing outside of
        compiled code. Decorating imports ``torch._dynamo`` when the class is defined. Where a break is an error
        (``fullgraph=True``, ``torch.export``, anywhere in the files that are looked at) the fix is unsafe. A class is a cache when it has
        a buffer of three dimensions or more and integers that its initialiser makes, a method that writes the buffer
        at a place computed from the integers and advances these, and one that reads a prefix or all of the buffer.
        Counters, running statistics, queues that wrap round, rows addressed one by one and buffers that something
        else measures are none. ``auto`` also leaves alone: methods that compute more than where data goes, methods with
        decorators that it does not know, projects that capture scalar outputs. Caches whose amounts are themselves tensor data are only
        reported, whatever the strategy. Methods that only empty the cache count when compiled code reaches them.

    References:
        The key/value cache of the Toto report, and docs/results/toto-kv-cache.md; PyTorch, ``torch.compiler.disable``
        and "Working with graph breaks" (``Tensor.item()``: graph break GB0124).
    """

    code: ClassVar[str] = "FC301"
    name: ClassVar[str] = "kv-cache-mutation"
    triggers: ClassVar[tuple[bytes, ...]] = (b"zeros", b"empty", b"ones", b"full")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.ClassDef,)
    fixed_in: ClassVar[tuple[int, int] | None] = None
    strategy_key: ClassVar[str] = "kv-cache"
    strategies: ClassVar[tuple[str, ...]] = ("auto", "graph-break", "eager-zone")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the methods of the cache class ``node`` that the chosen strategy is about."""
        assert isinstance(node, ast.ClassDef)
        cache = facts.cache(node)
        if cache is None or any(facts.qualified(d) in ("torch.jit.script", "torch.compile") for d in node.decorator_list):
            return
        for method in cache.methods:
            if _called_in_graph(cache, method, facts):
                yield from _findings(cache, method, facts)


def _called_in_graph(cache: Cache, method: CacheMethod, facts: Facts) -> bool:
    """Calls of a plain object come through arguments; those of a module's method can be followed from forward."""
    if _decorators(method.function, facts) & (api.DISABLE | api.COMPILE):
        return False
    followed = method.only_resets or (
        facts.is_module_class(cache.cls) and any(f.function.name == "forward" for f in cache.methods)
    )
    return not followed or facts.reached(method.function)


def _findings(cache: Cache, method: CacheMethod, facts: Facts) -> Iterator[Finding]:
    strategy = facts.strategy("kv-cache")
    zone = strategy == "eager-zone" or (strategy == "auto" and _read_by_host(cache, method))
    if strategy == "auto" and not zone:
        for late in method.breaks:
            yield Finding(
                late,
                "an explicit graph break splits a method of a cache whose index is held on the host",
                assumption="Python integers are traced without a break: taking this one out would leave one graph",
                strategy=strategy,
            )
        return
    if strategy == "graph-break" and _breaks_in_time(method):
        return
    message = "the index of a key/value cache is read or changed in compiled code"
    reason = _why_not(cache, method, facts, strategy)
    if reason:
        yield Finding(method.function, message, assumption=reason, strategy=strategy)
        return
    edits, imports = _zone(method, facts) if zone else _break(method, facts)
    risky = facts.project.one_graph
    fix = Fix(edits, Applicability.UNSAFE if risky else Applicability.SAFE, imports)
    yield Finding(method.function, message, fix, _ONE_GRAPH if risky else "", "eager-zone" if zone else "graph-break")


def _read_by_host(cache: Cache, method: CacheMethod) -> bool:
    """Whether ``method`` ends the graph by itself, or works with what such a method returns."""
    return bool(method.host_reads) or (method.calls_reader and any(m.host_reads for m in cache.methods))


def _why_not(cache: Cache, method: CacheMethod, facts: Facts, strategy: str) -> str:
    if cache.foreign is not None:
        return f"the amount `{ast.unparse(cache.foreign)}` is itself tensor data; writing through a mask would be needed"
    unknown = _decorators(method.function, facts) - _HARMLESS
    if strategy == "graph-break":
        scripted = any(d.startswith("torch.jit.") for d in unknown)
        shared = any(s is not method.first and s.lineno == method.first.lineno for s in method.function.body)
        return "it is compiled by TorchScript" if scripted else "its first statements share a line" if shared else ""
    if unknown:
        return f"what the decorator `{min(unknown)}` makes of a disabled function is not known"
    if method.computes and (method.heavy or strategy == "auto"):
        return f"the method also computes ({method.computes}), which would no longer be compiled"
    if strategy == "auto" and "capture_scalar_outputs" in facts.project.foreign_stores:
        return "capture_scalar_outputs is set somewhere, so reading one number may not end the graph"
    return ""


def _decorators(function: ast.FunctionDef, facts: Facts) -> set[str]:
    found = set()
    for d in function.decorator_list:
        target = d.func if isinstance(d, ast.Call) else d
        name = facts.qualified(target) or dotted(target) or ast.unparse(target)
        found.add("property" if name in (f"{function.name}.setter", f"{function.name}.getter") else name)
    return found


def _zone(method: CacheMethod, facts: Facts) -> tuple[tuple[Edit, ...], tuple[str, ...]]:
    disable = facts.spelled("torch.compiler.disable", method.function)
    return (Decorate(method.function, Code(disable or "torch.compiler.disable")),), () if disable else ("torch",)


def _breaks_in_time(method: CacheMethod) -> bool:
    body = method.function.body
    return any(b in body and body.index(b) <= body.index(method.first) for b in method.breaks)


def _break(method: CacheMethod, facts: Facts) -> tuple[tuple[Edit, ...], tuple[str, ...]]:
    """The break before ``method.first``: an own one that stands in the same block further down, or a new one."""
    late = next((b for b in method.breaks if b in method.function.body), None)
    if late is not None:
        return (ReplaceStatements((late,), ()), Insert(method.first, (_again(late),))), ()
    asks = facts.spelled("torch.compiler.is_compiling", method.function)
    breaks = facts.spelled("torch._dynamo.graph_break", method.function)
    code = f"if {asks or 'torch.compiler.is_compiling'}():\n    {breaks or 'torch._dynamo.graph_break'}()"
    return (Insert(method.first, (Code(code),)),), () if asks and breaks else ("torch",)


def _again(s: ast.stmt) -> Code:
    """The explicit break ``s`` once more, as it is written."""
    if isinstance(s, ast.If):
        inner = [_again(b) for b in s.body]
        lines = "".join("\n    " + code.template.replace("\n", "\n    ") for code in inner)
        return Code(f"if {ast.unparse(s.test)}:{lines}")
    return Code(ast.unparse(s))
