"""What is printed, and where: results to stdout, what there is to say about them to stderr."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from patcher.files.source import reason
from patcher.harness.processes import Event
from patcher.patching import calls

#: The documentation, which is installed beside the engine.
_PAGES = Path(__file__).resolve().parents[2] / "docs"


def page(name: str) -> str:
    """Where a page of the documentation is, to be opened: relative to the working folder where it is below that."""
    file = _PAGES / f"{name}.md"
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def progress(what: str = "files") -> Callable[[int, int], None]:
    """Appears after a second, and moves ten times a second at most."""
    due = time.monotonic() + 1.0

    def show(done: int, total: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + 0.1
            click.echo(f"\r{done} of {total} {what}", err=True, nl=False)

    return show


def left(ends: float | None) -> str:
    """The seconds until ``ends``, a time of ``time.monotonic``."""
    return "" if ends is None else f" ({max(0.0, ends - time.monotonic()):.0f} s left)"


def measuring(ends: float | None = None) -> Callable[[Event], None]:
    """Which variant is being measured: one line that moves on a terminal, else one for each that has ended."""
    moving = sys.stderr.isatty()

    def show(event: Event) -> None:
        status = "" if event.status in ("", "ok") else f": {event.status}"
        done = " done" if event.what == "end" and not moving else ""
        line = f"[{event.seconds:.0f} s] {event.number} of {event.of}{done}: {event.case}, {event.variant}{status}"
        if moving:
            last = event.what == "end" and event.number == event.of
            click.echo("\r\x1b[K" + ("" if last else line + left(ends)), err=True, nl=False)
        elif event.what == "end":
            click.echo(line, err=True)

    return show


def first(lines: Sequence[str]) -> None:
    """What is known before the report is there."""
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", err=True, nl=False)
    for line in lines:
        click.echo(line, err=True)


def say(told: calls.Told) -> int:
    """Print the end of a call; returns its exit status. Raises ``OutputError``, and ``BrokenPipeError``."""
    failed: OSError | None = None
    try:
        if isinstance(told.out, bytes):
            sys.stdout.flush()
            sys.stdout.buffer.write(told.out)
        else:
            sys.stdout.write(told.out)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk; what there is to say is said nevertheless
        failed = error
    for line in told.err:
        click.echo(line, err=True)
    if failed is not None:
        raise OutputError(f"the output cannot be written: {reason(failed)}")
    return told.status


class OutputError(Exception):
    """Standard output takes no more; the message is one line."""


def open_streams() -> None:
    """Give a process that was started with closed streams some: what is written there is lost, and nothing comes in."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def leave_output() -> None:
    """Let go of an output that fails, so that the end of Python does not try again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def asks() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirmed(question: str) -> bool:
    """Whether somebody says yes."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        return False


def colour(no_color: bool) -> bool:
    """Whether stdout takes colours."""
    forbidden = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not forbidden


def program() -> str:
    """How the user has called us, as it is typed, for the calls that we suggest."""
    return shlex.join(program_words())


def program_words() -> tuple[str, ...]:
    """The same as words."""
    if getattr(sys.modules["__main__"].__spec__, "name", "") == "fix_compile":
        return "python", "-m", "fix_compile"
    return ("python", sys.argv[0]) if sys.argv[0].endswith("fix_compile.py") else ("fix-compile",)
