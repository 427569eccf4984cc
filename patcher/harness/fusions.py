"""Which operators of a case are written by hand, and what a backend that knows PyTorch's own would make of them.

A probe as those of ``probes.py``, in a process of its own: ``python fusions.py SPEC.json``. ``FuseBackend`` is one for
``torch.compile`` with a switch for each operator: PyTorch's pattern matcher looks for it in the graphs that AOT
Autograd makes. Standard library, torch, and what lies beside this file.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch._dynamo
import torch._functorch.partitioners
import torch._inductor.compile_fx
import torch._inductor.graph
import torch._inductor.pattern_matcher as matcher
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import unset_fake_temporarily

if TYPE_CHECKING:
    from patcher.harness import fusion_form, fusion_misses, fusion_patterns, probes
else:
    import fusion_form
    import fusion_misses
    import fusion_patterns
    import probes

aten = torch.ops.aten
Node = torch.fx.Node
Json = dict[str, Any]

ATTEMPTS = 8  # passes over the calls, at most: Dynamo gives a function up that it has compiled so often
MASKED_OUT = -1e4  # added to a score, or put in its place, it leaves nothing of it
LONGEST_TEXT = 2**19  # characters of a graph that are kept
_TORCH = str(Path(torch.__file__).parent) + os.sep
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+), in ')
_PART = re.compile(r"_(?:modules|parameters|buffers)\['([^']+)'\]|\['([^']+)'\]|\[(\d+)\]|(\w+)")
_OWN_CLASSES = {
    "rms-norm": ("RMSNorm",),
    "layer-norm": ("LayerNorm",),
    "gelu-tanh": ("GELU",),
    "gelu-erf": ("GELU",),
    "silu": ("SiLU",),
}


# ---------------------------------------------------------------------------------------------------------------------
# Where a node comes from.


@dataclass(frozen=True)
class Origin:
    """``module``: its path in the model; ``owner``: its class; ``file``, ``line``: of the user's code."""

    module: str = ""
    owner: str = ""
    file: str = ""
    line: int = 0


