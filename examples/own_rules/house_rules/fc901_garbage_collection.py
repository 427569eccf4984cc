"""FC901: garbage that compiled code collects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from fix_compile import Applicability, Code, Cost, Enclose, Example, Facts, Finding, Fix, NearMiss, Rule

RUN = """
def make():
    return Net()

calls = [(torch.randn(2, 3),), (torch.randn(3, 3),)]
"""


class GarbageCollection(Rule):
    """Garbage that is collected in compiled code.

    What it does:
        Compiled code (``torch.compiler.is_compiling()``) leaves ``gc.collect()`` out; eager code collects as before.

    Why it breaks compilation:
        ``gc.collect`` is written in C: Dynamo does not trace it, and the graph breaks there.

    Fix safety:
        Unsafe: objects that are part of a circle live longer, and with them the memory of their tensors. Left alone
        where the number of what was collected is used.
    """

    code: ClassVar[str] = "FC901"
    name: ClassVar[str] = "garbage-collection"
    triggers: ClassVar[tuple[bytes, ...]] = (b"collect",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it collects garbage in compiled code."""
        assert isinstance(node, ast.Call)
        if facts.syntax.qualified(node.func) != "gc.collect":
            return
        message = "collecting garbage breaks the graph"
        statement = facts.syntax.statement_of(node)
        if not isinstance(statement, ast.Expr) or statement.value is not node:
            yield Finding(node, message, assumption="what it gives is used")
            return
        asked = facts.writing.spelling("torch.compiler.is_compiling", node)
        fix = Fix((Enclose((statement,), Code(f"if not {asked}():")),), Applicability.UNSAFE)
        yield Finding(node, message, fix, "compiled code can do with the memory that it would have freed")

    invalid: ClassVar[tuple[Example, ...]] = (
        Example(
            title="between two layers",
            before="""
import gc


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        gc.collect()  # the activations of the encoder
        return y + 1
""",
            after="""
import gc


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        if not torch.compiler.is_compiling():
            gc.collect()  # the activations of the encoder
        return y + 1
""",
            run=RUN,
            unsafe=True,
        ),
        Example(
            title="under a name of its own",
            before="""
from gc import collect as free


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        free(1)
        return y + 1
""",
            after="""
from gc import collect as free


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        if not torch.compiler.is_compiling():
            free(1)
        return y + 1
""",
            run=RUN,
            unsafe=True,
        ),
        Example(
            title="the number is used",
            before="""
import gc


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        freed = gc.collect()
        return y + (freed >= 0)
""",
            after=None,
            run=RUN,
        ),
    )
    valid: ClassVar[tuple[NearMiss, ...]] = (
        NearMiss(
            title="something else that collects",
            source="""
class Net(nn.Module):
    def forward(self, x):
        return self.collect(x)

    def collect(self, x):
        return x + 1
""",
        ),
        NearMiss(
            title="compiled code leaves it out already",
            source="""
import gc


class Net(nn.Module):
    def forward(self, x):
        if not torch.compiler.is_compiling():
            gc.collect()
        return x + 1
""",
        ),
        NearMiss(
            title="nothing compiles it",
            source="""
import gc


def after_training():
    gc.collect()
""",
        ),
    )
