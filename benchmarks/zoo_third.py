"""A third zoo of classes, of packages that no other list here names, for a blind measurement.

Data, not a program: as ``zoo.py``, with the packages of ``zoo_third.txt``. How they were chosen, before the tool ran
on any of them: 40 fields of use; for each, the packages of the index whose name or summary says torch and a word of the
field, without those whose name, or name less "torch", stands anywhere in this repository or was installed for another
list; those among the 15,000 most downloaded first, by rank, the others shuffled by the seed 20261126. They were gone
through in turn: one to three of a field that have the code of a model by their summary (no data loader, binding of a
GPU library, copy of another package) and are installed in a minute, without a compiler. Left out is what could not be
imported, or built from its constructors' signatures, within minutes: all of some fields. Only signatures were read,
and a forward method where a call could not be written without it. One or two classes of a package, trained where they
ask for targets, the whole model or, where it cannot be made tiny, a part.
"""

from __future__ import annotations

import random
from typing import Any

import zoo
from zoo import SIZES, Built, Call, Class, bare, lengths, method, normal, uniform, whole

CLASSES: dict[str, Class] = {}
#: By class, what is compiled here though nothing in its package compiles it (``--compiled``).
COMPILED: dict[str, tuple[str, ...]] = {}


def case(name: str) -> tuple[Any, Any]:
    """``build`` and ``calls`` of a case file."""
    zoo.CLASSES.setdefault(name, CLASSES[name])
    return zoo.case(name)


def third(name: str, packages: str, family: str, *, train: bool = False, compiled: str = "") -> Any:
    def register(build: Any) -> None:
        assert name not in CLASSES, name
        COMPILED[name] = tuple(compiled.split())
        CLASSES[name] = Class(name, tuple(packages.split()), family, build, False, train)

    return register


# ---------------------------------------------------------------------------------------------------------------------
# Pictures, films, points.


