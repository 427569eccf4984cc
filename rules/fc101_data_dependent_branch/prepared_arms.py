"""The arms of a branch that make something ready, and then keep a tensor: in a buffer, an attribute or a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.written import is_none
from rules.fc101_data_dependent_branch.branches import Branches

_MOVING = frozenset("to cuda cpu".split())


@dataclass(frozen=True)
class Kept:
    """``statement`` keeps the tensor ``value`` in ``place``; ``form`` is the statement without that tensor."""

    statement: ast.Assign | ast.Expr
    value: ast.expr
    place: str
    form: str


@dataclass(frozen=True)
class PreparedArm:
    """``prepared``: what an arm makes ready, each by its text. ``kept``: what it keeps of that."""

    prepared: dict[str, ast.stmt]
    kept: tuple[Kept, ...]


class PreparedArms(Analysis):
    """Looks into the arms of an ``if``."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.branches = facts.ask(Branches)

    def of(self, body: list[ast.stmt]) -> PreparedArm | None:
        """What ``body`` makes ready and keeps; None when it does anything else."""
        prepared, kept = {}, []
        for s in body:
            if isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)):
                continue
            if self._is_ready(s, body):
                prepared[ast.unparse(s)] = s
            elif (found := self._kept(s)) is not None:
                kept.append(found)
            else:
                return None
        return PreparedArm(prepared, tuple(kept))

    def _kept(self, s: ast.stmt) -> Kept | None:
        match s:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                return Kept(s, value, target.id, target.id)
            case ast.Assign(targets=[ast.Attribute(value=ast.Name()) as target], value=value):
                return Kept(s, value, ast.unparse(target), ast.unparse(target))
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=module), attr="register_buffer"),
                    args=[ast.Constant(value=str(name)), value, *others],
                    keywords=keywords,
                )
            ):
                settings = [ast.unparse(e) for e in (*others, *keywords)]
                if all(isinstance(e, ast.Constant) for e in (*others, *(k.value for k in keywords))):
                    return Kept(s, value, f"{module}.{name}", f"{module}.register_buffer({name!r}, {settings})")
        return None

    def _is_ready(self, s: ast.stmt, body: list[ast.stmt]) -> bool:
        """Whether ``s`` names something for this arm, moves a tensor that is kept, or makes one that is missing."""
        match s:
            case ast.Assign(targets=[ast.Name() as target]):
                return self.branches.stays(target, body)
            case ast.Assign(
                targets=[ast.Attribute() as target],
                value=ast.Call(func=ast.Attribute(value=moved, attr=how), args=args, keywords=[]),
            ) if how in _MOVING and len(args) < 2:
                held = [self.inference.of(a) for a in args]
                return ast.unparse(moved) == ast.unparse(target) and not any(
                    v.is_tensor or v.python == "dtype" for v in held
                )
            case ast.If(test=test, body=made, orelse=[]):
                place = _missing(test)
                return place is not None and all(self._makes(m, place, body) for m in made)
        return False

    def _makes(self, s: ast.stmt, place: str, body: list[ast.stmt]) -> bool:
        """Whether ``s`` assigns ``place``, and nothing else that lasts."""
        if not isinstance(s, ast.Assign) or len(s.targets) > 1:
            return False
        targets = s.targets[0].elts if isinstance(s.targets[0], ast.Tuple) else s.targets
        return all(self._goes(t, body) if isinstance(t, ast.Name) else ast.unparse(t) == place for t in targets)

    def _goes(self, name: ast.Name, body: list[ast.stmt]) -> bool:
        """Whether nothing reads ``name``, or this arm alone."""
        return self.readers(name) == [] or self.branches.stays(name, body)


def made(s: ast.stmt) -> str | None:
    """What ``s`` makes where it is missing."""
    return _missing(s.test) if isinstance(s, ast.If) else None


def values(s: ast.stmt) -> Iterator[ast.expr]:
    """What a statement that makes something ready assigns."""
    for n in ast.walk(s):
        if isinstance(n, ast.Assign):
            yield n.value


def written(s: ast.stmt) -> set[str]:
    """The names and attributes that ``s`` assigns, what is thrown away aside."""
    stored = (n for n in ast.walk(s) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store))
    return {ast.unparse(n) for n in stored} - {"_"}


def read(node: ast.AST) -> set[str]:
    """The names and attributes that ``node`` reads, those that it asks for by name among them."""
    found = {
        ast.unparse(n)
        for n in ast.walk(node)
        if isinstance(n, (ast.Name, ast.Attribute)) and not isinstance(n.ctx, ast.Store)
    }
    asked = [n.test for n in ast.walk(node) if isinstance(n, ast.If)]
    return found | {place for test in asked if (place := _missing(test)) is not None}


def _missing(test: ast.expr) -> str | None:
    """The attribute that ``test`` finds missing."""
    match test:
        case ast.UnaryOp(
            op=ast.Not(),
            operand=ast.Call(
                func=ast.Name(id="hasattr"),
                args=[ast.Name(id=module), ast.Constant(value=str(name))],
                keywords=[],
            ),
        ):
            return f"{module}.{name}"
        case ast.Compare(
            left=ast.Call(
                func=ast.Name(id="getattr"),
                args=[ast.Name(id=module), ast.Constant(value=str(name)), default],
                keywords=[],
            ),
            ops=[ast.Is()],
            comparators=[none],
        ) if is_none(default) and is_none(none):
            return f"{module}.{name}"
        case ast.Compare(left=ast.Attribute(value=ast.Name(id=module), attr=name), ops=[ast.Is()], comparators=[none]):
            return f"{module}.{name}" if is_none(none) else None
    return None
