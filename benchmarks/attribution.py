"""What each rule removes by itself: docs/results/attribution.json, of which docs/generate.py makes a line for each.

    python benchmarks/attribution.py --original FOLDER --zoo ZOO.py --home BENCH_HOME --out FILE [--rules FC102,FC602]
        [--gm-original FOLDER --gm-python EXE] [--work FOLDER]

The files of the package in ``--original`` (it holds ``transformers/``) that the models import are patched, in a copy,
by one rule alone: with its safe fixes and, where that makes a difference, with ``--unsafe``. Of the zoo's classes
(../shared/zoo) those are measured that break in a file that the rule has changed, or in one of its folder: graphs and
breaks of the first call, recompiles of the next two, and whether outputs and gradients are still the original's. A
class that is wrong or fails counts as not improved, and is named. With ``--together``, a rule that removes nothing
alone is looked at from the other side: what comes back when all rules run but this one. ``--gm-original`` and
``--gm-python`` do the same with the rows of graphmend.py.

What is measured is kept in ``--work``, and not measured again as long as the rules make the same of the package.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "transformers"

Json = dict[str, Any]


@dataclass(frozen=True)
class Patched:
    """A patched copy: where it lies, which files are other than the original's (``transformers/...``), and how many
    fixes were not made because they are unsafe."""

    folder: Path
    changed: frozenset[str]
    digest: str
    unsafe: int


@dataclass(frozen=True)
class Effect:
    """One class or row: extra graphs, break events, places that break, recompiles; ``fault``: what is wrong."""

    name: str
    before: tuple[int, int, int, int]
    after: tuple[int, int, int, int]
    fault: str = ""


@dataclass(frozen=True)
class Zoo:
    """The zoo's classes, and what measures them."""

    script: Path
    home: Path
    original: Path
    references: Path

    def members(self) -> dict[str, frozenset[str]]:
        """The files that matter to each class."""
        breaking = [t for t in self._told() if t.get("ok") and t["events"]]
        return {t["cls"]: around(t["sites"], t["modules"], t["arch"]) for t in breaking}

    def files(self) -> frozenset[str]:
        """All that those import which break."""
        return frozenset(f for t in self._told() if t.get("ok") and t["events"] for f in t["modules"])

    def _told(self) -> list[Json]:
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(self.references.glob("[A-Z]*.json"))]

    def measure(self, names: Sequence[str], patched: Patched, scratch: Path) -> list[Effect]:
        home = scratch / "home"  # a home of its own: the zoo writes into it
        home.mkdir(parents=True, exist_ok=True)
        for part in self.home.iterdir():
            if part.name != "work" and not (home / part.name).exists():
                (home / part.name).symlink_to(part)
        out = scratch / "zoo.jsonl"
        command = [str(self.home / "v_main/bin/python"), "-W", "ignore", str(self.script), "--models", ",".join(names)]
        command += ["--patched", str(patched.folder), "--out", str(out)]
        environment = {**os.environ, "BENCH_HOME": str(home), "BENCH_CORE": "", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode or not out.is_file():
            sys.exit(f"zoo.py: {done.stderr.strip()[-800:]}")
        return [effect_on_class(json.loads(line)) for line in out.read_text(encoding="utf-8").splitlines()]


def around(breaks: Iterable[str], imported: Iterable[str], name: str = "") -> frozenset[str]:
    """Of the files that are imported: those with a break, those beside one, and those of the model that has the name.

    A model package is a folder; what lies at the top of the package stands for itself.
    """
    files = {where.rpartition(":")[0] for where in breaks}
    folders = {f.rpartition("/")[0] for f in files} | {f"{PACKAGE}/models/{name.replace('-', '_')}"}
    models = {folder for folder in folders if folder.startswith(f"{PACKAGE}/models/")}
    return frozenset(f for f in imported if f in files or f.rpartition("/")[0] in models)


def effect_on_class(line: Json) -> Effect:
    before, after = line["before"], line["after"]
    fault = "; ".join(line["notes"])[:200] or "not told" if line["crashed"] or line["wrong"] else ""
    figures = [
        (r["graphs"] - 1, r["events"], len(r["sites"]), sum(r["recompiles"]))
        for r in (before, *([after] * (not fault)))
    ]
    return Effect(line["cls"], figures[0], figures[-1], fault)


@dataclass(frozen=True)
class Rows:
    """The rows of graphmend.py."""

    python: str
    original: Path
    told: Path

    def _run(self, out: Path, *more: str) -> list[Json]:
        command = [
            self.python,
            str(ROOT / "benchmarks/graphmend.py"),
            "--original",
            str(self.original),
            "--out",
            str(out),
        ]
        done = subprocess.run([*command, *more], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"graphmend.py: {done.stderr.strip()[-800:]}")
        return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]

    def members(self) -> dict[str, frozenset[str]]:
        if not self.told.is_file():
            self._run(self.told)
        told = [json.loads(line) for line in self.told.read_text(encoding="utf-8").splitlines()]
        told = [t for t in told if "failure" not in t]
        breaks = {t["row"]: [site["where"] for site in t["sites"]] for t in told}
        return {t["row"]: around(breaks[t["row"]], t["modules"]) for t in told}

    def files(self) -> frozenset[str]:
        """All that the rows import."""
        self.members()
        told = [json.loads(line) for line in self.told.read_text(encoding="utf-8").splitlines()]
        return frozenset(f for t in told if "failure" not in t for f in t["modules"])

    def measure(self, names: Sequence[str], patched: Patched, scratch: Path) -> list[Effect]:
        effects = []
        lines = self._run(scratch / "gm.jsonl", "--patched", str(patched.folder), "--rows", ";".join(names))
        for old, new in zip(lines[::2], lines[1::2], strict=True):
            fault = new.get("failure") or next((str(d) for d in (*new["outputs"], *new["gradients"]) if d), "")
            figures = [
                (
                    r["first"]["graphs"] - 1,
                    r["first"]["breaks"],
                    len({s["where"] for s in r["sites"]}),
                    r["all"]["recompiles"],
                )
                for r in (old, *([new] * (not fault)))
            ]
            effects.append(Effect(old["row"], figures[0], figures[-1], fault))
        return effects


