"""Classes of packages that nobody had looked at when the rules for what they do were written; for ``forecast.py``.

Data, not a program: as ``zoo.py``, with packages beside those of ``zoo.txt`` (openai-whisper, litgpt, lerobot).
"""

from __future__ import annotations

from typing import Any

import zoo
from zoo import Built, Class, lengths, normal, uniform, whole

CLASSES: dict[str, Class] = {}
#: By class, what is compiled here though nothing in its package compiles it (``--compiled``).
COMPILED: dict[str, str] = {}


def case(name: str) -> tuple[Any, Any]:
    """``build`` and ``calls`` of a case file."""
    zoo.CLASSES.setdefault(name, CLASSES[name])
    return zoo.case(name)


def unseen(name: str, packages: str, family: str, *, train: bool = False, compiled: str = "") -> Any:
    def register(build: Any) -> None:
        assert name not in CLASSES, name
        if compiled:
            COMPILED[name] = compiled
        CLASSES[name] = Class(name, tuple(packages.split()), family, build, False, train)

    return register


@unseen("whisper.Whisper", "whisper", "speech")
def _() -> Built:
    from whisper.model import ModelDimensions, Whisper

    model = Whisper(ModelDimensions(8, 16, 16, 2, 1, 50, 24, 16, 2, 1))
    return model, lambda: [(normal(rows, 8, 32), whole(50, rows, n)) for rows, n in ((1, 4), (2, 4), (1, 9))]


@unseen("whisper.decode", "whisper", "speech, generation", compiled="whisper.decoding:decode")
def _() -> Built:
    import whisper
    from whisper.model import ModelDimensions, Whisper

    model = Whisper(ModelDimensions(8, 16, 16, 2, 1, 51865, 24, 16, 2, 1))
    options = whisper.DecodingOptions(fp16=False, sample_len=4, language="en", without_timestamps=True)
    decode = zoo.method(model, "decode")
    return decode, lambda: [(normal(rows, 8, 32), options) for rows in (1, 2, 3)]


@unseen("litgpt.GPT", "litgpt", "language model, with a cache")
def _() -> Built:
    import torch
    from litgpt.config import Config
    from litgpt.model import GPT

    model = GPT(Config(block_size=32, vocab_size=50, padded_vocab_size=50, n_layer=2, n_head=2, n_embd=16))
    model.set_kv_cache(batch_size=1)
    places = [(0, 8), (8, 9), (9, 10)]
    return model, lambda: [(whole(50, 1, b - a), torch.arange(a, b)) for a, b in places]


@unseen("litgpt.generate", "litgpt", "language model, generation", compiled="litgpt.generate.base:generate")
def _() -> Built:
    import torch
    from litgpt.config import Config
    from litgpt.generate.base import generate
    from litgpt.model import GPT

    model = GPT(Config(block_size=32, vocab_size=50, padded_vocab_size=50, n_layer=2, n_head=2, n_embd=16))
    model.set_kv_cache(batch_size=1)

    class Generate(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, prompt: Any, longest: int) -> Any:
            return generate(self.model, prompt, longest, temperature=0.0)

    return Generate(), lambda: [(whole(50, n), n + 4) for n in (6, 8, 5)]


@unseen("x_transformers.AutoregressiveWrapper", "x_transformers", "language model, generation")
def _() -> Built:
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    inner = TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=Decoder(dim=16, depth=2, heads=2))
    model = AutoregressiveWrapper(inner)
    generate = zoo.method(model, "generate")
    return generate, lambda: [(whole(50, rows, n), 4) for rows, n in ((2, 6), (3, 6), (2, 9))]


