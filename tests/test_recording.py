"""Programs are recorded once, and come to the same call again in each process that measures."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from forked import Shared

from patcher.harness.cases import CaseError, find
from patcher.harness.processes import usual_variables
from patcher.run import recording
from patcher.run.program import parsed
from patcher.run.recorded import Live
from patcher.run.recording import Recording, RecordingError, record, recorded_in, save

pytestmark = pytest.mark.slow

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        x = self.second(torch.relu(self.first(x)))
        if x.sum() > 0:
            x = x * 2
        return x


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    @torch.no_grad()
    def generate(self, x, times):
        for _ in range(times):
            x = self.net(x)
        return x
"""

TARGETS = """
from net import *

def mask(x):
    return x * (x > 0)

class Big(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def scaled(self, x):
        return x * 3
    def forward(self, x):
        return self.net(mask(self.scaled(x)))

loss, net = nn.MSELoss(), Big()
for rows in (2, 3):
    loss(net(torch.ones(rows, 4)), torch.ones(rows, 4)).backward()
"""

PROGRAMS = {
    "training": """
from net import *
model = Net()
compiled = torch.compile(model, dynamic=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = nn.functional.mse_loss(compiled(torch.randn(2 + step % 2, 4)), torch.zeros(()))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "method": """
from net import *
model = Whole().eval()
for rows in (1, 2, 3):
    model.generate(torch.randn(rows, 4), times=2)
""",
    "parts": """
from net import *
class Guided(Net):
    @torch.no_grad()
    def guided(self, x, scale):
        half = self.forward(torch.cat([x, -x]))
        return half[: len(x)] + scale * half[len(x) :]
    def forward(self, x):
        return self.second(torch.relu(self.first(x)))
model = Guided().eval()
for rows in (1, 2, 3):
    model.guided(torch.randn(rows, 4), 0.5)
""",
    "own name": """
from net import *

def generate(model, x, times):
    for _ in range(times):
        x = model.net(x)
    return x

Whole.generate = generate
model = Whole().eval()
with torch.no_grad():
    for rows in (1, 2, 3):
        generate(model=model, x=torch.randn(rows, 4), times=2)
""",
    "function": """
from net import *
model = Net()
optimizer = torch.optim.Adam(model.parameters())

@torch.compile
def step(x):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()

for _ in range(3):
    step(torch.randn(2, 4))
""",
    "optimizer": """
from net import *
model = Net()
optimizer = torch.optim.AdamW(model.parameters())

@torch.compile
def update():
    optimizer.step()

for _ in range(3):
    model(torch.randn(2, 4)).square().mean().backward()
    update()
    optimizer.zero_grad()
""",
    "arguments": """
from net import *

@torch.compile(dynamic=False)
def step(model, optimizer, x):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    step(model, optimizer, torch.randn(2, 4))
""",
    "within": """
from net import *

class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
        self.step = torch.compile(self._step)

    def _step(self, x):
        return self.net(x)

    def fit(self):
        return [self.step(torch.randn(rows, 4)) for rows in (1, 2)]

with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
    Task().fit()
""",
    "raising": """
from net import *
model = Net()
for rows in (2, 3):
    model(torch.ones(rows, 4))
    try:
        model(torch.ones(rows, 5))
    except RuntimeError:
        pass
""",
    "loading": """
from net import *

class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.scale = nn.BatchNorm1d(4).eval()

    def __len__(self):
        return 96

    def __getitem__(self, number):
        return self.scale(torch.ones(1, 4)).detach()[0]

model = torch.compile(Net())
for x in torch.utils.data.DataLoader(Data(), batch_size=48, num_workers=1):
    model(x)
""",
    "in place": """
from net import *
model = Whole()
model.net.compile(mode="reduce-overhead")
with torch.no_grad():
    model.generate(torch.ones(1, 4), 2)
""",
    "own call": """
from net import *
class Odd(tuple):
    def __len__(self):
        raise NotImplementedError
class Own(Net):
    def __call__(self, x):
        return self.forward(x)
model = Own()
model.odd = Odd((1, 2))
for rows in (1, 2, 3):
    model(torch.randn(rows, 4))
""",
    "own call in a loop": """
from net import *
class Own(Net):
    def __call__(self, x):
        return super().__call__(x)
model = Whole().eval()
model.net = Own()
for rows in (1, 2, 3):
    model.generate(torch.randn(rows, 4), times=2)
""",
    "plain": """
from net import *
if __name__ == "__main__":
    model = Net().eval()
    with torch.inference_mode():
        print(model(torch.randn(2, 4)).shape)
""",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def forking(folder: Path, shared: Shared, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder; programs and what measures them are forks of a parent that has imported torch."""
    monkeypatch.setattr("patcher.run.recording._once", partial(recording._once, forks=shared))
    monkeypatch.setattr("test_recording.run", partial(forked, shared))
    return folder


def run(worker: Path, spec: Path) -> None:
    """Run the worker in a process of its own."""
    subprocess.run([sys.executable, str(worker), str(spec)], check=True, capture_output=True, cwd=spec.parent)


def forked(shared: Shared, worker: Path, spec: Path) -> None:
    """Run the worker in a fork."""
    with spec.with_suffix(".log").open("wb") as out:
        fork = shared.start(worker, str(spec), usual_variables(), out.fileno())
    assert fork is not None
    assert fork.wait() == 0, spec.with_suffix(".log").read_text()


def recorded(folder: Path, text: str, target: str = "") -> Recording:
    (folder / "program.py").write_text(text)
    return record(parsed(["python", "program.py"]), sys.executable, folder / "recording", 60, target)


SPEC: dict[str, Any] = {
    "schema": 1,
    "tool": "fix-compile",
    "command": [],
    "tree": {},
    "modes": ["default"],
    "backend": "eager",
    "promise": "bitwise",
    "quick": True,
    "verbose": False,
    "seconds": 60,
    "memory": None,
    "overlay": [],
    "path": [],
}


def measured(folder: Path, found: Recording, kind: str, blocks: str = "", **other: Any) -> dict[str, Any]:
    """What the worker tells of one variant. ``blocks``: the path of modules that are compiled one by one."""
    out = folder / f"job-{kind}"
    case = {"name": "program", "file": found.case.file, "recorded": found.case.recorded, "vary": None}
    tree, settings = ("patched", [{"kind": "blocks", "name": blocks, "value": ""}]) if blocks else ("original", [])
    job = {"case": 0, "tree": tree, "kind": kind, "mode": "default", "folder": str(out)}
    spec = folder / f"{kind}.json"
    spec.write_text(
        json.dumps({**SPEC, "base": str(folder), "cases": [case], "job": job, "settings": settings, **other})
    )
    worker = Path(__file__).resolve().parents[1] / "patcher" / "harness" / "worker.py"
    run(worker, spec)
    told: dict[str, Any] = json.loads((out / "result.json").read_text())
    assert told["status"] == "ok", told["message"]
    return told


@pytest.mark.parametrize(
    ("name", "target", "signatures", "called", "compiled", "trains", "graphs"),
    [
        ("training", "Net", 2, 4, True, True, 2),
        ("method", "Whole.generate", 3, 3, False, False, 6),
        ("parts", "Guided.guided", 3, 3, False, False, 3),
        ("own name", "Whole.generate", 3, 3, False, False, 6),
        ("own call", "Own", 3, 3, False, False, 2),
        ("own call in a loop", "Whole.generate", 3, 3, False, False, 6),
        ("function", "step", 2, 3, True, False, 2),
        ("in place", "Whole.generate", 1, 1, True, False, 2),
        ("optimizer", "update", 2, 3, True, False, 1),
        ("plain", "Net", 1, 1, False, False, 1),
        ("arguments", "step", 2, 3, True, False, 2),
        ("within", "Task._step", 2, 2, True, False, 2),
        ("raising", "Net", 2, 2, False, False, 2),
        ("loading", "Net", 2, 2, True, False, 2),
    ],
)
def test_a_program_is_recorded_and_measured_at_its_call(
    forking: Path, name: str, target: str, signatures: int, called: int, compiled: bool, trains: bool, graphs: int
) -> None:
    found = recorded(forking, PROGRAMS[name])
    told = (found.target, found.signatures, found.called, found.compiled, found.trains)
    assert told == (target, signatures, called, compiled, trains)
    ran = {"net.py"} if name != "optimizer" else set()
    ran |= {"program.py"} if compiled or name.startswith("own") or name == "parts" else set()
    assert {Path(file).name for file in found.files} == ran
    eager, with_graphs = (measured(forking, found, kind) for kind in ("eager", "compiled"))
    assert eager["repeatable"] is True
    assert eager["weights"] == with_graphs["weights"]
    assert with_graphs["launches"] >= graphs
    assert len(eager["calls"]) == signatures
    assert eager["case"]["train"] is trains


def test_a_method_that_calls_each_part_once_is_compiled_itself(forking: Path) -> None:
    found = recorded(forking, PROGRAMS["parts"])
    assert found.compiling("dynamic=True") == ["model.guided = torch.compile(model.guided, dynamic=True)"]
    assert measured(forking, found, "compiled")["launches"] == 3, "one graph for each call"
    assert recorded(forking, PROGRAMS["method"]).compiling("") == ["model.net.compile()"]


BLOCKS = """
from net import *
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 4)
    def forward(self, x):
        return torch.relu(self.one(x))
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block(), Block()])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
    @torch.no_grad()
    def generate(self, x):
        return self(self(x))
model = Deep()
"""


@pytest.mark.parametrize(
    ("text", "launches"),
    [
        ("compiled = torch.compile(model)\nfor _ in range(2): compiled(torch.ones(2, 4)).sum().backward()", 3),
        ("model.compile()\nfor _ in range(2): model.generate(torch.ones(2, 4))", 6),
        ("model(torch.ones(2, 4))", 3),
    ],
)
def test_blocks_of_a_recorded_model_are_compiled_in_its_place(forking: Path, text: str, launches: int) -> None:
    found = recorded(forking, BLOCKS + text)
    assert measured(forking, found, "eager")["case"]["blocks"] == [["layers", "program.Deep"]]
    told = measured(forking, found, "compiled", blocks="layers")
    assert told["settled"][-1]["launches"] == launches
    assert told["counts"]["graphs"] < 3, "the blocks share their code"


@pytest.mark.parametrize(("compiled", "handles", "has"), [(True, [], False), (True, [1], True), (False, [], True)])
def test_no_parts_where_the_program_compiles_inside_of_the_call(compiled: bool, handles: list[int], has: bool) -> None:
    live = SimpleNamespace(_recording={"compiled": compiled}, _watcher=SimpleNamespace(handles=handles))
    model = torch.nn.Linear(1, 1)
    assert (Live.parted(live, model) is model) is has  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "what"), [("own call", "model"), ("own call in a loop", "model.net")])
