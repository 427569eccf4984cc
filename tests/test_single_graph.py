"""FC301, FC302 and FC502 make one strategy together: none goes halfway, and what stands in the way is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.edit.engine import patch
from patcher.results import PatchResult
from patcher.settings import Settings
from rules import load_rules

SOURCE = (Path(__file__).parent.parent / "fixtures" / "forecaster_tensor_cache" / "before.py").read_text(
    encoding="utf-8"
)
MADE = "self._filled = torch.zeros(len(along_time), device=self.device, dtype=torch.int)"


def patched(source: str = SOURCE, settings: Settings | None = None) -> PatchResult:
    settings = settings or Settings()
    result = patch(source, "forecaster.py", tuple(r for r in load_rules() if settings.wants(r.code, r.name)), settings)
    assert result.bugs == ()
    return result


def codes(result: PatchResult) -> set[str]:
    return {finding.code for finding in result.fixed}


def assert_zones(result: PatchResult, reason: str) -> None:
    """The cache is left as it is but for eager zones, and FC301 says why."""
    assert "FC302" not in codes(result)
    assert MADE in result.text
    assert result.text.count("@torch.compiler.disable") == 3
    told = [finding.message for finding in result.fixed if finding.code == "FC301"]
    assert told and all("single-graph is out" in message and reason in message for message in told)


def test_by_default_it_is_one_graph() -> None:
    result = patched()
    assert codes(result) == {"FC302", "FC303", "FC502"}
    assert "@torch.compiler.disable" not in result.text
    assert {f.strategy for f in result.fixed if f.code == "FC302"} == {"single-graph"}


def test_without_the_flags_it_is_none() -> None:
    assert_zones(patched(settings=Settings(ignore=("FC502",), unsafe=True)), "FC502")


def test_without_the_integers_it_is_none() -> None:
    assert_zones(patched(settings=Settings(ignore=("FC302",), unsafe=True)), "FC302")


@pytest.mark.parametrize("what", ["ignore[FC302]", "ignore[tensor-held-index]"])
def test_a_comment_on_one_attribute_keeps_all_of_them(what: str) -> None:
    source = SOURCE.replace(MADE, f"{MADE}  # fix-compile: {what}")
    assert_zones(patched(source, Settings(unsafe=True)), "FC302 is to leave")


def test_who_asks_for_zones_gets_zones() -> None:
    result = patched(settings=Settings(strategies={"kv-cache": "eager-zone"}))
    assert MADE in result.text and not {"FC302", "FC303"} & codes(result)
    assert {f.strategy for f in result.fixed if f.code == "FC301"} == {"eager-zone"}


def test_who_asks_for_one_graph_is_told_why_not() -> None:
    narrow = SOURCE.replace("dtype=torch.int)  # in patches", "dtype=torch.uint8)")
    result = patched(narrow, Settings(strategies={"kv-cache": "single-graph"}))
    assert "@torch.compiler.disable" not in result.text
    left = [f for f in result.remaining if f.code == "FC301"]
    assert left and all("makes no state that is converted" in f.assumption for f in left)
