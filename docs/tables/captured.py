"""Which ways of asking for a tensor's data this torch takes into a graph, found out by running each of them.

    python docs/tables/captured.py > captured.json
    python docs/tables/captured.py --into patcher/facts/tables/captured.json    # beside other versions of torch

One function for each way (`WAYS`), run once plainly and then in each of the `SETTINGS`: it is captured there when it
gives the same as when it runs plainly, in one graph. Standard library and torch, nothing of ours.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib.util
import io
import json
import logging
import os
import re
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch._dynamo

_SCALARS, _SHAPES = "capture_scalar_outputs", "capture_dynamic_output_shape_ops"
_PRINTING = frozenset({print, warnings.warn, logging.Logger.error, logging.Logger.info})
#: What of Dynamo's configuration each setting is, by name; all else is as it always is.
CONFIGURED: Mapping[str, Mapping[str, Any]] = {
    "both flags": {_SCALARS: True, _SHAPES: True},
    **{name: {name: True} for name in (_SCALARS, _SHAPES, "allow_rnn", "trace_autograd_ops")},
    "all three": {_SCALARS: True, _SHAPES: True, "allow_rnn": True},
    **{name: {name: set(_PRINTING)} for name in ("reorderable_logging_functions", "ignore_logging_functions")},
}
#: How a function may be compiled: by name.
SETTINGS = ("default", *CONFIGURED, "fullgraph", "export strict", "script")
#: What each function is given: numbers, a mask of four rows, three whole numbers, one of them alone.
_ARGUMENTS = "x: torch.Tensor, mask: torch.Tensor, counts: torch.Tensor, one: torch.Tensor"
#: What code decides on, by name: data that only a run tells.
DECIDED_ON: Mapping[str, str] = {
    "a tensor": "counts.sum()",
    "an item": "counts.sum().item()",
    "an item of an element": "counts[0].item()",
    "an element of tolist": "counts.tolist()[0]",
}
#: How code decides on it. After a name: what stands for it.
DECIDING: Mapping[str, str] = {
    "if": "y = x * 1\nif {0} > 1:\n    y = x * 2",
    "while": "y = x * 1\nn = {0}\nwhile n > 1:\n    y = y * 2\n    n = n - 3",
    "conditional expression": "y = x * (1 if {0} > 1 else 2)",
    "truth": "y = x * 1\nif {0}:\n    y = x * 2",
    "raise if": "y = x * 1\nif {0} > 100:\n    raise ValueError",
    "range": "y = x * 1\nfor i in range({0}):\n    y = y * 2",
}
#: What has as many elements as the data says, by name.
SIZED_BY_DATA: Mapping[str, str] = {
    "nonzero": "mask.nonzero()",
    "nonzero as tuple": "mask.nonzero(as_tuple=True)[0]",
    "argwhere": "torch.argwhere(mask)",
    "where": "torch.where(mask)[0]",
    "unique": "torch.unique(counts)",
    "unique_consecutive": "torch.unique_consecutive(counts)",
    "masked_select": "counts.masked_select(counts > 1)",
    "mask index": "counts[counts > 1]",
    "repeat_interleave": "torch.arange(3).repeat_interleave(counts)",
    "bincount": "torch.bincount(counts, minlength=2)",
}
#: What is done with that.
SIZED: Mapping[str, str] = {
    "{0}": "y = {0}",
    "loop over {0}": "y = x * 1\nfor value in {0}:\n    y = y * 2",
    "tolist of {0}": "y = x * len({0}.tolist())",
}
#: All others by name: statements that bind ``y``, or something with ``y`` in it.
OTHERS: Mapping[str, str] = {
    "item": "y = x * counts.sum().item()",
    "int": "y = x * int(counts.sum())",
    "float": "y = x * float(counts.sum())",
    "bool": "y = x * bool(counts.sum())",
    "tolist": "y = x * counts.tolist()[0]",
    "loop over rows": "y = x * 1\nfor row in counts:\n    y = y * row",
    "loop over tolist": "y = x * 1\nfor n in counts.tolist():\n    y = y * n",
    "item as size": "y = torch.zeros(counts.sum().item())",
    "item as end of a slice": "y = torch.arange(9)[: counts.sum().item()]",
    "tensor as size": "y = torch.zeros(counts.sum())",
    "tensor as end of arange": "y = torch.arange(counts.sum())",
    "split by tolist": "y = torch.ones(6).split(counts.tolist())[0]",
    "max of tolist": "y = x * max(counts.tolist())",
    "numpy": "y = x * torch.from_numpy(counts.cpu().numpy())[0]",
    "masks on both sides": "y = x * 1\ny[mask] = x[mask]",
    "one_hot": "y = torch.nn.functional.one_hot(counts)",
    "assert": "y = x * 1\nassert counts.sum() < 100, 'large'",
    "check of an item": "y = x * 1\ntorch._check(counts.sum().item() < 100)",
    "check of a length": "y = x * 1\ntorch._check(len(mask.nonzero()) < 100)",
    "check that an item is not": "y = x * 1\ntorch._check(not counts.sum().item() > 100)",
    "check with a message": "y = x * 1\ntorch._check(counts.sum().item() < 100, lambda: 'large')",
    "assert of an item": "y = x * 1\nassert counts.sum().item() < 100, 'large'",
    "assert of an item that is told": "y = x * 1\nn = counts.sum().item()\nassert n < 100, f'{n}'",
    "assert of two": "y = x * 1\nn = counts.sum().item()\nassert n > 0 and n < 100",
    "assert of a chain": "y = x * 1\nn = counts.sum().item()\nassert 0 < n < 100",
    "if of an item that was checked": "y = x * 1\nn = counts.sum().item()\ntorch._check(n > 1)\n"
    "if n > 1:\n    y = x * 2",
    "if of an item that was asserted": "y = x * 1\nn = counts.sum().item()\nassert n > 1\nif n > 1:\n    y = x * 2",
    "if of an item that was a size": "n = counts.sum().item()\n"
    "y = torch.ones(n) + torch.ones(6)\nif n > 2:\n    y = y * 2",
    "if of an item of an input": "y = x * 1\nif one.item() > 1:\n    y = x * 2",
    "if of an item of a constant": "y = x * 1\nif torch.tensor(3).item() > 1:\n    y = x * 2",
    "range of an item of an input": "y = x * 1\nfor i in range(one.item()):\n    y = y * 2",
    "if of an int": "y = x * 1\nif int(counts.sum()) > 1:\n    y = x * 2",
    "if of a float": "y = x * 1\nif float(counts.sum()) > 1:\n    y = x * 2",
    "range of an int": "y = x * 1\nfor i in range(int(counts.sum())):\n    y = y * 2",
    "numbered loop over nonzero": "y = x * 1\nfor i, value in enumerate(mask.nonzero()):\n    y = y * 2",
    "range of a shape": "y = x * 1\nfor i in range(mask.nonzero().shape[0]):\n    y = y * 2",
    "range of a size": "y = x * 1\nfor i in range(torch.unique(counts).size(0)):\n    y = y * 2",
    "range of a length": "y = x * 1\nfor i in range(len(counts[counts > 1])):\n    y = y * 2",
    "range in a loop over tolist": "y = x * 1\nfor n in counts.tolist():\n    for i in range(n):\n        y = y * 2",
    "range in a loop over rows": "y = x * 1\nfor n in counts:\n    for i in range(n):\n        y = y * 2",
    "if in a loop over tolist": "y = x * 1\nfor n in counts.tolist():\n    if n > 1:\n        y = y * 2",
    "if in a loop over rows": "y = x * 1\nfor n in counts:\n    if n > 1:\n        y = y * 2",
    "groupby of tolist": "y = x * 1\nfor key, part in itertools.groupby(counts.tolist()):\n    y = y * len(list(part))",
    "groupby of numbered tolist": "y = x * 1\n"
    "for key, part in itertools.groupby(enumerate(counts.tolist()), lambda pair: pair[1]):\n"
    "    y = y * len(list(part))",
    "item as index": "y = x[counts.sum().item() - 5]",
    # what asks a tensor for its number without a name that says so
    "tensor as end of a slice": "y = torch.arange(9)[: counts.sum()]",
    "tensor as index of one row": "y = torch.arange(9)[counts.sum()]",
    "tensor as index of a list": "y = x * [1, 2, 3, 4, 5, 6, 7][counts.sum()]",
    "tensor as number of steps": "y = torch.linspace(0, 1, counts.sum())",
    "tensor as size of a view": "y = torch.ones(6).view(counts.sum(), -1)",
    "tensor as size of a part": "y = torch.ones(6).split(counts.sum())[0]",
    "tensor as width of padding": "y = torch.nn.functional.pad(x, (0, counts.sum()))",
    "tensor as fill value": "y = torch.full_like(x, counts.sum())",
    "list as often as a tensor says": "y = x * len([0] * counts.sum())",
    "number in a tensor": "y = x * (2 in counts * 1)",
    "complex": "y = x * complex(counts.sum()).real",
    "any of a tensor": "y = x * any(counts > 1)",
    "all of a tensor": "y = x * all(counts > 1)",
    "sorted tensor": "y = x * sorted(counts * 1)[0]",
    "text of a tensor": "y = x * len(str(counts.sum()))",
    "percent of a tensor": "y = x * len('%d' % counts.sum())",
    "and of a tensor": "y = x * (counts.sum() and 2)",
    "not of a tensor": "y = x * (not counts.sum())",
    "chain of a tensor": "y = x * (0 < counts.sum() < 9)",
    "while of a tensor that is made": "y = x * 1\nwhile (y < 40).all():\n    y = y * 2",
    "math of a tensor": "y = x * math.sqrt(counts.sum())",
    "equal": "y = x * torch.equal(x, x * 1)",
    "int of an array": "y = x * int((counts * 1).numpy()[0])",
    "array as end of a slice": "y = x * 1\ny = y[: (counts * 1).numpy()[0]]",
    "array as size": "n = (counts * 1).numpy()\ny = torch.zeros(n.max())",
    "range of an array": "y = x * 1\nn = (counts * 1).numpy()\nfor i in range(n[0]):\n    y = y * 2",
    # and what does not
    "tensor in a list": "y = x * (counts.sum() in [1, 6])",
    "unpacked tensor": "one, two, three = counts\ny = x * one + two",
    "list of a tensor": "y = x * list(counts)[0]",
    "maximum of tensors": "y = x * max(counts[0], counts[1])",
    "minimum of a tensor and a number": "y = x * min(counts.sum(), 3)",
    "sum of a tensor": "y = x * sum(counts)",
    "tensor in a text": "text = f'{counts.sum()}'\ny = x * 2",
    "tensor as a limit": "y = x.clamp(max=counts.sum())",
    "tensor in a tensor": "y = torch.tensor([counts.sum(), 1])",
    "length of a tensor": "y = torch.zeros(len(counts))",
    "item of a maximum as size": "y = torch.zeros(counts.max().item() + 1)",
    "lstm": "y = LSTM(x)[0]",
    "gru": "y = GRU(x)[0]",
    "rnn": "y = RNN(x)[0]",
    "lstm cell": "y = CELL(x)[0]",
    "packed sequence": "packed = torch.nn.utils.rnn.pack_padded_sequence(x.view(2, 2, 3), torch.tensor([2, 1]))\n"
    "y = GRU(packed)[1]",
    "gradient": "w = x.detach().requires_grad_()\n"
    "with torch.enable_grad():\n    y = torch.autograd.grad((w * w).sum(), w)[0]",
    "info": "y = x * 1\nlogging.getLogger(__name__).info('%s', one)",
    "print": "y = x * 1\nprint(one)",
    "log": "y = x * 1\nlogging.getLogger(__name__).error('%s', one)",
    "warning": "y = x * 1\nwarnings.warn('negative')",
    # what TorchScript does not take
    "keywords in a dict": "given = {'dim': 0}\ny = x.sum(**given)",
    "try": "y = x\ntry:\n    y = x * 1\nexcept ValueError:\n    y = x * 2",
    "lambda": "f = lambda a: a * 2\ny = f(x)",
    "nested function": "def inner(a):\n    return a * 2\ny = inner(x)",
    "set": "known = {1, 2}\ny = x * len(known)",
    "walrus": "y = x * (n := 2) + n",
}
#: Statements by the name of the way.
WAYS: Mapping[str, str] = {
    **{f"{how} of {what}": text.format(on) for how, text in DECIDING.items() for what, on in DECIDED_ON.items()},
    **{how.format(what): text.format(sized) for how, text in SIZED.items() for what, sized in SIZED_BY_DATA.items()},
    **OTHERS,
}

_TEXT = """\
import itertools
import logging
import math
import warnings
import torch

