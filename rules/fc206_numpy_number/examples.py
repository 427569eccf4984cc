"""What NumpyNumber reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="padded to a multiple of the hop length",
        before="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.hop = np.prod(rates)  # samples in a frame

    def forward(self, x):
        length = x.shape[-1]
        right = math.ceil(length / self.hop) * self.hop - length
        return F.pad(x, (0, right))
""",
        after="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.hop = np.prod(rates).item()  # samples in a frame

    def forward(self, x):
        length = x.shape[-1]
        right = math.ceil(length / self.hop) * self.hop - length
        return F.pad(x, (0, right))
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (10, 11, 13)]
""",
        unsafe=True,
    ),
    Example(
        title="through a local name, with another number of the module",
        before="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.hop = np.prod(rates)
        self.window = 4

    def forward(self, x):
        whole = self.hop * self.window
        extra = whole - x.shape[-1] % whole
        return F.pad(x, (0, extra)) * 2
""",
        after="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.hop = np.prod(rates).item()
        self.window = 4

    def forward(self, x):
        whole = self.hop * self.window
        extra = whole - x.shape[-1] % whole
        return F.pad(x, (0, extra)) * 2
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (10, 11, 13)]
""",
        unsafe=True,
    ),
    Example(
        title="how often a loop turns",
        before="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.depth = np.max([1, 2, 3])

    def forward(self, x):
        for i in range(self.depth):
            x = x * 2 + i
        return x
""",
        after="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.depth = np.max([1, 2, 3]).item()

    def forward(self, x):
        for i in range(self.depth):
            x = x * 2 + i
        return x
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (10, 11, 13)]
""",
        unsafe=True,
    ),
    Example(
        title="a comparison, in a method that forward calls",
        before="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.limit = np.int64(12)

    def short(self, x):
        return x[:, :3] if x.shape[1] > self.limit else x

    def forward(self, x):
        return self.short(x) * 2
""",
        after="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.limit = np.int64(12).item()

    def short(self, x):
        return x[:, :3] if x.shape[1] > self.limit else x

    def forward(self, x):
        return self.short(x) * 2
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (10, 11, 13)]
""",
        unsafe=True,
    ),
    Example(
        title="a float of NumPy on the host",
        before="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.ratio = np.sqrt(4)

    def forward(self, x):
        n = math.floor(x.shape[-1] / self.ratio)
        return x[:, :n]
""",
        after="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.ratio = np.sqrt(4).item()

    def forward(self, x):
        n = math.floor(x.shape[-1] / self.ratio)
        return x[:, :n]
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (10, 11, 13)]
""",
        unsafe=True,
    ),
    Example(
        title="two of them in one class",
        before="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.down = np.prod(rates)
        self.up = np.sum(rates)

    def forward(self, x):
        n = x.shape[-1] * self.up // self.down
        return x.new_ones(n) + x.sum()
""",
        after="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.down = np.prod(rates).item()
        self.up = np.sum(rates).item()

    def forward(self, x):
        n = x.shape[-1] * self.up // self.down
        return x.new_ones(n) + x.sum()
""",
        run="""\
def make(): return Net()
calls = [(torch.randn(2, n),) for n in (10, 11, 13)]
""",
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="an array along an axis",
        source="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.hop = np.prod(rates, axis=0)

    def forward(self, x):
        return F.pad(x, (0, x.shape[-1] * self.hop))
""",
    ),
    NearMiss(
        title="a number of Python",
        source="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.hop = int(np.prod(rates))

    def forward(self, x):
        return F.pad(x, (0, x.shape[-1] * self.hop))
""",
    ),
    NearMiss(
        title="it meets tensors alone",
        source="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.scale = np.prod(rates)

    def forward(self, x):
        return x * self.scale
""",
    ),
    NearMiss(
        title="the class asks for its dtype",
        source="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.hop = np.prod(rates)

    def kind(self):
        return self.hop.dtype

    def forward(self, x):
        return F.pad(x, (0, x.shape[-1] * self.hop))
""",
        reported=True,
    ),
    NearMiss(
        title="assigned again",
        source="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.hop = np.prod(rates)

    def grow(self):
        self.hop = self.hop + 1

    def forward(self, x):
        return F.pad(x, (0, x.shape[-1] * self.hop))
""",
        reported=True,
    ),
    NearMiss(
        title="another library's product",
        source="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.hop = math.prod(rates)

    def forward(self, x):
        return F.pad(x, (0, x.shape[-1] * self.hop))
""",
    ),
    NearMiss(
        title="the square roots of what may be an array",
        source="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.hop = np.sqrt(rates)

    def forward(self, x):
        return F.pad(x, (0, x.shape[-1] * self.hop))
""",
    ),
    NearMiss(
        title="nothing compiled computes with it",
        source="""\
import math

import numpy as np

class Net(nn.Module):
    def __init__(self, rates=(2, 3)):
        super().__init__()
        self.hop = np.prod(rates)

    def frames(self, n):
        return n // self.hop

    def forward(self, x):
        return x
""",
    ),
)
