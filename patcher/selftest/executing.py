"""Requests for `patcher.harness.examples`, in processes of the Python that is asked for."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patcher.config import ConfigError

Json = dict[str, Any]

PROGRAM = Path(__file__).resolve().parent.parent / "harness" / "examples.py"
SECONDS = 300.0  # that one example may take
_ASKED_SECONDS = 120.0

# ``-c`` puts the working folder first, and in the one for temporary files lie modules of anybody: Python's own
# modules would import an `nt.py` there.
_ASK = """
import sys
sys.path[:] = filter(None, sys.path)
import importlib.metadata, importlib.util, json, platform
def version():
    if importlib.util.find_spec("torch") is None:
        return None
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        import torch
        return torch.__version__
print(json.dumps({"torch": version(), "python": platform.python_version()}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python that has torch: how it is started, and the versions of both."""

    executable: str
    python: str
    torch: str


def interpreter(executable: str) -> Interpreter:
    """Ask for the versions, without importing torch where its metadata tell; raises ``ConfigError``."""
    try:
        asked = subprocess.run(
            [executable, "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=_ASKED_SECONDS,
            check=False,
            cwd=tempfile.gettempdir(),
        )
    except OSError as error:
        raise ConfigError(f"{executable} cannot be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{executable} does not answer within {_ASKED_SECONDS:.0f} seconds") from None
    except ValueError:  # bytes that are no text
        told, last = None, "it says no text"
    else:
        told, last = _told(asked.stdout), _last(asked.stderr) or _last(asked.stdout)
        last = last or f"it says nothing, and ends with status {asked.returncode}"
    if told is None:
        raise ConfigError(f"{executable} does not answer as a Python does: {last}")
    if not told.get("torch"):
        raise ConfigError(f"{executable} has no torch; --python names another")
    return Interpreter(executable, str(told["python"]), str(told["torch"]))


def _told(output: str) -> Json | None:
    """What stands in the last line; None when it is no answer. How the process ends after it is its own affair."""
    try:
        told = json.loads(_last(output))
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _last(output: str) -> str:
    return output.strip().rpartition("\n")[2].strip()


def execute(
    executable: str,
    requests: Sequence[Json],
    jobs: int,
    done: Callable[[int, Json, bool], None],
    seconds: float = SECONDS,
) -> None:
    """Execute the requests in ``jobs`` processes; ``done(number, record, ended)`` is called as each is over.

    ``ended``: the process ended, or was ended after ``seconds``, and the record says that instead of what came of it.
    ``done`` is called by one thread at a time. Raises ``ConfigError`` when no process can be made to answer at all.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(requests)):
        waiting.put(number)
    lock = threading.Lock()
    failures: list[BaseException] = []

    def work() -> None:
        process: _Process | None = None
        try:
            while not failures:
                try:
                    number = waiting.get_nowait()
                except queue.Empty:
                    return
                process = process or _Process(executable, seconds)
                record = process.answer(requests[number])
                ended = record is None
                told = record if record is not None else {"error": process.end(), "of": "run"}
                process = None if ended else process
                with lock:
                    done(number, told, ended)
        except BaseException as error:
            failures.append(error)
        finally:
            if process is not None:
                process.end()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(jobs, len(requests)))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
    except BaseException as error:  # as when the user interrupts: the threads end their processes
        failures.append(error)
        raise
    if failures:
        raise failures[0]


class _Process:
    """One process that answers requests; it is ended when an answer takes too long."""

    def __init__(self, executable: str, seconds: float) -> None:
        self._seconds, self._late = seconds, False
        self._process = subprocess.Popen(
            [executable, str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=tempfile.gettempdir(),
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        if self._line() is None:
            said = _last(self._process.stderr.read()) if self._process.stderr else ""
            self.end()
            raise ConfigError(f"{executable} cannot run examples: {said or 'it says nothing'}")

    def answer(self, request: Json) -> Json | None:
        """The record; None when the process ended instead."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:
            return None
        return self._line()

    def end(self) -> str:
        """End the process, and say how it ended."""
        if self._late:
            self._process.wait()
            return f"took longer than {self._seconds:.0f} seconds"
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            code = self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return f"the process ended with status {code}"

    def _line(self) -> Json | None:
        assert self._process.stdout is not None
        timer = threading.Timer(self._seconds, self._kill)
        timer.daemon = True
        timer.start()
        try:
            return dict(json.loads(self._process.stdout.readline()))
        except ValueError:  # nothing, or less than a line
            return None
        finally:
            timer.cancel()

    def _kill(self) -> None:
        self._late = True
        self._process.kill()
