"""``new-rule``: the files that a rule of one's own begins with."""

from __future__ import annotations

from pathlib import Path

import click

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
