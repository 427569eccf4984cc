"""The parts of the worker that need no process of their own: leaves, digests, sizes, losses, and torch's messages."""

from __future__ import annotations

import dataclasses
import enum
import logging
import os
import types
from collections import OrderedDict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch._guards import CompileContext, CompileId, compile_context  # noqa: E402

from patcher.harness import leaves, worker  # noqa: E402
from patcher.harness.listener import Listener, described, general_guard, place_names  # noqa: E402
from patcher.harness.running_case import Case, _resized, tensors  # noqa: E402

X, Y = torch.arange(4.0), torch.ones(2, 3)


@dataclasses.dataclass
class Output:
    logits: Any
    _cache: Any = None


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a = 1


class Mode(enum.IntEnum):
    FAST = 3


class Text(str):
    pass


class Speechless:
    """Its class raises when it is asked for words, as a package does that is older than its Python."""

    def __repr__(self) -> str:
        raise AttributeError("module 'collections' has no attribute 'Iterable'")


def told(value: Any) -> list[tuple[str, Any]]:
    return list(leaves.leaves(value, "o"))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (X, {"o": X}),
        ((X, []), {"o.type": "tuple", "o.len": 2, "o[0]": X, "o[1].type": "list", "o[1].len": 0}),
        (None, {"o": None}),
        ({"a": X, "b c": 2, 3: 4}, {"o.type": "dict", "o.keys": "a b c 3", "o.a": X, "o['b c']": 2, "o[3]": 4}),
        (OrderedDict(a=1), {"o.type": "OrderedDict", "o.keys": "a", "o.a": 1}),
        (deque([X]), {"o.type": "deque", "o.len": 1, "o[0]": X}),
        ({"a": X}.values(), {"o.type": "dict_values", "o.len": 1, "o[0]": X}),
        (Output(X, Y), {"o.type": "Output", "o.logits": X}),
        (types.SimpleNamespace(a=X), {"o.type": "SimpleNamespace", "o.a": X}),
        (Slotted(), {"o.type": "Slotted", "o.a": 1}),
        (np.arange(4.0, dtype=np.float32), {"o.type": "ndarray", "o": X}),
        (np.float32(2), {"o.type": "float32", "o": torch.tensor(2.0)}),
        (np.array([{}], dtype=object), {"o.type": "ndarray", "o": "object [{}]"}),
        (True, {"o": True}),
        (Mode.FAST, {"o.type": "Mode", "o": 3}),
        (Text("a"), {"o.type": "Text", "o": "a"}),
        (torch.Size([1, 2]), {"o": "torch.Size([1, 2])"}),
        (torch.float16, {"o": "torch.float16"}),
        ({2, 1}, {"o": "[1, 2]"}),
        (1j, {"o": "1j"}),
        (b"x", {"o": "b'x'"}),
        (object(), {"o.type": "object"}),
        ({object(): 1}, {"o.type": "dict", "o.keys": "<object object>", "o[<object object>]": 1}),
        (
            {Speechless(): 1, Speechless(): 2},
            {"o.type": "dict", "o.keys": "Speechless 0 Speechless 1", "o[Speechless 0]": 1, "o[Speechless 1]": 2},
        ),
        ({Speechless()}, {"o": "[Speechless]"}),
        (torch.nn.Linear(2, 2), {"o.type": "Linear"}),
        (len, {"o.type": "builtin_function_or_method"}),
        (
            torch.nested.nested_tensor([X, Y[0]], layout=torch.jagged),
            {"o.nested": "NestedTensor", "o.type": "tuple", "o.len": 2, "o[0]": X, "o[1]": Y[0]},
        ),
    ],
)
def test_leaves(value: Any, wanted: dict[str, Any]) -> None:
    found = told(value)
    assert [name for name, _ in found] == list(wanted)
    for name, leaf in found:
        assert type(leaf) is type(wanted[name])
        assert torch.equal(leaf, wanted[name]) if torch.is_tensor(leaf) else leaf == wanted[name]


