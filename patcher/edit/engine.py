"""One source text, all rules, to a fixpoint: find, choose, apply, check, again."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from patcher.edit.edits import apply, choose, replacements
from patcher.edit.spans import EditError
from patcher.facts.project.index import Project
from patcher.finding import Found, line_of, prepared, reported, result_of, search
from patcher.results import Bug, PatchResult, Reported
from patcher.rule import Applicability, Rule
from patcher.settings import Settings

MAX_PASSES = 10


def patch(
    text: str,
    path: str,
    rules: Sequence[Rule],
    settings: Settings,
    project: Project | None = None,
    tree: ast.Module | None = None,
) -> PatchResult:
    """Everything that ``rules`` find in ``text``, and the text with all fixes that ``settings`` allow.

    ``path`` tells the module's name; nothing is read from it. Raises SyntaxError, ValueError or RecursionError for a
    text that Python itself does not take.
    """
    tree, project, active = prepared(text, path, rules, settings, project, tree)
    bugs: list[Bug] = []
    fixed: list[Reported] = []
    distrusted: set[str] = set()
    idle: set[ast.AST] = set()
    found = first = search(tree, text, path, active, settings, project, bugs, rules, idle)
    current, seen = text, {text}
    compiles = any(_allowed(f, settings) for f in found) and _compiles(text)
    for _ in range(MAX_PASSES):
        wanted = [f for f in found if _allowed(f, settings) and f.rule.code not in distrusted]
        first_of_all = [f for f in wanted if not (f.finding.fix and f.finding.fix.last)]
        after, made, refused = _step(current, first_of_all or wanted, compiles, settings.line_length)
        bugs += refused
        distrusted |= {bug.code for bug in refused}
        if not made:
            break
        if after in seen:
            bugs += [Bug(f.rule.code, line_of(f.finding), "its rewrite undoes an earlier one") for f in made]
            break
        seen.add(after)
        fixed += reported(made, current)
        current = after
        found = search(ast.parse(current), current, path, active, settings, project, bugs, rules)
    else:
        bugs.append(Bug("engine", 0, f"still finding things to fix after {MAX_PASSES} passes"))
    return result_of(text, first, fixed, current, found, bugs, len(idle))


def suggest(
    text: str,
    path: str,
    rules: Sequence[Rule],
    settings: Settings,
    project: Project | None = None,
    tree: ast.Module | None = None,
) -> PatchResult:
    """What `find` finds, each finding with what its fix alone would change (``Reported.edits``).

    Fixes that ``settings`` do not allow, and those that are refused, have none. Raises as `patch`.
    """
    tree, project, active = prepared(text, path, rules, settings, project, tree)
    bugs: list[Bug] = []
    idle: set[ast.AST] = set()
    found = search(tree, text, path, active, settings, project, bugs, rules, idle)
    result = result_of(text, found, [], text, found, bugs, len(idle))
    compiles = any(_allowed(f, settings) for f in found) and _compiles(text)
    edits = []
    for f in found:
        after = _attempt(text, [f], compiles, settings.line_length) if _allowed(f, settings) else text
        edits.append(replacements(text, after) if isinstance(after, str) else ())
    return replace(result, found=tuple(replace(r, edits=e) for r, e in zip(result.found, edits, strict=True)))


def fix_one(
    text: str, path: str, rules: Sequence[Rule], settings: Settings, project: Project | None, wanted: Reported
) -> str:
    """``text`` with the fix of one finding made, safe or not, and nothing else changed.

    Raises `EditError` when ``text`` has no such finding, or it has no fix, or the fix is refused; and as `patch`.
    """
    tree, project, active = prepared(text, path, rules, settings, project, None)
    found = search(tree, text, path, active, settings, project, [], rules)
    places = zip(found, reported(found, text), strict=True)
    key = (wanted.code, wanted.line, wanted.column, wanted.message)
    one = next((f for f, told in places if (told.code, told.line, told.column, told.message) == key), None)
    if one is None or one.finding.fix is None:
        raise EditError("there is nothing to fix any more" if one is None else "it has no fix")
    after = _attempt(text, [one], _compiles(text), settings.line_length)
    if isinstance(after, Exception):
        raise EditError(f"its rewrite was refused: {after}")
    return after


def _allowed(f: Found, settings: Settings) -> bool:
    if f.suppressed:
        return False
    wanted = settings.unsafe or (settings.measured and f.measured)
    return f.finding.applicability is Applicability.SAFE or (wanted and f.finding.applicability is Applicability.UNSAFE)


def _step(text: str, wanted: list[Found], compiles: bool, limit: int | None) -> tuple[str, list[Found], list[Bug]]:
    """The text after one pass, the findings that were fixed in it, and the rewrites that had to be refused.

    All compatible fixes are made at once; when that fails, one after the other (one a pass would be more passes than
    there are), and those that do not work alone are bugs.
    """
    fixes = choose(f.finding.fix for f in wanted if f.finding.fix is not None)
    chosen = [f for f in wanted if any(f.finding.fix is c for c in fixes)]
    if not chosen:
        return text, [], []
    after = _attempt(text, chosen, compiles, limit)
    if isinstance(after, str):
        return after, chosen, []
    current, made, refused = text, list[Found](), list[Bug]()
    for f in chosen:
        more = _attempt(text, [*made, f], compiles, limit)
        if isinstance(more, str):
            current, made = more, [*made, f]
        elif isinstance(alone := _attempt(text, [f], compiles, limit), Exception):  # else it waits a pass
            refused.append(Bug(f.rule.code, line_of(f.finding), f"its rewrite was refused: {alone}"))
    return current, made, refused


def _attempt(text: str, chosen: list[Found], compiles: bool, limit: int | None) -> str | Exception:
    try:
        imports = frozenset().union(*(f.imports for f in chosen))
        after = apply(text, [f.finding.fix for f in chosen if f.finding.fix is not None], imports, limit)
        ast.parse(after)
    except Exception as e:
        return e
    if compiles and not _compiles(after):
        return EditError("the result does not compile")
    return after


def _compiles(text: str) -> bool:
    try:
        compile(text, "<patched>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
