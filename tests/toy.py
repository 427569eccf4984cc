"""A rule that needs no torch: ``slow()`` becomes ``fast()``, ``sloppy()`` does so unsafely, ``stuck()`` stays.

With trouble-makers: ``segfault()`` ends the process, ``crash()`` raises in the rule, ``linger()`` makes the file
``lingering`` and is not through for a minute.
"""

from __future__ import annotations

import ast
import faulthandler
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from patcher import cli
from patcher.facts import Facts
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, NearMiss, Replace, Rule, Where


class SlowCall(Rule):
    """A call of ``slow``.

    What it does:
        Calls ``fast``.
    """

    code: ClassVar[str] = "FC901"
    name: ClassVar[str] = "slow-call"
    triggers: ClassVar[tuple[bytes, ...]] = (b"slow", b"sloppy", b"stuck", b"segfault", b"crash", b"linger")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    where: ClassVar[Where] = Where.ANYWHERE
    invalid: ClassVar[tuple[Example, ...]] = (
        Example("x = slow()\n", "x = fast()\n", "make = lambda: None\ncalls = []\n", "a call"),
    )
    valid: ClassVar[tuple[NearMiss, ...]] = ()
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)
    strategy_key: ClassVar[str] = "slow"
    strategies: ClassVar[tuple[str, ...]] = ("auto", "quick")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "segfault":
            faulthandler.disable()
            os.kill(os.getpid(), signal.SIGSEGV)
        if name == "crash":
            raise RuntimeError("two\nlines")
        if name == "linger":
            Path("lingering").touch()
            time.sleep(60)
        if name == "slow":
            yield Finding(node, "slow call", Fix((Replace(node.func, Code("fast")),)))
        if name == "sloppy":
            fix = Fix((Replace(node.func, Code("fast")),), Applicability.UNSAFE)
            yield Finding(node, "sloppy call", fix, assumption="nobody looks")
        if name == "stuck":
            yield Finding(node, "stuck call", assumption="there is no way")


class OddName(Rule):
    """A name that is odd."""

    code: ClassVar[str] = "FC902"
    name: ClassVar[str] = "odd-name"
    triggers: ClassVar[tuple[bytes, ...]] = (b"odd",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Name,)
    where: ClassVar[Where] = Where.ANYWHERE
    invalid: ClassVar[tuple[Example, ...]] = ()
    valid: ClassVar[tuple[NearMiss, ...]] = ()
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        assert isinstance(node, ast.Name)
        if node.id == "odd":
            yield Finding(node, "odd name", Fix((Replace(node, Code("even")),)))


RULES = (SlowCall(), OddName())

if __name__ == "__main__":
    sys.exit(cli.main(RULES))
