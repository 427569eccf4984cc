"""What the rules about calls of torch.compile say of PyTorch: each claim is run."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn
from torch._dynamo.testing import CompileCounter

from patcher.engine import patch
from patcher.facts.compiling.in_place import WHOLE_SINCE
from patcher.settings import Settings
from rules.fc703_wrapped_module.rule import WrappedModule
from rules.fc704_discarded_compile.rule import DiscardedCompile
from tests.dynamo import INSTALLED, compiled, text_of


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.lin(x).relu()
        return out

    def twice(self, x: torch.Tensor) -> Any:
        return self(self(x))


class Called(Net):
    def __call__(self, x: torch.Tensor) -> Any:
        return self.lin(x)


class Broken(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.lin(x)
        torch._dynamo.graph_break()
        return x.relu()


def graphs(model: nn.Module, in_place: bool, run: Callable[[Any], object] = lambda m: m(torch.ones(2, 2))) -> int:
    torch._dynamo.reset()
    counter = CompileCounter()
    held: Any = model
    if in_place:
        model.compile(backend=counter)
    else:
        held = torch.compile(model, backend=counter)
    run(held)
    torch._dynamo.reset()
    return int(counter.frame_count)


@pytest.mark.parametrize("cls", [Net, Broken])
def test_in_place_compiles_the_same_graphs(cls: type[Net]) -> None:
    assert graphs(cls(), True) == graphs(cls(), False) > 0
    assert WrappedModule.costs == ()  # so no break is counted as gone


#: Whether this torch compiles in place whatever it does from outside.
WHOLE = INSTALLED >= WHOLE_SINCE


@pytest.mark.parametrize("make", [lambda: nn.Linear(2, 2), lambda: nn.Sequential(nn.Linear(2, 2))])
def test_what_in_place_compiles_of_pytorch_s_own_forward(make: Callable[[], nn.Module]) -> None:
    assert (graphs(make(), True), graphs(make(), False)) == (int(WHOLE), 1)


def test_in_place_compiles_nothing_of_another_call() -> None:
    assert (graphs(Called(), True), graphs(Called(), False)) == (0, 1)


OF_PYTORCH = """import torch
from torch import nn


class Chain(nn.Sequential):
    pass


class Net(nn.Module):
    @torch.compile
    def forward(self, x):
        return x + 1


def script(x):
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net = torch.compile(net)
    chain = Chain(nn.Linear(2, 2))
    torch.compile(chain)
    compiled = Net()
    compiled.compile()
    return net(chain(compiled(x)))
"""


def test_what_is_said_of_pytorch_s_own_forward_is_that_of_the_version() -> None:
    before, since = (
        patch(OF_PYTORCH, "m.py", (WrappedModule(), DiscardedCompile()), Settings(unsafe=True, target_torch=version))
        for version in ((2, 13), WHOLE_SINCE)
    )
    assert before.text == OF_PYTORCH
    assert any("PyTorch's would not be compiled" in f.assumption for f in before.found)
    assert any(f.message.endswith("this call changes nothing") for f in before.found)
    assert since.text == OF_PYTORCH.replace("net = torch.compile(net)", "net.compile()").replace(
        "torch.compile(chain)", "chain.compile()"
    )
    assert any(f.message.endswith("one of the two counts for nothing") for f in since.found)


def test_a_method_does_not_know_of_the_wrapper() -> None:
    assert graphs(Net(), False, lambda m: m.twice(torch.ones(2, 2))) == 0
    assert graphs(Net(), True, lambda m: m.twice(torch.ones(2, 2))) > 0


def test_forward_by_its_name_is_compiled_by_the_wrapper_alone() -> None:
    assert graphs(Net(), False, lambda m: m.forward(torch.ones(2, 2))) == 1
    assert graphs(Net(), True, lambda m: m.forward(torch.ones(2, 2))) == 0


def test_a_copy_is_not_compiled_in_place() -> None:
    assert graphs(Net(), True, lambda m: copy.deepcopy(m)(torch.ones(2, 2))) == 0


def test_names_and_types_stay_in_place() -> None:
    net, plain = Net(), list(Net().state_dict())
    wrapped = torch.compile(net, backend="eager")
    assert list(wrapped.state_dict()) == [f"_orig_mod.{key}" for key in plain]
    assert not isinstance(wrapped, Net)
    assert [name for name, _ in wrapped.named_parameters()] == [f"_orig_mod.{key}" for key in plain]
    net.compile(backend="eager")
    assert list(net.state_dict()) == plain
    assert isinstance(net, Net)


def test_attributes_are_those_of_the_module_either_way() -> None:
    net = Net()
    wrapped = torch.compile(net, backend="eager")
    wrapped.width = 3
    assert wrapped.eval() is wrapped
    assert (net.width, net.training, wrapped.lin) == (3, False, net.lin)


def twice(first: str, second: str) -> tuple[int, int, str]:
    """Graphs of the two calls that compile one model, and what comes out; ``wrap``, ``place`` or ``forward`` each."""
    torch._dynamo.reset()
    counters = CompileCounter(), CompileCounter()
    model: Any = Net()
    for how, counter in zip((first, second), counters, strict=True):
        if how == "wrap":
            model = torch.compile(model, backend=counter)
        elif how == "place":
            model.compile(backend=counter)
        else:
            model.forward = torch.compile(model.forward, backend=counter)
    model(torch.ones(2, 2))
    torch._dynamo.reset()
    return int(counters[0].frame_count), int(counters[1].frame_count), type(model).__name__


def test_what_is_compiled_twice() -> None:
    assert twice("wrap", "wrap") == (0, 1, "function")
    assert twice("wrap", "place")[:2] == (1, 0)
    assert twice("place", "wrap")[:2] == (1, 0)
    assert twice("place", "place")[:2] == (0, 1)
    assert twice("forward", "wrap")[:2] == (1, 0)
    assert twice("forward", "place")[:2] == (1, 0)


def test_a_decorator_on_forward_and_a_call_for_an_instance() -> None:
    torch._dynamo.reset()
    counter = CompileCounter()

    class Decorated(Net):
        forward = torch.compile(Net.forward, backend=counter)

    wrapped, placed = Decorated(), Decorated()
    assert graphs(wrapped, False) == 1
    assert graphs(placed, True) == int(WHOLE)  # by the call for the instance, or by the decorator
    assert counter.frame_count == 1 - int(WHOLE)
    counter.clear()
    Decorated()(torch.ones(2, 2))
    operators = counter.op_count
    hooked = Decorated()
    hooked.register_forward_hook(lambda module, given, out: out * 2)
    torch._dynamo.reset()
    hooked(torch.ones(2, 2))
    assert counter.op_count == 2 * operators > 0  # the hook's multiplication is in no graph


def test_an_instance_of_a_decorated_class_cannot_be_compiled() -> None:
    class Decorated(Net):
        pass

    class Below(torch.compile(Decorated, backend="eager")):  # type: ignore[misc]
        pass

    for cls in (Decorated, Below):
        with pytest.raises(AssertionError):
            torch.compile(cls(), backend="eager")
        with pytest.raises(AssertionError):
            cls().compile(backend="eager")


def test_but_one_whose_class_has_a_call_of_its_own_can_be() -> None:
    class Decorated(Net):
        pass

    class Below(torch.compile(Decorated, backend="eager")):  # type: ignore[misc]
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return nn.Module.__call__(self, x)  # type: ignore[no-any-return]

    torch.compile(Below(), backend="eager")(torch.ones(2, 2))
    source = """import torch
