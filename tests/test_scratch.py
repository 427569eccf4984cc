"""Temporary folders of processes that were killed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from patcher.harness import scratch


def test_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = scratch.scratch_folder()
    assert ours.name.startswith(f"fix-compile-{os.getpid()}-")
    new, killed, others = (tmp_path / f"fix-compile-{name}" for name in ("12-new", "12-old", "report"))
    for folder in (new, killed, others):
        folder.mkdir()
    for folder in (ours, killed, others):
        os.utime(folder, (1, 1))
    with scratch.scratch() as folder:
        assert {ours, new, others, folder} == set(tmp_path.iterdir())
    assert not folder.exists()
