"""Forks of a parent that has imported torch tell what new processes tell, and nothing passes from one to another."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import PARENT, Shared, parent_without_torch

from patcher.harness import forks as forking
from patcher.harness import run as running
from patcher.harness.cases import Case
from patcher.harness.compare import apart
from patcher.harness.forks import Forked, Forks, Manner
from patcher.harness.measured import from_json
from patcher.harness.plan import Options, write

VARIABLES = {"PATH": os.environ.get("PATH", ""), "PYTHONUNBUFFERED": "1"}
Start = Callable[..., tuple["Forked | subprocess.Popen[bytes] | None", Path]]


@pytest.fixture
def hollow(tmp_path: Path) -> Iterator[Forks]:
    """Forks of a parent that has no torch."""
    with Forks(sys.executable, parent_without_torch(tmp_path)) as forks:
        yield forks


def started(
    forks: Forks, folder: Path, text: str, **variables: str
) -> tuple[Forked | subprocess.Popen[bytes] | None, Path]:
    """A program of these lines, and the file that its words go to."""
    program, log = folder / "program.py", folder / f"log{len(list(folder.glob('log*')))}"
    program.write_text(text, encoding="utf-8")
    with log.open("wb") as out:
        return forks.start(program, "argument", VARIABLES | variables, out.fileno()), log


def told(forks: Forks, folder: Path, text: str, **variables: str) -> tuple[int, str]:
    """How a fork has ended, and what it has said."""
    fork, log = started(forks, folder, text, **variables)
    assert fork is not None
    return fork.wait(), log.read_text(encoding="utf-8")


def test_a_fork_is_started_as_a_program_is(hollow: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    text = (
        "import os, sys\n"
        "print(__name__, sys.argv, os.getcwd(), os.environ['TORCHDYNAMO_DISABLE'], os.getsid(0) == os.getpid())\n"
        "print(sys.stdin.read(), end='')\n"
        "sys.exit('last words')\n"
    )
    status, said = told(hollow, tmp_path, text, TORCHDYNAMO_DISABLE="1")
    assert status == 1
    told_of = ["__main__", [str(tmp_path / "program.py"), "argument"], tmp_path / "here", 1, True]
    assert said == f"{' '.join(map(str, told_of))}\nlast words\n"


def test_nothing_passes_from_a_fork_to_the_next(hollow: Forks, tmp_path: Path) -> None:
    text = "import os, sys, torch\nprint(vars(torch).get('mark'), os.environ.get('TRITON_CACHE_DIR'))\ntorch.mark = 1\n"
    assert told(hollow, tmp_path, text, TRITON_CACHE_DIR="a") == (0, "None a\n")
    assert told(hollow, tmp_path, text) == (0, "None None\n")


def test_how_a_fork_ends(hollow: Forks, tmp_path: Path) -> None:
    assert told(hollow, tmp_path, "import os; os._exit(7)") == (7, "")
    assert told(hollow, tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)") == (-11, "")
    status, said = told(hollow, tmp_path, "raise ValueError('why')")
    assert status == 1
    assert said.endswith("ValueError: why\n")


def test_several_forks_run_at_the_same_time(hollow: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first waits for the second, and ends before it."""
    monkeypatch.chdir(tmp_path)
    text = (
        "import os, pathlib, time\n"
        "def wait_for(file):\n"
        "    while not pathlib.Path(file).exists():\n"
        "        time.sleep(0.01)\n"
    )
    places = [tmp_path / str(number) for number in range(3)]
    for place in places:
        place.mkdir()
    first, _ = started(hollow, places[0], f"{text}wait_for('second')\nos._exit(4)\n")
    assert hollow.several
    second, _ = started(hollow, places[1], f"{text}open('second', 'w').close()\nwait_for('third')\nos._exit(5)\n")
    third, _ = started(hollow, places[2], "import os; os._exit(6)")
    assert first is not None
    assert second is not None
    assert third is not None
    assert third.wait() == 6
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(0.01)
    assert first.wait() == 4
    (tmp_path / "third").touch()
    assert second.wait() == 5


