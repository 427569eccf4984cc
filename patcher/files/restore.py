"""Put the originals of a run back, and tell which patched files have been altered since."""

from __future__ import annotations

import ast
import contextlib
import os
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from patcher.files import atomic
from patcher.files.backup import BackupError, Manifest, Saved, Store, sha256
from patcher.files.lines import opcodes
from patcher.files.source import reason
from patcher.results import Altered


def without_patch(original: bytes, patched: bytes, edited: bytes) -> bytes | None:
    """``edited`` with the lines that differ in ``patched`` as they are in ``original``; None where an edit meets one.

    An edit meets a change when it is in the same lines, or in the one before or after them. What was Python before
    must be Python afterwards.
    """
    base, now, old = (text.split(b"\n") for text in (patched, edited, original))
    moved = _moved(base, now)
    result = list(now)
    for tag, start, stop, first, last in reversed(opcodes(base, old)):
        if tag == "equal":
            continue
        around = range(max(start - 1, 0), min(stop + 1, len(base)))
        first_place = moved.get(around[0])
        if first_place is None or any(moved.get(line) != first_place + line - around[0] for line in around):
            return None
        at = first_place + start - around[0]
        result[at : at + (stop - start)] = old[first:last]
    text = b"\n".join(result)
    return text if _is_python(text) or not _is_python(edited) else None


def _moved(base: list[bytes], now: list[bytes]) -> dict[int, int]:
    """Where the lines of ``base`` that were not edited are in ``now``."""
    return {
        start + step: first + step
        for tag, start, stop, first, _ in opcodes(base, now)
        if tag == "equal"
        for step in range(stop - start)
    }


def _is_python(text: bytes) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


_FORCE = "--force puts the original back and sets your version aside"


@dataclass(frozen=True)
class Restored:
    """What became of the files of a run, by absolute path.

    ``kept``: edited versions that were set aside. ``separable``: refused, but the patch can be taken out of the edits.
    ``shared``: files that the run has made, or found made by another, and that stay: each with a run that uses it too.
    """

    run: str
    restored: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()
    separable: tuple[str, ...] = ()
    shared: tuple[tuple[str, str], ...] = ()


Edited = Literal["refuse", "keep edits", "force"]


class _SeparableError(atomic.ReplaceError):
    """An edited file that the patch can be taken out of."""


def restore(store: Store, run: str | None = None, edited: Edited = "refuse") -> Restored:
    """Put the originals of ``run`` (else the latest one that is not restored) back, each file atomically.

    A file with neither its patched nor its original bytes is refused, unless ``edited`` says otherwise: with "keep
    edits" the patch alone is taken out where it still can be, with "force" the original comes back; either way the
    edited version is kept in the run's folder. Raises ``BackupError`` when there is no such run.
    """
    _refuse_without_runs(store)
    with store.locked():
        runs = store.runs()
        manifest = _chosen(runs, run, store)
        later = {
            saved.path: other.run
            for other in runs
            for saved in other.files
            if int(other.run) > int(manifest.run) and other.state != "restored" and saved.outcome != "left alone"
        }
        users = {saved.path: other.run for other in runs if other.run != manifest.run for saved in other.made}
        restored, already, kept, separable = list[str](), list[str](), list[str](), list[str]()
        shared, refused = list[tuple[str, str]](), list[tuple[str, str]]()
        for saved in sorted(manifest.files, key=lambda saved: saved.created):  # what uses a new file comes first
            path = str(store.file(saved))
            atomic.remove_leftovers(os.path.dirname(path), manifest.run)
            if saved.outcome == "left alone":
                continue
            if saved.created and saved.path in users and os.path.lexists(path):
                shared.append((path, users[saved.path]))
                continue
            try:
                (restored if _put_back(store, manifest, saved, edited, kept) else already).append(path)
            except atomic.ReplaceError as error:
                run = later.get(saved.path)
                again = f" (run {run} patched it again: restore that one first)" if run else ""
                refused.append((path, f"{error}{again}"))
                separable += [path] if isinstance(error, _SeparableError) else []
        if not refused:
            store.save(manifest.with_state("restored"))
    lists = (restored, already, refused, kept, separable, shared)
    return Restored(manifest.run, *map(tuple, lists))  # type: ignore[arg-type]


def altered(store: Store, within: Sequence[str]) -> tuple[Altered, ...]:
    """The files below ``within`` whose bytes are not those of the last run that patched them. Writes nothing."""
    tops = [os.path.realpath(path) for path in within]
    latest: dict[str, tuple[Saved, str]] = {}
    for manifest in store.runs():
        for saved in manifest.files:
            if manifest.state == "restored" or saved.outcome == "left alone":
                continue
            latest[os.path.realpath(store.file(saved))] = (saved, manifest.run)
    found = []
    for path, (saved, run) in latest.items():
        if any(path == top or path.startswith(os.path.join(top, "")) for top in tops):
            try:
                data = _bytes_of(Path(path))
            except atomic.ReplaceError:
                continue  # reading it again for the findings says so
            now = None if data is None else sha256(data)
            untouched = saved.outcome == "planned" and now == saved.before  # the run was killed before it came here
            if now != saved.after and not untouched:
                gone = "deleted" if now is None else "back to the original" if now == saved.before else "edited"
                found.append(Altered(path, gone, run))
    return tuple(sorted(found, key=lambda item: item.path))