@third(
    "k_diffusion.sample_dpmpp_2m",
    "k_diffusion",
    "diffusion, generation",
    compiled="k_diffusion.sampling:sample_dpmpp_2m",
)
def _() -> Built:
    import torch
    from k_diffusion.layers import Denoiser
    from k_diffusion.models import ImageDenoiserModelV1
    from k_diffusion.sampling import get_sigmas_karras, sample_dpmpp_2m

    class Sampler(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = Denoiser(ImageDenoiserModelV1(3, 32, (1, 1), (32, 64), (False, True)))

        def forward(self, noise: Any, sigmas: Any) -> Any:
            return sample_dpmpp_2m(self.net, noise, sigmas, disable=True)

    sizes = ((1, 8), (2, 8), (1, 16))
    return Sampler(), lambda: [(normal(rows, 3, n, n), get_sigmas_karras(4, 0.1, 10.0)) for rows, n in sizes]


@third("k_diffusion.Denoiser", "k_diffusion", "diffusion", train=True)
def _() -> Built:
    from k_diffusion.layers import Denoiser
    from k_diffusion.models import ImageDenoiserModelV1

    model = Denoiser(ImageDenoiserModelV1(3, 32, (1, 1), (32, 64), (False, True)))
    sizes = ((2, 8), (3, 8), (2, 16))
    return method(model, "loss"), lambda: [
        (uniform(rows, 3, n, n), normal(rows, 3, n, n), uniform(rows) + 0.1) for rows, n in sizes
    ]


@third("retinaface.RetinaFace", "retinaface", "face detection")
def _() -> Built:
    from retinaface.network import RetinaFace

    layers = {"layer2": 1, "layer3": 2, "layer4": 3}
    model = RetinaFace("Resnet50", False, 256, layers, 16)
    return model, lambda: [(uniform(rows, 3, n, n),) for rows, n in ((1, 64), (2, 64), (1, 96))]


@third("retinaface.MultiBoxLoss", "retinaface", "face detection, loss", train=True)
def _() -> Built:
    import torch
    from retinaface.multibox_loss import MultiBoxLoss

    priors = torch.cat([uniform(24, 2), uniform(24, 2) * 0.3 + 0.1], dim=1)
    model = MultiBoxLoss(2, 0.35, True, 0, True, 7, 0.35, False, priors)

    def call(rows: int, faces: int) -> Call:
        corner = uniform(rows, faces, 2) * 0.5
        marks = uniform(rows, faces, 10)
        told = torch.cat([corner, corner + 0.3, marks, torch.ones(rows, faces, 1)], dim=2)
        return (normal(rows, 24, 4), normal(rows, 24, 2), normal(rows, 24, 10)), list(told)

    return model, lambda: [call(*size) for size in ((2, 1), (3, 1), (2, 2))]


@third("kagu.Multip", "kagu", "segments of films")
def _() -> Built:
    from kagu.models.model import Multip

    return Multip(), lambda: [(normal(rows, n, 8), normal(rows, n, 8)) for rows, n in SIZES]


@third("pytorch_rdc_net.RDCNet", "pytorch_rdc_net", "segmentation")
def _() -> Built:
    from pytorch_rdc_net.generic_model import RDCNet

    model = RDCNet(2, 1, (2, 2), 4, channels_per_group=4, n_groups=2, dilation_rates=[1, 2], steps=2)
    return model, lambda: [(uniform(rows, 1, n, n),) for rows, n in ((1, 24), (2, 24), (1, 36))]


@third("efficientnet_pytorch.EfficientNet", "efficientnet_pytorch", "classification", train=True)
def _() -> Built:
    from efficientnet_pytorch import EfficientNet

    model = EfficientNet.from_name("efficientnet-b0", num_classes=5)
    return model, lambda: [(uniform(rows, 3, n, n),) for rows, n in ((2, 32), (3, 32), (2, 48))]


@third("torchsr.NinaSR", "torchsr", "super resolution")
def _() -> Built:
    from torchsr.models.ninasr import NinaSR

    return NinaSR(2, 8, 2), lambda: [(uniform(rows, 3, n, n),) for rows, n in ((1, 32), (2, 32), (1, 48))]


@third("ezflow.RAFT", "ezflow", "optical flow")
def _() -> Built:
    from ezflow.model_zoo import model_zoo  # noqa: F401
    from ezflow.models import build_model

    model = build_model("RAFT", default=True)
    return model, lambda: [(uniform(r, 3, n, n), uniform(r, 3, n, n)) for r, n in ((1, 128), (2, 128), (1, 136))]


@third("legere.CompactCRNN", "legere", "OCR")
def _() -> Built:
    from legere.model import CompactCRNN

    return CompactCRNN(), lambda: [(uniform(rows, 1, 32, n),) for rows, n in ((1, 64), (2, 64), (1, 96))]


@third("pointnet.PointNet2ClsSSG", "pointnet", "point clouds")
def _() -> Built:
    from pointnet import PointNet2ClsSSG

    model = PointNet2ClsSSG(3, 4, downsample_points=(16, 8), ks=(4, 4))
    return model, lambda: [(normal(rows, 3, n), uniform(rows, 3, n)) for rows, n in ((2, 32), (3, 32), (2, 40))]


@third("pytorchvideo.X3D", "pytorchvideo", "films")
def _() -> Built:
    from pytorchvideo.models.x3d import create_x3d

    model = create_x3d(input_clip_length=4, input_crop_size=64, model_num_class=5, width_factor=1.0, depth_factor=1.0)
    return model, lambda: [(uniform(rows, 3, 4, 64, 64),) for rows in (1, 2, 3)]


@third("pytorchvideo.MViT", "pytorchvideo", "films")
def _() -> Built:
    from pytorchvideo.models.vision_transformers import create_multiscale_vision_transformers

    model = create_multiscale_vision_transformers(
        spatial_size=32, temporal_size=4, depth=2, patch_embed_dim=16, num_heads=2, head_num_classes=5,
        conv_patch_embed_kernel=(3, 7, 7), pool_q_stride_size=[[1, 1, 2, 2]], pool_kv_stride_adaptive=[1, 2, 2],
        pool_kvq_kernel=[3, 3, 3], embed_dim_mul=[[1, 2.0]], atten_head_mul=[[1, 2.0]],
    )  # fmt: skip
    return model, lambda: [(uniform(rows, 3, 4, 32, 32),) for rows in (1, 2, 3)]


@third("vjepa.VisionTransformer", "vjepa", "films")
def _() -> Built:
    import torch
    from vjepa.models.vision_transformer import VisionTransformer

    model = VisionTransformer(img_size=32, patch_size=8, num_frames=4, embed_dim=24, depth=2, num_heads=2)

    def call(rows: int, kept: int) -> Call:
        masks = [torch.stack([torch.randperm(32)[:kept] for _ in range(rows)]) for _ in range(2)]
        return uniform(rows, 3, 4, 32, 32), masks

    return model, lambda: [call(*size) for size in ((1, 8), (2, 8), (1, 12))]


@third("siren_pytorch.SirenWrapper", "siren_pytorch", "implicit pictures", train=True)
def _() -> Built:
    from siren_pytorch import SirenNet, SirenWrapper

    model = SirenWrapper(SirenNet(2, 16, 3, 2), 8, 8, latent_dim=8)
    return model, lambda: [((uniform(1, 3, 8, 8),), {"latent": normal(8)}) for _ in range(3)]


# ---------------------------------------------------------------------------------------------------------------------
# Sound and speech.


@third("music_fsl.PrototypicalNet", "music_fsl", "few shots", train=True)
def _() -> Built:
    import torch
    from music_fsl.backbone import Backbone
    from music_fsl.protonet import PrototypicalNet

    def call(classes: int, each: int) -> Call:
        support = {
            "audio": normal(classes * each, 1, 16000),
            "target": torch.arange(classes).repeat_interleave(each),
            "classlist": torch.arange(classes),
        }
        return support, {"audio": normal(classes, 1, 16000)}

    return PrototypicalNet(Backbone(8000)), lambda: [call(*size) for size in ((2, 2), (3, 2), (2, 3))]


@third("mule_torch.MuleMelSpectrogram", "mule_torch", "embeddings of music")
def _() -> Built:
    from mule_torch.config import MuleConfig
    from mule_torch.frontend import MuleMelSpectrogram

    return MuleMelSpectrogram(MuleConfig()), lambda: [(normal(r, n),) for r, n in ((1, 8000), (2, 8000), (1, 12000))]


@third("masr.ConformerEncoder", "masr.model_utils masr.utils", "speech recognition", train=True)
def _() -> Built:
    bare("masr", "masr.model_utils", "masr.utils")
    import torch
    from masr.model_utils.conformer.encoder import ConformerEncoder
    from masr.model_utils.utils.cmvn import GlobalCMVN

    known = GlobalCMVN(torch.zeros(20), torch.ones(20))
    model = ConformerEncoder(
        20, output_size=16, attention_heads=2, linear_units=32, num_blocks=1, global_cmvn=known, use_dynamic_chunk=True
    )
    return model, lambda: [(normal(rows, n, 20), lengths(rows, n, 2)) for rows, n in ((2, 32), (3, 32), (2, 48))]


@third("nanospeech.Nanospeech", "nanospeech", "speech synthesis", train=True)
def _() -> Built:
    from nanospeech.nanospeech_torch import DiT, Nanospeech

    net = DiT(dim=32, depth=1, heads=2, dim_head=16, ff_mult=2, mel_dim=16, text_num_embeds=20, conv_layers=1)
    model = Nanospeech(net, mel_spec_kwargs={"n_mel_channels": 16})

    def call(rows: int, n: int) -> Call:
        return (normal(rows, n, 16), whole(20, rows, n // 2)), {"lens": lengths(rows, n, 2)}

    return model, lambda: [call(*size) for size in ((2, 24), (3, 24), (2, 32))]


@third("nanocodec_torch.AudioCodecModel", "nanocodec_torch", "audio codec")
def _() -> Built:
    from nanocodec_torch.models.audio_codec import AudioCodecModel

    model = AudioCodecModel(
        encoder_config={
            "down_sample_rates": [2, 4], "encoded_dim": 16, "base_channels": 4, "activation": "lrelu",
            "pad_mode": "replicate",
        },
        decoder_config={
            "up_sample_rates": [4, 2], "input_dim": 16, "base_channels": 16, "activation": "half_snake",
            "output_activation": "clamp", "pad_mode": "zeros", "n_groups_equal_to_out_channels": True,
        },
    )  # fmt: skip
    import torch

    def call(rows: int, n: int) -> Call:
        return normal(rows, 1, n), torch.tensor([n] * rows)

    return model, lambda: [call(*size) for size in ((1, 256), (2, 256), (1, 320))]


@third("diveq.ResidualDIVEQ", "diveq", "quantization", train=True)
def _() -> Built:
    from diveq import ResidualDIVEQ

    model = ResidualDIVEQ(num_embeddings=8, embedding_dim=4, num_codebooks=2, replacement_iters=2, verbose=False)
    return model, lambda: [(normal(rows, 4),) for rows in (8, 12, 16)]


@third("torchfx.DesignableFIR", "torchfx", "filters")
def _() -> Built:
    from torchfx.filter import DesignableFIR

    return DesignableFIR(1000, 15, fs=8000), lambda: [(normal(*size),) for size in ((1, 256), (2, 256), (1, 400))]


@third("torchwavelets.DTCWT2D", "torchwavelets", "wavelets")
def _() -> Built:
    from torchwavelets import DTCWT2D

    return DTCWT2D(J=2), lambda: [(normal(rows, 2, n, n),) for rows, n in ((1, 16), (2, 16), (1, 20))]


# ---------------------------------------------------------------------------------------------------------------------
# Sequences, texts.


@third("deep_time_series.RNN", "deep_time_series", "forecasting")
def _() -> Built:
    import torch
    from deep_time_series.model import RNN

    model = RNN(8, 6, 3, ["a"], ["b"], 1, torch.nn.GRU)

    def call(rows: int) -> Call:
        return (
            {"encoding.targets": normal(rows, 6, 1), "encoding.nontargets": normal(rows, 6, 1),
             "decoding.nontargets": normal(rows, 3, 1)},
        )  # fmt: skip

    return model, lambda: [call(rows) for rows in (2, 3, 4)]


@third("tft_torch.TemporalFusionTransformer", "tft_torch", "forecasting")
def _() -> Built:
    from omegaconf import OmegaConf
    from tft_torch.tft import TemporalFusionTransformer

    config = {
        "task_type": "regression",
        "target_window_start": None,
        "data_props": {
            "num_historical_numeric": 2, "num_historical_categorical": 1, "historical_categorical_cardinalities": [4],
            "num_static_numeric": 1, "num_static_categorical": 1, "static_categorical_cardinalities": [3],
            "num_future_numeric": 1, "num_future_categorical": 1, "future_categorical_cardinalities": [4],
        },
        "model": {
            "attention_heads": 2, "dropout": 0.0, "lstm_layers": 1, "output_quantiles": [0.1, 0.5, 0.9],
            "state_size": 8,
        },
    }  # fmt: skip
    model = TemporalFusionTransformer(OmegaConf.create(config))

    def call(rows: int, past: int) -> Call:
        return (
            {
                "static_feats_numeric": normal(rows, 1), "static_feats_categorical": whole(3, rows, 1),
                "historical_ts_numeric": normal(rows, past, 2), "historical_ts_categorical": whole(4, rows, past, 1),
                "future_ts_numeric": normal(rows, 3, 1), "future_ts_categorical": whole(4, rows, 3, 1),
            },
        )  # fmt: skip

    return model, lambda: [call(*size) for size in ((2, 6), (3, 6), (2, 8))]


@third("s5.S5Block", "s5", "state spaces")
def _() -> Built:
    from s5 import S5Block

    return S5Block(16, 8, False), lambda: [(normal(*size, 16),) for size in SIZES]


@third("liquidnn.LiquidNeuralNetwork", "liquidnn", "liquid networks")
def _() -> Built:
    from liquidnn.liquidnetwork import LiquidNeuralNetwork

    return LiquidNeuralNetwork(8, 16), lambda: [(normal(*size, 8),) for size in SIZES]


@third("soft_moe_pytorch.SoftMoE", "soft_moe_pytorch", "experts")
def _() -> Built:
    from soft_moe_pytorch import SoftMoE

    return SoftMoE(dim=16, seq_len=16, num_experts=3), lambda: [(normal(*size, 16),) for size in SIZES]


@third("curated_transformers.LlamaDecoder", "curated_transformers", "language model, with a cache")
def _() -> Built:
    import torch
    from curated_transformers.layers import AttentionMask
    from curated_transformers.models.llama import LlamaConfig, LlamaDecoder

    config = LlamaConfig(
        dtype=torch.float32, hidden_width=16, intermediate_width=32, n_query_heads=2, n_hidden_layers=2,
        n_key_value_heads=1, rotary_embedding_fraction=1.0, n_pieces=20,
    )  # fmt: skip
    model = LlamaDecoder(config)

    def call(rows: int, n: int) -> Call:
        mask = AttentionMask(torch.arange(n) < lengths(rows, n, 2)[:, None])
        return (whole(20, rows, n), mask), {"store_cache": True}

    return model, lambda: [call(*size) for size in SIZES]


@third("torchscale.RetNetDecoder", "torchscale", "language model")
def _() -> Built:
    import torch
    from torchscale.architecture.config import RetNetConfig
    from torchscale.architecture.retnet import RetNetDecoder

    config = RetNetConfig(
        vocab_size=20, decoder_embed_dim=16, decoder_retention_heads=2, decoder_ffn_embed_dim=32, decoder_layers=2,
        decoder_value_embed_dim=16,
    )  # fmt: skip
    return RetNetDecoder(config, torch.nn.Embedding(20, 16)), lambda: [(whole(20, *size),) for size in SIZES]


@third("torchscale.Encoder", "torchscale", "language model")
def _() -> Built:
    import torch
    from torchscale.architecture.config import EncoderConfig
    from torchscale.architecture.encoder import Encoder

    config = EncoderConfig(
        vocab_size=20, encoder_embed_dim=16, encoder_attention_heads=2, encoder_ffn_embed_dim=32, encoder_layers=2,
        rel_pos_buckets=8, max_rel_pos=16,
    )  # fmt: skip
    return Encoder(config, torch.nn.Embedding(20, 16)), lambda: [(whole(20, *size),) for size in SIZES]


@third("torch_treecrf.TreeCRF", "torch_treecrf", "trees of labels", train=True)
def _() -> Built:
    import torch
    from torch_treecrf import TreeCRF

    near = torch.zeros(5, 5)
    for child, parent in ((1, 0), (2, 0), (3, 1), (4, 1)):
        near[child, parent] = 1
    return TreeCRF(8, near), lambda: [(normal(rows, 8),) for rows in (2, 3, 4)]


@third("mcrf.ConstraintCRF", "mcrf.modules", "tagging", train=True)
def _() -> Built:
    bare("mcrf")
    import torch
    from mcrf.modules.constraint import ConstraintCRF

    def call(rows: int, n: int) -> Call:
        return normal(rows, n, 4), whole(4, rows, n), torch.arange(n) < lengths(rows, n, 2)[:, None]

    return ConstraintCRF(4), lambda: [call(*size) for size in ((2, 6), (3, 6), (2, 8))]


@third("mcrf.ConstraintCRF-decode", "mcrf.modules", "tagging", compiled="mcrf.modules.constraint:ConstraintCRF.decode")
def _() -> Built:
    bare("mcrf")
    import torch
    from mcrf.modules.constraint import ConstraintCRF

    def call(rows: int, n: int) -> Call:
        return normal(rows, n, 4), torch.arange(n) < lengths(rows, n, 2)[:, None]

    return method(ConstraintCRF(4), "decode"), lambda: [call(*size) for size in ((2, 5), (3, 5), (2, 6))]


# ---------------------------------------------------------------------------------------------------------------------
# Graphs, tables, physics, robots.


@third("fast_gat.DenseGraphAttentionNetwork", "fast_gat", "graphs")
def _() -> Built:
    from fast_gat.dense_gat import DenseGraphAttentionNetwork

    def call(nodes: int) -> Call:
        return normal(nodes, 8), whole(2, nodes, nodes).bool()

    return DenseGraphAttentionNetwork(2, 2, 8, 8), lambda: [call(nodes) for nodes in (5, 6, 8)]


@third("supercluster.SuperCluster", "supercluster", "tables", train=True)
def _() -> Built:
    from supercluster import SuperCluster

    model = SuperCluster(6, 16, 4, 2, encoder_layers=2, encoder_hidden_size=16, num_attn_heads=2)
    return model, lambda: [(normal(rows, 6),) for rows in (4, 6, 8)]


@third("sevae.SEVAE", "sevae", "tables", train=True)
def _() -> Built:
    from sevae.models.sevae import SEVAE, SEVAEConfig

    model = SEVAE(SEVAEConfig(2, 3))
    return model, lambda: [(normal(rows, 6),) for rows in (4, 6, 8)]


@third("skrl.GaussianModel", "skrl.models skrl.utils", "reinforcement learning")
def _() -> Built:
    import gymnasium
    import torch
    from skrl.models.torch import GaussianMixin, Model

    class Policy(GaussianMixin, Model):  # as in the package's documentation
        def __init__(self, seen: Any, done: Any) -> None:
            Model.__init__(self, observation_space=seen, action_space=done, device="cpu")
            GaussianMixin.__init__(self, clip_actions=True, clip_log_std=True)
            self.net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ELU(), torch.nn.Linear(16, 2))
            self.log_std = torch.nn.Parameter(torch.zeros(2))

        def compute(self, inputs: Any, role: str = "") -> Any:
            return self.net(inputs["observations"]), {"log_std": self.log_std}

    policy = Policy(gymnasium.spaces.Box(-1, 1, (4,)), gymnasium.spaces.Box(-1, 1, (2,)))
    return method(policy, "act"), lambda: [({"observations": normal(rows, 4)},) for rows in (4, 6, 8)]


@third("memcnn.InvertibleModuleWrapper", "memcnn", "invertible networks", train=True)
def _() -> Built:
    import torch
    from memcnn import AdditiveCoupling, InvertibleModuleWrapper

    half = torch.nn.Sequential(torch.nn.Conv2d(4, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
    model = InvertibleModuleWrapper(AdditiveCoupling(half), keep_input=True, keep_input_inverse=True)
    return model, lambda: [(normal(rows, 8, n, n),) for rows, n in ((2, 8), (3, 8), (2, 12))]


@third("koopmanlab.KNO2d", "koopmanlab", "neural operators")
def _() -> Built:
    bare("koopmanlab", "koopmanlab.models")
    from koopmanlab.models.kno import KNO2d, decoder_mlp, encoder_mlp

    model = KNO2d(encoder_mlp(3, 8), decoder_mlp(3, 8), 8, 4, 4, 2)
    return model, lambda: [(normal(rows, n, n, 3),) for rows, n in ((1, 16), (2, 16), (1, 20))]


@third(
    "neurodiffeq.FCNN",
    "neurodiffeq",
    "differential equations",
    train=True,
    compiled="neurodiffeq.neurodiffeq:diff",
)
def _() -> Built:
    import torch
    from neurodiffeq import diff
    from neurodiffeq.networks import FCNN

    class Residual(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = FCNN(1, 1, hidden_units=(8, 8))

        def forward(self, t: Any) -> Any:
            t = t.requires_grad_()
            u = self.net(t)
            return diff(u, t, order=2) + u

    return Residual(), lambda: [(uniform(rows, 1),) for rows in (4, 6, 8)]


@third("torchphysics.FCN", "torchphysics", "physics", train=True)
def _() -> Built:
    import torchphysics as tp

    x, u = tp.spaces.R1("x"), tp.spaces.R1("u")
    model = tp.models.FCN(x, u, hidden=(8, 8))
    return model, lambda: [(tp.spaces.Points(uniform(rows, 1), x),) for rows in (4, 6, 8)]


@third(
    "botorch.qLogExpectedImprovement",
    "botorch",
    "Bayesian optimization",
)
def _() -> Built:
    from botorch.acquisition.logei import qLogExpectedImprovement
    from botorch.models import SingleTaskGP

    seen = uniform(6, 2).double()
    model = SingleTaskGP(seen, seen.sum(1, keepdim=True).sin())
    return qLogExpectedImprovement(model, 0.5), lambda: [(uniform(rows, 2, 2).double(),) for rows in (3, 4, 5)]


@third("spikingtorch.LIF", "spikingtorch", "spiking networks", train=True)
def _() -> Built:
    import torch
    from spikingtorch.layers import LIF

    class Steps(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weigh, self.cell = torch.nn.Linear(8, 4), LIF()

        def forward(self, x: Any) -> Any:
            return torch.stack([self.cell(self.weigh(one), init=number == 0) for number, one in enumerate(x)])

    return Steps(), lambda: [(uniform(steps, rows, 8),) for steps, rows in ((3, 2), (3, 3), (4, 2))]


@third(
    "differentiable_robot_model.DifferentiableRobotModel",
    "differentiable_robot_model",
    "robots",
    compiled="differentiable_robot_model.robot_model:DifferentiableRobotModel.compute_forward_kinematics",
)
def _() -> Built:
    from pathlib import Path

    import diff_robot_data
    from differentiable_robot_model.robot_model import DifferentiableRobotModel

    path = Path(diff_robot_data.__file__).parent / "2link_robot.urdf"
    model = DifferentiableRobotModel(str(path), "two")
    end = model.get_link_names()[-1]
    return method(model, "compute_forward_kinematics"), lambda: [(normal(rows, 2), end) for rows in (2, 3, 4)]


@third("e2cnn.R2Conv", "e2cnn", "equivariance")
def _() -> Built:
    import torch
    from e2cnn import gspaces, nn

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            space = gspaces.Rot2dOnR2(4)
            self.given = nn.FieldType(space, [space.trivial_repr])
            inner = nn.FieldType(space, 2 * [space.regular_repr])
            self.net = nn.SequentialModule(
                nn.R2Conv(self.given, inner, 3, padding=1), nn.InnerBatchNorm(inner), nn.ReLU(inner),
                nn.GroupPooling(inner),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            return self.net(nn.GeometricTensor(x, self.given)).tensor

    return Net(), lambda: [(normal(rows, 1, n, n),) for rows, n in ((1, 9), (2, 9), (1, 11))]


@third("torchmultimodal.FLAVA", "torchmultimodal", "pictures and texts")
def _() -> Built:
    from torchmultimodal.models.flava.model import flava_model

    model = flava_model(
        image_hidden_size=16, image_num_attention_heads=2, image_num_hidden_layers=1, image_intermediate_size=32,
        image_size=16, patch_size=8, text_hidden_size=16, text_num_attention_heads=2, text_num_hidden_layers=1,
        text_intermediate_size=32, vocab_size=30, max_position_embeddings=16, multimodal_hidden_size=16,
        multimodal_num_attention_heads=2, multimodal_num_hidden_layers=1, multimodal_intermediate_size=32,
        text_and_image_proj_size=16,
    )  # fmt: skip
    return model, lambda: [(uniform(r, 3, 16, 16), whole(29, r, n) + 1) for r, n in ((1, 8), (2, 8), (1, 12))]


@third("loralib.MergedLinear", "loralib", "adapters", train=True)
def _() -> Built:
    from loralib import MergedLinear

    model = MergedLinear(16, 24, r=2, enable_lora=[True, False, True])
    return model, lambda: [(normal(*size, 16),) for size in SIZES]


@third("unikan.SKAN", "unikan", "Kolmogorov-Arnold networks", train=True)
def _() -> Built:
    from unikan.skan import SKAN_pure

    return SKAN_pure([4, 8, 2]), lambda: [(normal(rows, 4),) for rows in (2, 3, 4)]


@third("inferno.Sequential", "inferno", "Bayesian networks", train=True)
def _() -> Built:
    import torch
    from inferno import bnn
    from inferno.bnn import params

    model = bnn.Sequential(
        bnn.Linear(4, 8, cov=params.LowRankCovariance(2)), torch.nn.ReLU(), bnn.Linear(8, 2, layer_type="output")
    )
    return model, lambda: [((normal(rows, 4),), {"sample_shape": torch.Size([2])}) for rows in (2, 3, 4)]


SHUFFLED = sorted(CLASSES)
random.Random(3).shuffle(SHUFFLED)
