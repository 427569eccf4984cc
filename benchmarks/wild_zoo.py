"""What fixes and settings do to the second wild zoo, half of which nobody looked at: docs/results/wild-zoo.md.

    python benchmarks/wild_zoo.py count  --python PY --work FOLDER [--half HALF] [--only NAMES] [--jobs N]
    python benchmarks/wild_zoo.py patch  --python PY --work FOLDER [--half HALF] [--only NAMES]
    python benchmarks/wild_zoo.py choose --python PY --work FOLDER [--half HALF] [--only NAMES] [--jobs N]
    python benchmarks/wild_zoo.py again  --python PY --work FOLDER [--half HALF] [--only NAMES] [--jobs N]
    python benchmarks/wild_zoo.py further --python PY --work FOLDER [--half HALF] [--only NAMES] [--jobs N]
    python benchmarks/wild_zoo.py report --work FOLDER [--checked FOLDER2] [--into docs/results/wild-zoo.md]

PY is the Python of an environment with the packages of ``zoo_wild2.txt``, for HALF third or fourth (the others are work
and held) of ``zoo_third.txt`` or ``zoo_fourth.txt``. ``count`` runs each class as it is (``wild_run.py``). ``patch``
copies the packages of the classes that break, and has ``fix-compile`` patch the files that these classes import, once
by default and once with ``--unsafe``. ``choose`` has ``fix-compile prove --unsafe`` patch them in a copy for
each class, with the class's calls as its case, and notes the settings of PyTorch that it keeps. ``again`` runs the
classes that break in all three trees, the last one with these settings; outputs are compared with those of the packages
as they are, gradients, state and errors as well (``wild_check.py``). A class whose files a tree leaves as they are is
not run again for it. ``further`` tries each of some more settings on top of what was chosen. What is in FOLDER is not
asked for again.

A class breaks when its first call has a second graph, a break at a line of its packages, or a frame that is given up.
A tree, or a choice, with which a class does not run or gives other outputs counts as if nothing had been done there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parent.parent))
import forecast
import settings
import zoo
import zoo_fourth
import zoo_third
import zoo_transformers
import zoo_unseen
import zoo_wild2
from tables import put, table

from patcher.settings import TorchSetting, torch_setting

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
Json = dict[str, Any]
TREES = {"safe": (), "unsafe": ("--unsafe",)}
RUNS = ("plain", "safe", "unsafe", "chosen")
TITLES = dict(zip(RUNS, ("as it is", "safe", "--unsafe", "settings chosen"), strict=True))
#: Settings of PyTorch 2.13 that might take something into graphs, and that `patcher.diagnose.advice` knows or not.
FURTHER = (
    TorchSetting("config", "trace_autograd_ops"),
    TorchSetting("config", "dont_skip_tracing"),
    TorchSetting("config", "enable_faithful_generator_behavior", False),
    TorchSetting("config", "graph_break_on_nn_param_ctor", False),
    TorchSetting("config", "prefer_deferred_runtime_asserts_over_guards"),
    TorchSetting("config", "allow_unspec_int_on_nn_module"),
    TorchSetting("config", "force_parameter_static_shapes", False),
    TorchSetting("argument", "dynamic"),
)
NOT_RUN = "not run, for lack of time"
#: What a run counts as that is wrong, or was not made.
INSTEAD = {"safe": "plain", "unsafe": "safe", "chosen": "plain"}
_CONFIG = "torch._dynamo.config"
SECONDS = 1500  # for all that ``prove`` does with a class
#: Classes of other lists, from which rules have come.
OTHERS = (*zoo.CLASSES.values(), *zoo_unseen.CLASSES.values(), *zoo_transformers.CLASSES.values())
KNOWN = {package.partition(".")[0] for other in OTHERS for package in other.packages}
HALVES = {
    "work": zoo_wild2.WORK,
    "held": zoo_wild2.HELD,
    "third": tuple(zoo_third.SHUFFLED),
    "fourth": tuple(zoo_fourth.SHUFFLED),
}
CLASSES = zoo_wild2.CLASSES | zoo_third.CLASSES | zoo_fourth.CLASSES
COMPILED = zoo_wild2.COMPILED | zoo_third.COMPILED | zoo_fourth.COMPILED


# ---------------------------------------------------------------------------------------------------------------------
# Measuring.


@dataclass(frozen=True)
class Bench:
    """Where it is measured."""

    python: str
    work: Path
    jobs: int
    search: int | None = None

    def tree(self, name: str) -> Path:
        """The folder of a patched copy of packages."""
        return self.work / "trees" / name

    def run(self, run: str, names: Sequence[str]) -> None:
        """Count the classes ``names`` as ``run`` has them, and check them, those that this was not done for yet."""
        (self.work / run).mkdir(parents=True, exist_ok=True)
        parts = (
            [(name,) for name in names] if run == "chosen" else [tuple(names[n :: self.jobs]) for n in range(self.jobs)]
        )

        def part(mine: tuple[str, ...]) -> None:
            for program, end in (("wild_run.py", ".json"), ("wild_check.py", ".check.json")):
                self._program(run, program, [n for n in mine if not (self.work / run / f"{n}{end}").is_file()])

        with ThreadPoolExecutor(self.jobs) as threads:
            list(threads.map(part, parts))

    def further(self, name: str) -> None:
        """Count a class with each of `FURTHER` on top of what was chosen for it."""
        (self.work / "further").mkdir(exist_ok=True)
        if not (self.work / "further" / f"{name}.json").is_file():
            self._program("further", "wild_run.py", [name])

    def _program(self, run: str, program: str, names: Sequence[str]) -> None:
        if not names:
            return
        options: list[str] = [] if run == "plain" else ["--like", str(self.work / "plain")]
        own = str(self.tree(f"chosen/{names[0]}"))
        if run in ("chosen", "further"):  # one class, in a tree of its own
            options += ["--set", json.dumps(self.settings(names[0]))]
        if run == "further":
            options += ["--each", json.dumps(FURTHER)]
        tree = {"plain": "", "chosen": own, "further": own}.get(run, str(self.tree(run)))
        outside = {**os.environ, "PYTHONPATH": tree, "PYTHONHASHSEED": "0"}
        command = [self.python, "-W", "ignore", str(HERE / program), *options, str(self.work / run), *names]
        subprocess.run(command, check=True, env=outside, stdout=subprocess.DEVNULL)

    def patch(self, name: str, tree: str) -> None:
        """Have the tool patch what the class ``name`` imports, in a copy of its packages."""
        done = self.tree(tree) / f"{name}.txt"
        if done.is_file():
            return
        files = self._copied(name, self.tree(tree))
        command = [sys.executable, str(ROOT / "fix_compile.py"), "fix", "--no-backup", *TREES[tree]]
        command += [*_compiled(name), *files]
        told = subprocess.run(command, cwd=self.tree(tree), capture_output=True, text=True, check=False)
        done.write_text(told.stdout + told.stderr, encoding="utf-8")

    def choose(self, name: str) -> None:
        """Have the tool choose fixes and settings by running the class's calls, in a copy of its own."""
        done, tree = self.work / "choices" / f"{name}.json", self.tree(f"chosen/{name}")
        if done.is_file():
            return
        done.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(tree, ignore_errors=True)  # of a call that was ended
        files = self._copied(name, tree)
        case = settings.Bench(self.python, self.work).case(name)
        report = done.with_suffix(".report.json")
        report.unlink(missing_ok=True)
        command = [sys.executable, str(ROOT / "fix_compile.py"), "prove", "--unsafe", "--no-backup", "-o", str(report)]
        command += ["--case", str(case), "--python", self.python, "--backend", "eager", "--quick"]
        command += ["--quiet", "--time-limit", "400", "--budget", str(self.search or SECONDS), *files]
        start = time.monotonic()
        try:
            outside = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", "NO_COLOR": "1"}
            outside["OMP_NUM_THREADS"] = "1"  # nothing is timed, and threads that wait for a core keep others from one
            told = subprocess.run(command, cwd=tree, env=outside, capture_output=True, text=True, timeout=SECONDS)
            answer = _choice(told, report)
        except subprocess.TimeoutExpired:
            answer = {"failed": f"did not end within {SECONDS} seconds", "tried": []}
        if "failed" in answer:  # nothing is written then
            shutil.rmtree(tree)
            self._copied(name, tree)
        took = {"took": round(time.monotonic() - start, 1), "state": settings.state()}
        done.write_text(json.dumps({**answer, **took}, indent=1), encoding="utf-8")
        print(f"{took['took']:7.1f} s  {name:45s} {answer.get('failed') or answer['ending']}", flush=True)

    def settings(self, name: str) -> list[list[Any]]:
        """What was chosen for a class of PyTorch's settings, each as `TorchSetting` has it."""
        told = json.loads((self.work / "choices" / f"{name}.json").read_text(encoding="utf-8"))
        kept = [one["fixes"][0] for one in told["tried"] if _is_kept(one) and not one["fixes"][0].startswith("FC")]
        found = [torch_setting(f"{_CONFIG}.{t}") or torch_setting(f"torch.compile(..., {t})") for t in kept]
        assert all(found), kept
        return [list(setting) for setting in found if setting]

    def _copied(self, name: str, tree: Path) -> list[str]:
        """The files of the class's packages that it imports; the packages are in ``tree`` then."""
        files: list[str] = answers(self.work, "plain")[name]["files"]
        for top in sorted({file.partition("/")[0] for file in files}):
            if not (tree / top).exists():
                leave = shutil.ignore_patterns("__pycache__")
                shutil.copytree(self._packages() / top, tree / top, copy_function=_linked, ignore=leave)
        return files

    def reuse(self, run: str, name: str) -> None:
        """Take over what was counted before, where ``run`` has the same code for the class ``name``."""
        if run == "chosen" and self.settings(name):
            return
        files = answers(self.work, "plain")[name]["files"]
        trees = {one: self.tree(one) for one in RUNS} | {
            "plain": self._packages(),
            "chosen": self.tree(f"chosen/{name}"),
        }
        texts = {one: [(trees[one] / f).read_bytes() for f in files] for one in RUNS[: RUNS.index(run) + 1]}
        before = next(one for one in RUNS if texts[one] == texts[run])
        if before == run:
            return
        (self.work / run).mkdir(parents=True, exist_ok=True)
        for end in (".json", ".check.json"):
            told, target = self.work / before / f"{name}{end}", self.work / run / f"{name}{end}"
            if told.is_file() and not target.is_file():
                read = json.loads(told.read_text(encoding="utf-8"))
                if before == "plain" and "counted" in read:
                    read["eager"] = [True] * len(read["counted"]["calls"])
                target.write_text(json.dumps({**read, "same code as": before}, indent=1), encoding="utf-8")

    def _packages(self) -> Path:
        ask = [self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        return Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())


