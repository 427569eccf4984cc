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
    """``mode`` and ``options`` that meet in what is unpacked."""
    unpacked = [v for name, v in call.arguments if name == "**"]
    if len(unpacked) != 1 or not isinstance(unpacked[0], ast.Name) or call.argument("mode") or call.argument("options"):
        return
    name, syntax = unpacked[0].id, facts.syntax
    bindings = Bindings(syntax)
    scope = bindings.scope(call.node)
    made = bindings.assigned.get((scope, name), [])
    if len(made) != 1 or not isinstance(made[0], ast.Dict):
        return
    mode = _item(made[0], "mode")
    stores = [s for s in syntax.by_type[ast.Subscript] if _is_store(s, name, "options") and bindings.scope(s) is scope]
    if mode is None or len(stores) != 1 or not _is_text(mode, facts):
        return
    statement = syntax.parents[stores[0]]
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Dict):
        return
    options = statement.value
    if None in options.keys:
        return
    new = merged(Code(f'{name}.pop("mode")'), options)
    later = statement.lineno < call.node.lineno and made[0].lineno < statement.lineno
    backend = _item(made[0], "backend")
    known = backend is None or (isinstance(backend, ast.Constant) and backend.value == "inductor")
    edits = (Replace(options, new),) if later else ()
    message = f"`mode` and `options` meet in `{name}`: torch.compile takes one of them and raises an error"
    assumption = f"`{ast.unparse(mode)}` names a mode of inductor"
    yield Wrong(options, message, edits, assumption=assumption if known else f"{assumption}, and that is the backend")


def _item(made: ast.Dict, name: str) -> ast.expr | None:
    return next(
        (v for k, v in zip(made.keys, made.values, strict=True) if isinstance(k, ast.Constant) and k.value == name),
        None,
    )


def _is_store(s: ast.Subscript, name: str, key: str) -> bool:
    own = isinstance(s.value, ast.Name) and s.value.id == name and isinstance(s.ctx, ast.Store)
    return own and isinstance(s.slice, ast.Constant) and s.slice.value == key


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
