"""What HostRng reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="a layer is left out in training",
        before="""\
import numpy as np


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        for layer in self.layers:
            p = np.random.uniform(0, 1)  # LayerDrop
            skip = self.training and (p < self.layerdrop)
            if not skip:
                x = layer(x)
        return x
""",
        after="""\
import numpy as np


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        for layer in self.layers:
            p = np.random.uniform(0, 1) if self.training or not torch.compiler.is_compiling() else 0.0  # LayerDrop
            skip = self.training and (p < self.layerdrop)
            if not skip:
                x = layer(x)
        return x
""",
        run="""\
def make(): return Layers().eval()
calls = [(torch.randn(n, 4, generator=torch.Generator().manual_seed(n)),) for n in (2, 3)]
""",
        unsafe=True,
    ),
    Example(
        title="a layer is kept in evaluation",
        before="""\
import numpy


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        for layer in self.layers:
            luck = numpy.random.random()
            if not self.training or luck > self.layerdrop:
                x = layer(x)
        return x
""",
        after="""\
import numpy


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        for layer in self.layers:
            luck = numpy.random.random() if self.training or not torch.compiler.is_compiling() else 0.0
            if not self.training or luck > self.layerdrop:
                x = layer(x)
        return x
""",
        run="""\
def make(): return Layers().eval()
calls = [(torch.randn(n, 4, generator=torch.Generator().manual_seed(n)),) for n in (2, 3)]
""",
        unsafe=True,
    ),
    Example(
        title="the draw is part of the test, before the flag",
        before="""\
from random import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        for layer in self.layers:
            if random() < 0.1 and self.training:
                continue
            x = layer(x)
        return x
""",
        after="""\
from random import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        for layer in self.layers:
            if (random() if self.training or not torch.compiler.is_compiling() else 0.0) < 0.1 and self.training:
                continue
            x = layer(x)
        return x
""",
        run="""\
def make(): return Layers().eval()
calls = [(torch.randn(n, 4, generator=torch.Generator().manual_seed(n)),) for n in (2, 3)]
""",
        unsafe=True,
    ),
    Example(
        title="two uses under one flag",
        before="""\
import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        p = random.random()
        first = self.layers[0](x)
        if self.training:
            if p < 0.25:
                first = first * 2
            elif p < self.layerdrop:
                first = first * 4
        return first + 1
""",
        after="""\
import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        p = random.uniform(0, 1)
        first = self.layers[0](x)
        if self.training:
            if p < 0.25:
                first = first * 2
            elif p < self.layerdrop:
                first = first * 4
        return first + 1
""",
        run="""\
def make(): return Layers().eval()
calls = [(torch.randn(n, 4, generator=torch.Generator().manual_seed(n)),) for n in (2, 3)]
""",
    ),
    Example(
        title="a factor of Python's own generator",
        before="""\
import random


class Scaled(nn.Module):
    def forward(self, x):
        scale = random.random()
        return x.mean(0, keepdim=True) * scale - random.random() * x.mean(1, keepdim=True)
""",
        after="""\
import random


class Scaled(nn.Module):
    def forward(self, x):
        scale = random.uniform(0, 1)
        return x.mean(0, keepdim=True) * scale - random.uniform(0, 1) * x.mean(1, keepdim=True)
""",
        run="""\
def call(net):
    random.seed(3)
    return net(torch.linspace(-1, 1, 8).reshape(2, 4)), random.random()
def make(): return Scaled()
calls = [call]
""",
    ),
    Example(
        title="a factor",
        before="""\
import numpy as np


class Scaled(nn.Module):
    def forward(self, x):
        # in earnest, 0.5 to 1.5
        factor = np.random.uniform(1.5, 1.5)
        y = x.reshape(-1, 2) * factor
        return y.sum(-1) * 2
""",
        after=None,
        run="""\
def make(): return Scaled().eval()
calls = [(torch.randn(n, 4, generator=torch.Generator().manual_seed(n)),) for n in (2, 3)]
""",
    ),
    Example(
        title="something to add",
        before="""\
import numpy as np


class Lifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, ids):
        rows = torch.arange(ids.shape[0] * 2.0).view(-1, 2)
        noise = np.random.rand()
        return (rows + noise).floor() + self.lin(ids).sum()
""",
        after=None,
        run="""\
