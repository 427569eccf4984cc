"""Which attributes a class says are tensors, for those who hold an object of the class."""

from __future__ import annotations

import ast
import re

from patcher.facts.syntax.classes import INITIALISERS, attribute_of
from patcher.facts.syntax.tree import Syntax
from patcher.facts.syntax.written import is_none

#: An annotation of a tensor, or of one that may be None.
_TENSOR = re.compile(r"[\"']?(Optional\[)?([\w.]*\.)?\w*Tensor(\])?( \| None)?[\"']?")
#: Functions of torch that make a tensor, and no number.
_MAKERS = frozenset("zeros ones full empty tensor arange zeros_like ones_like full_like empty_like".split())


def said_tensors(cls: ast.ClassDef, syntax: Syntax) -> frozenset[str]:
    """Return the attributes that ``cls`` annotates as tensors, or that its initialisers make by a function of torch.

    ``Tensor | None`` counts: whoever asks for an element of None gets an error.
    """
    said: dict[str, set[bool]] = {}
    annotated: set[str] = set()
    for n in syntax.subtree(cls):
        method = getattr(syntax.function_of(n), "name", "")
        if isinstance(n, ast.AnnAssign) and (method in INITIALISERS or syntax.parents[n] is cls):
            name = n.target.id if isinstance(n.target, ast.Name) else attribute_of(n.target, "self")
            annotated.add(name or "")
            said.setdefault(name or "", set()).add(bool(_TENSOR.fullmatch(ast.unparse(n.annotation))))
        elif isinstance(n, ast.Assign) and method in INITIALISERS and not is_none(n.value):
            what = syntax.qualified(n.value.func) if isinstance(n.value, ast.Call) else None
            for name in (attribute_of(t, "self") for t in n.targets):
                if name is not None and name not in annotated:
                    package, _, maker = (what or "").rpartition(".")
                    said.setdefault(name, set()).add(package == "torch" and maker in _MAKERS)
    return frozenset(name for name, tensor in said.items() if tensor == {True})
