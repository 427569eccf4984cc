"""What one module does with the attributes of objects that are not its own: reads, copies, names."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from patcher.facts.syntax.tree import Syntax, dotted, last_name
from patcher.facts.tables import torch_api
from patcher.facts.tables.wording import suggests_configuration

Owner = Callable[[ast.AST], tuple[ast.AST | None, str | None]]
#: What reads, copies or writes all attributes of an object, or compiles a class as it is written.
_OPENING = frozenset(
    "copy.copy copy.replace dataclasses.asdict dataclasses.astuple dataclasses.replace pickle.dump pickle.dumps "
    "cloudpickle.dump cloudpickle.dumps dill.dump dill.dumps joblib.dump torch.save torch.jit.script "
    "torch.jit.interface torch.jit.export torch.jit.script_method".split()
)
_BY_NAME = frozenset("getattr setattr delattr hasattr attrgetter __getattribute__".split())
#: Attributes that every tensor has: a read of one says nothing about other objects.
TENSORS = torch_api.TENSOR_ONLY | torch_api.ALIASING | set(torch_api.HOST_VALUES)


def read_attributes(syntax: Syntax, owner: Owner) -> frozenset[str]:
    """Return the attributes that code reads of objects other than its own instance, also by name or in a text."""
    found = {n.attr for n in syntax.by_type[ast.Attribute] if n.attr not in TENSORS and _is_read(n, syntax, owner)}
    found.update(attr for n in syntax.by_type[ast.MatchClass] for attr in n.kwd_attrs)
    for call in syntax.by_type[ast.Call]:
        if last_name(call.func) in _BY_NAME:
            found.update(w for a in call.args if isinstance(a, ast.Constant) for w in str(a.value).split("."))
    for text in syntax.by_type[ast.Constant]:
        if type(text.value) is str and (text.value[:1] == "_" or "{" in text.value):
            found.update(re.findall(r"^_\w+$|(?<=\.)\w+", text.value))
    return frozenset(found)


def _is_read(n: ast.Attribute, syntax: Syntax, owner: Owner) -> bool:
    parent, value = syntax.parents[n], n.value
    if not isinstance(n.ctx, ast.Load) or (isinstance(parent, ast.Call) and parent.func is n):
        return False
    function, first = owner(n) if isinstance(value, ast.Name) else (None, None)
    method = function is not None and isinstance(syntax.parents.get(function), ast.ClassDef)
    own = method and isinstance(value, ast.Name) and value.id == first
    return not own and (n.attr[0] == "_" or not suggests_configuration(last_name(value)))


def openings(syntax: Syntax, imports: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return what reads or copies all attributes of an object, and of which (source text; "" where it is handed on)."""
    found: set[tuple[str, str]] = set()
    for n in (*syntax.by_type[ast.Name], *syntax.by_type[ast.Attribute]):
        parent, text = syntax.parents[n], dotted(n) or ""
        if text.partition(".")[0] in imports and _resolved(text, imports) in _OPENING:
            called = isinstance(parent, ast.Call) and parent.func is n and bool(parent.args)
            found.add((text, ast.unparse(parent.args[0]) if called else ""))  # type: ignore[attr-defined]
        elif isinstance(n, ast.Attribute) and n.attr == "__dict__":
            found.add((n.attr, ast.unparse(n.value)))
        elif isinstance(parent, ast.Call) and parent.args and _takes_any(text, parent.args):
            found.add((text, ast.unparse(parent.args[0])))
    return frozenset(found)


def _takes_any(name: str, args: list[ast.expr]) -> bool:
    """Whether a builtin of that name reads or sets what attribute it likes."""
    key = args[1] if len(args) > 1 else None
    return name == "vars" or (name in ("getattr", "setattr", "delattr") and not isinstance(key, ast.Constant))


def _resolved(text: str, imports: Mapping[str, str]) -> str:
    root, dot, rest = text.partition(".")
    return f"{imports.get(root, root)}{dot}{rest}"
