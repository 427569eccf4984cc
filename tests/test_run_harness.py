"""Starting the workers: in which order, with which limits, and that nothing of them is left. The workers are fakes."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import parent_without_torch

from patcher.harness import processes
from patcher.harness import run as running
from patcher.harness.processes import Event, RunError
from patcher.harness.run import run

ROOT = Path(__file__).parent.parent
START = """
    import json, os, pathlib, signal, subprocess, sys, time
    spec = json.loads(pathlib.Path(sys.argv[1]).read_text())
    job, folder = spec["job"], pathlib.Path(sys.argv[1]).parent
    name = f"{job.get('tree')} {job.get('kind')}"
    def finish(**told):
        told = {"status": "ok", "message": "", "draws_random": False, **told}
        (folder / "result.json").write_text(json.dumps(told))
    def start(**options):
        sleeping = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], **options)
        pids = pathlib.Path(spec["base"]) / "pids"
        part = pids.with_suffix(".part")
        part.write_text(f"{os.getpid()} {sleeping.pid}")
        part.rename(pids)
        return sleeping
"""


COMPARES = """
there = [(folder.parent / v["folder"] / "result.json").exists() for v in job["variants"]]
moved = pathlib.Path(job["folder"]).name == "nudged"
apart = pathlib.Path(spec["base"]) / ("moved.json" if moved else "apart.json")
rows = json.loads(apart.read_text()) if apart.exists() else []
finish(comparisons=[{'seen': len(job['variants']), 'there': all(there)}, *rows])
"""
PROBES = """
finish(job=job, known=job["sizes"]) if job["probe"] != "crash" else os._exit(3)
"""


def programs(folder: Path, worker: str) -> None:
    for name, text in (("worker.py", worker), ("differences.py", COMPARES), ("probes.py", PROBES)):
        (folder / name).write_text(textwrap.dedent(START) + textwrap.dedent(text))


def plan_in(folder: Path, **changes: Any) -> Path:
    plan = {
        "schema": 1,
        "tool": "fix-compile 0",
        "command": [],
        "tree": {},
        "base": str(folder),
        "path": [],
        "overlay": [{"file": "a.py", "patched": "b.py", "shown": "a.py", "before": "", "after": "", "changed": []}],
        "cases": [{"name": "vision", "file": "vision.py"}],
        "modes": ["default", "reduce-overhead"],
        "backend": "inductor",
        "promise": "bitwise",
        "quick": False,
        "verbose": False,
        "seconds": 60,
        "memory": None,
    }
    (folder / "plan.json").write_text(json.dumps({**plan, **changes}))
    return folder / "plan.json"


@pytest.fixture(params=["new processes", "forks"])
def fake(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, Any]]:
    """Run a plan with a worker made of these lines."""
    if request.param == "forks":
        parent_without_torch(tmp_path)

    def started(worker: str, progress: Any = None, python: str = sys.executable, **changes: Any) -> dict[str, Any]:
        programs(tmp_path, worker)
        monkeypatch.setattr(running, "HERE", tmp_path)
        return run(plan_in(tmp_path, **changes), python, progress)

    return started


def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """A process that has ended but was not waited for yet does not run."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc").is_dir()


def assert_gone(folder: Path) -> None:
    pids = [int(pid) for pid in (folder / "pids").read_text().split()]
    assert len(pids) == 2
    wait_until(lambda: not any(map(is_running, pids)), 5)


def variants(results: dict[str, Any]) -> list[tuple[str, str, str | None, str]]:
    return [(v["tree"], v["kind"], v["mode"], v["status"]) for v in results["cases"][0]["variants"]]


