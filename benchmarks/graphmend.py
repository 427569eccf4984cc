"""The models of GraphMend's table that transformers 4.52.4 holds: their breaks before and after a run of this tool.

    pip install torch==2.13.0 transformers==4.52.4 tokenizers==0.21.4 numpy==2.4.6     # in an environment of its own
    cp -r .../site-packages/transformers original/ ; cp -r original safe ; cp -r original unsafe
    fix-compile --no-backup safe/transformers ; fix-compile --unsafe --no-backup unsafe/transformers
    ENVIRONMENT/bin/python benchmarks/graphmend.py --original original [--patched safe] [--unsafe unsafe]
        [--rows 'NAME;NAME'] [--out FILE] [--sites] [--into DOCUMENT] [--findings FILE]

Each folder holds ``transformers/``; the interpreter has to have what that imports. ``--out`` gets one JSON line for
each row and tree, standard output a Markdown table, ``--sites`` adds each break of the original with its source line.

Published figures: GraphMend (arXiv:2509.16248), table 2, as its artifact (CGO_AE_GraphMend) counts it: small models
with random weights, one call of ``forward`` in eval mode without gradients, breaks = graphs - 1 of that call. The
models here are our own small ones of the same classes; what decides the count is kept: no attention mask unless one
is named, a Longformer input that is no multiple of the window, LongRoPE scaling, no visual embedding in LayoutLMv3, a
Swin backbone of transformers' own. BART in fp16 is given a mask and one decoder token, as in the paper.

A row is measured in a process of its own for each tree, with the same seeds:

- the first call of a new model, compiled with Dynamo's "eager" backend: graphs and Dynamo's log records of breaks;
- all calls of the row (other sizes, masks, values that overflow) in one compile: recompiles;
- all calls in eager mode, with gradients: the outputs of the patched tree have to be those of the original bit for bit,
  compiled outputs those of the same tree's eager mode.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remains import findings_of, place, said
from tables import put, table

ROOT = Path(__file__).resolve().parent.parent
SEED = 20
VOCABULARY = 96
SECONDS = 600  # for one row of one tree

Json = dict[str, Any]
Calls = list[dict[str, Any]]


# ---------------------------------------------------------------------------------------------------------------------
# The rows. A builder gives a model and its calls; the first call is the one whose breaks are counted.


@dataclass(frozen=True)
class Row:
    """A line of the table. ``published``: GraphMend's breaks before and after; none for a row that is only ours."""

    build: Callable[[], tuple[Any, Calls]]
    published: tuple[int, int] | None
    half: bool = False


def tokens(batch: int, length: int, low: int = 3) -> Any:
    import torch

    return torch.randint(low, VOCABULARY, (batch, length))


def padded(batch: int, length: int, padding: int) -> Any:
    """An attention mask whose last row ends early."""
    import torch

    mask = torch.ones(batch, length, dtype=torch.long)
    mask[-1, length - padding :] = 0
    return mask


def pairs() -> Calls:
    """Calls of a model with an encoder and a decoder."""
    first = {"input_ids": tokens(1, 9), "decoder_input_ids": tokens(1, 7)}
    other = {"input_ids": tokens(3, 12), "decoder_input_ids": tokens(3, 5), "attention_mask": padded(3, 12, 4)}
    return [first, other]


def stacks(heads: int = 2) -> dict[str, int]:
    """The sizes of an encoder and a decoder, in the words of BART's family."""
    sides = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in
             {"layers": 2, "attention_heads": heads, "ffn_dim": 48}.items()}  # fmt: skip
    return {"vocab_size": VOCABULARY, "d_model": 32, "max_position_embeddings": 40, **sides}


def t5() -> tuple[Any, Calls]:
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2}
    return T5ForConditionalGeneration(T5Config(vocab_size=VOCABULARY, **sizes)), pairs()


def whisper() -> tuple[Any, Calls]:
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    sizes = {key: value for key, value in stacks().items() if key != "max_position_embeddings"}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = WhisperConfig(num_mel_bins=16, max_source_positions=30, max_target_positions=40, **special, **sizes)
    calls = [{"input_features": torch.randn(n, 16, 60), "decoder_input_ids": tokens(n, m)} for n, m in ((1, 7), (3, 4))]
    return WhisperForConditionalGeneration(config), calls


