"""What a report tells beside the verdict, where time is left: other sizes, whole calls, blocks, options of inductor."""

from __future__ import annotations

import time
from dataclasses import replace

from patcher.diagnose.diagnostics import diagnostics
from patcher.search.judged import Configuration
from patcher.search.optimizing import Optimizer

_COUNTED = ("fullgraph", "vary-batch", "vary-sequence")  # they generate no code
_TIMED = ("latency", "ablation")
_COMPILED = 10  # times that those compile, about
_SHARE, _LEAST = 0.5, 20.0  # of the seconds that the search took, and seconds, that this takes at most


def look_further(search: Optimizer) -> None:
    """Measure what is kept, or else the original, in these ways. Raises what ``Bench.measure`` raises."""
    one = search.best.configuration if search.best else Configuration()
    spent = time.monotonic() - search.began
    seconds = min(search.budget - spent, max(_LEAST, _SHARE * spent))
    split = any(setting.kind == "blocks" for setting in one.settings)  # compiled otherwise than as a whole
    if search.base is None or search.counts_decide or split or seconds < _LEAST:
        return
    cold = search.cold.get(one)
    names = (*_COUNTED, *(_TIMED if cold is not None and _COMPILED * cold < seconds else ()))
    search.say(f"looking at {', '.join(names)}")
    options = replace(search.options, quick=True, alone=True, probes=names, seconds=seconds)
    options = replace(options, until=time.monotonic() + seconds)
    state = search.bench.measure(one.changed, options, settings=one.settings)
    found = diagnostics(state.results, names)
    what = "with what is kept" if search.best else "as it was"
    search.further = tuple(replace(told, title=f"{told.title}, {what}") for told in found if told.status == "ok")