LSTM, GRU, RNN = torch.nn.LSTM(3, 3), torch.nn.GRU(3, 3), torch.nn.RNN(3, 3)
CELL = torch.nn.LSTMCell(3, 3)


def way({arguments}):
{body}
    return (y * 2) if isinstance(y, torch.Tensor) else y
"""


def texts() -> dict[str, str]:
    """The source of the function of each way."""
    return {name: _TEXT.format(arguments=_ARGUMENTS, body=textwrap.indent(body, "    ")) for name, body in WAYS.items()}


def _given() -> tuple[torch.Tensor, ...]:
    x = torch.arange(12.0).view(4, 3)
    return x, x % 2 > 0, torch.tensor([2, 3, 1]), torch.tensor(2)


class _Graphs:
    """Count the graphs that are made. The first break or second graph is an error: what follows changes nothing."""

    def __init__(self) -> None:
        self.made = 0

    def check(self) -> None:
        """Raise RuntimeError unless there is one graph, and no break."""
        breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
        if self.made != 1 or breaks:
            raise RuntimeError(f"{self.made} graphs, {breaks} breaks")

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        self.made += 1
        self.check()
        return graph.forward  # type: ignore[no-any-return]


@contextlib.contextmanager
def _noting(read: set[str]) -> Iterator[None]:
    """Add the names of Dynamo's settings that are read meanwhile."""
    kind = type(torch._dynamo.config)
    plainly = kind.__getattr__

    def noting(config: Any, name: str) -> Any:
        read.add(name)
        return plainly(config, name)

    with mock.patch.object(kind, "__getattr__", noting):
        yield


