"""What comes out of a run: frozen, picklable, and fit for JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from patcher.settings import severity

_OWN = re.compile(r"FC[0-8]\d\d")


def is_own_code(code: str) -> bool:
    """Whether the rule of that code is one of this project's, and not of another package."""
    return _OWN.fullmatch(code) is not None


def blamed(code: str) -> str:
    """Whose bug it is when the rule of that code, or the engine, fails."""
    return "a bug in fix-compile" if is_own_code(code) or code == "engine" else "a bug in the package it comes from"


def page(code: str) -> str:
    """The page of a rule, in the repository of the tool; "" for a rule of another package."""
    return f"docs/rules/{code}.md" if is_own_code(code) else ""


@dataclass(frozen=True)
class RuleText:
    """A rule for people: ``title`` is one line, ``text`` and ``markdown`` all there is, ``url`` a page on the web."""

    code: str
    name: str
    title: str
    text: str
    markdown: str
    url: str = ""
    costs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Overrun:
    """A case that costs more than its budget. ``what``: ``breaks 0 -> 1``. ``places``: ``file:line`` and why, of each.

    A place may be "", where PyTorch tells none.
    """

    case: str
    what: str
    places: tuple[tuple[str, str], ...] = ()

    @property
    def told(self) -> str:
        """In one line."""
        return f"{self.case}: {self.what} (beyond its budget in fix-compile.lock)"


@dataclass(frozen=True)
class TextEdit:
    """Text that comes in the place of a region of another; lines and columns from 1, the end exclusive.

    A region that ends with a newline ends in column 1 of the line below.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Reported:
    """A finding with its place in the text. Lines and columns count from 1, columns in characters.

    ``scope``: the qualified name of the innermost function or class that it is in, ``""`` at module level. ``reached``:
    how often compiled code gets there, in words; ``rarity``: the same in order, 0 for what costs most. ``rewritten``:
    the first and last lines of what its fix rewrites. ``about``: the code that it is about (of a statement with a body:
    its head), as ``ast.unparse`` spells it, which stays when lines move or are formatted. ``edits``: what its fix alone
    would change, where that was asked for. ``known``: a baseline has it. ``head_end``: the last line of ``about``.
    ``measured``: it takes the types that a run has seen.
    """

    code: str
    name: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    applicability: Literal["safe", "unsafe", "display-only"]
    assumption: str = ""
    strategy: str = ""
    suppressed: bool = False
    scope: str = ""
    reached: str = ""
    rarity: int = 0
    rewritten: tuple[tuple[int, int], ...] = ()
    about: str = ""
    edits: tuple[TextEdit, ...] = ()
    known: bool = False
    head_end: int = 0
    measured: bool = False

    @property
    def severity(self) -> str:
        """How much it may cost, as far as its place tells: "high", "medium" or "low"."""
        return severity(self.rarity)


@dataclass(frozen=True)
class Bug:
    """A rule that crashed, or whose rewrite was refused by the checks: ours to mend, and the file is as it was."""

    code: str
    line: int
    message: str


@dataclass(frozen=True)
class PatchResult:
    """What the engine made of one source text.

    ``found``: everything in the original, in its own lines. ``fixed``: what was repaired, with the lines of the pass
    that did it. ``remaining``: what is still there in ``text``, in its lines (suppressed findings are in neither).
    ``not_compiled``: how many functions of the original were left alone because nothing compiles them.
    """

    text: str
    found: tuple[Reported, ...] = ()
    fixed: tuple[Reported, ...] = ()
    remaining: tuple[Reported, ...] = ()
    suppressed: int = 0
    bugs: tuple[Bug, ...] = ()
    not_compiled: int = 0


@dataclass(frozen=True)
class Altered:
    """A file that run ``run`` patched and that does not have those bytes any more.

    ``state``: "edited", "back to the original" or "deleted".
    """

    path: str
    state: str
    run: str

    @property
    def told(self) -> str:
        """In one line, without the path."""
        return f"altered since run {self.run} of fix-compile patched it ({self.state})"


@dataclass(frozen=True)
class FileResult:
    """One file: its path as the user sees it, its bytes before and after, or the line that says what is wrong.

    ``beside``: a test, an example or a script that was read only to know who uses the other files.
    ``other``: a file that was named, and is no Python. ``not_compiled``: as `PatchResult` has it. ``created``: the file
    is new, and ``before`` is empty. ``removed``: it goes away, and ``after`` is empty.
    """

    path: str
    before: bytes = field(default=b"", repr=False)
    after: bytes = field(default=b"", repr=False)
    encoding: str = "utf-8"
    patch: PatchResult | None = None
    error: str = ""
    beside: bool = False
    other: bool = False
    not_compiled: int = 0
    created: bool = False
    removed: bool = False

    @property
    def bugs(self) -> tuple[Bug, ...]:
        """Rules that did not do their work in it."""
        return self.patch.bugs if self.patch else ()

    @property
    def changed(self) -> bool:
        """Whether the patched bytes are not the original ones, or there are none in one of the two."""
        return not self.error and (self.before != self.after or self.created or self.removed)
