"""Classes of packages that nobody had looked at when the rules for what they do were written; for ``forecast.py``.

Data, not a program: as ``zoo.py``, with packages beside those of ``zoo.txt`` (openai-whisper, litgpt, lerobot 0.4.4;
those of `BLIND` by the versions that docs/results/forecast.md names).
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import zoo
from zoo import Built, Class, lengths, normal, uniform, whole

CLASSES: dict[str, Class] = {}
#: By class, what is compiled here though nothing in its package compiles it (``--compiled``), separated by blanks.
COMPILED: dict[str, str] = {"torchaudio.Tacotron2": "torchaudio.models.tacotron2:Tacotron2.infer"}
#: Classes that were chosen later, and measured before anything was changed for them.
BLIND: set[str] = set()


def case(name: str) -> tuple[Any, Any]:
    """``build`` and ``calls`` of a case file."""
    zoo.CLASSES.setdefault(name, CLASSES[name])
    return zoo.case(name)


def unseen(
    name: str, packages: str, family: str, *, train: bool = False, compiled: str = "", blind: bool = False
) -> Any:
    def register(build: Any) -> None:
        assert name not in CLASSES, name
        if blind:
            BLIND.add(name)
        if compiled:
            COMPILED[name] = compiled
        CLASSES[name] = Class(name, tuple(packages.split()), family, build, False, train)

    return register


@unseen("whisper.Whisper", "whisper", "speech")
def _() -> Built:
    from whisper.model import ModelDimensions, Whisper

    model = Whisper(ModelDimensions(8, 16, 16, 2, 1, 50, 24, 16, 2, 1))
    return model, lambda: [(normal(rows, 8, 32), whole(50, rows, n)) for rows, n in ((1, 4), (2, 4), (1, 9))]


@unseen(
    "whisper.decode", "whisper", "speech, generation", compiled="whisper.decoding:decode tiktoken.core:Encoding.decode"
)
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


@unseen(
    "x_transformers.AutoregressiveWrapper",
    "x_transformers",
    "language model, generation",
    compiled="x_transformers.autoregressive_wrapper:AutoregressiveWrapper.generate",
)
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
    zoo.bare("lerobot", "lerobot.policies")
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
    zoo.bare("lerobot", "lerobot.policies")
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


# ---------------------------------------------------------------------------------------------------------------------
# Chosen by their packages' names, before the tool had been run on any of them.

blind = partial(unseen, blind=True)


@blind("perceiver_pytorch.PerceiverIO", "perceiver_pytorch", "perceiver", train=True)
def _() -> Built:
    from perceiver_pytorch import PerceiverIO

    model = PerceiverIO(
        depth=1, dim=8, queries_dim=8, logits_dim=5, num_latents=4, latent_dim=8, cross_dim_head=4, latent_heads=2,
        latent_dim_head=4, seq_dropout_prob=0.2,
    )  # fmt: skip
    return model, lambda: [(normal(*size, 8), None, normal(6, 8)) for size in zoo.SIZES]


@blind(
    "performer_pytorch.PerformerLM",
    "performer_pytorch",
    "language model",
    compiled="performer_pytorch.autoregressive_wrapper:AutoregressiveWrapper.generate",
)
def _() -> Built:
    from performer_pytorch import AutoregressiveWrapper, PerformerLM

    inner = PerformerLM(num_tokens=20, max_seq_len=32, dim=16, depth=1, heads=2, causal=True, dim_head=8)
    model = AutoregressiveWrapper(inner)
    return zoo.method(model, "generate"), lambda: [(whole(20, rows, n), 3) for rows, n in ((1, 4), (2, 4), (2, 6))]


@blind("sinkhorn_transformer.SinkhornTransformerLM", "sinkhorn_transformer", "language model")
def _() -> Built:
    from sinkhorn_transformer import SinkhornTransformerLM

    model = SinkhornTransformerLM(num_tokens=20, dim=16, max_seq_len=32, depth=1, heads=2, bucket_size=8)
    return model, lambda: [(whole(20, rows, n),) for rows, n in ((2, 32), (3, 32), (2, 32))]


@blind("denoising_diffusion_pytorch.GaussianDiffusion", "denoising_diffusion_pytorch", "diffusion", train=True)
def _() -> Built:
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    model = GaussianDiffusion(Unet(dim=8, dim_mults=(1, 2)), image_size=16, timesteps=10, sampling_timesteps=3)
    return model, lambda: [(uniform(rows, 3, 16, 16),) for rows in (1, 2, 3)]


@blind(
    "denoising_diffusion_pytorch.sample",
    "denoising_diffusion_pytorch",
    "diffusion, sampling",
    compiled="denoising_diffusion_pytorch.denoising_diffusion_pytorch:GaussianDiffusion.sample",
)
def _() -> Built:
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    model = GaussianDiffusion(Unet(dim=8, dim_mults=(1, 2)), image_size=16, timesteps=10, sampling_timesteps=3)
    return zoo.method(model, "sample"), lambda: [(rows,) for rows in (1, 2, 3)]


@blind("pytorch_tabnet.TabNet", "pytorch_tabnet", "tables", train=True)
def _() -> Built:
    import torch
    from pytorch_tabnet.tab_network import TabNet

    groups = torch.eye(5)
    model = TabNet(
        5, 2, cat_idxs=[1], cat_dims=[4], cat_emb_dim=[1], virtual_batch_size=4, group_attention_matrix=groups
    )

    def call(rows: int) -> Any:
        x = normal(rows, 5)
        x[:, 1] = whole(4, rows).float()
        return (x,)

    return model, lambda: [call(rows) for rows in (8, 12, 16)]


@blind("e3nn.Network", "e3nn", "equivariant network")
def _() -> Built:
    import torch
    from e3nn.nn.models.gate_points_2101 import Network

    model = Network(
        irreps_in=None, irreps_hidden="4x0e + 2x1o", irreps_out="2x0e", irreps_node_attr=None,
        irreps_edge_attr="0e + 1o", layers=1, max_radius=2.0, number_of_basis=4, radial_layers=1, radial_neurons=8,
        num_neighbors=3.0, num_nodes=5.0,
    )  # fmt: skip
    calls = lambda: [({"pos": normal(n, 3), "batch": torch.zeros(n, dtype=torch.long)},) for n in (5, 6, 8)]  # noqa: E731
    return model, calls


@blind("esm.ESM2", "esm", "proteins")
def _() -> Built:
    from esm.model.esm2 import ESM2

    model = ESM2(num_layers=1, embed_dim=16, attention_heads=2)

    def call(rows: int, n: int) -> Any:
        tokens = whole(20, rows, n) + 4
        tokens[:, -2:] = 1
        return ((tokens,), {"repr_layers": [1], "return_contacts": True})

    return model, lambda: [call(*size) for size in ((2, 8), (3, 8), (2, 12))]


@blind(
    "facenet_pytorch.detect_face",
    "facenet_pytorch",
    "faces",
    compiled="facenet_pytorch.models.utils.detect_face:detect_face",
)
def _() -> Built:
    import torch
    from facenet_pytorch.models.mtcnn import ONet, PNet, RNet
    from facenet_pytorch.models.utils.detect_face import detect_face

    class Detect(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.nets = torch.nn.ModuleList([PNet(), RNet(), ONet()])

        def forward(self, images: Any) -> Any:
            return detect_face(images, 20, *self.nets, [0.6, 0.7, 0.7], 0.7, "cpu")

    return Detect(), lambda: [(uniform(rows, n, n, 3) * 255,) for rows, n in ((1, 48), (2, 48), (1, 64))]


@blind("lpips.LPIPS", "lpips", "loss")
def _() -> Built:
    from lpips import LPIPS

    model = LPIPS(pretrained=False, net="squeeze", pnet_rand=True, verbose=False)
    return model, lambda: [(uniform(rows, 3, n, n), uniform(rows, 3, n, n)) for rows, n in ((1, 64), (2, 64), (1, 80))]


@blind("neuralforecast.NHITS", "neuralforecast.models neuralforecast.common", "time series")
def _() -> Built:
    zoo.bare("neuralforecast", "neuralforecast.models")
    from neuralforecast.models.nhits import NHITS

    model = NHITS(h=4, input_size=8, mlp_units=3 * [[16, 16]], max_steps=1)

    def call(rows: int) -> Any:
        held = {"insample_y": normal(rows, 8, 1), "insample_mask": normal(rows, 8, 1).abs().clamp(max=1)}
        return (held | {"futr_exog": None, "hist_exog": None, "stat_exog": None},)

    return model, lambda: [call(rows) for rows in (2, 3, 4)]


@blind("open_clip.CoCa", "open_clip", "images and texts")
def _() -> Built:
    from open_clip.coca_model import CoCa

    texts = {"context_length": 12, "vocab_size": 40, "width": 16, "heads": 2, "layers": 1, "embed_cls": True}
    images = {"layers": 1, "width": 16, "head_width": 8, "patch_size": 8, "image_size": 16, "attentional_pool": True}
    images |= {"attn_pooler_heads": 2, "attn_pooler_queries": 4, "output_tokens": True}
    both = {"context_length": 12, "vocab_size": 40, "width": 16, "heads": 2, "layers": 1, "dim_head": 8, "mlp_ratio": 2}
    model = CoCa(16, both, {**texts, "output_tokens": True}, images)
    return model, lambda: [(uniform(rows, 3, 16, 16), whole(39, rows, 12) + 1) for rows in (1, 2, 3)]


@blind("torchcrepe.Crepe", "torchcrepe", "pitch")
def _() -> Built:
    zoo.bare("torchcrepe")
    sys.modules["torchcrepe"].PITCH_BINS = 360  # type: ignore[attr-defined]
    from torchcrepe.model import Crepe

    return Crepe("tiny"), lambda: [(normal(rows, 1024),) for rows in (1, 2, 3)]


@blind("slot_attention.AdaptiveSlotWrapper", "slot_attention", "slots")
def _() -> Built:
    from slot_attention import AdaptiveSlotWrapper, MultiHeadSlotAttention

    model = AdaptiveSlotWrapper(MultiHeadSlotAttention(num_slots=3, dim=8, heads=2, dim_head=4), temperature=0.5)
    return model, lambda: [(normal(*size, 8),) for size in zoo.SIZES]


@blind("se3_transformer_pytorch.SE3Transformer", "se3_transformer_pytorch", "equivariant network")
def _() -> Built:
    import torch
    from se3_transformer_pytorch import SE3Transformer

    model = SE3Transformer(
        dim=8, heads=2, depth=1, dim_head=4, num_degrees=2, num_neighbors=3, valid_radius=10,
        attend_sparse_neighbors=True, num_adj_degrees=2, adj_dim=4,
    )  # fmt: skip

    def call(rows: int, n: int) -> Any:
        near = torch.eye(n).roll(1, 0).bool() | torch.eye(n).bool()
        return ((normal(rows, n, 8), normal(rows, n, 3)), {"mask": torch.ones(rows, n).bool(), "adj_mat": near})

    return model, lambda: [call(*size) for size in ((1, 8), (2, 8), (1, 10))]


@blind("enformer_pytorch.Enformer", "enformer_pytorch", "genomes")
def _() -> Built:
    from enformer_pytorch import Enformer

    model = Enformer.from_hparams(
        dim=24, depth=1, heads=2, output_heads={"human": 3}, target_length=4, attn_dim_key=8, num_downsamples=3,
        dim_divisible_by=2,
    )  # fmt: skip
    return model, lambda: [(whole(4, rows, n),) for rows, n in ((1, 64), (2, 64), (1, 96))]


@blind(
    "block_recurrent_transformer_pytorch.Wrapper", "block_recurrent_transformer_pytorch", "language model", train=True
)
def _() -> Built:
    from block_recurrent_transformer_pytorch import BlockRecurrentTransformer, RecurrentTrainerWrapper

    inner = BlockRecurrentTransformer(
        num_tokens=20, dim=16, depth=2, dim_head=8, heads=2, max_seq_len=8, block_width=4, num_state_vectors=4,
        recurrent_layers=(2,),
    )  # fmt: skip
    model = RecurrentTrainerWrapper(inner, xl_memories_dropout=0.1, state_dropout=0.1)
    return model, lambda: [(whole(20, rows, 17),) for rows in (1, 2, 3)]


@blind("schnetpack.SchNet", "schnetpack", "molecules")
def _() -> Built:
    zoo.bare("schnetpack")
    import schnetpack.nn  # noqa: F401
    from schnetpack.representation.schnet import SchNet

    nn = sys.modules["schnetpack.nn"]
    model = SchNet(16, 1, nn.GaussianRBF(4, 3.0), nn.CosineCutoff(3.0))

    def call(atoms: int, pairs: int) -> Any:
        near = {"_idx_i": whole(atoms, pairs), "_idx_j": whole(atoms, pairs), "_Rij": normal(pairs, 3)}
        return ({"_atomic_numbers": whole(8, atoms) + 1, **near},)

    return model, lambda: [call(n, 3 * n) for n in (4, 5, 7)]


@blind("sam2.MaskDecoder", "sam2", "segmentation")
def _() -> Built:
    import torch

    zoo.bare("sam2")
    from sam2.modeling.sam.mask_decoder import MaskDecoder
    from sam2.modeling.sam.prompt_encoder import PromptEncoder
    from sam2.modeling.sam.transformer import TwoWayTransformer

    class Masks(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.prompts = PromptEncoder(16, (4, 4), (16, 16), 4)
            self.decoder = MaskDecoder(
                transformer_dim=16, transformer=TwoWayTransformer(1, 16, 2, 16), dynamic_multimask_via_stability=True,
                pred_obj_scores=True, iou_head_hidden_dim=16,
            )  # fmt: skip

        def forward(self, embedded: Any, points: Any, labels: Any, several: bool) -> Any:
            sparse, dense = self.prompts(points=(points, labels), boxes=None, masks=None)
            places = self.prompts.get_dense_pe()
            return self.decoder(embedded, places, sparse, dense, several, repeat_image=False)

    def call(rows: int, n: int, several: bool) -> Any:
        return normal(rows, 16, 4, 4), uniform(rows, n, 2) * 16, whole(2, rows, n), several

    return Masks(), lambda: [call(1, 2, False), call(2, 2, False), call(1, 3, True)]


@blind("pyannote.SincNet", "pyannote.audio.models", "speech")
def _() -> Built:
    zoo.bare("pyannote", "pyannote.audio", "pyannote.audio.models")
    from pyannote.audio.models.blocks.sincnet import SincNet

    return SincNet(stride=10), lambda: [(normal(rows, 1, n),) for rows, n in ((1, 4000), (2, 4000), (1, 5000))]


@blind(
    "neuralop.FNO",
    "neuralop",
    "operators",
    compiled="tensorly.plugins:use_opt_einsum opt_einsum.contract:contract_expression "
    "opt_einsum.contract:ContractExpression.__call__",
)
def _() -> Built:
    from neuralop.models import FNO

    model = FNO(n_modes=(4, 4), in_channels=1, out_channels=1, hidden_channels=8, n_layers=1)
    return model, lambda: [(normal(rows, 1, n, n),) for rows, n in ((1, 16), (2, 16), (1, 24))]


@blind("conformer.Conformer", "conformer", "speech", train=True)
def _() -> Built:
    from conformer import Conformer

    model = Conformer(dim=16, depth=1, dim_head=8, heads=2, conv_kernel_size=7)
    return model, lambda: [(normal(*size, 16),) for size in zoo.SIZES]


@blind("super_image.Edsr", "super_image", "super resolution")
def _() -> Built:
    from super_image import EdsrConfig, EdsrModel

    model = EdsrModel(EdsrConfig(scale=2, n_resblocks=1, n_feats=8))
    return model, lambda: [(uniform(rows, 3, n, n),) for rows, n in ((1, 16), (2, 16), (1, 24))]


@blind("momentfm.MOMENT", "momentfm", "time series")
def _() -> Built:
    import torch
    from momentfm.models.moment import MOMENT

    config = {
        "d_model": 16,
        "num_layers": 1,
        "num_heads": 2,
        "d_kv": 8,
        "d_ff": 16,
        "vocab_size": 8,
        "model_type": "t5",
    }
    model = MOMENT(
        {
            "task_name": "reconstruction", "seq_len": 32, "patch_len": 8, "patch_stride_len": 8, "d_model": 16,
            "transformer_type": "encoder_only", "transformer_backbone": "google/flan-t5-small", "t5_config": config,
            "randomly_initialize_backbone": True, "mask_ratio": 0.3,
        },
        model_kwargs={},
    )  # fmt: skip
    return model, lambda: [((), {"x_enc": normal(n, 2, 32), "input_mask": torch.ones(n, 32)}) for n in (1, 2, 3)]


@blind("linear_attention_transformer.LM", "linear_attention_transformer", "language model")
def _() -> Built:
    from linear_attention_transformer import LinearAttentionTransformerLM

    model = LinearAttentionTransformerLM(
        num_tokens=20, dim=16, heads=2, depth=1, max_seq_len=32, causal=True, n_local_attn_heads=1,
        local_attn_window_size=8,
    )  # fmt: skip
    return model, lambda: [(whole(20, rows, n),) for rows, n in ((1, 16), (2, 16), (2, 32))]


@blind("native_sparse_attention_pytorch.SparseAttention", "native_sparse_attention_pytorch", "attention")
def _() -> Built:
    from native_sparse_attention_pytorch import SparseAttention

    model = SparseAttention(
        dim=16, dim_head=8, heads=2, sliding_window_size=2, compress_block_size=4, compress_block_sliding_stride=2,
        selection_block_size=4, num_selected_blocks=2, causal=True,
    )  # fmt: skip
    return model, lambda: [(normal(rows, n, 16),) for rows, n in ((1, 16), (2, 16), (1, 21))]


@blind(
    "lerobot.Diffusion",
    "lerobot.policies.diffusion",
    "robot policy",
    compiled="lerobot.policies.diffusion.modeling_diffusion:DiffusionModel.generate_actions "
    "diffusers.schedulers.scheduling_ddpm:DDPMScheduler.set_timesteps "
    "diffusers.schedulers.scheduling_ddpm:DDPMScheduler.step",
)
def _() -> Built:
    zoo.bare("lerobot", "lerobot.policies")
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig
    from lerobot.policies.diffusion.modeling_diffusion import DiffusionModel

    state, action = PolicyFeature(FeatureType.STATE, (4,)), PolicyFeature(FeatureType.ACTION, (4,))
    around = PolicyFeature(FeatureType.ENV, (6,))
    config = DiffusionConfig(
        input_features={"observation.state": state, "observation.environment_state": around},
        output_features={"action": action}, down_dims=(8, 16), n_groups=2, num_train_timesteps=4, horizon=8,
    )  # fmt: skip
    model = DiffusionModel(config)

    def call(rows: int) -> Any:
        return ({"observation.state": normal(rows, 2, 4), "observation.environment_state": normal(rows, 2, 6)},)

    return zoo.method(model, "generate_actions"), lambda: [call(rows) for rows in (1, 2, 3)]
