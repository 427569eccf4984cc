"""Comparing what two variants have saved: figures for floating values, words for everything else."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from patcher.harness import differences, leaves  # noqa: E402

NAN, INF = math.nan, math.inf


def tensor(*values: Any, dtype: Any = None) -> Any:
    return torch.tensor(values, dtype=dtype)


def save(
    folder: Path,
    *outputs: Any,
    arguments: Any = (),
    gradients: Mapping[str, Any] = {},
    state: Mapping[str, Any] = {},
    later: Sequence[Any] = (),
    shared: Sequence[Any] = (),
    weights: Mapping[str, tuple[str, str]] = {},
    facts: Mapping[str, Any] = {},
    most: int = 2**20,
) -> None:
    """What the worker keeps of a variant. ``later``: outputs of a third pass; ``weights``: digest and kind by name."""

    def kept(named: Any) -> Any:
        return leaves.on_host(named, most)

    folder.mkdir()
    for number, made in ((1, outputs), (3, later)):
        for call, output in enumerate(made, 1):
            named = [*leaves.leaves(output, "output"), *leaves.leaves(arguments, "argument")]
            record = {"leaves": kept(named), "shared": list(shared), "gradients": kept(gradients.items())}
            torch.save(record, folder / f"pass{number}-call{call}.pt")
        torch.save(kept(state.items()), folder / f"pass{number}-state.pt")
    torch.save(kept(facts.items()), folder / "facts.pt")
    told = {key: {name: pair[n] for name, pair in weights.items()} for n, key in enumerate(("digests", "kinds"))}
    (folder / "weights.json").write_text(json.dumps(told))


def job_of(folder: Path, *kinds: str) -> dict[str, Any]:
    told = [{"tree": "", "kind": kind, "mode": None, "status": "ok", "folder": str(n)} for n, kind in enumerate(kinds)]
    return {"folder": str(folder), "variants": told, "excused": True}


@pytest.fixture
def compare(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Compare an original with one other variant; each is an output, or a mapping of what ``save`` takes."""

    def compared(ours: Any, theirs: Any, kind: str = "eager", **both: Any) -> dict[str, Any]:
        for name, given in (("0", ours), ("1", theirs)):
            outputs, options = ((0,), given) if isinstance(given, dict) else ((given,), {})
            save(tmp_path / name, *outputs, **{**both, **options})
        reference, other = differences.compare(job_of(tmp_path, "eager", kind))
        assert reference == {"tree": "", "kind": "eager", "mode": None, "float64": None}
        return other

    return compared


@pytest.mark.parametrize(
    ("ours", "theirs", "bitwise", "mae", "largest", "relative"),
    [
        (tensor(1.0, -4.0), tensor(1.0, -4.0), True, 0, 0, 0),
        (tensor(1.0, -4.0), tensor(1.5, -4.0), False, 0.25, 0.5, 0.125),
        (tensor(0.0, 1.0), tensor(-0.0, 1.0), False, 0, 0, 0),
        (tensor(NAN, INF, 2.0), tensor(NAN, INF, 2.0), True, 0, 0, 0),
        (tensor(NAN, INF, 2.0, 2.0), tensor(NAN, INF, 3.0, 2.0), False, 0.25, 1, 0.5),
        (tensor(0.0, 0.0), tensor(0.0, 1e-6), False, 5e-7, 1e-6, INF),
        (torch.tensor(2.0), torch.tensor(1.0), False, 1, 1, 0.5),
        (torch.ones(2, 0), torch.ones(2, 0), True, None, None, None),
        (tensor(3 + 4j, 0j), tensor(3 + 2j, 0j), False, 0.5, 2, 0.5),
        (tensor(3 + 4j, 0j), tensor(3 + 4j, -0j), False, 0, 0, 0),
        (tensor(1.0, 4.0).half(), tensor(1.5, 4.0).half(), False, 0.25, 0.5, 0.125),
        (tensor(1.0, 4.0).to(torch.float8_e5m2), tensor(1.5, 4.0).to(torch.float8_e5m2), False, 0.25, 0.5, 0.125),
        (tensor(1.0, 4.0).to_sparse(), tensor(1.5, 4.0).to_sparse(), False, 0.25, 0.5, 0.125),
        (2.0, 3.0, False, 1, 1, 0.5),
        (7, 7, True, None, None, None),
        ((tensor(1.0), tensor(8.0)), (tensor(1.0), tensor(10.0)), False, 1, 2, 0.25),
        ((tensor(4.0), tensor(1e-6)), (tensor(4.0), tensor(2e-6)), False, 5e-7, 1e-6, 1e-6 / 4e-3),  # the neighbour
    ],
)
def test_figures(
    ours: Any, theirs: Any, bitwise: bool, mae: Any, largest: Any, relative: Any, compare: Callable[..., Any]
) -> None:
    told = compare(ours, theirs)
    assert told["differences"] == []
    assert told["bitwise"] is bitwise
    assert [told["mae"], told["max"], told["relative"]] == [
        wanted if wanted is None else pytest.approx(wanted) for wanted in (mae, largest, relative)
    ]
    assert bool(told["worst"]) is bool(relative)


