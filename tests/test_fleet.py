"""Many models and cases in one call: the manifest, what is kept, the table, and a row for whatever goes wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from patcher.config import ConfigError
from patcher.fleet.call import FORMATS, Asked, fleet
from patcher.fleet.doing import proved
from patcher.fleet.jobs import jobs_of
from patcher.fleet.manifest import Manifest, load
from patcher.fleet.row import Job, Kept, Row, from_json, of, to_json
from patcher.fleet.slots import Begun, Done, FleetError, Places, Process, run
from patcher.fleet.table import Fleet, fleet_markdown, versions
from patcher.search.verdict import Pair, Verdict
from rules import load_rules
from tests.toy import SlowCall

CASE = "def build():\n    return None\n\n\ndef calls():\n    return []\n"


def manifest(folder: Path, text: str) -> Manifest:
    file = folder / "fleet.toml"
    file.write_text(text, encoding="utf-8")
    return load(str(file))


def model(folder: Path, name: str = "one", **cases: str) -> Path:
    root = folder / name
    root.mkdir()
    (root / "net.py").write_text(f"import torch\n\nx = {name!r}\n", encoding="utf-8")
    for case, text in cases.items():
        (root / f"{case}.py").write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no model"),
        ("mdoel = 1", "unknown key 'mdoel' (did you mean 'model'?)"),
        ("[[model]]\nname = 'a'", "needs either a path or a package"),
        ("[[model]]\npath = 'a'\npackage = 'b'", "needs either a path or a package"),
        (
            "[[model]]\npath = 'a'\ndo = ['tests']",
            "do of model 'a' must be a list of scan, test, diagnose, prove, not ['tests']",
        ),
        ("quick = 1\n[[model]]\npath = 'a'", "quick must be true or false, not 1"),
        ("time-limit = 0\n[[model]]\npath = 'a'", "time-limit must be a positive number of seconds"),
        ("[[model]]\npath = 'x/a'\n[[model]]\npath = 'y/a'", "two models are called 'a'"),
        ("[[model]]\npath = 'a'\ncase = ['b']", "unknown key 'case' of model 'a' (did you mean 'cases'?)"),
        ("[[model]", "is not valid TOML"),
    ],
)
def test_a_wrong_manifest_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        manifest(tmp_path, text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_jobs_are_what_is_done_then_cases_then_modes(tmp_path: Path) -> None:
    model(tmp_path, a=CASE, b=CASE)
    text = "mode = ['default', 'reduce-overhead']\n[[model]]\npath = 'one'\ncases = ['a.py', 'b.py']\n"
    jobs = jobs_of(manifest(tmp_path, text), load_rules())
    assert [job.name for job in jobs] == [
        "scan one",
        "test one/a (default)",
        "test one/a (reduce-overhead)",
        "test one/b (default)",
        "test one/b (reduce-overhead)",
    ]
    assert len({job.key for job in jobs}) == 5


def test_what_cannot_be_done_is_a_job_that_says_why(tmp_path: Path) -> None:
    model(tmp_path)
    text = """
    [[model]]
    path = "gone"
    [[model]]
    package = "no_such_package_here"
    [[model]]
    path = "one"
    cases = ["nothing.py"]
    [[model]]
    path = "one"
    name = "without"
    do = ["diagnose"]
    """
    gone, package, scan, test, without = jobs_of(manifest(tmp_path, text), load_rules())
    assert "no such file or folder" in gone.wrong
    assert "no package 'no_such_package_here' is installed" in package.wrong
    assert not scan.wrong
    assert "there is no such file" in test.wrong
    assert "no case" in without.wrong


def test_a_job_is_named_by_all_that_it_depends_on(tmp_path: Path) -> None:
    root = model(tmp_path, a=CASE)
    text = "[[model]]\npath = 'one'\npaths = ['net.py']\ncases = ['a.py']\n"

    def keys(text: str = text) -> list[str]:
        return [job.key for job in jobs_of(manifest(tmp_path, text), load_rules())]

    scan, test = keys()
    assert keys(text.replace("one'\np", "one'\nname = 'other'\np")) == [scan, test]
    assert keys("tolerance = 0.1\n" + text) != [scan, test]
    (root / "a.py").write_text(CASE + "\n", encoding="utf-8")
    changed = keys()
    assert changed[1] != test
    (root / "beside.py").write_text("y = 1\n", encoding="utf-8")  # which the case may import
    assert keys()[1] != changed[1]


def test_only_takes_patterns_and_an_unknown_model_is_an_error(tmp_path: Path) -> None:
    read = manifest(tmp_path, "".join(f"[[model]]\npath = '{name}'\n" for name in ("llama-1", "llama-2", "toto")))
    assert [job.model.name for job in jobs_of(read, load_rules(), ["llama*"])] == ["llama-1", "llama-2"]
    with pytest.raises(ConfigError, match=r"no model of fleet\.toml is called 'bert'"):
        jobs_of(read, load_rules(), ["bert"])


ROW = Row("m", "test", "c", "default", "k", "ok", "equivalent", {"breaks_before": 2.0}, ("a note",), "h", "cpu", "2.13")


def test_a_row_comes_back_as_it_was_written() -> None:
    assert from_json(to_json(ROW)) == ROW
    assert from_json(to_json(replace(ROW, figures={"mae": float("nan")}))) == replace(ROW, figures={})
    whole = to_json(ROW)
    assert [from_json(whole[:length]) for length in range(len(whole))] == [None] * len(whole)
    assert from_json(whole.replace('"ok"', '"fine"')) is None


def test_rows_are_kept_unless_they_failed_or_are_of_another_torch(tmp_path: Path) -> None:
    job = Job(manifest(tmp_path, "[[model]]\npath='m'").models[0], "test", key="k")
    kept = Kept(tmp_path / "rows.jsonl")
    kept.add(replace(ROW, told="first"))
    with kept.file.open("a", encoding="utf-8") as stream:
        stream.write(to_json(ROW)[:50])  # the call was killed while it wrote
    again = Kept(kept.file)
    assert again.of([job], {"2.13"})["k"].told == "first"
    assert again.of([job], {"2.12"}) == {}
    for ran, now, one in (("2.14.1+cu130", "2.14.1", True), ("2.14.1+cu130", "2.14.1+cpu", False)):
        kept_of = Kept(tmp_path / f"{now}.jsonl")
        kept_of.add(replace(ROW, torch=ran))
        assert bool(Kept(kept_of.file).of([job], {now})) is one  # what a wheel says of itself has no "+cu130"
    again.add(ROW)
    assert Kept(kept.file).of([job], {"2.13"})["k"] == ROW  # the last one counts
    again.add(replace(ROW, answer="failed"))
    assert Kept(kept.file).of([job], {"2.13"}) == {}


class Scripted:
    """A slot that does what the job's name says."""

    def __init__(self) -> None:
        self.closed = False

    def do(self, job: Job, begun: object) -> Row:
        begun("there")  # type: ignore[operator]
        if job.model.name == "bug":
            raise ValueError("two\nlines")
        if job.model.name == "gone":
            raise FleetError("the scheduler at X is gone")
        if job.model.name == "stopped":
            raise KeyboardInterrupt
        return of(job, "not equivalent" if job.model.name == "differs" else "ok", "done", figures={"safe": 1.0})

    def close(self) -> None:
        self.closed = True