def test_of_a_class_that_is_called_in_its_own_way_forward_is_compiled(forking: Path, name: str, what: str) -> None:
    assert recorded(forking, PROGRAMS[name]).compiling("") == [f"{what}.forward = torch.compile({what}.forward)"]


def test_a_method_of_the_users_comes_before_those_of_a_trainer(forking: Path) -> None:
    """As those of a class from an installed package, which a trainer calls."""
    package = forking / "site-packages"
    package.mkdir()
    (package / "trainer.py").write_text(
        "from torch import nn\n\n\nclass Base(nn.Module):\n    def fit(self, x):\n        return self.step(x)\n"
    )
    text = (
        "import sys\nsys.path.append('site-packages')\nfrom net import *\nfrom trainer import Base\n\n"
        "class Mine(Base):\n    def __init__(self):\n        super().__init__()\n        self.net = Net()\n\n"
        "    def step(self, x):\n        return self.net(x)\n\nMine().fit(torch.ones(2, 4))\n"
    )
    assert recorded(forking, text).target == "Mine.step"


def test_what_an_optimizer_compiles_is_called_in_its_step(forking: Path) -> None:
    found = recorded(
        forking,
        "from net import *\n"
        "class Rate(torch.optim.Optimizer):\n"
        "    def __init__(self, parameters):\n"
        "        super().__init__(parameters, {'lr': 0.1})\n"
        "        self._update = torch.compile(self.update)\n"
        "    @torch.no_grad()\n"
        "    def update(self, p):\n"
        "        p.sub_(self.state[p]['seen'].mul_(0.9).add_(p.grad))\n"
        "    def step(self):\n"
        "        for p in self.param_groups[0]['params']:\n"
        "            if 'seen' not in self.state[p]:\n"
        "                self.state[p]['seen'] = torch.zeros_like(p)\n"
        "            self._update(p)\n"
        "model = Net()\n"
        "optimizer = Rate(model.parameters())\n"
        "for _ in range(3):\n"
        "    optimizer.zero_grad()\n"
        "    model(torch.ones(2, 4)).sum().backward()\n"
        "    optimizer.step()\n",
    )
    assert (found.target, found.compiled) == ("Rate.step", True)
    told = measured(forking, found, "compiled")
    assert (told["status"], told["launches"] > 0) == ("ok", True)


