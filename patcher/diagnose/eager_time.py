"""Where the time of compiled code goes that is spent outside of its graphs."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.harness.measured import Figures

_MUCH = 0.1  # of a call: less is what calling graphs costs
_LINES = 3


def eager_share(figures: Sequence[Figures]) -> str:
    """The lines that run eagerly, with their share of a call, in one line; "" where they take little of it."""
    lines = sorted((line for one in figures for line in one.eager_lines), key=lambda line: -line.share)
    share = sum(line.share for line in lines) / max(1, len(figures))
    if share < _MUCH:
        return ""
    most = ", ".join(f"{line.where} ({line.share / len(figures):.0%})" for line in lines[:_LINES])
    return f"{share:.0%} of a call is outside of graphs: {most}"
