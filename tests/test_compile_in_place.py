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

from patcher.edit.engine import patch
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
    assert since.text == OF_PYTORCH.replace("net = torch.compile(net)", "net.compile()").replace(
        "torch.compile(chain)", "chain.compile()"
    )


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