def origin(node: Any) -> Origin:
    """What Dynamo has noted of a node."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path, owner = stack[-1][:2] if stack else ("", "")
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if not frame[0].startswith(_TORCH)] or frames
    file, line = own[-1] if own else ("", "0")
    return Origin(module_path(str(path)), getattr(owner, "__name__", str(owner).rpartition(".")[2]), file, int(line))


def module_path(spelled: str) -> str:
    """``layers.0.norm`` for ``L['self']._modules['layers']._modules['0'].norm``."""
    parts = ["".join(found) for found in _PART.findall(spelled)]
    names = [part for part in parts if part not in ("L", "self", "_modules", "__dict__", "fn", "G")]
    return ".".join(names[2:] if names[:1] == ["args"] else names)  # what a wrapper has called its own arguments


def alike(path: str) -> str:
    """``layers.*.norm``: what the layers of a model have in common."""
    return re.sub(r"(?<![^.])\d+(?![^.])", "*", path)


def is_own(switch: str, node: Any) -> bool:
    """Whether the node is part of what PyTorch makes of its own operator."""
    sources = [entry[1] for entry in node.meta.get("source_fn_stack") or () if len(entry) > 1]
    classes = _OWN_CLASSES.get(switch, ())
    return any(
        source in fusion_patterns.OWN[switch]
        or (isinstance(source, type) and source.__module__.startswith("torch.nn") and source.__name__ in classes)
        for source in sources
        if callable(source)
    )


def own_operator(node: Any) -> str:
    """The switch of an operator that AOT Autograd leaves whole; "" for others."""
    target = node.target
    if target is aten.gelu.default:
        return "gelu-tanh" if node.kwargs.get("approximate") == "tanh" else "gelu-erf"
    name = fusion_form.name(target) if node.op == "call_function" else ""
    kept = {"silu": "silu", "silu_": "silu", "native_layer_norm": "layer-norm", "_fused_rms_norm": "rms-norm"}
    return "attention" if name.startswith("_scaled_dot_product") and "backward" not in name else kept.get(name, "")


# ---------------------------------------------------------------------------------------------------------------------
# The backend.


@dataclass
class Match:
    """A pattern that was found; ``joint``: with its backward, in a graph of training."""

    pattern: Any
    nodes: tuple[Any, ...]
    constants: tuple[tuple[str, float], ...] = ()
    joint: bool = False


@dataclass
class Seen:
    """One graph: what was found in it, and its text. ``attempt``: the pass in which it was compiled, from 1."""

    attempt: int
    origin: Origin
    training: bool
    captured: int = 0
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    matches: list[Match] = field(default_factory=list)
    misses: list[tuple[str, str, fusion_misses.Miss]] = field(default_factory=list)
    own: Counter[str] = field(default_factory=Counter)
    difference: float | None = None
    message: str = ""


class FuseBackend:
    """A backend for ``torch.compile`` that looks for operators written by hand: ``backend=FuseBackend()``.

    ``switches``: of ``fusion_patterns.SWITCHES``. ``place``: a node's ``file:line``. The graphs run as they were
    captured. ``seen``: what was found, graph by graph; the rewritten graph of inference is run once beside the other.
    """

    def __init__(
        self, switches: Sequence[str] = fusion_patterns.SWITCHES, place: Callable[[Any], str] | None = None
    ) -> None:
        self.switches, self.attempt = tuple(switches), 1
        self.seen: list[Seen] = []
        self._place = place or (lambda node: _spoken_place(origin(node)))
        self._rewritten: Any = None

    def __call__(self, module: Any, inputs: Any) -> Any:
        """Compile one graph of Dynamo's."""
        compiled = aot_autograd(
            fw_compiler=_as_it_is,
            bw_compiler=_as_it_is,
            inference_compiler=self._inference,
            partition_fn=self._training,
            decompositions={},
        )
        return compiled(module, inputs)

    def _inference(self, module: Any, inputs: Any) -> Any:
        seen = self._looked(module, False)
        return _Checked(module, seen, self._rewritten)

    def _training(self, joint: Any, inputs: Any, **options: Any) -> Any:
        """Look at the graph of forward and backward before it is divided; its forward part is looked at alone."""
        seen = self._looked(_forward_part(joint, options["num_fwd_outputs"]), True)
        try:
            self._joint(copy.deepcopy(joint), seen)
        except Exception as error:
            seen.message = seen.message or _told(error)
        return torch._functorch.partitioners.default_partition(joint, inputs, **options)

    def _looked(self, module: Any, training: bool) -> Seen:
        first = next((one for one in module.graph.nodes if one.op == "call_function"), None)
        seen = Seen(self.attempt, origin(first) if first is not None else Origin(), training)
        self.seen.append(seen)
        self._rewritten = None
        try:
            self._look(module, seen)
        except Exception as error:  # a graph that cannot be looked at runs all the same
            seen.message = _told(error)
        return seen

    def _look(self, module: Any, seen: Seen) -> None:
        seen.captured = _operators(module.graph)
        for node in module.graph.nodes:
            if switch := own_operator(node):
                seen.own[switch] += 1
        graph = fusion_form.normalised(copy.deepcopy(module))
        seen.before = list(fusion_form.lines(graph.graph, self._place))
        for switch in self.switches:
            self._apply(graph, switch, seen, joint=False)
        graph.graph.eliminate_dead_code()
        graph.graph.lint()
        graph.recompile()
        seen.after = list(fusion_form.lines(graph.graph, self._place))
        seen.misses = self._missed(graph.graph)
        for node in graph.graph.find_nodes(op="call_function", target=aten.view.default):
            node.target = aten.reshape.default  # copies that make things contiguous are no longer there
        graph.recompile()
        self._rewritten = graph

    def _joint(self, joint: Any, seen: Seen) -> None:
        """How often the patterns with their backward match, where PyTorch has an operator that has one."""
        graph = fusion_form.normalised(joint)
        for switch in self.switches:
            if switch in fusion_patterns.IN_TRAINING:
                self._apply(graph, switch, seen, joint=True)

    def _apply(self, graph: Any, switch: str, seen: Seen, joint: bool) -> None:
        targets = {node.target for node in graph.graph.nodes if node.op == "call_function"}
        if not any(pattern.anchors[0] in targets for pattern in _patterns(switch)):
            return
        own: set[str] = set()

        def noted(pattern: fusion_patterns.Pattern, match: Any) -> bool:
            nodes = tuple(match.nodes)
            if any(is_own(switch, node) for node in nodes):
                own.update(str(node.meta["source_fn_stack"][-1][0]) for node in nodes if is_own(switch, node))
                return False
            constants = tuple((key, value) for key, value in match.kwargs.items() if fusion_form.number(value))
            if dict(constants).get("fill", -math.inf) > MASKED_OUT:
                return False
            seen.matches.append(Match(pattern, nodes, constants, joint))
            return True

        _passes(switch, joint).apply(graph, noted)
        if not joint:
            seen.own[switch] += len(own)

    def _missed(self, graph: Any) -> list[tuple[str, str, fusion_misses.Miss]]:
        """Where a pattern almost matches; of each place the pattern that comes furthest."""
        found = []
        for node in [one for one in graph.nodes if one.op == "call_function"]:
            best: tuple[str, str, fusion_misses.Miss] | None = None
            for switch in self.switches:
                if is_own(switch, node):
                    best = None
                    break
                for pattern in _patterns(switch):
                    if node.target in pattern.anchors:
                        miss = self._laid_over(pattern, node)
                        if miss is not None and (best is None or miss.rank > best[2].rank):
                            best = (switch, pattern.how, miss)
            if best is not None and best[2].differs:
                found.append(best)
        return _furthest(found)

    def _laid_over(self, pattern: fusion_patterns.Pattern, node: Any) -> fusion_misses.Miss | None:
        graph = _graph_of(pattern)
        return fusion_misses.laid_over(graph, node.target, node, pattern.scalars, self._place)


