"""Measure again what README claims: the figures of docs/results/claims.json.

    python benchmarks/claims.py [--again] [--only "CLASS;CLASS"] [NAME ...]        # NAME: demo, graphmend, transformers

Each part ends within 20 minutes on two cores, and writes its claim with the current commit; `make docs` writes README.
A part first patches. When the patch is, byte for byte, the one that the recorded figures are of, and torch is the same,
nothing has to be measured: the claim keeps its figures and its commit. ``--again`` measures all the same. ``--only``
measures some classes of a part, prints them and writes nothing.

Packages are installed into .cache/claims, at the versions below; torch is that of the Python that runs this. Claims
``by_hand`` (of a GPU, say) are left as they are.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))
from docs.measured import CLAIMS, claims  # noqa: E402
from docs.since import git  # noqa: E402

CACHE = ROOT / ".cache" / "claims"
DEMO = ROOT / "benchmarks" / "demo"
TIMES = {"eager": "eager", "original": "before", "safe": "after"}
TOOL = [sys.executable, str(ROOT / "fix_compile.py")]
Json = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """Claims that are measured together. ``trees`` patches in a folder, ``measure`` returns the values of that."""

    what: str
    counted: str
    page: str
    trees: Callable[[Path], Patch]
    measure: Callable[[Path, str], Json]


@dataclass(frozen=True)
class Patch:
    """What the tool wrote. ``rules``: the codes of all its findings; a rule that refused may fix after a change."""

    digest: str
    rules: list[str]


def fixed(root: Path, paths: list[str], *options: str) -> tuple[str, set[str]]:
    """Patch files below ``root`` in place. Return the digest of all that changed, and the codes of the findings."""
    before = _digests(root, paths)
    command = [*TOOL, "fix", "--no-backup", "--no-cache", "--quiet", "--format", "json", *options, *paths]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"fix-compile failed: {done.stderr[-2000:]}")
    found = {finding["code"] for file in json.loads(done.stdout)["files"] for finding in file["findings"]}
    changed = sorted(_digests(root, paths).items() - before.items())
    return hashlib.sha256(json.dumps(changed).encode()).hexdigest(), found


def _digests(root: Path, paths: list[str]) -> dict[str, str]:
    files = [
        file for path in paths for file in ([root / path] if path.endswith(".py") else (root / path).rglob("*.py"))
    ]
    return {file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


# ---------------------------------------------------------------------------------------------------------------------
# The demo.


def demo_trees(folder: Path) -> Patch:
    shutil.copyfile(DEMO / "sampler.py", folder / "sampler.py")
    digest, rules = fixed(folder, ["sampler.py"])
    return Patch(digest, sorted(rules))


def demo(folder: Path, only: str) -> Json:
    """``make demo``, as JSON."""
    result = folder / "demo.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "demo.py"), "--dry-run", "--json", str(result)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return demo_values(json.loads(result.read_text(encoding="utf-8")))


def demo_values(told: Json) -> Json:
    """The figures of the result of ``optimize``."""
    assert told["verdict"] == "optimized", told["verdict"]
    return {
        "original": told["breaks"][0],
        "safe": told["breaks"][1],
        "outputs": f"equal (max difference {told['max_difference']:.3g})",
        **{f"{key} ms": float(f"{told[f'{name}_ms']:.3g}") for key, name in TIMES.items()},
    }


# ---------------------------------------------------------------------------------------------------------------------
# Classes of transformers: each in the original package and in two that the tool has patched, as graphmend.py measures.


@dataclass(frozen=True)
class Zoo:
    """Classes of an installed package. ``pins``: what to install; ``cases``: the module of the classes."""

    pins: tuple[str, ...]
    cases: str = ""
    options = {"safe": (), "unsafe": ("--unsafe",)}

    def installed(self) -> Path:
        """The folder of the packages; torch stays that of this Python."""
        folder = CACHE / self.pins[0].replace("==", "-")
        if not (folder / ".complete").exists():
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
            subprocess.run([*pip, "--target", str(folder), *self.pins], check=True)
            (folder / ".complete").touch()
        return folder

    def environment(self) -> dict[str, str]:
        told = {"PYTHONPATH": str(self.installed()), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        return {**os.environ, **told}

    def trees(self, folder: Path) -> Patch:
        """Patch, in copies of the package, the files of it that the classes import."""
        for name in ("original", *self.options):
            shutil.copytree(self.installed() / "transformers", folder / name / "transformers")
        command = [sys.executable, "-W", "ignore", GRAPHMEND, "--original", str(folder / "original"), "--modules"]
        command += ["--cases", self.cases] if self.cases else []
        listed = subprocess.run(command, env=self.environment(), stdout=subprocess.PIPE, text=True, check=True)
        files = [f"transformers/{line}" for line in listed.stdout.split()]
        print(f"{len(files)} files to patch, twice", flush=True)
        made = [fixed(folder / name, files, *options) for name, options in self.options.items()]
        digest = hashlib.sha256("".join(digest for digest, _ in made).encode()).hexdigest()
        return Patch(digest, sorted(set().union(*(rules for _, rules in made))))

    def measure(self, folder: Path, only: str) -> Json:
        """Measure all classes, two at a time, and add them up."""
        runs = []
        for half in ("0/2", "1/2"):
            command = [
                sys.executable,
                GRAPHMEND,
                "--original",
                str(folder / "original"),
                "--part",
                half,
                "--rows",
                only,
            ]
            command += ["--patched", str(folder / "safe"), "--unsafe", str(folder / "unsafe")]
            command += ["--out", str(folder / f"{half[0]}.jsonl"), *(["--cases", self.cases] if self.cases else [])]
            runs.append(subprocess.Popen(command, env=self.environment(), stdout=subprocess.DEVNULL))
        if sum(run.wait() for run in runs):
            raise SystemExit("a measurement failed")
        lines = [json.loads(text) for half in "01" for text in (folder / f"{half}.jsonl").read_text().splitlines()]
        return added([line for line in lines if line["row"] not in NOT_COUNTED])


GRAPHMEND = str(ROOT / "benchmarks" / "graphmend.py")
NOT_COUNTED = {"Phi-4-mini, LongRoPE, long input"}  # GraphMend publishes no figures of it


def added(lines: list[Json]) -> Json:
    """The extra graphs (graphs of the first call, less one) of all classes, and how many give the same outputs."""
    for line in lines:
        if "failure" in line:
            raise SystemExit(f"{line['row']}, {line['tree']}: {line['failure']}")
    graphs = dict.fromkeys(("original", "safe", "unsafe"), 0)
    for line in lines:
        graphs[line["tree"]] += line["first"]["graphs"] - 1
    names = {line["row"] for line in lines}
    other = {
        line["row"] for line in lines if any(d != 0.0 for d in line.get("outputs", []) + line.get("gradients", []))
    }
    same = f"{len(names) - len(other)} of {len(names)} the same bit for bit"
    return {**graphs, "outputs": same}


# ---------------------------------------------------------------------------------------------------------------------

OURS = Zoo(("transformers==5.23.0", "tokenizers==0.23.3", "numpy==2.4.6", "scipy==1.17.1"), "claims_models")
THEIRS = Zoo(("transformers==4.52.4", "tokenizers==0.21.4", "numpy==2.4.6"))
BREADTH, TABLE_2 = "docs/results/breadth.md", "docs/results/graphmend.md"
PARTS = {
    "demo": Part("the sampler of make demo", "graph breaks", "benchmarks/demo/sampler.py", demo_trees, demo),
    "transformers": Part("classes of transformers 5.23.0", "extra graphs", BREADTH, OURS.trees, OURS.measure),
    "graphmend": Part(
        "GraphMend's models (GraphMend: 54 -> 10)", "extra graphs", TABLE_2, THEIRS.trees, THEIRS.measure
    ),
}


def state() -> str:
    """The commit of the working tree; "+changes" when files that git knows differ from it."""
    commit = (git("rev-parse", "--short", "HEAD") or b"").decode().strip()
    if not commit:
        raise SystemExit("claims need a git checkout: they are recorded with their commit")
    dirty = git("status", "--porcelain", "--untracked-files=no", "--", "rules", "patcher", "benchmarks", "fixtures")
    if dirty:
        print("there are changes that are not committed: the claim will say so, and tests/test_claims.py refuse it")
    return commit + ("+changes" if dirty else "")


def measure(name: str, again: bool, only: str) -> None:
    """Measure a part, and write its claim."""
    import torch

    part, told, now = PARTS[name], claims() if CLAIMS.exists() else {}, state()
    old = told.get(name, {})
    with tempfile.TemporaryDirectory() as temporary:
        patch = part.trees(Path(temporary))
        if old and not again and not only and (old["patch"], old["torch"]) == (patch.digest, torch.__version__):
            told[name] = {**old, "rules": patch.rules}
            print(f"{name}: the patch is that of {old['commit']}; its figures stand")
        else:
            values = part.measure(Path(temporary), only)
            print(f"{name}: {json.dumps(values, indent=2)}")
            told[name] = {
                "what": part.what,
                "counted": part.counted,
                "page": part.page,
                "values": values,
                "commit": now,
                "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
                "torch": torch.__version__,
                "device": "CPU, one thread",
                "command": f"python benchmarks/claims.py {name}",
                "rules": patch.rules,
                "patch": patch.digest,
            }
    if not only:
        CLAIMS.write_text(json.dumps(told, indent=2, sort_keys=False) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which parts: {', '.join(PARTS)}; all without")
    parser.add_argument("--again", action="store_true", help="measure also what the patch has not changed")
    parser.add_argument(
        "--only", default="", help="these classes, or how they begin, between semicolons; nothing is written"
    )
    given = parser.parse_args()
    if unknown := set(given.names) - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    for name in given.names or PARTS:
        measure(name, given.again, given.only)


if __name__ == "__main__":
    main()
