"""What is said not to be traced is run, each by itself: graph break; and what looks like it does not end it."""

from __future__ import annotations

import ast
import warnings

import pytest
import torch

from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.facts.tables import host_api
from patcher.finding import find
from patcher.harness.listener import Listener, listening
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import INSTALLED

HEAD = """\
import array, base64, binascii, bisect, bz2, contextvars, copy, datetime, decimal, gc, glob, gzip, hashlib, heapq
import importlib, inspect, io, json, locale, lzma, math, operator, os, pickle, pprint, re, secrets, shutil, socket
import cmath, queue, statistics, struct, subprocess, sys, tempfile, threading, time, types, unicodedata, urllib.parse
import uuid, zlib
import numpy as np
import torch
import torch.nn.functional as F

MODULE = torch.nn.Linear(3, 3)

@torch.compile
def way(x: torch.Tensor, text: str, data: bytes, numbers: list):
    y = x * 1
    a = x.numpy()
    r = {call}
    return y * 2
"""
#: Arguments, where a call needs any; a method's are those behind the tensor.
ARGUMENTS = {
    "register_forward_hook": "lambda m, i, o: o", "register_forward_pre_hook": "lambda m, i: i",
    "load_state_dict": "MODULE.state_dict()", "torch.nn.Bilinear": "2, 2, 2", "torch.nn.LayerNorm": "2",
    "torch.nn.BatchNorm1d": "2", "torch.nn.BatchNorm2d": "2", "torch.nn.GroupNorm": "1, 2", "torch.nn.RMSNorm": "2",
    "torch.nn.PReLU": "",
    "open": "'/dev/null'", "exec": "'1'", "compile": "'1', 'a', 'eval'", "dir": "x", "bytes": "[1]",
    "bytearray": "data", "memoryview": "data", "time.sleep": "0", "time.strftime": "'%Y'", "datetime.timedelta": "1",
    "json.dump": "1, io.StringIO()", "json.dumps": "{'a': 1}", "json.load": "io.StringIO('1')", "json.loads": "'[1]'",
    "pickle.dumps": "text", "pickle.loads": "b'I1\\n.'", "os.listdir": "'/'", "os.path.exists": "text",
    "os.path.isfile": "text", "os.path.isdir": "text", "os.makedirs": "'/tmp', exist_ok=True", "os.urandom": "3",
    "glob.glob": "'/none*'", "shutil.which": "'ls'", "subprocess.run": "['true']", "sys.getsizeof": "1",
    "sys.getrefcount": "text", "importlib.import_module": "'math'", "struct.calcsize": "'i'", "copy.copy": "numbers",
    "unicodedata.normalize": "'NFC', text", "unicodedata.category": "'a'", "unicodedata.combining": "'a'",
    "urllib.parse.quote": "text", "pprint.pformat": "numbers", "secrets.token_hex": "2", "array.array": "'i', [1]",
    "decimal.Decimal": "'1.0'", "statistics.mean": "[1, 2]", "heapq.heapify": "numbers", "heapq.heappop": "numbers",
    "heapq.heappush": "numbers, 1", "heapq.nsmallest": "1, numbers", "heapq.nlargest": "1, numbers",
    "bisect.bisect": "numbers, 1", "bisect.bisect_left": "numbers, 1", "bisect.insort": "numbers, 1",
    "zlib.decompress": "zlib.compress(data)", "base64.b64decode": "'YWJj'", "torch.save": "x, io.BytesIO()",
    "torch.load": "'/dev/null'", "torch.manual_seed": "1", "torch.set_rng_state": "torch.get_rng_state()",
    "torch.set_num_threads": "torch.get_num_threads()", "torch.typename": "x", "torch.result_type": "x, 1",
    "torch.can_cast": "torch.int8, torch.int32", "torch.autograd.Variable": "x", "torch.nested.nested_tensor": "[x, x]",
    "torch.jit.script": "F.relu", "torch.nn.utils.rnn.pack_padded_sequence": "x[None], [4], batch_first=True",
    "torch.nn.utils.rnn.pack_sequence": "[x, x]", "torch.autograd.functional.jacobian": "lambda a: a.sum(), x",
    "torch.compiler.disable": "len", "torch._dynamo.disable": "len", "torch.combinations": "x[0]",
    "torch.linalg.lstsq": "x, x", "torch.nn.functional.ctc_loss":
    "x[:, None].expand(-1, 1, -1), torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2])",
    "torch.sparse_coo_tensor": "torch.tensor([[0], [1]]), torch.tensor([1.0]), (4, 4)",
    "torch.sparse_csr_tensor": "torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1)",
    "torch.sparse_csc_tensor": "torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1)",
    "torch.sparse_bsr_tensor": "torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1, 1, 1), (1, 1)",
    "torch.sparse_bsc_tensor": "torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1, 1, 1), (1, 1)",
    "torch.sparse_compressed_tensor":
    "torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1), layout=torch.sparse_csr",
    "torch.sparse.FloatTensor": "torch.tensor([[0], [1]]), torch.tensor([1.0]), torch.Size([4, 4])",
    "torch.sparse.LongTensor": "torch.tensor([[0], [1]]), torch.tensor([1]), torch.Size([4, 4])",
    "to_sparse_bsr": "(2, 1)", "to_sparse_bsc": "(2, 1)", "resize_": "4, 3", "set_": "x.clone()",
    "is_set_to": "x", "is_same_size": "x", "torch.is_inference": "x", "torch.is_storage": "x",
    "torch.is_distributed": "x",
    "map_": "x, lambda a, b: a", "apply_": "lambda a: a",
    "torch.autograd.grad": "MODULE(x[:, :3]).sum(), MODULE.weight", "torch.autograd.backward": "MODULE(x).sum()",
    **{f"torch.autograd.functional.{name}": "lambda a: a.sum(), x, x" for name in ("hvp", "vhp")},
    **{f"torch.autograd.functional.{name}": "lambda a: a.sin(), x, x" for name in ("jvp", "vjp")},
    "torch.autograd.functional.hessian": "lambda a: a.sum(), x", "torch.cov": "x", "torch.corrcoef": "x",
    "torch.lobpcg": "x.T @ x, 1", "torch.quasirandom.SobolEngine": "2", "torch.nn.init.trunc_normal_": "x",
    "torch.random.manual_seed": "1", "torch.fx.symbolic_trace": "MODULE", "torch.jit.trace": "MODULE, x",
    "torch.jit.isinstance": "text, str",
    "torch.utils.data.DataLoader": "[1]", "torch.utils.data.TensorDataset": "x", "types.SimpleNamespace": "a=1",
    "cmath.exp": "1", "cmath.phase": "1j", "cmath.sqrt": "1", "inspect.getsource": "F.relu",
    "numpy.ndindex": "2, 2", "numpy.apply_along_axis": "np.sum, 0, a", "numpy.apply_over_axes": "np.sum, a, [0]",
    "numpy.argpartition": "a, 1", "numpy.partition": "a, 1", "numpy.block": "[a, a]", "numpy.compress": "[True], a[0]",
    "numpy.delete": "a, 0", "numpy.insert": "a, 0, 1", "numpy.digitize": "a, [1, 2]", "numpy.extract": "a > 1, a",
    "numpy.frombuffer": "data, np.uint8", "numpy.fromfunction": "lambda i: i, (3,)", "numpy.fromiter": "[1], int",
    "numpy.interp": "a, [0.0, 1.0], [0.0, 1.0]", "numpy.ix_": "[0], [0]", "numpy.lexsort": "(a[0], a[1])",
    **{f"numpy.{name}": "a, a" for name in ("intersect1d", "union1d", "setdiff1d", "setxor1d", "isin")},
    "numpy.nanpercentile": "a, 50", "numpy.nanquantile": "a, 0.5", "numpy.packbits": "a.astype(np.uint8)",
    "numpy.unpackbits": "a.astype(np.uint8)", "numpy.piecewise": "a, [a > 0], [1.0]", "numpy.place": "a, a > 1, [0]",
    "numpy.putmask": "a, a > 1, 0", "numpy.poly": "[1.0, 2.0]", "numpy.poly1d": "[1.0]",
    "numpy.polyadd": "[1.0], [1.0]",
    "numpy.polyfit": "[1.0, 2.0], [1.0, 2.0], 1", "numpy.polyval": "[1.0], 2.0", "numpy.roots": "[1.0, 2.0]",
    "numpy.promote_types": "np.float32, np.float64", "numpy.ravel_multi_index": "(1, 1), (2, 2)",
    "numpy.unravel_index": "3, (2, 2)", "numpy.select": "[a > 0], [a]", "numpy.trim_zeros": "a[0]",
    "numpy.vectorize": "abs", "numpy.isscalar": "3", "numpy.ndim": "(1, 2)", "numpy.size": "a",
    **{f"numpy.{name}": "a, a" for name in ("allclose", "array_equal", "array_equiv", "result_type")},
    "numpy.can_cast": "np.int32, np.int64", "numpy.errstate": "all='ignore'", "numpy.seterr": "all='ignore'",
    "numpy.base_repr": "3", "numpy.binary_repr": "3",
}  # fmt: skip
#: What a method is called on, where that needs gradients.
RECEIVERS = {"backward": "(x * MODULE.weight[0, 0]).sum()", "retain_grad": "(x * MODULE.weight[0, 0])"}
_DATA = frozenset("zlib gzip bz2 lzma hashlib base64 binascii".split())
NUMPY = sorted(host_api.NOT_TRACED_OF_NUMPY)
FUNCTIONS = sorted(host_api.NOT_TRACED | host_api.NOT_TRACED_SIZES | host_api.SPARSE_MAKERS | host_api.WITH_WEIGHTS)
MODULES = sorted(host_api.NOT_TRACED_OF_MODULES)
METHODS = sorted(host_api.SPARSE_METHODS | host_api.NOT_TRACED_METHODS)
#: What asks the reader, and what needs a GPU.
NOT_RUN = {"input", "torch.accelerator.empty_cache"} | {
    f"torch.cuda.{name}" for name in ("synchronize", "set_device", "memory_stats", "nvtx.range_push", "nvtx.range_pop")
}
#: Calls that Dynamo works out, or takes into the graph.
TRACED = (
    "torch.cuda.empty_cache()",
    "re.sub('a', 'b', text)",
    "re.compile('b').match(text)",
    "text.encode('utf-8')",
    "os.path.join('a', text)",
    "os.path.dirname(text)",
    "os.environ.get('A')",
    "copy.deepcopy(numbers)",
    "math.gcd(2, 4)",
    "sorted(numbers)",
    "torch.cuda.is_available()",
    "torch.is_grad_enabled()",
    "torch.is_autocast_enabled()",
    "torch.distributed.is_initialized()",
    "torch.backends.cuda.enable_flash_sdp(True)",
    "torch.get_default_dtype()",
    "x.data_ptr",
    "torch.nn.Softmax(-1)(x)",
    "MODULE.eval()",
    "x.is_sparse",
    "x.layout",
    "torch.nn.utils.rnn.pad_sequence([x, x])",
    "torch.distributions.Normal(x, 1.0)",
    "torch.linalg.eigh(x.T @ x)",
    "torch.nonzero_static(x > 0, size=4)",
    "torch.func.grad(lambda t: t.sum())(x)",
    "copy.deepcopy({'a': 1})",
    "np.prod(x.shape)",
    "pow(2, 3)",
    "x.sum() ** 2",
    "np.concatenate([a, a])",
    "np.searchsorted(a[0], 2)",
    "np.gradient(a)",
)


