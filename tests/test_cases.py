"""Which files the wanted words stand for, and what is wrong with a case before it runs."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from patcher.config import ConfiguredCase
from patcher.harness.cases import Case, CaseError, find

GOOD = "def build(): ...\ndef calls(): ...\n"
Configured = Mapping[str, ConfiguredCase]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project (the root) with a working folder ``work`` in it, and case files in each place that is looked at."""
    cases = ("near.py", "work/near.py", "cases/tiny.py", "cases/Big.py", "work/cases/inner.py", "work/here.py")
    for name in (*cases, "more/one.py", "more/two.py", "more/test_one.py", "more/conftest.py", "more/_own.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(GOOD)
    (tmp_path / "more/plain.py").write_text("def build(): ...\n")
    (tmp_path / "more/star.py").write_text("from torch import *\n")
    (tmp_path / "more/zero.py").write_text("from .two import *\ntrain = True\n")
    (tmp_path / "more/data.txt").write_text("")
    (tmp_path / "more/folder.py").mkdir()
    (tmp_path / "work/model.py").write_text("class Model: ...\n")
    (tmp_path / "work/empty").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


CONFIGURED = {"vision": ConfiguredCase("cases/tiny.py", tolerance=0.1), "many": ConfiguredCase("more", device="cuda")}


def pairs(project: Path, cases: tuple[Case, ...]) -> list[str]:
    return [f"{case.name} {Path(case.file).relative_to(os.path.realpath(project))}" for case in cases]


@pytest.mark.parametrize(
    ("wanted", "configured", "found"),
    [
        (["here.py"], {}, ["here work/here.py"]),
        (["../cases/tiny.py"], {}, ["tiny cases/tiny.py"]),
        (["../more/test_one.py"], {}, ["test_one more/test_one.py"]),
        (["../more"], {}, ["one more/one.py", "two more/two.py", "zero more/zero.py"]),
        (["here", "inner", "tiny"], {}, ["here work/here.py", "inner work/cases/inner.py", "tiny cases/tiny.py"]),
        (["TINY", "big"], {}, ["tiny cases/tiny.py", "Big cases/Big.py"]),
        (["near"], {"Near": ConfiguredCase("cases/tiny.py")}, ["near work/near.py"]),
        (["NEAR"], {"Near": ConfiguredCase("cases/tiny.py")}, ["Near cases/tiny.py"]),
        (["here"], {"here": ConfiguredCase("cases/tiny.py")}, ["here cases/tiny.py"]),
        (["two"], CONFIGURED, ["two more/two.py"]),
        (["many"], CONFIGURED, ["one more/one.py", "two more/two.py", "zero more/zero.py"]),
        ([], {}, ["Big cases/Big.py", "tiny cases/tiny.py"]),
        ([], CONFIGURED, ["vision cases/tiny.py", "one more/one.py", "two more/two.py", "zero more/zero.py"]),
        (["tiny"], CONFIGURED, ["vision cases/tiny.py"]),
        (["empty"], {"empty": ConfiguredCase("near.py")}, ["empty near.py"]),
        (["x.py"], {"x.py": ConfiguredCase("near.py")}, ["x.py near.py"]),
        (["here", "here.py", "./here.py", "HERE"], {}, ["here work/here.py"]),
        (["a", "b"], {"a": ConfiguredCase("near.py"), "b": ConfiguredCase("near.py")}, ["a near.py"]),
        (["tiny", "inner"], {"gone": ConfiguredCase("gone")}, ["tiny cases/tiny.py", "inner work/cases/inner.py"]),
    ],
)
def test_words(project: Path, wanted: list[str], configured: Configured, found: list[str]) -> None:
    assert pairs(project, find(wanted, configured, project)) == found


def test_without_a_project(project: Path) -> None:
    assert pairs(project, find(["inner"], {"x": ConfiguredCase("here.py")}, None)) == ["inner work/cases/inner.py"]
    assert pairs(project, find(["x"], {"x": ConfiguredCase("here.py")}, None)) == ["x work/here.py"]


def test_settings_come_from_the_configuration(project: Path) -> None:
    real = os.path.realpath(project)
    full = ConfiguredCase("near.py", True, 0.5, "cuda:0", "half")
    assert find(["x"], {"x": full}, project) == (Case("x", f"{real}/near.py", "", True, 0.5, "cuda:0", "half"),)
    assert find(["../near.py"], {"x": full}, project) == find(["x"], {"x": full}, project)
    assert find(["../near.py"], {}, project) == (Case("near", f"{real}/near.py"),)
    folder = {"all": ConfiguredCase("more", device="cuda"), "other": ConfiguredCase("more/two.py", dtype="float")}
    assert [(case.name, case.device, case.dtype) for case in find(["all"], folder, project)] == [
        ("one", "cuda", None),
        ("other", None, "float"),
        ("zero", "cuda", None),
    ]
    assert {case.device for case in find(["one", "../more/one.py"], folder, project)} == {"cuda"}


def test_one_file_with_several_settings_is_several_cases(project: Path) -> None:
    configured = {"cpu": ConfiguredCase("near.py"), "gpu": ConfiguredCase("near.py", device="cuda")}
    assert [case.name for case in find([], configured, project)] == ["cpu", "gpu"]


def test_variations(project: Path) -> None:
    found = find(["tiny", "here"], CONFIGURED, project, ["batch", "sequence", "batch"])
    assert [(case.name, case.vary) for case in found] == [
        ("vision", ""),
        ("vision[batch]", "batch"),
        ("vision[sequence]", "sequence"),
        ("here", ""),
        ("here[batch]", "batch"),
        ("here[sequence]", "sequence"),
    ]
    assert {case.tolerance for case in found[:3]} == {0.1}


def test_a_link_is_the_file_that_it_leads_to(project: Path) -> None:
    (project / "work/link.py").symlink_to("here.py")
    assert pairs(project, find(["link", "here"], {}, project)) == ["link work/here.py"]


def failure(*arguments: object) -> str:
    with pytest.raises(CaseError) as error:
        find(*arguments)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("wanted", "configured", "message"),
    [
        (["xyz.py"], {}, "xyz.py: there is no such file (known: Big, "),
        (["inne.py"], {}, "inne.py: there is no such file (did you mean 'inner'?)"),
        (["visoin"], CONFIGURED, "no case is called 'visoin' (did you mean 'vision'?)"),
        (["fwo"], CONFIGURED, "(did you mean 'two'?)"),
        (["tyny"], {}, "(did you mean 'tiny'?)"),
        (["xyz"], {}, "(known: Big, tiny, inner, here, near)"),
        ([""], {}, "no case is called ''"),
        (["a\0b"], {}, "no case is called 'a\\x00b'"),
        (["../more/folder.py"], {}, "/more/folder.py: is a folder; a case is a .py file"),
        (["empty"], {}, "empty: no .py file in this folder has both build() and calls()"),
        (["../more/data.txt"], {}, "../more/data.txt: is no .py file, so it is no case"),
        (["model"], {}, "model.py: there is no build(), which returns the model, and no calls(), which"),
        (["tiny"], {"tiny": ConfiguredCase("gone.py")}, "/gone.py: there is no such file or folder; [tool.fix-"),
        ([], {"tiny": ConfiguredCase("work/empty")}, "empty: no .py file in this folder"),
        ([], {"tiny": ConfiguredCase("more/data.txt")}, "/more/data.txt: is no .py file"),
        (["../near.py", "near.py"], {}, "/near.py and near.py"),
        (["x", "X"], {"X": ConfiguredCase("near.py"), "x": ConfiguredCase("cases/x.py")}, "/cases/x.py: there is no"),
    ],
)
def test_words_without_a_case(project: Path, wanted: list[str], configured: Configured, message: str) -> None:
    assert message in failure(wanted, configured, project)