def test_the_worst_tensor_and_the_coarsest_dtype_are_told(compare: Callable[..., Any]) -> None:
    ours = {"a": tensor(1.0), "b": [tensor(1.0).half(), tensor(1.0)], "c": tensor(1.0).double()}
    told = compare([ours], [{**ours, "b": [tensor(1.5).half(), tensor(1.25)]}])
    assert (told["worst"], told["epsilon"]) == ("call 1 output[0].b[0]", 2**-10)


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (tensor(1.0), tensor(1.0).double(), ["output: float32 (1,) became float64 (1,)"]),
        (tensor(1.0), torch.tensor(1.0), ["output: float32 (1,) became float32 ()"]),
        (torch.ones(2, 0), torch.ones(0, 2), ["output: float32 (2, 0) became float32 (0, 2)"]),
        (tensor(1.0, 2.0), tensor(1.0, NAN), ["output: NaN in 1 elements where the original has none"]),
        (tensor(NAN, NAN), tensor(1.0, 2.0), ["output: no NaN in 2 elements where the original has it"]),
        (tensor(1.0, 2.0), tensor(1.0, INF), ["output: infinity in 1 elements where the original has none"]),
        (tensor(INF), tensor(1.0), ["output: no infinity in 1 elements where the original has it"]),
        (
            tensor(INF),
            tensor(-INF),
            [
                "output: no infinity in 1 elements where the original has it",
                "output: negative infinity in 1 elements where the original has none",
            ],
        ),
        (1.0, NAN, ["output: NaN in 1 elements where the original has none"]),
        (tensor(1, 2), tensor(1, 3), ["output: other values (int64 (2,))"]),
        (tensor(True), tensor(False), ["output: other values (bool (1,))"]),
        (7, 8, ["output: 7 became 8"]),
        (1, 1.0, ["output: 1 became 1.0"]),
        (1, True, ["output: 1 became True"]),
        ("a", "b", ["output: 'a' became 'b'"]),
        (None, tensor(1.0), ["output: None became float32 (1,)"]),
        (tensor(1.0), None, ["output: float32 (1,) became None"]),
        ((1,), [1], ["output.type: 'tuple' became 'list'"]),
        ([1], [1, 2], ["output.len: 1 became 2", "output[1]: is new"]),
        ([{"x": 1}], [{"y": 1}], ["output[0].keys: 'x' became 'y'", "output[0].x: is missing", "output[0].y: is new"]),
        (tensor(1.0).to_sparse(), tensor(1.0), ["output.layout: is missing"]),
    ],
)
def test_what_is_told_by_name(ours: Any, theirs: Any, said: list[str], compare: Callable[..., Any]) -> None:
    told = compare(ours, theirs)
    assert told["differences"] == [f"call 1 {text}" for text in said]
    assert told["bitwise"] is False


def test_a_thousand_are_told_and_no_more(compare: Callable[..., Any]) -> None:
    told = compare(list(range(1200)), list(range(1, 1201)))["differences"]
    assert (len(told), told[-1]) == (1000, "call 1 output[999]: 999 became 1000")