def test_an_object_that_holds_the_model_goes_on_from_call_to_call(forking: Path) -> None:
    found = recorded(
        forking,
        "from net import *\n"
        "class Trainer:\n"
        "    def __init__(self):\n"
        "        self.parts, self.log = [Net()], []\n"
        "    @torch.compile\n"
        "    def loss(self, x):\n"
        "        self.log.append(len(self.log))\n"
        "        return self.parts[0](x).sum() * self.log[-1]\n"
        "trainer = Trainer()\n"
        "for _ in range(3):\n"
        "    trainer.loss(torch.ones(2, 4)).backward()\n",
    )
    assert (found.target, found.trains) == ("Trainer.loss", True)
    told = measured(forking, found, "compiled")
    assert told["counts"]["limit_hits"] > 0  # it is compiled for each length, as in the program


def test_gradients_of_gradients_are_asked_of_compiled_code_too(forking: Path) -> None:
    found = recorded(
        forking,
        "from net import *\n"
        "critic = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))\n"
        "for _ in range(3):\n"
        "    x = torch.ones(2, 4, requires_grad=True)\n"
        "    slope, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)\n"
        "    (slope.norm() - 1).square().backward()\n",
    )
    assert measured(forking, found, "eager")["status"] == "ok"
    with pytest.raises(AssertionError, match="double backward"):
        measured(forking, found, "compiled", backend="aot_eager")


