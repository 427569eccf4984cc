"""``# fix-compile: ignore[FC101]  reason``: places where the user does not want to hear from a rule."""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

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


def of_comments(
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


# The word must end there: "ignored" is prose, and "ignore[FC101" (never closed) must not silence every rule.
_COMMENT = re.compile(r"#\s*fix-compile:\s*(ignore-file|ignore)(?:\s*\[([^\[\]]*)\]|(?=\s|$)(?!\s*\[))")


@dataclass(frozen=True)
class Ignore:
    """One comment. ``names``: what it lists; None: every rule. ``column``: where it starts, in characters from 0."""

    line: int
    whole_file: bool
    names: frozenset[str] | None
    column: int = 0

    def names_rule(self, code: str, name: str) -> bool:
        """Whether the rule ``code``/``name`` is meant."""
        return self.names is None or any(means(item, code, name) for item in self.names)


Ignores: TypeAlias = frozenset[Ignore]


def means(item: str, code: str, name: str) -> bool:
    """Whether ``item`` (a code, the beginning of one, or a name) stands for the rule ``code``/``name``."""
    return bool(item) and (item == name or code.startswith(item.upper()))


@dataclass(frozen=True)
class Suppressions:
    """The ignore comments of one file."""

    ignores: tuple[Ignore, ...] = ()

    def covers(self, code: str, name: str, first_line: int, last_line: int) -> bool:
        """Whether the rule ``code``/``name`` is silenced from ``first_line`` to ``last_line`` (from 1, inclusive).

        Give the lines of the statement's header: a comment on any of them counts, and so does ``ignore-file`` anywhere.
        """
        return bool(self.covering(code, name, first_line, last_line))

    def covering(self, code: str, name: str, first_line: int, last_line: int) -> Ignores:
        """The comments that silence it there."""
        return frozenset(
            ignore
            for ignore in self.ignores
            if (ignore.whole_file or first_line <= ignore.line <= last_line) and ignore.names_rule(code, name)
        )


def suppressions(text: str) -> Suppressions:
    """The ignore comments in ``text``: codes, code prefixes or rule names in brackets, or none for all rules."""
    if "fix-compile:" not in text:
        return Suppressions()
    return Suppressions(tuple(_ignores(text)))


def _ignores(text: str) -> Iterator[Ignore]:
    lines = io.StringIO(text, newline=None)  # any newline, so that lines count as they do in the syntax tree
    try:
        for token in tokenize.generate_tokens(lines.readline):
            if token.type == tokenize.COMMENT and "fix-compile:" in token.string:
                for match in _COMMENT.finditer(token.string):
                    kind, names = match.group(1), match.group(2)
                    listed = None if names is None else frozenset(p.strip() for p in names.split(",") if p.strip())
                    yield Ignore(token.start[0], kind == "ignore-file", listed, token.start[1] + match.start())
    except (tokenize.TokenError, SyntaxError):
        return  # the parser says what is wrong with such a file