def _flags(setting: str) -> dict[str, Any]:
    return {_SCALARS: False, _SHAPES: False, **CONFIGURED.get(setting, {})}


def _compiled(way: Callable[..., Any], setting: str, read: set[str]) -> Any:
    graphs = _Graphs()
    with torch._dynamo.config.patch(**_flags(setting)), _noting(read):
        out = torch.compile(way, backend=graphs, fullgraph=setting == "fullgraph")(*_given())
    graphs.check()
    return out


def _run(way: Callable[..., Any], setting: str, read: set[str]) -> Any:
    if setting == "script":
        return torch.jit.script(way)(*_given())
    if setting == "export strict":
        return torch.export.export(_module(way), _given(), strict=True).module()(*_given())
    return _compiled(way, setting, read)


def exists(setting: str) -> bool:
    """Whether this torch has the setting."""
    return all(hasattr(torch._dynamo.config, name) for name in CONFIGURED.get(setting, {}))


def _module(way: Callable[..., Any]) -> torch.nn.Module:
    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *given: torch.Tensor) -> Any:
            return way(*given)

    return Module()


def is_captured(way: Callable[..., Any], setting: str, read: set[str]) -> bool:
    """Whether the function gives the same in this setting as without it, and in one graph.

    ``read`` gets the names of Dynamo's settings that compiling it has read.
    """
    with torch.no_grad():  # as below: a layer may have another kernel without gradients
        expected = way(*_given())
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    try:
        with torch.no_grad():
            return bool(torch.equal(_run(way, setting, read), expected))
    except Exception:
        return False


