"""Run one model file alone, eager and then under Dynamo, and write down what came out.

    python benchmarks/measure_case.py MODEL.py RESULT.pt

MODEL.py defines ``build()``, ``calls()`` and, when gradients count, ``train = True``. RESULT.pt holds ``outputs`` (the
eager results' tensors, in order), ``gradients`` (by call and parameter) and ``counts`` (what Dynamo did, by name).
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.dynamo import SEED, count, loaded, run_eagerly, tensors


def measure(path: Path) -> dict[str, Any]:
    """Everything about one model file; see the top of this file."""
    with loaded(path, path.stem) as case:
        train = bool(getattr(case, "train", False))
        torch.manual_seed(SEED)
        ran = run_eagerly(case.build(), case.calls(), train=train)
        torch.manual_seed(SEED)
        counts = count(case.build(), case.calls(), train=train)
    figures = {f.name: getattr(counts, f.name) for f in dataclasses.fields(counts) if f.compare}
    return {"outputs": tensors(list(ran.outputs)), "gradients": list(ran.gradients), "counts": figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("result", type=Path)
    options = parser.parse_args()
    torch.save(measure(options.model.resolve()), options.result)


if __name__ == "__main__":
    main()