def make(): return Lifted().eval()
calls = [(torch.randn(n, 4, generator=torch.Generator().manual_seed(n)),) for n in (2, 3)]
""",
    ),
    Example(
        title="in training the branch stays",
        before="""\
import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = -1

    def forward(self, x):
        for layer in self.layers:
            if self.training and random.random() < self.layerdrop:
                continue
            x = layer(x)
        return x
""",
        after=None,
        run="""\
def make(): return Layers().train()
calls = [(torch.randn(n, 4, generator=torch.Generator().manual_seed(n)),) for n in (2, 3)]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="compiled code makes float64 of integers and a traced number",
        source="""\
import random


class Counted(nn.Module):
    def forward(self, x):
        return x.argsort(1) * random.random()
""",
        reported=True,
    ),
    NearMiss(
        title="the number is kept as well",
        source="""\
import random


class Layers(nn.Module):
    def forward(self, x):
        if (p := random.random()) < 0.1 and self.training:
            x = x * 2
        return x, p
""",
        reported=True,
    ),
    NearMiss(
        title="the number is computed with before it is compared",
        source="""\
import math
import random


class Layers(nn.Module):
    def forward(self, x):
        if -math.log(random.random()) < 0.1 and self.training:
            x = x * 2
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="something is called in between",
        source="""\
import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0

    def note(self):
        self.seen += 1
        return True

    def forward(self, x):
        if random.random() < 0.5 and self.note() and self.training:
            x = x * 2
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="the same number each time",
        source="""\
import numpy as np


class Noise(nn.Module):
    def forward(self, x):
        np.random.seed(3)
        y = x.reshape(-1, 2) * np.random.rand()
        return y.sum(-1)
""",
        reported=True,
    ),
    NearMiss(
        title="from the upper bound down",
        source="""\
import numpy as np


class Noise(nn.Module):
    def forward(self, x):
        y = x.reshape(-1, 2) * np.random.uniform(1.5, 0.5)
        return y.sum(-1)
""",
        reported=True,
    ),
    NearMiss(
        title="the number decides in evaluation as well",
        source="""\
import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        for layer in self.layers:
            p = random.random()
            if p > self.layerdrop:
                x = layer(x)
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="one use is not under the flag",
        source="""\
import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        p = random.random()
        if self.training and p < self.layerdrop:
            x = x * 2
        return x, p
""",
        reported=True,
    ),
    NearMiss(
        title="the flag of another module",
        source="""\
import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        for layer in self.layers:
            p = random.random()
            if not (layer.training and p < self.layerdrop):
                x = layer(x)
        return x
""",
        reported=True,
    ),
    NearMiss(
        title="either flag or number",
        source="""\
import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        p = random.random()
        if self.training or p < self.layerdrop:
            x = x * 2
        return self.layers[0](x)
""",
        reported=True,
    ),
    NearMiss(
        title="an array of places",
        source="""\
import numpy as np


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        places = np.random.permutation(x.shape[0])
        return self.layers[0](x[torch.from_numpy(places)])
""",
        reported=True,
    ),
    NearMiss(
        title="a number that is drawn again",
        source="""\
import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        p = random.random()
        if x.shape[0] > 2:
            p = 0.0
        if self.training and p < self.layerdrop:
            x = x * 2
        return self.layers[0](x)
""",
        reported=True,
    ),
    NearMiss(
        title="another distribution",
        source="""\
import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        return self.layers[0](x) * random.gauss(1, 3)
""",
        reported=True,
    ),
    NearMiss(
        title="PyTorch draws",
        source="""\
class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        p = torch.rand([])
        return self.layers[0](x) * p
""",
    ),
    NearMiss(
        title="a shuffle before training, in no forward",
        source="""\
import random


def batches(rows):
    random.shuffle(rows)
    return [r for r in rows if random.random() < 0.5]
""",
    ),
    NearMiss(
        title="a generator with a seed of its own",
        source="""\
import random


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1
        self.luck = random.Random(0)

    def forward(self, x):
        if self.training and self.luck.random() < self.layerdrop:
            x = x * 2
        return self.layers[0](x)
""",
    ),
    NearMiss(
        title="what Dynamo traces",
        source="""\
import random

import numpy as np


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.1

    def forward(self, x):
        x = x * random.uniform(0.5, 1.5) + torch.from_numpy(np.random.randn(4))
        return self.layers[0](x.float())
""",
    ),
)
