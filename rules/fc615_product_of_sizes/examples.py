"""What ProductOfSizes reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_RUN = "calls = [(torch.linspace(-1, 1, 12).reshape(2, 3, 2),)]\ntrain = True\n"

INVALID: tuple[Example, ...] = (
    Example(
        title="a generator of sizes",
        before="""\
import math


class Mean(nn.Module):
    def forward(self, x, dims: tuple = (1, 2)):
        return x.sum(dims) / math.prod(x.shape[d] for d in dims)
""",
        after="""\
import math


class Mean(nn.Module):
    def forward(self, x, dims: tuple = (1, 2)):
        return x.sum(dims) / math.prod([x.shape[d] for d in dims])
""",
        run="def make(): return Mean()\n" + _RUN,
    ),
    Example(
        title="a generator with a test",
        before="""\
import math


class Mean(nn.Module):
    def forward(self, x, dims: tuple = (1, 2)):
        return x.sum(dims) / math.prod(n for n in x.shape[1:] if n > 1)
""",
        after="""\
import math


class Mean(nn.Module):
    def forward(self, x, dims: tuple = (1, 2)):
        return x.sum(dims) / math.prod([n for n in x.shape[1:] if n > 1])
""",
        run="def make(): return Mean()\n" + _RUN,
    ),
    Example(
        title="all but the first",
        before="""\
import math
import numpy as np


class Flat(nn.Module):
    def forward(self, x):
        x = x.relu()
        return x.reshape(x.shape[0], np.prod(x.shape[1:])) * 2  # one row for each
""",
        after="""\
import math
import numpy as np


class Flat(nn.Module):
    def forward(self, x):
        x = x.relu()
        return x.reshape(x.shape[0], math.prod(x.shape[1:])) * 2  # one row for each
""",
        run="def make(): return Flat()\n" + _RUN,
        unsafe=True,
    ),
    Example(
        title="made an int first",
        before="""\
import math as m
import numpy


class Flat(nn.Module):
    def forward(self, x):
        n = int(numpy.prod(x.size()[:-1]))
        return x.cos().view(n, -1) * n
""",
        after="""\
import math as m
import numpy


class Flat(nn.Module):
    def forward(self, x):
        n = m.prod(x.size()[:-1])
        return x.cos().view(n, -1) * n
""",
        run="def make(): return Flat()\n" + _RUN,
    ),
    Example(
        title="made an int of what may be none",
        before="""\
import numpy as np


class Wide(nn.Module):
    def __init__(self, ratio: int = 2):
        super().__init__()
        self.ratio = ratio

    def forward(self, x, times: int = 1):
        wide = int(np.prod([x.shape[1], self.ratio]))
        return x.sin() * wide, x.new_zeros(int(np.prod((x.shape[1], times))))
""",
        after="""\
import numpy as np


class Wide(nn.Module):
    def __init__(self, ratio: int = 2):
        super().__init__()
        self.ratio = ratio

    def forward(self, x, times: int = 1):
        wide = int(x.shape[1] * self.ratio)
        return x.sin() * wide, x.new_zeros(int(x.shape[1] * times))
""",
        run="""\
def make(): return Wide(1.5)
calls = [(torch.ones(2, 3),), (torch.ones(2, 3), 2.5), (torch.ones(2, 3), True)]
""",
    ),
    Example(
        title="of two sizes, in a list",
        before="""\
import numpy as np


class Flat(nn.Module):
    def forward(self, x):
        x = x.exp()
        return torch.reshape(x, [-1, np.prod([x.shape[1], x.shape[2]])]) * 2
""",
        after="""\
import numpy as np


class Flat(nn.Module):
    def forward(self, x):
        x = x.exp()
        return torch.reshape(x, [-1, x.shape[1] * x.shape[2]]) * 2
""",
        run="def make(): return Flat()\n" + _RUN,
    ),
    Example(
        title="twice as many places",
        before="""\
import math
import numpy as np


class Twice(nn.Module):
    def forward(self, x):
        x = x.sin()
        noise = torch.ones(2 * np.prod(x.shape))
        return torch.cat([x.flatten(), noise])
""",
        after="""\
import math
import numpy as np


class Twice(nn.Module):
    def forward(self, x):
        x = x.sin()
        noise = torch.ones(2 * math.prod(x.shape))
        return torch.cat([x.flatten(), noise])
""",
        run="def make(): return Twice()\n" + _RUN,
        unsafe=True,
    ),
    Example(
        title="by another name",
        before="""\
from numpy import prod


class Split(nn.Module):
    def forward(self, x):
        rows, many, width = x.shape
        return x.tanh().view(prod((rows, x.size(1))), -1, width)
""",
        after="""\
from numpy import prod


class Split(nn.Module):
    def forward(self, x):
        rows, many, width = x.shape
        return x.tanh().view(rows * x.size(1), -1, width)