def _row(way: Callable[..., Any]) -> dict[str, bool]:
    """Return for each setting whether ``way`` is captured.

    A setting of `CONFIGURED` that differs from one that was run only in what that run never read gives the same.
    """
    found: dict[str, bool] = {}
    ran: list[tuple[str, set[str]]] = []
    for setting in filter(exists, SETTINGS):
        configured, flags = setting == "default" or setting in CONFIGURED, _flags(setting)
        same = (s for s, read in ran if all(flags.get(name) == _flags(s).get(name) for name in read))
        if configured and (other := next(same, None)) is not None:
            found[setting] = found[other]
            continue
        read: set[str] = set()
        found[setting] = is_captured(way, setting, read)
        if configured:
            ran.append((setting, read))
    return found


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    try:
        with quiet[0], quiet[1], warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def rows() -> dict[str, dict[str, bool]]:
    """For each way and setting, whether it is captured."""
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # what torch has made at its import need not be looked through each time
    found: dict[str, dict[str, bool]] = {}
    with tempfile.TemporaryDirectory(prefix="captured-") as folder, _silence():
        for number, (name, text) in enumerate(texts().items()):
            path = Path(folder, f"way_{number}.py")
            path.write_text(text, encoding="utf-8")
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
            found[name] = _row(module.way)
            del sys.modules[path.stem]
    torch._dynamo.reset()
    return found


