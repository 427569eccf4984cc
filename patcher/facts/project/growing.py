"""What a function does with a past that it is given: does it get longer, and where does the new part start?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patcher.facts.syntax.tree import FunctionNode, Syntax, last_name
from patcher.facts.syntax.written import all_parameters, integer
from patcher.facts.tables.wording import words

#: Words in names of what is handed from call to call, and words by which it is something else.
_NAMES = frozenset("kv kvs pkv cache caches cached mems past pasts previous prev history present presents".split())
_OTHER = frozenset(
    "use length len position positions pos mask tokens seen index idx size offset start ids n num".split()
)
_JOINS = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})
#: What an earlier run has made of a join: a function of the project, which is given the two and the dimension.
JOINED = "_join_kept"


def is_kept(name: str) -> bool:
    """Whether a cache is called so."""
    found = frozenset(words(name))
    return bool(found & _NAMES) and not found & _OTHER


def joined(call: ast.Call, syntax: Syntax) -> tuple[ast.expr, ast.expr, int] | None:
    """The two tensors that ``call`` joins, and the dimension, where all three are written out."""
    if syntax.qualified(call.func) not in _JOINS or not call.args:
        return None
    named = next((k.value for k in call.keywords if k.arg in ("dim", "axis")), None)
    dim = integer(call.args[1] if len(call.args) > 1 else named)
    given = call.args[0]
    if dim is None or not isinstance(given, ast.Tuple | ast.List) or len(given.elts) != 2:
        return None
    return given.elts[0], given.elts[1], dim


def grown_dims(function: FunctionNode, calls: Iterable[ast.Call], syntax: Syntax) -> frozenset[int]:
    """The dimensions along which ``function`` joins to parts of its parameters, by one of ``calls``."""
    found = set()
    for call in calls:
        if last_name(call.func) == JOINED and len(call.args) == 3:
            dim = integer(call.args[2])
            found.update([] if dim is None else [dim])
        elif (parts := joined(call, syntax)) is not None and is_given(parts[0], function):
            found.add(parts[2])
    return frozenset(found)


def is_given(e: ast.expr, function: FunctionNode) -> bool:
    """Whether ``e`` comes out of a parameter of ``function`` that is called as a cache is, maybe through one name."""
    kept = {p.arg for p in all_parameters(function.args) if is_kept(p.arg)}
    return bool(kept) and any(_names(part) & kept for part in (e, *sources(e, function)))


def sources(e: ast.expr, function: FunctionNode) -> Iterator[ast.expr]:
    """What ``e``, a name, is assigned or taken out of in ``function``."""
    if isinstance(e, ast.Name):
        for n in ast.walk(function):
            targets = n.targets if isinstance(n, ast.Assign) else [n.target] if isinstance(n, ast.For) else []
            if any(isinstance(t, ast.Name) and t.id == e.id for target in targets for t in ast.walk(target)):
                yield n.value if isinstance(n, ast.Assign) else n.iter  # type: ignore[attr-defined]


def starts(function: FunctionNode, syntax: Syntax) -> Iterator[tuple[str, ast.Call]]:
    """Each ``torch.arange(p, p + t)`` of a parameter ``p`` that is read nowhere else: a tensor would do for ``p``."""
    parameters = {p.arg for p in all_parameters(function.args)}
    for call in syntax.own(function, ast.Call):
        match call:
            case ast.Call(
                func=func, args=[ast.Name(id=start), ast.BinOp(left=ast.Name(id=again), op=ast.Add(), right=size)]
            ) if syntax.qualified(func) == "torch.arange" and start == again and start in parameters - _names(size):
                reads = [n for s in function.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == start]
                if len(reads) == 2:
                    yield start, call


def offset_parameters(function: FunctionNode, syntax: Syntax) -> frozenset[str]:
    """The parameters that only say where something starts."""
    return frozenset(name for name, _ in starts(function, syntax))


def _names(e: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(e) if isinstance(n, ast.Name)}
