"""What the worker imports in place of the original, and what it counts while code is compiled."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from jobs import CASE, HARNESS, Jobs  # noqa: E402

SCALE = """\
def scale(x):
    return x * 2


def unused():
    return 2
"""
TRIPLE = SCALE.replace("2", "3")
USE = """\
import inspect
from {} import scale


def build():
    return lambda x: (scale(x), scale.__code__.co_filename, inspect.getsource(scale))
"""
DEEP = {"pkg/__init__.py": "from .inner.deep import scale\n", "pkg/inner/__init__.py": "", "pkg/inner/deep.py": SCALE}


@pytest.mark.parametrize(
    ("module", "files", "options"),
    [
        ("model", {"model.py": SCALE}, {}),
        ("model", {"src/model.py": SCALE}, {"roots": ("src",)}),
        ("model", {"model.py": SCALE}, {"name": "cases/model.py"}),
        ("pkg", DEEP, {}),
        ("space.inner", {"space/inner.py": SCALE}, {}),
        ("pkg.inner.deep", DEEP, {"overlay": {"package": "pkg", "within": "inner/deep.py"}}),
    ],
)
def test_the_patched_text_is_imported(
    module: str, files: dict[str, str], options: dict[str, Any], jobs: Jobs, tmp_path: Path
) -> None:
    (file,) = (path for path, text in files.items() if text == SCALE)
    for patched, factor, source in (({file: SCALE}, 2, SCALE), ({file: TRIPLE}, 3, TRIPLE)):
        tree = {"job": {"tree": "original"}} if factor == 2 else {}
        job = jobs(USE.format(module), files=files, patched=patched, **options, **tree)
        kept = job.kept()
        assert (kept["output[0]"] == factor).all()
        assert kept["output[1]"] == str(tmp_path / "tree" / file)
        assert kept["output[2]"] == source[: len(kept["output[2]"])] != ""
        assert job["loaded"] == [file]
    assert job["places"] == {"executed": 1, "of": 2, "missed": [f"{file}:6"]}


def test_roots_come_after_the_standard_library_and_before_what_is_installed(jobs: Jobs) -> None:
    text = "import tabnanny, pytest\ndef build(): return lambda x: (hasattr(tabnanny, 'mine'), hasattr(pytest, 'mine'))"
    kept = jobs(text, files={"tabnanny.py": "mine = 1\n", "pytest.py": "mine = 1\n"}).kept()
    assert (kept["output[0]"], kept["output[1]"]) == (False, True)


def test_the_case_itself_is_patched(jobs: Jobs) -> None:
    text = "def build(): return lambda x: x * 2\n"
    patched = {"case.py": CASE + text.replace("2", "3")}
    job, compiled = jobs(text, patched=patched), jobs(text, "compiled", patched=patched)
    assert (job.output() == 3).all()
    assert (job["loaded"], job["places"]) == (["case.py"], {"executed": 1, "of": 1, "missed": []})
    assert compiled["places"] == job["places"]
    unseen = "def build(): return lambda x: x * 2\n\n\ndef other(): return 4\n"
    compiled = jobs(unseen, "compiled", patched={"case.py": CASE + unseen.replace("4", "5")})
    assert compiled["places"]["executed"] == 0


@pytest.mark.parametrize(
    ("overlay", "reason"),
    [
        ({"before": "0" * 64}, "case.py: is another version here than the one that was patched"),
        ({"file": "/nowhere/m.py"}, "case.py: the original is not at /nowhere/m.py"),
        ({"package": "nowhere", "within": "m.py"}, "the package nowhere is not installed here"),
        ({"package": "case", "within": "m.py"}, "the package case is not installed here"),
    ],
)
def test_another_original_is_refused(overlay: dict[str, str], reason: str, jobs: Jobs) -> None:
    assert jobs(patched={"case.py": CASE}, overlay=overlay).failure == ("case-error", reason)


BROKEN = """
def build():
    def f(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2 * 3
    return f
def calls(): return [(torch.ones(2),), (torch.ones(3),)]
"""
QUIET = """
import logging.config
logging.config.dictConfig({"version": 1})  # which disables the loggers that are there
logging.disable(logging.INFO)
torch._logging.set_logs(dynamo=logging.WARNING)
"""
DROPPED = """
def build():
    def f(x):
        for _ in range(2):
            torch._dynamo.graph_break()
            x = x * 2
        return x
    return f
"""
SPECIAL = """
torch._dynamo.config.recompile_limit = 2
def build(): return lambda x, word: x + len(word)
def calls(): return [(torch.ones(2), word) for word in ("a", "bb", "ccc")]
"""
OWN = """
inner = torch.compile(lambda x: x.sin().cos(), backend="eager")
def build(): return lambda x: inner(x) + 1
def compile(model, **options): pass
"""
SUPPRESSED = """
torch._dynamo.config.suppress_errors = True
def refusing(graph, inputs): raise ValueError("no")
def build(): return lambda x: x + 1
def compile(model, **options): return torch.compile(model, backend=refusing)
"""
FIGURES = ("breaks", "recompiles", "graphs", "limit_hits", "dropped_frames", "launches", "operators")


@pytest.mark.parametrize(
    ("text", "cold", "settled", "verbose"),
    [
        ("", [(0, 0, 1, 0, 0, 1, 1)], [(0, 0, 0, 0, 0, 1, 1)], False),
        ("train = True\n", [(0, 0, 1, 0, 0, 1, 1)], [(0, 0, 0, 0, 0, 1, 1)], False),
        (BROKEN, [(1, 0, 2, 0, 0, 2, 3), (1, 2, 2, 0, 0, 2, 3)], [(0, 0, 0, 0, 0, 2, 3)] * 2, False),
        (BROKEN, [(1, 0, 2, 0, 0, 2, 3), (1, 2, 2, 0, 0, 2, 3)], [(0, 0, 0, 0, 0, 2, 3)] * 2, True),
        (QUIET + BROKEN, [(1, 0, 2, 0, 0, 2, 3), (1, 2, 2, 0, 0, 2, 3)], [(0, 0, 0, 0, 0, 2, 3)] * 2, False),
        (DROPPED, [(1, 0, 0, 0, 1, 0, 0)], [(0, 0, 0, 0, 0, 0, 0)], False),
        (SUPPRESSED, [(0, 0, 0, 0, 1, 0, 0)], [(0, 0, 0, 0, 0, 0, 0)], False),
        (OWN, [(0, 0, 1, 0, 0, 1, 2)], [(0, 0, 0, 0, 0, 1, 2)], False),
        (
            SPECIAL,
            [(0, 0, 1, 0, 0, 1, 1), (0, 1, 1, 0, 0, 1, 1), (0, 1, 0, 1, 0, 0, 0)],
            [(0, 0, 0, 0, 0, 1, 1)] * 2 + [(0, 0, 0, 0, 0, 0, 0)],
            False,
        ),
    ],
)
def test_what_compiling_costs_call_by_call(text: str, cold: Any, settled: Any, verbose: bool, jobs: Jobs) -> None:
    job = jobs(text, "compiled", plan={"verbose": verbose})
    for key, wanted in (("calls", cold), ("settled", settled)):
        assert [tuple(row[figure] for figure in FIGURES) for row in job[key]] == wanted
    assert job["counts"] == {"cudagraph_skips": 0} | {
        figure: sum(row[n] for row in cold) for n, figure in enumerate(FIGURES[:5])
    }
    assert ("Graph break in user code" in job.log) is verbose
    assert (job["launches"], job["operators"]) == tuple(sum(row[n] for row in settled) for n in (5, 6))


DESCRIBED = {
    "for the rest of a function": """
        def build():
            def f(x):
                y = (x + 1).sin()
                torch._dynamo.step_unsupported()  # here
                return y * 2
            return f
    """,
    "in a function that is called": """
        def inner(x):
            if x.sum() > 0:  # here
                x = x + 1
            return x
        def build(): return lambda x: inner(x) * 2
    """,
    "in a try": """
        def build():
            def f(x):
                x = x + 1
                try:
                    print("x")  # here
                finally:
                    x = x * 2
                return x
            return f
    """,
    "in a loop over calls": """
        def inner(x):
            print(x.shape)  # here
            return x + 1
        def build():
            def f(x):
                for _ in range(2):
                    x = inner(x)
                return x
            return f
    """,
    "a function that is not compiled": """
        inner = torch.compiler.disable(lambda x: x + 1)
        def build():
            def f(x):
                return inner(x) * 2  # here
            return f
    """,
}


def line_of(text: str, marked: str) -> int:
    return line_in(CASE + dedent(text), marked)


def line_in(text: str, marked: str) -> int:
    lines = text.splitlines()
    return next(number for number, line in enumerate(lines, 1) if marked in line)


@pytest.mark.parametrize(
    ("name", "reason", "breaks", "dropped"),
    [
        ("for the rest of a function", "Call to `torch._dynamo.step_unsupported()`", 1, 1),
        ("in a function that is called", "Data-dependent branching", 2, 0),
        ("in a try", "Failed to trace builtin operator", 1, 1),
        ("in a loop over calls", "Failed to trace builtin operator", 2, 1),
        ("a function that is not compiled", "Skip calling `torch.compiler.disable()`d function", 1, 0),
    ],
)
def test_breaks_are_described(name: str, reason: str, breaks: int, dropped: int, jobs: Jobs) -> None:
    job = jobs(DESCRIBED[name], "compiled")
    told = {"where": f"case.py:{line_of(DESCRIBED[name], '# here')}", "reason": reason}

    def rows(key: str) -> list[dict[str, Any]]:
        return [{field: row[field] for field in ("where", "reason", "count")} for row in job[key]]

    assert rows("breaks") == [{**told, "count": breaks}]
    assert rows("dropped_frames") == ([{**told, "count": dropped}] if dropped else [])
    assert all("gb7000" not in row["url"] for row in job["breaks"])  # that is what became of the frame


BLOCKS = """\
import torch


class Block(torch.nn.Module):
    def forward(self, x):
        x = x * 2
        if x.sum() > 0:  # here
            x = x + 1
        return x + bool(torch.ones(()))  # there


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)  # calls
        return x
