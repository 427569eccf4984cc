"""The classes of transformers that docs/results/breadth.md measures, as cases of ``settings.py --zoo transformers``.

Data, not a program. How each class is built, tiny and with random weights, and what its inputs are, is told by the
scripts of the model zoo (``cases.json``, ``hf_build.py`` and ``hf_custom.py`` of ../shared/zoo, or of the folder that
``FIX_COMPILE_ZOO`` names). The three calls are those that are compiled there: each has another batch size and length.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("FIX_COMPILE_ZOO") or Path(__file__).resolve().parents[2] / "shared" / "zoo")
CALLS = ((2, 16), (3, 24), (4, 32))  # rows and tokens
_MODELS = "transformers.models."
#: Where all models check tensors, and collect what layers return.
_SHARED = ("transformers.utils.import_utils", "transformers.utils.output_capturing")
_VISION = ("transformers.vision_utils",)  # the positions of patches, which several models share


@dataclass(frozen=True)
class Class:
    """A class of models. ``packages``: the modules of transformers that may be patched."""

    name: str
    packages: tuple[str, ...]
    family: str
    clean: bool = False
    train: bool = False


#: By class: the folder of the model, what it is for, and other modules in which it breaks.
_NAMED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "AyaVisionForConditionalGeneration": ("aya_vision", "vision and language", ()),
    "CTRLLMHeadModel": ("ctrl", "language", ()),
    "Cohere2VisionForConditionalGeneration": ("cohere2_vision", "vision and language", ()),
    "EncodecModel": ("encodec", "audio codec", ()),
    "Gemma3ForConditionalGeneration": ("gemma3", "vision and language", ()),
    "Glm46VForConditionalGeneration": ("glm46v", "vision and language", (f"{_MODELS}glm4v", *_VISION)),
    "Glm4vForConditionalGeneration": ("glm4v", "vision and language", _VISION),
    "Glm4vMoeForConditionalGeneration": ("glm4v_moe", "vision and language", _VISION),
    "Glm5NextForConditionalGeneration": ("glm5_next", "vision and language", _VISION),
    "GlmOcrForConditionalGeneration": ("glm_ocr", "reading text", _VISION),
    "GroundingDinoForObjectDetection": ("grounding_dino", "detection", ()),
    "Idefics2ForConditionalGeneration": ("idefics2", "vision and language", ()),
    "Idefics3ForConditionalGeneration": ("idefics3", "vision and language", ()),
    "InternVLForConditionalGeneration": ("internvl", "vision and language", ()),
    "LightGlueForKeypointMatching": ("lightglue", "matching of images", (f"{_MODELS}superpoint",)),
    "LlavaForConditionalGeneration": ("llava", "vision and language", ()),
    "LongcatFlashForCausalLM": ("longcat_flash", "language", ()),
    "LongformerForMaskedLM": ("longformer", "language", ()),
    "MMGroundingDinoForObjectDetection": ("mm_grounding_dino", "detection", ()),
    "MossTranscribeDiarizeForConditionalGeneration": ("moss_transcribe_diarize", "speech", ()),
    "OneFormerForUniversalSegmentation": ("oneformer", "segmentation", ()),
    "QianfanOCRForConditionalGeneration": ("qianfan_ocr", "reading text", ()),
    "Qwen2VLForConditionalGeneration": ("qwen2_vl", "vision and language", _VISION),
    "Qwen2_5_VLForConditionalGeneration": ("qwen2_5_vl", "vision and language", _VISION),
    "TimesFmModelForPrediction": ("timesfm", "time series", ()),
    "VideoLlama3ForConditionalGeneration": ("video_llama_3", "vision and language", _VISION),
    "VitsModel": ("vits", "speech synthesis", ()),
}
CLASSES = {
    name: Class(name, (_MODELS + package, *others, *_SHARED), family)
    for name, (package, family, others) in _NAMED.items()
}


def case(name: str) -> tuple[Callable[[], Any], Callable[[], list[Any]]]:
    """``build`` and ``calls`` of a case file."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    sys.path.append(str(FOLDER))
    inputs: list[Callable[[int, int], dict[str, Any]]] = []

    def build() -> Any:
        model, inputs[:] = _built(name)
        return model

    def calls() -> list[Any]:
        if not inputs:
            build()
        return [((), inputs[0](rows, tokens)) for rows, tokens in CALLS]

    return build, calls


def _built(name: str) -> tuple[Any, list[Callable[[int, int], dict[str, Any]]]]:
    import hf_build  # type: ignore[import-not-found, unused-ignore]
    import hf_custom  # type: ignore[import-not-found, unused-ignore]
    import torch
    import transformers  # type: ignore[import-not-found, unused-ignore]

    transformers.logging.set_verbosity_error()
    every = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
    told = next(one for one in every if one["cls"] == name)
    kind, tier = getattr(transformers, name), told["tier"]
    config = hf_custom.fix(hf_build.shrink_cfg(kind.config_class(), tier), tier)
    model = kind(config)
    model.eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(1)
    for _, weight in sorted(model.named_parameters()):
        if weight.is_floating_point():
            wide = 0.05 if weight.dim() < 2 else min(0.1, 0.7 / (weight.numel() / weight.shape[0]) ** 0.5)
            noise = torch.randn(weight.shape, generator=generator).to(weight.dtype)
            weight.add_(noise * (0.02 if told.get("mild") else wide))

    def inputs(rows: int, tokens: int) -> dict[str, Any]:
        sizes = told["img_tokens"], told["variant"], told["aud_tokens"]
        made: dict[str, Any] = hf_build.make_inputs(model, config, rows, tokens, *sizes)
        return made

    with torch.no_grad():
        model(**inputs(*CALLS[0]))  # with its first call a model of transformers puts in hooks: it breaks by that alone
    return model, [inputs]
