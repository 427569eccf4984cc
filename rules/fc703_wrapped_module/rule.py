"""FC703: a module that becomes the wrapper which torch.compile makes of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.compiling.in_place import InPlace
from patcher.facts.compiling.placing import exclusive
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Example,
    Finding,
    Fix,
    NearMiss,
    ReplaceStatements,
    Rule,
    Where,
)
from rules.fc703_wrapped_module.examples import INVALID, VALID
from rules.fc703_wrapped_module.rebuilt import rebuilt
from rules.fc703_wrapped_module.reports import decorated, returned, twice
from rules.fc703_wrapped_module.uses import WrapperUses


class WrappedModule(Rule):
    """A module that becomes the wrapper which ``torch.compile`` makes of it.

    What it does:
        Replaces ``model = torch.compile(model, dynamic=True)`` by ``model.compile(dynamic=True)``, and the same for
        ``self.net`` and ``blocks[i]``; ``model = torch.compile(Net())`` becomes two statements, and a list that is
        built anew (``model.blocks = nn.ModuleList([torch.compile(b) for b in model.blocks])``) a loop. Reported, and
        left to you: a model that is compiled twice, a decorator on a class or its ``forward``, and a function that
        returns the wrapper. Seen on 2.13: what is wrapped twice is a plain function without parameters; of an instance
        whose class has the decorator, compiling it again raises an AssertionError.

    Why it breaks compilation:
        What ``torch.compile`` returns is another module around the one that it was given. The keys of its
        ``state_dict`` start with ``_orig_mod.`` (33 of 33 in a small transformer, in the middle of 30 where blocks are
        wrapped one by one), so that checkpoints do not load without it: with ``strict=False`` they load nothing,
        silently. ``isinstance`` and the names of modules are others, and ``model.generate()`` runs eagerly, for a
        method of the module does not know of the wrapper. ``Module.compile`` compiles the same graphs in place: no
        break goes away, and none is counted as gone.

    Fix safety:
        Safe where the model is made in the same function or at the top of the same file, of a class of the
        project that is seen whole, and nothing that can be seen could tell the wrapper from the
        module: it is called, moved, trained, asked for parameters or attributes, also in functions of the file
        that get it. An item of a list (``model.blocks[i]``) is safe where the constructor of the model makes the list
        of one class, its methods only call the items, no names of what is in the model are read, and each item is
        compiled once; else the finding says which of it is missing. Unsafe where somebody else gets it or has got it,
        where names of parameters are read, saved or loaded, where a method calls the model itself or the constructor
        hands it on, where the class has an ``eval`` or ``parameters`` of its own (a wrapper calls PyTorch's); the
        finding names the lines. Left alone: a model whose ``forward`` is called by name, which is copied, saved as a
        whole, compared, indexed, or asked for its type; ``_orig_mod`` read without a test before, or a wrapper asked
        for (``is_compiled_module``); another name for the model without compiling that is used; a class with a
        ``compile`` or ``__call__`` of its own; one that runs a ``forward`` of PyTorch's own (``nn.Sequential``) before
        2.14, where it is not compiled in place at all (seen on 2.13; on 2.14.1, it is, with the same graphs);
        functions; PyTorch before 2.2.

    References:
        musubi-tuner's and sd-scripts' key stripping; PyTorch, "Where to apply torch.compile".
    """

    code: ClassVar[str] = "FC703"
    name: ClassVar[str] = "wrapped-module"
    costs: ClassVar[tuple[Cost, ...]] = ()  # no break: the graphs are the same
    triggers: ClassVar[tuple[bytes, ...]] = (b"torch.compile", b"import compile", b".compile(")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call, ast.FunctionDef, ast.ClassDef)
    where: ClassVar[Where] = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report a call of torch.compile whose result takes the place of the module, and what compiles it again."""
        if not isinstance(node, ast.Call):
            yield from decorated(node, facts)
            return
        site = facts.ask(CompileSites).at(node)
        if site is None or site.form == "discarded":  # FC704's
            return
        told = twice(site, facts) or returned(site, facts)
        if told is not None:
            yield told
        elif (built := rebuilt(site, facts)) is not None:
            yield built
        elif isinstance(facts.syntax.parents.get(node), ast.Assign):
            yield from _wrapped(site, facts)

    invalid: ClassVar[tuple[Example, ...]] = INVALID

    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _wrapped(site: CompileSite, facts: Facts) -> Iterator[Finding]:
    """A module that becomes the wrapper, compiled in place instead."""
    if site.form not in ("again", "built") or site.held is None or not site.is_module or site.by_forward:
        return
    if facts.ask(InPlace).why_not(site) is not None or facts.ask(CompileSites).replaced or _compiled_too(site, facts):
        return
    seen = facts.ask(WrapperUses).of(site)
    code = _code(site, facts)
    if seen.kept or code is None:
        return
    held = ast.unparse(site.held)
    message = f"`{held}` becomes a wrapper with other parameter names: `Module.compile` does the same in place"
    notes = seen.notes
    fix = Fix((ReplaceStatements((facts.syntax.statement_of(site.node),), code),))
    if notes:
        fix = Fix(fix.edits, Applicability.UNSAFE)
    more = f" and {len(notes) - 3} more" if len(notes) > 3 else ""
    yield Finding(site.node, message, fix, "; ".join(notes[:3]) + more)


def _compiled_too(site: CompileSite, facts: Facts) -> bool:
    """Whether the same run compiles what holds it once more."""
    held = ast.unparse(site.held) if site.held is not None else ""
    return bool(site.others) or any(
        s.model is not None
        and s is not site
        and ast.unparse(s.model) == held
        and s.function is site.function
        and not exclusive(s.node, site.node, facts.syntax)
        for s in facts.ask(CompileSites).all
    )


def _code(site: CompileSite, facts: Facts) -> tuple[Code, ...] | None:
    item = isinstance(site.held, ast.Subscript) and isinstance(site.model, ast.Name)  # which the loop has a name for
    written = facts.ask(InPlace).spelled(site, site.model if item else site.held)
    if written is None or site.held is None or site.model is None:
        return None
    call = Code(*written)
    return (call,) if site.form == "again" else (Code("{0} = {1}", (site.held, site.model)), call)