def asked(tmp_path: Path, names: list[str], **more: object) -> tuple[Asked, list[Scripted], list[str]]:
    for name in names:
        if not (tmp_path / name).exists():
            model(tmp_path, name)
    read = manifest(tmp_path, "".join(f"[[model]]\npath = '{name}'\n" for name in names))
    standard = Asked(read, tmp_path / "rows.jsonl", (), "jsonl", (), (), False, "fix-compile fleet fleet.toml")
    return replace(standard, **more), [Scripted()], []  # type: ignore[arg-type]


def called(wanted: Asked, slots: list[Scripted], said: list[str]) -> tuple[int, list[Row], tuple[str, ...]]:
    places = Places(tuple(slots), frozenset({"2.13"}), "scripts")
    told = fleet(wanted, load_rules(), lambda jobs: places, lambda *_: None, said.append)
    assert all(slot.closed for slot in slots)
    return told.status, [row for line in str(told.out).splitlines() if (row := from_json(line))], told.err


def test_the_same_call_goes_on_where_it_was_ended(tmp_path: Path) -> None:
    status, rows, err = called(*asked(tmp_path, ["a", "gone", "b"]))
    assert (status, [row.model for row in rows]) == (2, ["a"])
    assert err[0].startswith("fleet: error: the scheduler at X is gone; 1 of 3 rows are kept in ")
    assert err[0].endswith(": the same call goes on")
    wanted, slots, said = asked(tmp_path, ["a", "b"])
    status, rows, _ = called(wanted, slots, said)
    assert (status, [row.model for row in rows]) == (0, ["a", "b"])
    assert said == ["2 rows, 1 kept in rows.jsonl, 1 to do on scripts"]
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2
    _, _, err = called(*asked(tmp_path, ["a", "b"], again=True))
    assert err[-1] == "2 rows: 2 ok"
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 4


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    status, rows, err = called(*asked(tmp_path, ["a", "stopped"]))
    assert (status, [row.model for row in rows]) == (130, ["a"])
    assert err[0].startswith("interrupted; 1 of 2 rows are kept in ")