def _compiled(name: str) -> list[str]:
    return [word for what in COMPILED[name] for word in ("--compiled", what)]


def _choice(told: subprocess.CompletedProcess[str], report: Path) -> Json:
    """What ``prove`` said: how it ended, and what was tried."""
    try:
        proof = json.loads(report.read_text(encoding="utf-8"))["proof"]
    except (OSError, ValueError, KeyError):
        proof = None
    if proof is None:
        return {"failed": f"status {told.returncode}: {told.stderr.strip()[-300:]}", "tried": []}
    tried = [{key: one[key] for key in ("fixes", "outcome", "reason")} for one in proof["tried"]]
    return {"ending": proof["ending"], "tried": [one for one in tried if one["outcome"] != "not tried"]}


def _is_kept(tried: Json) -> bool:
    return bool(tried["outcome"] == "kept")


def _linked(source: str, target: str) -> str:
    """The same file under another name: who patches it replaces it, and the original stays."""
    os.link(source, target)
    return target


def answers(work: Path, run: str, end: str = ".json") -> dict[str, Json]:
    """What has been counted so far, or checked, by class."""
    files = {name: work / run / f"{name}{end}" for name in CLASSES}
    return {name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.is_file()}


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


def why_wrong(told: Json, before: Json, check: Json, check_before: Json) -> str:
    """Why a run does not count; "" where it does."""
    if "counted" not in told:
        return f"does not run: {told['error'][:120]}"
    if told["counted"]["error"]:
        return f"fails: {told['counted']['error'][:120]}"
    if not all(told["eager"]):
        return "eager outputs differ"
    old, new = before["counted"]["outputs"], told["counted"]["outputs"]
    worse = [b for a, b in zip(old, new, strict=True) if b != a and _much(b)]
    if worse:
        return f"compiled outputs differ: {worse[0]}"
    if "errors" not in check:
        return f"could not be checked: {check['error'][:120]}" if "errors" in check_before else ""
    wrong = [what for what in CHECKED if check[what] != check_before[what] and _much(check[what])]
    if wrong:
        return f"{wrong[0]} differ: {check[wrong[0]]}"
    silent = [title for title, fate in check["errors"].items() if fate.endswith("became a result")]
    return f"a bad call raises nothing: {silent[0]}" if silent else ""


