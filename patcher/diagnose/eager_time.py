"""Where the time of compiled code goes that is spent outside of its graphs."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.harness.measured import Figures

_MUCH = 0.1  # of a call: less is what calling graphs costs
_LINES = 3
_LONG, _EACH = 20.0, 0.1  # seconds of the first pass: fewer are usual, in all and for each operator


def eager_share(figures: Sequence[Figures]) -> str:
    """The lines that run eagerly, with their share of a call, in one line; "" where they take little of it."""
    lines = sorted((line for one in figures for line in one.eager_lines), key=lambda line: -line.share)
    share = sum(line.share for line in lines) / max(1, len(figures))
    if share < _MUCH:
        return ""
    most = ", ".join(f"{line.where} ({line.share / len(figures):.0%})" for line in lines[:_LINES])
    return f"{share:.0%} of a call is outside of graphs: {most}"


def compile_share(compiled: Figures, eager: Figures | None, blocks: Sequence[Sequence[str]]) -> str:
    """What makes the first pass take long for the operators that are in graphs, in one line; "" where it does not.

    ``blocks``: the paths of lists of modules that may be compiled one by one, first of each.
    """
    seconds, recompiles = compiled.cold_seconds or 0.0, compiled.counts.recompiles
    if seconds < _LONG or seconds < _EACH * compiled.operators:
        return ""
    usual = f", eager {eager.warm.median_ms:.3g} ms" if eager is not None and eager.warm is not None else ""
    told = f"the first pass takes {seconds:.0f} s for {compiled.operators} operators in graphs{usual}"
    if recompiles:
        return f"{told}: {recompiles} recompile{'s' * (recompiles > 1)}, remove them first"
    loops = " ".join(f"for block in model.{path}: block.compile()" for path, *_ in blocks)
    return f"{told}: compile its blocks one by one, `{loops}`" if loops else told
