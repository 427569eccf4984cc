"""The command line: words and options, what is printed where, exit status. Nothing else in the project prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import click

from patcher.cli.explaining import rules_of, selftesting
from patcher.cli.patching import patching
from patcher.cli.restoring import forgetting, restoring
from patcher.cli.showing import OutputError, leave_output, open_streams, page, program, say
from patcher.cli.words import PAGES, SEARCHES, is_word, split
from patcher.config import ConfigError
from patcher.files.backup import BackupError
from patcher.own_rules.found import NO_OWN_RULES, OwnRules
from patcher.patching import calls
from patcher.rule import Rule
from patcher.settings import NoFunctionError

#: Words for calls in which no rule takes part.
_WITHOUT_RULES = frozenset({"case", "restore", "forget", "integrate", "new-rule", "mcp"})
_BROKEN_PIPE = 141  # what the shell reports for a program that ends by SIGPIPE


def main(rules: Sequence[Rule], argv: Sequence[str] | None = None, own: OwnRules = NO_OWN_RULES) -> int:
    """Run the command line with these rules and return the exit status.

    ``own``: those of ``rules`` that come from other packages, and what could not be used of them, which is a failure.
    """
    open_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # file names may hold anything
    given = list(sys.argv[1:] if argv is None else argv)
    word, arguments = split(given)
    arguments, behind = _divided(arguments) if word in SEARCHES else (arguments, [])
    called = f"{program()} {given[0]}" if given and is_word(given[0]) else program()
    if not _is_somewhere():
        click.echo(f"{called}: error: the working folder is not there any more", err=True)
        return calls.FAILURE
    try:
        if not given:
            return say(_loaded("starting.seeing"))
        command = _command(word, rules, own, behind)
        with command.make_context(called, arguments) as context:
            problems = own.problems if word not in _WITHOUT_RULES else ()
            for problem in problems:
                click.echo(f"{called}: error: {problem}", err=True)
            status = say(command.invoke(context))
            return max(status, calls.FAILURE) if problems else status
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
    except (ConfigError, BackupError, NoFunctionError) as error:
        click.echo(f"{called}: error: {error}", err=True)
    except BrokenPipeError:  # as when the output goes to `head`
        leave_output()
        return _BROKEN_PIPE
    except OutputError as error:
        leave_output()
        click.echo(f"{called}: error: {error}", err=True)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return calls.INTERRUPTED
    return calls.FAILURE


def _is_somewhere() -> bool:
    try:
        return bool(os.getcwd())  # noqa: PTH109
    except OSError:
        return False


def _divided(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments, and the user's command behind ``--``."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def _command(word: str, rules: Sequence[Rule], own: OwnRules, behind: Sequence[str] = ()) -> click.Command:
    later: dict[str, tuple[Any, ...]] = {
        "case": ("starting.casing",),
        "new-rule": ("starting.beginning",),
        "diagnose": ("diagnosing.diagnosing", rules),
        **dict.fromkeys(SEARCHES, ("optimizing.optimizing", rules, word, behind)),
        "integrate": ("integrating.integrating",),
        "fleet": ("fleet.fleeting", rules),
        "server": ("serving.serving", rules),
        "mcp": ("serving.assisting",),
    }
    makes: dict[str, Callable[[], click.Command]] = {
        "restore": restoring,
        "forget": forgetting,
        "rules": lambda: rules_of(rules, own.origins),
        "selftest": lambda: selftesting(rules, own),
    }
    makes |= {name: partial(_loaded, *given) for name, given in later.items()}
    command = makes[word]() if word in makes else patching(rules, word)
    command.epilog = f"{command.epilog or chr(8)}\nMore: {page(PAGES.get(word, PAGES['']))}"  # \b: as it stands
    return command


def _loaded(name: str, *given: Any) -> Any:
    """What a function of a module here gives; loading some takes as long as a scan of a few files."""
    module, _, function = name.partition(".")
    return getattr(import_module(f"patcher.cli.{module}"), function)(*given)
