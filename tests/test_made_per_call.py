"""Caches that outlive a request (FC307): requests of all sizes, in each mode, after errors, in copies."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from patcher.engine import patch
from patcher.runner import run
from patcher.settings import Settings
from rules.fc307_cache_made_per_call.rule import CacheMadePerCall
from tests.dynamo import PREAMBLE, imported

RULES = (CacheMadePerCall(),)
SOURCE = CacheMadePerCall.invalid[0].before


@pytest.fixture
def pair() -> Iterator[list[Any]]:
    """The first example as it is and patched, with the same weights."""
    result = patch(PREAMBLE + SOURCE, "example.py", RULES, Settings(unsafe=True))
    assert result.fixed and not result.bugs
    with imported(PREAMBLE + SOURCE) as plain, imported(result.text) as patched:
        yield [made(plain), made(patched)]


def made(module: ModuleType) -> Any:
    torch.manual_seed(0)
    return module.Model(3, 2)


def test_requests_of_more_sizes_than_are_kept(pair: list[Any]) -> None:
    plain, patched = pair
    for rows, steps in [(1 + i % 11, 2 + i % 3) for i in range(40)]:
        x = torch.randn(rows, 3)
        assert torch.equal(plain.generate(x, steps), patched.generate(x, steps))
    assert len(patched._kept_pasts) <= 8


def test_buffers_are_kept_and_stand_where_they_stood(pair: list[Any]) -> None:
    patched = pair[1]
    x = torch.ones(2, 3)
    patched.generate(x, 3)
    (first,) = patched._kept_pasts.values()
    patched.generate(torch.ones(1, 3), 3)
    places = [past.keys.data_ptr() for past in first]
    patched.generate(x, 3)
    assert [past.keys.data_ptr() for past in list(patched._kept_pasts.values())[-1]] == places
    assert all(past.keys._dynamo_static_input_type == "unguarded" for past in first)


def test_in_inference_mode_and_out_of_it(pair: list[Any]) -> None:
    plain, patched = pair
    x = torch.ones(2, 3)
    for _ in range(2):
        with torch.inference_mode():
            assert torch.equal(plain.generate(x, 3), patched.generate(x, 3))
        assert torch.equal(plain.generate(x, 3), patched.generate(x, 3))


def test_after_a_request_that_failed(pair: list[Any]) -> None:
    plain, patched = pair
    x = torch.ones(2, 3)
    forward = patched.forward

    def failing(x: torch.Tensor, step: int, pasts: list[Any]) -> torch.Tensor:
        if step == 1:
            raise ValueError("no more")
        found: torch.Tensor = forward(x, step, pasts)
        return found

    patched.forward = failing
    with pytest.raises(ValueError, match="no more"):
        patched.generate(x, 3)
    patched.forward = forward
    assert torch.equal(plain.generate(x, 3), patched.generate(x, 3))


def test_a_copy_has_buffers_of_its_own(pair: list[Any]) -> None:
    plain, patched = pair
    x = torch.ones(2, 3)
    patched.generate(x, 3)
    other = copy.deepcopy(patched)
    assert patched.state_dict().keys() == plain.state_dict().keys()
    assert torch.equal(other.generate(x, 3), patched.generate(x, 3))
    ours, theirs = [next(iter(m._kept_pasts.values()))[0].keys for m in (patched, other)]
    assert ours.data_ptr() != theirs.data_ptr()


REFUSED = {
    "a number that each of them has": ("seen=torch.zeros((), ", "seen=torch.full((), layer, ", "for layer in range"),
    "as many as a test says": ("range(self.layers)\n", "range(self.layers) if steps\n", ""),
    "what a function tells": ("keys=torch.zeros(x.shape[0],", "keys=torch.zeros(rows_of(x),", ""),
    "returned": ("return torch.stack(found)", "return torch.stack(found), pasts", ""),
    "in a loop": ("        pasts = [", "        for _ in range(2):\n          pasts = [", ""),
    "by place": ("seen=torch.zeros((), device=x.device)", "*rest", ""),
}


@pytest.mark.parametrize(("old", "new", "loop"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_kept_stays(old: str, new: str, loop: str) -> None:
    source = SOURCE.replace(old, new)
    assert source != SOURCE
    if loop:
        source = source.replace("for _ in range", loop)
    result = patch(PREAMBLE + source, "example.py", RULES, Settings(unsafe=True))
    assert result.text == PREAMBLE + source


@pytest.mark.parametrize("write", ["past.keys[:, 0] = 1", "past.keys.mul_(2)", "past.seen += 1", "past.note = 1"])
def test_what_any_code_writes_starts_anew(write: str, tmp_path: Path) -> None:
    """The class, the module and eager code that writes are files of a package, of which one has no ``__init__.py``."""
    head, _, rest = SOURCE.partition("\n\nclass Model")
    package = tmp_path / "package"
    for folder in ("torch", "models"):
        (package / folder).mkdir(parents=True)
    for file in (package, package / "torch"):
        (file / "__init__.py").touch()
    (package / "torch" / "util.py").write_text(PREAMBLE + head.replace("seen: ", "note: int\n    seen: "))
    rest = rest.replace("list[Past]", "list").replace("Past(", "util.Past(\n                note=0,")
    rest = rest.replace("past.seen = past.seen + 1", "past.seen.add_(1)").replace(
        "            x = self(", "            helped(pasts)\n            x = self("
    )
    helper = f"\n\ndef helped(pasts):\n    for past in pasts:\n        {write}\n"
    model = package / "models" / "model.py"
    model.write_text(f"{PREAMBLE}from ..torch import util\n\n\nclass Model{rest}{helper}")
    (result,) = [r for r in run([str(package)], RULES, Settings(unsafe=True), jobs=1) if r.changed]
    text = result.after.decode()
    assert ("past.note = 0\n" in text) is ("note" in write)
    assert "past.keys.zero_()\n" in text and "past.seen.zero_()\n" in text
