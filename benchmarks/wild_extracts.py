"""Every safe hunk in the repositories of ``wild.py``, run: a small model of the real class, original and patched.

    python benchmarks/wild_extracts.py FOLDER --python PYTHON [--keep FOLDER] [--into docs/results/wild.md]

FOLDER holds the repositories, as for ``wild.py``; PYTHON has torch and what they import. Each model of
``wild_models.py`` is compiled for two calls of different sizes (backend: eager), with ``fullgraph=True`` and with the
capture flags, exported (``strict=True``) and scripted, before and after. What worked before and does not after, and
other numbers, are errors. A hunk without a model is an error as well.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tables import put, table
from wild import REPOSITORIES, answer, hunks_of

WORKER = Path(__file__).with_name("wild_models.py")


@dataclass(frozen=True)
class Extract:
    """A model in ``wild_models.py``. ``file``: whose hunks it runs; ``root``: what is put on the path.

    ``beside``: a repository that is imported from as it is, and its root.
    """

    model: str
    repository: str
    file: str
    root: str = "src"
    beside: str = ""
    line: int = 0  #: of the only hunk that it runs; 0: all of the file


_UNETS = "src/diffusers/models/unets"
_PIPELINES = "src/diffusers/pipelines"
_VAE = "src/musubi_tuner/hunyuan_video_1_5/hunyuan_video_1_5_vae.py"
EXTRACTS = (
    Extract("chronos", "amazon-science/chronos-forecasting", "src/chronos/chronos2/model.py"),
    Extract("mmdit", "kohya-ss/sd-scripts", "library/sd3_models.py", "library", "diffusers/src"),
    Extract("causal_conv", "kohya-ss/musubi-tuner", _VAE, line=69),
    Extract("conv", "kohya-ss/musubi-tuner", _VAE, line=124),
    Extract("unet3d", "huggingface/diffusers", f"{_UNETS}/unet_3d_condition.py"),
    Extract("i2vgen", "huggingface/diffusers", f"{_UNETS}/unet_i2vgen_xl.py"),
    Extract("motion", "huggingface/diffusers", f"{_UNETS}/unet_motion_model.py"),
    Extract("spatio_temporal", "huggingface/diffusers", f"{_UNETS}/unet_spatio_temporal_condition.py"),
    Extract("audio", "huggingface/diffusers", f"{_PIPELINES}/audioldm2/modeling_audioldm2.py"),
    Extract("ldmbert", "huggingface/diffusers", f"{_PIPELINES}/latent_diffusion/pipeline_latent_diffusion.py"),
)


def patched(told: dict[str, Any], folder: Path, file: str, root: str, into: Path) -> Path:
    """A copy of the ``root`` of a repository with the hunks of ``file`` made."""
    shutil.copytree(folder / root, into / root, ignore=shutil.ignore_patterns("__pycache__"))
    diff = next(entry["diff"] for entry in told["files"] if entry["path"] == file)
    limits = {**os.environ, "GIT_CEILING_DIRECTORIES": "/"}
    subprocess.run(
        ["git", "apply", "-p1", "--whitespace=nowarn"], input=diff, cwd=into, env=limits, text=True, check=True
    )
    return into


def run(extract: Extract, tree: Path, repositories: Path, python: str, more: str) -> dict[str, Any]:
    """What the worker says of a model in ``tree``. Raises RuntimeError when it says nothing."""
    root = tree if extract.root == "library" else tree / extract.root
    paths = [str(root), *([str(repositories / extract.beside)] if extract.beside else []), *more.split(os.pathsep)]
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [python, "-W", "ignore", str(WORKER), extract.model],
        env={**os.environ, **variables, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        raise RuntimeError(f"{extract.model}: status {done.returncode}: {done.stderr.strip()[-600:]}") from None


def measured(extract: Extract, repositories: Path, python: str, more: str, kept: Path | None) -> dict[str, Any]:
    """Both trees of one extract, as ``before`` and ``after``: now, or as kept."""
    place = kept / f"extract-{extract.model}.json" if kept is not None else None
    if place is not None and place.is_file():
        return dict(json.loads(place.read_text(encoding="utf-8")))
    folder = repositories / extract.repository.rpartition("/")[2]
    told, _ = answer(folder, kept)
    with tempfile.TemporaryDirectory(prefix="extract-") as name:
        tree = patched(told, folder, extract.file, extract.root, Path(name))
        after = run(extract, tree, repositories, python, more)
    found = {"before": run(extract, folder, repositories, python, more), "after": after}
    if place is not None:
        place.write_text(json.dumps(found), encoding="utf-8")
    return found


def lost(found: dict[str, Any]) -> list[str]:
    """The ways in which a call worked before and does not after, and what else must not be."""
    before, after = found["before"], found["after"]
    ways = [] if before["eager"] == after["eager"] else ["other numbers"]
    for way, first in before["modes"].items():
        pairs = zip(first["works"], after["modes"][way]["works"], strict=True)
        if any(b and not a for b, a in pairs):
            ways.append(f"{way} ({after['modes'][way]['said']})")
    return ways


def row(extract: Extract, found: dict[str, Any]) -> list[object]:
    modes = [found[side]["modes"] for side in ("before", "after")]
    counted = [_both([f"{m[way]['graphs']}, {m[way]['breaks']}" for m in modes]) for way in ("compile", "flags")]
    working = [_both(["yes" if all(m[way]["works"]) else "no" for m in modes]) for way in _WAYS]
    place = extract.file + (f":{extract.line}" if extract.line else "")
    return [f"`{place}`", f"`{extract.model}`", *counted, *working, ", ".join(lost(found)) or "nothing"]


_WAYS = ("fullgraph", "export", "script")


def _both(values: list[str]) -> str:
    return values[0] if values[0] == values[1] else " → ".join(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=sys.executable, help="an interpreter with torch and what they import")
    parser.add_argument("--path", default="", help="more folders to import from")
    parser.add_argument("--only", metavar="MODELS", help="models, with commas between them")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the answers there, and use those of before")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the table there (default: print it)")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else [e.model for e in EXTRACTS]
    rows, wrong = [], []
    for extract in (e for e in EXTRACTS if e.model in wanted):
        found = measured(extract, options.folder, options.python, options.path, options.keep)
        rows.append(row(extract, found))
        wrong += [f"{extract.model}: {way}" for way in lost(found)]
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    if not options.only:
        wrong += unrun(options.folder, options.keep)
    head = ["place", "model", "graphs, breaks", "the same with capture flags", *_WAYS, "lost"]
    put(options.into, "extracts", table(head, rows))
    if wrong:
        sys.exit("\n".join(wrong))


def unrun(folder: Path, kept: Path | None) -> list[str]:
    """The hunks that no model runs, those left out that change how a script compiles and not what is compiled."""
    known = {(e.repository, e.file) for e in EXTRACTS}
    found = []
    for name in REPOSITORIES:
        told, _ = answer(folder / name.rpartition("/")[2], kept)
        hunks = [hunk for entry in told["files"] for hunk in hunks_of(entry)]
        files = {hunk.file for hunk in hunks if not hunk.rules.startswith("FC70")}
        found += [f"no model runs {name}, {file}" for file in sorted(files) if (name, file) not in known]
    return found


if __name__ == "__main__":
    main()
