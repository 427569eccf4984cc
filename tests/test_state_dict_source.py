"""The functions that are written into the user's code: names of state dicts, with and without torch.compile."""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from patcher.state_dict_source import MATCH, MATCH_NAME, UNCOMPILE, UNCOMPILE_NAME


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.norm(self.lin(x)).relu())


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(3, 3)
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.head = nn.Linear(3, 3, bias=False)
        self.head.weight = self.embed.weight  # tied

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return torch.as_tensor(self.head(x))


class Parallel(nn.Module):
    """Names what is below it as DistributedDataParallel does."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.module(x))


def wrapped(model: nn.Module) -> nn.Module:
    compiled = torch.compile(model, backend="eager")
    assert isinstance(compiled, nn.Module)
    return compiled


def whole() -> nn.Module:
    return wrapped(Net())


def block_by_block() -> nn.Module:
    net = Net()
    for i, block in enumerate(net.blocks):
        net.blocks[i] = wrapped(block)
    return net


def nested() -> nn.Module:
    return wrapped(block_by_block())


def one_layer() -> nn.Module:
    net = Net()
    net.embed = wrapped(net.embed)  # type: ignore[assignment]
    return net


def in_place() -> nn.Module:
    net = Net()
    net.compile(backend="eager")
    return net


WAYS = [Net, whole, block_by_block, nested, one_layer, in_place]
each_way = pytest.mark.parametrize("build", WAYS)


def functions() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(UNCOMPILE + MATCH, "written", "exec"), names)
    return names


uncompile: Callable[..., Any] = functions()[UNCOMPILE_NAME]
match: Callable[..., Any] = functions()[MATCH_NAME]


def trained(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    model = build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    model.train()
    model(torch.randn(8, 3))  # statistics of the norms
    return model.eval()


def prefixed(state: Any) -> list[str]:
    return [key for key in state if "_orig_mod" in key.split(".")]


def test_each_is_one_function_of_the_oldest_python() -> None:
    for text, name in ((UNCOMPILE, UNCOMPILE_NAME), (MATCH, MATCH_NAME)):
        (function,) = ast.parse(text, feature_version=(3, 8)).body
        assert isinstance(function, ast.FunctionDef) and function.name == name
        assert text.endswith("\n") and max(map(len, text.splitlines())) <= 106


@each_way
def test_the_names_are_those_of_the_model_itself(build: Callable[[], nn.Module]) -> None:
    state = trained(build).state_dict()
    plain = uncompile(state)
    assert list(plain) == list(Net().state_dict())
    assert all(a is b for a, b in zip(plain.values(), state.values(), strict=True))
    assert type(plain) is type(state)
    assert (plain is state) == (not prefixed(state))
    assert uncompile(plain) is plain


@each_way
def test_what_is_known_of_the_parts_is_kept(build: Callable[[], nn.Module]) -> None:
    """The version of a BatchNorm is 2: what has none is taken for older, and is given a number of batches anew."""
    assert uncompile(build().state_dict())._metadata == Net().state_dict()._metadata


@each_way
def test_prefixes_of_a_parallel_model_stay(build: Callable[[], nn.Module]) -> None:
    expected = list(Parallel(Net()).state_dict())
    assert list(uncompile(Parallel(build()).state_dict())) == expected
    assert list(uncompile(wrapped(Parallel(build())).state_dict())) == expected


def test_distributed_data_parallel_around_and_below() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        x = torch.linspace(-1, 1, 12).view(4, 3)
        for build in (whole, block_by_block, Net):
            around, below = DistributedDataParallel(trained(build)), wrapped(DistributedDataParallel(trained(build)))
            state = uncompile(around.state_dict())
            assert list(state) == list(uncompile(below.state_dict())) == [f"module.{k}" for k in Net().state_dict()]
            for p in below.parameters():
                nn.init.zeros_(p)
            below.load_state_dict(match(state, below))
            assert torch.equal(around.eval()(x), below.eval()(x))
    finally:
        dist.destroy_process_group()


def test_names_in_a_row_and_what_only_looks_like_one() -> None:
    state = {"_orig_mod.module._orig_mod.blocks.0._orig_mod.w": 1, "my_orig_mod.w": 2, "a._orig_mod_.w": 3}
    assert uncompile(state) == {"module.blocks.0.w": 1, "my_orig_mod.w": 2, "a._orig_mod_.w": 3}
    tensor = {"_orig_mod": 1, "a._orig_mod": 2}  # the name of a tensor
    assert uncompile(tensor) is tensor
    numbered = {0: 1, "w": 2}
    assert uncompile(numbered) is numbered
    empty: dict[str, int] = {}
    assert uncompile(empty) is empty


def test_two_names_that_become_one_are_an_error() -> None:
    with pytest.raises(ValueError, match="two names"):
        uncompile(OrderedDict({"_orig_mod.w": 1, "w": 2}))
    with pytest.raises(ValueError, match="two names"):
        match({"a._orig_mod.w": 1, "_orig_mod.a.w": 2}, Net())


@each_way
@pytest.mark.parametrize("into", WAYS)
def test_saved_from_any_and_loaded_into_any(
    build: Callable[[], nn.Module], into: Callable[[], nn.Module], tmp_path: Path
) -> None:
    """Names as torch.compile has left them, or without: both load, strictly, and the outputs are the same."""
    model, x = trained(build), torch.linspace(-1, 1, 12).view(4, 3)
    for n, state in enumerate((model.state_dict(), uncompile(model.state_dict()))):
        torch.save(state, tmp_path / f"{n}.pt")
        loaded, other = torch.load(tmp_path / f"{n}.pt"), trained(into, seed=1)
        assert not torch.equal(other(x), model(x))
        same = list(loaded) == list(other.state_dict())
        matched, expected = match(loaded, other), other.state_dict()
        assert all(matched._metadata[path] == about for path, about in expected._metadata.items())
        assert (matched is loaded) == same
        other.load_state_dict(matched)
        assert torch.equal(other(x), model(x))


def test_what_does_not_fit_is_still_told() -> None:
    model = whole()
    state = OrderedDict(Net().state_dict(), more=torch.ones(1))
    del state["embed.bias"]
    found = model.load_state_dict(match(state, model), strict=False)
    assert found.missing_keys == ["_orig_mod.embed.bias"]
    assert found.unexpected_keys == ["more"]
    with pytest.raises(RuntimeError, match=r"embed\.bias"):
        model.load_state_dict(match(state, model))


def test_loading_without_a_match_loads_nothing() -> None:
    """What the match is for: with ``strict=False``, PyTorch says nothing and loads nothing."""
    model, state = trained(whole), trained(Net, seed=1).state_dict()
    before = [p.clone() for p in model.parameters()]
    model.load_state_dict(state, strict=False)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    model.load_state_dict(match(state, model), strict=False)
    assert not any(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
