"""lerobot's ``lerobot_train.py``, three steps of a small ACT, and what it saves. For ``real_scripts.py``.

python benchmarks/real_lerobot.py TOLD BACKEND       in a copy of lerobot; BACKEND "" compiles nothing
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from real_running import Recorded
from safetensors.torch import load_file

_SIZES = {"observation.state": 4, "observation.environment_state": 6, "action": 4}


def recorded_episodes(root: Path) -> None:
    """A made-up data set of two episodes."""
    from lerobot.datasets import LeRobotDataset

    shutil.rmtree(root, ignore_errors=True)
    features = {
        name: {"dtype": "float32", "shape": (size,), "names": [str(i) for i in range(size)]}
        for name, size in _SIZES.items()
    }
    made = LeRobotDataset.create("made/up", fps=10, features=features, root=root, use_videos=False)
    torch.manual_seed(3)
    for _ in range(2):
        for _ in range(12):
            made.add_frame({**{name: torch.randn(size).numpy() for name, size in _SIZES.items()}, "task": "move"})
        made.save_episode()
    made.finalize()


def run(told: str, backend: str) -> None:
    root, out = Path(f"{told}-data"), Path(f"{told}-out")
    recorded_episodes(root)
    shutil.rmtree(out, ignore_errors=True)
    recorded = Recorded(backend)
    given: dict[str, Any] = {"dataset.repo_id": "made/up", "dataset.root": root, "policy.type": "act"}
    given |= {"policy.dim_model": 32, "policy.n_heads": 2, "policy.dim_feedforward": 32, "policy.n_encoder_layers": 3}
    given |= {"policy.n_decoder_layers": 2, "policy.n_vae_encoder_layers": 2, "policy.latent_dim": 8}
    given |= {"policy.chunk_size": 4, "policy.n_action_steps": 4, "policy.dropout": 0.0, "policy.device": "cpu"}
    given |= {"policy.push_to_hub": "false", "batch_size": 4, "steps": 3, "num_workers": 0, "log_freq": 1, "seed": 0}
    given |= {"save_freq": 3, "wandb.enable": "false", "output_dir": out, "job_name": "made"}
    if backend:
        given |= {"compile": "true", "compile_backend": backend, "compile_dynamic": "false"}
    sys.argv = ["lerobot_train.py", *(f"--{key}={value}" for key, value in given.items())]
    importlib.import_module("lerobot.scripts.lerobot_train").main()
    saved = next(out.glob("checkpoints/0*")) / "pretrained_model"

    from lerobot.configs.train import TrainPipelineConfig
    from lerobot.policies.act.modeling_act import ACTPolicy

    policy = ACTPolicy.from_pretrained(saved, strict=True)
    policy.eval()
    torch.manual_seed(5)
    batch = {name: torch.randn(2, size) for name, size in _SIZES.items() if name != "action"}
    with torch.no_grad():
        outputs = [policy.predict_action_chunk(batch)]
    recorded.write(told, outputs, list(load_file(saved / "model.safetensors")), "yes")
    if backend:
        sys.argv = sys.argv[:1]
        config = TrainPipelineConfig.from_pretrained(saved)
        kept = {name: value for name, value in vars(config).items() if name.startswith("compile")}
        wanted = {"compile": True, "compile_backend": backend, "compile_dynamic": "false", "compile_mode": "default"}
        wanted |= {"compile_fullgraph": False, "compile_cache_size_limit": 0}
        said = json.loads(Path(f"{told}.json").read_text())
        said["configuration"] = (
            "the same six"
            if {k: str(v).lower() for k, v in kept.items()} == {k: str(v).lower() for k, v in wanted.items()}
            else f"**{kept}**"
        )
        Path(f"{told}.json").write_text(json.dumps(said))


if __name__ == "__main__":
    run(*sys.argv[1:])