def _furthest(found: list[tuple[str, str, fusion_misses.Miss]]) -> list[tuple[str, str, fusion_misses.Miss]]:
    """Of those that have operators in common the one that comes furthest: a pattern may have several anchors."""
    kept: list[tuple[str, str, fusion_misses.Miss]] = []
    for one in sorted(found, key=lambda one: one[2].rank, reverse=True):
        if not any(set(one[2].nodes) & set(other[2].nodes) for other in kept):
            kept.append(one)
    return [one for one in found if one in kept]


@contextlib.contextmanager
def _outside() -> Iterator[None]:
    """As if nothing were being compiled: patterns are traced with tensors of their own."""
    with torch._guards.tracing(None), unset_fake_temporarily():
        yield


def _unwanted(pattern: fusion_patterns.Pattern, match: Any) -> bool:
    return False


class _Passes:
    """The patterns of a switch, traced once in a process; who is told of their matches differs from graph to graph."""

    def __init__(self, switch: str, joint: bool) -> None:
        self._pass = matcher.PatternMatcherPass()
        self._noted: Callable[[fusion_patterns.Pattern, Any], bool] = _unwanted
        with _outside():
            for pattern in _patterns(switch):
                if pattern.own is not None or not joint:
                    fusion_patterns.register(pattern, self._pass, self._note, joint)

    def _note(self, pattern: fusion_patterns.Pattern, match: Any) -> bool:
        return self._noted(pattern, match)

    def apply(self, graph: Any, noted: Callable[[fusion_patterns.Pattern, Any], bool]) -> None:
        """Look for them in a graph."""
        self._noted = noted
        self._pass.apply(graph)


@functools.cache
def _passes(switch: str, joint: bool) -> _Passes:
    return _Passes(switch, joint)


@functools.cache
def _patterns(switch: str) -> tuple[fusion_patterns.Pattern, ...]:
    with _outside():  # they have tensors, and are kept
        return tuple(fusion_patterns.PATTERNS[switch]())


_GRAPHS: dict[int, Any] = {}


def _graph_of(pattern: fusion_patterns.Pattern) -> Any:
    """Of a pattern of ``_patterns``, which stay."""
    if id(pattern) not in _GRAPHS:
        with _outside():
            _GRAPHS[id(pattern)] = fusion_patterns.traced(pattern).graph
    return _GRAPHS[id(pattern)]


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:400]


def _operators(graph: Any) -> int:
    return sum(node.op == "call_function" for node in graph.nodes)


def _spoken_place(of: Origin) -> str:
    return f"{of.file}:{of.line}" if of.file else ""


def _as_it_is(module: Any, inputs: Any) -> Any:
    """Run a graph as it was captured; AOT Autograd hands over the arguments in a list that may be emptied."""

    def run(given: list[Any]) -> Any:
        taken = list(given)
        given.clear()
        return module(*taken)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _forward_part(joint: Any, outputs: int) -> Any:
    """The forward of a graph that also goes backward: what it would be if nothing were kept for backward."""
    module = copy.deepcopy(joint)
    last = next(node for node in module.graph.nodes if node.op == "output")
    results = torch.utils._pytree.tree_leaves(last.args[0])
    with module.graph.inserting_before(last):
        module.graph.output(tuple(results[:outputs]))
    module.graph.erase_node(last)
    module.graph.set_codegen(torch.fx.graph.CodeGen())
    module.graph.eliminate_dead_code()
    for node in [one for one in module.graph.nodes if one.op == "placeholder" and not one.users]:
        module.graph.erase_node(node)
    module.recompile()
    return module


