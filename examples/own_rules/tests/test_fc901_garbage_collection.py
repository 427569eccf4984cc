"""The rule FC901 does what its examples say."""

import subprocess
import sys

from house_rules.fc901_garbage_collection import GarbageCollection

from fix_compile import examined


def test_examples() -> None:
    assert examined(GarbageCollection()) == ()


def test_examples_run() -> None:
    """Needs torch, and this package installed (`pip install -e .`)."""
    command = [sys.executable, "-m", "fix_compile", "selftest", "--rules", "house-rules", "FC901"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
