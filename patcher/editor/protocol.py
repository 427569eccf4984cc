"""What was found, in the words of the language server protocol: ranges in the client's units, diagnostics, edits."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.workspace import PositionCodec

from patcher.described import markdown
from patcher.diagnose.latest import MeasuredCause
from patcher.edit.edits import replacements
from patcher.files.lines import split_lines
from patcher.results import Reported
from patcher.rule import Rule

_FIXES = {"safe": "safe fix", "unsafe": "unsafe fix", "display-only": "no fix"}


def page(found: Sequence[Reported], causes: Sequence[MeasuredCause], rules: Mapping[str, Rule]) -> str:
    """Markdown for the findings and causes of one line; "" for none."""
    parts = [_measured(causes)] if causes else []
    for one in found:
        parts.append(_finding(one))
        if one.code in rules:
            parts.append(markdown(inspect.cleandoc(type(rules[one.code]).__doc__ or "")))
    return "\n\n---\n\n".join(parts)


def message(found: Reported) -> str:
    """The finding in one line, with what an unsafe fix assumes or why there is none."""
    reached = f" ({found.reached})" if found.reached else ""
    if not found.assumption:
        return f"{found.message}{reached}"
    word = "the unsafe fix assumes" if found.applicability == "unsafe" else "no fix"
    return f"{found.message}{reached}; {word}: {found.assumption}"


def _finding(found: Reported) -> str:
    return f"**{found.code} {found.name}** ({_FIXES[found.applicability]}): {_markdown(message(found))}"


def _measured(causes: Sequence[MeasuredCause]) -> str:
    when = causes[0].when
    lines = [f"**Measured here** by `{_plain(causes[0].command)}`, {when}:", ""]
    lines += [f"- {cause.severity}: {_markdown(cause.title)}. {_markdown(cause.told)}" for cause in causes]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text.replace("`", "'")


def _markdown(text: str) -> str:
    """Text of ours, in which only backticks mean something."""
    parts = text.split("`")
    return "`".join(part if n % 2 else re.sub(r"([*_<>\[\]\\])", r"\\\1", part) for n, part in enumerate(parts))


SOURCE = "fix-compile"
FIX_ALL = "source.fixAll.fixCompile"


@dataclass(frozen=True)
class Abilities:
    """What the client takes.

    ``annotated``: edits with a label, and a question; ``honours``: also those of an action, and not only those that
    the server asks for; ``versioned``: of one version of a text; ``late``: the edit of an action when it is chosen.
    """

    annotated: bool = False
    honours: bool = False
    versioned: bool = False
    late: bool = False

    @classmethod
    def of(cls, client: types.ClientCapabilities) -> Abilities:
        """As it said when it was started."""
        edits = client.workspace.workspace_edit if client.workspace else None
        actions = client.text_document.code_action if client.text_document else None
        resolved = actions.resolve_support if actions else None
        return cls(
            annotated=bool(edits and edits.document_changes and edits.change_annotation_support),
            honours=bool(actions and actions.honors_change_annotations),
            versioned=bool(edits and edits.document_changes),
            late=bool(resolved and "edit" in resolved.properties and actions and actions.data_support),
        )


def range_of(found: Reported, lines: Sequence[str], codec: PositionCodec) -> types.Range:
    """Where the finding stands; of several lines the first, for an editor would underline all of a branch."""
    bare = lines[found.line - 1].rstrip("\r\n") if found.line <= len(lines) else ""
    end = found.end_column if found.end_line == found.line else len(bare.rstrip()) + 1
    at, to = (_position(found.line, column, lines, codec) for column in (found.column, max(end, found.column + 1)))
    return types.Range(at, to)


def _position(line: int, column: int, lines: Sequence[str], codec: PositionCodec) -> types.Position:
    """Where a line and a column, both from 1, are in the client's units."""
    units = codec.client_num_units(lines[line - 1].rstrip("\r\n")[: column - 1]) if line <= len(lines) else 0
    return types.Position(line - 1, units)


def diagnostics(found: Sequence[Reported], text: str, codec: PositionCodec) -> list[types.Diagnostic]:
    """What the client shows."""
    lines = split_lines(text)
    return [
        types.Diagnostic(
            range=range_of(one, lines, codec),
            message=message(one),
            severity=_severity(one),
            code=one.code,
            source=SOURCE,
            data={"safety": one.applicability},
        )
        for one in found
    ]


def _severity(found: Reported) -> types.DiagnosticSeverity:
    """What `check` fails for is a warning, what it only notes an information; neither where it hardly ever runs."""
    if found.severity == "low":
        return types.DiagnosticSeverity.Hint
    safe = found.applicability == "safe"
    return types.DiagnosticSeverity.Warning if safe else types.DiagnosticSeverity.Information


def said(data: Any) -> Reported:
    """The finding of an action that was chosen; raises ``TypeError`` for something else."""
    return Reported(**{**data, "rewritten": tuple(tuple(pair) for pair in data["rewritten"])})


def digest(text: str) -> str:
    """By which an action knows the text that it was offered for."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def changes(
    uri: str,
    version: int | None,
    before: str,
    after: str,
    able: Abilities,
    codec: PositionCodec,
    label: str,
    assumption: str = "",
) -> types.WorkspaceEdit:
    """What makes ``after`` of ``before``. ``assumption``: the client asks before it makes the change, and shows it."""
    lines = split_lines(before)
    plain = [
        types.TextEdit(
            types.Range(_position(e.line, e.column, lines, codec), _position(e.end_line, e.end_column, lines, codec)),
            e.text,
        )
        for e in replacements(before, after)
    ]
    if not able.versioned:
        return types.WorkspaceEdit(changes={uri: plain})
    document = types.OptionalVersionedTextDocumentIdentifier(uri, version)
    if not able.annotated:
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, plain)])
    note = types.ChangeAnnotation(label, needs_confirmation=bool(assumption), description=assumption or None)
    annotated = [types.AnnotatedTextEdit(SOURCE, edit.range, edit.new_text) for edit in plain]
    return types.WorkspaceEdit(
        document_changes=[types.TextDocumentEdit(document, annotated)], change_annotations={SOURCE: note}
    )