# ---------------------------------------------------------------------------------------------------------------------
# Patching.


def patch(suite: Zoo | Rows, target: Path, options: Sequence[str]) -> Patched:
    """Copy the package and run the tool on those files of the copy that the models import."""
    original = suite.original
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(original / PACKAGE, target / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, str(ROOT / "fix_compile.py"), "--no-backup", "-q", "--format", "json"]
    files = [str(target / f) for f in sorted(suite.files())]
    done = subprocess.run([*command, *options, *files], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(options)}: {(done.stderr or done.stdout).strip()[-800:]}")
    changed, made = [], hashlib.sha256()
    for path in sorted((target / PACKAGE).rglob("*.py")):
        name, data = path.relative_to(target), path.read_bytes()
        if data != (original / name).read_bytes():
            changed.append(name.as_posix())
            made.update(f"{name} {len(data)} ".encode() + data)
    unsafe = json.loads(done.stdout)["summary"]["unsafe"]
    return Patched(target, frozenset(changed), made.hexdigest()[:16], unsafe)


# ---------------------------------------------------------------------------------------------------------------------
# One rule.


def removed(effects: Sequence[Effect], files: int) -> Json:
    """The sums over classes or rows; ``more``: those that have more graphs or breaks than before."""
    better = [e for e in effects if e.after < e.before or any(a < b for a, b in zip(e.after, e.before, strict=True))]
    fewer = [e for e in better if e.after[:3] != e.before[:3] and e.after[0] <= e.before[0]]
    sums = [sum(e.before[k] - e.after[k] for e in effects) for k in range(4)]
    return {
        "files": files,
        "measured": len(effects),
        "models": len(fewer),
        **dict(zip(("graphs", "events", "sites", "recompiles"), sums, strict=True)),
        "names": [e.name for e in fewer],
        "more": [e.name for e in effects if e.after[0] > e.before[0]],
        "faults": {e.name: e.fault for e in effects if e.fault},
    }


def measured(suite: Zoo | Rows, patched: Patched, work: Path) -> Json:
    """What a patched copy does to the classes that import something changed; kept for the next time."""
    known = work / f"{type(suite).__name__}-{patched.digest}.json"
    if known.is_file():
        told: Json = json.loads(known.read_text(encoding="utf-8"))
        return told
    names = [name for name, files in suite.members().items() if files & patched.changed]
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        effects = suite.measure(names, patched, Path(scratch)) if names else []
    told = removed(effects, len(patched.changed))
    known.write_text(json.dumps(told), encoding="utf-8")
    return told


def attributed(code: str, suite: Zoo | Rows, work: Path) -> Json:
    """The rule alone, with safe fixes and with all."""
    safe = patch(suite, work / "tree", ["--select", code])
    told = {"safe": measured(suite, safe, work)}
    every = patch(suite, work / "tree", ["--select", code, "--unsafe"]) if safe.unsafe else safe
    told["unsafe"] = measured(suite, every, work) if every.digest != safe.digest else told["safe"]
    return told


def missed(codes: Sequence[str], suite: Zoo | Rows, work: Path) -> dict[str, Json]:
    """What comes back when all rules run but one, for each of those."""
    everything = measured(suite, patch(suite, work / "tree", ["--unsafe"]), work)
    told = {}
    for code in codes:
        less = measured(suite, patch(suite, work / "tree", ["--unsafe", "--ignore", code]), work)
        told[code] = {key: everything[key] - less[key] for key in ("graphs", "events", "sites", "recompiles")}
    return told


def write(out: Path, told: Json) -> None:
    out.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--original", type=Path, required=True)
    parser.add_argument("--zoo", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--references", type=Path, help="what the zoo keeps of the original (default: HOME/cache/hf2)")
    parser.add_argument("--gm-original", type=Path)
    parser.add_argument("--gm-python", default=sys.executable)
    parser.add_argument("--rules", default="")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/attribution.json")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "attribution")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from rules import load_rules

    codes = given.rules.split(",") if given.rules else sorted(rule.code for rule in load_rules())
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    references = given.references or given.home / "cache" / "hf2"
    suites: dict[str, Zoo | Rows] = {
        "zoo": Zoo(given.zoo.resolve(), given.home.resolve(), given.original.resolve(), references)
    }
    if given.gm_original:
        suites["graphmend"] = Rows(given.gm_python, given.gm_original.resolve(), work / "graphmend-original.jsonl")
    told: Json = json.loads(given.out.read_text(encoding="utf-8")) if given.out.is_file() else {}
    told["suites"] = {name: len(suite.members()) for name, suite in suites.items()}
    for code in codes:
        for name, suite in suites.items():
            told.setdefault("rules", {}).setdefault(code, {})[name] = attributed(code, suite, work)
            print(code, name, json.dumps(told["rules"][code][name])[:200], file=sys.stderr, flush=True)
            told["rules"] = dict(sorted(told["rules"].items()))
            write(given.out, told)
    for name, suite in suites.items() if given.together else ():
        alone = {code: told["rules"][code][name]["unsafe"] for code in codes}
        for code, less in missed(
            [c for c in codes if alone[c]["measured"] and not alone[c]["models"]], suite, work
        ).items():
            told["rules"][code][name]["together"] = less
            write(given.out, told)


if __name__ == "__main__":
    main()
