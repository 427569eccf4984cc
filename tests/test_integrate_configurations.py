"""`fix-compile integrate` where options come from a configuration: dataclasses, JSON, YAML and TOML files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.test_integrate import MODEL, TRAIN, contents, fix_compile, python

NAMES = [
    "compile",
    "compile_backend",
    "compile_mode",
    "compile_dynamic",
    "compile_fullgraph",
    "compile_cache_size_limit",
]
USUAL = dict(zip(NAMES, [False, "inductor", "default", "auto", False, 0], strict=True))
ON = {"compile": True, "compile_backend": "eager", "compile_dynamic": "true", "compile_cache_size_limit": 16}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n")
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


BODY = """\
    torch.manual_seed(0)
    model = Net()
    model.train()
    for step in range(cfg.steps):
        loss = model(torch.linspace(-1, 1, 32).reshape(4, 8)).square().mean()
        loss.backward()
        print(step, loss.item())
    Path("saved.json").write_text(json.dumps(asdict(cfg)))
    print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"], torch._dynamo.config.recompile_limit)
"""
HEAD = """\
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import LIBRARY
import torch

from model import Net


@dataclass
class Config:
    steps: int = 2
    \"\"\"how many\"\"\"
    out: str = "model.pt"
    \"\"\"where\"\"\"

    def __post_init__(self):
        self.steps = int(self.steps)


"""
TYRO = HEAD.replace("LIBRARY", "tyro") + f"def main(cfg: Config):\n{BODY}\n\nmain(tyro.cli(Config))\n"
DRACCUS = HEAD.replace("LIBRARY", "draccus") + f"@draccus.wrap()\ndef main(cfg: Config):\n{BODY}\n\nmain()\n"
PARSED = HEAD.replace("LIBRARY", "draccus") + f"def main():\n    cfg = draccus.parse(Config)\n{BODY}\n\nmain()\n"
PYRALLIS = DRACCUS.replace("draccus", "pyrallis")
SEVERAL = (
    HEAD.replace("import LIBRARY\n", "").replace(
        "import torch\n", "import torch\nfrom transformers import HfArgumentParser\n"
    )
    + "@dataclass\nclass Other:\n    name: str = ''\n\n\ndef main():\n"
    "    parser = HfArgumentParser((Other, Config))\n"
    "    if sys.argv[1].endswith('.json'):\n        other, cfg = parser.parse_json_file(sys.argv[1])\n"
    "    else:\n        other, cfg = parser.parse_args_into_dataclasses()\n"
    f"{BODY}\n\nmain()\n"
).replace("import json\n", "import json\nimport sys\n")
BY_ARGPARSE = (
    HEAD.replace("LIBRARY", "argparse")
    + "def main():\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--steps', type=int, default=2)\n"
    "    parser.add_argument('--config', default='')\n    args = parser.parse_args()\n"
    "    if args.config:\n        parser.set_defaults(**json.loads(Path(args.config).read_text()))\n"
    "        args = parser.parse_args()\n    del args.config\n    run(Config(**vars(args)))\n\n\n"
    f"def run(cfg):\n{BODY}\n\nmain()\n"
)
FIELDS = """\
    compile: bool = False  # compile the repeated blocks of the model with torch.compile
    compile_backend: str = "inductor"  # backend of torch.compile
