"""A fourth zoo of classes, of packages that no other list here names, for a blind measurement.

Data, not a program: as ``zoo.py``, with the packages of ``zoo_fourth.txt``. How they were chosen, before the tool ran
on any of them: 46 fields of use; for each, the packages of the index whose name or summary says torch and a word of the
field, without those whose name, or name less "torch", stands anywhere in this repository; those among the 15,000 most
downloaded first, by rank, the others shuffled by the seed 20261127. Of the first two dozen of a field, those that have
the code of a model by their summary (no data loader, binding of a GPU library, copy of another package) were taken, 83
packages in all. Left out is what could not be imported, or built from its constructors' signatures, within minutes.
Only signatures were read, and a forward method where a call could not be written without it. Of the 57 classes that
ran then, eagerly, the same seed drew one a field, and 36 of these 39. They are trained where they ask for targets or
learn, and are the whole model or, where it cannot be made tiny or does not run, a part. None was compiled.
"""

from __future__ import annotations

import random
from typing import Any

import zoo
from zoo import SIZES, Built, Call, Class, bare, lengths, normal, uniform, whole

CLASSES: dict[str, Class] = {}
#: By class, what is compiled here though nothing in its package compiles it (``--compiled``).
COMPILED: dict[str, tuple[str, ...]] = {}


def case(name: str) -> tuple[Any, Any]:
    """``build`` and ``calls`` of a case file."""
    zoo.CLASSES.setdefault(name, CLASSES[name])
    return zoo.case(name)


def fourth(name: str, packages: str, family: str, *, train: bool = False, compiled: str = "") -> Any:
    def register(build: Any) -> None:
        assert name not in CLASSES, name
        COMPILED[name] = tuple(compiled.split())
        CLASSES[name] = Class(name, tuple(packages.split()), family, build, False, train)

    return register


# ---------------------------------------------------------------------------------------------------------------------
# Pictures, films, points.


@fourth("vit_rgts.VitRGTS", "vit_rgts", "classification")
def _() -> Built:
    from vit_rgts import VitRGTS

    model = VitRGTS(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8)
    return model, lambda: [(uniform(rows, 3, 32, 32),) for rows in (1, 2, 3)]


@fourth("cjm_yolox_pytorch.YOLOX", "cjm_yolox_pytorch", "detection")
def _() -> Built:
    from cjm_yolox_pytorch.model import YOLOX, YOLOXPAFPN, CSPDarknet, YOLOXHead

    width = [32, 64, 128]
    model = YOLOX(CSPDarknet(deepen_factor=0.34, widen_factor=0.125), YOLOXPAFPN(width, 32, 1), YOLOXHead(3, 32, 32))
    return model, lambda: [(uniform(rows, 3, n, n),) for rows, n in ((1, 64), (2, 64), (1, 96))]


@fourth("iunets.iUNet", "iunets", "invertible networks", train=True)
def _() -> Built:
    from iunets import iUNet

    model = iUNet(in_channels=4, architecture=(1, 1), dim=2)
    return model, lambda: [(normal(rows, 4, n, n),) for rows, n in ((1, 8), (2, 8), (1, 12))]


@fourth("video_diffusion_pytorch.GaussianDiffusion", "video_diffusion_pytorch", "diffusion of films", train=True)
def _() -> Built:
    from video_diffusion_pytorch import GaussianDiffusion, Unet3D

    model = GaussianDiffusion(
        Unet3D(dim=8, dim_mults=(1, 2), attn_heads=2, attn_dim_head=8), image_size=16, num_frames=4, timesteps=20
    )
    return model, lambda: [(uniform(rows, 3, 4, 16, 16),) for rows in (1, 2, 3)]


@fourth("givt_pytorch.GIVT", "givt_pytorch", "generation of vectors", train=True)
def _() -> Built:
    bare("givt_pytorch")
    import torch
    from givt_pytorch.config import GIVTConfig
    from givt_pytorch.model import GIVT

    class Loss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = GIVT(GIVTConfig(input_dim=8, hidden_dim=16, intermediate_dim=32, num_heads=2, block_size=32))

        def forward(self, x: Any) -> Any:
            return self.net(x, return_info=False).loss

    return Loss(), lambda: [(normal(*size, 8),) for size in SIZES]


