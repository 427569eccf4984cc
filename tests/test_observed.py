"""What a run has seen of expressions: the wrapped program does the same, and rules take the types that were seen."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from patcher.diagnose.bench import Bench
from patcher.diagnose.counted import counting
from patcher.diagnose.places import Places
from patcher.edit.engine import patch
from patcher.edit.suppress import OF_COMMENTS
from patcher.harness import run as running
from patcher.harness.cases import Case
from patcher.harness.earlier import Workers
from patcher.harness.plan import Options, write
from patcher.measuring.observed import Observed, document, observations
from patcher.results import PatchResult
from patcher.rule import Rule
from patcher.run.observing import MOST_FACTS, Observer
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import PREAMBLE

PROGRAM = Path(__file__).resolve().parent.parent / "fix_compile.py"
RULES = {rule.code: rule for rule in load_rules()}
ALL_OF_PYTHON = '''
"""Documented."""
from __future__ import annotations

import dataclasses
import functools

LIMIT: int = 3


def decorated(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        """Inside."""
        return f(*args, **kwargs)

    return inner


class Base:
    def __init__(self, *values: int, scale: float = 2.0) -> None:
        super().__init__()
        self.__values, self.scale = list(values), scale

    @property
    def total(self) -> float:
        return sum(self.__values) * self.scale

    @decorated
    def each(self):
        yield from (v * 2 for v in self.__values if v != LIMIT)


class Net(Base):
    def __init__(self, *values):
        super().__init__(*values, scale=3.0)

    def run(self, n, *, more=(1, 2), **rest):
        """Docs."""
        global LIMIT
        a, *b = [n, *more]
        if (c := a + 1) > 2 and not rest or n == 0:
            a += c
        else:
            del c
        found = {k: v for k, v in zip("ab", b)} | {"x": [i for i in range(n) if i % 2]}
        match b:
            case [1, x] if x > 1:
                found["y"] = x
            case _:
                found["y"] = None
        try:
            found["z"] = 1 / (n - 1)
        except ZeroDivisionError as error:
            found["z"] = str(error)
        finally:
            LIMIT = 3
        add = lambda u, v=LIMIT: u + v
        text = f"{n:>3} {self.total!r} {add(n)}"
        while n > 0:
            n -= 1
            if n == 1:
                continue
        b[0], found["s"] = b[-1:], "abc"[::-1][n : n + 2]
        names = sorted(name for name in locals() if name != "error")
        return a, b, found, text, names, -n, a if n else b, list(self.each())


def result():
    return [Net(1, 3, 4).run(n, **more) for n in (0, 1, 2, 5) for more in ({}, {"more": [7]}, {"q": 1})]
'''
NET = """
class Net(nn.Module):
    def forward(self, batch):
        h, keep = batch["h"], batch["keep"]
        n = self.count(h, keep)
        return self.scaled(h, batch["scale"]), n

    def count(self, h, keep):
        if h[keep].shape[0] == 0:
            raise ValueError("nothing")
        return 1

    def scaled(self, h, scale):
        if scale > 0.5:
            h = h * scale
        else:
            h = h + 1.0
        return h
"""


@pytest.fixture(autouse=True)
def only_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Imports are as before when the test is over."""
    import builtins
    import importlib.machinery

    loader = importlib.machinery.SourceFileLoader
    monkeypatch.setattr(loader, "get_code", loader.get_code)
    monkeypatch.setattr(builtins, "_fix_compile_saw", None, raising=False)
    yield


