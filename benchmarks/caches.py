"""Caches of an installed library: what the tool finds in their source, what it does, and whether they still run.

    python benchmarks/caches.py [PATH ...] [--strategy NAME] [--no-run] [--json FILE]

The files (default: those of transformers that define a cache and are no copy of a modular file; needs transformers,
which is no dependency of ours) are copied to a temporary folder and patched there by a default run, all together. The
first table is what was found: each finding, whether it is fixed, or why not. Then small random models of transformers
decode with its caches, three rounds of a prefill and twenty steps, batch 1, 3 and 2, from the installed and from the
patched source, in a process each: the eager outputs have to be equal bit for bit, the compiled ones (Dynamo's "eager"
backend) within 1e-5, and the second table says how each compiles.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "transformers"
DEFINES_A_CACHE = re.compile(r"^class \w*(Cache|CacheLayer|Layer|State|States|Memory)\b.*:$", re.MULTILINE)
ALLOCATES = re.compile(r"torch\.(zeros|empty|full|cat)\(")
STEPS = 20
BATCHES = (1, 3, 2)
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Row:
    """One finding. ``done``: fixed, refused (there is no fix), unsafe (only with --unsafe) or bug."""

    file: str
    line: int
    code: str
    done: str
    why: str


@dataclass(frozen=True)
class Figures:
    """How one case of one variant compiled; ``launches`` are those of the last round."""

    case: str
    variant: str
    breaks: int
    graphs: int
    recompiles: int
    limit_hits: int
    launches: int


# ---------------------------------------------------------------------------------------------------------------------
# What is found.


def package_folder() -> Path:
    """Where the package lies, without importing it."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{PACKAGE} is not installed; name the files to look at")
    return Path(spec.submodule_search_locations[0])


def files_with_caches(package: Path) -> list[Path]:
    """The files that define a cache-like class and allocate. A modular file is the source of its modelling file."""

    def defines(path: Path) -> bool:
        text = path.read_text(encoding="utf-8")
        return bool(ALLOCATES.search(text) and any("Cache" in m[0] for m in DEFINES_A_CACHE.finditer(text)))

    return [p for p in sorted(package.rglob("*.py")) if not p.name.startswith("modular_") and defines(p)]


def look(copies: dict[Path, Path], strategy: str) -> list[Row]:
    """Patch the copies (copy -> original) in place and say what was found in them."""
    from patcher.patching.runner import run
    from patcher.settings import Settings
    from rules import load_rules

    settings = Settings(strategies={"kv-cache": strategy} if strategy else {})
    rows = []
    for result in run([str(copy) for copy in copies], tuple(load_rules()), settings, jobs=1):
        name = str(copies[Path(result.path)])
        if result.error:
            rows.append(Row(name, 0, "", "bug", result.error))
        if result.patch is None:  # not even a trigger
            continue
        rows += [Row(name, bug.line, bug.code, "bug", bug.message) for bug in result.patch.bugs]
        rows += [Row(name, f.line, f.code, "fixed", f.message) for f in result.patch.fixed]
        for f in result.patch.remaining:
            rows.append(Row(name, f.line, f.code, "unsafe" if f.applicability == "unsafe" else "refused", f.assumption))
        if result.changed:
            Path(result.path).write_bytes(result.after)
    return rows


# ---------------------------------------------------------------------------------------------------------------------
# In the processes that run the models.