"""


def test_what_torch_says_of_a_break(jobs: Jobs) -> None:
    text = "import model\ndef build(): return model.Model()\ndef calls(): return [lambda model: model(torch.ones(2))]"
    job = jobs(text, "compiled", files={"pkg/model.py": BLOCKS}, roots=("pkg",))
    calls, here, there = (f"pkg/model.py:{line_in(BLOCKS, mark)}" for mark in ("# calls", "# here", "# there"))
    first, second = job["breaks"]
    assert first["explanation"].startswith("Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`)")
    assert f'File "{here.partition(":")[0]}", line {here.partition(":")[2]}, in forward' in first["explanation"]
    assert "Use `torch.cond` to express dynamic control flow." in first["hints"]
    assert first["context"] == "attempted to jump with TensorVariable()"
    assert first["url"].endswith("/gb0170.html")
    assert first["stack"] == [f"{calls} in forward", f"{here} in forward"]
    assert second["stack"] == [f"{calls} in forward", f"{there} in forward"]  # and not through the resume function
    (dropped,) = job["dropped_frames"]
    assert {**dropped, "count": first["count"]} == first


REFUSED = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)

    def forward(self, x, mask):
        return self.second(self.first(x).clone(), self.first(x[:2] + 1), mask)  # calls

    def second(self, x, values, mask):
        x[mask] = values  # here
        return x * 2
"""