def test_what_cannot_be_compared_is_not_equal(compare: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="call 1 output: <tensor that cannot be compared: NotImplementedError>"):
        compare(torch.ones(2, device="meta"), torch.ones(2, device="meta"))


@pytest.mark.parametrize("kind", ["eager", "compiled"])
def test_aliasing_and_facts_count_in_eager_mode_only(kind: str, compare: Callable[..., Any]) -> None:
    ours = {"shared": [["output[0]", "output[1]"]], "facts": {"random state": "a", "unsteady": 1, "attribute k": 1.0}}
    told = compare(ours, {"facts": {"random state": "b", "attribute k": 1.5}}, kind)
    assert told["differences"] == (
        ["call 1 aliasing: output[0] with output[1] became none", "in eager mode random state: 'a' became 'b'"]
        if kind == "eager"
        else []
    )
    assert (told["state"] or {}).get("max") == (0.5 if kind == "eager" else None)
    assert told["bitwise"] is True


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ({"w": ("1", "a parameter"), "b": ("2", "a buffer")}, []),
        ({"w": ("1", "a parameter")}, ["b is gone"]),
        (
            {"w": ("9", "a parameter"), "b": ("2", "a buffer"), "c": ("3", "a buffer")},
            ["w has other values", "c is new"],
        ),
        ({"w": ("1", "a frozen parameter"), "b": ("2", "a buffer")}, ["w was a parameter and is a frozen parameter"]),
        ({"b": ("2", "a buffer"), "w": ("1", "a parameter")}, ["are in another order"]),
    ],
)
def test_weights(theirs: dict[str, tuple[str, str]], said: list[str], compare: Callable[..., Any]) -> None:
    told = compare({"weights": {"w": ("1", "a parameter"), "b": ("2", "a buffer")}}, {"weights": theirs})
    assert told["differences"] == [f"weights after build(): {text}" for text in said]


@pytest.mark.parametrize(("what", "where"), [("gradients", "call 1 gradient of w"), ("state", "after the calls w")])
def test_gradients_and_state_have_figures_of_their_own(what: str, where: str, compare: Callable[..., Any]) -> None:
    told = compare({what: {"w": tensor(1.0, 2.0), "v": None}}, {what: {"w": tensor(1.0, 3.0), "v": tensor(NAN)}})
    figures = {"mae": 0.5, "max": 1.0, "relative": 0.5, "worst": where}
    assert told[what] == {"bitwise": False, **figures, "finite": {"gradients": 2, "state": 4}[what]}
    assert told["differences"][0] == f"{where[:-1]}v: None became float32 (1,)"
    assert (told["bitwise"], told["mae"]) == (True, None)
    assert {told[other] for other in {"gradients", "state"} - {what}} == {None}


def test_a_later_pass_is_compared_too(compare: Callable[..., Any]) -> None:
    ours = {"later": [(tensor(1.0), 1)], "state": {"n": 3}}
    told = compare(ours, {"later": [(tensor(1.5), 2)], "state": {"n": 4}})
    assert told["differences"] == [
        "after the calls n: 3 became 4",
        "after the calls (pass 3) n: 3 became 4",
        "call 1 (repeated, pass 3) output[1]: 1 became 2",
    ]
    assert (told["max"], told["worst"]) == (0.5, "call 1 (repeated, pass 3) output[0]")


def test_a_call_or_pass_that_the_other_lacks_is_told(compare: Callable[..., Any]) -> None:
    assert compare({"later": [1]}, {})["differences"] == ["call 1 (repeated, pass 3): is missing"]


def test_arguments_that_are_only_read_do_not_thin_out_the_error(compare: Callable[..., Any]) -> None:
    read = torch.ones(1000)
    told = compare({"arguments": [read, tensor(2.0)]}, {"arguments": [read, tensor(3.0)]})
    assert (told["mae"], told["relative"], told["worst"]) == (1, 0.5, "call 1 argument[1]")


LARGE = torch.linspace(1, 2, 10_007)


def with_one(value: float, like: Any = LARGE, at: int = 5_003) -> Any:
    made = like.clone()
    made[at] = value
    return made


