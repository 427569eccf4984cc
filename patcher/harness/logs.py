"""Read what torch has logged, on whatever machine: ``python logs.py SPEC.json``.

SPEC.json: the ``log``, a text of ``TORCH_LOGS="graph_breaks,recompiles,cudagraphs"`` or a folder of ``TORCH_TRACE``,
and the ``files`` of the user's project here, as they are shown. Writes the figures of a compiled variant to stdout, as
``results.json`` holds them. Standard library, torch and ``worker.py``, which lies beside this file.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

if not __package__:  # run by its path: what lies beside it is one package
    __package__ = str(__import__("worker").__package__)

from .listener import _TRACED, Listener, described

Json = dict[str, Any]
_HEADER = re.compile(r"^(?:\[rank\d+\]:)?([VDIWEC])\d{4} [\d:.]+ \d+ \S+?:\d+\](?: \[[^\]\s]*\])*(?: \[__\w+\])* ?")
_BEGINS = re.compile(r"Graph break |Recompiling function |torch\._dynamo hit config|skipping cudagraph|WON'T CONVERT")
_FILE = re.compile(r"[^\s\"'(]*\.py\b")
_LEVELS = {"W": logging.WARNING, "E": logging.ERROR, "C": logging.CRITICAL}


class Reader(Listener):
    """A listener for logged texts. The stack of a break is the one in its text, since nothing runs."""

    text = ""

    def take(self, text: str, level: int = logging.DEBUG) -> None:
        """Handle one record."""
        self.text = text
        self.emit(logging.LogRecord("torch", level, "", 0, text.replace("%", "%%"), (), None))

    def _stack(self, blamed: list[tuple[str, int, str]]) -> list[str]:
        frames = _TRACED.findall(self.text.partition("User code traceback:")[2])
        return self._told([], [(file, int(line), name) for file, line, name in frames])


def of_text(lines: Iterator[str]) -> Iterator[tuple[str, int]]:
    """Yield the records of a text log, without the prefix of each line, and their levels."""
    record, last, level = list[str](), "", logging.DEBUG
    for line in lines:
        found = _HEADER.match(line)
        rest = line[found.end() :] if found else line
        if record and (not found or found[0] != last or _BEGINS.match(rest)):
            yield "\n".join(record), level
            record = []
        if found:
            record.append(rest)
            last, level = found[0], _LEVELS.get(found[1], logging.DEBUG)
        elif _BEGINS.match(rest):  # with a format of the user's own
            record.append(rest)
            last = ""
    if record:
        yield "\n".join(record), level


def of_trace(lines: Iterator[str]) -> Iterator[tuple[str, int]]:
    """Yield the breaks and recompiles of a structured trace, as records of a text log."""
    reasons: list[str] = []
    entry: Json = {}
    payload: list[str] = []
    for line in itertools.chain(lines, ("V0000 00:00:00 0 end:0] {}",)):
        if line.startswith("\t"):
            payload.append(line[1:])
            continue
        name = entry.get("artifact", {}).get("name")
        if name == "dynamo_graph_break_reason":
            yield "\n".join(payload), logging.DEBUG
        elif name == "recompile_reasons":
            reasons = [one.strip() for one in payload if one.strip(" []\"',")]
        metrics = entry.get("compilation_metrics") or {}
        if reasons and metrics.get("co_filename"):
            place = "{co_name} in {co_filename}:{co_firstlineno}".format_map(metrics)
            yield f"Recompiling function {place}\n    - {reasons[0]}", logging.DEBUG
            reasons = []
        found = _HEADER.match(line)
        entry, payload = _json(line[found.end() :] if found else ""), []


def _json(text: str) -> Json:
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def mapped(files: Sequence[str]) -> Callable[[str], str]:
    """Return a function that replaces paths of another machine by the local file with the longest common ending.

    A path with several such files, or none, stays as it is.
    """
    ours = [(file, Path(file).parts[::-1]) for file in files]

    def here(found: re.Match[str]) -> str:
        parts = Path(found[0]).parts[::-1]
        shared = [(_shared(parts, own), file) for file, own in ours]
        most = max((number for number, _ in shared), default=0)
        best = [file for number, file in shared if number == most]
        return best[0] if most and len(best) == 1 else found[0]

    return lambda text: _FILE.sub(here, text)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many parts of two reversed paths are equal."""
    return next((number for number, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))  # noqa: B905


def figures(log: Path, files: Sequence[str]) -> Json:
    """Return what was logged, as the figures of a compiled variant."""
    reader = Reader(mapped(files))
    texts = sorted(log.glob("dedicated_log_torch_trace_*")) if log.is_dir() else [log]
    read = of_trace if log.is_dir() else of_text
    for text in texts:
        with text.open(encoding="utf-8", errors="replace") as stream:
            for record, level in read(line.rstrip("\n") for line in stream):
                reader.take(record, level)
    counts = {key: count for key, count in reader.counts().items() if key not in ("launches", "operators")}
    return {"counts": counts, "launches": 0, "operators": 0, "files": len(texts), **described(reader)}


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.stdout.write(json.dumps(figures(Path(asked["log"]), asked["files"])))