def test_every_variant_runs_once_and_is_compared(fake: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    seen: list[Event] = []
    results = fake("finish()", seen.append)
    assert variants(results) == [
        ("original", "eager", None, "ok"),
        ("patched", "eager", None, "ok"),
        ("original", "float64", None, "ok"),
        ("original", "compiled", "default", "ok"),
        ("patched", "compiled", "default", "ok"),
        ("original", "compiled", "reduce-overhead", "ok"),
        ("patched", "compiled", "reduce-overhead", "ok"),
    ]
    assert results["cases"][0]["comparisons"] == [{"seen": 7, "there": True}]
    assert not {"repeated", "probes"} & results["cases"][0].keys()
    assert json.loads((tmp_path / "results.json").read_text()) == results
    assert not (tmp_path / "work").exists()
    ended = [event for event in seen if event.what == "end"]
    assert [event.number for event in ended] == list(range(1, 9))
    assert {event.of for event in ended} == {8}
    assert ended[4].variant == "patched compiled (default)"


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        ({"relative": 0.5}, True),
        ({"gradients": {"relative": 0.5}}, True),
        ({"state": {"relative": 0.5}}, True),
        ({"relative": 1e-4, "gradients": {"relative": 5e-3}, "state": None}, False),
        ({"relative": 0.05, "gradients": {"relative": 0.4}, "epsilon": 2**-8}, False),  # bfloat16
        ({"relative": 0.5, "epsilon": 2**-8}, True),
        ({"relative": 0.5, "kind": "eager"}, False),
        ({"relative": 0.5, "drawn": True}, False),
    ],
)
def test_float64_is_asked_where_compiled_results_are_far_away(
    fake: Callable[..., dict[str, Any]], tmp_path: Path, row: dict[str, Any], asked: bool
) -> None:
    drawn = row.get("drawn", False)
    (tmp_path / "apart.json").write_text(json.dumps([{"kind": "compiled", "epsilon": 2**-23, **row}]))
    results = fake(f"finish(draws_random={drawn})", quick=True, modes=["default"])
    kinds = [kind for _, kind, _, _ in variants(results)]
    assert kinds == ["eager", "eager", "compiled", "compiled", *(["float64"] if asked else [])]
    assert results["cases"][0]["comparisons"][0] == {"seen": len(kinds), "there": True}


@pytest.mark.parametrize(
    ("moved", "kept"),
    [
        ({"relative": 1e-6}, {"relative": 1e-6, "max": None, "as_exact": 1}),  # it was a branch that rounding had taken
        ({"relative": 0.05}, {"relative": 0.05}),
        ({"relative": 1e-6, "differences": ["output: is missing"]}, {"relative": 0.05}),
    ],
)
def test_what_rounding_explains_is_gone_with_other_weights(
    fake: Callable[..., dict[str, Any]], tmp_path: Path, moved: dict[str, Any], kept: dict[str, Any]
) -> None:
    row = {"tree": "original", "kind": "compiled", "mode": "default", "epsilon": 2**-23}
    (tmp_path / "apart.json").write_text(json.dumps([{**row, "relative": 0.05}]))
    (tmp_path / "moved.json").write_text(json.dumps([{**row, **moved}]))
    seen: list[Event] = []
    results = fake("finish(draws_random=True)", seen.append, quick=True, modes=["default"])
    assert results["cases"][0]["comparisons"][1] == {**row, **kept}
    assert [kind for _, kind, _, _ in variants(results)] == ["eager", "eager", "compiled", "compiled"]
    ended = [event.variant for event in seen if event.what == "end"]
    assert ended[-4:] == ["original eager", "comparing", "original compiled (default)", "comparing"]


def test_quick_leaves_out_float64(fake: Callable[..., dict[str, Any]]) -> None:
    seen: list[Event] = []
    results = fake("finish()", seen.append, quick=True, modes=["default"])
    assert [kind for _, kind, _, _ in variants(results)] == ["eager", "eager", "compiled", "compiled"]
    assert seen[-1].number == seen[-1].of == 5


def test_nothing_more_runs_when_the_original_fails(fake: Callable[..., dict[str, Any]]) -> None:
    results = fake("finish(status='case-error', message='calls() returned no calls')")
    assert variants(results) == [("original", "eager", None, "case-error")]
    assert results["cases"][0]["comparisons"] == []