def called(name: str) -> str:
    if name in METHODS:
        return f"{RECEIVERS.get(name, 'x')}.{name}({ARGUMENTS.get(name, '')})"
    if name in MODULES:
        return f"MODULE.{name}({ARGUMENTS[name]})"
    if name in host_api.WITH_WEIGHTS:
        return f"{name}({ARGUMENTS.get(name, '2, 1' if 'Conv' not in name else '2, 2, 1')})"
    if name in NUMPY:
        return f"np.{name[6:]}({ARGUMENTS.get(name, 'a')})"
    given = ARGUMENTS.get(name, "data" if name.partition(".")[0] in _DATA else "")
    return f"{name}({given})"


def breaks(call: str) -> bool:
    space: dict[str, object] = {}
    exec(HEAD.replace("@torch.compile", "@torch.compile(backend='eager')").format(call=call), space)
    way = space["way"]
    assert callable(way)
    torch._dynamo.reset()
    threads, listener = torch.get_num_threads(), Listener(str)
    with listening(listener, False), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            way(torch.arange(12.0).view(4, 3), "a,b", b"abc", [1, 2])
        except Exception as raised:
            if "torch.load" not in call:  # of nothing
                raise AssertionError(call) from raised
    torch.set_num_threads(threads)
    return bool(listener.breaks)


