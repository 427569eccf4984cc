"""The text of the new module, written as the script is: its quotes, its indentation, its line endings."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

from patcher.lines import split_lines

_INDENT = "    "
_STRING = re.compile(r"""(?P<prefix>[A-Za-z]*)(?P<quote>"|')(?P<text>[^"'\\]*)(?P=quote)""")


def module_text(script: str, text: str) -> str:
    """``text``, the source of the new module, as a script with the text ``script`` is written."""
    if _prefers_single(script):
        text = _single(text)
    indent = _indentation(script)
    if indent != _INDENT:
        text = _indented(text, indent)
    return text.replace("\n", "\r\n") if "\r\n" in script else text


def with_import(text: str, statement: str, folder: str) -> str:
    """``text`` with an import of the new module below its other imports; apart from those of other packages."""
    tree = ast.parse(text)
    lines = split_lines(text)
    at, local = _below_imports(tree, folder, statement)
    if not at:  # what the first lines say of the file stays above: how it is run, how it is encoded
        at = next((i for i, line in enumerate(lines) if not line.lstrip("\ufeff").startswith("#")), 0)
    ending = next((line[len(line.rstrip("\r\n")) :] for line in lines if line.endswith(("\n", "\r"))), "\n")
    apart = [] if local or not at else [ending]
    return "".join([*lines[:at], *apart, statement + ending, *lines[at:]])


def imports_torch_late(text: str, folder: str, statement: str) -> bool:
    """Whether nothing above the place of the import ``statement`` in ``text`` imports PyTorch."""
    tree = ast.parse(text)
    at, _ = _below_imports(tree, folder, statement)
    above = [s for s in tree.body if s.lineno <= at]
    said = [a.name for s in above if isinstance(s, ast.Import) for a in s.names]
    said += [s.module or "" for s in above if isinstance(s, ast.ImportFrom) and not s.level]
    return all(name.partition(".")[0] != "torch" for name in said)


def _below_imports(tree: ast.Module, folder: str, new: str) -> tuple[int, bool]:
    """The line below which the import ``new`` goes, and whether the import there is one of a neighbour."""
    at, local = 0, False
    module = new.rpartition(" ")[2]
    for number, statement in enumerate(tree.body):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            break
        if any(isinstance(n, ast.Name) and n.id == module for n in ast.walk(statement)):
            break  # it is used here, and some imports come later
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            at, local = statement.end_lineno or 0, _is_local(statement, folder, new)
        elif number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            at = statement.end_lineno or 0
    return at, local


def _is_local(statement: ast.Import | ast.ImportFrom, folder: str, new: str) -> bool:
    """Whether it imports what lies beside the script, or what is of the package of ``new``."""
    if isinstance(statement, ast.ImportFrom) and statement.level:
        return True
    said = statement.module or "" if isinstance(statement, ast.ImportFrom) else statement.names[0].name
    if new.startswith("from ") and new.split()[1].partition(".")[0] == said.partition(".")[0]:
        return True
    top = Path(folder) / said.partition(".")[0]
    return top.is_dir() or top.with_suffix(".py").is_file()


def _prefers_single(script: str) -> bool:
    quotes = [match["quote"] for token in _strings(script) if (match := _STRING.fullmatch(token.string)) is not None]
    return quotes.count("'") > quotes.count('"')


def _strings(text: str) -> list[tokenize.TokenInfo]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token for token in tokens if token.type == tokenize.STRING]


def _single(text: str) -> str:
    """The text with ' for ", where a string has neither in it."""
    lines = text.split("\n")
    for token in reversed(_strings(text)):
        match = _STRING.fullmatch(token.string)
        if match is not None and match["quote"] == '"':
            (row, start), (_, end) = token.start, token.end
            line = lines[row - 1]
            lines[row - 1] = f"{line[:start]}{match['prefix']}'{match['text']}'{line[end:]}"
    return "\n".join(lines)


def _indentation(script: str) -> str:
    """What the script indents by."""
    for token in tokenize.generate_tokens(io.StringIO(script).readline):
        if token.type == tokenize.INDENT:
            return token.string
    return _INDENT


def _indented(text: str, indent: str) -> str:
    def again(line: str) -> str:
        blank = len(line) - len(line.lstrip(" "))
        return indent * (blank // len(_INDENT)) + " " * (blank % len(_INDENT)) + line[blank:]

    return "\n".join(map(again, text.split("\n")))
