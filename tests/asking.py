"""Facts of a source text, for tests that ask an analysis and not a rule."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.settings import Settings


def facts_of(source: str, path: str = "example.py", **others: str) -> Facts:
    """What can be asked about ``source``; ``others``: further files of the project, by module name."""
    tree = ast.parse(source)
    summaries = [summarise(tree, path)]
    summaries += [summarise(ast.parse(text), f"{name}.py") for name, text in others.items()]
    return Facts(tree, path, Project(summaries), Settings(), frozenset())
