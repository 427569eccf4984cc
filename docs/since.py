"""What has changed in the tool since a commit, by more than documentation.

Used by docs/generate.py (the line "Measured on ..." of docs/results), tests/test_claims.py and benchmarks/claims.py.

Compares the rules (``rules/fcNNN*``) and the analyses (``patcher/facts``) at the commit with those of the working
tree, by their syntax trees. Docstrings, comments, files of examples, and a rule's ``invalid`` and ``valid`` do not
count. The rest of the tool (engine, harness, command line) is not compared.
"""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ANALYSES = "the analyses"
_RULE = re.compile(r"rules/(fc\d+)")
_EXAMPLES = {"invalid", "valid"}


def git(*arguments: str, root: Path = ROOT) -> bytes | None:
    """The output of a git command; None when it fails or there is no git."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def why_not_comparable(root: Path = ROOT) -> str | None:
    """The reason why commits cannot be looked up here; None where the history is complete."""
    top = git("rev-parse", "--show-toplevel", root=root)
    if top is None or Path(top.decode().strip()).resolve() != root.resolve():
        return "not a git checkout (exported sources, or no git)"
    shallow = (git("rev-parse", "--is-shallow-repository", root=root) or b"").decode().strip()
    return "a shallow clone: `git fetch --unshallow` gets the history" if shallow != "false" else None


def is_ancestor(commit: str, root: Path = ROOT) -> bool:
    """Whether HEAD descends from ``commit``."""
    return git("merge-base", "--is-ancestor", commit, "HEAD", root=root) is not None


def date_of(commit: str, root: Path = ROOT) -> str:
    """The date of a commit, as YYYY-MM-DD."""
    return (git("log", "-1", "--format=%cs", commit, root=root) or b"").decode().strip()


def changed_since(commit: str, root: Path = ROOT) -> list[str]:
    """The rules' codes that have changed, in order; last "the analyses" when one of them has."""
    then, now = _then(commit, root), _now(root)
    differing: dict[str, list[str]] = {}
    for path in sorted(then.keys() | now.keys()):
        if then.get(path) != now.get(path):
            differing.setdefault(_group(path), []).append(path)
    found = [group for group, paths in differing.items() if _any_differs(paths, then, root)]
    return sorted(found, key=lambda group: (group == ANALYSES, group))


def sentence(changed: Iterable[str]) -> str:
    """What has changed, in words; more than eight rules are "many", so that the words settle."""
    rules = [group for group in changed if group != ANALYSES]
    parts = [", ".join(rules)] if len(rules) <= 8 else ["many rules"]
    parts += [ANALYSES] if ANALYSES in changed else []
    return " and ".join(filter(None, parts))


def _group(path: str) -> str:
    """The rule's code, or "the analyses"."""
    rule = _RULE.match(path)
    return rule[1].upper() if rule else ANALYSES


def _counts(path: str) -> bool:
    own = path.startswith("patcher/facts/") or (_RULE.match(path) is not None and path.endswith(".py"))
    return own and not path.endswith(("/examples.py", "_examples.py", ".pyc", ".md"))


def _then(commit: str, root: Path) -> dict[str, str]:
    """The git object names of the files that count, at a commit."""
    listed = git("ls-tree", "-r", "-z", "--full-tree", commit, "--", "rules", "patcher/facts", root=root)
    if listed is None:
        raise LookupError(f"commit {commit} is not in this repository")
    rows = [row.split("\t", 1) for row in listed.decode().split("\0") if row]
    return {path: fields.split()[2] for fields, path in rows if _counts(path)}


def _now(root: Path) -> dict[str, str]:
    """The same of the working tree."""
    files = [file for folder in ("rules", "patcher/facts") for file in (root / folder).rglob("*") if file.is_file()]
    texts = {path: file.read_bytes() for file in files if _counts(path := file.relative_to(root).as_posix())}
    return {path: hashlib.sha1(b"blob %d\0%b" % (len(text), text)).hexdigest() for path, text in texts.items()}


def _any_differs(paths: list[str], then: dict[str, str], root: Path) -> bool:
    """Whether one of the files differs in code; the first that does ends the search."""
    for path in sorted(paths, key=lambda path: (root / path).stat().st_size if (root / path).is_file() else 0):
        old = git("cat-file", "blob", then[path], root=root) if path in then else None
        new = (root / path).read_bytes() if (root / path).is_file() else None
        if old is None or new is None or _code(old, path) != _code(new, path):
            return True
    return False


@cache
def _code(text: bytes, path: str) -> str | bytes:
    """A module's syntax tree without documentation, as text; what is no Python as it is."""
    if not path.endswith(".py"):
        return text
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [part for number, part in enumerate(node.body) if not _is_documentation(part, number)]
    return ast.dump(tree)


def _is_documentation(part: ast.stmt, number: int) -> bool:
    """Whether a statement of a body is its docstring, or a rule's examples."""
    if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
        return part.target.id in _EXAMPLES and isinstance(part.value, ast.Tuple)
    return not number and isinstance(part, ast.Expr) and isinstance(getattr(part.value, "value", None), str)
