"""From what a run has shown to causes: guards, grouping, who is charged with launches, which findings belong to it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from patcher.diagnose.describe import titled
from patcher.diagnose.events import Seen
from patcher.diagnose.groups import Group, Guard, groups, parsed, severity, told
from patcher.diagnose.places import Places, original_lines
from patcher.diagnose.relations import bundles, evidence, findings, related, traced
from patcher.harness.measured import CallFigures, Counts, Figures, Origin, Recompile, Site
from patcher.patching.analysis import Analysis
from patcher.settings import Settings, Unit, Varied
from rules import load_rules

MODEL = """import torch
import torch.nn as nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 4

    def forward(self, x):
        y = x * 2
        if y.sum() > self.limit:
            y = y / 2
        return y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale()
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        x = self.scale(x)
        print("scaled")
        return self.head(x)
"""
COSTS = {rule.code: rule.costs for rule in load_rules()}
CALL = CallFigures(0.1, 0, 0, 0, 1, 1)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "net.py").write_text(MODEL, encoding="utf-8")
    return Places([str(tmp_path / "net.py")], str(tmp_path), [])


def seen(case: str = "case", **figures: object) -> Seen:
    standard = {"counts": Counts(), "settled": (CALL, CALL)}
    return Seen(case, Figures(**{**standard, **figures}), {})  # type: ignore[arg-type]


BRANCH = Site("net.py:12", "Data-dependent branching", 2, stack=("net.py:24 in forward", "net.py:12 in forward"))
PRINT = Site("net.py:25", "Failed to trace builtin operator", 1, stack=("net.py:25 in forward",))


@pytest.mark.parametrize(
    ("text", "guard"),
    [
        ("tensor 'x' size mismatch at index 0. expected 2, actual 3", Guard("size", "x", 0)),
        ("tensor 'L['x']' size mismatch at index 1. expected 1, actual 3", Guard("size", "x", 1, True)),
        ("tensor 'x' stride mismatch at index 0. expected 4, actual 0", Guard("stride", "x", 0)),
        ("len(L['images']) == 2  # if images:  # model.py:9 in forward", Guard("length", "images")),
        ("len(imgs) == 1", Guard("length", "imgs")),
        ("kv_cache._current_idx[7] == 0", Guard("value", "kv_cache._current_idx[7]")),
        ("self.step == 1   # self.step += 1", Guard("value", "self.step")),
        ("imgs is None", Guard("type", "imgs")),
        ("___check_type_id(imgs, 140123576824640), type=<class 'list'>", Guard("type", "imgs")),
        ("expected type of 'pictures' to be a tensor type, ' but found <class 'list'>", Guard("type", "pictures")),
        ("tensor 'x' dtype mismatch. expected Float, actual Double", Guard("dtype", "x")),
        ("tensor 'x' requires_grad mismatch. expected requires_grad=1", Guard("requires_grad", "x")),
        ("tensor 'x' rank mismatch. expected 2, actual 3", Guard("rank", "x")),
        ("2 <= places.size()[1]  # rows, length = places.shape", Guard("size", "places", 1, True)),
        ("Cache line invalidated because list(dict.keys(f.state))[0] got deallocated", Guard("object", "")),
        ("something 17 that nobody knows 4", Guard("other", "something N that nobody knows N")),
    ],
)
def test_a_guard_says_what_it_is_about(text: str, guard: Guard) -> None:
    assert parsed(text) == guard


def test_what_several_guards_are_about_is_one_phrase() -> None:
    several = [Guard("size", "x", 0), Guard("size", "x", 1), Guard("size", "y", 1)]
    assert told(several) == "the sizes of `x` (dims 0, 1) and `y` (dim 1)"
    assert told([Guard("value", "n")]) == "the value of `n`"


def test_places_know_file_line_and_function(places: Places, tmp_path: Path) -> None:
    place = places.place("net.py:12")
    assert place is not None
    assert place.path == str(tmp_path / "net.py")
    file = places.file(place.path)
    assert file is not None
    assert file.scope(12) == "Scale.forward"
    assert file.class_of("Scale.forward") == "Scale"
    assert file.scope(1) == ""
    assert [n for n, _ in file.excerpt(12)] == [10, 11, 12, 13, 14]  # not beyond the function
    assert places.place("other.py:12") is None
    assert places.place("net.py") is None


def test_lines_of_the_patched_text_lead_back_to_the_original() -> None:
    before, after = "a\nb\nc\nd", "a\nx\ny\nc\nnew\nd"
    assert original_lines(before, after) == {1: 1, 2: 2, 3: 2, 4: 3, 5: 4, 6: 4}
    before, after = "a\n\x0c\nb\nc", "a\n\x0c\nB\nB2\nc"  # a form feed ends no line
    assert original_lines(before, after)[5] == 4


def test_an_event_in_patched_code_has_the_original_line(places: Places) -> None:
    one = Seen("case", Figures(breaks=(Site("net.py:14", "why"),)), {"net.py": {14: 12}})
    assert [event.where for event in one.events()] == ["net.py:12"]


def test_breaks_at_one_place_are_one_cause(places: Places) -> None:
    found = groups([seen("a", breaks=(BRANCH,)), seen("b", breaks=(BRANCH, PRINT))], places)
    assert [group.key[1] for group in found] == ["net.py:12", "net.py:25"]
    assert found[0].impact.breaks == 4
    assert found[0].cases == ("a", "b")
    assert found[1].cases == ("b",)


@pytest.mark.parametrize(
    ("context", "title"),
    [
        (
            "TypeError <built-in function scaled_dot_product_attention>: scaled_dot_product_attention():"
            " argument 'is_causal' must be bool, not SymBool",
            "Graph break: SymBool `is_causal` in scaled_dot_product_attention",
        ),
        ("TypeError <built-in method add>: unsupported operand", "Graph break: TypeError: unsupported operand"),
        ("", "Graph break: TypeError when making fake tensor call"),
    ],
)
def test_a_cause_is_called_by_what_is_refused(places: Places, context: str, title: str) -> None:
    site = Site("net.py:12", "TypeError when making fake tensor call", 1, context=context)
    (group,) = groups([seen("case", breaks=(site,))], places)
    assert titled(group, places) == f"{title} in Scale.forward (net.py:12)"


def test_launches_are_charged_to_the_break_that_they_resume_after(places: Places) -> None:
    origins = (
        Origin("net.py:23", "forward", False, False, 1, 2, 4),  # the outermost function: it would start anyway
        Origin("net.py:10", "forward", False, True, 1, 2, 4, 0.5),  # Scale.forward: alone only because of its branch
        Origin("net.py:12", "forward", True, True, 1, 2, 4, 0.25),
        Origin("net.py:24", "forward", True, True, 1, 2, 4, 0.25),  # the caller goes on
        Origin("net.py:25", "forward", True, True, 1, 2, 4, 0.125),
    )
    by_place = {g.key[1]: g for g in groups([seen(breaks=(BRANCH, PRINT), origins=origins)], places)}
    assert by_place["net.py:12"].impact.launches == 6
    assert by_place["net.py:12"].impact.compile_seconds == 1.0
    assert by_place["net.py:25"].impact.launches == 2
    assert by_place["net.py:25"].impact.calls == 2


def test_a_function_that_is_called_from_two_places_resumes_in_both(places: Places) -> None:
    twice = Site("net.py:12", "why", 2, stack=BRANCH.stack, around=("net.py:25 in forward",))
    origins = (Origin("net.py:24", "forward", True, True, 1, 2), Origin("net.py:25", "forward", True, True, 1, 2))
    (group,) = groups([seen(breaks=(twice,), origins=origins)], places)
    assert group.impact.launches == 4


def test_launches_that_two_breaks_share_are_divided(places: Places) -> None:
    other = Site("net.py:11", "another", 1, stack=("net.py:24 in forward", "net.py:11 in forward"))
    origins = (Origin("net.py:24", "forward", True, True, 1, 10, 4),)
    found = groups([seen(breaks=(BRANCH, other), origins=origins)], places)
    assert [group.impact.launches for group in found] == [5, 5]


def test_severity_is_what_was_measured(places: Places) -> None:
    once, twice = Recompile("forward", "net.py:23", "len(x) == 1"), Recompile("forward", "net.py:23", "n == 1", 2)
    dropped = Site("net.py:12", "why", 1)
    cases = [
        (seen(breaks=(BRANCH,), dropped_frames=(dropped,)), "high"),
        (seen(limit_hits=(once,)), "high"),
        (seen(breaks=(PRINT,), origins=(Origin("net.py:25", "forward", True, True, 1, 6),)), "high"),
        (seen(breaks=(PRINT,), origins=(Origin("net.py:25", "forward", True, True, 1, 4),)), "medium"),
        (seen(recompiles=(twice,)), "medium"),
        (seen(recompiles=(once,)), "low"),
        (seen(breaks=(PRINT,)), "low"),
        (seen(cudagraph_skips=(Site("", "mutated inputs"),)), "medium"),
    ]
    for shown, expected in cases:
        (group,) = groups([shown], places)
        assert severity(group, 12) == expected, shown


def test_recompiles_for_sizes_of_one_function_are_one_cause(places: Places) -> None:
    sizes = [
        Recompile("forward", "net.py:23", f"tensor 'x' size mismatch at index {i}. expected 2, actual 3")
        for i in (0, 1)
    ]
    (group,) = groups([seen(recompiles=tuple(sizes))], places)
    assert group.category == "dynamic shape"
    assert not group.follows
    assert evidence([group], places) == (
        Varied(group.place.path, "Net.forward", "x", 0),  # type: ignore[union-attr]
        Varied(group.place.path, "Net.forward", "x", 1),  # type: ignore[union-attr]
    )


def test_what_is_compiled_alone_because_of_breaks_is_one_cause_and_no_evidence(places: Places) -> None:
    inner = Recompile("forward", "net.py:10", "tensor 'x' size mismatch at index 0. expected 2, actual 3", nested=True)
    rest = Recompile("torch_dynamo_resume_in_forward_at_12", "net.py:12", "len(y) == 1")
    outer = Recompile("forward", "net.py:23", "tensor 'x' size mismatch at index 0. expected 2, actual 3")
    found = groups([seen(breaks=(BRANCH,), recompiles=(inner, rest, outer))], places)
    keys = {group.key[:2]: group for group in found}
    assert keys["recompile", "follows"].impact.recompiles == 2
    assert [v.function for v in evidence(found, places)] == ["Net.forward"]
    alone = dataclasses.replace(inner, nested=False)  # a root of its own, in a model that breaks elsewhere
    assert not any(group.follows for group in groups([seen(breaks=(PRINT,), recompiles=(alone, outer))], places))


# --- findings ---------------------------------------------------------------------------------------------------------


def analysed(tmp_path: Path, text: str) -> tuple[Analysis, Places]:
    (tmp_path / "net.py").write_text(text, encoding="utf-8")
    path = str(tmp_path / "net.py")
    return Analysis([path], load_rules(), Settings()), Places([path], str(tmp_path), [])


def test_a_wrapper_that_is_compiled_again_is_explained_by_what_is_about_recompiling(tmp_path: Path) -> None:
    text = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, is_causal=q.shape[-2] > 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    @torch.no_grad()
    def forward(self, x):
        if x.sum() > 1:
            x = x + 1
        return self.attention(x, x)
"""
    analysis, places = analysed(tmp_path, text)
    found = findings(analysis.first)
    size = "tensor 'args[0]' size mismatch at index 2. expected 8, actual 6"
    wrapper, own = (Recompile("inner", where, size) for where in ("torch/_dynamo/external_utils.py:67", "net.py:17"))
    (group,) = groups([seen(recompiles=(wrapper,))], places)
    assert [f.reported.code for f in related(group, found, COSTS, places)] == ["FC502"]
    (group,) = groups([seen(recompiles=(own,))], places)
    assert related(group, found, COSTS, places) == ()


