"""What the call ``new-rule`` does: writes the files of a skeleton where none of them is yet."""

from __future__ import annotations

from pathlib import Path

from patcher.own_rules.skeleton import SkeletonError, skeleton
from patcher.patching.calls import FAILURE, OK, Told


def new_rule(code: str, name: str, package: str, folder: Path) -> Told:
    """Write the rule, its test, and what of the package is not there yet. Nothing is overwritten."""
    try:
        made = skeleton(code, name, package)
    except SkeletonError as error:
        return Told(FAILURE, err=(f"new-rule: error: {error}",))
    there = [name for name in made.files if (folder / name).exists()]
    taken = [name for name in there if name not in made.shared]
    if taken:
        return Told(FAILURE, err=(f"new-rule: error: {folder / taken[0]} is there already; nothing was written",))
    written: list[Path] = []
    for name, text in made.files.items():
        if name in there:
            continue
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            return Told(FAILURE, _listed(written), (f"new-rule: error: {folder / name}: {error.strerror}",))
        written.append(folder / name)
    said = [f"next: pip install -e {folder}; fix-compile selftest --rules {made.project}"]
    if "pyproject.toml" in there:
        said.insert(0, f"{folder / 'pyproject.toml'} is there already; it has to say:\n\n{made.entry}")
    return Told(OK, _listed(written), tuple(said))


def _listed(written: list[Path]) -> str:
    return "".join(f"{path}\n" for path in written)
