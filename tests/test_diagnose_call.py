"""``diagnose`` and ``prove`` as a user calls them, on a small repository and with real runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import fix_compile
from patcher.diagnose import latest
from patcher.files.backup import project_root

ROOT = Path(__file__).resolve().parent.parent
MODEL = """import torch
import torch.nn as nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 4

    def forward(self, x):
        y = x * 2
        if y.sum() > self.limit:  # too loud
            y = y / 2
        return y


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 4

    def forward(self, x):
        y = x * 2
        if y.sum() > self.limit:
            y = y / 2
        return y


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(8, 4)

    def forward(self, ids):
        return self.rows(ids)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Gate()
        self.table = Table()
        self.head = nn.Linear(4, 4)
        print("built")

    def forward(self, x):
        ids = torch.arange(x.shape[1]).unsqueeze(0).expand(x.shape[0], -1)
        x = self.head(self.gate(x)) + self.table(ids).sum(-1)
        print("gated")
        return x
"""
CASE = """import torch
from net import Net

def build():
    torch.manual_seed(0)
    return Net()

def calls():
    return [(torch.linspace(-1, 1, 4 * n).view(n, 4),) for n in (2, 3, 5)]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "case.py").write_text(CASE, encoding="utf-8")
    (tmp_path / "train.py").write_text("import torch\nfrom net import Net\n\nmodel = Net()\ntorch.compile(model)\n")
    return tmp_path


Call = Callable[..., "Done"]
Document = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Done:
    """A call that has ended."""

    stdout: str
    stderr: str


@pytest.fixture
def call(project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], one_parent: None) -> Call:
    """Call the tool in the project, in this process; the measuring is done in processes of its own."""
    monkeypatch.chdir(project)

    def called(*options: str, status: int = 0) -> Done:
        monkeypatch.setattr(sys, "argv", [str(ROOT / "fix_compile.py"), *options])
        capfd.readouterr()
        ended = fix_compile.main()
        done = Done(*capfd.readouterr())
        assert ended == status, done.stderr + done.stdout
        return done

    return called


@pytest.fixture
def document(call: Call) -> Document:
    """Call ``diagnose`` and read what it tells."""

    def told(*options: str, status: int = 0) -> dict[str, Any]:
        done = call("diagnose", "--format", "json", "--quick", "--backend", "eager", *options, status=status)
        parsed: dict[str, Any] = json.loads(done.stdout)
        return parsed

    return told


def test_the_program_diagnoses(project: Path) -> None:
    """As the user starts it, with nothing shared."""
    options = ("--format", "json", "--quick", "--backend", "eager", "--only", "fullgraph", "--case", "case.py", ".")
    command = [sys.executable, str(ROOT / "fix_compile.py"), "diagnose", *options]
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stderr + done.stdout
    told = json.loads(done.stdout)
    assert told["causes"] == []
    assert [item["name"] for item in told["diagnostics"]] == ["fullgraph"]


def test_a_report_names_causes_with_their_fix_and_their_cost(project: Path, document: Document) -> None:
    before = (project / "net.py").read_bytes()
    told = document("--case", "case.py", ".")
    assert (project / "net.py").read_bytes() == before
    causes = {cause["where"]: cause for cause in told["causes"]}
    branch, printed = causes["net.py:12"], causes["net.py:49"]
    assert branch["category"] == "graph break"
    assert branch["function"] == "Gate.forward"
    assert branch["registry"] == "GB0170"
    assert branch["fate"] == "removed"
    assert branch["impact"]["launches"] == 6  # of 3 calls: Gate.forward by itself, and what comes behind it
    assert [fix["code"] for fix in branch["fixes"]] == ["FC101"]
    assert "+        y = torch.where(" in branch["fixes"][0]["diff"]
    assert branch["verify"].endswith(" test --dry-run --select FC101 --quick --case case.py --backend eager .")
    assert [fix["code"] for fix in printed["fixes"]] == ["FC602"]
    assert printed["fate"] == "removed"
    assert [remark["where"] for remark in told["static_only"]] == ["net.py:24", "train.py:5"]
    assert any("`print`" in remark["what"] and "`Net.__init__`" in remark["what"] for remark in told["fine"])
    assert told["sites"][0]["where"] == "train.py:5"
    assert {item["name"] for item in told["diagnostics"]} == {"fullgraph", "baseline"}
    # and it is kept, for whoever asks of a line that may have moved since
    root = os.path.realpath(project_root(os.curdir))
    lines = MODEL.replace("class Gate", "\n\nclass Gate").splitlines()
    kept = latest.by_line(latest.recall(root), "net.py", lines)
    (measured,) = kept[14]
    assert (measured.line, measured.trigger) == (12, "if y.sum() > self.limit:  # too loud")
    assert (measured.severity, measured.title) == (branch["severity"], branch["title"])
    assert "6 launches" in measured.told
    assert latest.by_line(latest.recall(root), "train.py", lines) == {}


