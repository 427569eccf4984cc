"""FC603: functions that look something up on the host, in compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Decorate, Finding, Fix, Rule
from rules.fc603_host_query.examples import INVALID, VALID
from rules.fc603_host_query.queries import Queries

#: One of these stands in each file with such a function.
_WORDS = "groupdict finditer os. cpu_count which( subprocess open( json glob socket platform importlib"


class HostQuery(Rule):
    """A function that takes a version apart, or looks for a file or a program, called in compiled code.

    What it does:
        Marks the function ``@torch.compiler.assume_constant_result``: it runs while the graph is made, and what it
        answers is a constant of the graph.

    Why it breaks compilation:
        Dynamo traces what such a function does, and stops at some of it: ``match.groupdict()``, ``finditer``,
        ``os.path.exists``, ``shutil.which``. The graph breaks there, once for each such call.

    Fix safety:
        Unsafe: what the function answers has to be the same for the same arguments as long as the process runs, and it
        has to be called with text and numbers as it is annotated, since the value of a tensor would be a constant, too.
        What it does beside answering (a warning) is done once for each graph. Only for functions without a
        ``self``, with annotated parameters, that store nothing and answer with what cannot change. Where a run has seen
        that one answers the same each time and is asked with plain values (``optimize``), also for those that start a
        program, read a file, or keep their answers with ``functools.lru_cache``; the fix is then measured.

    References:
        ``torch.compiler.assume_constant_result``; PyTorch, "constant-like method call with unsupported return type".
    """

    code = "FC603"
    name = "host-query"
    triggers = tuple(word.encode() for word in _WORDS.split())
    listens_to = (ast.Call,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it looks something up in compiled code, by means that no graph takes."""
        assert isinstance(node, ast.Call)
        query = facts.ask(Queries).of(node)
        if query is None:
            return
        message = f"`{ast.unparse(node.func)}` is not traced: graph break"
        if query.refused:
            yield Finding(node, message, assumption=query.refused)
            return
        mark = facts.writing.spelling("torch.compiler.assume_constant_result", query.function)
        presumed = f"`{query.function.name}` answers the same for the same text and numbers, and gets nothing else"
        grade = Applicability.SAFE if query.constant else Applicability.UNSAFE
        yield Finding(node, message, Fix((Decorate(query.function, Code(mark)),), grade), presumed)

    def handles(self, node: ast.AST, facts: Facts) -> bool:
        """Whether this rule tells of ``node``."""
        return isinstance(node, ast.Call) and any(self.check(node, facts))

    invalid = INVALID
    valid = VALID
