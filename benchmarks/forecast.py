"""What ``check`` says breaks, against where Dynamo breaks: docs/results/forecast.md.

    python benchmarks/forecast.py run    --python PY --work FOLDER [--zoo ZOO] [--only NAMES]
    python benchmarks/forecast.py check  --work FOLDER
    python benchmarks/forecast.py report --work FOLDER [--into docs/results/forecast.md]

``run`` calls each class three times, compiled with the backend ``eager`` (``forecast_run.py``), and keeps where it
broke and which lines Dynamo has traced. ``check`` has ``fix-compile check`` read all files of installed packages that
these classes import, package by package, and knows nothing of the runs. ``report`` joins the two, by file and
statement: a place is a simple statement, or the head of an ``if``, loop, ``with`` or ``def``. With ``--counted``,
``run`` takes what ``wild_zoo.py count`` has kept, which tells of recall alone.

recall:     places that broke and have a finding, of the places that broke (in files that ``check`` has read).
precision:  places with a finding that broke, of the places with a finding that Dynamo has traced.

Findings of rules that are about graph breaks count. Those about a region (a loop, a cluster of breaks, a function to be
left out) do not: they stand at the head of what holds the breaks. Several breaks or findings in one place are one.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import zoo
import zoo_fourth
import zoo_third
import zoo_transformers
import zoo_unseen
import zoo_wild2
from tables import put, table

from rules import load_rules

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
Json = dict[str, Any]
Place = tuple[str, int]  # a file, by its whole path, and the first line of a statement
ZOOS: dict[str, Iterable[str]] = {
    "wild": zoo.CLASSES,
    "unseen": [name for name in zoo_unseen.CLASSES if name not in zoo_unseen.BLIND],
    "blind": [name for name in zoo_unseen.CLASSES if name in zoo_unseen.BLIND],
    "transformers": zoo_transformers.CLASSES,
    "work": [name for name in zoo_wild2.SHUFFLED if name in zoo_wild2.WORK],
    "held": [name for name in zoo_wild2.SHUFFLED if name in zoo_wild2.HELD],
    "third": zoo_third.CLASSES,
    "fourth": zoo_fourth.CLASSES,
}
#: Rules whose findings stand at the head of what breaks somewhere inside.
REGIONS = frozenset({"FC204", "FC207", "FC404"})
_HEADS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)


# ---------------------------------------------------------------------------------------------------------------------
# Measuring.


def run(python: str, work: Path, names: Sequence[str]) -> None:
    folder = work / "run"
    folder.mkdir(parents=True, exist_ok=True)
    todo = [name for name in names if not (folder / f"{name}.json").is_file()]
    if todo:
        subprocess.run([python, "-W", "ignore", str(HERE / "forecast_run.py"), str(folder), *todo], check=True)


def take(counted: Path, root: str, work: Path, names: Sequence[str]) -> None:
    """Runs from what ``wild_zoo.py count`` has kept: they tell where it broke, not which lines were traced."""
    (work / "run").mkdir(parents=True, exist_ok=True)
    for name in names:
        told: Json = json.loads((counted / f"{name}.json").read_text(encoding="utf-8"))
        if "counted" in told:
            seen = dict.fromkeys(told["files"], ())
            kept = {"root": root, "imported": told["files"], "traced": seen, "failed": told["counted"]["error"]}
            text = json.dumps({**kept, "breaks": told["counted"]["breaks"]}, indent=1)
            (work / "run" / f"{name}.json").write_text(text, encoding="utf-8")


def runs(work: Path) -> dict[str, Json]:
    """What has been run so far, by class."""
    found = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted((work / "run").glob("*.json"))}
    return {name: told for name, told in found.items() if "breaks" in told}


def check(work: Path, only: tuple[str, ...]) -> None:
    """What the tool says of the packages, each read as a whole as far as the classes import it."""
    files: dict[tuple[str, str], set[str]] = {}
    compiled: dict[str, list[str]] = {}
    for name, told in runs(work).items():
        for what in (
            *zoo_unseen.COMPILED.get(name, "").split(),
            *(zoo_wild2.COMPILED | zoo_third.COMPILED | zoo_fourth.COMPILED).get(name, ()),
        ):
            compiled.setdefault(what.partition(":")[0].partition(".")[0], []).append(what)
        for file in told["imported"]:
            if any(file.partition("/")[0] == other.partition("/")[0] for other in told["traced"]):
                files.setdefault((told["root"], file.partition("/")[0]), set()).update([file])
    (work / "check").mkdir(exist_ok=True)
    for (root, package), names in sorted(files.items()):
        if not package.startswith(only):
            continue
        command = [sys.executable, str(ROOT / "fix_compile.py"), "check", "--all", "--format", "json", "-q", "-j", "1"]
        command += [f"--compiled={what}" for what in compiled.get(package, ())]
        done = subprocess.run(
            [*command, *(root + name for name in sorted(names))],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 1):
            print(f"{package}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        told: Json = json.loads(done.stdout) if done.stdout.startswith("{") else {"files": [], "failed": done.stderr}
        told["root"], told["read"] = root, sorted(names)
        (work / "check" / f"{package}-{zlib.crc32(root.encode()):08x}.json").write_text(
            json.dumps(told, indent=1), encoding="utf-8"
        )
        print(f"{package}: {len(names)} files, {sum(len(f['findings']) for f in told['files'])} findings", flush=True)


# ---------------------------------------------------------------------------------------------------------------------
# Places.


@cache
def statements(path: str) -> dict[int, int]:
    """Line -> first line of the simple statement, or of the head, that it is in."""
    found: dict[int, int] = {}
    for node in ast.walk(ast.parse(Path(path).read_bytes())):
        if isinstance(node, (*_HEADS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Match)):
            inner = node.cases[0].pattern if isinstance(node, ast.Match) else node.body[0]
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            below = min([inner.lineno, *(d.lineno for d in getattr(inner, "decorator_list", ()))])
            last = max(node.lineno, below - 1)
        elif isinstance(node, ast.stmt):
            first, last = node.lineno, node.end_lineno or node.lineno
        else:
            continue
        for line in range(first, last + 1):
            found.setdefault(line, first)
    return found


def place(path: str, line: int) -> Place:
    return path, statements(path).get(line, line)


@dataclass(frozen=True)
class Said:
    """What a rule says of a place."""

    code: str
    message: str


def findings(work: Path, without: frozenset[str]) -> tuple[dict[Place, list[Said]], frozenset[str]]:
    """What is said of each place, and the files that were read."""
    breaking = {rule.code for rule in load_rules() if "graph break" in rule.costs} - REGIONS - without
    said: dict[Place, list[Said]] = {}
    read: set[str] = set()
    for path in sorted((work / "check").glob("*.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        read |= {told["root"] + name for name in told["read"]}
        for file in told["files"]:
            path_of = str(Path(told["root"], file["path"]).resolve())
            for item in file["findings"]:
                if item["code"] in breaking:
                    text = f"{item['message']}; {item['assumption']}" if item["assumption"] else item["message"]
                    said.setdefault(place(path_of, item["line"]), []).append(Said(item["code"], text))
    return said, frozenset(read)


# ---------------------------------------------------------------------------------------------------------------------
# The join.


@dataclass(frozen=True)
class Joined:
    """One or several classes. ``broke``: the places that did, with PyTorch's words; ``traced``: those Dynamo saw."""

    broke: dict[Place, str]
    traced: frozenset[Place]
    said: dict[Place, list[Said]]

    @property
    def found(self) -> list[Place]:
        return [p for p in self.broke if p in self.said]

    @property
    def missed(self) -> list[Place]:
        return [p for p in self.broke if p not in self.said]

    @property
    def seen(self) -> list[Place]:
        """The places with a finding that a run tells something of."""
        return [p for p in self.said if p in self.traced]

    @property
    def wrong(self) -> list[Place]:
        return [p for p in self.seen if p not in self.broke]

    def rows(self) -> list[object]:
        return [
            len(self.broke),
            len(self.found),
            share(len(self.found), len(self.broke)),
            len(self.seen),
            len(self.seen) - len(self.wrong),
            share(len(self.seen) - len(self.wrong), len(self.seen)),
        ]


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def joined(every: Iterable[Json], said: dict[Place, list[Said]], read: frozenset[str]) -> Joined:
    broke: dict[Place, str] = {}
    traced: set[Place] = set()
    for told in every:
        for one in (*told["breaks"], *told.get("beneath", ())):
            file, _, line = one["where"].rpartition(":")
            if told["root"] + file in read:
                broke.setdefault(place(told["root"] + file, int(line)), one["reason"])
        for file, lines in told["traced"].items():
            if told["root"] + file in read:
                traced.update(place(told["root"] + file, line) for line in lines)
    traced |= set(broke)
    return Joined(broke, frozenset(traced), {p: s for p, s in said.items() if p in traced})


