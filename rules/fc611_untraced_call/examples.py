"""What UntracedCall reports, and what looks like it and is none."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="how well a text can be compressed",
        before="""\
import zlib

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, text: str):
        y = self.layer(x)
        ratio = len(text) / len(zlib.compress(text.encode("utf-8")))
        return y * ratio
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3), "aaa"), (torch.randn(2, 3), "ab" * 9)]
""",
    ),
    Example(
        title="a sparse matrix",
        before="""\
class Spread(nn.Module):
    def forward(self, x, edges, weights):
        adjacent = torch.sparse_coo_tensor(edges, weights, (x.shape[0], x.shape[0]))
        return adjacent @ x
""",
        after=None,
        run="""\
def make(): return Spread()
calls = [(torch.randn(n, 3), torch.tensor([[0, 1], [1, 2]]), torch.ones(2)) for n in (3, 4)]
""",
    ),
    Example(
        title="made sparse, and dense again",
        before="""\
class Spread(nn.Module):
    def forward(self, x):
        y = x * 2
        return (x.relu().to_sparse() @ y.T).relu()
""",
        after=None,
        run="""\
def make(): return Spread()
calls = [(torch.randn(n, 3),) for n in (3, 4)]
""",
    ),
    Example(
        title="the time that a layer takes, in a loop",
        before="""\
import time

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.taken = 0.0

    def forward(self, x):
        for layer in self.layers:
            began = time.perf_counter()
            x = layer(x)
            self.taken = self.taken + time.perf_counter() - began
        return x
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3),), (torch.randn(2, 3),)]
""",
    ),
    Example(
        title="steps of training, for a bar that nobody takes out for them",
        before="""\
import tqdm

class Fitted(nn.Module):
    def __init__(self, loss=nn.MSELoss()):
        super().__init__()
        self.net = nn.Linear(3, 3)
        self.loss = loss

    def forward(self, x):
        for _ in tqdm.trange(2, disable=True):
            with torch.enable_grad():
                error = self.loss(self.net(x), x)
                error.backward()
        return self.net(x)
""",
        after=None,
        run="""\
def make(): return Fitted()
calls = [(torch.randn(2, 3),), (torch.randn(2, 3),)]
""",
    ),
    Example(
        title="a layer that is made anew each time",
        before="""\
class Net(nn.Module):
    def forward(self, x):
        norm = nn.LayerNorm(x.shape[1:], elementwise_affine=False)
        return nn.Linear(3, 3)(norm(x)) * 2
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3),), (torch.randn(2, 3),)]
""",
    ),
    Example(
        title="sequences that are packed by lengths that the host knows",
        before="""\
from torch.nn.utils import rnn

class Net(nn.Module):
    def forward(self, x, lengths: list):
        return rnn.pack_padded_sequence(x * 2, lengths, batch_first=True).data * 2
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.randn(2, 3, 4), [3, 2]), (torch.randn(2, 3, 4), [3, 1])]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a function that is left out of graphs by intention",
        source="""\
@torch.compiler.disable
def told(y):
    return [float(v) for v in y.sum(-1)]

class Net(nn.Module):
    @torch.compiler.disable
    def kept(self, y):
        return y

    def forward(self, x):
        return self.kept(x), told(x)
""",
    ),
    NearMiss(
        title="text and numbers that Dynamo works out",
        source="""\
import math
import os
import re

class Net(nn.Module):
    def forward(self, x, text: str):
        parts = re.sub("a", "b", text.lower()).split(",")
        name = os.path.join("a", os.environ.get("HOME", "b"))
        return x * math.sqrt(len(parts)), name, text.encode("utf-8")
""",
    ),
    NearMiss(
        title="methods of that name that are no tensor's",
        source="""\
class Net(nn.Module):
    def __init__(self, box):
        super().__init__()
        self.box = box

    def forward(self, x):
        return x * self.box.storage() + self.box.map_(1)
""",
    ),
    NearMiss(
        title="what only eager code does",
        source="""\
import time

class Net(nn.Module):
    def forward(self, x):
        if not torch.compiler.is_compiling():
            self.began = time.time()
        return x * 2
""",
    ),
    NearMiss(
        title="a decorator that nothing compiled runs",
        source="""\
def quiet():
    @torch.compiler.disable
    def told(y):
        return y.sum()

    return told

class Net(nn.Module):
    def forward(self, x):
        return x * 2
""",
    ),
    NearMiss(
        title="modules without weights, and layers of the constructor",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.layer.register_forward_hook(print)

    def forward(self, x):
        return nn.Softmax(-1)(nn.ReLU()(self.layer(x)))
""",
    ),
    NearMiss(
        title="functions of the project that are called so",
        source="""\
def time():
    return 3

class json:
    @staticmethod
    def dumps(x):
        return x

class Net(nn.Module):
    def forward(self, x):
        return json.dumps(x) * time()
""",
    ),
)
