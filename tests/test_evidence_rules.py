"""Sources written to deceive the rules that act on what a run has shown: unchanged, or the same when they run."""

from __future__ import annotations

import ast

import pytest

from patcher.edit.engine import patch
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.results import PatchResult
from patcher.rule import Rule
from patcher.settings import Extent, Settings, Varied
from rules import load_rules
from tests.dynamo import PREAMBLE, Raised, Ran, eager, equal, run_example, text_of
from tests.evidence_attacks.lists import LEFT, SPLIT
from tests.evidence_attacks.sizes import MARKED, UNMARKED
from tests.evidence_attacks.zones import LEFT as KEPT_IN
from tests.evidence_attacks.zones import OUT
from tests.evidence_attacks.zones import RUN as LEVELS

RULES = {rule.code: rule for rule in load_rules()}

MODULE = """
COUNT = 0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.seen = []

    def forward(self, x, parts, scale=2.0):{body}
"""
LISTS = """
def make():
    return Net()

calls = [(torch.ones(2, 4), [torch.ones(1, 4) * i for i in range(n)]) for n in (1, 2, 3, 4)]
calls += [(torch.ones(2, 4), [torch.ones(1, 4)], 1.0), (torch.ones(3, 4), [torch.ones(1, 4)] * 2, 3.0)]

def hook(obj, be):
    if hasattr(obj, "_forward_core"):
        obj._forward_core = torch.compile(obj._forward_core, backend=be)
        return obj
    return torch.compile(obj, backend=be)
"""
PARTS = Varied("example.py", "Net.forward", "parts", None)


def patched(source: str, code: str, *evidence: Varied, strategy: str = "", unsafe: bool = True) -> PatchResult:
    rule: Rule = RULES[code]
    strategies = {"dynamic-dim": strategy} if strategy else {}
    settings = Settings(unsafe=unsafe, evidence=evidence, strategies=strategies)
    result = patch(PREAMBLE + source, "example.py", (rule,), settings)
    assert result.bugs == ()
    again = patch(result.text, "example.py", tuple(RULES.values()), settings)
    assert again.bugs == ()
    assert again.text == result.text, "stable"
    return result


def across(files: dict[str, str], path: str, code: str, *evidence: Varied) -> PatchResult:
    """What becomes of the file ``path``, with the others around it."""
    texts = {name: PREAMBLE + text for name, text in files.items()}
    project = Project([summarise(ast.parse(text), name) for name, text in texts.items()])
    settings = Settings(unsafe=True, evidence=evidence)
    result = patch(texts[path], path, (RULES[code],), settings, project)
    assert result.bugs == ()
    return result


def ran(source: str, result: PatchResult, run: str, *, compiled: bool) -> None:
    """Compiling takes most of the time: without it, eager results are compared."""
    after = result.text.removeprefix(PREAMBLE)
    if compiled:
        compared = run_example(source, after, run)
        assert compared.compiled_difference is None, str(compared)
        assert not compared.worse, str(compared)
    before, now = (eagerly(text, run) for text in (source, after))
    assert not all(isinstance(out, Raised) for out, _ in before.outputs), before.outputs
    assert equal([before.outputs, before.aliases], [now.outputs, now.aliases]) is None


def eagerly(source: str, run: str) -> Ran:
    return eager(text_of(source, run))


@pytest.mark.parametrize("title", SPLIT)
def test_a_forward_that_is_split_gives_the_same(title: str) -> None:
    source = MODULE.format(body=SPLIT[title])
    result = patched(source, "FC702", PARTS)
    assert "def _forward_core(" in result.text
    ran(source, result, LISTS, compiled=title in list(SPLIT)[::6])


@pytest.mark.parametrize("title", LEFT)
def test_a_forward_that_cannot_be_split_is_left_alone(title: str) -> None:
    source = MODULE.format(body=LEFT[title])
    result = patched(source, "FC702", PARTS)
    assert result.text == PREAMBLE + source


SIZED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 4))

    def core(self, x, y=None, *, z=None):
        h = x * 2
        h = h if y is None else h + y
        return h if z is None else h * z
"""
SIZES = """
def make():
    return Net()

calls = [(torch.ones(b, 4), torch.ones(b, 1), torch.ones(b, 1)) for b in (2, 3, 4)] + [(torch.ones(5, 4),)]

def hook(obj, be):
    obj.core = torch.compile(obj.core, backend=be)
    return obj
