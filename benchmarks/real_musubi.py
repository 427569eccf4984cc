"""musubi-tuner's ``hv_train.py`` on a small random HunyuanVideo and made-up latents. For ``real_scripts.py``.

python benchmarks/real_musubi.py TOLD BACKEND     in a copy of musubi-tuner; BACKEND "" compiles nothing, "swap eager"
                                                  exchanges the weights of blocks besides

Put in the place of its own: sizes, the exchange of weights between devices (on one device the script's own makes two
weights one), and what the script asks CUDA for there. The script of this commit does not run with the data set of its
repository: that wants to share an epoch, the collator takes two things and is given three, a batch has five parts by
name where four in order are expected, and what is saved names two options that the parser has not. These are
repaired, in all copies.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import torch
from checklist_sd import exchange
from real_running import Recorded, loads
from safetensors.torch import load_file, save_file

DATA = """\
[[datasets]]
resolution = [32, 32]
image_directory = "{0}"
cache_directory = "{0}"
caption_extension = ".txt"
batch_size = 2
"""
REPAIRED = (
    ('        current_epoch = Value("i", 0)\n', ""),
    ("group, training=True)", 'group, training=True, shared_epoch=(current_epoch := Value("i", 0)))'),
    ("(current_epoch, current_step, ds_for", "(current_epoch, ds_for"),
    ("args.metadata_reso,", "None,"),
    ("args.metadata_arch,", "None,"),
)
SIZES = {"mm_double_blocks_depth": 4, "mm_single_blocks_depth": 6, "rope_dim_list": [4, 6, 6], "hidden_size": 32}
SIZES |= {"heads_num": 2, "mlp_width_ratio": 2, "guidance_embed": True}


def small(folder: Path) -> tuple[Any, Path]:
    """musubi-tuner's models with small sizes in them, and a file with random weights."""
    from musubi_tuner.hunyuan_model import models

    models.HUNYUAN_VIDEO_CONFIG["HYVideo-T/2-cfgdistill"] = dict(SIZES)
    file = folder / "dit.safetensors"
    if not file.is_file():
        torch.manual_seed(2)
        made = models.load_dit_model(4096, 768, 16, 16, {"attn_mode": "torch"})
        for weight in made.parameters():  # some are zeros, behind which no block would matter
            torch.nn.init.normal_(weight, std=0.05)
        save_file(made.state_dict(), file)
    return models, file


def latents(folder: Path) -> Path:
    """Eight cached latents with their texts, where the data set looks for them."""
    from musubi_tuner.dataset import image_video_dataset as data

    made = torch.Generator().manual_seed(3)
    for i in range(8):
        item = data.ItemInfo(f"{i}.png", "a cat", (32, 32))
        item.latent_cache_path = str(folder / f"{i}_0032x0032_hv.safetensors")
        item.text_encoder_output_cache_path = str(folder / f"{i}_hv_te.safetensors")
        data.save_latent_cache(item, torch.randn(16, 1, 4, 4, generator=made))
        mask = torch.ones(8, dtype=torch.bool)
        data.save_text_encoder_output_cache(item, torch.randn(8, 4096, generator=made), mask, True)
        data.save_text_encoder_output_cache(item, torch.randn(768, generator=made), None, False)
    file = folder / "data.toml"
    file.write_text(DATA.format(folder))
    return file


def ends(mask: torch.Tensor, image: int) -> torch.Tensor:
    """Where the picture with its text ends for each sample, and its row: the script's own are made on a CUDA device."""
    rows, wide = torch.arange(len(mask)), mask.shape[1] + image
    each = torch.stack([rows * wide + mask.sum(1) + image, (rows + 1) * wide], 1).flatten()
    return torch.nn.functional.pad(each, (1, 0)).int()


def outputs(models: Any, model: Any) -> torch.Tensor:
    """What it gives for one input."""
    made = torch.Generator().manual_seed(4)
    cosines, sines = models.get_rotary_pos_embed_by_shape(model, (1, 4, 4))
    given = {"text_states": torch.randn(1, 8, 4096, generator=made), "text_mask": torch.ones(1, 8, dtype=torch.bool)}
    given |= {"text_states_2": torch.randn(1, 768, generator=made), "freqs_cos": cosines, "freqs_sin": sines}
    x = torch.randn(1, 16, 1, 4, 4, generator=made)
    with torch.no_grad():
        return model.eval()(x, torch.tensor([500.0]), guidance=torch.ones(1), return_dict=False, **given)


def run(told: str, way: str) -> None:
    from musubi_tuner.dataset import bucket
    from musubi_tuner.modules import custom_offloading_utils as offloading

    swap, backend = way.startswith("swap"), way.removeprefix("swap").strip()
    recorded = Recorded("")
    folder = Path(told)
    folder.mkdir(exist_ok=True)
    models, weights = small(folder)
    take = bucket.BucketBatchManager.__getitem__

    def four(self: Any, index: int) -> tuple[Any, ...]:
        batch = take(self, index)
        return batch["latents"], batch["llm"], batch["llm_mask"].bool(), batch["clipL"]

    bucket.BucketBatchManager.__getitem__ = four
    models.get_cu_seqlens = ends
    offloading.swap_weight_devices_no_cuda = exchange
    torch.cuda.current_device = lambda: 0  # type: ignore[assignment]
    torch.cuda.set_device = lambda _: None  # type: ignore[assignment]
    sys.argv = ["hv_train.py", "--dit", str(weights), "--dataset_config", str(latents(folder)), "--sdpa", "--seed", "1"]
    sys.argv += ["--output_dir", told, "--output_name", "made", "--max_train_steps", "6", "--learning_rate", "1e-1"]
    sys.argv += [
        "--max_data_loader_n_workers",
        "0",
        "--optimizer_type",
        "torch.optim.SGD",
        "--timestep_sampling",
        "uniform",
    ]
    sys.argv += ["--blocks_to_swap", "2"] if swap else []
    sys.argv += ["--compile", "--compile_backend", backend] if backend else []
    text = Path("src/musubi_tuner/hv_train.py").read_text(encoding="utf-8")
    for old, new in REPAIRED:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    script = Path("src/musubi_tuner/hv_train_repaired.py")
    script.write_text(text, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")
    state = load_file(folder / "made.safetensors")
    model = models.load_dit_model(4096, 768, 16, 16, {"attn_mode": "torch"})
    loaded = loads(model, state)
    recorded.write(told, [outputs(models, model)], list(state), loaded)


if __name__ == "__main__":
    run(*sys.argv[1:])
