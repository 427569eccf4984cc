"""Settings of PyTorch that do away with a break or a recompile where no rule does, and what each costs.

Every setting was tried on torch 2.13, and ``tests/test_advice.py`` tries it again. One that PyTorch hints at is left
out where it did not help: ``capture_scalar_outputs`` for a branch, or for NumPy's random numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from patcher.diagnose.diagnosis import Advice

_CONFIG = "torch._dynamo.config"
_EVERYWHERE = "It holds for the whole process."
_CAPTURED = (
    f"{_EVERYWHERE} What is computed from it is not known while compiling: code that branches on it still breaks, or"
    " fails to compile. The capture settings alone made 16 of 49 models of transformers crash (torch 2.13)."
)

_LOGGER_METHOD = re.compile(r"method: <.*?>\.(\w+)")
_LOGGING_CALL = re.compile(r"\blogging\.(debug|info|warning|error|critical|exception|log)\(")
_RESIZED = re.compile(r"tensor '(.+?)' size mismatch at index (\d+)")
_ONE_OR_NONE = re.compile(r"\b2 <= (.+?)\.size\(\)\[(\d+)\]")
_LOCAL = re.compile(r"\bL\['(\w+)'\]")
_ATTRIBUTE = re.compile(r"\bself(\.\w+|\['?\w+'?\])+ == -?\d+\b(?!\.)")
_BRANCH = re.compile(r"\s*(if|elif|while)\b")
_NUMPY_RANDOM = re.compile(r"\b(np|numpy)\.random\b")


@dataclass(frozen=True)
class _Told:
    """What is known of a cause. ``text``: all of PyTorch's words; ``version``: None when it is not known."""

    text: str
    registry: str
    trigger: str
    version: tuple[int, int] | None
    limit_hit: bool

    def since(self, major: int, minor: int) -> bool:
        """Whether the torch of the run has what came with this version."""
        return self.version is None or self.version >= (major, minor)


def advice(
    reason: str,
    explanation: str = "",
    context: str = "",
    hints: Sequence[str] = (),
    registry: str = "",
    torch_version: str = "",
    *,
    trigger: str = "",
    limit_hit: bool = False,
) -> tuple[Advice, ...]:
    """The settings that would do away with a cause.

    ``reason``: PyTorch's line on a break, or the guard that failed. ``registry``: "GB0124" or "". ``torch_version``:
    "2.13.0+cpu", or "". ``trigger``: the line of source. ``limit_hit``: whether the recompile limit was hit.
    """
    told = _Told(
        text=" ".join((reason, explanation, context, *hints)),
        registry=registry,
        trigger=trigger,
        version=_version(torch_version),
        limit_hit=limit_hit,
    )
    return tuple(item for setting in _SETTINGS for item in setting(told))


def registry_id(url: str) -> str:
    """``GB0124`` of the address of its page in PyTorch's graph-break registry, or ""."""
    found = re.search(r"/(gb\d+)(?:\.html)?/?$", url.strip(), re.IGNORECASE)
    return found[1].upper() if found else ""


