"""The statements of real code that FC703 and FC705 rewrite, run: as they are, and as ``fix --unsafe`` makes them.

    python benchmarks/calls.py FOLDER [--into docs/results/calls.md]

FOLDER holds the repositories of ``wild.py``. The statement around a call that compiles is taken out of its function and
run with a small model in place of the real one; inductor's kernels are not made, only its graphs. What is measured: the
graphs of two calls, the keys of the state that start with ``_orig_mod.``, those of a plain checkpoint that load without
``strict``, and whether outputs are those of eager.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tables import put, table

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Extract:
    """A touched statement: the one in ``function`` of ``file`` that has ``word`` in it.

    ``given``: what it is run with; ``models``: what holds the models afterwards; ``call``: what is called then.
    ``whole``: the function itself is run, by ``given``.
    """

    repository: str
    file: str
    function: str
    word: str
    given: str
    models: tuple[str, ...]
    call: str
    whole: bool = False


_SELF = "self = types.SimpleNamespace(config=types.SimpleNamespace(use_torch_compile=True), {})\n"
EXTRACTS = (
    Extract(
        "lerobot",
        "src/lerobot/policies/diffusion/modeling_diffusion.py",
        "DiffusionModel.__init__",
        "compile_model",
        "self = types.SimpleNamespace(unet=model())\n"
        "config = types.SimpleNamespace(compile_model=True, compile_mode='reduce-overhead')\n",
        ("self.unet",),
        "self.unet(x)",
    ),
    Extract(
        "lerobot",
        "src/lerobot/rl/algorithms/sac/sac_algorithm.py",
        "SACAlgorithm._init_critics",
        "use_torch_compile",
        _SELF.format("critic_ensemble=model(), critic_target=model()"),
        ("self.critic_ensemble", "self.critic_target"),
        "self.critic_ensemble(x) + self.critic_target(x)",
    ),
    Extract(
        "lerobot",
        "examples/rtc/eval_dataset.py",
        "RTCEvaluator._apply_torch_compile",
        "torch_compile_mode",
        "cfg = types.SimpleNamespace(torch_compile_backend='inductor', torch_compile_mode='default',\n"
        "                            torch_compile_disable_cudagraphs=True)\n"
        "policy = types.SimpleNamespace(predict_action_chunk=model().forward, type='act', name='act')\n"
        "_apply_torch_compile(types.SimpleNamespace(cfg=cfg), policy, 'policy')\n",
        (),
        "policy.predict_action_chunk(x)",
        whole=True,
    ),
    Extract(
        "diffusers",
        "tests/pipelines/test_pipelines.py",
        "_test_from_save_pretrained_dynamo",
        "torch.compile(model)",
        "model = model()\n",
        ("model",),
        "model(x)",
    ),
)
PROGRAM = """
import json, logging, sys, types
import torch
from torch import nn
from torch._dynamo.utils import counters

for kind in (torch._TorchCompileInductorWrapper, torch._TorchCompileWrapper):
    kind.__call__ = lambda self, graph, inputs, **more: graph
logging.disable()


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x).relu()


def model():
    torch.manual_seed(0)
    return Small()


x = torch.linspace(-1, 1, 8).view(2, 4)
plain = model().state_dict()
{code}
with torch.no_grad():
    outs = [{call} for _ in range(2)]
    graphs = counters["stats"]["unique_graphs"]
    with torch.compiler.set_stance("force_eager"):
        eager = {call}
held = [{models}]
keys = [key for one in held for key in one.state_dict()]
loaded = sum(len(plain) - len(one.load_state_dict(plain, strict=False).missing_keys) for one in held)
equal = all(torch.equal(out, eager) for out in outs)
told = dict(graphs=graphs, keys=len(keys), prefixed=sum("_orig_mod" in key for key in keys), loaded=loaded, equal=equal)
print(json.dumps(told))
"""


def patched(folder: Path, extract: Extract) -> tuple[str, str]:
    """The file as it is, and as the tool makes it, read where it stands and written nowhere."""
    file = folder / extract.repository / extract.file
    command = [
        sys.executable,
        str(ROOT / "fix_compile.py"),
        "diff",
        "--unsafe",
        "--select",
        "FC703,FC705",
        "--no-cache",
    ]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "GIT_CEILING_DIRECTORIES": "/"}
    done = subprocess.run(
        [*command, "--format", "json", extract.file], cwd=file.parents[len(Path(extract.file).parts) - 1],
        env=variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    diff = "".join(entry.get("diff") or "" for entry in json.loads(done.stdout)["files"])
    with tempfile.TemporaryDirectory(prefix="calls-") as name:
        copy = Path(name, extract.file)
        copy.parent.mkdir(parents=True)
        copy.write_bytes(file.read_bytes())
        if diff:
            apply = ["git", "apply", "-p1", "--whitespace=nowarn"]
            subprocess.run(apply, input=diff, cwd=name, env=variables, text=True, check=True)
        return file.read_text(encoding="utf-8"), copy.read_text(encoding="utf-8")


def code_of(text: str, extract: Extract) -> str:
    """The statement, or the function, as it is in ``text``. Raises LookupError where it is not."""
    found: ast.AST = ast.parse(text)
    for name in extract.function.split("."):
        found = next(n for n in ast.iter_child_nodes(found) if getattr(n, "name", None) == name)
    if extract.whole:
        assert isinstance(found, ast.FunctionDef)
        found.decorator_list, found.returns = [], None
        return ast.unparse(found)
    word = "compile" if "torch.compile" in extract.word else extract.word
    todo = [s for s in ast.walk(found) if isinstance(s, (ast.If, ast.Assign, ast.Expr)) and word in ast.unparse(s)]
    if not todo:
        raise LookupError(f"{extract.file}: nothing in {extract.function} has {word}")
    return ast.unparse(todo[0])


def run(text: str, extract: Extract) -> dict[str, Any]:
    """What the program tells. Raises RuntimeError when it tells nothing."""
    code = code_of(text, extract)
    code = f"{code}\n{extract.given}" if extract.whole else f"{extract.given}{code}"
    program = PROGRAM.format(code=code, call=extract.call, models=", ".join(extract.models))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{extract.file}: {done.stderr.strip()[-400:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def row(extract: Extract, folder: Path) -> list[str]:
    before, after = patched(folder, extract)
    if before == after:
        return [f"{extract.repository} `{extract.file}`", "left alone", "", "", ""]
    told = [run(text, extract) for text in (before, after)]
    pairs = [
        f"{told[0]['graphs']} -> {told[1]['graphs']}",
        " -> ".join(f"{t['prefixed']} of {t['keys']}" for t in told) if extract.models else "",
        " -> ".join(f"{t['loaded']} of {t['keys']}" for t in told) if extract.models else "",
        " -> ".join("equal" if t["equal"] else "different" for t in told),
    ]
    return [f"{extract.repository} `{extract.file}`", *pairs]


HEAD = ("statement of", "graphs of two calls", "keys with `_orig_mod.`", "plain keys that load", "outputs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the table there (default: print it)")
    options = parser.parse_args()
    put(options.into, "calls-run", table(HEAD, [row(extract, options.folder) for extract in EXTRACTS]))


if __name__ == "__main__":
    main()