def test_names_that_mean_several_cases(project: Path) -> None:
    (project / "work/cases/tiny.py").write_text(GOOD)
    said = failure(["tiny"], {}, project)
    assert said.startswith("'tiny' is the name of several cases: ")
    assert "cases/tiny.py" in said and f"{os.path.realpath(project)}/cases/tiny.py" in said
    both = {"Case": ConfiguredCase("near.py"), "CASE": ConfiguredCase("more")}
    assert failure(["case"], both, project) == "'case' is the name of several cases: Case, CASE"
    twice = {"a": ConfiguredCase("more", device="cpu"), "b": ConfiguredCase("more", device="cuda")}
    assert failure([], twice, project).endswith("more/one.py, with different settings")


def test_unknown_variation(project: Path) -> None:
    assert failure(["here"], {}, project, ["bach"]) == "a case cannot vary 'bach' (did you mean 'batch'?)"


def test_nothing_known_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert failure(["x"], {}, None).startswith("no case is called 'x': a case is a .py file with build()")
    assert failure([], {}, None).startswith(
        "no case is given and none is configured: a case is a .py file with build()"
    )


WRONG = {
    "def build(): ...\n": "c.py: there is no calls(), which returns the calls to make",
    "def calls(): ...\n": "c.py: there is no build(), which returns the model",
    "class A:\n    def build(): ...\n    def calls(): ...\n": "c.py: there is no build()",
    "build: object\n" + "def calls(): ...\n": "c.py: there is no build()",
    "x = 1\ndef build(:\n": "c.py:2: is no valid Python: ",
    GOOD + "return 1\n": "c.py:3: is no valid Python: 'return' outside function",
    GOOD + "x = " + "(" * 5000: "c.py:3: is no valid Python: ",
    GOOD + "x = " + "-" * 100000 + "1": "c.py: is nested too deeply to be read",
    GOOD + "x = '\0'\n": "c.py:3: contains a null byte",
    "def calls(): ...\nasync def build(): ...\n": "c.py:2: build() must be an ordinary function, not async",
    GOOD + "async def calls(): ...\n": "c.py:3: calls() must be",
    "def calls(): ...\ndef build(a, /, b, c=1, *, d, e=2): ...\n": "c.py:2: build() is called without arguments, but "
    "requires a, b, d",
    "def build(): ...\ncalls = lambda n: [n]\n": "c.py:2: calls() is called without arguments, but requires n",
    "def build(): ...\ncalls = [(f(), {})]\n": "c.py:2: calls must be a function, not a value",
    "def build(): ...\nif x:\n    calls = None\n": "c.py:3: calls must be a function, not a value",
    GOOD + "compile = True\n": "c.py:3: compile must be a function, not a value",
    GOOD + "async def loss(x): ...\n": "c.py:3: loss() must be",
    GOOD + "train = 1\n": "c.py:3: train must be true or false, not 1",
    GOOD + "train = None\n": "c.py:3: train must be true or false, not None",
    GOOD + "def train(): ...\n": "c.py:3: train must be true or false, not a definition",
    GOOD + "tolerance: float = '1e-3'\n": "c.py:3: tolerance must be a positive number, not '1e-3'",
    GOOD + "tolerance = -1e-3\n": "c.py:3: tolerance must be a positive number, not -0.001",
    GOOD + "a = tolerance = 0\n": "c.py:3: tolerance must be a positive number, not 0",
    GOOD + "tolerance = 1e999\n": "c.py:3: tolerance must be a positive number, not inf",
    GOOD + "tolerance = True\n": "c.py:3: tolerance must be a positive number, not True",
    GOOD + "device = 0\n": 'c.py:3: device must be a device of torch such as "cpu", "cuda"',
    GOOD + "device = 'gpu'\n": "or \"xpu\", not 'gpu'",
    GOOD + "device = 'cuda:x'\n": "or \"xpu\", not 'cuda:x'",
    GOOD
    + "dtype = 'float8'\n": "c.py:3: dtype must be one of float16, bfloat16, float32, float64, half, float, double",
    GOOD + "dtype = 16\n": "not 16",
    GOOD + "if x:\n    train = 0\nelse:\n    train = 1\n": "c.py:4: train must be true or false, not 0",
    GOOD + "from x import *\ntrain = 0\n": "c.py:4: train must be",
    GOOD + "with x:\n    train = 0\n": "c.py:4: train must be",
}


