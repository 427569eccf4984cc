"""Jobs of the harness's worker: which cases are refused, and what a case may say."""

from __future__ import annotations

import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from jobs import CASE, HARNESS, Jobs  # noqa: E402

WRONG = {
    "no syntax": ("def f(:", "case.py cannot be imported: SyntaxError: "),
    "nothing to import": ("import nowhere", "case.py cannot be imported: ModuleNotFoundError: No module named 'nowh"),
    "ends when imported": ("raise SystemExit(2)", "case.py cannot be imported: SystemExit: 2"),
    "no build": ("del build", "case.py defines no function build()"),
    "calls is a list": ("calls = [(torch.ones(2, 4),)]", "case.py defines no function calls()"),
    "build raises": ("def build(): raise KeyError('x')", "m: build() raised KeyError: 'x' ("),
    "build ends": ("def build(): raise SystemExit(1)", "m: build() raised SystemExit: 1 ("),
    "build returns None": ("def build(): pass", "m: build() must return a model, not NoneType"),
    "build wants arguments": ("def build(size): pass", "m: build() raised TypeError: build() missing 1 required"),
    "calls raises": ("def calls(): raise ValueError('a\\nb')", "m: calls() raised ValueError: a ("),
    "calls raises late": ("def calls():\n    yield ()\n    1 / 0", "m: calls() raised ZeroDivisionError: division by"),
    "calls returns None": ("def calls(): pass", "m: calls() must return a list of calls, not NoneType"),
    "calls returns []": ("def calls(): return []", "m: calls() returned no calls"),
    "calls returns a dict": ("def calls(): return {'x': 1}", "m: calls() must return a list of calls, not dict"),
    "calls returns text": ("def calls(): return 'x'", "m: calls() must return a list of calls, not str"),
    "calls returns a function": ("def calls(): return build", "m: calls() must return a list of calls, not function"),
    "a call is a tensor": ("def calls(): return [(torch.ones(4),), torch.ones(4)]", "m: call 2 is a Tensor; write (a"),
    "a tensor for calls": ("def calls(): return torch.ones(2, 4)", "m: call 1 is a Tensor; write (args, kwargs), a tu"),
    "train is no bool": ("train = 1", "case.py: train must be True or False, not 1"),
    "tolerance 0": ("tolerance = 0", "case.py: tolerance must be a positive number, not 0"),
    "tolerance is text": ("tolerance = '1e-3'", "case.py: tolerance must be a positive number, not '1e-3'"),
    "tolerance is NaN": ("tolerance = float('nan')", "case.py: tolerance must be a positive number, not nan"),
    "unknown dtype": ("dtype = 'float31'", "case.py: dtype must be a floating dtype of torch, not 'float31'"),
    "integer dtype": ("dtype = torch.int8", "case.py: dtype must be a floating dtype of torch, not torch.int8"),
    "unknown device": ("device = 'abacus'", "case.py: device abacus: Expected one of cpu, cuda, "),
    "no such device": ("device = 'cuda:99'", "case.py: device cuda:99: "),
    "a device of no kind": ("device = []", "case.py: device []: "),
    "a call raises": ("def calls(): return [(torch.ones(2, 4),), (torch.ones(5),)]", "m: call 2 raised RuntimeError: "),
    "a function raises": ("def calls(): return [lambda model: model.nothing]", "m: call 1 raised AttributeError: 'Lin"),
    "a call ends": ("def calls(): return [lambda model: exit(3)]", "m: call 1 raised SystemExit: 3"),
    "nothing to compare": ("def calls(): yield lambda model: None", "m: the calls return nothing that can be compared"),
    "nothing to train": (
        "train = True\ndef build(): return nn.ReLU()\ndef calls(): return [lambda model: model(torch.ones(4))]",
        "requires a gradient (of a model without parameters, give the call tensors that do: torch.randn(2, 3, requir",
    ),
    "no gradients": (
        "train = True\ndef calls(): return [lambda model: model(torch.ones(4)).detach()]",
        "m: train = True, but no output of the call requires a gradient",
    ),
    "a loss of None": (
        "train = True\ndef loss(output): pass",
        "m: call 1 raised AttributeError: 'NoneType' object has",
    ),
    "a loss of many": ("train = True\ndef loss(output): return output", "m: call 1 raised RuntimeError: grad can be"),
    "an optimizer that raises": (
        "train = True\ndef optimizer(parameters): 1 / 0",
        "m: optimizer() raised ZeroDivisionError",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_case_is_told_in_one_line(name: str, jobs: Jobs) -> None:
    text, reason = WRONG[name]
    job = jobs(text)
    status, message = job.failure
    assert (status, job.code) == ("case-error", 0), job.log
    assert reason in message
    assert "\n" not in message
    assert HARNESS not in message + job.log


def test_the_place_in_the_model_is_told(jobs: Jobs) -> None:
    _, message = jobs("def build():\n    model = nn.Linear(4, 4)\n    return lambda x: model(x[:, 1:])").failure
    assert message.endswith(f"/case.py:{CASE.count(chr(10)) + 3})")


SEEN = "def build(): return lambda *args, **kwargs: (args, kwargs)\n"
TWO = "def calls(): return [(torch.ones(2, 4),), lambda model: model(torch.ones(3, 4))]\n"


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("((1, 2), {'x': 3})", "(1, 2), {'x': 3}"),
        ("([1], {})", "(1,), {}"),
        ("(1, 2)", "(1, 2), {}"),
        ("({'a': 1}, {'b': 2})", "({'a': 1}, {'b': 2}), {}"),
        ("((1, 2), 3)", "((1, 2), 3), {}"),
        ("((1, 2), {'x': 3}, 4)", "((1, 2), {'x': 3}, 4), {}"),
        ("()", "(), {}"),
        ("{'x': 1}", "(), {'x': 1}"),
        ("__import__('collections').UserDict(x=1)", "(), {'x': 1}"),
        ("lambda model: model(5, x=6)", "(5,), {'x': 6}"),
    ],
)
def test_every_kind_of_call(call: str, arguments: str, jobs: Jobs) -> None:
    text = "def build(): return lambda *args, **kwargs: repr((args, kwargs))\n"
    assert jobs(f"{text}def calls(): yield {call}").output() == f"({arguments})"