def test_a_cause_that_no_rule_of_the_run_fixes_remains_with_advice(document: Document) -> None:
    told = document("--ignore", "FC602", "--case", "case.py", ".")
    printed = next(cause for cause in told["causes"] if cause["where"] == "net.py:49")
    assert printed["fixes"] == []
    assert printed["fate"] == "remains"
    assert any("logging" in advice["flag"] for advice in printed["advice"])


def proved(call: Call, project: Path, *options: str) -> tuple[dict[str, Any], dict[str, Any], Done]:
    """The verdict of ``prove`` and its report, and what it says."""
    how = ("--quick", "--backend", "eager", "--case", "case.py", "-o", "report.json", "-o", "report.md")
    done = call("prove", *how, "--json", "told.json", *options)
    told, report = (json.loads((project / name).read_text("utf-8")) for name in ("told.json", "report.json"))
    return told, report, done


def test_prove_keeps_what_helps_and_restore_takes_it_back(project: Path, call: Call) -> None:
    before = (project / "net.py").read_bytes()
    told, report, done = proved(call, project, ".")
    patched = (project / "net.py").read_text(encoding="utf-8")
    assert patched.count("torch.where(") == 1
    assert ".expand(" in patched  # within one graph it makes no difference: not safe, not tried
    assert "FC101 in Gate.forward" in (project / "report.md").read_text(encoding="utf-8")
    assert "restore" in done.stdout
    assert (told["verdict"], told["eager_ms"], told["files"]) == ("optimized", None, ["net.py"])
    assert told["graphs"][1] < told["graphs"][0]
    tried = {fix: one for one in report["proof"]["tried"] for fix in one["fixes"]}
    assert tried["FC101 in Gate.forward"]["outcome"] == "kept"
    assert "+" in tried["FC101 in Gate.forward"]["diff"]
    assert tried["FC101 in Unused.forward"]["outcome"] == "not better"
    assert "FC501 in Net.forward" not in tried
    call("restore")
    assert (project / "net.py").read_bytes() == before


KERNEL = """import torch
import torch.nn as nn


class Kernel(nn.Module):
    def squared(self, a, b):
        if torch.equal(a, b):  # another formula
            return (a.unsqueeze(-1) - a.unsqueeze(-2)) ** 2
        return (a.unsqueeze(-1) - b.unsqueeze(-2)) ** 2

    def distance(self, a, b):
        return self.squared(a, b).sqrt()

    def covariance(self, a, b):
        return torch.exp(-self.distance(a, b))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = Kernel()

    def forward(self, x):
        for _ in range(12):
            x = (x * 2 - 1).tanh() + x.cos()
        y = x + 1
        joint = self.kernel.covariance(x, y) + self.kernel.covariance(x, x) + self.kernel.covariance(y, y)
        return joint.softmax(-1) @ x
"""


@pytest.mark.long
def test_what_breaks_all_over_is_left_out_when_nothing_else_helps(project: Path, call: Call) -> None:
    (project / "net.py").write_text(KERNEL, encoding="utf-8")
    (project / "case.py").write_text(CASE.replace("linspace(-1, 1, 4 * n).view(n, 4)", "linspace(-1, 1, n + 1)"))
    before = (project / "net.py").read_bytes()
    told, report, done = proved(call, project, "--unsafe", "--dry-run", "--ignore", "FC710", "net.py")
    assert (project / "net.py").read_bytes() == before
    assert "Nothing was changed; the patch: report.patch" in done.stdout
    (cause,) = [cause for cause in report["causes"] if cause["category"] == "graph break"]
    assert cause["where"] == "net.py:7"
    zones = [fix for fix in cause["fixes"] if fix["code"] == "FC207"]
    assert zones
    assert all("+    @torch.compiler.disable" in fix["diff"] for fix in zones)
    assert "would run eagerly" in zones[0]["message"]
    kept = [fix for one in report["proof"]["tried"] for fix in one["fixes"] if one["outcome"] == "kept"]
    assert kept == ["FC207 in Kernel.covariance"]
    assert told["graphs"][1] < told["graphs"][0]
    assert told["ops_in_graphs"][0] / 2 <= told["ops_in_graphs"][1] < told["ops_in_graphs"][0]