class _Checked:
    """Runs a graph as it was captured, and the first time also as it was rewritten: do both give the same?"""

    _boxed_call = True

    def __init__(self, module: Any, seen: Seen, rewritten: Any) -> None:
        self._module, self._seen, self._rewritten = module, seen, rewritten if seen.matches else None

    def __call__(self, given: list[Any]) -> Any:
        taken = list(given)
        given.clear()
        output = self._module(*taken)
        if self._rewritten is not None:
            rewritten, self._rewritten = self._rewritten, None
            if not _draws(self._module.graph):
                try:
                    self._seen.difference = _apart(output, rewritten(*taken))
                except Exception as error:
                    self._seen.message = f"rewritten it does not run: {_told(error)}"
        return output


def _draws(graph: Any) -> bool:
    """Whether random numbers are drawn in it."""
    seeded = torch.Tag.nondeterministic_seeded
    drawing = (node for node in graph.nodes if seeded in getattr(node.target, "tags", ()))
    return any(own_operator(node) != "attention" for node in drawing)  # which may drop out, and in inference does not


def _apart(ours: Any, theirs: Any) -> float | None:
    """The largest difference, in proportion to the largest of the values of its tensor; None: nothing to compare.

    Infinite where a tensor has another dtype or shape.
    """
    found: float | None = None
    pairs = zip(torch.utils._pytree.tree_leaves(ours), torch.utils._pytree.tree_leaves(theirs), strict=True)
    for one, other in pairs:
        if isinstance(one, torch.Tensor) and (one.dtype, one.shape) != (other.dtype, other.shape):
            return math.inf
        if isinstance(one, torch.Tensor) and one.is_floating_point() and one.numel():
            a, b = one.double(), other.double()
            alike = (a == b) | (a.isnan() & b.isnan())
            scale = a[a.isfinite()].abs().max().clamp(min=1e-30) if a.isfinite().any() else 1.0
            apart = float((torch.where(alike, torch.zeros_like(a), (a - b).abs()) / scale).max())
            found = apart if found is None or not found >= apart else found
    return found


# ---------------------------------------------------------------------------------------------------------------------
# What inductor makes of the same graphs.


@dataclass
class Kernel:
    """One that inductor generates, or a call of another library (``extern``).

    ``lines``: of the user's code in it, each with the module that ran it.
    """

    graph: int
    extern: bool
    lines: frozenset[tuple[str, int, str]]


class _EnoughError(Exception):
    """Raised when the kernels are known: they need not be built."""


class KernelCount:
    """A backend that lets inductor generate its kernels and builds none: the graphs run as they were captured."""

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []
        self.graphs = 0

    def __call__(self, module: Any, inputs: Any) -> Any:
        """Compile one graph of Dynamo's."""
        return torch._inductor.compile_fx.compile_fx(module, inputs, inner_compile=self._inner)

    def _inner(self, module: Any, inputs: Any, **options: Any) -> Any:
        run = copy.deepcopy(module)  # inductor's passes change it
        original = torch._inductor.graph.GraphLowering.codegen
        self.graphs += 1

        def codegen(lowering: Any) -> Any:
            original(lowering)
            self.kernels += [_kernel(self.graphs, node) for node in lowering.scheduler.nodes if not _is_nothing(node)]
            raise _EnoughError

        torch._inductor.graph.GraphLowering.codegen = codegen
        try:
            torch._inductor.compile_fx.compile_fx_inner(module, inputs, **options)
        except Exception as error:
            if not _is_enough(error):
                raise
        finally:
            torch._inductor.graph.GraphLowering.codegen = original
        return _as_it_is(run, inputs)