def test_model_and_arguments_are_converted(jobs: Jobs) -> None:
    text = f"""device, dtype = "cpu", "bfloat16"\n{TWO}"""
    job = jobs(text)
    assert [job.output(call).dtype for call in (1, 2)] == [torch.bfloat16] * 2
    assert job["case"] == {
        "train": False,
        "tolerance": 1e-3,
        "device": "cpu",
        "dtype": "bfloat16",
        "classes": [],
        "blocks": [],
    }
    job = jobs(text, dtype="torch.float64", train=True, tolerance=0.5)  # the plan comes before the file
    assert [job.output(call).dtype for call in (1, 2)] == [torch.float64] * 2
    assert job["case"] == {
        "train": True,
        "tolerance": 0.5,
        "device": "cpu",
        "dtype": "float64",
        "classes": [],
        "blocks": [],
    }
    kept = jobs(SEEN + "def calls(): yield {'x': [torch.ones(2), torch.ones(2).long(), 'text']}", dtype="half").kept()
    assert [kept[f"output[1].x[{n}]"].dtype for n in (0, 1)] == [torch.float16, torch.int64]
    assert kept["output[1].x[2]"] == "text"


def test_float64(jobs: Jobs) -> None:
    job = jobs("train = True\n" + TWO, "float64")
    assert [job.output(call).dtype for call in (1, 2)] == [torch.float64] * 2
    assert {gradient.dtype for gradient in job.kept(what="gradients").values()} == {torch.float64}
    text = "def build(): return nn.Identity()\ndef calls(): return [(torch.tensor(0.1),)]"
    job = jobs(text, "float64", dtype="bfloat16")
    assert job.output() == torch.tensor(0.1).bfloat16().double()  # the arguments that the others have


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SEEN, "the model is a function: it cannot be converted to float64"),
        ("def calls(): return [lambda model: model(1)]", "the model does not run in float64: TypeError: "),
    ],
)
def test_no_float64(text: str, reason: str, jobs: Jobs) -> None:
    status, message = jobs(text, "float64").failure
    assert (status, message[: len(reason)]) == ("skipped", reason)


def test_weights_moved_by_a_rounding_take_a_branch_that_is_not_on_the_edge(jobs: Jobs) -> None:
    text = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = nn.Parameter(torch.ones(()))\n"
        "    def forward(self, x):\n        return torch.where(self.w * x > 1, 5.0, self.w * x)\n"
        "def build(): return Net()\n"
        "def calls(): return [(torch.ones(8),)]\n"
        "def compile(model, **options): return torch.compile(lambda x: model(x * (1 + 2**-23)), **options)\n"
    )
    plain, moved = (
        [jobs(text, kind, job={"nudged": nudged}).output() for kind in ("eager", "compiled")]
        for nudged in (False, True)
    )
    assert (plain[0][0], plain[1][0]) == (1, 5)
    assert torch.allclose(*moved, rtol=1e-6)
    assert not torch.equal(moved[0], plain[0])