@fourth("resselt.ATD", "resselt", "super resolution")
def _() -> Built:
    from resselt.archs.atd.arch import ATD

    model = ATD(
        img_size=16, embed_dim=12, depths=(2,), num_heads=(2,), window_size=8, category_size=32, num_tokens=8,
        upscale=2, upsampler="pixelshuffle",
    )  # fmt: skip
    return model, lambda: [(uniform(rows, 3, n, n),) for rows, n in ((1, 16), (2, 16), (1, 24))]


@fourth("video_vit.VideoViT", "video_vit", "films")
def _() -> Built:
    from video_vit import VideoViT

    model = VideoViT(num_classes=5, dim=8, depth=(1, 1), dim_head=8, window_size=2)
    return model, lambda: [(uniform(rows, 3, 2, n, n),) for rows, n in ((1, 16), (2, 16), (1, 32))]


@fourth("nerf.NeRF", "nerf", "radiance fields")
def _() -> Built:
    from nerf.model import NeRF

    return NeRF(hidden_size=16), lambda: [(normal(*size, 3), normal(*size, 3)) for size in SIZES]


@fourth("simple_clip.CLIP", "simple_clip", "pictures and texts")
def _() -> Built:
    import torch
    from simple_clip import CLIP
    from transformers import BertConfig, BertModel

    words = BertModel(
        BertConfig(vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    )

    class Words(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = words

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.net(input_ids, attention_mask=attention_mask).pooler_output

    eye = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 4, 4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())

    def call(rows: int, n: int) -> Call:
        return uniform(rows, 3, 16, 16), whole(20, rows, n), (torch.arange(n) < lengths(rows, n, 2)[:, None]).long()

    return CLIP(eye, Words(), 16, 16), lambda: [call(*size) for size in SIZES]


@fourth(
    "torchoptics.System",
    "torchoptics",
    "optics",
    compiled="torchoptics.system:System.measure_at_z torchoptics.fields:Field.intensity",
)
def _() -> Built:
    import torch
    import torchoptics
    from torchoptics.elements import Lens

    class Focus(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.system = torchoptics.System(Lens(20, 0.2, z=0.0, spacing=1e-5))

        def forward(self, data: Any) -> Any:
            field = torchoptics.Field(data, 7e-7, spacing=1e-5)
            return self.system.measure_at_z(field, z=0.2).intensity()

    return Focus(), lambda: [(uniform(rows, n, n),) for rows, n in ((1, 20), (2, 20), (1, 24))]


# ---------------------------------------------------------------------------------------------------------------------
# Sound and speech.


@fourth("deepvoice3_pytorch.AttentionSeq2Seq", "deepvoice3_pytorch", "speech synthesis", train=True)
def _() -> Built:
    import torch
    from deepvoice3_pytorch import AttentionSeq2Seq
    from deepvoice3_pytorch.deepvoice3 import Decoder, Encoder

    layers = ((16, 3, 1), (16, 3, 1))
    model = AttentionSeq2Seq(
        Encoder(20, 16, 1, 16, convolutions=((16, 3, 1), (16, 3, 1))),
        Decoder(16, 1, 16, in_dim=8, r=2, preattention=layers, convolutions=layers),
    )

    def call(rows: int, n: int) -> Call:
        places = torch.arange(1, n + 1).expand(rows, n)
        return (whole(19, rows, n) + 1,), {
            "mel_targets": normal(rows, 2 * n, 8),
            "text_positions": places,
            "frame_positions": places,
            "input_lengths": lengths(rows, n, 2),
        }

    return model, lambda: [call(*size) for size in ((2, 8), (3, 8), (2, 12))]


@fourth("demucs_infer.HDemucs", "demucs_infer", "source separation")
def _() -> Built:
    from demucs_infer.hdemucs import HDemucs

    model = HDemucs(["a", "b"], channels=8, nfft=1024, depth=5, samplerate=8000)
    return model, lambda: [(normal(rows, 2, n),) for rows, n in ((1, 4096), (2, 4096), (1, 6144))]


@fourth("dstft.DSTFT", "dstft", "spectrograms", train=True)
def _() -> Built:
    from dstft import DSTFT

    model = DSTFT(n_fft=64, win_length=40.0, hop_length=16.0, window_mode="constant")
    model.initialize(normal(1, 256))
    return model, lambda: [(normal(rows, 256),) for rows in (1, 2, 3)]


@fourth("torch_l1_snr.MultiL1SNRDBLoss", "torch_l1_snr", "losses", train=True)
def _() -> Built:
    from torch_l1_snr import MultiL1SNRDBLoss

    model = MultiL1SNRDBLoss("loss", n_ffts=[64, 128], hop_lengths=[16, 32], win_lengths=[64, 128])
    return model, lambda: [(normal(r, 2, n), normal(r, 2, n)) for r, n in ((2, 1024), (3, 1024), (2, 1536))]


# ---------------------------------------------------------------------------------------------------------------------
# Sequences, texts.


@fourth("etsformer_pytorch.ETSFormer", "etsformer_pytorch", "forecasting")
def _() -> Built:
    from etsformer_pytorch import ETSFormer

    model = ETSFormer(model_dim=16, time_features=4, heads=2, K=2)
    return model, lambda: [((normal(*size, 4),), {"num_steps_forecast": 3}) for size in SIZES]


@fourth("bi_lstm_crf.BiRnnCrf", "bi_lstm_crf", "tagging")
def _() -> Built:
    from bi_lstm_crf.model.model import BiRnnCrf

    def call(rows: int, n: int) -> Call:
        import torch

        return ((whole(19, rows, n) + 1) * (torch.arange(n) < lengths(rows, n, 2)[:, None]),)

    return BiRnnCrf(20, 4, 8, 8), lambda: [call(*size) for size in SIZES]


@fourth("a_transformers_pytorch.Autoregressive", "a_transformers_pytorch", "language model", train=True)
def _() -> Built:
    from a_transformers_pytorch.transformers import Autoregressive, Transformer

    net = Transformer(features=16, max_length=32, num_layers=2, head_features=8, num_heads=2, multiplier=2, causal=True)
    return Autoregressive(net, num_tokens=20), lambda: [(whole(20, *size),) for size in SIZES]


@fourth("neural_ssm.DeepSSM", "neural_ssm", "state spaces", train=True)
def _() -> Built:
    from neural_ssm.ssm import DeepSSM

    return DeepSSM(4, 2, d_model=8, d_state=8), lambda: [(normal(*size, 4),) for size in SIZES]


@fourth("aoa_pytorch.AttentionOnAttention", "aoa_pytorch", "attention")
def _() -> Built:
    from aoa_pytorch import AttentionOnAttention

    return AttentionOnAttention(dim=16, heads=2, dim_head=8), lambda: [(normal(*size, 16),) for size in SIZES]


@fourth("goat.GoatAttention", "goat", "attention, optimal transport", train=True)
def _() -> Built:
    from goat import GoatAttention

    model = GoatAttention(64, 2, batch_first=True)
    return model, lambda: [(x, x, x) for x in (normal(*size, 64) for size in SIZES)]


@fourth("continual.RetroactiveMultiheadAttention", "continual", "streams")
def _() -> Built:
    import continual

    model = continual.RetroactiveMultiheadAttention(
        16, 2, batch_first=True, sequence_len=8, forward_returns_attn_mask=False
    )
    return model, lambda: [(x, x, x) for x in (normal(rows, 8, 16) for rows in (1, 2, 3))]


# ---------------------------------------------------------------------------------------------------------------------
# Sets, tables, molecules, robots.


@fourth("bitorch.DLRM", "bitorch", "recommendation, binary")
def _() -> Built:
    from bitorch.models import DLRM

    model = DLRM(4, [5, 6], bottom_mlp_layer_sizes=[8, 8], top_mlp_layer_sizes=[8, 1], embedding_dimension=8)

    def call(rows: int) -> Call:
        import torch

        return normal(rows, 4), ([whole(5, rows)] * 2, [torch.arange(rows)] * 2)

    return model, lambda: [call(rows) for rows in (2, 3, 4)]


@fourth("deeptab.FTTransformer", "deeptab", "tables", train=True)
def _() -> Built:
    from deeptab.architectures.ft_transformer import FTTransformer
    from deeptab.configs.models.fttransformer_config import FTTransformerConfig

    told = (
        {"x": {"dimension": 1}, "y": {"dimension": 2}},
        {"a": {"dimension": 1, "categories": 4}, "b": {"dimension": 1, "categories": 5}},
        {},
    )
    model = FTTransformer(
        told, 3, FTTransformerConfig(d_model=16, n_layers=1, n_heads=2, transformer_dim_feedforward=32)
    )

    def call(rows: int) -> Call:
        return [normal(rows, 1), normal(rows, 2)], [whole(4, rows, 1), whole(4, rows, 1)], []

    return model, lambda: [call(rows) for rows in (2, 3, 4)]


@fourth("fswlib.FSWEmbedding", "fswlib", "multisets")
def _() -> Built:
    from fswlib import FSWEmbedding

    return FSWEmbedding(4, 8), lambda: [(normal(*size, 4),) for size in SIZES]


@fourth("contrastive_rl_pytorch.ContrastiveWrapper", "contrastive_rl_pytorch", "reinforcement learning", train=True)
def _() -> Built:
    import torch
    from contrastive_rl_pytorch.contrastive_rl import ContrastiveLearning, ContrastiveWrapper

    model = ContrastiveWrapper(torch.nn.Linear(6, 8), ContrastiveLearning(learned_temp=True))
    return model, lambda: [(normal(rows, 6), normal(rows, 6)) for rows in (4, 6, 8)]


# ---------------------------------------------------------------------------------------------------------------------
# Losses, densities, physics, other numbers.


@fourth("byol_pytorch.BYOL", "byol_pytorch", "self-supervision", train=True)
def _() -> Built:
    import torch
    from byol_pytorch import BYOL

    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 4, 4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4)
    )
    model = BYOL(net, 16, projection_size=8, projection_hidden_size=16, use_simplicial_embeddings=False)
    return model, lambda: [(uniform(rows, 3, 16, 16),) for rows in (2, 3, 4)]


