"""What looks like a cause of graph breaks and is none; what is said to be traced is traced whole."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest
import torch
import torch._dynamo

from patcher.diagnose.diagnosis import Remark
from patcher.diagnose.fine import fine
from patcher.facts.project.index import Project, summarise

HEAD = "import logging\nimport warnings\nimport torch\nfrom torch import nn\nlogger = logging.getLogger(__name__)\n"
NET = HEAD + "class Net(nn.Module):\n"


def of(
    text: str, ran: Mapping[str, frozenset[int]] | None = None, broke: frozenset[str] = frozenset()
) -> tuple[Remark, ...]:
    return fine([("net.py", text)], ran, broke)


def module(forward: str, more: str = "") -> str:
    """A module whose forward has these statements, from line 8 on."""
    lines = "".join(f"        {line}\n" for line in forward.splitlines())
    return f"{NET}    def forward(self, x, y=None):\n{lines}        return x + 1\n{more}"


# --- where no compiled code runs ------------------------------------------------------------------------------------

INIT = (
    NET
    + "    def __init__(self):\n        super().__init__()\n        {}\n    def forward(self, x):\n        return x\n"
)
OUTPUT = {
    "print": ("print('a')", "`print`"),
    "a logger": ("logger.info('a')", "`logger.info`"),
    "the module logging": ("logging.warning('a')", "`logging.warning`"),
    "a logger made on the spot": ("logging.getLogger('a').info('b')", "`logging.getLogger('a').info`"),
    "warnings": ("warnings.warn('a')", "`warnings.warn`"),
    "item": ("self.rates = [r.item() for r in torch.linspace(0, 1, 3)]", "`.item()`"),
    "tolist": ("self.rates = torch.linspace(0, 1, 3).tolist()", "`.tolist()`"),
}


@pytest.mark.parametrize("name", OUTPUT)
def test_the_constructor_is_eager(name: str) -> None:
    text, shown = OUTPUT[name]
    (remark,) = of(INIT.format(text))
    assert remark == Remark("net.py:9", f"{shown} (line 9) in `Net.__init__`", "in `__init__`, not in `forward`", text)


def test_one_remark_for_a_function() -> None:
    text = INIT.format("print('a')\n        print('b')\n        logger.info('c')")
    assert [r.what for r in of(text)] == ["`print` (lines 9, 10), `logger.info` (line 11) in `Net.__init__`"]


METHODS = NET + (
    "    def forward(self, x):\n        return self.step(x)\n"
    "    def step(self, x):\n        print('a')\n        return x\n"
    "    def save(self):\n        print('b')\n"
)


def test_what_forward_does_not_reach() -> None:
    (remark,) = of(METHODS)
    assert (remark.where, remark.why) == ("net.py:13", "not reached from any `forward` of these files")


SILENT = {
    "in forward": module("print('a')"),
    "a function that forward calls": module("show()", "def show():\n    print('a')\n"),
    "a training script": HEAD + "def train(model):\n    print('a')\n    print(model(1).item())\n",
    "a plain class beside a module": INIT.format("pass") + "class Trainer:\n    def run(self):\n        print('a')\n",
    "a method that any object of that name is asked for": module(
        "y.save()",
        "class Other(nn.Module):\n    def forward(self, x):\n        return x\n    def save(self):\n        print()\n",
    ),
    "a module that forward builds": module(
        "Other()", "class Other(nn.Module):\n    def __init__(self):\n        print('a')\n"
    ),
    "another print": "from mine import print\n" + INIT.format("print('a')"),
    "a dictionary": INIT.format("self.n = {}.items()"),
    "its own item": INIT.format("self.n = self.item('x')"),
    "a method of another object": INIT.format("self.bus.info('x')"),
    "a disabled function": METHODS.replace("    def step", "    @torch.compiler.disable\n    def step").replace(
        "print('b')", "pass"
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_said_of(name: str) -> None:
    assert of(SILENT[name]) == ()


def test_another_file_may_reach_it() -> None:
    layer = (
        HEAD
        + "class Layer(nn.Module):\n    def forward(self, x):\n        return x\n    def step(self):\n        print()\n"
    )
    caller = HEAD + "class Net(nn.Module):\n    def forward(self, layer):\n        return layer.step()\n"
    assert len(fine([("layer.py", layer)], None, frozenset())) == 1
    assert fine([("layer.py", layer), ("far/net.py", caller)], None, frozenset()) == ()


# --- what Dynamo traces ---------------------------------------------------------------------------------------------

TRACED = {
    "None": "if y is None:\n    x = x * 2",
    "not None": "if y is not None:\n    x = x * 2",
    "an attribute": "if x.grad is None:\n    x = x * 2",
    "a type": "if isinstance(y, list):\n    x = x * 2",
    "several types": "if isinstance(y, (list, tuple)) or isinstance(x, nn.Parameter):\n    x = x * 2",
    "an assertion": "assert (x > 0).all()",
    "an assertion with a message": "assert (x > 0).all(), 'positive'",
    "an assertion on a comparison": "assert x.sum() > 0, 'positive'",
    "an assertion of torch's": "assert torch.all(x == x), 'numbers'",
    "left out": "if not torch.compiler.is_compiling():\n    print('a', x.sum().item())",
}
NOT_TRACED = {
    "an assertion with figures": "assert (x > 0).all(), f'{x}'",
    "not any": "assert not (x < 0).any()",
    "two at once": "assert (x > 0).all() and (x < 9).all()",
    "read": "assert (x > 0).all().item()",
    "masked": "assert x[x > 0].all()",
    "equal": "assert torch.equal(x, x)",
    "grad_fn": "z = x * 2\nif z.grad_fn is not None:\n    x = z",
    "printed": "print('a')",
    "a type of what is read": "if isinstance(x.sum().item(), int):\n    x = x * 2",
}
#: These are an error with fullgraph; to read one number is none.
BREAKING = ("an assertion with figures", "not any", "two at once", "equal", "grad_fn", "printed")
PLAIN = "assert x.shape[0] == 2"


def whole(text: str) -> str:
    """What keeps the forward of ``text`` from being one graph; "" when nothing does. Two calls: with y and without."""
    torch._dynamo.reset()
    space: dict[str, object] = {"__name__": "net"}
    exec(compile(text, "net.py", "exec"), space)
    net = torch.compile(space["Net"](), backend="eager", fullgraph=True)  # type: ignore[operator]
    x = torch.ones(2, 3, requires_grad=True)
    try:
        with torch._dynamo.config.patch(capture_scalar_outputs=False):
            net(x)
            net(x, [x])
    except torch._dynamo.exc.TorchDynamoException as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", TRACED)
def test_what_is_traced(name: str) -> None:
    text = module(TRACED[name])
    (remark,) = of(text)
    assert remark.where.startswith("net.py:")
    assert "no graph break" in remark.why or "leaves it out" in remark.why
    assert whole(text) == ""


@pytest.mark.parametrize("name", NOT_TRACED)
def test_what_is_not_traced_is_not_said_to_be(name: str) -> None:
    text = module(NOT_TRACED[name])
    assert of(text) == ()
    assert name not in BREAKING or whole(text) != ""


def test_an_assertion_on_sizes_is_nothing_special() -> None:
    assert of(module(PLAIN)) == ()


def test_what_is_traced_is_one_remark_for_the_file() -> None:
    text = module("if y is None:\n    x = x * 2") + "    def helper(self, z):\n        return z\n"
    text += "class Two(nn.Module):\n    def forward(self, x):\n        return 1 if isinstance(x, int) else x is None\n"
    (remark,) = of(text)
    assert remark.what == "tests for None (lines 8, 15), `isinstance` (line 15) in `Net.forward`, `Two.forward`"


def test_many_lines_and_functions_are_cut_short() -> None:
    methods = "".join(f"    def f{n}(self, x):\n        return x is None\n" for n in range(9))
    calls = ", ".join(f"self.f{n}(x)" for n in range(9))
    (remark,) = of(NET + f"    def forward(self, x):\n        return {calls}\n" + methods)
    assert "and 3 more) in" in remark.what
    assert remark.what.endswith("`Net.f3` and 5 more")


# --- what a run says ------------------------------------------------------------------------------------------------


def test_a_cause_is_not_fine() -> None:
    text = module("if y is None:\n    x = x * 2\nif y is None:\n    x = x * 3")
    (remark,) = of(text, broke=frozenset({"net.py:8"}))
    assert remark.what == "tests for None (line 10) in `Net.forward`"
    assert of(text, broke=frozenset({"net.py:8", "net.py:10"})) == ()


def test_a_cause_on_another_line_of_the_statement_counts() -> None:
    text = module("x = (\n    x\n    if y is None\n    else x * 2\n)\nif y is None:\n    x = x * 2")
    assert "lines 10, 13" in of(text)[0].what
    assert "line 13" in of(text, broke=frozenset({"net.py:8"}))[0].what
    assert "lines 10, 13" in of(text, broke=frozenset({"net.py:14"}))[0].what


def test_only_files_that_were_loaded() -> None:
    text = INIT.format("print('a')")
    assert of(text, {}) == ()
    assert len(of(text, {"net.py": frozenset()})) == 1


def test_only_tests_that_were_executed() -> None:
    text = module("if y is None:\n    x = x * 2\nif y is None:\n    x = x * 3")
    (remark,) = of(text, {"net.py": frozenset({7, 8, 11})})
    assert remark.what == "tests for None (line 8) in `Net.forward`"


def test_what_ran_although_forward_does_not_reach_it_is_left_out() -> None:
    assert of(METHODS, {"net.py": frozenset({13})}) == ()


def test_an_index_that_is_there_is_used() -> None:
    text = INIT.format("print()")
    project = Project([summarise(ast.parse(text), "net.py")])
    files = [("net.py", text), ("other.py", text)]
    found = fine(files, {"net.py": frozenset()}, frozenset(), project=project)
    assert [r.where for r in found] == ["net.py:9"]


def test_paths_are_shown_as_told() -> None:
    (remark,) = fine([("net.py", INIT.format("print()"))], None, frozenset(), shown=lambda path: f"pkg/{path}")
    assert remark.where == "pkg/net.py:9"


def test_a_file_that_does_not_parse_is_passed_over() -> None:
    assert of("class Net(nn.Module:\n") == ()