@pytest.mark.parametrize(("source", "message"), WRONG.items(), ids=WRONG.values())
def test_what_is_certainly_wrong(project: Path, source: str, message: str) -> None:
    (project / "work/c.py").write_text(source)
    assert message in failure(["c.py"], {}, project)


@pytest.mark.parametrize(
    "source",
    [
        "from models import build, calls\n",
        "import build\nimport models.calls as calls\n",
        "from models import *\n",
        "build = Model\ncalls = functools.partial(make, 3)\n",
        "build = lambda n=1: n\ncalls = lambda *args, **kwargs: []\n",
        "def build(layers=2, *, width=3): ...\ndef calls(*args, **kwargs): ...\n",
        "class build: ...\nbuild, calls = make()\n",
        "@wrapped\ndef build(config): ...\n@wrapped\nasync def calls(): ...\n",
        "if x:\n    from a import build, calls\nelse:\n    def build(): ...\n    def calls(): ...\n",
        "try:\n    from a import build, calls\nexcept ImportError:\n    build = calls = None\n",
        "try:\n    pass\nfinally:\n    with x as build:\n        calls = f\n",
        "for build in (f,):\n    (calls := g)\n",
        "match x:\n    case 1:\n" + "".join(f"        {line}\n" for line in GOOD.splitlines()),
        GOOD + "train = True\ntolerance = 1\ndevice = 'cuda:1'\ndtype = 'torch.bfloat16'\n",
        GOOD + "train = bool(1)\ntolerance = 10 ** -3\ndevice = torch.device('cpu')\ndtype = torch.half\n",
        GOOD + "device = dtype = compile = loss = optimizer = None\n",
        GOOD + "device = 'cpu' if x else 3\ntolerance = {[]: 1}\n",
        GOOD + "train = 0\ntrain = True\n",
        GOOD + "train = 0\nif x:\n    train = True\n",
        GOOD + "train = 0\nfrom x import *\n",
        GOOD + "def compile(model, **options): ...\ndef loss(output): ...\ndef optimizer(parameters): ...\n",
        GOOD + "x = '\\d'\nassert (1, 'said')\n",
        "# coding: latin-1\nx = 'h\xe9'\n" + GOOD,
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_may_be_right(project: Path, source: str) -> None:
    (project / "work/c.py").write_text(source, encoding="latin-1")
    assert len(find(["c.py"], {}, project)) == 1


def test_bytes_that_are_no_text(project: Path) -> None:
    (project / "work/c.py").write_bytes(b"x = 1\ny = '\xff'\n")
    assert failure(["c"], {}, project) == "c.py:2: byte 0xff is not valid UTF-8"


def test_what_cannot_be_read(project: Path) -> None:
    os.mkfifo(project / "work/c.py")
    assert failure(["c.py"], {}, project) == "c.py: is not a regular file"
    (project / "work/loop.py").symlink_to("loop.py")
    assert failure(["loop.py"], {}, project).startswith("loop.py: cannot be read: ")


def test_what_may_not_be_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*anything: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)  # root may read everything
    assert failure(["../more"], {}, project) == "../more: cannot be read: permission denied"


def test_a_broken_file_in_a_folder_is_not_passed_over(project: Path) -> None:
    (project / "more/broken.py").write_text("def build(:\n")
    assert "broken.py:1: is no valid Python" in failure(["../more"], {}, project)
    assert pairs(project, find(["two"], CONFIGURED, project)) == ["two more/two.py"]
