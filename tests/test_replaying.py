"""Changed inputs: what is changed, that it is the same each time, and how what comes of them is told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from patcher.harness import replaying
from patcher.harness.differences import replayed

CALL = (
    (torch.arange(12.0).view(3, 4), torch.tensor([[3, 1], [2, 5], [4, 4]])),
    {"mask": torch.tensor([True, False, True]), "flag": True, "n": 3, "none": None},
)


def _named(name: str) -> replaying.Change:
    return next(change for change in replaying.changes() if change.name == name)


def _same(a: Any, b: Any) -> bool:
    left, right = (torch.utils._pytree.tree_leaves(each) for each in (a, b))
    return all(torch.equal(x, y) if torch.is_tensor(x) else x == y for x, y in zip(left, right, strict=True))


def test_each_change_has_a_name_of_its_own_and_is_the_same_each_time() -> None:
    every = list(replaying.changes())
    assert len({change.name for change in every}) == len(every) > 80
    for change in every:
        a, b = change.of(CALL), change.of(CALL)
        assert (a is None) == (b is None)
        if a is not None and "NaN" not in change.name and not change.mixed:
            assert _same(a, b), change.name
        with change.around(torch.nn.Linear(2, 2), "cpu"):
            pass


@pytest.mark.parametrize(
    ("name", "floats", "numbers", "flags"),
    [
        ("zeros", lambda x: torch.zeros_like(x), None, None),
        ("negated values", lambda x: -x, None, None),
        ("the largest number everywhere", None, lambda x: torch.full_like(x, 5), None),
        ("flags inverted", None, None, lambda x: ~x),
        ("the reverse order", *3 * [lambda x: x.flip(-1)]),
        ("a batch of 1", *3 * [lambda x: x[:1]]),
        ("an empty batch", *3 * [lambda x: x[:0]]),
        ("float64", lambda x: x.double(), None, None),
        ("inference mode", None, None, None),
    ],
)
def test_a_change_is_what_it_says(name: str, floats: Any, numbers: Any, flags: Any) -> None:
    ((x, i), rest) = _named(name).of(CALL)
    for now, was, change in ((x, CALL[0][0], floats), (i, CALL[0][1], numbers), (rest["mask"], CALL[1]["mask"], flags)):
        expected = was if change is None else change(was)
        assert now.dtype == expected.dtype and torch.equal(now, expected)
    assert (rest["flag"], rest["n"], rest["none"]) == (True, 3, None)


def test_numbers_stay_in_the_range_that_was_seen() -> None:
    for change in (one for one in replaying.changes() if not one.elsewhere):
        if (made := change.of(CALL)) is not None:
            assert int(made[0][1].min()) >= 1 and int(made[0][1].max()) <= 5, change.name


def test_a_call_without_tensors_is_changed_by_modes_alone() -> None:
    made = [change.name for change in replaying.changes() if change.of(((3, "a"), {})) is not None]
    assert "inference mode" in made and "zeros" not in made and "a batch of 1" not in made


def test_a_call_that_is_a_function_gets_a_model_whose_arguments_are_changed() -> None:
    call = _named("negated values").of(lambda model: model(torch.ones(2)) + model.offset)

    class Model:
        offset = 10

        def twice(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    assert call(Model()).tolist() == [8.0, 8.0]
    assert not call.unchanged
    method = _named("negated values").of(lambda model: model.twice(torch.ones(2)))
    assert method(Model()).tolist() == [-2.0, -2.0]
    nothing = _named("negated values").of(lambda model: model.offset)
    assert nothing(Model()) == 10 and nothing.unchanged


def test_a_snapshot_puts_back_dtypes_and_what_an_optimizer_knows() -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    state, weight = replaying.Snapshot([model, optimizer]), model.weight.detach().clone()
    model(torch.full((1, 2), float("nan"))).sum().backward()
    optimizer.step()
    model.to(torch.float64)
    state.restore()
    assert model.weight.dtype == torch.float32 and torch.equal(model.weight, weight)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert bool(model.weight.isfinite().all())


def test_what_cannot_be_changed_stays() -> None:
    given = ((torch.zeros(0, 3), torch.tensor([2**63 - 1]), torch.ones(3, 2).t(), torch.tensor(1.0)), {})
    for change in replaying.changes():
        change.of(given)
    made = _named("a NaN").of(given)
    assert int(made[0][2].isnan().sum()) == 1, "also where strides are others"
    assert _named("a larger batch").of(given) is None, "there is no row to repeat"


def _record(x: torch.Tensor | None, gradient: torch.Tensor | None = None) -> Any:
    if x is None:
        return {"leaves": [("raised", "ValueError")]}
    return {"leaves": [("output", x)], "gradients": [] if gradient is None else [("w", gradient)]}


def test_what_comes_of_them_is_told_apart(tmp_path: Path) -> None:
    ones, other = torch.ones(3), torch.tensor([1.0, 1.0, 1.5])
    pairs = {
        "equal": (_record(ones), _record(ones)),
        "rounding": (_record(ones), _record(ones + 1e-5)),
        "both raise": (_record(None), _record(None)),
        "original raises": (_record(None), _record(ones)),
        "patched raises": (_record(ones), _record(None)),
        "patched raises elsewhere": (_record(ones), _record(None)),
        "values": (_record(ones), _record(other)),
        "gradients": (_record(ones, ones), _record(ones, other)),
        "zeros": tuple(
            {"leaves": [("output", ones)], "gradients": [("w", gradient)]} for gradient in (None, torch.zeros(2))
        ),
        "half precision": ({**_record(ones), "epsilon": 0.0078}, _record(ones + 0.02)),
        "dtype": (_record(ones), _record(ones.double())),
        "state": (_record(ones), _record(ones)),
        "a large argument": (
            {"leaves": [("output", ones), ("argument", ones * 1e30)], "gradients": []},
            {"leaves": [("output", other), ("argument", ones * 1e30)], "gradients": []},
        ),
        "cannot be compared": (
            {"leaves": [("output", "<tensor that cannot be compared: RuntimeError>")], "gradients": []},
            {"leaves": [("output", "<tensor that cannot be compared: RuntimeError>")], "gradients": []},
        ),
        "over": (_record(ones), None),
    }
    for side in (0, 1):
        (tmp_path / str(side)).mkdir()
        for number, (name, pair) in enumerate(pairs.items(), 1):
            if pair[side] is not None:
                torch.save(pair[side], tmp_path / str(side) / f"pass1-call{number}.pt")
                state = [("buffer", other if name == "state" and side else ones)]
                torch.save(state, tmp_path / str(side) / f"pass1-state{number}.pt")
    changes = [(number, name, name.endswith("elsewhere")) for number, name in enumerate(pairs, 1)]
    told = replayed({"folders": [str(tmp_path / "0"), str(tmp_path / "1")], "changes": changes})
    assert told["inputs"] == len(pairs) - 6  # one or both raise, nothing to compare, or no time for the patched code
    assert (told["raising"], told["zeros"]) == (["original raises"], ["zeros"])
    assert told["failing"] == ["patched raises elsewhere: raises ValueError"]
    assert [one.partition(":")[0] for one in told["different"]] == [
        "patched raises", "values", "gradients", "dtype", "state", "a large argument",
    ]  # fmt: skip
