"""What looks like a cause of graph breaks and is none: output, and reads of tensors, where no compiled code runs."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from patcher.diagnose.diagnosis import Remark
from patcher.diagnose.sites import tree_in
from patcher.facts import Facts
from patcher.facts.checks.log_calls import log_call
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.facts.syntax.classes import INITIALISERS
from patcher.facts.syntax.tree import Syntax
from patcher.facts.values.module_values import Bindings
from patcher.settings import Settings

_CONSTRUCTOR = "in `__init__`, not in `forward`"
_ELSEWHERE = "not reached from any `forward` of these files"
_READS = frozenset({"item", "tolist"})
_SHOWN_LINES = 6


@dataclass(frozen=True)
class _Fine:
    line: int
    text: str
    scope: str
    reason: str
    lines: range


def fine(
    files: Sequence[tuple[str, str]],
    ran: Collection[str] | None,
    broke: frozenset[str],
    shown: Callable[[str], str] = str,
    project: Project | None = None,
) -> tuple[Remark, ...]:
    """One remark for each function and reason, for files with modules or with code that ``forward`` reaches.

    ``files``: path and text. ``shown``: a path as reports show it; it is what ``ran`` and ``broke`` go by. ``ran``: the
    files that were loaded; None: nothing is known. ``broke``:
    ``file:line`` of all that was a cause. ``project``: the index of these files, when there is one.
    """
    trees = {}
    for path, text in files:
        asked = ran is None or shown(path) in ran
        if (asked or project is None) and (tree := tree_in(text)) is not None:
            trees[path] = (tree, text)
    if project is None:
        project = Project([summarise(tree, path) for path, (tree, _) in trees.items()])
    names = _names_in_graphs(project)
    found: list[Remark] = []
    for path, (tree, text) in trees.items():
        name = shown(path)
        if ran is not None and name not in ran:
            continue
        facts = Facts(tree, path, project, Settings(), frozenset())
        told = [f for call, what in _calls(facts.syntax) if (f := _fine(call, what, facts, names)) is not None]
        told = [f for f in told if not any(f"{name}:{line}" in broke for line in f.lines)]
        found += _remarks(told, name, text.splitlines())
    return tuple(found)


def _names_in_graphs(project: Project) -> frozenset[str]:
    """The names of all that compiled code may run, whatever it is called on: more than it does run, never less."""
    mentions: defaultdict[str, set[str]] = defaultdict(set)
    known: set[str] = {"forward", "__call__"}
    for module in project.modules.values():
        known |= {what.rpartition(".")[2] for what in module.compiled}
        for f in module.functions:
            last = f.qualname.rpartition(".")[2]
            mentions[last] |= {m.rpartition(".")[2] for m in f.mentions}
            if f.compiled or project.reached(f"{module.module}.{f.qualname}"):
                known.add(last)
    stack = list(known)
    while stack:
        new = mentions.get(stack.pop(), set()) - known
        known |= new
        stack += new
    return frozenset(known)


def _calls(syntax: Syntax) -> Iterator[tuple[ast.Call, str]]:
    """The calls that break a graph where they are traced, and what they are called, as Markdown."""
    bindings = Bindings(syntax)
    for call in syntax.by_type[ast.Call]:
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in _READS and not call.args and not call.keywords:
            yield call, f"`.{func.attr}()`"
        elif (written := log_call(call, syntax, bindings)) is not None:
            yield call, f"`{written}`"


def _fine(call: ast.Call, what: str, facts: Facts, names: frozenset[str]) -> _Fine | None:
    method = facts.syntax.method_of(call)
    cls = facts.syntax.class_of(method) if method is not None else None
    if facts.reached(call) or method is None or cls is None or not facts.is_module_class(cls):
        return None
    eager = cls.name not in names if method.name in INITIALISERS else method.name not in names
    if not eager:
        return None  # it may run inside of a graph, or beside one
    reason = _CONSTRUCTOR if method.name in INITIALISERS else _ELSEWHERE
    function = facts.syntax.function_of(call) or method
    lines = _lines_of(facts.syntax.statement_of(call))
    return _Fine(call.lineno, what, facts.syntax.scope_of(function), reason, lines)


def _lines_of(statement: ast.stmt) -> range:
    """The lines of a statement, without those of its body: what happens on one of them may be told for another."""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return range(statement.lineno, max(last, statement.lineno) + 1)


def _remarks(told: Sequence[_Fine], path: str, lines: Sequence[str]) -> Iterator[Remark]:
    """One for each function and reason."""
    groups: defaultdict[tuple[str, str], list[_Fine]] = defaultdict(list)
    for f in sorted(told, key=lambda f: f.line):
        groups[f.scope, f.reason].append(f)
    for (scope, reason), group in sorted(groups.items(), key=lambda item: item[1][0].line):
        first = group[0].line
        code = lines[first - 1].strip() if first <= len(lines) else ""
        yield Remark(f"{path}:{first}", f"{_listed(group)} in `{scope}`", reason, code)


def _listed(group: Sequence[_Fine]) -> str:
    by_text: defaultdict[str, list[int]] = defaultdict(list)
    for f in group:
        by_text[f.text].append(f.line)
    return ", ".join(f"{text} ({_lines(found)})" for text, found in by_text.items())


def _lines(found: Sequence[int]) -> str:
    several = sorted(set(found))
    more = f" and {len(several) - _SHOWN_LINES} more" if len(several) > _SHOWN_LINES else ""
    return f"line{'s' if len(several) > 1 else ''} {', '.join(map(str, several[:_SHOWN_LINES]))}{more}"