"""
CORE = tuple(Varied("example.py", "Net.core", name, dim) for name, dim in (("x", 0), ("x", 1), ("y", 0), ("z", 0)))


@pytest.mark.parametrize("title", MARKED)
def test_a_call_that_is_marked_gives_the_same(title: str) -> None:
    marks, body = MARKED[title]
    result = patched(SIZED + body, "FC503", *CORE)
    assert result.text.count("mark_dynamic(") - body.count("mark_dynamic(") == marks, result.text
    ran(SIZED + body, result, SIZES, compiled=title in list(MARKED)[::4])


@pytest.mark.parametrize("title", UNMARKED)
def test_a_call_that_cannot_be_marked_is_left_alone(title: str) -> None:
    result = patched(SIZED + UNMARKED[title], "FC503", *CORE)
    assert result.text == PREAMBLE + SIZED + UNMARKED[title]


@pytest.mark.parametrize("code", ["FC503", "FC702"])
def test_without_evidence_nothing_is_said(code: str) -> None:
    for source in (SIZED + MARKED["by position and keyword"][1], MODULE.format(body=SPLIT["not a tensor"])):
        assert patched(source, code).found == ()
        elsewhere = Varied("other.py", "Net.core", "x", 0), Varied("other.py", "Net.forward", "parts", None)
        assert patched(source, code, *elsewhere).found == ()


ENCODER = """
class Encoder(nn.Module):
    def forward(self, x, *, mask=None):
        return x if mask is None else x * mask


def step(x, y):
    return x + y
"""
USER = """
from encoder import Encoder, step


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def forward(self, x, mask=None):
        h = self.encoder(x, mask=mask)
        return step(h, y=x)
"""


def test_the_callee_may_stand_in_another_file() -> None:
    files = {"encoder.py": ENCODER, "user.py": USER}
    varied = (
        Varied("./encoder.py", "Encoder.forward", "x", 0),
        Varied("encoder.py", "Encoder.forward", "mask", 1),
        Varied("encoder.py", "step", "x", 0),
    )
    result = across(files, "user.py", "FC503", *varied)
    assert result.text.endswith("""
    def forward(self, x, mask=None):
        if not torch.compiler.is_compiling():
            if isinstance(x, torch.Tensor):
                torch._dynamo.maybe_mark_dynamic(x, 0)
            if isinstance(mask, torch.Tensor):
                torch._dynamo.maybe_mark_dynamic(mask, 1)
        h = self.encoder(x, mask=mask)
        if not torch.compiler.is_compiling() and isinstance(h, torch.Tensor):
            torch._dynamo.maybe_mark_dynamic(h, 0)
        return step(h, y=x)
""")
    assert across(files, "encoder.py", "FC503", *varied).found == ()


MODEL = MODULE.format(body=SPLIT["not a tensor"])
TRAIN = """
from model import Net


def main():
    model = Net().cuda()
    model = torch.compile(model, mode="reduce-overhead")
    other = torch.compile(Net())
    return model, other
"""


def test_a_call_that_compiles_the_model_in_another_file_follows_when_there_is_a_core() -> None:
    varied = Varied("model.py", "Net.forward", "parts", None)
    before = {"model.py": MODEL, "train.py": TRAIN}
    waiting = across(before, "train.py", "FC702", varied)
    assert waiting.text == PREAMBLE + TRAIN
    assert [found.applicability for found in waiting.found] == ["display-only"] * 2
    split = across(before, "model.py", "FC702", varied).text.removeprefix(PREAMBLE)
    assert "_forward_core" in split
    followed = across({**before, "model.py": split}, "train.py", "FC702", varied)
    assert followed.text.endswith("""
    model = Net().cuda()
    model._forward_core = torch.compile(model._forward_core, mode="reduce-overhead")
    other = Net()
    other._forward_core = torch.compile(other._forward_core)
    return model, other
""")
    assert across({**before, "model.py": split}, "model.py", "FC702", varied).found == ()


WRAPPED = """
class Net(nn.Module):
    {decorator}
    def forward(self, x, parts):
        y = torch.cat(parts)
        h = x.sin() + y.mean()
        return h * 2
