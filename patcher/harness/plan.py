"""The folder that is measured: the plan, and the patched files."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from patcher.harness import trees
from patcher.harness.cases import Case
from patcher.results import FileResult
from patcher.settings import TorchSetting
from patcher.version import VERSION

SCHEMA = 1
_USUAL = ("modes", "backend", "promise", "quick", "verbose", "seconds", "memory")  # options that every plan tells
_ASKED = (  # and those that it tells when they are wanted
    *("counting", "untimed", "eager_untimed", "repeat", "keep", "beside", "workers", "until", "probes", "alone"),
    *("on_disk", "replay", "reuse", "trace"),
)


@dataclass(frozen=True)
class Options:
    """How to measure.

    ``command``: the user's call. ``base``: the folder that locations are shown relative to ("": the working folder).
    ``paths``: what the user wants patched; imports start from their roots. ``packages``: where installed packages that
    are patched were found, by name. ``promise``: "bitwise" when every fix that was applied is a safe one. ``seconds``
    and ``memory`` (bytes): the limits of each process.

    ``counting``: only what Dynamo counts: of each case the original in eager mode, and original and patched compiled;
    no times of those, and nothing is compared. ``untimed``: what is compiled is not timed; ``eager_untimed``: what
    runs eagerly is not. ``repeat``: a second run of the original compiled in the first mode. ``keep``: the work folder
    stays. ``reuse``: the work folder of an earlier run, from which the original's variants are taken; ``beside``: it
    may still run, and is waited for. ``warm_cache``: what compiles finds what earlier processes have generated for the
    same state; ``caches``: where, for "original" and "patched". ``workers``: that inductor starts in each process; 0:
    as many as is usual. ``until``: when everything has to be over, on the clock of ``time.monotonic``. ``trace``: where
    torch writes its structured trace of the original compiled. ``probes``: names of experiments (``probes.py``) on
    each case. ``settings``: of PyTorch, in force while what is patched runs compiled; the original runs without.
    ``alone``: nothing is compiled but what the probes compile, of what is patched.

    ``observed``: files whose expressions are looked at in an eager pass of the original (``run/observing.py``).
    ``replay``: seconds for which original and patched code are given changed inputs (``replaying.py``).

    ``on_disk``: of somebody else's change, which side of it the files on disk are; "": what is measured is our own
    patch of them. Imports then start from ``paths`` alone: a change may have files anywhere.
    """

    command: tuple[str, ...] = ()
    base: str = ""
    paths: tuple[str, ...] = ()
    packages: Mapping[str, Path] = field(default_factory=dict)
    modes: tuple[str, ...] = ("default",)
    backend: str = "inductor"
    promise: Literal["bitwise", "tolerance"] = "bitwise"
    quick: bool = False
    verbose: bool = False
    seconds: float = 600.0
    memory: int | None = None
    counting: bool = False
    untimed: bool = False
    eager_untimed: bool = False
    repeat: bool = False
    keep: bool = False
    reuse: str = ""
    beside: bool = False
    warm_cache: bool = False
    caches: Mapping[str, str] = field(default_factory=dict)
    workers: int = 0
    until: float = 0.0
    trace: str = ""
    probes: tuple[str, ...] = ()
    settings: tuple[TorchSetting, ...] = ()
    alone: bool = False
    on_disk: Literal["", "original", "patched"] = ""
    observed: tuple[str, ...] = ()
    replay: float = 0.0


def write(folder: Path, results: Sequence[FileResult], cases: Sequence[Case], options: Options) -> Path:
    """Write the plan and the patched files; trees and cases stay where they are. Returns the plan's path.

    Results without a change are not in the plan. Raises ``OSError`` when the folder cannot be written.
    """
    overlay = []
    for path, entry in _written(folder, results, options):
        overlay.append({**entry, **(_installed(path, options) or {"file": os.path.realpath(path)})})
    document = _document(results, options) | {
        "base": str(_base(options)),
        "path": list(import_roots(results, options)),
        "overlay": overlay,
        "cases": [_case(case) for case in cases],
    }
    plan = folder / "plan.json"
    plan.write_text(json.dumps(document, indent=1) + "\n", encoding="ascii")
    return plan


def digest(results: Sequence[FileResult], options: Options) -> str:
    """A name for the patch as a whole: SHA-256 over the changed files, as shown, and their patched bytes.

    Of ``options`` only ``base`` and ``packages`` matter.
    """
    files = sorted((_shown(result.path, options), _sha256(result.after)) for result in results if result.changed)
    return _sha256(json.dumps(files).encode("ascii"))


def changed(before: bytes, after: bytes) -> list[list[int]]:
    """The lines of ``after`` that are not in ``before``: ranges from 1, both ends included, in order.

    Where lines were only taken out, the next line of code stands for the place; the one before when the block that they
    were in ends there. Lines are Python's: a form feed ends none.
    """
    old, new = before.splitlines(), after.splitlines()
    found: list[list[int]] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal" or not new:
            continue
        first, last = (j1 + 1, j2) if j2 > j1 else 2 * (_beside(old[i1:i2], new, j1),)
        if found and first <= found[-1][1] + 1:
            found[-1] = [min(first, found[-1][0]), max(last, found[-1][1])]
        else:
            found.append([first, last])
    return found


def _beside(gone: Sequence[bytes], new: Sequence[bytes], at: int) -> int:
    """The line (from 1) that stands for lines that were taken out in front of ``new[at]``."""
    depth = min((_depth(line) for line in gone if _is_code(line)), default=0)
    after = next((i for i in range(at, len(new)) if _is_code(new[i])), None)
    before = next((i for i in range(at - 1, -1, -1) if _is_code(new[i])), None)
    if before is not None and (after is None or _depth(new[after]) < depth):
        return before + 1
    return (at if after is None else after) + 1 if new[at:] else len(new)


def _depth(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t\f"))


def _is_code(line: bytes) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith(b"#")


def _written(folder: Path, results: Sequence[FileResult], options: Options) -> list[tuple[str, dict[str, Any]]]:
    """Write the patched files; each one's path, and its entry, which lacks only where the original is."""
    (folder / "patched").mkdir(parents=True, exist_ok=True)
    known: set[str] = set()
    entries = []
    for result in results:
        real = os.path.realpath(result.path)
        if not result.changed or real in known:
            continue
        known.add(real)
        stem = re.sub(r"[^\w.-]", "_", Path(real).stem, flags=re.ASCII)[:100]
        name = f"{len(known):05d}.{stem}.py"
        entry = {
            "shown": _shown(result.path, options),
            "before": "" if result.created else _sha256(result.before),
            "after": "" if result.removed else _sha256(result.after),
            "changed": changed(result.before, result.after),
        }
        served = {"patched": result.after} if not result.removed else {}
        served |= {"original": result.before} if options.on_disk == "patched" and not result.created else {}
        for side, data in served.items():
            (folder / side).mkdir(exist_ok=True)
            (folder / side / name).write_bytes(data)
            entry[side] = f"{side}/{name}"
        entries.append((result.path, entry))
    return entries