@pytest.mark.parametrize(("names", "status"), [(["a"], 0), (["a", "differs"], 1), (["differs", "bug"], 2)])
def test_the_exit_status_is_that_of_the_worst_row(tmp_path: Path, names: list[str], status: int) -> None:
    assert called(*asked(tmp_path, names))[0] == status


def test_a_bug_of_ours_is_a_row(tmp_path: Path) -> None:
    _, rows, _ = called(*asked(tmp_path, ["bug"]))
    assert (rows[0].answer, rows[0].told) == (
        "failed",
        "internal error, a bug in fix-compile: ValueError: two lines",
    )


ROWS = (
    ROW,
    replace(
        ROW,
        model="other",
        machine="far",
        torch="2.12",
        figures={"eager_ms": 2.0, "before_ms": 3.0, "after_ms": 1.5, "speedup": 2.0, "breaks_before": 3.0}
        | {"breaks_after": 0.0},
    ),
    Row("x", "scan", "", "", "", "failed", "a <b> | c", machine=""),
)
FLEET = Fleet("zoo", "fix-compile fleet zoo.toml", "2026-01-01", "fix-compile 0", ROWS)


def test_machines_and_versions_are_told_apart() -> None:
    assert versions(ROWS) == {"2.12": ("far",), "2.13": ("h",)}
    text = fleet_markdown(FLEET)
    assert "PyTorch differs between machines, so that counts may, too: PyTorch 2.12 on far; PyTorch 2.13 on h" in text
    assert "### far (cpu, torch 2.12)" in text
    main = text.partition("## Times")[0]
    assert " ms" not in main  # what must not be compared is not in one table


def test_the_page_is_escaped() -> None:
    told = FORMATS["html"](FLEET)
    assert "<script" not in told
    assert "a &lt;b&gt; | c" in told


def test_a_process_that_dies_costs_its_own_job(tmp_path: Path) -> None:
    """It is begun once more, in a process of its own; the slot does the next job with a new one."""
    (tmp_path / "deadly").mkdir()
    (tmp_path / "deadly" / "net.py").write_text("segfault()\n", encoding="utf-8")
    model(tmp_path)
    rules = [SlowCall()]
    jobs = jobs_of(manifest(tmp_path, "[[model]]\npath = 'deadly'\n[[model]]\npath = 'one'\n"), rules)
    events = list(run(jobs, [Process(rules, 0)]))
    assert [event.job.model.name for event in events if isinstance(event, Begun)] == ["deadly", "deadly", "one"]
    deadly, one = (event.row for event in events if isinstance(event, Done))
    assert (deadly.answer, deadly.tries) == ("failed", 2)
    assert deadly.told == "the process that worked on it died (SIGSEGV), twice"
    assert one.answer == "ok"


def test_json_lines_are_what_jq_reads(tmp_path: Path) -> None:
    wanted, slots, said = asked(tmp_path, ["a"], outputs=(tmp_path / "t.jsonl", tmp_path / "t.html", tmp_path / "t.md"))
    status, _, err = called(wanted, slots, said)
    assert status == 0
    (line,) = (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["figures"] == {"safe": 1.0}
    assert (tmp_path / "t.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert (tmp_path / "t.md").read_text(encoding="utf-8").startswith("# fleet\n")
    assert err == ("1 row: 1 ok",)


@pytest.mark.parametrize(
    ("verdict", "answer", "told"),
    [
        (Verdict("optimized", "graphs", graphs=Pair(4, 1), equivalent=True), "ok", "0 fixes kept; breaks failed"),
        (Verdict("do-not-compile", before_ms=9.0, after_ms=3.0, equivalent=True), "ok", "0 fixes kept; eager failed"),
        (Verdict("failed", max_difference=2.0, said="results differ"), "not equivalent", "results differ"),
        (Verdict("failed", said="no torch"), "failed", "no torch"),
    ],
)
def test_the_row_of_a_search(verdict: Verdict, answer: str, told: str) -> None:
    (answered, text), figures = proved(verdict)
    assert (answered, text[: len(told)]) == (answer, told)
    assert figures.get("launches_before") == verdict.graphs.before
    assert figures.get("speedup") == (3.0 if verdict.before_ms else None)