def test_what_is_compiled_again_for_a_longer_part_is_what_grows(tmp_path: Path) -> None:
    """It is joined in one module, and the size is of an argument of another."""
    text = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def forward(self, x, past=None):
        k, v = x * 2, x * 3
        if past is not None:
            k, v = torch.cat([past[0], k], dim=1), torch.cat([past[1], v], dim=1)
        return F.scaled_dot_product_attention(x, k, v), (k, v)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Attention()

    def forward(self, x, past=None):
        x, present = self.layer(x, past[0] if past is not None else None)
        return x, [present]
"""
    analysis, places = analysed(tmp_path, text)
    found = findings(analysis.first)
    part, whole = (f"tensor '{name}' size mismatch at index 1. expected 8, actual 9" for name in ("past[0][0]", "x"))
    (group,) = groups([seen(recompiles=(Recompile("forward", "net.py:19", part),))], places)
    assert [f.reported.code for f in related(group, found, COSTS, places)] == ["FC305"]
    (group,) = groups([seen(recompiles=(Recompile("forward", "net.py:19", whole),))], places)
    assert related(group, found, COSTS, places) == ()


def test_a_cause_is_explained_by_the_finding_on_its_line(tmp_path: Path) -> None:
    analysis, places = analysed(tmp_path, MODEL)
    found = findings(analysis.first)
    group = next(g for g in groups([seen(breaks=(BRANCH,))], places))
    assert [f.reported.code for f in related(group, found, COSTS, places)] == ["FC101"]
    printed = next(g for g in groups([seen(breaks=(PRINT,))], places))
    assert [f.reported.code for f in related(printed, found, COSTS, places)] == ["FC602"]
    others = [f for f in found if f.reported.code != "FC602"]
    assert related(printed, others, COSTS, places) == ()


CHAIN = """\
import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x):
        rows = ((x.squeeze()[1:] == 0.0)
                .any(dim=-1)
                .nonzero()
                .squeeze())
        y = x.flatten().nonzero()
        return x.sum() + rows.sum() + y.sum()
