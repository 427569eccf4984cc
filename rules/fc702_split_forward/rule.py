"""FC702: a forward that is given a list, and prepares it before it computes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.running.eager_calls import EagerCalls
from patcher.facts.running.preparation import Preparation, Split
from patcher.facts.running.variations import Variations
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.syntax.written import all_parameters
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Edit,
    Example,
    Finding,
    Fix,
    MoveTail,
    NearMiss,
    Replace,
    ReplaceStatements,
    Rule,
    Where,
    filled,
)
from rules.fc702_split_forward.compiled_models import CompiledModel, CompiledModels
from rules.fc702_split_forward.examples import INVALID, VALID

_CORE = "_forward_core"
_WIDTH = 110


class SplitForward(Rule):
    """A forward that is given a list, and prepares it before it computes.

    What it does:
        Takes ``forward`` apart where it has read the list for the last time. The preparation stays; everything below
        moves, as it is, into a new method ``_forward_core`` that gets what it reads as arguments. In the same file
        ``model = torch.compile(model)`` becomes ``model._forward_core = torch.compile(model._forward_core)`` where
        the class of ``model`` is plain to see. It needs a run that has compiled ``forward`` again for another number
        of items, also when that is in a method that ``forward`` gives the list to: ``diagnose`` and ``prove`` make
        one, and without it the rule is silent. Once a class has such a method, calls in other files that compile the
        whole model are rewritten too; before that they are only reported.

    Why it breaks compilation:
        The number of items in a list is part of what compiled code holds true: each other number compiles all of
        ``forward`` again, up to the limit, after which it runs eagerly. Tests such as ``isinstance(images, list)`` and
        loops over the items have nothing to gain in a graph. Measured on torch 2.13 with lists of 1 to 5 items: four
        recompiles when the model is compiled, one when its core is, for the tensor that the list becomes has another
        size (FC503), and none where it has not.

    Fix safety:
        Unsafe. Eager results are the same: the same statements run in the same order, one call deeper. But the
        preparation is not compiled, with all layers that it runs, and whoever compiles the whole model elsewhere gains
        nothing: a case for the harness needs a ``compile`` of its own, that compiles ``_forward_core`` where there is
        one. Not fixed is a ``forward`` that reads the list up to its end, whose rest needs a name without a value on
        some path, that is decorated or a generator, or one in a class that has such a method already. Values that the
        rest is given stay alive until it returns.

    References:
        The training setup of the nanoVLM report; PyTorch, "Recompilation" (guards on containers).
    """

    code: ClassVar[str] = "FC702"
    name: ClassVar[str] = "split-forward"
    costs: ClassVar[tuple[Cost, ...]] = ("recompilation",)
    triggers: ClassVar[tuple[bytes, ...]] = (b"forward", b"torch.compile")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.FunctionDef, ast.Call)
    where: ClassVar[Where] = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report a ``forward`` that can be split, and calls in other files that compile the whole of one that was."""
        if not any(v.dim is None for v in facts.settings.evidence):
            return
        if isinstance(node, ast.FunctionDef):
            yield from _definition(node, facts)
        elif isinstance(node, ast.Call):
            yield from _call(node, facts)

    invalid: ClassVar[tuple[Example, ...]] = INVALID

    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _definition(forward: ast.FunctionDef, facts: Facts) -> Iterator[Finding]:
    cls = facts.syntax.parents.get(forward)
    me = self_name(forward)
    lists = _lists(forward, facts)
    if forward.name != "forward" or not isinstance(cls, ast.ClassDef) or me is None or not lists:
        return
    if not facts.is_module_class(cls):
        return
    split = facts.ask(Preparation).split(forward, lists)
    if split is None:
        return
    items = " and ".join(f"`{name}`" for name in lists)
    message = (
        f"`forward` was compiled again for other numbers of items in {items}: only what follows should be compiled"
    )
    if isinstance(split, Split) and facts.writing.fresh_attribute(_CORE, cls) != _CORE:
        split = f"`{_CORE}` is another thing already"
    if isinstance(split, str):
        yield Finding(forward, message, assumption=split)
        return
    owner = facts.qualname(cls) or cls.name
    here = [m for m in facts.ask(CompiledModels).all if owner in (m.cls, *_inheriting(m.cls, facts))]
    edits = [edit for m in here for edit in _core_compiled(m, facts)]
    others = sorted(m.call.lineno for m in here if not _core_compiled(m, facts))
    assumption = f"`model.{_CORE}` is compiled, not the model"
    assumption += f" (by hand in line {others[0]})" if others else ""
    doubtful = [f"`{h.name}`" for h in split.handed if not h.sure]
    assumption += f"; {' and '.join(doubtful)} {'are no lists' if doubtful[1:] else 'is no list'}" if doubtful else ""
    yield Finding(forward, message, Fix((_moved(forward, me, split), *edits), Applicability.UNSAFE), assumption)


