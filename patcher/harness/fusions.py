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
from typing import Any

import torch
import torch._dynamo
import torch._functorch.partitioners
import torch._inductor.pattern_matcher as matcher
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import unset_fake_temporarily

if not __package__:  # run by its path: what lies beside it is one package
    __package__ = str(__import__("worker").__package__)

from . import fusion_form, fusion_patterns, probes
from .trials import Lab, Trial

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
    name = getattr(target, "_opname", "")  # of an operator, without its overload
    kept = {"silu": "silu", "silu_": "silu", "native_layer_norm": "layer-norm", "_fused_rms_norm": "rms-norm"}
    return "attention" if name.startswith("_scaled_dot_product") and "backward" not in name else kept.get(name, "")


# ---------------------------------------------------------------------------------------------------------------------
# The backend.


@dataclass
class Match:
    """A pattern that was found."""

    pattern: Any
    nodes: tuple[Any, ...]
    constants: tuple[tuple[str, float], ...] = ()


@dataclass
class Seen:
    """One graph: what was found in it, and its text. ``attempt``: the pass in which it was compiled, from 1."""

    attempt: int
    origin: Origin
    training: bool
    captured: int = 0
    before: tuple[int, str] = (0, "")
    after: tuple[int, str] = (0, "")
    matches: list[Match] = field(default_factory=list)
    own: Counter[str] = field(default_factory=Counter)
    difference: float | None = None
    message: str = ""


class FuseBackend:
    """A backend for ``torch.compile`` that looks for operators written by hand: ``backend=FuseBackend()``.

    ``switches``: of ``fusion_patterns.SWITCHES``. The graphs run as they were captured. ``seen``: what was found,
    graph by graph; the rewritten graph of inference is run once beside the other.
    """

    def __init__(self, switches: Sequence[str] = fusion_patterns.SWITCHES) -> None:
        self.switches, self.attempt = tuple(switches), 1
        self.seen: list[Seen] = []
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
        """Look at the forward part of a graph of forward and backward, before that is divided."""
        self._looked(_forward_part(joint, options["num_fwd_outputs"]), True)
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
        seen.before = (_operators(graph.graph), graph.print_readable(print_output=False))
        for switch in self.switches:
            self._apply(graph, switch, seen)
        graph.graph.eliminate_dead_code()
        graph.graph.lint()
        graph.recompile()
        seen.after = (_operators(graph.graph), graph.print_readable(print_output=False))
        for node in graph.graph.find_nodes(op="call_function", target=aten.view.default):
            node.target = aten.reshape.default  # copies that make things contiguous are no longer there
        graph.recompile()
        self._rewritten = graph

    def _apply(self, graph: Any, switch: str, seen: Seen) -> None:
        targets = {node.target for node in graph.graph.nodes if node.op == "call_function"}
        if not any(pattern.anchor in targets for pattern in _patterns(switch)):
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
            seen.matches.append(Match(pattern, nodes, constants))
            return True

        _passes(switch).apply(graph, noted)
        seen.own[switch] += len(own)


@contextlib.contextmanager
def _outside() -> Iterator[None]:
    """As if nothing were being compiled: patterns are traced with tensors of their own."""
    with torch._guards.tracing(None), unset_fake_temporarily():
        yield


def _unwanted(pattern: fusion_patterns.Pattern, match: Any) -> bool:
    return False


class _Passes:
    """The patterns of a switch, traced once in a process; who is told of their matches differs from graph to graph."""

    def __init__(self, switch: str) -> None:
        self._pass = matcher.PatternMatcherPass()
        self._noted: Callable[[fusion_patterns.Pattern, Any], bool] = _unwanted
        with _outside():
            for pattern in _patterns(switch):
                fusion_patterns.register(pattern, self._pass, self._note)

    def _note(self, pattern: fusion_patterns.Pattern, match: Any) -> bool:
        return self._noted(pattern, match)

    def apply(self, graph: Any, noted: Callable[[fusion_patterns.Pattern, Any], bool]) -> None:
        """Look for them in a graph."""
        self._noted = noted
        self._pass.apply(graph)