def bart() -> tuple[Any, Calls]:
    from transformers import BartConfig, BartForConditionalGeneration

    return BartForConditionalGeneration(BartConfig(**stacks())), pairs()


def bart_half() -> tuple[Any, Calls]:
    model, _ = bart()
    first = {"input_ids": tokens(2, 9), "attention_mask": padded(2, 9, 3), "decoder_input_ids": tokens(2, 1)}
    model.model.encoder.layers[0].final_layer_norm.weight.data[:4] *= 2.5e4  # the third call overflows
    calm = {"input_ids": tokens(1, 2), "decoder_input_ids": tokens(1, 3)}
    return model, [first, calm, {"input_ids": tokens(3, 5), "decoder_input_ids": tokens(3, 4)}]


def marian() -> tuple[Any, Calls]:
    from transformers import MarianConfig, MarianMTModel

    return MarianMTModel(MarianConfig(pad_token_id=1, decoder_start_token_id=2, **stacks())), pairs()


def blenderbot() -> tuple[Any, Calls]:
    from transformers import BlenderbotConfig, BlenderbotForConditionalGeneration

    return BlenderbotForConditionalGeneration(BlenderbotConfig(**stacks())), pairs()


def pegasus() -> tuple[Any, Calls]:
    from transformers import PegasusConfig, PegasusForCausalLM

    return PegasusForCausalLM(PegasusConfig(**stacks())), [{"input_ids": tokens(1, 9)}, {"input_ids": tokens(3, 5)}]


def biogpt() -> tuple[Any, Calls]:
    from transformers import BioGptConfig, BioGptForCausalLM

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    model = BioGptForCausalLM(BioGptConfig(vocab_size=VOCABULARY, max_position_embeddings=40, **sizes))
    return model, [{"input_ids": tokens(1, 9)}, {"input_ids": tokens(3, 5), "attention_mask": padded(3, 5, 2)}]


def encoder_sizes() -> dict[str, int]:
    """The sizes of an encoder, in the words of BERT's family."""
    layers = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    return {"vocab_size": VOCABULARY, "max_position_embeddings": 80, **layers}


def layoutlmv3() -> tuple[Any, Calls]:
    import torch
    from transformers import LayoutLMv3Config, LayoutLMv3Model

    boxes = {"coordinate_size": 4, "shape_size": 8, "input_size": 32, "patch_size": 16}
    model = LayoutLMv3Model(LayoutLMv3Config(visual_embed=False, **boxes, **encoder_sizes()))
    corners = [torch.randint(0, 400, (n, length, 4)).cumsum(-1).clamp(max=1000) for n, length in ((1, 9), (3, 5))]
    return model, [{"input_ids": tokens(*corner.shape[:2]), "bbox": corner} for corner in corners]


def phi(length: int) -> Callable[[], tuple[Any, Calls]]:
    """LongRoPE: up to 16 positions use the short factors, more the long ones; the second call changes sides."""

    def build() -> tuple[Any, Calls]:
        from transformers import Phi3Config, Phi3ForCausalLM

        heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 48}
        scaling = {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0 + k / 4 for k in range(8)]}
        positions = {"max_position_embeddings": 64, "original_max_position_embeddings": 16, "rope_scaling": scaling}
        model = Phi3ForCausalLM(Phi3Config(vocab_size=VOCABULARY, hidden_size=32, pad_token_id=0, **heads, **positions))
        return model, [{"input_ids": tokens(batch, n)} for batch, n in ((1, length), (2, 32 - length), (1, length))]

    return build


def longformer() -> tuple[Any, Calls]:
    import torch
    from transformers import LongformerConfig, LongformerModel

    config = LongformerConfig(attention_window=8, pad_token_id=1, **encoder_sizes())
    attended = torch.zeros(2, 24, dtype=torch.long)
    attended[:, 0] = 1
    attended[1, 5] = 1
    calls = [{"input_ids": tokens(1, 21)}, {"input_ids": tokens(3, 24), "attention_mask": padded(3, 24, 5)}]
    calls.append({"input_ids": tokens(2, 24), "global_attention_mask": attended})  # Dynamo 2.13 fails on the original
    return LongformerModel(config), calls


