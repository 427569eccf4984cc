"""``server`` and ``mcp``: this tool for editors and for assistants, over standard input and output."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import click

from patcher.config import ConfigError
from patcher.edit.suppress import OF_COMMENTS
from patcher.patching import calls
from patcher.rule import Rule


def serving(rules: Sequence[Rule]) -> click.Command:
    """The command that is a language server."""

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.option("--stdio", is_flag=True, help="Standard input and output: the only way there is; editors say so.")
    def serve(stdio: bool) -> calls.Told:
        """Be a language server for an editor: findings while you type, what they mean, and their fixes.

        It needs pygls: pip install 'fix-compile[server]'.
        """
        try:
            from patcher.editor.server import make_server
        except ImportError as error:
            raise ConfigError(_missing("server", error)) from None
        warnings.simplefilter("ignore")  # of the sources that are looked at
        server = make_server((*OF_COMMENTS, *rules))
        with _own_streams() as (stdin, stdout):
            try:
                server.start_io(stdin, stdout)
            finally:
                server.stop()
        return calls.Told(calls.OK)

    return serve


def assisting() -> click.Command:
    """The command that is a server of the model context protocol."""

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    def assist() -> calls.Told:
        """Be a server of the Model Context Protocol, for coding assistants: check, diagnose, judge, prove.

        It needs mcp: pip install 'fix-compile[mcp]'.
        """
        try:
            from patcher.assistants.server import make_server
        except ImportError as error:
            raise ConfigError(_missing("mcp", error)) from None
        make_server().run()
        return calls.Told(calls.OK)

    return assist


@contextlib.contextmanager
def _own_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Input and output for the protocol alone: what is printed meanwhile goes to stderr, and what is closed is ours."""
    sys.stdout.flush()
    with (
        os.fdopen(os.dup(sys.stdin.fileno()), "rb") as stdin,
        os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stdout,
        contextlib.redirect_stdout(sys.stderr),
    ):
        yield stdin, stdout


def _missing(extra: str, error: ImportError) -> str:
    told = str(error)
    return f"{told[:1].lower()}{told[1:]}; install it with: pip install 'fix-compile[{extra}]'"
