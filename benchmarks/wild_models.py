"""Small models of the repositories in ``wild.py``: the real classes, random weights, a call of each of two sizes.

Runs in a process of its own, with an interpreter that has what the repository imports and nothing of ours:

    PYTHONPATH=ROOT[:MORE] python benchmarks/wild_models.py NAME

prints a line of JSON: for each way to compile, which calls do what they do eagerly, how many graphs and breaks there
are, and what the first failure says; and a digest of what the calls give eagerly.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import json
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._dynamo.utils import counters

Call = dict[str, Any]
FLAGS = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}


def chronos() -> tuple[torch.nn.Module, list[Call]]:
    from chronos.chronos2.config import Chronos2CoreConfig
    from chronos.chronos2.model import Chronos2Model

    size = {"context_length": 16, "output_patch_size": 4, "input_patch_size": 4, "input_patch_stride": 4}
    forecasting = {**size, "quantiles": [0.1, 0.5, 0.9], "use_reg_token": True, "max_output_patches": 4}
    width = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    model = Chronos2Model(Chronos2CoreConfig(**width, chronos_config=forecasting))
    return model, [
        {"context": torch.randn(b, 16), "future_covariates": torch.randn(b, 8), "num_output_patches": 2} for b in (2, 3)
    ]


def mmdit() -> tuple[torch.nn.Module, list[Call]]:
    for name in ("torchvision", "torchvision.transforms"):  # imported on the way, and not used by the model
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules["torchvision"].transforms = sys.modules["torchvision.transforms"]  # type: ignore[attr-defined]
    from library.sd3_models import MMDiT

    model = MMDiT(input_size=None, depth=2, num_patches=64, pos_embed_max_size=8)
    torch.nn.init.zeros_(model.pos_embed)
    model.enable_scaled_pos_embed(True, [8, 16])
    times = torch.tensor([10.0])
    return model, [
        {"x": torch.randn(1, 4, n, n), "t": times, "context": torch.randn(1, 5, 128)} for n in (32, 40)
    ]  # both larger than any before


def causal_conv() -> tuple[torch.nn.Module, list[Call]]:
    from musubi_tuner.hunyuan_video_1_5.hunyuan_video_1_5_vae import PatchCausalConv3d

    return PatchCausalConv3d(2, 3, 3), [{"input": torch.randn(1, 2, t, 6, 6)} for t in (5, 7)]


def conv() -> tuple[torch.nn.Module, list[Call]]:
    from musubi_tuner.hunyuan_video_1_5.hunyuan_video_1_5_vae import PatchConv3d

    return PatchConv3d(2, 3, 1), [{"input": torch.randn(1, 2, t, 6, 6)} for t in (5, 7)]


def unet3d() -> tuple[torch.nn.Module, list[Call]]:
    from diffusers.models.unets.unet_3d_condition import UNet3DConditionModel

    model = UNet3DConditionModel(
        **_blocks("3D"), norm_num_groups=4, cross_attention_dim=8, attention_head_dim=2, layers_per_block=1
    )
    return model, [
        {
            "sample": torch.randn(1, 4, 2, n, n),
            "timestep": torch.tensor([10]),
            "encoder_hidden_states": torch.randn(1, 4, 8),
            "return_dict": False,
        }
        for n in (9, 11)
    ]


def i2vgen() -> tuple[torch.nn.Module, list[Call]]:
    from diffusers.models.unets.unet_i2vgen_xl import I2VGenXLUNet

    model = I2VGenXLUNet(
        **_blocks("3D"), norm_num_groups=2, cross_attention_dim=8, attention_head_dim=2, layers_per_block=1
    )
    return model, [
        {
            "sample": torch.randn(1, 4, 2, n, n),
            "timestep": torch.tensor([10]),
            "fps": torch.tensor([16]),
            "image_latents": torch.randn(1, 4, 2, n, n),
            "image_embeddings": torch.randn(1, 8),
            "encoder_hidden_states": torch.randn(1, 4, 8),
            "return_dict": False,
        }
        for n in (33, 35)
    ]


def motion() -> tuple[torch.nn.Module, list[Call]]:
    from diffusers.models.unets.unet_motion_model import UNetMotionModel

    model = UNetMotionModel(
        **_blocks("Motion", (16, 32)),
        norm_num_groups=16,
        cross_attention_dim=16,
        num_attention_heads=2,
        layers_per_block=1,
    )
    return model, [
        {
            "sample": torch.randn(1, 4, 2, n, n),
            "timestep": torch.tensor([10]),
            "encoder_hidden_states": torch.randn(2, 4, 16),
            "return_dict": False,
        }
        for n in (9, 11)
    ]


def spatio_temporal() -> tuple[torch.nn.Module, list[Call]]:
    from diffusers.models.unets.unet_spatio_temporal_condition import UNetSpatioTemporalConditionModel

    model = UNetSpatioTemporalConditionModel(
        **_blocks("SpatioTemporal", (32, 64)),
        cross_attention_dim=32,
        num_attention_heads=8,
        layers_per_block=1,
        addition_time_embed_dim=32,
        projection_class_embeddings_input_dim=96,
    )
    return model, [
        {
            "sample": torch.randn(1, 2, 4, n, n),
            "timestep": torch.tensor([10]),
            "encoder_hidden_states": torch.randn(1, 1, 32),
            "added_time_ids": torch.tensor([[6.0, 127.0, 0.02]]),
            "return_dict": False,
        }
        for n in (9, 11)
    ]


def audio() -> tuple[torch.nn.Module, list[Call]]:
    from diffusers.pipelines.audioldm2.modeling_audioldm2 import AudioLDM2UNet2DConditionModel

    model = AudioLDM2UNet2DConditionModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=(8, 16),
    )
    return model, [
        {
            "sample": torch.randn(1, 4, n, n),
            "timestep": torch.tensor([10]),
            "encoder_hidden_states": torch.randn(1, 4, 16),
            "return_dict": False,
        }
        for n in (9, 11)
    ]


def ldmbert() -> tuple[torch.nn.Module, list[Call]]:
    from diffusers.pipelines.latent_diffusion.pipeline_latent_diffusion import LDMBertConfig, LDMBertEncoderLayer

    width = {"d_model": 16, "encoder_ffn_dim": 32, "encoder_attention_heads": 2, "head_dim": 8, "encoder_layers": 1}
    layer = LDMBertEncoderLayer(LDMBertConfig(**width)).half()
    return layer, [
        {"hidden_states": torch.randn(1, n, 16).half(), "attention_mask": None, "layer_head_mask": None} for n in (5, 7)
    ]


def _blocks(kind: str, channels: tuple[int, int] = (4, 8)) -> dict[str, Any]:
    down = (f"CrossAttnDownBlock{kind}", f"DownBlock{kind}")
    up = (f"UpBlock{kind}", f"CrossAttnUpBlock{kind}")
    sizes = {"in_channels": 4, "out_channels": 4, "block_out_channels": channels}
    return {**sizes, "down_block_types": down, "up_block_types": up}


MODELS: dict[str, Callable[[], tuple[torch.nn.Module, list[Call]]]] = {
    f.__name__: f for f in (chronos, mmdit, causal_conv, conv, unet3d, i2vgen, motion, spatio_temporal, audio, ldmbert)
}


# --- running them ---------------------------------------------------------------------------------------------------


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in an output."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)


def fresh(name: str) -> tuple[torch.nn.Module, list[Call]]:
    """The model and its calls, the same each time."""
    torch.manual_seed(0)
    model, calls = MODELS[name]()
    torch.manual_seed(1)
    for p in model.parameters():  # some are made without numbers, or with zeros
        torch.nn.init.normal_(p, std=0.05)
    return model.eval(), calls


def eagerly(name: str) -> list[list[torch.Tensor]]:
    model, calls = fresh(name)
    return [[t.clone() for t in tensors(model(**call))] for call in calls]


def tried(
    make: Callable[[torch.nn.Module, Call], Any], name: str, expected: list[list[torch.Tensor]]
) -> dict[str, Any]:
    """What ``make(model, call)`` does for each call, one after the other."""
    model, calls = fresh(name)
    torch._dynamo.reset()
    counters.clear()
    works, said = [], ""
    for call, own in zip(calls, expected, strict=False):  # perhaps of the first calls alone
        try:
            got = list(tensors(make(model, call)))
            works.append(len(got) == len(own) and all(map(torch.equal, own, got)))
            said = said or ("" if works[-1] else "other numbers")
        except Exception as error:
            works.append(False)
            said = said or f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"[:160]
    return {"works": works, "said": said, "breaks": sum(counters["graph_break"].values())}


def compiled(
    name: str, expected: list[list[torch.Tensor]], *, flags: bool = False, whole: bool = False
) -> dict[str, Any]:
    graphs = [0]

    def backend(graph: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        graphs[0] += 1
        return graph.forward

    kept: list[Any] = []

    def make(model: torch.nn.Module, call: Call) -> Any:
        kept[:] = kept or [torch.compile(model, backend=backend, fullgraph=whole)]
        return kept[0](**call)

    with torch._dynamo.config.patch(**(FLAGS if flags else {})):
        return {**tried(make, name, expected), "graphs": graphs[0]}


def exported(model: torch.nn.Module, call: Call) -> Any:
    return torch.export.export(model, (), call, strict=True).module()(**call)


def scripted(model: torch.nn.Module, call: Call) -> Any:
    return torch.jit.script(model)(**call)


def main() -> None:
    name = sys.argv[1]
    warnings.simplefilter("ignore")
    with torch.no_grad():
        expected = eagerly(name)
        digest = hashlib.sha256(b"".join(bytes(t.flatten().view(torch.uint8).tolist()) for o in expected for t in o))
        found = {
            "compile": compiled(name, expected),
            "fullgraph": compiled(name, expected, whole=True),
            "flags": compiled(name, expected, flags=True),
            "export": tried(exported, name, expected[:1]),
            "script": tried(scripted, name, expected[:1]),
        }
    print(json.dumps({"eager": digest.hexdigest(), "modes": found}))


if __name__ == "__main__":
    main()
