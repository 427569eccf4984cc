"""Source document 000's checklist as a table: each box with the command that was run for it, or why there is none.

    python benchmarks/checklist_boxes.py --work FOLDER --sd FOLDER --from SD-SCRIPTS --gui KOHYA_SS
        [--into docs/results/checklist.md]

The two folders are those of ``checklist.py``, for diffusers and for sd-scripts; the second one's Python runs this. What
a box needs to have been run is read there; what takes a second is run now. A box whose check fails is not ticked.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from checklist import DISTRIBUTED, RUNS, SD_RUNS, TOLERANCE, WAYS, Bench, Run, apart, configured
from tables import put, table

#: In the folder of an integrated script: the module that was written, without any of ours.
HELPERS = """
import argparse, torch, compile_utils as c
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        return x + self.lin(x).relu()
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
def counted():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]
torch.set_grad_enabled(False)  # with gradients the first block has an input of its own kind
x, model, names = torch.ones(2, 4), Model(), list(Model().state_dict())
expected = model(x)
"""
COMPILES = """
parser = argparse.ArgumentParser()
c.add_compile_arguments(parser)
assert c.compile_model(model, parser.parse_args([])) is model
model(x)
assert counted() == 0
args = parser.parse_args(["--compile", "--compile_backend", "eager"])
c.compile_model(model, args)
assert torch.equal(model(x), expected) and counted() == 1 and list(model.state_dict()) == names
"""
SWAPPED = """
parser = argparse.ArgumentParser()
c.add_compile_arguments(parser)
args = parser.parse_args(["--compile", "--compile_backend", "eager", "--compile_fullgraph"])
args.blocks_to_swap = 2
c.compile_model(model, args)
assert torch.equal(model(x), expected) and list(model.state_dict()) == names
assert torch._dynamo.utils.counters["graph_break"]
"""
STRIPS = """
plain = model.state_dict()
assert c.maybe_uncompile_state_dict(plain) is plain
for i in range(3):
    model.blocks[i] = torch.compile(model.blocks[i], backend="eager")
