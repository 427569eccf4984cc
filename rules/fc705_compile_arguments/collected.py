"""Arguments that are collected in a dictionary first: ``mode`` in it, and ``options`` put in later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.values.compile_calls import CompileCall
from patcher.facts.values.module_values import Bindings
from patcher.rule import Code, Replace
from rules.fc705_compile_arguments.wrong import Wrong, merged


def wrong_collected(call: CompileCall, facts: Facts) -> Iterator[Wrong]:
    """``mode`` and ``options`` that meet in what is unpacked: ``a = {"mode": m}``, ``a["options"] = {}``."""
    unpacked = [v for name, v in call.arguments if name == "**"]
    if len(unpacked) != 1 or not isinstance(unpacked[0], ast.Name) or call.argument("mode") or call.argument("options"):
        return
    name, bindings = unpacked[0].id, Bindings(facts.syntax)
    scope = bindings.scope(call.node)
    made = bindings.assigned.get((scope, name), [])
    mode = _item(made[0], "mode") if len(made) == 1 and isinstance(made[0], ast.Dict) else None
    for s in facts.syntax.by_type[ast.Assign] if mode is not None and _is_text(mode, facts) else ():
        options = s.value if ast.unparse(s.targets[0]) == f"{name}['options']" and bindings.scope(s) is scope else None
        if mode is not None and isinstance(options, ast.Dict) and None not in options.keys:
            later = made[0].lineno < s.lineno < call.node.lineno
            edits = (Replace(options, merged(Code(f'{name}.pop("mode")'), options)),) if later else ()
            message = f"`mode` and `options` meet in `{name}`: torch.compile takes one of them and raises an error"
            assumption = f"`{ast.unparse(mode)}` names a mode of inductor, and that is the backend"
            yield Wrong(options, message, edits, assumption=assumption)


def _item(made: ast.Dict, name: str) -> ast.expr | None:
    return next(
        (v for k, v in zip(made.keys, made.values, strict=True) if isinstance(k, ast.Constant) and k.value == name),
        None,
    )


def _is_text(e: ast.expr, facts: Facts) -> bool:
    """Whether ``e`` surely is a text: written, or a field of a class of this file that is declared as one."""
    if isinstance(e, ast.Constant):
        return isinstance(e.value, str)
    if not isinstance(e, ast.Attribute):
        return False
    fields = [
        s
        for cls in facts.syntax.by_type[ast.ClassDef]
        for s in cls.body
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and s.target.id == e.attr
    ]
    return bool(fields) and all(ast.unparse(s.annotation) == "str" for s in fields)