CHECKED = ("gradients", "state", "compiled gradients", "compiled state")


def _much(distance: float | str) -> bool:
    return isinstance(distance, str) or distance > 1e-5


def packages_of(name: str) -> set[str]:
    return {package.partition(".")[0] for package in CLASSES[name].packages}


def shuffled(names: Iterable[str]) -> list[str]:
    """In the order of the zoo's shuffle."""
    wanted = set(names)
    return [name for name in (*zoo_wild2.SHUFFLED, *zoo_third.SHUFFLED, *zoo_fourth.SHUFFLED) if name in wanted]


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
    """A class that breaks, by run: what counts of it, what was wrong where that is another run's, what was checked."""

    name: str
    counted: dict[str, Json]
    wrong: dict[str, str]
    checked: dict[str, Json]

    def count(self, run: str, what: str) -> int:
        return COUNTS[what](self.counted[run])


def rows_of_zoo(work: Path, names: Iterable[str]) -> list[Row]:
    """The classes of ``names`` that break, where any run but the first was made; one that was not counts as wrong."""
    every = {run: answers(work, run) for run in RUNS}
    checks = {run: answers(work, run, ".check.json") for run in RUNS}
    found = []
    for name in names:
        before = every["plain"].get(name)
        if before is None or not breaking(name, before) or not any(name in every[run] for run in RUNS[1:]):
            continue
        counted, wrong, checked = {"plain": before}, {}, {run: checks[run].get(name, {}) for run in RUNS}
        for run in RUNS[1:]:
            told = every[run].get(name)
            reason = NOT_RUN
            if told is not None and checked[run]:
                reason = why_wrong(told, before, checked[run], checked["plain"])
            if reason:
                wrong[run] = reason
            counted[run] = counted[INSTEAD[run]] if reason or told is None else told
        found.append(Row(name, counted, wrong, checked))
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
    lines.append(
        [
            "outputs equal bit for bit",
            "",
            *(_share(exact(row.counted[run]) for row in _ran(rows, run)) for run in RUNS[1:]),
        ]
    )
    for what, known in (("gradients", "graded"), ("state", "errors")):
        cells = [
            _share(_equal(row, run, what) for row in _ran(rows, run) if row.checked["plain"].get(known))
            for run in RUNS[1:]
        ]
        lines.append([f"{what} equal bit for bit, eager and compiled", "", *cells])
    ends = [_share(same for row in _ran(rows, run) for same in _ends(row, run)) for run in RUNS[1:]]
    lines.append(["bad calls that end as they did", "", *ends])
    lines.append(
        [
            "counted as before: wrong",
            "",
            *(len(rows) - len(_ran(rows, run)) - len(_not_run(rows, run)) for run in RUNS[1:]),
        ]
    )
    lines.append(["counted as before: not run", "", *(len(_not_run(rows, run)) for run in RUNS[1:])])
    return table(["", *TITLES.values()], lines)