@functools.cache
def _passes(switch: str) -> _Passes:
    return _Passes(switch)


@functools.cache
def _patterns(switch: str) -> tuple[fusion_patterns.Pattern, ...]:
    with _outside():  # they have tensors, and are kept
        return tuple(fusion_patterns.PATTERNS[switch]())


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:400]


def _operators(graph: Any) -> int:
    return sum(node.op == "call_function" for node in graph.nodes)


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
# The probe.


def fusions(lab: Lab) -> Json:
    """Everything about one case: matches, graphs, and in which pass nothing is compiled any more."""
    backend = FuseBackend()
    passes = lab.attempt("module", functools.partial(_passes_over, lab, backend))
    if passes["status"] != "ok":
        return {"status": passes["status"], "message": passes["message"]}
    shown = _Shown(lab)
    return {
        "switches": list(backend.switches),
        "train": lab.case.train,
        "own": {switch: sum(seen.own[switch] for seen in backend.seen) for switch in backend.switches},
        "matches": shown.matches(backend.seen),
        "graphs": [shown.graph(number, seen) for number, seen in enumerate(backend.seen, 1)],
        "attempts": passes["attempts"],
        "limit": ATTEMPTS,
    }


def _passes_over(lab: Lab, backend: FuseBackend) -> Json:
    """Passes over the calls until one compiles nothing: how many graphs each has compiled."""
    trial = Trial(lab, lambda model: lab.case.compile(model, {"backend": backend}))
    each: list[int] = []
    while len(each) < ATTEMPTS and (not each or each[-1]):
        backend.attempt, before = len(each) + 1, len(backend.seen)
        trial._pass(None)
        each.append(len(backend.seen) - before)
    return {"attempts": each}


class _Shown:
    """What was found as figures; what is alike in the layers of a model is one."""

    def __init__(self, lab: Lab) -> None:
        self._shown = lab.listener._shown

    def matches(self, every: Sequence[Seen]) -> list[Json]:
        """One for each switch, way to write it, and place."""
        rows: dict[tuple[str, ...], Json] = {}
        for seen in every:
            for match in seen.matches:
                places = [origin(node) for node in match.nodes]
                inside = next((place for place in places if place.owner), Origin())
                told = {"switch": match.pattern.switch, "how": match.pattern.how, "where": self._where(places)}
                told |= {"module": alike(inside.module)}
                row = rows.setdefault(tuple(told.values()), {**told, "class": inside.owner, "times": 0, "graphs": []})
                row["times"] += 1
                row["graphs"].append(id(seen))
                row.update(nodes=len(match.nodes), constants=dict(match.constants))
        return [{**row, "graphs": len(set(row["graphs"]))} for row in rows.values()]

    def graph(self, number: int, seen: Seen) -> Json:
        """The texts are cut where they are very long."""
        return {
            "number": number,
            "attempt": seen.attempt,
            "where": self._where([seen.origin]),
            "training": seen.training,
            "captured": seen.captured,
            "before": seen.before[0],
            "after": seen.after[0],
            "matches": len(seen.matches),
            "difference": seen.difference,
            "message": str(self._shown(seen.message)),
            "text_before": str(self._shown(seen.before[1]))[:LONGEST_TEXT],
            "text_after": str(self._shown(seen.after[1]))[:LONGEST_TEXT],
        }

    def _where(self, places: Sequence[Origin]) -> str:
        """``file:first-last``."""
        known = [place for place in places if place.file]
        if not known:
            return ""
        file = Counter(place.file for place in known).most_common(1)[0][0]
        lines = sorted({place.line for place in known if place.file == file})
        told = str(self._shown(f"{file}:{lines[0]}"))
        return told + (f"-{lines[-1]}" if lines[-1] != lines[0] else "")


probes.PROBES["fusions"] = fusions

if __name__ == "__main__":
    probes.main()