"""


@pytest.mark.parametrize(
    ("decorator", "splits"),
    [
        ("@torch.no_grad()", True),
        ("@torch.inference_mode()", True),
        ("@torch.autocast('cpu')", True),
        ("@torch.compile", False),
        ("@torch.compiler.disable", False),
        ("@torch.jit.export", False),
        ("@staticmethod", False),
        ("@my_own", False),
    ],
)
def test_decorators(decorator: str, splits: bool) -> None:
    result = patched(WRAPPED.format(decorator=decorator), "FC702", PARTS)
    assert ("_forward_core" in result.text) is splits
    assert result.text.count(decorator) == 1


def test_the_imports_decide_how_torch_is_spelled() -> None:
    source = "import torch as th\nfrom torch import nn\n" + SIZED + MARKED["a generator"][1]
    result = patch(source, "example.py", (RULES["FC503"],), Settings(unsafe=True, evidence=CORE))
    assert "th.compiler.is_compiling() and isinstance(a, th.Tensor)" in result.text
    assert "th._dynamo.maybe_mark_dynamic(a, (0, 1))" in result.text
    source = "from torch import nn\n" + SIZED.replace("torch.ones", "make") + MARKED["a generator"][1]
    result = patch(source, "example.py", (RULES["FC503"],), Settings(unsafe=True, evidence=CORE))
    assert result.text.startswith("import torch\nfrom torch import nn\n")
    source = source.replace("def core", "torch = 1\n\n    def core").replace("from torch", "torch = None\nfrom torch")
    result = patch(source, "example.py", (RULES["FC503"],), Settings(unsafe=True, evidence=CORE))
    assert result.text == source
    assert [found.assumption for found in result.found] == ["`torch` is not imported here, or is another name"]


@pytest.mark.parametrize(("strategy", "marks"), [("auto", 1), ("maybe", 0), ("unbacked", 1)])
def test_the_strategy_decides_about_sizes_of_one(strategy: str, marks: int) -> None:
    ones = Varied("example.py", "Net.core", "x", 0, one=True)
    result = patched(SIZED + MARKED["a generator"][1], "FC503", ones, strategy=strategy)
    assert result.text.count("torch._dynamo.decorators.mark_unbacked(a, 0)") == marks
    assert result.text.count("torch._dynamo.maybe_mark_dynamic(a, 0)") == 1 - marks
    assert [found.strategy for found in result.found] == ["unbacked" if marks else "maybe"]


def test_what_makes_a_module_does_not_call_it() -> None:
    source = (
        SIZED.replace("core", "forward")
        + """
    @classmethod
    def build(cls, x):
        return cls(x), cls.forward

    def again(self, x):
        return type(self)(x), self.__class__(x)
"""
    )
    varied = Varied("example.py", "Net.forward", "x", 0)
    assert patched(source, "FC503", varied).found == ()


SIGNATURE = """
class Net(nn.Module):
    def forward(self, x: (int, "b"), parts, n=(1, 2), m=((1,), 2), k=(), l=( # c
            1, 2), *more, o: "dict[str, int]" = None, **others) -> (torch.Tensor, torch.Tensor):
        y = torch.cat(parts)
        h = x + y.mean()
        return h * sum(n) + len(m) + len(k) + len(l), o, more, others


m = Net()
m.compile(backend="eager", options={"a": (1, 2)}, dynamic=(None))
m = Net()
m = torch.compile(  # why
    m,
    backend="eager",  # what
)
"""
SIGNATURE_AFTER = """
class Net(nn.Module):
    def forward(self, x: (int, "b"), parts, n=(1, 2), m=((1,), 2), k=(), l=( # c
            1, 2), *more, o: "dict[str, int]" = None, **others) -> (torch.Tensor, torch.Tensor):
        y = torch.cat(parts)
        return self._forward_core(x, k, more, others, y, n, m, l, o)

    def _forward_core(
        self,
        x: (int, "b"),
        k,
        more,
        others,
        y,
        n=(1, 2),
        m=((1,), 2),
        l=( # c
            1, 2),
        o: "dict[str, int]" = None,
    ) -> (torch.Tensor, torch.Tensor):
        h = x + y.mean()
        return h * sum(n) + len(m) + len(k) + len(l), o, more, others


m = Net()
m._forward_core = torch.compile(m._forward_core, backend="eager", options={"a": (1, 2)}, dynamic=(None))
m = Net()
m._forward_core = torch.compile(  # why
    m._forward_core,
    backend="eager",  # what
)
"""


def test_signatures_and_calls_are_copied_as_they_are_written() -> None:
    result = patched(SIGNATURE, "FC702", PARTS)
    assert result.text == PREAMBLE + SIGNATURE_AFTER
    calls = """
def make():
    return Net()