def loaded(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"observed_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def watched(text: str, folder: Path) -> tuple[Any, Observer]:
    file = folder / "watched.py"
    file.write_text(text)
    observer = Observer([str(file.resolve())])
    observer.install()
    return loaded(file), observer


def test_a_program_that_is_looked_at_does_the_same(tmp_path: Path) -> None:
    plain = tmp_path / "plain.py"
    plain.write_text(ALL_OF_PYTHON)
    expected = loaded(plain).result()
    module, observer = watched(ALL_OF_PYTHON, tmp_path)
    observer.on = True
    assert module.result() == expected
    (seen,) = observer.observations()["files"].values()
    assert len(seen["expressions"]) > 100
    nodes = {
        (n.lineno, n.col_offset, n.end_lineno, n.end_col_offset)
        for n in ast.walk(ast.parse(ALL_OF_PYTHON))
        if hasattr(n, "lineno")
    }  # type: ignore[attr-defined]
    assert {tuple(one["at"]) for one in seen["expressions"]} <= nodes


def test_what_was_seen_is_told_by_expression(tmp_path: Path) -> None:
    text = "def f(x, n):\n    y = x * n\n    return y.sum(), [n]\n"
    module, observer = watched(text, tmp_path)
    module.f(torch.ones(9), 1)  # not looked at
    observer.on = True
    for n in (2, 3):
        module.f(torch.ones(n, 4), n)
    seen = observations(observer.observations()).of(text)
    assert seen[2, 8, 2, 13] == Observed(frozenset({"tensor"}), frozenset({"torch.float32"}), ((2, 4), (3, 4)), 2)
    assert seen[1, 9, 1, 10].kinds == {"int"}
    assert seen[3, 11, 3, 18].rank == 0
    assert seen[3, 21, 3, 22].kinds == {"int"}
    assert observations(observer.observations()).of(text + "\n") == {}


def test_many_shapes_are_no_shape(tmp_path: Path) -> None:
    text = "def f(x):\n    return x + 1\n"
    module, observer = watched(text, tmp_path)
    observer.on = True
    for n in range(MOST_FACTS + 3):
        module.f(torch.ones(n))
    one = observations(observer.observations()).of(text)[2, 11, 2, 12]
    assert one.is_tensor
    assert (one.shapes, one.rank, one.looks) == ((), None, MOST_FACTS + 3)


def test_what_cannot_be_asked_is_seen_all_the_same(tmp_path: Path) -> None:
    text = "def f(x):\n    return x\n"
    module, observer = watched(text, tmp_path)
    observer.on = True
    module.f(torch.ones(2))
    module.f(torch.nn.parameter.UninitializedParameter())
    assert observations(observer.observations()).of(text)[2, 11, 2, 12].kinds == {"tensor", "?"}


def test_evidence_of_another_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="schema 7"):
        observations({"schema": 7, "files": {}})


def found_in(text: str, code: str, folder: Path, run: str, **settings: Any) -> PatchResult:
    source = PREAMBLE + text
    module, observer = watched(source, folder)
    observer.on = True
    exec(textwrap.dedent(run), vars(module))
    rule: Rule = RULES[code]
    result = patch(source, "watched.py", (rule,), Settings(observed=observations(observer.observations()), **settings))
    assert result.bugs == ()
    return result


CALLS = """
for n in (3, 5):
    Net()({"h": torch.randn(2, n, 4), "keep": torch.arange(2 * n).view(2, n) % 3 > 0, "scale": torch.tensor(n / 6)})
"""


@pytest.mark.parametrize(("code", "about"), [("FC402", "keep"), ("FC101", "scale")])
def test_a_fix_that_takes_what_was_seen_is_measured(code: str, about: str, tmp_path: Path) -> None:
    alone = patch(PREAMBLE + NET, "watched.py", (RULES[code],), Settings(unsafe=True))
    assert alone.found == ()
    result = found_in(NET, code, tmp_path, CALLS, unsafe=True)
    (one,) = result.fixed
    assert one.measured is (code == "FC402"), "FC101 takes more for granted than types"
    assert f"`{about}` is a" in one.assumption
    assert found_in(NET, code, tmp_path, CALLS).fixed == (), "only where assumptions are taken"
    assert bool(found_in(NET, code, tmp_path, CALLS, measured=True).fixed) is one.measured


@pytest.mark.parametrize(("code", "scale"), [("FC101", "0.7"), ("FC101", "torch.rand(3)")])
def test_what_was_seen_otherwise_is_not_fixed(code: str, scale: str, tmp_path: Path) -> None:
    calls = CALLS.replace("torch.tensor(n / 6)", scale)
    if "torch" in scale:
        calls = f"try:\n{textwrap.indent(calls.strip(), '    ')}\nexcept RuntimeError:\n    pass\n"
    assert found_in(NET, code, tmp_path, calls, unsafe=True).fixed == ()


