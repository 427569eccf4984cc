"""What settings of PyTorch and fixes earn together on models of installed packages that nobody tuned the tool for.

    python benchmarks/settings.py census --python PY --work FOLDER [--jobs N] [--only NAMES]
    python benchmarks/settings.py fixes  --python PY --work FOLDER [--jobs N] [--only NAMES]
    python benchmarks/settings.py prove  --python PY --work FOLDER [--jobs N] [--only NAMES]
    python benchmarks/settings.py report --work FOLDER [--into docs/results/settings.md]
    python benchmarks/settings.py cases  --work FOLDER

The classes are those of ``zoo.py`` beside this file, with ``--zoo transformers`` those of ``zoo_transformers.py``; PY
is the Python of an environment that holds the packages of ``zoo.txt``. ``census`` (``census.py``) runs each class as it
is, and with three settings that help most often, alone. ``fixes`` measures the safe fixes
(``fix-compile --test``); ``prove`` runs ``fix-compile prove
--unsafe``. Each answer is kept in FOLDER and not asked for again; ``--fresh`` does. ``cases`` only writes the
case files. NAMES: beginnings of classes, with commas; they are run in this order. ``report`` leaves the rows of classes
that have no answer in FOLDER as the document has them; its sums are those of all rows.

The backend is ``eager``. Graphs of the first call less one are extra graphs; breaks and recompiles are those of all
passes over the three calls, in the census those of one pass.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import zoo
import zoo_fourth
import zoo_third
import zoo_transformers
import zoo_wild2
from tables import put, rows_of, table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ZOOS = {
    "wild": zoo.CLASSES,
    "transformers": zoo_transformers.CLASSES,
    "wild2": zoo_wild2.CLASSES,
    "third": zoo_third.CLASSES,
    "fourth": zoo_fourth.CLASSES,
}
CLASSES = {name: one for each in ZOOS.values() for name, one in each.items()}
#: In training mode something else happens in them, and there is nothing to train.
UNTRAINED = frozenset({"torch_audiomentations.Compose"})
Json = dict[str, Any]
SECONDS, MEMORY = 400.0, 8 * 2**30  # the limits of a process


# ---------------------------------------------------------------------------------------------------------------------
# Asking: one class, one question.


@dataclass(frozen=True)
class Bench:
    """Where it is measured."""

    python: str
    work: Path

    def case(self, name: str) -> Path:
        """The case file of a class."""
        folder = self.work / "cases"
        folder.mkdir(parents=True, exist_ok=True)
        homes = {
            "zoo": zoo.CLASSES,
            "zoo_wild2": zoo_wild2.CLASSES,
            "zoo_third": zoo_third.CLASSES,
            "zoo_fourth": zoo_fourth.CLASSES,
            "zoo_transformers": zoo_transformers.CLASSES,
        }
        module = next(home for home, classes in homes.items() if name in classes)
        lines = ["import sys", f"sys.path.append({str(HERE)!r})", f"import {module}"]
        lines.append(f"build, calls = {module}.case({name!r})")
        if CLASSES[name].train and name not in UNTRAINED:
            lines.append("train = True")
        file = folder / f"{name}.py"
        text = "\n".join(lines) + "\n"
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
        return file

    def count(self, names: Sequence[str], jobs: int, fresh: bool) -> None:
        """What classes cost as they are, and with settings alone."""
        folder = self.work / "census"
        folder.mkdir(parents=True, exist_ok=True)
        todo = [name for name in names if fresh or not (folder / f"{name}.json").is_file()]

        def part(number: int) -> None:
            mine = todo[number::jobs]
            if mine:
                subprocess.run([self.python, "-W", "ignore", str(HERE / "census.py"), str(folder), *mine], check=True)

        with ThreadPoolExecutor(jobs) as threads:
            list(threads.map(part, range(jobs)))

    def tool(self, name: str, *words: str) -> Json:
        """What ``fix-compile`` says of a class, in JSON; ``failed`` when it says nothing."""
        packages = [word for package in CLASSES[name].packages for word in ("--package", package)]
        command = [sys.executable, str(ROOT / "fix_compile.py"), *words, "--case", str(self.case(name)), *packages]
        report = self.work / f"{name}.report.json"
        searches = words[0] == "prove"
        command += ["--python", self.python, "--backend", "eager", "--quick", "-q"]
        command += ["-o", str(report)] if searches else ["--format", "json"]
        command += ["--time-limit", f"{SECONDS:g}", "--memory-limit", f"{MEMORY / 2**30:g}"]
        start = time.monotonic()
        done = subprocess.run(
            command,
            cwd=self.work,
            env={**os.environ, "PYTHONPATH": search_path(), "PYTHONHASHSEED": "0", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            told: Json = json.loads(report.read_text(encoding="utf-8") if searches else done.stdout)
        except (OSError, ValueError):
            told = {"failed": f"status {done.returncode}: {done.stderr.strip()[-600:]}"}
        took = round(time.monotonic() - start, 1)
        return {"status": done.returncode, "took": took, "state": state(), **told}


def search_path() -> str:
    """The tool's, and after it what the caller has there: packages that are carried to another machine."""
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))