def told(call: str, version: tuple[int, int] = INSTALLED) -> list[str]:
    result = find(HEAD.format(call=call), "example.py", load_rules(), Settings(target_torch=version))
    assert not result.bugs
    return [f.code for f in result.found if f.code in ("FC603", "FC611", "FC612", "FC613")]


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in (*FUNCTIONS, *NUMPY, *METHODS, *MODULES) if n not in NOT_RUN])
def test_what_is_not_traced_ends_the_graph_and_is_told(name: str) -> None:
    call = called(name)
    traced = host_api.may_be_traced(name, INSTALLED)
    assert breaks(call) is not traced
    assert bool(told(call)) is not traced
    assert told(call, (2, 13))


def test_libraries_that_dynamo_does_not_look_into_are_told() -> None:
    from torch._dynamo import trace_rules

    looked_into = host_api.SKIPPED_LIBRARIES - {*trace_rules.THIRDPARTY_SKIPLIST}
    assert looked_into == {"cv2", "scipy"}  # these end in compiled code
    for call in ("sklearn.metrics.accuracy_score(a, a)", "scipy.optimize.linear_sum_assignment(a)", "cv2.resize(a)"):
        source = f"import {call.partition('(')[0].rpartition('.')[0]}\n{HEAD.format(call=call)}"
        assert [f.code for f in find(source, "example.py", load_rules(), Settings()).found] == ["FC611"]