def test_lines_outside_of_graphs_are_told_with_their_share(jobs: Jobs) -> None:
    text = (
        "class Net(nn.Module):\n    def forward(self, x):\n        torch._dynamo.graph_break()\n"
        "        return x + slow(x)\n"
        "@torch._dynamo.disable\ndef slow(x):\n    total = 0.0\n    for _ in range(2_000_000):\n        total += 1e-9\n"
        "    return total\n"
        "def build(): return Net()\n"
        "def calls(): return [(torch.ones(8),)]\n"
    )
    told = jobs(text, "compiled")["eager_lines"]
    slow = CASE.count("\n") + text[: text.index("total += ")].count("\n") + 1
    assert told[0]["where"] in {f"case.py:{slow}", f"case.py:{slow - 1}"}
    assert 0.5 < sum(line["share"] for line in told) <= 1
    assert (
        jobs("def build(): return nn.Linear(8, 8)\ndef calls(): return [(torch.ones(8),)]\n", "compiled")["counts"][
            "breaks"
        ]
        == 0
    )


def test_the_case_compiles(jobs: Jobs) -> None:
    own = "def compile(model, **options):\n    print(options)\n    "
    in_place = jobs(own + "model.forward = torch.compile(model.forward, **options)", "compiled")
    other = jobs(own + "return torch.compile(lambda x: model(x) * 0 + 7, **options)", "compiled")
    assert (in_place["launches"], other["launches"]) == (1, 1)
    assert (other.output() == 7).all()
    assert "{'backend': 'eager'}" in in_place.log
    status, message = jobs("def compile(model): pass", "compiled").failure
    assert status == "case-error"
    assert "m: compile() raised TypeError: compile() got an unexpected keyword argument 'backend'" in message


@pytest.mark.parametrize(
    ("text", "rate", "gradient"),
    [
        ("def loss(output): return 3 * output.sum()\n", 1e-3, 6),
        ("def loss(output): return output.sum()\ndef optimizer(p): return torch.optim.SGD(p, lr=0.5)\n", 0.5, 2),
    ],
)
def test_the_case_trains(text: str, rate: float, gradient: float, jobs: Jobs) -> None:
    before = jobs("def calls(): yield lambda model: model.weight").output()
    job = jobs("train = True\ndef calls(): return 2 * [(torch.ones(2, 4),)]\n" + text)
    assert all((job.kept(call, "gradients")["weight"] == gradient).all() for call in (1, 2))
    after = dict(torch.load(job.folder / "pass1-state.pt", weights_only=True))
    assert torch.allclose(after["weight"], before - 2 * rate * gradient)


LOSS = """train = True
def build(): return lambda scores, rows: (scores.exp() * rows).sum()
"""


@pytest.mark.parametrize(("asked", "names"), [("", ["[0]", "[1]"]), (".requires_grad_()", ["[0]"])])
def test_what_has_no_parameters_is_trained_by_its_arguments(asked: str, names: list[str], jobs: Jobs) -> None:
    """Most losses; where the case says which of them have gradients, those alone."""
    job = jobs(f"{LOSS}def calls(): return [(torch.zeros(1, 2){asked}, torch.full((1, 2), 2.0))]")
    wanted = {"argument[0][0]": [[2.0, 2.0]], "argument[0][1]": [[1.0, 1.0]]}
    found = {name: leaf.tolist() for name, leaf in job.kept(1, "gradients").items()}
    assert found == {name: wanted[name] for name in (f"argument[0]{end}" for end in names)}


def test_only_training_has_gradients(jobs: Jobs) -> None:
    for train in (False, True):
        text = f"train = {train}\ndef calls(): yield lambda model: (model(torch.ones(4)), torch.is_grad_enabled())"
        assert jobs(text).kept()["output[1]"] is train


def test_a_lazy_model_has_its_weights_after_the_calls(jobs: Jobs) -> None:
    job = jobs("train = True\ndef build(): return nn.LazyLinear(3)")
    assert job["status"] == "ok"
    assert {name for name, _ in torch.load(job.folder / "pass1-state.pt", weights_only=True)} == {"weight", "bias"}
    assert set(job.kept(what="gradients")) == {"weight", "bias"}


REMEMBERS = "import memory\ndef build(): return lambda x: (memory.seen.append(1), len(memory.seen))"


