"""A run over the user's files is a transaction: originals and manifest are on disk before the first write."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import importlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Literal

from patcher.files import atomic
from patcher.files.source import reason
from patcher.results import FileResult

#: Runs that made files have a schema of their own: an older version, which knows of none, refuses them.
SCHEMA, WITH_CREATED = 1, 2

#: ``planned`` stands until the run ends; after a crash the hashes tell which bytes a file has.
Outcome = Literal["planned", "written", "left alone"]
State = Literal["open", "applied", "restored"]


class ManifestError(Exception):
    """A manifest that cannot be read; the message is one line."""


@dataclass(frozen=True)
class Saved:
    """One file of a run.

    ``path``: relative to the folder that holds the store when the file is below it, else absolute. ``before`` and
    ``after``: sha256 of its bytes, in hexadecimal. ``original``: the stored file's name. ``mode``: the permission bits.
    ``created``: the run has made it, or uses it as another has made it; its original is empty.
    """

    path: str
    before: str
    after: str
    original: str
    mode: int
    outcome: Outcome = "planned"
    created: bool = False


@dataclass(frozen=True)
class Manifest:
    """One run. ``started``: UTC, ISO 8601. ``options``: the command line."""

    run: str
    tool: str
    started: str
    options: tuple[str, ...]
    files: tuple[Saved, ...]
    state: State = "open"
    schema: int = SCHEMA

    @property
    def made(self) -> tuple[Saved, ...]:
        """The files that it has made, or uses as another run has made them; none once it is restored."""
        if self.state == "restored":
            return ()
        return tuple(saved for saved in self.files if saved.created and saved.outcome != "left alone")

    def with_state(self, state: State) -> Manifest:
        """The same run, further on."""
        return replace(self, state=state)


def to_json(manifest: Manifest) -> bytes:
    """The manifest as an indented JSON document. Undecodable bytes in file names survive as lone surrogates."""
    fields = asdict(manifest)
    if any(saved.created for saved in manifest.files):
        fields["schema"] = WITH_CREATED
    else:
        for saved in fields["files"]:
            del saved["created"]
    return (json.dumps(fields, indent=1) + "\n").encode("ascii")


def from_json(data: bytes) -> Manifest:
    """The manifest in ``data``; raises ``ManifestError`` when it is damaged or newer than this code."""
    try:
        fields = json.loads(data)
        if fields["schema"] not in (SCHEMA, WITH_CREATED):
            raise ManifestError(f"has schema {fields['schema']}, this version of fix-compile reads {WITH_CREATED}")
        files = tuple(Saved(**{**saved, "mode": int(saved["mode"])}) for saved in fields["files"])
        return Manifest(**{**fields, "files": files, "options": tuple(fields["options"])})
    except (ValueError, KeyError, TypeError) as error:
        raise ManifestError(f"is damaged ({type(error).__name__})") from None


fcntl: ModuleType | None
try:
    fcntl = importlib.import_module("fcntl")
except ImportError:  # Windows
    fcntl = None

STORE_NAME = ".fix-compile"
#: A folder with one of these is a project.
MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_LOCK_SECONDS = 60.0


class BackupError(Exception):
    """The store cannot be used, or a run is not there; the message is one line."""


@dataclass(frozen=True)
class Applied:
    """What became of the changed files: ``already`` (another run was quicker), ``refused`` with the reason."""

    run: str = ""
    written: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    interrupted: bool = False


def project_root(path: str) -> Path:
    """The nearest folder at or above ``path`` that looks like a project.

    Without one: the working folder when ``path`` lies below it, so that a later ``restore`` there finds the runs, else
    the folder of ``path`` itself.
    """
    start = Path(os.path.abspath(path))
    if not start.is_dir():
        start = start.parent
    for folder in (start, *start.parents):
        if any((folder / marker).exists() for marker in MARKERS):
            return folder
    here = Path.cwd()
    return here if here in (start, *start.parents) else start


def sha256(data: bytes) -> str:
    """The hash that manifests hold."""
    return hashlib.sha256(data).hexdigest()


class Store:
    """The folder with all runs that are remembered, ``runs/0001`` onwards."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._runs = self.folder / "runs"

    def file(self, saved: Saved) -> Path:
        """Where the user's file is."""
        return self.folder.parent / saved.path

    def run_folder(self, run: str) -> Path:
        """Where the originals of a run are."""
        return self._runs / run

    def runs(self) -> list[Manifest]:
        """All runs, oldest first. One that was killed before it had a manifest has changed nothing and is not here."""
        found = []
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for folder in self._run_folders():
                manifest = folder / "manifest.json"
                if manifest.exists():
                    try:
                        found.append(from_json(manifest.read_bytes()))
                    except (ManifestError, OSError) as error:
                        text = reason(error) if isinstance(error, OSError) else str(error)
                        way_out = f"forget {folder.name} removes what is left of that run"
                        raise BackupError(f"{manifest}: {text}; {way_out}") from None
        return found

    def save(self, manifest: Manifest) -> None:
        """Write the manifest, durably and at once."""
        atomic.create(str(self.run_folder(manifest.run) / "manifest.json"), to_json(manifest))

    def record(
        self, changed: Sequence[FileResult], tool: str, options: Sequence[str], needed: Sequence[str] = ()
    ) -> Manifest:
        """Store the originals of ``changed`` under a new run; when this returns, they are on disk. Needs ``locked``.

        ``needed``: what the changed files use as it is; where a run has made it, it is a file of this one as well.
        """
        shared = self._made_by_runs(needed)
        earlier = self._run_folders()
        for folder in earlier:
            if not (folder / "manifest.json").exists():
                shutil.rmtree(folder, ignore_errors=True)
        run = f"{max((int(folder.name) for folder in earlier), default=0) + 1:04d}"
        originals, patched = (self.run_folder(run) / kept for kept in ("originals", "patched"))
        originals.mkdir(parents=True)
        patched.mkdir()
        files = []
        for number, result in enumerate(changed, 1):
            real = os.path.realpath(result.path)
            mode = 0o644 if result.created else stat.S_IMODE(os.stat(real).st_mode)
            name = f"{number:05d}.{os.path.basename(real)[:100]}.orig"
            atomic.write_new(str(originals / name), result.before)
            (patched / name).write_bytes(result.after)  # only for taking the patch out of a file that was edited since
            before, after = sha256(result.before), sha256(result.after)
            files.append(Saved(self._stored(real), before, after, name, mode, created=result.created))
        for number, saved in enumerate(shared, len(changed) + 1):
            name = f"{number:05d}.{os.path.basename(saved.path)[:100]}.orig"
            atomic.write_new(str(originals / name), b"")
            files.append(dataclasses.replace(saved, original=name, outcome="written"))
        for folder in (originals, originals.parent, self._runs, self.folder, self.folder.parent):
            atomic.sync_folder(str(folder))
        started = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        manifest = Manifest(run, tool, started, tuple(options), tuple(files))
        self.save(manifest)
        return manifest

    def damaged(self, run: str) -> bool:
        """Whether there is such a run whose manifest cannot be read."""
        try:
            from_json((self.run_folder(run) / "manifest.json").read_bytes())
        except FileNotFoundError:
            return False
        except (ManifestError, OSError):
            return True
        return False

    def forget(self, run: str) -> None:
        """Remove a run with its originals. Needs ``locked``; raises ``BackupError``."""
        try:
            (self.run_folder(run) / "manifest.json").unlink()  # without it there is no run, whatever comes next
            shutil.rmtree(self.run_folder(run))
        except OSError as error:
            raise BackupError(f"{self.run_folder(run)} cannot be removed: {reason(error)}") from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store for one process; raises ``BackupError`` when it cannot be made, or is held for too long."""
        try:
            self._make()
            handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise BackupError(f"the backup folder {self.folder} cannot be written: {reason(error)}") from None
        try:
            _wait_for_lock(handle, self.folder)
            yield
        finally:
            os.close(handle)  # which lets the lock go, as does the end of the process

    def _run_folders(self) -> list[Path]:
        """Raises ``BackupError`` when they cannot be listed, and ``FileNotFoundError`` when there are none yet."""
        try:
            return sorted((f for f in self._runs.iterdir() if f.name.isdigit()), key=lambda folder: int(folder.name))
        except PermissionError as error:
            raise BackupError(f"{self._runs} cannot be read: {reason(error)}") from None

    def _make(self) -> None:
        new = not self.folder.exists() or not any(self.folder.iterdir())
        self._runs.mkdir(parents=True, exist_ok=True)
        if new:  # never into a folder that was there: it would hide the user's files from git
            atomic.create(str(self.folder / ".gitignore"), b"*\n")

    def _made_by_runs(self, paths: Sequence[str]) -> list[Saved]:
        """What runs that are not restored say of those files that they have made."""
        stored = {self._stored(os.path.realpath(path)) for path in paths}
        made = {saved.path: saved for manifest in self.runs() for saved in manifest.made}
        return [made[path] for path in sorted(stored & made.keys())]

    def _stored(self, real: str) -> str:
        base = os.path.realpath(self.folder.parent)
        inside = os.path.join(real, "").startswith(os.path.join(base, ""))
        return os.path.relpath(real, base) if inside else real


def apply(
    results: Sequence[FileResult], store: Store | None, tool: str, options: Sequence[str], needed: Sequence[str] = ()
) -> Applied:
    """Write the changed files. With a ``store`` their originals go there first; else ``BackupError``, and no write.

    ``needed``: paths of files that they use as they are: `restore` keeps one that a run has made while another uses it.
    """
    changed = [result for result in results if result.changed]
    if not changed:
        return Applied()
    if store is None:
        return _write(changed, "x" + secrets.token_hex(4), {})
    with store.locked():
        try:
            manifest = store.record(changed, tool, options, needed)
        except OSError as error:
            raise BackupError(
                f"the originals cannot be saved in {store.folder}: {reason(error)}; nothing was changed"
            ) from None
        outcomes: dict[str, Outcome] = {}
        applied = _write(changed, manifest.run, outcomes)
        own = tuple(
            dataclasses.replace(saved, outcome=outcomes.get(result.path, "planned"))
            for saved, result in zip(manifest.files, changed, strict=False)
        )
        files = (*own, *manifest.files[len(own) :])
        with contextlib.suppress(OSError):  # the first manifest is enough to restore by
            store.save(dataclasses.replace(manifest, files=files).with_state("applied"))
    return dataclasses.replace(applied, run=manifest.run)


def _write(changed: Sequence[FileResult], label: str, outcomes: dict[str, Outcome]) -> Applied:
    written: list[str] = []
    already: list[str] = []
    refused: list[tuple[str, str]] = []
    try:
        for result in changed:
            try:
                if result.created:
                    atomic.create_absent(result.path, result.after, label)
                new = result.created or atomic.replace(result.path, result.before, result.after, label)
            except atomic.ReplaceError as error:
                refused.append((result.path, str(error)))
                outcomes[result.path] = "left alone"
            else:
                (written if new else already).append(result.path)
                outcomes[result.path] = "written" if new else "left alone"
    except KeyboardInterrupt:
        return Applied("", tuple(written), tuple(already), tuple(refused), interrupted=True)
    return Applied("", tuple(written), tuple(already), tuple(refused))


def _wait_for_lock(handle: int, folder: Path) -> None:
    if fcntl is None:
        return  # no such locks here: atomic replacing and comparing still keep files whole
    patience = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > patience:
                raise BackupError(f"another run has been using {folder} for {_LOCK_SECONDS:.0f} seconds") from None
            time.sleep(0.05)
        except OSError:
            return  # a file system without locks
        else:
            return
