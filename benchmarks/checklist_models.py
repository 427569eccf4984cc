"""Tiny random pipelines for ``checklist.py``, made from configurations: nothing is downloaded.

    python benchmarks/checklist_models.py FOLDER

Writes ``sd``, ``sd8``, ``sdxl``, ``flux`` (folders that ``from_pretrained`` of diffusers reads), ``images`` (eight),
``captions`` (with a prompt each) and ``pairs`` (with a second picture as a condition). Runs with diffusers and
transformers; the same every time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy
import torch
from diffusers import (
    AutoencoderKL,
    DDPMScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxPipeline,
    FluxTransformer2DModel,
    StableDiffusionPipeline,
    StableDiffusionXLPipeline,
    UNet2DConditionModel,
)
from PIL import Image
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    CLIPTokenizer,
    T5Config,
    T5EncoderModel,
    T5TokenizerFast,
)

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def clip_tokenizer(folder: Path) -> CLIPTokenizer:
    """Knows letters and digits only."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [*_LETTERS, *(f"{c}</w>" for c in _LETTERS), "ab", "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\na b\n")
    about = {"tokenizer_class": "CLIPTokenizer", "model_max_length": 77, "pad_token": "<|endoftext|>"}
    about |= {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return CLIPTokenizer.from_pretrained(folder)


def t5_tokenizer(folder: Path) -> T5TokenizerFast:
    """The same, as T5 writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), *((c, -3.0) for c in _LETTERS)]
    made = Tokenizer(models.Unigram(pieces, unk_id=2))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    made.save(str(folder / "tokenizer.json"))
    about = {"tokenizer_class": "T5Tokenizer", "model_max_length": 64, "extra_ids": 0}
    about |= {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return T5TokenizerFast.from_pretrained(folder)


def clip_config(tokenizer: CLIPTokenizer) -> CLIPTextConfig:
    size = len(tokenizer)
    return CLIPTextConfig(
        vocab_size=size, hidden_size=32, intermediate_size=37, num_attention_heads=4, num_hidden_layers=3,
        projection_dim=32, bos_token_id=size - 2, eos_token_id=size - 1, pad_token_id=size - 1,
    )  # fmt: skip


def autoencoder(channels: int = 4, depth: int = 2) -> AutoencoderKL:
    """Halves height and width ``depth - 1`` times."""
    return AutoencoderKL(
        block_out_channels=[32, 64, 64, 64][:depth], in_channels=3, out_channels=3, latent_channels=channels,
        down_block_types=["DownEncoderBlock2D"] * depth, up_block_types=["UpDecoderBlock2D"] * depth,
        scaling_factor=0.18, shift_factor=0.1 if channels == 16 else None, sample_size=64,
    )  # fmt: skip


def unet(wide: int, **more: object) -> UNet2DConditionModel:
    return UNet2DConditionModel(
        sample_size=32, layers_per_block=1, block_out_channels=(32, 64), in_channels=4, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=wide, **more,
    )  # fmt: skip


def main() -> None:
    top = Path(sys.argv[1])
    torch.manual_seed(0)
    clip = clip_tokenizer(top / "tokenizers" / "clip")
    t5 = t5_tokenizer(top / "tokenizers" / "t5")
    betas = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
    for name, depth in (("sd", 2), ("sd8", 4)):  # a ControlNet takes pictures eight times as wide as latents
        StableDiffusionPipeline(
            unet=unet(32, attention_head_dim=8), vae=autoencoder(depth=depth), tokenizer=clip,
            text_encoder=CLIPTextModel(clip_config(clip)), scheduler=DDPMScheduler(**betas), safety_checker=None,
            feature_extractor=None, requires_safety_checker=False,
        ).save_pretrained(top / name)  # fmt: skip
    xl = unet(
        64, attention_head_dim=(2, 4), use_linear_projection=True, addition_embed_type="text_time",
        addition_time_embed_dim=8, transformer_layers_per_block=(1, 2), projection_class_embeddings_input_dim=80,
    )  # fmt: skip
    StableDiffusionXLPipeline(
        unet=xl, vae=autoencoder(), text_encoder=CLIPTextModel(clip_config(clip)), tokenizer=clip, tokenizer_2=clip,
        text_encoder_2=CLIPTextModelWithProjection(clip_config(clip)), scheduler=EulerDiscreteScheduler(**betas),
    ).save_pretrained(top / "sdxl")  # fmt: skip
    flux = FluxTransformer2DModel(
        patch_size=1, in_channels=64, num_layers=2, num_single_layers=3, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8), guidance_embeds=True,
    )  # fmt: skip
    small = T5Config(vocab_size=len(t5), d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4)
    FluxPipeline(
        transformer=flux, vae=autoencoder(16), text_encoder=CLIPTextModel(clip_config(clip)), tokenizer=clip,
        text_encoder_2=T5EncoderModel(small), tokenizer_2=t5, scheduler=FlowMatchEulerDiscreteScheduler(),
    ).save_pretrained(top / "flux")  # fmt: skip
    rng = numpy.random.default_rng(0)
    told, paired = "", ""
    for folder in ("images", "captions", "pairs"):
        (top / folder).mkdir(parents=True, exist_ok=True)
    for i in range(8):
        pixels = [rng.integers(0, 256, (64, 64, 3), dtype=numpy.uint8) for _ in range(2)]
        for folder in ("images", "captions"):
            Image.fromarray(pixels[0]).save(top / folder / f"{i}.png")
        for name, part in zip(("a", "b"), pixels, strict=True):
            Image.fromarray(part).save(top / "pairs" / f"{name}{i}.png")
        told += json.dumps({"file_name": f"{i}.png", "text": f"cat {i}"}) + "\n"
        pair = {"file_name": f"a{i}.png", "conditioning_image_file_name": f"b{i}.png", "text": f"cat {i}"}
        paired += json.dumps(pair) + "\n"
    (top / "captions" / "metadata.jsonl").write_text(told)
    (top / "pairs" / "metadata.jsonl").write_text(paired)


if __name__ == "__main__":
    main()
