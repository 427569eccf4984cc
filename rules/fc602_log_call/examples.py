"""What LogCall reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="neighbours go under one test",
        before="""\
class Shown(nn.Module):
    def forward(self, x):
        y = x * 2
        # what goes in and out
        print("in", x.shape, f"{x.mean():.3f}")
        print("out", y.max().item())  # the largest
        return y + 1
""",
        after="""\
class Shown(nn.Module):
    def forward(self, x):
        y = x * 2
        # what goes in and out
        if not torch.compiler.is_compiling():
            print("in", x.shape, f"{x.mean():.3f}")
            print("out", y.max().item())  # the largest
        return y + 1
""",
        run="""\
def make(): return Shown()
calls = [(torch.ones(3),), (torch.zeros(3),)]
""",
    ),
    Example(
        title="a logger, in a branch that does more",
        before="""\
import logging

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())


class Cached(nn.Module):
    def forward(self, x, use_cache: bool = True):
        if self.training and use_cache:
            logger.warning(
                # said each time
                "`use_cache=True` does not go with training. Setting `use_cache=False`"
            )
            use_cache = False
        return x * 2 if use_cache else x * 3
""",
        after="""\
import logging

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())


class Cached(nn.Module):
    def forward(self, x, use_cache: bool = True):
        if self.training and use_cache:
            if not torch.compiler.is_compiling():
                logger.warning(
                    # said each time
                    "`use_cache=True` does not go with training. Setting `use_cache=False`"
                )
            use_cache = False
        return x * 2 if use_cache else x * 3
""",
        run="""\
def make(): return Cached().train()
calls = [(torch.ones(3),), (torch.ones(3), False)]
""",
    ),
    Example(
        title="a warning about tensor data, with its message built first",
        before="""\
import warnings


class Warned(nn.Module):
    def forward(self, x):
        if x.abs().max() > 3:
            message = f"large: {x.abs().max():.1f}"
            warnings.warn(message, RuntimeWarning)
        return x.tanh()
""",
        after="""\
import warnings


class Warned(nn.Module):
    def forward(self, x):
        if not torch.compiler.is_compiling() and x.abs().max() > 3:
            message = f"large: {x.abs().max():.1f}"
            warnings.warn(message, RuntimeWarning)
        return x.tanh()
""",
        run="""\
def make(): return Warned()
calls = [(torch.ones(3),), (torch.ones(3) * 5,)]
""",
    ),
    Example(
        title="in a loop, where the whole frame would be lost",
        before="""\
class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x).relu()
            if i % 2 == 0:
                print("layer", i, "of", len(self.layers))
        return x
""",
        after="""\
class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x).relu()
            if not torch.compiler.is_compiling() and i % 2 == 0:
                print("layer", i, "of", len(self.layers))
        return x
""",
        run="""\
def make(): return Layers()
calls = [(torch.ones(2, 3),)]
train = True
""",
    ),
    Example(
        title="a function that says things once, called from forward",
        before="""\
import functools
import logging


class Once(nn.Module):
    @staticmethod
    @functools.lru_cache(None)
    def say_once(text):
        logging.getLogger("fix_compile.example").info(text)

    def forward(self, x):
        self.say_once("deprecated")
        return x * 2
""",
        after="""\
import functools
import logging


class Once(nn.Module):
    @staticmethod
    @functools.lru_cache(None)
    def say_once(text):
        if not torch.compiler.is_compiling():
            logging.getLogger("fix_compile.example").info(text)

    def forward(self, x):
        self.say_once("deprecated")
        return x * 2
""",
        run="""\
def make(): return Once()
calls = [(torch.ones(3),)]
""",
    ),
    Example(
        title="branches and a loop that only write",
        before="""\
class Table(nn.Module):
    def forward(self, x, verbose: bool = True):
        if x.sum() > 2:
            print("many")
        elif verbose:
            print("few")
        for row in range(x.size(0)):
            print(row, x[row].tolist())
        return x * 2
""",
        after="""\
class Table(nn.Module):
    def forward(self, x, verbose: bool = True):
        if not torch.compiler.is_compiling():
            if x.sum() > 2:
                print("many")
            elif verbose:
                print("few")
        if not torch.compiler.is_compiling():
            for row in range(x.size(0)):
                print(row, x[row].tolist())
        return x * 2
""",
        run="""\
def make(): return Table()
calls = [(torch.ones(2, 3),), (torch.zeros(2, 3),)]
""",
    ),
    Example(
        title="one style in one function: where one message needs a line of its own, all have one",
        before="""\