def state() -> str:
    """The commit of the tool that is asked; "" outside of a repository."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


QUESTIONS: dict[str, Callable[[Bench, str], Json]] = {
    "safe": lambda bench, name: bench.tool(name, "--test", "--dry-run"),
    "unsafe": lambda bench, name: bench.tool(name, "--test", "--unsafe", "--dry-run"),
    "prove": lambda bench, name: bench.tool(name, "prove", "--unsafe", "--dry-run"),
}
PARTS = {"fixes": ("safe",), "unsafe": ("unsafe",), "prove": ("prove",)}


def answers(work: Path, question: str) -> dict[str, Json]:
    """What has been answered so far, by class."""
    files = (work / question / f"{name}.json" for name in CLASSES)
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()}


def ask(bench: Bench, questions: Sequence[str], names: Sequence[str], jobs: int, fresh: bool) -> None:
    """Ask what is not answered yet, ``jobs`` classes at a time."""

    def one(name: str) -> None:
        for question in questions:
            file = bench.work / question / f"{name}.json"
            if file.is_file() and not fresh:
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            start = time.monotonic()
            try:
                told = QUESTIONS[question](bench, name)
            except Exception as error:  # one class must not end the others
                told = {"failed": f"{type(error).__name__}: {error}"}
            file.write_text(json.dumps(told, indent=1), encoding="utf-8")
            print(f"{time.monotonic() - start:6.1f} s  {question:6s} {name:45s} {short(told)}", flush=True)

    with ThreadPoolExecutor(jobs) as threads:
        list(threads.map(one, names))


# ---------------------------------------------------------------------------------------------------------------------
# Reading: what an answer says.


@dataclass(frozen=True)
class Count:
    """What a compiled variant costs. ``extra``: graphs of the first call less one."""

    extra: int
    breaks: int
    recompiles: int
    limits: int
    error: str = ""

    @property
    def shown(self) -> str:
        return f"{self.extra} extra, {self.breaks} breaks, {self.recompiles} recompiles"


def results(told: Json) -> Json | None:
    """The harness's document in an answer."""
    if "proof" in told:
        told = (told["proof"] or {}).get("measured") or told.get("measured") or {}
    found: Json | None = told.get("results", told if "cases" in told else None)
    return found


def release(told: Json) -> str:
    """Of PyTorch, on which it was measured."""
    return str(((results(told) or {}).get("environment") or {}).get("torch", "")).partition("+")[0]


def variant(told: Json, tree: str, kind: str = "compiled") -> Json | None:
    document = results(told)
    case = (document or {}).get("cases") or [None]
    every = case[0]["variants"] if case[0] else []
    return next((v for v in every if (v["tree"], v["kind"]) == (tree, kind)), None)


