"""The row is kept in a list, and changed there."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = nn.Embedding(32, 4)

    def forward(self, x):
        rows, length = x.shape
        kept = [torch.arange(length)]
        kept.append(kept[0])
        row = kept[0]
        places = row.unsqueeze(0).expand(rows, -1)
        torch._dynamo.decorators.mark_unbacked(places, 0)
        kept[1].mul_(2)
        return self.rotary(places)


# run
def make():
    return Net()


calls = [(torch.ones(2, 3),)]
