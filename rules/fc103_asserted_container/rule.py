"""FC103: an assertion that a list, tuple or dict is not empty, or that there is a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.rule import Applicability, Code, Finding, Fix, Replace, Rule
from rules.fc103_asserted_container.containers import Containers
from rules.fc103_asserted_container.examples import INVALID, VALID


class AssertedContainer(Rule):
    """``assert tensors, "nothing given"``, ``assert self.decoder``: a list or a module as what is asserted.

    What it does:
        Asks for the length: ``assert len(tensors) > 0, "nothing given"``; where ``len`` may be another name, for
        ``True if tensors else False``. Of a module, and of a list of them, asks for the truth: ``bool(self.layers)``.

    Why it breaks compilation:
        Dynamo takes the condition of an assertion, where it has no message or one that is a literal, for a tensor that
        it can check in the graph, and hands it to an operator. A list of tensors is none, nor is a module:
        the graph breaks, at "TypeError when making fake tensor call" or "Failed to convert args/kwargs to proxy", and
        in a loop the whole frame is given up. ``if not tensors: raise`` does no harm, nor does a length.

    Fix safety:
        Safe where the condition is ``*args``, ``**kwargs`` or a local name that only displays, comprehensions,
        ``list()``, ``tuple()``, ``dict()`` and ``sorted()`` are assigned to: these are true when they have a length,
        and the error stays what it is. Safe for attributes that the class sets to modules (a ``ModuleList``, say) or to
        None: an assertion asks for the truth anyway, and an attribute that is registered as a module takes no tensor.
        Unsafe for parameters that are annotated as a container, which an annotation does not hold, and for attributes
        that hold one. Left alone: lists of literals, messages that are put together, and the parts of an ``and`` or
        ``or`` before the last one, which do not break. Of what has several parts the last one is asked for its length
        or truth (``assert self.ready and bool(self.layers)``).

    References:
        PyTorch, "Failed to convert args/kwargs to proxy" (graph break GB0055).
    """

    code = "FC103"
    name = "asserted-container"
    triggers = (b"assert",)
    listens_to = (ast.Assert,)
    costs = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report the assertion ``node`` when its condition is a container."""
        assert isinstance(node, ast.Assert)
        if not isinstance(node.msg, ast.Constant | None):
            return
        asserted = _last(node.test)
        layers, doubt = facts.ask(Containers).holds_layers(asserted), facts.ask(Containers).why_not(asserted)
        if doubt is None and not layers:
            return
        message = f"the assertion takes `{ast.unparse(asserted)}` for a tensor: graph break"
        if layers:
            asked = "bool({0})" if facts.syntax.is_builtin(ast.Name("bool")) else "True if {0} else False"
            yield Finding(node, message, Fix((Replace(asserted, Code(asked, (asserted,))),)))
            return
        safety = Applicability.UNSAFE if doubt else Applicability.SAFE
        length = facts.syntax.is_builtin(ast.Name("len"))  # not for sure below `from torch.nn import *`
        code = Code("len({0}) > 0" if length else "True if {0} else False", (asserted,))
        yield Finding(node, message, Fix((Replace(asserted, code),), safety), doubt or "")

    invalid = INVALID
    valid = VALID


def _last(test: ast.expr) -> ast.expr:
    """What Dynamo meets last where all of ``test`` is evaluated: the parts before that are jumps as in an ``if``."""
    return _last(test.values[-1]) if isinstance(test, ast.BoolOp) else test
