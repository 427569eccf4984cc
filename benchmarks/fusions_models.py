"""Which operators real models write out by hand, and what it changes to have them fused: the support matrix.

    python benchmarks/fusions_models.py --document docs/results/fusions.md --sources FOLDER
    python benchmarks/fusions_models.py llama t5            some models, printed

Wants transformers, diffusers, toto-ts and timesfm beside the tool and torch (`pip install --no-deps toto-ts timesfm`).
FOLDER holds checkouts: ``nanoVLM`` (huggingface/nanoVLM) and ``sd-scripts`` (kohya-ss/sd-scripts). Models are small, of
random weights; each runs in a process of its own, on one thread. The files of the classes that a model is made of are
patched with the rules FC801 to FC807, unsafe fixes among them; the model then runs with its own classes and, in a copy
with the same weights, with those of the patched files.
"""

from __future__ import annotations

import argparse
import collections
import copy
import importlib
import json
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "cases")]
RULES = {
    "FC801": "layer norm", "FC802": "GELU", "FC803": "SiLU", "FC804": "RMS norm", "FC805": "attention",
    "FC806": "modulation", "FC807": "rotary",
}  # fmt: skip
TURNS = 9
SECONDS = 900

Built = tuple[Any, Callable[[Any], dict[str, Any]]]


def _text(package: str, config: str, model: str, **sizes: Any) -> Built:
    import torch
    import transformers

    small = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 4}
    small |= {"num_key_value_heads": 2, "vocab_size": 512, "attn_implementation": "eager", **sizes}
    made = getattr(transformers, model)(getattr(transformers, config)(**small))
    return made, lambda dtype: {"input_ids": torch.randint(0, 512, (4, 64)), "use_cache": False}


def _t5() -> Built:
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(d_model=256, d_ff=512, num_layers=2, num_heads=4, d_kv=64, vocab_size=512)
    ids = {"input_ids": (4, 64), "decoder_input_ids": (4, 16)}
    return T5ForConditionalGeneration(config), lambda dtype: {n: torch.randint(0, 512, s) for n, s in ids.items()}


def _vit() -> Built:
    import torch
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4, image_size=64
    )
    config._attn_implementation = "eager"
    return ViTModel(config), lambda dtype: {"pixel_values": torch.randn(4, 3, 64, 64, dtype=dtype)}


def _flux() -> Built:
    import torch
    from diffusers import FluxTransformer2DModel

    made = FluxTransformer2DModel(
        in_channels=16, num_layers=2, num_single_layers=2, attention_head_dim=64, num_attention_heads=4,
        joint_attention_dim=64, pooled_projection_dim=64, axes_dims_rope=(16, 24, 24),
    )  # fmt: skip
    return made, lambda dtype: {
        "hidden_states": torch.randn(2, 64, 16, dtype=dtype),
        "encoder_hidden_states": torch.randn(2, 16, 64, dtype=dtype),
        "pooled_projections": torch.randn(2, 64, dtype=dtype),
        "timestep": torch.full((2,), 0.5, dtype=dtype),
        "img_ids": torch.arange(64.0)[:, None].repeat(1, 3),
        "txt_ids": torch.zeros(16, 3),
        "return_dict": False,
    }


def _sd3() -> Built:
    import torch
    from diffusers import SD3Transformer2DModel

    made = SD3Transformer2DModel(
        sample_size=16, patch_size=2, in_channels=4, num_layers=3, attention_head_dim=32, num_attention_heads=4,
        joint_attention_dim=64, caption_projection_dim=128, pooled_projection_dim=64, out_channels=4,
        qk_norm="rms_norm",
    )  # fmt: skip
    return made, lambda dtype: {
        "hidden_states": torch.randn(2, 4, 16, 16, dtype=dtype),
        "encoder_hidden_states": torch.randn(2, 16, 64, dtype=dtype),
        "pooled_projections": torch.randn(2, 64, dtype=dtype),
        "timestep": torch.full((2,), 500, dtype=dtype),
        "return_dict": False,
    }


def _wan() -> Built:
    import torch
    from diffusers import WanTransformer3DModel

    made = WanTransformer3DModel(
        num_attention_heads=4, attention_head_dim=32, in_channels=4, out_channels=4, text_dim=64, freq_dim=32,
        ffn_dim=256, num_layers=3,
    )  # fmt: skip
    return made, lambda dtype: {
        "hidden_states": torch.randn(1, 4, 3, 16, 16, dtype=dtype),
        "encoder_hidden_states": torch.randn(1, 16, 64, dtype=dtype),
        "timestep": torch.full((1,), 500),
        "return_dict": False,
    }


