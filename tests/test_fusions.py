"""Operators that are written out by hand: their switches, the spellings that are one, and the figures that are told."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from benchmarks.fusions import FORMS
from patcher.config import ConfigError, load
from patcher.edit.engine import patch
from patcher.facts.tables.fusions import MEASURED
from patcher.options import settings_from
from patcher.results import PatchResult
from patcher.settings import Settings
from rules import load_rules

RULES = load_rules()
SWITCHES = {rule.code: rule.switch for rule in RULES if rule.switch}
HEAD = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
SILU = HEAD + "class Net(nn.Module):\n    def forward(self, x):\n        return x * torch.sigmoid(x)\n"


def fused(source: str, *switches: str) -> PatchResult:
    result = patch(
        source, "example.py", RULES, Settings(unsafe=True, switches=frozenset(switches or SWITCHES.values()))
    )
    assert result.bugs == ()
    return result


def forward(body: str) -> str:
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    return f"{HEAD}class Net(nn.Module):\n    def forward(self, x):\n{lines}"


def returned(source: str) -> str:
    """What the last line of the patched source returns."""
    return fused(source).text.rstrip().rpartition("\n")[2].strip().removeprefix("return ")


# --- switches ------------------------------------------------------------------------------------------------------


def test_every_rule_on_operators_has_a_switch_of_its_own() -> None:
    assert set(SWITCHES) == {rule.code for rule in RULES if rule.code.startswith("FC8")}
    assert len(set(SWITCHES.values())) == len(SWITCHES)


def test_they_are_off_by_default_even_where_unsafe_fixes_are_wanted() -> None:
    assert patch(SILU, "example.py", RULES, Settings(unsafe=True)).found == ()


@pytest.mark.parametrize(
    "settings",
    [
        Settings(select=("FC803",)),
        Settings(select=("hand-silu",)),
        Settings(select=("FC1", "FC8")),
        Settings(switches=frozenset({"silu"})),
    ],
)
def test_they_are_on_where_they_are_asked_for(settings: Settings) -> None:
    assert [found.code for found in patch(SILU, "example.py", RULES, settings).found] == ["FC803"]


@pytest.mark.parametrize(
    "settings",
    [
        Settings(select=("FC1",), switches=frozenset({"silu"})),
        Settings(ignore=("FC8",), switches=frozenset({"silu"})),
        Settings(switches=frozenset({"rms-norm"})),
    ],
)
def test_the_command_line_wins(settings: Settings) -> None:
    assert patch(SILU, "example.py", RULES, settings).found == ()


def configured(folder: Path, text: str) -> Settings:
    (folder / "pyproject.toml").write_text(f"[tool.fix-compile.fusions]\n{text}\n")
    return settings_from(RULES, load(str(folder)))


def test_the_configuration_switches_them_on(tmp_path: Path) -> None:
    assert configured(tmp_path, "silu = true\nrms-norm = false").switches == {"silu"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sillu = true", "unknown key 'sillu' in [tool.fix-compile.fusions] (did you mean 'silu'?)"),
        ('silu = "yes"', "fusions in [tool.fix-compile] must be a table (layer-norm = true)"),
    ],
)
def test_a_configuration_that_cannot_be_followed(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        configured(tmp_path, text)
    assert told in str(raised.value)


def test_a_comment_that_silences_nothing_is_still_told_of() -> None:
    source = forward("return x + 1  # fix-compile: ignore")
    assert [found.code for found in patch(source, "example.py", RULES, Settings()).found] == ["FC002"]


# --- spellings -----------------------------------------------------------------------------------------------------

_SQUARES = ("x.pow(2)", "x ** 2", "torch.pow(x, 2)", "x * x", "torch.square(x)", "x.square()", "torch.mul(x, x)")
_MEANS = (
    "({}).mean(-1, keepdim=True)", "torch.mean({}, dim=-1, keepdim=True)", "({}).mean((-1,), True)",
)  # fmt: skip
_ROOTS = (
    "x * torch.rsqrt({})", "({}).rsqrt() * x", "x / torch.sqrt({})", "x / ({}).sqrt()", "x * (1 / torch.sqrt({}))",
    "x.mul(torch.rsqrt({}))", "x * ({}) ** -0.5", "torch.div(x, torch.pow({}, 0.5))", "x * torch.sqrt({}).reciprocal()",
)  # fmt: skip
_RMS = "F.rms_norm(x, (x.shape[-1],), eps=1e-06)"


@pytest.mark.parametrize(
    ("square", "mean", "root"),
    [*itertools.product(_SQUARES[:1], _MEANS, _ROOTS), *itertools.product(_SQUARES, _MEANS[:1], _ROOTS[:1])],
)
def test_an_rms_norm_in_many_spellings(square: str, mean: str, root: str) -> None:
    spread = f"{mean.format(square)} + 1e-6"
    assert returned(forward(f"return {root.format(spread)}")) == _RMS
    assert returned(forward(f"spread = {spread}\nreturn {root.format('spread')}")) == _RMS


_TANHS = (
    "0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))",
    "0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))",
    "x * (0.5 + 0.5 * torch.tanh(x * 0.7978845608028654 * (1 + 0.044715 * x * x)))",
    "(1 + (0.7978845608028654 * x + 0.7978845608028654 * 0.044715 * x.pow(3)).tanh()) * x / 2",
    "0.5 * (x + x * torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x * x * x)))",
)
_ERFS = (
    "0.5 * x * (1 + torch.erf(x / math.sqrt(2)))",
    "x * 0.5 * (1.0 + torch.erf(x / 2**0.5))",
    "x / 2 * (torch.erf(x * 0.7071067811865476) + 1)",
    "torch.mul(x, (x * math.sqrt(0.5)).erf() * 0.5 + 0.5)",
    "0.5 * (x + x * torch.special.erf(x / 1.4142135623730951))",
)


@pytest.mark.parametrize("spelled", _TANHS + _ERFS)
def test_a_gelu_in_many_spellings(spelled: str) -> None:
    expected = 'F.gelu(x, approximate="tanh")' if spelled in _TANHS else "F.gelu(x)"
    assert returned(forward(f"return {spelled}")) == expected
    assert returned(forward(f"y = {spelled}\nreturn y * 2")) == "y * 2"
    assert expected in fused(forward(f"y = {spelled}\nreturn y * 2")).text


@pytest.mark.parametrize(
    ("exact", "other"),
    [
        ("0.7978845608", "0.79788"),
        ("0.044715", "0.0447"),
        ("1 +", "1.0001 +"),
        ("0.5 *", "0.49999 *"),
        ("x**3", "x**2"),
    ],
)
def test_constants_that_are_not_those_of_the_formula(exact: str, other: str) -> None:
    assert exact in _TANHS[0]
    assert fused(forward(f"return {_TANHS[0].replace(exact, other, 1)}")).found == ()


def test_what_is_far_from_an_operator_costs_nothing() -> None:
    deep = "x + " * 400 + "torch.sigmoid(x)"
    assert fused(forward(f"return {deep}")).found == ()


# --- figures -------------------------------------------------------------------------------------------------------


def test_the_table_is_that_of_the_program() -> None:
    assert MEASURED.keys() == FORMS.keys()


@pytest.mark.parametrize(
    "form", [f for f, told in MEASURED.items() if all(t["same outputs"] and t["same gradients"] for t in told.values())]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_what_is_said_to_be_the_same_to_the_last_bit_is(form: str, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    for scale in (1e-3, 1.0, 30.0):
        given = [(t * scale).to(dtype).requires_grad_() for t in FORMS[form].inputs()]
        hand, own = FORMS[form].hand(*given), FORMS[form].own(*given)
        towards = torch.randn_like(hand)
        grads = [torch.autograd.grad(out, given, towards) for out in (hand, own)]
        assert torch.equal(hand, own)
        assert all(map(torch.equal, *grads))


def test_some_are_the_same_to_the_last_bit() -> None:
    same = {f for f, told in MEASURED.items() if all(t["same outputs"] and t["same gradients"] for t in told.values())}
    assert same >= {"rms_norm-bare-float32"}