def grounding_dino() -> tuple[Any, Calls]:
    import torch
    from transformers import BertConfig, GroundingDinoConfig, GroundingDinoModel, SwinConfig

    image = {"image_size": 32, "patch_size": 4, "window_size": 2, "embed_dim": 16}
    backbone = SwinConfig(depths=[1, 1], num_heads=[1, 1], out_features=["stage1", "stage2"], **image)
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = GroundingDinoConfig(
        backbone_config=backbone,
        text_config=BertConfig(**{**encoder_sizes(), "vocab_size": 1100}),
        use_timm_backbone=False,
        d_model=32,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_queries=4,
        num_feature_levels=2,
        **sizes,
    )
    calls = [
        {"pixel_values": torch.randn(n, 3, 32, 32), "input_ids": tokens(n, length)} for n, length in ((1, 9), (2, 8))
    ]
    calls[1]["input_ids"][:, ::3] = torch.tensor([101, 1012, 102])  # tokens that part the text: it is masked by them
    calls.append({"pixel_values": torch.randn(2, 3, 24, 40), "input_ids": calls[1]["input_ids"][:, :7]})
    return GroundingDinoModel(config), calls


ROWS = {
    "T5": Row(t5, (3, 0)),
    "Whisper": Row(whisper, (3, 0)),
    "BART": Row(bart, (3, 0)),
    "BART, fp16": Row(bart_half, (7, 0), half=True),
    "Marian": Row(marian, (3, 0)),
    "BioGPT": Row(biogpt, (2, 0)),
    "Blenderbot": Row(blenderbot, (3, 0)),
    "Pegasus (causal)": Row(pegasus, (2, 0)),
    "LayoutLMv3": Row(layoutlmv3, (2, 0)),
    "Phi-4-mini, LongRoPE, short input": Row(phi(9), (5, 0)),
    "Phi-4-mini, LongRoPE, long input": Row(phi(23), None),
    "Longformer": Row(longformer, (5, 3)),
    "Grounding DINO": Row(grounding_dino, (16, 7)),
}


NO_MODELS = ("__init__", "configuration_", "tokenization_", "processing_", "image_processing_")
CASES: list[str] = []  # the module that the rows are of, when they are not those above


def use(module: str) -> None:
    """Take the rows from the ``CASES`` of a module: by name, a function that gives a model and its calls."""
    sys.path.append(str(ROOT))
    CASES[:] = [module]
    ROWS.clear()
    ROWS.update({name: Row(build, None) for name, build in importlib.import_module(module).CASES.items()})


# ---------------------------------------------------------------------------------------------------------------------
# One row of one tree, in a process of its own.