P = [torch.ones(1, 4), torch.ones(2, 4)]
calls = [
    (torch.ones(4), P),
    (torch.ones(4), P, (3,), (4, 5), (6,), (7,), 8, 9),
    ((torch.ones(4), P), {"o": {}, "l": (), "k": [1], "z": 1}),
]
"""
    ran(SIGNATURE, result, calls, compiled=False)


@pytest.mark.parametrize("title", [*SPLIT, *LEFT])
def test_all_rules_at_once_on_lists(title: str) -> None:
    evidence = PARTS, Varied("example.py", "Net.forward", "x", 0), Varied("example.py", "Net._forward_core", "x", 0)
    at_once(MODULE.format(body={**SPLIT, **LEFT}[title]), LISTS, *evidence)


@pytest.mark.parametrize("title", [*MARKED, *UNMARKED])
def test_all_rules_at_once_on_sizes(title: str) -> None:
    body = MARKED[title][1] if title in MARKED else UNMARKED[title]
    at_once(SIZED + body, SIZES, *CORE, Varied("example.py", "Net.forward", "a", None))


def at_once(source: str, run: str, *evidence: Varied) -> None:
    settings = Settings(unsafe=True, evidence=evidence)
    result = patch(PREAMBLE + source, "example.py", tuple(RULES.values()), settings)
    assert result.bugs == ()
    if result.text != PREAMBLE + source:
        ran(source, result, run, compiled=False)


LOOPS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.compile(self.two, backend="eager")
        self.two = torch.compile(self.one, backend="eager")

    def forward(self, x):
        return x * 2


def main(sizes):
    model = Net().eval()
    model = torch.compile(model, backend="eager")
    model._orig_mod.eval()
    total = 0.0
    for size in sizes:
        x = torch.ones(size, 4)
        total += model(x).sum()
    return total


def again(model, sizes):
    for size in sizes:
        model = torch.compile(model)
        x = torch.ones(size, 4)
        total = model(x) + model.one(x)
"""


def test_names_that_are_compiled_again_and_again() -> None:
    result = patched(LOOPS, "FC503", Varied("example.py", "Net.forward", "x", 0))
    assert result.text == PREAMBLE + LOOPS.replace(
        "        total += model",
        "        if not torch.compiler.is_compiling():\n"
        "            torch._dynamo.maybe_mark_dynamic(x, 0)\n"
        "        total += model",
    )


BROKEN = tuple(Extent("example.py", name, 2, 3, 9, 14, 21, 80) for name in ("Net.level", "level", "Level.level"))


def left_out(source: str) -> PatchResult:
    settings = Settings(unsafe=True, extents=(*BROKEN, BROKEN[0]._replace(function="Net.level.forward")))
    result = patch(PREAMBLE + source, "example.py", (RULES["FC207"],), settings)
    assert result.bugs == ()
    again = patch(result.text, "example.py", tuple(RULES.values()), settings)
    assert again.bugs == ()
    assert again.text == result.text, "stable"
    return result


@pytest.mark.parametrize("title", OUT)
def test_a_function_that_is_left_out_of_graphs_gives_the_same(title: str) -> None:
    result = left_out(OUT[title])
    assert result.text.count("@torch.compiler.disable") == 1
    after = result.text.removeprefix(PREAMBLE)
    compared = run_example(OUT[title], after, LEVELS)
    assert compared.compiled_difference is None, str(compared)
    assert compared.difference is None
    assert compared.aliasing is None


@pytest.mark.parametrize("title", KEPT_IN)
def test_a_function_that_cannot_be_left_out_is_as_it_was(title: str) -> None:
    result = left_out(KEPT_IN[title])
    assert result.text == PREAMBLE + KEPT_IN[title]
    assert {found.applicability for found in result.found} == {"display-only"}
    assert all(found.assumption for found in result.found)


def test_forward_of_a_part_is_left_out_where_the_model_is_known_and_that_of_the_model_is_not() -> None:
    source = PREAMBLE + OUT["one layer of a model, which is a module"]
    for function, models, out in (
        ("Level.forward", ("example.Net",), 1),
        ("Net.forward", ("example.Net",), 0),
        ("Level.forward", ("example.Level",), 0),
        ("Level.forward", (), 0),
    ):
        settings = Settings(unsafe=True, extents=(BROKEN[0]._replace(function=function),), models=models)
        text = patch(source, "example.py", (RULES["FC207"],), settings).text
        assert text.count("@torch.compiler.disable") == out, (function, models)
