"""What the last ``diagnose`` of a project has measured, kept in the user's cache folder for who asks of a line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from patcher.diagnose.diagnosis import Cause, Diagnosis, Impact
from patcher.files.kept import read_json, user_folder, write_json
from patcher.words import counts, many

_SCHEMA = 1


@dataclass(frozen=True)
class MeasuredCause:
    """A cause, in a line of a file. ``path``: absolute, without links. ``trigger``: that line of source, stripped.

    ``told``: what it cost, in a sentence. ``when``: the day and minute of the run, ``command``: the call.
    """

    path: str
    line: int
    trigger: str
    severity: str
    title: str
    told: str
    when: str
    command: str


def keep(diagnosis: Diagnosis, files: Sequence[str], root: str) -> None:
    """Keep the causes in ``files`` for the project ``root``, in place of those of the run before.

    Where the folder cannot be written, nothing is kept.
    """
    causes = [found for cause in diagnosis.causes if (found := _located(cause, diagnosis, files))]
    write_json(_path(root), {"schema": _SCHEMA, "root": root, "causes": [asdict(cause) for cause in causes]})


def recall(root: str) -> tuple[MeasuredCause, ...]:
    """What is kept for the project ``root``; () for nothing, or what cannot be read."""
    document, names = read_json(_path(root)) or {}, [field.name for field in fields(MeasuredCause)]
    if (document.get("schema"), document.get("root")) != (_SCHEMA, root):
        return ()
    try:
        return tuple(MeasuredCause(**{name: told[name] for name in names}) for told in document["causes"])
    except (KeyError, TypeError):
        return ()


def written(root: str) -> int:
    """When something was kept for ``root`` last, in nanoseconds; 0 for never."""
    try:
        return _path(root).stat().st_mtime_ns
    except OSError:
        return 0


def by_line(causes: Sequence[MeasuredCause], path: str, lines: Sequence[str]) -> Mapping[int, list[MeasuredCause]]:
    """The causes in the file, by the line (from 1) that is now what it was then; not those whose line is gone."""
    found: dict[int, list[MeasuredCause]] = {}
    stripped = [line.strip() for line in lines]
    real = os.path.realpath(path)
    for cause in causes:
        if cause.path != real or not cause.trigger:
            continue
        same = [n for n, line in enumerate(stripped, 1) if line == cause.trigger]
        if same:
            found.setdefault(min(same, key=lambda n: abs(n - cause.line)), []).append(cause)
    return found


def _located(cause: Cause, diagnosis: Diagnosis, files: Sequence[str]) -> MeasuredCause | None:
    name, _, line = cause.where.rpartition(":")
    whole = next((p for p in map(os.path.realpath, files) if p == name or p.endswith(os.sep + name)), None)
    if not name or whole is None or not line.isdigit():
        return None
    when = diagnosis.started[:16].replace("T", " ")
    told = f"{_cost(cause.impact)} {cause.reason}".strip()
    return MeasuredCause(whole, int(line), cause.trigger, cause.severity, cause.title, told, when, diagnosis.command)


def _cost(impact: Impact) -> str:
    """What it cost, as far as it cost anything: ``3 recompiles, 12 launches.``"""
    parts = [counts(impact), many(impact.launches, "launch", "launches") if impact.launches else ""]
    parts.append(f"{impact.compile_seconds:.1f} s of compiling" if impact.compile_seconds else "")
    return f"{', '.join(filter(None, parts))}." if any(parts) else ""


def _path(root: str) -> Path:
    name = hashlib.sha256(root.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return user_folder() / "diagnoses" / f"{name}.json"
