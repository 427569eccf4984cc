"""`make demo`: make a small program faster, and say what that is worth against eager.

    python benchmarks/demo.py [OPTION ...]

Options are passed on to `fix-compile optimize`. All happens in a temporary folder.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(__file__).with_name("demo")


def call(folder: Path, *arguments: str) -> int:
    print(f"$ fix-compile {shlex.join(arguments)}\n", flush=True)
    command = [sys.executable, str(ROOT / "fix_compile.py"), *arguments]
    status = subprocess.run(command, cwd=folder, check=False).returncode
    print(flush=True)
    return status


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "demo"
        shutil.copytree(PROGRAM, folder, ignore=shutil.ignore_patterns("__pycache__"))
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # the model is too small for more
        shown = call(folder, "diff", "sampler.py")
        options = ["--yes", "--budget", "200", "--python", sys.executable, *sys.argv[1:]]
        return shown or call(folder, "optimize", *options, "--", "python", "sample.py")


if __name__ == "__main__":
    sys.exit(main())