def _is_enough(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, _EnoughError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_nothing(node: Any) -> bool:
    return type(node).__name__.startswith("Nop")


def _kernel(graph: int, node: Any) -> Kernel:
    made_of = [one for part in node.get_nodes() for one in getattr(part.node, "origins", ())]
    places = [origin(one) for one in made_of]
    extern = type(node).__name__.startswith("Extern")
    return Kernel(graph, extern, frozenset((place.file, place.line, place.module) for place in places if place.file))


# ---------------------------------------------------------------------------------------------------------------------
# The probe.


def fusions(lab: probes.Lab) -> Json:
    """Everything about one case: matches, near misses, graphs, scopes, and what inductor does by itself."""
    backend = FuseBackend(place=_placing(lab))
    whole = lab.attempt("module", functools.partial(_scope, lab, backend, _whole_model(lab, backend)), 2)
    if whole["status"] != "ok":
        return {"status": whole["status"], "message": whole["message"]}
    scopes = [whole]
    for name, way in (("class", _decorated_class), ("forward", _decorated_forward)):
        other = FuseBackend(place=_placing(lab))
        scopes.append(lab.attempt(name, functools.partial(_of_classes, lab, other, way), 1))
    kernels = KernelCount()
    inductor = lab.attempt("inductor", functools.partial(_inductor, lab, kernels))
    shown = _Shown(lab, kernels.kernels if inductor["status"] == "ok" else None)
    return {
        "switches": list(backend.switches),
        "train": lab.case.train,
        "in_training": list(fusion_patterns.IN_TRAINING),
        "own": {switch: sum(seen.own[switch] for seen in backend.seen) for switch in backend.switches},
        "matches": shown.matches(backend.seen),
        "misses": shown.misses(backend.seen),
        "graphs": [shown.graph(number, seen) for number, seen in enumerate(backend.seen, 1)],
        "scopes": scopes,
        "limit": ATTEMPTS,
        "inductor": inductor,
    }


def _placing(lab: probes.Lab) -> Callable[[Any], str]:
    shown = lab.listener._shown

    def place(node: Any) -> str:
        told = _spoken_place(origin(node))
        return str(shown(told)) if told else ""

    return place


def _whole_model(lab: probes.Lab, backend: FuseBackend) -> Callable[[Any], Any]:
    return lambda model: lab.case.compile(model, {"backend": backend})


def _scope(lab: probes.Lab, backend: FuseBackend, compiled: Callable[[Any], Any]) -> Json:
    """Passes over the calls until one compiles nothing, and what was found in their graphs."""
    trial = probes.Trial(lab, compiled)
    each: list[int] = []
    while len(each) < ATTEMPTS and (not each or each[-1]):
        backend.attempt, before = len(each) + 1, len(backend.seen)
        trial._pass(None)
        each.append(len(backend.seen) - before)
    found = Counter(match.pattern.switch for seen in backend.seen for match in seen.matches if not match.joint)
    return {
        "attempts": each,
        "steady": len(each) if each and not each[-1] else None,
        "graphs": len(backend.seen),
        "operators": sum(seen.captured for seen in backend.seen),
        "matches": dict(found),
    }


def _of_classes(lab: probes.Lab, backend: FuseBackend, way: Callable[[Any, Any], Any]) -> Json:
    """The same with the classes of repeated blocks compiled, and nothing else; of the model where there are none."""
    model = lab.case.build()
    classes = _block_classes(model)
    del model
    kept = {one: dict(vars(one)) for one in classes}
    try:
        for one in classes:
            way(one, backend)
        told = _scope(lab, backend, lambda model: model)
    finally:
        for one, before in kept.items():
            _restored(one, before)
    return {**told, "classes": [one.__name__ for one in classes]}


def _block_classes(model: Any) -> list[Any]:
    return list(dict.fromkeys(type(made[0]) for _, made in probes.repeated_blocks(model))) or [type(model)]


def _decorated_class(one: Any, backend: FuseBackend) -> None:
    torch.compile(backend=backend)(one)


def _decorated_forward(one: Any, backend: FuseBackend) -> None:
    one.forward = torch.compile(backend=backend)(one.forward)


def _restored(one: Any, before: Json) -> None:
    for name in [name for name in vars(one) if name not in before]:
        delattr(one, name)
    for name, value in before.items():
        if vars(one).get(name) is not value:
            setattr(one, name, value)


def _inductor(lab: probes.Lab, kernels: KernelCount) -> Json:
    counters["inductor"].clear()
    probes.Trial(lab, lambda model: lab.case.compile(model, {"backend": kernels}))._pass(None)
    return {
        "fused_attention": counters["inductor"]["fuse_attention"],
        "graphs": [
            {
                "kernels": sum(one.graph == number and not one.extern for one in kernels.kernels),
                "extern": sum(one.graph == number and one.extern for one in kernels.kernels),
            }
            for number in range(1, kernels.graphs + 1)
        ],
    }


class _Shown:
    """What was found as figures; what is alike in the layers of a model is one."""

    def __init__(self, lab: probes.Lab, kernels: list[Kernel] | None) -> None:
        self._shown, self._kernels = lab.listener._shown, kernels

    def matches(self, every: Sequence[Seen]) -> list[Json]:
        """One for each switch, way to write it, and place."""
        rows: dict[tuple[Any, ...], Json] = {}
        for seen in every:
            for match in seen.matches:
                if not match.joint:
                    row = self._row(seen, match.pattern.switch, match.pattern.how, match.nodes, rows)
                    row["constants"] = dict(match.constants)
        joints = Counter(
            (match.pattern.switch, self._where(match.nodes)[0])
            for seen in every
            for match in seen.matches
            if match.joint
        )
        for row in rows.values():
            row["joint"] = joints.get((row["switch"], row["where"]), 0)
        return self._summed(rows)

    def misses(self, every: Sequence[Seen]) -> list[Json]:
        """One for each switch, place and difference."""
        rows: dict[tuple[Any, ...], Json] = {}
        for seen in every:
            for switch, how, miss in seen.misses:
                told = [str(self._shown(text)) for text in miss.differs]
                row = self._row(seen, switch, how, miss.nodes, rows, (tuple(told), miss.matched))
                row.update(matched=miss.matched, of=miss.of, differs=told)
        return self._summed(rows)

    def graph(self, number: int, seen: Seen) -> Json:
        """The texts are cut where they are very long."""
        return {
            "number": number,
            "attempt": seen.attempt,
            "where": self._where_of(seen.origin),
            "module": seen.origin.module,
            "training": seen.training,
            "captured": seen.captured,
            "before": _count(seen.before),
            "after": _count(seen.after),
            "matches": sum(not match.joint for match in seen.matches),
            "difference": seen.difference,
            "message": str(self._shown(seen.message)),
            "text_before": "\n".join(seen.before)[:LONGEST_TEXT],
            "text_after": "\n".join(seen.after)[:LONGEST_TEXT],
        }

    def _row(
        self, seen: Seen, switch: str, how: str, nodes: Any, rows: dict[tuple[Any, ...], Json], more: Any = ()
    ) -> Json:
        where, lines = self._where(nodes)
        places = [origin(node) for node in nodes]
        inside = next((place for place in places if place.owner), Origin())
        key = (switch, how, where, alike(inside.module), more)
        row = rows.setdefault(
            key,
            {
                "switch": switch,
                "how": how,
                "where": where,
                "module": alike(inside.module),
                "class": inside.owner,
                "times": 0,
                "graphs": set(),
                "nodes": len(nodes),
                "kernels": set(),
            },
        )
        row["times"] += 1
        row["kernels"] |= lines
        row["graphs"].add(id(seen))
        return row

    def _summed(self, rows: dict[tuple[Any, ...], Json]) -> list[Json]:
        counts = [{"graphs": len(row["graphs"]), "kernels": self._touched(row["kernels"])} for row in rows.values()]
        return [{**row, **count} for row, count in zip(rows.values(), counts, strict=True)]

    def _where(self, nodes: Any) -> tuple[str, frozenset[tuple[str, int, str]]]:
        """``file:first-last``, and all lines."""
        places = [place for place in map(origin, nodes) if place.file]
        if not places:
            return "", frozenset()
        file = Counter(place.file for place in places).most_common(1)[0][0]
        lines = sorted({place.line for place in places if place.file == file})
        told = str(self._shown(f"{file}:{lines[0]}"))
        told += f"-{lines[-1]}" if lines[-1] != lines[0] else ""
        return told, frozenset((place.file, place.line, place.module) for place in places)

    def _where_of(self, of: Origin) -> str:
        told = _spoken_place(of)
        return str(self._shown(told)) if told else ""

    def _touched(self, lines: set[tuple[str, int, str]]) -> Json | None:
        """How many kernels of inductor's these lines are in, in all graphs; None where it was not tried."""
        if self._kernels is None:
            return None
        touched = [kernel for kernel in self._kernels if kernel.lines & lines]
        return {"generated": sum(not k.extern for k in touched), "extern": sum(k.extern for k in touched)}


def _count(lines: Sequence[str]) -> int:
    return sum(not line.startswith("return ") and " = input" not in line for line in lines)


probes.PROBES["fusions"] = fusions

if __name__ == "__main__":
    probes.main()
