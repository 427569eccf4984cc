"""A second zoo of classes that nobody had tuned the tool for, of packages that are in no other list here.

Data, not a program: as ``zoo.py``, with the packages of ``zoo_wild2.txt``. It was written before any rule was written
for it, and it is in two halves: what breaks in ``WORK`` was looked at, line by line, when rules were written; ``HELD``
was counted before and measured at the end, and no rule was changed after that. The seed decides which class is where.
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


def wild(name: str, packages: str, family: str, *, train: bool = False, compiled: str = "") -> Any:
    def register(build: Any) -> None:
        assert name not in CLASSES, name
        COMPILED[name] = tuple(compiled.split())
        CLASSES[name] = Class(name, tuple(packages.split()), family, build, False, train)

    return register


def calling(function: Any, *parts: Any) -> Any:
    """A module whose forward is ``function``; ``parts`` are modules that it uses."""
    import torch

    class Calling(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleList(parts)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

    return Calling()


# ---------------------------------------------------------------------------------------------------------------------
# Pictures, faces, detection, masks.


@wild(
    "facenet_pytorch.MTCNN",
    "facenet_pytorch",
    "face detection",
    compiled="facenet_pytorch.models.utils.detect_face:detect_face",
)
def _() -> Built:
    import torch
    from facenet_pytorch import MTCNN
    from facenet_pytorch.models.utils.detect_face import detect_face

    model = MTCNN(min_face_size=20)

    def detect(pictures: Any) -> Any:
        return detect_face(
            pictures, 20, model.pnet, model.rnet, model.onet, [0.2, 0.2, 0.2], 0.709, torch.device("cpu")
        )

    sizes = ((1, 40), (2, 40), (1, 48))
    return calling(detect, model), lambda: [(uniform(rows, n, n, 3) * 255,) for rows, n in sizes]


@wild("facenet_pytorch.InceptionResnetV1", "facenet_pytorch", "face recognition")
def _() -> Built:
    from facenet_pytorch import InceptionResnetV1

    model = InceptionResnetV1()
    return model, lambda: [(uniform(rows, 3, n, n),) for rows, n in ((1, 96), (2, 96), (1, 112))]


@wild("yolox.YOLOX", "yolox.models yolox.utils", "detection")
def _() -> Built:
    from yolox.models import YOLOPAFPN, YOLOX, YOLOXHead

    model = YOLOX(YOLOPAFPN(0.33, 0.125), YOLOXHead(3, 0.125))
    return model, lambda: [(uniform(rows, 3, n, n),) for rows, n in ((1, 64), (2, 64), (1, 96))]


def _boxes(rows: int, size: int) -> Any:
    import torch

    boxes = torch.zeros(rows, 4, 5)
    boxes[:, 0] = torch.tensor([1.0, 20, 20, 16, 12])
    boxes[:, 1] = torch.tensor([2.0, size - 20, size - 24, 20, 24])
    return boxes


@wild("yolox.YOLOX-loss", "yolox.models yolox.utils", "detection, loss", train=True)
def _() -> Built:
    from yolox.models import YOLOPAFPN, YOLOX, YOLOXHead

    model = YOLOX(YOLOPAFPN(0.33, 0.125), YOLOXHead(3, 0.125))
    sizes = ((1, 64), (2, 64), (1, 96))
    return model, lambda: [(uniform(rows, 3, n, n), _boxes(rows, n)) for rows, n in sizes]


@wild("sam2.PromptEncoder", "sam2.modeling sam2.utils", "segmentation")
def _() -> Built:
    from sam2.modeling.sam.prompt_encoder import PromptEncoder

    model = PromptEncoder(16, (4, 4), (64, 64), 4)

    def call(rows: int, points: int) -> Call:
        return (uniform(rows, points, 2) * 64, whole(2, rows, points)), uniform(rows, 4) * 64, uniform(rows, 1, 16, 16)

    return model, lambda: [call(*size) for size in ((1, 3), (2, 3), (1, 5))]


@wild("sam2.MaskDecoder", "sam2.modeling sam2.utils", "segmentation")
def _() -> Built:
    from sam2.modeling.sam.mask_decoder import MaskDecoder
    from sam2.modeling.sam.transformer import TwoWayTransformer

    model = MaskDecoder(
        transformer_dim=32, transformer=TwoWayTransformer(2, 32, 2, 64), dynamic_multimask_via_stability=True
    )

    def call(rows: int, points: int) -> Call:
        return {
            "image_embeddings": normal(rows, 32, 4, 4), "image_pe": normal(1, 32, 4, 4),
            "sparse_prompt_embeddings": normal(rows, points, 32), "dense_prompt_embeddings": normal(rows, 32, 4, 4),
            "multimask_output": False, "repeat_image": False,
        }  # fmt: skip

    return model, lambda: [call(*size) for size in ((1, 3), (2, 3), (1, 5))]


@wild("face_alignment.s3fd", "face_alignment", "key points")
def _() -> Built:
    from face_alignment.detection.sfd.net_s3fd import s3fd

    return s3fd(), lambda: [(uniform(rows, 3, n, n),) for rows, n in ((1, 64), (2, 64), (1, 96))]


@wild("romatch.GP", "romatch.models", "matching")
def _() -> Built:
    from romatch.models.matcher import GP, CosKernel

    model = GP(CosKernel, T=0.2, learn_temperature=False, only_attention=False, gp_dim=16, basis="fourier")
    return model, lambda: [(normal(rows, 8, n, n), normal(rows, 8, n, n)) for rows, n in ((1, 4), (2, 4), (1, 6))]


@wild("rfdetr.Transformer", "rfdetr.models", "detection")
def _() -> Built:
    from rfdetr.models.transformer import Transformer

    model = Transformer(
        d_model=16, sa_nhead=2, ca_nhead=2, num_queries=6, num_decoder_layers=2, dim_feedforward=32, dropout=0.0,
        return_intermediate_dec=True, group_detr=1, two_stage=False, num_feature_levels=1, dec_n_points=2,
        lite_refpoint_refine=True, decoder_norm_type="LN", bbox_reparam=True,
    )  # fmt: skip

    def call(rows: int, size: int) -> Call:
        import torch

        none = torch.zeros(rows, size, size, dtype=torch.bool)
        return [normal(rows, 16, size, size)], [none], [normal(rows, 16, size, size)], uniform(6, 4), normal(6, 16)

    return model, lambda: [call(*size) for size in ((1, 4), (2, 4), (1, 6))]


@wild("denoising_diffusion_pytorch.GaussianDiffusion", "denoising_diffusion_pytorch", "diffusion", train=True)
def _() -> Built:
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    model = GaussianDiffusion(Unet(dim=8, dim_mults=(1, 2), self_condition=True), image_size=16, timesteps=8)
    return model, lambda: [(uniform(rows, 3, 16, 16),) for rows in (2, 3, 5)]


@wild(
    "denoising_diffusion_pytorch.sample",
    "denoising_diffusion_pytorch",
    "diffusion, generation",
    compiled="denoising_diffusion_pytorch.denoising_diffusion_pytorch:GaussianDiffusion.sample",
)
def _() -> Built:
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    net = Unet(dim=8, dim_mults=(1, 2))
    model = GaussianDiffusion(net, image_size=16, timesteps=8, sampling_timesteps=3)
    return method(model, "sample"), lambda: [(rows,) for rows in (2, 3, 5)]


@wild(
    "denoising_diffusion_pytorch.ElucidatedDiffusion",
    "denoising_diffusion_pytorch",
    "diffusion, generation",
    compiled="denoising_diffusion_pytorch.elucidated_diffusion:ElucidatedDiffusion.sample",
)
def _() -> Built:
    from denoising_diffusion_pytorch import ElucidatedDiffusion, Unet

    net = Unet(dim=8, dim_mults=(1, 2), learned_sinusoidal_cond=True)
    model = ElucidatedDiffusion(net, image_size=16, num_sample_steps=3)
    return method(model, "sample"), lambda: [(rows,) for rows in (2, 3, 5)]


# ---------------------------------------------------------------------------------------------------------------------
# Sound: codecs, speech, music, losses.


@wild("moshi.Mimi", "moshi.models moshi.modules moshi.quantization moshi.utils", "audio codec")
def _() -> Built:
    from moshi.models.compression import MimiModel
    from moshi.modules import SEANetDecoder, SEANetEncoder
    from moshi.modules.transformer import ProjectedTransformer
    from moshi.quantization import SplitResidualVectorQuantizer

    net = {"channels": 1, "dimension": 16, "causal": True, "n_filters": 4, "n_residual_layers": 1, "ratios": [4, 2],
           "norm": "none", "true_skip": True, "pad_mode": "constant"}  # fmt: skip
    layers = {"d_model": 16, "num_heads": 2, "num_layers": 1, "causal": True, "context": 16, "layer_scale": 0.01,
              "gating": "none", "norm": "layer_norm", "positional_embedding": "rope", "max_period": 10000,
              "dim_feedforward": 32, "input_dimension": 16, "output_dimensions": [16], "conv_layout": True}  # fmt: skip
    model = MimiModel(
        SEANetEncoder(**net), SEANetDecoder(**net),
        SplitResidualVectorQuantizer(
            dimension=8, input_dimension=16, output_dimension=16, n_q=3, bins=16, n_q_semantic=1
        ),
        channels=1, sample_rate=800, frame_rate=50, encoder_frame_rate=100, causal=True, resample_method="conv",
        encoder_transformer=ProjectedTransformer(**layers), decoder_transformer=ProjectedTransformer(**layers),
    )  # fmt: skip
    return model, lambda: [(normal(rows, 1, n) * 0.3,) for rows, n in ((1, 256), (2, 256), (1, 320))]


@wild("moshi.LMModel", "moshi.models moshi.modules moshi.quantization moshi.utils", "speech, generation")
def _() -> Built:
    from moshi.models.lm import LMModel

    model = LMModel(
        delays=[0, 0, 1], n_q=2, dep_q=2, card=16, text_card=20, dim=16, num_heads=2, hidden_scale=2,
        depformer_dim=16, depformer_num_heads=2, depformer_num_layers=1, depformer_dim_feedforward=32,
        depformer_multi_linear=True, depformer_weights_per_step=True, num_layers=1, causal=True, context=16,
        positional_embedding="rope", depformer_pos_emb="none", gating="silu", depformer_gating="silu",
    )  # fmt: skip
    return model, lambda: [(whole(16, rows, 3, n),) for rows, n in ((1, 8), (2, 8), (1, 12))]


@wild("bs_roformer.BSRoformer", "bs_roformer", "source separation")
def _() -> Built:
    from bs_roformer import BSRoformer

    model = BSRoformer(
        dim=16, depth=1, time_transformer_depth=1, freq_transformer_depth=1, freqs_per_bands=(8, 9, 16), heads=2,
        dim_head=8, stft_n_fft=64, stft_hop_length=16, stft_win_length=64, dim_freqs_in=33, mask_estimator_depth=1,
    )  # fmt: skip
    return model, lambda: [(normal(rows, n) * 0.3,) for rows, n in ((1, 512), (2, 512), (1, 768))]


@wild("beat_this.BeatThis", "beat_this.model", "music")
def _() -> Built:
    from beat_this.model.beat_tracker import BeatThis

    model = BeatThis(spect_dim=32, transformer_dim=32, n_layers=1, head_dim=8, stem_dim=8)
    return model, lambda: [(normal(rows, n, 32),) for rows, n in ((1, 24), (2, 24), (1, 32))]


@wild("audio_diffusion_pytorch.DiffusionModel", "audio_diffusion_pytorch a_unet", "audio, diffusion", train=True)
def _() -> Built:
    from audio_diffusion_pytorch import DiffusionModel, UNetV0, VDiffusion, VSampler

    model = DiffusionModel(
        net_t=UNetV0, in_channels=2, channels=[8, 16], factors=[1, 4], items=[1, 1], attentions=[0, 1],
        attention_heads=2, attention_features=8, diffusion_t=VDiffusion, sampler_t=VSampler, resnet_groups=4,
    )  # fmt: skip
    return model, lambda: [(normal(rows, 2, n),) for rows, n in ((1, 64), (2, 64), (1, 96))]


@wild("auraloss.MultiResolutionSTFTLoss", "auraloss", "audio, loss")
def _() -> Built:
    from auraloss.freq import MultiResolutionSTFTLoss

    model = MultiResolutionSTFTLoss([64, 128], [16, 32], [64, 128], scale="mel", n_bins=8, sample_rate=8000)
    return model, lambda: [(normal(rows, 1, n), normal(rows, 1, n)) for rows, n in ((2, 512), (3, 512), (2, 768))]


@wild("torch_stoi.NegSTOILoss", "torch_stoi", "audio, loss")
def _() -> Built:
    from torch_stoi import NegSTOILoss

    model = NegSTOILoss(sample_rate=10000)
    return model, lambda: [(normal(rows, n), normal(rows, n)) for rows, n in ((2, 6000), (3, 6000), (2, 8000))]


@wild("fast_bss_eval.SDRLoss", "fast_bss_eval", "audio, loss", compiled="fast_bss_eval.torch.metrics:sdr_pit_loss")
def _() -> Built:
    from fast_bss_eval.torch import sdr_pit_loss

    def loss(guess: Any, truth: Any) -> Any:
        return sdr_pit_loss(guess, truth, filter_length=16)

    return calling(loss), lambda: [
        (normal(2, rows, n), normal(2, rows, n)) for rows, n in ((2, 256), (3, 256), (2, 320))
    ]


@wild("torch_audiomentations.Compose", "torch_audiomentations", "augmentation", train=True)
def _() -> Built:
    from torch_audiomentations import Compose, Gain, PolarityInversion, Shift

    model = Compose([Gain(p=0.7), PolarityInversion(p=0.7), Shift(p=0.7)], output_type="dict")
    sizes = ((2, 400), (3, 400), (2, 560))
    return model, lambda: [((normal(rows, 1, n),), {"sample_rate": 8000}) for rows, n in sizes]


ESPNET = "espnet2.asr espnet2.tts espnet2.layers espnet.nets.pytorch_backend"


@wild("espnet2.ConformerEncoder", ESPNET, "speech")
def _() -> Built:
    from espnet2.asr.encoder.conformer_encoder import ConformerEncoder

    model = ConformerEncoder(20, 16, 2, 32, 2, cnn_module_kernel=5, rel_pos_type="latest", macaron_style=True)
    return model, lambda: [(normal(rows, n, 20), lengths(rows, n, 4)) for rows, n in ((2, 40), (3, 40), (2, 56))]


@wild("espnet2.ContextualBlockTransformerEncoder", ESPNET, "speech")
def _() -> Built:
    from espnet2.asr.encoder.contextual_block_transformer_encoder import ContextualBlockTransformerEncoder

    model = ContextualBlockTransformerEncoder(20, 16, 2, 32, 1, block_size=8, hop_size=4, look_ahead=2)
    return model, lambda: [(normal(rows, n, 20), lengths(rows, n, 4)) for rows, n in ((2, 80), (3, 80), (2, 96))]


@wild("espnet2.RNNEncoder", ESPNET, "speech")
def _() -> Built:
    from espnet2.asr.encoder.rnn_encoder import RNNEncoder

    model = RNNEncoder(20, num_layers=2, hidden_size=8, output_size=12, subsample=(2, 1))
    return model, lambda: [(normal(rows, n, 20), lengths(rows, n, 4)) for rows, n in ((2, 40), (3, 40), (2, 56))]


@wild("espnet2.CTC", ESPNET, "speech, loss", train=True)
def _() -> Built:
    from espnet2.asr.ctc import CTC

    model = CTC(12, 16)
    return model, lambda: [
        (normal(rows, n, 16), lengths(rows, n, 2), whole(11, rows, 6) + 1, lengths(rows, 6, 1))
        for rows, n in ((2, 20), (3, 20), (2, 28))
    ]


@wild("espnet2.FastSpeech2", ESPNET, "speech synthesis", train=True)
def _() -> Built:
    import torch
    from espnet2.tts.fastspeech2 import FastSpeech2

    model = FastSpeech2(
        12, 8, adim=16, aheads=2, elayers=1, eunits=32, dlayers=1, dunits=32, postnet_layers=2, postnet_chans=8,
        postnet_filts=3, pitch_predictor_chans=8, energy_predictor_chans=8, duration_predictor_chans=8,
        duration_predictor_layers=1, pitch_predictor_layers=1, energy_predictor_layers=1, pitch_embed_kernel_size=1,
        energy_embed_kernel_size=1, transformer_enc_dropout_rate=0.0, transformer_dec_dropout_rate=0.0,
        use_masking=True,
    )  # fmt: skip

    def call(rows: int, words: int) -> Call:
        texts = lengths(rows, words, 1)
        spent = torch.ones(rows, words + 1, dtype=torch.long) * 2
        spent = spent * (torch.arange(words + 1) <= texts[:, None])
        frames = spent.sum(1)
        values = normal(rows, words + 1, 1)
        return (
            whole(10, rows, words) + 1, texts, normal(rows, int(frames.max()), 8), frames, spent, texts + 1,
            values, texts + 1, values, texts + 1,
        )  # fmt: skip

    return model, lambda: [call(*size) for size in ((2, 6), (3, 6), (2, 9))]


@wild("espnet2.Tacotron2", ESPNET, "speech synthesis", train=True)
def _() -> Built:
    from espnet2.tts.tacotron2 import Tacotron2

    model = Tacotron2(
        12, 8, embed_dim=16, eunits=16, econv_layers=1, econv_chans=16, adim=8, aconv_chans=4, aconv_filts=3,
        dlayers=1, dunits=16, prenet_layers=1, prenet_units=8, postnet_layers=2, postnet_chans=8,
        dropout_rate=0.0, zoneout_rate=0.0,
    )  # fmt: skip

    def call(rows: int, words: int) -> Call:
        return whole(10, rows, words) + 1, lengths(rows, words, 1), normal(rows, 6, 8), lengths(rows, 6, 1)

    return model, lambda: [call(*size) for size in ((2, 6), (3, 6), (2, 9))]


@wild("kokoro.TextEncoder", "kokoro.modules kokoro.istftnet", "speech synthesis")
def _() -> Built:
    import torch

    bare("kokoro")
    from kokoro.modules import TextEncoder

    def call(rows: int, words: int) -> Call:
        sizes = lengths(rows, words, 1)
        return whole(20, rows, words), sizes, torch.arange(words) >= sizes[:, None]

    model = TextEncoder(16, 3, 2, 20)
    return model, lambda: [call(*size) for size in ((2, 8), (3, 8), (2, 11))]


# ---------------------------------------------------------------------------------------------------------------------
# Molecules, graphs, geometry, robots, equations.


@wild("torchani.ANI", "torchani", "molecules")
def _() -> Built:
    import torch
    from torchani.arch import simple_ani

    model = simple_ani(("H", "C", "N", "O"), lot="wb97x-631gd", radial_shifts=4, angular_shifts=2, sections=2)

    def call(rows: int, atoms: int) -> Call:
        kinds = torch.tensor([1, 6, 7, 8])[torch.arange(atoms) % 4].expand(rows, -1).clone()
        return ((kinds, normal(rows, atoms, 3) * 2),)

    return model, lambda: [call(*size) for size in ((2, 5), (3, 5), (2, 7))]


@wild("e3nn.Gate", "e3nn", "molecules")
def _() -> Built:
    import torch
    from e3nn.nn.models.gate_points_2101 import Network

    model = Network(
        irreps_in="3x0e", irreps_hidden="4x0e + 2x1o", irreps_out="1x0e", irreps_node_attr="1x0e",
        irreps_edge_attr="1x0e + 1x1o", layers=1, max_radius=2.0, number_of_basis=4, radial_layers=1,
        radial_neurons=8, num_neighbors=3.0, num_nodes=5.0,
    )  # fmt: skip

    def call(nodes: int) -> Call:
        from_, to = torch.arange(nodes).repeat(2), torch.cat([torch.arange(nodes).roll(k) for k in (1, 2)])
        return ({
            "pos": normal(nodes, 3), "x": normal(nodes, 3), "batch": torch.zeros(nodes, dtype=torch.long),
            "edge_index": torch.stack([from_, to]), "z": torch.ones(nodes, 1),
        },)  # fmt: skip

    return model, lambda: [call(nodes) for nodes in (6, 8, 11)]


@wild("labml_nn.GraphAttentionV2", "labml_nn", "graphs")
def _() -> Built:
    from labml_nn.graphs.gatv2 import GraphAttentionV2Layer

    model = GraphAttentionV2Layer(8, 8, 2)
    return model, lambda: [(normal(n, 8), whole(2, n, n, 1).bool()) for n in (6, 8, 11)]


@wild("treelstm.TreeLSTM", "treelstm", "trees")
def _() -> Built:
    import torch
    from treelstm import TreeLSTM

    def call(leaves: int) -> Call:
        # A comb: each inner node holds one leaf and the node below.
        order = torch.tensor([0] * leaves + list(range(1, leaves)))
        inner = [leaves + k for k in range(leaves - 1)]
        pairs = [[inner[k], child] for k in range(leaves - 1) for child in (k + 1, inner[k - 1] if k else 0)]
        edges = torch.tensor(pairs)
        return normal(len(order), 8), order, edges, order[edges[:, 0]]

    return TreeLSTM(8, 8), lambda: [call(leaves) for leaves in (3, 4, 5)]


@wild("torchkge.TransE", "torchkge", "knowledge graphs")
def _() -> Built:
    from torchkge.models import TransEModel

    model = TransEModel(8, 20, 4)
    return model, lambda: [(whole(20, n), whole(20, n), whole(4, n), whole(20, n), whole(20, n)) for n in (4, 6, 9)]


@wild("pypose.IMUPreintegrator", "pypose", "robotics")
def _() -> Built:
    from pypose.module import IMUPreintegrator

    model = IMUPreintegrator(prop_cov=True, reset=True)
    sizes = ((2, 6), (3, 6), (2, 9))
    return model, lambda: [(uniform(*size, 1) * 0.1, normal(*size, 3) * 0.1, normal(*size, 3)) for size in sizes]


@wild(
    "pytorch_kinematics.Chain",
    "pytorch_kinematics",
    "robotics",
    compiled="pytorch_kinematics.chain:SerialChain.forward_kinematics pytorch_kinematics.chain:SerialChain.jacobian",
)
def _() -> Built:
    import pytorch_kinematics

    joints = "".join(
        f'<link name="l{k + 1}"/><joint name="j{k}" type="revolute"><parent link="l{k}"/><child link="l{k + 1}"/>'
        f'<origin xyz="0 0 0.2" rpy="0 0 0"/><axis xyz="{k % 2} {1 - k % 2} 0"/>'
        '<limit lower="-2" upper="2" effort="1" velocity="1"/></joint>'
        for k in range(4)
    )
    urdf = f'<robot name="arm"><link name="l0"/>{joints}</robot>'
    chain = pytorch_kinematics.build_serial_chain_from_urdf(urdf, "l4")

    def reached(angles: Any) -> Any:
        return chain.forward_kinematics(angles).get_matrix(), chain.jacobian(angles)

    return calling(reached), lambda: [(normal(rows, 4),) for rows in (2, 3, 5)]


@wild("smplx.SMPL", "smplx", "bodies")
def _() -> Built:
    import numpy
    from smplx import SMPL
    from smplx.utils import Struct

    draw = numpy.random.RandomState(0)
    points, joints = 7000, 24
    parents = numpy.maximum(numpy.arange(joints) - 1, -1)
    body = Struct(
        v_template=draw.randn(points, 3), f=draw.randint(0, points, (20, 3)), shapedirs=draw.randn(points, 3, 10),
        posedirs=draw.randn(points, 3, 207), J_regressor=numpy.abs(draw.rand(joints, points)) / points,
        weights=numpy.full((points, joints), 1 / joints), kintree_table=numpy.stack([parents, numpy.arange(joints)]),
    )  # fmt: skip
    model = SMPL("", data_struct=body)

    def call(rows: int) -> Call:
        return {"betas": normal(rows, 10), "body_pose": normal(rows, 69) * 0.2, "global_orient": normal(rows, 3) * 0.2,
                "transl": normal(rows, 3)}  # fmt: skip

    return model, lambda: [call(rows) for rows in (1, 2, 3)]


@wild("geomloss.SamplesLoss", "geomloss", "optimal transport")
def _() -> Built:
    from geomloss import SamplesLoss

    model = SamplesLoss("sinkhorn", blur=0.3, scaling=0.5, backend="tensorized")
    return model, lambda: [(uniform(rows, n, 3), uniform(rows, n, 3)) for rows, n in ((2, 6), (3, 6), (2, 9))]


@wild("FrEIA.SequenceINN", "FrEIA", "normalizing flow")
def _() -> Built:
    import torch
    from FrEIA.framework import SequenceINN
    from FrEIA.modules import AllInOneBlock, RNVPCouplingBlock

    def net(inputs: int, outputs: int) -> Any:
        return torch.nn.Sequential(torch.nn.Linear(inputs, 8), torch.nn.ReLU(), torch.nn.Linear(8, outputs))

    model = SequenceINN(4)
    for block in (AllInOneBlock, RNVPCouplingBlock, AllInOneBlock):
        model.append(block, subnet_constructor=net)
    return model, lambda: [(normal(rows, 4),) for rows in (6, 9, 14)]


@wild("FrEIA.InvertibleResNet", "FrEIA", "normalizing flow", train=True)
def _() -> Built:
    from FrEIA.framework import SequenceINN
    from FrEIA.modules import ActNorm, IResNetLayer

    model = SequenceINN(4)
    for block, options in ((ActNorm, {}), (IResNetLayer, {"internal_size": 8}), (ActNorm, {})):
        model.append(block, **options)
    return model, lambda: [(normal(rows, 4),) for rows in (6, 9, 14)]


@wild("neuralop.FNO", "neuralop", "differential equation")
def _() -> Built:
    from neuralop.models import FNO

    model = FNO(n_modes=(4, 4), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2)
    return model, lambda: [(normal(rows, 1, n, n),) for rows, n in ((1, 12), (2, 12), (1, 16))]


@wild("ptwt.wavedec2", "ptwt", "wavelets", compiled="ptwt.conv_transform_2:wavedec2 ptwt.conv_transform_2:waverec2")
def _() -> Built:
    import ptwt

    def both(picture: Any) -> Any:
        parts = ptwt.wavedec2(picture, "db2", level=2, mode="reflect")
        return parts[0], ptwt.waverec2(parts, "db2")

    return calling(both), lambda: [(normal(rows, n, n),) for rows, n in ((2, 32), (3, 32), (2, 48))]


# ---------------------------------------------------------------------------------------------------------------------
# Series, tables, users, learning by reward.


@wild("pytorch_tabnet.TabNet", "pytorch_tabnet", "tables")
def _() -> Built:
    import torch
    from pytorch_tabnet.tab_network import TabNet

    model = TabNet(6, 3, cat_idxs=[0], cat_dims=[4], cat_emb_dim=[2], group_attention_matrix=torch.eye(6))

    def call(rows: int) -> Call:
        return (torch.cat([whole(4, rows, 1).float(), normal(rows, 5)], 1),)

    return model, lambda: [call(rows) for rows in (4, 6, 9)]


@wild("pytorch_tabnet.TabNetPretraining", "pytorch_tabnet", "tables", train=True)
def _() -> Built:
    import torch
    from pytorch_tabnet.tab_network import TabNetPretraining

    model = TabNetPretraining(
        6, n_steps=2, virtual_batch_size=4, mask_type="entmax", group_attention_matrix=torch.eye(6)
    )
    return model, lambda: [(normal(rows, 6),) for rows in (6, 8, 12)]


@wild("tabicl.TabICL", "tabicl", "tables")
def _() -> Built:
    from tabicl._model.tabicl import TabICL

    model = TabICL(
        max_classes=3, embed_dim=16, col_num_blocks=1, col_nhead=2, col_num_inds=4, row_num_blocks=1, row_nhead=2,
        row_num_cls=2, icl_num_blocks=1, icl_nhead=2,
    )  # fmt: skip
    return model, lambda: [
        (normal(rows, n, 6), whole(3, rows, n - 4).float()) for rows, n in ((1, 12), (2, 12), (1, 16))
    ]


@wild("stable_baselines3.ActorCriticPolicy", "stable_baselines3.common", "reinforcement learning")
def _() -> Built:
    import gymnasium
    import numpy
    from stable_baselines3.common.policies import ActorCriticPolicy

    seen, done = gymnasium.spaces.Box(-1, 1, (6,), numpy.float32), gymnasium.spaces.Box(-1, 1, (2,), numpy.float32)
    model = ActorCriticPolicy(seen, done, lambda _: 1e-3)
    return model, lambda: [(normal(rows, 6), True) for rows in (2, 3, 5)]


@wild(
    "stable_baselines3.MultiInputPolicy",
    "stable_baselines3.common",
    "reinforcement learning",
    compiled="stable_baselines3.common.policies:ActorCriticPolicy.evaluate_actions",
)
def _() -> Built:
    import gymnasium
    import numpy
    from stable_baselines3.common.policies import MultiInputActorCriticPolicy

    box, choice = gymnasium.spaces.Box(-1, 1, (6,), numpy.float32), gymnasium.spaces.MultiDiscrete([3, 2])
    seen = gymnasium.spaces.Dict({"state": box, "kind": gymnasium.spaces.Discrete(4)})
    model = MultiInputActorCriticPolicy(seen, choice, lambda _: 1e-3, use_sde=False)

    def call(rows: int) -> Call:
        return {"state": normal(rows, 6), "kind": whole(4, rows)}, whole(2, rows, 2)

    return method(model, "evaluate_actions"), lambda: [call(rows) for rows in (2, 3, 5)]


def _users() -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    from torch_rechub.basic.features import SequenceFeature, SparseFeature

    user, item = SparseFeature("user", 8, 8), SparseFeature("item", 20, 8)
    past = SequenceFeature("past", 20, 8, pooling="concat", shared_with="item")
    other = SequenceFeature("other", 20, 8, pooling="concat", shared_with="item")
    return [user], [past], [item], [other]


def _visits(rows: int) -> Any:
    return {"user": whole(8, rows), "past": whole(20, rows, 6), "item": whole(20, rows), "other": whole(20, rows, 3)}


@wild("torch_rechub.MIND", "torch_rechub", "recommendation")
def _() -> Built:
    from torch_rechub.models.matching import MIND

    return MIND(*_users(), max_length=6), lambda: [(_visits(rows),) for rows in (2, 3, 5)]


@wild("torch_rechub.GRU4Rec", "torch_rechub", "recommendation")
def _() -> Built:
    from torch_rechub.models.matching import GRU4Rec

    model = GRU4Rec(*_users(), user_params={"dims": [16, 8], "dropout": 0.0})
    return model, lambda: [(_visits(rows),) for rows in (2, 3, 5)]


@wild("pytorchltr.PairwiseHinge", "pytorchltr", "ranking, loss")
def _() -> Built:
    from pytorchltr.loss import PairwiseHingeLoss

    model = PairwiseHingeLoss()
    return model, lambda: [(normal(*size, 1), whole(4, *size), lengths(*size, 1)) for size in ((2, 6), (3, 6), (2, 9))]


@wild("pytorchltr.LambdaNDCG", "pytorchltr", "ranking, loss")
def _() -> Built:
    from pytorchltr.loss import LambdaNDCGLoss2

    model = LambdaNDCGLoss2()
    return model, lambda: [(normal(*size, 1), whole(4, *size), lengths(*size, 1)) for size in ((2, 6), (3, 6), (2, 9))]


# ---------------------------------------------------------------------------------------------------------------------
# Sequences, structures, memory, spikes.


@wild("esm.ESM2", "esm", "proteins")
def _() -> Built:
    from esm import ESM2

    model = ESM2(num_layers=1, embed_dim=16, attention_heads=2)
    return model, lambda: [((whole(20, *size) + 4,), {"return_contacts": True}) for size in ((2, 8), (3, 8), (2, 12))]


@wild("esm.MSATransformer", "esm", "proteins")
def _() -> Built:
    import argparse

    import esm

    alphabet = esm.data.Alphabet.from_architecture("msa_transformer")
    told = argparse.Namespace(
        layers=1, embed_dim=16, ffn_embed_dim=32, attention_heads=2, dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0, max_tokens=2**14, max_tokens_per_msa=2**14, max_positions=64, logit_bias=True,
        embed_positions_msa=True, embed_positions_msa_dim=16, arch="msa_transformer",
    )  # fmt: skip
    model = esm.MSATransformer(told, alphabet)
    return model, lambda: [(whole(20, rows, 3, n) + 4,) for rows, n in ((1, 8), (2, 8), (1, 12))]


@wild("TorchCRF.CRF-loss", "TorchCRF", "tagging, loss")
def _() -> Built:
    from TorchCRF import CRF

    return CRF(5, use_gpu=False), lambda: [(normal(*size, 5), whole(5, *size), _filled(*size)) for size in SIZES]


@wild("TorchCRF.CRF-decode", "TorchCRF", "tagging", compiled="TorchCRF:CRF.viterbi_decode")
def _() -> Built:
    from TorchCRF import CRF

    model = method(CRF(5, use_gpu=False), "viterbi_decode")
    return model, lambda: [(normal(*size, 5), _filled(*size)) for size in ((2, 6), (3, 6), (2, 8))]


def _filled(rows: int, size: int) -> Any:
    import torch

    return torch.arange(size) < lengths(rows, size, 2)[:, None]


@wild(
    "torch_struct.LinearChainCRF",
    "torch_struct",
    "structures",
    compiled="torch_struct.distributions:StructDistribution.partition",
)
def _() -> Built:
    from torch_struct import LinearChainCRF

    def partition(scores: Any, sizes: Any) -> Any:
        return LinearChainCRF(scores, sizes).partition

    return calling(partition), lambda: [
        (normal(rows, n - 1, 3, 3), lengths(rows, n, 1)) for rows, n in ((2, 6), (3, 6), (2, 9))
    ]


@wild("dnc.DNC", "dnc", "memory")
def _() -> Built:
    from dnc import DNC

    model = DNC(4, 8, num_layers=1, num_hidden_layers=1, nr_cells=4, read_heads=2, cell_size=4)
    return model, lambda: [(normal(*size, 4),) for size in ((2, 3), (3, 3), (2, 4))]


@wild("titans_pytorch.NeuralMemory", "titans_pytorch", "memory")
def _() -> Built:
    from titans_pytorch import NeuralMemory

    model = NeuralMemory(dim=16, chunk_size=4, heads=2, dim_head=8)
    return calling(model), lambda: [(normal(*size, 16),) for size in ((1, 16), (2, 16), (1, 24))]


@wild("charformer_pytorch.GBST", "charformer_pytorch", "text")
def _() -> Built:
    from charformer_pytorch import GBST

    model = GBST(num_tokens=20, dim=16, max_block_size=4, downsample_factor=4)
    return model, lambda: [(whole(20, *size), _filled(*size)) for size in ((2, 17), (3, 17), (2, 25))]


@wild("sinkhorn_transformer.SinkhornTransformerLM", "sinkhorn_transformer", "language model")
def _() -> Built:
    from sinkhorn_transformer import SinkhornTransformerLM

    model = SinkhornTransformerLM(num_tokens=20, dim=16, heads=2, depth=1, bucket_size=8, max_seq_len=64, causal=True)
    return model, lambda: [(whole(20, *size),) for size in ((2, 32), (3, 32), (2, 64))]


@wild("labml_nn.SwitchFeedForward", "labml_nn", "mixture of experts")
def _() -> Built:
    from labml_nn.transformers.feed_forward import FeedForward
    from labml_nn.transformers.switch import SwitchFeedForward

    model = SwitchFeedForward(
        capacity_factor=1.0, drop_tokens=True, is_scale_prob=True, n_experts=3, expert=FeedForward(16, 32), d_model=16
    )
    return model, lambda: [(normal(n, rows, 16),) for rows, n in SIZES]


@wild("labml_nn.FeedbackTransformer", "labml_nn", "language model")
def _() -> Built:
    from labml_nn.transformers.feed_forward import FeedForward
    from labml_nn.transformers.feedback import FeedbackAttention, FeedbackTransformer, FeedbackTransformerLayer

    layer = FeedbackTransformerLayer(
        d_model=16, attn=FeedbackAttention(2, 16, 0.0), feed_forward=FeedForward(16, 32), dropout_prob=0.0
    )
    return FeedbackTransformer(layer, 1), lambda: [(normal(n, rows, 16),) for rows, n in ((2, 4), (3, 4), (2, 6))]


@wild("labml_nn.HyperLSTM", "labml_nn", "recurrent network")
def _() -> Built:
    from labml_nn.hypernetworks.hyper_lstm import HyperLSTM

    return HyperLSTM(8, 8, 4, 2, 1), lambda: [(normal(n, rows, 8),) for rows, n in ((2, 4), (3, 4), (2, 6))]


@wild("labml_nn.PonderGRU", "labml_nn", "recurrent network")
def _() -> Built:
    from labml_nn.adaptive_computation.ponder_net import ParityPonderGRU

    return ParityPonderGRU(8, 8, 4), lambda: [(normal(rows, 8),) for rows in (2, 3, 5)]


@wild("spikingjelly.LIFNet", "spikingjelly.activation_based", "spiking network")
def _() -> Built:
    import torch
    from spikingjelly.activation_based import layer, neuron

    model = torch.nn.Sequential(layer.Linear(8, 8), neuron.LIFNode(), layer.Linear(8, 4), neuron.IFNode())
    return model, lambda: [(uniform(rows, 8),) for rows in (2, 2, 2)]


@wild("norse.LSNNLayer", "norse.torch", "spiking network")
def _() -> Built:
    from norse.torch.module.lsnn import LSNNCell, LSNNLayer

    return LSNNLayer(LSNNCell, 8, 8), lambda: [(uniform(n, rows, 8),) for rows, n in ((2, 4), (3, 4), (2, 6))]


#: Half of the classes by chance; the seed was chosen before anything was counted.
SEED = 2026
HELD = tuple(sorted(random.Random(SEED).sample(sorted(CLASSES), len(CLASSES) // 2)))
WORK = tuple(name for name in CLASSES if name not in HELD)
#: All of them, in an order that says nothing about them: who stops early has a sample.
SHUFFLED = tuple(random.Random(SEED).sample(sorted(CLASSES), len(CLASSES)))
