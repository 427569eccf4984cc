"""Classes of transformers 5.23 that ``make claims`` measures: small configurations, random weights, three calls.

``CASES``: by name, a function that returns a model and its calls, each a dictionary of tensors. graphmend.py measures
them (``--cases claims_models``). Classes are those of docs/results/breadth.md; a configuration is the default one of
the class with its sizes cut down (``SMALL``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Call = dict[str, Any]
SIZES = ((2, 16), (3, 24), (4, 32))  # rows and tokens
VOCABULARY = 160
WORDS = 90  # below are words, above are the special tokens of a configuration

#: The largest value that an attribute of a configuration keeps.
SMALL = {
    name: size
    for size, names in {
        1: "n_group topk_group",
        2: "num_hidden_layers num_layers n_layer encoder_layers decoder_layers depth num_key_value_heads num_kv_heads "
        "num_experts_per_tok moe_topk first_k_dense_replace linear_num_key_heads linear_num_value_heads "
        "zero_expert_num",
        4: "num_attention_heads num_heads n_head encoder_attention_heads decoder_attention_heads num_experts "
        "num_local_experts n_routed_experts resampler_n_heads mm_tokens_per_image index_n_heads "
        "linear_num_heads",
        16: "head_dim resampler_head_dim qk_nope_head_dim qk_rope_head_dim v_head_dim kv_lora_rank index_head_dim "
        "linear_key_head_dim linear_value_head_dim linear_head_dim",
        12: "num_queries",
        32: "q_lora_rank qk_head_dim upsample_initial_channel",
        64: "hidden_size d_model n_embd embed_dim out_hidden_size",
        96: "intermediate_size moe_intermediate_size encoder_ffn_dim decoder_ffn_dim dff ffn_dim ffn_hidden_size "
        "expert_ffn_hidden_size projection_intermediate_size",
    }.items()
    for name in names.split()
}


def shrink(config: Any) -> Any:
    """Cut the sizes of a configuration down, and of those in it."""
    heads, groups = (vars(config).get(name) for name in ("num_attention_heads", "num_key_value_heads"))
    for name, value in list(vars(config).items()):
        if hasattr(value, "to_dict"):
            shrink(value)
        elif isinstance(value, int) and not isinstance(value, bool) and name in SMALL:
            setattr(config, name, min(value, SMALL[name]))
    if groups is not None and groups == heads:
        config.num_key_value_heads = config.num_attention_heads
    for name in ("layer_types", "mlp_layer_types"):
        if kinds := vars(config).get(name):
            setattr(config, name, (list(dict.fromkeys(kinds)) * 2)[: config.num_hidden_layers])
    for rope in filter(None, (vars(config).get("rope_parameters"), vars(config).get("rope_scaling"))):
        if "rope_type" in rope and hasattr(config, "num_attention_heads"):
            half = int(_head(config) * (rope.get("partial_rotary_factor") or 1.0)) // 2
            rope["mrope_section"] = [half - 2 * (half // 3), half // 3, half // 3]
    return config


def _head(config: Any) -> int:
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def tokens_below(config: Any, taken: dict[int, int] | None = None) -> Any:
    """Give a configuration, and those in it, a small vocabulary with all its special tokens."""
    taken = {} if taken is None else taken
    for name, value in list(vars(config).items()):
        if hasattr(value, "to_dict"):
            tokens_below(value, taken)
        elif name == "vocab_size":
            config.vocab_size = VOCABULARY
        elif name.endswith(("_token_id", "_token_index")) and isinstance(value, int):
            setattr(config, name, taken.setdefault(value, WORDS + len(taken)))
        elif name.endswith("_token_id") and isinstance(value, list):
            setattr(config, name, [taken.setdefault(one, WORDS + len(taken)) for one in value])
    return config


def words(rows: int, length: int) -> Any:
    import torch

    return torch.randint(3, WORDS, (rows, length))


def image(*shape: int) -> Any:
    import torch

    return torch.randn(shape)


def text(config: Any, rows: int, length: int, **slots: int) -> Call:
    """Token ids with a run of each kind of slot (``image_token_id=4``), and a mask that leaves the first place out."""
    import torch

    ids = words(rows, length + sum(slots.values()))
    start = 2
    for name, count in slots.items():
        ids[:, start : start + count] = getattr(config, name)
        start += count
    mask = torch.ones_like(ids)
    mask[0, 0] = 0
    return {"input_ids": ids, "attention_mask": mask}


Inputs = Callable[[Any, int, int], Call]
CASES: dict[str, Callable[[], tuple[Any, list[Call]]]] = {}


def case(name: str, inputs: Inputs, adjust: Callable[[Any], None] | None = None, small: bool = True) -> None:
    """Register a class. ``adjust`` changes its configuration before it is made small; ``small``: that it is."""

    def build() -> tuple[Any, list[Call]]:
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        kind = getattr(transformers, name)
        config = kind.config_class()
        if adjust:
            adjust(config)
        config = tokens_below(shrink(config)) if small else config
        model = kind(config).eval()
        with torch.no_grad():
            for weight in model.parameters():  # fresh weights are tiny or constant: a wrong mask would not show
                weight.add_(torch.randn_like(weight) * 0.02)
            calls = [inputs(config, *size) for size in SIZES]
            model(**{key: value.clone() for key, value in calls[0].items()})  # the first call registers hooks
        return model, calls

    CASES[name] = build


def pictures(config: Any) -> tuple[int, int, int]:
    """The shape of a picture: channels, height, width."""
    size = config.vision_config.image_size
    height, width = size if isinstance(size, list | tuple) else (size, size)
    return 3, height, width


def seeing(slots: int, *, nested: bool = False, kinds: bool = False) -> Inputs:
    """A model with ``slots`` tokens for each picture. ``nested``: a list of pictures; ``kinds``: token types."""

    def inputs(config: Any, rows: int, length: int) -> Call:
        name = "image_token_id" if hasattr(config, "image_token_id") else "image_token_index"
        call = text(config, rows, length, **{name: slots})
        call["pixel_values"] = image(rows, *([1] if nested else []), *pictures(config))
        if kinds:
            call["token_type_ids"] = (call["input_ids"] == getattr(config, name)).long()
        return call

    return inputs


def gridded(slots: int = 4, *, kinds: bool = True) -> Inputs:
    """A model whose pictures are rows of patches, with a grid; two by two patches are merged."""

    def inputs(config: Any, rows: int, length: int) -> Call:
        import torch

        call, vision = text(config, rows, length, image_token_id=slots), config.vision_config
        channels = getattr(vision, "in_channels", None) or getattr(vision, "num_channels", 3)
        width = channels * getattr(vision, "temporal_patch_size", 1) * vision.patch_size**2
        call["image_grid_thw"] = torch.tensor([[1, 4, 4]] * rows)
        call["pixel_values"] = image(rows * 16, width)
        if kinds:
            call["mm_token_type_ids"] = (call["input_ids"] == config.image_token_id).long()
        else:
            call["image_merge_sizes"] = torch.tensor([1] * rows)
        return call

    return inputs


def plain(config: Any, rows: int, length: int) -> Call:
    return text(config, rows, length)


def small_pictures(slots: int) -> Callable[[Any], None]:
    """Pictures of so many patches a side."""

    def adjust(config: Any) -> None:
        config.vision_config.image_size = config.vision_config.patch_size * slots

    return adjust


case("LlavaForConditionalGeneration", seeing(16), small_pictures(4))
case("AyaVisionForConditionalGeneration", seeing(4), small_pictures(4))
case("Cohere2VisionForConditionalGeneration", seeing(4), small_pictures(4))
case("Gemma3ForConditionalGeneration", seeing(4, kinds=True), small_pictures(4))
case("Idefics2ForConditionalGeneration", seeing(64, nested=True), small_pictures(4))
case("Idefics3ForConditionalGeneration", seeing(4, nested=True), small_pictures(4))
for _name in ("Glm4v", "Glm46V", "Glm4vMoe", "Glm5Next", "GlmOcr", "Qwen2VL", "Qwen2_5_VL"):
    case(f"{_name}ForConditionalGeneration", gridded())
case("VideoLlama3ForConditionalGeneration", gridded(16, kinds=False))
case("CTRLLMHeadModel", plain)
case("LongcatFlashForCausalLM", plain)
case("LongformerForMaskedLM", plain)


def wave(config: Any, rows: int, length: int) -> Call:
    return {"input_values": image(rows, 1, 4800 + (length - 16) * 320)}


def matched(config: Any, rows: int, length: int) -> Call:
    return {"pixel_values": image(rows, 2, 3, 64, 64)}


def past(config: Any, rows: int, length: int) -> Call:
    return {"past_values": image(rows, config.context_length)}


def two_layers(config: Any) -> None:
    config.num_hidden_layers = 2


def detected(config: Any, rows: int, length: int) -> Call:
    return {"pixel_values": image(rows, 3, 32, 32), "input_ids": words(rows, length)}


def small_backbone(config: Any) -> None:
    from transformers import SwinConfig

    sizes = {"image_size": 32, "patch_size": 4, "window_size": 2, "embed_dim": 16}
    config.backbone_config = SwinConfig(depths=[1, 1], num_heads=[1, 1], out_features=["stage1", "stage2"], **sizes)
    config.num_feature_levels = 2


def tiles(config: Any) -> None:
    """Pictures of 64 by 64 for InternVL's family: 16 patches, of which each four become one token."""
    size = 4 * (config.vision_config.patch_size[0])
    config.vision_config.image_size = [size, size]