def _document(results: Sequence[FileResult], options: Options) -> dict[str, Any]:
    """What is the same in every folder."""
    subjects = _subjects(results, options)
    head, dirty = trees.commit(subjects[0]) if subjects else (None, None)
    return {
        "schema": SCHEMA,
        "tool": f"fix-compile {VERSION}",
        "command": list(options.command),
        "tree": {"commit": head, "dirty": dirty, "digest": digest(results, options)},
        **{name: getattr(options, name) for name in _USUAL},
        **_asked_for(options),
    }


def _asked_for(options: Options) -> dict[str, Any]:
    """What a plan only mentions when it is wanted; folders are those of this machine."""
    asked: dict[str, Any] = {name: getattr(options, name) for name in _ASKED}
    asked |= {"settings": [setting._asdict() for setting in options.settings], "caches": dict(options.caches)}
    asked["observed"] = [os.path.realpath(file) for file in options.observed]
    asked |= {key: str(trees.absolute(asked[key])) for key in ("reuse", "trace") if asked[key]}
    return {key: value for key, value in asked.items() if value}


def _case(case: Case) -> dict[str, Any]:
    return {
        "name": case.name,
        "file": case.file,
        "vary": case.vary or None,
        "train": case.train,
        "tolerance": case.tolerance,
        "device": case.device,
        "dtype": case.dtype,
        **({"recorded": case.recorded} if case.recorded else {}),
    }


def _subjects(results: Sequence[FileResult], options: Options) -> list[Path]:
    """What is patched, other than installed packages: the user's paths, and files that are not below one."""
    paths = [trees.absolute(path) for path in options.paths if not _installed(path, options)]
    files = [] if options.on_disk else _changed_files(results, options)
    return [*paths, *(file for file in files if not any(file.is_relative_to(path) for path in paths))]


def _changed_files(results: Sequence[FileResult], options: Options) -> list[Path]:
    return [trees.absolute(r.path) for r in results if r.changed and not _installed(r.path, options)]


def import_roots(results: Sequence[FileResult], options: Options) -> tuple[str, ...]:
    """Where imports start: the roots of the user's paths, and of the packages in them that have changed files."""
    packaged = filter(trees.package_of, [] if options.on_disk else _changed_files(results, options))
    return trees.roots([*_subjects(results, options), *packaged])


def _installed(path: str, options: Options) -> dict[str, str] | None:
    """How a file of an installed package is found again by the package's name; None for other files."""
    real = Path(os.path.realpath(path))
    for name, located in options.packages.items():
        top, names = Path(os.path.realpath(located)), name.split(".")
        if not top.is_dir():
            top, names = top.parent, names[:-1]
        while len(names) > 1 and (top.parent / "__init__.py").is_file():
            top, names = top.parent, names[:-1]
        if names and real.is_relative_to(top) and (top / "__init__.py").is_file():
            return {"package": ".".join(names), "within": real.relative_to(top).as_posix()}
    return None


def _shown(path: str, options: Options) -> str:
    """A path as the user knows it: in its package, below the base, or as it was given."""
    place = _installed(path, options)
    if place:
        return f"{place['package'].replace('.', '/')}/{place['within']}"
    base, real = Path(os.path.realpath(_base(options))), Path(os.path.realpath(path))
    return real.relative_to(base).as_posix() if real.is_relative_to(base) else path


def _base(options: Options) -> Path:
    return trees.absolute(options.base or os.curdir)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
