"""What selftest has shown of the rules on the PyTorch that is installed beside the tool, for who asks later."""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from patcher.rule import Rule
from patcher.selftest import records


@dataclass(frozen=True)
class Measured:
    """``told``: of each rule that was tried there, by its code: ``helps (6 of 7 examples)``; ``wrong``: of which."""

    torch: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()

    @property
    def minor(self) -> tuple[int, int]:
        """The version as ``--target-torch`` has it; (0, 0) when there is none."""
        found = re.match(r"(\d+)\.(\d+)", self.torch)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def line(self, code: str) -> str:
        """``measured on your torch 2.11.0: helps (6 of 7 examples)``, or nothing."""
        return f"measured on your torch {self.torch}: {self.told[code]}" if code in self.told else ""

    @property
    def lines(self) -> dict[str, str]:
        """`line` of each rule that was tried, by code."""
        return {code: self.line(code) for code in self.told}

    def distrusted(self, target: tuple[int, int]) -> dict[str, str]:
        """The rules that may not fix for this target, by code, and why. What was measured on another says nothing."""
        if target != self.minor:
            return {}
        return dict.fromkeys(self.wrong, f"`fix-compile selftest` has found this fix wrong on your torch {self.torch}")


def measured(rules: Sequence[Rule]) -> Measured:
    """What is kept of these rules for the torch that is installed beside the tool, which is not imported."""
    if not os.path.isdir(records.folder()):  # noqa: PTH112 - the usual case, and nothing more is done
        return Measured()
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return Measured()
    results = records.results(torch)
    valid = {
        rule.code: results[rule.code]
        for rule in rules
        if rule.code in results and results[rule.code].get("digest") == records.rule_digest(rule)
    }
    return Measured(
        torch=torch,
        told={code: str(result.get("told", "")) for code, result in valid.items()},
        wrong=frozenset(code for code, result in valid.items() if result.get("verdict") == "wrong"),
    )
