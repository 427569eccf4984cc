"""FC611: a call of the host, or of a sparse tensor, that Dynamo does not trace."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.compiling.in_force import InForce
from patcher.facts.syntax.looped import is_looped
from patcher.facts.syntax.written import short
from patcher.facts.tables import host_api
from patcher.facts.tables.captured import taken_in_by
from patcher.rule import Applicability, Code, Finding, Fix, Replace, Rule
from rules.fc611_untraced_call.examples import INVALID, VALID
from rules.fc611_untraced_call.untraced import WORDS_OF_UNTRACED, Untraced, UntracedCalls, Why

#: One of these stands in each file that has such a call: the last name of what is called, or what `HELD` goes by.
_WORDS = tuple(sorted({name.rpartition(".")[2].encode() for name in WORDS_OF_UNTRACED}))


class UntracedCall(Rule):
    """``zlib.compress(data)``, ``time.time()``, ``x.to_sparse()``: a call that no graph takes, in compiled code.

    What it does:
        Reports, in code that gets compiled, calls of functions of Python, PyTorch and NumPy that Dynamo does not trace
        (time, files, JSON, compression, random state, packed sequences, hooks, ``torch.autograd.grad``, ``np.ndindex``,
        ``np.interp``, ``copy.deepcopy`` and ``pow`` of a tensor ...) and of libraries that it does not look into
        (scikit-learn, SciPy, OpenCV, pandas ...), and layers and sparse tensors that are made there. Nothing is
        said of files that have nothing to do with PyTorch, unless compiled code of others gets there.

    Why it breaks compilation:
        The graph breaks at the call, which runs eagerly; in a loop the whole function falls back to eager. A graph
        cannot hold a sparse tensor either: after one has been made, nothing more of the function is compiled.

    Fix safety:
        Without a run there is no fix: what the call is for decides. Where a run has seen it give the same truth, number
        or text each time (``optimize``), compiled code takes that, and the fix is measured. What is the same for each
        call belongs into the constructor, what is for people under ``if not torch.compiler.is_compiling():``, what
        works on results of the model behind it.

    References:
        PyTorch, graph breaks GB0007 ("Attempted to call function marked as skipped") and GB0029 (sparse tensors);
        tests/test_untraced_calls.py runs each of them.
    """

    code = "FC611"
    name = "untraced-call"
    triggers = _WORDS
    listens_to = (ast.Call,)
    costs = ("graph break",)
    yields_to = ("FC603", "FC612", "FC613")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it is a call in compiled code that is not traced."""
        assert isinstance(node, ast.Call)
        for found in facts.ask(UntracedCalls).at(node):
            settings = taken_in_by(_WAYS.get(found.name, ""), facts.settings.target_torch)
            if facts.ask(UntracedCalls).is_elsewhere(node) or facts.ask(InForce).takes_in(settings):
                return
            taken = "".join(f"; `torch._dynamo.config.{name}` takes it into the graph" for name in sorted(settings))
            fix = _constant(node, found.name, facts) if found.node is node else None
            yield Finding(found.node, _message(found, facts), fix, _ANSWERS if fix else _WHY[found.why] + taken)

    invalid = INVALID
    valid = VALID


def _constant(call: ast.Call, name: str, facts: Facts) -> Fix | None:
    """Compiled code takes the answer to a question that a run has seen each time."""
    asked = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    question = asked in host_api.QUESTIONS if not name else _QUESTION.fullmatch(name) is not None
    seen = facts.inference.observed(call) if question else None
    if seen is None or seen.looks < _LOOKS or not seen.kinds <= _ANSWERED or not seen.value:
        return None
    compiling = facts.writing.spelling("torch.compiler.is_compiling", call)
    value = seen.value.replace("{", "{{").replace("}", "}}")
    return Fix((Replace(call, Code(f"({value} if {compiling}() else {{0}})", (call,))),), Applicability.SAFE)


_QUESTION = re.compile(r"torch\.(?:\w+\.)*(?:is_\w+|\w+_enabled|typename|can_cast|get_float32_matmul_precision)")
_LOOKS = 2  # at an answer, until it counts as always the same
_ANSWERED = frozenset({"bool", "int", "str"})
_ANSWERS = "it answers the same whenever compiled code asks"
#: What a setting of PyTorch takes in, and the row of the table of what gets captured that tells of it.
_WAYS = {"torch.autograd.grad": "gradient"}
_HOST = "it runs on the host, whenever the code does"
_WHY = {
    Why.CALL: _HOST,
    Why.ROWS: "the data decides how many rows there are",
    Why.WEIGHTS: "layers belong into the constructor",
    Why.POWER: "`a ** b` is the same of tensors, and goes into the graph",
    Why.SPARSE: "no graph holds a sparse tensor",
}


def _message(found: Untraced, facts: Facts) -> str:
    what = f"`{short(found.what)}`"
    match found.why:
        case Why.CALL | Why.ROWS | Why.POWER:
            told = f"{what} is not traced: graph break"
        case Why.WEIGHTS:
            told = f"{what} makes weights in compiled code: graph break"
        case Why.SPARSE:
            told = f"{what} makes a sparse tensor: graph break"
    return f"{told} in a loop, and the function falls back to eager" if is_looped(found.node, facts.syntax) else told
