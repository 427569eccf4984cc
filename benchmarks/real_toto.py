"""toto's ``run_lsf_eval.py`` with a small Toto on made-up numbers, and what it says of it. For ``real_scripts.py``.

python benchmarks/real_toto.py TOLD BACKEND       in a copy of toto; BACKEND "": as the script has it
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from real_running import Recorded, loads


def hours_of_numbers() -> None:
    """400 hours of three numbers, where the script looks for its data."""
    file = Path("data", "lsf_datasets", "electricity", "electricity.csv")
    file.parent.mkdir(parents=True, exist_ok=True)
    hours = np.arange(400)
    columns = {name: np.sin(hours / (i + 3)) + i for i, name in enumerate(("one", "two", "OT"))}
    pd.DataFrame({"date": pd.date_range("2024-01-01", periods=400, freq="h"), **columns}).to_csv(file, index=False)


def small() -> Any:
    """A Toto of three layers with random weights."""
    from toto.model.toto import Toto

    torch.manual_seed(2)
    return Toto(
        patch_size=8, stride=8, embed_dim=32, num_layers=3, num_heads=2, mlp_hidden_dim=32, dropout=0.0,
        spacewise_every_n_layers=3, scaler_cls="<class 'model.scaler.CausalPatchStdMeanScaler'>",
        output_distribution_classes=["<class 'model.distribution.MixtureOfStudentTsOutput'>"],
        output_distribution_kwargs={"k_components": 2}, use_memory_efficient_attention=False,
    )  # fmt: skip


def run(told: str, backend: str) -> None:
    from toto.evaluation.lsf import lsf_datasets, lsf_evaluator
    from toto.model.toto import Toto

    hours_of_numbers()
    recorded = Recorded(backend)
    known: dict[str, Any] = {}
    evaluate = lsf_evaluator.LSFEvaluator.eval

    def evaluated(self: Any, model: Any, *more: Any) -> Any:
        done = evaluate(self, model, *more)
        known.update(model=model, metrics=done[0], forecasts=done[1])
        return done

    entries = lsf_datasets.LSFDataset.__iter__

    def named(self: Any) -> Iterator[dict[str, Any]]:  # the predictor asks for a name, which the data set has not
        return ({**entry, "item_id": "made"} for entry in entries(self))

    lsf_datasets.LSFDataset.__iter__ = named
    lsf_evaluator.LSFEvaluator.eval = evaluated
    Toto.from_pretrained = classmethod(lambda *_, **__: small())
    sys.argv = ["run_lsf_eval.py", "--datasets", "electricity", "--prediction-lengths", "16", "--context-lengths", "64"]
    sys.argv += ["--num-samples", "4", "--samples-per-batch", "4", "--eval-stride", "32", "--checkpoint-path", "made"]
    runpy.run_path("toto/evaluation/run_lsf_eval.py", run_name="__main__")
    numbers = known["metrics"].select_dtypes("number").to_numpy(dtype=float).flatten()
    recorded.losses = [float(value).hex() for value in numbers]
    samples = [torch.as_tensor(np.asarray(f.samples)) for fs in known["forecasts"] for f in fs]
    state = known["model"].state_dict()
    recorded.write(told, samples, list(state), loads(small(), state))


if __name__ == "__main__":
    run(*sys.argv[1:])
