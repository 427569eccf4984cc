"""How often a line is reached: what the source says of loops, layers, flags and errors."""

from __future__ import annotations

import ast
import os
import textwrap

import pytest

from patcher.facts import Facts
from patcher.facts.project.index import Project, summarise
from patcher.facts.running.frequency import Frequency
from patcher.settings import Settings

MODEL = """
import os
import torch
from torch import nn

SHOWN = os.environ.get("SHOWN", "0") == "1"
QUIET = False
TALKS = True

class Block(nn.Module):
    def __init__(self, verbose=False, width: int = 4):
        super().__init__()
        self.verbose = verbose
        self.checkpointing = False
        self.initted = False
        self.width = width

    def forward(self, x, mask=None, debug: bool = False, wanted: bool | None = None):
{body}
        self.initted = True
        return self._told(x, debug)

    def _told(self, x, loud):
        if loud:
            mark("called under a flag")
        return x

    def use_checkpointing(self):
        self.checkpointing = True

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = (1, 2)

    def forward(self, x, mask=None, debug: bool = False, wanted: bool | None = None):
{body}
        return x

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(n)])
        self.head = Head()

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            mark("layers")
        return self.head(x)

def mark(text):
    pass

def default(value, other):
    return value if value is not None else other

def counted(value, other):
    return value + other
"""


def reached(body: str) -> dict[str, dict[str, str]]:
    """By class, how often each ``mark("...")`` is reached, with ``body`` in two forwards."""
    tree = ast.parse(MODEL.replace("{body}", textwrap.indent(textwrap.dedent(body).strip(), " " * 8)))
    facts = Facts(tree, "model.py", Project([summarise(tree, "model.py")]), Settings(), frozenset())
    found: dict[str, dict[str, str]] = {}
    for call in ast.walk(tree):
        match call:
            case ast.Call(func=ast.Name(id="mark"), args=[ast.Constant(value=str(text))]):
                scope = facts.syntax.scope_of(call).partition(".")[0]
                found.setdefault(scope, {})[text] = str(facts.ask(Frequency).of(call))
    return found


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ("mark('m')", "each call"),
        ("for i in range(3):\n    mark('m')", "each turn of a loop"),
        ("y = [mark('m') for i in x]", "each turn of a loop"),
        ("while x.shape[0] > 2:\n    mark('m')\n    x = x[1:]", "each turn of a loop"),
        ("for i in self.stages:\n    mark('m')", "each turn of a loop"),  # numbers, by a name that layers have
        ("for layer in self.blocks:\n    mark('m')", "each layer"),
        ("y = [i for i in mark('m')]", "each call"),
        ("if mask is not None:\n    mark('m')", "some calls"),
        ("if x.shape[0] > 2:\n    pass\nelse:\n    mark('m')", "some calls"),
        ("if debug:\n    mark('m')", "only when `debug` is set"),
        ("if debug and mask is not None:\n    mark('m')", "only when `debug` is set"),
        ("if not debug:\n    mark('m')", "each call"),
        ("if debug or TALKS:\n    mark('m')", "each call"),
        ("if not debug:\n    return x\nmark('m')", "only when `debug` is set"),
        ("if wanted:\n    mark('m')", "only when `wanted` is set"),
        ("wanted = wanted if wanted is not None else x.shape[0] > 2\nif wanted:\n    mark('m')", "some calls"),
        ("if default(wanted, debug):\n    mark('m')", "only when `debug` or `wanted` is set"),
        ("mask = default(mask, debug)\nif mask:\n    mark('m')", "only when `debug` or `mask` is set"),
        ("if default(mask, x):\n    mark('m')", "some calls"),
        ("if default(mask, TALKS):\n    mark('m')", "some calls"),  # left out, it is another than where it is given
        ("if counted(debug, wanted):\n    mark('m')", "some calls"),
        ("if (wanted if x.shape[0] > 2 else debug):\n    mark('m')", "only when `debug` or `wanted` is set"),
        ("if SHOWN:\n    mark('m')", "only when the environment variable 'SHOWN' is set"),
        ("if QUIET:\n    mark('m')", "only when `QUIET` is set"),
        (
            "level = int(os.environ.get('LEVEL', 0))\nif level > 1:\n    mark('m')",
            "only when the environment variable 'LEVEL' is set",
        ),
        (
            "if not debug:\n    debug = SHOWN\nif debug:\n    mark('m')",
            "only when `debug` or the environment variable 'SHOWN' is set",
        ),
        ("if x.shape[0] > 2:\n    debug = True\nif debug:\n    mark('m')", "some calls"),
        (
            "import os as system, os\nif os.getenv('LOUD'):\n    mark('m')",
            "only when the environment variable 'LOUD' is set",
        ),
        ("if self.training:\n    mark('m')", "some calls"),
        ("if x.shape[0] > 2:\n    mark('m')\n    raise ValueError('shape')", "only on the way to an error"),
        ("try:\n    x = x + 1\nexcept RuntimeError:\n    mark('m')", "only on the way to an error"),
        ("if mask not in self.kept:\n    self.kept[mask] = x\n    mark('m')", "only when a cache is filled"),
        ("if mask not in self.kept:\n    self.kept[x] = x\n    mark('m')", "some calls"),
        ("if mask not in self.kept:\n    self.kept[mask] = x\nelse:\n    mark('m')", "some calls"),
        ("if mask in self.kept:\n    self.kept[mask] = x\n    mark('m')", "some calls"),
        ("if not self.told:\n    mark('m')\n    self.told = True", "only until `self.told` is set"),
        ("if x.dim() > 2 and not self.told:\n    mark('m')\n    self.told = True", "only until `self.told` is set"),
        ("if self.told is None:\n    self.told = x.shape\n    mark('m')", "only until `self.told` is set"),
        ("if x.dim() > 2 or not self.told:\n    mark('m')\n    self.told = True", "some calls"),
        ("if not self.told:\n    mark('m')\n    self.told = False", "some calls"),
        ("if self.told is None:\n    mark('m')\n    self.told = None", "some calls"),
        ("if self.told:\n    mark('m')\n    self.told = True", "some calls"),
        ("if not self.told:\n    mark('m')\n    if debug:\n        self.told = True", "some calls"),
        ("self.told = False\nif not self.told:\n    mark('m')\n    self.told = True", "some calls"),
        ("if mask in self.kept:\n    return x\nmark('m')\nself.kept[mask] = x", "only when a cache is filled"),
        (
            "if mask in self.kept:\n    return x\nif debug:\n    mark('m')\nself.kept[mask] = x",
            "only when `debug` is set",
        ),
        ("if mask in self.kept:\n    return x\nmark('m')\nself.kept[x] = x", "each call"),
        ("if mask in self.kept:\n    x = x + 1\nmark('m')\nself.kept[mask] = x", "each call"),
        ("if self.told:\n    return x\nmark('m')\nself.told = True", "only until `self.told` is set"),
        ("if self.told is not None:\n    return x\nmark('m')\nself.told = x.shape", "only until `self.told` is set"),
        ("if not self.told:\n    return x\nmark('m')\nself.told = True", "each call"),
        ("debug and mark('m')", "only when `debug` is set"),
        ("mark('m') if debug else 0", "only when `debug` is set"),
        ("for i in range(3):\n    if debug:\n        mark('m')", "only when `debug` is set"),
    ],
)
def test_what_is_said_of_a_line(body: str, head: str) -> None:
    assert reached(body)["Head"]["m"] == head


