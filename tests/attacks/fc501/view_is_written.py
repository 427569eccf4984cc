"""A view of the row is changed after the row was expanded: the ids are other ones then."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = nn.Embedding(32, 4)

    def forward(self, x):
        rows, length = x.shape
        row = torch.arange(length)
        front = row[:1]
        places = row.unsqueeze(0).expand(rows, -1)
        torch._dynamo.decorators.mark_unbacked(places, 0)
        front += 5
        return self.rotary(places)


# run
def make():
    return Net()


calls = [(torch.ones(2, 3),), (torch.ones(1, 3),)]