"""


def check(project: Path, script: str, on: list[str], load: list[str]) -> str:
    """The patched text of ``script``, which runs off, with options ``on``, and with a file that it has saved."""
    (project / "train.py").write_text(script)
    before = contents(project)
    first = ["--steps", "2"]
    eager = python(project, "train.py", *first).splitlines()
    plain = json.loads((project / "saved.json").read_text())
    status, out, err = fix_compile(project, "integrate", "train.py")
    assert status == 0, out + err
    text = (project / "train.py").read_text()
    assert FIELDS in text
    assert "    model = Net()\n    if cfg.compile:\n        compile_utils.compile_model(model, cfg)\n" in text
    assert python(project, "train.py", *first).splitlines() == eager
    saved = json.loads((project / "saved.json").read_text())
    assert list(saved) == [*plain, *NAMES]
    assert saved == {**plain, **USUAL}
    compiled = python(project, "train.py", *first, *on).splitlines()
    assert (compiled[:-1], compiled[-1]) == (eager[:-1], "graphs 2 16")
    saved = json.loads((project / "saved.json").read_text())
    assert {**saved, "compile_dynamic": saved["compile_dynamic"].lower()} == {**plain, **USUAL, **ON}  # YAML's true
    (project / "config.json").write_text(json.dumps(saved))
    assert python(project, "train.py", *load).splitlines() == compiled
    assert json.loads((project / "saved.json").read_text()) == saved
    assert fix_compile(project, "integrate", "train.py") == (0, "", "integrated already: nothing to do\n")
    for made in project.glob("*.json"):
        made.unlink()
    assert fix_compile(project, "restore")[0] == 0
    assert contents(project) == before
    return text


def test_a_dataclass_that_is_given_every_argument(project: Path) -> None:
    on = ["--compile", "--compile_backend", "eager", "--compile_dynamic", "true", "--compile_cache_size_limit", "16"]
    text = check(project, BY_ARGPARSE, on, ["--config", "config.json"])
    assert "    compile_utils.add_compile_arguments(parser)\n    args = parser.parse_args()\n" in text


def test_a_dataclass_that_tyro_fills(project: Path) -> None:
    pytest.importorskip("tyro")
    on = ["--compile", "--compile-backend", "eager", "--compile-dynamic", "true", "--compile-cache-size-limit", "16"]
    check(project, TYRO, on, ["--steps", "2", *on])
    (project / "train.py").write_text(TYRO)
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    assert "backend of torch.compile" in python(project, "train.py", "--help")


@pytest.mark.parametrize(("library", "script"), [("draccus", DRACCUS), ("draccus", PARSED), ("pyrallis", PYRALLIS)])
def test_a_dataclass_that_a_file_fills(library: str, script: str, project: Path) -> None:
    pytest.importorskip(library)
    on = ["--compile", "true", "--compile_backend", "eager", "--compile_dynamic", "true"]
    check(project, script, [*on, "--compile_cache_size_limit", "16"], ["--config_path", "config.json"])


def test_one_of_the_dataclasses_of_transformers(project: Path) -> None:
    pytest.importorskip("transformers")
    on = ["--compile", "--compile_backend", "eager", "--compile_dynamic", "true", "--compile_cache_size_limit", "16"]
    text = check(project, SEVERAL, on, ["config.json"])
    assert text.count("compile_backend") == 1


def test_fields_with_help_and_a_class_in_another_file(project: Path) -> None:
    pytest.importorskip("transformers")
    described = '    steps: int = field(default=2, metadata={"help": "how many"})\n'
    (project / "options.py").write_text(
        f"from dataclasses import dataclass, field\n\n\n@dataclass\nclass Config:\n{described}\n\nOTHER = 1\n"
    )
    script = (
        "import torch\nfrom model import Net\nfrom options import Config\nfrom transformers import HfArgumentParser\n\n"
        "cfg = HfArgumentParser(Config).parse_args_into_dataclasses()[0]\nmodel = Net()\n"
        "model(torch.ones(cfg.steps, 8)).sum().backward()\n"
        'print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])\n'
    )
    (project / "train.py").write_text(script)
    status, out, err = fix_compile(project, "integrate", "train.py")
    assert status == 1
    assert "options.py:5: `Config` is filled by the script: give this file as well" in out
    status, out, err = fix_compile(project, "integrate", "train.py", "options.py")
    assert status == 0, out + err
    text = (project / "options.py").read_text()
    assert (
        '    compile_backend: str = field(default="inductor", metadata={"help": "backend of torch.compile"})\n' in text
    )
    assert "import compile_utils" not in text
    assert "compile_utils" in (project / "train.py").read_text()
    assert python(project, "train.py", "--compile", "--compile_backend", "eager") == "graphs 2\n"
    assert "backend of torch.compile" in python(project, "train.py", "--help")


REFUSED = {
    "a name that is taken": (
        BY_ARGPARSE.replace(
            "    def __post_init__(self):", "    def compile(self):\n        pass\n\n    def __post_init__(self):"
        ),
        "train.py:18: `compile` is something else in `Config` already",
    ),
    "in a base": (
        BY_ARGPARSE.replace(
            "@dataclass\nclass Config:", "class Base:\n    compile_mode = 1\n\n\n@dataclass\nclass Config(Base):"
        ),
        "train.py:12: `compile_mode` is something else in `Base` already",
    ),
    "a base that is not seen": (
        BY_ARGPARSE.replace("class Config:", "class Config(torch.Size):"),
        "train.py:12: what `torch.Size` has is not seen",
    ),
    "fields behind": (
        BY_ARGPARSE.replace(
            "def main", "@dataclass\nclass More(Config):\n    name: str = ''\n\n\nMore(1, 'x', 'name')\n\n\ndef main"
        ),
        "train.py:23: `More` has fields behind those of `Config`, by their order",
    ),
    "of a function": (
        TYRO.replace("main(tyro.cli(Config))", "tyro.cli(main)").replace("cfg: Config", "steps: int"),
        "as of typer, fire or jsonargparse, needs settings of its own (compile, ",
    ),
    "the Trainer's": (
        SEVERAL.replace("import HfArgumentParser", "import HfArgumentParser, TrainingArguments").replace(
            "class Config:", "class Config(TrainingArguments):"
        ),
        "train.py:29: `Config` has `torch_compile` of transformers: its Trainer compiles by that",
    ),
    "a class of every field": (
        TYRO.replace("    model = Net()", "    model = Net(**asdict(cfg))"),
        "`Net` is given every option by its name",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_a_field_is_told_and_left_alone(name: str, project: Path) -> None:
    script, message = REFUSED[name]
    (project / "train.py").write_text(script)
    before = contents(project)
    status, out, err = fix_compile(project, "integrate", "train.py")
    assert (status, err) == (1, "nothing was changed\n"), out
    assert message in out
    assert contents(project) == before


TOML = """\
    parser.add_argument("--config_file", default=None)
    parser.add_argument("--output_config", action="store_true")
    args = parser.parse_args()
    args = read_config_from_file(args, parser)