import warnings


class Mixed(nn.Module):
    def forward(self, x, causal=True, window: int = 2):
        if x.size(0) > window and causal:
            print("longer than the window")
        if causal or window:
            print("cut")
        if causal and window > 1:
            warnings.warn("the window is left out")
            window = 1
        return x * window
""",
        after="""\
import warnings


class Mixed(nn.Module):
    def forward(self, x, causal=True, window: int = 2):
        if x.size(0) > window and causal:
            if not torch.compiler.is_compiling():
                print("longer than the window")
        if causal or window:
            if not torch.compiler.is_compiling():
                print("cut")
        if causal and window > 1:
            if not torch.compiler.is_compiling():
                warnings.warn("the window is left out")
            window = 1
        return x * window
""",
        run="""\
def make(): return Mixed()
calls = [(torch.ones(3),), (torch.ones(3), False)]
""",
    ),
    Example(
        title="about an argument that is deprecated, when it is left out",
        before="""\
import warnings


class Plainest(nn.Module):
    def forward(self, x, scale=None, use: bool = True):
        if use and not isinstance(scale, torch.Tensor):
            warnings.warn("A scale that is no tensor is deprecated.")
            scale = torch.ones(1)
        return x * scale
""",
        after="""\
import warnings


class Plainest(nn.Module):
    def forward(self, x, scale=None, use: bool = True):
        if use and not isinstance(scale, torch.Tensor):
            if not torch.compiler.is_compiling():
                warnings.warn("A scale that is no tensor is deprecated.")
            scale = torch.ones(1)
        return x * scale
""",
        run="""\
def make(): return Plainest()
calls = [(torch.ones(3),), (torch.ones(2),)]
""",
    ),
    Example(
        title="what is joined to a chain of and is a part of it",
        before="""\
class Chained(nn.Module):
    def forward(self, x, n: int = 2):
        if x.dim() > n and (n > 1 or n < 0):
            print("long")
        return x * n
""",
        after="""\
class Chained(nn.Module):
    def forward(self, x, n: int = 2):
        if not torch.compiler.is_compiling() and x.dim() > n and (n > 1 or n < 0):
            print("long")
        return x * n
""",
        run="""\
def make(): return Chained()
calls = [(torch.ones(1, 2, 3),), (torch.ones(3),)]
""",
    ),
    Example(
        title="the arguments change something: reported",
        before="""\
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = iter(range(100))

    def forward(self, x):
        print("step", next(self.steps))
        return x * 2
""",
        after=None,
        run="""\
def make(): return Counted()
calls = [(torch.ones(3),)]
""",
    ),
    Example(
        title="about an argument that the model itself hands over",
        before="""\
import warnings


class Masked(nn.Module):
    def widened(self, mask, shape=None, device=None):
        if device is not None:
            warnings.warn("The `device` argument is deprecated.", FutureWarning)
        return mask[:, None]

    def forward(self, x, mask):
        device = x.device
        return x * self.widened(mask, None, device)
""",
        after="""\
import warnings


class Masked(nn.Module):
    def widened(self, mask, shape=None, device=None):
        if not torch.compiler.is_compiling() and device is not None:
            warnings.warn("The `device` argument is deprecated.", FutureWarning)
        return mask[:, None]

    def forward(self, x, mask):
        device = x.device
        return x * self.widened(mask, None, device)
""",
        run="""\
def make(): return Masked()
calls = [(torch.ones(2, 3), torch.ones(2)), (torch.ones(4, 3), torch.ones(4))]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="an argument that will have to be given, and that the model gives",
        source="""\
import warnings

class Attending(nn.Module):
    def forward(self, x, turned=None):
        if turned is None:
            warnings.warn("`turned` will be mandatory, and what is made here will be removed")
            turned = x.flip(-1)
        return torch.relu(x + turned)

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attending = Attending()

    def forward(self, x, turned=None):
        return self.attending(x, turned=turned)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, x):
        turned = x.flip(-1)
        for layer in self.layers:
            x = layer(x, turned=turned)
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="what an argument asks for cannot be had",
        source="""\
import warnings

THERE = torch.cuda.is_available()

class Attending(nn.Module):
    def forward(self, x, version=None):
        if version is not None and version == 3 and not THERE:
            warnings.warn("version 3 is not available, version 2 runs instead")
        return torch.relu(x)
""",
        reported=True,
    ),
    NearMiss(
        title="once for each size, where a cache is filled",
        source="""\
