"""What can be done about a finding: its fix, all safe fixes, a comment that silences it."""

from __future__ import annotations

import ast
import asyncio
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lsprotocol import types
from pygls.workspace import PositionCodec

from patcher.edit.spans import EditError
from patcher.edit.suppress import OF_COMMENTS
from patcher.editor.folder import Folder, Look
from patcher.editor.protocol import FIX_ALL, Abilities, changes, digest, range_of, said
from patcher.files.lines import split_lines
from patcher.results import Reported
from patcher.rule import Rule

_LISTED = re.compile(r"#\s*fix-compile:\s*ignore\s*\[([^\[\]]*)\]")


def silenced(text: str, found: Reported, look: Callable[[str], Sequence[Reported]]) -> str | None:
    """``text`` with a comment that silences ``found``, and changes nothing else; None when no line takes one.

    ``look``: what is found in a text, apart from what is silenced.
    """
    lines = split_lines(text)
    before = _same(look(text), found)
    try:
        meaning = ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError):
        return None
    for line in dict.fromkeys((found.line, found.end_line)):
        if line > len(lines):
            continue
        changed = "".join([*lines[: line - 1], _commented(lines[line - 1], found.code), *lines[line:]])
        try:
            same = ast.dump(ast.parse(changed)) == meaning  # not where the line ends inside of a string, or goes on
        except (SyntaxError, ValueError, RecursionError):
            continue
        if same and _same(look(changed), found) < before:
            return changed
    return None


def _same(reported: Sequence[Reported], found: Reported) -> int:
    """How many findings there are of that rule at that place."""
    return sum((one.code, one.line, one.column) == (found.code, found.line, found.column) for one in reported)


def _commented(line: str, code: str) -> str:
    """The line with the comment at its end, or with the code in the comment that is there."""
    if listed := _LISTED.search(line):
        return f"{line[: listed.end(1)]}, {code}{line[listed.end(1) :]}"
    bare = line.rstrip("\r\n")
    return f"{bare.rstrip()}  # fix-compile: ignore[{code}]{line[len(bare) :]}"


#: The command by which the server makes a change, where the client asks before those only.
APPLY = "fix-compile.apply"
_QUICK = types.CodeActionKind.QuickFix
_OF_COMMENTS = frozenset(rule.code for rule in OF_COMMENTS)


@dataclass
class Document:
    """A text that is open. ``version``: the client's. ``look``: what was found last, of that very text or an older one.

    ``task``: what is going on for it.
    """

    uri: str
    path: str
    text: str
    version: int | None
    folder: Folder | None
    look: Look | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class Actions:
    """Made in two steps: what there is to choose from costs nothing; the edit is made for the one that is chosen."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._names = {rule.code: rule.name for rule in rules}

    def offered(
        self, document: Document, look: Look, params: types.CodeActionParams, able: Abilities, codec: PositionCodec
    ) -> list[types.CodeAction]:
        """The actions, without edits, for the findings in the lines that the client asks about."""
        only = params.context.only
        data = {"uri": document.uri, "text": digest(document.text)}
        found: list[types.CodeAction] = []
        if _wanted(FIX_ALL, only) and only:
            found.append(types.CodeAction("fix-compile: make all safe fixes", FIX_ALL, data={**data, "do": "all"}))
        if not _wanted(_QUICK, only) or look.error:
            return found
        first, last = params.range.start.line + 1, params.range.end.line + 1
        lines = split_lines(document.text)
        for one in look.found:
            if first <= one.line <= last:
                shown = types.Diagnostic(range_of(one, lines, codec), one.message, code=one.code, source="fix-compile")
                found += _of(one, shown, data, able.annotated and not able.honours)
        return found

    def resolved(
        self, action: types.CodeAction, document: Document, able: Abilities, codec: PositionCodec
    ) -> types.CodeAction:
        """The action with its edit; without one, and with the reason, where the text is another one by now."""
        data: Any = action.data
        folder, text = document.folder, document.text
        try:
            if folder is None or data["text"] != digest(text):
                raise EditError("the text has changed meanwhile")
            after, assumption = _done(data, folder, document.path, text)
        except EditError as error:
            action.disabled = types.CodeActionDisabled(str(error))
            return action
        if after != text:
            action.edit = changes(document.uri, document.version, text, after, able, codec, action.title, assumption)
        return action


def _of(one: Reported, shown: types.Diagnostic, data: dict[str, Any], by_command: bool) -> Iterator[types.CodeAction]:
    carried = {**data, "finding": asdict(one)}
    if one.applicability == "safe":
        title = f"{one.code}: fix {one.name}"
        yield types.CodeAction(title, _QUICK, [shown], is_preferred=True, data={**carried, "do": "fix"})
    elif one.applicability == "unsafe":
        title = f"{one.code}: fix {one.name} (unsafe, assumes: {textwrap.shorten(one.assumption, 80)})"
        asked = {**carried, "do": "fix", "title": title}
        if by_command:
            yield types.CodeAction(title, _QUICK, [shown], command=types.Command(title, APPLY, arguments=[asked]))
        else:
            yield types.CodeAction(title, _QUICK, [shown], data=asked)
    if one.code not in _OF_COMMENTS:
        title = f"{one.code}: ignore here"
        yield types.CodeAction(title, _QUICK, [shown], data={**carried, "do": "ignore"})


def _done(data: Any, folder: Folder, path: str, text: str) -> tuple[str, str]:
    """The text after the action, and what an unsafe one takes for granted; raises `EditError`."""
    if data["do"] == "all":
        return folder.fixed_safely(path, text), ""
    finding = said(data["finding"])
    if data["do"] == "fix":
        assumption = finding.assumption if finding.applicability == "unsafe" else ""
        return folder.fixed(path, text, finding), assumption
    after = silenced(text, finding, lambda changed: folder.look(path, changed).found)
    if after is None:
        raise EditError("no line of it takes a comment")
    return after, ""


def _wanted(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether the client asks for actions of that kind, or of one that it is a part of."""
    return not only or any(kind == str(_text(one)) or kind.startswith(f"{_text(one)}.") for one in only)


def _text(kind: types.CodeActionKind | str) -> str:
    return kind.value if isinstance(kind, types.CodeActionKind) else kind
