"""What fixes and settings do to the second wild zoo, half of which nobody looked at: docs/results/wild-zoo.md.

    python benchmarks/wild_zoo.py count  --python PY --work FOLDER [--half work|held] [--only NAMES] [--jobs N]
    python benchmarks/wild_zoo.py patch  --python PY --work FOLDER [--half work|held] [--only NAMES]
    python benchmarks/wild_zoo.py again  --python PY --work FOLDER [--half work|held] [--only NAMES] [--jobs N]
    python benchmarks/wild_zoo.py report --work FOLDER [--checked FOLDER2] [--into docs/results/wild-zoo.md]

PY is the Python of an environment with the packages of ``zoo_wild2.txt``. ``count`` runs each class as it is
(``wild_run.py``). ``patch`` copies the packages of the classes that break, and has ``fix-compile`` patch the files that
these classes import, once by default and once with ``--unsafe``. ``again`` runs the classes that break in both trees,
and in the second one with the settings of `SETTINGS` together; outputs are compared with those of the packages as they
are; a class whose files a tree leaves as they are is not run again for it. What is in FOLDER is not asked for again.

A class breaks when its first call has a second graph, a break at a line of its packages, or a frame that is given up.
A tree, or a setting, with which a class does not run or gives other outputs counts as if nothing had been done there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import forecast
import zoo
import zoo_transformers
import zoo_unseen
import zoo_wild2
from tables import put, table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
Json = dict[str, Any]
#: What is tried together, on top of all fixes.
SETTINGS = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops", "allow_rnn", "nested_graph_breaks")
TREES = {"safe": (), "unsafe": ("--unsafe",)}
RUNS = ("plain", "safe", "unsafe", "set")
#: Classes of other lists, from which rules have come.
OTHERS = (*zoo.CLASSES.values(), *zoo_unseen.CLASSES.values(), *zoo_transformers.CLASSES.values())
KNOWN = {package.partition(".")[0] for other in OTHERS for package in other.packages}
HALVES = {"work": zoo_wild2.WORK, "held": zoo_wild2.HELD}


# ---------------------------------------------------------------------------------------------------------------------
# Measuring.


@dataclass(frozen=True)
class Bench:
    """Where it is measured."""

    python: str
    work: Path
    jobs: int

    def tree(self, name: str) -> Path:
        """The folder of a patched copy of packages."""
        return self.work / "trees" / name

    def run(self, run: str, names: Sequence[str]) -> None:
        """Count the classes ``names`` as ``run`` has them, those that are not counted yet."""
        folder = self.work / run
        folder.mkdir(parents=True, exist_ok=True)
        todo = [name for name in names if not (folder / f"{name}.json").is_file()]
        options: list[str] = [] if run == "plain" else ["--like", str(self.work / "plain")]
        options += ["--set", ",".join(SETTINGS)] if run == "set" else []
        path = [] if run == "plain" else [str(self.tree("unsafe" if run == "set" else run))]
        outside = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONHASHSEED": "0"}

        def part(number: int) -> None:
            mine = todo[number :: self.jobs]
            program = [self.python, "-W", "ignore", str(HERE / "wild_run.py"), *options, str(folder)]
            if mine:
                subprocess.run([*program, *mine], check=True, env=outside)

        with ThreadPoolExecutor(self.jobs) as threads:
            list(threads.map(part, range(self.jobs)))

    def patch(self, name: str, tree: str) -> None:
        """Have the tool patch what the class ``name`` imports, in a copy of its packages."""
        done = self.tree(tree) / f"{name}.txt"
        if done.is_file():
            return
        files = answers(self.work, "plain")[name]["files"]
        for top in sorted({file.partition("/")[0] for file in files}):
            if not (self.tree(tree) / top).exists():
                leave = shutil.ignore_patterns("__pycache__")
                shutil.copytree(self._packages() / top, self.tree(tree) / top, copy_function=_linked, ignore=leave)
        command = [sys.executable, str(ROOT / "fix_compile.py"), "fix", "--no-backup", *TREES[tree]]
        command += [word for what in zoo_wild2.COMPILED[name] for word in ("--compiled", what)] + files
        told = subprocess.run(command, cwd=self.tree(tree), capture_output=True, text=True, check=False)
        done.write_text(told.stdout + told.stderr, encoding="utf-8")

    def reuse(self, run: str, name: str) -> bool:
        """Take over the count of the run before, where ``run`` has the same code for the class ``name``."""
        before = {"safe": "plain", "unsafe": "safe"}.get(run)
        files = answers(self.work, "plain")[name]["files"]
        if before is None or (self.work / run / f"{name}.json").is_file():
            return False
        old = self._packages() if before == "plain" else self.tree(before)
        if any((old / file).read_bytes() != (self.tree(run) / file).read_bytes() for file in files):
            return False
        told = answers(self.work, before).get(name)
        if told is None:
            return False
        (self.work / run).mkdir(parents=True, exist_ok=True)
        same = {**told, "eager": [True] * len(told["counted"]["calls"]), "same code as": before}
        (self.work / run / f"{name}.json").write_text(json.dumps(same, indent=1), encoding="utf-8")
        return True

    def _packages(self) -> Path:
        ask = [self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        return Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())


def _linked(source: str, target: str) -> str:
    """The same file under another name: who patches it replaces it, and the original stays."""
    os.link(source, target)
    return target


def answers(work: Path, run: str) -> dict[str, Json]:
    """What has been counted so far, by class."""
    files = (work / run / f"{name}.json" for name in zoo_wild2.CLASSES)
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()}


# ---------------------------------------------------------------------------------------------------------------------
# Reading.


def runs(told: Json | None) -> bool:
    """Whether it was counted, and compiled code ran."""
    return told is not None and "counted" in told and not told["counted"]["error"]


def breaking(name: str, told: Json) -> bool:
    """Whether the class ``name`` breaks, as it is."""
    if not runs(told):
        return False
    first, tops = told["counted"]["calls"][0], packages_of(name)
    own = any(b["where"].partition("/")[0] in tops for b in told["counted"]["breaks"])
    return first["graphs"] > 1 or (first["breaks"] > 0 and own) or first["dropped_frames"] > 0


def why_wrong(told: Json, before: Json) -> str:
    """Why a run does not count; "" where it does."""
    if "counted" not in told:
        return f"does not run: {told['error'][:120]}"
    if told["counted"]["error"]:
        return f"fails: {told['counted']['error'][:120]}"
    if not all(told["eager"]):
        return "eager outputs differ"
    old, new = before["counted"]["outputs"], told["counted"]["outputs"]
    worse = [b for a, b in zip(old, new, strict=True) if b != a and (isinstance(b, str) or b > 1e-5)]
    return f"compiled outputs differ: {worse[0]}" if worse else ""


def packages_of(name: str) -> set[str]:
    return {package.partition(".")[0] for package in zoo_wild2.CLASSES[name].packages}


def shuffled(names: Iterable[str]) -> list[str]:
    """In the order of the zoo's shuffle."""
    wanted = set(names)
    return [name for name in zoo_wild2.SHUFFLED if name in wanted]


