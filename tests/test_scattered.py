"""Functions that are left out of graphs because a run breaks all over in them: which, at what cost, and when not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from patcher.diagnose.bench import State
from patcher.diagnose.diagnosis import Totals
from patcher.diagnose.events import Seen
from patcher.diagnose.extents import WORTH, distinct, extents, pays
from patcher.diagnose.places import Places
from patcher.harness.compare import Judgement, Verdict, VerdictStatus
from patcher.harness.measured import (
    CallFigures,
    CaseResult,
    Counts,
    Environment,
    Figures,
    Measurement,
    Origin,
    Recompile,
    Results,
    Site,
)
from patcher.harness.plan import Options
from patcher.patching.analysis import Analysis
from patcher.results import FileResult
from patcher.search.optimizing import Optimizer
from patcher.settings import Extent, Settings, TorchSetting
from rules import load_rules

MODEL = """\
import torch
import torch.nn as nn


class Net(nn.Module):
    def distance(self, a, b):
        if torch.equal(a, b):
            return a * 2
        return a - b

    def kernel(self, a, b):
        return self.distance(a, b).exp()

    def solve(self, a):
        return a + 1 if bool(a.sum() > 2) else a

    def head(self, a):
        return a * 3

    def forward(self, x):
        x = self.kernel(x, x) + self.kernel(x, x + 1)
        return self.head(self.solve(x))