def document(found: Mapping[str, Mapping[str, bool]], torch_version: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """The table ``known`` with what this torch captures: by version and way, the settings that do; and the ways.

    ``settings``: by version, those that there are.
    """
    own = {way: [setting for setting, works in settings.items() if works] for way, settings in found.items()}
    version = ".".join(torch_version.split(".")[:2])
    versions = {**known.get("torch", {}), version: own}
    kept = {v: {way: ways[way] for way in WAYS if way in ways} for v, ways in sorted(versions.items())}
    settings = {**known.get("settings", {}), version: list(next(iter(found.values())))}
    made = {**known.get("made_by", {}), version: made_by(own, torch_version)}
    return {"ways": dict(WAYS), "settings": dict(sorted(settings.items())), "torch": kept, "made_by": made}


def made_by(own: Mapping[str, Sequence[str]], torch_version: str) -> str:
    """A digest of rows and of what has made them: this program, the versions of torch and Python."""
    rows = json.dumps({way: list(settings) for way, settings in own.items()})
    made = (Path(__file__).read_text(encoding="utf-8"), torch_version, *map(str, sys.version_info[:2]), rows)
    return hashlib.sha256("\0".join(made).encode()).hexdigest()[:16]


def written(table: Mapping[str, Any]) -> str:
    """The table as a file has it: a line for each way."""
    text = json.dumps(table, indent=1)
    return re.sub(r"\[\s+([^\]]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text) + "\n"


def main() -> None:
    """Print what this torch captures, or put it into a table."""
    into = Path(sys.argv[sys.argv.index("--into") + 1]) if "--into" in sys.argv else None
    known = json.loads(into.read_text(encoding="utf-8")) if into is not None and into.exists() else {}
    sys.dont_write_bytecode = True
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    text = written(document(rows(), torch.__version__, known))
    if into is not None:
        into.write_text(text, encoding="utf-8")
    else:
        answer.write(text)
    answer.close()


if __name__ == "__main__":
    main()
