"""Where a module is wrapped for several devices: DDP, FSDP, Accelerate, Fabric, also by a function of the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from patcher.facts.syntax.tree import Syntax, dotted
from patcher.facts.values.module_values import Bindings, imported, parameter

WrapperKind = Literal["DDP", "FSDP", "Accelerate", "Fabric", "other"]

_BY_NAME: dict[str, WrapperKind] = {
    "DistributedDataParallel": "DDP",
    "FullyShardedDataParallel": "FSDP",
    "fully_shard": "FSDP",
    "DataParallel": "other",
}
_BY_OBJECT: dict[str, tuple[frozenset[str], WrapperKind]] = {
    "Accelerator": (frozenset({"prepare", "prepare_model"}), "Accelerate"),
    "Fabric": (frozenset({"setup", "setup_module"}), "Fabric"),
}


@dataclass(frozen=True, eq=False)
class Wrapping:
    """One such call. ``given`` and ``results``: what goes in and what holds the outcome, as text of names."""

    call: ast.Call
    kind: WrapperKind
    name: str
    scope: ast.AST
    given: frozenset[str]
    results: frozenset[str]

    def keeps(self, name: str) -> bool:
        """Whether ``name`` is given to it, and stands for the outcome, where that has a name."""
        return name in self.given and (name in self.results or not self.results)


def wrappings(syntax: Syntax, bindings: Bindings) -> tuple[Wrapping, ...]:
    """All of them in one module, in the order of the source."""
    found = list(_direct(syntax, bindings))
    makers = {f.name: w for w in found if (f := syntax.function_of(w.call)) is not None and _returns(f, w)}
    for call in syntax.by_type[ast.Call]:
        if isinstance(call.func, ast.Name) and (inner := makers.get(call.func.id)) is not None:
            found.append(_wrapping(call, inner.kind, inner.name, syntax, bindings))
    return tuple(sorted(found, key=lambda w: w.call.lineno))


def _direct(syntax: Syntax, bindings: Bindings) -> Iterator[Wrapping]:
    for call in syntax.by_type[ast.Call]:
        what = imported(syntax, call.func)
        last = what.rpartition(".")[2] if what is not None and what.startswith("torch.") else ""
        if last in _BY_NAME:
            yield _wrapping(call, _BY_NAME[last], last, syntax, bindings)
        elif what is None and isinstance(call.func, ast.Attribute):
            for cls, (methods, kind) in _BY_OBJECT.items():
                if call.func.attr in methods and _is_a(call.func.value, cls, syntax, bindings):
                    yield _wrapping(call, kind, ast.unparse(call.func), syntax, bindings)


def _is_a(e: ast.expr, cls: str, syntax: Syntax, bindings: Bindings) -> bool:
    """Whether ``e`` is made by calling ``cls``, annotated with it, or named for it where the library is imported."""
    text = dotted(e)
    if text is None:
        return False
    if any(isinstance(v, ast.Call) and (dotted(v.func) or "").rpartition(".")[2] == cls for v in bindings.values(e)):
        return True
    given = parameter(syntax.function_of(e), text)
    if given is not None and given.annotation is not None and cls in ast.unparse(given.annotation):
        return True
    libraries = {"Accelerator": {"accelerate"}, "Fabric": {"lightning", "lightning_fabric"}}[cls]
    packages = {what.partition(".")[0] for _, what, _ in syntax.all_imports}
    return text.rpartition(".")[2] == cls.lower() and bool(packages & libraries)


def _wrapping(call: ast.Call, kind: WrapperKind, name: str, syntax: Syntax, bindings: Bindings) -> Wrapping:
    given = [dotted(a) for a in (*call.args, *(k.value for k in call.keywords if k.arg in ("module", "model")))]
    held: list[str | None] = []
    parent = syntax.parents.get(call)
    if isinstance(parent, ast.Assign):
        for target in parent.targets:
            elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            held += [dotted(e) for e in elements]
    elif name == "fully_shard":  # in place
        held = given[:1]
    return Wrapping(call, kind, name, bindings.scope(call), _known(given), _known(held))


def _known(texts: list[str | None]) -> frozenset[str]:
    return frozenset(t for t in texts if t)


def _returns(function: ast.FunctionDef | ast.AsyncFunctionDef, w: Wrapping) -> bool:
    """Whether ``function`` gives back its parameter, wrapped."""
    own = {a.arg for a in (*function.args.posonlyargs, *function.args.args)}
    ends = [n for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]
    return bool(own & w.given) and any(n.value is w.call or dotted(n.value) in w.results for n in ends if n.value)
