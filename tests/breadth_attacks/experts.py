"""Loops over experts, random numbers of the host, and places that are listed."""

from __future__ import annotations

MADE = "def make(): return Net()\n"
SIGNS = MADE + "calls = [(torch.linspace(-3, 3, 6).view(2, 3),), (torch.linspace(-2, 3, 6),)]"
EVALUATED = "def make(): return Net().eval()\ncalls = [(torch.ones(2),), (torch.ones(3),)]"

ATTACKS: dict[str, tuple[str, str, str]] = {
    "a mask that is the rest of what is written": (
        "FC405",
        """
class Net(nn.Module):
    def forward(self, x):
        mask = x > 0
        mask[1:][mask[:-1].nonzero(as_tuple=True)] = True
        return mask
""",
        MADE + "calls = [(torch.tensor([1.0, -1, -1, 1, -1]),), (torch.tensor([-1.0]),)]",
    ),
    "a mask that is what is written, turned": (
        "FC405",
        """
class Net(nn.Module):
    def forward(self, x):
        mask = (x > 0).view(2, 2)
        mask.T[torch.where(mask)] = False
        return mask
""",
        MADE + "calls = [(torch.tensor([1.0, -1, 1, 1]),)]",
    ),
    "a mask that is written through its places": (
        "FC405",
        """
class Net(nn.Module):
    def forward(self, x):
        mask = x > 0
        mask[torch.where(mask)] = False
        other = x > 1
        places = torch.where(other)
        other[:] = True
        other[places] = False
        return mask, other
""",
        SIGNS,
    ),
    "a mask that changes before it is used": (
        "FC405",
        """
class Net(nn.Module):
    def forward(self, x):
        h = x * 2
        mask = h > 0
        places = torch.where(mask)
        mask.logical_not_()
        h[places] = 0
        return h, mask
""",
        SIGNS,
    ),
    "a tensor that is its own condition": (
        "FC405",
        """
class Net(nn.Module):
    def forward(self, x):
        h = x.clone()
        places = torch.where(h)
        h.zero_()
        h[places] = 3
        return h
""",
        SIGNS,
    ),
    "places that are other ones on one path": (
        "FC405",
        """
class Net(nn.Module):
    def forward(self, x):
        h = x * 2
        places = torch.where(h > 0)
        if h.dim() == 1:
            places = torch.arange(2)
        h[places] = 0
        return h
""",
        SIGNS,
    ),
    "places that a closure counts": (
        "FC405",
        """
class Net(nn.Module):
    def forward(self, x):
        h = x * 2
        places = torch.where(h > 0)
        h[places] = 1
        return h, (lambda: len(places))()
""",
        SIGNS,
    ),
    "a number that is kept": (
        "FC604",
        """
import math
import random

import numpy as np


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def note(self, p):
        self.seen.append(p)
        return 1

    def forward(self, x):
        if (p := random.random()) < 0.5 and self.training:
            x = x * 2
        return x, p > 0
""",
        EVALUATED,
    ),
    "the logarithm of a number": (
        "FC604",
        """
import math
import random

import numpy as np


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def note(self, p):
        self.seen.append(p)
        return 1

    def forward(self, x):
        if -math.log(random.random()) < 0.5 and self.training:
            x = x * 2
        return x + 1
""",
        EVALUATED,
    ),
    "a reciprocal of a number": (
        "FC604",
        """
import math
import random

import numpy as np


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def note(self, p):
        self.seen.append(p)
        return 1

    def forward(self, x):
        p = np.random.uniform(1, 2)
        if 1 / p < 0.5 and self.training:
            x = x * 2
        return x + 1
""",
        EVALUATED,
    ),
    "a number that something else gets": (
        "FC604",
        """
import math
import random

import numpy as np


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def note(self, p):
        self.seen.append(p)
        return 1

    def forward(self, x):
        if self.note(random.random() > 0) == 1 and self.training:
            x = x * 2
        return x + 1, list(self.seen)
""",
        EVALUATED,
    ),
    "something that happens in between": (
        "FC604",
        """
import math
import random

import numpy as np


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def note(self, p):
        self.seen.append(p)
        return 1

    def forward(self, x):
        if random.random() < 2 and self.note(1) and self.training:
            x = x * 2
        return x + 1, list(self.seen)
""",
        EVALUATED,
    ),
    "something that happens for the draw": (
        "FC604",
        """
import math
import random

import numpy as np


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def note(self, p):
        self.seen.append(p)
        return 1

    def forward(self, x):
        k = random.choice([self.note(1), 2])
        if self.training:
            x = x * k
        return x * 2, list(self.seen)
""",
        EVALUATED,
    ),
    "a generator that is set up": (
        "FC604",
        """
import math
import random

import numpy as np


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def note(self, p):
        self.seen.append(p)
        return 1

    def forward(self, x):
        np.random.seed(3)
        y = x.reshape(-1, 1) * np.random.rand()
        return y * 2
""",
        EVALUATED,
    ),
    "bounds the wrong way round": (
        "FC604",
        """
import math
import random

import numpy as np


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def note(self, p):
        self.seen.append(p)
        return 1

    def forward(self, x):
        y = x.reshape(-1, 1) * np.random.uniform(1.5, 0.5)
        return y * 0
""",
        EVALUATED,
    ),
}
