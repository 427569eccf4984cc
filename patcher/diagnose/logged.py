"""Diagnose from what torch has logged, on any machine, without a run."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from patcher.diagnose.bench import State
from patcher.diagnose.diagnosing import Diagnosed, Wanted, Whole
from patcher.diagnose.events import seen_in
from patcher.diagnose.places import Places
from patcher.harness.compare import Judgement
from patcher.harness.measured import from_json
from patcher.harness.processes import RunError, usual_variables
from patcher.harness.run import HERE, SCHEMA
from patcher.patching.analysis import Analysis
from patcher.settings import Settings
from patcher.version import VERSION

_SECONDS = 600


def logged(analysis: Analysis, settings: Settings, wanted: Wanted, log: Path) -> Diagnosed:
    """Return the causes in ``log``, with fixes as diffs: a text of ``TORCH_LOGS``, or a folder of ``TORCH_TRACE``.

    Raises ``RunError`` where it cannot be read, or holds no break, recompile or skip.
    """
    places = Places(analysis.files, wanted.options.base, ())
    figures = _figures(wanted.python, log, [places.shown(path) for path in analysis.files])
    files = figures.pop("files")
    if not files or not any(figures["counts"].values()):
        raise RunError(
            f"{log}: no graph break, recompile or skip is logged there; run the program with"
            ' TORCH_LOGS="graph_breaks,recompiles,cudagraphs", or with TORCH_TRACE=FOLDER'
        )
    variants = [
        {"tree": "original", "kind": "eager", "mode": None, "status": "skipped"},
        {"tree": "original", "kind": "compiled", "mode": "default", "status": "ok", **figures},
    ]
    case = {"name": log.name, "tolerance": 1e-3, "variants": variants, "comparisons": []}
    plan = {"tool": VERSION, "command": [], "modes": ["default"], "backend": "inductor", "quick": True}
    plan = {**plan, "overlay": [], "promise": "bitwise"}
    results = from_json(
        {"schema": SCHEMA, "plan": plan, "environment": {}, "started": "", "seconds": 0.0, "cases": [case]}
    )
    seen = seen_in(results.cases[0], "original", "default", {})
    state = State((), results, Judgement(()), (seen,) if seen else (), ())
    whole = Whole(analysis, settings, wanted, places, state)
    told = whole.diagnosis(whole.causes())
    started = datetime.fromtimestamp(log.stat().st_mtime, timezone.utc).isoformat(timespec="seconds")
    facts = (f"read from {log}; nothing was run, so times and launches are not known",)
    return Diagnosed(replace(told, facts=facts, started=started, results=None, diagnostics=()))


def _figures(python: str, log: Path, files: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="fix-compile-") as folder:
        spec = Path(folder, "spec.json")
        spec.write_text(json.dumps({"log": str(log.resolve()), "files": files}), encoding="utf-8")
        command = [python, str(HERE / "logs.py"), str(spec)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=usual_variables()
            )
            figures: dict[str, Any] = json.loads(done.stdout)
        except (OSError, subprocess.TimeoutExpired, ValueError):
            raise RunError(f"{log}: cannot be read by {python}") from None
    return figures
