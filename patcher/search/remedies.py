"""Outcomes of compiling that are causes themselves, each with the settings of PyTorch that exist for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from patcher.diagnose.bench import State
from patcher.diagnose.eager_time import eager_share
from patcher.harness.measured import Figures
from patcher.settings import TorchSetting

_LIMIT = 64

#: What an error of compiled code says, and the settings that may avoid it, the most specific first.
_ERRORS: tuple[tuple[str, tuple[TorchSetting, ...]], ...] = (
    (
        r"FailOnRecompileLimitHit|recompile_limit|cache_size_limit",
        (
            TorchSetting("config", "force_parameter_static_shapes", False),
            TorchSetting("config", "recompile_limit", _LIMIT),
        ),
    ),
    (
        r"GuardOnDataDependentSymNode|[Uu]nbacked|data-dependent",
        (
            TorchSetting("config", "capture_scalar_outputs"),
            TorchSetting("config", "capture_dynamic_output_shape_ops"),
            TorchSetting("argument", "dynamic", False),
        ),
    ),
    (r"ConstraintViolation|SymInt|symbolic", (TorchSetting("argument", "dynamic", False),)),
    (r"RNN|LSTM|GRU", (TorchSetting("config", "allow_rnn"),)),
)

#: What an error says that is the machine's: no memory, no compiler.
OF_MACHINE = re.compile(
    r"SIGKILL|cannot be read|InvalidCxxCompiler|TritonMissing|(?:no|find C|working C\+\+) compiler|working triton"
)


def for_errors(state: State) -> Iterator[TorchSetting]:
    """Yield the settings for errors that the original raises when it is compiled.

    A higher limit, too, where a guard may have no bound: such a program never settles, and then it is not kept.
    """
    said = [
        variant.message
        for case in state.results.cases
        for variant in case.variants
        if (variant.tree, variant.kind) == ("original", "compiled") and variant.figures is None
    ]
    for pattern, settings in _ERRORS:
        if any(re.search(pattern, message) for message in said):
            yield from settings


def named(figures: tuple[Figures, ...]) -> str:
    """What keeps compiled code from paying, in one line; "" where nothing of the kind was seen."""
    return "; ".join(filter(None, (_cause(figures), eager_share(figures))))


def _cause(figures: tuple[Figures, ...]) -> str:
    if figures and not any(one.launches for one in figures):
        return "nothing is in graphs: each frame falls back to eager"
    if any(one.counts.limit_hits for one in figures):
        return "the recompile limit was hit, and the rest runs eagerly"
    if any(call.graphs or call.recompiles for one in figures for call in one.settled):
        return "it never settles: each pass compiles again"
    dropped = sum(one.counts.dropped_frames for one in figures)
    if dropped:
        return f"{dropped} frame{'s' if dropped > 1 else ''} fell back to eager"
    return ""
