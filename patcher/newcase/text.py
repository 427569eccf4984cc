"""The case file, as text."""

from __future__ import annotations

import ast
import keyword
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.harness.cases import FILL_IN
from patcher.newcase.tree import Seen, Tree
from patcher.newcase.values import BATCH, BLANK, Building, Inputs, Value

_WIDTH = 100
_SHAPED = ("empty", "ones", "rand", "randint", "randn", "zeros")


@dataclass(frozen=True)
class Written:
    """``blanks``: line by line, what has to be filled in. ``sources``: where the rest is from, a line each."""

    text: str
    blanks: tuple[tuple[int, str], ...]
    sources: tuple[str, ...]


def written(tree: Tree, model: Seen, made: Building, given: Inputs, twice: bool = False) -> Written:
    """The file for a model. It is valid Python, also with blanks. ``twice``: a found call also with a larger batch."""
    shown = tree.shown(model.path)
    sources = [f"built as in {made.use.where}"] if made.use else []
    sources += [f"called as in {given.use.where}"] if given.use else []
    lines = [f'"""{model.name} of {shown}: a first case, written by `fix-compile case`; make it yours."""', ""]
    lines += [*_imports(tree, made.classes), "", ""]
    lines += ["def build():", '    """The model. What it draws is seeded by whoever runs the case."""']
    lines += [f"    # as in {made.use.where}"] if made.use else []
    lines += [*_called(f"    return {model.name}", made.values, "    "), "", ""]
    if given.use is not None:
        lines += ["def calls():", '    """The calls to make, each its arguments and keywords."""']
        lines += [f"    # as in {given.use.where}", *_used(given, twice)]
    else:
        lines += ["def calls():", '    """The calls to make: two sizes of the batch, so that recompiles are seen."""']
        lines += ["    return [_inputs(2), _inputs(3)]", "", "", f"def _inputs({BATCH}):"]
        lines += ["    arguments = {", *_lines(given.values, "        ", ": "), "    }", "    return (), arguments"]
    text = "\n".join(lines) + "\n"
    ast.parse(text)
    numbered = enumerate(text.splitlines(), 1)
    blanks = [(number, line.partition(FILL_IN)[2].strip(" :")) for number, line in numbered if FILL_IN in line]
    return Written(text, tuple(blanks), tuple(sources))


def _imports(tree: Tree, classes: Iterable[Seen]) -> list[str]:
    by_module: dict[str, set[str]] = {}
    for seen in classes:
        by_module.setdefault(tree.dotted(seen.path), set()).add(seen.name)
    return [
        "import torch",
        *(f"from {module} import {', '.join(sorted(by_module[module]))}" for module in sorted(by_module)),
    ]


def _called(start: str, values: Sequence[Value], indent: str) -> list[str]:
    """A call, on one line where it fits and nothing has to be said."""
    flat = f"{start}({', '.join(f'{value.name}={_flat(value)}' for value in values)})"
    if len(flat) <= _WIDTH and not any(value.why or value.lines for value in values):
        return [flat]
    return [f"{start}(", *_lines(values, indent + "    ", "="), f"{indent})"]


def _lines(values: Sequence[Value], indent: str, between: str) -> list[str]:
    found = []
    for value in values:
        name = f'"{value.name}"' if between == ": " else value.name
        if not name.strip('"').isidentifier() or keyword.iskeyword(name):
            name = '"input"' if between == ": " else "value"
        start = f"{indent}{name}{between}"
        if value.lines:
            found += [f"{start}{value.text}(", *_lines(value.lines, indent + "    ", "="), f"{indent}),"]
        else:
            mark = f"  # {FILL_IN}: {value.why}" if value.text == BLANK else f"  # {value.why}" if value.why else ""
            found.append(f"{start}{_flat(value)},{mark}")
    return found


def _flat(value: Value) -> str:
    called = value.text.isidentifier() and value.text[:1].isupper() and value.text not in ("True", "False", "None")
    return f"{value.text}()" if called else value.text


def _used(given: Inputs, twice: bool) -> list[str]:
    assert given.use is not None
    arguments = f"({', '.join(given.use.arguments)}{',' if len(given.use.arguments) == 1 else ''})"
    keywords = ", ".join(f'"{name}": {text}' for name, text in given.use.keywords)
    flat = f"({arguments}, {{{keywords}}})"
    if len(flat) <= _WIDTH:
        larger = _larger(flat) if twice else ""
        return (
            ["    return [", f"        {flat},", f"        {larger},", "    ]"] if larger else [f"    return [{flat}]"]
        )
    lines = ["    arguments = (", *(f"        {argument}," for argument in given.use.arguments), "    )"]
    lines += ["    keywords = {", *(f'        "{name}": {text},' for name, text in given.use.keywords), "    }"]
    return [*lines, "    return [(arguments, keywords)]"]


def _larger(call: str) -> str:
    """A call with one more in the first dimension of its tensors; "" where that is not the same in all of them."""
    tree, sizes = ast.parse(call, mode="eval"), set[int]()
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func).startswith("torch.")):
        name = ast.unparse(node.func).removeprefix("torch.")
        shape = node.args[2:] if name == "randint" else node.args
        shape = shape[0].elts if shape and isinstance(shape[0], ast.Tuple | ast.List) else shape
        size = getattr(shape[0], "value", 0) if shape and name in _SHAPED else 0
        sizes.add(size)
        if isinstance(size, int) and size > 1:
            shape[0] = ast.Constant(size + 1)
    return ast.unparse(tree) if len(sizes - {1}) == 1 and 0 not in sizes else ""


def file_for(model: Seen, root: Path) -> Path:
    """Where the case goes when nobody says so: ``cases/NAME.py`` of the project."""
    name = "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(model.name))
    return Path(os.path.relpath(root / "cases" / f"{_shortened(name)}.py"))


def _shortened(name: str) -> str:
    """``vi_t`` is no name: runs of single letters go together."""
    parts = name.strip("_").split("_")
    joined = [parts[0]]
    for part in parts[1:]:
        if len(part) == 1 or len(joined[-1]) == 1:
            joined[-1] += part
        else:
            joined.append(part)
    return "_".join(joined)
