"""FC205: a flag in a buffer, which code that is compiled asks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.syntax.classes import self_name
from patcher.rule import Applicability, Code, Edit, Finding, Fix, Insert, Replace, Rule, Where, block
from rules.fc205_flag_in_buffer.examples import INVALID, VALID
from rules.fc205_flag_in_buffer.held_flags import HeldFlags, Set

_MESSAGE = "`self.{0}`: a flag in a tensor; to ask it breaks the graph"
_PRESUMED = "the buffer `{0}` is set by this class and by load_state_dict alone"


class FlagInBuffer(Rule):
    """``if self.initted: return``: a flag that a module keeps in a buffer of one element, so that checkpoints have it.

    What it does:
        Keeps the flag beside the buffer, as a Python bool (``self._initted``): set in the constructor, wherever the
        class sets the buffer, and when a state_dict is loaded. Tests of the flag ask that one. The buffer stays.

    Why it breaks compilation:
        Dynamo does not know what a tensor holds: a branch on it breaks the graph, in every layer that asks, with and
        without the settings that capture numbers. A Python bool is a guard; what sets it compiles once more.

    Fix safety:
        Unsafe: whoever sets the buffer in another way is not seen, neither a broadcast of buffers between processes nor
        a copy of all ``buffers()``, as averages of weights are kept, nor ``functional_call``; what a replica of
        ``DataParallel`` sets is lost. A module that was pickled as a whole before the change lacks the new attribute.
        Refused where the class does anything
        with the buffer but to ask for its truth or to set it to a truth that is written there, or where it has a
        ``_load_from_state_dict`` of its own.

    References:
        PyTorch, "Data-dependent branching" (graph break GB0170); quantizers that are initialised by their first batch.
    """

    code = "FC205"
    name = "flag-in-buffer"
    triggers = (b"register_buffer(",)
    listens_to = (ast.ClassDef,)
    where = Where.ANYWHERE
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the class ``node`` where compiled code asks for a flag that it keeps in a buffer."""
        assert isinstance(node, ast.ClassDef)
        held = HeldFlags(facts, node)
        for asked, reason in held.refused:
            name = next(
                n.attr for n in ast.walk(asked) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
            )
            yield Finding(asked, _MESSAGE.format(name), assumption=reason)
        if held.found:
            at = next(e for flag in held.found for e in flag.asked if facts.compiled(e))
            presumed = "; ".join(_PRESUMED.format(flag.name) for flag in held.found)
            fix = Fix(tuple(_edits(held, facts)), Applicability.UNSAFE)
            yield Finding(at, _MESSAGE.format(held.found[0].name), fix, presumed)

    invalid = INVALID
    valid = VALID


def _edits(held: HeldFlags, facts: Facts) -> Iterator[Edit]:
    names = {flag.name: facts.writing.fresh_attribute(f"_{flag.name.lstrip('_')}", held.cls) for flag in held.found}
    for flag in held.found:
        for made in (flag.first, *flag.sets):
            yield Insert(made.statement, (_line(made, names[flag.name], facts),), after=True)
        for asked in flag.asked:
            read = next(n for n in ast.walk(asked) if isinstance(n, ast.Attribute) and n.attr == flag.name)
            yield Replace(asked, Code(f"{{0}}.{names[flag.name]}", (read.value,)))
    loaded = [flag.name for flag in held.found if flag.kept]
    if loaded:
        lines = [Code("super()._load_from_state_dict(*args, **kwargs)")]
        lines += [Code(f"self.{names[n]} = bool(self.{n})") for n in loaded]
        made_new = block(Code("\ndef _load_from_state_dict(self, *args, **kwargs):"), lines)
        yield Insert(held.cls.body[-1], (made_new,), after=True)


def _line(made: Set, name: str, facts: Facts) -> Code:
    method = facts.syntax.function_of(made.statement)
    me = self_name(method) if method is not None else None
    if isinstance(made.value, str):
        return Code(f"{me}.{name} = {made.value}")
    return Code(f"{me}.{name} = {{0}}", (made.value,))