@unseen("torchaudio.Wav2Vec2", "torchaudio.models", "speech")
def _() -> Built:
    from torchaudio.models import wav2vec2_model

    model = wav2vec2_model(
        extractor_mode="group_norm", extractor_conv_layer_config=[(8, 10, 5), (8, 3, 2)], extractor_conv_bias=False,
        encoder_embed_dim=16, encoder_projection_dropout=0.0, encoder_pos_conv_kernel=8, encoder_pos_conv_groups=2,
        encoder_num_layers=2, encoder_num_heads=2, encoder_attention_dropout=0.0, encoder_ff_interm_features=32,
        encoder_ff_interm_dropout=0.0, encoder_dropout=0.0, encoder_layer_norm_first=False, encoder_layer_drop=0.0,
        aux_num_out=None,
    )  # fmt: skip
    sizes = ((2, 400), (3, 400), (2, 520))
    return model, lambda: [(normal(rows, n), lengths(rows, n, 40)) for rows, n in sizes]


@unseen("torchaudio.WaveRNN-infer", "torchaudio.models", "vocoder", compiled="torchaudio.models.wavernn:WaveRNN.infer")
def _() -> Built:
    from torchaudio.models import WaveRNN

    model = WaveRNN([2, 2], 8, 4, 1, 8, 8, 3, 8, 8, 8)
    infer = zoo.method(model, "infer")
    return infer, lambda: [(normal(rows, 8, n), lengths(rows, n, 1)) for rows, n in ((2, 6), (3, 6), (2, 7))]


@unseen("kornia.MultiResolutionDetector", "kornia.feature", "key points")
def _() -> Built:
    from kornia.feature import CornerGFTT
    from kornia.feature.scale_space_detector import MultiResolutionDetector

    model = MultiResolutionDetector(CornerGFTT(), num_features=8)
    return model, lambda: [(uniform(1, 1, n, n),) for n in (32, 40, 48)]


@unseen("kornia.RandomAffine", "kornia.augmentation", "augmentation")
def _() -> Built:
    from kornia.augmentation import AugmentationSequential, RandomAffine, RandomHorizontalFlip

    model = AugmentationSequential(RandomAffine(20.0, p=0.5), RandomHorizontalFlip(p=0.5), data_keys=["input", "mask"])
    sizes = ((2, 16), (3, 16), (2, 24))
    return model, lambda: [(uniform(rows, 3, n, n), uniform(rows, 1, n, n)) for rows, n in sizes]


@unseen("vector_quantize_pytorch.VectorQuantize", "vector_quantize_pytorch", "quantization")
def _() -> Built:
    from vector_quantize_pytorch import VectorQuantize

    model = VectorQuantize(dim=8, codebook_size=16, kmeans_init=True, threshold_ema_dead_code=2)
    return model, lambda: [(normal(rows, n, 8),) for rows, n in ((2, 16), (3, 16), (2, 24))]


@unseen("vector_quantize_pytorch.ResidualVQ", "vector_quantize_pytorch", "quantization", train=True)
def _() -> Built:
    from vector_quantize_pytorch import ResidualVQ

    model = ResidualVQ(dim=8, num_quantizers=3, codebook_size=16, quantize_dropout=True)
    return model, lambda: [(normal(rows, n, 8),) for rows, n in ((2, 16), (3, 16), (2, 24))]


@unseen("vector_quantize_pytorch.LFQ", "vector_quantize_pytorch", "quantization", train=True)
def _() -> Built:
    from vector_quantize_pytorch import LFQ

    model = LFQ(codebook_size=16, dim=8)
    return model, lambda: [(normal(rows, n, 8),) for rows, n in ((2, 16), (3, 16), (2, 24))]


@unseen("torchvision.SSD", "torchvision.models.detection", "detection")
def _() -> Built:
    import torch
    from torchvision.models.detection.anchor_utils import DefaultBoxGenerator
    from torchvision.models.detection.ssd import SSD

    backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 8, 1))
    backbone.out_channels = [8]  # type: ignore[assignment]
    model = SSD(backbone, DefaultBoxGenerator([[2]]), (32, 32), 3)
    return model, lambda: [([uniform(3, n, n)] * rows,) for rows, n in ((1, 32), (2, 32), (1, 40))]


