"""``case``, and the call without any argument: the first minutes with a project."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from patcher.cli.showing import program
from patcher.newcase.call import Asked, case, overview
from patcher.own_rules.skeleton import new_rule
from patcher.patching import calls


def beginning() -> click.Command:
    """The command that writes the skeleton of a rule."""

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("code")
    @click.argument("name", default="my-pattern")
    @click.option("--package", default="own_rules", metavar="NAME", help="The package it belongs to (own_rules).")
    @click.option(
        "--into", type=click.Path(file_okay=False, path_type=Path), default=Path(), metavar="DIR", help="Where it goes."
    )
    def begin(code: str, name: str, package: str, into: Path) -> calls.Told:
        """Begin a rule of your own: a package with the rule CODE (FC901) called NAME, and its test.

        What is written works as it stands, and is to be changed. A second rule goes into the same package. Nothing is
        overwritten.
        """
        return new_rule(code.upper(), name, package, into)

    return begin


_EPILOG = """\b
Exit status: 0 there is a case, 2 there is no such model, or the file is
there already."""


def casing() -> click.Command:
    """The command that writes a first case."""

    @click.command(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("model", metavar="PATH/TO/MODEL.py:CLASS")
    @click.option("-o", "--output", metavar="FILE", help="Where it goes (default: cases/ of the project; -: stdout).")
    @click.option("--force", is_flag=True, help="Overwrite a file that is there.")
    @click.option("--python", metavar="EXE", default=sys.executable, help="What runs it once (default: this Python).")
    @click.option("--no-run", is_flag=True, help="Do not run it: nothing of the project is imported.")
    @click.option("-q", "--quiet", is_flag=True, help="Not where things are from; only the file and errors.")
    @click.option("--no-color", is_flag=True, help="Nothing is coloured here; for symmetry.")
    def first(
        model: str, output: str | None, force: bool, python: str, no_run: bool, quiet: bool, no_color: bool
    ) -> calls.Told:
        """Write a first case file: how a model is built and called, as far as its project says so.

        Arguments come from calls in its tests, configuration classes, defaults, layers, type hints and docstrings.
        What none of them says is a marked blank, with the reason. A case without blanks is run once, eagerly.
        """
        told = case(Asked(model, output, force, program(), "" if no_run else python))
        return calls.Told(told.status, told.out) if quiet and told.status == calls.OK else told

    return first


def seeing() -> calls.Told:
    """What there is in the project of the working folder."""
    return overview(program())