# ---------------------------------------------------------------------------------------------------------------------


def shown(where: Place) -> str:
    return f"`{where[0].rpartition('site-packages/')[2]}:{where[1]}`"


def text_of(where: Place) -> str:
    lines = Path(where[0]).read_text(encoding="utf-8").splitlines()
    return lines[where[1] - 1].strip()[:90]


def report(work: Path, into: Path | None, without: frozenset[str]) -> None:
    every = runs(work)
    said, read = findings(work, without)
    rows: list[list[object]] = []
    listed = {name for names in ZOOS.values() for name in names}
    for title, names in (ZOOS | {"their own tests": [name for name in every if name not in listed]}).items():
        own = [told for name, told in every.items() if name in names]
        if own:
            one = joined(own, said, read)
            breaking = sum(bool(joined([told], said, read).broke) for told in own)
            rows.append([title, len(own), breaking, *one.rows()])
    head = ["classes", "run", "break", "places that broke", "found", "recall", "findings traced", "broke", "precision"]
    put(into, "forecast", table(head, rows))
    classes = []
    for name, told in every.items():
        one = joined([told], said, read)
        if one.broke or one.wrong:
            classes.append([name, *one.rows(), told["failed"][:80]])
    put(into, "classes", table(["class", *head[3:], "failed"], classes))
    everything = joined(every.values(), said, read)
    misses = [[shown(p), f"`{text_of(p)}`", everything.broke[p][:110]] for p in sorted(everything.missed)]
    put(into, "missed", table(["place that broke, without a finding", "code", "PyTorch's words"], misses))
    wrong = [
        [shown(p), f"`{text_of(p)}`", "; ".join(f"{s.code}: {s.message}" for s in said[p])[:160]]
        for p in sorted(everything.wrong)
    ]
    put(into, "wrong", table(["finding that was traced and did not break", "code", "finding"], wrong))
    counts = Counter(s.code for p in everything.seen for s in {s.code: s for s in said[p]}.values())
    bad = Counter(s.code for p in everything.wrong for s in {s.code: s for s in said[p]}.values())
    put(
        into,
        "rules",
        table(["rule", "places traced", "broke"], [[c, n, n - bad[c]] for c, n in sorted(counts.items())]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "check", "report"])
    parser.add_argument("--python", default=sys.executable, metavar="PY", help="of the environment with the packages")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--zoo", choices=tuple(ZOOS), default="wild")
    parser.add_argument("--only", metavar="NAMES", help="beginnings of classes, or of packages, with commas")
    parser.add_argument("--counted", type=Path, metavar="FOLDER", help="run: take what was counted there")
    parser.add_argument("--without", default="", metavar="CODES", help="report as if these rules were not there")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the tables there (default: print them)")
    given = parser.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    only = tuple(given.only.split(",")) if given.only else ("",)
    if given.what == "run" and given.counted:
        ask = [given.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        root = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() + "/"
        take(given.counted, root, work, [name for name in ZOOS[given.zoo] if name.startswith(only)])
    elif given.what == "run":
        run(given.python, work, [name for name in ZOOS[given.zoo] if name.startswith(only)])
    elif given.what == "check":
        check(work, only)
    else:
        report(work, given.into, frozenset(filter(None, given.without.split(","))))


if __name__ == "__main__":
    main()