def _version(text: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def _scalars(told: _Told) -> Iterator[Advice]:
    # behind an `if` the break only moves on to the branch itself; NumPy's random numbers break all the same
    hopeless = _BRANCH.match(told.trigger) or _NUMPY_RANDOM.search(told.trigger)
    read = told.registry == "GB0124" or "_local_scalar_dense" in told.text or "Tensor.item" in told.text
    if read and not hopeless:
        effect = "`.item()`, `.tolist()`, `int()` and `float()` of a tensor become part of the graph."
        yield Advice(f"{_CONFIG}.capture_scalar_outputs = True", effect, _CAPTURED)


def _shapes(told: _Told) -> Iterator[Advice]:
    if told.registry == "GB0036" or "capture_dynamic_output_shape_ops" in told.text:
        effect = (
            "Operators whose output shape depends on data (`nonzero`, `x[mask]`, `unique`) stay in the graph; a loop"
            " over what they return still breaks it."
        )
        yield Advice(f"{_CONFIG}.capture_dynamic_output_shape_ops = True", effect, _CAPTURED)


def _printing(told: _Told) -> Iterator[Advice]:
    function = _printed(told)
    if not function:
        return
    refused = told.since(2, 14)  # before, the keyword arguments of a call were left out
    if not refused or not _has_keywords(told.trigger):
        keywords = "are refused: the call breaks the graph as before" if refused else "are lost"
        yield Advice(
            f"{_CONFIG}.reorderable_logging_functions.add({function})",
            f"`{function}` is called when the graph has run, and does not break it.",
            "A tensor that is changed in place afterwards shows its later values. Keyword arguments such as `end=`"
            f" {keywords}.",
        )
    if told.since(2, 11):
        yield Advice(
            f"{_CONFIG}.ignore_logging_functions.add({function})",
            f"Compiled code passes over `{function}`.",
            "Compiled code tells nothing any more.",
        )


def _has_keywords(trigger: str) -> bool:
    """Whether the line of a break is a call with keyword arguments, as far as one line tells."""
    try:
        (statement,) = ast.parse(trigger.strip()).body
    except (SyntaxError, ValueError):
        return False
    called = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(called, ast.Call) and bool(called.keywords)


def _printed(told: _Told) -> str:
    """The function that prints, as code spells it."""
    if re.search(r"builtin(?: operator)?:? `?print\b", told.text):
        return "print"
    if re.search(r"(?<!e\.g\. )\b_?warnings\.warn\b", told.text):  # PyTorch names it as an example of a builtin
        return "warnings.warn"
    # a function of `logging`, as PyTorch shows it: it trips over the handlers of the root logger
    call = _LOGGING_CALL.search(told.trigger)
    return f"logging.{call[1]}" if call and "LoggingLoggerVariable" in told.text else ""


def _loggers(told: _Told) -> Iterator[Advice]:
    method = _LOGGER_METHOD.search(told.text)
    if method and (told.registry == "GB0291" or "Logger" in told.text):
        name = "ignore_logging_functions" if told.since(2, 11) else "ignore_logger_methods"
        yield Advice(
            f"{_CONFIG}.{name}.add(logging.Logger.{method[1]})",
            f"Compiled code passes over `{method[1]}` of all loggers.",
            "Compiled code logs nothing any more with it, whatever the level.",
        )


def _autograd(told: _Told) -> Iterator[Advice]:
    if "trace_autograd_ops" in told.text:
        effect = "`torch.autograd.grad` and `Tensor.backward` become part of the graph."
        yield Advice(
            f"{_CONFIG}.trace_autograd_ops = True",
            effect,
            f"{_EVERYWHERE} It is off by default; compare the gradients.",
        )


def _recurrent(told: _Told) -> Iterator[Advice]:
    if "allow_rnn" in told.text:
        effect = "`nn.RNN`, `nn.GRU` and `nn.LSTM` become part of the graph."
        cost = "Experimental. With inductor on a CPU, `nn.LSTM` raised a TypeError (torch 2.13)."
        yield Advice(f"{_CONFIG}.allow_rnn = True", effect, cost)


def _integers(told: _Told) -> Iterator[Advice]:
    if told.since(2, 7) and ("allow_unspec_int_on_nn_module" in told.text or _ATTRIBUTE.search(told.text)):
        effect = "An integer attribute of a module that changes is compiled for all its values, the second time."
        cost = "It holds for the integers of all modules, those that configure layers too."
        yield Advice(f"{_CONFIG}.allow_unspec_int_on_nn_module = True", effect, cost)


def _parameters(told: _Told) -> Iterator[Advice]:
    if "force_parameter_static_shapes" in told.text:
        effect = "A parameter whose size changes is compiled for all its sizes, the second time."
        cost = "It holds for all parameters, so graphs may be made for sizes that never change."
        yield Advice(f"{_CONFIG}.force_parameter_static_shapes = False", effect, cost)


def _sizes(told: _Told) -> Iterator[Advice]:
    few = _ONE_OR_NONE.search(told.text)
    found = [(_named(tensor), dim) for tensor, dim in _RESIZED.findall(told.text) if "___" not in tensor]
    resized = sorted(dict.fromkeys(pair for pair in found if pair[0].isidentifier())) or found[:1]
    if resized and "force_parameter_static_shapes" not in told.text:
        yield Advice(
            "\n".join(f"torch._dynamo.maybe_mark_dynamic({tensor}, {dim})" for tensor, dim in resized),
            "Called before the compiled function, from code that is not compiled: what is marked is compiled for all"
            " sizes from the start.",
            "Sizes 0 and 1 are still compiled for themselves. Kernels for all sizes can be slower than for one.",
        )
        yield Advice(
            "torch.compile(..., dynamic=True)",
            "All dimensions and integers are compiled for all values from the start.",
            "Those that never change are too, and kernels for all sizes can be slower than for one. Sizes 0 and 1 are"
            " still compiled for themselves.",
        )
    if few:
        yield Advice(
            f"torch._dynamo.decorators.mark_unbacked({_named(few[1])}, {few[2]})",
            "Called before the compiled function, from code that is not compiled: sizes 0 and 1 are no special case.",
            "Code that compares this size breaks, or fails to compile.",
        )


def _named(source: str) -> str:
    """A tensor as code spells it, of what a guard calls it: ``x`` for ``L['x']``."""
    name = _LOCAL.sub(r"\1", source)
    return name if name.isidentifier() or re.fullmatch(r"[A-Za-z]\w*([.\[\]'\"]|\w)*", name) else "tensor"


def _limit(told: _Told) -> Iterator[Advice]:
    if told.limit_hit or told.registry == "GB0039" or re.search(r"hit config\.\w+_limit", told.text):
        name = "recompile_limit" if told.since(2, 7) else "cache_size_limit"
        yield Advice(
            f"{_CONFIG}.{name} = N",
            "A function is compiled up to N times before Dynamo leaves it to run eagerly (8 by default).",
            "A workaround: the cause stays, each variant takes its time and memory to compile.",
        )


_SETTINGS: tuple[Callable[[_Told], Iterator[Advice]], ...] = (
    _scalars,
    _shapes,
    _printing,
    _loggers,
    _autograd,
    _recurrent,
    _integers,
    _parameters,
    _sizes,
    _limit,
)