def count(told: Json, tree: str = "original") -> Count:
    """What ``tree`` costs compiled; the error when it does not run."""
    found = variant(told, tree)
    if found is None:
        eager = variant(told, tree, "eager") or variant(told, "original", "eager")
        why = told.get("failed") or (eager or {}).get("message") or "nothing was measured"
        return Count(0, 0, 0, 0, f"not measured: {why}")
    if found["status"] != "ok":
        return Count(0, 0, 0, 0, f"{found['status']}: {found['message']}")
    counts = found["counts"]
    extra = max(found["calls"][0]["graphs"] - 1, 0)
    return Count(extra, counts["breaks"], counts["recompiles"], counts["limit_hits"])


def same(told: Json, tree: str = "original") -> str:
    """Whether compiled outputs are those of original eager: "exact", "close" or what differs."""
    document = results(told)
    case = (document or {}).get("cases") or [{}]
    for found in case[0].get("comparisons", []):
        if (found["tree"], found["kind"]) == (tree, "compiled"):
            if found["differences"]:
                return f"{len(found['differences'])} differ: {found['differences'][0]}"
            return "exact" if found["bitwise"] else f"{found['relative']}"
    return case[0].get("compare_error") or "not compared"


def places(told: Json, tree: str = "original") -> dict[str, str]:
    """Where it breaks, and PyTorch's words."""
    found = variant(told, tree)
    return {b["where"]: b["reason"] for b in found.get("breaks", [])} if found else {}


def in_package(place: str, packages: Iterable[str]) -> bool:
    path = place.partition("site-packages/")[2] or place
    return any(path.startswith(f"{package.partition('.')[0]}/") for package in packages)


def breaking(name: str, told: Json) -> bool:
    """Whether the first call of the original has an extra graph, or a break at a line of the package."""
    found = variant(told, "original")
    if not found or found["status"] != "ok":
        return False
    return _breaks(name, found["calls"][0], places(told))


def _breaks(name: str, first: Json, where: Iterable[str]) -> bool:
    """What `breaking` asks of a first call, whose run broke at the places ``where``."""
    own = any(in_package(place, CLASSES[name].packages) for place in where)
    return first["graphs"] > 1 or (first["breaks"] > 0 and own)


def short(told: Json) -> str:
    rows = [(tree, count(told, tree)) for tree in ("original", "patched") if variant(told, tree)]
    if not rows:
        return count(told).error[:200]
    return "; ".join(f"{tree}: {c.error[:160] or f'{c.shown}, {same(told, tree)}'}" for tree, c in rows)


# ---------------------------------------------------------------------------------------------------------------------


def cell(told: Json) -> str:
    """What a census has counted: in the first call graphs less one, in all calls breaks and recompiles."""
    if told.get("error"):
        return "crash: " + ":".join(told["error"].split(":")[:2])
    calls = told["calls"]
    extra = max(calls[0]["graphs"] - 1, 0)
    return f"{extra} / {sum(c['breaks'] for c in calls)} / {sum(c['recompiles'] for c in calls)}"


def census(counted: dict[str, Json]) -> str:
    """Each class as it is, and with the three settings alone."""
    rows: list[list[object]] = []
    for name, told in counted.items():
        if "plain" not in told:
            rows.append([name, "does not run", told["error"][:140], "", ""])
            continue
        plain, other = told["plain"], told["set"]
        kind = "does not compile" if plain["error"] else "breaking" if breaks_in(name, plain) else "clean"
        words = [o for o in other["outputs"] if isinstance(o, str)]
        worst = max((o for o in other["outputs"] if not isinstance(o, str)), default=0.0)
        outputs = words[0] if words else f"{worst:.0e}" if worst else "exact"
        rows.append([name, kind, cell(plain), cell(other), "" if other["error"] else outputs])
    rows.sort(key=lambda row: (row[1] != "breaking", row[1], row[0]))
    return table(["class", "", "as it is", "with the three settings", "outputs"], rows)


