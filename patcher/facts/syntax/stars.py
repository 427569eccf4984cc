"""What ``from module import *`` brings: the names that the text of that module says, when it says all of them."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from unicodedata import normalize

#: Modules of Python of which all names are known, and which do nothing when they are imported.
_OF_PYTHON = frozenset("math cmath typing dataclasses collections functools itertools enum abc operator random".split())
#: How far above its own folder a file may find the folder that an absolute import starts from.
_ABOVE = 4
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
#: One of these stands in each file that gives itself names in another way than its top level shows.
_WORDS = re.compile(r"\b(?:globals?|exec|vars|locals|sys\b(?s:.*)\bmodules)\b")
_DISPLAYS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Said:
    """What the text of a module says of its names.

    ``bound``: those that it binds at its top level, imports aside. ``imports``: its imports there. ``listed``: its
    ``__all__``; None where it has none. ``known``: whether that is all.
    """

    bound: frozenset[str]
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    listed: frozenset[str] | None
    known: bool


def of_python(module: str) -> Mapping[str, str] | None:
    """Name -> dotted thing for all that ``module``, of the standard library, brings; None: not known."""
    if module not in _OF_PYTHON:
        return None
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None) or [name for name in vars(found) if name[:1] != "_"]
    return {name: f"{module}.{name}" for name in names}


def file_of(folder: Path, package: str, level: int, module: str) -> Path | None:
    """The file that ``module`` means, ``level`` dots before it, to a file in ``folder``, which is in ``package``.

    None also where several may be meant: which folder a program starts from, nothing says.
    """
    depth = package.count(".") + 1 if package else 0
    first, last = (level - 1, level) if level else (0, depth + 1 + _ABOVE)
    found: list[Path] = []
    for top in islice((folder, *folder.parents), first, last):
        at = top.joinpath(*module.split(".")) if module else top
        files = (at / "__init__.py", at.with_name(f"{at.name}.py"))
        found += [file for file in files if file.is_file()][:1]  # a package comes before a module
    return found[0] if len(found) == 1 else None


def said(file: Path) -> Said | None:
    """What ``file`` says of its names; None when it cannot be read."""
    try:
        state = file.stat()
        return _said(file, state.st_mtime_ns, state.st_size)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=4096)
def _said(file: Path, _changed: int, _size: int) -> Said:
    text = file.read_bytes()
    tree = ast.parse(text)
    words = _WORDS.search(normalize("NFKC", text.decode(errors="replace"))) is not None  # most have none of them
    top = list(_running(tree))
    bound = {n.id for n in top if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    bound |= {n.name for n in top if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    bound |= {n.name for n in top if isinstance(n, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and n.name}
    bound |= {n.rest for n in top if isinstance(n, ast.MatchMapping) and n.rest}
    bound |= {name for n in (ast.walk(tree) if words else ()) if isinstance(n, ast.Global) for name in n.names}
    imports = tuple(n for n in top if isinstance(n, (ast.Import, ast.ImportFrom)))
    listed = _listed(top) if "__all__" in bound else frozenset[str]()
    modules = {p.stem for p in file.parent.iterdir()} if file.name == "__init__.py" else set[str]()
    writes = words and any(map(_is_writing, ast.walk(tree)))
    known = listed is not None and not writes and not modules & vars(builtins).keys()
    return Said(frozenset(bound), imports, listed if "__all__" in bound else None, known)


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module does, without what has names of its own inside."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _DISPLAYS):
            yield from (n.target for n in ast.walk(child) if isinstance(n, ast.NamedExpr))
            continue
        yield child
        if not isinstance(child, _NESTED):
            yield from _running(child)


def _listed(top: list[ast.AST]) -> frozenset[str] | None:
    """What ``__all__`` holds, where displays of strings say it; None otherwise."""
    found: set[str] = set()
    reads = sum(isinstance(n, ast.Name) and n.id == "__all__" for n in top)
    for n in top:
        target = n.targets[0] if isinstance(n, ast.Assign) else getattr(n, "target", None)
        if not isinstance(n, (ast.Assign, ast.AugAssign, ast.AnnAssign)) or not isinstance(target, ast.Name):
            continue
        if target.id == "__all__":
            values = n.value.elts if isinstance(n.value, (ast.List, ast.Tuple)) else [ast.Constant(None)]
            names = [v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
            if len(names) < len(values):
                return None
            found |= set(names)
            reads -= 1
    return None if reads else frozenset(found)  # ``__all__.append``, or what somebody else makes of it


def _is_writing(n: ast.AST) -> bool:
    """Whether ``n`` may give the module names that its text does not bind."""
    if isinstance(n, ast.Attribute):
        return n.attr == "modules" and isinstance(n.value, ast.Name) and n.value.id == "sys"
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Name):
        return n.func.id in ("globals", "exec") or (n.func.id in ("vars", "locals") and not n.args)
    return False
