"""What looks like a cause of graph breaks and is none: where no compiled code runs, or what Dynamo traces anyway."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from patcher.diagnose.diagnosis import Remark
from patcher.diagnose.sites import tree_in
from patcher.facts import Facts
from patcher.facts.checks.suspects import Suspect, suspects
from patcher.facts.project.index import Project, summarise
from patcher.facts.syntax.classes import INITIALISERS
from patcher.facts.syntax.tree import FunctionNode
from patcher.settings import Settings

Reason = Literal["constructor", "elsewhere", "left out", "traced", "assertion"]

_WHY: dict[Reason, str] = {
    "constructor": "in `__init__`, not in `forward`",
    "elsewhere": "not reached from any `forward` of these files",
    "left out": "compiled code leaves it out: the test around it asks whether code is being compiled",
    "traced": "Dynamo decides them while it traces (another answer is compiled apart): no graph break",
    "assertion": "Dynamo traces it as an assertion inside of the graph: no graph break",
}
_SHOWN_LINES = 6
_SHOWN_FUNCTIONS = 4


@dataclass(frozen=True)
class _Fine:
    line: int
    text: str
    scope: str
    reason: Reason
    lines: range


def fine(
    files: Sequence[tuple[str, str]],
    ran: Mapping[str, frozenset[int]] | None,
    broke: frozenset[str],
    shown: Callable[[str], str] = str,
    project: Project | None = None,
) -> tuple[Remark, ...]:
    """One remark for each function and reason, for files with modules or with code that ``forward`` reaches.

    ``files``: path and text. ``shown``: a path as reports show it; it is what ``ran`` and ``broke`` go by. ``ran``: the
    files that were loaded, with the lines that were executed, if known; None: nothing is known. ``broke``:
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
        lines = ran[name] or None if ran is not None else None
        told = [f for s in suspects(facts.syntax) if (f := _fine(s, facts, names, lines)) is not None]
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


def _fine(s: Suspect, facts: Facts, names: frozenset[str], ran: frozenset[int] | None) -> _Fine | None:
    scope, lines = facts.syntax.scope_of(s.function), _lines_of(facts.syntax.statement_of(s.node))
    if facts.reached(s.function):
        reason = _harmless(s, facts)
        if reason is None or (ran is not None and s.node.lineno not in ran):
            return None
        return _Fine(s.node.lineno, s.text, scope, reason, lines)
    method = facts.syntax.method_of(s.node)
    cls = facts.syntax.class_of(method) if method is not None else None
    if s.kind not in ("output", "read") or method is None or cls is None or not facts.is_module_class(cls):
        return None
    if method.name in INITIALISERS:
        return None if cls.name in names else _Fine(s.node.lineno, s.text, scope, "constructor", lines)
    if method.name in names or (ran is not None and s.node.lineno in ran):
        return None  # it may run inside of a graph, or beside one
    return _Fine(s.node.lineno, s.text, scope, "elsewhere", lines)


def _lines_of(statement: ast.stmt) -> range:
    """The lines of a statement, without those of its body: what happens on one of them may be told for another."""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return range(statement.lineno, max(last, statement.lineno) + 1)


def _harmless(s: Suspect, facts: Facts) -> Reason | None:
    """Why something that compiled code reaches is no cause; None where that is not sure."""
    if s.kind in ("output", "read"):
        return "left out" if facts.eager_only(s.node) and not _is_disabled(s.function, facts) else None
    if facts.eager_only(s.node):
        return None
    if s.kind == "assertion":
        assert isinstance(s.node, ast.Assert)
        return "assertion" if facts.value(s.node.test).is_tensor else None
    return "traced"


def _is_disabled(function: FunctionNode, facts: Facts) -> bool:
    """Whether it is a decorator, and no test, that keeps ``function`` out of graphs: calling it is a break."""
    return bool(function.decorator_list) or facts.syntax.function_of(function) is not None


def _remarks(told: Sequence[_Fine], path: str, lines: Sequence[str]) -> Iterator[Remark]:
    """What is traced together for the whole file, as there is much of it; all else by function and reason."""
    groups: defaultdict[tuple[str, Reason], list[_Fine]] = defaultdict(list)
    for f in sorted(told, key=lambda f: f.line):
        groups["" if f.reason == "traced" else f.scope, f.reason].append(f)
    for (_, reason), group in sorted(groups.items(), key=lambda item: item[1][0].line):
        first = group[0].line
        code = lines[first - 1].strip() if first <= len(lines) else ""
        yield Remark(f"{path}:{first}", f"{_listed(group)} in {_functions(group)}", _WHY[reason], code)


def _listed(group: Sequence[_Fine]) -> str:
    by_text: defaultdict[str, list[int]] = defaultdict(list)
    for f in group:
        by_text[f.text].append(f.line)
    return ", ".join(f"{text} ({_lines(found)})" for text, found in by_text.items())


def _lines(found: Sequence[int]) -> str:
    several = sorted(set(found))
    more = f" and {len(several) - _SHOWN_LINES} more" if len(several) > _SHOWN_LINES else ""
    return f"line{'s' if len(several) > 1 else ''} {', '.join(map(str, several[:_SHOWN_LINES]))}{more}"


def _functions(group: Sequence[_Fine]) -> str:
    functions = list(dict.fromkeys(f.scope for f in group))
    more = f" and {len(functions) - _SHOWN_FUNCTIONS} more" if len(functions) > _SHOWN_FUNCTIONS else ""
    return ", ".join(f"`{name}`" for name in functions[:_SHOWN_FUNCTIONS]) + more
