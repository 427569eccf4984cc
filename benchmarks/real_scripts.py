"""Scripts of others as they are and as `fix-compile` makes them, run on tiny random models: what they compute and save.

    python benchmarks/real_scripts.py nanogpt --work FOLDER --from REPOSITORY [--into docs/results/integrate.md]
    python benchmarks/real_scripts.py lerobot | toto | musubi    the same

Runs with a Python that has what the repository asks for. Under FOLDER two copies are made, one of them rewritten
(`integrate`, or `fix --unsafe` where it compiles already); each way runs in a process of its own, and what was run once
is not run again. No GPU, one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tables import put, table

ROOT = Path(__file__).resolve().parent.parent
FIX = ("fix", "--unsafe", "--no-backup", "--select", "FC703,FC704,FC705,FC706,FC707,FC708,FC709")


@dataclass(frozen=True)
class Subject:
    """A repository. ``tool`` rewrites its copy; ``ways``: which copy and backend ("": none); ``path``: to import.

    Before the backend may stand what else the program is to do ("swap eager").
    """

    tool: tuple[str, ...]
    ways: tuple[tuple[str, str], ...]
    path: str = "."


_EACH = ("", "eager", "inductor")
SUBJECTS = {
    "nanogpt": Subject((*FIX, "train.py"), tuple((copy, b) for copy in ("original", "patched") for b in _EACH)),
    "lerobot": Subject(
        (
            *("integrate", "--yes", "--no-backup", "src/lerobot/scripts/lerobot_train.py"),
            "src/lerobot/configs/train.py",
        ),
        (("original", ""), *(("patched", b) for b in _EACH)),
        "src",
    ),
    "musubi": Subject(
        ("integrate", "--yes", "--no-backup", "src/musubi_tuner/hv_train.py"),
        (
            *(("original", way) for way in ("", "swap")),
            *(("patched", way) for way in ("", "eager", "aot_eager", "inductor")),
            *(("patched", f"swap{way}") for way in ("", " eager", " aot_eager", " inductor")),
        ),
        "src",
    ),
    "toto": Subject(
        (*FIX, "toto"),
        (("original", ""), ("original", "eager"), ("patched", "eager")),
    ),
}


class Bench:
    """Copies and results of one subject."""

    def __init__(self, name: str, work: Path, source: Path) -> None:
        self.name, self.subject, self.source = name, SUBJECTS[name], source.resolve()
        self.work = work.resolve() / name
        self.env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
        self.env |= {"TORCHINDUCTOR_CACHE_DIR": str(self.work / "cache"), "WANDB_MODE": "disabled"}

    def copy(self, name: str) -> Path:
        """The repository, as it is or rewritten."""
        folder = self.work / name
        if not folder.is_dir():
            shutil.copytree(self.source, folder, ignore=shutil.ignore_patterns(".git", "*.ipynb"))
            if name == "patched":
                done = self._done([sys.executable, str(ROOT / "fix_compile.py"), *self.subject.tool], folder)
                (self.work / "said.txt").write_text(done.stdout + done.stderr)
                if done.returncode:
                    shutil.rmtree(folder)
                    raise SystemExit(done.stdout + done.stderr)
        return folder

    def result(self, copy: str, backend: str) -> dict[str, Any]:
        """Of one way: it is made when there is none yet."""
        told = self.work / f"{copy}-{backend or 'off'}.json"
        if not told.is_file():
            folder = self.copy(copy)
            program = str(ROOT / "benchmarks" / f"real_{self.name}.py")
            command = [sys.executable, program, str(told.with_suffix("")), backend]
            self.env["PYTHONPATH"] = os.pathsep.join([str(folder / self.subject.path), str(ROOT / "benchmarks")])
            done = self._done(command, folder)
            if done.returncode:
                return {"failed": done.stderr[-3000:]}
        return dict(json.loads(told.read_text()))

    def _done(self, command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=cwd, env=self.env, capture_output=True, text=True, check=False, timeout=1800)


def apart(some: list[str], others: list[str]) -> str:
    """The largest difference of two lists of numbers in hexadecimal, relative to the largest number, in words."""
    if len(some) != len(others) or not some:
        return "**others**"
    pairs = [(float.fromhex(a), float.fromhex(b)) for a, b in zip(some, others, strict=True)]
    most = max(abs(a - b) for a, b in pairs) / max(abs(b) for _, b in pairs)
    return "equal" if most == 0 else f"{most:.0e}"


def rows(bench: Bench) -> Iterator[list[str]]:
    """A line for each way, compared with the first; those that swap blocks with the first of these."""
    firsts: dict[bool, dict[str, Any]] = {}
    for copy, backend in bench.subject.ways:
        now = bench.result(copy, backend)
        first = firsts.setdefault(backend.startswith("swap"), now)
        way = [copy, backend or "off"]
        if "failed" in now:
            yield [*way, "failed: " + now["failed"].strip().splitlines()[-1][:160], *[""] * 5]
            continue
        yield [
            *way,
            apart(now["losses"], first["losses"]),
            f"{now['graphs']}/{now['breaks']}",
            f"{now['prefixed']} of {now['keys']}" if now["keys"] else "",
            now["loads"],
            apart(now["outputs"], first["outputs"]),
            now.get("configuration", ""),
        ]


HEAD = ("copy", "compiled with", "losses", "graphs/breaks", "names with `_orig_mod`", "loads strictly", "outputs")
HEAD = (*HEAD, "configuration, saved and loaded")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=tuple(SUBJECTS))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--from", type=Path, required=True, dest="source")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the table there (default: print it)")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(options.what, options.work, options.source)
    put(options.into, f"real-{options.what}", table(HEAD, rows(bench)))


if __name__ == "__main__":
    main()
