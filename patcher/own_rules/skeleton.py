"""The first rule of a package: files that pass as they stand, to be changed into what the rule is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from patcher.own_rules.found import CODE, GROUP
from patcher.results import is_own_code

_PACKAGE = re.compile(r"[a-z][a-z0-9_]*")
_RULE = '''\
"""@CODE@: what this rule is about. It works as it stands; change it, and `fix-compile selftest` says what is wrong."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from fix_compile import Applicability, Code, Cost, Enclose, Example, Facts, Finding, Fix, NearMiss, Rule

# How `before` is run: what `make` gives is called with each of `calls`, eagerly and compiled.
RUN = """
def make():
    return Net()

calls = [(torch.randn(2, 3),), (torch.randn(3, 3),)]
"""


class @CLASS@(Rule):
    """A pause in compiled code.

    What it does:
        Compiled code (``torch.compiler.is_compiling()``) leaves ``time.sleep`` out.

    Why it breaks compilation:
        Dynamo does not trace it: the graph breaks there.

    Fix safety:
        Unsafe: whether anything counts on the pause is not in the source.
    """

    code: ClassVar[str] = "@CODE@"
    name: ClassVar[str] = "@NAME@"  # the pattern, not the cure
    triggers: ClassVar[tuple[bytes, ...]] = (b"sleep",)  # a file without any of these is not looked at
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)  # `check` gets each of these in compiled code
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Yield what is wrong at ``node``.

        With a safe `Fix` where it can be proven that results stay the same, with an unsafe one and an assumption where
        they do if that holds, and without one, but with the reason, where nothing can be done.
        """
        assert isinstance(node, ast.Call)
        if facts.syntax.qualified(node.func) != "time.sleep":
            return
        statement, message = facts.syntax.statement_of(node), "a pause breaks the graph"
        if not isinstance(statement, ast.Expr) or statement.value is not node:
            yield Finding(node, message, assumption="it is a part of something else")
            return
        asked = facts.writing.spelling("torch.compiler.is_compiling", node)
        fix = Fix((Enclose((statement,), Code(f"if not {asked}():")),), Applicability.UNSAFE)
        yield Finding(node, message, fix, "nothing counts on the pause")

    # What it finds, and what becomes of it (None: it stays). Both stand below `import torch`, `import torch.nn as nn`
    # and `import torch.nn.functional as F`. Give at least one of each shape in which it occurs.
    invalid: ClassVar[tuple[Example, ...]] = (
        Example(
            title="a pause between two layers",
            before="""
import time


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        time.sleep(0.001)
        return y + 1
""",
            after="""
import time


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        if not torch.compiler.is_compiling():
            time.sleep(0.001)
        return y + 1
""",
            run=RUN,
            unsafe=True,
        ),
    )
    # What looks like it and must be left alone.
    valid: ClassVar[tuple[NearMiss, ...]] = (
        NearMiss(
            title="sleep of something else",
            source="""
class Net(nn.Module):
    def forward(self, x):
        return self.sleep(x)

    def sleep(self, x):
        return x * 0
""",
        ),
    )
'''
_TEST = '''\
"""The rule @CODE@ does what its examples say."""

import subprocess
import sys

from fix_compile import examined
from @PACKAGE@.@MODULE@ import @CLASS@


def test_examples() -> None:
    assert examined(@CLASS@()) == ()


def test_examples_run() -> None:
    """Needs torch, and this package installed (`pip install -e .`)."""
    command = [sys.executable, "-m", "fix_compile", "selftest", "--rules", "@PROJECT@", "@CODE@"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
'''
_PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "@PROJECT@"
version = "0.1.0"
requires-python = ">=3.10"
dependencies = ["fix-compile"]

"""
_ENTRY = """\
[project.entry-points."@GROUP@"]
@PROJECT@ = "@PACKAGE@"
"""


class SkeletonError(Exception):
    """What was asked for cannot be begun; the message is one line."""


@dataclass(frozen=True)
class Skeleton:
    """``files``: path below the folder -> text. ``entry``: what pyproject.toml has to say for the rule to be found.

    ``shared``: those of ``files`` that other rules of the package need too, and that may be there already.
    """

    files: Mapping[str, str]
    entry: str
    shared: frozenset[str]
    project: str


def skeleton(code: str, name: str, package: str) -> Skeleton:
    """The files for a rule; raises `SkeletonError` for a code that is not free, or names that are none."""
    if not CODE.fullmatch(code):
        raise SkeletonError(f"a code is capital letters and three or four digits (FC901), not {code!r}")
    if is_own_code(code):
        raise SkeletonError(f"{code} is not free, for FC0 to FC8 belong to fix-compile; take FC900 to FC999")
    if not re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", name):
        raise SkeletonError(f"a name is words with hyphens between them (slow-call), not {name!r}")
    if not _PACKAGE.fullmatch(package):
        raise SkeletonError(f"--package is a name that Python can import, in lower case (house_rules), not {package!r}")
    module = f"{code.lower()}_{name.replace('-', '_')}"
    given = {
        "CODE": code,
        "NAME": name,
        "CLASS": "".join(part.capitalize() for part in name.split("-")),
        "PACKAGE": package,
        "MODULE": module,
        "PROJECT": package.replace("_", "-"),
        "GROUP": GROUP,
    }

    def filled(text: str) -> str:
        return re.sub(r"@([A-Z]+)@", lambda hole: given[hole[1]], text)

    shared = {
        "pyproject.toml": filled(_PROJECT + _ENTRY),
        f"{package}/__init__.py": '"""Our own rules for fix-compile: what is defined here is found."""\n',
    }
    files = {f"{package}/{module}.py": filled(_RULE), f"tests/test_{module}.py": filled(_TEST)}
    return Skeleton({**shared, **files}, filled(_ENTRY), frozenset(shared), given["PROJECT"])
