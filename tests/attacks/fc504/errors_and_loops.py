"""A lookup in a loop, an error while an item is made, an item of several names, what is handed back is the item."""

import torch
from torch import nn

TABLES = {}


class Net(nn.Module):
    def table(self, n, device):
        if n not in TABLES:
            if n > 6:
                raise ValueError("too long")
            angle = torch.arange(n, device=device) / n
            TABLES[n] = angle.cos(), angle.sin()
        cos, sin = TABLES[n]
        return cos, sin

    def forward(self, xs):
        out = []
        for x in xs:
            cos, sin = self.table(x.shape[-1], x.device)
            out.append(x * cos + x.flip(-1) * sin)
        return out


# run
unsafe = True


def make():
    return Net()


calls = [([torch.ones(2, n) for n in (3, 4, 3)],), ([torch.ones(2, n) for n in (5, 7)],), ([torch.ones(1, 3)],)]