def exact(told: Json) -> bool:
    return all(told["eager"]) and all(d == 0.0 for d in told["counted"]["outputs"])


COUNTS: dict[str, Callable[[Json], int]] = {
    "extra graphs": lambda told: max(told["counted"]["calls"][0]["graphs"] - 1, 0),
    "breaks": lambda told: sum(call["breaks"] for call in told["counted"]["calls"]),
    "recompiles": lambda told: sum(call["recompiles"] for call in told["counted"]["calls"]),
    "frames given up": lambda told: sum(call["dropped_frames"] for call in told["counted"]["calls"]),
    "operators in graphs, first call": lambda told: told["counted"]["calls"][0]["operators"],
}


@dataclass(frozen=True)
class Row:
    """A class that breaks, by run: what counts of it, and what was wrong where that is another run's."""

    name: str
    counted: dict[str, Json]
    wrong: dict[str, str]

    def count(self, run: str, what: str) -> int:
        return COUNTS[what](self.counted[run])


def rows_of_zoo(work: Path, names: Iterable[str]) -> list[Row]:
    """The classes of ``names`` that break and were counted in every run."""
    every = {run: answers(work, run) for run in RUNS}
    found = []
    for name in names:
        before = every["plain"].get(name)
        if before is None or not breaking(name, before) or any(name not in every[run] for run in RUNS):
            continue
        counted, wrong = {"plain": before}, {}
        for run in RUNS[1:]:
            told = every[run][name]
            if reason := why_wrong(told, before):
                wrong[run] = reason
            counted[run] = counted[RUNS[RUNS.index(run) - 1]] if reason else told
        if COUNTS["extra graphs"](counted["set"]) > COUNTS["extra graphs"](counted["unsafe"]):
            wrong["set"], counted["set"] = "more graphs: not kept", counted["unsafe"]
        found.append(Row(name, counted, wrong))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# The document.


def share(old: int, new: int) -> str:
    return f"{100 * (new - old) / old:+.0f} %" if old else "n/a"