""",
        run="def make(): return Split()\n" + _RUN,
    ),
    Example(
        title="in a helper, in a loop",
        before="""\
from math import prod
import numpy as np


class Deep(nn.Module):
    def rows(self, x):
        return x.reshape(np.prod(x.shape[:2]), x.shape[-1])

    def forward(self, x):
        for n in range(2):
            x = self.rows(x).reshape(x.shape).sin() + n
        return x
""",
        after="""\
from math import prod
import numpy as np


class Deep(nn.Module):
    def rows(self, x):
        return x.reshape(prod(x.shape[:2]), x.shape[-1])

    def forward(self, x):
        for n in range(2):
            x = self.rows(x).reshape(x.shape).sin() + n
        return x
""",
        run="def make(): return Deep()\n" + _RUN,
        unsafe=True,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="a list already, a sum of a generator, and a function of the project that is called so",
        source="""\
import math

def prod(numbers):
    return sum(numbers)

class Mean(nn.Module):
    def forward(self, x, dims: tuple = (1, 2)):
        return x / math.prod([x.shape[d] for d in dims]) + prod(x.shape[d] for d in dims) + sum(n for n in x.shape)
""",
    ),
    NearMiss(
        title="along an axis",
        source="""\
import numpy as np


class Net(nn.Module):
    def forward(self, x, sizes):
        return x.reshape(np.prod(x.shape, axis=0)).sin()
""",
        reported=True,
    ),
    NearMiss(
        title="of a given dtype",
        source="""\
import numpy as np


class Net(nn.Module):
    def forward(self, x, sizes):
        return x.reshape(np.prod(x.shape, dtype=np.int32)).sin()
""",
        reported=True,
    ),
    NearMiss(
        title="handed on as it is",
        source="""\
import numpy as np


class Net(nn.Module):
    def forward(self, x, sizes):
        return x.sin(), np.prod(x.shape)
""",
        reported=True,
    ),
    NearMiss(
        title="divided",
        source="""\
import numpy as np


class Net(nn.Module):
    def forward(self, x, sizes):
        return x.sin() / np.prod(x.shape)
""",
        reported=True,
    ),
    NearMiss(
        title="of numbers that are given",
        source="""\
import numpy as np


class Net(nn.Module):
    def forward(self, x, sizes):
        return x.sin().reshape(np.prod(sizes))
""",
        reported=True,
    ),
    NearMiss(
        title="of what may be no integers",
        source="""\
import numpy as np


class Net(nn.Module):
    def forward(self, x, sizes):
        return x.sin().reshape(int(np.prod([x.shape[0] / 2, sizes[0]])), -1)
""",
        reported=True,
    ),
    NearMiss(
        title="one size, by its name",
        source="""\
import numpy as np


class Net(nn.Module):
    def forward(self, x, sizes):
        return x.sin().reshape(np.prod(x.size(dim=0)), -1)
""",
        reported=True,
    ),
    NearMiss(
        title="all sizes, twice",
        source="""\
import numpy as np


class Net(nn.Module):
    def forward(self, x, sizes):
        return x.sin().reshape(np.prod([x.shape, x.shape]) // x.numel(), -1)
""",
        reported=True,
    ),
    NearMiss(
        title="a half of them",
        source="""\
import numpy as np


class Net(nn.Module):
    def forward(self, x, sizes):
        return x.sin().reshape(np.prod(x.shape) // sizes[0], -1)
""",
        reported=True,
    ),
    NearMiss(
        title="divided by, and by what may be none",
        source="""\
import numpy as np


class Net(nn.Module):
    def forward(self, x, n: int = 2):
        x = x.sin()
        y = torch.zeros(7 // np.prod(x.shape)) + torch.zeros(np.prod(x.shape) // n)
        return y + torch.zeros(np.prod(x.shape) // x.shape[0]) + torch.zeros(np.prod(x.shape) // 0)
""",
        reported=True,
    ),
    NearMiss(
        title="numbers up to it",
        source="""\
import numpy as np


class Net(nn.Module):
    def forward(self, x):
        return x.sin() * torch.arange(np.prod(x.shape[1:]))
""",
        reported=True,
    ),
    NearMiss(
        title="math is another name",
        source="""\
import numpy as np


class math(nn.Module):
    def forward(self, x):
        return x.sin().reshape(np.prod(x.shape))
""",
        reported=True,
    ),
    NearMiss(
        title="one number, and what else is done with the product",
        source="""\
import numpy as np


class Pool(nn.Module):
    def __init__(self, sizes=(2, 3)):
        super().__init__()
        self.sizes = sizes

    def forward(self, x):
        n = np.prod(self.sizes)
        return x.sin() / n, float(n), float(np.prod(len(self.sizes)))
""",
    ),
)