def test_a_graph_that_the_backend_refuses_is_traced_to_its_line(jobs: Jobs) -> None:
    text = (
        "train = True\nimport model\ndef build(): return model.Model()\n"
        "def calls(): return [(torch.ones(3, 4), torch.tensor([True, False, True]))]"
    )
    job = jobs(text, "compiled", files={"model.py": REFUSED}, plan={"backend": "aot_eager"})
    told = [row for row in job["breaks"] if row["reason"] == "Backend compiler exception"]
    here = f"model.py:{line_in(REFUSED, '# here')} in second"
    assert told
    assert {row["stack"][-1] for row in told} == {here}
    assert [f"model.py:{line_in(REFUSED, '# calls')} in forward", here] in [row["stack"] for row in told]


def test_where_the_graphs_come_from(jobs: Jobs) -> None:
    job = jobs(BROKEN, "compiled")
    line = line_of(BROKEN, "graph_break()")
    keys = ("where", "function", "resumed", "graphs", "launches", "operators")
    assert [tuple(row[key] for key in keys) for row in job["origins"]] == [
        (f"case.py:{line - 2}", "f", False, 2, 2, 2),
        (f"case.py:{line}", "f", True, 2, 2, 4),
    ]
    assert all(row["compile_seconds"] > 0 for row in job["origins"])
    timed = [row["seconds"] for row in job["origins"] if row["seconds"] is not None]
    assert len(timed) == (0 if torch.cuda.is_available() else 2)
    assert 0 < sum(timed) < sum(call["seconds"] for call in job["settled"]) or not timed
    (again,) = jobs(SPECIAL, "compiled")["origins"]
    assert (again["graphs"], again["launches"]) == (2, 2)
    assert jobs(SUPPRESSED, "compiled")["origins"] == []  # the backend has refused


