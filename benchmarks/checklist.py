"""What a training script is worth after `fix-compile integrate`: source document 000's boxes, each by a command.

    python benchmarks/checklist.py diffusers --work FOLDER --from REPOSITORY [--into docs/results/checklist.md]
    python benchmarks/checklist.py two       the same, two processes (gloo)
    python benchmarks/checklist.py sd        the same, with --from a copy of sd-scripts
    python benchmarks/checklist.py toml      the arguments through a file of sd-scripts' configuration
    python benchmarks/checklist.py help      the arguments that --help of each script lists

Runs with a Python that has what the scripts need: diffusers, accelerate, peft and transformers of today for those of
diffusers, what its requirements ask for with sd-scripts. Copies of the scripts are integrated under FOLDER and run
there, on tiny random models (``checklist_models.py``), as they were and as they are, in each way of ``WAYS``; what was
run once under FOLDER is not run again. No GPU, one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tables import put, table

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = ("--compile_backend", "--compile_mode", "--compile_dynamic", "--compile_fullgraph")
OPTIONS = ("--compile", *OPTIONS, "--compile_cache_size_limit")
#: How a script is run: the name, which copy, what it is given.
WAYS = (
    ("original", "original", ()),
    ("off", "patched", ()),
    ("eager", "patched", ("--compile", "--compile_backend", "eager")),
    ("aot_eager", "patched", ("--compile", "--compile_backend", "aot_eager")),
    ("inductor", "patched", ("--compile", "--compile_dynamic", "false")),
)
#: Losses and outputs of compiled code may be that far from eager ones, relatively (float32).
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Run:
    """A script. ``kind``: of what it trains (`checklist_run.plain`); ``base``: from what; ``also``: its other files."""

    what: str
    script: str
    kind: str
    base: str
    more: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """What its results are kept under."""
        return self.what.lower().replace(",", "").replace(" ", "-")


_IMAGES = ("--instance_data_dir", "{models}/images", "--instance_prompt", "a cat", "--train_batch_size", "2")
_CAPTIONS = ("--image_column", "image", "--caption_column", "text", "--train_batch_size", "2", "--train_data_dir")
_TEXT = (*_CAPTIONS, "{models}/captions")
_LORA = ("--rank", "4")
_FLUX = ("--max_sequence_length", "16", "--guidance_scale", "1")
RUNS = (
    Run("Stable Diffusion DreamBooth", "dreambooth/train_dreambooth.py", "unet", "sd", _IMAGES),
    Run(
        "SDXL, the whole UNet",
        "text_to_image/train_text_to_image_sdxl.py",
        "unet",
        "sdxl",
        (*_CAPTIONS, "{models}/captions"),
    ),
    Run("SDXL DreamBooth LoRA", "dreambooth/train_dreambooth_lora_sdxl.py", "lora", "sdxl", (*_IMAGES, *_LORA)),
    Run("FLUX DreamBooth", "dreambooth/train_dreambooth_flux.py", "transformer", "flux", (*_IMAGES, *_FLUX)),
    Run("FLUX DreamBooth LoRA", "dreambooth/train_dreambooth_lora_flux.py", "lora", "flux", (*_IMAGES, *_FLUX, *_LORA)),
    Run(
        "ControlNet",
        "controlnet/train_controlnet.py",
        "controlnet",
        "sd8",
        (*_CAPTIONS, "{models}/pairs", "--conditioning_image_column", "conditioning_image"),
    ),
)
DISTRIBUTED = (RUNS[1], RUNS[4])
_SWAP = ("--blocks_to_swap", "2")
_NETWORK = ("--network_module", "networks.lora_flux", "--network_dim", "4", "--network_train_unet_only")
_TRAIN = "flux_train_network.py"
SD_RUNS = (
    Run("FLUX DreamBooth", "flux_train.py", "flux", ""),
    Run("FLUX DreamBooth, blocks swapped", "flux_train.py", "flux", "", _SWAP),
    Run("FLUX LoRA", _TRAIN, "lora", "", _NETWORK, ("train_network.py",)),
    Run("FLUX LoRA, blocks swapped", _TRAIN, "lora", "", (*_NETWORK, *_SWAP), ("train_network.py",)),
)
#: Parsers of sd-scripts, and what integrate is given with them.
SD_SCRIPTS = (
    ("sdxl_train.py",),
    ("sdxl_train_network.py", "train_network.py"),
    ("flux_train.py",),
    ("flux_train_network.py", "train_network.py"),
    ("train_db.py",),
    ("fine_tune.py",),
)


class Bench:
    """A folder of copies, models and results; ``source`` is the repository."""

    def __init__(self, work: Path, source: Path, sd: bool) -> None:
        self.work, self.source, self.sd, self.models = work.resolve(), source.resolve(), sd, work.resolve() / "models"
        self.kept = False
        self.env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
        self.env |= {"PYTHONWARNINGS": "ignore", "TORCHINDUCTOR_CACHE_DIR": str(self.work / "cache")}

    def copy(self, script: str, also: Sequence[str], patched: bool) -> Path:
        """The script as it is or integrated, in a folder with its neighbours."""
        folder = self.work / "scripts" / ("patched" if patched else "original") / Path(script).stem
        copy = folder / Path(script).name
        if not folder.is_dir():
            if self.sd:
                shutil.copytree(self.source, folder, ignore=shutil.ignore_patterns(".git", "docs", "tests"))
                (folder / "data").mkdir()
                shutil.copytree(self.models / "images", folder / "data" / "1_cat")
            else:
                folder.mkdir(parents=True)
                shutil.copy(self.source / "examples" / script, folder)
            if patched:
                tool = [sys.executable, str(ROOT / "fix_compile.py"), "integrate", "--yes", "--no-backup"]
                done = _done([*tool, copy.name, *also], folder, self.env)
                (folder / "said.txt").write_text(done.stdout + done.stderr)
        return copy

    def result(self, run: Run, way: str, processes: int = 1) -> dict[str, Any]:
        """Of one run: it is made when there is none yet. ``failed`` is the end of what it said, where it did fail."""
        folder = self.work / "runs" / ("sd" if self.sd else "diffusers") / run.folder / f"{way}-{processes}"
        told = folder / "result.json"
        if not told.is_file() and self.kept:
            return {"failed": "not run"}
        if not told.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            told.write_text(json.dumps(self._run(run, way, processes, folder)))
        return dict(json.loads(told.read_text()))

    def arguments(self, run: Run) -> list[str]:
        """Of a script; the same for each way of running it."""
        common = ["--resolution", "32", "--seed", "0", "--max_train_steps", "3", "--learning_rate", "1e-3"]
        own = ["--pretrained_model_name_or_path", "{models}/" + run.base, "--lr_warmup_steps", "0"]
        if self.sd:
            own = ["--pretrained_model_name_or_path", "{models}/flux.safetensors", "--ae", "-", "--clip_l", "-"]
            own += [
                "--t5xxl",
                "-",
                "--t5xxl_max_token_length",
                "16",
                "--train_data_dir",
                "data",
                "--output_name",
                "last",
            ]
            own += ["--optimizer_type", "AdamW", "--cache_latents", "--cache_text_encoder_outputs", "--guidance_scale"]
            own += ["1", "--max_data_loader_n_workers", "0", "--train_batch_size", "2", "--mixed_precision", "no"]
            own += ["--timestep_sampling", "sigmoid", "--save_model_as", "safetensors"]
            common[1] = "64"
        return [word.replace("{models}", str(self.models)) for word in (*common, *own, *run.more)]

    def _run(self, run: Run, way: str, processes: int, folder: Path) -> dict[str, Any]:
        _, copy, flags = next(w for w in WAYS if w[0] == way)
        script = self.copy(run.script, run.also, copy == "patched")
        told, saved = folder / "told", folder / "saved"
        runner = [str(ROOT / "benchmarks" / "checklist_run.py")]
        if self.sd:
            runner = [str(ROOT / "benchmarks" / "checklist_sd.py"), str(self.models)]
        start = [sys.executable, *runner]
        # what a script has computed of its data in an earlier run would draw no random numbers in this one
        env = {**self.env, "HF_DATASETS_CACHE": str(folder / "datasets")}
        if processes > 1:
            start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
            start += runner
            env = {**env, "ACCELERATE_USE_CPU": "1"}
        command = [*start, str(told), script.name, *self.arguments(run), "--output_dir", str(saved), *flags]
        done = _done(command, script.parent, env)
        if done.returncode:
            return {"failed": done.stderr[-3000:]}
        result = dict(json.loads(told.read_text()))
        result["others"] = [json.loads(Path(f"{told}.{i}").read_text()) for i in range(1, processes)]
        where = [str(saved / "last.safetensors")] if self.sd else [str(saved), str(self.models / run.base)]
        check = [sys.executable, *runner, "--load", run.kind, str(told), *where]
        checked = _done(check, script.parent, self.env)
        if checked.returncode:
            return {"failed": checked.stderr[-3000:]}
        return result | dict(json.loads(checked.stdout.splitlines()[-1]))


def _done(command: Sequence[str], cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=1800)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "it took more than half an hour")


# --- what the runs come to -------------------------------------------------------------------------------------------


def apart(some: Sequence[str], others: Sequence[str]) -> float:
    """The largest relative difference of two lists of numbers in hexadecimal; infinite where one is shorter."""
    if len(some) != len(others) or not some:
        return float("inf")
    pairs = [(float.fromhex(a), float.fromhex(b)) for a, b in zip(some, others, strict=True)]
    return max(abs(a - b) / max(abs(a), 1e-12) for a, b in pairs)


def told(difference: float, relative: str = "") -> str:
    if difference == 0:
        return "equal"
    word = f"{difference:.0e}{relative}"
    return word if difference <= TOLERANCE else f"**{word}**"


def row(run: Run, way: str, bench: Bench, processes: int = 1) -> list[str]:
    """A line of the table: one way of running one script."""
    first, now = bench.result(run, "original", processes), bench.result(run, way, processes)
    if "failed" in first or "failed" in now:
        lines = (now.get("failed") or first.get("failed") or "").strip().splitlines()
        last = [line for line in lines if "Error" in line][-1:] or lines[-1:]
        return [run.what, way, f"failed: {''.join(last)[:120]}", "", "", "", ""]
    losses = max(
        [apart(a["losses"], b["losses"]) for a, b in zip([first, *first["others"]], [now, *now["others"]], strict=True)]
    )
    graphs = ", ".join(f"{r['graphs']}/{r['breaks']}" for r in [now, *now["others"]])
    names = "the same" if set(now["tensors"]) == set(first["tensors"]) else "**others**"
    equal = sum(now["tensors"][k][0] == v[0] for k, v in first["tensors"].items() if k in now["tensors"])
    return [
        run.what,
        way,
        told(losses),
        graphs,
        f"{len(now['tensors'])} names, {names}, {now['prefixed']} with `_orig_mod`",
        f"{equal} of {len(first['tensors'])}",
        f"{told(now['difference'])} (untrained: {now['moved']:.1g})",
    ]


HEAD = ("script", "way", "losses of 3 steps", "graphs/breaks", "saved")
HEAD = (*HEAD, "tensors as the original saves them, bit for bit", "outputs, saved and loaded against trained")


def helped(bench: Bench, script: str, also: Sequence[str]) -> list[str]:
    """How many of the six arguments the script and its patched copy list."""
    cells = []
    for patched in (False, True):
        copy = bench.copy(script, also, patched)
        done = _done([sys.executable, copy.name, "--help"], copy.parent, bench.env)
        words = done.stdout.replace("[", " ").replace("]", " ").split()
        last = done.stderr.strip().splitlines()[-1:]
        cells.append(f"{sum(o in words for o in OPTIONS)}" if not done.returncode else f"fails: {''.join(last)[:80]}")
    return [f"`{script}`", *cells]


def configured(bench: Bench, script: str, also: Sequence[str]) -> list[str]:
    """Arguments written by ``--output_config``, and read back: from that file, and from one by hand."""
    copy = bench.copy(script, also, True)
    file = copy.parent / "kept.toml"
    file.unlink(missing_ok=True)
    given = ["--compile", "--compile_mode", "reduce-overhead", "--compile_dynamic", "true"]
    given += ["--compile_cache_size_limit", "32"]
    wanted = {"compile": True, "compile_mode": "reduce-overhead", "compile_dynamic": "true"}
    wanted |= {"compile_cache_size_limit": 32, "compile_backend": "inductor", "compile_fullgraph": False}
    written = _done(
        [sys.executable, copy.name, *given, "--config_file", file.name, "--output_config"], copy.parent, bench.env
    )
    kept = sum(line.startswith("compile") for line in file.read_text().splitlines()) if file.is_file() else 0
    cells = [f"{kept} that differ from their defaults" if not written.returncode else "fails"]
    by_hand = "".join(f"{k} = {json.dumps(v)}\n" for k, v in wanted.items())
    (copy.parent / "hand.toml").write_text(f"[training]\n{by_hand}")
    for name in (file.name, "hand.toml"):
        read = _done([sys.executable, _SD, str(bench.models), "--toml", copy.name, name], copy.parent, bench.env)
        got = json.loads(read.stdout.splitlines()[-1]) if not read.returncode else read.stderr[-80:]
        cells.append("the same six" if got == wanted else f"**{got}**")
    return [f"`{script}`", *cells]


_SD = str(ROOT / "benchmarks" / "checklist_sd.py")


def rows(bench: Bench, all_runs: Sequence[Run], only: str, processes: int = 1) -> Iterator[list[str]]:
    ways = [way for way, _, _ in WAYS if processes == 1 or way != "inductor"]
    chosen = [run for run in all_runs if only in run.what]
    for way in ways:  # the quick ones first: what is there is kept
        for run in chosen:
            bench.result(run, way, processes)
    for run in chosen:
        yield from (row(run, way, bench, processes) for way in ways)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("diffusers", "two", "sd", "toml", "help"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--from", type=Path, required=True, dest="source")
    parser.add_argument("--only", default="", help="runs with this in what they are called")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the table there (default: print it)")
    parser.add_argument("--kept", action="store_true", help="run nothing more: what there is")
    options = parser.parse_args()
    sd = not (options.source / "examples").is_dir()
    bench = Bench(options.work, options.source, sd)
    bench.kept = options.kept
    if not bench.models.is_dir():
        command = [sys.executable, str(ROOT / "benchmarks" / "checklist_models.py"), str(bench.models)]
        subprocess.run(command, env=bench.env, check=True)
    name = f"checklist-{options.what}{'-sd' if sd and options.what == 'help' else ''}"
    if options.what == "help":
        scripts = SD_SCRIPTS if sd else [(run.script,) for run in RUNS]
        lines = [helped(bench, script, also) for script, *also in scripts]
        put(options.into, name, table(("`--help` of", "original: of the six", "integrated: of the six"), lines))
    elif options.what == "toml":
        lines = [configured(bench, script, also) for script, *also in SD_SCRIPTS]
        head = ("script", "`--output_config` writes", "read back", "by hand, with a section")
        put(options.into, name, table(head, lines))
    else:
        chosen, processes = {"diffusers": (RUNS, 1), "two": (DISTRIBUTED, 2), "sd": (SD_RUNS, 1)}[options.what]
        put(options.into, name, table(HEAD, rows(bench, chosen, options.only, processes)))


if __name__ == "__main__":
    main()
