"""Run a training script as it is, and write down what it did; or load what it saved. For ``checklist.py``.

    python benchmarks/checklist_run.py TOLD.json SCRIPT ARGUMENT...
    python benchmarks/checklist_run.py --load KIND TOLD.json SAVED BASE

The script runs as ``__main__``. Written down: each loss that goes to ``Accelerator.backward``, bit by bit; what Dynamo
has counted; and, when the training ends, what the trained model gives for one fixed input. Loading puts what was saved
into a plain model, and compares what that gives. Needs accelerate; the rest is what the script needs.
"""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import torch


def inputs(model: Any) -> dict[str, Any]:
    """One input, the same every time, for each class of models that is trained here; a batch of one."""
    make = torch.Generator().manual_seed(7)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=make)

    name, config = type(model).__name__, getattr(model, "config", None)
    if name == "Flux":  # of sd-scripts
        p = model.params
        given = {"img": random(1, 16, p.in_channels), "img_ids": torch.zeros(1, 16, 3), "txt_ids": torch.zeros(1, 6, 3)}
        given |= {"txt": random(1, 6, p.context_in_dim), "y": random(1, p.vec_in_dim), "guidance": torch.ones(1)}
        return given | {"timesteps": torch.tensor([0.5])}
    if name == "FluxTransformer2DModel":
        given = {"hidden_states": random(1, 16, config.in_channels), "img_ids": torch.zeros(16, 3)}
        given |= {"encoder_hidden_states": random(1, 6, config.joint_attention_dim), "txt_ids": torch.zeros(6, 3)}
        given |= {"pooled_projections": random(1, config.pooled_projection_dim), "timestep": torch.tensor([0.5])}
        return given | {"guidance": torch.ones(1), "return_dict": False}
    size = 16
    given = {"sample": random(1, 4, size, size), "timestep": torch.tensor([3])}
    given["encoder_hidden_states"] = random(1, 6, config.cross_attention_dim)
    if config.addition_embed_type == "text_time":
        given["added_cond_kwargs"] = {"text_embeds": random(1, 32), "time_ids": torch.ones(1, 6)}
    if name == "ControlNetModel":
        given["controlnet_cond"] = random(1, 3, 8 * size, 8 * size)
    return given | {"return_dict": False}


def outputs(model: Any) -> list[torch.Tensor]:
    """What it gives for `inputs`, as a flat list."""
    model.eval()
    if getattr(model, "blocks_to_swap", None):  # of sd-scripts
        model.prepare_block_swap_before_forward()
    with torch.no_grad():
        found: list[torch.Tensor] = []
        todo = [model(**inputs(model))]
        while todo:
            one = todo.pop(0)
            if isinstance(one, torch.Tensor):
                found.append(one.detach().float().cpu())
            elif isinstance(one, (tuple, list)):
                todo = [*one, *todo]
        return found


def counted() -> dict[str, int]:
    """What Dynamo has done so far in this process."""
    from torch._dynamo.utils import counters  # not before the script asks for it

    said = counters["stats"]
    return {"graphs": said["unique_graphs"], "breaks": sum(counters["graph_break"].values())}


def run(told: str, script: str, arguments: list[str]) -> None:
    """Run it; the rank is a part of the name of the file where there are several."""
    import accelerate

    losses: list[str] = []
    known: dict[str, Any] = {}
    back, end = accelerate.Accelerator.backward, accelerate.Accelerator.end_training
    rank = os.environ.get("RANK", "0")

    def backward(self: Any, loss: Any, **more: Any) -> None:
        losses.append(float(loss.detach()).hex())
        back(self, loss, **more)

    def end_training(self: Any) -> None:
        known.update(counted())
        if self._models and "model" not in known:
            model = self.unwrap_model(self._models[0])
            known["model"] = type(model).__name__
            known["names"] = sum("_orig_mod" in name for name, _ in model.named_modules())
            torch.save(outputs(model), f"{told}.{rank}.pt")
        end(self)

    accelerate.Accelerator.backward, accelerate.Accelerator.end_training = backward, end_training
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    runpy.run_path(script, run_name="__main__")
    Path(f"{told}.{rank}" if rank != "0" else told).write_text(json.dumps({"losses": losses, **known}))


def plain(kind: str, base: str) -> Any:
    """The model that training has started from."""
    import diffusers

    if kind == "unet":
        return diffusers.UNet2DConditionModel.from_pretrained(base, subfolder=kind)
    if kind == "transformer":
        return diffusers.FluxTransformer2DModel.from_pretrained(base, subfolder=kind)
    if kind == "controlnet":
        torch.manual_seed(0)
        return diffusers.ControlNetModel.from_unet(plain("unet", base))
    pipe = diffusers.DiffusionPipeline.from_pretrained(base)
    return pipe.transformer if hasattr(pipe, "transformer") else pipe.unet


def trained(kind: str, saved: str, base: str) -> Any:
    """A model of that kind with what was saved in it."""
    import diffusers

    if kind in ("unet", "transformer"):
        return plain(kind, saved)
    if kind == "controlnet":
        return diffusers.ControlNetModel.from_pretrained(saved)
    pipe = diffusers.DiffusionPipeline.from_pretrained(base)
    pipe.load_lora_weights(saved)
    return pipe.transformer if hasattr(pipe, "transformer") else pipe.unet


def apart(some: list[torch.Tensor], others: list[torch.Tensor]) -> float:
    """The largest difference."""
    return max(float((a - b).abs().max()) for a, b in zip(some, others, strict=True))


def load(kind: str, told: str, saved: str, base: str) -> None:
    """Print what the saved model gives against what the trained one gave, and what is in the files.

    ``moved``: how far that is from the model before training, as a check that there is something to see.
    """
    from safetensors.torch import load_file

    was = torch.load(f"{told}.0.pt")
    tensors: dict[str, list[Any]] = {}
    folder = Path(saved, kind) if kind in ("unet", "transformer") else Path(saved)
    for file in sorted(folder.glob("*.safetensors")):
        for name, value in load_file(file).items():
            data = value.contiguous().flatten().view(torch.uint8).numpy().tobytes()
            tensors[f"{file.name}:{name}"] = [hashlib.sha256(data).hexdigest(), float(value.double().norm())]
    said = {
        "difference": apart(outputs(trained(kind, saved, base)), was),
        "moved": apart(outputs(plain(kind, base)), was),
        "tensors": tensors,
        "prefixed": sum("_orig_mod" in name for name in tensors),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    if sys.argv[1] == "--load":
        load(*sys.argv[2:])
    else:
        run(sys.argv[1], sys.argv[2], sys.argv[3:])
