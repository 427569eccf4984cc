"""Real model classes with tiny configurations and random weights: the value of the fixes is held on them."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Call = tuple[tuple[Any, ...], dict[str, Any]]
Built = tuple[torch.nn.Module, list[Call]]


@dataclass(frozen=True)
class Case:
    """A model and its three calls; the first call's graphs are counted.

    ``package``: the importable package whose source is patched. ``compiled``: the submodule that is compiled, the
    whole model when empty.
    """

    name: str
    package: str
    build: Callable[[], Built]
    compiled: str = ""


CASES: list[Case] = []


def case(name: str, package: str = "transformers", compiled: str = "", cases: list[Case] = CASES) -> Any:
    """Register a function that builds a case; weights and inputs are seeded, the model is put into eval mode."""

    def register(make: Callable[[], Built]) -> None:
        def build() -> Built:
            torch.manual_seed(0)
            model, calls = make()
            return disturbed(model.eval()), calls

        cases.append(Case(name, package, build, compiled))

    return register


@torch.no_grad()
def disturbed(model: torch.nn.Module) -> torch.nn.Module:
    """Add noise to all parameters: fresh biases are zero and fresh norms one, which hides wrong results."""
    random = torch.Generator().manual_seed(1)
    for _, weight in sorted(model.named_parameters()):
        wide = weight.numel() / max(1, weight.shape[0]) if weight.dim() > 1 else 0
        scale = min(0.1, 0.7 / wide**0.5) if wide else 0.05
        weight.add_((torch.randn(weight.shape, generator=random) * scale).to(weight.dtype))
    return model


VOCABULARY = 96
#: The sizes of a text model, in the words of most configurations.
TEXT: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 128,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
#: Rows and lengths of the three calls; none has one row, for which Dynamo compiles by itself.
SIZES = ((2, 16), (3, 20), (4, 24))


def words(rows: int, length: int) -> torch.Tensor:
    """Token ids (rows, length) without special ones."""
    return torch.randint(10, 90, (rows, length))


def mask(rows: int, length: int, padding: int = 3) -> torch.Tensor:
    """An attention mask (rows, length) whose first row is padded on the left."""
    attended = torch.ones(rows, length, dtype=torch.long)
    attended[0, :padding] = 0
    return attended


def illustrated(rows: int, length: int, image: int, tokens: int) -> torch.Tensor:
    """Token ids (rows, length) with ``tokens`` times the token ``image`` in each row."""
    ids = words(rows, length)
    ids[:, 4 : 4 + tokens] = image
    return ids


# ---------------------------------------------------------------------------------------------------------------------
# Vision and language.


@case("LlavaForConditionalGeneration")
def _() -> Built:
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    vision = CLIPVisionConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2, image_size=24, patch_size=8,
        projection_dim=32,
    )  # fmt: skip
    config = LlavaConfig(vision_config=vision, text_config=LlamaConfig(**TEXT), image_token_index=95)
    inputs = [
        {"input_ids": illustrated(b, n, 95, 9), "attention_mask": mask(b, n), "pixel_values": torch.randn(b, 3, 24, 24)}
        for b, n in SIZES
    ]
    return LlavaForConditionalGeneration(config), [((), call) for call in inputs]


@case("Gemma3ForConditionalGeneration")
def _() -> Built:
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, SiglipVisionConfig

    vision = SiglipVisionConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2, image_size=32, patch_size=8
    )
    text = {**TEXT, "query_pre_attn_scalar": 16, "sliding_window": 8, "layer_types": ["sliding_attention"]}
    config = Gemma3Config(
        text_config=text, vision_config=vision, mm_tokens_per_image=4, image_token_index=95, boi_token_index=94,
        eoi_token_index=93,
    )  # fmt: skip
    inputs = [
        {"input_ids": illustrated(b, n, 95, 4), "attention_mask": mask(b, n), "pixel_values": torch.randn(b, 3, 32, 32)}
        for b, n in SIZES
    ]
    return Gemma3ForConditionalGeneration(config), [((), call) for call in inputs]


@case("Idefics3ForConditionalGeneration")
def _() -> Built:
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration, LlamaConfig

    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = Idefics3Config(
        vision_config={**vision, "image_size": 32, "patch_size": 8}, text_config=LlamaConfig(**TEXT),
        image_token_id=95, scale_factor=2,
    )  # fmt: skip
    inputs = [
        {"input_ids": illustrated(b, n, 95, 4), "attention_mask": mask(b, n), "pixel_values": images(b)}
        for b, n in SIZES
    ]
    return Idefics3ForConditionalGeneration(config), [((), call) for call in inputs]


def images(rows: int) -> torch.Tensor:
    """One image of 32 x 32 a row, in the shape (rows, 1, 3, 32, 32)."""
    return torch.randn(rows, 1, 3, 32, 32)


@case("Qwen2_5_VLForConditionalGeneration")
def _() -> Built:
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    vision = {
        "depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "patch_size": 4, "window_size": 16,
        "out_hidden_size": 32, "fullatt_block_indexes": [1],
    }  # fmt: skip
    rotary = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 2, 2]}
    config = Qwen2_5_VLConfig(
        text_config={**TEXT, "rope_parameters": rotary}, vision_config=vision, image_token_id=95, video_token_id=94,
        vision_start_token_id=93, vision_end_token_id=92,
    )  # fmt: skip
    return Qwen2_5_VLForConditionalGeneration(config), [((), gridded(b, n)) for b, n in SIZES]


def gridded(rows: int, length: int) -> dict[str, Any]:
    """Inputs of a model that reads patches and their grid: one image of 4 x 4 patches (4 tokens) a row."""
    ids = illustrated(rows, length, 95, 4)
    return {
        "input_ids": ids,
        "attention_mask": mask(rows, length),
        "mm_token_type_ids": (ids == 95).int(),
        "image_grid_thw": torch.tensor([[1, 4, 4]] * rows),
        "pixel_values": torch.randn(rows * 16, 3 * 2 * 4 * 4),
    }


# ---------------------------------------------------------------------------------------------------------------------
# Detection, key points, audio, time series.


@case("GroundingDinoForObjectDetection")
def _() -> Built:
    from transformers import BertConfig, GroundingDinoConfig, GroundingDinoForObjectDetection, SwinConfig

    backbone = SwinConfig(
        image_size=32, patch_size=4, window_size=2, embed_dim=16, depths=[1, 1], num_heads=[1, 1],
        out_features=["stage1", "stage2"],
    )  # fmt: skip
    text = BertConfig(
        vocab_size=1100, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=64,
    )  # fmt: skip
    config = GroundingDinoConfig(
        backbone_config=backbone, text_config=text, use_timm_backbone=False, d_model=32, encoder_layers=1,
        decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=48,
        decoder_ffn_dim=48, num_queries=4, num_feature_levels=2,
    )  # fmt: skip
    inputs = []
    for rows, length, wide in ((2, 8, 32), (3, 8, 32), (4, 10, 40)):
        ids = words(rows, length)
        ids[:, 0], ids[:, 4], ids[:, -1] = 101, 1012, 102  # the tokens between which a phrase stands
        inputs.append({"pixel_values": torch.randn(rows, 3, 32, wide), "input_ids": ids})
    return GroundingDinoForObjectDetection(config), [((), call) for call in inputs]


@case("LightGlueForKeypointMatching")
def _() -> Built:
    from transformers import LightGlueConfig, LightGlueForKeypointMatching, SuperPointConfig

    points = SuperPointConfig(
        encoder_hidden_sizes=[8, 8, 8, 8], decoder_hidden_size=16, descriptor_decoder_dim=16, max_keypoints=12
    )
    config = LightGlueConfig(
        keypoint_detector_config=points, descriptor_dim=16, num_hidden_layers=2, num_attention_heads=2
    )
    return LightGlueForKeypointMatching(config), [
        ((torch.rand(b, 2, 3, n, n),), {}) for b, n in ((2, 32), (3, 32), (4, 40))
    ]


@case("EncodecModel")
def _() -> Built:
    from transformers import EncodecConfig, EncodecModel

    config = EncodecConfig(
        target_bandwidths=[24.0, 48.0], hidden_size=8, num_filters=4, upsampling_ratios=[4, 2], codebook_size=16,
        num_lstm_layers=1,
    )  # fmt: skip
    return EncodecModel(config), [((torch.randn(b, 1, n),), {}) for b, n in ((2, 160), (3, 160), (4, 240))]


@case("VitsModel")
def _() -> Built:
    from transformers import VitsConfig, VitsModel

    config = VitsConfig(
        vocab_size=38, hidden_size=16, num_hidden_layers=1, ffn_dim=16, flow_size=8, spectrogram_bins=9,
        upsample_initial_channel=16, upsample_rates=[4, 2], upsample_kernel_sizes=[8, 4], resblock_kernel_sizes=[3],
        resblock_dilation_sizes=[[1, 3]], depth_separable_num_layers=1, duration_predictor_num_flows=1,
        duration_predictor_filter_channels=16, prior_encoder_num_flows=1, prior_encoder_num_wavenet_layers=1,
        posterior_encoder_num_wavenet_layers=1,
    )  # fmt: skip
    return VitsModel(config), [((torch.randint(1, 38, (b, n)),), {}) for b, n in ((2, 8), (3, 8), (4, 12))]


@case("TimesFmModelForPrediction")
def _() -> Built:
    from transformers import TimesFmConfig, TimesFmModelForPrediction

    config = TimesFmConfig(
        patch_length=8, context_length=32, horizon_length=8, num_hidden_layers=1, hidden_size=32,
        intermediate_size=32, head_dim=16, num_attention_heads=2,
    )  # fmt: skip
    calls = [([torch.randn(n) for n in lengths],) for lengths in ((32, 24), (32, 24, 16), (32, 24, 40, 16))]
    return TimesFmModelForPrediction(config), [(call, {}) for call in calls]


# ---------------------------------------------------------------------------------------------------------------------
# Text.


@case("LongformerForMaskedLM")
def _() -> Built:
    from transformers import LongformerConfig, LongformerForMaskedLM

    config = LongformerConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=64, attention_window=[8],
    )  # fmt: skip
    return LongformerForMaskedLM(config), [((words(b, n),), {"attention_mask": mask(b, n)}) for b, n in SIZES]


@case("LongcatFlashForCausalLM")
def _() -> Built:
    from transformers import LongcatFlashConfig, LongcatFlashForCausalLM

    config = LongcatFlashConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_layers=1, num_attention_heads=2, ffn_hidden_size=48,
        q_lora_rank=16, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, head_dim=8, v_head_dim=16,
        n_routed_experts=4, zero_expert_num=2, moe_topk=2, expert_ffn_hidden_size=32, max_position_embeddings=64,
    )  # fmt: skip
    return LongcatFlashForCausalLM(config), [((words(b, n),), {"attention_mask": mask(b, n)}) for b, n in SIZES]


@case("CTRLLMHeadModel")
def _() -> Built:
    from transformers import CTRLConfig, CTRLLMHeadModel

    config = CTRLConfig(vocab_size=VOCABULARY, n_positions=64, n_embd=32, dff=48, n_layer=1, n_head=2)
    return CTRLLMHeadModel(config), [((words(b, n),), {"attention_mask": mask(b, n)}) for b, n in SIZES]


@case("Phi3ForCausalLM")
def _() -> Built:
    from transformers import Phi3Config, Phi3ForCausalLM

    scaling = {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0 + k / 4 for k in range(8)]}
    text = {key: value for key, value in TEXT.items() if key != "head_dim"}
    config = Phi3Config(**text, original_max_position_embeddings=20, rope_parameters={**scaling, "rope_theta": 1e4})
    return Phi3ForCausalLM(config), [((words(b, n),), {}) for b, n in SIZES]  # the third is beyond the original length


@case("T5ForConditionalGeneration")
def _() -> Built:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=VOCABULARY, d_model=32, d_kv=16, d_ff=48, num_layers=1, num_heads=2)
    calls = [(words(b, n), mask(b, n), words(b, n // 2)) for b, n in SIZES]
    return T5ForConditionalGeneration(config).half(), [(call, {}) for call in calls]


@case("BartForConditionalGeneration")
def _() -> Built:
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(
        vocab_size=VOCABULARY, d_model=32, max_position_embeddings=64, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=48, decoder_ffn_dim=48,
    )  # fmt: skip
    calls = [(words(b, n), mask(b, n), words(b, n // 2)) for b, n in SIZES]
    return BartForConditionalGeneration(config).half(), [(call, {}) for call in calls]


# ---------------------------------------------------------------------------------------------------------------------
# Other packages.


@case("toto.Forecast", "toto", compiled="backbone")
def _() -> Built:
    stand_in("gluonts.core.component", validated=lambda *_: lambda method: method)
    stand_in("gluonts.torch.scaler", Scaler=object)
    stand_in("gluonts.torch.distributions", AffineTransformed=torch.distributions.TransformedDistribution)
    stand_in("gluonts.torch.distributions.studentT", StudentT=torch.distributions.StudentT)
    from toto.model.backbone import TotoBackbone

    patch = 8

    class Backbone(torch.nn.Module):
        """Everything but the distribution object, whose place a mean takes."""

        def __init__(self) -> None:
            super().__init__()
            self.toto = TotoBackbone(
                patch_size=patch, stride=patch, embed_dim=32, num_layers=2, num_heads=2, mlp_hidden_dim=48,
                dropout=0.0, spacewise_every_n_layers=2, spacewise_first=False,
                scaler_cls="<class 'model.scaler.StdMeanScaler'>",
                output_distribution_classes=["<class 'model.distribution.StudentTOutput'>"],
                use_memory_efficient_attention=False,
            )  # fmt: skip

        def forward(self, series: Any, padding: Any, ids: Any, cache: Any, prefix: int) -> Any:
            flat, location, scale = self.toto.backbone(series, padding, ids, cache, prefix)
            return flat[:, :, -patch:].mean(-1, keepdim=True), location, scale

    class Forecast(torch.nn.Module):
        """What ``TotoForecaster.generate_mean`` does: a prefill of the cache, then steps of one patch."""

        def __init__(self) -> None:
            super().__init__()
            self.backbone = Backbone()

        def forward(self, series: torch.Tensor, steps: int) -> Any:
            rows, variates, prefix = series.shape
            room = prefix + (steps + 2) * patch
            cache = self.backbone.toto.allocate_kv_cache(rows, variates, room, series.device, series.dtype)
            patches = []
            for _ in range(steps + 1):
                padding, ids = torch.ones_like(series, dtype=torch.bool), torch.zeros_like(series, dtype=torch.int)
                mean, location, scale = self.backbone(series, padding, ids, cache, prefix)
                patches.append(mean.squeeze(-1) * scale[..., -1:] + location[..., -1:])
                series = torch.cat([series, patches[-1]], -1)
            return patches, cache._keys.clone()

    sizes = ((2, 3, 6, 4), (3, 3, 6, 4), (4, 3, 8, 3))
    return Forecast(), [((torch.randn(b, v, n * patch).cumsum(-1), steps), {}) for b, v, n, steps in sizes]


def stand_in(name: str, **held: Any) -> None:
    """Take the place of a module of gluonts, which needs lightning, pandas and scipy; toto takes base classes of it."""
    parts = name.split(".")
    for number in range(1, len(parts) + 1):
        part = ".".join(parts[:number])
        module = sys.modules.setdefault(part, types.ModuleType(part))
        module.__path__ = []
    module.__dict__.update(held)


@case("vision_language.Captioner", "fixtures", compiled="captioner")
def _() -> Built:
    from fixtures.vision_language.before import Captioner, CaptionerConfig

    class Caption(torch.nn.Module):
        """Read a prompt with pictures, then write words one by one."""

        def __init__(self) -> None:
            super().__init__()
            self.captioner = Captioner(CaptionerConfig(depth=1))

        def forward(self, ids: torch.Tensor, pictures: torch.Tensor, steps: int) -> Any:
            scores, past = self.captioner(ids, pictures)
            written = [scores]
            for start in range(ids.shape[1], ids.shape[1] + steps):
                scores, past = self.captioner(scores[:, -1:].argmax(-1), None, past=past, start=start)
                written.append(scores)
            return written

    calls = []
    for rows, length in ((2, 12), (3, 12), (4, 18)):  # the last one goes beyond the trained length
        ids = torch.randint(3, 12, (rows, length))
        ids[:, 1:5] = 2  # <pic>
        calls.append((ids, torch.randn(rows, 3, 16, 16), 4))
    return Caption(), [(call, {}) for call in calls]


@case("zuko.NSF", "zuko")
def _() -> Built:
    import zuko

    class Density(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flow = zuko.flows.NSF(3, 2, transforms=2, hidden_features=(8,))

        def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
            return self.flow(context).log_prob(x)

    return Density(), [((torch.randn(b, 3), torch.randn(b, 2)), {}) for b in (6, 9, 14)]


@case("snac.SNAC", "snac")
def _() -> Built:
    from snac import SNAC

    model = SNAC(
        encoder_dim=8, encoder_rates=[2, 4], decoder_dim=32, decoder_rates=[4, 2], attn_window_size=None,
        codebook_size=32, codebook_dim=4, vq_strides=[2, 1],
    )  # fmt: skip
    return model, [((torch.randn(b, 1, n) * 0.3,), {}) for b, n in ((2, 256), (3, 256), (4, 320))]


@case("vit_rgts.VitRGTS", "vit_rgts")
def _() -> Built:
    from vit_rgts import VitRGTS

    model = VitRGTS(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8)
    return model, [((torch.rand(b, 3, 32, 32),), {}) for b in (2, 3, 4)]


@case("vector_quantize_pytorch.ResidualVQ", "vector_quantize_pytorch")
def _() -> Built:
    from vector_quantize_pytorch import ResidualVQ

    model = ResidualVQ(dim=16, codebook_size=32, num_quantizers=3, quantize_dropout=True)
    return model, [((torch.randn(b, n, 16),), {}) for b, n in SIZES]


@case("torch_struct.LinearChainCRF", "torch_struct")
def _() -> Built:
    from torch_struct import LinearChainCRF

    class Partition(torch.nn.Module):
        def forward(self, scores: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            return LinearChainCRF(scores, lengths).partition

    sizes = ((2, 6), (3, 6), (4, 9))
    return Partition(), [((torch.randn(b, n - 1, 3, 3), torch.full((b,), n)), {}) for b, n in sizes]
