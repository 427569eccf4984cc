"""What a run has done, as it is written beside the originals."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Literal

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