@pytest.mark.parametrize(
    ("addition", "problem"),
    [
        ("def calls():\n    raise ValueError('no data')\n", "no data"),
        ("import missing_module\n", "missing_module"),
        ("def calls():\n    import time\n    time.sleep(60)\n", "time limit"),
    ],
)
def test_a_case_that_does_not_run_gives_a_report_that_says_so(
    project: Path, document: Document, addition: str, problem: str
) -> None:
    (project / "case.py").write_text(CASE + addition, encoding="utf-8")
    limit = "12" if "sleep" in addition else "60"
    told = document("--time-limit", limit, "--case", "case.py", "net.py", status=2)
    assert any(problem in line for line in told["problems"]), told["problems"]
    assert told["causes"] == []


def test_what_is_not_the_same_in_a_second_run_is_told(project: Path, document: Document) -> None:
    text = MODEL.replace("        return x\n", "        if self.odd:\n            print('odd')\n        return x\n")
    text = text.replace('        print("built")\n', "        self.odd = next_number() == 5\n")
    (project / "net.py").write_text(text + BUILDS, encoding="utf-8")
    told = document("--case", "case.py", "net.py")
    assert any("not the same in a second run" in problem for problem in told["problems"]), told["problems"]


BUILDS = """

def next_number():
    import pathlib
    with pathlib.Path(__file__).with_name('count').open('ab', buffering=0) as file:  # others may run at the same time
        file.write(b'.')
        return file.tell() - 1
"""


def test_what_needs_no_generated_code_is_counted_and_told_first(
    project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patcher.measuring.measure._standard_backend", lambda request: "aot_eager")
    text = MODEL.replace('        print("built")\n', "        self.late = next_number() >= 5\n")
    said = "        if self.late:\n            print('late')\n        else:\n            print('early')\n"
    text = text.replace("        return x\n", f"{said}        return x\n")
    (project / "net.py").write_text(text + BUILDS, encoding="utf-8")
    done = call("diagnose", "--quick", "--format", "json", "--case", "case.py", "net.py")
    lines = done.stderr.splitlines()
    variants = [line.rpartition(", ")[2] for line in lines if line.startswith("[")]
    counted = {"original counted (eager)", "patched counted (eager)", "original counted (eager) again"}
    assert variants[0] == "original eager"
    assert set(variants[1:4]) == counted  # they run at the same time
    assert variants[4:9] == [
        *("original eager", "patched eager", "original compiled (default)", "patched compiled (default)", "comparing")
    ]
    told = lines[4:-6]
    assert "causes, counted with the backend eager: " in told[0]
    assert any(line.startswith("  high") and "net.py:12" in line and "FC101" in line for line in told)
    assert told[-1].startswith("now aot_eager compiles ")
    report = json.loads(done.stdout)
    assert report["counted"]["cases"][0]["repeated"]["status"] == "ok"
    notes = {cause["trigger"]: cause["note"] for cause in report["causes"]}
    assert "counted with the backend eager it is not there" in notes["print('late')"]
    assert sum("it is not there" in note for note in notes.values()) == 1
    assert all(cause["steady"] for cause in report["causes"])
    early = next(line for line in report["problems"] if "but not with aot_eager" in line)
    assert "net.py:52" in early or "net.py:53" in early
    assert any("what a second run shows" in fact for fact in report["facts"])


def test_what_does_not_compile_is_counted_all_the_same(
    project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patcher.measuring.measure._standard_backend", lambda request: "aot_eager")
    refusing = """

def compile(model, backend, **options):
    if backend == "aot_eager":
        raise RuntimeError("refused")
    return torch.compile(model, backend=backend, **options)
"""
    (project / "case.py").write_text(CASE + refusing, encoding="utf-8")
    done = call("diagnose", "--quick", "--format", "json", "--case", "case.py", "net.py", status=2)
    report = json.loads(done.stdout)
    assert {"net.py:12", "net.py:49"} <= {cause["where"] for cause in report["causes"]}
    assert "case: its causes are those that the backend eager has shown" in report["problems"]
    assert any("refused" in line for line in report["problems"])


@pytest.mark.parametrize(
    "options",
    [
        ["diagnose"],
        ["diagnose", "--only", "nonsense", "net.py"],
        ["diagnose", "--dry-run", "--case", "case.py", "net.py"],
        ["diagnose", "--only", "baseline", "--prove", "--case", "case.py", "net.py"],
        ["diagnose", "--case", "nowhere.py", "net.py"],
    ],
)
def test_wrong_options_are_an_error(call: Call, options: list[str]) -> None:
    assert call(*options, status=2).stderr
