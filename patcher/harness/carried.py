"""Read the results that a folder has brought back from another machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from patcher.harness.plan import PLAN, RESULTS, WORKER


class CarriedError(Exception):
    """There are no results to read; the message is one line."""


def load(path: Path) -> dict[str, Any]:
    """The results in an exported folder, or of a results file. Raises ``CarriedError``."""
    if not path.exists():
        raise CarriedError(f"{path}: no such file or folder")
    if not path.is_dir():
        return _read(path)
    if (path / RESULTS).exists():
        return _read(path / RESULTS)
    if (path / PLAN).exists():
        raise CarriedError(f'{path}: there are no results yet; run "python {WORKER} {PLAN}" there first')
    raise CarriedError(f"{path}: holds neither {RESULTS} nor {PLAN}, so it is no exported folder")


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise CarriedError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CarriedError(f"{file}: is not valid JSON: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict) or not {"schema", "plan", "cases"} <= document.keys():
        raise CarriedError(f"{file}: holds no results of {WORKER}")
    return document