@pytest.mark.parametrize(
    ("ours", "theirs", "bitwise", "said"),
    [
        (LARGE, LARGE.clone(), True, []),
        (LARGE, with_one(3.0), False, []),
        (LARGE, with_one(NAN), False, ["NaN in 1 elements, in the original in 0"]),
        (with_one(INF), LARGE, False, ["infinity in 0 elements, in the original in 1"]),
        (LARGE.long(), with_one(7, LARGE.long()), False, ["other values (int64 (10007,))"]),
        (LARGE, LARGE[:-1], False, ["float32 (10007,) became float32 (10006,)"]),
        (LARGE, LARGE[:5], False, ["float32 (10007,) became float32 (5,)"]),
    ],
)
def test_large_tensors_are_sampled(
    ours: Any, theirs: Any, bitwise: bool, said: list[str], compare: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaves, "SAMPLE_ELEMENTS", 100)
    told = compare(ours, theirs, most=1000)
    assert (told["bitwise"], told["differences"]) == (bitwise, [f"call 1 output: {text}" for text in said])
    if theirs is not ours and not said and not bitwise:  # the element is not in the sample, but its share of a sum is
        assert (told["max"], told["relative"] > 1e-3, told["worst"]) == (0, True, "call 1 output")


def test_the_distance_to_float64(tmp_path: Path) -> None:
    exact = {"x": tensor(1.0, 2.0).double(), "n": 3, "i": tensor(7)}
    for number, shift in enumerate((0.25, 0.5)):
        save(tmp_path / str(number), {**exact, "x": tensor(1.0, 2.0 + shift)}, later=[{**exact, "x": tensor(9.0, 9.0)}])
    save(tmp_path / "2", exact, later=[exact])
    rows = differences.compare(job_of(tmp_path, "eager", "eager", "float64"))
    assert [row["float64"] for row in rows] == [0.125, 0.25]


@pytest.mark.parametrize(
    ("compiled", "exact", "as_exact"),
    [
        (1.02, 0.99, 1),  # eager code itself is half as far from float64
        (1.02, 1.001, 0),  # eager code is near to it, compiled code is not
        (1.02, 1.2, 0),  # no reference: it is another number
        (0.5, 0.99, 0),
        (math.nan, 0.99, 0),
        (1.02, math.nan, 0),
        (1.0001, 0.99, 0),  # nothing to explain
    ],
)
@pytest.mark.parametrize("what", ["output", "gradient", "state"])
def test_what_float64_shows_to_be_rounding(
    what: str, compiled: float, exact: float, as_exact: int, tmp_path: Path
) -> None:
    for number, value in enumerate((1.0, compiled, exact)):
        made, kind = tensor(*15 * [1.0], value), torch.float64 if number == 2 else torch.float32
        named = {"w": made.to(kind)}
        given: dict[str, Any] = {"gradient": {"gradients": named}, "state": {"state": named}}.get(what, {})
        save(tmp_path / str(number), made.to(kind) if what == "output" else tensor(0.0), **given)
    row = differences.compare(job_of(tmp_path, "eager", "compiled", "float64"))[1]
    figures = {"gradient": row["gradients"], "state": row["state"]}.get(what, row)
    assert row["as_exact"] == as_exact * (2 if what == "state" else 1)  # two passes have a state
    assert figures["max"] == pytest.approx(abs(compiled - 1.0), rel=1e-3, nan_ok=True) or math.isnan(compiled)
    assert (figures["relative"] > 1e-3) is (not as_exact and abs(compiled - 1.0) > 1e-3)


