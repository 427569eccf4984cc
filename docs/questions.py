"""docs/facts.md: the questions that `patcher/facts` answers, as its docstrings put them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / "patcher" / "facts"
#: The lowest first, as in ARCHITECTURE.md; folders that are named in none of them are topics.
FLOORS = ("tables", "syntax", "flow", "project", "values", "effects")
HEAD = """\
# What facts answer

<!-- Written by docs/generate.py from the docstrings of patcher/facts; edit those. -->

A rule asks here before it works anything out itself. `facts.ask(Certainty).of(e)`: a class with *ask* is asked for by
`Facts.ask`, which makes the one instance that a module has; others are at hand in `Facts` and in each `Analysis`
(`project`, `syntax`, `inference`, `flow_of`, `class_facts`), or come out of an answer. "why" gives a reason, and "" or
None only where nothing stands in the way. [ARCHITECTURE.md](../ARCHITECTURE.md) has the floors: each asks those below
it."""
#: What is looked for most, with the place of the answer: a file in facts and a name in it.
COMMON = (
    ("Does this run in compiled code?", "__init__.py", "Facts.compiled"),
    ("Is it a tensor, or what else? Which dtype, rank, shape?", "__init__.py", "Facts.value"),
    ("How sure is it that it is a tensor?", "values/certainty.py", "Certainty.of"),
    ("Is it a number of elements, which is never negative?", "values/sizes.py", "Sizes.is_count"),
    ("Does it give the same at B as at A?", "effects/unchanged.py", "Unchanged.why_changed"),
    ("Does anybody write into it later?", "effects/unchanged.py", "Unchanged.why_written_later"),
    ("What may this node write?", "effects/writes.py", "Writes.of"),
    ("What may this call write, keep, hand back?", "effects/calls.py", "Calls.of"),
    ("May others hold the object, or share its memory?", "effects/unchanged.py", "Unchanged.may_be_shared"),
    ("Can it be evaluated where the source does not?", "effects/totality.py", "Effects.why_not_total"),
    ("Are gradients recorded here?", "effects/gradient_mode.py", "GradientMode.off"),
    ("Which function does this call run?", "values/callees.py", "Callees.of"),
    ("Who calls this function?", "values/inference.py", "Inference.calls_of"),
    ("Who else sets this attribute?", "project/attributes.py", "Attributes.reasons"),
    ("May anybody catch this error?", "checks/caught.py", "Caught.why"),
    ("Which assignments reach this name?", "values/inference.py", "Inference.definitions"),
    ("What do tests on the way say of this name?", "values/inference.py", "Inference.state"),
    ("What may run between two places?", "flow/graph.py", "Graph.between"),
    ("What stands around this node?", "syntax/tree.py", "Syntax.around"),
    ("Which imported thing does this name stand for?", "syntax/tree.py", "Syntax.qualified"),
    ("How does new code say this here?", "effects/writing.py", "Writing.spelling"),
    ("Which new name is free here?", "effects/writing.py", "Writing.fresh_name"),
)


@dataclass(frozen=True)
class Question:
    """One thing that can be asked: ``name`` with its class, how it is written, and what its docstring says."""

    name: str
    written: str
    said: str


def facts_page() -> str:
    """The text of docs/facts.md. Raises ``SystemExit`` when `COMMON` names what is not there."""
    parts = [HEAD, "## Where to begin", _table(("question", "ask", "in"), map(_common, COMMON))]
    for folder in _folders():
        parts.append(f"## {folder.name if folder != FACTS else 'Facts'}\n\n{_head(folder / '__init__.py')}")
        files = sorted(folder.glob("*.py"))
        for file in files if folder == FACTS else files[1:]:
            rows = [(question.written, question.said) for question in questions(file)]
            if rows:
                shown = f"### `{file.relative_to(FACTS).as_posix()}`"
                parts.append(shown if file.name == "__init__.py" else f"{shown}\n\n{_head(file)}")
                parts.append(_table(("ask", "answer"), rows))
    return "\n\n".join(parts) + "\n"


@cache
def questions(file: Path) -> tuple[Question, ...]:
    """What is public in a file: functions, classes, and the methods and properties of these."""
    found: list[Question] = []
    for node in _parsed(file).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found.append(Question(node.name, f"`{node.name}`{' (*ask*)' if _is_asked_for(node) else ''}", _said(node)))
            found += [_question(f"{node.name}.", method) for method in _public(node.body)]
    return (*(_question("", function) for function in _public(_parsed(file).body)), *found)


def _is_asked_for(node: ast.ClassDef) -> bool:
    """Whether `Facts.ask` makes it: an analysis that needs nothing but the facts."""
    made = next((s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    needs = len(made.args.args) if made is not None else 2
    return needs == 2 and any(ast.unparse(base) in ("Analysis", "Aliasing") for base in node.bases)


def _question(owner: str, node: ast.FunctionDef) -> Question:
    plain = [a.arg for a in (*node.args.posonlyargs, *node.args.args)][1 if owner else 0 :]
    named = [f"{a.arg}=" for a in node.args.kwonlyargs]
    is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    call = "" if is_property else f"({', '.join([*plain, *named])})"
    return Question(f"{owner}{node.name}", f"`{owner}{node.name}{call}`", _said(node))


def _public(body: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef]:
    return (s for s in body if isinstance(s, ast.FunctionDef) and not s.name.startswith("_") and ast.get_docstring(s))


def _common(row: tuple[str, str, str]) -> tuple[str, str, str]:
    asked, place, name = row
    written = next((q.written for q in questions(FACTS / place) if q.name == name), None)
    if written is None:
        raise SystemExit(f"docs/questions.py: {name} is not in patcher/facts/{place} (any more)")
    return asked, written, f"[`{place}`](#{''.join(c for c in place if c.isalnum() or c in '_-')})"


def _folders() -> list[Path]:
    below = {file.parent for file in FACTS.glob("*/__init__.py")}
    return [FACTS, *(FACTS / floor for floor in FLOORS), *sorted(below - {FACTS / floor for floor in FLOORS})]


def _head(file: Path) -> str:
    return _said(_parsed(file))


def _said(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    """The first paragraph of the docstring, on one line."""
    return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())


def _table(head: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> str:
    lines = [" | ".join(cell.replace("|", "&#124;") for cell in row) for row in (head, *rows)]
    return "\n".join(f"| {line} |" for line in (lines[0], " | ".join("---" for _ in head), *lines[1:]))


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))