class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = {}

    def forward(self, x):
        size = x.shape[0]
        if size not in self.tables:
            print("a table of", size)
            self.tables[size] = torch.arange(size)
        return x + self.tables[size]
""",
        reported=True,
    ),
    NearMiss(
        title="what is loaded or told once",
        source="""\
class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.loaded = self.told = False
        self.table = None

    def _load(self):
        if not self.loaded:
            print("loading")
            self.loaded = True

    def forward(self, x):
        self._load()
        if x.shape[0] > 2 and not self.told:
            warnings.warn("large pictures take long")
            self.told = True
        if self.table is None:
            print("a table")
            self.table = torch.arange(2)
        return self.lin(x) + self.table


import warnings
""",
        reported=True,
    ),
    NearMiss(
        title="models that are moved, cast, loaded and saved",
        source="""\
class Base(nn.Module):
    def to(self, *args, **kwargs):
        print("moving", args)
        return super().to(*args, **kwargs)

    def half(self):
        print("from now on in half precision")
        return super().half()

    def train(self, mode=True):
        print("training" if mode else "evaluating")
        return super().train(mode)

    def load_state_dict(self, state_dict, strict=True):
        print("loading", len(state_dict))
        return super().load_state_dict(state_dict, strict)

    def load_weights(self, path):
        print("weights of", path)
        return self.load_state_dict(torch.load(path))

    @classmethod
    def from_pretrained(cls, path):
        print("loading", path)
        model = cls()
        model.load_weights(path)
        return model

    def save_pretrained(self, path):
        print("saving to", path)
        torch.save(self.state_dict(), path)


class Net(Base):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    @staticmethod
    def _masked(mask, like):
        return mask.to(like.dtype)

    def forward(self, x, like):
        return self.lin(x.to(like.dtype)).half() * self._masked(x > 0, x)
""",
    ),
    NearMiss(
        title="already for eager code only",
        source="""\
class Eager(nn.Module):
    def forward(self, x):
        if not torch.compiler.is_compiling():
            print(x.shape)
        if torch.compiler.is_compiling() or self.training:
            pass
        else:
            print("eager")
        return x
""",
    ),
    NearMiss(
        title="the constructor, and code that nobody compiles",
        source="""\
class Made(nn.Module):
    def __init__(self):
        super().__init__()
        print("made")

    @torch.compiler.disable
    def report(self, x):
        print(x)

    def forward(self, x):
        self.report(x)
        return x


def main():
    print(Made()(torch.ones(2)))
""",
    ),
    NearMiss(
        title="a message right before an error",
        source="""\
import logging

logger = logging.getLogger(__name__)


class Fatal(nn.Module):
    def forward(self, x, n: int = 2):
        if x.shape[0] != n:
            logger.error("shape")
            raise ValueError(f"{x.shape}")
        return x
""",
    ),
    NearMiss(
        title="a method of the project may do anything",
        source="""\
