"""The settings that are advised: each is made on a model that breaks as they say, and does what it says."""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
import torch._dynamo
from torch import nn

from patcher.diagnose.advice import advice, registry_id
from tests.dynamo import INSTALLED, Call, Counts, Raised, count, equal

X = torch.arange(8.0).reshape(2, 4)
LOG = logging.getLogger("advised")
PATCHED: dict[str, Any] = {
    "capture_scalar_outputs": False,
    "capture_dynamic_output_shape_ops": False,
    "trace_autograd_ops": False,
    "allow_rnn": False,
    "allow_unspec_int_on_nn_module": False,
    "force_parameter_static_shapes": True,
    "nested_graph_breaks": False,
}


#: A function that is called when the graph has run gets no keyword arguments; later versions call such a one as ever.
KEYWORDS_ARE_LOST = INSTALLED < (2, 14)


class Words(NamedTuple):
    """What PyTorch says about a break, in its parts."""

    reason: str
    explanation: str
    context: str
    hints: tuple[str, ...]
    registry: str


class Told(logging.Handler):
    """Keeps the messages."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextlib.contextmanager
def settings(*flags: str) -> Iterator[None]:
    """The flags as code, run, and undone."""
    config: Any = torch._dynamo.config
    with config.patch(**PATCHED, reorderable_logging_functions=set(), ignore_logging_functions=set()):
        for flag in flags:
            exec(flag, {"torch": torch, "logging": logging, "warnings": warnings})
        yield


def messages(fn: Callable[..., Any], calls: list[Call]) -> list[str]:
    """What Dynamo logs while the calls are made."""
    torch._dynamo.reset()
    torch._dynamo.utils.reset_graph_break_dup_checker()
    told = Told()
    torch._logging.set_logs(graph_breaks=True, recompiles=True)
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("torch")]
    saved = [(logger, logger.handlers) for logger in (*loggers, logging.getLogger("torch"))]
    try:
        for logger, _ in saved:
            logger.handlers = [told]
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for call in calls:
                torch.compile(fn, backend="eager")(*call)
    finally:
        for logger, handlers in saved:
            logger.handlers = handlers
        torch._logging.set_logs()
        torch._dynamo.reset()
    return told.messages


def words(fn: Callable[..., Any], calls: list[Call]) -> Words:
    """Of the first break."""
    text = next(message for message in messages(fn, calls) if "Graph Break Reason" in message)

    def part(pattern: str) -> str:
        found = re.search(pattern, text, re.DOTALL)
        return found[1].strip() if found else ""

    return Words(
        reason=part(r"Graph Break Reason:[^\n]*\n\n([^\n]*)\n"),
        explanation=part(r"Explanation: (.*?)\n  (?:Hint|Dev)"),
        context=part(r"Developer debug context: (.*?)\n"),
        hints=tuple(re.findall(r"Hint: (.*)", text)),
        registry=registry_id(part(r"visit: (\S+)")),
    )


def guards(fn: Callable[..., Any], calls: list[Call]) -> list[str]:
    """The guards that have failed, the first of each recompile."""
    found = (re.search(r"\n\s+- (.*)", text) for text in messages(fn, calls) if "Recompiling function" in text)
    return [guard[1] for guard in found if guard]


# -- breaks


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(4, 4)


class Item(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.sum().item()
        return self.inner(x) * n


class Lists(Layer):
    def forward(self, x: torch.Tensor, sizes: torch.Tensor) -> list[torch.Tensor]:
        return [part + 1 for part in torch.split(self.inner(x), sizes.tolist(), dim=1)]


class Masked(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        return y.sum() + x[x > 2].sum()


class Printing(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        print("sum", y.sum())  # noqa: T201
        return y + 1


class Warning_(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        warnings.warn("odd")  # noqa: B028
        return y + 1


class Levelled(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        warnings.warn("odd", stacklevel=2)
        return y + 1


class Logging(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        LOG.warning("odd")
        return y + 1


class RootLogging(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        logging.warning("odd")
        return y + 1


class Gradient(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            return torch.autograd.grad(self.inner(x).sum(), self.inner.weight)[0] + 1


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.LSTM(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)[0] + 1


class Broken(NamedTuple):
    """A module that breaks, and the settings by name that are expected for it."""

    module: type[nn.Module]
    calls: list[Call]
    flags: tuple[str, ...]
    trigger: str = ""


BROKEN = {
    "item": Broken(Item, [(X,), (X + 1,)], ("capture_scalar_outputs = True",)),
    "tolist": Broken(
        Lists,
        [(X, torch.tensor([1, 3])), (X, torch.tensor([2, 2])), (X, torch.tensor([0, 4]))],
        ("capture_scalar_outputs = True",),
    ),
    "mask": Broken(Masked, [(X,), (X + 3,), (X - 20,)], ("capture_dynamic_output_shape_ops = True",)),
    "print": Broken(
        Printing, [(X,)], ("reorderable_logging_functions.add(print)", "ignore_logging_functions.add(print)")
    ),
    "warn": Broken(
        Warning_,
        [(X,)],
        ("reorderable_logging_functions.add(warnings.warn)", "ignore_logging_functions.add(warnings.warn)"),
        trigger="warnings.warn(message)",
    ),
    "warn with keywords": Broken(
        Levelled,
        [(X,)],
        (
            *(("reorderable_logging_functions.add(warnings.warn)",) if KEYWORDS_ARE_LOST else ()),
            "ignore_logging_functions.add(warnings.warn)",
        ),
        trigger='warnings.warn("odd", stacklevel=2)',
    ),
    "logger": Broken(Logging, [(X,)], ("ignore_logging_functions.add(logging.Logger.warning)",)),
    "logging": Broken(
        RootLogging,
        [(X,)],
        ("reorderable_logging_functions.add(logging.warning)", "ignore_logging_functions.add(logging.warning)"),
        trigger='logging.warning("odd")',
    ),
    "autograd": Broken(Gradient, [(X,)], ("trace_autograd_ops = True",)),
    "lstm": Broken(Recurrent, [(X.unsqueeze(0),)], ("allow_rnn = True",)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_advised_removes_the_break(name: str) -> None:
    module, calls, flags, trigger = BROKEN[name]
    with settings():
        before = count(module(), calls)
        advised = advice(*words(module(), calls), torch.__version__, trigger=trigger)
    assert before.breaks > 0
    assert tuple(item.flag.removeprefix("torch._dynamo.config.") for item in advised) == flags
    for item in advised:
        with settings(item.flag):
            after = count(module(), calls)
        assert (after.breaks, after.dropped_frames) == (0, 0), after
        assert after.graphs == 1, after
        assert _same(before, after) is None
        assert item.effect and item.cost


def _same(before: Counts, after: Counts) -> str | None:
    assert not any(isinstance(output, Raised) for output in before.outputs)
    return equal(before.outputs, after.outputs)


class Branch(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum().item() > 3:
            return self.inner(x) * 2
        return self.inner(x)


class Equal(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) if torch.equal(x, x + 1) else x


class NumpyRandom(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        import numpy as np

        return self.inner(x) + np.random.rand()


class OfAnotherLanguage(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + zlib.crc32(b"x")


@pytest.mark.parametrize(
    ("module", "trigger"),
    [
        (OfAnotherLanguage, 'return self.inner(x) + zlib.crc32(b"x")'),
        (Branch, "if x.sum().item() > 3:"),
        (Equal, "return self.inner(x) if torch.equal(x, x + 1) else x"),
        (NumpyRandom, "return self.inner(x) + np.random.rand()"),
    ],
)
def test_what_does_not_help_is_not_advised(module: type[nn.Module], trigger: str) -> None:
    with settings():
        told = words(module(), [(X,)])
    assert advice(*told, torch.__version__, trigger=trigger) == ()
    with settings("torch._dynamo.config.capture_scalar_outputs = True"):
        assert count(module(), [(X,)]).breaks > 0  # else it should be


def test_a_branch_on_a_tensor_has_no_setting() -> None:
    told = Words("Data-dependent branching", "Detected data-dependent branching", "", ("Use `torch.cond`.",), "GB0170")
    assert advice(*told, "2.13.0+cpu", trigger="if x.sum() > 0:") == ()


def _innermost(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()


def _between(x: torch.Tensor) -> torch.Tensor:
    return _innermost(x * 2).tan()


def outermost(x: torch.Tensor) -> torch.Tensor:
    return _between(x + 1) + 1


class PrintedThenChanged(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        print(y.tolist() if not torch.compiler.is_compiling() else y, end="|")  # noqa: T201
        y += 1
        return y


def test_what_it_costs_to_print_late(capsys: pytest.CaptureFixture[str]) -> None:
    advised = advice("Failed to trace builtin operator `print`", torch_version=torch.__version__)[0]
    ones = torch.ones(1, 4)
    with settings():
        PrintedThenChanged()(ones)
        assert capsys.readouterr().out == "[[2.0, 2.0, 2.0, 2.0]]|"
    assert ("are lost" in advised.cost) is KEYWORDS_ARE_LOST
    with settings(advised.flag):
        assert (count(PrintedThenChanged(), [(ones,)]).breaks == 0) is KEYWORDS_ARE_LOST
        late, now = "tensor([[3., 3., 3., 3.]])\n", "tensor([[2., 2., 2., 2.]])|"
        assert capsys.readouterr().out == (late if KEYWORDS_ARE_LOST else now)


# -- recompiles


class Counting(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.step += 1
        return self.inner(x) * self.step


def weighted(x: torch.Tensor, weight: nn.Parameter) -> torch.Tensor:
    return nn.functional.linear(x, weight)


def test_an_integer_of_a_module() -> None:
    calls = [(X,)] * 6
    with settings():
        before = count(Counting(), calls)
        told = guards(Counting(), calls)
    assert before.recompiles == 5
    (item,) = advice(told[0], torch_version=torch.__version__)
    with settings(item.flag):
        assert count(Counting(), calls).recompiles == 1


@pytest.mark.parametrize(
    ("guard", "advised"),
    [
        ("self.step == 3", True),
        ("0/1: self._modules['cache'].step == 3  # y", True),
        ("self.scale == 0.5", False),
        ("len(self.layers) == 2", False),
        ("step == 3", False),
    ],
)
def test_an_integer_of_a_module_is_known_by_its_guard(guard: str, advised: bool) -> None:
    assert bool(advice(guard, torch_version="2.13.0")) is advised
    assert advice(guard, torch_version="2.6.0") == ()


def test_a_parameter_of_another_size() -> None:
    calls = [(X, nn.Parameter(torch.ones(size, 4))) for size in (2, 3, 5, 6)]
    with settings():
        before = count(weighted, calls)
        told = guards(weighted, calls)
    assert before.recompiles == 3
    (item,) = advice(told[0], torch_version=torch.__version__)
    with settings(item.flag):
        assert count(weighted, calls).recompiles == 1


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * x.shape[0]


def resized(flag: str = "") -> int:
    """Recompiles for batches of four sizes, the last of one; each is marked as the flag says."""
    calls = []
    for size in (2, 4, 6, 1):
        x = torch.ones(size, 4)
        exec(flag)
        calls.append((x,))
    return count(scaled, calls).recompiles


def test_sizes_that_vary() -> None:
    told = guards(scaled, [(torch.ones(size, 4),) for size in (2, 4, 6, 1)])
    marked, dynamic = advice(told[0], torch_version=torch.__version__)
    assert marked.flag == "torch._dynamo.maybe_mark_dynamic(x, 0)"
    (unbacked,) = advice(told[-1], torch_version=torch.__version__)
    assert unbacked.flag == "torch._dynamo.decorators.mark_unbacked(x, 0)"
    assert [resized(), resized(marked.flag), resized(unbacked.flag)] == [2, 1, 0]
    assert dynamic.flag == "torch.compile(..., dynamic=True)"
    sizes = [(torch.ones(size, 4),) for size in (2, 4, 6, 1)]
    hooked = count(scaled, sizes, hook=lambda fn, backend: torch.compile(fn, backend=backend, dynamic=True))
    assert hooked.recompiles == 1


@pytest.mark.parametrize(
    ("guard", "flag"),
    [
        ("0/0: tensor 'L['x']' size mismatch at index 1. expected 2, actual 4", "maybe_mark_dynamic(x, 1)"),
        ("tensor 'cache['k']' size mismatch at index 2. expected 2, actual 4", "maybe_mark_dynamic(cache['k'], 2)"),
        ("tensor 'f(x).y' size mismatch at index 2. expected 2, actual 4", "maybe_mark_dynamic(tensor, 2)"),
        ("0/1: 2 <= L['ids'].size()[0]  # y = ids + 1", "decorators.mark_unbacked(ids, 0)"),
        ("0/1: 2 <= images[0].size()[3]  # y", "decorators.mark_unbacked(images[0], 3)"),
    ],
)
def test_the_tensor_is_named_as_in_code(guard: str, flag: str) -> None:
    assert advice(guard, torch_version="2.13.0")[0].flag == f"torch._dynamo.{flag}"


def test_a_guard_that_no_setting_is_about() -> None:
    assert advice("0/0: len(images) == 2", torch_version="2.13.0") == ()


def test_a_limit_that_was_hit() -> None:
    calls = [(X, [X] * items) for items in range(1, 12)]

    def joined(x: torch.Tensor, items: list[torch.Tensor]) -> torch.Tensor:
        return x + sum(items)

    (item,) = advice("len(items) == 1", torch_version=torch.__version__, limit_hit=True)
    with settings():
        before = count(joined, calls)
    with torch._dynamo.config.patch(recompile_limit=8):
        exec(item.flag.replace("= N", "= 20"))
        after = count(joined, calls)
    assert (before.limit_hits, after.limit_hits) == (1, 0)
    assert "8 by default" in item.effect and torch._dynamo.config.recompile_limit == 8
    assert item in advice("torch._dynamo hit config.recompile_limit (8)", torch_version=torch.__version__)


# -- versions and the registry


@pytest.mark.parametrize(
    ("version", "flags"),
    [
        ("2.6.0", ("ignore_logger_methods.add(logging.Logger.info)", "cache_size_limit = N")),
        ("2.7.1+cu126", ("ignore_logger_methods.add(logging.Logger.info)", "recompile_limit = N")),
        ("2.11.0", ("ignore_logging_functions.add(logging.Logger.info)", "recompile_limit = N")),
        ("", ("ignore_logging_functions.add(logging.Logger.info)", "recompile_limit = N")),
        ("2.x", ("ignore_logging_functions.add(logging.Logger.info)", "recompile_limit = N")),
    ],
)
def test_names_are_those_of_the_version(version: str, flags: tuple[str, ...]) -> None:
    context = "method: <Logger a.b (INFO)>.info, args: [ConstantVariable(str: 'x')], kwargs: {}"
    told = advice("Logger not supported", context=context, torch_version=version, limit_hit=True)
    assert tuple(item.flag.removeprefix("torch._dynamo.config.") for item in told) == flags


def test_what_a_version_does_not_have_is_not_advised() -> None:
    assert len(advice("builtin: print [<class 'ConstantVariable'>] False", torch_version="2.6.0")) == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html", "GB0170"),
        ("https://example.org/gb/GB9186/", "GB9186"),
        ("https://example.org/gb/", ""),
        ("", ""),
    ],
)
def test_the_id_in_the_registry(url: str, shown: str) -> None:
    assert registry_id(url) == shown


@pytest.mark.parametrize(
    "flag", [*PATCHED, "reorderable_logging_functions", "ignore_logger_methods", "recompile_limit"]
)
def test_the_settings_exist(flag: str) -> None:
    assert hasattr(torch._dynamo.config, flag)
