"""FC304: a buffer that forward assigns to the attribute that holds it already."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Cost, Example, Finding, Fix, NearMiss, ReplaceStatements, Rule
from rules.fc304_buffer_reassigned_in_forward.buffer_objects import BufferObjects
from rules.fc304_buffer_reassigned_in_forward.examples import INVALID, VALID


class BufferReassignedInForward(Rule):
    """An ``nn.Buffer`` that compiled code assigns to the attribute that it came from.

    What it does:
        ``self.table = self.table.to(x.device)`` hands the buffer itself back when there is nothing to convert, and so
        does everything in place: ``self.steps += 1``. Keeps what is computed, and assigns it only when it is another
        object (``if table is not self.table``). An augmented assignment is made to a local name first.

    Why it breaks compilation:
        For an ``nn.Buffer``, ``nn.Module`` registers the buffer again, which Dynamo cannot trace ("Unsupported
        python_type() call"). Buffers of ``register_buffer`` do not have this. Measured on torch 2.13: two breaks
        where there was one assignment; transformers 5.23.0, CTRLLMHeadModel: 3 graphs become one.

    Fix safety:
        Safe: to register a buffer under the name that it has changes nothing, and the test is about the same object.
        In eager code everything stays as it was: a conversion that does something is assigned as before. What is not
        seen: a hook for the registration of buffers, which would be called once more.

        Unsafe for augmented assignments: in a graph, backward gets the buffer as it is at the end; where the graph
        broke, it got the value before.

        Not fixed when

        - the assignment stands under a test of the buffer's device or dtype;
        - the class has a ``__setattr__``;
        - other code, or ``register_buffer``, gives the module a buffer of that name: each assignment says anew whether
          it is saved.

    References:
        PyTorch, ``torch.nn.Buffer`` and ``Module.__setattr__``; transformers, positions of CTRL.
    """

    code: ClassVar[str] = "FC304"
    name: ClassVar[str] = "buffer-reassigned-in-forward"
    triggers: ClassVar[tuple[bytes, ...]] = (b"Buffer(",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Assign, ast.AugAssign)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the assignment ``node`` when it may put a buffer where it is."""
        assert isinstance(node, (ast.Assign, ast.AugAssign))
        if isinstance(node, ast.Assign) and len(node.targets) > 1:
            return
        target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
        buffers = facts.ask(BufferObjects)
        if not isinstance(target, ast.Attribute) or not buffers.holds(target) or buffers.asked(node, target):
            return
        if isinstance(node, ast.Assign) and not buffers.may_be(node.value, target):
            return
        message = f"`{ast.unparse(target)}` is assigned the buffer that it holds: Dynamo cannot trace that"
        obstacle = facts.writing.why_not_replaced(node)
        obstacle = obstacle or buffers.why_registered(target)
        if not buffers.plain(target):
            obstacle = "the class has its own `__setattr__`, or a property of that name"
        if obstacle:
            yield Finding(node, message, assumption=obstacle)
            return
        edits = (ReplaceStatements((node,), tuple(_lines(node, target, facts))),)
        if isinstance(node, ast.AugAssign):
            assumption = f"no gradient is recorded through what `{ast.unparse(target)}` held before"
            yield Finding(node, message, Fix(edits, Applicability.UNSAFE), assumption)
        else:
            yield Finding(node, message, Fix(edits))

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _lines(node: ast.Assign | ast.AugAssign, target: ast.Attribute, facts: Facts) -> Iterator[Code]:
    """The statements that come in the place of ``node``."""
    if isinstance(node, ast.AugAssign):
        name = facts.writing.fresh_local(f"new_{target.attr.lstrip('_')}", node)
        yield Code(f"{name} = {{0}}", (target,))
        sign = ast.unparse(ast.AugAssign(ast.Name("x", ast.Store()), node.op, ast.Name("y", ast.Load()))).split()[1]
        yield Code(f"{name} {sign} {{0}}", (node.value,))
    elif isinstance(node.value, ast.Name):
        name = node.value.id
    else:
        name = facts.writing.fresh_local(f"new_{target.attr.lstrip('_')}", node)
        yield Code(f"{name} = {{0}}", (node.value,))
    yield Code(f"if {name} is not {{0}}:\n    {{0}} = {name}", (target,))
