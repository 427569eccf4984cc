"""Classes of models that the tool was not tuned for, of installed packages, tiny, with random weights, on a CPU.

Data, not a program: ``settings.py`` beside this file makes cases of them and measures them, in an environment that has
the packages of ``zoo.txt``. A class is a function that builds it with the constructors that its package offers, and
says three calls: the second has another batch size, the third another length or image size, where the model allows it.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Call = Any  # what docs/harness.md calls a call
Built = tuple[Any, Callable[[], list[Call]]]


@dataclass(frozen=True)
class Class:
    """A class of models.

    ``name``: package and class. ``packages``: import names; what is in them may be patched. ``family``: what it is for.
    ``build``: the model, and a function that makes the calls. ``clean``: that it is here because nothing of it breaks.
    """

    name: str
    packages: tuple[str, ...]
    family: str
    build: Callable[[], Built]
    clean: bool = False
    train: bool = False


CLASSES: dict[str, Class] = {}


def zoo(
    name: str, packages: str, family: str, *, clean: bool = False, train: bool = False
) -> Callable[[Callable[[], Built]], None]:
    def register(build: Callable[[], Built]) -> None:
        assert name not in CLASSES, name
        CLASSES[name] = Class(name, tuple(packages.split()), family, build, clean, train)

    return register


def bare(*names: str) -> None:
    """Packages whose ``__init__`` imports much that a model does not need: only their folders count."""
    for name in names:
        if name in sys.modules:
            continue
        top, *below = name.split(".")
        spec = importlib.util.find_spec(top) if not below else None
        folders = (
            list(spec.submodule_search_locations or ())
            if spec is not None
            else [str(Path(folder, below[-1])) for folder in sys.modules[name.rpartition(".")[0]].__path__]
        )
        module = types.ModuleType(name)
        module.__path__ = folders
        module.__file__ = str(Path(folders[0], "__init__.py"))
        sys.modules[name] = module


def case(name: str) -> tuple[Callable[[], Any], Callable[[], list[Call]]]:
    """``build`` and ``calls`` of a case file."""
    import torch

    made: list[Callable[[], list[Call]]] = []

    def build() -> Any:
        model, calls = CLASSES[name].build()
        made[:] = [calls]
        train = CLASSES[name].train
        if isinstance(model, torch.nn.Module):
            stirred(model)
            model.train(train)
            model.requires_grad_(train)
        return model

    def calls() -> list[Call]:
        if not made:
            build()
        return made[0]()

    return build, calls


def stirred(model: Any) -> None:
    """Fresh weights are tiny or constant, and then a wrong mask does not show."""
    import torch

    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, weight in sorted(model.named_parameters()):
            if weight.is_floating_point() and type(weight) is torch.nn.Parameter:
                weight.add_(torch.randn(weight.shape, generator=generator).to(weight.dtype) * 0.03)


def method(model: Any, name: str) -> Any:
    """A module whose forward is a method of ``model``."""
    import torch

    class Method(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return getattr(self.model, name)(*args, **kwargs)

    return Method()


def normal(*shape: int) -> Any:
    import torch

    return torch.randn(shape)


def uniform(*shape: int) -> Any:
    import torch

    return torch.rand(shape)


def whole(limit: int, *shape: int) -> Any:
    import torch

    return torch.randint(0, limit, shape)


def lengths(rows: int, longest: int, step: int) -> Any:
    """Falling lengths, the longest first."""
    import torch

    return torch.tensor([longest - step * row for row in range(rows)])


SIZES: Sequence[tuple[int, int]] = ((2, 16), (3, 16), (2, 24))

# ---------------------------------------------------------------------------------------------------------------------
# Audio codecs, speech, separation.


@zoo("encodec.EncodecModel", "encodec", "audio codec")
def _() -> Built:
    from encodec import EncodecModel

    model = EncodecModel._get_model(
        [1.5, 3.0], 24_000, 1, causal=True, model_norm="weight_norm", audio_normalize=False, name="unset"
    )
    model.set_target_bandwidth(3.0)
    return model, lambda: [(normal(rows, 1, size) * 0.3,) for rows, size in ((1, 6400), (2, 6400), (1, 9600))]


@zoo("snac.SNAC", "snac", "audio codec")
def _() -> Built:
    from snac import SNAC

    model = SNAC(
        encoder_dim=8, encoder_rates=[2, 4], decoder_dim=32, decoder_rates=[4, 2], attn_window_size=None,
        codebook_size=32, codebook_dim=4, vq_strides=[2, 1],
    )  # fmt: skip
    return model, lambda: [(normal(rows, 1, size) * 0.3,) for rows, size in ((1, 256), (2, 256), (1, 320))]


@zoo("dac.DAC", "dac", "audio codec")
def _() -> Built:
    import torch

    base = types.ModuleType("audiotools")
    base.AudioSignal = type("AudioSignal", (), {})  # type: ignore[attr-defined]
    layers = types.ModuleType("audiotools.ml")
    layers.BaseModel = torch.nn.Module  # type: ignore[attr-defined]
    base.ml = layers  # type: ignore[attr-defined]
    sys.modules.update({"audiotools": base, "audiotools.ml": layers})
    bare("dac", "dac.model", "dac.nn")
    from dac.model.dac import DAC

    model = DAC(
        encoder_dim=8, encoder_rates=[2, 4], latent_dim=16, decoder_dim=32, decoder_rates=[4, 2], n_codebooks=3,
        codebook_size=32, codebook_dim=4,
    )  # fmt: skip
    return model, lambda: [(normal(rows, 1, size) * 0.3,) for rows, size in ((1, 256), (2, 256), (1, 320))]


@zoo("vocos.Vocos", "vocos", "vocoder")
def _() -> Built:
    from vocos.feature_extractors import MelSpectrogramFeatures
    from vocos.heads import ISTFTHead
    from vocos.models import VocosBackbone
    from vocos.pretrained import Vocos

    model = Vocos(
        MelSpectrogramFeatures(sample_rate=8000, n_fft=64, hop_length=16, n_mels=8),
        VocosBackbone(8, 16, 32, 2),
        ISTFTHead(16, 64, 16, padding="same"),
    )
    return model, lambda: [(normal(rows, size) * 0.3,) for rows, size in ((1, 320), (2, 320), (1, 480))]


@zoo("torchaudio.Conformer", "torchaudio.models", "speech")
def _() -> Built:
    from torchaudio.models import Conformer

    model = Conformer(input_dim=16, num_heads=2, ffn_dim=32, num_layers=2, depthwise_conv_kernel_size=5)
    return model, lambda: [(normal(*size, 16), lengths(*size, 3)) for size in SIZES]


@zoo("torchaudio.Emformer", "torchaudio.models", "speech")
def _() -> Built:
    from torchaudio.models import Emformer

    model = Emformer(16, 2, 32, 2, segment_length=4, right_context_length=1)
    return model, lambda: [(normal(*size, 16), lengths(*size, 3)) for size in ((2, 21), (3, 21), (2, 29))]


@zoo("torchaudio.Tacotron2", "torchaudio.models", "speech synthesis")
def _() -> Built:
    from torchaudio.models import Tacotron2

    model = Tacotron2(
        n_symbol=20, n_mels=8, symbol_embedding_dim=16, encoder_embedding_dim=16, encoder_n_convolution=1,
        decoder_rnn_dim=16, decoder_max_step=6, attention_rnn_dim=16, attention_hidden_dim=8,
        attention_location_n_filter=4, prenet_dim=8, postnet_n_convolution=2, postnet_embedding_dim=8,
        decoder_early_stopping=True,
    )  # fmt: skip
    return method(model, "infer"), lambda: [(whole(20, *size), lengths(*size, 1)) for size in ((2, 8), (3, 8), (2, 11))]


@zoo("torchaudio.RNNT", "torchaudio.models", "speech")
def _() -> Built:
    from torchaudio.models import emformer_rnnt_model

    model = emformer_rnnt_model(
        input_dim=8, encoding_dim=16, num_symbols=12, segment_length=8, right_context_length=4,
        time_reduction_input_dim=8, time_reduction_stride=4, transformer_num_heads=2, transformer_ffn_dim=16,
        transformer_num_layers=1, transformer_dropout=0.0, transformer_activation="gelu",
        transformer_left_context_length=4, transformer_max_memory_size=0,
        transformer_weight_init_scale_strategy="depthwise",
        transformer_tanh_on_mem=True, symbol_embedding_dim=8, num_lstm_layers=1, lstm_layer_norm=True,
        lstm_layer_norm_epsilon=1e-3, lstm_dropout=0.0,
    )  # fmt: skip

    def call(rows: int, frames: int) -> Call:
        return (
            normal(rows, frames, 8),
            lengths(rows, frames - 4, 4),
            whole(12, rows, 5).int(),
            lengths(rows, 5, 1).int(),
        )

    return model, lambda: [call(*size) for size in ((2, 36), (3, 36), (2, 52))]


@zoo("torchaudio.HDemucs", "torchaudio.models", "source separation")
def _() -> Built:
    from torchaudio.models import HDemucs

    model = HDemucs(["a", "b"], audio_channels=1, channels=4, growth=2, nfft=256, depth=3)
    return model, lambda: [(normal(rows, 1, size) * 0.3,) for rows, size in ((1, 2048), (2, 2048), (1, 3072))]


@zoo("torchaudio.SquimObjective", "torchaudio.models", "speech quality")
def _() -> Built:
    from torchaudio.models import squim_objective_model

    model = squim_objective_model(8, 16, 16, 2, 16, 1, "LSTM", 10, 8)
    return model, lambda: [(normal(rows, size) * 0.3,) for rows, size in ((1, 800), (2, 800), (1, 1200))]


@zoo("speechbrain.ECAPA_TDNN", "speechbrain.lobes.models speechbrain.nnet", "speaker recognition")
def _() -> Built:
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    model = ECAPA_TDNN(
        16, channels=[16] * 5, kernel_sizes=[5, 3, 3, 3, 1], dilations=[1, 2, 3, 4, 1], attention_channels=8,
        res2net_scale=2, se_channels=8, lin_neurons=12,
    )  # fmt: skip
    return model, lambda: [(normal(*size, 16), lengths(*size, 3) / size[1]) for size in SIZES]


@zoo("speechbrain.CRDNN", "speechbrain.lobes.models speechbrain.nnet", "speech")
def _() -> Built:
    from speechbrain.lobes.models.CRDNN import CRDNN

    model = CRDNN(
        input_size=16, cnn_channels=(4, 4), cnn_blocks=2, rnn_layers=1, rnn_neurons=8, rnn_bidirectional=True,
        dnn_blocks=1, dnn_neurons=8, time_pooling=True,
    )  # fmt: skip
    return model, lambda: [(normal(*size, 16),) for size in SIZES]


@zoo("speechbrain.TransformerASR", "speechbrain.lobes.models speechbrain.nnet", "speech")
def _() -> Built:
    from speechbrain.lobes.models.transformer.TransformerASR import TransformerASR

    model = TransformerASR(
        20, 16, d_model=16, nhead=2, num_encoder_layers=1, num_decoder_layers=1, d_ffn=32, dropout=0.0,
        encoder_module="conformer", attention_type="RelPosMHAXL", kernel_size=5,
        normalize_before=True,
    )  # fmt: skip

    def call(rows: int, frames: int) -> Call:
        return normal(rows, frames, 16), whole(19, rows, 6) + 1, lengths(rows, frames, 3) / frames

    return model, lambda: [call(*size) for size in SIZES]


@zoo("speechbrain.FastSpeech2", "speechbrain.lobes.models speechbrain.nnet", "speech synthesis")
def _() -> Built:
    from speechbrain.lobes.models.FastSpeech2 import FastSpeech2

    model = FastSpeech2(
        enc_num_layers=1, enc_num_head=2, enc_d_model=16, enc_ffn_dim=32, enc_k_dim=16, enc_v_dim=16, enc_dropout=0.0,
        dec_num_layers=1, dec_num_head=2, dec_d_model=16, dec_ffn_dim=32, dec_k_dim=16, dec_v_dim=16, dec_dropout=0.0,
        normalize_before=False, ffn_type="1dcnn", ffn_cnn_kernel_size_list=[3, 1], n_char=20, n_mels=8,
        postnet_embedding_dim=16, postnet_kernel_size=3, postnet_n_convolutions=2, postnet_dropout=0.0, padding_idx=0,
        dur_pred_kernel_size=3, pitch_pred_kernel_size=3, energy_pred_kernel_size=3, variance_predictor_dropout=0.0,
    )  # fmt: skip

    def call(rows: int, size: int) -> Call:
        tokens = whole(19, rows, size) + 1
        return tokens, whole(3, rows, size) + 1, uniform(rows, 3 * size), uniform(rows, 3 * size)

    return model, lambda: [call(*size) for size in ((2, 8), (3, 8), (2, 11))]


@zoo("demucs.HDemucs", "demucs", "source separation")
def _() -> Built:
    bare("demucs")
    from demucs.hdemucs import HDemucs

    model = HDemucs(["a", "b"], audio_channels=1, channels=4, nfft=256, depth=3)
    return model, lambda: [(normal(rows, 1, size) * 0.3,) for rows, size in ((1, 2048), (2, 2048), (1, 3072))]


@zoo("demucs.HTDemucs", "demucs", "source separation")
def _() -> Built:
    bare("demucs")
    from demucs.htdemucs import HTDemucs

    model = HTDemucs(
        ["a", "b"], audio_channels=1, channels=8, nfft=256, depth=3, t_layers=1, t_heads=2, dconv_comp=2, segment=0.05
    )
    return model, lambda: [(normal(rows, 1, size) * 0.3,) for rows, size in ((1, 2048), (2, 2048), (1, 1536))]


@zoo("openunmix.OpenUnmix", "openunmix", "source separation")
def _() -> Built:
    bare("openunmix")
    from openunmix.model import OpenUnmix

    model = OpenUnmix(nb_bins=17, nb_channels=2, hidden_size=16, nb_layers=2)
    return model, lambda: [(uniform(rows, 2, 17, size),) for rows, size in SIZES]


@zoo("denoiser.Demucs", "denoiser", "speech enhancement")
def _() -> Built:
    bare("denoiser")
    from denoiser.demucs import Demucs

    model = Demucs(hidden=4, depth=3, resample=2)
    return model, lambda: [(normal(rows, 1, size) * 0.3,) for rows, size in ((1, 800), (2, 800), (1, 1200))]


@zoo("asteroid.DPRNNTasNet", "asteroid.models asteroid.masknn asteroid.dsp asteroid_filterbanks", "source separation")
def _() -> Built:
    bare("asteroid", "asteroid.models")
    from asteroid.models.dprnn_tasnet import DPRNNTasNet

    model = DPRNNTasNet(n_src=2, n_filters=16, kernel_size=8, bn_chan=8, hid_size=8, chunk_size=10, n_repeats=1)
    return model, lambda: [(normal(rows, size) * 0.3,) for rows, size in ((1, 320), (2, 320), (1, 480))]


@zoo("resemblyzer.VoiceEncoder", "resemblyzer", "speaker recognition")
def _() -> Built:
    bare("resemblyzer")
    sys.modules["resemblyzer.audio"] = types.ModuleType("resemblyzer.audio")
    from resemblyzer.voice_encoder import VoiceEncoder

    return VoiceEncoder("cpu", verbose=False), lambda: [(uniform(*size, 40),) for size in SIZES]


@zoo(
    "TTS.StochasticDurationPredictor",
    "TTS.tts.layers.vits.transforms TTS.tts.layers.vits.stochastic_duration_predictor",
    "speech synthesis",
)
def _() -> Built:
    bare("TTS", "TTS.tts", "TTS.tts.layers", "TTS.tts.layers.vits", "TTS.tts.utils")
    from TTS.tts.layers.vits.stochastic_duration_predictor import StochasticDurationPredictor

    model = StochasticDurationPredictor(8, 8, 3, 0.0, 2)

    def call(rows: int, size: int) -> Call:
        mask = (lengths(rows, size, 2)[:, None] > whole(1, rows, size).cumsum(1).add(_count(size))).float()[:, None]
        return (normal(rows, 8, size), mask, uniform(rows, 1, size) * 4 + 1), {}

    return model, lambda: [call(*size) for size in SIZES]


def _count(size: int) -> Any:
    import torch

    return torch.arange(size)


@zoo("funasr.CifPredictorV2", "funasr.models.paraformer", "speech")
def _() -> Built:
    bare("funasr", "funasr.models", "funasr.models.paraformer")
    from funasr.models.paraformer.cif_predictor import CifPredictorV2

    def call(rows: int, size: int) -> Call:
        mask = (lengths(rows, size, 3)[:, None] > _count(size)).float()[:, None]
        return (normal(rows, size, 8),), {"mask": mask}

    return CifPredictorV2(8, 1, 1, tail_threshold=0.45), lambda: [call(*size) for size in SIZES]


@zoo("nnAudio.CQT", "nnAudio", "audio features")
def _() -> Built:
    from nnAudio.features.cqt import CQT2010v2

    model = CQT2010v2(sr=8000, hop_length=64, n_bins=24, bins_per_octave=12, fmin=220, verbose=False)
    return model, lambda: [(normal(rows, size) * 0.3,) for rows, size in ((1, 2048), (2, 2048), (1, 3072))]


# ---------------------------------------------------------------------------------------------------------------------
# Pictures: detection, matching, reading, quality.


@zoo("kornia.LoFTR", "kornia.feature", "matching")
def _() -> Built:
    from kornia.feature import LoFTR

    model = LoFTR(pretrained=None)

    def call(rows: int, size: int) -> Call:
        return ({"image0": uniform(rows, 1, size, size), "image1": uniform(rows, 1, size, size)},)

    return model, lambda: [call(*size) for size in ((1, 64), (2, 64), (1, 96))]


@zoo("kornia.LightGlue", "kornia.feature", "matching")
def _() -> Built:
    import torch
    from kornia.feature import LightGlue

    model = LightGlue(None, input_dim=32, descriptor_dim=32, num_heads=2, n_layers=3, flash=False)

    def side(rows: int, points: int) -> dict[str, Any]:
        size = torch.tensor([[64, 64]] * rows)
        return {"keypoints": uniform(rows, points, 2) * 64, "descriptors": normal(rows, points, 32), "image_size": size}

    def call(rows: int, first: int, second: int) -> Call:
        return ({"image0": side(rows, first), "image1": side(rows, second)},)

    return model, lambda: [call(*size) for size in ((1, 20, 24), (2, 20, 24), (1, 30, 28))]


def _detector_backbone() -> Any:
    import torch

    backbone = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, 4, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, 32, 3, 4, 1), torch.nn.ReLU()
    )
    backbone.out_channels = 32
    return backbone


def _images() -> list[Call]:
    return [
        ([uniform(3, 64, 64)],),
        ([uniform(3, 64, 64), uniform(3, 64, 64)],),
        ([uniform(3, 64, 96), uniform(3, 80, 64)],),
    ]


@zoo("torchvision.FasterRCNN", "torchvision.models.detection", "detection")
def _() -> Built:
    from torchvision.models.detection import FasterRCNN
    from torchvision.models.detection.rpn import AnchorGenerator
    from torchvision.ops import MultiScaleRoIAlign

    model = FasterRCNN(
        _detector_backbone(), num_classes=4, min_size=64, max_size=96, rpn_post_nms_top_n_test=20,
        rpn_anchor_generator=AnchorGenerator(((8, 16),), ((1.0,),)),
        box_roi_pool=MultiScaleRoIAlign(["0"], 3, 2), box_detections_per_img=5,
    )  # fmt: skip
    return model, _images


@zoo("torchvision.RetinaNet", "torchvision.models.detection", "detection")
def _() -> Built:
    from torchvision.models.detection import RetinaNet
    from torchvision.models.detection.anchor_utils import AnchorGenerator

    anchors = AnchorGenerator(((8, 16),), ((1.0,),))
    model = RetinaNet(
        _detector_backbone(),
        4,
        min_size=64,
        max_size=96,
        anchor_generator=anchors,
        detections_per_img=5,
        topk_candidates=20,
    )
    return model, _images


@zoo("torchvision.FCOS", "torchvision.models.detection", "detection")
def _() -> Built:
    from torchvision.models.detection import FCOS
    from torchvision.models.detection.anchor_utils import AnchorGenerator

    anchors = AnchorGenerator(((8,),), ((1.0,),))
    model = FCOS(
        _detector_backbone(),
        4,
        min_size=64,
        max_size=96,
        anchor_generator=anchors,
        detections_per_img=5,
        topk_candidates=20,
    )
    return model, _images


@zoo("effdet.DetBenchPredict", "effdet", "detection")
def _() -> Built:
    from effdet import DetBenchPredict, EfficientDet, get_efficientdet_config

    config = get_efficientdet_config("tf_efficientdet_lite0")
    config.image_size = [128, 128]
    config.num_classes = 4
    config.fpn_channels, config.fpn_cell_repeats, config.box_class_repeats = 16, 1, 1
    config.max_detection_points, config.max_det_per_image = 40, 5
    return DetBenchPredict(EfficientDet(config, pretrained_backbone=False)), lambda: [
        (uniform(rows, 3, 128, 128),) for rows in (1, 2, 3)
    ]


@zoo("effdet.DetBenchTrain", "effdet", "detection, loss")
def _() -> Built:
    import torch
    from effdet import DetBenchTrain, EfficientDet, get_efficientdet_config

    config = get_efficientdet_config("tf_efficientdet_lite0")
    config.image_size = [128, 128]
    config.num_classes = 4
    config.fpn_channels, config.fpn_cell_repeats, config.box_class_repeats = 16, 1, 1

    def call(rows: int, boxes: int) -> Call:
        corner = uniform(rows, boxes, 2) * 64
        target = {
            "bbox": torch.cat([corner, corner + 8 + uniform(rows, boxes, 2) * 48], 2),
            "cls": whole(4, rows, boxes).float() + 1,
            "img_scale": torch.ones(rows),
            "img_size": torch.full((rows, 2), 128.0),
        }
        return uniform(rows, 3, 128, 128), target

    return DetBenchTrain(EfficientDet(config, pretrained_backbone=False)), lambda: [
        call(*size) for size in ((1, 3), (2, 3), (1, 5))
    ]


@zoo(
    "ultralytics.DetectionModel-loss", "ultralytics.nn ultralytics.utils.loss ultralytics.utils.tal", "detection, loss"
)
def _() -> Built:
    from ultralytics.nn.tasks import DetectionModel

    model = DetectionModel("yolov8n.yaml", nc=4, verbose=False)
    model.args = types.SimpleNamespace(box=7.5, cls=0.5, dfl=1.5)

    def call(rows: int, size: int) -> Call:
        import torch

        boxes = uniform(3 * rows, 4) * 0.3 + 0.3
        batch = {"img": uniform(rows, 3, size, size), "cls": whole(4, 3 * rows, 1).float(), "bboxes": boxes}
        return ({**batch, "batch_idx": torch.arange(rows).repeat_interleave(3).float()},)

    return model, lambda: [call(*size) for size in ((1, 64), (2, 64), (1, 96))]


@zoo("segment_anything.Sam", "segment_anything", "segmentation")
def _() -> Built:
    import torch
    from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, Sam, TwoWayTransformer

    model = Sam(
        ImageEncoderViT(img_size=64, patch_size=16, embed_dim=16, depth=2, num_heads=2, out_chans=16, window_size=2),
        PromptEncoder(embed_dim=16, image_embedding_size=(4, 4), input_image_size=(64, 64), mask_in_chans=4),
        MaskDecoder(
            transformer_dim=16, transformer=TwoWayTransformer(depth=1, embedding_dim=16, num_heads=2, mlp_dim=16),
            iou_head_hidden_dim=16,
        ),
    )  # fmt: skip

    def call(images: int, points: int) -> Call:
        one = {
            "image": uniform(3, 64, 48) * 255,
            "original_size": (64, 48),
            "point_coords": uniform(2, points, 2) * 48,
            "point_labels": torch.tensor([[1, 0, 1, 0, 1][:points]] * 2),
        }
        return [dict(one) for _ in range(images)], True

    return model, lambda: [call(*size) for size in ((1, 2), (2, 2), (1, 3))]


@zoo("doctr.CRNN", "doctr.models.recognition", "text recognition")
def _() -> Built:
    import torch
    from doctr.models.recognition import CRNN

    features = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, (8, 2), 1), torch.nn.ReLU())
    model = CRNN(features, vocab="abcdef", rnn_units=8, input_shape=(3, 32, 64))
    return model, lambda: [(uniform(rows, 3, 32, size),) for rows, size in ((2, 64), (3, 64), (2, 96))]


@zoo("doctr.PARSeq", "doctr.models.recognition", "text recognition")
def _() -> Built:
    import torch
    from doctr.models.recognition import PARSeq

    class Features(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 16, 8, 8)

        def forward(self, x: Any) -> Any:
            return {"features": self.conv(x).flatten(2).transpose(1, 2)}

    model = PARSeq(Features(), vocab="abcdef", embedding_units=16, max_length=6, dec_num_heads=2, dec_ff_dim=16)
    return model, lambda: [(uniform(rows, 3, 32, size),) for rows, size in ((2, 64), (3, 64), (2, 96))]


@zoo("easyocr.Model", "easyocr.model", "text recognition")
def _() -> Built:
    bare("easyocr", "easyocr.model")
    from easyocr.model.vgg_model import Model

    model = Model(1, 16, 16, 10)
    return model, lambda: [
        (uniform(rows, 1, 64, size), whole(10, rows, 5)) for rows, size in ((2, 64), (3, 64), (2, 96))
    ]


@zoo("piq.SSIMLoss", "piq", "picture quality")
def _() -> Built:
    from piq import SSIMLoss

    return SSIMLoss(kernel_size=5), _two_images


@zoo("piq.FSIMLoss", "piq", "picture quality")
def _() -> Built:
    from piq import FSIMLoss

    return FSIMLoss(scales=2, orientations=2), _two_images


def _two_images() -> list[Call]:
    return [(uniform(rows, 3, size, size), uniform(rows, 3, size, size)) for rows, size in ((1, 32), (2, 32), (1, 48))]


@zoo("vit_pytorch.NaViT", "vit_pytorch.na_vit", "classification")
def _() -> Built:
    from vit_pytorch.na_vit import NaViT

    model = NaViT(
        image_size=64, patch_size=16, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=32, token_dropout_prob=None
    )
    sizes = (
        [[(32, 64), (64, 32)], [(48, 48)]],
        [[(32, 64), (64, 32)], [(48, 48), (64, 64)]],
        [[(64, 64), (32, 32)], [(16, 48)]],
    )
    return model, lambda: [([[uniform(3, *size) for size in group] for group in call],) for call in sizes]


@zoo("monai.VQVAE", "monai.networks", "medical pictures")
def _() -> Built:
    from monai.networks.nets import VQVAE

    model = VQVAE(
        spatial_dims=2, in_channels=1, out_channels=1, channels=(8, 8), num_res_channels=8, num_res_layers=1,
        downsample_parameters=((2, 4, 1, 1),) * 2, upsample_parameters=((2, 4, 1, 1, 0),) * 2, num_embeddings=8,
        embedding_dim=8,
    )  # fmt: skip
    return model, lambda: [(uniform(rows, 1, size, size),) for rows, size in ((1, 32), (2, 32), (1, 48))]


# ---------------------------------------------------------------------------------------------------------------------
# Time series.


@zoo("timesfm.TimesFM2p5", "timesfm", "time series")
def _() -> Built:
    import dataclasses

    import torch
    from timesfm.timesfm_2p5 import timesfm_2p5_torch

    cls = timesfm_2p5_torch.TimesFM_2p5_200M_torch_module
    config = cls.config
    stacked = config.stacked_transformers
    sizes = dataclasses.replace(stacked.transformer, model_dims=32, hidden_dims=32, num_heads=2)

    def block(old: Any, inputs: int, outputs: int) -> Any:
        return dataclasses.replace(old, input_dims=inputs, hidden_dims=32, output_dims=outputs)

    cls.config = dataclasses.replace(
        config,
        stacked_transformers=dataclasses.replace(stacked, num_layers=2, transformer=sizes),
        tokenizer=block(config.tokenizer, 64, 32),
        output_projection_point=block(config.output_projection_point, 32, 1280),
        output_projection_quantiles=block(config.output_projection_quantiles, 32, 10240),
    )
    model = cls()
    cls.config = config
    return method(model, "decode"), lambda: [
        (200, normal(*size), torch.zeros(*size, dtype=torch.bool)) for size in ((2, 64), (3, 64), (2, 96))
    ]


@zoo("chronos.Chronos2", "chronos.chronos2", "time series")
def _() -> Built:
    from chronos.chronos2 import Chronos2Model
    from chronos.chronos2.config import Chronos2CoreConfig

    forecasting = {
        "context_length": 64, "input_patch_size": 8, "input_patch_stride": 8, "output_patch_size": 8,
        "quantiles": [0.1, 0.5, 0.9], "use_reg_token": True, "use_arcsinh": True, "max_output_patches": 4,
        "time_encoding_scale": 64,
    }  # fmt: skip
    config = Chronos2CoreConfig(
        d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, dropout_rate=0.0, chronos_config=forecasting
    )
    model = Chronos2Model(config)

    def call(rows: int, size: int) -> Call:
        import torch

        future = normal(rows, 16)
        future[::2] = float("nan")
        groups = torch.arange(rows) // 2
        return {
            "context": normal(rows, size), "group_ids": groups, "future_covariates": future, "num_output_patches": 2
        }  # fmt: skip

    return model, lambda: [call(*size) for size in ((2, 32), (4, 32), (2, 48))]


@zoo("gluonts.DeepARModel", "gluonts.torch", "time series")
def _() -> Built:
    import torch
    from gluonts.torch.model.deepar.module import DeepARModel

    model = DeepARModel(
        freq="D", context_length=8, prediction_length=4, num_feat_dynamic_real=1, num_feat_static_real=1,
        num_feat_static_cat=1, cardinality=[3], hidden_size=8, num_layers=1, lags_seq=[1, 2, 3],
        num_parallel_samples=3, dropout_rate=0.0,
    )  # fmt: skip

    def call(rows: int, past: int) -> Call:
        return {
            "feat_static_cat": whole(3, rows, 1), "feat_static_real": normal(rows, 1),
            "past_time_feat": normal(rows, past, 1), "past_target": uniform(rows, past) + 1,
            "past_observed_values": torch.ones(rows, past), "future_time_feat": normal(rows, 4, 1),
        }  # fmt: skip

    return model, lambda: [call(*size) for size in ((2, 11), (3, 11), (4, 11))]


@zoo("gluonts.TemporalFusionTransformerModel", "gluonts.torch", "time series")
def _() -> Built:
    import torch
    from gluonts.torch.model.tft.module import TemporalFusionTransformerModel

    model = TemporalFusionTransformerModel(context_length=8, prediction_length=4, d_var=8, d_hidden=8, num_heads=2)

    def call(rows: int) -> Call:
        return {
            "past_target": uniform(rows, 8) + 1, "past_observed_values": torch.ones(rows, 8),
            "feat_static_real": normal(rows, 1), "feat_static_cat": whole(1, rows, 1),
            "feat_dynamic_real": normal(rows, 12, 1),
        }  # fmt: skip

    return model, lambda: [call(rows) for rows in (2, 3, 5)]


@zoo(
    "pytorch_forecasting.TemporalFusionTransformer",
    "pytorch_forecasting.models.temporal_fusion_transformer pytorch_forecasting.models.nn pytorch_forecasting.utils",
    "time series",
)
def _() -> Built:
    from pytorch_forecasting.data import TorchNormalizer
    from pytorch_forecasting.metrics import QuantileLoss
    from pytorch_forecasting.models import TemporalFusionTransformer

    model = TemporalFusionTransformer(
        hidden_size=8, lstm_layers=1, attention_head_size=2, max_encoder_length=10, hidden_continuous_size=4,
        x_reals=["a", "b"], time_varying_reals_encoder=["a", "b"], time_varying_reals_decoder=["a"],
        output_size=3, loss=QuantileLoss([0.1, 0.5, 0.9]), dropout=0.0, learning_rate=1e-3,
        output_transformer=TorchNormalizer(method="identity"),
    )  # fmt: skip
    return method(model, "forward"), lambda: [(_forecast(*size),) for size in ((2, 8), (3, 8), (2, 10))]


def _forecast(rows: int, past: int) -> dict[str, Any]:
    import torch

    future = 4
    return {
        "encoder_cat": torch.zeros(rows, past, 0, dtype=torch.long), "encoder_cont": normal(rows, past, 2),
        "encoder_target": normal(rows, past), "encoder_lengths": lengths(rows, past, 1),
        "decoder_cat": torch.zeros(rows, future, 0, dtype=torch.long), "decoder_cont": normal(rows, future, 2),
        "decoder_target": normal(rows, future), "decoder_lengths": lengths(rows, future, 1),
        "target_scale": uniform(rows, 2) + 1,
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------
# Text, sequences, quantizers, mixtures.


@zoo(
    "vector_quantize_pytorch.VectorQuantize",
    "vector_quantize_pytorch.vector_quantize_pytorch vector_quantize_pytorch.residual_vq",
    "quantizer",
)
def _() -> Built:
    from vector_quantize_pytorch import VectorQuantize

    model = VectorQuantize(dim=16, codebook_size=32, decay=0.8, commitment_weight=1.0, threshold_ema_dead_code=2)
    return model, lambda: [(normal(*size, 16),) for size in SIZES]


@zoo(
    "vector_quantize_pytorch.ResidualVQ",
    "vector_quantize_pytorch.vector_quantize_pytorch vector_quantize_pytorch.residual_vq",
    "quantizer",
)
def _() -> Built:
    from vector_quantize_pytorch import ResidualVQ

    model = ResidualVQ(dim=16, codebook_size=32, num_quantizers=3, quantize_dropout=True)
    return model, lambda: [(normal(*size, 16),) for size in SIZES]


@zoo("torchcrf.CRF-loss", "torchcrf", "tagging, loss")
def _() -> Built:
    from torchcrf import CRF

    return CRF(5, batch_first=True), lambda: [
        (normal(*size, 5), whole(5, *size), lengths(*size, 2)[:, None] > _count(size[1]))
        for size in ((2, 8), (3, 8), (2, 11))
    ]


@zoo("torchcrf.CRF-decode", "torchcrf", "tagging")
def _() -> Built:
    from torchcrf import CRF

    return method(CRF(5, batch_first=True), "decode"), lambda: [
        (normal(*size, 5), lengths(*size, 2)[:, None] > _count(size[1])) for size in ((2, 8), (3, 8), (2, 11))
    ]


@zoo("sentence_transformers.LSTM", "sentence_transformers", "text embedding")
def _() -> Built:
    import torch
    from sentence_transformers.models import LSTM, Pooling

    model = torch.nn.Sequential(LSTM(16, 8), Pooling(16))

    def call(rows: int, size: int) -> Call:
        sizes = lengths(rows, size, 3)
        mask = (sizes[:, None] > _count(size)).long()
        return ({"token_embeddings": normal(rows, size, 16), "sentence_lengths": sizes, "attention_mask": mask},)

    return model, lambda: [call(*size) for size in SIZES]


@zoo("stanza.PackedLSTM", "stanza.models.common", "tagging")
def _() -> Built:
    bare("stanza", "stanza.models", "stanza.models.common")
    from stanza.models.common.packed_lstm import PackedLSTM

    model = PackedLSTM(8, 8, 1, batch_first=True, bidirectional=True, pad=True)
    return model, lambda: [(normal(*size, 8), lengths(*size, 3)) for size in SIZES]


@zoo("stanza.HighwayLSTM", "stanza.models.common", "tagging")
def _() -> Built:
    bare("stanza", "stanza.models", "stanza.models.common")
    from stanza.models.common.hlstm import HighwayLSTM

    model = HighwayLSTM(8, 8, 2, batch_first=True, bidirectional=True, pad=True)
    return model, lambda: [(normal(*size, 8), lengths(*size, 3)) for size in SIZES]


@zoo("gliner.SpanModel", "gliner.modeling", "entity recognition")
def _() -> Built:
    from gliner.config import GLiNERConfig
    from gliner.modeling.base import UniEncoderSpanModel

    encoder = {
        "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 32, "vocab_size": 60, "max_position_embeddings": 64,
    }  # fmt: skip
    config = GLiNERConfig(
        model_name="none", encoder_config=encoder, hidden_size=16, max_width=3, dropout=0.0, class_token_index=50,
        vocab_size=60, num_rnn_layers=1, span_mode="markerV0", subtoken_pooling="first", has_rnn=True,
    )  # fmt: skip
    model = UniEncoderSpanModel(config, from_pretrained=False)

    def call(rows: int, words: int) -> Call:
        import torch

        classes = 2
        tokens = whole(40, rows, 2 * classes + words) + 1
        tokens[:, 0 : 2 * classes : 2] = 50
        mask = torch.zeros_like(tokens)
        mask[:, 2 * classes :] = torch.arange(words) + 1
        spans = torch.tensor([[i, min(i + j, words - 1)] for i in range(words) for j in range(3)])
        return {
            "input_ids": tokens, "attention_mask": torch.ones_like(tokens), "words_mask": mask,
            "text_lengths": torch.full((rows, 1), words), "span_idx": spans.expand(rows, -1, -1).contiguous(),
            "span_mask": torch.ones(rows, len(spans), dtype=torch.bool),
        }  # fmt: skip

    return model, lambda: [call(*size) for size in ((2, 6), (3, 6), (2, 9))]


@zoo("reformer_pytorch.ReformerLM", "reformer_pytorch", "language model")
def _() -> Built:
    from reformer_pytorch import ReformerLM

    model = ReformerLM(
        20, 16, 2, 64, heads=2, bucket_size=4, n_hashes=2, ff_chunks=1, causal=True, axial_position_emb=False
    )
    return model, lambda: [(whole(20, *size),) for size in ((2, 32), (3, 32), (2, 48))]


@zoo("routing_transformer.RoutingTransformerLM", "routing_transformer", "language model")
def _() -> Built:
    from routing_transformer import RoutingTransformerLM

    model = RoutingTransformerLM(
        num_tokens=20, dim=16, heads=2, depth=2, max_seq_len=64, causal=True, window_size=8, n_local_attn_heads=1
    )
    return model, lambda: [(whole(20, *size),) for size in ((2, 32), (3, 32), (2, 64))]


@zoo("st_moe_pytorch.MoE", "st_moe_pytorch", "mixture of experts")
def _() -> Built:
    from st_moe_pytorch import MoE

    return MoE(dim=16, num_experts=4), lambda: [(normal(*size, 16),) for size in SIZES]


@zoo("mixture_of_experts.MoE", "mixture_of_experts", "mixture of experts")
def _() -> Built:
    from mixture_of_experts import MoE

    return MoE(dim=16, num_experts=4, hidden_dim=16), lambda: [(normal(*size, 16),) for size in SIZES]


@zoo("deepctr_torch.DIN", "deepctr_torch", "recommendation")
def _() -> Built:
    from deepctr_torch.inputs import DenseFeat, SparseFeat, VarLenSparseFeat
    from deepctr_torch.models import DIN

    columns = _clicks(SparseFeat, VarLenSparseFeat, DenseFeat)
    return DIN(columns, ["item"], att_hidden_size=(8,), dnn_hidden_units=(8,), device="cpu"), lambda: [
        (_click(rows),) for rows in (2, 3, 5)
    ]


@zoo("deepctr_torch.DIEN", "deepctr_torch", "recommendation")
def _() -> Built:
    from deepctr_torch.inputs import DenseFeat, SparseFeat, VarLenSparseFeat
    from deepctr_torch.models import DIEN

    columns = _clicks(SparseFeat, VarLenSparseFeat, DenseFeat)
    model = DIEN(columns, ["item"], att_hidden_units=(8,), dnn_hidden_units=(8,), gru_type="AUGRU", device="cpu")
    return model, lambda: [(_click(rows),) for rows in (2, 3, 5)]


def _clicks(sparse: Any, varied: Any, dense: Any) -> list[Any]:
    history = sparse("hist_item", 10, embedding_dim=8, embedding_name="item")
    return [
        sparse("user", 5, embedding_dim=4), sparse("item", 10, embedding_dim=8), dense("score", 1),
        varied(history, 6, length_name="length"),
    ]  # fmt: skip


def _click(rows: int) -> Any:
    import torch

    wide = [
        whole(5, rows, 1),
        whole(9, rows, 1) + 1,
        uniform(rows, 1),
        whole(9, rows, 6) + 1,
        lengths(rows, 6, 1)[:, None],
    ]
    return torch.cat([column.float() for column in wide], 1)


# ---------------------------------------------------------------------------------------------------------------------
# Graphs, geometry, flows, equations, losses, spikes.


def _edges(nodes: int) -> Any:
    import torch

    here = torch.arange(nodes).repeat(3)
    there = torch.cat([(torch.arange(nodes) + step) % nodes for step in (0, 1, 3)])
    return torch.stack([here, there])


GRAPHS: Sequence[tuple[int, int]] = ((2, 8), (3, 8), (2, 11))  # graphs, nodes in each


@zoo("torch_geometric.GAT", "torch_geometric.nn torch_geometric.utils", "graphs")
def _() -> Built:
    from torch_geometric.nn.models import GAT

    return GAT(8, 8, 2, 4, heads=2), lambda: [(normal(k * n, 8), _edges(k * n)) for k, n in GRAPHS]


@zoo("torch_geometric.GCN", "torch_geometric.nn torch_geometric.utils", "graphs")
def _() -> Built:
    from torch_geometric.nn.models import GCN

    return GCN(8, 8, 2, 4), lambda: [(normal(k * n, 8), _edges(k * n)) for k, n in GRAPHS]


@zoo("torch_geometric.GraphUNet", "torch_geometric.nn torch_geometric.utils", "graphs")
def _() -> Built:
    from torch_geometric.nn.models import GraphUNet

    return GraphUNet(8, 8, 4, depth=2), lambda: [(normal(k * n, 8), _edges(k * n)) for k, n in GRAPHS]


@zoo("torch_geometric.Set2Set", "torch_geometric.nn torch_geometric.utils", "graphs")
def _() -> Built:
    import torch
    from torch_geometric.nn import Set2Set

    return Set2Set(8, 2), lambda: [(normal(k * n, 8), torch.arange(k).repeat_interleave(n)) for k, n in GRAPHS]


@zoo("torch_geometric.SAGPooling", "torch_geometric.nn torch_geometric.utils", "graphs")
def _() -> Built:
    import torch
    from torch_geometric.nn import SAGPooling

    def call(k: int, n: int) -> Call:
        return (normal(k * n, 8), _edges(k * n)), {"batch": torch.arange(k).repeat_interleave(n)}

    return SAGPooling(8), lambda: [call(*size) for size in GRAPHS]


@zoo("egnn_pytorch.EGNN_Network", "egnn_pytorch", "molecules")
def _() -> Built:
    import torch
    from egnn_pytorch import EGNN_Network

    model = EGNN_Network(num_tokens=10, dim=8, depth=2, only_sparse_neighbors=True, num_positions=32)

    def call(rows: int, size: int) -> Call:
        near = (torch.arange(size)[:, None] - torch.arange(size)).abs() <= 1
        return (whole(10, rows, size), normal(rows, size, 3)), {"adj_mat": near}

    return model, lambda: [call(*size) for size in SIZES]


@zoo("nflows.CouplingSpline", "nflows.transforms nflows.distributions nflows.flows", "normalizing flow")
def _() -> Built:
    import torch
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.nn.nets import ResidualNet
    from nflows.transforms import PiecewiseRationalQuadraticCouplingTransform

    def net(inputs: int, outputs: int) -> Any:
        return ResidualNet(inputs, outputs, hidden_features=8, num_blocks=1)

    transform = PiecewiseRationalQuadraticCouplingTransform(
        torch.tensor([1, 0, 1, 0]), net, num_bins=4, tails="linear", tail_bound=1.5
    )
    return method(Flow(transform, StandardNormal([4])), "log_prob"), lambda: [(normal(rows, 4),) for rows in (6, 9, 14)]


@zoo("nflows.MaskedAutoregressiveFlow", "nflows.transforms nflows.distributions nflows.flows", "normalizing flow")
def _() -> Built:
    from nflows.flows import MaskedAutoregressiveFlow

    model = MaskedAutoregressiveFlow(4, 8, 2, 1, batch_norm_within_layers=False)
    return method(model, "log_prob"), lambda: [(normal(rows, 4),) for rows in (6, 9, 14)]


@zoo("normflows.NeuralSplineFlow", "normflows.flows normflows.utils normflows.nets", "normalizing flow")
def _() -> Built:
    import normflows

    flows = [normflows.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8), normflows.flows.LULinearPermute(2)]
    model = normflows.NormalizingFlow(normflows.distributions.DiagGaussian(2, trainable=False), flows)
    return method(model, "log_prob"), lambda: [(normal(rows, 2) * 2,) for rows in (6, 9, 14)]


@zoo("zuko.NSF", "zuko", "normalizing flow")
def _() -> Built:
    import torch
    import zuko

    flow = zuko.flows.NSF(3, 2, transforms=1, hidden_features=(8,))

    class Density(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flow = flow

        def forward(self, x: Any, context: Any) -> Any:
            return self.flow(context).log_prob(x)

    return Density(), lambda: [(normal(rows, 3), normal(rows, 2)) for rows in (6, 9, 14)]


@zoo("torchdyn.NeuralODE", "torchdyn torchdiffeq", "differential equation")
def _() -> Built:
    import torch
    from torchdyn.core import NeuralODE

    field = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
    model = NeuralODE(field, solver="rk4", sensitivity="autograd")
    return model, lambda: [(normal(rows, 4), torch.linspace(0, 1, steps)) for rows, steps in ((4, 5), (6, 5), (4, 7))]


@zoo("torchdiffeq.odeint", "torchdiffeq", "differential equation")
def _() -> Built:
    import torch
    import torchdiffeq

    class Flow(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.field = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))

        def forward(self, start: Any, times: Any) -> Any:
            return torchdiffeq.odeint(lambda t, y: self.field(y), start, times, method="rk4")

    return Flow(), lambda: [(normal(rows, 4), torch.linspace(0, 1, steps)) for rows, steps in ((4, 5), (6, 5), (4, 7))]


@zoo("pytorch_metric_learning.TripletMarginLoss", "pytorch_metric_learning", "loss")
def _() -> Built:
    from pytorch_metric_learning.losses import TripletMarginLoss

    return TripletMarginLoss(), lambda: [(normal(rows, 8), whole(3, rows)) for rows in (8, 12, 15)]


@zoo("pytorch_metric_learning.MultiSimilarityLoss", "pytorch_metric_learning", "loss")
def _() -> Built:
    from pytorch_metric_learning.losses import MultiSimilarityLoss

    return MultiSimilarityLoss(), lambda: [(normal(rows, 8), whole(3, rows)) for rows in (8, 12, 15)]


@zoo("pytorch_metric_learning.NTXentLoss", "pytorch_metric_learning", "loss")
def _() -> Built:
    from pytorch_metric_learning.losses import NTXentLoss

    return NTXentLoss(), lambda: [(normal(rows, 8), whole(3, rows)) for rows in (8, 12, 15)]


@zoo("lightly.NTXentLoss", "lightly", "loss")
def _() -> Built:
    bare("lightly")
    from lightly.loss.ntx_ent_loss import NTXentLoss

    return NTXentLoss(memory_bank_size=(16, 8)), lambda: [(normal(rows, 8), normal(rows, 8)) for rows in (4, 6, 8)]


@zoo("entmax.Entmax15", "entmax", "activation")
def _() -> Built:
    from entmax import Entmax15

    return Entmax15(dim=-1, k=4), lambda: [(normal(*size) * 2,) for size in SIZES]


@zoo("snntorch.Leaky", "snntorch._neurons", "spiking network")
def _() -> Built:
    import snntorch
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(8, 8), snntorch.Leaky(0.9, init_hidden=True, output=True))
    return model, lambda: [(normal(rows, 8),) for rows in (2, 3, 5)]


@zoo("ncps.CfC", "ncps", "recurrent network")
def _() -> Built:
    from ncps.torch import CfC

    return CfC(8, 8, mixed_memory=True), lambda: [(normal(*size, 8),) for size in ((2, 6), (3, 6), (2, 8))]


@zoo(
    "torchmetrics.MulticlassF1Score",
    "torchmetrics.classification torchmetrics.functional.classification torchmetrics.utilities",
    "metric",
)
def _() -> Built:
    from torchmetrics.classification import MulticlassF1Score

    return MulticlassF1Score(4), lambda: [(normal(rows, 4), whole(4, rows)) for rows in (8, 12, 15)]


@zoo("kan.KAN", "kan", "spline network")
def _() -> Built:
    from kan import KAN

    model = KAN(width=[3, 3, 1], grid=3, k=3, seed=0, device="cpu", auto_save=False, symbolic_enabled=False)
    return model, lambda: [(normal(rows, 3),) for rows in (6, 9, 14)]


@zoo(
    "gpytorch.ExactGP",
    "gpytorch.models gpytorch.distributions gpytorch.kernels gpytorch.utils"
    " linear_operator.operators linear_operator.utils",
    "Gaussian process",
)
def _() -> Built:
    import gpytorch
    import torch

    points = torch.linspace(0, 1, 12)

    class Process(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(points, torch.sin(points * 6), gpytorch.likelihoods.GaussianLikelihood())
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    class Mean(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.process = Process()

        def forward(self, x: Any) -> Any:
            found = self.process(x)
            return found.mean, found.variance

    return Mean(), lambda: [(torch.linspace(0, 1.2, size),) for size in (5, 7, 10)]


# ---------------------------------------------------------------------------------------------------------------------
# Clean: nothing of these breaks, and nothing may become worse.


@zoo("diffusers.FluxTransformer2DModel", "diffusers.models.transformers", "diffusion", clean=True)
def _() -> Built:
    import torch
    from diffusers import FluxTransformer2DModel

    model = FluxTransformer2DModel(
        patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=[4, 4, 8],
    )  # fmt: skip

    def call(rows: int, size: int, words: int) -> Call:
        return {
            "hidden_states": normal(rows, size, 4), "encoder_hidden_states": normal(rows, words, 32),
            "pooled_projections": normal(rows, 32), "timestep": torch.full((rows,), 0.5), "img_ids": uniform(size, 3),
            "txt_ids": uniform(words, 3),
        }  # fmt: skip

    return model, lambda: [call(*size) for size in ((2, 16, 7), (3, 16, 7), (2, 25, 9))]


@zoo("x_transformers.TransformerWrapper", "x_transformers", "language model", clean=True)
def _() -> Built:
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, rotary_pos_emb=True, attn_flash=True)
    model = TransformerWrapper(num_tokens=60, max_seq_len=64, attn_layers=layers)
    return model, lambda: [(whole(60, *size),) for size in SIZES]


@zoo("segmentation_models_pytorch.Unet", "segmentation_models_pytorch", "segmentation", clean=True)
def _() -> Built:
    import segmentation_models_pytorch

    model = segmentation_models_pytorch.Unet("resnet18", encoder_weights=None, classes=2)
    return model, lambda: [(uniform(rows, 3, size, size),) for rows, size in ((1, 32), (2, 32), (1, 64))]


@zoo("timm.VisionTransformer", "timm.models.vision_transformer timm.layers", "classification", clean=True)
def _() -> Built:
    from timm.models import VisionTransformer

    model = VisionTransformer(
        img_size=32, patch_size=8, num_classes=5, embed_dim=16, depth=2, num_heads=2, dynamic_img_size=True
    )
    return model, lambda: [(uniform(rows, 3, size, size),) for rows, size in ((1, 32), (2, 32), (1, 48))]


@zoo("mambapy.Mamba", "mambapy", "sequence model", clean=True)
def _() -> Built:
    from mambapy.mamba import Mamba, MambaConfig

    return Mamba(MambaConfig(d_model=16, n_layers=1, pscan=False)), lambda: [
        (normal(*size, 16),) for size in ((2, 8), (3, 8), (2, 12))
    ]
