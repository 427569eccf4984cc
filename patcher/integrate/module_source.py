"""The new module, put together: what calls the compiler, and options for the kind of command line that a script has."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from patcher.state_dict_source import UNCOMPILE

_ADDS = "add_compile_arguments"
_TORCH = {"torch": "import torch", "nn": "from torch import nn"}
_EXCLUDED = "torch_compile"
_OTHERS = ("torch", "click")


def composed(kind: str, late: bool, excluded: Sequence[str] = ()) -> str:
    """The text of the module.

    ``kind``: what its options are added to. ``late``: its functions import PyTorch. ``excluded``: options of the script
    that compile in another way, by their names as attributes.
    """
    text = _read("companion")
    others = ", ".join(f'"{name}"' for name in dict.fromkeys([_EXCLUDED, *excluded]))
    old = f'_OTHER_OPTIONS = ("{_EXCLUDED}",)'
    text = text.replace(old, f"_OTHER_OPTIONS = ({others}{',' if ',' not in others else ''})")
    if kind == "fields":
        text = _without(text)
    elif kind != "argparse":
        text = _exchanged(text, _read("companion_click"))
    if late:
        text = _late(text)
    return f"{text}\n\n{UNCOMPILE}"


def _read(name: str) -> str:
    return Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")


def _exchanged(text: str, other: str) -> str:
    """``text`` with the function that adds options, and what it needs, from ``other``."""
    known = {_name(s) for s in ast.parse(text).body} - {_ADDS, ""}
    new = [_segment(other, s) for s in ast.parse(other).body if _name(s) not in known and _name(s)]
    old = next(s for s in ast.parse(text).body if _name(s) == _ADDS)
    lines = text.splitlines()
    lines[old.lineno - 1 : old.end_lineno] = "\n\n\n".join(new).splitlines()
    return _with_imports(lines, [*_imports(text), *_imports(other)])


def _without(text: str) -> str:
    """``text`` without the function that adds options."""
    lines = text.splitlines()
    old = next(s for s in ast.parse(text).body if _name(s) == _ADDS)
    del lines[old.lineno - 1 : (old.end_lineno or 0) + 2]
    return _with_imports(lines, _imports(text))


def _late(text: str) -> str:
    """``text`` with PyTorch imported in its functions: it may read settings that a script makes before it does."""
    lines = text.splitlines()
    for top in reversed([s for s in ast.parse(text).body if isinstance(s, ast.FunctionDef)]):
        used = {n.id for part in top.body for n in ast.walk(part) if isinstance(n, ast.Name)}
        own = [f"    {said}" for name, said in _TORCH.items() if name in used]
        documented = ast.get_docstring(top) is not None
        at = (top.body[0].end_lineno or 0) if documented else top.body[0].lineno - 1
        if own:
            lines[at:at] = [*([""] if documented else []), *own, ""]
    return _with_imports(lines, _imports(text), late=True)


def _with_imports(lines: Sequence[str], imports: Sequence[str], late: bool = False) -> str:
    """The text with those ``imports`` that it needs in the place of its own. ``late``: PyTorch's for types alone."""
    tree = ast.parse("\n".join(lines))
    own = [s for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {"annotations"}
    kept = [said for said in dict.fromkeys(imports) if _bound(said) in used]
    typed: list[str] = []
    if late:
        said_in = [a for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for a in (f.returns, *_annotations(f))]
        named = {n.id for a in said_in if a is not None for n in ast.walk(a) if isinstance(n, ast.Name)}
        typed = [f"    {said}" for name, said in _TORCH.items() if name in named]
        kept = [said for said in kept if said not in _TORCH.values()]
        kept = [said.replace("import Any", "import TYPE_CHECKING, Any") if typed else said for said in kept]
    groups = ["\n".join(group) for group in _grouped(kept)]
    groups += ["\n".join(["if TYPE_CHECKING:", *typed])] if typed else []
    block = "\n\n".join(groups).splitlines()
    return "\n".join([*lines[: own[0].lineno - 1], *block, *lines[own[-1].end_lineno :]]) + "\n"


def _annotations(function: ast.FunctionDef) -> list[ast.expr | None]:
    return [a.annotation for a in (*function.args.args, *function.args.kwonlyargs)]


def _imports(text: str) -> list[str]:
    return [_segment(text, s) for s in ast.parse(text).body if isinstance(s, (ast.Import, ast.ImportFrom))]


def _segment(text: str, statement: ast.stmt) -> str:
    return "\n".join(text.splitlines()[statement.lineno - 1 : statement.end_lineno])


def _bound(said: str) -> str:
    """The name that an import of one name binds."""
    return said.rsplit(maxsplit=1)[-1]


def _name(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return str(getattr(statement, "name", ""))


def _grouped(imports: Sequence[str]) -> Iterator[list[str]]:
    """Imports in the usual groups and order: from the future, of Python, of others."""

    def key(said: str) -> tuple[int, bool, str]:
        module = said.split()[1]
        group = 0 if module == "__future__" else 2 if module.partition(".")[0] in _OTHERS else 1
        return group, said.startswith("from"), module

    for group in range(3):
        if found := sorted((said for said in imports if key(said)[0] == group), key=key):
            yield found
