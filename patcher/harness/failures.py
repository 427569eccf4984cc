"""What a variant that cannot be measured tells: a status, one line, and the stack in the log."""

from __future__ import annotations

import faulthandler
import os
import re
import sys
import traceback
from typing import Any

import torch
import torch._dynamo

Json = dict[str, Any]
LINE_CHARACTERS, EXPLANATION_CHARACTERS = 400, 2000
HERE = os.path.dirname(os.path.abspath(__file__))
_OURS = (HERE, os.path.join(os.path.dirname(HERE), "run"))  # what replays a recorded call lies there
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "Cannot allocate memory", "MemoryError", "bad_alloc")
_IN_FILE = re.compile(r'File "(.+)", line (\d+)')


class CaseError(Exception):
    """The case cannot be run as it is written; the message is one line."""


class MissingSettingError(Exception):
    """A setting that is asked for does not exist in this torch; the message is one line."""


def is_ours(file: str) -> bool:
    """Whether it is a file of the harness, or of what replays a program."""
    return os.path.dirname(file) in _OURS


def status_of(error: BaseException) -> str:
    """The word for how a variant has ended."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, MemoryError) or any(word in text for word in OUT_OF_MEMORY):
        return "out-of-memory"
    if isinstance(error, CaseError):
        return "case-error"
    if isinstance(error, UnsuitedError):
        return "skipped"
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    compiler = ("torch._dynamo.", "torch._inductor.", "torch._functorch.", "torch.fx.", "triton.")
    return "compile-error" if any(type(e).__module__.startswith(compiler) for e in chain) else "error"


def message_of(error: BaseException) -> str:
    """One line, with the place in the user's code."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    if isinstance(error, (CaseError, UnsuitedError, MissingSettingError)):
        return first[:LINE_CHARACTERS]
    return f"{type(error).__name__}: {first}"[:LINE_CHARACTERS] + _place_of(error)


def _place_of(error: BaseException) -> str:
    """Where the user's code was: as Dynamo tells it, else the innermost place that is not torch's or Python's own."""
    traced = _IN_FILE.findall(str(error).partition("from user code:")[2])
    stack = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__) if not is_ours(f.filename)]
    foreign = (os.path.join(os.path.dirname(torch.__file__), ""), "<frozen ")
    places = traced or [place for place in stack if not place[0].startswith(foreign)] or stack
    return " ({}:{})".format(*places[-1]) if places else ""


def explain(error: BaseException) -> None:
    """The traceback without our own frames."""
    shown = error.__cause__ if isinstance(error, CaseError) and error.__cause__ else error
    stack = [frame for frame in traceback.extract_tb(shown.__traceback__) if not is_ours(frame.filename)]
    sys.stderr.writelines(traceback.format_list(stack) + traceback.format_exception_only(shown))


def explain_ends(spec: Json) -> None:
    """Write to the log where a signal ends the process, and where it is when the run asks.

    Not after a time (``dump_traceback_later``): that reads the frames of a running thread, and may crash it.
    """
    faulthandler.enable()
    if spec.get("where"):
        faulthandler.register(spec["where"], all_threads=False)


class UnsuitedError(Exception):
    """The variant cannot be had for this case, and nobody is to blame; the message is one line."""
