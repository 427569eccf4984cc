"""``fix-compile selftest``: examples on the user's PyTorch, what is remembered of them, and what follows from it."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from patcher import cli
from patcher.config import ConfigError
from patcher.edit.engine import patch
from patcher.facts import Facts
from patcher.finding import find
from patcher.rule import Code, Example, Finding, Fix, NearMiss, Replace, Rule, Where
from patcher.selftest import call, executing
from patcher.selftest.call import judged, tried_example
from patcher.selftest.executing import Interpreter, Measured, execute, interpreter, measured
from patcher.settings import Settings

RUN = "def make(): return f\ncalls = [(torch.ones(2),), (torch.zeros(2),)]\n"
ADDED = "def f(x): return x + 1\n"
BRANCH = "def f(x):\n    if x.sum() > 0:\n        return x * 2\n    return x * 1\n"
WHERE = "def f(x):\n    return torch.where(x.sum() > 0, x * 2, x * 1)\n"


class Doubled(Rule):
    """A rule for the tests: ``slow()`` becomes ``fast()``."""

    code: ClassVar[str] = "FC991"
    name: ClassVar[str] = "slow-call"
    triggers: ClassVar[tuple[bytes, ...]] = (b"slow(",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    where: ClassVar[Where] = Where.ANYWHERE
    fixed_in: ClassVar[tuple[int, int] | None] = None
    costs: ClassVar[tuple[Any, ...]] = ("graph break",)
    invalid: ClassVar[tuple[Example, ...]] = (Example(BRANCH, WHERE, RUN, "a branch"),)
    valid: ClassVar[tuple[NearMiss, ...]] = ()

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "slow":
            yield Finding(node, "slow call", Fix((Replace(node, Code("fast()")),)))


class Lying(Doubled):
    """A rule whose example changes results."""

    code: ClassVar[str] = "FC992"
    name: ClassVar[str] = "lying-call"
    triggers: ClassVar[tuple[bytes, ...]] = (b"lying(",)
    invalid: ClassVar[tuple[Example, ...]] = (
        Example(BRANCH, WHERE.replace("x * 2", "x * 3"), RUN, "three for two"),
        Example(BRANCH, WHERE, RUN, "a branch"),
    )

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lying":
            yield Finding(node, "lying call", Fix((Replace(node, Code("fast()")),)))


class Superfluous(Doubled):
    """A rule whose pattern does not break."""

    code: ClassVar[str] = "FC993"
    name: ClassVar[str] = "harmless-call"
    triggers: ClassVar[tuple[bytes, ...]] = (b"harmless(",)
    invalid: ClassVar[tuple[Example, ...]] = (
        Example(ADDED, "def f(x): return 1 + x\n", RUN, "an addition"),
        Example(ADDED, None, RUN, "only told"),
    )


RULES = (Doubled(), Lying(), Superfluous())
Run = Callable[..., tuple[int, str, str]]

FIGURES = {"breaks": 1, "graphs": 2, "recompiles": 0, "limit_hits": 0, "dropped_frames": 0}
NONE = {**FIGURES, "breaks": 0, "graphs": 1}
RECORD: dict[str, Any] = {
    "difference": None, "aliasing": None, "drawn": None, "compiled": None, "compiled_before": None,
    "calls": 2, "raised": 0, "before": FIGURES, "after": NONE, "lost": [],
}  # fmt: skip


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in an empty project with a cache folder of its own."""
    (tmp_path / "setup.cfg").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["fix-compile"])
    monkeypatch.setenv("FIX_COMPILE_CACHE", str(tmp_path / "cache"))

    def called(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        status = cli.main(RULES, arguments)
        return (status, *capfd.readouterr())

    return called


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """No torch: each example has the record that its rule deserves; returns what was executed."""
    executed: list[dict[str, Any]] = []

    def pretend(executable: str, requests: Any, jobs: int, done: Any) -> None:
        for number, request in enumerate(requests):
            executed.append(request)
            lies, harmless = "x * 3" in request["after"], request["before"] == ADDED
            told = {"difference": "output[0]: 2.0 against 3.0"} if lies else {}
            done(number, {**RECORD, **told, **({"before": NONE} if harmless else {})}, False)

    monkeypatch.setattr(call, "execute", pretend)
    monkeypatch.setattr(call, "interpreter", lambda python: Interpreter(python, "3.11.1", "2.11.0"))
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.11.0")
    return executed


@pytest.mark.slow
def test_examples_are_run_on_this_torch_and_remembered(tool: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    status, out, err = tool("selftest", "-j", "1")
    assert (status, err) == (1, "")
    first, *lines = out.splitlines()
    assert first.startswith(f"torch {importlib.metadata.version('torch')}, Python ")
    assert [" ".join(line.split()) for line in lines] == [
        "FC991 slow-call helps 1 of 1 examples, breaks 1 -> 0",
        "FC992 lying-call wrong here 1 of 2 examples, breaks 2 -> 0",
        "wrong here: three for two: output[0][0][0]: 2.0 against 3.0 (2 elements differ)",
        "FC993 harmless-call no longer needed 1 of 1 examples",
        "3 rules: 1 helps, 1 no longer needed, 1 wrong here",
        "A rule that is wrong here does not fix here: its findings stay, and say so.",
    ]

    def nothing(*arguments: object) -> None:
        raise AssertionError("something is executed again")

    monkeypatch.setattr(call, "execute", nothing)
    assert tool("selftest") == (status, out, err)
    with pytest.raises(AssertionError, match="again"):
        tool("selftest", "--no-cache")


def test_the_same_example_is_executed_once(tool: Run, recorded: list[dict[str, Any]]) -> None:
    tool("selftest")
    assert len(recorded) == 3, "two rules share one"
    tool("selftest")
    assert len(recorded) == 3
    tool("selftest", "--no-cache", "FC993")
    assert len(recorded) == 4


def test_a_record_is_of_one_torch_and_one_program(
    tool: Run, recorded: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("selftest", "FC991")
    monkeypatch.setattr(call, "interpreter", lambda python: Interpreter(python, "3.11.1", "2.12.0"))
    tool("selftest", "FC991")
    assert len(recorded) == 2
    monkeypatch.setattr(call, "program_digest", lambda: "another")
    tool("selftest", "FC991")
    assert len(recorded) == 3


def test_the_report_for_programs(tool: Run, recorded: list[dict[str, Any]]) -> None:
    status, out, _ = tool("selftest", "lying-call", "FC993", "--format", "json")
    document = json.loads(out)
    assert status == 1
    assert (document["torch"], document["python"], document["call"]) == ("2.11.0", "3.11.1", "selftest")
    assert [(r["code"], r["verdict"], r["examples"]) for r in document["rules"]] == [
        ("FC992", "wrong", 2),
        ("FC993", "needless", 1),
    ]
    assert document["rules"][0]["wrong"] == [{"example": "three for two", "why": "output[0]: 2.0 against 3.0"}]
    assert document["rules"][0]["breaks"] == {"before": 2, "after": 0}


def test_without_a_wrong_rule_the_status_is_0(tool: Run, recorded: list[dict[str, Any]]) -> None:
    assert tool("selftest", "FC991", "FC993")[0] == 0


def test_a_rule_says_what_was_measured(tool: Run, recorded: list[dict[str, Any]]) -> None:
    assert "easured" not in tool("rules", "FC991")[1]
    tool("selftest")
    assert "Measured on your torch 2.11.0: helps (1 of 1 examples).\n" in tool("rules", "FC991")[1]
    assert "Measured on your torch 2.11.0: wrong here (1 of 2 examples).\n" in tool("rules", "FC992")[1]


def test_a_rule_that_is_wrong_here_does_not_fix_here(tool: Run, recorded: list[dict[str, Any]], tmp_path: Path) -> None:
    source = "a = slow()\nb = lying()\n"
    (tmp_path / "m.py").write_text(source)
    assert "FC992 [safe fix] lying call" in tool("--verify-only", "m.py")[1]
    tool("selftest")
    status, out, _ = tool("--verify-only", "m.py")
    why = "`fix-compile selftest` has found this fix wrong on your torch 2.11.0"
    assert status == 1
    assert f"m.py:2:5: FC992 [no fix] lying call -- because: {why}\n" in out
    assert "FC991: measured on your torch 2.11.0: helps (1 of 1 examples)\n" in out
    assert "FC992: measured on your torch 2.11.0: wrong here (1 of 2 examples)\n" in out
    document = json.loads(tool("--verify-only", "--format", "json", "m.py")[1])
    assert document["measured"] == [
        {"code": "FC991", "told": "measured on your torch 2.11.0: helps (1 of 1 examples)"},
        {"code": "FC992", "told": "measured on your torch 2.11.0: wrong here (1 of 2 examples)"},
    ]
    tool("m.py")
    assert (tmp_path / "m.py").read_text() == "a = fast()\nb = lying()\n"


def test_another_target_is_another_torch(tool: Run, recorded: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("b = lying()\n")
    tool("selftest")
    assert "FC992 [safe fix]" in tool("--verify-only", "--target-torch", "2.12", "m.py")[1]
    assert "FC992 [no fix]" in tool("--verify-only", "--target-torch", "2.11", "m.py")[1]


def test_what_came_of_other_examples_says_nothing(tool: Run, recorded: list[dict[str, Any]]) -> None:
    tool("selftest")
    assert measured(RULES).wrong == {"FC992"}
    changed = Lying()
    changed.invalid = (replace(Lying.invalid[0], title="another"),)  # type: ignore[misc]
    assert measured((Doubled(), changed)).told == {"FC991": "helps (1 of 1 examples)"}


def test_results_of_some_rules_leave_those_of_others(tool: Run, recorded: list[dict[str, Any]]) -> None:
    tool("selftest", "FC992")
    tool("selftest", "FC991")
    assert set(measured(RULES).told) == {"FC991", "FC992"}


def test_no_torch_beside_the_tool_is_nothing_measured(
    tool: Run, recorded: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("selftest")

    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert measured(RULES) == Measured()


@pytest.mark.parametrize("broken", ["", "[]", '{"rules": 3}', '{"rules": {"FC992": {"verdict": "wrong"}}}'])
def test_a_broken_cache_is_no_cache(tool: Run, recorded: list[dict[str, Any]], broken: str) -> None:
    tool("selftest")
    for file in executing.folder().rglob("*.json"):
        file.write_text(broken)
    assert measured(RULES).told == {}
    assert tool("selftest")[0] == 1


def test_a_cache_that_cannot_be_written_is_no_failure(
    tool: Run, recorded: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FIX_COMPILE_CACHE", str(tmp_path / "file"))
    assert tool("selftest", "FC991")[0] == 0


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIX_COMPILE_CACHE", "/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv("HOME", "/home/me")
    assert executing.folder() == Path("/own/selftest")
    monkeypatch.delenv("FIX_COMPILE_CACHE")
    assert executing.folder() == Path("/xdg/fix-compile/selftest")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert executing.folder() == Path("/home/me/.cache/fix-compile/selftest")


def test_a_python_that_is_none(tool: Run, tmp_path: Path) -> None:
    missing, script = tmp_path / "missing", tmp_path / "script"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    assert tool("selftest", "--python", str(missing)) == (
        2, "", f"fix-compile selftest: error: {missing} cannot be started: No such file or directory\n",
    )  # fmt: skip
    assert tool("selftest", "--python", str(script)) == (
        2, "", f"fix-compile selftest: error: {script} does not answer as a Python does: hello\n",
    )  # fmt: skip


def test_a_python_without_torch(tool: Run, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    assert tool("selftest", "--python", str(bare)) == (
        2, "", f"fix-compile selftest: error: {bare} has no torch; --python names another\n",
    )  # fmt: skip


def test_what_lies_among_temporary_files_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nt", "json", "torch"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this is not asked')\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert interpreter(sys.executable).torch == importlib.metadata.version("torch")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo first >&2; echo 'out of order' >&2; exit 3", "does not answer as a Python does: out of order"),
        ("echo 17", "does not answer as a Python does: 17"),
        ("exit 3", "does not answer as a Python does: it says nothing, and ends with status 3"),
        ("printf '\\377'", "does not answer as a Python does: it says no text"),
        ("exec sleep 60", "does not answer within 1 seconds"),
    ],
)
def test_what_is_no_python_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str) -> None:
    monkeypatch.setattr(executing, "_ASKED_SECONDS", 1.0)
    other = tmp_path / "other"
    other.write_text(f"#!/bin/sh\n{script}\n")
    other.chmod(0o755)
    with pytest.raises(ConfigError, match=re.escape(f"{other} {told}") + "$"):
        interpreter(str(other))


def test_an_answer_counts_however_the_process_ends(tmp_path: Path) -> None:
    ending = tmp_path / "ending"
    ending.write_text(f'#!/bin/sh\n{sys.executable} "$@"\nkill -SEGV $$\n')
    ending.chmod(0o755)
    assert interpreter(str(ending)) == replace(interpreter(sys.executable), executable=str(ending))


def test_an_unknown_code(tool: Run) -> None:
    status, out, err = tool("selftest", "FC111")
    assert (status, out) == (2, "")
    assert "CODES: no rule is called 'FC111'" in err


def test_a_torch_without_metadata_is_asked_itself(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text('__version__ = "2.99"\n')
    own = tmp_path / "own"
    own.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} -S "$@"\n')
    own.chmod(0o755)
    assert interpreter(str(own)).torch == "2.99"


PROGRAM = """
import json, os, sys, time
print(json.dumps({"torch": "2.11"}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)["before"]
    if asked == "crash":
        os._exit(3)
    if asked == "hang":
        time.sleep(60)
    print(json.dumps({"was": asked}), flush=True)
"""


def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, *asked: str) -> dict[int, tuple[Any, bool]]:
    file = tmp_path / "program.py"
    file.write_text(program)
    monkeypatch.setattr(executing, "PROGRAM", file)
    found: dict[int, tuple[Any, bool]] = {}

    def done(number: int, record: Any, ended: bool) -> None:
        found[number] = (record, ended)

    execute(sys.executable, [{"before": word} for word in asked], 2, done, seconds=5.0)
    return found


def test_an_example_that_ends_the_process_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers(tmp_path, monkeypatch, PROGRAM, "a", "crash", "b", "hang", "c") == {
        0: ({"was": "a"}, False),
        1: ({"error": "the process ended with status 3", "of": "run"}, True),
        2: ({"was": "b"}, False),
        3: ({"error": "took longer than 5 seconds", "of": "run"}, True),
        4: ({"was": "c"}, False),
    }


def test_a_program_that_never_answers_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"cannot run examples: ImportError: no torch here$"):
        answers(tmp_path, monkeypatch, "raise ImportError('no torch here')", "a")


WORSE = {**FIGURES, "breaks": 2}
VERDICTS: dict[str, tuple[dict[str, Any], bool, str]] = {
    "better": ({}, True, "helps"),
    "no break, no gain": ({"before": NONE}, True, "needless"),
    "as before": ({"after": FIGURES}, True, "no gain"),
    "a cost of CUDA graphs": ({"before": NONE}, False, "not shown"),
    "other values": ({"difference": "output"}, True, "wrong"),
    "other memory": ({"aliasing": "aliases"}, True, "wrong"),
    "other random numbers": ({"drawn": "generators"}, True, "wrong"),
    "other values when compiled": ({"compiled": "compiled"}, True, "wrong"),
    "so were those before": ({"compiled": "compiled", "compiled_before": "compiled"}, True, "helps"),
    "more breaks": ({"after": WORSE}, True, "wrong"),
    "every call raises": ({"raised": 2}, True, "not run"),
    "the original cannot be run": ({"error": "E", "of": "before"}, True, "not run"),
    "the patched one cannot be run": ({"error": "E", "of": "after"}, True, "wrong"),
    "the process ended": ({"error": "E", "of": "run"}, True, "not run"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_verdict_of_an_example(name: str) -> None:
    told, gain, verdict = VERDICTS[name]
    tried = tried_example(Example(BRANCH, WHERE, RUN, "title", gain=gain), {**RECORD, **told})
    assert tried.verdict == verdict
    assert bool(tried.why) == (verdict in ("wrong", "not run"))


def test_what_compiles_worse_is_said() -> None:
    assert tried_example(Doubled.invalid[0], {**RECORD, "after": WORSE}).why == "compiles worse: breaks 1 -> 2"


def test_a_rule_without_rewritten_examples_is_not_run() -> None:
    told = Superfluous()
    told.invalid = Superfluous.invalid[1:]  # type: ignore[misc]
    assert judged(told, []).verdict == "not run"


def test_distrust_reaches_the_engine_and_no_other_rule() -> None:
    settings = Settings(distrusted={"FC992": "why"}, unsafe=True)
    source = "a = slow()\nb = lying()\n"
    result = patch(source, "m.py", RULES[:2], settings)
    assert result.text == "a = fast()\nb = lying()\n"
    assert [(f.code, f.applicability, f.assumption) for f in result.remaining] == [("FC992", "display-only", "why")]
    assert {f.code: f.applicability for f in find(source, "m.py", RULES[:2], settings).found} == {
        "FC991": "safe",
        "FC992": "display-only",
    }
