"""The torch.compile configuration of a repository: every place that compiles something or sets how."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from patcher.diagnose.diagnosis import CompileSite
from patcher.diagnose.site_remarks import ON_A_CLASS, Declarations, Place, remarks
from patcher.facts.scripts.wrappers import wrappings
from patcher.facts.syntax.tree import Syntax
from patcher.facts.values.compile_calls import CompileCall, compile_calls
from patcher.facts.values.module_values import Bindings, ModuleIndex

_TELLING = re.compile("compile|dynamo|inductor|functorch|matmul_precision", re.IGNORECASE)
_DEFINED = re.compile(r"^[ \t]*class[ \t]+(\w+)", re.MULTILINE)
_BASES = re.compile(r"^[ \t]*class[ \t]+\w+[ \t]*\(([^)]*)\)", re.MULTILINE)
_LISTED = re.compile(r"self\.(\w+)[^=\n]*=[^\n]*(?:ModuleList|Sequential|ModuleDict)")
_WORD = re.compile(r"\w+")
_LONGEST = 200


def compile_sites(files: Sequence[tuple[str, str]]) -> tuple[CompileSite, ...]:
    """The places in ``files`` (path as shown, source text), in their order. A file that does not parse has none."""
    texts = dict(files)
    telling = [path for path, text in files if _TELLING.search(text)]
    parsed = {
        path: Syntax(tree) for path in _worth_reading(texts, telling) if (tree := tree_in(texts[path])) is not None
    }
    index = ModuleIndex([(".".join(PurePath(path).with_suffix("").parts), s) for path, s in parsed.items()])
    calls = {path: compile_calls(parsed[path], index) for path in telling if path in parsed}
    declarations = Declarations(parsed.items())
    sites: list[CompileSite] = []
    for path, found in calls.items():
        if not found:
            continue
        syntax = parsed[path]
        bindings = Bindings(syntax)
        place = Place(syntax, bindings, wrappings(syntax, bindings), declarations)
        sites += [_site(path, call, place) for call in found]
    return tuple(sites)


def decorated_classes(sites: Sequence[CompileSite]) -> tuple[str, ...]:
    """Where a class has the decorator, so that no instance of it can be compiled again."""
    return tuple(site.where for site in sites if ON_A_CLASS in site.remarks)


def _worth_reading(texts: Mapping[str, str], telling: Sequence[str]) -> list[str]:
    """The ``telling`` files, and those with classes, or lists of modules, that they name, with the classes' bases."""
    words: set[str] = set()
    chosen = set(telling)
    todo = telling
    names = {path: set(_DEFINED.findall(text)) | set(_LISTED.findall(text)) for path, text in texts.items()}
    while todo:
        for path in todo:
            given = texts[path] if todo is telling else " ".join(_BASES.findall(texts[path]))
            words |= set(_WORD.findall(given))
        todo = [path for path, own in names.items() if path not in chosen and own & words]
        chosen |= set(todo)
    return [path for path in texts if path in chosen]


def tree_in(text: str) -> ast.Module | None:
    """Return the tree of a text; None where it is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an escape in a string of theirs is not ours to complain about
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _site(path: str, call: CompileCall, place: Place) -> CompileSite:
    return CompileSite(
        f"{path}:{call.node.lineno}",
        _shortened(("@" if _decorates(call) else "") + ast.unparse(call.node)),
        _target(call, place.syntax),
        tuple((name, ast.unparse(value)) for name, value in call.arguments),
        remarks(call, place),
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _decorates(call: CompileCall) -> bool:
    return call.target is not None and not isinstance(call.target, ast.expr)


def _target(call: CompileCall, syntax: Syntax) -> str:
    if call.target is None:
        return ""
    return ast.unparse(call.target) if isinstance(call.target, ast.expr) else syntax.scope_of(call.target)
