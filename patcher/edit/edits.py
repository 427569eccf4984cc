"""Which fixes go together, and the text with them made: only statements that change are taken apart."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Collection, Iterable, Sequence

from patcher.edit.concrete import Patch
from patcher.edit.spans import Span, nodes_of, span_of, targets_of
from patcher.files.lines import as_around, line_length, opcodes, split_lines
from patcher.results import TextEdit
from patcher.rule import Decorate, Edit, Fix, Insert


def replacements(before: str, after: str) -> tuple[TextEdit, ...]:
    """What has to be put in the place of what, in whole lines, in the order of ``before``; none overlaps another."""
    old, new = split_lines(before), split_lines(after)
    return tuple(
        TextEdit(*_line_start(old, i1), *_line_start(old, i2), "".join(new[j1:j2]))
        for tag, i1, i2, j1, j2 in opcodes(old, new)
        if tag != "equal"
    )


def _line_start(lines: list[str], index: int) -> tuple[int, int]:
    """Line and column, from 1, of the beginning of ``lines[index]``, or of the end of the text."""
    if index < len(lines) or not lines or lines[-1].endswith(("\n", "\r")):
        return index + 1, 1
    return len(lines), len(lines[-1]) + 1


_BESIDE = (Insert, Decorate)  # what replaces nothing


def choose(fixes: Iterable[Fix]) -> list[Fix]:
    """The fixes that can be made in one pass: what one replaces, no other may touch, contain or quote."""
    chosen: list[Fix] = []
    replaced: list[Span] = []
    quoted: list[Span] = []
    for fix in fixes:
        own = [span_of(t) for e in fix.edits if not isinstance(e, _BESIDE) for t in targets_of(e)]
        beside = [span_of(t)[:2] * 2 for e in fix.edits if isinstance(e, _BESIDE) for t in targets_of(e)]
        if any(_overlap(a, b) for a in own for b in [*replaced, *quoted]) or any(
            _overlap(a, b) for a in beside for b in replaced
        ):
            continue
        chosen.append(fix)
        replaced += own
        quoted += beside
    return chosen


def _overlap(a: Span, b: Span) -> bool:
    return a[:2] <= b[2:] and b[:2] <= a[2:] and (a[:2] < b[2:] or a[:2] == a[2:]) and (b[:2] < a[2:] or b[:2] == b[2:])


def apply(text: str, fixes: Sequence[Fix], imports: Collection[str] = (), limit: int | None = None) -> str:
    """``text`` with all ``fixes`` made, below the new ``imports``. Raises EditError when one does not fit the text.

    What several of them need, a function that is new, is written once. ``limit``: how long the project lets its lines
    be, if it says so.
    """
    tree = ast.parse(text)
    lines = split_lines(text)
    length = line_length(text, limit)
    edits = list(dict.fromkeys(edit for fix in fixes for edit in fix.edits))
    regions = [(_commented(first, lines, here), last, here) for first, last, here in _regions(tree, edits)]
    for first, last, here in reversed(regions):
        old = lines[first - 1 : last]
        lines[first - 1 : last] = as_around(old, split_lines(Patch("".join(old), first, length).apply(here)))
    changed = min((first for first, _, _ in regions), default=len(lines) + 1)
    for name in sorted(imports, reverse=True):
        _import(tree, lines, name, changed)
    return "".join(lines)


def _regions(tree: ast.Module, edits: Sequence[Edit]) -> list[tuple[int, int, list[Edit]]]:
    """Runs of whole top-level statements (first and last line, from 1) with the edits that touch or quote them."""
    regions: list[tuple[int, int, list[Edit]]] = []
    for statement in tree.body:
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        last = statement.end_lineno or first
        if regions and first <= regions[-1][1]:
            first, last = regions[-1][0], max(last, regions.pop()[1])
        regions.append((first, last, []))
    for edit in edits:
        at = [n.lineno for n in nodes_of(edit)]  # type: ignore[attr-defined]
        touched = [i for i, (first, last, _) in enumerate(regions) if any(first <= line <= last for line in at)]
        i, j = touched[0], touched[-1]
        merged = (regions[i][0], regions[j][1], [e for _, _, es in regions[i : j + 1] for e in es] + [edit])
        regions[i : j + 1] = [merged]
    return [region for region in regions if region[2]]


def _commented(first: int, lines: Sequence[str], edits: Sequence[Edit]) -> int:
    """Where the comments begin that stand above the definition in line ``first``, where new code goes between them.

    What is written right below another statement is about that one.
    """
    anchors = [edit.anchor for edit in edits if isinstance(edit, Insert) and not edit.after]
    starts = {min([a.lineno, *(d.lineno for d in getattr(a, "decorator_list", ()))]) for a in anchors}
    top, at = first, first - 1
    while first in starts and at > 0 and (line := lines[at - 1].rstrip())[:1] in ("", "#"):
        if line and at > 1 and not lines[at - 2].strip():
            top = at
        at -= 1
    return top


def _import(tree: ast.Module, lines: list[str], name: str, changed: int) -> None:
    """Put ``import name`` among the first imports, sorted by kind and name.

    ``changed``: the first line that an edit has changed.
    """
    at, below = _above(tree.body)
    head = list(itertools.takewhile(_is_import, below))
    ending = next((line[len(line.rstrip("\r\n")) :] for line in lines if line.endswith(("\n", "\r"))), "\n")
    new = f"import {name}{ending}"
    late = _late(below, head, name)
    if late is not None and late < changed:
        lines.insert(late - 1, new)
    elif not head:
        lines.insert(at, new)
    elif _end(head[-1]) >= min([changed, *(s.lineno for s in below[len(head) : len(head) + 1])]):
        lines.insert(head[0].lineno - 1, new)  # lines are not where they were, or hold more than one statement
    else:
        at, before, behind = _place(head, name)
        while at >= head[0].lineno and lines[at - 1].lstrip().startswith("#"):
            at -= 1  # what is said about the import below it
        before = before and lines[at - 1].strip() != ""
        lines.insert(at, ending * before + new + ending * behind)


def _late(below: list[ast.stmt], head: list[ast.stmt], name: str) -> int | None:
    """The line of the first import of the package ``name`` where other code stands above it, alone on its lines.

    That code may be there to run before: ``os.environ["TORCH_LOGS"] = "recompiles"``.
    """
    first = next((i for i, s in enumerate(below) if _is_import(s) and name in _packages(s)), None)
    if first is None or first < len(head) or _end(below[first - 1]) >= below[first].lineno:
        return None
    return below[first].lineno


def _packages(statement: ast.stmt) -> set[str]:
    """The packages that an import names."""
    if isinstance(statement, ast.ImportFrom):
        return set() if statement.level else {(statement.module or "").partition(".")[0]}
    return {n.name.partition(".")[0] for n in statement.names} if isinstance(statement, ast.Import) else set()


def _above(body: list[ast.stmt]) -> tuple[int, list[ast.stmt]]:
    """The line below the docstring and the ``__future__`` imports, and the statements from there on."""
    at = 0
    for i, statement in enumerate(body):
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        docstring = i == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not (future or docstring):
            return at, body[i:]
        at = statement.end_lineno or 0
    return at, []


def _is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def _place(head: list[ast.stmt], name: str) -> tuple[int, bool, bool]:
    """Above which line ``import name`` goes, where ``head``, the first imports, has what is sorted behind it.

    And whether an empty line goes above or below, where it is the first of its kind.
    """
    mine = _rank(name.partition(".")[0]), 0, name
    ranks = [_sorted_by(s) for s in head]
    kinds = [kind for kind, _, _ in ranks]
    if kinds != sorted(kinds):
        return head[0].lineno - 1, False, False
    i = next((i for i, rank in enumerate(ranks) if rank > mine), len(head))
    alone = mine[0] not in kinds
    return head[i].lineno - 1 if i < len(head) else _end(head[-1]), alone and i > 0, alone and i < len(head)


def _end(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def _sorted_by(statement: ast.stmt) -> tuple[int, int, str]:
    """Kind of module (of Python, of others, near), form and name."""
    if isinstance(statement, ast.ImportFrom):
        return 2 if statement.level else _rank((statement.module or "").partition(".")[0]), 1, statement.module or ""
    assert isinstance(statement, ast.Import)
    first = statement.names[0].name
    return _rank(first.partition(".")[0]), 0, first


def _rank(module: str) -> int:
    return 0 if module in sys.stdlib_module_names else 1
