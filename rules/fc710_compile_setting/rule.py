"""FC710: a model that a setting of PyTorch compiles better, and a program that does not set it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.rule import Applicability, Finding, Fix, Rule, Where
from rules.fc710_compile_setting.examples import INVALID, VALID
from rules.fc710_compile_setting.recurrent import SETTING, recurrent
from rules.fc710_compile_setting.writing import SettingPlaces

_TRIED = "`prove --unsafe` finds out whether it helps this model"


class CompileSetting(Rule):
    """A setting of PyTorch that a run has shown to help, and that is not set where the model is compiled.

    What it does:
        Writes the setting where the model is compiled. ``torch._dynamo.config.capture_scalar_outputs = True`` becomes a
        line before ``torch.compile(model)`` or ``model.compile()``; what is an argument of the call (``dynamic=True``)
        goes into it. It needs a run: ``prove --unsafe`` tries the settings that the causes call for, with the source
        fixes and on top of them, and keeps those that help; ``optimize`` and ``tune`` also try arguments. Without a
        run it tells of ``nn.LSTM``, ``nn.GRU`` and ``nn.RNN``, which only a setting takes into a graph: where compiled
        code first reads the attribute that holds one. Where the project compiles models of several classes, those that
        have nothing to do with the case's are left as they are.
        Where nothing in the given files compiles, what to write is printed.
        Where ``tune`` has found that its blocks are better compiled one by one, the call becomes a loop over them.

    Why it breaks compilation:
        By default Dynamo takes no number that is read from a tensor (``capture_scalar_outputs``), no result whose size
        depends on data (``capture_dynamic_output_shape_ops``) and no ``nn.LSTM``, ``nn.GRU`` or ``nn.RNN``
        (``allow_rnn``) into a graph: it breaks there. Measured on torch 2.13 with 25 classes of 28 packages: these
        three, and no edit, take 209 extra graphs to 61.

    Fix safety:
        Unsafe: a setting holds for all that the process compiles, not for this model alone. What is in a graph as a
        symbol has no value: code that branches on it still breaks, or fails to compile. That is why only a run decides;
        a setting with which the model fails or gives other results is taken back.

    References:
        PyTorch, ``torch._dynamo.config``; "Dynamic shapes" (data-dependent operators, unbacked symbols).
    """

    code = "FC710"
    name = "compile-setting"
    costs = ("graph break", "recompilation")
    triggers = (b"compile", b"LSTM", b"GRU", b"RNN")
    listens_to = (
        ast.Attribute,
        ast.Call,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
    )
    where = Where.ANYWHERE

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it compiles something, and settings of a run are not set there."""
        if isinstance(node, ast.Attribute) and facts.compiled(node) and (run := recurrent(node, facts)):
            where, layer = run
            message = f"`{layer}` breaks the graph. Set `torch._dynamo.config.{SETTING} = True`"
            yield Finding(where, message, assumption=_TRIED)
        if facts.settings.torch_settings:
            decorators = [d for d in getattr(node, "decorator_list", []) if not isinstance(d, ast.Call)]
            for site in [node] if isinstance(node, ast.Call) else decorators:
                yield from self._unset(site, facts)

    def _unset(self, site: ast.expr, facts: Facts) -> Iterator[Finding]:
        """What is not set at a call, or at a decorator."""
        written = facts.ask(SettingPlaces).at(site)
        if written is None:
            return
        told = " and ".join(f"`{setting.told}`" for setting in written.settings)
        one_by_one = any(setting.kind == "blocks" for setting in written.settings)
        gain = "is a better way to compile this" if one_by_one else "makes larger graphs of what is compiled here"
        message = f"a run has shown that {told} {gain}"
        if not written.edits:
            yield Finding(site, message, assumption=written.why_not)
            return
        fix = Fix(written.edits, Applicability.UNSAFE)
        assumption = "all that this process compiles is right with it as well"
        yield Finding(site, message, fix, "what is around the blocks may run eagerly" if one_by_one else assumption)

    invalid = INVALID

    valid = VALID
