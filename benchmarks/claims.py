"""Measure again what README claims: the figures of docs/results/claims.json.

    python benchmarks/claims.py [--again] [--only CLASS,CLASS] [NAME ...]        # NAME: demo, graphmend, transformers

Each part ends within 20 minutes on two cores, and writes its claim with the current commit; `make docs` writes README.
A part first patches. When the patch is, byte for byte, the one that the recorded figures are of, and torch is the same,
nothing has to be measured: the claim keeps its figures and its commit, and gets ``same_patch_at``. ``--again`` measures
all the same. ``--only`` measures some classes of a part, prints them and writes nothing.

Packages are installed into .cache/claims, at the versions below; torch is that of the Python that runs this. Claims
``by_hand`` (of a GPU, say) are left as they are.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
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
    shutil.copyfile(ROOT / "fixtures" / "vision_language" / "before.py", folder / "captioner.py")
    digest, rules = fixed(folder, ["captioner.py"])
    return Patch(digest, sorted(rules))


def demo(folder: Path, only: str) -> Json:
    """``make demo``, as JSON."""
    command = [sys.executable, str(ROOT / "benchmarks" / "demo.py"), "--dry-run", "--format", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    report = json.loads(done.stdout[done.stdout.index("\n{\n") :])
    return demo_values(report)


def demo_values(report: Json) -> Json:
    """The figures of the report of ``--test``."""
    (case,) = report["results"]["cases"]
    run = {(v["tree"], v["kind"]): v for v in case["variants"]}
    eager = next(c for c in case["comparisons"] if (c["tree"], c["kind"]) == ("patched", "eager"))
    old, new = run["original", "compiled"], run["patched", "compiled"]
    milliseconds = {
        "eager ms": run["original", "eager"],
        "original ms": old,
        "safe ms": new,
    }
    return {
        "original": old["counts"]["breaks"],
        "safe": new["counts"]["breaks"],
        "outputs": "the same bit for bit" if eager["bitwise"] else "not the same bit for bit",
        **{key: float(f"{variant['warm']['median_ms']:.3g}") for key, variant in milliseconds.items()},
    }


# ---------------------------------------------------------------------------------------------------------------------

PARTS = {
    "demo": Part(
        "a small vision-language model", "graph breaks", "fixtures/vision_language/before.py", demo_trees, demo
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
            told[name] = {**old, "same_patch_at": now, "rules": patch.rules}
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
    parser.add_argument("--only", default="", help="these classes, or how they begin; nothing is written")
    given = parser.parse_args()
    if unknown := set(given.names) - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    for name in given.names or PARTS:
        measure(name, given.again, given.only)


if __name__ == "__main__":
    main()
