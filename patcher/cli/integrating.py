"""``integrate``: a script that compiles nothing gets arguments for it, the call, and clean checkpoints."""

from __future__ import annotations

import sys
from typing import Any

import click

from patcher.cli.patching import given_paths
from patcher.cli.showing import asks, colour, confirmed, program, say
from patcher.config import load
from patcher.integrate.call import shown, write_down
from patcher.integrate.integrating import integrated
from patcher.integrate.plan import Wanted
from patcher.patching import calls

_EPILOG = """\b
Exit status: 0 done (or nothing to do), 1 the script cannot be integrated as
it is; nothing was changed, 2 something failed; nothing was changed."""


def integrating() -> click.Command:
    """The command that integrates compilation into a script."""

    @click.command(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("scripts", nargs=-1, required=True, metavar="SCRIPT...")
    @click.option("--dry-run", is_flag=True, help="Print what would change as a unified diff and write nothing.")
    @click.option("-y", "--yes", is_flag=True, help="Write without showing and asking first.")
    @click.option("--model", default="", metavar="NAME", help="The variable that holds the model (default: found).")
    @click.option(
        "--module", default="compile_utils", metavar="NAME", help="What the new module is called (compile_utils)."
    )
    @click.option("--backup/--no-backup", default=True, help="Save the originals first (default), or do not.")
    @click.option("--backup-dir", metavar="DIR", help="Where to save them (default: .fix-compile in the project).")
    @click.option("-q", "--quiet", is_flag=True, help="Only results and errors.")
    @click.option("--no-color", is_flag=True, help="No colours (also: NO_COLOR in the environment).")
    def integrate(scripts: tuple[str, ...], model: str, module: str, **given: Any) -> calls.Told:
        """Give a script that compiles nothing torch.compile: six arguments, the call, checkpoints as before.

        The first SCRIPT is the one that is run. The others are files of it that may change as well: where its parser is
        made, its model is built, its checkpoints are saved. Without --compile the script does what it did. A module
        with all that is needed is written beside it; "restore" takes everything back.
        """
        if not module.isidentifier():
            raise click.UsageError(f"--module takes a name as Python has them, not {module!r}")
        paths = given_paths(scripts, ())
        config = load(paths[0])
        store, quiet = calls.store_for(paths[0], config, given["backup_dir"]), given["quiet"]
        outcome = integrated(paths, Wanted(model, module))
        if given["dry_run"] or not outcome.results:
            return shown(outcome, quiet, colour(given["no_color"]))
        if not given["yes"] and asks():
            say(shown(outcome, quiet, colour(given["no_color"])))
            files = len(outcome.results)
            if not confirmed(f"Write {'this file' if files == 1 else f'these {files} files'}?"):
                return calls.Told(calls.OK, err=("nothing was changed",))
        return write_down(outcome, store if given["backup"] else None, sys.argv[1:], program(), quiet)

    return integrate