def _call(call: ast.Call, facts: Facts) -> Iterator[Finding]:
    """A call that compiles a whole model of another file, which has a core."""
    model = next((m for m in facts.ask(CompiledModels).all if m.call is call), None)
    if model is None:
        return
    owners = [model.cls, *_inheriting(model.cls, facts)]
    owner = next((c for c in owners if f"{c}.forward" in facts.ask(Variations).functions), None)
    if owner is None or not any(v.dim is None for v in facts.ask(Variations).of(f"{owner}.forward")):
        return
    if f"{owner}.forward" in facts.ask(Variations).definitions:
        return
    summary = facts.project.known_class(owner)
    message = "the whole model is compiled, which is given a list: each number of items compiles it again"
    edits = _core_compiled(model, facts) if summary is not None and _CORE in summary.methods else ()
    if edits:
        yield Finding(call, message, Fix(edits, Applicability.UNSAFE), f"`{_CORE}` is what computes")
    else:
        yield Finding(call, message, assumption=f"where its `forward` is split, compile `{_CORE}` by hand")


def _lists(forward: FunctionNode, facts: Facts) -> tuple[str, ...]:
    """The parameters that hold lists, of which the length varied in ``forward`` or in what it gives them to."""
    found = {v.parameter for v in facts.ask(Variations).at(forward) if v.dim is None}
    for call in (n for n in ast.walk(forward) if isinstance(n, ast.Call)):
        for callee in facts.ask(EagerCalls).run_by(call.func):
            for v in facts.ask(Variations).of(callee):
                given = facts.ask(EagerCalls).argument(call, callee, v.parameter) if v.dim is None else None
                found |= {given.id} if isinstance(given, ast.Name) else set()
    return tuple(p.arg for p in all_parameters(forward.args) if p.arg in found)


def _inheriting(cls: str, facts: Facts) -> list[str]:
    """The classes whose ``forward`` an instance of ``cls`` runs, in place of one of its own."""
    methods = (m.rpartition(".")[0] for m in facts.project.methods(cls, "forward"))
    summary = facts.project.known_class(cls)
    return [] if summary is None or "forward" in summary.methods else [m for m in methods if m != cls]


def _moved(forward: ast.FunctionDef, me: str, split: Split) -> MoveTail:
    parts: list[ast.expr] = []

    def hole(e: ast.expr) -> str:
        parts.append(e)
        return f"{{{len(parts) - 1}}}"

    written = [me]
    for h in split.handed:
        text = h.name + (f": {hole(h.annotation)}" if h.annotation is not None else "")
        equals = "=" if h.annotation is None else " = "
        written.append(text + (f"{equals}{hole(h.default)}" if h.default is not None else ""))
    result = f" -> {hole(forward.returns)}" if forward.returns is not None else ""
    width = sum(map(len, written)) + sum(len(ast.unparse(p)) for p in parts) + forward.col_offset
    inside = ", ".join(written) if width < _WIDTH else "\n" + "".join(f"    {w},\n" for w in written)
    call = f"return {me}.{_CORE}({', '.join(h.name for h in split.handed)})"
    header = Code(f"def {_CORE}({inside}){result}:", tuple(parts))
    return MoveTail(forward, split.first, header, Code(call))


def _core_compiled(model: CompiledModel, facts: Facts) -> tuple[Edit, ...]:
    """What makes of a call that compiles the whole model one that compiles its core; nothing where that is not sure."""
    statement, held, call = facts.syntax.statement_of(model.call), model.held, model.call
    if held is None or "_orig_mod" in facts.syntax.names_in(facts.syntax.tree):
        return ()
    core = Code(f"{{0}}.{_CORE}", (held,))
    if model.form == "again" and isinstance(statement, ast.Assign):
        old = next((a for a in (*call.args, *(k.value for k in call.keywords)) if _same(a, statement.targets[0])), None)
        return () if old is None else (Replace(statement.targets[0], core), Replace(old, core))
    if model.form == "built" and model.model in call.args:
        again = filled(call, {model.model: core})
        built = Code("{0} = {1}", (held, model.model))
        return (ReplaceStatements((statement,), (built, Code(f"{{0}}.{_CORE} = {{1}}", (held, again)))),)
    if model.form == "in place":
        given = "".join(f", {'**' if n == '**' else f'{n}='}{{{i + 1}}}" for i, (n, _) in enumerate(model.arguments))
        torch = facts.writing.spelled("torch.compile", call)
        code = Code(f"{{0}}.{_CORE} = {torch}({{0}}.{_CORE}{given})", (held, *(v for _, v in model.arguments)))
        return (ReplaceStatements((statement,), (code,)),) if torch is not None else ()
    return ()


def _same(a: ast.AST, b: ast.AST) -> bool:
    return ast.unparse(a) == ast.unparse(b)
