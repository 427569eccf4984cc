"""nanoGPT's ``train.py`` on letters, six steps of two layers, and its checkpoint. For ``real_scripts.py``.

python benchmarks/real_nanogpt.py TOLD BACKEND       in a copy of nanoGPT; BACKEND "" compiles nothing
"""

from __future__ import annotations

import pickle
import runpy
import sys
from pathlib import Path

import numpy as np
import torch
from real_running import Recorded, loads


def letters() -> None:
    """Made-up text of 32 letters, where the script looks for its data."""
    folder = Path("data", "letters")
    folder.mkdir(exist_ok=True)
    made = np.random.default_rng(0).integers(0, 32, 4000).astype(np.uint16)
    made[1::2] = made[::2] // 2  # something to learn
    made.tofile(folder / "train.bin")
    made[:1000].tofile(folder / "val.bin")
    (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 32}))


def run(told: str, backend: str) -> None:
    letters()
    recorded = Recorded(backend)
    given = {"dataset": "letters", "device": "cpu", "dtype": "float32", "n_layer": 2, "n_head": 2, "n_embd": 32}
    given |= {"block_size": 16, "batch_size": 4, "gradient_accumulation_steps": 1, "max_iters": 5, "eval_interval": 5}
    given |= {"eval_iters": 1, "out_dir": told, "compile": bool(backend), "learning_rate": 1e-2, "warmup_iters": 1}
    sys.argv = ["train.py", *(f"--{key}={value}" for key, value in given.items())]
    ran = runpy.run_path("train.py", run_name="__main__")
    state = torch.load(Path(told, "ckpt.pt"))["model"]
    model = ran["GPT"](ran["gptconf"])
    loaded = loads(model, state)
    model.eval()
    recorded.write(told, [model(torch.arange(16).view(2, 8))[0]], list(state), loaded)


if __name__ == "__main__":
    sys.path.insert(0, "")
    run(*sys.argv[1:])
