"""The value of the fixes is held like safety: real models, patched as whole packages, break no more than recorded.

``recorded.json`` has the figures and the files that get a fix, of those that the cases import: only these are patched
again, with an index of their whole packages. Where that gives the text that was recorded, byte for byte, the figures
are those that were recorded too; else the cases run again. ``python -m tests.test_gains`` patches all and writes the
file anew, after a change that is meant.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from patcher.patching.runner import run
from patcher.settings import Settings
from rules import load_rules

GAINS = Path(__file__).resolve().parent / "gains"
RECORDED = GAINS / "recorded.json"
FIGURES = ("graphs", "breaks")
MODES = ("safe", "unsafe")
Json = dict[str, Any]


def counted(tree: Path, calls: int = 1, names: Iterable[str] = ()) -> dict[str, Json]:
    """What ``count.py`` says of the cases (all, or these) with the packages of ``tree``, so many calls compiled."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-W", "ignore", str(GAINS / "count.py"), "--calls", str(calls), *names]
    found = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert lines and not found.returncode, found.stderr[-3000:]
    return {line.pop("name"): line for line in lines}


def original(root: Path, packages: Iterable[str]) -> Path:
    """A folder with the installed packages, where no file around them counts as one of theirs."""
    for package in packages:
        spec = importlib.util.find_spec(package)
        assert spec is not None and spec.submodule_search_locations, f"{package} is not installed: make venv"
        shutil.copytree(
            spec.submodule_search_locations[0], root / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    return root


def patched(tree: Path, to: Path, mode: str, files: Iterable[str], kept: Path) -> Path:
    """``tree`` with the fixes of ``files`` made. The index covers each package as a whole, whatever files are named."""
    shutil.copytree(tree, to, copy_function=os.link)
    for package in sorted({file.partition("/")[0] for file in files}):
        paths = [str(tree / file) for file in files if file.startswith(f"{package}/")]
        for result in run(paths, load_rules(), Settings(unsafe=mode == "unsafe"), jobs=2, kept=kept):
            assert not result.error and (result.patch is None or not result.patch.bugs), result
            if result.changed:
                file = to / Path(result.path).relative_to(tree)
                file.unlink()
                file.write_bytes(result.after)
    return to


def made_of(tree: Path, files: Iterable[str]) -> str:
    """A digest of the files' text, and of what counts what becomes of it."""
    digest = hashlib.sha256(str(torch.__version__).partition("+")[0].encode())
    for file in (*sorted(GAINS.glob("*.py")), GAINS / "requirements.txt", *(tree / file for file in sorted(files))):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def asked(recorded: Json, mode: str) -> list[str]:
    """The recorded cases that are counted: with unsafe fixes those alone that these change, to save time."""
    cases: dict[str, Json] = recorded.get("cases", {})
    return [name for name, modes in cases.items() if mode != "unsafe" or modes["safe"] != modes["unsafe"]]


def measured(root: Path) -> tuple[Callable[[str], Path], dict[str, Callable[[], dict[str, Json]]]]:
    """The tree of a mode, and the figures of the original and of each mode.

    Each is made once in ``root``, whichever process asks first.
    """
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))

    def once(name: str, make: Callable[[], Any]) -> Any:
        with open(root / f"{name}.lock", "w") as lock:  # noqa: PTH123
            fcntl.flock(lock, fcntl.LOCK_EX)
            kept = root / f"{name}.json"
            if not kept.exists():
                kept.write_text(json.dumps(make()), encoding="utf-8")
            return json.loads(kept.read_text(encoding="utf-8"))

    def base() -> Path:
        packages = {file.partition("/")[0] for file in recorded["files"]}
        return Path(once("base", lambda: str(original(root / "base", packages))))

    def all_patched() -> dict[str, str]:
        tree, kept, files = base(), root / "kept", recorded["files"]
        return {mode: str(patched(tree, root / mode, mode, files, kept)) for mode in MODES}

    def tree_of(mode: str) -> Path:
        return base() if mode == "original" else Path(once("patched", all_patched)[mode])

    def of(mode: str) -> dict[str, Json]:
        tree = tree_of(mode)
        names = asked(recorded, mode) if mode == "unsafe" else ()
        found: dict[str, Json] = once(f"{mode}-counted", lambda: counted(tree, int(mode != "original"), names))
        return found

    return tree_of, {mode: functools.partial(of, mode) for mode in ("original", *MODES)}


@pytest.fixture(scope="module")
def gains(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Callable[[str], Path], dict[str, Callable[[], dict[str, Json]]]]:
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "gains"
    root.mkdir(exist_ok=True)
    return measured(root)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.long
def test_real_models_break_no_more_than_recorded(
    gains: tuple[Callable[[str], Path], dict[str, Callable[[], dict[str, Json]]]], mode: str
) -> None:
    document = json.loads(RECORDED.read_text(encoding="utf-8"))
    recorded, (tree_of, figures) = document["cases"], gains
    if made_of(tree_of(mode), document["files"]) == document["made_of"][mode]:
        return  # the same text has the same figures
    first, second = (mode, "original") if mode == "safe" else ("original", mode)  # two processes: each its own first
    found = {name: figures[name]() for name in (first, second)}
    wrong = [name for name, now in found[mode].items() if now["digest"] != found["original"][name]["digest"]]
    wrong += [name for name, now in found[mode].items() if now["differs"]]
    assert not wrong, "their outputs have changed"
    assert list(found[mode]) == asked(document, mode)
    other = {
        name: f"{figure}: {recorded[name][mode][figure]} recorded, {now[figure]} now"
        for name, now in found[mode].items()
        for figure in FIGURES
        if now[figure] != recorded[name][mode][figure]
    }
    more = {n for n, now in found[mode].items() if any(now[f] > recorded[n][mode][f] for f in FIGURES)}
    assert not other, "more than recorded" if more else "fewer than recorded: python -m tests.test_gains"


def record() -> None:
    """Write the figures anew, the original's among them."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as both:
        root, command = Path(folder), [sys.executable, str(GAINS / "count.py"), "--list"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        package_of = dict(line.split() for line in listed.splitlines())
        before = counted(original(root / "base", {*package_of.values()}))
        files = sorted({f"{package_of[name]}/{file}" for name, case in before.items() for file in case["where"]})
        RECORDED.write_text(json.dumps({"files": files}), encoding="utf-8")
        (root / "base.json").write_text(json.dumps(str(root / "base")), encoding="utf-8")
        runs = {
            "original": before,
            **dict(zip(MODES, both.map(lambda mode: measured(root)[1][mode](), MODES), strict=True)),
        }
        trees = [root / mode for mode in MODES]
        files = [file for file in files if any(not (root / "base" / file).samefile(tree / file) for tree in trees)]
        made = {mode: made_of(root / mode, files) for mode in MODES}
    cases = {name: {mode: {f: run[name][f] for f in FIGURES} for mode, run in runs.items()} for name in before}
    RECORDED.write_text(
        json.dumps({"files": files, "made_of": made, "cases": cases}, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    record()
