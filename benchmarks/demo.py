"""`make demo`: show what would change in a small model, then measure it before and after and apply the patch.

    python benchmarks/demo.py [OPTION ...]

Options are passed on to the measuring call: `--mode`, `--backend`, `--plot`. All happens in a temporary folder.
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
MODEL, CASE = "captioner.py", "captioner_case.py"


def call(folder: Path, *arguments: str) -> int:
    print(f"$ fix-compile {shlex.join(arguments)}\n", flush=True)
    command = [sys.executable, str(ROOT / "fix_compile.py"), *arguments]
    status = subprocess.run(command, cwd=folder, check=False).returncode
    print(flush=True)
    return status


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copyfile(ROOT / "fixtures" / "vision_language" / "before.py", folder / MODEL)
        shutil.copyfile(ROOT / "benchmarks" / "demo_case.py", folder / CASE)
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # the model is too small for more
        shown = call(folder, "--dry-run", MODEL)
        return shown or call(folder, "--test", "--quick", "--case", CASE, *sys.argv[1:], MODEL)


if __name__ == "__main__":
    sys.exit(main())
