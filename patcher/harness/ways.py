"""The ways to compile a model that ``--tune`` tries: what they are called, what is written for them, which suit a case.

Standard library only: this file is carried to machines that have nothing else of ours. Presets have the names that the
nodes of ComfyUI-TorchCompileSpeed have for them, as far as they are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

Json = dict[str, Any]
Scope = Literal["whole", "blocks"]

GOALS = ("latency", "throughput", "startup", "memory")
FAST_MATH = "torch._inductor.config.use_fast_math"
LIMITS = (64, 128)  # of recompilations, where the standard one was hit
LOWER_LIMIT = 2  # where memory has run out
QUICK = 3  # ways that are tried with --quick

_AUTOTUNE = "max-autotune-no-cudagraphs"
_GRAPHS = frozenset({"reduce-overhead", "max-autotune"})  # modes with CUDA graphs


@dataclass(frozen=True)
class Way:
    """One way. ``arguments``: of ``compile``; ``config``: settings by their dotted names.

    ``marked``: whether the dimensions that vary are marked before each call. ``why``: what it was added for;
    "" for those of the list.
    """

    name: str
    preset: str
    scope: Scope = "whole"
    arguments: tuple[tuple[str, Any], ...] = ()
    config: tuple[tuple[str, Any], ...] = ()
    marked: bool = False
    why: str = ""

    def given(self, arguments: Sequence[tuple[str, Any]]) -> Way:
        """With these arguments too, where it does not say otherwise."""
        return replace(self, arguments=tuple({**dict(arguments), **dict(self.arguments)}.items()))

    def json(self) -> Json:
        """For a plan, or a result."""
        return {**asdict(self), "arguments": dict(self.arguments), "config": dict(self.config)}

    @staticmethod
    def of(told: Mapping[str, Any]) -> Way:
        """The reverse of ``json``; other keys are passed over."""
        return Way(
            told["name"],
            told["preset"],
            told["scope"],
            tuple(told["arguments"].items()),
            tuple(told["config"].items()),
            told["marked"],
            told["why"],
        )


@dataclass(frozen=True)
class Facts:
    """What is to be known of a case before a way is chosen.

    ``blocks``: the lists of repeated blocks, by path, with how many there are. ``marks``: the dimensions that vary, by
    the argument's path. ``modes``: those that this torch has; ``missing``: the settings that it has not. ``module``:
    whether the model is one. ``limit``: the setting that limits recompilations.
    """

    device: str
    backend: str = "inductor"
    module: bool = True
    blocks: tuple[tuple[str, int], ...] = ()
    marks: tuple[tuple[str, tuple[int, ...]], ...] = ()
    modes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    own_compile: bool = False
    limit: str = "torch._dynamo.config.recompile_limit"

    @staticmethod
    def of(told: Mapping[str, Any]) -> Facts:
        """From what a process has told."""
        return Facts(
            device=told["device"],
            backend=told["backend"],
            module=told["module"],
            blocks=tuple((block["path"], block["count"]) for block in told["blocks"]),
            marks=tuple((mark["path"], tuple(mark["dims"])) for mark in told["marks"]),
            modes=tuple(told["modes"]),
            missing=tuple(told["missing"]),
            own_compile=told["own_compile"],
            limit=told["limit"],
        )


@dataclass(frozen=True)
class Chosen:
    """``ways`` in the order in which they are tried, cheap ones first; ``left``: names of others, and why not."""

    ways: tuple[Way, ...]
    left: tuple[tuple[str, str], ...] = ()


def known() -> tuple[str, ...]:
    """The names of all ways that may be asked for."""
    return tuple(way.name for way in _listed(Facts("cuda"), fast_math=True))


def chosen(facts: Facts, fast_math: bool = False, quick: bool = False, only: Sequence[str] = ()) -> Chosen:
    """Which ways suit a case; ``only``: of these names, in their order. Ways that nobody asked for are not ``left``."""
    ways: list[Way] = []
    left: list[tuple[str, str]] = []
    listed = list(_listed(facts, fast_math or "fast-math" in only))
    if only:
        listed = [way for name in only for way in listed if way.name == name]
    for way in listed:
        why = _unsuited(way, facts)
        if why:
            left.append((way.name, why))
        else:
            ways.append(way)
    if quick:
        ways = [way for way in ways if way.preset != "debug"]
        few = [*ways[:2], *(way for way in ways[2:] if way.preset in ("reduce-overhead", "fast-math")), *ways[2:]]
        ways = list(dict.fromkeys(few))[: QUICK + fast_math]
    return Chosen(tuple(ways), tuple(left))


def _listed(facts: Facts, fast_math: bool) -> Iterator[Way]:
    """All that there are, the cheap ones first."""
    yield Way("debug", "debug", arguments=(("backend", "aot_eager"), ("fullgraph", True)))
    yield Way("default", "default", arguments=_backend(facts))
    yield Way("default, blocks", "default", "blocks", arguments=_backend(facts))
    yield Way("dynamic", "default", arguments=(*_backend(facts), ("dynamic", True)))
    if fast_math:
        yield Way("fast-math", "fast-math", arguments=_backend(facts), config=((FAST_MATH, True),))
    yield Way("reduce-overhead", "reduce-overhead", arguments=_mode("reduce-overhead"))
    yield Way("marked", "default", arguments=_backend(facts), marked=True)
    yield Way("reduce-overhead, blocks", "reduce-overhead", "blocks", arguments=_mode("reduce-overhead"))
    yield Way("latency", "latency", arguments=(*_mode("reduce-overhead"), ("dynamic", False)))
    yield Way(_AUTOTUNE, _AUTOTUNE, arguments=_mode(_AUTOTUNE))
    yield Way("speed", "speed", arguments=(*_mode(_AUTOTUNE), ("dynamic", True)))
    yield Way("speed, blocks", "speed", "blocks", arguments=(*_mode(_AUTOTUNE), ("dynamic", True)))
    yield Way("max-autotune", "max-autotune", arguments=_mode("max-autotune"))


def _mode(name: str) -> tuple[tuple[str, Any], ...]:
    return (("mode", name),)


def _backend(facts: Facts) -> tuple[tuple[str, Any], ...]:
    return () if facts.backend == "inductor" else (("backend", facts.backend),)


def _unsuited(way: Way, facts: Facts) -> str:
    """Why a way is not tried with a case; "" when it is."""
    given = dict(way.arguments)
    mode = given.get("mode")
    gone = [name for name, _ in way.config if name in facts.missing]
    if gone:
        return f"this torch has no `{gone[0]}`"
    if mode and facts.backend != "inductor":
        return f"the backend {facts.backend} takes no mode"
    if way.config and facts.backend != "inductor":
        return f"it is a setting of inductor, and the backend is {facts.backend}"
    if mode and mode not in facts.modes:
        return f'this torch has no mode "{mode}"'
    if mode in _GRAPHS and facts.device != "cuda":
        same = _AUTOTUNE if mode == "max-autotune" else "default"
        return f'CUDA graphs need a GPU: on a CPU mode "{mode}" is "{same}" under another name'
    if way.scope == "blocks" and not facts.blocks:
        return "the model has no list of two or more modules of one class"
    if way.marked and not facts.marks:
        return "no dimension of what the model is called with varies in this case"
    if way.preset == "latency" and not facts.marks:
        return "all calls have the same sizes, so it is reduce-overhead"
    return ""


def lines(way: Way, facts: Facts) -> list[str]:
    """What is written for a way, in Python, for a model of the name ``model``: and what is run to measure it."""
    told = [f"{name} = {value!r}" for name, value in way.config]
    given = ", ".join(f"{name}={_literal(value)}" for name, value in way.arguments)
    if way.scope == "blocks":
        return [*told, *(f"for block in {_attribute(path)}: block.compile({given})" for path, _ in facts.blocks)]
    if facts.module:
        return [*told, f"model.compile({given})"]
    return [*told, f"model = torch.compile(model{', ' if given else ''}{given})"]


def marking(facts: Facts) -> list[str]:
    """The calls that mark the dimensions that vary, for in front of each call of the model."""
    return [f"torch._dynamo.maybe_mark_dynamic({path}, {list(dims)})" for path, dims in facts.marks]


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _attribute(path: str) -> str:
    if all(part.isidentifier() for part in path.split(".")):
        return f"model.{path}"
    return f'model.get_submodule("{path}")' if path else "model"


def following(way: Way, result: Mapping[str, Any], facts: Facts, known: Sequence[str]) -> list[Way]:
    """What is to be tried next because of how a way has ended; ``known``: the names of all so far."""
    added: list[Way] = []
    base = way.name.partition(",")[0]
    if result["status"] == "out-of-memory" and way.preset != "debug":
        why = f"{way.name} ran out of memory"
        if way.scope == "whole" and facts.blocks:
            added.append(replace(way, name=f"{base}, blocks", scope="blocks", why=why))
        elif not any(name == facts.limit for name, _ in way.config):
            lower = _limited(replace(way, why=why), facts, LOWER_LIMIT)
            added.append(replace(lower, name=f"{way.name}, limit {LOWER_LIMIT}"))
    hits = (result.get("counts") or {}).get("limit_hits")
    if hits and way.preset == "default" and not way.marked and "dynamic" not in dict(way.arguments):
        limits = dict(way.config).get(facts.limit)
        higher = next((n for n in LIMITS if limits is None or n > limits), None)
        if higher:
            without = way.name.partition(", limit")[0]
            limited = _limited(replace(way, why=f"{way.name} hit the recompile limit"), facts, higher)
            added.append(replace(limited, name=f"{without}, limit {higher}"))
    return [one for one in added if one.name not in known]


def _limited(way: Way, facts: Facts, limit: int) -> Way:
    return replace(way, config=((facts.limit, limit), *(pair for pair in way.config if pair[0] != facts.limit)))


def figure(goal: str, result: Mapping[str, Any]) -> float | None:
    """What a way is measured by under a goal, the less the better: ms, s or bytes; None where it is not known.

    ``latency``: one call that is waited for. ``throughput``: a pass over all calls, none of which is waited for.
    ``startup``: the first pass of a process that finds the cache of an earlier one. ``memory``: the peak of warm
    passes.
    """
    if result.get("status") != "ok":
        return None
    if goal == "startup":
        return (result.get("second") or {}).get("cold_seconds")
    if goal == "memory":
        return (result.get("memory") or {}).get("bytes")
    if goal == "throughput" or not result.get("call_ms"):
        return (result.get("warm") or {}).get("median_ms")
    return float(result["call_ms"]["median_ms"])


def by_goal(goal: str, results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that have run, the best under a goal first; before the second processes, startup goes by the first."""

    def key(result: Mapping[str, Any]) -> float:
        known = figure(goal, result)
        return known if known is not None else result.get("cold_seconds") or float("inf")

    return sorted((result for result in results if result.get("status") == "ok" and result.get("warm")), key=key)