def work(tree: Path, name: str, folder: Path, reference: Path | None) -> Json:
    """Measure a row; what its eager calls gave is kept in ``folder``, and compared with what ``reference`` holds."""
    sys.path[:0] = [str(tree), str(ROOT)]
    import torch
    import transformers

    from patcher.harness import leaves
    from patcher.harness.listener import Listener, described, listening
    from patcher.harness.running_case import tensors

    if Path(transformers.__file__).resolve().parent != (tree / "transformers").resolve():
        raise SystemExit(f"transformers was imported from {transformers.__file__}")
    torch.set_num_threads(1)
    row = ROWS[name]

    def made() -> tuple[Any, Calls]:
        torch.manual_seed(SEED)
        model, calls = row.build()
        model = model.eval().half() if row.half else model.eval()
        cast = torch.float16 if row.half else torch.float32
        return model, [{k: v.to(cast) if v.is_floating_point() else v for k, v in call.items()} for call in calls]

    def kept(called: Callable[[], Any]) -> list[tuple[str, Any]]:
        torch.manual_seed(SEED)
        return leaves.on_host(leaves.snapshot(leaves.leaves(called(), "output")))

    def copied(call: dict[str, Any]) -> dict[str, Any]:
        return {key: value.clone() for key, value in call.items()}

    listener = Listener(lambda place: place.replace(f"{tree.resolve()}/", "").replace(f"{tree}/", ""))
    listener.count_graphs()
    told: Json = {"row": name, "torch": torch.__version__, "transformers": transformers.__version__}
    compiled: list[Any] = []
    with listening(listener, verbose=False), torch.no_grad():
        model, calls = made()
        told["weights"] = leaves.digest_all(model.state_dict().items())
        runner = torch.compile(model, backend="eager")
        for number, call in enumerate(calls):
            try:
                compiled.append(kept(lambda call=call: runner(**copied(call))))  # type: ignore[misc]
            except Exception as error:  # a fault of Dynamo's, which the original may have as well
                compiled.append(f"{type(error).__name__} when compiled")
            if number == 0:
                told["first"] = listener.counts()
                told["sites"] = described(listener)["breaks"]
                told["dropped"] = described(listener)["dropped_frames"]
    told["all"] = listener.counts()
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    told["modules"] = sorted(f.removeprefix(f"{tree}/") for f in files if f.startswith(f"{tree}/"))
    torch._dynamo.reset()
    eager, gradients = [], []
    model, calls = made()
    for call in calls:
        eager.append(kept(lambda call=call: model(**copied(call))))  # type: ignore[misc]
    model, calls = made()
    for call in calls:
        torch.manual_seed(SEED)
        model.zero_grad(set_to_none=True)
        outputs = [t for t in tensors(model(**copied(call))) if t.is_floating_point() and t.requires_grad]
        sum(t.float().square().mean() for t in outputs).backward()
        found = [(n, p.grad) for n, p in model.named_parameters() if p.grad is not None]
        gradients.append(leaves.on_host(leaves.snapshot(found)))
    told["compiled"] = [a if isinstance(a, str) else differing(a, b) for a, b in zip(compiled, eager, strict=True)]
    torch.save({"eager": eager, "gradients": gradients}, folder / "kept.pt")
    if reference:
        before = torch.load(reference / "kept.pt", weights_only=False)
        told["outputs"] = [differing(a, b) for a, b in zip(eager, before["eager"], strict=True)]
        told["gradients"] = [differing(a, b) for a, b in zip(gradients, before["gradients"], strict=True)]
    for site in told["sites"]:
        file, _, line = site["where"].rpartition(":")
        lines = (tree / file).read_text(encoding="utf-8").splitlines() if (tree / file).is_file() else []
        site["source"] = lines[int(line) - 1].strip() if line.isdigit() and int(line) <= len(lines) else ""
    return told


def bits(tensor: Any) -> Any:
    import torch

    return tensor.contiguous().reshape(-1).view(torch.uint8)


def differing(ours: list[tuple[str, Any]], theirs: list[tuple[str, Any]]) -> float | str:
    """The largest difference between named leaves, 0.0 when they are the same bit for bit; or what differs."""
    import torch

    if [name for name, _ in ours] != [name for name, _ in theirs]:
        return "other outputs"
    largest = 0.0
    for (name, a), (_, b) in zip(ours, theirs, strict=True):
        if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
            if type(a) is not type(b) or a != b:
                return f"{name}: another value"
        elif a.shape != b.shape or a.dtype != b.dtype:
            return f"{name}: {a.dtype} {tuple(a.shape)}, not {b.dtype} {tuple(b.shape)}"
        elif not torch.equal(bits(a), bits(b)):
            if not torch.equal(a.isnan(), b.isnan()) or not torch.equal(a.isinf(), b.isinf()):
                return f"{name}: NaN or infinity in other places"
            apart = float((a.double() - b.double()).nan_to_num(nan=0.0).abs().max())
            if not apart and not torch.equal(bits(a.nan_to_num(nan=0.0)), bits(b.nan_to_num(nan=0.0))):
                return f"{name}: a zero of the other sign"
            largest = max(largest, apart)
    return largest


