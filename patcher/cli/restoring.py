"""``restore`` and ``forget``: take a run back, or keep what it has changed for good."""

from __future__ import annotations

import os

import click

from patcher.cli.showing import asks, confirmed, say
from patcher.config import load
from patcher.files.backup import Store
from patcher.files.restore import Edited, forget, restore
from patcher.patching import calls


def restoring() -> click.Command:
    """The command that puts originals back."""

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("run", required=False, metavar="[RUN]")
    @click.option("--keep-edits", is_flag=True, help="In a file that was edited since, take the patch alone out.")
    @click.option("--force", is_flag=True, help="Also where a file was edited since; your version is set aside.")
    @click.option("--backup-dir", metavar="DIR", help="Where the originals are (default: .fix-compile in the project).")
    @click.option("-q", "--quiet", is_flag=True, help="Only errors.")
    @click.option("--no-color", is_flag=True, help="Nothing is coloured here; for symmetry.")
    def put_back(
        run: str | None, keep_edits: bool, force: bool, backup_dir: str | None, quiet: bool, no_color: bool
    ) -> calls.Told:
        """Put the originals of RUN back (default: of the last run that is not restored yet).

        A file that was edited since is left alone, unless --keep-edits or --force is given. Where the edits are beside
        the patch, a question is asked on a terminal.
        """
        if keep_edits and force:
            raise click.UsageError("--keep-edits and --force exclude each other")
        store = _store(backup_dir)
        edited: Edited = "force" if force else "keep edits" if keep_edits else "refuse"
        try:
            done = restore(store, run, edited)
            if done.separable and asks() and edited == "refuse":
                say(calls.told_of(done, quiet))
                what = "it" if len(done.separable) == 1 else f"{len(done.separable)} of them"
                if not confirmed(f"Take the patch alone out of {what}, and keep the edits?"):
                    return calls.Told(calls.FAILURE)
                done = restore(store, done.run, "keep edits")
            return calls.told_of(done, quiet)
        except KeyboardInterrupt:
            return calls.Told(calls.INTERRUPTED, err=("interrupted; the same call restores the rest",))

    return put_back


def forgetting() -> click.Command:
    """The command that forgets a run."""

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("run", required=False, metavar="[RUN]")
    @click.option("--backup-dir", metavar="DIR", help="Where the originals are (default: .fix-compile in the project).")
    @click.option("-q", "--quiet", is_flag=True, help="Only errors.")
    def forgot(run: str | None, backup_dir: str | None, quiet: bool) -> calls.Told:
        """Keep what RUN has changed (default: the last run), and remove its originals.

        It cannot be restored any more, and "check" says nothing more of files that were edited since.
        """
        return calls.forgotten(forget(_store(backup_dir), run), quiet)

    return forgot


def _store(backup_dir: str | None) -> Store:
    return calls.store_for(os.curdir, load(os.curdir), backup_dir)
