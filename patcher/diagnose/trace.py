"""The structured trace that torch has written, rendered by tlparse when that is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from patcher.harness.measured import Results

_SECONDS = 300


def rendered(results: Results) -> str:
    """What became of the traces of the compiled variants, a line for each; "" when none was asked for."""
    folders = dict.fromkeys(v.trace for case in results.cases for v in case.variants if v.trace)
    return "\n".join(_rendered(Path(folder)) for folder in folders)


def _rendered(folder: Path) -> str:
    logs = sorted(folder.glob("dedicated_log_torch_trace_*"))
    if not logs:
        return f"{folder}: torch has written no trace there"
    program = shutil.which("tlparse")
    if program is None:
        return f"{folder}: the trace is kept; `pip install tlparse`, then `tlparse {logs[0]}` shows it in a browser"
    out = folder / "tlparse"
    command = [program, str(logs[0]), "-o", str(out), "--overwrite", "--no-browser"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{folder}: the trace is kept; tlparse did not come to its end ({type(error).__name__})"
    if done.returncode or not (out / "index.html").exists():
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no message")
        return f"{folder}: the trace is kept; tlparse failed: {last.strip()}"
    return f"{folder}: rendered by tlparse: {out / 'index.html'}"