def modules(tree: Path) -> list[str]:
    """The files of the package, below its folder, that building all rows imports; configurations left out."""
    sys.path.insert(0, str(tree))
    for row in ROWS.values():
        row.build()
    folder = (tree / "transformers").resolve()
    files = [Path(getattr(module, "__file__", None) or "").resolve() for module in list(sys.modules.values())]
    named = [file for file in files if file.is_relative_to(folder) and not file.name.startswith(NO_MODELS)]
    return sorted(file.relative_to(folder).as_posix() for file in named)


# ---------------------------------------------------------------------------------------------------------------------
# The table.


def measured(tree: Path, name: str, folder: Path, reference: Path | None) -> Json:
    """One row of one tree; a process that fails gives its last line."""
    folder.mkdir(parents=True)
    command = [sys.executable, "-W", "ignore", __file__, "--worker", name]
    command += ["--original", str(tree), "--out", str(folder), *(["--cases", CASES[0]] if CASES else [])]
    command += ["--reference", str(reference)] if reference else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"row": name, "failure": f"more than {SECONDS} s"}
    if done.returncode or not (folder / "told.json").is_file():
        return {"row": name, "failure": (done.stderr.strip().splitlines() or ["no message"])[-1][:300]}
    answer: Json = json.loads((folder / "told.json").read_text())
    return answer


def difference(original: Json, patched: list[Json]) -> str:
    """What the patched trees give, in words; of the compiled outputs, where the original's are other."""
    parts = []
    for name in ("outputs", "gradients", "compiled"):
        known = original.get("compiled", []) if name == "compiled" else []
        found = [d for result in patched for n, d in enumerate(result.get(name, [])) if d not in known[n : n + 1]]
        wrong = [d for d in found if isinstance(d, str)]
        largest = max([d for d in found if not isinstance(d, str)], default=0.0)
        if wrong or largest:
            parts.append(f"{name}: {wrong[0] if wrong else f'{largest:.1e}'}")
    if len({result["weights"] for result in (original, *patched) if "weights" in result}) > 1:
        parts.append("other weights")
    return "; ".join(parts) or "none"


def fell(before: Json, after: Json | None) -> str:
    """Breaks (graphs - 1) of the first call, and Dynamo's break records in brackets."""
    if after is None:
        return "not measured"
    if "failure" in before or "failure" in after:
        return f"failed: {before.get('failure') or after.get('failure')}"
    one, two = before["first"], after["first"]
    return f"{one['graphs'] - 1} -> {two['graphs'] - 1} ({one['breaks']} -> {two['breaks']})"


def overview(rows: dict[str, dict[str, Json]]) -> str:
    lines = []
    for name, trees in rows.items():
        published = ROWS[name].published
        old, safe, unsafe = trees["original"], trees.get("safe"), trees.get("unsafe")
        patched = [t for t in (safe, unsafe) if t]
        again = [str(t["all"]["recompiles"]) for t in (old, *patched) if "all" in t]
        words = "{} -> {}".format(*published) if published else "not published"
        lines.append([name, words, fell(old, safe), fell(old, unsafe), " -> ".join(again), difference(old, patched)])
    head = ["model", "GraphMend", "safe", "--unsafe", "recompiles, all calls", "difference to the original"]
    return table(head, lines)


def summary(rows: dict[str, dict[str, Json]]) -> str:
    """The published rows in two sentences."""
    told = []
    for kind, words in (("safe", "safe fixes"), ("unsafe", "`--unsafe`")):
        both = [(n, ROWS[n].published, t["original"], t[kind]) for n, t in rows.items() if kind in t]
        known = [(n, p, old, new) for n, p, old, new in both if p and "first" in old and "first" in new]
        if not known:
            continue
        before = [old["first"]["graphs"] - 1 for _, _, old, _ in known]
        after = [new["first"]["graphs"] - 1 for _, _, _, new in known]
        more = [n for (n, p, _, _), a in zip(known, after, strict=True) if a > p[1]]
        same = sum(b == p[0] for (_, p, _, _), b in zip(known, before, strict=True))
        told.append(
            f"{len(known)} published rows, {same} of which start from the published number of breaks. With {words}: "
            f"{sum(before)} -> {sum(after)} breaks (GraphMend: {sum(p[0] for _, p, _, _ in known)} -> "
            f"{sum(p[1] for _, p, _, _ in known)}); more than GraphMend leaves: {', '.join(more) or 'none'}."
        )
    return "\n\n".join(told)


