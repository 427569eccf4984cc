"""Where the time outside of graphs goes, in words."""

from __future__ import annotations

from patcher.diagnose.eager_time import compile_share, eager_share
from patcher.harness.measured import Counts, EagerLine, Figures, Warm
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


def test_a_first_pass_that_takes_long_for_its_operators_has_its_remedy() -> None:
    eager, slow = Figures(warm=Warm(5.0, 5.0, 5.0, 5.0, 1)), Figures(cold_seconds=41.0, operators=120)
    told = "the first pass takes 41 s for 120 operators in graphs, eager 5 ms"
    assert compile_share(slow, eager, ()) == told
    blocks = [("layers", "net.Net")]
    assert compile_share(slow, eager, blocks) == (
        f"{told}: compile its blocks one by one, `for block in model.layers: block.compile()`"
    )
    again = Figures(cold_seconds=41.0, operators=120, counts=Counts(recompiles=3))
    assert compile_share(again, None, blocks).endswith("in graphs: 3 recompiles, remove them first")
    assert compile_share(Figures(cold_seconds=41.0, operators=900), eager, blocks) == "", "it is in proportion"
    assert compile_share(Figures(cold_seconds=3.0, operators=2), eager, blocks) == ""