@pytest.mark.parametrize(
    ("largest", "compiled", "exact", "as_exact"),
    [
        (1000.0, -0.9, 1e-9, 1),  # a gradient that is zero but for rounding
        (10_000.0, 9.9, 1e-9, 1),
        (1000.0, 10.1, 1e-9, 0),  # compiled code is ten times as far from zero, and further than beside its neighbour
        (1000.0, 1.5, 0.999, 0),  # eager code knows it well
        (10_000.0, 1.5, 0.999, 0),
        (10.0, -0.9, 1e-9, 0),  # it matters beside its neighbour
    ],
)
@pytest.mark.parametrize("reference", ["float64", "nudged"])
def test_a_gradient_that_is_rounding_alone(
    reference: str, largest: float, compiled: float, exact: float, as_exact: int, tmp_path: Path
) -> None:
    for number, value in enumerate((1.0, compiled, exact)):
        save(tmp_path / str(number), tensor(0.0), gradients={"bias": tensor(value), "weight": tensor(largest)})
    row = differences.compare(job_of(tmp_path, "eager", "compiled", reference))[1]
    assert (row["as_exact"], row["gradients"]["relative"] > 1e-2) == (as_exact, not as_exact)


@pytest.mark.parametrize(("elements", "as_exact"), [(10, 1), (11, 0)])
def test_one_rounding_may_be_small_by_chance(elements: int, as_exact: int, tmp_path: Path) -> None:
    for number, value in enumerate((1.0, 1.02, 0.9975)):
        save(tmp_path / str(number), tensor(*elements * [value]))
    assert differences.compare(job_of(tmp_path, "eager", "compiled", "float64"))[1]["as_exact"] == as_exact


def test_one_wrong_element_is_no_rounding(tmp_path: Path) -> None:
    exact = torch.ones(10_000, dtype=torch.float64)
    eager = (exact + 0.01).float()
    wrong = eager.clone()
    wrong[77] = 1.5  # on average it is as near as eager code
    for number, made in enumerate((eager, wrong, exact)):
        save(tmp_path / str(number), made)
    row = differences.compare(job_of(tmp_path, "eager", "compiled", "float64"))[1]
    assert (row["as_exact"], row["relative"]) == (0, pytest.approx(0.485, rel=0.01))


@pytest.mark.parametrize(("exact", "as_exact"), [(0.99, 1), (1.0005, 0)])
def test_rounding_in_a_tensor_that_is_not_kept_whole(exact: float, as_exact: int, tmp_path: Path) -> None:
    for number, value in enumerate((1.0, 1.02, exact)):
        made = torch.full((9,), value, dtype=torch.float64 if number == 2 else torch.float32)
        save(tmp_path / str(number), tensor(0.0), gradients={"w": made}, most=4)
    row = differences.compare(job_of(tmp_path, "eager", "compiled", "float64"))[1]
    assert (row["as_exact"], row["gradients"]["relative"] > 1e-3) == (as_exact, not as_exact)


@pytest.mark.parametrize(("reference", "as_exact"), [("nudged", 1), ("float64", 0)])
def test_other_roundings_excuse_where_float64_draws_other_numbers(
    reference: str, as_exact: int, tmp_path: Path
) -> None:
    for number, value in enumerate((1.0, 1.02, 0.99)):
        save(tmp_path / str(number), tensor(value))
    job = job_of(tmp_path, "eager", "compiled", reference)
    row = differences.compare({**job, "excused": False})[1]
    assert (row["as_exact"], row["relative"] > 1e-3) == (as_exact, not as_exact)
    assert (row["float64"] is None) is (reference == "nudged")


def test_variants_that_failed_are_passed_over(tmp_path: Path) -> None:
    save(tmp_path / "0", tensor(1.0))
    job = job_of(tmp_path, "eager", "eager", "float64")
    for variant in job["variants"][1:]:
        variant["status"] = "error"
    assert [row["kind"] for row in differences.compare(job)] == ["eager"]


@pytest.mark.parametrize("broken", [False, True])
def test_the_program_writes_its_result(broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("0", "1"):
        save(tmp_path / name, tensor(1.0))
    if broken:
        (tmp_path / "1" / "pass1-call1.pt").write_bytes(b"no")
    (tmp_path / "spec.json").write_text(json.dumps({"job": job_of(tmp_path, "eager", "compiled")}))
    monkeypatch.setattr(sys, "argv", ["differences.py", str(tmp_path / "spec.json")])
    differences.main()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["status"] == ("error" if broken else "ok")
    assert bool(result["message"]) is broken
    assert len(result.get("comparisons", [])) == (0 if broken else 2)
