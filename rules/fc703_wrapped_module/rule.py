"""FC703: a module that becomes the wrapper which torch.compile makes of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.compiling.in_place import InPlace
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.rule import Applicability, Code, Finding, Fix, ReplaceStatements, Rule, Where
from rules.fc703_wrapped_module.examples import INVALID, VALID

#: What says in the source that a module is a wrapper.
_WRAPPERS = frozenset({"OptimizedModule", "is_compiled_module"})
NOTE = (
    "nothing tells the wrapper from the module: no `_orig_mod` in names, no test of its type or identity, "
    "no call of its `forward`, no use that has to stay eager"
)


def tells_wrappers(facts: Facts) -> bool:
    """Whether the file tests for a wrapper, or reads what is in one without asking by ``hasattr(m, "_orig_mod")``."""
    names = facts.syntax.names_in(facts.syntax.tree)
    asked = any(isinstance(c, ast.Constant) and c.value == "_orig_mod" for c in facts.syntax.by_type[ast.Constant])
    return ("_orig_mod" in names and not asked) or not _WRAPPERS.isdisjoint(names)


class WrappedModule(Rule):
    """A module that becomes the wrapper which ``torch.compile`` makes of it.

    What it does:
        Replaces ``model = torch.compile(model, dynamic=True)`` by ``model.compile(dynamic=True)``, and the same for
        ``self.net`` and ``blocks[i]``; ``model = torch.compile(Net())`` becomes two statements.

    Why it breaks compilation:
        What ``torch.compile`` returns is another module around the one that it was given. The keys of its
        ``state_dict`` start with ``_orig_mod.`` (33 of 33 in a small transformer, in the middle of 30 where blocks are
        wrapped one by one), so that checkpoints do not load without it: with ``strict=False`` they load nothing,
        silently. ``isinstance`` and the names of modules are others, and ``model.generate()`` runs eagerly, for a
        method of the module does not know of the wrapper. ``Module.compile`` compiles the same graphs in place: no
        break goes away, and none is counted as gone.

    Fix safety:
        Unsafe: other code of the program may tell the wrapper from the module. It may read names of parameters with
        ``_orig_mod.``, test the type or identity, call ``forward`` by its name, or use the module without compiling
        under another name. Left alone: a file that reads ``_orig_mod`` or tests for a wrapper
        (``is_compiled_module``); a class with a ``compile`` or ``__call__`` of its own; one that runs a ``forward`` of
        PyTorch's own (``nn.Sequential``) before 2.14, where it is not compiled in place at all (seen on 2.13; on
        2.14.1, it is, with the same graphs); functions; PyTorch before 2.2.

    References:
        musubi-tuner's and sd-scripts' key stripping; PyTorch, "Where to apply torch.compile".
    """

    code = "FC703"
    name = "wrapped-module"
    costs = ()  # no break: the graphs are the same
    triggers = (b"torch.compile", b"import compile", b".compile(")
    listens_to = (ast.Call,)
    where = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report a call of torch.compile whose result takes the place of the module."""
        site = facts.ask(CompileSites).at(node)
        if site is None or site.form == "discarded":  # FC704's
            return
        if isinstance(facts.syntax.parents.get(node), ast.Assign):
            yield from _wrapped(site, facts)

    invalid = INVALID

    valid = VALID


def _wrapped(site: CompileSite, facts: Facts) -> Iterator[Finding]:
    """A module that becomes the wrapper, compiled in place instead."""
    if site.form not in ("again", "built") or site.held is None or not site.is_module or site.by_forward:
        return
    if facts.ask(InPlace).why_not(site) is not None or facts.ask(CompileSites).replaced or site.others:
        return
    code = _code(site, facts)
    if code is None or tells_wrappers(facts):
        return
    held = ast.unparse(site.held)
    message = f"`{held}` becomes a wrapper with other parameter names: `Module.compile` does the same in place"
    edit = ReplaceStatements((facts.syntax.statement_of(site.node),), code)
    yield Finding(site.node, message, Fix((edit,), Applicability.UNSAFE), NOTE)


def _code(site: CompileSite, facts: Facts) -> tuple[Code, ...] | None:
    item = isinstance(site.held, ast.Subscript) and isinstance(site.model, ast.Name)  # which the loop has a name for
    written = facts.ask(InPlace).spelled(site, site.model if item else site.held)
    if written is None or site.held is None or site.model is None:
        return None
    call = Code(*written)
    return (call,) if site.form == "again" else (Code("{0} = {1}", (site.held, site.model)), call)
