"""nanoVLM with random weights, and what it is called with: shared by the nanovlm cases beside this file.

The import root is a checkout of https://github.com/huggingface/nanoVLM; of it, only ``models/`` is needed.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from _settings import DEVICE, REAL_TOKENIZER, RELEASED, layers

if TYPE_CHECKING:
    from models.config import VLMConfig
    from models.vision_language_model import VisionLanguageModel

IMAGE, END = 7, 1  # word ids of an image's placeholder and of the end of a text
FIRST, LAST = 8, 49152 if RELEASED else 500  # other word ids: FIRST <= id < LAST
# Weights as they are made are small, and there are no biases: outputs would hardly differ. But with 0.02 the released
# size magnifies what rounding leaves a thousandfold in 32 steps.
NOISE = 0.01 if RELEASED else 0.02
SMALL = {
    "vit_hidden_dim": 256,
    "vit_inter_dim": 512,
    "vit_patch_size": 16,
    "vit_img_size": 64,
    "vit_n_heads": 4,
    "lm_hidden_dim": 256,
    "lm_inter_dim": 512,
    "lm_vocab_size": 512,
    "lm_n_heads": 8,
    "lm_n_kv_heads": 4,
    "lm_max_position_embeddings": 64,  # less than the longest sequence: the rotary embedding has to stretch
    "lm_max_length": 128,
    "mp_pixel_shuffle_factor": 2,
    "mp_image_token_length": 4,
}


def config() -> VLMConfig:
    """The configuration of the chosen size; the released one is what the class itself says."""
    from models.config import VLMConfig

    usual = VLMConfig()
    blocks = {"vit_n_blocks": layers(usual.vit_n_blocks, 4), "lm_n_blocks": layers(usual.lm_n_blocks, 4)}
    return VLMConfig(**blocks) if RELEASED else VLMConfig(**SMALL, **blocks)


def model(real_tokenizer: bool = REAL_TOKENIZER) -> VisionLanguageModel:
    """The whole model, in eval mode, on the chosen device: the same weights in every process."""
    _replace_processors(real_tokenizer)
    from models.vision_language_model import VisionLanguageModel

    with torch.device(DEVICE), torch.no_grad():
        torch.manual_seed(0)
        made = VisionLanguageModel(config(), load_backbone=False)
        torch.manual_seed(1)
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * NOISE)
    return made.eval()


def words(rows: int, length: int) -> torch.Tensor:
    """Word ids (rows, length) without an image."""
    return _words(rows, length, _generator(rows, length))


def words_and_images(rows: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Word ids (rows, length) with the placeholders of one image a row, and the images (rows, 3, side, side)."""
    shape, generator = config(), _generator(rows, length)
    ids = _words(rows, length, generator)
    ids[:, 2 : 2 + shape.mp_image_token_length] = IMAGE
    return ids, torch.randn(rows, 3, shape.vit_img_size, shape.vit_img_size, generator=generator)


def _generator(rows: int, length: int) -> torch.Generator:
    return torch.Generator().manual_seed(100 * rows + length)


def _words(rows: int, length: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(FIRST, LAST, (rows, length), generator=generator)


def _replace_processors(real_tokenizer: bool) -> None:
    """Put a module in the place of ``data.processors``, which would load the tokenizer from the network."""
    package, processors = ModuleType("data"), ModuleType("data.processors")
    processors.__dict__["get_tokenizer"] = lambda *_, **__: _real_tokenizer() if real_tokenizer else _stub_tokenizer()
    package.__dict__.update(__path__=[], processors=processors)
    sys.modules.update({"data": package, "data.processors": processors})


def _stub_tokenizer() -> Any:
    return SimpleNamespace(image_token_id=IMAGE, eos_token_id=END)


def _real_tokenizer() -> Any:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    names = {IMAGE: "<|image|>", END: "<eos>"}
    vocabulary = {names.get(number, f"w{number}"): number for number in range(FIRST)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(vocabulary, unk_token="w0")),
        eos_token=names[END],
        extra_special_tokens={"image_token": names[IMAGE]},
    )
    assert tokenizer.image_token_id == IMAGE, tokenizer.image_token_id
    return tokenizer