"""


def test_a_cause_is_explained_by_the_finding_in_its_statement(tmp_path: Path) -> None:
    analysis, places = analysed(tmp_path, CHAIN)
    found = [f for f in findings(analysis.first) if f.reported.code == "FC208"]
    assert [f.reported.line for f in found] == [7, 11]
    for line, expected in ((9, 7), (10, 7), (11, 11), (12, None)):
        broken = seen(breaks=(Site(f"net.py:{line}", "Dynamic shape operator"),))
        group = next(g for g in groups([broken], places))
        about = [f.reported.line for f in related(group, found, COSTS, places)]
        assert about == ([] if expected is None else [expected]), line


HELD = """\
import torch
import torch.nn as nn


class Codebook(nn.Module):
    def __init__(self, wait=False):
        super().__init__()
        self.register_buffer("initted", torch.tensor(not wait))
        self.register_buffer("embed", torch.ones(4))

    def init_embed(self, data):
        if self.initted:
            return
        self.embed.data.copy_(data.mean(0))
        self.initted.data.copy_(torch.tensor(True))

    def forward(self, x):
        self.init_embed(x)
        return x * self.embed


class Other(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x + 1
        return x
"""


def test_what_a_class_keeps_explains_a_break_in_any_of_its_methods(tmp_path: Path) -> None:
    analysis, places = analysed(tmp_path, HELD)
    found = findings(analysis.first)
    assert "FC205" in {f.reported.code for f in found}
    lines = HELD.splitlines()
    inside, other = (lines.index(text) + 1 for text in ("        self.init_embed(x)", "        if x.sum() > 0:"))
    (group,) = groups([seen(breaks=(Site(f"net.py:{inside}", "Data-dependent branching", 2),))], places)
    assert [f.reported.code for f in related(group, found, COSTS, places)] == ["FC205"]
    (group,) = groups([seen(breaks=(Site(f"net.py:{other}", "Data-dependent branching", 2),))], places)
    assert "FC205" not in {f.reported.code for f in related(group, found, COSTS, places)}, "of another class"


EXPERTS = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Experts(nn.Module):
    def __init__(self, width, number):
        super().__init__()
        self.number = number
        self.up = nn.Parameter(torch.rand(number, width, width))

    def forward(self, x, index, weights):
        out = torch.zeros_like(x)
        mask = F.one_hot(index, num_classes=self.number).permute(2, 1, 0)
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        for which in hit:
            one = which.item()
            place, token = torch.where(mask[one])
            rows = F.linear(x[token], self.up[one]) * weights[token, place, None]
            out.index_add_(0, token, rows.to(x.dtype))
        return out
"""


def test_a_fix_explains_breaks_on_all_lines_that_it_rewrites(tmp_path: Path) -> None:
    analysis, places = analysed(tmp_path, EXPERTS)
    found = findings(analysis.again(Settings(unsafe=True)))
    lines = EXPERTS.splitlines()
    for text in ("        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()", "            one = which.item()"):
        (group,) = groups([seen(breaks=(Site(f"net.py:{lines.index(text) + 1}", "Data dependent", 2),))], places)
        assert "FC404" in {f.reported.code for f in related(group, found, COSTS, places)}, text
    (group,) = groups([seen(breaks=(Site("net.py:13", "Data dependent", 2),))], places)
    assert related(group, found, COSTS, places) == ()


def test_a_recompile_is_not_explained_by_a_rule_about_breaks(tmp_path: Path) -> None:
    analysis, places = analysed(tmp_path, MODEL)
    size = Recompile("forward", "net.py:10", "tensor 'x' size mismatch at index 0. expected 2, actual 3")
    (group,) = groups([seen(recompiles=(size,))], places)
    assert related(group, findings(analysis.first), COSTS, places) == ()


def test_units_can_be_chosen_one_by_one(tmp_path: Path) -> None:
    twice = MODEL + MODEL.replace("import torch\nimport torch.nn as nn\n", "").replace("Scale", "Other").replace(
        "class Net", "class More"
    )
    analysis, places = analysed(tmp_path, twice)
    every = bundles(analysis.first, places)
    labels = ["FC101 in Scale.forward", "FC602 in Net.forward", "FC101 in Other.forward", "FC602 in More.forward"]
    assert [bundle.label for bundle in every] == labels
    path = analysis.files[0]
    (only,) = analysis.again(Settings(only=frozenset({Unit("FC101", path, "Other.forward")})))
    text = only.after.decode()
    assert text.count("torch.where") == 1
    assert text.index("torch.where") > text.index("class Other")
    assert analysis.again(Settings(only=frozenset())) == ()


CHECKED = """import torch
import torch.nn as nn


def bounded(x, limit):
    if x.max() > limit:
        raise ValueError("too large")
    return x * 2


class Net(nn.Module):
    def forward(self, x):
        return getattr(ops, self.name)(x, 4.0)
"""


def test_a_run_shows_which_functions_are_compiled(tmp_path: Path) -> None:
    analysis, places = analysed(tmp_path, CHECKED)
    path = analysis.files[0]
    assert findings(analysis.first) == ()
    site = Site("net.py:6", "Data-dependent branching", 2, stack=("net.py:13 in forward", "net.py:6 in bounded"))
    shown = traced(groups([seen(breaks=(site,))], places), places)
    assert shown == {(path, "Net.forward"), (path, "bounded")}
    (found,) = findings(analysis.again(Settings(traced=shown)))
    assert (found.reported.code, found.reported.line) == ("FC102", 6)
    assert found.reported.applicability == "unsafe", "who calls it, and may catch the error, is not known"
    assert findings(analysis.again(Settings(traced=frozenset({(path, "Net.forward")})))) == ()


def test_what_ran_elsewhere_shows_nothing(tmp_path: Path) -> None:
    _, places = analysed(tmp_path, CHECKED)
    site = Site("elsewhere.py:6", "Data-dependent branching", 2, stack=("elsewhere.py:6 in bounded",))
    assert traced(groups([seen(breaks=(site,))], places), places) == frozenset()


def test_the_same_settings_give_the_same_results_again(tmp_path: Path) -> None:
    analysis, _ = analysed(tmp_path, MODEL)
    assert analysis.again(Settings()) == analysis.first
    assert analysis.again(Settings()) is analysis.again(Settings()), "they are not worked out twice"
    assert analysis.again(Settings(unsafe=True)) is not analysis.again(Settings())


def test_files_in_which_nothing_may_be_fixed_are_not_worked_through(tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(MODEL)
    (tmp_path / "net.py").write_text(MODEL)
    analysis = Analysis([str(tmp_path)], load_rules(), Settings())
    assert len(analysis.again(Settings())) == 2
    (path,) = [file for file in analysis.files if file.endswith("more.py")]
    (only,) = analysis.again(Settings(only=frozenset({Unit("FC101", path, "Scale.forward")})))
    assert only.path == path
    assert only.changed


def test_nothing_seen_is_no_cause(places: Places) -> None:
    empty: tuple[Group, ...] = groups([seen()], places)
    assert empty == ()


def test_a_share_of_a_launch_is_paid_in_each_pass(places: Places) -> None:
    other = Site("net.py:11", "another", 1, stack=("net.py:24 in forward", "net.py:11 in forward"))
    origins = (Origin("net.py:24", "forward", True, True, 1, 1, 4),)
    for group in groups([seen(breaks=(BRANCH, other), origins=origins)], places):
        assert group.impact.launches == 1
        assert severity(group, 10) == "medium"


def test_a_finding_on_a_branch_is_about_its_tests_not_about_what_stands_in_it(places: Places) -> None:
    file = places.file(str(places.place("net.py:12").path))  # type: ignore[union-attr]
    assert file is not None
    assert file.covers(12, 13, 12)
    assert not file.covers(12, 13, 13)
    assert file.covers(10, 14, 13)  # a whole method


def test_a_mark_on_another_tensor_is_not_the_fix_of_a_recompile(tmp_path: Path) -> None:
    text = MODEL.replace(
        "        x = self.scale(x)\n", "        x = self.scale(x)\n        y = x\n        x = self.scale(y)\n"
    )
    analysis, places = analysed(tmp_path, text)
    path = analysis.files[0]
    driven = Settings(unsafe=True, evidence=(Varied(path, "Scale.forward", "x", 1),))
    found = [f for f in findings(analysis.again(driven)) if f.reported.code == "FC503"]
    assert found
    assert {f.reported.scope for f in found} == {"Net.forward"}
    other = Recompile("forward", "net.py:23", "tensor 'images' size mismatch at index 0. expected 2, actual 3")
    same = Recompile("forward", "net.py:10", "tensor 'x' size mismatch at index 1. expected 2, actual 3")
    for event, expected in ((other, []), (same, found)):
        (group,) = groups([seen(recompiles=(event,))], places)
        assert list(related(group, found, COSTS, places)) == expected