def test_the_patched_source_is_not_compiled_when_it_fails(fake: Callable[..., dict[str, Any]]) -> None:
    results = fake("finish(status='error' if name == 'patched eager' else 'ok')", modes=["default"])
    assert [(tree, kind) for tree, kind, _, _ in variants(results)][-1] == ("original", "compiled")


ENDS = {
    "an exit": ("os._exit(0)", "exited", "ended by itself with exit status 0, without a result", 60, None),
    "a crash": ("os.kill(os.getpid(), signal.SIGSEGV)", "error", "was ended by SIGSEGV", 60, None),
    "a hang": ("start(); time.sleep(600)", "timeout", "did not end within 1 seconds", 1, None),
    "too much memory": ("start(); x = b'x' * (400 << 20); time.sleep(600)", "out-of-memory", "used 0.", 60, 200 << 20),
    "no memory": (
        "sys.exit('RuntimeError: CUDA out of memory')",
        "out-of-memory",
        "ended for want of memory",
        60,
        None,
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_end_without_a_result_is_a_status(end: str, fake: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    code, status, message, seconds, memory = ENDS[end]
    worker = f"if name == 'patched eager':\n    print('last words', flush=True)\n    {code}\nfinish()"
    results = fake(worker, seconds=seconds, memory=memory, modes=[], quick=True)
    told = results["cases"][0]["variants"][1]
    assert (told["status"], told["message"][: len(message)]) == (status, message)
    assert "last words" in told["tail"]
    if "start()" in code:
        assert_gone(tmp_path)


def test_how_a_worker_is_started(
    fake: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = """
        names = ("PYTHONDONTWRITEBYTECODE", "TORCHDYNAMO_DISABLE", "TORCH_LOGS", "TORCHINDUCTOR_CACHE_DIR")
        own = os.getsid(0) == os.getpid() == os.getpgid(0)
        finish(env={n: os.environ.get(n) for n in names}, own=own, cwd=os.getcwd(), stdin=sys.stdin.read(), job=job)
        """
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("TORCH_LOGS", "+dynamo")
    for verbose, logs in ((False, None), (True, f"+dynamo,{processes.LOGS}")):
        told = fake(report, modes=["default"], quick=True, verbose=verbose)["cases"][0]["variants"]
        assert all(v["own"] and v["stdin"] == "" and v["cwd"] == str(tmp_path / "here") for v in told)
        assert [v["env"]["TORCHDYNAMO_DISABLE"] for v in told] == ["1", "1", None, None]
        assert {v["env"]["TORCH_LOGS"] for v in told} == {logs}
        assert {v["env"]["PYTHONDONTWRITEBYTECODE"] for v in told} == {"1"}
        assert len({v["env"]["TORCHINDUCTOR_CACHE_DIR"] for v in told}) == 4


def test_what_the_first_variant_finds_out_the_others_know(fake: Callable[..., dict[str, Any]]) -> None:
    results = fake("finish(draws_random=True, sizes=[1, 3], job=job)", modes=["default"])
    later = [variant["job"] for variant in results["cases"][0]["variants"][1:]]
    assert all(job["draws_random"] is True and job["sizes"] == [1, 3] for job in later)


def test_a_verbose_plan_lets_the_worker_be_heard(
    fake: Callable[..., dict[str, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    for verbose in (False, True):
        fake("sys.stderr.write('heard\\n')\nfinish()\n", verbose=verbose, quick=True, modes=[])
        assert capfd.readouterr().err == ("heard\n" * 2 if verbose else "")


def test_the_original_compiled_is_run_again(fake: Callable[..., dict[str, Any]]) -> None:
    seen: list[Event] = []
    results = fake("finish(breaks=len(folder.name), job=job)", seen.append, repeat=True, quick=True)
    (case,) = results["cases"]
    assert case["repeated"]["status"] == "ok"
    assert case["repeated"]["breaks"] != case["variants"][2]["breaks"]  # of its own folder
    job = case["repeated"]["job"]
    assert (job["tree"], job["kind"], job["mode"]) == ("original", "compiled", "default")
    assert [kind for _, kind, _, _ in variants(results)] == ["eager"] * 2 + ["compiled"] * 4
    assert case["comparisons"] == [{"seen": 6, "there": True}]
    assert seen[-1].number == seen[-1].of == 8
    assert [event.variant for event in seen].count("original compiled (default) again") == 2


@pytest.mark.parametrize(("code", "status"), [("os._exit(5)", "exited"), ("time.sleep(600)", "skipped")])
def test_a_first_run_that_hangs_is_not_repeated(
    code: str, status: str, fake: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    worker = f"if name == 'original compiled':\n    {code}\nfinish()"
    results = fake(worker, repeat=True, quick=True, modes=["default"], seconds=2)
    assert results["cases"][0]["repeated"]["status"] == status
    assert results["cases"][0]["repeated"]["message"]


def test_probes(fake: Callable[..., dict[str, Any]]) -> None:
    seen: list[Event] = []
    probes = ["fullgraph", "crash"]
    results = fake("finish(sizes=[1, 3])", seen.append, probes=probes, quick=True, modes=["default"])
    good, bad = results["cases"][0]["probes"]
    assert (good["name"], good["status"], good["known"], good["tail"]) == ("fullgraph", "ok", [1, 3], [])
    assert {"tree": "original", "mode": "default", "case": 0}.items() <= good["job"].items()
    assert (bad["name"], bad["status"]) == ("crash", "exited")
    assert seen[-1].number == seen[-1].of == 7
    failed = fake("finish(status='error')", probes=probes, quick=True, modes=["default"])
    assert "probes" not in failed["cases"][0]


def test_only_the_original_compiled_is_traced(
    fake: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_TRACE", "elsewhere")
    old = tmp_path / "trace/1-a_b/default/dedicated_log_torch_trace_1.log"
    old.parent.mkdir(parents=True)
    old.touch()
    (old.parent / "mine").touch()
    cases = [{"name": "a/b", "file": "vision.py"}]
    results = fake(
        "finish(env=os.environ.get('TORCH_TRACE'))", trace=str(tmp_path / "trace"), repeat=True, quick=True, cases=cases
    )
    traced = [(v["env"], v.get("trace")) for v in results["cases"][0]["variants"]]
    folders = [str(tmp_path / "trace/1-a_b" / mode) for mode in ("default", "reduce-overhead")]
    assert traced == [(None, None)] * 2 + [(folders[0],) * 2, (None, None), (folders[1],) * 2, (None, None)]
    assert results["cases"][0]["repeated"]["env"] is None
    assert [file.name for file in old.parent.iterdir()] == ["mine"]


COUNTING = """
count = pathlib.Path(__file__).parent.parent / "count"
count.touch()
count.write_text(count.read_text() + name + chr(10))
finish(loss=float("nan"), sizes=[1], environment={"torch": "2"}, case={"train": True}, pid=os.getpid())
"""


@pytest.fixture
def rerun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[dict[str, Any], list[str]]]:
    """Run a plan in a folder of this name; the results, and which workers have run."""
    (tmp_path / "vision.py").write_text("first")

    def started(name: str, worker: str = COUNTING, **changes: Any) -> tuple[dict[str, Any], list[str]]:
        folder, count = tmp_path / name, tmp_path / "count"
        folder.mkdir(exist_ok=True)
        programs(folder, worker)
        monkeypatch.setattr(running, "HERE", folder)
        count.unlink(missing_ok=True)
        cases = [{"name": "vision", "file": str(tmp_path / "vision.py")}]
        if "reuse" in changes:
            changes["reuse"] = str(tmp_path / changes["reuse"])
        plan = plan_in(folder, **{"cases": cases, "base": str(tmp_path), "modes": ["default"], **changes})
        run(plan)
        return json.loads((folder / "results.json").read_text()), count.read_text().splitlines()

    return started


ALL = [f"{tree} {kind}" for kind in ("eager", "compiled") for tree in ("original", "patched")]
PATCHED = ["patched eager", "patched compiled"]


def test_the_original_is_reused(rerun: Callable[..., tuple[dict[str, Any], list[str]]], tmp_path: Path) -> None:
    first, ran = rerun("a", keep=True, quick=True, repeat=True)
    assert ran == [*ALL, "original compiled"]
    assert (tmp_path / "a/work").is_dir()
    overlay = [{"shown": "m.py", "file": "m.py", "patched": "m.py", "before": "0", "after": "other", "changed": []}]
    for name, earlier in (("b", "a/work"), ("c", "b/work")):  # also from what has reused itself
        second, ran = rerun(name, keep=name == "b", quick=True, repeat=True, reuse=earlier, overlay=overlay)
        assert ran == PATCHED
        old, new = first["cases"][0], second["cases"][0]
        for before, after in zip(old["variants"], new["variants"], strict=True):
            original = after["tree"] == "original"
            assert (after == {**before, "reused": True}) is original
            assert (after["pid"] == before["pid"]) is original
        assert new["repeated"] == {**old["repeated"], "reused": True}
        assert new["comparisons"] == [{"seen": 4, "there": True}]
        assert (second["environment"], new["train"]) == ({"torch": "2"}, True)
    assert not (tmp_path / "c/work").exists()
    assert (tmp_path / "a/work/000/original-eager/told.json").exists()  # only the link to it was removed


def test_without_a_patch_there_is_nothing_but_the_original(
    rerun: Callable[..., tuple[dict[str, Any], list[str]]],
) -> None:
    results, ran = rerun("a", quick=True, overlay=[])
    assert ran == [variant for variant in ALL if variant.startswith("original")]
    assert {variant["tree"] for variant in results["cases"][0]["variants"]} == {"original"}


OTHERS: dict[str, dict[str, Any]] = {
    "quick": {"quick": False},
    "cases": {"cases": [{"name": "other", "file": "vision.py"}]},
    "worker": {"worker": COUNTING + "# another one"},
    "nothing there": {"reuse": "nowhere"},
    "its own": {"reuse": "b/work"},
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_of_another_run_is_not_reused(
    what: str, rerun: Callable[..., tuple[dict[str, Any], list[str]]]
) -> None:
    rerun("a", keep=True, quick=True)
    results, ran = rerun("b", **{"quick": True, "reuse": "a/work", **OTHERS[what]})
    assert set(ran) >= set(ALL)
    assert not any("reused" in variant for variant in results["cases"][0]["variants"])


@pytest.mark.parametrize("what", [{"modes": ["reduce-overhead"]}, {"backend": "eager"}, {"counting": True}])
def test_only_what_is_not_compiled_is_reused_when_compiling_is_another(
    what: dict[str, Any], rerun: Callable[..., tuple[dict[str, Any], list[str]]]
) -> None:
    rerun("a", keep=True, quick=True, **what)
    results, ran = rerun("b", quick=True, reuse="a/work")
    assert ran == ["patched eager", "original compiled", "patched compiled"]
    reused = [variant for variant in results["cases"][0]["variants"] if "reused" in variant]
    assert [(variant["tree"], variant["kind"]) for variant in reused] == [("original", "eager")]


def test_what_was_timed_does_for_what_need_not_be_and_not_the_other_way_round(
    rerun: Callable[..., tuple[dict[str, Any], list[str]]],
) -> None:
    rerun("a", keep=True, quick=True)
    _, ran = rerun("b", keep=True, quick=True, reuse="a/work", untimed=True)
    assert ran == PATCHED
    rerun("c", keep=True, quick=True, untimed=True)
    _, ran = rerun("d", quick=True, reuse="c/work", untimed=True)
    assert ran == PATCHED
    _, ran = rerun("e", quick=True, reuse="c/work")
    assert ran == ["patched eager", "original compiled", "patched compiled"]
    _, ran = rerun("f", keep=True, quick=True, reuse="a/work", untimed=True, eager_untimed=True)
    assert ran == PATCHED
    rerun("g", keep=True, quick=True, untimed=True, eager_untimed=True)
    _, ran = rerun("h", quick=True, reuse="g/work", untimed=True, eager_untimed=True)
    assert ran == PATCHED
    _, ran = rerun("i", quick=True, reuse="g/work", untimed=True)
    assert ran == ["original eager", "patched eager", "original compiled", "patched compiled"]


def test_counting_compares_nothing(rerun: Callable[..., tuple[dict[str, Any], list[str]]]) -> None:
    results, ran = rerun("a", counting=True, repeat=True)
    assert ran == ["original eager", "original compiled", "patched compiled", "original compiled"]
    case = results["cases"][0]
    assert (case["comparisons"], case["compare_error"]) == ([], None)
    assert case["repeated"]["status"] == "ok"
    _, ran = rerun("a", counting=True, overlay=[])
    assert ran == ["original eager", "original compiled"]


SPAN = """
begin = time.monotonic()
here = pathlib.Path(spec["base"]) / "here"
if MEETS:
    here.mkdir(exist_ok=True)
    (here / folder.name).touch()
    while len(list(here.iterdir())) < 2 and time.monotonic() < begin + 30:
        time.sleep(0.01)
finish(span=[begin, time.monotonic()], memory={"bytes": 2**20}, job=job)
"""
ALONE = SPAN.replace("MEETS", "False")


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with two cores and some memory, and forks."""
    parent_without_torch(tmp_path, "sys.modules['torch'].set_num_threads = lambda n: print(n, 'threads')")
    monkeypatch.setattr(running, "cores", lambda: 2)
    monkeypatch.setattr(running, "free_memory", lambda: 2**30)


def run_of(folder: Path, worker: str, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> dict[str, Any]:
    """The case of a plan that is measured with these programs."""
    programs(folder, worker)
    (folder / "probes.py").write_text((folder / "worker.py").read_text())
    monkeypatch.setattr(running, "HERE", folder)
    overlay: list[Any] = changes.pop("overlay", [])
    (case,) = run(plan_in(folder, overlay=overlay, modes=["default"], **changes))["cases"]
    return dict(case)


def spans(told: list[dict[str, Any]]) -> list[tuple[float, float]]:
    return [tuple(one["span"]) for one in told]


def overlap(first: tuple[float, float], second: tuple[float, float]) -> bool:
    return max(first[0], second[0]) < min(first[1], second[1])


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("how", ["counting", "untimed"])
def test_what_is_only_counted_runs_at_the_same_time(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = SPAN.replace("MEETS", "job['kind'] == 'compiled'")
    case = run_of(tmp_path, worker, monkeypatch, repeat=True, quick=True, **{how: True})
    counted = [case["variants"][1], case["repeated"]]
    assert [one["status"] for one in counted] == ["ok", "ok"]
    assert overlap(*spans(counted))
    assert [one["job"]["folder"].rpartition("/")[2] for one in counted] == [
        "original-compiled-default",
        "original-compiled-default-again",
    ]


@pytest.mark.usefixtures("two_cores")
def test_probes_that_only_count_run_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probes = ["fullgraph", "vary-batch", "vary-sequence"]
    case = run_of(
        tmp_path, SPAN.replace("MEETS", "'vary' in job.get('probe', '')"), monkeypatch, probes=probes, quick=True
    )
    assert [probe["name"] for probe in case["probes"]] == probes
    alone, *together = spans(case["probes"])
    assert overlap(*together)
    assert not any(overlap(alone, one) for one in together)


@pytest.mark.usefixtures("two_cores")
def test_what_is_timed_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = run_of(tmp_path, ALONE, monkeypatch, quick=True, repeat=True, probes=["fullgraph", "latency"])
    told = sorted(spans([*case["variants"], case["repeated"], *case["probes"]]))
    assert len(told) == 5
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(told))


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("why", ["too little memory", "one core", "verbose", "no forks"])
def test_one_at_a_time_where_more_would_be_too_much(why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if why == "too little memory":
        monkeypatch.setattr(running, "free_memory", lambda: running.ROOM * 2**20)
    if why == "one core":
        monkeypatch.setattr(running, "cores", lambda: 1)
    if why == "no forks":
        (tmp_path / "parent.py").unlink()
    case = run_of(tmp_path, ALONE, monkeypatch, counting=True, repeat=True, verbose=why == "verbose")
    first, second = sorted(spans([case["variants"][1], case["repeated"]]))
    assert first[1] <= second[0]


@pytest.mark.usefixtures("two_cores")
def test_an_interrupt_ends_all_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = """
        if job["kind"] == "compiled":
            (pathlib.Path(spec["base"]) / f"pid{os.getpid()}").touch()
            time.sleep(600)
        finish(memory={"bytes": 2**20})
        """
    programs(tmp_path, worker)
    monkeypatch.setattr(running, "HERE", tmp_path)

    def interrupt(event: Event) -> None:
        if len(list(tmp_path.glob("pid*"))) == 2:
            raise KeyboardInterrupt

    plan = plan_in(tmp_path, counting=True, repeat=True, overlay=[], modes=["default"])
    with pytest.raises(KeyboardInterrupt):
        run(plan, progress=interrupt)
    pids = [int(file.name[3:]) for file in tmp_path.glob("pid*")]
    wait_until(lambda: not any(map(is_running, pids)), 5)


def test_memory_that_is_free() -> None:
    assert 0 < running.free_memory() < 2**50


def test_what_is_missing_is_measured(rerun: Callable[..., tuple[dict[str, Any], list[str]]], tmp_path: Path) -> None:
    rerun("a", keep=True, quick=True)
    (tmp_path / "a/work/000/original-compiled-default/told.json").write_text("{")
    _, ran = rerun("b", quick=True, reuse="a/work")
    assert ran == ["patched eager", "original compiled", "patched compiled"]
    (tmp_path / "vision.py").write_text("second")  # the case says something else now
    _, ran = rerun("b", quick=True, reuse="a/work")
    assert ran == ALL


def test_figures_that_json_does_not_have(fake: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    fake("finish(cold_seconds=float('nan'))", quick=True, modes=[])
    text = (tmp_path / "results.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["cases"][0]["variants"][0]["cold_seconds"] == "nan"


def test_an_interpreter_that_is_not_there(fake: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no-python cannot be started: No such file or directory"):
        fake("", python=str(tmp_path / "no-python"))


def test_an_interrupted_run_leaves_no_process(fake: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    def interrupt(event: Event) -> None:
        if (tmp_path / "pids").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fake("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nstart()\ntime.sleep(600)", interrupt)
    assert_gone(tmp_path)
    assert not (tmp_path / "results.json").exists()
    assert not (tmp_path / "work").exists()


SCRIPT = """
import pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # what started the tests (nohup, say) may ignore them
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.path.insert(0, {root!r})
from patcher.harness import run
run.HERE = pathlib.Path({folder!r})
try:
    run.run(run.HERE / "plan.json", sys.executable)
finally:
    print("left", flush=True)
"""


@pytest.mark.parametrize("forks", [False, True], ids=["new processes", "forks"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_us_and_the_worker(number: signal.Signals, forks: bool, tmp_path: Path) -> None:
    programs(tmp_path, "start().wait()")
    if forks:
        parent_without_torch(tmp_path)
    plan_in(tmp_path)
    script = SCRIPT.format(root=str(ROOT), folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
        try:
            wait_until((tmp_path / "pids").exists)
            tool.send_signal(number)
            out, err = tool.communicate(timeout=30)
        finally:
            tool.kill()
    assert out == b"left\n", err
    assert tool.returncode == (-number if number == signal.SIGINT else 128 + number)
    assert_gone(tmp_path)


def test_a_run_in_another_thread(fake: Callable[..., dict[str, Any]]) -> None:
    results: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: results.append(fake("finish()", quick=True, modes=[])))
    thread.start()
    thread.join(30)
    assert len(results[0]["cases"]) == 1