def census_sums(counted: dict[str, Json]) -> str:
    """All breaking classes of the census together; one that crashes with the settings counts as it was."""
    ran = [name for name, told in counted.items() if "plain" in told and not told["plain"]["error"]]
    names = [name for name in ran if breaks_in(name, counted[name]["plain"])]
    crashed = [name for name in names if counted[name]["set"]["error"]]

    def total(run: str, what: Callable[[Json], int]) -> int:
        return sum(what(counted[name]["plain" if name in crashed else run]) for name in names)

    packages = {CLASSES[name].packages[0].partition(".")[0] for name in names}
    rows: list[list[object]] = [["classes that break", f"{len(names)} of {len(packages)} packages", ""]]
    counts: dict[str, Callable[[Json], int]] = {
        "extra graphs": lambda run: max(run["calls"][0]["graphs"] - 1, 0),
        "breaks": lambda run: sum(call["breaks"] for call in run["calls"]),
        "recompiles": lambda run: sum(call["recompiles"] for call in run["calls"]),
        "frames given up": lambda run: sum(call["dropped_frames"] for call in run["calls"]),
        "operators in graphs": lambda run: sum(call["operators"] for call in run["calls"]),
    }
    for title, what in counts.items():
        old, new = total("plain", what), total("set", what)
        rows.append([title, old, f"{new} ({share(old, new)})"])
    whole = [n for n in names if n not in crashed and not counts["breaks"](counted[n]["set"])]
    wrong = [n for n in ran if any(isinstance(o, str) for o in counted[n]["set"]["outputs"])]
    rows.append(["classes without a break", 0, len(whole)])
    rows.append(["classes that crash", "", ", ".join(n for n in ran if counted[n]["set"]["error"]) or 0])
    rows.append(["classes with other outputs", "", ", ".join(n for n in wrong if n not in crashed) or 0])
    rows.append(["clean classes", len(ran) - len(names), ""])
    return table(["", "as it is", "with the three settings"], rows)


def breaks_in(name: str, run: Json) -> bool:
    """Whether the first call of a run has an extra graph, or a break at a line of the package."""
    return _breaks(name, run["calls"][0], (b["where"] for b in run["breaks"]))


def before(told: Json) -> Count:
    return count(told, "original")


def after(told: Json) -> Count:
    """Of what ``prove`` has kept; where nothing is kept that is the original."""
    return count(told, "patched") if kept(told) and variant(told, "patched") else before(told)


def tried(told: Json, *outcomes: str) -> list[Json]:
    every = ((told.get("proof") or {}).get("tried")) or []
    return [entry for entry in every if entry["outcome"] in outcomes]


def kept(told: Json) -> list[Json]:
    return tried(told, "kept")


def is_setting(entry: Json) -> bool:
    return any(fix.startswith("FC710") for fix in entry["fixes"])


def named(entry: Json) -> str:
    """A setting by what it sets, a fix by its rule and place."""
    names = dict.fromkeys(fix.removeprefix("FC710 ").removesuffix(" = True") for fix in entry["fixes"])
    return ", ".join(f"`{name}`" for name in names) if is_setting(entry) else ", ".join(names)


def verdict(told: Json) -> str:
    """What became of the outputs."""
    if after(told).error:
        return f"crash: {after(told).error[:120]}"
    if not kept(told):
        return "nothing was kept"
    return same(told, "patched")


def share(old: int, new: int) -> str:
    return f"{100 * (new - old) / old:+.0f} %" if old else "n/a"


def groups(proofs: dict[str, Json]) -> tuple[list[str], list[str]]:
    """The classes that break and those that do not; what was not measured is in neither."""
    ran = [name for name, told in proofs.items() if not before(told).error]
    return [n for n in ran if breaking(n, proofs[n])], [n for n in ran if not breaking(n, proofs[n])]


Rows = list[list[Any]]  # of a table; the first cell is the class

CLASS_HEAD = ["class", "for", "extra graphs", "breaks", "recompiles", "settings kept", "fixes kept", "outputs"]
HEADS: dict[str, list[str]] = {
    "classes": [*CLASS_HEAD, "torch", "state"],
    "earned": ["class", "kept", "what it earned"],
    "taken-back": ["class", "tried", "outcome", "why"],
    "remaining": ["class", "place", "PyTorch's words"],
    "clean": ["class", "original", "with what was kept", "kept", "outputs"],
    "safe": ["class", "extra graphs", "breaks", "recompiles", "outputs", "torch", "state"],
}