@unseen("torchvision.RAFT", "torchvision.models.optical_flow", "optical flow")
def _() -> Built:
    from torchvision.models.optical_flow import raft_small

    model = raft_small()
    return model, lambda: [(uniform(rows, 3, n, n), uniform(rows, 3, n, n), 2) for rows, n in ((1, 128), (2, 128))]


def _graph(nodes: int, edges: int, wide: int) -> tuple[Any, Any, Any]:
    return normal(nodes, wide), whole(nodes, 2, edges), whole(1, nodes)


@unseen("torch_geometric.ASAPooling", "torch_geometric.nn torch_geometric.utils", "graphs")
def _() -> Built:
    from torch_geometric.nn import ASAPooling

    model = ASAPooling(8)
    return model, lambda: [(x, e, None, b) for x, e, b in (_graph(n, 3 * n, 8) for n in (6, 8, 10))]


@unseen("torch_geometric.EdgePooling", "torch_geometric.nn torch_geometric.utils", "graphs")
def _() -> Built:
    from torch_geometric.nn import EdgePooling

    model = EdgePooling(8)
    return model, lambda: [_graph(n, 3 * n, 8) for n in (6, 8, 10)]


@unseen("torch_geometric.DenseToBatch", "torch_geometric.nn torch_geometric.utils", "graphs")
def _() -> Built:
    from torch_geometric.nn import GPSConv

    model = GPSConv(8, None, heads=2)
    return model, lambda: [_graph(n, 3 * n, 8) for n in (6, 8, 10)]


@unseen("product_key_memory.PKM", "product_key_memory", "memory")
def _() -> Built:
    from product_key_memory import PKM

    model = PKM(dim=16, heads=2, dim_head=8, num_keys=8, topk=4)
    return model, lambda: [(normal(rows, n, 16),) for rows, n in ((2, 8), (3, 8), (2, 12))]


@unseen("lerobot.ACT", "lerobot.policies.act", "robot policy")
def _() -> Built:
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.policies.act.modeling_act import ACT

    state, action = PolicyFeature(FeatureType.STATE, (4,)), PolicyFeature(FeatureType.ACTION, (4,))
    picture = PolicyFeature(FeatureType.VISUAL, (3, 32, 32))
    config = ACTConfig(
        input_features={"observation.state": state, "observation.images.a": picture},
        output_features={"action": action}, chunk_size=4, n_action_steps=4, dim_model=16, n_heads=2,
        dim_feedforward=16, n_encoder_layers=1, n_vae_encoder_layers=1, latent_dim=4,
        pretrained_backbone_weights=None,
    )  # fmt: skip
    model = ACT(config)
    return model, lambda: [
        ({"observation.state": normal(n, 4), "observation.images": [uniform(n, 3, 32, 32)]},) for n in (1, 2, 3)
    ]


@unseen("lerobot.VQBeT", "lerobot.policies.vqbet", "robot policy")
def _() -> Built:
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.vqbet.configuration_vqbet import VQBeTConfig
    from lerobot.policies.vqbet.modeling_vqbet import VQBeTModel

    state, action = PolicyFeature(FeatureType.STATE, (4,)), PolicyFeature(FeatureType.ACTION, (4,))
    picture = PolicyFeature(FeatureType.VISUAL, (3, 96, 96))
    config = VQBeTConfig(
        input_features={"observation.state": state, "observation.images.a": picture},
        output_features={"action": action}, crop_shape=(84, 84), pretrained_backbone_weights=None, gpt_n_layer=1,
        gpt_n_head=2, gpt_hidden_dim=16, gpt_output_dim=16, gpt_input_dim=16, vqvae_n_embed=8,
    )  # fmt: skip
    model = VQBeTModel(config)

    def call(rows: int) -> Any:
        held = {"observation.state": normal(rows, 5, 4), "observation.images": uniform(rows, 5, 1, 3, 96, 96)}
        return held, True

    return model, lambda: [call(rows) for rows in (1, 2, 3)]
