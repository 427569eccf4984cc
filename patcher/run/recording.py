"""Record a program: run it in a process of its own, and read what was seen."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patcher.harness.cases import Case
from patcher.harness.forks import Forked, Forks
from patcher.harness.processes import has_ended, signals_as_exceptions, usual_variables
from patcher.run.program import Program

RECORDING = "recording.json"
_BEAT_SECONDS = 0.2
_LISTED = 8  # names that --target may have
_TAIL = 5  # lines of a program that fails


class RecordingError(Exception):
    """A program that cannot be measured; the message is one line, ``tail`` the last lines that it printed."""

    def __init__(self, message: str, tail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.tail = tuple(tail)


@dataclass(frozen=True)
class Recording:
    """What a run has shown.

    ``folder``: where it lies. ``files``: of the user's project, whose functions ran in the recorded calls, or that
    compile something.
    ``target``: what is measured, as a person names it. ``signatures``: how many calls were kept, of ``called``.
    ``compiled``: whether the program compiles it, or a part of it. ``compiles``: what the program compiles, and calls;
    ``uncalled``: what it compiles, and does not call. ``gpu``:
    the bytes of GPU memory that it held at most, and that there are; None where it uses none. ``inner``: the parts
    that a method calls; ``method``: it, or the function, as code names it, where it is compiled itself.
    """

    folder: Path
    target: str
    files: tuple[str, ...]
    signatures: int
    called: int
    compiled: bool
    compiles: tuple[str, ...]
    uncalled: tuple[str, ...]
    trains: bool
    seconds: float
    gpu: tuple[int, int] | None = None
    inner: tuple[str, ...] = ()
    method: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """What would be compiled in place, as code may name it: the module, or the parts of it that a method calls."""
        return tuple(f"model.{name}" if name else "model" for name in self.inner) or ("model",)

    def compiling(self, arguments: str) -> list[str]:
        """How to compile what was recorded, as statements."""
        given = f", {arguments}" if arguments else ""
        if self.method:
            return [f"{self.method} = torch.compile({self.method}{given})"]
        own = [f"{model} = torch.compile({model}{given})" for model in self.models if model.endswith(".forward")]
        return own + [f"{model}.compile({arguments})" for model in self.models if not model.endswith(".forward")]

    @property
    def case(self) -> Case:
        """As a case of the harness."""
        return Case("program", str(self.folder / RECORDING), recorded=str(self.folder))

    @property
    def told(self) -> str:
        """In one line."""
        how = "training" if self.trains else "inference"
        kept = f"{self.signatures} of the first {self.called} calls" if self.signatures else "the first call"
        lost = f"; compiled and not called: {', '.join(self.uncalled)}" if self.uncalled else ""
        return f"recorded {self.target} ({how}): {kept}, {self.seconds:.0f} s{lost}"


def record(
    program: Program,
    python: str,
    folder: Path,
    seconds: float,
    target: str = "",
    beat: Callable[[], None] = lambda: None,
    forks: Forks | None = None,
) -> Recording:
    """Run the program under the recorder. Raises ``RecordingError``.

    ``target``: a module's class or a function, by its name, in the place of what takes the most time. ``beat``: is
    called a few times a second. A method is recorded in a second run, since its arguments are only known there;
    ``forks`` starts that one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = _with_input(program, folder / "stdin")
    told = _once(program, python, folder, seconds, {"named": target}, beat)
    if told["target"] and told["target"]["kind"] == "method" and not told["calls"]:
        compiled = told["compiled"]
        told = _once(program, python, folder, seconds, {"target": told["target"]}, beat, forks=forks)
        told["compiled"] = compiled or told["compiled"]
        (folder / RECORDING).write_text(json.dumps(told, indent=1), encoding="utf-8")
    return recorded_in(folder)


def recorded_in(folder: Path) -> Recording:
    """What a folder holds that a program was recorded into."""
    told = json.loads((folder / RECORDING).read_text(encoding="utf-8"))
    calls = [call for call in told["calls"] if call["file"]]
    described = told["target"]
    return Recording(
        folder,
        ".".join(filter(None, (described["qualname"], described["method"]))),
        tuple(told["files"]),
        len(calls),
        told["called"],
        told["compiled"],
        tuple(handle["what"] for handle in told["compiles"] if handle["called"]),
        tuple(handle["what"] for handle in told["compiles"] if not handle["called"]),
        any(call["gradients"] for call in calls),
        told["seconds"],
        tuple(told["gpu"]) if told["gpu"] else None,
        tuple(told["inner"]),
        _whole(described) if told["whole"] else "",
    )


_SAVED = '''"""{target} as `{command}` calls it, with the recorded arguments in {folder}/.

Run it: fix-compile optimize --case {file}
"""

RECORDED = "{folder}"
'''