def _share(equal: Iterable[bool]) -> str:
    told = list(equal)
    return f"{sum(told)} of {len(told)}"


def _ran(rows: Sequence[Row], run: str) -> list[Row]:
    return [row for row in rows if run not in row.wrong]


def _not_run(rows: Sequence[Row], run: str) -> list[Row]:
    return [row for row in rows if row.wrong.get(run) == NOT_RUN]


def _equal(row: Row, run: str, what: str) -> bool:
    """Bit for bit; compiled as far as it was before."""
    check, before = row.checked[run], row.checked["plain"]
    return check.get(what) == 0.0 and check.get(f"compiled {what}") == before.get(f"compiled {what}")


def _ends(row: Row, run: str) -> list[bool]:
    """Of each bad call, whether it ends as it did."""
    check, before = row.checked[run].get("errors", {}), row.checked["plain"].get("errors", {})
    return [check.get(title) == fate for title, fate in before.items()]


def _same(row: Row) -> str:
    odd = [d for d in row.counted["plain"]["counted"]["outputs"] if isinstance(d, str)]
    return f"as it is, compiled: {odd[0]}" if odd else "same"


def each(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        cells = [" -> ".join(str(row.count(run, what)) for run in RUNS) for what in list(COUNTS)[:4]]
        wrong = "; ".join(f"{run}: {reason}" for run, reason in row.wrong.items())
        lines.append([row.name, CLASSES[row.name].family, *cells, wrong or _same(row)])
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
    return table(["cause", "classes", "lines", *(TITLES[run] for run in shown)], told)


def place(where: str) -> str:
    """A file of a package, as its package has it, wherever the copy lies."""
    inside = r"(?:site-packages|trees/chosen/[^/]+|trees/\w+|lib/python3\.\d+)/"
    return re.sub(rf"^.*/(?:{inside}|(?=benchmarks/\w+\.py))", "", where)


def rest(rows: Sequence[Row]) -> str:
    """What still breaks, at the end."""
    lines = [
        [row.name, f"`{place(found['where'])}`", found["count"], found["reason"][:110]]
        for row in rows
        for found in row.counted["chosen"]["counted"]["breaks"]
    ]
    return table(["class", "place", "events", "PyTorch's words"], lines)


_FIXED = re.compile(r"^\S+: (FC\d+) \[fixed\]", re.MULTILINE)


def fixes(rows: Sequence[Row], work: Path) -> str:
    """Places that were rewritten, by rule, those in files of several classes once; classes in which it was chosen."""
    edits: dict[str, Counter[str]] = {}
    for tree in TREES:
        told = (work / "trees" / tree / f"{row.name}.txt" for row in rows)
        edits[tree] = Counter(code for file in told for code in _FIXED.findall(file.read_text(encoding="utf-8")))
    kept = Counter(what for row in rows for what in {_of(label) for label in _kept(work, row)})
    codes = sorted({code for counted in (*edits.values(), kept) for code in counted})
    cells = [[code, *(edits[tree][code] for tree in TREES), kept[code]] for code in codes]
    return table(["rule, or setting", "safe, places", "--unsafe, places", "settings chosen, classes"], cells)


def _kept(work: Path, row: Row) -> dict[str, str]:
    """What ``prove`` has kept for a class, and why."""
    file = work / "choices" / f"{row.name}.json"
    if "chosen" in row.wrong or not file.is_file():
        return {}
    told = json.loads(file.read_text(encoding="utf-8"))
    return {label: one["reason"] for one in told["tried"] if _is_kept(one) for label in one["fixes"]}


def _of(label: str) -> str:
    """The rule, or the setting: of ``FC204 in Net.forward``, ``FC710 allow_rnn = True``."""
    code, _, rest = label.partition(" ")
    return f"`{rest}`" if code == "FC710" else code


def choices(rows: Sequence[Row], work: Path) -> str:
    """What ``prove`` has kept."""
    cells = [
        [row.name, label if _of(label)[0] == "F" else _of(label), reason.removeprefix("without it and with it: ")]
        for row in rows
        for label, reason in _kept(work, row).items()
    ]
    return table(["class", "kept", "without it and with it"], cells)


def further(work: Path, names: Iterable[str]) -> str:
    """What each of `FURTHER` does on top of what was chosen."""
    told = {name: one for name, one in answers(work, "further").items() if name in names and runs(one)}
    cells: list[list[object]] = []
    for number, setting in enumerate(FURTHER):
        pairs = {n: (one["counted"], one["further"][number]["counted"]) for n, one in told.items()}
        ran = {n: pair for n, pair in pairs.items() if not pair[1]["error"]}
        cell: list[object] = [f"`{setting.told}`", len(ran)]
        for what in ("extra graphs", "breaks", "recompiles"):
            before, after = (sum(COUNTS[what]({"counted": pair[side]}) for pair in ran.values()) for side in (0, 1))
            cell.append(f"{before} -> {after}")
        less = [n for n, pair in ran.items() if _breaks(pair[1]) < _breaks(pair[0])]
        other = [n for n, pair in ran.items() if any(map(_much, pair[1]["outputs"]))]
        failed = [n for n in pairs if n not in ran]
        cells.append([*cell, ", ".join(less), ", ".join(other), ", ".join(failed)])
    head = ["on top of what was chosen", "classes", "extra graphs", "breaks", "recompiles", "fewer breaks in"]
    return table([*head, "other outputs in", "fails in"], cells)


def _breaks(counted: Json) -> int:
    return COUNTS["breaks"]({"counted": counted})


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
        as_it_is = [Row(name, {"plain": told[name]}, {}, {}) for name in broken]
        put(into, f"wild-zoo-{half}-as-it-is", causes(as_it_is, ("plain",)))
        if half == "work" and checked is not None:
            put(into, f"wild-zoo-{half}-lines", lines(told, broken, checked))
        if any(name in broken for name in answers(work, "further")):
            put(into, f"wild-zoo-{half}-further", further(work, broken))
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
        put(into, f"wild-zoo-{half}-choices", choices(rows, work))
        put(into, f"wild-zoo-{half}-rest", rest(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["count", "patch", "choose", "again", "further", "report"])
    parser.add_argument("--python", default=sys.executable, metavar="PY", help="of the environment with the packages")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--half", choices=tuple(HALVES))
    parser.add_argument("--only", metavar="NAMES", help="beginnings of classes, with commas")
    parser.add_argument(
        "--checked", type=Path, metavar="FOLDER", help="report: of ``forecast.py check``, for the half work"
    )
    parser.add_argument("--search", type=int, metavar="S", help="choose: try nothing new after S seconds with a class")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="classes at a time")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the tables there (default: print them)")
    given = parser.parse_args()
    bench = Bench(given.python, given.work.resolve(), given.jobs, given.search)
    half = HALVES[given.half] if given.half else tuple(CLASSES)
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
    if given.what in ("choose", "further"):
        with ThreadPoolExecutor(given.jobs) as threads:
            list(threads.map(bench.choose if given.what == "choose" else bench.further, names))
        return
    bench.run("plain", names)
    for run in RUNS[1:]:
        for name in names:
            bench.reuse(run, name)
        bench.run(run, names)


if __name__ == "__main__":
    main()