def each(proofs: dict[str, Json]) -> Rows:
    """One row for each class that breaks."""
    rows: Rows = []
    for name in groups(proofs)[0]:
        told = proofs[name]
        old, new = before(told), after(told)
        counts = [f"{getattr(old, f)} -> {getattr(new, f)}" for f in ("extra", "breaks", "recompiles")]
        settings = ", ".join(named(entry) for entry in kept(told) if is_setting(entry))
        fixes = ", ".join(named(entry) for entry in kept(told) if not is_setting(entry))
        of = told.get("state", "")
        rows.append([name, CLASSES[name].family, *counts, settings, fixes, verdict(told), release(told), of])
    return rows


def earned(proofs: dict[str, Json]) -> Rows:
    return [[name, named(entry), entry["reason"]] for name in groups(proofs)[0] for entry in kept(proofs[name])]


def taken_back(proofs: dict[str, Json]) -> Rows:
    outcomes = ("different", "failed", "not better", "not written")
    return [
        [name, named(entry), entry["outcome"], re.sub(r"\S*/site-packages/", "", str(entry["reason"]))[:200]]
        for name in (*groups(proofs)[0], *groups(proofs)[1])
        for entry in tried(proofs[name], *outcomes)
    ]


def remaining(proofs: dict[str, Json]) -> Rows:
    """What still breaks with all that was kept."""
    rows: Rows = []
    for name in groups(proofs)[0]:
        told = proofs[name]
        left = places(told, "patched" if kept(told) and variant(told, "patched") else "original")
        for place, reason in left.items():
            rows.append([name, f"`{place.rpartition('site-packages/')[2]}`", reason[:120]])
    return rows


def clean(proofs: dict[str, Json]) -> Rows:
    rows: Rows = []
    for name in groups(proofs)[1]:
        told = proofs[name]
        rows.append([name, before(told).shown, after(told).shown, ", ".join(map(named, kept(told))), verdict(told)])
    return rows


def with_safe(safe: dict[str, Json]) -> Rows:
    """What safe fixes do by themselves, without a setting and without a search."""
    rows: Rows = []
    for name in groups(safe)[0]:
        told, made = safe[name], variant(safe[name], "patched") is not None
        old = before(told)
        new = count(told, "patched") if made else old
        counts = [f"{getattr(old, f)} -> {getattr(new, f)}" for f in ("extra", "breaks", "recompiles")]
        rows.append([name, *counts, same(told, "patched") if made else "nothing to fix", release(told), told["state"]])
    return rows


def pair(cell: str) -> tuple[int, int]:
    """The figures of ``before -> after``."""
    old, _, new = cell.partition(" -> ")
    return int(old), int(new)


_GIVEN_UP = re.compile(r"operators in graphs (\d+) -> (\d+), the others run eagerly")


def left_out(earned: Rows) -> Rows:
    """What FC207 has left out of graphs, work and all."""
    found = [(row[0], told) for row in earned if (told := _GIVEN_UP.search(row[2]))]
    names, lost = {name for name, _ in found}, sum(int(told[1]) - int(told[2]) for _, told in found)
    return [[f"operators of a pass that FC207 takes out of graphs, in {len(names)} classes", "", lost]] if found else []


