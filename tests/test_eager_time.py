"""Where the time outside of graphs goes, in words."""

from __future__ import annotations

from patcher.diagnose.eager_time import eager_share
from patcher.harness.measured import EagerLine, Figures
from patcher.search.remedies import named


def test_the_lines_are_named_with_their_share() -> None:
    lines = (EagerLine("net.py:3", 0.5), EagerLine("net.py:9", 0.2))
    told = "70% of a call is outside of graphs: net.py:3 (50%), net.py:9 (20%)"
    assert eager_share([Figures(eager_lines=lines)]) == told
    assert named((Figures(launches=1, eager_lines=lines),)) == told
    assert named((Figures(eager_lines=lines),)).startswith("nothing is in graphs: each frame falls back to eager; 70%")


def test_several_cases_share_a_call_and_little_is_not_told() -> None:
    lines = (EagerLine("net.py:3", 0.5),)
    assert eager_share([Figures(eager_lines=lines), Figures()]) == "25% of a call is outside of graphs: net.py:3 (25%)"
    assert eager_share([Figures(eager_lines=(EagerLine("net.py:3", 0.05),))]) == ""
    assert eager_share([]) == ""