def test_what_is_one_of_several_modules_runs_for_each_layer() -> None:
    found = reached("mark('m')")
    assert found["Block"]["m"] == "each layer"
    assert found["Model"]["layers"] == "each layer"
    assert found["Head"]["m"] == "each call"


def test_a_private_method_is_reached_as_its_calls_are() -> None:
    assert reached("mark('m')")["Block"]["called under a flag"] == "only when `debug` is set"


@pytest.mark.parametrize(
    ("test", "block"),
    [
        ("self.verbose", "only when `verbose` is set"),
        ("self.checkpointing", "only when `self.checkpointing` is set"),
        ("not self.initted", "some calls"),
        ("self.width", "some calls"),
    ],
)
def test_attributes_that_nobody_but_the_host_sets_are_flags(test: str, block: str) -> None:
    assert reached(f"if {test}:\n    mark('m')")["Block"]["m"] == block


def test_a_flag_that_the_file_itself_sets_is_not_off_by_default() -> None:
    found = reached("if debug:\n    mark('m')\nx = self.other(x, debug=True)")
    assert found["Head"]["m"] == "some calls"


def test_nothing_is_read_from_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "SHOWN", "1")
    assert reached("if SHOWN:\n    mark('m')")["Head"]["m"].startswith("only when")


FLAGS = """
import os
DEBUG = False
TOLD: bool = False
READY = False
COUNTED = False
LOUD = True

def from_environment():
    global DEBUG
    said = os.environ.get("FLAGS_DEBUG")
    if said is not None:
        DEBUG = said == "1"

def tell(on):
    global TOLD
    TOLD = on

def prepare():
    global READY
    READY = True

COUNTED = True
"""


