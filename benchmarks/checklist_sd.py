"""Run a script of sd-scripts on a tiny random FLUX, and load what it saved. For ``checklist.py sd``.

    python benchmarks/checklist_sd.py MODELS TOLD.json SCRIPT ARGUMENT...
    python benchmarks/checklist_sd.py MODELS --load (flux | lora) TOLD.json SAVED.safetensors
    python benchmarks/checklist_sd.py MODELS --toml SCRIPT FILE.toml

Runs in a copy of the repository. What is put in its place: sizes of the models, random weights for those that are not
trained, tokenizers from MODELS, and the exchange of weights between devices: on one device the script's own makes two
weights one, so each keeps its own here, in the other's memory. What remains is the script's: blocks, hooks, savers.
"""

from __future__ import annotations

import hashlib
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import torch
from checklist_run import apart, outputs, run
from safetensors.torch import load_file, save_file


def small() -> Any:
    """sd-scripts' modules with small models in them; gives ``library.flux_utils``."""
    from library import custom_offloading_utils, flux_models, flux_utils, strategy_base
    from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel

    params = flux_models.FluxParams(
        in_channels=64, vec_in_dim=32, context_in_dim=32, hidden_size=32, mlp_ratio=2.0, num_heads=2, depth=4,
        depth_single_blocks=6, axes_dim=[4, 4, 8], theta=10_000, qkv_bias=True, guidance_embed=True,
    )  # fmt: skip
    spec = flux_models.configs["dev"]
    spec.params = params
    auto = flux_models.AutoEncoderParams(
        resolution=64, in_channels=3, ch=32, out_ch=3, ch_mult=[1, 1, 1, 1], num_res_blocks=1, z_channels=16,
        scale_factor=0.3611, shift_factor=0.1159,
    )  # fmt: skip
    spec.ae_params = auto
    models = Path(sys.argv[1])

    def seeded(make: Any) -> Any:
        def made(*_: Any, **__: Any) -> Any:
            with torch.random.fork_rng():
                torch.manual_seed(1)
                return make()

        return made

    clip = CLIPTextConfig(
        vocab_size=80, hidden_size=32, intermediate_size=37, num_attention_heads=4, num_hidden_layers=2
    )
    clip.eos_token_id, clip.bos_token_id, clip.pad_token_id = 74, 73, 74
    t5 = T5Config(vocab_size=64, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4)
    flux_utils.load_ae = seeded(lambda: flux_models.AutoEncoder(auto))
    flux_utils.load_clip_l = seeded(lambda: CLIPTextModel(clip))
    flux_utils.load_t5xxl = seeded(lambda: T5EncoderModel(t5))

    def tokenizer(_: Any, cls: Any, name: str, *__: Any, **___: Any) -> Any:
        return cls.from_pretrained(models / "tokenizers" / ("clip" if "clip" in name else "t5"))

    strategy_base.TokenizeStrategy._load_tokenizer = tokenizer
    custom_offloading_utils.swap_weight_devices_no_cuda = exchange
    return flux_utils


def exchange(device: torch.device, out: torch.nn.Module, back: torch.nn.Module) -> None:
    """As sd-scripts does on a GPU: weights of ``back`` go into the memory of those of ``out``, which get another."""
    for one, other in zip(out.modules(), back.modules(), strict=True):
        if getattr(one, "weight", None) is not None:
            memory = one.weight.data
            one.weight.data = memory.clone()
            memory.copy_(other.weight.data)
            other.weight.data = memory


def checkpoint(models: Path) -> Path:
    """A file with random weights of the small FLUX."""
    from library import flux_models

    file = models / "flux.safetensors"
    if not file.is_file():
        torch.manual_seed(0)
        save_file(flux_models.Flux(flux_models.configs["dev"].params).state_dict(), file)
    return file


def load(kind: str, told: str, saved: str) -> None:
    """Print what the saved model gives against what the trained one gave; as `checklist_run.load`."""
    utils = small()
    _, model = utils.load_flow_model(str(checkpoint(Path(sys.argv[1]))), None, "cpu")
    was, before = torch.load(f"{told}.0.pt"), outputs(model)
    if kind == "flux":
        _, model = utils.load_flow_model(saved, None, "cpu")
    else:
        from networks import lora_flux

        network, weights = lora_flux.create_network_from_weights(1.0, saved, None, [], model)
        network.apply_to([], model, False, True)
        network.load_state_dict(weights, strict=True)
    tensors = {}
    for name, value in load_file(saved).items():
        data = value.contiguous().flatten().view(torch.uint8).numpy().tobytes()
        tensors[name] = [hashlib.sha256(data).hexdigest(), float(value.double().norm())]
    prefixed = sum("_orig_mod" in name for name in tensors)
    said = {"difference": apart(outputs(model), was), "moved": apart(before, was), "tensors": tensors}
    print(json.dumps({**said, "prefixed": prefixed}))


def read(script: str, file: str) -> None:
    """Print what the script's parser makes of the arguments in a TOML file."""
    from library import train_util

    sys.argv = [script, "--config_file", file]
    parser = runpy.run_path(script)["setup_parser"]()
    args = train_util.read_config_from_file(parser.parse_args(), parser)
    print(json.dumps({k: v for k, v in sorted(vars(args).items()) if k.startswith("compile")}))


if __name__ == "__main__":
    sys.path.insert(0, "")
    sys.path.append(str(Path(__file__).parent))
    if sys.argv[2] == "--load":
        load(*sys.argv[3:])
    elif sys.argv[2] == "--toml":
        read(*sys.argv[3:])
    else:
        small()
        checkpoint(Path(sys.argv[1]))
        run(sys.argv[2], sys.argv[3], sys.argv[4:])
