"""Run a case once, eagerly, to see that it runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from patcher.harness import plan
from patcher.harness.cases import Case
from patcher.harness.measured import ResultsError, from_json
from patcher.harness.processes import RunError
from patcher.harness.run import run
from patcher.measuring.measure import need_torch

_SECONDS = 120.0  # a published size on a CPU may take longer; a first case is to be small


def trial(file: Path, model: str, python: str) -> str:
    """What one run of the case says: ``it runs: ...``, or why it does not, in one line. ``model``: where imports start.

    Nothing is compiled.
    """
    options = plan.Options(paths=(model,), quick=True, alone=True, eager_untimed=True, seconds=_SECONDS)
    try:
        need_torch(python)
        with tempfile.TemporaryDirectory(prefix="fix-compile-") as folder:
            results = from_json(run(plan.write(Path(folder), (), [Case(file.stem, str(file))], options), python))
    except (RunError, ResultsError, OSError) as error:
        return f"not run: {error}"
    original = results.cases[0].variant("original", "eager")
    if original.status == "timeout":
        return f"it did not finish in {_SECONDS:.0f} s; use smaller sizes"
    if original.figures is None:
        return f"it does not run: {original.message or original.status}"
    kind = "training" if results.cases[0].train else "inference"
    calls = len(original.figures.settled)
    return f"it runs ({kind}, {calls} call{'s' * (calls != 1)}, {original.figures.cold_seconds:.2g} s eager)"
