"""Classes of transformers 5.23 that stand in no other list of this repository, to see what the fixes are worth there.

    PYTHONPATH=PATCHED python tests/gains/count.py --cases benchmarks/transformers_unlisted.py [NAME ...]

They were chosen by their kind (several modalities, audio, detection, key points) and by having more than one graph,
before the tool had been run on any of them; nothing is changed for them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import cases
import torch
from cases import SIZES, TEXT, VOCABULARY, Built, Call, Case, illustrated, mask, words

CASES: list[Case] = []
case = partial(cases.case, cases=CASES)

VISION: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
CLIP: dict[str, Any] = {**VISION, "num_hidden_layers": 2, "projection_dim": 32}
AUDIO: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "num_mel_bins": 8,
}  # fmt: skip
IMAGE = 95  # the token of an image, or of a piece of audio


def pictured(tokens: int, shape: tuple[int, ...] = (3, 32, 32), **more: Any) -> list[Call]:
    """Calls with ``tokens`` image tokens and one image of that shape in each row."""
    return [
        (
            (),
            {
                "input_ids": illustrated(b, n, IMAGE, tokens),
                "attention_mask": mask(b, n),
                "pixel_values": torch.randn(b, *shape),
                **{key: make(b, n) for key, make in more.items()},
            },
        )
        for b, n in SIZES
    ]


def heard(tokens: int, frames: int, **more: Any) -> list[Call]:
    """Calls with ``tokens`` audio tokens and one piece of ``frames`` frames in each row."""
    return [
        (
            (),
            {
                "input_ids": illustrated(b, n, IMAGE, tokens),
                "attention_mask": mask(b, n),
                "input_features": torch.randn(b, 8, frames),
                **{key: make(b) for key, make in more.items()},
            },
        )
        for b, n in SIZES
    ]


@case("VipLlavaForConditionalGeneration")
def _() -> Built:
    from transformers import CLIPVisionConfig, LlamaConfig, VipLlavaConfig, VipLlavaForConditionalGeneration

    config = VipLlavaConfig(
        vision_config=CLIPVisionConfig(**{**CLIP, "patch_size": 16}), text_config=LlamaConfig(**TEXT),
        image_token_index=IMAGE, vision_feature_layers=[-2, -1],
    )  # fmt: skip
    return VipLlavaForConditionalGeneration(config), pictured(4)


@case("GotOcr2ForConditionalGeneration")
def _() -> Built:
    from transformers import GotOcr2Config, GotOcr2ForConditionalGeneration, Qwen2Config

    vision = {
        "hidden_size": 16, "output_channels": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 64,
        "patch_size": 8, "window_size": 4, "global_attn_indexes": [0], "mlp_dim": 16,
    }  # fmt: skip
    config = GotOcr2Config(vision_config=vision, text_config=Qwen2Config(**TEXT), image_token_index=IMAGE)
    return GotOcr2ForConditionalGeneration(config), pictured(4, (3, 64, 64))


@case("DeepseekVLForConditionalGeneration")
def _() -> Built:
    from transformers import DeepseekVLConfig, DeepseekVLForConditionalGeneration, LlamaConfig, SiglipVisionConfig

    vision = SiglipVisionConfig(**{**VISION, "patch_size": 16})
    config = DeepseekVLConfig(text_config=LlamaConfig(**TEXT), vision_config=vision, image_token_id=IMAGE)
    return DeepseekVLForConditionalGeneration(config), pictured(4)


@case("SmolVLMForConditionalGeneration")
def _() -> Built:
    from transformers import LlamaConfig, SmolVLMConfig, SmolVLMForConditionalGeneration

    config = SmolVLMConfig(text_config=LlamaConfig(**TEXT), vision_config=VISION, image_token_id=IMAGE, scale_factor=2)
    return SmolVLMForConditionalGeneration(config), pictured(4, (1, 3, 32, 32))


@case("Qwen3VLMoeForConditionalGeneration")
def _() -> Built:
    from transformers import Qwen3VLMoeConfig, Qwen3VLMoeForConditionalGeneration

    rotary = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 2, 2]}
    text = {**TEXT, "moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2, "rope_parameters": rotary}
    vision = {
        "depth": 1, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "patch_size": 4, "out_hidden_size": 32,
        "num_position_embeddings": 16, "deepstack_visual_indexes": [0],
    }  # fmt: skip
    config = Qwen3VLMoeConfig(
        text_config=text, vision_config=vision, image_token_id=IMAGE, video_token_id=94, vision_start_token_id=93,
        vision_end_token_id=92,
    )  # fmt: skip
    return Qwen3VLMoeForConditionalGeneration(config), [((), cases.gridded(b, n)) for b, n in SIZES]


@case("Exaone4_5_ForConditionalGeneration")
def _() -> Built:
    from transformers import Exaone4_5_Config, Exaone4_5_ForConditionalGeneration

    vision = {
        "depth": 1, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "num_key_value_heads": 2,
        "patch_size": 4, "window_size": 16, "out_hidden_size": 32, "fullatt_block_indexes": [0],
    }  # fmt: skip
    text = {**TEXT, "layer_types": ["full_attention"], "sliding_window": 8}
    config = Exaone4_5_Config(
        text_config={**text, "model_type": "exaone4"}, vision_config=vision, image_token_id=IMAGE, video_token_id=94
    )
    calls = [((), cases.gridded(b, n)) for b, n in SIZES]
    for _, options in calls:
        options.pop("mm_token_type_ids")
    return Exaone4_5_ForConditionalGeneration(config), calls


@case("VideoLlavaForConditionalGeneration")
def _() -> Built:
    from transformers import CLIPVisionConfig, LlamaConfig, VideoLlavaConfig, VideoLlavaForConditionalGeneration

    config = VideoLlavaConfig(
        vision_config=CLIPVisionConfig(**{**CLIP, "patch_size": 16}), text_config=LlamaConfig(**TEXT),
        image_token_index=IMAGE, video_token_index=94, image_seq_length=4, video_seq_length=32,
    )  # fmt: skip
    calls = pictured(4)
    for _, options in calls:
        options["pixel_values_images"] = options.pop("pixel_values")
    return VideoLlavaForConditionalGeneration(config), calls


@case("AudioFlamingo3ForConditionalGeneration")
def _() -> Built:
    from transformers import AudioFlamingo3Config, AudioFlamingo3ForConditionalGeneration, Qwen2Config

    config = AudioFlamingo3Config(
        audio_config={**AUDIO, "max_source_positions": 16}, text_config=Qwen2Config(**TEXT), audio_token_id=IMAGE
    )
    calls = heard(8, 32, input_features_mask=lambda rows: torch.ones(rows, 32, dtype=torch.long))
    return AudioFlamingo3ForConditionalGeneration(config), calls


@case("VoxtralForConditionalGeneration")
def _() -> Built:
    from transformers import LlamaConfig, VoxtralConfig, VoxtralForConditionalGeneration

    audio = {**AUDIO, "intermediate_size": 128, "max_source_positions": 16}
    config = VoxtralConfig(audio_config=audio, text_config=LlamaConfig(**TEXT), audio_token_id=IMAGE)
    return VoxtralForConditionalGeneration(config), heard(4, 32)


@case("GlmAsrForConditionalGeneration")
def _() -> Built:
    from transformers import GlmAsrConfig, GlmAsrForConditionalGeneration, LlamaConfig

    audio = {**AUDIO, "intermediate_size": 128, "max_position_embeddings": 16}
    config = GlmAsrConfig(audio_config=audio, text_config=LlamaConfig(**TEXT), audio_token_id=IMAGE)
    calls = heard(4, 32, input_features_mask=lambda rows: torch.ones(rows, 32, dtype=torch.long))
    return GlmAsrForConditionalGeneration(config), calls


@case("Florence2ForConditionalGeneration")
def _() -> Built:
    from transformers import BartConfig, Florence2Config, Florence2ForConditionalGeneration

    vision = {
        "depths": [1, 1], "patch_size": [7, 3], "patch_stride": [4, 2], "patch_padding": [3, 1],
        "patch_prenorm": [False, True], "embed_dim": [8, 16], "num_heads": [1, 2], "num_groups": [1, 2],
        "window_size": 4, "projection_dim": 32, "drop_path_rate": 0.0,
    }  # fmt: skip
    text = BartConfig(
        vocab_size=VOCABULARY, d_model=32, max_position_embeddings=64, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=48, decoder_ffn_dim=48,
    )  # fmt: skip
    config = Florence2Config(text_config=text, vision_config=vision, image_token_id=IMAGE)
    # 4 x 4 places, and their mean
    calls = [
        ((), {
            "input_ids": illustrated(b, n + 8, IMAGE, 17), "attention_mask": mask(b, n + 8),
            "pixel_values": torch.randn(b, 3, 32, 32), "decoder_input_ids": words(b, n // 2),
        })
        for b, n in SIZES
    ]  # fmt: skip
    return Florence2ForConditionalGeneration(config), calls


PIXTRAL: dict[str, Any] = {**VISION, "head_dim": 16}


def sizes(rows: int, length: int) -> torch.Tensor:
    """The heights and widths (rows, 2) of the images."""
    return torch.tensor([[32, 32]] * rows)


@case("Mistral3ForConditionalGeneration")
def _() -> Built:
    from transformers import Mistral3Config, Mistral3ForConditionalGeneration, MistralConfig, PixtralVisionConfig

    config = Mistral3Config(
        vision_config=PixtralVisionConfig(**PIXTRAL), text_config=MistralConfig(**TEXT), image_token_index=IMAGE,
        spatial_merge_size=2,
    )  # fmt: skip
    return Mistral3ForConditionalGeneration(config), pictured(4, image_sizes=sizes)


@case("LightOnOcrForConditionalGeneration")
def _() -> Built:
    from transformers import LightOnOcrConfig, LightOnOcrForConditionalGeneration, PixtralVisionConfig, Qwen3Config

    config = LightOnOcrConfig(
        vision_config=PixtralVisionConfig(**PIXTRAL), text_config=Qwen3Config(**TEXT), image_token_id=IMAGE,
        spatial_merge_size=2,
    )  # fmt: skip
    return LightOnOcrForConditionalGeneration(config), pictured(4, image_sizes=sizes)


@case("Ovis2ForConditionalGeneration")
def _() -> Built:
    from transformers import Ovis2Config, Ovis2ForConditionalGeneration, Qwen2Config

    vision = {**VISION, "vocab_size": 24, "hidden_stride": 2, "num_visual_indicator_tokens": 5}
    config = Ovis2Config(
        vision_config=vision, text_config=Qwen2Config(**TEXT), image_token_id=IMAGE, hidden_size=32,
        visual_indicator_token_ids=[90, 91, 92, 93, 94], vocab_size=VOCABULARY,
    )  # fmt: skip
    return Ovis2ForConditionalGeneration(config), pictured(4)


@case("PaliGemmaForConditionalGeneration")
def _() -> Built:
    from transformers import GemmaConfig, PaliGemmaConfig, PaliGemmaForConditionalGeneration, SiglipVisionConfig

    config = PaliGemmaConfig(
        vision_config=SiglipVisionConfig(**{**VISION, "patch_size": 16}), text_config=GemmaConfig(**TEXT),
        image_token_index=IMAGE, projection_dim=32, hidden_size=32,
    )  # fmt: skip
    kinds = {"token_type_ids": lambda rows, length: torch.zeros(rows, length, dtype=torch.long)}
    return PaliGemmaForConditionalGeneration(config), pictured(4, **kinds)


@case("LlavaOnevisionForConditionalGeneration")
def _() -> Built:
    from transformers import (
        LlavaOnevisionConfig,
        LlavaOnevisionForConditionalGeneration,
        Qwen2Config,
        SiglipVisionConfig,
    )

    config = LlavaOnevisionConfig(
        vision_config=SiglipVisionConfig(**{**VISION, "patch_size": 16}), text_config=Qwen2Config(**TEXT),
        image_token_index=IMAGE, video_token_index=94, image_grid_pinpoints=[[32, 32]],
    )  # fmt: skip
    # the image as a whole and as one piece: 4 + 4 places, and the ends of 2 lines
    return LlavaOnevisionForConditionalGeneration(config), pictured(10, (2, 3, 32, 32), image_sizes=sizes)


@case("SuperGlueForKeypointMatching")
def _() -> Built:
    from transformers import SuperGlueConfig, SuperGlueForKeypointMatching, SuperPointConfig

    points = SuperPointConfig(
        encoder_hidden_sizes=[8, 8, 8, 8], decoder_hidden_size=16, descriptor_decoder_dim=16, max_keypoints=12
    )
    config = SuperGlueConfig(
        keypoint_detector_config=points, hidden_size=16, keypoint_encoder_sizes=[8], gnn_layers_types=["self", "cross"],
        num_attention_heads=2, sinkhorn_iterations=4,
    )  # fmt: skip
    calls = [((torch.rand(b, 2, 3, n, n),), {}) for b, n in ((2, 32), (3, 32), (4, 40))]
    return SuperGlueForKeypointMatching(config), calls


@case("RTDetrV2ForObjectDetection")
def _() -> Built:
    from transformers import RTDetrResNetConfig, RTDetrV2Config, RTDetrV2ForObjectDetection

    backbone = RTDetrResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    config = RTDetrV2Config(
        backbone_config=backbone, encoder_hidden_dim=16, encoder_in_channels=[8, 16, 16], encoder_ffn_dim=16,
        encoder_attention_heads=2, d_model=16, num_queries=6, decoder_in_channels=[16, 16, 16], decoder_ffn_dim=16,
        decoder_layers=2, decoder_attention_heads=2, num_labels=4,
    )  # fmt: skip
    return RTDetrV2ForObjectDetection(config), [
        ((torch.randn(b, 3, n, n),), {}) for b, n in ((2, 64), (3, 64), (4, 96))
    ]


@case("LlavaNextForConditionalGeneration")
def _() -> Built:
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaNextConfig, LlavaNextForConditionalGeneration

    config = LlavaNextConfig(
        vision_config=CLIPVisionConfig(**{**CLIP, "patch_size": 16}), text_config=LlamaConfig(**TEXT),
        image_token_index=IMAGE, image_grid_pinpoints=[[32, 32]],
    )  # fmt: skip
    return LlavaNextForConditionalGeneration(config), pictured(10, (2, 3, 32, 32), image_sizes=sizes)


@case("SplinterForPreTraining")
def _() -> Built:
    from transformers import SplinterConfig, SplinterForPreTraining

    config = SplinterConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=64, question_token_id=IMAGE,
    )  # fmt: skip
    calls = [((illustrated(b, n, IMAGE, 2),), {"attention_mask": mask(b, n)}) for b, n in SIZES]
    return SplinterForPreTraining(config), calls
