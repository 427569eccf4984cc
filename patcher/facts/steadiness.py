"""Whether an attribute that ``__init__`` assigns is assigned once, on every path, and its object never changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts.classes import ClassFacts, Store
from patcher.facts.project import Project
from patcher.facts.syntax import FunctionNode, Syntax, dotted

#: Their presence in a class means that attributes come and go in ways that are not followed here.
_UNCANNY = frozenset(
    "__dict__ __setattr__ __delattr__ __getattribute__ __getattr__ __setstate__ __getstate__ __reduce__ __reduce_ex__ "
    "__deepcopy__ __copy__ __new__ __slots__ vars".split()
)
_REGISTRATIONS = ("register_buffer", "register_parameter", "add_module", "register_module")


def why_not_steady(
    facts: ClassFacts, cls_name: str, init: FunctionNode, store: Store, syntax: Syntax, project: Project
) -> Iterator[str]:
    """Everything that speaks against it; nothing when nothing does."""
    yield from _again(facts, store)
    yield from _elsewhere(store.name, cls_name, facts.node.name, project)
    if syntax.names_in(facts.node) & _UNCANNY:
        yield "the class has its own ways with attributes"
    if any(may_be(pattern, store.name) for pattern in dynamic_names(facts.node)):
        yield "attributes are assigned by names that are not known"
    yield from _detours(facts, init, store.statement)


def _again(facts: ClassFacts, store: Store) -> Iterator[str]:
    name = store.name
    written = [n for n in ast.walk(facts.node) if isinstance(n, ast.Attribute) and n.attr == name]
    written = [n for n in written if not isinstance(n.ctx, ast.Load)]
    others = [s for s in facts.stores[name] if s is not store and (s.how != "declared" or s.value is not None)]
    if len(written) != 1 or others or name in facts.methods:
        yield f"`self.{name}` is assigned more than once"


def _elsewhere(name: str, cls_name: str, short: str, project: Project) -> Iterator[str]:
    """Other classes with the same instances, and code outside."""
    if name in project.foreign_stores:
        yield f"`.{name}` is assigned from outside"
    below = {child for child, _ in project.subclasses(cls_name)}
    for c in sorted(project.family(cls_name)[0]):
        summary = project.known_class(c)
        assert summary is not None
        last = c.rpartition(".")[2]
        if summary.methods & _UNCANNY:
            yield f"`{last}` has its own ways with attributes"
        if c == cls_name:
            continue
        if name in summary.stores | summary.init_stores | summary.methods:
            yield f"`{last}` assigns `self.{name}` as well"
        if f"{c}.{name}" in project.changed:
            yield f"`{last}` changes it"
        start = project.function(f"{c}.__init__")
        if c in below and start is not None and ".__init__" not in start.mentions:
            yield f"`{last}.__init__` does not call that of `{short}`"
    if name in project.changed:
        yield f"something is changed on `.{name}`"


def _detours(facts: ClassFacts, init: FunctionNode, statement: ast.stmt) -> Iterator[str]:
    """The assignment is a line of its own after ``super().__init__()``, with no way around it."""
    at = init.body.index(statement)
    before, after = init.body[:at], init.body[at + 1 :]
    if not any(_starts(s, facts) for s in before):
        yield "it is assigned before `super().__init__()`"
    if any(isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)) for s in before for n in ast.walk(s)):
        yield "`__init__` may return before it is assigned"
    lines = {init.lineno, *(s.end_lineno for s in before), *(s.lineno for s in after)}
    if lines & {statement.lineno, statement.end_lineno}:
        yield "its assignment shares a line with another statement"


def _starts(s: ast.stmt, facts: ClassFacts) -> bool:
    """Whether ``s`` is ``super().__init__(...)`` or the like."""
    match s:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr="__init__"))):
            if isinstance(base, ast.Call):
                return dotted(base.func) == "super" and (not base.args or dotted(base.args[0]) == facts.node.name)
            return dotted(base) in {dotted(b) for b in facts.node.bases}
    return False


Pattern = tuple[str, str]


def dynamic_names(cls: ast.ClassDef) -> Iterator[Pattern]:
    """Names that ``setattr``, ``register_buffer`` and the like compute, each by its known start and end."""
    for n in ast.walk(cls):
        if not isinstance(n, ast.Call):
            continue
        name = dotted(n.func) or ""
        keys = n.args[1:2]
        if name.rpartition(".")[2] in _REGISTRATIONS:
            keys = [*n.args[:1], *(k.value for k in n.keywords if k.arg == "name")]
        elif name not in ("setattr", "delattr"):
            continue
        match keys:
            case [ast.Constant(value=str())]:
                continue
            case [ast.JoinedStr(values=[first, *_] as parts)]:
                yield _text(first), _text(parts[-1])
            case _:
                yield "", ""


def _text(part: ast.expr) -> str:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""


def may_be(pattern: Pattern, name: str) -> bool:
    """Whether a name of that pattern may be ``name``."""
    return name.startswith(pattern[0]) and name.endswith(pattern[1])