def sums(rows: Rows, clean: Rows, failed: Sequence[str], safe: Rows, earned: Rows, of: int) -> str:
    """All breaking classes together, of their rows; ``of``: how many classes the zoo has."""
    names = [str(row[0]) for row in rows]
    counts = {row[0]: [pair(cell) for cell in row[2:5]] for row in rows}
    packages = {CLASSES[name].packages[0].partition(".")[0] for name in names}
    told: Rows = [
        ["classes measured", f"{len(rows) + len(clean) + len(failed)} of {of}", ""],
        ["that break", f"{len(names)}, in {len(packages)} packages", ""],
    ]
    for number, title in enumerate(("extra graphs", "breaks", "recompiles")):
        old, new = (sum(counts[name][number][which] for name in names) for which in (0, 1))
        told.append([title, old, f"{new} ({share(old, new)})"])
        if safe:
            old, new = (sum(pair(row[1 + number])[which] for row in safe) for which in (0, 1))
            told.append([f"safe fixes alone, of {len(safe)} classes: {title}", old, f"{new} ({share(old, new)})"])
    told += left_out(earned)
    told.append(["classes without a break", 0, sum(not counts[name][1][1] for name in names)])
    told.append(["classes that crash", "", sum(row[7].startswith("crash") for row in rows)])
    outputs = [row[7] for row in rows if row[7] != "nothing was kept"]
    exact = f"{outputs.count('exact')} of {len(outputs)}"
    told.append(["outputs equal bit for bit, of those with something kept", "", exact])
    told.append(["clean classes", len(clean), f"{sum(bool(row[3]) for row in clean)} changed"])
    told.append(["classes that do not run as they are", ", ".join(failed) or 0, ""])
    return table(["", "original", "prove --unsafe"], told)


def report(into: Path | None, which: str, proofs: dict[str, Json], safe: dict[str, Json]) -> None:
    """The tables of a zoo. What the document says of classes that have no answer here stays."""
    prefix, order = ("" if which == "wild" else f"{which}-"), list(ZOOS[which])
    if not (proofs or safe):
        return

    def joined(title: str, rows: Rows, asked: dict[str, Json] = proofs) -> Rows:
        held = [row for row in rows_of(into, prefix + title) if row[0] not in asked and row[0] in order]
        every = sorted([*held, *rows], key=lambda row: order.index(row[0]))
        put(into, prefix + title, table(HEADS[title], every))
        return every

    stood = [row[1] for row in rows_of(into, f"{prefix}sums") if row[0].startswith("classes that do not run")]
    failed = [name for name in ", ".join(stood).split(", ") if name in order and name not in proofs]
    failed += [name for name, told in proofs.items() if before(told).error]
    breaking = joined("classes", each(proofs))
    still = joined("clean", clean(proofs)) if which == "wild" else clean(proofs)
    gained = joined("earned", earned(proofs))
    for title, made in (("taken-back", taken_back), ("remaining", remaining)):
        joined(title, made(proofs))
    alone = joined("safe", with_safe(safe), safe) if safe or rows_of(into, f"{prefix}safe") else []
    put(into, f"{prefix}sums", sums(breaking, still, failed, alone, gained, len(order)))


def chosen(names: str | None, which: str) -> list[str]:
    wanted = names.split(",") if names else [""]
    return list(dict.fromkeys(name for word in wanted for name in ZOOS[which] if name.startswith(word)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["census", *PARTS, "cases", "report"])
    parser.add_argument("--python", default=sys.executable, metavar="PY", help="of the environment with the packages")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="classes at a time")
    parser.add_argument("--only", metavar="NAMES")
    parser.add_argument("--zoo", choices=tuple(ZOOS), default="wild")
    parser.add_argument("--fresh", action="store_true", help="ask again")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the tables there (default: print them)")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(given.python, given.work.resolve())
    names = chosen(given.only, given.zoo)
    if given.what == "cases":
        print("\n".join(str(bench.case(name)) for name in names))
    elif given.what == "report":
        for which, classes in ZOOS.items():
            asked = (answers(bench.work, question) for question in ("prove", "safe"))
            proofs, safe = ({name: told for name, told in every.items() if name in classes} for every in asked)
            report(given.into, which, proofs, safe)
        counted = {name: told for name, told in answers(bench.work, "census").items() if name in zoo.CLASSES}
        if counted:
            put(given.into, "settings-alone", census_sums(counted))
            put(given.into, "census", census(counted))
    elif given.what == "census":
        bench.count(names, given.jobs, given.fresh)
    else:
        ask(bench, PARTS[given.what], names, given.jobs, given.fresh)


if __name__ == "__main__":
    main()