"""
READER = """\
def read_config_from_file(args, parser):
    if not args.config_file:
        return args
    if args.output_config:
        usual = vars(parser.parse_args([]))
        kept = {k: v for k, v in vars(args).items() if usual[k] != v and k not in ("config_file", "output_config")}
        with open(args.config_file, "w") as file:
            for key, value in kept.items():
                file.write(f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}\\n")
        raise SystemExit(0)
    with open(args.config_file, "rb") as file:
        found = tomllib.load(file)
    flat = {}
    for key, value in found.items():
        flat.update(value if isinstance(value, dict) else {key: value})
    return parser.parse_args(namespace=argparse.Namespace(**flat))


"""


def test_a_configuration_in_toml(project: Path) -> None:
    """As scripts do that read a file into the namespace: what is saved there loads back the same."""
    script = TRAIN.replace("    args = parser.parse_args()\n", TOML).replace("def main", READER + "def main")
    script = script.replace(
        "import argparse\n",
        "import argparse\ntry:\n    import tomllib\nexcept ImportError:\n    import tomli as tomllib\n",
    )
    script = script.replace(
        "    torch.manual_seed",
        '    print(sorted(k for k in vars(args).items() if "ompile" in k[0]))\n    torch.manual_seed',
    )
    (project / "train.py").write_text(script)
    eager = python(project, "train.py").splitlines()
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    assert python(project, "train.py").splitlines()[1:] == eager[1:]
    on = ["--compile", "--compile_backend", "eager", "--compile_dynamic", "true", "--compile_cache_size_limit", "16"]
    told = python(project, "train.py", *on).splitlines()
    assert told[-1] == "graphs 2"
    python(project, "train.py", *on, "--config_file", "saved.toml", "--output_config")
    assert "compile = true\n" in (project / "saved.toml").read_text()
    assert python(project, "train.py", "--config_file", "saved.toml").splitlines() == told
    by_hand = '[general]\nsteps = 2\n[training]\ncompile = true\ncompile_backend = "eager"\ncompile_dynamic = true\n'
    (project / "hand.toml").write_text(by_hand + "compile_cache_size_limit = 16\n")
    assert python(project, "train.py", "--config_file", "hand.toml").splitlines()[1:] == told[1:]
    (project / "hand.toml").write_text('compile = true\ncompile_dynamic = "perhaps"\n')
    told = python(project, "train.py", "--config_file", "hand.toml", fails=True)
    assert "ValueError: compile_dynamic is none of auto, true, false" in told