def test_a_fork_has_the_threads_that_it_is_given(tmp_path: Path) -> None:
    more = "sys.modules['torch'].set_num_threads = lambda n: print(n, 'threads')"
    program, log = tmp_path / "program.py", tmp_path / "log"
    program.write_text("import torch._dynamo.guards as guards\nprint(vars(guards).get('profile_guard_manager'))\n")
    said = []
    for manner in (Manner(), Manner(untimed=True, threads=1)):
        with Forks(sys.executable, parent_without_torch(tmp_path, more)) as forks, log.open("wb") as out:
            fork = forks.start(program, "", VARIABLES, out.fileno(), manner)
            assert fork is not None
            assert fork.wait() == 0
        said.append(log.read_text().splitlines())
    assert said[0] == ["None"]
    assert said[1][0] == "1 threads"
    assert "lambda" in said[1][1]


@pytest.mark.parametrize("gpu", [False, True])
def test_which_instructions_there_are_is_found_out_once(tmp_path: Path, gpu: bool) -> None:
    lines = [
        "class Isa:",
        "    def build_arch_flags(self): return '-mavx2'",
        "    def check_build(self, code):",
        f"        print(code, file=open({str(tmp_path / 'built')!r}, 'a'))",
        "        return code == 'good'",
        "instructions = sys.modules['torch._inductor.cpu_vec_isa']",
        "sys.modules['torch']._inductor = sys.modules['torch._inductor']",
        "sys.modules['torch._inductor'].cpu_vec_isa = instructions",
        "instructions.VecISA = Isa",
        "instructions.valid_vec_isa_list = lambda: [Isa().check_build(code) for code in ('good', 'bad')]",
    ]
    program = tmp_path / "program.py"
    program.write_text(
        "import torch._inductor.cpu_vec_isa as there\n"
        "print([there.VecISA().check_build(code) for code in ('good', 'bad', 'other')])\n"
    )
    with Forks(sys.executable, parent_without_torch(tmp_path, "\n".join(lines))) as forks:
        for number in range(2):
            with (tmp_path / f"log{number}").open("wb") as out:
                fork = forks.start(program, "", VARIABLES, out.fileno(), Manner(code=True, gpu=gpu))
                assert fork is not None
                assert fork.wait() == 0
    assert {(tmp_path / f"log{number}").read_text() for number in range(2)} == {"[True, False, False]\n"}
    assert sorted((tmp_path / "built").read_text().split()) == ["bad", "good", "other", "other"]


def test_a_fork_that_cannot_begin_has_ended(hollow: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: tmp_path / "gone")
    status, said = told(hollow, tmp_path, "print('begun')")
    assert (status, "begun" in said, "FileNotFoundError" in said) == (1, False, True)
    monkeypatch.undo()
    assert told(hollow, tmp_path, "print('begun')") == (0, "begun\n")


def test_forks_share_a_parent_as_long_as_the_variables_are_the_same(hollow: Forks, tmp_path: Path) -> None:
    text = "import os; print(os.getppid(), os.environ.get('OMP_NUM_THREADS'))"
    first, second = (told(hollow, tmp_path, text, FIX_COMPILE_QUICK=quick)[1].split() for quick in ("", "1"))
    other = told(hollow, tmp_path, text, OMP_NUM_THREADS="3")[1].split()
    assert first == second
    assert first[0] != other[0]
    assert (first[1], other[1]) == ("None", "3")


GPU = "sys.modules['torch'].cuda = types.SimpleNamespace(device_count=lambda: 1, is_initialized=lambda: True)"