def _ltx() -> Built:
    import torch
    from diffusers import LTXVideoTransformer3DModel

    made = LTXVideoTransformer3DModel(
        in_channels=16, out_channels=16, num_attention_heads=4, attention_head_dim=32, cross_attention_dim=128,
        num_layers=3, caption_channels=64,
    )  # fmt: skip
    return made, lambda dtype: {
        "hidden_states": torch.randn(1, 96, 16, dtype=dtype),
        "encoder_hidden_states": torch.randn(1, 16, 64, dtype=dtype),
        "timestep": torch.full((1,), 500, dtype=dtype),
        "encoder_attention_mask": torch.ones(1, 16),
        "num_frames": 6,
        "height": 4,
        "width": 4,
        "return_dict": False,
    }


def _sdxl() -> Built:
    import torch
    from diffusers import UNet2DConditionModel

    made = UNet2DConditionModel(
        sample_size=16, block_out_channels=(32, 64), layers_per_block=1, cross_attention_dim=64,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=(2, 4), use_linear_projection=True,
    )  # fmt: skip
    return made, lambda dtype: {
        "sample": torch.randn(2, 4, 16, 16, dtype=dtype),
        "timestep": torch.tensor(500),
        "encoder_hidden_states": torch.randn(2, 16, 64, dtype=dtype),
        "return_dict": False,
    }