def test_a_recorded_program_is_measured_with_other_batch_sizes(forking: Path) -> None:
    text = "net = torch.compile(Net())\nfor _ in range(2):\n    net(torch.ones(2, 4)).sum().backward()\n"
    found = recorded(forking, f"from net import *\n{text}")
    settings = [{"kind": "argument", "name": "dynamic", "value": True}]
    case = {"name": "program", "file": found.case.file, "recorded": found.case.recorded, "vary": None}
    job = {"case": 0, "tree": "patched", "probe": "vary-batch", "mode": "default", "folder": str(forking / "job")}
    spec = {**SPEC, "base": str(forking), "cases": [case], "job": job, "settings": settings}
    (forking / "spec.json").write_text(json.dumps(spec))
    run(Path(__file__).resolve().parents[1] / "patcher" / "harness" / "probes.py", forking / "spec.json")
    told = json.loads((forking / "job" / "result.json").read_text())
    assert (told["status"], [row["name"] for row in told["settings"]][:2]) == ("ok", ["automatic", "marked"])
    sizes = {size for step in told["steps"] for size in step["sizes"]}
    first, *later = told["settings"][0]["steps"]
    assert len(sizes) > 2 and first["graphs"] == 1
    assert (
        sum(step["recompiles"] for step in later) <= 1
    )  # dynamic=True is in force; a size of 1 is compiled for itself


def test_what_prepares_data_is_not_the_model(forking: Path) -> None:
    text = (
        "from net import *\n\nclass Scale(nn.Module):\n    def forward(self, x):\n        return x / 2\n\n"
        "scale, net = Scale(), Net()\nnet(torch.stack([scale(torch.ones(4)) for _ in range(50)]))\n"
    )
    assert recorded(forking, text).target == "Net"


def test_a_program_that_trains_is_recorded_in_training_mode(forking: Path) -> None:
    """It evaluates first, with the same shapes; what is measured is a training step, with dropout."""
    text = (
        "from net import *\nnet = nn.Sequential(Net(), nn.Dropout(0.5))\n\n"
        "def evaluate():\n    net.eval()\n    with torch.no_grad():\n        for _ in range(3):\n"
        "            net(torch.ones(2, 4))\n    net.train()\n\n"
        "for _ in range(2):\n    evaluate()\n    net(torch.ones(2, 4)).sum().backward()\n"
    )
    found = recorded(forking, text)
    assert (found.target, found.signatures, found.called, found.trains) == ("Sequential", 2, 8, True)
    told = json.loads((found.folder / "recording.json").read_text())
    assert told["mode"] == {"grad": True, "training": True}
    assert measured(forking, found, "eager")["case"]["train"] is True