def test_where_there_can_be_no_fork_an_interpreter_waits_for_each_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "CORES", 1)
    text = (
        "import os, sys, torch\n"
        "print(os.getpid(), os.getsid(0), sys.argv[1], vars(torch).get('mark'), os.environ.get('TRITON_CACHE_DIR'))\n"
        "torch.mark = 1\n"
        "sys.exit(3)\n"
    )
    with Forks(sys.executable, parent_without_torch(tmp_path, GPU)) as forks:
        first, second = (told(forks, tmp_path, text, TRITON_CACHE_DIR=cache) for cache in "ab")
        third = told(forks, tmp_path, text, OMP_NUM_THREADS="3")
    pids = [said.split()[0] for _, said in (first, second, third)]
    assert len(set(pids)) == 3
    assert first == (3, f"{pids[0]} {pids[0]} argument None a\n")
    assert second == (3, f"{pids[1]} {pids[1]} argument None b\n")
    assert third == (3, f"{pids[2]} {pids[2]} argument None None\n")


def test_no_interpreter_waits_where_it_would_slow_the_program_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "CORES", 10**6)
    with Forks(sys.executable, parent_without_torch(tmp_path, GPU)) as forks:
        assert started(forks, tmp_path, "print(1)")[0] is None


def test_a_parent_that_has_ended_is_replaced(hollow: Forks, tmp_path: Path) -> None:
    text = "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
    start = time.monotonic()
    assert told(hollow, tmp_path, text)[0] == -9
    assert time.monotonic() - start < 30
    assert told(hollow, tmp_path, "print(1)") == (0, "1\n")


WITHOUT = {
    "a GPU that no fork reaches": GPU.replace("True", "False"),
    "a GPU that is in use": GPU,
    "an accelerator": "sys.modules['torch'].accelerator = types.SimpleNamespace(device_count=lambda: 1)",
    "a thread": "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
    "a torch that cannot be imported": "sys.modules['torch'] = None",
}


@pytest.mark.parametrize("why", WITHOUT)
def test_where_there_are_no_forks(why: str, tmp_path: Path) -> None:
    with Forks(sys.executable, parent_without_torch(tmp_path, WITHOUT[why])) as forks:
        assert started(forks, tmp_path, "")[0] is None
        parent_without_torch(tmp_path)
        assert started(forks, tmp_path, "")[0] is None  # it is not tried again and again


@pytest.mark.parametrize("place", ["interpreter", "parent"])
def test_what_is_not_there_is_no_fork(place: str, tmp_path: Path) -> None:
    python = str(tmp_path / "no-python") if place == "interpreter" else sys.executable
    parent = PARENT if place == "interpreter" else tmp_path / "parent.py"
    with Forks(python, parent) as forks:
        assert started(forks, tmp_path, "")[0] is None


CASE = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        y = self.line(x)
        if y.sum() > 0:
            y = self.drop(y)
        return y


def build():
    return Model()


def calls():
    return [(torch.randn(n, 4),) for n in (2, 3, 5)]