class Stats(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    def count(self):
        self.n += 1
        return self.n

    def forward(self, x):
        print("call", self.count())
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="a part of a module, a method and a property of the project, a dict that fills itself",
        source="""\
from collections import defaultdict


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.n = 0

    def count(self):
        self.n += 1
        return self.n

    @property
    def step(self):
        self.n += 1
        return self.n


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.seen = defaultdict(int)
        self.batches = iter(range(9))

    def forward(self, x):
        print(self.block.norm(x).shape)
        x = x + self.block.n
        print(self.block.count(), self.block.step)
        x = x + self.block.n
        print(self.block.step)
        x = x + self.block.n
        print(self.seen[x.shape[0]])
        x = x + len(self.seen)
        print(list(self.batches))
        return x + sum(self.batches)
""",
        reported=True,
    ),
    NearMiss(
        title="a message that fails is caught",
        source="""\
class Tried(nn.Module):
    def shown(self, x):
        print(f"{x.item():.3f}")

    def forward(self, x):
        try:
            self.shown(x)
            print(x.view(7))
        except RuntimeError:
            x = x.mean()
        return x * 2
""",
        reported=True,
    ),
    NearMiss(
        title="a logger of the project that keeps what it is given",
        source="""\
class Measured:
    def __init__(self):
        self.values = []

    def log(self, value):
        self.values.append(value)

    def info(self, value):
        self.values.append(value)


class Keeps(nn.Module):
    def __init__(self):
        super().__init__()
        self.logger = Measured()

    def forward(self, x):
        self.logger.log(x.shape[0])
        self.logger.info(x.shape[0])
        return x * len(self.logger.values)
""",
    ),
    NearMiss(
        title="a name that is bound inside of the message",
        source="""\
class Bound(nn.Module):
    def forward(self, x):
        print("n", n := x.shape[0])
        return x * n
""",
        reported=True,
    ),
    NearMiss(
        title="an iterator is gone through once",
        source="""\
class Items(nn.Module):
    def forward(self, x, items):
        print(*items)
        print("-".join(items))
        return [x * i for i in items]
""",
        reported=True,
    ),
    NearMiss(
        title="a tensor is changed inside of the message",
        source="""\
class InPlace(nn.Module):
    def forward(self, x):
        y = x + 1
        print(y.mul_(2), torch.rand(1))
        return y
""",
        reported=True,
    ),
    NearMiss(
        title="into a file of one's own; a function of that name",
        source="""\
class Files(nn.Module):
    def forward(self, x, out):
        print(x.shape, file=out)
        self.log(x)
        return x.log()

    def log(self, x):
        self.last = x


def shown(print, x):
    print(x)


class Other(nn.Module):
    def forward(self, x):
        shown(self.add, x)
        return x
""",
    ),
    NearMiss(
        title="what is written is read",
        source="""\
import contextlib
import io
import sys


class Captured(nn.Module):
    def forward(self, x):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            print(tuple(x.shape))
        return self.swapped(x) + len(text.getvalue())

    def swapped(self, x):
        old, sys.stdout = sys.stdout, io.StringIO()
        print(tuple(x.shape))
        text, sys.stdout = sys.stdout.getvalue(), old
        return x + len(text)
""",
        reported=True,
    ),
    NearMiss(
        title="under a function that tells whether code is compiled",
        source="""\
def compiling():
    try:
        return torch.compiler.is_compiling()
    except AttributeError:
        return False


class Told(nn.Module):
    def forward(self, x):
        if x.dim() == 1 and not compiling():
            print(x.shape)
        return x
""",
    ),
    NearMiss(
        title="the result of the call is used; a name is used below",
        source="""\
class Used(nn.Module):
    def forward(self, x):
        y = print(x)
        return x if y is None else x + 1
""",
        reported=True,
    ),
    NearMiss(
        title="only when a flag is set that is off by default",
        source="""\
import os

SHOWN = os.environ.get("SHOWN") == "1"


class Flagged(nn.Module):
    def __init__(self, verbose=False):
        super().__init__()
        self.verbose = verbose

    def forward(self, x, debug: bool = False):
        if debug:
            print("in", x.shape)
        if SHOWN:
            print("shown", x.shape)
        if self.verbose:
            print("module", x.shape)
            x = x + 0
        if not debug:
            return x
        print("out", x.shape)
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="about a call that is not meant to be made",
        source="""\
import warnings


class Renamed(nn.Module):
    def forward(self, x, mask=None, head_mask=None):
        if head_mask is not None:
            warnings.warn("`head_mask` is deprecated, use `mask`.")
            mask = head_mask
        if head_mask is not None and mask is None:
            warnings.warn("use `mask`", FutureWarning)
            mask = head_mask
        if x.dim() == 3:
            warnings.warn("Three dimensions are not supported, the last is left out.")
            x = x[..., 0]
        return x if mask is None else x * mask
""",
        reported=True,
    ),
    NearMiss(
        title="about an argument that is handed on when it is given",
        source="""\
import warnings


class Passing(nn.Module):
    def widened(self, mask, shape=None, device=None):
        if device is not None:
            warnings.warn("The `device` argument is deprecated.", FutureWarning)
        return mask[:, None]

    def forward(self, x, mask, device=None):
        wide = self.widened(mask, x.shape, device) + self.widened(mask, None, None)
        return x * wide * self.widened(mask, device=device)
""",
        reported=True,
    ),
    NearMiss(
        title="for compiled code alone",
        source="""\
class Told(nn.Module):
    def forward(self, x):
        if torch.compiler.is_compiling():
            print("compiled")
        if not torch.compiler.is_compiling():
            x = x + 0
        else:
            print("compiled", x.shape)
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="in another thread, and where a property is set",
        source="""\
import threading


class Moved(nn.Module):
    def __init__(self):
        super().__init__()
        self._place = 0

    @property
    def place(self):
        return self._place

    @place.setter
    def place(self, value):
        print("now", value)
        self._place = value

    def work(self):
        print("method")

    def forward(self, x):
        def move(block):
            print("block", block)

        threading.Thread(target=move, args=(1,)).start()
        threading.Thread(target=self.work).start()
        self.place = 1
        return x * self.place
""",
        reported=True,
    ),
)
