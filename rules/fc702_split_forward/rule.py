"""FC702: a forward that is given a list, and prepares it before it computes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.running.eager_calls import EagerCalls
from patcher.facts.running.variations import Variations
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode, dotted, last_name
from patcher.facts.syntax.written import all_parameters, is_stored
from patcher.facts.zones.cuts import Cuts
from patcher.rule import (
    Applicability,
    Code,
    Edit,
    Finding,
    Fix,
    MoveTail,
    Replace,
    ReplaceStatements,
    Rule,
    Where,
    filled,
)
from rules.fc702_split_forward.examples import INVALID, VALID

_CORE = "_forward_core"
#: What gives a list of a list.
_LISTS = frozenset("list tuple sorted reversed zip enumerate map filter chain".split())


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
        one. Not fixed when:

        - the list is read up to the end of ``forward``,
        - the rest needs a name that may have no value, or what a function of the preparation reads changes later,
        - ``forward`` is a generator, or has a decorator that is not known,
        - the class has another ``_forward_core``.

    References:
        The training setup of the nanoVLM report; PyTorch, "Recompilation" (guards on containers).
    """

    code = "FC702"
    name = "split-forward"
    costs = ("recompilation",)
    triggers = (b"forward", b"torch.compile")
    listens_to = (ast.FunctionDef, ast.Call)
    where = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report a ``forward`` that can be split, and calls in other files that compile the whole of one that was."""
        if not any(v.dim is None for v in facts.settings.evidence):
            return
        if isinstance(node, ast.FunctionDef):
            yield from _definition(node, facts)
        elif isinstance(node, ast.Call):
            yield from _call(node, facts)

    invalid = INVALID

    valid = VALID


def _definition(forward: ast.FunctionDef, facts: Facts) -> Iterator[Finding]:
    cls = facts.syntax.parents.get(forward)
    me = self_name(forward)
    lists = _lists(forward, facts)
    if forward.name != "forward" or not isinstance(cls, ast.ClassDef) or me is None or not lists:
        return
    if not facts.is_module_class(cls):
        return
    last = _last_read(forward.body, lists)
    rest = forward.body[last + 1 :]
    if last < 0 or not rest or _hands_on(rest) or facts.writing.fresh_attribute(_CORE, cls) != _CORE:
        return
    cut = facts.ask(Cuts).of(forward, rest[0])
    if cut is None:
        return
    items = " and ".join(f"`{name}`" for name in lists)
    message = (
        f"`forward` was compiled again for other numbers of items in {items}: only what follows should be compiled"
    )
    owner = facts.qualname(cls) or cls.name
    here = [site for site, name in _models(facts) if owner in (name, *_inheriting(name, facts))]
    others = sorted(site.node.lineno for site in here if not _core_compiled(site, facts))
    assumption = f"`model.{_CORE}` is compiled, not the model"
    assumption += f" (by hand in line {others[0]})" if others else ""
    header = facts.ask(Cuts).header(forward, cut, _CORE, me, True)
    moved = MoveTail(forward, rest[0], Code(header.template, header.parts), Code(f"return {header.call}"))
    edits = [edit for site in here for edit in _core_compiled(site, facts)]
    yield Finding(forward, message, Fix((moved, *edits), Applicability.UNSAFE), f"{assumption}; the rest gets no list")


def _models(facts: Facts) -> list[tuple[CompileSite, str]]:
    """The places that compile a whole model, with its class, where that is plain to see."""
    sites = facts.ask(CompileSites).all
    return [(s, s.cls) for s in sites if s.model is not None and s.cls is not None and isinstance(s.node, ast.Call)]


def _call(call: ast.Call, facts: Facts) -> Iterator[Finding]:
    """A call that compiles a whole model of another file, which has a core."""
    site, cls = next(((s, name) for s, name in _models(facts) if s.node is call), (None, ""))
    varied = facts.ask(Variations)
    owners = (c for c in (cls, *_inheriting(cls, facts)) if any(v.dim is None for v in varied.of(f"{c}.forward")))
    owner = next(owners, None)
    if site is None or owner is None:
        return
    if f"{owner}.forward" in facts.ask(Variations).definitions:
        return
    summary = facts.project.known_class(owner)
    message = "the whole model is compiled, which is given a list: each number of items compiles it again"
    edits = _core_compiled(site, facts) if summary is not None and _CORE in summary.methods else ()
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


def _core_compiled(site: CompileSite, facts: Facts) -> tuple[Edit, ...]:
    """What makes of a call that compiles the whole model one that compiles its core; nothing where that is not sure."""
    call, held, statement = site.node, site.held, facts.syntax.statement_of(site.node)
    if held is None or dotted(held) is None or not facts.syntax.alone(statement) or not isinstance(call, ast.Call):
        return ()
    core = Code(f"{{0}}.{_CORE}", (held,))
    if site.form == "again" and isinstance(statement, ast.Assign):
        old = next((a for a in (*call.args, *(k.value for k in call.keywords)) if _same(a, statement.targets[0])), None)
        return () if old is None else (Replace(statement.targets[0], core), Replace(old, core))
    if site.form == "built" and site.model in call.args and site.model is not None:
        built = Code("{0} = {1}", (held, site.model))
        again = Code(f"{{0}}.{_CORE} = {{1}}", (held, filled(call, {site.model: core})))
        return (ReplaceStatements((statement,), (built, again)),)
    torch = facts.writing.spelled("torch.compile", call)
    if site.form == "in place" and torch is not None:
        given = "".join(f", {'**' if n == '**' else f'{n}='}{{{i + 1}}}" for i, (n, _) in enumerate(site.arguments))
        code = Code(f"{{0}}.{_CORE} = {torch}({{0}}.{_CORE}{given})", (held, *(v for _, v in site.arguments)))
        return (ReplaceStatements((statement,), (code,)),)
    return ()


def _same(a: ast.AST, b: ast.AST) -> bool:
    return ast.unparse(a) == ast.unparse(b)


def _last_read(body: list[ast.stmt], parameters: tuple[str, ...]) -> int:
    """Where the last statement of ``body`` stands that reads one of the lists, or one that is made of them; -1: none.

    Below ``if isinstance(parts, list): parts = torch.cat(parts)`` the name holds none any more.
    """
    last, names = -1, set(parameters)
    for at, statement in enumerate(body):
        reads = _reads(statement, names)
        if reads:
            last = at
        match statement:
            case ast.If(test=test) if "isinstance" in ast.unparse(test) and _reads(test, names):
                names -= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and is_stored(n)}
            case ast.For(iter=items) if _reads(items, names):
                grown = (n.value for n in ast.walk(statement) if isinstance(n, ast.Attribute) and n.attr == "append")
                names |= {n.id for n in grown if isinstance(n, ast.Name)}
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names = names | {name} if _is_list(value) and reads else names - {name}
    return last


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names and not is_stored(n) for n in ast.walk(node))


def _is_list(e: ast.expr) -> bool:
    """Whether ``e`` makes a list of one, as far as it is written."""
    listed = isinstance(e, ast.Call) and last_name(e.func) in _LISTS
    return listed or isinstance(e, (ast.Name, ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Dict))


def _hands_on(rest: list[ast.stmt]) -> bool:
    """Whether ``rest`` only returns a name, or what one method makes of names: there is nothing to take apart."""
    match rest:
        case [ast.Return(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self")), args=args, keywords=keywords))]:
            handed = [*args, *(k.value for k in keywords)]
            return all(isinstance(v, (ast.Name, ast.Starred)) for v in handed)
        case [ast.Return(value=value)]:
            return value is None or isinstance(value, (ast.Name, ast.Constant))
    return False