def save(recording: Recording, file: Path, command: Sequence[str], python: str) -> None:
    """Write a recording as a case file, with a folder of the recorded inputs beside it. Raises ``RecordingError``."""
    told = json.loads((recording.folder / RECORDING).read_text(encoding="utf-8"))
    folder = file.with_suffix(".recorded")
    shown = shlex.join(command).replace("\\", "\\\\").replace('"', "'")
    given = "" if python == sys.executable else f" --python {python}"
    text = _SAVED.format(target=recording.target, command=shown, file=f"{file}{given}", folder=folder.name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        inputs = (call[key] for call in told["calls"] for key in ("file", "gradients"))
        for name in filter(None, (*inputs, "stdin" * bool(told["program"]["stdin"]))):
            shutil.copyfile(recording.folder / name, folder / name)
        told["program"]["stdin"] = "stdin" * bool(told["program"]["stdin"])
        told["cwd"] = os.path.relpath(os.path.realpath(os.curdir), os.path.realpath(folder))
        (folder / RECORDING).write_text(json.dumps(told, indent=1), encoding="utf-8")
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"--save-case {file}: {error.strerror}") from None


def _with_input(program: Program, file: Path) -> Program:
    """The program with our standard input, kept in a file for the processes that run it anew; not with a terminal."""
    if os.isatty(0):
        return program
    os.mkfifo(f"{file}.now")

    def copy() -> None:
        with contextlib.suppress(OSError), file.open("wb", 0) as kept, Path(f"{file}.now").open("wb", 0) as now:
            while data := os.read(0, 2**16):
                kept.write(data)
                now.write(data)

    file.touch()
    threading.Thread(target=copy, daemon=True).start()
    return replace(program, stdin=str(file))


def _whole(target: dict[str, Any]) -> str:
    """What is compiled itself: a method of the model, or a function."""
    return f"model.{target['method']}" if target["kind"] == "method" else str(target["qualname"])


def _once(
    program: Program,
    python: str,
    folder: Path,
    seconds: float,
    asked: dict[str, Any],
    beat: Callable[[], None],
    forks: Forks | None = None,
) -> dict[str, Any]:
    spec = folder / "spec.json"
    roots = [str(Path.cwd())]
    if program.kind == "file" and "bin" not in Path(program.name).parts:
        roots.append(str(Path(os.path.realpath(program.name)).parent))
    spec.write_text(
        json.dumps({"program": program.json(), "folder": str(folder), "seconds": seconds, "roots": roots, **asked}),
        encoding="utf-8",
    )
    (folder / RECORDING).unlink(missing_ok=True)
    with (folder / "log.txt").open("wb") as log, signals_as_exceptions():
        variables, recorder = usual_variables(), Path(__file__).with_name("recorder.py")
        process = forks.start(recorder, str(spec), variables, log.fileno()) if forks is not None else None
        try:
            process = process or subprocess.Popen(
                [python, str(recorder), str(spec)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=variables,
                start_new_session=True,
            )
        except OSError as error:
            raise RecordingError(f"{python} cannot be started: {error.strerror}") from None
        _waited(process, seconds, beat)
    tail = (folder / "log.txt").read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:]
    try:
        told: dict[str, Any] = json.loads((folder / RECORDING).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise RecordingError(f"your program ended with status {process.returncode} before a call", tail) from None
    if told["error"] and not told["target"]:
        raise RecordingError(f"your program fails before a model is called: {told['error']}", tail)
    if not told["target"]:
        raise RecordingError(_nothing(told, asked.get("named", "")), tail)
    return told


def _nothing(told: dict[str, Any], named: str) -> str:
    """Why nothing was recorded, and what to do."""
    most = sorted(told["passed"].items(), key=lambda one: -one[1])[:_LISTED]
    seen = ", ".join(f"{name} ({calls} call{'s' * (calls != 1)})" for name, calls in most)
    if named:
        others = f"; --target takes a class, a function or a method: {seen}" if seen else ""
        return f"{told['ended']}: no call of {named} was seen{others}"
    made = {0: "no module was made", 1: "1 module was made, and not called"}
    why = made.get(told["modules"], f"{told['modules']} modules were made, and none was called")
    return f"{told['ended']}: {why}; have the program call its model, or give it more steps"


def _waited(process: Forked | subprocess.Popen[bytes], seconds: float, beat: Callable[[], None]) -> None:
    """Wait for the end, and end all that the program has started."""
    over = time.monotonic() + seconds + 30
    try:
        while not has_ended(process, _BEAT_SECONDS) and time.monotonic() < over:
            beat()
    finally:
        if process.returncode is None or isinstance(process, subprocess.Popen):  # the number of a fork may be another's
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def interpreter(program: Program, given: str | None) -> str:
    """The Python that runs the program: the one asked for, the command's own, else this one."""
    return given or program.python or sys.executable
