"""Findings about the ignore comments themselves: what they list and there is not, and what they do not silence."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import ClassVar

from patcher.edit.suppress import Ignore, Suppressions, means
from patcher.facts import Facts
from patcher.files.lines import split_lines
from patcher.rule import Cost, Example, Finding, NearMiss, Rule, Where, removed

_TRIGGER = b"fix-compile:"


class _OfComments(Rule):
    """What both have in common: they look at no node; the engine asks once everything is found."""

    triggers: ClassVar[tuple[bytes, ...]] = (_TRIGGER,)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = ()
    where: ClassVar[Where] = Where.ANYWHERE
    invalid: ClassVar[tuple[Example, ...]] = ()
    valid: ClassVar[tuple[NearMiss, ...]] = ()
    costs: ClassVar[tuple[Cost, ...]] = ()

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Nothing: see ``findings``."""
        yield from ()


class UnknownIgnore(_OfComments):
    """An ignore comment that lists a rule that does not exist.

    What it does:
        Reports ``# fix-compile: ignore[FC999]``, with the code or name that comes nearest.

    Why it breaks compilation:
        It does not. But what it was to silence is not silenced, or a misspelled comment looks as if it did something.

    Fix safety:
        Display only.
    """

    code: ClassVar[str] = "FC001"
    name: ClassVar[str] = "unknown-ignore"


class UnusedIgnore(_OfComments):
    """An ignore comment that silences nothing.

    What it does:
        Reports a code in ``# fix-compile: ignore[FC101]`` that finds nothing there, and a comment without codes where
        no rule does. A rule that does not take part in the run (``--select``, ``--ignore``) is not judged.

    Why it breaks compilation:
        It does not. But a comment that has outlived its reason silences what somebody writes there next.

    Fix safety:
        Display only.
    """

    code: ClassVar[str] = "FC002"
    name: ClassVar[str] = "unused-ignore"


#: They are the engine's own, and stand beside those of the folder ``rules``.
OF_COMMENTS: tuple[Rule, ...] = (UnknownIgnore(), UnusedIgnore())


def findings(
    quiet: Suppressions,
    every: Sequence[Rule],
    active: Collection[str],
    complete: bool,
    used: Callable[[Ignore, str | None], bool],
    text: str,
) -> Iterator[tuple[Rule, Finding]]:
    """What there is to say of the comments. ``every``: all rules; ``active``: the codes of those that took part.

    ``complete``: whether those are all that can have something to say.
    ``used``: whether a comment has silenced something, as a whole (None) or for one of the items that it lists.
    """
    unknown, unused = OF_COMMENTS
    own = {rule.code for rule in OF_COMMENTS}
    for ignore in quiet.ignores:
        node = _place(ignore, text)
        if ignore.names is None:
            if complete and not used(ignore, None):
                yield unused, Finding(node, "`ignore` silences nothing here")
            continue
        for item in sorted(ignore.names):
            meant = {rule.code for rule in every if means(item, rule.code, rule.name)}
            if not meant:
                if unknown.code in active:
                    yield unknown, Finding(node, f"`ignore[{item}]` names no rule{_nearest(item, every)}")
            elif not meant & own and meant <= set(active) and not used(ignore, item) and unused.code in active:
                yield unused, Finding(node, f"`ignore[{item}]` silences nothing here")


def _nearest(item: str, every: Sequence[Rule]) -> str:
    known = [word for rule in every for word in (rule.code, rule.name)]
    close = difflib.get_close_matches(item.upper(), known, 1, 0.5) or difflib.get_close_matches(item, known, 1, 0.5)
    return removed(item) or (f" (did you mean {close[0]}?)" if close else "")


def _place(ignore: Ignore, text: str) -> ast.AST:
    """A node where the comment is; only its place counts."""
    lines = split_lines(text)
    before = lines[ignore.line - 1][: ignore.column] if ignore.line <= len(lines) else ""
    column = len(before.encode("utf-8", "surrogatepass"))
    return ast.Pass(lineno=ignore.line, col_offset=column, end_lineno=ignore.line, end_col_offset=column + 1)