"""
EQUAL = Site(
    "net.py:7",
    "Data dependent operator",
    2,
    stack=("net.py:21 in forward", "net.py:12 in kernel", "net.py:7 in distance"),
    around=("net.py:20 in forward",),
)
SUM = Site("net.py:15", "Data-dependent branching", 1, stack=("net.py:21 in forward", "net.py:15 in solve"))


def origin(line: int, function: str, graphs: int, operators: int, *stack: str, resumed: bool = False) -> Origin:
    return Origin(f"net.py:{line}", function, resumed, bool(stack), graphs, graphs, operators, stack=stack)


FORWARD, KERNEL = "net.py:20 in forward", "net.py:12 in kernel"
#: In all 12 graphs with 60 operators: 6 graphs and 18 operators in ``kernel``, 4 and 12 of them in ``distance``.
ORIGINS = (
    origin(19, "forward", 1, 20),
    origin(21, "forward", 3, 18, FORWARD, resumed=True),
    origin(12, "kernel", 2, 6, FORWARD, resumed=True),
    origin(6, "distance", 2, 4, FORWARD, KERNEL),
    origin(7, "distance", 2, 8, FORWARD, KERNEL, resumed=True),
    origin(15, "solve", 2, 4, "net.py:21 in forward", resumed=True),
)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "net.py").write_text(MODEL, encoding="utf-8")
    return Places([str(tmp_path / "net.py")], str(tmp_path), [])


def seen(breaks: Iterable[Site] = (EQUAL, SUM), origins: Iterable[Origin] = ORIGINS) -> Seen:
    calls = (CallFigures(0.1, 0, 0, 0, 1, 1),)
    return Seen("case", Figures(breaks=tuple(breaks), origins=tuple(origins), settled=calls), {})


def named(found: Iterable[Extent]) -> list[str]:
    return [e.function for e in found]


def test_the_functions_are_those_in_which_most_graphs_start(places: Places) -> None:
    found = extents([seen()], places)
    assert named(found) == ["Net.kernel", "Net.distance"], "not the model, nor what is as few graphs as calling it"
    assert found[0][2:] == (1, 2, 6, 12, 18, 60)
    assert found[1][2:] == (1, 2, 4, 12, 12, 60)


def test_what_holds_most_operators_is_none_nor_what_has_graphs_that_are_worth_it(places: Places) -> None:
    heavy = [*ORIGINS, origin(12, "kernel", 1, WORTH * 6, FORWARD)]
    assert named(extents([seen(origins=heavy)], places)) == ["Net.distance"], "more than half is in kernel"
    dense = [*ORIGINS[:4], origin(7, "distance", 2, 4 * WORTH, FORWARD, KERNEL), origin(21, "forward", 1, 90)]
    assert named(extents([seen(origins=dense)], places)) == ["Net.kernel"], "graphs of distance are large"


def test_what_does_not_break_is_none_and_nothing_is_said_of_other_files(places: Places) -> None:
    busy = [*ORIGINS, origin(17, "head", 9, 9, FORWARD)]
    assert "Net.head" not in named(extents([seen(origins=busy)], places))
    assert extents([seen(breaks=())], places) == ()
    other = Site("lib.py:7", "why", 2, stack=("lib.py:3 in call", "lib.py:7 in inner"))
    assert extents([seen(breaks=(other,))], places) == ()
    assert extents([seen(origins=())], places) == ()


def test_of_functions_in_which_the_same_happens_the_outermost_is_tried(places: Places) -> None:
    stack = (EQUAL.stack[0], EQUAL.stack[1], "net.py:12 in kernel", EQUAL.stack[2])
    same = [*ORIGINS[:2], *ORIGINS[3:]]  # nothing of its own happens in kernel
    found = extents([seen(breaks=(Site("net.py:7", "why", 2, stack=stack), SUM), origins=same)], places)
    assert named(found) == ["Net.kernel", "Net.distance"]
    assert named(distinct(found)) == ["Net.kernel"]
    one, two = found[0], found[0]._replace(function="Net.other", breaks=2)
    assert distinct([one, two]) == (one, two)


@pytest.mark.parametrize(
    ("graphs", "operators", "paid"),
    [(2, 2 * WORTH, True), (2, 2 * WORTH + 1, False), (1, 0, True), (0, 1, False), (0, 0, False), (-1, 0, False)],
)
def test_a_graph_that_is_not_started_pays_for_some_operators(graphs: int, operators: int, paid: bool) -> None:
    after = Totals(0, 0, launches=20 - graphs, operators=100 - operators)
    assert pays(Totals(0, 0, launches=20, operators=100), after) is paid


# --- the search ----------------------------------------------------------------------------------------------------


@dataclass
class Cost:
    """What a state costs."""

    breaks: int
    graphs: int
    operators: int
    dropped: int = 0
    status: VerdictStatus = "equivalent"
    recompiles: int = 0


WHOLE = Cost(6, 12, 120)


class Table:
    """A bench that answers from a table: by the functions that are left out of graphs, and settings."""

    def __init__(self, folder: Path, costs: dict[str, Cost]) -> None:
        file = folder / "net.py"
        file.write_text(MODEL, encoding="utf-8")
        self.path, self.costs = str(file), {"": WHOLE, **costs}
        self.analysis = Analysis([self.path], load_rules(), Settings(unsafe=True))
        self.places = Places([self.path], str(folder), [])
        self.asked: list[str] = []
        self.elsewhere = None

    def figures(self, key: str) -> Figures:
        cost = self.costs.get(key) or self.costs[""]
        calls = (CallFigures(0.1, cost.breaks, 0, cost.graphs, cost.graphs, cost.operators),)
        return Figures(
            calls=calls,
            settled=calls,
            counts=Counts(breaks=cost.breaks, recompiles=cost.recompiles, dropped_frames=cost.dropped),
            launches=cost.graphs,
            operators=cost.operators,
            breaks=(EQUAL, SUM) if cost.breaks else (),
            recompiles=(Recompile("forward", "net.py:19", "x == 1", cost.recompiles),) if cost.recompiles else (),
            origins=ORIGINS,
        )

    def measure(
        self,
        files: Sequence[FileResult],
        options: Options | None = None,
        fresh: bool = False,
        settings: Sequence[TorchSetting] = (),
    ) -> State:
        text = next((f.after.decode() for f in files if f.changed), MODEL)
        lines = text.splitlines()
        out = [b.split("(")[0].split()[-1] for a, b in pairwise(lines) if "disable" in a]
        key = ",".join(out)
        self.asked.append(key)
        variants = (
            Measurement("original", "eager", None, "ok", figures=self.figures("")),
            Measurement("original", "compiled", "default", "ok", figures=self.figures("")),
            Measurement("patched", "compiled", "default", "ok", figures=self.figures(key)),
        )
        case = CaseResult("case", 1e-3, False, None, None, variants, ())
        nowhere = Environment("2.13", "3.11", "cpu", None, "", 1)
        results = Results(backend="eager", quick=True, environment=nowhere, seconds=1.0, cases=(case,))
        status = self.costs.get(key) or self.costs[""]
        judgement = Judgement((Verdict("case", "default", status.status, ("outputs differ",)),))
        seen_ = [Seen("case", figures, {}) for figures in (self.figures(""), self.figures(key))]
        return State(tuple(files), results, judgement, (seen_[0],), (seen_[1],))

    def search(self, settings: Settings | None = None) -> Optimizer:
        asked = settings or Settings(unsafe=True, models=("net.Net",))
        options = Options(backend="eager", quick=True)
        one = Optimizer(self.analysis, asked, self, options, budget=1000, parts=frozenset({"fixes"}))  # type: ignore[arg-type]
        one.run()
        return one


def zones(one: Optimizer) -> dict[str, str]:
    made = [bundle.label for bundle in one.best.configuration.bundles] if one.best else []
    told = {**{dropped.what: dropped.outcome for dropped in one.dropped}, **dict.fromkeys(made, "kept")}
    return {what.rpartition(".")[2]: outcome for what, outcome in told.items() if what.startswith("FC207")}


def test_the_one_with_fewest_graphs_is_kept(tmp_path: Path) -> None:
    table = Table(
        tmp_path, {"kernel": Cost(3, 6, 102), "distance": Cost(4, 8, 108), "distance,kernel": Cost(3, 6, 102)}
    )
    one = table.search()
    assert zones(one) == {"kernel": "kept", "distance": "not better"}
    assert one.best is not None
    assert one.best.configuration.files[0].after.count(b"@torch.compiler.disable") == 1


@pytest.mark.parametrize(
    ("cost", "fate"),
    [
        (Cost(3, 10, 120 - 2 * WORTH - 1), "not better"),  # more operators than the graphs are worth
        (Cost(3, 2, 59), "not better"),  # most of what was compiled
        (Cost(3, 6, 102, dropped=1), "not better"),  # a frame is given up for it
        (Cost(3, 6, 102, recompiles=2), "not better"),
        (Cost(6, 12, 102), "not better"),  # no graph less
        (Cost(7, 6, 102), "not better"),
        (Cost(3, 6, 102, status="different"), "different"),
        (Cost(3, 6, 102, status="failed"), "failed"),
    ],
)
def test_one_that_costs_more_than_it_earns_is_dropped(tmp_path: Path, cost: Cost, fate: str) -> None:
    one = Table(tmp_path, {"kernel": cost, "distance": Cost(6, 12, 108)}).search()
    assert zones(one) == {"kernel": fate, "distance": "not better"}
    assert one.best is None
    assert all(dropped.reason for dropped in one.dropped)


def test_at_most_as_many_operators_as_the_graphs_are_worth(tmp_path: Path) -> None:
    one = Table(tmp_path, {"kernel": Cost(3, 10, 120 - 2 * WORTH), "distance": Cost(6, 12, 108)}).search()
    assert zones(one) == {"kernel": "kept", "distance": "not better"}


def test_none_is_tried_without_leave_nor_without_the_rule_nor_where_nothing_breaks(tmp_path: Path) -> None:
    better = {"kernel": Cost(3, 6, 102), "distance": Cost(4, 8, 108)}
    for asked in (Settings(), Settings(unsafe=True, ignore=("FC207",)), Settings(unsafe=True, select=("FC710",))):
        table = Table(tmp_path, better)
        assert zones(table.search(asked)) == {}
        assert set(table.asked) <= {""}
    table = Table(tmp_path, better)
    table.costs[""] = Cost(0, 1, 60)
    assert zones(table.search()) == {}