SELDOM = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        for _ in range(3):
            x = {made}
            if x.mean() > 1e6:
                x = x * 0.5
        return x
"""


@pytest.mark.parametrize("made", ["x / (1 + x.abs())", "self.layer(x)"])
def test_an_arm_that_never_ran_has_the_types_of_the_same_names_outside(made: str, tmp_path: Path) -> None:
    text = SELDOM.format(made=made)
    result = found_in(text, "FC101", tmp_path, "Net()(torch.randn(2, 4))", unsafe=True)
    assert "x = torch.where(x.mean() > 1e6, x * 0.5, x)" in result.text
    assert found_in(text, "FC101", tmp_path, "Net()(torch.randn(2, 4))").fixed == ()
    for other in ("if x is not None:\n                x = x * 0.5", "if x.mean() > 1e6:\n                x = y"):
        changed = text.replace("if x.mean() > 1e6:\n                x = x * 0.5", other)
        assert not found_in(changed, "FC101", tmp_path, "Net()(torch.randn(2, 4))", unsafe=True).fixed


QUERY = """
import functools, os, subprocess


{decorator}def chip({given}):
    return {answer}


class Net(nn.Module):
    def forward(self, x):
        return x * chip({asked})
"""
ANSWER = "int(subprocess.run(['echo', '3'], capture_output=True, text=True).stdout)"


@pytest.mark.parametrize(
    ("decorator", "given", "answer", "asked", "fixed"),
    [
        ("", "", ANSWER, "", True),
        ("@functools.lru_cache(maxsize=1)\n", "", ANSWER, "", True),
        ("", "n", f"n + {ANSWER}", "2", True),
        ("", "", f"1 if len(SEEN.append(0) or SEEN) > 1 else {ANSWER}", "", False),
        ("", "x", f"x + {ANSWER}", "x", False),  # it is asked with a tensor
        ("", "", f"len(SEEN.append(0) or SEEN) + {ANSWER}", "", False),  # it answers otherwise
        ("@functools.wraps(abs)\n", "", ANSWER, "", False),  # another decorator
    ],
)
def test_a_host_query_that_answers_the_same_is_a_constant(
    decorator: str, given: str, answer: str, asked: str, fixed: bool, tmp_path: Path
) -> None:
    text = QUERY.format(decorator=decorator, given=given, answer=answer, asked=asked) + "\n\nSEEN = []\n"
    assert not patch(PREAMBLE + text, "watched.py", (RULES["FC603"],), Settings(unsafe=True)).fixed
    result = found_in(text, "FC603", tmp_path, "Net()(torch.ones(2)); Net()(torch.ones(2))", unsafe=True)
    assert bool(result.fixed) is fixed
    assert ("assume_constant_result" in result.text) is fixed


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("x.is_inference()", "(False if torch.compiler.is_compiling() else x.is_inference())"),
        ("torch.typename(x)", "('torch.FloatTensor' if torch.compiler.is_compiling() else torch.typename(x))"),
        ("torch.get_num_threads()", ""),  # it answers otherwise
    ],
)
def test_an_answer_that_is_always_the_same_is_that_of_compiled_code(call: str, code: str, tmp_path: Path) -> None:
    text = f"""
class Net(nn.Module):
    def forward(self, x):
        asked = {call}
        return x + len(str(asked))
"""
    threads = torch.get_num_threads()
    run = "Net()(torch.ones(2)); torch.set_num_threads(7); Net()(torch.ones(2))"
    result = found_in(text, "FC611", tmp_path, run, unsafe=True)
    torch.set_num_threads(threads)
    assert [found.code for found in result.found] == ["FC611"]
    assert f"asked = {code or call}\n" in result.text
    once = found_in(text, "FC611", tmp_path, "Net()(torch.ones(2))", unsafe=True)
    assert once.fixed == (), "one look says nothing of the next"


def test_proven_fixes_stay_as_they_are(tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def forward(self, x):
        if (x > 3).any():
            x = x + 1
        else:
            x = x - 1
        return x
"""
    source = PREAMBLE + text
    alone = patch(source, "watched.py", (RULES["FC101"],), Settings())
    seen = found_in(text, "FC101", tmp_path, "Net()(torch.ones(2))", unsafe=True)
    assert [f.applicability for f in alone.found] == [f.applicability for f in seen.found]
    assert not any(f.measured for f in seen.found if f.applicability == "safe")


