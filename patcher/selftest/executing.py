"""Requests for `patcher.harness.examples`, in processes of the Python that is asked for."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import queue
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patcher.config import ConfigError
from patcher.files.kept import read_json, user_folder, write_json
from patcher.rule import Rule


@dataclass(frozen=True)
class Measured:
    """``told``: of each rule that was tried there, by its code: ``helps (6 of 7 examples)``; ``wrong``: of which."""

    torch: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()

    @property
    def minor(self) -> tuple[int, int]:
        """The version as ``--target-torch`` has it; (0, 0) when there is none."""
        found = re.match(r"(\d+)\.(\d+)", self.torch)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def line(self, code: str) -> str:
        """``measured on your torch 2.11.0: helps (6 of 7 examples)``, or nothing."""
        return f"measured on your torch {self.torch}: {self.told[code]}" if code in self.told else ""

    @property
    def lines(self) -> dict[str, str]:
        """`line` of each rule that was tried, by code."""
        return {code: self.line(code) for code in self.told}

    def distrusted(self, target: tuple[int, int]) -> dict[str, str]:
        """The rules that may not fix for this target, by code, and why. What was measured on another says nothing."""
        if target != self.minor:
            return {}
        return dict.fromkeys(self.wrong, f"`fix-compile selftest` has found this fix wrong on your torch {self.torch}")


def measured(rules: Sequence[Rule]) -> Measured:
    """What is kept of these rules for the torch that is installed beside the tool, which is not imported."""
    if not os.path.isdir(folder()):  # noqa: PTH112 - the usual case, and nothing more is done
        return Measured()
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return Measured()
    known = results(torch)
    valid = {
        rule.code: known[rule.code]
        for rule in rules
        if rule.code in known and known[rule.code].get("digest") == rule_digest(rule)
    }
    return Measured(
        torch=torch,
        told={code: str(result.get("told", "")) for code, result in valid.items()},
        wrong=frozenset(code for code, result in valid.items() if result.get("verdict") == "wrong"),
    )


def folder() -> Path:
    """``selftest`` in the folder that the tool has for this user."""
    return user_folder() / "selftest"


def program_digest() -> str:
    """Of the program that executes examples: records of another one are not read."""
    texts = (path.read_bytes() for path in (PROGRAM, PROGRAM.with_name("listener.py")))
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def rule_digest(rule: Rule) -> str:
    """Of a rule's examples: what came of others says nothing about it."""
    told = [[e.title, e.before, e.after, e.run, e.gain, e.compiles] for e in rule.invalid]
    return hashlib.sha256(json.dumps(told).encode("utf-8", "surrogatepass")).hexdigest()


class Records:
    """The records that were made by one interpreter with one program."""

    def __init__(self, made_by: Interpreter, program: str) -> None:
        self._folder = folder() / "records"
        self._made_by = (made_by.torch, made_by.python, program)

    def read(self, request: Json) -> Json | None:
        """The record of this request, if there is one."""
        found = read_json(self._path(request))
        return found if found is not None and ("error" in found or "difference" in found) else None

    def write(self, request: Json, record: Json) -> None:
        """Keep a record; a folder that cannot be written is no reason to fail."""
        write_json(self._path(request), record)

    def _path(self, request: Json) -> Path:
        text = json.dumps([*self._made_by, request], sort_keys=True)
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / name[:2] / f"{name[2:]}.json"


def results(torch: str) -> Mapping[str, Json]:
    """What came of each rule, by its code, on this version of torch."""
    document = read_json(_results_path(torch)) or {}
    rules = document.get("rules")
    return {c: r for c, r in rules.items() if isinstance(r, dict)} if isinstance(rules, dict) else {}


def keep_results(torch: str, told: Iterable[tuple[str, Json]]) -> None:
    """Keep what came of these rules; what is kept of others stays."""
    write_json(_results_path(torch), {"torch": torch, "rules": {**results(torch), **dict(told)}})


def _results_path(torch: str) -> Path:
    return folder() / f"torch-{re.sub(r'[^A-Za-z0-9.+_-]', '_', torch)}.json"


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