train = True
"""


@pytest.mark.slow
def test_a_fork_tells_what_a_new_process_tells(shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is not a time or a size in memory, with torch; also what was computed, bit by bit."""
    pytest.importorskip("torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (tmp_path / "case.py").write_text(CASE, encoding="utf-8")
    here = str(tmp_path)
    options = Options(quick=True, backend="eager", counting=True, base=here, paths=(here,), keep=True)
    cases = (Case("case", str(tmp_path / "case.py")),)
    found = []
    for number, forks in enumerate((shared, Forks("no-python", tmp_path / "nowhere"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        results = running.run(write(folder, (), cases, options), forks=forks)
        computed = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("pass*.pt"))}
        found.append(([untimed(variant) for variant in results["cases"][0]["variants"]], computed))
    (told, computed), (told_anew, computed_anew) = found
    assert [variant["status"] for variant in told] == ["ok", "ok"]
    assert told[1]["counts"]["breaks"] > 0
    assert told == told_anew
    assert len(computed) == 16  # two passes of either variant: three calls, and the state
    assert computed == computed_anew


def untimed(told: Any) -> Any:
    """Without what is never the same twice."""
    times = ("seconds", "cold_seconds", "compile_seconds", "warm", "memory", "tail")
    if isinstance(told, dict):
        return {key: untimed(value) for key, value in told.items() if key not in times}
    return [untimed(item) for item in told] if isinstance(told, list) else told


EDGE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return torch.where(self.w * x > 1, {taken}, self.w * x) + {more}


def build():
    return Net()


def calls():
    return [(torch.ones(8),)]


def compile(model, **options):
    return torch.compile(lambda x: {call}, **options)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "taken", "more", "relative", "most"),
    [
        ("model(x * (1 + 2**-23))", 1.05, "0", 0.0, 0.05),  # another branch is taken, by one rounding
        ("model(x * (1 + 2**-23))", 1.05, "0 * torch.rand(8)", 0.0, 0.05),  # float64 would draw other numbers
        ("model(x * (1 + 2**-23))", 5.0, "0", 4.0, 4.0),  # what the user has seen is another number
        ("model(x) * 1.05", 5.0, "0", 0.05, 0.05),  # wrong, with any weights
    ],
)
def test_a_branch_that_rounding_takes_is_no_wrong_result(
    one_parent: None, tmp_path: Path, call: str, taken: float, more: str, relative: float, most: float
) -> None:
    (tmp_path / "case.py").write_text(EDGE.format(call=call, taken=taken, more=more))
    options = Options(base=str(tmp_path), quick=True, backend="eager", seconds=100)
    plan = write(tmp_path / "work", (), [Case("edge", str(tmp_path / "case.py"))], options)
    [case] = running.run(plan)["cases"]
    [row] = [row for row in case["comparisons"] if row["kind"] == "compiled"]
    assert (row["relative"], row["max"]) == (pytest.approx(relative, abs=1e-3), pytest.approx(most, abs=1e-3))
    assert [variant["kind"] for variant in case["variants"]][:2] == ["eager", "compiled"]


CHOICE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(8, dtype=torch.bfloat16))

    def forward(self, x):
        return self.w * x * (1 + {more}) if torch.compiler.is_compiling() else self.w * x * {eager}


def build():
    return Net()


def choose(model):
    chosen = torch.zeros(8, dtype=torch.long)
    for _ in range(3):
        chosen = chosen + (model(torch.full((8,), {start}, dtype=torch.bfloat16)) > 1).long()
    return chosen


def calls():
    return [choose]


def compile(model, **options):
    model.compile(**options)
    return model
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("eager", "more", "start", "chosen", "relative"),
    [
        ("1", "2**-7", 1.0, True, 2**-7),  # one rounding of bfloat16, by which other numbers are chosen
        ("1", "0.5", 1.0, False, None),  # rounding would choose others too, but this is none
        ("1", "0.2", 0.9, False, None),  # rounding does not choose otherwise, so this is wrong
        ("(1 + 0.25 * (self.w > 1).to(x))", "0.25", 1.0, True, 0.25),  # inside of a call, too
        ("(1 + 0.25 * (self.w > 1).to(x))", "0.875", 1.0, False, None),  # more than that
        ("(1 + 4 * (self.w > 1).to(x))", "1", 1.0, False, None),  # as much as if nothing was there
    ],
)
def test_what_rounding_chooses_otherwise_is_compared_call_by_call(
    one_parent: None, tmp_path: Path, eager: str, more: str, start: float, chosen: bool, relative: float | None
) -> None:
    (tmp_path / "case.py").write_text(CHOICE.format(more=more, start=start, eager=eager))
    options = Options(base=str(tmp_path), quick=True, backend="eager", seconds=100)
    plan = write(tmp_path / "work", (), [Case("choice", str(tmp_path / "case.py"))], options)
    document = running.run(plan)
    [case] = document["cases"]
    [row] = [row for row in case["comparisons"] if row["kind"] == "compiled"]
    assert (bool(row["differences"]), bool(row.get("chosen"))) == (not chosen, chosen)
    [found] = [one for one in from_json(document).cases[0].comparisons if one.kind == "compiled"]
    assert bool(apart(found, 1e-3)) is not chosen
    if relative is not None:
        assert row["relative"] == pytest.approx(relative, rel=0.1)
        assert row["calls"] == 3