CASE = """\
import torch
from net import Net


def build():
    return Net()


def calls():
    return [({"h": torch.ones(2, 3, 4), "keep": torch.ones(2, 3) > 0, "scale": torch.tensor(1.0)},)]
"""


def test_the_harness_looks_while_it_counts(one_parent: None, tmp_path: Path) -> None:
    net = tmp_path / "net.py"
    net.write_text(PREAMBLE + NET)
    (tmp_path / "case.py").write_text(CASE)
    options = Options(
        base=str(tmp_path),
        paths=(str(tmp_path),),
        quick=True,
        backend="eager",
        counting=True,
        seconds=100,
        observed=(str(net),),
    )
    [case] = running.run(write(tmp_path / "work", (), [Case("net", str(tmp_path / "case.py"))], options))["cases"]
    seen = observations(case["observations"]).of(PREAMBLE + NET)
    assert any(one.dtypes == {"torch.bool"} for one in seen.values())


def test_a_look_beside_another_run_waits_for_nothing_that_run_does_not_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, asked_for = tmp_path / "net.py", list[Path]()
    net.write_text(PREAMBLE + NET)
    (tmp_path / "case.py").write_text(CASE)
    monkeypatch.setattr(Workers, "_await", lambda workers, path, seconds: asked_for.append(path))
    options = Options(base=str(tmp_path), paths=(str(tmp_path),), quick=True, backend="eager", seconds=100)
    look = replace(counting(options), repeat=False, observed=(str(net),))
    cases = (Case("net", str(tmp_path / "case.py")),)
    with Bench(cases, options, sys.executable, Places((str(net),), str(tmp_path), (str(tmp_path),))) as bench:
        first, second = bench.begin((), options), bench.begin((), look)
        bench.finish(first)
        assert bench.finish(second).results.cases[0].observations
        assert asked_for, "its eager variant is that of the other run"
        assert [path for path in asked_for if not path.exists()] == []


def test_evidence_of_a_run_is_used_without_one(tmp_path: Path) -> None:
    module, observer = watched(PREAMBLE + NET, tmp_path)
    observer.on = True
    exec(CALLS, vars(module))
    document_file = tmp_path / "evidence.json"
    document_file.write_text(json.dumps(document([observer.observations(), observer.observations()])))
    file = tmp_path / "watched.py"

    def check() -> tuple[int, str]:
        asked = ["check", "--verify-only", "--no-cache", "--evidence", str(document_file), str(file)]
        done = subprocess.run([sys.executable, str(PROGRAM), *asked], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    assert "FC402 [measured fix]" in check()[1]
    file.write_text(file.read_text() + "\n")
    assert "FC402" not in check()[1], "it was edited since"
    document_file.write_text("[]")
    status, told = check()
    assert (status, "no evidence of fix-compile" in told) == (2, True)


def test_comments_that_silence_are_told_of_once(tmp_path: Path) -> None:
    text = NET.replace("if scale > 0.5:", "if scale > 0.5:  # fix-compile: ignore[FC101]")
    text = text.replace("return h\n", "return h  # fix-compile: ignore[FC402]\n")
    source = PREAMBLE + text
    module, observer = watched(source, tmp_path)
    observer.on = True
    exec(CALLS, vars(module))
    settings = Settings(unsafe=True, observed=observations(observer.observations()))
    found = patch(source, "watched.py", (*OF_COMMENTS, *RULES.values()), settings).found
    told = [f for f in found if f.code.startswith("FC0")]
    assert [(f.line, f.applicability, f.measured) for f in told] == [
        (source[: source.index("ignore[FC402]")].count("\n") + 1, "display-only", False)
    ]