from torch import nn


@torch.compile
class Decorated(nn.Module):
    def forward(self, x):
        return x + 1


class Below(Decorated):
    {}


def script(x):
    model = Below()
    model.compile()
    return model(x)
"""
    rules = (WrappedModule(),)
    own = "def __call__(self, x):\n        return nn.Module.__call__(self, x)"
    told = [patch(source.format(body), "m.py", rules, Settings()).found for body in ("pass", own)]
    assert [any("is compiled already" in f.message for f in found) for found in told] == [True, False]


MAY_BE_TWICE = """import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x + 1


def script(flag, other, x):
    model = Net()
    {}
    return model(x)
"""
ONE, TWO = "model = torch.compile(model)", "model = torch.compile(model, dynamic=True)"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((f"if flag:\n        {ONE}", TWO), "line 13, where `flag` holds"),
        ((f"if flag:\n        pass\n    else:\n        {ONE}", TWO), "line 15, where `flag` does not hold"),
        ((f"if flag:\n        {ONE}\n    else:\n        {TWO}",), ""),
        ((f"if flag:\n        {ONE}\n        return model", TWO), ""),
        ((f"if flag:\n        {ONE}", f"if not flag:\n        {TWO}"), ""),
        ((f"if flag:\n        {ONE}\n        model = Net()", TWO), ""),
        ((f"if flag:\n        if other:\n            {ONE}", TWO), ""),  # two tests: not told
    ],
)
def test_what_a_flag_may_have_compiled_already_is_told(lines: tuple[str, ...], told: str) -> None:
    found = patch(MAY_BE_TWICE.format("\n    ".join(lines)), "m.py", (WrappedModule(),), Settings()).found
    already = [f.message for f in found if "is compiled already" in f.message]
    assert [told in message for message in already] == [True] * bool(told)


@pytest.mark.parametrize("example", [pytest.param(e, id=e.title) for e in WrappedModule.invalid if e.after])
def test_a_wrapped_module_has_its_graphs_in_place(example: Any) -> None:
    before, after = (compiled(text_of(source, example.run)) for source in (example.before, example.after))
    assert after.graphs == before.graphs > 0 or (example.unsafe and after.graphs > before.graphs)
    assert after.operators >= before.operators


@pytest.mark.parametrize("example", [pytest.param(e, id=e.title) for e in DiscardedCompile.invalid])
def test_a_discarded_compile_has_no_graphs(example: Any) -> None:
    assert compiled(text_of(example.before, example.run)).graphs == 0
    if example.after is not None:
        assert compiled(text_of(example.after, example.run)).graphs > 0