def test_leaves_come_to_an_end() -> None:
    loop: list[Any] = [X]
    loop.append(loop)
    twice = types.SimpleNamespace(a=1)
    deep: Any = X
    for _ in range(1000):
        deep = [deep]
    assert [name for name, _ in told(loop)] == ["o.type", "o.len", "o[0]"]
    assert [name for name, _ in told([twice, twice])][2:] == ["o[0].type", "o[0].a", "o[1].type"]
    assert 30 < len(told(deep)) / 2 < 50
    assert tensors({"a": [X, 1], "b": Y}) == [X, Y]


def test_a_snapshot_is_not_written_to() -> None:
    written, conj = X.clone(), torch.ones(2, dtype=torch.cfloat).conj()
    taken = leaves.snapshot([("a", written), ("b", 1)])
    copied = dict(leaves.on_host([("a", written)]))
    written.zero_()
    assert torch.equal(taken[0][1], X)
    assert torch.equal(copied["a"], X)
    host = dict(leaves.on_host([("a", X.to_sparse()), ("b", conj), ("c", X.to("meta")), ("d", Y.T)]))
    assert torch.equal(host["a"], X)
    assert host["a.layout"] == "torch.sparse_coo"
    assert not host["b"].is_conj()
    assert host["c"].startswith("<tensor that cannot be compared")
    assert host["d"].is_contiguous()


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (X.clone(), True),
        (torch.stack([X, X]).T[:, 0], True),
        (X.to_sparse(), True),
        (-X, False),
        (X * torch.tensor([-1.0, 1, 1, 1]), False),  # -0.0
        (X.double(), False),
        (X.view(2, 2), False),
        (X[:3], False),
        (X.to("meta"), False),
    ],
)
def test_digests(other: Any, same: bool) -> None:
    assert (leaves.digest(X) == leaves.digest(other)) is same
    assert (leaves.digest_all([("o", X), ("n", 1)]) == leaves.digest_all([("o", other), ("n", 1)])) is same
    assert leaves.digest_all([("o", 1)]) not in (leaves.digest_all([("o", True)]), leaves.digest_all([("p", 1)]))