@pytest.mark.slow
@pytest.mark.parametrize("call", ["pow(x, 2)", "pow(0.1 * x.max(), 2)"])
def test_the_function_of_an_operator(call: str) -> None:
    traced = host_api.may_be_traced("pow", INSTALLED)
    assert breaks(call) is not traced
    assert told(call) == ([] if traced else ["FC611"])
    assert told(call, (2, 13)) == ["FC611"]


#: Calls of what some version traces, that none does.
NOT_ALL = (
    "pow(x, 2, None)",
    "pow(base=x, exp=2)",
    "heapq.nlargest(2, [3, 1, 2, 5, 4])",
    "heapq.nsmallest(2, [3, 1, 2, 5, 4], key=lambda n: -n)",
    "heapq.nlargest(2, (n + 1 for n in [3, 1, 2]))",
)


@pytest.mark.slow
@pytest.mark.parametrize("call", NOT_ALL)
def test_not_all_calls_of_it_are_traced(call: str) -> None:
    assert breaks(call)
    assert told(call) == told(call, (2, 13)) == ["FC611"]


def test_the_setting_that_takes_gradients_is_named() -> None:
    source = HEAD.format(call="torch.autograd.grad(y, x)")
    (found,) = (f for f in find(source, "example.py", load_rules(), Settings()).found if f.code == "FC611")
    assert "`torch._dynamo.config.trace_autograd_ops` takes it into the graph" in found.assumption
    (other,) = (
        f
        for f in find(HEAD.format(call="time.time()"), "example.py", load_rules(), Settings()).found
        if f.code == "FC611"
    )
    assert "takes it" not in other.assumption


def test_where_that_setting_is_on_nothing_is_told() -> None:
    on = "import torch\ntorch._dynamo.config.trace_autograd_ops = True\n"
    assert told("torch.autograd.grad(y, x)") == ["FC611"]
    source = on + HEAD.format(call="torch.autograd.grad(y, x)")
    assert "FC611" not in [f.code for f in find(source, "example.py", load_rules(), Settings()).found]


PARSER = """\
import json
{imported}

class Parser({base}):
    def forward(self, text):
        return json.loads(text)
"""
CALLING = """\
from torch import nn
from parser_of import Parser

class Net(nn.Module):
    def forward(self, x, text):
        parser = Parser()
        return x * parser.forward(text)
"""


@pytest.mark.parametrize(
    ("imported", "base", "also", "codes"),
    [
        ("from rules_of import Base", "Base", {}, []),
        ("from torch import nn", "nn.Module", {}, ["FC611"]),
        ("from rules_of import Base", "Base", {"net.py": CALLING}, ["FC611"]),
        ("from layers import Layer", "Layer", {"layers.py": "from torch.nn import Module as Layer\n"}, []),
        (
            "from layers import Layer",
            "Layer",
            {"layers.py": "from torch import nn\nclass Layer(nn.Module):\n    pass\n"},
            ["FC611"],
        ),
    ],
)
def test_files_without_torch(imported: str, base: str, also: dict[str, str], codes: list[str]) -> None:
    source = PARSER.format(imported=imported, base=base)
    files = {"parser_of.py": source, **also}
    project = Project([summarise(ast.parse(text), path) for path, text in files.items()])
    assert [f.code for f in find(source, "parser_of.py", load_rules(), Settings(), project).found] == codes


@pytest.mark.slow
@pytest.mark.parametrize("call", TRACED)
def test_what_is_traced_is_not_told(call: str) -> None:
    assert not breaks(call)
    assert told(call) == []
