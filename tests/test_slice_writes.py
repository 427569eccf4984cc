"""The function that FC306 writes into a file does what an assignment to a slice does, for all that may come."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from patcher.patching.runner import run
from patcher.settings import Settings
from rules import load_rules
from rules.fc306_tensor_position_write.slice_text import WRITE, WRITE_NAME

ROOMS, LENGTHS, STARTS = (0, 1, 2, 5), (0, 1, 2, 3), range(-7, 8)
DTYPES = (torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool, torch.float32)


def written() -> Any:
    names: dict[str, Any] = {"torch": torch}
    exec(WRITE, names)
    return names[WRITE_NAME]


def assigned(value: Any, target: torch.Tensor, dim: int, start: Any, size: Any) -> None:
    """As the source has it."""
    target[(slice(None),) * (dim % target.dim()) + (slice(start, start + size),)] = value


def outcome(write: Any, value: Any, target: torch.Tensor, dim: int, start: Any, size: Any) -> torch.Tensor | None:
    """What is in a copy of ``target`` then; None when it raises."""
    target = target.clone()
    try:
        write(value, target, dim, start, size)
    except (RuntimeError, TypeError, IndexError):
        return None
    return target


def sized(shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(1, 1 + torch.Size(shape).numel()).view(shape).to(dtype) + (
        0.5 if dtype.is_floating_point else 0
    )


def inputs() -> Iterator[tuple[Any, torch.Tensor, int, Any, Any]]:
    for room, size, dim, at in itertools.product(ROOMS, LENGTHS, (0, 1, -1), STARTS):
        shape, given = [2, 2, 2], [2, 2, 2]
        shape[dim] = room
        for length, dtype in itertools.product({size, 1, 2}, (torch.float32, torch.int32)):
            given[dim] = length
            yield sized(given, dtype), -sized(shape, torch.float32), dim, torch.tensor(at), size
        given[dim] = size
        for start in (torch.tensor([at]), at, torch.tensor([at, at])):
            yield sized(given, torch.float32), -sized(shape, torch.float32), dim, start, size
        yield 3.0, -sized(shape, torch.float32), dim, torch.tensor(at), size
        yield sized([1, *given], torch.float32), -sized(shape, torch.float32), dim, torch.tensor(at), size
        yield sized([2], torch.float32), -sized(shape, torch.float32), dim, torch.tensor(at), size
    for dtype, room, at in itertools.product(DTYPES, (5, 300), (0, 1, 4, 126, 127, 250, 255, -128)):
        for size in (1, 2, 3):
            with_dtype = torch.tensor(at).to(dtype)
            yield torch.ones(size, 2), torch.zeros(room, 2), 0, with_dtype, size
            yield torch.ones(size, 2), torch.zeros(room, 2), 0, with_dtype, torch.tensor(size)


def test_it_does_what_the_assignment_does() -> None:
    write, returned, raised = written(), 0, 0
    for given in inputs():
        before, after = outcome(assigned, *given), outcome(write, *given)
        assert (before is None) == (after is None), given
        assert before is None or after is None or torch.equal(before, after), given
        returned, raised = returned + (before is not None), raised + (before is None)
    assert returned > 2000
    assert raised > 2000


def gradients(write: Any, at: int, size: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    torch.manual_seed(0)
    value, target = torch.randn(2, size, 3, requires_grad=True), torch.randn(2, 5, 3, requires_grad=True)
    kept = target * 2
    write(value, kept, 1, torch.tensor(at), size)
    (kept * torch.arange(30.0).view(2, 5, 3)).sum().backward()
    return value.grad, target.grad


@pytest.mark.parametrize(("at", "size"), [(0, 1), (4, 1), (5, 1), (-1, 1), (0, 2), (3, 2), (-3, 2), (1, 3)])
def test_gradients_are_the_same(at: int, size: int) -> None:
    for before, after in zip(gradients(assigned, at, size), gradients(written(), at, size), strict=True):
        assert before is not None
        assert after is not None
        assert torch.equal(before, after)


@pytest.mark.parametrize("backend", ["aot_eager"])
def test_compiled_it_is_one_graph_for_all_positions_and_raises_as_before(backend: str) -> None:
    torch._dynamo.reset()
    write = written()

    def step(value: torch.Tensor, target: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        write(value, target, 1, at, value.shape[1])
        return target * 2

    one = torch.compile(step, backend=backend, fullgraph=True)
    for at in (0, 3, 4, 5, -1, -2, -6):
        single, target = torch.ones(2, 1, 3), torch.zeros(2, 5, 3)
        expected = outcome(assigned, single, target, 1, torch.tensor(at), 1)
        assert expected is not None
        assert torch.equal(one(single, target, torch.tensor(at)), expected * 2)
        assert torch.equal(target, expected)
    with torch._dynamo.config.patch(error_on_recompile=True):
        one(torch.ones(2, 1, 3), torch.zeros(2, 5, 3), torch.tensor(2))
    several = torch.compile(step, backend=backend, fullgraph=True)
    several(torch.ones(2, 2, 3), torch.zeros(2, 5, 3), torch.tensor(3))
    for at in (4, 9, -1, -6):
        with pytest.raises(RuntimeError, match="does not fit"):
            several(torch.ones(2, 2, 3), torch.zeros(2, 5, 3), torch.tensor(at))


def test_a_position_that_a_fix_has_made_a_number_needs_no_function(tmp_path: Path) -> None:
    """In a run over a folder, where the index over the project still knows it as a tensor."""
    caches = Path(__file__).resolve().parent / "caches"
    for name in ("lazy_allocation.py",):
        shutil.copy(caches / name, tmp_path)
    results = run([str(tmp_path)], tuple(load_rules()), Settings(unsafe=True), jobs=1)
    texts = {Path(r.path).stem: r.after.decode() for r in results if r.changed}
    assert "self._used = 0" in texts["lazy_allocation"]
    assert not any(WRITE_NAME in text for text in texts.values())