def sums(rows: Sequence[Row]) -> str:
    """All classes together."""
    lines: list[list[object]] = []
    for what in COUNTS:
        total = {run: sum(row.count(run, what) for row in rows) for run in RUNS}
        after = [f"{total[run]} ({share(total['plain'], total[run])})" for run in RUNS[1:]]
        lines.append([what, total["plain"], *after])
    whole = [sum(not row.count(run, "breaks") for row in rows) for run in RUNS]
    lines.append(["classes without a break", *whole])
    same = [sum(run not in row.wrong and exact(row.counted[run]) for row in rows) for run in RUNS[1:]]
    lines.append([f"outputs equal bit for bit, of {len(rows)}", "", *same])
    lines.append(["not counted, as wrong or worse", "", *(sum(run in row.wrong for row in rows) for run in RUNS[1:])])
    return table(["", "as it is", "safe", "--unsafe", "--unsafe and settings"], lines)


def _same(row: Row) -> str:
    odd = [d for d in row.counted["plain"]["counted"]["outputs"] if isinstance(d, str)]
    return f"as it is, compiled: {odd[0]}" if odd else "same"


def each(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        cells = [" -> ".join(str(row.count(run, what)) for run in RUNS) for what in list(COUNTS)[:4]]
        wrong = "; ".join(f"{run}: {reason}" for run, reason in row.wrong.items())
        lines.append([row.name, zoo_wild2.CLASSES[row.name].family, *cells, wrong or _same(row)])
    return table(["class", "for", *list(COUNTS)[:4], "outputs"], lines)


def census(work: Path) -> str:
    """Both halves: how many classes run, and break."""
    told = answers(work, "plain")
    lines: list[list[object]] = []
    for half, names in HALVES.items():
        ran = [n for n in names if runs(told.get(n))]
        broken = [n for n in ran if breaking(n, told[n])]
        packages = set[str]().union(*map(packages_of, names))
        extra = sum(COUNTS["extra graphs"](told[n]) for n in broken)
        breaks = sum(COUNTS["breaks"](told[n]) for n in broken)
        failed = ", ".join(n for n in names if n in told and n not in ran)
        missing = ", ".join(n for n in names if n not in told)
        lines.append([half, len(names), len(packages), len(ran), len(broken), extra, breaks, failed, missing])
    head = ["half", "classes", "packages", "compile", "break", "extra graphs", "breaks", "do not compile", "not run"]
    return table(head, lines)


#: Words of PyTorch's, and the cause that they tell of.
CAUSES = (
    ("a number is read from a tensor", ("item()", "Data dependent operator")),
    ("rows that data decides", ("Dynamic shape operator",)),
    ("a branch on data", ("Data-dependent branching", "Could not guard on data-dependent", "data-dependent")),
    ("a function that a fix leaves out of graphs", ("torch.compiler.disable",)),
    ("LSTM, GRU, RNN", ("RNN, GRU, or LSTM",)),
    ("gradients asked for", ("requires_grad",)),
    ("iterators", ("tp_iternext", "Generator reconstruction", "generator")),
    (
        "what Dynamo skips or does not trace",
        ("skipped", "numpy function", "python_type", "Unsupported", "not supported"),
    ),
)


def cause(reason: str) -> str:
    return next((title for title, words in CAUSES if any(word in reason for word in words)), "other")


def causes(rows: Sequence[Row], shown: Sequence[str] = RUNS) -> str:
    """Break events by cause, in each of the runs ``shown``."""
    events: dict[str, Counter[str]] = defaultdict(Counter)
    classes: dict[str, set[str]] = defaultdict(set)
    lines: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for run in shown:
            for found in row.counted[run]["counted"]["breaks"]:
                title = cause(found["reason"])
                events[title][run] += found["count"]
                if run == "plain":
                    classes[title].add(row.name)
                    lines[title].add(found["where"])
    order = sorted(events, key=lambda title: -events[title]["plain"])
    told = [[t, len(classes[t]), len(lines[t]), *(events[t][run] for run in shown)] for t in order]
    titles = dict(zip(RUNS, ("as it is", "safe", "--unsafe", "--unsafe and settings"), strict=True))
    return table(["cause", "classes", "lines", *(titles[run] for run in shown)], told)


def place(where: str) -> str:
    """A file of a package, as its package has it, wherever the copy lies."""
    return re.sub(r"^.*/(site-packages|trees/\w+|lib/python3\.\d+)/", "", where)


def rest(rows: Sequence[Row]) -> str:
    """What still breaks, at the end."""
    lines = [
        [row.name, f"`{place(found['where'])}`", found["count"], found["reason"][:110]]
        for row in rows
        for found in row.counted["set"]["counted"]["breaks"]
    ]
    return table(["class", "place", "events", "PyTorch's words"], lines)


_FIXED = re.compile(r"^\S+: (FC\d+) \[fixed\]", re.MULTILINE)


def fixes(rows: Sequence[Row], work: Path) -> str:
    """Places that were rewritten, by rule; those in files of several classes count once."""
    edits: dict[str, Counter[str]] = {}
    for tree in TREES:
        told = (work / "trees" / tree / f"{row.name}.txt" for row in rows)
        edits[tree] = Counter(code for file in told for code in _FIXED.findall(file.read_text(encoding="utf-8")))
    codes = sorted({code for counted in edits.values() for code in counted})
    return table(["rule", "safe", "--unsafe"], [[code, *(edits[tree][code] for tree in TREES)] for code in codes])


def lines(told: dict[str, Json], names: Iterable[str], checked: Path) -> str:
    """Where the classes break as they are, and the rules that ``forecast.py check`` names there."""
    said, read = forecast.findings(checked, frozenset())
    files = {path.rpartition("site-packages/")[2]: path for path in read}
    cells: list[list[object]] = []
    for name in names:
        for found in told[name]["counted"]["breaks"]:
            where = place(found["where"])
            file, _, line = where.rpartition(":")
            rules = "not read"
            if file in files:
                there = said.get(forecast.place(files[file], int(line)), [])
                rules = ", ".join(sorted({s.code for s in there})) or "nothing"
            cells.append([name, f"`{where}`", found["count"], found["reason"][:80], rules])
    return table(["class", "place", "events", "PyTorch's words", "rules that tell of it"], cells)


def report(work: Path, into: Path | None, checked: Path | None) -> None:
    put(into, "wild-zoo-census", census(work))
    for half, names in HALVES.items():
        rows = rows_of_zoo(work, names)
        told = answers(work, "plain")
        broken = [n for n in names if n in told and breaking(n, told[n])]
        as_it_is = [Row(name, {"plain": told[name]}, {}) for name in broken]
        put(into, f"wild-zoo-{half}-as-it-is", causes(as_it_is, ("plain",)))
        if half == "work" and checked is not None:
            put(into, f"wild-zoo-{half}-lines", lines(told, broken, checked))
        if not rows:
            continue
        missing = [n for n in broken if n not in {row.name for row in rows}]
        note = f"\n\nThey break and are not in it, for lack of time: {', '.join(missing)}." if missing else ""
        put(into, f"wild-zoo-{half}-sums", f"{len(rows)} classes that break.\n\n{sums(rows)}{note}")
        new = [row for row in rows if not packages_of(row.name) & KNOWN]
        put(into, f"wild-zoo-{half}-new", f"{len(new)} classes of packages that no other list has.\n\n{sums(new)}")
        put(into, f"wild-zoo-{half}-classes", each(rows))
        put(into, f"wild-zoo-{half}-causes", causes(rows))
        put(into, f"wild-zoo-{half}-fixes", fixes(rows, work))
        put(into, f"wild-zoo-{half}-rest", rest(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["count", "patch", "again", "report"])
    parser.add_argument("--python", default=sys.executable, metavar="PY", help="of the environment with the packages")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--half", choices=tuple(HALVES))
    parser.add_argument("--only", metavar="NAMES", help="beginnings of classes, with commas")
    parser.add_argument(
        "--checked", type=Path, metavar="FOLDER", help="report: of ``forecast.py check``, for the half work"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="classes at a time")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the tables there (default: print them)")
    given = parser.parse_args()
    bench = Bench(given.python, given.work.resolve(), given.jobs)
    half = HALVES[given.half] if given.half else tuple(zoo_wild2.CLASSES)
    wanted = given.only.split(",") if given.only else [""]
    names = list(dict.fromkeys(name for word in wanted for name in half if name.startswith(word)))
    if given.what == "report":
        report(bench.work, given.into, given.checked)
        return
    if given.what == "count":
        bench.run("plain", names)
        return
    told = answers(bench.work, "plain")
    names = shuffled(name for name in names if name in told and breaking(name, told[name]))
    if given.what == "patch":
        for tree in TREES:
            for name in names:
                bench.patch(name, tree)
        return
    for run in RUNS[1:]:
        for name in names:
            bench.reuse(run, name)
        bench.run(run, names)


if __name__ == "__main__":
    main()