@fourth("jet_pytorch.Jet", "jet_pytorch", "normalizing flows")
def _() -> Built:
    from jet_pytorch import Jet

    model = Jet(
        patch_size=4, patch_dim=48, n_patches=16, img_dims=(16, 16), coupling_layers=5, block_depth=1, block_width=16,
        num_heads=2,
    )  # fmt: skip
    return model, lambda: [(uniform(rows, 16, 16, 3),) for rows in (1, 2, 3)]


@fourth("causalflows.CausalMAF", "causalflows", "causal models", train=True)
def _() -> Built:
    import torch
    from causalflows.flows import CausalMAF

    class Likelihood(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flow = CausalMAF(features=3, context=2, order=torch.arange(3), hidden_features=(8, 8))

        def forward(self, x: Any, context: Any) -> Any:
            return self.flow(context).log_prob(x)

    return Likelihood(), lambda: [(normal(rows, 3), normal(rows, 2)) for rows in (4, 6, 8)]


@fourth("qandle.Circuit", "qandle", "quantum circuits", train=True)
def _() -> Built:
    import qandle

    layers = [
        qandle.AngleEmbedding("x", qubits=[0, 1, 2]),
        qandle.StronglyEntanglingLayer(qubits=[0, 1, 2], num_qubits_total=3),
        qandle.MeasureProbability(),
    ]
    return qandle.Circuit(layers), lambda: [((), {"x": normal(rows, 3)}) for rows in (2, 3, 4)]


@fourth("exact_snn.ExactTTFSNetwork", "exact_snn", "spiking networks", train=True)
def _() -> Built:
    from exact_snn import ExactTTFSNetwork

    return ExactTTFSNetwork([4, 6, 2], grid_pts=201), lambda: [(uniform(4, rows) * 10,) for rows in (2, 3, 4)]


@fourth("cliffordlayers.CliffordNet2d", "cliffordlayers", "geometric algebra", train=True)
def _() -> Built:
    import torch
    from cliffordlayers.models.models_2d import CliffordBasicBlock2d, CliffordNet2d

    model = CliffordNet2d(
        (1, 1), CliffordBasicBlock2d, [1, 1], 2, 1, 4, torch.nn.functional.gelu, False, norm=True, num_groups=2
    )
    return model, lambda: [(normal(rows, 2, n, n, 3),) for rows, n in ((2, 8), (3, 8), (2, 12))]


@fourth("inkan.KANNetwork", "inkan", "Kolmogorov-Arnold networks", train=True)
def _() -> Built:
    from inkan import KANNetwork

    return KANNetwork([4, 8, 2], compile_basis=False), lambda: [(normal(rows, 4),) for rows in (2, 3, 4)]


@fourth(
    "prototorch.GLVQLoss",
    "prototorch",
    "learning vector quantization",
    train=True,
    compiled="prototorch.core.distances:squared_euclidean_distance",
)
def _() -> Built:
    import torch
    from prototorch.core.components import LabeledComponents
    from prototorch.core.distances import squared_euclidean_distance
    from prototorch.core.initializers import ZerosCompInitializer
    from prototorch.core.losses import GLVQLoss

    class GLVQ(torch.nn.Module):  # as in the package's documentation
        def __init__(self) -> None:
            super().__init__()
            self.components = LabeledComponents([1, 2], ZerosCompInitializer(4))
            self.loss = GLVQLoss(transfer_fn="sigmoid_beta")

        def forward(self, x: Any, y: Any) -> Any:
            known, labels = self.components()
            return self.loss(squared_euclidean_distance(x, known), y, labels)

    return GLVQ(), lambda: [(normal(rows, 4), whole(2, rows)) for rows in (4, 6, 8)]


@fourth(
    "ltn.Quantifier",
    "ltn",
    "logic tensor networks",
    train=True,
    compiled="ltn.core:Quantifier.__call__ ltn.core:Connective.__call__ ltn.core:Variable.__init__",
)
def _() -> Built:
    import ltn
    import torch

    class Truth(torch.nn.Module):  # as in the package's documentation
        def __init__(self) -> None:
            super().__init__()
            net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ELU(), torch.nn.Linear(8, 1), torch.nn.Sigmoid())
            self.known = ltn.Predicate(net)
            self.all = ltn.Quantifier(ltn.fuzzy_ops.AggregPMeanError(p=2), quantifier="f")
            self.no = ltn.Connective(ltn.fuzzy_ops.NotStandard())

        def forward(self, good: Any, bad: Any) -> Any:
            x, y = ltn.Variable("x", good), ltn.Variable("y", bad)
            return self.all(x, self.known(x)).value + self.all(y, self.no(self.known(y))).value

    return Truth(), lambda: [(normal(rows, 4), normal(rows, 4)) for rows in (4, 6, 8)]


@fourth("deel.torchlip.SpectralLinear", "deel.torchlip", "Lipschitz networks", train=True)
def _() -> Built:
    from deel import torchlip

    model = torchlip.Sequential(torchlip.SpectralLinear(8, 8), torchlip.FullSort(), torchlip.FrobeniusLinear(8, 1))
    return model, lambda: [(normal(rows, 8),) for rows in (4, 6, 8)]


@fourth("torchadf.nn.Sequential", "torchadf", "densities through layers")
def _() -> Built:
    from torchadf import nn

    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.AvgPool1d(2), nn.Flatten(), nn.Linear(12, 2))
    return model, lambda: [(normal(rows, 2, 8), uniform(rows, 2, 8)) for rows in (2, 3, 4)]


SHUFFLED = sorted(CLASSES)
random.Random(4).shuffle(SHUFFLED)