case("InternVLForConditionalGeneration", seeing(4), tiles)
case("QianfanOCRForConditionalGeneration", seeing(4), tiles)
case("EncodecModel", wave, small=False)
case("VitsModel", plain)
case("LightGlueForKeypointMatching", matched, two_layers, small=False)
case("TimesFmModelForPrediction", past)
for _name in ("GroundingDino", "MMGroundingDino"):
    case(f"{_name}ForObjectDetection", detected, small_backbone)


def heard(config: Any, rows: int, length: int) -> Call:
    import torch

    call = text(config, rows, length, audio_token_id=25)
    call["input_features"] = image(rows, config.audio_config.num_mel_bins, 200)
    call["input_features_mask"] = torch.ones(rows, 200, dtype=torch.long)
    return call


def short_audio(config: Any) -> None:
    config.audio_config.max_source_positions, config.audio_chunk_size = 100, 32000


def segmented(config: Any, rows: int, length: int) -> Call:
    return {"pixel_values": image(rows, 3, 64, 64), "task_inputs": words(rows, config.task_seq_len)}


def four_stages(config: Any) -> None:
    from transformers import SwinConfig

    sizes = {"image_size": 64, "patch_size": 4, "window_size": 2, "embed_dim": 16, "num_heads": [1, 1, 2, 2]}
    stages = ["stage1", "stage2", "stage3", "stage4"]
    config.backbone_config = SwinConfig(depths=[1, 1, 1, 1], out_features=stages, **sizes)
    config.encoder_layers, config.decoder_layers, config.text_encoder_num_layers = 2, 3, 2


case("MossTranscribeDiarizeForConditionalGeneration", heard, short_audio)
case("OneFormerForUniversalSegmentation", segmented, four_stages, small=False)