def remaining(rows: dict[str, dict[str, Json]], findings: Json) -> str:
    """What still breaks, in the last tree that was measured."""
    lines = []
    for name, trees in rows.items():
        for site in list(trees.values())[-1].get("sites", []):
            where = site["where"]
            lines.append([name, f"`{place(where)}`", f"`{site['source']}`", site["reason"], said(findings, where)])
    return table(["model", "place", "line", "Dynamo's reason", "what the tool says"], lines)


def sites_of(rows: dict[str, dict[str, Json]]) -> str:
    parts = []
    for name, trees in rows.items():
        old = trees["original"]
        parts.append(
            f"\n## {name}: " + (old.get("failure") or "{graphs} graphs, {breaks} break records".format(**old["first"]))
        )
        for site in old.get("sites", []):
            parts.append(f"- {site['count']} x {site['where']}: {site['reason']}\n      {site['source']}")
            parts += [f"      from {frame}" for frame in site.get("stack", [])[-4:]]
    return "\n".join(parts)


def meant(word: str, name: str) -> bool:
    """Whether a word is a row's name, or, when it is nobody's name, how that begins."""
    return name == word if word in ROWS else name.lower().startswith(word.lower())


def read(path: Path) -> dict[str, dict[str, Json]]:
    rows: dict[str, dict[str, Json]] = {}
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        rows.setdefault(line["row"], {})[line["tree"]] = line
    return rows


def measure(given: argparse.Namespace) -> dict[str, dict[str, Json]]:
    wanted = [w.strip() for w in given.rows.split(";") if w.strip()]
    names = list(ROWS) if not wanted else [n for n in ROWS if any(meant(w, n) for w in wanted)]
    part, parts = map(int, given.part.split("/"))
    names = names[part::parts]
    trees = {"original": given.original, "safe": given.patched, "unsafe": given.unsafe}
    rows: dict[str, dict[str, Json]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for number, name in enumerate(names):
            reference: Path | None = None
            rows[name] = {}
            for kind, tree in trees.items():
                if tree is None:
                    continue
                folder = Path(temporary) / f"{number}-{kind}"
                rows[name][kind] = measured(tree.resolve(), name, folder, reference)
                reference = reference or folder
                print(f"{name}, {kind}", file=sys.stderr)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--original", type=Path)
    parser.add_argument("--patched", type=Path)
    parser.add_argument("--unsafe", type=Path)
    parser.add_argument("--rows", default="", help="names of rows, or how they begin, between semicolons")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sites", action="store_true")
    parser.add_argument("--read", type=Path, help="measure nothing: the lines that --out has written")
    parser.add_argument("--findings", type=Path, help="fix-compile --verify-only --format json, of the last tree")
    parser.add_argument("--into", type=Path, help="the document that holds the tables, between comments")
    parser.add_argument("--part", default="0/1", help="1/2: the second half of the rows, 0/2: the first")
    parser.add_argument("--modules", action="store_true", help="print the files of the package that the rows import")
    parser.add_argument("--cases", help="a module whose CASES are measured in the place of the rows, as claims_models")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--reference", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cases:
        use(given.cases)
    if given.worker:
        answer = work(given.original, given.worker, given.out, given.reference)
        (given.out / "told.json").write_text(json.dumps(answer))
        return 0
    if given.modules:
        print("\n".join(modules(given.original)))
        return 0
    rows = read(given.read) if given.read else measure(given)
    if given.out:
        told = [{"tree": kind, **result} for trees in rows.values() for kind, result in trees.items()]
        given.out.write_text("".join(json.dumps(line) + "\n" for line in told), encoding="utf-8")
    put(given.into, "summary", summary(rows))
    put(given.into, "rows", overview(rows))
    put(given.into, "remains", remaining(rows, findings_of(given.findings)))
    if given.sites:
        print(sites_of(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