class Patched(importlib.abc.MetaPathFinder):
    """Serves modules of the package from other files than the installed ones."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        file = self.files.get(name)
        return importlib.util.spec_from_file_location(name, file) if file else None


def cases() -> Iterator[tuple[str, Any, Callable[[Any, int], Any]]]:
    """Name, model, and a function of model and batch size that returns a fresh cache."""
    import transformers as t

    small: dict[str, Any] = {"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2}
    heads = {"intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
    llama = t.LlamaForCausalLM(t.LlamaConfig(**small, **heads))
    window = t.MistralForCausalLM(t.MistralConfig(**small, **heads, sliding_window=8))
    mamba = t.MambaForCausalLM(t.MambaConfig(**small, state_size=4, use_mambapy=False))

    def dynamic(model: Any, batch: int) -> Any:
        return t.DynamicCache(config=model.config)

    def static(model: Any, batch: int) -> Any:
        return t.StaticCache(config=model.config, max_cache_len=40)

    yield "Llama, DynamicCache", llama, dynamic
    yield "Llama, StaticCache", llama, static
    yield "Mistral, sliding window, DynamicCache", window, dynamic
    yield "Mistral, sliding window, StaticCache", window, static
    yield "Mamba, states in DynamicCache", mamba, dynamic


def decode(model: Any, caller: Any, make_cache: Callable[[Any, int], Any], batch: int) -> list[Any]:
    """One round: the logits of each step, and the length at the end."""
    import torch

    cache = make_cache(model, batch)
    argument = "cache_params" if model.config.model_type == "mamba" else "past_key_values"
    ids = torch.arange(5 * batch).view(batch, 5) % 61
    outputs: list[Any] = []
    for _ in range(STEPS + 1):
        logits = caller(input_ids=ids, **{argument: cache}, use_cache=True).logits
        ids = logits[:, -1:].argmax(-1)
        outputs.append(logits)
    length = cache.get_seq_length() if argument == "past_key_values" else 0
    return [*outputs, torch.as_tensor(length).clone()]


def child(variant: str, files: dict[str, str], target: str) -> None:
    """Run all cases, eagerly and compiled; figures and outputs go to a file."""
    sys.meta_path.insert(0, Patched(files))
    import torch

    from tests.dynamo import SEED, count, equal, run_eagerly

    figures, outputs, differences = [], {}, []
    torch.manual_seed(SEED)
    for name, model, make_cache in cases():
        model.eval()
        # bound now: the loop goes on
        rounds = [lambda f, m=model, c=make_cache, b=b: decode(m, f, c, b) for b in BATCHES]
        eager = [output for output, _ in run_eagerly(model, rounds).outputs]
        counts = count(model, rounds)
        differences.append(equal(eager, list(counts.outputs), TOLERANCE, f"{name}, {variant}, compiled"))
        outputs[name] = eager
        figures.append(
            Figures(name, variant, counts.breaks, counts.graphs, counts.recompiles, counts.limit_hits, counts.launches)
        )
    torch.save({"figures": [asdict(f) for f in figures], "outputs": outputs, "differences": differences}, target)


def run_cases(copies: dict[Path, Path], package: Path, folder: Path) -> tuple[list[Figures], list[str]]:
    """Figures of both variants, and what differs where nothing should."""
    import torch

    from tests.dynamo import equal

    changed = {}
    for copy, original in copies.items():
        if package in original.parents and copy.read_bytes() != original.read_bytes():
            parts = (PACKAGE, *original.relative_to(package).with_suffix("").parts)
            changed[".".join(p for p in parts if p != "__init__")] = str(copy)
    results = {}
    for variant, files in (("installed", {}), ("patched", changed)):
        target = folder / f"{variant}.pt"
        subprocess.run(
            [sys.executable, __file__, "--child", json.dumps([variant, files, str(target)])],
            cwd=ROOT,
            env=os.environ | {"TRANSFORMERS_VERBOSITY": "error"},
            check=True,
        )
        results[variant] = torch.load(target, weights_only=False)
    figures = [Figures(**f) for pair in zip(*(r["figures"] for r in results.values()), strict=True) for f in pair]
    differences = [d for r in results.values() for d in r["differences"] if d]
    for name, outputs in results["installed"]["outputs"].items():
        difference = equal(outputs, results["patched"]["outputs"][name], 0.0, f"{name}, eager")
        differences += [difference] if difference else []
    print(f"\nPatched: {', '.join(changed) or 'nothing'}\n")
    return figures, differences


# ---------------------------------------------------------------------------------------------------------------------


def table(heads: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """Print Markdown."""
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--strategy", default="", help="of the rule kv-cache (default: auto)")
    parser.add_argument("--select", default="FC3", help="codes of the findings to list (default: FC3)")
    parser.add_argument("--no-run", action="store_true", help="only look")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if options.child:
        child(*json.loads(options.child))
        return 0
    package = package_folder() if not options.paths or not options.no_run else Path("/")
    paths = [p.resolve() for p in options.paths] or files_with_caches(package)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copies: dict[Path, Path] = {}
        for path in paths:
            copy = folder / path.relative_to(package.parent if package in path.parents else path.anchor)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            copies[copy.resolve()] = path
        rows = [r for r in look(copies, options.strategy) if r.code.startswith(options.select) or r.done == "bug"]
        short = str(package.parent) + "/"
        print(f"{len(paths)} files\n")
        table(
            ("file", "line", "rule", "done", "why"),
            [(r.file.removeprefix(short), r.line, r.code, r.done, r.why) for r in rows],
        )
        figures, differences = ([], []) if options.no_run else run_cases(copies, package, folder)
    if figures:
        heads = ("case", "variant", "breaks", "graphs", "recompiles", "limit hits", "launches, last round")
        table(heads, [tuple(asdict(f).values()) for f in figures])
        print("\n" + ("\n".join(differences) or "Eager outputs are equal bit for bit, compiled ones within 1e-5."))
    if options.json:
        found = {"findings": [asdict(r) for r in rows], "figures": [asdict(f) for f in figures], "wrong": differences}
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 1 if differences or any(r.done == "bug" for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
