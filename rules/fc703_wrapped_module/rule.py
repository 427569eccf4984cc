"""FC703: a module that becomes the wrapper which torch.compile makes of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.compiling.in_place import InPlace
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
from rules.fc703_wrapped_module.uses import WrapperUses


class WrappedModule(Rule):
    """A module that becomes the wrapper which ``torch.compile`` makes of it.

    What it does:
        Replaces ``model = torch.compile(model, dynamic=True)`` by ``model.compile(dynamic=True)``, and the same for
        ``self.net`` and ``blocks[i]``; ``model = torch.compile(Net())`` becomes two statements. Reported, and left to
        you: a model that is compiled twice, which gives a plain function without parameters (seen on 2.13).

    Why it breaks compilation:
        What ``torch.compile`` returns is another module around the one that it was given. The keys of its
        ``state_dict`` start with ``_orig_mod.`` (33 of 33 in a small transformer, in the middle of 30 where blocks are
        wrapped one by one), so that checkpoints do not load without it: with ``strict=False`` they load nothing,
        silently. ``isinstance`` and the names of modules are others, and ``model.generate()`` runs eagerly, for a
        method of the module does not know of the wrapper. ``Module.compile`` compiles the same graphs in place.

    Fix safety:
        Safe where the model is made in the same function or at the top of the same file, of a class of the
        project whose ``forward`` is its own, and nothing that can be seen could tell the wrapper from the
        module: it is called, moved, trained, asked for parameters or attributes, also in functions of the file
        that get it. Unsafe where somebody else gets it or has got it, where names of parameters are read, saved
        or loaded, where a method calls the model itself or the constructor hands it on, where the class has an
        ``eval`` or ``parameters`` of its own (a wrapper calls PyTorch's); the finding names the lines. Left
        alone: a model whose ``forward`` is called by name, which is copied, saved as a whole, compared,
        indexed, or asked for its type; ``_orig_mod`` read without a test before; another name for the model
        without compiling that is used; a class with a ``compile`` or ``__call__`` of its own, or that runs a
        ``forward`` of PyTorch's own (``nn.Sequential``), which in place is not compiled at all (seen on 2.13);
        functions; PyTorch before 2.2.

    References:
        musubi-tuner's and sd-scripts' key stripping; PyTorch, "Where to apply torch.compile".
    """

    code: ClassVar[str] = "FC703"
    name: ClassVar[str] = "wrapped-module"
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)
    triggers: ClassVar[tuple[bytes, ...]] = (b"torch.compile", b"import compile")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    where: ClassVar[Where] = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report a call of torch.compile whose result takes the place of the module."""
        if not isinstance(facts.syntax.parents.get(node), ast.Assign):
            return
        site = facts.ask(CompileSites).at(node)
        if site is None or site.form not in ("again", "built") or site.held is None or not site.is_module:
            return
        if site.others and not site.by_forward and (first := _first(site, facts)) is not None:
            told = f"`{ast.unparse(site.held)}` is compiled already (line {first.lineno}): what this gives is no module"
            yield Finding(node, told, assumption="compile it once, with the arguments of both calls")
        if (
            site.by_forward
            or site.others
            or facts.ask(InPlace).why_not(site) is not None
            or facts.ask(CompileSites).replaced
        ):
            return
        seen = facts.ask(WrapperUses).of(site)
        code = _code(site, facts)
        if seen.kept or code is None:
            return
        held = ast.unparse(site.held)
        message = f"`{held}` becomes a wrapper with other parameter names: `Module.compile` does the same in place"
        notes = seen.notes
        fix = Fix((ReplaceStatements((facts.syntax.statement_of(node),), code),))
        if notes:
            fix = Fix(fix.edits, Applicability.UNSAFE)
        more = f" and {len(notes) - 3} more" if len(notes) > 3 else ""
        yield Finding(node, message, fix, "; ".join(notes[:3]) + more)

    invalid: ClassVar[tuple[Example, ...]] = INVALID

    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _first(site: CompileSite, facts: Facts) -> ast.stmt | None:
    """The statement above that surely has made the same name a wrapper already."""
    syntax = facts.syntax
    if site.form != "again" or not isinstance(site.held, ast.Name):
        return None
    statement, held = syntax.statement_of(site.node), site.held.id
    names = (n for n in syntax.by_type[ast.Name] if isinstance(n, ast.Name) and n.id == held)
    stores = [n.lineno for n in names if not isinstance(n.ctx, ast.Load)]
    for call in site.others:
        other, first = facts.ask(CompileSites).at(call.node), syntax.statement_of(call.node)
        if other is None or other.form != "again" or other.by_forward or first not in syntax.block_of(statement):
            continue
        if first.lineno < statement.lineno and not any(first.lineno < n < statement.lineno for n in stores):
            return first
    return None


def _code(site: CompileSite, facts: Facts) -> tuple[Code, ...] | None:
    written = facts.ask(InPlace).spelled(site, site.held)
    if written is None or site.held is None or site.model is None:
        return None
    call = Code(*written)
    return (call,) if site.form == "again" else (Code("{0} = {1}", (site.held, site.model)), call)