state = torch.compile(model, backend="eager").state_dict()
assert not set(state) & set(names)
clean = c.maybe_uncompile_state_dict(state)
assert list(clean) == names and clean._metadata.keys() == plain._metadata.keys()
Model().load_state_dict(clean, strict=True)
"""
#: Command lines of 000; paths stand for models that are not read.
LINES = {
    "sdxl_train_network.py": "--compile --compile_backend inductor --compile_mode reduce-overhead "
    "--compile_dynamic auto --pretrained_model_name_or_path model.safetensors --network_module networks.lora",
    "flux_train_network.py": "--compile --compile_backend inductor --compile_mode default --blocks_to_swap 10",
}
PARSES = """
import runpy, sys
parser = runpy.run_path(sys.argv[1])["setup_parser"]()
args = parser.parse_args(sys.argv[2].split())
assert args.compile and args.compile_backend == "inductor" and args.compile_dynamic == "auto"
"""


@dataclass(frozen=True)
class Box:
    """``said``: in 000; ``how``: what is run, to be told; ``seen``: whether that came out well, or why not (a text)."""

    said: str
    how: str
    seen: Callable[[], bool | str]


def _run(command: Sequence[str], cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


class Boxes:
    """All of them, for two folders of results."""

    def __init__(self, diffusers: Bench, sd: Bench, gui: Path) -> None:
        self.diffusers, self.sd, self.gui = diffusers, sd, gui

    def program(self, script: str, text: str, *arguments: str) -> bool | str:
        """Run ``text`` in the folder of the integrated ``script``."""
        folder = self.sd.copy(script, (), True).parent
        command = [sys.executable, "-c", text, *arguments]
        done = _run(command, folder, self.sd.env)
        return not done.returncode or done.stderr.strip().splitlines()[-1][:100]

    def integrated(self, script: str, *also: str) -> bool | str:
        """The module is imported, the parser gets the arguments, and the model is compiled below ``prepare``."""
        folder = self.sd.copy(script, also, True).parent
        missing = {"import compile_utils", "add_compile_arguments", "compile_model below prepare"}
        for name in (script, *also):
            tree = ast.parse((folder / name).read_text(encoding="utf-8"))
            calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
            prepared = [c.lineno for c in calls if "prepare" in ast.unparse(c.func)]
            if any(isinstance(n, ast.Import) and n.names[0].name == "compile_utils" for n in tree.body):
                missing.discard("import compile_utils")
            for call in calls:
                if ast.unparse(call.func) == "compile_utils.add_compile_arguments":
                    missing.discard("add_compile_arguments")
                if ast.unparse(call.func) == "compile_utils.compile_model" and min(prepared, default=0) < call.lineno:
                    missing.discard("compile_model below prepare")
        return not missing or f"missing: {', '.join(sorted(missing))}"

    def ran(self, bench: Bench, what: str, only: tuple[str, ...] = ()) -> bool | str:
        """All ways of a run have come out as the original: losses, names, what is loaded again."""
        run: Run = next(r for r in (*RUNS, *SD_RUNS) if r.what == what and (r in SD_RUNS) == bench.sd)
        first = bench.result(run, "original")
        for way, _, flags in WAYS:
            if only and way not in only:
                continue
            now = bench.result(run, way)
            if "failed" in now or "failed" in first:
                return f"{way}: {(now.get('failed') or first['failed']).strip().splitlines()[-1][:80]}"
            exact = not flags or way == "eager"
            losses = apart(first["losses"], now["losses"])
            if losses > (0 if exact else TOLERANCE) or (flags and not now["graphs"]):
                return f"{way}: losses differ by {losses:.0e}, {now['graphs']} graphs"
            if set(now["tensors"]) != set(first["tensors"]) or now["prefixed"] or now["difference"] > TOLERANCE:
                return f"{way}: what was saved is another thing"
            if now["difference"] >= now["moved"]:
                return f"{way}: nothing was trained"
        return True

    def toml(self) -> bool | str:
        cells = configured(self.sd, "sdxl_train.py", ())[2:]
        return cells == ["the same six", "the same six"] or "; ".join(cells)

    def accelerated(self) -> bool | str:
        """What FC707 writes into sd-scripts' savers."""
        tool = [sys.executable, str(Path(__file__).parent.parent / "fix_compile.py"), "check", "--unsafe", "--all"]
        tool += ["--no-cache", "--select", "FC707", "--format", "json", "library"]
        done = _run(tool, self.sd.source, self.sd.env)
        files = {Path(f["path"]).name for f in json.loads(done.stdout)["files"] if f["findings"]}
        missing = {"sdxl_model_util.py", "flux_train_utils.py"} - files
        return not missing or f"not found in {', '.join(sorted(missing))}"

    def all(self) -> list[Box]:
        network = ("train_network.py",)
        return [*self._helpers(), *self._scripts(network), *self._runs(), *self._words(), *self._limits()]

    def _helpers(self) -> list[Box]:
        how = "its functions, in a program of their own"

        def box(said: str, text: str) -> Box:
            return Box(said, how, lambda: self.program("flux_train.py", HELPERS + text))

        return [
            box("`compile_utils.py`: `add_compile_arguments`, `compile_model`", COMPILES),
            box("`disable_linear_from_compile`", SWAPPED),
            box("`maybe_uncompile_state_dict`, compiled and plain", STRIPS),
        ]

    def _scripts(self, network: tuple[str, ...]) -> list[Box]:
        what = "`{}`: import, arguments, compiled after `prepare`"

        def box(script: str, *also: str) -> Box:
            files = " ".join((script, *also))
            return Box(what.format(script), f"`integrate {files}`", lambda: self.integrated(script, *also))

        return [
            box("sdxl_train.py"),
            box("sdxl_train_network.py", *network),
            box("flux_train.py"),
            box("flux_train_network.py", *network),
            Box(
                "`save_stable_diffusion_checkpoint()`, `save_models()` strip",
                "`fix --unsafe --select FC707 library`, for `--torch_compile`; compiled in place nothing needs it",
                self.accelerated,
            ),
        ]

    def _runs(self) -> list[Box]:
        def box(said: str, how: str, bench: Bench, what: str) -> Box:
            return Box(said, how, lambda: self.ran(bench, what))

        one_size = "(sd-scripts' `sdxl_train.py` has a UNet of one size, 2.6 billion weights)"
        sdxl = f"diffusers' `train_text_to_image_sdxl.py` {one_size}"
        swapped = "the same with `--blocks_to_swap 2`"
        flux, lora = "sd-scripts' `flux_train.py`", "sd-scripts' `flux_train_network.py`"
        both = ("FLUX DreamBooth", "FLUX DreamBooth LoRA")
        return [
            box("SDXL DreamBooth with compile", sdxl, self.diffusers, "SDXL, the whole UNet"),
            box(
                "SDXL LoRA with compile",
                "diffusers' `train_dreambooth_lora_sdxl.py`",
                self.diffusers,
                "SDXL DreamBooth LoRA",
            ),
            box("FLUX DreamBooth with compile", flux, self.sd, "FLUX DreamBooth"),
            box("FLUX DreamBooth with compile, blocks swapped", swapped, self.sd, "FLUX DreamBooth, blocks swapped"),
            box("FLUX LoRA with compile", lora, self.sd, "FLUX LoRA"),
            box("FLUX LoRA with compile, blocks swapped", swapped, self.sd, "FLUX LoRA, blocks swapped"),
            Box(
                "configuration: saved, loaded, the same",
                "`sdxl_train.py --compile ... --output_config`, and read back",
                self.toml,
            ),
            Box(
                "checkpoints of compiled models load",
                "the runs of diffusers' FLUX scripts",
                lambda: next((s for w in both if (s := self.ran(self.diffusers, w)) is not True), True),
            ),
            Box("several processes", "`checklist.py two`, below", self.two),
        ]

    def two(self) -> bool | str:
        """Two processes: losses of the patched script are those of the original."""
        for run in DISTRIBUTED:
            first = self.diffusers.result(run, "original", 2)
            for way in ("off", "eager"):
                now = self.diffusers.result(run, way, 2)
                if "failed" in first or "failed" in now:
                    return f"{run.what}, {way}: {(now.get('failed') or first['failed']).strip()[-80:]}"
                if apart(first["losses"], now["losses"]) or now["prefixed"]:
                    return f"{run.what}, {way}: other losses, or names"
        return True

    def _words(self) -> list[Box]:
        def box(script: str) -> Box:
            how = f"its words, by the parser of `{script}`"
            return Box("a command line of 000", how, lambda: self.program(script, PARSES, script, LINES[script]))

        return [box(script) for script in LINES]

    def _limits(self) -> list[Box]:
        offloaded = "not run: sd-scripts calls `x.cuda()` there; FC708 tells of it where the call that compiles is near"
        return [
            Box("checkpoints offloaded to the CPU", "", lambda: offloaded),
            Box("DeepSpeed", "", lambda: "not run: it is not installed; `integrate` compiles nothing in its arm"),
            *(self._interface(f"{name}_gui.py") for name in ("lora", "dreambooth", "finetune")),
            Box("the tabs in a browser", "", lambda: "not run: gradio was not installed here"),
        ]

    def _interface(self, file: str) -> Box:
        """Nothing is written into one: each place that lacks an option is told."""
        command = [sys.executable, str(Path(__file__).parent.parent / "fix_compile.py"), "integrate", "--dry-run"]

        def seen() -> bool | str:
            done = _run([*command, f"kohya_gui/{file}"], self.gui, self.sd.env)
            lines = [line for line in done.stdout.splitlines() if ".py:" in line]
            return not done.returncode or f"writes nothing, and tells {len(lines)} places"

        return Box(f"`{file}`: the six options in all places", f"`integrate kohya_gui/{file}`", seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sd", type=Path, required=True)
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the table there (default: print it)")
    parser.add_argument("--from", type=Path, required=True, dest="source")
    parser.add_argument("--gui", type=Path, required=True)
    options = parser.parse_args()
    benches = Bench(options.work, options.work, False), Bench(options.sd, options.source, True)
    for bench in benches:
        bench.kept = True
    lines = []
    for box in Boxes(*benches, options.gui).all():
        seen = box.seen()
        lines.append([box.said, "[x]" if seen is True else "[ ]", box.how if seen is True else f"{box.how} {seen}"])
    put(options.into, "checklist-boxes", table(("box of 000", "", "by"), lines))


if __name__ == "__main__":
    main()