def test_the_structured_trace_is_written(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs(BROKEN, "compiled")
    command = [sys.executable, f"{HARNESS}/worker.py", str(job.folder / "spec.json")]
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TORCH_TRACE": str(tmp_path / "trace")}
    subprocess.run(command, env=variables, cwd=tmp_path, timeout=120, check=True)
    (file,) = (tmp_path / "trace").iterdir()
    assert "dynamo_graph_break_reason" in file.read_text()
    assert json.loads((job.folder / "result.json").read_text())["counts"] == job["counts"]


def test_recompiles_are_described(jobs: Jobs) -> None:
    line = line_of(BROKEN, "graph_break()")
    guard = {"guard": "tensor 'x' size mismatch at index 0. expected 2, actual 3", "count": 1}
    assert jobs(BROKEN, "compiled")["recompiles"] == [
        {"function": "f", "where": f"case.py:{line - 2}", **guard},
        {"function": f"torch_dynamo_resume_in_f_at_{line}", "where": f"case.py:{line}", **guard, "nested": True},
    ]
    (limit,) = jobs(SPECIAL, "compiled")["limit_hits"]
    assert limit == {
        "function": "<lambda>",
        "where": f"case.py:{line_of(SPECIAL, 'lambda')}",
        "guard": "word == 'bb'  # def build(): return lambda x, word: x + len(word)",
        "count": 1,
        "source": f"case.py:{line_of(SPECIAL, 'lambda')}",
    }


def test_a_compile_error_names_the_place_in_the_model(jobs: Jobs) -> None:
    job = jobs(
        BROKEN + "def compile(model, **options): return torch.compile(model, fullgraph=True, **options)", "compiled"
    )
    status, message = job.failure
    assert (status, message.partition(":")[0]) == ("compile-error", "Unsupported")
    assert message.endswith(f"/case.py:{line_of(BROKEN, 'graph_break()')})")
    assert "\n" not in message


@pytest.mark.parametrize("kind", ["eager", "compiled"])
def test_what_is_told_is_documented(kind: str, jobs: Jobs) -> None:
    text = (Path(__file__).parent.parent / "docs" / "harness.md").read_text(encoding="utf-8")
    fields = set(jobs("", kind).told) - {"environment", "case", "sizes"}  # these are for run.py
    assert {field for field in fields if f"`{field}`" not in text} == set()
    assert len(fields) > 15


SIDES = """
def build():
    from pkg.main import told
    return lambda x: told()
"""
MAIN = "def told():\n    from pkg.{0} import name\n    try:\n        import pkg.{1} as other\n    except ImportError:\n"
MAIN += "        other = None\n    return [name, other is None, __import__('inspect').getsource(name)]\n"


@pytest.mark.parametrize("on_disk", ["original", "patched"])
@pytest.mark.parametrize("tree", ["original", "patched"])
def test_each_side_of_a_change_has_its_own_files(jobs: Jobs, tmp_path: Path, on_disk: str, tree: str) -> None:
    """A module that is moved, into a new folder of a namespace, or into a package: there on one side alone."""
    sides = {
        "original": {"pkg/main.py": MAIN.format("before", "new.after"), "pkg/before.py": "def name(): return 1\n"},
        "patched": {"pkg/main.py": MAIN.format("new.after", "before"), "pkg/new/after.py": "def name(): return 2\n"},
    }
    entries = []
    for number, file in enumerate(sorted({*sides["original"], *sides["patched"]})):
        entry = {"file": str(jobs.tree / file), "shown": file, "changed": [[1, 9]]}
        for side, state in (("original", "before"), ("patched", "after")):
            text = sides[side].get(file)
            entry[state] = hashlib.sha256(text.encode()).hexdigest() if text is not None else ""
            if text is not None and (side == "patched" or on_disk == "patched"):
                (tmp_path / f"{side}{number}.py").write_text(text)
                entry[side] = str(tmp_path / f"{side}{number}.py")
        entries.append(entry)
    job = jobs(SIDES, files=sides[on_disk], plan={"overlay": entries, "on_disk": on_disk}, job={"tree": tree})
    kept, module = job.kept(), "before" if tree == "original" else "new/after"
    assert kept["output[1]"] is True
    assert f"return {1 if tree == 'original' else 2}" in kept["output[2]"]
    assert f"pkg/{module}.py" in job["loaded"]
    (jobs.tree / "pkg/main.py").write_text("changed = 1\n")
    job = jobs(SIDES, plan={"overlay": entries, "on_disk": on_disk}, job={"tree": tree})
    assert job.failure == ("case-error", "pkg/main.py: is another version here than the one that was patched")
