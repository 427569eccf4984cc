"""One source text, all rules: what they find."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import Any

from patcher.edit.spans import rewritten, says, targets_of
from patcher.edit.suppress import OF_COMMENTS, Ignore, Ignores, Suppressions, means, of_comments, suppressions
from patcher.facts import Facts
from patcher.facts.checks.caught import Caught
from patcher.facts.compiling.in_force import InForce
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.facts.running.frequency import Frequency, Often, Reach
from patcher.facts.zones.scripting import Scripting
from patcher.files.lines import line_length, split_lines
from patcher.measuring.observed import UNSEEN, Observed, Span, span_of
from patcher.results import Bug, PatchResult, Reported
from patcher.rule import Applicability, Finding, Fix, Insert, Rule, Where
from patcher.settings import Settings, Unit, severity

_ONLY_SHOWN = "a run has shown that it is compiled, and the source does not tell who calls it"
#: What new code may say by these names, and is imported for it.
_IMPORTED = ("math", "torch")
_OLD_SIZES = "a tensor gets other sizes in place here, of which Dynamo may still tell the old ones"
#: What new code may ask a tensor for its sizes by.
_SIZES = (".shape", ".size", ".numel", "len")
#: What the user has to know of such a fix, whatever rule makes it.
_ON_THE_DEVICE = " (fix: an assertion on the device; when it fails on a GPU, the process cannot use that GPU again)"
_NO_FAILURE = "no check fails on a GPU, or the process may end with it (device-asserts = false)"
_SCRIPTED = "`torch.jit.script` compiles this function as well, and may not take what would stand here"
_MOST_TYPES = 6
_NUMBERS = frozenset({"bool", "int", "float", "None"})
_NEVER_RUN = "a part of what would change is never got to"


#: A rule as a node is asked of it: whether it is about compiled code only, what answers first, its check.
_Asked = tuple[Rule, bool, tuple[Callable[..., bool], ...], Callable[[ast.AST, Facts], Iterator[Finding]]]


@dataclass(frozen=True)
class Found:
    """A finding, who found it, and where. ``imports``: what the module has to import for its fix.

    ``reach``: how often compiled code gets there. ``measured``: it holds for the types that a run has seen.
    """

    rule: Rule
    finding: Finding
    suppressed: bool
    scope: str
    reach: Reach
    imports: frozenset[str] = frozenset()
    by: Ignores = frozenset()
    measured: bool = False


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
    tree, project, active = prepared(text, path, rules, settings, project, tree)
    bugs: list[Bug] = []
    idle: set[ast.AST] = set()
    found = search(tree, text, path, active, settings, project, bugs, rules, idle)
    return result_of(text, found, [], text, found, bugs, len(idle))


def prepared(
    text: str, path: str, rules: Sequence[Rule], settings: Settings, project: Project | None, tree: ast.Module | None
) -> tuple[ast.Module, Project, list[Rule]]:
    """The tree, the project (of this file alone when none is given), and the rules that take part."""
    if tree is None:
        tree = ast.parse(text)
    if project is None:
        project = Project([summarise(tree, path)])
    wanted = [r for r in rules if settings.wants(r.code, r.name, r.switch)]
    return tree, project, [r for r in wanted if not _settled(r, settings)]


def result_of(
    text: str, first: list[Found], fixed: list[Reported], current: str, found: list[Found], bugs: list[Bug], idle: int
) -> PatchResult:
    """What there is to tell: ``first`` was found in ``text``, ``found`` is still there in ``current``.

    ``idle``: how many functions of ``text`` nothing compiles.
    """
    return PatchResult(
        text=current,
        found=reported(first, text),
        fixed=tuple(fixed),
        remaining=reported([f for f in found if not f.suppressed], current),
        suppressed=sum(f.suppressed for f in found),
        not_compiled=idle,
        bugs=tuple(dict.fromkeys(bugs)),
    )


def _settled(rule: Rule, settings: Settings) -> bool:
    return rule.fixed_in is not None and settings.target_torch >= rule.fixed_in


def _chosen(code: str, path: str, scope: str, settings: Settings) -> bool:
    return settings.only is None or Unit(code, path, scope) in settings.only


def search(
    tree: ast.Module,
    text: str,
    path: str,
    rules: Sequence[Rule],
    settings: Settings,
    project: Project,
    bugs: list[Bug],
    every: Sequence[Rule] = (),
    idle: set[ast.AST] | None = None,
) -> list[Found]:
    """What ``rules`` find in ``tree``, by line, column and code; rules that crash go to ``bugs``.

    ``every``: all rules, also those that do not take part. ``idle``: gets the functions that rules for compiled code
    would have looked at, and did not, for nothing compiles them.
    """
    quiet = suppressions(text)
    names = {rule.code: rule.name for rule in rules}
    asked_of: set[tuple[Ignore, str]] = set()

    def silenced(code: str, statement: ast.stmt) -> bool:
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        chosen = _chosen(code, path, facts.syntax.scope_of(statement), settings)
        by = quiet.covering(code, names.get(code, code), first, last)
        asked_of.update((ignore, code) for ignore in by)
        return not chosen or bool(by) or settings.ignores_in(path, code, names.get(code, code))

    active = frozenset(code for code in names if code not in settings.distrusted)
    length = line_length(text, settings.line_length)
    facts = Facts(tree, path, project, settings, active, silenced, length, text)
    # What the user ignores still answers for its nodes: else they would come back under another rule.
    raw = text.encode("utf-8", "surrogatepass")
    answering = _triggered([*rules, *(r for r in every if settings.ignores(r.code, r.name))], raw)
    found: list[Found] = []
    asking = _triggered([rule for rule in rules if settings.extents or not rule.needs_extents], raw)
    for kind, asked in _listeners(asking, answering).items():
        for node in facts.syntax.by_type[kind]:
            told = _found_at(node, asked, facts, bugs, idle)
            found += [_placed(rule, finding, facts, quiet, path, settings) for rule, finding in told]
    found = _gaining(found, facts)
    if quiet.ignores and not bugs:
        found += _of_comments(quiet, every or rules, active, settings, found, asked_of, text)
    if seen := facts.inference.seen:
        alone = search(tree, text, path, rules, replace(settings, observed=UNSEEN), project, bugs, every)
        found = [*_with_measured(alone, found, seen)]
    return sorted((f for f in found if severity(f.reach.often) in settings.severities), key=_place)


def _found_at(
    node: ast.AST, asked: Sequence[_Asked], facts: Facts, bugs: list[Bug], idle: set[ast.AST] | None
) -> Iterator[tuple[Rule, Finding]]:
    """What rules find at one node."""
    compiled: bool | None = None
    for rule, only_compiled, others, check in asked:
        try:
            if only_compiled:
                if compiled is None:
                    compiled = facts.compiled(node)
                    if not compiled and idle is not None:
                        idle |= _idle(node, facts)
                if not compiled:
                    continue
            if others and any(handles(node, facts) for handles in others):
                continue
            findings = list(check(node, facts))
        except RecursionError:
            raise
        except Exception as e:
            bugs.append(Bug(rule.code, getattr(node, "lineno", 0), f"{type(e).__name__}: {e}"))
        else:
            if findings and not _taken_in(node, rule, facts):
                yield from ((rule, finding) for finding in findings)


def _place(f: Found) -> tuple[int, int, str]:
    node: Any = f.finding.node
    return (node.lineno, node.col_offset, f.rule.code)


def _with_measured(proven: list[Found], seen: list[Found], known: Mapping[Span, Observed]) -> Iterator[Found]:
    """What source alone tells, and beside it the fixes and findings that take the types that a run has seen.

    Where source tells of a fix for a statement, nothing else is made of that.
    """
    yield from (f for f in seen if f.rule in OF_COMMENTS)  # what only they silence is silenced
    proven, seen = ([f for f in some if f.rule not in OF_COMMENTS] for some in (proven, seen))
    fixed = {id(t) for f in proven if f.finding.fix for e in f.finding.fix.edits for t in targets_of(e)}
    more = {(f.rule.code, id(f.finding.node)): f for f in seen}
    for f in proven:
        now = more.pop((f.rule.code, id(f.finding.node)), None)
        if f.finding.fix is None and now is not None and now.finding.fix is not None and _is_apart(now, fixed):
            yield _measured(now, known)
        else:
            yield f
    yield from (_measured(now, known) for now in more.values() if _is_apart(now, fixed))


def _is_apart(f: Found, fixed: set[int]) -> bool:
    edits = f.finding.fix.edits if f.finding.fix else ()
    return not any(id(n) in fixed for e in edits for t in targets_of(e) for n in ast.walk(t))


def _measured(f: Found, known: Mapping[Span, Observed]) -> Found:
    """The finding with what it takes for granted: the types that were seen in its statement, or its head."""
    fix = f.finding.fix
    if fix is None:
        return replace(f, measured=True)
    names = [n for n in ast.walk(f.finding.node) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))]
    held = ((ast.unparse(n), known.get(span_of(n))) for n in names)
    types = {name: seen for name, seen in held if seen is not None and (seen.is_tensor or seen.kinds <= _NUMBERS)}
    told = ", ".join(
        f"`{name}` is {'' if seen.kinds == {'None'} else 'a '}{seen.told}"
        for name, seen in islice(sorted(types.items(), key=lambda pair: not pair[1].is_tensor), _MOST_TYPES)
    )
    parts = (f"as in the recorded calls, {told}" if told else "the types are those of the recorded calls",)
    assumption = "; ".join((*parts, f.finding.assumption) if f.finding.assumption else parts)
    alone = fix.applicability is Applicability.SAFE
    return replace(f, finding=replace(f.finding, fix=_unsafe(fix), assumption=assumption), measured=alone)


def _idle(node: ast.AST, facts: Facts) -> set[ast.AST]:
    """The function of ``node``, or the one that it is, where nothing compiles that."""
    function = node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else facts.syntax.function_of(node)
    return set() if function is None or facts.reached(function) else {function}


def _taken_in(node: ast.AST, rule: Rule, facts: Facts) -> bool:
    """Whether settings of PyTorch that are in force make up for what ``rule`` finds at ``node``.

    Not where its fix was chosen by name, as a search does that tries both.
    """
    if not rule.removed_by or not facts.ask(InForce).takes_in(rule.removed_by):
        return False
    only = facts.settings.only
    return only is None or Unit(rule.code, facts.path, facts.syntax.scope_of(node)) not in only


def _gaining(found: list[Found], facts: Facts) -> list[Found]:
    """``found``, without the fixes that gain nothing because another break of their function stays."""
    fixes = [(f, f.finding.fix) for f in found if f.finding.fix is not None]
    left_out = {id(f): _left_out(fix, facts) for f, fix in fixes if fix.only_break or fix.only_loop}
    stays: dict[int, str] = {}
    while True:  # what a fix leaves out of compiled code does not stay, as long as that fix is made
        gone = {n for f, nodes in left_out.items() if f not in stays for n in nodes}
        more = _staying(found, {f for f in left_out if f not in stays}, gone, facts)
        stays |= more
        if not more:
            break

    def kept(f: Found) -> Found:
        why = stays.get(id(f))
        return f if why is None else replace(f, finding=replace(f.finding, fix=None, strategy="", assumption=why))

    return [kept(f) for f in found]


def _staying(found: list[Found], asked: set[int], gone: set[ast.AST], facts: Facts) -> dict[int, str]:
    """By id, those of ``asked`` whose fix gains nothing, and why; ``gone``: what is left out of compiled code."""
    staying = [f for f in found if "graph break" in f.rule.costs and f.finding.applicability is not Applicability.SAFE]
    places = [(f, facts.syntax.statement_of(f.finding.node)) for f in staying if f.finding.node not in gone]
    why: dict[int, str] = {}
    for f in found:
        fix = f.finding.fix
        if id(f) not in asked or fix is None:
            continue
        statement = facts.syntax.statement_of(f.finding.node)
        function = facts.syntax.function_of(statement)
        around = [statement, *facts.syntax.ancestors(statement)]
        for other, place in places:  # one that runs whenever ``statement`` does
            if facts.syntax.function_of(place) is function and _counts(place, around, fix, facts):
                why[id(f)] = f"{other.rule.code} in line {line_of(other.finding)} breaks the graph as well, and stays"
                break
    return why


def _left_out(fix: Fix, facts: Facts) -> set[ast.AST]:
    """What ``fix`` leaves out of compiled code: what it changes, and all of an ``if`` whose test that is."""
    targets = [t for edit in fix.edits if not isinstance(edit, Insert) for t in targets_of(edit)]
    tests = [p for t in targets if isinstance(p := facts.syntax.parents.get(t), ast.If) and p.test is t]
    return {n for t in (*targets, *tests) for n in ast.walk(t)}


def _counts(place: ast.stmt, around: list[ast.AST], fix: Fix, facts: Facts) -> bool:
    """Whether a break at ``place``, which stays, always comes with what ``fix`` takes away, and leaves it no gain."""
    if not fix.only_break and not any(isinstance(a, (ast.For, ast.While)) for a in _within(place, facts)):
        return False
    return any(s in around for s in _beside(place, facts))


def _within(statement: ast.stmt, facts: Facts) -> Iterator[ast.AST]:
    """What of the function of ``statement`` is around it."""
    function = facts.syntax.function_of(statement)
    return takewhile(lambda a: a is not function, facts.syntax.ancestors(statement))


def _beside(statement: ast.stmt, facts: Facts) -> list[ast.stmt]:
    """The block that ``statement`` stands in, or that of the loops and ``with`` around it: what runs with it."""
    while isinstance(parent := facts.syntax.parents[statement], (ast.For, ast.With)):
        statement = parent
    return facts.syntax.block_of(statement)


def _of_comments(
    quiet: Suppressions,
    every: Sequence[Rule],
    active: frozenset[str],
    settings: Settings,
    found: list[Found],
    asked_of: set[tuple[Ignore, str]],
    text: str,
) -> list[Found]:
    """What there is to say of the ignore comments, now that all else is found."""
    names = {rule.code: rule.name for rule in every}
    work = {*asked_of, *((ignore, f.rule.code) for f in found for ignore in f.by)}

    def used(ignore: Ignore, item: str | None) -> bool:
        return any(other == ignore and (item is None or means(item, code, names[code])) for other, code in work)

    told = []
    complete = all(rule.code in active or rule.switch or _settled(rule, settings) for rule in every)
    for rule, finding in of_comments(quiet, every, active, complete, used, text):
        line = line_of(finding)
        by = frozenset(i for i in quiet.covering(rule.code, rule.name, line, line) if i.names is not None)
        told.append(Found(rule, finding, bool(by), "", Reach(Often.UNKNOWN), by=by))
    return told


def _triggered(rules: Sequence[Rule], raw: bytes) -> list[Rule]:
    """Those with a trigger in the file: the others have nothing to say of it."""
    return [rule for rule in rules if any(t in raw for t in rule.triggers)]


def _listeners(rules: Sequence[Rule], answering: Sequence[Rule]) -> dict[type[ast.AST], list[_Asked]]:
    """Which rules want to see nodes of a type."""
    listeners: defaultdict[type[ast.AST], list[_Asked]] = defaultdict(list)
    for rule in rules:
        others = tuple(other.handles for other in answering if other.code in rule.yields_to)
        for kind in rule.listens_to:
            listeners[kind].append((rule, rule.where is Where.COMPILED, others, rule.check))
    return listeners


def _placed(rule: Rule, finding: Finding, facts: Facts, quiet: Suppressions, path: str, settings: Settings) -> Found:
    """The finding with what is known of its place; without its fix where torch cannot be imported for it."""
    if finding.fix is not None:
        reason = settings.distrusted.get(rule.code, "") or _why_not_made(finding.fix, facts)
        if reason:
            finding = replace(finding, fix=None, strategy="", assumption=reason)
    safe = finding.fix if finding.applicability is Applicability.SAFE else None
    if safe is not None and (why := _why_assumed(rule, finding.node, safe, facts)):
        finding = replace(finding, fix=_unsafe(safe), assumption=why)
    finding = _told_of_devices(finding, facts, settings)
    at = finding.node
    line, end = at.lineno, _head_end(at)  # type: ignore[attr-defined]
    statement = facts.syntax.statement_of(at)
    by = quiet.covering(rule.code, rule.name, line, end)
    by |= quiet.covering(rule.code, rule.name, statement.lineno, statement.lineno)
    scope = facts.syntax.scope_of(at)
    covered = bool(by) or not _chosen(rule.code, path, scope, settings)
    covered |= settings.ignores_in(path, rule.code, rule.name)
    imports = _imports(finding, facts)
    if isinstance(imports, str):
        why = f"`{imports}` is not imported here, or is another name"
        finding, imports = Finding(at, finding.message, assumption=why), frozenset()
    return Found(rule, finding, covered, scope, facts.ask(Frequency).of(at), imports, by)


def _told_of_devices(finding: Finding, facts: Facts, settings: Settings) -> Finding:
    """A finding whose fix asserts on the device says what that costs; unsafe where the user wants no such fixes."""
    fix = finding.fix
    if fix is None:
        return finding
    if not (fix.asserts or any(says(edit, word) for edit in fix.edits for word in ("._assert_async", "assert"))):
        return finding
    finding = replace(finding, message=finding.message + _ON_THE_DEVICE)
    statement, safe = facts.syntax.statement_of(finding.node), fix.applicability is Applicability.SAFE
    if safe and (caught := facts.ask(Caught).why(statement, ("RuntimeError",), here=True)) is not None:
        return replace(finding, fix=_unsafe(fix), assumption=f"{caught}, but not what the device asserts")
    if settings.device_asserts:
        return finding
    assumption = "; ".join(part for part in (finding.assumption, _NO_FAILURE) if part)
    return replace(finding, fix=_unsafe(fix), assumption=assumption)


def _unsafe(fix: Fix) -> Fix:
    return replace(fix, applicability=Applicability.UNSAFE)


def _why_assumed(rule: Rule, node: ast.AST, fix: Fix, facts: Facts) -> str:
    """What ``fix``, which is safe by itself, assumes of the code around it; "" for nothing."""
    targets = [t for edit in fix.edits for t in targets_of(edit)]
    functions = {facts.syntax.function_of(t) for t in targets}
    asked = (facts.ask(Scripting).why(f) for f in functions if f is not None and f.name != "__init__")
    if scripted := next(filter(None, asked), ""):
        return f"`torch.jit.script` does not compile it: {scripted}"
    # errors that are caught only as long as the graph breaks there
    if rule.where is Where.COMPILED and "graph break" in rule.costs:
        traced = (facts.ask(Caught).why_traced(t) for t in targets if facts.compiled(t))
        if passing := next(filter(None, traced), ""):
            return passing
    return _ONLY_SHOWN if facts.only_shown(node) else ""


def _imports(finding: Finding, facts: Facts) -> frozenset[str] | str:
    """What the module has to import for the new code of ``finding``; the one that it cannot, as a text."""
    needed: set[str] = set()
    for edit in finding.fix.edits if finding.fix is not None else ():
        at = targets_of(edit)[0]
        for name in _IMPORTED:
            if says(edit, name) and facts.writing.spelled(name, at) != name:
                if not facts.writing.importable(name, at):
                    return name
                needed.add(name)
    return frozenset(needed)


def _why_not_made(fix: Fix, facts: Facts) -> str:
    """Why no fix is made there, whatever it does; "" when nothing is in its way."""
    taken = facts.syntax.rebound_builtins
    for edit in fix.edits:
        targets = targets_of(edit)
        function = facts.syntax.function_of(targets[0])
        if function is not None and (reason := facts.syntax.why_names_show(function)):
            return reason
        if name := next((name for name in sorted(taken) if says(edit, name)), ""):
            return f"`{name}` is another name here"
        if any(map(facts.is_dead, targets)):
            return _NEVER_RUN
        if any(map(facts.is_scripted, targets)):
            return _SCRIPTED
        sized = function is not None and any(says(edit, name) for name in _SIZES)
        if sized and function is not None and facts.inference.reshapes(function):
            return _OLD_SIZES
    return ""


def line_of(finding: Finding) -> int:
    """Where the finding starts."""
    return int(getattr(finding.node, "lineno", 0))


def reported(found: Sequence[Found], text: str) -> tuple[Reported, ...]:
    """The findings with their places in ``text``."""
    lines = split_lines(text) if found else []
    return tuple(_report(f, lines) for f in found)


def _report(f: Found, lines: list[str]) -> Reported:
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
        measured=f.measured,
        scope=f.scope,
        reached=str(f.reach),
        rarity=f.reach.often,
        rewritten=tuple(filter(None, map(rewritten, f.finding.fix.edits if f.finding.fix else ()))),
        about=_head(node),
        head_end=_head_end(node),
    )


def _head_end(node: ast.AST) -> int:
    """The last line of ``node``; of a statement with others in it, the last one above them."""
    if isinstance(node, ast.stmt) and hasattr(node, "body"):
        return max(node.lineno, int(node.body[0].lineno) - 1)
    return int(node.end_lineno or node.lineno)  # type: ignore[attr-defined]


_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases", "decorator_list")


def _head(node: ast.AST) -> str:
    """The code of ``node``; of a statement with others in it, what stands before them."""
    if isinstance(node, ast.stmt) and hasattr(node, "body"):
        parts = {name: value for name, value in ast.iter_fields(node) if name not in _BLOCKS}
        parts |= {name: [] for name in _BLOCKS if name in node._fields}
        node = ast.copy_location(type(node)(**parts), node)
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return type(node).__name__


def _characters(lines: list[str], line: int, column: int) -> int:
    if line > len(lines):
        return column
    return len(lines[line - 1].encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))