@pytest.mark.parametrize(
    ("text", "draws", "repeats"),
    [
        ("def build(): return nn.Dropout()", True, True),
        ("def calls(): return [(torch.randn(2, 4),)]", False, True),
        ("def calls(): return [lambda model: model(torch.randn(2, 4))]", True, True),
        (
            SEEN + "import numpy\ndef calls(): return [(random.random(), torch.rand(3), numpy.random.rand())]",
            False,
            True,
        ),
        ("import numpy\ndef build(): return lambda x: (random.random(), numpy.random.rand())", False, True),
        (REMEMBERS, False, False),
    ],
)
def test_random_numbers(text: str, draws: bool, repeats: bool, jobs: Jobs) -> None:
    job = jobs(text, files={"memory.py": "seen = []\n"})
    assert (job["draws_random"], job["repeatable"]) == (draws, repeats)
    assert jobs(text, "compiled")["repeatable"] is None


def test_compiled_code_draws_the_numbers_of_numpy_that_eager_code_draws(jobs: Jobs) -> None:
    text = "import numpy\ndef build(): return lambda x: x * float(numpy.random.rand(1).item())"
    eager, compiled = (jobs(text, kind).output() for kind in ("eager", "compiled"))
    assert torch.equal(eager, compiled)


IDS = """
def build(): return lambda ids, mask, x: (ids, mask, x, [0][LIMIT])
def calls(): return [(torch.arange(16).view(2, 8), torch.ones(2, 8, 8), torch.zeros(8))]
"""
NAMED = "def calls(batch=4): return [lambda model: model(torch.ones(batch, 4))]"


@pytest.mark.parametrize(
    ("text", "vary", "sizes", "shapes"),
    [
        ("", "batch", [2, 1, 3, 5], {"output": (5, 4)}),
        (NAMED, "batch", [4, 1, 5, 9], {"output": (9, 4)}),
        (IDS.replace("LIMIT", "0"), "batch", [2, 1, 3, 5], {"output[1]": (5, 8, 8), "output[2]": (8,)}),
        (IDS.replace("LIMIT", "len(ids) // 5"), "batch", [2, 1, 3], {"output[0]": (3, 8)}),
        (IDS.replace("LIMIT", "len(ids.T) // 16"), "sequence", [8, 4, 12], {"output[0]": (2, 12), "output[2]": (8,)}),
    ],
)
def test_sizes_are_varied(text: str, vary: str, sizes: list[int], shapes: dict[str, Any], jobs: Jobs) -> None:
    job = jobs(text, vary=vary)
    assert (job["sizes"], len(job["calls"])) == (sizes, len(sizes))
    kept = job.kept(len(sizes))
    assert {name: tuple(kept[name].shape) for name in shapes} == shapes
    assert len(jobs(text, "compiled", vary=vary, job={"sizes": sizes[:2]})["calls"]) == 2  # those that the original had


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (IDS.replace("LIMIT", "5"), "m: call 1 raised IndexError: list index out of range ("),
        (IDS.replace("LIMIT", "len(ids) != 2"), "m: the model takes its calls with one batch size only"),
        ("train = True\ndef loss(output): 1 / 0", "m: loss() raised ZeroDivisionError: division by zero ("),
        ("def calls(): return [lambda model: 1]", "m: no call has a tensor whose batch size could be varied"),
        ("def calls(batch): return [(torch.ones(batch, 4),)]", "m: calls() raised TypeError: calls() missing 1 requ"),
    ],
)
def test_sizes_that_cannot_be_varied(text: str, reason: str, jobs: Jobs) -> None:
    status, message = jobs(text, vary="batch").failure
    assert (status, message[: len(reason)]) == ("case-error", reason)


def test_a_process_that_ends_itself_leaves_no_result(jobs: Jobs) -> None:
    job = jobs("def calls(): return [lambda model: __import__('os')._exit(7)]")
    assert (job.code, job.told) == (7, {})


@pytest.mark.skipif(sys.platform != "linux" or torch.cuda.is_available(), reason="has no limit of its own")
@pytest.mark.parametrize("eaten", ["torch.ones(2**32)", "bytearray(2**34)"])
def test_memory_is_limited(eaten: str, jobs: Jobs) -> None:
    for text in (f"def calls(): return [({eaten},)]", f"def calls(): return [lambda model: {eaten}]"):
        status, message = jobs(text, plan={"memory": 2**32}).failure
        assert status == "out-of-memory", message
        assert "\n" not in message


def test_what_is_compiled_need_not_be_timed(jobs: Jobs) -> None:
    timed, untimed = (jobs(kind="compiled", plan=plan) for plan in ({}, {"untimed": True}))
    assert timed["warm"]["passes"] > 0
    assert not {"warm", "memory"} & untimed.told.keys()
    assert untimed["counts"] == timed["counts"]


def test_what_runs_eagerly_need_not_be_timed(jobs: Jobs) -> None:
    untimed = jobs(kind="eager", plan={"untimed": True, "eager_untimed": True})
    assert "warm" not in untimed.told
    assert untimed["memory"]["bytes"] > 0  # by which it is decided how many may run at a time