def test_gradients_reach_tensors_in_objects_and_a_scaled_loss_is_scaled_back(forking: Path) -> None:
    text = (
        "from net import *\n\nclass Drawn:\n    def __init__(self, mean):\n        self.mean = mean\n\n"
        "class Head(Net):\n    def forward(self, x):\n        return Drawn(super().forward(x))\n\n"
        "head, scaler = Head(), torch.amp.GradScaler('cpu')\noptimizer = torch.optim.SGD(head.parameters(), 0.1)\n"
        "for _ in range(2):\n    optimizer.zero_grad()\n    "
        "scaler.scale(head(torch.ones(2, 4)).mean.sum()).backward()\n"
        "    scaler.step(optimizer)\n    scaler.update()\n"
    )
    found = recorded(forking, text)
    assert (found.target, found.trains) == ("Head", True)
    kept = torch.load(found.folder / "gradients-0.pt")
    assert {place: gradient.max().item() for place, gradient in kept.items()} == {"[0].mean[0]": 1024.0}
    eager, compiled = (measured(forking, found, kind) for kind in ("eager", "compiled"))
    assert eager["weights"] == compiled["weights"]


@pytest.mark.parametrize(
    ("target", "told", "compiling"),
    [
        ("MSELoss", "MSELoss", "model.compile()"),
        ("Linear", "Linear", "model.compile()"),  # an inner module
        ("program.py:Big", "Big", "model.compile()"),
        ("Big.forward", "Big", "model.compile()"),
        ("net.py:Net", "Net", "model.compile()"),
        ("mask", "mask", "mask = torch.compile(mask)"),
        ("Big.scaled", "Big.scaled", "model.scaled = torch.compile(model.scaled)"),
    ],
)
def test_another_target_is_named(forking: Path, target: str, told: str, compiling: str) -> None:
    found = recorded(forking, TARGETS, target)
    assert (found.target, found.compiling("")) == (told, [compiling])
    assert measured(forking, found, "compiled")["launches"] > 0


def test_where_no_target_has_the_name_those_that_are_called_are_listed(forking: Path) -> None:
    with pytest.raises(RecordingError, match=r"no call of Other was seen; .*: Big \(2 calls\), Net \(2 calls\)"):
        recorded(forking, TARGETS, "Other")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("print('nothing')\n", "no module was made; have the program call its model"),
        ("from net import *\nNet()\n", "3 modules were made, and none was called; have the program"),
        ("raise RuntimeError('no weights')\n", "fails before a model is called: RuntimeError: no weights"),
        ("import os\nos._exit(3)\n", "ended with status 3"),
    ],
)
def test_a_program_that_calls_no_model_is_told(forking: Path, text: str, why: str) -> None:
    with pytest.raises(RecordingError, match=why):
        recorded(forking, text)


def test_pytest_is_a_program(forking: Path) -> None:
    (forking / "test_net.py").write_text(
        "from net import *\n\ndef test_forward():\n    assert Net()(torch.ones(1, 4)).shape == (1, 4)\n"
    )
    found = record(parsed(["python", "-m", "pytest", "-q", "test_net.py"]), sys.executable, forking / "r", 60)
    assert found.target == "Net"
    assert measured(forking, found, "eager")["repeatable"] is True


def test_torchrun_with_one_process_is_a_program(folder: Path) -> None:
    (folder / "group.py").write_text(
        "from net import *\n"
        "torch.distributed.init_process_group('gloo')\n"
        "model = nn.parallel.DistributedDataParallel(Net())\n"
        "model(torch.ones(2, 4)).sum().backward()\n"
    )
    command = ["python", "-m", "torch.distributed.run", "--nproc_per_node", "1", "group.py"]
    found = record(parsed(command), sys.executable, folder / "r", 60)
    assert found.trains
    assert found.target == "DistributedDataParallel"
    assert measured(folder, found, "eager")["status"] == "ok"


def test_a_recording_is_saved_as_a_case_file_that_runs_by_itself(forking: Path) -> None:
    found = recorded(forking, PROGRAMS["training"])
    file = forking / "cases" / "net.py"
    save(found, file, ["python", "program.py"], sys.executable)
    shutil.rmtree(found.folder)
    (case,) = find([str(file)], {}, None)
    assert Path(case.recorded) == file.with_suffix(".recorded")
    kept = recorded_in(Path(case.recorded))
    assert (kept.target, kept.trains, kept.signatures) == ("Net", True, 2)
    told = measured(file.parent, kept, "compiled")
    assert told["launches"] >= 2
    (file.parent / "other.py").write_text("RECORDED = {}\n")
    assert [case.recorded for case in find([str(file.parent)], {}, None)] == [case.recorded]
    description = file.with_suffix(".recorded") / "recording.json"
    for text in ("{", json.dumps({"calls": [{"file": "gone.pt"}]}), None):
        description.unlink() if text is None else description.write_text(text)
        with pytest.raises(CaseError, match=r"net\.py: its recording .*net\.recorded is missing or incomplete"):
            find([str(file)], {}, None)