def _nanovlm() -> Built:
    import _nanovlm
    import torch

    class Flat(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = _nanovlm.model()

        def forward(self, ids: Any, images: Any) -> Any:
            return self.model(ids, images)[0]

    ids, images = _nanovlm.words_and_images(2, 48)
    return Flat(), lambda dtype: {"ids": ids, "images": images.to(dtype)}


def _toto() -> Built:
    import torch
    from toto.model.transformer import Transformer

    made = Transformer(
        num_layers=4, embed_dim=256, num_heads=4, mlp_hidden_dim=512, dropout=0.1, spacewise_every_n_layers=2,
        spacewise_first=False, use_memory_efficient_attention=False,
    )  # fmt: skip
    return made, lambda dtype: {
        "inputs": torch.randn(2, 3, 16, 256, dtype=dtype),
        "id_mask": torch.zeros(2, 3, 16),
    }


def _timesfm() -> Built:
    import torch
    from timesfm.configs import StackedTransformersConfig, TransformerConfig
    from timesfm.torch.transformer import Transformer

    config = TransformerConfig(
        model_dims=256, hidden_dims=256, num_heads=4, attention_norm="rms", feedforward_norm="rms", qk_norm="rms",
        use_bias=False, use_rotary_position_embeddings=True, ff_activation="swish", fuse_qkv=True,
    )  # fmt: skip
    del StackedTransformersConfig
    return Transformer(config), lambda dtype: {
        "input_embeddings": torch.randn(4, 64, 256, dtype=dtype),
        "patch_mask": torch.zeros(4, 64, dtype=torch.bool),
    }


def _sd_flux() -> Built:
    import torch

    utils = types.ModuleType("library.utils")  # the file's neighbour wants OpenCV, for what no model calls
    utils.__dict__.update(setup_logging=lambda: None)
    sys.modules["library.utils"] = utils
    importlib.import_module("library").__dict__["utils"] = utils
    from library.flux_models import Flux, FluxParams

    made = Flux(
        FluxParams(
            in_channels=16, vec_in_dim=64, context_in_dim=64, hidden_size=256, mlp_ratio=4.0, num_heads=4, depth=2,
            depth_single_blocks=2, axes_dim=[16, 24, 24], theta=10_000, qkv_bias=True, guidance_embed=False,
        )
    )  # fmt: skip
    return made, lambda dtype: {
        "img": torch.randn(2, 64, 16, dtype=dtype),
        "img_ids": torch.zeros(2, 64, 3),
        "txt": torch.randn(2, 16, 64, dtype=dtype),
        "txt_ids": torch.zeros(2, 16, 3),
        "timesteps": torch.full((2,), 0.5),
        "y": torch.randn(2, 64, dtype=dtype),
    }


MODELS: dict[str, Callable[[], Built]] = {
    "Llama": lambda: _text("llama", "LlamaConfig", "LlamaForCausalLM"),
    "Gemma": lambda: _text("gemma", "GemmaConfig", "GemmaForCausalLM", head_dim=64),
    "Qwen3": lambda: _text("qwen3", "Qwen3Config", "Qwen3ForCausalLM", head_dim=64),
    "T5": _t5,
    "GPT-2": lambda: _text("gpt2", "GPT2Config", "GPT2LMHeadModel", n_embd=256, n_layer=4, n_head=4),
    "ViT": _vit,
    "FLUX": _flux,
    "SD3": _sd3,
    "Wan": _wan,
    "LTX": _ltx,
    "SDXL UNet": _sdxl,
    "nanoVLM": _nanovlm,
    "Toto": _toto,
    "timesfm": _timesfm,
    "sd-scripts FLUX": _sd_flux,
}
_OF_TORCH = ("torch", "__main__", "builtins", "fusions_models")


# --- in the process of one model -----------------------------------------------------------------------------------


def measure(name: str) -> dict[str, Any]:
    """All there is to say of one model, as plain data."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    with torch.no_grad():  # weights as they are made are ones and small numbers: nothing would show
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.02)
    model.eval()
    modules = sorted({type(m).__module__ for m in model.modules()})
    modules = [m for m in modules if m.partition(".")[0] not in _OF_TORCH]
    files = {m: Path(str(sys.modules[m].__file__)) for m in modules}
    found, texts = _patched(files)
    told: dict[str, Any] = {"found": found, "files": len(files)}
    fused = _swapped(_copied(name, model), {m: texts[f] for m, f in files.items() if f in texts})
    for dtype in ("float32", "bfloat16"):
        told[dtype] = _compared(name, model, fused, inputs, getattr(torch, dtype))
    return told


def _patched(files: dict[str, Path]) -> tuple[dict[str, Any], dict[Path, str]]:
    """What the rules find in the files, by rule and what came of it, and the texts that changed."""
    from patcher.patching.runner import run
    from patcher.settings import Settings
    from rules import load_rules

    settings = Settings(select=("FC8",), unsafe=True)
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    texts: dict[Path, str] = {}
    for result in run(sorted({str(f) for f in files.values()}), load_rules(), settings, jobs=1):
        assert not result.error, result.error
        if result.patch is None:  # none of the rules has anything to look for there
            continue
        assert not result.patch.bugs, result.patch.bugs
        for reported in result.patch.fixed:
            counts[reported.code][reported.applicability] += 1
        for reported in result.patch.remaining:
            counts[reported.code][f"refused: {reported.assumption}"] += 1
        if result.changed:
            texts[Path(result.path)] = result.patch.text
    return {code: dict(by) for code, by in sorted(counts.items())}, texts


def _swapped(model: Any, texts: dict[str, str]) -> Any:
    """``model`` with the classes of the patched modules; functions that they name are those of the patched ones."""
    folder = Path(tempfile.mkdtemp(prefix="fused-"))
    fresh: dict[str, types.ModuleType] = {}
    for name, text in texts.items():
        file = folder / f"{name.replace('.', '_')}_fused.py"
        file.write_text(text, encoding="utf-8")
        old = sys.modules[name]
        new = types.ModuleType(f"{name}_fused")
        new.__dict__.update(__file__=str(file), __package__=old.__package__)
        sys.modules[new.__name__] = new
        exec(compile(text, str(file), "exec"), new.__dict__)
        fresh[name] = new
    for module in model.modules():
        new = fresh.get(type(module).__module__)
        if new is not None and hasattr(new, type(module).__qualname__):
            module.__class__ = getattr(new, type(module).__qualname__)
    return model


def _copied(name: str, model: Any) -> Any:
    """The same model again; toto's has attributes that no copy takes, and is made anew with the same weights."""
    try:
        return copy.deepcopy(model)
    except TypeError:
        made = MODELS[name]()[0].eval()
        made.load_state_dict(model.state_dict())
        for new, old in zip(made.modules(), model.modules(), strict=True):
            new.__class__ = type(old)
        return made


def _compared(name: str, model: Any, fused: Any, inputs: Any, dtype: Any) -> dict[str, Any]:
    import torch
    from torch._dynamo.utils import counters
    from torch._inductor import metrics

    torch.manual_seed(1)
    given = inputs(dtype)
    with torch.no_grad():
        exact = _first(_run(_copied(name, model).double(), _cast(given, torch.float64)))
    pair = [_copied(name, m).to(dtype) for m in (model, fused)]
    told: dict[str, Any] = {}
    if dtype == torch.bfloat16 and not _runs(pair[0], given):  # it mixes dtypes, and is meant for autocast
        told["autocast"] = True
        given = _cast(given, torch.float32)
        pair = [_autocast(_copied(name, m)) for m in (model, fused)]
    outputs = []
    for word, one in zip(("before", "after"), pair, strict=True):
        with torch.no_grad():
            out = _first(_run(one, given))
            outputs.append(out)
            told[f"off float64 {word}"] = _mean(out, exact)
            if str(dtype) == "torch.bfloat16":
                torch._dynamo.reset()
                counters["inductor"].clear()
                metrics.reset()
                compiled = torch.compile(one)
                told[f"eager to compiled {word}"] = _mean(out, _first(_run(compiled, given)))
                told[f"kernels {word}"] = metrics.generated_kernel_count
                told[f"attention by inductor {word}"] = counters["inductor"]["fuse_attention"]
    told["changed"] = _mean(*outputs)
    told["same dtype"] = outputs[0].dtype == outputs[1].dtype
    with torch.no_grad():
        told["forward"] = _ratio([lambda m=m: _run(m, given) for m in pair])  # type: ignore[misc]
    told["forward and backward"] = _ratio([lambda m=m: _first(_run(m, given)).sum().backward() for m in pair])  # type: ignore[misc]
    return told


def _autocast(model: Any) -> Callable[..., Any]:
    """The model, each of its calls under autocast."""
    import torch

    def call(**given: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return model(**given)

    return call


def _runs(model: Any, given: Any) -> bool:
    import torch

    try:
        with torch.no_grad():
            _run(model, given)
    except RuntimeError:
        return False
    return True


def _cast(given: Any, dtype: Any) -> Any:
    return {
        n: v.to(dtype) if hasattr(v, "is_floating_point") and v.is_floating_point() else v for n, v in given.items()
    }


def _run(model: Any, given: dict[str, Any]) -> Any:
    return model(**given)


def _first(out: Any) -> Any:
    if hasattr(out, "shape"):
        return out
    return _first(next(iter(out.values())) if isinstance(out, dict) else out[0])


def _mean(a: Any, b: Any) -> float:
    return float(f"{(a.double() - b.double()).abs().mean().item():.2g}")


def _ratio(runs: list[Callable[[], Any]]) -> float:
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(TURNS):
        for run, seconds in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
    low = [sorted(seconds)[TURNS // 4] for seconds in times]
    return float(f"{low[0] / low[1]:.2g}")


# --- the document --------------------------------------------------------------------------------------------------


def document(told: dict[str, Any], version: str) -> str:
    """The page, from what the processes have said."""
    ran = {name: t for name, t in told.items() if "error" not in t}
    parts = [
        HEAD.format(version=version),
        "\n".join(_operators(told)),
        CHANGED,
        "\n".join(_numbers(ran)),
        _shrinks(ran),
        REASONS,
    ]
    parts.append("\n".join(_reasons(ran)))
    return "\n\n".join(parts) + "\n"


def _operators(told: dict[str, Any]) -> Iterator[str]:
    yield f"| model | {' | '.join(RULES.values())} |"
    yield "|---" * (len(RULES) + 1) + "|"
    for name, t in told.items():
        if "error" in t:
            yield f"| {name} | not run: {t['error']} |" + " |" * (len(RULES) - 1)
            continue
        yield f"| {name} | {' | '.join(_cell(t['found'].get(code, {})) for code in RULES)} |"


def _cell(by: dict[str, int]) -> str:
    left = sum(n for what, n in by.items() if what.startswith("refused"))
    words = [f"{by[what]} {what}" for what in ("safe", "unsafe") if by.get(what)]
    return ", ".join([*words, *([f"{left} reported"] if left else [])]) or "-"


def _numbers(ran: dict[str, Any]) -> Iterator[str]:
    yield (
        "| model | float32: forward, with backward | bfloat16: forward, with backward | bfloat16, off float64 "
        "| bfloat16, eager to compiled | changed in float32, bfloat16 | kernels of inductor | its own attention |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, t in ran.items():
        f, b = t["float32"], t["bfloat16"]
        if not any("unsafe" in by or "safe" in by for by in t["found"].values()):
            yield (
                f"| {name} | nothing is rewritten | | {b['off float64 before']} | {b['eager to compiled before']} "
                f"| | {_pair(b, 'kernels')} "
                f"| {_pair(b, 'attention by inductor')} |"
            )
            continue
        name = f"{name} (autocast)" if b.get("autocast") else name
        yield (
            f"| {name} | {f['forward']}, {f['forward and backward']} | {b['forward']}, {b['forward and backward']} "
            f"| {b['off float64 before']} to {b['off float64 after']} "
            f"| {b['eager to compiled before']} to {b['eager to compiled after']} "
            f"| {f['changed']}, {b['changed']} | {_pair(b, 'kernels')} | {_pair(b, 'attention by inductor')} |"
        )


def _pair(told: dict[str, Any], what: str) -> str:
    return f"{told[f'{what} before']} to {told[f'{what} after']}" if f"{what} after" in told else "not counted"


def _shrinks(ran: dict[str, Any]) -> str:
    """Where compiled results come closer to eager ones."""
    pairs = {
        n: (t["bfloat16"]["eager to compiled before"], t["bfloat16"]["eager to compiled after"]) for n, t in ran.items()
    }
    words = [
        f"{said} on {len(names)} of {len(pairs)} models ({', '.join(names)})"
        for said, names in (
            ("smaller", [n for n, (a, b) in pairs.items() if b < a]),
            ("larger", [n for n, (a, b) in pairs.items() if b > a]),
        )
        if names
    ]
    return f"With the fixes the difference from eager to compiled is {' and '.join(words)}, and the same on the others."


def _reasons(ran: dict[str, Any]) -> Iterator[str]:
    yield "| rule | model | places | why nothing is rewritten |"
    yield "|---|---|---|---|"
    for code in RULES:
        for name, t in ran.items():
            for what, n in t["found"].get(code, {}).items():
                if what.startswith("refused: "):
                    yield f"| {code} | {name} | {n} | {what.removeprefix('refused: ').replace('|', '&#124;')} |"


HEAD = """# Operators that are written out by hand, in real models

<!-- Written by benchmarks/fusions_models.py; run it again rather than edit. -->

Small models with random weights, torch {version}, one thread of a CPU. A GPU has other kernels,
other times and other last bits: [fusions-gpu.md](fusions-gpu.md).
"unsafe" is rewritten with `--select FC8 --unsafe`, "reported" is not; no fix is safe.
What a function of another file does (transformers' `ACT2FN`, diffusers' `apply_rotary_emb`) counts where a class of the
model stands in that file, and places are counted that a model never comes to: where nothing changed in bfloat16, either
that is so, or the fix is the same to the last bit."""
CHANGED = """## What it changes

Times: before by after, so that more than 1 is faster, the lower quartile of nine turns. Numbers: mean absolute
differences of the first output; "eager to compiled" is what a tolerance of `--test` has to bear in bfloat16. "Kernels"
counts those that inductor generates for the forward pass, before and after: where they are as many, it had fused what
was written out. "Its own attention" is how often its pattern matcher put one in; "not counted" is from a
run before that was noted."""
REASONS = "## What is left alone, and why"


def main() -> None:
    """Measure the models one by one, and print or write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="only these")
    parser.add_argument("--sources", type=Path, help="where the checkouts are")
    parser.add_argument("--document", type=Path, help="write the page there")
    parser.add_argument("--kept", type=Path, help="keep what each model has given there, and take it from there")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sources is not None:
        sys.path[:0] = [str(options.sources.resolve() / name) for name in ("nanoVLM", "sd-scripts")]
    if options.one:
        print("\n" + json.dumps(measure(options.one)))
        return
    wanted = [m for m in MODELS if not options.models or m.lower() in {w.lower() for w in options.models}]
    told = json.loads(options.kept.read_text()) if options.kept is not None and options.kept.exists() else {}
    for name in wanted:
        if name not in told or options.models:
            told[name] = _in_a_process(name, options.sources)
            print(name, json.dumps(told[name], indent=1), flush=True)
            if options.kept is not None:
                options.kept.write_text(json.dumps(told))
    if options.document is not None:
        version = importlib.import_module("torch").__version__
        text = document({m: told[m] for m in MODELS if m in told}, version.partition("+")[0])
        options.document.write_text(text, encoding="utf-8")


def _in_a_process(name: str, sources: Path | None) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", name, *(["--sources", str(sources)] if sources else [])]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"longer than {SECONDS} seconds"}
    lines = run.stdout.strip().splitlines()
    if run.returncode or not lines:
        sys.stderr.write(run.stderr[-3000:])
        return {"error": (run.stderr.strip().splitlines() or ["it says nothing"])[-1][:200].replace("|", "/")}
    return dict(json.loads(lines[-1]))


if __name__ == "__main__":
    main()