DTYPES = [
    torch.bool,
    torch.bfloat16,
    torch.float32,
    torch.complex64,
    torch.int64,
    torch.complex128,
    torch.float8_e4m3fn,
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_checksum_of_an_accelerator_sees_each_element_and_its_place(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaves, "CHECKED_WORDS", 7)
    states = [torch.zeros(20).to(dtype)]
    for place in range(20):
        states.append(states[0].clone())
        states[-1][place] = 1
    sums = [leaves._checksum(state) for state in states]
    assert sums == [leaves._checksum(state.clone()) for state in states]
    assert len(set(sums)) == len(states)
    monkeypatch.setattr(leaves, "CHECKED_WORDS", 1000)
    assert sums == [leaves._checksum(state) for state in states]
    assert leaves._checksum(states[0][:0]) == "0" * 16


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 5, 1000, 1001])
def test_what_is_large_is_condensed(dtype: Any, size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(leaves, "SAMPLE_ELEMENTS", 10)
    whole = torch.zeros(size).to(dtype)
    (_, kept), (_, text) = leaves.on_host([("a", whole), ("b", "text")], 5)
    assert text == "text"
    if size <= 5:
        assert torch.equal(kept, whole)
        return
    assert (kept["shape"], kept["NaN"], kept["infinity"]) == ([size], 0, 0)
    assert kept["sample"].dtype == dtype
    assert 5 < len(kept["sample"]) <= 10
    one = whole.clone()
    one[size // 2] = 1
    ((_, other),) = leaves.on_host([("a", one)], 5)
    assert other["digest"] != kept["digest"]
    assert not torch.equal(other["sums"], kept["sums"])
    torch.save(kept, tmp_path / "kept.pt")
    assert torch.load(tmp_path / "kept.pt", weights_only=True)["digest"] == kept["digest"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sample_is_made_where_the_tensor_is(dtype: Any) -> None:
    """What is made without a device is made on another one: each must be asked for where the tensor is."""
    whole = torch.ones(1001).to(dtype)
    with torch.device("meta"):
        sample, checked = leaves._sampled(whole), leaves._checksum(whole)
    assert torch.equal(sample["sums"], leaves._sampled(whole)["sums"])
    assert checked == leaves._checksum(whole)


def test_of_a_device_that_cannot_do_it_the_cpu_makes_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = leaves._sampled

    def failing(tensor: Any) -> Any:
        if isinstance(tensor, torch.Tensor):
            return usual(tensor)
        raise RuntimeError("out of memory")

    monkeypatch.setattr(leaves, "_sampled", failing)
    elsewhere = types.SimpleNamespace(device=types.SimpleNamespace(type="cuda"), cpu=lambda: X)
    assert leaves._told(elsewhere)["shape"] == list(X.shape)


def test_an_even_sample_is_not_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves, "SAMPLE_ELEMENTS", 100)
    columns = torch.arange(20.0).expand(50, 20)
    ((_, kept),) = leaves.on_host([("a", columns)], 5)
    assert len(kept["sample"].unique()) == 20


def test_sharing() -> None:
    base = torch.ones(4)
    named = [("a", base), ("b", base[1:]), ("c", X), ("d", 1), ("e", torch.ones(0)), ("f", base.to_sparse())]
    assert leaves.sharing(named, []) == [["a", "b"]]
    assert leaves.sharing(named, [("model.w", X), ("model.v", Y), ("model.u", Y)]) == [["a", "b"], ["c", "model.w"]]


def case_of(vary: str | None = None, **functions: Any) -> Case:
    module = types.ModuleType("m")
    vars(module).update(functions)
    return Case(module, "m.py", "m", False, 1e-3, None, None, vary)


def test_losses() -> None:
    x = torch.ones(3, requires_grad=True)
    weights = torch.cos(torch.arange(3.0)) / 3
    for output, wanted in (
        ({"loss": x.sum() * 2, "logits": x}, 6),
        (types.SimpleNamespace(loss=x.sum() * 5, logits=x), 15),
        ({"loss": None, "logits": [x.sum(), x.sum().half(), x]}, 6),
        ({"loss": torch.ones(()), "logits": x}, weights.sum()),
        ([x * 2, x[:0], X], 2 * weights.sum()),
        (x * 2j, 2 * weights.sum()),
    ):
        assert case_of().loss(output).item() == pytest.approx(float(wanted), abs=1e-6)
    assert case_of(loss=lambda output: output["own"]).loss({"own": 3, "loss": x.sum()}) == 3


@pytest.mark.parametrize(
    ("vary", "calls", "sizes"),
    [
        ("batch", lambda: [(torch.ones(2, 8),)], [2, 1, 3, 5]),
        ("batch", lambda: [(torch.ones(1, 8),)], [1, 2, 3]),
        ("batch", lambda: [{"n": 1}, lambda model: 0, {"x": [torch.ones(4)]}], [4, 1, 5, 9]),
        ("batch", lambda batch=7: [lambda model: 0], [7, 1, 8, 15]),
        ("sequence", lambda: [(torch.ones(2, 3), torch.ones(2, 8).long())], [8, 4, 12, 16]),
        ("sequence", lambda: [(torch.ones(2, 1),)], [1, 2]),
    ],
)
def test_candidate_sizes(vary: str, calls: Any, sizes: list[int]) -> None:
    assert case_of(vary, calls=calls).candidate_sizes() == sizes


def test_a_resized_call_keeps_what_has_another_size() -> None:
    ids, other = torch.arange(6).view(2, 3), torch.arange(3)
    (resized, text), kwargs = _resized(((ids, "x"), {"other": other}), 0, 2, 5)
    assert resized.tolist() == [[0, 1, 2], [3, 4, 5], [0, 1, 2], [3, 4, 5], [0, 1, 2]]
    assert text == "x"
    assert kwargs["other"] is other
    assert _resized((ids, other), 1, 3, 1)[0].tolist() == [[0], [3]]


def test_places_are_named_as_the_user_knows_them(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    shown = place_names({"base": str(link), "path": [str(tmp_path / "src"), ""]})
    for path, name in (
        (f"{link}/pkg/m.py:3", "pkg/m.py:3"),
        (f"{real}/pkg/m.py:3", "pkg/m.py:3"),
        (f"f ({tmp_path}/src/pkg/m.py line 3)", "f (pkg/m.py line 3)"),
        ("/opt/lib/python3/site-packages/torch/nn/m.py:3", "torch/nn/m.py:3"),
        ("/usr/lib/python3/dist-packages/numpy/m.py:3", "numpy/m.py:3"),
        (f"{os.sep}elsewhere/m.py:3", "/elsewhere/m.py:3"),
    ):
        assert shown(path) == name


@pytest.mark.parametrize(
    ("guard", "general"),
    [
        (
            "12/3: L['x'].size()[0] == 2      # return x + 1  # tmp/a/m.py:3 in f",
            "L['x'].size()[0] == 2  # return x + 1",
        ),
        (
            "0/0: tensor 'x' size mismatch at index 0. expected 2, actual 3",
            "tensor 'x' size mismatch at index 0. expected 2, actual 3",
        ),
        ("L['self'].n == 3  # m.py:7 in forward", "L['self'].n == 3"),
        ("", ""),
    ],
)
def test_guards_are_told_without_what_differs_from_run_to_run(guard: str, general: str) -> None:
    assert general_guard(guard) == general


BREAK = ("m.py:7", "call to print")
MESSAGES = {  # as several releases of torch write them
    "Graph break in user code at /r/m.py:7\nReason: call to print\nUser code traceback:\n": {"breaks": [BREAK]},
    "Graph break (details suppressed) in user code at /r/m.py:7\nReason: call to print": {"breaks": [BREAK]},
    "Graph break in user code at /r/m.py:7\nGraph Break Reason: Encountered graph break when attempting to trace CALL:"
    "\n\ncall to print\n  Explanation: no": {"breaks": [BREAK]},
    "Graph break in user code at /r/m.py:7\nGraph Break Reason: Failed to handle graph break gracefully. Skipping the "
    "function and falling back to eager.\n\ncall to print\n": {"breaks": [BREAK], "dropped": [BREAK]},
    "Recompiling function f in /r/m.py:3\n    triggered by the following guard failure(s):\n    - 0/0: x == 1": {
        "recompiles": [("f", "m.py:3", "0/0: x == 1")]
    },
    "torch._dynamo hit config.cache_size_limit (8)\n   function: 'f' (/r/m.py:3)\n   last reason: x == 1\nTo log": {
        "limits": [("f", "m.py:3", "x == 1")]
    },
    "torch._dynamo hit config.recompile_limit\n told otherwise": {
        "limits": [("", "", "torch._dynamo hit config.recompile_limit told otherwise")]
    },
    "Graph break: torch.compile cannot properly resume from this graph break, which results in a skip.\ntorch.compile "
    "will skip tracing the frame f (/r/m.py line 3) and fall back to eager.\n": {
        "dropped": [("m.py:3", "Graph break: torch.compile cannot properly resume")]
    },
    'skipping cudagraphs due to mutated inputs (1 instances). Found from : \n  File "/r/n.py", line 3, in g\n    '
    'return f(x)\n  File "/r/m.py", line 6, in f\n    y.add_(1)': {
        "skips": [("m.py:6", "mutated inputs (1 instances)")]
    },
    "disabling cudagraphs for backward due to annotation\nmore": {"skips": [("", "annotation")]},
    "skipping cudagraph due to function 3 exceeding": {"skips": [("", "function 3 exceeding")]},
    "WON'T CONVERT f /r/m.py line 3 \nTraceback\nValueError: no\ntorch._dynamo.exc.BackendCompilerFailed: it raised:\n"
    "ValueError: no": {"dropped": [("m.py:3", "ValueError: no")]},
    "a graph break, recompiling, cudagraphs": {},
    "%d words": {},
}


@pytest.mark.parametrize("text", MESSAGES)
def test_messages_are_sorted(text: str) -> None:
    listener = Listener(lambda path: path.replace("/r/", ""))
    arguments = ("no number",) if "%" in text else ()
    listener.emit(logging.LogRecord("torch", logging.WARNING, "", 0, text, arguments, None))
    heard = {key: getattr(listener, key) for key in ("breaks", "recompiles", "limits", "dropped", "skips")}
    assert {key: len(found) for key, found in heard.items() if found} == {
        key: len(found) for key, found in MESSAGES[text].items()
    }
    for key, wanted in MESSAGES[text].items():
        for got, item in zip(heard[key], wanted, strict=True):
            assert got == item or (got[0] == item[0] and got[1].startswith(item[1]))
    counts = listener.counts()
    assert [counts[key] for key in ("breaks", "recompiles", "limit_hits", "dropped_frames", "cudagraph_skips")] == [
        len(found) for found in heard.values()
    ]


LOOP = """\
Graph break in user code at /r/m.py:7
Graph Break Reason: Failed to handle graph break gracefully. Skipping the function and falling back to eager. Graph \
break encountered:

Data-dependent branching
  Explanation: Detected data-dependent branching. Dynamo does not support it.

      The branch condition involves:
        # File "/r/m.py", line 7, in forward, code: if y.sum() > 0:
    
  Hint: Always apply it.
    As in torch.where.
  Hint: Use `torch.cond`.

  Developer debug context: attempted to jump with <object at 0x7f00>

 For more details about this graph break, please visit: https://site/gb/gb0170.html

*** While handling this graph break, another graph break occurred: ***

graph break in loop
  Explanation: torch.compile detected a graph break in a for/while loop.
  Hint: This graph break may have been caused by an earlier graph break.

  Developer debug context: frame skipped: forward (/r/m.py line 14)

 For more details about this graph break, please visit: https://site/gb/gb7000.html

Stack variable source attribution:
  DictValuesIterator() originated from:
  Hint: no

User code traceback:
  File "/r/m.py", line 7, in forward
    if y.sum() > 0:
"""  # noqa: W293
CAUSE = {
    "explanation": "Detected data-dependent branching. Dynamo does not support it.\n\n"
    '  The branch condition involves:\n    # File "m.py", line 7, in forward, code: if y.sum() > 0:',
    "hints": ["Always apply it.\nAs in torch.where.", "Use `torch.cond`."],
    "context": "attempted to jump with <object>",
    "url": "https://site/gb/gb0170.html",
}


def heard(*texts: str, error: BaseException | None = None) -> Listener:
    listener = Listener(lambda path: path.replace("/r/", ""))
    info = (type(error), error, None) if error else None
    for text in texts:
        listener.emit(logging.LogRecord("torch", logging.WARNING, "", 0, text, (), info))
    return listener


def test_what_a_break_says_of_its_first_cause() -> None:
    told = described(heard(LOOP, LOOP.replace("Always", "Never")))
    row = {"where": "m.py:7", "reason": "Data-dependent branching", "count": 2, **CAUSE}
    assert told["breaks"] == told["dropped_frames"] == [row]  # one place and reason: the first one's words


def test_what_is_missing_is_taken_from_the_next_one() -> None:
    short = "Graph break (user stack suppressed due to duplicate graph break) in user code at /r/m.py:7\nReason: {}"
    (row,) = described(heard(short.format("Data-dependent branching"), LOOP))["breaks"]
    assert row == {"where": "m.py:7", "reason": "Data-dependent branching", "count": 2, **CAUSE}


@pytest.mark.parametrize("text", [text for text in MESSAGES if "Graph break in user" in text and "Explan" not in text])
def test_a_break_without_an_explanation(text: str) -> None:
    (row,) = described(heard(text))["breaks"]
    assert row.keys() == {"where", "reason", "count"}


def test_long_words_are_clipped() -> None:
    long = LOOP.replace("attempted", "x" * 5000).replace("Detected", "y" * 5000).replace("Always", "z" * 5000)
    (row,) = described(heard(long))["breaks"]
    assert [len(row["context"]), len(row["explanation"]), len(row["hints"][0])] == [400, 2000, 2000]


def test_a_frame_that_is_left_is_told_with_its_cause() -> None:
    (text,) = (text for text in MESSAGES if "will skip tracing" in text)
    cause = LOOP.partition("encountered:\n\n")[2].partition("\n\n***")[0]
    (row,) = described(heard(text, error=RuntimeError(cause)))["dropped_frames"]
    assert row["where"] == "m.py:3"
    assert CAUSE.items() <= row.items()


RECOMPILED = """\
Recompiling function f in /r/m.py:3
    triggered by the following guard failure(s):
    - 0/1: len(L['x']) == 2
    - User stack trace:
    -   File "/r/n.py", line 5, in g
    -     x.append(1)
    -   File "{}", line 9, in h
    - 0/0: len(L['x']) == 1
    - User stack trace:
    -   File "/r/o.py", line 6, in g
"""
GUARD = "0/7: x == 1      # return x + 1  # {}:3 in f"


@pytest.mark.parametrize(
    ("text", "key", "source"),
    [
        (RECOMPILED.format("/r/p.py"), "recompiles", "p.py:9"),
        (RECOMPILED.format(torch.nn.__file__), "recompiles", "n.py:5"),
        (f"Recompiling function f in /r/m.py:3\n    - {GUARD.format('n.py')}", "recompiles", "n.py:3"),
        (f"Recompiling function f in /r/m.py:3\n    - {GUARD.format('arness/worker.py')}", "recompiles", "WORKER:3"),
        ("Recompiling function f in /r/m.py:3\n    - 0/0: x == 1", "recompiles", None),
        ("Recompiling function f in /r/m.py:3\n", "recompiles", None),
        (
            f"torch._dynamo hit config.limit (8)\n  function: 'f' (/r/m.py:3)\n  last reason: {GUARD.format('n.py')}\n",
            "limit_hits",
            "n.py:3",
        ),
        (
            "torch._dynamo hit config.limit (8)\n  function: 'f' (/r/m.py:3)\n  last reason: 0/7: x == 1\n"
            'User stack trace:\n  File "/r/n.py", line 5, in g\nTo log',
            "limit_hits",
            "n.py:5",
        ),
    ],
)
def test_which_code_has_put_a_guard_there(text: str, key: str, source: str | None) -> None:
    (row,) = described(heard(text))[key]
    assert row.get("source") == (source and source.replace("WORKER", str(worker.__file__)))
    assert row.keys() - {"source"} == {"function", "where", "guard", "count"}


def test_a_frame_is_dropped_once() -> None:
    rest = "Graph break in user code at m.py:7\nReason: Compiling up to, then skipping the rest of the function. x"
    whole = rest.replace("m.py:7", "m.py:3").replace("skipping the rest of the", "Skipping the")
    for frames, dropped in (((0, 0), ["m.py:3"]), ((0, 1), ["m.py:7", "m.py:3"]), ((None, None), ["m.py:7", "m.py:3"])):
        listener = Listener(str)
        for frame, text in zip(frames, (rest, whole), strict=True):
            known = CompileContext(CompileId(frame_id=frame, frame_compile_id=0)) if frame is not None else None
            with compile_context(known):
                listener.emit(logging.LogRecord("torch", logging.DEBUG, "", 0, text, (), None))
        assert [where for where, _ in listener.dropped] == dropped
        assert len(listener.breaks) == 2


def test_reasons_are_counted_in_their_order() -> None:
    listener = Listener(str)
    listener.breaks += [("b", "x"), ("a", "y"), ("b", "x")]
    listener.limits += [("f", "a", "0/7: x == 1"), ("f", "a", "1/7: x == 1")]
    listener.skips += [("", "a"), ("", "a")]
    told = described(listener)
    assert told["breaks"] == [{"where": "b", "reason": "x", "count": 2}, {"where": "a", "reason": "y", "count": 1}]
    assert told["limit_hits"] == [{"function": "f", "where": "a", "guard": "x == 1", "count": 2}]
    assert told["cudagraph_skips"] == [{"where": "", "reason": "a", "count": 2}]
    assert told["recompiles"] == told["dropped_frames"] == []
