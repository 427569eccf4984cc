"""One source text, all rules: what they find, and the text with their fixes: find, choose, apply, check, again."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from patcher.edits import apply, choose
from patcher.facts import Facts
from patcher.facts.project import Project, summarise
from patcher.lines import split_lines
from patcher.results import Bug, PatchResult, Reported
from patcher.rule import Applicability, Finding, Rule, Where
from patcher.settings import Settings, Unit
from patcher.spans import EditError, says, targets_of
from patcher.suppress import suppressions

MAX_PASSES = 10
_NO_TORCH = "`torch` is not imported here, or is another name"


@dataclass(frozen=True)
class _Found:
    rule: Rule
    finding: Finding
    suppressed: bool
    scope: str
    imports: frozenset[str] = frozenset()


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
    tree, project, active = _prepared(text, path, rules, settings, project, tree)
    bugs: list[Bug] = []
    fixed: list[Reported] = []
    distrusted: set[str] = set()
    found = first = _find(tree, text, path, active, settings, project, bugs)
    current, seen = text, {text}
    compiles = any(_allowed(f, settings) for f in found) and _compiles(text)
    for _ in range(MAX_PASSES):
        wanted = [f for f in found if _allowed(f, settings) and f.rule.code not in distrusted]
        after, made, refused = _step(current, [f for f in wanted if not _is_last(f)] or wanted, compiles)
        bugs += refused
        distrusted |= {bug.code for bug in refused}
        if not made:
            break
        if after in seen:
            bugs += [Bug(f.rule.code, _line(f.finding), "its rewrite undoes an earlier one") for f in made]
            break
        seen.add(after)
        fixed += _reported(made, current)
        current = after
        found = _find(ast.parse(current), current, path, active, settings, project, bugs)
    else:
        bugs.append(Bug("engine", 0, f"still finding things to fix after {MAX_PASSES} passes"))
    return _result(text, first, fixed, current, found, bugs)


def find(
    text: str,
    path: str,
    rules: Sequence[Rule],
    settings: Settings,
    project: Project | None = None,
    tree: ast.Module | None = None,
) -> PatchResult:
    """Everything that ``rules`` find in ``text``, as `patch` has it, and the text as it is: no fix is made.

    Whether a fix can be made is not known then: one that `patch` would refuse is found all the same. Raises as `patch`.
    """
    tree, project, active = _prepared(text, path, rules, settings, project, tree)
    bugs: list[Bug] = []
    found = _find(tree, text, path, active, settings, project, bugs)
    return _result(text, found, [], text, found, bugs)


def _prepared(
    text: str,
    path: str,
    rules: Sequence[Rule],
    settings: Settings,
    project: Project | None,
    tree: ast.Module | None,
) -> tuple[ast.Module, Project, list[Rule]]:
    """The tree, the project (of this file alone when none is given), and the rules that take part."""
    if tree is None:
        tree = ast.parse(text)
    if project is None:
        project = Project([summarise(tree, path)])
    return tree, project, [r for r in rules if settings.wants(r.code, r.name) and not _settled(r, settings)]


def _result(
    text: str, first: list[_Found], fixed: list[Reported], current: str, found: list[_Found], bugs: list[Bug]
) -> PatchResult:
    return PatchResult(
        text=current,
        found=_reported(first, text),
        fixed=tuple(fixed),
        remaining=_reported([f for f in found if not f.suppressed], current),
        suppressed=sum(f.suppressed for f in found),
        bugs=tuple(dict.fromkeys(bugs)),
    )


def _settled(rule: Rule, settings: Settings) -> bool:
    return rule.fixed_in is not None and settings.target_torch >= rule.fixed_in


def _chosen(code: str, path: str, scope: str, settings: Settings) -> bool:
    return settings.only is None or Unit(code, path, scope) in settings.only


def _is_last(f: _Found) -> bool:
    return f.finding.fix is not None and f.finding.fix.last


def _allowed(f: _Found, settings: Settings) -> bool:
    if f.suppressed:
        return False
    return f.finding.applicability is Applicability.SAFE or (
        settings.unsafe and f.finding.applicability is Applicability.UNSAFE
    )


def _find(
    tree: ast.Module,
    text: str,
    path: str,
    rules: Iterable[Rule],
    settings: Settings,
    project: Project,
    bugs: list[Bug],
) -> list[_Found]:
    rules = tuple(rules)
    quiet = suppressions(text)

    names = {rule.code: rule.name for rule in rules}

    def silenced(code: str, statement: ast.stmt) -> bool:
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        chosen = _chosen(code, path, facts.syntax.scope_of(statement), settings)
        return not chosen or quiet.covers(code, names.get(code, code), first, last)

    active = frozenset(code for code in names if code not in settings.distrusted)
    facts = Facts(tree, path, project, settings, active, silenced)
    stronger = {r.code: [o for o in rules if o.code in r.yields_to] for r in rules}
    listeners: defaultdict[type[ast.AST], list[Rule]] = defaultdict(list)
    raw = text.encode("utf-8", "surrogatepass")
    for rule in rules:
        if any(t in raw for t in rule.triggers):
            for kind in rule.listens_to:
                listeners[kind].append(rule)
    found: list[_Found] = []
    for kind, listening in listeners.items():
        for node in facts.syntax.by_type[kind]:
            for rule in listening:
                try:
                    if rule.where is Where.COMPILED and not facts.compiled(node):
                        continue
                    if any(other.handles(node, facts) for other in stronger[rule.code]):
                        continue
                    findings = list(rule.check(node, facts))
                except RecursionError:
                    raise
                except Exception as e:
                    bugs.append(Bug(rule.code, getattr(node, "lineno", 0), f"{type(e).__name__}: {e}"))
                    continue
                for finding in findings:
                    if finding.fix is not None and rule.code in settings.distrusted:
                        finding = replace(finding, fix=None, strategy="", assumption=settings.distrusted[rule.code])
                    at = finding.node
                    line, end = at.lineno, at.end_lineno or at.lineno  # type: ignore[attr-defined]
                    if isinstance(at, ast.stmt) and hasattr(at, "body"):
                        end = max(line, at.body[0].lineno - 1)
                    statement = facts.syntax.statement_of(at)
                    covered = quiet.covers(rule.code, rule.name, line, end) or quiet.covers(
                        rule.code, rule.name, statement.lineno, statement.lineno
                    )
                    scope = facts.syntax.scope_of(at)
                    covered |= not _chosen(rule.code, path, scope, settings)
                    imports = _imports(finding, facts)
                    if imports is None:
                        finding = Finding(at, finding.message, assumption=_NO_TORCH)
                    found.append(_Found(rule, finding, covered, scope, imports or frozenset()))
    found.sort(key=lambda f: (f.finding.node.lineno, f.finding.node.col_offset, f.rule.code))  # type: ignore[attr-defined]
    return found


def _imports(finding: Finding, facts: Facts) -> frozenset[str] | None:
    """What the module has to import for the new code of ``finding``; None when that cannot be done."""
    needed: set[str] = set()
    for edit in finding.fix.edits if finding.fix is not None else ():
        at = targets_of(edit)[0]
        if says(edit, "torch") and facts.writing.spelled("torch", at) != "torch":
            if not facts.writing.importable("torch", at):
                return None
            needed.add("torch")
    return frozenset(needed)


def _step(text: str, wanted: list[_Found], compiles: bool) -> tuple[str, list[_Found], list[Bug]]:
    """The text after one pass, the findings that were fixed in it, and the rewrites that had to be refused.

    All compatible fixes are made at once; when that fails, the first that works alone, and those before it are bugs.
    """
    fixes = choose(f.finding.fix for f in wanted if f.finding.fix is not None)
    chosen = [f for f in wanted if any(f.finding.fix is c for c in fixes)]
    if not chosen:
        return text, [], []
    after = _attempt(text, chosen, compiles)
    if isinstance(after, str):
        return after, chosen, []
    refused: list[Bug] = []
    for f in chosen:
        alone = _attempt(text, [f], compiles)
        if isinstance(alone, str):
            return alone, [f], refused
        refused.append(Bug(f.rule.code, _line(f.finding), f"its rewrite was refused: {alone}"))
    return text, [], refused


def _attempt(text: str, chosen: list[_Found], compiles: bool) -> str | Exception:
    try:
        imports = frozenset().union(*(f.imports for f in chosen))
        after = apply(text, [f.finding.fix for f in chosen if f.finding.fix is not None], imports)
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


def _line(finding: Finding) -> int:
    return int(getattr(finding.node, "lineno", 0))


def _reported(found: Sequence[_Found], text: str) -> tuple[Reported, ...]:
    lines = split_lines(text) if found else []
    return tuple(_report(f, lines) for f in found)


def _report(f: _Found, lines: list[str]) -> Reported:
    node = f.finding.node
    line, end = node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]
    column, end_column = node.col_offset, node.end_col_offset or 0  # type: ignore[attr-defined]
    return Reported(
        code=f.rule.code,
        name=f.rule.name,
        message=f.finding.message,
        line=line,
        column=_characters(lines, line, column) + 1,
        end_line=end,
        end_column=_characters(lines, end, end_column) + 1,
        applicability=f.finding.applicability.value,
        assumption=f.finding.assumption,
        strategy=f.finding.strategy,
        suppressed=f.suppressed,
        scope=f.scope,
    )


def _characters(lines: list[str], line: int, column: int) -> int:
    if line > len(lines):
        return column
    return len(lines[line - 1].encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))