def forget(store: Store, run: str | None = None) -> Manifest:
    """Remove ``run`` (else the last one) with its originals, and say what it was. Raises ``BackupError``."""
    _refuse_without_runs(store)
    with store.locked():
        if run is not None and run.isdecimal() and store.damaged(run.zfill(4)):
            store.forget(run.zfill(4))
            return Manifest(run.zfill(4), "", "", (), ())
        runs = store.runs()
        if not runs:
            raise BackupError(f"nothing to forget: no runs are recorded in {store.folder}")
        manifest = _chosen(runs, run or runs[-1].run, store)
        if manifest.state != "restored":
            _leave_alone({saved.path for saved in manifest.files if saved.created}, runs, store)
        store.forget(manifest.run)
    return manifest


def _leave_alone(paths: Set[str], runs: Sequence[Manifest], store: Store) -> None:
    """Let no run take away ``paths``, which a run that is forgotten uses for good. Raises ``BackupError``."""
    for manifest in runs:
        if not any(saved.path in paths for saved in manifest.made):
            continue
        files = tuple(
            replace(saved, outcome="left alone") if saved.created and saved.path in paths else saved
            for saved in manifest.files
        )
        try:
            store.save(replace(manifest, files=files))
        except OSError as error:
            raise BackupError(f"the manifest of run {manifest.run} cannot be written: {reason(error)}") from None


def _refuse_without_runs(store: Store) -> None:
    if not store.folder.is_dir():
        raise BackupError(f"no runs are recorded in {store.folder} (another place: --backup-dir)")


def _chosen(runs: Sequence[Manifest], run: str | None, store: Store) -> Manifest:
    if run is None:
        waiting = [m for m in runs if m.state != "restored" and any(s.outcome != "left alone" for s in m.files)]
        if not waiting:
            raise BackupError(f"nothing to restore: every run in {store.folder} has been restored already")
        return waiting[-1]
    wanted = run.zfill(4)
    for manifest in runs:
        if manifest.run == wanted:
            return manifest
    known = ", ".join(manifest.run for manifest in runs) or "none"
    if not run.isdecimal():
        raise BackupError(f"a run is a number, and taken as a whole, not {run!r} (recorded: {known})")
    raise BackupError(f"there is no run {run} in {store.folder} (recorded: {known})")


def _put_back(store: Store, manifest: Manifest, saved: Saved, edited: Edited, kept: list[str]) -> bool:
    """False when the original is in place already; raises ``ReplaceError`` when the file has to be left alone."""
    force = edited == "force"
    path = store.file(saved)
    try:
        original = (store.run_folder(manifest.run) / "originals" / saved.original).read_bytes()
    except OSError as error:
        raise atomic.ReplaceError(f"its stored original cannot be read: {reason(error)}") from None
    if sha256(original) != saved.before:
        raise atomic.ReplaceError("its stored original is damaged")
    current = _bytes_of(path)
    if saved.created:
        return _taken_away(store, manifest, saved, current, force, kept)
    if current is None:
        if not force:
            raise atomic.ReplaceError("was deleted since; --force brings the original back")
        with _as_replace_error():
            atomic.create(str(path), original, saved.mode)
            os.chmod(path, saved.mode)
        return True
    now = sha256(current)
    if now == saved.before:
        return False
    if now == saved.after:
        return atomic.replace(str(path), current, original, manifest.run)
    after = original if force else _without_patch(store, manifest, saved, original, current)
    if after is None:
        raise atomic.ReplaceError(f"was edited since; {_FORCE}")
    if edited == "refuse":
        raise _SeparableError(f"was edited since; --keep-edits takes the patch alone out, {_FORCE}")
    kept.append(_set_aside(store, manifest, saved, current))
    return atomic.replace(str(path), current, after, manifest.run)


def _taken_away(
    store: Store, manifest: Manifest, saved: Saved, current: bytes | None, force: bool, kept: list[str]
) -> bool:
    """The same for a file that the run has made."""
    if current is None:
        return False
    path = store.file(saved)
    if sha256(current) != saved.after:
        if not force:
            raise atomic.ReplaceError("is new and was edited since; --force removes it and sets your version aside")
        kept.append(_set_aside(store, manifest, saved, current))
    with _as_replace_error():
        path.unlink()
        atomic.sync_folder(str(path.parent))
    return True


def _set_aside(store: Store, manifest: Manifest, saved: Saved, current: bytes) -> str:
    """Keep an edited version in the run's folder; its path."""
    name = f"{saved.original.removesuffix('.orig')}.edited-{sha256(current)[:8]}"
    aside = str(store.run_folder(manifest.run) / name)
    with _as_replace_error():
        atomic.create(aside, current)
    return aside


def _without_patch(store: Store, manifest: Manifest, saved: Saved, original: bytes, current: bytes) -> bytes | None:
    """The edited file without the patch; None where that cannot be told, or where the two meet."""
    try:
        patched = (store.run_folder(manifest.run) / "patched" / saved.original).read_bytes()
    except OSError:
        return None
    return without_patch(original, patched, current) if sha256(patched) == saved.after else None


@contextlib.contextmanager
def _as_replace_error() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise atomic.ReplaceError(f"cannot be written: {reason(error)}") from None


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise atomic.ReplaceError(f"cannot be read: {reason(error)}") from None