@pytest.mark.parametrize("ask", ["if {}:", "if {} and x.shape[0] > 2:"])
@pytest.mark.parametrize(
    ("flag", "often"),
    [
        ("DEBUG", "only when `DEBUG` is set"),
        ("TOLD", "only when `TOLD` is set"),
        ("READY", "some calls"),  # a state, which the module itself comes to
        ("COUNTED", "some calls"),  # bound twice
    ],
)
@pytest.mark.parametrize("imported", [False, True])
def test_flags_of_modules_are_off_unless_somebody_asks(flag: str, often: str, ask: str, imported: bool) -> None:
    model = f"""
import torch
from torch import nn
{f"from flags import {flag}" if imported else ""}
class Model(nn.Module):
    def forward(self, x):
        {ask.format(flag)}
            print("shown")
        return x
"""
    model, flags = (model, FLAGS) if imported else (FLAGS + model, "")
    tree = ast.parse(model)
    files = [summarise(tree, "model.py"), summarise(ast.parse(flags), "flags.py")]
    facts = Facts(tree, "model.py", Project(files), Settings(), frozenset())
    [shown] = [c for c in ast.walk(tree) if isinstance(c, ast.Call) and ast.unparse(c.func) == "print"]
    assert str(facts.ask(Frequency).of(shown)) == often


CONFIGURED = """
from torch import nn
{imports}

class Head(nn.Module):
    def forward(self, x, output_attentions: bool | None = None):
        output_attentions = output_attentions if output_attentions is not None else self.config.{asked}
        return self.model(x, output_attentions=output_attentions)

class Model(nn.Module):
    def forward(self, x, output_attentions: bool | None = None):
        if output_attentions:
            print("shown")
        return x
"""


@pytest.mark.parametrize(
    ("imports", "asked", "often"),
    [
        ("from transformers.modeling_utils import PreTrainedModel", "output_attentions", "only when"),
        ("from transformers.modeling_utils import PreTrainedModel", "show_attentions", "some calls"),
        ("from mine.modeling_utils import PreTrainedModel", "output_attentions", "some calls"),
    ],
)
def test_what_configurations_of_transformers_hold_is_known(imports: str, asked: str, often: str) -> None:
    tree = ast.parse(CONFIGURED.format(imports=imports, asked=asked))
    facts = Facts(tree, "model.py", Project([summarise(tree, "model.py")]), Settings(), frozenset())
    [shown] = [c for c in ast.walk(tree) if isinstance(c, ast.Call) and ast.unparse(c.func) == "print"]
    assert str(facts.ask(Frequency).of(shown)).startswith(often)


USED = """
import torch
from torch import nn

if has_xla():
    import torch_xla
    from torch_xla.kernels import flash
    THERE = True
else:
    THERE = False

def table(size, shift=None):
    mark("table")
    if shift is not None:
        mark("shifted")
    return size

def base(x, starts=None, first=None):
    if starts is not None:
        mark("starts")
    if first is not None:
        mark("first")
    return x

def turned(x, starts=None):
    parts = [base(y, starts=(starts[0] if starts is not None else None)) for y in x]
    return base(x, starts, first=parts)

class Flash(nn.Module):
    def forward(self, x):
        if x.shape[0] > 9:
            return flash(x)
        mark("flash")
        return x

class Either(nn.Module):
    def forward(self, x):
        mark("either")
        return flash(x) if THERE else x

class Model(nn.Module):
    def forward(self, x):
        if x.shape not in self.tables:
            self.tables[x.shape] = table(x.shape, x)
        return turned(x)
"""


def used(more: str = "", beside: str = "") -> dict[str, str]:
    """How often each ``mark("...")`` is reached, with ``more`` below the model, and ``beside`` in another file."""
    tree = ast.parse(USED + textwrap.dedent(more))
    files = [summarise(tree, "model.py"), summarise(ast.parse(textwrap.dedent(beside)), "other.py")]
    facts = Facts(tree, "model.py", Project(files), Settings(), frozenset())
    marks = [c for c in ast.walk(tree) if isinstance(c, ast.Call) and ast.unparse(c.func) == "mark"]
    return {c.args[0].value: str(facts.ask(Frequency).of(c)) for c in marks}  # type: ignore[attr-defined]


NEVER = "only when `starts` is given: no call of the project does"


def test_a_function_that_fills_a_cache_is_reached_as_often_as_that() -> None:
    assert used()["table"] == "only when a cache is filled"


def test_what_no_call_gives_is_said_to_be_never_given() -> None:
    told = used()
    assert told["starts"] == NEVER
    assert told["first"] == "some calls"  # one call gives it, another one does not


@pytest.mark.parametrize(
    ("more", "beside"),
    [
        ("class Two(nn.Module):\n    def forward(self, x):\n        return turned(x, x)", ""),
        ("class Two(nn.Module):\n    def forward(self, x, **more):\n        return turned(x, **more)", ""),
        ("ways = {'turned': turned}", ""),
        ("__all__ = ['turned']", ""),
        ("", "from model import turned"),
        ("", "import model\n\ndef other(x):\n    return model.turned(x, x)"),
    ],
)
def test_what_others_may_give_is_not(more: str, beside: str) -> None:
    assert used(more, beside)["starts"] != NEVER


def test_functions_of_another_compiler_are_told() -> None:
    told = used()
    assert told["flash"] == "only with `torch_xla`, which compiles by itself"
    assert told["either"] == "each call"
